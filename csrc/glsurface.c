// glsurface: a surface on a device. Comes in: SandSurface. Goes out: buffers that shaders/tree.glsl reads, distances.
#include "glsurface.h"

#include "layout.h"

#include <string.h>

#define EXTENT_LIMIT 1e18      // m: squares of coordinates below fit into floats
#define LEVEL_LIMIT 14         // of the tree: what the shaders' stack of 48 holds
#define DOUBT_DEFAULT 1e-9     // of a winding number
#define SLICE_PLACES (1 << 18) // in the device's memory at once
#define TASK_VERTICES 4096

typedef struct Normals
{
	const SandSurface *surface;
	double *numbers;
	int count, task_count;
} Normals;

static void normal_task(void *context, int task)
{
	const Normals *normals = context;
	int end = sand_part_start(normals->count, task + 1, normals->task_count);
	for (int i = sand_part_start(normals->count, task, normals->task_count); i < end; ++i)
	{
		sand_surface_vertex_normal(normals->surface, i, normals->numbers + 3 * (size_t)i);
	}
}

static SandStatus load_normals(SandGlWork *work, const SandSurface *surface, SandPool *pool, SandError *err)
{
	int count = sand_surface_mesh(surface)->vertex_count;
	Normals normals = {surface, sand_alloc(3 * (size_t)count, sizeof(double)), count,
	                   sand_block_count(count, TASK_VERTICES)};
	if (normals.numbers == NULL)
	{
		return sand_fail_memory(err, 3 * (size_t)count * sizeof(double), "the normals of vertices");
	}
	sand_pool_run(pool, normal_task, &normals, normals.task_count);
	SandStatus status = sand_glwork_fill(work, SAND_BIND_TREE_NORMALS, normals.numbers, 24 * (int64_t)count,
	                                     "Normals of vertices", err);
	sand_free(normals.numbers);
	return status;
}

static SandStatus load_words(SandGlWork *work, const SandSurface *surface, SandGlTree *tree_out, SandError *err)
{
	const SandMesh *mesh = sand_surface_mesh(surface);
	SandSurfaceTree tree = sand_surface_tree(surface);
	int64_t triangles = mesh->triangle_count, vertices = mesh->vertex_count;
	const struct
	{
		const int32_t *words;
		int64_t count;
	} parts[4] = {{mesh->triangles, 3 * triangles},
	              {tree.order, triangles},
	              {tree.first_of_vertex, vertices + 1},
	              {tree.triangles_of_vertex, 3 * triangles}};
	SandStatus status = sand_glwork_reserve(work, SAND_BIND_TREE_WORDS, 4 * (7 * triangles + vertices + 1),
	                                        "Triangles of the mesh", err);
	int64_t first[4] = {0};
	for (int i = 0; i < 4 && status == SAND_OK; ++i)
	{
		first[i] = i > 0 ? first[i - 1] + parts[i - 1].count : 0;
		sand_glwork_upload(work, SAND_BIND_TREE_WORDS, 4 * first[i], parts[i].words, 4 * parts[i].count);
	}
	tree_out->order = (int32_t)first[1];
	tree_out->around_first = (int32_t)first[2];
	tree_out->around = (int32_t)first[3];
	return status;
}

SandStatus sand_glsurface_load(SandGlWork *work, const SandSurface *surface, int parts, double doubt, SandPool *pool,
                               SandError *err)
{
	const SandMesh *mesh = sand_surface_mesh(surface);
	SandSurfaceTree tree = sand_surface_tree(surface);
	if (!(tree.extent < EXTENT_LIMIT) || tree.level_count > LEVEL_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "%s is %g m large with %d triangles, more than the gl engine can search; use the cpu engine",
		                 sand_mesh_label(mesh).text, 2 * tree.extent, mesh->triangle_count);
	}
	SandGlTree head = {.extent = tree.extent,
	                   .turn = tree.turn,
	                   .doubt = doubt > 0 ? doubt : DOUBT_DEFAULT,
	                   .triangle_count = mesh->triangle_count,
	                   .is_clean = sand_surface_is_clean(surface),
	                   .level_count = tree.level_count};
	memcpy(head.middle, tree.middle, sizeof(head.middle));
	for (int k = 0; k < 3; ++k)
	{
		head.bounds_min[k] = (double)mesh->bounds_min[k];
		head.bounds_max[k] = (double)mesh->bounds_max[k];
	}
	for (int i = 0; i < tree.level_count; ++i)
	{
		head.level_first[i] = tree.level_first[i];
	}
	const struct
	{
		int binding;
		const void *bytes;
		int64_t byte_count;
		const char *what_for;
	} blocks[] = {
	    {SAND_BIND_TREE_LEAVES, tree.leaves, 4 * (int64_t)SAND_TREE_LEAF_FLOATS * tree.leaf_count, "The tree's leaves"},
	    {SAND_BIND_TREE_NODES, tree.nodes, 4 * (int64_t)SAND_TREE_NODE_FLOATS * tree.node_count, "The tree's nodes"},
	    {SAND_BIND_TREE_VERTICES, mesh->vertices, 12 * (int64_t)mesh->vertex_count, "Vertices of the mesh"},
	    {SAND_BIND_TREE_DIPOLES, tree.dipoles,
	     (parts & SAND_GLSURFACE_DIPOLES) != 0 ? 4 * (int64_t)SAND_TREE_DIPOLE_FLOATS * tree.node_count : 0,
	     "The tree's dipoles"},
	};
	SandStatus status = SAND_OK;
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]) && status == SAND_OK; ++i)
	{
		status =
		    sand_glwork_fill(work, blocks[i].binding, blocks[i].bytes, blocks[i].byte_count, blocks[i].what_for, err);
	}
	status = status == SAND_OK ? load_words(work, surface, &head, err) : status;
	if (status == SAND_OK && (parts & SAND_GLSURFACE_NORMALS) != 0)
	{
		status = load_normals(work, surface, pool, err);
	}
	status = status == SAND_OK ? sand_glwork_fill(work, SAND_BIND_TREE, &head, sizeof(head), "The mesh", err) : status;
	sand_gpu_barrier(work->gpu);
	return status;
}

// ---------------------------------------------------------------------------------------------- distances

typedef struct Asking
{
	SandGlWork work;
	const SandSurface *surface;
	const SandGlDistanceDesc *desc;
	SandPool *pool;
	double *distances;
	int32_t *sides; // of the slice
	int count, task_count;
	int64_t first; // of the slice
} Asking;

// Signs, and what the device was not sure of.
static void answer_task(void *context, int task)
{
	const Asking *asking = context;
	int end = sand_part_start(asking->count, task + 1, asking->task_count);
	for (int i = sand_part_start(asking->count, task, asking->task_count); i < end; ++i)
	{
		const float *at = asking->desc->places + 3 * (asking->first + i);
		double *distance = asking->distances + asking->first + i;
		const double place[3] = {(double)at[0], (double)at[1], (double)at[2]};
		*distance = asking->sides[i] == SAND_SIDE_UNSURE ? sand_surface_distance(asking->surface, place)
		            : asking->sides[i] == SAND_SIDE_IN   ? -*distance
		                                                 : *distance;
	}
}

static SandStatus ask_slice(Asking *asking, SandError *err)
{
	SandGlWork *work = &asking->work;
	int64_t count = asking->count;
	sand_glwork_upload(work, SAND_BIND_ASK_PLACES, 0, asking->desc->places + 3 * asking->first, 12 * count);
	sand_gpu_barrier(work->gpu);
	SandStatus status = sand_glwork_run_parts(work, 0, 0, count, 1, err);
	status = status == SAND_OK ? sand_glwork_download(work, SAND_BIND_ASK_DISTANCES, 0,
	                                                  asking->distances + asking->first, 8 * count, err)
	                           : status;
	status =
	    status == SAND_OK ? sand_glwork_download(work, SAND_BIND_ASK_SIDES, 0, asking->sides, 4 * count, err) : status;
	if (status == SAND_OK)
	{
		asking->task_count = sand_block_count(asking->count, 256);
		sand_pool_run(asking->pool, answer_task, asking, asking->task_count);
	}
	return status;
}

static SandStatus ask_job(SandGpu *gpu, void *user, SandError *err)
{
	static const SandGlPass pass = {"76_places.comp", NULL};
	Asking *asking = user;
	SandGlWork *work = &asking->work;
	int64_t all = asking->desc->place_count, room = all < SLICE_PLACES ? all : SLICE_PLACES;
	asking->sides = sand_alloc((size_t)room, sizeof(int32_t));
	SandStatus status = asking->sides == NULL
	                        ? sand_fail_memory(err, (size_t)room * sizeof(int32_t), "the sides of places")
	                        : sand_glwork_open(work, &pass, 1, false, err);
	status = status == SAND_OK
	             ? sand_glsurface_load(work, asking->surface, SAND_GLSURFACE_NORMALS | SAND_GLSURFACE_DIPOLES,
	                                   asking->desc->doubt, asking->pool, err)
	             : status;
	status = status == SAND_OK ? sand_glwork_reserve(work, SAND_BIND_ASK_PLACES, 12 * room, "Places", err) : status;
	status =
	    status == SAND_OK ? sand_glwork_reserve(work, SAND_BIND_ASK_DISTANCES, 8 * room, "Distances", err) : status;
	status = status == SAND_OK ? sand_glwork_reserve(work, SAND_BIND_ASK_SIDES, 4 * room, "Sides", err) : status;
	for (asking->first = 0; status == SAND_OK && asking->first < all; asking->first += room)
	{
		asking->count = (int)(all - asking->first < room ? all - asking->first : room);
		status = ask_slice(asking, err);
		status = status == SAND_OK ? sand_gpu_check(gpu, err) : status;
	}
	sand_glwork_close(work);
	sand_free(asking->sides);
	return status;
}

SandStatus sand_glsurface_distances(SandGpu *gpu, const SandSurface *surface, const SandGlDistanceDesc *desc,
                                    SandPool *pool, double *distances_out, SandError *err)
{
	Asking asking = {.work = {.gpu = gpu, .cancel = desc->cancel},
	                 .surface = surface,
	                 .desc = desc,
	                 .pool = pool,
	                 .distances = distances_out};
	return sand_gpu_run(gpu, ask_job, &asking, err);
}
