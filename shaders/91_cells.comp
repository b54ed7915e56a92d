// 91_cells: the cell of every point, and how many each bucket has; the twin of cell_task in csrc/spread.c. In: places;
// location 0 the first point of this part, 1 the end. Out: cells, counts per bucket for the scan.
// One invocation per point. Groups of 64. Counts are sums of whole numbers: the order of the atomics does not show. A
// barrier before the scan.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint first;
layout(location = 1) uniform uint end;
#define USE_PLACES
#define USE_STARTS
#define USE_CELLS
#include "spread.glsl"

void main()
{
	uint i = first + sand_thread();
	if (i >= end || spread.needs_lists == 0)
	{
		return;
	}
	ivec3 cell = cell_of(places[place_now(int(i))].xyz);
	uvec2 row = row_of(cell.y, cell.z);
	uint bucket = bucket_of(row, cell.x);
	cells[i] = uvec4(row, bucket, 0u);
	atomicAdd(starts[bucket], 1u);
}
