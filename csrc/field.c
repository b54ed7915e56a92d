// field: the signed distance to a mesh on a grid, kept only near the surface.
// Comes in: SandSurface. Goes out: SandField: value and gradient anywhere in the band.
//
// Every triangle names the bricks that its band may reach; sorted by brick, these records say what each brick has to
// look at. Distances come first, without a sign. Then signs: two nodes whose distances sum up to more than what lies
// between them have no surface between them, so the sign of one is that of the other, and few have to be asked for.
#include "field.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "glfield.h"
#include "rows.h"
#include "sort.h"

#define BRICK_LIMIT (INT64_C(1) << 31) // in the whole grid: keys of the sort
#define AXIS_LIMIT (1 << 27)           // bricks along an axis: node numbers are int32_t
#define BAND_LIMIT 100.0               // voxels
#define BAND_DEFAULT 3.0F              // voxels
#define SLACK 0.01                     // voxels: bricks just out of reach are looked at as well
#define HALF_BRICK 3.5                 // voxels, from its middle to its outermost nodes
#define MANY_BRICKS 27                 // a triangle with more than that in its box looks at each more closely
#define NO_VALUE INFINITY              // of a node out of the band

enum
{
	SIDE = SAND_ROW_NODES,
	TRIANGLES_SMALLEST = 512, // per task
	BRICKS_SMALLEST = 8
};

struct SandField
{
	SandFieldInfo info;
	int32_t bricks[3];  // along each axis of the whole grid
	float *values;      // SAND_BRICK_NODES per brick
	uint32_t *keys;     // per brick, ascending: its number in the whole grid, x first
	int32_t *slots;     // open addressing: brick + 1, 0 = free
	uint32_t slot_mask; // their number is a power of two, at least twice that of the bricks
	int slot_shift;
};

typedef struct Build
{
	SandField *field;
	const SandSurface *surface;
	const SandMesh *mesh;
	const SandCancel *cancel;
	const SandRows *rows;
	double inverse_voxel, band; // voxels
	int triangle_task_count, brick_task_count;
	int64_t counts[SAND_BLOCK_LIMIT + 1]; // records before each task's
	uint64_t *records;                    // NULL while they are counted
	const uint64_t *sorted;
	int32_t *starts; // per brick, + 1: its first record
	int brick_count;
	SandGlFieldWork *gl; // NULL = the processor
} Build;

static bool is_cancelled(const Build *build)
{
	return build->cancel != NULL && atomic_load(&build->cancel->is_raised);
}

// ---- which triangles are near which brick

// Corners in voxels from the first node.
static void load_corners(const Build *build, uint32_t triangle, double corners[3][3])
{
	const SandFieldInfo *info = &build->field->info;
	for (size_t i = 0; i < 3; ++i)
	{
		const float *vertex = &build->mesh->vertices[3 * (size_t)build->mesh->triangles[3 * (size_t)triangle + i]];
		for (int k = 0; k < 3; ++k)
		{
			corners[i][k] = ((double)vertex[k] - info->origin[k]) * build->inverse_voxel;
		}
	}
}

static double smallest_of(double a, double b, double c)
{
	double least = a < b ? a : b;
	return least < c ? least : c;
}

static double largest_of(double a, double b, double c)
{
	double most = a > b ? a : b;
	return most > c ? most : c;
}

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static int32_t brick_at(const SandField *field, int axis, double node)
{
	int32_t brick = node <= 0 ? 0 : (int32_t)(node / SIDE);
	return brick < field->bricks[axis] ? brick : field->bricks[axis] - 1;
}

// Square of the distance from a place to the segment between two.
static double segment_square(const double from[3], const double to[3], const double place[3])
{
	double along[3], off[3];
	for (int k = 0; k < 3; ++k)
	{
		along[k] = to[k] - from[k];
		off[k] = place[k] - from[k];
	}
	double length = dot(along, along), share = length > 0 ? dot(along, off) / length : 0;
	share = share < 0 ? 0 : share > 1 ? 1 : share;
	for (int k = 0; k < 3; ++k)
	{
		off[k] -= share * along[k];
	}
	return dot(off, off);
}

// Whether a place over the plane of the triangle is farther than reach from the triangle.
static bool is_beside(const double corners[3][3], const double normal[3], const double place[3], double reach)
{
	bool is_over = true;
	double square = INFINITY;
	for (int i = 0; i < 3; ++i)
	{
		const double *from = corners[i], *to = corners[(i + 1) % 3];
		const double along[3] = {to[0] - from[0], to[1] - from[1], to[2] - from[2]};
		const double off[3] = {place[0] - from[0], place[1] - from[1], place[2] - from[2]};
		const double inwards[3] = {normal[1] * along[2] - normal[2] * along[1],
		                           normal[2] * along[0] - normal[0] * along[2],
		                           normal[0] * along[1] - normal[1] * along[0]};
		is_over = is_over && dot(inwards, off) >= 0;
		square = fmin(square, segment_square(from, to, place));
	}
	return !is_over && square > reach * reach;
}

// The bricks that a triangle's band may reach are those of its grown box between two planes beside its own.
typedef struct Span
{
	double corners[3][3];
	double normal[3]; // any length
	double offset;    // of the plane: normal times place
	double thickness; // the planes' distance from the middle of a brick that just touches the band, times the length
	double reach;     // voxels, from the middle of a brick: the same for all directions
	int32_t low[3], high[3];
	bool is_large;
} Span;

static Span span_of(const Build *build, uint32_t triangle)
{
	Span span = {0};
	load_corners(build, triangle, span.corners);
	const double *a = span.corners[0], *b = span.corners[1], *c = span.corners[2];
	double u[3], v[3], grown = build->band + SLACK;
	int64_t count = 1;
	for (int k = 0; k < 3; ++k)
	{
		u[k] = b[k] - a[k];
		v[k] = c[k] - a[k];
		span.low[k] = brick_at(build->field, k, ceil(smallest_of(a[k], b[k], c[k]) - grown));
		span.high[k] = brick_at(build->field, k, floor(largest_of(a[k], b[k], c[k]) + grown));
		count *= span.high[k] - span.low[k] + 1;
	}
	span.is_large = count > MANY_BRICKS;
	span.normal[0] = u[1] * v[2] - u[2] * v[1];
	span.normal[1] = u[2] * v[0] - u[0] * v[2];
	span.normal[2] = u[0] * v[1] - u[1] * v[0];
	span.offset = dot(span.normal, a);
	double sum = fabs(span.normal[0]) + fabs(span.normal[1]) + fabs(span.normal[2]);
	span.thickness = grown * sqrt(dot(span.normal, span.normal)) + HALF_BRICK * sum;
	span.reach = grown + HALF_BRICK * sqrt(3.0);
	return span;
}

// Bricks of one row along x that lie between the planes.
static void cut_row(const Span *span, int32_t y, int32_t z, int32_t *low, int32_t *high)
{
	double at = span->normal[1] * (SIDE * (double)y + HALF_BRICK) + span->normal[2] * (SIDE * (double)z + HALF_BRICK) -
	            span->offset;
	double slope = span->normal[0] * SIDE;
	*low = span->low[0];
	*high = span->high[0];
	while (*low <= *high && fabs(at + span->normal[0] * HALF_BRICK + slope * *low) > span->thickness)
	{
		++*low;
	}
	while (*high > *low && fabs(at + span->normal[0] * HALF_BRICK + slope * *high) > span->thickness)
	{
		--*high;
	}
}

static int64_t list_bricks(const Build *build, uint32_t triangle, uint64_t *records)
{
	Span span = span_of(build, triangle);
	const int32_t *bricks = build->field->bricks;
	int64_t count = 0;
	for (int32_t z = span.low[2]; z <= span.high[2]; ++z)
	{
		for (int32_t y = span.low[1]; y <= span.high[1]; ++y)
		{
			int32_t low, high;
			cut_row(&span, y, z, &low, &high);
			for (int32_t x = low; x <= high; ++x)
			{
				const double middle[3] = {SIDE * (double)x + HALF_BRICK, SIDE * (double)y + HALF_BRICK,
				                          SIDE * (double)z + HALF_BRICK};
				if (span.is_large && is_beside(span.corners, span.normal, middle, span.reach))
				{
					continue;
				}
				if (records != NULL)
				{
					uint64_t key =
					    ((uint64_t)z * (uint64_t)bricks[1] + (uint64_t)y) * (uint64_t)bricks[0] + (uint64_t)x;
					records[count] = key << 32 | triangle;
				}
				++count;
			}
		}
	}
	return count;
}

static void list_task(void *context, int task)
{
	Build *build = context;
	int first = sand_part_start(build->mesh->triangle_count, task, build->triangle_task_count);
	int end = sand_part_start(build->mesh->triangle_count, task + 1, build->triangle_task_count);
	uint64_t *records = build->records != NULL ? build->records + build->counts[task] : NULL;
	int64_t count = 0;
	for (int triangle = first; triangle < end && !is_cancelled(build); ++triangle)
	{
		count += list_bricks(build, (uint32_t)triangle, records != NULL ? records + count : NULL);
	}
	if (records == NULL)
	{
		build->counts[task + 1] = count;
	}
}

// ---- distances and signs of one brick

// Steps to the neighbours of a node, and their lengths in voxels.
typedef struct Step
{
	int x, y, z;
	float length;
} Step;

#define FACE_STEP 1.0F
#define EDGE_STEP 1.41421356F
#define CORNER_STEP 1.73205081F
// What rounding may take from a sum of two distances.
#define LINK_SHARE 1.00001F

static const Step STEPS[26] = {
    {1, 0, 0, FACE_STEP},     {-1, 0, 0, FACE_STEP},     {0, 1, 0, FACE_STEP},    {0, -1, 0, FACE_STEP},
    {0, 0, 1, FACE_STEP},     {0, 0, -1, FACE_STEP},     {1, 1, 0, EDGE_STEP},    {1, -1, 0, EDGE_STEP},
    {-1, 1, 0, EDGE_STEP},    {-1, -1, 0, EDGE_STEP},    {1, 0, 1, EDGE_STEP},    {1, 0, -1, EDGE_STEP},
    {-1, 0, 1, EDGE_STEP},    {-1, 0, -1, EDGE_STEP},    {0, 1, 1, EDGE_STEP},    {0, 1, -1, EDGE_STEP},
    {0, -1, 1, EDGE_STEP},    {0, -1, -1, EDGE_STEP},    {1, 1, 1, CORNER_STEP},  {1, 1, -1, CORNER_STEP},
    {1, -1, 1, CORNER_STEP},  {1, -1, -1, CORNER_STEP},  {-1, 1, 1, CORNER_STEP}, {-1, 1, -1, CORNER_STEP},
    {-1, -1, 1, CORNER_STEP}, {-1, -1, -1, CORNER_STEP},
};

#define UNASKED 2 // sign of a node out of the band that need not be known

// Signs of a brick's nodes while they are found.
typedef struct Signs
{
	const float *distance;         // voxels; where out of the band, the band: it is at least that far
	int8_t sign[SAND_BRICK_NODES]; // -1 inside, 1 outside, 0 not known yet, UNASKED
	int16_t pending[SAND_BRICK_NODES];
	int pending_count;
} Signs;

// The neighbour at a step when nothing can lie between the two, else -1.
static int linked(const Signs *signs, int node, const Step *step)
{
	int x = node % SIDE + step->x, y = node / SIDE % SIDE + step->y, z = node / (SIDE * SIDE) + step->z;
	if (((x | y | z) & ~(SIDE - 1)) != 0)
	{
		return -1;
	}
	int other = SIDE * (SIDE * z + y) + x;
	return signs->distance[node] + signs->distance[other] > step->length * LINK_SHARE ? other : -1;
}

// Gives a node its sign, and all that hang together with it and have none.
static void spread_sign(Signs *signs, int node, int8_t sign)
{
	signs->sign[node] = sign;
	signs->pending[0] = (int16_t)node;
	signs->pending_count = 1;
	while (signs->pending_count > 0)
	{
		int here = signs->pending[--signs->pending_count];
		for (int i = 0; i < 26; ++i)
		{
			int other = linked(signs, here, &STEPS[i]);
			if (other >= 0 && signs->sign[other] == 0)
			{
				signs->sign[other] = sign;
				signs->pending[signs->pending_count++] = (int16_t)other;
			}
		}
	}
}

// The first node from `node` on without a sign; SAND_BRICK_NODES when all have one.
static int next_unknown(const Signs *signs, int node)
{
	const int8_t *found = memchr(signs->sign + node, 0, (size_t)(SAND_BRICK_NODES - node));
	return found != NULL ? (int)(found - signs->sign) : SAND_BRICK_NODES;
}

static int8_t sign_of_neighbours(const Signs *signs, int node)
{
	for (int i = 0; i < 26; ++i)
	{
		int other = linked(signs, node, &STEPS[i]);
		if (other >= 0 && (signs->sign[other] & 1) != 0)
		{
			return signs->sign[other];
		}
	}
	return 0;
}

static void place_of(const SandField *field, uint32_t key, int node, double place[3])
{
	const int32_t *bricks = field->bricks;
	const uint32_t columns = (uint32_t)bricks[0], rows = (uint32_t)bricks[1];
	const uint32_t brick[3] = {key % columns, key / columns % rows, key / columns / rows};
	const int inner[3] = {node % SIDE, node / SIDE % SIDE, node / (SIDE * SIDE)};
	for (int k = 0; k < 3; ++k)
	{
		place[k] = field->info.origin[k] + (double)field->info.voxel * (SIDE * (double)brick[k] + inner[k]);
	}
}

// Where pseudo-normals decide, the nearest face says at once on which side of it a node lies; the others learn it from
// their neighbours, and only those without any are asked for. Else all are unknown, and those out of the band help to
// hold the others together.
static void find_signs(const Build *build, const SandRowsBrick *brick, uint32_t key, Signs *signs)
{
	float band = (float)build->band;
	bool is_clean = sand_surface_is_clean(build->surface);
	for (int node = 0; node < SAND_BRICK_NODES; ++node)
	{
		int side = (brick->height[node] > 0) - (brick->height[node] < 0);
		int sign = signs->distance[node] < band ? side : UNASKED;
		signs->sign[node] = (int8_t)(is_clean ? sign : 0);
	}
	for (int node = next_unknown(signs, 0); node < SAND_BRICK_NODES && is_clean; node = next_unknown(signs, node + 1))
	{
		int8_t sign = sign_of_neighbours(signs, node);
		if (sign != 0)
		{
			spread_sign(signs, node, sign);
		}
	}
	for (int node = next_unknown(signs, 0); node < SAND_BRICK_NODES; node = next_unknown(signs, node + 1))
	{
		if (signs->distance[node] < band)
		{
			double place[3];
			place_of(build->field, key, node, place);
			spread_sign(signs, node, sand_surface_is_inside(build->surface, place) ? -1 : 1);
		}
	}
}

static void fill_brick(const Build *build, int index)
{
	SandField *field = build->field;
	SandRowsBrick brick;
	Signs signs;
	uint32_t key = field->keys[index];
	float band = (float)build->band, voxel = field->info.voxel,
	      *values = &field->values[(size_t)index * SAND_BRICK_NODES];
	const uint32_t columns = (uint32_t)field->bricks[0], rows = (uint32_t)field->bricks[1];
	const double middle[3] = {SIDE * (double)(key % columns) + HALF_BRICK,
	                          SIDE * (double)(key / columns % rows) + HALF_BRICK,
	                          SIDE * (double)(key / columns / rows) + HALF_BRICK};
	for (int node = 0; node < SAND_BRICK_NODES; ++node)
	{
		brick.square[node] = INFINITY;
		brick.height[node] = 0;
	}
	for (int i = build->starts[index]; i < build->starts[index + 1]; ++i)
	{
		double corners[3][3];
		load_corners(build, (uint32_t)build->sorted[i], corners);
		for (int k = 0; k < 9; ++k)
		{
			corners[k / 3][k % 3] -= middle[k % 3];
		}
		build->rows->take(&brick, (const double(*)[3])corners, band);
	}
	build->rows->finish(&brick, band);
	signs.distance = brick.square;
	find_signs(build, &brick, key, &signs);
	for (int node = 0; node < SAND_BRICK_NODES; ++node)
	{
		float distance = brick.square[node] * (signs.sign[node] < 0 ? -voxel : voxel);
		values[node] = brick.square[node] < band ? distance : NO_VALUE;
	}
}

static void brick_task(void *context, int task)
{
	const Build *build = context;
	int first = sand_part_start(build->brick_count, task, build->brick_task_count);
	int end = sand_part_start(build->brick_count, task + 1, build->brick_task_count);
	for (int index = first; index < end && !is_cancelled(build); ++index)
	{
		fill_brick(build, index);
	}
}

// ---- the whole

static SandStatus check_desc(const SandFieldDesc *desc, SandError *err)
{
	if (!(desc->voxel > 0) || !isfinite(desc->voxel))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The voxel of a distance field is %g m, expected a length above 0",
		                 (double)desc->voxel);
	}
	if (!(desc->band >= 0) || !((double)desc->band <= BAND_LIMIT * (double)desc->voxel))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "The band of a distance field is %g m, expected 0 (three voxels) to %g m, %g voxels; use a "
		                 "larger voxel",
		                 (double)desc->band, BAND_LIMIT * (double)desc->voxel, BAND_LIMIT);
	}
	return SAND_OK;
}

static SandStatus refuse_voxel(const Build *build, double excess, SandError *err)
{
	double voxel = (double)build->field->info.voxel;
	return sand_fail(err, SAND_ERROR_ARGUMENT,
	                 "%s is too large for a distance field with a voxel of %g m; a voxel of %.2g m or more would do",
	                 sand_mesh_label(build->mesh).text, voxel, 1.1 * excess * voxel);
}

// The grid begins a little more than the band before the mesh and ends as much behind it.
static SandStatus lay_grid(Build *build, SandError *err)
{
	SandField *field = build->field;
	double brick_count = 1, longest = 0, margin = build->band + 1;
	for (int k = 0; k < 3; ++k)
	{
		double low = (double)build->mesh->bounds_min[k], high = (double)build->mesh->bounds_max[k];
		double count = floor(((high - low) * build->inverse_voxel + 2 * margin) / SIDE) + 1;
		field->info.origin[k] = low - margin * (double)field->info.voxel;
		brick_count *= count;
		longest = fmax(longest, count);
		field->bricks[k] = count <= AXIS_LIMIT ? (int32_t)count : 0;
		field->info.size[k] = SIDE * field->bricks[k];
	}
	if (!(brick_count <= (double)BRICK_LIMIT) || !(longest <= AXIS_LIMIT))
	{
		return refuse_voxel(build, fmax(cbrt(brick_count / (double)BRICK_LIMIT), longest / AXIS_LIMIT), err);
	}
	return SAND_OK;
}

static int bits_of(uint64_t limit)
{
	int bits = 1;
	while (bits < 32 && limit >> bits != 0)
	{
		++bits;
	}
	return bits;
}

// The device lists and sorts what it can hold; *is_done_out tells.
static SandStatus sort_on_device(Build *build, SandSorter **sorter_out, bool *is_done_out, SandError *err)
{
	const int32_t *bricks = build->field->bricks;
	int64_t count = 0;
	*is_done_out = false;
	SandStatus status = sand_glfield_count(build->gl, &count, err);
	if (status != SAND_OK || count > sand_glfield_pair_limit(build->gl))
	{
		return status;
	}
	status = sand_sorter_create((int)count, sorter_out, err);
	if (status != SAND_OK)
	{
		return status;
	}
	uint64_t total = (uint64_t)bricks[0] * (uint64_t)bricks[1] * (uint64_t)bricks[2];
	build->records = sand_sorter_records(*sorter_out);
	build->sorted = build->records;
	build->triangle_task_count = 1;
	build->counts[1] = count;
	*is_done_out = true;
	return sand_glfield_list(build->gl, count, bits_of(total - 1), build->records, err);
}

static SandStatus sort_records(Build *build, SandPool *pool, SandSorter **sorter_out, SandError *err)
{
	const SandField *field = build->field;
	bool is_done = false;
	SandStatus device = build->gl != NULL ? sort_on_device(build, sorter_out, &is_done, err) : SAND_OK;
	if (device != SAND_OK || is_done)
	{
		return device;
	}
	build->triangle_task_count = sand_block_count(build->mesh->triangle_count, TRIANGLES_SMALLEST);
	sand_pool_run(pool, list_task, build, build->triangle_task_count);
	for (int task = 0; task < build->triangle_task_count; ++task)
	{
		build->counts[task + 1] += build->counts[task];
	}
	int64_t count = build->counts[build->triangle_task_count];
	if (count > INT_MAX)
	{
		return refuse_voxel(build, sqrt((double)count / INT_MAX), err);
	}
	SandStatus status = sand_sorter_create((int)count, sorter_out, err);
	if (status != SAND_OK || is_cancelled(build))
	{
		return status;
	}
	build->records = sand_sorter_records(*sorter_out);
	sand_pool_run(pool, list_task, build, build->triangle_task_count);
	uint64_t total = (uint64_t)field->bricks[0] * (uint64_t)field->bricks[1] * (uint64_t)field->bricks[2];
	build->sorted = is_cancelled(build) ? build->records : sand_sort(*sorter_out, (int)count, bits_of(total - 1), pool);
	return SAND_OK;
}

static uint32_t slot_of(const SandField *field, uint32_t key)
{
	return (key * UINT32_C(0x9E3779B1)) >> field->slot_shift;
}

// -1 when the grid has no such brick.
static int32_t find_brick(const SandField *field, uint32_t key)
{
	for (uint32_t slot = slot_of(field, key);; slot = (slot + 1) & field->slot_mask)
	{
		int32_t brick = field->slots[slot] - 1;
		if (brick < 0 || field->keys[brick] == key)
		{
			return brick;
		}
	}
}

static SandStatus make_bricks(Build *build, SandError *err)
{
	SandField *field = build->field;
	int record_count = (int)build->counts[build->triangle_task_count], count = 0;
	for (int i = 0; i < record_count; ++i)
	{
		count += i == 0 || build->sorted[i] >> 32 != build->sorted[i - 1] >> 32;
	}
	int slot_bits = bits_of((uint64_t)count) + 1;
	size_t slot_count = (size_t)1 << slot_bits, value_count = (size_t)count * SAND_BRICK_NODES;
	build->brick_count = count;
	field->slot_mask = (uint32_t)(slot_count - 1);
	field->slot_shift = 32 - slot_bits;
	field->info.brick_count = count;
	field->info.byte_count = (int64_t)(sizeof(SandField) + value_count * sizeof(float) +
	                                   (size_t)count * sizeof(uint32_t) + slot_count * sizeof(int32_t));
	build->starts = sand_alloc((size_t)count + 1, sizeof(int32_t));
	field->keys = sand_alloc((size_t)count, sizeof(uint32_t));
	field->slots = sand_alloc(slot_count, sizeof(int32_t));
	field->values = sand_alloc(value_count, sizeof(float));
	if (build->starts == NULL || field->keys == NULL || field->slots == NULL || field->values == NULL)
	{
		return sand_fail_memory(err, (size_t)field->info.byte_count, "a distance field");
	}
	int brick = 0;
	for (int i = 0; i < record_count; ++i)
	{
		uint32_t key = (uint32_t)(build->sorted[i] >> 32);
		if (i > 0 && key == field->keys[brick - 1])
		{
			continue;
		}
		uint32_t slot = slot_of(field, key);
		while (field->slots[slot] != 0)
		{
			slot = (slot + 1) & field->slot_mask;
		}
		field->keys[brick] = key;
		build->starts[brick] = i;
		field->slots[slot] = ++brick;
	}
	build->starts[count] = record_count;
	return SAND_OK;
}

static SandStatus build_field(Build *build, SandGpu *gpu, SandPool *pool, SandSorter **sorter_out, SandError *err)
{
	SandStatus status = lay_grid(build, err);
	if (status == SAND_OK && gpu != NULL)
	{
		SandGlFieldDesc desc = {.gpu = gpu,
		                        .surface = build->surface,
		                        .inverse_voxel = build->inverse_voxel,
		                        .band = build->band,
		                        .voxel = build->field->info.voxel,
		                        .cancel = build->cancel};
		memcpy(desc.origin, build->field->info.origin, sizeof(desc.origin));
		memcpy(desc.bricks, build->field->bricks, sizeof(desc.bricks));
		status = sand_glfield_create(&desc, pool, &build->gl, err);
	}
	if (status == SAND_OK)
	{
		status = sort_records(build, pool, sorter_out, err);
	}
	if (status == SAND_OK && !is_cancelled(build))
	{
		status = make_bricks(build, err);
	}
	if (status == SAND_OK && !is_cancelled(build) && build->gl != NULL)
	{
		const SandField *field = build->field;
		status = sand_glfield_fill(build->gl, field->keys, build->starts, build->sorted, build->brick_count,
		                           field->values, err);
	}
	else if (status == SAND_OK && !is_cancelled(build))
	{
		build->brick_task_count = sand_block_count(build->brick_count, BRICKS_SMALLEST);
		sand_pool_run(pool, brick_task, build, build->brick_task_count);
	}
	if (status == SAND_CANCELLED || (status == SAND_OK && is_cancelled(build)))
	{
		return sand_fail(err, SAND_CANCELLED, "The distance field of mesh '%s' was cancelled",
		                 sand_mesh_name(build->mesh));
	}
	return status;
}

SandStatus sand_field_create(const SandSurface *surface, const SandFieldDesc *desc, SandPool *pool,
                             SandField **field_out, SandError *err)
{
	*field_out = NULL;
	SandStatus status = check_desc(desc, err);
	if (status != SAND_OK)
	{
		return status;
	}
	SandSorter *sorter = NULL;
	SandField *field = sand_alloc(1, sizeof(SandField));
	status = field == NULL ? sand_fail_memory(err, sizeof(SandField), "a distance field") : SAND_OK;
	Build build = {.field = field,
	               .surface = surface,
	               .mesh = sand_surface_mesh(surface),
	               .cancel = desc->cancel,
	               .rows = sand_rows_find(NULL),
	               .inverse_voxel = 1 / (double)desc->voxel};
	if (status == SAND_OK)
	{
		field->info.voxel = desc->voxel;
		field->info.band = desc->band > 0 ? desc->band : BAND_DEFAULT * desc->voxel;
		// A node just at the band is in it.
		build.band = (1 + 1e-6) * (double)field->info.band * build.inverse_voxel;
		status = build_field(&build, desc->gpu, pool, &sorter, err);
	}
	sand_glfield_destroy(build.gl);
	sand_free(build.starts);
	sand_sorter_destroy(sorter);
	if (status != SAND_OK)
	{
		sand_field_destroy(field);
		return status;
	}
	*field_out = field;
	return SAND_OK;
}

void sand_field_destroy(SandField *field)
{
	if (field == NULL)
	{
		return;
	}
	sand_free(field->values);
	sand_free(field->keys);
	sand_free(field->slots);
	sand_free(field);
}

SandFieldInfo sand_field_info(const SandField *field)
{
	return field->info;
}

static float value_of(const SandField *field, int32_t x, int32_t y, int32_t z)
{
	uint32_t key =
	    ((uint32_t)(z / SIDE) * (uint32_t)field->bricks[1] + (uint32_t)(y / SIDE)) * (uint32_t)field->bricks[0] +
	    (uint32_t)(x / SIDE);
	int32_t brick = find_brick(field, key);
	int node = SIDE * (SIDE * (z % SIDE) + y % SIDE) + x % SIDE;
	return brick < 0 ? NO_VALUE : field->values[(size_t)brick * SAND_BRICK_NODES + (size_t)node];
}

bool sand_field_node(const SandField *field, int32_t x, int32_t y, int32_t z, float *distance_out)
{
	const int32_t *size = field->info.size;
	if (x < 0 || y < 0 || z < 0 || x >= size[0] || y >= size[1] || z >= size[2])
	{
		return false;
	}
	float value = value_of(field, x, y, z);
	if (value == NO_VALUE)
	{
		return false;
	}
	*distance_out = value;
	return true;
}

// The eight nodes from (x, y, z) on, x first; false when one is not in the band.
static bool load_cell(const SandField *field, const int32_t at[3], double cell[8])
{
	bool is_within = at[0] % SIDE < SIDE - 1 && at[1] % SIDE < SIDE - 1 && at[2] % SIDE < SIDE - 1;
	const float *first = NULL;
	if (is_within)
	{
		uint32_t key = ((uint32_t)(at[2] / SIDE) * (uint32_t)field->bricks[1] + (uint32_t)(at[1] / SIDE)) *
		                   (uint32_t)field->bricks[0] +
		               (uint32_t)(at[0] / SIDE);
		int32_t brick = find_brick(field, key);
		if (brick < 0)
		{
			return false;
		}
		first = &field->values[(size_t)brick * SAND_BRICK_NODES +
		                       (size_t)(SIDE * (SIDE * (at[2] % SIDE) + at[1] % SIDE) + at[0] % SIDE)];
	}
	for (int i = 0; i < 8; ++i)
	{
		int x = i & 1, y = i >> 1 & 1, z = i >> 2;
		float value = is_within ? first[SIDE * (SIDE * z + y) + x] : value_of(field, at[0] + x, at[1] + y, at[2] + z);
		if (value == NO_VALUE)
		{
			return false;
		}
		cell[i] = (double)value;
	}
	return true;
}

bool sand_field_sample(const SandField *field, const double place[3], double *distance_out, double gradient_out[3])
{
	int32_t at[3];
	double share[3], cell[8], voxel = (double)field->info.voxel;
	for (int k = 0; k < 3; ++k)
	{
		double node = (place[k] - field->info.origin[k]) / voxel;
		// Written so that a NaN fails it.
		if (!(node >= 0 && node < field->info.size[k] - 1))
		{
			return false;
		}
		at[k] = (int32_t)node;
		share[k] = node - at[k];
	}
	if (!load_cell(field, at, cell))
	{
		return false;
	}
	// Along x, then y, then z: a pair of values becomes one, and its slope.
	double x = share[0], y = share[1], z = share[2], along_x[4], slope_x[4];
	for (int i = 0; i < 4; ++i)
	{
		slope_x[i] = cell[2 * i + 1] - cell[2 * i];
		along_x[i] = cell[2 * i] + x * slope_x[i];
	}
	double low = along_x[0] + y * (along_x[1] - along_x[0]), high = along_x[2] + y * (along_x[3] - along_x[2]);
	*distance_out = low + z * (high - low);
	if (gradient_out != NULL)
	{
		double slope_low = slope_x[0] + y * (slope_x[1] - slope_x[0]);
		double slope_high = slope_x[2] + y * (slope_x[3] - slope_x[2]);
		gradient_out[0] = (slope_low + z * (slope_high - slope_low)) / voxel;
		gradient_out[1] = (along_x[1] - along_x[0] + z * (along_x[3] - along_x[2] - along_x[1] + along_x[0])) / voxel;
		gradient_out[2] = (high - low) / voxel;
	}
	return true;
}

const float *sand_field_brick(const SandField *field, int64_t index, int32_t at_out[3])
{
	uint32_t key = field->keys[index], columns = (uint32_t)field->bricks[0], rows = (uint32_t)field->bricks[1];
	at_out[0] = (int32_t)(key % columns);
	at_out[1] = (int32_t)(key / columns % rows);
	at_out[2] = (int32_t)(key / columns / rows);
	return &field->values[(size_t)index * SAND_BRICK_NODES];
}
