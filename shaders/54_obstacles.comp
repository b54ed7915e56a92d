// 54_obstacles: contact forces of closed-form surfaces; the twin of obstacle_forces in csrc/kernel.c.
// In: spheres, their obstacle pairs with springs, obstacles, laws. Out: added to the sums, the springs, the number of
// contacts.
// Groups of 64, one sphere each, its pairs in order: a sum is one invocation's. Barrier inside for the count only; comes
// behind the one after 52_sums.
layout(local_size_x = 64) in;
#define USE_SPHERES
#define USE_SUMS
#define USE_LAWS
#include "engine.glsl"
#include "surface.glsl"
#include "obstacle.glsl"
layout(std430, binding = SAND_BIND_OBSTACLES) readonly buffer ObstacleBlock
{
	SandObstacle obstacles[];
};
layout(std430, binding = SAND_BIND_TOUCH_FIRSTS) readonly buffer TouchFirstBlock
{
	int touch_firsts[];
};
layout(std430, binding = SAND_BIND_TOUCHES) buffer TouchBlock
{
	SandGlTouch touches[];
};

shared int touching;

// The touch at the pair's own slot.
bool find_touch(SandObstacle o, int slot, dvec3 p, double reach, out double distance, out dvec3 normal)
{
	bool is_found = false;
	Touches t = obstacle_touches(o, p, reach);
	distance = 0.0lf;
	normal = dvec3(0.0lf);
	for (int k = 0; k < t.count; ++k)
	{
		if (t.slots[k] == slot)
		{
			is_found = true;
			distance = t.distances[k];
			normal = t.normals[k];
		}
	}
	return is_found;
}

int sphere_forces(int s)
{
	int first = touch_firsts[s], last = touch_firsts[s + 1], count = 0;
	if (first == last)
	{
		return 0;
	}
	vec3 force_sum, torque_sum;
	dvec3 p = sphere_place(s);
	load_sum(s, force_sum, torque_sum);
	for (int i = first; i < last; ++i)
	{
		SandLaw law = laws[touches[i].law];
		vec3 stretch = vec3(touches[i].stretch[0], touches[i].stretch[1], touches[i].stretch[2]), force, couple;
		double distance;
		dvec3 normal;
		if (find_touch(obstacles[touches[i].code / SAND_SLOT_COUNT], touches[i].code % SAND_SLOT_COUNT, p,
		               sphere_reach(s, law), distance, normal))
		{
			add_surface_force(s, law, distance, normal, dvec3(0.0lf), stretch, force_sum, torque_sum, force, couple);
			++count;
		}
		else
		{
			stretch = vec3(0.0);
		}
		for (int k = 0; k < 3; ++k)
		{
			touches[i].stretch[k] = stretch[k];
		}
	}
	store_sum(s, force_sum, torque_sum);
	return count;
}

void main()
{
	int s = int(sand_thread()), count = 0;
	if (control.halt != SAND_HALT_NONE)
	{
		return;
	}
	if (gl_LocalInvocationID.x == 0u)
	{
		touching = 0;
	}
	barrier();
	if (s < control.sphere_count)
	{
		count = sphere_forces(s);
	}
	if (count > 0)
	{
		atomicAdd(touching, count);
	}
	barrier();
	if (gl_LocalInvocationID.x == 0u && touching > 0)
	{
		atomicAdd(control.contact_count, touching);
	}
}
