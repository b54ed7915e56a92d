// 11_bodies: where driven bodies are at the end of the step; the twin of aim_bodies in csrc/sim.c. part 1 lets go of those
// that are due instead.
// In: the step, tables of tracks. Out: targets, or flags. Groups of 64, one body each; no barrier inside. The move comes
// behind a barrier.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint part;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SHAPES
#define USE_BODIES
#include "engine.glsl"
#include "track.glsl"
layout(std430, binding = SAND_BIND_PLACES) readonly buffer PlaceBlock
{
	int places[];
};
layout(std430, binding = SAND_BIND_BODIES) readonly buffer BodyBlock
{
	SandGlBody bodies[];
};

void aim(int b, int i)
{
	Pose pose = track_pose(bodies[b].track, control.time + control.step);
	dvec4 axes = dvec4(bodies[b].axes[0], bodies[b].axes[1], bodies[b].axes[2], bodies[b].axes[3]);
	dvec4_p q = quaternion_product(pose.orientation, axes);
	double_p scale = 1.0lf / sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
	q = q * scale;
	double_p w = q.x, x = q.y, y = q.z, z = q.w;
	dvec3_p row0 = dvec3(1.0lf - 2.0lf * (y * y + z * z), 2.0lf * (x * y - w * z), 2.0lf * (x * z + w * y));
	dvec3_p row1 = dvec3(2.0lf * (x * y + w * z), 1.0lf - 2.0lf * (x * x + z * z), 2.0lf * (y * z - w * x));
	dvec3_p row2 = dvec3(2.0lf * (x * z - w * y), 2.0lf * (y * z + w * x), 1.0lf - 2.0lf * (x * x + y * y));
	double_p size = double(traits[i].scale), inverse_mass = grains[i].inverse_mass;
	dvec3_p own;
	for (int k = 0; k < 3; ++k)
	{
		double_p moment = shapes[traits[i].shape].inertia[k] * size * size / inverse_mass;
		own[k] = moment * (row0[k] * pose.spin.x + row1[k] * pose.spin.y + row2[k] * pose.spin.z);
	}
	dvec3_p momentum = dvec3(row0.x * own.x + row0.y * own.y + row0.z * own.z,
	                         row1.x * own.x + row1.y * own.y + row1.z * own.z,
	                         row2.x * own.x + row2.y * own.y + row2.z * own.z);
	for (int k = 0; k < 3; ++k)
	{
		targets[b].position[k] = pose.position[k];
		targets[b].velocity[k] = pose.velocity[k];
		targets[b].momentum[k] = momentum[k];
	}
	for (int k = 0; k < 4; ++k)
	{
		targets[b].orientation[k] = q[k];
	}
}

void main()
{
	int b = int(sand_thread());
	if (b >= control.body_count || (part == 0u && control.halt != SAND_HALT_NONE))
	{
		return;
	}
	int i = places[bodies[b].grain];
	if ((grains[i].flags & SAND_GRAIN_DRIVEN) == 0)
	{
		return;
	}
	if (part == 0u)
	{
		aim(b, i);
	}
	else if (bodies[b].release > 0.0lf && control.time >= bodies[b].release)
	{
		grains[i].flags = grains[i].flags & ~SAND_GRAIN_DRIVEN;
	}
}
