// 35_cells: the bucket of every sphere and wall, and how many are in each; the twin of key_task in csrc/list.c.
// In: placed spheres, cells of the classes. Out: buckets, counts per bucket and class, by atomic counting.
// Groups of 64, one sphere each; no barrier inside.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_SPHERES
#define USE_LEVELS
#define USE_STARTS
#define USE_BUCKETS
#include "engine.glsl"
#include "cells.glsl"

void main()
{
	int s = int(sand_thread());
	if (s >= control.sphere_count + control.wall_count)
	{
		return;
	}
	int grain = spheres[s].grain;
	if (grain >= 0 && (grains[grain].flags & SAND_GRAIN_ABSENT) != 0)
	{
		buckets[s] = SAND_NO_BUCKET;
		return;
	}
	int l = level_of(s);
	uint scale = levels[l].cell_scale;
	uint x = cell_of(scale, shifted_place(spheres[s].x[0])), y = cell_of(scale, shifted_place(spheres[s].x[1])),
	     z = cell_of(scale, shifted_place(spheres[s].x[2]));
	uint bucket = levels[l].first_bucket + ((x + y * levels[l].stride_y + z * levels[l].stride_z) & levels[l].mask);
	buckets[s] = bucket;
	atomicAdd(starts[bucket], 1u);
	atomicAdd(levels[l].entry_count, 1);
}
