// sim: state and stepping. Comes in: SandScene. Goes out: grain arrays per frame.
// Reads no file, knows no cache. Same bits for every thread count and every run on one build.
#ifndef SAND_SIM_H
#define SAND_SIM_H

#include "gpu.h"
#include "kernel.h"
#include "scene.h"
#include "scheme.h"

typedef struct SandSim SandSim;

/// What computes. Both give the same bits where the device computes exactly (docs/design.md).
typedef enum SandEngine
{
	SAND_ENGINE_CPU,  // threads and SIMD; runs everywhere
	SAND_ENGINE_GL,   // OpenGL compute, also on a software device
	SAND_ENGINE_AUTO, // gl on a hardware device, else cpu
	SAND_ENGINE_COUNT
} SandEngine;

typedef struct SandSimDesc
{
	SandEngine engine;
	bool stops_without_gpu;  // gl: a device that fails twice in a row stops the simulation instead of handing it to cpu
	double batch_seconds;    // s of work handed to the device at once; 0 = 0.03: a cancel waits for one batch
	SandGpuDesc gpu;         // which device; zero = the best
	int thread_count;        // 0 = one per core
	double step_seconds;     // s; 0 = a share of the scene's contact time
	bool is_overlap_allowed; // do not refuse grains that overlap by more than half a radius at the start
	SandScheme scheme;       // time stepping; others than leapfrog know no emitters, outflows, sleep, wind or regions
	double tolerance;        // RKF45: error a step, of radius and max_speed; 0 = 1e-5
	const char *gl_defines;  // for tests: lines put before every shader of the gl engine; NULL = none; outlives the sim
	const char *kernel;      // inner loops, for tests: "baseline", "avx2"; NULL = the best that runs here
} SandSimDesc;

/// The scene is used, not copied: it must outlive the sim. One sim = one owner thread at a time.
/// Refuses grains that start deep inside each other or a wall (SAND_ERROR_ARGUMENT: which, how deep): they would
/// explode.
SandStatus sand_sim_create(const SandScene *scene, const SandSimDesc *desc, SandSim **sim_out, SandError *err);
void sand_sim_destroy(SandSim *sim); // NULL is fine

/// Advances by seconds (>= 0). Steps are no longer than step_seconds and shorten when grains become faster than the
/// scene expected. cancel may be NULL; it is polled every step.
/// SAND_CANCELLED leaves the state at the last whole step; SAND_ERROR_UNSTABLE names grain, time, speed and likely
/// cause and leaves the sim readable but refusing to advance.
SandStatus sand_sim_advance(SandSim *sim, double seconds, SandCancel *cancel, SandError *err);

/// The same, and says that the next call will ask for ahead_seconds (0 = nothing is said): the gl engine begins with it
/// before this returns, and computes while the caller reads, saves and writes the state, which stays this call's. A
/// next call that asks for another time, or a state loaded in between, costs what was computed ahead and nothing else:
/// the bits are the same. What fails ahead is told to the next call; destroy waits for no more than a batch and a list.
SandStatus sand_sim_advance_ahead(SandSim *sim, double seconds, double ahead_seconds, SandCancel *cancel,
                                  SandError *err);

typedef struct SandSimInfo
{
	double time;           // s simulated
	double step_seconds;   // s, longest step allowed
	double last_step;      // s, of the last step
	int64_t step_count;    // steps done
	int64_t list_count;    // neighbour lists made
	int64_t contact_count; // touching pairs in the last step
	int lost_count;        // grains that left the domain; they stay where they left, touching nothing
	int asleep_count;
	int unborn_count; // still to come from emitters
	int late_count;   // of those, due but their place was taken
	int gone_count;   // taken by outflows
	int grain_count;
	int64_t sphere_count;
	double kinetic_energy;                             // J
	double potential_energy;                           // J, in gravity, zero at the origin
	double largest_speed;                              // m/s
	double drift_seconds, force_seconds, list_seconds; // wall time spent so far, by phase
} SandSimInfo;
SandSimInfo sand_sim_info(const SandSim *sim);

/// The engine at work now, and on which device; device NULL = the processor. note: one sentence when the engine is not
/// the one asked for, or changed since, else "". Lives as long as the sim.
typedef struct SandSimEngine
{
	SandEngine engine; // never AUTO
	const SandGpuDevice *device;
	const char *note;
	int lost_count;  // devices that failed so far
	int ahead_count; // gl: states that this device handed over with the next call under way already
} SandSimEngine;
SandSimEngine sand_sim_engine(const SandSim *sim);

/// The gl engine's passes, in running order: name, seconds on the device and how often, when desc.gpu.has_timers.
/// Returns how many, 0 on the processor. Not while advancing.
typedef struct SandSimPass
{
	const char *name;
	double seconds;
	int64_t count;
} SandSimPass;
int sand_sim_passes(SandSim *sim, SandSimPass passes_out[SAND_GPU_PASS_LIMIT]);

/// Destination arrays, each NULL or of grain_count elements, owned by the caller. Not while advancing.
typedef struct SandSimArrays
{
	float *positions;    // xyz, m
	float *orientations; // w x y z
	float *velocities;   // xyz, m/s
	float *spins;        // xyz, rad/s, world axes
	int32_t *flags;      // SandGrainFlag
} SandSimArrays;
void sand_sim_read(const SandSim *sim, const SandSimArrays *arrays);

/// Mean contact force and torque over the last advance, for plots: on every body about its centre of mass, on every
/// collider about its origin (sand_collider_origin). Six numbers each: N, N m. Each pointer may be NULL. Not while
/// advancing; zero before the first.
void sand_sim_loads(const SandSim *sim, double *bodies_out, double *colliders_out);

/// Contacts as they act now, for validation and plots: writes at most capacity records, returns how many there are.
/// Needs one advance before it. Not while advancing.
int64_t sand_sim_contacts(SandSim *sim, SandContact *contacts_out, int64_t capacity);

/// The whole state as bytes (free with sand_free), or back. A sim that loads what another saved goes on to the bit as
/// that one would have. Loading refuses, and leaves the sim as it was, when the bytes are torn or of another scene.
SandStatus sand_sim_save(SandSim *sim, void **bytes_out, size_t *byte_count_out, SandError *err);
SandStatus sand_sim_load(SandSim *sim, const void *bytes, size_t byte_count, SandError *err);

/// Hash of all motion of colliders and bodies that the state at a time (s) depends on: up to then, and a little ahead.
/// 0 when nothing is moved.
uint64_t sand_sim_motion_hash(const SandSim *sim, double time);

/// Hash of the full state (double precision), for determinism tests and the cache's state hash.
uint64_t sand_sim_hash(const SandSim *sim);

#endif
