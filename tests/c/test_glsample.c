// Tests of the sampler on a device against the processor's: distances, fields, relaxation. The software device computes
// floats and doubles as C does, so everything is compared bit for bit there.
#include "field.h"
#include "glfield.h"
#include "glsurface.h"
#include "layout.h"
#include "rows.h"
#include "shapes.h"
#include "spread.h"

// ---- help

static SandGpu *device_with(SandGpuFaults *faults, SandStatus *status_out, SandError *err)
{
	SandGpu *gpu = NULL;
	*status_out = sand_gpu_create(&(SandGpuDesc){.refuses_hardware = true, .faults = faults}, &gpu, err);
	return gpu;
}

static SandGpu *software_device(void)
{
	SandError err = {0};
	SandStatus status;
	SandGpu *gpu = device_with(NULL, &status, &err);
	CHECK_STATUS(status, SAND_OK, &err);
	return gpu;
}

// Nothing is left on the device, and no GL error that nobody answered for.
static void check_clean(SandGpu *gpu)
{
	SandGpuCounts counts = sand_gpu_counts(gpu);
	CHECK_INT(counts.buffers, 0);
	CHECK_INT(counts.textures, 0);
	CHECK_INT(counts.programs, 0);
	CHECK_INT(counts.fences, 0);
	CHECK_INT(counts.reads, 0);
	CHECK_INT(sand_gpu_error_count(gpu), 0);
}

enum
{
	SHAPES = 16
};

// Smooth and sharp, thin, needled, open, one-sided, inside out, overlapping itself, flat, far from the origin.
static const char *make_shape(int number, TestShape *shape)
{
	const float low[3] = {-1, -1, -1}, high[3] = {1, 1, 1}, low_2[3] = {-0.3F, -0.2F, -1.4F},
	            high_2[3] = {0.5F, 0.9F, 1.3F};
	switch (number)
	{
	case 0:
		test_shape_box(shape, low, high, false);
		return "Cube";
	case 1:
		test_shape_box(shape, low, high, true);
		return "Inside out";
	case 2:
		test_shape_grid_box(shape, low, high, 6);
		return "Grid";
	case 3:
		test_shape_torus(shape, 1, 0.4, 40, 20);
		return "Torus";
	case 4:
		test_shape_plate(shape, 2, 0.01, 8);
		return "Plate";
	case 5:
		test_shape_trefoil(shape, 2, 0.18, 100, 12);
		return "Knot";
	case 6:
		test_shape_trefoil(shape, 2, 0.3, 100, 12);
		return "Knot through itself";
	case 7:
		test_shape_needle_star(shape, 0.3, 1, 2);
		return "Star";
	case 8:
		test_shape_bumpy(shape, 1, 48, 24);
		return "Head";
	case 9:
		test_shape_bottle(shape, 1, 3, 32);
		return "Bottle";
	case 10:
		test_shape_moebius(shape, 1, 0.5, 40);
		return "Moebius";
	case 11:
		test_shape_box(shape, low, high, false);
		test_shape_box(shape, low_2, high_2, false);
		return "Two boxes in each other";
	case 12:
		test_shape_open_cylinder(shape, 0.7F, 2, 24);
		return "Open cylinder";
	case 13:
		test_shape_torus(shape, 1, 0.4, 30, 12);
		test_shape_move(shape, 1000, -2000, 500);
		return "Far torus";
	case 14:
		// Faces without area: on a line, and at one place.
		test_shape_box(shape, low, high, false);
		test_shape_vertex(shape, 0, 0, 1.2);
		test_shape_vertex(shape, 0, 0, 1.4);
		test_shape_vertex(shape, 0, 0, 1.5);
		test_shape_triangle(shape, 8, 9, 10);
		test_shape_triangle(shape, 9, 9, 9);
		return "Needle faces";
	default:
		test_shape_icosphere(shape, 1, 0);
		test_shape_vertex(shape, 3, 3, 3);
		test_shape_vertex(shape, 3, 3, 3);
		test_shape_vertex(shape, 3.2, 3, 3);
		test_shape_triangle(shape, shape->vertex_count - 3, shape->vertex_count - 2, shape->vertex_count - 1);
		return "Sphere and a hair";
	}
}

typedef struct Thing
{
	SandMesh *mesh;
	SandSurface *surface;
	double size; // m, longest side
} Thing;

static Thing thing_of(int number)
{
	TestShape shape = {0};
	SandError err = {0};
	Thing thing = {0};
	const char *name = make_shape(number, &shape);
	thing.mesh = test_shape_mesh(&shape, name);
	test_shape_free(&shape);
	CHECK_STATUS(sand_surface_create(thing.mesh, NULL, &thing.surface, &err), SAND_OK, &err);
	for (int k = 0; k < 3; ++k)
	{
		thing.size = fmax(thing.size, (double)thing.mesh->bounds_max[k] - (double)thing.mesh->bounds_min[k]);
	}
	return thing;
}

static void free_thing(Thing *thing)
{
	sand_surface_destroy(thing->surface);
	sand_mesh_destroy(thing->mesh);
}

// ---- distances of places

enum
{
	PLACES = 1500
};

// Anywhere around, on the mesh's vertices, on its faces, and a hair beside them.
static void make_places(const Thing *thing, float *places)
{
	const SandMesh *mesh = thing->mesh;
	for (size_t i = 0; i < PLACES; ++i)
	{
		int triangle = (int)(sand_random(5, 8 * i) * mesh->triangle_count);
		double f = sand_random(5, 8 * i + 1), g = (1 - f) * sand_random(5, 8 * i + 2);
		f = i % 4 == 1 ? 0 : f;
		g = i % 4 == 1 && i % 8 == 1 ? 0 : g;
		for (size_t k = 0; k < 3; ++k)
		{
			const int32_t *t = mesh->triangles + 3 * (size_t)triangle;
			double a = (double)mesh->vertices[3 * (size_t)t[0] + k], b = (double)mesh->vertices[3 * (size_t)t[1] + k],
			       c = (double)mesh->vertices[3 * (size_t)t[2] + k];
			double low = (double)mesh->bounds_min[k], high = (double)mesh->bounds_max[k];
			double anywhere = low + (1.4 * sand_random(5, 8 * i + 3 + k) - 0.2) * (high - low);
			double on = a + f * (b - a) + g * (c - a),
			       hair = 1e-3 * thing->size * (sand_random(5, 8 * i + 3 + k) - 0.5);
			places[3 * i + k] = (float)(i % 4 == 0 ? anywhere : i % 4 == 3 ? on + hair : on);
		}
	}
	// Farther than floats can be squared.
	places[0] = 3e19F;
	places[4] = -1e30F;
}

static int count_other_distances(SandGpu *gpu, const Thing *thing, const float *places, double doubt)
{
	static double found[PLACES];
	SandError err = {0};
	SandGlDistanceDesc desc = {.places = places, .place_count = PLACES, .doubt = doubt};
	CHECK_STATUS(sand_glsurface_distances(gpu, thing->surface, &desc, NULL, found, &err), SAND_OK, &err);
	int different = 0;
	for (size_t i = 0; i < PLACES; ++i)
	{
		const float *p = places + 3 * i;
		double wanted =
		    sand_surface_distance(thing->surface, (const double[3]){(double)p[0], (double)p[1], (double)p[2]});
		bool is_same = memcmp(&wanted, &found[i], sizeof(wanted)) == 0;
		if (!is_same && different++ == 0)
		{
			printf("%s at %a %a %a: %a m here, %a m on the device\n", sand_mesh_name(thing->mesh), (double)p[0],
			       (double)p[1], (double)p[2], wanted, found[i]);
		}
	}
	return different;
}

static void distances_are_the_processors(void)
{
	static float places[3 * PLACES];
	SandGpu *gpu = software_device();
	for (int number = 0; number < SHAPES; ++number)
	{
		Thing thing = thing_of(number);
		make_places(&thing, places);
		CHECK_INT(count_other_distances(gpu, &thing, places, 0), 0);
		free_thing(&thing);
	}
	check_clean(gpu);
	sand_gpu_destroy(gpu);
}

static void places_that_the_device_doubts_are_asked_again(void)
{
	static float places[3 * PLACES];
	SandGpu *gpu = software_device();
	Thing thing = thing_of(11);
	CHECK(!sand_surface_is_clean(thing.surface));
	make_places(&thing, places);
	CHECK_INT(count_other_distances(gpu, &thing, places, 100), 0);
	free_thing(&thing);
	sand_gpu_destroy(gpu);
}

// ---- fields

typedef struct Difference
{
	int64_t nodes, values, signs, presence;
	double worst; // m
} Difference;

// Every node of the two grids.
static Difference compare_fields(const SandField *a, const SandField *b)
{
	SandFieldInfo info = sand_field_info(a), other = sand_field_info(b);
	Difference d = {0};
	CHECK_INT(info.brick_count, other.brick_count);
	CHECK_INT(info.byte_count, other.byte_count);
	CHECK(memcmp(info.origin, other.origin, sizeof(info.origin)) == 0 &&
	      memcmp(info.size, other.size, sizeof(info.size)) == 0);
	for (int32_t z = 0; z < info.size[2]; ++z)
	{
		for (int32_t y = 0; y < info.size[1]; ++y)
		{
			for (int32_t x = 0; x < info.size[0]; ++x)
			{
				float u = 0, v = 0;
				bool is_in = sand_field_node(a, x, y, z, &u), is_in_too = sand_field_node(b, x, y, z, &v);
				d.nodes += is_in;
				d.presence += is_in != is_in_too;
				d.signs += is_in && is_in_too && signbit(u) != signbit(v);
				d.values += is_in && is_in_too && memcmp(&u, &v, sizeof(u)) != 0;
				d.worst = fmax(d.worst, is_in && is_in_too ? fabs((double)u - (double)v) : 0);
			}
		}
	}
	return d;
}

static SandField *field_of(const Thing *thing, double voxel, float band, SandGpu *gpu, SandPool *pool)
{
	SandError err = {0};
	SandField *field = NULL;
	SandFieldDesc desc = {.voxel = (float)voxel, .band = band, .gpu = gpu};
	CHECK_STATUS(sand_field_create(thing->surface, &desc, pool, &field, &err), SAND_OK, &err);
	return field;
}

static void check_field(const Thing *thing, double voxel, float band, SandGpu *gpu)
{
	SandField *here = field_of(thing, voxel, band, NULL, NULL), *there = field_of(thing, voxel, band, gpu, NULL);
	if (here != NULL && there != NULL)
	{
		Difference d = compare_fields(here, there);
		if (d.values + d.presence > 0)
		{
			printf(
			    "%s, voxel %g m: of %lld nodes %lld are other values, %lld other signs, %lld not in both; at most %g m "
			    "apart\n",
			    sand_mesh_name(thing->mesh), voxel, (long long)d.nodes, (long long)d.values, (long long)d.signs,
			    (long long)d.presence, d.worst);
		}
		CHECK(d.nodes > 200);
		CHECK_INT(d.presence, 0);
		CHECK_INT(d.signs, 0);
		CHECK_INT(d.values, 0);
	}
	sand_field_destroy(here);
	sand_field_destroy(there);
}

static void fields_are_the_processors(void)
{
	SandGpu *gpu = software_device();
	for (int number = 0; number < SHAPES; ++number)
	{
		Thing thing = thing_of(number);
		check_field(&thing, thing.size / 31, 0, gpu);
		free_thing(&thing);
	}
	check_clean(gpu);
	sand_gpu_destroy(gpu);
}

static void wide_bands_and_coarse_voxels_are_the_processors(void)
{
	SandGpu *gpu = software_device();
	Thing star = thing_of(7), knot = thing_of(6);
	check_field(&star, star.size / 12, (float)star.size, gpu);
	check_field(&knot, knot.size / 6, 0, gpu);
	check_field(&knot, knot.size / 20, (float)(0.3 * knot.size), gpu);
	free_thing(&star);
	free_thing(&knot);
	sand_gpu_destroy(gpu);
}

// ---- relaxation

static SandPoints points_of(const Thing *thing, double spacing, double offset, uint64_t seed, SandGpu *gpu)
{
	SandError err = {0};
	SandPoints points = {0};
	SandSpreadDesc desc = {.spacing = (float)spacing, .offset = (float)offset, .seed = seed, .gpu = gpu};
	CHECK_STATUS(sand_spread_points(thing->surface, &desc, NULL, &points, &err), SAND_OK, &err);
	return points;
}

static void check_spread(const Thing *thing, double spacing, double offset, uint64_t seed, SandGpu *gpu)
{
	SandPoints here = points_of(thing, spacing, offset, seed, NULL),
	           there = points_of(thing, spacing, offset, seed, gpu);
	CHECK(here.count > 50);
	CHECK_INT(there.count, here.count);
	int differing = 0;
	for (int i = 0; i < 3 * here.count && here.count == there.count; ++i)
	{
		if (memcmp(&here.xyz[i], &there.xyz[i], sizeof(float)) != 0 && differing++ == 0)
		{
			printf("%s, spacing %g m, offset %g m: point %d is at %a here and at %a on the device\n",
			       sand_mesh_name(thing->mesh), spacing, offset, i / 3, (double)here.xyz[i], (double)there.xyz[i]);
		}
	}
	CHECK_INT(differing, 0);
	sand_points_free(&here);
	sand_points_free(&there);
}

static void relaxed_points_are_the_processors(void)
{
	SandGpu *gpu = software_device();
	for (int number = 0; number < SHAPES; ++number)
	{
		Thing thing = thing_of(number);
		double spacing = sqrt(0.9 * thing.mesh->area / 700);
		check_spread(&thing, spacing, 0, (uint64_t)number, gpu);
		free_thing(&thing);
	}
	check_clean(gpu);
	sand_gpu_destroy(gpu);
}

static void points_at_an_offset_are_the_processors(void)
{
	static const int numbers[] = {0, 3, 5, 7, 11};
	SandGpu *gpu = software_device();
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i)
	{
		Thing thing = thing_of(numbers[i]);
		double spacing = sqrt(0.9 * thing.mesh->area / 400);
		check_spread(&thing, spacing, i % 2 == 0 ? -0.3 * spacing : 0.4 * spacing, 3, gpu);
		free_thing(&thing);
	}
	check_clean(gpu);
	sand_gpu_destroy(gpu);
}

// ---- passes one by one, against their twins on seeded inputs

enum
{
	RECORDS = 600,
	NODES = SAND_BRICK_NODES
};

typedef struct Twins
{
	const Thing *thing;
	SandGlWork work;
	SandGlField grid;
	uint32_t records[RECORDS][2], bricks[RECORDS + 1][2];
	float squares[RECORDS * NODES], heights[RECORDS * NODES];
	int32_t codes[RECORDS * NODES];
	uint32_t asked[2 + RECORDS * NODES];
	uint32_t keys[RECORDS][2];
} Twins;

static const SandGlPass twin_passes[] = {
    {"71_views.comp", NULL},
    {"72_distances.comp", NULL},
    {"73_signs.comp", NULL},
};

static SandStatus views_job(SandGpu *gpu, void *user, SandError *err)
{
	Twins *t = user;
	SandGlWork *work = &t->work;
	SandStatus status = sand_glwork_open(work, twin_passes, 2, false, err);
	status = status == SAND_OK ? sand_glsurface_load(work, t->thing->surface, 0, 0, NULL, err) : status;
	status =
	    status == SAND_OK ? sand_glwork_fill(work, SAND_BIND_FIELD, &t->grid, sizeof(t->grid), "grid", err) : status;
	status = status == SAND_OK
	             ? sand_glwork_fill(work, SAND_BIND_FIELD_RECORDS, t->records, sizeof(t->records), "records", err)
	             : status;
	status = status == SAND_OK
	             ? sand_glwork_fill(work, SAND_BIND_FIELD_BRICKS, t->bricks, sizeof(t->bricks), "bricks", err)
	             : status;
	status = status == SAND_OK ? sand_glwork_reserve(work, SAND_BIND_FIELD_VIEWS, 144 * RECORDS, "views", err) : status;
	status = status == SAND_OK
	             ? sand_glwork_fill(work, SAND_BIND_FIELD_SQUARES, t->squares, sizeof(t->squares), "squares", err)
	             : status;
	status = status == SAND_OK
	             ? sand_glwork_fill(work, SAND_BIND_FIELD_HEIGHTS, t->heights, sizeof(t->heights), "heights", err)
	             : status;
	if (status == SAND_OK)
	{
		sand_gpu_barrier(gpu);
		sand_glwork_run(work, 0, RECORDS, (const uint32_t[1]){RECORDS}, 1);
		sand_glwork_run(work, 1, RECORDS * NODES, (const uint32_t[4]){0, RECORDS, RECORDS, 0}, 4);
		status = sand_glwork_download(work, SAND_BIND_FIELD_SQUARES, 0, t->squares, sizeof(t->squares), err);
	}
	status = status == SAND_OK
	             ? sand_glwork_download(work, SAND_BIND_FIELD_HEIGHTS, 0, t->heights, sizeof(t->heights), err)
	             : status;
	sand_glwork_close(work);
	return status;
}

// Any triangles: small and large beside the bricks, of two corners at one place, on a line, at one place.
static SandMesh *seeded_triangles(void)
{
	TestShape shape = {0};
	for (uint64_t i = 0; i < RECORDS; ++i)
	{
		double corners[3][3], size = i % 4 == 0 ? 500 : i % 4 == 1 ? 2 : 12;
		for (int k = 0; k < 9; ++k)
		{
			corners[k / 3][k % 3] = 20 + size * (sand_random(31, 9 * i + (uint64_t)k) - 0.5);
		}
		for (int k = 0; k < 3; ++k)
		{
			corners[1][k] = i % 5 == 1 ? corners[0][k] : corners[1][k];
			corners[2][k] = i % 5 == 2 ? 0.25 * corners[0][k] + 0.75 * corners[1][k] : corners[2][k];
			corners[2][k] = i % 10 == 1 ? corners[0][k] : corners[2][k];
		}
		int first = shape.vertex_count;
		for (int k = 0; k < 3; ++k)
		{
			test_shape_vertex(&shape, corners[k][0], corners[k][1], corners[k][2]);
		}
		test_shape_triangle(&shape, first, first + 1, first + 2);
	}
	SandMesh *mesh = test_shape_mesh(&shape, "Triangles");
	test_shape_free(&shape);
	return mesh;
}

static void views_and_distances_are_those_of_rows(void)
{
	SandError err = {0};
	SandGpu *gpu = software_device();
	Thing thing = {.mesh = seeded_triangles()};
	Twins *t = sand_alloc(1, sizeof(*t));
	CHECK_STATUS(sand_surface_create(thing.mesh, NULL, &thing.surface, &err), SAND_OK, &err);
	*t = (Twins){.thing = &thing, .work = {.gpu = gpu}};
	const double origin[3] = {-0.3, 0.1, 0.7};
	const float band = 2.5F;
	t->grid = (SandGlField){.inverse_voxel = 1 / 0.9, .reach = (double)band, .band = band, .bricks = {6, 6, 6}};
	memcpy(t->grid.origin, origin, sizeof(origin));
	for (uint32_t i = 0; i < RECORDS; ++i)
	{
		uint32_t at[3] = {2 + (uint32_t)(2 * sand_random(32, 3 * i)), 2 + (uint32_t)(2 * sand_random(32, 3 * i + 1)),
		                  2 + (uint32_t)(2 * sand_random(32, 3 * i + 2))};
		t->records[i][0] = i;
		t->records[i][1] = (6 * at[2] + at[1]) * 6 + at[0];
		t->bricks[i][0] = i;
		t->bricks[i][1] = t->records[i][1];
		for (int node = 0; node < NODES; ++node)
		{
			t->squares[NODES * i + (uint32_t)node] = INFINITY;
		}
	}
	t->bricks[RECORDS][0] = RECORDS;
	CHECK_STATUS(sand_gpu_run(gpu, views_job, t, &err), SAND_OK, &err);
	int other_squares = 0, other_heights = 0;
	int64_t taken = 0;
	for (uint32_t i = 0; i < RECORDS; ++i)
	{
		static SandRowsBrick brick;
		double corners[3][3];
		uint32_t key = t->records[i][1];
		const uint32_t at[3] = {key % 6, key / 6 % 6, key / 36};
		for (int k = 0; k < 9; ++k)
		{
			double v = (double)thing.mesh->vertices[9 * i + (uint32_t)k];
			corners[k / 3][k % 3] = (v - origin[k % 3]) * t->grid.inverse_voxel - (8 * (double)at[k % 3] + 3.5);
		}
		for (int node = 0; node < NODES; ++node)
		{
			brick.square[node] = INFINITY;
			brick.height[node] = 0;
		}
		sand_rows_find(NULL)->take(&brick, (const double(*)[3])corners, band);
		for (int node = 0; node < NODES; ++node)
		{
			size_t n = NODES * (size_t)i + (size_t)node;
			// Farther than the band a triangle may be passed over or not.
			bool is_near = brick.square[node] <= band * band || t->squares[n] <= band * band;
			other_squares += is_near && memcmp(&brick.square[node], &t->squares[n], sizeof(float)) != 0;
			other_heights += is_near && memcmp(&brick.height[node], &t->heights[n], sizeof(float)) != 0;
			taken += is_near;
		}
	}
	CHECK(taken > 10000);
	CHECK_INT(other_squares, 0);
	CHECK_INT(other_heights, 0);
	sand_free(t);
	check_clean(gpu);
	sand_gpu_destroy(gpu);
	free_thing(&thing);
}

static SandStatus signs_job(SandGpu *gpu, void *user, SandError *err)
{
	Twins *t = user;
	SandGlWork *work = &t->work;
	SandStatus status = sand_glwork_open(work, twin_passes + 2, 1, false, err);
	status =
	    status == SAND_OK ? sand_glwork_fill(work, SAND_BIND_FIELD, &t->grid, sizeof(t->grid), "grid", err) : status;
	status = status == SAND_OK
	             ? sand_glwork_fill(work, SAND_BIND_FIELD_SQUARES, t->squares, sizeof(t->squares), "squares", err)
	             : status;
	status = status == SAND_OK
	             ? sand_glwork_fill(work, SAND_BIND_FIELD_HEIGHTS, t->heights, sizeof(t->heights), "heights", err)
	             : status;
	status =
	    status == SAND_OK ? sand_glwork_reserve(work, SAND_BIND_FIELD_CODES, sizeof(t->codes), "codes", err) : status;
	status =
	    status == SAND_OK ? sand_glwork_reserve(work, SAND_BIND_FIELD_ASKED, sizeof(t->asked), "asked", err) : status;
	if (status == SAND_OK)
	{
		sand_gpu_barrier(gpu);
		sand_glwork_run(work, 0, 64 * RECORDS, (const uint32_t[1]){RECORDS}, 1);
		status = sand_glwork_download(work, SAND_BIND_FIELD_CODES, 0, t->codes, sizeof(t->codes), err);
	}
	status = status == SAND_OK ? sand_glwork_download(work, SAND_BIND_FIELD_ASKED, 0, t->asked, sizeof(t->asked), err)
	                           : status;
	sand_glwork_close(work);
	return status;
}

// The walk of csrc/field.c over a brick, one node after the other. codes as the pass writes them.
static void walk_brick(const float *squares, const float *heights, float band, bool is_clean, int32_t codes[NODES])
{
	float distance[NODES];
	int sign[NODES], source[NODES], stack[NODES];
	for (int n = 0; n < NODES; ++n)
	{
		distance[n] = sqrtf(squares[n]) < band ? sqrtf(squares[n]) : band;
		int side = heights[n] > 0 ? SAND_SIDE_OUT : heights[n] < 0 ? SAND_SIDE_IN : 0;
		sign[n] = !is_clean ? 0 : distance[n] < band ? side : -1;
		source[n] = -1;
	}
	static const int steps[26][3] = {{1, 0, 0},   {-1, 0, 0},  {0, 1, 0},  {0, -1, 0},  {0, 0, 1},  {0, 0, -1},
	                                 {1, 1, 0},   {1, -1, 0},  {-1, 1, 0}, {-1, -1, 0}, {1, 0, 1},  {1, 0, -1},
	                                 {-1, 0, 1},  {-1, 0, -1}, {0, 1, 1},  {0, 1, -1},  {0, -1, 1}, {0, -1, -1},
	                                 {1, 1, 1},   {1, 1, -1},  {1, -1, 1}, {1, -1, -1}, {-1, 1, 1}, {-1, 1, -1},
	                                 {-1, -1, 1}, {-1, -1, -1}};
	for (int round = is_clean ? 0 : 1; round < 2; ++round)
	{
		for (int n = 0; n < NODES; ++n)
		{
			if (sign[n] != 0 || source[n] >= 0 || (round == 1 && !(distance[n] < band)))
			{
				continue;
			}
			int found = 0, count = 1;
			// In the first round the side of a neighbour; in the second the node is asked for.
			for (int pass = 0; pass < 2; ++pass)
			{
				stack[0] = n;
				count = pass == 0 && round == 0 ? 1 : pass;
				while (count > 0)
				{
					int here = stack[--count];
					if (pass == 1 && source[here] < 0 && sign[here] == 0)
					{
						sign[here] = round == 0 ? found : 0;
						source[here] = round == 0 ? -1 : n;
					}
					for (int i = 0; i < 26; ++i)
					{
						int x = here % 8 + steps[i][0], y = here / 8 % 8 + steps[i][1], z = here / 64 + steps[i][2];
						int other = 64 * z + 8 * y + x;
						float size = i < 6 ? 1.0F : i < 18 ? 1.41421356F : 1.73205081F;
						if (((x | y | z) & ~7) != 0 || !(distance[here] + distance[other] > size * 1.00001F))
						{
							continue;
						}
						if (pass == 0)
						{
							found = found == 0 && sign[other] > 0 ? sign[other] : found;
						}
						else if (sign[other] == 0 && source[other] < 0)
						{
							sign[other] = round == 0 ? found : 0;
							source[other] = round == 0 ? -1 : n;
							stack[count++] = other;
						}
					}
				}
				if (round == 0 && found == 0)
				{
					break;
				}
			}
		}
	}
	for (int n = 0; n < NODES; ++n)
	{
		codes[n] = source[n] >= 0 ? SAND_SIDE_OF + source[n] : sign[n] > 0 ? sign[n] : 0;
	}
}

static void sides_go_around_as_they_are_walked(void)
{
	SandError err = {0};
	SandGpu *gpu = software_device();
	Twins *t = sand_alloc(1, sizeof(*t));
	for (int is_clean = 0; is_clean < 2; ++is_clean)
	{
		*t = (Twins){.work = {.gpu = gpu}};
		t->grid = (SandGlField){.band = 3, .is_clean = is_clean};
		for (uint64_t i = 0; i < RECORDS * NODES; ++i)
		{
			// From nodes that hardly hang together to those that all do.
			double farthest = 0.6 + 3.2 * sand_random(41, i / NODES), d = farthest * sand_random(42, 2 * i);
			t->squares[i] = sand_random(42, 2 * i + 1) < 0.05 ? INFINITY : (float)(d * d);
			double kind = sand_random(43, i), known = sand_random(44, i / NODES);
			t->heights[i] = kind < 0.3 * known * known ? (kind < 0.15 * known * known ? 0.5F : -0.5F) : 0;
		}
		float *squares = sand_alloc(RECORDS * NODES, sizeof(float));
		memcpy(squares, t->squares, sizeof(t->squares));
		CHECK_STATUS(sand_gpu_run(gpu, signs_job, t, &err), SAND_OK, &err);
		int different = 0, known = 0, wanted_count = 0;
		for (size_t brick = 0; brick < RECORDS; ++brick)
		{
			int32_t codes[NODES];
			walk_brick(squares + NODES * brick, t->heights + NODES * brick, 3, is_clean, codes);
			for (size_t n = 0; n < NODES; ++n)
			{
				different += codes[n] != t->codes[NODES * brick + n];
				known += codes[n] == SAND_SIDE_IN || codes[n] == SAND_SIDE_OUT;
				wanted_count += codes[n] == SAND_SIDE_OF + (int32_t)n;
			}
		}
		printf("  clean %d: %d sides known, %d asked for\n", is_clean, known, wanted_count);
		CHECK_INT(different, 0);
		CHECK_INT(t->asked[0], wanted_count);
		CHECK(wanted_count > 500 && (is_clean ? known > 50000 : known == 0));
		sand_free(squares);
	}
	sand_free(t);
	check_clean(gpu);
	sand_gpu_destroy(gpu);
}

static SandStatus sort_job(SandGpu *gpu, void *user, SandError *err)
{
	Twins *t = user;
	SandGlWork *work = &t->work;
	SandStatus status = sand_glwork_open(work, NULL, 0, true, err);
	status =
	    status == SAND_OK ? sand_glwork_fill(work, SAND_BIND_KEYS, t->codes, sizeof(t->codes), "keys", err) : status;
	status =
	    status == SAND_OK ? sand_glwork_reserve(work, SAND_BIND_KEYS_SPARE, sizeof(t->codes), "keys", err) : status;
	sand_gpu_barrier(gpu);
	status = status == SAND_OK ? sand_glwork_sort(work, RECORDS * NODES / 2, 13, err) : status;
	status =
	    status == SAND_OK ? sand_glwork_download(work, SAND_BIND_KEYS, 0, t->asked, sizeof(t->codes), err) : status;
	// Behind it running sums of as many ones and zeros.
	status = status == SAND_OK
	             ? sand_glwork_fill(work, SAND_BIND_FIELD_CODES, t->heights, sizeof(t->heights), "ones", err)
	             : status;
	sand_gpu_barrier(gpu);
	status = status == SAND_OK ? sand_glwork_scan(work, SAND_BIND_FIELD_CODES, RECORDS * NODES, err) : status;
	status = status == SAND_OK
	             ? sand_glwork_download(work, SAND_BIND_FIELD_CODES, 0, t->squares, sizeof(t->squares), err)
	             : status;
	sand_glwork_close(work);
	return status;
}

static void sorting_keeps_the_order_of_equals_and_sums_run(void)
{
	SandError err = {0};
	SandGpu *gpu = software_device();
	Twins *t = sand_alloc(1, sizeof(*t));
	*t = (Twins){.work = {.gpu = gpu}};
	uint32_t *pairs = (uint32_t *)t->codes, *ones = (void *)t->heights, *sums = (void *)t->squares;
	for (uint32_t i = 0; i < RECORDS * NODES / 2; ++i)
	{
		pairs[2 * i] = (uint32_t)(8000 * sand_random(51, i));
		pairs[2 * i + 1] = i;
	}
	for (uint32_t i = 0; i < RECORDS * NODES; ++i)
	{
		ones[i] = sand_random(52, i) < 0.3;
	}
	CHECK_STATUS(sand_gpu_run(gpu, sort_job, t, &err), SAND_OK, &err);
	int wrong = 0, wrong_sums = 0;
	const uint32_t *sorted = t->asked;
	for (uint32_t i = 0; i < RECORDS * NODES / 2; ++i)
	{
		const uint32_t *pair = sorted + 2 * i, *next = pair + 2;
		wrong += pairs[2 * pair[1]] != pair[0];
		wrong += i + 1 < RECORDS * NODES / 2 && !(pair[0] < next[0] || (pair[0] == next[0] && pair[1] < next[1]));
	}
	uint32_t sum = 0;
	for (uint32_t i = 0; i < RECORDS * NODES; sum += ones[i], ++i)
	{
		wrong_sums += sums[i] != sum;
	}
	CHECK_INT(wrong, 0);
	CHECK_INT(wrong_sums, 0);
	CHECK(sum > RECORDS * NODES / 4);
	sand_free(t);
	check_clean(gpu);
	sand_gpu_destroy(gpu);
}

// ---- what can go wrong

typedef enum Work
{
	WORK_DISTANCES,
	WORK_FIELD,
	WORK_SPREAD,
	WORK_OFFSET,
	WORK_COUNT
} Work;

// One of the sampler's calls on a device; *is_right_out: the answer is the processor's.
static SandStatus run_work(Work work, const Thing *thing, SandGpu *gpu, const SandCancel *cancel, bool *is_right_out,
                           SandError *err)
{
	enum
	{
		FEW = 300
	};
	SandStatus status;
	if (work == WORK_DISTANCES)
	{
		static float places[3 * PLACES];
		static double found[PLACES];
		make_places(thing, places);
		SandGlDistanceDesc desc = {.places = places, .place_count = FEW, .cancel = cancel};
		status = sand_glsurface_distances(gpu, thing->surface, &desc, NULL, found, err);
		*is_right_out = true;
		for (size_t i = 0; i < FEW && status == SAND_OK; ++i)
		{
			const double place[3] = {(double)places[3 * i], (double)places[3 * i + 1], (double)places[3 * i + 2]};
			*is_right_out = *is_right_out && found[i] == sand_surface_distance(thing->surface, place);
		}
		return status;
	}
	if (work == WORK_FIELD)
	{
		SandField *field = NULL, *wanted = NULL;
		SandFieldDesc desc = {.voxel = (float)(thing->size / 10), .cancel = cancel, .gpu = gpu};
		status = sand_field_create(thing->surface, &desc, NULL, &field, err);
		desc.gpu = NULL;
		desc.cancel = NULL;
		CHECK_INT(sand_field_create(thing->surface, &desc, NULL, &wanted, NULL), SAND_OK);
		CHECK((field != NULL) == (status == SAND_OK));
		if (field != NULL)
		{
			Difference d = compare_fields(field, wanted);
			*is_right_out = d.values == 0 && d.presence == 0;
		}
		sand_field_destroy(field);
		sand_field_destroy(wanted);
		return status;
	}
	SandPoints points = {0}, wanted = {0};
	double spacing = sqrt(0.9 * thing->mesh->area / 150);
	SandSpreadDesc desc = {.spacing = (float)spacing, .cancel = cancel, .gpu = gpu};
	desc.offset = work == WORK_OFFSET ? -0.3F * desc.spacing : 0;
	status = sand_spread_points(thing->surface, &desc, NULL, &points, err);
	desc.gpu = NULL;
	desc.cancel = NULL;
	CHECK_INT(sand_spread_points(thing->surface, &desc, NULL, &wanted, NULL), SAND_OK);
	*is_right_out =
	    points.count == wanted.count && memcmp(points.xyz, wanted.xyz, 3 * (size_t)wanted.count * sizeof(float)) == 0;
	CHECK(status == SAND_OK || points.xyz == NULL);
	sand_points_free(&points);
	sand_points_free(&wanted);
	return status;
}

// Every buffer, program, dispatch, fence and reset in turn fails; then the same device, or a new one, does it right.
static void every_nth_fault_ends_in_a_sentence_without_a_leak(void)
{
	Thing thing = thing_of(3);
	for (Work work = 0; work < WORK_COUNT; ++work)
	{
		for (int kind = 0; kind < 5; ++kind)
		{
			int runs = 0;
			bool is_clean = false;
			SandGpu *gpu = NULL;
			size_t held = sand_alloc_bytes();
			SandGpuFaults faults = {0};
			int *counters[5] = {&faults.buffer, &faults.program, &faults.dispatch, &faults.fence, &faults.reset};
			// Every number at first, then wider apart: dispatches are hundreds.
			for (int n = 1; !is_clean && runs < 200; n += n < 12 ? 1 : n / 2, ++runs)
			{
				SandError err = {0};
				SandStatus status = SAND_OK;
				bool is_right = false;
				faults = (SandGpuFaults){0};
				gpu = gpu != NULL ? gpu : device_with(&faults, &status, &err);
				*counters[kind] = n;
				status = run_work(work, &thing, gpu, NULL, &is_right, &err);
				is_clean = *counters[kind] != 0;
				// A device that is lost when all is done has done it.
				CHECK(is_clean ? status == SAND_OK : status != SAND_OK || kind == 4);
				CHECK(status == SAND_OK || status == SAND_ERROR_GPU || status == SAND_ERROR_GPU_MEMORY ||
				      status == SAND_ERROR_GPU_LOST);
				CHECK(status != SAND_OK || is_right);
				CHECK(status == SAND_OK || strlen(err.message) > 20);
				if (kind == 4 && !is_clean)
				{
					sand_gpu_destroy(gpu);
					gpu = NULL;
					continue;
				}
				check_clean(gpu);
			}
			printf("  work %d, kind %d: %d runs\n", (int)work, kind, runs);
			CHECK(is_clean);
			sand_gpu_destroy(gpu);
			CHECK_INT(sand_alloc_bytes(), held);
		}
	}
	free_thing(&thing);
}

static void every_failing_allocation_is_reported(void)
{
	Thing thing = thing_of(0);
	size_t before = sand_alloc_bytes();
	SandGpu *gpu = software_device();
	for (Work work = 0; work < WORK_COUNT; ++work)
	{
		SandStatus status = SAND_ERROR_MEMORY;
		for (uint64_t n = 1; n < 40 && status != SAND_OK; ++n)
		{
			SandError err = {0};
			double distances[2];
			const float places[6] = {0.1F, 0.2F, 0.3F, 2, 2, 2};
			SandGlDistanceDesc ask = {.places = places, .place_count = 2};
			SandFieldDesc grid = {.voxel = 0.4F, .gpu = gpu};
			SandSpreadDesc even = {.spacing = 0.5F, .offset = work == WORK_OFFSET ? 0.1F : 0, .gpu = gpu};
			SandField *field = NULL;
			SandPoints points = {0};
			sand_alloc_fail_after(n, true);
			status = work == WORK_DISTANCES ? sand_glsurface_distances(gpu, thing.surface, &ask, NULL, distances, &err)
			         : work == WORK_FIELD   ? sand_field_create(thing.surface, &grid, NULL, &field, &err)
			                                : sand_spread_points(thing.surface, &even, NULL, &points, &err);
			sand_alloc_fail_after(0, false);
			CHECK(status == SAND_OK || status == SAND_ERROR_MEMORY);
			sand_field_destroy(field);
			sand_points_free(&points);
			check_clean(gpu);
		}
		CHECK_INT(status, SAND_OK);
	}
	sand_gpu_destroy(gpu);
	CHECK_INT(sand_alloc_bytes(), before); // the device's own table of objects is gone with it
	free_thing(&thing);
}

static void a_raised_flag_ends_the_work(void)
{
	Thing thing = thing_of(3);
	SandGpu *gpu = software_device();
	const SandCancel raised = {1}, not_raised = {0};
	for (Work work = 0; work < WORK_COUNT; ++work)
	{
		SandError err = {0};
		bool is_right = false;
		SandStatus status = run_work(work, &thing, gpu, &raised, &is_right, &err);
		// Distances of a few places may be done before anybody looks.
		CHECK(status == SAND_CANCELLED || (work == WORK_DISTANCES && status == SAND_OK));
		check_clean(gpu);
		CHECK_STATUS(run_work(work, &thing, gpu, &not_raised, &is_right, &err), SAND_OK, &err);
		CHECK(is_right);
	}
	sand_gpu_destroy(gpu);
	free_thing(&thing);
}

static void what_does_not_fit_is_refused_with_the_numbers(void)
{
	Thing thing = thing_of(3);
	SandGpu *gpu = software_device();
	int64_t block = sand_gpu_info(gpu)->limits.block_bytes;
	// Lists of 128 bytes for one and a half times as many points as area asks for.
	double points = (double)block / 128;
	if (points > 4e6)
	{
		SKIP("what_does_not_fit_is_refused_with_the_numbers", "blocks of this device are too large for a quick test");
	}
	else
	{
		SandError err = {0};
		SandPoints none = {0};
		SandSpreadDesc desc = {.spacing = (float)sqrt(0.9 * thing.mesh->area / points), .gpu = gpu};
		CHECK_STATUS(sand_spread_points(thing.surface, &desc, NULL, &none, &err), SAND_ERROR_GPU_MEMORY, &err);
		CHECK_CONTAINS(err.message, "MiB");
		CHECK_CONTAINS(err.message, "128.0");
		CHECK_CONTAINS(err.message, "cpu engine");
		CHECK(none.xyz == NULL);
	}
	check_clean(gpu);
	sand_gpu_destroy(gpu);
	free_thing(&thing);
}

void test_glsample(void)
{
	SandGpu *gpu = NULL;
	SandError err = {0};
	if (sand_gpu_create(&(SandGpuDesc){.refuses_hardware = true}, &gpu, &err) != SAND_OK)
	{
		SKIP("glsample", err.message);
		return;
	}
	sand_gpu_destroy(gpu);
	RUN(sorting_keeps_the_order_of_equals_and_sums_run);
	RUN(views_and_distances_are_those_of_rows);
	RUN(sides_go_around_as_they_are_walked);
	RUN(distances_are_the_processors);
	RUN(places_that_the_device_doubts_are_asked_again);
	RUN(fields_are_the_processors);
	RUN(wide_bands_and_coarse_voxels_are_the_processors);
	RUN(relaxed_points_are_the_processors);
	RUN(points_at_an_offset_are_the_processors);
	RUN(every_nth_fault_ends_in_a_sentence_without_a_leak);
	RUN(every_failing_allocation_is_reported);
	RUN(a_raised_flag_ends_the_work);
	RUN(what_does_not_fit_is_refused_with_the_numbers);
}
