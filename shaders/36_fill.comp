// 36_fill: spheres into their buckets, then every bucket into ascending order, so that the order of the atomics does not
// show; the twin of fill_cells in csrc/list.c. In: buckets, scanned starts, cleared cursors. Out: entries.
// part 0: one sphere each; part 1: one bucket each. Groups of 64; a barrier between the parts.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint part;
layout(location = 1) uniform uint bucket_count;
#define USE_STARTS
#define USE_ENTRIES
#define USE_BUCKETS
#include "engine.glsl"

layout(std430, binding = SAND_BIND_CURSORS) buffer CursorBlock
{
	uint cursors[];
};

void main()
{
	uint i = sand_thread();
	if (part == 0u)
	{
		if (i < uint(control.sphere_count + control.wall_count) && buckets[i] != SAND_NO_BUCKET)
		{
			entries[starts[buckets[i]] + atomicAdd(cursors[buckets[i]], 1u)] = int(i);
		}
		return;
	}
	if (i >= bucket_count)
	{
		return;
	}
	uint first = starts[i], end = starts[i + 1u];
	for (uint k = first + 1u; k < end; ++k)
	{
		int value = entries[k];
		uint at = k;
		while (at > first && entries[at - 1u] > value)
		{
			entries[at] = entries[at - 1u];
			--at;
		}
		entries[at] = value;
	}
}
