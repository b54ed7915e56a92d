// 46_restore: saved springs back into the new pairs, and who rests through this list; the twin of restore_history in
// csrc/list.c. In: springs by lasting ids, pairs. Out: springs of the pairs.
// part 0: one pair each; part 1: one sphere each, with its obstacle pairs and triangles. Groups of 64; no barrier.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint part;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SPHERES
#define USE_PAIRS
#define USE_STRETCHES
#define USE_SPRINGS
#define USE_BASES
#define USE_TOUCHES
#define USE_NEARS
#include "engine.glsl"

// The stretch of a against b, and the side.
vec4 find_spring(int a, int b)
{
	bool is_swapped = b >= 0 && b < a;
	int low = is_swapped ? b : a, high = is_swapped ? a : b;
	for (int i = spring_firsts[low]; i < spring_firsts[low + 1]; ++i)
	{
		if (springs[i].other == high)
		{
			vec3 stretch = vec3(springs[i].stretch[0], springs[i].stretch[1], springs[i].stretch[2]);
			return vec4(is_swapped ? -stretch : stretch, springs[i].side);
		}
	}
	return vec4(0.0);
}

void main()
{
	int i = int(sand_thread());
	if (part == 0u && i < control.pair_count)
	{
		stretches[i] = vec4(find_spring(lasting_id(pairs[i].a), lasting_id(pairs[i].b)).xyz, 0.0);
	}
	else if (part == 1u && i < control.sphere_count)
	{
		int low = lasting_id(i);
		set_at_rest(low, is_still(grains[spheres[i].grain].flags));
		for (int k = touch_firsts[i]; k < touch_firsts[i + 1] && control.obstacle_count > 0; ++k)
		{
			vec4 found = find_spring(low, -1 - touches[k].code);
			touches[k].stretch[0] = found.x;
			touches[k].stretch[1] = found.y;
			touches[k].stretch[2] = found.z;
		}
		for (int k = near_firsts[i]; k < near_firsts[i + 1] && control.collider_count > 0; ++k)
		{
			vec4 found = find_spring(low, -1 - nears[k].number);
			nears[k].stretch[0] = found.x;
			nears[k].stretch[1] = found.y;
			nears[k].stretch[2] = found.z;
			nears[k].side = found.w;
		}
	}
}
