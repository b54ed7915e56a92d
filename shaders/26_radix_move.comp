// 26_radix_move: records to where their digit puts them, equal ones in the order they had. In: records, their number,
// the digit's lowest bit, scanned counts of 25_radix_count. Out: records behind this digit.
// Groups of 64 with 16 records each invocation: ranks come from counts in shared memory, never from an order of
// atomics. Barriers inside between counting, ranking and moving.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint record_count;
layout(location = 1) uniform uint low_bit;
#define USE_SCAN
#include "engine.glsl"

layout(std430, binding = SAND_BIND_KEYS) buffer KeyBlock
{
	uvec2 keys[];
};
layout(std430, binding = SAND_BIND_KEYS_SPARE) buffer SpareBlock
{
	uvec2 keys_spare[];
};

shared uint counts[16 * 64];

void main()
{
	uint local = gl_LocalInvocationID.x, group = sand_group(), groups = (record_count + 1023u) / 1024u;
	for (uint digit = 0u; digit < 16u; ++digit)
	{
		counts[digit * 64u + local] = 0u;
	}
	for (uint k = 0u; k < 16u; ++k)
	{
		uint at = group * 1024u + local * 16u + k;
		if (at < record_count)
		{
			++counts[(keys[at].x >> low_bit & 15u) * 64u + local];
		}
	}
	memoryBarrierShared();
	barrier();
	if (local < 16u && group < groups)
	{
		uint place = scan_values[local * groups + group];
		for (uint k = 0u; k < 64u; ++k)
		{
			uint count = counts[local * 64u + k];
			counts[local * 64u + k] = place;
			place += count;
		}
	}
	memoryBarrierShared();
	barrier();
	for (uint k = 0u; k < 16u; ++k)
	{
		uint at = group * 1024u + local * 16u + k;
		if (at < record_count)
		{
			uint counter = (keys[at].x >> low_bit & 15u) * 64u + local;
			keys_spare[counts[counter]] = keys[at];
			++counts[counter];
		}
	}
}
