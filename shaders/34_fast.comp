// 34_fast: marks the fast grains; the twin of mark_fast_task in csrc/sim.c. In: speeds, margins. Out: flags.
// Groups of 64, one grain each; no barrier inside.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_TRAITS
#include "engine.glsl"

void main()
{
	int i = int(sand_thread());
	if (i < control.grain_count)
	{
		int flags = grains[i].flags;
		bool is_fast = !is_still(flags) && double(traits[i].reach_speed) > control.fast_speed;
		grains[i].flags = is_fast ? flags | SAND_GRAIN_FAST : flags & ~SAND_GRAIN_FAST;
	}
}
