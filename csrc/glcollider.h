// glcollider: meshes and tracks as the shaders read them. Comes in: colliders, tracks, where they are. Goes out: flat
// arrays for the buffers of shaders/collider.glsl and shaders/track.glsl. Knows no GL.
#ifndef SAND_GLCOLLIDER_H
#define SAND_GLCOLLIDER_H

#include "collider.h"
#include "layout.h"

/// All colliders of a scene. No array is NULL: an empty one has room for one number, so that a buffer can be made.
typedef struct SandGlMeshes
{
	SandGlCollider *meshes; // collider_count, as SAND_BIND_MESHES; slack 0
	int32_t *words;         // SAND_BIND_MESH_WORDS: triangles, around, order
	float *floats;          // SAND_BIND_MESH_FLOATS: vertices of all frames, boxes
	double *tracks;         // SAND_BIND_TRACKS
	int32_t collider_count;
	int64_t word_count, float_count, track_count;
} SandGlMeshes;

/// Fails: SAND_ERROR_MEMORY, SAND_ERROR_ARGUMENT when there are more numbers than 2^31 - 1 of a kind. Zeros on failure.
SandStatus sand_gl_meshes_create(SandCollider *const *colliders, int count, SandGlMeshes *meshes_out, SandError *err);
void sand_gl_meshes_destroy(SandGlMeshes *meshes); // zeros are fine

/// Where the collider of that number is at the time set, as SAND_BIND_POSES holds it: what shaders/12_poses.comp makes.
void sand_gl_pose(const SandGlMeshes *meshes, int index, const SandColliderState *state, SandGlPose *pose_out);

/// Boxes of the collider of that number as the state was fitted: SAND_NODE_NUMBERS times *count_out numbers, that
/// belong to floats[*first_out ...]. NULL when it keeps its shape: then they are there already.
const float *sand_gl_boxes(const SandGlMeshes *meshes, int index, const SandCollider *collider,
                           const SandColliderState *state, int64_t *first_out, int64_t *count_out);

/// The table of a track: how many numbers, and the numbers; reach (m) as in sand_track_speed.
int64_t sand_gl_track_size(const SandTrack *track);
void sand_gl_track_write(const SandTrack *track, double reach, double *numbers_out);

#endif
