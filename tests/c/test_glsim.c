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
	compare("spheres", &bed, 4, 0.02);
}

static void history_friction_is_the_same(void)
{
	make_bed(&bed, SIDE, SIDE);
	bed.materials[0].shear = SAND_SHEAR_HISTORY;
	bed.materials[0].friction = 0.5f;
	compare("history", &bed, 4, 0.05);
}

static void clusters_fall_as_on_the_cpu(void)
{
	make_bed(&bed, SIDE, SIDE);
	set_shapes(&bed, 1);
	compare("tetrahedra", &bed, 4, 0.03);
	set_shapes(&bed, 3);
	compare("mixed shapes", &bed, 4, 0.03);
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
}
