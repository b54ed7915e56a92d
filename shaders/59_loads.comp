// 59_loads: what the grains put on every collider, added up over the chunks in their order; the twin of collider_sums in
// csrc/kernel.c and sim.c. In: loads of contacts. Out: part 0: a sum per chunk and collider; part 1: impulses of the
// colliders. Groups of 64, one chunk and collider, or one collider; a barrier between the parts.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint part;
layout(location = 1) uniform uint chunk_count;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SPHERES
#define USE_SHAPES
#define USE_NEARS
#include "engine.glsl"
layout(std430, binding = SAND_BIND_NEAR_LOADS) readonly buffer NearLoadBlock
{
	double near_loads[];
};
layout(std430, binding = SAND_BIND_LOAD_SUMS) buffer LoadSumBlock
{
	double load_sums[]; // six per chunk and collider, then six per collider
};

// The first sphere of a chunk: of the first grain that begins in its stretch.
int chunk_start(int chunk)
{
	int s = chunk * control.chunk_spheres;
	if (s >= control.sphere_count)
	{
		return control.sphere_count;
	}
	int grain = spheres[s].grain, first = grains[grain].first_sphere;
	return first == s ? s : first + shapes[traits[grain].shape].sphere_count;
}

void sum_chunk(int chunk, int collider, int at)
{
	double_p sum[6];
	for (int k = 0; k < 6; ++k)
	{
		sum[k] = 0.0lf;
	}
	for (int s = chunk_start(chunk), end = chunk_start(chunk + 1); s < end; ++s)
	{
		for (int i = near_firsts[s]; i < near_firsts[s + 1]; ++i)
		{
			for (int k = 0; k < 6 && nears[i].collider == collider; ++k)
			{
				sum[k] = sum[k] + near_loads[6 * i + k];
			}
		}
	}
	for (int k = 0; k < 6; ++k)
	{
		load_sums[6 * at + k] = sum[k];
	}
}

void add_impulses(int collider)
{
	double_p acts = 0.5lf * control.last_step + (control.is_closing != 0 ? 0.0lf : 0.5lf * control.step);
	int at = 6 * (int(chunk_count) * control.collider_count + collider);
	for (int k = 0; k < 6; ++k)
	{
		double_p impulse = load_sums[at + k];
		for (int chunk = 0; chunk < int(chunk_count); ++chunk)
		{
			impulse = impulse + acts * load_sums[6 * (chunk * control.collider_count + collider) + k];
		}
		load_sums[at + k] = impulse;
	}
}

void main()
{
	int i = int(sand_thread());
	if (control.halt != SAND_HALT_NONE)
	{
		return;
	}
	if (part == 0u && i < int(chunk_count) * control.collider_count)
	{
		sum_chunk(i / control.collider_count, i % control.collider_count, i);
	}
	else if (part == 1u && i < control.collider_count)
	{
		add_impulses(i);
	}
}
