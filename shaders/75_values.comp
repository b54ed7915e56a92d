// 75_values: signed distances in metres. In: distances in voxels, codes; location 0 the number of nodes. Out: values in
// place of the distances, infinite out of the band. Nodes of an unsure one are positive: the host turns them.
// One invocation per node. Groups of 64. A barrier before values are read.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint node_count;
#define USE_CODES
#include "field.glsl"

// Words, for an infinity goes through floats only where a compiler keeps it.
layout(std430, binding = SAND_BIND_FIELD_SQUARES) buffer ValueBlock
{
	uint values[];
};

void main()
{
	uint at = sand_thread();
	if (at >= node_count)
	{
		return;
	}
	int code = codes[at];
	int side = code >= SAND_SIDE_OF ? codes[(at & ~511u) + uint(code - SAND_SIDE_OF)] : code;
	float distance = uintBitsToFloat(values[at]);
	precise float value = distance * (side == SAND_SIDE_IN ? -field.voxel_float : field.voxel_float);
	values[at] = distance < field.band ? floatBitsToUint(value) : 0x7f800000u;
}
