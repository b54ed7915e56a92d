// shapes: meshes of every kind for the suites, made from formulas, in addition to those of test.h.
// Comes in: sizes in metres and a resolution. Goes out: parts added to a TestShape; free it with test_shape_free.
#ifndef SAND_TEST_SHAPES_H
#define SAND_TEST_SHAPES_H

#include "test.h"

#define TEST_PI 3.14159265358979323846

/// Room for one more element after `count` of `size` bytes: the capacity doubles whenever count is a power of two.
static inline void *test_shape_grow(void *memory, int count, size_t size)
{
	if (count > 0 && (count & (count - 1)) != 0)
	{
		return memory;
	}
	void *grown = realloc(memory, 2 * ((size_t)count + 1) * size);
	if (grown == NULL)
	{
		printf("no memory for a test shape\n");
		exit(2);
	}
	return grown;
}

/// Adds a vertex and returns its number.
static inline int test_shape_vertex(TestShape *shape, double x, double y, double z)
{
	shape->vertices = test_shape_grow(shape->vertices, shape->vertex_count, 3 * sizeof(float));
	float *vertex = &shape->vertices[3 * (size_t)shape->vertex_count];
	vertex[0] = (float)x;
	vertex[1] = (float)y;
	vertex[2] = (float)z;
	return shape->vertex_count++;
}

static inline void test_shape_triangle(TestShape *shape, int a, int b, int c)
{
	shape->triangles = test_shape_grow(shape->triangles, shape->triangle_count, 3 * sizeof(int32_t));
	int32_t *triangle = &shape->triangles[3 * (size_t)shape->triangle_count++];
	triangle[0] = a;
	triangle[1] = b;
	triangle[2] = c;
}

/// Turns the faces from first up to the last added.
static inline void test_shape_turn(TestShape *shape, int first, int end)
{
	for (int triangle = first; triangle < end; ++triangle)
	{
		int32_t *corners = &shape->triangles[3 * (size_t)triangle], swapped = corners[1];
		corners[1] = corners[2];
		corners[2] = swapped;
	}
}

static inline void test_shape_move(TestShape *shape, double x, double y, double z)
{
	const double by[3] = {x, y, z};
	for (size_t i = 0; i < 3 * (size_t)shape->vertex_count; ++i)
	{
		shape->vertices[i] = (float)((double)shape->vertices[i] + by[i % 3]);
	}
}

// Squares between rings of side_count vertices each, numbered one ring after the other from `first` on; the last ring
// joins the first.
static inline void test_shape_close_rings(TestShape *shape, int first, int ring_count, int side_count)
{
	for (int ring = 0; ring < ring_count; ++ring)
	{
		for (int side = 0; side < side_count; ++side)
		{
			int next_side = (side + 1) % side_count;
			int here = first + ring * side_count, next = first + (ring + 1) % ring_count * side_count;
			test_shape_triangle(shape, here + side, next + side, next + next_side);
			test_shape_triangle(shape, here + side, next + next_side, here + next_side);
		}
	}
}

/// Around the z axis: circle of radius `large` that the tube's middle runs on, tube of radius `small`.
static inline void test_shape_torus(TestShape *shape, double large, double small, int ring_count, int side_count)
{
	int first = shape->vertex_count;
	for (int ring = 0; ring < ring_count; ++ring)
	{
		double turn = 2 * TEST_PI * ring / ring_count;
		for (int side = 0; side < side_count; ++side)
		{
			double angle = 2 * TEST_PI * side / side_count, radius = large + small * cos(angle);
			test_shape_vertex(shape, radius * cos(turn), radius * sin(turn), small * sin(angle));
		}
	}
	test_shape_close_rings(shape, first, ring_count, side_count);
}

/// Square plate in the xy plane around the origin, each side cut into n x n squares of two triangles.
static inline void test_shape_plate(TestShape *shape, double width, double thickness, int n)
{
	const float low[3] = {(float)(-0.5 * width), (float)(-0.5 * width), (float)(-0.5 * thickness)};
	const float high[3] = {(float)(0.5 * width), (float)(0.5 * width), (float)(0.5 * thickness)};
	test_shape_grid_box(shape, low, high, n);
}

/// Tube along the trefoil knot, its middle within `size` in x and y and a third of it in z. Strands are 0.2 size apart
/// where they cross: a tube_radius of 0.1 size or more overlaps itself.
static inline void test_shape_trefoil(TestShape *shape, double size, double tube_radius, int ring_count, int side_count)
{
	int first = shape->vertex_count;
	double scale = size / 6; // the curve reaches out to 3
	for (int ring = 0; ring < ring_count; ++ring)
	{
		double t = 2 * TEST_PI * ring / ring_count;
		double middle[3] = {sin(t) + 2 * sin(2 * t), cos(t) - 2 * cos(2 * t), -sin(3 * t)};
		double along[3] = {cos(t) + 4 * cos(2 * t), -sin(t) + 4 * sin(2 * t), -3 * cos(3 * t)};
		double length = sqrt(along[0] * along[0] + along[1] * along[1] + along[2] * along[2]);
		// Outward from the z axis, made perpendicular to the curve: the curve nowhere runs that way.
		double out[3] = {middle[0], middle[1], 0}, dot = 0, square = 0;
		for (int k = 0; k < 3; ++k)
		{
			along[k] /= length;
			dot += along[k] * out[k];
		}
		for (int k = 0; k < 3; ++k)
		{
			out[k] -= dot * along[k];
			square += out[k] * out[k];
		}
		for (int k = 0; k < 3; ++k)
		{
			out[k] /= sqrt(square);
		}
		const double across[3] = {out[1] * along[2] - out[2] * along[1], out[2] * along[0] - out[0] * along[2],
		                          out[0] * along[1] - out[1] * along[0]};
		for (int side = 0; side < side_count; ++side)
		{
			double angle = 2 * TEST_PI * side / side_count, c = tube_radius * cos(angle), s = tube_radius * sin(angle);
			test_shape_vertex(shape, scale * middle[0] + c * out[0] + s * across[0],
			                  scale * middle[1] + c * out[1] + s * across[1],
			                  scale * middle[2] + c * out[2] + s * across[2]);
		}
	}
	test_shape_close_rings(shape, first, ring_count, side_count);
}

/// An icosphere of radius `core` whose every face carries a needle that ends at radius `tip`: level 0 has 20 needles,
/// each level four times as many.
static inline void test_shape_needle_star(TestShape *shape, double core, double tip, int level)
{
	int first = shape->triangle_count;
	test_shape_icosphere(shape, (float)core, level);
	int end = shape->triangle_count;
	for (int triangle = first; triangle < end; ++triangle)
	{
		const int32_t *corners = &shape->triangles[3 * (size_t)triangle];
		int a = corners[0], b = corners[1], c = corners[2];
		double middle[3], length = 0;
		for (int k = 0; k < 3; ++k)
		{
			middle[k] = (double)shape->vertices[3 * a + k] + (double)shape->vertices[3 * b + k] +
			            (double)shape->vertices[3 * c + k];
			length += middle[k] * middle[k];
		}
		double scale = tip / sqrt(length);
		int point = test_shape_vertex(shape, scale * middle[0], scale * middle[1], scale * middle[2]);
		shape->triangles[3 * (size_t)triangle + 2] = point;
		test_shape_triangle(shape, b, c, point);
		test_shape_triangle(shape, c, a, point);
	}
}

/// A UV sphere of about `radius` with bumps, two ears and a dent, unlike itself from every side: a stand-in for a
/// modelled head. Smooth, closed, star-shaped about the origin.
static inline void test_shape_bumpy(TestShape *shape, double radius, int segment_count, int ring_count)
{
	static const double ears[3][4] = {{0.9, 0.1, 0.42, 0.5}, {-0.9, 0.1, 0.42, 0.5}, {0, -1, 0, -0.35}};
	int first = shape->vertex_count;
	test_shape_uv_sphere(shape, 1.0F, segment_count, ring_count);
	for (int vertex = first; vertex < shape->vertex_count; ++vertex)
	{
		float *xyz = &shape->vertices[3 * (size_t)vertex];
		double x = (double)xyz[0], y = (double)xyz[1], z = (double)xyz[2];
		double height = 1 + 0.06 * sin(7 * x + 1) * sin(6 * y + 2) + 0.04 * sin(9 * z + 5 * x);
		for (int ear = 0; ear < 3; ++ear)
		{
			double dx = x - ears[ear][0], dy = y - ears[ear][1], dz = z - ears[ear][2];
			height += ears[ear][3] * exp(-(dx * dx + dy * dy + dz * dz) / 0.08);
		}
		xyz[0] = (float)(radius * height * x);
		xyz[1] = (float)(radius * height * y);
		xyz[2] = (float)(radius * height * z);
	}
}

/// A thin-walled bottle standing on z = 0: closed bottom, side of `radius`, shoulder, and a neck of 0.3 radius that is
/// open at z = height. segment_count open edges.
static inline void test_shape_bottle(TestShape *shape, double radius, double height, int segment_count)
{
	static const double profile[][2] = {{0.5, 0}, {1, 0},      {1, 0.2},    {1, 0.4},
	                                    {1, 0.6}, {0.7, 0.75}, {0.3, 0.85}, {0.3, 1}};
	enum
	{
		RING_COUNT = sizeof(profile) / sizeof(profile[0])
	};
	int bottom = test_shape_vertex(shape, 0, 0, 0), first = shape->vertex_count;
	for (int ring = 0; ring < RING_COUNT; ++ring)
	{
		for (int segment = 0; segment < segment_count; ++segment)
		{
			double angle = 2 * TEST_PI * segment / segment_count;
			test_shape_vertex(shape, radius * profile[ring][0] * cos(angle), radius * profile[ring][0] * sin(angle),
			                  height * profile[ring][1]);
		}
	}
	for (int segment = 0; segment < segment_count; ++segment)
	{
		int next = (segment + 1) % segment_count;
		test_shape_triangle(shape, bottom, first + next, first + segment);
		for (int ring = 0; ring + 1 < RING_COUNT; ++ring)
		{
			int below = first + ring * segment_count, above = below + segment_count;
			test_shape_triangle(shape, below + segment, below + next, above + next);
			test_shape_triangle(shape, below + segment, above + next, above + segment);
		}
	}
}

/// A strip with a half turn around the z axis: it has one side, so no orientation is consistent.
static inline void test_shape_moebius(TestShape *shape, double radius, double width, int segment_count)
{
	int first = shape->vertex_count;
	for (int segment = 0; segment < segment_count; ++segment)
	{
		double angle = 2 * TEST_PI * segment / segment_count;
		for (int side = -1; side <= 1; side += 2)
		{
			double out = radius + 0.5 * width * side * cos(0.5 * angle);
			test_shape_vertex(shape, out * cos(angle), out * sin(angle), 0.5 * width * side * sin(0.5 * angle));
		}
	}
	for (int segment = 0; segment < segment_count; ++segment)
	{
		bool is_last = segment + 1 == segment_count; // where the two sides change places
		int here = first + 2 * segment, next = is_last ? first : here + 2;
		int low = next + (is_last ? 1 : 0), high = next + (is_last ? 0 : 1);
		test_shape_triangle(shape, here, low, high);
		test_shape_triangle(shape, here, high, here + 1);
	}
}

#endif
