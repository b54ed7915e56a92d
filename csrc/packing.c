// packing: grains into the inside of a mesh, at a chosen packing.
// Comes in: SandSurface. Goes out: SandPoints, the grains' centres.
//
// All kinds begin with numbered sites over the box of the mesh: those of a lattice, or one at random in each cell of a
// grid. Boxes of sites are halved until the distance at their middle tells all of them inside or outside, so that most
// places are never measured. A lattice is done then.
//
// Relaxed grains start at the random sites, one to a cell of just the volume that the packing grants a grain: the
// density is right from the start, everywhere, and carries no trace of the grid, since a place uniform in its cell
// leaves nothing periodic behind. Then pairs that overlap and walls that are too near push, each grain moving by all
// pushes at once, with some of its last move added (heavy ball, Polyak 1964), until hardly any overlap is left. Where
// they do not part there is no room for all, and those under the most pressure are taken out; in the end so are the few
// that still overlap. Lengths are radii there, positions relative to the middle of the mesh.
//
// A grain knows how far it may move before the mesh must be asked again, and never moves by more than its distance to
// the mesh between two answers, so it cannot pass through a wall. Where the mesh has a hole no distance tells: there
// the winding number, harmonic off the mesh, bounds how far inside reaches.
#include "packing.h"
#include "sort.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

// Share of space that a close packing of spheres fills, pi / sqrt(18).
#define CLOSE_PACKING 0.74048048969306
#define SPHERE_VOLUME 4.18879020478639 // of radius 1
// Random packings come to a halt at 0.64 (Scott 1960) and crowd so that pushing takes ever longer before.
#define RELAXED_LIMIT 0.60
// Radius in steps of float at the mesh's farthest coordinate, below which rounding would spoil distances.
#define STEPS_PER_RADIUS 16.0
// Places on the surface that a call may have to measure, as a multiple of the point limit: some minutes of work.
#define PLACE_LIMIT (16.0 * SAND_SAMPLER_POINT_LIMIT)
// Places that tell the volume of a mesh with holes or overlaps, for the estimate.
#define PROBE_COUNT 4096
#define PROBE_STREAM (UINT64_C(1) << 62)
// The winding number is known to 0.01; 0.5 is the border.
#define WINDING_ERROR 0.01
// |gradient| of a function harmonic in a ball, times the ball's radius over the function's range: 3 / 2. The winding
// number of a mesh with holes ranges over 1, or 2 where parts overlap.
#define WINDING_SLOPE 3.0
// The deepest place is sought down to cubes of this many radii, with no more than so many at a time.
#define CUBE_END 0.01
#define CUBE_LIMIT 32768
// Boxes of up to this many sites are not halved but measured site by site.
#define SITE_GROUP 8

enum
{
	TASKS_PER_SIDE = 4,
	TASK_COUNT = TASKS_PER_SIDE * TASKS_PER_SIDE * TASKS_PER_SIDE,
	SETTLE_LIMIT = 8,
	PUSH_LIMIT = 10, // a corner takes some three for each wall
	GRAIN_BLOCK = 1024,
	WALL_COUNT = 3,
	NEIGHBOUR_LIMIT = 20,
	MOVE_TRIES = 16 // half of the tries succeed
};

// Of relaxing, in radii where a length. Tuned for the fewest sweeps at 0.60.
// A wall draws grains to itself, the more the denser they are: sites are taken from a depth of 1 - WALL_DRAW * packing
// on, but no less than START_DEPTH. Measured: so the packing far from walls is the one wanted, to 1 %.
#define WALL_DRAW 1.3
#define START_DEPTH 0.28
#define PUSHED_DEPTH 0.9 // where they are moved at least
#define TARGET 1.003f    // radius that pushes aim at: contacts end within the tolerance sooner
#define TOLERANCE 0.01f  // of overlap, in the end
#define STEP 0.4f        // share of an overlap that a grain moves
#define MEMORY 0.9f      // share of the last move that is added
#define MOVE_LIMIT 0.1f  // per sweep
#define SKIN 0.4f        // pairs are listed up to this beyond contact
#define SWEEP_LIMIT 400
#define CROWDED_EVERY 50  // sweeps: where as many grains overlap as before, there are too many
#define GOOD_ENOUGH 10000 // one grain in so many may be taken out
#define ASK_LIMIT 4.0     // distances to the mesh are of interest up to here
#define WALL_REACH 0.5f   // walls up to this beyond contact are remembered
#define SETTLE_MOVE 0.05  // a grain is moved off the mesh by up to this in the end
#define WALL_MOVE 0.05f   // a wall is flat for moves up to this

// ---- what all kinds need --------------------------------------------------------------------------------------------

static double mesh_width(const SandMesh *mesh, int axis)
{
	return (double)mesh->bounds_max[axis] - (double)mesh->bounds_min[axis];
}

typedef struct Packing
{
	const SandSurface *surface;
	const SandMesh *mesh;
	const SandPackingDesc *desc;
	SandPool *pool;
	SandError *err;
	double radius; // m
	double share;  // packing wanted
	double step;   // m, of floats
	bool is_clean; // the mesh is: distances know the inside
	bool is_open;  // the mesh has holes: inside is not bounded by the mesh alone
} Packing;

static bool is_cancelled(const Packing *packing)
{
	const SandCancel *cancel = packing->desc->cancel;
	return cancel != NULL && atomic_load(&cancel->is_raised) != 0;
}

static SandStatus fail_cancelled(const Packing *packing)
{
	return sand_fail(packing->err, SAND_CANCELLED, "Filling mesh '%s' with grains was cancelled",
	                 sand_mesh_shown_name(packing->mesh));
}

// What is known of a place.
typedef struct Depth
{
	double distance; // m, to the mesh
	double safe;     // m: all places nearer than this are inside, or all outside, like this one
	bool is_inside;
} Depth;

// How far from a place the winding number stays on one side of 0.5: its slope is at most WINDING_SLOPE / (distance to
// the mesh), so that it changes by no more than WINDING_SLOPE ln(1 / (1 - t)) within t distances.
static double winding_safe(double winding, double distance)
{
	double change = fmax(0.0, fabs(winding - 0.5) - WINDING_ERROR) / WINDING_SLOPE;
	return distance * change / (1.0 + change); // 1 - exp(-c) is at least c / (1 + c)
}

// Of a place nearer to the mesh than `least` the distance alone is told, since the winding number takes long.
static Depth measure_depth(const Packing *packing, const double place[3], double least)
{
	if (packing->is_clean)
	{
		double distance = sand_surface_distance(packing->surface, place);
		return (Depth){fabs(distance), fabs(distance), distance < 0.0};
	}
	SandNearest nearest = {.distance = 0.0};
	(void)sand_surface_nearest(packing->surface, place, (double)INFINITY, &nearest);
	if (nearest.distance < least)
	{
		return (Depth){nearest.distance, 0.0, false};
	}
	double winding = sand_surface_winding(packing->surface, place);
	double safe = packing->is_open ? winding_safe(winding, nearest.distance) : nearest.distance;
	return (Depth){nearest.distance, safe, winding > 0.5};
}

// ---- sites ----------------------------------------------------------------------------------------------------------

// Numbered along each axis. A lattice is a hexagonal close packing: columns along x, rows along y, layers along z; odd
// layers are shifted by a third of a row and rows of odd (row + layer) by half a column, so that each site has twelve
// neighbours. Else cells, with one site at random in each.
typedef struct Sites
{
	bool is_lattice;
	double base[3]; // m, site 0, 0, 0 or the corner of cell 0, 0, 0
	double step[3]; // m
	int32_t count[3];
	uint64_t seed;
} Sites;

static uint64_t site_number(const Sites *sites, const int32_t at[3])
{
	return ((uint64_t)at[2] * (uint64_t)sites->count[1] + (uint64_t)at[1]) * (uint64_t)sites->count[0] +
	       (uint64_t)at[0];
}

static void site_place(const Sites *sites, const int32_t at[3], double place_out[3])
{
	double shift[3];
	if (sites->is_lattice)
	{
		shift[0] = ((at[1] + at[2]) & 1) != 0 ? 0.5 : 0.0;
		shift[1] = (at[2] & 1) != 0 ? 1.0 / 3.0 : 0.0;
		shift[2] = 0.0;
	}
	else
	{
		uint64_t number = site_number(sites, at);
		for (uint64_t axis = 0; axis < 3; ++axis)
		{
			shift[axis] = sand_random(sites->seed, 3 * number + axis);
		}
	}
	for (int axis = 0; axis < 3; ++axis)
	{
		place_out[axis] = sites->base[axis] + sites->step[axis] * ((double)at[axis] + shift[axis]);
	}
}

// A box of sites: from low up to, not including, high along each axis.
typedef struct Box
{
	int32_t low[3], high[3];
} Box;

// Middle of the places that sites of the box can have; returns how far one can be from it, m.
static double box_middle(const Sites *sites, const Box *box, double middle_out[3])
{
	static const double lattice_shift[3] = {0.5, 1.0 / 3.0, 0.0};
	double square = 0.0;
	for (int axis = 0; axis < 3; ++axis)
	{
		double span = (double)(box->high[axis] - box->low[axis]);
		span += sites->is_lattice ? lattice_shift[axis] - 1.0 : 0.0;
		double half = 0.5 * sites->step[axis] * span;
		middle_out[axis] = sites->base[axis] + sites->step[axis] * (double)box->low[axis] + half;
		square += half * half;
	}
	return sqrt(square);
}

// Close packing widened to the share, centred in the room that the radius leaves. Floats tell positions apart by a
// step: four are granted, so that a box ten radii wide holds five grains in a row. False when there is no room.
static bool place_lattice(const Packing *packing, Sites *sites_out)
{
	double spacing = 2.0 * packing->radius * cbrt(CLOSE_PACKING / packing->share), slack = 4.0 * packing->step;
	static const double shift[3] = {0.5, 1.0 / 3.0, 0.0};
	Sites sites = {.is_lattice = true, .step = {spacing, spacing * sqrt(0.75), spacing * sqrt(2.0 / 3.0)}};
	for (int axis = 0; axis < 3; ++axis)
	{
		double room = mesh_width(packing->mesh, axis) - 2.0 * packing->radius;
		if (room + slack < 0.0)
		{
			return false;
		}
		double whole = floor((room + slack) / sites.step[axis]);
		double span = whole * sites.step[axis], shifted = span + shift[axis] * sites.step[axis];
		span = shifted <= room + slack ? shifted : span;
		sites.base[axis] = (double)packing->mesh->bounds_min[axis] + packing->radius + 0.5 * (room - span);
		sites.count[axis] = (int32_t)whole + 1;
	}
	*sites_out = sites;
	return true;
}

// Cells of the volume that the share grants a grain, at random places over the box of the mesh.
static bool place_cells(const Packing *packing, Sites *sites_out)
{
	double step = 2.0 * packing->radius * cbrt(SPHERE_VOLUME / 8.0 / packing->share);
	Sites sites = {.step = {step, step, step}, .seed = packing->desc->seed};
	for (int axis = 0; axis < 3; ++axis)
	{
		double width = mesh_width(packing->mesh, axis);
		if (width + 4.0 * packing->step < 2.0 * packing->radius)
		{
			return false;
		}
		sites.count[axis] = (int32_t)(width / step) + 2;
		double over = step * (double)sites.count[axis] - width;
		double shift = sand_random(sites.seed, PROBE_STREAM + (uint64_t)axis);
		sites.base[axis] = (double)packing->mesh->bounds_min[axis] - shift * over;
	}
	*sites_out = sites;
	return true;
}

// ---- sites inside ---------------------------------------------------------------------------------------------------

typedef struct Place
{
	float xyz[3];
	float depth; // m, distance to the mesh or less
} Place;

// Sites of one task that are inside, in a growing array.
typedef struct Found
{
	Place *places;
	size_t count, capacity;
	bool is_short; // of memory
} Found;

typedef struct Search
{
	const Packing *packing;
	Sites sites;
	double threshold; // m, least distance to the mesh
	double move;      // m, longest random move of a site
	Found found[TASK_COUNT];
} Search;

static void found_add(Found *found, const Place *place)
{
	if (found->count == found->capacity)
	{
		size_t capacity = found->capacity == 0 ? 1024 : 2 * found->capacity;
		Place *places = sand_alloc(capacity, sizeof(*places));
		if (places == NULL)
		{
			found->is_short = true;
			return;
		}
		if (found->count > 0)
		{
			memcpy(places, found->places, found->count * sizeof(*places));
		}
		sand_free(found->places);
		found->places = places;
		found->capacity = capacity;
	}
	found->places[found->count++] = *place;
}

// Uniform in a ball of radius `move`, less where the mesh is near: the first of some places in a cube that is in it.
static void move_site(const Search *search, const int32_t at[3], const Depth *depth, float xyz[3])
{
	const Packing *packing = search->packing;
	double room = fmin(search->move, depth->distance - packing->radius - 2.0 * packing->step);
	double move[3] = {0.0, 0.0, 0.0}, square = 2.0;
	uint64_t number = MOVE_TRIES * 3 * site_number(&search->sites, at);
	for (uint64_t try = 0; try < MOVE_TRIES && square > 1.0; ++try)
	{
		square = 0.0;
		for (uint64_t axis = 0; axis < 3; ++axis)
		{
			move[axis] = 2.0 * sand_random(packing->desc->seed, number + 3 * try + axis) - 1.0;
			square += move[axis] * move[axis];
		}
	}
	if (room <= 0.0 || square > 1.0)
	{
		return;
	}
	float moved[3];
	double place[3];
	for (int axis = 0; axis < 3; ++axis)
	{
		moved[axis] = (float)((double)xyz[axis] + room * move[axis]);
		place[axis] = (double)moved[axis];
	}
	if (room + 2.0 * packing->step < depth->safe || sand_surface_winding(packing->surface, place) > 0.5)
	{
		memcpy(xyz, moved, sizeof(moved));
	}
}

// Moves a site that is too near to the mesh inwards, away from the nearest of the mesh each time, by less than the
// distance: so it passes no wall. False when that leads nowhere, as in a spike too narrow for a grain.
static bool push_site(const Packing *packing, double place[3], double *distance)
{
	for (int push = 0; push < PUSH_LIMIT && *distance < packing->radius; ++push)
	{
		SandNearest nearest;
		if (!sand_surface_nearest(packing->surface, place, packing->radius, &nearest))
		{
			*distance = packing->radius;
			return true;
		}
		*distance = nearest.distance;
		double share = nearest.distance > 0.0 ? fmin(0.9, packing->radius / nearest.distance - 1.0) : 0.0;
		for (int axis = 0; axis < 3; ++axis)
		{
			place[axis] += share * (place[axis] - nearest.point[axis]);
		}
	}
	return *distance >= PUSHED_DEPTH * packing->radius;
}

// Judges the place that floats can hold. `known` is what a box around it told: NULL when nothing.
static void take_site(const Search *search, const int32_t at[3], const Depth *known, Found *found)
{
	double place[3];
	float xyz[3];
	site_place(&search->sites, at, place);
	for (int axis = 0; axis < 3; ++axis)
	{
		xyz[axis] = (float)place[axis];
		place[axis] = (double)xyz[axis];
	}
	Depth depth = known != NULL ? *known : measure_depth(search->packing, place, search->threshold);
	if (!depth.is_inside || depth.distance < search->threshold)
	{
		return;
	}
	if (search->move > 0.0)
	{
		move_site(search, at, &depth, xyz);
	}
	if (depth.distance < search->packing->radius && !search->sites.is_lattice)
	{
		if (!push_site(search->packing, place, &depth.distance))
		{
			return;
		}
		for (int axis = 0; axis < 3; ++axis)
		{
			xyz[axis] = (float)place[axis];
		}
	}
	found_add(found, &(Place){{xyz[0], xyz[1], xyz[2]}, (float)depth.distance});
}

static void take_box(const Search *search, const Box *box, const Depth *known, Found *found)
{
	int32_t at[3];
	for (at[2] = box->low[2]; at[2] < box->high[2]; ++at[2])
	{
		for (at[1] = box->low[1]; at[1] < box->high[1]; ++at[1])
		{
			for (at[0] = box->low[0]; at[0] < box->high[0] && !found->is_short; ++at[0])
			{
				take_site(search, at, known, found);
			}
		}
	}
}

// Part `part` of a box cut in `cut` along each axis; false when there is nothing in it.
static bool box_part(const Box *box, int cut, int part, Box *part_out)
{
	bool is_any = true;
	for (int axis = 0; axis < 3; ++axis)
	{
		int span = box->high[axis] - box->low[axis], at = part % cut;
		part /= cut;
		part_out->low[axis] = box->low[axis] + sand_part_start(span, at, cut);
		part_out->high[axis] = box->low[axis] + sand_part_start(span, at + 1, cut);
		is_any = is_any && part_out->low[axis] < part_out->high[axis];
	}
	return is_any;
}

static void search_box(const Search *search, const Box *box, Found *found)
{
	const Packing *packing = search->packing;
	if (found->is_short || is_cancelled(packing))
	{
		return;
	}
	int64_t site_count = 1;
	for (int axis = 0; axis < 3; ++axis)
	{
		site_count *= box->high[axis] - box->low[axis];
	}
	if (site_count <= SITE_GROUP)
	{
		take_box(search, box, NULL, found);
		return;
	}
	double middle[3], reach = box_middle(&search->sites, box, middle) + 2.0 * packing->step;
	Depth depth = measure_depth(packing, middle, search->threshold - reach);
	if (depth.distance + reach < search->threshold || (depth.safe > reach && !depth.is_inside))
	{
		return; // all too near to the mesh, or all outside
	}
	// What holds at every site of the box.
	Depth known = {depth.distance - reach, depth.safe - reach, depth.is_inside};
	if (known.safe > search->move && known.distance > fmax(search->threshold, packing->radius + search->move))
	{
		take_box(search, box, &known, found);
		return;
	}
	Box part;
	for (int i = 0; i < 8; ++i)
	{
		if (box_part(box, 2, i, &part))
		{
			search_box(search, &part, found);
		}
	}
}

static void search_task(void *context, int task)
{
	Search *search = context;
	Box box = {{0, 0, 0}, {search->sites.count[0], search->sites.count[1], search->sites.count[2]}}, part;
	if (box_part(&box, TASKS_PER_SIDE, task, &part))
	{
		search_box(search, &part, &search->found[task]);
	}
}

static void search_free(Search *search)
{
	for (int task = 0; task < TASK_COUNT; ++task)
	{
		sand_free(search->found[task].places);
		search->found[task] = (Found){0};
	}
}

// Finds the sites inside, on all threads.
static SandStatus search_run(Search *search, int *count_out)
{
	const Packing *packing = search->packing;
	sand_pool_run(packing->pool, search_task, search, TASK_COUNT);
	if (is_cancelled(packing))
	{
		return fail_cancelled(packing);
	}
	size_t count = 0, bytes = 0;
	bool is_short = false;
	for (int task = 0; task < TASK_COUNT; ++task)
	{
		const Found *found = &search->found[task];
		count += found->count;
		bytes += 2 * found->capacity * sizeof(Place);
		is_short = is_short || found->is_short;
	}
	if (is_short)
	{
		return sand_fail_memory(packing->err, bytes, "the grains in a mesh");
	}
	if (count > SAND_SAMPLER_POINT_LIMIT)
	{
		return sand_fail(packing->err, SAND_ERROR_ARGUMENT,
		                 "Mesh '%s' holds %zu grains of radius %g m, more than the limit of %d; use larger grains or a "
		                 "smaller mesh",
		                 sand_mesh_shown_name(packing->mesh), count, packing->radius, SAND_SAMPLER_POINT_LIMIT);
	}
	*count_out = (int)count;
	return SAND_OK;
}

// No points when no site is deep enough.
static SandStatus fill_lattice(const Packing *packing, SandPoints *points_out)
{
	Search search = {.packing = packing, .threshold = packing->radius - 3.0 * packing->step};
	if (!place_lattice(packing, &search.sites))
	{
		return SAND_OK;
	}
	if (packing->desc->kind == SAND_PACKING_JITTERED)
	{
		search.move = fmax(0.0, 0.5 * search.sites.step[0] - packing->radius);
	}
	int count = 0;
	float *xyz = NULL;
	SandStatus status = search_run(&search, &count);
	if (status == SAND_OK && count > 0 && (xyz = sand_alloc((size_t)count, 3 * sizeof(*xyz))) == NULL)
	{
		status = sand_fail_memory(packing->err, (size_t)count * 3 * sizeof(*xyz), "the grains in a mesh");
	}
	if (status == SAND_OK && count > 0)
	{
		*points_out = (SandPoints){.xyz = xyz, .count = count};
		for (int task = 0; task < TASK_COUNT; ++task)
		{
			const Found *found = &search.found[task];
			for (size_t i = 0; i < found->count; ++i, xyz += 3)
			{
				memcpy(xyz, found->places[i].xyz, 3 * sizeof(*xyz));
			}
		}
	}
	search_free(&search);
	return status;
}

// ---- grains that push -----------------------------------------------------------------------------------------------

// A piece of mesh near a grain, taken as flat: n . x - offset is the grain's distance.
typedef struct Wall
{
	float normal[3]; // unit, towards the grain; zero when there is none
	float offset;
} Wall;

// Where a grain may be without asking for the winding number.
typedef struct Ball
{
	float middle[3], radius;
} Ball;

// Position beside the index, in the order of the cells, so that the search streams.
typedef struct Entry
{
	float x[3];
	int32_t grain;
} Entry;

// Results of a block of grains in one pass.
typedef struct Tally
{
	int bad_count;     // grains with an overlap beyond the tolerance
	float move_square; // the farthest from where the pairs were listed
} Tally;

typedef struct Relax
{
	const Packing *packing;
	double middle[3]; // m, where positions are 0
	int count, block_count;
	float (*x)[3], (*next)[3], (*move)[3], (*listed)[3]; // listed: where the grain was when the pairs were listed
	float *room;                                         // it may move by before the mesh is asked again
	Ball *balls;                                         // known to be inside; NULL when the mesh has no holes
	Wall (*walls)[WALL_COUNT];
	int32_t *neighbours; // NEIGHBOUR_LIMIT per grain
	uint8_t *neighbour_counts;
	float *pressures; // sum of the overlaps of a grain, 0 when none is beyond the tolerance
	uint8_t *is_out;  // to be taken out
	Tally tallies[SAND_BLOCK_LIMIT];
	// Cells of the pairs' search:
	SandSorter *sorter;
	const uint64_t *sorted;
	Entry *entries;
	int32_t *starts; // cell count + 1
	float cell_base[3], cells_per_length;
	int cell_count[3], cell_total;
	float reach; // pairs nearer than this are listed
} Relax;

static int block_start(const Relax *relax, int block)
{
	return sand_part_start(relax->count, block, relax->block_count);
}

static float square_of(const float v[3])
{
	return v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
}

static float dot(const float a[3], const float b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static float larger(float a, float b)
{
	return a > b ? a : b;
}

static float smaller(float a, float b)
{
	return a < b ? a : b;
}

static void relax_free(Relax *relax)
{
	sand_sorter_destroy(relax->sorter);
	sand_free(relax->starts);
	sand_free(relax->entries);
	sand_free(relax->is_out);
	sand_free(relax->pressures);
	sand_free(relax->neighbour_counts);
	sand_free(relax->neighbours);
	sand_free(relax->walls);
	sand_free(relax->balls);
	sand_free(relax->room);
	sand_free(relax->listed);
	sand_free(relax->move);
	sand_free(relax->next);
	sand_free(relax->x);
}

// Cells as wide as the widest reach, wider where the mesh is large and nearly empty: no more than four to a grain.
static void plan_cells(Relax *relax)
{
	const Packing *packing = relax->packing;
	double width = 2.0 * (double)TARGET + (double)SKIN, limit = 64.0 + 4.0 * (double)relax->count, total;
	for (;; width *= 1.25)
	{
		total = 1.0;
		for (int axis = 0; axis < 3; ++axis)
		{
			total *= floor(mesh_width(packing->mesh, axis) / packing->radius / width) + 1.0;
		}
		if (total <= limit)
		{
			break;
		}
	}
	relax->cells_per_length = (float)(1.0 / width);
	relax->cell_total = (int)total;
	for (int axis = 0; axis < 3; ++axis)
	{
		double extent = mesh_width(packing->mesh, axis) / packing->radius;
		relax->cell_base[axis] = (float)(-0.5 * extent);
		relax->cell_count[axis] = (int)floor(extent / width) + 1;
	}
}

static SandStatus relax_create(Relax *relax, const Packing *packing, int count)
{
	*relax = (Relax){.packing = packing, .count = count, .block_count = sand_block_count(count, GRAIN_BLOCK)};
	for (int axis = 0; axis < 3; ++axis)
	{
		relax->middle[axis] = 0.5 * ((double)packing->mesh->bounds_min[axis] + (double)packing->mesh->bounds_max[axis]);
	}
	plan_cells(relax);
	size_t n = (size_t)count;
	relax->x = sand_alloc(n, sizeof(*relax->x));
	relax->next = sand_alloc(n, sizeof(*relax->next));
	relax->move = sand_alloc(n, sizeof(*relax->move));
	relax->listed = sand_alloc(n, sizeof(*relax->listed));
	relax->room = sand_alloc(n, sizeof(*relax->room));
	relax->balls = packing->is_open ? sand_alloc(n, sizeof(*relax->balls)) : NULL;
	relax->walls = sand_alloc(n, sizeof(*relax->walls));
	relax->neighbours = sand_alloc(n, NEIGHBOUR_LIMIT * sizeof(*relax->neighbours));
	relax->neighbour_counts = sand_alloc(n, sizeof(*relax->neighbour_counts));
	relax->pressures = sand_alloc(n, sizeof(*relax->pressures));
	relax->is_out = sand_alloc(n, sizeof(*relax->is_out));
	relax->entries = sand_alloc(n, sizeof(*relax->entries));
	relax->starts = sand_alloc((size_t)relax->cell_total + 1, sizeof(*relax->starts));
	SandStatus status = sand_sorter_create(count, &relax->sorter, packing->err);
	if (status == SAND_OK &&
	    (relax->x == NULL || relax->next == NULL || relax->move == NULL || relax->listed == NULL ||
	     relax->room == NULL || (packing->is_open && relax->balls == NULL) || relax->walls == NULL ||
	     relax->neighbours == NULL || relax->neighbour_counts == NULL || relax->pressures == NULL ||
	     relax->is_out == NULL || relax->entries == NULL || relax->starts == NULL))
	{
		size_t grain_bytes = 4 * sizeof(*relax->x) + sizeof(*relax->room) + sizeof(*relax->balls) +
		                     sizeof(*relax->walls) + NEIGHBOUR_LIMIT * sizeof(*relax->neighbours) + 1 +
		                     sizeof(*relax->entries);
		status = sand_fail_memory(packing->err, n * grain_bytes + (size_t)relax->cell_total * sizeof(*relax->starts),
		                          "relaxing the grains in a mesh");
	}
	return status;
}

// ---- pairs ----------------------------------------------------------------------------------------------------------

static int cell_along(const Relax *relax, int axis, float coordinate)
{
	float cell = (coordinate - relax->cell_base[axis]) * relax->cells_per_length;
	int last = relax->cell_count[axis] - 1;
	return cell <= 0.0f ? 0 : cell >= (float)last ? last : (int)cell;
}

static void key_task(void *context, int block)
{
	const Relax *relax = context;
	uint64_t *records = sand_sorter_records(relax->sorter);
	for (int i = block_start(relax, block); i < block_start(relax, block + 1); ++i)
	{
		int key = 0;
		for (int axis = 2; axis >= 0; --axis)
		{
			key = key * relax->cell_count[axis] + cell_along(relax, axis, relax->x[i][axis]);
		}
		records[i] = (uint64_t)key << 32 | (uint32_t)i;
	}
}

// Entries in the order of the cells, and where each cell starts: a block writes the starts of the cells after that of
// the entry before its first, up to that of its last.
static void cell_task(void *context, int block)
{
	Relax *relax = context;
	int first = block_start(relax, block), end = block_start(relax, block + 1);
	int cell = first == 0 ? 0 : (int)(relax->sorted[first - 1] >> 32) + 1;
	for (int i = first; i < end; ++i)
	{
		int grain = (int)(uint32_t)relax->sorted[i];
		memcpy(relax->entries[i].x, relax->x[grain], sizeof(relax->entries[i].x));
		relax->entries[i].grain = grain;
		for (int here = (int)(relax->sorted[i] >> 32); cell <= here; ++cell)
		{
			relax->starts[cell] = i;
		}
	}
	for (; end == relax->count && cell <= relax->cell_total; ++cell)
	{
		relax->starts[cell] = end;
	}
}

// The pairs of a grain with the run of cells from x - 1 to x + 1 in one row. Neighbours beyond the limit are left out:
// grains that crowd so move apart and are listed anew.
static int list_row(const Relax *relax, int grain, const int cells[3], int count)
{
	int row = (cells[2] * relax->cell_count[1] + cells[1]) * relax->cell_count[0];
	int low = cells[0] > 0 ? cells[0] - 1 : 0;
	int high = cells[0] + 1 < relax->cell_count[0] ? cells[0] + 1 : cells[0];
	const float *x = relax->x[grain];
	int32_t *neighbours = relax->neighbours + (size_t)grain * NEIGHBOUR_LIMIT;
	float reach_square = relax->reach * relax->reach;
	for (int i = relax->starts[row + low]; i < relax->starts[row + high + 1]; ++i)
	{
		const Entry *entry = &relax->entries[i];
		const float apart[3] = {entry->x[0] - x[0], entry->x[1] - x[1], entry->x[2] - x[2]};
		// Written always, counted when it is one: no branch to guess. The last slot is never counted.
		neighbours[count] = entry->grain;
		count += (square_of(apart) < reach_square) & (entry->grain != grain) & (count < NEIGHBOUR_LIMIT - 1);
	}
	return count;
}

static void list_task(void *context, int block)
{
	Relax *relax = context;
	for (int i = block_start(relax, block); i < block_start(relax, block + 1); ++i)
	{
		int at[3], count = 0;
		for (int axis = 0; axis < 3; ++axis)
		{
			at[axis] = cell_along(relax, axis, relax->x[i][axis]);
			relax->listed[i][axis] = relax->x[i][axis];
		}
		for (int row = 0; row < 9; ++row)
		{
			const int cells[3] = {at[0], at[1] + row % 3 - 1, at[2] + row / 3 - 1};
			if (cells[1] >= 0 && cells[1] < relax->cell_count[1] && cells[2] >= 0 && cells[2] < relax->cell_count[2])
			{
				count = list_row(relax, i, cells, count);
			}
		}
		relax->neighbour_counts[i] = (uint8_t)count;
	}
}

// Lists the pairs nearer than reach, in an order that depends on the grains alone.
static void list_pairs(Relax *relax, float reach)
{
	SandPool *pool = relax->packing->pool;
	int key_bits = 1;
	while (key_bits < 31 && relax->cell_total >> key_bits != 0)
	{
		++key_bits;
	}
	relax->reach = reach;
	sand_pool_run(pool, key_task, relax, relax->block_count);
	relax->sorted = sand_sort(relax->sorter, relax->count, key_bits, pool);
	sand_pool_run(pool, cell_task, relax, relax->block_count);
	sand_pool_run(pool, list_task, relax, relax->block_count);
}

// ---- walls ----------------------------------------------------------------------------------------------------------

static void absolute_place(const Relax *relax, const float x[3], double place_out[3])
{
	for (int axis = 0; axis < 3; ++axis)
	{
		place_out[axis] = relax->middle[axis] + (double)x[axis] * relax->packing->radius;
	}
}

// Remembers the wall in place of one that faces the same way, else of the one remembered longest; forgets those that
// have become far.
static void remember_wall(Wall walls[WALL_COUNT], const Wall *wall, const float x[3])
{
	int slot = WALL_COUNT - 1;
	for (int i = WALL_COUNT - 1; i >= 0; --i)
	{
		if (dot(walls[i].normal, x) - walls[i].offset > 1.0f + WALL_REACH)
		{
			walls[i] = (Wall){0};
		}
		if (dot(walls[i].normal, wall->normal) > 0.9f || square_of(walls[i].normal) < 0.5f)
		{
			slot = i;
		}
	}
	memmove(&walls[1], &walls[0], (size_t)slot * sizeof(walls[0]));
	walls[0] = *wall;
}

// Asks the mesh. Returns the distance, and sets the room and the walls.
static float ask_mesh(Relax *relax, int grain)
{
	const Packing *packing = relax->packing;
	Wall *walls = relax->walls[grain];
	double place[3];
	absolute_place(relax, relax->x[grain], place);
	SandNearest nearest;
	bool is_near = sand_surface_nearest(packing->surface, place, ASK_LIMIT * packing->radius, &nearest);
	float distance = is_near ? (float)(nearest.distance / packing->radius) : (float)ASK_LIMIT;
	if (distance >= 1.0f + WALL_REACH)
	{
		memset(walls, 0, WALL_COUNT * sizeof(*walls));
		relax->room[grain] = distance - 1.0f;
		return distance;
	}
	Wall wall = {.offset = 0.0f};
	for (int axis = 0; axis < 3; ++axis)
	{
		double away = nearest.distance > 1e-3 * packing->radius ? (place[axis] - nearest.point[axis]) / nearest.distance
		                                                        : -nearest.normal[axis];
		wall.normal[axis] = (float)away;
		wall.offset += (float)(away * (nearest.point[axis] - relax->middle[axis]) / packing->radius);
	}
	remember_wall(walls, &wall, relax->x[grain]);
	relax->room[grain] = smaller(larger(distance - 1.0f, WALL_MOVE), 0.9f * distance);
	return distance;
}

// Whether a move leads out of the ball that is known to be inside a mesh with holes.
static bool is_move_doubtful(const Relax *relax, int grain)
{
	if (!relax->packing->is_open)
	{
		return false;
	}
	const Ball *ball = &relax->balls[grain];
	float away[3];
	for (int axis = 0; axis < 3; ++axis)
	{
		away[axis] = relax->x[grain][axis] + relax->move[grain][axis] - ball->middle[axis];
	}
	return square_of(away) > ball->radius * ball->radius;
}

// Whether a place in a mesh with holes is inside, by the winding number; a ball is known to be inside then.
static bool ask_winding(Relax *relax, int grain, const float x[3], float distance)
{
	double place[3];
	absolute_place(relax, x, place);
	double winding = sand_surface_winding(relax->packing->surface, place);
	if (winding <= 0.5)
	{
		return false;
	}
	Ball *ball = &relax->balls[grain];
	memcpy(ball->middle, x, sizeof(ball->middle));
	ball->radius = (float)winding_safe(winding, (double)distance);
	return true;
}

// Shortens a move of the given length, where it must be, so that it stays inside the mesh.
static void keep_inside(Relax *relax, int grain, float length)
{
	float *move = relax->move[grain];
	const float *x = relax->x[grain];
	bool is_doubtful = is_move_doubtful(relax, grain);
	if (length > relax->room[grain] || is_doubtful)
	{
		float distance = ask_mesh(relax, grain), share = length > 0.9f * distance ? 0.9f * distance / length : 1.0f;
		const float next[3] = {x[0] + share * move[0], x[1] + share * move[1], x[2] + share * move[2]};
		length *= share;
		if (is_doubtful && !ask_winding(relax, grain, next, distance - length))
		{
			share = length = 0.0f;
		}
		for (int axis = 0; axis < 3; ++axis)
		{
			move[axis] *= share;
		}
	}
	relax->room[grain] -= length;
}

// ---- pushing --------------------------------------------------------------------------------------------------------

// Sums the pushes on a grain into push. Returns the sum of its overlaps, 0 when none is beyond the tolerance.
static float sum_pushes(const Relax *relax, int grain, float push[3])
{
	const float *x = relax->x[grain];
	const int32_t *neighbours = relax->neighbours + (size_t)grain * NEIGHBOUR_LIMIT;
	float worst = 0.0f, pressure = 0.0f;
	push[0] = push[1] = push[2] = 0.0f;
	for (int k = 0; k < relax->neighbour_counts[grain]; ++k)
	{
		const float *y = relax->x[neighbours[k]];
		const float apart[3] = {x[0] - y[0], x[1] - y[1], x[2] - y[2]};
		// The tiny addend is for two in one place: they do not push each other, and others part them.
		float distance = sqrtf(square_of(apart) + 1e-12f), overlap = larger(0.0f, 2.0f * TARGET - distance);
		float factor = overlap / distance;
		push[0] += factor * apart[0];
		push[1] += factor * apart[1];
		push[2] += factor * apart[2];
		pressure += overlap;
		worst = larger(worst, overlap - 2.0f * (TARGET - 1.0f));
	}
	for (int i = 0; i < WALL_COUNT; ++i)
	{
		const Wall *wall = &relax->walls[grain][i];
		float overlap = TARGET - (dot(wall->normal, x) - wall->offset);
		if (overlap > 0.0f && square_of(wall->normal) > 0.5f)
		{
			push[0] += overlap * wall->normal[0];
			push[1] += overlap * wall->normal[1];
			push[2] += overlap * wall->normal[2];
			pressure += overlap;
			worst = larger(worst, overlap - (TARGET - 1.0f));
		}
	}
	return worst > 0.9f * TOLERANCE ? pressure : 0.0f;
}

static void sweep_task(void *context, int block)
{
	Relax *relax = context;
	Tally tally = {0};
	if (is_cancelled(relax->packing))
	{
		return;
	}
	for (int i = block_start(relax, block); i < block_start(relax, block + 1); ++i)
	{
		float push[3], *move = relax->move[i];
		relax->pressures[i] = sum_pushes(relax, i, push);
		tally.bad_count += relax->pressures[i] > 0.0f;
		for (int axis = 0; axis < 3; ++axis)
		{
			move[axis] = MEMORY * move[axis] + STEP * push[axis];
		}
		float length = sqrtf(square_of(move));
		if (length > MOVE_LIMIT)
		{
			float share = MOVE_LIMIT / length;
			move[0] *= share;
			move[1] *= share;
			move[2] *= share;
			length = MOVE_LIMIT;
		}
		keep_inside(relax, i, length);
		float moved[3];
		for (int axis = 0; axis < 3; ++axis)
		{
			relax->next[i][axis] = relax->x[i][axis] + move[axis];
			moved[axis] = relax->next[i][axis] - relax->listed[i][axis];
		}
		tally.move_square = larger(tally.move_square, square_of(moved));
	}
	relax->tallies[block] = tally;
}

// Marks the grains that are under more pressure than all they touch.
static void mark_task(void *context, int block)
{
	Relax *relax = context;
	for (int i = block_start(relax, block); i < block_start(relax, block + 1); ++i)
	{
		const int32_t *neighbours = relax->neighbours + (size_t)i * NEIGHBOUR_LIMIT;
		float pressure = relax->pressures[i];
		bool is_out = pressure > 0.0f;
		for (int k = 0; k < relax->neighbour_counts[i] && is_out; ++k)
		{
			int other = neighbours[k];
			is_out = pressure > relax->pressures[other] || (pressure == relax->pressures[other] && i < other);
		}
		relax->is_out[i] = is_out;
	}
}

// Takes the marked grains out, keeping the order of the others.
static void take_out(Relax *relax)
{
	int kept_count = 0;
	for (int i = 0; i < relax->count; ++i)
	{
		if (relax->is_out[i])
		{
			continue;
		}
		memcpy(relax->x[kept_count], relax->x[i], sizeof(relax->x[i]));
		memcpy(relax->move[kept_count], relax->move[i], sizeof(relax->move[i]));
		memcpy(relax->walls[kept_count], relax->walls[i], sizeof(relax->walls[i]));
		relax->room[kept_count] = relax->room[i];
		if (relax->balls != NULL)
		{
			relax->balls[kept_count] = relax->balls[i];
		}
		++kept_count;
	}
	relax->count = kept_count;
	relax->block_count = sand_block_count(kept_count, GRAIN_BLOCK);
}

static SandStatus relax_run(Relax *relax)
{
	int bad_before = 0;
	list_pairs(relax, 2.0f * TARGET + SKIN);
	for (int sweep = 0; sweep < SWEEP_LIMIT; ++sweep)
	{
		if (is_cancelled(relax->packing))
		{
			return fail_cancelled(relax->packing);
		}
		sand_pool_run(relax->packing->pool, sweep_task, relax, relax->block_count);
		Tally sum = {0};
		for (int block = 0; block < relax->block_count; ++block)
		{
			sum.bad_count += relax->tallies[block].bad_count;
			sum.move_square = larger(sum.move_square, relax->tallies[block].move_square);
		}
		if (sum.bad_count <= relax->count / GOOD_ENOUGH)
		{
			return SAND_OK;
		}
		float(*swap)[3] = relax->x;
		relax->x = relax->next;
		relax->next = swap;
		bool is_crowded = false;
		if (sweep % CROWDED_EVERY == 0)
		{
			is_crowded = sweep > CROWDED_EVERY && 2 * sum.bad_count > bad_before;
			bad_before = sum.bad_count;
		}
		if (is_crowded)
		{
			sand_pool_run(relax->packing->pool, mark_task, relax, relax->block_count);
			take_out(relax);
		}
		if (is_crowded || sum.move_square > 0.25f * SKIN * SKIN)
		{
			list_pairs(relax, 2.0f * TARGET + SKIN);
		}
	}
	return SAND_OK;
}

// ---- the end of relaxing --------------------------------------------------------------------------------------------

typedef struct Finish
{
	Relax *relax;
	float (*xyz)[3]; // m, as they leave
} Finish;

// Rounds a position to the floats it leaves with, and moves it off the mesh where that takes little. False when it is
// not inside, or too near to the mesh.
static bool settle(const Relax *relax, int grain, float xyz[3])
{
	const Packing *packing = relax->packing;
	double place[3];
	absolute_place(relax, relax->x[grain], place);
	for (int attempt = 0; attempt < SETTLE_LIMIT; ++attempt)
	{
		for (int axis = 0; axis < 3; ++axis)
		{
			xyz[axis] = (float)place[axis];
			place[axis] = (double)xyz[axis];
		}
		SandNearest nearest;
		if (!sand_surface_nearest(packing->surface, place, packing->radius - 2.0 * packing->step, &nearest))
		{
			return !packing->is_open || sand_surface_winding(packing->surface, place) > 0.5;
		}
		double more = packing->radius * (1.0 + 1e-4) - nearest.distance;
		if (more > SETTLE_MOVE * packing->radius)
		{
			return false;
		}
		for (int axis = 0; axis < 3; ++axis)
		{
			place[axis] += more * (place[axis] - nearest.point[axis]) / nearest.distance;
		}
	}
	return false;
}

static void finish_task(void *context, int block)
{
	Finish *finish = context;
	Relax *relax = finish->relax;
	const Packing *packing = relax->packing;
	if (is_cancelled(packing))
	{
		return;
	}
	for (int i = block_start(relax, block); i < block_start(relax, block + 1); ++i)
	{
		relax->is_out[i] = !settle(relax, i, finish->xyz[i]);
		for (int axis = 0; axis < 3; ++axis)
		{
			relax->x[i][axis] = (float)(((double)finish->xyz[i][axis] - relax->middle[axis]) / packing->radius);
		}
	}
}

// Takes grains out, in order, that overlap one that stays.
static void drop_overlaps(Relax *relax)
{
	list_pairs(relax, 2.0f - 0.99f * TOLERANCE); // less a hundredth: positions are rounded
	for (int i = 0; i < relax->count; ++i)
	{
		const int32_t *neighbours = relax->neighbours + (size_t)i * NEIGHBOUR_LIMIT;
		int count = relax->neighbour_counts[i];
		bool is_out = relax->is_out[i] != 0 || count == NEIGHBOUR_LIMIT - 1;
		for (int k = 0; k < count && !is_out; ++k)
		{
			is_out = neighbours[k] < i && relax->is_out[neighbours[k]] == 0;
		}
		relax->is_out[i] = is_out;
	}
}

static SandStatus relax_finish(Relax *relax, SandPoints *points_out)
{
	const Packing *packing = relax->packing;
	size_t n = (size_t)relax->count;
	Finish finish = {.relax = relax, .xyz = sand_alloc(n, 3 * sizeof(float))};
	SandStatus status = SAND_OK;
	if (finish.xyz == NULL)
	{
		return sand_fail_memory(packing->err, n * 3 * sizeof(float), "the grains in a mesh");
	}
	sand_pool_run(packing->pool, finish_task, &finish, relax->block_count);
	if (is_cancelled(packing))
	{
		status = fail_cancelled(packing);
		goto done;
	}
	drop_overlaps(relax);
	int kept_count = 0;
	for (int i = 0; i < relax->count; ++i)
	{
		if (!relax->is_out[i])
		{
			memcpy(finish.xyz[kept_count++], finish.xyz[i], sizeof(finish.xyz[i]));
		}
	}
	if (kept_count > 0)
	{
		*points_out = (SandPoints){.xyz = (float *)finish.xyz, .count = kept_count};
		finish.xyz = NULL;
	}
done:
	sand_free(finish.xyz);
	return status;
}

static void place_grains(Relax *relax, const Search *search)
{
	const Packing *packing = relax->packing;
	int grain = 0;
	for (int task = 0; task < TASK_COUNT; ++task)
	{
		const Found *found = &search->found[task];
		for (size_t i = 0; i < found->count; ++i, ++grain)
		{
			const Place *place = &found->places[i];
			for (int axis = 0; axis < 3; ++axis)
			{
				double away = (double)place->xyz[axis] - relax->middle[axis];
				relax->x[grain][axis] = (float)(away / packing->radius);
			}
			relax->room[grain] = larger(0.0f, (float)((double)place->depth / packing->radius) - 1.0f);
		}
	}
}

// No points when no site is deep enough, or no grain found its place.
static SandStatus fill_relaxed(const Packing *packing, SandPoints *points_out)
{
	Search search = {.packing = packing};
	search.threshold = fmax(START_DEPTH, 1.0 - WALL_DRAW * packing->share) * packing->radius;
	if (!place_cells(packing, &search.sites))
	{
		return SAND_OK;
	}
	int count = 0;
	Relax relax = {0};
	SandStatus status = search_run(&search, &count);
	if (status != SAND_OK || count == 0)
	{
		search_free(&search);
		return status;
	}
	status = relax_create(&relax, packing, count);
	if (status == SAND_OK)
	{
		place_grains(&relax, &search);
	}
	search_free(&search);
	if (status == SAND_OK)
	{
		status = relax_run(&relax);
	}
	if (status == SAND_OK)
	{
		status = relax_finish(&relax, points_out);
	}
	relax_free(&relax);
	return status;
}

// ---- one grain ------------------------------------------------------------------------------------------------------

// Where no site fits a grain may still: the deepest place is sought by halving cubes, all those left of one size
// before any of the next, leaving out those that cannot hold a deeper one.

typedef struct Cube
{
	double middle[3]; // m
} Cube;

typedef struct Deepest
{
	float xyz[3]; // m
	double depth; // m; 0 when nothing inside was found
} Deepest;

// Measures a cube. False when it need not be halved.
static bool measure_cube(const Packing *packing, const Cube *cube, double half, Deepest *deepest)
{
	double place[3], reach = half * sqrt(3.0) + 2.0 * packing->step;
	float xyz[3];
	for (int axis = 0; axis < 3; ++axis)
	{
		xyz[axis] = (float)cube->middle[axis];
		place[axis] = (double)xyz[axis];
	}
	Depth depth = measure_depth(packing, place, 0.0);
	if (depth.is_inside && depth.distance > deepest->depth)
	{
		deepest->depth = depth.distance;
		memcpy(deepest->xyz, xyz, sizeof(xyz));
	}
	// A hundredth deeper is not worth halving for.
	bool is_hopeless = depth.distance + reach < fmax(1.01 * deepest->depth, packing->radius - 3.0 * packing->step);
	return !is_hopeless && !(depth.safe > reach && !depth.is_inside);
}

// Halves the cubes once; returns how many are left.
static int halve_cubes(const Packing *packing, const Cube *cubes, int count, double half, Cube *halves,
                       Deepest *deepest)
{
	int left = 0;
	for (int i = 0; i < 8 * count && left < CUBE_LIMIT; ++i)
	{
		Cube *cube = &halves[left];
		for (int axis = 0; axis < 3; ++axis)
		{
			cube->middle[axis] = cubes[i / 8].middle[axis] + ((i >> axis & 1) != 0 ? half : -half);
		}
		left += measure_cube(packing, cube, half, deepest);
	}
	return left;
}

static SandStatus find_deepest(const Packing *packing, Deepest *deepest_out)
{
	const SandMesh *mesh = packing->mesh;
	*deepest_out = (Deepest){0};
	Cube *cubes = sand_alloc(CUBE_LIMIT, sizeof(*cubes)), *halves = sand_alloc(CUBE_LIMIT, sizeof(*halves));
	SandStatus status = SAND_OK;
	if (cubes == NULL || halves == NULL)
	{
		status = sand_fail_memory(packing->err, 2 * CUBE_LIMIT * sizeof(*cubes), "the deepest place of a mesh");
		goto done;
	}
	double half = 0.0;
	for (int axis = 0; axis < 3; ++axis)
	{
		half = fmax(half, 0.5 * mesh_width(mesh, axis));
		cubes[0].middle[axis] = 0.5 * ((double)mesh->bounds_min[axis] + (double)mesh->bounds_max[axis]);
	}
	int count = measure_cube(packing, &cubes[0], half, deepest_out);
	while (count > 0 && deepest_out->depth < packing->radius - 3.0 * packing->step && half > CUBE_END * packing->radius)
	{
		if (is_cancelled(packing))
		{
			status = fail_cancelled(packing);
			goto done;
		}
		half *= 0.5;
		count = halve_cubes(packing, cubes, count, half, halves, deepest_out);
		Cube *swap = cubes;
		cubes = halves;
		halves = swap;
	}
done:
	sand_free(halves);
	sand_free(cubes);
	return status;
}

// The one grain where it fits best; else the sentence that none does.
static SandStatus fill_one(const Packing *packing, SandPoints *points_out)
{
	const SandMesh *mesh = packing->mesh;
	Deepest deepest;
	SandStatus status = find_deepest(packing, &deepest);
	if (status != SAND_OK)
	{
		return status;
	}
	if (deepest.depth == 0.0)
	{
		return sand_fail(packing->err, SAND_ERROR_MESH,
		                 "Mesh '%s' of %g x %g x %g m, with %d open edges, has no inside where a grain of radius %g m "
		                 "could be; close its holes, give it thickness or use smaller grains",
		                 sand_mesh_shown_name(mesh), mesh_width(mesh, 0), mesh_width(mesh, 1), mesh_width(mesh, 2),
		                 mesh->open_edge_count, packing->radius);
	}
	if (deepest.depth < packing->radius - 3.0 * packing->step)
	{
		return sand_fail(
		    packing->err, SAND_ERROR_MESH,
		    "No grain of radius %g m fits into mesh '%s' of %g x %g x %g m, whose deepest place is about %g "
		    "m from its surface; use smaller grains or a larger mesh",
		    packing->radius, sand_mesh_shown_name(mesh), mesh_width(mesh, 0), mesh_width(mesh, 1), mesh_width(mesh, 2),
		    deepest.depth);
	}
	float *xyz = sand_alloc(3, sizeof(*xyz));
	if (xyz == NULL)
	{
		return sand_fail_memory(packing->err, 3 * sizeof(*xyz), "the grains in a mesh");
	}
	memcpy(xyz, deepest.xyz, sizeof(deepest.xyz));
	*points_out = (SandPoints){.xyz = xyz, .count = 1};
	return SAND_OK;
}

// ---- the call -------------------------------------------------------------------------------------------------------

// m^3. Exact for a clean mesh; else the share of places inside, of some spread at random over the box of the mesh.
static double estimate_volume(const Packing *packing)
{
	const SandMesh *mesh = packing->mesh;
	if (packing->is_clean)
	{
		return fabs(mesh->volume);
	}
	int inside_count = 0;
	for (uint64_t i = 0; i < PROBE_COUNT; ++i)
	{
		double place[3];
		for (uint64_t axis = 0; axis < 3; ++axis)
		{
			place[axis] = (double)mesh->bounds_min[axis] +
			              mesh_width(mesh, (int)axis) * sand_random(packing->desc->seed, PROBE_STREAM + 3 * i + axis);
		}
		inside_count += sand_surface_is_inside(packing->surface, place);
	}
	return mesh_width(mesh, 0) * mesh_width(mesh, 1) * mesh_width(mesh, 2) * inside_count / PROBE_COUNT;
}

static SandStatus check_numbers(const SandPackingDesc *desc, SandError *err)
{
	static const struct
	{
		const char *name;
		double limit;
	} kinds[SAND_PACKING_COUNT] = {
	    {"hexagonal", CLOSE_PACKING}, {"jittered", CLOSE_PACKING}, {"relaxed", RELAXED_LIMIT}};
	if ((unsigned)desc->kind >= SAND_PACKING_COUNT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Packing kind is %d; it must be 0 (hexagonal), 1 (jittered) or 2 (relaxed)", (int)desc->kind);
	}
	double radius = (double)desc->radius, share = (double)desc->packing;
	if (!isfinite(radius) || radius <= 0.0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Grain radius is %g m; it must be a length above 0 m", radius);
	}
	// Half a step of float is granted: 0.6 as a float is a little more.
	if (!(share >= 0.0 && share <= kinds[desc->kind].limit * (1.0 + 0x1p-23)))
	{
		return sand_fail(
		    err, SAND_ERROR_ARGUMENT,
		    "Packing is %g; grains placed %s can fill more than 0 and at most %.2f of the volume, or give 0 "
		    "for the usual packing",
		    share, kinds[desc->kind].name, kinds[desc->kind].limit);
	}
	return SAND_OK;
}

static SandStatus check_sizes(const Packing *packing)
{
	const SandMesh *mesh = packing->mesh;
	double radius = packing->radius;
	double estimate = packing->share * estimate_volume(packing) / (SPHERE_VOLUME * radius * radius * radius);
	if (estimate > (double)SAND_SAMPLER_POINT_LIMIT)
	{
		return sand_fail(
		    packing->err, SAND_ERROR_ARGUMENT,
		    "Mesh '%s' needs about %.3g grains of radius %g m, more than the limit of %d; use larger grains "
		    "or a smaller mesh",
		    sand_mesh_shown_name(mesh), estimate, radius, SAND_SAMPLER_POINT_LIMIT);
	}
	if (radius < STEPS_PER_RADIUS * packing->step)
	{
		return sand_fail(
		    packing->err, SAND_ERROR_ARGUMENT,
		    "Mesh '%s' reaches so far from the origin that positions come in steps of %g m, too coarse for "
		    "grains of radius %g m; move it nearer to the origin or use a radius of at least %g m",
		    sand_mesh_shown_name(mesh), packing->step, radius, STEPS_PER_RADIUS * packing->step);
	}
	double places = mesh->area / (4.0 * radius * radius);
	if (places > PLACE_LIMIT)
	{
		return sand_fail(
		    packing->err, SAND_ERROR_ARGUMENT,
		    "Mesh '%s' has an area of %g m^2, %.3g times that of a grain of radius %g m, more than the limit "
		    "of %.3g; use larger grains or a smaller mesh",
		    sand_mesh_shown_name(mesh), mesh->area, places, radius, PLACE_LIMIT);
	}
	return SAND_OK;
}

SandStatus sand_packing_fill(const SandSurface *surface, const SandPackingDesc *desc, SandPool *pool,
                             SandPoints *points_out, SandError *err)
{
	static const double usual[SAND_PACKING_COUNT] = {0.74, 0.55, 0.55};
	assert(surface != NULL && desc != NULL && points_out != NULL);
	*points_out = (SandPoints){0};
	SandStatus status = check_numbers(desc, err);
	if (status != SAND_OK)
	{
		return status;
	}
	const SandMesh *mesh = sand_surface_mesh(surface);
	Packing packing = {.surface = surface, .mesh = mesh, .desc = desc, .pool = pool, .err = err};
	packing.radius = (double)desc->radius;
	packing.share = desc->packing > 0.0f ? fmin((double)desc->packing, CLOSE_PACKING) : usual[desc->kind];
	packing.step = sand_mesh_float_step(mesh);
	packing.is_clean = sand_surface_is_clean(surface);
	packing.is_open = !mesh->is_closed;
	status = check_sizes(&packing);
	if (status != SAND_OK)
	{
		return status;
	}
	status =
	    desc->kind == SAND_PACKING_RELAXED ? fill_relaxed(&packing, points_out) : fill_lattice(&packing, points_out);
	if (status == SAND_OK && points_out->count == 0)
	{
		status = fill_one(&packing, points_out);
	}
	return status;
}
