// 56_colliders: contact forces of meshes; the twin of the groups in obstacle_forces of csrc/kernel.c.
// In: spheres, the triangles near them with sides and springs, colliders, their poses, laws. Out: added to the sums, the
// sides and springs, what each contact puts on its collider (zeros where there is none), the number of contacts.
// Groups of 64, one sphere each, its colliders in order: a sum is one invocation's. Barrier inside for the count only;
// comes behind the one after 54_obstacles.
layout(local_size_x = 64) in;
#define USE_SPHERES
#define USE_SUMS
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

shared int touching;

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

int sphere_forces(int s)
{
	int last = near_firsts[s + 1], contacts = 0;
	vec3 force_sum, torque_sum;
	precise dvec3 p = sphere_place(s);
	load_sum(s, force_sum, torque_sum);
	for (int first = near_firsts[s], end; first < last; first = end)
	{
		int c = nears[first].collider;
		SandLaw law = laws[nears[first].law];
		for (end = first + 1; end < last && nears[end].collider == c;)
		{
			++end;
		}
		Hit hits[SAND_HIT_LIMIT];
		int count = collider_touch(c, p, sphere_reach(s, law), first, end - first, hits);
		for (int i = 6 * first; i < 6 * end; ++i)
		{
			near_loads[i] = 0.0lf;
		}
		if (law.shear == SAND_SHEAR_HISTORY)
		{
			pass_springs(first, end - first, hits, count);
		}
		for (int k = 0; k < count; ++k)
		{
			int at = first + hits[k].slot;
			vec3 stretch = vec3(nears[at].stretch[0], nears[at].stretch[1], nears[at].stretch[2]), force, couple;
			add_surface_force(s, law, hits[k].distance, hits[k].normal, hits[k].velocity, stretch, force_sum, torque_sum,
			                  force, couple);
			set_stretch(at, stretch);
			precise dvec3 arm = p - hits[k].distance * hits[k].normal - collider_origin(c);
			put_load(at, arm, force, couple);
		}
		contacts += count;
	}
	store_sum(s, force_sum, torque_sum);
	return contacts;
}

void main()
{
	int s = int(sand_thread()), count = 0;
	if (control.halt != SAND_HALT_NONE)
	{
		return;
	}
	if (gl_LocalInvocationID.x == 0u)
	{
		touching = 0;
	}
	barrier();
	if (s < control.sphere_count && near_firsts[s] < near_firsts[s + 1])
	{
		count = sphere_forces(s);
	}
	if (count > 0)
	{
		atomicAdd(touching, count);
	}
	barrier();
	if (gl_LocalInvocationID.x == 0u && touching > 0)
	{
		atomicAdd(control.contact_count, touching);
	}
}
