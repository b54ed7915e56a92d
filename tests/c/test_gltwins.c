// Tests of the shaders' functions against their twins in C, bit for bit, on the software device. Every test prints the
// first input that differs and counts the others.
#include "glcollider.h"
#include "glsim.h"
#include "gpu.h"
#include "kernel.h"
#include "layout.h"
#include "test.h"
#include "test_shaders.h"

// A storage block of the program; what the device left in it goes to `out`, when that is not NULL.
typedef struct Block
{
	int binding;
	const void *in; // NULL = zeros
	void *out;
	size_t byte_count;
} Block;

enum
{
	BLOCK_LIMIT = 16
};

typedef struct Run
{
	const char *name; // of a file of tests/c, else of a pass
	const char *defines;
	int64_t invocation_count;
	const Block *blocks;
	int block_count;
} Run;

static const char *text_of(const char *name)
{
	for (size_t i = 0; i < sizeof test_shaders / sizeof test_shaders[0]; ++i)
	{
		if (strncmp(name, "twin_", 5) == 0 && strcmp(test_shaders[i].name, name) == 0)
		{
			return test_shaders[i].text;
		}
	}
	return NULL;
}

static SandStatus run_job(SandGpu *gpu, void *user, SandError *err)
{
	const Run *run = user;
	SandGpuBuffer buffers[BLOCK_LIMIT] = {{0}};
	SandGpuProgram program = {0};
	SandStatus status = sand_gpu_program_create(
	    gpu, &(SandGpuProgramDesc){.name = run->name, .text = text_of(run->name), .defines = run->defines}, &program,
	    err);
	for (int i = 0; i < run->block_count && status == SAND_OK; ++i)
	{
		const Block *block = &run->blocks[i];
		status = sand_gpu_buffer_create(gpu, (int64_t)block->byte_count, run->name, &buffers[i], err);
		if (status == SAND_OK)
		{
			if (block->in != NULL)
			{
				sand_gpu_upload(gpu, buffers[i], 0, block->in, (int64_t)block->byte_count);
			}
			sand_gpu_bind(gpu, block->binding, buffers[i], 0, 0);
			if (sand_glsim_texel_words(block->binding) > 0)
			{
				sand_gpu_bind_texels(gpu, block->binding, buffers[i], sand_glsim_texel_words(block->binding));
			}
		}
	}
	if (status == SAND_OK)
	{
		if (text_of(run->name) != NULL)
		{
			sand_gpu_set_uint(gpu, program, 0, (uint32_t)run->invocation_count);
		}
		sand_gpu_barrier(gpu);
		sand_gpu_dispatch(gpu, program, run->invocation_count);
		sand_gpu_barrier(gpu);
	}
	for (int i = 0; i < run->block_count; ++i)
	{
		if (status == SAND_OK && run->blocks[i].out != NULL)
		{
			status = sand_gpu_download(gpu, buffers[i], 0, run->blocks[i].out, (int64_t)run->blocks[i].byte_count, err);
		}
		sand_gpu_buffer_destroy(gpu, buffers[i]);
	}
	sand_gpu_program_destroy(gpu, program);
	return status;
}

// The driver's two NaNs and C's are one.
static bool are_same(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static SandGpu *software_device(void)
{
	SandError err = {0};
	SandGpu *gpu = NULL;
	CHECK_STATUS(sand_gpu_create(&(SandGpuDesc){.refuses_hardware = true}, &gpu, &err), SAND_OK, &err);
	return gpu;
}

static bool run_on(SandGpu *gpu, const Run *run)
{
	SandError err = {0};
	return CHECK_STATUS(sand_gpu_run(gpu, run_job, (void *)run, &err), SAND_OK, &err) &&
	       CHECK_INT(sand_gpu_error_count(gpu), 0);
}

static double between(uint64_t seed, uint64_t *index, double low, double high)
{
	return low + (high - low) * sand_random(seed, (*index)++);
}

static int pick(uint64_t seed, uint64_t *index, int count)
{
	return (int)(sand_random(seed, (*index)++) * count);
}

static void unit_vector(uint64_t seed, uint64_t *index, double out[3])
{
	double square;
	do
	{
		square = 0;
		for (int k = 0; k < 3; ++k)
		{
			out[k] = between(seed, index, -1, 1);
			square += out[k] * out[k];
		}
	} while (square > 1 || square < 1e-3);
	for (int k = 0; k < 3; ++k)
	{
		out[k] /= sqrt(square);
	}
}

// ---- obstacles ------------------------------------------------------------------------------------------------------

enum
{
	OBSTACLES = 96,
	PLACES = 160000,
	TOUCH_NUMBERS = 16
};

// Every kind, from outside and inside, smooth and rough, along the axes and across.
static void make_obstacles(SandObstacle obstacles[OBSTACLES])
{
	uint64_t index = 0;
	for (int i = 0; i < OBSTACLES; ++i)
	{
		SandObstacle *o = &obstacles[i];
		double axis[3];
		SandError err = {0};
		unit_vector(11, &index, axis);
		*o = (SandObstacle){.kind = (SandObstacleKind)(i % 4), .is_inside = i / 4 % 2};
		for (int k = 0; k < 3; ++k)
		{
			o->axis[k] = i / 8 % 3 == 0 ? (float)(i / 24 % 3 == k) : (float)axis[k];
			o->point[k] = i / 8 % 2 == 0 ? 0 : (float)between(11, &index, -0.3, 0.3);
			o->size[k] = (float)between(11, &index, 0.05, 0.6);
		}
		o->roughness = i % 8 == 4 ? (float)between(11, &index, 0.01, 0.1) : 0;
		o->size[1] = o->kind == SAND_OBSTACLE_CYLINDER && i % 3 == 0 ? 0 : o->size[1];
		o->size[2] = o->kind == SAND_OBSTACLE_CONE ? o->size[1] + o->size[2] : o->size[2];
		CHECK_STATUS(sand_obstacle_check(o, i, &err), SAND_OK, &err);
	}
}

// Anywhere; on the axis, in a plane of symmetry, at the centre, on a wall.
static void make_place(uint64_t *index, const SandObstacle *o, double place[4])
{
	int kind = pick(12, index, 8);
	double along = between(12, index, -0.5, 0.5);
	for (int k = 0; k < 3; ++k)
	{
		double anywhere = (double)o->point[k] + between(12, index, -0.8, 0.8);
		place[k] = kind == 0   ? (double)o->point[k] + along * o->unit_axis[k]
		           : kind == 1 ? (double)o->point[k]
		           : kind == 2 ? (double)o->point[k] + (pick(12, index, 3) - 1) * (double)o->size[k]
		           : kind == 3 && pick(12, index, 2) == 0 ? (double)o->point[k]
		                                                  : anywhere;
	}
	place[3] = between(12, index, 0, 0.6);
}

static void obstacles_touch_as_in_c(void)
{
	SandObstacle obstacles[OBSTACLES];
	double *places = sand_alloc(4 * PLACES, sizeof(double));
	double *results = sand_alloc((size_t)TOUCH_NUMBERS * PLACES, sizeof(double));
	SandGpu *gpu = software_device();
	if (!CHECK(places != NULL && results != NULL && gpu != NULL))
	{
		return;
	}
	uint64_t index = 0;
	make_obstacles(obstacles);
	for (int i = 0; i < PLACES; ++i)
	{
		make_place(&index, &obstacles[i % OBSTACLES], places + 4 * (size_t)i);
	}
	const Block blocks[] = {{0, obstacles, NULL, sizeof obstacles},
	                        {1, places, NULL, 4 * PLACES * sizeof(double)},
	                        {2, NULL, results, (size_t)TOUCH_NUMBERS * PLACES * sizeof(double)}};
	int64_t touch_count = 0;
	int differing = 0;
	if (run_on(gpu, &(Run){"twin_obstacle.comp", NULL, PLACES, blocks, 3}))
	{
		for (int i = 0; i < PLACES; ++i)
		{
			const double *p = places + 4 * (size_t)i, *given = results + (size_t)TOUCH_NUMBERS * (size_t)i;
			SandTouch touches[SAND_TOUCH_LIMIT];
			int slots[SAND_TOUCH_LIMIT],
			    count = sand_obstacle_touch(&obstacles[i % OBSTACLES], p, p[3], touches, slots);
			bool is_same = given[0] == count;
			for (int k = 0; k < count && is_same; ++k)
			{
				const double *g = given + 1 + 5 * k, *n = touches[k].normal;
				is_same = g[0] == slots[k] && are_same(g[1], touches[k].distance) && are_same(g[2], n[0]) &&
				          are_same(g[3], n[1]) && are_same(g[4], n[2]);
			}
			touch_count += count;
			if (!is_same && differing++ == 0)
			{
				printf("obstacle %d kind %d at %a %a %a reach %a: C finds %d, the device %g; first %a (%a %a %a), %a "
				       "(%a %a %a)\n",
				       i % OBSTACLES, (int)obstacles[i % OBSTACLES].kind, p[0], p[1], p[2], p[3], count, given[0],
				       touches[0].distance, touches[0].normal[0], touches[0].normal[1], touches[0].normal[2], given[2],
				       given[3], given[4], given[5]);
			}
		}
		CHECK_INT(differing, 0);
		CHECK(touch_count > PLACES / 4);
	}
	sand_gpu_destroy(gpu);
	sand_free(places);
	sand_free(results);
}

// ---- forces of surfaces ---------------------------------------------------------------------------------------------

enum
{
	LAWS = 64,
	SPHERES = 60000,
	PAIRS = 3 * SPHERES
};

// Every normal law with every shear law, with and without cohesion and rolling.
static void make_laws(SandLaw laws[LAWS])
{
	for (int i = 0; i < LAWS; ++i)
	{
		SandNormal normal = (SandNormal)(i % 4);
		uint64_t index = (uint64_t)i * 100;
		laws[i] = (SandLaw){
		    .normal = normal,
		    .shear = (SandShear)(i / 4 % 2),
		    .spring = (float)between(21, &index, 1e5, 1e7),
		    .damping = normal == SAND_NORMAL_HERTZ            ? 1e-3f
		               : normal == SAND_NORMAL_HERTZ_CONSTANT ? 0.4f
		                                                      : (float)between(21, &index, 50, 500),
		    .shear_damping = (float)between(21, &index, 10, 500),
		    .shear_spring = i % 7 == 3 ? 0 : (float)between(21, &index, 1e4, 1e7),
		    .friction = i % 9 == 4 ? 0 : (float)between(21, &index, 0.1, 0.9),
		    .rolling = i / 8 % 2 == 1 ? (float)between(21, &index, 0.01, 0.3) : 0,
		    .rolling_damping = (float)between(21, &index, 10, 300),
		    .cohesion = i / 16 % 2 == 1 ? (float)between(21, &index, 0.1, 5) : 0,
		    .cohesion_range = 0.2f,
		};
	}
}

static const double test_unit = 1.0 / 3.0e7, test_origin[3] = {-0.7, 0.1, 0.3};

static void make_sphere(uint64_t *index, const double place[3], SandSphere *s)
{
	double radius = between(22, index, 0.02, 0.4) / test_unit;
	bool is_slow = pick(22, index, 8) == 0, is_straight = pick(22, index, 8) == 0;
	*s = (SandSphere){.radius = (float)radius, .radius_again = (float)radius};
	s->inverse_mass = (float)between(22, index, 1, 2000);
	for (int k = 0; k < 3; ++k)
	{
		s->x[k] = (int32_t)lrint((place[k] - test_origin[k]) / test_unit);
		s->velocity[k] = is_slow ? 0 : (float)between(22, index, -3, 3);
		s->spin[k] = is_straight ? 0 : (float)(between(22, index, -100, 100) * test_unit);
	}
}

static SandControl make_control(int32_t sphere_count)
{
	SandControl control = {.unit = test_unit, .inverse_unit = 1 / test_unit, .last_step = 1.7e-4};
	memcpy(control.origin, test_origin, sizeof(test_origin));
	control.unit_float = (float)test_unit;
	control.per_unit = (float)(1 / test_unit);
	control.sphere_count = sphere_count;
	return control;
}

static bool are_same_floats(const float *a, const float *b, int count)
{
	bool is_same = true;
	for (int k = 0; k < count; ++k)
	{
		is_same = is_same && are_same((double)a[k], (double)b[k]);
	}
	return is_same;
}

// A force record of the device with its three rows, added to the sum of a sphere as sums.glsl adds it; 1 for a contact.
static int add_record(const float rows[12], SandSum *sum)
{
	for (int k = 0; k < 3; ++k)
	{
		float turn = rows[3] * rows[4 + k];
		turn = turn - rows[8 + k];
		sum->force[k] = sum->force[k] + rows[k];
		sum->torque[k] = sum->torque[k] - turn;
	}
	return rows[7] != 0;
}

// What the pass of obstacle forces works on, in C's arrays and in the device's.
typedef struct Scene
{
	SandObstacle obstacles[OBSTACLES];
	SandLaw laws[LAWS];
	SandSphere spheres[SPHERES];
	SandSum sums[SPHERES], device_sums[SPHERES];
	SandPair pairs[PAIRS];
	SandHistory history[PAIRS];
	int32_t pair_laws[PAIRS];
	SandGlTouch touches[PAIRS];
	float records[PAIRS][12];
} Scene;

static void make_scene(Scene *scene)
{
	uint64_t index = 0;
	make_obstacles(scene->obstacles);
	make_laws(scene->laws);
	for (int i = 0; i < SPHERES; ++i)
	{
		double place[4];
		make_place(&index, &scene->obstacles[pick(23, &index, OBSTACLES)], place);
		make_sphere(&index, place, &scene->spheres[i]);
		for (int j = 3 * i; j < 3 * i + 3; ++j)
		{
			int obstacle = pick(23, &index, OBSTACLES), slot = pick(23, &index, 6);
			slot =
			    scene->obstacles[obstacle].kind == SAND_OBSTACLE_BOX && scene->obstacles[obstacle].is_inside ? slot : 0;
			scene->pairs[j] = (SandPair){i, SAND_SLOT_COUNT * obstacle + slot};
			scene->pair_laws[j] = pick(23, &index, LAWS);
			scene->touches[j] = (SandGlTouch){.code = scene->pairs[j].b, .law = scene->pair_laws[j], .sphere = i};
			bool is_stretched = pick(23, &index, 4) > 0;
			for (int k = 0; k < 3; ++k)
			{
				scene->history[j].stretch[k] = is_stretched ? (float)between(23, &index, -1e-3, 1e-3) : 0;
				scene->touches[j].stretch[k] = scene->history[j].stretch[k];
			}
		}
	}
}

static int64_t forces_in_c(Scene *scene)
{
	SandChunk chunk = {.grain_count = SPHERES, .awake_count = SPHERES, .sphere_count = SPHERES};
	SandWork work = {.unit = test_unit, .last_step = 1.7e-4, .spheres = scene->spheres, .laws = scene->laws};
	memcpy(work.origin, test_origin, sizeof(test_origin));
	work.law_count = LAWS;
	work.obstacles = scene->obstacles;
	work.obstacle_count = OBSTACLES;
	SandSum nobody;
	chunk.sums = scene->sums;
	chunk.ghost_sums = &nobody;
	chunk.obstacle_pairs = scene->pairs;
	chunk.obstacle_history = scene->history;
	chunk.obstacle_laws = scene->pair_laws;
	chunk.obstacle_pair_count = PAIRS;
	sand_kernel_find(NULL)->forces(&work, &chunk);
	return chunk.contact_count;
}

static void obstacles_push_as_in_c(void)
{
	Scene *scene = sand_alloc(1, sizeof(*scene));
	SandGpu *gpu = software_device();
	if (!CHECK(scene != NULL && gpu != NULL))
	{
		return;
	}
	SandControl control = make_control(SPHERES);
	control.touch_count = PAIRS;
	make_scene(scene);
	const Block blocks[] = {{SAND_BIND_CONTROL, &control, &control, sizeof control},
	                        {SAND_BIND_SPHERES, scene->spheres, NULL, sizeof scene->spheres},
	                        {SAND_BIND_FORCES, NULL, scene->records, sizeof scene->records},
	                        {SAND_BIND_LAWS, scene->laws, NULL, sizeof scene->laws},
	                        {SAND_BIND_OBSTACLES, scene->obstacles, NULL, sizeof scene->obstacles},
	                        {SAND_BIND_TOUCHES, scene->touches, scene->touches, sizeof scene->touches}};
	if (run_on(gpu, &(Run){"54_obstacles.comp", NULL, PAIRS, blocks, 6}))
	{
		int64_t contact_count = forces_in_c(scene), given_count = 0;
		int differing = 0, differing_springs = 0;
		for (int i = 0; i < PAIRS; ++i)
		{
			given_count += add_record(scene->records[i], &scene->device_sums[i / 3]);
		}
		for (int i = 0; i < SPHERES; ++i)
		{
			const SandSum *sum = &scene->sums[i], *given = &scene->device_sums[i];
			if ((!are_same_floats(sum->force, given->force, 3) || !are_same_floats(sum->torque, given->torque, 3)) &&
			    differing++ == 0)
			{
				printf("sphere %d: C %a %a %a, %a %a %a, the device %a %a %a, %a %a %a\n", i, (double)sum->force[0],
				       (double)sum->force[1], (double)sum->force[2], (double)sum->torque[0], (double)sum->torque[1],
				       (double)sum->torque[2], (double)given->force[0], (double)given->force[1],
				       (double)given->force[2], (double)given->torque[0], (double)given->torque[1],
				       (double)given->torque[2]);
			}
		}
		for (int i = 0; i < PAIRS; ++i)
		{
			if (!are_same_floats(scene->history[i].stretch, scene->touches[i].stretch, 3) && differing_springs++ == 0)
			{
				printf("pair %d, law %d: C %a %a %a, the device %a %a %a\n", i, scene->pair_laws[i],
				       (double)scene->history[i].stretch[0], (double)scene->history[i].stretch[1],
				       (double)scene->history[i].stretch[2], (double)scene->touches[i].stretch[0],
				       (double)scene->touches[i].stretch[1], (double)scene->touches[i].stretch[2]);
			}
		}
		CHECK_INT(differing, 0);
		CHECK_INT(differing_springs, 0);
		CHECK_INT(given_count, contact_count);
		CHECK(contact_count > SPHERES);
	}
	sand_gpu_destroy(gpu);
	sand_free(scene);
}

// ---- tracks ---------------------------------------------------------------------------------------------------------

enum
{
	TRACKS = 40,
	SAMPLES = 9,
	TIMES = 120000,
	POSE_NUMBERS = 14
};

typedef struct Tracks
{
	SandTrack tracks[TRACKS];
	double samples[TRACKS][SAMPLES * SAND_TRACK_NUMBERS];
	double table[TRACKS * (SAND_TRACK_HEAD + SAND_TRACK_ROW * SAMPLES)];
	int32_t firsts[TRACKS];
	double times[2 * TIMES]; // from, to
	double results[POSE_NUMBERS * TIMES];
} Tracks;

// One to nine samples; some stand, some turn only, some by half a turn or not at all, some with signs that change.
static void make_tracks(Tracks *all)
{
	uint64_t index = 0;
	int64_t at = 0;
	for (int t = 0; t < TRACKS; ++t)
	{
		SandTrack *track = &all->tracks[t];
		*track = (SandTrack){.begin = t % 3 == 0 ? 0 : between(31, &index, -2, 2),
		                     .interval = t % 2 == 0 ? 1.0 / 24 : between(31, &index, 0.01, 0.3),
		                     .samples = all->samples[t],
		                     .sample_count = 1 + t % SAMPLES};
		for (int i = 0; i < track->sample_count; ++i)
		{
			double *sample = all->samples[t] + (size_t)i * SAND_TRACK_NUMBERS, axis[3],
			       angle = between(31, &index, -3, 3);
			unit_vector(31, &index, axis);
			angle = t % 5 == 1 ? 0 : t % 5 == 2 ? 3.14159265358979 * i : angle;
			double sign = t % 4 == 3 && i % 2 == 1 ? -1 : 1;
			for (int k = 0; k < 3; ++k)
			{
				sample[k] = t % 5 == 3 ? 0.25 : between(31, &index, -1, 1);
				axis[k] = t % 5 == 2 ? (double)(k == 2) : axis[k];
				sample[4 + k] = sign * sin(0.5 * angle) * axis[k];
			}
			sample[3] = sign * cos(0.5 * angle);
		}
		all->firsts[t] = (int32_t)at;
		sand_gl_track_write(track, 0.1 * t, all->table + at);
		at += sand_gl_track_size(track);
	}
}

// Anywhere; exactly at a sample, and just beside it.
static void make_times(Tracks *all)
{
	uint64_t index = 0;
	for (int i = 0; i < TIMES; ++i)
	{
		const SandTrack *track = &all->tracks[i % TRACKS];
		double length = track->interval * track->sample_count;
		double time = track->begin + between(32, &index, -0.3, 1.2) * length;
		if (pick(32, &index, 3) == 0)
		{
			time = track->begin + pick(32, &index, track->sample_count + 1) * track->interval;
			int beside = pick(32, &index, 3);
			time = beside == 0 ? time : nextafter(time, beside == 1 ? -1e9 : 1e9);
		}
		all->times[2 * i] = time;
		all->times[2 * i + 1] = time + between(32, &index, 0, 0.5) * length;
	}
}

static void tracks_go_as_in_c(void)
{
	Tracks *all = sand_alloc(1, sizeof(*all));
	SandGpu *gpu = software_device();
	if (!CHECK(all != NULL && gpu != NULL))
	{
		return;
	}
	make_tracks(all);
	make_times(all);
	const Block blocks[] = {{SAND_BIND_TRACKS, all->table, NULL, sizeof all->table},
	                        {0, all->firsts, NULL, sizeof all->firsts},
	                        {1, all->times, NULL, sizeof all->times},
	                        {2, NULL, all->results, sizeof all->results}};
	if (run_on(gpu, &(Run){"twin_track.comp", NULL, TIMES, blocks, 4}))
	{
		int differing = 0;
		for (int i = 0; i < TIMES; ++i)
		{
			const SandTrack *track = &all->tracks[i % TRACKS];
			double from = all->times[2 * i], to = all->times[2 * i + 1];
			const double *given = all->results + (size_t)POSE_NUMBERS * (size_t)i;
			SandPose pose;
			double w[POSE_NUMBERS];
			sand_track_pose(track, from, &pose);
			memcpy(w, &pose, sizeof(pose));
			w[POSE_NUMBERS - 1] = sand_track_speed(track, from, to, 0.1 * (i % TRACKS));
			bool is_same = true;
			for (int k = 0; k < POSE_NUMBERS; ++k)
			{
				is_same = is_same && are_same(w[k], given[k]);
			}
			if (!is_same && differing++ == 0)
			{
				printf("track %d at %a to %a:\n", i % TRACKS, from, to);
				for (int k = 0; k < POSE_NUMBERS; ++k)
				{
					printf("  %d: C %a, the device %a\n", k, w[k], given[k]);
				}
			}
		}
		CHECK_INT(differing, 0);
	}
	sand_gpu_destroy(gpu);
	sand_free(all);
}

// ---- meshes ---------------------------------------------------------------------------------------------------------

enum
{
	COLLIDERS = 7,
	FRAMES = 5,
	SEARCHES = 120000,
	ROLLERS = 5000, // spheres that move about the meshes
	ROUNDS = 6,
	MATERIALS = 8
};

// So fine that corners at quarters of a metre are places of the grid: exactly on a face, an edge, a corner.
static const double fine_unit = 1.0 / (1 << 24);

typedef struct Meshes
{
	SandCollider *colliders[COLLIDERS];
	SandColliderState *states[COLLIDERS];
	SandGlMeshes flat;
	SandGlPose poses[COLLIDERS];
	double slack[COLLIDERS];
} Meshes;

static void add_triangle(TestShape *shape, const double corners[3][3])
{
	shape->vertices = realloc(shape->vertices, (size_t)(shape->vertex_count + 3) * 3 * sizeof(float));
	shape->triangles = realloc(shape->triangles, (size_t)(shape->triangle_count + 1) * 3 * sizeof(int32_t));
	for (int i = 0; i < 3; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			shape->vertices[3 * (shape->vertex_count + i) + k] = (float)corners[i][k];
		}
		shape->triangles[3 * shape->triangle_count + i] = shape->vertex_count + i;
	}
	shape->vertex_count += 3;
	++shape->triangle_count;
}

// Triangles anywhere in a cube: some thin, some without area, some twice, some turned over.
static void add_soup(TestShape *shape, int count, double extent, double size)
{
	uint64_t index = 0;
	double corners[3][3] = {{0}};
	for (int i = 0; i < count; ++i)
	{
		int kind = pick(41, &index, 8);
		double middle[3];
		for (int k = 0; k < 3; ++k)
		{
			middle[k] = between(41, &index, -extent, extent);
		}
		for (int j = 0; j < 3; ++j)
		{
			for (int k = 0; k < 3 && (kind != 0 || i == 0); ++k)
			{
				corners[j][k] = middle[k] + between(41, &index, -size, size);
			}
		}
		if (kind == 0) // the last one again, turned over
		{
			double first[3];
			memcpy(first, corners[0], sizeof(first));
			memcpy(corners[0], corners[1], sizeof(first));
			memcpy(corners[1], first, sizeof(first));
		}
		for (int k = 0; k < 3 && (kind == 1 || kind == 2); ++k)
		{
			double share = kind == 1 ? 0.4 : 0.4 + 1e-4 * k;
			corners[2][k] = corners[0][k] + share * (corners[1][k] - corners[0][k]);
		}
		add_triangle(shape, corners);
	}
}

static void make_collider(Meshes *all, int index, const TestShape *shape, const SandTrack *track, const float *frames)
{
	SandMesh *mesh = test_shape_mesh(shape, "twin");
	SandError err = {0};
	SandColliderDesc desc = {.mesh = mesh, .track = track, .frames = frames, .material = index % MATERIALS};
	if (frames != NULL)
	{
		desc.frame_count = FRAMES;
		desc.frame_interval = 0.1;
	}
	CHECK_STATUS(sand_collider_create(&desc, index, &all->colliders[index], &err), SAND_OK, &err);
	CHECK_STATUS(sand_collider_state_create(all->colliders[index], &all->states[index], &err), SAND_OK, &err);
	sand_mesh_destroy(mesh);
}

// Each vertex goes its own way from frame to frame; in the second half all of them stand.
static float *make_frames(const TestShape *shape, double size)
{
	size_t count = 3 * (size_t)shape->vertex_count;
	float *frames = sand_alloc(count * FRAMES, sizeof(float));
	uint64_t index = 0;
	for (size_t i = 0; i < count * FRAMES && CHECK(frames != NULL); ++i)
	{
		frames[i] = i < count || i >= 3 * count ? shape->vertices[i % count]
		                                        : shape->vertices[i % count] + (float)between(42, &index, -size, size);
	}
	return frames;
}

// A box, a turning ball, an open pipe of slivers, a ball and a box that change shape, a soup, and a thicket of more
// triangles within reach than there can be candidates.
static void make_meshes(Meshes *all)
{
	TestShape shape = {0};
	const float low[3] = {-0.5F, -0.5F, -0.5F}, high[3] = {0.5F, 0.5F, 0.5F};
	const double samples[] = {0, 0.1, 0.2, 1, 0, 0, 0, 0.1, 0, 0, 0.8, 0, 0.6, 0, -0.1, 0, 0.1, 0, 0, 0, 1};
	const SandTrack track = {.interval = 0.2, .samples = samples, .sample_count = 3};
	test_shape_grid_box(&shape, low, high, 4);
	make_collider(all, 0, &shape, NULL, NULL);
	float *frames = make_frames(&shape, 0.05);
	make_collider(all, 1, &shape, NULL, frames);
	sand_free(frames);
	test_shape_free(&shape);
	test_shape_icosphere(&shape, 0.3F, 2);
	make_collider(all, 2, &shape, &track, NULL);
	test_shape_free(&shape);
	test_shape_open_cylinder(&shape, 0.4F, 1.0F, 48);
	make_collider(all, 3, &shape, NULL, NULL);
	test_shape_free(&shape);
	test_shape_uv_sphere(&shape, 0.35F, 12, 8);
	frames = make_frames(&shape, 0.1);
	make_collider(all, 4, &shape, NULL, frames);
	sand_free(frames);
	test_shape_free(&shape);
	add_soup(&shape, 200, 0.6, 0.15);
	make_collider(all, 5, &shape, NULL, NULL);
	test_shape_free(&shape);
	add_soup(&shape, 150, 0.08, 0.005);
	make_collider(all, 6, &shape, &track, NULL);
	test_shape_free(&shape);
	SandError err = {0};
	CHECK_STATUS(sand_gl_meshes_create(all->colliders, COLLIDERS, &all->flat, &err), SAND_OK, &err);
}

static void free_meshes(Meshes *all)
{
	for (int i = 0; i < COLLIDERS; ++i)
	{
		sand_collider_state_destroy(all->states[i]);
		sand_collider_destroy(all->colliders[i]);
	}
	sand_gl_meshes_destroy(&all->flat);
}

static void set_meshes(Meshes *all, double time, bool is_fitting)
{
	for (int i = 0; i < COLLIDERS; ++i)
	{
		sand_collider_set_time(all->colliders[i], all->states[i], time);
		sand_gl_pose(&all->flat, i, all->states[i], &all->poses[i]);
		if (is_fitting)
		{
			int64_t first, count;
			sand_collider_fit(all->colliders[i], all->states[i]);
			const float *boxes = sand_gl_boxes(&all->flat, i, all->colliders[i], all->states[i], &first, &count);
			if (boxes != NULL)
			{
				memcpy(all->flat.floats + first, boxes, (size_t)count * SAND_NODE_NUMBERS * sizeof(float));
			}
		}
	}
}

// A place near a triangle: at a corner, on an edge, on the face, or off it by less than `off`.
static void near_place(const Meshes *all, uint64_t *index, int c, double off, double place[3])
{
	SandColliderView view;
	SandPose pose;
	SandMoment moment;
	sand_collider_view(all->colliders[c], &view);
	sand_collider_place(all->states[c], &pose, &moment);
	const int32_t *corners = view.triangles + 3 * (size_t)pick(43, index, view.triangle_count);
	const float *vertices = view.vertices + 3 * (size_t)view.vertex_count * (size_t)moment.index;
	int kind = pick(43, index, 8);
	double a = kind < 2 ? 1 : sand_random(43, (*index)++), b = kind < 2 ? 0 : kind == 2 ? 1 - a : (1 - a) * 0.5;
	a = kind == 3 ? 0.25 : a;
	b = kind == 3 ? 0.25 : b;
	double away[3], own[3], far = kind % 2 == 0 ? 0 : between(43, index, -off, off);
	unit_vector(43, index, away);
	for (int k = 0; k < 3; ++k)
	{
		own[k] = a * (double)vertices[3 * (size_t)corners[0] + (size_t)k] +
		         b * (double)vertices[3 * (size_t)corners[1] + (size_t)k] +
		         (1 - a - b) * (double)vertices[3 * (size_t)corners[2] + (size_t)k] + far * away[k];
	}
	memcpy(place, own, sizeof(own));
	if (view.track != NULL)
	{
		sand_turn(pose.orientation, own, place);
		for (int k = 0; k < 3; ++k)
		{
			place[k] += pose.position[k];
		}
	}
}

static void meshes_are_searched_as_in_c(void)
{
	Meshes all = {.slack = {0}};
	double *places = sand_alloc(4 * (size_t)SEARCHES, sizeof(double));
	int32_t *results = sand_alloc(2 * (size_t)SEARCHES, sizeof(int32_t));
	SandGpu *gpu = software_device();
	if (!CHECK(places != NULL && results != NULL && gpu != NULL))
	{
		return;
	}
	uint64_t index = 0;
	SandControl control = make_control(0);
	make_meshes(&all);
	set_meshes(&all, 0.13, true);
	for (int i = 0; i < SEARCHES; ++i)
	{
		near_place(&all, &index, i % COLLIDERS, 0.4, places + 4 * (size_t)i);
		places[4 * (size_t)i + 3] = between(44, &index, 0, 0.25);
	}
	const Block blocks[] = {
	    {SAND_BIND_CONTROL, &control, NULL, sizeof control},
	    {SAND_BIND_MESHES, all.flat.meshes, NULL, COLLIDERS * sizeof(SandGlCollider)},
	    {SAND_BIND_MESH_WORDS, all.flat.words, NULL, (size_t)all.flat.word_count * sizeof(int32_t)},
	    {SAND_BIND_MESH_FLOATS, all.flat.floats, NULL, (size_t)all.flat.float_count * sizeof(float)},
	    {SAND_BIND_POSES, all.poses, NULL, sizeof all.poses},
	    {60, places, NULL, 4 * SEARCHES * sizeof(double)},
	    {61, NULL, results, 2 * SEARCHES * sizeof(int32_t)},
	};
	if (run_on(gpu, &(Run){"twin_near.comp", NULL, SEARCHES, blocks, 7}))
	{
		int differing = 0;
		int64_t found = 0;
		for (int i = 0; i < SEARCHES; ++i)
		{
			const double *p = places + 4 * (size_t)i;
			int c = i % COLLIDERS, count = sand_collider_near(all.colliders[c], all.states[c], p, p[3], NULL, 0);
			bool is_near = sand_collider_is_near(all.colliders[c], all.states[c], p, p[3]);
			found += count;
			if ((results[2 * i] != count || (results[2 * i + 1] != 0) != is_near) && differing++ == 0)
			{
				printf("collider %d at %a %a %a reach %a: C %d %d, the device %d %d\n", c, p[0], p[1], p[2], p[3],
				       count, is_near, results[2 * i], results[2 * i + 1]);
			}
		}
		CHECK_INT(differing, 0);
		CHECK(found > SEARCHES);
	}
	free_meshes(&all);
	sand_gpu_destroy(gpu);
	sand_free(places);
	sand_free(results);
}

static void meshes_are_as_fast_as_in_c(void)
{
	Meshes all = {.slack = {0}};
	double *times = sand_alloc(2 * (size_t)SEARCHES, sizeof(double)), *results = sand_alloc(SEARCHES, sizeof(double));
	SandGpu *gpu = software_device();
	if (!CHECK(times != NULL && results != NULL && gpu != NULL))
	{
		return;
	}
	uint64_t index = 0;
	int moving = 0, differing = 0;
	make_meshes(&all);
	for (int i = 0; i < SEARCHES; ++i)
	{
		// Some exactly at a frame or sample.
		double step = pick(47, &index, 2) == 0 ? 0.1 : 0.2;
		times[2 * i] = pick(47, &index, 3) == 0 ? pick(47, &index, 6) * step : between(47, &index, -0.2, 0.7);
		times[2 * i + 1] = times[2 * i] + (pick(47, &index, 4) == 0 ? step : between(47, &index, 0, 0.3));
	}
	const Block blocks[] = {{SAND_BIND_MESHES, all.flat.meshes, NULL, COLLIDERS * sizeof(SandGlCollider)},
	                        {SAND_BIND_TRACKS, all.flat.tracks, NULL, (size_t)all.flat.track_count * sizeof(double)},
	                        {60, times, NULL, 2 * SEARCHES * sizeof(double)},
	                        {61, NULL, results, SEARCHES * sizeof(double)}};
	if (run_on(gpu, &(Run){"twin_speed.comp", NULL, SEARCHES, blocks, 4}))
	{
		for (int i = 0; i < SEARCHES; ++i)
		{
			double speed = sand_collider_speed(all.colliders[i % COLLIDERS], times[2 * i], times[2 * i + 1]);
			moving += speed > 0;
			if (!are_same(speed, results[i]) && differing++ == 0)
			{
				printf("collider %d from %a to %a: C %a, the device %a\n", i % COLLIDERS, times[2 * i],
				       times[2 * i + 1], speed, results[i]);
			}
		}
		CHECK_INT(differing, 0);
		CHECK(moving > SEARCHES / 4);
	}
	free_meshes(&all);
	sand_gpu_destroy(gpu);
	sand_free(times);
	sand_free(results);
}

// The pass that places colliders, at times of frames and samples and between them.
static void meshes_are_placed_as_in_c(void)
{
	Meshes all = {.slack = {0}};
	SandGpu *gpu = software_device();
	if (!CHECK(gpu != NULL))
	{
		return;
	}
	make_meshes(&all);
	SandControl control = make_control(0);
	control.collider_count = COLLIDERS;
	int differing = 0;
	for (int i = 0; i < 24; ++i)
	{
		SandGlPose poses[COLLIDERS];
		set_meshes(&all, 0, false);
		control.time = i % 3 == 0 ? 0.1 * (i / 3) : 0.03 * i - 0.1;
		const Block blocks[] = {
		    {SAND_BIND_CONTROL, &control, NULL, sizeof control},
		    {SAND_BIND_MESHES, all.flat.meshes, NULL, COLLIDERS * sizeof(SandGlCollider)},
		    {SAND_BIND_TRACKS, all.flat.tracks, NULL, (size_t)all.flat.track_count * sizeof(double)},
		    {SAND_BIND_POSES, all.poses, poses, sizeof poses}};
		if (!run_on(gpu, &(Run){"12_poses.comp", NULL, COLLIDERS, blocks, 4}))
		{
			break;
		}
		set_meshes(&all, control.time, false);
		for (int c = 0; c < COLLIDERS; ++c)
		{
			if (memcmp(&poses[c], &all.poses[c], sizeof(poses[c])) != 0 && differing++ == 0)
			{
				printf("collider %d at %a: share C %a, the device %a; x C %a, the device %a\n", c, control.time,
				       all.poses[c].share, poses[c].share, all.poses[c].position[0], poses[c].position[0]);
			}
		}
	}
	CHECK_INT(differing, 0);
	free_meshes(&all);
	sand_gpu_destroy(gpu);
}

// Spheres among the meshes, and what the list holds of them, in C's arrays and in the device's.
typedef struct Rollers
{
	Meshes meshes;
	SandLaw laws[LAWS];
	int32_t law_of[MATERIALS * MATERIALS];
	SandSphere spheres[ROLLERS];
	SandGrain grains[ROLLERS];
	SandTraits traits[ROLLERS];
	SandSum sums[ROLLERS], device_sums[ROLLERS];
	SandGroup groups[ROLLERS * COLLIDERS];
	int32_t firsts[ROLLERS + 1];
	int32_t group_count, near_count;
	int32_t *triangles;
	float *sides;
	SandHistory *history;
	SandGlNear *nears;
	double *loads;        // of the device
	float (*records)[12]; // likewise
	int32_t near_spheres[ROLLERS];
	double collider_sums[6 * COLLIDERS];
	SandControl control;
} Rollers;

static void make_rollers(Rollers *all)
{
	uint64_t index = 0;
	make_meshes(&all->meshes);
	make_laws(all->laws);
	set_meshes(&all->meshes, 0, true);
	all->control = make_control(ROLLERS);
	all->control.unit = fine_unit;
	all->control.inverse_unit = 1 / fine_unit;
	all->control.per_unit = (float)(1 / fine_unit);
	memset(all->control.origin, 0, sizeof(all->control.origin));
	all->control.margin_slow = (float)(0.1 / fine_unit);
	all->control.margin_fast = (float)(0.2 / fine_unit);
	all->control.material_count = MATERIALS;
	all->control.collider_count = COLLIDERS;
	for (int i = 0; i < MATERIALS * MATERIALS; ++i)
	{
		all->law_of[i] = i % LAWS;
	}
	for (int i = 0; i < COLLIDERS; ++i)
	{
		all->meshes.slack[i] = all->meshes.flat.meshes[i].slack = i % 2 == 0 ? 0.02 : 0;
	}
	for (int i = 0; i < ROLLERS; ++i)
	{
		double place[3], radius = between(45, &index, 0.01, 0.1);
		SandSphere *s = &all->spheres[i];
		near_place(&all->meshes, &index, i % COLLIDERS, radius, place);
		make_sphere(&index, place, s);
		s->grain = i;
		s->radius = s->radius_again = (float)(radius / fine_unit);
		for (int k = 0; k < 3; ++k)
		{
			s->x[k] = (int32_t)lrint(place[k] / fine_unit);
			s->spin[k] = (float)((double)s->spin[k] / test_unit * fine_unit);
		}
		s->inverse_mass = i % 97 == 5 ? 0 : s->inverse_mass;
		all->grains[i].flags = i % 53 == 7 ? SAND_GRAIN_ASLEEP : i % 5 == 0 ? SAND_GRAIN_FAST : 0;
		all->traits[i].material = pick(45, &index, MATERIALS);
	}
}

// As search_colliders of csrc/list.c. NULL triangles: only counts.
static void list_rollers(Rollers *all, int32_t *triangles)
{
	all->group_count = all->near_count = 0;
	for (int i = 0; i < ROLLERS; ++i)
	{
		const SandSphere *s = &all->spheres[i];
		int32_t flags = all->grains[i].flags;
		float margin = flags & SAND_GRAIN_FAST ? all->control.margin_fast : all->control.margin_slow;
		double p[3], own = ((double)(s->radius + margin) + 0.0) * fine_unit;
		all->firsts[i] = all->near_count;
		for (int k = 0; k < 3; ++k)
		{
			p[k] = (double)s->x[k] * fine_unit + 0.0;
		}
		for (int c = 0; c < COLLIDERS && s->inverse_mass > 0 && (flags & SAND_GRAIN_STILL) == 0; ++c)
		{
			int count = sand_collider_near(
			    all->meshes.colliders[c], all->meshes.states[c], p, own + all->meshes.slack[c],
			    triangles != NULL ? triangles + all->near_count : NULL, triangles != NULL ? INT32_MAX : 0);
			if (count > 0)
			{
				int32_t law =
				    all->law_of[all->traits[i].material * MATERIALS + sand_collider_material(all->meshes.colliders[c])];
				all->groups[all->group_count++] = (SandGroup){i, c, law, all->near_count, count};
				all->near_count += count;
			}
		}
	}
	all->firsts[ROLLERS] = all->near_count;
}

enum
{
	MESH_BLOCKS = 4
};

static void mesh_blocks(const Rollers *all, Block blocks[MESH_BLOCKS])
{
	const SandGlMeshes *flat = &all->meshes.flat;
	blocks[0] = (Block){SAND_BIND_MESHES, flat->meshes, NULL, COLLIDERS * sizeof(SandGlCollider)};
	blocks[1] = (Block){SAND_BIND_MESH_WORDS, flat->words, NULL, (size_t)flat->word_count * sizeof(int32_t)};
	blocks[2] = (Block){SAND_BIND_MESH_FLOATS, flat->floats, NULL, (size_t)flat->float_count * sizeof(float)};
	blocks[3] = (Block){SAND_BIND_POSES, all->meshes.poses, NULL, sizeof all->meshes.poses};
}

// Counts on the device, then writes; compares both with C's list.
static bool list_on_device(SandGpu *gpu, Rollers *all)
{
	static int32_t counts[ROLLERS + 1];
	SandTraits *traits = sand_alloc(ROLLERS, sizeof(*traits));
	int differing = 0, woken = 0;
	Block blocks[12] = {{SAND_BIND_CONTROL, &all->control, NULL, sizeof all->control},
	                    {SAND_BIND_SPHERES, all->spheres, NULL, sizeof all->spheres},
	                    {SAND_BIND_GRAINS, all->grains, NULL, sizeof all->grains},
	                    {SAND_BIND_TRAITS, all->traits, traits, sizeof all->traits},
	                    {SAND_BIND_LAW_OF, all->law_of, NULL, sizeof all->law_of},
	                    {SAND_BIND_NEARS, NULL, NULL, sizeof(SandGlNear)},
	                    {SAND_BIND_NEAR_FIRSTS, NULL, counts, sizeof counts}};
	mesh_blocks(all, blocks + 7);
	if (!CHECK(traits != NULL) || !run_on(gpu, &(Run){"43_nears.comp", NULL, ROLLERS, blocks, 11}))
	{
		return false;
	}
	for (int i = 0; i < ROLLERS; ++i)
	{
		differing += counts[i] != all->firsts[i + 1] - all->firsts[i];
		woken += traits[i].is_woken;
		CHECK(!traits[i].is_woken || all->grains[i].flags == SAND_GRAIN_ASLEEP);
	}
	CHECK_INT(differing, 0);
	CHECK(woken > 0);
	sand_free(traits);
	blocks[5] = (Block){SAND_BIND_NEARS, NULL, all->nears, (size_t)all->near_count * sizeof(SandGlNear)};
	blocks[6] = (Block){SAND_BIND_NEAR_FIRSTS, all->firsts, NULL, sizeof all->firsts};
	blocks[3].out = NULL;
	blocks[0].out = &all->control;
	blocks[11] = (Block){SAND_BIND_NEAR_SPHERES, NULL, all->near_spheres, sizeof all->near_spheres};
	all->control.near_sphere_count = 0;
	if (!run_on(gpu, &(Run){"43_nears.comp", "#define WRITE\n", ROLLERS, blocks, 12}))
	{
		return false;
	}
	static bool is_listed[ROLLERS];
	for (int i = 0; i < all->control.near_sphere_count; ++i)
	{
		differing += is_listed[all->near_spheres[i]];
		is_listed[all->near_spheres[i]] = true;
	}
	for (int i = 0; i < ROLLERS; ++i)
	{
		differing += is_listed[i] != (all->firsts[i] < all->firsts[i + 1]);
	}
	for (int g = 0; g < all->group_count; ++g)
	{
		const SandGroup *group = &all->groups[g];
		for (int i = group->first; i < group->first + group->count; ++i)
		{
			const SandGlNear *near = &all->nears[i];
			differing += near->triangle != all->triangles[i] || near->collider != group->collider ||
			             near->law != group->law ||
			             near->number != all->meshes.flat.meshes[group->collider].number + near->triangle;
		}
	}
	return CHECK_INT(differing, 0);
}

static int64_t roll_in_c(Rollers *all)
{
	SandSum nobody;
	SandChunk chunk = {.grain_count = ROLLERS, .awake_count = ROLLERS, .sphere_count = ROLLERS};
	SandWork work = {
	    .unit = fine_unit, .last_step = all->control.last_step, .spheres = all->spheres, .laws = all->laws};
	work.law_count = LAWS;
	work.colliders = all->meshes.colliders;
	work.collider_states = all->meshes.states;
	work.collider_count = COLLIDERS;
	chunk.sums = all->sums;
	chunk.ghost_sums = &nobody;
	chunk.groups = all->groups;
	chunk.group_count = all->group_count;
	chunk.near_triangles = all->triangles;
	chunk.near_sides = all->sides;
	chunk.near_history = all->history;
	chunk.near_count = all->near_count;
	chunk.collider_sums = all->collider_sums;
	sand_kernel_find(NULL)->forces(&work, &chunk);
	return chunk.contact_count;
}

static int compare_rollers(const Rollers *all, int round)
{
	int differing = 0;
	double sums[6 * COLLIDERS] = {0};
	for (int i = 0; i < ROLLERS; ++i)
	{
		if ((!are_same_floats(all->sums[i].force, all->device_sums[i].force, 3) ||
		     !are_same_floats(all->sums[i].torque, all->device_sums[i].torque, 3)) &&
		    differing++ == 0)
		{
			const float *c = all->sums[i].force, *g = all->device_sums[i].force;
			printf("round %d, sphere %d: C %a %a %a, the device %a %a %a\n", round, i, (double)c[0], (double)c[1],
			       (double)c[2], (double)g[0], (double)g[1], (double)g[2]);
		}
	}
	for (int g = 0; g < all->group_count; ++g)
	{
		const SandGroup *group = &all->groups[g];
		for (int i = group->first; i < group->first + group->count; ++i)
		{
			bool is_same = are_same_floats(&all->sides[i], &all->nears[i].side, 1) &&
			               are_same_floats(all->history[i].stretch, all->nears[i].stretch, 3);
			for (int k = 0; k < 6; ++k)
			{
				sums[6 * group->collider + k] += all->loads[6 * (size_t)i + (size_t)k];
			}
			if (!is_same && differing++ == 0)
			{
				printf(
				    "round %d, sphere %d, collider %d, triangle %d: C side %g, spring %a %a %a, the device %g, %a %a "
				    "%a\n",
				    round, group->sphere, group->collider, all->triangles[i], (double)all->sides[i],
				    (double)all->history[i].stretch[0], (double)all->history[i].stretch[1],
				    (double)all->history[i].stretch[2], (double)all->nears[i].side, (double)all->nears[i].stretch[0],
				    (double)all->nears[i].stretch[1], (double)all->nears[i].stretch[2]);
			}
		}
	}
	for (int k = 0; k < 6 * COLLIDERS; ++k)
	{
		if (!are_same(sums[k], all->collider_sums[k]) && differing++ == 0)
		{
			printf("round %d, collider %d, load %d: C %a, the device %a\n", round, k / 6, k % 6, all->collider_sums[k],
			       sums[k]);
		}
	}
	return differing;
}

// Through surfaces as well.
static void move_rollers(Rollers *all, uint64_t *index)
{
	for (int i = 0; i < ROLLERS; ++i)
	{
		double way[3], far = between(46, index, 0, 0.03);
		unit_vector(46, index, way);
		for (int k = 0; k < 3; ++k)
		{
			all->spheres[i].x[k] += (int32_t)(far * way[k] / fine_unit);
		}
	}
}

static void meshes_push_as_in_c(void)
{
	Rollers *all = sand_alloc(1, sizeof(*all));
	SandGpu *gpu = software_device();
	if (!CHECK(all != NULL && gpu != NULL))
	{
		return;
	}
	make_rollers(all);
	list_rollers(all, NULL);
	size_t count = (size_t)all->near_count;
	all->triangles = sand_alloc(count, sizeof(int32_t));
	all->sides = sand_alloc(count, sizeof(float));
	all->history = sand_alloc(count, sizeof(SandHistory));
	all->nears = sand_alloc(count, sizeof(SandGlNear));
	all->loads = sand_alloc(6 * count, sizeof(double));
	all->records = sand_alloc(count, sizeof(all->records[0]));
	list_rollers(all, all->triangles);
	bool is_going = list_on_device(gpu, all);
	uint64_t index = 0;
	int64_t contacts = 0;
	for (int round = 0; round < ROUNDS && is_going; ++round)
	{
		set_meshes(&all->meshes, 0.06 * round, false);
		Block blocks[12] = {{SAND_BIND_CONTROL, &all->control, &all->control, sizeof all->control},
		                    {SAND_BIND_SPHERES, all->spheres, NULL, sizeof all->spheres},
		                    {SAND_BIND_FORCES, NULL, all->records, count * sizeof(all->records[0])},
		                    {SAND_BIND_LAWS, all->laws, NULL, sizeof all->laws},
		                    {SAND_BIND_NEAR_FIRSTS, all->firsts, NULL, sizeof all->firsts},
		                    {SAND_BIND_NEARS, all->nears, all->nears, count * sizeof(SandGlNear)},
		                    {SAND_BIND_NEAR_LOADS, NULL, all->loads, 6 * count * sizeof(double)}};
		mesh_blocks(all, blocks + 7);
		blocks[11] = (Block){SAND_BIND_NEAR_SPHERES, all->near_spheres, NULL, sizeof all->near_spheres};
		is_going = run_on(gpu, &(Run){"56_colliders.comp", NULL, all->control.near_sphere_count, blocks, 12});
		int64_t wanted = roll_in_c(all), given = 0;
		memset(all->device_sums, 0, sizeof(all->device_sums));
		for (int i = 0; i < ROLLERS; ++i)
		{
			for (int k = all->firsts[i]; k < all->firsts[i + 1]; ++k)
			{
				given += add_record(all->records[k], &all->device_sums[i]);
			}
		}
		contacts += wanted;
		is_going = is_going && CHECK_INT(compare_rollers(all, round), 0) && CHECK_INT(given, wanted);
		move_rollers(all, &index);
	}
	printf("%d triangles near %d spheres in %d groups, %lld contacts\n", all->near_count, ROLLERS, all->group_count,
	       (long long)contacts);
	CHECK((int64_t)all->group_count * ROUNDS > 100000 && contacts > 50000);
	free_meshes(&all->meshes);
	sand_gpu_destroy(gpu);
	sand_free(all->triangles);
	sand_free(all->sides);
	sand_free(all->history);
	sand_free(all->nears);
	sand_free(all->loads);
	sand_free(all->records);
	sand_free(all);
}

static void meshes_without_memory_are_refused(void)
{
	Meshes all = {.slack = {0}};
	make_meshes(&all);
	size_t bytes = sand_alloc_bytes();
	for (uint64_t countdown = 1; countdown <= 5; ++countdown)
	{
		SandGlMeshes flat;
		SandError err = {0};
		sand_alloc_fail_after(countdown, false);
		SandStatus status = sand_gl_meshes_create(all.colliders, COLLIDERS, &flat, &err);
		sand_alloc_fail_after(0, false);
		CHECK_STATUS(status, countdown < 5 ? SAND_ERROR_MEMORY : SAND_OK, &err);
		sand_gl_meshes_destroy(&flat);
		CHECK_INT(sand_alloc_bytes(), bytes);
	}
	SandGlMeshes none;
	SandError err = {0};
	CHECK_STATUS(sand_gl_meshes_create(NULL, 0, &none, &err), SAND_OK, &err);
	CHECK(none.meshes != NULL && none.words != NULL && none.floats != NULL && none.tracks != NULL);
	sand_gl_meshes_destroy(&none);
	free_meshes(&all);
}

void test_gltwins(void)
{
	RUN(obstacles_touch_as_in_c);
	RUN(obstacles_push_as_in_c);
	RUN(tracks_go_as_in_c);
	RUN(meshes_are_searched_as_in_c);
	RUN(meshes_are_as_fast_as_in_c);
	RUN(meshes_are_placed_as_in_c);
	RUN(meshes_push_as_in_c);
	RUN(meshes_without_memory_are_refused);
}
