// brute: distances and winding numbers by all triangles of a mesh, in doubles, for the suites to compare with.
// Comes in: SandMesh, a place in metres. Goes out: metres; a winding number.
#ifndef SAND_TEST_BRUTE_H
#define SAND_TEST_BRUTE_H

#include "mesh.h"

#include <math.h>

static inline void test_subtract(const double a[3], const double b[3], double out[3])
{
	for (int axis = 0; axis < 3; ++axis)
	{
		out[axis] = a[axis] - b[axis];
	}
}

static inline double test_dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline void test_corners(const SandMesh *mesh, int triangle, double corners[3][3])
{
	for (int k = 0; k < 9; ++k)
	{
		corners[k / 3][k % 3] = mesh->vertices[3 * (size_t)mesh->triangles[3 * triangle + k / 3] + (size_t)(k % 3)];
	}
}

// Winding number by the solid angles of all triangles (Van Oosterom and Strackee 1983).
static inline double test_winding(const SandMesh *mesh, const double place[3])
{
	double sum = 0.0;
	for (int triangle = 0; triangle < mesh->triangle_count; ++triangle)
	{
		double corners[3][3], r[3][3], length[3];
		test_corners(mesh, triangle, corners);
		for (int side = 0; side < 3; ++side)
		{
			test_subtract(corners[side], place, r[side]);
			length[side] = sqrt(test_dot(r[side], r[side]));
		}
		double volume = r[0][0] * (r[1][1] * r[2][2] - r[1][2] * r[2][1]) +
		                r[0][1] * (r[1][2] * r[2][0] - r[1][0] * r[2][2]) +
		                r[0][2] * (r[1][0] * r[2][1] - r[1][1] * r[2][0]);
		double divisor = length[0] * length[1] * length[2] + test_dot(r[0], r[1]) * length[2] +
		                 test_dot(r[1], r[2]) * length[0] + test_dot(r[2], r[0]) * length[1];
		sum += 2.0 * atan2(volume, divisor);
	}
	return sum / (4.0 * 3.14159265358979323846);
}

// m, by least squares: |place - a - u to_b - v to_c| is least inside the triangle, or on one of its sides.
static inline double test_triangle_distance(const double place[3], double corners[3][3])
{
	double to_b[3], to_c[3], to_place[3];
	test_subtract(corners[1], corners[0], to_b);
	test_subtract(corners[2], corners[0], to_c);
	test_subtract(place, corners[0], to_place);
	double bb = test_dot(to_b, to_b), cc = test_dot(to_c, to_c), bc = test_dot(to_b, to_c);
	double pb = test_dot(to_place, to_b), pc = test_dot(to_place, to_c);
	double best = (double)INFINITY;
	double determinant = bb * cc - bc * bc;
	double along = fmin(fmax((pb - pc - bc + cc) / (bb - 2.0 * bc + cc), 0.0), 1.0);
	double candidates[4][2] = {{(pb * cc - pc * bc) / determinant, (pc * bb - pb * bc) / determinant},
	                           {fmin(fmax(pb / bb, 0.0), 1.0), 0.0},
	                           {0.0, fmin(fmax(pc / cc, 0.0), 1.0)},
	                           {along, 1.0 - along}};
	for (int i = 0; i < 4; ++i)
	{
		double u = candidates[i][0], v = candidates[i][1];
		if (u >= 0.0 && v >= 0.0 && u + v <= 1.0 + 1e-15)
		{
			double away[3];
			for (int axis = 0; axis < 3; ++axis)
			{
				away[axis] = to_place[axis] - u * to_b[axis] - v * to_c[axis];
			}
			best = fmin(best, sqrt(test_dot(away, away)));
		}
	}
	return best;
}

static inline double test_distance(const SandMesh *mesh, const double place[3])
{
	double best = (double)INFINITY;
	for (int triangle = 0; triangle < mesh->triangle_count; ++triangle)
	{
		double corners[3][3];
		test_corners(mesh, triangle, corners);
		best = fmin(best, test_triangle_distance(place, corners));
	}
	return best;
}

static inline double test_distance_at(const SandMesh *mesh, const float place[3])
{
	return test_distance(mesh, (const double[3]){place[0], place[1], place[2]});
}

static inline double test_winding_at(const SandMesh *mesh, const float place[3])
{
	return test_winding(mesh, (const double[3]){place[0], place[1], place[2]});
}

#endif
