// Tests of sampler: spacing, gaps, inside and clearance, each measured by brute force with other arithmetic than the
// sampler's own; counts against closed forms; limits, determinism, failed allocations.
#include "brute.h"
#include "sampler.h"
#include "test.h"

static const double PI = 3.14159265358979323846;
static const float UNIT_LOW[3] = {0.0F, 0.0F, 0.0F}, UNIT_HIGH[3] = {1.0F, 1.0F, 1.0F};

// ---- measuring by brute force
// ----------------------------------------------------------------------------------------

static double point_distance(const float *a, const float *b)
{
	double x = (double)a[0] - (double)b[0], y = (double)a[1] - (double)b[1], z = (double)a[2] - (double)b[2];
	return sqrt(x * x + y * y + z * z);
}

static const float *point_at(const SandPoints *points, int point)
{
	return points->xyz + 3 * (size_t)point;
}

// m, of the nearest two points.
static double least_spacing(const SandPoints *points)
{
	double least = (double)INFINITY;
	for (int a = 0; a < points->count; ++a)
	{
		for (int b = a + 1; b < points->count; ++b)
		{
			least = fmin(least, point_distance(point_at(points, a), point_at(points, b)));
		}
	}
	return least;
}

// m, the farthest that any place of a grid over every triangle is from its nearest point.
static double widest_gap(const SandMesh *mesh, const SandPoints *points, double grid_spacing)
{
	double widest = 0.0;
	for (int triangle = 0; triangle < mesh->triangle_count; ++triangle)
	{
		const float *corner[3];
		for (int side = 0; side < 3; ++side)
		{
			corner[side] = &mesh->vertices[3 * mesh->triangles[3 * triangle + side]];
		}
		double longest = fmax(point_distance(corner[0], corner[1]),
		                      fmax(point_distance(corner[1], corner[2]), point_distance(corner[2], corner[0])));
		int n = 1 + (int)(longest / grid_spacing);
		int guess = 0;
		for (int i = 0; i <= n; ++i)
		{
			for (int j = 0; i + j <= n; ++j)
			{
				float place[3];
				for (int axis = 0; axis < 3; ++axis)
				{
					place[axis] = (float)(((double)corner[0][axis] * (n - i - j) + (double)corner[1][axis] * i +
					                       (double)corner[2][axis] * j) /
					                      n);
				}
				// Neighbouring places have the same nearest point more often than not; only gaps wider than the widest
				// so far need the exact answer.
				double nearest = point_distance(place, point_at(points, guess));
				for (int point = 0; point < points->count && nearest > widest; ++point)
				{
					double distance = point_distance(place, point_at(points, point));
					if (distance < nearest)
					{
						nearest = distance;
						guess = point;
					}
				}
				widest = fmax(widest, nearest);
			}
		}
	}
	return widest;
}

// ---- calls
// -----------------------------------------------------------------------------------------------------------

static SandPoints cover(const SandMesh *mesh, float spacing, uint64_t seed)
{
	SandError err = {0};
	SandPoints points = {0};
	SandCoverDesc desc = {.spacing = spacing, .seed = seed};
	CHECK_STATUS(sand_sampler_cover(mesh, &desc, &points, &err), SAND_OK, &err);
	return points;
}

static SandPoints fill(const SandMesh *mesh, float spacing, float clearance, float jitter, uint64_t seed)
{
	SandError err = {0};
	SandPoints points = {0};
	SandFillDesc desc = {.spacing = spacing, .clearance = clearance, .jitter = jitter, .seed = seed};
	CHECK_STATUS(sand_sampler_fill(mesh, &desc, &points, &err), SAND_OK, &err);
	return points;
}

static SandError cover_refusal(const SandMesh *mesh, float spacing, SandStatus expected)
{
	SandError err = {0};
	SandPoints points = {.xyz = NULL, .count = 7};
	size_t bytes_before = sand_alloc_bytes();
	SandCoverDesc desc = {.spacing = spacing};
	CHECK_STATUS(sand_sampler_cover(mesh, &desc, &points, &err), expected, &err);
	CHECK(points.xyz == NULL && points.count == 0);
	CHECK_INT(sand_alloc_bytes(), bytes_before);
	return err;
}

static SandError fill_refusal(const SandMesh *mesh, SandFillDesc desc, SandStatus expected)
{
	SandError err = {0};
	SandPoints points = {.xyz = NULL, .count = 7};
	size_t bytes_before = sand_alloc_bytes();
	CHECK_STATUS(sand_sampler_fill(mesh, &desc, &points, &err), expected, &err);
	CHECK(points.xyz == NULL && points.count == 0);
	CHECK_INT(sand_alloc_bytes(), bytes_before);
	return err;
}

static bool are_same(const SandPoints *a, const SandPoints *b)
{
	return a->count == b->count && memcmp(a->xyz, b->xyz, (size_t)a->count * 3 * sizeof(float)) == 0;
}

static SandMesh *unit_cube(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, UNIT_LOW, UNIT_HIGH, false);
	SandMesh *mesh = test_shape_mesh(&shape, "Cube");
	test_shape_free(&shape);
	return mesh;
}

// ---- cover
// -----------------------------------------------------------------------------------------------------------

// Spacing, gaps and place on the surface, by brute force.
static void check_cover(SandMesh *mesh, float spacing, uint64_t seed)
{
	SandPoints points = cover(mesh, spacing, seed);
	double share_of_area = points.count * (double)spacing * (double)spacing / mesh->area;
	double least = least_spacing(&points), widest = widest_gap(mesh, &points, (double)spacing / 12.0);
	double off = 0.0;
	for (int point = 0; point < points.count; point += 1 + points.count / 200)
	{
		off = fmax(off, test_distance_at(mesh, point_at(&points, point)));
	}
	printf("  %s: %d points at %g m, %.3f per spacing^2, nearest two %.6f, widest gap %.6f spacings\n",
	       sand_mesh_name(mesh), points.count, (double)spacing, share_of_area, least / (double)spacing,
	       widest / (double)spacing);
	CHECK(least >= (double)spacing * (1.0 - 1e-15)); // the sampler compares squares: one rounding
	// Cutting ends at sides of spacing / 128 with the middle tested, at most 2/3 of a side away from any place of it;
	// the test's places are rounded to floats.
	CHECK(widest <= (double)spacing * (1.0 + 2.0 / 3.0 / 128.0 + 1e-5));
	CHECK(off <= 1e-6);
	sand_points_free(&points);
	CHECK(points.xyz == NULL && points.count == 0);
	sand_mesh_destroy(mesh);
}

static void cover_of_a_cube_keeps_the_spacing_and_leaves_no_gap(void)
{
	check_cover(unit_cube(), 0.05F, 1);
}

static void cover_of_a_sphere_keeps_the_spacing_and_leaves_no_gap(void)
{
	TestShape shape = {0};
	test_shape_uv_sphere(&shape, 1.0F, 48, 24);
	check_cover(test_shape_mesh(&shape, "Sphere coarse"), 0.1F, 2);
	// Spacing far wider than a triangle: pieces are never cut, triangles are many per point.
	check_cover(test_shape_mesh(&shape, "Sphere fine"), 0.7F, 3);
	// One point is enough when it reaches all.
	SandMesh *mesh = test_shape_mesh(&shape, "Sphere");
	SandPoints points = cover(mesh, 2.5F, 4);
	CHECK_INT(points.count, 1);
	sand_points_free(&points);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void cover_of_an_open_cylinder_keeps_the_spacing_and_leaves_no_gap(void)
{
	TestShape shape = {0};
	test_shape_open_cylinder(&shape, 0.5F, 2.0F, 32);
	check_cover(test_shape_mesh(&shape, "Cylinder"), 0.08F, 5);
	test_shape_free(&shape);
}

static void cover_of_a_needle_grows_beyond_the_estimate_and_leaves_no_gap(void)
{
	// Its area asks for almost no points, its length for a thousand.
	const float radii[3] = {10.0F, 1e-4F, 1e-4F};
	TestShape shape = {0};
	test_shape_octahedron(&shape, radii);
	SandMesh *mesh = test_shape_mesh(&shape, "Needle");
	SandPoints points = cover(mesh, 0.01F, 6);
	printf("  %d points, %.0f by area\n", points.count, 0.7 * mesh->area / 1e-4);
	// On a line neighbours are between one and two spacings apart; the ends are within one.
	CHECK(points.count >= 999 && points.count <= 2001);
	CHECK(least_spacing(&points) >= (double)0.01F * (1.0 - 1e-15));
	double widest = 0.0;
	for (int place = 0; place <= 20000; ++place)
	{
		const float xyz[3] = {(float)place * 1e-3F - 10.0F, 0.0F, 0.0F};
		double nearest = (double)INFINITY;
		for (int point = 0; point < points.count; ++point)
		{
			nearest = fmin(nearest, point_distance(xyz, point_at(&points, point)));
		}
		widest = fmax(widest, nearest);
	}
	CHECK(widest <= 0.01 * (1.0 + 2.0 / 3.0 / 128.0) + 1e-4); // the axis is up to the needle's radius off its surface
	sand_points_free(&points);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void cover_leaves_triangles_without_area_alone(void)
{
	// A triangle at the origin, and a line far away that is no surface.
	const float vertices[18] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 50, 0, 0, 60, 0, 0, 70, 0, 0};
	const int32_t triangles[6] = {0, 1, 2, 3, 4, 5};
	TestShape shape = {.vertices = (float *)vertices, 6, (int32_t *)triangles, 2};
	SandMesh *mesh = test_shape_mesh(&shape, "Crumb");
	CHECK_INT(mesh->degenerate_count, 1);
	SandPoints points = cover(mesh, 0.1F, 7);
	CHECK(points.count > 30);
	for (int point = 0; point < points.count; ++point)
	{
		CHECK(points.xyz[3 * point] <= 1.0F);
	}
	sand_points_free(&points);
	sand_mesh_destroy(mesh);
}

static void cover_spreads_points_by_area(void)
{
	// Faces of 1, 2 and 3 m^2 (twice each): each has its share of the points, to within the rims where faces meet.
	const float high[3] = {1.0F, 2.0F, 3.0F};
	TestShape shape = {0};
	test_shape_box(&shape, UNIT_LOW, high, false);
	SandMesh *mesh = test_shape_mesh(&shape, "Box");
	SandPoints points = cover(mesh, 0.04F, 8);
	int counts[3] = {0};
	for (int point = 0; point < points.count; ++point)
	{
		for (int axis = 0; axis < 3; ++axis)
		{
			float value = points.xyz[3 * point + axis];
			counts[axis] += value == 0.0F || value == high[axis] ? 1 : 0;
		}
	}
	// Area times 0.7 per spacing^2 on an endless plane; rims add up to half a spacing on each side.
	for (int axis = 0; axis < 3; ++axis)
	{
		double expected = 0.7 * 2.0 * 6.0 / (double)high[axis] / (0.04 * 0.04);
		CHECK_NEAR(counts[axis] / expected, 1.0, 0.06);
	}
	sand_points_free(&points);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void cover_gives_the_same_bits_for_the_same_seed_and_others_for_another(void)
{
	SandMesh *mesh = unit_cube();
	SandPoints a = cover(mesh, 0.07F, 42), b = cover(mesh, 0.07F, 42), c = cover(mesh, 0.07F, 43);
	CHECK(are_same(&a, &b));
	CHECK(!are_same(&a, &c));
	sand_points_free(&a);
	sand_points_free(&b);
	sand_points_free(&c);
	sand_mesh_destroy(mesh);
}

static void cover_refuses_what_it_cannot_do_before_allocating(void)
{
	SandMesh *mesh = unit_cube();
	SandError err = cover_refusal(mesh, 0.0F, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Spacing is 0 m");
	err = cover_refusal(mesh, -1.0F, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Spacing is -1 m");
	err = cover_refusal(mesh, NAN, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "nan");
	err = cover_refusal(mesh, INFINITY, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "inf");
	err = cover_refusal(mesh, 1e-6F, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message,
	               "Mesh 'Cube' at spacing 1e-06 m needs about 4.2e+12 points, more than the limit of 1000000");
	err = cover_refusal(mesh, 1e-45F, SAND_ERROR_ARGUMENT); // the smallest float
	CHECK_CONTAINS(err.message, "points");
	sand_mesh_destroy(mesh);
}

static void positions_too_far_from_the_origin_for_the_spacing_are_refused(void)
{
	const float low[3] = {1e6F, 0.0F, 0.0F}, high[3] = {1e6F + 1.0F, 1.0F, 1.0F};
	TestShape shape = {0};
	test_shape_box(&shape, low, high, false);
	SandMesh *mesh = test_shape_mesh(&shape, "Far");
	SandError err = cover_refusal(mesh, 0.1F, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Mesh 'Far' reaches so far from the origin");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 0.1F}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Mesh 'Far' reaches so far from the origin");
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void a_mesh_of_endless_slivers_is_refused(void)
{
	// 8 million spacings long and of next to no area, four hundred times over: few points, but no end of pieces.
	TestShape shape = {0};
	for (int i = 0; i < 400; ++i)
	{
		const float radii[3] = {1.0F, 1e-9F, 1e-9F};
		test_shape_octahedron(&shape, radii);
	}
	SandMesh *mesh = test_shape_mesh(&shape, "Hair");
	SandError err = cover_refusal(mesh, 2e-6F, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "pieces");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 2e-6F}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "pieces");
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

// ---- fill
// ------------------------------------------------------------------------------------------------------------

// Every point inside an odd number of times and with the clearance, by brute force; frees the points.
static void check_inside(const SandMesh *mesh, SandPoints *points, double clearance)
{
	double least = (double)INFINITY, farthest = 0.0;
	int outside_count = 0;
	for (int axis = 0; axis < 3; ++axis)
	{
		farthest = fmax(farthest, fmax(fabs((double)mesh->bounds_min[axis]), fabs((double)mesh->bounds_max[axis])));
	}
	for (int point = 0; point < points->count; ++point)
	{
		double winding = test_winding_at(mesh, point_at(points, point));
		// Solid angles sum up to a whole number off the surface; an even one is outside, or inside a hole.
		bool is_whole = fabs(winding - round(winding)) < 1e-3;
		outside_count += is_whole && fabs(fmod(round(winding), 2.0)) == 1.0 ? 0 : 1;
		least = fmin(least, test_distance_at(mesh, point_at(points, point)));
	}
	printf("  %s: %d points, nearest to the surface %.7g m of %.7g m\n", sand_mesh_name(mesh), points->count, least,
	       clearance);
	CHECK_INT(outside_count, 0);
	// Three steps of float at the farthest coordinate are waived.
	CHECK(least >= clearance - 3.0 * farthest * 0x1p-23 - 1e-12);
	sand_points_free(points);
}

static void fill_of_a_big_cube_has_the_density_of_close_packing(void)
{
	SandMesh *mesh = unit_cube();
	const float clearance = 0.01F, spacing = 0.02F;
	SandPoints points = fill(mesh, spacing, clearance, 0.0F, 0);
	double room = 1.0 - 2.0 * (double)clearance, per_volume = sqrt(2.0) / pow((double)spacing, 3.0);
	int ball_count = 0;
	for (int point = 0; point < points.count; ++point)
	{
		const float centre[3] = {0.5F, 0.5F, 0.5F};
		ball_count += point_distance(point_at(&points, point), centre) < 0.45 ? 1 : 0;
	}
	double in_ball = per_volume * 4.0 / 3.0 * PI * 0.45 * 0.45 * 0.45, in_room = per_volume * room * room * room;
	printf("  %d points, %d in the ball, %.0f and %.0f by volume\n", points.count, ball_count, in_room, in_ball);
	// In a ball the errors of the rim average out, to less than a hundredth of a layer of 22 in its radius.
	CHECK_NEAR(ball_count / in_ball, 1.0, 0.005);
	// The outermost points stand on the rim of the room: up to one more than steps in 49 columns, 56 rows, 60 layers;
	// every second row may have half a column less.
	CHECK(points.count / in_room > 1.0 - 0.5 / 49.0);
	CHECK(points.count / in_room < (1.0 + 1.0 / 49.0) * (1.0 + 1.0 / 56.0) * (1.0 + 1.0 / 60.0));
	sand_points_free(&points);
	sand_mesh_destroy(mesh);
}

static void inner_points_of_a_fill_have_twelve_neighbours_at_the_spacing(void)
{
	SandMesh *mesh = unit_cube();
	SandPoints points = fill(mesh, 0.09F, 0.03F, 0.0F, 0);
	int inner_count = 0, wrong_count = 0;
	for (int a = 0; a < points.count; ++a)
	{
		const float *place = point_at(&points, a);
		bool is_inner = true;
		for (int axis = 0; axis < 3; ++axis)
		{
			is_inner = is_inner && place[axis] > 0.15F && place[axis] < 0.85F;
		}
		int neighbour_count = 0;
		for (int b = 0; b < points.count && is_inner; ++b)
		{
			double distance = point_distance(place, point_at(&points, b)) / (double)0.09F;
			// Floats near 1 are 6e-8 apart, a millionth of the spacing; the second shell is at sqrt(2).
			neighbour_count += fabs(distance - 1.0) < 1e-5 ? 1 : 0;
			wrong_count += a != b && distance < 1.0 - 1e-5 ? 1 : 0;
		}
		inner_count += is_inner ? 1 : 0;
		wrong_count += is_inner && neighbour_count != 12 ? 1 : 0;
	}
	CHECK(inner_count > 300);
	CHECK_INT(wrong_count, 0);
	sand_points_free(&points);
	sand_mesh_destroy(mesh);
}

static void fill_is_centred_in_the_mesh(void)
{
	// What does not fit is left free in equal parts on both sides, whichever row or layer reaches farthest.
	SandMesh *mesh = unit_cube();
	const float spacings[4] = {0.3F, 0.21F, 0.185F, 0.085F};
	for (int i = 0; i < 4; ++i)
	{
		SandPoints points = fill(mesh, spacings[i], 0.04F, 0.0F, 0);
		for (int axis = 0; axis < 3; ++axis)
		{
			float low = 1.0F, high = 0.0F;
			for (int point = 0; point < points.count; ++point)
			{
				low = fminf(low, point_at(&points, point)[axis]);
				high = fmaxf(high, point_at(&points, point)[axis]);
			}
			CHECK_NEAR(low + high, 1.0, 1e-6);       // floats near 1
			CHECK(low - 0.04F < 0.5F * spacings[i]); // more would let another one in
		}
		sand_points_free(&points);
	}
	sand_mesh_destroy(mesh);
}

static void fill_stays_inside_with_its_clearance(void)
{
	SandMesh *cube = unit_cube();
	SandPoints points = fill(cube, 0.1F, 0.04F, 0.0F, 0);
	check_inside(cube, &points, (double)0.04F);
	points = fill(cube, 0.1F, 0.0F, 0.0F, 0);
	check_inside(cube, &points, 1e-9); // strictly inside also when no clearance is asked for
	sand_mesh_destroy(cube);

	TestShape shape = {0};
	test_shape_icosphere(&shape, 1.0F, 3);
	SandMesh *ball = test_shape_mesh(&shape, "Ball");
	points = fill(ball, 0.15F, 0.07F, 0.0F, 0);
	check_inside(ball, &points, (double)0.07F);
	points = fill(ball, 0.2F, 0.45F, 0.0F, 0); // clearance wider than the spacing
	check_inside(ball, &points, (double)0.45F);
	points = fill(ball, 0.15F, 0.02F, 1.0F, 9);
	check_inside(ball, &points, (double)0.02F);
	sand_mesh_destroy(ball);
	test_shape_free(&shape);
}

static void a_hole_takes_away_what_is_in_it_or_nearer_than_the_clearance_and_nothing_else(void)
{
	// The hole leaves the bounds and so the lattice as they are: the points are those of the plain cube that are
	// outside the ball and far enough from it, in the same order, bit for bit.
	SandMesh *cube = unit_cube();
	TestShape shape = {0};
	test_shape_icosphere(&shape, 0.3F, 2);
	for (int value = 0; value < 3 * shape.vertex_count; ++value)
	{
		shape.vertices[value] += 0.5F;
	}
	SandMesh *ball = test_shape_mesh(&shape, "Ball");
	test_shape_box(&shape, UNIT_LOW, UNIT_HIGH, false);
	SandMesh *both = test_shape_mesh(&shape, "Cube with a hole");
	CHECK(both->is_closed);
	SandPoints all = fill(cube, 0.06F, 0.05F, 0.0F, 0), left = fill(both, 0.06F, 0.05F, 0.0F, 0);
	int left_count = 0, wrong_count = 0;
	for (int point = 0; point < all.count; ++point)
	{
		const float *place = point_at(&all, point);
		if (fabs(test_winding_at(ball, place)) < 0.5 && test_distance_at(ball, place) >= (double)0.05F)
		{
			wrong_count += left_count < left.count && memcmp(place, point_at(&left, left_count), 12) == 0 ? 0 : 1;
			++left_count;
		}
	}
	printf("  %d points in the cube, %d with the hole\n", all.count, left.count);
	CHECK_INT(left.count, left_count);
	CHECK_INT(wrong_count, 0);
	CHECK(left_count > 1000 && left_count < all.count - 1000);
	sand_points_free(&all);
	sand_points_free(&left);
	sand_mesh_destroy(both);
	sand_mesh_destroy(ball);
	sand_mesh_destroy(cube);
	test_shape_free(&shape);
}

static void a_cube_of_ten_diameters_holds_ten_grains_in_a_row(void)
{
	// 0.1 and 0.05 are no exact floats: without the waived steps a whole wall of grains would be lost.
	SandMesh *mesh = unit_cube();
	SandPoints points = fill(mesh, 0.1F, 0.05F, 0.0F, 0);
	int row_count = 0;
	for (int point = 0; point < points.count; ++point)
	{
		row_count += points.xyz[3 * point + 1] == points.xyz[1] && points.xyz[3 * point + 2] == points.xyz[2] ? 1 : 0;
	}
	CHECK_INT(row_count, 10);
	check_inside(mesh, &points, (double)0.05F);
	sand_mesh_destroy(mesh);
}

static void a_grain_as_big_as_the_cube_fits_once(void)
{
	SandMesh *mesh = unit_cube();
	SandPoints points = fill(mesh, 1.0F, 0.5F, 0.0F, 0);
	CHECK_INT(points.count, 1);
	CHECK_NEAR(points.xyz[0], 0.5, 1e-7);
	CHECK_NEAR(points.xyz[1], 0.5, 1e-7);
	CHECK_NEAR(points.xyz[2], 0.5, 1e-7);
	sand_points_free(&points);
	sand_mesh_destroy(mesh);
}

static void rows_through_vertices_and_along_edges_do_not_leak(void)
{
	// Thin in y and z, so there is one row, exactly at y = z = 0: through both tips and along edges.
	const float needle[3] = {1.0F, 0.005F, 0.01F};
	TestShape shape = {0};
	test_shape_octahedron(&shape, needle);
	SandMesh *mesh = test_shape_mesh(&shape, "Needle");
	SandPoints points = fill(mesh, 0.05F, 0.0F, 0.0F, 0);
	CHECK(points.count >= 39 && points.count <= 41);
	CHECK(points.xyz[1] == 0.0F && points.xyz[2] == 0.0F);
	check_inside(mesh, &points, 1e-9);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);

	// One layer, exactly at the height of the four corners around the rim.
	const float lens[3] = {1.0F, 1.0F, 0.02F};
	test_shape_octahedron(&shape, lens);
	mesh = test_shape_mesh(&shape, "Lens");
	points = fill(mesh, 0.05F, 0.0F, 0.0F, 0);
	CHECK(points.xyz[2] == 0.0F);
	// A square of diagonal 2: area 2, two points per rhomb of spacing^2 sqrt(3); 3 % for the rim.
	CHECK_NEAR(points.count / (2.0 / (0.05 * 0.05) * 2.0 / sqrt(3.0)), 1.0, 0.03);
	check_inside(mesh, &points, 1e-9);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void the_way_a_box_is_cut_into_triangles_does_not_matter(void)
{
	// The same solid, so the same lattice; 13 x 13 squares put vertices and edges on and beside many rows.
	SandMesh *plain = unit_cube();
	TestShape shape = {0};
	test_shape_grid_box(&shape, UNIT_LOW, UNIT_HIGH, 13);
	SandMesh *fine = test_shape_mesh(&shape, "Grid");
	CHECK(fine->is_closed);
	const float spacings[4] = {1.0F / 13.0F, 0.08F, 0.0625F, 0.11F};
	for (int i = 0; i < 4; ++i)
	{
		SandPoints a = fill(plain, spacings[i], 0.02F, 0.5F, 3), b = fill(fine, spacings[i], 0.02F, 0.5F, 3);
		CHECK_INT(a.count, b.count);
		double apart = 0.0;
		for (int point = 0; point < a.count && a.count == b.count; ++point)
		{
			apart = fmax(apart, point_distance(point_at(&a, point), point_at(&b, point)));
		}
		CHECK(apart < 1e-6); // the distance to the wall, which limits the jitter, is rounded in another order
		sand_points_free(&a);
		sand_points_free(&b);
	}
	sand_mesh_destroy(fine);
	sand_mesh_destroy(plain);
	test_shape_free(&shape);
}

static void crumpled_closed_meshes_are_filled_where_they_wind_an_odd_number_of_times(void)
{
	for (uint64_t seed = 0; seed < 12; ++seed)
	{
		// Sphere topology, corners thrown to a coarse grid: faces pierce each other, corners coincide, triangles
		// collapse, edges run along rows. Half of the cases are flat: one layer, at the very height of many corners.
		TestShape shape = {0};
		test_shape_icosphere(&shape, 1.0F, 1);
		double height = seed % 2 == 0 ? 4.0 : 0.05;
		for (int value = 0; value < 3 * shape.vertex_count; ++value)
		{
			double scale = value % 3 == 2 ? height / 4.0 : 1.0;
			shape.vertices[value] = (float)(scale * (floor(5.0 * sand_random(seed, (uint64_t)value)) - 2.0));
		}
		SandMesh *mesh = test_shape_mesh(&shape, seed % 2 == 0 ? "Crumpled" : "Crumpled and flat");
		CHECK(mesh->is_closed);
		float clearance = seed % 2 == 0 ? 0.005F : 0.0005F;
		SandPoints points = fill(mesh, seed % 2 == 0 ? 0.23F : 0.07F, clearance, seed % 3 == 0 ? 1.0F : 0.0F, seed);
		check_inside(mesh, &points, (double)clearance);
		sand_mesh_destroy(mesh);
		test_shape_free(&shape);
	}
}

static void a_hole_inside_stays_empty_whichever_way_its_faces_look(void)
{
	const float low[3] = {0.25F, 0.25F, 0.25F}, high[3] = {0.75F, 0.75F, 0.75F};
	int counts[2];
	for (int way = 0; way < 2; ++way)
	{
		TestShape shape = {0};
		test_shape_box(&shape, UNIT_LOW, UNIT_HIGH, false);
		test_shape_box(&shape, low, high, way == 1);
		SandMesh *mesh = test_shape_mesh(&shape, "Shell");
		SandPoints points = fill(mesh, 0.04F, 0.02F, 0.0F, 0);
		counts[way] = points.count;
		int hole_count = 0;
		for (int point = 0; point < points.count; ++point)
		{
			bool is_in_hole = true;
			for (int axis = 0; axis < 3; ++axis)
			{
				float value = points.xyz[3 * point + axis];
				is_in_hole = is_in_hole && value > 0.25F - 0.0199F && value < 0.75F + 0.0199F;
			}
			hole_count += is_in_hole ? 1 : 0;
		}
		CHECK_INT(hole_count, 0);
		sand_points_free(&points);
		sand_mesh_destroy(mesh);
		test_shape_free(&shape);
	}
	CHECK_INT(counts[0], counts[1]);
	CHECK(counts[0] > 10000);
}

static void jitter_moves_points_but_keeps_grains_apart(void)
{
	SandMesh *mesh = unit_cube();
	SandPoints still = fill(mesh, 0.1F, 0.03F, 0.0F, 1), moved = fill(mesh, 0.1F, 0.03F, 1.0F, 1);
	SandPoints again = fill(mesh, 0.1F, 0.03F, 1.0F, 1), other = fill(mesh, 0.1F, 0.03F, 1.0F, 2);
	SandPoints half = fill(mesh, 0.1F, 0.03F, 0.5F, 1);
	CHECK_INT(still.count, moved.count);
	CHECK(are_same(&moved, &again));
	CHECK(!are_same(&moved, &other));
	double room = 0.1 - 2.0 * 0.03, widest[2] = {0.0, 0.0}, sum[3] = {0.0, 0.0, 0.0};
	int inner_count = 0;
	for (int point = 0; point < still.count && still.count == moved.count && still.count == half.count; ++point)
	{
		const float *from = point_at(&still, point), *to = point_at(&moved, point);
		widest[0] = fmax(widest[0], point_distance(from, to));
		widest[1] = fmax(widest[1], point_distance(from, point_at(&half, point)));
		bool is_inner = true;
		for (int axis = 0; axis < 3; ++axis)
		{
			is_inner = is_inner && from[axis] > 0.1F && from[axis] < 0.9F;
		}
		inner_count += is_inner ? 1 : 0;
		for (int axis = 0; axis < 3 && is_inner; ++axis)
		{
			sum[axis] += (double)to[axis] - (double)from[axis];
		}
	}
	printf("  widest move %.4f and %.4f of %.4f m\n", widest[0], widest[1], room / 2.0);
	CHECK(widest[0] <= room / 2.0 + 1e-6 && widest[0] > 0.7 * room / 2.0);
	CHECK(widest[1] <= room / 4.0 + 1e-6 && widest[1] > 0.7 * room / 4.0);
	for (int axis = 0; axis < 3; ++axis)
	{
		// Uniform in +-h: the mean of n has the deviation h / sqrt(3 n); four of them.
		CHECK_NEAR(sum[axis] / inner_count, 0.0, 4.0 * room / 2.0 / sqrt(3.0) / sqrt(3.0 * inner_count));
	}
	CHECK(least_spacing(&moved) >= 2.0 * 0.03 - 1e-6);
	sand_points_free(&still);
	sand_points_free(&moved);
	sand_points_free(&again);
	sand_points_free(&other);
	sand_points_free(&half);

	// Grains that touch have no room to move.
	still = fill(mesh, 0.1F, 0.05F, 0.0F, 1);
	moved = fill(mesh, 0.1F, 0.05F, 1.0F, 1);
	CHECK(are_same(&still, &moved));
	sand_points_free(&still);
	sand_points_free(&moved);
	sand_mesh_destroy(mesh);
}

static void jitter_does_not_carry_points_through_a_thin_wall(void)
{
	// A wall thinner than the jitter, hollow: between x = 0.5 and 0.51 is outside.
	TestShape shape = {0};
	const float left_high[3] = {0.5F, 1.0F, 1.0F}, right_low[3] = {0.51F, 0.0F, 0.0F};
	test_shape_box(&shape, UNIT_LOW, left_high, false);
	test_shape_box(&shape, right_low, UNIT_HIGH, false);
	SandMesh *mesh = test_shape_mesh(&shape, "Rooms");
	SandPoints still = fill(mesh, 0.1F, 0.001F, 0.0F, 4), moved = fill(mesh, 0.1F, 0.001F, 1.0F, 4);
	CHECK_INT(still.count, moved.count);
	int crossed_count = 0;
	for (int point = 0; point < still.count && still.count == moved.count; ++point)
	{
		crossed_count += (still.xyz[3 * point] < 0.505F) != (moved.xyz[3 * point] < 0.505F) ? 1 : 0;
	}
	CHECK_INT(crossed_count, 0);
	sand_points_free(&still);
	check_inside(mesh, &moved, (double)0.001F);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void fill_refuses_what_it_cannot_do_before_allocating(void)
{
	SandMesh *mesh = unit_cube();
	SandError err = fill_refusal(mesh, (SandFillDesc){0}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Spacing is 0 m");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = NAN}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Spacing is");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 0.1F, .clearance = -0.5F}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Clearance is -0.5 m");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 0.1F, .clearance = INFINITY}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Clearance is inf m");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 0.1F, .jitter = 1.5F}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Jitter is 1.5");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 0.1F, .jitter = NAN}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Jitter is");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 1e-6F}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message,
	               "Mesh 'Cube' at spacing 1e-06 m needs about 1.41e+18 points, more than the limit of 1000000");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 1e-45F, .clearance = 1e-3F}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "points");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 0.1F, .clearance = 0.6F}, SAND_ERROR_MESH);
	CHECK_CONTAINS(err.message, "No grain fits into mesh 'Cube' of 1 x 1 x 1 m at spacing 0.1 m and clearance 0.6 m");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 0.1F, .clearance = 1e30F}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "distances");
	sand_mesh_destroy(mesh);

	TestShape shape = {0};
	test_shape_open_cylinder(&shape, 1.0F, 1.0F, 12);
	mesh = test_shape_mesh(&shape, "Pipe");
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 0.1F}, SAND_ERROR_MESH);
	CHECK_CONTAINS(err.message, "Mesh 'Pipe' has 24 open edges; sand needs a closed mesh");
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);

	// The bounds have room; the octahedron's middle is 1 / sqrt(3) = 0.577 from its faces.
	const float radii[3] = {1.0F, 1.0F, 1.0F};
	test_shape_octahedron(&shape, radii);
	mesh = test_shape_mesh(&shape, NULL);
	err = fill_refusal(mesh, (SandFillDesc){.spacing = 0.1F, .clearance = 0.58F}, SAND_ERROR_MESH);
	CHECK_CONTAINS(err.message, "No grain fits into mesh '(no name)' of 2 x 2 x 2 m");
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void points_past_the_limit_are_refused_also_when_signed_volumes_hide_them(void)
{
	// A cube and its mirror image inside out: their volumes cancel, so the estimate sees nothing.
	TestShape shape = {0};
	const float low[3] = {2.0F, 0.0F, 0.0F}, high[3] = {3.0F, 1.0F, 1.0F};
	test_shape_box(&shape, UNIT_LOW, UNIT_HIGH, false);
	test_shape_box(&shape, low, high, true);
	SandMesh *mesh = test_shape_mesh(&shape, "Pair");
	CHECK_NEAR(mesh->volume, 0.0, 1e-12);
	// One layer alone has 2 / (spacing^2 sqrt(3) / 2) = 230 million sites.
	SandError err = fill_refusal(mesh, (SandFillDesc){.spacing = 1e-4F}, SAND_ERROR_ARGUMENT);
	CHECK_CONTAINS(err.message, "Mesh 'Pair' at spacing 0.0001 m needs more than the limit of 100000000 points");
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

// ---- memory
// ----------------------------------------------------------------------------------------------------------

// Runs a call with allocation 1, 2, ... failing until it succeeds; returns how often it failed.
static int fail_each_allocation(const SandMesh *mesh, const SandCoverDesc *cover_desc, const SandFillDesc *fill_desc)
{
	size_t bytes_before = sand_alloc_bytes();
	for (uint64_t countdown = 1; countdown < 1000; ++countdown)
	{
		SandError err = {0};
		SandPoints points = {.xyz = NULL, .count = 7};
		sand_alloc_fail_after(countdown, countdown % 2 == 0);
		SandStatus status = cover_desc != NULL ? sand_sampler_cover(mesh, cover_desc, &points, &err)
		                                       : sand_sampler_fill(mesh, fill_desc, &points, &err);
		sand_alloc_fail_after(0, false);
		if (status == SAND_OK)
		{
			CHECK(points.count > 0);
			sand_points_free(&points);
			CHECK_INT(sand_alloc_bytes(), bytes_before);
			return (int)countdown - 1;
		}
		CHECK_STATUS(status, SAND_ERROR_MEMORY, &err);
		CHECK(points.xyz == NULL && points.count == 0);
		CHECK_INT(sand_alloc_bytes(), bytes_before);
	}
	return 1000;
}

static void every_failed_allocation_is_reported_and_leaks_nothing(void)
{
	SandMesh *mesh = unit_cube();
	CHECK_INT(fail_each_allocation(mesh, &(SandCoverDesc){.spacing = 0.1F}, NULL), 3); // points, links, blocks
	int failure_count = fail_each_allocation(mesh, NULL, &(SandFillDesc){.spacing = 0.1F, .jitter = 0.5F});
	CHECK(failure_count > 8 && failure_count < 100); // five arrays, then crossings, sites and points that grow
	sand_mesh_destroy(mesh);

	const float radii[3] = {10.0F, 1e-4F, 1e-4F};
	TestShape shape = {0};
	test_shape_octahedron(&shape, radii);
	mesh = test_shape_mesh(&shape, "Needle");
	failure_count = fail_each_allocation(mesh, &(SandCoverDesc){.spacing = 0.01F}, NULL);
	CHECK(failure_count > 3 && failure_count % 3 == 0); // grown several times, three arrays each
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
	sand_points_free(NULL);
}

void test_sampler(void)
{
	RUN(cover_of_a_cube_keeps_the_spacing_and_leaves_no_gap);
	RUN(cover_of_a_sphere_keeps_the_spacing_and_leaves_no_gap);
	RUN(cover_of_an_open_cylinder_keeps_the_spacing_and_leaves_no_gap);
	RUN(cover_of_a_needle_grows_beyond_the_estimate_and_leaves_no_gap);
	RUN(cover_leaves_triangles_without_area_alone);
	RUN(cover_spreads_points_by_area);
	RUN(cover_gives_the_same_bits_for_the_same_seed_and_others_for_another);
	RUN(cover_refuses_what_it_cannot_do_before_allocating);
	RUN(positions_too_far_from_the_origin_for_the_spacing_are_refused);
	RUN(a_mesh_of_endless_slivers_is_refused);
	RUN(fill_of_a_big_cube_has_the_density_of_close_packing);
	RUN(inner_points_of_a_fill_have_twelve_neighbours_at_the_spacing);
	RUN(fill_is_centred_in_the_mesh);
	RUN(fill_stays_inside_with_its_clearance);
	RUN(a_hole_takes_away_what_is_in_it_or_nearer_than_the_clearance_and_nothing_else);
	RUN(a_cube_of_ten_diameters_holds_ten_grains_in_a_row);
	RUN(a_grain_as_big_as_the_cube_fits_once);
	RUN(rows_through_vertices_and_along_edges_do_not_leak);
	RUN(the_way_a_box_is_cut_into_triangles_does_not_matter);
	RUN(crumpled_closed_meshes_are_filled_where_they_wind_an_odd_number_of_times);
	RUN(a_hole_inside_stays_empty_whichever_way_its_faces_look);
	RUN(jitter_moves_points_but_keeps_grains_apart);
	RUN(jitter_does_not_carry_points_through_a_thin_wall);
	RUN(fill_refuses_what_it_cannot_do_before_allocating);
	RUN(points_past_the_limit_are_refused_also_when_signed_volumes_hide_them);
	RUN(every_failed_allocation_is_reported_and_leaks_nothing);
}
