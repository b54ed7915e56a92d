// collider: a triangle mesh that grains bounce off: standing, moving or changing shape.
// Comes in: a mesh with a track, or its vertices over time. Goes out: where a sphere touches it, and how it moves
// there.
//
// A sphere touches the mesh at every local minimum of the distance from its centre: on a flat part at one place however
// it is cut into triangles, in a corner at two or three; a crease of less than 8 degrees counts as flat. Both sides of
// a triangle hold, so an open mesh is a thin wall and a closed one holds grains in as well as out. Which side a sphere
// is on is remembered per sphere and triangle while it is near, so that a centre pressed through the surface is pushed
// back, not on.
#ifndef SAND_COLLIDER_H
#define SAND_COLLIDER_H

#include "mesh.h"
#include "track.h"

/// Zero is valid where said.
typedef struct SandColliderDesc
{
	const SandMesh *mesh;   // not used after creation. Along a track: in its own axes; with frames: only its triangles
	const SandTrack *track; // NULL = stands still, or changes shape by frames. Copied
	const float *frames;    // NULL = rigid. Else xyz of every vertex of the mesh at frame_begin, + frame_interval, ...:
	                        // straight between them, standing before and after. Copied
	int32_t frame_count;
	double frame_begin;    // s
	double frame_interval; // s, > 0
	int32_t material;      // checked by the scene
} SandColliderDesc;

typedef struct SandCollider SandCollider; // immutable: any number of threads

/// Fails: SAND_ERROR_ARGUMENT (no triangles, a track and frames at once, numbers that are not finite: names the mesh),
/// SAND_ERROR_MEMORY. index = its number in the scene, for sentences.
SandStatus sand_collider_create(const SandColliderDesc *desc, int index, SandCollider **collider_out, SandError *err);
void sand_collider_destroy(SandCollider *collider); // NULL is fine

const char *sand_collider_name(const SandCollider *collider); // the mesh's
int sand_collider_triangle_count(const SandCollider *collider);
int32_t sand_collider_material(const SandCollider *collider);
bool sand_collider_is_moving(const SandCollider *collider);
/// Of all it was made from but names and how it moves or changes shape.
uint64_t sand_collider_hash(const SandCollider *collider, uint64_t seed);
/// Of how it moves or changes shape up to a time, s; the seed when it stands.
uint64_t sand_collider_motion_hash(const SandCollider *collider, double until, uint64_t seed);
/// Box of all the places it ever is, m.
void sand_collider_bounds(const SandCollider *collider, double low_out[3], double high_out[3]);
/// The fastest any point of it moves between two times, m/s; 0 when it stands.
double sand_collider_speed(const SandCollider *collider, double from, double to);

/// Where it is now. Made and owned by the simulator.
typedef struct SandColliderState SandColliderState;
SandStatus sand_collider_state_create(const SandCollider *collider, SandColliderState **state_out, SandError *err);
void sand_collider_state_destroy(SandColliderState *state); // NULL is fine

/// Moves it to a time. Cheap: every step. Not while another thread uses the state.
void sand_collider_set_time(const SandCollider *collider, SandColliderState *state, double time);
/// Makes the search below fit the time set. Free when it is rigid. Not while another thread uses the state.
void sand_collider_fit(const SandCollider *collider, SandColliderState *state);

/// Origin of the torques told of it at the time set, m: the track's position, or the middle of sand_collider_bounds.
void sand_collider_origin(const SandCollider *collider, const SandColliderState *state, double origin_out[3]);

/// What it is made of, for shaders. All belongs to the collider; rows as csrc/collider.c describes them.
typedef struct SandColliderView
{
	const int32_t *triangles;             // three vertices each
	const float *vertices;                // m, xyz, one frame after the other
	const int32_t *around_first, *around; // per vertex, + 1; triangles with an area around it
	const int32_t *order;                 // of the triangles in the tree
	const float *nodes; // SAND_NODE_NUMBERS each: low x of four children, low y, low z, high x, ...; NULL = the state's
	const int *level_first;             // first node of each level, from the triangles' up
	const double *speeds;               // m/s, per interval of frames; NULL = keeps its shape
	const SandTrack *track;             // NULL = none
	double radius;                      // m, farthest vertex from the origin of its own axes
	double frame_begin, frame_interval; // s
	int32_t triangle_count, vertex_count, frame_count, node_count, level_count;
} SandColliderView;
#define SAND_NODE_NUMBERS 24
#define SAND_NODE_LEVELS 16 // at most
void sand_collider_view(const SandCollider *collider, SandColliderView *view_out);
/// Pose and moment of the time set; boxes of the tree as they were fitted, NULL when it keeps its shape.
void sand_collider_place(const SandColliderState *state, SandPose *pose_out, SandMoment *moment_out);
const float *sand_collider_boxes(const SandColliderState *state);

/// Triangles with a point within reach of p, perhaps a few more; ascending. Writes at most capacity, returns how many
/// there are. Needs sand_collider_fit after the last set_time. Any number of threads.
int sand_collider_near(const SandCollider *collider, const SandColliderState *state, const double p[3], double reach,
                       int32_t *triangles_out, int capacity);

/// False when near() would find nothing; a box of a triangle within reach is enough for true. Cheaper, for many at
/// once.
bool sand_collider_is_near(const SandCollider *collider, const SandColliderState *state, const double p[3],
                           double reach);

#define SAND_HIT_LIMIT 8

typedef struct SandHit
{
	double distance;    // m, of p from the surface; negative when p was pressed through it
	double normal[3];   // unit, from the surface to the side that p belongs to
	double velocity[3]; // m/s, of the surface there
	int32_t slot;       // index into the triangles given, the lowest of those that meet there
} SandHit;

/// Where a sphere at p touches: places nearer than reach, or behind the surface by less. triangles = as near() gave
/// them at some earlier time, all that can be within reach now. sides, one per triangle, in and out: 0 = not known yet,
/// 1 or -1 = p belongs to the front or back of it. Returns how many hits (the nearest SAND_HIT_LIMIT of them when there
/// are more), in ascending order of slot. Any number of threads; only the sides are written.
int sand_collider_touch(const SandCollider *collider, const SandColliderState *state, const double p[3], double reach,
                        const int32_t *triangles, float *sides, int count, SandHit hits_out[SAND_HIT_LIMIT]);

#endif
