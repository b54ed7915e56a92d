// 50_pairs: the contact force of every listed pair; the twin of read_contacts and compute_contacts in csrc/kernel.c.
// In: spheres, pairs, laws, springs. Out: a force record per pair, its spring.
// Groups of 64, one pair each; no barrier inside. Sums read the records behind a barrier.
layout(local_size_x = 64) in;
#define READ_SPHERES
#define READ_PAIRS
#define READ_STRETCHES
#define WRITE_FORCES
#define USE_LAWS
#include "engine.glsl"
#include "contact.glsl"
#ifndef NO_HISTORY
layout(std430, binding = SAND_BIND_STRETCHES) writeonly buffer StretchBlock
{
	vec4 stretches[]; // per pair, m
};
#endif

void main()
{
	now = control;
#ifdef ONE_LAW
	the_law = laws[0];
#endif
	int i = int(sand_thread());
	if (i >= now.pair_count)
	{
		return;
	}
	ivec4 pair = ivec4(texelFetch(pair_texels, i));
	SandLaw law = law_of_number(pair.z);
	uvec4 place_a = texelFetch(sphere_texels, 4 * pair.x), place_b = texelFetch(sphere_texels, 4 * pair.y);
	vec4 motion_a = uintBitsToFloat(texelFetch(sphere_texels, 4 * pair.x + 1));
	vec4 motion_b = uintBitsToFloat(texelFetch(sphere_texels, 4 * pair.y + 1));
	vec4 turn_a = uintBitsToFloat(texelFetch(sphere_texels, 4 * pair.x + 2));
	vec4 turn_b = uintBitsToFloat(texelFetch(sphere_texels, 4 * pair.y + 2));
	float radius_of_a = uintBitsToFloat(place_a.w), radius_of_b = uintBitsToFloat(place_b.w);
	precise vec3 d = vec3(ivec3(place_a.xyz) - ivec3(place_b.xyz));
	precise float radii = radius_of_a + radius_of_b;
	precise float square = d.x * d.x + d.y * d.y + d.z * d.z;
#ifdef NO_COHESION
	precise float limit = radii;
#else
	precise float reach = 1.0 + 0.25 * law.cohesion_range;
	precise float limit = law.cohesion > 0.0 ? radii * reach : radii;
#endif
	// What follows is computed for all and kept of those that touch.
	bool is_touching = square < limit * limit;
	precise vec3 velocity = motion_a.xyz - motion_b.xyz;
	precise float radius_difference = radius_of_a - radius_of_b;
	precise vec3 spin = turn_a.xyz * radius_of_a + turn_b.xyz * radius_of_b;
	precise float inverse_mass = turn_a.w + turn_b.w;
	precise float distance = sqrt(largest(square, 1e-30));
	precise float inverse = 1.0 / distance;
	Contact c;
	precise vec3 n = d * inverse;
	c.n = n;
	precise float radius_a = 0.5 * (radii + radius_difference), radius_b = 0.5 * (radii - radius_difference);
	precise float share = distance / radii;
	precise float overlap = (radii - distance) * now.unit_float;
	c.overlap = overlap;
	precise float mass = 1.0 / inverse_mass;
	c.mass = mass;
	precise float radius = radius_a * radius_b / radii * now.unit_float;
	c.radius = radius;
	precise vec3 weighted = spin * share;
	c.v = contact_velocity(velocity, weighted, n);
	precise float lever_a = radius_a * share, lever_b = radius_b * share;
#ifdef NO_HISTORY
	c.stretch = vec3(0.0);
#else
	c.stretch = law_shear(law) == SAND_SHEAR_HISTORY ? uintBitsToFloat(texelFetch(stretch_texels, i).xyz) : vec3(0.0);
#endif
	contact_force(law, float(now.last_step), c);
	precise vec3 moment = moment_of(c.n, c.force), turning = vec3(0.0);
#ifndef NO_ROLLING
	if (law.rolling > 0.0)
	{
		precise vec3 relative = (turn_a.xyz - turn_b.xyz) * now.per_unit;
		precise vec3 couple = rolling_couple(law, c, relative);
		turning = couple * now.per_unit;
	}
#endif
	write_force(i, is_touching, c.force, lever_a, moment, lever_b, turning);
#ifndef NO_HISTORY
	if (law_shear(law) == SAND_SHEAR_HISTORY)
	{
		stretches[i] = is_touching ? vec4(c.stretch, 0.0) : vec4(0.0);
	}
#endif
}
