// scene: the immutable, validated description of what is simulated.
// Comes in: SandSceneDesc. Goes out: SandScene, one block of memory per array, never changed again.
#include "scene.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

void sand_shape_tetrahedron(float radius, float offsets_out[12])
{
	// Corners of a cube, alternating: edge 2 r, so that neighbouring spheres just touch.
	static const float corners[12] = {1, 1, 1, 1, -1, -1, -1, 1, -1, -1, -1, 1};
	for (int i = 0; i < 12; ++i)
	{
		offsets_out[i] = corners[i] * radius * 0.70710678118654752f;
	}
}

// Unit quaternion of a rotation matrix given by rows (Shepperd 1978: the largest component first, so no cancellation).
static void quaternion_from_matrix(const double m[3][3], double q[4])
{
	double trace = m[0][0] + m[1][1] + m[2][2];
	double squares[4] = {1 + trace, 1 + 2 * m[0][0] - trace, 1 + 2 * m[1][1] - trace, 1 + 2 * m[2][2] - trace};
	int largest = 0;
	for (int i = 1; i < 4; ++i)
	{
		largest = squares[i] > squares[largest] ? i : largest;
	}
	double s = 0.5 / sqrt(squares[largest]);
	double mixed[4][4] = {
	    {squares[0], m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]},
	    {m[2][1] - m[1][2], squares[1], m[0][1] + m[1][0], m[0][2] + m[2][0]},
	    {m[0][2] - m[2][0], m[0][1] + m[1][0], squares[2], m[1][2] + m[2][1]},
	    {m[1][0] - m[0][1], m[0][2] + m[2][0], m[1][2] + m[2][1], squares[3]},
	};
	for (int i = 0; i < 4; ++i)
	{
		q[i] = mixed[largest][i] * s;
	}
}

// Eigenvectors of a symmetric matrix by Jacobi rotations; a is left diagonal, v's columns are the axes.
static void diagonalise(double a[3][3], double v[3][3])
{
	for (int i = 0; i < 3; ++i)
	{
		for (int j = 0; j < 3; ++j)
		{
			v[i][j] = i == j ? 1.0 : 0.0;
		}
	}
	double scale = fabs(a[0][0]) + fabs(a[1][1]) + fabs(a[2][2]);
	for (int sweep = 0; sweep < 50; ++sweep)
	{
		if (fabs(a[0][1]) + fabs(a[0][2]) + fabs(a[1][2]) <= 1e-14 * scale)
		{
			return;
		}
		for (int p = 0; p < 2; ++p)
		{
			for (int q = p + 1; q < 3; ++q)
			{
				if (a[p][q] == 0.0)
				{
					continue;
				}
				double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
				double t = (theta >= 0 ? 1.0 : -1.0) / (fabs(theta) + sqrt(theta * theta + 1));
				double c = 1 / sqrt(t * t + 1);
				double s = t * c;
				for (int k = 0; k < 3; ++k)
				{
					double kp = a[k][p], kq = a[k][q];
					a[k][p] = c * kp - s * kq;
					a[k][q] = s * kp + c * kq;
				}
				for (int k = 0; k < 3; ++k)
				{
					double pk = a[p][k], qk = a[q][k];
					a[p][k] = c * pk - s * qk;
					a[q][k] = s * pk + c * qk;
					double vp = v[k][p], vq = v[k][q];
					v[k][p] = c * vp - s * vq;
					v[k][q] = s * vp + c * vq;
				}
			}
		}
	}
}

static SandStatus check_shape(const SandShapeDesc *desc, int shape_index, SandError *err)
{
	if (desc->sphere_count < 1 || desc->sphere_count > SAND_SHAPE_SPHERE_LIMIT || desc->radii == NULL)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Grain shape %d has %d spheres, expected 1 to %d with a radius each",
		                 shape_index, desc->sphere_count, SAND_SHAPE_SPHERE_LIMIT);
	}
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		if (!(desc->radii[i] > 0) || !isfinite(desc->radii[i]))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Sphere %d of grain shape %d has radius %g m, expected a positive number", i, shape_index,
			                 (double)desc->radii[i]);
		}
		if (desc->offsets != NULL && !sand_is_finite(desc->offsets + 3 * i, 3))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Sphere %d of grain shape %d has a non-finite offset", i, shape_index);
		}
	}
	return SAND_OK;
}

// Mass, centre, principal axes and moments: solid spheres, parallel-axis theorem (Bell 2005, section 2).
static void measure_shape(const SandShapeDesc *desc, double density, SandShape *shape, float *offsets, float *radii)
{
	double mass = 0, centre[3] = {0, 0, 0};
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		double r = desc->radii[i];
		double m = density * 4.0 / 3.0 * pi * r * r * r;
		mass += m;
		for (int k = 0; k < 3; ++k)
		{
			centre[k] += m * (desc->offsets != NULL ? (double)desc->offsets[3 * i + k] : 0.0);
		}
	}
	double inertia[3][3] = {{0}};
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		double r = desc->radii[i];
		double m = density * 4.0 / 3.0 * pi * r * r * r;
		double o[3], square = 0;
		for (int k = 0; k < 3; ++k)
		{
			o[k] = (desc->offsets != NULL ? (double)desc->offsets[3 * i + k] : 0.0) - centre[k] / mass;
			square += o[k] * o[k];
		}
		for (int j = 0; j < 3; ++j)
		{
			for (int k = 0; k < 3; ++k)
			{
				inertia[j][k] += m * ((j == k ? 0.4 * r * r + square : 0.0) - o[j] * o[k]);
			}
		}
	}
	double axes[3][3];
	diagonalise(inertia, axes);
	double determinant = axes[0][0] * (axes[1][1] * axes[2][2] - axes[1][2] * axes[2][1]) -
	                     axes[0][1] * (axes[1][0] * axes[2][2] - axes[1][2] * axes[2][0]) +
	                     axes[0][2] * (axes[1][0] * axes[2][1] - axes[1][1] * axes[2][0]);
	for (int k = 0; k < 3 && determinant < 0; ++k)
	{
		axes[k][2] = -axes[k][2];
	}
	quaternion_from_matrix(axes, shape->axes);
	shape->mass = mass;
	shape->sphere_count = desc->sphere_count;
	shape->bound = 0;
	for (int k = 0; k < 3; ++k)
	{
		shape->inertia[k] = inertia[k][k];
	}
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		double o[3], square = 0;
		for (int k = 0; k < 3; ++k)
		{
			o[k] = (desc->offsets != NULL ? (double)desc->offsets[3 * i + k] : 0.0) - centre[k] / mass;
			square += o[k] * o[k];
		}
		for (int k = 0; k < 3; ++k)
		{
			offsets[3 * i + k] = (float)(axes[0][k] * o[0] + axes[1][k] * o[1] + axes[2][k] * o[2]);
		}
		radii[i] = desc->radii[i];
		shape->bound = fmaxf(shape->bound, (float)sqrt(square) + radii[i]);
	}
	shape->offsets = offsets;
	shape->radii = radii;
}

// Uniformly random rotation (Shoemake 1992) from three counter-based numbers.
static void random_orientation(uint64_t seed, uint64_t index, float q[4])
{
	double a = sand_random(seed, 3 * index), b = 2 * pi * sand_random(seed, 3 * index + 1);
	double c = 2 * pi * sand_random(seed, 3 * index + 2);
	q[0] = (float)(sqrt(1 - a) * sin(b));
	q[1] = (float)(sqrt(1 - a) * cos(b));
	q[2] = (float)(sqrt(a) * sin(c));
	q[3] = (float)(sqrt(a) * cos(c));
}

static SandStatus check_numbers(const SandSceneDesc *desc, SandError *err)
{
	const struct
	{
		double value, low, high;
		const char *sentence;
	} numbers[] = {
	    {desc->density, 0, 1e6, "The density is %g kg/m3, expected more than 0 and at most 1e6 (0 = 2600, quartz)"},
	    {desc->restitution, 0, 1, "The restitution is %g, expected 0 to 1 (0 = the default 0.5)"},
	    {desc->friction, -FLT_MAX, 100, "The friction coefficient is %g, expected 0 to 100 (negative = the default 0.5)"},
	    {desc->max_overlap, 0, 0.5, "The allowed overlap is %g of a radius, expected 0 to 0.5 (0 = the default 0.25)"},
	    {desc->max_speed, 0, 1e5, "The expected speed is %g m/s, expected 0 to 1e5 (0 = from the height of fall)"},
	    {desc->gravity[0], -1e6, 1e6, "Gravity along x is %g m/s2, expected a finite number within 1e6"},
	    {desc->gravity[1], -1e6, 1e6, "Gravity along y is %g m/s2, expected a finite number within 1e6"},
	    {desc->gravity[2], -1e6, 1e6, "Gravity along z is %g m/s2, expected a finite number within 1e6"},
	};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i)
	{
		if (!(numbers[i].value >= numbers[i].low && numbers[i].value <= numbers[i].high))
		{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			return sand_fail(err, SAND_ERROR_ARGUMENT, numbers[i].sentence, numbers[i].value);
#pragma GCC diagnostic pop
		}
	}
	return SAND_OK;
}

static SandStatus check_vectors(const float *values, int64_t count, int width, const char *what, SandError *err)
{
	for (int64_t i = 0; values != NULL && i < count; ++i)
	{
		if (!sand_is_finite(values + width * i, (size_t)width))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "The %s of number %lld is not finite (%g, %g, %g)", what, (long long)i,
			                 (double)values[width * i], (double)values[width * i + 1], (double)values[width * i + 2]);
		}
	}
	return SAND_OK;
}

static SandStatus check_grains(const SandSceneDesc *desc, int64_t *sphere_count_out, SandError *err)
{
	if (desc->grain_count < 1 || desc->grain_positions == NULL)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "The scene has no grains; mark a closed mesh as Sand and choose a grain size that fits into it");
	}
	if (desc->shape_count < 1 || desc->shapes == NULL)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The scene has no grain shape, expected at least one");
	}
	for (int i = 0; i < desc->shape_count; ++i)
	{
		SandStatus status = check_shape(&desc->shapes[i], i, err);
		if (status != SAND_OK)
		{
			return status;
		}
	}
	int64_t sphere_count = 0;
	if (desc->grain_shapes == NULL)
	{
		sphere_count = desc->grain_count > SAND_SPHERE_LIMIT ? SAND_SPHERE_LIMIT + INT64_C(1)
		                                                     : desc->grain_count * desc->shapes[0].sphere_count;
	}
	for (int64_t i = 0; desc->grain_shapes != NULL && i < desc->grain_count; ++i)
	{
		int32_t shape = desc->grain_shapes[i];
		if (shape < 0 || shape >= desc->shape_count)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Grain %lld has shape %d, expected 0 to %d", (long long)i, shape,
			                 desc->shape_count - 1);
		}
		sphere_count += desc->shapes[shape].sphere_count;
	}
	if (sphere_count > SAND_SPHERE_LIMIT || desc->wall_count > SAND_SPHERE_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "The scene has %lld spheres and %lld wall spheres, expected at most %d of each; use larger grains",
		                 (long long)sphere_count, (long long)desc->wall_count, SAND_SPHERE_LIMIT);
	}
	*sphere_count_out = sphere_count;

	SandStatus status = check_vectors(desc->grain_positions, desc->grain_count, 3, "grain position", err);
	status = status != SAND_OK ? status : check_vectors(desc->grain_velocities, desc->grain_count, 3, "grain velocity", err);
	status = status != SAND_OK ? status : check_vectors(desc->grain_spins, desc->grain_count, 3, "grain spin", err);
	status =
	    status != SAND_OK ? status : check_vectors(desc->grain_orientations, desc->grain_count, 4, "grain orientation", err);
	if (status != SAND_OK)
	{
		return status;
	}
	for (int64_t i = 0; desc->grain_orientations != NULL && i < desc->grain_count; ++i)
	{
		const float *q = desc->grain_orientations + 4 * i;
		double square = (double)q[0] * q[0] + (double)q[1] * q[1] + (double)q[2] * q[2] + (double)q[3] * q[3];
		if (fabs(square - 1) > 2e-3)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "The orientation of grain %lld has length %g, expected a unit quaternion w x y z", (long long)i,
			                 sqrt(square));
		}
	}
	return SAND_OK;
}

static SandStatus check_walls(const SandSceneDesc *desc, SandError *err)
{
	if (desc->wall_count < 0 || (desc->wall_count > 0 && desc->wall_positions == NULL))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The scene claims %lld wall spheres without positions",
		                 (long long)desc->wall_count);
	}
	if (desc->wall_count > 0 && !(desc->wall_radius > 0 && isfinite(desc->wall_radius)))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The wall spheres have radius %g m, expected a positive number",
		                 (double)desc->wall_radius);
	}
	for (int i = 0; i < desc->plane_count; ++i)
	{
		const SandPlane *plane = &desc->planes[i];
		if (!sand_is_finite(plane->point, 3) || !sand_is_finite(plane->normal, 3) ||
		    !(plane->normal[0] * plane->normal[0] + plane->normal[1] * plane->normal[1] +
		          plane->normal[2] * plane->normal[2] >
		      0))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Plane %d has normal (%g, %g, %g), expected finite and not zero", i,
			                 (double)plane->normal[0], (double)plane->normal[1], (double)plane->normal[2]);
		}
	}
	return check_vectors(desc->wall_positions, desc->wall_count, 3, "wall position", err);
}

static void grow(double low[3], double high[3], const double p[3], double margin)
{
	for (int k = 0; k < 3; ++k)
	{
		low[k] = fmin(low[k], p[k] - margin);
		high[k] = fmax(high[k], p[k] + margin);
	}
}

// The domain holds everything with room to fall and splash: bounds of grains, walls and their images on the planes,
// widened by twice the largest extent on every side.
static void measure_domain(SandScene *scene)
{
	double low[3] = {DBL_MAX, DBL_MAX, DBL_MAX}, high[3] = {-DBL_MAX, -DBL_MAX, -DBL_MAX};
	double speed_square = 0;
	for (int i = 0; i < scene->grain_count; ++i)
	{
		double p[3] = {scene->grain_positions[3 * i], scene->grain_positions[3 * i + 1], scene->grain_positions[3 * i + 2]};
		grow(low, high, p, scene->shapes[scene->grain_shapes[i]].bound);
		for (int k = 0; k < scene->plane_count; ++k)
		{
			const SandPlane *plane = &scene->planes[k];
			double distance = 0;
			for (int j = 0; j < 3; ++j)
			{
				distance += (p[j] - (double)plane->point[j]) * (double)plane->normal[j];
			}
			double image[3];
			for (int j = 0; j < 3; ++j)
			{
				image[j] = p[j] - distance * (double)plane->normal[j];
			}
			grow(low, high, image, 0);
		}
		const float *v = scene->grain_velocities + 3 * i;
		speed_square = fmax(speed_square, (double)v[0] * v[0] + (double)v[1] * v[1] + (double)v[2] * v[2]);
	}
	for (int i = 0; i < scene->wall_count; ++i)
	{
		double p[3] = {scene->wall_positions[3 * i], scene->wall_positions[3 * i + 1], scene->wall_positions[3 * i + 2]};
		grow(low, high, p, scene->wall_radius);
	}
	double extent = 0, fall = 0;
	for (int k = 0; k < 3; ++k)
	{
		extent = fmax(extent, high[k] - low[k]);
		fall += fabs(scene->gravity[k]) * (high[k] - low[k]);
	}
	for (int k = 0; k < 3; ++k)
	{
		scene->domain_min[k] = low[k] - 2 * extent;
		scene->domain_max[k] = high[k] + 2 * extent;
	}
	if (scene->max_speed <= 0)
	{
		scene->max_speed = fmax(sqrt(2 * fall), sqrt(speed_square));
	}
	// A weightless scene at rest still needs a time scale: one radius in a tenth of a second.
	scene->max_speed = fmax(scene->max_speed, 10.0 * scene->radius_min);
	// Linear spring, head-on: peak overlap = v tc / pi.
	scene->contact_time = pi * scene->max_overlap * scene->radius_min / scene->max_speed;
}

static uint64_t hash_scene(const SandScene *s)
{
	size_t n = (size_t)s->grain_count;
	double numbers[] = {s->gravity[0], s->gravity[1], s->gravity[2], s->density,        s->restitution,
	                    s->friction,   s->max_speed,  s->wall_radius, s->contact_time, s->max_overlap};
	uint64_t hash = sand_hash64(numbers, sizeof(numbers), 1);
	for (int i = 0; i < s->shape_count; ++i)
	{
		size_t count = (size_t)s->shapes[i].sphere_count;
		hash = sand_hash64(s->shapes[i].offsets, 3 * count * sizeof(float), hash);
		hash = sand_hash64(s->shapes[i].radii, count * sizeof(float), hash);
	}
	hash = sand_hash64(s->grain_positions, 3 * n * sizeof(float), hash);
	hash = sand_hash64(s->grain_orientations, 4 * n * sizeof(float), hash);
	hash = sand_hash64(s->grain_velocities, 3 * n * sizeof(float), hash);
	hash = sand_hash64(s->grain_spins, 3 * n * sizeof(float), hash);
	hash = sand_hash64(s->grain_shapes, n * sizeof(int32_t), hash);
	hash = sand_hash64(s->wall_positions, 3 * (size_t)s->wall_count * sizeof(float), hash);
	return sand_hash64(s->planes, (size_t)s->plane_count * sizeof(SandPlane), hash);
}

static void *copy_array(const void *source, size_t count, size_t size)
{
	void *copy = sand_alloc(count, size);
	if (copy != NULL && source != NULL && count > 0)
	{
		memcpy(copy, source, count * size);
	}
	return copy;
}

static bool copy_shapes(const SandSceneDesc *desc, SandScene *scene)
{
	SandShape *shapes = sand_alloc((size_t)desc->shape_count, sizeof(SandShape));
	scene->shapes = shapes;
	scene->radius_min = FLT_MAX;
	for (int i = 0; shapes != NULL && i < desc->shape_count; ++i)
	{
		size_t count = (size_t)desc->shapes[i].sphere_count;
		float *block = sand_alloc(4 * count, sizeof(float));
		if (block == NULL)
		{
			return false;
		}
		measure_shape(&desc->shapes[i], scene->density, &shapes[i], block, block + 3 * count);
		scene->shape_count = i + 1;
		for (size_t k = 0; k < count; ++k)
		{
			scene->radius_min = fminf(scene->radius_min, shapes[i].radii[k]);
			scene->radius_max = fmaxf(scene->radius_max, shapes[i].radii[k]);
		}
	}
	return shapes != NULL;
}

static bool copy_arrays(const SandSceneDesc *desc, SandScene *scene)
{
	size_t n = (size_t)desc->grain_count;
	float *orientations = copy_array(desc->grain_orientations, 4 * n, sizeof(float));
	SandPlane *planes = copy_array(desc->planes, (size_t)desc->plane_count, sizeof(SandPlane));
	scene->grain_positions = copy_array(desc->grain_positions, 3 * n, sizeof(float));
	scene->grain_orientations = orientations;
	scene->grain_velocities = copy_array(desc->grain_velocities, 3 * n, sizeof(float));
	scene->grain_spins = copy_array(desc->grain_spins, 3 * n, sizeof(float));
	scene->grain_shapes = copy_array(desc->grain_shapes, n, sizeof(int32_t));
	scene->wall_positions = copy_array(desc->wall_positions, 3 * (size_t)desc->wall_count, sizeof(float));
	scene->planes = planes;
	if (orientations == NULL || planes == NULL || scene->grain_positions == NULL || scene->grain_velocities == NULL ||
	    scene->grain_spins == NULL || scene->grain_shapes == NULL || scene->wall_positions == NULL)
	{
		return false;
	}
	for (size_t i = 0; desc->grain_orientations == NULL && i < n; ++i)
	{
		random_orientation(desc->seed, i, orientations + 4 * i);
	}
	for (int i = 0; i < desc->plane_count; ++i)
	{
		float *normal = planes[i].normal;
		float length = sqrtf(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
		for (int k = 0; k < 3; ++k)
		{
			normal[k] /= length;
		}
	}
	return true;
}

SandStatus sand_scene_create(const SandSceneDesc *desc, SandScene **scene_out, SandError *err)
{
	*scene_out = NULL;
	int64_t sphere_count = 0;
	SandStatus status = check_numbers(desc, err);
	status = status != SAND_OK ? status : check_grains(desc, &sphere_count, err);
	status = status != SAND_OK ? status : check_walls(desc, err);
	if (status != SAND_OK)
	{
		return status;
	}
	SandScene *scene = sand_alloc(1, sizeof(*scene));
	if (scene == NULL)
	{
		return sand_fail_memory(err, sizeof(*scene), "the scene");
	}
	memcpy(scene->gravity, desc->gravity, sizeof(scene->gravity));
	scene->density = desc->density > 0 ? desc->density : 2600;
	scene->restitution = desc->restitution > 0 ? desc->restitution : 0.5f;
	scene->friction = desc->friction >= 0 ? desc->friction : 0.5f;
	scene->max_overlap = desc->max_overlap > 0 ? (double)desc->max_overlap : 0.25;
	scene->max_speed = desc->max_speed;
	scene->grain_count = (int)desc->grain_count;
	scene->sphere_count = sphere_count;
	scene->wall_count = (int)desc->wall_count;
	scene->wall_radius = desc->wall_count > 0 ? desc->wall_radius : 0;
	scene->plane_count = desc->plane_count;
	if (!copy_shapes(desc, scene) || !copy_arrays(desc, scene))
	{
		sand_scene_destroy(scene);
		return sand_fail_memory(err, (size_t)sphere_count * 64, "the grains of the scene");
	}
	if (scene->wall_count > 0)
	{
		scene->radius_min = fminf(scene->radius_min, scene->wall_radius);
		scene->radius_max = fmaxf(scene->radius_max, scene->wall_radius);
	}
	measure_domain(scene);
	scene->hash = hash_scene(scene);
	*scene_out = scene;
	return SAND_OK;
}

void sand_scene_destroy(SandScene *scene)
{
	if (scene == NULL)
	{
		return;
	}
	for (int i = 0; i < scene->shape_count; ++i)
	{
		sand_free((void *)scene->shapes[i].offsets);
	}
	sand_free((void *)scene->shapes);
	sand_free((void *)scene->grain_positions);
	sand_free((void *)scene->grain_orientations);
	sand_free((void *)scene->grain_velocities);
	sand_free((void *)scene->grain_spins);
	sand_free((void *)scene->grain_shapes);
	sand_free((void *)scene->wall_positions);
	sand_free((void *)scene->planes);
	sand_free(scene);
}
