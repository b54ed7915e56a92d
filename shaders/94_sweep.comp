// 94_sweep: every point pushed away from its neighbours and put back on the mesh; the twin of sweep_task in
// csrc/spread.c. In: places, drifts, lists, tree; location 0 the first point of this part, 1 the end. Out: places of the
// other half, drifts, triangles; the most that a pair lacks and the farthest from where the lists were made.
// One invocation per point: sums run over its list in its order. Groups of 32: a tree is walked by each alone. The two
// largest are floats above zero, so their bits compare as they do, and a maximum has no order. A barrier before 95.
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
#define USE_LISTED
#include "spread.glsl"

layout(std430, binding = SAND_BIND_SPREAD_DRIFTS) buffer DriftBlock
{
	vec4 drifts[];
};

void main()
{
	uint i = first + sand_thread();
	if (i >= end || spread.is_done != 0)
	{
		return;
	}
	int point = int(i);
	precise vec3 p = places[place_now(point)].xyz, push = vec3(0.0);
	precise float spacing = spread.spacing_float, limit = spacing * spacing, lack_most = 0.0;
	for (int k = 0; k < list_counts[point]; ++k)
	{
		int other = lists[k * spread.capacity + point];
		precise vec3 d = p - places[place_now(other)].xyz;
		precise float square = d.x * d.x + d.y * d.y + d.z * d.z;
		if (square < limit)
		{
			precise float size = sqrt(square), lack = spacing - size;
			lack_most = lack > lack_most ? lack : lack_most;
			if (size > 0.0)
			{
				precise float share = lack / size;
				push = push + share * d;
			}
			else
			{
				// Two at one place part along any direction, the lower number one way.
				push.x = push.x + (point < other ? -lack : lack);
			}
		}
	}
	precise vec3 pushed = 0.35 * push + 0.6 * drifts[point].xyz;
	precise dvec3 way = dvec3(double(pushed.x), double(pushed.y), double(pushed.z));
	precise double moved = sqrt(product3(way, way)), most = 0.3lf * spread.spacing;
	precise double cut = 1.0lf;
	if (moved > most)
	{
		cut = most / moved;
	}
	precise dvec3 to = dvec3(double(p.x), double(p.y), double(p.z)) + cut * way;
	precise vec3 next = p;
	if (moved != 0.0lf)
	{
		int triangle = point_triangles[point];
		precise double farthest = cut * moved;
		dvec3 there = to;
		if (put_back(there, farthest, triangle))
		{
			next = floats_of(there);
		}
		point_triangles[point] = triangle;
	}
	precise vec3 drift = next - p;
	places[place_next(point)] = vec4(next, 0.0);
	drifts[point] = vec4(drift, 0.0);
	uint lack_bits = floatBitsToUint(lack_most), moved_bits = floatBitsToUint(square_between(next, listed[point].xyz));
	if (lack_bits > spread.lack_bits)
	{
		atomicMax(spread.lack_bits, lack_bits);
	}
	if (moved_bits > spread.moved_bits)
	{
		atomicMax(spread.moved_bits, moved_bits);
	}
}
