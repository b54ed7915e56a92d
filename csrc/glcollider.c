// glcollider: meshes and tracks as the shaders read them.
// Comes in: colliders, tracks, where they are. Goes out: flat arrays for the buffers of the shaders.
#include "glcollider.h"

#include <string.h>

_Static_assert(SAND_NODE_LEVELS == sizeof((SandGlCollider){0}.level_first) / sizeof(int32_t),
               "the tree has other levels");

int64_t sand_gl_track_size(const SandTrack *track)
{
	return SAND_TRACK_HEAD + (int64_t)SAND_TRACK_ROW * track->sample_count;
}

static void write_head(double begin, double interval, int32_t count, double *to)
{
	to[0] = begin;
	to[1] = interval;
	to[2] = (double)count;
	to[3] = 0;
}

void sand_gl_track_write(const SandTrack *track, double reach, double *numbers_out)
{
	write_head(track->begin, track->interval, track->sample_count, numbers_out);
	for (int32_t i = 0; i < track->sample_count; ++i)
	{
		double *row = numbers_out + SAND_TRACK_HEAD + (size_t)SAND_TRACK_ROW * (size_t)i;
		SandStretch stretch;
		sand_track_stretch(track, i, &stretch);
		memcpy(row, track->samples + (size_t)i * SAND_TRACK_NUMBERS, 3 * sizeof(double));
		memcpy(row + 3, stretch.turn, sizeof(stretch.turn));
		memcpy(row + 7, stretch.velocity, sizeof(stretch.velocity));
		memcpy(row + 10, stretch.spin, sizeof(stretch.spin));
		row[13] = stretch.spin_size;
		row[14] = sand_stretch_speed(&stretch, reach);
		row[15] = 0;
	}
}

// Where the numbers of a collider go; adds up how many there are.
static void place_mesh(const SandColliderView *view, int64_t at[8], int64_t counts[3])
{
	int64_t vertices = view->vertex_count, triangles = view->triangle_count;
	at[0] = counts[0];
	at[1] = at[0] + 3 * triangles;
	at[2] = at[1] + vertices + 1;
	at[3] = at[2] + view->around_first[vertices];
	counts[0] = at[3] + triangles;
	at[4] = counts[1];
	at[5] = at[4] + 3 * vertices * view->frame_count;
	counts[1] = at[5] + (int64_t)SAND_NODE_NUMBERS * view->node_count;
	at[6] = at[7] = -1;
	if (view->track != NULL)
	{
		at[6] = counts[2];
		counts[2] += sand_gl_track_size(view->track);
	}
	if (view->speeds != NULL)
	{
		at[7] = counts[2];
		counts[2] += SAND_TRACK_HEAD + view->frame_count;
	}
}

static void copy(void *to, int64_t first, const void *from, int64_t count, size_t size)
{
	memcpy((char *)to + (size_t)first * size, from, (size_t)count * size);
}

static void write_mesh(const SandColliderView *view, const int64_t at[8], SandGlMeshes *all)
{
	copy(all->words, at[0], view->triangles, 3 * (int64_t)view->triangle_count, sizeof(int32_t));
	copy(all->words, at[1], view->around_first, (int64_t)view->vertex_count + 1, sizeof(int32_t));
	copy(all->words, at[2], view->around, view->around_first[view->vertex_count], sizeof(int32_t));
	copy(all->words, at[3], view->order, view->triangle_count, sizeof(int32_t));
	copy(all->floats, at[4], view->vertices, 3 * (int64_t)view->vertex_count * view->frame_count, sizeof(float));
	if (view->nodes != NULL)
	{
		copy(all->floats, at[5], view->nodes, (int64_t)SAND_NODE_NUMBERS * view->node_count, sizeof(float));
	}
	if (view->track != NULL)
	{
		sand_gl_track_write(view->track, view->radius, all->tracks + at[6]);
	}
	if (view->speeds != NULL)
	{
		write_head(view->frame_begin, view->frame_interval, view->frame_count, all->tracks + at[7]);
		copy(all->tracks, at[7] + SAND_TRACK_HEAD, view->speeds, view->frame_count, sizeof(double));
	}
}

static void describe_mesh(const SandCollider *collider, const SandColliderView *view, const int64_t at[8],
                          SandGlCollider *mesh)
{
	double low[3], high[3];
	sand_collider_bounds(collider, low, high);
	*mesh = (SandGlCollider){.frame_interval = view->frame_interval,
	                         .track = (int32_t)at[6],
	                         .frames = (int32_t)at[7],
	                         .triangles = (int32_t)at[0],
	                         .around_first = (int32_t)at[1],
	                         .around = (int32_t)at[2],
	                         .order = (int32_t)at[3],
	                         .vertices = (int32_t)at[4],
	                         .nodes = (int32_t)at[5],
	                         .vertex_count = view->vertex_count,
	                         .triangle_count = view->triangle_count,
	                         .material = sand_collider_material(collider),
	                         .is_moving = sand_collider_is_moving(collider),
	                         .level_count = view->level_count};
	for (int k = 0; k < 3; ++k)
	{
		mesh->origin[k] = 0.5 * (low[k] + high[k]);
	}
	for (int k = 0; k < view->level_count; ++k)
	{
		mesh->level_first[k] = view->level_first[k];
	}
}

SandStatus sand_gl_meshes_create(SandCollider *const *colliders, int count, SandGlMeshes *all, SandError *err)
{
	*all = (SandGlMeshes){.collider_count = count};
	int64_t counts[3] = {0}, at[8], number = 0;
	SandColliderView view;
	for (int i = 0; i < count; ++i)
	{
		sand_collider_view(colliders[i], &view);
		place_mesh(&view, at, counts);
	}
	int64_t most = counts[0] > counts[1] ? counts[0] : counts[1];
	if (most > INT32_MAX || counts[2] > INT32_MAX)
	{
		*all = (SandGlMeshes){0};
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "The colliders have %lld numbers in all their frames, expected at most %d for the GL engine; "
		                 "simplify them or use the CPU engine",
		                 (long long)(most > counts[2] ? most : counts[2]), INT32_MAX);
	}
	all->meshes = sand_alloc((size_t)(count > 0 ? count : 1), sizeof(SandGlCollider));
	all->words = sand_alloc((size_t)counts[0] + 1, sizeof(int32_t));
	all->floats = sand_alloc((size_t)counts[1] + 1, sizeof(float));
	all->tracks = sand_alloc((size_t)counts[2] + 1, sizeof(double));
	if (all->meshes == NULL || all->words == NULL || all->floats == NULL || all->tracks == NULL)
	{
		sand_gl_meshes_destroy(all);
		return sand_fail_memory(err, (size_t)counts[0] * 4 + (size_t)counts[1] * 4 + (size_t)counts[2] * 8,
		                        "the colliders on the device");
	}
	memset(counts, 0, sizeof(counts));
	for (int i = 0; i < count; ++i)
	{
		sand_collider_view(colliders[i], &view);
		place_mesh(&view, at, counts);
		write_mesh(&view, at, all);
		describe_mesh(colliders[i], &view, at, &all->meshes[i]);
		all->meshes[i].number = (int32_t)number;
		number += view.triangle_count;
	}
	all->word_count = counts[0] + 1;
	all->float_count = counts[1] + 1;
	all->track_count = counts[2] + 1;
	return SAND_OK;
}

void sand_gl_meshes_destroy(SandGlMeshes *meshes)
{
	sand_free(meshes->meshes);
	sand_free(meshes->words);
	sand_free(meshes->floats);
	sand_free(meshes->tracks);
	*meshes = (SandGlMeshes){0};
}

void sand_gl_pose(const SandGlMeshes *meshes, int index, const SandColliderState *state, SandGlPose *pose_out)
{
	const SandGlCollider *mesh = &meshes->meshes[index];
	SandPose pose;
	SandMoment moment;
	sand_collider_place(state, &pose, &moment);
	*pose_out = (SandGlPose){.share = moment.share,
	                         .here = mesh->vertices + 3 * mesh->vertex_count * moment.index,
	                         .is_moving = moment.is_moving};
	pose_out->next = pose_out->here + (moment.is_moving ? 3 * mesh->vertex_count : 0);
	memcpy(pose_out->position, pose.position, sizeof(pose.position));
	memcpy(pose_out->orientation, pose.orientation, sizeof(pose.orientation));
	memcpy(pose_out->velocity, pose.velocity, sizeof(pose.velocity));
	memcpy(pose_out->spin, pose.spin, sizeof(pose.spin));
}

const float *sand_gl_boxes(const SandGlMeshes *meshes, int index, const SandCollider *collider,
                           const SandColliderState *state, int64_t *first_out, int64_t *count_out)
{
	SandColliderView view;
	sand_collider_view(collider, &view);
	*first_out = meshes->meshes[index].nodes;
	*count_out = view.node_count;
	return sand_collider_boxes(state);
}
