// Tests of clump: overlap against solids known by formula, counted on another grid than the fitter's own; volume,
// growth with the number of spheres, open and flat meshes, refusals, cancelling, failed allocations, threads.
#include "clump.h"
#include "shapes.h"

typedef bool Inside(const double p[3]);

typedef struct Body
{
	SandMesh *mesh;
	SandSurface *surface;
} Body;

static Body body_of(TestShape *shape)
{
	Body body = {test_shape_mesh(shape, "body"), NULL};
	SandError err = {0};
	CHECK_STATUS(sand_surface_create(body.mesh, NULL, &body.surface, &err), SAND_OK, &err);
	test_shape_free(shape);
	return body;
}

static void body_free(Body *body)
{
	sand_surface_destroy(body->surface);
	sand_mesh_destroy(body->mesh);
}

static bool is_in_ball(const double p[3])
{
	return p[0] * p[0] + p[1] * p[1] + p[2] * p[2] < 1;
}

static Body ball(void)
{
	TestShape shape = {0};
	test_shape_icosphere(&shape, 1, 4);
	return body_of(&shape);
}

static bool is_in_cube(const double p[3])
{
	return fabs(p[0]) < 0.5 && fabs(p[1]) < 0.5 && fabs(p[2]) < 0.5;
}

static Body cube(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, (const float[3]){-0.5F, -0.5F, -0.5F}, (const float[3]){0.5F, 0.5F, 0.5F}, false);
	return body_of(&shape);
}

// Radius 0.5, three diameters long.
static bool is_in_capsule(const double p[3])
{
	double z = fmax(0, fabs(p[2]) - 1);
	return p[0] * p[0] + p[1] * p[1] + z * z < 0.25;
}

static Body capsule(void)
{
	TestShape shape = {0};
	test_shape_uv_sphere(&shape, 0.5F, 48, 32);
	for (int i = 0; i < shape.vertex_count; ++i)
	{
		// The ring on the equator goes up with the upper half.
		shape.vertices[3 * (size_t)i + 2] += shape.vertices[3 * (size_t)i + 2] < -1e-4F ? -1.0F : 1.0F;
	}
	return body_of(&shape);
}

static bool is_in_ell(const double p[3])
{
	return p[0] > 0 && p[1] > 0 && p[2] > 0 && p[0] < 2 && p[1] < 2 && p[2] < 1 && !(p[0] > 1 && p[1] > 1);
}

static Body ell(void)
{
	static const double outline[6][2] = {{0, 0}, {2, 0}, {2, 1}, {1, 1}, {1, 2}, {0, 2}};
	static const int faces[4][3] = {{0, 1, 3}, {1, 2, 3}, {0, 3, 4}, {0, 4, 5}};
	TestShape shape = {0};
	for (int i = 0; i < 12; ++i)
	{
		test_shape_vertex(&shape, outline[i % 6][0], outline[i % 6][1], i / 6);
	}
	for (int i = 0; i < 4; ++i)
	{
		test_shape_triangle(&shape, faces[i][0], faces[i][2], faces[i][1]);
		test_shape_triangle(&shape, 6 + faces[i][0], 6 + faces[i][1], 6 + faces[i][2]);
	}
	for (int i = 0; i < 6; ++i)
	{
		int next = (i + 1) % 6;
		test_shape_triangle(&shape, i, next, 6 + next);
		test_shape_triangle(&shape, i, 6 + next, 6 + i);
	}
	return body_of(&shape);
}

static bool is_in_tetrahedron(const double p[3])
{
	return p[0] + p[1] - p[2] < 1 && p[0] - p[1] + p[2] < 1 && -p[0] + p[1] + p[2] < 1 && -p[0] - p[1] - p[2] < 1;
}

static Body tetrahedron(void)
{
	TestShape shape = {0};
	test_shape_vertex(&shape, 1, 1, 1);
	test_shape_vertex(&shape, 1, -1, -1);
	test_shape_vertex(&shape, -1, 1, -1);
	test_shape_vertex(&shape, -1, -1, 1);
	test_shape_triangle(&shape, 0, 1, 2);
	test_shape_triangle(&shape, 0, 2, 3);
	test_shape_triangle(&shape, 0, 3, 1);
	test_shape_triangle(&shape, 1, 3, 2);
	return body_of(&shape);
}

static bool is_in_spheres(const SandClump *clump, const double p[3])
{
	for (int i = 0; i < clump->sphere_count; ++i)
	{
		double square = 0;
		for (int k = 0; k < 3; ++k)
		{
			double d = p[k] - (double)clump->centres[3 * i + k];
			square += d * d;
		}
		if (square < (double)clump->radii[i] * (double)clump->radii[i])
		{
			return true;
		}
	}
	return false;
}

// Overlap and the spheres' volume over the solid's, counted in a box of `side` cells a side, a third wider than the
// mesh. A side of eight cells, or a multiple, puts the mesh's bounds between two cells.
static double counted_overlap(const SandMesh *mesh, Inside *inside, const SandClump *clump, int side, double *volumes)
{
	int64_t both = 0, either = 0, solid = 0, held = 0;
	for (int cell = 0; cell < side * side * side; ++cell)
	{
		const int at[3] = {cell % side, cell / side % side, cell / side / side};
		double p[3];
		for (int k = 0; k < 3; ++k)
		{
			double low = (double)mesh->bounds_min[k], high = (double)mesh->bounds_max[k];
			p[k] = low + (high - low) * ((at[k] + 0.5) / side * 4 / 3 - 1.0 / 6);
		}
		bool is_solid = inside(p), is_held = is_in_spheres(clump, p);
		both += is_solid && is_held;
		either += is_solid || is_held;
		solid += is_solid;
		held += is_held;
	}
	*volumes = (double)held / (double)solid;
	return (double)both / (double)either;
}

static SandClump fit(const Body *body, int sphere_count)
{
	SandClump clump;
	SandError err = {0};
	SandClumpDesc desc = {.sphere_count = sphere_count};
	CHECK_STATUS(sand_clump_fit(body->surface, &desc, NULL, &clump, &err), SAND_OK, &err);
	return clump;
}

// Fits and checks by counting. Returns the overlap that was counted.
static double check_clump(Body body, Inside *inside, int sphere_count, double overlap_least)
{
	SandClump clump = fit(&body, sphere_count);
	double volumes, overlap = counted_overlap(body.mesh, inside, &clump, 64, &volumes);
	CHECK(clump.sphere_count >= 1 && clump.sphere_count <= sphere_count);
	CHECK(overlap > overlap_least);
	CHECK_NEAR(clump.overlap, overlap, 0.01);
	CHECK_NEAR(volumes, 1, 0.015);
	CHECK(clump.fit.volume_error < 0.001);
	CHECK_INT(clump.fit.sphere_count, clump.sphere_count);
	body_free(&body);
	return overlap;
}

static void a_ball_is_a_ball(void)
{
	check_clump(ball(), is_in_ball, 2, 0.97);
}

static void cubes_are_filled(void)
{
	check_clump(cube(), is_in_cube, 8, 0.82);
	check_clump(cube(), is_in_cube, 27, 0.89);
}

static void a_capsule_is_a_row_of_spheres(void)
{
	check_clump(capsule(), is_in_capsule, 5, 0.91);
}

static void corners_and_edges_are_followed(void)
{
	check_clump(ell(), is_in_ell, 12, 0.81);
	check_clump(tetrahedron(), is_in_tetrahedron, 10, 0.74);
}

static void more_spheres_are_more_alike(void)
{
	static const int counts[] = {2, 4, 8, 16, 32, 50};
	double last = 0;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i)
	{
		double overlap = check_clump(tetrahedron(), is_in_tetrahedron, counts[i], last);
		last = overlap;
	}
	CHECK(last > 0.87);
}

static void eight_is_what_zero_means(void)
{
	Body body = tetrahedron();
	SandClump zero = fit(&body, 0), eight = fit(&body, 8);
	CHECK_INT(zero.sphere_count, 8);
	CHECK(memcmp(zero.centres, eight.centres, sizeof(zero.centres)) == 0);
	body_free(&body);
}

static void fewer_spheres_do_where_more_say_nothing(void)
{
	Body body = ball();
	SandClump clump = fit(&body, 40);
	CHECK(clump.sphere_count < 20);
	CHECK(clump.overlap > 0.97);
	body_free(&body);
}

static void far_and_turned_meshes_are_no_worse(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, (const float[3]){-0.5F, -0.5F, -0.5F}, (const float[3]){0.5F, 0.5F, 0.5F}, true);
	test_shape_move(&shape, 1000, -2000, 500);
	Body body = body_of(&shape);
	SandClump clump = fit(&body, 8);
	CHECK(clump.overlap > 0.81);
	CHECK_NEAR(clump.fit.sphere_volume, 1, 0.003);
	for (int i = 0; i < clump.sphere_count; ++i)
	{
		CHECK_NEAR(clump.centres[3 * i], 1000, 0.5);
		CHECK_NEAR(clump.centres[3 * i + 1], -2000, 0.5);
	}
	body_free(&body);
}

static void thin_plates_get_flat_clumps(void)
{
	TestShape shape = {0};
	test_shape_plate(&shape, 1, 0.02, 2);
	Body body = body_of(&shape);
	SandClump clump = fit(&body, 50);
	CHECK(clump.sphere_count > 10);
	CHECK_NEAR(clump.fit.sphere_volume / 0.02, 1, 0.003);
	body_free(&body);
}

static void open_meshes_are_filled_where_they_close_around(void)
{
	// A cube without its lid: what is inside by winding number is near the whole of it.
	TestShape shape = {0};
	test_shape_box(&shape, (const float[3]){-0.5F, -0.5F, -0.5F}, (const float[3]){0.5F, 0.5F, 0.5F}, false);
	int kept = 0;
	for (int i = 0; i < shape.triangle_count; ++i)
	{
		int up_count = 0;
		for (int k = 0; k < 3; ++k)
		{
			int32_t corner = shape.triangles[3 * i + k];
			up_count += shape.vertices[3 * corner + 2] > 0;
			shape.triangles[3 * kept + k] = corner;
		}
		kept += up_count < 3;
	}
	CHECK_INT(kept, 10);
	shape.triangle_count = kept;
	Body body = body_of(&shape);
	SandClump clump = fit(&body, 8);
	double volumes;
	CHECK(!body.mesh->is_closed);
	CHECK(clump.overlap > 0.78);
	CHECK(counted_overlap(body.mesh, is_in_cube, &clump, 40, &volumes) > 0.7);
	CHECK_NEAR(clump.fit.mesh_volume, 0, 0);
	body_free(&body);
}

static void meshes_without_an_inside_are_refused(void)
{
	SandError err = {0};
	SandClump clump;
	SandClumpDesc desc = {.sphere_count = 8};
	for (int tilt = 0; tilt < 2; ++tilt)
	{
		TestShape sheet = {0};
		test_shape_vertex(&sheet, 0, 0, 0);
		test_shape_vertex(&sheet, 1, 0, tilt);
		test_shape_vertex(&sheet, 1, 1, tilt);
		test_shape_vertex(&sheet, 0, 1, 0);
		test_shape_triangle(&sheet, 0, 1, 2);
		test_shape_triangle(&sheet, 0, 2, 3);
		Body body = body_of(&sheet);
		clump.sphere_count = 3;
		CHECK_STATUS(sand_clump_fit(body.surface, &desc, NULL, &clump, &err), SAND_ERROR_MESH, &err);
		CHECK_CONTAINS(err.message, "Mesh 'body' has no inside");
		CHECK_INT(clump.sphere_count, 0);
		body_free(&body);
	}
}

static void bad_counts_and_cancelling_are_reported(void)
{
	Body body = cube();
	SandError err = {0};
	SandClump clump;
	static const int counts[] = {1, -1, SAND_CLUMP_LIMIT + 1};
	for (int i = 0; i < 3; ++i)
	{
		SandClumpDesc desc = {.sphere_count = counts[i]};
		CHECK_STATUS(sand_clump_fit(body.surface, &desc, NULL, &clump, &err), SAND_ERROR_ARGUMENT, &err);
		CHECK_CONTAINS(err.message, "2 to 50");
		CHECK_INT(clump.sphere_count, 0);
	}
	SandCancel cancel = {1};
	SandClumpDesc desc = {.sphere_count = 8, .cancel = &cancel};
	CHECK_STATUS(sand_clump_fit(body.surface, &desc, NULL, &clump, &err), SAND_CANCELLED, &err);
	CHECK_INT(clump.sphere_count, 0);
	body_free(&body);
}

static void every_thread_count_gives_the_same_bits(void)
{
	Body body = ell();
	SandClump alone = fit(&body, 9);
	for (int threads = 1; threads <= 3; ++threads)
	{
		SandPool *pool = NULL;
		SandError err = {0};
		SandClump clump;
		SandClumpDesc desc = {.sphere_count = 9};
		CHECK_STATUS(sand_pool_create(threads, &pool, &err), SAND_OK, &err);
		CHECK_STATUS(sand_clump_fit(body.surface, &desc, pool, &clump, &err), SAND_OK, &err);
		CHECK_INT(clump.sphere_count, alone.sphere_count);
		CHECK(memcmp(clump.centres, alone.centres, sizeof(clump.centres)) == 0);
		CHECK(memcmp(clump.radii, alone.radii, sizeof(clump.radii)) == 0);
		CHECK(memcmp(&clump.overlap, &alone.overlap, sizeof(double)) == 0);
		sand_pool_destroy(pool);
	}
	SandError err = {0};
	SandClump other;
	SandClumpDesc desc = {.sphere_count = 9, .seed = 5};
	CHECK_STATUS(sand_clump_fit(body.surface, &desc, NULL, &other, &err), SAND_OK, &err);
	CHECK(memcmp(other.centres, alone.centres, sizeof(other.centres)) != 0);
	body_free(&body);
}

static void every_failing_allocation_is_reported(void)
{
	Body body = tetrahedron();
	size_t before = sand_alloc_bytes();
	SandStatus status = SAND_ERROR_MEMORY;
	int countdown = 0;
	while (status != SAND_OK && countdown < 200)
	{
		SandClump clump;
		SandError err = {0};
		SandClumpDesc desc = {.sphere_count = 2};
		sand_alloc_fail_after((uint64_t)++countdown, false);
		status = sand_clump_fit(body.surface, &desc, NULL, &clump, &err);
		sand_alloc_fail_after(0, false);
		CHECK(status == SAND_OK || (status == SAND_ERROR_MEMORY && err.message[0] != '\0' && clump.sphere_count == 0));
		CHECK_INT(sand_alloc_bytes(), before);
	}
	CHECK(countdown > 15 && countdown < 200);
	body_free(&body);
}

void test_clump(void)
{
	RUN(a_ball_is_a_ball);
	RUN(cubes_are_filled);
	RUN(a_capsule_is_a_row_of_spheres);
	RUN(corners_and_edges_are_followed);
	RUN(more_spheres_are_more_alike);
	RUN(eight_is_what_zero_means);
	RUN(fewer_spheres_do_where_more_say_nothing);
	RUN(far_and_turned_meshes_are_no_worse);
	RUN(thin_plates_get_flat_clumps);
	RUN(open_meshes_are_filled_where_they_close_around);
	RUN(meshes_without_an_inside_are_refused);
	RUN(bad_counts_and_cancelling_are_reported);
	RUN(every_thread_count_gives_the_same_bits);
	RUN(every_failing_allocation_is_reported);
}
