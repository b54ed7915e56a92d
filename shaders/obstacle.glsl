// obstacle: closed-form surfaces. Comes in: a description and a point. Goes out: distance and normal.
// The twin of csrc/obstacle.c, same bits: double operations in the same order, every result precise.
#ifndef SAND_OBSTACLE_GLSL
#define SAND_OBSTACLE_GLSL
#include "vector.glsl"

const int SAND_OBSTACLE_PLANE = 0;
const int SAND_OBSTACLE_BOX = 1;
const int SAND_OBSTACLE_CYLINDER = 2;
const int SAND_OBSTACLE_CONE = 3;
const int SAND_TOUCH_LIMIT = 3;

// Places of a surface, as sand_obstacle_touch gives them.
struct Touches
{
	int count;
	int slots[SAND_TOUCH_LIMIT];
	double distances[SAND_TOUCH_LIMIT]; // m from the point to the surface; negative behind it
	dvec3 normals[SAND_TOUCH_LIMIT];    // unit, from the surface to the grains' side
};

void emit_touch(inout Touches t, double reach, int slot, double distance, dvec3 n)
{
	if (distance >= reach || t.count == SAND_TOUCH_LIMIT)
	{
		return;
	}
	t.slots[t.count] = slot;
	t.distances[t.count] = distance;
	t.normals[t.count] = n;
	t.count = t.count + 1;
}

dvec3 obstacle_point(SandObstacle o)
{
	return dvec3(double(o.point[0]), double(o.point[1]), double(o.point[2]));
}

dvec3 obstacle_axis(SandObstacle o)
{
	return dvec3(o.unit_axis[0], o.unit_axis[1], o.unit_axis[2]);
}

// Height of p over a plane, m.
double plane_height(SandObstacle o, dvec3 p)
{
	precise dvec3 from = p - obstacle_point(o);
	return product3(from, obstacle_axis(o));
}

// A plane of half-sunk spheres on a square lattice: the surface is the highest of the nearest sphere and the plane.
void touch_plane(SandObstacle o, dvec3 p, double reach, inout Touches t)
{
	precise dvec3 n = obstacle_axis(o);
	precise double height = plane_height(o, p), roughness = double(o.roughness);
#ifndef NO_ROUGH
	if (roughness > 0.0lf && height > 0.0lf && height < reach + roughness)
	{
		// Two axes across the normal, from the coordinate axis least along it.
		precise dvec3 u;
		if (abs(n.x) <= abs(n.y) && abs(n.x) <= abs(n.z))
		{
			u = dvec3(0.0lf, n.z, -n.y);
		}
		else if (abs(n.y) <= abs(n.z))
		{
			u = dvec3(-n.z, 0.0lf, n.x);
		}
		else
		{
			u = dvec3(n.y, -n.x, 0.0lf);
		}
		precise double size = sqrt(product3(u, u)), pitch = 2.0lf * roughness;
		u = u / size;
		precise dvec3 v = cross3(n, u), from = p - obstacle_point(o);
		precise double along_u = product3(from, u), along_v = product3(from, v);
		precise double du = along_u - pitch * floor(along_u / pitch + 0.5lf);
		precise double dv = along_v - pitch * floor(along_v / pitch + 0.5lf);
		precise double distance = sqrt(du * du + dv * dv + height * height);
		if (distance > 0.0lf && distance - roughness < height)
		{
			precise dvec3 normal = (du * u + dv * v + height * n) / distance;
			precise double over = distance - roughness;
			emit_touch(t, reach, 0, over, normal);
			return;
		}
	}
#endif
	emit_touch(t, reach, 0, height, n);
}

void touch_box(SandObstacle o, dvec3 p, double reach, inout Touches t)
{
	precise dvec3 size = dvec3(double(o.size[0]), double(o.size[1]), double(o.size[2]));
	precise dvec3 d = p - obstacle_point(o), beyond = abs(d) - size;
	if (o.is_inside != 0)
	{
		// Constants, for Mesa makes minus zero of the zero in is_it ? -1 : 0.
		precise dvec3 low = size + d, high = size - d;
		emit_touch(t, reach, 0, low.x, dvec3(1.0lf, 0.0lf, 0.0lf));
		emit_touch(t, reach, 1, high.x, dvec3(-1.0lf, 0.0lf, 0.0lf));
		emit_touch(t, reach, 2, low.y, dvec3(0.0lf, 1.0lf, 0.0lf));
		emit_touch(t, reach, 3, high.y, dvec3(0.0lf, -1.0lf, 0.0lf));
		emit_touch(t, reach, 4, low.z, dvec3(0.0lf, 0.0lf, 1.0lf));
		emit_touch(t, reach, 5, high.z, dvec3(0.0lf, 0.0lf, -1.0lf));
		return;
	}
	precise dvec3 outside = dvec3(beyond.x > 0.0lf ? beyond.x : 0.0lf, beyond.y > 0.0lf ? beyond.y : 0.0lf,
	                              beyond.z > 0.0lf ? beyond.z : 0.0lf);
	precise double square = product3(outside, outside);
	if (square > 0.0lf)
	{
		precise double distance = sqrt(square);
		precise dvec3 n = outside / distance;
		n = dvec3(d.x < 0.0lf ? -n.x : n.x, d.y < 0.0lf ? -n.y : n.y, d.z < 0.0lf ? -n.z : n.z);
		emit_touch(t, reach, 0, distance, n);
		return;
	}
	int face = 0;
	precise double deepest = beyond.x;
	if (beyond.y > deepest)
	{
		face = 1;
		deepest = beyond.y;
	}
	if (beyond.z > deepest)
	{
		face = 2;
		deepest = beyond.z;
	}
	double side = (face == 0 ? d.x : face == 1 ? d.y : d.z) < 0.0lf ? -1.0lf : 1.0lf;
	dvec3 n = dvec3(face == 0 ? side : 0.0lf, face == 1 ? side : 0.0lf, face == 2 ? side : 0.0lf);
	emit_touch(t, reach, 0, deepest, n);
}

// Height along the axis and distance from it; returned: unit, away from it, zero on it.
dvec3 polar_of(SandObstacle o, dvec3 p, out double height_out, out double radius_out)
{
	precise dvec3 axis = obstacle_axis(o), d = p - obstacle_point(o);
	precise double height = product3(d, axis);
	precise dvec3 away = d - height * axis;
	precise double radius = sqrt(product3(away, away));
	height_out = height;
	radius_out = radius;
	if (!(radius > 0.0lf))
	{
		return dvec3(0.0lf);
	}
	precise dvec3 unit_away = away / radius;
	return unit_away;
}

void touch_cylinder(SandObstacle o, dvec3 p, double reach, inout Touches t)
{
	double height, radius;
	precise dvec3 away = polar_of(o, p, height, radius), axis = obstacle_axis(o), n;
	precise double half_height = double(o.size[1]), beyond_side = radius - double(o.size[0]), beyond_end;
	beyond_end = half_height > 0.0lf ? abs(height) - half_height : -1e300lf;
	double end = height < 0.0lf ? -1.0lf : 1.0lf;
	if (o.is_inside != 0)
	{
		emit_touch(t, reach, 0, -beyond_side, -away);
		if (half_height > 0.0lf)
		{
			precise double low = half_height + height, high = half_height - height;
			emit_touch(t, reach, 1, low, axis);
			emit_touch(t, reach, 2, high, -axis);
		}
		return;
	}
	precise double side_out = beyond_side > 0.0lf ? beyond_side : 0.0lf, end_out = beyond_end > 0.0lf ? beyond_end : 0.0lf;
	precise double distance = sqrt(side_out * side_out + end_out * end_out), side_share, end_share;
	if (distance > 0.0lf)
	{
		side_share = side_out / distance;
		end_share = end_out / distance;
	}
	else
	{
		bool is_side = beyond_side > beyond_end;
		distance = is_side ? beyond_side : beyond_end;
		side_share = is_side ? 1.0lf : 0.0lf;
		end_share = is_side ? 0.0lf : 1.0lf;
	}
	precise double end_part = end_share * end;
	n = side_share * away + end_part * axis;
	emit_touch(t, reach, 0, distance, n);
}

void touch_cone(SandObstacle o, dvec3 p, double reach, inout Touches t)
{
	double height, radius;
	precise dvec3 away = polar_of(o, p, height, radius), axis = obstacle_axis(o), n;
	// In the half plane (radius, height) the surface is the segment from begin to end along (slope, 1).
	precise double slope = double(o.size[0]), begin = double(o.size[1]), end = double(o.size[2]);
	precise double spread = 1.0lf + slope * slope, scale = 1.0lf / sqrt(spread);
	precise double at = (slope * radius + height) / spread; // height of the nearest point of the line
	bool is_rim = at < begin || at > end;
	at = at < begin ? begin : at > end ? end : at;
	precise double dr = radius - slope * at, dh = height - at;
	precise double across = (radius - slope * height) * scale; // signed distance to the line, positive outside the cone
	precise double side = o.is_inside != 0 ? -1.0lf : 1.0lf, distance, share_r, share_h;
	if (is_rim)
	{
		distance = sqrt(dr * dr + dh * dh);
		share_r = distance > 0.0lf ? dr / distance : 0.0lf;
		share_h = distance > 0.0lf ? dh / distance : 0.0lf;
	}
	else
	{
		distance = side * across;
		share_r = side * scale;
		share_h = -side * slope * scale;
	}
	n = share_r * away + share_h * axis;
	emit_touch(t, reach, 0, distance, n);
}

// Nearest places of the surface within reach of p, always in the same order for the same obstacle.
Touches obstacle_touches(SandObstacle o, dvec3 p, double reach)
{
	Touches t;
	t.count = 0;
#ifndef NO_BOXES
	if (o.kind == SAND_OBSTACLE_BOX)
	{
		touch_box(o, p, reach, t);
	}
#endif
#ifndef NO_CYLINDERS
	if (o.kind == SAND_OBSTACLE_CYLINDER)
	{
		touch_cylinder(o, p, reach, t);
	}
#endif
#ifndef NO_CONES
	if (o.kind == SAND_OBSTACLE_CONE)
	{
		touch_cone(o, p, reach, t);
	}
#endif
	if (o.kind == SAND_OBSTACLE_PLANE)
	{
		touch_plane(o, p, reach, t);
	}
	return t;
}
#endif
