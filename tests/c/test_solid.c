// Tests of solid: spheres that weigh, turn and reach like their mesh.
#include "shapes.h"
#include "solid.h"

#include <math.h>
#include <stdatomic.h>

static SandSurface *surface_of(TestShape *shape, const char *name, SandMesh **mesh_out)
{
	SandError err = {0};
	SandSurface *surface = NULL;
	*mesh_out = test_shape_mesh(shape, name);
	CHECK_STATUS(sand_surface_create(*mesh_out, NULL, &surface, &err), SAND_OK, &err);
	test_shape_free(shape);
	return surface;
}

static void bodies_stand_for_their_meshes(void)
{
	enum
	{
		SHAPE_COUNT = 6
	};
	const float low[3] = {-1, -1, -1}, high[3] = {1, 1, 1};
	const char *names[SHAPE_COUNT] = {"cube", "torus", "trefoil knot", "bumpy head", "thick plate", "octahedron"};
	const float radii[SHAPE_COUNT] = {0.08f, 0.05f, 0.02f, 0.08f, 0.03f, 0.06f};
	TestShape shapes[SHAPE_COUNT] = {{0}};
	test_shape_grid_box(&shapes[0], low, high, 4);
	test_shape_torus(&shapes[1], 1, 0.35, 60, 30);
	test_shape_trefoil(&shapes[2], 1, 0.08, 200, 16);
	test_shape_bumpy(&shapes[3], 1, 64, 32);
	test_shape_plate(&shapes[4], 1, 0.2, 4);
	test_shape_octahedron(&shapes[5], high);
	for (int i = 0; i < SHAPE_COUNT; ++i)
	{
		SandError err = {0};
		SandMesh *mesh;
		SandSurface *surface = surface_of(&shapes[i], names[i], &mesh);
		for (uint64_t seed = 0; seed < 2; ++seed)
		{
			SandPoints points;
			float radius;
			SandPackingDesc desc = {.kind = SAND_PACKING_RELAXED, .radius = radii[i], .packing = 0.6f, .seed = seed};
			CHECK_STATUS(sand_solid_fill(surface, &desc, NULL, &points, &radius, &err), SAND_OK, &err);
			SandFitDesc fit_desc = {
			    .centres = points.xyz, .radius = radius, .sphere_count = points.count, .is_filling = true};
			SandFit fit;
			CHECK_STATUS(sand_fit_measure(surface, &fit_desc, NULL, &fit, &err), SAND_OK, &err);
			printf("%s: %d spheres grown by %.3f, volume error %.1e, inertia error %.1e (%.1e with equal masses), "
			       "Hausdorff %.2f radii\n",
			       names[i], fit.sphere_count, (double)(radius / radii[i]), fit.volume_error, fit.inertia_error,
			       fit.inertia_error_raw, fit.hausdorff / (double)radius);
			CHECK(fit.volume_error < 0.01);
			CHECK(fit.inertia_error < 0.01);
			CHECK(fit.hausdorff <= (double)radius);
			sand_points_free(&points);
		}
		sand_surface_destroy(surface);
		sand_mesh_destroy(mesh);
	}
}

static void every_thread_count_gives_the_same_spheres(void)
{
	TestShape shape = {0};
	SandMesh *mesh;
	test_shape_bumpy(&shape, 1, 48, 24);
	SandSurface *surface = surface_of(&shape, "head", &mesh);
	uint64_t hashes[3];
	for (int threads = 1; threads <= 3; ++threads)
	{
		SandError err = {0};
		SandPool *pool = NULL;
		SandPoints points;
		float radius;
		SandPackingDesc desc = {.kind = SAND_PACKING_RELAXED, .radius = 0.08f};
		CHECK_STATUS(sand_pool_create(threads, &pool, &err), SAND_OK, &err);
		CHECK_STATUS(sand_solid_fill(surface, &desc, pool, &points, &radius, &err), SAND_OK, &err);
		hashes[threads - 1] = sand_hash64(points.xyz, 3 * (size_t)points.count * sizeof(float), 0) ^
		                      sand_hash64(&radius, sizeof(radius), 0);
		sand_points_free(&points);
		sand_pool_destroy(pool);
	}
	CHECK(hashes[0] == hashes[1] && hashes[1] == hashes[2]);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
}

static void what_cannot_be_is_refused(void)
{
	TestShape shape = {0}, pipe = {0};
	SandMesh *mesh, *open_mesh;
	test_shape_box(&shape, (const float[3]){0, 0, 0}, (const float[3]){1, 1, 1}, false);
	test_shape_open_cylinder(&pipe, 0.5f, 1, 32);
	SandSurface *surface = surface_of(&shape, "Crate", &mesh), *open = surface_of(&pipe, "Pipe", &open_mesh);
	SandCancel cancel = {0};
	atomic_store(&cancel.is_raised, 1);
	const struct
	{
		const SandSurface *surface;
		SandPackingDesc desc;
		SandStatus status;
		const char *part;
	} cases[] = {
	    {open, {.radius = 0.1f}, SAND_ERROR_MESH, "Pipe"},
	    {surface, {.radius = 2}, SAND_ERROR_MESH, "Crate"},
	    {surface, {.radius = -1}, SAND_ERROR_ARGUMENT, "-1"},
	    {surface, {.radius = 0.1f, .cancel = &cancel}, SAND_CANCELLED, ""},
	};
	size_t before = sand_alloc_bytes();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
	{
		SandError err = {0};
		SandPoints points;
		float radius;
		CHECK_STATUS(sand_solid_fill(cases[i].surface, &cases[i].desc, NULL, &points, &radius, &err), cases[i].status,
		             &err);
		CHECK_CONTAINS(err.message, cases[i].part);
		CHECK(points.xyz == NULL && points.count == 0);
		CHECK_INT(sand_alloc_bytes(), before);
	}
	sand_surface_destroy(surface);
	sand_surface_destroy(open);
	sand_mesh_destroy(mesh);
	sand_mesh_destroy(open_mesh);
}

static void failed_allocations_are_reported(void)
{
	TestShape shape = {0};
	SandMesh *mesh;
	test_shape_box(&shape, (const float[3]){0, 0, 0}, (const float[3]){1, 1, 1}, false);
	SandSurface *surface = surface_of(&shape, "cube", &mesh);
	size_t before = sand_alloc_bytes();
	int failure_count = 0;
	// Not every one: those of packing, spread and fit are tried by their own tests.
	for (uint64_t countdown = 1; countdown < 1000; countdown += countdown < 8 ? 1 : 9)
	{
		SandError err = {0};
		SandPoints points;
		float radius;
		SandPackingDesc desc = {.radius = 0.1f};
		sand_alloc_fail_after(countdown, false);
		SandStatus status = sand_solid_fill(surface, &desc, NULL, &points, &radius, &err);
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
	CHECK(failure_count > 10);
	sand_surface_destroy(surface);
	sand_mesh_destroy(mesh);
}

void test_solid(void)
{
	RUN(bodies_stand_for_their_meshes);
	RUN(every_thread_count_gives_the_same_spheres);
	RUN(what_cannot_be_is_refused);
	RUN(failed_allocations_are_reported);
}
