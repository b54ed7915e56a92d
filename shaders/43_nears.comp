// 43_nears: which triangles of colliders a sphere may touch in the next steps; the twin of search_colliders in
// csrc/list.c. Without WRITE they are counted for each sphere, and sleepers that a moving collider comes near to are
// woken; with WRITE they are listed.
// In: placed spheres, colliders, their poses and slack. Out: triangles with their laws, in order of collider and number,
// and which spheres have any.
// Groups of 64, one sphere each; no barrier inside. A scan comes between the two.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SPHERES
#define USE_LAW_OF
#define USE_NEARS
#include "engine.glsl"
#include "collider.glsl"
#ifdef WRITE
layout(std430, binding = SAND_BIND_NEAR_SPHERES) writeonly buffer NearSphereBlock
{
	int near_spheres[]; // in any order: each is done for itself
};
#endif

void main()
{
	int s = int(sand_thread()), found = 0;
	if (s >= control.sphere_count)
	{
		return;
	}
	int grain = spheres[s].grain, flags = grains[grain].flags;
	bool is_asleep = is_still(flags);
	precise float margin = (flags & SAND_GRAIN_FAST) != 0 ? control.margin_fast : control.margin_slow;
	precise float near = spheres[s].radius + margin;
	double_p own = (double(near) + double(control.bridge)) * control.unit;
	dvec3_p p = dvec3(double(spheres[s].x[0]), double(spheres[s].x[1]), double(spheres[s].x[2])) * control.unit +
	            dvec3(control.origin[0], control.origin[1], control.origin[2]);
	for (int c = 0; c < control.collider_count && spheres[s].inverse_mass != 0.0; ++c)
	{
		double_p reach = own + meshes[c].slack;
#ifdef WRITE
		if (!is_asleep)
		{
			int first = near_firsts[s] + found, room = near_firsts[s + 1] - first;
			int count = near_triangles(c, p, reach, first, room);
			int law = law_of[traits[grain].material * control.material_count + meshes[c].material];
			for (int i = first; i < first + count; ++i)
			{
				nears[i].collider = c;
				nears[i].number = SAND_SLOT_COUNT * control.obstacle_count + meshes[c].number + nears[i].triangle;
				nears[i].law = law;
				nears[i].side = 0.0;
				nears[i].stretch[0] = nears[i].stretch[1] = nears[i].stretch[2] = 0.0;
			}
			found += count;
		}
#else
		int count = is_asleep && !((flags & SAND_GRAIN_ASLEEP) != 0 && meshes[c].slack > 0.0lf)
		                ? 0
		                : near_triangles(c, p, reach, 0, 0);
		if (!is_asleep)
		{
			found += count;
		}
		else if (count > 0)
		{
			traits[grain].is_woken = 1;
			control.needs_list = 1;
		}
#endif
	}
#ifdef WRITE
	if (found > 0)
	{
		near_spheres[atomicAdd(control.near_sphere_count, 1)] = s;
	}
#else
	near_firsts[s] = found;
#endif
}
