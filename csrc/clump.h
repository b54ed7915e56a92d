// clump: a small mesh -> a few spheres of different radii, for grains shaped like it.
// Comes in: SandSurface. Goes out: SandClump.
#ifndef SAND_CLUMP_H
#define SAND_CLUMP_H

#include "fit.h"

#define SAND_CLUMP_LIMIT 50

typedef struct SandClumpDesc
{
	int sphere_count; // wanted, 2 .. SAND_CLUMP_LIMIT; 0 = 8
	uint64_t seed;
	const SandCancel *cancel; // may be NULL
} SandClumpDesc;

typedef struct SandClump
{
	float centres[3 * SAND_CLUMP_LIMIT]; // m, mesh coordinates
	float radii[SAND_CLUMP_LIMIT];       // m
	int sphere_count;                    // wanted, or fewer when fewer say as much
	double overlap;                      // volume in both mesh and spheres over volume in either, 0 .. 1
	SandFit fit;
} SandClump;

/// Spheres that together are as like the mesh as may be: largest overlap, volume as the mesh's. Deterministic, the same
/// for every thread count. Fails: SAND_ERROR_ARGUMENT (sphere_count), SAND_ERROR_MESH (the mesh has no inside),
/// SAND_ERROR_MEMORY, SAND_CANCELLED. On failure sphere_count is 0.
SandStatus sand_clump_fit(const SandSurface *surface, const SandClumpDesc *desc, SandPool *pool, SandClump *clump_out,
                          SandError *err);

#endif
