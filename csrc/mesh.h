// mesh: a checked triangle mesh.
// Comes in: raw vertex and triangle arrays from Blender or a file. Goes out: SandMesh, finite, in range, measured.
#ifndef SAND_MESH_H
#define SAND_MESH_H

#include "base.h"

/// Immutable after sand_mesh_create. Lengths in metres, areas in m^2, volumes in m^3.
typedef struct SandMesh
{
	const float *vertices;    // xyz per vertex, 3 * vertex_count
	const int32_t *triangles; // 3 vertex indices per triangle, counter-clockwise seen from outside
	int vertex_count;
	int triangle_count;
	float bounds_min[3];
	float bounds_max[3];
	double area;
	double volume;        // signed, by the divergence theorem; meaningful only when is_closed
	bool is_closed;       // every edge has exactly two triangles, one in each direction
	int open_edge_count;  // edges with one triangle
	int bad_edge_count;   // edges with more than two triangles, or two in the same direction
	int degenerate_count; // triangles of zero area (kept; they bound nothing and receive no samples)
} SandMesh;

/// Copies and checks. name is used in the sentences ("Mesh 'Cube': ...") and may be NULL.
/// Fails with SAND_ERROR_MESH: no vertices, no triangles, a non-finite vertex (its number), an index out of range
/// (triangle, index, vertex_count), zero total area; SAND_ERROR_MEMORY. On failure *mesh_out is NULL.
/// An open mesh is not an error here: what needs a closed one says so (sand_mesh_require_closed).
SandStatus sand_mesh_create(const char *name, const float *vertices, int64_t vertex_count, const int32_t *triangles,
                            int64_t triangle_count, SandMesh **mesh_out, SandError *err);

void sand_mesh_destroy(SandMesh *mesh); // NULL is fine

/// SAND_OK when the mesh bounds a volume; else SAND_ERROR_MESH saying how many edges are open and what to do.
SandStatus sand_mesh_require_closed(const SandMesh *mesh, SandError *err);

/// Of a body of unit density: a kg is a m^3.
typedef struct SandMass
{
	double volume;     // m^3
	double centre[3];  // m
	double inertia[6]; // m^5, about the centre: xx, yy, zz, xy, xz, yz; products as in the tensor, with the minus sign
} SandMass;

/// Exact integrals over the volume that the triangles bound (those of Mirtich 1996, by tetrahedra). A mesh inside out
/// has the same centre and all else negative; of an open mesh they mean nothing; without any volume the centre is the
/// middle of the bounds.
SandMass sand_mesh_mass(const SandMesh *mesh);

/// m, the largest distance of neighbouring floats among the mesh's coordinates.
double sand_mesh_float_step(const SandMesh *mesh);

/// The name given at creation, "(no name)" when none: for sentences.
const char *sand_mesh_shown_name(const SandMesh *mesh);

/// The name given at creation, "" when none. Owned by the mesh.
const char *sand_mesh_name(const SandMesh *mesh);

/// "Mesh 'Cube'", or "The mesh" without a name: how a sentence about it begins. A long name is cut.
typedef struct SandMeshLabel
{
	char text[120];
} SandMeshLabel;
SandMeshLabel sand_mesh_label(const SandMesh *mesh);

#endif
