// Tests of the shaders' functions against their twins in C, bit for bit, on the software device. Every test prints the
// first input that differs and counts the others.
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
	int64_t invocation_count;
	const Block *blocks;
	int block_count;
} Run;

static const char *text_of(const char *name)
{
	for (size_t i = 0; i < sizeof test_shaders / sizeof test_shaders[0]; ++i)
	{
		if (strcmp(test_shaders[i].name, name) == 0)
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
	    gpu, &(SandGpuProgramDesc){.name = run->name, .text = text_of(run->name)}, &program, err);
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
	if (run_on(gpu, &(Run){"twin_obstacle.comp", PLACES, blocks, 3}))
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

// What the pass of obstacle forces works on, in C's arrays and in the device's.
typedef struct Scene
{
	SandObstacle obstacles[OBSTACLES];
	SandLaw laws[LAWS];
	SandSphere spheres[SPHERES];
	SandSum sums[SPHERES], device_sums[SPHERES];
	SandPair pairs[PAIRS];
	SandHistory history[PAIRS];
	int32_t pair_laws[PAIRS], firsts[SPHERES + 1];
	SandGlTouch touches[PAIRS];
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
		scene->firsts[i] = 3 * i;
		for (int j = 3 * i; j < 3 * i + 3; ++j)
		{
			int obstacle = pick(23, &index, OBSTACLES), slot = pick(23, &index, 6);
			slot =
			    scene->obstacles[obstacle].kind == SAND_OBSTACLE_BOX && scene->obstacles[obstacle].is_inside ? slot : 0;
			scene->pairs[j] = (SandPair){i, SAND_SLOT_COUNT * obstacle + slot};
			scene->pair_laws[j] = pick(23, &index, LAWS);
			scene->touches[j] = (SandGlTouch){.code = scene->pairs[j].b, .law = scene->pair_laws[j]};
			bool is_stretched = pick(23, &index, 4) > 0;
			for (int k = 0; k < 3; ++k)
			{
				scene->history[j].stretch[k] = is_stretched ? (float)between(23, &index, -1e-3, 1e-3) : 0;
				scene->touches[j].stretch[k] = scene->history[j].stretch[k];
			}
		}
	}
	scene->firsts[SPHERES] = PAIRS;
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
	make_scene(scene);
	const Block blocks[] = {{SAND_BIND_CONTROL, &control, &control, sizeof control},
	                        {SAND_BIND_SPHERES, scene->spheres, NULL, sizeof scene->spheres},
	                        {SAND_BIND_SUMS, NULL, scene->device_sums, sizeof scene->device_sums},
	                        {SAND_BIND_LAWS, scene->laws, NULL, sizeof scene->laws},
	                        {SAND_BIND_OBSTACLES, scene->obstacles, NULL, sizeof scene->obstacles},
	                        {SAND_BIND_TOUCH_FIRSTS, scene->firsts, NULL, sizeof scene->firsts},
	                        {SAND_BIND_TOUCHES, scene->touches, scene->touches, sizeof scene->touches}};
	if (run_on(gpu, &(Run){"54_obstacles.comp", SPHERES, blocks, 7}))
	{
		int64_t contact_count = forces_in_c(scene);
		int differing = 0, differing_springs = 0;
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
		CHECK_INT(control.contact_count, contact_count);
		CHECK(contact_count > SPHERES);
	}
	sand_gpu_destroy(gpu);
	sand_free(scene);
}

void test_gltwins(void)
{
	RUN(obstacles_touch_as_in_c);
	RUN(obstacles_push_as_in_c);
}
