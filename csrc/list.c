// list: which spheres may touch in the next steps.
// Comes in: placed spheres in chunks. Goes out: pairs per chunk, with their tangential springs.
#include "list.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum
{
	LEVEL_LIMIT = 16
};

#define SUPPORT_REACH 1.02f // of both radii: two so near support each other

// One class of spheres: radii within a factor of two, and slow or fast. Cells along x are neighbouring buckets, so that
// a row of cells is one run of entries; rows start at strides chosen so that no two rows of one search share a bucket.
typedef struct Level
{
	int first_entry, entry_count;
	float radius_max;    // units
	float margin;        // units, of this list
	uint32_t cell_scale; // cell = (x * cell_scale) >> 32
	uint32_t mask;
	uint32_t stride_y, stride_z;
	uint32_t first_bucket; // of the levels in use, numbered one after the other
	int32_t *starts;       // mask + 2
} Level;

// Entry of a cell table: a copy of the position beside the index, so that the search streams.
typedef struct Cell
{
	int32_t x[3];
	int32_t sphere;
} Cell;

typedef struct Spring
{
	int32_t other; // as in SandSpring
	float stretch[3];
	float side;
} Spring;

struct SandList
{
	SandListDesc desc;
	Level levels[2 * LEVEL_LIMIT]; // slow ones, then as many fast ones
	int level_count;               // all of them
	int size_count;                // classes of size
	Cell *entries;
	Spring *springs, *springs_spare;
	atomic_int *spring_start, *spring_start_spare; // per lasting sphere id, + 1
	int64_t spring_capacity, spare_capacity;
	uint8_t *is_rested; // per lasting sphere id: asleep, or a wall, in the last list
};

static int level_of(const SandList *list, float radius, bool is_fast)
{
	int level = 0;
	while (level + 1 < list->size_count && radius > list->levels[level].radius_max)
	{
		++level;
	}
	return is_fast ? level + list->size_count : level;
}

// Strides of the rows, for searches of up to `span` cells along a side: two rows of one differ by less than that in y
// and z and are at most as many buckets long. False when none are found.
static bool choose_strides(Level *level, int span)
{
	for (uint32_t attempt = 0; attempt < 256; ++attempt)
	{
		level->stride_y = (UINT32_C(0x9E3779B1) * (2 * attempt + 1)) & level->mask;
		level->stride_z = (UINT32_C(0x85EBCA77) * (2 * attempt + 1)) & level->mask;
		bool is_good = true;
		for (int z = -span; z <= span && is_good; ++z)
		{
			for (int y = -span; y <= span && is_good; ++y)
			{
				uint32_t offset = (uint32_t)y * level->stride_y + (uint32_t)z * level->stride_z;
				uint32_t forward = offset & level->mask, backward = (0u - offset) & level->mask;
				is_good = (y == 0 && z == 0) || (forward > (uint32_t)span && backward > (uint32_t)span);
			}
		}
		if (is_good)
		{
			return true;
		}
	}
	return false;
}

// How far apart the spheres of one search may lie, units: two cells of the smallest.
static double batch_extent(const SandList *list)
{
	return 4.0 * (double)(list->levels[0].radius_max + list->desc.margin_slow);
}

SandStatus sand_list_create(const SandListDesc *desc, SandList **list_out, SandError *err)
{
	*list_out = NULL;
	SandList *list = sand_alloc(1, sizeof(*list));
	if (list == NULL)
	{
		return sand_fail_memory(err, sizeof(*list), "the neighbour list");
	}
	list->desc = *desc;
	size_t total = (size_t)desc->sphere_count + (size_t)desc->wall_count;
	float radius = desc->radius_min;
	do
	{
		radius = 2 * radius < desc->radius_max && list->size_count < LEVEL_LIMIT - 1 ? 2 * radius : desc->radius_max;
		list->levels[list->size_count++].radius_max = radius;
	} while (radius < desc->radius_max);
	list->level_count = 2 * list->size_count;
	for (int l = 0; l < list->level_count; ++l)
	{
		Level *level = &list->levels[l];
		level->radius_max = list->levels[l % list->size_count].radius_max;
		// The widest search against the smallest cells this level can have.
		double cell = 2.0 * (double)(level->radius_max + desc->margin_slow) + (double)desc->bridge;
		double reach =
		    (double)(desc->radius_max + level->radius_max + 2 * desc->margin_fast_limit) + (double)desc->bridge;
		int span = (int)ceil((2 * reach + batch_extent(list)) / cell) + 1;
		size_t side = (size_t)(2 * span + 1), wanted = side * side * side * 4;
		wanted = 2 * total > wanted ? 2 * total : wanted;
		size_t table = 64;
		bool is_found = false;
		for (; !is_found && table <= (size_t)1 << 31; table *= 2)
		{
			level->mask = (uint32_t)(table - 1);
			is_found = table >= wanted && choose_strides(level, span);
		}
		level->starts = is_found ? sand_alloc((size_t)level->mask + 2, sizeof(int32_t)) : NULL;
		if (level->starts == NULL)
		{
			sand_list_destroy(list);
			return sand_fail_memory(err, table * sizeof(int32_t), "the cells of the neighbour list");
		}
	}
	list->entries = sand_alloc(total, sizeof(Cell));
	list->spring_start = sand_alloc(desc->has_history ? total + 1 : 1, sizeof(atomic_int));
	list->spring_start_spare = sand_alloc(desc->has_history ? total + 1 : 1, sizeof(atomic_int));
	list->is_rested = sand_alloc(desc->has_history ? total : 1, sizeof(uint8_t));
	if (list->entries == NULL || list->spring_start == NULL || list->spring_start_spare == NULL ||
	    list->is_rested == NULL)
	{
		sand_list_destroy(list);
		return sand_fail_memory(err, total * sizeof(Cell), "the neighbour list");
	}
	*list_out = list;
	return SAND_OK;
}

void sand_list_destroy(SandList *list)
{
	if (list == NULL)
	{
		return;
	}
	for (int i = 0; i < list->level_count; ++i)
	{
		sand_free(list->levels[i].starts);
	}
	sand_free(list->entries);
	sand_free(list->springs);
	sand_free(list->springs_spare);
	sand_free(list->spring_start);
	sand_free(list->spring_start_spare);
	sand_free(list->is_rested);
	sand_free(list);
}

void sand_list_chunk_free(SandChunk *chunk)
{
	sand_free(chunk->pairs);
	sand_free(chunk->history);
	sand_free(chunk->obstacle_pairs);
	sand_free(chunk->obstacle_history);
	sand_free(chunk->obstacle_laws);
	sand_free(chunk->groups);
	sand_free(chunk->near_triangles);
	sand_free(chunk->near_sides);
	sand_free(chunk->near_history);
	sand_free(chunk->collider_sums);
	sand_free(chunk->watch_pairs);
	sand_free(chunk->sections);
	sand_free(chunk->ghost_sums);
	sand_free(chunk->outer_slots);
	sand_free(chunk->ghosts);
	sand_free(chunk->inflows);
	chunk->ghost_sums = NULL;
	chunk->outer_slots = chunk->ghosts = NULL;
	chunk->inflows = NULL;
	chunk->ghost_sum_capacity = chunk->outer_capacity = chunk->ghost_capacity = chunk->inflow_capacity = 0;
	chunk->pairs = chunk->obstacle_pairs = chunk->watch_pairs = NULL;
	chunk->history = chunk->obstacle_history = NULL;
	chunk->obstacle_laws = NULL;
	chunk->obstacle_law_capacity = 0;
	chunk->groups = NULL;
	chunk->near_triangles = NULL;
	chunk->near_sides = NULL;
	chunk->near_history = NULL;
	chunk->collider_sums = NULL;
	chunk->group_capacity = chunk->near_capacity = chunk->side_capacity = 0;
	chunk->sections = NULL;
	chunk->pair_capacity = chunk->obstacle_pair_capacity = chunk->watch_capacity = 0;
}

// Lasting id of a sphere: grains by id, then walls.
static int32_t lasting_id(const SandList *list, const SandWork *work, const int32_t *sphere_base, int32_t sphere)
{
	if (sphere >= list->desc.sphere_count)
	{
		return sphere;
	}
	int32_t grain = work->spheres[sphere].grain;
	return sphere_base[work->traits[grain].id] + sphere - work->grains[grain].first_sphere;
}

// What stands for a triangle of a collider among the others of springs.
static int32_t triangle_id(const SandList *list, int32_t collider, int32_t triangle)
{
	return -1 - (SAND_SLOT_COUNT * list->desc.obstacle_count + list->desc.collider_base[collider] + triangle);
}

static bool is_stretched(const SandHistory *history)
{
	return history->stretch[0] != 0 || history->stretch[1] != 0 || history->stretch[2] != 0;
}

typedef struct SaveContext
{
	SandList *list;
	const SandWork *work;
	const SandChunk *chunks;
	const int32_t *sphere_base;
	bool is_counting;
} SaveContext;

static int32_t first_spring(const SandList *list, int32_t low)
{
	return atomic_load_explicit(&list->spring_start[low], memory_order_relaxed);
}

// Counts a spring, or gives it its place. Tasks of several chunks meet at the counter of one sphere: the springs of a
// sphere come in any order, and nothing may depend on it.
static void put_spring(const SaveContext *context, int32_t low, int32_t high, const float stretch[3], float sign,
                       float side)
{
	SandList *list = context->list;
	if (context->is_counting)
	{
		atomic_fetch_add_explicit(&list->spring_start_spare[low + 1], 1, memory_order_relaxed);
		return;
	}
	int32_t place = atomic_fetch_add_explicit(&list->spring_start_spare[low], 1, memory_order_relaxed);
	Spring *spring = &list->springs_spare[place];
	spring->other = high;
	spring->side = side;
	for (int k = 0; k < 3; ++k)
	{
		spring->stretch[k] = sign * stretch[k];
	}
}

static void save_spring(const SaveContext *context, SandPair pair, bool is_obstacle, const SandHistory *history)
{
	int32_t a = lasting_id(context->list, context->work, context->sphere_base, pair.a);
	int32_t b = is_obstacle ? -1 - pair.b : lasting_id(context->list, context->work, context->sphere_base, pair.b);
	bool is_swapped = !is_obstacle && b < a;
	put_spring(context, is_swapped ? b : a, is_swapped ? a : b, history->stretch, is_swapped ? -1.0f : 1.0f, 0);
}

// Two that slept through the last list had no pair in it: their spring is as it was.
static void keep_springs(const SaveContext *context)
{
	const SandList *list = context->list;
	int32_t total = list->desc.sphere_count + list->desc.wall_count;
	for (int32_t low = 0; low < total && context->work->sleep_speed > 0; ++low)
	{
		int32_t end = list->is_rested[low] ? first_spring(list, low + 1) : 0;
		for (int32_t i = first_spring(list, low); i < end; ++i)
		{
			int32_t other = list->springs[i].other;
			if (other < 0 || list->is_rested[other])
			{
				put_spring(context, low, other, list->springs[i].stretch, 1.0f, list->springs[i].side);
			}
		}
	}
}

static void save_task(void *task_context, int chunk_index)
{
	const SaveContext *context = task_context;
	const SandChunk *chunk = &context->chunks[chunk_index];
	for (int i = 0; i < chunk->pair_count; ++i)
	{
		if (is_stretched(&chunk->history[i]))
		{
			save_spring(context, chunk->pairs[i], false, &chunk->history[i]);
		}
	}
	for (int i = 0; i < chunk->obstacle_pair_count; ++i)
	{
		if (is_stretched(&chunk->obstacle_history[i]))
		{
			save_spring(context, chunk->obstacle_pairs[i], true, &chunk->obstacle_history[i]);
		}
	}
	for (int g = 0; g < chunk->group_count; ++g)
	{
		const SandGroup *group = &chunk->groups[g];
		int32_t low = lasting_id(context->list, context->work, context->sphere_base, group->sphere);
		for (int i = group->first; i < group->first + group->count; ++i)
		{
			if (chunk->near_sides[i] != 0)
			{
				put_spring(context, low, triangle_id(context->list, group->collider, chunk->near_triangles[i]),
				           chunk->near_history[i].stretch, 1.0f, chunk->near_sides[i]);
			}
		}
	}
}

SandStatus sand_list_save_history(SandList *list, const SandWork *work, const SandChunk *chunks, int chunk_count,
                                  const int32_t *sphere_base, SandPool *pool, SandError *err)
{
	if (!list->desc.has_history)
	{
		return SAND_OK;
	}
	size_t total = (size_t)list->desc.sphere_count + (size_t)list->desc.wall_count;
	SaveContext context = {list, work, chunks, sphere_base, true};
	memset(list->spring_start_spare, 0, (total + 1) * sizeof(atomic_int));
	sand_pool_run(pool, save_task, &context, chunk_count);
	keep_springs(&context);
	int32_t count = 0;
	for (size_t i = 0; i <= total; ++i)
	{
		count += atomic_load_explicit(&list->spring_start_spare[i], memory_order_relaxed);
		atomic_store_explicit(&list->spring_start_spare[i], count, memory_order_relaxed);
	}
	if (count > list->spare_capacity)
	{
		sand_free(list->springs_spare);
		list->spare_capacity = count + count / 2;
		list->springs_spare = sand_alloc((size_t)list->spare_capacity, sizeof(Spring));
		if (list->springs_spare == NULL)
		{
			list->spare_capacity = 0;
			return sand_fail_memory(err, (size_t)count * sizeof(Spring), "the friction springs");
		}
	}
	context.is_counting = false;
	sand_pool_run(pool, save_task, &context, chunk_count);
	keep_springs(&context);
	// Saving moved every start to its end: shift back.
	memmove(list->spring_start_spare + 1, list->spring_start_spare, total * sizeof(atomic_int));
	atomic_store_explicit(&list->spring_start_spare[0], 0, memory_order_relaxed);
	Spring *springs = list->springs;
	atomic_int *starts = list->spring_start;
	int64_t capacity = list->spring_capacity;
	list->springs = list->springs_spare;
	list->spring_start = list->spring_start_spare;
	list->spring_capacity = list->spare_capacity;
	list->springs_spare = springs;
	list->spring_start_spare = starts;
	list->spare_capacity = capacity;
	return SAND_OK;
}

static SandHistory find_spring(const SandList *list, int32_t a, int32_t b)
{
	SandHistory history = {{0}};
	bool is_swapped = b >= 0 && b < a;
	int32_t low = is_swapped ? b : a, high = is_swapped ? a : b;
	for (int32_t i = first_spring(list, low), end = first_spring(list, low + 1); i < end; ++i)
	{
		if (list->springs[i].other == high)
		{
			for (int k = 0; k < 3; ++k)
			{
				history.stretch[k] = is_swapped ? -list->springs[i].stretch[k] : list->springs[i].stretch[k];
			}
			history.stretch[3] = list->springs[i].side;
			return history;
		}
	}
	return history;
}

static bool is_absent(const SandWork *work, int32_t grain)
{
	return grain >= 0 && (work->grains[grain].flags & SAND_GRAIN_ABSENT) != 0;
}

// Cells from the lower corner of the domain. Positions lie within +-2^30, so the shifted one is positive.
static uint32_t cell_of(const Level *level, int64_t x)
{
	int64_t shifted = x + (INT64_C(1) << 30);
	return shifted > 0 ? (uint32_t)(((uint64_t)shifted * level->cell_scale) >> 32) : 0;
}

static bool is_fast(const SandWork *work, int32_t grain)
{
	return grain >= 0 && (work->grains[grain].flags & SAND_GRAIN_FAST) != 0;
}

typedef struct FillContext
{
	SandList *list;
	const SandWork *work;
	uint64_t *records;      // bucket and sphere
	const uint64_t *sorted; // the same in order of bucket
	uint32_t bucket_count;  // of all levels in use; absent spheres get this number
	int32_t count, block_count;
	int32_t (*level_counts)[2 * LEVEL_LIMIT]; // per block
} FillContext;

static int32_t fill_start(const FillContext *f, int block)
{
	return sand_part_start(f->count, block, f->block_count);
}

static int level_of_sphere(const SandList *list, const SandWork *work, const SandSphere *sphere)
{
	return level_of(list, sphere->radius, is_fast(work, sphere->grain));
}

static void count_levels_task(void *context, int block)
{
	FillContext *f = context;
	int32_t *counts = f->level_counts[block];
	memset(counts, 0, sizeof(f->level_counts[block]));
	for (int32_t i = fill_start(f, block), end = fill_start(f, block + 1); i < end; ++i)
	{
		const SandSphere *sphere = &f->work->spheres[i];
		if (!is_absent(f->work, sphere->grain))
		{
			++counts[level_of_sphere(f->list, f->work, sphere)];
		}
	}
}

static void key_task(void *context, int block)
{
	const FillContext *f = context;
	for (int32_t i = fill_start(f, block), end = fill_start(f, block + 1); i < end; ++i)
	{
		const SandSphere *sphere = &f->work->spheres[i];
		uint32_t bucket = f->bucket_count;
		if (!is_absent(f->work, sphere->grain))
		{
			const Level *level = &f->list->levels[level_of_sphere(f->list, f->work, sphere)];
			bucket = (cell_of(level, sphere->x[0]) + cell_of(level, sphere->x[1]) * level->stride_y +
			          cell_of(level, sphere->x[2]) * level->stride_z) &
			         level->mask;
			bucket += level->first_bucket;
		}
		f->records[i] = (uint64_t)bucket << 32 | (uint32_t)i;
	}
}

// Buckets (from, to] of all levels begin at entry i.
static void start_buckets(const FillContext *f, int64_t from, int64_t to, int32_t i)
{
	for (int l = 0; l < f->list->level_count; ++l)
	{
		const Level *level = &f->list->levels[l];
		int64_t first = level->first_bucket, size = (int64_t)level->mask + 1;
		int64_t begin = from + 1 > first ? from + 1 : first, end = to + 1 < first + size ? to + 1 : first + size;
		for (int64_t b = begin; level->entry_count > 0 && b < end; ++b)
		{
			level->starts[b - first] = i;
		}
	}
}

static void entry_task(void *context, int block)
{
	const FillContext *f = context;
	for (int32_t i = fill_start(f, block), end = fill_start(f, block + 1); i < end; ++i)
	{
		int32_t sphere = (int32_t)(uint32_t)f->sorted[i];
		int64_t bucket = (int64_t)(f->sorted[i] >> 32), last = i > 0 ? (int64_t)(f->sorted[i - 1] >> 32) : -1;
		memcpy(f->list->entries[i].x, f->work->spheres[sphere].x, sizeof(f->list->entries[i].x));
		f->list->entries[i].sphere = sphere;
		if (bucket != last)
		{
			start_buckets(f, last, bucket, i);
		}
	}
}

// All spheres into the tables of their class, in sphere order within a bucket.
static void fill_cells(SandList *list, const SandWork *work, SandSorter *sorter, SandPool *pool)
{
	int32_t level_counts[SAND_BLOCK_LIMIT][2 * LEVEL_LIMIT];
	FillContext f = {.list = list,
	                 .work = work,
	                 .records = sand_sorter_records(sorter),
	                 .count = list->desc.sphere_count + list->desc.wall_count,
	                 .level_counts = level_counts};
	f.block_count = sand_block_count(f.count, 256);
	for (int l = 0; l < list->level_count; ++l)
	{
		Level *level = &list->levels[l];
		level->entry_count = 0;
		level->margin = (l < list->size_count ? work->margin_slow : work->margin_fast) + 0.5f * list->desc.bridge;
		// Rounded so that no cell is narrower than two touching spheres of the level with their margins.
		double cell = ceil(2.0 * ((double)level->radius_max + (double)level->margin)) + 1;
		level->cell_scale = (uint32_t)(4294967296.0 / cell);
	}
	sand_pool_run(pool, count_levels_task, &f, f.block_count);
	int first = 0;
	for (int l = 0; l < list->level_count; ++l)
	{
		Level *level = &list->levels[l];
		for (int block = 0; block < f.block_count; ++block)
		{
			level->entry_count += level_counts[block][l];
		}
		level->first_entry = first;
		level->first_bucket = f.bucket_count;
		first += level->entry_count;
		f.bucket_count += level->entry_count > 0 ? level->mask + 1 : 0;
	}
	sand_pool_run(pool, key_task, &f, f.block_count);
	int key_bits = 1;
	while (f.bucket_count >> key_bits != 0)
	{
		++key_bits;
	}
	f.sorted = sand_sort(sorter, f.count, key_bits, pool);
	sand_pool_run(pool, entry_task, &f, f.block_count);
	// What follows the last entry's bucket, and the ends of the tables.
	start_buckets(&f, f.count > 0 ? (int64_t)(f.sorted[f.count - 1] >> 32) : -1, f.bucket_count, first);
	for (int l = 0; l < list->level_count; ++l)
	{
		Level *level = &list->levels[l];
		level->starts[level->mask + 1] = level->first_entry + level->entry_count;
	}
}

static bool grow_array(void **array, int32_t used, int32_t more, size_t size, int32_t *capacity)
{
	if (more <= *capacity - used)
	{
		return true;
	}
	int64_t wanted = ((int64_t)used + more) * 3 / 2 + 64;
	void *grown = wanted < INT32_MAX ? sand_alloc((size_t)wanted, size) : NULL;
	if (grown == NULL)
	{
		return false;
	}
	if (used > 0)
	{
		memcpy(grown, *array, (size_t)used * size);
	}
	sand_free(*array);
	*array = grown;
	*capacity = (int32_t)wanted;
	return true;
}

static bool grow(SandPair **pairs, int32_t used, int32_t more, int32_t *capacity)
{
	void *array = *pairs;
	bool is_grown = grow_array(&array, used, more, sizeof(SandPair), capacity);
	*pairs = array;
	return is_grown;
}

// Room for count elements, contents lost.
static bool make_room(void **array, int64_t count, size_t size, int32_t *capacity)
{
	if (count <= *capacity)
	{
		return true;
	}
	sand_free(*array);
	int64_t wanted = count + count / 4;
	*array = wanted < INT32_MAX ? sand_alloc((size_t)wanted, size) : NULL;
	*capacity = *array != NULL ? (int32_t)wanted : 0;
	return *array != NULL;
}

typedef struct Key
{
	int32_t sphere, pair;
} Key;

typedef struct Builder
{
	const SandList *list;
	const SandKernel *kernel;
	const SandWork *work;
	SandChunk *chunk;
	const int32_t *sphere_base;
	SandPair *outer;
	int32_t inner_count, outer_count, outer_capacity;
	SandPair *spare; // scratch
	int32_t spare_capacity;
	Key *keys; // scratch
	int32_t key_capacity;
	SandNear near; // spheres near the batch
	int32_t *hits; // scratch, as many
	int32_t near_capacity;
} Builder;

static bool is_still(const SandWork *work, int32_t grain)
{
	return grain < 0 || (work->grains[grain].flags & SAND_GRAIN_STILL) != 0;
}

static bool watch(Builder *b, int32_t sleeper, int32_t awake)
{
	SandChunk *chunk = b->chunk;
	if (!grow(&chunk->watch_pairs, chunk->watch_count, 1, &chunk->watch_capacity))
	{
		return false;
	}
	chunk->watch_pairs[chunk->watch_count++] = (SandPair){sleeper, awake};
	return true;
}

// Spheres i < j may touch: their pair goes to the list it belongs to. Of two spheres the first one's chunk owns it.
static bool take_pair(Builder *b, int32_t i, int32_t j, bool is_asleep, bool is_close)
{
	SandChunk *chunk = b->chunk;
	if (b->work->spheres[i].inverse_mass == 0 && b->work->spheres[j].inverse_mass == 0)
	{
		return true; // neither gives way: driven grains and walls
	}
	if (b->work->sleep_speed > 0)
	{
		int32_t other = b->work->spheres[j].grain;
		bool is_other_asleep = is_still(b->work, other);
		if (is_close && is_asleep)
		{
			__atomic_fetch_add(&b->work->supports[b->work->spheres[i].grain], 1, __ATOMIC_RELAXED);
		}
		if (is_close && is_other_asleep && other >= 0)
		{
			__atomic_fetch_add(&b->work->supports[other], 1, __ATOMIC_RELAXED);
		}
		if (is_asleep && is_other_asleep)
		{
			return true;
		}
		bool is_wall = other < 0;
		if ((is_asleep && !watch(b, i, j)) || (is_other_asleep && !is_wall && !watch(b, j, i)))
		{
			return false;
		}
	}
	if (j >= chunk->first_sphere + chunk->sphere_count)
	{
		b->outer[b->outer_count++] = (SandPair){i, j};
	}
	else
	{
		chunk->pairs[b->inner_count++] = (SandPair){i, j};
	}
	return true;
}

static float margin_of(const Builder *b, const SandSphere *sphere)
{
	return is_fast(b->work, sphere->grain) ? b->work->margin_fast : b->work->margin_slow;
}

// Spheres that are searched for at once: [first, end), of one class and close together.
typedef struct Batch
{
	int32_t first, end;
	int32_t low[3], high[3]; // of their centres
	float reach;             // units: radius, margin and half a bridge, the largest of them
} Batch;

enum
{
	BATCH_LIMIT = 16
};

static Batch next_batch(const Builder *b, int32_t first, int32_t limit)
{
	const SandSphere *spheres = b->work->spheres;
	int64_t extent = (int64_t)batch_extent(b->list);
	int level = level_of_sphere(b->list, b->work, &spheres[first]);
	Batch batch = {.first = first};
	memcpy(batch.low, spheres[first].x, sizeof(batch.low));
	memcpy(batch.high, spheres[first].x, sizeof(batch.high));
	int32_t i = first;
	for (; i < limit && i - first < BATCH_LIMIT; ++i)
	{
		int32_t low[3], high[3];
		bool is_close = true;
		for (int k = 0; k < 3; ++k)
		{
			low[k] = spheres[i].x[k] < batch.low[k] ? spheres[i].x[k] : batch.low[k];
			high[k] = spheres[i].x[k] > batch.high[k] ? spheres[i].x[k] : batch.high[k];
			is_close = is_close && (int64_t)high[k] - low[k] <= extent;
		}
		if (!is_close || level_of_sphere(b->list, b->work, &spheres[i]) != level ||
		    is_absent(b->work, spheres[i].grain))
		{
			break;
		}
		memcpy(batch.low, low, sizeof(low));
		memcpy(batch.high, high, sizeof(high));
		batch.reach = spheres[i].radius > batch.reach ? spheres[i].radius : batch.reach;
	}
	batch.end = i;
	batch.reach += margin_of(b, &spheres[first]) + 0.5f * b->list->desc.bridge;
	return batch;
}

static bool make_near_room(Builder *b, int64_t count)
{
	if (count + 8 <= b->near_capacity)
	{
		return true;
	}
	int64_t wanted = (count + 8) * 3 / 2 + 256;
	// Five rows of one block.
	int32_t *grown = wanted < INT32_MAX / 8 ? sand_alloc(5 * (size_t)wanted, sizeof(int32_t)) : NULL;
	if (grown == NULL)
	{
		return false;
	}
	for (int k = 0; k < 4 && b->near.count > 0; ++k)
	{
		memcpy(grown + k * wanted, k < 3 ? b->near.x[k] : b->near.sphere, (size_t)b->near.count * sizeof(int32_t));
	}
	sand_free(b->near.x[0]);
	for (int k = 0; k < 3; ++k)
	{
		b->near.x[k] = grown + k * wanted;
	}
	b->near.sphere = grown + 3 * wanted;
	b->hits = grown + 4 * wanted;
	b->near_capacity = (int32_t)wanted;
	return true;
}

// Entries [from, to) that come after the batch's first sphere join the near ones.
static bool gather_run(Builder *b, const Batch *batch, int32_t from, int32_t to)
{
	if (!make_near_room(b, (int64_t)b->near.count + to - from))
	{
		return false;
	}
	int32_t count = b->near.count;
	for (int32_t i = from; i < to; ++i)
	{
		const Cell *entry = &b->list->entries[i];
		for (int k = 0; k < 3; ++k)
		{
			b->near.x[k][count] = entry->x[k];
		}
		b->near.sphere[count] = entry->sphere;
		count += entry->sphere > batch->first;
	}
	b->near.count = count;
	return true;
}

// Spheres of a level that any of the batch may reach.
static bool gather_level(Builder *b, const Level *level, const Batch *batch)
{
	int64_t reach = (int64_t)ceil((double)batch->reach + (double)level->margin + (double)level->radius_max);
	uint32_t low[3], high[3];
	for (int k = 0; k < 3; ++k)
	{
		low[k] = cell_of(level, batch->low[k] - reach);
		high[k] = cell_of(level, batch->high[k] + reach);
	}
	b->near.count = 0;
	for (uint32_t z = low[2]; z <= high[2]; ++z)
	{
		for (uint32_t y = low[1]; y <= high[1]; ++y)
		{
			uint32_t row = y * level->stride_y + z * level->stride_z;
			uint32_t first = (low[0] + row) & level->mask, last = (high[0] + row) & level->mask;
			// A row that wraps around the table's end is read in two pieces.
			int32_t to = level->starts[first <= last ? last + 1 : level->mask + 1];
			if (!gather_run(b, batch, level->starts[first], to) ||
			    (first > last && !gather_run(b, batch, level->starts[0], level->starts[last + 1])))
			{
				return false;
			}
		}
	}
	for (int k = 0; k < 8 && b->near.count > 0; ++k)
	{
		b->near.sphere[b->near.count + k] = -1; // the kernel reads in eights
	}
	return true;
}

// Pairs of sphere i with later ones among the near. The level's largest radius decides most without looking at the
// sphere.
static bool search_near(Builder *b, const Level *level, int32_t i)
{
	const SandSphere *spheres = b->work->spheres, *a = &spheres[i];
	float reach_own = a->radius + margin_of(b, a) + 0.5f * b->list->desc.bridge;
	float widest = reach_own + level->margin + level->radius_max;
	bool is_asleep = is_still(b->work, a->grain);
	int count = b->kernel->near(&b->near, a->x, i, widest * widest, b->hits);
	if (!grow(&b->chunk->pairs, b->inner_count, count + 8, &b->chunk->pair_capacity) ||
	    !grow(&b->outer, b->outer_count, count, &b->outer_capacity))
	{
		return false;
	}
	for (int k = 0; k < count; ++k)
	{
		int32_t hit = b->hits[k], j = b->near.sphere[hit];
		const SandSphere *s = &spheres[j];
		// Positions lie within +-2^30, so differences fit.
		float dx = (float)(a->x[0] - b->near.x[0][hit]), dy = (float)(a->x[1] - b->near.x[1][hit]),
		      dz = (float)(a->x[2] - b->near.x[2][hit]);
		float reach = reach_own + level->margin + s->radius, touch = SUPPORT_REACH * (a->radius + s->radius);
		float square = dx * dx + dy * dy + dz * dz;
		if (square < reach * reach && s->grain != a->grain && !take_pair(b, i, j, is_asleep, square < touch * touch))
		{
			return false;
		}
	}
	return true;
}

// The batch's pairs, found class by class, into the order of their first spheres, otherwise as found.
static bool order_pairs(Builder *b, const Batch *batch, SandPair *all, int32_t first, int32_t end)
{
	int32_t starts[BATCH_LIMIT + 1] = {0}, count = end - first;
	if (count == 0)
	{
		return true;
	}
	if (!grow(&b->spare, 0, count, &b->spare_capacity))
	{
		return false;
	}
	SandPair *pairs = all + first;
	for (int32_t i = 0; i < count; ++i)
	{
		++starts[pairs[i].a - batch->first + 1];
		b->spare[i] = pairs[i];
	}
	for (int k = 0; k < BATCH_LIMIT; ++k)
	{
		starts[k + 1] += starts[k];
	}
	for (int32_t i = 0; i < count; ++i)
	{
		pairs[starts[b->spare[i].a - batch->first]++] = b->spare[i];
	}
	return true;
}

static bool search_batch(Builder *b, const Batch *batch)
{
	int32_t inner = b->inner_count, outer = b->outer_count;
	int searched = 0;
	for (int l = 0; l < b->list->level_count; ++l)
	{
		const Level *level = &b->list->levels[l];
		if (level->entry_count == 0)
		{
			continue;
		}
		if (!gather_level(b, level, batch))
		{
			return false;
		}
		searched += b->near.count > 0;
		for (int32_t i = batch->first; i < batch->end && b->near.count > 0; ++i)
		{
			if (!search_near(b, level, i))
			{
				return false;
			}
		}
	}
	return searched < 2 || (order_pairs(b, batch, b->chunk->pairs, inner, b->inner_count) &&
	                        order_pairs(b, batch, b->outer, outer, b->outer_count));
}

static bool search_obstacles(Builder *b, int32_t i)
{
	const SandSphere *s = &b->work->spheres[i];
	SandChunk *chunk = b->chunk;
	int obstacle_count = b->list->desc.obstacle_count;
	if (obstacle_count == 0 || is_still(b->work, s->grain) || s->inverse_mass == 0)
	{
		return true;
	}
	if (!grow(&chunk->obstacle_pairs, chunk->obstacle_pair_count, obstacle_count * SAND_TOUCH_LIMIT,
	          &chunk->obstacle_pair_capacity))
	{
		return false;
	}
	float margin = is_fast(b->work, s->grain) ? b->work->margin_fast : b->work->margin_slow;
	double p[3], reach = ((double)(s->radius + margin) + (double)b->list->desc.bridge) * b->work->unit;
	for (int k = 0; k < 3; ++k)
	{
		p[k] = (double)s->x[k] * b->work->unit + b->work->origin[k];
	}
	for (int o = 0; o < obstacle_count; ++o)
	{
		SandTouch touches[SAND_TOUCH_LIMIT];
		int slots[SAND_TOUCH_LIMIT], count = sand_obstacle_touch(&b->work->obstacles[o], p, reach, touches, slots);
		for (int t = 0; t < count; ++t)
		{
			chunk->obstacle_pairs[chunk->obstacle_pair_count++] = (SandPair){i, SAND_SLOT_COUNT * o + slots[t]};
		}
	}
	return true;
}

// A sleeper that a moving mesh comes near wakes with the next list.
static void wake_by_collider(Builder *b, int32_t i, int32_t collider, const double p[3], double reach)
{
	const SandWork *work = b->work;
	const SandGrain *grain = &work->grains[work->spheres[i].grain];
	if ((grain->flags & SAND_GRAIN_ASLEEP) != 0 && work->collider_slack[collider] > 0 &&
	    sand_collider_near(work->colliders[collider], work->collider_states[collider], p, reach, NULL, 0) > 0)
	{
		// Not the flags: other chunks are reading them.
		work->traits[work->spheres[i].grain].is_woken = 1;
		b->chunk->needs_list = 1;
	}
}

// Which of the first 64 colliders any sphere of the batch may touch: most are far from all of them, and the batch says
// so at once. The others are always asked.
static uint64_t colliders_near(const Builder *b, const Batch *batch)
{
	const SandWork *work = b->work;
	double middle[3], square = 0;
	uint64_t near = 0;
	for (int k = 0; k < 3 && work->collider_count > 0; ++k)
	{
		double half = 0.5 * ((double)batch->high[k] - (double)batch->low[k]) * work->unit;
		middle[k] = (double)batch->low[k] * work->unit + half + work->origin[k];
		square += half * half;
	}
	double reach = sqrt(square) + ((double)batch->reach + (double)b->list->desc.bridge) * work->unit;
	for (int c = 0; c < work->collider_count && c < 64; ++c)
	{
		bool is_near = sand_collider_is_near(work->colliders[c], work->collider_states[c], middle,
		                                     reach + work->collider_slack[c]);
		near |= (uint64_t)is_near << c;
	}
	return near;
}

// Triangles of the colliders that the sphere may touch, a group for each collider.
static bool search_colliders(Builder *b, int32_t i, uint64_t near)
{
	const SandWork *work = b->work;
	const SandSphere *s = &work->spheres[i];
	SandChunk *chunk = b->chunk;
	if (work->collider_count == 0 || s->inverse_mass == 0)
	{
		return true;
	}
	bool is_asleep = is_still(work, s->grain);
	float margin = is_fast(work, s->grain) ? work->margin_fast : work->margin_slow;
	double p[3], own = ((double)(s->radius + margin) + (double)b->list->desc.bridge) * work->unit;
	for (int k = 0; k < 3; ++k)
	{
		p[k] = (double)s->x[k] * work->unit + work->origin[k];
	}
	for (int32_t c = 0; c < work->collider_count; ++c)
	{
		double reach = own + work->collider_slack[c];
		if (c < 64 && (near >> c & 1) == 0)
		{
			continue;
		}
		if (is_asleep)
		{
			wake_by_collider(b, i, c, p, reach);
			continue;
		}
		int room = chunk->near_capacity - chunk->near_count, count;
		while ((count = sand_collider_near(work->colliders[c], work->collider_states[c], p, reach,
		                                   room > 0 ? chunk->near_triangles + chunk->near_count : NULL, room)) > room)
		{
			void *triangles = chunk->near_triangles;
			bool is_grown = grow_array(&triangles, chunk->near_count, count, sizeof(int32_t), &chunk->near_capacity);
			chunk->near_triangles = triangles;
			if (!is_grown)
			{
				return false;
			}
			room = chunk->near_capacity - chunk->near_count;
		}
		if (count > 0)
		{
			void *groups = chunk->groups;
			bool is_grown = grow_array(&groups, chunk->group_count, 1, sizeof(SandGroup), &chunk->group_capacity);
			chunk->groups = groups;
			if (!is_grown)
			{
				return false;
			}
			int32_t law = work->law_of[work->traits[s->grain].material * work->material_count +
			                           sand_collider_material(work->colliders[c])];
			chunk->groups[chunk->group_count++] = (SandGroup){i, c, law, chunk->near_count, count};
			chunk->near_count += count;
		}
	}
	return true;
}

static int32_t law_of_pair(const SandWork *work, SandPair pair)
{
	int32_t other = work->spheres[pair.b].grain;
	int32_t a = work->traits[work->spheres[pair.a].grain].material;
	int32_t b = other < 0 ? work->wall_material : work->traits[other].material;
	return work->law_of[a * work->material_count + b];
}

// Pairs in order of law, inner before outer, otherwise in order of their first spheres, then of class and cell of the
// second, then of the second.
static bool sort_sections(Builder *b)
{
	SandChunk *chunk = b->chunk;
	const SandWork *work = b->work;
	int law_count = work->law_count;
	if (chunk->sections == NULL)
	{
		chunk->sections = sand_alloc(2 * (size_t)law_count, sizeof(SandSection));
	}
	if (chunk->sections == NULL || !grow(&chunk->pairs, b->inner_count, b->outer_count + 8, &chunk->pair_capacity))
	{
		return false;
	}
	if (b->outer_count > 0)
	{
		memcpy(chunk->pairs + b->inner_count, b->outer, (size_t)b->outer_count * sizeof(SandPair));
	}
	chunk->inner_count = b->inner_count;
	chunk->pair_count = b->inner_count + b->outer_count;
	chunk->section_count = 2 * law_count;
	for (int i = 0; i < 2 * law_count; ++i)
	{
		chunk->sections[i] = (SandSection){.law = i % law_count, .is_outer = i >= law_count};
	}
	if (law_count == 1)
	{
		chunk->sections[0].count = b->inner_count;
		chunk->sections[1].first = b->inner_count;
		chunk->sections[1].count = b->outer_count;
	}
	else
	{
		if (!grow(&b->outer, 0, chunk->pair_count, &b->outer_capacity))
		{
			return false;
		}
		for (int i = 0; i < chunk->pair_count; ++i)
		{
			b->outer[i] = chunk->pairs[i];
			++chunk->sections[law_of_pair(work, chunk->pairs[i]) + (i < b->inner_count ? 0 : law_count)].count;
		}
		for (int i = 1; i < 2 * law_count; ++i)
		{
			chunk->sections[i].first = chunk->sections[i - 1].first + chunk->sections[i - 1].count;
		}
		for (int i = 0; i < chunk->pair_count; ++i)
		{
			SandSection *section =
			    &chunk->sections[law_of_pair(work, b->outer[i]) + (i < b->inner_count ? 0 : law_count)];
			chunk->pairs[section->first++] = b->outer[i];
		}
		for (int i = 0; i < 2 * law_count; ++i)
		{
			chunk->sections[i].first -= chunk->sections[i].count;
		}
	}
	for (int k = 0; k < 8; ++k)
	{
		// The kernel reads in eights.
		chunk->pairs[chunk->pair_count + k] = (SandPair){chunk->first_sphere, chunk->first_sphere};
	}
	return true;
}

// Ascending by sphere: radix passes over the bits that differ. scratch has the same size; returns which of the two
// holds the result.
static Key *sort_keys(Key *keys, Key *scratch, int32_t count)
{
	uint32_t different = 0;
	for (int32_t i = 1; i < count; ++i)
	{
		different |= (uint32_t)(keys[i].sphere ^ keys[0].sphere);
	}
	for (int shift = 0; shift < 32 && different >> shift != 0; shift += 8)
	{
		int32_t starts[257] = {0};
		for (int32_t i = 0; i < count; ++i)
		{
			++starts[((uint32_t)keys[i].sphere >> shift & 255) + 1];
		}
		for (int i = 0; i < 256; ++i)
		{
			starts[i + 1] += starts[i];
		}
		for (int32_t i = 0; i < count; ++i)
		{
			scratch[starts[(uint32_t)keys[i].sphere >> shift & 255]++] = keys[i];
		}
		Key *swap = keys;
		keys = scratch;
		scratch = swap;
	}
	return keys;
}

// Every sphere of another chunk that an outer pair touches becomes a ghost with a place in ghost_sums.
static bool find_ghosts(Builder *b)
{
	SandChunk *chunk = b->chunk;
	int32_t outer_count = chunk->pair_count - chunk->inner_count, key_count = 0;
	if (!make_room((void **)&b->keys, 2 * (int64_t)outer_count, sizeof(Key), &b->key_capacity) ||
	    !make_room((void **)&chunk->outer_slots, outer_count, sizeof(int32_t), &chunk->outer_capacity))
	{
		return false;
	}
	for (int32_t i = 0; i < outer_count; ++i)
	{
		int32_t sphere = chunk->pairs[chunk->inner_count + i].b;
		if (sphere < b->list->desc.sphere_count)
		{
			b->keys[key_count++] = (Key){sphere, i};
		}
	}
	const Key *keys = sort_keys(b->keys, b->keys + outer_count, key_count);
	chunk->ghost_count = 0;
	for (int32_t i = 0; i < key_count; ++i)
	{
		chunk->ghost_count += i == 0 || keys[i].sphere != keys[i - 1].sphere;
	}
	if (!make_room((void **)&chunk->ghosts, chunk->ghost_count, sizeof(int32_t), &chunk->ghost_capacity) ||
	    !make_room((void **)&chunk->ghost_sums, (int64_t)chunk->ghost_count + 1, sizeof(SandSum),
	               &chunk->ghost_sum_capacity))
	{
		return false;
	}
	for (int32_t i = 0; i < outer_count; ++i)
	{
		chunk->outer_slots[i] = chunk->ghost_count; // walls
	}
	int32_t ghost = -1;
	for (int32_t i = 0; i < key_count; ++i)
	{
		if (i == 0 || keys[i].sphere != keys[i - 1].sphere)
		{
			chunk->ghosts[++ghost] = keys[i].sphere;
		}
		chunk->outer_slots[keys[i].pair] = ghost;
	}
	return true;
}

// First of the ascending values in [from, to) that is not below limit.
static int32_t lower_bound(const int32_t *values, int32_t from, int32_t to, int32_t limit)
{
	while (from < to)
	{
		int32_t middle = from + (to - from) / 2;
		if (values[middle] < limit)
		{
			from = middle + 1;
		}
		else
		{
			to = middle;
		}
	}
	return from;
}

static int32_t chunk_of_sphere(const SandChunk *chunks, int chunk_count, int32_t sphere)
{
	int32_t from = 0, to = chunk_count;
	while (to - from > 1)
	{
		int32_t middle = from + (to - from) / 2;
		if (chunks[middle].first_sphere <= sphere)
		{
			from = middle;
		}
		else
		{
			to = middle;
		}
	}
	return from;
}

static bool add_inflow(SandChunk *chunk, SandInflow inflow)
{
	if (chunk->inflow_count == chunk->inflow_capacity)
	{
		int32_t capacity = 2 * chunk->inflow_capacity + 16;
		SandInflow *grown = sand_alloc((size_t)capacity, sizeof(SandInflow));
		if (grown == NULL)
		{
			return false;
		}
		if (chunk->inflow_count > 0)
		{
			memcpy(grown, chunk->inflows, (size_t)chunk->inflow_count * sizeof(SandInflow));
		}
		sand_free(chunk->inflows);
		chunk->inflows = grown;
		chunk->inflow_capacity = capacity;
	}
	chunk->inflows[chunk->inflow_count++] = inflow;
	return true;
}

// Tells every chunk which ghosts of the others are spheres of its own.
static bool connect_chunks(SandChunk *chunks, int chunk_count)
{
	for (int c = 0; c < chunk_count; ++c)
	{
		chunks[c].inflow_count = 0;
	}
	for (int c = 0; c < chunk_count; ++c)
	{
		for (int32_t first = 0, end; first < chunks[c].ghost_count; first = end)
		{
			SandChunk *target = &chunks[chunk_of_sphere(chunks, chunk_count, chunks[c].ghosts[first])];
			end = lower_bound(chunks[c].ghosts, first, chunks[c].ghost_count,
			                  target->first_sphere + target->sphere_count);
			if (!add_inflow(target, (SandInflow){c, first, end - first}))
			{
				return false;
			}
		}
	}
	return true;
}

static bool find_obstacle_laws(Builder *b)
{
	SandChunk *chunk = b->chunk;
	const SandWork *work = b->work;
	if (!make_room((void **)&chunk->obstacle_laws, chunk->obstacle_pair_count, sizeof(int32_t),
	               &chunk->obstacle_law_capacity))
	{
		return false;
	}
	for (int32_t i = 0; i < chunk->obstacle_pair_count; ++i)
	{
		SandPair pair = chunk->obstacle_pairs[i];
		int32_t material = work->traits[work->spheres[pair.a].grain].material;
		int32_t other = work->obstacles[pair.b / SAND_SLOT_COUNT].material;
		chunk->obstacle_laws[i] = work->law_of[material * work->material_count + other];
	}
	return true;
}

// Who rests through this list: its springs wait where they are saved.
static void note_rested(const Builder *b)
{
	const SandChunk *chunk = b->chunk;
	for (int32_t i = chunk->first_sphere; i < chunk->first_sphere + chunk->sphere_count; ++i)
	{
		b->list->is_rested[lasting_id(b->list, b->work, b->sphere_base, i)] =
		    is_still(b->work, b->work->spheres[i].grain);
	}
}

static bool restore_sides(Builder *b)
{
	SandChunk *chunk = b->chunk;
	sand_free(chunk->near_history);
	chunk->near_history = sand_alloc((size_t)chunk->near_count, sizeof(SandHistory));
	if (chunk->near_history == NULL ||
	    !make_room((void **)&chunk->near_sides, chunk->near_count, sizeof(float), &chunk->side_capacity))
	{
		return false;
	}
	for (int g = 0; g < chunk->group_count; ++g)
	{
		const SandGroup *group = &chunk->groups[g];
		int32_t low = lasting_id(b->list, b->work, b->sphere_base, group->sphere);
		for (int i = group->first; i < group->first + group->count; ++i)
		{
			SandHistory found =
			    find_spring(b->list, low, triangle_id(b->list, group->collider, chunk->near_triangles[i]));
			chunk->near_sides[i] = found.stretch[3];
			found.stretch[3] = 0;
			chunk->near_history[i] = found;
		}
	}
	return true;
}

static bool restore_history(Builder *b)
{
	SandChunk *chunk = b->chunk;
	note_rested(b);
	sand_free(chunk->history);
	sand_free(chunk->obstacle_history);
	chunk->history = sand_alloc((size_t)chunk->pair_count + 8, sizeof(SandHistory));
	chunk->obstacle_history = sand_alloc((size_t)chunk->obstacle_pair_count, sizeof(SandHistory));
	if (chunk->history == NULL || chunk->obstacle_history == NULL)
	{
		return false;
	}
	for (int32_t i = 0; i < chunk->pair_count; ++i)
	{
		chunk->history[i] = find_spring(b->list, lasting_id(b->list, b->work, b->sphere_base, chunk->pairs[i].a),
		                                lasting_id(b->list, b->work, b->sphere_base, chunk->pairs[i].b));
	}
	for (int32_t i = 0; i < chunk->obstacle_pair_count; ++i)
	{
		chunk->obstacle_history[i] =
		    find_spring(b->list, lasting_id(b->list, b->work, b->sphere_base, chunk->obstacle_pairs[i].a),
		                -1 - chunk->obstacle_pairs[i].b);
	}
	return restore_sides(b);
}

static bool build_chunk(Builder *b)
{
	SandChunk *chunk = b->chunk;
	chunk->obstacle_pair_count = chunk->watch_count = chunk->group_count = chunk->near_count = 0;
	for (int32_t i = chunk->first_sphere, end = i + chunk->sphere_count; i < end;)
	{
		if (is_absent(b->work, b->work->spheres[i].grain))
		{
			++i;
			continue;
		}
		Batch batch = next_batch(b, i, end);
		if (!search_batch(b, &batch))
		{
			return false;
		}
		uint64_t near = colliders_near(b, &batch);
		for (; i < batch.end; ++i)
		{
			if (!search_obstacles(b, i) || !search_colliders(b, i, near))
			{
				return false;
			}
		}
	}
	if (chunk->collider_sums == NULL && b->work->collider_count > 0)
	{
		chunk->collider_sums = sand_alloc(6 * (size_t)b->work->collider_count, sizeof(double));
	}
	if (chunk->collider_sums == NULL && b->work->collider_count > 0)
	{
		return false;
	}
	return sort_sections(b) && find_ghosts(b) && find_obstacle_laws(b) &&
	       (!b->list->desc.has_history || restore_history(b));
}

typedef struct BuildContext
{
	const SandList *list;
	const SandKernel *kernel;
	const SandWork *work;
	SandChunk *chunks;
	const int32_t *sphere_base;
} BuildContext;

static void build_task(void *context, int chunk_index)
{
	const BuildContext *c = context;
	Builder builder = {.list = c->list,
	                   .kernel = c->kernel,
	                   .work = c->work,
	                   .chunk = &c->chunks[chunk_index],
	                   .sphere_base = c->sphere_base};
	builder.chunk->is_short = !build_chunk(&builder);
	sand_free(builder.outer);
	sand_free(builder.spare);
	sand_free(builder.keys);
	sand_free(builder.near.x[0]);
}

SandStatus sand_list_build(SandList *list, const SandKernel *kernel, const SandWork *work, SandChunk *chunks,
                           int chunk_count, const int32_t *sphere_base, SandSorter *sorter, SandPool *pool,
                           SandError *err)
{
	fill_cells(list, work, sorter, pool);
	if (list->desc.has_history)
	{
		memset(list->is_rested + list->desc.sphere_count, 1, (size_t)list->desc.wall_count);
	}
	BuildContext context = {list, kernel, work, chunks, sphere_base};
	sand_pool_run(pool, build_task, &context, chunk_count);
	for (int c = 0; c < chunk_count; ++c)
	{
		if (chunks[c].is_short)
		{
			return sand_fail_memory(err, (size_t)chunks[c].pair_capacity * 2 * sizeof(SandPair), "the neighbour list");
		}
	}
	return connect_chunks(chunks, chunk_count)
	           ? SAND_OK
	           : sand_fail_memory(err, (size_t)chunk_count * sizeof(SandInflow), "the chunks' borders");
}

_Static_assert(SAND_CLASS_LIMIT == 2 * LEVEL_LIMIT, "slow and fast classes");

int sand_list_classes(const SandList *list, SandListClass classes_out[SAND_CLASS_LIMIT])
{
	for (int l = 0; l < list->level_count; ++l)
	{
		const Level *level = &list->levels[l];
		classes_out[l] = (SandListClass){level->radius_max, level->mask, level->stride_y, level->stride_z};
	}
	return list->level_count;
}

int64_t sand_list_spring_count(const SandList *list)
{
	return list->desc.has_history ? first_spring(list, list->desc.sphere_count + list->desc.wall_count) : 0;
}

void sand_list_read_springs(const SandList *list, SandSpring *springs_out)
{
	int total = list->desc.sphere_count + list->desc.wall_count;
	for (int low = 0; low < total && list->desc.has_history; ++low)
	{
		int32_t begin = first_spring(list, low), end = first_spring(list, low + 1);
		for (int32_t i = begin; i < end; ++i)
		{
			// By insertion, for they were saved in any order and are few.
			int32_t place = i;
			for (; place > begin && springs_out[place - 1].other > list->springs[i].other; --place)
			{
				springs_out[place] = springs_out[place - 1];
			}
			springs_out[place].low = low;
			springs_out[place].other = list->springs[i].other;
			springs_out[place].side = list->springs[i].side;
			memcpy(springs_out[place].stretch, list->springs[i].stretch, sizeof(springs_out[place].stretch));
		}
	}
}

SandStatus sand_list_write_springs(SandList *list, const SandSpring *springs, int64_t count, SandError *err)
{
	int32_t total = list->desc.sphere_count + list->desc.wall_count;
	if (!list->desc.has_history)
	{
		return count == 0 ? SAND_OK
		                  : sand_fail(err, SAND_ERROR_CACHE,
		                              "The checkpoint has %lld friction springs, but the scene's friction keeps none",
		                              (long long)count);
	}
	for (int64_t i = 0; i < count; ++i)
	{
		if (springs[i].low < 0 || springs[i].low >= total || springs[i].other >= total ||
		    (i > 0 && springs[i].low < springs[i - 1].low))
		{
			return sand_fail(
			    err, SAND_ERROR_CACHE,
			    "Friction spring %lld of the checkpoint joins spheres %d and %d, expected ascending ones below %d",
			    (long long)i, springs[i].low, springs[i].other, total);
		}
	}
	Spring *copy = sand_alloc((size_t)count, sizeof(Spring));
	if (copy == NULL)
	{
		return sand_fail_memory(err, (size_t)count * sizeof(Spring), "the friction springs");
	}
	for (int64_t i = 0, low = 0; i <= count; ++i)
	{
		// Starts of the spheres up to this spring's.
		for (int64_t next = i < count ? springs[i].low : total; low <= next; ++low)
		{
			atomic_store_explicit(&list->spring_start[low], (int)i, memory_order_relaxed);
		}
		if (i < count)
		{
			copy[i].other = springs[i].other;
			copy[i].side = springs[i].side;
			memcpy(copy[i].stretch, springs[i].stretch, sizeof(copy[i].stretch));
		}
	}
	sand_free(list->springs);
	list->springs = copy;
	list->spring_capacity = count;
	return SAND_OK;
}
