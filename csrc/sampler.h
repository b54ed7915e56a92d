// sampler: mesh -> points on it (cover) or in it (fill).
// Comes in: SandMesh. Goes out: SandPoints, deterministic for one seed. Single-threaded; any thread.
#ifndef SAND_SAMPLER_H
#define SAND_SAMPLER_H

#include "surface.h"

/// xyz per point, metres. Zero-initialised is empty. Owner: whoever holds the struct, frees with sand_points_free.
typedef struct SandPoints
{
	float *xyz;
	int count;
} SandPoints;

void sand_points_free(SandPoints *points); // leaves it zeroed; NULL is fine

/// More points than this are refused with the estimate, before anything is allocated.
#define SAND_SAMPLER_POINT_LIMIT 100000000

typedef struct SandCoverDesc
{
	float spacing; // m, > 0: no two points are nearer; no place of the surface is farther than this (and 1 %) from a
	               // point
	uint64_t seed;
} SandCoverDesc;

/// Even points on the surface, open or closed: area-weighted random candidates (Bell 2005, section 4 step 4),
/// thinned to a maximal Poisson-disk set, so that spheres of radius >= spacing put there leave no hole.
/// Fails: SAND_ERROR_ARGUMENT (spacing not finite or <= 0, an estimate above the limit, or a spacing too fine for
/// floats that far from the origin), SAND_ERROR_MEMORY. On failure *points_out is empty.
SandStatus sand_sampler_cover(const SandMesh *mesh, const SandCoverDesc *desc, SandPoints *points_out, SandError *err);

typedef struct SandSpreadDesc
{
	float spacing; // m, > 0: distance that nearest neighbours settle at
	float offset;  // m: signed distance of the points from the mesh, negative inside; 0 = on it
	uint64_t seed;
	const SandCancel *cancel; // may be NULL
} SandSpreadDesc;

/// As even as can be: seeded by area, pushed apart on the surface (Bell 2005 eq. 20), put in where there are gaps and
/// taken out where they crowd, until the spacing settles. Open or closed; sides of a plate thinner than the spacing
/// share their points. Deterministic, the same for every thread count of pool (NULL = this thread). Fails as
/// sand_sampler_cover, and with SAND_ERROR_MESH when the level at that offset does not exist (deeper than the mesh),
/// SAND_CANCELLED.
SandStatus sand_sampler_spread(const SandSurface *surface, const SandSpreadDesc *desc, SandPool *pool,
                               SandPoints *points_out, SandError *err);

typedef struct SandFillDesc
{
	float spacing;   // m, > 0: distance of neighbouring points of a hexagonal close packing
	float clearance; // m, >= 0: no point is nearer than this to the surface (the grain's bounding radius), to within
	                 // 3 steps of float at the mesh's farthest coordinate
	float jitter; // 0 .. 1: share of the free room between neighbours (spacing - 2 clearance, if positive) that random
	              // moves may use up: each point moves by at most half of it, so grains stay 2 clearances apart, and
	              // by no more than its distance to the surface allows; 0 keeps the lattice
	uint64_t seed;
} SandFillDesc;

/// Points inside a closed mesh. Inside is decided by exact ray parity along lattice rows.
/// Fails: SAND_ERROR_MESH (open mesh; no point fits: says the spacing and the mesh's size),
/// SAND_ERROR_ARGUMENT (as for cover; clearance, jitter), SAND_ERROR_MEMORY. On failure *points_out is empty.
SandStatus sand_sampler_fill(const SandMesh *mesh, const SandFillDesc *desc, SandPoints *points_out, SandError *err);

#endif
