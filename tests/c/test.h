// test: the harness of the C tests. Comes in: conditions. Goes out: printed failures and two counters.
// A suite is one file test_<room>.c with `void test_<room>(void)`, which calls RUN for each of its test functions.
// A failed check prints file, line, expression and values, is counted, and lets the test go on.
#ifndef SAND_TEST_H
#define SAND_TEST_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "mesh.h"

/// Counted by the harness in main.c. checks and failures are of all checks so far, passed and failed of test functions.
typedef struct TestCounts
{
	uint64_t check_count;
	uint64_t failure_count;
	int passed_count;
	int failed_count;
	int skipped_count;
} TestCounts;
extern TestCounts test_counts;

/// Each returns whether the check held, so that a test can stop early: if (!CHECK(points.count > 0)) { return; }
bool test_check(bool is_true, const char *expression, const char *file, int line);
bool test_check_near(double value, double expected, double tolerance, const char *expression, const char *file,
                     int line);
bool test_check_int(int64_t value, int64_t expected, const char *expression, const char *file, int line);
bool test_check_contains(const char *text, const char *part, const char *expression, const char *file, int line);
bool test_check_status(SandStatus status, SandStatus expected, const SandError *err, const char *expression,
                       const char *file, int line);
void test_run(void (*test)(void), const char *name);
void test_skip(const char *name, const char *reason);

#define CHECK(condition) test_check((condition), #condition, __FILE__, __LINE__)
/// |value - expected| <= tolerance; a NaN fails.
#define CHECK_NEAR(value, expected, tolerance)                                                                         \
	test_check_near((double)(value), (double)(expected), (double)(tolerance), #value, __FILE__, __LINE__)
/// Whole numbers up to 64 bits, printed when they differ.
#define CHECK_INT(value, expected) test_check_int((int64_t)(value), (int64_t)(expected), #value, __FILE__, __LINE__)
/// The text holds the part, for example a number or a name that a sentence must mention.
#define CHECK_CONTAINS(text, part) test_check_contains((text), (part), #text, __FILE__, __LINE__)
/// status as expected, and err (a SandError pointer or NULL) agrees: a failure carries the same status and a sentence.
#define CHECK_STATUS(status, expected, err) test_check_status((status), (expected), (err), #status, __FILE__, __LINE__)
/// Runs one `static void name_of_test(void)` and prints "ok name" or "FAILED name".
#define RUN(test_function) test_run((test_function), #test_function)
/// For what this machine cannot run: prints "SKIPPED name: reason", and is counted.
#define SKIP(name, reason) test_skip((name), (reason))

/// Meshes for the suites that need one, built by test_mesh.c. Zero is empty; each call adds a part; free at the end.
typedef struct TestShape
{
	float *vertices; // xyz
	int vertex_count;
	int32_t *triangles; // counter-clockwise seen from outside, unless the part was added inside out
	int triangle_count;
} TestShape;
void test_shape_box(TestShape *shape, const float low[3], const float high[3], bool is_inside_out);
/// The box with each face cut into n x n squares of two triangles, joined at the edges.
void test_shape_grid_box(TestShape *shape, const float low[3], const float high[3], int n);
/// Rings of latitude with segment_count corners each, between two poles on the z axis.
void test_shape_uv_sphere(TestShape *shape, float radius, int segment_count, int ring_count);
/// Corners at +-radii on the axes.
void test_shape_octahedron(TestShape *shape, const float radii[3]);
/// Icosahedron with its faces cut in four level times, corners on the sphere.
void test_shape_icosphere(TestShape *shape, float radius, int level);
/// Side wall around the z axis, without lids.
void test_shape_open_cylinder(TestShape *shape, float radius, float height, int segment_count);
/// The mesh of the shape, free with sand_mesh_destroy; never NULL: ends the run when the shape is refused.
SandMesh *test_shape_mesh(const TestShape *shape, const char *name);
void test_shape_free(TestShape *shape);

void test_base(void);
void test_pool(void);
void test_sort(void);
void test_planes(void);
void test_io(void);
void test_mesh(void);
void test_repair(void);
void test_field(void);
void test_surface(void);
void test_sampler(void);
void test_spread(void);
void test_fit(void);
void test_solid(void);
void test_clump(void);
void test_packing(void);
void test_scene(void);
void test_sim(void);
void test_contact(void);
void test_obstacle(void);
void test_coupling(void);
void test_cache(void);
void test_checkpoint(void);
void test_lock(void);
void test_writer(void);
void test_track(void);
void test_between(void);
void test_collider(void);
void test_gpu(void);
void test_light(void);
void test_gltwins(void);
void test_glpasses(void);
void test_glsim(void);
void test_glsample(void);

#endif
