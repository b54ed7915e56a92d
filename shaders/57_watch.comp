// 57_watch: sleeping grains that something awake and fast touches; the twin of watch_sleepers in csrc/kernel.c.
// In: pairs of a sleeping and an awake sphere. Out: flags of the sleepers, and that a list is due.
// Groups of 64, one pair each; flags by atomic or, which knows no order. No barrier inside; one before the move.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_SPHERES
#define USE_WATCHES
#include "engine.glsl"

void main()
{
	int i = int(sand_thread());
	if (control.halt != SAND_HALT_NONE || i >= control.watch_count)
	{
		return;
	}
	int a = watches[2 * i], b = watches[2 * i + 1];
	precise vec3 d = vec3(spheres[a].x[0] - spheres[b].x[0], spheres[a].x[1] - spheres[b].x[1],
	                      spheres[a].x[2] - spheres[b].x[2]);
	precise vec3 v = vec3(spheres[b].velocity[0], spheres[b].velocity[1], spheres[b].velocity[2]);
	precise float reach = spheres[a].radius + spheres[b].radius, speed = v.x * v.x + v.y * v.y + v.z * v.z;
	precise float square = d.x * d.x + d.y * d.y + d.z * d.z, reach_square = reach * reach;
	// A driven grain does not give way, however slow it is.
	precise float limit = spheres[b].inverse_mass == 0.0 ? 0.0 : control.wake_speed_square;
	if (square < reach_square && speed > limit)
	{
		atomicOr(grains[spheres[a].grain].flags, SAND_GRAIN_WAKING);
		control.needs_list = 1;
	}
}
