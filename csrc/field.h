// field: the signed distance to a mesh on a grid, kept only near the surface.
// Comes in: SandSurface. Goes out: SandField: value and gradient anywhere in the band.
//
// Bricks of 8 x 8 x 8 nodes exist where the band passes, so memory goes with area, not volume. A node holds the exact
// distance to the nearest face, edge or vertex, negative inside (sand_surface_is_inside), rounded to float; between
// nodes values are trilinear (Longmore 2009 eq. 6.3).
#ifndef SAND_FIELD_H
#define SAND_FIELD_H

#include "gpu.h"
#include "surface.h"

typedef struct SandField SandField;

typedef struct SandFieldDesc
{
	float voxel;              // m, > 0: distance of nodes
	float band;               // m: nodes at least this near to the surface have values; at most 100 voxels; 0 = 3
	const SandCancel *cancel; // may be NULL
	SandGpu *gpu;             // computes it (csrc/glfield.h): the same bricks, and on a device that computes like the
	                          // processor the same bits; NULL = the processor. Must not be in use by others meanwhile
} SandFieldDesc;

typedef struct SandFieldInfo
{
	double origin[3]; // m, of node (0, 0, 0)
	int32_t size[3];  // nodes per axis of the whole grid, kept or not
	float voxel, band;
	int64_t brick_count;
	int64_t byte_count;
} SandFieldInfo;

/// Built on the threads of pool (NULL = this thread), the same bits for every thread count. Fails: SAND_ERROR_ARGUMENT
/// (voxel or band not finite or out of range; more than 2^31 bricks in the grid, or pairs of triangle and brick: says
/// how large a voxel would do), SAND_ERROR_MEMORY (says the bytes), SAND_CANCELLED, and with a device as
/// sand_glfield_create does. On failure *field_out is NULL.
SandStatus sand_field_create(const SandSurface *surface, const SandFieldDesc *desc, SandPool *pool,
                             SandField **field_out, SandError *err);
void sand_field_destroy(SandField *field); // NULL is fine

SandFieldInfo sand_field_info(const SandField *field);

/// False when one of the eight nodes around the place is not in the band. gradient_out may be NULL; it is that of the
/// trilinear value, so about unit length. Any thread.
bool sand_field_sample(const SandField *field, const double place[3], double *distance_out, double gradient_out[3]);

/// Value of a node; false when it is not in the band. Any thread.
bool sand_field_node(const SandField *field, int32_t x, int32_t y, int32_t z, float *distance_out);

/// Brick number `index` of 0 .. brick_count: its place in bricks along x, y and z, and its 512 values, x fastest,
/// INFINITY out of the band. They live as long as the field. Any thread.
const float *sand_field_brick(const SandField *field, int64_t index, int32_t at_out[3]);

#endif
