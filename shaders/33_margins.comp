// 33_margins: which grains are fast and how wide their margin, and the cells of every class; the twin of choose_margins
// in csrc/sim.c and of the first part of fill_cells in csrc/list.c.
// In: the fastest of each group, how many are above each threshold. Out: margins, cells.
// Groups of 256, one of them; barriers inside for the fastest.
layout(local_size_x = 256) in;
#define USE_PARTIALS
#define USE_LEVELS
#include "engine.glsl"

shared double fastest[256];

void choose_margins(double point)
{
	const double price = 10.0lf;
	double_p radius = control.radius_min, step = control.step_limit, slow = 0.15lf * radius, wide_limit = 1.5lf * radius;
	double_p best_cost = 1.7976931348623157e308lf, best_margin = slow;
	control.fast_speed = 1.7976931348623157e308lf;
	for (int choice = 0; choice < SAND_MARGIN_CHOICES; ++choice)
	{
		double_p k = double(64 >> choice);
		double_p margin = 1.1lf * point * k * step;
		margin = margin > slow ? margin : slow;
		margin = margin < wide_limit ? margin : wide_limit;
		double_p lasts = k;
		if (point > 0.0lf)
		{
			double_p steps = margin / (point * step);
			lasts = steps < k ? steps : k;
		}
		double_p share = double(control.faster[choice]) / double(control.grain_count), wide = 1.0lf + margin / radius,
		         narrow = 1.0lf + 0.15lf;
		double_p steps = lasts > 1.0lf ? lasts : 1.0lf;
		double_p cost = (share * wide * wide * wide + (1.0lf - share) * narrow * narrow * narrow) * (1.0lf + price / steps);
		if (cost < best_cost)
		{
			best_cost = cost;
			control.fast_speed = control.thresholds[choice];
			best_margin = margin;
		}
	}
	double_p units = best_margin / control.unit;
	control.margin_fast = float(units);
}

void choose_cells()
{
	for (int l = 0; l < control.level_count; ++l)
	{
		precise float margin = (l < control.size_count ? control.margin_slow : control.margin_fast) + 0.5 * control.bridge;
		double_p cell = ceil(2.0lf * (double(levels[l].radius_max) + double(margin))) + 1.0lf;
		double_p scale = 4294967296.0lf / cell;
		levels[l].margin = margin;
		levels[l].cell_scale = uint(scale);
		levels[l].entry_count = 0;
	}
}

void main()
{
	uint local = gl_LocalInvocationID.x;
	double most = 0.0lf;
	for (int i = int(local); i < control.partial_count; i += 256)
	{
		double value = partials[control.partial_count + i];
		most = value > most ? value : most;
	}
	fastest[local] = most;
	for (uint width = 128u; width > 0u; width /= 2u)
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
		choose_margins(fastest[0]);
		choose_cells();
	}
}
