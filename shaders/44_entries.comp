// 44_entries: which force records every sphere adds up, in the order of csrc/kernel.c: pairs of its own chunk by law, what it
// is the higher one of before what it is the lower one of, both in order of the other; then pairs across the chunk's border;
// obstacles; triangles; last, chunk by chunk and by law, pairs that earlier chunks have summed apart.
// In: pairs, backs, first touches and triangles. Out: entries. Groups of 64, one sphere each; no barrier inside.
layout(local_size_x = 64) in;
#define READ_PAIRS
#define USE_FIRSTS
#define USE_BACKS
#include "engine.glsl"
layout(std430, binding = SAND_BIND_TOUCH_FIRSTS) readonly buffer TouchFirstBlock
{
	int touch_firsts[];
};
layout(std430, binding = SAND_BIND_NEAR_FIRSTS) readonly buffer NearFirstBlock
{
	int near_firsts[];
};
layout(std430, binding = SAND_BIND_ENTRY_FIRSTS) writeonly buffer EntryFirstBlock
{
	int entry_firsts[];
};
layout(std430, binding = SAND_BIND_ADDENDS) writeonly buffer AddendBlock
{
	uint addends[];
};

int at;

void put(int record, uint bits)
{
	addends[at] = uint(record) << 2 | bits;
	++at;
}

int law_of_pair(int i)
{
	return int(texelFetch(pair_texels, i).z);
}

int chunk_of_pair(int i)
{
	return int(texelFetch(pair_texels, i).w);
}

// The least law above `after` among pairs of the sphere.
int next_law(int after, int first, int end, int back_first, int back_end)
{
#ifdef ONE_LAW
	return after < 0 ? 0 : SAND_NO_GRAIN;
#else
	int best = SAND_NO_GRAIN;
	for (int i = first; i < end; ++i)
	{
		int law = law_of_pair(i);
		best = law > after && law < best ? law : best;
	}
	for (int k = back_first; k < back_end; ++k)
	{
		int law = law_of_pair(backs[k]);
		best = law > after && law < best ? law : best;
	}
	return best;
#endif
}

void put_own(int first, int end, int back_first, int back_end)
{
	for (int outer = 0; outer < 2; ++outer)
	{
		for (int law = next_law(-1, first, end, back_first, back_end); law != SAND_NO_GRAIN;
		     law = next_law(law, first, end, back_first, back_end))
		{
			for (int k = back_first; k < back_end && outer == 0; ++k)
			{
				int i = backs[k];
				if (law_of_pair(i) == law && (chunk_of_pair(i) & 1) == 0)
				{
					put(i, SAND_ENTRY_BACK);
				}
			}
			for (int i = first; i < end; ++i)
			{
				if (law_of_pair(i) == law && (chunk_of_pair(i) & 1) == outer)
				{
					put(i, 0u);
				}
			}
		}
	}
}

void put_inflows(int back_first, int back_end)
{
	for (int first = back_first, end = first; first < back_end; first = end)
	{
		int chunk = chunk_of_pair(backs[first]);
		for (end = first; end < back_end && chunk_of_pair(backs[end]) == chunk; ++end)
		{
		}
		if ((chunk & 1) == 0)
		{
			continue;
		}
		uint apart = SAND_ENTRY_APART;
		for (int law = next_law(-1, 0, 0, first, end); law != SAND_NO_GRAIN; law = next_law(law, 0, 0, first, end))
		{
			for (int k = first; k < end; ++k)
			{
				if (law_of_pair(backs[k]) == law)
				{
					put(backs[k], SAND_ENTRY_BACK | apart);
					apart = 0u;
				}
			}
		}
	}
}

void main()
{
	now = control;
	int s = int(sand_thread());
	if (s > now.sphere_count)
	{
		return;
	}
	int touch = touch_firsts[s], near = near_firsts[s];
	at = firsts[s] + back_firsts[s] + touch + near;
	entry_firsts[s] = at;
	if (s == now.sphere_count)
	{
		return;
	}
	int first = firsts[s], end = firsts[s + 1], back_first = back_firsts[s], back_end = back_firsts[s + 1];
	put_own(first, end, back_first, back_end);
	for (int i = touch; i < touch_firsts[s + 1]; ++i)
	{
		put(now.pair_count + i, 0u);
	}
	for (int i = near; i < near_firsts[s + 1]; ++i)
	{
		put(now.pair_count + now.touch_count + i, 0u);
	}
	put_inflows(back_first, back_end);
}
