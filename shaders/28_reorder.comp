// 28_reorder: grains into their new order; the twin of reorder_task in csrc/sim.c. In: grains, sorted records. Out: the
// same grains in that order, in the spare buffers. Groups of 64, one grain each; no barrier inside.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_TRAITS
#include "engine.glsl"

layout(std430, binding = SAND_BIND_KEYS) buffer KeyBlock
{
	uvec2 keys[];
};
layout(std430, binding = SAND_BIND_GRAINS_SPARE) buffer GrainSpareBlock
{
	SandGrain grains_spare[];
};
layout(std430, binding = SAND_BIND_TRAITS_SPARE) buffer TraitSpareBlock
{
	SandTraits traits_spare[];
};

void main()
{
	int i = int(sand_thread());
	if (i < control.grain_count)
	{
		int from = int(keys[i].y);
		grains_spare[i] = grains[from];
		traits_spare[i] = traits[from];
	}
}
