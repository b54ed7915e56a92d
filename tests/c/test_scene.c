// Tests of scene: mass properties in closed form, and every bad number named.
#include "scene.h"
#include "test.h"

static const double pi = 3.14159265358979323846;
static const float one_radius[1] = {0.01f};
static const SandShapeDesc ball = {NULL, one_radius, 1};
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
	CHECK_NEAR(scene->shapes[0].mass / mass, 1, 1e-6);
	for (int k = 0; k < 3; ++k)
	{
		CHECK_NEAR(scene->shapes[0].inertia[k] / (0.4 * mass * 1e-4), 1, 1e-6);
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
	SandShapeDesc shape = {offsets, radii, 4};
	SandSceneDesc desc = two_balls();
	desc.shapes = &shape;
	SandScene *scene = make(&desc);
	double mass = scene->shapes[0].mass, big = 0.612372436 * 0.02;
	for (int k = 0; k < 3; ++k)
	{
		CHECK_NEAR(scene->shapes[0].inertia[k] / (mass * (2.0 / 3.0 * big * big + 0.4 * 1e-4)), 1, 1e-6);
	}
	CHECK_INT(scene->sphere_count, 8);
	CHECK_NEAR(scene->shapes[0].bound, big + 0.01, 1e-7);
	sand_scene_destroy(scene);
}

static void tilted_rod_finds_its_principal_axes(void)
{
	// Two spheres far apart along (1, 1, 0), off-centre: about the axis 2 * 2/5 m r^2, across it also 2 m a^2.
	float offsets[6] = {5, 5, 5, 5.3f, 5.3f, 5}, radii[2] = {0.1f, 0.1f};
	SandShapeDesc shape = {offsets, radii, 2};
	SandSceneDesc desc = two_balls();
	desc.shapes = &shape;
	SandScene *scene = make(&desc);
	const SandShape *s = &scene->shapes[0];
	double m = s->mass / 2, half = 0.15 * sqrt(2.0);
	double low = fmin(s->inertia[0], fmin(s->inertia[1], s->inertia[2]));
	double high = fmax(s->inertia[0], fmax(s->inertia[1], s->inertia[2]));
	CHECK_NEAR(low / (0.8 * m * 0.01), 1, 1e-4);
	CHECK_NEAR(high / (0.8 * m * 0.01 + 2 * m * half * half), 1, 1e-4);
	// In principal axes the offsets lie on the axis of the smallest moment.
	for (int k = 0; k < 3; ++k)
	{
		bool is_long = s->inertia[k] < 1.01 * low;
		CHECK_NEAR(fabs((double)s->offsets[k]), is_long ? half : 0, 1e-5);
	}
	sand_scene_destroy(scene);
}

static void contact_time_follows_overlap_and_fall(void)
{
	SandSceneDesc desc = two_balls();
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

static void refuse(const SandSceneDesc *desc, const char *part)
{
	SandError err = {0};
	SandScene *scene = (SandScene *)&err;
	CHECK_STATUS(sand_scene_create(desc, &scene, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK(scene == NULL);
	CHECK_CONTAINS(err.message, part);
}

static void bad_numbers_are_named(void)
{
	SandSceneDesc d = two_balls();
	d.density = -1;
	refuse(&d, "density is -1");
	d = two_balls();
	d.density = NAN;
	refuse(&d, "density is nan");
	d = two_balls();
	d.restitution = 1.5f;
	refuse(&d, "restitution is 1.5");
	d = two_balls();
	d.friction = INFINITY;
	refuse(&d, "friction coefficient is inf");
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
	const SandShapeDesc empty = {NULL, flat, 1};
	d = two_balls();
	d.shapes = &empty;
	refuse(&d, "radius 0");
	d = two_balls();
	d.wall_positions = broken;
	d.wall_count = 2;
	refuse(&d, "wall spheres have radius 0");
	d.wall_radius = 0.1f;
	refuse(&d, "wall position of number 1");
	const SandPlane plane = {{0, 0, 0}, {0, 0, 0}};
	d = two_balls();
	d.planes = &plane;
	d.plane_count = 1;
	refuse(&d, "Plane 0 has normal (0, 0, 0)");
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
	CHECK(status == SAND_OK && round > 5);
}

void test_scene(void)
{
	RUN(sphere_has_its_textbook_mass_and_inertia);
	RUN(tetrahedron_inertia_is_isotropic);
	RUN(tilted_rod_finds_its_principal_axes);
	RUN(contact_time_follows_overlap_and_fall);
	RUN(random_orientations_are_unit_and_seeded);
	RUN(bad_numbers_are_named);
	RUN(bad_arrays_are_named);
	RUN(every_failed_allocation_is_reported_and_leaks_nothing);
}
