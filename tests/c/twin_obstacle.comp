// twin_obstacle: obstacle_touches alone. In: binding 0 obstacles, 1 place and reach per invocation; location 0 how many.
// Out: binding 2, sixteen numbers each: how many touches, then slot, distance and normal of three. Groups of 64.
#include "obstacle.glsl"
layout(local_size_x = 64) in;
layout(location = 0) uniform uint count;
layout(std430, binding = 0) readonly buffer Obstacles
{
	SandObstacle obstacles[];
};
layout(std430, binding = 1) readonly buffer Places
{
	double places[];
};
layout(std430, binding = 2) writeonly buffer Results
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
	dvec3 p = dvec3(places[4u * i], places[4u * i + 1u], places[4u * i + 2u]);
	Touches t = obstacle_touches(obstacles[i % uint(obstacles.length())], p, places[4u * i + 3u]);
	results[16u * i] = double(t.count);
	for (int k = 0; k < t.count; ++k)
	{
		uint at = 16u * i + 1u + 5u * uint(k);
		results[at] = double(t.slots[k]);
		results[at + 1u] = t.distances[k];
		results[at + 2u] = t.normals[k].x;
		results[at + 3u] = t.normals[k].y;
		results[at + 4u] = t.normals[k].z;
	}
}
