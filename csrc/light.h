// light: pictures of sand through the GL door: grains as analytic spheres, meshes, a ground, a sun with shadows, a sky.
// Comes in: grains, meshes, a camera and lights, in SI units. Goes out: pixels, and for those who measure, depth,
// normal and sunlight of every sample. Knows no file and no physics.
//
// After Longmore 2009, chapter 5: one point per sphere, the sphere found per pixel, a shadow map by which grains shadow
// each other, the meshes and the ground and are shadowed by them. Beyond it: the ray meets the sphere exactly, also at
// the edge of the view and near the eye (a sphere that a point cannot hold becomes two triangles); normals and depths
// are kept and lit once per sample however many grains lie behind each other; the shadow map covers what is seen, not
// the whole scene; occlusion of the sky.
//
// One thread at a time. Fails like gpu: SAND_ERROR_GPU and its kin, SAND_ERROR_MEMORY; SAND_ERROR_ARGUMENT for numbers.
#ifndef SAND_LIGHT_H
#define SAND_LIGHT_H

#include "base.h"
#include "gpu.h"

typedef struct SandLight SandLight;

/// Zero is valid but for width and height.
typedef struct SandLightDesc
{
	int width, height;  // pixels of the picture, 1 or more
	int sample_edge;    // samples along an edge of a pixel, 1 to 4; 0 = 2
	int shadow_size;    // texels along an edge of the shadow map; 0 = 2048
	bool has_timers;    // sand_light_times measures
	SandGpuDesc device; // its has_timers is not looked at
} SandLightDesc;

/// Makes the device and everything on it that does not depend on the scene. desc need not outlive the call.
SandStatus sand_light_create(const SandLightDesc *desc, SandLight **light_out, SandError *err);
void sand_light_destroy(SandLight *light); // NULL is fine
const SandGpuDevice *sand_light_device(const SandLight *light);
/// GL errors that no call had to answer for; 0 in a healthy program.
int sand_light_error_count(const SandLight *light);

/// An eye at position (m), rotation w x y z turns its axes (x right, y up, looking along -z) to the world, as
/// Blender's. lens: half width and half height of the picture at depth 1, or, orthographic, in m. shift: of the axis
/// from the middle of the picture, 1 = half a picture. Zeros in lens are refused; clip 0 0 = 1 cm to 1 km.
typedef struct SandLightCamera
{
	float position[3];
	float rotation[4];
	float lens[2];
	float shift[2];
	float clip[2]; // nearest and farthest depth, m
	bool is_orthographic;
} SandLightCamera;

/// The spheres of one kind of grain, in its own axes, at scale 1.
typedef struct SandLightShape
{
	const float *offsets; // xyz, m
	const float *radii;   // m
	int sphere_count;
} SandLightShape;

/// All arrays are the caller's. NULL: rotations = none, shape_of = all the first, scales = 1, seeds = the grain's
/// number, wetness = the scene's, is_hidden = none.
typedef struct SandLightGrains
{
	int64_t count;
	const float *positions; // xyz, m
	const float *rotations; // w x y z
	const int32_t *shape_of;
	const float *scales;
	const uint32_t *seeds; // the same number, the same colour and the same corners
	const float *wetness;  // 0 dry to 1 wet
	const uint8_t *is_hidden;
	const SandLightShape *shapes;
	int shape_count;
	float all_wetness;
	bool is_round;       // exact spheres; else each is cut by planes of its own where it is large enough to show
	float palette[5][3]; // linear colours of a grain by chance, from rare and dark to light; all zero = desert sand
} SandLightGrains;

typedef struct SandLightMesh
{
	const float *vertices; // xyz, m
	int vertex_count;
	const int32_t *triangles; // indices are checked
	int triangle_count;
	float position[3];
	float rotation[4]; // w x y z; all zero = none
	float colour[3];   // linear
	float gloss;       // 0 to 1
	bool is_smooth;    // else every triangle is flat
	bool is_clear;     // glass: seen through, throws no shadow
} SandLightMesh;

/// A field of distances that is ray-cast where no sphere and no mesh is nearer: the sampler's view (Longmore
/// 2009, 6.4).
typedef struct SandLightField
{
	const float *distances; // m, negative inside; x fastest
	int width, height, depth;
	float origin[3]; // of the first, m
	float spacing;   // m
	float colour[3]; // linear
} SandLightField;

typedef struct SandLightScene
{
	SandLightCamera camera;
	SandLightGrains grains;
	const SandLightMesh *meshes;
	int mesh_count;
	const SandLightField *field; // NULL = none
	float sun_direction[3];      // towards it, any length; all zero = no sun
	float sun_colour[3];         // irradiance, as Blender's sun strength times its colour
	float sun_angle;             // rad, the whole disc
	float sky_colour[3];         // radiance from above
	float floor_colour[3];       // radiance from below
	float exposure;              // 0 = 1
	bool has_ground;
	float ground_height; // m, along z
	float ground_colour[3];
	bool has_no_shadows, has_no_occlusion;
	uint32_t seed; // of the noise in shadows and occlusion
} SandLightScene;

/// What a draw hands out, each NULL or of the caller. Rows from the top. Samples: width and height times sample_edge.
typedef struct SandLightImage
{
	uint8_t *pixels; // RGBA, sRGB, width * height
	float *depths;   // per sample, m along the view; 0 where nothing is
	float *normals;  // xyz per sample, world
	float *lit;      // per sample: share of the sun that arrives, 0 to 1; -1 where nothing is
	float *radiance; // RGB per sample, linear, before the film
} SandLightImage;

SandStatus sand_light_draw(SandLight *light, const SandLightScene *scene, const SandLightImage *image, SandError *err);
int sand_light_sample_edge(const SandLight *light);

/// Seconds of the device per part since create, with SandLightDesc.has_timers; and spheres drawn by the last draw.
typedef enum SandLightPart
{
	SAND_LIGHT_SURFACES = 0, // what is seen
	SAND_LIGHT_SHADOWS,      // the shadow map, with finding out what it covers
	SAND_LIGHT_SHADING,
	SAND_LIGHT_READING,
	SAND_LIGHT_PART_COUNT
} SandLightPart;
typedef struct SandLightTimes
{
	double seconds[SAND_LIGHT_PART_COUNT];
	int64_t draw_count;
	int64_t sphere_count; // of the last draw, of those in view
} SandLightTimes;
SandLightTimes sand_light_times(const SandLight *light);

#endif
