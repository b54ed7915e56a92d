// scene: the immutable, validated description of what is simulated. SI units only.
// Comes in: points from the sampler, materials, shapes. Goes out: SandScene, ready for sim.
#ifndef SAND_SCENE_H
#define SAND_SCENE_H

#include "collider.h"
#include "law.h"
#include "obstacle.h"

#define SAND_SHAPE_SPHERE_LIMIT 4096   // when mass is where the spheres are: common volumes are found pair by pair
#define SAND_BODY_SPHERE_LIMIT 1000000 // when the body is given
#define SAND_SPHERE_LIMIT 500000000
#define SAND_MATERIAL_LIMIT 64

#define SAND_BODY_NUMBERS 10

/// A grain shape: a rigid cluster of spheres. Offsets are from any origin; the scene moves them to the centre of mass.
typedef struct SandShapeDesc
{
	const float *offsets; // m, xyz per sphere; NULL = all zero
	const float *radii;   // m, > 0
	int sphere_count;     // 1 .. SAND_SHAPE_SPHERE_LIMIT, with a body to SAND_BODY_SPHERE_LIMIT
	const double *body;   // NULL = mass is where the spheres are. Else SAND_BODY_NUMBERS of what the spheres stand for,
	                    // a mesh for example, at unit density: volume (m^3), centre (m, as the offsets), inertia about
	                    // it (m^5: xx, yy, zz, xy, xz, yz)
} SandShapeDesc;

/// Numbers for one pair of materials that the materials' means do not give, for example sand on glass.
/// Negative = the mean of the two materials; a restitution of 0 too.
typedef struct SandMaterialPair
{
	int32_t a, b;
	float restitution, friction, rolling, cohesion;
} SandMaterialPair;

/// Extra acceleration inside an axis-parallel box.
typedef struct SandForceRegion
{
	float min[3], max[3];  // m
	float acceleration[3]; // m/s^2
} SandForceRegion;

/// A steady source of grains: one appears every 1 / rate seconds from begin to end, at the next of the places in turn,
/// turned at random. A place that is taken is passed over until the next turn; the grain is late, not lost.
typedef struct SandEmitter
{
	const float *positions; // xyz per place, m
	int64_t position_count; // >= 1
	float velocity[3];      // m/s
	double rate;            // grains per second, > 0
	double begin, end;      // s, 0 <= begin < end
	int32_t shape, material;
	float scale; // 0 = 1
} SandEmitter;

/// Grains whose centre comes into this axis-parallel box are taken out.
typedef struct SandOutflow
{
	float min[3], max[3]; // m
} SandOutflow;

/// A grain whose forces are told, and that may follow a track until it is let go: an object of the artist's.
typedef struct SandBody
{
	int32_t grain;          // index of a given grain
	const SandTrack *track; // NULL = free from the start. Else of its centre of mass and the axes of the description;
	                        // sample 0 is at the grain's position and orientation, which are then not used. Copied
	double release;         // s: from then on it moves freely, with the track's motion; <= 0 = never
} SandBody;

/// Zero is valid for every field that has a default; arrays may be NULL where said. Copied by sand_scene_create.
typedef struct SandSceneDesc
{
	double gravity[3]; // m/s^2; zero = weightless

	const SandMaterial *materials; // NULL with material_count 0 = one of all defaults
	int material_count;            // at most SAND_MATERIAL_LIMIT
	const SandMaterialPair *material_pairs;
	int material_pair_count;

	float max_overlap;       // share of the smallest radius two grains may overlap at max_speed, 0 < s <= 0.5; 0 = 0.25
	float max_speed;         // m/s, the fastest impact expected; 0 = free fall through the height of the domain
	float restitution_speed; // m/s, impact speed at which restitution is as given; 0 = 1

	const SandShapeDesc *shapes;
	int shape_count;

	const float *grain_positions;    // xyz per grain, m, centre of mass
	const float *grain_orientations; // w x y z per grain, unit within 1e-3; NULL = random from seed
	const float *grain_velocities;   // m/s; NULL = at rest
	const float *grain_spins;        // rad/s, world axes; NULL = none
	const int32_t *grain_shapes;     // index into shapes; NULL = all 0
	const int32_t *grain_materials;  // index into materials; NULL = all 0
	const float *grain_scales;       // size against the shape's, > 0; NULL = all 1
	int64_t grain_count;             // >= 1

	const float *wall_positions; // xyz per fixed sphere of the colliders; NULL when wall_count is 0
	float wall_radius;           // m, > 0 when wall_count > 0
	int64_t wall_count;
	int32_t wall_material;

	const SandObstacle *obstacles;
	int obstacle_count;
	const SandColliderDesc *colliders;
	int collider_count;
	const SandBody *bodies; // at most one per grain
	int body_count;

	float drag;    // 1/s, >= 0: acceleration towards the wind per speed difference
	float wind[3]; // m/s
	const SandForceRegion *regions;
	int region_count;

	const SandEmitter *emitters; // their grains follow the given ones, emitter by emitter
	int emitter_count;
	const SandOutflow *outflows;
	int outflow_count;

	float sleep_speed;   // m/s: a grain slower than this for sleep_seconds falls asleep; 0 = never
	float sleep_seconds; // s; 0 = 0.1
	float wake_speed;    // m/s: a sleeping grain touched by a faster one wakes; 0 = 4 times sleep_speed

	uint64_t seed; // random orientations

	const double *measures; // SAND_SCENE_MEASURES numbers that sand_scene_measures gave of an earlier scene, which this
	                        // one goes on from with more motion; NULL = measured
} SandSceneDesc;

/// Shape with its mass properties. Where spheres overlap, their common volume counts once.
typedef struct SandShape
{
	const float *offsets; // xyz per sphere, from the centre of mass, in principal axes
	const float *radii;   // m
	int sphere_count;
	float bound;       // m, radius of the bounding sphere around the centre of mass
	double volume;     // m^3
	double inertia[3]; // principal moments per kg, m^2
	double share;      // of the mass that a sphere stands for in a contact: 1 over the spheres that a floor can touch
	                   // at once, which together must not be stiffer than the step allows
	double axes[4];    // w x y z: turns principal axes to the axes of the description
} SandShape;

typedef struct SandScene
{
	double gravity[3];
	const SandMaterial *materials; // defaults filled in
	int material_count;
	const SandLaw *laws; // one per unordered pair of materials
	int law_count;
	const int32_t *law_of; // material_count squared
	double max_overlap, max_speed;
	double contact_time; // s, shortest impact at max_speed
	bool has_history;    // some law keeps tangential springs
	float bridge;        // largest reach of a capillary bridge beyond touching, share of the effective radius
	const SandShape *shapes;
	int shape_count;
	const float *grain_positions, *grain_orientations, *grain_velocities, *grain_spins, *grain_scales;
	const int32_t *grain_shapes, *grain_materials;
	int grain_count;      // given and emitted
	int64_t sphere_count; // of all grains
	const float *wall_positions;
	float wall_radius;
	int wall_count;
	int32_t wall_material;
	const SandObstacle *obstacles;
	int obstacle_count;
	SandCollider *const *colliders;
	int collider_count;
	const int32_t *collider_base; // number of the first triangle of each, counted over all; collider_count + 1
	const SandBody *bodies;       // tracks owned by the scene
	int body_count;
	double drag, wind[3];
	const SandForceRegion *regions;
	int region_count;
	const double *grain_births;    // s, when the grain is due; 0 for the given ones
	const int32_t *grain_emitters; // -1 for the given ones
	const SandEmitter *emitters;   // positions owned by the scene
	int emitter_count;
	const SandOutflow *outflows;
	int outflow_count;
	double sleep_speed, sleep_seconds, wake_speed;
	double domain_min[3], domain_max[3]; // m; a grain that leaves is counted as lost
	float radius_min, radius_max;        // over grain spheres and walls
	uint64_t hash;                       // of all but motion: the cache's settings hash
} SandScene;

/// Validates and copies. Fails with SAND_ERROR_ARGUMENT naming the array, the index and the value, or
/// SAND_ERROR_MEMORY.
SandStatus sand_scene_create(const SandSceneDesc *desc, SandScene **scene_out, SandError *err);
void sand_scene_destroy(SandScene *scene); // NULL is fine

/// Hash of how colliders and bodies are moved up to a time, s; 0 when nothing is. Steps look ahead by
/// SAND_COLLIDER_STEPS of them, so it is asked for a time that much later than that of a state.
uint64_t sand_scene_motion_hash(const SandScene *scene, double until);

/// What was measured over all motion, from the first sample to the last, and decides on the bits of every step: least
/// and greatest x y z of the domain (m), max_speed (m/s).
#define SAND_SCENE_MEASURES 7
void sand_scene_measures(const SandScene *scene, double measures_out[SAND_SCENE_MEASURES]);

/// Offsets of a touching regular tetrahedron of spheres (Longmore 2009, section 3.1): 4 x xyz, for sphere radius r.
void sand_shape_tetrahedron(float radius, float offsets_out[12]);

/// Offsets of eight touching spheres at the corners of a cube: 8 x xyz.
void sand_shape_cube(float radius, float offsets_out[24]);

/// Offsets of sphere_count spheres in a row along x, one radius apart: sphere_count x xyz.
void sand_shape_rod(float radius, int sphere_count, float *offsets_out);

typedef enum SandSizes
{
	SAND_SIZES_UNIFORM,   // even between low and high
	SAND_SIZES_LOGNORMAL, // median 1, spread = standard deviation of the logarithm, cut at low and high
} SandSizes;

/// Random sizes for grain_scales, one per grain, deterministic for a seed. 0 < low <= high.
SandStatus sand_scene_sizes(SandSizes kind, double low, double high, double spread, uint64_t seed, int64_t count,
                            float *scales_out, SandError *err);

#endif
