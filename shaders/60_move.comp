// 60_move: sums to forces on grains, kick, sleep, move and turn; the twin of move and finish in csrc/kernel.c.
// In: grains, sums, the step. Out: moved grains, the fastest of each group, bad, lost and sleeping ones.
// Groups of 64, one grain each; a barrier inside for the fastest. Spheres are placed behind a barrier by 62_place; those
// of a grain that stops here, here.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SPHERES
#define USE_SUMS
#define USE_SHAPES
#define USE_PARTIALS
#define USE_FIELDS
#define USE_BODIES
#include "engine.glsl"

shared double fastest[64];

// Acceleration that does not come from contacts: gravity, wind, regions.
dvec3 field_at(int i, dvec3 v)
{
	dvec3_p a = dvec3(control.gravity[0], control.gravity[1], control.gravity[2]);
	if (!(control.drag > 0.0lf) && control.region_count == 0)
	{
		return a;
	}
	dvec3 p = position_of(i);
	if (control.drag > 0.0lf)
	{
		a = a + (dvec3(control.wind[0], control.wind[1], control.wind[2]) - v) * control.drag;
	}
	for (int r = 0; r < control.region_count; ++r)
	{
		bool is_inside = true;
		for (int k = 0; k < 3; ++k)
		{
			is_inside = is_inside && p[k] >= double(fields[9 * r + k]) && p[k] <= double(fields[9 * r + 3 + k]);
		}
		if (is_inside)
		{
			a = a + dvec3(double(fields[9 * r + 6]), double(fields[9 * r + 7]), double(fields[9 * r + 8]));
		}
	}
	return a;
}

dvec3 kicked(int i, dvec3 velocity, dvec3 force, double dt)
{
	dvec3_p acceleration = force * grains[i].inverse_mass + field_at(i, velocity);
	dvec3_p result = velocity + dt * acceleration;
	return result;
}

void grain_forces(int i, out dvec3 force_out, out dvec3 torque_out)
{
	int count = shapes[traits[i].shape].sphere_count, first = grains[i].first_sphere;
	dvec3_p force = dvec3(control.zero), torque = dvec3(control.zero);
	dvec3_p origin = dvec3(control.origin[0], control.origin[1], control.origin[2]);
	dvec3_p place = (position_of(i) - origin) * control.inverse_unit;
	ivec3 centre = ivec3(to_fixed(place.x), to_fixed(place.y), to_fixed(place.z));
	for (int k = 0; k < count; ++k)
	{
		int s = first + k;
		dvec3_p f = dvec3(double(sums[s].force[0]), double(sums[s].force[1]), double(sums[s].force[2]));
		dvec3_p t = dvec3(double(sums[s].torque[0]), double(sums[s].torque[1]), double(sums[s].torque[2]));
		force = force + f;
		torque = torque + t;
		if (count > 1)
		{
			dvec3_p lever = dvec3(double(spheres[s].x[0] - centre.x), double(spheres[s].x[1] - centre.y),
			                      double(spheres[s].x[2] - centre.z));
			torque = torque + cross_d(lever, f);
		}
	}
	force_out = force;
	dvec3_p scaled = torque * control.unit;
	torque_out = scaled;
}

double bound_of(int i)
{
	double_p bound = double(shapes[traits[i].shape].bound) * double(traits[i].scale);
	return bound;
}

bool falls_asleep(int i, dvec3 velocity, dvec3 momentum, dvec3 force)
{
	dvec3 spin = spin_of(i, orientation_of(i), momentum);
	double_p bound = bound_of(i), limit = control.sleep_speed * control.sleep_speed;
	double_p turning = dot_d(spin, spin) * bound * bound;
	bool is_quiet = dot_d(velocity, velocity) < limit && turning < limit && dot_d(force, force) > 0.0lf;
	int quiet = is_quiet ? traits[i].quiet_steps + 1 : 0;
	traits[i].quiet_steps = quiet;
	return quiet >= control.sleep_steps;
}

// A grain that is stopped stands where it is; what is listed of it is looked at here.
void stop_grain(int i, int flag)
{
	grains[i].flags = grains[i].flags | flag;
	traits[i].quiet_steps = 0;
	set_velocity(i, dvec3(0.0lf));
	set_momentum(i, dvec3(0.0lf));
}

void place_stopped(int i)
{
	int count = shapes[traits[i].shape].sphere_count;
	for (int k = 0; k < count; ++k)
	{
		if (!place_sphere(i, k, false))
		{
			control.needs_list = 1;
		}
	}
}

double driven_speed_square(int i)
{
	dvec3 velocity = velocity_of(i), spin = spin_of(i, orientation_of(i), momentum_of(i));
	double_p speed = sqrt(dot_d(velocity, velocity)) + sqrt(dot_d(spin, spin)) * bound_of(i);
	double_p square = speed * speed;
	return square;
}

void follow_track(int i)
{
	int body = traits[i].body;
	for (int k = 0; k < 3; ++k)
	{
		grains[i].position[k] = targets[body].position[k];
		grains[i].velocity[k] = targets[body].velocity[k];
		grains[i].momentum[k] = targets[body].momentum[k];
	}
	for (int k = 0; k < 4; ++k)
	{
		grains[i].orientation[k] = targets[body].orientation[k];
	}
}

bool is_in_outflow(int i)
{
	dvec3 p = position_of(i);
	for (int o = 0; o < control.outflow_count; ++o)
	{
		int at = 9 * control.region_count + 6 * o;
		bool is_inside = true;
		for (int k = 0; k < 3; ++k)
		{
			is_inside = is_inside && p[k] >= double(fields[at + k]) && p[k] <= double(fields[at + 3 + k]);
		}
		if (is_inside)
		{
			return true;
		}
	}
	return false;
}

// The square of its speed, for the fastest; 0 when it does not move.
double move_grain(int i)
{
	int flags = grains[i].flags;
	if (is_still(flags))
	{
		return 0.0lf;
	}
	bool is_closing = control.is_closing != 0, is_lone = shapes[traits[i].shape].sphere_count == 1;
	double_p dt = control.step, half_dt = 0.5lf * control.step, owed = 0.5lf * control.last_step;
	double_p acts = is_closing ? owed : owed + half_dt;
	dvec3 force, torque;
	grain_forces(i, force, torque);
	if ((flags & SAND_GRAIN_BODY) != 0)
	{
		int at = 6 * traits[i].body;
		for (int k = 0; k < 3; ++k)
		{
			double_p push = impulses[at + k] + force[k] * acts, twist = impulses[at + 3 + k] + torque[k] * acts;
			impulses[at + k] = push;
			impulses[at + 3 + k] = twist;
		}
	}
	if ((flags & SAND_GRAIN_DRIVEN) != 0)
	{
		if (is_closing)
		{
			return 0.0lf;
		}
		follow_track(i);
		return driven_speed_square(i);
	}
	dvec3_p velocity = kicked(i, velocity_of(i), force, owed), momentum_before = momentum_of(i);
	dvec3_p momentum = momentum_before + owed * torque;
	if (control.sleep_speed > 0.0lf && control.last_step > 0.0lf && falls_asleep(i, velocity, momentum, force))
	{
		stop_grain(i, SAND_GRAIN_ASLEEP);
		if (!is_closing)
		{
			place_stopped(i);
		}
		return 0.0lf;
	}
	dvec4 q = orientation_of(i);
	if (is_closing)
	{
		if (control.turn > 0.0lf && is_lone)
		{
			set_orientation(i, turn_safely(q, spin_of(i, q, momentum_before), control.turn));
		}
		set_velocity(i, velocity);
		set_momentum(i, momentum);
		return 0.0lf;
	}
	velocity = kicked(i, velocity, force, half_dt);
	momentum = momentum + half_dt * torque;
	set_velocity(i, velocity);
	set_momentum(i, momentum);
	dvec3_p spin = spin_of(i, q, momentum);
	double_p turn_time = is_lone ? control.turn : dt;
	if (!(grains[i].inverse_inertia > 0.0lf))
	{
		// Midpoint rule: the spin of a free asymmetric body changes with its orientation.
		spin = spin_of(i, turn_safely(q, spin, half_dt), momentum);
	}
	if (turn_time > 0.0lf)
	{
		q = turn_step(q, spin, turn_time);
	}
	double_p speed_square = velocity.x * velocity.x + velocity.y * velocity.y + velocity.z * velocity.z;
	double_p limit = control.speed_limit * control.speed_limit;
	// Written so that a NaN fails it.
	if (!(speed_square < limit))
	{
		atomicMin(control.bad_grain, traits[i].id);
	}
	dvec3_p position = position_of(i) + velocity * dt;
	set_position(i, position);
	set_orientation(i, q);
	bool is_outside = false;
	for (int k = 0; k < 3; ++k)
	{
		is_outside = is_outside || position[k] <= control.domain_min[k] || position[k] >= control.domain_max[k];
	}
	bool is_out = control.outflow_count > 0 && is_in_outflow(i);
	if (is_outside || is_out)
	{
		// Absent from the next list on; until then it stands still.
		stop_grain(i, is_out ? SAND_GRAIN_GONE : SAND_GRAIN_LOST);
		place_stopped(i);
		control.needs_list = 1;
	}
	return speed_square;
}

void main()
{
	if (control.halt != SAND_HALT_NONE)
	{
		return;
	}
	uint local = gl_LocalInvocationID.x;
	int i = int(sand_thread());
	double speed_square = i < control.grain_count ? move_grain(i) : 0.0lf;
	fastest[local] = speed_square > 0.0lf ? speed_square : 0.0lf;
	for (uint width = 32u; width > 0u; width /= 2u)
	{
		barrier();
		if (local < width && fastest[local + width] > fastest[local])
		{
			fastest[local] = fastest[local + width];
		}
	}
	if (local == 0u && control.is_closing == 0)
	{
		partials[sand_group()] = fastest[0];
	}
}
