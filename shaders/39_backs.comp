// 39_backs: for every sphere the pairs that it is the higher one of, in ascending order. In: pairs. Out: backs.
// part 0: counts per sphere; part 1: numbers of pairs into their places, behind a scan; part 2: each sphere's into ascending
// order, so that the order of the atomics does not show. Groups of 64, one pair or sphere each; barriers between.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint part;
#define USE_PAIRS
#define USE_BACKS
#include "engine.glsl"

layout(std430, binding = SAND_BIND_CURSORS) buffer CursorBlock
{
	int cursors[];
};

void main()
{
	int i = int(sand_thread());
	if (part < 2u)
	{
		// Walls gather nothing.
		if (i < control.pair_count && pairs[i].b < control.sphere_count)
		{
			if (part == 0u)
			{
				atomicAdd(back_firsts[pairs[i].b], 1);
			}
			else
			{
				backs[back_firsts[pairs[i].b] + atomicAdd(cursors[pairs[i].b], 1)] = i;
			}
		}
		return;
	}
	if (i >= control.sphere_count)
	{
		return;
	}
	int first = back_firsts[i], end = back_firsts[i + 1];
	for (int k = first + 1; k < end; ++k)
	{
		int value = backs[k], at = k;
		while (at > first && backs[at - 1] > value)
		{
			backs[at] = backs[at - 1];
			--at;
		}
		backs[at] = value;
	}
}
