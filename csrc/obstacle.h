// obstacle: closed-form surfaces. Comes in: a description. Goes out: distance and normal at a point.
#ifndef SAND_OBSTACLE_H
#define SAND_OBSTACLE_H

#include "base.h"

typedef enum SandObstacleKind
{
	SAND_OBSTACLE_PLANE, // half space: point, axis = normal towards the grains
	SAND_OBSTACLE_BOX,   // axis-parallel: point = centre, size = half edges; outside, or inside as a container of six
	                     // walls
	SAND_OBSTACLE_CYLINDER, // point = centre, axis, size[0] = radius, size[1] = half height (0 = endless); with end
	                        // caps
	SAND_OBSTACLE_CONE,     // thin open frustum: point = apex, axis into the cone, size[0] = radius per height,
	                        // size[1], size[2] = heights above the apex where it begins and ends
	SAND_OBSTACLE_COUNT
} SandObstacleKind;

typedef struct SandObstacle
{
	SandObstacleKind kind;
	int32_t is_inside;   // not 0: grains live inside (box, cylinder, cone)
	int32_t material;    // index into the scene's materials
	float point[3];      // m
	float axis[3];       // made unit by the scene
	float size[3];       // m
	int32_t pad;         // zero; no hole before the doubles, so that the struct can be hashed
	float roughness;     // m, spacing of virtual half-sunk spheres of that radius on a plane; 0 = smooth
	double unit_axis[3]; // made by sand_obstacle_check from axis
} SandObstacle;

/// A sphere can touch a surface at several places, a box's corner at three.
#define SAND_TOUCH_LIMIT 3

typedef struct SandTouch
{
	double distance;  // m from the point to the surface; negative behind it
	double normal[3]; // unit, from the surface to the grains' side
} SandTouch;

/// Nearest places of the surface within `reach` of point p; returns how many (0 .. SAND_TOUCH_LIMIT), always in the
/// same order for the same obstacle, so that `slot` can name a contact.
int sand_obstacle_touch(const SandObstacle *obstacle, const double p[3], double reach,
                        SandTouch touches_out[SAND_TOUCH_LIMIT], int slots_out[SAND_TOUCH_LIMIT]);

/// Height of p over a plane, m.
static inline double sand_plane_height(const SandObstacle *plane, const double p[3])
{
	const float *o = plane->point;
	const double *n = plane->unit_axis;
	return (p[0] - (double)o[0]) * n[0] + (p[1] - (double)o[1]) * n[1] + (p[2] - (double)o[2]) * n[2];
}

/// Slots an obstacle may use: contacts of one sphere are told apart by them.
#define SAND_SLOT_COUNT 8

/// Checks and makes the axis unit in place. Names the obstacle's number and the bad value.
SandStatus sand_obstacle_check(SandObstacle *obstacle, int index, SandError *err);

#endif
