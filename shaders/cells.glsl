// cells: in which class and cell a sphere is; the twin of level_of and cell_of in csrc/list.c.
// Needs grains, spheres, levels.

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

bool is_fast_sphere(int s)
{
	int grain = spheres[s].grain;
	return grain >= 0 && (grains[grain].flags & SAND_GRAIN_FAST) != 0;
}

int level_of(int s)
{
	int level = 0;
	while (level + 1 < control.size_count && spheres[s].radius > levels[level].radius_max)
	{
		++level;
	}
	return is_fast_sphere(s) ? level + control.size_count : level;
}
