// 41_touches: which obstacles a sphere may touch in the next steps, and where; the twin of search_obstacles in csrc/list.c.
// Without WRITE they are counted for each sphere, with WRITE they are listed.
// In: placed spheres, obstacles. Out: obstacle pairs with their laws. Groups of 64, one sphere each; no barrier inside. A
// scan comes between the two.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SPHERES
#define READ_SPHERES
#define USE_LAWS
#define USE_LAW_OF
#define USE_TOUCHES
#include "engine.glsl"
#include "surface.glsl"
#include "obstacle.glsl"
layout(std430, binding = SAND_BIND_OBSTACLES) readonly buffer ObstacleBlock
{
	SandObstacle obstacles[];
};

void main()
{
	now = control;
	int s = int(sand_thread()), found = 0;
	if (s >= control.sphere_count)
	{
		return;
	}
	int grain = spheres[s].grain, flags = grains[grain].flags;
	if (!is_still(flags) && spheres[s].inverse_mass != 0.0)
	{
		precise float margin = (flags & SAND_GRAIN_FAST) != 0 ? control.margin_fast : control.margin_slow;
		precise float near = spheres[s].radius + margin;
		double_p reach = (double(near) + double(control.bridge)) * control.unit;
		dvec3 p = ball_of(s).place;
		for (int o = 0; o < control.obstacle_count; ++o)
		{
			Touches t = obstacle_touches(obstacles[o], p, reach);
#ifdef WRITE
			int law = law_of[traits[grain].material * control.material_count + obstacles[o].material];
			for (int k = 0; k < t.count; ++k)
			{
				int at = touch_firsts[s] + found + k;
				touches[at].code = SAND_SLOT_COUNT * o + t.slots[k];
				touches[at].law = law;
				touches[at].sphere = s;
				touches[at].stretch[0] = touches[at].stretch[1] = touches[at].stretch[2] = 0.0;
			}
#endif
			found += t.count;
		}
	}
#ifndef WRITE
	touch_firsts[s] = found;
#endif
}
