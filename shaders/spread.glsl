// spread: what the passes of the relaxation share: points, their cells, and how a point gets back to the mesh.
// The twin of csrc/spread.c, same bits; how and why stand there. A pass says by USE_X what it uses. With USE_SURFACE
// tree.glsl stands before it, with USE_NORMALS.
#ifndef SAND_SPREAD_GLSL
#define SAND_SPREAD_GLSL

layout(std430, binding = SAND_BIND_SPREAD) buffer SpreadBlock
{
	SandGlSpread spread;
};
#ifdef USE_PLACES
layout(std430, binding = SAND_BIND_SPREAD_PLACES) buffer PlaceBlock
{
	vec4 places[];
};

// Where a point is now, and where it goes in this sweep.
int place_now(int point)
{
	return spread.side * spread.capacity + point;
}

int place_next(int point)
{
	return (1 - spread.side) * spread.capacity + point;
}
#endif
#ifdef USE_TRIANGLES
layout(std430, binding = SAND_BIND_SPREAD_TRIANGLES) buffer PointTriangleBlock
{
	int point_triangles[];
};
#endif
#ifdef USE_LISTS
layout(std430, binding = SAND_BIND_SPREAD_LISTS) buffer ListBlock
{
	int lists[];
};
layout(std430, binding = SAND_BIND_SPREAD_COUNTS) buffer ListCountBlock
{
	int list_counts[];
};
#endif
#ifdef USE_LISTED
layout(std430, binding = SAND_BIND_SPREAD_LISTED) buffer ListedBlock
{
	vec4 listed[];
};
#endif
#ifdef USE_STARTS
layout(std430, binding = SAND_BIND_SPREAD_STARTS) buffer StartBlock
{
	uint starts[];
};
#endif
#ifdef USE_CURSORS
layout(std430, binding = SAND_BIND_SPREAD_CURSORS) buffer CursorBlock
{
	uint cursors[];
};
#endif
#ifdef USE_ENTRIES
layout(std430, binding = SAND_BIND_SPREAD_ENTRIES) buffer EntryBlock
{
	int entries[];
};
#endif
#ifdef USE_CELLS
layout(std430, binding = SAND_BIND_SPREAD_CELLS) buffer CellBlock
{
	uvec4 cells[];
};

// Cells are as wide as a list reaches. A row of them along x has a key; a cell's bucket is the row's hash plus x.
ivec3 cell_of(vec3 p)
{
	ivec3 cell;
	for (int k = 0; k < 3; ++k)
	{
		precise double at = floor(double(p[k]) * spread.cells_per_metre);
		cell[k] = int(at) + (1 << 20);
	}
	return cell;
}

// y | z << 21 in 64 bits: lower and upper word.
uvec2 row_of(int y, int z)
{
	return uvec2(uint(y) | uint(z) << 21, (y < 0 ? 0xffffffffu : 0u) | uint(z >> 11));
}

// The upper bits of the row times 2^64 over the golden ratio, plus x.
uint bucket_of(uvec2 row, int x)
{
	const uint low = 0x7f4a7c15u, high = 0x9e3779b9u;
	uint carried, rest;
	umulExtended(row.x, low, carried, rest);
	uint top = carried + row.x * high + row.y * low;
	return ((top >> (32 - spread.bucket_bits)) + uint(x)) & ((1u << spread.bucket_bits) - 1u);
}
#endif

float square_between(vec3 a, vec3 b)
{
	precise vec3 d = a - b;
	precise float square = d.x * d.x + d.y * d.y + d.z * d.z;
	return square;
}

#ifdef USE_SURFACE
// Puts a place over its triangle onto it; false when it is over another.
bool stay_on_triangle(int triangle, inout dvec3 p)
{
	dvec3 a = tree_vertex(corner_number(triangle, 0));
	precise dvec3 u = tree_vertex(corner_number(triangle, 1)) - a, v = tree_vertex(corner_number(triangle, 2)) - a;
	precise dvec3 w = p + tree_middle() - a;
	precise double uu = product3(u, u), uv = product3(u, v), vv = product3(v, v), wu = product3(w, u), wv = product3(w, v);
	precise double area = uu * vv - uv * uv, f = vv * wu - uv * wv, g = uu * wv - uv * wu;
	if (!(area > 0.0lf) || f < 0.0lf || g < 0.0lf || f + g > area)
	{
		return false;
	}
	precise double share_u = f / area, share_v = g / area;
	precise dvec3 on = a + share_u * u + share_v * v - tree_middle();
	p = on;
	return true;
}

#ifdef OFFSET
// Moves a place to the level at the offset, along its distance. Places that cannot be there stay near it.
bool go_to_level(inout dvec3 p, double reach, inout int triangle)
{
	for (int round = 0; round < 3; ++round)
	{
		Found found;
		precise dvec3 place = p + tree_middle();
		if (!find_nearest(relative_place(place), reach, found))
		{
			return false;
		}
		precise dvec3 point = found.point + tree_middle(), normal = tree.turn * unit3(feature_normal(found));
		precise double distance = sqrt(found.square);
		precise dvec3 off = place - point;
		precise double side = product3(off, normal), outwards = side < 0.0lf ? -1.0lf : 1.0lf;
		precise dvec3 along = outwards * off / distance;
		precise double least = 1e-9lf * abs(spread.offset);
		precise dvec3 direction = normal;
		if (distance > least)
		{
			direction = along;
		}
		precise dvec3 there = point + spread.offset * direction - tree_middle();
		p = there;
		triangle = found.triangle;
		precise double missing = outwards * distance - spread.offset;
		if (abs(missing) < 1e-3lf * abs(spread.offset))
		{
			break;
		}
	}
	return true;
}

#else
// The nearest of the mesh by floats alone.
bool snap(inout dvec3 p, double reach, inout int triangle)
{
	precise dvec3 place = p + tree_middle();
	dvec3 from = relative_place(place), to;
	int at;
	least_square(floats_of(from), limit_of(from, reach), at);
	if (at < 0)
	{
		return false;
	}
	triangle = tree_words[tree.order + (at < tree.triangle_count ? at : tree.triangle_count - 1)];
	nearest_of_triangle(tree_corner(triangle, 0), tree_corner(triangle, 1), tree_corner(triangle, 2), from, to);
	precise dvec3 back = to + tree_middle(), there = back - tree_middle();
	p = there;
	return true;
}

#endif

// Puts a place that has moved by at most `moved` back on the surface.
bool put_back(inout dvec3 p, double moved, inout int triangle)
{
#ifdef OFFSET
	precise double reach = 2.0lf * (moved + abs(spread.offset));
	return go_to_level(p, reach, triangle);
#else
	precise double reach = 1.01lf * moved;
	return (triangle >= 0 && stay_on_triangle(triangle, p)) || snap(p, reach, triangle);
#endif
}
#endif
#endif
