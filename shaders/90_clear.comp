// 90_clear: empty buckets, when lists are due. In: spread.needs_lists; location 0 the first bucket of this part, 1 the
// end. Out: starts and cursors, zero.
// One invocation per bucket. Groups of 64. A barrier before 91 counts into them.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint first;
layout(location = 1) uniform uint end;
#define USE_STARTS
#define USE_CURSORS
#include "spread.glsl"

void main()
{
	uint i = first + sand_thread();
	if (i < end && spread.needs_lists != 0)
	{
		starts[i] = 0u;
		cursors[i] = 0u;
	}
}
