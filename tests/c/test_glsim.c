// Tests of the GL engine: the same scene on both engines, compared bit for bit on the software device.
#include "sim.h"
#include "test.h"

enum
{
	SIDE = 6, // grains along a side of the lattice that falls
	GRAIN_LIMIT = 4096
};

// A scene of the tests: a jittered lattice of grains over the floor of an open box of five planes.
typedef struct Bed
{
	SandSceneDesc desc;
	SandShapeDesc shapes[3];
	float offsets[3][4 * 3], radii[3][4];
	SandMaterial materials[2];
	SandObstacle obstacles[8];
	SandForceRegion region;
	SandOutflow outflow;
	SandEmitter emitter;
	float places[GRAIN_LIMIT * 3], velocities[GRAIN_LIMIT * 3], scales[GRAIN_LIMIT];
	int32_t grain_shapes[GRAIN_LIMIT], grain_materials[GRAIN_LIMIT];
	float spots[16 * 3];
	SandColliderDesc colliders[3];
	SandMesh *meshes[3];
	SandTrack tracks[2];
	double samples[2][8 * 7];
	float frames[4 * 3 * 512];
	SandBody bodies[2];
} Bed;

static void make_bed(Bed *bed, int side, int layers)
{
	const float radius = 0.005f, pitch = 0.024f, width = pitch * (float)side;
	memset(bed, 0, sizeof(*bed));
	bed->shapes[0] = (SandShapeDesc){.radii = bed->radii[0], .sphere_count = 1};
	bed->radii[0][0] = radius;
	sand_shape_tetrahedron(radius, bed->offsets[1]);
	sand_shape_rod(radius, 3, bed->offsets[2]);
	for (int s = 1; s < 3; ++s)
	{
		for (int k = 0; k < 4; ++k)
		{
			bed->radii[s][k] = radius;
		}
		bed->shapes[s] = (SandShapeDesc){bed->offsets[s], bed->radii[s], s == 1 ? 4 : 3, NULL};
	}
	const float normals[5][3] = {{0, 0, 1}, {1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}};
	for (int i = 0; i < 5; ++i)
	{
		bed->obstacles[i] = (SandObstacle){.kind = SAND_OBSTACLE_PLANE};
		for (int k = 0; k < 3; ++k)
		{
			bed->obstacles[i].axis[k] = normals[i][k];
			bed->obstacles[i].point[k] = normals[i][k] < 0 ? width : 0;
		}
	}
	int count = side * side * layers;
	for (int i = 0; i < count; ++i)
	{
		const int cell[3] = {i % side, i / side % side, i / (side * side)};
		for (int k = 0; k < 3; ++k)
		{
			float jitter = (float)(sand_random(7, (uint64_t)(3 * i + k)) - 0.5) * 0.001f;
			bed->places[3 * i + k] = pitch * ((float)cell[k] + 0.5f) + jitter + (k == 2 ? 0.002f : 0);
			bed->velocities[3 * i + k] = (float)(sand_random(8, (uint64_t)(3 * i + k)) - 0.5) * 0.4f;
		}
		bed->scales[i] = 1;
	}
	bed->desc = (SandSceneDesc){.gravity = {0, 0, -9.81},
	                            .materials = bed->materials,
	                            .material_count = 1,
	                            .max_speed = 2,
	                            .shapes = bed->shapes,
	                            .shape_count = 3,
	                            .grain_positions = bed->places,
	                            .grain_velocities = bed->velocities,
	                            .grain_shapes = bed->grain_shapes,
	                            .grain_materials = bed->grain_materials,
	                            .grain_scales = bed->scales,
	                            .grain_count = count,
	                            .obstacles = bed->obstacles,
	                            .obstacle_count = 5,
	                            .seed = 3};
}

static void set_shapes(Bed *bed, int shape)
{
	for (int i = 0; i < bed->desc.grain_count; ++i)
	{
		bed->grain_shapes[i] = shape < 3 ? shape : i % 3;
	}
}

static bool has_device(void)
{
	static int answer = -1;
	if (answer < 0)
	{
		SandGpuDevice devices[SAND_GPU_DEVICE_LIMIT];
		int count = 0;
		answer = 0;
		if (sand_gpu_list(NULL, devices, SAND_GPU_DEVICE_LIMIT, &count, NULL) == SAND_OK)
		{
			for (int i = 0; i < count && i < SAND_GPU_DEVICE_LIMIT; ++i)
			{
				answer = answer || (devices[i].is_usable && devices[i].is_software);
			}
		}
	}
	return answer == 1;
}

static SandSim *start(const SandScene *scene, SandEngine engine)
{
	SandSim *sim = NULL;
	SandError err = {0};
	SandSimDesc desc = {.engine = engine, .gpu.refuses_hardware = true, .stops_without_gpu = true};
	CHECK_STATUS(sand_sim_create(scene, &desc, &sim, &err), SAND_OK, &err);
	return sim;
}

// Frames of both engines, each compared; the difference of the first grain that differs is told.
static void compare(const char *name, const Bed *bed, int frames, double seconds)
{
	SandScene *scene = NULL;
	SandError err = {0};
	if (!CHECK_STATUS(sand_scene_create(&bed->desc, &scene, &err), SAND_OK, &err))
	{
		return;
	}
	SandSim *cpu = start(scene, SAND_ENGINE_CPU), *gl = start(scene, SAND_ENGINE_GL);
	bool is_same = cpu != NULL && gl != NULL;
	for (int frame = 0; frame < frames && is_same; ++frame)
	{
		CHECK_STATUS(sand_sim_advance(cpu, seconds, NULL, &err), SAND_OK, &err);
		is_same = CHECK_STATUS(sand_sim_advance(gl, seconds, NULL, &err), SAND_OK, &err);
		SandSimInfo a = sand_sim_info(cpu), b = sand_sim_info(gl);
		is_same = CHECK(sand_sim_hash(cpu) == sand_sim_hash(gl)) && is_same;
		is_same = CHECK_INT(b.contact_count, a.contact_count) && is_same;
		// A GL error that is left behind fails its job, and that costs the device.
		is_same = CHECK_INT(sand_sim_engine(gl).lost_count, 0) && is_same;
		double loads[2][2][6 * 3];
		memset(loads, 0, sizeof(loads));
		sand_sim_loads(cpu, loads[0][0], loads[0][1]);
		sand_sim_loads(gl, loads[1][0], loads[1][1]);
		is_same = CHECK(memcmp(loads[0], loads[1], sizeof(loads[0])) == 0) && is_same;
		if (!is_same)
		{
			printf(
			    "  %s, frame %d: time %.17g %.17g, steps %lld %lld, lists %lld %lld, contacts %lld %lld, energy %.17g "
			    "%.17g\n",
			    name, frame, a.time, b.time, (long long)a.step_count, (long long)b.step_count, (long long)a.list_count,
			    (long long)b.list_count, (long long)a.contact_count, (long long)b.contact_count, a.kinetic_energy,
			    b.kinetic_energy);
			int count = a.grain_count, shown = 0;
			float *p = sand_alloc((size_t)count * 3, sizeof(float)), *q = sand_alloc((size_t)count * 3, sizeof(float));
			sand_sim_read(cpu, &(SandSimArrays){.positions = p});
			sand_sim_read(gl, &(SandSimArrays){.positions = q});
			for (int i = 0; i < 3 * count && shown < 5; ++i)
			{
				if (p[i] != q[i])
				{
					printf("  grain %d axis %d: %.9g %.9g\n", i / 3, i % 3, (double)p[i], (double)q[i]);
					++shown;
				}
			}
			sand_free(p);
			sand_free(q);
		}
	}
	sand_sim_destroy(cpu);
	sand_sim_destroy(gl);
	sand_scene_destroy(scene);
}

static Bed bed;

static void spheres_fall_as_on_the_cpu(void)
{
	make_bed(&bed, SIDE, SIDE);
	compare("spheres", &bed, 2, 0.02);
}

static void history_friction_is_the_same(void)
{
	make_bed(&bed, SIDE, SIDE);
	bed.materials[0].shear = SAND_SHEAR_HISTORY;
	bed.materials[0].friction = 0.5f;
	compare("history", &bed, 2, 0.04);
}

static void clusters_fall_as_on_the_cpu(void)
{
	make_bed(&bed, SIDE, SIDE);
	set_shapes(&bed, 1);
	compare("tetrahedra", &bed, 2, 0.02);
	set_shapes(&bed, 3);
	compare("mixed shapes", &bed, 2, 0.02);
}

static void every_law_is_the_same(void)
{
	for (int normal = 0; normal < SAND_NORMAL_COUNT; ++normal)
	{
		for (int shear = 0; shear < SAND_SHEAR_COUNT; ++shear)
		{
			make_bed(&bed, 3, 3);
			set_shapes(&bed, 3);
			bed.materials[0] = (SandMaterial){.normal = (SandNormal)normal,
			                                  .shear = (SandShear)shear,
			                                  .rolling = 0.1f,
			                                  .friction = 0.4f,
			                                  .cohesion = 0.02f};
			compare("laws", &bed, 1, 0.04);
		}
	}
}

static void materials_and_sizes_are_the_same(void)
{
	make_bed(&bed, 4, 4);
	set_shapes(&bed, 3);
	bed.desc.material_count = 2;
	bed.materials[0].friction = 0.3f;
	bed.materials[1] = (SandMaterial){.friction = 0.8f, .restitution = 0.3f, .density = 1000};
	for (int i = 0; i < bed.desc.grain_count; ++i)
	{
		bed.grain_materials[i] = i % 2;
		bed.scales[i] = i % 5 == 0 ? 0.1f : 0.5f + 0.5f * (float)sand_random(9, (uint64_t)i);
	}
	bed.obstacles[0].material = 1;
	compare("materials and sizes", &bed, 2, 0.03);
}

static void obstacles_of_every_kind_are_the_same(void)
{
	make_bed(&bed, 4, 4);
	set_shapes(&bed, 3);
	bed.materials[0].shear = SAND_SHEAR_HISTORY;
	bed.obstacles[0].roughness = 0.004f;
	bed.obstacles[5] = (SandObstacle){.kind = SAND_OBSTACLE_CYLINDER,
	                                  .is_inside = 1,
	                                  .point = {0.048f, 0.048f, 0.1f},
	                                  .axis = {0, 0, 1},
	                                  .size = {0.06f, 0.2f, 0}};
	bed.obstacles[6] = (SandObstacle){
	    .kind = SAND_OBSTACLE_BOX, .is_inside = 1, .point = {0.048f, 0.048f, 0.1f}, .size = {0.055f, 0.055f, 0.2f}};
	bed.obstacles[7] = (SandObstacle){.kind = SAND_OBSTACLE_CONE,
	                                  .is_inside = 1,
	                                  .point = {0.048f, 0.048f, -0.1f},
	                                  .axis = {0, 0, 1},
	                                  .size = {0.9f, 0.05f, 0.5f}};
	bed.desc.obstacle_count = 8;
	compare("obstacles", &bed, 2, 0.04);
}

static void fields_and_outflows_are_the_same(void)
{
	make_bed(&bed, 4, 4);
	set_shapes(&bed, 3);
	bed.desc.drag = 0.5f;
	bed.desc.wind[0] = 2;
	bed.region = (SandForceRegion){{0, 0, 0}, {0.1f, 0.1f, 0.05f}, {0, 1, 3}};
	bed.desc.regions = &bed.region;
	bed.desc.region_count = 1;
	bed.outflow = (SandOutflow){{0, 0, 0}, {0.05f, 0.05f, 0.03f}};
	bed.desc.outflows = &bed.outflow;
	bed.desc.outflow_count = 1;
	compare("fields and outflows", &bed, 2, 0.04);
}

static void sleepers_and_walls_are_the_same(void)
{
	make_bed(&bed, 4, 3);
	set_shapes(&bed, 3);
	bed.materials[0].shear = SAND_SHEAR_HISTORY;
	bed.desc.sleep_speed = 0.05f;
	bed.desc.sleep_seconds = 0.02f;
	for (int i = 0; i < 16; ++i)
	{
		bed.spots[3 * i] = 0.015f + 0.03f * (float)(i % 4);
		bed.spots[3 * i + 1] = 0.015f + 0.03f * (float)(i / 4);
		bed.spots[3 * i + 2] = -0.003f;
	}
	bed.desc.wall_positions = bed.spots;
	bed.desc.wall_count = 16;
	bed.desc.wall_radius = 0.004f;
	compare("sleepers and walls", &bed, 8, 0.05);
}

static void births_are_the_same(void)
{
	make_bed(&bed, 4, 2);
	for (int i = 0; i < 4; ++i)
	{
		bed.spots[3 * i] = 0.03f + 0.03f * (float)(i % 2);
		bed.spots[3 * i + 1] = 0.03f + 0.03f * (float)(i / 2);
		bed.spots[3 * i + 2] = 0.12f;
	}
	bed.emitter = (SandEmitter){.positions = bed.spots,
	                            .position_count = 4,
	                            .velocity = {0, 0, -0.5f},
	                            .rate = 300,
	                            .begin = 0,
	                            .end = 0.3,
	                            .shape = 1};
	bed.desc.emitters = &bed.emitter;
	bed.desc.emitter_count = 1;
	compare("births", &bed, 4, 0.04);
}

// A checkpoint of either engine goes on in the other.
static void checkpoints_change_engines(void)
{
	make_bed(&bed, 4, 3);
	set_shapes(&bed, 3);
	bed.materials[0].shear = SAND_SHEAR_HISTORY;
	SandScene *scene = NULL;
	SandError err = {0};
	void *bytes = NULL;
	size_t byte_count = 0;
	CHECK_STATUS(sand_scene_create(&bed.desc, &scene, &err), SAND_OK, &err);
	SandSim *cpu = start(scene, SAND_ENGINE_CPU), *gl = start(scene, SAND_ENGINE_GL),
	        *other = start(scene, SAND_ENGINE_GL);
	for (int i = 0; i < 3; ++i)
	{
		CHECK_STATUS(sand_sim_advance(cpu, 0.04, NULL, &err), SAND_OK, &err);
		CHECK_STATUS(sand_sim_advance(i == 1 ? other : gl, 0.04, NULL, &err), SAND_OK, &err);
		CHECK_STATUS(sand_sim_save(i == 1 ? other : gl, &bytes, &byte_count, &err), SAND_OK, &err);
		CHECK_STATUS(sand_sim_load(i == 1 ? gl : other, bytes, byte_count, &err), SAND_OK, &err);
		sand_free(bytes);
		CHECK(sand_sim_hash(cpu) == sand_sim_hash(gl));
		CHECK(sand_sim_hash(cpu) == sand_sim_hash(other));
	}
	CHECK_STATUS(sand_sim_save(gl, &bytes, &byte_count, &err), SAND_OK, &err);
	SandSim *last = start(scene, SAND_ENGINE_CPU);
	CHECK_STATUS(sand_sim_load(last, bytes, byte_count, &err), SAND_OK, &err);
	sand_free(bytes);
	CHECK_INT(sand_sim_contacts(gl, NULL, 0), sand_sim_contacts(cpu, NULL, 0));
	CHECK_STATUS(sand_sim_advance(last, 0.02, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_advance(cpu, 0.02, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_advance(gl, 0.02, NULL, &err), SAND_OK, &err);
	CHECK(sand_sim_hash(cpu) == sand_sim_hash(last));
	CHECK(sand_sim_hash(cpu) == sand_sim_hash(gl));
	sand_sim_destroy(cpu);
	sand_sim_destroy(gl);
	sand_sim_destroy(other);
	sand_sim_destroy(last);
	sand_scene_destroy(scene);
}

// Every call of the device that can fail, fails once, first at each place in turn: the frame comes out the same, on a
// new device or on the CPU engine.
static void failing_devices_change_no_bit(void)
{
	make_bed(&bed, 3, 3);
	set_shapes(&bed, 1);
	bed.materials[0].shear = SAND_SHEAR_HISTORY;
	SandScene *scene = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_scene_create(&bed.desc, &scene, &err), SAND_OK, &err);
	SandSim *cpu = start(scene, SAND_ENGINE_CPU);
	CHECK_STATUS(sand_sim_advance(cpu, 0.005, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_advance(cpu, 0.005, NULL, &err), SAND_OK, &err);
	uint64_t expected = sand_sim_hash(cpu);
	for (int kind = 0; kind < 5; ++kind)
	{
		int runs = 0, lost = 0;
		bool is_clean = false;
		// Every number at first, then wider apart: dispatches are thousands.
		for (int n = 1; !is_clean && runs < 400; n += n < 60 ? 1 : n / 4, ++runs)
		{
			SandGpuFaults faults = {0};
			int *counters[5] = {&faults.buffer, &faults.program, &faults.dispatch, &faults.fence, &faults.reset};
			SandSim *sim = NULL;
			SandSimDesc desc = {.engine = SAND_ENGINE_GL, .gpu = {.refuses_hardware = true, .faults = &faults}};
			*counters[kind] = n;
			SandStatus status = sand_sim_create(scene, &desc, &sim, &err);
			if (status != SAND_OK)
			{
				CHECK(status == SAND_ERROR_GPU || status == SAND_ERROR_GPU_MEMORY || status == SAND_ERROR_GPU_LOST);
				CHECK(err.message[0] != '\0');
				continue;
			}
			// The second call is begun before the first returns, and may fail there.
			CHECK_STATUS(sand_sim_advance_ahead(sim, 0.005, 0.005, NULL, &err), SAND_OK, &err);
			CHECK_STATUS(sand_sim_advance(sim, 0.005, NULL, &err), SAND_OK, &err);
			if (!CHECK(sand_sim_hash(sim) == expected))
			{
				printf("  kind %d, number %d\n", kind, n);
			}
			lost += sand_sim_engine(sim).lost_count;
			is_clean = *counters[kind] != 0;
			sand_sim_destroy(sim);
		}
		printf("  kind %d: %d runs, %d devices lost\n", kind, runs, lost);
		CHECK(is_clean);
		CHECK(lost > 0 || kind == 1); // programs are only made at the start
	}
	sand_sim_destroy(cpu);
	sand_scene_destroy(scene);
}

// From the Nth on, every call of a kind fails: the device is given up after the second failure, for the CPU engine with
// the same bits, or with a sentence when that was asked for; until N is more than a clean run needs. The first case of
// each kind is met by the first call after the device was made: memory that is gone, a reset, a fence that never comes,
// a refused dispatch.
static void devices_that_keep_failing_are_given_up(void)
{
	static const SandStatus expected_status[5] = {SAND_ERROR_GPU_MEMORY, SAND_ERROR_GPU, SAND_ERROR_GPU, SAND_ERROR_GPU,
	                                              SAND_ERROR_GPU_LOST};
	make_bed(&bed, 3, 3);
	set_shapes(&bed, 1);
	bed.materials[0].shear = SAND_SHEAR_HISTORY;
	SandScene *scene = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_scene_create(&bed.desc, &scene, &err), SAND_OK, &err);
	SandSim *cpu = start(scene, SAND_ENGINE_CPU);
	CHECK_STATUS(sand_sim_advance(cpu, 0.005, NULL, &err), SAND_OK, &err);
	uint64_t first = sand_sim_hash(cpu);
	CHECK_STATUS(sand_sim_advance(cpu, 0.005, NULL, &err), SAND_OK, &err);
	uint64_t second = sand_sim_hash(cpu);
	size_t bytes = sand_alloc_bytes();
	for (int run = 0; run < 10; ++run)
	{
		int kind = run % 5, met = 0, n = 1;
		bool stops = run >= 5, is_clean = false;
		for (; !is_clean && met < 60; n = n < 3 ? n + 1 : n * 3)
		{
			SandGpuFaults faults = {0};
			int *counters[5] = {&faults.buffer, &faults.program, &faults.dispatch, &faults.fence, &faults.reset};
			SandSim *sim = NULL;
			SandSimDesc desc = {.engine = SAND_ENGINE_GL,
			                    .stops_without_gpu = stops,
			                    .gpu = {.refuses_hardware = true, .faults = &faults}};
			CHECK_STATUS(sand_sim_create(scene, &desc, &sim, &err), SAND_OK, &err);
			// A frame that goes well is the checkpoint that the next is taken up from.
			CHECK_STATUS(sand_sim_advance(sim, 0.005, NULL, &err), SAND_OK, &err);
			CHECK(sand_sim_hash(sim) == first && sand_sim_engine(sim).lost_count == 0);
			faults.is_persistent = true;
			*counters[kind] = n;
			// Programs are made with a device: it must be lost first.
			faults.reset = kind == 1 ? 1 : faults.reset;
			SandStatus status = sand_sim_advance(sim, 0.005, NULL, &err);
			int lost = sand_sim_engine(sim).lost_count;
			is_clean = lost == 0 || (kind == 1 && *counters[1] > 1);
			if (lost >= 2)
			{
				++met;
				CHECK(stops ? status == expected_status[kind] || status == SAND_ERROR_GPU_LOST : status == SAND_OK);
				CHECK(stops ? strlen(err.message) > 20 : strlen(sand_sim_engine(sim).note) > 20);
				CHECK_INT(sand_sim_engine(sim).engine, stops ? sand_sim_engine(sim).engine : SAND_ENGINE_CPU);
			}
			if (status == SAND_OK && !CHECK(sand_sim_hash(sim) == second))
			{
				printf("  kind %d, number %d\n", kind, n);
			}
			// Once the device is back, a simulation that stopped goes on, from where it stood.
			faults = (SandGpuFaults){0};
			if (status != SAND_OK)
			{
				CHECK(sand_sim_hash(sim) == first);
				CHECK_STATUS(sand_sim_advance(sim, 0.005, NULL, &err), SAND_OK, &err);
				CHECK(sand_sim_hash(sim) == second);
			}
			sand_sim_destroy(sim);
			CHECK_INT(sand_alloc_bytes(), bytes);
		}
		printf("  kind %d, %s: given up %d times, clean at %d\n", kind, stops ? "stops" : "to the cpu", met, n);
		CHECK(is_clean && met > 0);
	}
	sand_sim_destroy(cpu);
	sand_scene_destroy(scene);
}

static void a_cancelled_device_stops_at_a_whole_step(void)
{
	make_bed(&bed, 3, 3);
	SandScene *scene = NULL;
	SandError err = {0};
	SandCancel cancel = {1};
	CHECK_STATUS(sand_scene_create(&bed.desc, &scene, &err), SAND_OK, &err);
	SandSim *gl = start(scene, SAND_ENGINE_GL), *cpu = start(scene, SAND_ENGINE_CPU);
	CHECK_STATUS(sand_sim_advance(gl, 0.02, &cancel, &err), SAND_CANCELLED, &err);
	CHECK_STATUS(sand_sim_advance(gl, 0.02, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_advance(cpu, 0.02, NULL, &err), SAND_OK, &err);
	CHECK(sand_sim_hash(cpu) == sand_sim_hash(gl));
	sand_sim_destroy(gl);
	sand_sim_destroy(cpu);
	sand_scene_destroy(scene);
}

// Calls that are begun ahead: the state stays that of the call which returned, whatever happens to the next, and every
// frame has the bits of the CPU engine. The device tells how often it began the next before it waited for the last.
static void states_are_handed_over_while_the_next_are_computed(void)
{
	enum
	{
		FRAMES = 8
	};
	make_bed(&bed, 4, 4);
	set_shapes(&bed, 3);
	bed.materials[0].shear = SAND_SHEAR_HISTORY;
	SandScene *scene = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_scene_create(&bed.desc, &scene, &err), SAND_OK, &err);
	SandSim *gl = start(scene, SAND_ENGINE_GL), *cpu = start(scene, SAND_ENGINE_CPU);
	const double frame = 0.01;
	for (int i = 0; i < FRAMES; ++i)
	{
		CHECK_STATUS(sand_sim_advance(cpu, frame, NULL, &err), SAND_OK, &err);
		CHECK_STATUS(sand_sim_advance_ahead(gl, frame, frame, NULL, &err), SAND_OK, &err);
		CHECK(sand_sim_hash(cpu) == sand_sim_hash(gl));
		CHECK_INT(sand_sim_info(gl).step_count, sand_sim_info(cpu).step_count);
	}
	CHECK(sand_sim_engine(gl).ahead_count > 0);
	printf("  %d of %d states were read back with the next call under way\n", sand_sim_engine(gl).ahead_count, FRAMES);
	// Another time than was said.
	CHECK_STATUS(sand_sim_advance(cpu, 0.5 * frame, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_advance_ahead(gl, 0.5 * frame, frame, NULL, &err), SAND_OK, &err);
	CHECK(sand_sim_hash(cpu) == sand_sim_hash(gl));
	// A state loaded in between, saved while the next call was under way.
	void *bytes = NULL;
	size_t byte_count = 0;
	uint64_t saved = sand_sim_hash(gl);
	CHECK_STATUS(sand_sim_save(gl, &bytes, &byte_count, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_advance_ahead(gl, frame, frame, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_load(gl, bytes, byte_count, &err), SAND_OK, &err);
	CHECK(sand_sim_hash(gl) == saved);
	CHECK_STATUS(sand_sim_advance(cpu, frame, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_advance_ahead(gl, frame, frame, NULL, &err), SAND_OK, &err);
	CHECK(sand_sim_hash(cpu) == sand_sim_hash(gl));
	sand_free(bytes);
	// A cancel reaches the call under way, at a whole step; the rest of its time may be asked for.
	SandCancel cancel = {1};
	double before = sand_sim_info(gl).time;
	SandStatus status = sand_sim_advance_ahead(gl, frame, frame, &cancel, &err);
	double passed = sand_sim_info(gl).time - before;
	CHECK(status == SAND_CANCELLED ? passed < frame : status == SAND_OK && fabs(passed - frame) < 1e-9);
	CHECK_STATUS(sand_sim_advance_ahead(gl, frame, frame, NULL, &err), SAND_OK, &err);
	sand_sim_destroy(gl); // with a call under way
	sand_sim_destroy(cpu);
	sand_scene_destroy(scene);
}

// A device whose blocks are too small says so before the first step, with numbers, and how many grains it could take.
static void scenes_too_large_are_refused_with_numbers(void)
{
	make_bed(&bed, 16, 9); // its cells take 262,160 bytes, however few grains there are
	SandScene *scene = NULL;
	SandSim *sim = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_scene_create(&bed.desc, &scene, &err), SAND_OK, &err);
	SandSimDesc desc = {.engine = SAND_ENGINE_GL, .gpu = {.refuses_hardware = true, .block_bytes = 262176}};
	CHECK_STATUS(sand_sim_create(scene, &desc, &sim, &err), SAND_ERROR_GPU_MEMORY, &err);
	CHECK(sim == NULL);
	CHECK_CONTAINS(err.message, "2304 grains");
	CHECK_CONTAINS(err.message, "262176 bytes");
	CHECK_CONTAINS(err.message, "about 2048 grains");
	// So many fit; one more does not.
	bed.desc.grain_count = 2048;
	sand_scene_destroy(scene);
	CHECK_STATUS(sand_scene_create(&bed.desc, &scene, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_create(scene, &desc, &sim, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_advance(sim, 0.01, NULL, &err), SAND_OK, &err);
	CHECK_INT(sand_sim_engine(sim).engine, SAND_ENGINE_GL);
	sand_sim_destroy(sim);
	sand_scene_destroy(scene);
	bed.desc.grain_count = 2049;
	CHECK_STATUS(sand_scene_create(&bed.desc, &scene, &err), SAND_OK, &err);
	CHECK_STATUS(sand_sim_create(scene, &desc, &sim, &err), SAND_ERROR_GPU_MEMORY, &err);
	sand_scene_destroy(scene);
}

// Poses along an arc, turning about z and x.
static void make_track(Bed *to, int number, const double middle[3], double radius, double turn)
{
	for (int i = 0; i < 8; ++i)
	{
		double *sample = to->samples[number] + 7 * i, angle = turn * i, share = 0.5 * angle;
		sample[0] = middle[0] + radius * cos(angle);
		sample[1] = middle[1] + radius * sin(angle);
		sample[2] = middle[2] + 0.002 * i;
		sample[3] = cos(share);
		sample[4] = 0.6 * sin(share);
		sample[5] = 0;
		sample[6] = 0.8 * sin(share);
	}
	to->tracks[number] = (SandTrack){.begin = 0, .interval = 0.02, .samples = to->samples[number], .sample_count = 8};
}

// A box of triangles that stands around the sand, a slab that turns in it, and a floor that bends.
static void meshes_hold_as_on_the_cpu(void)
{
	const float low[3] = {-0.001f, -0.001f, -0.001f}, high[3] = {0.097f, 0.097f, 0.3f};
	const float slab_low[3] = {-0.02f, -0.004f, -0.004f}, slab_high[3] = {0.02f, 0.004f, 0.004f};
	const float floor_low[3] = {0.001f, 0.001f, 0.0005f}, floor_high[3] = {0.095f, 0.095f, 0.0015f};
	TestShape shapes[3] = {{0}};
	test_shape_grid_box(&shapes[0], low, high, 3);
	test_shape_box(&shapes[1], slab_low, slab_high, false);
	test_shape_grid_box(&shapes[2], floor_low, floor_high, 3);
	for (int shear = 0; shear < SAND_SHEAR_COUNT; ++shear)
	{
		make_bed(&bed, 4, 3);
		set_shapes(&bed, 3);
		bed.materials[0].shear = (SandShear)shear;
		bed.materials[0].rolling = shear == 0 ? 0 : 0.1f;
		bed.desc.obstacle_count = 0;
		for (int i = 0; i < bed.desc.grain_count; ++i)
		{
			bed.places[3 * i + 2] += 0.03f;
		}
		for (int i = 0; i < 3; ++i)
		{
			bed.meshes[i] = test_shape_mesh(&shapes[i], "mesh");
			bed.colliders[i] = (SandColliderDesc){.mesh = bed.meshes[i]};
		}
		make_track(&bed, 0, (const double[3]){0.04, 0.048, 0.012}, 0.01, 0.3);
		bed.colliders[1].track = &bed.tracks[0];
		int vertices = bed.meshes[2]->vertex_count;
		if (!CHECK(3 * vertices * 4 <= (int)(sizeof(bed.frames) / sizeof(bed.frames[0]))))
		{
			return;
		}
		for (int f = 0; f < 4; ++f)
		{
			for (int v = 0; v < vertices; ++v)
			{
				float *to = bed.frames + 3 * (vertices * f + v);
				memcpy(to, bed.meshes[2]->vertices + 3 * v, 3 * sizeof(float));
				to[2] += 0.003f * (float)f * (float)sin(30.0 * (double)to[0]);
			}
		}
		bed.colliders[2].frames = bed.frames;
		bed.colliders[2].frame_count = 4;
		bed.colliders[2].frame_interval = 0.03;
		bed.desc.colliders = bed.colliders;
		bed.desc.collider_count = 3;
		compare("meshes", &bed, 3, 0.04);
		for (int i = 0; i < 3; ++i)
		{
			sand_mesh_destroy(bed.meshes[i]);
		}
	}
	for (int i = 0; i < 3; ++i)
	{
		test_shape_free(&shapes[i]);
	}
}

// One body is driven through the sand and let go, one is free; another sleeper-prone bed beside.
static void bodies_are_driven_and_let_go_as_on_the_cpu(void)
{
	make_bed(&bed, 4, 3);
	set_shapes(&bed, 3);
	bed.materials[0].shear = SAND_SHEAR_HISTORY;
	bed.desc.sleep_speed = 0.02f;
	make_track(&bed, 0, (const double[3]){0.012, 0.012, 0.014}, 0.0, 0.4);
	for (int i = 0; i < 8; ++i)
	{
		bed.samples[0][7 * i] += 0.004 * i;
	}
	bed.grain_shapes[0] = 2;
	bed.bodies[0] = (SandBody){.grain = 0, .track = &bed.tracks[0], .release = 0.05};
	bed.bodies[1] = (SandBody){.grain = 5};
	bed.desc.bodies = bed.bodies;
	bed.desc.body_count = 2;
	compare("bodies", &bed, 4, 0.03);
}

// ---- long ones, with BARCHAN_ALL set -------------------------------------------------------------------------------

// 10,000 grains after 1,000 steps.
static void ten_thousand_grains_are_the_same(int shape)
{
	enum
	{
		WIDE = 25,
		GRAINS = 16 * WIDE * WIDE
	};
	static float places[3 * GRAINS], velocities[3 * GRAINS], scales[GRAINS];
	static int32_t shapes[GRAINS], materials[GRAINS];
	make_bed(&bed, 2, 1);
	float radius = 0.005f, pitch = shape == 0 ? 2.02f * radius : 4.6f * radius;
	for (int i = 0; i < GRAINS; ++i)
	{
		const int cell[3] = {i % WIDE, i / WIDE % WIDE, i / (WIDE * WIDE)};
		for (int k = 0; k < 3; ++k)
		{
			places[3 * i + k] = pitch * ((float)cell[k] + 0.5f);
			velocities[3 * i + k] = (float)(sand_random(9, (uint64_t)(3 * i + k)) - 0.5);
		}
		scales[i] = 1;
		shapes[i] = shape;
	}
	for (int i = 0; i < 5; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			bed.obstacles[i].point[k] = bed.obstacles[i].axis[k] < 0 ? pitch * WIDE : 0;
		}
	}
	bed.materials[0].shear = SAND_SHEAR_HISTORY;
	bed.desc.grain_positions = places;
	bed.desc.grain_velocities = velocities;
	bed.desc.grain_scales = scales;
	bed.desc.grain_shapes = shapes;
	bed.desc.grain_materials = materials;
	bed.desc.grain_count = GRAINS;
	SandScene *scene = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_scene_create(&bed.desc, &scene, &err), SAND_OK, &err);
	SandSim *gl = start(scene, SAND_ENGINE_GL), *cpu = start(scene, SAND_ENGINE_CPU);
	for (int frame = 0; frame < 10 && sand_sim_info(cpu).step_count < 1000; ++frame)
	{
		double seconds = 200 * sand_sim_info(cpu).step_seconds;
		CHECK_STATUS(sand_sim_advance(cpu, seconds, NULL, &err), SAND_OK, &err);
		CHECK_STATUS(sand_sim_advance(gl, seconds, NULL, &err), SAND_OK, &err);
		CHECK(sand_sim_hash(cpu) == sand_sim_hash(gl));
	}
	SandSimInfo info = sand_sim_info(gl);
	printf("  shape %d: %d grains, %lld steps, %lld lists, %lld contacts, hash %016llx\n", shape, info.grain_count,
	       (long long)info.step_count, (long long)info.list_count, (long long)info.contact_count,
	       (unsigned long long)sand_sim_hash(gl));
	CHECK(info.step_count >= 1000 && info.contact_count > 1000);
	sand_sim_destroy(gl);
	sand_sim_destroy(cpu);
	sand_scene_destroy(scene);
}

static void ten_thousand_spheres_are_the_same_after_a_thousand_steps(void)
{
	ten_thousand_grains_are_the_same(0);
}

static void ten_thousand_tetrahedra_are_the_same_after_a_thousand_steps(void)
{
	ten_thousand_grains_are_the_same(1);
}

enum
{
	SEEDS = 6,
	BULK_SIDE = 8,
	BULK_LAYERS = 9,
	ANGLE = 0,
	PACKING,
	RATE,
	BULK_COUNT
};

// A block of spheres, jittered by its seed. kind ANGLE: let go on a rough plane, the angle of the heap (degrees), of a
// cone with its mean height and radius; PACKING: between walls, the share of space up to twice the mean height; RATE:
// grains a second that an outflow in the middle of the floor takes.
static double bulk_result(int kind, int seed, SandEngine engine, const char *defines)
{
	const float radius = 0.005f, pitch = 2.1f * radius, width = pitch * BULK_SIDE;
	make_bed(&bed, BULK_SIDE, BULK_LAYERS);
	int count = (int)bed.desc.grain_count;
	for (int i = 0; i < count; ++i)
	{
		const int cell[3] = {i % BULK_SIDE, i / BULK_SIDE % BULK_SIDE, i / (BULK_SIDE * BULK_SIDE)};
		for (int k = 0; k < 3; ++k)
		{
			uint64_t index = (uint64_t)(3 * i + k);
			bed.places[3 * i + k] =
			    pitch * ((float)cell[k] + 0.5f) + (float)(sand_random((uint64_t)(100 + seed), index) - 0.5) * 0.0004f;
			bed.velocities[3 * i + k] = (float)(sand_random((uint64_t)(200 + seed), index) - 0.5) * 0.2f;
			bed.places[3 * i + k] += k == 2 && kind == ANGLE ? 1.2f * radius : 0; // above the bumps
		}
	}
	for (int i = 0; i < 5; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			bed.obstacles[i].point[k] = bed.obstacles[i].axis[k] < 0 ? width : 0;
		}
	}
	bed.obstacles[0].roughness = kind == ANGLE ? radius : 0;
	bed.desc.obstacle_count = kind == ANGLE ? 1 : 5;
	bed.materials[0].shear = SAND_SHEAR_HISTORY;
	bed.materials[0].friction = 0.5f;
	bed.materials[0].rolling = 0.2f;
	float middle = 0.5f * width, half = 4 * radius;
	bed.outflow = (SandOutflow){{middle - half, middle - half, -radius}, {middle + half, middle + half, 1.5f * radius}};
	bed.desc.outflows = &bed.outflow;
	bed.desc.outflow_count = kind == RATE ? 1 : 0;
	SandScene *scene = NULL;
	SandSim *sim = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_scene_create(&bed.desc, &scene, &err), SAND_OK, &err);
	SandSimDesc desc = {.engine = engine, .gl_defines = defines, .gpu.refuses_hardware = true};
	CHECK_STATUS(sand_sim_create(scene, &desc, &sim, &err), SAND_OK, &err);
	double seconds = kind == RATE ? 0.25 : 0.5, height = 0, away = 0;
	CHECK_STATUS(sand_sim_advance(sim, seconds, NULL, &err), SAND_OK, &err);
	sand_sim_read(sim, &(SandSimArrays){.positions = bed.places});
	for (int i = 0; i < count; ++i)
	{
		double x = (double)bed.places[3 * i] - (double)middle, y = (double)bed.places[3 * i + 1] - (double)middle;
		height += (double)bed.places[3 * i + 2] / count;
		away += sqrt(x * x + y * y) / count;
	}
	double volume = 4.18879 * pow((double)radius, 3) * count, space = (double)(width * width) * 2 * height;
	double result = kind == ANGLE     ? atan(2 * height / away) * 57.29578
	                : kind == PACKING ? volume / space
	                                  : sand_sim_info(sim).gone_count / seconds;
	sand_sim_destroy(sim);
	sand_scene_destroy(scene);
	return result;
}

// A device whose forces are off by their last bits comes to other places of single grains, and to the same sand.
static void other_last_bits_make_the_same_sand(void)
{
	const char *names[BULK_COUNT] = {"angle of the heap", "packing", "flow rate"};
	for (int kind = 0; kind < BULK_COUNT; ++kind)
	{
		double mean[2] = {0}, scatter = 0, results[2][SEEDS];
		int differing = 0;
		for (int seed = 0; seed < SEEDS; ++seed)
		{
			results[0][seed] = bulk_result(kind, seed, SAND_ENGINE_CPU, NULL);
			results[1][seed] = bulk_result(kind, seed, SAND_ENGINE_GL, "#define OTHER_BITS\n");
			mean[0] += results[0][seed] / SEEDS;
			mean[1] += results[1][seed] / SEEDS;
			differing += results[0][seed] != results[1][seed];
		}
		for (int seed = 0; seed < SEEDS; ++seed)
		{
			scatter += (results[0][seed] - mean[0]) * (results[0][seed] - mean[0]) / (SEEDS - 1);
		}
		// Two means of as many: three times the standard error of their difference.
		double error = 3 * sqrt(2 * scatter / SEEDS);
		printf("  %s: cpu %.5g, scatter %.3g; other bits %.5g; %d of %d differ\n", names[kind], mean[0], sqrt(scatter),
		       mean[1], differing, SEEDS);
		CHECK(differing > 0);
		CHECK_NEAR(mean[1], mean[0], error);
		for (int seed = 0; seed < SEEDS; ++seed)
		{
			CHECK_NEAR(results[1][seed], mean[0], 4 * sqrt(scatter));
		}
	}
}

void test_glsim(void)
{
	if (!has_device())
	{
		SKIP("glsim", "no software GL device on this machine");
		return;
	}
	RUN(spheres_fall_as_on_the_cpu);
	RUN(history_friction_is_the_same);
	RUN(clusters_fall_as_on_the_cpu);
	RUN(every_law_is_the_same);
	RUN(materials_and_sizes_are_the_same);
	RUN(obstacles_of_every_kind_are_the_same);
	RUN(fields_and_outflows_are_the_same);
	RUN(sleepers_and_walls_are_the_same);
	RUN(births_are_the_same);
	RUN(meshes_hold_as_on_the_cpu);
	RUN(bodies_are_driven_and_let_go_as_on_the_cpu);
	RUN(checkpoints_change_engines);
	RUN(a_cancelled_device_stops_at_a_whole_step);
	RUN(states_are_handed_over_while_the_next_are_computed);
	RUN(scenes_too_large_are_refused_with_numbers);
	RUN(failing_devices_change_no_bit);
	RUN(devices_that_keep_failing_are_given_up);
	if (getenv("BARCHAN_ALL") != NULL)
	{
		RUN(ten_thousand_spheres_are_the_same_after_a_thousand_steps);
		RUN(ten_thousand_tetrahedra_are_the_same_after_a_thousand_steps);
		RUN(other_last_bits_make_the_same_sand);
	}
}
