// Tests of surface: distances, signs and winding numbers against sums over all triangles, in doubles.
#include "brute.h"
#include "shapes.h"
#include "surface.h"

#include <math.h>

enum
{
	PLACE_COUNT = 10000
};

static double extent_of(const SandMesh *mesh)
{
	double extent = 0;
	for (int k = 0; k < 3; ++k)
	{
		extent = fmax(extent, (double)mesh->bounds_max[k] - (double)mesh->bounds_min[k]);
	}
	return extent;
}

// A place in the mesh's box and a fifth more, or, every second time, within a hundredth of the extent of a vertex.
static void place_near(const SandMesh *mesh, int number, double place[3])
{
	double extent = extent_of(mesh);
	int vertex = (int)(sand_random(5, (uint64_t)number) * mesh->vertex_count);
	for (int k = 0; k < 3; ++k)
	{
		double u = sand_random(9, 3 * (uint64_t)number + (uint64_t)k), low = mesh->bounds_min[k],
		       high = mesh->bounds_max[k];
		place[k] = number % 2 == 0 ? low - 0.1 * extent + u * (high - low + 0.2 * extent)
		                           : (double)mesh->vertices[3 * vertex + k] + 0.02 * extent * (u - 0.5);
	}
}

static SandSurface *surface_of(const SandMesh *mesh, SandPool *pool)
{
	SandError err = {0};
	SandSurface *surface = NULL;
	CHECK_STATUS(sand_surface_create(mesh, pool, &surface, &err), SAND_OK, &err);
	return surface;
}

static void check_distances(const char *name, const TestShape *shape)
{
	SandMesh *mesh = test_shape_mesh(shape, name);
	SandSurface *surface = surface_of(mesh, NULL);
	double extent = extent_of(mesh), worst = 0, worst_point = 0;
	int sign_faults = 0, inside_count = 0;
	for (int i = 0; i < PLACE_COUNT; ++i)
	{
		double place[3], expected, gap[3];
		SandNearest nearest;
		place_near(mesh, i, place);
		expected = test_distance(mesh, place);
		double signed_distance = sand_surface_distance(surface, place);
		worst = fmax(worst, fabs(fabs(signed_distance) - expected));
		CHECK(sand_surface_nearest(surface, place, INFINITY, &nearest));
		test_subtract(place, nearest.point, gap);
		double corners[3][3];
		test_corners(mesh, nearest.triangle, corners);
		worst_point = fmax(worst_point, fmax(fabs(sqrt(test_dot(gap, gap)) - expected),
		                                     test_triangle_distance(nearest.point, corners)));
		// A place on the surface has no side.
		bool is_inside = test_winding(mesh, place) > 0.5;
		inside_count += is_inside;
		sign_faults += expected > 1e-6 * extent && (signed_distance < 0) != is_inside;
	}
	printf("%s: %d triangles, distance within %.1e of the extent, closest point within %.1e, %d of %d inside, %d signs "
	       "wrong\n",
	       name, mesh->triangle_count, worst / extent, worst_point / extent, inside_count, PLACE_COUNT, sign_faults);
	CHECK(sand_surface_is_clean(surface));
	CHECK(worst <= 1e-5 * extent);
	CHECK(worst_point <= 1e-5 * extent);
	CHECK_INT(sign_faults, 0);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
}

static void distances_and_signs_equal_brute_force(void)
{
	const float low[3] = {-1, -1, -1}, high[3] = {1, 1, 1};
	TestShape shapes[6] = {{0}};
	const char *names[6] = {"cube", "torus", "thin plate", "trefoil knot", "bumpy head", "needle star"};
	test_shape_grid_box(&shapes[0], low, high, 3);
	test_shape_torus(&shapes[1], 1, 0.35, 28, 14);
	test_shape_plate(&shapes[2], 1, 1e-3, 6);
	test_shape_trefoil(&shapes[3], 1, 0.08, 90, 7);
	test_shape_bumpy(&shapes[4], 1, 32, 16);
	test_shape_needle_star(&shapes[5], 0.2, 1, 2);
	for (int i = 0; i < 6; ++i)
	{
		check_distances(names[i], &shapes[i]);
		test_shape_free(&shapes[i]);
	}
}

static void winding_numbers_equal_the_sum_over_all_triangles(void)
{
	TestShape shape = {0};
	test_shape_trefoil(&shape, 1, 0.08, 300, 16);
	SandMesh *mesh = test_shape_mesh(&shape, "knot");
	SandSurface *surface = surface_of(mesh, NULL);
	double worst = 0;
	for (int i = 0; i < 1000; ++i)
	{
		double place[3];
		place_near(mesh, i, place);
		worst = fmax(worst, fabs(sand_surface_winding(surface, place) - test_winding(mesh, place)));
	}
	printf("winding number within %.1e of the sum\n", worst);
	CHECK(worst < 0.01);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void a_mesh_far_from_the_origin_keeps_its_distances(void)
{
	TestShape shape = {0};
	const float low[3] = {999999, 2000000, -1000000}, high[3] = {1000001, 2000002, -999998};
	test_shape_box(&shape, low, high, false);
	SandMesh *mesh = test_shape_mesh(&shape, "far cube");
	SandSurface *surface = surface_of(mesh, NULL);
	const double middle[3] = {1000000, 2000001, -999999}, above[3] = {1000000, 2000001, -999997};
	CHECK_NEAR(sand_surface_distance(surface, middle), -1, 1e-9);
	CHECK_NEAR(sand_surface_distance(surface, above), 1, 1e-9);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

// Beyond the range of squares of floats, and where rounding takes all difference between the faces.
static void places_and_meshes_of_any_size_have_distances(void)
{
	const double sizes[] = {1e-30, 1e-22, 1e-10, 1, 1e10, 1e18, 1e20, 1e30, 1e37};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i)
	{
		float side = (float)sizes[i];
		TestShape shape = {0};
		test_shape_box(&shape, (const float[3]){0, 0, 0}, (const float[3]){side, side, side}, false);
		SandMesh *mesh = test_shape_mesh(&shape, "cube");
		SandSurface *surface = surface_of(mesh, NULL);
		double size = (double)side;
		const double in[3] = {0.5 * size, 0.5 * size, 0.25 * size}, out[3] = {2 * size, 0.5 * size, 0.5 * size};
		CHECK_NEAR(sand_surface_distance(surface, in) / size, -0.25, 1e-6);
		CHECK_NEAR(sand_surface_distance(surface, out) / size, 1, 1e-6);
		CHECK(sand_surface_is_inside(surface, in) && !sand_surface_is_inside(surface, out));
		for (double far = 1e3; far < 1e36; far *= 1e3)
		{
			const double places[2][3] = {{far * size, 0, 0}, {-far * size, far * size, far * size}};
			CHECK_NEAR(sand_surface_distance(surface, places[0]) / (far * size), 1, 2e-3);
			CHECK_NEAR(sand_surface_distance(surface, places[1]) / (far * size), sqrt(3), 2e-3);
		}
		CHECK(isnan(sand_surface_distance(surface, (const double[3]){0, (double)NAN, 0})));
		CHECK(isnan(sand_surface_distance(surface, (const double[3]){(double)NAN, (double)NAN, (double)NAN})));
		CHECK(!sand_surface_is_inside(surface, (const double[3]){0, (double)NAN, 0}));
		CHECK_NEAR(sand_surface_winding(surface, (const double[3]){1e30 * size, 1e30 * size, 1e30 * size}), 0, 1e-6);
		CHECK_NEAR(sand_surface_winding(surface, (const double[3]){-1e30, -1e30, -1e30}), 0, 1e-6);
		sand_surface_destroy(surface);
		sand_mesh_destroy(mesh);
		test_shape_free(&shape);
	}
}

static void a_mesh_turned_inside_out_has_its_inside_inside(void)
{
	TestShape shape = {0};
	const float low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
	test_shape_box(&shape, low, high, true);
	SandMesh *mesh = test_shape_mesh(&shape, "turned cube");
	SandSurface *surface = surface_of(mesh, NULL);
	const double in[3] = {0.5, 0.5, 0.25}, out[3] = {0.5, 0.5, 1.5};
	SandNearest nearest;
	CHECK(sand_surface_is_clean(surface));
	CHECK_NEAR(sand_surface_distance(surface, in), -0.25, 1e-12);
	CHECK_NEAR(sand_surface_distance(surface, out), 0.5, 1e-12);
	CHECK_NEAR(sand_surface_winding(surface, in), 1, 1e-2);
	CHECK(sand_surface_nearest(surface, out, INFINITY, &nearest));
	CHECK_NEAR(nearest.normal[2], 1, 1e-12);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

// An open bottle, overlapping boxes, nested shells: the inside is what the eye sees.
static void imperfect_meshes_are_told_by_winding_number_and_say_so(void)
{
	TestShape bottle = {0}, boxes = {0};
	test_shape_bottle(&bottle, 0.5, 2, 48);
	SandMesh *mesh = test_shape_mesh(&bottle, "bottle");
	SandSurface *surface = surface_of(mesh, NULL);
	CHECK(!sand_surface_is_clean(surface));
	CHECK_CONTAINS(sand_surface_warning(surface), "bottle");
	CHECK_CONTAINS(sand_surface_warning(surface), "open edges");
	double middle[3], aside[3];
	for (int k = 0; k < 3; ++k)
	{
		middle[k] = 0.5 * ((double)mesh->bounds_min[k] + (double)mesh->bounds_max[k]);
		aside[k] = middle[k] + (k == 0 ? 2 : 0);
	}
	middle[2] = (double)mesh->bounds_min[2] + 0.3;
	CHECK(sand_surface_is_inside(surface, middle));
	CHECK(!sand_surface_is_inside(surface, aside));
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&bottle);

	const float low[3] = {0, 0, 0}, high[3] = {2, 2, 2}, low_inner[3] = {1, 1, 1}, high_inner[3] = {3, 3, 3};
	test_shape_box(&boxes, low, high, false);
	test_shape_box(&boxes, low_inner, high_inner, false);
	mesh = test_shape_mesh(&boxes, "two boxes");
	surface = surface_of(mesh, NULL);
	CHECK(!sand_surface_is_clean(surface));
	CHECK_CONTAINS(sand_surface_warning(surface), "overlaps itself");
	const double in_both[3] = {1.5, 1.5, 1.5}, in_one[3] = {1.1, 0.5, 0.5}, in_none[3] = {0.5, 2.5, 0.5};
	CHECK(sand_surface_is_inside(surface, in_both));
	CHECK(sand_surface_is_inside(surface, in_one));
	CHECK(!sand_surface_is_inside(surface, in_none));
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&boxes);
}

static void a_cavity_is_outside(void)
{
	TestShape shape = {0};
	const float low[3] = {0, 0, 0}, high[3] = {4, 4, 4}, low_inner[3] = {1, 1, 1}, high_inner[3] = {3, 3, 3};
	test_shape_box(&shape, low, high, false);
	test_shape_box(&shape, low_inner, high_inner, true);
	SandMesh *mesh = test_shape_mesh(&shape, "shell");
	SandSurface *surface = surface_of(mesh, NULL);
	const double in_wall[3] = {0.5, 2, 2}, in_cavity[3] = {2, 2, 2};
	CHECK(sand_surface_is_clean(surface));
	CHECK_NEAR(sand_surface_distance(surface, in_wall), -0.5, 1e-12);
	CHECK_NEAR(sand_surface_distance(surface, in_cavity), 1, 1e-12);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void reach_bounds_the_search_and_snap_agrees_with_nearest(void)
{
	TestShape shape = {0};
	test_shape_torus(&shape, 1, 0.35, 60, 30);
	SandMesh *mesh = test_shape_mesh(&shape, "torus");
	SandSurface *surface = surface_of(mesh, NULL);
	int found_faults = 0, snap_faults = 0;
	for (int i = 0; i < 3000; ++i)
	{
		double place[3], moved[3], gap[3];
		SandNearest nearest;
		place_near(mesh, i, place);
		double distance = test_distance(mesh, place), reach = 0.05;
		found_faults += sand_surface_nearest(surface, place, reach, &nearest) != (distance < reach);
		memcpy(moved, place, sizeof(moved));
		int triangle = -1;
		bool is_found = sand_surface_snap(surface, moved, reach, &triangle);
		test_subtract(moved, place, gap);
		snap_faults += fabs(distance - reach) > 1e-5 && is_found != (distance < reach);
		snap_faults += is_found && fabs(sqrt(test_dot(gap, gap)) - distance) > 1e-5;
	}
	CHECK_INT(found_faults, 0);
	CHECK_INT(snap_faults, 0);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

// One triangle, and triangles without area: no inside, but a distance.
static void poor_meshes_have_distances(void)
{
	const float vertices[] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0.5f, 0, 0};
	const int32_t triangles[] = {0, 1, 2, 0, 1, 3, 0, 0, 1};
	SandError err = {0};
	for (int count = 1; count <= 3; ++count)
	{
		SandMesh *mesh = NULL;
		CHECK_STATUS(sand_mesh_create("poor", vertices, 4, triangles, count, &mesh, &err), SAND_OK, &err);
		SandSurface *surface = surface_of(mesh, NULL);
		const double above[3] = {0.2, 0.2, 0.75}, aside[3] = {-1, 0, 0}, on[3] = {0.25, 0.25, 0};
		CHECK_NEAR(sand_surface_distance(surface, above), 0.75, 1e-12);
		CHECK_NEAR(sand_surface_distance(surface, aside), 1, 1e-12);
		CHECK_NEAR(sand_surface_distance(surface, on), 0, 1e-12);
		sand_surface_destroy(surface);
		sand_mesh_destroy(mesh);
	}
}

static void every_thread_count_builds_the_same_surface(void)
{
	TestShape shape = {0};
	test_shape_bumpy(&shape, 1, 100, 60);
	SandMesh *mesh = test_shape_mesh(&shape, "head");
	uint64_t hashes[3];
	for (int threads = 1; threads <= 3; ++threads)
	{
		SandError err = {0};
		SandPool *pool = NULL;
		CHECK_STATUS(sand_pool_create(threads, &pool, &err), SAND_OK, &err);
		SandSurface *surface = surface_of(mesh, pool);
		uint64_t hash = sand_hash64(sand_surface_order(surface), (size_t)mesh->triangle_count * sizeof(int32_t), 0);
		for (int i = 0; i < 1000; ++i)
		{
			double place[3];
			place_near(mesh, i, place);
			double values[2] = {sand_surface_distance(surface, place), sand_surface_winding(surface, place)};
			hash = sand_hash64(values, sizeof(values), hash);
		}
		hashes[threads - 1] = hash;
		sand_surface_destroy(surface);
		sand_pool_destroy(pool);
	}
	CHECK(hashes[0] == hashes[1] && hashes[1] == hashes[2]);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void failed_allocations_are_reported(void)
{
	TestShape shape = {0};
	const float low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
	test_shape_box(&shape, low, high, false);
	SandMesh *mesh = test_shape_mesh(&shape, "cube");
	size_t before = sand_alloc_bytes();
	int failure_count = 0;
	for (uint64_t countdown = 1; countdown < 100; ++countdown)
	{
		SandError err = {0};
		SandSurface *surface = NULL;
		sand_alloc_fail_after(countdown, false);
		SandStatus status = sand_surface_create(mesh, NULL, &surface, &err);
		sand_alloc_fail_after(0, false);
		if (status == SAND_OK)
		{
			sand_surface_destroy(surface);
			break;
		}
		++failure_count;
		CHECK_STATUS(status, SAND_ERROR_MEMORY, &err);
		CHECK(surface == NULL);
		CHECK_INT(sand_alloc_bytes(), before);
	}
	CHECK(failure_count >= 8);
	CHECK_INT(sand_alloc_bytes(), before);
	sand_surface_destroy(NULL);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

void test_surface(void)
{
	RUN(distances_and_signs_equal_brute_force);
	RUN(winding_numbers_equal_the_sum_over_all_triangles);
	RUN(a_mesh_far_from_the_origin_keeps_its_distances);
	RUN(places_and_meshes_of_any_size_have_distances);
	RUN(a_mesh_turned_inside_out_has_its_inside_inside);
	RUN(imperfect_meshes_are_told_by_winding_number_and_say_so);
	RUN(a_cavity_is_outside);
	RUN(reach_bounds_the_search_and_snap_agrees_with_nearest);
	RUN(poor_meshes_have_distances);
	RUN(every_thread_count_builds_the_same_surface);
	RUN(failed_allocations_are_reported);
}
