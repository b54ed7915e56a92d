// fit: how well spheres stand for a mesh, and the masses that make them weigh like it.
// Comes in: SandSurface and spheres. Goes out: SandFit.
#ifndef SAND_FIT_H
#define SAND_FIT_H

#include "surface.h"

typedef struct SandFitDesc
{
	const float *centres;     // xyz per sphere, m
	const float *radii;       // one per sphere, m; NULL = all `radius`
	float radius;             // m
	int sphere_count;         // >= 1
	float offset;             // m, of the level the centres were put on, negative inside; 0 for a filling
	bool is_filling;          // spheres fill the volume, not the surface: nothing is uncovered
	const SandCancel *cancel; // may be NULL
} SandFitDesc;

typedef struct SandFit
{
	int sphere_count;
	double spacing_min, spacing_mean, spacing_max; // m, distance from a centre to its nearest neighbour; 0 for one
	double evenness;                               // spacing_min / spacing_mean; 0 for one
	double uncovered_share;                        // of the mesh's area: places in no sphere grown by |offset|; 0 .. 1
	double hausdorff; // m: the farther of two: how far a place of the mesh is from the nearest sphere (0 within one),
	                  // and how far a sphere reaches out of the solid: signed distance of its centre plus its
	                  // radius. So one radius for centres on the mesh, and at most that for spheres within it
	double mesh_volume, sphere_volume; // m^3; of the union of the spheres. mesh_volume 0 when the mesh is open or flat
	double volume_error;               // |sphere_volume / mesh_volume - 1|; 0 when mesh_volume is
	double inertia_error_raw; // of equal masses in the spheres against the mesh, each about its own centre of mass:
	                          // largest of the six components' differences over the largest moment; 0 when
	                          // mesh_volume is
	double inertia_error;     // the same with the masses of sand_fit_masses
} SandFit;

/// Measures, on the threads of pool (NULL = this thread), the same bits for every thread count. Spacing is exact;
/// uncovered_share is counted at 50,000 to a million places spread over the area, to about 0.1 % of it; hausdorff at
/// these places and all vertices, and at all spheres; sphere_volume is within about 0.1 %. Fails: SAND_ERROR_ARGUMENT
/// (no spheres, a centre or radius that is not finite or a radius <= 0: names it), SAND_ERROR_MEMORY, SAND_CANCELLED.
/// On failure *fit_out is zero.
SandStatus sand_fit_measure(const SandSurface *surface, const SandFitDesc *desc, SandPool *pool, SandFit *fit_out,
                            SandError *err);

/// Masses of the spheres (kg, sum = mass) with the mesh's centre of mass and inertia, to 1e-9 of its size and largest
/// moment: equal ones with the least correction (in the sum of squares), which is a quadratic polynomial in the
/// position when radii are equal. A sphere's own inertia 2/5 m r^2 counts. No mass is less than 1 % of an equal share.
/// Where the exact answer would need less, or too few spheres leave it open, masses are the nearest that were found,
/// still of sum `mass`, and false is returned. masses_out: sphere_count.
bool sand_fit_masses(const SandMass *wanted, double mass, const SandFitDesc *desc, double *masses_out);

/// The factor on all radii that makes the union of the spheres as large as `volume` (m^3), within 0.1 %, on
/// the threads of pool (NULL = this thread), the same bits for every thread count. Fails as sand_fit_measure, and with
/// SAND_ERROR_ARGUMENT when volume is not > 0.
SandStatus sand_fit_radius_factor(const SandFitDesc *desc, double volume, SandPool *pool, double *factor_out,
                                  SandError *err);

/// Which of the places (xyz, m) are farther than `limit` (m) from every sphere: gaps_out gets 1 there and 0 elsewhere.
/// Fails as sand_fit_measure.
SandStatus sand_fit_gaps(const SandFitDesc *desc, const float *places, int place_count, double limit, SandPool *pool,
                         uint8_t *gaps_out, SandError *err);

#endif
