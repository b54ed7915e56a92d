// packing: grains into the inside of a mesh, at a chosen packing.
// Comes in: SandSurface. Goes out: SandPoints, the grains' centres.
#ifndef SAND_PACKING_H
#define SAND_PACKING_H

#include "sampler.h"
#include "surface.h"

typedef enum SandPackingKind
{
	SAND_PACKING_HEXAGONAL, // close-packed lattice, widened to the packing wanted: up to 0.74
	SAND_PACKING_JITTERED,  // the same lattice, every grain moved at random within its free room: up to 0.74
	SAND_PACKING_RELAXED,   // random places, pushed apart until nothing overlaps: up to 0.60
	SAND_PACKING_COUNT
} SandPackingKind;

typedef struct SandPackingDesc
{
	SandPackingKind kind;
	float radius;  // m, > 0: bounding radius of a grain
	float packing; // share of the bulk that bounding spheres fill; 0 = 0.74, 0.55, 0.55 by kind
	uint64_t seed;
	const SandCancel *cancel; // may be NULL
} SandPackingDesc;

/// Grains whose bounding spheres neither poke out of the mesh (by more than 3 steps of float at its farthest
/// coordinate) nor overlap each other (by more than 1 % of a radius when relaxed, else by no more than 2 such steps).
/// Where no site of the kind fits, one grain in the deepest place, sought to a hundredth of a radius. Also in meshes
/// with holes, by the winding number: a hole is no wall, spheres poke through it, their centres do not. Deterministic,
/// the same for every thread count of pool (NULL = this thread). Relaxing takes some 250 bytes a grain while it runs.
/// Fails: SAND_ERROR_ARGUMENT (a number out of range; an estimate above SAND_SAMPLER_POINT_LIMIT, with the estimate; a
/// radius too fine for floats that far from the origin), SAND_ERROR_MESH (no inside, or no grain fits: says radius,
/// size and the deepest place), SAND_ERROR_MEMORY, SAND_CANCELLED. On failure *points_out is empty.
SandStatus sand_packing_fill(const SandSurface *surface, const SandPackingDesc *desc, SandPool *pool,
                             SandPoints *points_out, SandError *err);

#endif
