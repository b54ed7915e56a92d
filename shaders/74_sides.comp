// 74_sides: whether nodes that nobody near knows of are inside the mesh, by the tree; the twin of sand_surface_is_inside.
// In: tree with normals and dipoles, grid, bricks, the list of nodes; location 0 the first of this part, 1 the end. Out:
// the code of each: inside, outside, or unsure, which is counted and left to the host.
// One invocation per node of the list, whose length only the device knows. Groups of 32: a tree is walked by each alone. A barrier before 75.
layout(local_size_x = 32) in;
layout(location = 0) uniform uint asked_first;
layout(location = 1) uniform uint asked_end;
#define USE_NORMALS
#define USE_DIPOLES
#include "tree.glsl"
#define USE_BRICKS
#define USE_CODES
#include "field.glsl"

void main()
{
	uint i = asked_first + sand_thread();
	if (i >= asked_end || i >= asked_count)
	{
		return;
	}
	uint at = asked[i], node = at & 511u;
	uvec3 brick = brick_place(bricks[at >> 9].y);
	uvec3 inner = uvec3(node & 7u, node >> 3 & 7u, node >> 6);
	precise dvec3 steps = 8.0lf * dvec3(double(brick.x), double(brick.y), double(brick.z)) +
	                      dvec3(double(inner.x), double(inner.y), double(inner.z));
	precise dvec3 place = dvec3(field.origin[0], field.origin[1], field.origin[2]) + field.voxel * steps;
	int side = side_of(place);
	codes[at] = side;
	if (side == SAND_SIDE_UNSURE)
	{
		atomicAdd(unsure_count, 1u);
	}
}
