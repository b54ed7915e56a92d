// twin_speed: track_speed and frames_speed of colliders. In: binding 60, two times per invocation; location 0 how many.
// Out: binding 61, the fastest speed of the collider between both. Groups of 64.
#include "track.glsl"
layout(local_size_x = 64) in;
layout(location = 0) uniform uint count;
layout(std430, binding = SAND_BIND_MESHES) readonly buffer MeshBlock
{
	SandGlCollider meshes[];
};
layout(std430, binding = 60) readonly buffer Times
{
	double times[];
};
layout(std430, binding = 61) writeonly buffer Results
{
	double results[];
};

void main()
{
	uint i = sand_thread();
	if (i >= count)
	{
		return;
	}
	int c = int(i % uint(meshes.length()));
	double from = times[2u * i], to = times[2u * i + 1u];
	results[i] = meshes[c].track >= 0    ? track_speed(meshes[c].track, from, to)
	             : meshes[c].frames >= 0 ? frames_speed(meshes[c].frames, from, to)
	                                     : 0.0lf;
}
