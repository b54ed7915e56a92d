// 38_search: which spheres may touch in the next steps; the twin of search_near and take_pair in csrc/list.c. Without
// WRITE they are counted for each lower sphere, with WRITE they are listed, in order of class and cell of the other one.
// In: placed spheres, buckets. Out: pairs; pairs to watch of a sleeper and one awake; how many support a sleeper.
// Groups of 64, one sphere each; no barrier inside. A scan comes between the two.
layout(local_size_x = 64) in;
#define READ_SPHERES
#define READ_GRAINS
#define READ_TRAITS
#define READ_CELLS
#define USE_LEVELS
#define USE_FIRSTS
#define USE_SUPPORTS
#ifdef WRITE
#define USE_PAIRS
#define USE_WATCHES
#define USE_LAW_OF
#endif
#include "engine.glsl"

uint cell_of(uint scale, uint shifted)
{
	uint high, low;
	umulExtended(shifted, scale, high, low);
	return high;
}

// From the lower corner of the domain: places lie within +-2^30.
uint shifted_place(int x)
{
	return uint(x + 0x40000000);
}

int me, my_grain, my_flags, my_first, found;
ivec3 my_place;
float my_radius, my_inverse_mass, my_reach;

int flags_of(int grain)
{
	return int(texelFetch(grain_texels, 8 * grain + 7).z);
}

#ifndef NO_SLEEP
void watch(int sleeper, int awake)
{
	int at = atomicAdd(control.watch_count, 1);
#ifdef WRITE
	watches[2 * at] = sleeper;
	watches[2 * at + 1] = awake;
#endif
}

// Whether the pair is one of two that rest; else what wakes or supports a sleeper is noted.
bool rest_both(int other_sphere, int other, bool is_close)
{
	bool is_asleep = is_still(my_flags), is_other_asleep = other < 0 || is_still(flags_of(other));
#ifndef WRITE
	if (is_close && is_asleep)
	{
		atomicAdd(supports[my_grain], 1);
	}
	if (is_close && is_other_asleep && other >= 0)
	{
		atomicAdd(supports[other], 1);
	}
#endif
	if (is_asleep && !is_other_asleep)
	{
		watch(me, other_sphere);
	}
	if (is_other_asleep && !is_asleep && other >= 0)
	{
		watch(other_sphere, me);
	}
	return is_asleep && is_other_asleep;
}
#endif

void look_at(int j, float margin, float widest_square)
{
	uvec4 place = texelFetch(sphere_texels, 4 * j);
	float radius = uintBitsToFloat(place.w);
	precise vec3 d = vec3(my_place - ivec3(place.xyz));
	precise float square = d.x * d.x + d.y * d.y + d.z * d.z;
	precise float reach = my_reach + margin + radius, reach_square = reach * reach;
	bool is_pair = j > me && square < widest_square && square < reach_square;
#if !defined(NO_CLUSTERS) || !defined(NO_SLEEP)
	int other = int(texelFetch(sphere_texels, 4 * j + 3).w);
	is_pair = is_pair && other != my_grain;
#endif
#ifndef NO_FIXED
	// Neither gives way: driven grains and walls.
	is_pair = is_pair && !(my_inverse_mass == 0.0 && uintBitsToFloat(texelFetch(sphere_texels, 4 * j + 2).w) == 0.0);
#endif
#ifndef NO_SLEEP
	precise float touch = 1.02 * (my_radius + radius), touch_square = touch * touch;
	if (is_pair)
	{
		is_pair = !rest_both(j, other, square < touch_square);
	}
#endif
#ifdef WRITE
	if (is_pair)
	{
		pairs[my_first + found].b = j;
	}
#endif
	found += is_pair ? 1 : 0;
}

void search_level(int l)
{
	uint scale = levels[l].cell_scale, mask = levels[l].mask, first_bucket = levels[l].first_bucket;
	uint stride_y = levels[l].stride_y, stride_z = levels[l].stride_z;
	float margin = levels[l].margin, radius_max = levels[l].radius_max;
	precise float widest = my_reach + margin + radius_max, widest_square = widest * widest;
	double_p far = ceil(double(my_reach) + double(margin) + double(radius_max));
	uint reach = uint(far), low[3], high[3];
	for (int k = 0; k < 3; ++k)
	{
		uint place = shifted_place(my_place[k]);
		low[k] = cell_of(scale, place > reach ? place - reach : 0u);
		high[k] = cell_of(scale, place + reach);
	}
	uint table_first = texelFetch(start_texels, int(first_bucket)).x;
	uint table_end = texelFetch(start_texels, int(first_bucket + mask + 1u)).x;
	uint width = high[1] - low[1] + 1u, rows = width * (high[2] - low[2] + 1u), y = low[1], z = low[2];
	for (uint r = 0u; r < rows; ++r)
	{
		// Buckets along x follow each other, around the end of the table.
		uint row = y * stride_y + z * stride_z;
		uint first = (low[0] + row) & mask, last = (high[0] + row) & mask;
		uint from = texelFetch(start_texels, int(first_bucket + first)).x;
		uint to = texelFetch(start_texels, int(first_bucket + last + 1u)).x;
		uint count = first <= last ? to - from : table_end - from + to - table_first;
		for (uint k = 0u; k < count; ++k)
		{
			uint at = from + k < table_end ? from + k : from + k - table_end + table_first;
			look_at(int(texelFetch(entry_texels, int(at)).x), margin, widest_square);
		}
		y = y == high[1] ? low[1] : y + 1u;
		z = y == low[1] ? z + 1u : z;
	}
}

#ifdef WRITE
int first_sphere_of(int grain)
{
	return int(texelFetch(grain_texels, 8 * grain + 7).w);
}

// The laws and chunks of the pairs that were found.
void finish_pairs()
{
	int chunk = first_sphere_of(my_grain) / now.chunk_spheres;
	int material = int(texelFetch(trait_texels, 2 * my_grain).z);
	for (int k = my_first; k < my_first + found; ++k)
	{
		int other = int(texelFetch(sphere_texels, 4 * pairs[k].b + 3).w), law = 0;
		bool is_outer = other < 0 || first_sphere_of(other) / now.chunk_spheres != chunk;
#ifndef ONE_LAW
		int other_material = other < 0 ? now.wall_material : int(texelFetch(trait_texels, 2 * other).z);
		law = law_of[material * now.material_count + other_material];
#endif
		pairs[k].a = me;
		pairs[k].law = law;
		pairs[k].chunk = 2 * chunk + (is_outer ? 1 : 0);
	}
}
#endif

void main()
{
	now = control;
	me = int(sand_thread());
	if (me >= now.sphere_count)
	{
		return;
	}
	uvec4 place = texelFetch(sphere_texels, 4 * me);
	my_place = ivec3(place.xyz);
	my_radius = uintBitsToFloat(place.w);
	my_inverse_mass = uintBitsToFloat(texelFetch(sphere_texels, 4 * me + 2).w);
	my_grain = int(texelFetch(sphere_texels, 4 * me + 3).w);
	my_flags = flags_of(my_grain);
	found = 0;
#ifdef WRITE
	my_first = firsts[me];
#endif
	precise float margin = (my_flags & SAND_GRAIN_FAST) != 0 ? now.margin_fast : now.margin_slow;
	precise float reach_own = my_radius + margin + 0.5 * now.bridge;
	my_reach = reach_own;
	for (int l = 0; l < now.level_count; ++l)
	{
		if ((my_flags & SAND_GRAIN_ABSENT) == 0 && levels[l].entry_count > 0)
		{
			search_level(l);
		}
	}
#ifdef WRITE
	finish_pairs();
#else
	firsts[me] = found;
#endif
}
