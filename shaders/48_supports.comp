// 48_supports: a sleeper that has lost a support since it fell asleep wakes with the next list; the twin of support_task
// in csrc/sim.c. In: supports of this list. Out: who is woken, and that a list is due.
// Groups of 64, one grain each; no barrier inside. Only with sleep.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SUPPORTS
#include "engine.glsl"

void main()
{
	int i = int(sand_thread());
	if (i >= control.grain_count || (grains[i].flags & SAND_GRAIN_STILL) != SAND_GRAIN_ASLEEP)
	{
		return;
	}
	int held = 1 + supports[i], quiet = traits[i].quiet_steps;
	if (traits[i].is_woken != 0 || held < quiet)
	{
		traits[i].is_woken = 1;
		control.needs_list = 1;
	}
	traits[i].quiet_steps = held > quiet ? held : quiet;
}
