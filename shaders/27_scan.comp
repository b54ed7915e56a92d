// 27_scan: running sums of whole numbers, without the number itself. In: values, location 0 how many, 1 where they begin,
// 2 where the groups' sums go. Out: without ADD, every group of 1,024 is scanned in place, its sum written apart; with ADD, the
// scanned sums are added to their groups.
// Groups of 256 with 4 values each invocation; barriers inside between the rounds.
layout(local_size_x = 256) in;
layout(location = 0) uniform uint value_count;
layout(location = 1) uniform uint value_first;
layout(location = 2) uniform uint sum_first;
layout(std430, binding = SAND_BIND_SCAN) buffer ScanBlock
{
	uint scan_values[];
};
layout(std430, binding = SAND_BIND_SCAN_SUMS) buffer ScanSumBlock
{
	uint scan_sums[];
};

shared uint sums[256];

void main()
{
	uint local = gl_LocalInvocationID.x, group = sand_group(), at = group * 1024u + local * 4u;
#ifdef ADD
	for (uint k = 0u; k < 4u && at + k < value_count; ++k)
	{
		scan_values[value_first + at + k] += scan_sums[sum_first + group];
	}
#else
	uint values[4], own = 0u;
	for (uint k = 0u; k < 4u; ++k)
	{
		values[k] = at + k < value_count ? scan_values[value_first + at + k] : 0u;
		own += values[k];
	}
	sums[local] = own;
	for (uint width = 1u; width < 256u; width *= 2u)
	{
		memoryBarrierShared();
		barrier();
		uint before = local >= width ? sums[local - width] : 0u;
		memoryBarrierShared();
		barrier();
		sums[local] += before;
	}
	memoryBarrierShared();
	barrier();
	uint place = sums[local] - own;
	for (uint k = 0u; k < 4u && at + k < value_count; ++k)
	{
		scan_values[value_first + at + k] = place;
		place += values[k];
	}
	if (local == 255u && at - 1020u < value_count)
	{
		scan_sums[sum_first + group] = sums[255];
	}
#endif
}
