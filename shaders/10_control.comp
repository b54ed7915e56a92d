// 10_control: counts the step that was made, and chooses the next; the twin of take_steps, take_step and safe_step in
// csrc/sim.c. In: what the last passes found. Out: the step, or why the passes halt; then they get no groups to run.
// Groups of 64, one of them; barriers inside for the fastest and the halt. Everything of a step comes behind a barrier.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint is_ending; // not 0: only counts
#define READ_SPEEDS
#define USE_GRAINS
#include "engine.glsl"
#include "track.glsl"
layout(std430, binding = SAND_BIND_MESHES) readonly buffer MeshBlock
{
	SandGlCollider meshes[];
};
layout(std430, binding = SAND_BIND_PLACES) readonly buffer PlaceBlock
{
	int places[];
};
layout(std430, binding = SAND_BIND_BODIES) readonly buffer BodyBlock
{
	SandGlBody bodies[];
};

layout(std430, binding = SAND_BIND_GROUPS) buffer GroupBlock
{
	uint group_counts[]; // three per pass
};

shared double fastest[64];
shared int is_halted;

double fifth_root(double x)
{
	double_p root = 1.0lf;
	for (int i = 0; i < 100; ++i)
	{
		double_p next = (4.0lf * root + x / ((root * root) * (root * root))) * 0.2lf;
		if (!(next < root))
		{
			break;
		}
		root = next;
	}
	return root;
}

// Of the colliders in the longest step from now, m/s.
double collider_speed()
{
	double speed = 0.0lf;
	double_p until = control.time + control.step_limit;
	for (int c = 0; c < control.collider_count; ++c)
	{
		double own = meshes[c].track >= 0    ? track_speed(meshes[c].track, control.time, until)
		             : meshes[c].frames >= 0 ? frames_speed(meshes[c].frames, control.time, until)
		                                     : 0.0lf;
		speed = own > speed ? own : speed;
	}
	return speed;
}

bool is_release_due()
{
	for (int b = 0; b < control.body_count; ++b)
	{
		if (bodies[b].release > 0.0lf && control.time >= bodies[b].release &&
		    (grains[places[bodies[b].grain]].flags & SAND_GRAIN_DRIVEN) != 0)
		{
			return true;
		}
	}
	return false;
}

double safe_step()
{
	double_p speed = sqrt(control.fastest_square) + collider_speed(), step = control.step_limit;
	if (speed > control.max_speed)
	{
		step = step * fifth_root(control.max_speed / speed);
	}
	double_p way = 0.2lf * control.radius_min / speed;
	step = speed > 0.0lf && way < step ? way : step;
	return control.field_step < step ? control.field_step : step;
}

void count_step()
{
	control.is_stepped = 0;
	control.last_step = control.step;
	double_p now = control.time + control.step, late = control.next_birth + control.birth_slack,
	         then = now + control.step_limit;
	control.list_time = now;
	if (control.bad_grain != SAND_NO_GRAIN)
	{
		control.halt = SAND_HALT_BAD;
		return;
	}
	if (control.needs_list != 0 || (control.waiting_first < control.waiting_end && late <= now) ||
	    then > control.colliders_until)
	{
		control.halt = SAND_HALT_LIST;
	}
	++control.step_count;
	double_p passed = control.done + control.step;
	control.done = control.is_last != 0 ? control.seconds : passed;
	double_p time = control.begin + control.done;
	control.time = time;
}

void choose_step()
{
	if (!(control.done < control.seconds))
	{
		control.halt = SAND_HALT_DONE;
		return;
	}
	// Equal steps over what is left, so that the last is not a sliver.
	double_p left = control.seconds - control.done;
	double_p parts = ceil(left / safe_step() * (1.0lf - 1e-12lf));
	double_p share = left / parts;
	control.is_last = parts > 1.0lf ? 0 : 1;
	control.step = parts > 1.0lf ? share : left;
	double_p rest_steps = ceil(control.sleep_seconds / control.step);
	control.sleep_steps = int(rest_steps < 1e9lf ? rest_steps : 1e9lf);
}

// One invocation's.
void count_and_choose()
{
	control.fastest_square = fastest[0];
	if (control.is_stepped != 0)
	{
		count_step();
	}
	if (control.halt != SAND_HALT_NONE || is_ending != 0u)
	{
		return;
	}
	if (control.is_chosen == 0)
	{
		choose_step();
	}
	if (control.halt != SAND_HALT_NONE)
	{
		return;
	}
	if (is_release_due())
	{
		control.is_chosen = 1;
		control.list_time = control.time;
		control.halt = SAND_HALT_RELEASE;
		return;
	}
	control.is_chosen = 0;
	double_p turn_seconds = control.turn_seconds + control.step;
	bool is_turning = ++control.turn_steps == SAND_TURN_STEPS;
	control.turn = is_turning ? turn_seconds : 0.0lf;
	control.turn_seconds = is_turning ? 0.0lf : turn_seconds;
	control.turn_steps = is_turning ? 0 : control.turn_steps;
	control.is_stepped = 1;
}

void main()
{
	now = control;
	uint local = gl_LocalInvocationID.x;
	double most = 0.0lf;
	for (int i = int(local); i < now.speed_count; i += 64)
	{
		double value = packDouble2x32(texelFetch(speed_texels, now.speed_first + i).xy);
		most = value > most ? value : most;
	}
	fastest[local] = most;
	for (uint width = 32u; width > 0u; width /= 2u)
	{
		memoryBarrierShared();
		barrier();
		if (local < width && fastest[local + width] > fastest[local])
		{
			fastest[local] = fastest[local + width];
		}
	}
	if (local == 0u)
	{
		if (now.halt == SAND_HALT_NONE)
		{
			count_and_choose();
		}
		is_halted = control.halt != SAND_HALT_NONE ? 1 : 0;
	}
	memoryBarrierShared();
	barrier();
	if (is_halted != 0 && local < uint(3 * SAND_GROUPS_COUNT))
	{
		group_counts[local] = 0u;
	}
}
