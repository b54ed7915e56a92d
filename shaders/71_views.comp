// 71_views: each triangle as the bricks that it may reach see it; the twin of view_of and range_of in csrc/rows.c, same
// bits. In: tree, grid, records of triangle and brick, location 0 their number. Out: nine vec4 per record.
// One invocation per record, so that the distances of 512 nodes find it made. Groups of 64. A barrier before 72.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint record_count;
#include "tree.glsl"
#include "field.glsl"

layout(std430, binding = SAND_BIND_FIELD_RECORDS) readonly buffer RecordBlock
{
	uvec2 records[]; // triangle, number of the brick in the grid
};
layout(std430, binding = SAND_BIND_FIELD_VIEWS) writeonly buffer ViewBlock
{
	vec4 views[]; // along x y z, across x y z: of three edges, and of the face; before and the rows, past and whether it
	              // is flat, inwards and the height
};

// The edges, from corner k to the next, and the face's normal: columns.
dvec3 edges[4];

// All corners on one line, or at one place: unit vectors along the longest edge, and some normal.
void straighten(double square[3])
{
	int longest = square[0] >= square[1] ? 0 : 1;
	longest = square[longest] >= square[2] ? longest : 2;
	precise double size = sqrt(square[longest]);
	precise dvec3 line = dvec3(1.0lf, 0.0lf, 0.0lf);
	if (size > 0.0lf)
	{
		line = edges[longest] / size;
	}
	int least = abs(line[0]) <= abs(line[1]) ? 0 : 1;
	least = abs(line[least]) <= abs(line[2]) ? least : 2;
	int next = (least + 1) % 3, last = (least + 2) % 3;
	precise double across = sqrt(line[next] * line[next] + line[last] * line[last]);
	precise double down = -line[last] / across, up = line[next] / across;
	precise dvec3 normal = dvec3(0.0lf);
	normal[next] = down;
	normal[last] = up;
	for (int i = 0; i < 3; ++i)
	{
		precise double along = product3(edges[i], line);
		precise double sign = along < 0.0lf ? -1.0lf : 1.0lf;
		precise dvec3 edge = sign * line;
		edges[i] = edge;
	}
	edges[3] = normal;
}

// Rows along an axis that the triangle comes near, of 0 .. 8: the first in the lower half, the end in the upper.
uint range_of(double a, double b, double c)
{
	precise double least = a < b ? a : b, most = a < b ? b : a;
	precise double reach = double(field.band + 0.001);
	precise double low = (least < c ? least : c) - reach + 3.5lf, high = (most > c ? most : c) + reach + 3.5lf;
	int first = low <= 0.0lf ? 0 : low > 8.0lf ? 8 : 8 - int(8.0lf - low);
	int end = high < 0.0lf ? 0 : high >= 7.0lf ? 8 : int(high) + 1;
	return uint(first) | uint(end) << 4;
}

void main()
{
	uint i = sand_thread();
	if (i >= record_count)
	{
		return;
	}
	int triangle = int(records[i].x);
	uvec3 brick = brick_place(records[i].y);
	precise dvec3 middle = 8.0lf * dvec3(double(brick.x), double(brick.y), double(brick.z)) + 3.5lf;
	precise dvec3 a = field_corner(tree_vertex(corner_number(triangle, 0))) - middle;
	precise dvec3 b = field_corner(tree_vertex(corner_number(triangle, 1))) - middle;
	precise dvec3 c = field_corner(tree_vertex(corner_number(triangle, 2))) - middle;
	precise dvec3 ab = b - a, bc = c - b, ca = a - c, ac = c - a;
	edges[0] = ab;
	edges[1] = bc;
	edges[2] = ca;
	edges[3] = cross3(ab, ac);
	double square[3], size[4];
	for (int k = 0; k < 4; ++k)
	{
		precise double own = product3(edges[k], edges[k]), root = sqrt(own);
		size[k] = root;
		if (k < 3)
		{
			square[k] = own;
		}
	}
	double longest = square[0] > square[1] ? square[0] : square[1];
	longest = longest > square[2] ? longest : square[2];
	precise double thin = 1e-12lf * longest;
	bool is_flat = !(size[3] > thin);
	if (is_flat)
	{
		straighten(square);
	}
	else
	{
		for (int k = 0; k < 4; ++k)
		{
			precise double inverse = 1.0lf / size[k];
			precise dvec3 edge = edges[k] * inverse;
			edges[k] = edge;
		}
	}
	vec4 along[3], across[3];
	vec4 before, past, inwards;
	for (int k = 0; k < 4; ++k)
	{
		dvec3 side = edges[3];
		if (k < 3)
		{
			side = cross3(edges[3], edges[k]);
		}
		dvec3 from = k == 1 ? b : k == 2 ? c : a;
		precise double ahead = -product3(edges[k], from), far = ahead - size[k], depth = -product3(side, from);
		before[k] = float(-ahead);
		past[k] = float(far);
		inwards[k] = float(depth);
		for (int axis = 0; axis < 3; ++axis)
		{
			along[axis][k] = float(edges[k][axis]);
			across[axis][k] = float(side[axis]);
		}
	}
	before.w = float(range_of(a.y, b.y, c.y) | range_of(a.z, b.z, c.z) << 8);
	past.w = is_flat ? 1.0 : 0.0;
	uint at = 9u * i;
	for (uint axis = 0u; axis < 3u; ++axis)
	{
		views[at + axis] = along[axis];
		views[at + 3u + axis] = across[axis];
	}
	views[at + 6u] = before;
	views[at + 7u] = past;
	views[at + 8u] = inwards;
}
