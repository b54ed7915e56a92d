// 30_counts: how many spheres every grain has, for the scan that numbers them. In: traits. Out: counts.
// Groups of 64, one grain each; no barrier inside.
layout(local_size_x = 64) in;
#define USE_TRAITS
#define USE_SHAPES
#define USE_SCAN
#include "engine.glsl"

void main()
{
	int i = int(sand_thread());
	if (i < control.grain_count)
	{
		scan_values[i] = uint(shapes[traits[i].shape].sphere_count);
	}
}
