// Tests of light: every sphere against a ray tracer on the processor, shadows against closed forms, refusals, faults.
// Skipped, and counted as such, where there is no device.
#include "light.h"
#include "test.h"

static const float unit_offset[3] = {0, 0, 0};
static const float unit_radius[1] = {1};
static const SandLightShape unit_sphere = {unit_offset, unit_radius, 1};

typedef struct Ball
{
	float place[3];
	float radius;
} Ball;

static SandLight *make_light(int width, int height, int sample_edge)
{
	SandError err = {0};
	SandLight *light = NULL;
	SandLightDesc desc = {.width = width, .height = height, .sample_edge = sample_edge};
	CHECK_STATUS(sand_light_create(&desc, &light, &err), SAND_OK, &err);
	return light;
}

static void close_light(SandLight *light)
{
	CHECK_INT(sand_light_error_count(light), 0);
	sand_light_destroy(light);
}

/// The ray through the centre of a pixel, x from the left and y from the top, in the world.
static void make_ray(const SandLightCamera *camera, int width, int height, double x, double y, double from[3],
                     double along[3])
{
	double u = (2 * (x + 0.5) / width - 1 - (double)camera->shift[0]) * (double)camera->lens[0];
	double v = (1 - 2 * (y + 0.5) / height - (double)camera->shift[1]) * (double)camera->lens[1];
	const float *q = camera->rotation;
	double w = (double)q[0], i = (double)q[1], j = (double)q[2], k = (double)q[3];
	double m[3][3] = {{1 - 2 * (j * j + k * k), 2 * (i * j - w * k), 2 * (i * k + w * j)},
	                  {2 * (i * j + w * k), 1 - 2 * (i * i + k * k), 2 * (j * k - w * i)},
	                  {2 * (i * k - w * j), 2 * (j * k + w * i), 1 - 2 * (i * i + j * j)}};
	for (int c = 0; c < 3; ++c)
	{
		double aside = m[c][0] * u + m[c][1] * v;
		from[c] = (double)camera->position[c] + (camera->is_orthographic ? aside : 0);
		along[c] = -m[c][2] + (camera->is_orthographic ? 0 : aside);
	}
}

/// Depth of the nearest ball in front of the near clip along the ray, 0 when there is none, and its normal.
static double trace(const SandLightCamera *camera, const Ball *balls, int count, const double from[3],
                    const double along[3], double normal[3])
{
	double best = 0;
	for (int i = 0; i < count; ++i)
	{
		double aa = 0, ab = 0, bb = 0;
		for (int c = 0; c < 3; ++c)
		{
			double way = (double)balls[i].place[c] - from[c];
			aa += along[c] * along[c];
			ab += along[c] * way;
			bb += way * way;
		}
		double r = (double)balls[i].radius;
		double root = ab * ab - aa * (bb - r * r);
		double depth = root >= 0 ? (ab - sqrt(root)) / aa : -1;
		if (depth >= (double)camera->clip[0] && (best == 0 || depth < best))
		{
			best = depth;
			for (int c = 0; c < 3; ++c)
			{
				normal[c] = (from[c] + depth * along[c] - (double)balls[i].place[c]) / r;
			}
		}
	}
	return best;
}

/// Draws the balls and compares every pixel with the ray tracer.
static void compare(const SandLightCamera *camera, const Ball *balls, int count, const char *name)
{
	enum
	{
		WIDTH = 160,
		HEIGHT = 120
	};
	static float positions[64][3], scales[64], depths[HEIGHT][WIDTH], normals[HEIGHT][WIDTH][3];
	static bool expected[HEIGHT + 2][WIDTH + 2];
	for (int i = 0; i < count; ++i)
	{
		memcpy(positions[i], balls[i].place, sizeof positions[i]);
		scales[i] = balls[i].radius;
	}
	SandLightScene scene = {
	    .camera = *camera,
	    .grains = {.count = count,
	               .positions = positions[0],
	               .scales = scales,
	               .shapes = &unit_sphere,
	               .shape_count = 1,
	               .is_round = true},
	    .sun_direction = {0.3f, -0.4f, 1},
	    .sun_colour = {3, 3, 3},
	    .sky_colour = {0.5f, 0.6f, 0.8f},
	};
	SandLight *light = make_light(WIDTH, HEIGHT, 1);
	if (light == NULL)
	{
		return;
	}
	SandError err = {0};
	SandLightImage image = {.depths = depths[0], .normals = normals[0][0]};
	CHECK_STATUS(sand_light_draw(light, &scene, &image, &err), SAND_OK, &err);
	double worst_normal = 0, worst_depth = 0;
	int hit_count = 0, edge_count = 0, far_count = 0;
	memset(expected, 0, sizeof expected);
	for (int y = -1; y <= HEIGHT; ++y)
	{
		for (int x = -1; x <= WIDTH; ++x)
		{
			double from[3], along[3], normal[3] = {0};
			make_ray(camera, WIDTH, HEIGHT, x, y, from, along);
			double depth = trace(camera, balls, count, from, along, normal);
			expected[y + 1][x + 1] = depth > 0;
			if (x < 0 || y < 0 || x == WIDTH || y == HEIGHT || depth <= 0 || depths[y][x] <= 0)
			{
				continue;
			}
			++hit_count;
			// Where one ball ends before another, the edge may fall on either side of the pixel's centre.
			double off = fabs((double)depths[y][x] - depth) / depth, turn = 0;
			for (int c = 0; c < 3; ++c)
			{
				turn = fmax(turn, fabs((double)normals[y][x][c] - normal[c]));
			}
			bool is_seam = false;
			for (int k = 0; k < 9 && off > 1e-3; ++k)
			{
				double other[3];
				make_ray(camera, WIDTH, HEIGHT, x + 0.1 * (k % 3 - 1), y + 0.1 * (k / 3 - 1), from, along);
				double beside = trace(camera, balls, count, from, along, other);
				is_seam = is_seam || fabs((double)depths[y][x] - beside) / depth < 1e-3;
			}
			if (!is_seam)
			{
				worst_depth = fmax(worst_depth, off);
				worst_normal = fmax(worst_normal, turn);
			}
		}
	}
	for (int y = 0; y < HEIGHT; ++y)
	{
		for (int x = 0; x < WIDTH; ++x)
		{
			if ((depths[y][x] > 0) != expected[y + 1][x + 1])
			{
				bool is_edge = false;
				for (int k = 0; k < 9; ++k)
				{
					is_edge = is_edge || expected[y + k / 3][x + k % 3] != expected[y + 1][x + 1];
				}
				edge_count += is_edge;
				far_count += !is_edge;
			}
		}
	}
	printf("%s: %d pixels, %d at edges differ, normals within %.2e, depths within %.2e\n", name, hit_count, edge_count,
	       worst_normal, worst_depth);
	CHECK(hit_count > 20);
	CHECK_INT(far_count, 0);
	CHECK(edge_count <= hit_count / 50 + 2);
	CHECK(worst_normal < 1e-3);
	CHECK(worst_depth < 1e-3);
	close_light(light);
}

static const SandLightCamera straight = {
    .position = {0, 0, 0}, .rotation = {1, 0, 0, 0}, .lens = {0.8f, 0.6f}, .clip = {0.01f, 100}};

static void a_sphere_is_where_a_ray_meets_it(void)
{
	static const Ball middle = {{0, 0, -3}, 0.5f}, corner = {{2.2f, 1.6f, -3}, 0.5f}, edge = {{-2.8f, 0.3f, -3}, 0.6f};
	static const Ball near_eye = {{0.1f, 0.05f, -0.12f}, 0.08f}, around = {{0, -1.02f, -0.3f}, 1};
	static const Ball small = {{0.7f, -0.4f, -40}, 1.4f};
	compare(&straight, &middle, 1, "middle");
	compare(&straight, &corner, 1, "corner");
	compare(&straight, &edge, 1, "centre outside");
	compare(&straight, &near_eye, 1, "near the eye");
	compare(&straight, &around, 1, "reaches behind the eye");
	compare(&straight, &small, 1, "far");
	SandLightCamera wide = straight;
	wide.lens[0] = 4;
	wide.lens[1] = 3;
	static const Ball stretched[] = {{{7.2f, 4.8f, -2}, 0.9f}, {{-5.5f, 4.9f, -2}, 0.7f}, {{-7.8f, -5.5f, -2}, 0.4f}};
	compare(&wide, stretched, 3, "wide view");
	SandLightCamera parallel = straight;
	parallel.is_orthographic = true;
	parallel.lens[0] = 1.6f;
	parallel.lens[1] = 1.2f;
	static const Ball side[] = {{{1.5f, 0.9f, -2}, 0.4f}, {{-0.3f, 0.1f, -5}, 0.6f}};
	compare(&parallel, side, 2, "orthographic");
}

static void many_spheres_meet_the_rays_too(void)
{
	Ball balls[60];
	for (uint64_t i = 0; i < 60; ++i)
	{
		balls[i] = (Ball){{(float)(4 * sand_random(5, 4 * i) - 2), (float)(4 * sand_random(5, 4 * i + 1) - 2),
		                   (float)(2 * sand_random(5, 4 * i + 2) - 1)},
		                  (float)(0.05 + 0.3 * sand_random(5, 4 * i + 3))};
	}
	SandLightCamera turned = {
	    .position = {2.1f, -3.2f, 1.7f}, .lens = {0.7f, 0.525f}, .shift = {0.2f, -0.15f}, .clip = {0.05f, 50}};
	double q[4] = {0.79, 0.44, 0.19, 0.37}, length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
	for (int i = 0; i < 4; ++i)
	{
		turned.rotation[i] = (float)(q[i] / length);
	}
	compare(&turned, balls, 60, "sixty, turned and shifted");
}

/// Overlap of two masks: both over either.
static double overlap(const bool *a, const bool *b, int count)
{
	int both = 0, either = 0;
	for (int i = 0; i < count; ++i)
	{
		both += a[i] && b[i];
		either += a[i] || b[i];
	}
	return either > 0 ? (double)both / either : 1;
}

static void a_grain_shades_the_ground_where_the_sun_cannot_reach(void)
{
	enum
	{
		WIDTH = 200,
		HEIGHT = 150
	};
	static float depths[HEIGHT][WIDTH], lit[HEIGHT][WIDTH];
	static bool mask[HEIGHT * WIDTH], expected[HEIGHT * WIDTH];
	// Looking straight down from 4 m: u, v of the plane are x, y.
	SandLightScene scene = {
	    .camera = {.position = {0, 0, 4}, .rotation = {1, 0, 0, 0}, .lens = {0.4f, 0.3f}, .clip = {0.1f, 20}},
	    .grains = {.count = 1,
	               .positions = (const float[3]){-0.3f, 0.1f, 0.5f},
	               .scales = (const float[1]){0.25f},
	               .shapes = &unit_sphere,
	               .shape_count = 1,
	               .is_round = true},
	    .sun_direction = {-0.9f, 0.3f, 1.2f},
	    .sun_colour = {3, 3, 3},
	    .has_ground = true,
	    .ground_colour = {0.5f, 0.5f, 0.5f},
	};
	SandLight *light = make_light(WIDTH, HEIGHT, 1);
	if (light == NULL)
	{
		return;
	}
	SandError err = {0};
	SandLightImage image = {.depths = depths[0], .lit = lit[0]};
	CHECK_STATUS(sand_light_draw(light, &scene, &image, &err), SAND_OK, &err);
	const double sun[3] = {-0.9, 0.3, 1.2}, centre[3] = {-0.3, 0.1, 0.5};
	int ground_count = 0;
	for (int y = 0; y < HEIGHT; ++y)
	{
		for (int x = 0; x < WIDTH; ++x)
		{
			bool is_ground = fabsf(depths[y][x] - 4) < 1e-3f;
			ground_count += is_ground;
			double place[3], from[3], along[3];
			make_ray(&scene.camera, WIDTH, HEIGHT, x, y, from, along);
			double ss = 0, sw = 0, ww = 0;
			for (int c = 0; c < 3; ++c)
			{
				place[c] = from[c] + 4 * along[c];
				ss += sun[c] * sun[c];
				sw += sun[c] * (centre[c] - place[c]);
				ww += (centre[c] - place[c]) * (centre[c] - place[c]);
			}
			expected[y * WIDTH + x] = is_ground && ww - sw * sw / ss < 0.25 * 0.25;
			mask[y * WIDTH + x] = is_ground && lit[y][x] < 0.5f;
		}
	}
	double share = overlap(mask, expected, WIDTH * HEIGHT);
	printf("shadow of a grain on the ground: overlap %.4f of %d pixels\n", share, ground_count);
	CHECK(ground_count > WIDTH * HEIGHT / 2);
	CHECK(share > 0.97);
	// Without shadows everything that faces the sun is lit.
	scene.has_no_shadows = true;
	CHECK_STATUS(sand_light_draw(light, &scene, &image, &err), SAND_OK, &err);
	CHECK_NEAR(lit[HEIGHT / 2][WIDTH - 5], 1, 0);
	close_light(light);
}

/// A heap of clusters on the ground with a tilted box over it, for pictures that must repeat.
typedef struct Heap
{
	float positions[400][3], rotations[400][4];
	float offsets[4][3], radii[4];
	SandLightShape shape;
	TestShape box;
	SandLightMesh meshes[2];
	SandLightScene scene;
} Heap;

static void make_heap(Heap *heap)
{
	memset(heap, 0, sizeof *heap);
	for (uint64_t i = 0; i < 400; ++i)
	{
		for (uint64_t k = 0; k < 3; ++k)
		{
			heap->positions[i][k] = (float)((k < 2 ? 1.0 : 0.3) * (sand_random(3, 8 * i + k) - (k < 2 ? 0.5 : 0)));
		}
		for (uint64_t k = 0; k < 4; ++k)
		{
			heap->rotations[i][k] = (float)(sand_random(3, 8 * i + 3 + k) - 0.5);
		}
	}
	for (int i = 0; i < 4; ++i)
	{
		heap->offsets[i][0] = i & 1 ? 0.02f : -0.02f;
		heap->offsets[i][1] = i & 2 ? 0.02f : -0.02f;
		heap->offsets[i][2] = i == 0 || i == 3 ? 0.02f : -0.02f;
		heap->radii[i] = 0.024f;
	}
	heap->shape = (SandLightShape){heap->offsets[0], heap->radii, 4};
	test_shape_box(&heap->box, (const float[3]){-0.2f, -0.2f, -0.1f}, (const float[3]){0.2f, 0.2f, 0.1f}, false);
	for (int i = 0; i < 2; ++i)
	{
		heap->meshes[i] = (SandLightMesh){
		    .vertices = heap->box.vertices,
		    .vertex_count = heap->box.vertex_count,
		    .triangles = heap->box.triangles,
		    .triangle_count = heap->box.triangle_count,
		    .position = {i == 0 ? 0.1f : -0.4f, 0, 0.6f},
		    .rotation = {0.9f, 0.3f, 0.1f, 0.2f},
		    .colour = {0.6f, 0.1f, 0.1f},
		    .is_smooth = i == 1,
		    .is_clear = i == 1,
		};
	}
	heap->scene = (SandLightScene){
	    .camera = {.position = {0, -3, 1.6f}, .rotation = {0.84f, 0.54f, 0, 0}, .lens = {0.4f, 0.3f}},
	    .grains = {.count = 400,
	               .positions = heap->positions[0],
	               .rotations = heap->rotations[0],
	               .shapes = &heap->shape,
	               .shape_count = 1},
	    .meshes = heap->meshes,
	    .mesh_count = 2,
	    .sun_direction = {0.5f, -0.5f, 1},
	    .sun_colour = {3, 2.9f, 2.7f},
	    .sky_colour = {0.5f, 0.6f, 0.8f},
	    .floor_colour = {0.2f, 0.2f, 0.2f},
	    .has_ground = true,
	    .ground_colour = {0.4f, 0.35f, 0.3f},
	};
}

enum
{
	SMALL_WIDTH = 64,
	SMALL_HEIGHT = 48
};

static void a_picture_repeats_to_the_bit(void)
{
	static uint8_t first[SMALL_HEIGHT * SMALL_WIDTH * 4], second[SMALL_HEIGHT * SMALL_WIDTH * 4];
	Heap *heap = malloc(sizeof *heap);
	make_heap(heap);
	SandError err = {0};
	SandLight *light = make_light(SMALL_WIDTH, SMALL_HEIGHT, 0);
	if (light != NULL)
	{
		CHECK_INT(sand_light_sample_edge(light), 2);
		CHECK_STATUS(sand_light_draw(light, &heap->scene, &(SandLightImage){.pixels = first}, &err), SAND_OK, &err);
		heap->scene.has_no_shadows = true;
		CHECK_STATUS(sand_light_draw(light, &heap->scene, &(SandLightImage){.pixels = second}, &err), SAND_OK, &err);
		int darker_count = 0, brighter_count = 0;
		for (int i = 0; i < SMALL_WIDTH * SMALL_HEIGHT; ++i)
		{
			darker_count += first[4 * i] + 20 < second[4 * i];
			brighter_count += first[4 * i] > second[4 * i] + 1;
		}
		printf("shadows make %d pixels darker, %d brighter\n", darker_count, brighter_count);
		CHECK(darker_count > SMALL_WIDTH * SMALL_HEIGHT / 50);
		CHECK_INT(brighter_count, 0);
		heap->scene.has_no_shadows = false;
		CHECK_STATUS(sand_light_draw(light, &heap->scene, &(SandLightImage){.pixels = second}, &err), SAND_OK, &err);
		CHECK(memcmp(first, second, sizeof first) == 0);
		CHECK_INT(sand_light_times(light).draw_count, 3);
		CHECK_INT(sand_light_times(light).sphere_count, 1600);
		int opaque_count = 0;
		for (int i = 0; i < SMALL_WIDTH * SMALL_HEIGHT; ++i)
		{
			opaque_count += first[4 * i + 3] == 255;
		}
		CHECK_INT(opaque_count, SMALL_WIDTH * SMALL_HEIGHT);
		close_light(light);
	}
	test_shape_free(&heap->box);
	free(heap);
}

static void what_cannot_be_drawn_is_refused(void)
{
	SandError err = {0};
	SandLight *light = NULL;
	CHECK_STATUS(sand_light_create(&(SandLightDesc){.width = 0, .height = 9}, &light, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_light_create(&(SandLightDesc){.width = 9, .height = 9, .sample_edge = 5}, &light, &err),
	             SAND_ERROR_ARGUMENT, &err);
	CHECK(light == NULL);
	light = make_light(8, 8, 1);
	if (light == NULL)
	{
		return;
	}
	const SandLightImage none = {0};
	SandLightScene scene = {.camera = straight};
	CHECK_STATUS(sand_light_draw(light, &scene, &none, &err), SAND_OK, &err); // nothing is a picture too
	scene.camera.lens[1] = 0;
	CHECK_STATUS(sand_light_draw(light, &scene, &none, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "lens");
	scene.camera = straight;
	scene.camera.clip[1] = scene.camera.clip[0];
	CHECK_STATUS(sand_light_draw(light, &scene, &none, &err), SAND_ERROR_ARGUMENT, &err);
	scene.camera = straight;
	scene.grains = (SandLightGrains){
	    .count = 1, .positions = (const float[3]){0, NAN, 0}, .shapes = &unit_sphere, .shape_count = 1};
	CHECK_STATUS(sand_light_draw(light, &scene, &none, &err), SAND_ERROR_ARGUMENT, &err);
	scene.grains.positions = (const float[3]){0, 0, -1};
	scene.grains.shape_of = (const int32_t[1]){1};
	CHECK_STATUS(sand_light_draw(light, &scene, &none, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "shape 1");
	scene.grains.shape_of = NULL;
	scene.grains.scales = (const float[1]){-1};
	CHECK_STATUS(sand_light_draw(light, &scene, &none, &err), SAND_ERROR_ARGUMENT, &err);
	scene.grains.scales = NULL;
	SandLightMesh mesh = {.vertices = (const float[9]){0},
	                      .vertex_count = 3,
	                      .triangles = (const int32_t[3]){0, 1, 3},
	                      .triangle_count = 1};
	scene.meshes = &mesh;
	scene.mesh_count = 1;
	CHECK_STATUS(sand_light_draw(light, &scene, &none, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "Mesh 0");
	close_light(light);
	sand_light_destroy(NULL);
}

static void faults_of_the_device_end_in_a_sentence_without_a_leak(void)
{
	static const struct
	{
		const char *name;
		size_t counter;
		SandStatus expected;
		int least;
	} kinds[] = {
	    {"buffer", offsetof(SandGpuFaults, buffer), SAND_ERROR_GPU_MEMORY, 6},
	    {"texture", offsetof(SandGpuFaults, texture), SAND_ERROR_GPU_MEMORY, 9},
	    {"target", offsetof(SandGpuFaults, target), SAND_ERROR_GPU, 5},
	    {"program", offsetof(SandGpuFaults, program), SAND_ERROR_GPU, 8},
	    {"dispatch", offsetof(SandGpuFaults, dispatch), SAND_ERROR_GPU, 6},
	    {"reset", offsetof(SandGpuFaults, reset), SAND_ERROR_GPU_LOST, 2},
	};
	Heap *heap = malloc(sizeof *heap);
	make_heap(heap);
	static uint8_t pixels[8 * 8 * 4];
	for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; ++kind)
	{
		int met_count = 0;
		for (int n = 1; n < 100; ++n)
		{
			size_t bytes = sand_alloc_bytes();
			SandGpuFaults faults = {0};
			int *counter = (int *)((char *)&faults + kinds[kind].counter);
			*counter = n;
			SandError err = {0};
			SandLight *light = NULL;
			SandLightDesc desc = {.width = 8, .height = 8, .shadow_size = 16, .device = {.faults = &faults}};
			SandStatus status = sand_light_create(&desc, &light, &err);
			if (status == SAND_OK)
			{
				status = sand_light_draw(light, &heap->scene, &(SandLightImage){.pixels = pixels}, &err);
				CHECK_INT(sand_light_error_count(light), 0);
			}
			sand_light_destroy(light);
			CHECK_INT(sand_alloc_bytes(), bytes);
			if (*counter != 0)
			{
				CHECK_STATUS(status, SAND_OK, &err);
				break;
			}
			++met_count;
			CHECK_STATUS(status, kinds[kind].expected, &err);
		}
		printf("%s: %d faults met\n", kinds[kind].name, met_count);
		CHECK(met_count >= kinds[kind].least);
	}
	for (uint64_t n = 1; n < 100; ++n)
	{
		size_t bytes = sand_alloc_bytes();
		SandError err = {0};
		SandLight *light = NULL;
		sand_alloc_fail_after(n, false);
		SandStatus status =
		    sand_light_create(&(SandLightDesc){.width = 8, .height = 8, .shadow_size = 16}, &light, &err);
		if (status == SAND_OK)
		{
			status = sand_light_draw(light, &heap->scene, &(SandLightImage){.pixels = pixels}, &err);
		}
		sand_alloc_fail_after(0, false);
		sand_light_destroy(light);
		CHECK_INT(sand_alloc_bytes(), bytes);
		if (status == SAND_OK)
		{
			CHECK(n > 8);
			break;
		}
		if (!CHECK_STATUS(status, SAND_ERROR_MEMORY, &err))
		{
			break;
		}
	}
	test_shape_free(&heap->box);
	free(heap);
}

void test_light(void)
{
	SandError err = {0};
	SandLight *light = NULL;
	if (sand_light_create(&(SandLightDesc){.width = 8, .height = 8}, &light, &err) == SAND_ERROR_GPU &&
	    strstr(err.message, "No GPU") != NULL)
	{
		SKIP("every test of light", err.message);
		return;
	}
	sand_light_destroy(light);
	RUN(a_sphere_is_where_a_ray_meets_it);
	RUN(many_spheres_meet_the_rays_too);
	RUN(a_grain_shades_the_ground_where_the_sun_cannot_reach);
	RUN(a_picture_repeats_to_the_bit);
	RUN(what_cannot_be_drawn_is_refused);
	RUN(faults_of_the_device_end_in_a_sentence_without_a_leak);
}
