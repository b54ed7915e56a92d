// surface: the force of a sphere's contact with a surface. Comes in: where it touches and how the surface moves there.
// Goes out: the sphere's sum, the spring of the contact, force and couple.
// The twin of add_touch and add_touching in csrc/kernel.c, same bits. Needs engine.glsl with USE_SPHERES and USE_SUMS.
#ifndef SAND_SURFACE_GLSL
#define SAND_SURFACE_GLSL
#include "contact.glsl"

dvec3 sphere_place(int s)
{
	precise dvec3 p = dvec3(double(spheres[s].x[0]), double(spheres[s].x[1]), double(spheres[s].x[2])) * control.unit +
	                  dvec3(control.origin[0], control.origin[1], control.origin[2]);
	return p;
}

// How near a sphere must be to the surface to be held by it, m: its radius and the reach of a bridge.
double sphere_reach(int s, SandLaw law)
{
	precise double radius = double(spheres[s].radius) * control.unit;
	if (!(law.cohesion > 0.0))
	{
		return radius;
	}
	precise double reach = radius + double(law.cohesion_range) * radius;
	return reach;
}

// distance in m, normal from the surface to the sphere, velocity of the surface in m/s. Adds to the sum of the sphere.
// couple_out in N m.
void add_surface_force(int s, SandLaw law, double distance, dvec3 normal, dvec3 velocity, inout vec3 stretch,
                       inout vec3 force_sum, inout vec3 torque_sum, out vec3 force_out, out vec3 couple_out)
{
	Contact c;
	precise double radius = double(spheres[s].radius) * control.unit, overlap = radius - distance;
	precise float lever = float(distance / control.unit), mass = 1.0 / spheres[s].inverse_mass;
	vec3 turning = vec3(spheres[s].spin[0], spheres[s].spin[1], spheres[s].spin[2]);
	precise vec3 moving = vec3(spheres[s].velocity[0], spheres[s].velocity[1], spheres[s].velocity[2]) -
	                      vec3(float(velocity.x), float(velocity.y), float(velocity.z));
	precise vec3 weighted = turning * lever, couple = vec3(float(control.zero));
	c.mass = mass;
	c.radius = float(radius);
	c.overlap = float(overlap);
	c.n = vec3(float(normal.x), float(normal.y), float(normal.z));
	c.v = contact_velocity(moving, weighted, c.n);
	c.stretch = stretch;
	c.force = vec3(0.0);
	c.normal = 0.0;
	contact_force(law, float(control.last_step), c);
	precise vec3 moment = moment_of(c.n, c.force);
	if (law.rolling > 0.0)
	{
		precise dvec3 spin = dvec3(double(turning.x), double(turning.y), double(turning.z)) / control.unit;
		couple = rolling_couple(law, c, vec3(float(spin.x), float(spin.y), float(spin.z)));
	}
	precise vec3 torque = couple * control.per_unit - lever * moment;
	precise vec3 forces = force_sum + c.force, torques = torque_sum + torque;
	force_sum = forces;
	torque_sum = torques;
	if (law.shear == SAND_SHEAR_HISTORY)
	{
		stretch = c.stretch;
	}
	force_out = c.force;
	couple_out = couple;
}

void load_sum(int s, out vec3 force, out vec3 torque)
{
	force = vec3(sums[s].force[0], sums[s].force[1], sums[s].force[2]);
	torque = vec3(sums[s].torque[0], sums[s].torque[1], sums[s].torque[2]);
}

void store_sum(int s, vec3 force, vec3 torque)
{
	for (int k = 0; k < 3; ++k)
	{
		sums[s].force[k] = force[k];
		sums[s].torque[k] = torque[k];
	}
}
#endif
