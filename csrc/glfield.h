// glfield: the bricks of a distance field filled by a device; under field, beside rows.
// Comes in: SandSurface, a grid. Goes out: pairs of brick and triangle, values of nodes: the processor's, to the bit
// where the device computes floats and doubles as it does.
#ifndef SAND_GLFIELD_H
#define SAND_GLFIELD_H

#include "gpu.h"
#include "surface.h"

typedef struct SandGlFieldDesc
{
	SandGpu *gpu; // must outlive the work; its bindings are this work's alone until destroy
	const SandSurface *surface;
	double origin[3];         // m, of node (0, 0, 0)
	double inverse_voxel;     // 1/m
	double band;              // voxels
	float voxel;              // m
	int32_t bricks[3];        // along each axis of the whole grid
	double doubt;             // as for sand_glsurface_load
	const SandCancel *cancel; // may be NULL; about 100 ms
} SandGlFieldDesc;

typedef struct SandGlFieldWork SandGlFieldWork;

/// Compiles the passes and uploads the mesh. Fails as sand_glsurface_load and sand_gpu_program_create do. On failure
/// *work_out is NULL. Any thread.
SandStatus sand_glfield_create(const SandGlFieldDesc *desc, SandPool *pool, SandGlFieldWork **work_out, SandError *err);
void sand_glfield_destroy(SandGlFieldWork *work); // NULL is fine

/// How many pairs of triangle and brick there are.
SandStatus sand_glfield_count(SandGlFieldWork *work, int64_t *count_out, SandError *err);

/// Pairs that one block of the device can hold; with more of them the processor has to list them.
int64_t sand_glfield_pair_limit(const SandGlFieldWork *work);

/// The pairs, brick << 32 | triangle, ascending. After sand_glfield_count.
SandStatus sand_glfield_list(SandGlFieldWork *work, int64_t count, int key_bits, uint64_t *pairs_out, SandError *err);

/// Values of the nodes of every brick, 512 each: m, negative inside, INFINITY out of the band. keys: per brick its
/// number in the grid; starts: per brick, + 1, its first pair. Bricks are done in batches that fit into the device; one
/// with more pairs than fit is looked at in parts.
SandStatus sand_glfield_fill(SandGlFieldWork *work, const uint32_t *keys, const int32_t *starts, const uint64_t *pairs,
                             int brick_count, float *values_out, SandError *err);

#endif
