// surface: the force of a sphere's contact with a surface. Comes in: where it touches and how the surface moves there.
// Goes out: the force record, the spring of the contact, force and couple.
// The twin of add_touch and add_touching in csrc/kernel.c, same bits. Needs engine.glsl with READ_SPHERES.
#ifndef SAND_SURFACE_GLSL
#define SAND_SURFACE_GLSL
#include "contact.glsl"

// A sphere as its texels say.
struct Ball
{
	dvec3 place;  // m
	double radius; // m
	vec3 velocity, spin;
	float inverse_mass;
};

Ball ball_of(int s)
{
	Ball ball;
	uvec4 place = texelFetch(sphere_texels, 4 * s);
	ivec3 x = ivec3(place.xyz);
	precise dvec3 p = dvec3(double(x.x), double(x.y), double(x.z)) * now.unit +
	                  dvec3(now.origin[0], now.origin[1], now.origin[2]);
	precise double radius = double(uintBitsToFloat(place.w)) * now.unit;
	vec4 turning = uintBitsToFloat(texelFetch(sphere_texels, 4 * s + 2));
	ball.place = p;
	ball.radius = radius;
	ball.velocity = uintBitsToFloat(texelFetch(sphere_texels, 4 * s + 1).xyz);
	ball.spin = turning.xyz;
	ball.inverse_mass = turning.w;
	return ball;
}

// How near a sphere must be to the surface to be held by it, m: its radius and the reach of a bridge.
double ball_reach(Ball ball, SandLaw law)
{
	precise double reach = ball.radius + double(law.cohesion_range) * ball.radius;
	return law.cohesion > 0.0 ? reach : ball.radius;
}

#ifdef WRITE_FORCES
// distance in m, normal from the surface to the sphere, velocity of the surface in m/s; writes the record. couple_out in N m.
void write_surface_force(int record, bool is_touching, Ball ball, SandLaw law, double distance, dvec3 normal, dvec3 velocity,
                         inout vec3 stretch, out vec3 force_out, out vec3 couple_out)
{
	Contact c;
	precise double overlap = ball.radius - distance;
	precise float lever = float(distance / now.unit), mass = 1.0 / ball.inverse_mass;
	precise vec3 moving = ball.velocity - vec3(float(velocity.x), float(velocity.y), float(velocity.z));
	precise vec3 weighted = ball.spin * lever, couple = vec3(float(now.zero));
	c.mass = mass;
	c.radius = float(ball.radius);
	c.overlap = float(overlap);
	c.n = vec3(float(normal.x), float(normal.y), float(normal.z));
	c.v = contact_velocity(moving, weighted, c.n);
	c.stretch = stretch;
	c.force = vec3(0.0);
	c.normal = 0.0;
	contact_force(law, float(now.last_step), c);
	precise vec3 moment = moment_of(c.n, c.force);
#ifndef NO_ROLLING
	if (law.rolling > 0.0)
	{
		precise dvec3 spin = dvec3(double(ball.spin.x), double(ball.spin.y), double(ball.spin.z)) / now.unit;
		couple = rolling_couple(law, c, vec3(float(spin.x), float(spin.y), float(spin.z)));
	}
#endif
	precise vec3 turning = couple * now.per_unit;
	write_force(record, is_touching, c.force, lever, moment, 1.0, turning);
	stretch = law_shear(law) == SAND_SHEAR_HISTORY ? c.stretch : stretch;
	force_out = c.force;
	couple_out = couple;
}
#endif
#endif
