// layout: what C and GLSL read alike: constants, and the structs that lie in buffers.
// C includes this file; every shader has it in front, with SAND_GLSL defined.
//
// A struct holds double, float, int32_t and uint32_t and arrays of them only, no vectors, doubles first: then std430 and
// C place every member at the same byte, without padding. Close each with the offset of its last member and its size:
//
//   SAND_STRUCT(SandExample)
//       float radius;   // m
//       uint32_t count;
//   SAND_STRUCT_END(SandExample)
//   SAND_OFFSET(SandExample, count, 4)
//   SAND_SIZE(SandExample, 8)
#ifndef SAND_LAYOUT_H
#define SAND_LAYOUT_H

#ifdef SAND_GLSL
#define uint32_t uint
#define int32_t int
#define SAND_STRUCT(name) struct name {
#define SAND_STRUCT_END(name) };
#define SAND_OFFSET(name, member, bytes)
#define SAND_SIZE(name, bytes)
#else
#include <stddef.h>
#include <stdint.h>
#define SAND_STRUCT(name) typedef struct name {
#define SAND_STRUCT_END(name) } name;
#define SAND_OFFSET(name, member, bytes)                                                                               \
	_Static_assert(offsetof(name, member) == (bytes), #name "." #member " is not where the shaders read it");
#define SAND_SIZE(name, bytes) _Static_assert(sizeof(name) == (bytes), #name " has another size in the shaders");
#endif

// Groups along one axis that every device takes (the least that GL 4.3 allows). More are folded into rows.
#define SAND_GROUP_LIMIT 65535

// ---- the GL engine -------------------------------------------------------------------------------------------------

// Storage bindings. A pass uses at most sixteen of them.
#define SAND_BIND_CONTROL 0
#define SAND_BIND_GRAINS 1
#define SAND_BIND_TRAITS 2
#define SAND_BIND_SPHERES 3
#define SAND_BIND_SUMS 4
#define SAND_BIND_PAIRS 5
#define SAND_BIND_STRETCHES 6
#define SAND_BIND_FORCES 7
#define SAND_BIND_FIRSTS 8
#define SAND_BIND_BACK_FIRSTS 9
#define SAND_BIND_BACKS 10
#define SAND_BIND_SHAPES 11
#define SAND_BIND_OFFSETS 12
#define SAND_BIND_LAWS 13
#define SAND_BIND_LAW_OF 14
#define SAND_BIND_PARTIALS 15
#define SAND_BIND_FIELDS 16
#define SAND_BIND_LEVELS 17
#define SAND_BIND_STARTS 18
#define SAND_BIND_ENTRIES 19
#define SAND_BIND_BUCKETS 20
#define SAND_BIND_SCAN 21
#define SAND_BIND_SCAN_SUMS 22
#define SAND_BIND_SPRING_FIRSTS 23
#define SAND_BIND_SPRINGS 24
#define SAND_BIND_BASES 25
#define SAND_BIND_SUPPORTS 26
#define SAND_BIND_WATCHES 27
#define SAND_BIND_TARGETS 28
#define SAND_BIND_IMPULSES 29
#define SAND_BIND_GRAINS_SPARE 30
#define SAND_BIND_TRAITS_SPARE 31
#define SAND_BIND_KEYS 32        // sorting: key, value
#define SAND_BIND_KEYS_SPARE 33  // the same, behind a pass
#define SAND_BIND_PLACES 34      // per grain id: where in memory; then the ids that wait to be born
#define SAND_BIND_BIRTHS 35      // s, per grain id
#define SAND_BIND_RIVALS 36      // grains near places of birth
#define SAND_BIND_OBSTACLES 37   // SandObstacle
#define SAND_BIND_TOUCH_FIRSTS 38  // per sphere, + 1: first of its obstacle pairs
#define SAND_BIND_TOUCHES 39       // SandGlTouch
#define SAND_BIND_NEAR_FIRSTS 40   // per sphere, + 1: first of its triangles
#define SAND_BIND_NEARS 41         // SandGlNear
#define SAND_BIND_MESHES 42        // SandGlCollider
#define SAND_BIND_MESH_WORDS 43    // triangles, vertices' triangles, order
#define SAND_BIND_MESH_FLOATS 44   // vertices of all frames, boxes
#define SAND_BIND_POSES 45         // SandGlPose per collider
#define SAND_BIND_TRACKS 46        // doubles of the tracks of colliders, then of bodies
#define SAND_BIND_NEAR_LOADS 47    // six doubles per triangle: N, N m about the collider's origin
#define SAND_BIND_LOAD_SUMS 48     // six doubles per chunk and collider, then per collider: N s, N m s
#define SAND_BIND_NEW_FIRSTS 51
#define SAND_BIND_NEW_SPRINGS 49
#define SAND_BIND_CURSORS 50       // cleared counters
#define SAND_BIND_BODIES 52        // SandGlBody
#define SAND_BIND_ENTRY_FIRSTS 53  // per sphere, + 1: first of its entries
#define SAND_BIND_ADDENDS 54       // entries: which force records a sphere adds up, in order
#define SAND_BIND_SPEEDS 55        // (m/s)^2 per grain, then per block of them
#define SAND_BIND_NEAR_SPHERES 56  // spheres that have triangles near
#define SAND_BIND_BIG_SPHERES 57   // spheres of big grains
#define SAND_BIND_GROUPS 58        // three numbers of groups per pass of a step
#define SAND_BIND_COUNT 59

// An entry is a force record's number times four, and:
#define SAND_ENTRY_BACK 1u  // the sphere is the higher one of the pair: minus the force
#define SAND_ENTRY_APART 2u // first of those that another chunk has summed apart

// Passes of a step that the device itself holds back once it halts, in SAND_BIND_GROUPS.
#define SAND_GROUPS_BODIES 0
#define SAND_GROUPS_POSES 1
#define SAND_GROUPS_PAIRS 2
#define SAND_GROUPS_TOUCHES 3
#define SAND_GROUPS_COLLIDERS 4
#define SAND_GROUPS_LOADS 5
#define SAND_GROUPS_LOAD_SUMS 6
#define SAND_GROUPS_SUMS 7
#define SAND_GROUPS_WATCH 8
#define SAND_GROUPS_MOVE 9
#define SAND_GROUPS_PLACE 10
#define SAND_GROUPS_FASTEST 11
#define SAND_GROUPS_COUNT 12

// Spheres of a grain that are placed with it; those of a big one have a pass of their own.
#define SAND_BIG_GRAIN 8
// Lone spheres, which look the same whichever way up, are turned once in so many steps.
#define SAND_TURN_STEPS 8
// Speeds that one thread looks through.
#define SAND_SPEED_BLOCK 64

#define SAND_NO_GRAIN 0x7fffffff
#define SAND_NO_BUCKET 0xffffffffu
#define SAND_LEVELS 32          // classes of size, slow and fast
#define SAND_MARGIN_CHOICES 7

// Why the engine's passes do nothing more until the host has been there.
#define SAND_HALT_NONE 0
#define SAND_HALT_LIST 1    // a new neighbour list is due
#define SAND_HALT_RELEASE 2 // a driven body is let go
#define SAND_HALT_DONE 3    // all the time asked for has passed
#define SAND_HALT_BAD 4     // a grain is too fast or nowhere

// As csrc/kernel.h has them.
#ifdef SAND_GLSL
#define SAND_GRAIN_LOST 1
#define SAND_GRAIN_ASLEEP 2
#define SAND_GRAIN_WAKING 4
#define SAND_GRAIN_UNBORN 8
#define SAND_GRAIN_GONE 16
#define SAND_GRAIN_FAST 32
#define SAND_GRAIN_DRIVEN 64
#define SAND_GRAIN_BODY 128
#define SAND_GRAIN_ABSENT 25
#define SAND_GRAIN_STILL 27
#define SAND_SLOT_COUNT 8 // as csrc/obstacle.h
struct SandSphere
{
	int x[3];
	float radius;
	float velocity[3];
	float radius_again;
	float spin[3];
	float inverse_mass;
	int x_listed[3];
	int grain;
};
struct SandGrain
{
	double position[3];
	double inverse_mass;
	double orientation[4];
	double velocity[3];
	double inverse_inertia;
	double momentum[3];
	int flags;
	int first_sphere;
};
struct SandTraits
{
	int id;
	int shape;
	int material;
	int quiet_steps;
	float scale;
	float reach_speed;
	int body;
	int is_woken;
};
struct SandSum
{
	float force[4];
	float torque[4];
};
struct SandLaw
{
	int normal;
	int shear;
	float spring;
	float damping;
	float shear_damping;
	float shear_spring;
	float friction;
	float rolling;
	float rolling_damping;
	float cohesion;
	float cohesion_range;
	int pad;
	double contact_time;
};
struct SandObstacle
{
	int kind;
	int is_inside;
	int material;
	float point[3];
	float axis[3];
	float size[3];
	int pad;
	float roughness;
	double unit_axis[3];
};
#endif

SAND_STRUCT(SandGlPair)
	int32_t a, b; // spheres, a < b
	int32_t law;
	int32_t chunk; // of a, twice, + 1 when b is in another one
SAND_STRUCT_END(SandGlPair)
SAND_OFFSET(SandGlPair, chunk, 12)
SAND_SIZE(SandGlPair, 16)

// The force records are rows of four floats, two of each contact, or three where grains resist rolling:
//   force on a (N), lever of a (units); moment (N units per unit of lever), lever of b; couple (N units), nothing.
// Zeros where nothing touches, and only there the lever of b is zero. A pair's, then a touch's, then a triangle's.
#define SAND_ROW_BYTES 16

SAND_STRUCT(SandGlShape)
	double inertia[3]; // m^2
	double share;
	float bound;       // m
	int32_t sphere_count;
	int32_t first_offset;
	int32_t pad;
SAND_STRUCT_END(SandGlShape)
SAND_OFFSET(SandGlShape, first_offset, 40)
SAND_SIZE(SandGlShape, 48)

// A class of spheres, of which some are slow and some fast. Its buckets are mask + 1 from first_bucket on.
SAND_STRUCT(SandGlLevel)
	float radius_max; // units
	float margin;     // units, with half a bridge
	uint32_t cell_scale;
	uint32_t mask;
	uint32_t stride_y, stride_z;
	uint32_t first_bucket;
	int32_t entry_count;
SAND_STRUCT_END(SandGlLevel)
SAND_OFFSET(SandGlLevel, entry_count, 28)
SAND_SIZE(SandGlLevel, 32)

SAND_STRUCT(SandGlSpring)
	int32_t other; // as SandSpring
	float stretch[3];
	float side;
	int32_t low;
SAND_STRUCT_END(SandGlSpring)
SAND_OFFSET(SandGlSpring, low, 20)
SAND_SIZE(SandGlSpring, 24)

SAND_STRUCT(SandGlTouch)
	int32_t code; // SAND_SLOT_COUNT * obstacle + slot
	int32_t law;
	int32_t sphere;
	int32_t pad;
	float stretch[3];
	int32_t pad_again;
SAND_STRUCT_END(SandGlTouch)
SAND_OFFSET(SandGlTouch, stretch, 16)
SAND_SIZE(SandGlTouch, 32)

SAND_STRUCT(SandGlNear)
	int32_t triangle;
	int32_t collider;
	int32_t number; // SAND_SLOT_COUNT * obstacle_count + that of the triangle over all colliders
	int32_t law;
	float side;
	float stretch[3];
SAND_STRUCT_END(SandGlNear)
SAND_OFFSET(SandGlNear, stretch, 20)
SAND_SIZE(SandGlNear, 32)

// The table of a track: begin, interval (s), samples; then per sample 0 position, 3 orientation, 7 velocity to the next,
// 10 spin, 13 its length, 14 the fastest speed (m/s). Of the frames of a mesh: the same head, a speed per interval.
#define SAND_TRACK_HEAD 4
#define SAND_TRACK_ROW 16

// A mesh that grains bounce off: where its numbers lie in the buffers of all.
SAND_STRUCT(SandGlCollider)
	double origin[3];      // m, of the torques told of it, when it has no track
	double slack;          // m, that it may go before the next list
	double frame_interval; // s
	int32_t track;         // first number of its track, -1 = none
	int32_t frames;        // first number of its frames' table, -1 = keeps its shape
	int32_t triangles;     // first word: three vertices each
	int32_t around_first;  // first word: per vertex, + 1
	int32_t around;        // first word: triangles around vertices
	int32_t order;         // first word: triangles as the tree has them
	int32_t vertices;      // first float: x y z of every vertex of every frame
	int32_t nodes;         // first float: boxes of four children each
	int32_t vertex_count, triangle_count;
	int32_t number;        // of its first triangle, over all colliders
	int32_t material;
	int32_t is_moving;     // ever
	int32_t level_count;
	int32_t level_first[16]; // first node of each level, from the triangles' up
SAND_STRUCT_END(SandGlCollider)
SAND_OFFSET(SandGlCollider, level_first, 96)
SAND_SIZE(SandGlCollider, 160)

// Where a collider is.
SAND_STRUCT(SandGlPose)
	double position[3];
	double orientation[4]; // w x y z
	double velocity[3], spin[3];
	double share;      // of the way from frame here to frame next
	int32_t here, next; // first floats of the frames' vertices
	int32_t is_moving;  // between frames
	int32_t pad;
SAND_STRUCT_END(SandGlPose)
SAND_OFFSET(SandGlPose, is_moving, 120)
SAND_SIZE(SandGlPose, 128)

// A body that may follow a track until it is let go.
SAND_STRUCT(SandGlBody)
	double axes[4]; // w x y z: turns principal axes to those of the description
	double release; // s; <= 0 = never
	int32_t grain;  // id
	int32_t track;  // first number of its track; only of a driven one
SAND_STRUCT_END(SandGlBody)
SAND_OFFSET(SandGlBody, track, 44)
SAND_SIZE(SandGlBody, 48)

// All that the passes of a step have to know, and what they tell.
SAND_STRUCT(SandControl)
	double zero; // that no compiler sees
	double unit, inverse_unit; // m per fixed-point step
	double origin[3];          // m
	double gravity[3];         // m/s^2
	double domain_min[3], domain_max[3];
	double speed_limit;        // m/s
	double drag;               // 1/s
	double wind[3];            // m/s
	double sleep_speed;        // m/s; 0 = never
	double sleep_seconds;
	double step_limit;         // s
	double max_speed;          // m/s
	double radius_min;         // m
	double field_step;         // s, longest step in the force field
	double seconds, done;      // s, asked for and passed
	double begin, time;        // s
	double list_time;          // s, of the list that is due
	double step, last_step;    // s
	double turn, turn_seconds; // s
	double colliders_until;    // s
	double next_birth;         // s
	double birth_slack;        // s, that a birth waits for a list
	double fastest_square;     // (m/s)^2
	double fast_speed;         // m/s, of the list
	double birth_room;         // m
	double sort_cell;          // units, about the width of a cell of the grains' order
	double thresholds[SAND_MARGIN_CHOICES]; // m/s, above which a grain may count as fast
	double birth_low[3], birth_high[3]; // m, of the places of birth
	float margin_slow, margin_fast;     // units
	float wake_speed_square;   // (m/s)^2
	float bridge;              // units
	float unit_float, per_unit;
	int32_t grain_count, sphere_count, wall_count;
	int32_t law_count, material_count, wall_material;
	int32_t chunk_spheres;
	int32_t region_count, outflow_count, obstacle_count, collider_count, body_count;
	int32_t level_count, size_count; // classes; of them sizes
	int32_t waiting_first, waiting_end, waiting_due; // of the ids that wait to be born
	int32_t rival_count;
	int32_t halt;
	int32_t is_stepped; // a move has been made that is not yet counted
	int32_t is_chosen;  // the step is chosen already
	int32_t is_last;    // it ends the time asked for
	int32_t is_closing;
	int32_t needs_list;
	int32_t bad_grain;
	int32_t contact_count;
	int32_t step_count; // of this advance
	int32_t turn_steps, sleep_steps;
	int32_t partial_count;
	int32_t speed_first, speed_count; // which speeds the next step looks at
	int32_t pair_count, watch_count;
	int32_t touch_count, near_count, near_sphere_count, big_sphere_count;
	int32_t low[3], high[3];               // units, of the present grains
	int32_t faster[SAND_MARGIN_CHOICES];   // grains above each threshold
	int32_t pad;
SAND_STRUCT_END(SandControl)

// ---- the sampler ---------------------------------------------------------------------------------------------------

// Storage bindings of passes 70 and up. Theirs is a device of their own, or one that no step is under way on: numbers
// are the engine's too. 21, 22, 32 and 33 (scan and sort) are shared with it.
#define SAND_BIND_TREE 0          // SandGlTree
#define SAND_BIND_TREE_NODES 1    // boxes
#define SAND_BIND_TREE_LEAVES 2   // triangles in fours
#define SAND_BIND_TREE_WORDS 3    // triangles, order, triangles around vertices
#define SAND_BIND_TREE_VERTICES 4
#define SAND_BIND_TREE_NORMALS 5  // of vertices
#define SAND_BIND_TREE_DIPOLES 6
#define SAND_BIND_ASK_PLACES 8    // x y z
#define SAND_BIND_ASK_DISTANCES 9 // double
#define SAND_BIND_ASK_SIDES 10    // int
#define SAND_BIND_FIELD 8         // SandGlField
#define SAND_BIND_FIELD_REACHES 9 // per triangle, + 1: its first pair with a brick
#define SAND_BIND_FIELD_RECORDS 10  // triangle and brick of the batch
#define SAND_BIND_FIELD_BRICKS 11   // per brick of the batch, + 1: its first record; then its number in the grid
#define SAND_BIND_FIELD_VIEWS 12    // nine vec4 per record
#define SAND_BIND_FIELD_SQUARES 13  // per node: voxels^2; then voxels; then m, with the sign
#define SAND_BIND_FIELD_HEIGHTS 14  // per node: voxels over the nearest face
#define SAND_BIND_FIELD_CODES 15    // per node: its side, or the node whose side is its own
#define SAND_BIND_FIELD_ASKED 16    // how many, how many unsure, then nodes whose side is asked for

// Which side of a mesh a place is on.
#define SAND_SIDE_NONE 0
#define SAND_SIDE_OUT 1
#define SAND_SIDE_IN 2
#define SAND_SIDE_UNSURE 3
#define SAND_SIDE_OF 16 // + n: that of node n of the brick

// A mesh and its tree: where things lie in the buffers.
SAND_STRUCT(SandGlTree)
	double zero; // that no compiler sees
	double middle[3], extent; // m
	double turn;  // -1 when the mesh is inside out, else 1
	double doubt; // winding numbers so near to a half are the host's to judge
	double bounds_min[3], bounds_max[3]; // m
	int32_t triangle_count;
	int32_t order, around_first, around; // first words
	int32_t is_clean;
	int32_t level_count;
	int32_t level_first[16]; // first node of each level, from the leaves' up
SAND_STRUCT_END(SandGlTree)
SAND_OFFSET(SandGlTree, level_first, 128)
SAND_SIZE(SandGlTree, 192)

// The grid of a distance field, and the batch of bricks under way.
SAND_STRUCT(SandGlField)
	double origin[3];     // m, of node (0, 0, 0)
	double inverse_voxel; // 1/m
	double reach;         // voxels: the band
	double voxel;         // m
	float band, voxel_float; // voxels, m
	int32_t bricks[3];    // along each axis of the whole grid
	int32_t triangle_count;
	int32_t is_clean;
	int32_t pad;
SAND_STRUCT_END(SandGlField)
SAND_OFFSET(SandGlField, pad, 76)
SAND_SIZE(SandGlField, 80)

#define SAND_BIND_SPREAD 8           // SandGlSpread
#define SAND_BIND_SPREAD_PLACES 9    // vec4 per point, twice: before and behind a sweep
#define SAND_BIND_SPREAD_DRIFTS 10   // vec4: way of the last sweep
#define SAND_BIND_SPREAD_TRIANGLES 11
#define SAND_BIND_SPREAD_LISTS 12    // neighbours: the first of every point, the second of every point, ..
#define SAND_BIND_SPREAD_COUNTS 13   // of neighbours
#define SAND_BIND_SPREAD_LISTED 14   // vec4: where points were when the lists were made
#define SAND_BIND_SPREAD_STARTS 15   // per bucket, + 1: its first entry
#define SAND_BIND_SPREAD_ENTRIES 16  // points by bucket
#define SAND_BIND_SPREAD_CELLS 17    // uvec4 per point: its row, in two words, its bucket
#define SAND_BIND_SPREAD_CURSORS 18  // per bucket
#define SAND_BIND_SPREAD_GROUPS 19   // group counts of the scan: as they are, as they would be
#define SAND_BIND_SPREAD_ROOMS 20    // SandGlRoom, SAND_SPREAD_DIRECTIONS per point
#define SAND_SPREAD_LIST 32          // neighbours that a point lists
#define SAND_SPREAD_DIRECTIONS 8
#define SAND_SPREAD_STEPS 8          // dispatches of the scan

// The points that are being spread, and what the sweeps tell each other and the host.
SAND_STRUCT(SandGlSpread)
	double spacing, offset;  // m
	double cells_per_metre;
	float spacing_float;     // m
	float list_square;       // m^2: how far a list looks
	float margin_square;     // m^2: with more moved than that, lists are made anew
	float settled;           // share of the spacing that no pair lacks more of at the end
	float free_square;       // m^2: with nobody nearer, one more fits
	float lacking;           // largest share of the spacing that a pair lacked before the last sweep
	int32_t count, capacity; // points
	int32_t bucket_bits;
	int32_t side;            // which half of the places is the one behind the last sweep
	int32_t sweep_count;     // since the lists were made
	int32_t is_done;         // nothing is left to sweep
	int32_t needs_lists;
	uint32_t lack_bits, moved_bits; // floats: what the sweep under way found, m and m^2
	int32_t sweeps_done;
SAND_STRUCT_END(SandGlSpread)
SAND_OFFSET(SandGlSpread, sweeps_done, 84)
SAND_SIZE(SandGlSpread, 88)

// A place beside a point where one more might go.
SAND_STRUCT(SandGlRoom)
	float place[3]; // m, relative to the middle of the mesh
	int32_t triangle; // -1 = there is none
SAND_STRUCT_END(SandGlRoom)
SAND_OFFSET(SandGlRoom, triangle, 12)
SAND_SIZE(SandGlRoom, 16)

#endif
