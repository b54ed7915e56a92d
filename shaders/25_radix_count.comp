// 25_radix_count: how many records of each group have each digit. In: records, location 0 their number, 1 the digit's
// lowest bit. Out: a count per digit and group, digits first, for the scan.
// Groups of 64 with 16 records each invocation; counts of an invocation lie in shared memory, so no atomics. A barrier before they are summed.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint record_count;
layout(location = 1) uniform uint low_bit;
#define USE_SCAN
#include "engine.glsl"

layout(std430, binding = SAND_BIND_KEYS) buffer KeyBlock
{
	uvec2 keys[];
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
		uint sum = 0u;
		for (uint k = 0u; k < 64u; ++k)
		{
			sum += counts[local * 64u + k];
		}
		scan_values[local * groups + group] = sum;
	}
}
