// 22_births: grains that are due appear where there is room, in order of birth; the twin of give_birth in csrc/sim.c.
// In: ids that wait, in order of birth; where their grains are. Out: born grains, and who waits on.
// part 0: one invocation finds who is due and the box of their places; part 1: an invocation per grain collects those
// near that box; part 2: one group tries the places one after the other, all invocations looking for rivals of each.
// Groups of 64. Barriers between the parts; inside the third, between looking and deciding.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint part;
#define USE_GRAINS
#define USE_TRAITS
#define USE_SHAPES
#include "engine.glsl"

layout(std430, binding = SAND_BIND_PLACES) buffer PlaceBlock
{
	int places[]; // per grain id; then the ids that wait
};
layout(std430, binding = SAND_BIND_BIRTHS) buffer BirthBlock
{
	double births[]; // s, per grain id
};
layout(std430, binding = SAND_BIND_RIVALS) buffer RivalBlock
{
	int rivals[];
};

shared int taken;

double bound_of(int i)
{
	double_p bound = double(shapes[traits[i].shape].bound) * double(traits[i].scale);
	return bound;
}

void find_due()
{
	int due = control.waiting_first;
	dvec3 low = dvec3(1e300lf), high = dvec3(-1e300lf);
	while (due < control.waiting_end && births[places[control.grain_count + due]] <= control.list_time)
	{
		dvec3 p = position_of(places[places[control.grain_count + due]]);
		for (int k = 0; k < 3; ++k)
		{
			low[k] = p[k] < low[k] ? p[k] : low[k];
			high[k] = p[k] > high[k] ? p[k] : high[k];
		}
		++due;
	}
	for (int k = 0; k < 3; ++k)
	{
		control.birth_low[k] = low[k] - control.birth_room;
		control.birth_high[k] = high[k] + control.birth_room;
	}
	control.waiting_due = due;
	control.rival_count = 0;
}

void find_rival(int i)
{
	if ((grains[i].flags & SAND_GRAIN_ABSENT) != 0 || control.waiting_due == control.waiting_first)
	{
		return;
	}
	bool is_near = true;
	for (int k = 0; k < 3; ++k)
	{
		double x = grains[i].position[k];
		is_near = is_near && x > control.birth_low[k] && x < control.birth_high[k];
	}
	if (is_near)
	{
		rivals[atomicAdd(control.rival_count, 1)] = i; // in any order: one that is too near is enough
	}
}

// Along the way that it would have gone since its birth, or back. One that waited for its place starts now.
void carry(int i, double birth, bool is_back)
{
	double_p since = control.list_time - birth, limit = 2.0lf * control.birth_slack;
	since = since < limit ? since : 0.0lf;
	for (int k = 0; k < 3; ++k)
	{
		double_p kick = control.gravity[k] * since, velocity = grains[i].velocity[k];
		velocity = is_back ? velocity - kick : velocity;
		double_p way = (velocity + 0.5lf * kick) * since;
		double_p position = is_back ? grains[i].position[k] - way : grains[i].position[k] + way;
		double_p after = is_back ? grains[i].velocity[k] - kick : grains[i].velocity[k] + kick;
		grains[i].position[k] = position;
		grains[i].velocity[k] = after;
	}
}

bool is_taken_by(int i, int rival)
{
	double_p reach = bound_of(rival) + bound_of(i), square = 0.0lf;
	for (int k = 0; k < 3; ++k)
	{
		double_p d = grains[rival].position[k] - grains[i].position[k];
		square = square + d * d;
	}
	double_p reach_square = reach * reach;
	return square < reach_square;
}

void main()
{
	uint local = gl_LocalInvocationID.x;
	int thread = int(sand_thread());
	if (part == 0u && thread == 0)
	{
		find_due();
	}
	else if (part == 1u && thread < control.grain_count)
	{
		find_rival(thread);
	}
	else if (part == 2u && sand_group() == 0u)
	{
		int kept = 0, first = control.waiting_first, due = control.waiting_due, count = control.rival_count;
		for (int w = first; w < due; ++w)
		{
			int id = places[control.grain_count + w], i = places[id];
			if (local == 0u)
			{
				taken = 0;
				carry(i, births[id], false);
			}
			memoryBarrierBuffer();
			memoryBarrierShared();
			barrier();
			for (int r = int(local); r < count; r += 64)
			{
				if (is_taken_by(i, rivals[r]))
				{
					taken = 1;
				}
			}
			memoryBarrierShared();
			barrier();
			bool is_free = taken == 0;
			if (local == 0u)
			{
				if (is_free)
				{
					grains[i].flags = grains[i].flags & ~SAND_GRAIN_UNBORN;
					rivals[count] = i;
				}
				else
				{
					carry(i, births[id], true);
					places[control.grain_count + first + kept] = id;
				}
			}
			kept += is_free ? 0 : 1;
			count += is_free ? 1 : 0;
			memoryBarrierBuffer();
			barrier();
		}
		if (local == 0u)
		{
			// Who is late goes to the end of those due, before the others.
			for (int k = kept - 1; k >= 0; --k)
			{
				places[control.grain_count + due - kept + k] = places[control.grain_count + first + k];
			}
			control.waiting_first = due - kept;
			control.next_birth =
			    due < control.waiting_end ? births[places[control.grain_count + due]] : 1.7976931348623157e308lf;
		}
	}
}
