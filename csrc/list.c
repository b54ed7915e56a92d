// list: which spheres may touch in the next steps.
// Comes in: placed spheres in chunks. Goes out: pairs per chunk, with their tangential springs.
#include "list.h"

#include <math.h>
#include <string.h>

enum
{
	LEVEL_LIMIT = 16
};

// One class of spheres: radii within a factor of two, and slow or fast. Cells along x are neighbouring buckets, so that
// a row of cells is one run of entries; rows start at strides chosen so that no two rows of one search share a bucket.
typedef struct Level
{
	int first_entry, entry_count;
	float radius_max;    // units
	float margin;        // units, of this list
	uint32_t cell_scale; // cell = (x * cell_scale) >> 32
	int span;            // cells that the largest search reaches to either side
	uint32_t mask;
	uint32_t stride_y, stride_z;
	int32_t *starts; // mask + 2
} Level;

typedef struct Spring
{
	int32_t other; // lasting id of the sphere with the higher one, or -1 - (SAND_SLOT_COUNT * obstacle + slot)
	float stretch[3];
} Spring;

struct SandList
{
	SandListDesc desc;
	Level levels[2 * LEVEL_LIMIT]; // slow ones, then as many fast ones
	int level_count;               // all of them
	int size_count;                // classes of size
	SandCell *entries;
	uint32_t *buckets; // per sphere, in its level's table
	Spring *springs;
	int32_t *spring_start; // per lasting sphere id, + 1
	int64_t spring_capacity;
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

// Strides of the rows: rows of one search differ by up to 2 span in y and z and are 2 span + 1 buckets long.
static void choose_strides(Level *level)
{
	int reach = 2 * level->span;
	for (uint32_t attempt = 0;; ++attempt)
	{
		level->stride_y = (UINT32_C(0x9E3779B1) * (2 * attempt + 1)) & level->mask;
		level->stride_z = (UINT32_C(0x85EBCA77) * (2 * attempt + 1)) & level->mask;
		bool is_good = true;
		for (int z = -reach; z <= reach && is_good; ++z)
		{
			for (int y = -reach; y <= reach && is_good; ++y)
			{
				uint32_t offset = (uint32_t)y * level->stride_y + (uint32_t)z * level->stride_z;
				uint32_t forward = offset & level->mask, backward = (0u - offset) & level->mask;
				is_good = (y == 0 && z == 0) || (forward > (uint32_t)reach && backward > (uint32_t)reach);
			}
		}
		if (is_good)
		{
			return;
		}
	}
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
		level->span = (int)ceil(reach / cell);
		size_t side = (size_t)(4 * level->span + 1), wanted = side * side * side * 4;
		wanted = 2 * total > wanted ? 2 * total : wanted;
		size_t table = 64;
		while (table < wanted)
		{
			table *= 2;
		}
		level->mask = (uint32_t)(table - 1);
		choose_strides(level);
		level->starts = sand_alloc(table + 1, sizeof(int32_t));
		if (level->starts == NULL)
		{
			sand_list_destroy(list);
			return sand_fail_memory(err, table * sizeof(int32_t), "the cells of the neighbour list");
		}
	}
	list->entries = sand_alloc(total + 8, sizeof(SandCell)); // the kernel reads in eights
	list->buckets = sand_alloc(total, sizeof(uint32_t));
	list->spring_start = sand_alloc(desc->has_history ? total + 1 : 1, sizeof(int32_t));
	if (list->entries == NULL || list->buckets == NULL || list->spring_start == NULL)
	{
		sand_list_destroy(list);
		return sand_fail_memory(err, total * sizeof(SandCell), "the neighbour list");
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
	sand_free(list->buckets);
	sand_free(list->springs);
	sand_free(list->spring_start);
	sand_free(list);
}

void sand_list_chunk_free(SandChunk *chunk)
{
	sand_free(chunk->pairs);
	sand_free(chunk->history);
	sand_free(chunk->obstacle_pairs);
	sand_free(chunk->obstacle_history);
	sand_free(chunk->watch_pairs);
	sand_free(chunk->sections);
	chunk->pairs = chunk->obstacle_pairs = chunk->watch_pairs = NULL;
	chunk->history = chunk->obstacle_history = NULL;
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
	const SandGrain *grain = &work->grains[work->spheres[sphere].grain];
	return sphere_base[grain->id] + sphere - grain->first_sphere;
}

static bool is_stretched(const SandHistory *history)
{
	return history->stretch[0] != 0 || history->stretch[1] != 0 || history->stretch[2] != 0;
}

// A pair across a border is known to both chunks; the one that owns its first sphere saves it.
static bool is_owner(const SandChunk *chunk, int32_t sphere)
{
	return sphere >= chunk->first_sphere && sphere < chunk->first_sphere + chunk->sphere_count;
}

static void save_spring(SandList *list, const SandWork *work, const int32_t *sphere_base, SandPair pair,
                        bool is_obstacle, const SandHistory *history, bool is_counting)
{
	int32_t a = lasting_id(list, work, sphere_base, pair.a);
	int32_t b = is_obstacle ? -1 - pair.b : lasting_id(list, work, sphere_base, pair.b);
	bool is_swapped = !is_obstacle && b < a;
	int32_t low = is_swapped ? b : a, high = is_swapped ? a : b;
	if (is_counting)
	{
		++list->spring_start[low + 1];
		return;
	}
	Spring *spring = &list->springs[list->spring_start[low]++];
	spring->other = high;
	for (int k = 0; k < 3; ++k)
	{
		spring->stretch[k] = is_swapped ? -history->stretch[k] : history->stretch[k];
	}
}

static void save_springs(SandList *list, const SandWork *work, const SandChunk *chunks, int chunk_count,
                         const int32_t *sphere_base, bool is_counting)
{
	for (int c = 0; c < chunk_count; ++c)
	{
		const SandChunk *chunk = &chunks[c];
		for (int i = 0; i < chunk->pair_count; ++i)
		{
			if (is_stretched(&chunk->history[i]) && is_owner(chunk, chunk->pairs[i].a))
			{
				save_spring(list, work, sphere_base, chunk->pairs[i], false, &chunk->history[i], is_counting);
			}
		}
		for (int i = 0; i < chunk->obstacle_pair_count; ++i)
		{
			if (is_stretched(&chunk->obstacle_history[i]))
			{
				save_spring(list, work, sphere_base, chunk->obstacle_pairs[i], true, &chunk->obstacle_history[i],
				            is_counting);
			}
		}
	}
}

SandStatus sand_list_save_history(SandList *list, const SandWork *work, const SandChunk *chunks, int chunk_count,
                                  const int32_t *sphere_base, SandError *err)
{
	if (!list->desc.has_history)
	{
		return SAND_OK;
	}
	size_t total = (size_t)list->desc.sphere_count + (size_t)list->desc.wall_count;
	memset(list->spring_start, 0, (total + 1) * sizeof(int32_t));
	save_springs(list, work, chunks, chunk_count, sphere_base, true);
	for (size_t i = 0; i < total; ++i)
	{
		list->spring_start[i + 1] += list->spring_start[i];
	}
	int64_t count = list->spring_start[total];
	if (count > list->spring_capacity)
	{
		sand_free(list->springs);
		list->spring_capacity = count + count / 2;
		list->springs = sand_alloc((size_t)list->spring_capacity, sizeof(Spring));
		if (list->springs == NULL)
		{
			list->spring_capacity = 0;
			memset(list->spring_start, 0, (total + 1) * sizeof(int32_t));
			return sand_fail_memory(err, (size_t)count * sizeof(Spring), "the friction springs");
		}
	}
	save_springs(list, work, chunks, chunk_count, sphere_base, false);
	memmove(list->spring_start + 1, list->spring_start, total * sizeof(int32_t));
	list->spring_start[0] = 0;
	return SAND_OK;
}

static SandHistory find_spring(const SandList *list, int32_t a, int32_t b)
{
	SandHistory history = {{0}};
	bool is_swapped = b >= 0 && b < a;
	int32_t low = is_swapped ? b : a, high = is_swapped ? a : b;
	for (int32_t i = list->spring_start[low]; i < list->spring_start[low + 1]; ++i)
	{
		if (list->springs[i].other == high)
		{
			for (int k = 0; k < 3; ++k)
			{
				history.stretch[k] = is_swapped ? -list->springs[i].stretch[k] : list->springs[i].stretch[k];
			}
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

// All spheres into the tables of their class: counting sort by bucket, in sphere order within a bucket.
static void fill_cells(SandList *list, const SandWork *work)
{
	const SandSphere *spheres = work->spheres;
	int total = list->desc.sphere_count + list->desc.wall_count;
	for (int l = 0; l < list->level_count; ++l)
	{
		Level *level = &list->levels[l];
		level->entry_count = 0;
		level->margin = (l < list->size_count ? work->margin_slow : work->margin_fast) + 0.5f * list->desc.bridge;
		// Rounded so that no cell is narrower than two touching spheres of the level with their margins.
		double cell = ceil(2.0 * ((double)level->radius_max + (double)level->margin)) + 1;
		level->cell_scale = (uint32_t)(4294967296.0 / cell);
	}
	// Empty tables need no clearing: most scenes have few fast grains and one size.
	for (int i = 0; i < total; ++i)
	{
		if (!is_absent(work, spheres[i].grain))
		{
			++list->levels[level_of(list, spheres[i].radius, is_fast(work, spheres[i].grain))].entry_count;
		}
	}
	int first = 0;
	for (int l = 0; l < list->level_count; ++l)
	{
		Level *level = &list->levels[l];
		level->first_entry = first;
		first += level->entry_count;
		if (level->entry_count > 0)
		{
			memset(level->starts, 0, ((size_t)level->mask + 2) * sizeof(int32_t));
		}
	}
	for (int i = 0; i < total; ++i)
	{
		if (is_absent(work, spheres[i].grain))
		{
			continue;
		}
		Level *level = &list->levels[level_of(list, spheres[i].radius, is_fast(work, spheres[i].grain))];
		uint32_t bucket = (cell_of(level, spheres[i].x[0]) + cell_of(level, spheres[i].x[1]) * level->stride_y +
		                   cell_of(level, spheres[i].x[2]) * level->stride_z) &
		                  level->mask;
		list->buckets[i] = bucket;
		++level->starts[bucket + 1];
	}
	for (int l = 0; l < list->level_count; ++l)
	{
		Level *level = &list->levels[l];
		level->starts[0] = level->entry_count > 0 ? level->first_entry : 0;
		for (uint32_t b = 0; b <= level->mask && level->entry_count > 0; ++b)
		{
			level->starts[b + 1] += level->starts[b];
		}
	}
	for (int i = 0; i < total; ++i)
	{
		if (is_absent(work, spheres[i].grain))
		{
			continue;
		}
		Level *level = &list->levels[level_of(list, spheres[i].radius, is_fast(work, spheres[i].grain))];
		int32_t place = level->starts[list->buckets[i]]++;
		memcpy(list->entries[place].x, spheres[i].x, sizeof(spheres[i].x));
		list->entries[place].sphere = i;
	}
	for (int l = 0; l < list->level_count; ++l)
	{
		// Filling moved every start to its end: shift back.
		Level *level = &list->levels[l];
		if (level->entry_count > 0)
		{
			memmove(level->starts + 1, level->starts, ((size_t)level->mask + 1) * sizeof(int32_t));
			level->starts[0] = level->first_entry;
		}
	}
}

static bool grow(SandPair **pairs, int32_t used, int32_t more, int32_t *capacity)
{
	if (used + more <= *capacity)
	{
		return true;
	}
	int64_t wanted = ((int64_t)used + more) * 3 / 2 + 64;
	SandPair *grown = wanted < INT32_MAX ? sand_alloc((size_t)wanted, sizeof(SandPair)) : NULL;
	if (grown == NULL)
	{
		return false;
	}
	if (used > 0)
	{
		memcpy(grown, *pairs, (size_t)used * sizeof(SandPair));
	}
	sand_free(*pairs);
	*pairs = grown;
	*capacity = (int32_t)wanted;
	return true;
}

typedef struct Builder
{
	const SandList *list;
	const SandKernel *kernel;
	const SandWork *work;
	SandChunk *chunk;
	const int32_t *sphere_base;
	SandPair *outer;
	int32_t inner_count, outer_count, outer_capacity;
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

// A near sphere j of sphere i goes to the list it belongs to.
static bool take_pair(Builder *b, int32_t i, int32_t j, bool is_asleep)
{
	SandChunk *chunk = b->chunk;
	if (b->work->sleep_speed > 0 && is_asleep)
	{
		if (is_still(b->work, b->work->spheres[j].grain))
		{
			return true;
		}
		if (!watch(b, i, j))
		{
			return false;
		}
	}
	if ((uint32_t)(j - chunk->first_sphere) >= (uint32_t)chunk->sphere_count)
	{
		b->outer[b->outer_count++] = i < j ? (SandPair){i, j} : (SandPair){j, i};
	}
	else if (j > i)
	{
		chunk->pairs[b->inner_count++] = (SandPair){i, j};
	}
	return true;
}

// Tests a run of entries against sphere i. The level's largest radius decides most without looking at the sphere.
static bool search_run(Builder *b, const Level *level, int32_t i, float reach_own, bool is_asleep, int32_t from,
                       int32_t to)
{
	const SandSphere *spheres = b->work->spheres, *a = &spheres[i];
	float widest = reach_own + level->margin + level->radius_max;
	int32_t near[SAND_NEAR_LIMIT];
	for (int32_t begin = from; begin < to; begin += SAND_NEAR_LIMIT)
	{
		int32_t end = to < begin + SAND_NEAR_LIMIT ? to : begin + SAND_NEAR_LIMIT;
		int count = b->kernel->near(b->list->entries, begin, end, a->x, widest * widest, near);
		for (int k = 0; k < count; ++k)
		{
			const SandCell *entry = &b->list->entries[near[k]];
			const SandSphere *s = &spheres[entry->sphere];
			// Positions lie within +-2^30, so differences fit.
			float dx = (float)(a->x[0] - entry->x[0]), dy = (float)(a->x[1] - entry->x[1]),
			      dz = (float)(a->x[2] - entry->x[2]);
			float reach = reach_own + level->margin + s->radius;
			if (dx * dx + dy * dy + dz * dz < reach * reach && s->grain != a->grain &&
			    !take_pair(b, i, entry->sphere, is_asleep))
			{
				return false;
			}
		}
	}
	return true;
}

static bool search_level(Builder *b, const Level *level, int32_t i, float reach_own, bool is_asleep)
{
	const SandSphere *a = &b->work->spheres[i];
	int64_t reach = (int64_t)ceil((double)reach_own + (double)level->margin + (double)level->radius_max);
	uint32_t low[3], high[3];
	for (int k = 0; k < 3; ++k)
	{
		low[k] = cell_of(level, a->x[k] - reach);
		high[k] = cell_of(level, a->x[k] + reach);
	}
	for (uint32_t z = low[2]; z <= high[2]; ++z)
	{
		for (uint32_t y = low[1]; y <= high[1]; ++y)
		{
			uint32_t row = y * level->stride_y + z * level->stride_z;
			uint32_t first = (low[0] + row) & level->mask, last = (high[0] + row) & level->mask;
			// A row that wraps around the table's end is read in two pieces.
			int32_t from = level->starts[first], to = level->starts[first <= last ? last + 1 : level->mask + 1];
			int32_t more = first <= last ? 0 : level->starts[last + 1] - level->starts[0];
			int32_t room = to - from + more;
			if (room == 0)
			{
				continue;
			}
			if (!grow(&b->chunk->pairs, b->inner_count, room + 8, &b->chunk->pair_capacity) ||
			    !grow(&b->outer, b->outer_count, room, &b->outer_capacity) ||
			    !search_run(b, level, i, reach_own, is_asleep, from, to) ||
			    (more > 0 && !search_run(b, level, i, reach_own, is_asleep, level->starts[0], level->starts[last + 1])))
			{
				return false;
			}
		}
	}
	return true;
}

static bool search_sphere(Builder *b, int32_t i)
{
	const SandSphere *a = &b->work->spheres[i];
	bool is_asleep = is_still(b->work, a->grain);
	float margin = is_fast(b->work, a->grain) ? b->work->margin_fast : b->work->margin_slow;
	float reach_own = a->radius + margin + 0.5f * b->list->desc.bridge;
	for (int l = 0; l < b->list->level_count; ++l)
	{
		const Level *level = &b->list->levels[l];
		if (level->entry_count > 0 && !search_level(b, level, i, reach_own, is_asleep))
		{
			return false;
		}
	}
	return true;
}

static bool search_obstacles(Builder *b, int32_t i)
{
	const SandSphere *s = &b->work->spheres[i];
	SandChunk *chunk = b->chunk;
	int obstacle_count = b->list->desc.obstacle_count;
	if (obstacle_count == 0 || is_still(b->work, s->grain))
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

static int32_t law_of_pair(const SandWork *work, SandPair pair)
{
	int32_t other = work->spheres[pair.b].grain;
	int32_t a = work->grains[work->spheres[pair.a].grain].material;
	int32_t b = other < 0 ? work->wall_material : work->grains[other].material;
	return work->law_of[a * work->material_count + b];
}

// Pairs in order of law, inner before outer, otherwise as found.
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
	chunk->pair_count = b->inner_count + b->outer_count;
	chunk->section_count = 2 * law_count;
	for (int i = 0; i < 2 * law_count; ++i)
	{
		chunk->sections[i] = (SandSection){.law = i % law_count, .is_inner = i < law_count};
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

static bool restore_history(Builder *b)
{
	SandChunk *chunk = b->chunk;
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
	return true;
}

static bool build_chunk(Builder *b)
{
	SandChunk *chunk = b->chunk;
	chunk->obstacle_pair_count = chunk->watch_count = 0;
	for (int32_t i = chunk->first_sphere; i < chunk->first_sphere + chunk->sphere_count; ++i)
	{
		if (is_absent(b->work, b->work->spheres[i].grain))
		{
			continue;
		}
		if (!search_sphere(b, i) || !search_obstacles(b, i))
		{
			return false;
		}
	}
	return sort_sections(b) && (!b->list->desc.has_history || restore_history(b));
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
}

SandStatus sand_list_build(SandList *list, const SandKernel *kernel, const SandWork *work, SandChunk *chunks,
                           int chunk_count, const int32_t *sphere_base, SandPool *pool, SandError *err)
{
	fill_cells(list, work);
	BuildContext context = {list, kernel, work, chunks, sphere_base};
	sand_pool_run(pool, build_task, &context, chunk_count);
	for (int c = 0; c < chunk_count; ++c)
	{
		if (chunks[c].is_short)
		{
			return sand_fail_memory(err, (size_t)chunks[c].pair_capacity * 2 * sizeof(SandPair), "the neighbour list");
		}
	}
	return SAND_OK;
}

int64_t sand_list_spring_count(const SandList *list)
{
	return list->desc.has_history ? list->spring_start[list->desc.sphere_count + list->desc.wall_count] : 0;
}

void sand_list_read_springs(const SandList *list, SandSpring *springs_out)
{
	int total = list->desc.sphere_count + list->desc.wall_count;
	for (int low = 0; low < total && list->desc.has_history; ++low)
	{
		for (int32_t i = list->spring_start[low]; i < list->spring_start[low + 1]; ++i)
		{
			springs_out[i].low = low;
			springs_out[i].other = list->springs[i].other;
			memcpy(springs_out[i].stretch, list->springs[i].stretch, sizeof(springs_out[i].stretch));
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
	memset(list->spring_start, 0, ((size_t)total + 1) * sizeof(int32_t));
	for (int64_t i = 0; i < count; ++i)
	{
		copy[i].other = springs[i].other;
		memcpy(copy[i].stretch, springs[i].stretch, sizeof(copy[i].stretch));
		++list->spring_start[springs[i].low + 1];
	}
	for (int32_t i = 0; i < total; ++i)
	{
		list->spring_start[i + 1] += list->spring_start[i];
	}
	sand_free(list->springs);
	list->springs = copy;
	list->spring_capacity = count;
	return SAND_OK;
}
