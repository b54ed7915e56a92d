// 38_search: which spheres may touch in the next steps; the twin of search_near and take_pair in csrc/list.c. Without
// WRITE they are counted for each lower sphere, with WRITE they are listed, in order of class and cell of the other one.
// In: placed spheres, buckets. Out: pairs; pairs to watch of a sleeper and one awake; how many support a sleeper.
// Groups of 64, one sphere each; no barrier inside. A scan comes between the two.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SPHERES
#define USE_LEVELS
#define USE_STARTS
#define USE_ENTRIES
#define USE_FIRSTS
#define USE_SUPPORTS
#ifdef WRITE
#define USE_PAIRS
#define USE_WATCHES
#define USE_LAW_OF
#endif
#include "engine.glsl"
#include "cells.glsl"

int found;

void watch(int sleeper, int awake)
{
	int at = atomicAdd(control.watch_count, 1);
#ifdef WRITE
	watches[2 * at] = sleeper;
	watches[2 * at + 1] = awake;
#endif
}

void take_pair(int i, int j, bool is_asleep, bool is_close)
{
	int own = spheres[i].grain, other = spheres[j].grain;
	if (spheres[i].inverse_mass == 0.0 && spheres[j].inverse_mass == 0.0)
	{
		return; // neither gives way: driven grains and walls
	}
	if (control.sleep_speed > 0.0lf)
	{
		bool is_other_asleep = other < 0 || is_still(grains[other].flags);
#ifndef WRITE
		if (is_close && is_asleep)
		{
			atomicAdd(supports[own], 1);
		}
		if (is_close && is_other_asleep && other >= 0)
		{
			atomicAdd(supports[other], 1);
		}
#endif
		if (is_asleep && is_other_asleep)
		{
			return;
		}
		if (is_asleep)
		{
			watch(i, j);
		}
		if (is_other_asleep && other >= 0)
		{
			watch(j, i);
		}
	}
#ifdef WRITE
	int chunk = grains[own].first_sphere / control.chunk_spheres;
	bool is_outer = other < 0 || grains[other].first_sphere / control.chunk_spheres != chunk;
	int material = other < 0 ? control.wall_material : traits[other].material;
	int at = firsts[i] + found;
	pairs[at].a = i;
	pairs[at].b = j;
	pairs[at].law = law_of[traits[own].material * control.material_count + material];
	pairs[at].chunk = 2 * chunk + (is_outer ? 1 : 0);
#endif
	++found;
}

void search_bucket(uint bucket, int i, float reach_own, float margin, float radius_max, bool is_asleep)
{
	precise float widest = reach_own + margin + radius_max, widest_square = widest * widest;
	for (uint k = starts[bucket]; k < starts[bucket + 1u]; ++k)
	{
		int j = entries[k];
		if (j <= i)
		{
			continue;
		}
		precise vec3 d = vec3(spheres[i].x[0] - spheres[j].x[0], spheres[i].x[1] - spheres[j].x[1],
		                      spheres[i].x[2] - spheres[j].x[2]);
		precise float square = d.x * d.x + d.y * d.y + d.z * d.z;
		precise float reach = reach_own + margin + spheres[j].radius, reach_square = reach * reach;
		precise float touch = 1.02 * (spheres[i].radius + spheres[j].radius), touch_square = touch * touch;
		if (square < widest_square && square < reach_square && spheres[j].grain != spheres[i].grain)
		{
			take_pair(i, j, is_asleep, square < touch_square);
		}
	}
}

void search_level(int l, int i, float reach_own, bool is_asleep)
{
	uint scale = levels[l].cell_scale, mask = levels[l].mask, first_bucket = levels[l].first_bucket;
	float margin = levels[l].margin, radius_max = levels[l].radius_max;
	double_p far = ceil(double(reach_own) + double(margin) + double(radius_max));
	uint reach = uint(far), low[3], high[3];
	for (int k = 0; k < 3; ++k)
	{
		uint place = shifted_place(spheres[i].x[k]);
		low[k] = cell_of(scale, place > reach ? place - reach : 0u);
		high[k] = cell_of(scale, place + reach);
	}
	for (uint z = low[2]; z <= high[2]; ++z)
	{
		for (uint y = low[1]; y <= high[1]; ++y)
		{
			uint row = y * levels[l].stride_y + z * levels[l].stride_z;
			for (uint x = low[0]; x <= high[0]; ++x)
			{
				search_bucket(first_bucket + ((x + row) & mask), i, reach_own, margin, radius_max, is_asleep);
			}
		}
	}
}

void main()
{
	int i = int(sand_thread());
	if (i >= control.sphere_count)
	{
		return;
	}
	int flags = grains[spheres[i].grain].flags;
	found = 0;
	if ((flags & SAND_GRAIN_ABSENT) == 0)
	{
		precise float margin = (flags & SAND_GRAIN_FAST) != 0 ? control.margin_fast : control.margin_slow;
		precise float reach_own = spheres[i].radius + margin + 0.5 * control.bridge;
		for (int l = 0; l < control.level_count; ++l)
		{
			if (levels[l].entry_count > 0)
			{
				search_level(l, i, reach_own, is_still(flags));
			}
		}
	}
#ifndef WRITE
	firsts[i] = found;
#endif
}
