// Tests of obstacle: distances and normals in closed form, and against a sampled surface.
#include "obstacle.h"
#include "test.h"

static int touch_at(const SandObstacle *obstacle, double x, double y, double z, double reach, SandTouch *touches)
{
	double p[3] = {x, y, z};
	int slots[SAND_TOUCH_LIMIT];
	SandObstacle copy = *obstacle;
	SandError err = {0};
	CHECK_STATUS(sand_obstacle_check(&copy, 0, &err), SAND_OK, &err);
	return sand_obstacle_touch(&copy, p, reach, touches, slots);
}

static void check_touch(const SandTouch *touch, double distance, double nx, double ny, double nz)
{
	CHECK_NEAR(touch->distance, distance, 1e-6); // the description is in floats
	CHECK_NEAR(touch->normal[0], nx, 1e-6);
	CHECK_NEAR(touch->normal[1], ny, 1e-6);
	CHECK_NEAR(touch->normal[2], nz, 1e-6);
}

static void plane_measures_height_and_forgets_what_is_far(void)
{
	SandObstacle plane = {.point = {0, 0, 1}, .axis = {0, 0, 5}};
	SandTouch touches[SAND_TOUCH_LIMIT];
	CHECK_INT(touch_at(&plane, 3, -2, 1.5, 1, touches), 1);
	check_touch(&touches[0], 0.5, 0, 0, 1);
	CHECK_INT(touch_at(&plane, 3, -2, 0.75, 1, touches), 1);
	check_touch(&touches[0], -0.25, 0, 0, 1);
	CHECK_INT(touch_at(&plane, 3, -2, 2.5, 1, touches), 0);
}

static void rough_plane_is_bumps_of_half_sunk_spheres(void)
{
	SandObstacle plane = {.axis = {0, 0, 1}, .roughness = 0.1f};
	SandTouch touches[SAND_TOUCH_LIMIT];
	// Over the top of a bump, and over the middle between four, where the plane shows.
	CHECK_INT(touch_at(&plane, 0, 0, 0.15, 1, touches), 1);
	check_touch(&touches[0], 0.05, 0, 0, 1);
	CHECK_INT(touch_at(&plane, 0.1, 0.1, 0.02, 1, touches), 1);
	check_touch(&touches[0], 0.02, 0, 0, 1);
	// On the flank the normal leans away from the bump's centre.
	CHECK_INT(touch_at(&plane, 0.06, 0, 0.08, 1, touches), 1);
	double lean = fabs(touches[0].normal[0]) + fabs(touches[0].normal[1]);
	CHECK_NEAR(lean, 0.6, 1e-6);
	CHECK_NEAR(touches[0].distance, 0, 1e-6);
}

static void box_touches_faces_edges_and_corners_from_outside(void)
{
	SandObstacle box = {.kind = SAND_OBSTACLE_BOX, .point = {1, 0, 0}, .size = {1, 2, 3}};
	SandTouch touches[SAND_TOUCH_LIMIT];
	CHECK_INT(touch_at(&box, 2.5, 1, 1, 9, touches), 1);
	check_touch(&touches[0], 0.5, 1, 0, 0);
	CHECK_INT(touch_at(&box, 2.3, 2.4, 0, 9, touches), 1);
	check_touch(&touches[0], 0.5, 0.6, 0.8, 0);
	CHECK_INT(touch_at(&box, 3, -3, 4, 9, touches), 1);
	double third = 1 / sqrt(3.0);
	check_touch(&touches[0], sqrt(3.0), third, -third, third);
	CHECK_INT(touch_at(&box, 1.9, 0, 0, 9, touches), 1); // sunk into the nearest face
	check_touch(&touches[0], -0.1, 1, 0, 0);
}

static void box_from_inside_has_six_walls(void)
{
	SandObstacle box = {.kind = SAND_OBSTACLE_BOX, .is_inside = 1, .size = {1, 1, 1}};
	SandTouch touches[SAND_TOUCH_LIMIT];
	CHECK_INT(touch_at(&box, 0, 0, 0, 0.5, touches), 0);
	CHECK_INT(touch_at(&box, 0.9, -0.8, -0.95, 0.3, touches), 3);
	check_touch(&touches[0], 0.1, -1, 0, 0);
	check_touch(&touches[1], 0.2, 0, 1, 0);
	check_touch(&touches[2], 0.05, 0, 0, 1);
}

static void cylinder_touches_side_caps_and_rim(void)
{
	SandObstacle cylinder = {.kind = SAND_OBSTACLE_CYLINDER, .axis = {0, 0, 2}, .size = {1, 2, 0}};
	SandTouch touches[SAND_TOUCH_LIMIT];
	CHECK_INT(touch_at(&cylinder, 0, 1.5, 1, 9, touches), 1);
	check_touch(&touches[0], 0.5, 0, 1, 0);
	CHECK_INT(touch_at(&cylinder, 0, 0.5, -2.5, 9, touches), 1);
	check_touch(&touches[0], 0.5, 0, 0, -1);
	CHECK_INT(touch_at(&cylinder, 1.3, 0, 2.4, 9, touches), 1);
	check_touch(&touches[0], 0.5, 0.6, 0, 0.8);
	cylinder.is_inside = 1;
	CHECK_INT(touch_at(&cylinder, 0.9, 0, 1.8, 0.3, touches), 2);
	check_touch(&touches[0], 0.1, -1, 0, 0);
	check_touch(&touches[1], 0.2, 0, 0, -1);
	cylinder.size[1] = 0; // endless
	CHECK_INT(touch_at(&cylinder, 0.9, 0, 100, 0.3, touches), 1);
}

static void cone_touches_wall_and_rims(void)
{
	// 45 degrees, apex at the origin, opening upwards, from height 1 to 3: a funnel with a hole of radius 1.
	SandObstacle cone = {.kind = SAND_OBSTACLE_CONE, .is_inside = 1, .axis = {0, 0, 1}, .size = {1, 1, 3}};
	SandTouch touches[SAND_TOUCH_LIMIT];
	double half = sqrt(0.5);
	CHECK_INT(touch_at(&cone, 1, 0, 2, 9, touches), 1);
	check_touch(&touches[0], half, -half, 0, half);
	CHECK_INT(touch_at(&cone, 0, 2.2, 2, 9, touches), 1); // pushed through the wall by 0.2 sideways
	check_touch(&touches[0], -0.2 * half, 0, -half, half);
	CHECK_INT(touch_at(&cone, 0.5, 0, 1, 9, touches), 1); // in the hole: nearest is the rim at radius 1, height 1
	check_touch(&touches[0], 0.5, -1, 0, 0);
	CHECK_INT(touch_at(&cone, 3, 0, 3.5, 9, touches), 1); // above the upper rim
	check_touch(&touches[0], 0.5, 0, 0, 1);
	cone.is_inside = 0;
	CHECK_INT(touch_at(&cone, 3, 0, 2, 9, touches), 1);
	check_touch(&touches[0], half, half, 0, -half);
}

static void distance_agrees_with_the_normal_everywhere(void)
{
	// Moving along the normal by h changes the distance by h: true for any exact distance.
	static const SandObstacle shapes[5] = {
	    {.axis = {1, 2, 3}},
	    {.kind = SAND_OBSTACLE_BOX, .size = {1, 0.5f, 0.8f}},
	    {.kind = SAND_OBSTACLE_CYLINDER, .axis = {1, 1, 0}, .size = {0.7f, 1, 0}},
	    {.kind = SAND_OBSTACLE_CYLINDER, .axis = {0, 1, 1}, .size = {0.7f, 0, 0}, .is_inside = 1},
	    {.kind = SAND_OBSTACLE_CONE, .axis = {1, 0, 1}, .size = {0.6f, 0.2f, 2}, .is_inside = 1},
	};
	int checked = 0;
	for (int s = 0; s < 5; ++s)
	{
		SandObstacle shape = shapes[s];
		(void)sand_obstacle_check(&shape, 0, NULL);
		for (uint64_t i = 0; i < 400; ++i)
		{
			double p[3], q[3];
			SandTouch here[SAND_TOUCH_LIMIT], there[SAND_TOUCH_LIMIT];
			int slots[SAND_TOUCH_LIMIT];
			for (int k = 0; k < 3; ++k)
			{
				p[k] = 4 * sand_random((uint64_t)s, 3 * i + (uint64_t)k) - 2;
			}
			if (sand_obstacle_touch(&shape, p, 9, here, slots) != 1 || here[0].distance < 0.01)
			{
				continue;
			}
			double length = 0;
			for (int k = 0; k < 3; ++k)
			{
				q[k] = p[k] + 1e-3 * here[0].normal[k];
				length += here[0].normal[k] * here[0].normal[k];
			}
			CHECK_NEAR(length, 1, 1e-6);
			if (sand_obstacle_touch(&shape, q, 9, there, slots) == 1)
			{
				// An inside surface folds over at its axis: there moving away from one side nears the other.
				bool is_fold = shape.is_inside && fabs(there[0].distance - here[0].distance) < 0.9e-3;
				CHECK(is_fold || fabs(there[0].distance - here[0].distance - 1e-3) < 1e-6);
				checked += !is_fold;
			}
		}
	}
	CHECK(checked > 800);
}

void test_obstacle(void)
{
	RUN(plane_measures_height_and_forgets_what_is_far);
	RUN(rough_plane_is_bumps_of_half_sunk_spheres);
	RUN(box_touches_faces_edges_and_corners_from_outside);
	RUN(box_from_inside_has_six_walls);
	RUN(cylinder_touches_side_caps_and_rim);
	RUN(cone_touches_wall_and_rims);
	RUN(distance_agrees_with_the_normal_everywhere);
}
