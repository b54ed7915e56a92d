// Tests of scene: mass properties in closed form, and every bad number named.
#include "scene.h"
#include "test.h"

static const double pi = 3.14159265358979323846;
static const float one_radius[1] = {0.01f};
static const SandShapeDesc ball = {NULL, one_radius, 1, NULL};
static const float two_places[6] = {0, 0, 0, 0, 0, 0.5f};

static SandSceneDesc two_balls(void)
{
	SandSceneDesc desc = {.shapes = &ball, .shape_count = 1, .grain_positions = two_places, .grain_count = 2};
	desc.gravity[2] = -9.81;
	return desc;
}

static SandScene *make(const SandSceneDesc *desc)
{
	SandError err = {0};
	SandScene *scene = NULL;
	CHECK_STATUS(sand_scene_create(desc, &scene, &err), SAND_OK, &err);
	return scene;
}

static void sphere_has_its_textbook_mass_and_inertia(void)
{
	SandSceneDesc desc = two_balls();
	SandScene *scene = make(&desc);
	double mass = 2600 * 4.0 / 3.0 * pi * 1e-6;
	CHECK_NEAR(2600 * scene->shapes[0].volume / mass, 1, 1e-6);
	for (int k = 0; k < 3; ++k)
	{
		CHECK_NEAR(scene->shapes[0].inertia[k] / (0.4 * 1e-4), 1, 1e-6);
	}
	CHECK_NEAR(scene->shapes[0].bound, 0.01, 1e-8);
	sand_scene_destroy(scene);
}

static void tetrahedron_inertia_is_isotropic(void)
{
	// Longmore 2009 section 3.1, spheres of mass m/4 at distance R: I = m (2/3 R^2 + 2/5 r^2).
	float offsets[12], radii[4] = {0.01f, 0.01f, 0.01f, 0.01f};
	sand_shape_tetrahedron(0.01f, offsets);
	for (int i = 0; i < 4; ++i)
	{
		for (int j = i + 1; j < 4; ++j)
		{
			double dx = (double)offsets[3 * i] - (double)offsets[3 * j];
			double dy = (double)offsets[3 * i + 1] - (double)offsets[3 * j + 1];
			double dz = (double)offsets[3 * i + 2] - (double)offsets[3 * j + 2];
			CHECK_NEAR(sqrt(dx * dx + dy * dy + dz * dz), 0.02, 1e-8);
		}
	}
	SandShapeDesc shape = {offsets, radii, 4, NULL};
	SandSceneDesc desc = two_balls();
	desc.shapes = &shape;
	SandScene *scene = make(&desc);
	double big = 0.612372436 * 0.02;
	for (int k = 0; k < 3; ++k)
	{
		CHECK_NEAR(scene->shapes[0].inertia[k] / (2.0 / 3.0 * big * big + 0.4 * 1e-4), 1, 1e-6);
	}
	CHECK_INT(scene->sphere_count, 8);
	CHECK_NEAR(scene->shapes[0].bound, big + 0.01, 1e-7);
	sand_scene_destroy(scene);
}

static void tilted_rod_finds_its_principal_axes(void)
{
	// Two spheres far apart along (1, 1, 0), off-centre: about the axis 2 * 2/5 m r^2, across it also 2 m a^2.
	float offsets[6] = {5, 5, 5, 5.3f, 5.3f, 5}, radii[2] = {0.1f, 0.1f};
	SandShapeDesc shape = {offsets, radii, 2, NULL};
	SandSceneDesc desc = two_balls();
	desc.shapes = &shape;
	SandScene *scene = make(&desc);
	const SandShape *s = &scene->shapes[0];
	double half = 0.15 * sqrt(2.0); // the spheres are 0.42 apart, more than 0.2: disjoint
	double low = fmin(s->inertia[0], fmin(s->inertia[1], s->inertia[2]));
	double high = fmax(s->inertia[0], fmax(s->inertia[1], s->inertia[2]));
	CHECK_NEAR(low / (0.4 * 0.01), 1, 1e-4);
	CHECK_NEAR(high / (0.4 * 0.01 + half * half), 1, 1e-4);
	// In principal axes the offsets lie on the axis of the smallest moment.
	for (int k = 0; k < 3; ++k)
	{
		bool is_long = s->inertia[k] < 1.01 * low;
		CHECK_NEAR(fabs((double)s->offsets[k]), is_long ? half : 0, 1e-5);
	}
	sand_scene_destroy(scene);
}

static void overlapping_spheres_count_their_common_volume_once(void)
{
	// Two unit spheres at distance 1: each cap beyond the middle plane has height 1/2, volume pi h^2 (3 - h) / 3.
	float offsets[6] = {-0.5f, 0, 0, 0.5f, 0, 0}, radii[2] = {1, 1};
	SandShapeDesc shape = {offsets, radii, 2, NULL};
	SandSceneDesc desc = two_balls();
	desc.shapes = &shape;
	SandScene *scene = make(&desc);
	double cap = pi * 0.25 * 2.5 / 3;
	CHECK_NEAR(scene->shapes[0].volume / (2 * (4.0 / 3.0 * pi - cap)), 1, 2e-4); // midpoint columns
	// Inertia about the long axis: half of the union is the ball cut at x = -1/2 .. 1, second moment of a disc r^4 pi
	// / 2. Integral of pi/2 (1 - u^2)^2 over u from -1/2 to 1, twice.
	double part = 0;
	for (int i = 0; i < 20000; ++i)
	{
		double u = -0.5 + 1.5 * (i + 0.5) / 20000;
		part += 2 * pi / 2 * (1 - u * u) * (1 - u * u) * 1.5 / 20000;
	}
	const SandShape *s = &scene->shapes[0];
	double low = fmin(s->inertia[0], fmin(s->inertia[1], s->inertia[2]));
	CHECK_NEAR(low * s->volume / part, 1, 5e-4);
	sand_scene_destroy(scene);
	// The same sphere twice is one sphere.
	float same[6] = {0};
	shape.offsets = same;
	scene = make(&desc);
	CHECK_NEAR(scene->shapes[0].volume / (4.0 / 3.0 * pi), 1, 2e-4);
	CHECK_NEAR(scene->shapes[0].inertia[0] / 0.4, 1, 5e-4);
	sand_scene_destroy(scene);
}

static void refuse(const SandSceneDesc *desc, const char *part)
{
	SandError err = {0};
	SandScene *scene = (SandScene *)&err;
	CHECK_STATUS(sand_scene_create(desc, &scene, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK(scene == NULL);
	CHECK_CONTAINS(err.message, part);
}

// Spheres on the faces of a box stand for a solid box: volume, centre and moments are the box's, not the spheres'.
static void spheres_can_stand_for_a_body_of_other_mass(void)
{
	const double side[3] = {0.4, 0.2, 0.1}, volume = side[0] * side[1] * side[2];
	const float offsets[18] = {0.3f, 0, 0, -0.1f, 0, 0, 0.1f, 0.1f, 0, 0.1f, -0.1f, 0, 0.1f, 0, 0.05f, 0.1f, 0, -0.05f};
	const float radii[6] = {0.01f, 0.01f, 0.01f, 0.01f, 0.01f, 0.01f};
	double body[SAND_BODY_NUMBERS] = {volume, 0.1, 0, 0};
	for (int k = 0; k < 3; ++k)
	{
		double u = side[(k + 1) % 3], v = side[(k + 2) % 3];
		body[4 + k] = volume * (u * u + v * v) / 12;
	}
	SandShapeDesc shape = {offsets, radii, 6, body};
	SandSceneDesc desc = two_balls();
	desc.shapes = &shape;
	SandScene *scene = make(&desc);
	const SandShape *made = &scene->shapes[0];
	double product = made->inertia[0] * made->inertia[1] * made->inertia[2], expected = 1;
	double sum = made->inertia[0] + made->inertia[1] + made->inertia[2], expected_sum = 0;
	for (int k = 0; k < 3; ++k)
	{
		expected *= body[4 + k] / volume;
		expected_sum += body[4 + k] / volume;
	}
	CHECK_NEAR(made->volume, volume, 1e-12 * volume);
	CHECK_NEAR(sum, expected_sum, 1e-12 * expected_sum);
	CHECK_NEAR(product, expected, 1e-12 * expected);
	// Offsets are from the body's centre: the bounding radius is that of the two spheres on the long axis.
	CHECK_NEAR((double)made->bound, 0.21, 1e-6);
	uint64_t hash = scene->hash;
	sand_scene_destroy(scene);

	body[4] *= 1.01;
	scene = make(&desc);
	CHECK(scene->hash != hash);
	sand_scene_destroy(scene);
	body[4] *= 100;
	refuse(&desc, "which no solid has");
	body[4] = NAN;
	refuse(&desc, "The body of grain shape 0");
	body[0] = 0;
	refuse(&desc, "volume 0 m^3");
}

static void ready_made_shapes_touch_their_neighbours(void)
{
	float cube[24], rod[9];
	sand_shape_cube(0.5f, cube);
	sand_shape_rod(0.5f, 3, rod);
	CHECK_NEAR(cube[3] - cube[0], 1, 1e-6);
	CHECK_NEAR(rod[3] - rod[0], 0.5, 1e-6);
	CHECK_NEAR(rod[0] + rod[6], 0, 1e-6);
	float radii[8] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f};
	SandShapeDesc shape = {cube, radii, 8, NULL};
	SandSceneDesc desc = two_balls();
	desc.shapes = &shape;
	SandScene *scene = make(&desc);
	// Eight balls at distance^2 1/2 from each axis: I / m = 2/5 r^2 + 2 r^2.
	for (int k = 0; k < 3; ++k)
	{
		CHECK_NEAR(scene->shapes[0].inertia[k], 2.4 * 0.25, 1e-5);
	}
	sand_scene_destroy(scene);
}

static void sizes_follow_their_distribution(void)
{
	enum
	{
		COUNT = 20000
	};
	static float scales[COUNT];
	SandError err = {0};
	CHECK_STATUS(sand_scene_sizes(SAND_SIZES_UNIFORM, 0.5, 1.5, 0, 3, COUNT, scales, &err), SAND_OK, &err);
	double sum = 0, square = 0;
	for (int i = 0; i < COUNT; ++i)
	{
		CHECK(scales[i] >= 0.5f && scales[i] <= 1.5f);
		sum += (double)scales[i];
		square += (double)scales[i] * (double)scales[i];
	}
	// Standard error of the mean of a uniform width 1: 0.29 / sqrt(20000) = 0.002; five of it.
	CHECK_NEAR(sum / COUNT, 1, 0.01);
	CHECK_NEAR(square / COUNT - sum * sum / COUNT / COUNT, 1.0 / 12, 0.003);
	CHECK_STATUS(sand_scene_sizes(SAND_SIZES_LOGNORMAL, 0.01, 100, 0.3, 4, COUNT, scales, &err), SAND_OK, &err);
	sum = square = 0;
	for (int i = 0; i < COUNT; ++i)
	{
		sum += log((double)scales[i]);
		square += log((double)scales[i]) * log((double)scales[i]);
	}
	CHECK_NEAR(sum / COUNT, 0, 0.011);             // 5 * 0.3 / sqrt(20000)
	CHECK_NEAR(sqrt(square / COUNT), 0.3, 0.0075); // 5 * 0.3 / sqrt(2 * 20000)
	CHECK_STATUS(sand_scene_sizes(SAND_SIZES_LOGNORMAL, 0.9, 1.1, 0.3, 4, COUNT, scales, &err), SAND_OK, &err);
	for (int i = 0; i < COUNT; ++i)
	{
		CHECK(scales[i] >= 0.9f && scales[i] <= 1.1f);
	}
	CHECK_STATUS(sand_scene_sizes(SAND_SIZES_UNIFORM, 0, 1, 0, 4, 1, scales, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_scene_sizes(SAND_SIZES_UNIFORM, 2, 1, 0, 4, 1, scales, &err), SAND_ERROR_ARGUMENT, &err);
}

static void contact_time_follows_overlap_and_fall(void)
{
	SandMaterial linear = {.normal = SAND_NORMAL_LINEAR};
	SandSceneDesc desc = two_balls();
	desc.materials = &linear;
	desc.material_count = 1;
	desc.max_overlap = 0.1f;
	desc.max_speed = 2;
	SandScene *scene = make(&desc);
	CHECK_NEAR(scene->contact_time, pi * 0.1 * 0.01 / 2, 1e-9);
	sand_scene_destroy(scene);
	desc.max_speed = 0;
	scene = make(&desc);
	CHECK_NEAR(scene->max_speed, sqrt(2 * 9.81 * 0.52), 1e-3); // two balls of radius 0.01 at 0 and 0.5
	sand_scene_destroy(scene);
}

static void random_orientations_are_unit_and_seeded(void)
{
	SandSceneDesc desc = two_balls();
	SandScene *a = make(&desc), *b = make(&desc);
	desc.seed = 1;
	SandScene *c = make(&desc);
	CHECK(a->hash == b->hash);
	CHECK(a->hash != c->hash);
	for (int i = 0; i < 2; ++i)
	{
		const float *q = a->grain_orientations + 4 * i;
		CHECK_NEAR(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3], 1, 1e-6);
	}
	sand_scene_destroy(a);
	sand_scene_destroy(b);
	sand_scene_destroy(c);
}

static void bad_numbers_are_named(void)
{
	SandSceneDesc d = two_balls();
	const struct
	{
		SandMaterial material;
		const char *part;
	} bad[] = {
	    {{.density = -1}, "density of material 0 is -1"},
	    {{.density = NAN}, "density of material 0 is nan"},
	    {{.young = -5}, "Young's modulus of material 0 is -5"},
	    {{.young = INFINITY}, "Young's modulus of material 0 is inf"},
	    {{.poisson = 0.7f}, "Poisson ratio of material 0 is 0.7"},
	    {{.restitution = 1.5f}, "restitution of material 0 is 1.5"},
	    {{.friction = INFINITY}, "friction of material 0 is inf"},
	    {{.rolling = -1}, "rolling resistance of material 0 is -1"},
	    {{.cohesion = NAN}, "cohesion of material 0 is nan"},
	    {{.normal = (SandNormal)9}, "normal law of material 0 is 9"},
	    {{.shear = (SandShear)9}, "shear law of material 0 is 9"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i)
	{
		d.materials = &bad[i].material;
		d.material_count = 1;
		refuse(&d, bad[i].part);
	}
	const SandMaterial two[2] = {{.normal = SAND_NORMAL_LINEAR}, {.normal = SAND_NORMAL_HERTZ}};
	d.materials = two;
	d.material_count = 2;
	refuse(&d, "different contact laws");
	const SandMaterialPair pair = {0, 5, 0, 0, 0, 0};
	d = two_balls();
	d.material_pairs = &pair;
	d.material_pair_count = 1;
	refuse(&d, "materials 0 and 5");
	d = two_balls();
	d.max_overlap = 0.6f;
	refuse(&d, "overlap is 0.6");
	d = two_balls();
	d.gravity[1] = NAN;
	refuse(&d, "Gravity along y");
	d = two_balls();
	d.grain_count = 0;
	refuse(&d, "no grains");
	d = two_balls();
	d.grain_count = INT64_C(1) << 31;
	refuse(&d, "use larger grains");
	d = two_balls();
	d.shape_count = 0;
	refuse(&d, "no grain shape");
}

static void bad_arrays_are_named(void)
{
	const float broken[6] = {0, 0, 0, 0, NAN, 0};
	SandSceneDesc d = two_balls();
	d.grain_positions = broken;
	refuse(&d, "grain position of number 1");
	d = two_balls();
	d.grain_velocities = broken;
	refuse(&d, "grain velocity of number 1");
	const float turned[8] = {1, 0, 0, 0, 1, 1, 0, 0};
	d = two_balls();
	d.grain_orientations = turned;
	refuse(&d, "orientation of grain 1");
	const int32_t shapes[2] = {0, 7};
	d = two_balls();
	d.grain_shapes = shapes;
	refuse(&d, "Grain 1 has shape 7");
	const float flat[1] = {0};
	const SandShapeDesc empty = {NULL, flat, 1, NULL};
	d = two_balls();
	d.shapes = &empty;
	refuse(&d, "radius 0");
	d = two_balls();
	d.wall_positions = broken;
	d.wall_count = 2;
	refuse(&d, "wall spheres have radius 0");
	d.wall_radius = 0.1f;
	refuse(&d, "wall position of number 1");
	const struct
	{
		SandObstacle obstacle;
		const char *part;
	} bad[] = {
	    {{.kind = SAND_OBSTACLE_PLANE}, "Obstacle 0 (plane) has axis (0, 0, 0)"},
	    {{.kind = SAND_OBSTACLE_BOX, .size = {1, 0, 1}}, "Obstacle 0 (box) has size 0 m"},
	    {{.kind = SAND_OBSTACLE_CYLINDER, .axis = {0, 0, 1}, .size = {-1, 0, 0}}, "Obstacle 0 (cylinder) has size -1"},
	    {{.kind = SAND_OBSTACLE_CONE, .axis = {0, 0, 1}, .size = {1, 2, 1}}, "begins at height 2 m and ends at 1 m"},
	    {{.kind = SAND_OBSTACLE_PLANE, .axis = {0, 0, NAN}}, "not finite"},
	    {{.kind = (SandObstacleKind)7}, "Obstacle 0 has kind 7"},
	    {{.kind = SAND_OBSTACLE_PLANE, .axis = {0, 0, 1}, .material = 3}, "Obstacle 0 has material 3"},
	};
	d = two_balls();
	d.obstacle_count = 1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i)
	{
		d.obstacles = &bad[i].obstacle;
		refuse(&d, bad[i].part);
	}
	const SandEmitter emitters[4] = {
	    {.positions = two_places, .position_count = 0, .rate = 1, .end = 1},
	    {.positions = two_places, .position_count = 1, .rate = -3, .end = 1},
	    {.positions = two_places, .position_count = 1, .rate = 1, .begin = 2, .end = 1},
	    {.positions = two_places, .position_count = 1, .rate = 1e9, .end = 100},
	};
	static const char *const parts[4] = {"0 places", "rate of -3", "from 2 s to 1 s", "lower the rate"};
	for (int i = 0; i < 4; ++i)
	{
		d = two_balls();
		d.emitters = &emitters[i];
		d.emitter_count = 1;
		refuse(&d, parts[i]);
	}
	const float sizes[2] = {1, -2};
	d = two_balls();
	d.grain_scales = sizes;
	refuse(&d, "Grain 1 has size -2");
	const int32_t materials[2] = {0, 3};
	d = two_balls();
	d.grain_materials = materials;
	refuse(&d, "Grain 1 has material 3");
}

static void every_failed_allocation_is_reported_and_leaks_nothing(void)
{
	SandSceneDesc desc = two_balls();
	size_t before = sand_alloc_bytes();
	SandStatus status = SAND_ERROR_MEMORY;
	int round = 0;
	for (round = 1; status != SAND_OK && round < 100; ++round)
	{
		SandError err = {0};
		SandScene *scene = NULL;
		sand_alloc_fail_after((uint64_t)round, true);
		status = sand_scene_create(&desc, &scene, &err);
		sand_alloc_fail_after(0, false);
		CHECK(status == SAND_OK || (status == SAND_ERROR_MEMORY && scene == NULL));
		sand_scene_destroy(scene);
		CHECK_INT(sand_alloc_bytes(), before);
	}
	CHECK(status == SAND_OK && round > 10);
}

void test_scene(void)
{
	RUN(sphere_has_its_textbook_mass_and_inertia);
	RUN(tetrahedron_inertia_is_isotropic);
	RUN(tilted_rod_finds_its_principal_axes);
	RUN(overlapping_spheres_count_their_common_volume_once);
	RUN(spheres_can_stand_for_a_body_of_other_mass);
	RUN(ready_made_shapes_touch_their_neighbours);
	RUN(sizes_follow_their_distribution);
	RUN(contact_time_follows_overlap_and_fall);
	RUN(random_orientations_are_unit_and_seeded);
	RUN(bad_numbers_are_named);
	RUN(bad_arrays_are_named);
	RUN(every_failed_allocation_is_reported_and_leaks_nothing);
}
