// 62_place: the spheres of moved grains; the twin of place_spheres and is_far in csrc/kernel.c.
// In: grains. Out: places and motion of the spheres of big grains, and whether one has left the reach of the list; with
// LISTING, of every sphere, which is where it is listed. Those of other grains are placed by 60_move.
// Groups of 64, one sphere each; no barrier inside. The next forces come behind a barrier.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SPHERES
#define USE_SHAPES
#include "engine.glsl"
#ifndef LISTING
layout(std430, binding = SAND_BIND_BIG_SPHERES) readonly buffer BigSphereBlock
{
	int big_spheres[];
};
#endif

void main()
{
	now = control;
	int at = int(sand_thread());
#ifdef LISTING
	if (at < now.sphere_count)
	{
		int i = spheres[at].grain;
		place_sphere(i, at - grains[i].first_sphere, true);
	}
#else
	if (at < now.big_sphere_count)
	{
		// Also of a grain that rests: it is put where it is.
		int s = big_spheres[at], i = spheres[s].grain;
		if (!place_sphere(i, s - grains[i].first_sphere, false))
		{
			control.needs_list = 1;
		}
	}
#endif
}
