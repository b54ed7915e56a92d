// fit: how well spheres stand for a mesh, and the masses that make them weigh like it.
// Comes in: SandSurface and spheres. Goes out: SandFit.
//
// Spheres lie in Morton order under a tree of boxes, eight to a node, each with the largest radius in it: the nearest
// sphere is found at the same cost for a cover, a filling, a handful of unequal spheres, and places far from all.
//
// The union's volume is a sum over spheres of what no earlier sphere covers, larger ones first: lines through the
// sphere along x, drawn with a density that goes with their length, are cut exactly; only their y and z are sampled. A
// sphere that none overlaps counts exactly.
#include "fit.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "sort.h"

enum
{
	BRANCH = 8,           // spheres of a leaf, and children of a node
	LEVEL_LIMIT = 11,     // 8^11 exceeds any int
	MORTON_BITS = 20,     // per axis, sorted in two halves
	BLOCK_SMALLEST = 256, // spheres or places of a task
	PLACES_MIN = 50000,   // on the mesh: 0.1 % of the area where a twentieth of it is bare
	PLACES_MAX = 1000000,
	PLACES_PER_SPHERE = 8,
	LINES_MIN = 4, // through one sphere, for its volume
	LINES_MAX = 4096,
	FACTOR_TRIALS = 40,
	TERM_COUNT = 10,  // conditions on masses: sum, centre, inertia
	MASS_TRIALS = 50, // rounds of holding masses at the least
	SWEEP_LIMIT = 60  // of Jacobi's rotations
};

static const double PI = 3.14159265358979323846;
static const double GOLDEN = 0.61803398874989484820;
static const double NEARER = 1 - 1e-12; // what only rounding makes nearer is not: thousands may lie in one place
static const uint64_t RANDOM_SEED = 0x66697473;
static const double LINE_CUTS = 3e6;         // aimed at in one measurement of volume: lines times spheres that cut them
static const double FACTOR_TOLERANCE = 3e-4; // of the volume
static const double MASS_LEAST = 0.01;       // of an equal share: a sphere without mass would fly off at a touch
static const double MASS_TOLERANCE = 1e-9;   // of sum, centre over size, inertia over the largest moment

// ---- tree

typedef struct Ball
{
	float centre[3], radius; // m
} Ball;

typedef struct Box
{
	float low[3], high[3]; // m, of the centres
	float radius;          // m, the largest
} Box;

typedef struct Tree
{
	Ball *balls; // in Morton order
	Box *boxes;  // level after level; those of level 0 hold balls
	int counts[LEVEL_LIMIT], starts[LEVEL_LIMIT];
	int level_count;
	int ball_count;
} Tree;

static double radius_of(const SandFitDesc *desc, int sphere)
{
	return (double)(desc->radii != NULL ? desc->radii[sphere] : desc->radius);
}

static bool is_cancelled(const SandCancel *cancel)
{
	return cancel != NULL && atomic_load(&cancel->is_raised) != 0;
}

static SandStatus fail_cancelled(SandError *err)
{
	return sand_fail(err, SAND_CANCELLED, "Measuring the spheres was cancelled");
}

static void tree_free(Tree *tree)
{
	sand_free(tree->balls);
	sand_free(tree->boxes);
	tree->balls = NULL;
	tree->boxes = NULL;
}

// Bits of v, two zeros between neighbours.
static uint64_t spread_bits(uint32_t v)
{
	uint64_t x = v;
	x = (x | x << 32) & UINT64_C(0x001F00000000FFFF);
	x = (x | x << 16) & UINT64_C(0x001F0000FF0000FF);
	x = (x | x << 8) & UINT64_C(0x100F00F00F00F00F);
	x = (x | x << 4) & UINT64_C(0x10C30C30C30C30C3);
	x = (x | x << 2) & UINT64_C(0x1249249249249249);
	return x;
}

typedef struct KeyContext
{
	const SandFitDesc *desc;
	double low[3], scale; // cells per m, the same along all axes
	uint64_t *records;
	const uint64_t *order; // of the lower half's sort, NULL while that one is prepared
	int block_count;
} KeyContext;

static void key_task(void *task_context, int block)
{
	const KeyContext *k = task_context;
	int count = k->desc->sphere_count, half = 3 * MORTON_BITS / 2;
	for (int i = sand_part_start(count, block, k->block_count), end = sand_part_start(count, block + 1, k->block_count);
	     i < end; ++i)
	{
		uint32_t sphere = k->order != NULL ? (uint32_t)k->order[i] : (uint32_t)i;
		uint64_t code = 0;
		for (int axis = 0; axis < 3; ++axis)
		{
			double cell = ((double)k->desc->centres[3 * (size_t)sphere + (size_t)axis] - k->low[axis]) * k->scale;
			code |= spread_bits((uint32_t)cell) << axis;
		}
		uint64_t key = k->order != NULL ? code >> half : code & ((UINT64_C(1) << half) - 1);
		k->records[i] = key << 32 | sphere;
	}
}

// Two stable sorts, of the lower and then of the upper half of the Morton code.
static const uint64_t *sort_spheres(const SandFitDesc *desc, SandSorter *sorter, SandPool *pool)
{
	KeyContext context = {.desc = desc, .block_count = sand_block_count(desc->sphere_count, BLOCK_SMALLEST)};
	double high[3], extent = 0;
	for (int axis = 0; axis < 3; ++axis)
	{
		context.low[axis] = high[axis] = (double)desc->centres[axis];
	}
	for (size_t i = 0; i < 3 * (size_t)desc->sphere_count; ++i)
	{
		double x = (double)desc->centres[i];
		context.low[i % 3] = x < context.low[i % 3] ? x : context.low[i % 3];
		high[i % 3] = x > high[i % 3] ? x : high[i % 3];
	}
	for (int axis = 0; axis < 3; ++axis)
	{
		extent = fmax(extent, high[axis] - context.low[axis]);
	}
	context.scale = extent > 0 ? ((1 << MORTON_BITS) - 1) / extent : 0;
	context.records = sand_sorter_records(sorter);
	sand_pool_run(pool, key_task, &context, context.block_count);
	context.order = sand_sort(sorter, desc->sphere_count, 3 * MORTON_BITS / 2, pool);
	// In place: a record is read before it is written.
	context.records = sand_sorter_records(sorter);
	sand_pool_run(pool, key_task, &context, context.block_count);
	return sand_sort(sorter, desc->sphere_count, 3 * MORTON_BITS / 2, pool);
}

static int group_count(int count)
{
	return (int)(((int64_t)count + BRANCH - 1) / BRANCH);
}

// One past the last ball of a leaf.
static int leaf_end(const Tree *tree, int leaf)
{
	return tree->ball_count - BRANCH * leaf > BRANCH ? BRANCH * (leaf + 1) : tree->ball_count;
}

static Box box_of_balls(const Tree *tree, int leaf)
{
	int first = BRANCH * leaf, end = leaf_end(tree, leaf);
	const Ball *ball = &tree->balls[first];
	Box box = {{ball->centre[0], ball->centre[1], ball->centre[2]},
	           {ball->centre[0], ball->centre[1], ball->centre[2]},
	           ball->radius};
	for (int i = first + 1; i < end; ++i)
	{
		ball = &tree->balls[i];
		for (int k = 0; k < 3; ++k)
		{
			box.low[k] = ball->centre[k] < box.low[k] ? ball->centre[k] : box.low[k];
			box.high[k] = ball->centre[k] > box.high[k] ? ball->centre[k] : box.high[k];
		}
		box.radius = ball->radius > box.radius ? ball->radius : box.radius;
	}
	return box;
}

// Children of a node of level >= 1: boxes of the level below, from *first_out on.
static int children_of(const Tree *tree, int level, int node, const Box **first_out)
{
	int first = BRANCH * node, left = tree->counts[level - 1] - first;
	*first_out = &tree->boxes[tree->starts[level - 1] + first];
	return left > BRANCH ? BRANCH : left;
}

static Box box_of_boxes(const Tree *tree, int level, int node)
{
	const Box *child;
	int count = children_of(tree, level, node, &child);
	Box box = child[0];
	for (int i = 1; i < count; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			box.low[k] = child[i].low[k] < box.low[k] ? child[i].low[k] : box.low[k];
			box.high[k] = child[i].high[k] > box.high[k] ? child[i].high[k] : box.high[k];
		}
		box.radius = child[i].radius > box.radius ? child[i].radius : box.radius;
	}
	return box;
}

static SandStatus tree_build(const SandFitDesc *desc, SandPool *pool, Tree *tree, SandError *err)
{
	*tree = (Tree){.ball_count = desc->sphere_count};
	int box_count = 0, count = desc->sphere_count;
	do
	{
		count = group_count(count);
		tree->counts[tree->level_count] = count;
		tree->starts[tree->level_count++] = box_count;
		box_count += count;
	} while (count > 1);
	SandSorter *sorter = NULL;
	tree->balls = sand_alloc((size_t)desc->sphere_count, sizeof(Ball));
	tree->boxes = sand_alloc((size_t)box_count, sizeof(Box));
	if (tree->balls == NULL || tree->boxes == NULL)
	{
		tree_free(tree);
		return sand_fail_memory(err, (size_t)desc->sphere_count * (sizeof(Ball) + sizeof(Box) / BRANCH),
		                        "the tree of spheres");
	}
	SandStatus status = sand_sorter_create(desc->sphere_count, &sorter, err);
	if (status != SAND_OK)
	{
		tree_free(tree);
		return status;
	}
	const uint64_t *order = sort_spheres(desc, sorter, pool);
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		uint32_t sphere = (uint32_t)order[i];
		memcpy(tree->balls[i].centre, &desc->centres[3 * (size_t)sphere], 3 * sizeof(float));
		tree->balls[i].radius = (float)radius_of(desc, (int)sphere);
	}
	sand_sorter_destroy(sorter);
	for (int level = 0; level < tree->level_count; ++level)
	{
		for (int node = 0; node < tree->counts[level]; ++node)
		{
			tree->boxes[tree->starts[level] + node] =
			    level == 0 ? box_of_balls(tree, node) : box_of_boxes(tree, level, node);
		}
	}
	return SAND_OK;
}

static double square_to_box(const Box *box, const double place[3])
{
	double square = 0;
	for (int k = 0; k < 3; ++k)
	{
		double below = (double)box->low[k] - place[k], above = place[k] - (double)box->high[k];
		double out = below > above ? below : above;
		square += out > 0 ? out * out : 0;
	}
	return square;
}

static double square_between(const Box *a, const Box *b)
{
	double square = 0;
	for (int k = 0; k < 3; ++k)
	{
		double below = (double)a->low[k] - (double)b->high[k], above = (double)b->low[k] - (double)a->high[k];
		double out = below > above ? below : above;
		square += out > 0 ? out * out : 0;
	}
	return square;
}

static double square_to_centre(const Ball *ball, const double place[3])
{
	double x = (double)ball->centre[0] - place[0], y = (double)ball->centre[1] - place[1],
	       z = (double)ball->centre[2] - place[2];
	return x * x + y * y + z * z;
}

// Looks for the least distance from a place to a sphere's surface, negative within it.
typedef struct Query
{
	double place[3];
	double best; // m
	int found;   // ball that `best` belongs to
} Query;

static void search_leaf(const Tree *tree, Query *q, int leaf)
{
	for (int i = BRANCH * leaf, end = leaf_end(tree, leaf); i < end; ++i)
	{
		double radius = (double)tree->balls[i].radius, reach = NEARER * (q->best + radius);
		double square = square_to_centre(&tree->balls[i], q->place);
		if (reach > 0 && square < reach * reach)
		{
			q->best = sqrt(square) - radius;
			q->found = i;
		}
	}
}

static void search_node(const Tree *tree, Query *q, int level, int node)
{
	if (level == 0)
	{
		search_leaf(tree, q, node);
		return;
	}
	const Box *child;
	int count = children_of(tree, level, node, &child), nearest = 0;
	double squares[BRANCH];
	for (int i = 0; i < count; ++i)
	{
		squares[i] = square_to_box(&child[i], q->place);
		nearest = squares[i] < squares[nearest] ? i : nearest;
	}
	// The nearest child first, so that the others are mostly out of reach.
	for (int turn = 0; turn < count; ++turn)
	{
		int i = turn == 0 ? nearest : turn <= nearest ? turn - 1 : turn;
		double reach = NEARER * (q->best + (double)child[i].radius);
		if (reach > 0 && squares[i] < reach * reach)
		{
			search_node(tree, q, level - 1, BRANCH * node + i);
		}
	}
}

// q->found begins as a guess: its leaf is searched first.
static void find_nearest(const Tree *tree, Query *q)
{
	q->best = (double)INFINITY;
	search_leaf(tree, q, q->found / BRANCH);
	search_node(tree, q, tree->level_count - 1, 0);
}

// ---- spacing

typedef struct SpacingContext
{
	const Tree *tree;
	const SandCancel *cancel;
	int block_count;
	double sums[SAND_BLOCK_LIMIT], least[SAND_BLOCK_LIMIT], most[SAND_BLOCK_LIMIT];
} SpacingContext;

// Squares of the distances from the balls of leaf `own` to their nearest neighbours, found for all of them in one walk.
typedef struct Neighbours
{
	const Tree *tree;
	int own;
	double squares[BRANCH], largest; // m^2
} Neighbours;

static void meet_leaf(Neighbours *n, int leaf)
{
	const Ball *balls = n->tree->balls;
	n->largest = 0;
	for (int i = BRANCH * n->own, end = leaf_end(n->tree, n->own); i < end; ++i)
	{
		const double place[3] = {(double)balls[i].centre[0], (double)balls[i].centre[1], (double)balls[i].centre[2]};
		double least = n->squares[i % BRANCH];
		for (int j = BRANCH * leaf, last = leaf_end(n->tree, leaf); j < last; ++j)
		{
			double square = square_to_centre(&balls[j], place);
			least = square < least && i != j ? square : least;
		}
		n->squares[i % BRANCH] = least;
		n->largest = least > n->largest ? least : n->largest;
	}
}

static void meet_node(Neighbours *n, int level, int node)
{
	const Box *own = &n->tree->boxes[n->own];
	if (level == 0)
	{
		meet_leaf(n, node);
		return;
	}
	const Box *child;
	int count = children_of(n->tree, level, node, &child);
	for (int i = 0; i < count; ++i)
	{
		if (square_between(own, &child[i]) < n->largest)
		{
			meet_node(n, level - 1, BRANCH * node + i);
		}
	}
}

static void spacing_task(void *task_context, int block)
{
	SpacingContext *s = task_context;
	const Tree *tree = s->tree;
	int count = tree->counts[0], start = sand_part_start(count, block, s->block_count),
	    end = sand_part_start(count, block + 1, s->block_count);
	s->least[block] = (double)INFINITY;
	for (int leaf = start; leaf < end && !is_cancelled(s->cancel); ++leaf)
	{
		Neighbours n = {.tree = tree, .own = leaf, .largest = (double)INFINITY};
		for (int i = 0; i < BRANCH; ++i)
		{
			n.squares[i] = (double)INFINITY;
		}
		meet_leaf(&n, leaf);
		meet_node(&n, tree->level_count - 1, 0);
		for (int i = 0, ball_count = leaf_end(tree, leaf) - BRANCH * leaf; i < ball_count; ++i)
		{
			double distance = sqrt(n.squares[i]);
			s->sums[block] += distance;
			s->least[block] = distance < s->least[block] ? distance : s->least[block];
			s->most[block] = distance > s->most[block] ? distance : s->most[block];
		}
	}
}

static void measure_spacing(const Tree *tree, const SandCancel *cancel, SandPool *pool, SandFit *fit)
{
	if (tree->ball_count < 2)
	{
		return;
	}
	SpacingContext context = {
	    .tree = tree, .cancel = cancel, .block_count = sand_block_count(tree->counts[0], BLOCK_SMALLEST / BRANCH)};
	sand_pool_run(pool, spacing_task, &context, context.block_count);
	fit->spacing_min = (double)INFINITY;
	for (int block = 0; block < context.block_count; ++block)
	{
		fit->spacing_mean += context.sums[block] / tree->ball_count;
		fit->spacing_min = fmin(fit->spacing_min, context.least[block]);
		fit->spacing_max = fmax(fit->spacing_max, context.most[block]);
	}
	fit->evenness = fit->spacing_mean > 0 ? fit->spacing_min / fit->spacing_mean : 0;
}

// ---- distance of mesh and spheres

typedef struct PlaceContext
{
	const Tree *tree;
	const SandSurface *surface;
	const SandMesh *mesh;
	const SandCancel *cancel;
	double offset;         // m, never negative
	const double *areas;   // m^2, of all triangles before this one; triangle_count + 1
	const uint8_t *is_met; // per vertex: a triangle has it
	int place_count, block_count;
	int bare_counts[SAND_BLOCK_LIMIT];
	double farthest[SAND_BLOCK_LIMIT]; // m
} PlaceContext;

// First triangle whose areas end beyond `area`.
static int triangle_at(const PlaceContext *p, double area)
{
	int low = 0, high = p->mesh->triangle_count - 1;
	while (low < high)
	{
		int middle = low + (high - low) / 2;
		if (p->areas[middle + 1] > area)
		{
			high = middle;
		}
		else
		{
			low = middle + 1;
		}
	}
	return low;
}

// Place number `turn` of a triangle: the additive sequence of the plastic number (Roberts 2018), laid on the triangle
// by Heitz' map (2019), which keeps areas and neighbours.
static void place_on(const SandMesh *mesh, int triangle, int turn, double place[3])
{
	double a = sand_random(RANDOM_SEED, 2 * (uint64_t)triangle) + 0.75487766624669276 * turn;
	double b = sand_random(RANDOM_SEED, 2 * (uint64_t)triangle + 1) + 0.56984029099805327 * turn;
	a -= floor(a);
	b -= floor(b);
	if (b > a)
	{
		a *= 0.5;
		b -= a;
	}
	else
	{
		b *= 0.5;
		a -= b;
	}
	const float *corner[3];
	for (int i = 0; i < 3; ++i)
	{
		corner[i] = &mesh->vertices[3 * (size_t)mesh->triangles[3 * (size_t)triangle + (size_t)i]];
	}
	for (int k = 0; k < 3; ++k)
	{
		place[k] = (double)corner[0][k] * (1 - a - b) + (double)corner[1][k] * a + (double)corner[2][k] * b;
	}
}

// m, from the place to the nearest sphere, less than 0 within one.
static double gap_at(const PlaceContext *p, const double place[3], int *guess)
{
	Query q = {.place = {place[0], place[1], place[2]}, .found = *guess};
	find_nearest(p->tree, &q);
	*guess = q.found;
	return q.best;
}

static void place_task(void *task_context, int block)
{
	PlaceContext *p = task_context;
	double step = p->areas[p->mesh->triangle_count] / p->place_count;
	int start = sand_part_start(p->place_count, block, p->block_count),
	    end = sand_part_start(p->place_count, block + 1, p->block_count), guess = 0;
	int triangle = triangle_at(p, (start + 0.5) * step);
	for (int i = start; i < end && !is_cancelled(p->cancel); ++i)
	{
		double area = (i + 0.5) * step, place[3];
		while (triangle + 1 < p->mesh->triangle_count && p->areas[triangle + 1] <= area)
		{
			++triangle;
		}
		place_on(p->mesh, triangle, i - (int)(p->areas[triangle] / step), place);
		double gap = gap_at(p, place, &guess);
		p->bare_counts[block] += gap > p->offset;
		p->farthest[block] = gap > p->farthest[block] ? gap : p->farthest[block];
	}
}

static void vertex_task(void *task_context, int block)
{
	PlaceContext *p = task_context;
	int count = p->mesh->vertex_count, guess = 0;
	for (int i = sand_part_start(count, block, p->block_count), end = sand_part_start(count, block + 1, p->block_count);
	     i < end && !is_cancelled(p->cancel); ++i)
	{
		const float *v = &p->mesh->vertices[3 * (size_t)i];
		double gap = p->is_met[i] ? gap_at(p, (double[3]){(double)v[0], (double)v[1], (double)v[2]}, &guess) : 0;
		p->farthest[block] = gap > p->farthest[block] ? gap : p->farthest[block];
	}
}

static void reach_task(void *task_context, int block)
{
	PlaceContext *p = task_context;
	int count = p->tree->ball_count;
	for (int i = sand_part_start(count, block, p->block_count), end = sand_part_start(count, block + 1, p->block_count);
	     i < end && !is_cancelled(p->cancel); ++i)
	{
		const Ball *ball = &p->tree->balls[i];
		const double centre[3] = {(double)ball->centre[0], (double)ball->centre[1], (double)ball->centre[2]};
		double reach = sand_surface_distance(p->surface, centre) + (double)ball->radius;
		p->farthest[block] = reach > p->farthest[block] ? reach : p->farthest[block];
	}
}

static double area_of(const SandMesh *mesh, int triangle)
{
	const float *corner[3];
	double u[3], v[3];
	for (int i = 0; i < 3; ++i)
	{
		corner[i] = &mesh->vertices[3 * (size_t)mesh->triangles[3 * (size_t)triangle + (size_t)i]];
	}
	for (int k = 0; k < 3; ++k)
	{
		u[k] = (double)corner[1][k] - (double)corner[0][k];
		v[k] = (double)corner[2][k] - (double)corner[0][k];
	}
	double x = u[1] * v[2] - u[2] * v[1], y = u[2] * v[0] - u[0] * v[2], z = u[0] * v[1] - u[1] * v[0];
	return 0.5 * sqrt(x * x + y * y + z * z);
}

static void run_places(PlaceContext *context, SandTask *task, int count, SandPool *pool)
{
	context->block_count = sand_block_count(count, BLOCK_SMALLEST);
	sand_pool_run(pool, task, context, context->block_count);
}

static SandStatus measure_distance(const SandSurface *surface, const SandFitDesc *desc, const Tree *tree,
                                   SandPool *pool, SandFit *fit, SandError *err)
{
	const SandMesh *mesh = sand_surface_mesh(surface);
	size_t triangle_count = (size_t)mesh->triangle_count;
	double *areas = sand_alloc(triangle_count + 1, sizeof(double));
	uint8_t *is_met = sand_alloc((size_t)mesh->vertex_count, 1);
	if (areas == NULL || is_met == NULL)
	{
		sand_free(areas);
		sand_free(is_met);
		return sand_fail_memory(err, (triangle_count + 1) * sizeof(double) + (size_t)mesh->vertex_count,
		                        "the areas of a mesh");
	}
	for (size_t i = 0; i < triangle_count; ++i)
	{
		areas[i + 1] = areas[i] + area_of(mesh, (int)i);
	}
	for (size_t i = 0; i < 3 * triangle_count; ++i)
	{
		is_met[mesh->triangles[i]] = 1;
	}
	int64_t places = (int64_t)PLACES_PER_SPHERE * desc->sphere_count;
	places = places < PLACES_MIN ? PLACES_MIN : places > PLACES_MAX ? PLACES_MAX : places;
	PlaceContext context = {.tree = tree,
	                        .surface = surface,
	                        .mesh = mesh,
	                        .cancel = desc->cancel,
	                        .offset = fabs((double)desc->offset),
	                        .areas = areas,
	                        .is_met = is_met,
	                        .place_count = (int)places};
	run_places(&context, place_task, context.place_count, pool);
	run_places(&context, vertex_task, mesh->vertex_count, pool);
	run_places(&context, reach_task, desc->sphere_count, pool);
	sand_free(areas);
	sand_free(is_met);
	int64_t bare_count = 0;
	for (int block = 0; block < SAND_BLOCK_LIMIT; ++block)
	{
		bare_count += context.bare_counts[block];
		fit->hausdorff = fmax(fit->hausdorff, context.farthest[block]);
	}
	fit->uncovered_share = desc->is_filling ? 0 : (double)bare_count / (double)places;
	return SAND_OK;
}

// ---- volume of the union

enum
{
	HIDDEN = -1 // instead of a count: another sphere holds the whole of this one
};

typedef struct Interval
{
	double low, high;
} Interval;

typedef struct VolumeContext
{
	const Tree *tree;
	const SandCancel *cancel;
	double factor; // on all radii
	int block_count;
	int *counts;    // per ball: earlier ones that overlap it, or HIDDEN
	double *shares; // per ball: of its volume, in no earlier one
	int32_t *others;
	Interval *cuts;
	int scratch_count; // of cuts, per block, and of others, per block and ball of a leaf
} VolumeContext;

// Larger spheres are earlier, and of equal ones those before in the tree.
static bool is_earlier(const Tree *tree, int ball, int other)
{
	float radius = tree->balls[ball].radius, other_radius = tree->balls[other].radius;
	return other_radius > radius || (other_radius >= radius && other < ball);
}

// A search for the balls earlier than those of one leaf, for all of them in one walk.
typedef struct Walk
{
	const VolumeContext *v;
	int own;            // leaf
	float radius_least; // m, of its balls
	int counts[BRANCH]; // per ball: earlier ones that overlap it, or HIDDEN
	int open_count;     // balls that are not hidden
	int32_t *others;    // scratch_count per ball: which; NULL when only numbers are wanted
} Walk;

static void walk_leaf(Walk *w, int leaf)
{
	const Tree *tree = w->v->tree;
	double factor = w->v->factor;
	for (int i = BRANCH * w->own, end = leaf_end(tree, w->own); i < end; ++i)
	{
		const Ball *ball = &tree->balls[i];
		const double place[3] = {(double)ball->centre[0], (double)ball->centre[1], (double)ball->centre[2]};
		int *count = &w->counts[i % BRANCH];
		double farthest = ((double)ball->radius + (double)tree->boxes[leaf].radius) * factor;
		if (square_to_box(&tree->boxes[leaf], place) >= farthest * farthest)
		{
			continue;
		}
		for (int j = BRANCH * leaf, last = leaf_end(tree, leaf); j < last && *count != HIDDEN; ++j)
		{
			const Ball *other = &tree->balls[j];
			double square = square_to_centre(other, place),
			       reach = ((double)ball->radius + (double)other->radius) * factor,
			       inner = ((double)other->radius - (double)ball->radius) * factor;
			if (square >= reach * reach || !is_earlier(tree, i, j))
			{
				continue;
			}
			if (square <= inner * inner)
			{
				*count = HIDDEN;
				--w->open_count;
				break;
			}
			if (w->others != NULL)
			{
				w->others[(size_t)w->v->scratch_count * (size_t)(i % BRANCH) + (size_t)*count] = j;
			}
			++*count;
		}
	}
}

static void walk_node(Walk *w, int level, int node)
{
	if (level == 0)
	{
		walk_leaf(w, node);
		return;
	}
	const Tree *tree = w->v->tree;
	const Box *own = &tree->boxes[w->own], *child;
	int child_count = children_of(tree, level, node, &child);
	for (int i = 0; i < child_count && w->open_count > 0; ++i)
	{
		double reach = ((double)own->radius + (double)child[i].radius) * w->v->factor;
		int64_t first_leaf = ((int64_t)BRANCH * node + i) << (3 * (level - 1));
		bool is_later =
		    child[i].radius < w->radius_least || (child[i].radius <= w->radius_least && first_leaf > w->own);
		if (!is_later && square_between(own, &child[i]) < reach * reach)
		{
			walk_node(w, level - 1, BRANCH * node + i);
		}
	}
}

// others may be NULL. Balls that are hidden already, as v->counts says, are not looked for.
static Walk find_earlier(const VolumeContext *v, int own, int32_t *others)
{
	Walk walk = {.v = v, .own = own, .radius_least = INFINITY, .others = others};
	for (int i = BRANCH * own, end = leaf_end(v->tree, own); i < end; ++i)
	{
		float radius = v->tree->balls[i].radius;
		walk.radius_least = radius < walk.radius_least ? radius : walk.radius_least;
		walk.counts[i % BRANCH] = v->counts[i] == HIDDEN ? HIDDEN : 0;
		walk.open_count += v->counts[i] != HIDDEN;
	}
	walk_node(&walk, v->tree->level_count - 1, 0);
	return walk;
}

static void count_task(void *task_context, int block)
{
	VolumeContext *v = task_context;
	int count = v->tree->counts[0];
	for (int leaf = sand_part_start(count, block, v->block_count),
	         end = sand_part_start(count, block + 1, v->block_count);
	     leaf < end && !is_cancelled(v->cancel); ++leaf)
	{
		Walk walk = find_earlier(v, leaf, NULL);
		int ball_count = leaf_end(v->tree, leaf) - BRANCH * leaf;
		memcpy(&v->counts[BRANCH * (size_t)leaf], walk.counts, (size_t)ball_count * sizeof(int));
	}
}

// Adds to disjoint intervals in ascending order, joining those that it meets. Returns their number.
static int add_interval(Interval *cuts, int count, Interval added)
{
	int first = 0;
	while (first < count && cuts[first].high < added.low)
	{
		++first;
	}
	int after = first;
	while (after < count && cuts[after].low <= added.high)
	{
		added.low = fmin(added.low, cuts[after].low);
		added.high = fmax(added.high, cuts[after].high);
		++after;
	}
	memmove(&cuts[first + 1], &cuts[after], (size_t)(count - after) * sizeof(Interval));
	cuts[first] = added;
	return count - (after - first) + 1;
}

// Share of the line through the ball at (y, z) from its centre, half as long as `half`, that none of the others covers.
static double free_share(const VolumeContext *v, const Ball *ball, double y, double z, double half,
                         const int32_t *others, int other_count, Interval *cuts)
{
	int cut_count = 0;
	for (int i = 0; i < other_count; ++i)
	{
		const Ball *other = &v->tree->balls[others[i]];
		double dx = (double)other->centre[0] - (double)ball->centre[0],
		       dy = (double)other->centre[1] - (double)ball->centre[1] - y,
		       dz = (double)other->centre[2] - (double)ball->centre[2] - z, radius = (double)other->radius * v->factor,
		       square = radius * radius - dy * dy - dz * dz;
		if (square <= 0)
		{
			continue;
		}
		double reach = sqrt(square);
		Interval cut = {fmax(dx - reach, -half), fmin(dx + reach, half)};
		if (cut.low < cut.high)
		{
			cut_count = add_interval(cuts, cut_count, cut);
			if (cuts[0].low <= -half && cuts[0].high >= half)
			{
				return 0;
			}
		}
	}
	double covered = 0;
	for (int i = 0; i < cut_count; ++i)
	{
		covered += cuts[i].high - cuts[i].low;
	}
	return 1 - covered / (2 * half);
}

// Share of a ball that is in none of the others. Lines on a spiral (Vogel 1979), each standing for the same volume of
// the ball: half the length of line u of 0 .. 1 is cbrt(1 - u) radii. Turned and shifted at random, ball by ball, so
// that no lattice of balls meets the same error in all of them.
static double share_of(const VolumeContext *v, int ball_index, const int32_t *others, int other_count, Interval *cuts)
{
	const Ball *ball = &v->tree->balls[ball_index];
	double lines = LINE_CUTS / ((double)v->tree->ball_count * (1 + other_count)), sum = 0;
	int line_count = lines < LINES_MIN ? LINES_MIN : lines > LINES_MAX ? LINES_MAX : (int)lines;
	double turn = sand_random(RANDOM_SEED, 2 * (uint64_t)ball_index),
	       shift = sand_random(RANDOM_SEED, 2 * (uint64_t)ball_index + 1), radius = (double)ball->radius * v->factor;
	for (int line = 0; line < line_count; ++line)
	{
		double half = cbrt(1 - (line + shift) / line_count), away = sqrt(fmax(0, 1 - half * half)),
		       angle = 2 * PI * (turn + GOLDEN * line);
		sum += free_share(v, ball, radius * away * cos(angle), radius * away * sin(angle), radius * half, others,
		                  other_count, cuts);
	}
	return sum / line_count;
}

static void share_task(void *task_context, int block)
{
	VolumeContext *v = task_context;
	size_t scratch = (size_t)v->scratch_count;
	int leaf_count = v->tree->counts[0];
	int32_t *others = v->others + BRANCH * scratch * (size_t)block;
	Interval *cuts = v->cuts + scratch * (size_t)block;
	for (int leaf = sand_part_start(leaf_count, block, v->block_count),
	         end = sand_part_start(leaf_count, block + 1, v->block_count);
	     leaf < end && !is_cancelled(v->cancel); ++leaf)
	{
		Walk walk = find_earlier(v, leaf, others);
		for (int i = BRANCH * leaf, last = leaf_end(v->tree, leaf); i < last; ++i)
		{
			int count = walk.counts[i % BRANCH];
			v->shares[i] = count == HIDDEN ? 0
			               : count == 0    ? 1
			                               : share_of(v, i, others + scratch * (size_t)(i % BRANCH), count, cuts);
		}
	}
}

static SandStatus measure_volume(const Tree *tree, double factor, const SandCancel *cancel, SandPool *pool,
                                 double *volume_out, SandError *err)
{
	SandStatus status = SAND_OK;
	size_t count = (size_t)tree->ball_count;
	VolumeContext v = {.tree = tree,
	                   .cancel = cancel,
	                   .factor = factor,
	                   .block_count = sand_block_count(tree->counts[0], 1),
	                   .counts = sand_alloc(count, sizeof(int)),
	                   .shares = sand_alloc(count, sizeof(double)),
	                   .scratch_count = 1};
	*volume_out = 0;
	if (v.counts == NULL || v.shares == NULL)
	{
		status = sand_fail_memory(err, count * (sizeof(int) + sizeof(double)), "the volumes of spheres");
		goto done;
	}
	sand_pool_run(pool, count_task, &v, v.block_count);
	if (is_cancelled(cancel))
	{
		status = fail_cancelled(err);
		goto done;
	}
	for (size_t i = 0; i < count; ++i)
	{
		v.scratch_count = v.counts[i] > v.scratch_count ? v.counts[i] : v.scratch_count;
	}
	size_t scratch = (size_t)v.scratch_count * (size_t)v.block_count;
	v.others = sand_alloc(BRANCH * scratch, sizeof(int32_t));
	v.cuts = sand_alloc(scratch, sizeof(Interval));
	if (v.others == NULL || v.cuts == NULL)
	{
		status =
		    sand_fail_memory(err, scratch * (BRANCH * sizeof(int32_t) + sizeof(Interval)), "the overlaps of spheres");
		goto done;
	}
	sand_pool_run(pool, share_task, &v, v.block_count);
	for (size_t i = 0; i < count; ++i)
	{
		double radius = (double)tree->balls[i].radius * factor;
		*volume_out += v.shares[i] * (4.0 / 3.0) * PI * radius * radius * radius;
	}
done:
	sand_free(v.counts);
	sand_free(v.shares);
	sand_free(v.others);
	sand_free(v.cuts);
	return status == SAND_OK && is_cancelled(cancel) ? fail_cancelled(err) : status;
}

// ---- masses

// What a unit of mass in the sphere adds to sum, first moments, and inertia (xx, yy, zz, xy, xz, yz), in units of the
// body's size.
static void terms_of(const SandFitDesc *desc, int sphere, const double centre[3], double size, double terms[TERM_COUNT])
{
	double d[3], radius = radius_of(desc, sphere) / size, own = 0.4 * radius * radius;
	for (int k = 0; k < 3; ++k)
	{
		d[k] = ((double)desc->centres[3 * (size_t)sphere + (size_t)k] - centre[k]) / size;
		terms[1 + k] = d[k];
	}
	terms[0] = 1;
	terms[4] = d[1] * d[1] + d[2] * d[2] + own;
	terms[5] = d[0] * d[0] + d[2] * d[2] + own;
	terms[6] = d[0] * d[0] + d[1] * d[1] + own;
	terms[7] = -d[0] * d[1];
	terms[8] = -d[0] * d[2];
	terms[9] = -d[1] * d[2];
}

// One of Jacobi's rotations of the symmetric matrix, making entry (p, q) zero.
static void rotate(double matrix[TERM_COUNT][TERM_COUNT], double vectors[TERM_COUNT][TERM_COUNT], int p, int q)
{
	if (!(fabs(matrix[p][q]) > 0))
	{
		return;
	}
	double half = (matrix[q][q] - matrix[p][p]) / (2 * matrix[p][q]);
	double t = (half < 0 ? -1 : 1) / (fabs(half) + sqrt(1 + half * half)), c = 1 / sqrt(1 + t * t), s = t * c;
	for (int k = 0; k < TERM_COUNT; ++k)
	{
		double a = matrix[k][p], b = matrix[k][q];
		matrix[k][p] = c * a - s * b;
		matrix[k][q] = s * a + c * b;
	}
	for (int k = 0; k < TERM_COUNT; ++k)
	{
		double a = matrix[p][k], b = matrix[q][k];
		matrix[p][k] = c * a - s * b;
		matrix[q][k] = s * a + c * b;
		a = vectors[k][p];
		b = vectors[k][q];
		vectors[k][p] = c * a - s * b;
		vectors[k][q] = s * a + c * b;
	}
}

// Least-squares solution of least norm of matrix x = right: directions in which the matrix says nothing (a flat or
// straight set of spheres, or fewer than ten) stay zero.
static void solve_least(double matrix[TERM_COUNT][TERM_COUNT], const double right[TERM_COUNT], double x[TERM_COUNT])
{
	double vectors[TERM_COUNT][TERM_COUNT] = {{0}}, largest = 0;
	for (int k = 0; k < TERM_COUNT; ++k)
	{
		vectors[k][k] = 1;
		x[k] = 0;
	}
	for (int sweep = 0; sweep < SWEEP_LIMIT; ++sweep)
	{
		double rest = 0, diagonal = 0;
		for (int p = 0; p < TERM_COUNT; ++p)
		{
			diagonal += fabs(matrix[p][p]);
			for (int q = p + 1; q < TERM_COUNT; ++q)
			{
				rest += fabs(matrix[p][q]);
				rotate(matrix, vectors, p, q);
			}
		}
		if (!(rest > 1e-18 * diagonal))
		{
			break;
		}
	}
	for (int k = 0; k < TERM_COUNT; ++k)
	{
		largest = fmax(largest, matrix[k][k]);
	}
	for (int k = 0; k < TERM_COUNT; ++k)
	{
		double along = 0;
		for (int i = 0; i < TERM_COUNT; ++i)
		{
			along += vectors[i][k] * right[i];
		}
		for (int i = 0; i < TERM_COUNT && matrix[k][k] > 1e-12 * largest; ++i)
		{
			x[i] += vectors[i][k] * along / matrix[k][k];
		}
	}
}

// Moves the masses above `least` by the least correction towards the wanted sums; those at `least` stay.
static void correct_masses(const SandFitDesc *desc, const double centre[3], double size,
                           const double wanted[TERM_COUNT], double least, double *masses)
{
	double matrix[TERM_COUNT][TERM_COUNT] = {{0}}, right[TERM_COUNT], x[TERM_COUNT], terms[TERM_COUNT];
	memcpy(right, wanted, sizeof(right));
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		terms_of(desc, i, centre, size, terms);
		for (int p = 0; p < TERM_COUNT; ++p)
		{
			right[p] -= masses[i] * terms[p];
			for (int q = p; q < TERM_COUNT && masses[i] > least; ++q)
			{
				matrix[p][q] += terms[p] * terms[q];
			}
		}
	}
	for (int p = 0; p < TERM_COUNT; ++p)
	{
		for (int q = 0; q < p; ++q)
		{
			matrix[p][q] = matrix[q][p];
		}
	}
	solve_least(matrix, right, x);
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		if (masses[i] > least)
		{
			terms_of(desc, i, centre, size, terms);
			for (int p = 0; p < TERM_COUNT; ++p)
			{
				masses[i] += x[p] * terms[p];
			}
		}
	}
}

// Largest difference to the wanted sums once the masses are scaled to a sum of 1.
static double difference_of(const SandFitDesc *desc, const double centre[3], double size,
                            const double wanted[TERM_COUNT], const double *masses)
{
	double sums[TERM_COUNT] = {0}, terms[TERM_COUNT], largest = 0;
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		terms_of(desc, i, centre, size, terms);
		for (int p = 0; p < TERM_COUNT; ++p)
		{
			sums[p] += masses[i] * terms[p];
		}
	}
	for (int p = 0; p < TERM_COUNT; ++p)
	{
		largest = fmax(largest, fabs(sums[p] / sums[0] - wanted[p]));
	}
	return largest;
}

// Holds masses that fell below the least at it. Returns whether there were any.
static bool hold_masses(int count, double least, double *masses)
{
	bool is_any = false;
	for (int i = 0; i < count; ++i)
	{
		is_any = is_any || masses[i] < least;
		masses[i] = masses[i] > least ? masses[i] : least;
	}
	return is_any;
}

// Equal masses, corrected, with those that would fall below the least held there and the others corrected again.
static void hold_and_correct(const SandFitDesc *desc, const double centre[3], double size,
                             const double wanted[TERM_COUNT], double *masses)
{
	double equal = 1.0 / desc->sphere_count, least = MASS_LEAST * equal;
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		masses[i] = equal;
	}
	bool is_held = true;
	for (int trial = 0; trial < MASS_TRIALS && is_held; ++trial)
	{
		correct_masses(desc, centre, size, wanted, least, masses);
		is_held = hold_masses(desc->sphere_count, least, masses);
	}
	// Once more, for what the last correction lost in rounding.
	correct_masses(desc, centre, size, wanted, least, masses);
	hold_masses(desc->sphere_count, least, masses);
}

// Equal masses, corrected as far as none falls below the least: every difference shrinks by the same share.
static void correct_in_part(const SandFitDesc *desc, const double centre[3], double size,
                            const double wanted[TERM_COUNT], double *masses)
{
	double equal = 1.0 / desc->sphere_count, least = MASS_LEAST * equal, share = 1;
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		masses[i] = equal;
	}
	correct_masses(desc, centre, size, wanted, least, masses);
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		share = masses[i] < least ? fmin(share, (equal - least) / (equal - masses[i])) : share;
	}
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		masses[i] = equal + share * (masses[i] - equal);
	}
}

bool sand_fit_masses(const SandMass *wanted, double mass, const SandFitDesc *desc, double *masses_out)
{
	double moment = fmax(wanted->inertia[0], fmax(wanted->inertia[1], wanted->inertia[2]));
	double size = wanted->volume > 0 && moment > 0 ? sqrt(moment / wanted->volume) : 1; // largest radius of gyration
	double targets[TERM_COUNT] = {1}, sum = 0;
	for (int k = 0; k < 6; ++k)
	{
		targets[4 + k] = wanted->volume > 0 ? wanted->inertia[k] / (wanted->volume * size * size) : 0;
	}
	hold_and_correct(desc, wanted->centre, size, targets, masses_out);
	double held = difference_of(desc, wanted->centre, size, targets, masses_out);
	if (held > MASS_TOLERANCE)
	{
		correct_in_part(desc, wanted->centre, size, targets, masses_out);
		if (difference_of(desc, wanted->centre, size, targets, masses_out) > held)
		{
			hold_and_correct(desc, wanted->centre, size, targets, masses_out);
		}
	}
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		sum += masses_out[i];
	}
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		masses_out[i] *= mass / sum;
	}
	return held <= MASS_TOLERANCE;
}

// Largest difference of the six components over the mesh's largest moment: the spheres' about their own centre of
// mass, the mesh's about its own, of the same mass. masses NULL = equal ones.
static double inertia_error(const SandMass *wanted, const SandFitDesc *desc, const double *masses)
{
	double sums[TERM_COUNT] = {0}, terms[TERM_COUNT], error = 0,
	       moment = fmax(wanted->inertia[0], fmax(wanted->inertia[1], wanted->inertia[2]));
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		double mass = masses != NULL ? masses[i] : wanted->volume / desc->sphere_count;
		terms_of(desc, i, wanted->centre, 1, terms);
		for (int p = 0; p < TERM_COUNT; ++p)
		{
			sums[p] += mass * terms[p];
		}
	}
	double x = sums[1], y = sums[2], z = sums[3];
	const double shift[6] = {y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z};
	for (int k = 0; k < 6; ++k)
	{
		error = fmax(error, fabs(sums[4 + k] - shift[k] / sums[0] - wanted->inertia[k]));
	}
	return error / moment;
}

static SandStatus measure_inertia(const SandSurface *surface, const SandFitDesc *desc, SandFit *fit, SandError *err)
{
	const SandMesh *mesh = sand_surface_mesh(surface);
	if (sand_mesh_require_closed(mesh, NULL) != SAND_OK)
	{
		return SAND_OK;
	}
	SandMass wanted = sand_mesh_mass(mesh);
	if (wanted.volume < 0) // turned inside out
	{
		wanted.volume = -wanted.volume;
		for (int k = 0; k < 6; ++k)
		{
			wanted.inertia[k] = -wanted.inertia[k];
		}
	}
	if (!(wanted.volume > 0))
	{
		return SAND_OK;
	}
	double *masses = sand_alloc((size_t)desc->sphere_count, sizeof(double));
	if (masses == NULL)
	{
		return sand_fail_memory(err, (size_t)desc->sphere_count * sizeof(double), "the masses of spheres");
	}
	fit->mesh_volume = wanted.volume;
	fit->volume_error = fabs(fit->sphere_volume / wanted.volume - 1);
	fit->inertia_error_raw = inertia_error(&wanted, desc, NULL);
	(void)sand_fit_masses(&wanted, wanted.volume, desc, masses);
	fit->inertia_error = inertia_error(&wanted, desc, masses);
	sand_free(masses);
	return SAND_OK;
}

// ---- contract

static SandStatus check_desc(const SandFitDesc *desc, SandError *err)
{
	if (desc->sphere_count < 1)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "There are %d spheres to measure, expected at least one; make spheres first",
		                 desc->sphere_count);
	}
	if (!isfinite(desc->offset))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The offset of the spheres is %g m, expected a finite number",
		                 (double)desc->offset);
	}
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		const float *centre = &desc->centres[3 * (size_t)i];
		if (!sand_is_finite(centre, 3))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Sphere %d of %d has its centre at (%g, %g, %g), which is no place in space; give it a "
			                 "finite one",
			                 i, desc->sphere_count, (double)centre[0], (double)centre[1], (double)centre[2]);
		}
		double radius = radius_of(desc, i);
		if (!isfinite(radius) || !(radius > 0))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Sphere %d of %d has a radius of %g m, expected a finite one above 0", i,
			                 desc->sphere_count, radius);
		}
	}
	return SAND_OK;
}

// Checks, sees to a pool, and builds the tree. own_out and tree are the caller's to free, also on failure.
static SandStatus prepare(const SandFitDesc *desc, SandPool *pool, Tree *tree, SandError *err)
{
	SandStatus status = check_desc(desc, err);
	return status == SAND_OK ? tree_build(desc, pool, tree, err) : status;
}

static SandStatus measure_all(const SandSurface *surface, const SandFitDesc *desc, const Tree *tree, SandPool *pool,
                              SandFit *fit, SandError *err)
{
	fit->sphere_count = desc->sphere_count;
	measure_spacing(tree, desc->cancel, pool, fit);
	SandStatus status = measure_distance(surface, desc, tree, pool, fit, err);
	if (status == SAND_OK)
	{
		status = measure_volume(tree, 1, desc->cancel, pool, &fit->sphere_volume, err);
	}
	if (status == SAND_OK)
	{
		status = measure_inertia(surface, desc, fit, err);
	}
	return status;
}

SandStatus sand_fit_measure(const SandSurface *surface, const SandFitDesc *desc, SandPool *pool, SandFit *fit_out,
                            SandError *err)
{
	*fit_out = (SandFit){0};
	Tree tree = {0};
	SandFit fit = {0};
	SandStatus status = prepare(desc, pool, &tree, err);
	if (status == SAND_OK)
	{
		status = measure_all(surface, desc, &tree, pool, &fit, err);
	}
	tree_free(&tree);
	if (status == SAND_OK)
	{
		*fit_out = fit;
	}
	return status;
}

typedef struct GapContext
{
	const Tree *tree;
	const SandCancel *cancel;
	const float *places;
	int place_count, block_count;
	double limit;
	uint8_t *gaps;
} GapContext;

static void gap_task(void *task_context, int block)
{
	const GapContext *g = task_context;
	int guess = 0;
	for (int i = sand_part_start(g->place_count, block, g->block_count),
	         end = sand_part_start(g->place_count, block + 1, g->block_count);
	     i < end && !is_cancelled(g->cancel); ++i)
	{
		const float *place = g->places + 3 * (size_t)i;
		Query q = {.place = {place[0], place[1], place[2]}, .found = guess};
		find_nearest(g->tree, &q);
		guess = q.found;
		g->gaps[i] = q.best > g->limit;
	}
}

SandStatus sand_fit_gaps(const SandFitDesc *desc, const float *places, int place_count, double limit, SandPool *pool,
                         uint8_t *gaps_out, SandError *err)
{
	Tree tree = {0};
	SandStatus status = prepare(desc, pool, &tree, err);
	if (status == SAND_OK)
	{
		GapContext context = {&tree, desc->cancel, places, place_count, sand_block_count(place_count, 256),
		                      limit, gaps_out};
		sand_pool_run(pool, gap_task, &context, context.block_count);
		status = is_cancelled(desc->cancel) ? fail_cancelled(err) : SAND_OK;
	}
	tree_free(&tree);
	return status;
}

// A root of log volume over log factor by secants, kept between brackets. Volume grows with the factor, at most as its
// cube, and just so where nothing overlaps.
static SandStatus find_factor(const Tree *tree, const SandCancel *cancel, double volume, SandPool *pool,
                              double *factor_out, SandError *err)
{
	double low = -(double)INFINITY, high = (double)INFINITY, at = 0, last_at = 0, last_error = 0;
	for (int trial = 0; trial < FACTOR_TRIALS; ++trial)
	{
		double found;
		SandStatus status = measure_volume(tree, exp(at), cancel, pool, &found, err);
		if (status != SAND_OK)
		{
			return status;
		}
		double error = log(found / volume), slope = 3;
		*factor_out = exp(at);
		if (fabs(error) <= FACTOR_TOLERANCE)
		{
			break;
		}
		low = error < 0 ? at : low;
		high = error < 0 ? high : at;
		if (trial > 0)
		{
			slope = (error - last_error) / (at - last_at);
			slope = slope > 0.5 && slope < 3 ? slope : 3;
		}
		last_at = at;
		last_error = error;
		at -= error / slope;
		if (!(at > low && at < high))
		{
			at = 0.5 * (low + high);
		}
	}
	return SAND_OK;
}

SandStatus sand_fit_radius_factor(const SandFitDesc *desc, double volume, SandPool *pool, double *factor_out,
                                  SandError *err)
{
	*factor_out = 1;
	if (!isfinite(volume) || !(volume > 0))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "The volume that the spheres shall fill is %g m^3, expected a finite one above 0; close the "
		                 "mesh, or turn its faces outside",
		                 volume);
	}
	Tree tree = {0};
	SandStatus status = prepare(desc, pool, &tree, err);
	if (status == SAND_OK)
	{
		status = find_factor(&tree, desc->cancel, volume, pool, factor_out, err);
	}
	tree_free(&tree);
	if (status != SAND_OK)
	{
		*factor_out = 1;
	}
	return status;
}
