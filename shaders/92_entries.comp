// 92_entries: points into their buckets; with SORT, every bucket into ascending order, so that the order of the atomics
// does not show. In: cells, scanned starts, cleared cursors; location 0 the first point (with SORT bucket) of this part,
// 1 the end. Out: entries.
// One invocation per point or bucket. Groups of 64. A barrier between the two and before 93.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint first;
layout(location = 1) uniform uint end;
#define USE_STARTS
#define USE_CURSORS
#define USE_ENTRIES
#define USE_CELLS
#include "spread.glsl"

void main()
{
	uint i = first + sand_thread();
	if (i >= end || spread.needs_lists == 0)
	{
		return;
	}
#ifdef SORT
	uint low = starts[i], high = starts[i + 1u];
	for (uint k = low + 1u; k < high; ++k)
	{
		int value = entries[k];
		uint at = k;
		while (at > low && entries[at - 1u] > value)
		{
			entries[at] = entries[at - 1u];
			--at;
		}
		entries[at] = value;
	}
#else
	uint bucket = cells[i].z;
	entries[starts[bucket] + atomicAdd(cursors[bucket], 1u)] = int(i);
#endif
}
