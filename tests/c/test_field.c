// Tests of field and of the rows under it: distances and signs against all triangles one by one, in doubles.
#include "field.h"
#include "rows.h"
#include "shapes.h"

// ---- the slow way

typedef struct Vec
{
	double x, y, z;
} Vec;

static Vec minus(Vec a, Vec b)
{
	return (Vec){a.x - b.x, a.y - b.y, a.z - b.z};
}

static double dot(Vec a, Vec b)
{
	return a.x * b.x + a.y * b.y + a.z * b.z;
}

static Vec cross(Vec a, Vec b)
{
	return (Vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static double to_segment(Vec a, Vec b, Vec p)
{
	Vec along = minus(b, a), off = minus(p, a);
	double square = dot(along, along), share = square > 0 ? dot(along, off) / square : 0;
	share = fmin(1, fmax(0, share));
	off = minus(off, (Vec){share * along.x, share * along.y, share * along.z});
	return sqrt(dot(off, off));
}

// Distance to a triangle: to its plane where that is over the face, else to the nearest side.
static double to_triangle(const Vec c[3], Vec p)
{
	Vec normal = cross(minus(c[1], c[0]), minus(c[2], c[0]));
	double area = sqrt(dot(normal, normal)), least = INFINITY;
	bool is_over = area > 0;
	for (int i = 0; i < 3; ++i)
	{
		Vec from = c[i], to = c[(i + 1) % 3];
		least = fmin(least, to_segment(from, to, p));
		is_over = is_over && dot(cross(normal, minus(to, from)), minus(p, from)) > 0;
	}
	return is_over ? fabs(dot(normal, minus(p, c[0]))) / area : least;
}

static void corners_of(const SandMesh *mesh, int triangle, Vec c[3])
{
	for (int i = 0; i < 3; ++i)
	{
		const float *v = &mesh->vertices[3 * (size_t)mesh->triangles[3 * (size_t)triangle + (size_t)i]];
		c[i] = (Vec){(double)v[0], (double)v[1], (double)v[2]};
	}
}

static double slow_distance(const SandMesh *mesh, Vec p)
{
	double least = INFINITY;
	for (int t = 0; t < mesh->triangle_count; ++t)
	{
		Vec c[3];
		corners_of(mesh, t, c);
		least = fmin(least, to_triangle(c, p));
	}
	return least;
}

// Solid angles (Van Oosterom and Strackee 1983) over the full one.
static double slow_winding(const SandMesh *mesh, Vec p)
{
	double sum = 0;
	for (int t = 0; t < mesh->triangle_count; ++t)
	{
		Vec c[3];
		corners_of(mesh, t, c);
		Vec a = minus(c[0], p), b = minus(c[1], p), d = minus(c[2], p);
		double la = sqrt(dot(a, a)), lb = sqrt(dot(b, b)), ld = sqrt(dot(d, d));
		sum += 2 * atan2(dot(a, cross(b, d)), la * lb * ld + dot(a, b) * ld + dot(b, d) * la + dot(d, a) * lb);
	}
	return sum / (4 * TEST_PI);
}

// ---- help

typedef struct Thing
{
	SandMesh *mesh;
	SandSurface *surface;
	SandField *field;
	SandFieldInfo info;
	double extent;
} Thing;

// The field of a shape, which is freed.
static Thing thing_of(TestShape *shape, const char *name, float voxel, float band, SandPool *pool)
{
	SandError err = {0};
	Thing thing = {.mesh = test_shape_mesh(shape, name)};
	test_shape_free(shape);
	CHECK_STATUS(sand_surface_create(thing.mesh, pool, &thing.surface, &err), SAND_OK, &err);
	SandFieldDesc desc = {.voxel = voxel, .band = band};
	CHECK_STATUS(sand_field_create(thing.surface, &desc, pool, &thing.field, &err), SAND_OK, &err);
	thing.info = sand_field_info(thing.field);
	for (int k = 0; k < 3; ++k)
	{
		thing.extent = fmax(thing.extent, (double)thing.mesh->bounds_max[k] - (double)thing.mesh->bounds_min[k]);
	}
	return thing;
}

static void free_thing(Thing *thing)
{
	sand_field_destroy(thing->field);
	sand_surface_destroy(thing->surface);
	sand_mesh_destroy(thing->mesh);
}

static Vec place_of(const SandFieldInfo *info, const int32_t at[3])
{
	double voxel = (double)info->voxel;
	return (Vec){info->origin[0] + voxel * at[0], info->origin[1] + voxel * at[1], info->origin[2] + voxel * at[2]};
}

// Random nodes of the grid: those in the band against all triangles. Returns the largest error, m.
static double compare_nodes(const Thing *thing, int wanted, bool has_signs)
{
	double worst = 0, tolerance = 1e-5 * thing->extent;
	int found = 0, wrong_sign = 0, wrongly_absent = 0, absent = 0;
	for (uint64_t i = 0; found < wanted && i < 100000000; ++i)
	{
		int32_t at[3];
		float value;
		for (int k = 0; k < 3; ++k)
		{
			at[k] = (int32_t)(sand_random(7, 3 * i + (uint64_t)k) * thing->info.size[k]);
		}
		Vec p = place_of(&thing->info, at);
		if (!sand_field_node(thing->field, at[0], at[1], at[2], &value))
		{
			// Some of those without a value, too: they must be as far as that.
			if (absent < 300)
			{
				++absent;
				wrongly_absent += slow_distance(thing->mesh, p) < (double)thing->info.band - tolerance;
			}
			continue;
		}
		++found;
		double distance = slow_distance(thing->mesh, p);
		worst = fmax(worst, fabs(fabs((double)value) - distance));
		if (has_signs && distance > tolerance)
		{
			wrong_sign += (slow_winding(thing->mesh, p) > 0.5) != (value < 0);
		}
	}
	CHECK_INT(found, wanted);
	CHECK_INT(wrong_sign, 0);
	CHECK_INT(wrongly_absent, 0);
	CHECK(worst <= tolerance);
	return worst;
}

// ---- rows

static void rows_of_every_build_agree_with_the_slow_way(void)
{
	const SandRows *builds[2] = {sand_rows_find("baseline"), sand_rows_find(NULL)};
	CHECK(builds[0] != NULL && builds[1] != NULL && sand_rows_find("none") == NULL);
	int wrong = 0, different = 0, missed = 0;
	for (uint64_t i = 0; i < 2000; ++i)
	{
		static SandRowsBrick bricks[2];
		double corners[3][3], size = i % 4 == 0 ? 500 : 8;
		float band = i % 3 == 0 ? 40.0F : 2.0F;
		for (int k = 0; k < 9; ++k)
		{
			corners[k / 3][k % 3] = size * (sand_random(1, 9 * i + (uint64_t)k) - 0.5);
		}
		for (int k = 0; k < 3; ++k)
		{
			// Now and then two corners at one place, all on a line, all at one place.
			corners[1][k] = i % 5 == 1 ? corners[0][k] : corners[1][k];
			corners[2][k] = i % 5 == 2 ? 0.3 * corners[0][k] + 0.7 * corners[1][k] : corners[2][k];
			corners[2][k] = i % 10 == 1 ? corners[0][k] : corners[2][k];
		}
		for (int b = 0; b < 2; ++b)
		{
			for (int node = 0; node < SAND_BRICK_NODES; ++node)
			{
				bricks[b].square[node] = INFINITY;
				bricks[b].height[node] = 0;
			}
			builds[b]->take(&bricks[b], (const double(*)[3])corners, band);
		}
		different += memcmp(&bricks[0], &bricks[1], sizeof(bricks[0])) != 0;
		Vec c[3] = {{corners[0][0], corners[0][1], corners[0][2]},
		            {corners[1][0], corners[1][1], corners[1][2]},
		            {corners[2][0], corners[2][1], corners[2][2]}};
		Vec normal = cross(minus(c[1], c[0]), minus(c[2], c[0]));
		for (int node = 0; node < SAND_BRICK_NODES; ++node)
		{
			Vec p = {node % 8 - 3.5, node / 8 % 8 - 3.5, node / 64 - 3.5};
			double distance = to_triangle(c, p), square = (double)bricks[0].square[node];
			bool is_taken = square < INFINITY;
			missed += !is_taken && distance <= (double)band;
			wrong += is_taken && fabs(sqrt(square) - distance) > 1e-5 * fmax(1, distance);
			double height = (double)bricks[0].height[node];
			wrong += height != 0 && fabs(height) > 1e-4 && (dot(normal, minus(p, c[0])) > 0) != (height > 0);
		}
	}
	CHECK_INT(missed, 0);
	CHECK_INT(wrong, 0);
	CHECK_INT(different, 0);
}

// ---- field

static void check_shape(TestShape *shape, const char *name, float voxel)
{
	Thing thing = thing_of(shape, name, voxel, 0, NULL);
	compare_nodes(&thing, 10000, true);
	free_thing(&thing);
}

static void cube_agrees_with_all_triangles(void)
{
	const float low[3] = {-1, -1, -1}, high[3] = {1, 1, 1};
	TestShape shape = {0};
	test_shape_box(&shape, low, high, false);
	check_shape(&shape, "Cube", 0.043F);
	test_shape_grid_box(&shape, low, high, 10);
	check_shape(&shape, "Grid", 0.07F);
}

static void torus_agrees_with_all_triangles(void)
{
	TestShape shape = {0};
	test_shape_torus(&shape, 1, 0.4, 40, 20);
	check_shape(&shape, "Torus", 0.05F);
}

static void thin_plate_agrees_with_all_triangles(void)
{
	// A fifth of a voxel thick: both sides within one cell, most nodes see none of the inside.
	TestShape shape = {0};
	test_shape_plate(&shape, 2, 0.01, 8);
	check_shape(&shape, "Plate", 0.05F);
	test_shape_plate(&shape, 2, 0.4, 8);
	check_shape(&shape, "Slab", 0.05F);
}

static void trefoil_agrees_with_all_triangles(void)
{
	TestShape shape = {0};
	test_shape_trefoil(&shape, 2, 0.18, 100, 12);
	check_shape(&shape, "Knot", 0.04F);
}

static void needles_agree_with_all_triangles(void)
{
	TestShape shape = {0};
	test_shape_needle_star(&shape, 0.3, 1, 2);
	check_shape(&shape, "Star", 0.03F);
}

static void head_agrees_with_all_triangles(void)
{
	TestShape shape = {0};
	test_shape_bumpy(&shape, 1, 48, 24);
	check_shape(&shape, "Head", 0.06F);
}

static void large_faces_and_far_places_lose_nothing(void)
{
	// Faces of 150 voxels a million metres away, where floats are a sixteenth apart. The corners are exact.
	const float low[3] = {0, 0, 0}, high[3] = {150, 150, 150};
	TestShape shape = {0};
	test_shape_box(&shape, low, high, false);
	test_shape_move(&shape, 1e6, -1e6, 2e6);
	Thing thing = thing_of(&shape, "Far", 1, 2, NULL);
	double worst = compare_nodes(&thing, 2000, false);
	CHECK(worst < 1e-6); // of a voxel of 1 m: floats of the value itself
	free_thing(&thing);
}

static void bottle_has_sensible_signs(void)
{
	TestShape shape = {0};
	test_shape_bottle(&shape, 1, 3, 32);
	Thing thing = thing_of(&shape, "Bottle", 0.06F, 0, NULL);
	CHECK(!sand_surface_is_clean(thing.surface));
	compare_nodes(&thing, 2000, false);
	int inside = 0, outside = 0;
	for (uint64_t i = 0; inside + outside < 2000; ++i)
	{
		int32_t at[3];
		float value;
		for (int k = 0; k < 3; ++k)
		{
			at[k] = (int32_t)(sand_random(9, 3 * i + (uint64_t)k) * thing.info.size[k]);
		}
		Vec p = place_of(&thing.info, at);
		// Below the shoulder all is as in a closed bottle.
		if (p.z < 1.5 && sand_field_node(thing.field, at[0], at[1], at[2], &value) && fabsf(value) > 0.02F)
		{
			bool is_inside = p.z > 0 && p.x * p.x + p.y * p.y < 1;
			CHECK((value < 0) == is_inside);
			inside += is_inside;
			outside += !is_inside;
		}
	}
	CHECK(inside > 300 && outside > 300);
	free_thing(&thing);
}

static void gradient_is_a_unit_vector_away_from_the_surface(void)
{
	TestShape shape = {0};
	test_shape_torus(&shape, 1, 0.4, 200, 100);
	Thing thing = thing_of(&shape, "Torus", 0.02F, 0.08F, NULL);
	double worst_length = 0, worst_distance = 0, worst_angle = 0;
	int checked = 0;
	for (uint64_t i = 0; checked < 10000; ++i)
	{
		double turn = 2 * TEST_PI * sand_random(3, 3 * i), angle = 2 * TEST_PI * sand_random(3, 3 * i + 1);
		double height = 0.09 * (2 * sand_random(3, 3 * i + 2) - 1), radius = 1 + (0.4 + height) * cos(angle);
		const double place[3] = {radius * cos(turn), radius * sin(turn), (0.4 + height) * sin(angle)};
		const double normal[3] = {cos(angle) * cos(turn), cos(angle) * sin(turn), sin(angle)};
		double distance, gradient[3], same;
		if (!sand_field_sample(thing.field, place, &distance, gradient))
		{
			CHECK(fabs(height) > 0.08 - 0.02 * sqrt(3.0) - 1e-3); // a corner of the cell is out of the band
			continue;
		}
		++checked;
		double length = sqrt(gradient[0] * gradient[0] + gradient[1] * gradient[1] + gradient[2] * gradient[2]);
		double along = gradient[0] * normal[0] + gradient[1] * normal[1] + gradient[2] * normal[2];
		worst_length = fmax(worst_length, fabs(length - 1));
		worst_angle = fmax(worst_angle, acos(fmin(1, along / length)));
		worst_distance = fmax(worst_distance, fabs(distance - height));
		CHECK(sand_field_sample(thing.field, place, &same, NULL) && same == distance);
	}
	CHECK(worst_length <
	      0.04); // a trilinear slope belongs to the middle of its cell: 0.7 voxel / (2 * 0.32), and creases
	CHECK(worst_angle < 0.06);      // faces of 3.6 degrees, whose field has their creases
	CHECK(worst_distance < 0.0008); // the faces' sagitta, 0.4 * (1 - cos 1.8 degrees) and 1.4 * (1 - cos 0.9 degrees)
	free_thing(&thing);
}

static void sample_is_the_derivative_and_meets_the_nodes(void)
{
	TestShape shape = {0};
	test_shape_bumpy(&shape, 1, 48, 24);
	Thing thing = thing_of(&shape, "Head", 0.06F, 0, NULL);
	int checked = 0;
	for (uint64_t i = 0; checked < 1000; ++i)
	{
		double place[3], distance, gradient[3];
		for (int k = 0; k < 3; ++k)
		{
			place[k] = thing.info.origin[k] + 0.06 * thing.info.size[k] * sand_random(5, 3 * i + (uint64_t)k);
		}
		if (!sand_field_sample(thing.field, place, &distance, gradient))
		{
			continue;
		}
		++checked;
		for (int k = 0; k < 3; ++k)
		{
			// Within a cell the value is linear along each axis: two places on the line give the slope.
			double node = (place[k] - thing.info.origin[k]) / (double)thing.info.voxel;
			double step = node - floor(node) < 0.5 ? 0.02 : -0.02;
			double other[3] = {place[0], place[1], place[2]}, there;
			other[k] += step * (double)thing.info.voxel;
			CHECK(sand_field_sample(thing.field, other, &there, NULL));
			CHECK_NEAR((there - distance) / (step * (double)thing.info.voxel), gradient[k], 1e-9);
		}
	}
	// At a node the sample is the node's value.
	for (uint64_t i = 0; checked < 2000; ++i)
	{
		int32_t at[3];
		float value;
		double distance;
		for (int k = 0; k < 3; ++k)
		{
			at[k] = (int32_t)(sand_random(6, 3 * i + (uint64_t)k) * thing.info.size[k]);
		}
		Vec p = place_of(&thing.info, at);
		const double place[3] = {p.x + 1e-9, p.y + 1e-9, p.z + 1e-9};
		if (sand_field_sample(thing.field, place, &distance, NULL))
		{
			CHECK(sand_field_node(thing.field, at[0], at[1], at[2], &value));
			CHECK_NEAR(distance, value, 1e-8);
			++checked;
		}
	}
	const double nowhere[3] = {(double)NAN, 0, 0}, middle[3] = {0, 0, 0}, outside[3] = {100, 0, 0};
	double distance;
	float value;
	CHECK(!sand_field_sample(thing.field, nowhere, &distance, NULL));
	CHECK(!sand_field_sample(thing.field, middle, &distance, NULL));
	CHECK(!sand_field_sample(thing.field, outside, &distance, NULL));
	CHECK(!sand_field_node(thing.field, -1, 0, 0, &value));
	CHECK(!sand_field_node(thing.field, 0, thing.info.size[1], 0, &value));
	CHECK(!sand_field_node(thing.field, 0, 0, 0, &value));
	free_thing(&thing);
}

static uint64_t hash_of(const Thing *thing)
{
	uint64_t hash = 0;
	for (int32_t z = 0; z < thing->info.size[2]; ++z)
	{
		for (int32_t y = 0; y < thing->info.size[1]; ++y)
		{
			for (int32_t x = 0; x < thing->info.size[0]; ++x)
			{
				float value = NAN;
				(void)sand_field_node(thing->field, x, y, z, &value);
				hash = sand_hash64(&value, sizeof(value), hash);
			}
		}
	}
	return hash;
}

static void every_thread_count_gives_the_same_bits(void)
{
	uint64_t hashes[2][4];
	for (int threads = 0; threads <= 3; ++threads)
	{
		SandError err = {0};
		SandPool *pool = NULL;
		if (threads > 0)
		{
			CHECK_STATUS(sand_pool_create(threads, &pool, &err), SAND_OK, &err);
		}
		TestShape shape = {0};
		test_shape_trefoil(&shape, 1, 0.09, 200, 16);
		Thing thing = thing_of(&shape, "Knot", 0.02F, 0, pool);
		hashes[0][threads] = hash_of(&thing);
		free_thing(&thing);
		test_shape_bottle(&shape, 0.5, 1, 24);
		thing = thing_of(&shape, "Bottle", 0.02F, 0, pool);
		hashes[1][threads] = hash_of(&thing);
		free_thing(&thing);
		sand_pool_destroy(pool);
	}
	for (int threads = 1; threads <= 3; ++threads)
	{
		CHECK(hashes[0][threads] == hashes[0][0]);
		CHECK(hashes[1][threads] == hashes[1][0]);
	}
	CHECK(hashes[0][0] != hashes[1][0]);
}

static size_t bytes_of_sphere(float voxel)
{
	TestShape shape = {0};
	test_shape_icosphere(&shape, 1, 3);
	size_t before = sand_alloc_bytes();
	Thing thing = thing_of(&shape, "Ball", voxel, 2 * voxel, NULL);
	sand_surface_destroy(thing.surface);
	thing.surface = NULL;
	sand_mesh_destroy(thing.mesh);
	thing.mesh = NULL;
	size_t bytes = sand_alloc_bytes() - before;
	CHECK_NEAR(thing.info.byte_count, bytes, 1024);
	free_thing(&thing);
	CHECK_INT(sand_alloc_bytes(), before);
	return bytes;
}

static void memory_goes_with_the_area(void)
{
	double coarse = (double)bytes_of_sphere(0.02F), fine = (double)bytes_of_sphere(0.01F);
	CHECK(fine / coarse > 3.4 && fine / coarse < 4.6);
	// Two small cubes at opposite corners of a grid of a thousand nodes to each side.
	const float low[3] = {0, 0, 0}, high[3] = {0.01F, 0.01F, 0.01F};
	const float other_low[3] = {0.99F, 0.99F, 0.99F}, other_high[3] = {1, 1, 1};
	TestShape shape = {0};
	test_shape_box(&shape, low, high, false);
	test_shape_box(&shape, other_low, other_high, false);
	Thing thing = thing_of(&shape, "Corners", 0.001F, 0.003F, NULL);
	CHECK(thing.info.size[0] >= 1000 && thing.info.size[2] >= 1000);
	CHECK(thing.info.brick_count <= 2 * 4 * 4 * 4);
	CHECK(thing.info.byte_count < 300000);
	compare_nodes(&(Thing){thing.mesh, thing.surface, thing.field, thing.info, 1}, 0, true);
	float value;
	CHECK(sand_field_node(thing.field, 4, 10, 10, &value)); // on the face x = 0, four voxels from the grid's edge
	CHECK_NEAR(value, 0, 1e-6);
	free_thing(&thing);
	// A sheet right across: its band costs its area, not its box.
	const float corners[9] = {0, 0, 0, 1, 1, 0, 0.5F, 0.5F, 1};
	const int32_t triangle[3] = {0, 1, 2};
	for (int corner = 0; corner < 3; ++corner)
	{
		test_shape_vertex(&shape, (double)corners[3 * corner], (double)corners[3 * corner + 1],
		                  (double)corners[3 * corner + 2]);
	}
	test_shape_triangle(&shape, triangle[0], triangle[1], triangle[2]);
	thing = thing_of(&shape, "Sail", 0.002F, 0.004F, NULL);
	// 0.707 m^2 are 2762 faces of bricks; a sheet in general position meets up to 3 bricks for each, its band some
	// more.
	CHECK(thing.info.brick_count > 2762 && thing.info.brick_count < 4 * 2762);
	free_thing(&thing);
}

static void bad_arguments_are_refused_in_a_sentence(void)
{
	static const SandFieldDesc bad[] = {{.voxel = 0},
	                                    {.voxel = -1},
	                                    {.voxel = NAN},
	                                    {.voxel = INFINITY},
	                                    {.voxel = 0.1F, .band = -1},
	                                    {.voxel = 0.1F, .band = NAN},
	                                    {.voxel = 0.1F, .band = 11},
	                                    {.voxel = 1e-6F},
	                                    {.voxel = 1e-30F}};
	const float low[3] = {-1, -1, -1}, high[3] = {1, 1, 1};
	TestShape shape = {0};
	test_shape_box(&shape, low, high, false);
	Thing thing = thing_of(&shape, "Cube", 0.1F, 0, NULL);
	CHECK_NEAR(thing.info.band, 0.3, 1e-7);
	size_t before = sand_alloc_bytes();
	for (int i = 0; i < (int)(sizeof(bad) / sizeof(bad[0])); ++i)
	{
		SandError err = {0};
		SandField *field = thing.field;
		CHECK_STATUS(sand_field_create(thing.surface, &bad[i], NULL, &field, &err), SAND_ERROR_ARGUMENT, &err);
		CHECK(field == NULL);
		CHECK_CONTAINS(err.message, i < 4 ? "voxel" : i < 7 ? "The band" : "Mesh 'Cube' is too large");
		CHECK_INT(sand_alloc_bytes(), before);
	}
	SandError err = {0};
	SandField *field = NULL;
	(void)sand_field_create(thing.surface, &bad[7], NULL, &field, &err);
	// 2^31 bricks of 8 nodes in 2 m along each side are 0.19 mm.
	CHECK_CONTAINS(err.message, "a voxel of 0.00021 m or more would do");
	free_thing(&thing);
	sand_field_destroy(NULL);
}

static void a_raised_flag_ends_the_build(void)
{
	TestShape shape = {0};
	test_shape_icosphere(&shape, 1, 2);
	Thing thing = thing_of(&shape, "Ball", 0.1F, 0, NULL);
	size_t before = sand_alloc_bytes();
	SandCancel cancel = {1};
	SandError err = {0};
	SandField *field = NULL;
	SandFieldDesc desc = {.voxel = 0.02F, .cancel = &cancel};
	CHECK_STATUS(sand_field_create(thing.surface, &desc, NULL, &field, &err), SAND_CANCELLED, &err);
	CHECK(field == NULL);
	CHECK_INT(sand_alloc_bytes(), before);
	cancel.is_raised = 0;
	CHECK_STATUS(sand_field_create(thing.surface, &desc, NULL, &field, &err), SAND_OK, &err);
	sand_field_destroy(field);
	free_thing(&thing);
}

static void every_failing_allocation_is_reported(void)
{
	TestShape shape = {0};
	test_shape_icosphere(&shape, 1, 1);
	Thing thing = thing_of(&shape, "Ball", 0.1F, 0, NULL);
	size_t before = sand_alloc_bytes();
	int failure_count = 0;
	for (uint64_t countdown = 1; countdown < 100; ++countdown)
	{
		SandError err = {0};
		SandField *field = NULL;
		SandFieldDesc desc = {.voxel = 0.2F};
		sand_alloc_fail_after(countdown, false);
		SandStatus status = sand_field_create(thing.surface, &desc, NULL, &field, &err);
		sand_alloc_fail_after(0, false);
		if (status == SAND_OK)
		{
			sand_field_destroy(field);
			break;
		}
		++failure_count;
		CHECK_STATUS(status, SAND_ERROR_MEMORY, &err);
		CHECK(field == NULL);
		CHECK_INT(sand_alloc_bytes(), before);
	}
	CHECK_INT(failure_count, 9); // the field, four of the sorter, four of the bricks
	CHECK_INT(sand_alloc_bytes(), before);
	free_thing(&thing);
}

void test_field(void)
{
	RUN(rows_of_every_build_agree_with_the_slow_way);
	RUN(cube_agrees_with_all_triangles);
	RUN(torus_agrees_with_all_triangles);
	RUN(thin_plate_agrees_with_all_triangles);
	RUN(trefoil_agrees_with_all_triangles);
	RUN(needles_agree_with_all_triangles);
	RUN(head_agrees_with_all_triangles);
	RUN(large_faces_and_far_places_lose_nothing);
	RUN(bottle_has_sensible_signs);
	RUN(gradient_is_a_unit_vector_away_from_the_surface);
	RUN(sample_is_the_derivative_and_meets_the_nodes);
	RUN(every_thread_count_gives_the_same_bits);
	RUN(memory_goes_with_the_area);
	RUN(bad_arguments_are_refused_in_a_sentence);
	RUN(a_raised_flag_ends_the_build);
	RUN(every_failing_allocation_is_reported);
}
