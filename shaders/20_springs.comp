// 20_springs: the friction springs of the pairs, saved by lasting ids before grains change their order; the twin of
// sand_list_save_history in csrc/list.c. Without WRITE they are counted for each sphere, with WRITE they get their place.
// In: pairs, obstacle pairs and triangles with their springs; the springs saved before. Out: the springs to save.
// Groups of 64, one pair or sphere each; places by atomic counting: a sphere's springs come in any order, and nothing
// depends on it. A scan and barriers come between the two.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint part; // 0 = pairs, 1 = spheres with what is no pair, 2 = spheres at rest
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

layout(std430, binding = SAND_BIND_NEW_FIRSTS) buffer NewFirstBlock
{
	int new_firsts[];
};
#ifdef WRITE
layout(std430, binding = SAND_BIND_NEW_SPRINGS) buffer NewSpringBlock
{
	SandGlSpring new_springs[];
};
layout(std430, binding = SAND_BIND_CURSORS) buffer CursorBlock
{
	int cursors[];
};
#endif

void put_spring(int low, int other, vec3 stretch, float sign_of, float side)
{
#ifdef WRITE
	int at = new_firsts[low] + atomicAdd(cursors[low], 1);
	precise vec3 turned_stretch = sign_of * stretch;
	new_springs[at].other = other;
	new_springs[at].side = side;
	new_springs[at].low = low;
	new_springs[at].stretch[0] = turned_stretch.x;
	new_springs[at].stretch[1] = turned_stretch.y;
	new_springs[at].stretch[2] = turned_stretch.z;
#else
	atomicAdd(new_firsts[low], 1);
#endif
}

void save_pair(int i)
{
	vec3 stretch = stretches[i].xyz;
	if (stretch == vec3(0.0))
	{
		return;
	}
	int a = lasting_id(pairs[i].a), b = lasting_id(pairs[i].b);
	bool is_swapped = b < a;
	put_spring(is_swapped ? b : a, is_swapped ? a : b, stretch, is_swapped ? -1.0 : 1.0, 0.0);
}

void save_sphere(int s)
{
	int low = lasting_id(s);
	for (int i = touch_firsts[s]; i < touch_firsts[s + 1] && control.obstacle_count > 0; ++i)
	{
		vec3 stretch = vec3(touches[i].stretch[0], touches[i].stretch[1], touches[i].stretch[2]);
		if (stretch != vec3(0.0))
		{
			put_spring(low, -1 - touches[i].code, stretch, 1.0, 0.0);
		}
	}
	for (int i = near_firsts[s]; i < near_firsts[s + 1] && control.collider_count > 0; ++i)
	{
		if (nears[i].side != 0.0)
		{
			put_spring(low, -1 - nears[i].number, vec3(nears[i].stretch[0], nears[i].stretch[1], nears[i].stretch[2]), 1.0,
			           nears[i].side);
		}
	}
}

// Two that slept through the last list had no pair in it: their spring is as it was.
void keep_springs(int low)
{
	if (!was_at_rest(low))
	{
		return;
	}
	for (int i = spring_firsts[low]; i < spring_firsts[low + 1]; ++i)
	{
		int other = springs[i].other;
		if (other < 0 || was_at_rest(other))
		{
			put_spring(low, other, vec3(springs[i].stretch[0], springs[i].stretch[1], springs[i].stretch[2]), 1.0,
			           springs[i].side);
		}
	}
}

void main()
{
	int i = int(sand_thread());
	if (part == 0u && i < control.pair_count)
	{
		save_pair(i);
	}
	else if (part == 1u && i < control.sphere_count)
	{
		save_sphere(i);
	}
	else if (part == 2u && i < control.sphere_count + control.wall_count)
	{
		keep_springs(i);
	}
}
