// Tests of grains, bodies and mesh colliders together: what a mesh does must be what a plane does, nothing leaks,
// driven bodies push, and every force has its opposite.
#include "sim.h"
#include "test.h"

#define PI 3.14159265358979323846

// Sanitizers are here for memory and races, which show early; the plain build shakes for as long as is asked for.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GRAIN_STEPS 5e5
#else
#define GRAIN_STEPS 1e7
#endif

static const float grain_radius[1] = {0.01f};
static const SandShapeDesc ball = {NULL, grain_radius, 1, NULL};

typedef struct Run
{
	SandScene *scene;
	SandSim *sim;
} Run;

static Run start(const SandSceneDesc *desc, int threads)
{
	Run run = {0};
	SandError err = {0};
	if (CHECK_STATUS(sand_scene_create(desc, &run.scene, &err), SAND_OK, &err))
	{
		CHECK_STATUS(sand_sim_create(run.scene, &(SandSimDesc){.thread_count = threads}, &run.sim, &err), SAND_OK,
		             &err);
	}
	return run;
}

static void stop(Run run)
{
	sand_sim_destroy(run.sim);
	sand_scene_destroy(run.scene);
}

static void advance(Run run, double seconds)
{
	SandError err = {0};
	CHECK_STATUS(sand_sim_advance(run.sim, seconds, NULL, &err), SAND_OK, &err);
}

// A square of cells x cells x 2 triangles at height 0, from -half to half.
static SandMesh *square_mesh(float half, int cells)
{
	int side = cells + 1, vertex = 0, triangle = 0;
	float *vertices = malloc((size_t)(side * side) * 3 * sizeof(float));
	int32_t *triangles = malloc((size_t)(cells * cells) * 6 * sizeof(int32_t));
	for (int y = 0; y < side; ++y)
	{
		for (int x = 0; x < side; ++x, ++vertex)
		{
			vertices[3 * vertex] = half * (2 * (float)x / (float)cells - 1);
			vertices[3 * vertex + 1] = half * (2 * (float)y / (float)cells - 1);
			vertices[3 * vertex + 2] = 0;
		}
	}
	for (int y = 0; y < cells; ++y)
	{
		for (int x = 0; x < cells; ++x)
		{
			int32_t a = y * side + x, b = a + 1, c = a + side, d = c + 1;
			const int32_t corners[6] = {a, b, d, a, d, c};
			memcpy(triangles + 3 * triangle, corners, sizeof(corners));
			triangle += 2;
		}
	}
	SandMesh *mesh = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_mesh_create("square", vertices, vertex, triangles, triangle, &mesh, &err), SAND_OK, &err);
	free(vertices);
	free(triangles);
	return mesh;
}

typedef struct State
{
	float x[3], v[3], w[3];
} State;

static State state_of(Run run, int grain)
{
	int count = run.scene->grain_count;
	float *all = calloc((size_t)count * 9, sizeof(float));
	State state;
	sand_sim_read(run.sim, &(SandSimArrays){.positions = all, .velocities = all + 3 * count, .spins = all + 6 * count});
	for (int k = 0; k < 3; ++k)
	{
		state.x[k] = all[3 * grain + k];
		state.v[k] = all[3 * (count + grain) + k];
		state.w[k] = all[3 * (2 * count + grain) + k];
	}
	free(all);
	return state;
}

// The same throw on a plane and on meshes of it, over a face, an edge, a corner, and across many triangles with spin.
static void a_mesh_throws_back_as_a_plane_does(void)
{
	// A second grain far away makes room for the first to fly in.
	const float places[4][6] = {{0.0131f, 0.0072f, 0.03f, 1, 1, 1},
	                            {0.05f, 0.021f, 0.03f, 1, 1, 1},
	                            {0.05f, 0.05f, 0.03f, 1, 1, 1},
	                            {0, 0, 0.03f, 1, 1, 1}};
	const float speeds[3][6] = {{0, 0, -1}, {0.7f, 0.2f, -1}, {3, 1, -0.5f}};
	const float spins[3][6] = {{0, 0, 0}, {20, -30, 5}, {0, 100, 0}};
	SandObstacle plane = {.axis = {0, 0, 1}};
	double worst = 0;
	for (int shear = 0; shear < SAND_SHEAR_COUNT; ++shear)
	{
		for (int place = 0; place < 4; ++place)
		{
			for (int speed = 0; speed < 3; ++speed)
			{
				State results[3];
				for (int kind = 0; kind < 3; ++kind)
				{
					SandMaterial material = {.friction = 0.5f, .restitution = 0.7f, .shear = (SandShear)shear};
					SandMesh *mesh = square_mesh(2, kind == 1 ? 1 : 80);
					SandColliderDesc collider = {.mesh = mesh};
					SandSceneDesc desc = {.shapes = &ball, .shape_count = 1, .grain_positions = places[place]};
					desc.grain_count = 2;
					desc.grain_velocities = speeds[speed];
					desc.grain_spins = spins[speed];
					desc.materials = &material;
					desc.material_count = 1;
					desc.gravity[2] = -9.81;
					desc.max_speed = 2;
					desc.obstacles = &plane;
					desc.obstacle_count = kind == 0;
					desc.colliders = &collider;
					desc.collider_count = kind > 0;
					Run run = start(&desc, 1);
					advance(run, 0.08);
					results[kind] = state_of(run, 0);
					stop(run);
					sand_mesh_destroy(mesh);
				}
				for (int kind = 1; kind < 3; ++kind)
				{
					for (int k = 0; k < 3; ++k)
					{
						worst = fmax(worst, fabs((double)(results[kind].v[k] - results[0].v[k])));
						worst = fmax(worst, 0.01 * fabs((double)(results[kind].w[k] - results[0].w[k])));
					}
				}
				CHECK(results[0].v[2] > -1 && results[0].x[2] > 0.01f);
			}
		}
	}
	printf("velocities after the rebound within %.1e m/s of the plane's\n", worst);
	CHECK(worst < 2e-3);
}

// Poses of a shaken and rocked box, 200 a second.
static void make_shaking(double *samples, int count)
{
	for (int i = 0; i < count; ++i)
	{
		double t = i / 200.0, angle = 0.3 * sin(2 * PI * 3 * t);
		double pose[SAND_TRACK_NUMBERS] = {0.02 * sin(2 * PI * 8 * t),
		                                   0.015 * sin(2 * PI * 11 * t),
		                                   0.02 * sin(2 * PI * 9 * t + 0.5),
		                                   cos(0.5 * angle),
		                                   0,
		                                   sin(0.5 * angle) * 0.6,
		                                   sin(0.5 * angle) * 0.8};
		memcpy(samples + SAND_TRACK_NUMBERS * i, pose, sizeof(pose));
	}
}

// A lattice of grains with room between, inside a cube of `half`.
static int make_grains(float half, float room, float *positions, int limit)
{
	int count = 0;
	for (float z = -half; z <= half; z += room)
	{
		for (float y = -half; y <= half; y += room)
		{
			for (float x = -half; x <= half && count < limit; x += room, ++count)
			{
				positions[3 * count] = x;
				positions[3 * count + 1] = y;
				positions[3 * count + 2] = z;
			}
		}
	}
	return count;
}

// Grains beyond `limit` of the box's own axes, or of the middle when is_round.
static int count_outside(Run run, const SandTrack *track, double limit, bool is_round)
{
	int outside = 0;
	SandPose pose;
	sand_track_pose(track, sand_sim_info(run.sim).time, &pose);
	float *x = calloc((size_t)run.scene->grain_count * 3, sizeof(float));
	sand_sim_read(run.sim, &(SandSimArrays){.positions = x});
	for (int i = 0; i < run.scene->grain_count; ++i)
	{
		double d[3] = {x[3 * i] - pose.position[0], x[3 * i + 1] - pose.position[1], x[3 * i + 2] - pose.position[2]};
		double own[3];
		sand_turn_back(pose.orientation, d, own);
		double farthest = is_round ? sqrt(own[0] * own[0] + own[1] * own[1] + own[2] * own[2])
		                           : fmax(fabs(own[0]), fmax(fabs(own[1]), fabs(own[2])));
		outside += farthest > limit;
	}
	free(x);
	return outside;
}

// Walls: one closed mesh, or six squares that only meet at their edges.
static void shake(bool is_closed)
{
	enum
	{
		LIMIT = 1000,
		POSES = 401
	};
	static float positions[3 * LIMIT];
	static double samples[SAND_TRACK_NUMBERS * POSES];
	int count = make_grains(0.085f, 0.021f, positions, LIMIT);
	make_shaking(samples, POSES);
	SandTrack track = {.interval = 1 / 200.0, .samples = samples, .sample_count = POSES};
	SandMesh *meshes[6] = {NULL};
	SandColliderDesc colliders[6] = {{0}};
	int collider_count = 1;
	TestShape shape = {0};
	if (is_closed)
	{
		test_shape_grid_box(&shape, (const float[3]){-0.1f, -0.1f, -0.1f}, (const float[3]){0.1f, 0.1f, 0.1f}, 3);
		meshes[0] = test_shape_mesh(&shape, "box");
	}
	else
	{
		collider_count = 6;
		for (int side = 0; side < 6; ++side)
		{
			const int32_t triangles[6] = {0, 1, 2, 0, 2, 3};
			const float corners[4][2] = {{-0.1f, -0.1f}, {0.1f, -0.1f}, {0.1f, 0.1f}, {-0.1f, 0.1f}};
			float vertices[12];
			for (int i = 0; i < 4; ++i)
			{
				vertices[3 * i + side % 3] = side < 3 ? -0.1f : 0.1f;
				vertices[3 * i + (side + 1) % 3] = corners[i][0];
				vertices[3 * i + (side + 2) % 3] = corners[i][1];
			}
			SandError err = {0};
			CHECK_STATUS(sand_mesh_create("side", vertices, 4, triangles, 2, &meshes[side], &err), SAND_OK, &err);
		}
	}
	for (int i = 0; i < collider_count; ++i)
	{
		colliders[i] = (SandColliderDesc){.mesh = meshes[i], .track = &track};
	}
	SandSceneDesc desc = {.shapes = &ball, .shape_count = 1, .grain_positions = positions, .grain_count = count};
	desc.gravity[2] = -9.81;
	desc.max_speed = 3;
	desc.colliders = colliders;
	desc.collider_count = collider_count;
	Run run = start(&desc, 2);
	int outside = 0;
	while (run.sim != NULL && (double)sand_sim_info(run.sim).step_count * count < GRAIN_STEPS && outside == 0)
	{
		advance(run, 0.05);
		outside = count_outside(run, &track, 0.1, false);
	}
	SandSimInfo info = sand_sim_info(run.sim);
	printf("%d grains, %.3g grain-steps in %.2f s of shaking, largest speed %.2f m/s: %d outside\n", count,
	       (double)info.step_count * count, info.time, info.largest_speed, outside);
	CHECK_INT(outside, 0);
	CHECK_INT(info.lost_count, 0);
	stop(run);
	for (int i = 0; i < collider_count; ++i)
	{
		sand_mesh_destroy(meshes[i]);
	}
	test_shape_free(&shape);
}

static void a_shaken_box_keeps_its_grains(void)
{
	shake(true);
}

static void a_shaken_box_of_thin_squares_keeps_its_grains(void)
{
	shake(false);
}

// A ball of triangles that turns, breathes and changes its shape, 100 shapes a second.
static void a_turning_breathing_ball_keeps_its_grains(void)
{
	enum
	{
		LIMIT = 300,
		FRAMES = 2001
	};
	static float positions[3 * LIMIT];
	int count = make_grains(0.0515f, 0.0205f, positions, LIMIT);
	TestShape shape = {0};
	test_shape_icosphere(&shape, 1, 2);
	SandMesh *mesh = test_shape_mesh(&shape, "ball");
	float *frames = malloc((size_t)FRAMES * (size_t)shape.vertex_count * 3 * sizeof(float));
	for (int f = 0; f < FRAMES; ++f)
	{
		double t = f / 100.0, angle = 2 * PI * 1.5 * t, swell = 0.015 * sin(2 * PI * 5 * t);
		for (int i = 0; i < shape.vertex_count; ++i)
		{
			const float *v = shape.vertices + 3 * i;
			float *to = frames + 3 * ((size_t)f * (size_t)shape.vertex_count + (size_t)i);
			to[0] = (float)((0.12 + swell) * (cos(angle) * (double)v[0] - sin(angle) * (double)v[1]));
			to[1] = (float)((0.12 - swell) * (sin(angle) * (double)v[0] + cos(angle) * (double)v[1]));
			to[2] = (float)((0.12 + 0.5 * swell) * (double)v[2]);
		}
	}
	SandColliderDesc collider = {.mesh = mesh, .frames = frames, .frame_count = FRAMES, .frame_interval = 0.01};
	SandSceneDesc desc = {.shapes = &ball, .shape_count = 1, .grain_positions = positions, .grain_count = count};
	desc.gravity[2] = -9.81;
	desc.max_speed = 2;
	desc.colliders = &collider;
	desc.collider_count = 1;
	Run run = start(&desc, 2);
	const double still[SAND_TRACK_NUMBERS] = {0, 0, 0, 1};
	SandTrack track = {.interval = 1, .samples = still, .sample_count = 1};
	int outside = 0;
	while (run.sim != NULL && (double)sand_sim_info(run.sim).step_count * count < GRAIN_STEPS && outside == 0)
	{
		advance(run, 0.02);
		outside = count_outside(run, &track, 0.135, true);
	}
	SandSimInfo info = sand_sim_info(run.sim);
	printf("%d grains, %.3g grain-steps, largest speed %.2f m/s: %d outside\n", count, (double)info.step_count * count,
	       info.largest_speed, outside);
	CHECK(info.time < (FRAMES - 1) / 100.0); // it moved all the time
	CHECK_INT(outside, 0);
	CHECK(info.largest_speed > 0.2); // the wall carries them
	stop(run);
	free(frames);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

// A conveyor: a square that moves sideways takes a grain along at its own speed, by friction.
static void a_moving_mesh_carries_what_lies_on_it(void)
{
	SandMesh *mesh = square_mesh(1, 10);
	const double samples[2 * SAND_TRACK_NUMBERS] = {0, 0, 0, 1, 0, 0, 0, 0.5, 0, 0, 1, 0, 0, 0};
	SandTrack track = {.interval = 1, .samples = samples, .sample_count = 2};
	SandColliderDesc collider = {.mesh = mesh, .track = &track};
	float offsets[24];
	sand_shape_cube(0.01f, offsets);
	const float radii[8] = {0.01f, 0.01f, 0.01f, 0.01f, 0.01f, 0.01f, 0.01f, 0.01f};
	SandShapeDesc cube = {offsets, radii, 8, NULL};
	const float place[3] = {0, 0, 0.02f}, upright[4] = {1, 0, 0, 0};
	SandMaterial material = {.friction = 0.5f, .shear = SAND_SHEAR_HISTORY};
	SandSceneDesc desc = {.shapes = &cube, .shape_count = 1, .grain_positions = place, .grain_count = 1};
	desc.grain_orientations = upright;
	desc.materials = &material;
	desc.material_count = 1;
	desc.gravity[2] = -9.81;
	desc.max_speed = 1;
	desc.colliders = &collider;
	desc.collider_count = 1;
	Run run = start(&desc, 1);
	advance(run, 0.8);
	State state = state_of(run, 0);
	// It slips for v / (mu g) = 0.10 s and then stands on the square.
	CHECK_NEAR(state.v[0], 0.5, 0.005);
	CHECK_NEAR(state.x[0], 0.5 * 0.8 - 0.5 * 0.5 / (2 * 0.5 * 9.81), 0.01);
	CHECK_NEAR(state.x[2], 0.02, 0.001);
	stop(run);
	sand_mesh_destroy(mesh);
}

// The weight of a bed is what its box carries, and what a body in it feels and gives are opposite.
static void loads_are_the_weight(void)
{
	enum
	{
		LIMIT = 400
	};
	static float positions[3 * LIMIT];
	int count = make_grains(0.065f, 0.021f, positions, LIMIT);
	TestShape shape = {0};
	test_shape_grid_box(&shape, (const float[3]){-0.08f, -0.08f, -0.08f}, (const float[3]){0.08f, 0.08f, 0.3f}, 2);
	SandMesh *mesh = test_shape_mesh(&shape, "box");
	SandColliderDesc collider = {.mesh = mesh};
	SandBody body = {.grain = count / 2};
	SandMaterial material = {.friction = 0.5f, .restitution = 0.2f, .shear = SAND_SHEAR_HISTORY};
	SandSceneDesc desc = {.shapes = &ball, .shape_count = 1, .grain_positions = positions, .grain_count = count};
	desc.materials = &material;
	desc.material_count = 1;
	desc.gravity[2] = -9.81;
	desc.max_speed = 1;
	desc.colliders = &collider;
	desc.collider_count = 1;
	desc.bodies = &body;
	desc.body_count = 1;
	Run run = start(&desc, 2);
	double on_body[6] = {0}, on_box[6] = {0};
	sand_sim_loads(run.sim, on_body, on_box);
	CHECK(on_box[2] == 0 && on_body[2] == 0);
	advance(run, 1.5);
	advance(run, 0.5);
	sand_sim_loads(run.sim, on_body, on_box);
	double weight = 9.81 * 2600 * 4.0 / 3 * PI * 1e-6;
	printf("box carries %.5f of the weight, a grain is carried by %.4f of its own\n", -on_box[2] / (weight * count),
	       on_body[2] / weight);
	CHECK_NEAR(-on_box[2] / (weight * count), 1, 0.002);
	CHECK_NEAR(on_box[0] / (weight * count), 0, 0.002);
	CHECK_NEAR(on_body[2] / weight, 1, 0.02);
	// Torque about the origin of the axes: the centre of mass of the bed times its weight.
	float *x = calloc((size_t)count * 3, sizeof(float));
	double middle[3] = {0};
	sand_sim_read(run.sim, &(SandSimArrays){.positions = x});
	for (int i = 0; i < count; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			middle[k] += x[3 * i + k] / (double)count;
		}
	}
	double origin[3];
	SandColliderState *at = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_collider_state_create(run.scene->colliders[0], &at, &err), SAND_OK, &err);
	sand_collider_set_time(run.scene->colliders[0], at, 0);
	sand_collider_origin(run.scene->colliders[0], at, origin);
	CHECK_NEAR(on_box[3] / (weight * count), -(middle[1] - origin[1]), 2e-4);
	CHECK_NEAR(on_box[4] / (weight * count), middle[0] - origin[0], 2e-4);
	sand_collider_state_destroy(at);
	free(x);
	stop(run);
	sand_mesh_destroy(mesh);
	test_shape_free(&shape);
}

// A ball driven at 1 m/s hits a resting one of the same mass; then the driven one is let go.
static void a_driven_body_pushes_and_is_let_go_with_its_speed(void)
{
	const float positions[6] = {0, 0, 0, 0.06f, 0, 0};
	const double samples[2 * SAND_TRACK_NUMBERS] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1};
	SandTrack track = {.interval = 1, .samples = samples, .sample_count = 2};
	SandBody bodies[2] = {{.grain = 0, .track = &track, .release = 0.1}, {.grain = 1}};
	SandMaterial material = {.restitution = 0.8f, .normal = SAND_NORMAL_LINEAR};
	SandSceneDesc desc = {.shapes = &ball, .shape_count = 1, .grain_positions = positions, .grain_count = 2};
	desc.materials = &material;
	desc.material_count = 1;
	desc.max_speed = 2;
	desc.bodies = bodies;
	desc.body_count = 2;
	Run run = start(&desc, 1);
	advance(run, 0.08);
	State driven = state_of(run, 0), pushed = state_of(run, 1);
	CHECK_NEAR(driven.x[0], 0.08, 1e-6);
	CHECK_NEAR(driven.v[0], 1, 1e-6);
	CHECK_NEAR(driven.w[2], PI, 1e-5);
	// A wall of speed u throws a resting ball to u (1 + e).
	CHECK_NEAR(pushed.v[0], 1.8, 0.02);
	double loads[12], mass = 2600 * 4.0 / 3 * PI * 1e-6;
	sand_sim_loads(run.sim, loads, NULL);
	CHECK_NEAR(loads[0] * 0.08, -mass * (double)pushed.v[0], 1e-5 * mass);
	CHECK_NEAR(loads[6] * 0.08, mass * (double)pushed.v[0], 1e-5 * mass);
	advance(run, 0.12);
	driven = state_of(run, 0);
	CHECK_NEAR(driven.v[0], 1, 1e-6);
	CHECK_NEAR(driven.x[0], 0.2, 1e-6);
	CHECK_NEAR(driven.w[2], PI, 1e-5);
	stop(run);
}

// A body that is let go falls from then on.
static void a_released_body_falls(void)
{
	const float position[3] = {0, 0, 0};
	const double samples[SAND_TRACK_NUMBERS] = {0, 0, 0, 1, 0, 0, 0};
	SandTrack track = {.interval = 1, .samples = samples, .sample_count = 1};
	SandBody body = {.grain = 0, .track = &track, .release = 0.05};
	SandSceneDesc desc = {.shapes = &ball, .shape_count = 1, .grain_positions = position, .grain_count = 1};
	desc.gravity[2] = -9.81;
	desc.max_speed = 2;
	desc.bodies = &body;
	desc.body_count = 1;
	Run run = start(&desc, 1);
	advance(run, 0.04);
	CHECK(state_of(run, 0).x[2] == 0);
	advance(run, 0.06);
	SandSimInfo info = sand_sim_info(run.sim);
	CHECK_NEAR(state_of(run, 0).x[2], -0.5 * 9.81 * 0.05 * 0.05, 9.81 * 0.05 * info.step_seconds);
	stop(run);
}

// A bed asleep on a trapdoor: when it goes, fast or so slowly that nothing near moves at the waking speed, all of it
// goes down, and nobody sleeps on in the air.
static void lower_floor(double depth)
{
	enum
	{
		LIMIT = 600
	};
	static float positions[3 * LIMIT];
	int count = make_grains(0.075f, 0.0205f, positions, LIMIT);
	SandMesh *floor = square_mesh(0.2f, 3);
	TestShape shape = {0};
	test_shape_open_cylinder(&shape, 0.13f, 0.4f, 24);
	SandMesh *tube = test_shape_mesh(&shape, "tube");
	const double samples[3 * SAND_TRACK_NUMBERS] = {0, 0, -0.1,         1, 0, 0, 0, 0, 0, -0.1, 1, 0, 0, 0,
	                                                0, 0, -0.1 - depth, 1, 0, 0, 0};
	const double still[SAND_TRACK_NUMBERS] = {0, 0, -0.15, 1, 0, 0, 0};
	SandTrack track = {.interval = 1.5, .samples = samples, .sample_count = 3};
	SandTrack stand = {.interval = 1, .samples = still, .sample_count = 1};
	SandColliderDesc colliders[2] = {{.mesh = floor, .track = &track}, {.mesh = tube, .track = &stand}};
	SandMaterial material = {.friction = 0.5f, .restitution = 0.2f, .rolling = 0.1f, .shear = SAND_SHEAR_HISTORY};
	SandSceneDesc desc = {.shapes = &ball, .shape_count = 1, .grain_positions = positions, .grain_count = count};
	desc.materials = &material;
	desc.material_count = 1;
	desc.gravity[2] = -9.81;
	desc.max_speed = 2;
	desc.colliders = colliders;
	desc.collider_count = 2;
	desc.sleep_speed = 0.01f;
	Run run = start(&desc, 2);
	advance(run, 1.45);
	int asleep = sand_sim_info(run.sim).asleep_count;
	printf("%d of %d asleep before\n", asleep, count);
	CHECK(asleep > count / 2);
	float *x = calloc((size_t)count * 6, sizeof(float)), *before = x + 3 * (size_t)count;
	sand_sim_read(run.sim, &(SandSimArrays){.positions = before});
	advance(run, 1.55);
	sand_sim_read(run.sim, &(SandSimArrays){.positions = x});
	int left = 0;
	for (int i = 0; i < count; ++i)
	{
		left += (double)(before[3 * i + 2] - x[3 * i + 2]) < 0.5 * depth;
	}
	printf("floor down by %g m: %d of %d stay behind\n", depth, left, count);
	CHECK_INT(left, 0);
	free(x);
	stop(run);
	sand_mesh_destroy(floor);
	sand_mesh_destroy(tube);
	test_shape_free(&shape);
}

static void sleepers_go_with_their_floor(void)
{
	lower_floor(1);
	lower_floor(0.03);
}

// A scene with everything: colliders that move and deform, a driven body, sleep, history.
typedef struct Everything
{
	SandMesh *mesh, *soft;
	float *frames;
	double samples[2 * SAND_TRACK_NUMBERS], path[2 * SAND_TRACK_NUMBERS];
	SandTrack track, way;
	SandColliderDesc colliders[2];
	SandBody bodies[2];
	SandMaterial material;
	float positions[3 * 300];
	SandSceneDesc desc;
} Everything;

static void make_everything(Everything *e)
{
	memset(e, 0, sizeof(*e));
	TestShape shape = {0};
	test_shape_grid_box(&shape, (const float[3]){-0.08f, -0.08f, -0.08f}, (const float[3]){0.08f, 0.08f, 0.2f}, 2);
	e->mesh = test_shape_mesh(&shape, "box");
	test_shape_free(&shape);
	e->soft = square_mesh(0.05f, 2);
	int soft_count = e->soft->vertex_count;
	e->frames = malloc((size_t)soft_count * 6 * sizeof(float));
	for (int i = 0; i < 3 * soft_count; ++i)
	{
		e->frames[i] = e->soft->vertices[i] + (i % 3 == 2 ? -0.06f : 0);
		e->frames[3 * soft_count + i] = e->frames[i] + (i % 3 == 2 ? 0.03f : 0);
	}
	const double samples[2 * SAND_TRACK_NUMBERS] = {0, 0, 0, 1, 0, 0, 0, 0.03, 0, 0.02, 0.99, 0, 0, 0.14};
	const double path[2 * SAND_TRACK_NUMBERS] = {0, 0, 0.17, 1, 0, 0, 0, 0, 0, 0.05, 1, 0, 0, 0};
	memcpy(e->samples, samples, sizeof(samples));
	memcpy(e->path, path, sizeof(path));
	e->track = (SandTrack){.interval = 0.4, .samples = e->samples, .sample_count = 2};
	e->way = (SandTrack){.interval = 0.4, .samples = e->path, .sample_count = 2};
	e->colliders[0] = (SandColliderDesc){.mesh = e->mesh, .track = &e->track};
	e->colliders[1] = (SandColliderDesc){.mesh = e->soft, .frames = e->frames, .frame_count = 2, .frame_interval = 0.3};
	int count = make_grains(0.045f, 0.021f, e->positions, 250);
	for (int i = 0; i < count; ++i)
	{
		e->positions[3 * i + 2] += 0.01f;
	}
	e->positions[3 * count] = e->positions[3 * count + 1] = 0;
	e->positions[3 * count + 2] = 0.17f;
	e->bodies[0] = (SandBody){.grain = count, .track = &e->way, .release = 0.2};
	e->bodies[1] = (SandBody){.grain = 3};
	e->material = (SandMaterial){.friction = 0.5f, .restitution = 0.3f, .shear = SAND_SHEAR_HISTORY};
	e->desc = (SandSceneDesc){.shapes = &ball, .shape_count = 1, .grain_positions = e->positions};
	e->desc.grain_count = count + 1;
	e->desc.materials = &e->material;
	e->desc.material_count = 1;
	e->desc.gravity[2] = -9.81;
	e->desc.max_speed = 1;
	e->desc.colliders = e->colliders;
	e->desc.collider_count = 2;
	e->desc.bodies = e->bodies;
	e->desc.body_count = 2;
	e->desc.sleep_speed = 0.01f;
	e->desc.sleep_seconds = 0.02f;
}

static void free_everything(Everything *e)
{
	sand_mesh_destroy(e->mesh);
	sand_mesh_destroy(e->soft);
	free(e->frames);
}

static void every_thread_count_and_every_resume_gives_the_same_bits(void)
{
	static Everything e;
	make_everything(&e);
	uint64_t hashes[3] = {0};
	double loads[3][24] = {{0}};
	for (int threads = 1; threads <= 3; ++threads)
	{
		Run run = start(&e.desc, threads);
		for (int i = 0; i < 8; ++i)
		{
			advance(run, 0.05);
		}
		hashes[threads - 1] = sand_sim_hash(run.sim);
		sand_sim_loads(run.sim, loads[threads - 1], loads[threads - 1] + 12);
		CHECK_INT(sand_sim_info(run.sim).lost_count, 0);
		stop(run);
	}
	CHECK(hashes[0] == hashes[1] && hashes[0] == hashes[2]);
	CHECK(memcmp(loads[0], loads[1], sizeof(loads[0])) == 0 && memcmp(loads[0], loads[2], sizeof(loads[0])) == 0);
	for (int cut = 1; cut < 8; ++cut)
	{
		Run first = start(&e.desc, 2), second = start(&e.desc, 1);
		void *bytes = NULL;
		size_t byte_count = 0;
		SandError err = {0};
		for (int i = 0; i < cut; ++i)
		{
			advance(first, 0.05);
		}
		CHECK_STATUS(sand_sim_save(first.sim, &bytes, &byte_count, &err), SAND_OK, &err);
		CHECK_STATUS(sand_sim_load(second.sim, bytes, byte_count, &err), SAND_OK, &err);
		for (int i = cut; i < 8; ++i)
		{
			advance(second, 0.05);
		}
		CHECK(sand_sim_hash(second.sim) == hashes[0]);
		sand_free(bytes);
		stop(first);
		stop(second);
	}
	free_everything(&e);
}

static void what_cannot_be_is_refused(void)
{
	static Everything e;
	make_everything(&e);
	SandScene *scene = NULL;
	SandSim *sim = NULL;
	SandError err = {0};
	e.colliders[1].material = 1;
	CHECK_STATUS(sand_scene_create(&e.desc, &scene, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "Collider 1 has material 1");
	e.colliders[1].material = 0;
	e.bodies[1].grain = 100000;
	CHECK_STATUS(sand_scene_create(&e.desc, &scene, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "Body 1 is grain 100000");
	e.bodies[1].grain = e.bodies[0].grain;
	CHECK_STATUS(sand_scene_create(&e.desc, &scene, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "both grain");
	e.bodies[1].grain = 3;
	e.samples[3] = 3;
	CHECK_STATUS(sand_scene_create(&e.desc, &scene, &err), SAND_ERROR_ARGUMENT, &err);
	e.samples[3] = 1;
	// A grain that starts in the middle of a wall.
	e.positions[2] = -0.08f;
	CHECK_STATUS(sand_scene_create(&e.desc, &scene, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_create(scene, &(SandSimDesc){.thread_count = 1}, &sim, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "Grain 0");
	CHECK_CONTAINS(err.message, "'box'");
	sand_scene_destroy(scene);
	free_everything(&e);
}

static void every_failing_allocation_is_reported(void)
{
	static Everything e;
	make_everything(&e);
	bool is_done = false;
	for (uint64_t fail = 1; fail < 2000 && !is_done; ++fail)
	{
		SandScene *scene = NULL;
		SandSim *sim = NULL;
		SandError err = {0};
		sand_alloc_fail_after(fail, true);
		SandStatus status = sand_scene_create(&e.desc, &scene, &err);
		status = status != SAND_OK ? status : sand_sim_create(scene, &(SandSimDesc){.thread_count = 1}, &sim, &err);
		status = status != SAND_OK ? status : sand_sim_advance(sim, 0.001, NULL, &err);
		sand_alloc_fail_after(0, false);
		is_done = status == SAND_OK;
		if (!is_done)
		{
			CHECK_STATUS(status, SAND_ERROR_MEMORY, &err);
		}
		sand_sim_destroy(sim);
		sand_scene_destroy(scene);
	}
	CHECK(is_done);
	free_everything(&e);
}

void test_coupling(void)
{
	RUN(a_mesh_throws_back_as_a_plane_does);
	RUN(a_shaken_box_keeps_its_grains);
	RUN(a_shaken_box_of_thin_squares_keeps_its_grains);
	RUN(a_turning_breathing_ball_keeps_its_grains);
	RUN(a_moving_mesh_carries_what_lies_on_it);
	RUN(loads_are_the_weight);
	RUN(a_driven_body_pushes_and_is_let_go_with_its_speed);
	RUN(a_released_body_falls);
	RUN(sleepers_go_with_their_floor);
	RUN(every_thread_count_and_every_resume_gives_the_same_bits);
	RUN(what_cannot_be_is_refused);
	RUN(every_failing_allocation_is_reported);
}
