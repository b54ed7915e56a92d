// scene: the immutable, validated description of what is simulated. SI units only.
// Comes in: points from the sampler, materials, shapes. Goes out: SandScene, ready for sim.
#ifndef SAND_SCENE_H
#define SAND_SCENE_H

#include "base.h"

#define SAND_SHAPE_SPHERE_LIMIT 4096
#define SAND_SPHERE_LIMIT 500000000

/// A grain shape: a rigid cluster of spheres. Offsets are from any origin; the scene moves them to the centre of mass.
typedef struct SandShapeDesc
{
	const float *offsets; // m, xyz per sphere; NULL = all zero
	const float *radii;   // m, > 0
	int sphere_count;     // 1 .. SAND_SHAPE_SPHERE_LIMIT
} SandShapeDesc;

/// A closed-form half space: grains stay where dot(x - point, normal) > 0.
typedef struct SandPlane
{
	float point[3];
	float normal[3]; // normalised by the scene; must not be zero
} SandPlane;

/// Zero is valid for every field that has a default; arrays may be NULL where said. Copied by sand_scene_create.
typedef struct SandSceneDesc
{
	double gravity[3]; // m/s^2; zero = weightless

	float density;     // kg/m^3 of the sphere material; 0 = 2600 (quartz sand)
	float restitution; // 0 < e <= 1, of a grain-grain impact; 0 = 0.5
	float friction;    // Coulomb coefficient >= 0; negative = 0.5; 0 is frictionless
	float max_overlap; // share of the smallest radius two grains may overlap at max_speed, 0 < s <= 0.5; 0 = 0.25
	float max_speed;   // m/s, the fastest impact expected; 0 = free fall through the height of the domain

	const SandShapeDesc *shapes;
	int shape_count;

	const float *grain_positions;    // xyz per grain, m, centre of mass
	const float *grain_orientations; // w x y z per grain, unit within 1e-3; NULL = random from seed
	const float *grain_velocities;   // m/s; NULL = at rest
	const float *grain_spins;        // rad/s, world axes; NULL = none
	const int32_t *grain_shapes;     // index into shapes; NULL = all 0
	int64_t grain_count;             // >= 1

	const float *wall_positions; // xyz per fixed sphere of the colliders; NULL when wall_count is 0
	float wall_radius;           // m, > 0 when wall_count > 0
	int64_t wall_count;

	const SandPlane *planes;
	int plane_count;

	uint64_t seed; // random orientations
} SandSceneDesc;

/// Shape with its mass properties. Spheres that overlap count their common volume once per sphere.
typedef struct SandShape
{
	const float *offsets; // xyz per sphere, from the centre of mass, in principal axes
	const float *radii;   // m
	int sphere_count;
	float bound;       // m, radius of the bounding sphere around the centre of mass
	double mass;       // kg
	double inertia[3]; // principal moments, kg m^2
	double axes[4];    // w x y z: turns principal axes to the axes of the description
} SandShape;

typedef struct SandScene
{
	double gravity[3];
	float density, restitution, friction;
	double max_overlap, max_speed;
	double contact_time; // s, duration of a head-on grain-grain impact, from max_overlap and max_speed
	const SandShape *shapes;
	int shape_count;
	const float *grain_positions, *grain_orientations, *grain_velocities, *grain_spins;
	const int32_t *grain_shapes;
	int grain_count;
	int64_t sphere_count; // of all grains
	const float *wall_positions;
	float wall_radius;
	int wall_count;
	const SandPlane *planes;
	int plane_count;
	double domain_min[3], domain_max[3]; // m; a grain that leaves is counted as lost
	float radius_min, radius_max;        // over grain spheres and walls
	uint64_t hash;                       // of everything above: the cache's settings hash
} SandScene;

/// Validates and copies. Fails with SAND_ERROR_ARGUMENT naming the array, the index and the value, or SAND_ERROR_MEMORY.
SandStatus sand_scene_create(const SandSceneDesc *desc, SandScene **scene_out, SandError *err);
void sand_scene_destroy(SandScene *scene); // NULL is fine

/// Offsets of a touching regular tetrahedron of spheres (Longmore 2009, section 3.1): 4 x xyz, for sphere radius r.
void sand_shape_tetrahedron(float radius, float offsets_out[12]);

#endif
