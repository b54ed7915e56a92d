// common: small pure functions that stand in front of every shader, after layout.h.

#if !defined(SAND_VERTEX) && !defined(SAND_FRAGMENT)

// Number of this group and of this invocation in a dispatch that may be folded into rows: the shader compares it with
// its count, for the last row and the last group are not full.
uint sand_group()
{
	return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}

// A macro, for the size of a group is known only behind the shader's own layout line.
#define sand_thread() (sand_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x)

// Group counts of an indirect dispatch of at least group_count groups: the same rows as sand_gpu_dispatch makes.
uvec3 sand_fold(uint group_count)
{
	uint rows = (group_count + uint(SAND_GROUP_LIMIT) - 1u) / uint(SAND_GROUP_LIMIT);
	return uvec3(rows == 0u ? 0u : (group_count + rows - 1u) / rows, max(rows, 1u), 1u);
}

#endif
