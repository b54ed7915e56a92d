// glsurface: a surface on a device: its tree in buffers, and distances of places by it.
// Comes in: SandSurface. Goes out: buffers that shaders/tree.glsl reads; signed distances, the processor's own.
#ifndef SAND_GLSURFACE_H
#define SAND_GLSURFACE_H

#include "glwork.h"
#include "surface.h"

/// What of the tree a pass needs beside the searches.
enum
{
	SAND_GLSURFACE_NORMALS = 1, // pseudo-normals of edges and vertices: angles are computed here, on the pool
	SAND_GLSURFACE_DIPOLES = 2, // winding numbers
};

/// Uploads the tree to the bindings SAND_BIND_TREE and up. From inside a job; the surface must not change meanwhile.
/// doubt: winding numbers so near to a half are left to the host; 0 = 1e-9, far more than the device's atan2 is off by.
/// Fails: SAND_ERROR_GPU_MEMORY with the numbers (64 bytes per triangle must fit into one block), SAND_ERROR_MEMORY,
/// SAND_ERROR_ARGUMENT for a mesh so large that squares of its lengths overflow floats.
SandStatus sand_glsurface_load(SandGlWork *work, const SandSurface *surface, int parts, double doubt, SandPool *pool,
                               SandError *err);

typedef struct SandGlDistanceDesc
{
	const float *places; // xyz each, m, finite
	int64_t place_count;
	double doubt;             // as for sand_glsurface_load
	const SandCancel *cancel; // may be NULL; about 100 ms
} SandGlDistanceDesc;

/// Signed distance of every place, m, as sand_surface_distance: the same numbers on a device that computes doubles as
/// the processor does. Where the device is unsure of the side (a winding number close to a half) or a place is too far
/// for floats, the processor is asked. Any thread. Fails as sand_glsurface_load and sand_gpu_run do; distances_out is
/// not defined then.
SandStatus sand_glsurface_distances(SandGpu *gpu, const SandSurface *surface, const SandGlDistanceDesc *desc,
                                    SandPool *pool, double *distances_out, SandError *err);

#endif
