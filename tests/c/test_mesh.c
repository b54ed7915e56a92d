// Tests of mesh: what is refused and in which words, and the measures against closed forms.
// Also builds the shapes that other suites use (test.h).
#include "shapes.h"

// ---- shapes
// ----------------------------------------------------------------------------------------------------------

SandMesh *test_shape_mesh(const TestShape *shape, const char *name)
{
	SandError err = {0};
	SandMesh *mesh = NULL;
	SandStatus status = sand_mesh_create(name, shape->vertices, shape->vertex_count, shape->triangles,
	                                     shape->triangle_count, &mesh, &err);
	if (!CHECK_STATUS(status, SAND_OK, &err))
	{
		printf("a test shape is no mesh: the tests cannot go on\n");
		exit(2);
	}
	return mesh;
}

void test_shape_free(TestShape *shape)
{
	free(shape->vertices);
	free(shape->triangles);
	*shape = (TestShape){0};
}

// The vertex at a place, among those from number first on; added when there is none.
static int find_vertex(TestShape *shape, int first, const double place[3])
{
	for (int vertex = first; vertex < shape->vertex_count; ++vertex)
	{
		const float *xyz = &shape->vertices[3 * (size_t)vertex];
		if (xyz[0] == (float)place[0] && xyz[1] == (float)place[1] && xyz[2] == (float)place[2])
		{
			return vertex;
		}
	}
	return test_shape_vertex(shape, place[0], place[1], place[2]);
}

void test_shape_grid_box(TestShape *shape, const float low[3], const float high[3], int n)
{
	int first_vertex = shape->vertex_count;
	for (int face = 0; face < 6; ++face)
	{
		int axis = face / 2, u_axis = (axis + 1) % 3, v_axis = (axis + 2) % 3;
		for (int square = 0; square < n * n; ++square)
		{
			int corners[4];
			for (int corner = 0; corner < 4; ++corner)
			{
				int u = square % n + (corner == 1 || corner == 2 ? 1 : 0), v = square / n + (corner >= 2 ? 1 : 0);
				double place[3];
				place[axis] = (double)(face % 2 == 0 ? low[axis] : high[axis]);
				place[u_axis] = u == n ? (double)high[u_axis]
				                       : (double)low[u_axis] + ((double)high[u_axis] - (double)low[u_axis]) * u / n;
				place[v_axis] = v == n ? (double)high[v_axis]
				                       : (double)low[v_axis] + ((double)high[v_axis] - (double)low[v_axis]) * v / n;
				corners[corner] = find_vertex(shape, first_vertex, place);
			}
			int left = face % 2 == 0 ? corners[3] : corners[1], right = face % 2 == 0 ? corners[1] : corners[3];
			test_shape_triangle(shape, corners[0], left, corners[2]);
			test_shape_triangle(shape, corners[0], corners[2], right);
		}
	}
}

void test_shape_box(TestShape *shape, const float low[3], const float high[3], bool is_inside_out)
{
	int first_triangle = shape->triangle_count;
	test_shape_grid_box(shape, low, high, 1);
	for (int triangle = first_triangle; triangle < shape->triangle_count && is_inside_out; ++triangle)
	{
		int32_t *corners = &shape->triangles[3 * (size_t)triangle];
		int32_t swapped = corners[1];
		corners[1] = corners[2];
		corners[2] = swapped;
	}
}

void test_shape_uv_sphere(TestShape *shape, float radius, int segment_count, int ring_count)
{
	int south = test_shape_vertex(shape, 0.0, 0.0, -(double)radius);
	int first = shape->vertex_count;
	for (int ring = 1; ring < ring_count; ++ring)
	{
		double latitude = TEST_PI * ((double)ring / ring_count - 0.5);
		for (int segment = 0; segment < segment_count; ++segment)
		{
			double longitude = 2.0 * TEST_PI * segment / segment_count;
			test_shape_vertex(shape, (double)radius * cos(latitude) * cos(longitude),
			                  (double)radius * cos(latitude) * sin(longitude), (double)radius * sin(latitude));
		}
	}
	int north = test_shape_vertex(shape, 0.0, 0.0, (double)radius);
	for (int segment = 0; segment < segment_count; ++segment)
	{
		int next = (segment + 1) % segment_count;
		test_shape_triangle(shape, south, first + next, first + segment);
		for (int ring = 0; ring < ring_count - 2; ++ring)
		{
			int below = first + ring * segment_count, above = below + segment_count;
			test_shape_triangle(shape, below + segment, below + next, above + next);
			test_shape_triangle(shape, below + segment, above + next, above + segment);
		}
		int last = first + (ring_count - 2) * segment_count;
		test_shape_triangle(shape, north, last + segment, last + next);
	}
}

void test_shape_octahedron(TestShape *shape, const float radii[3])
{
	int first = shape->vertex_count;
	for (int axis = 0; axis < 3; ++axis)
	{
		double place[3] = {0.0, 0.0, 0.0};
		place[axis] = (double)radii[axis];
		test_shape_vertex(shape, place[0], place[1], place[2]);
		test_shape_vertex(shape, -place[0], -place[1], -place[2]);
	}
	for (int octant = 0; octant < 8; ++octant)
	{
		int x = first + (octant & 1), y = first + 2 + (octant >> 1 & 1), z = first + 4 + (octant >> 2 & 1);
		bool is_mirrored = ((octant ^ octant >> 1 ^ octant >> 2) & 1) != 0;
		test_shape_triangle(shape, x, is_mirrored ? z : y, is_mirrored ? y : z);
	}
}

void test_shape_icosphere(TestShape *shape, float radius, int level)
{
	// The twelve corners (0, +-1, +-golden) and their cyclic shifts; a face is three corners at mutual distance 2.
	double golden = (1.0 + sqrt(5.0)) / 2.0, scale = (double)radius / sqrt(1.0 + golden * golden);
	double corner[12][3];
	int first = shape->vertex_count;
	for (int i = 0; i < 12; ++i)
	{
		corner[i][i % 3] = 0.0;
		corner[i][(i + 1) % 3] = i / 3 % 2 == 0 ? 1.0 : -1.0;
		corner[i][(i + 2) % 3] = i / 6 == 0 ? golden : -golden;
		test_shape_vertex(shape, scale * corner[i][0], scale * corner[i][1], scale * corner[i][2]);
	}
	int first_triangle = shape->triangle_count;
	for (int a = 0; a < 12; ++a)
	{
		for (int b = 0; b < 12; ++b)
		{
			for (int c = 0; c < 12; ++c)
			{
				const double *p = corner[a], *q = corner[b], *r = corner[c];
				double determinant = p[0] * (q[1] * r[2] - q[2] * r[1]) + p[1] * (q[2] * r[0] - q[0] * r[2]) +
				                     p[2] * (q[0] * r[1] - q[1] * r[0]);
				// Neighbours have the dot product golden; each face is met in its three rotations, taken in one.
				double pq = p[0] * q[0] + p[1] * q[1] + p[2] * q[2], qr = q[0] * r[0] + q[1] * r[1] + q[2] * r[2];
				double rp = r[0] * p[0] + r[1] * p[1] + r[2] * p[2];
				if (a < b && a < c && determinant > 0.0 && fabs(pq - golden) < 0.1 && fabs(qr - golden) < 0.1 &&
				    fabs(rp - golden) < 0.1)
				{
					test_shape_triangle(shape, first + a, first + b, first + c);
				}
			}
		}
	}
	for (; level > 0; --level)
	{
		int triangle_end = shape->triangle_count, first_middle = shape->vertex_count;
		for (int triangle = first_triangle; triangle < triangle_end; ++triangle)
		{
			int numbers[3], middles[3];
			for (int side = 0; side < 3; ++side)
			{
				numbers[side] = shape->triangles[3 * (size_t)triangle + (size_t)side];
			}
			for (int side = 0; side < 3; ++side)
			{
				const float *from = &shape->vertices[3 * (size_t)numbers[side]];
				const float *to = &shape->vertices[3 * (size_t)numbers[(side + 1) % 3]];
				double middle[3], length = 0.0;
				for (int axis = 0; axis < 3; ++axis)
				{
					middle[axis] = (double)from[axis] + (double)to[axis];
					length += middle[axis] * middle[axis];
				}
				for (int axis = 0; axis < 3; ++axis)
				{
					middle[axis] *= (double)radius / sqrt(length);
				}
				middles[side] = find_vertex(shape, first_middle, middle);
			}
			int32_t *corners = &shape->triangles[3 * (size_t)triangle];
			corners[1] = middles[0];
			corners[2] = middles[2];
			test_shape_triangle(shape, middles[0], numbers[1], middles[1]);
			test_shape_triangle(shape, middles[2], middles[1], numbers[2]);
			test_shape_triangle(shape, middles[0], middles[1], middles[2]);
		}
	}
}

void test_shape_open_cylinder(TestShape *shape, float radius, float height, int segment_count)
{
	int first = shape->vertex_count;
	for (int segment = 0; segment < segment_count; ++segment)
	{
		double angle = 2.0 * TEST_PI * segment / segment_count;
		test_shape_vertex(shape, (double)radius * cos(angle), (double)radius * sin(angle), 0.0);
		test_shape_vertex(shape, (double)radius * cos(angle), (double)radius * sin(angle), (double)height);
	}
	for (int segment = 0; segment < segment_count; ++segment)
	{
		int here = first + 2 * segment, next = first + 2 * ((segment + 1) % segment_count);
		test_shape_triangle(shape, here, next, next + 1);
		test_shape_triangle(shape, here, next + 1, here + 1);
	}
}

// ---- tests
// -----------------------------------------------------------------------------------------------------------

static const float CUBE_LOW[3] = {-1.0F, -1.0F, -1.0F}, CUBE_HIGH[3] = {1.0F, 1.0F, 1.0F};

// The sentence with which a mesh is refused.
static SandError refusal(const char *name, const float *vertices, int64_t vertex_count, const int32_t *triangles,
                         int64_t triangle_count)
{
	SandError err = {0};
	SandMesh *mesh = (SandMesh *)&err; // anything but NULL: failure must clear it
	size_t bytes_before = sand_alloc_bytes();
	CHECK_STATUS(sand_mesh_create(name, vertices, vertex_count, triangles, triangle_count, &mesh, &err),
	             SAND_ERROR_MESH, &err);
	CHECK(mesh == NULL);
	CHECK_INT(sand_alloc_bytes(), bytes_before);
	return err;
}

static void a_mesh_without_vertices_or_triangles_is_refused(void)
{
	const float vertices[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0};
	const int32_t triangle[3] = {0, 1, 2};
	SandError err = refusal("Empty", NULL, 0, NULL, 0);
	CHECK_CONTAINS(err.message, "Mesh 'Empty' has no vertices");
	err = refusal("Points", vertices, 3, NULL, 0);
	CHECK_CONTAINS(err.message, "Mesh 'Points' has 3 vertices but no faces");
	err = refusal(NULL, vertices, 3, NULL, -1);
	CHECK_CONTAINS(err.message, "The mesh has 3 vertices but no faces");
	// Refused by the counts alone: the arrays are never read.
	err = refusal("Huge", vertices, (int64_t)1 << 40, triangle, 1);
	CHECK_CONTAINS(err.message, "1099511627776");
	err = refusal("Huge", vertices, 3, triangle, (int64_t)1 << 30);
	CHECK_CONTAINS(err.message, "1073741824");
}

static void a_vertex_that_is_not_finite_is_named_by_its_number(void)
{
	const float bad[3] = {NAN, INFINITY, -INFINITY};
	const int32_t triangle[3] = {0, 1, 2};
	for (int axis = 0; axis < 3; ++axis)
	{
		float vertices[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0};
		vertices[6 + axis] = bad[axis];
		SandError err = refusal("Broken", vertices, 3, triangle, 1);
		CHECK_CONTAINS(err.message, "Mesh 'Broken': vertex 2 is at (");
		CHECK_CONTAINS(err.message, axis == 0 ? "nan" : "inf");
	}
}

static void an_index_out_of_range_is_named_with_its_triangle(void)
{
	const float vertices[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0};
	const int32_t wrong[3] = {3, -1, INT32_MAX};
	const char *expected[3] = {"triangle 1 uses vertex 3,", "triangle 1 uses vertex -1,",
	                           "triangle 1 uses vertex 2147483647,"};
	for (int i = 0; i < 3; ++i)
	{
		const int32_t triangles[6] = {0, 1, 2, 0, wrong[i], 2};
		SandError err = refusal("Torn", vertices, 3, triangles, 2);
		CHECK_CONTAINS(err.message, expected[i]);
		CHECK_CONTAINS(err.message, "the 3 vertices are numbered 0 to 2");
	}
}

static void a_mesh_without_area_is_refused(void)
{
	const float line[9] = {0, 0, 0, 1, 1, 1, 3, 3, 3};
	const int32_t triangles[6] = {0, 1, 2, 0, 0, 1};
	SandError err = refusal("Line", line, 3, triangles, 2);
	CHECK_CONTAINS(err.message, "Mesh 'Line' has 2 triangles, but each is collapsed");
}

static void a_long_name_is_cut_between_characters_and_the_advice_stays(void)
{
	char name[2 * 200 + 1];
	for (int i = 0; i < 200; ++i)
	{
		memcpy(&name[2 * i], "\xC3\xA9", 3); // e acute, two bytes
	}
	SandError err = refusal(name + 1, NULL, 0, NULL, 0); // odd start: the cut falls inside a character
	CHECK_CONTAINS(err.message, "\xC3\xA9...' has no vertices");

	TestShape shape = {0};
	test_shape_open_cylinder(&shape, 1.0F, 1.0F, 8);
	shape.triangles[0] = 5; // one bad edge and many open ones: the longest sentence
	SandMesh *mesh = test_shape_mesh(&shape, name);
	CHECK(strcmp(sand_mesh_name(mesh), name) == 0);
	CHECK_STATUS(sand_mesh_require_closed(mesh, &err), SAND_ERROR_MESH, &err);
	CHECK(strlen(err.message) < SAND_MESSAGE_BYTES - 1);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void one_triangle_has_area_bounds_and_three_open_edges(void)
{
	const float vertices[9] = {1, 2, 3, 4, 2, 3, 1, 6, 3};
	const int32_t triangle[3] = {0, 1, 2};
	TestShape shape = {.vertices = (float *)vertices, 3, (int32_t *)triangle, 1};
	SandMesh *mesh = test_shape_mesh(&shape, "Sail");
	CHECK_NEAR(mesh->area, 6.0, 0.0); // legs 3 and 4: exact in doubles
	CHECK_INT(mesh->open_edge_count, 3);
	CHECK_INT(mesh->bad_edge_count, 0);
	CHECK_INT(mesh->degenerate_count, 0);
	CHECK(!mesh->is_closed);
	const float low[3] = {1, 2, 3}, high[3] = {4, 6, 3};
	CHECK(memcmp(mesh->bounds_min, low, sizeof(low)) == 0);
	CHECK(memcmp(mesh->bounds_max, high, sizeof(high)) == 0);
	CHECK(mesh->vertices != vertices && memcmp(mesh->vertices, vertices, sizeof(vertices)) == 0);
	CHECK(mesh->triangles != triangle && memcmp(mesh->triangles, triangle, sizeof(triangle)) == 0);
	CHECK(strcmp(sand_mesh_name(mesh), "Sail") == 0);
	SandError err = {0};
	CHECK_STATUS(sand_mesh_require_closed(mesh, &err), SAND_ERROR_MESH, &err);
	CHECK_CONTAINS(err.message, "Mesh 'Sail' has 3 open edges; sand needs a closed mesh: close the holes");
	sand_mesh_destroy(mesh);
	sand_mesh_destroy(NULL);
}

static void a_cube_has_its_area_and_volume_anywhere(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, false);
	SandMesh *mesh = test_shape_mesh(&shape, NULL);
	CHECK_INT(mesh->vertex_count, 8);
	CHECK_INT(mesh->triangle_count, 12);
	CHECK_NEAR(mesh->area, 24.0, 0.0); // small whole numbers: exact
	CHECK_NEAR(mesh->volume, 8.0, 1e-15);
	CHECK(mesh->is_closed);
	CHECK(strcmp(sand_mesh_name(mesh), "") == 0);
	SandError err = {0};
	CHECK_STATUS(sand_mesh_require_closed(mesh, &err), SAND_OK, &err);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);

	const float far_low[3] = {1e6F, -2e6F, 3e6F}, far_high[3] = {1e6F + 2, -2e6F + 2, 3e6F + 2};
	test_shape_box(&shape, far_low, far_high, true);
	mesh = test_shape_mesh(&shape, NULL);
	// Inside out, so negative; far away all digits are still there since coordinates are subtracted first.
	CHECK_NEAR(mesh->volume, -8.0, 1e-14);
	CHECK(mesh->is_closed);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void the_largest_floats_do_not_overflow(void)
{
	const float low[3] = {-3e38F, -3e38F, -3e38F}, high[3] = {3e38F, 3e38F, 3e38F};
	TestShape shape = {0};
	test_shape_box(&shape, low, high, false);
	SandMesh *mesh = test_shape_mesh(&shape, "Universe");
	double edge = 2.0 * (double)3e38F;
	CHECK_NEAR(mesh->area / (6.0 * edge * edge), 1.0, 1e-14);
	CHECK_NEAR(mesh->volume / (edge * edge * edge), 1.0, 1e-14);
	SandError err = {0};
	CHECK_STATUS(sand_mesh_require_closed(mesh, &err), SAND_OK, &err);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void a_uv_sphere_has_the_volume_and_area_of_its_frusta(void)
{
	// Between two rings stand trapezia: a frustum over regular polygons, volume h / 3 (A + B + sqrt(A B)).
	enum
	{
		SEGMENT_COUNT = 24,
		RING_COUNT = 12
	};
	double volume = 0.0, area = 0.0;
	for (int ring = 0; ring < RING_COUNT; ++ring)
	{
		double below = TEST_PI * ((double)ring / RING_COUNT - 0.5),
		       above = TEST_PI * ((double)(ring + 1) / RING_COUNT - 0.5);
		double r = fabs(cos(below)), s = fabs(cos(above)), height = sin(above) - sin(below);
		double polygon = 0.5 * SEGMENT_COUNT * sin(2.0 * TEST_PI / SEGMENT_COUNT); // area for radius 1
		volume += height / 3.0 * polygon * (r * r + s * s + r * s);
		double apothem = cos(TEST_PI / SEGMENT_COUNT) * (r - s), slant = sqrt(height * height + apothem * apothem);
		area += SEGMENT_COUNT * sin(TEST_PI / SEGMENT_COUNT) * (r + s) * slant;
	}
	TestShape shape = {0};
	test_shape_uv_sphere(&shape, 1.0F, SEGMENT_COUNT, RING_COUNT);
	SandMesh *mesh = test_shape_mesh(&shape, "Sphere");
	// Coordinates are rounded to 24 bits: relative 6e-8 each, and errors of many corners cancel.
	CHECK_NEAR(mesh->volume, volume, 1e-7 * volume);
	CHECK_NEAR(mesh->area, area, 1e-7 * area);
	CHECK(mesh->is_closed);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void an_icosphere_starts_as_the_icosahedron_and_tends_to_the_sphere(void)
{
	double edge = 1.0 / sin(2.0 * TEST_PI / 5.0); // for circumradius 1
	double icosahedron = 5.0 / 12.0 * (3.0 + sqrt(5.0)) * edge * edge * edge;
	double sphere = 4.0 / 3.0 * TEST_PI, missing_before = 0.0;
	for (int level = 0; level < 4; ++level)
	{
		TestShape shape = {0};
		test_shape_icosphere(&shape, 1.0F, level);
		SandMesh *mesh = test_shape_mesh(&shape, "Ball");
		CHECK_INT(mesh->triangle_count, 20 << 2 * level);
		CHECK_INT(mesh->vertex_count, (10 << 2 * level) + 2); // Euler
		CHECK(mesh->is_closed);
		double missing = sphere - mesh->volume;
		if (level == 0)
		{
			CHECK_NEAR(mesh->volume, icosahedron, 1e-7 * icosahedron); // float corners
		}
		else if (level >= 2)
		{
			// What is missing falls with the square of the edge, in the limit: from level 1 on by 4 within a tenth.
			CHECK_NEAR(missing_before / missing, 4.0, 0.4);
		}
		missing_before = missing;
		sand_mesh_destroy(mesh);
		test_shape_free(&shape);
	}
}

static void an_open_cube_says_how_many_edges_are_open(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, false);
	shape.triangle_count -= 2;
	SandMesh *mesh = test_shape_mesh(&shape, "Cube");
	CHECK_INT(mesh->open_edge_count, 4);
	CHECK_INT(mesh->bad_edge_count, 0);
	CHECK(!mesh->is_closed);
	SandError err = {0};
	CHECK_STATUS(sand_mesh_require_closed(mesh, &err), SAND_ERROR_MESH, &err);
	CHECK_CONTAINS(err.message, "Mesh 'Cube' has 4 open edges; sand needs a closed mesh: close the holes");
	CHECK_CONTAINS(err.message, "Fill Holes");
	CHECK_CONTAINS(err.message, "Solidify");
	CHECK_STATUS(sand_mesh_require_closed(mesh, NULL), SAND_ERROR_MESH, NULL);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void a_flipped_triangle_makes_three_bad_edges(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, false);
	int32_t swapped = shape.triangles[0];
	shape.triangles[0] = shape.triangles[1];
	shape.triangles[1] = swapped;
	SandMesh *mesh = test_shape_mesh(&shape, "Cube");
	CHECK_INT(mesh->bad_edge_count, 3);
	CHECK_INT(mesh->open_edge_count, 0);
	CHECK(!mesh->is_closed);
	SandError err = {0};
	CHECK_STATUS(sand_mesh_require_closed(mesh, &err), SAND_ERROR_MESH, &err);
	CHECK_CONTAINS(err.message, "Mesh 'Cube' has 3 edges where more than two faces meet or two face opposite ways");
	CHECK_CONTAINS(err.message, "Recalculate Outside");
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void a_fin_on_an_edge_is_one_bad_edge_and_two_open_ones(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, false);
	int tip = test_shape_vertex(&shape, 3.0, 3.0, 3.0);
	test_shape_triangle(&shape, shape.triangles[0], shape.triangles[1], tip);
	SandMesh *mesh = test_shape_mesh(&shape, "Finned");
	CHECK_INT(mesh->bad_edge_count, 1);
	CHECK_INT(mesh->open_edge_count, 2);
	CHECK(!mesh->is_closed);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void degenerate_triangles_are_counted_and_do_not_open_a_closed_mesh(void)
{
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, false);
	int32_t a = shape.triangles[0], b = shape.triangles[1];
	test_shape_triangle(&shape, a, a, b); // names a vertex twice
	test_shape_triangle(&shape, b, b, b);
	// A corner in the middle of a side: the side's triangle keeps the long edge, a triangle without area joins it to
	// the two halves on the other side.
	int32_t c = shape.triangles[2];
	int middle = test_shape_vertex(&shape, 0.5 * (double)(shape.vertices[3 * a] + shape.vertices[3 * b]),
	                               0.5 * (double)(shape.vertices[3 * a + 1] + shape.vertices[3 * b + 1]),
	                               0.5 * (double)(shape.vertices[3 * a + 2] + shape.vertices[3 * b + 2]));
	shape.triangles[1] = middle; // a, middle, c
	test_shape_triangle(&shape, middle, b, c);
	test_shape_triangle(&shape, a, b, middle);
	SandMesh *mesh = test_shape_mesh(&shape, "Cube");
	CHECK_INT(mesh->degenerate_count, 3);
	CHECK_INT(mesh->open_edge_count, 0);
	CHECK_INT(mesh->bad_edge_count, 0);
	CHECK(mesh->is_closed);
	CHECK_NEAR(mesh->area, 24.0, 1e-14);
	CHECK_NEAR(mesh->volume, 8.0, 1e-14);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void a_sheet_folded_onto_itself_is_flat_but_two_mirrored_cubes_are_not(void)
{
	// Both sides of a tilted square, cut along different diagonals: every edge is paired, yet there is no room inside.
	const float vertices[12] = {0, 0, 0, 1, 0, 1, 1, 1, 2, 0, 1, 1};
	const int32_t triangles[12] = {0, 1, 2, 0, 2, 3, 1, 0, 3, 3, 2, 1};
	TestShape sheet = {.vertices = (float *)vertices, 4, (int32_t *)triangles, 4};
	SandMesh *mesh = test_shape_mesh(&sheet, "Sheet");
	SandError err = {0};
	CHECK(mesh->is_closed);
	CHECK_STATUS(sand_mesh_require_closed(mesh, &err), SAND_ERROR_MESH, &err);
	CHECK_CONTAINS(err.message, "Mesh 'Sheet' is flat");
	sand_mesh_destroy(mesh);

	const float other_low[3] = {3, -1, -1}, other_high[3] = {5, 1, 1};
	TestShape shape = {0};
	test_shape_box(&shape, CUBE_LOW, CUBE_HIGH, false);
	test_shape_box(&shape, other_low, other_high, true);
	mesh = test_shape_mesh(&shape, "Pair");
	CHECK_NEAR(mesh->volume, 0.0, 1e-14); // signed volumes cancel
	CHECK_STATUS(sand_mesh_require_closed(mesh, &err), SAND_OK, &err);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void edges_are_found_among_far_apart_vertex_numbers(void)
{
	// Vertex numbers that differ in several bytes of the sort key.
	enum
	{
		VERTEX_COUNT = 200000
	};
	const int32_t used[4] = {3, 300, 70001, VERTEX_COUNT - 1};
	static float vertices[3 * VERTEX_COUNT]; // zero
	for (int i = 0; i < 3; ++i)
	{
		vertices[3 * (size_t)used[i + 1] + (size_t)i] = 1.0F;
	}
	const int32_t triangles[12] = {used[0], used[2], used[1], used[0], used[3], used[2],
	                               used[0], used[1], used[3], used[1], used[2], used[3]};
	TestShape shape = {.vertices = vertices, VERTEX_COUNT, (int32_t *)triangles, 4};
	SandMesh *mesh = test_shape_mesh(&shape, "Tetrahedron");
	CHECK(mesh->is_closed);
	CHECK_NEAR(mesh->volume, 1.0 / 6.0, 1e-16);
	sand_mesh_destroy(mesh);
}

// The mass of the shape, which is freed.
static SandMass mass_of(TestShape *shape)
{
	SandMesh *mesh = test_shape_mesh(shape, "Body");
	SandMass mass = sand_mesh_mass(mesh);
	sand_mesh_destroy(mesh);
	test_shape_free(shape);
	return mass;
}

static void check_mass(const SandMass *mass, const SandMass *expected, double share)
{
	double largest = fabs(expected->inertia[0]) + fabs(expected->inertia[1]) + fabs(expected->inertia[2]);
	CHECK_NEAR(mass->volume, expected->volume, share * fabs(expected->volume));
	for (int k = 0; k < 3; ++k)
	{
		double size = fmax(1, fabs(expected->centre[k]));
		CHECK_NEAR(mass->centre[k], expected->centre[k], share * size);
	}
	for (int k = 0; k < 6; ++k)
	{
		CHECK_NEAR(mass->inertia[k], expected->inertia[k], share * largest);
	}
}

static SandMass box_mass(const double size[3], const double centre[3])
{
	double volume = size[0] * size[1] * size[2];
	SandMass mass = {.volume = volume, .centre = {centre[0], centre[1], centre[2]}};
	for (int k = 0; k < 3; ++k)
	{
		double a = size[(k + 1) % 3], b = size[(k + 2) % 3];
		mass.inertia[k] = volume * (a * a + b * b) / 12;
	}
	return mass;
}

static void a_box_has_the_mass_of_the_closed_form_near_and_far(void)
{
	const float low[3] = {1, 2, -3}, high[3] = {3, 5, 4};
	const double size[3] = {2, 3, 7}, centre[3] = {2, 3.5, 0.5};
	TestShape shape = {0};
	test_shape_grid_box(&shape, low, high, 1);
	SandMass mass = mass_of(&shape), expected = box_mass(size, centre);
	check_mass(&mass, &expected, 1e-15);

	// A million metres away floats are a sixteenth apart: whole corners stay exact, and so must the inertia.
	const double far_centre[3] = {1e6 + 2, -2e6 + 3.5, 3e6 + 0.5};
	test_shape_grid_box(&shape, low, high, 1);
	test_shape_move(&shape, 1e6, -2e6, 3e6);
	mass = mass_of(&shape);
	expected = box_mass(size, far_centre);
	check_mass(&mass, &expected, 1e-14);

	test_shape_box(&shape, low, high, true);
	mass = mass_of(&shape);
	expected = box_mass(size, centre);
	expected.volume = -expected.volume;
	for (int k = 0; k < 3; ++k)
	{
		expected.inertia[k] = -expected.inertia[k];
	}
	check_mass(&mass, &expected, 1e-15);
}

static void a_corner_tetrahedron_has_negative_products_in_its_tensor(void)
{
	// Legs 1, 2, 3 on the axes: volume 1, centre at a quarter of the legs, integral of x^2 = 6 V a^2 / 60 and of
	// x y = 6 V a b / 120 about the corner.
	const float vertices[12] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3};
	const int32_t triangles[12] = {0, 2, 1, 0, 3, 2, 0, 1, 3, 1, 2, 3};
	TestShape tetrahedron = {.vertices = (float *)vertices, 4, (int32_t *)triangles, 4};
	SandMesh *mesh = test_shape_mesh(&tetrahedron, "Corner");
	SandMass mass = sand_mesh_mass(mesh);
	sand_mesh_destroy(mesh);
	const double leg[3] = {1, 2, 3};
	double square[3];
	SandMass expected = {.volume = 1, .centre = {0.25, 0.5, 0.75}};
	for (int k = 0; k < 3; ++k)
	{
		square[k] = leg[k] * leg[k] * (0.1 - 1.0 / 16);
	}
	for (int k = 0; k < 3; ++k)
	{
		expected.inertia[k] = square[(k + 1) % 3] + square[(k + 2) % 3];
	}
	expected.inertia[3] = -leg[0] * leg[1] * (0.05 - 1.0 / 16);
	expected.inertia[4] = -leg[0] * leg[2] * (0.05 - 1.0 / 16);
	expected.inertia[5] = -leg[1] * leg[2] * (0.05 - 1.0 / 16);
	check_mass(&mass, &expected, 1e-15);
}

static void a_turned_box_has_the_turned_tensor(void)
{
	// A turn by 30 degrees about z, then 50 about x: the tensor of the box turns as R I R^T.
	const float low[3] = {-1, -2, -0.5F}, high[3] = {1, 2, 0.5F};
	const double size[3] = {2, 4, 1}, centre[3] = {0, 0, 0};
	double c = cos(TEST_PI / 6), s = sin(TEST_PI / 6), e = cos(TEST_PI / 3.6), f = sin(TEST_PI / 3.6);
	const double turn[3][3] = {{c, -s, 0}, {e * s, e * c, -f}, {f * s, f * c, e}};
	TestShape shape = {0};
	test_shape_box(&shape, low, high, false);
	for (int vertex = 0; vertex < shape.vertex_count; ++vertex)
	{
		float *xyz = shape.vertices + 3 * (size_t)vertex;
		const double from[3] = {(double)xyz[0], (double)xyz[1], (double)xyz[2]};
		for (int k = 0; k < 3; ++k)
		{
			xyz[k] = (float)(turn[k][0] * from[0] + turn[k][1] * from[1] + turn[k][2] * from[2]);
		}
	}
	SandMass mass = mass_of(&shape), straight = box_mass(size, centre), expected = straight;
	static const int axes[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
	for (int k = 0; k < 6; ++k)
	{
		expected.inertia[k] = 0;
		for (int a = 0; a < 3; ++a)
		{
			expected.inertia[k] += turn[axes[k][0]][a] * straight.inertia[a] * turn[axes[k][1]][a];
		}
	}
	CHECK(fabs(expected.inertia[3]) > 1 && fabs(expected.inertia[4]) > 1 && fabs(expected.inertia[5]) > 1);
	check_mass(&mass, &expected, 2e-7); // corners are rounded to floats
}

static void a_sphere_tends_to_two_fifths_of_mass_times_radius_squared(void)
{
	double before = 0;
	for (int level = 1; level <= 4; ++level)
	{
		TestShape shape = {0};
		test_shape_icosphere(&shape, 2.0F, level);
		test_shape_move(&shape, 5, 0, 0);
		SandMass mass = mass_of(&shape);
		double wanted = 0.4 * 4.0 / 3.0 * TEST_PI * 32, missing = wanted - mass.inertia[0];
		CHECK_NEAR(mass.centre[0], 5, 1e-6);
		// The icosphere has the icosahedron's symmetry: its tensor is that of a ball.
		CHECK_NEAR(mass.inertia[1], mass.inertia[0], 1e-6 * wanted);
		CHECK_NEAR(mass.inertia[2], mass.inertia[0], 1e-6 * wanted);
		CHECK_NEAR(mass.inertia[3], 0, 1e-6 * wanted);
		CHECK(missing > 0);
		if (level > 1)
		{
			CHECK_NEAR(before / missing, 4, 0.4); // as the square of the edge
		}
		before = missing;
	}
}

static void a_cavity_is_taken_away(void)
{
	const float low[3] = {-2, -2, -2}, high[3] = {2, 2, 2}, hole_low[3] = {0, 0, 0}, hole_high[3] = {1, 1, 1};
	TestShape shape = {0};
	test_shape_box(&shape, low, high, false);
	test_shape_box(&shape, hole_low, hole_high, true);
	SandMass mass = mass_of(&shape);
	// 64 at the origin less 1 at (1, 1, 1) / 2.
	double offset = -0.5 / 63;
	SandMass expected = {.volume = 63, .centre = {offset, offset, offset}};
	for (int k = 0; k < 3; ++k)
	{
		expected.inertia[k] = 64 * 32.0 / 12 - (2.0 / 12 + 2 * 0.25) - 63 * 2 * offset * offset;
		expected.inertia[3 + k] = 0.25 + 63 * offset * offset;
	}
	check_mass(&mass, &expected, 1e-14);
}

static void a_sheet_without_volume_has_its_middle(void)
{
	const float vertices[12] = {0, 0, 5, 2, 0, 5, 2, 4, 5, 0, 4, 5};
	const int32_t triangles[6] = {0, 1, 2, 0, 2, 3};
	TestShape sheet = {.vertices = (float *)vertices, 4, (int32_t *)triangles, 2};
	SandMesh *mesh = test_shape_mesh(&sheet, "Sheet");
	SandMass mass = sand_mesh_mass(mesh), expected = {.centre = {1, 2, 5}};
	check_mass(&mass, &expected, 0);
	sand_mesh_destroy(mesh);
}

static void every_failed_allocation_is_reported_and_leaks_nothing(void)
{
	TestShape shape = {0};
	test_shape_icosphere(&shape, 1.0F, 1);
	size_t bytes_before = sand_alloc_bytes();
	int failure_count = 0;
	for (uint64_t countdown = 1; countdown < 100; ++countdown)
	{
		SandError err = {0};
		SandMesh *mesh = NULL;
		sand_alloc_fail_after(countdown, false);
		SandStatus status = sand_mesh_create("Ball", shape.vertices, shape.vertex_count, shape.triangles,
		                                     shape.triangle_count, &mesh, &err);
		sand_alloc_fail_after(0, false);
		if (status == SAND_OK)
		{
			sand_mesh_destroy(mesh);
			break;
		}
		++failure_count;
		CHECK_STATUS(status, SAND_ERROR_MEMORY, &err);
		CHECK(mesh == NULL);
		CHECK_INT(sand_alloc_bytes(), bytes_before);
	}
	CHECK_INT(failure_count, 6); // block, name, vertices, triangles, two arrays of edges
	CHECK_INT(sand_alloc_bytes(), bytes_before);
	test_shape_free(&shape);
}

void test_mesh(void)
{
	RUN(a_mesh_without_vertices_or_triangles_is_refused);
	RUN(a_vertex_that_is_not_finite_is_named_by_its_number);
	RUN(an_index_out_of_range_is_named_with_its_triangle);
	RUN(a_mesh_without_area_is_refused);
	RUN(a_long_name_is_cut_between_characters_and_the_advice_stays);
	RUN(one_triangle_has_area_bounds_and_three_open_edges);
	RUN(a_cube_has_its_area_and_volume_anywhere);
	RUN(the_largest_floats_do_not_overflow);
	RUN(a_uv_sphere_has_the_volume_and_area_of_its_frusta);
	RUN(an_icosphere_starts_as_the_icosahedron_and_tends_to_the_sphere);
	RUN(an_open_cube_says_how_many_edges_are_open);
	RUN(a_flipped_triangle_makes_three_bad_edges);
	RUN(a_fin_on_an_edge_is_one_bad_edge_and_two_open_ones);
	RUN(degenerate_triangles_are_counted_and_do_not_open_a_closed_mesh);
	RUN(a_sheet_folded_onto_itself_is_flat_but_two_mirrored_cubes_are_not);
	RUN(edges_are_found_among_far_apart_vertex_numbers);
	RUN(a_box_has_the_mass_of_the_closed_form_near_and_far);
	RUN(a_corner_tetrahedron_has_negative_products_in_its_tensor);
	RUN(a_turned_box_has_the_turned_tensor);
	RUN(a_sphere_tends_to_two_fifths_of_mass_times_radius_squared);
	RUN(a_cavity_is_taken_away);
	RUN(a_sheet_without_volume_has_its_middle);
	RUN(every_failed_allocation_is_reported_and_leaks_nothing);
}
