// 51_contacts: how many contacts there are. In: force records. Out: their number, at the end of a call.
// Groups of 64, one record each; by atomic counting, which knows no order. Behind the barrier after the records' passes.
layout(local_size_x = 64) in;
#define READ_FORCES
#include "engine.glsl"

void main()
{
	now = control;
	int i = int(sand_thread());
	if (i < now.pair_count + now.touch_count + now.near_count &&
	    uintBitsToFloat(texelFetch(force_texels, FORCE_ROWS * i + 1).w) != 0.0)
	{
		atomicAdd(control.contact_count, 1);
	}
}
