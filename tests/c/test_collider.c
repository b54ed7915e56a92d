// Tests of collider: closed forms, brute force over all triangles, and motion against differences in time.
#include "collider.h"
#include "shapes.h"
#include "test.h"

enum
{
	LIST_LIMIT = 4096
};

// A collider with its state and one sphere's list.
typedef struct Rig
{
	SandMesh *mesh;
	SandCollider *collider;
	SandColliderState *state;
	int32_t list[LIST_LIMIT];
	float sides[LIST_LIMIT];
	int count;
	SandHit hits[SAND_HIT_LIMIT];
} Rig;

static Rig rig_of(TestShape *shape, SandColliderDesc desc)
{
	Rig rig = {.mesh = test_shape_mesh(shape, "Tray")};
	SandError err = {0};
	desc.mesh = rig.mesh;
	CHECK_STATUS(sand_collider_create(&desc, 0, &rig.collider, &err), SAND_OK, &err);
	CHECK_STATUS(sand_collider_state_create(rig.collider, &rig.state, &err), SAND_OK, &err);
	test_shape_free(shape);
	return rig;
}

static void rig_free(Rig *rig)
{
	sand_collider_state_destroy(rig->state);
	sand_collider_destroy(rig->collider);
	sand_mesh_destroy(rig->mesh);
}

static void rig_time(Rig *rig, double time)
{
	sand_collider_set_time(rig->collider, rig->state, time);
	sand_collider_fit(rig->collider, rig->state);
}

// With the list and sides there are.
static int rig_touch(Rig *rig, const double p[3], double reach)
{
	return sand_collider_touch(rig->collider, rig->state, p, reach, rig->list, rig->sides, rig->count, rig->hits);
}

static void rig_list(Rig *rig, const double p[3], double reach)
{
	rig->count = sand_collider_near(rig->collider, rig->state, p, reach, rig->list, LIST_LIMIT);
	CHECK(rig->count <= LIST_LIMIT);
	memset(rig->sides, 0, sizeof(rig->sides));
}

// With a new list that reaches a little farther.
static int rig_touch_anew(Rig *rig, const double p[3], double reach)
{
	rig_list(rig, p, 1.2 * reach);
	return rig_touch(rig, p, reach);
}

static double between(uint64_t index, double low, double high)
{
	return low + (high - low) * sand_random(5, index);
}

static void check_hit(const SandHit *hit, double distance, double nx, double ny, double nz)
{
	CHECK_NEAR(hit->distance, distance, 1e-12);
	CHECK_NEAR(hit->normal[0], nx, 1e-9);
	CHECK_NEAR(hit->normal[1], ny, 1e-9);
	CHECK_NEAR(hit->normal[2], nz, 1e-9);
}

static void one_triangle_is_touched_on_face_edges_and_corners(void)
{
	TestShape shape = {0};
	test_shape_vertex(&shape, 0, 0, 0);
	test_shape_vertex(&shape, 1, 0, 0);
	test_shape_vertex(&shape, 0, 1, 0);
	test_shape_triangle(&shape, 0, 1, 2);
	Rig rig = rig_of(&shape, (SandColliderDesc){0});
	const double h = sqrt(0.5), t = 1 / sqrt(3);
	const struct
	{
		double p[3], distance, n[3];
	} cases[] = {
	    {{0.2, 0.3, 0.4}, 0.4, {0, 0, 1}},
	    {{0.2, 0.3, -0.4}, 0.4, {0, 0, -1}},
	    {{0.4, -0.3, 0.4}, 0.5, {0, -0.6, 0.8}},
	    {{-0.3, 0.4, -0.4}, 0.5, {-0.6, 0, -0.8}},
	    {{0.8, 0.8, 0}, 0.3 * sqrt(2), {h, h, 0}},
	    {{-0.1, -0.1, 0.1}, 0.1 * sqrt(3), {-t, -t, t}},
	    {{1.1, 0, 0}, 0.1, {1, 0, 0}},
	    {{0, 1.1, 0}, 0.1, {0, 1, 0}},
	    {{0.2, 0.2, 0}, 0, {0, 0, 1}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
	{
		if (CHECK_INT(rig_touch_anew(&rig, cases[i].p, 0.6), 1))
		{
			check_hit(&rig.hits[0], cases[i].distance, cases[i].n[0], cases[i].n[1], cases[i].n[2]);
			CHECK_INT(rig.hits[0].slot, 0);
		}
		CHECK_INT(rig_touch_anew(&rig, cases[i].p, cases[i].distance), 0);
	}
	rig_free(&rig);
}

static void box_is_touched_by_three_faces_inside_and_one_corner_outside(void)
{
	TestShape shape = {0};
	const float low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
	test_shape_grid_box(&shape, low, high, 3);
	Rig rig = rig_of(&shape, (SandColliderDesc){0});
	const double inside[3] = {0.1, 0.12, 0.14}, outside[3] = {-0.1, -0.1, -0.1}, edge[3] = {0.5, -0.03, 1.04};
	if (CHECK_INT(rig_touch_anew(&rig, inside, 0.2), 3))
	{
		double sum[3] = {0};
		for (int i = 0; i < 3; ++i)
		{
			for (int k = 0; k < 3; ++k)
			{
				sum[k] += rig.hits[i].distance * rig.hits[i].normal[k];
			}
		}
		for (int k = 0; k < 3; ++k)
		{
			CHECK_NEAR(sum[k], inside[k], 1e-12);
		}
		CHECK(rig.hits[0].slot < rig.hits[1].slot && rig.hits[1].slot < rig.hits[2].slot);
	}
	const double t = -1 / sqrt(3);
	if (CHECK_INT(rig_touch_anew(&rig, outside, 0.2), 1))
	{
		check_hit(&rig.hits[0], 0.1 * sqrt(3), t, t, t);
		CHECK_INT(rig.hits[0].slot, 0);
	}
	if (CHECK_INT(rig_touch_anew(&rig, edge, 0.1), 1))
	{
		check_hit(&rig.hits[0], 0.05, 0, -0.6, 0.8);
	}
	rig_free(&rig);
}

// n x n squares with a side of 1 in the plane z = 0, their diagonals in turn both ways.
static void add_plane(TestShape *shape, int n, double side)
{
	for (int i = 0; i < (n + 1) * (n + 1); ++i)
	{
		test_shape_vertex(shape, side * (i % (n + 1)), side * (i / (n + 1)), 0);
	}
	for (int i = 0; i < n * n; ++i)
	{
		int a = i % n + (n + 1) * (i / n), b = a + 1, c = a + n + 1, d = c + 1;
		bool is_odd = (i % n + i / n) % 2 != 0;
		test_shape_triangle(shape, a, b, is_odd ? c : d);
		test_shape_triangle(shape, is_odd ? b : a, d, c);
	}
}

static void plane_of_many_triangles_is_touched_once_everywhere(void)
{
	TestShape shape = {0};
	add_plane(&shape, 16, 0.25);
	Rig rig = rig_of(&shape, (SandColliderDesc){0});
	for (uint64_t i = 0; i < 10000; ++i)
	{
		double p[3] = {between(4 * i, 0.5, 3.5), between(4 * i + 1, 0.5, 3.5), between(4 * i + 2, -0.49, 0.49)};
		// Over vertices, edges along x, edges along y, diagonals.
		p[0] = i % 5 == 1 || i % 5 == 3 ? 0.25 * floor(4 * p[0]) : p[0];
		p[1] = i % 5 == 1 || i % 5 == 2 ? 0.25 * floor(4 * p[1]) : p[1];
		p[1] = i % 5 == 4 ? 0.25 * floor(4 * p[1]) + (p[0] - 0.25 * floor(4 * p[0])) : p[1];
		if (CHECK_INT(rig_touch_anew(&rig, p, 0.5), 1))
		{
			check_hit(&rig.hits[0], fabs(p[2]), 0, 0, p[2] < 0 ? -1 : 1);
		}
	}
	rig_free(&rig);
}

static void turning_mesh_is_touched_where_it_is_and_moves_as_it_does(void)
{
	const double quarter = sqrt(0.5), samples[] = {5, 0, 0, 1, 0, 0, 0, 6, 0, 0, quarter, 0, 0, quarter};
	SandTrack track = {.begin = 1, .interval = 0.5, .samples = samples, .sample_count = 2};
	TestShape shape = {0};
	const float low[3] = {-1, -0.5F, -0.25F}, high[3] = {1, 0.5F, 0.25F};
	test_shape_box(&shape, low, high, false);
	Rig rig = rig_of(&shape, (SandColliderDesc){.track = &track});
	rig_time(&rig, 1.25); // turned by 45 degrees about z, centre at 5.5
	const double u[3] = {quarter, quarter, 0}, spin = TEST_PI;
	const double p[3] = {5.5 + 1.1 * u[0], 1.1 * u[1], 0};
	if (CHECK_INT(rig_touch_anew(&rig, p, 0.2), 1))
	{
		check_hit(&rig.hits[0], 0.1, u[0], u[1], 0);
		CHECK_NEAR(rig.hits[0].velocity[0], 2 - spin * u[1], 1e-9);
		CHECK_NEAR(rig.hits[0].velocity[1], spin * u[0], 1e-9);
		CHECK_NEAR(rig.hits[0].velocity[2], 0, 1e-12);
	}
	rig_free(&rig);
}

void test_collider(void)
{
	RUN(turning_mesh_is_touched_where_it_is_and_moves_as_it_does);
	RUN(one_triangle_is_touched_on_face_edges_and_corners);
	RUN(box_is_touched_by_three_faces_inside_and_one_corner_outside);
	RUN(plane_of_many_triangles_is_touched_once_everywhere);
}
