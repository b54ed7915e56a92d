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
		p[2] = 0; // in the surface the side that is known holds
		for (int side = -1; side <= 1; ++side)
		{
			for (int k = 0; k < rig.count; ++k)
			{
				rig.sides[k] = (float)side;
			}
			if (CHECK_INT(rig_touch(&rig, p, 0.4), 1))
			{
				check_hit(&rig.hits[0], 0, 0, 0, side < 0 ? -1 : 1);
			}
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

// ---- brute force ----------------------------------------------------------------------------------------------------

typedef struct Spot
{
	double point[3], distance;
	int32_t triangle;
} Spot;

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// Nearest point of a triangle by another way than the room's: over the face when its weights are positive, else the
// nearest of the three sides.
static Spot spot_of(double corners[3][3], const double p[3])
{
	Spot spot = {.distance = 1e300};
	double e[2][3], from[3], g[2][2], r[2];
	for (int k = 0; k < 3; ++k)
	{
		e[0][k] = corners[1][k] - corners[0][k];
		e[1][k] = corners[2][k] - corners[0][k];
		from[k] = p[k] - corners[0][k];
	}
	for (int i = 0; i < 2; ++i)
	{
		g[i][0] = dot(e[i], e[0]);
		g[i][1] = dot(e[i], e[1]);
		r[i] = dot(e[i], from);
	}
	double whole = g[0][0] * g[1][1] - g[0][1] * g[1][0];
	double u = (r[0] * g[1][1] - r[1] * g[0][1]) / whole, v = (r[1] * g[0][0] - r[0] * g[1][0]) / whole;
	for (int side = -1; side < 3; ++side)
	{
		double at[3], way[3];
		const double *a = corners[side < 0 ? 0 : side], *b = corners[(side + 1) % 3];
		if (side < 0 && !(u >= 0 && v >= 0 && u + v <= 1))
		{
			continue;
		}
		double along[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, to[3] = {p[0] - a[0], p[1] - a[1], p[2] - a[2]};
		double share = fmin(fmax(dot(along, to) / dot(along, along), 0), 1);
		for (int k = 0; k < 3; ++k)
		{
			at[k] = side < 0 ? corners[0][k] + u * e[0][k] + v * e[1][k] : a[k] + share * along[k];
			way[k] = p[k] - at[k];
		}
		double distance = sqrt(dot(way, way));
		if (distance < spot.distance)
		{
			spot.distance = distance;
			memcpy(spot.point, at, sizeof(at));
		}
	}
	return spot;
}

// All triangles where the rig's mesh is at a time, by the description instead of the collider.
static void place_corners(const SandMesh *mesh, const SandColliderDesc *desc, double time, int32_t triangle,
                          double corners[3][3])
{
	SandPose pose = {.orientation = {1, 0, 0, 0}};
	if (desc->track != NULL)
	{
		sand_track_pose(desc->track, time, &pose);
	}
	for (int i = 0; i < 3; ++i)
	{
		size_t vertex = 3 * (size_t)mesh->triangles[3 * (size_t)triangle + (size_t)i],
		       stride = 3 * (size_t)mesh->vertex_count;
		double at[3];
		for (size_t k = 0; k < 3; ++k)
		{
			at[k] = (double)mesh->vertices[vertex + k];
			if (desc->frames != NULL)
			{
				double since = fmin(fmax((time - desc->frame_begin) / desc->frame_interval, 0), desc->frame_count - 1);
				size_t frame = (size_t)fmin(since, desc->frame_count - 2);
				double share = since - (double)frame;
				at[k] = (1 - share) * (double)desc->frames[frame * stride + vertex + k] +
				        share * (double)desc->frames[(frame + 1) * stride + vertex + k];
			}
		}
		sand_turn(pose.orientation, at, corners[i]);
		for (int k = 0; k < 3; ++k)
		{
			corners[i][k] += pose.position[k];
		}
	}
}

// Local minima of the distance below reach: the nearest points of triangles at which no triangle that holds that point
// too has a nearer one. Only for meshes without areas of zero.
static int find_minima(const SandMesh *mesh, const SandColliderDesc *desc, double time, const double p[3], double reach,
                       Spot *spots, int limit)
{
	int count = 0;
	for (int32_t t = 0; t < mesh->triangle_count; ++t)
	{
		double corners[3][3];
		place_corners(mesh, desc, time, t, corners);
		Spot spot = spot_of(corners, p);
		bool is_minimum = spot.distance < reach;
		for (int32_t other = 0; is_minimum && other < mesh->triangle_count; ++other)
		{
			place_corners(mesh, desc, time, other, corners);
			is_minimum =
			    spot_of(corners, spot.point).distance > 1e-11 || spot_of(corners, p).distance > spot.distance - 1e-11;
		}
		for (int i = 0; is_minimum && i < count; ++i)
		{
			const double way[3] = {spot.point[0] - spots[i].point[0], spot.point[1] - spots[i].point[1],
			                       spot.point[2] - spots[i].point[2]};
			is_minimum = sqrt(dot(way, way)) > 1e-8;
		}
		if (is_minimum && count < limit)
		{
			spot.triangle = t;
			spots[count++] = spot;
		}
	}
	return count;
}

// Minima on triangles that meet in a crease of less than 8 degrees are one: the nearest.
static int join_minima(const SandMesh *mesh, const double p[3], Spot *spots, int count)
{
	for (int i = 0; i < count; ++i)
	{
		for (int j = i + 1; j < count; ++j)
		{
			double n[2][3], shared = 0;
			for (int k = 0; k < 3; ++k)
			{
				n[0][k] = (p[k] - spots[i].point[k]) / spots[i].distance;
				n[1][k] = (p[k] - spots[j].point[k]) / spots[j].distance;
			}
			for (int k = 0; k < 9; ++k)
			{
				shared +=
				    mesh->triangles[3 * spots[i].triangle + k % 3] == mesh->triangles[3 * spots[j].triangle + k / 3];
			}
			if (shared > 0 && dot(n[0], n[1]) > 0.99)
			{
				int32_t lower = spots[i].triangle;
				spots[i] = spots[i].distance <= spots[j].distance ? spots[i] : spots[j];
				spots[i].triangle = lower;
				spots[j--] = spots[--count];
			}
		}
	}
	return count;
}

static void check_against_minima(Rig *rig, const SandColliderDesc *desc, double time, const double p[3], double reach)
{
	Spot spots[256];
	int expected = join_minima(rig->mesh, p, spots, find_minima(rig->mesh, desc, time, p, reach, spots, 256));
	int matched = 0, count = rig_touch_anew(rig, p, reach);
	CHECK_INT(count, expected < SAND_HIT_LIMIT ? expected : SAND_HIT_LIMIT);
	for (int i = 0; i < count; ++i)
	{
		const SandHit *hit = &rig->hits[i];
		CHECK(i == 0 || rig->hits[i - 1].slot < hit->slot);
		for (int j = 0; j < expected; ++j)
		{
			double way[3];
			for (int k = 0; k < 3; ++k)
			{
				way[k] = p[k] - hit->distance * hit->normal[k] - spots[j].point[k];
			}
			if (sqrt(dot(way, way)) < 1e-9 && fabs(hit->distance - spots[j].distance) < 1e-11)
			{
				CHECK_INT(rig->list[hit->slot], spots[j].triangle);
				++matched;
				break;
			}
		}
	}
	CHECK_INT(matched, count);
}

static void hits_are_the_local_minima_of_sharp_meshes(void)
{
	for (int shape_number = 0; shape_number < 5; ++shape_number)
	{
		TestShape shape = {0};
		const float low[3] = {-0.9F, -0.8F, -0.7F}, high[3] = {0.9F, 0.8F, 0.7F}, radii[3] = {1, 0.7F, 0.4F};
		switch (shape_number)
		{
		case 0:
			test_shape_icosphere(&shape, 1, 0);
			break;
		case 1:
			test_shape_box(&shape, low, high, false);
			break;
		case 2:
			test_shape_torus(&shape, 0.7, 0.3, 9, 6);
			break;
		case 3:
			test_shape_needle_star(&shape, 0.5, 1, 0);
			break;
		default:
			test_shape_octahedron(&shape, radii);
			break;
		}
		SandColliderDesc desc = {0};
		Rig rig = rig_of(&shape, desc);
		for (uint64_t i = 0; i < 400; ++i)
		{
			double p[3];
			for (uint64_t k = 0; k < 3; ++k)
			{
				p[k] = between(20000 + 3 * i + k, -1.2, 1.2);
			}
			check_against_minima(&rig, &desc, 0, p, between(30000 + i, 0.05, 0.6));
		}
		rig_free(&rig);
	}
}

// Triangles that share no vertices but places.
static void add_soup(TestShape *shape, const TestShape *from)
{
	for (int i = 0; i < 3 * from->triangle_count; ++i)
	{
		const float *x = &from->vertices[3 * (size_t)from->triangles[i]];
		int vertex = test_shape_vertex(shape, (double)x[0], (double)x[1], (double)x[2]);
		// 0 and -0 are one place.
		shape->vertices[3 * vertex + 2] = x[2] == 0 && i % 2 != 0 ? -x[2] : x[2];
		if (i % 3 == 2)
		{
			test_shape_triangle(shape, vertex - 2, vertex - 1, vertex);
		}
	}
}

static void triangles_that_share_places_are_welded(void)
{
	TestShape shape = {0}, soup = {0};
	test_shape_icosphere(&shape, 1, 1);
	add_soup(&soup, &shape);
	float frames[2][720];
	CHECK_INT(3 * soup.vertex_count, 720);
	memcpy(frames[0], soup.vertices, sizeof(frames[0]));
	memcpy(frames[1], soup.vertices, sizeof(frames[1]));
	TestShape again = {0};
	add_soup(&again, &shape);
	Rig whole = rig_of(&shape, (SandColliderDesc){0}), parts = rig_of(&soup, (SandColliderDesc){0});
	Rig changing = rig_of(&again, (SandColliderDesc){.frames = frames[0], .frame_count = 2, .frame_interval = 1});
	Rig *others[2] = {&parts, &changing};
	for (uint64_t i = 0; i < 1000; ++i)
	{
		double p[3];
		for (uint64_t k = 0; k < 3; ++k)
		{
			p[k] = between(3 * i + k, -1.2, 1.2);
		}
		int count = rig_touch_anew(&whole, p, 0.35);
		for (int k = 0; k < 2; ++k)
		{
			CHECK_INT(rig_touch_anew(others[k], p, 0.35), count);
			CHECK(memcmp(others[k]->hits, whole.hits, (size_t)count * sizeof(SandHit)) == 0);
		}
	}
	rig_free(&whole);
	rig_free(&parts);
	rig_free(&changing);
}

static void triangles_without_area_lead_nowhere(void)
{
	TestShape shape = {0};
	test_shape_vertex(&shape, -5, -5, 0);
	test_shape_vertex(&shape, 5, -5, 0);
	test_shape_vertex(&shape, 0, 5, 0);
	test_shape_triangle(&shape, 0, 1, 2);
	// A tip above the floor, with a line from it down to the floor.
	test_shape_vertex(&shape, 0.5, -0.5, 1);
	test_shape_vertex(&shape, 0, 0.5, 1);
	test_shape_vertex(&shape, -0.5, -0.5, 1);
	test_shape_vertex(&shape, 0, 0, 0.3);
	test_shape_triangle(&shape, 3, 4, 6);
	test_shape_triangle(&shape, 4, 5, 6);
	test_shape_triangle(&shape, 5, 3, 6);
	test_shape_vertex(&shape, 0, 0, 0.2);
	test_shape_vertex(&shape, 0, 0, 0.1);
	test_shape_triangle(&shape, 6, 7, 8);
	Rig rig = rig_of(&shape, (SandColliderDesc){0});
	const double p[3] = {0.01, 0.02, 0.14};
	CHECK_INT(rig_touch_anew(&rig, p, 0.2), 2);
	check_hit(&rig.hits[0], 0.14, 0, 0, 1);
	CHECK_NEAR(rig.hits[1].distance, sqrt(0.01 * 0.01 + 0.02 * 0.02 + 0.16 * 0.16), 1e-7);
	rig_free(&rig);
}

static void the_nearest_hits_are_kept_when_there_are_too_many(void)
{
	TestShape shape = {0};
	test_shape_icosphere(&shape, 1, 1);
	SandColliderDesc desc = {0};
	Rig rig = rig_of(&shape, desc);
	for (uint64_t number = 0; number < 30; ++number)
	{
		double p[3], farthest = 0;
		for (uint64_t k = 0; k < 3; ++k)
		{
			p[k] = between(100 + 3 * number + k, -0.05, 0.05);
		}
		Spot spots[256];
		CHECK_INT(rig_touch_anew(&rig, p, 2), SAND_HIT_LIMIT);
		int expected = find_minima(rig.mesh, &desc, 0, p, 2, spots, 256), nearer = 0;
		CHECK(expected > 64);
		for (int i = 0; i < SAND_HIT_LIMIT; ++i)
		{
			farthest = fmax(farthest, rig.hits[i].distance);
		}
		for (int i = 0; i < expected; ++i)
		{
			nearer += spots[i].distance <= farthest + 1e-12;
		}
		CHECK_INT(nearer, SAND_HIT_LIMIT);
	}
	rig_free(&rig);
}

static void near_is_the_triangles_within_reach(void)
{
	enum
	{
		FRAME_COUNT = 4
	};
	double samples[7 * FRAME_COUNT];
	for (int i = 0; i < FRAME_COUNT; ++i)
	{
		double square = 0;
		for (int k = 0; k < 7; ++k)
		{
			samples[7 * i + k] = between(40000 + 7 * (uint64_t)i + (uint64_t)k, -1, 1);
			square += k < 3 ? 0 : samples[7 * i + k] * samples[7 * i + k];
		}
		for (int k = 3; k < 7; ++k)
		{
			samples[7 * i + k] /= sqrt(square);
		}
	}
	SandTrack track = {.interval = 0.25, .samples = samples, .sample_count = FRAME_COUNT};
	for (int kind = 0; kind < 3; ++kind)
	{
		TestShape shape = {0};
		test_shape_bumpy(&shape, 1, 30, 20);
		size_t numbers = 3 * (size_t)shape.vertex_count;
		float *frames = malloc(FRAME_COUNT * numbers * sizeof(float));
		for (size_t i = 0; i < FRAME_COUNT * numbers; ++i)
		{
			frames[i] = shape.vertices[i % numbers] + (float)between(50000 + i, -0.1, 0.1);
		}
		SandColliderDesc desc = {0};
		desc.track = kind == 1 ? &track : NULL;
		desc.frames = kind == 2 ? frames : NULL;
		desc.frame_count = kind == 2 ? FRAME_COUNT : 0;
		desc.frame_interval = 0.25;
		Rig rig = rig_of(&shape, desc);
		int found = 0;
		for (uint64_t i = 0; i < 1000; ++i)
		{
			double p[3], reach = between(60000 + i, 0.01, i % 10 == 0 ? 1 : 0.2), time = between(61000 + i, -0.1, 0.9);
			for (uint64_t k = 0; k < 3; ++k)
			{
				p[k] = between(70000 + 3 * i + k, -1.6, 1.6);
			}
			rig_time(&rig, time);
			rig_list(&rig, p, reach);
			CHECK_INT(sand_collider_near(rig.collider, rig.state, p, reach, NULL, 0), rig.count);
			CHECK(sand_collider_is_near(rig.collider, rig.state, p, reach) || rig.count == 0);
			int at = 0;
			for (int32_t t = 0; t < rig.mesh->triangle_count; ++t)
			{
				double corners[3][3];
				place_corners(rig.mesh, &desc, time, t, corners);
				double distance = spot_of(corners, p).distance;
				bool is_listed = at < rig.count && rig.list[at] == t;
				if (is_listed != (distance < reach) && fabs(distance - reach) > 1e-6 * reach)
				{
					CHECK(is_listed == (distance < reach));
				}
				at += is_listed;
			}
			CHECK_INT(at, rig.count); // each once and ascending
			found += rig.count;
		}
		CHECK(found > 3000);
		const double far[3] = {1e30, -1e200, 4};
		CHECK_INT(sand_collider_near(rig.collider, rig.state, far, 1, rig.list, LIST_LIMIT), 0);
		CHECK(!sand_collider_is_near(rig.collider, rig.state, far, 1));
		CHECK_INT(sand_collider_near(rig.collider, rig.state, far, 1e300, NULL, 0), 0);
		free(frames);
		rig_free(&rig);
	}
}

// ---- sides ----------------------------------------------------------------------------------------------------------

// Lists anew, as the simulator does: what was listed before keeps its side.
static void rig_list_again(Rig *rig, const double p[3], double reach)
{
	int32_t old_list[LIST_LIMIT];
	float old_sides[LIST_LIMIT];
	int old_count = rig->count;
	memcpy(old_list, rig->list, sizeof(old_list));
	memcpy(old_sides, rig->sides, sizeof(old_sides));
	rig_list(rig, p, reach);
	for (int i = 0, j = 0; i < rig->count; ++i)
	{
		for (; j < old_count && old_list[j] < rig->list[i]; ++j)
		{
		}
		rig->sides[i] = j < old_count && old_list[j] == rig->list[i] ? old_sides[j] : 0;
	}
}

static void slide_behind_a_plane(bool is_mixed)
{
	TestShape shape = {0};
	add_plane(&shape, 16, 0.25);
	bool is_turned[LIST_LIMIT] = {0};
	for (int t = 0; is_mixed && t < shape.triangle_count; ++t)
	{
		is_turned[t] = sand_random(3, (uint64_t)t) < 0.5;
		test_shape_turn(&shape, t, is_turned[t] ? t + 1 : t);
	}
	Rig rig = rig_of(&shape, (SandColliderDesc){0});
	const double reach = 0.3;
	// Across, along an edge, along the diagonals through all vertices.
	const double ways[4][4] = {
	    {0.7, 0.61, 0.0101, 0.0037}, {0.7, 1, 0.0125, 0}, {0.75, 0.75, 0.0125, 0.0125}, {2, 0.7, 0, 0.0125}};
	for (int way = 0; way < 4; ++way)
	{
		for (int side = -1; side <= 1; side += 2)
		{
			double p[3] = {ways[way][0], ways[way][1], side * 0.25};
			rig_list(&rig, p, 1.2 * reach);
			CHECK_INT(rig_touch(&rig, p, reach), 1);
			for (int step = 0; step < 180; ++step)
			{
				p[2] = step < 34 ? side * (0.25 - 0.01 * step) : -0.3 * reach * side;
				for (int k = 0; k < 2 && step >= 34; ++k)
				{
					p[k] = ways[way][k] + (step - 34) * ways[way][2 + k];
				}
				if (step % 3 == 0)
				{
					rig_list_again(&rig, p, 1.2 * reach);
				}
				if (CHECK_INT(rig_touch(&rig, p, reach), 1))
				{
					check_hit(&rig.hits[0], side * p[2], 0, 0, side);
				}
				for (int i = 0; i < rig.count; ++i)
				{
					CHECK(rig.sides[i] == (float)(is_turned[rig.list[i]] ? -side : side));
				}
			}
		}
	}
	rig_free(&rig);
}

static void centre_pressed_through_a_plane_is_pushed_back_wherever_it_slides(void)
{
	slide_behind_a_plane(false);
}

static void sides_follow_triangles_that_are_wound_against_each_other(void)
{
	slide_behind_a_plane(true);
}

// Height of the triangles over a place, by all of them.
static double height_over(const SandMesh *mesh, double x, double y)
{
	for (int32_t t = 0; t < mesh->triangle_count; ++t)
	{
		const float *v[3];
		for (int i = 0; i < 3; ++i)
		{
			v[i] = &mesh->vertices[3 * (size_t)mesh->triangles[3 * t + i]];
		}
		double ax = (double)v[1][0] - (double)v[0][0], ay = (double)v[1][1] - (double)v[0][1];
		double bx = (double)v[2][0] - (double)v[0][0], by = (double)v[2][1] - (double)v[0][1];
		double px = x - (double)v[0][0], py = y - (double)v[0][1], whole = ax * by - ay * bx;
		double u = (px * by - py * bx) / whole, w = (ax * py - ay * px) / whole;
		if (u >= 0 && w >= 0 && u + w <= 1)
		{
			return (double)v[0][2] + u * ((double)v[1][2] - (double)v[0][2]) + w * ((double)v[2][2] - (double)v[0][2]);
		}
	}
	return 0;
}

static void centre_pressed_into_rough_ground_comes_up(void)
{
	TestShape shape = {0};
	add_plane(&shape, 16, 0.25);
	for (int i = 0; i < shape.vertex_count; ++i)
	{
		shape.vertices[3 * i + 2] = (float)between(7000 + (uint64_t)i, -0.06, 0.06);
	}
	Rig rig = rig_of(&shape, (SandColliderDesc){0});
	const double reach = 0.2;
	for (uint64_t way = 0; way < 40; ++way)
	{
		double x = between(8000 + 3 * way, 1, 3), y = between(8001 + 3 * way, 1, 3),
		       turn = between(8002 + 3 * way, 0, 7);
		rig.count = 0;
		for (int step = 0; step < 150; ++step)
		{
			double depth = step < 50 ? -0.14 + 0.004 * step : 0.06;
			if (step >= 50)
			{
				x += 0.005 * cos(turn);
				y += 0.005 * sin(turn);
			}
			const double p[3] = {x, y, height_over(rig.mesh, x, y) - depth};
			if (step % 5 == 0)
			{
				rig_list_again(&rig, p, 1.3 * reach);
			}
			int count = rig_touch(&rig, p, reach);
			CHECK(count >= 1);
			for (int i = 0; i < count; ++i)
			{
				CHECK(rig.hits[i].normal[2] > 0);
				CHECK(step < 51 || rig.hits[i].distance < 0);
			}
		}
	}
	rig_free(&rig);
}

static void leap_round_a_sharp_ridge_is_no_pressing(void)
{
	TestShape shape = {0};
	double slope = tan(TEST_PI / 18);
	test_shape_vertex(&shape, 0, -1, 0);
	test_shape_vertex(&shape, 0, 1, 0);
	test_shape_vertex(&shape, slope, 0, -1);
	test_shape_vertex(&shape, -slope, 0, -1);
	test_shape_triangle(&shape, 0, 2, 1);
	test_shape_triangle(&shape, 1, 3, 0);
	Rig rig = rig_of(&shape, (SandColliderDesc){0});
	const double turns[] = {5, -45, 5, 45, -5, 70};
	const double top[3] = {0, 0, 0};
	rig_list(&rig, top, 0.5);
	for (int i = 0; i < 6; ++i)
	{
		double turn = turns[i] * TEST_PI / 180, n[3] = {sin(turn), 0, cos(turn)};
		const double p[3] = {0.1 * n[0], 0, 0.1 * n[2]};
		if (CHECK_INT(rig_touch(&rig, p, 0.15), 1))
		{
			check_hit(&rig.hits[0], 0.1, n[0], n[1], n[2]);
		}
	}
	rig_free(&rig);
}

static void centre_pressed_through_a_bent_surface_is_pushed_back(void)
{
	for (int is_inside = 0; is_inside < 2; ++is_inside)
	{
		TestShape shape = {0};
		test_shape_icosphere(&shape, 1, 2);
		Rig rig = rig_of(&shape, (SandColliderDesc){0});
		const double reach = 0.2, sign = is_inside != 0 ? -1 : 1;
		// Great circles of the icosphere run along its edges and through its vertices: one of them, and one askew.
		for (int way = 0; way < 2; ++way)
		{
			for (int step = 0; step < 900; ++step)
			{
				double angle = 0.007 * step, depth = step < 50 ? -0.15 + 0.004 * step : 0.05,
				       tilt = way == 0 ? 0 : 0.37;
				double out = 1 - sign * depth;
				const double p[3] = {out * cos(angle), out * sin(angle) * cos(tilt), out * sin(angle) * sin(tilt)};
				if (step == 0)
				{
					rig_list(&rig, p, 1.5 * reach);
				}
				else if (step % 4 == 0)
				{
					rig_list_again(&rig, p, 1.5 * reach);
				}
				int count = rig_touch(&rig, p, reach);
				CHECK(count >= 1);
				for (int i = 0; i < count; ++i)
				{
					CHECK(sign * dot(rig.hits[i].normal, p) > 0.8 * out);
					CHECK(step < 55 || (rig.hits[i].distance < 0 && count == 1));
				}
			}
		}
		rig_free(&rig);
	}
}

static void centre_pressed_out_through_the_edges_of_a_box_comes_back(void)
{
	TestShape shape = {0};
	const float low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
	test_shape_grid_box(&shape, low, high, 4);
	Rig rig = rig_of(&shape, (SandColliderDesc){0});
	const double ways[3][3] = {{-1, -1, 0}, {-1, -0.4, 0}, {-1, -1, -1}};
	for (int way = 0; way < 3; ++way)
	{
		double p[3] = {0.1, 0.1, way == 2 ? 0.1 : 0.53};
		rig_list(&rig, p, 0.3);
		for (int step = 0; step < 100; ++step)
		{
			for (int k = 0; k < 3; ++k)
			{
				p[k] += 0.0015 * ways[way][k];
			}
			int count = rig_touch(&rig, p, 0.15);
			CHECK(count >= 1);
			for (int i = 0; i < count; ++i)
			{
				const double *n = rig.hits[i].normal; // inwards
				CHECK(n[0] > -1e-9 && n[1] > -1e-9 && n[2] > -1e-9);
			}
		}
		CHECK(p[0] < -0.04);
	}
	rig_free(&rig);
}

static void sphere_rolls_round_the_rim_of_a_plate(void)
{
	TestShape shape = {0};
	add_plane(&shape, 8, 0.25); // rim at x = 2
	Rig rig = rig_of(&shape, (SandColliderDesc){0});
	const double radius = 0.2;
	for (int turn = 0; turn < 2; ++turn)
	{
		double begin[3] = {1.5, 1.03, turn == 0 ? radius : -radius};
		rig_list(&rig, begin, 1);
		for (int step = -60; step <= 160; ++step)
		{
			double angle = fmin(fmax(step, 0), 100) * TEST_PI / 100, over = step < 0     ? step
			                                                                : step > 100 ? 100 - step
			                                                                             : 0;
			double n[3] = {sin(angle), 0, turn == 0 ? cos(angle) : -cos(angle)};
			double p[3] = {2 + 0.008 * over + radius * n[0], 1.03, radius * n[2]};
			if (step % 7 == 0)
			{
				rig_list_again(&rig, p, 0.5);
			}
			if (CHECK_INT(rig_touch(&rig, p, 1.01 * radius), 1))
			{
				check_hit(&rig.hits[0], radius, n[0], n[1], n[2]);
			}
		}
	}
	rig_free(&rig);
}

// ---- how triangles are cut
// --------------------------------------------------------------------------------------------

static void seams_junctions_and_empty_triangles_change_nothing(void)
{
	TestShape plane = {0}, shape = {0};
	add_plane(&plane, 8, 0.25);
	add_soup(&shape, &plane);
	shape.triangle_count = 0;
	// Every third triangle is cut at the middle of its first side, so that the next triangle's side has a joint,
	for (int t = 0; t < plane.triangle_count; ++t)
	{
		int a = 3 * t, b = a + 1, c = a + 2;
		if (t % 3 != 0)
		{
			test_shape_triangle(&shape, a, b, c);
			continue;
		}
		const float *x = shape.vertices + 3 * (size_t)a, *y = shape.vertices + 3 * (size_t)b;
		int m = test_shape_vertex(&shape, 0.5 * (double)(x[0] + y[0]), 0.5 * (double)(x[1] + y[1]), 0);
		test_shape_triangle(&shape, a, m, c);
		test_shape_triangle(&shape, m, b, c);
		// and triangles without an area: a line and a point.
		test_shape_triangle(&shape, a, m, b);
		test_shape_triangle(&shape, a, a, c);
		test_shape_triangle(&shape, c, c, c);
	}
	test_shape_free(&plane);
	Rig rig = rig_of(&shape, (SandColliderDesc){0});
	for (uint64_t i = 0; i < 3000; ++i)
	{
		double p[3] = {between(4 * i, 0.5, 1.5), between(4 * i + 1, 0.5, 1.5), between(4 * i + 2, -0.39, 0.39)};
		p[0] = i % 3 == 1 ? 0.125 * floor(8 * p[0]) : p[0];
		p[1] = i % 3 != 0 ? 0.125 * floor(8 * p[1]) : p[1];
		if (CHECK_INT(rig_touch_anew(&rig, p, 0.4), 1))
		{
			check_hit(&rig.hits[0], fabs(p[2]), 0, 0, p[2] < 0 ? -1 : 1);
		}
	}
	rig_free(&rig);
}

// Floats put the vertices of a tilted plane a little beside it: creases of all kinds, none to be felt.
static void tilted_plane_rounded_to_floats_is_touched_once(void)
{
	TestShape shape = {0};
	add_plane(&shape, 16, 0.01);
	double q[4] = {0.8, 0.36, -0.48, 0}, n[3];
	const double up[3] = {0, 0, 1};
	for (int i = 0; i < shape.vertex_count; ++i)
	{
		double at[3], turned[3];
		for (int k = 0; k < 3; ++k)
		{
			at[k] = (double)shape.vertices[3 * i + k];
		}
		sand_turn(q, at, turned);
		for (int k = 0; k < 3; ++k)
		{
			shape.vertices[3 * i + k] = (float)(turned[k] + 3);
		}
	}
	sand_turn(q, up, n);
	for (int t = 0, end = shape.triangle_count; t < end; t += 3) // joints whose triangles have an area by rounding
	{
		int a = shape.triangles[3 * t], b = shape.triangles[3 * t + 1], c = shape.triangles[3 * t + 2];
		double middle[3];
		for (int k = 0; k < 3; ++k)
		{
			middle[k] = 0.5 * ((double)shape.vertices[3 * a + k] + (double)shape.vertices[3 * b + k]);
		}
		int m = test_shape_vertex(&shape, middle[0], middle[1], middle[2]);
		shape.triangles[3 * t + 1] = m;
		test_shape_triangle(&shape, m, b, c);
		test_shape_triangle(&shape, a, b, m);
	}
	Rig rig = rig_of(&shape, (SandColliderDesc){0});
	for (uint64_t i = 0; i < 5000; ++i)
	{
		double local[3] = {between(4 * i, 0.03, 0.13), between(4 * i + 1, 0.03, 0.13),
		                   between(4 * i + 2, -0.019, 0.019)},
		       p[3];
		local[0] = i % 2 == 1 ? 0.01 * floor(100 * local[0]) : local[0];
		local[1] = i % 4 >= 2 ? 0.01 * floor(100 * local[1]) : local[1];
		sand_turn(q, local, p);
		for (int k = 0; k < 3; ++k)
		{
			p[k] += 3;
		}
		if (CHECK_INT(rig_touch_anew(&rig, p, 0.02), 1))
		{
			CHECK_NEAR(rig.hits[0].distance, fabs(local[2]), 1e-6);
			// A float step of 2e-7 m over 0.01 m; right at the surface the way to a corner has any direction.
			CHECK(fabs(local[2]) < 1e-4 || dot(rig.hits[0].normal, n) * (local[2] < 0 ? -1 : 1) > 1 - 1e-5);
		}
	}
	rig_free(&rig);
}

static void long_lists_give_the_same_hits(void)
{
	TestShape fine = {0}, coarse = {0};
	const float low[3] = {0, 0, 0}, high[3] = {1, 1, 1};
	test_shape_grid_box(&fine, low, high, 20);
	test_shape_grid_box(&coarse, low, high, 1);
	Rig a = rig_of(&fine, (SandColliderDesc){0}), b = rig_of(&coarse, (SandColliderDesc){0});
	for (uint64_t i = 0; i < 200; ++i)
	{
		double p[3];
		for (uint64_t k = 0; k < 3; ++k)
		{
			p[k] = between(3 * i + k, -0.2, 0.4);
		}
		int count = rig_touch_anew(&a, p, 0.42);
		CHECK(a.count > 64);
		if (!CHECK_INT(count, rig_touch_anew(&b, p, 0.42)))
		{
			continue;
		}
		for (int j = 0; j < count; ++j)
		{
			double best = 1e300;
			for (int m = 0; m < count; ++m)
			{
				best = fmin(best, fabs(a.hits[j].distance - b.hits[m].distance) +
				                      fabs(1 - dot(a.hits[j].normal, b.hits[m].normal)));
			}
			CHECK_NEAR(best, 0, 1e-7); // the fine box's vertices are rounded to floats
		}
	}
	rig_free(&a);
	rig_free(&b);
}

// ---- motion ---------------------------------------------------------------------------------------------------------

// Stretch, shear and shift of frame f.
static void map_of(int frame, double map[3][4])
{
	for (int i = 0; i < 3; ++i)
	{
		for (int k = 0; k < 4; ++k)
		{
			map[i][k] = (i == k) + between(80000 + (uint64_t)(16 * frame + 4 * i + k), -0.2, 0.2);
		}
	}
}

static void mapped(double map[3][4], const double at[3], double out[3])
{
	for (int i = 0; i < 3; ++i)
	{
		out[i] = dot(map[i], at) + map[i][3];
	}
}

// Newton's steps are exact for what is linear.
static void unmapped(double map[3][4], const double at[3], double out[3])
{
	double m[3][4];
	for (int i = 0; i < 3; ++i)
	{
		memcpy(m[i], map[i], 3 * sizeof(double));
		m[i][3] = at[i] - map[i][3];
	}
	for (int i = 0; i < 3; ++i)
	{
		for (int row = 0; row < 3; ++row)
		{
			double factor = row == i ? 0 : m[row][i] / m[i][i];
			for (int k = 0; k < 4; ++k)
			{
				m[row][k] -= factor * m[i][k];
			}
		}
	}
	for (int i = 0; i < 3; ++i)
	{
		out[i] = m[i][3] / m[i][i];
	}
}

static void surface_velocity_is_that_of_the_changing_shape(void)
{
	enum
	{
		FRAME_COUNT = 3
	};
	TestShape shape = {0};
	test_shape_torus(&shape, 0.7, 0.3, 16, 9);
	size_t vertex_count = (size_t)shape.vertex_count;
	float *frames = malloc(FRAME_COUNT * vertex_count * 3 * sizeof(float));
	double maps[FRAME_COUNT][3][4];
	for (int f = 0; f < FRAME_COUNT; ++f)
	{
		map_of(f, maps[f]);
		for (size_t v = 0; v < vertex_count; ++v)
		{
			const double at[3] = {(double)shape.vertices[3 * v], (double)shape.vertices[3 * v + 1],
			                      (double)shape.vertices[3 * v + 2]};
			double to[3];
			mapped(maps[f], at, to);
			for (size_t k = 0; k < 3; ++k)
			{
				frames[3 * (vertex_count * (size_t)f + v) + k] = (float)to[k];
			}
		}
	}
	const SandColliderDesc desc = {
	    .frames = frames, .frame_count = FRAME_COUNT, .frame_begin = -1, .frame_interval = 0.5};
	Rig rig = rig_of(&shape, desc);
	CHECK(sand_collider_is_moving(rig.collider));
	int hit_count = 0;
	for (uint64_t i = 0; i < 500; ++i)
	{
		double time = between(90000 + i, -0.999, -0.001), share = fmod(time + 1, 0.5) / 0.5, now[3][4], p[3];
		int frame = time < -0.5 ? 0 : 1;
		for (int j = 0; j < 12; ++j)
		{
			now[j / 4][j % 4] = (1 - share) * maps[frame][j / 4][j % 4] + share * maps[frame + 1][j / 4][j % 4];
		}
		for (uint64_t k = 0; k < 3; ++k)
		{
			p[k] = between(91000 + 3 * i + k, -1.2, 1.2);
		}
		rig_time(&rig, time);
		int count = rig_touch_anew(&rig, p, 0.15);
		for (int j = 0; j < count; ++j)
		{
			const SandHit *hit = &rig.hits[j];
			double point[3], material[3], from[3], to[3], square = 0;
			for (int k = 0; k < 3; ++k)
			{
				point[k] = p[k] - hit->distance * hit->normal[k];
			}
			unmapped(now, point, material);
			mapped(maps[frame], material, from);
			mapped(maps[frame + 1], material, to);
			for (int k = 0; k < 3; ++k)
			{
				CHECK_NEAR(hit->velocity[k], (to[k] - from[k]) / 0.5, 1e-5);
				square += hit->velocity[k] * hit->velocity[k];
			}
			CHECK(sqrt(square) <= sand_collider_speed(rig.collider, time, time) * (1 + 1e-12));
			++hit_count;
		}
	}
	CHECK(hit_count > 30);
	rig_time(&rig, 0); // the last frame, where it stands from now on
	const double p[3] = {0, 0, 0};
	int count = rig_touch_anew(&rig, p, 2);
	CHECK(count > 0);
	for (int i = 0; i < count; ++i)
	{
		CHECK(dot(rig.hits[i].velocity, rig.hits[i].velocity) == 0);
	}
	CHECK_NEAR(sand_collider_speed(rig.collider, 0, 9), 0, 0);
	CHECK_NEAR(sand_collider_speed(rig.collider, -9, -1.001), 0, 0);
	CHECK(sand_collider_speed(rig.collider, -9, 9) ==
	      fmax(sand_collider_speed(rig.collider, -0.9, -0.8), sand_collider_speed(rig.collider, -0.4, -0.3)));
	free(frames);
	rig_free(&rig);
}

static void distance_changes_by_the_velocity_along_the_normal(void)
{
	const double samples[] = {0,    0,     0, 1,   0,   0,   0,   0.3, -0.2, 0.1, 0.8,
	                          0.36, -0.48, 0, 0.3, 0.3, 0.1, 0.5, 0.5, 0.5,  0.5};
	const SandTrack track = {.begin = 1, .interval = 0.5, .samples = samples, .sample_count = 3};
	TestShape shape = {0};
	test_shape_torus(&shape, 0.7, 0.3, 16, 9);
	const SandColliderDesc desc = {.track = &track};
	Rig rig = rig_of(&shape, desc);
	const double h = 1e-6;
	int hit_count = 0;
	for (uint64_t i = 0; i < 1000; ++i)
	{
		double time = 1 + 0.5 * (double)(i % 2) + between(i, 0.01, 0.49), p[3], distance = 0;
		for (uint64_t k = 0; k < 3; ++k)
		{
			p[k] = between(2000 + 3 * i + k, -1.2, 1.2);
		}
		rig_time(&rig, time - h);
		int before = rig_touch_anew(&rig, p, 0.12);
		distance = rig.hits[0].distance;
		rig_time(&rig, time + h);
		int after = rig_touch_anew(&rig, p, 0.12);
		distance = rig.hits[0].distance - distance;
		rig_time(&rig, time);
		if (before == 1 && after == 1 && rig_touch_anew(&rig, p, 0.12) == 1)
		{
			const SandHit *hit = &rig.hits[0];
			SandPose pose, next;
			double arm[3], own[3], moved[3];
			CHECK_NEAR(distance / (2 * h), -dot(hit->normal, hit->velocity), 1e-4);
			sand_track_pose(&track, time, &pose);
			sand_track_pose(&track, time + h, &next);
			for (int k = 0; k < 3; ++k)
			{
				arm[k] = p[k] - hit->distance * hit->normal[k] - pose.position[k];
			}
			sand_turn_back(pose.orientation, arm, own);
			sand_turn(next.orientation, own, moved);
			for (int k = 0; k < 3; ++k)
			{
				CHECK_NEAR((next.position[k] + moved[k] - pose.position[k] - arm[k]) / h, hit->velocity[k], 1e-4);
			}
			CHECK(sqrt(dot(hit->velocity, hit->velocity)) <=
			      sand_collider_speed(rig.collider, time, time) * (1 + 1e-12));
			check_against_minima(&rig, &desc, time, p, 0.12);
			++hit_count;
		}
	}
	CHECK(hit_count > 100);
	double origin[3];
	rig_time(&rig, 1.5);
	sand_collider_origin(rig.collider, rig.state, origin);
	CHECK_NEAR(origin[0], 0.3, 1e-15);
	CHECK_NEAR(origin[1], -0.2, 1e-15);
	rig_free(&rig);
}

static void bounds_hold_all_places(void)
{
	double samples[7 * 5];
	for (int i = 0; i < 5; ++i) // half a turn around y, in the distance of 3 around an axis beside the mesh
	{
		const double sample[7] = {0.1 * i, 0, 2, cos(TEST_PI / 16 * i), 0, sin(TEST_PI / 16 * i), 0};
		memcpy(&samples[7 * i], sample, sizeof(sample));
	}
	const SandTrack track = {.interval = 1, .samples = samples, .sample_count = 5};
	for (int kind = 0; kind < 3; ++kind)
	{
		TestShape shape = {0};
		test_shape_icosphere(&shape, 0.05F, 2);
		test_shape_move(&shape, 3, 0, 0);
		test_shape_vertex(&shape, 100, 100, 100); // of no triangle
		size_t numbers = 3 * (size_t)shape.vertex_count;
		float *frames = malloc(3 * numbers * sizeof(float));
		for (size_t i = 0; i < 3 * numbers; ++i)
		{
			frames[i] = shape.vertices[i % numbers] * (float)(1 + i / numbers);
		}
		const SandColliderDesc desc = {.track = kind == 1 ? &track : NULL,
		                               .frames = kind == 2 ? frames : NULL,
		                               .frame_count = kind == 2 ? 3 : 0,
		                               .frame_interval = 1};
		Rig rig = rig_of(&shape, desc);
		double low[3], high[3], least[3] = {1e300, 1e300, 1e300}, most[3] = {-1e300, -1e300, -1e300};
		sand_collider_bounds(rig.collider, low, high);
		for (int step = -5; step <= 45; ++step)
		{
			for (int32_t t = 0; t < rig.mesh->triangle_count; ++t)
			{
				double corners[3][3];
				place_corners(rig.mesh, &desc, 0.1 * step, t, corners);
				for (int k = 0; k < 9; ++k)
				{
					least[k % 3] = fmin(least[k % 3], corners[k / 3][k % 3]);
					most[k % 3] = fmax(most[k % 3], corners[k / 3][k % 3]);
				}
			}
		}
		for (int k = 0; k < 3; ++k)
		{
			double slack = kind == 1 ? 0.1 : 1e-6; // a turned box is larger than what is in it
			CHECK(low[k] <= least[k] && low[k] >= least[k] - slack);
			CHECK(high[k] >= most[k] && high[k] <= most[k] + slack);
			if (kind == 0)
			{
				double origin[3];
				sand_collider_origin(rig.collider, rig.state, origin);
				CHECK_NEAR(origin[k], 0.5 * (low[k] + high[k]), 1e-12);
			}
		}
		CHECK(sand_collider_is_moving(rig.collider) == (kind != 0));
		free(frames);
		rig_free(&rig);
	}
}

// ---- what it is made from -------------------------------------------------------------------------------------------

// Of what it is, then of how it moves, to the end of its track.
static uint64_t hash_of(const SandColliderDesc *desc)
{
	SandCollider *collider = NULL;
	SandError err = {0};
	if (!CHECK_STATUS(sand_collider_create(desc, 0, &collider, &err), SAND_OK, &err))
	{
		return 0;
	}
	uint64_t hash = sand_collider_hash(collider, 7);
	CHECK(hash != sand_collider_hash(collider, 8));
	hash = sand_collider_motion_hash(collider, 1000, hash);
	sand_collider_destroy(collider);
	return hash;
}

static void hash_tells_every_number_apart(void)
{
	TestShape shape = {0}, other = {0}, turned = {0};
	test_shape_icosphere(&shape, 1, 1);
	test_shape_icosphere(&other, 1, 1);
	test_shape_icosphere(&turned, 1, 1);
	other.vertices[30] += 0.01F;
	test_shape_turn(&turned, 5, 6);
	SandMesh *mesh = test_shape_mesh(&shape, "a"), *renamed = test_shape_mesh(&shape, "b");
	SandMesh *moved = test_shape_mesh(&other, "a"), *flipped = test_shape_mesh(&turned, "a");
	size_t numbers = 3 * (size_t)shape.vertex_count;
	float *frames = malloc(3 * numbers * sizeof(float));
	for (size_t i = 0; i < 3 * numbers; ++i)
	{
		frames[i] = shape.vertices[i % numbers];
	}
	double samples[14] = {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0};
	SandTrack track = {.interval = 1, .samples = samples, .sample_count = 2};
	uint64_t hashes[32];
	int count = 0;
	SandColliderDesc still = {.mesh = mesh}, rides = {.mesh = mesh, .track = &track};
	SandColliderDesc changes = {.mesh = mesh, .frames = frames, .frame_count = 2, .frame_interval = 1};
	hashes[count++] = hash_of(&still);
	hashes[count++] = hash_of(&rides);
	hashes[count++] = hash_of(&changes);
	still.mesh = renamed;
	CHECK(hash_of(&still) == hashes[0]); // a name is no number
	still.mesh = moved;
	hashes[count++] = hash_of(&still);
	still.mesh = flipped;
	hashes[count++] = hash_of(&still);
	still.mesh = mesh;
	still.material = 1;
	hashes[count++] = hash_of(&still);
	track.begin = 1;
	hashes[count++] = hash_of(&rides);
	track.interval = 2;
	hashes[count++] = hash_of(&rides);
	track.sample_count = 1;
	hashes[count++] = hash_of(&rides);
	track.sample_count = 2;
	samples[8] = 1;
	hashes[count++] = hash_of(&rides);
	samples[11] = 1e-4;
	hashes[count++] = hash_of(&rides);
	changes.frame_begin = 1;
	hashes[count++] = hash_of(&changes);
	changes.frame_interval = 2;
	hashes[count++] = hash_of(&changes);
	changes.frame_count = 3;
	hashes[count++] = hash_of(&changes);
	frames[numbers + 5] += 0.1F;
	hashes[count++] = hash_of(&changes);
	for (int i = 0; i < count; ++i)
	{
		for (int j = 0; j < i; ++j)
		{
			CHECK(hashes[i] != hashes[j]);
		}
	}
	free(frames);
	sand_mesh_destroy(mesh);
	sand_mesh_destroy(renamed);
	sand_mesh_destroy(moved);
	sand_mesh_destroy(flipped);
	test_shape_free(&shape);
	test_shape_free(&other);
	test_shape_free(&turned);
}

static void everything_is_copied(void)
{
	TestShape shape = {0};
	test_shape_icosphere(&shape, 1, 1);
	size_t numbers = 3 * (size_t)shape.vertex_count;
	float *frames = malloc(2 * numbers * sizeof(float));
	for (size_t i = 0; i < 2 * numbers; ++i)
	{
		frames[i] = shape.vertices[i % numbers];
	}
	SandColliderDesc desc = {.frames = frames, .frame_count = 2, .frame_interval = 1, .material = 3};
	Rig rig = rig_of(&shape, desc);
	free(frames);
	sand_mesh_destroy(rig.mesh);
	rig.mesh = NULL;
	const double p[3] = {0, 0, 1.1};
	CHECK(rig_touch_anew(&rig, p, 0.3) == 1);
	CHECK_CONTAINS(sand_collider_name(rig.collider), "Tray");
	CHECK_INT(sand_collider_triangle_count(rig.collider), 80);
	CHECK_INT(sand_collider_material(rig.collider), 3);
	CHECK(!sand_collider_is_moving(rig.collider)); // its frames are the same
	rig_free(&rig);
}

static void every_failing_allocation_is_reported(void)
{
	TestShape shape = {0};
	test_shape_icosphere(&shape, 1, 1);
	SandMesh *mesh = test_shape_mesh(&shape, "Tray");
	size_t numbers = 3 * (size_t)shape.vertex_count;
	float *frames = malloc(2 * numbers * sizeof(float));
	memcpy(frames, shape.vertices, numbers * sizeof(float));
	memcpy(frames + numbers, shape.vertices, numbers * sizeof(float));
	const double sample[7] = {0, 0, 0, 1, 0, 0, 0};
	const SandTrack track = {.samples = sample, .sample_count = 1};
	const SandColliderDesc descs[2] = {{.mesh = mesh, .track = &track},
	                                   {.mesh = mesh, .frames = frames, .frame_count = 2, .frame_interval = 1}};
	size_t bytes = sand_alloc_bytes();
	for (int kind = 0; kind < 2; ++kind)
	{
		int failures = 0;
		for (uint64_t countdown = 1;; ++countdown)
		{
			SandCollider *collider = NULL;
			SandColliderState *state = NULL;
			SandError err = {0};
			sand_alloc_fail_after(countdown, true);
			SandStatus status = sand_collider_create(&descs[kind], 0, &collider, &err);
			if (status == SAND_OK)
			{
				status = sand_collider_state_create(collider, &state, &err);
				CHECK((state != NULL) == (status == SAND_OK));
			}
			sand_alloc_fail_after(0, false);
			sand_collider_state_destroy(state);
			sand_collider_destroy(collider);
			CHECK(sand_alloc_bytes() == bytes);
			if (status == SAND_OK)
			{
				break;
			}
			CHECK_STATUS(status, SAND_ERROR_MEMORY, &err);
			++failures;
		}
		CHECK(failures > 10);
	}
	free(frames);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

static void refuse(const SandColliderDesc *desc, const char *part)
{
	SandCollider *collider = NULL;
	SandError err = {0};
	size_t bytes = sand_alloc_bytes();
	CHECK_STATUS(sand_collider_create(desc, 4, &collider, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK(collider == NULL && sand_alloc_bytes() == bytes);
	CHECK_CONTAINS(err.message, "Collider 4");
	CHECK_CONTAINS(err.message, part);
	sand_collider_destroy(collider);
}

static void bad_descriptions_are_refused_with_a_sentence(void)
{
	TestShape shape = {0};
	test_shape_icosphere(&shape, 1, 0);
	SandMesh *mesh = test_shape_mesh(&shape, "Tray");
	size_t numbers = 3 * (size_t)shape.vertex_count;
	float *frames = malloc(2 * numbers * sizeof(float));
	memcpy(frames, shape.vertices, numbers * sizeof(float));
	memcpy(frames + numbers, shape.vertices, numbers * sizeof(float));
	double samples[7] = {0, 0, 0, 1, 0, 0, 0};
	const SandTrack track = {.samples = samples, .sample_count = 1};
	const SandColliderDesc good = {.mesh = mesh, .frames = frames, .frame_count = 2, .frame_interval = 1};
	SandColliderDesc desc = {0};
	refuse(&desc, "no triangles");
	desc = good;
	desc.track = &track;
	refuse(&desc, "'Tray' has a track and frames at once");
	desc = good;
	desc.frame_count = 0;
	refuse(&desc, "0 frames");
	desc = good;
	desc.frames = NULL;
	refuse(&desc, "2 frames");
	desc = good;
	desc.frame_interval = 0;
	refuse(&desc, "interval of 0 s");
	desc = good;
	desc.frame_begin = (double)INFINITY;
	refuse(&desc, "begin at inf");
	desc = good;
	desc.frame_interval = 1e-320;
	frames[numbers] += 1;
	refuse(&desc, "infinitely fast");
	frames[numbers + 7] = NAN;
	refuse(&good, "vertex 2 of Mesh 'Tray'");
	refuse(&good, "frame 1");
	desc = (SandColliderDesc){.mesh = mesh, .track = &track};
	samples[3] = 2;
	refuse(&desc, "orientation");
	free(frames);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
	sand_collider_destroy(NULL);
	sand_collider_state_destroy(NULL);
}

void test_collider(void)
{
	RUN(turning_mesh_is_touched_where_it_is_and_moves_as_it_does);
	RUN(one_triangle_is_touched_on_face_edges_and_corners);
	RUN(box_is_touched_by_three_faces_inside_and_one_corner_outside);
	RUN(plane_of_many_triangles_is_touched_once_everywhere);
	RUN(hits_are_the_local_minima_of_sharp_meshes);
	RUN(triangles_that_share_places_are_welded);
	RUN(triangles_without_area_lead_nowhere);
	RUN(the_nearest_hits_are_kept_when_there_are_too_many);
	RUN(near_is_the_triangles_within_reach);
	RUN(centre_pressed_through_a_plane_is_pushed_back_wherever_it_slides);
	RUN(sides_follow_triangles_that_are_wound_against_each_other);
	RUN(centre_pressed_into_rough_ground_comes_up);
	RUN(leap_round_a_sharp_ridge_is_no_pressing);
	RUN(centre_pressed_through_a_bent_surface_is_pushed_back);
	RUN(centre_pressed_out_through_the_edges_of_a_box_comes_back);
	RUN(sphere_rolls_round_the_rim_of_a_plate);
	RUN(seams_junctions_and_empty_triangles_change_nothing);
	RUN(tilted_plane_rounded_to_floats_is_touched_once);
	RUN(long_lists_give_the_same_hits);
	RUN(surface_velocity_is_that_of_the_changing_shape);
	RUN(distance_changes_by_the_velocity_along_the_normal);
	RUN(bounds_hold_all_places);
	RUN(hash_tells_every_number_apart);
	RUN(everything_is_copied);
	RUN(every_failing_allocation_is_reported);
	RUN(bad_descriptions_are_refused_with_a_sentence);
}
