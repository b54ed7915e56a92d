// 24_keys: the order of the grains in memory: Morton order of their cells, ties by id; the twin of bounds_task and
// morton_task in csrc/sim.c. In: grains. Out: part 0: the box of the present ones; part 1: a key per grain, at the place
// of its id, so that a stable sort leaves ties in order of id.
// Groups of 64, one grain each; the box by atomic minima and maxima of integers. A barrier between the parts.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint part;
#define USE_GRAINS
#define USE_TRAITS
#include "engine.glsl"

layout(std430, binding = SAND_BIND_KEYS) buffer KeyBlock
{
	uvec2 keys[]; // key, value
};

// As to_fixed of csrc/sim.c, for which NaN is the lower bound; for that of csrc/kernel.c it is the upper one.
ivec3 cell_place(int i)
{
	ivec3 x;
	double_p low = -1073741823.0lf;
	for (int k = 0; k < 3; ++k)
	{
		double_p steps = (grains[i].position[k] - control.origin[k]) / control.unit;
		double_p kept = steps > low ? steps : low;
		x[k] = to_fixed(kept);
	}
	return x;
}

uint spread_bits(uint v)
{
	v = (v | v << 16) & 0x030000FFu;
	v = (v | v << 8) & 0x0300F00Fu;
	v = (v | v << 4) & 0x030C30C3u;
	return (v | v << 2) & 0x09249249u;
}

void main()
{
	int i = int(sand_thread());
	if (i >= control.grain_count)
	{
		return;
	}
	ivec3 x = cell_place(i);
	if (part == 0u)
	{
		for (int k = 0; k < 3 && (grains[i].flags & SAND_GRAIN_ABSENT) == 0; ++k)
		{
			atomicMin(control.low[k], x[k]);
			atomicMax(control.high[k], x[k]);
		}
		return;
	}
	uint extent = 0u;
	for (int k = 0; k < 3; ++k)
	{
		uint side = control.low[k] <= control.high[k] ? uint(control.high[k] - control.low[k]) : 0u;
		extent = side > extent ? side : extent;
	}
	int shift = 0;
	// Cells about two grains wide, or a thousandth of the extent.
	while (extent >> shift > 1023u || 2.0lf * double(1u << shift) <= control.sort_cell)
	{
		++shift;
	}
	uint key = 0u;
	for (int k = 0; k < 3; ++k)
	{
		// An absent grain may lie beyond the box. The difference of two places below 2^30 fits into 32 bits.
		int cell = (x[k] - control.low[k]) >> shift;
		bool is_below = x[k] < control.low[k] || control.low[k] > control.high[k];
		key |= spread_bits(uint(is_below ? 0 : cell > 1023 ? 1023 : cell)) << k;
	}
	keys[traits[i].id] = uvec2(key, uint(i));
}
