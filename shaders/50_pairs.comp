// 50_pairs: the contact force of every listed pair; the twin of read_contacts and compute_contacts in csrc/kernel.c.
// In: spheres, pairs, laws, springs. Out: a force record per pair, its spring, the number of contacts.
// Groups of 64, one pair each; no barrier inside but for the count. Sums read the records behind a barrier.
layout(local_size_x = 64) in;
#define USE_SPHERES
#define USE_PAIRS
#define USE_STRETCHES
#define USE_FORCES
#define USE_LAWS
#include "engine.glsl"
#include "contact.glsl"

shared int touching;

bool pair_force(int i)
{
	int a = pairs[i].a, b = pairs[i].b, number = pairs[i].law;
	SandLaw law = laws[number];
	precise vec3 d = vec3(spheres[a].x[0] - spheres[b].x[0], spheres[a].x[1] - spheres[b].x[1],
	                      spheres[a].x[2] - spheres[b].x[2]);
	precise float radii = spheres[a].radius + spheres[b].radius;
	precise float square = d.x * d.x + d.y * d.y + d.z * d.z;
	precise float reach = 1.0 + 0.25 * law.cohesion_range;
	precise float limit = law.cohesion > 0.0 ? radii * reach : radii;
	if (!(square < limit * limit))
	{
		forces[i].is_touching = 0;
		if (law.shear == SAND_SHEAR_HISTORY)
		{
			stretches[i] = vec4(0.0);
		}
		return false;
	}
	precise vec3 velocity = vec3(spheres[a].velocity[0] - spheres[b].velocity[0],
	                             spheres[a].velocity[1] - spheres[b].velocity[1],
	                             spheres[a].velocity[2] - spheres[b].velocity[2]);
	precise float radius_difference = spheres[a].radius_again - spheres[b].radius_again;
	vec3 spin_a = vec3(spheres[a].spin[0], spheres[a].spin[1], spheres[a].spin[2]);
	vec3 spin_b = vec3(spheres[b].spin[0], spheres[b].spin[1], spheres[b].spin[2]);
	precise vec3 spin = spin_a * spheres[a].radius + spin_b * spheres[b].radius;
	precise float inverse_mass = spheres[a].inverse_mass + spheres[b].inverse_mass;
	precise float distance = sqrt(largest(square, 1e-30));
	precise float inverse = 1.0 / distance;
	Contact c;
	precise vec3 n = d * inverse;
	c.n = n;
	precise float radius_a = 0.5 * (radii + radius_difference), radius_b = 0.5 * (radii - radius_difference);
	precise float share = distance / radii;
	precise float overlap = (radii - distance) * control.unit_float;
	c.overlap = overlap;
	precise float mass = 1.0 / inverse_mass;
	c.mass = mass;
	precise float radius = radius_a * radius_b / radii * control.unit_float;
	c.radius = radius;
	precise vec3 weighted = spin * share;
	c.v = contact_velocity(velocity, weighted, n);
	precise float lever_a = radius_a * share, lever_b = radius_b * share;
	c.stretch = law.shear == SAND_SHEAR_HISTORY ? stretches[i].xyz : vec3(0.0);
	contact_force(law, float(control.last_step), c);
	precise vec3 moment = moment_of(c.n, c.force);
	precise vec3 torque_a = -(lever_a * moment), torque_b = lever_b * moment;
	if (law.rolling > 0.0)
	{
		precise vec3 relative = (spin_a - spin_b) * control.per_unit;
		precise vec3 couple = rolling_couple(law, c, relative);
		precise vec3 turn_units = couple * control.per_unit;
		torque_a = torque_a + turn_units;
		torque_b = torque_b + turn_units;
	}
	if (law.shear == SAND_SHEAR_HISTORY)
	{
		stretches[i] = vec4(c.stretch, 0.0);
	}
	for (int k = 0; k < 3; ++k)
	{
		forces[i].force[k] = c.force[k];
		forces[i].torque_a[k] = torque_a[k];
		forces[i].torque_b[k] = torque_b[k];
	}
	forces[i].is_touching = 1;
	return true;
}

void main()
{
	int i = int(sand_thread());
	if (control.halt != SAND_HALT_NONE)
	{
		return;
	}
	if (gl_LocalInvocationID.x == 0u)
	{
		touching = 0;
	}
	barrier();
	if (i < control.pair_count && pair_force(i))
	{
		atomicAdd(touching, 1);
	}
	barrier();
	if (gl_LocalInvocationID.x == 0u && touching > 0)
	{
		atomicAdd(control.contact_count, touching);
	}
}
