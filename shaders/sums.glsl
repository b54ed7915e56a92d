// sums: the forces of pairs on one sphere, added in the order of csrc/kernel.c: those of its own chunk by law, what it is
// the higher one of before what it is the lower one of, both in order of the other; then the same across the chunk's
// border; last, chunk by chunk, what earlier chunks have summed for it apart.
// Needs firsts, backs, pairs, forces.

// The least law above `after` among the pairs of the sphere that one round looks at.
int next_law(int after, int first, int end, int back_first, int back_end)
{
	int best = SAND_NO_GRAIN;
	for (int i = first; i < end; ++i)
	{
		int law = pairs[i].law;
		best = law > after && law < best ? law : best;
	}
	for (int k = back_first; k < back_end; ++k)
	{
		int law = pairs[backs[k]].law;
		best = law > after && law < best ? law : best;
	}
	return best;
}

vec3 force_of(int i)
{
	return vec3(forces[i].force[0], forces[i].force[1], forces[i].force[2]);
}

vec3 torque_a_of(int i)
{
	return vec3(forces[i].torque_a[0], forces[i].torque_a[1], forces[i].torque_a[2]);
}

vec3 torque_b_of(int i)
{
	return vec3(forces[i].torque_b[0], forces[i].torque_b[1], forces[i].torque_b[2]);
}

void own_sums(int s, out vec3 force_out, out vec3 torque_out)
{
	precise vec3 force = vec3(0.0), torque = vec3(0.0);
	int first = firsts[s], end = firsts[s + 1], back_first = back_firsts[s], back_end = back_firsts[s + 1];
	for (int outer = 0; outer < 2; ++outer)
	{
		int law = next_law(-1, first, end, back_first, back_end);
		while (law != SAND_NO_GRAIN)
		{
			for (int k = back_first; k < back_end && outer == 0; ++k)
			{
				int i = backs[k];
				if (pairs[i].law == law && (pairs[i].chunk & 1) == 0 && forces[i].is_touching != 0)
				{
					force = force - force_of(i);
					torque = torque - torque_b_of(i);
				}
			}
			for (int i = first; i < end; ++i)
			{
				if (pairs[i].law == law && (pairs[i].chunk & 1) == outer && forces[i].is_touching != 0)
				{
					force = force + force_of(i);
					torque = torque + torque_a_of(i);
				}
			}
			law = control.law_count > 1 ? next_law(law, first, end, back_first, back_end) : SAND_NO_GRAIN;
		}
	}
	force_out = force;
	torque_out = torque;
}

void add_inflows(int s, inout vec3 force_io, inout vec3 torque_io)
{
	precise vec3 force = force_io, torque = torque_io;
	int back_end = back_firsts[s + 1];
	for (int first = back_firsts[s], end = first; first < back_end; first = end)
	{
		int chunk = pairs[backs[first]].chunk;
		for (end = first; end < back_end && pairs[backs[end]].chunk == chunk; ++end)
		{
		}
		if ((chunk & 1) == 0)
		{
			continue;
		}
		precise vec3 ghost_force = vec3(0.0), ghost_torque = vec3(0.0);
		int law = next_law(-1, 0, 0, first, end);
		while (law != SAND_NO_GRAIN)
		{
			for (int k = first; k < end; ++k)
			{
				int i = backs[k];
				if (pairs[i].law == law && forces[i].is_touching != 0)
				{
					ghost_force = ghost_force - force_of(i);
					ghost_torque = ghost_torque - torque_b_of(i);
				}
			}
			law = control.law_count > 1 ? next_law(law, 0, 0, first, end) : SAND_NO_GRAIN;
		}
		force = force + ghost_force;
		torque = torque + ghost_torque;
	}
	force_io = force;
	torque_io = torque;
}

void write_sum(int s, vec3 force, vec3 torque)
{
	for (int k = 0; k < 3; ++k)
	{
		sums[s].force[k] = force[k];
		sums[s].torque[k] = torque[k];
	}
}
