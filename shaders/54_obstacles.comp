// 54_obstacles: contact forces of closed-form surfaces; the twin of obstacle_forces in csrc/kernel.c.
// In: spheres, obstacle pairs with springs, obstacles, laws. Out: a force record per obstacle pair, its spring.
// Groups of 64, one obstacle pair each; no barrier inside. Sums read the records behind a barrier.
layout(local_size_x = 64) in;
#define READ_SPHERES
#define WRITE_FORCES
#define USE_LAWS
#include "engine.glsl"
#include "surface.glsl"
#include "obstacle.glsl"
layout(std430, binding = SAND_BIND_OBSTACLES) readonly buffer ObstacleBlock
{
	SandObstacle obstacles[];
};
layout(binding = SAND_BIND_TOUCHES) uniform usamplerBuffer touch_texels; // two per obstacle pair
layout(std430, binding = SAND_BIND_TOUCHES) writeonly buffer TouchBlock
{
	vec4 touch_rows[];
};

void main()
{
	now = control;
#ifdef ONE_LAW
	the_law = laws[0];
#endif
	int i = int(sand_thread());
	if (i >= now.touch_count)
	{
		return;
	}
	ivec4 pair = ivec4(texelFetch(touch_texels, 2 * i));
	vec3 stretch = uintBitsToFloat(texelFetch(touch_texels, 2 * i + 1).xyz), force, couple;
	SandLaw law = law_of_number(pair.y);
	Ball ball = ball_of(pair.z);
	Touches t = obstacle_touches(obstacles[pair.x / SAND_SLOT_COUNT], ball.place, ball_reach(ball, law));
	bool is_found = false;
	double distance = 0.0lf;
	dvec3 normal = dvec3(0.0lf);
	for (int k = 0; k < SAND_TOUCH_LIMIT; ++k)
	{
		// The touch at the pair's own slot.
		bool is_it = k < t.count && t.slots[k] == pair.x % SAND_SLOT_COUNT;
		distance = is_it ? t.distances[k] : distance;
		normal = is_it ? t.normals[k] : normal;
		is_found = is_found || is_it;
	}
	write_surface_force(now.pair_count + i, is_found, ball, law, distance, normal, dvec3(0.0lf), stretch, force, couple);
	touch_rows[2 * i + 1] = is_found ? vec4(stretch, 0.0) : vec4(0.0);
}
