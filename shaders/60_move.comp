// 60_move: forces on grains, kick, sleep, move and turn, their spheres placed; the twin of move, finish, place_spheres and
// is_far in csrc/kernel.c. In: grains, sums, the step. Out: moved grains and spheres, speeds, bad, lost and sleeping ones,
// whether a sphere has left the reach of the list. With CLOSING: velocities only, at the end of a call. With NO_TURN: a step
// in which no lone sphere turns, of a scene that has no others.
// Groups of 64, one grain each; no barrier inside. Behind the barrier after 52_sums; the next forces come behind another.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_TRAITS
#define USE_BODIES
#define USE_FIELDS
#define READ_GRAINS
#define READ_TRAITS
#define READ_SPHERES
#define READ_SHAPES
#ifdef NO_CLUSTERS
#define READ_FORCES
#define READ_ADDENDS
#else
#define READ_SUMS
#endif
#include "engine.glsl"
#ifdef NO_CLUSTERS
#include "sums.glsl"
#endif
layout(std430, binding = SAND_BIND_GRAINS) buffer GrainRowBlock
{
	dvec4 grain_rows[]; // position; orientation; velocity; momentum
};
layout(std430, binding = SAND_BIND_SPHERES) writeonly buffer SphereRowBlock
{
	ivec4 sphere_rows[]; // place, velocity, spin, where listed
};
layout(std430, binding = SAND_BIND_SPEEDS) writeonly buffer SpeedBlock
{
	double speeds[];
};

// The grain of this invocation.
int me, flags, first_sphere, sphere_count, first_offset;
dvec3 position, velocity, momentum, inertia;
dvec4 q;
double inverse_mass, inverse_inertia, scale, bound;

void read_grain()
{
	dvec2 p01 = doubles_of(texelFetch(grain_texels, 8 * me)), p23 = doubles_of(texelFetch(grain_texels, 8 * me + 1));
	dvec2 v01 = doubles_of(texelFetch(grain_texels, 8 * me + 4)), v23 = doubles_of(texelFetch(grain_texels, 8 * me + 5));
	uvec4 last = texelFetch(grain_texels, 8 * me + 7);
	dvec2 m01 = doubles_of(texelFetch(grain_texels, 8 * me + 6));
	position = dvec3(p01, p23.x);
	inverse_mass = p23.y;
	velocity = dvec3(v01, v23.x);
	inverse_inertia = v23.y;
	momentum = dvec3(m01, packDouble2x32(last.xy));
	flags = int(last.z);
	first_sphere = int(last.w);
#ifdef NO_TURN
	q = dvec4(1.0lf, 0.0lf, 0.0lf, 0.0lf);
#else
	q = dvec4(doubles_of(texelFetch(grain_texels, 8 * me + 2)), doubles_of(texelFetch(grain_texels, 8 * me + 3)));
#endif
#if defined(NO_CLUSTERS) && defined(NO_SLEEP) && defined(NO_BODIES) && defined(NO_ASYMMETRIC)
	sphere_count = 1;
	first_offset = 0;
	scale = bound = 1.0lf;
	inertia = dvec3(1.0lf);
#else
	int shape = int(texelFetch(trait_texels, 2 * me).y);
	scale = double(uintBitsToFloat(texelFetch(trait_texels, 2 * me + 1).x));
	dvec2 i01 = doubles_of(texelFetch(shape_texels, 3 * shape)), i2 = doubles_of(texelFetch(shape_texels, 3 * shape + 1));
	uvec4 rest = texelFetch(shape_texels, 3 * shape + 2);
	inertia = dvec3(i01, i2.x);
	double_p own_bound = double(uintBitsToFloat(rest.x)) * scale;
	bound = own_bound;
	sphere_count = int(rest.y);
	first_offset = int(rest.z);
#endif
}

dvec3 own_spin(dvec4 orientation, dvec3 own_momentum)
{
	return spin_from(inverse_inertia, inverse_mass, scale, inertia, orientation, own_momentum);
}

// Acceleration that does not come from contacts: gravity, wind, regions.
dvec3 field_at(dvec3 v)
{
	dvec3_p a = dvec3(now.gravity[0], now.gravity[1], now.gravity[2]);
#ifndef NO_FIELD
	if (now.drag > 0.0lf)
	{
		a = a + (dvec3(now.wind[0], now.wind[1], now.wind[2]) - v) * now.drag;
	}
	for (int r = 0; r < now.region_count; ++r)
	{
		bool is_inside = true;
		for (int k = 0; k < 3; ++k)
		{
			is_inside =
			    is_inside && position[k] >= double(fields[9 * r + k]) && position[k] <= double(fields[9 * r + 3 + k]);
		}
		if (is_inside)
		{
			a = a + dvec3(double(fields[9 * r + 6]), double(fields[9 * r + 7]), double(fields[9 * r + 8]));
		}
	}
#endif
	return a;
}

dvec3 kicked(dvec3 v, dvec3 force, double dt)
{
	dvec3_p acceleration = force * inverse_mass + field_at(v);
	dvec3_p result = v + dt * acceleration;
	return result;
}

void grain_forces(out dvec3 force_out, out dvec3 torque_out)
{
	dvec3_p force = dvec3(now.zero), torque = dvec3(now.zero);
#ifdef NO_CLUSTERS
	vec3 f, t;
	sphere_sums(first_sphere, f, t);
	force = force + dvec3(double(f.x), double(f.y), double(f.z));
	torque = torque + dvec3(double(t.x), double(t.y), double(t.z));
#else
	dvec3_p origin = dvec3(now.origin[0], now.origin[1], now.origin[2]);
	dvec3_p place = (position - origin) * now.inverse_unit;
	ivec3 centre = ivec3(to_fixed(place.x), to_fixed(place.y), to_fixed(place.z));
	for (int k = 0; k < sphere_count; ++k)
	{
		int s = first_sphere + k;
		vec3 sum_f = uintBitsToFloat(texelFetch(sum_texels, 2 * s).xyz);
		vec3 sum_t = uintBitsToFloat(texelFetch(sum_texels, 2 * s + 1).xyz);
		ivec3 away = ivec3(texelFetch(sphere_texels, 4 * s).xyz) - centre;
		dvec3_p f = dvec3(double(sum_f.x), double(sum_f.y), double(sum_f.z));
		dvec3_p t = dvec3(double(sum_t.x), double(sum_t.y), double(sum_t.z));
		force = force + f;
		torque = torque + t;
		dvec3_p lever = dvec3(double(away.x), double(away.y), double(away.z));
		dvec3_p levered = torque + cross_d(lever, f);
		torque = sphere_count > 1 ? levered : torque;
	}
#endif
	force_out = force;
	dvec3_p scaled = torque * now.unit;
	torque_out = scaled;
}

#ifndef NO_SLEEP
bool falls_asleep(dvec3 v, dvec3 own_momentum, dvec3 force)
{
	dvec3 spin = own_spin(q, own_momentum);
	double_p limit = now.sleep_speed * now.sleep_speed;
	double_p turning = dot_d(spin, spin) * bound * bound;
	bool is_quiet = dot_d(v, v) < limit && turning < limit && dot_d(force, force) > 0.0lf;
	int quiet = is_quiet ? traits[me].quiet_steps + 1 : 0;
	traits[me].quiet_steps = quiet;
	return quiet >= now.sleep_steps;
}
#endif

// A grain that is stopped stands where it is.
void stop_grain(int flag)
{
	grains[me].flags = flags | flag;
	traits[me].quiet_steps = 0;
	velocity = momentum = dvec3(0.0lf);
}

#ifndef NO_BODIES
double driven_speed_square(dvec3 spin)
{
	double_p speed = sqrt(dot_d(velocity, velocity)) + sqrt(dot_d(spin, spin)) * bound;
	double_p square = speed * speed;
	return square;
}

void follow_track()
{
	int body = traits[me].body;
	position = dvec3(targets[body].position[0], targets[body].position[1], targets[body].position[2]);
	velocity = dvec3(targets[body].velocity[0], targets[body].velocity[1], targets[body].velocity[2]);
	momentum = dvec3(targets[body].momentum[0], targets[body].momentum[1], targets[body].momentum[2]);
	q = dvec4(targets[body].orientation[0], targets[body].orientation[1], targets[body].orientation[2],
	          targets[body].orientation[3]);
}

void add_impulses(dvec3 force, dvec3 torque, double acts)
{
	int at = 6 * traits[me].body;
	for (int k = 0; k < 3; ++k)
	{
		double_p push = impulses[at + k] + force[k] * acts, twist = impulses[at + 3 + k] + torque[k] * acts;
		impulses[at + k] = push;
		impulses[at + 3 + k] = twist;
	}
}
#endif

#ifndef NO_OUTFLOW
bool is_in_outflow()
{
	bool is_in_one = false;
	for (int o = 0; o < now.outflow_count; ++o)
	{
		int at = 9 * now.region_count + 6 * o;
		bool is_inside = true;
		for (int k = 0; k < 3; ++k)
		{
			is_inside = is_inside && position[k] >= double(fields[at + k]) && position[k] <= double(fields[at + 3 + k]);
		}
		is_in_one = is_in_one || is_inside;
	}
	return is_in_one;
}
#endif

void place_spheres()
{
#ifndef NO_BIG
	if (sphere_count > SAND_BIG_GRAIN)
	{
		return;
	}
#endif
	GrainPose pose = pose_of(position, velocity, own_spin(q, momentum), q, scale);
	bool is_any_far = false;
#ifdef NO_CLUSTERS
	const int count = 1;
#else
	int count = sphere_count;
#endif
	for (int k = 0; k < count; ++k)
	{
		int s = first_sphere + k;
		vec3 sphere_velocity, offset = vec3(0.0);
#ifndef NO_CLUSTERS
		offset = uintBitsToFloat(texelFetch(offset_texels, first_offset + k).xyz);
#endif
		ivec3 x = placed(pose, count > 1, offset, sphere_velocity);
		sphere_rows[4 * s].xyz = x;
		sphere_rows[4 * s + 1].xyz = floatBitsToInt(sphere_velocity);
		sphere_rows[4 * s + 2].xyz = floatBitsToInt(pose.spin);
		is_any_far = is_any_far || is_far(x, ivec3(texelFetch(sphere_texels, 4 * s + 3).xyz), flags);
	}
	if (is_any_far)
	{
		control.needs_list = 1;
	}
}

// The square of its speed, for the fastest.
double move_freely(dvec3 force, dvec3 torque)
{
	double_p dt = now.step, half_dt = 0.5lf * now.step;
	velocity = kicked(velocity, force, half_dt);
	dvec3_p pushed = momentum + half_dt * torque;
	momentum = pushed;
	double_p speed_square = velocity.x * velocity.x + velocity.y * velocity.y + velocity.z * velocity.z;
#ifndef NO_TURN
	double_p turn_time = sphere_count == 1 ? now.turn : dt;
	dvec3 spin = own_spin(q, momentum);
#ifndef NO_ASYMMETRIC
	if (!(inverse_inertia > 0.0lf))
	{
		// Midpoint rule: the spin of a free asymmetric body changes with its orientation.
		spin = own_spin(turn_safely(q, spin, half_dt), momentum);
	}
#endif
	if (turn_time > 0.0lf)
	{
		q = turn_step(q, spin, turn_time);
	}
#endif
	double_p limit = now.speed_limit * now.speed_limit;
	// Written so that a NaN fails it.
	if (!(speed_square < limit))
	{
		atomicMin(control.bad_grain, traits[me].id);
	}
	dvec3_p moved = position + velocity * dt;
	position = moved;
	bool is_outside = position.x <= now.domain_min[0] || position.x >= now.domain_max[0] ||
	                  position.y <= now.domain_min[1] || position.y >= now.domain_max[1] ||
	                  position.z <= now.domain_min[2] || position.z >= now.domain_max[2];
#ifdef NO_OUTFLOW
	const bool is_out = false;
#else
	bool is_out = is_in_outflow();
#endif
	if (is_outside || is_out)
	{
		// Absent from the next list on; until then it stands still.
		stop_grain(is_out ? SAND_GRAIN_GONE : SAND_GRAIN_LOST);
		control.needs_list = 1;
	}
	return speed_square;
}

#ifdef CLOSING
// Velocities catch up with positions; lone spheres turn by what they owe.
void close_grain(dvec3 momentum_before)
{
	if (now.turn > 0.0lf && sphere_count == 1)
	{
		grain_rows[4 * me + 1] = turn_safely(q, own_spin(q, momentum_before), now.turn);
	}
}
#endif

void main()
{
	now = control;
	me = int(sand_thread());
	if (me >= now.grain_count)
	{
		return;
	}
	read_grain();
	double speed_square = 0.0lf;
	if (!is_still(flags))
	{
		dvec3 force, torque;
		grain_forces(force, torque);
		double_p owed = 0.5lf * now.last_step;
		bool is_free = true;
#ifndef NO_BODIES
		double_p acts = owed;
#ifndef CLOSING
		acts = owed + 0.5lf * now.step;
#endif
		if ((flags & SAND_GRAIN_BODY) != 0)
		{
			add_impulses(force, torque, acts);
		}
		if ((flags & SAND_GRAIN_DRIVEN) != 0)
		{
			is_free = false;
#ifndef CLOSING
			follow_track();
			speed_square = driven_speed_square(own_spin(q, momentum));
#endif
		}
#endif
		if (is_free)
		{
			dvec3 momentum_before = momentum;
			bool is_asleep = false;
			velocity = kicked(velocity, force, owed);
			dvec3_p pushed = momentum + owed * torque;
			momentum = pushed;
#ifndef NO_SLEEP
			if (now.last_step > 0.0lf && falls_asleep(velocity, momentum, force))
			{
				stop_grain(SAND_GRAIN_ASLEEP);
				is_asleep = true;
			}
#endif
			if (!is_asleep)
			{
#ifdef CLOSING
				close_grain(momentum_before);
#else
				speed_square = move_freely(force, torque);
#endif
			}
		}
		grain_rows[4 * me + 2].xyz = velocity;
		grain_rows[4 * me + 3].xyz = momentum;
#ifndef CLOSING
		grain_rows[4 * me].xyz = position;
#ifndef NO_TURN
		grain_rows[4 * me + 1] = q;
#endif
		place_spheres();
#endif
	}
#ifndef CLOSING
	speeds[me] = speed_square > 0.0lf ? speed_square : 0.0lf;
#endif
}
