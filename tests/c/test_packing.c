// Tests of packing: inside, distance to the mesh and overlap by brute force over all triangles and all pairs; packing
// in windows away from walls against closed forms; randomness by pair distances and by waves; limits, determinism,
// failed allocations, cancel.
#include "brute.h"
#include "packing.h"
#include "shapes.h"
#include "test.h"

#include <stdatomic.h>

static const float UNIT_LOW[3] = {0.0F, 0.0F, 0.0F}, UNIT_HIGH[3] = {1.0F, 1.0F, 1.0F};

// ---- meshes
// ----------------------------------------------------------------------------------------------------------

typedef struct Body
{
	SandMesh *mesh;
	SandSurface *surface;
} Body;

// Takes the shape over.
static Body body_of(TestShape *shape, const char *name)
{
	SandError err = {0};
	Body body = {.mesh = test_shape_mesh(shape, name), .surface = NULL};
	test_shape_free(shape);
	CHECK_STATUS(sand_surface_create(body.mesh, NULL, &body.surface, &err), SAND_OK, &err);
	return body;
}

static void body_free(Body *body)
{
	sand_surface_destroy(body->surface);
	sand_mesh_destroy(body->mesh);
}

static Body unit_cube(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, UNIT_LOW, UNIT_HIGH, false);
	return body_of(&shape, "Cube");
}

static Body ball(void)
{
	TestShape shape = {0};
	test_shape_uv_sphere(&shape, 0.6F, 20, 10);
	return body_of(&shape, "Ball");
}

static Body torus(void)
{
	TestShape shape = {0};
	test_shape_torus(&shape, 1.0, 0.3, 24, 12);
	return body_of(&shape, "Torus");
}

static Body bottle(void)
{
	TestShape shape = {0};
	test_shape_bottle(&shape, 0.4, 1.0, 16);
	return body_of(&shape, "Bottle");
}

// The unit cube with a cubic cavity, or with a cube that overlaps it: the same faces, turned.
static Body nested_cubes(bool is_cavity)
{
	static const float low[3] = {0.3F, 0.3F, 0.3F}, high[3] = {0.7F, 0.7F, 0.7F};
	TestShape shape = {0};
	test_shape_box(&shape, UNIT_LOW, UNIT_HIGH, false);
	test_shape_box(&shape, low, high, is_cavity);
	return body_of(&shape, is_cavity ? "Cavity" : "Overlap");
}

// ---- brute force
// -----------------------------------------------------------------------------------------------------

static const float *point_at(const SandPoints *points, int point)
{
	return points->xyz + 3 * (size_t)point;
}

static double point_distance(const float *a, const float *b)
{
	double apart[3];
	test_subtract((const double[3]){a[0], a[1], a[2]}, (const double[3]){b[0], b[1], b[2]}, apart);
	return sqrt(test_dot(apart, apart));
}

// m, of the nearest two points.
static double least_spacing(const SandPoints *points)
{
	double least = (double)INFINITY;
	for (int a = 0; a < points->count; ++a)
	{
		for (int b = a + 1; b < points->count; ++b)
		{
			float across = fabsf(points->xyz[3 * a] - points->xyz[3 * b]);
			if ((double)across < least)
			{
				least = fmin(least, point_distance(point_at(points, a), point_at(points, b)));
			}
		}
	}
	return least;
}

// m, the largest distance of neighbouring floats among the mesh's coordinates.
static double float_step(const SandMesh *mesh)
{
	double farthest = 0.0;
	for (int axis = 0; axis < 3; ++axis)
	{
		farthest = fmax(farthest, fabs((double)mesh->bounds_min[axis]));
		farthest = fmax(farthest, fabs((double)mesh->bounds_max[axis]));
	}
	return farthest * 0x1p-23;
}

// ---- calls
// -----------------------------------------------------------------------------------------------------------

static SandPoints fill_with(const Body *body, SandPackingDesc desc, SandPool *pool)
{
	SandError err = {0};
	SandPoints points = {0};
	CHECK_STATUS(sand_packing_fill(body->surface, &desc, pool, &points, &err), SAND_OK, &err);
	return points;
}

static SandPoints fill(const Body *body, SandPackingKind kind, float radius, float packing, uint64_t seed)
{
	return fill_with(body, (SandPackingDesc){.kind = kind, .radius = radius, .packing = packing, .seed = seed}, NULL);
}

static SandError refusal(const Body *body, SandPackingDesc desc, SandStatus expected)
{
	SandError err = {0};
	SandPoints points = {.xyz = NULL, .count = 7};
	size_t bytes_before = sand_alloc_bytes();
	CHECK_STATUS(sand_packing_fill(body->surface, &desc, NULL, &points, &err), expected, &err);
	CHECK(points.xyz == NULL && points.count == 0);
	CHECK_INT(sand_alloc_bytes(), bytes_before);
	return err;
}

// Nothing pokes out, nothing overlaps.
static void check_grains(const Body *body, const SandPoints *points, SandPackingKind kind, double radius)
{
	double nearest = (double)INFINITY, step = float_step(body->mesh);
	int outside_count = 0;
	for (int point = 0; point < points->count; ++point)
	{
		const float *place = point_at(points, point);
		nearest = fmin(nearest, test_distance_at(body->mesh, place));
		// The core knows winding numbers of meshes with holes to 0.01.
		outside_count += test_winding_at(body->mesh, place) <= (body->mesh->is_closed ? 0.5 : 0.49);
	}
	double least = least_spacing(points);
	printf("  %s: %d grains, nearest to the mesh %.6f, nearest two %.6f radii\n", sand_mesh_name(body->mesh),
	       points->count, nearest / radius, least / radius);
	CHECK(points->count > 0);
	CHECK_INT(outside_count, 0);
	CHECK(nearest >= radius - 3.0 * step);
	CHECK(least >= radius * (kind == SAND_PACKING_RELAXED ? 1.99 - 1e-6 : 2.0) - 2.0 * step);
}

// ---- packing
// ---------------------------------------------------------------------------------------------------------

// A window that falls off smoothly, so that neither the edge of a sharp one nor the rows of a lattice count: 1 in the
// middle, 0 at `width` from it, integral `width` from -width to width.
static double window(double away, double width)
{
	return fabs(away) < width ? 0.5 + 0.5 * cos(TEST_PI * away / width) : 0.0;
}

// Share of space that spheres fill in a window of the shape of a cube.
static double packing_in_cube(const SandPoints *points, const double middle[3], double width, double radius)
{
	double sum = 0.0;
	for (int point = 0; point < points->count; ++point)
	{
		const float *place = point_at(points, point);
		double weight = 1.0;
		for (int axis = 0; axis < 3; ++axis)
		{
			weight *= window((double)place[axis] - middle[axis], width);
		}
		sum += weight;
	}
	return sum * 4.0 / 3.0 * TEST_PI * radius * radius * radius / (width * width * width);
}

// In a window around the circle that the tube of a torus runs on. The integral over the tube's cross section is
// pi (1/2 - 2/pi^2) width^2, over the torus 2 pi large times that (Pappus).
static double packing_in_torus(const SandPoints *points, double large, double width, double radius)
{
	double sum = 0.0;
	for (int point = 0; point < points->count; ++point)
	{
		const float *place = point_at(points, point);
		double out = sqrt((double)place[0] * (double)place[0] + (double)place[1] * (double)place[1]) - large;
		sum += window(sqrt(out * out + (double)place[2] * (double)place[2]), width);
	}
	double volume = 2.0 * TEST_PI * large * TEST_PI * (0.5 - 2.0 / (TEST_PI * TEST_PI)) * width * width;
	return sum * 4.0 / 3.0 * TEST_PI * radius * radius * radius / volume;
}

static const struct
{
	SandPackingKind kind;
	float packing;
} CASES[] = {
    {SAND_PACKING_HEXAGONAL, 0.74F}, {SAND_PACKING_HEXAGONAL, 0.5F}, {SAND_PACKING_JITTERED, 0.55F},
    {SAND_PACKING_RELAXED, 0.3F},    {SAND_PACKING_RELAXED, 0.5F},   {SAND_PACKING_RELAXED, 0.55F},
    {SAND_PACKING_RELAXED, 0.6F},
};
enum
{
	CASE_COUNT = sizeof(CASES) / sizeof(CASES[0])
};

// Every case in one mesh; the window is a cube, or the ring of a torus when the width is negative.
static void check_body(Body body, float radius, const double middle[3], double width)
{
	for (int i = 0; i < CASE_COUNT; ++i)
	{
		SandPoints points = fill(&body, CASES[i].kind, radius, CASES[i].packing, (uint64_t)i);
		check_grains(&body, &points, CASES[i].kind, (double)radius);
		double found = width < 0.0 ? packing_in_torus(&points, 1.0, -width, (double)radius)
		                           : packing_in_cube(&points, middle, width, (double)radius);
		printf("    packing %.4f of %.2f\n", found, (double)CASES[i].packing);
		CHECK_NEAR(found / (double)CASES[i].packing, 1.0, 0.03);
		sand_points_free(&points);
	}
	body_free(&body);
}

static void a_box_is_filled_at_every_packing(void)
{
	check_body(unit_cube(), 0.03F, (const double[3]){0.5, 0.5, 0.5}, 0.38);
}

static void a_ball_is_filled_at_every_packing(void)
{
	// The window's corners are at 0.35 sqrt(3): there it is zero.
	check_body(ball(), 0.035F, (const double[3]){0.0, 0.0, 0.0}, 0.35);
}

static void a_torus_is_filled_at_every_packing(void)
{
	check_body(torus(), 0.03F, NULL, -0.2);
}

static void an_open_bottle_is_filled_by_its_winding_number(void)
{
	Body body = bottle();
	CHECK(!sand_surface_is_clean(body.surface));
	check_body(body, 0.02F, (const double[3]){0.0, 0.0, 0.31}, 0.28);
}

static void an_open_cylinder_is_filled_between_its_rims(void)
{
	TestShape shape = {0};
	test_shape_open_cylinder(&shape, 0.5F, 2.0F, 24);
	Body body = body_of(&shape, "Pipe");
	for (int kind = 0; kind < SAND_PACKING_COUNT; ++kind)
	{
		SandPoints points = fill(&body, (SandPackingKind)kind, 0.05F, 0.0F, 3);
		check_grains(&body, &points, (SandPackingKind)kind, (double)0.05F);
		sand_points_free(&points);
	}
	body_free(&body);
}

static void a_cavity_stays_empty_and_an_overlap_is_filled(void)
{
	for (int is_cavity = 0; is_cavity < 2; ++is_cavity)
	{
		Body body = nested_cubes(is_cavity != 0);
		CHECK_INT(sand_surface_is_clean(body.surface), is_cavity);
		for (int kind = 0; kind < SAND_PACKING_COUNT; ++kind)
		{
			SandPoints points = fill(&body, (SandPackingKind)kind, 0.03F, 0.0F, 3);
			check_grains(&body, &points, (SandPackingKind)kind, (double)0.03F);
			int inner_count = 0;
			for (int point = 0; point < points.count; ++point)
			{
				const float *place = point_at(&points, point);
				inner_count +=
				    fabsf(place[0] - 0.5F) < 0.2F && fabsf(place[1] - 0.5F) < 0.2F && fabsf(place[2] - 0.5F) < 0.2F;
			}
			CHECK(is_cavity ? inner_count == 0 : inner_count > 100);
			sand_points_free(&points);
		}
		body_free(&body);
	}
}

static void narrow_places_are_filled_as_far_as_grains_fit(void)
{
	// A slit of three radii cannot be filled as densely as asked for, nor can needles thinner than a grain: the grains
	// too many go, the others stay.
	const float high[3] = {1.0F, 1.0F, 0.06F};
	TestShape shape = {0};
	test_shape_box(&shape, UNIT_LOW, high, false);
	Body slit = body_of(&shape, "Slit");
	SandPoints points = fill(&slit, SAND_PACKING_RELAXED, 0.02F, 0.6F, 1);
	check_grains(&slit, &points, SAND_PACKING_RELAXED, (double)0.02F);
	double share = points.count * 4.0 / 3.0 * TEST_PI * 8e-6 / 0.06;
	printf("    share of the slit %.3f\n", share);
	CHECK(share > 0.37); // one layer of hexagons is 0.605 / 1.5 = 0.403
	sand_points_free(&points);
	body_free(&slit);

	shape = (TestShape){0};
	test_shape_needle_star(&shape, 0.5, 1.0, 1);
	Body star = body_of(&shape, "Star");
	points = fill(&star, SAND_PACKING_RELAXED, 0.03F, 0.6F, 1);
	check_grains(&star, &points, SAND_PACKING_RELAXED, (double)0.03F);
	share = packing_in_cube(&points, (const double[3]){0.0, 0.0, 0.0}, 0.25, (double)0.03F);
	printf("    packing %.4f of 0.60\n", share);
	CHECK_NEAR(share, 0.6, 0.05);
	sand_points_free(&points);
	body_free(&star);
}

static void a_mesh_far_from_the_origin_loses_only_what_floats_lose(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, UNIT_LOW, UNIT_HIGH, false);
	test_shape_move(&shape, 1000.0, -2000.0, 500.0);
	Body body = body_of(&shape, "Far");
	for (int kind = 0; kind < SAND_PACKING_COUNT; ++kind)
	{
		SandPoints points = fill(&body, (SandPackingKind)kind, 0.04F, 0.0F, 4);
		check_grains(&body, &points, (SandPackingKind)kind, (double)0.04F);
		sand_points_free(&points);
	}
	SandError err = refusal(&body, (SandPackingDesc){.radius = 0.003F}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Far");
	CHECK_CONTAINS(err.message, "0.003");
	body_free(&body);
}

static void the_lattice_is_that_of_the_sampler(void)
{
	// Two ways to tell inside, parity along rows and distance at the middle of boxes: the same sites.
	Body bodies[3] = {unit_cube(), ball(), torus()};
	for (int i = 0; i < 3; ++i)
	{
		double radius = 0.04;
		SandFillDesc desc = {.spacing = (float)(2.0 * radius * cbrt(TEST_PI / sqrt(18.0) / 0.6)), .clearance = 0.04F};
		SandPoints expected = {0}, points = fill(&bodies[i], SAND_PACKING_HEXAGONAL, 0.04F, 0.6F, 0);
		SandError err = {0};
		CHECK_STATUS(sand_sampler_fill(bodies[i].mesh, &desc, &expected, &err), SAND_OK, &err);
		CHECK_INT(points.count, expected.count);
		int missing_count = 0;
		for (int point = 0; point < points.count; ++point)
		{
			int other = 0;
			while (other < expected.count &&
			       point_distance(point_at(&points, point), point_at(&expected, other)) > 1e-5)
			{
				++other;
			}
			missing_count += other == expected.count;
		}
		CHECK_INT(missing_count, 0);
		sand_points_free(&expected);
		sand_points_free(&points);
		body_free(&bodies[i]);
	}
}

// ---- randomness
// ------------------------------------------------------------------------------------------------------

// Largest pair correlation in bins of 0.02 diameters between 1.36 and 1.56 diameters: where a close-packed lattice has
// its second neighbours and a random packing the fewest (Bernal 1964).
static double lattice_peak(const SandPoints *points, double radius, double margin)
{
	enum
	{
		BIN_COUNT = 10
	};
	double counts[BIN_COUNT] = {0}, inner_count = 0.0, peak = 0.0;
	for (int a = 0; a < points->count; ++a)
	{
		const float *place = point_at(points, a);
		bool is_inner = true;
		for (int axis = 0; axis < 3; ++axis)
		{
			is_inner = is_inner && (double)place[axis] > margin && (double)place[axis] < 1.0 - margin;
		}
		for (int b = 0; b < points->count && is_inner; ++b)
		{
			double bin = (point_distance(place, point_at(points, b)) / (2.0 * radius) - 1.36) / 0.02;
			if (bin >= 0.0 && bin < BIN_COUNT)
			{
				counts[(int)bin] += 1.0;
			}
		}
		inner_count += is_inner;
	}
	double width = 1.0 - 2.0 * margin, density = inner_count / (width * width * width);
	for (int bin = 0; bin < BIN_COUNT; ++bin)
	{
		double low = 2.0 * radius * (1.36 + 0.02 * bin), high = low + 2.0 * radius * 0.02;
		double volume = 4.0 / 3.0 * TEST_PI * (high * high * high - low * low * low);
		peak = fmax(peak, counts[bin] / (inner_count * density * volume));
	}
	return peak;
}

// |sum of exp(i k x)|^2 per grain: some 1 where grains have no order along the axis, their number where they are rows
// `wave` apart.
static double wave_power(const SandPoints *points, int axis, double wave)
{
	double real = 0.0, imaginary = 0.0, weight = 0.0;
	for (int point = 0; point < points->count; ++point)
	{
		const float *place = point_at(points, point);
		double share = 1.0;
		for (int k = 0; k < 3; ++k)
		{
			share *= window((double)place[k] - 0.5, 0.4);
		}
		real += share * cos(2.0 * TEST_PI * (double)place[axis] / wave);
		imaginary += share * sin(2.0 * TEST_PI * (double)place[axis] / wave);
		weight += share * share;
	}
	return (real * real + imaginary * imaginary) / weight;
}

static void relaxed_grains_have_no_lattice_in_them(void)
{
	Body body = unit_cube();
	const float packings[2] = {0.55F, 0.6F};
	for (int i = 0; i < 2; ++i)
	{
		double radius = (double)0.025F, packing = (double)packings[i];
		SandPoints points = fill(&body, SAND_PACKING_RELAXED, 0.025F, packings[i], 5);
		SandPoints lattice = fill(&body, SAND_PACKING_JITTERED, 0.025F, packings[i], 5);
		double peak = lattice_peak(&points, radius, 0.15), lattice_value = lattice_peak(&lattice, radius, 0.15);
		// The cells that the grains started in, and the rows of a lattice as dense.
		double cell = 2.0 * radius * cbrt(TEST_PI / 6.0 / packing);
		double row = 2.0 * radius * cbrt(TEST_PI / sqrt(18.0) / packing) * sqrt(2.0 / 3.0), power = 0.0;
		for (int axis = 0; axis < 3; ++axis)
		{
			power = fmax(power, fmax(wave_power(&points, axis, cell), wave_power(&points, axis, row)));
		}
		double lattice_power = wave_power(&lattice, 2, row);
		printf("  %.2f: peak %.2f (jittered lattice %.2f), waves %.1f (jittered lattice %.1f)\n", packing, peak,
		       lattice_value, power, lattice_power);
		CHECK(peak < 1.3);
		CHECK(lattice_value > 1.6);
		CHECK(power < 25.0);
		CHECK(lattice_power > 200.0);
		sand_points_free(&lattice);
		sand_points_free(&points);
	}
	body_free(&body);
}

static void jitter_moves_grains_off_the_lattice(void)
{
	Body body = unit_cube();
	SandPoints lattice = fill(&body, SAND_PACKING_HEXAGONAL, 0.04F, 0.55F, 1);
	SandPoints points = fill(&body, SAND_PACKING_JITTERED, 0.04F, 0.55F, 1);
	double limit = (double)0.04F * (cbrt(TEST_PI / sqrt(18.0) / 0.55) - 1.0), mean = 0.0, most = 0.0;
	CHECK_INT(points.count, lattice.count);
	for (int point = 0; point < points.count && points.count == lattice.count; ++point)
	{
		double moved = point_distance(point_at(&points, point), point_at(&lattice, point));
		mean += moved / points.count;
		most = fmax(most, moved);
	}
	printf("  moved by %.3f on average, at most %.3f of the free room\n", mean / limit, most / limit);
	CHECK(most <= limit * (1.0 + 1e-4));
	CHECK(mean > 0.4 * limit); // uniform in a ball: 3/4; less at the walls
	sand_points_free(&points);
	sand_points_free(&lattice);
	body_free(&body);
}

// ---- one grain, none, too many
// -----------------------------------------------------------------------------------------

static void one_grain_fits_where_it_just_fits(void)
{
	// The sites of a seed may all miss the one place there is.
	Body bodies[3] = {unit_cube(), ball(), torus()};
	const float radii[3] = {0.499F, 0.58F, 0.28F};
	for (int i = 0; i < 3; ++i)
	{
		for (int kind = 0; kind < SAND_PACKING_COUNT; ++kind)
		{
			for (uint64_t seed = 0; seed < 4; ++seed)
			{
				SandPoints points = fill(&bodies[i], (SandPackingKind)kind, radii[i], 0.0F, seed);
				CHECK(points.count >= 1);
				if (points.count > 0)
				{
					CHECK(test_distance_at(bodies[i].mesh, points.xyz) >=
					      (double)radii[i] - 3.0 * float_step(bodies[i].mesh));
					CHECK(test_winding_at(bodies[i].mesh, points.xyz) > 0.5);
				}
				sand_points_free(&points);
			}
		}
		body_free(&bodies[i]);
	}
}

static void a_grain_larger_than_the_mesh_is_refused_with_both_sizes(void)
{
	Body body = unit_cube();
	for (int kind = 0; kind < SAND_PACKING_COUNT; ++kind)
	{
		SandPackingDesc desc = {.kind = (SandPackingKind)kind, .radius = 0.625F};
		SandError err = refusal(&body, desc, SAND_ERROR_MESH);
		CHECK_CONTAINS(err.message, "0.625 m");
		CHECK_CONTAINS(err.message, "'Cube' of 1 x 1 x 1 m");
		CHECK_CONTAINS(err.message, "0.5 m from its surface");
	}
	body_free(&body);
	// A sheet has no inside at all.
	const float vertices[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0};
	const int32_t triangles[3] = {0, 1, 2};
	SandMesh *mesh = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_mesh_create("Sheet", vertices, 3, triangles, 1, &mesh, &err), SAND_OK, &err);
	Body sheet = {.mesh = mesh, .surface = NULL};
	CHECK_STATUS(sand_surface_create(mesh, NULL, &sheet.surface, &err), SAND_OK, &err);
	for (int kind = 0; kind < SAND_PACKING_COUNT; ++kind)
	{
		err = refusal(&sheet, (SandPackingDesc){.kind = (SandPackingKind)kind, .radius = 0.01F}, SAND_ERROR_MESH);
		CHECK_CONTAINS(err.message, "'Sheet'");
		CHECK_CONTAINS(err.message, "3 open edges");
	}
	body_free(&sheet);
}

static void too_many_grains_are_refused_before_anything_is_allocated(void)
{
	Body bodies[2] = {unit_cube(), bottle()};
	for (int i = 0; i < 2; ++i)
	{
		for (int kind = 0; kind < SAND_PACKING_COUNT; ++kind)
		{
			sand_alloc_fail_after(1, true);
			SandPackingDesc desc = {.kind = (SandPackingKind)kind, .radius = 4e-4F, .packing = 0.55F};
			SandError err = refusal(&bodies[i], desc, SAND_ERROR_ARGUMENT);
			sand_alloc_fail_after(0, false);
			CHECK_CONTAINS(err.message, "0.0004 m");
			CHECK_CONTAINS(err.message, "limit of 100000000");
			CHECK(i == 1 || strstr(err.message, "2.05e+09") != NULL); // 0.55 / (4/3 pi r^3)
		}
		body_free(&bodies[i]);
	}
}

static void numbers_out_of_range_are_refused(void)
{
	Body body = unit_cube();
	const SandPackingDesc bad[] = {
	    {.radius = 0.0F},
	    {.radius = -1.0F},
	    {.radius = NAN},
	    {.radius = INFINITY},
	    {.radius = 0.1F, .packing = -0.1F},
	    {.radius = 0.1F, .packing = NAN},
	    {.radius = 0.1F, .packing = 0.75F},
	    {.radius = 0.1F, .packing = 0.75F, .kind = SAND_PACKING_JITTERED},
	    {.radius = 0.1F, .packing = 0.61F, .kind = SAND_PACKING_RELAXED},
	    {.radius = 0.1F, .kind = SAND_PACKING_COUNT},
	    {.radius = 0.1F, .kind = (SandPackingKind)-1},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i)
	{
		(void)refusal(&body, bad[i], SAND_ERROR_ARGUMENT);
	}
	SandError err = refusal(&body, bad[8], SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "0.61");
	CHECK_CONTAINS(err.message, "0.60");
	body_free(&body);
}

// ---- the same again
// --------------------------------------------------------------------------------------------------

static bool are_same(const SandPoints *a, const SandPoints *b)
{
	return a->count == b->count && memcmp(a->xyz, b->xyz, (size_t)a->count * 3 * sizeof(float)) == 0;
}

static void grains_are_the_same_for_every_thread_count(void)
{
	Body bodies[3] = {unit_cube(), bottle(), nested_cubes(false)};
	for (int i = 0; i < 3; ++i)
	{
		for (int kind = 0; kind < SAND_PACKING_COUNT; ++kind)
		{
			SandPackingDesc desc = {.kind = (SandPackingKind)kind, .radius = 0.035F, .packing = 0.58F, .seed = 9};
			SandPoints first = fill_with(&bodies[i], desc, NULL);
			for (int thread_count = 1; thread_count <= 3; ++thread_count)
			{
				SandPool *pool = NULL;
				SandError err = {0};
				CHECK_STATUS(sand_pool_create(thread_count, &pool, &err), SAND_OK, &err);
				SandPoints again = fill_with(&bodies[i], desc, pool);
				CHECK(are_same(&first, &again));
				sand_points_free(&again);
				sand_pool_destroy(pool);
			}
			sand_points_free(&first);
		}
		body_free(&bodies[i]);
	}
}

static void another_seed_gives_other_grains(void)
{
	Body body = ball();
	for (int kind = 0; kind < SAND_PACKING_COUNT; ++kind)
	{
		SandPoints a = fill(&body, (SandPackingKind)kind, 0.05F, 0.5F, 1);
		SandPoints b = fill(&body, (SandPackingKind)kind, 0.05F, 0.5F, 2);
		CHECK(are_same(&a, &b) == (kind == SAND_PACKING_HEXAGONAL));
		sand_points_free(&a);
		sand_points_free(&b);
	}
	body_free(&body);
}

// ---- failures
// --------------------------------------------------------------------------------------------------------

static void every_failing_allocation_is_reported(void)
{
	Body bodies[2] = {ball(), bottle()};
	for (int i = 0; i < 2; ++i)
	{
		for (int kind = 0; kind <= SAND_PACKING_COUNT; ++kind)
		{
			// The last round has room for a single grain.
			bool is_single = kind == SAND_PACKING_COUNT;
			SandPackingDesc desc = {.kind = is_single ? SAND_PACKING_RELAXED : (SandPackingKind)kind,
			                        .radius = is_single ? i == 0 ? 0.58F : 0.38F : 0.05F};
			SandStatus status = SAND_ERROR_MEMORY;
			int failure_count = 0;
			while (status != SAND_OK && failure_count < 10000)
			{
				SandError err = {0};
				SandPoints points = {.xyz = NULL, .count = 7};
				size_t bytes_before = sand_alloc_bytes();
				sand_alloc_fail_after((uint64_t)failure_count + 1, false);
				status = sand_packing_fill(bodies[i].surface, &desc, NULL, &points, &err);
				sand_alloc_fail_after(0, false);
				if (status != SAND_OK)
				{
					CHECK_STATUS(status, SAND_ERROR_MEMORY, &err);
					CHECK(points.xyz == NULL && points.count == 0);
					++failure_count;
				}
				sand_points_free(&points);
				CHECK_INT(sand_alloc_bytes(), bytes_before);
			}
			CHECK(is_single ? failure_count == 3 : failure_count > 3);
			CHECK_STATUS(status, SAND_OK, NULL);
		}
		body_free(&bodies[i]);
	}
}

static void a_raised_cancel_stops_every_kind(void)
{
	Body body = ball();
	SandCancel cancel = {.is_raised = 1};
	for (int kind = 0; kind < SAND_PACKING_COUNT; ++kind)
	{
		// Ninety million grains would take minutes.
		(void)refusal(&body, (SandPackingDesc){.kind = (SandPackingKind)kind, .radius = 1.2e-3F, .cancel = &cancel},
		              SAND_CANCELLED);
	}
	// Where one grain might fit, the search for its place stops as well.
	(void)refusal(&body, (SandPackingDesc){.radius = 0.59F, .cancel = &cancel}, SAND_CANCELLED);
	body_free(&body);
}

typedef struct Race
{
	const Body *body;
	SandCancel cancel;
	SandStatus status;
	SandPoints points;
} Race;

static void race_task(void *context, int task)
{
	Race *race = context;
	if (task == 0)
	{
		SandPackingDesc desc = {
		    .kind = SAND_PACKING_RELAXED, .radius = 0.01F, .packing = 0.6F, .cancel = &race->cancel};
		race->status = sand_packing_fill(race->body->surface, &desc, NULL, &race->points, NULL);
		return;
	}
	for (double start = sand_ticks(); sand_ticks() < start + 0.15;)
	{
	}
	atomic_store(&race->cancel.is_raised, 1);
}

static void a_cancel_raised_while_grains_move_ends_the_call(void)
{
	// A hundred thousand grains take far longer than the other thread waits.
	Body body = ball();
	Race race = {.body = &body, .cancel = {0}, .status = SAND_OK, .points = {.count = 7}};
	SandPool *pool = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_pool_create(2, &pool, &err), SAND_OK, &err);
	size_t bytes_before = sand_alloc_bytes();
	sand_pool_run(pool, race_task, &race, 2);
	CHECK_STATUS(race.status, SAND_CANCELLED, NULL);
	CHECK(race.points.xyz == NULL && race.points.count == 0);
	CHECK_INT(sand_alloc_bytes(), bytes_before);
	sand_pool_destroy(pool);
	body_free(&body);
}

void test_packing(void)
{
	RUN(a_box_is_filled_at_every_packing);
	RUN(a_ball_is_filled_at_every_packing);
	RUN(a_torus_is_filled_at_every_packing);
	RUN(an_open_bottle_is_filled_by_its_winding_number);
	RUN(an_open_cylinder_is_filled_between_its_rims);
	RUN(a_cavity_stays_empty_and_an_overlap_is_filled);
	RUN(narrow_places_are_filled_as_far_as_grains_fit);
	RUN(a_mesh_far_from_the_origin_loses_only_what_floats_lose);
	RUN(the_lattice_is_that_of_the_sampler);
	RUN(relaxed_grains_have_no_lattice_in_them);
	RUN(jitter_moves_grains_off_the_lattice);
	RUN(one_grain_fits_where_it_just_fits);
	RUN(a_grain_larger_than_the_mesh_is_refused_with_both_sizes);
	RUN(too_many_grains_are_refused_before_anything_is_allocated);
	RUN(numbers_out_of_range_are_refused);
	RUN(grains_are_the_same_for_every_thread_count);
	RUN(another_seed_gives_other_grains);
	RUN(every_failing_allocation_is_reported);
	RUN(a_raised_cancel_stops_every_kind);
	RUN(a_cancel_raised_while_grains_move_ends_the_call);
}
