// light: pictures of sand through the GL door: grains as analytic spheres, meshes, a ground, a sun with shadows, a sky.
// Comes in: grains, meshes, a camera and lights, in SI units. Goes out: pixels, and for those who measure, depth,
// normal and sunlight of every sample. Knows no file and no physics.
#include "light.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define ROW_COUNT 131072  // spheres or corners that are handed over at once
#define ROUGH_PIXELS 1.5f // radius in pixels from which cuts are seen
#define MERGE_PIXELS 0.6f // radius in pixels below which a cluster is one sphere
#define CUT_REACH 0.93f   // radius of the disc that hides as much as a ball with its cuts
#define GLINT_SHARE 0.06  // of the grains: quartz with a face that is still whole

/// Twins of View and Shade in shaders/light.glsl and shaders/shade.glsl (std140: vectors of four floats).
typedef struct ViewBlock
{
	float right[4], up[4], back[4], lens[4], range[4], kind[4];
} ViewBlock;
typedef struct ShadeBlock
{
	float sun[4], sun_colour[4], sky[4], floor_light[4], up[4], ground[4], ground_colour[4];
	float shadow_x[4], shadow_y[4], shadow_z[4], size[4], switches[4];
	float field_low[4], field_size[4], field_colour[4];
} ShadeBlock;

/// One row of 82_spheres.vert.
typedef struct SphereRow
{
	float centre[3], radius; // eye space, m
	uint32_t seed, turn, colour, kind;
} SphereRow;
/// One row of 83_mesh.vert.
typedef struct CornerRow
{
	float place[4], normal[3];
	uint32_t colour;
} CornerRow;

/// How spheres are drawn. A point holds those that lie well inside the picture and are small enough.
typedef enum List
{
	LIST_PLAIN = 0, // points without cuts
	LIST_ROUGH,     // points with cuts
	LIST_WIDE,      // two triangles each
	LIST_COUNT
} List;

/// One eye: the camera, or the sun over its shadow map.
typedef struct Eye
{
	float origin[3];
	float axes[3][3]; // right, up, back
	float lens[2], shift[2], range[2];
	bool is_parallel;
	int width, height;
	float edges[4];        // slopes (parallel: m) of left, right, low and high
	float edge_lengths[4]; // sqrt(1 + slope^2)
} Eye;

struct SandLight
{
	SandGpu *gpu;
	SandLightDesc desc;
	int sample_width, sample_height;
	SandGpuProgram spheres[LIST_COUNT], discs[LIST_COUNT];
	SandGpuProgram mesh, ground, field, shade, resolve;
	SandGpuTexture surfaces, paints, depths, clears, clear_depths, clear_paints, shadow, radiance, pixels;
	SandGpuTarget seen, clear, sun, shaded, picture;
	SandGpuBuffer rows[LIST_COUNT], corners, view, light;
	SphereRow *lists[LIST_COUNT];
	int list_counts[LIST_COUNT];
	CornerRow *corner_rows;
	float *samples; // RGBA per sample
	SandLightTimes times;
};

typedef struct Drawing
{
	SandLight *light;
	const SandLightScene *scene;
	const SandLightImage *image;
	float grain_radius;     // m, mean of the spheres
	float merged_radii[16]; // m at scale 1, of the first shapes; 0 = not merged
	float (*normals)[3];    // of the vertices of the mesh that is drawn
	SandGpuTexture field;
	bool has_sun, has_clear;
} Drawing;

// Small vectors

static float dot(const float a[3], const float b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const float a[3], const float b[3], float out[3])
{
	out[0] = a[1] * b[2] - a[2] * b[1];
	out[1] = a[2] * b[0] - a[0] * b[2];
	out[2] = a[0] * b[1] - a[1] * b[0];
}

static bool normalise(float v[3])
{
	float length = sqrtf(dot(v, v));
	if (!(length > 0) || !isfinite(length))
	{
		return false;
	}
	v[0] /= length;
	v[1] /= length;
	v[2] /= length;
	return true;
}

/// Columns are the rotated axes. A quaternion of length 0 is none.
static void matrix_of(const float q[4], float m[3][3])
{
	float length = sqrtf(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
	float w = 1, x = 0, y = 0, z = 0;
	if (length > 0)
	{
		w = q[0] / length;
		x = q[1] / length;
		y = q[2] / length;
		z = q[3] / length;
	}
	float rows[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
	                    {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
	                    {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
	memcpy(m, rows, sizeof rows);
}

static void apply(const float m[3][3], const float v[3], float out[3])
{
	for (int i = 0; i < 3; ++i)
	{
		out[i] = dot(m[i], v);
	}
}

static uint32_t pack(float a, float b, float c, float d)
{
	float values[4] = {a, b, c, d};
	uint32_t word = 0;
	for (int i = 0; i < 4; ++i)
	{
		float v = values[i] < 0 ? 0 : values[i] > 1 ? 1 : values[i];
		word |= (uint32_t)(v * 255 + 0.5f) << (8 * i);
	}
	return word;
}

static uint32_t pack_turn(const float q[4])
{
	float length = sqrtf(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
	uint32_t word = 0;
	for (int i = 0; i < 4; ++i)
	{
		float v = length > 0 ? q[i] / length : i == 0;
		word |= (uint32_t)((int)lrintf(v * 127) & 255) << (8 * i);
	}
	return word;
}

static uint32_t mix(uint32_t i)
{
	i = (i ^ (i >> 16)) * 0x7feb352du;
	i = (i ^ (i >> 15)) * 0x846ca68bu;
	return i ^ (i >> 16);
}

static float unit(uint32_t bits)
{
	return (float)(bits >> 8) * (1.0f / 16777216.0f);
}

// The eye

static void set_edges(Eye *eye)
{
	for (int i = 0; i < 4; ++i)
	{
		int axis = i / 2;
		eye->edges[i] = ((i % 2 == 0 ? -1.0f : 1.0f) - eye->shift[axis]) * eye->lens[axis];
		eye->edge_lengths[i] = eye->is_parallel ? 1 : sqrtf(1 + eye->edges[i] * eye->edges[i]);
	}
}

static void to_eye(const Eye *eye, const float world[3], float out[3])
{
	float way[3] = {world[0] - eye->origin[0], world[1] - eye->origin[1], world[2] - eye->origin[2]};
	apply(eye->axes, way, out);
}

static void upload_view(SandGpu *gpu, const SandLight *light, const Eye *eye)
{
	ViewBlock block = {
	    .lens = {eye->lens[0], eye->lens[1], eye->shift[0], eye->shift[1]},
	    .range = {eye->range[0], eye->range[1], (float)eye->width, (float)eye->height},
	    .kind = {eye->is_parallel ? 1.0f : 0.0f, 0, 0, 0},
	};
	memcpy(block.right, eye->axes[0], sizeof eye->axes[0]);
	memcpy(block.up, eye->axes[1], sizeof eye->axes[1]);
	memcpy(block.back, eye->axes[2], sizeof eye->axes[2]);
	sand_gpu_upload(gpu, light->view, 0, &block, sizeof block);
	sand_gpu_bind_uniform(gpu, 0, light->view, 0, 0);
}

static Eye camera_eye(const SandLight *light, const SandLightCamera *camera)
{
	Eye eye = {
	    .lens = {camera->lens[0], camera->lens[1]},
	    .shift = {camera->shift[0], camera->shift[1]},
	    .range = {camera->clip[0], camera->clip[1]},
	    .is_parallel = camera->is_orthographic,
	    .width = light->sample_width,
	    .height = light->sample_height,
	};
	if (camera->clip[0] == 0 && camera->clip[1] == 0)
	{
		eye.range[0] = 0.01f;
		eye.range[1] = 1000;
	}
	memcpy(eye.origin, camera->position, sizeof eye.origin);
	float m[3][3];
	matrix_of(camera->rotation, m);
	for (int i = 0; i < 3; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			eye.axes[i][k] = m[k][i];
		}
	}
	set_edges(&eye);
	return eye;
}

// Spheres

static void draw_list(SandGpu *gpu, SandLight *light, SandGpuTarget target, List list, bool are_discs)
{
	int count = light->list_counts[list];
	light->list_counts[list] = 0;
	if (count == 0)
	{
		return;
	}
	bool is_wide = list == LIST_WIDE;
	sand_gpu_upload(gpu, light->rows[list], 0, light->lists[list], (int64_t)count * (int64_t)sizeof(SphereRow));
	sand_gpu_draw(gpu,
	              &(SandGpuDraw){
	                  .target = target,
	                  .program = are_discs ? light->discs[list] : light->spheres[list],
	                  .inputs = {{light->rows[list], 0, sizeof(SphereRow), 4, false, is_wide},
	                             {light->rows[list], offsetof(SphereRow, seed), sizeof(SphereRow), 4, true, is_wide}},
	                  .input_count = 2,
	                  .vertex_count = is_wide ? 6 : count,
	                  .instance_count = is_wide ? count : 1,
	                  .is_points = !is_wide,
	              });
}

/// Puts a sphere into the list that can hold it, or nowhere when it is out of view.
static void add_sphere(SandGpu *gpu, SandLight *light, SandGpuTarget target, const Eye *eye, const SphereRow *row,
                       bool are_discs)
{
	float d = -row->centre[2], r = row->radius;
	float w = eye->is_parallel ? 1 : d;
	if (d + r < eye->range[0] || d - r > eye->range[1])
	{
		return;
	}
	for (int i = 0; i < 4; ++i)
	{
		float beyond = (row->centre[i / 2] - eye->edges[i] * w) * (i % 2 == 0 ? -1.0f : 1.0f);
		if (beyond > r * eye->edge_lengths[i])
		{
			return;
		}
	}
	// Width in pixels, a little too large near the edges of a wide view.
	float pixels = 0;
	List list = LIST_WIDE;
	if (eye->is_parallel || d > 4 * r)
	{
		float x = row->centre[0] / (w * eye->lens[0]) + eye->shift[0];
		float y = row->centre[1] / (w * eye->lens[1]) + eye->shift[1];
		float per_m = fmaxf((float)eye->width / eye->lens[0], (float)eye->height / eye->lens[1]) * 0.5f / w;
		float slant =
		    eye->is_parallel ? 1 : 1 + (row->centre[0] * row->centre[0] + row->centre[1] * row->centre[1]) / (d * d);
		pixels = r * per_m;
		float limit = 0.4f * (float)sand_gpu_info(gpu)->limits.point_size;
		// All of it inside: then so is the middle of its picture, which is not that of its centre.
		float half = pixels * slant + 1;
		if (fabsf(x) + 2 * half / (float)eye->width < 1 && fabsf(y) + 2 * half / (float)eye->height < 1 &&
		    pixels * slant < limit)
		{
			list = (row->kind & 1u) != 0 && pixels > ROUGH_PIXELS ? LIST_ROUGH : LIST_PLAIN;
		}
	}
	light->lists[list][light->list_counts[list]++] = *row;
	light->times.sphere_count++;
	if (light->list_counts[list] == ROW_COUNT)
	{
		draw_list(gpu, light, target, list, are_discs);
	}
}

static const float desert[5][3] = {{0.16f, 0.075f, 0.030f},
                                   {0.42f, 0.22f, 0.085f},
                                   {0.58f, 0.37f, 0.17f},
                                   {0.66f, 0.47f, 0.26f},
                                   {0.76f, 0.64f, 0.45f}};
static const float palette_places[5] = {0, 0.07f, 0.35f, 0.75f, 1};

/// The colour of a grain: a mineral by chance, darker when wet (water between grains holds light back), a little gloss.
static uint32_t colour_of(const SandLightGrains *grains, uint32_t seed, float wetness)
{
	const float(*palette)[3] = grains->palette;
	bool is_given = false;
	for (int i = 0; i < 15; ++i)
	{
		is_given = is_given || palette[i / 3][i % 3] != 0;
	}
	palette = is_given ? palette : desert;
	float share = unit(mix(seed));
	int k = 0;
	while (k < 3 && share > palette_places[k + 1])
	{
		++k;
	}
	float between = (share - palette_places[k]) / (palette_places[k + 1] - palette_places[k]);
	float bright = 0.92f + 0.16f * unit(mix(seed + 77u));
	float out[3];
	for (int i = 0; i < 3; ++i)
	{
		float linear = (palette[k][i] + between * (palette[k + 1][i] - palette[k][i])) * bright;
		linear = powf(linear, 1 + wetness) * (1 - 0.45f * wetness);
		out[i] = powf(linear < 0 ? 0 : linear, 1 / 2.2f);
	}
	float gloss = 0.05f + 0.2f * unit(mix(seed + 999u)) + 0.6f * wetness;
	bool glints = unit(mix(seed + 5u)) < (float)GLINT_SHARE;
	return pack(out[0], out[1], out[2], glints ? 1 : gloss < 0.9f ? gloss : 0.9f);
}

/// All spheres of all grains into the target, seen from the eye; for the sun as discs.
static void draw_spheres(SandGpu *gpu, Drawing *drawing, SandGpuTarget target, const Eye *eye, bool are_discs)
{
	SandLight *light = drawing->light;
	const SandLightGrains *grains = &drawing->scene->grains;
	light->times.sphere_count = 0;
	float per_m = fmaxf((float)eye->width / eye->lens[0], (float)eye->height / eye->lens[1]) * 0.5f;
	for (int64_t i = 0; i < grains->count; ++i)
	{
		if (grains->is_hidden != NULL && grains->is_hidden[i])
		{
			continue;
		}
		int number = grains->shape_of != NULL ? grains->shape_of[i] : 0;
		const SandLightShape *shape = &grains->shapes[number];
		float scale = grains->scales != NULL ? grains->scales[i] : 1;
		uint32_t seed = grains->seeds != NULL ? grains->seeds[i] : (uint32_t)i;
		float place[3];
		to_eye(eye, &grains->positions[3 * i], place);
		static const float none[4] = {1, 0, 0, 0};
		const float *rotation = grains->rotations != NULL ? &grains->rotations[4 * i] : none;
		bool has_cuts = !grains->is_round && !are_discs;
		SphereRow row = {.seed = seed, .kind = has_cuts ? 1 : 0};
		if (!are_discs)
		{
			float wetness = grains->wetness != NULL ? grains->wetness[i] : grains->all_wetness;
			row.colour = colour_of(grains, seed, wetness < 0 ? 0 : wetness > 1 ? 1 : wetness);
		}
		row.turn = has_cuts ? pack_turn(rotation) : 0;
		float part = are_discs && !grains->is_round ? CUT_REACH : 1;
		float merged = number < 16 ? drawing->merged_radii[number] * scale : 0;
		float depth = eye->is_parallel ? 1 : -place[2];
		if (merged > 0 && depth > 0 && merged * per_m < MERGE_PIXELS * depth)
		{
			memcpy(row.centre, place, sizeof place);
			row.radius = merged;
			add_sphere(gpu, light, target, eye, &row, are_discs);
			continue;
		}
		float m[3][3];
		matrix_of(rotation, m);
		for (int k = 0; k < shape->sphere_count; ++k)
		{
			float turned[3], aside[3];
			apply(m, &shape->offsets[3 * k], turned);
			apply(eye->axes, turned, aside);
			for (int c = 0; c < 3; ++c)
			{
				row.centre[c] = place[c] + scale * aside[c];
			}
			row.radius = part * scale * shape->radii[k];
			row.seed = seed + (uint32_t)k * 0x9e3779b9u;
			add_sphere(gpu, light, target, eye, &row, are_discs);
		}
	}
	for (int list = 0; list < LIST_COUNT; ++list)
	{
		draw_list(gpu, light, target, (List)list, are_discs);
	}
}

// Meshes

static void draw_corners(SandGpu *gpu, SandLight *light, SandGpuTarget target, int count)
{
	sand_gpu_upload(gpu, light->corners, 0, light->corner_rows, (int64_t)count * (int64_t)sizeof(CornerRow));
	sand_gpu_draw(gpu, &(SandGpuDraw){
	                       .target = target,
	                       .program = light->mesh,
	                       .inputs = {{light->corners, 0, sizeof(CornerRow), 4, false, false},
	                                  {light->corners, offsetof(CornerRow, normal), sizeof(CornerRow), 3, false, false},
	                                  {light->corners, offsetof(CornerRow, colour), sizeof(CornerRow), 1, true, false}},
	                       .input_count = 3,
	                       .vertex_count = count,
	                   });
}

/// Normals of the vertices, in the mesh's axes: those of the triangles around, by area.
static void make_normals(const SandLightMesh *mesh, float (*normals)[3])
{
	memset(normals, 0, (size_t)mesh->vertex_count * sizeof(*normals));
	for (int i = 0; i < mesh->triangle_count; ++i)
	{
		const int32_t *t = &mesh->triangles[3 * i];
		const float *a = &mesh->vertices[3 * t[0]], *b = &mesh->vertices[3 * t[1]], *c = &mesh->vertices[3 * t[2]];
		float ab[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, ac[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]}, n[3];
		cross(ab, ac, n);
		for (int k = 0; k < 9; ++k)
		{
			normals[t[k / 3]][k % 3] += n[k % 3];
		}
	}
}

static void draw_mesh(SandGpu *gpu, Drawing *drawing, SandGpuTarget target, const Eye *eye, const SandLightMesh *mesh)
{
	SandLight *light = drawing->light;
	float m[3][3];
	matrix_of(mesh->rotation, m);
	float rgb[3];
	for (int i = 0; i < 3; ++i)
	{
		rgb[i] = powf(mesh->colour[i] > 0 ? mesh->colour[i] : 0, 1 / 2.2f);
	}
	uint32_t colour = pack(rgb[0], rgb[1], rgb[2], mesh->gloss < 0.9f ? mesh->gloss : 0.9f);
	if (mesh->is_smooth)
	{
		make_normals(mesh, drawing->normals);
	}
	int count = 0;
	for (int i = 0; i < mesh->triangle_count; ++i)
	{
		const int32_t *t = &mesh->triangles[3 * i];
		CornerRow *rows = &light->corner_rows[count];
		for (int k = 0; k < 3; ++k)
		{
			float world[3];
			apply(m, &mesh->vertices[3 * t[k]], world);
			for (int c = 0; c < 3; ++c)
			{
				world[c] += mesh->position[c];
			}
			rows[k] = (CornerRow){.colour = colour};
			to_eye(eye, world, rows[k].place);
			if (mesh->is_smooth)
			{
				float turned[3], normal[3];
				memcpy(normal, drawing->normals[t[k]], sizeof normal);
				if (!normalise(normal))
				{
					normal[2] = 1;
				}
				apply(m, normal, turned);
				apply(eye->axes, turned, rows[k].normal);
			}
		}
		if (!mesh->is_smooth)
		{
			float ab[3], ac[3], n[3];
			for (int c = 0; c < 3; ++c)
			{
				ab[c] = rows[1].place[c] - rows[0].place[c];
				ac[c] = rows[2].place[c] - rows[0].place[c];
			}
			cross(ab, ac, n);
			if (!normalise(n))
			{
				continue; // no area: nothing to see
			}
			for (int k = 0; k < 3; ++k)
			{
				memcpy(rows[k].normal, n, sizeof n);
			}
		}
		count += 3;
		if (count + 3 > ROW_COUNT)
		{
			draw_corners(gpu, light, target, count);
			count = 0;
		}
	}
	if (count > 0)
	{
		draw_corners(gpu, light, target, count);
	}
}

static void draw_meshes(SandGpu *gpu, Drawing *drawing, SandGpuTarget target, const Eye *eye, bool are_clear)
{
	for (int i = 0; i < drawing->scene->mesh_count; ++i)
	{
		if (drawing->scene->meshes[i].is_clear == are_clear)
		{
			draw_mesh(gpu, drawing, target, eye, &drawing->scene->meshes[i]);
		}
	}
}

// The sun over its shadow map

static void widen(float low[3], float high[3], const float place[3], float by)
{
	for (int i = 0; i < 3; ++i)
	{
		low[i] = fminf(low[i], place[i] - by);
		high[i] = fmaxf(high[i], place[i] + by);
	}
}

static float shape_reach(const SandLightShape *shape)
{
	float reach = 0;
	for (int k = 0; k < shape->sphere_count; ++k)
	{
		reach = fmaxf(reach, sqrtf(dot(&shape->offsets[3 * k], &shape->offsets[3 * k])) + shape->radii[k]);
	}
	return reach;
}

/// Bounds, in the sun's axes, of everything that throws a shadow about the sand. A mesh much larger than all the rest
/// is a floor or a room: it is drawn into the map, but does not stretch it.
static bool measure_casters(const Drawing *drawing, const Eye *sun, float low[3], float high[3])
{
	const SandLightGrains *grains = &drawing->scene->grains;
	for (int i = 0; i < 3; ++i)
	{
		low[i] = INFINITY;
		high[i] = -INFINITY;
	}
	float reach = 0;
	for (int i = 0; i < grains->shape_count; ++i)
	{
		reach = fmaxf(reach, shape_reach(&grains->shapes[i]));
	}
	for (int64_t i = 0; i < grains->count; ++i)
	{
		if (grains->is_hidden == NULL || !grains->is_hidden[i])
		{
			float place[3];
			to_eye(sun, &grains->positions[3 * i], place);
			widen(low, high, place, reach * (grains->scales != NULL ? grains->scales[i] : 1));
		}
	}
	float across = fmaxf(high[0] - low[0], fmaxf(high[1] - low[1], high[2] - low[2]));
	for (int i = 0; i < drawing->scene->mesh_count; ++i)
	{
		const SandLightMesh *mesh = &drawing->scene->meshes[i];
		float m[3][3], mesh_low[3] = {INFINITY, INFINITY, INFINITY}, mesh_high[3] = {-INFINITY, -INFINITY, -INFINITY};
		matrix_of(mesh->rotation, m);
		for (int k = 0; k < mesh->vertex_count && !mesh->is_clear; ++k)
		{
			float world[3], place[3];
			apply(m, &mesh->vertices[3 * k], world);
			for (int c = 0; c < 3; ++c)
			{
				world[c] += mesh->position[c];
			}
			to_eye(sun, world, place);
			widen(mesh_low, mesh_high, place, 0);
		}
		bool is_wide = false;
		for (int c = 0; c < 3; ++c)
		{
			is_wide = is_wide || mesh_high[c] - mesh_low[c] > 4 * across;
		}
		for (int c = 0; c < 3 && mesh_low[0] <= mesh_high[0]; ++c)
		{
			// Along the light all of it counts, or it would be cut off.
			bool counts = c == 2 || !(across > 0) || !is_wide;
			low[c] = counts ? fminf(low[c], mesh_low[c]) : low[c];
			high[c] = counts ? fmaxf(high[c], mesh_high[c]) : high[c];
		}
	}
	return low[0] < high[0] && low[1] < high[1];
}

/// The eye of the sun: covers what is seen and can be in shadow. False when nothing is.
static bool aim_sun(Drawing *drawing, const Eye *camera, const float *samples, Eye *sun)
{
	const SandLight *light = drawing->light;
	*sun = (Eye){.is_parallel = true, .width = light->desc.shadow_size, .height = light->desc.shadow_size};
	memcpy(sun->axes[2], drawing->scene->sun_direction, sizeof sun->axes[2]);
	if (!normalise(sun->axes[2]))
	{
		return false;
	}
	memcpy(sun->origin, camera->origin, sizeof sun->origin); // small numbers near the eye
	float across[3] = {0, 0, 0};
	int least = 0;
	for (int i = 1; i < 3; ++i)
	{
		least = fabsf(sun->axes[2][i]) < fabsf(sun->axes[2][least]) ? i : least;
	}
	across[least] = 1;
	cross(across, sun->axes[2], sun->axes[0]);
	(void)normalise(sun->axes[0]);
	cross(sun->axes[2], sun->axes[0], sun->axes[1]);
	float low[3], high[3];
	if (!measure_casters(drawing, sun, low, high))
	{
		return false;
	}
	// What is seen, in the sun's axes: from the camera's axes in one step.
	float turn[3][3];
	for (int i = 0; i < 3; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			turn[i][k] = dot(sun->axes[i], camera->axes[k]);
		}
	}
	float seen_low[3] = {INFINITY, INFINITY, INFINITY}, seen_high[3] = {-INFINITY, -INFINITY, -INFINITY};
	for (int y = 0; y < camera->height; y += 2)
	{
		float v = camera->edges[2] + (camera->edges[3] - camera->edges[2]) * ((float)y + 0.5f) / (float)camera->height;
		for (int x = 0; x < camera->width; x += 2)
		{
			float depth = samples[4 * ((size_t)y * (size_t)camera->width + (size_t)x) + 3];
			if (depth > 0)
			{
				float u =
				    camera->edges[0] + (camera->edges[1] - camera->edges[0]) * ((float)x + 0.5f) / (float)camera->width;
				float w = camera->is_parallel ? 1 : depth;
				float place[3] = {u * w, v * w, -depth}, turned[3];
				apply(turn, place, turned);
				widen(seen_low, seen_high, turned, 0);
			}
		}
	}
	float margin = 4 * drawing->grain_radius;
	for (int i = 0; i < 2; ++i)
	{
		low[i] = fmaxf(low[i], seen_low[i] - margin);
		high[i] = fminf(high[i], seen_high[i] + margin);
		if (!(low[i] < high[i]))
		{
			return false;
		}
		// Whole sixteenths of the width, so that the map does not creep under standing grains from frame to frame.
		float step = exp2f(ceilf(log2f((high[i] - low[i]) / 16)));
		low[i] = floorf(low[i] / step) * step;
		high[i] = ceilf(high[i] / step) * step;
	}
	low[2] = fminf(low[2], seen_low[2]);
	high[2] = fmaxf(high[2], seen_high[2]);
	float middle[3] = {0.5f * (low[0] + high[0]), 0.5f * (low[1] + high[1]), high[2]};
	for (int k = 0; k < 3; ++k)
	{
		for (int i = 0; i < 3; ++i)
		{
			sun->origin[k] += sun->axes[i][k] * middle[i];
		}
	}
	sun->lens[0] = 0.5f * (high[0] - low[0]);
	sun->lens[1] = 0.5f * (high[1] - low[1]);
	float length = high[2] - low[2];
	sun->range[0] = -0.01f * length - 2 * margin;
	sun->range[1] = 1.01f * length + 2 * margin;
	set_edges(sun);
	return true;
}

// The picture

static void fill_shade(const Drawing *drawing, const Eye *camera, const Eye *sun, bool has_shadows, ShadeBlock *block)
{
	const SandLightScene *scene = drawing->scene;
	const SandLight *light = drawing->light;
	*block = (ShadeBlock){0};
	float direction[3], up[3] = {0, 0, 1};
	memcpy(direction, scene->sun_direction, sizeof direction);
	if (drawing->has_sun && normalise(direction))
	{
		apply(camera->axes, direction, block->sun);
		memcpy(block->sun_colour, scene->sun_colour, sizeof scene->sun_colour);
	}
	block->sun[3] = 0.5f * scene->sun_angle;
	block->sun_colour[3] = scene->exposure > 0 ? scene->exposure : 1;
	memcpy(block->sky, scene->sky_colour, sizeof scene->sky_colour);
	memcpy(block->floor_light, scene->floor_colour, sizeof scene->floor_colour);
	apply(camera->axes, up, block->up);
	apply(camera->axes, up, block->ground);
	float place[3] = {0, 0, scene->ground_height}, seen[3];
	to_eye(camera, place, seen);
	block->ground[3] = dot(block->ground, seen);
	for (int i = 0; i < 3; ++i)
	{
		block->ground_colour[i] = powf(scene->ground_colour[i] > 0 ? scene->ground_colour[i] : 0, 1 / 2.2f);
	}
	block->ground_colour[3] = drawing->grain_radius;
	block->size[0] = (float)light->desc.width;
	block->size[1] = (float)light->desc.height;
	block->size[2] = (float)light->desc.sample_edge;
	block->size[3] = 24 * drawing->grain_radius;
	block->switches[0] = has_shadows ? 1 : 0;
	block->switches[1] = scene->has_no_occlusion ? 0 : 1;
	block->switches[2] = drawing->has_clear ? 1 : 0;
	block->switches[3] = (float)(scene->seed & 0xffffu);
	const SandLightField *field = scene->field;
	for (int i = 0; i < 3 && field != NULL; ++i)
	{
		block->field_low[i] = field->origin[i] - camera->origin[i];
		block->field_colour[i] = powf(field->colour[i] > 0 ? field->colour[i] : 0, 1 / 2.2f);
	}
	if (field != NULL)
	{
		block->field_low[3] = field->spacing;
		block->field_size[0] = (float)(field->width - 1);
		block->field_size[1] = (float)(field->height - 1);
		block->field_size[2] = (float)(field->depth - 1);
	}
	if (has_shadows)
	{
		float texel = 2 * fmaxf(sun->lens[0], sun->lens[1]) / (float)sun->width;
		block->floor_light[3] = texel;
		// The disc of the sun, seen from a shadow some grains below what throws it.
		block->up[3] = fmaxf(0.6f * texel, tanf(fminf(0.5f * scene->sun_angle, 1)) * 4 * drawing->grain_radius);
		float *rows[3] = {block->shadow_x, block->shadow_y, block->shadow_z};
		float way[3] = {camera->origin[0] - sun->origin[0], camera->origin[1] - sun->origin[1],
		                camera->origin[2] - sun->origin[2]};
		for (int i = 0; i < 3; ++i)
		{
			float scale = i < 2 ? 0.5f / sun->lens[i] : -1 / (sun->range[1] - sun->range[0]);
			float start = i < 2 ? 0.5f : -sun->range[0] / (sun->range[1] - sun->range[0]);
			for (int k = 0; k < 3; ++k)
			{
				rows[i][k] = scale * dot(sun->axes[i], camera->axes[k]);
			}
			rows[i][3] = scale * dot(sun->axes[i], way) + start;
		}
	}
}

static void bind_shade(SandGpu *gpu, const SandLight *light, const ShadeBlock *block)
{
	sand_gpu_upload(gpu, light->light, 0, block, sizeof *block);
	sand_gpu_bind_uniform(gpu, 1, light->light, 0, 0);
}

/// A measurement of the host's clock around work that is waited for.
static double begin_part(SandGpu *gpu, const SandLight *light)
{
	if (!light->desc.has_timers)
	{
		return 0;
	}
	sand_gpu_finish(gpu);
	return sand_ticks();
}

static void end_part(SandGpu *gpu, SandLight *light, SandLightPart part, double start)
{
	if (light->desc.has_timers)
	{
		sand_gpu_finish(gpu);
		light->times.seconds[part] += sand_ticks() - start;
	}
}

/// Copies one value of every sample, the lowest row first, to rows from the top.
static void flip(const SandLight *light, const float *samples, int first, int count, float *out)
{
	size_t width = (size_t)light->sample_width, height = (size_t)light->sample_height;
	for (size_t y = 0; y < height && out != NULL; ++y)
	{
		for (size_t x = 0; x < width; ++x)
		{
			const float *from = &samples[4 * ((height - 1 - y) * width + x) + (size_t)first];
			memcpy(&out[(y * width + x) * (size_t)count], from, (size_t)count * sizeof *out);
		}
	}
}

static SandStatus read_pixels(SandGpu *gpu, const SandLight *light, uint8_t *out, SandError *err)
{
	size_t width = (size_t)light->desc.width, height = (size_t)light->desc.height;
	uint8_t *bytes = (uint8_t *)light->samples; // large enough: a sample has four floats
	SandStatus status = sand_gpu_image_read(gpu, light->pixels, bytes, (int64_t)(4 * width * height), err);
	for (size_t y = 0; y < height && status == SAND_OK; ++y)
	{
		memcpy(&out[4 * width * y], &bytes[4 * width * (height - 1 - y)], 4 * width);
	}
	return status;
}

static SandStatus make_field(SandGpu *gpu, Drawing *drawing, SandError *err)
{
	const SandLightField *field = drawing->scene->field;
	if (field == NULL)
	{
		return SAND_OK;
	}
	SandGpuTextureDesc desc = {field->width, field->height, field->depth, true, field->distances, "distances"};
	return sand_gpu_texture_create(gpu, &desc, &drawing->field, err);
}

static SandStatus draw_surfaces(SandGpu *gpu, Drawing *drawing, const Eye *camera, const ShadeBlock *block,
                                SandError *err)
{
	SandLight *light = drawing->light;
	static const float nothing[4] = {0};
	SandStatus status = make_field(gpu, drawing, err);
	if (status != SAND_OK)
	{
		return status;
	}
	upload_view(gpu, light, camera);
	bind_shade(gpu, light, block);
	sand_gpu_target_clear(gpu, light->seen, nothing);
	if (drawing->scene->has_ground)
	{
		sand_gpu_draw(gpu, &(SandGpuDraw){.target = light->seen, .program = light->ground, .vertex_count = 3});
	}
	draw_meshes(gpu, drawing, light->seen, camera, false);
	draw_spheres(gpu, drawing, light->seen, camera, false);
	if (drawing->scene->field != NULL)
	{
		sand_gpu_bind_texture(gpu, 4, drawing->field);
		sand_gpu_draw(gpu, &(SandGpuDraw){.target = light->seen, .program = light->field, .vertex_count = 3});
	}
	if (drawing->has_clear)
	{
		sand_gpu_target_clear(gpu, light->clear, nothing);
		draw_meshes(gpu, drawing, light->clear, camera, true);
	}
	return sand_gpu_check(gpu, err);
}

static SandStatus draw_job(SandGpu *gpu, void *user, SandError *err)
{
	Drawing *drawing = user;
	SandLight *light = drawing->light;
	const SandLightScene *scene = drawing->scene;
	const SandLightImage *image = drawing->image;
	int64_t sample_bytes = (int64_t)light->sample_width * light->sample_height * 16;
	Eye camera = camera_eye(light, &scene->camera), sun = {0};
	ShadeBlock block;
	memset(light->list_counts, 0, sizeof light->list_counts);
	double start = begin_part(gpu, light);
	fill_shade(drawing, &camera, &sun, false, &block);
	SandStatus status = draw_surfaces(gpu, drawing, &camera, &block, err);
	int64_t sphere_count = light->times.sphere_count;
	end_part(gpu, light, SAND_LIGHT_SURFACES, start);

	start = begin_part(gpu, light);
	bool has_shadows = drawing->has_sun && !scene->has_no_shadows;
	bool reads_surfaces = has_shadows || image->depths != NULL || image->normals != NULL;
	if (status == SAND_OK && reads_surfaces)
	{
		status = sand_gpu_image_read(gpu, light->surfaces, light->samples, sample_bytes, err);
	}
	if (status == SAND_OK && reads_surfaces)
	{
		flip(light, light->samples, 3, 1, image->depths);
		flip(light, light->samples, 0, 3, image->normals);
		has_shadows = has_shadows && aim_sun(drawing, &camera, light->samples, &sun);
	}
	if (status == SAND_OK && has_shadows)
	{
		static const float nothing[4] = {0};
		upload_view(gpu, light, &sun);
		sand_gpu_target_clear(gpu, light->sun, nothing);
		draw_meshes(gpu, drawing, light->sun, &sun, false);
		draw_spheres(gpu, drawing, light->sun, &sun, true);
	}
	light->times.sphere_count = sphere_count;
	end_part(gpu, light, SAND_LIGHT_SHADOWS, start);

	start = begin_part(gpu, light);
	if (status == SAND_OK)
	{
		fill_shade(drawing, &camera, &sun, has_shadows, &block);
		upload_view(gpu, light, &camera);
		bind_shade(gpu, light, &block);
		sand_gpu_bind_texture(gpu, 0, light->surfaces);
		sand_gpu_bind_texture(gpu, 1, light->paints);
		sand_gpu_bind_texture(gpu, 2, light->shadow);
		sand_gpu_bind_texture(gpu, 3, light->clears);
		sand_gpu_draw(gpu, &(SandGpuDraw){.target = light->shaded, .program = light->shade, .vertex_count = 3});
		sand_gpu_bind_texture(gpu, 0, light->radiance);
		sand_gpu_draw(gpu, &(SandGpuDraw){.target = light->picture, .program = light->resolve, .vertex_count = 3});
	}
	end_part(gpu, light, SAND_LIGHT_SHADING, start);

	start = begin_part(gpu, light);
	if (status == SAND_OK && (image->lit != NULL || image->radiance != NULL))
	{
		status = sand_gpu_image_read(gpu, light->radiance, light->samples, sample_bytes, err);
		if (status == SAND_OK)
		{
			flip(light, light->samples, 3, 1, image->lit);
			flip(light, light->samples, 0, 3, image->radiance);
		}
	}
	if (status == SAND_OK && image->pixels != NULL)
	{
		status = read_pixels(gpu, light, image->pixels, err);
	}
	end_part(gpu, light, SAND_LIGHT_READING, start);
	sand_gpu_texture_destroy(gpu, drawing->field);
	light->times.draw_count += status == SAND_OK;
	return status;
}

// What may be drawn

static SandStatus check_grains(const SandLightGrains *grains, SandError *err)
{
	if (grains->count < 0 || (grains->count > 0 && (grains->positions == NULL || grains->shape_count < 1)))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "%lld grains with %d shapes cannot be drawn; give a shape",
		                 (long long)grains->count, grains->shape_count);
	}
	if (!sand_is_finite(grains->positions, 3 * (size_t)grains->count) ||
	    (grains->rotations != NULL && !sand_is_finite(grains->rotations, 4 * (size_t)grains->count)))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "A grain has no place: positions and rotations must be finite");
	}
	for (int64_t i = 0; i < grains->count && grains->shape_of != NULL; ++i)
	{
		if (grains->shape_of[i] < 0 || grains->shape_of[i] >= grains->shape_count)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Grain %lld has shape %d, and there are %d", (long long)i,
			                 grains->shape_of[i], grains->shape_count);
		}
	}
	for (int64_t i = 0; i < grains->count && grains->scales != NULL; ++i)
	{
		if (!(grains->scales[i] >= 0) || !isfinite(grains->scales[i]))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Grain %lld has scale %g, expected 0 or more", (long long)i,
			                 (double)grains->scales[i]);
		}
	}
	for (int i = 0; i < grains->shape_count; ++i)
	{
		const SandLightShape *shape = &grains->shapes[i];
		bool is_good = shape->sphere_count > 0 && sand_is_finite(shape->offsets, 3 * (size_t)shape->sphere_count);
		for (int k = 0; k < shape->sphere_count && is_good; ++k)
		{
			is_good = shape->radii[k] > 0 && isfinite(shape->radii[k]);
		}
		if (!is_good)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Shape %d cannot be drawn: it needs spheres with finite places and radii above 0", i);
		}
	}
	return SAND_OK;
}

static SandStatus check_scene(const SandLightScene *scene, SandError *err)
{
	const SandLightCamera *camera = &scene->camera;
	bool is_good = camera->lens[0] > 0 && camera->lens[1] > 0 && isfinite(camera->lens[0]) && isfinite(camera->lens[1]);
	is_good = is_good && sand_is_finite(camera->position, 3) && sand_is_finite(camera->rotation, 4) &&
	          sand_is_finite(camera->shift, 2) && sand_is_finite(camera->clip, 2);
	bool has_clip = camera->clip[0] != 0 || camera->clip[1] != 0;
	is_good = is_good &&
	          (!has_clip || ((camera->is_orthographic || camera->clip[0] > 0) && camera->clip[1] > camera->clip[0]));
	if (!is_good)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "The camera cannot see: lens %g x %g and clip %g to %g, expected numbers above 0 and the far "
		                 "clip beyond the near one",
		                 (double)camera->lens[0], (double)camera->lens[1], (double)camera->clip[0],
		                 (double)camera->clip[1]);
	}
	for (int i = 0; i < scene->mesh_count; ++i)
	{
		const SandLightMesh *mesh = &scene->meshes[i];
		bool is_whole = sand_is_finite(mesh->vertices, 3 * (size_t)mesh->vertex_count) &&
		                sand_is_finite(mesh->position, 3) && sand_is_finite(mesh->rotation, 4);
		for (int k = 0; k < 3 * mesh->triangle_count && is_whole; ++k)
		{
			is_whole = mesh->triangles[k] >= 0 && mesh->triangles[k] < mesh->vertex_count;
		}
		if (!is_whole)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Mesh %d cannot be drawn: its places must be finite and its triangles name its vertices",
			                 i);
		}
	}
	const SandLightField *field = scene->field;
	if (field != NULL && (!(field->spacing > 0) || field->width < 2 || field->height < 2 || field->depth < 2))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "A field of %d x %d x %d distances at %g m cannot be drawn",
		                 field->width, field->height, field->depth, (double)field->spacing);
	}
	return check_grains(&scene->grains, err);
}

/// The mean radius of the spheres, and for clusters the one sphere that stands for them from afar.
static void measure_grains(Drawing *drawing)
{
	const SandLightGrains *grains = &drawing->scene->grains;
	double sum = 0;
	for (int64_t i = 0; i < grains->count; ++i)
	{
		const SandLightShape *shape = &grains->shapes[grains->shape_of != NULL ? grains->shape_of[i] : 0];
		sum += (double)shape->radii[0] * (double)(grains->scales != NULL ? grains->scales[i] : 1);
	}
	drawing->grain_radius = grains->count > 0 ? (float)(sum / (double)grains->count) : 0.01f;
	for (int i = 0; i < grains->shape_count && i < 16; ++i)
	{
		const SandLightShape *shape = &grains->shapes[i];
		float squares = 0;
		for (int k = 0; k < shape->sphere_count; ++k)
		{
			squares += shape->radii[k] * shape->radii[k];
		}
		// Their discs overlap a little in most views; a body of many spheres is never one.
		drawing->merged_radii[i] = shape->sphere_count > 1 && shape->sphere_count <= 16
		                               ? fminf(0.92f * sqrtf(squares), shape_reach(shape))
		                               : 0;
	}
}

SandStatus sand_light_draw(SandLight *light, const SandLightScene *scene, const SandLightImage *image, SandError *err)
{
	SandStatus status = check_scene(scene, err);
	if (status != SAND_OK)
	{
		return status;
	}
	Drawing drawing = {.light = light, .scene = scene, .image = image};
	int vertex_count = 0;
	for (int i = 0; i < scene->mesh_count; ++i)
	{
		vertex_count = scene->meshes[i].vertex_count > vertex_count ? scene->meshes[i].vertex_count : vertex_count;
		drawing.has_clear = drawing.has_clear || scene->meshes[i].is_clear;
	}
	drawing.has_sun = scene->sun_direction[0] != 0 || scene->sun_direction[1] != 0 || scene->sun_direction[2] != 0;
	drawing.normals = sand_alloc_raw((size_t)vertex_count, sizeof(*drawing.normals));
	if (drawing.normals == NULL)
	{
		return sand_fail_memory(err, (size_t)vertex_count * sizeof(*drawing.normals), "the normals of a mesh");
	}
	measure_grains(&drawing);
	status = sand_gpu_run(light->gpu, draw_job, &drawing, err);
	sand_free(drawing.normals);
	return status;
}

// Making and freeing

static SandStatus make_image(SandGpu *gpu, int width, int height, SandGpuFormat format, const char *label,
                             SandGpuTexture *out, SandStatus status, SandError *err)
{
	bool is_shadow = format == SAND_GPU_DEPTH32F && out != NULL && strcmp(label, "shadow map") == 0;
	return status != SAND_OK
	           ? status
	           : sand_gpu_image_create(gpu, &(SandGpuImageDesc){width, height, format, is_shadow, is_shadow, label},
	                                   out, err);
}

static SandStatus make_program(SandGpu *gpu, const char *vertex, const char *fragment, const char *defines,
                               SandGpuProgram *out, SandStatus status, SandError *err)
{
	return status != SAND_OK
	           ? status
	           : sand_gpu_program_create(gpu, &(SandGpuProgramDesc){vertex, NULL, fragment, NULL, defines}, out, err);
}

static SandStatus make_job(SandGpu *gpu, void *user, SandError *err)
{
	SandLight *light = user;
	int w = light->sample_width, h = light->sample_height, s = light->desc.shadow_size;
	SandStatus ok = SAND_OK;
	static const char *const defines[LIST_COUNT] = {"", "#define SAND_ROUGH 1\n",
	                                                "#define SAND_ROUGH 1\n#define SAND_QUADS 1\n"};
	for (int i = 0; i < LIST_COUNT; ++i)
	{
		ok = make_program(gpu, "82_spheres.vert", "82_spheres.frag", defines[i], &light->spheres[i], ok, err);
		ok = ok != SAND_OK
		         ? ok
		         : sand_gpu_buffer_create(gpu, ROW_COUNT * (int64_t)sizeof(SphereRow), "spheres", &light->rows[i], err);
	}
	for (int i = 0; i < LIST_COUNT; ++i)
	{
		ok = make_program(gpu, "82_spheres.vert", "85_discs.frag",
		                  i == LIST_WIDE ? "#define SAND_DISCS 1\n#define SAND_QUADS 1\n" : "#define SAND_DISCS 1\n",
		                  &light->discs[i], ok, err);
	}
	ok = make_program(gpu, "83_mesh.vert", "83_mesh.frag", NULL, &light->mesh, ok, err);
	ok = make_program(gpu, "80_screen.vert", "81_ground.frag", NULL, &light->ground, ok, err);
	ok = make_program(gpu, "80_screen.vert", "84_field.frag", NULL, &light->field, ok, err);
	ok = make_program(gpu, "80_screen.vert", "86_shade.frag", NULL, &light->shade, ok, err);
	ok = make_program(gpu, "80_screen.vert", "88_resolve.frag", NULL, &light->resolve, ok, err);
	ok = make_image(gpu, w, h, SAND_GPU_RGBA32F, "surfaces", &light->surfaces, ok, err);
	ok = make_image(gpu, w, h, SAND_GPU_RGBA8, "paints", &light->paints, ok, err);
	ok = make_image(gpu, w, h, SAND_GPU_DEPTH32F, "depths", &light->depths, ok, err);
	ok = make_image(gpu, w, h, SAND_GPU_RGBA32F, "clear surfaces", &light->clears, ok, err);
	ok = make_image(gpu, w, h, SAND_GPU_RGBA8, "clear paints", &light->clear_paints, ok, err);
	ok = make_image(gpu, w, h, SAND_GPU_DEPTH32F, "clear depths", &light->clear_depths, ok, err);
	ok = make_image(gpu, w, h, SAND_GPU_RGBA32F, "radiance", &light->radiance, ok, err);
	ok = make_image(gpu, light->desc.width, light->desc.height, SAND_GPU_RGBA8, "picture", &light->pixels, ok, err);
	ok = make_image(gpu, s, s, SAND_GPU_DEPTH32F, "shadow map", &light->shadow, ok, err);
	const struct
	{
		SandGpuTargetDesc desc;
		SandGpuTarget *out;
	} targets[] = {
	    {{{light->surfaces, light->paints}, 2, light->depths, "seen"}, &light->seen},
	    {{{light->clears, light->clear_paints}, 2, light->clear_depths, "clear"}, &light->clear},
	    {{{light->radiance}, 1, {0}, "shaded"}, &light->shaded},
	    {{{light->pixels}, 1, {0}, "picture"}, &light->picture},
	    {{{{0}}, 0, light->shadow, "sun"}, &light->sun},
	};
	for (int i = 0; i < 5 && ok == SAND_OK; ++i)
	{
		ok = sand_gpu_target_create(gpu, &targets[i].desc, targets[i].out, err);
	}
	const struct
	{
		int64_t bytes;
		SandGpuBuffer *out;
	} buffers[] = {{ROW_COUNT * (int64_t)sizeof(CornerRow), &light->corners},
	               {sizeof(ViewBlock), &light->view},
	               {sizeof(ShadeBlock), &light->light}};
	for (int i = 0; i < 3 && ok == SAND_OK; ++i)
	{
		ok = sand_gpu_buffer_create(gpu, buffers[i].bytes, "light", buffers[i].out, err);
	}
	return ok;
}

void sand_light_destroy(SandLight *light)
{
	if (light == NULL)
	{
		return;
	}
	sand_gpu_destroy(light->gpu); // and everything on it
	for (int i = 0; i < LIST_COUNT; ++i)
	{
		sand_free(light->lists[i]);
	}
	sand_free(light->corner_rows);
	sand_free(light->samples);
	sand_free(light);
}

SandStatus sand_light_create(const SandLightDesc *desc, SandLight **light_out, SandError *err)
{
	*light_out = NULL;
	int edge = desc->sample_edge != 0 ? desc->sample_edge : 2;
	int shadow = desc->shadow_size != 0 ? desc->shadow_size : 2048;
	if (desc->width < 1 || desc->height < 1 || edge < 1 || edge > 4 || desc->width > 16384 || desc->height > 16384 ||
	    shadow < 16 || shadow > 16384)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "A picture of %d x %d pixels with %d x %d samples each and a shadow map of %d cannot be "
		                 "drawn: expected 1 to 16384 pixels, 1 to 4 samples along an edge, 16 to 16384 texels",
		                 desc->width, desc->height, edge, edge, shadow);
	}
	SandLight *light = sand_alloc(1, sizeof(*light));
	if (light == NULL)
	{
		return sand_fail_memory(err, sizeof(*light), "the light");
	}
	light->desc = *desc;
	light->desc.sample_edge = edge;
	light->desc.shadow_size = shadow;
	light->sample_width = desc->width * edge;
	light->sample_height = desc->height * edge;
	bool is_whole = true;
	for (int i = 0; i < LIST_COUNT; ++i)
	{
		light->lists[i] = sand_alloc_raw(ROW_COUNT, sizeof(SphereRow));
		is_whole = is_whole && light->lists[i] != NULL;
	}
	size_t sample_count = (size_t)light->sample_width * (size_t)light->sample_height;
	light->corner_rows = sand_alloc_raw(ROW_COUNT, sizeof(CornerRow));
	light->samples = sand_alloc_raw(sample_count, 4 * sizeof(float));
	SandStatus status = SAND_OK;
	if (!is_whole || light->corner_rows == NULL || light->samples == NULL)
	{
		status = sand_fail_memory(err, sample_count * 4 * sizeof(float) + (size_t)ROW_COUNT * 4 * sizeof(SphereRow),
		                          "the samples of a picture");
	}
	if (status == SAND_OK)
	{
		SandGpuDesc device = desc->device;
		device.has_timers = false; // parts are measured here
		status = sand_gpu_create(&device, &light->gpu, err);
	}
	if (status == SAND_OK)
	{
		status = sand_gpu_run(light->gpu, make_job, light, err);
	}
	if (status != SAND_OK)
	{
		sand_light_destroy(light);
		return status;
	}
	*light_out = light;
	return SAND_OK;
}

const SandGpuDevice *sand_light_device(const SandLight *light)
{
	return sand_gpu_info(light->gpu);
}

int sand_light_error_count(const SandLight *light)
{
	return sand_gpu_error_count(light->gpu);
}

int sand_light_sample_edge(const SandLight *light)
{
	return light->desc.sample_edge;
}

SandLightTimes sand_light_times(const SandLight *light)
{
	return light->times;
}
