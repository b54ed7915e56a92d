// sampler: mesh -> points on it (cover) or in it (fill).
// Comes in: SandMesh. Goes out: SandPoints, deterministic for one seed.
//
// Cover. Random candidates, spread by area, are thrown and kept when no kept point is nearer than the spacing. Then
// every triangle is cut into pieces until one point covers the whole piece; a piece that stays uncovered receives a
// point. So the set is maximal by proof, not by luck: no place is farther from a point than the spacing plus
// 1 / PIECE_SHARE of it, the size at which cutting ends.
//
// Fill. A hexagonal close packing: rows along x, stacked in layers of equal z. Each layer cuts the mesh into polygons
// whose corners are computed once per mesh edge, from the same numbers in the same order for all its triangles; a row
// crosses such closed polygons an even number of times whatever the rounding, so it cannot leak, not even through a
// vertex. The distance to the surface is measured only for the points of the rows that pass a triangle.
//
// Positions leave as floats, so both judge the distance of the rounded position.
#include "sampler.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// Share of A / spacing^2 that a random maximal set reaches: disks of half the spacing cover 0.547 of a plane at
// saturation (Feder 1980, "Random sequential adsorption"), 0.547 * 4 / pi.
#define COVER_DENSITY 0.7
// Random candidates per expected point. More make the set more random and the cutting shorter; the gain ends here.
#define CANDIDATE_ROUNDS 4
// Cutting ends at pieces of spacing / PIECE_SHARE.
#define PIECE_SHARE 128.0
// Random numbers of the rounds and of the cutting start here, beyond those of the candidates.
#define ROUND_STREAM (UINT64_C(1) << 61)
#define PIECE_STREAM (UINT64_C(1) << 62)
// Points remembered within reach of one piece. On a surface there are some ten; if a crumpled one has more, pieces are
// cut smaller than needed, and nothing else changes.
#define NEAR_LIMIT 128
// Longest-edge bisection shortens the longest edge to sqrt(3) 2^(-depth / 2) of it (Stynes 1980). Meshes are at most
// 2^20 spacings wide (see sand_sampler_check_spacing) before they are cut down to 1: 44 levels, one entry each.
#define STACK_LIMIT 64
// Spacing in steps of float at the mesh's farthest coordinate, below which rounding would spoil the spacing.
#define STEPS_PER_SPACING 16.0
// m: beyond, squares of distances would leave the range of floats.
#define SPACING_LEAST 1e-12
#define SPACING_MOST 1e12
// Pieces of surface that a call may have to visit, as a multiple of the point limit: some minutes of work.
#define PIECE_LIMIT (16.0 * SAND_SAMPLER_POINT_LIMIT)

void sand_points_free(SandPoints *points)
{
	if (points != NULL)
	{
		sand_free(points->xyz);
		*points = (SandPoints){0};
	}
}

// ---- what both need
// --------------------------------------------------------------------------------------------------

typedef struct Vec
{
	double x, y, z;
} Vec;

static Vec vec_sub(Vec a, Vec b)
{
	return (Vec){a.x - b.x, a.y - b.y, a.z - b.z};
}

static double vec_dot(Vec a, Vec b)
{
	return a.x * b.x + a.y * b.y + a.z * b.z;
}

static Vec vec_cross(Vec a, Vec b)
{
	return (Vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static Vec vec_lerp(Vec a, Vec b, double t)
{
	return (Vec){a.x + t * (b.x - a.x), a.y + t * (b.y - a.y), a.z + t * (b.z - a.z)};
}

static double distance_squared(Vec a, Vec b)
{
	Vec d = vec_sub(a, b);
	return vec_dot(d, d);
}

static Vec vec_from_floats(const float *xyz)
{
	return (Vec){(double)xyz[0], (double)xyz[1], (double)xyz[2]};
}

typedef struct Triangle
{
	Vec corner[3];
} Triangle;

static Triangle mesh_triangle(const SandMesh *mesh, size_t triangle)
{
	Triangle result;
	for (size_t side = 0; side < 3; ++side)
	{
		result.corner[side] = vec_from_floats(&mesh->vertices[3 * (size_t)mesh->triangles[3 * triangle + side]]);
	}
	return result;
}

static double triangle_area(const Triangle *triangle)
{
	Vec normal =
	    vec_cross(vec_sub(triangle->corner[1], triangle->corner[0]), vec_sub(triangle->corner[2], triangle->corner[0]));
	return 0.5 * sqrt(vec_dot(normal, normal));
}

// Side i runs from corner i to corner i + 1. Returns the squared length, m^2.
static double longest_side(const Triangle *triangle, int *side_out)
{
	double longest = -1.0;
	for (int side = 0; side < 3; ++side)
	{
		double length = distance_squared(triangle->corner[side], triangle->corner[(side + 1) % 3]);
		if (length > longest)
		{
			longest = length;
			*side_out = side;
		}
	}
	return longest;
}

// Pieces of about the spacing in size that the surface falls into; long thin triangles count by their length.
static double count_pieces(const SandMesh *mesh, double spacing)
{
	double piece_count = mesh->area / (spacing * spacing);
	for (size_t triangle = 0; triangle < (size_t)mesh->triangle_count; ++triangle)
	{
		Triangle corners = mesh_triangle(mesh, triangle);
		int side = 0;
		piece_count += 1.0 + sqrt(longest_side(&corners, &side)) / spacing;
	}
	return piece_count;
}

// Refuses a spacing that is no length, that floats cannot hold, or that leads to more points than the limit.
SandStatus sand_sampler_check_spacing(const SandMesh *mesh, double spacing, double point_estimate, SandError *err)
{
	if (!isfinite(spacing) || spacing <= 0.0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Spacing is %g m; it must be a length above 0 m, for example twice the grain radius", spacing);
	}
	if (point_estimate > (double)SAND_SAMPLER_POINT_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Mesh '%s' at spacing %g m needs about %.3g points, more than the limit of %d; use a larger "
		                 "spacing or a smaller mesh",
		                 sand_mesh_shown_name(mesh), spacing, point_estimate, SAND_SAMPLER_POINT_LIMIT);
	}
	if (spacing < SPACING_LEAST || spacing > SPACING_MOST)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Spacing is %g m, but only %g to %g m can be worked with; scale mesh '%s' and the spacing",
		                 spacing, SPACING_LEAST, SPACING_MOST, sand_mesh_shown_name(mesh));
	}
	double step = sand_mesh_float_step(mesh);
	if (spacing < STEPS_PER_SPACING * step)
	{
		return sand_fail(
		    err, SAND_ERROR_ARGUMENT,
		    "Mesh '%s' reaches so far from the origin that positions come in steps of %g m, too coarse for "
		    "spacing %g m; move it nearer to the origin or use a spacing of at least %g m",
		    sand_mesh_shown_name(mesh), step, spacing, STEPS_PER_SPACING * step);
	}
	double piece_count = count_pieces(mesh, spacing);
	if (piece_count > PIECE_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Mesh '%s' at spacing %g m falls into about %.3g pieces, more than the limit of %.3g; use a "
		                 "larger spacing or a simpler mesh",
		                 sand_mesh_shown_name(mesh), spacing, piece_count, PIECE_LIMIT);
	}
	return SAND_OK;
}

static SandStatus fail_point_limit(const SandMesh *mesh, double spacing, SandError *err)
{
	return sand_fail(err, SAND_ERROR_ARGUMENT,
	                 "Mesh '%s' at spacing %g m needs more than the limit of %d points; use a larger spacing or a "
	                 "smaller mesh",
	                 sand_mesh_shown_name(mesh), spacing, SAND_SAMPLER_POINT_LIMIT);
}

// A growing array; zero is empty.
typedef struct Buffer
{
	void *memory;
	size_t capacity; // elements
} Buffer;

// Makes room for count elements, keeps the first kept_count. False when memory is short: the buffer is as before.
static bool buffer_reserve(Buffer *buffer, size_t count, size_t kept_count, size_t element_bytes)
{
	if (count <= buffer->capacity)
	{
		return true;
	}
	size_t capacity = count > 2 * buffer->capacity ? count : 2 * buffer->capacity;
	void *memory = sand_alloc(capacity, element_bytes);
	if (memory == NULL)
	{
		return false;
	}
	if (kept_count > 0)
	{
		memcpy(memory, buffer->memory, kept_count * element_bytes);
	}
	sand_free(buffer->memory);
	buffer->memory = memory;
	buffer->capacity = capacity;
	return true;
}

static void buffer_free(Buffer *buffer)
{
	sand_free(buffer->memory);
	*buffer = (Buffer){0};
}

// ---- cover
// -----------------------------------------------------------------------------------------------------------

// 4 x 4 x 4 cells, each as wide as the spacing. Zeroed is empty.
typedef struct Block
{
	uint64_t occupied; // one bit per cell: most cells around a surface are empty
	int32_t heads[64]; // first point of each cell, as number + 1
} Block;

// Points kept so far, found through a hash of blocks. Blocks far apart may share a place in the hash; that costs time,
// not truth, since only distances decide.
typedef struct Cover
{
	const SandMesh *mesh;
	double spacing, spacing_squared; // m, m^2
	uint64_t seed;
	uint64_t random_index;
	double origin[3]; // m, corner of cell 0, 0, 0
	double cells_per_metre;
	int cell_count[3]; // along each axis
	float *xyz;        // 3 * capacity
	int32_t *nexts;    // capacity; the next point of the same cell, as number + 1, or 0
	Block *blocks;     // 1 << block_bits
	int block_bits;
	int count, capacity;
	Vec near[NEAR_LIMIT]; // points that may cover a part of the piece at hand
	int near_count;
	SandError *err;
} Cover;

static void cover_free(Cover *cover)
{
	sand_free(cover->blocks);
	sand_free(cover->nexts);
	sand_free(cover->xyz);
}

static int cover_cell(const Cover *cover, int axis, double coordinate)
{
	double cell = (coordinate - cover->origin[axis]) * cover->cells_per_metre;
	return cell < 0.0 ? 0 : cell >= (double)cover->cell_count[axis] ? cover->cell_count[axis] - 1 : (int)cell;
}

static Block *cover_block(const Cover *cover, int block_x, int block_y, int block_z)
{
	uint64_t key = (uint64_t)block_x * UINT64_C(0x8CB92BA72F3D8DD7) + (uint64_t)block_y * UINT64_C(0xD6E8FEB86659FD93) +
	               (uint64_t)block_z * UINT64_C(0xA0761D6478BD642F);
	key = (key ^ key >> 32) * UINT64_C(0x9FB21C651E98DF25);
	return &cover->blocks[key >> (64 - cover->block_bits)];
}

// Enters a point whose position is stored already.
static void cover_link(Cover *cover, int point)
{
	const float *xyz = &cover->xyz[3 * (size_t)point];
	int x = cover_cell(cover, 0, (double)xyz[0]), y = cover_cell(cover, 1, (double)xyz[1]);
	int z = cover_cell(cover, 2, (double)xyz[2]);
	Block *block = cover_block(cover, x >> 2, y >> 2, z >> 2);
	int cell = (x & 3) | (y & 3) << 2 | (z & 3) << 4;
	cover->nexts[point] = block->heads[cell];
	block->heads[cell] = point + 1;
	block->occupied |= UINT64_C(1) << cell;
}

static SandStatus cover_reserve(Cover *cover, int capacity)
{
	int block_bits = 1; // some six points fall into a block of an even surface
	while (block_bits < 30 && (int64_t)8 << block_bits < (int64_t)capacity)
	{
		++block_bits;
	}
	size_t block_count = (size_t)1 << block_bits;
	float *xyz = sand_alloc((size_t)capacity * 3, sizeof(*xyz));
	int32_t *nexts = sand_alloc((size_t)capacity, sizeof(*nexts));
	Block *blocks = sand_alloc(block_count, sizeof(*blocks));
	if (xyz == NULL || nexts == NULL || blocks == NULL)
	{
		sand_free(blocks);
		sand_free(nexts);
		sand_free(xyz);
		return sand_fail_memory(cover->err, (size_t)capacity * 4 * sizeof(float) + block_count * sizeof(*blocks),
		                        "the points on a surface");
	}
	if (cover->count > 0)
	{
		memcpy(xyz, cover->xyz, (size_t)cover->count * 3 * sizeof(*xyz));
	}
	cover_free(cover);
	cover->xyz = xyz;
	cover->nexts = nexts;
	cover->blocks = blocks;
	cover->block_bits = block_bits;
	cover->capacity = capacity;
	for (int point = 0; point < cover->count; ++point)
	{
		cover_link(cover, point);
	}
	return SAND_OK;
}

static SandStatus cover_insert(Cover *cover, const float xyz[3])
{
	if (cover->count >= SAND_SAMPLER_POINT_LIMIT)
	{
		return fail_point_limit(cover->mesh, cover->spacing, cover->err);
	}
	if (cover->count == cover->capacity)
	{
		SandStatus status = cover_reserve(cover, 2 * cover->capacity);
		if (status != SAND_OK)
		{
			return status;
		}
	}
	memcpy(&cover->xyz[3 * (size_t)cover->count], xyz, 3 * sizeof(*xyz));
	cover_link(cover, cover->count++);
	return SAND_OK;
}

static int lowest_bit(uint64_t bits)
{
#if defined(__GNUC__) || defined(__clang__)
	return __builtin_ctzll(bits);
#else
	int bit = 0;
	for (; (bits & 1) == 0; bits >>= 1)
	{
		++bit;
	}
	return bit;
#endif
}

// Bits first .. last of four, each bit `width` bits wide.
static uint64_t cell_bits(int first, int last, int width)
{
	return (~UINT64_C(0) >> (64 - (last - first + 1) * width)) << first * width;
}

// The cells low .. high, as far as they are in a block.
static uint64_t cells_in_block(const int low[3], const int high[3], const int block[3])
{
	uint64_t bits[3];
	for (int axis = 0; axis < 3; ++axis)
	{
		int first = low[axis] - 4 * block[axis], last = high[axis] - 4 * block[axis];
		bits[axis] = cell_bits(first < 0 ? 0 : first, last > 3 ? 3 : last, 1 << 2 * axis);
	}
	return bits[0] * UINT64_C(0x1111111111111111) & bits[1] * UINT64_C(0x0001000100010001) & bits[2];
}

// Adds the points of one block that are within reach; returns the new count.
static int block_find(const Cover *cover, const Block *block, uint64_t cells, Vec place, double reach, Vec *found,
                      int found_count, int limit)
{
	for (cells &= block->occupied; cells != 0; cells &= cells - 1)
	{
		for (int32_t link = block->heads[lowest_bit(cells)]; link != 0; link = cover->nexts[link - 1])
		{
			Vec point = vec_from_floats(&cover->xyz[3 * (size_t)(link - 1)]);
			if (distance_squared(place, point) < reach * reach && found_count < limit)
			{
				found[found_count++] = point;
			}
		}
	}
	return found_count;
}

// Puts the kept points within reach (m) of a place into found, at most limit of them, and returns how many.
static int cover_find(const Cover *cover, Vec place, double reach, Vec *found, int limit)
{
	const int low[3] = {cover_cell(cover, 0, place.x - reach), cover_cell(cover, 1, place.y - reach),
	                    cover_cell(cover, 2, place.z - reach)};
	const int high[3] = {cover_cell(cover, 0, place.x + reach), cover_cell(cover, 1, place.y + reach),
	                     cover_cell(cover, 2, place.z + reach)};
	int found_count = 0;
	for (int z = low[2] >> 2; z <= high[2] >> 2; ++z)
	{
		for (int y = low[1] >> 2; y <= high[1] >> 2; ++y)
		{
			for (int x = low[0] >> 2; x <= high[0] >> 2 && found_count < limit; ++x)
			{
				uint64_t cells = cells_in_block(low, high, (const int[3]){x, y, z});
				found_count =
				    block_find(cover, cover_block(cover, x, y, z), cells, place, reach, found, found_count, limit);
			}
		}
	}
	return found_count;
}

// True when a kept point is nearer to the place than the spacing.
static bool cover_is_taken(const Cover *cover, const float xyz[3])
{
	Vec found;
	return cover_find(cover, vec_from_floats(xyz), cover->spacing, &found, 1) > 0;
}

// Uniform in the triangle for u, v uniform in [0, 1); rounded to the floats that would be stored.
static void random_place(const Triangle *triangle, double u, double v, float xyz_out[3])
{
	double root = sqrt(u);
	Vec place = vec_lerp(triangle->corner[0], vec_lerp(triangle->corner[1], triangle->corner[2], v), root);
	xyz_out[0] = (float)place.x;
	xyz_out[1] = (float)place.y;
	xyz_out[2] = (float)place.z;
}

// Throws the candidates in CANDIDATE_ROUNDS rounds over the mesh. In each round the k-th candidate falls into the
// triangle where the area summed so far passes (k + offset) area / estimate: every triangle has its share to within
// one, and neighbours in the mesh stay neighbours in the cache.
static SandStatus cover_throw(Cover *cover, double estimate)
{
	double candidates_per_area = estimate / cover->mesh->area;
	uint64_t number = 0;
	for (uint64_t round = 0; round < CANDIDATE_ROUNDS; ++round)
	{
		double due = sand_random(cover->seed, ROUND_STREAM + round); // candidates due up to here, less those thrown
		for (size_t triangle = 0; triangle < (size_t)cover->mesh->triangle_count; ++triangle)
		{
			Triangle corners = mesh_triangle(cover->mesh, triangle);
			due += candidates_per_area * triangle_area(&corners);
			for (; due >= 1.0; due -= 1.0, ++number)
			{
				float xyz[3];
				random_place(&corners, sand_random(cover->seed, 2 * number), sand_random(cover->seed, 2 * number + 1),
				             xyz);
				SandStatus status = cover_is_taken(cover, xyz) ? SAND_OK : cover_insert(cover, xyz);
				if (status != SAND_OK)
				{
					return status;
				}
			}
		}
	}
	return SAND_OK;
}

// A ball is convex: it covers a triangle when it covers the corners.
static bool does_cover(const Cover *cover, Vec point, const Triangle *triangle)
{
	return distance_squared(point, triangle->corner[0]) <= cover->spacing_squared &&
	       distance_squared(point, triangle->corner[1]) <= cover->spacing_squared &&
	       distance_squared(point, triangle->corner[2]) <= cover->spacing_squared;
}

// True when one of the remembered points covers the whole piece.
static bool is_covered_by_near(Cover *cover, const Triangle *piece)
{
	for (int near = 0; near < cover->near_count; ++near)
	{
		Vec point = cover->near[near];
		if (does_cover(cover, point, piece))
		{
			// The next piece is a neighbour: try this point first.
			cover->near[near] = cover->near[0];
			cover->near[0] = point;
			return true;
		}
	}
	return false;
}

static void bisect(const Triangle *triangle, int side, Triangle *stack, int *stack_count)
{
	assert(*stack_count + 2 <= STACK_LIMIT);
	Vec from = triangle->corner[side], to = triangle->corner[(side + 1) % 3], tip = triangle->corner[(side + 2) % 3];
	Vec middle = vec_lerp(from, to, 0.5);
	stack[(*stack_count)++] = (Triangle){{from, middle, tip}};
	stack[(*stack_count)++] = (Triangle){{middle, to, tip}};
}

// Fills near with all points that can cover a part of the piece, or be too near to a new point in it.
static void cover_gather(Cover *cover, const Triangle *piece)
{
	Vec centre = vec_lerp(vec_lerp(piece->corner[0], piece->corner[1], 0.5), piece->corner[2], 1.0 / 3.0);
	double reach_squared = 0.0;
	for (int corner = 0; corner < 3; ++corner)
	{
		reach_squared = fmax(reach_squared, distance_squared(centre, piece->corner[corner]));
	}
	// An eighth of the spacing more than needed: a new point is rounded by up to a step of float.
	double reach = sqrt(reach_squared) + 1.125 * cover->spacing;
	cover->near_count = cover_find(cover, centre, reach, cover->near, NEAR_LIMIT);
}

// Covers one piece with sides of at most the spacing: any point in it covers all of it.
static SandStatus cover_piece(Cover *cover, const Triangle *whole)
{
	Triangle stack[STACK_LIMIT];
	int stack_count = 0;
	double end_squared = cover->spacing_squared / (PIECE_SHARE * PIECE_SHARE);
	cover_gather(cover, whole);
	stack[stack_count++] = *whole;
	while (stack_count > 0)
	{
		Triangle piece = stack[--stack_count];
		if (is_covered_by_near(cover, &piece))
		{
			continue;
		}
		// No point covers the whole piece. Take a place in it; at the last cut the middle, from which no corner is far.
		int side = 0;
		bool is_last = longest_side(&piece, &side) <= end_squared;
		double u = is_last ? 4.0 / 9.0 : sand_random(cover->seed, cover->random_index++);
		double v = is_last ? 0.5 : sand_random(cover->seed, cover->random_index++);
		float xyz[3];
		random_place(&piece, u, v, xyz);
		Vec place = vec_from_floats(xyz);
		int near = 0;
		while (near < cover->near_count && distance_squared(place, cover->near[near]) >= cover->spacing_squared)
		{
			++near;
		}
		bool is_covered = false;
		if (near == cover->near_count && !cover_is_taken(cover, xyz))
		{
			SandStatus status = cover_insert(cover, xyz);
			if (status != SAND_OK)
			{
				return status;
			}
			if (cover->near_count < NEAR_LIMIT)
			{
				cover->near[cover->near_count++] = place;
			}
			is_covered = does_cover(cover, place, &piece);
		}
		if (!is_last && !is_covered)
		{
			bisect(&piece, side, stack, &stack_count);
		}
	}
	return SAND_OK;
}

static SandStatus cover_triangle(Cover *cover, const Triangle *whole)
{
	Triangle stack[STACK_LIMIT];
	int stack_count = 0;
	stack[stack_count++] = *whole;
	while (stack_count > 0)
	{
		Triangle piece = stack[--stack_count];
		if (is_covered_by_near(cover, &piece)) // those around the last piece, which was a neighbour
		{
			continue;
		}
		int side = 0;
		if (longest_side(&piece, &side) > cover->spacing_squared)
		{
			bisect(&piece, side, stack, &stack_count);
			continue;
		}
		SandStatus status = cover_piece(cover, &piece);
		if (status != SAND_OK)
		{
			return status;
		}
	}
	return SAND_OK;
}

static SandStatus cover_gaps(Cover *cover)
{
	cover->random_index = PIECE_STREAM;
	for (size_t triangle = 0; triangle < (size_t)cover->mesh->triangle_count; ++triangle)
	{
		Triangle corners = mesh_triangle(cover->mesh, triangle);
		SandStatus status = triangle_area(&corners) > 0.0 ? cover_triangle(cover, &corners) : SAND_OK;
		if (status != SAND_OK)
		{
			return status;
		}
	}
	return SAND_OK;
}

SandStatus sand_sampler_cover(const SandMesh *mesh, const SandCoverDesc *desc, SandPoints *points_out, SandError *err)
{
	assert(mesh != NULL && desc != NULL && points_out != NULL);
	*points_out = (SandPoints){0};
	double spacing = (double)desc->spacing;
	double estimate = 1.0 + COVER_DENSITY * mesh->area / (spacing * spacing);
	SandStatus status = sand_sampler_check_spacing(mesh, spacing, estimate, err);
	if (status != SAND_OK)
	{
		return status;
	}

	Cover cover = {.mesh = mesh, .spacing = spacing, .seed = desc->seed, .err = err};
	cover.spacing_squared = spacing * spacing;
	cover.cells_per_metre = 1.0 / spacing;
	for (int axis = 0; axis < 3; ++axis)
	{
		cover.origin[axis] = (double)mesh->bounds_min[axis];
		cover.cell_count[axis] =
		    1 + (int)(((double)mesh->bounds_max[axis] - cover.origin[axis]) * cover.cells_per_metre);
	}
	status = cover_reserve(&cover, (int)fmin(1.125 * estimate + 64.0, (double)SAND_SAMPLER_POINT_LIMIT));
	if (status == SAND_OK)
	{
		status = cover_throw(&cover, estimate);
	}
	if (status == SAND_OK)
	{
		status = cover_gaps(&cover);
	}
	if (status == SAND_OK)
	{
		*points_out = (SandPoints){.xyz = cover.xyz, .count = cover.count};
		cover.xyz = NULL;
	}
	cover_free(&cover);
	return status;
}

// ---- fill
// ------------------------------------------------------------------------------------------------------------

// Hexagonal close packing: columns along x, rows along y, layers along z. Odd layers are shifted by a third of a row
// and rows of odd (row + layer) by half a column, so that each point has twelve neighbours at the spacing.
typedef struct Lattice
{
	double base[3];   // m, the site 0, 0, 0
	double step[3];   // m, between columns, rows, layers
	int32_t count[3]; // sites along each axis, no more than fit
} Lattice;

static double lattice_z(const Lattice *lattice, int32_t layer)
{
	return lattice->base[2] + lattice->step[2] * (double)layer;
}

static double lattice_y(const Lattice *lattice, int32_t layer, int32_t row)
{
	double shift = (layer & 1) != 0 ? lattice->step[1] / 3.0 : 0.0;
	return lattice->base[1] + shift + lattice->step[1] * (double)row;
}

static double lattice_x(const Lattice *lattice, int32_t layer, int32_t row, int32_t column)
{
	double shift = ((row + layer) & 1) != 0 ? lattice->step[0] / 2.0 : 0.0;
	return lattice->base[0] + shift + lattice->step[0] * (double)column;
}

// First site at or above a coordinate, for an axis that starts at base; 0 .. count. Never falls as the coordinate
// rises.
static int32_t first_site(double coordinate, double base, double step, int32_t count)
{
	double site = ceil((coordinate - base) / step);
	return site <= 0.0 ? 0 : site >= (double)count ? count : (int32_t)site;
}

// Centres the sites in the room that the clearance leaves, slack (m) more generous than floats can tell. False when
// there is no room.
static bool lattice_place(const SandMesh *mesh, double spacing, double clearance, double slack, Lattice *lattice_out)
{
	Lattice lattice = {.step = {spacing, spacing * sqrt(3.0) / 2.0, spacing * sqrt(2.0 / 3.0)}};
	for (int axis = 0; axis < 3; ++axis)
	{
		double low = (double)mesh->bounds_min[axis] + clearance;
		double room = (double)mesh->bounds_max[axis] - clearance - low;
		double step = lattice.step[axis];
		if (room + slack < 0.0)
		{
			return false;
		}
		double whole = floor((room + slack) / step);
		double shift = axis == 0 ? step / 2.0 : axis == 1 ? step / 3.0 : 0.0;
		double span = whole * step + (whole * step + shift <= room + slack ? shift : 0.0);
		lattice.base[axis] = low + (room - span) / 2.0;
		lattice.count[axis] = (int32_t)whole + 1;
	}
	*lattice_out = lattice;
	return true;
}

// A point of the layer at hand that is inside the mesh.
typedef struct Site
{
	float xyz[3];
	int32_t column;
	double distance_squared; // m^2, to the surface; INFINITY beyond reach
} Site;

typedef struct Fill
{
	const SandMesh *mesh;
	const SandFillDesc *desc;
	Lattice lattice;
	double threshold;      // m, least distance to the surface
	double jitter_limit;   // m, longest move
	double reach;          // m, distances to the surface are needed up to here
	double margin;         // m, what rounding to floats may add
	int32_t *layer_starts; // layer count + 1, into order
	int32_t *order;        // triangles by the first layer within reach
	int32_t *active;       // triangles within reach of the layer at hand
	int32_t active_count;
	uint32_t *row_crossings; // row count + 1: where the crossings of each row start
	uint32_t *row_sites;     // row count + 1: where the sites of each row start
	Buffer crossings;        // double, x of each crossing
	Buffer sites;            // Site
	Buffer points;           // float[3]
	size_t point_count;
	SandError *err;
} Fill;

static void fill_free(Fill *fill)
{
	buffer_free(&fill->points);
	buffer_free(&fill->sites);
	buffer_free(&fill->crossings);
	sand_free(fill->row_sites);
	sand_free(fill->row_crossings);
	sand_free(fill->active);
	sand_free(fill->order);
	sand_free(fill->layer_starts);
}

static double lowest(double a, double b, double c)
{
	return fmin(a, fmin(b, c));
}

static double highest(double a, double b, double c)
{
	return fmax(a, fmax(b, c));
}

// Layers within reach of a triangle: first .. end - 1.
static void triangle_layers(const Fill *fill, size_t triangle, int32_t *first_out, int32_t *end_out)
{
	Triangle corners = mesh_triangle(fill->mesh, triangle);
	const Vec *corner = corners.corner;
	const Lattice *lattice = &fill->lattice;
	double low = lowest(corner[0].z, corner[1].z, corner[2].z) - fill->reach - fill->margin;
	double high = highest(corner[0].z, corner[1].z, corner[2].z) + fill->reach + fill->margin;
	*first_out = first_site(low, lattice->base[2], lattice->step[2], lattice->count[2]);
	*end_out = first_site(high, lattice->base[2], lattice->step[2], lattice->count[2]);
}

// Allocates and sorts the triangles by first layer (counting sort).
static SandStatus fill_prepare(Fill *fill)
{
	size_t triangle_count = (size_t)fill->mesh->triangle_count;
	size_t layer_count = (size_t)fill->lattice.count[2], row_count = (size_t)fill->lattice.count[1];
	fill->layer_starts = sand_alloc(layer_count + 2, sizeof(int32_t));
	fill->order = sand_alloc(triangle_count, sizeof(int32_t));
	fill->active = sand_alloc(triangle_count, sizeof(int32_t));
	fill->row_crossings = sand_alloc(row_count + 1, sizeof(uint32_t));
	fill->row_sites = sand_alloc(row_count + 1, sizeof(uint32_t));
	if (fill->layer_starts == NULL || fill->order == NULL || fill->active == NULL || fill->row_crossings == NULL ||
	    fill->row_sites == NULL)
	{
		return sand_fail_memory(fill->err, (layer_count + 2 * triangle_count + 2 * row_count) * sizeof(int32_t),
		                        "the layers of a fill");
	}
	// Counted two places on, then summed, then moved up while placing: starts end where they belong.
	int32_t first, end;
	for (size_t triangle = 0; triangle < triangle_count; ++triangle)
	{
		triangle_layers(fill, triangle, &first, &end);
		if (first < end)
		{
			++fill->layer_starts[first + 2];
		}
	}
	for (size_t layer = 2; layer < layer_count + 2; ++layer)
	{
		fill->layer_starts[layer] += fill->layer_starts[layer - 1];
	}
	for (size_t triangle = 0; triangle < triangle_count; ++triangle)
	{
		triangle_layers(fill, triangle, &first, &end);
		if (first < end)
		{
			fill->order[fill->layer_starts[first + 1]++] = (int32_t)triangle;
		}
	}
	return SAND_OK;
}

static void fill_activate(Fill *fill, int32_t layer)
{
	int32_t kept_count = 0;
	for (int32_t i = 0; i < fill->active_count; ++i)
	{
		int32_t first, end;
		triangle_layers(fill, (size_t)fill->active[i], &first, &end);
		if (layer < end)
		{
			fill->active[kept_count++] = fill->active[i];
		}
	}
	for (int32_t i = fill->layer_starts[layer]; i < fill->layer_starts[layer + 1]; ++i)
	{
		fill->active[kept_count++] = fill->order[i];
	}
	fill->active_count = kept_count;
}

// Where the plane of a layer cuts a triangle: from low to high in y, and the rows between: first .. end - 1.
typedef struct Cut
{
	Vec low, high;
	int32_t first, end;
} Cut;

// A corner at the very height of the plane counts as above it. The end of the cut on a side is computed from the
// side's vertices in the order of their numbers: both triangles at that side get the same bits.
static bool cut_triangle(const Fill *fill, int32_t layer, size_t triangle, Cut *cut_out)
{
	const Lattice *lattice = &fill->lattice;
	const int32_t *numbers = &fill->mesh->triangles[3 * triangle];
	double z = lattice_z(lattice, layer);
	Vec ends[2];
	int end_count = 0;
	for (int side = 0; side < 3; ++side)
	{
		int32_t a = numbers[side], b = numbers[(side + 1) % 3];
		Vec from = vec_from_floats(&fill->mesh->vertices[3 * (size_t)(a < b ? a : b)]);
		Vec to = vec_from_floats(&fill->mesh->vertices[3 * (size_t)(a < b ? b : a)]);
		if ((from.z < z) != (to.z < z))
		{
			assert(end_count < 2); // three corners, two kinds: a closed walk changes kind twice or never
			ends[end_count++] = vec_lerp(from, to, (z - from.z) / (to.z - from.z));
		}
	}
	if (end_count < 2)
	{
		return false;
	}
	bool is_ordered = ends[0].y <= ends[1].y;
	Cut cut = {.low = is_ordered ? ends[0] : ends[1], .high = is_ordered ? ends[1] : ends[0]};
	double base = lattice_y(lattice, layer, 0);
	cut.first = first_site(cut.low.y, base, lattice->step[1], lattice->count[1]);
	cut.end = first_site(cut.high.y, base, lattice->step[1], lattice->count[1]);
	*cut_out = cut;
	return cut.first < cut.end;
}

static void sort_doubles(double *values, size_t count)
{
	// Heap sort: in place, never quadratic.
	for (size_t end = count, root = count / 2; end > 1;)
	{
		double value;
		if (root > 0)
		{
			value = values[--root];
		}
		else
		{
			value = values[--end];
			values[end] = values[0];
		}
		size_t hole = root;
		for (size_t child = 2 * hole + 1; child < end; child = 2 * hole + 1)
		{
			child += child + 1 < end && values[child + 1] > values[child] ? 1 : 0;
			if (values[child] <= value)
			{
				break;
			}
			values[hole] = values[child];
			hole = child;
		}
		values[hole] = value;
	}
}

// Fills crossings and row_crossings for a layer: for each row the sorted x where it passes the surface.
static SandStatus fill_cross(Fill *fill, int32_t layer)
{
	const Lattice *lattice = &fill->lattice;
	int32_t row_count = lattice->count[1];
	uint32_t *starts = fill->row_crossings;
	memset(starts, 0, ((size_t)row_count + 1) * sizeof(*starts));
	uint64_t crossing_count = 0;
	Cut cut;
	for (int32_t i = 0; i < fill->active_count; ++i)
	{
		if (cut_triangle(fill, layer, (size_t)fill->active[i], &cut))
		{
			for (int32_t row = cut.first; row < cut.end; ++row)
			{
				++starts[row];
			}
			crossing_count += (uint64_t)(cut.end - cut.first);
		}
	}
	if (crossing_count > UINT32_MAX || !buffer_reserve(&fill->crossings, (size_t)crossing_count, 0, sizeof(double)))
	{
		return sand_fail_memory(fill->err, (size_t)crossing_count * sizeof(double), "a layer of a fill");
	}
	double *crossings = fill->crossings.memory;
	uint32_t sum = 0;
	for (int32_t row = 0; row <= row_count; ++row)
	{
		sum += starts[row];
		starts[row] = sum; // the end of the row; placing moves it down to the start
	}
	for (int32_t i = 0; i < fill->active_count; ++i)
	{
		if (cut_triangle(fill, layer, (size_t)fill->active[i], &cut))
		{
			for (int32_t row = cut.first; row < cut.end; ++row)
			{
				double t = (lattice_y(lattice, layer, row) - cut.low.y) / (cut.high.y - cut.low.y);
				crossings[--starts[row]] = cut.low.x + fmin(fmax(t, 0.0), 1.0) * (cut.high.x - cut.low.x);
			}
		}
	}
	for (int32_t row = 0; row < row_count; ++row)
	{
		assert((starts[row + 1] - starts[row]) % 2 == 0); // closed mesh
		sort_doubles(&crossings[starts[row]], starts[row + 1] - starts[row]);
	}
	return SAND_OK;
}

// Columns between two crossings of a row: first .. end - 1.
static void inside_columns(const Fill *fill, int32_t layer, int32_t row, const double crossings[2], int32_t *first_out,
                           int32_t *end_out)
{
	const Lattice *lattice = &fill->lattice;
	double base = lattice_x(lattice, layer, row, 0);
	*first_out = first_site(crossings[0], base, lattice->step[0], lattice->count[0]);
	*end_out = first_site(crossings[1], base, lattice->step[0], lattice->count[0]);
}

// Fills sites and row_sites for a layer: the sites between the odd and the even crossings of each row.
static SandStatus fill_inside(Fill *fill, int32_t layer)
{
	const Lattice *lattice = &fill->lattice;
	const double *crossings = fill->crossings.memory;
	uint64_t site_count = 0;
	int32_t first, end;
	for (int32_t row = 0; row < lattice->count[1]; ++row)
	{
		for (uint32_t i = fill->row_crossings[row]; i + 1 < fill->row_crossings[row + 1]; i += 2)
		{
			inside_columns(fill, layer, row, &crossings[i], &first, &end);
			site_count += (uint64_t)(end - first);
		}
	}
	if (site_count > SAND_SAMPLER_POINT_LIMIT)
	{
		return fail_point_limit(fill->mesh, lattice->step[0], fill->err);
	}
	if (!buffer_reserve(&fill->sites, (size_t)site_count, 0, sizeof(Site)))
	{
		return sand_fail_memory(fill->err, (size_t)site_count * sizeof(Site), "a layer of a fill");
	}
	Site *sites = fill->sites.memory;
	uint32_t site = 0;
	for (int32_t row = 0; row < lattice->count[1]; ++row)
	{
		fill->row_sites[row] = site;
		for (uint32_t i = fill->row_crossings[row]; i + 1 < fill->row_crossings[row + 1]; i += 2)
		{
			inside_columns(fill, layer, row, &crossings[i], &first, &end);
			for (int32_t column = first; column < end; ++column)
			{
				sites[site++] = (Site){{(float)lattice_x(lattice, layer, row, column),
				                        (float)lattice_y(lattice, layer, row), (float)lattice_z(lattice, layer)},
				                       column,
				                       (double)INFINITY};
			}
		}
	}
	fill->row_sites[lattice->count[1]] = site;
	return SAND_OK;
}

static double segment_distance_squared(Vec point, Vec from, Vec to)
{
	Vec along = vec_sub(to, from);
	double length_squared = vec_dot(along, along);
	double t = length_squared > 0.0 ? vec_dot(vec_sub(point, from), along) / length_squared : 0.0;
	return distance_squared(point, vec_lerp(from, to, fmin(fmax(t, 0.0), 1.0)));
}

// To the plane when the foot of the point lies in the triangle, else to the nearest side.
static double triangle_distance_squared(Vec point, const Triangle *triangle)
{
	const Vec *corner = triangle->corner;
	Vec normal = vec_cross(vec_sub(corner[1], corner[0]), vec_sub(corner[2], corner[0]));
	double normal_squared = vec_dot(normal, normal);
	bool is_foot_inside = normal_squared > 0.0;
	for (int side = 0; side < 3 && is_foot_inside; ++side)
	{
		Vec along = vec_sub(corner[(side + 1) % 3], corner[side]);
		is_foot_inside = vec_dot(vec_cross(normal, along), vec_sub(point, corner[side])) >= 0.0;
	}
	if (is_foot_inside)
	{
		double height = vec_dot(normal, vec_sub(point, corner[0]));
		return height * height / normal_squared;
	}
	return lowest(segment_distance_squared(point, corner[0], corner[1]),
	              segment_distance_squared(point, corner[1], corner[2]),
	              segment_distance_squared(point, corner[2], corner[0]));
}

// The part of a triangle between two planes of constant z: the corners of a convex polygon, some of them twice.
typedef struct Ring
{
	Vec corner[6];
	int count;
} Ring;

// Share of the way from a to b that lies within low .. high; false when none does.
static bool clip_side(double a, double b, double low, double high, double *start_out, double *end_out)
{
	double start = 0.0, end = 1.0;
	if (a == b)
	{
		start = a < low || a > high ? 2.0 : 0.0;
	}
	else
	{
		double at_low = (low - a) / (b - a), at_high = (high - a) / (b - a);
		start = fmax(0.0, fmin(at_low, at_high));
		end = fmin(1.0, fmax(at_low, at_high));
	}
	*start_out = start;
	*end_out = end;
	return start <= end;
}

static Ring clip_layer(const Triangle *triangle, double low, double high)
{
	Ring ring = {.count = 0};
	for (int side = 0; side < 3; ++side)
	{
		Vec from = triangle->corner[side], to = triangle->corner[(side + 1) % 3];
		double start, end;
		if (clip_side(from.z, to.z, low, high, &start, &end))
		{
			ring.corner[ring.count++] = vec_lerp(from, to, start);
			ring.corner[ring.count++] = vec_lerp(from, to, end);
		}
	}
	return ring;
}

// Range in x of the part of the ring between two planes of constant y; false when there is none.
static bool clip_row(const Ring *ring, double low, double high, double *x_low_out, double *x_high_out)
{
	double x_low = (double)INFINITY, x_high = (double)-INFINITY;
	for (int corner = 0; corner < ring->count; ++corner)
	{
		Vec from = ring->corner[corner], to = ring->corner[(corner + 1) % ring->count];
		double start, end;
		if (clip_side(from.y, to.y, low, high, &start, &end))
		{
			double at_start = from.x + start * (to.x - from.x), at_end = from.x + end * (to.x - from.x);
			x_low = lowest(x_low, at_start, at_end);
			x_high = highest(x_high, at_start, at_end);
		}
	}
	*x_low_out = x_low;
	*x_high_out = x_high;
	return x_low <= x_high;
}

// Lowers the distances of the sites of a row, columns first .. end - 1.
static void measure_row(Fill *fill, int32_t row, int32_t first, int32_t end, const Triangle *triangle)
{
	Site *sites = fill->sites.memory;
	uint32_t low = fill->row_sites[row], high = fill->row_sites[row + 1], row_end = high;
	while (low < high) // the first site at or after column first
	{
		uint32_t middle = low + (high - low) / 2;
		if (sites[middle].column >= first)
		{
			high = middle;
		}
		else
		{
			low = middle + 1;
		}
	}
	double enough = fill->threshold * fill->threshold;
	for (uint32_t site = low; site < row_end && sites[site].column < end; ++site)
	{
		if (sites[site].distance_squared >= enough) // else it is out already
		{
			double distance = triangle_distance_squared(vec_from_floats(sites[site].xyz), triangle);
			sites[site].distance_squared = fmin(sites[site].distance_squared, distance);
		}
	}
}

// Measures the distance from the sites of a layer to the triangles within reach.
static void fill_measure(Fill *fill, int32_t layer)
{
	const Lattice *lattice = &fill->lattice;
	double reach = fill->reach + fill->margin;
	double z = lattice_z(lattice, layer), row_base = lattice_y(lattice, layer, 0);
	for (int32_t i = 0; i < fill->active_count; ++i)
	{
		Triangle triangle = mesh_triangle(fill->mesh, (size_t)fill->active[i]);
		Ring ring = clip_layer(&triangle, z - reach, z + reach);
		double y_low = (double)INFINITY, y_high = (double)-INFINITY;
		for (int corner = 0; corner < ring.count; ++corner)
		{
			y_low = fmin(y_low, ring.corner[corner].y);
			y_high = fmax(y_high, ring.corner[corner].y);
		}
		if (ring.count == 0)
		{
			continue;
		}
		int32_t row_end = first_site(y_high + reach, row_base, lattice->step[1], lattice->count[1]);
		for (int32_t row = first_site(y_low - reach, row_base, lattice->step[1], lattice->count[1]); row < row_end;
		     ++row)
		{
			double y = lattice_y(lattice, layer, row), x_low, x_high;
			if (fill->row_sites[row] == fill->row_sites[row + 1] ||
			    !clip_row(&ring, y - reach, y + reach, &x_low, &x_high))
			{
				continue;
			}
			double base = lattice_x(lattice, layer, row, 0);
			int32_t first = first_site(x_low - reach, base, lattice->step[0], lattice->count[0]);
			int32_t end = first_site(x_high + reach, base, lattice->step[0], lattice->count[0]);
			measure_row(fill, row, first, end, &triangle);
		}
	}
}

// Moves a site at random by no more than its distance to the surface allows: it keeps the clearance and cannot pass
// through a thin wall. The random numbers belong to the place in the lattice.
static void jitter_site(const Fill *fill, int32_t layer, int32_t row, Site *site)
{
	const Lattice *lattice = &fill->lattice;
	uint64_t number = ((uint64_t)layer * (uint64_t)lattice->count[1] + (uint64_t)row) * (uint64_t)lattice->count[0] +
	                  (uint64_t)site->column;
	double move[3], length_squared = 0.0;
	for (uint64_t axis = 0; axis < 3; ++axis)
	{
		double half_width = fill->jitter_limit / sqrt(3.0);
		move[axis] = half_width * (2.0 * sand_random(fill->desc->seed, 3 * number + axis) - 1.0);
		length_squared += move[axis] * move[axis];
	}
	double length = sqrt(length_squared);
	double room = fmax(0.0, sqrt(site->distance_squared) - (double)fill->desc->clearance - fill->margin);
	double share = length > room ? room / length : 1.0;
	for (int axis = 0; axis < 3; ++axis)
	{
		site->xyz[axis] = (float)((double)site->xyz[axis] + share * move[axis]);
	}
}

// Appends the sites of a layer that have the clearance to the points.
static SandStatus fill_emit(Fill *fill, int32_t layer)
{
	Site *sites = fill->sites.memory;
	size_t room = fill->row_sites[fill->lattice.count[1]];
	if (!buffer_reserve(&fill->points, fill->point_count + room, fill->point_count, 3 * sizeof(float)))
	{
		return sand_fail_memory(fill->err, (fill->point_count + room) * 3 * sizeof(float), "the points in a mesh");
	}
	float *xyz = fill->points.memory;
	for (int32_t row = 0; row < fill->lattice.count[1]; ++row)
	{
		for (uint32_t i = fill->row_sites[row]; i < fill->row_sites[row + 1]; ++i)
		{
			if (sites[i].distance_squared < fill->threshold * fill->threshold)
			{
				continue;
			}
			if (fill->jitter_limit > 0.0)
			{
				jitter_site(fill, layer, row, &sites[i]);
			}
			memcpy(&xyz[3 * fill->point_count], sites[i].xyz, sizeof(sites[i].xyz));
			++fill->point_count;
		}
	}
	return fill->point_count > SAND_SAMPLER_POINT_LIMIT
	           ? fail_point_limit(fill->mesh, (double)fill->desc->spacing, fill->err)
	           : SAND_OK;
}

static SandStatus fill_layer(Fill *fill, int32_t layer)
{
	fill_activate(fill, layer);
	SandStatus status = fill_cross(fill, layer);
	if (status == SAND_OK)
	{
		status = fill_inside(fill, layer);
	}
	if (status == SAND_OK)
	{
		fill_measure(fill, layer);
		status = fill_emit(fill, layer);
	}
	return status;
}

static SandStatus check_fill(const SandMesh *mesh, const SandFillDesc *desc, SandError *err)
{
	double spacing = (double)desc->spacing, clearance = (double)desc->clearance, jitter = (double)desc->jitter;
	SandStatus status = sand_mesh_require_closed(mesh, err);
	if (status != SAND_OK)
	{
		return status;
	}
	if (!isfinite(clearance) || clearance < 0.0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Clearance is %g m; it must be a length of 0 m or more, for example the grain radius",
		                 clearance);
	}
	if (!(jitter >= 0.0 && jitter <= 1.0))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Jitter is %g; it must be between 0 (a regular lattice) and 1",
		                 jitter);
	}
	double spacing_cubed = spacing * spacing * spacing;
	status = sand_sampler_check_spacing(mesh, spacing, sqrt(2.0) * fabs(mesh->volume) / spacing_cubed, err);
	if (status != SAND_OK)
	{
		return status;
	}
	// Each piece of surface is measured against all sites within its reach.
	double reach = fmax(1.0, (clearance + jitter * spacing) / spacing);
	double work = count_pieces(mesh, spacing) * reach * reach * reach;
	if (work > PIECE_LIMIT)
	{
		return sand_fail(
		    err, SAND_ERROR_ARGUMENT,
		    "Mesh '%s' at spacing %g m and clearance %g m needs about %.3g distances, more than the limit of "
		    "%.3g; use a larger spacing, a smaller clearance or a simpler mesh",
		    sand_mesh_shown_name(mesh), spacing, clearance, work, PIECE_LIMIT);
	}
	return SAND_OK;
}

static SandStatus fail_no_room(const SandMesh *mesh, const SandFillDesc *desc, SandError *err)
{
	return sand_fail(
	    err, SAND_ERROR_MESH,
	    "No grain fits into mesh '%s' of %g x %g x %g m at spacing %g m and clearance %g m; use smaller grains "
	    "or a larger mesh",
	    sand_mesh_shown_name(mesh), (double)mesh->bounds_max[0] - (double)mesh->bounds_min[0],
	    (double)mesh->bounds_max[1] - (double)mesh->bounds_min[1],
	    (double)mesh->bounds_max[2] - (double)mesh->bounds_min[2], (double)desc->spacing, (double)desc->clearance);
}

SandStatus sand_sampler_fill(const SandMesh *mesh, const SandFillDesc *desc, SandPoints *points_out, SandError *err)
{
	assert(mesh != NULL && desc != NULL && points_out != NULL);
	*points_out = (SandPoints){0};
	SandStatus status = check_fill(mesh, desc, err);
	if (status != SAND_OK)
	{
		return status;
	}

	// Floats tell positions apart by a step. A cube ten clearances wide is to hold five grains in a row, although
	// neither number is exact: four steps are granted to the lattice, and three of clearance are waived. With no
	// clearance asked for, a point still keeps four steps away: nearer to the surface inside has no meaning.
	double step = sand_mesh_float_step(mesh), clearance = (double)desc->clearance;
	Fill fill = {.mesh = mesh, .desc = desc, .err = err, .margin = 2.0 * step};
	fill.threshold = fmax(clearance - 3.0 * step, 4.0 * step);
	fill.jitter_limit = 0.5 * (double)desc->jitter * fmax(0.0, (double)desc->spacing - 2.0 * clearance);
	fill.reach = fmax(clearance, fill.threshold) + fill.jitter_limit + fill.margin;
	if (!lattice_place(mesh, (double)desc->spacing, clearance, 4.0 * step, &fill.lattice))
	{
		return fail_no_room(mesh, desc, err);
	}
	status = fill_prepare(&fill);
	for (int32_t layer = 0; layer < fill.lattice.count[2] && status == SAND_OK; ++layer)
	{
		status = fill_layer(&fill, layer);
	}
	if (status == SAND_OK && fill.point_count == 0)
	{
		status = fail_no_room(mesh, desc, err);
	}
	if (status == SAND_OK)
	{
		*points_out = (SandPoints){.xyz = fill.points.memory, .count = (int)fill.point_count};
		fill.points.memory = NULL;
	}
	fill_free(&fill);
	return status;
}
