// 58_inflow: adds what earlier chunks have summed for every sphere; the twin of take_inflows in csrc/kernel.c.
// In: pairs and their force records, sums of the own chunk with obstacles and meshes. Out: whole sums.
// Groups of 64, one sphere each; no barrier inside. Only with obstacles or meshes: else 52_sums has done it.
layout(local_size_x = 64) in;
#define USE_SUMS
#define USE_PAIRS
#define USE_FORCES
#define USE_FIRSTS
#define USE_BACKS
#include "engine.glsl"
#include "sums.glsl"

void main()
{
	int s = int(sand_thread());
	if (control.halt != SAND_HALT_NONE || s >= control.sphere_count)
	{
		return;
	}
	vec3 force = vec3(sums[s].force[0], sums[s].force[1], sums[s].force[2]);
	vec3 torque = vec3(sums[s].torque[0], sums[s].torque[1], sums[s].torque[2]);
	add_inflows(s, force, torque);
	write_sum(s, force, torque);
}
