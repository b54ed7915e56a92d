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
	bool is_filling;          // spheres fill the volume, not the surface: nothing is uncovered, no spacing is wanted
	const SandCancel *cancel; // may be NULL
} SandFitDesc;

typedef struct SandFit
{
	int sphere_count;
	double spacing_min, spacing_mean, spacing_max; // m, distance from a centre to its nearest neighbour; 0 for one
	double evenness;                               // spacing_min / spacing_mean; 0 for one
	double uncovered_share;                        // of the mesh's area: places in no sphere grown by |offset|; 0 .. 1
	double hausdorff; // m, farthest place of the mesh from the nearest sphere's surface or inside, and farthest
	                  // a sphere reaches out of the mesh or falls short of it, whichever is larger
	double mesh_volume, sphere_volume; // m^3; of the union of the spheres. mesh_volume 0 when the mesh is open
	double volume_error;               // |sphere_volume / mesh_volume - 1|; 0 when the mesh is open
	double inertia_error_raw; // of equal masses in the centres against the mesh: largest of the six components'
	                          // differences over the largest moment
	double inertia_error;     // the same with the masses of sand_fit_masses
} SandFit;

/// Measures. Fails: SAND_ERROR_ARGUMENT (no spheres, a centre or radius that is not finite or a radius <= 0: names it),
/// SAND_ERROR_MEMORY, SAND_CANCELLED.
SandStatus sand_fit_measure(const SandSurface *surface, const SandFitDesc *desc, SandPool *pool, SandFit *fit_out,
                            SandError *err);

/// Masses of point-like spheres (kg, sum = mass) with the mesh's centre of mass and inertia: equal ones, corrected by a
/// quadratic polynomial in the position, the least such correction; a sphere's own inertia 2/5 m r^2 counts. Where the
/// exact answer would need a negative mass, or too few spheres leave it open, masses are the nearest possible and
/// false is returned. masses_out: sphere_count.
bool sand_fit_masses(const SandMass *wanted, double mass, const SandFitDesc *desc, double *masses_out);

/// The factor on all radii that makes the union of the spheres as large as `volume` (m^3), within 0.1 %. Fails as
/// sand_fit_measure, and with SAND_ERROR_ARGUMENT when volume is not > 0.
SandStatus sand_fit_radius_factor(const SandFitDesc *desc, double volume, SandPool *pool, double *factor_out,
                                  SandError *err);

#endif
