// contact: the force of one contact. Comes in: a law, geometry and motion of the contact. Goes out: force and spring.
// The twin of contact_force and rolling_couple in csrc/kernel.c, same bits: float operations in the same order, no dot,
// length, normalize, mix or fma, every result precise. Zero is never added or multiplied as a literal where its sign
// could show: GLSL compilers fold that, even when precise.
#ifndef SAND_CONTACT_GLSL
#define SAND_CONTACT_GLSL

const int SAND_NORMAL_HERTZ = 0;
const int SAND_NORMAL_HERTZ_CONSTANT = 1;
const int SAND_NORMAL_HERTZ_DAMPER = 2;
const int SAND_NORMAL_LINEAR = 3;
const int SAND_SHEAR_VISCOUS = 0;
const int SAND_SHEAR_HISTORY = 1;

// A scene whose laws are all of one kind says so in LAW_NORMAL and LAW_SHEAR, and the others are not compiled.
#ifdef LAW_NORMAL
#define law_normal(law) LAW_NORMAL
#else
#define law_normal(law) law.normal
#endif
#ifdef LAW_SHEAR
#define law_shear(law) LAW_SHEAR
#else
#define law_shear(law) law.shear
#endif

// n from b to a; overlap in m, negative in the gap of a capillary bridge; velocity of a against b at the contact point,
// m/s; radius = effective radius, m; mass = effective mass, kg.
struct Contact
{
	float mass, radius, overlap;
	vec3 n, v;
	vec3 stretch; // m, tangential spring
	vec3 force;   // N on a
	float normal; // N, repulsion before cohesion
};

// b where one of them is not a number.
float largest(float a, float b)
{
	precise float result = a > b ? a : b;
	return result;
}

float scalar_product(vec3 a, vec3 b)
{
	precise float sum = a.x * b.x + a.y * b.y + a.z * b.z;
	return sum;
}

// OTHER_BITS makes a device of other last bits out of an exact one, for tests: half of the forces are off by one.
vec3 other_bits(vec3 force)
{
#ifdef OTHER_BITS
	ivec3 bits = floatBitsToInt(force);
	return intBitsToFloat(bits ^ ((bits.yzx >> 1) & 1));
#else
	return force;
#endif
}

// Repulsion (Bell 2005 eq. 7), never pulling, and the spring constant of the tangential spring. Leaves the tangential
// part of the velocity.
float normal_force(SandLaw law, inout Contact c)
{
	precise float approach = scalar_product(c.v, c.n), normal, shear_spring;
	if (law_normal(law) == SAND_NORMAL_LINEAR)
	{
		normal = c.mass * (law.spring * c.overlap - law.damping * approach);
		shear_spring = c.mass * law.shear_spring;
	}
	else
	{
		precise float depth = largest(c.overlap, 0.0), depth_root = sqrt(depth), radius_root = sqrt(c.radius);
		precise float spring = law.spring * radius_root, damper;
		if (law_normal(law) == SAND_NORMAL_HERTZ)
		{
			damper = law.damping * spring * depth_root;
		}
		else if (law_normal(law) == SAND_NORMAL_HERTZ_CONSTANT)
		{
			damper = law.damping * sqrt(c.mass * spring * depth_root);
		}
		else
		{
			damper = law.damping * c.mass;
		}
		normal = spring * depth * depth_root - damper * approach;
		shear_spring = law.shear_spring * radius_root * depth_root;
	}
	c.normal = c.overlap > 0.0 ? largest(normal, 0.0) : 0.0;
	precise vec3 t = c.v - approach * c.n;
	c.v = t;
	return shear_spring;
}

// Force on a. Shear: viscous (Bell 2005 eq. 18) or spring and dashpot, capped by Coulomb's law. step = time that the
// spring stretches by, s.
void contact_force(SandLaw law, float step_seconds, inout Contact c)
{
	precise float shear_spring = normal_force(law, c);
	precise vec3 t = c.v, force;
	precise float cap = law.friction * c.normal, along = c.normal;
#ifndef NO_COHESION
	if (law.cohesion > 0.0)
	{
		// Pull of the bridge: constant while touching, fading linearly to nothing at its reach.
		precise float fade = largest(1.0 + c.overlap / (law.cohesion_range * c.radius), 0.0);
		along -= law.cohesion * c.radius * (fade > 1.0 ? 1.0 : fade);
	}
#endif
	if (law_shear(law) == SAND_SHEAR_VISCOUS)
	{
		// No slip takes the viscous branch, so the division is never used there.
		precise float slip = sqrt(scalar_product(t, t)), viscous = c.mass * law.shear_damping;
		precise float scale = viscous * slip > cap ? cap / slip : viscous;
		force = along * c.n - scale * t;
		c.force = other_bits(force);
		return;
	}
	// The spring turns with the contact: projected to the new tangent plane, stretched by the slip of this step.
	precise float away = scalar_product(c.stretch, c.n), dashpot = c.mass * law.shear_damping;
	precise vec3 stretch = c.stretch - away * c.n + step_seconds * t;
	precise vec3 pull = shear_spring * stretch + dashpot * t;
	precise float size = sqrt(scalar_product(pull, pull));
	bool is_sliding = size > cap;
	precise float scale = is_sliding ? cap / size : 1.0;
	// A dashpot that exceeds the cap leaves nothing for the spring.
	precise float ahead = scalar_product(pull, t), most = cap * size, damped = dashpot * ahead;
	precise float softness = shear_spring > 0.0 && most > damped ? 1.0 / shear_spring : 0.0;
	precise vec3 capped = pull * scale;
	if (is_sliding)
	{
		// While sliding the spring keeps the stretch that carries the cap.
		stretch = (capped - dashpot * t) * softness;
	}
	force = along * c.n - capped;
	c.stretch = stretch;
	c.force = other_bits(force);
}

// Couple against rolling, on a (b gets the opposite): capped viscous in the tangential part of the relative spin, rad/s.
vec3 rolling_couple(SandLaw law, Contact c, vec3 spin)
{
	precise float about = scalar_product(spin, c.n);
	precise vec3 roll = spin - about * c.n;
	precise float speed = sqrt(scalar_product(roll, roll)), cap = law.rolling * c.radius * c.normal;
	precise float viscous = law.rolling_damping * c.mass * c.radius * c.radius;
	precise float scale = viscous * speed > cap ? cap / speed : viscous;
	precise vec3 couple = -(scale * roll);
	return couple;
}

// Velocity of the contact point: centres plus rotation, spin weighted by the levers against n.
vec3 contact_velocity(vec3 velocity, vec3 spin, vec3 n)
{
	precise vec3 v = vec3(velocity.x - (spin.y * n.z - spin.z * n.y), velocity.y - (spin.z * n.x - spin.x * n.z),
	                      velocity.z - (spin.x * n.y - spin.y * n.x));
	return v;
}

// n x force: the torque on either centre is minus its lever times that.
vec3 moment_of(vec3 n, vec3 force)
{
	precise vec3 moment =
	    vec3(n.y * force.z - n.z * force.y, n.z * force.x - n.x * force.z, n.x * force.y - n.y * force.x);
	return moment;
}
#endif
