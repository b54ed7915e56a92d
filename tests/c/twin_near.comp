// twin_near: near_triangles and collider_is_near alone. In: binding 60, place and reach per invocation; location 0 how
// many. Out: binding 61, two words each: how many triangles are near, and whether any box is. Groups of 64.
#include "engine.glsl"
#include "collider.glsl"
layout(local_size_x = 64) in;
layout(location = 0) uniform uint count;
layout(std430, binding = 60) readonly buffer Places
{
	double places[];
};
layout(std430, binding = 61) writeonly buffer Results
{
	int results[];
};

void main()
{
	uint i = sand_thread();
	if (i >= count)
	{
		return;
	}
	int c = int(i % uint(meshes.length()));
	dvec3 p = dvec3(places[4u * i], places[4u * i + 1u], places[4u * i + 2u]);
	results[2u * i] = near_triangles(c, p, places[4u * i + 3u], 0, 0);
	results[2u * i + 1u] = collider_is_near(c, p, places[4u * i + 3u]) ? 1 : 0;
}
