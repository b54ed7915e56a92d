// Tests of repair: each fault that artists leave, alone and together, against the mesh without it.
#include "repair.h"
#include "shapes.h"

static const float CUBE_LOW[3] = {-1, -1, -1}, CUBE_HIGH[3] = {1, 1, 1};

// The mended mesh of a shape; the shape is freed.
static SandMesh *mend(TestShape *shape, SandRepair *found)
{
	SandError err = {0};
	SandMesh *mesh = test_shape_mesh(shape, "Thing"), *mended = NULL;
	CHECK_STATUS(sand_mesh_repair(mesh, &mended, found, &err), SAND_OK, &err);
	sand_mesh_destroy(mesh);
	test_shape_free(shape);
	return mended;
}

// Every face gets vertices of its own.
static void loosen(TestShape *shape)
{
	TestShape loose = {0};
	for (int corner = 0; corner < 3 * shape->triangle_count; ++corner)
	{
		const float *xyz = &shape->vertices[3 * (size_t)shape->triangles[corner]];
		test_shape_vertex(&loose, (double)xyz[0], (double)xyz[1], (double)xyz[2]);
	}
	for (int face = 0; face < shape->triangle_count; ++face)
	{
		test_shape_triangle(&loose, 3 * face, 3 * face + 1, 3 * face + 2);
	}
	test_shape_free(shape);
	*shape = loose;
}

static void check_counts(const SandRepair *found, int welded, int duplicate, int degenerate, int flipped,
                         bool was_inside_out)
{
	CHECK_INT(found->welded_count, welded);
	CHECK_INT(found->duplicate_count, duplicate);
	CHECK_INT(found->degenerate_count, degenerate);
	CHECK_INT(found->flipped_count, flipped);
	CHECK_INT(found->was_inside_out, was_inside_out);
}

static void a_good_mesh_comes_back_as_it_was_and_nothing_is_said(void)
{
	TestShape shape = {0};
	test_shape_bumpy(&shape, 1, 40, 20);
	SandMesh *mesh = test_shape_mesh(&shape, "Head"), *mended = NULL;
	SandRepair found;
	SandError err = {0};
	CHECK_STATUS(sand_mesh_repair(mesh, &mended, &found, &err), SAND_OK, &err);
	check_counts(&found, 0, 0, 0, 0, false);
	CHECK(found.sentence[0] == '\0');
	CHECK_INT(mended->vertex_count, mesh->vertex_count);
	CHECK_INT(mended->triangle_count, mesh->triangle_count);
	CHECK(memcmp(mended->vertices, mesh->vertices, (size_t)mesh->vertex_count * 12) == 0);
	CHECK(memcmp(mended->triangles, mesh->triangles, (size_t)mesh->triangle_count * 12) == 0);
	CHECK(strcmp(sand_mesh_name(mended), "Head") == 0);
	sand_mesh_destroy(mended);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void flipped_faces_are_turned_back(void)
{
	TestShape shape = {0};
	test_shape_grid_box(&shape, CUBE_LOW, CUBE_HIGH, 4);
	TestShape good = {0};
	test_shape_grid_box(&good, CUBE_LOW, CUBE_HIGH, 4);
	for (int i = 0; i < 10; ++i)
	{
		test_shape_turn(&shape, 19 * i, 19 * i + 1); // spread over the 192 faces
	}
	SandRepair found;
	SandMesh *mended = mend(&shape, &found);
	check_counts(&found, 0, 0, 0, 10, false);
	CHECK(mended->is_closed);
	CHECK_NEAR(mended->volume, 8, 1e-13);
	// Each face has its first three corners back, perhaps begun at another.
	int wrong = 0;
	for (int face = 0; face < good.triangle_count; ++face)
	{
		const int32_t *a = good.triangles + 3 * (size_t)face, *b = mended->triangles + 3 * (size_t)face;
		int start = b[0] == a[0] ? 0 : b[0] == a[1] ? 1 : 2;
		wrong += b[0] != a[start] || b[1] != a[(start + 1) % 3] || b[2] != a[(start + 2) % 3];
	}
	CHECK_INT(wrong, 0);
	CHECK(strcmp(found.sentence, "Mesh 'Thing' was mended: 10 faces turned to look as their neighbours do") == 0);
	sand_mesh_destroy(mended);
	test_shape_free(&good);
}

static void most_is_measured_by_area_not_by_number(void)
{
	// One side of the cube cut into 128 small faces that look inwards, five sides of two large ones that do not.
	TestShape shape = {0};
	int corner[9][9];
	for (int y = 0; y < 9; ++y)
	{
		for (int x = 0; x < 9; ++x)
		{
			corner[y][x] = test_shape_vertex(&shape, x / 4.0 - 1, y / 4.0 - 1, 1);
		}
	}
	for (int square = 0; square < 64; ++square)
	{
		int x = square % 8, y = square / 8;
		test_shape_triangle(&shape, corner[y][x], corner[y + 1][x + 1], corner[y][x + 1]);
		test_shape_triangle(&shape, corner[y][x], corner[y + 1][x], corner[y + 1][x + 1]);
	}
	// The other sides are fans from the middle of the bottom.
	int middle = test_shape_vertex(&shape, 0, 0, -1);
	for (int i = 0; i < 8; ++i)
	{
		test_shape_triangle(&shape, corner[0][i + 1], corner[0][i], middle);
		test_shape_triangle(&shape, corner[8][i], corner[8][i + 1], middle);
		test_shape_triangle(&shape, corner[i][0], corner[i + 1][0], middle);
		test_shape_triangle(&shape, corner[i + 1][8], corner[i][8], middle);
	}
	SandRepair found;
	SandMesh *mended = mend(&shape, &found);
	check_counts(&found, 0, 0, 0, 128, false);
	CHECK(mended->is_closed);
	CHECK_NEAR(mended->volume, 8.0 / 3, 1e-14); // a pyramid
	sand_mesh_destroy(mended);
}

static void loose_faces_are_joined_and_zero_has_no_sign(void)
{
	TestShape shape = {0};
	test_shape_grid_box(&shape, CUBE_LOW, CUBE_HIGH, 2); // corners on the planes through zero
	loosen(&shape);
	for (int i = 0; i < 3 * shape.vertex_count; ++i)
	{
		shape.vertices[i] = shape.vertices[i] == 0 && i % 2 == 0 ? -0.0F : shape.vertices[i];
	}
	test_shape_turn(&shape, 7, 9);
	SandRepair found;
	SandMesh *mended = mend(&shape, &found);
	check_counts(&found, 3 * 48 - 26, 0, 0, 2, false);
	CHECK_INT(mended->vertex_count, 26);
	CHECK(mended->is_closed);
	CHECK_NEAR(mended->volume, 8, 1e-14);
	CHECK_CONTAINS(found.sentence, "118 doubled vertices joined, 2 faces turned");
	sand_mesh_destroy(mended);
}

static void vertices_a_step_of_float_apart_stay_apart(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, false);
	int near_corner = test_shape_vertex(&shape, (double)nextafterf(shape.vertices[0], 2), (double)shape.vertices[1],
	                                    (double)shape.vertices[2]);
	CHECK_INT(near_corner, 8);
	SandRepair found;
	SandMesh *mended = mend(&shape, &found);
	check_counts(&found, 0, 0, 0, 0, false);
	CHECK_INT(mended->vertex_count, 9);
	sand_mesh_destroy(mended);
}

static void doubled_and_collapsed_faces_are_dropped_in_whatever_order(void)
{
	static const int orders[6][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}};
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, false);
	for (int i = 0; i < 6; ++i)
	{
		const int32_t *face = shape.triangles + 3 * (ptrdiff_t)(i % 3);
		int a = face[orders[i][0]], b = face[orders[i][1]], c = face[orders[i][2]];
		test_shape_triangle(&shape, a, b, c);
	}
	// Twice the same vertex, and two vertices at one place.
	int again =
	    test_shape_vertex(&shape, (double)shape.vertices[0], (double)shape.vertices[1], (double)shape.vertices[2]);
	test_shape_triangle(&shape, 3, 3, 4);
	test_shape_triangle(&shape, 0, again, 5);
	SandRepair found;
	SandMesh *mended = mend(&shape, &found);
	check_counts(&found, 1, 6, 2, 0, false);
	CHECK_INT(mended->triangle_count, 12);
	CHECK(mended->is_closed);
	CHECK_NEAR(mended->volume, 8, 1e-14);
	CHECK_CONTAINS(found.sentence, "1 doubled vertex joined, 2 collapsed faces dropped, 6 doubled faces dropped");
	sand_mesh_destroy(mended);
}

static void a_sliver_with_three_places_stays(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, false);
	int32_t a = shape.triangles[0], b = shape.triangles[1], c = shape.triangles[2];
	const float *p = shape.vertices + 3 * (ptrdiff_t)a, *q = shape.vertices + 3 * (ptrdiff_t)b;
	int middle = test_shape_vertex(&shape, 0.5 * (double)(p[0] + q[0]), 0.5 * (double)(p[1] + q[1]),
	                               0.5 * (double)(p[2] + q[2]));
	shape.triangles[1] = middle;
	test_shape_triangle(&shape, middle, b, c);
	test_shape_triangle(&shape, a, middle, b); // flat, and the wrong way round
	SandRepair found;
	SandMesh *mended = mend(&shape, &found);
	check_counts(&found, 0, 0, 0, 1, false);
	CHECK_INT(mended->triangle_count, 14);
	CHECK(mended->is_closed);
	sand_mesh_destroy(mended);
}

static void a_mesh_inside_out_is_turned_as_a_whole(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, true);
	SandRepair found;
	SandMesh *mended = mend(&shape, &found);
	check_counts(&found, 0, 0, 0, 0, true);
	CHECK_NEAR(mended->volume, 8, 1e-14);
	CHECK(mended->is_closed);
	CHECK_CONTAINS(found.sentence, "all faces turned, for it was inside out");
	sand_mesh_destroy(mended);

	// Most faces look inwards: the others join them, then all are turned.
	test_shape_grid_box(&shape, CUBE_LOW, CUBE_HIGH, 3);
	test_shape_turn(&shape, 0, 90);
	mended = mend(&shape, &found);
	check_counts(&found, 0, 0, 0, 18, true);
	CHECK_NEAR(mended->volume, 8, 1e-14);
	sand_mesh_destroy(mended);
}

static void a_cavity_stays_turned_inwards(void)
{
	const float low[3] = {-0.5F, -0.5F, -0.5F}, high[3] = {0.5F, 0.5F, 0.5F};
	for (int is_turned = 0; is_turned < 2; ++is_turned)
	{
		TestShape shape = {0};
		test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, false);
		test_shape_box(&shape, low, high, true);
		test_shape_turn(&shape, 0, is_turned ? shape.triangle_count : 0);
		test_shape_turn(&shape, 14, 15); // one face of the cavity
		SandRepair found;
		SandMesh *mended = mend(&shape, &found);
		check_counts(&found, 0, 0, 0, 1, is_turned != 0);
		CHECK(mended->is_closed);
		CHECK_NEAR(mended->volume, 7, 1e-14);
		sand_mesh_destroy(mended);
	}
}

static void a_strip_with_one_side_ends_and_says_where_it_does_not_fit(void)
{
	TestShape shape = {0};
	test_shape_moebius(&shape, 1, 0.4, 50);
	test_shape_turn(&shape, 30, 31);
	SandRepair found;
	SandMesh *mended = mend(&shape, &found);
	CHECK_INT(mended->triangle_count, 100);
	CHECK_INT(mended->open_edge_count, 100);
	CHECK_INT(mended->bad_edge_count, 1); // at one place at least: it must be one
	CHECK(!mended->is_closed && !found.was_inside_out);
	CHECK_CONTAINS(found.sentence, "; left are 100 open edges, 1 edge where faces do not fit together");
	sand_mesh_destroy(mended);
}

static void an_open_bottle_is_oriented_and_its_hole_is_told(void)
{
	TestShape shape = {0};
	test_shape_bottle(&shape, 1, 3, 24);
	loosen(&shape);
	test_shape_turn(&shape, 100, 120);
	SandRepair found;
	SandMesh *mended = mend(&shape, &found);
	check_counts(&found, 3 * 360 - 193, 0, 0, 20, false);
	CHECK_INT(mended->open_edge_count, 24);
	CHECK_INT(mended->bad_edge_count, 0);
	CHECK_CONTAINS(found.sentence, "Mesh 'Thing' was mended: 887 doubled vertices joined, 20 faces turned");
	CHECK_CONTAINS(found.sentence, "; left are 24 open edges, which Mesh > Clean Up > Fill Holes");
	sand_mesh_destroy(mended);

	test_shape_bottle(&shape, 1, 3, 24);
	mended = mend(&shape, &found);
	check_counts(&found, 0, 0, 0, 0, false);
	CHECK_CONTAINS(found.sentence, "Mesh 'Thing' has 24 open edges, which Mesh >");
	sand_mesh_destroy(mended);
}

static void faces_that_meet_in_threes_are_pieces_of_their_own(void)
{
	// A fin on an edge of the cube: the edge joins nothing, so the fin's direction is its own.
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, false);
	int tip = test_shape_vertex(&shape, 3, 3, 3);
	test_shape_triangle(&shape, shape.triangles[0], shape.triangles[1], tip);
	SandRepair found;
	SandMesh *mended = mend(&shape, &found);
	check_counts(&found, 0, 0, 0, 0, false);
	CHECK_INT(mended->bad_edge_count, 1);
	CHECK_CONTAINS(found.sentence, "has 2 open edges, 1 edge where faces do not fit together");
	sand_mesh_destroy(mended);
}

static void the_longest_sentence_fits(void)
{
	char name[301];
	memset(name, 'n', 300);
	name[300] = '\0';
	TestShape shape = {0};
	test_shape_bottle(&shape, 1, 3, 24);
	loosen(&shape);
	test_shape_turn(&shape, 100, 120);
	test_shape_triangle(&shape, 0, 1, 2);
	test_shape_triangle(&shape, 0, 0, 2);
	int tip = test_shape_vertex(&shape, 3, 3, 3);
	test_shape_triangle(&shape, 0, 1, tip);
	SandMesh *mesh = test_shape_mesh(&shape, name), *mended = NULL;
	SandRepair found;
	SandError err = {0};
	CHECK_STATUS(sand_mesh_repair(mesh, &mended, &found, &err), SAND_OK, &err);
	CHECK_CONTAINS(found.sentence, "would mend");
	CHECK(strlen(found.sentence) < 440); // room for longer counts
	sand_mesh_destroy(mended);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void a_large_loose_mesh_is_mended(void)
{
	// Long strips flood deep: a recursion would run out of stack here.
	TestShape shape = {0};
	test_shape_torus(&shape, 1, 0.001, 60000, 3);
	loosen(&shape);
	for (int face = 0; face < shape.triangle_count; face += 5)
	{
		test_shape_turn(&shape, face, face + 1);
	}
	SandRepair found;
	SandMesh *mended = mend(&shape, &found);
	check_counts(&found, 3 * 360000 - 180000, 0, 0, 72000, false);
	CHECK(mended->is_closed && mended->volume > 0);
	sand_mesh_destroy(mended);
}

static void every_failed_allocation_is_reported_and_leaks_nothing(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, true);
	loosen(&shape);
	SandMesh *mesh = test_shape_mesh(&shape, "Box");
	size_t before = sand_alloc_bytes();
	int failure_count = 0;
	for (uint64_t countdown = 1; countdown < 100; ++countdown)
	{
		SandError err = {0};
		SandMesh *mended = NULL;
		SandRepair found;
		sand_alloc_fail_after(countdown, false);
		SandStatus status = sand_mesh_repair(mesh, &mended, &found, &err);
		sand_alloc_fail_after(0, false);
		if (status == SAND_OK)
		{
			sand_mesh_destroy(mended);
			break;
		}
		++failure_count;
		CHECK_STATUS(status, SAND_ERROR_MEMORY, &err);
		CHECK(mended == NULL && found.welded_count == 0 && found.sentence[0] == '\0');
		CHECK_INT(sand_alloc_bytes(), before);
	}
	CHECK_INT(failure_count, 17); // four of the sorter, seven arrays, six of the new mesh
	CHECK_INT(sand_alloc_bytes(), before);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

void test_repair(void)
{
	RUN(a_good_mesh_comes_back_as_it_was_and_nothing_is_said);
	RUN(flipped_faces_are_turned_back);
	RUN(most_is_measured_by_area_not_by_number);
	RUN(loose_faces_are_joined_and_zero_has_no_sign);
	RUN(vertices_a_step_of_float_apart_stay_apart);
	RUN(doubled_and_collapsed_faces_are_dropped_in_whatever_order);
	RUN(a_sliver_with_three_places_stays);
	RUN(a_mesh_inside_out_is_turned_as_a_whole);
	RUN(a_cavity_stays_turned_inwards);
	RUN(a_strip_with_one_side_ends_and_says_where_it_does_not_fit);
	RUN(an_open_bottle_is_oriented_and_its_hole_is_told);
	RUN(faces_that_meet_in_threes_are_pieces_of_their_own);
	RUN(the_longest_sentence_fits);
	RUN(a_large_loose_mesh_is_mended);
	RUN(every_failed_allocation_is_reported_and_leaks_nothing);
}
