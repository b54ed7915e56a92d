// 56_colliders: contact forces of meshes; the twin of the groups in obstacle_forces of csrc/kernel.c.
// In: spheres, the triangles near them with sides and springs, colliders, their poses, laws. Out: a force record per
// triangle, its side and spring, what each contact puts on its collider (zeros where there is none).
// Groups of 64, one sphere that has triangles near each; no barrier inside. Sums read the records behind a barrier.
layout(local_size_x = 64) in;
#define READ_SPHERES
#define WRITE_FORCES
#define USE_LAWS
#define USE_NEARS
#define USE_NEAR_LOADS
#include "engine.glsl"
layout(std430, binding = SAND_BIND_NEAR_LOADS) buffer NearLoadBlock
{
	double near_loads[];
};
#include "surface.glsl"
#include "collider.glsl"

layout(std430, binding = SAND_BIND_NEAR_SPHERES) readonly buffer NearSphereBlock
{
	int near_spheres[];
};

bool is_stretched(int at)
{
	return nears[at].stretch[0] != 0.0 || nears[at].stretch[1] != 0.0 || nears[at].stretch[2] != 0.0;
}

void set_stretch(int at, vec3 stretch)
{
	for (int k = 0; k < 3; ++k)
	{
		nears[at].stretch[k] = stretch[k];
	}
}

// A contact that slides from one triangle to the next takes its spring along; springs without a contact are gone.
void pass_springs(int first, int count, Hit hits[SAND_HIT_LIMIT], int hit_count)
{
	for (int i = 0; i < count; ++i)
	{
		bool is_hit = false;
		int heir = -1;
		for (int k = 0; k < hit_count; ++k)
		{
			is_hit = is_hit || hits[k].slot == i;
			heir = heir < 0 && !is_stretched(first + hits[k].slot) ? hits[k].slot : heir;
		}
		if (!is_hit)
		{
			if (heir >= 0 && is_stretched(first + i))
			{
				set_stretch(first + heir,
				            vec3(nears[first + i].stretch[0], nears[first + i].stretch[1], nears[first + i].stretch[2]));
			}
			set_stretch(first + i, vec3(0.0));
		}
	}
}

void put_load(int at, dvec3 arm, vec3 force, vec3 couple)
{
	precise dvec3 f = -dvec3(double(force.x), double(force.y), double(force.z));
	precise dvec3 torque = cross3(arm, f) - dvec3(double(couple.x), double(couple.y), double(couple.z));
	for (int k = 0; k < 3; ++k)
	{
		near_loads[6 * at + k] = f[k];
		near_loads[6 * at + 3 + k] = torque[k];
	}
}

void sphere_forces(int s)
{
	int last = near_firsts[s + 1];
	Ball ball = ball_of(s);
	for (int first = near_firsts[s], end; first < last; first = end)
	{
		int c = nears[first].collider;
		SandLaw law = law_of_number(nears[first].law);
		for (end = first + 1; end < last && nears[end].collider == c;)
		{
			++end;
		}
		Hit hits[SAND_HIT_LIMIT];
		int count = collider_touch(c, ball.place, ball_reach(ball, law), first, end - first, hits);
		for (int i = first; i < end; ++i)
		{
			for (int k = 0; k < 6; ++k)
			{
				near_loads[6 * i + k] = 0.0lf;
			}
			write_force(now.pair_count + now.touch_count + i, false, vec3(0.0), 0.0, vec3(0.0), 0.0, vec3(0.0));
		}
		if (law_shear(law) == SAND_SHEAR_HISTORY)
		{
			pass_springs(first, end - first, hits, count);
		}
		for (int k = 0; k < count; ++k)
		{
			// Hits come in order of their slots, which is the order of their records.
			int at = first + hits[k].slot;
			vec3 stretch = vec3(nears[at].stretch[0], nears[at].stretch[1], nears[at].stretch[2]), force, couple;
			write_surface_force(now.pair_count + now.touch_count + at, true, ball, law, hits[k].distance, hits[k].normal,
			                    hits[k].velocity, stretch, force, couple);
			set_stretch(at, stretch);
			precise dvec3 arm = ball.place - hits[k].distance * hits[k].normal - collider_origin(c);
			put_load(at, arm, force, couple);
		}
	}
}

void main()
{
	now = control;
#ifdef ONE_LAW
	the_law = laws[0];
#endif
	int i = int(sand_thread());
	if (i < now.near_sphere_count)
	{
		sphere_forces(near_spheres[i]);
	}
}
