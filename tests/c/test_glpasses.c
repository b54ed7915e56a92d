// Tests of the passes of shaders/: each runs alone, on seeded buffers, and leaves what the CPU engine's function that
// it is the twin of leaves, bit for bit on the software device. Then one line of the pass is changed, and the same
// comparison must notice: a table of such changes stands at the end.
//
// sim.c and list.c come in as text, under other names for the linker, so that their static functions are the very ones
// that the passes are compared with.
#define sand_sim_advance twin_sim_advance
#define sand_sim_advance_ahead twin_sim_advance_ahead
#define sand_sim_contacts twin_sim_contacts
#define sand_sim_create twin_sim_create
#define sand_sim_destroy twin_sim_destroy
#define sand_sim_engine twin_sim_engine
#define sand_sim_hash twin_sim_hash
#define sand_sim_info twin_sim_info
#define sand_sim_load twin_sim_load
#define sand_sim_loads twin_sim_loads
#define sand_sim_motion_hash twin_sim_motion_hash
#define sand_sim_passes twin_sim_passes
#define sand_sim_read twin_sim_read
#define sand_sim_save twin_sim_save
#define sand_list_build twin_list_build
#define sand_list_chunk_free twin_list_chunk_free
#define sand_list_classes twin_list_classes
#define sand_list_create twin_list_create
#define sand_list_destroy twin_list_destroy
#define sand_list_read_springs twin_list_read_springs
#define sand_list_save_history twin_list_save_history
#define sand_list_spring_count twin_list_spring_count
#define sand_list_write_springs twin_list_write_springs
#include "sim.c" // NOLINT
//
#include "list.c" // NOLINT

#include "glcollider.h"
#include "gpu.h"
#include "layout.h"
#include "test.h"
#include "test_shaders.h"

enum
{
	BLOCK_LIMIT = 20,
	PROGRAM_LIMIT = 48,
	GROUP = 64 // grains, spheres or pairs in a group of most passes
};

// A storage block of a pass: what goes in, NULL = zeros, and where it goes afterwards, NULL = nowhere.
typedef struct Block
{
	int binding;
	const void *in;
	void *out;
	size_t byte_count;
} Block;

typedef struct Run
{
	const char *name;    // a file of shaders/
	const char *defines; // NULL = none
	int64_t count;       // invocations
	uint32_t uniforms[3];
	int uniform_count;
	const Block *blocks;
	int block_count;
} Run;

// A change of one line of a pass that its twin must notice.
typedef struct Mutation
{
	const char *file, *from, *to;
} Mutation;

// What the suite keeps from test to test: one device, its programs, and the change under way.
static struct
{
	SandGpu *gpu;
	struct
	{
		const char *name, *defines;
		SandGpuProgram program;
	} programs[PROGRAM_LIMIT];
	int program_count;
	SandGpuBuffer nothing; // bound where a pass has no block of ours
	const Mutation *mutation;
	char *text;    // the pass with the change in it
	bool is_quiet; // a difference is what is wanted
} bench;

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

static bool is_mutated(const char *name)
{
	return bench.mutation != NULL && strcmp(bench.mutation->file, name) == 0;
}

// A program of the pass: kept for the suite, or, with a change in it, made for this run alone.
static SandStatus find_program(SandGpu *gpu, const Run *run, SandGpuProgram *program_out, SandError *err)
{
	for (int i = 0; i < bench.program_count && !is_mutated(run->name); ++i)
	{
		if (strcmp(bench.programs[i].name, run->name) == 0 && bench.programs[i].defines == run->defines)
		{
			*program_out = bench.programs[i].program;
			return SAND_OK;
		}
	}
	SandGpuProgramDesc desc = {.name = run->name, .defines = run->defines};
	desc.text = is_mutated(run->name) ? bench.text : NULL;
	SandStatus status = sand_gpu_program_create(gpu, &desc, program_out, err);
	if (status == SAND_OK && !is_mutated(run->name) && CHECK(bench.program_count < PROGRAM_LIMIT))
	{
		bench.programs[bench.program_count].name = run->name;
		bench.programs[bench.program_count].defines = run->defines;
		bench.programs[bench.program_count++].program = *program_out;
	}
	return status;
}

static void bind(SandGpu *gpu, int binding, SandGpuBuffer buffer)
{
	sand_gpu_bind(gpu, binding, buffer, 0, 0);
	if (sand_glsim_texel_words(binding) > 0)
	{
		sand_gpu_bind_texels(gpu, binding, buffer, sand_glsim_texel_words(binding));
	}
}

static SandStatus run_job(SandGpu *gpu, void *user, SandError *err)
{
	const Run *run = user;
	SandGpuBuffer buffers[BLOCK_LIMIT] = {{0}};
	SandGpuProgram program = {0};
	SandStatus status = find_program(gpu, run, &program, err);
	if (status == SAND_OK && bench.nothing.id == 0)
	{
		status = sand_gpu_buffer_create(gpu, 64, "nothing", &bench.nothing, err);
	}
	for (int binding = 0; binding < SAND_BIND_COUNT && status == SAND_OK; ++binding)
	{
		bind(gpu, binding, bench.nothing);
	}
	for (int i = 0; i < run->block_count && status == SAND_OK; ++i)
	{
		const Block *block = &run->blocks[i];
		int64_t byte_count = block->byte_count > 0 ? (int64_t)block->byte_count : 16;
		status = sand_gpu_buffer_create(gpu, byte_count, run->name, &buffers[i], err);
		if (status == SAND_OK)
		{
			if (block->in != NULL && block->byte_count > 0)
			{
				sand_gpu_upload(gpu, buffers[i], 0, block->in, (int64_t)block->byte_count);
			}
			bind(gpu, block->binding, buffers[i]);
		}
	}
	if (status == SAND_OK)
	{
		for (int i = 0; i < run->uniform_count; ++i)
		{
			sand_gpu_set_uint(gpu, program, i, run->uniforms[i]);
		}
		sand_gpu_barrier(gpu);
		sand_gpu_dispatch(gpu, program, run->count);
		sand_gpu_barrier(gpu);
	}
	for (int i = 0; i < run->block_count; ++i)
	{
		if (status == SAND_OK && run->blocks[i].out != NULL && run->blocks[i].byte_count > 0)
		{
			status = sand_gpu_download(gpu, buffers[i], 0, run->blocks[i].out, (int64_t)run->blocks[i].byte_count, err);
		}
		sand_gpu_buffer_destroy(gpu, buffers[i]);
	}
	if (is_mutated(run->name))
	{
		sand_gpu_program_destroy(gpu, program);
	}
	return status;
}

static bool run_on_device(const Run *run)
{
	SandError err = {0};
	return CHECK_STATUS(sand_gpu_run(bench.gpu, run_job, (void *)run, &err), SAND_OK, &err);
}

#define RUN_PASS(pass_name, pass_defines, invocations, pass_blocks, ...)                                               \
	run_on_device(&(Run){.name = (pass_name),                                                                          \
	                     .defines = (pass_defines),                                                                    \
	                     .count = (invocations),                                                                       \
	                     .uniforms = {__VA_ARGS__},                                                                    \
	                     .uniform_count = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),                        \
	                     .blocks = (pass_blocks),                                                                      \
	                     .block_count = sizeof(pass_blocks) / sizeof((pass_blocks)[0])})

#define RUN_PLAIN(pass_name, pass_defines, invocations, pass_blocks)                                                   \
	run_on_device(&(Run){.name = (pass_name),                                                                          \
	                     .defines = (pass_defines),                                                                    \
	                     .count = (invocations),                                                                       \
	                     .blocks = (pass_blocks),                                                                      \
	                     .block_count = sizeof(pass_blocks) / sizeof((pass_blocks)[0])})

static const char write_define[] = "#define WRITE\n", add_define[] = "#define ADD\n",
                  listing_define[] = "#define LISTING\n";

// How many of the elements differ; the first is printed, unless a difference is what is wanted.
static int differ(const char *what, const void *wanted, const void *given, size_t size, int64_t count)
{
	int differing = 0;
	for (int64_t i = 0; i < count; ++i)
	{
		const unsigned char *a = (const unsigned char *)wanted + (size_t)i * size,
		                    *b = (const unsigned char *)given + (size_t)i * size;
		if (memcmp(a, b, size) != 0 && differing++ == 0 && !bench.is_quiet)
		{
			size_t at = 0;
			while (a[at] == b[at])
			{
				++at;
			}
			printf("  %s %lld of %lld differs at byte %zu of %zu: C", what, (long long)i, (long long)count, at, size);
			for (size_t k = at / 4 * 4; k < size && k < at / 4 * 4 + 16; ++k)
			{
				printf(" %02x", a[k]);
			}
			printf(", the device");
			for (size_t k = at / 4 * 4; k < size && k < at / 4 * 4 + 16; ++k)
			{
				printf(" %02x", b[k]);
			}
			printf("\n");
		}
	}
	if (differing > 0 && !bench.is_quiet)
	{
		printf("  %s: %d of %lld differ\n", what, differing, (long long)count);
	}
	return differing;
}

#define DIFFER(wanted, given, count) differ(#given, (wanted), (given), sizeof((given)[0]), (count))

static int differ_controls(const SandControl *wanted, const SandControl *given)
{
	return differ("control", wanted, given, sizeof(*wanted), 1);
}

static void *copy_of(const void *from, size_t byte_count)
{
	void *copy = sand_alloc(byte_count > 0 ? byte_count : 1, 1);
	if (CHECK(copy != NULL) && byte_count > 0)
	{
		memcpy(copy, from, byte_count);
	}
	return copy;
}

static double between(uint64_t seed, uint64_t *index, double low, double high)
{
	return low + (high - low) * sand_random(seed, (*index)++);
}

static int pick(uint64_t seed, uint64_t *index, int count)
{
	return (int)(sand_random(seed, (*index)++) * count);
}

// ---- seeded sand ----------------------------------------------------------------------------------------------------

// What a scene of the tests is made of.
typedef struct Recipe
{
	int grain_count;
	bool is_mixed;     // shapes, sizes, two materials
	bool has_history;  // springs
	bool has_sleep;    // and sleepers
	bool has_bridges;  // cohesion
	bool has_walls;    // and obstacles
	bool has_emitters; // and grains that wait
	bool has_meshes;   // one stands, one moves
	int body_count;    // of them every third is free
	bool is_heap;      // all in one cell
} Recipe;

enum
{
	SHAPES = 3,
	MATERIALS = 2,
	OFFSETS = 8,
	OBSTACLES = 4,
	COLLIDERS = 2
};

// A scene, the CPU engine on it, and what the shaders read of both.
typedef struct Sand
{
	SandScene *scene;
	SandSim *sim;
	SandControl control;
	SandGlLevel levels[SAND_LEVELS];
	uint32_t bucket_count;
	SandGlShape shapes[SHAPES];
	float offsets[4 * OFFSETS];
	SandGlMeshes meshes;
	int32_t *places; // per grain id
} Sand;

static void set_shapes(Sand *sand)
{
	int first = 0;
	for (int i = 0; i < sand->scene->shape_count; ++i)
	{
		const SandShape *shape = &sand->scene->shapes[i];
		sand->shapes[i] = (SandGlShape){
		    .share = shape->share, .bound = shape->bound, .sphere_count = shape->sphere_count, .first_offset = first};
		memcpy(sand->shapes[i].inertia, shape->inertia, sizeof(shape->inertia));
		for (int k = 0; k < shape->sphere_count; ++k, ++first)
		{
			memcpy(sand->offsets + 4 * first, shape->offsets + 3 * (size_t)k, 3 * sizeof(float));
			sand->offsets[4 * first + 3] = shape->radii[k];
		}
	}
}

// What the passes know of a scene, as layout.h names it.
static void set_control(Sand *sand)
{
	const SandSim *sim = sand->sim;
	const SandScene *scene = sand->scene;
	const SandWork *work = &sim->work;
	SandControl *c = &sand->control;
	double field = 0, bound = 0;
	*c = (SandControl){.unit = work->unit,
	                   .inverse_unit = 1 / work->unit,
	                   .unit_float = (float)work->unit,
	                   .per_unit = (float)(1 / work->unit),
	                   .speed_limit = work->speed_limit,
	                   .drag = work->drag,
	                   .sleep_speed = scene->sleep_speed,
	                   .sleep_seconds = scene->sleep_seconds,
	                   .step_limit = sim->step_limit,
	                   .max_speed = scene->max_speed,
	                   .radius_min = (double)scene->radius_min,
	                   .colliders_until = DBL_MAX,
	                   .birth_slack = SAND_BIRTH_STEPS * sim->step_limit,
	                   .sort_cell = 4.0 * (double)scene->radius_max / work->unit,
	                   .margin_slow = work->margin_slow,
	                   .margin_fast = work->margin_fast,
	                   .wake_speed_square = work->wake_speed_square,
	                   .bridge = sim->list->desc.bridge,
	                   .grain_count = scene->grain_count,
	                   .sphere_count = sim->sphere_count,
	                   .wall_count = sim->wall_count,
	                   .law_count = scene->law_count,
	                   .material_count = scene->material_count,
	                   .wall_material = scene->wall_material,
	                   .chunk_spheres = sim->chunk_spheres,
	                   .region_count = scene->region_count,
	                   .outflow_count = scene->outflow_count,
	                   .obstacle_count = scene->obstacle_count,
	                   .collider_count = scene->collider_count,
	                   .body_count = scene->body_count,
	                   .level_count = sim->list->level_count,
	                   .size_count = sim->list->size_count,
	                   .partial_count = (scene->grain_count + GROUP - 1) / GROUP,
	                   .bad_grain = SAND_NO_GRAIN};
	for (int k = 0; k < 3; ++k)
	{
		c->origin[k] = work->origin[k];
		c->gravity[k] = work->gravity[k];
		c->domain_min[k] = work->domain_min[k];
		c->domain_max[k] = work->domain_max[k];
		c->wind[k] = work->wind[k];
		field += fabs(scene->gravity[k]);
	}
	c->field_step = field > 0 ? sqrt(0.02 * c->radius_min / field) : DBL_MAX;
	for (int i = 0; i < scene->grain_count; ++i)
	{
		bound = fmax(bound, (double)scene->shapes[scene->grain_shapes[i]].bound * (double)scene->grain_scales[i]);
	}
	c->birth_room = 2 * bound + 2 * c->birth_slack * c->speed_limit;
	for (int k = 0; k < SAND_MARGIN_CHOICES; ++k)
	{
		c->thresholds[k] = SAND_SLOW_MARGIN * c->radius_min / ((64 >> k) * sim->step_limit);
	}
}

static void set_levels(Sand *sand)
{
	sand->bucket_count = 0;
	for (int l = 0; l < sand->sim->list->level_count; ++l)
	{
		const Level *level = &sand->sim->list->levels[l];
		sand->levels[l] = (SandGlLevel){.radius_max = level->radius_max,
		                                .mask = level->mask,
		                                .stride_y = level->stride_y,
		                                .stride_z = level->stride_z,
		                                .first_bucket = sand->bucket_count};
		sand->bucket_count += level->mask + 1;
	}
}

// Grains as they may be in the middle of a bake: anywhere, some at the same place, some lost, asleep, waking, not yet
// born, gone, fast; speeds from none through denormal ones to a metre a second and more; in no order.
static void season(Sand *sand, const Recipe *recipe, uint64_t seed)
{
	SandSim *sim = sand->sim;
	uint64_t index = 0;
	double side = recipe->is_heap ? 0.001 : 0.011 * cbrt((double)sim->grain_count);
	for (int i = 0; i < sim->grain_count; ++i)
	{
		SandGrain *grain = &sim->grains[i];
		SandTraits *traits = &sim->traits[i];
		int fate = pick(seed, &index, 16), speed = pick(seed, &index, 8);
		double scale = speed == 0 ? 0 : speed == 1 ? 1e-310 : speed == 2 ? 1e-3 : speed == 3 ? 5 : 0.5;
		double q[4];
		for (int k = 0; k < 3; ++k)
		{
			grain->position[k] = fate == 15 && i > 0 ? sim->grains[i - 1].position[k] : between(seed, &index, 0, side);
			grain->velocity[k] = scale * between(seed, &index, -1, 1);
			grain->momentum[k] = scale * between(seed, &index, -1e-6, 1e-6);
		}
		for (int k = 0; k < 4; ++k)
		{
			q[k] = between(seed, &index, -1, 1);
		}
		quaternion_normalise(q);
		memcpy(grain->orientation, q, sizeof(q));
		traits->quiet_steps = recipe->has_sleep ? pick(seed, &index, 4) : 0;
		traits->is_woken = pick(seed, &index, 8) == 0;
		traits->reach_speed = (float)between(seed, &index, 0, 3);
		if (grain->flags & SAND_GRAIN_BODY || grain->flags & SAND_GRAIN_UNBORN)
		{
			continue;
		}
		bool can_sleep = recipe->has_sleep;
		grain->flags = fate == 0                ? SAND_GRAIN_LOST
		               : fate == 1              ? SAND_GRAIN_GONE
		               : fate < 6 && can_sleep  ? SAND_GRAIN_ASLEEP
		               : fate == 6 && can_sleep ? SAND_GRAIN_ASLEEP | SAND_GRAIN_WAKING
		               : fate == 7              ? SAND_GRAIN_FAST
		                                        : 0;
		traits->is_woken = can_sleep && traits->is_woken;
		for (int k = 0; k < 3 && fate == 0; ++k)
		{
			grain->position[k] = between(seed, &index, -50, 50); // beyond the domain
		}
		if (fate == 0 && i % 2 == 0)
		{
			grain->position[0] = (double)NAN;
		}
	}
	for (int i = sim->grain_count - 1; i > 0; --i)
	{
		int other = pick(seed, &index, i + 1);
		SandGrain grain = sim->grains[i];
		SandTraits traits = sim->traits[i];
		sim->grains[i] = sim->grains[other];
		sim->traits[i] = sim->traits[other];
		sim->grains[other] = grain;
		sim->traits[other] = traits;
	}
	for (int i = 0; i < sim->grain_count; ++i)
	{
		sand->places[sim->traits[i].id] = i;
		if (sim->traits[i].body >= 0)
		{
			sim->body_at[sim->traits[i].body] = i;
		}
	}
}

static bool make_sand(Sand *sand, const Recipe *recipe, uint64_t seed)
{
	uint64_t index = 0;
	size_t count = (size_t)recipe->grain_count, bodies = (size_t)recipe->body_count;
	const float radius = 0.005f;
	float offsets[SHAPES][12] = {{0}}, radii[4] = {radius, radius, radius, radius};
	float walls[3 * 20], spots[3 * 5];
	float *positions = sand_alloc(3 * count, sizeof(float)), *scales = sand_alloc(count, sizeof(float));
	int32_t *shapes = sand_alloc(count, sizeof(int32_t)), *materials = sand_alloc(count, sizeof(int32_t));
	SandTrack *tracks = sand_alloc(bodies + 1, sizeof(SandTrack));
	SandBody *of_bodies = sand_alloc(bodies + 1, sizeof(SandBody));
	double *samples = sand_alloc((bodies + 1) * 4 * SAND_TRACK_NUMBERS, sizeof(double));
	sand_shape_tetrahedron(radius, offsets[1]);
	sand_shape_rod(radius, 3, offsets[2]);
	const SandShapeDesc of_shapes[SHAPES] = {
	    {offsets[0], radii, 1, NULL}, {offsets[1], radii, 4, NULL}, {offsets[2], radii, 3, NULL}};
	for (size_t i = 0; i < count; ++i)
	{
		for (size_t k = 0; k < 3; ++k)
		{
			positions[3 * i + k] = (float)between(seed, &index, 0, 0.011 * cbrt((double)count));
		}
		shapes[i] = recipe->is_mixed ? pick(seed, &index, SHAPES) : 0;
		materials[i] = recipe->is_mixed ? pick(seed, &index, MATERIALS) : 0;
		scales[i] = recipe->is_mixed ? (float)between(seed, &index, 0.15, 1) : 1;
	}
	for (size_t b = 0; b <= bodies; ++b)
	{
		double *own = samples + b * 4 * SAND_TRACK_NUMBERS;
		for (int i = 0; i < 4; ++i)
		{
			double *turn = own + 7 * i + 3;
			for (int k = 0; k < 3; ++k)
			{
				own[7 * i + k] = between(seed, &index, 0, 0.05);
			}
			for (int k = 0; k < 4; ++k)
			{
				turn[k] = between(seed, &index, -1, 1);
			}
			quaternion_normalise(turn);
		}
		tracks[b] = (SandTrack){.begin = 0.01 * (double)b, .interval = 0.05, .samples = own, .sample_count = 4};
		of_bodies[b] = (SandBody){.grain = (int32_t)(count - 1 - b < count ? count - 1 - b : 0)};
		of_bodies[b].track = b % 3 == 2 ? NULL : &tracks[b];
		of_bodies[b].release = b % 3 == 1 ? between(seed, &index, 0.01, 0.4) : 0;
	}
	const SandMaterial of_materials[MATERIALS] = {
	    {.shear = recipe->has_history ? SAND_SHEAR_HISTORY : SAND_SHEAR_VISCOUS,
	     .rolling = 0.1f,
	     .cohesion = recipe->has_bridges ? 0.05f : 0},
	    {.shear = recipe->has_history ? SAND_SHEAR_HISTORY : SAND_SHEAR_VISCOUS, .density = 900, .friction = 0.7f}};
	for (int i = 0; i < 20; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			walls[3 * i + k] = (float)between(seed, &index, 0, 0.08);
		}
	}
	for (int i = 0; i < 15; ++i)
	{
		spots[i] = (float)between(seed, &index, 0, 0.03);
	}
	const SandObstacle obstacles[OBSTACLES] = {
	    {.kind = SAND_OBSTACLE_PLANE, .axis = {0, 0, 1}, .material = recipe->is_mixed},
	    {.kind = SAND_OBSTACLE_BOX, .is_inside = 1, .point = {0.03f, 0.03f, 0.03f}, .size = {0.06f, 0.05f, 0.04f}},
	    {.kind = SAND_OBSTACLE_CYLINDER, .point = {0.05f, 0.02f, 0}, .axis = {0, 0, 1}, .size = {0.02f, 0.1f, 0}},
	    {.kind = SAND_OBSTACLE_CONE,
	     .is_inside = 1,
	     .point = {0, 0, -0.1f},
	     .axis = {0, 0, 1},
	     .size = {0.9f, 0, 0.5f}}};
	const SandEmitter emitter = {.positions = spots,
	                             .position_count = 5,
	                             .velocity = {0.1f, 0, -0.5f},
	                             .rate = 400,
	                             .begin = 0,
	                             .end = 0.25,
	                             .shape = recipe->is_mixed};
	TestShape box = {0};
	const float low[3] = {-0.01f, -0.01f, -0.01f}, high[3] = {0.09f, 0.09f, 0.09f};
	test_shape_grid_box(&box, low, high, 2);
	SandMesh *mesh = test_shape_mesh(&box, "box");
	const SandColliderDesc colliders[COLLIDERS] = {{.mesh = mesh, .material = 0},
	                                               {.mesh = mesh, .track = &tracks[bodies]}};
	SandSceneDesc desc = {.gravity = {0, 0.3, -9.81},
	                      .materials = of_materials,
	                      .material_count = recipe->is_mixed ? MATERIALS : 1,
	                      .max_speed = 2,
	                      .shapes = of_shapes,
	                      .shape_count = SHAPES,
	                      .grain_positions = positions,
	                      .grain_shapes = shapes,
	                      .grain_materials = materials,
	                      .grain_scales = scales,
	                      .grain_count = recipe->grain_count,
	                      .wall_positions = walls,
	                      .wall_radius = 0.004f,
	                      .wall_count = recipe->has_walls ? 20 : 0,
	                      .obstacles = obstacles,
	                      .obstacle_count = recipe->has_walls ? OBSTACLES : 0,
	                      .colliders = colliders,
	                      .collider_count = recipe->has_meshes ? COLLIDERS : 0,
	                      .bodies = of_bodies,
	                      .body_count = recipe->body_count,
	                      .emitters = &emitter,
	                      .emitter_count = recipe->has_emitters,
	                      .sleep_speed = recipe->has_sleep ? 0.02f : 0,
	                      .seed = seed};
	SandError err = {0};
	*sand = (Sand){.scene = NULL};
	SandSimDesc sim_desc = {.is_overlap_allowed = true};
	bool is_made = CHECK_STATUS(sand_scene_create(&desc, &sand->scene, &err), SAND_OK, &err) &&
	               CHECK_STATUS(sand_sim_create(sand->scene, &sim_desc, &sand->sim, &err), SAND_OK, &err);
	sand_mesh_destroy(mesh);
	test_shape_free(&box);
	sand_free(positions);
	sand_free(scales);
	sand_free(shapes);
	sand_free(materials);
	sand_free(tracks);
	sand_free(of_bodies);
	sand_free(samples);
	if (!is_made)
	{
		return false;
	}
	sand->places = sand_alloc((size_t)sand->sim->grain_count, sizeof(int32_t));
	is_made =
	    CHECK(sand->places != NULL) &&
	    CHECK_STATUS(sand_gl_meshes_create(sand->scene->colliders, sand->scene->collider_count, &sand->meshes, &err),
	                 SAND_OK, &err);
	set_shapes(sand);
	set_control(sand);
	set_levels(sand);
	season(sand, recipe, seed + 1);
	return is_made;
}

static void free_sand(Sand *sand)
{
	sand_gl_meshes_destroy(&sand->meshes);
	sand_sim_destroy(sand->sim);
	sand_scene_destroy(sand->scene);
	sand_free(sand->places);
}

// One grain, exactly a group, one more; all in one cell; everything at once.
static const Recipe recipes[] = {
    {.grain_count = 1},
    {.grain_count = GROUP, .has_history = true, .has_walls = true},
    {.grain_count = GROUP + 1, .has_sleep = true, .is_heap = true, .is_mixed = true},
    {.grain_count = 700,
     .is_mixed = true,
     .has_history = true,
     .has_sleep = true,
     .has_bridges = true,
     .has_walls = true},
    {.grain_count = 500,
     .is_mixed = true,
     .has_history = true,
     .has_sleep = true,
     .has_walls = true,
     .has_emitters = true,
     .has_meshes = true,
     .body_count = GROUP + 1},
};
enum
{
	RECIPES = sizeof recipes / sizeof recipes[0]
};

typedef int Twin(Sand *sand, uint64_t seed);

// The twin on every kind of sand: how many elements differ.
static int on_every_sand(Twin *twin)
{
	int differing = 0;
	for (int i = 0; i < RECIPES; ++i)
	{
		Sand sand;
		if (make_sand(&sand, &recipes[i], (uint64_t)(1000 + 10 * i)))
		{
			int own = twin(&sand, (uint64_t)(5000 + i));
			if (own > 0 && !bench.is_quiet)
			{
				printf("  in recipe %d\n", i);
			}
			differing += own;
		}
		free_sand(&sand);
	}
	return differing;
}

// ---- 11: driven bodies ----------------------------------------------------------------------------------------------

static int aim_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	int bodies = sand->scene->body_count, differing = 0;
	uint64_t index = 0;
	size_t grains = (size_t)sim->grain_count;
	int64_t track_count = 0;
	SandGlBody *records = sand_alloc((size_t)bodies, sizeof(SandGlBody));
	SandGrain *targets = sand_alloc((size_t)bodies, sizeof(SandGrain));
	SandGrain *given = sand_alloc(grains, sizeof(SandGrain));
	for (int b = 0; b < bodies; ++b)
	{
		const SandBody *body = &sand->scene->bodies[b];
		track_count += body->track != NULL ? sand_gl_track_size(body->track) : 0;
	}
	double *tracks = sand_alloc((size_t)track_count, sizeof(double));
	for (int b = 0, first = 0; b < bodies; ++b)
	{
		const SandBody *body = &sand->scene->bodies[b];
		records[b] = (SandGlBody){.release = body->release, .grain = body->grain, .track = first};
		memcpy(records[b].axes, sand->scene->shapes[sand->scene->grain_shapes[body->grain]].axes,
		       sizeof(records[b].axes));
		if (body->track != NULL)
		{
			sand_gl_track_write(body->track, 0, tracks + first);
			first += (int)sand_gl_track_size(body->track);
		}
	}
	SandControl control = sand->control;
	const Block blocks[] = {{SAND_BIND_CONTROL, &control, NULL, sizeof control},
	                        {SAND_BIND_GRAINS, sim->grains, given, grains * sizeof(SandGrain)},
	                        {SAND_BIND_TRAITS, sim->traits, NULL, grains * sizeof(SandTraits)},
	                        {SAND_BIND_SHAPES, sand->shapes, NULL, sizeof sand->shapes},
	                        {SAND_BIND_PLACES, sand->places, NULL, grains * sizeof(int32_t)},
	                        {SAND_BIND_BODIES, records, NULL, (size_t)bodies * sizeof(SandGlBody)},
	                        {SAND_BIND_TRACKS, tracks, NULL, (size_t)track_count * sizeof(double)},
	                        {SAND_BIND_TARGETS, NULL, targets, (size_t)bodies * sizeof(SandGrain)}};
	for (int round = 0; round < 6; ++round)
	{
		// In the last rounds some are due, one at exactly this time.
		control.time = sim->time = round < 3 ? 0.001 * round : between(seed, &index, 0.05, 0.3);
		if (round == 3 && bodies > 1)
		{
			control.time = sim->time = sand->scene->bodies[1].release;
		}
		control.step = between(seed, &index, 1e-5, 0.1);
		bool is_letting_go = round >= 3;
		control.halt = round == 2 ? SAND_HALT_LIST : SAND_HALT_NONE;
		RUN_PASS("11_bodies.comp", NULL, bodies, blocks, is_letting_go);
		SandGrain *before = copy_of(sim->grains, grains * sizeof(SandGrain));
		memset(sim->targets, 0, (size_t)bodies * sizeof(SandGrain));
		sim->has_driven = true;
		aim_bodies(sim, sim->time + control.step);
		for (int b = 0; b < bodies; ++b)
		{
			// The device writes only how it moves, and only when nothing halts it.
			SandGrain *wanted = &sim->targets[b];
			bool is_written = !is_letting_go && round != 2;
			*wanted = (SandGrain){.flags = 0};
			if (is_written && (before[sim->body_at[b]].flags & SAND_GRAIN_DRIVEN) != 0)
			{
				aim(sim, &before[sim->body_at[b]] - before + sim->grains, &sand->scene->bodies[b],
				    sim->time + control.step, wanted);
				wanted->inverse_mass = wanted->inverse_inertia = 0;
				wanted->flags = wanted->first_sphere = 0;
			}
		}
		differing += DIFFER(sim->targets, targets, bodies);
		differing += DIFFER(is_letting_go ? sim->grains : before, given, sim->grain_count);
		sand_free(before);
	}
	sand_free(records);
	sand_free(targets);
	sand_free(given);
	sand_free(tracks);
	return differing;
}

static int twin_11(void)
{
	return on_every_sand(aim_as_in_c);
}

// ---- 22: births -----------------------------------------------------------------------------------------------------

static int bear_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	int differing = 0, born = 0, late = 0;
	uint64_t index = 0;
	size_t grains = (size_t)sim->grain_count;
	if (sand->scene->emitter_count == 0)
	{
		return 0;
	}
	int32_t *places = sand_alloc(2 * grains, sizeof(int32_t)), *rivals = sand_alloc(grains, sizeof(int32_t));
	SandGrain *given = sand_alloc(grains, sizeof(SandGrain));
	// Nobody due, one exactly due, some, all the others.
	for (int round = 0; round < 8 && sim->waiting_count > 0; ++round)
	{
		double first = sand->scene->grain_births[sim->waiting[0]];
		sim->time = round == 0   ? first - 1e-3
		            : round == 1 ? first
		            : round == 7 ? 1
		                         : sim->time + between(seed, &index, 0, 0.08);
		// Apart from the crowd, so that there is room for some.
		for (int i = 0; i < sim->grain_count && round % 2 == 1; ++i)
		{
			for (int k = 0; k < 3 && (sim->grains[i].flags & SAND_GRAIN_UNBORN) == 0; ++k)
			{
				sim->grains[i].position[k] += between(seed, &index, 0, 0.05);
			}
		}
		SandControl control = sand->control;
		control.list_time = sim->time;
		control.waiting_end = sim->waiting_count;
		int waiting = sim->waiting_count;
		memcpy(places, sand->places, grains * sizeof(int32_t));
		memcpy(places + grains, sim->waiting, (size_t)waiting * sizeof(int32_t));
		memcpy(given, sim->grains, grains * sizeof(SandGrain));
		for (uint32_t part = 0; part < 3; ++part)
		{
			const Block blocks[] = {{SAND_BIND_CONTROL, &control, &control, sizeof control},
			                        {SAND_BIND_GRAINS, given, given, grains * sizeof(SandGrain)},
			                        {SAND_BIND_TRAITS, sim->traits, NULL, grains * sizeof(SandTraits)},
			                        {SAND_BIND_SHAPES, sand->shapes, NULL, sizeof sand->shapes},
			                        {SAND_BIND_PLACES, places, places, 2 * grains * sizeof(int32_t)},
			                        {SAND_BIND_BIRTHS, sand->scene->grain_births, NULL, grains * sizeof(double)},
			                        {SAND_BIND_RIVALS, rivals, rivals, grains * sizeof(int32_t)}};
			RUN_PASS("22_births.comp", NULL, part == 0 ? 1 : part == 1 ? sim->grain_count : GROUP, blocks, part);
		}
		int before = sim->waiting_count;
		give_birth(sim);
		born += before - sim->waiting_count;
		for (int i = 0; i < sim->waiting_count; ++i)
		{
			late += sand->scene->grain_births[sim->waiting[i]] <= sim->time;
		}
		differing += DIFFER(sim->grains, given, sim->grain_count);
		int32_t left = control.waiting_end - control.waiting_first;
		differing += sim->waiting_count != left;
		int32_t *waiting_given = places + grains + control.waiting_first;
		if (left == sim->waiting_count && control.waiting_first >= 0)
		{
			differing += DIFFER(sim->waiting, waiting_given, left);
		}
		differing += sim->next_birth != control.next_birth;
	}
	CHECK(bench.is_quiet || (born > 5 && late > 5));
	sand_free(places);
	sand_free(rivals);
	sand_free(given);
	return differing;
}

static int twin_22(void)
{
	return on_every_sand(bear_as_in_c);
}

// ---- 24 to 28: the order of the grains ------------------------------------------------------------------------------

// The box of the present grains and the width of a cell, as sort_grains has them.
static void find_cells(SandSim *sim, GrainPass *pass, int32_t high_out[3])
{
	int64_t extent = 0;
	begin_pass(pass, sim);
	run_pass(pass, bounds_task);
	for (int k = 0; k < 3; ++k)
	{
		int32_t low = INT32_MAX, high = INT32_MIN;
		for (int block = 0; block < pass->block_count; ++block)
		{
			low = pass->low[block][k] < low ? pass->low[block][k] : low;
			high = pass->high[block][k] > high ? pass->high[block][k] : high;
		}
		pass->corner[k] = low;
		high_out[k] = high;
		extent = low <= high && (int64_t)high - low > extent ? (int64_t)high - low : extent;
	}
	double cell = 4.0 * (double)sim->scene->radius_max / sim->work.unit;
	pass->cell_shift = 0;
	while (extent >> pass->cell_shift > 1023 || (double)(INT64_C(2) << pass->cell_shift) <= cell)
	{
		++pass->cell_shift;
	}
}

static int key_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	size_t grains = (size_t)sim->grain_count;
	int differing = 0;
	uint64_t index = 0;
	GrainPass *pass = sand_alloc(1, sizeof(*pass));
	uint32_t *keys = sand_alloc(2 * grains, sizeof(uint32_t)), *wanted = sand_alloc(2 * grains, sizeof(uint32_t));
	// As they are; across the whole domain; nobody there.
	for (int round = 0; round < 3; ++round)
	{
		for (int i = 0; i < sim->grain_count && round > 0; ++i)
		{
			sim->grains[i].flags |= round == 2 ? SAND_GRAIN_LOST : 0;
			for (int k = 0; k < 3; ++k)
			{
				sim->grains[i].position[k] =
				    between(seed, &index, sand->scene->domain_min[k], sand->scene->domain_max[k]);
			}
		}
		SandControl control = sand->control;
		for (int k = 0; k < 3; ++k)
		{
			control.low[k] = INT32_MAX;
			control.high[k] = INT32_MIN;
		}
		int32_t high[3];
		const Block blocks[] = {{SAND_BIND_CONTROL, &control, &control, sizeof control},
		                        {SAND_BIND_GRAINS, sim->grains, NULL, grains * sizeof(SandGrain)},
		                        {SAND_BIND_TRAITS, sim->traits, NULL, grains * sizeof(SandTraits)},
		                        {SAND_BIND_KEYS, NULL, keys, 2 * grains * sizeof(uint32_t)}};
		RUN_PASS("24_keys.comp", NULL, sim->grain_count, blocks, 0);
		find_cells(sim, pass, high);
		differing += DIFFER(pass->corner, control.low, 3) + DIFFER(high, control.high, 3);
		memcpy(control.low, pass->corner, sizeof(control.low));
		memcpy(control.high, high, sizeof(control.high));
		RUN_PASS("24_keys.comp", NULL, sim->grain_count, blocks, 1);
		run_pass(pass, morton_task);
		const uint64_t *records = sand_sorter_records(sim->sorter);
		for (size_t i = 0; i < grains; ++i)
		{
			// With nobody there is no box to measure from, and every key is 0 on the device.
			wanted[2 * i] = round == 2 ? 0 : (uint32_t)(records[i] >> 32);
			wanted[2 * i + 1] = (uint32_t)records[i];
		}
		differing += differ("keys", wanted, keys, 8, (int64_t)grains);
	}
	sand_free(pass);
	sand_free(keys);
	sand_free(wanted);
	return differing;
}

static int twin_24(void)
{
	return on_every_sand(key_as_in_c);
}

static int reorder_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	size_t grains = (size_t)sim->grain_count;
	GrainPass *pass = sand_alloc(1, sizeof(*pass));
	SandGrain *given_grains = sand_alloc(grains, sizeof(SandGrain));
	SandTraits *given_traits = sand_alloc(grains, sizeof(SandTraits));
	uint32_t *keys = sand_alloc(2 * grains, sizeof(uint32_t));
	int32_t high[3];
	(void)seed;
	find_cells(sim, pass, high);
	run_pass(pass, morton_task);
	pass->sorted = sand_sort(sim->sorter, sim->grain_count, 30, sim->pool);
	run_pass(pass, reorder_task);
	for (size_t i = 0; i < grains; ++i)
	{
		keys[2 * i] = (uint32_t)(pass->sorted[i] >> 32);
		keys[2 * i + 1] = (uint32_t)pass->sorted[i];
	}
	const Block blocks[] = {{SAND_BIND_CONTROL, &sand->control, NULL, sizeof sand->control},
	                        {SAND_BIND_GRAINS, sim->grains, NULL, grains * sizeof(SandGrain)},
	                        {SAND_BIND_TRAITS, sim->traits, NULL, grains * sizeof(SandTraits)},
	                        {SAND_BIND_KEYS, keys, NULL, 2 * grains * sizeof(uint32_t)},
	                        {SAND_BIND_GRAINS_SPARE, NULL, given_grains, grains * sizeof(SandGrain)},
	                        {SAND_BIND_TRAITS_SPARE, NULL, given_traits, grains * sizeof(SandTraits)}};
	RUN_PLAIN("28_reorder.comp", NULL, sim->grain_count, blocks);
	int differing = DIFFER(sim->grains_spare, given_grains, sim->grain_count) +
	                DIFFER(sim->traits_spare, given_traits, sim->grain_count);
	sand_free(pass);
	sand_free(given_grains);
	sand_free(given_traits);
	sand_free(keys);
	return differing;
}

static int twin_28(void)
{
	return on_every_sand(reorder_as_in_c);
}

// Numbers of records and values: none, one, a group less one, a group, one more, several, three levels of sums.
static const int sort_counts[] = {0, 1, 15, 16, 17, 1023, 1024, 1025, 70001};
static const int scan_counts[] = {0, 1, 3, 4, 5, 1023, 1024, 1025, 70001, 1024 * 1024 + 1, 2500000};

// Running sums of counts[0 .. count), in place.
static uint32_t scan_in_c(uint32_t *values, int64_t count)
{
	uint32_t sum = 0;
	for (int64_t i = 0; i < count; ++i)
	{
		uint32_t value = values[i];
		values[i] = sum;
		sum += value;
	}
	return sum;
}

// Every group of 1,024 by itself, then the groups' sums added to it.
static int twin_27(void)
{
	int differing = 0;
	for (size_t c = 0; c < sizeof scan_counts / sizeof scan_counts[0]; ++c)
	{
		size_t count = (size_t)scan_counts[c], groups = (count + 1023) / 1024, before = 7, room = count + before + 3;
		uint32_t *values = sand_alloc(room, 4), *wanted = sand_alloc(room, 4);
		uint32_t *sums = sand_alloc(groups + 5, 4), *wanted_sums = sand_alloc(groups + 5, 4);
		for (size_t i = 0; i < room; ++i)
		{
			// Also sums that go round beyond 2^32.
			wanted[i] = values[i] = c % 2 == 0 ? (uint32_t)(sand_random(61, i) * 4294967295.0) : (uint32_t)(i % 5);
		}
		const Block blocks[] = {{SAND_BIND_SCAN, values, values, room * 4},
		                        {SAND_BIND_SCAN_SUMS, sums, sums, (groups + 5) * 4}};
		for (size_t g = 0; g < groups; ++g)
		{
			size_t end = 1024 * (g + 1) < count ? 1024 * (g + 1) : count;
			wanted_sums[3 + g] = scan_in_c(wanted + before + 1024 * g, (int64_t)(end - 1024 * g));
		}
		RUN_PASS("27_scan.comp", NULL, (int64_t)groups * 256, blocks, (uint32_t)count, (uint32_t)before, 3);
		differing += DIFFER(wanted, values, (int64_t)room) + DIFFER(wanted_sums, sums, (int64_t)groups + 5);
		memcpy(values, wanted, room * 4);
		memcpy(sums, wanted_sums, (groups + 5) * 4);
		for (size_t i = 0; i < count; ++i)
		{
			wanted[before + i] += wanted_sums[3 + i / 1024];
		}
		RUN_PASS("27_scan.comp", add_define, (int64_t)groups * 256, blocks, (uint32_t)count, (uint32_t)before, 3);
		differing += DIFFER(wanted, values, (int64_t)room) + DIFFER(wanted_sums, sums, (int64_t)groups + 5);
		sand_free(values);
		sand_free(wanted);
		sand_free(sums);
		sand_free(wanted_sums);
	}
	return differing;
}

// Digit by digit on the device, with the sums of C; at the end the order is that of sand_sort, ties as they came.
static int sort_as_in_c(bool is_counting)
{
	int differing = 0;
	for (size_t c = 0; c < sizeof sort_counts / sizeof sort_counts[0]; ++c)
	{
		size_t count = (size_t)sort_counts[c], groups = (count + 1023) / 1024;
		uint64_t *keys = sand_alloc(count + 1, 8), *spare = sand_alloc(count + 1, 8);
		uint32_t *counts = sand_alloc(16 * groups + 1, 4), *wanted_counts = sand_alloc(16 * groups + 1, 4);
		SandSorter *sorter = NULL;
		SandError err = {0};
		CHECK_STATUS(sand_sorter_create((int)count + 1, &sorter, &err), SAND_OK, &err);
		uint64_t *records = sand_sorter_records(sorter);
		for (size_t i = 0; i < count; ++i)
		{
			// Any key, few keys, one key.
			uint32_t any = (uint32_t)(sand_random(62, i) * 1073741824.0);
			uint32_t key = c % 3 == 0 ? any : c % 3 == 1 ? any % 3 << 20 : 12345;
			records[i] = (uint64_t)key << 32 | (uint32_t)i;
			keys[i] = (uint64_t)i << 32 | key; // key first
		}
		for (uint32_t low_bit = 0; low_bit < 32; low_bit += 4)
		{
			memset(wanted_counts, 0, (16 * groups + 1) * 4);
			for (size_t i = 0; i < count; ++i)
			{
				++wanted_counts[((uint32_t)keys[i] >> low_bit & 15) * groups + i / 1024];
			}
			const Block count_blocks[] = {{SAND_BIND_KEYS, keys, NULL, (count + 1) * 8},
			                              {SAND_BIND_SCAN, NULL, counts, (16 * groups + 1) * 4}};
			if (is_counting)
			{
				RUN_PASS("25_radix_count.comp", NULL, (int64_t)groups * 64, count_blocks, (uint32_t)count, low_bit);
				differing += DIFFER(wanted_counts, counts, (int64_t)(16 * groups + 1));
			}
			scan_in_c(wanted_counts, (int64_t)(16 * groups));
			const Block move_blocks[] = {{SAND_BIND_KEYS, keys, NULL, (count + 1) * 8},
			                             {SAND_BIND_KEYS_SPARE, NULL, spare, (count + 1) * 8},
			                             {SAND_BIND_SCAN, wanted_counts, NULL, (16 * groups + 1) * 4}};
			if (!is_counting)
			{
				RUN_PASS("26_radix_move.comp", NULL, (int64_t)groups * 64, move_blocks, (uint32_t)count, low_bit);
				memcpy(keys, spare, count * 8);
			}
		}
		const uint64_t *sorted = sand_sort(sorter, (int)count, 30, NULL);
		for (size_t i = 0; i < count; ++i)
		{
			spare[i] = sorted[i] << 32 | sorted[i] >> 32;
		}
		differing += is_counting ? 0 : DIFFER(spare, keys, (int64_t)count);
		sand_sorter_destroy(sorter);
		sand_free(keys);
		sand_free(spare);
		sand_free(counts);
		sand_free(wanted_counts);
	}
	return differing;
}

static int twin_25(void)
{
	return sort_as_in_c(true);
}

static int twin_26(void)
{
	return sort_as_in_c(false);
}

// ---- 30, 33, 34: spheres of the grains, margins ---------------------------------------------------------------------

// So many grains that groups are folded into rows: as many as one storage block holds.
static int twin_30(void)
{
	static const int counts[] = {1, GROUP, GROUP + 1, 1000, SAND_GROUP_LIMIT * GROUP + 1};
	const SandGlShape shapes[SHAPES] = {{.sphere_count = 1}, {.sphere_count = 4}, {.sphere_count = 3}};
	int differing = 0;
	for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c)
	{
		size_t count = (size_t)counts[c];
		SandTraits *traits = sand_alloc(count, sizeof(SandTraits));
		uint32_t *given = sand_alloc(count + 9, 4), *wanted = sand_alloc(count + 9, 4);
		SandControl control = {.grain_count = (int32_t)count};
		for (size_t i = 0; i < count; ++i)
		{
			traits[i].shape = (int32_t)(sand_random(63, i) * SHAPES);
			wanted[i] = (uint32_t)shapes[traits[i].shape].sphere_count;
		}
		const Block blocks[] = {{SAND_BIND_CONTROL, &control, NULL, sizeof control},
		                        {SAND_BIND_TRAITS, traits, NULL, count * sizeof(SandTraits)},
		                        {SAND_BIND_SHAPES, shapes, NULL, sizeof shapes},
		                        {SAND_BIND_SCAN, NULL, given, (count + 9) * 4}};
		RUN_PLAIN("30_counts.comp", NULL, (int64_t)count, blocks);
		differing += DIFFER(wanted, given, (int64_t)count + 9);
		sand_free(traits);
		sand_free(given);
		sand_free(wanted);
	}
	return differing;
}

// The CPU engine's grains in order, with their spheres, as build_list does it.
static void dress_in_c(SandSim *sim, bool is_sorting)
{
	if (is_sorting)
	{
		sort_grains(sim);
	}
	cut_chunks(sim);
	sand_pool_run(sim->pool, dress_task, sim, sim->chunk_count);
}

// Which cells the spheres of a class have: what fill_cells of list.c decides first.
static void set_cells(Sand *sand)
{
	for (int l = 0; l < sand->control.level_count; ++l)
	{
		const Level *level = &sand->sim->list->levels[l];
		sand->levels[l].margin = level->margin;
		sand->levels[l].cell_scale = level->cell_scale;
		sand->levels[l].entry_count = level->entry_count;
	}
}

static int choose_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	uint64_t index = 0;
	int differing = 0, partial_count = sand->control.partial_count;
	double *partials = sand_alloc(2 * (size_t)partial_count, sizeof(double));
	dress_in_c(sim, true);
	// Nobody moves; all slow; some fast; all beyond the widest margin.
	for (int round = 0; round < 5; ++round)
	{
		double most = round == 0 ? 0 : round == 1 ? 1e-300 : round == 2 ? 0.05 : round == 3 ? 2 : 200;
		SandControl control = sand->control;
		memset(partials, 0, 2 * (size_t)partial_count * sizeof(double));
		for (int i = 0; i < sim->grain_count; ++i)
		{
			double share = sand_random(seed, index++);
			sim->traits[i].reach_speed = (float)(most * share * share * share);
			double speed = sim->grains[i].flags & SAND_GRAIN_STILL ? 0 : (double)sim->traits[i].reach_speed;
			double *partial = &partials[partial_count + i / GROUP];
			*partial = fmax(*partial, speed);
			for (int k = 0; k < SAND_MARGIN_CHOICES; ++k)
			{
				control.faster[k] += speed > control.thresholds[k];
			}
		}
		SandControl before = control;
		SandGlLevel levels[SAND_LEVELS];
		const Block blocks[] = {{SAND_BIND_CONTROL, &control, &control, sizeof control},
		                        {SAND_BIND_PARTIALS, partials, NULL, 2 * (size_t)partial_count * sizeof(double)},
		                        {SAND_BIND_LEVELS, sand->levels, levels, sizeof levels}};
		RUN_PLAIN("33_margins.comp", NULL, 1, blocks);
		SandGrain *grains = copy_of(sim->grains, (size_t)sim->grain_count * sizeof(SandGrain));
		choose_margins(sim);
		fill_cells(sim->list, &sim->work, sim->sorter, sim->pool);
		set_cells(sand);
		for (int l = 0; l < SAND_LEVELS; ++l)
		{
			sand->levels[l].entry_count = 0; // counted by the pass behind
		}
		before.margin_fast = sim->work.margin_fast;
		before.fast_speed = control.fast_speed; // a local of choose_margins: seen by the flags below
		differing += differ_controls(&before, &control) + DIFFER(sand->levels, levels, SAND_LEVELS);
		const Block fast_blocks[] = {
		    {SAND_BIND_CONTROL, &control, NULL, sizeof control},
		    {SAND_BIND_GRAINS, grains, grains, (size_t)sim->grain_count * sizeof(SandGrain)},
		    {SAND_BIND_TRAITS, sim->traits, NULL, (size_t)sim->grain_count * sizeof(SandTraits)}};
		RUN_PLAIN("34_fast.comp", NULL, sim->grain_count, fast_blocks);
		differing += DIFFER(sim->grains, grains, sim->grain_count);
		sand_free(grains);
	}
	sand_free(partials);
	return differing;
}

static int twin_33_34(void)
{
	return on_every_sand(choose_as_in_c);
}

// ---- 35 to 48: the neighbour list -----------------------------------------------------------------------------------

// The CPU engine's list of this state; what comes before its cells is done when the twin begins.
static void list_in_c(Sand *sand)
{
	SandSim *sim = sand->sim;
	SandError err = {0};
	if (sand->control.sleep_speed > 0)
	{
		memset(sim->work.supports, 0, (size_t)sim->grain_count * sizeof(int32_t));
	}
	CHECK_STATUS(sand_list_build(sim->list, sim->kernel, &sim->work, sim->chunks, sim->chunk_count, sim->sphere_base,
	                             sim->sorter, sim->pool, &err),
	             SAND_OK, &err);
	set_cells(sand);
	sand->control.margin_fast = sim->work.margin_fast;
}

static void dress_for_list(Sand *sand)
{
	dress_in_c(sand->sim, true);
	choose_margins(sand->sim);
	fit_colliders(sand->sim);
	for (int i = 0; i < sand->sim->grain_count; ++i)
	{
		sand->places[sand->sim->traits[i].id] = i;
	}
}

// Buckets of the spheres as the shaders number them: class by class, also those that nobody is in.
static void find_buckets(const Sand *sand, uint32_t *buckets, uint32_t *counts)
{
	const SandSim *sim = sand->sim;
	memset(counts, 0, ((size_t)sand->bucket_count + 1) * sizeof(uint32_t));
	for (int s = 0; s < sim->sphere_count + sim->wall_count; ++s)
	{
		const SandSphere *sphere = &sim->spheres[s];
		buckets[s] = SAND_NO_BUCKET;
		if (!is_absent(&sim->work, sphere->grain))
		{
			int l = level_of_sphere(sim->list, &sim->work, sphere);
			const Level *level = &sim->list->levels[l];
			buckets[s] = sand->levels[l].first_bucket +
			             ((cell_of(level, sphere->x[0]) + cell_of(level, sphere->x[1]) * level->stride_y +
			               cell_of(level, sphere->x[2]) * level->stride_z) &
			              level->mask);
			++counts[buckets[s]];
		}
	}
}

static int fill_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	size_t total = (size_t)sim->sphere_count + (size_t)sim->wall_count, buckets = sand->bucket_count;
	uint32_t *of_spheres = sand_alloc(total, 4), *given_buckets = sand_alloc(total, 4);
	uint32_t *starts = sand_alloc(buckets + 1, 4), *given_starts = sand_alloc(buckets + 1, 4);
	int32_t *entries = sand_alloc(total, 4), *given_entries = sand_alloc(total, 4);
	SandGlLevel levels[SAND_LEVELS], cleared[SAND_LEVELS];
	(void)seed;
	dress_for_list(sand);
	fill_cells(sim->list, &sim->work, sim->sorter, sim->pool);
	set_cells(sand);
	find_buckets(sand, of_spheres, starts);
	memcpy(cleared, sand->levels, sizeof cleared);
	int32_t present = 0;
	for (int l = 0; l < SAND_LEVELS; ++l)
	{
		present += cleared[l].entry_count;
		cleared[l].entry_count = 0;
	}
	for (int32_t i = 0; i < present; ++i)
	{
		entries[i] = sim->list->entries[i].sphere;
	}
	const Block cell_blocks[] = {{SAND_BIND_CONTROL, &sand->control, NULL, sizeof sand->control},
	                             {SAND_BIND_GRAINS, sim->grains, NULL, (size_t)sim->grain_count * sizeof(SandGrain)},
	                             {SAND_BIND_SPHERES, sim->spheres, NULL, total * sizeof(SandSphere)},
	                             {SAND_BIND_LEVELS, cleared, levels, sizeof levels},
	                             {SAND_BIND_STARTS, NULL, given_starts, (buckets + 1) * 4},
	                             {SAND_BIND_BUCKETS, NULL, given_buckets, total * 4}};
	RUN_PLAIN("35_cells.comp", NULL, (int64_t)total, cell_blocks);
	int differing = DIFFER(of_spheres, given_buckets, (int64_t)total) + DIFFER(starts, given_starts, (int64_t)buckets) +
	                DIFFER(sand->levels, levels, SAND_LEVELS);
	scan_in_c(starts, (int64_t)buckets + 1);
	const Block fill_blocks[] = {{SAND_BIND_CONTROL, &sand->control, NULL, sizeof sand->control},
	                             {SAND_BIND_STARTS, starts, NULL, (buckets + 1) * 4},
	                             {SAND_BIND_ENTRIES, given_entries, given_entries, total * 4},
	                             {SAND_BIND_BUCKETS, of_spheres, NULL, total * 4},
	                             {SAND_BIND_CURSORS, NULL, NULL, buckets * 4}};
	RUN_PASS("36_fill.comp", NULL, (int64_t)total, fill_blocks, 0, (uint32_t)buckets);
	// In any order within a bucket: turned round, the next part has work to do.
	for (size_t b = 0; b < buckets; ++b)
	{
		for (uint32_t low = starts[b], high = starts[b + 1]; low + 1 < high; ++low)
		{
			int32_t entry = given_entries[low];
			given_entries[low] = given_entries[--high];
			given_entries[high] = entry;
		}
	}
	RUN_PASS("36_fill.comp", NULL, (int64_t)buckets, fill_blocks, 1, (uint32_t)buckets);
	differing += DIFFER(entries, given_entries, present);
	sand_free(of_spheres);
	sand_free(given_buckets);
	sand_free(starts);
	sand_free(given_starts);
	sand_free(entries);
	sand_free(given_entries);
	return differing;
}

static int twin_35_36(void)
{
	return on_every_sand(fill_as_in_c);
}

// More buckets than groups fit into a row, each with its few spheres.
static int twin_36_folded(void)
{
	const size_t buckets = (size_t)(SAND_GROUP_LIMIT + 1) * GROUP, total = buckets;
	uint32_t *starts = sand_alloc(buckets + 1, 4), *of_spheres = sand_alloc(total, 4);
	int32_t *entries = sand_alloc(total, 4), *given = sand_alloc(total, 4);
	SandControl control = {.sphere_count = (int32_t)total};
	for (size_t s = 0; s < total; ++s)
	{
		of_spheres[s] = (uint32_t)(buckets - 1 - s / 2);
		++starts[of_spheres[s]];
	}
	scan_in_c(starts, (int64_t)buckets + 1);
	for (size_t s = 0; s < total; ++s)
	{
		entries[starts[of_spheres[s]] + s % 2] = (int32_t)s;
	}
	const Block blocks[] = {{SAND_BIND_CONTROL, &control, NULL, sizeof control},
	                        {SAND_BIND_STARTS, starts, NULL, (buckets + 1) * 4},
	                        {SAND_BIND_ENTRIES, given, given, total * 4},
	                        {SAND_BIND_BUCKETS, of_spheres, NULL, total * 4},
	                        {SAND_BIND_CURSORS, NULL, NULL, buckets * 4}};
	RUN_PASS("36_fill.comp", NULL, (int64_t)total, blocks, 0, (uint32_t)buckets);
	RUN_PASS("36_fill.comp", NULL, (int64_t)buckets, blocks, 1, (uint32_t)buckets);
	int differing = DIFFER(entries, given, (int64_t)total);
	sand_free(starts);
	sand_free(of_spheres);
	sand_free(entries);
	sand_free(given);
	return differing;
}

static int compare_pairs(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(SandPair)) < 0 ? -1 : memcmp(a, b, sizeof(SandPair)) > 0;
}

// The pairs of the CPU engine's list as the device has them: by their lower sphere; within one, by law and inner before
// outer, for nothing depends on the order across those. Returns how many.
static int64_t pairs_of(const Sand *sand, SandGlPair **pairs_out)
{
	const SandSim *sim = sand->sim;
	int64_t count = 0, at = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		count += sim->chunks[c].pair_count;
	}
	*pairs_out = sand_alloc((size_t)count + 1, sizeof(SandGlPair));
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		const SandChunk *chunk = &sim->chunks[c];
		for (int s = 0; s < chunk->section_count; ++s)
		{
			const SandSection *section = &chunk->sections[s];
			for (int i = section->first; i < section->first + section->count; ++i)
			{
				int stretch = sim->grains[sim->spheres[chunk->pairs[i].a].grain].first_sphere / sim->chunk_spheres;
				(*pairs_out)[at++] =
				    (SandGlPair){chunk->pairs[i].a, chunk->pairs[i].b, section->law, 2 * stretch + section->is_outer};
			}
		}
	}
	CHECK_INT(at, count);
	return count;
}

// Into order of lower sphere, then outer, then law, otherwise as they are.
static void order_device_pairs(SandGlPair *pairs, int64_t count)
{
	SandGlPair *spare = copy_of(pairs, (size_t)count * sizeof(SandGlPair));
	// Three stable passes by counting: few keys each.
	for (int pass = 0; pass < 3; ++pass)
	{
		int64_t most = 0;
		for (int64_t i = 0; i < count; ++i)
		{
			int64_t key = pass == 0 ? pairs[i].law : pass == 1 ? pairs[i].chunk & 1 : pairs[i].a;
			most = key > most ? key : most;
		}
		int64_t *starts = sand_alloc((size_t)most + 2, sizeof(int64_t));
		for (int is_moving = 0; is_moving < 2; ++is_moving)
		{
			for (int64_t i = 0; i < count; ++i)
			{
				const SandGlPair *pair = is_moving ? &spare[i] : &pairs[i];
				int64_t key = pass == 0 ? pair->law : pass == 1 ? pair->chunk & 1 : pair->a;
				if (is_moving)
				{
					pairs[starts[key]++] = *pair;
				}
				else
				{
					++starts[key + 1];
				}
			}
			for (int64_t k = 0; k < most && !is_moving; ++k)
			{
				starts[k + 1] += starts[k];
			}
			if (!is_moving)
			{
				memcpy(spare, pairs, (size_t)count * sizeof(SandGlPair));
			}
		}
		sand_free(starts);
	}
	sand_free(spare);
}

static int search_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	size_t total = (size_t)sim->sphere_count + (size_t)sim->wall_count, spheres = (size_t)sim->sphere_count;
	size_t grains = (size_t)sim->grain_count, buckets = sand->bucket_count;
	(void)seed;
	dress_for_list(sand);
	SandTraits *traits = copy_of(sim->traits, grains * sizeof(SandTraits));
	list_in_c(sand);
	uint32_t *of_spheres = sand_alloc(total, 4), *starts = sand_alloc(buckets + 1, 4);
	int32_t *entries = sand_alloc(total, 4);
	find_buckets(sand, of_spheres, starts);
	scan_in_c(starts, (int64_t)buckets + 1);
	for (size_t i = 0; i < starts[buckets]; ++i)
	{
		entries[i] = sim->list->entries[i].sphere;
	}
	SandGlPair *pairs = NULL;
	int64_t count = pairs_of(sand, &pairs), watch_count = 0;
	order_device_pairs(pairs, count);
	uint32_t *firsts = sand_alloc(spheres + 1, 4), *given_firsts = sand_alloc(spheres + 1, 4);
	int32_t *supports = sand_alloc(grains, 4);
	for (int64_t i = 0; i < count; ++i)
	{
		++firsts[pairs[i].a];
	}
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		watch_count += sim->chunks[c].watch_count;
	}
	SandControl control = sand->control;
	SandPair *watches = sand_alloc((size_t)watch_count + 1, sizeof(SandPair));
	SandPair *given_watches = sand_alloc((size_t)watch_count + 1, sizeof(SandPair));
	SandGlPair *given_pairs = sand_alloc((size_t)count + 1, sizeof(SandGlPair));
	Block blocks[] = {{SAND_BIND_CONTROL, &control, &control, sizeof control},
	                  {SAND_BIND_GRAINS, sim->grains, NULL, grains * sizeof(SandGrain)},
	                  {SAND_BIND_TRAITS, traits, NULL, grains * sizeof(SandTraits)},
	                  {SAND_BIND_SPHERES, sim->spheres, NULL, total * sizeof(SandSphere)},
	                  {SAND_BIND_LEVELS, sand->levels, NULL, sizeof sand->levels},
	                  {SAND_BIND_STARTS, starts, NULL, (buckets + 1) * 4},
	                  {SAND_BIND_ENTRIES, entries, NULL, total * 4},
	                  {SAND_BIND_FIRSTS, NULL, given_firsts, (spheres + 1) * 4},
	                  {SAND_BIND_SUPPORTS, NULL, supports, grains * 4},
	                  {SAND_BIND_PAIRS, NULL, given_pairs, (size_t)count * sizeof(SandGlPair)},
	                  {SAND_BIND_WATCHES, NULL, given_watches, (size_t)watch_count * sizeof(SandPair)},
	                  {SAND_BIND_LAW_OF, sand->scene->law_of, NULL,
	                   (size_t)(sand->scene->material_count * sand->scene->material_count) * 4}};
	RUN_PLAIN("38_search.comp", NULL, (int64_t)spheres, blocks);
	int differing = DIFFER(firsts, given_firsts, (int64_t)spheres);
	if (control.sleep_speed > 0)
	{
		differing += DIFFER(sim->work.supports, supports, (int64_t)grains);
	}
	differing += control.watch_count != watch_count;
	control.watch_count = 0;
	scan_in_c(firsts, (int64_t)spheres + 1);
	blocks[7] = (Block){SAND_BIND_FIRSTS, firsts, NULL, (spheres + 1) * 4};
	RUN_PLAIN("38_search.comp", write_define, (int64_t)spheres, blocks);
	for (int64_t i = 0; i < count; ++i)
	{
		bool is_there = given_pairs[i].a >= 0 && given_pairs[i].a < (int32_t)spheres && given_pairs[i].law >= 0 &&
		                given_pairs[i].law < control.law_count;
		differing += !is_there;
		given_pairs[i] = is_there ? given_pairs[i] : (SandGlPair){0};
	}
	order_device_pairs(given_pairs, count);
	differing += DIFFER(pairs, given_pairs, count);
	int64_t at = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		for (int k = 0; k < sim->chunks[c].watch_count; ++k)
		{
			watches[at++] = sim->chunks[c].watch_pairs[k];
		}
	}
	qsort(watches, (size_t)watch_count, sizeof(SandPair), compare_pairs);
	qsort(given_watches, (size_t)watch_count, sizeof(SandPair), compare_pairs);
	differing += DIFFER(watches, given_watches, watch_count) + (control.watch_count != watch_count);
	sand_free(traits);
	sand_free(of_spheres);
	sand_free(starts);
	sand_free(entries);
	sand_free(pairs);
	sand_free(firsts);
	sand_free(given_firsts);
	sand_free(supports);
	sand_free(watches);
	sand_free(given_watches);
	sand_free(given_pairs);
	return differing;
}

static int twin_38(void)
{
	return on_every_sand(search_as_in_c);
}

// Numbers of the pairs that each sphere is the higher one of, ascending; walls gather nothing.
static int gather_backs(const SandGlPair *pairs, int32_t count, int32_t spheres)
{
	SandControl control = {.pair_count = count, .sphere_count = spheres};
	int32_t *firsts = sand_alloc((size_t)spheres + 1, 4), *given_firsts = sand_alloc((size_t)spheres + 1, 4);
	int32_t *backs = sand_alloc((size_t)count + 1, 4), *given = sand_alloc((size_t)count + 1, 4);
	int32_t *used = sand_alloc((size_t)spheres + 1, 4);
	for (int32_t i = 0; i < count; ++i)
	{
		if (pairs[i].b < spheres)
		{
			++firsts[pairs[i].b];
		}
	}
	Block blocks[] = {{SAND_BIND_CONTROL, &control, NULL, sizeof control},
	                  {SAND_BIND_PAIRS, pairs, NULL, (size_t)count * sizeof(SandGlPair)},
	                  {SAND_BIND_BACK_FIRSTS, NULL, given_firsts, ((size_t)spheres + 1) * 4},
	                  {SAND_BIND_BACKS, given, given, ((size_t)count + 1) * 4},
	                  {SAND_BIND_CURSORS, NULL, NULL, ((size_t)spheres + 1) * 4}};
	RUN_PASS("39_backs.comp", NULL, count, blocks, 0);
	int differing = DIFFER(firsts, given_firsts, spheres + 1);
	int32_t gathered = (int32_t)scan_in_c((uint32_t *)firsts, (int64_t)spheres + 1);
	for (int32_t i = 0; i < count; ++i)
	{
		if (pairs[i].b < spheres)
		{
			backs[firsts[pairs[i].b] + used[pairs[i].b]++] = i;
		}
	}
	blocks[2] = (Block){SAND_BIND_BACK_FIRSTS, firsts, NULL, ((size_t)spheres + 1) * 4};
	RUN_PASS("39_backs.comp", NULL, count, blocks, 1);
	// Turned round within each sphere, so that the next part has work to do.
	for (int32_t s = 0; s < spheres; ++s)
	{
		for (int32_t low = firsts[s], high = firsts[s + 1]; low + 1 < high; ++low)
		{
			int32_t back = given[low];
			given[low] = given[--high];
			given[high] = back;
		}
	}
	RUN_PASS("39_backs.comp", NULL, spheres, blocks, 2);
	differing += DIFFER(backs, given, gathered);
	sand_free(firsts);
	sand_free(given_firsts);
	sand_free(backs);
	sand_free(given);
	sand_free(used);
	return differing;
}

static int gather_as_in_c(Sand *sand, uint64_t seed)
{
	SandGlPair *pairs = NULL;
	(void)seed;
	dress_for_list(sand);
	list_in_c(sand);
	int64_t count = pairs_of(sand, &pairs);
	order_device_pairs(pairs, count);
	int differing = gather_backs(pairs, (int32_t)count, sand->sim->sphere_count);
	sand_free(pairs);
	return differing;
}

// On lists; without a pair; and on more pairs and spheres than groups fit into a row.
static int twin_39(void)
{
	const int32_t spheres = (SAND_GROUP_LIMIT + 1) * GROUP;
	SandGlPair *pairs = sand_alloc((size_t)spheres, sizeof(SandGlPair));
	for (int32_t i = 0; i < spheres; ++i)
	{
		// The last third are walls.
		pairs[i] = (SandGlPair){.a = i / 2, .b = (int32_t)(((int64_t)i * 48271) % (spheres / 2 * 3))};
		pairs[i].b = pairs[i].b < spheres ? pairs[i].b : spheres;
	}
	int differing =
	    on_every_sand(gather_as_in_c) + gather_backs(pairs, 0, 5) + gather_backs(pairs, spheres / 4, spheres);
	sand_free(pairs);
	return differing;
}

static int touch_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	size_t spheres = (size_t)sim->sphere_count, total = spheres + (size_t)sim->wall_count;
	size_t grains = (size_t)sim->grain_count;
	int64_t count = 0;
	(void)seed;
	if (sand->scene->obstacle_count == 0)
	{
		return 0;
	}
	dress_for_list(sand);
	list_in_c(sand);
	uint32_t *firsts = sand_alloc(spheres + 1, 4), *given_firsts = sand_alloc(spheres + 1, 4);
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		count += sim->chunks[c].obstacle_pair_count;
	}
	SandGlTouch *touches = sand_alloc((size_t)count + 1, sizeof(SandGlTouch));
	SandGlTouch *given = sand_alloc((size_t)count + 1, sizeof(SandGlTouch));
	count = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		const SandChunk *chunk = &sim->chunks[c];
		for (int i = 0; i < chunk->obstacle_pair_count; ++i)
		{
			touches[count++] = (SandGlTouch){.code = chunk->obstacle_pairs[i].b,
			                                 .law = chunk->obstacle_laws[i],
			                                 .sphere = chunk->obstacle_pairs[i].a};
			++firsts[chunk->obstacle_pairs[i].a];
		}
	}
	CHECK(bench.is_quiet || sim->grain_count < 2 || count > 0);
	Block blocks[] = {
	    {SAND_BIND_CONTROL, &sand->control, NULL, sizeof sand->control},
	    {SAND_BIND_GRAINS, sim->grains, NULL, grains * sizeof(SandGrain)},
	    {SAND_BIND_TRAITS, sim->traits, NULL, grains * sizeof(SandTraits)},
	    {SAND_BIND_SPHERES, sim->spheres, NULL, total * sizeof(SandSphere)},
	    {SAND_BIND_LAW_OF, sand->scene->law_of, NULL,
	     (size_t)(sand->scene->material_count * sand->scene->material_count) * 4},
	    {SAND_BIND_OBSTACLES, sand->scene->obstacles, NULL, (size_t)sand->scene->obstacle_count * sizeof(SandObstacle)},
	    {SAND_BIND_TOUCHES, NULL, given, ((size_t)count + 1) * sizeof(SandGlTouch)},
	    {SAND_BIND_TOUCH_FIRSTS, NULL, given_firsts, (spheres + 1) * 4}};
	RUN_PLAIN("41_touches.comp", NULL, (int64_t)spheres, blocks);
	int differing = DIFFER(firsts, given_firsts, (int64_t)spheres);
	scan_in_c(firsts, (int64_t)spheres + 1);
	blocks[7] = (Block){SAND_BIND_TOUCH_FIRSTS, firsts, NULL, (spheres + 1) * 4};
	RUN_PLAIN("41_touches.comp", write_define, (int64_t)spheres, blocks);
	differing += DIFFER(touches, given, count + 1);
	sand_free(firsts);
	sand_free(given_firsts);
	sand_free(touches);
	sand_free(given);
	return differing;
}

static int twin_41(void)
{
	return on_every_sand(touch_as_in_c);
}

static int hold_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	size_t grains = (size_t)sim->grain_count;
	uint64_t index = 0;
	int differing = 0;
	if (!(sand->control.sleep_speed > 0))
	{
		return 0;
	}
	dress_for_list(sand);
	list_in_c(sand);
	SandTraits *given = sand_alloc(grains, sizeof(SandTraits));
	// With no one to wake, with some.
	for (int round = 0; round < 2; ++round)
	{
		int32_t needs_list = 0;
		for (int i = 0; i < sim->grain_count; ++i)
		{
			sim->work.supports[i] = pick(seed, &index, 6);
			sim->traits[i].quiet_steps =
			    round == 0 ? pick(seed, &index, sim->work.supports[i] + 1) : pick(seed, &index, 8);
			sim->traits[i].is_woken = round == 1 && pick(seed, &index, 10) == 0;
		}
		SandControl control = sand->control;
		const Block blocks[] = {{SAND_BIND_CONTROL, &control, &control, sizeof control},
		                        {SAND_BIND_GRAINS, sim->grains, NULL, grains * sizeof(SandGrain)},
		                        {SAND_BIND_TRAITS, sim->traits, given, grains * sizeof(SandTraits)},
		                        {SAND_BIND_SUPPORTS, sim->work.supports, NULL, grains * 4}};
		RUN_PLAIN("48_supports.comp", NULL, sim->grain_count, blocks);
		for (int c = 0; c < sim->chunk_count; ++c)
		{
			sim->chunks[c].needs_list = 0;
			support_task(sim, c);
			needs_list |= sim->chunks[c].needs_list;
		}
		differing += DIFFER(sim->traits, given, sim->grain_count) + (needs_list != control.needs_list);
	}
	sand_free(given);
	return differing;
}

static int twin_48(void)
{
	return on_every_sand(hold_as_in_c);
}

// ---- 20 and 46: springs ---------------------------------------------------------------------------------------------

// What a list remembers, in the device's arrays: pairs in the order of the chunks, touches and triangles by sphere.
typedef struct Memory
{
	int64_t pair_count, touch_count, near_count;
	SandGlPair *pairs;
	float *stretches; // four per pair
	SandGlTouch *touches;
	SandGlNear *nears;
	int32_t *touch_firsts, *near_firsts;
	int32_t *bases; // and who was at rest
} Memory;

static void free_memory(Memory *m)
{
	sand_free(m->pairs);
	sand_free(m->stretches);
	sand_free(m->touches);
	sand_free(m->nears);
	sand_free(m->touch_firsts);
	sand_free(m->near_firsts);
	sand_free(m->bases);
}

static Memory memory_of(const Sand *sand)
{
	const SandSim *sim = sand->sim;
	size_t spheres = (size_t)sim->sphere_count, total = spheres + (size_t)sim->wall_count;
	size_t grains = (size_t)sim->grain_count;
	Memory m = {.pair_count = pairs_of(sand, &m.pairs)};
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		m.touch_count += sim->chunks[c].obstacle_pair_count;
		m.near_count += sim->chunks[c].near_count;
	}
	m.stretches = sand_alloc(4 * (size_t)m.pair_count + 4, sizeof(float));
	m.touches = sand_alloc((size_t)m.touch_count + 1, sizeof(SandGlTouch));
	m.nears = sand_alloc((size_t)m.near_count + 1, sizeof(SandGlNear));
	m.touch_firsts = sand_alloc(spheres + 1, 4);
	m.near_firsts = sand_alloc(spheres + 1, 4);
	m.bases = sand_alloc(grains + total, 4);
	memcpy(m.bases, sim->sphere_base, grains * 4);
	int64_t pair = 0, touch = 0, near = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		const SandChunk *chunk = &sim->chunks[c];
		for (int i = 0; i < chunk->pair_count; ++i)
		{
			memcpy(m.stretches + 4 * pair++, chunk->history[i].stretch, 3 * sizeof(float));
		}
		for (int i = 0; i < chunk->obstacle_pair_count; ++i)
		{
			SandGlTouch *to = &m.touches[touch++];
			*to = (SandGlTouch){.code = chunk->obstacle_pairs[i].b,
			                    .law = chunk->obstacle_laws[i],
			                    .sphere = chunk->obstacle_pairs[i].a};
			memcpy(to->stretch, chunk->obstacle_history[i].stretch, sizeof(to->stretch));
			++m.touch_firsts[chunk->obstacle_pairs[i].a];
		}
		for (int g = 0; g < chunk->group_count; ++g)
		{
			const SandGroup *group = &chunk->groups[g];
			for (int i = group->first; i < group->first + group->count; ++i)
			{
				SandGlNear *to = &m.nears[near++];
				*to = (SandGlNear){.triangle = chunk->near_triangles[i],
				                   .collider = group->collider,
				                   .number = -1 - triangle_id(sim->list, group->collider, chunk->near_triangles[i]),
				                   .law = group->law,
				                   .side = chunk->near_sides[i]};
				memcpy(to->stretch, chunk->near_history[i].stretch, sizeof(to->stretch));
				++m.near_firsts[group->sphere];
			}
		}
	}
	scan_in_c((uint32_t *)m.touch_firsts, (int64_t)spheres + 1);
	scan_in_c((uint32_t *)m.near_firsts, (int64_t)spheres + 1);
	for (size_t i = 0; i < total; ++i)
	{
		m.bases[grains + i] = sim->list->is_rested[i];
	}
	return m;
}

// Saved springs as the device has them: numbers of the first of each sphere, and one more.
static SandGlSpring *springs_of(const Sand *sand, int64_t *count_out, int32_t **firsts_out)
{
	const SandList *list = sand->sim->list;
	size_t total = (size_t)sand->sim->sphere_count + (size_t)sand->sim->wall_count;
	int64_t count = sand_list_spring_count(list);
	SandSpring *from = sand_alloc((size_t)count + 1, sizeof(SandSpring));
	SandGlSpring *springs = sand_alloc((size_t)count + 1, sizeof(SandGlSpring));
	*firsts_out = sand_alloc(total + 1, 4);
	sand_list_read_springs(list, from);
	for (int64_t i = 0; i < count; ++i)
	{
		springs[i] = (SandGlSpring){.other = from[i].other, .side = from[i].side, .low = from[i].low};
		memcpy(springs[i].stretch, from[i].stretch, sizeof(springs[i].stretch));
		++(*firsts_out)[from[i].low];
	}
	scan_in_c((uint32_t *)*firsts_out, (int64_t)total + 1);
	sand_free(from);
	*count_out = count;
	return springs;
}

static int compare_springs(const void *a, const void *b)
{
	const SandGlSpring *x = a, *y = b;
	return x->low != y->low ? (x->low < y->low ? -1 : 1) : x->other != y->other ? (x->other < y->other ? -1 : 1) : 0;
}

// Some springs of a list stretched, denormal ones too, some sides known.
static void stretch(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	uint64_t index = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		SandChunk *chunk = &sim->chunks[c];
		for (int i = 0; i < chunk->pair_count + chunk->obstacle_pair_count + chunk->near_count; ++i)
		{
			int own = i - chunk->pair_count, near = own - chunk->obstacle_pair_count;
			float *to = own < 0    ? chunk->history[i].stretch
			            : near < 0 ? chunk->obstacle_history[own].stretch
			                       : chunk->near_history[near].stretch;
			int kind = pick(seed, &index, 4);
			for (int k = 0; k < 3; ++k)
			{
				to[k] = kind == 0   ? 0
				        : kind == 1 ? (float)(k == 1) * 1e-42f
				                    : (float)between(seed, &index, -1e-3, 1e-3);
			}
			if (near >= 0)
			{
				chunk->near_sides[near] = (float)(pick(seed, &index, 3) - 1);
			}
		}
	}
}

// 20 saves what a list has, beside what rested through it; 46 finds it again in the next list.
static int remember_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	size_t spheres = (size_t)sim->sphere_count, total = spheres + (size_t)sim->wall_count;
	size_t grains = (size_t)sim->grain_count;
	uint64_t index = 0;
	int differing = 0;
	SandError err = {0};
	if (!sim->list->desc.has_history)
	{
		return 0;
	}
	dress_for_list(sand);
	list_in_c(sand);
	for (int round = 0; round < 2; ++round)
	{
		stretch(sand, seed + (uint64_t)round);
		Memory m = memory_of(sand);
		int32_t *old_firsts = NULL, *firsts = NULL;
		int64_t old_count = 0, count = 0;
		SandGlSpring *old = springs_of(sand, &old_count, &old_firsts);
		SandControl control = sand->control;
		control.pair_count = (int32_t)m.pair_count;
		CHECK_STATUS(sand_list_save_history(sim->list, &sim->work, sim->chunks, sim->chunk_count, sim->sphere_base,
		                                    sim->pool, &err),
		             SAND_OK, &err);
		SandGlSpring *springs = springs_of(sand, &count, &firsts);
		CHECK(bench.is_quiet || count > 0);
		SandGlSpring *given = sand_alloc((size_t)count + 1, sizeof(SandGlSpring));
		int32_t *counts = sand_alloc(total + 1, 4), *given_counts = sand_alloc(total + 1, 4);
		int32_t *cursors = sand_alloc(total, 4);
		for (size_t i = 0; i < total; ++i)
		{
			counts[i] = firsts[i + 1] - firsts[i];
		}
		for (int is_writing = 0; is_writing < 2; ++is_writing)
		{
			for (uint32_t part = 0; part < (control.sleep_speed > 0 ? 3u : 2u); ++part)
			{
				int64_t invocations = part == 0 ? m.pair_count : part == 1 ? (int64_t)spheres : (int64_t)total;
				const Block blocks[] = {
				    {SAND_BIND_CONTROL, &control, NULL, sizeof control},
				    {SAND_BIND_GRAINS, sim->grains, NULL, grains * sizeof(SandGrain)},
				    {SAND_BIND_TRAITS, sim->traits, NULL, grains * sizeof(SandTraits)},
				    {SAND_BIND_SPHERES, sim->spheres, NULL, total * sizeof(SandSphere)},
				    {SAND_BIND_PAIRS, m.pairs, NULL, (size_t)m.pair_count * sizeof(SandGlPair)},
				    {SAND_BIND_STRETCHES, m.stretches, NULL, (size_t)m.pair_count * 16},
				    {SAND_BIND_SPRINGS, old, NULL, (size_t)old_count * sizeof(SandGlSpring)},
				    {SAND_BIND_SPRING_FIRSTS, old_firsts, NULL, (total + 1) * 4},
				    {SAND_BIND_BASES, m.bases, NULL, (grains + total) * 4},
				    {SAND_BIND_TOUCHES, m.touches, NULL, (size_t)m.touch_count * sizeof(SandGlTouch)},
				    {SAND_BIND_TOUCH_FIRSTS, m.touch_firsts, NULL, (spheres + 1) * 4},
				    {SAND_BIND_NEARS, m.nears, NULL, (size_t)m.near_count * sizeof(SandGlNear)},
				    {SAND_BIND_NEAR_FIRSTS, m.near_firsts, NULL, (spheres + 1) * 4},
				    {SAND_BIND_CURSORS, cursors, cursors, total * 4},
				    {SAND_BIND_NEW_SPRINGS, given, given, ((size_t)count + 1) * sizeof(SandGlSpring)},
				    {SAND_BIND_NEW_FIRSTS, is_writing ? firsts : given_counts, is_writing ? NULL : given_counts,
				     (total + 1) * 4}};
				RUN_PASS("20_springs.comp", is_writing ? write_define : NULL, invocations, blocks, part);
			}
		}
		qsort(given, (size_t)count, sizeof(SandGlSpring), compare_springs);
		qsort(springs, (size_t)count, sizeof(SandGlSpring), compare_springs);
		differing += DIFFER(counts, given_counts, (int64_t)total) + DIFFER(springs, given, count);
		free_memory(&m);

		// Some fall asleep, some wake, all go a little: another list.
		for (int i = 0; i < sim->grain_count; ++i)
		{
			bool is_changing = control.sleep_speed > 0 && pick(seed, &index, 4) == 0;
			sim->grains[i].flags ^= is_changing && !(sim->grains[i].flags & SAND_GRAIN_ABSENT) ? SAND_GRAIN_ASLEEP : 0;
			for (int k = 0; k < 3; ++k)
			{
				sim->grains[i].position[k] += between(seed, &index, -1e-4, 1e-4);
			}
		}
		dress_for_list(sand);
		list_in_c(sand);
		m = memory_of(sand);
		control.pair_count = (int32_t)m.pair_count;
		Memory blank = memory_of(sand);
		memset(blank.stretches, 0xff, (size_t)m.pair_count * 16);
		for (int64_t i = 0; i < m.touch_count; ++i)
		{
			memset(blank.touches[i].stretch, 0xff, sizeof(blank.touches[i].stretch));
		}
		for (int64_t i = 0; i < m.near_count; ++i)
		{
			memset(blank.nears[i].stretch, 0xff, sizeof(blank.nears[i].stretch));
			blank.nears[i].side = 7;
		}
		memset(blank.bases + grains, 0xff, spheres * 4);
		for (uint32_t part = 0; part < 2; ++part)
		{
			const Block blocks[] = {
			    {SAND_BIND_CONTROL, &control, NULL, sizeof control},
			    {SAND_BIND_GRAINS, sim->grains, NULL, grains * sizeof(SandGrain)},
			    {SAND_BIND_TRAITS, sim->traits, NULL, grains * sizeof(SandTraits)},
			    {SAND_BIND_SPHERES, sim->spheres, NULL, total * sizeof(SandSphere)},
			    {SAND_BIND_PAIRS, m.pairs, NULL, (size_t)m.pair_count * sizeof(SandGlPair)},
			    {SAND_BIND_STRETCHES, blank.stretches, blank.stretches, (size_t)m.pair_count * 16},
			    {SAND_BIND_SPRINGS, springs, NULL, (size_t)count * sizeof(SandGlSpring)},
			    {SAND_BIND_SPRING_FIRSTS, firsts, NULL, (total + 1) * 4},
			    {SAND_BIND_BASES, blank.bases, blank.bases, (grains + total) * 4},
			    {SAND_BIND_TOUCHES, blank.touches, blank.touches, (size_t)m.touch_count * sizeof(SandGlTouch)},
			    {SAND_BIND_TOUCH_FIRSTS, m.touch_firsts, NULL, (spheres + 1) * 4},
			    {SAND_BIND_NEARS, blank.nears, blank.nears, (size_t)m.near_count * sizeof(SandGlNear)},
			    {SAND_BIND_NEAR_FIRSTS, m.near_firsts, NULL, (spheres + 1) * 4}};
			RUN_PASS("46_restore.comp", NULL, part == 0 ? m.pair_count : (int64_t)spheres, blocks, part);
		}
		differing += differ("stretches", m.stretches, blank.stretches, 16, m.pair_count) +
		             differ("touches", m.touches, blank.touches, sizeof(SandGlTouch), m.touch_count) +
		             differ("nears", m.nears, blank.nears, sizeof(SandGlNear), m.near_count) +
		             differ("at rest", m.bases, blank.bases, 4, (int64_t)(grains + total));
		free_memory(&m);
		free_memory(&blank);
		sand_free(old);
		sand_free(old_firsts);
		sand_free(springs);
		sand_free(firsts);
		sand_free(given);
		sand_free(counts);
		sand_free(given_counts);
		sand_free(cursors);
	}
	return differing;
}

static int twin_20_46(void)
{
	return on_every_sand(remember_as_in_c);
}

// ---- the suite ------------------------------------------------------------------------------------------------------

#define PASS_TEST(name, twin)                                                                                          \
	static void name(void)                                                                                             \
	{                                                                                                                  \
		CHECK_INT(twin(), 0);                                                                                          \
		CHECK_INT(sand_gpu_error_count(bench.gpu), 0);                                                                 \
	}

// ---- 31 and 62: spheres of the grains -------------------------------------------------------------------------------

static int dress_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	size_t grains = (size_t)sim->grain_count, total = (size_t)sim->sphere_count + (size_t)sim->wall_count;
	size_t groups = (size_t)sand->control.partial_count;
	(void)seed;
	sort_grains(sim);
	SandGrain *given_grains = copy_of(sim->grains, grains * sizeof(SandGrain));
	SandTraits *given_traits = copy_of(sim->traits, grains * sizeof(SandTraits));
	SandSphere *given_spheres = copy_of(sim->spheres, total * sizeof(SandSphere));
	double *given_speeds = sand_alloc(grains, sizeof(double)), *speeds = sand_alloc(grains, sizeof(double));
	double *given_partials = sand_alloc(2 * groups, sizeof(double)), *partials = sand_alloc(2 * groups, sizeof(double));
	int32_t *given_places = sand_alloc(grains, 4), *places = sand_alloc(grains, 4);
	uint32_t *firsts = sand_alloc(grains, 4);
	dress_in_c(sim, false);
	SandControl control = sand->control, wanted = sand->control;
	for (int i = 0; i < sim->grain_count; ++i)
	{
		const SandGrain *grain = &sim->grains[i];
		const double *v = grain->velocity;
		double square = (v[0] * v[0] + v[2] * v[2]) + (v[1] * v[1] + 0.0);
		double point = grain->flags & SAND_GRAIN_STILL ? 0 : (double)sim->traits[i].reach_speed;
		firsts[i] = (uint32_t)grain->first_sphere;
		places[sim->traits[i].id] = i;
		speeds[i] = square;
		partials[i / GROUP] = fmax(partials[i / GROUP], square);
		partials[groups + (size_t)i / GROUP] = fmax(partials[groups + (size_t)i / GROUP], point);
		for (int k = 0; k < SAND_MARGIN_CHOICES; ++k)
		{
			wanted.faster[k] += point > wanted.thresholds[k];
		}
	}
	double most = 0;
	for (int i = 0; i < sim->grain_count; ++i)
	{
		most = fmax(most, speeds[i]);
	}
	CHECK(sqrt(most) == fastest(sim)); // as the kernel finds it
	const Block blocks[] = {{SAND_BIND_CONTROL, &control, &control, sizeof control},
	                        {SAND_BIND_GRAINS, given_grains, given_grains, grains * sizeof(SandGrain)},
	                        {SAND_BIND_TRAITS, given_traits, given_traits, grains * sizeof(SandTraits)},
	                        {SAND_BIND_SPHERES, given_spheres, given_spheres, total * sizeof(SandSphere)},
	                        {SAND_BIND_SHAPES, sand->shapes, NULL, sizeof sand->shapes},
	                        {SAND_BIND_OFFSETS, sand->offsets, NULL, sizeof sand->offsets},
	                        {SAND_BIND_PARTIALS, NULL, given_partials, 2 * groups * sizeof(double)},
	                        {SAND_BIND_SCAN, firsts, NULL, grains * 4},
	                        {SAND_BIND_PLACES, NULL, given_places, grains * 4},
	                        {SAND_BIND_SPEEDS, NULL, given_speeds, grains * sizeof(double)}};
	RUN_PLAIN("31_dress.comp", NULL, sim->grain_count, blocks);
	int differing = DIFFER(sim->grains, given_grains, sim->grain_count) +
	                DIFFER(sim->traits, given_traits, sim->grain_count) +
	                DIFFER(places, given_places, sim->grain_count) + DIFFER(speeds, given_speeds, sim->grain_count) +
	                DIFFER(partials, given_partials, 2 * (int64_t)groups) + differ_controls(&wanted, &control);
	for (size_t s = 0; s < total; ++s)
	{
		differing +=
		    given_spheres[s].radius != sim->spheres[s].radius || given_spheres[s].grain != sim->spheres[s].grain;
	}
	RUN_PLAIN("62_place.comp", listing_define, sim->sphere_count, blocks);
	differing += DIFFER(sim->spheres, given_spheres, (int64_t)total);
	sand_free(given_grains);
	sand_free(given_traits);
	sand_free(given_spheres);
	sand_free(given_speeds);
	sand_free(speeds);
	sand_free(given_partials);
	sand_free(partials);
	sand_free(given_places);
	sand_free(places);
	sand_free(firsts);
	return differing;
}

static int twin_31_62(void)
{
	return on_every_sand(dress_as_in_c);
}

// ---- 44, 50, 52, 57, 60: a step -------------------------------------------------------------------------------------

// Pairs alone: what obstacles and meshes add has twins of its own.
static void forget_surfaces(SandSim *sim)
{
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		sim->chunks[c].obstacle_pair_count = sim->chunks[c].group_count = sim->chunks[c].near_count = 0;
	}
}

// One step of the CPU engine, its parts beside those of the device: sleepers watched, forces of pairs, their sums,
// moves.
static int step_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	size_t grains = (size_t)sim->grain_count, spheres = (size_t)sim->sphere_count;
	size_t total = spheres + (size_t)sim->wall_count, bodies = (size_t)sand->scene->body_count;
	uint64_t index = 0;
	int differing = 0;
	for (int i = 0; i < sim->grain_count; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			double *x = &sim->grains[i].position[k];
			*x = isnan(*x) ? 0.01 : *x;
		}
	}
	dress_for_list(sand);
	list_in_c(sand);
	if (sim->list->desc.has_history)
	{
		stretch(sand, seed);
	}
	forget_surfaces(sim);
	SandControl control = sand->control;
	SandGlPair *pairs = NULL;
	int64_t count = pairs_of(sand, &pairs), watch_count = 0;
	// Where the CPU engine has a pair, and where the device has it.
	float *stretches = sand_alloc(4 * (size_t)count + 4, sizeof(float));
	int64_t *numbers = sand_alloc((size_t)count + 1, sizeof(int64_t));
	int32_t *firsts = sand_alloc(spheres + 1, 4), *back_firsts = sand_alloc(spheres + 1, 4);
	int32_t *backs = sand_alloc((size_t)count + 1, 4), *entry_firsts = sand_alloc(spheres + 1, 4);
	int32_t *used = sand_alloc(spheres + 1, 4);
	SandGlPair *ordered = sand_alloc((size_t)count + 1, sizeof(SandGlPair));
	for (int64_t i = 0; i < count; ++i)
	{
		++firsts[pairs[i].a];
		if (pairs[i].b < (int32_t)spheres)
		{
			++back_firsts[pairs[i].b];
		}
	}
	scan_in_c((uint32_t *)firsts, (int64_t)spheres + 1);
	scan_in_c((uint32_t *)back_firsts, (int64_t)spheres + 1);
	for (int64_t i = 0; i < count; ++i)
	{
		numbers[i] = firsts[pairs[i].a] + used[pairs[i].a]++;
		ordered[numbers[i]] = pairs[i];
	}
	memset(used, 0, spheres * 4);
	for (int64_t i = 0; i < count; ++i)
	{
		if (ordered[i].b < (int32_t)spheres)
		{
			backs[back_firsts[ordered[i].b] + used[ordered[i].b]++] = (int32_t)i;
		}
	}
	int64_t at = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		for (int i = 0; i < sim->chunks[c].pair_count; ++i, ++at)
		{
			if (sim->list->desc.has_history)
			{
				memcpy(stretches + 4 * numbers[at], sim->chunks[c].history[i].stretch, 3 * sizeof(float));
			}
		}
		watch_count += sim->chunks[c].watch_count;
	}
	SandPair *watches = sand_alloc((size_t)watch_count + 1, sizeof(SandPair));
	watch_count = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		for (int i = 0; i < sim->chunks[c].watch_count; ++i)
		{
			watches[watch_count++] = sim->chunks[c].watch_pairs[i];
		}
	}
	sim->work.step = control.step = between(seed, &index, 1e-5, 1e-4);
	sim->work.last_step = control.last_step = between(seed, &index, 1e-5, 1e-4);
	sim->work.turn = control.turn = between(seed, &index, 1e-4, 1e-3);
	sim->work.sleep_steps = control.sleep_steps = 3;
	control.pair_count = (int32_t)count;
	control.watch_count = (int32_t)watch_count;
	control.obstacle_count = control.collider_count = 0;
	sim->work.obstacle_count = 0;
	sim->work.collider_count = 0;
	// On the device: watch, records, entries, sums.
	SandGrain *given_grains = copy_of(sim->grains, grains * sizeof(SandGrain));
	SandTraits *given_traits = copy_of(sim->traits, grains * sizeof(SandTraits));
	SandSphere *given_spheres = copy_of(sim->spheres, total * sizeof(SandSphere));
	float *given_stretches = copy_of(stretches, (4 * (size_t)count + 4) * sizeof(float));
	float *records = sand_alloc(12 * (size_t)count + 12, sizeof(float));
	uint32_t *addends = sand_alloc(2 * (size_t)count + 1, 4);
	SandSum *given_sums = sand_alloc(spheres, sizeof(SandSum)), *sums = sand_alloc(spheres, sizeof(SandSum));
	SandSum *before = NULL;
	const Block force_blocks[] = {
	    {SAND_BIND_CONTROL, &control, &control, sizeof control},
	    {SAND_BIND_GRAINS, given_grains, given_grains, grains * sizeof(SandGrain)},
	    {SAND_BIND_SPHERES, given_spheres, given_spheres, total * sizeof(SandSphere)},
	    {SAND_BIND_WATCHES, watches, NULL, (size_t)watch_count * sizeof(SandPair)},
	    {SAND_BIND_PAIRS, ordered, NULL, (size_t)count * sizeof(SandGlPair)},
	    {SAND_BIND_STRETCHES, given_stretches, given_stretches, (size_t)count * 16},
	    {SAND_BIND_LAWS, sand->scene->laws, NULL, (size_t)sand->scene->law_count * sizeof(SandLaw)},
	    {SAND_BIND_FORCES, records, records, (size_t)count * 48},
	    {SAND_BIND_FIRSTS, firsts, NULL, (spheres + 1) * 4},
	    {SAND_BIND_BACK_FIRSTS, back_firsts, NULL, (spheres + 1) * 4},
	    {SAND_BIND_BACKS, backs, NULL, ((size_t)count + 1) * 4},
	    {SAND_BIND_TOUCH_FIRSTS, NULL, NULL, (spheres + 1) * 4},
	    {SAND_BIND_NEAR_FIRSTS, NULL, NULL, (spheres + 1) * 4},
	    {SAND_BIND_ENTRY_FIRSTS, entry_firsts, entry_firsts, (spheres + 1) * 4},
	    {SAND_BIND_ADDENDS, addends, addends, (2 * (size_t)count + 1) * 4},
	    {SAND_BIND_SUMS, given_sums, given_sums, spheres * sizeof(SandSum)}};
	RUN_PLAIN("57_watch.comp", NULL, watch_count, force_blocks);
	RUN_PLAIN("50_pairs.comp", NULL, count, force_blocks);
	RUN_PLAIN("51_contacts.comp", NULL, count, force_blocks);
	RUN_PLAIN("44_entries.comp", NULL, (int64_t)spheres + 1, force_blocks);
	RUN_PLAIN("52_sums.comp", NULL, (int64_t)spheres, force_blocks);
	// In C: the kernel's forces, then what other chunks have summed.
	int64_t contacts = 0;
	int32_t needs_list = 0;
	sim->work.loads = sand_alloc(grains, sizeof(SandLoad));
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		sim->chunks[c].sums = sums + sim->chunks[c].first_sphere;
		sim->chunks[c].needs_list = 0;
		sim->kernel->forces(&sim->work, &sim->chunks[c]);
		contacts += sim->chunks[c].contact_count;
		needs_list |= sim->chunks[c].needs_list;
	}
	before = copy_of(sums, spheres * sizeof(SandSum));
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		sim->kernel->gather(&sim->work, sim->chunks, c);
	}
	CHECK(bench.is_quiet || sim->grain_count < 2 || contacts > 20);
	differing += DIFFER(sim->grains, given_grains, sim->grain_count);
	differing += (control.contact_count != (int32_t)contacts) + (control.needs_list != needs_list);
	for (size_t s = 0; s < spheres; ++s)
	{
		sums[s].force[3] = sums[s].torque[3] = 0; // the fourth lanes hold nothing
	}
	differing += DIFFER(sums, given_sums, (int64_t)spheres);
	at = 0;
	for (int c = 0; c < sim->chunk_count && sim->list->desc.has_history; ++c)
	{
		for (int i = 0; i < sim->chunks[c].pair_count; ++i, ++at)
		{
			differing += memcmp(sim->chunks[c].history[i].stretch, given_stretches + 4 * numbers[at], 12) != 0;
		}
	}
	// The move, from the CPU engine's sums. One grain far too fast.
	for (int i = 0; i < sim->grain_count; ++i)
	{
		bool is_bad = i == sim->grain_count / 2 && sim->grain_count > 1;
		sim->grains[i].velocity[0] = is_bad ? 1e4 : sim->grains[i].velocity[0];
	}
	sim->has_driven = true;
	sim->time = 0;
	aim_bodies(sim, sim->work.step);
	memset(sim->impulses, 0, 6 * bodies * sizeof(double));
	memcpy(given_grains, sim->grains, grains * sizeof(SandGrain));
	double *speeds = sand_alloc(grains, sizeof(double)), *impulses = sand_alloc(6 * bodies + 1, sizeof(double));
	SandControl moving = sand->control;
	moving.step = control.step;
	moving.last_step = control.last_step;
	moving.turn = control.turn;
	moving.sleep_steps = control.sleep_steps;
	const Block move_blocks[] = {{SAND_BIND_CONTROL, &moving, &moving, sizeof moving},
	                             {SAND_BIND_GRAINS, given_grains, given_grains, grains * sizeof(SandGrain)},
	                             {SAND_BIND_TRAITS, given_traits, given_traits, grains * sizeof(SandTraits)},
	                             {SAND_BIND_SPHERES, given_spheres, given_spheres, total * sizeof(SandSphere)},
	                             {SAND_BIND_SHAPES, sand->shapes, NULL, sizeof sand->shapes},
	                             {SAND_BIND_OFFSETS, sand->offsets, NULL, sizeof sand->offsets},
	                             {SAND_BIND_SUMS, sums, NULL, spheres * sizeof(SandSum)},
	                             {SAND_BIND_TARGETS, sim->targets, NULL, bodies * sizeof(SandGrain)},
	                             {SAND_BIND_IMPULSES, NULL, impulses, 6 * bodies * sizeof(double)},
	                             {SAND_BIND_SPEEDS, NULL, speeds, grains * sizeof(double)}};
	RUN_PLAIN("60_move.comp", NULL, sim->grain_count, move_blocks);
	SandSum *whole = sums;
	int32_t bad = INT32_MAX;
	needs_list = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		sim->chunks[c].sums = before + sim->chunks[c].first_sphere;
	}
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		sim->chunks[c].needs_list = 0;
		sim->kernel->move(&sim->work, sim->chunks, c);
		needs_list |= sim->chunks[c].needs_list != 0;
		bad = sim->chunks[c].bad_grain < bad ? sim->chunks[c].bad_grain : bad;
	}
	double most = 0;
	for (size_t i = 0; i < grains; ++i)
	{
		most = fmax(most, speeds[i]);
	}
	differing +=
	    DIFFER(sim->grains, given_grains, sim->grain_count) + DIFFER(sim->traits, given_traits, sim->grain_count) +
	    DIFFER(sim->spheres, given_spheres, (int64_t)total) + DIFFER(sim->impulses, impulses, 6 * (int64_t)bodies);
	differing += (moving.needs_list != needs_list) + (moving.bad_grain != bad) + (sqrt(most) != fastest(sim));
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		sim->chunks[c].sums = NULL;
	}
	sand_free(pairs);
	sand_free(stretches);
	sand_free(numbers);
	sand_free(firsts);
	sand_free(back_firsts);
	sand_free(backs);
	sand_free(entry_firsts);
	sand_free(used);
	sand_free(ordered);
	sand_free(watches);
	sand_free(given_grains);
	sand_free(given_traits);
	sand_free(given_spheres);
	sand_free(given_stretches);
	sand_free(records);
	sand_free(addends);
	sand_free(given_sums);
	sand_free(whole);
	sand_free(before);
	sand_free(speeds);
	sand_free(impulses);
	return differing;
}

static int twin_50_60(void)
{
	return on_every_sand(step_as_in_c);
}

// ---- 10, 59, 61, 62: the length of a step, loads, the fastest, big grains -------------------------------------------

// What take_steps, take_step and sweep of sim.c do with the time, in the device's words.
static void control_in_c(const Sand *sand, const SandGlBody *bodies, SandControl *c, bool is_ending)
{
	SandSim *sim = sand->sim;
	c->fastest_square = sim->chunks[0].fastest_square;
	if (c->is_stepped)
	{
		double time = c->time + c->step;
		c->is_stepped = 0;
		c->last_step = c->step;
		c->list_time = time;
		if (c->bad_grain != SAND_NO_GRAIN)
		{
			c->halt = SAND_HALT_BAD;
			return;
		}
		bool is_due = c->waiting_first < c->waiting_end && c->next_birth + c->birth_slack <= time;
		c->halt = c->needs_list || is_due || time + c->step_limit > c->colliders_until ? SAND_HALT_LIST : c->halt;
		++c->step_count;
		c->done = c->is_last ? c->seconds : c->done + c->step;
		c->time = c->begin + c->done;
	}
	if (c->halt != SAND_HALT_NONE || is_ending)
	{
		return;
	}
	if (!c->is_chosen)
	{
		if (!(c->done < c->seconds))
		{
			c->halt = SAND_HALT_DONE;
			return;
		}
		sim->time = c->time;
		double left = c->seconds - c->done, parts = ceil(left / safe_step(sim) * (1 - 1e-12));
		c->is_last = !(parts > 1);
		c->step = parts > 1 ? left / parts : left;
		c->sleep_steps = (int)fmin(ceil(c->sleep_seconds / c->step), 1e9);
	}
	for (int b = 0; b < c->body_count; ++b)
	{
		const SandGrain *grain = &sim->grains[sand->places[bodies[b].grain]];
		if (bodies[b].release > 0 && c->time >= bodies[b].release && (grain->flags & SAND_GRAIN_DRIVEN) != 0)
		{
			c->is_chosen = 1;
			c->list_time = c->time;
			c->halt = SAND_HALT_RELEASE;
			return;
		}
	}
	c->is_chosen = 0;
	c->turn_seconds += c->step;
	bool is_turning = ++c->turn_steps == TURN_STEPS;
	c->turn = is_turning ? c->turn_seconds : 0;
	c->turn_seconds = is_turning ? 0 : c->turn_seconds;
	c->turn_steps = is_turning ? 0 : c->turn_steps;
	c->is_stepped = 1;
}

static int choose_step_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	size_t grains = (size_t)sim->grain_count, bodies = (size_t)sand->scene->body_count;
	uint64_t index = 0;
	int differing = 0;
	double *speeds = sand_alloc(grains, sizeof(double));
	SandGlBody *records = sand_alloc(bodies + 1, sizeof(SandGlBody));
	for (size_t b = 0; b < bodies; ++b)
	{
		records[b] = (SandGlBody){.release = sand->scene->bodies[b].release, .grain = sand->scene->bodies[b].grain};
	}
	sim->chunk_count = 1;
	for (int round = 0; round < 60; ++round)
	{
		SandControl control = sand->control;
		int kind = pick(seed, &index, 6);
		double scale = kind == 0 ? 0 : kind == 1 ? 1e-320 : kind == 2 ? 1e6 : kind == 3 ? 30 : 1, most = 0;
		for (size_t i = 0; i < grains; ++i)
		{
			speeds[i] = scale * sand_random(seed, index++);
			most = fmax(most, speeds[i]);
		}
		sim->chunks[0].fastest_square = most;
		control.speed_count = sim->grain_count;
		control.seconds = between(seed, &index, 1e-6, 0.01);
		control.done = pick(seed, &index, 5) == 0 ? control.seconds : between(seed, &index, 0, 1) * control.seconds;
		control.begin = pick(seed, &index, 4) == 0 ? 0 : between(seed, &index, 0, 0.3);
		control.time = control.begin + control.done;
		control.step = between(seed, &index, 1e-6, 1e-4);
		control.is_stepped = pick(seed, &index, 3) > 0;
		control.is_chosen = pick(seed, &index, 4) == 0;
		control.is_last = pick(seed, &index, 6) == 0;
		control.needs_list = pick(seed, &index, 6) == 0;
		control.bad_grain = pick(seed, &index, 12) == 0 ? 5 : SAND_NO_GRAIN;
		control.waiting_end = pick(seed, &index, 2);
		control.next_birth = between(seed, &index, 0, 0.6);
		control.colliders_until = pick(seed, &index, 2) == 0 ? DBL_MAX : between(seed, &index, 0, 1);
		control.turn_steps = pick(seed, &index, TURN_STEPS);
		control.turn_seconds = between(seed, &index, 0, 1e-3);
		control.halt = pick(seed, &index, 12) == 0 ? SAND_HALT_DONE : SAND_HALT_NONE;
		bool is_ending = pick(seed, &index, 5) == 0;
		SandControl wanted = control;
		if (wanted.halt == SAND_HALT_NONE)
		{
			control_in_c(sand, records, &wanted, is_ending);
		}
		const Block blocks[] = {
		    {SAND_BIND_CONTROL, &control, &control, sizeof control},
		    {SAND_BIND_GRAINS, sim->grains, NULL, grains * sizeof(SandGrain)},
		    {SAND_BIND_SPEEDS, speeds, NULL, grains * sizeof(double)},
		    {SAND_BIND_MESHES, sand->meshes.meshes, NULL, (size_t)control.collider_count * sizeof(SandGlCollider)},
		    {SAND_BIND_TRACKS, sand->meshes.tracks, NULL, (size_t)sand->meshes.track_count * sizeof(double)},
		    {SAND_BIND_PLACES, sand->places, NULL, grains * 4},
		    {SAND_BIND_BODIES, records, NULL, bodies * sizeof(SandGlBody)},
		    {SAND_BIND_GROUPS, NULL, NULL, 12 * SAND_GROUPS_COUNT}};
		RUN_PASS("10_control.comp", NULL, 1, blocks, is_ending);
		differing += differ_controls(&wanted, &control);
	}
	sim->chunk_count = 0;
	sand_free(speeds);
	sand_free(records);
	return differing;
}

static int twin_10(void)
{
	return on_every_sand(choose_step_as_in_c);
}

// The greatest of every block of speeds, behind them.
static int twin_61(void)
{
	static const int counts[] = {1, GROUP, GROUP + 1, 5000, 300000};
	int differing = 0;
	for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c)
	{
		int count = counts[c], blocks_of = (count + SAND_SPEED_BLOCK - 1) / SAND_SPEED_BLOCK;
		SandControl control = {.grain_count = count, .speed_first = count, .speed_count = blocks_of};
		double *wanted = sand_alloc((size_t)(count + blocks_of), sizeof(double));
		for (int i = 0; i < count; ++i)
		{
			wanted[i] = i % 7 == 0 ? 1e-310 : sand_random(64, (uint64_t)i);
			double *most = &wanted[count + i % blocks_of];
			*most = fmax(*most, wanted[i]);
		}
		double *given = copy_of(wanted, (size_t)(count + blocks_of) * sizeof(double));
		memset(given + count, 0, (size_t)blocks_of * sizeof(double));
		const Block blocks[] = {{SAND_BIND_CONTROL, &control, NULL, sizeof control},
		                        {SAND_BIND_SPEEDS, given, given, (size_t)(count + blocks_of) * sizeof(double)}};
		RUN_PLAIN("61_fastest.comp", NULL, blocks_of, blocks);
		differing += DIFFER(wanted, given, count + blocks_of);
		sand_free(wanted);
		sand_free(given);
	}
	return differing;
}

// Spheres that 62 places one by one, as those of big grains; loads of chunks on colliders.
static int load_as_in_c(Sand *sand, uint64_t seed)
{
	SandSim *sim = sand->sim;
	size_t grains = (size_t)sim->grain_count, spheres = (size_t)sim->sphere_count;
	size_t total = spheres + (size_t)sim->wall_count;
	uint64_t index = 0;
	int differing = 0;
	dress_for_list(sand);
	int32_t needs_list = 0, *big = sand_alloc(spheres, 4), *near_firsts = sand_alloc(spheres + 1, 4);
	SandControl control = sand->control;
	for (int i = 0; i < sim->grain_count; ++i)
	{
		sim->grains[i].position[1] += pick(seed, &index, 40) == 0 ? 2e-3 : 1e-5;
	}
	for (size_t s = 0; s < spheres; ++s)
	{
		big[s] = (int32_t)(spheres - 1 - s);
	}
	control.big_sphere_count = (int32_t)spheres;
	control.margin_fast = sim->work.margin_fast;
	SandSphere *given = copy_of(sim->spheres, total * sizeof(SandSphere));
	const Block place_blocks[] = {{SAND_BIND_CONTROL, &control, &control, sizeof control},
	                              {SAND_BIND_GRAINS, sim->grains, NULL, grains * sizeof(SandGrain)},
	                              {SAND_BIND_TRAITS, sim->traits, NULL, grains * sizeof(SandTraits)},
	                              {SAND_BIND_SPHERES, given, given, total * sizeof(SandSphere)},
	                              {SAND_BIND_SHAPES, sand->shapes, NULL, sizeof sand->shapes},
	                              {SAND_BIND_OFFSETS, sand->offsets, NULL, sizeof sand->offsets},
	                              {SAND_BIND_BIG_SPHERES, big, NULL, spheres * 4}};
	RUN_PLAIN("62_place.comp", NULL, (int64_t)spheres, place_blocks);
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		sim->chunks[c].needs_list = 0;
		sim->kernel->place(&sim->work, &sim->chunks[c], false);
		needs_list |= sim->chunks[c].needs_list != 0;
	}
	differing += DIFFER(sim->spheres, given, (int64_t)total) + (needs_list != control.needs_list);
	// Loads: each chunk's in order of sphere, then chunk by chunk times the time that they act for.
	int colliders = 3, chunks = (int)((spheres - 1) / (size_t)sim->chunk_spheres) + 1, near_count = 0;
	for (size_t s = 0; s < spheres; ++s)
	{
		near_firsts[s] = near_count;
		near_count += pick(seed, &index, 4);
	}
	near_firsts[spheres] = near_count;
	SandGlNear *nears = sand_alloc((size_t)near_count + 1, sizeof(SandGlNear));
	double *loads = sand_alloc(6 * (size_t)near_count + 6, sizeof(double));
	double *sums = sand_alloc(6 * (size_t)(colliders * (chunks + 1)), sizeof(double)), *given_sums = NULL;
	for (int i = 0; i < near_count; ++i)
	{
		nears[i].collider = pick(seed, &index, colliders);
		for (int k = 0; k < 6; ++k)
		{
			loads[6 * i + k] = between(seed, &index, -1, 1);
		}
	}
	control.collider_count = colliders;
	control.step = 3e-5;
	control.last_step = 2e-5;
	for (int is_closing = 0; is_closing < 2; ++is_closing)
	{
		control.is_closing = is_closing;
		given_sums = copy_of(sums, 6 * (size_t)(colliders * (chunks + 1)) * sizeof(double));
		const Block blocks[] = {
		    {SAND_BIND_CONTROL, &control, NULL, sizeof control},
		    {SAND_BIND_GRAINS, sim->grains, NULL, grains * sizeof(SandGrain)},
		    {SAND_BIND_TRAITS, sim->traits, NULL, grains * sizeof(SandTraits)},
		    {SAND_BIND_SPHERES, sim->spheres, NULL, total * sizeof(SandSphere)},
		    {SAND_BIND_SHAPES, sand->shapes, NULL, sizeof sand->shapes},
		    {SAND_BIND_NEARS, nears, NULL, ((size_t)near_count + 1) * sizeof(SandGlNear)},
		    {SAND_BIND_NEAR_FIRSTS, near_firsts, NULL, (spheres + 1) * 4},
		    {SAND_BIND_NEAR_LOADS, loads, NULL, (6 * (size_t)near_count + 6) * sizeof(double)},
		    {SAND_BIND_LOAD_SUMS, given_sums, given_sums, 6 * (size_t)(colliders * (chunks + 1)) * sizeof(double)}};
		RUN_PASS("59_loads.comp", NULL, chunks * colliders, blocks, 0, (uint32_t)chunks);
		RUN_PASS("59_loads.comp", NULL, colliders, blocks, 1, (uint32_t)chunks);
		memset(sums, 0, 6 * (size_t)(colliders * chunks) * sizeof(double));
		for (int c = 0; c < sim->chunk_count; ++c)
		{
			const SandChunk *chunk = &sim->chunks[c];
			int stretch_of = chunk->first_sphere / sim->chunk_spheres;
			for (int i = near_firsts[chunk->first_sphere]; i < near_firsts[chunk->first_sphere + chunk->sphere_count];
			     ++i)
			{
				for (int k = 0; k < 6; ++k)
				{
					sums[6 * (stretch_of * colliders + nears[i].collider) + k] += loads[6 * i + k];
				}
			}
		}
		double acts = 0.5 * control.last_step + (is_closing ? 0 : 0.5 * control.step);
		for (int c = 0; c < chunks; ++c)
		{
			for (int i = 0; i < 6 * colliders; ++i)
			{
				sums[6 * colliders * chunks + i] += acts * sums[6 * colliders * c + i];
			}
		}
		differing += DIFFER(sums, given_sums, 6 * (int64_t)(colliders * (chunks + 1)));
		sand_free(given_sums);
	}
	sand_free(big);
	sand_free(near_firsts);
	sand_free(given);
	sand_free(nears);
	sand_free(loads);
	sand_free(sums);
	return differing;
}

static int twin_59_62(void)
{
	return on_every_sand(load_as_in_c);
}

// ---- changed passes -------------------------------------------------------------------------------------------------

// A pass, one change of its text, and the twin that must notice it.
static const struct
{
	Mutation mutation;
	int (*twin)(void);
} mutations[] = {
    {{"11_bodies.comp", "control.time + control.step)", "control.time)"}, twin_11},
    {{"11_bodies.comp", "control.time >= bodies", "control.time > bodies"}, twin_11},
    {{"11_bodies.comp", "2.0lf * (y * z - w * x)", "2.0lf * (y * z + w * x)"}, twin_11},
    {{"20_springs.comp", "is_swapped ? -1.0 : 1.0", "1.0"}, twin_20_46},
    {{"20_springs.comp", "other < 0 || was_at_rest(other)", "other >= 0 && was_at_rest(other)"}, twin_20_46},
    {{"20_springs.comp", "nears[i].side != 0.0", "nears[i].side > 0.0"}, twin_20_46},
    {{"20_springs.comp", "if (stretch != vec3(0.0))", "if (stretch.x != 0.0)"}, twin_20_46},
    {{"22_births.comp", "<= control.list_time", "< control.list_time"}, twin_22},
    {{"22_births.comp", "rivals[count] = i;", ""}, twin_22},
    {{"22_births.comp", "2.0lf * control.birth_slack", "control.birth_slack"}, twin_22},
    {{"22_births.comp", "k = kept - 1; k >= 0; --k", "k = 0; k < kept; ++k"}, twin_22},
    {{"24_keys.comp", "SAND_GRAIN_ABSENT) == 0", "SAND_GRAIN_LOST) == 0"}, twin_24},
    {{"24_keys.comp", "<= control.sort_cell", "< 0.5lf * control.sort_cell"}, twin_24},
    {{"24_keys.comp", "is_below ? 0 : cell", "cell"}, twin_24},
    {{"24_keys.comp", "steps > low ? steps : low", "steps < low ? low : steps"}, twin_24},
    {{"25_radix_count.comp", "at < record_count", "at + 1u < record_count"}, twin_25},
    {{"25_radix_count.comp", "k < 64u", "k < 63u"}, twin_25},
    {{"26_radix_move.comp", "k < 64u", "k < 63u"}, twin_26},
    {{"26_radix_move.comp", "++counts[counter];", ""}, twin_26},
    {{"27_scan.comp", "width < 256u", "width < 128u"}, twin_27},
    {{"27_scan.comp", "at - 1020u < value_count", "at + 4u < value_count"}, twin_27},
    {{"27_scan.comp", "+= scan_sums[sum_first + group]", "+= scan_sums[group]"}, twin_27},
    {{"28_reorder.comp", "traits_spare[i] = traits[from]", "traits_spare[i] = traits[i]"}, twin_28},
    {{"30_counts.comp", "int(sand_thread())", "int(gl_GlobalInvocationID.x)"}, twin_30},
    {{"30_counts.comp", "i < control.grain_count", "i + 1 < control.grain_count"}, twin_30},
    {{"33_margins.comp", "1.1lf * point", "1.2lf * point"}, twin_33_34},
    {{"33_margins.comp", "steps < k ? steps : k", "k"}, twin_33_34},
    {{"33_margins.comp", "0.5 * control.bridge", "control.bridge"}, twin_33_34},
    {{"34_fast.comp", "!is_still(flags) && ", ""}, twin_33_34},
    {{"34_fast.comp", "> control.fast_speed", ">= 2.0lf * control.fast_speed"}, twin_33_34},
    {{"35_cells.comp", "SAND_GRAIN_ABSENT) != 0", "SAND_GRAIN_LOST) != 0"}, twin_35_36},
    {{"35_cells.comp", "is_fast_sphere(s) ? level + control.size_count : level", "level"}, twin_35_36},
    {{"35_cells.comp", "levels[l].stride_z) & levels", "levels[l].stride_y) & levels"}, twin_35_36},
    {{"36_fill.comp", "entries[at - 1u] > value", "entries[at - 1u] < value"}, twin_35_36},
    {{"36_fill.comp", "buckets[i] != SAND_NO_BUCKET", "true"}, twin_35_36},
    {{"36_fill.comp", "sand_thread()", "gl_GlobalInvocationID.x"}, twin_36_folded},
    {{"38_search.comp", " && square < reach_square", ""}, twin_38},
    {{"38_search.comp", " && other != my_grain", ""}, twin_38},
    {{"38_search.comp", "1.02 * ", "1.0 * "}, twin_38},
    {{"38_search.comp", "other < 0 || is_still(flags_of(other))", "other >= 0 && is_still(flags_of(other))"}, twin_38},
    {{"39_backs.comp", "pairs[i].b < control.sphere_count", "true"}, twin_39},
    {{"39_backs.comp", "backs[at - 1] > value", "backs[at - 1] < value"}, twin_39},
    {{"41_touches.comp", "!is_still(flags) && ", ""}, twin_41},
    {{"41_touches.comp", "near = spheres[s].radius + margin", "near = spheres[s].radius + control.margin_slow"},
     twin_41},
    {{"41_touches.comp", "+ double(control.bridge)", ""}, twin_41},
    {{"46_restore.comp", "is_swapped ? -stretch : stretch", "stretch"}, twin_20_46},
    {{"46_restore.comp", "nears[k].side = found.w", "nears[k].side = -found.w"}, twin_20_46},
    {{"46_restore.comp", "is_still(grains[spheres[i].grain].flags)", "false"}, twin_20_46},
    {{"48_supports.comp", "held < quiet", "held <= quiet"}, twin_48},
    {{"48_supports.comp", "held > quiet ? held : quiet", "held"}, twin_48},
    {{"10_control.comp", "late <= now", "late < 0.0lf"}, twin_10},
    {{"10_control.comp", "way < step ? way : step", "way < step ? step : step"}, twin_10},
    {{"10_control.comp", "control.time >= bodies", "control.time < bodies"}, twin_10},
    {{"31_dress.comp", "speed > control.thresholds[k]", "speed >= 2.0lf * control.thresholds[k]"}, twin_31_62},
    {{"31_dress.comp", "~(SAND_GRAIN_WAKING | SAND_GRAIN_ASLEEP)", "~SAND_GRAIN_WAKING"}, twin_31_62},
    {{"44_entries.comp", "uint(record) << 2 | bits", "uint(record) << 2 | (bits & 1u)"}, twin_50_60},
    {{"50_pairs.comp", "0.25 * law.cohesion_range", "0.2 * law.cohesion_range"}, twin_50_60},
    {{"50_pairs.comp", "radius_a * radius_b / radii", "radius_a * radius_b"}, twin_50_60},
    {{"51_contacts.comp", "+ 1).w) != 0.0", "+ 1).w) == 0.0"}, twin_50_60},
    {{"52_sums.comp", "is_back ? -f.xyz : f.xyz", "f.xyz"}, twin_50_60},
    {{"57_watch.comp", "== 0.0 ? 0.0 : control", "== 0.0 ? 1e9 : 0.0 * control"}, twin_50_60},
    {{"59_loads.comp", "nears[i].collider == collider", "nears[i].collider <= collider"}, twin_59_62},
    {{"59_loads.comp", "first == s ? s : first", "first == s ? s : s - first"}, twin_59_62},
    {{"60_move.comp", "acts = owed + 0.5lf * now.step", "acts = owed"}, twin_50_60},
    {{"60_move.comp", "stop_grain(SAND_GRAIN_ASLEEP);", ""}, twin_50_60},
    {{"61_fastest.comp", "k < SAND_SPEED_BLOCK", "k + 1 < SAND_SPEED_BLOCK"}, twin_61},
    {{"62_place.comp", "control.needs_list = 1;", ""}, twin_59_62},
};

// The text of the pass with the change in it; NULL when what is to be changed is not there exactly once.
static char *changed_text(const Mutation *mutation)
{
	const char *text = text_of(mutation->file), *at = text != NULL ? strstr(text, mutation->from) : NULL;
	if (at == NULL || strstr(at + 1, mutation->from) != NULL)
	{
		printf("  %s: '%s' is there %s\n", mutation->file, mutation->from, at == NULL ? "nowhere" : "more than once");
		return NULL;
	}
	size_t before = (size_t)(at - text), room = strlen(text) + strlen(mutation->to) + 1;
	char *changed = sand_alloc(room, 1);
	(void)snprintf(changed, room, "%.*s%s%s", (int)before, text, mutation->to, at + strlen(mutation->from));
	return changed;
}

static void every_change_of_a_pass_is_noticed(void)
{
	for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; ++i)
	{
		bench.text = changed_text(&mutations[i].mutation);
		bench.mutation = &mutations[i].mutation;
		bench.is_quiet = true;
		if (CHECK(bench.text != NULL) && !CHECK(mutations[i].twin() > 0))
		{
			printf("  %s: '%s' as '%s' is not noticed\n", mutations[i].mutation.file, mutations[i].mutation.from,
			       mutations[i].mutation.to);
		}
		sand_free(bench.text);
		bench.mutation = NULL;
		bench.is_quiet = false;
	}
}

PASS_TEST(bodies_are_aimed_and_let_go_as_in_c, twin_11)
PASS_TEST(springs_are_saved_and_found_as_in_c, twin_20_46)
PASS_TEST(grains_are_born_as_in_c, twin_22)
PASS_TEST(grains_get_their_keys_as_in_c, twin_24)
PASS_TEST(digits_are_counted_as_in_c, twin_25)
PASS_TEST(records_are_sorted_as_in_c, twin_26)
PASS_TEST(sums_run_as_in_c, twin_27)
PASS_TEST(grains_are_reordered_as_in_c, twin_28)
PASS_TEST(spheres_are_counted_as_in_c, twin_30)
PASS_TEST(margins_and_fast_grains_are_chosen_as_in_c, twin_33_34)
PASS_TEST(cells_are_filled_as_in_c, twin_35_36)
PASS_TEST(cells_are_filled_in_rows_of_groups, twin_36_folded)
PASS_TEST(pairs_are_found_as_in_c, twin_38)
PASS_TEST(pairs_are_gathered_as_in_c, twin_39)
PASS_TEST(obstacles_are_found_as_in_c, twin_41)
PASS_TEST(sleepers_are_held_as_in_c, twin_48)
PASS_TEST(grains_are_dressed_and_placed_as_in_c, twin_31_62)
PASS_TEST(a_step_is_made_as_in_c, twin_50_60)
PASS_TEST(steps_are_chosen_as_in_c, twin_10)
PASS_TEST(loads_and_big_grains_are_as_in_c, twin_59_62)
PASS_TEST(the_fastest_is_found_as_in_c, twin_61)

void test_glpasses(void)
{
	SandError err = {0};
	if (sand_gpu_create(&(SandGpuDesc){.refuses_hardware = true}, &bench.gpu, &err) != SAND_OK)
	{
		SKIP("glpasses", "no software GL device on this machine");
		return;
	}
	RUN(bodies_are_aimed_and_let_go_as_in_c);
	RUN(springs_are_saved_and_found_as_in_c);
	RUN(grains_are_born_as_in_c);
	RUN(grains_get_their_keys_as_in_c);
	RUN(digits_are_counted_as_in_c);
	RUN(records_are_sorted_as_in_c);
	RUN(sums_run_as_in_c);
	RUN(grains_are_reordered_as_in_c);
	RUN(spheres_are_counted_as_in_c);
	RUN(margins_and_fast_grains_are_chosen_as_in_c);
	RUN(cells_are_filled_as_in_c);
	RUN(cells_are_filled_in_rows_of_groups);
	RUN(pairs_are_found_as_in_c);
	RUN(pairs_are_gathered_as_in_c);
	RUN(obstacles_are_found_as_in_c);
	RUN(sleepers_are_held_as_in_c);
	RUN(grains_are_dressed_and_placed_as_in_c);
	RUN(a_step_is_made_as_in_c);
	RUN(steps_are_chosen_as_in_c);
	RUN(loads_and_big_grains_are_as_in_c);
	RUN(the_fastest_is_found_as_in_c);
	RUN(every_change_of_a_pass_is_noticed);
	sand_gpu_destroy(bench.gpu);
}
