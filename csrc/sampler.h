// sampler: mesh -> points on it (cover) or in it (fill).
// Comes in: SandMesh. Goes out: SandPoints, deterministic for one seed. Single-threaded; any thread.
#ifndef SAND_SAMPLER_H
#define SAND_SAMPLER_H

#include "mesh.h"

/// xyz per point, metres. Zero-initialised is empty. Owner: whoever holds the struct, frees with sand_points_free.
typedef struct SandPoints
{
	float *xyz;
	int count;
} SandPoints;

void sand_points_free(SandPoints *points); // leaves it zeroed; NULL is fine

/// More points than this are refused with the estimate, before anything is allocated.
#define SAND_SAMPLER_POINT_LIMIT 100000000

/// SAND_ERROR_ARGUMENT for a spacing that is no length above 0, beyond 1e-12 to 1e12 m, that floats cannot hold at the
/// mesh's coordinates, or that leads to more points than the limit or more pieces of surface than can be visited;
/// point_estimate by the caller.
SandStatus sand_sampler_check_spacing(const SandMesh *mesh, double spacing, double point_estimate, SandError *err);

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
