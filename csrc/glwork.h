// glwork: work on a device that comes and goes: its programs, its buffers by binding, running sums, sorting, and short
// submissions. What the sampler's rooms on the GPU share.
// Comes in: a device, names of passes, sizes. Goes out: bytes computed. Everything here is called from inside a job of
// sand_gpu_run, but for the zeroed struct itself.
#ifndef SAND_GLWORK_H
#define SAND_GLWORK_H

#include "gpu.h"

#define SAND_GLWORK_BINDINGS 40
#define SAND_GLWORK_PASSES 16

typedef struct SandGlPass
{
	const char *file, *defines;
} SandGlPass;

/// Zero-initialised, with gpu and cancel set, is valid and empty. The device's bindings are this work's alone while it
/// lasts.
typedef struct SandGlWork
{
	SandGpu *gpu;
	const SandCancel *cancel; // may be NULL
	SandGpuBuffer buffers[SAND_GLWORK_BINDINGS];
	int64_t bytes[SAND_GLWORK_BINDINGS];
	SandGpuProgram programs[SAND_GLWORK_PASSES + 4]; // the last four: running sums and sorting
	double costs[SAND_GLWORK_PASSES + 4];            // s per invocation, as measured
	double costs_most[SAND_GLWORK_PASSES + 4];       // the largest so far
	double pending;                                  // s that the device is thought to have before it
	double began;                                    // when the first of them was handed over
} SandGlWork;

/// Compiles the passes, 0 .. pass_count of the caller's numbering, and those of running sums and sorting when sums is
/// set. Fails as sand_gpu_program_create does, and with SAND_ERROR_GPU when the device has too few bindings.
SandStatus sand_glwork_open(SandGlWork *work, const SandGlPass *passes, int pass_count, bool has_sums, SandError *err);

/// Destroys all of it. NULL is fine, and so is an empty one.
void sand_glwork_close(SandGlWork *work);

/// At least so many bytes at a binding; contents are lost when it grows. What for: "the points", for sentences.
/// SAND_ERROR_GPU_MEMORY with the numbers when one block of the device cannot hold them.
SandStatus sand_glwork_reserve(SandGlWork *work, int binding, int64_t byte_count, const char *what_for, SandError *err);

/// Reserves and uploads.
SandStatus sand_glwork_fill(SandGlWork *work, int binding, const void *bytes, int64_t byte_count, const char *what_for,
                            SandError *err);

void sand_glwork_upload(SandGlWork *work, int binding, int64_t offset, const void *bytes, int64_t byte_count);
SandStatus sand_glwork_download(SandGlWork *work, int binding, int64_t offset, void *bytes_out, int64_t byte_count,
                                SandError *err);
void sand_glwork_swap(SandGlWork *work, int a, int b);

/// Runs a pass for `count` invocations, with a barrier behind it. The numbers at locations 0, 1, .. of its uniforms.
void sand_glwork_run(SandGlWork *work, int pass, int64_t count, const uint32_t *numbers, int number_count);

/// Runs a pass for first .. end of things in parts short enough to be cancelled between: the pass takes the first and
/// the end of its part at locations 0 and 1. threads: invocations per thing. Fails as sand_glwork_pace.
SandStatus sand_glwork_run_parts(SandGlWork *work, int pass, int64_t first, int64_t end, int64_t threads,
                                 SandError *err);

/// Counts invocations handed over; when they take about 20 ms together, waits for them. SAND_CANCELLED when asked for.
SandStatus sand_glwork_pace(SandGlWork *work, int pass, int64_t invocation_count, SandError *err);

/// SAND_CANCELLED when that was asked for.
SandStatus sand_glwork_go_on(const SandGlWork *work, SandError *err);

/// Running sums, without the number itself, of count words from the start of a binding, in place. Bindings
/// SAND_BIND_SCAN and SAND_BIND_SCAN_SUMS are its own.
SandStatus sand_glwork_scan(SandGlWork *work, int binding, uint32_t count, SandError *err);
#define SAND_GLWORK_SCAN_STEPS 8
/// The group counts of the dispatches that a scan of count words is made of; returns how many there are.
int sand_glwork_scan_groups(uint32_t count, uint32_t groups_out[SAND_GLWORK_SCAN_STEPS]);
/// The same scan recorded with group counts from a buffer, at offset and 12 bytes on for each dispatch.
void sand_glwork_scan_indirect(SandGlWork *work, int binding, uint32_t count, SandGpuBuffer groups, int64_t offset);
SandStatus sand_glwork_reserve_scan(SandGlWork *work, uint32_t count, SandError *err);

/// Sorts count records of key and value at SAND_BIND_KEYS by the lowest key_bits of the key, equal ones in the order
/// they had. SAND_BIND_KEYS_SPARE holds as many.
SandStatus sand_glwork_sort(SandGlWork *work, uint32_t count, int key_bits, SandError *err);

#endif
