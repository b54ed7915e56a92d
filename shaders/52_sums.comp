// 52_sums: the forces on every sphere; the twin of add_contacts, obstacle_forces and take_inflows in csrc/kernel.c.
// In: force records, and in which order a sphere adds them. Out: a sum per sphere.
// Groups of 64, one sphere each; no barrier inside. Behind the barrier after the passes that write records. A scene of lone
// spheres does without: 60_move sums for itself.
layout(local_size_x = 64) in;
#define READ_FORCES
#define READ_ADDENDS
#include "engine.glsl"
#include "sums.glsl"
layout(std430, binding = SAND_BIND_SUMS) writeonly buffer SumBlock
{
	vec4 sum_rows[]; // force (N), torque (N units)
};

void main()
{
	now = control;
	int s = int(sand_thread());
	if (s >= now.sphere_count)
	{
		return;
	}
	vec3 force, torque;
	sphere_sums(s, force, torque);
	sum_rows[2 * s] = vec4(force, 0.0);
	sum_rows[2 * s + 1] = vec4(torque, 0.0);
}
