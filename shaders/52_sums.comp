// 52_sums: the pairs' forces on every sphere; the twin of add_contacts in csrc/kernel.c.
// In: pairs of the list and their force records. Out: a sum per sphere: of its own chunk, and, when no obstacle or mesh
// comes in between, of the others too.
// Groups of 64, one sphere each; no barrier inside. What adds to the sums comes behind a barrier.
layout(local_size_x = 64) in;
#define USE_SUMS
#define USE_PAIRS
#define USE_FORCES
#define USE_FIRSTS
#define USE_BACKS
#include "engine.glsl"
#include "sums.glsl"

void main()
{
	int s = int(sand_thread());
	if (control.halt != SAND_HALT_NONE || s >= control.sphere_count)
	{
		return;
	}
	vec3 force, torque;
	own_sums(s, force, torque);
	if (control.obstacle_count == 0 && control.collider_count == 0)
	{
		add_inflows(s, force, torque);
	}
	write_sum(s, force, torque);
}
