// 70_reaches: which bricks the band around each triangle may reach; the twin of list_bricks in csrc/field.c.
// In: tree (vertices, triangles), grid; with WRITE, the scanned counts. Out: without WRITE, per triangle how many; with
// it, records of brick and triangle for the sort.
// One invocation per triangle, location 0 the first, 1 the end: parts keep a dispatch short. Groups of 64. A barrier
// before the counts are scanned or the records sorted.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint triangle_first;
layout(location = 1) uniform uint triangle_end;
#include "tree.glsl"
#include "field.glsl"

layout(std430, binding = SAND_BIND_FIELD_REACHES) buffer ReachBlock
{
	uint reaches[];
};
#ifdef WRITE
layout(std430, binding = SAND_BIND_KEYS) buffer KeyBlock
{
	uvec2 keys[];
};
#endif

const double SIDE = 8.0lf;
const double HALF_BRICK = 3.5lf;

int brick_at(int axis, double node)
{
	int brick = node <= 0.0lf ? 0 : int(node / SIDE);
	return brick < field.bricks[axis] ? brick : field.bricks[axis] - 1;
}

double segment_square(dvec3 from, dvec3 to, dvec3 place)
{
	precise dvec3 along = to - from, off = place - from;
	precise double size = product3(along, along), part = product3(along, off);
	precise double share = size > 0.0lf ? part / size : 0.0lf;
	share = share < 0.0lf ? 0.0lf : share > 1.0lf ? 1.0lf : share;
	precise dvec3 rest = off - share * along;
	return product3(rest, rest);
}

void look_at_edge(dvec3 from, dvec3 to, dvec3 normal, dvec3 place, inout bool is_over, inout double square)
{
	precise dvec3 along = to - from, off = place - from;
	is_over = is_over && product3(cross3(normal, along), off) >= 0.0lf;
	square = smaller2(segment_square(from, to, place), square);
}

// Whether a place over the plane of the triangle is farther than reach from the triangle.
bool is_beside(dvec3 a, dvec3 b, dvec3 c, dvec3 normal, dvec3 place, double reach)
{
	bool is_over = true;
	double square = 1.7976931348623157e308lf;
	look_at_edge(a, b, normal, place, is_over, square);
	look_at_edge(b, c, normal, place, is_over, square);
	look_at_edge(c, a, normal, place, is_over, square);
	precise double limit = reach * reach;
	return !is_over && square > limit;
}

void main()
{
	uint triangle = triangle_first + sand_thread();
	if (triangle >= triangle_end)
	{
		return;
	}
	dvec3 a = field_corner(tree_vertex(corner_number(int(triangle), 0)));
	dvec3 b = field_corner(tree_vertex(corner_number(int(triangle), 1)));
	dvec3 c = field_corner(tree_vertex(corner_number(int(triangle), 2)));
	precise dvec3 u = b - a, v = c - a;
	precise double grown = field.reach + 0.01lf;
	ivec3 low, high;
	for (int k = 0; k < 3; ++k)
	{
		precise double least = smaller2(smaller2(a[k], b[k]), c[k]) - grown;
		precise double most = larger2(larger2(a[k], b[k]), c[k]) + grown;
		low[k] = brick_at(k, -floor(-least));
		high[k] = brick_at(k, floor(most));
	}
	// In doubles: three sides of a grid may be beyond 32 bits together.
	double box = double(high.x - low.x + 1) * double(high.y - low.y + 1) * double(high.z - low.z + 1);
	bool is_large = box > 27.0lf;
	dvec3 normal = cross3(u, v);
	precise double offset = product3(normal, a), size = sqrt(product3(normal, normal));
	precise double sum = abs(normal.x) + abs(normal.y) + abs(normal.z);
	precise double thickness = grown * size + HALF_BRICK * sum, reach = grown + HALF_BRICK * sqrt(3.0lf);
	precise double slope = normal.x * SIDE, half_step = normal.x * HALF_BRICK;
	uint count = 0u;
#ifdef WRITE
	uint first = reaches[triangle];
#endif
	for (int z = low.z; z <= high.z; ++z)
	{
		for (int y = low.y; y <= high.y; ++y)
		{
			precise double at = normal.y * (SIDE * double(y) + HALF_BRICK) + normal.z * (SIDE * double(z) + HALF_BRICK) - offset;
			int x = low.x, x_end = high.x;
			for (; x <= x_end; ++x)
			{
				precise double height = at + half_step + slope * double(x);
				if (!(abs(height) > thickness))
				{
					break;
				}
			}
			for (; x_end > x; --x_end)
			{
				precise double height = at + half_step + slope * double(x_end);
				if (!(abs(height) > thickness))
				{
					break;
				}
			}
			for (; x <= x_end; ++x)
			{
				precise dvec3 middle = dvec3(SIDE * double(x) + HALF_BRICK, SIDE * double(y) + HALF_BRICK, SIDE * double(z) + HALF_BRICK);
				if (is_large && is_beside(a, b, c, normal, middle, reach))
				{
					continue;
				}
#ifdef WRITE
				keys[first + count] = uvec2((uint(z) * uint(field.bricks[1]) + uint(y)) * uint(field.bricks[0]) + uint(x), triangle);
#endif
				++count;
			}
		}
	}
#ifndef WRITE
	reaches[triangle] = count;
#endif
}
