// mesh: a checked triangle mesh.
// Comes in: raw vertex and triangle arrays from Blender or a file. Goes out: SandMesh, finite, in range, measured.
#include "mesh.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// Half-edges are counted in int: three per triangle.
#define TRIANGLE_LIMIT (INT_MAX / 3)
// A solid whose tetrahedra sum up to less than this share of area times size is a sheet folded onto itself;
// rounding of doubles alone gives about 1e-16, a plate as thin as a millionth of its width 1e-7.
#define FLAT_SHARE 1e-12
// Longest name a sentence shows, so that its advice is never cut off.
#define SHOWN_NAME_BYTES 100
static_assert(SHOWN_NAME_BYTES + 16 <= sizeof(SandMeshLabel), "a cut name with its quotes fits");

// Axes of the six products xx, yy, zz, xy, xz, yz.
static const int PRODUCT_AXES[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};

// What sand_mesh_create really allocates. face is first: a SandMesh pointer of ours is a MeshBlock pointer.
typedef struct MeshBlock
{
	SandMesh face;
	float *vertices;
	int32_t *triangles;
	char *name;
	bool is_flat;
} MeshBlock;

// A long name is cut between two UTF-8 characters.
static SandMeshLabel make_label(const char *name)
{
	SandMeshLabel label;
	if (name == NULL || name[0] == '\0')
	{
		(void)snprintf(label.text, sizeof(label.text), "The mesh");
		return label;
	}
	size_t length = strlen(name);
	bool is_long = length > SHOWN_NAME_BYTES;
	if (is_long)
	{
		length = SHOWN_NAME_BYTES;
		while (length > 0 && ((unsigned char)name[length] & 0xC0) == 0x80)
		{
			--length;
		}
	}
	(void)snprintf(label.text, sizeof(label.text), "Mesh '%.*s%s'", (int)length, name, is_long ? "..." : "");
	return label;
}

static SandStatus check_input(const char *name, const float *vertices, int64_t vertex_count, const int32_t *triangles,
                              int64_t triangle_count, SandError *err)
{
	SandMeshLabel label = make_label(name);
	if (vertex_count <= 0)
	{
		return sand_fail(err, SAND_ERROR_MESH, "%s has no vertices; choose an object with faces", label.text);
	}
	if (triangle_count <= 0)
	{
		return sand_fail(err, SAND_ERROR_MESH,
		                 "%s has %lld vertices but no faces; fill it with faces (Edit Mode, select all, press F)",
		                 label.text, (long long)vertex_count);
	}
	if (vertex_count > INT_MAX || triangle_count > TRIANGLE_LIMIT)
	{
		return sand_fail(
		    err, SAND_ERROR_MESH,
		    "%s has %lld vertices and %lld triangles, more than the %d and %d that fit; simplify it with a "
		    "Decimate modifier",
		    label.text, (long long)vertex_count, (long long)triangle_count, INT_MAX, TRIANGLE_LIMIT);
	}
	if (!sand_is_finite(vertices, (size_t)vertex_count * 3))
	{
		size_t vertex = 0;
		while (sand_is_finite(&vertices[3 * vertex], 3))
		{
			++vertex;
		}
		return sand_fail(
		    err, SAND_ERROR_MESH,
		    "%s: vertex %zu is at (%g, %g, %g), which is no place in space; delete the vertex, or mend the "
		    "modifier or driver that moves it",
		    label.text, vertex, (double)vertices[3 * vertex], (double)vertices[3 * vertex + 1],
		    (double)vertices[3 * vertex + 2]);
	}
	for (size_t corner = 0; corner < (size_t)triangle_count * 3; ++corner)
	{
		if (triangles[corner] < 0 || triangles[corner] >= vertex_count)
		{
			return sand_fail(err, SAND_ERROR_MESH,
			                 "%s: triangle %zu uses vertex %ld, but the %lld vertices are numbered 0 to %lld; the mesh "
			                 "data is damaged: repair it with its validate() function in Blender's Python console",
			                 label.text, corner / 3, (long)triangles[corner], (long long)vertex_count,
			                 (long long)vertex_count - 1);
		}
	}
	return SAND_OK;
}

static void measure_bounds(SandMesh *mesh)
{
	for (int axis = 0; axis < 3; ++axis)
	{
		mesh->bounds_min[axis] = mesh->vertices[axis];
		mesh->bounds_max[axis] = mesh->vertices[axis];
	}
	for (size_t vertex = 1; vertex < (size_t)mesh->vertex_count; ++vertex)
	{
		for (int axis = 0; axis < 3; ++axis)
		{
			float value = mesh->vertices[3 * vertex + (size_t)axis];
			mesh->bounds_min[axis] = value < mesh->bounds_min[axis] ? value : mesh->bounds_min[axis];
			mesh->bounds_max[axis] = value > mesh->bounds_max[axis] ? value : mesh->bounds_max[axis];
		}
	}
}

// Area, volume, degenerate triangles, flatness. The volume is the sum of the tetrahedra between each triangle and one
// apex; the apex is a corner of the mesh, so that a mesh far from the origin keeps its digits and every tetrahedron of
// a flat mesh is empty. Doubles hold the products of any floats without overflow.
static void measure_triangles(MeshBlock *block)
{
	SandMesh *mesh = &block->face;
	const float *apex = &mesh->vertices[3 * (size_t)mesh->triangles[0]];
	double volume_abs = 0.0;
	for (size_t triangle = 0; triangle < (size_t)mesh->triangle_count; ++triangle)
	{
		const float *corner[3];
		for (size_t side = 0; side < 3; ++side)
		{
			corner[side] = &mesh->vertices[3 * (size_t)mesh->triangles[3 * triangle + side]];
		}
		double ab[3], ac[3], from_apex[3];
		for (int axis = 0; axis < 3; ++axis)
		{
			ab[axis] = (double)corner[1][axis] - (double)corner[0][axis];
			ac[axis] = (double)corner[2][axis] - (double)corner[0][axis];
			from_apex[axis] = (double)corner[0][axis] - (double)apex[axis];
		}
		const double normal[3] = {ab[1] * ac[2] - ab[2] * ac[1], ab[2] * ac[0] - ab[0] * ac[2],
		                          ab[0] * ac[1] - ab[1] * ac[0]};
		double area = 0.5 * sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
		double volume = (normal[0] * from_apex[0] + normal[1] * from_apex[1] + normal[2] * from_apex[2]) * (1.0 / 6.0);
		mesh->area += area;
		mesh->volume += volume;
		volume_abs += fabs(volume);
		mesh->degenerate_count += area > 0.0 ? 0 : 1;
	}
	double size = 0.0;
	for (int axis = 0; axis < 3; ++axis)
	{
		size = fmax(size, (double)mesh->bounds_max[axis] - (double)mesh->bounds_min[axis]);
	}
	block->is_flat = volume_abs <= FLAT_SHARE * mesh->area * size;
}

// Least significant digit first, eight bits at a time; digits that are the same in all keys cost one look. The result
// is in keys; spare is scratch of the same length.
static void sort_keys(uint64_t *keys, uint64_t *spare, size_t count)
{
	uint64_t *from = keys, *to = spare;
	for (int shift = 0; shift < 64; shift += 8)
	{
		size_t starts[256] = {0};
		for (size_t i = 0; i < count; ++i)
		{
			++starts[(from[i] >> shift) & 255];
		}
		if (starts[(from[0] >> shift) & 255] == count)
		{
			continue;
		}
		size_t sum = 0;
		for (size_t digit = 0; digit < 256; ++digit)
		{
			size_t digit_count = starts[digit];
			starts[digit] = sum;
			sum += digit_count;
		}
		for (size_t i = 0; i < count; ++i)
		{
			to[starts[(from[i] >> shift) & 255]++] = from[i];
		}
		uint64_t *swapped = from;
		from = to;
		to = swapped;
	}
	if (from != keys)
	{
		memcpy(keys, from, count * sizeof(*keys));
	}
}

// Counts edges by sorted half-edges: (lower vertex, higher vertex, direction) packed in one key. A triangle that names
// a vertex twice is no face and has no edges; a triangle of three vertices on one line still joins its neighbours.
static SandStatus measure_edges(SandMesh *mesh, SandError *err)
{
	SandStatus status = SAND_OK;
	size_t key_limit = (size_t)mesh->triangle_count * 3;
	uint64_t *keys = sand_alloc(key_limit, sizeof(*keys));
	uint64_t *spare = sand_alloc(key_limit, sizeof(*spare));
	if (keys == NULL || spare == NULL)
	{
		status = sand_fail_memory(err, 2 * key_limit * sizeof(*keys), "the edges of a mesh");
		goto done;
	}
	size_t key_count = 0;
	for (size_t triangle = 0; triangle < (size_t)mesh->triangle_count; ++triangle)
	{
		const int32_t *corner = &mesh->triangles[3 * triangle];
		if (corner[0] == corner[1] || corner[1] == corner[2] || corner[2] == corner[0])
		{
			continue;
		}
		for (int side = 0; side < 3; ++side)
		{
			uint64_t from = (uint64_t)corner[side], to = (uint64_t)corner[(side + 1) % 3];
			keys[key_count++] = from < to ? from << 32 | to << 1 : to << 32 | from << 1 | 1;
		}
	}
	assert(key_count > 0); // the caller has found some area, hence a triangle of three different vertices
	sort_keys(keys, spare, key_count);
	for (size_t first = 0, next; first < key_count; first = next)
	{
		for (next = first + 1; next < key_count && keys[next] >> 1 == keys[first] >> 1; ++next)
		{
		}
		bool is_pair = next - first == 2 && keys[first] != keys[first + 1];
		mesh->open_edge_count += next - first == 1 ? 1 : 0;
		mesh->bad_edge_count += next - first == 1 || is_pair ? 0 : 1;
	}
	mesh->is_closed = mesh->open_edge_count == 0 && mesh->bad_edge_count == 0;
done:
	sand_free(spare);
	sand_free(keys);
	return status;
}

SandStatus sand_mesh_create(const char *name, const float *vertices, int64_t vertex_count, const int32_t *triangles,
                            int64_t triangle_count, SandMesh **mesh_out, SandError *err)
{
	assert(mesh_out != NULL);
	*mesh_out = NULL;
	SandStatus status = check_input(name, vertices, vertex_count, triangles, triangle_count, err);
	if (status != SAND_OK)
	{
		return status;
	}

	size_t name_bytes = name != NULL ? strlen(name) + 1 : 1;
	size_t vertex_bytes = (size_t)vertex_count * 3 * sizeof(float);
	size_t triangle_bytes = (size_t)triangle_count * 3 * sizeof(int32_t);
	MeshBlock *block = sand_alloc(1, sizeof(*block));
	if (block == NULL)
	{
		return sand_fail_memory(err, sizeof(*block), "a mesh");
	}
	block->name = sand_alloc(name_bytes, 1);
	block->vertices = sand_alloc(vertex_bytes, 1);
	block->triangles = sand_alloc(triangle_bytes, 1);
	if (block->name == NULL || block->vertices == NULL || block->triangles == NULL)
	{
		status = sand_fail_memory(err, name_bytes + vertex_bytes + triangle_bytes, "a mesh");
		goto fail;
	}
	if (name != NULL)
	{
		memcpy(block->name, name, name_bytes);
	}
	memcpy(block->vertices, vertices, vertex_bytes);
	memcpy(block->triangles, triangles, triangle_bytes);

	SandMesh *mesh = &block->face;
	mesh->vertices = block->vertices;
	mesh->triangles = block->triangles;
	mesh->vertex_count = (int)vertex_count;
	mesh->triangle_count = (int)triangle_count;
	measure_bounds(mesh);
	measure_triangles(block);
	if (!(mesh->area > 0.0))
	{
		status = sand_fail(err, SAND_ERROR_MESH,
		                   "%s has %d triangles, but each is collapsed to a line or a point; see whether the object's "
		                   "scale is zero on an axis, or fill real faces",
		                   make_label(name).text, mesh->triangle_count);
		goto fail;
	}
	status = measure_edges(mesh, err);
	if (status != SAND_OK)
	{
		goto fail;
	}
	*mesh_out = mesh;
	return SAND_OK;

fail:
	sand_mesh_destroy(&block->face);
	return status;
}

void sand_mesh_destroy(SandMesh *mesh)
{
	if (mesh == NULL)
	{
		return;
	}
	MeshBlock *block = (MeshBlock *)mesh;
	sand_free(block->triangles);
	sand_free(block->vertices);
	sand_free(block->name);
	sand_free(block);
}

SandStatus sand_mesh_require_closed(const SandMesh *mesh, SandError *err)
{
	SandMeshLabel label = sand_mesh_label(mesh);
	int open_count = mesh->open_edge_count, bad_count = mesh->bad_edge_count;
	if (open_count > 0 && bad_count == 0)
	{
		return sand_fail(err, SAND_ERROR_MESH,
		                 "%s has %d open edge%s; sand needs a closed mesh: close the holes (Mesh > Clean Up > Fill "
		                 "Holes), join doubled vertices (Mesh > Merge > By Distance) or add a Solidify modifier",
		                 label.text, open_count, open_count == 1 ? "" : "s");
	}
	if (bad_count > 0)
	{
		return sand_fail(
		    err, SAND_ERROR_MESH,
		    "%s has %d edge%s where more than two faces meet or two face opposite ways, and %d open; sand "
		    "needs a closed mesh: turn the faces one way (Mesh > Normals > Recalculate Outside), then delete "
		    "inner and doubled faces (Select > Select All by Trait > Non Manifold shows them)",
		    label.text, bad_count, bad_count == 1 ? "" : "s", open_count);
	}
	if (((const MeshBlock *)mesh)->is_flat)
	{
		return sand_fail(err, SAND_ERROR_MESH,
		                 "%s is flat: its faces lie on each other and enclose no volume; sand needs a closed mesh with "
		                 "room inside: give it thickness (extrude it, or add a Solidify modifier)",
		                 label.text);
	}
	return SAND_OK;
}

// Each triangle spans a tetrahedron with the middle of the bounds: near, so that a mesh far from the origin keeps its
// digits. Of a tetrahedron with one corner at zero and six times the volume `det`, the integral of x is det / 24 times
// the sum of the corners' x, and that of x y is det / 120 times (sum of x)(sum of y) + sum of x y.
SandMass sand_mesh_mass(const SandMesh *mesh)
{
	double middle[3], first[3] = {0}, second[6] = {0}, six_volumes = 0;
	for (int axis = 0; axis < 3; ++axis)
	{
		middle[axis] = 0.5 * ((double)mesh->bounds_min[axis] + (double)mesh->bounds_max[axis]);
	}
	for (size_t triangle = 0; triangle < (size_t)mesh->triangle_count; ++triangle)
	{
		double p[3][3], sum[3];
		for (int axis = 0; axis < 3; ++axis)
		{
			for (size_t side = 0; side < 3; ++side)
			{
				size_t vertex = (size_t)mesh->triangles[3 * triangle + side];
				p[side][axis] = (double)mesh->vertices[3 * vertex + (size_t)axis] - middle[axis];
			}
			sum[axis] = p[0][axis] + p[1][axis] + p[2][axis];
		}
		double det = p[0][0] * (p[1][1] * p[2][2] - p[1][2] * p[2][1]) +
		             p[0][1] * (p[1][2] * p[2][0] - p[1][0] * p[2][2]) +
		             p[0][2] * (p[1][0] * p[2][1] - p[1][1] * p[2][0]);
		six_volumes += det;
		for (int k = 0; k < 6; ++k)
		{
			int i = PRODUCT_AXES[k][0], j = PRODUCT_AXES[k][1];
			second[k] += det * (sum[i] * sum[j] + p[0][i] * p[0][j] + p[1][i] * p[1][j] + p[2][i] * p[2][j]);
			first[i] += k < 3 ? det * sum[i] : 0;
		}
	}
	SandMass mass = {.volume = six_volumes / 6};
	double offset[3], about[6];
	for (int axis = 0; axis < 3; ++axis)
	{
		offset[axis] = six_volumes != 0 ? first[axis] / (4 * six_volumes) : 0;
		mass.centre[axis] = middle[axis] + offset[axis];
	}
	for (int k = 0; k < 6; ++k)
	{
		about[k] = second[k] / 120 - mass.volume * offset[PRODUCT_AXES[k][0]] * offset[PRODUCT_AXES[k][1]];
	}
	for (int k = 0; k < 3; ++k)
	{
		mass.inertia[k] = about[(k + 1) % 3] + about[(k + 2) % 3];
		mass.inertia[3 + k] = -about[3 + k];
	}
	return mass;
}

SandMeshLabel sand_mesh_label(const SandMesh *mesh)
{
	return make_label(sand_mesh_name(mesh));
}

const char *sand_mesh_name(const SandMesh *mesh)
{
	return ((const MeshBlock *)mesh)->name;
}

const char *sand_mesh_shown_name(const SandMesh *mesh)
{
	const char *name = sand_mesh_name(mesh);
	return name[0] != '\0' ? name : "(no name)";
}

double sand_mesh_float_step(const SandMesh *mesh)
{
	double farthest = 0.0;
	for (int axis = 0; axis < 3; ++axis)
	{
		farthest = fmax(farthest, fmax(fabs((double)mesh->bounds_min[axis]), fabs((double)mesh->bounds_max[axis])));
	}
	return fmax(farthest * 0x1p-23, 0x1p-149);
}
