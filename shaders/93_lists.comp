// 93_lists: the neighbours of every point, in the order of the processor's; the twin of list_task in csrc/spread.c.
// In: places, cells, entries; location 0 the first point of this part, 1 the end. Out: lists, their lengths, and where
// points are now.
// One invocation per point. Groups of 64. A barrier before 94.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint first;
layout(location = 1) uniform uint end;
#define USE_PLACES
#define USE_LISTS
#define USE_LISTED
#define USE_STARTS
#define USE_ENTRIES
#define USE_CELLS
#include "spread.glsl"

int count;

void search_run(int point, vec3 place, uvec2 row, uint low, uint high)
{
	for (uint k = low; k < high; ++k)
	{
		int other = entries[k];
		if (square_between(place, places[place_now(other)].xyz) < spread.list_square && cells[other].xy == row &&
		    other != point && count < SAND_SPREAD_LIST)
		{
			lists[count * spread.capacity + point] = other;
			++count;
		}
	}
}

void main()
{
	uint i = first + sand_thread();
	if (i >= end || spread.needs_lists == 0)
	{
		return;
	}
	int point = int(i);
	vec3 place = places[place_now(point)].xyz;
	ivec3 cell = cell_of(place);
	uint last = (1u << spread.bucket_bits) - 1u;
	count = 0;
	for (int number = 0; number < 9; ++number)
	{
		uvec2 row = row_of(cell.y + number % 3 - 1, cell.z + number / 3 - 1);
		uint bucket = bucket_of(row, cell.x - 1);
		if (bucket + 2u <= last)
		{
			search_run(point, place, row, starts[bucket], starts[bucket + 3u]);
		}
		else
		{
			for (uint x = 0u; x < 3u; ++x)
			{
				uint one = (bucket + x) & last;
				search_run(point, place, row, starts[one], starts[one + 1u]);
			}
		}
	}
	list_counts[point] = count;
	listed[point] = vec4(place, 0.0);
}
