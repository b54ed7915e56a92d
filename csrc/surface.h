// surface: where a mesh is nearest, and whether a place is inside it. Exact, for any number of places, on any thread.
// Comes in: SandMesh. Goes out: SandSurface: distance, closest point, pseudo-normal, winding number, inside.
//
// A tree of boxes, four to a node, over the triangles. The sign of a distance comes from the
// angle-weighted pseudo-normal of the nearest face, edge or vertex (Baerentzen and Aanaes 2005) when the mesh is a
// clean closed one, and else from the generalised winding number (Jacobson 2013), summed over the tree with dipoles for
// far nodes (Barill 2018). Doubles inside, relative to the middle of the mesh, so that a mesh far from the origin loses
// nothing but what its own floats lost.
#ifndef SAND_SURFACE_H
#define SAND_SURFACE_H

#include "mesh.h"
#include "pool.h"

typedef struct SandSurface SandSurface;

typedef struct SandNearest
{
	double distance;  // m, never negative
	double point[3];  // m, the nearest of the mesh
	double normal[3]; // unit pseudo-normal of the nearest feature; zero where its faces have no area
	int triangle;     // that holds it: index into the mesh
} SandNearest;

/// Builds the tree on the threads of pool (NULL = this thread), the same for every thread count. The mesh must outlive
/// the surface. Fails: SAND_ERROR_MEMORY. On failure *surface_out is NULL.
SandStatus sand_surface_create(const SandMesh *mesh, SandPool *pool, SandSurface **surface_out, SandError *err);
void sand_surface_destroy(SandSurface *surface); // NULL is fine

const SandMesh *sand_surface_mesh(const SandSurface *surface);

/// False, and *nearest_out unchanged, when no part of the mesh is nearer than reach (m; INFINITY = however far).
bool sand_surface_nearest(const SandSurface *surface, const double place[3], double reach, SandNearest *nearest_out);

/// As sand_surface_nearest by floats alone: the place moves to the nearest of the mesh, or to one that is farther by
/// less than 1e-6 of the mesh's size. False, and nothing changed, when it is not nearer than reach. Half the time.
bool sand_surface_snap(const SandSurface *surface, double place[3], double reach, int *triangle_out);

/// Every triangle once, neighbours near each other. Owned by the surface.
const int32_t *sand_surface_order(const SandSurface *surface);

/// Generalised winding number: about 1 inside, 0 outside, between them near a hole, 2 where two solids overlap.
/// Counted so that the inside of a mesh turned inside out is 1 as well. Within 0.01 of the sum over all triangles.
double sand_surface_winding(const SandSurface *surface, const double place[3]);

/// Inside, by pseudo-normal or by winding number, as sand_surface_is_clean says.
bool sand_surface_is_inside(const SandSurface *surface, const double place[3]);

/// Signed distance, m, negative inside; NaN for a place that is not a number. Nothing beyond the mesh's bounds is
/// inside.
double sand_surface_distance(const SandSurface *surface, const double place[3]);

/// True when pseudo-normals decide the sign: the mesh is closed, and neither overlaps itself nor holds shells that
/// overlap, as far as a thousand places spread over its area tell. Where false, the sentence says what was found
/// ("..., 31 open edges"); else "". Owned by the surface.
bool sand_surface_is_clean(const SandSurface *surface);
const char *sand_surface_warning(const SandSurface *surface);

/// The tree as it lies in memory, for a device that searches it as well. Four children or triangles side by side: a
/// number of the first, of the second, .. Owned by the surface.
typedef struct SandSurfaceTree
{
	double middle[3];                      // m: vertices of nodes and leaves are relative to it
	double extent;                         // m, half of the largest side of the box
	double turn;                           // -1 when the mesh is inside out, else 1
	const float *nodes, *leaves, *dipoles; // SAND_TREE_x_FLOATS each, as surface.c describes them
	const int32_t *order;                  // triangle of each place in the leaves
	const int32_t *first_of_vertex;        // into triangles_of_vertex, vertex_count + 1
	const int32_t *triangles_of_vertex;
	int node_count, leaf_count, level_count;
	int level_first[16]; // node, of each level from the leaves' up
} SandSurfaceTree;
#define SAND_TREE_NODE_FLOATS 24
#define SAND_TREE_LEAF_FLOATS 64
#define SAND_TREE_DIPOLE_FLOATS 56
SandSurfaceTree sand_surface_tree(const SandSurface *surface);

/// Angle-weighted pseudo-normal of a vertex, not of unit length, not turned.
void sand_surface_vertex_normal(const SandSurface *surface, int vertex, double normal_out[3]);

#endif
