// 31_dress: wakes who is to wake, and gives every grain its spheres; the twin of dress_task and speeds_task in
// csrc/sim.c. In: grains, scanned sphere counts. Out: numbers and radii of the spheres, how fast the grains are, which
// spheres belong to big ones.
// Groups of 64, one grain each; a barrier inside for the fastest. Spheres are placed behind a barrier.
layout(local_size_x = 64) in;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SPHERES
#define USE_SHAPES
#define USE_PARTIALS
#define USE_SCAN
#include "engine.glsl"

layout(std430, binding = SAND_BIND_PLACES) buffer PlaceBlock
{
	int places[];
};
layout(std430, binding = SAND_BIND_SPEEDS) writeonly buffer SpeedBlock
{
	double speeds[];
};
#ifndef NO_BIG
layout(std430, binding = SAND_BIND_BIG_SPHERES) writeonly buffer BigSphereBlock
{
	int big_spheres[]; // in any order: each is placed for itself
};
#endif

shared double fastest[64], fastest_point[64];

void dress(int i, out double speed_square_out, out double point_out)
{
	int flags = grains[i].flags, shape = traits[i].shape, count = shapes[shape].sphere_count;
	int first = int(scan_values[i]), quiet = traits[i].quiet_steps;
	if ((flags & SAND_GRAIN_WAKING) != 0 || traits[i].is_woken != 0)
	{
		flags &= ~(SAND_GRAIN_WAKING | SAND_GRAIN_ASLEEP);
		grains[i].flags = flags;
		traits[i].is_woken = 0;
		quiet = 0;
	}
	traits[i].quiet_steps = (flags & SAND_GRAIN_ABSENT) != 0 ? 0 : quiet;
	grains[i].first_sphere = first;
	places[traits[i].id] = i;
	for (int k = 0; k < count; ++k)
	{
		precise float radius = offsets[4 * (shapes[shape].first_offset + k) + 3] * traits[i].scale;
		double_p units = double(radius) / control.unit;
		spheres[first + k].radius = float(units);
		spheres[first + k].grain = i;
	}
#ifndef NO_BIG
	if (count > SAND_BIG_GRAIN)
	{
		int at = atomicAdd(control.big_sphere_count, count);
		for (int k = 0; k < count; ++k)
		{
			big_spheres[at + k] = first + k;
		}
	}
#endif
	dvec3 velocity = velocity_of(i), spin = spin_of(i, orientation_of(i), momentum_of(i));
	double_p speed_square = dot_d(velocity, velocity);
	double_p bound = double(shapes[shape].bound) * double(traits[i].scale);
	double_p reach_speed = sqrt(speed_square) + sqrt(dot_d(spin, spin)) * bound;
	traits[i].reach_speed = float(reach_speed);
	double_p speed = is_still(flags) ? 0.0lf : double(traits[i].reach_speed);
	for (int k = 0; k < SAND_MARGIN_CHOICES; ++k)
	{
		if (speed > control.thresholds[k])
		{
			atomicAdd(control.faster[k], 1);
		}
	}
	speed_square_out = speed_square;
	point_out = speed;
}

void main()
{
	now = control;
	uint local = gl_LocalInvocationID.x;
	int i = int(sand_thread());
	double speed_square = 0.0lf, point = 0.0lf;
	if (i < control.grain_count)
	{
		dress(i, speed_square, point);
		speeds[i] = speed_square > 0.0lf ? speed_square : 0.0lf;
	}
	fastest[local] = speed_square > 0.0lf ? speed_square : 0.0lf;
	fastest_point[local] = point > 0.0lf ? point : 0.0lf;
	for (uint width = 32u; width > 0u; width /= 2u)
	{
		memoryBarrierShared();
		barrier();
		if (local < width)
		{
			fastest[local] = fastest[local + width] > fastest[local] ? fastest[local + width] : fastest[local];
			fastest_point[local] = fastest_point[local + width] > fastest_point[local] ? fastest_point[local + width]
			                                                                              : fastest_point[local];
		}
	}
	if (local == 0u)
	{
		partials[sand_group()] = fastest[0];
		partials[uint(control.partial_count) + sand_group()] = fastest_point[0];
	}
}
