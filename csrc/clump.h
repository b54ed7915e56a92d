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
	double overlap; // volume in both mesh and spheres over volume in either, 0 .. 1; up to 0.01 too high for many
	                // spheres, for it is counted on the cells they were fitted to
	SandFit fit;    // as of a filling
} SandClump;

/// Spheres that together are as like the mesh as may be: largest overlap that was found, and the mesh's volume within
/// 0.1 % (of a mesh that is not clean: of its inside, by cells). Spheres that add less than 0.0002 to the overlap are
/// left out. On the threads of pool (NULL = this thread), deterministic, the same bits for every thread count; below
/// about a second. Fails: SAND_ERROR_ARGUMENT (sphere_count), SAND_ERROR_MESH (the mesh has no inside),
/// SAND_ERROR_MEMORY, SAND_CANCELLED. On failure sphere_count is 0.
SandStatus sand_clump_fit(const SandSurface *surface, const SandClumpDesc *desc, SandPool *pool, SandClump *clump_out,
                          SandError *err);

#endif
