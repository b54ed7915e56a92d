// kernel: the inner loops of the CPU engine: moving the grains of a chunk and summing its contact forces.
// Comes in: grains, spheres and pairs in sorted order. Goes out: moved grains, placed spheres, forces.
// kernel.c is compiled once per instruction set; sand_kernel_best picks at run time. Every build of it gives the same
// bits: only IEEE add, subtract, multiply, divide and square root, in the same order, no contraction.
#ifndef SAND_KERNEL_H
#define SAND_KERNEL_H

#include "law.h"
#include "obstacle.h"
#include "scene.h"

// How both engines make lists; their bits agree only while these do.
#define SAND_SLOW_MARGIN 0.15  // of the smallest radius: how far a slow sphere may move before a new list
#define SAND_COLLIDER_STEPS 25 // a list lasts at most as many when a collider moves
#define SAND_BIRTH_STEPS 20    // a birth waits at most as many for a list that is made anyway
#define SAND_SORT_LISTS 16     // lists between two sorts of the grains within one call

// 64 bytes, one cache line: all that a contact needs to know of a sphere. Lengths in fixed-point units.
typedef struct SandSphere
{
	int32_t x[3];        // position
	float radius;        // units
	float velocity[3];   // m/s, of the sphere's centre
	float radius_again;  // units: so that one subtraction and one addition give both radii of a pair
	float spin[3];       // rad/s times metres per unit
	float inverse_mass;  // 1/kg, of the grain's share in a contact (SandShape.share); 0 for a wall and a driven grain
	int32_t x_listed[3]; // position when the neighbour list was made
	int32_t grain;       // sorted index, -1 for a wall
} SandSphere;
_Static_assert(sizeof(SandSphere) == 64, "a sphere is one cache line");

typedef enum SandGrainFlag
{
	SAND_GRAIN_LOST = 1,    // left the domain: stays where it left
	SAND_GRAIN_ASLEEP = 2,  // at rest: not moved, not summed, but still there to be touched
	SAND_GRAIN_WAKING = 4,  // touched by something fast: awake from the next list on
	SAND_GRAIN_UNBORN = 8,  // waits for its emitter
	SAND_GRAIN_GONE = 16,   // taken by an outflow
	SAND_GRAIN_FAST = 32,   // listed with the wide margin
	SAND_GRAIN_DRIVEN = 64, // follows its track, whatever touches it
	SAND_GRAIN_BODY = 128,  // the forces on it are told
	SAND_GRAIN_ABSENT = SAND_GRAIN_LOST | SAND_GRAIN_UNBORN | SAND_GRAIN_GONE, // touches nothing
	SAND_GRAIN_STILL = SAND_GRAIN_ABSENT | SAND_GRAIN_ASLEEP,                  // does not move
} SandGrainFlag;

// What every move reads and writes. Four numbers a row, so that four grains turn into columns without a gap.
typedef struct SandGrain
{
	double position[3];     // m
	double inverse_mass;    // 1/kg
	double orientation[4];  // w x y z, principal axes to world
	double velocity[3];     // m/s
	double inverse_inertia; // 1/(kg m^2); 0 when the principal moments differ
	double momentum[3];     // angular, kg m^2/s, world axes: constant in free flight whatever the shape
	int32_t flags;          // SandGrainFlag
	int32_t first_sphere;
} SandGrain;
_Static_assert(sizeof(SandGrain) == 128, "a grain is two cache lines");

// What the move of a lone sphere can do without.
typedef struct SandTraits
{
	int32_t id;
	int32_t shape;
	int32_t material;
	int32_t quiet_steps; // steps in a row below the sleeping speed; of a sleeper: 1 + its supports, 0 = not yet known
	float scale;         // size against the shape's
	float reach_speed;   // m/s, fastest point of the grain when it was last placed for a list
	int32_t body;        // number among the scene's bodies, -1 for none
	int32_t is_woken;    // not 0: awake from the next list on
} SandTraits;

// Contact force on a grain, for the time schemes that need it apart.
typedef struct SandLoad
{
	double force[4];  // N
	double torque[4]; // N m, about the centre of mass
} SandLoad;

// Sum of contact forces on a sphere: N, and the torque about its centre in N units.
typedef struct SandSum
{
	float force[4];
	float torque[4];
} SandSum;

// Spheres near some place, as rows of numbers.
typedef struct SandNear
{
	int32_t *x[3];
	int32_t *sphere;
	int32_t count;
} SandNear;

// Two spheres that may touch, in sorted order a < b; walls are last, so always b.
typedef struct SandPair
{
	int32_t a, b;
} SandPair;

// Tangential spring of a pair, m, with a fourth word that is zero.
typedef struct SandHistory
{
	float stretch[4];
} SandHistory;

// What a chunk's task works on. Sphere and grain indices are global.
typedef struct SandWork
{
	double unit;       // m per fixed-point step
	double origin[3];  // m, of fixed-point zero
	double gravity[3]; // m/s^2
	double step;       // s, of the next move
	double last_step;  // s, of the move before the forces: springs stretch by it, and half of its kick is owed
	double turn;       // s, that lone spheres turn by in the next move, or when finished: 0 in most
	double domain_min[3], domain_max[3];
	double speed_limit;             // m/s
	float margin_slow, margin_fast; // units: how far a sphere may move before its list is stale
	const SandShape *shapes;
	SandGrain *grains;
	SandTraits *traits; // in the same order
	SandLoad *loads;    // one per grain; NULL when nobody gathers
	SandSphere *spheres;
	const SandLaw *laws; // one per unordered pair of materials
	int law_count;
	const int32_t *law_of; // material_count squared
	int material_count;
	int wall_material;
	const SandObstacle *obstacles;
	int obstacle_count;
	SandCollider *const *colliders;
	SandColliderState *const *collider_states; // at the time of the places
	const double *collider_slack;              // m, per collider: how far it may go before the next list
	int collider_count;
	const SandGrain *targets; // per body: where a driven one is after the next move, and how it moves then
	double *impulses; // per body, six numbers: N s, N m s, of contacts; added to by the chunk that has the grain
	double drag;      // 1/s: acceleration towards the wind
	double wind[3];   // m/s
	const SandForceRegion *regions;
	int region_count;
	const SandOutflow *outflows;
	int outflow_count;
	int32_t *supports;       // per grain, of sleepers: touching pairs of spheres at the last list. Only with sleep
	double sleep_speed;      // m/s; 0 = never
	int sleep_steps;         // quiet steps before sleep
	float wake_speed_square; // (m/s)^2
} SandWork;

// Pairs of one law, inside the chunk or across its border.
typedef struct SandSection
{
	int32_t law;
	int32_t is_outer;
	int32_t first, count;
} SandSection;

// Sums that chunk `source` has made for spheres of this one: its ghosts [first, first + count).
typedef struct SandInflow
{
	int32_t source;
	int32_t first, count;
} SandInflow;

// Triangles of a collider near a sphere, in the chunk's arrays.
typedef struct SandGroup
{
	int32_t sphere, collider, law;
	int32_t first, count;
} SandGroup;

typedef struct SandChunk
{
	int32_t first_grain, grain_count;
	int32_t first_sphere, sphere_count;
	int32_t awake_count;  // grains that move
	SandSum *sums;        // of own spheres; whose memory it is, the simulator decides
	SandSum *ghost_sums;  // of ghosts, then one that nobody reads, for walls
	SandPair *pairs;      // a is ours, at least one of the two grains is awake; inner ones first
	SandHistory *history; // one per pair; NULL without history
	SandSection *sections;
	int32_t section_count;
	int32_t pair_count, pair_capacity;
	int32_t inner_count;
	int32_t *outer_slots; // per outer pair: place of b in ghost_sums
	int32_t *ghosts;      // spheres of later chunks that our pairs touch, ascending
	int32_t outer_capacity, ghost_count, ghost_capacity, ghost_sum_capacity;
	SandInflow *inflows; // in order of source
	int32_t inflow_count, inflow_capacity;
	SandPair *obstacle_pairs; // a = sphere, b = SAND_SLOT_COUNT * obstacle + slot
	SandHistory *obstacle_history;
	int32_t *obstacle_laws; // one per pair: to ask the grain for its material would wait for main memory
	int32_t obstacle_pair_count, obstacle_pair_capacity, obstacle_law_capacity;
	SandGroup *groups;       // in order of sphere, then collider
	int32_t *near_triangles; // of the groups
	float *near_sides;       // one per triangle: side of it that the sphere is on, 0 = not known yet
	SandHistory *near_history;
	int32_t group_count, group_capacity, near_count, near_capacity, side_capacity;
	double *collider_sums; // six per collider: N, N m about its origin, that the chunk's grains put on it
	SandPair *watch_pairs; // a = sleeping sphere, b = awake one
	int32_t watch_count, watch_capacity;
	int64_t contact_count; // touching pairs that are this chunk's
	double fastest_square; // (m/s)^2, of the last move
	int32_t needs_list;
	int32_t bad_grain; // id of the first non-finite or too fast grain, or INT32_MAX
	double bad_speed;
	int32_t is_short;                   // memory for pairs ran out
	int32_t is_moved;                   // in the sweep under way
	double force_seconds, move_seconds; // of tasks, since the last step
} SandChunk;

/// One contact as it acts now. Grains by id; other = -1 for a wall sphere, -2 - obstacle for a closed-form
/// surface, -2 - obstacle_count - collider for a mesh.
typedef struct SandContact
{
	int32_t grain, other;
	float overlap;        // m; negative in the gap of a bridge
	float point[3];       // m
	float normal[3];      // unit, towards grain
	float normal_force;   // N, positive pushes
	float shear_force[3]; // N on grain
} SandContact;

typedef struct SandKernel
{
	const char *name;
	/// Contact forces of the chunk's pairs. Reads spheres of other chunks, writes only its own sums and history, and
	/// atomically the flags of sleeping grains.
	void (*forces)(const SandWork *work, SandChunk *chunk);
	/// Sums to forces on grains; the owed half kick and sleep, then half kick, move, turn, place spheres; finds bad,
	/// lost and far-moved grains. chunks = all of them, whose ghosts are read; writes only chunks[index].
	void (*move)(const SandWork *work, SandChunk *chunks, int index);
	/// The first part of move, to the owed half kick and sleep: velocities at the time of the positions.
	void (*finish)(const SandWork *work, SandChunk *chunks, int index);
	/// Only the sums, into the loads of the grains.
	void (*gather)(const SandWork *work, SandChunk *chunks, int index);
	/// Which of the near spheres come after sphere `after` and are nearer to x than sqrt(limit): their numbers, in
	/// order. Reads up to seven past the end, whose sphere must be -1.
	int (*near)(const SandNear *near, const int32_t x[3], int32_t after, float limit, int32_t *numbers_out);
	/// Contacts of the chunk's pairs, with their forces now, springs unchanged. Writes at most capacity, returns how
	/// many there are. Slow: one at a time.
	int64_t (*contacts)(const SandWork *work, const SandChunk *chunk, SandContact *out, int64_t capacity);
	/// Places the spheres of every grain of the chunk without moving it. is_listing: and marks them as listed; else
	/// asks for a new list when one is far from where it was listed.
	void (*place)(const SandWork *work, SandChunk *chunk, bool is_listing);
} SandKernel;

/// The fastest kernel this processor runs. name_wanted forces one ("baseline", "avx2") for tests; NULL = best.
/// NULL when the wanted one does not run here.
const SandKernel *sand_kernel_find(const char *name_wanted);

#endif
