// clump: a small mesh -> a few spheres of different radii, for grains shaped like it.
// Comes in: SandSurface. Goes out: SandClump.
//
// The mesh is cut into about 80,000 cells over its bounds, each solid or void. Overlap is solid cells in some sphere
// over cells that are solid or in a sphere; running sums along x of the cells that no sphere holds yet give what one
// more would add without visiting its cells. Two beginnings: spheres put in one by one where they raise the overlap
// most, and the centres of as many equal parts of the solid (Lloyd 1982). Each is improved by moving and sizing one
// sphere after the other while that raises the overlap; the better one is scaled to the mesh's volume.
#include "clump.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum
{
	COUNT_DEFAULT = 8,
	CELLS_WANTED = 80000, // in the bounds
	CELLS_LEAST = 8,      // along an axis
	CELLS_MOST = 4096,
	PLACE_LIMIT = 1000, // where a new sphere may begin
	SIZE_COUNT = 4,
	LLOYD_ROUNDS = 20,
	MOVE_COUNT = 8,    // along x, y, z and of the radius, both ways
	MOVE_ROUNDS = 16,  // of one sphere, per sweep
	SWEEPS_ADDED = 2,  // over all spheres after one was put in
	SWEEPS_FINAL = 40, // over all spheres of a beginning
	PART_STARTS = 48,  // spheres in all beginnings in parts together: few spheres get several
	PART_LIMIT = 6,    // beginnings in parts
	SWAP_LIMIT = 12,   // spheres put elsewhere
	SWAP_FAILURES = 2, // in a row that end it
	PLACE_BLOCK = 64   // places of a task
};

static const double PI = 3.14159265358979323846;
static const double NUDGE[3] = {0.0137, 0.0071, -0.0113}; // cells: off planes of symmetry, where faces like to lie
static const double ENCLOSED = 0.6;                       // winding number that no place beside a mere sheet has
static const double MARGIN = 0.2;      // of the least extent: how far spheres may reach out of the bounds
static const double GAIN_LEAST = 2e-4; // of overlap, that a sphere must add to be kept; of a sweep, a tenth, to go on
static const double SIZES[SIZE_COUNT] = {1.5, 1, 1.15, 1.3}; // of a new sphere, times the inscribed one; largest first

typedef struct Ball
{
	double centre[3], radius; // m
} Ball;

typedef struct Grid
{
	int size[3];                     // cells, the margin included
	double low[3], cell[3];          // m
	int solid_low[3], solid_high[3]; // cells of the bounds, [low, high)
	uint8_t *is_solid;               // per cell, x fastest
	uint8_t *cover_counts;           // spheres that hold the cell's middle
	int32_t *free_solid;             // per row size[0] + 1: solid cells in no sphere before this one
	int32_t *free_void;
	int64_t solid_count;
} Grid;

// Spheres painted into the grid.
typedef struct Trial
{
	Ball balls[SAND_CLUMP_LIMIT];
	int count;
	int64_t held_solid, held_void; // cells in some sphere
} Trial;

typedef struct Fitter
{
	const SandSurface *surface;
	const SandClumpDesc *desc;
	SandPool *pool;
	Grid grid;
	Ball *places; // inside the mesh, with their inscribed radii
	int place_count;
	int task_count;
	int64_t row_solid[SAND_BLOCK_LIMIT]; // solid cells, per task
	bool is_enclosed[SAND_BLOCK_LIMIT];  // one of them beyond doubt, per task
	double task_scores[SAND_BLOCK_LIMIT];
	Ball task_balls[SAND_BLOCK_LIMIT];
	Trial trial;
} Fitter;

static bool is_cancelled(const Fitter *f)
{
	return f->desc->cancel != NULL && atomic_load(&f->desc->cancel->is_raised) != 0;
}

// ---- grid

static size_t row_count(const Grid *g)
{
	return (size_t)g->size[1] * (size_t)g->size[2];
}

// Cells whose middles lie in [from, to) along an axis: first and one past the last.
static inline void span_of(const Grid *g, int axis, double from, double to, int *first, int *end)
{
	double scale = 1 / g->cell[axis], a = (from - g->low[axis]) * scale + 0.5, b = (to - g->low[axis]) * scale + 0.5;
	*first = a > 0 ? (int)a : 0;
	*end = b < g->size[axis] ? (int)b : g->size[axis];
}

static double middle_of(const Grid *g, int axis, int cell)
{
	return g->low[axis] + (cell + 0.5) * g->cell[axis];
}

static void sum_row(Grid *g, size_t row)
{
	const uint8_t *is_solid = &g->is_solid[row * (size_t)g->size[0]],
	              *cover = &g->cover_counts[row * (size_t)g->size[0]];
	int32_t *solid = &g->free_solid[row * ((size_t)g->size[0] + 1)],
	        *empty = &g->free_void[row * ((size_t)g->size[0] + 1)];
	int32_t solid_sum = 0, empty_sum = 0;
	for (int x = 0; x < g->size[0]; ++x)
	{
		solid_sum += cover[x] == 0 && is_solid[x] != 0;
		empty_sum += cover[x] == 0 && is_solid[x] == 0;
		solid[x + 1] = solid_sum;
		empty[x + 1] = empty_sum;
	}
}

// What a row's span of a ball is handed to.
typedef void RowVisit(void *context, size_t row, int first, int end);

static inline void visit_rows(const Grid *g, const Ball *ball, RowVisit *visit, void *context)
{
	int first[3], end[3];
	for (int axis = 1; axis < 3; ++axis)
	{
		span_of(g, axis, ball->centre[axis] - ball->radius, ball->centre[axis] + ball->radius, &first[axis],
		        &end[axis]);
	}
	for (int z = first[2]; z < end[2]; ++z)
	{
		double dz = middle_of(g, 2, z) - ball->centre[2], rest = ball->radius * ball->radius - dz * dz;
		for (int y = first[1]; y < end[1]; ++y)
		{
			double dy = middle_of(g, 1, y) - ball->centre[1], square = rest - dy * dy;
			if (square > 0)
			{
				double half = sqrt(square);
				span_of(g, 0, ball->centre[0] - half, ball->centre[0] + half, &first[0], &end[0]);
				if (first[0] < end[0])
				{
					visit(context, (size_t)z * (size_t)g->size[1] + (size_t)y, first[0], end[0]);
				}
			}
		}
	}
}

typedef struct Painter
{
	Grid *grid;
	int by;               // 1 or -1
	int64_t solid, empty; // cells that were free and are held, or the other way round
} Painter;

static void paint_row(void *context, size_t row, int first, int end)
{
	Painter *p = context;
	size_t sums = row * ((size_t)p->grid->size[0] + 1), cells = row * (size_t)p->grid->size[0];
	int64_t solid = p->grid->free_solid[sums + (size_t)p->grid->size[0]],
	        empty = p->grid->free_void[sums + (size_t)p->grid->size[0]];
	for (int x = first; x < end; ++x)
	{
		p->grid->cover_counts[cells + (size_t)x] = (uint8_t)(p->grid->cover_counts[cells + (size_t)x] + p->by);
	}
	sum_row(p->grid, row);
	p->solid += solid - p->grid->free_solid[sums + (size_t)p->grid->size[0]];
	p->empty += empty - p->grid->free_void[sums + (size_t)p->grid->size[0]];
}

// Puts a ball into the grid (by 1) or takes it out (by -1).
static void paint(Grid *g, Trial *trial, const Ball *ball, int by)
{
	Painter painter = {g, by, 0, 0};
	visit_rows(g, ball, paint_row, &painter);
	trial->held_solid += painter.solid;
	trial->held_void += painter.empty;
}

typedef struct Counter
{
	const Grid *grid;
	int64_t solid, empty;
} Counter;

static void count_row(void *context, size_t row, int first, int end)
{
	Counter *c = context;
	size_t sums = row * ((size_t)c->grid->size[0] + 1);
	c->solid += c->grid->free_solid[sums + (size_t)end] - c->grid->free_solid[sums + (size_t)first];
	c->empty += c->grid->free_void[sums + (size_t)end] - c->grid->free_void[sums + (size_t)first];
}

static double overlap_of(const Grid *g, const Trial *trial)
{
	return (double)trial->held_solid / (double)(g->solid_count + trial->held_void);
}

static bool is_within(const Grid *g, const Ball *ball)
{
	for (int axis = 0; axis < 3; ++axis)
	{
		if (ball->centre[axis] - ball->radius < g->low[axis] ||
		    ball->centre[axis] + ball->radius > g->low[axis] + g->size[axis] * g->cell[axis])
		{
			return false;
		}
	}
	return true;
}

static Counter count_cells(const Grid *g, const Ball *ball)
{
	Counter counter = {g, 0, 0};
	visit_rows(g, ball, count_row, &counter);
	return counter;
}

static double overlap_plus(const Grid *g, const Trial *trial, int64_t solid, int64_t empty)
{
	return (double)(trial->held_solid + solid) / (double)(g->solid_count + trial->held_void + empty);
}

// Overlap if the ball were put in as well; -1 for one that leaves the grid, where nothing is counted.
static double overlap_with(const Grid *g, const Trial *trial, const Ball *ball)
{
	if (!is_within(g, ball))
	{
		return -1;
	}
	Counter counter = count_cells(g, ball);
	return overlap_plus(g, trial, counter.solid, counter.empty);
}

// Takes all spheres out.
static void clear(Grid *g, Trial *trial)
{
	*trial = (Trial){0};
	memset(g->cover_counts, 0, row_count(g) * (size_t)g->size[0]);
	for (size_t row = 0; row < row_count(g); ++row)
	{
		sum_row(g, row);
	}
}

// Marks the solid cells of a row and returns their number. In a clean mesh the side cannot change nearer than the
// surface is, so that most cells need no look.
static int fill_row(const Fitter *f, int y, int z, uint8_t *is_solid, bool *is_enclosed)
{
	const Grid *g = &f->grid;
	bool is_clean = sand_surface_is_clean(f->surface);
	int count = 0;
	for (int x = g->solid_low[0]; x < g->solid_high[0];)
	{
		const double place[3] = {middle_of(g, 0, x) + NUDGE[0] * g->cell[0], middle_of(g, 1, y) + NUDGE[1] * g->cell[1],
		                         middle_of(g, 2, z) + NUDGE[2] * g->cell[2]};
		double distance = is_clean ? sand_surface_distance(f->surface, place) : 0;
		bool is_inside = is_clean ? distance < 0 : sand_surface_is_inside(f->surface, place);
		if (is_inside && !*is_enclosed)
		{
			*is_enclosed = is_clean || sand_surface_winding(f->surface, place) > ENCLOSED;
		}
		int end = x + 1 + (int)fmin(fabs(distance) / g->cell[0], CELLS_MOST);
		end = end < g->solid_high[0] ? end : g->solid_high[0];
		for (; x < end; ++x)
		{
			is_solid[x] = is_inside;
			count += is_inside;
		}
	}
	return count;
}

static void solid_task(void *context, int task)
{
	Fitter *f = context;
	Grid *g = &f->grid;
	int count = (int)row_count(g);
	for (int row = sand_part_start(count, task, f->task_count), end = sand_part_start(count, task + 1, f->task_count);
	     row < end && !is_cancelled(f); ++row)
	{
		int y = row % g->size[1], z = row / g->size[1];
		if (y < g->solid_low[1] || y >= g->solid_high[1] || z < g->solid_low[2] || z >= g->solid_high[2])
		{
			continue;
		}
		f->row_solid[task] += fill_row(f, y, z, &g->is_solid[(size_t)row * (size_t)g->size[0]], &f->is_enclosed[task]);
	}
}

static SandStatus fail_hollow(const SandMesh *mesh, SandError *err)
{
	const char *name = sand_mesh_name(mesh);
	return sand_fail(
	    err, SAND_ERROR_MESH,
	    "Mesh '%.100s' has no inside to fill with spheres (%d open edges, %g x %g x %g m); close its holes, "
	    "or give it thickness with a Solidify modifier",
	    name, mesh->open_edge_count, (double)mesh->bounds_max[0] - (double)mesh->bounds_min[0],
	    (double)mesh->bounds_max[1] - (double)mesh->bounds_min[1],
	    (double)mesh->bounds_max[2] - (double)mesh->bounds_min[2]);
}

static SandStatus grid_build(Fitter *f, SandError *err)
{
	const SandMesh *mesh = sand_surface_mesh(f->surface);
	Grid *g = &f->grid;
	double extent[3], least = (double)INFINITY;
	for (int axis = 0; axis < 3; ++axis)
	{
		extent[axis] = (double)mesh->bounds_max[axis] - (double)mesh->bounds_min[axis];
		least = fmin(least, extent[axis]);
	}
	double pitch = cbrt(extent[0] * extent[1] * extent[2] / CELLS_WANTED);
	if (!(pitch > 0))
	{
		return fail_hollow(mesh, err);
	}
	for (int axis = 0; axis < 3; ++axis)
	{
		double wanted = floor(extent[axis] / pitch + 0.5);
		int count = wanted < CELLS_LEAST ? CELLS_LEAST : wanted > CELLS_MOST ? CELLS_MOST : (int)wanted;
		g->cell[axis] = extent[axis] / count;
		int margin = 1 + (int)(MARGIN * least / g->cell[axis]);
		g->size[axis] = count + 2 * margin;
		g->low[axis] = (double)mesh->bounds_min[axis] - margin * g->cell[axis];
		g->solid_low[axis] = margin;
		g->solid_high[axis] = margin + count;
	}
	size_t rows = row_count(g), cells = rows * (size_t)g->size[0];
	g->is_solid = sand_alloc(cells, 1);
	g->cover_counts = sand_alloc(cells, 1);
	g->free_solid = sand_alloc(cells + rows, sizeof(int32_t));
	g->free_void = sand_alloc(cells + rows, sizeof(int32_t));
	if (g->is_solid == NULL || g->cover_counts == NULL || g->free_solid == NULL || g->free_void == NULL)
	{
		return sand_fail_memory(err, cells * (2 + 2 * sizeof(int32_t)), "the cells of a clump");
	}
	f->task_count = sand_block_count((int)rows, 1);
	sand_pool_run(f->pool, solid_task, f, f->task_count);
	bool is_enclosed = false;
	for (int task = 0; task < f->task_count; ++task)
	{
		g->solid_count += f->row_solid[task];
		is_enclosed = is_enclosed || f->is_enclosed[task];
	}
	return is_enclosed || is_cancelled(f) ? SAND_OK : fail_hollow(mesh, err);
}

// ---- places

static void radius_task(void *context, int task)
{
	Fitter *f = context;
	for (int i = sand_part_start(f->place_count, task, f->task_count),
	         end = sand_part_start(f->place_count, task + 1, f->task_count);
	     i < end && !is_cancelled(f); ++i)
	{
		f->places[i].radius = fmax(0, -sand_surface_distance(f->surface, f->places[i].centre));
	}
}

// One place in each of up to PLACE_LIMIT solid cells, evenly many rows and columns apart, somewhere within the cell.
static SandStatus find_places(Fitter *f, SandError *err)
{
	const Grid *g = &f->grid;
	f->places = sand_alloc(PLACE_LIMIT, sizeof(Ball));
	if (f->places == NULL)
	{
		return sand_fail_memory(err, PLACE_LIMIT * sizeof(Ball), "the places of a clump");
	}
	int64_t wanted = g->solid_count < PLACE_LIMIT ? g->solid_count : PLACE_LIMIT, seen = 0;
	for (size_t cell = 0, end = row_count(g) * (size_t)g->size[0]; cell < end; ++cell)
	{
		if (g->is_solid[cell] == 0 || seen++ * wanted / g->solid_count < f->place_count)
		{
			continue;
		}
		size_t width = (size_t)g->size[0], height = (size_t)g->size[1];
		const size_t at[3] = {cell % width, cell / width % height, cell / width / height};
		Ball *place = &f->places[f->place_count++];
		for (int axis = 0; axis < 3; ++axis)
		{
			double within = sand_random(f->desc->seed, 3 * (uint64_t)cell + (uint64_t)axis);
			place->centre[axis] = g->low[axis] + ((double)at[axis] + within) * g->cell[axis];
		}
	}
	f->task_count = sand_block_count(f->place_count, PLACE_BLOCK);
	sand_pool_run(f->pool, radius_task, f, f->task_count);
	return SAND_OK;
}

static void score_task(void *context, int task)
{
	Fitter *f = context;
	f->task_scores[task] = -1;
	for (int i = sand_part_start(f->place_count, task, f->task_count),
	         end = sand_part_start(f->place_count, task + 1, f->task_count);
	     i < end; ++i)
	{
		// The largest holds all that the others do: where even that would not do, they need no look.
		Ball ball = f->places[i];
		ball.radius *= SIZES[0];
		double most = ball.radius > 0 ? overlap_plus(&f->grid, &f->trial, count_cells(&f->grid, &ball).solid, 0) : -1;
		for (int size = 0; size < SIZE_COUNT && most > f->task_scores[task]; ++size)
		{
			ball.radius = f->places[i].radius * SIZES[size];
			double score = overlap_with(&f->grid, &f->trial, &ball);
			if (score > f->task_scores[task])
			{
				f->task_scores[task] = score;
				f->task_balls[task] = ball;
			}
		}
	}
}

// The sphere that raises the overlap most. False when none can be had.
static bool find_ball(Fitter *f, Ball *ball_out)
{
	f->task_count = sand_block_count(f->place_count, PLACE_BLOCK);
	sand_pool_run(f->pool, score_task, f, f->task_count);
	double best = -1;
	for (int task = 0; task < f->task_count; ++task)
	{
		if (f->task_scores[task] > best)
		{
			best = f->task_scores[task];
			*ball_out = f->task_balls[task];
		}
	}
	return best >= 0;
}

// ---- improving

// Moves and sizes a ball that is not in the grid, by steps from `step` (m) down to `step_least`, while that raises the
// overlap. Returns it.
static double improve_ball(const Grid *g, const Trial *trial, Ball *ball, double step, double step_least)
{
	double best = overlap_with(g, trial, ball);
	for (int round = 0; round < MOVE_ROUNDS && step >= step_least; ++round)
	{
		Ball from = *ball;
		bool is_better = false;
		for (int move = 0; move < MOVE_COUNT; ++move)
		{
			Ball to = from;
			double by = move % 2 == 0 ? step : -step;
			if (move < 6)
			{
				to.centre[move / 2] += by;
			}
			else
			{
				to.radius += by;
			}
			double score = to.radius > 0 ? overlap_with(g, trial, &to) : -1;
			if (score > best)
			{
				best = score;
				*ball = to;
				is_better = true;
			}
		}
		step = is_better ? step : 0.5 * step;
	}
	return best;
}

static void add_ball(Fitter *f, const Ball *ball)
{
	f->trial.balls[f->trial.count++] = *ball;
	paint(&f->grid, &f->trial, ball, 1);
}

static double least_step(const Grid *g)
{
	return 0.25 * fmin(g->cell[0], fmin(g->cell[1], g->cell[2]));
}

static void improve_all(Fitter *f, int sweep_count, double step_least)
{
	for (int sweep = 0; sweep < sweep_count && !is_cancelled(f); ++sweep)
	{
		double before = overlap_of(&f->grid, &f->trial);
		for (int i = 0; i < f->trial.count; ++i)
		{
			Ball *ball = &f->trial.balls[i];
			paint(&f->grid, &f->trial, ball, -1);
			improve_ball(&f->grid, &f->trial, ball, 0.125 * ball->radius, step_least);
			paint(&f->grid, &f->trial, ball, 1);
		}
		if (overlap_of(&f->grid, &f->trial) - before < 0.1 * GAIN_LEAST)
		{
			break;
		}
	}
}

// The sphere without which the overlap is largest; *without_out says how large.
static int least_useful(Fitter *f, double *without_out)
{
	int least = 0;
	*without_out = -1;
	for (int i = 0; i < f->trial.count; ++i)
	{
		paint(&f->grid, &f->trial, &f->trial.balls[i], -1);
		double without = overlap_of(&f->grid, &f->trial);
		paint(&f->grid, &f->trial, &f->trial.balls[i], 1);
		if (without > *without_out)
		{
			*without_out = without;
			least = i;
		}
	}
	return least;
}

static void take_out(Fitter *f, int ball)
{
	paint(&f->grid, &f->trial, &f->trial.balls[ball], -1);
	f->trial.balls[ball] = f->trial.balls[--f->trial.count];
}

// Takes out spheres without which the overlap is as large.
static void drop_idle(Fitter *f)
{
	double without;
	for (int idle = least_useful(f, &without);
	     f->trial.count > 1 && overlap_of(&f->grid, &f->trial) - without < GAIN_LEAST; idle = least_useful(f, &without))
	{
		take_out(f, idle);
		improve_all(f, SWEEPS_ADDED, least_step(&f->grid));
	}
}

static void restore(Fitter *f, const Trial *kept)
{
	clear(&f->grid, &f->trial);
	for (int i = 0; i < kept->count; ++i)
	{
		add_ball(f, &kept->balls[i]);
	}
}

// Puts the least useful sphere where it would do most, while that raises the overlap: out of where moving alone gets
// stuck.
static void swap_balls(Fitter *f)
{
	for (int swap = 0, failures = 0; swap < SWAP_LIMIT && failures < SWAP_FAILURES && !is_cancelled(f); ++swap)
	{
		Trial kept = f->trial;
		Ball ball;
		double without;
		take_out(f, failures == 0 ? least_useful(f, &without) : swap % f->trial.count);
		if (find_ball(f, &ball))
		{
			improve_ball(&f->grid, &f->trial, &ball, 0.25 * ball.radius, least_step(&f->grid));
			add_ball(f, &ball);
		}
		improve_all(f, 2 * SWEEPS_ADDED, least_step(&f->grid));
		bool is_better = overlap_of(&f->grid, &f->trial) > overlap_of(&f->grid, &kept);
		failures = is_better ? 0 : failures + 1;
		if (!is_better)
		{
			restore(f, &kept);
		}
	}
}

// ---- beginnings

static void begin_one_by_one(Fitter *f, int count)
{
	clear(&f->grid, &f->trial);
	for (int i = 0; i < count && !is_cancelled(f); ++i)
	{
		Ball ball;
		double before = overlap_of(&f->grid, &f->trial);
		if (!find_ball(f, &ball))
		{
			return;
		}
		double after = improve_ball(&f->grid, &f->trial, &ball, 0.25 * ball.radius, least_step(&f->grid));
		if (after <= before)
		{
			return;
		}
		add_ball(f, &ball);
		improve_all(f, SWEEPS_ADDED, least_step(&f->grid));
	}
}

static double square_between(const double a[3], const double b[3])
{
	double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
	return x * x + y * y + z * z;
}

// The place farthest from the centres so far.
static int farthest_place(const Fitter *f, const Ball *parts, int count)
{
	int farthest = 0;
	double most = -1;
	for (int i = 0; i < f->place_count; ++i)
	{
		double nearest = (double)INFINITY;
		for (int part = 0; part < count; ++part)
		{
			nearest = fmin(nearest, square_between(f->places[i].centre, parts[part].centre));
		}
		if (nearest > most)
		{
			most = nearest;
			farthest = i;
		}
	}
	return farthest;
}

static void begin_in_parts(Fitter *f, int count, int turn)
{
	Ball parts[SAND_CLUMP_LIMIT];
	clear(&f->grid, &f->trial);
	count = count < f->place_count ? count : f->place_count;
	int first = (int)(sand_random(f->desc->seed, UINT64_MAX - (uint64_t)turn) * f->place_count);
	for (int part = 0; part < count; ++part)
	{
		parts[part] = f->places[part == 0 ? first : farthest_place(f, parts, part)];
	}
	int members[SAND_CLUMP_LIMIT];
	for (int round = 0; round < LLOYD_ROUNDS; ++round)
	{
		double sums[SAND_CLUMP_LIMIT][3] = {{0}};
		memset(members, 0, sizeof(members));
		for (int i = 0; i < f->place_count; ++i)
		{
			int nearest = 0;
			for (int part = 1; part < count; ++part)
			{
				nearest = square_between(f->places[i].centre, parts[part].centre) <
				                  square_between(f->places[i].centre, parts[nearest].centre)
				              ? part
				              : nearest;
			}
			++members[nearest];
			for (int axis = 0; axis < 3; ++axis)
			{
				sums[nearest][axis] += f->places[i].centre[axis];
			}
		}
		for (int part = 0; part < count; ++part)
		{
			for (int axis = 0; axis < 3 && members[part] > 0; ++axis)
			{
				parts[part].centre[axis] = sums[part][axis] / members[part];
			}
		}
	}
	const double *cell = f->grid.cell;
	double volume = (double)f->grid.solid_count * cell[0] * cell[1] * cell[2] / f->place_count; // m^3 of a place
	for (int part = 0; part < count; ++part)
	{
		parts[part].radius = cbrt(0.75 / PI * volume * (members[part] > 0 ? members[part] : 1));
		while (overlap_with(&f->grid, &f->trial, &parts[part]) < 0)
		{
			parts[part].radius *= 0.9;
		}
		add_ball(f, &parts[part]);
	}
}

// The best of all beginnings, improved, into f->trial.
static void choose_spheres(Fitter *f, int count)
{
	begin_one_by_one(f, count);
	improve_all(f, SWEEPS_FINAL, least_step(&f->grid));
	Trial best = f->trial;
	int start_count = 1 + PART_STARTS / count < PART_LIMIT ? 1 + PART_STARTS / count : PART_LIMIT;
	for (int start = 0; start < start_count && !is_cancelled(f); ++start)
	{
		begin_in_parts(f, count, start);
		improve_all(f, SWEEPS_FINAL, least_step(&f->grid));
		best = overlap_of(&f->grid, &f->trial) > overlap_of(&f->grid, &best) ? f->trial : best;
	}
	restore(f, &best);
	swap_balls(f);
	drop_idle(f);
	improve_all(f, SWEEPS_FINAL, 0.125 * least_step(&f->grid));
}

// ---- contract

// m^3, exact where the mesh bounds a volume, else by cells.
static double volume_of(const Fitter *f)
{
	const SandMesh *mesh = sand_surface_mesh(f->surface);
	if (sand_surface_is_clean(f->surface) && sand_mesh_require_closed(mesh, NULL) == SAND_OK)
	{
		return fabs(mesh->volume);
	}
	const double *cell = f->grid.cell;
	return (double)f->grid.solid_count * cell[0] * cell[1] * cell[2];
}

static SandStatus finish(Fitter *f, SandClump *clump, SandError *err)
{
	double volume = volume_of(f), factor = 1;
	clump->sphere_count = f->trial.count;
	for (int i = 0; i < f->trial.count; ++i)
	{
		for (int axis = 0; axis < 3; ++axis)
		{
			clump->centres[3 * i + axis] = (float)f->trial.balls[i].centre[axis];
		}
		clump->radii[i] = (float)f->trial.balls[i].radius;
	}
	SandFitDesc desc = {.centres = clump->centres,
	                    .radii = clump->radii,
	                    .sphere_count = clump->sphere_count,
	                    .is_filling = true,
	                    .cancel = f->desc->cancel};
	SandStatus status = sand_fit_radius_factor(&desc, volume, f->pool, &factor, err);
	if (status != SAND_OK)
	{
		return status;
	}
	Trial scaled = f->trial;
	clear(&f->grid, &f->trial);
	for (int i = 0; i < scaled.count; ++i)
	{
		clump->radii[i] = (float)(scaled.balls[i].radius * factor);
		scaled.balls[i].radius = (double)clump->radii[i];
		add_ball(f, &scaled.balls[i]);
	}
	status = sand_fit_measure(f->surface, &desc, f->pool, &clump->fit, err);
	// Cells say which share of the solid is held; volumes of both are known better than cells tell.
	double both = volume * (double)f->trial.held_solid / (double)f->grid.solid_count;
	clump->overlap = both / (volume + clump->fit.sphere_volume - both);
	return status;
}

static SandStatus run(Fitter *f, int count, SandClump *clump, SandError *err)
{
	SandStatus status = grid_build(f, err);
	if (status == SAND_OK)
	{
		status = find_places(f, err);
	}
	if (status == SAND_OK && !is_cancelled(f))
	{
		choose_spheres(f, count);
	}
	if (status == SAND_OK && is_cancelled(f))
	{
		status = sand_fail(err, SAND_CANCELLED, "Finding the spheres of a clump was cancelled");
	}
	return status == SAND_OK ? finish(f, clump, err) : status;
}

SandStatus sand_clump_fit(const SandSurface *surface, const SandClumpDesc *desc, SandPool *pool, SandClump *clump_out,
                          SandError *err)
{
	*clump_out = (SandClump){0};
	int count = desc->sphere_count == 0 ? COUNT_DEFAULT : desc->sphere_count;
	if (count < 2 || count > SAND_CLUMP_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "A clump of %d spheres was asked for, expected 2 to %d, or 0 for %d",
		                 count, SAND_CLUMP_LIMIT, COUNT_DEFAULT);
	}
	Fitter *f = sand_alloc(1, sizeof(*f));
	SandStatus status = f == NULL ? sand_fail_memory(err, sizeof(*f), "a clump") : SAND_OK;
	if (status == SAND_OK)
	{
		f->surface = surface;
		f->desc = desc;
		f->pool = pool;
		status = run(f, count, clump_out, err);
		sand_free(f->grid.is_solid);
		sand_free(f->grid.cover_counts);
		sand_free(f->grid.free_solid);
		sand_free(f->grid.free_void);
		sand_free(f->places);
	}
	sand_free(f);
	if (status != SAND_OK)
	{
		*clump_out = (SandClump){0};
	}
	return status;
}
