// spread: even points on a mesh, or at a distance from it.
// Comes in: SandSurface. Goes out: SandPoints.
#ifndef SAND_SPREAD_H
#define SAND_SPREAD_H

#include "gpu.h"
#include "sampler.h"
#include "surface.h"

typedef struct SandSpreadDesc
{
	float spacing; // m, > 0: distance that nearest neighbours settle at
	float offset;  // m: signed distance of the points from the mesh, negative inside; 0 = on it
	uint64_t seed;
	const SandCancel *cancel; // may be NULL
	SandGpu *gpu;             // pushes the points apart (csrc/glspread.h): the same points where it computes like the
	                          // processor; NULL = the processor. Must not be in use by others meanwhile
} SandSpreadDesc;

/// As even as can be: seeded by area, pushed apart on the surface (Bell 2005 eq. 20), put in where there are gaps and
/// taken out where they crowd, until the spacing settles. Open or closed; sides of a plate thinner than the spacing
/// share their points. Deterministic, the same for every thread count of pool (NULL = this thread). Fails as
/// sand_sampler_cover, and with SAND_ERROR_MESH when the level at that offset does not exist (deeper than the mesh),
/// SAND_CANCELLED, and with a device as sand_glspread_create does.
SandStatus sand_spread_points(const SandSurface *surface, const SandSpreadDesc *desc, SandPool *pool,
                              SandPoints *points_out, SandError *err);

#endif
