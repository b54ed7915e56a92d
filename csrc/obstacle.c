// obstacle: closed-form surfaces.
// Comes in: a description and a point. Goes out: distance and normal.
//
// shaders/obstacle.glsl is its twin, same bits: sums do not begin with a zero, whose sign a GLSL compiler may lose.
#include "obstacle.h"

#include <math.h>

static bool emit(SandTouch *touches, int *slots, int *count, double reach, int slot, double distance, const double n[3])
{
	if (distance >= reach || *count == SAND_TOUCH_LIMIT)
	{
		return false;
	}
	touches[*count] = (SandTouch){distance, {n[0], n[1], n[2]}};
	slots[(*count)++] = slot;
	return true;
}

// A plane of half-sunk spheres on a square lattice: the surface is the highest of the nearest sphere and the plane.
static void touch_plane(const SandObstacle *o, const double p[3], double reach, SandTouch *touches, int *slots,
                        int *count)
{
	const double *n = o->unit_axis;
	double height = sand_plane_height(o, p);
	if (o->roughness > 0 && height > 0 && height < reach + (double)o->roughness)
	{
		// Two axes across the normal, from the coordinate axis least along it.
		int least = fabs(n[0]) <= fabs(n[1]) && fabs(n[0]) <= fabs(n[2]) ? 0 : fabs(n[1]) <= fabs(n[2]) ? 1 : 2;
		double u[3] = {least == 0   ? 0
		               : least == 1 ? -n[2]
		                            : n[1],
		               least == 0   ? n[2]
		               : least == 1 ? 0
		                            : -n[0],
		               least == 0   ? -n[1]
		               : least == 1 ? n[0]
		                            : 0};
		double length = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
		double v[3], from[3], pitch = 2 * (double)o->roughness;
		for (int k = 0; k < 3; ++k)
		{
			u[k] /= length;
			from[k] = p[k] - (double)o->point[k];
		}
		v[0] = n[1] * u[2] - n[2] * u[1];
		v[1] = n[2] * u[0] - n[0] * u[2];
		v[2] = n[0] * u[1] - n[1] * u[0];
		double along_u = from[0] * u[0] + from[1] * u[1] + from[2] * u[2];
		double along_v = from[0] * v[0] + from[1] * v[1] + from[2] * v[2];
		double du = along_u - pitch * floor(along_u / pitch + 0.5), dv = along_v - pitch * floor(along_v / pitch + 0.5);
		double distance = sqrt(du * du + dv * dv + height * height);
		if (distance > 0 && distance - (double)o->roughness < height)
		{
			double normal[3];
			for (int k = 0; k < 3; ++k)
			{
				normal[k] = (du * u[k] + dv * v[k] + height * n[k]) / distance;
			}
			emit(touches, slots, count, reach, 0, distance - (double)o->roughness, normal);
			return;
		}
	}
	emit(touches, slots, count, reach, 0, height, n);
}

static void touch_box(const SandObstacle *o, const double p[3], double reach, SandTouch *touches, int *slots,
                      int *count)
{
	double d[3], out[3], square = 0, deepest = -1e300;
	int face = 0;
	for (int k = 0; k < 3; ++k)
	{
		d[k] = p[k] - (double)o->point[k];
		double beyond = fabs(d[k]) - (double)o->size[k];
		if (beyond > deepest)
		{
			deepest = beyond;
			face = k;
		}
		out[k] = beyond > 0 ? beyond : 0;
		square += out[k] * out[k];
	}
	if (o->is_inside)
	{
		for (int k = 0; k < 3; ++k)
		{
			for (int side = 0; side < 2; ++side)
			{
				double n[3] = {0, 0, 0}, sign = side == 0 ? 1 : -1;
				n[k] = sign;
				emit(touches, slots, count, reach, 2 * k + side, (double)o->size[k] + sign * d[k], n);
			}
		}
		return;
	}
	double n[3] = {0, 0, 0};
	if (square > 0)
	{
		double distance = sqrt(square);
		for (int k = 0; k < 3; ++k)
		{
			n[k] = d[k] < 0 ? -out[k] / distance : out[k] / distance;
		}
		emit(touches, slots, count, reach, 0, distance, n);
		return;
	}
	n[face] = d[face] < 0 ? -1 : 1;
	emit(touches, slots, count, reach, 0, deepest, n);
}

typedef struct Polar
{
	double height;  // along the axis
	double radius;  // from it
	double away[3]; // unit, from it; zero on it
} Polar;

static Polar polar_of(const SandObstacle *o, const double p[3])
{
	Polar polar;
	const double *axis = o->unit_axis;
	double d[3], square = 0;
	for (int k = 0; k < 3; ++k)
	{
		d[k] = p[k] - (double)o->point[k];
	}
	polar.height = d[0] * axis[0] + d[1] * axis[1] + d[2] * axis[2];
	for (int k = 0; k < 3; ++k)
	{
		polar.away[k] = d[k] - polar.height * axis[k];
		square += polar.away[k] * polar.away[k];
	}
	polar.radius = sqrt(square);
	for (int k = 0; k < 3; ++k)
	{
		polar.away[k] = polar.radius > 0 ? polar.away[k] / polar.radius : 0;
	}
	return polar;
}

static void touch_cylinder(const SandObstacle *o, const double p[3], double reach, SandTouch *touches, int *slots,
                           int *count)
{
	Polar polar = polar_of(o, p);
	const double *away = polar.away, *axis = o->unit_axis, height = polar.height, radius = polar.radius;
	double n[3];
	double r = o->size[0], half = o->size[1];
	double beyond_side = radius - r, beyond_end = half > 0 ? fabs(height) - half : -1e300;
	double end = height < 0 ? -1 : 1;
	if (o->is_inside)
	{
		for (int k = 0; k < 3; ++k)
		{
			n[k] = -away[k];
		}
		emit(touches, slots, count, reach, 0, -beyond_side, n);
		for (int side = 0; side < 2 && half > 0; ++side)
		{
			double sign = side == 0 ? 1 : -1;
			for (int k = 0; k < 3; ++k)
			{
				n[k] = sign * axis[k];
			}
			emit(touches, slots, count, reach, 1 + side, half + sign * height, n);
		}
		return;
	}
	double side_out = beyond_side > 0 ? beyond_side : 0, end_out = beyond_end > 0 ? beyond_end : 0;
	double distance = sqrt(side_out * side_out + end_out * end_out);
	double side_share = 0, end_share = 0;
	if (distance > 0)
	{
		side_share = side_out / distance;
		end_share = end_out / distance;
	}
	else
	{
		bool is_side = beyond_side > beyond_end;
		distance = is_side ? beyond_side : beyond_end;
		side_share = is_side ? 1 : 0;
		end_share = is_side ? 0 : 1;
	}
	for (int k = 0; k < 3; ++k)
	{
		n[k] = side_share * away[k] + end_share * end * axis[k];
	}
	emit(touches, slots, count, reach, 0, distance, n);
}

static void touch_cone(const SandObstacle *o, const double p[3], double reach, SandTouch *touches, int *slots,
                       int *count)
{
	Polar polar = polar_of(o, p);
	const double *away = polar.away, *axis = o->unit_axis, height = polar.height, radius = polar.radius;
	double n[3];
	// In the half plane (radius, height) the surface is the segment from begin to end along (slope, 1).
	double slope = o->size[0], begin = o->size[1], end = o->size[2], scale = 1 / sqrt(1 + slope * slope);
	double at = (slope * radius + height) / (1 + slope * slope); // height of the nearest point of the line
	bool is_rim = at < begin || at > end;
	at = at < begin ? begin : at > end ? end : at;
	double dr = radius - slope * at, dh = height - at;
	double across = (radius - slope * height) * scale; // signed distance to the line, positive outside the cone
	double side = o->is_inside ? -1 : 1, distance = is_rim ? sqrt(dr * dr + dh * dh) : side * across;
	double share_r = is_rim ? (distance > 0 ? dr / distance : 0) : side * scale;
	double share_h = is_rim ? (distance > 0 ? dh / distance : 0) : -side * slope * scale;
	for (int k = 0; k < 3; ++k)
	{
		n[k] = share_r * away[k] + share_h * axis[k];
	}
	emit(touches, slots, count, reach, 0, distance, n);
}

int sand_obstacle_touch(const SandObstacle *o, const double p[3], double reach, SandTouch touches[SAND_TOUCH_LIMIT],
                        int slots[SAND_TOUCH_LIMIT])
{
	int count = 0;
	switch (o->kind)
	{
	case SAND_OBSTACLE_BOX:
		touch_box(o, p, reach, touches, slots, &count);
		break;
	case SAND_OBSTACLE_CYLINDER:
		touch_cylinder(o, p, reach, touches, slots, &count);
		break;
	case SAND_OBSTACLE_CONE:
		touch_cone(o, p, reach, touches, slots, &count);
		break;
	default:
		touch_plane(o, p, reach, touches, slots, &count);
		break;
	}
	return count;
}

SandStatus sand_obstacle_check(SandObstacle *o, int index, SandError *err)
{
	static const char *const names[SAND_OBSTACLE_COUNT] = {"plane", "box", "cylinder", "cone"};
	static const int sizes[SAND_OBSTACLE_COUNT] = {0, 3, 1, 1};
	if ((unsigned)o->kind >= SAND_OBSTACLE_COUNT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Obstacle %d has kind %d, expected 0 to %d", index, (int)o->kind,
		                 SAND_OBSTACLE_COUNT - 1);
	}
	const char *name = names[o->kind];
	if (!sand_is_finite(o->point, 3) || !sand_is_finite(o->axis, 3) || !sand_is_finite(o->size, 3) ||
	    !isfinite(o->roughness) || o->roughness < 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Obstacle %d (%s) has a number that is not finite, or a negative roughness", index, name);
	}
	for (int k = 0; k < sizes[o->kind]; ++k)
	{
		if (!(o->size[k] > 0))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Obstacle %d (%s) has size %g m, expected more than 0", index,
			                 name, (double)o->size[k]);
		}
	}
	if (o->kind == SAND_OBSTACLE_CONE && !(o->size[1] >= 0 && o->size[2] > o->size[1]))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Obstacle %d (cone) begins at height %g m and ends at %g m, expected 0 <= begin < end", index,
		                 (double)o->size[1], (double)o->size[2]);
	}
	if (o->kind == SAND_OBSTACLE_CYLINDER && !(o->size[1] >= 0))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Obstacle %d (cylinder) has half height %g m, expected 0 or more",
		                 index, (double)o->size[1]);
	}
	if (o->kind != SAND_OBSTACLE_BOX)
	{
		double length =
		    sqrt((double)o->axis[0] * o->axis[0] + (double)o->axis[1] * o->axis[1] + (double)o->axis[2] * o->axis[2]);
		if (!(length > 0))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Obstacle %d (%s) has axis (%g, %g, %g), expected not zero",
			                 index, name, (double)o->axis[0], (double)o->axis[1], (double)o->axis[2]);
		}
		for (int k = 0; k < 3; ++k)
		{
			// In double: near the axis the float's rounding would tilt the radial direction.
			o->unit_axis[k] = (double)o->axis[k] / length;
			o->axis[k] = (float)o->unit_axis[k];
		}
	}
	return SAND_OK;
}
