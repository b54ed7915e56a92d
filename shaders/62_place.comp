// 62_place: the spheres of moved grains; the twin of place_spheres and is_far in csrc/kernel.c.
// In: grains. Out: places and motion of their spheres, and whether one has left the reach of the list; with LISTING, of
// every sphere, which is where it is listed.
// Groups of 64, one sphere each; no barrier inside. The next forces come behind a barrier.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SPHERES
#define USE_SHAPES
#include "engine.glsl"

void main()
{
	int s = int(sand_thread());
	if (control.halt != SAND_HALT_NONE || s >= control.sphere_count)
	{
		return;
	}
	int i = spheres[s].grain;
#ifdef LISTING
	place_sphere(i, s - grains[i].first_sphere, true);
#else
	if (!is_still(grains[i].flags) && !place_sphere(i, s - grains[i].first_sphere, false))
	{
		control.needs_list = 1;
	}
#endif
}
