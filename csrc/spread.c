// spread: even points on a mesh, or at a distance from it.
// Comes in: SandSurface. Goes out: SandPoints, deterministic for one seed, the same for every thread count.
//
// Floaters (Bell 2005 section 4, after Witkin and Heckbert 1994). Points start spread by area. In every sweep each
// point is pushed half of what it lacks to the spacing away from every nearer neighbour, and put back on the surface:
// so neighbours come to lie one spacing apart, and no nearer. The surface is asked, not a grid of distances: a grid
// would have to be finer than the thinnest plate. Between the sweeps points are taken out where they crowd and put in
// where one more fits.
//
// Positions are floats relative to the middle of the mesh; sums run over a point's list in its order.
#include "spread.h"
#include "glspread.h"
#include "sort.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define DENSITY 0.9     // points times spacing^2 over area at the start; 1.155 would be a perfect hexagonal lattice
#define SETTLED 0.045f  // share of the spacing that no pair lacks more of at the end
#define FREE 0.85       // with nobody nearer than this share, one more fits
#define NEAREST 0.935   // what still lies nearer after all sweeps goes
#define ROUGH_SWEEPS 12 // before points are put in
#define ROUND_SWEEPS 8  // after each time
#define ROUND_LIMIT 6   // how often at most
#define MANY 32         // more than one in so many put in: there may be room for more
#define LAST_SWEEPS 40  // at most
#define LEVEL_TOLERANCE 0.05 // of the offset: how far a point may be from it
#define PUSH 0.35f // share of what a pair lacks that each of the two goes in a sweep: 0.5 alone would be all of it
#define DRIFT 0.6f // share of the last sweep's way that is gone again: brings the same evenness in half the sweeps
#define LIST_LIMIT SAND_GLSPREAD_LIST       // neighbours that a point lists
#define LIST_MARGIN 0.35f                   // of the spacing: what a list reaches beyond it
#define STALE_SWEEPS 2                      // lists live at least as long
#define DIRECTIONS SAND_GLSPREAD_DIRECTIONS // in which room for one more is looked for, around a point
#define TASK_POINTS 512                     // at least, per task
#define CELL_BITS 21                        // of a cell's number, per axis

// A point as the cells hold it.
typedef struct Held
{
	float place[3];
	int32_t point;
	uint64_t row;
} Held;

typedef struct Spread
{
	const SandSurface *surface;
	SandPool *pool;
	const SandCancel *cancel;
	double middle[3];
	double spacing, offset;
	uint64_t seed;
	int count, capacity;
	float (*places)[4], (*next)[4]; // relative to the middle; the fourth is unused
	float (*drifts)[4];             // of the last sweep
	int32_t *triangles;             // that a point lies on
	int32_t (*lists)[LIST_LIMIT];
	int32_t *list_counts;
	float (*listed)[4]; // places when the lists were made
	// Cells, by hash.
	int32_t *bucket_starts; // bucket_count + 1
	Held *held;             // by bucket
	uint64_t *rows;         // of points
	uint32_t *buckets;
	int bucket_bits;
	double cells_per_metre;
	int sweep_count; // since the lists were made
	float lacking;   // largest share of the spacing that a pair lacked before the last sweep
	int task_count;
	float moved_square[SAND_BLOCK_LIMIT]; // farthest from where it was listed
	float lack[SAND_BLOCK_LIMIT];         // largest share of the spacing that a pair lacks
	SandGlSpreadWork *gl;                 // NULL = the processor
	bool is_changed;                      // the points, since the device last gave them
} Spread;

// ------------------------------------------------------------------------------------------------- on the surface

static const float *vertex_of(const Spread *s, int triangle, int corner)
{
	const SandMesh *mesh = sand_surface_mesh(s->surface);
	return mesh->vertices + 3 * (size_t)mesh->triangles[3 * (size_t)triangle + (size_t)corner];
}

// Puts a place over its triangle onto it; false when it is over another.
static bool stay_on_triangle(const Spread *s, int triangle, double p[3])
{
	double u[3], v[3], w[3], uu = 0, uv = 0, vv = 0, wu = 0, wv = 0;
	const float *a = vertex_of(s, triangle, 0), *b = vertex_of(s, triangle, 1), *c = vertex_of(s, triangle, 2);
	for (int k = 0; k < 3; ++k)
	{
		u[k] = (double)b[k] - (double)a[k];
		v[k] = (double)c[k] - (double)a[k];
		w[k] = p[k] + s->middle[k] - (double)a[k];
		uu += u[k] * u[k];
		uv += u[k] * v[k];
		vv += v[k] * v[k];
		wu += w[k] * u[k];
		wv += w[k] * v[k];
	}
	double area = uu * vv - uv * uv, f = vv * wu - uv * wv, g = uu * wv - uv * wu;
	if (!(area > 0) || f < 0 || g < 0 || f + g > area)
	{
		return false;
	}
	f /= area;
	g /= area;
	for (int k = 0; k < 3; ++k)
	{
		p[k] = (double)a[k] + f * u[k] + g * v[k] - s->middle[k];
	}
	return true;
}

// Moves a place to the level at the offset, along its distance. Places that cannot be there stay near it.
static bool go_to_level(const Spread *s, double p[3], double reach, int32_t *triangle)
{
	for (int round = 0; round < 3; ++round)
	{
		SandNearest nearest;
		double place[3] = {p[0] + s->middle[0], p[1] + s->middle[1], p[2] + s->middle[2]}, side = 0;
		if (!sand_surface_nearest(s->surface, place, reach, &nearest))
		{
			return false;
		}
		for (int k = 0; k < 3; ++k)
		{
			side += (place[k] - nearest.point[k]) * nearest.normal[k];
		}
		double out = side < 0 ? -1 : 1;
		for (int k = 0; k < 3; ++k)
		{
			double direction = nearest.distance > 1e-9 * fabs(s->offset)
			                       ? out * (place[k] - nearest.point[k]) / nearest.distance
			                       : nearest.normal[k];
			p[k] = nearest.point[k] + s->offset * direction - s->middle[k];
		}
		*triangle = nearest.triangle;
		if (fabs(out * nearest.distance - s->offset) < 1e-3 * fabs(s->offset))
		{
			break;
		}
	}
	return true;
}

// Puts a place that has moved by at most `moved` back on the surface.
static bool put_back(const Spread *s, double p[3], double moved, int32_t *triangle)
{
	if (s->offset != 0)
	{
		return go_to_level(s, p, 2 * (moved + fabs(s->offset)), triangle);
	}
	if (*triangle >= 0 && stay_on_triangle(s, *triangle, p))
	{
		return true;
	}
	double place[3] = {p[0] + s->middle[0], p[1] + s->middle[1], p[2] + s->middle[2]};
	if (!sand_surface_snap(s->surface, place, 1.01 * moved, triangle))
	{
		return false;
	}
	for (int k = 0; k < 3; ++k)
	{
		p[k] = place[k] - s->middle[k];
	}
	return true;
}

// ------------------------------------------------------------------------------------------------- cells and lists

// Cells are as wide as a list reaches. A row of them along x has a key; a cell's bucket is the row's hash plus x, so
// that three neighbours in a row are one run of buckets.
static void cell_of(const Spread *s, const float p[3], int64_t cell[3])
{
	for (int k = 0; k < 3; ++k)
	{
		cell[k] = (int64_t)floor((double)p[k] * s->cells_per_metre) + (INT64_C(1) << (CELL_BITS - 1));
	}
}

static uint64_t row_of(const int64_t cell[3])
{
	return (uint64_t)cell[1] | (uint64_t)cell[2] << CELL_BITS;
}

static uint32_t bucket_of(const Spread *s, uint64_t row, int64_t x)
{
	uint64_t hash = (row * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - s->bucket_bits);
	return (uint32_t)(hash + (uint64_t)x) & ((UINT32_C(1) << s->bucket_bits) - 1);
}

static int block_start(const Spread *s, int task)
{
	return sand_part_start(s->count, task, s->task_count);
}

static void cell_task(void *context, int task)
{
	Spread *s = context;
	for (int i = block_start(s, task), end = block_start(s, task + 1); i < end; ++i)
	{
		int64_t cell[3];
		cell_of(s, s->places[i], cell);
		s->rows[i] = row_of(cell);
		s->buckets[i] = bucket_of(s, s->rows[i], cell[0]);
	}
}

static void fill_cells(Spread *s)
{
	size_t bucket_count = (size_t)1 << s->bucket_bits;
	s->task_count = sand_block_count(s->count, TASK_POINTS);
	sand_pool_run(s->pool, cell_task, s, s->task_count);
	memset(s->bucket_starts, 0, (bucket_count + 1) * sizeof(int32_t));
	for (int i = 0; i < s->count; ++i)
	{
		++s->bucket_starts[s->buckets[i] + 1];
	}
	for (size_t i = 0; i < bucket_count; ++i)
	{
		s->bucket_starts[i + 1] += s->bucket_starts[i];
	}
	for (int i = s->count; i-- > 0;)
	{
		Held *held = &s->held[--s->bucket_starts[s->buckets[i] + 1]];
		memcpy(held->place, s->places[i], sizeof(held->place));
		held->point = i;
		held->row = s->rows[i];
	}
	memmove(s->bucket_starts, s->bucket_starts + 1, bucket_count * sizeof(int32_t));
	s->bucket_starts[bucket_count] = s->count;
}

static float square_between(const float a[3], const float b[3])
{
	float x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
	return x * x + y * y + z * z;
}

// What a search for neighbours asks, and has found.
typedef struct Near
{
	const float *place;
	float limit; // squared
	int except;  // point that does not count
	int32_t *points;
	int count, room;
} Near;

static void search_run(const Spread *s, Near *near, uint64_t row, int32_t first, int32_t end)
{
	for (int32_t k = first; k < end; ++k)
	{
		const Held *held = &s->held[k];
		if (square_between(near->place, held->place) < near->limit && held->row == row && held->point != near->except &&
		    near->count < near->room)
		{
			near->points[near->count++] = held->point;
		}
	}
}

// Points of the 27 cells around a place that are nearer than sqrt(limit).
static void find_near(const Spread *s, Near *near)
{
	int64_t cell[3];
	uint32_t last = (UINT32_C(1) << s->bucket_bits) - 1;
	cell_of(s, near->place, cell);
	for (int64_t number = 0; number < 9; ++number)
	{
		uint64_t row = row_of((int64_t[3]){0, cell[1] + number % 3 - 1, cell[2] + number / 3 - 1});
		uint32_t bucket = bucket_of(s, row, cell[0] - 1);
		if (bucket + 2 <= last)
		{
			search_run(s, near, row, s->bucket_starts[bucket], s->bucket_starts[bucket + 3]);
			continue;
		}
		for (uint32_t x = 0; x < 3; ++x)
		{
			uint32_t one = (bucket + x) & last;
			search_run(s, near, row, s->bucket_starts[one], s->bucket_starts[one + 1]);
		}
	}
}

static void list_task(void *context, int task)
{
	Spread *s = context;
	float reach = (float)s->spacing * (1 + LIST_MARGIN);
	for (int i = block_start(s, task), end = block_start(s, task + 1); i < end; ++i)
	{
		Near near = {s->places[i], reach * reach, i, s->lists[i], 0, LIST_LIMIT};
		find_near(s, &near);
		s->list_counts[i] = near.count;
		memcpy(s->listed[i], s->places[i], sizeof(s->listed[i]));
	}
}

static void make_lists(Spread *s)
{
	fill_cells(s);
	sand_pool_run(s->pool, list_task, s, s->task_count);
	s->sweep_count = 0;
}

// ------------------------------------------------------------------------------------------------- sweeps

static void sweep_task(void *context, int task)
{
	Spread *s = context;
	float spacing = (float)s->spacing, limit = spacing * spacing, moved_most = 0, lack_most = 0;
	for (int i = block_start(s, task), end = block_start(s, task + 1); i < end; ++i)
	{
		const float *p = s->places[i];
		float push[3] = {0};
		for (int k = 0; k < s->list_counts[i]; ++k)
		{
			int32_t j = s->lists[i][k];
			const float *q = s->places[j];
			float d[3] = {p[0] - q[0], p[1] - q[1], p[2] - q[2]}, square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
			if (square < limit)
			{
				float length = sqrtf(square), lack = spacing - length;
				lack_most = lack > lack_most ? lack : lack_most;
				// Two at one place part along any direction, the lower number one way.
				float share = length > 0 ? lack / length : 0;
				push[0] += length > 0 ? share * d[0] : i < j ? -lack : lack;
				push[1] += share * d[1];
				push[2] += share * d[2];
			}
		}
		double to[3], moved = 0;
		for (int k = 0; k < 3; ++k)
		{
			push[k] = PUSH * push[k] + DRIFT * s->drifts[i][k];
			moved += (double)push[k] * (double)push[k];
		}
		moved = sqrt(moved);
		double cut = moved > 0.3 * s->spacing ? 0.3 * s->spacing / moved : 1;
		for (int k = 0; k < 3; ++k)
		{
			to[k] = (double)p[k] + cut * (double)push[k];
		}
		bool is_back = moved == 0 || put_back(s, to, cut * moved, &s->triangles[i]);
		for (int k = 0; k < 3; ++k)
		{
			s->next[i][k] = is_back && moved > 0 ? (float)to[k] : p[k];
			s->drifts[i][k] = s->next[i][k] - p[k];
		}
		float square = square_between(s->next[i], s->listed[i]);
		moved_most = square > moved_most ? square : moved_most;
	}
	s->moved_square[task] = moved_most;
	s->lack[task] = lack_most;
}

// One sweep; returns the largest share of the spacing that a pair lacked before it.
static float sweep(Spread *s)
{
	s->task_count = sand_block_count(s->count, TASK_POINTS);
	sand_pool_run(s->pool, sweep_task, s, s->task_count);
	float(*swap)[4] = s->places;
	s->places = s->next;
	s->next = swap;
	float moved_square = 0, lack = 0, margin = 0.5f * LIST_MARGIN * (float)s->spacing;
	for (int i = 0; i < s->task_count; ++i)
	{
		moved_square = s->moved_square[i] > moved_square ? s->moved_square[i] : moved_square;
		lack = s->lack[i] > lack ? s->lack[i] : lack;
	}
	// Early on everything moves far in every sweep, and a list need not be perfect.
	++s->sweep_count;
	if (moved_square > margin * margin && s->sweep_count >= STALE_SWEEPS)
	{
		make_lists(s);
	}
	return lack / (float)s->spacing;
}

// ------------------------------------------------------------------------------------------------- seeds

static SandStatus reserve(Spread *s, int capacity)
{
	s->capacity = capacity;
	s->bucket_bits = 4;
	while (s->bucket_bits < 30 && (INT64_C(1) << s->bucket_bits) < 2 * (int64_t)capacity)
	{
		++s->bucket_bits;
	}
	size_t n = (size_t)capacity;
	s->places = sand_alloc(n, sizeof(s->places[0]));
	s->next = sand_alloc(n, sizeof(s->next[0]));
	s->drifts = sand_alloc(n, sizeof(s->drifts[0]));
	s->triangles = sand_alloc(n, sizeof(int32_t));
	s->lists = sand_alloc(n, sizeof(s->lists[0]));
	s->list_counts = sand_alloc(n, sizeof(int32_t));
	s->listed = sand_alloc(n, sizeof(s->listed[0]));
	s->bucket_starts = sand_alloc(((size_t)1 << s->bucket_bits) + 1, sizeof(int32_t));
	s->held = sand_alloc(n, sizeof(Held));
	s->rows = sand_alloc(n, sizeof(uint64_t));
	s->buckets = sand_alloc(n, sizeof(uint32_t));
	bool is_short = s->places == NULL || s->next == NULL || s->drifts == NULL || s->triangles == NULL ||
	                s->lists == NULL || s->list_counts == NULL || s->listed == NULL || s->bucket_starts == NULL ||
	                s->held == NULL || s->rows == NULL || s->buckets == NULL;
	return is_short ? SAND_ERROR_MEMORY : SAND_OK;
}

static void free_all(Spread *s)
{
	sand_glspread_destroy(s->gl);
	sand_free(s->places);
	sand_free(s->next);
	sand_free(s->drifts);
	sand_free(s->triangles);
	sand_free(s->lists);
	sand_free(s->list_counts);
	sand_free(s->listed);
	sand_free(s->bucket_starts);
	sand_free(s->held);
	sand_free(s->rows);
	sand_free(s->buckets);
}

// Brings the points into Morton order: neighbours are near each other in memory, whatever the size of the triangles.
static SandStatus order_points(Spread *s, SandError *err)
{
	SandSorter *sorter = NULL;
	SandStatus status = sand_sorter_create(s->count, &sorter, err);
	if (status != SAND_OK)
	{
		return status;
	}
	const SandMesh *mesh = sand_surface_mesh(s->surface);
	uint64_t *records = sand_sorter_records(sorter);
	double size = fabs(s->offset);
	for (int k = 0; k < 3; ++k)
	{
		size = fmax(size, (double)mesh->bounds_max[k] - (double)mesh->bounds_min[k]);
	}
	for (int i = 0; i < s->count; ++i)
	{
		int64_t cell[3];
		for (int k = 0; k < 3; ++k)
		{
			cell[k] = (int64_t)(512 + 511 * (double)s->places[i][k] / size);
		}
		records[i] = (uint64_t)sand_morton(cell) << 32 | (uint32_t)i;
	}
	const uint64_t *sorted = sand_sort(sorter, s->count, 30, s->pool);
	int32_t *triangles = s->list_counts; // not needed until the first lists
	for (int i = 0; i < s->count; ++i)
	{
		memcpy(s->next[i], s->places[(uint32_t)sorted[i]], sizeof(s->next[0]));
		triangles[i] = s->triangles[(uint32_t)sorted[i]];
	}
	memcpy(s->places, s->next, (size_t)s->count * sizeof(s->places[0]));
	memcpy(s->triangles, triangles, (size_t)s->count * sizeof(triangles[0]));
	sand_sorter_destroy(sorter);
	return SAND_OK;
}

// Evenly by area along the surface's order, in which neighbours are near each other: so no region is left out.
static void seed_points(Spread *s, int wanted)
{
	const SandMesh *mesh = sand_surface_mesh(s->surface);
	const int32_t *order = sand_surface_order(s->surface);
	double sum = 0, share = mesh->area / wanted;
	for (int i = 0; i < mesh->triangle_count && s->count < wanted; ++i)
	{
		const float *a = vertex_of(s, order[i], 0), *b = vertex_of(s, order[i], 1), *c = vertex_of(s, order[i], 2);
		double u[3], v[3], n[3];
		for (int k = 0; k < 3; ++k)
		{
			u[k] = (double)b[k] - (double)a[k];
			v[k] = (double)c[k] - (double)a[k];
		}
		n[0] = u[1] * v[2] - u[2] * v[1];
		n[1] = u[2] * v[0] - u[0] * v[2];
		n[2] = u[0] * v[1] - u[1] * v[0];
		sum += 0.5 * sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
		// Point number m stands at (m + 1/2) shares of the area.
		for (; s->count < wanted && (s->count + 0.5) * share < sum; ++s->count)
		{
			double f = sand_random(s->seed, 2 * (uint64_t)s->count),
			       g = sand_random(s->seed, 2 * (uint64_t)s->count + 1);
			bool is_beyond = f + g > 1;
			f = is_beyond ? 1 - f : f;
			g = is_beyond ? 1 - g : g;
			for (int k = 0; k < 3; ++k)
			{
				s->places[s->count][k] = (float)((double)a[k] + f * u[k] + g * v[k] - s->middle[k]);
			}
			s->triangles[s->count] = order[i];
		}
	}
}

// ------------------------------------------------------------------------------------------------- out and in

// Removes the points marked by a negative triangle; the others keep their order.
static void drop_marked(Spread *s)
{
	int kept = 0;
	for (int i = 0; i < s->count; ++i)
	{
		if (s->triangles[i] >= 0)
		{
			memcpy(s->places[kept], s->places[i], sizeof(s->places[0]));
			memcpy(s->drifts[kept], s->drifts[i], sizeof(s->drifts[0]));
			s->triangles[kept++] = s->triangles[i];
		}
	}
	s->count = kept;
}

// Of two points nearer than `share` of the spacing one goes: the one with more such neighbours, or the later.
static SandStatus take_out(Spread *s, double share, int *taken_out, SandError *err)
{
	SandStatus status = s->gl != NULL ? sand_glspread_lists(s->gl, s->count, s->lists, s->list_counts, err) : SAND_OK;
	*taken_out = 0;
	if (status != SAND_OK)
	{
		return status;
	}
	float limit = (float)(share * s->spacing), square = limit * limit;
	for (int i = 0; i < s->count; ++i)
	{
		for (int k = 0; k < s->list_counts[i] && s->triangles[i] >= 0; ++k)
		{
			int32_t j = s->lists[i][k];
			if (s->triangles[j] < 0 || square_between(s->places[i], s->places[j]) >= square)
			{
				continue;
			}
			bool goes_i = s->list_counts[i] > s->list_counts[j] || (i > j && s->list_counts[i] == s->list_counts[j]);
			s->triangles[goes_i ? i : j] = -1;
		}
	}
	int old_count = s->count;
	drop_marked(s);
	*taken_out = old_count - s->count;
	s->is_changed = s->is_changed || *taken_out > 0;
	return SAND_OK;
}

// A place beside a point where one more might go.
typedef SandGlPlace Room;

typedef struct Rooms
{
	Spread *s;
	Room *rooms; // DIRECTIONS per point; triangle -1 = none
	float free_square;
} Rooms;

static bool is_free(const Spread *s, const float place[3], float square)
{
	int32_t found;
	Near near = {place, square, -1, &found, 0, 1};
	find_near(s, &near);
	return near.count == 0;
}

// Two directions across the triangle's normal.
static bool find_tangents(const Spread *s, int triangle, double u[3], double v[3])
{
	const float *a = vertex_of(s, triangle, 0), *b = vertex_of(s, triangle, 1), *c = vertex_of(s, triangle, 2);
	double e[3], f[3], n[3], ee = 0, vv = 0;
	for (int k = 0; k < 3; ++k)
	{
		e[k] = (double)b[k] - (double)a[k];
		f[k] = (double)c[k] - (double)a[k];
	}
	for (int k = 0; k < 3; ++k)
	{
		n[k] = e[(k + 1) % 3] * f[(k + 2) % 3] - e[(k + 2) % 3] * f[(k + 1) % 3];
		ee += e[k] * e[k];
	}
	for (int k = 0; k < 3; ++k)
	{
		v[k] = n[(k + 1) % 3] * e[(k + 2) % 3] - n[(k + 2) % 3] * e[(k + 1) % 3];
		vv += v[k] * v[k];
	}
	for (int k = 0; k < 3; ++k)
	{
		u[k] = e[k] / sqrt(ee);
		v[k] = v[k] / sqrt(vv);
	}
	return ee > 0 && vv > 0;
}

static void room_task(void *context, int task)
{
	Rooms *rooms = context;
	const Spread *s = rooms->s;
	static const double around[DIRECTIONS][2] = {
	    {1, 0},  {0.70710678, 0.70710678},   {0, 1},  {-0.70710678, 0.70710678},
	    {-1, 0}, {-0.70710678, -0.70710678}, {0, -1}, {0.70710678, -0.70710678}};
	for (int i = block_start(s, task), end = block_start(s, task + 1); i < end; ++i)
	{
		double u[3], v[3];
		bool has_tangents = find_tangents(s, s->triangles[i], u, v);
		for (int direction = 0; direction < DIRECTIONS; ++direction)
		{
			Room *room = &rooms->rooms[(size_t)DIRECTIONS * (size_t)i + (size_t)direction];
			double p[3];
			room->triangle = -1;
			for (int k = 0; k < 3; ++k)
			{
				p[k] =
				    (double)s->places[i][k] + s->spacing * (around[direction][0] * u[k] + around[direction][1] * v[k]);
				room->place[k] = (float)p[k];
			}
			bool is_taken = !has_tangents;
			for (int k = 0; k < s->list_counts[i] && !is_taken; ++k)
			{
				is_taken = square_between(room->place, s->places[s->lists[i][k]]) < 0.8f * rooms->free_square;
			}
			int32_t triangle = s->triangles[i];
			if (is_taken || !put_back(s, p, s->spacing, &triangle))
			{
				continue;
			}
			for (int k = 0; k < 3; ++k)
			{
				room->place[k] = (float)p[k];
			}
			room->triangle = is_free(s, room->place, rooms->free_square) ? triangle : -1;
		}
	}
}

// Puts points where none is nearer than `share` of the spacing: beside other points, and not nearer to each other.
static SandStatus put_in(Spread *s, double share, int *added_out, SandError *err)
{
	if (s->gl == NULL)
	{
		make_lists(s);
	}
	int old_count = s->count;
	float limit = (float)(share * s->spacing);
	Rooms rooms = {.s = s, .free_square = limit * limit};
	size_t room_count = (size_t)s->count * DIRECTIONS;
	rooms.rooms = sand_alloc(room_count, sizeof(Room));
	if (rooms.rooms == NULL)
	{
		return sand_fail_memory(err, room_count * sizeof(Room), "places for more points");
	}
	SandGlPoints points = {s->places, s->drifts, s->triangles, s->count, true};
	SandStatus status =
	    s->gl != NULL ? sand_glspread_rooms(s->gl, &points, rooms.free_square, rooms.rooms, err) : SAND_OK;
	if (status != SAND_OK)
	{
		sand_free(rooms.rooms);
		return status;
	}
	if (s->gl == NULL)
	{
		sand_pool_run(s->pool, room_task, &rooms, s->task_count);
	}
	// New points are few; each looks at those put in before it, through their own chain per bucket.
	int32_t *chain = s->list_counts; // not needed until the next lists
	int32_t *heads = s->bucket_starts;
	memset(heads, 0xFF, ((size_t)1 << s->bucket_bits) * sizeof(int32_t));
	for (size_t i = 0; i < room_count && s->count < s->capacity; ++i)
	{
		const Room *room = &rooms.rooms[i];
		if (room->triangle < 0)
		{
			continue;
		}
		bool is_taken = false;
		int64_t cell[3];
		cell_of(s, room->place, cell);
		for (int64_t number = 0; number < 27 && !is_taken; ++number)
		{
			int64_t around[3] = {0, cell[1] + number % 3 - 1, cell[2] + number / 3 % 3 - 1};
			uint32_t bucket = bucket_of(s, row_of(around), cell[0] + number / 9 - 1);
			for (int32_t j = heads[bucket]; j >= 0 && !is_taken; j = chain[j])
			{
				is_taken = square_between(room->place, s->places[j]) < rooms.free_square;
			}
		}
		if (!is_taken)
		{
			uint32_t bucket = bucket_of(s, row_of(cell), cell[0]);
			memcpy(s->places[s->count], room->place, sizeof(room->place));
			memset(s->drifts[s->count], 0, sizeof(s->drifts[0]));
			s->triangles[s->count] = room->triangle;
			chain[s->count] = heads[bucket];
			heads[bucket] = s->count++;
		}
	}
	sand_free(rooms.rooms);
	s->is_changed = true;
	if (s->gl == NULL)
	{
		make_lists(s);
	}
	*added_out = s->count - old_count;
	return SAND_OK;
}

// ------------------------------------------------------------------------------------------------- the whole

static bool is_cancelled(const Spread *s)
{
	return s->cancel != NULL && atomic_load(&s->cancel->is_raised) != 0;
}

// Sweeps until no pair lacks more than SETTLED of the spacing, or sweep_limit of them are done. s->lacking is what
// pairs lack then.
static SandStatus settle(Spread *s, int sweep_limit, SandError *err)
{
	if (s->gl != NULL)
	{
		SandGlPoints points = {s->places, s->drifts, s->triangles, s->count, s->is_changed};
		SandStatus status = sand_glspread_settle(s->gl, &points, sweep_limit, &s->lacking, err);
		s->is_changed = points.is_changed;
		return status != SAND_CANCELLED
		           ? status
		           : sand_fail(err, SAND_CANCELLED, "Cancelled while %d points were spread", s->count);
	}
	for (int i = 0; i < sweep_limit && !is_cancelled(s); ++i)
	{
		s->lacking = sweep(s);
		if (s->lacking < SETTLED)
		{
			return SAND_OK;
		}
	}
	return is_cancelled(s) ? sand_fail(err, SAND_CANCELLED, "Cancelled while %d points were spread", s->count)
	                       : SAND_OK;
}

// Rough sweeps, then rounds of taking out, putting in and settling. What counts as crowded grows from round to round:
// at first sweeps may still help. The last rounds take out whatever is nearer than the spacing allows, so that none is
// in the end: where a mesh is thinner than the spacing, up to half of the points.
static SandStatus relax(Spread *s, SandError *err)
{
	static const double crowded[ROUND_LIMIT] = {0.8, 0.85, 0.9, NEAREST, NEAREST, NEAREST};
	s->is_changed = true;
	if (s->gl == NULL)
	{
		make_lists(s);
	}
	SandStatus status = settle(s, ROUGH_SWEEPS, err);
	int added = s->count;
	for (int round = 0; round < ROUND_LIMIT && status == SAND_OK; ++round)
	{
		int taken = 0;
		status = (double)s->lacking > 1 - crowded[round] ? take_out(s, crowded[round], &taken, err) : SAND_OK;
		if (status != SAND_OK)
		{
			return status;
		}
		if (taken > 0 || added > s->count / MANY)
		{
			status = put_in(s, FREE, &added, err);
			status = status == SAND_OK ? settle(s, ROUND_SWEEPS, err) : status;
		}
	}
	if (status == SAND_OK && s->lacking >= SETTLED)
	{
		status = settle(s, LAST_SWEEPS, err);
	}
	if (status == SAND_OK && (double)s->lacking > 1 - NEAREST)
	{
		int taken;
		status = take_out(s, NEAREST, &taken, err);
	}
	return status;
}

// Points that are not at the offset, or on its other side, go.
static void check_task(void *context, int task)
{
	Spread *s = context;
	for (int i = block_start(s, task), end = block_start(s, task + 1); i < end; ++i)
	{
		double place[3];
		for (int k = 0; k < 3; ++k)
		{
			place[k] = (double)s->places[i][k] + s->middle[k];
		}
		double distance = sand_surface_distance(s->surface, place);
		s->triangles[i] = fabs(distance - s->offset) < LEVEL_TOLERANCE * fabs(s->offset) ? s->triangles[i] : -1;
	}
}

static void level_task(void *context, int task)
{
	Spread *s = context;
	for (int i = block_start(s, task), end = block_start(s, task + 1); i < end; ++i)
	{
		double p[3] = {s->places[i][0], s->places[i][1], s->places[i][2]};
		(void)go_to_level(s, p, INFINITY, &s->triangles[i]);
		for (int k = 0; k < 3; ++k)
		{
			s->places[i][k] = (float)p[k];
		}
	}
}

static void run_over_points(Spread *s, SandTask *task)
{
	s->task_count = sand_block_count(s->count, TASK_POINTS);
	sand_pool_run(s->pool, task, s, s->task_count);
}

static SandStatus give_points(const Spread *s, SandPoints *points_out, SandError *err)
{
	const SandMesh *mesh = sand_surface_mesh(s->surface);
	if (s->count == 0)
	{
		return sand_fail(err, SAND_ERROR_MESH,
		                 "Mesh '%.100s' has no place %g m %s its surface; use an offset nearer to 0",
		                 sand_mesh_name(mesh), fabs(s->offset), s->offset < 0 ? "inside" : "outside");
	}
	points_out->xyz = sand_alloc(3 * (size_t)s->count, sizeof(float));
	if (points_out->xyz == NULL)
	{
		return sand_fail_memory(err, 3 * (size_t)s->count * sizeof(float), "the points");
	}
	points_out->count = s->count;
	for (size_t i = 0; i < (size_t)s->count; ++i)
	{
		for (size_t k = 0; k < 3; ++k)
		{
			points_out->xyz[3 * i + k] = (float)((double)s->places[i][k] + s->middle[k]);
		}
	}
	return SAND_OK;
}

static SandStatus check_desc(const SandMesh *mesh, const SandSpreadDesc *desc, double estimate, SandError *err)
{
	SandStatus status = sand_sampler_check_spacing(mesh, (double)desc->spacing, estimate, err);
	double size = 0;
	for (int k = 0; k < 3; ++k)
	{
		double side = (double)mesh->bounds_max[k] - (double)mesh->bounds_min[k];
		size += side * side;
	}
	size = sqrt(size);
	if (status == SAND_OK && (double)desc->spacing > size)
	{
		status = sand_fail(err, SAND_ERROR_ARGUMENT,
		                   "Spacing is %g m but mesh '%.100s' is only %g m across; use a spacing below half of that",
		                   (double)desc->spacing, sand_mesh_name(mesh), size);
	}
	if (status == SAND_OK && !isfinite(desc->offset))
	{
		status = sand_fail(err, SAND_ERROR_ARGUMENT, "Offset is %g m; it must be a length, 0 m puts points on the mesh",
		                   (double)desc->offset);
	}
	return status;
}

static SandStatus spread_points(Spread *s, const SandMesh *mesh, double estimate, SandGpu *gpu, SandPoints *points_out,
                                SandError *err)
{
	int wanted = estimate < 1 ? 1 : (int)estimate;
	if (reserve(s, wanted + wanted / 2 + 64) != SAND_OK)
	{
		return sand_fail_memory(err, (size_t)s->capacity * (5 * sizeof(s->places[0]) + sizeof(s->lists[0])),
		                        "the points and their neighbours");
	}
	for (int k = 0; k < 3; ++k)
	{
		s->middle[k] = 0.5 * ((double)mesh->bounds_min[k] + (double)mesh->bounds_max[k]);
	}
	s->cells_per_metre = 1 / (s->spacing * (1 + (double)LIST_MARGIN));
	seed_points(s, wanted);
	if (s->offset != 0)
	{
		run_over_points(s, level_task);
	}
	SandStatus status = order_points(s, err);
	if (status == SAND_OK && gpu != NULL)
	{
		SandGlSpreadDesc desc = {.gpu = gpu,
		                         .surface = s->surface,
		                         .spacing = s->spacing,
		                         .offset = s->offset,
		                         .cells_per_metre = s->cells_per_metre,
		                         .list_reach = (float)s->spacing * (1 + LIST_MARGIN),
		                         .list_margin = 0.5f * LIST_MARGIN * (float)s->spacing,
		                         .settled = SETTLED,
		                         .capacity = s->capacity,
		                         .bucket_bits = s->bucket_bits,
		                         .cancel = s->cancel};
		status = sand_glspread_create(&desc, s->pool, &s->gl, err);
	}
	status = status == SAND_OK ? relax(s, err) : status;
	if (status == SAND_OK && s->offset != 0)
	{
		run_over_points(s, check_task);
		drop_marked(s);
	}
	return status == SAND_OK ? give_points(s, points_out, err) : status;
}

SandStatus sand_spread_points(const SandSurface *surface, const SandSpreadDesc *desc, SandPool *pool,
                              SandPoints *points_out, SandError *err)
{
	const SandMesh *mesh = sand_surface_mesh(surface);
	double spacing = desc->spacing, estimate = DENSITY * mesh->area / (spacing * spacing);
	*points_out = (SandPoints){0};
	SandStatus status = check_desc(mesh, desc, estimate, err);
	if (status != SAND_OK)
	{
		return status;
	}
	Spread s = {.surface = surface,
	            .pool = pool,
	            .cancel = desc->cancel,
	            .spacing = spacing,
	            .offset = (double)desc->offset,
	            .seed = desc->seed};
	status = spread_points(&s, mesh, estimate, desc->gpu, points_out, err);
	free_all(&s);
	return status;
}
