// 97_rooms: places beside points where one more might go; the twin of room_task in csrc/spread.c. In: places, lists,
// cells, tree; location 0 the first room of this part, 1 the end. Out: rooms, SAND_SPREAD_DIRECTIONS per point. Which of
// them are taken is the host's to decide, one after the other.
// One invocation per room. Groups of 32: a tree is walked by each alone. A barrier before they are read.
layout(local_size_x = 32) in;
layout(location = 0) uniform uint first;
layout(location = 1) uniform uint end;
#ifdef OFFSET
#define USE_NORMALS
#endif
#include "tree.glsl"
#define USE_SURFACE
#define USE_PLACES
#define USE_TRIANGLES
#define USE_LISTS
#define USE_STARTS
#define USE_ENTRIES
#define USE_CELLS
#include "spread.glsl"

layout(std430, binding = SAND_BIND_SPREAD_ROOMS) writeonly buffer RoomBlock
{
	SandGlRoom rooms[];
};

const dvec2 around[SAND_SPREAD_DIRECTIONS] =
    dvec2[SAND_SPREAD_DIRECTIONS](dvec2(1.0lf, 0.0lf), dvec2(0.70710678lf, 0.70710678lf), dvec2(0.0lf, 1.0lf),
                                  dvec2(-0.70710678lf, 0.70710678lf), dvec2(-1.0lf, 0.0lf), dvec2(-0.70710678lf, -0.70710678lf),
                                  dvec2(0.0lf, -1.0lf), dvec2(0.70710678lf, -0.70710678lf));

// Two directions across the triangle's normal.
bool find_tangents(int triangle, out dvec3 u, out dvec3 v)
{
	dvec3 a = tree_vertex(corner_number(triangle, 0));
	precise dvec3 e = tree_vertex(corner_number(triangle, 1)) - a, f = tree_vertex(corner_number(triangle, 2)) - a;
	dvec3 n = cross3(e, f), w = cross3(n, e);
	precise double ee = product3(e, e), ww = product3(w, w);
	precise double size_e = sqrt(ee), size_w = sqrt(ww);
	precise dvec3 along = e / size_e, across = w / size_w;
	u = along;
	v = across;
	return ee > 0.0lf && ww > 0.0lf;
}

bool is_run_free(vec3 place, uvec2 row, uint low, uint high)
{
	bool is_free = true;
	for (uint k = low; k < high && is_free; ++k)
	{
		int other = entries[k];
		is_free = !(square_between(place, places[place_now(other)].xyz) < spread.free_square && cells[other].xy == row);
	}
	return is_free;
}

bool is_free_place(vec3 place)
{
	ivec3 cell = cell_of(place);
	uint last = (1u << spread.bucket_bits) - 1u;
	bool is_free = true;
	for (int number = 0; number < 9 && is_free; ++number)
	{
		uvec2 row = row_of(cell.y + number % 3 - 1, cell.z + number / 3 - 1);
		uint bucket = bucket_of(row, cell.x - 1);
		for (uint x = 0u; x < 3u && is_free; ++x)
		{
			uint one = (bucket + x) & last;
			is_free = is_run_free(place, row, starts[one], starts[one + 1u]);
		}
	}
	return is_free;
}

void main()
{
	uint i = first + sand_thread();
	if (i >= end)
	{
		return;
	}
	int point = int(i) / SAND_SPREAD_DIRECTIONS;
	dvec2 turn = around[int(i) % SAND_SPREAD_DIRECTIONS];
	dvec3 u, v;
	int triangle = point_triangles[point];
	bool is_taken = !find_tangents(triangle, u, v);
	vec3 from = places[place_now(point)].xyz;
	precise dvec3 way = turn.x * u + turn.y * v;
	precise dvec3 to = dvec3(double(from.x), double(from.y), double(from.z)) + spread.spacing * way;
	precise vec3 place = floats_of(to);
	precise float limit = 0.8 * spread.free_square;
	for (int k = 0; k < list_counts[point] && !is_taken; ++k)
	{
		is_taken = square_between(place, places[place_now(lists[k * spread.capacity + point])].xyz) < limit;
	}
	int found = -1;
	if (!is_taken)
	{
		dvec3 there = to;
		if (put_back(there, spread.spacing, triangle))
		{
			place = floats_of(there);
			found = is_free_place(place) ? triangle : -1;
		}
	}
	for (int k = 0; k < 3; ++k)
	{
		rooms[i].place[k] = place[k];
	}
	rooms[i].triangle = found;
}
