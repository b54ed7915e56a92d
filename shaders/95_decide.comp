// 95_decide: what comes after a sweep: the other half of the places counts, lists are due, all is done; the twin of sweep
// and settle in csrc/spread.c. In: what the sweep found. Out: spread, the group counts of the scan: none when no lists are
// due.
// One invocation. Groups of 1: a handful of numbers. A barrier behind it, for the passes and the counts of the dispatches.
layout(local_size_x = 1) in;
#include "spread.glsl"

layout(std430, binding = SAND_BIND_SPREAD_GROUPS) buffer GroupBlock
{
	uint groups[]; // three per dispatch of the scan; behind them what they are when lists are due
};

void main()
{
	if (spread.is_done == 0)
	{
		precise float lack = uintBitsToFloat(spread.lack_bits), moved = uintBitsToFloat(spread.moved_bits);
		precise float lacking = lack / spread.spacing_float;
		spread.side = 1 - spread.side;
		spread.sweep_count = spread.sweep_count + 1;
		spread.sweeps_done = spread.sweeps_done + 1;
		// Early on everything moves far in every sweep, and a list need not be perfect.
		spread.needs_lists = moved > spread.margin_square && spread.sweep_count >= 2 ? 1 : 0;
		spread.sweep_count = spread.needs_lists != 0 ? 0 : spread.sweep_count;
		spread.lacking = lacking;
		spread.is_done = lacking < spread.settled ? 1 : 0;
	}
	else
	{
		spread.needs_lists = 0;
	}
	spread.lack_bits = 0u;
	spread.moved_bits = 0u;
	for (int i = 0; i < 3 * SAND_SPREAD_STEPS; ++i)
	{
		groups[i] = spread.needs_lists != 0 ? groups[i + 3 * SAND_SPREAD_STEPS] : 0u;
	}
}
