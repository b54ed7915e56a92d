// Tests of spread: even, on the surface, covering it, the same for every thread count, and refusing what cannot be.
#include "shapes.h"
#include "spread.h"

#include <math.h>
#include <stdatomic.h>

typedef struct Measure
{
	double least, mean; // nearest-neighbour distances over the spacing
	double off;         // farthest from the level, over the spacing
	double uncovered;   // share of the area farther than 1 / 1.2 of the spacing from every point
} Measure;

static SandSurface *surface_of(const TestShape *shape, const char *name, SandMesh **mesh_out)
{
	SandError err = {0};
	SandSurface *surface = NULL;
	*mesh_out = test_shape_mesh(shape, name);
	CHECK_STATUS(sand_surface_create(*mesh_out, NULL, &surface, &err), SAND_OK, &err);
	return surface;
}

static double square_between(const float *a, const float *b)
{
	double x = (double)a[0] - (double)b[0], y = (double)a[1] - (double)b[1], z = (double)a[2] - (double)b[2];
	return x * x + y * y + z * z;
}

// Area-weighted random places, by a walk along the running area.
static double uncovered_share(const SandMesh *mesh, const SandPoints *points, double reach)
{
	enum
	{
		PROBE_COUNT = 4000
	};
	double sum = 0;
	int number = 0, missed = 0;
	for (int t = 0; t < mesh->triangle_count; ++t)
	{
		const float *corner[3];
		double u[3], v[3];
		for (int k = 0; k < 3; ++k)
		{
			corner[k] = mesh->vertices + 3 * mesh->triangles[3 * t + k];
		}
		for (int k = 0; k < 3; ++k)
		{
			u[k] = (double)corner[1][k] - (double)corner[0][k];
			v[k] = (double)corner[2][k] - (double)corner[0][k];
		}
		double n[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
		sum += 0.5 * sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
		for (; number < PROBE_COUNT && (number + 0.5) * mesh->area / PROBE_COUNT < sum; ++number)
		{
			double f = sand_random(3, 2 * (uint64_t)number), g = sand_random(3, 2 * (uint64_t)number + 1);
			float place[3];
			for (int k = 0; k < 3; ++k)
			{
				place[k] =
				    (float)((double)corner[0][k] + (f + g > 1 ? 1 - f : f) * u[k] + (f + g > 1 ? 1 - g : g) * v[k]);
			}
			bool is_covered = false;
			for (int i = 0; i < points->count && !is_covered; ++i)
			{
				is_covered = square_between(place, points->xyz + 3 * i) < reach * reach;
			}
			missed += !is_covered;
		}
	}
	return (double)missed / number;
}

static Measure measure(const SandSurface *surface, const SandPoints *points, double spacing, double offset)
{
	Measure m = {.least = INFINITY};
	for (int i = 0; i < points->count; ++i)
	{
		double nearest = INFINITY, place[3];
		for (int j = 0; j < points->count; ++j)
		{
			nearest = j == i ? nearest : fmin(nearest, square_between(points->xyz + 3 * i, points->xyz + 3 * j));
		}
		for (int k = 0; k < 3; ++k)
		{
			place[k] = points->xyz[3 * i + k];
		}
		double distance = offset == 0 ? fabs(sand_surface_distance(surface, place))
		                              : fabs(sand_surface_distance(surface, place) - offset);
		m.off = fmax(m.off, distance / spacing);
		m.least = fmin(m.least, sqrt(nearest) / spacing);
		m.mean += sqrt(nearest) / spacing / points->count;
	}
	m.uncovered = offset == 0 ? uncovered_share(sand_surface_mesh(surface), points, spacing / 1.2) : 0;
	return m;
}

static SandPoints spread(const SandSurface *surface, double spacing, double offset, uint64_t seed, SandPool *pool)
{
	SandError err = {0};
	SandPoints points;
	SandSpreadDesc desc = {.spacing = (float)spacing, .offset = (float)offset, .seed = seed};
	CHECK_STATUS(sand_spread_points(surface, &desc, pool, &points, &err), SAND_OK, &err);
	return points;
}

static void points_are_even_and_cover_every_shape(void)
{
	const float low[3] = {-1, -1, -1}, high[3] = {1, 1, 1};
	TestShape shapes[6] = {{0}};
	const char *names[6] = {"cube", "torus", "thin plate", "trefoil knot", "bumpy head", "needle star"};
	const double spacings[6] = {0.1, 0.1, 0.04, 0.05, 0.12, 0.06};
	test_shape_grid_box(&shapes[0], low, high, 4);
	test_shape_torus(&shapes[1], 1, 0.35, 80, 40);
	test_shape_plate(&shapes[2], 1, 1e-3, 8);
	test_shape_trefoil(&shapes[3], 1, 0.08, 300, 24);
	test_shape_bumpy(&shapes[4], 1, 96, 48);
	test_shape_needle_star(&shapes[5], 0.2, 1, 1);
	for (int i = 0; i < 6; ++i)
	{
		SandMesh *mesh;
		SandSurface *surface = surface_of(&shapes[i], names[i], &mesh);
		for (uint64_t seed = 0; seed < 3; ++seed)
		{
			SandPoints points = spread(surface, spacings[i], 0, seed, NULL);
			Measure m = measure(surface, &points, spacings[i], 0);
			printf("%s: %d points, nearest neighbours %.3f of the spacing at least, %.3f in the mean, evenness %.3f, "
			       "uncovered %.2f %%\n",
			       names[i], points.count, m.least, m.mean, m.least / m.mean, 100 * m.uncovered);
			CHECK(m.least / m.mean >= 0.92);
			CHECK(m.uncovered < 0.005);
			CHECK(m.off < 1e-5);
			sand_points_free(&points);
		}
		sand_surface_destroy(surface);
		sand_mesh_destroy(mesh);
		test_shape_free(&shapes[i]);
	}
}

static void points_go_to_an_offset_inside_and_outside(void)
{
	TestShape shape = {0};
	SandMesh *mesh;
	test_shape_torus(&shape, 1, 0.35, 80, 40);
	SandSurface *surface = surface_of(&shape, "torus", &mesh);
	int counts[3];
	const double offsets[3] = {-0.05, 0, 0.05};
	for (int i = 0; i < 3; ++i)
	{
		SandPoints points = spread(surface, 0.1, offsets[i], 1, NULL);
		Measure m = measure(surface, &points, 0.1, offsets[i]);
		printf("offset %g m: %d points, evenness %.3f, off the level by %.1e spacings\n", offsets[i], points.count,
		       m.least / m.mean, m.off);
		CHECK(m.off < 0.01);
		CHECK(m.least / m.mean >= 0.92);
		CHECK_NEAR(m.mean, 1, 0.03);
		counts[i] = points.count;
		sand_points_free(&points);
	}
	// The area of a torus goes with its tube's radius.
	CHECK(counts[0] < counts[1] && counts[1] < counts[2]);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void open_meshes_are_covered_to_their_rim(void)
{
	TestShape shape = {0};
	SandMesh *mesh;
	test_shape_open_cylinder(&shape, 0.5f, 1, 64);
	SandSurface *surface = surface_of(&shape, "pipe", &mesh);
	SandPoints points = spread(surface, 0.08, 0, 1, NULL);
	Measure m = measure(surface, &points, 0.08, 0);
	printf("pipe: %d points, evenness %.3f, uncovered %.2f %%\n", points.count, m.least / m.mean, 100 * m.uncovered);
	CHECK(m.least / m.mean >= 0.92);
	CHECK(m.uncovered < 0.005);
	sand_points_free(&points);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void every_thread_count_gives_the_same_points_and_seeds_differ(void)
{
	TestShape shape = {0};
	SandMesh *mesh;
	test_shape_bumpy(&shape, 1, 96, 48);
	SandSurface *surface = surface_of(&shape, "head", &mesh);
	uint64_t hashes[4];
	for (int run = 0; run < 4; ++run)
	{
		SandError err = {0};
		SandPool *pool = NULL;
		CHECK_STATUS(sand_pool_create(run < 3 ? run + 1 : 1, &pool, &err), SAND_OK, &err);
		SandPoints points = spread(surface, 0.05, 0, run < 3 ? 7 : 8, pool);
		hashes[run] = sand_hash64(points.xyz, 3 * (size_t)points.count * sizeof(float), (uint64_t)points.count);
		sand_points_free(&points);
		sand_pool_destroy(pool);
	}
	CHECK(hashes[0] == hashes[1] && hashes[1] == hashes[2]);
	CHECK(hashes[3] != hashes[0]);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void what_cannot_be_is_refused_in_one_sentence(void)
{
	TestShape shape = {0};
	SandMesh *mesh;
	const float low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
	test_shape_box(&shape, low, high, false);
	SandSurface *surface = surface_of(&shape, "Crate", &mesh);
	SandCancel cancel = {0};
	atomic_store(&cancel.is_raised, 1);
	const struct
	{
		SandSpreadDesc desc;
		SandStatus status;
		const char *part;
	} cases[] = {
	    {{.spacing = 0}, SAND_ERROR_ARGUMENT, "0 m"},
	    {{.spacing = -1}, SAND_ERROR_ARGUMENT, "-1 m"},
	    {{.spacing = NAN}, SAND_ERROR_ARGUMENT, "nan m"},
	    {{.spacing = 1e13f}, SAND_ERROR_ARGUMENT, "only 1e-12 to 1e+12 m"},
	    {{.spacing = 5}, SAND_ERROR_ARGUMENT, "only 1.73205 m across"},
	    {{.spacing = 1e-5f}, SAND_ERROR_ARGUMENT, "points, more than the limit"},
	    {{.spacing = 0.1f, .offset = INFINITY}, SAND_ERROR_ARGUMENT, "Offset is inf m"},
	    {{.spacing = 0.1f, .offset = -0.6f}, SAND_ERROR_MESH, "0.6 m inside"},
	    {{.spacing = 0.1f, .cancel = &cancel}, SAND_CANCELLED, "Cancelled"},
	};
	size_t before = sand_alloc_bytes();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
	{
		SandError err = {0};
		SandPoints points;
		CHECK_STATUS(sand_spread_points(surface, &cases[i].desc, NULL, &points, &err), cases[i].status, &err);
		CHECK_CONTAINS(err.message, cases[i].part);
		CHECK(points.xyz == NULL && points.count == 0);
		CHECK_INT(sand_alloc_bytes(), before);
	}
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void failed_allocations_are_reported(void)
{
	TestShape shape = {0};
	SandMesh *mesh;
	const float low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
	test_shape_box(&shape, low, high, false);
	SandSurface *surface = surface_of(&shape, "cube", &mesh);
	size_t before = sand_alloc_bytes();
	int failure_count = 0;
	for (uint64_t countdown = 1; countdown < 100; ++countdown)
	{
		SandError err = {0};
		SandPoints points;
		SandSpreadDesc desc = {.spacing = 0.2f};
		sand_alloc_fail_after(countdown, false);
		SandStatus status = sand_spread_points(surface, &desc, NULL, &points, &err);
		sand_alloc_fail_after(0, false);
		if (status == SAND_OK)
		{
			sand_points_free(&points);
			break;
		}
		++failure_count;
		CHECK_STATUS(status, SAND_ERROR_MEMORY, &err);
		CHECK(points.xyz == NULL);
		CHECK_INT(sand_alloc_bytes(), before);
	}
	CHECK(failure_count >= 13);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

void test_spread(void)
{
	RUN(points_are_even_and_cover_every_shape);
	RUN(points_go_to_an_offset_inside_and_outside);
	RUN(open_meshes_are_covered_to_their_rim);
	RUN(every_thread_count_gives_the_same_points_and_seeds_differ);
	RUN(what_cannot_be_is_refused_in_one_sentence);
	RUN(failed_allocations_are_reported);
}
