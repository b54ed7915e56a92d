// twin_track: track_pose and track_speed alone. In: binding 0 first number of every track, 1 two times per invocation;
// location 0 how many. Out: binding 2, fourteen numbers each: the pose at the first time, the fastest speed between both.
// Groups of 64.
#include "track.glsl"
layout(local_size_x = 64) in;
layout(location = 0) uniform uint count;
layout(std430, binding = 0) readonly buffer Firsts
{
	int firsts[];
};
layout(std430, binding = 1) readonly buffer Times
{
	double times[];
};
layout(std430, binding = 2) writeonly buffer Results
{
	double results[];
};

void main()
{
	uint i = sand_thread(), at = 14u * i;
	if (i >= count)
	{
		return;
	}
	int track = firsts[i % uint(firsts.length())];
	Pose pose = track_pose(track, times[2u * i]);
	for (int k = 0; k < 3; ++k)
	{
		results[at + uint(k)] = pose.position[k];
		results[at + 7u + uint(k)] = pose.velocity[k];
		results[at + 10u + uint(k)] = pose.spin[k];
	}
	for (int k = 0; k < 4; ++k)
	{
		results[at + 3u + uint(k)] = pose.orientation[k];
	}
	results[at + 13u] = track_speed(track, times[2u * i], times[2u * i + 1u]);
}
