// scene: the immutable, validated description of what is simulated.
// Comes in: SandSceneDesc. Goes out: SandScene, one block of memory per array, never changed again.
#include "scene.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define GRAIN_SPHERES 8 // a grain has at most as many; a body more, and touches with several at once
#define FLAT_DRAWS 4000 // planes tried to find the flattest side of a body
#define FLAT_SLACK 0.1  // of a radius: spheres this near to a plane touch it together

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

void sand_shape_cube(float radius, float offsets_out[24])
{
	for (int i = 0; i < 8; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			offsets_out[3 * i + k] = (i >> k & 1) != 0 ? radius : -radius;
		}
	}
}

void sand_shape_rod(float radius, int sphere_count, float *offsets_out)
{
	for (int i = 0; i < sphere_count; ++i)
	{
		offsets_out[3 * i] = radius * ((float)i - 0.5f * (float)(sphere_count - 1));
		offsets_out[3 * i + 1] = offsets_out[3 * i + 2] = 0;
	}
}

SandStatus sand_scene_sizes(SandSizes kind, double low, double high, double spread, uint64_t seed, int64_t count,
                            float *scales_out, SandError *err)
{
	if (!(low > 0) || !(high >= low) || !(high < 1e6) || !(spread >= 0 && spread <= 10))
	{
		return sand_fail(
		    err, SAND_ERROR_ARGUMENT,
		    "Grain sizes run from %g to %g with spread %g, expected 0 < low <= high < 1e6 and a spread of 0 to 10", low,
		    high, spread);
	}
	for (int64_t i = 0; i < count; ++i)
	{
		double value = 0;
		uint64_t draw = 0;
		do
		{
			uint64_t index = 128 * (uint64_t)i + 2 * draw;
			double a = sand_random(seed, index), b = sand_random(seed, index + 1);
			// Box-Muller for the logarithm; values outside the cut are drawn again, at last the nearest bound.
			value = kind == SAND_SIZES_UNIFORM ? low + (high - low) * a
			                                   : exp(spread * sqrt(-2 * log(1 - a)) * cos(2 * pi * b));
		} while ((value < low || value > high) && ++draw < 64);
		scales_out[i] = (float)fmin(fmax(value, low), high);
	}
	return SAND_OK;
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

static SandStatus check_body(const double *body, int shape_index, SandError *err)
{
	bool is_good = body[0] > 0;
	for (int k = 0; k < SAND_BODY_NUMBERS; ++k)
	{
		is_good = is_good && isfinite(body[k]);
	}
	// Moments of any body: positive, and none larger than the other two together.
	const double *m = body + 4;
	double slack = 1e-9 * (m[0] + m[1] + m[2]);
	is_good = is_good && m[0] > 0 && m[1] > 0 && m[2] > 0 && m[0] <= m[1] + m[2] + slack &&
	          m[1] <= m[0] + m[2] + slack && m[2] <= m[0] + m[1] + slack;
	return is_good ? SAND_OK
	               : sand_fail(
	                     err, SAND_ERROR_ARGUMENT,
	                     "The body of grain shape %d has volume %g m^3 and moments %g, %g, %g m^5, which no solid has; "
	                     "take those of a closed mesh",
	                     shape_index, body[0], m[0], m[1], m[2]);
}

static SandStatus check_shape(const SandShapeDesc *desc, int shape_index, SandError *err)
{
	int limit = desc->body != NULL ? SAND_BODY_SPHERE_LIMIT : SAND_SHAPE_SPHERE_LIMIT;
	if (desc->sphere_count < 1 || desc->sphere_count > limit || desc->radii == NULL)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Grain shape %d has %d spheres, expected 1 to %d with a radius each",
		                 shape_index, desc->sphere_count, limit);
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
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Sphere %d of grain shape %d has a non-finite offset", i,
			                 shape_index);
		}
	}
	return desc->body != NULL ? check_body(desc->body, shape_index, err) : SAND_OK;
}

static bool has_overlap(const SandShapeDesc *desc)
{
	for (int i = 0; desc->offsets != NULL && i < desc->sphere_count; ++i)
	{
		for (int j = i + 1; j < desc->sphere_count; ++j)
		{
			double square = 0, reach = (double)desc->radii[i] + (double)desc->radii[j];
			for (int k = 0; k < 3; ++k)
			{
				double d = (double)desc->offsets[3 * i + k] - (double)desc->offsets[3 * j + k];
				square += d * d;
			}
			// Touching spheres whose offsets were rounded to float are not overlapping.
			if (square < reach * reach * (1 - 1e-5))
			{
				return true;
			}
		}
	}
	return desc->offsets == NULL && desc->sphere_count > 1;
}

typedef struct Moments
{
	double volume, first[3], second[3][3]; // integrals of 1, x, x x^T over the shape
} Moments;

static void add_moments(Moments *m, double volume, const double o[3], double own)
{
	m->volume += volume;
	for (int j = 0; j < 3; ++j)
	{
		m->first[j] += volume * o[j];
		for (int k = 0; k < 3; ++k)
		{
			m->second[j][k] += volume * (o[j] * o[k] + (j == k ? own : 0));
		}
	}
}

// Disjoint spheres add up exactly: a ball of radius r has second moment r^2 / 5 per axis and volume. The union of
// overlapping ones is integrated along z in columns: exact in z, INTEGRAL_COLUMNS midpoints across each of x and y.
#define INTEGRAL_COLUMNS 160

static void measure_union(const SandShapeDesc *desc, Moments *m)
{
	double low[2] = {DBL_MAX, DBL_MAX}, high[2] = {-DBL_MAX, -DBL_MAX};
	for (int i = 0; i < desc->sphere_count; ++i)
	{
		for (int k = 0; k < 2; ++k)
		{
			double o = desc->offsets != NULL ? (double)desc->offsets[3 * i + k] : 0.0;
			low[k] = fmin(low[k], o - (double)desc->radii[i]);
			high[k] = fmax(high[k], o + (double)desc->radii[i]);
		}
	}
	double step[2] = {(high[0] - low[0]) / INTEGRAL_COLUMNS, (high[1] - low[1]) / INTEGRAL_COLUMNS};
	for (int cell = 0; cell < INTEGRAL_COLUMNS * INTEGRAL_COLUMNS; ++cell)
	{
		double x = low[0] + step[0] * (0.5 + cell % INTEGRAL_COLUMNS);
		double y = low[1] + step[1] * (0.5 + cell / INTEGRAL_COLUMNS);
		// Union of the intervals in which the column is inside a sphere, found by walking up from the lowest open end.
		double from = -DBL_MAX;
		for (;;)
		{
			double begin = DBL_MAX, end = -DBL_MAX;
			for (int i = 0; i < desc->sphere_count; ++i)
			{
				const float *o = desc->offsets != NULL ? desc->offsets + 3 * i : NULL;
				double dx = x - (o != NULL ? (double)o[0] : 0), dy = y - (o != NULL ? (double)o[1] : 0);
				double square = (double)desc->radii[i] * (double)desc->radii[i] - dx * dx - dy * dy;
				if (square <= 0)
				{
					continue;
				}
				double half = sqrt(square), z = o != NULL ? (double)o[2] : 0;
				if (z + half > from && fmax(z - half, from) < begin)
				{
					begin = fmax(z - half, from);
					end = z + half;
				}
			}
			if (begin == DBL_MAX)
			{
				break;
			}
			double length = end - begin, middle = 0.5 * (begin + end), area = step[0] * step[1];
			double o[3] = {x, y, middle};
			add_moments(m, area * length, o, 0);
			m->second[2][2] += area * length * length * length / 12;
			m->second[0][0] += area * length * step[0] * step[0] / 12;
			m->second[1][1] += area * length * step[1] * step[1] / 12;
			from = end;
		}
	}
}

// Volume, centre, and inertia over volume about it, of the spheres themselves (parallel-axis theorem).
static double measure_spheres(const SandShapeDesc *desc, double centre[3], double inertia[3][3])
{
	Moments m = {0};
	if (has_overlap(desc))
	{
		measure_union(desc, &m);
	}
	else
	{
		for (int i = 0; i < desc->sphere_count; ++i)
		{
			double r = desc->radii[i], o[3];
			for (int k = 0; k < 3; ++k)
			{
				o[k] = desc->offsets != NULL ? (double)desc->offsets[3 * i + k] : 0.0;
			}
			add_moments(&m, 4.0 / 3.0 * pi * r * r * r, o, 0.2 * r * r);
		}
	}
	double trace = 0;
	for (int k = 0; k < 3; ++k)
	{
		centre[k] = m.first[k] / m.volume;
	}
	for (int j = 0; j < 3; ++j)
	{
		for (int k = 0; k < 3; ++k)
		{
			inertia[j][k] = -(m.second[j][k] / m.volume - centre[j] * centre[k]);
		}
		trace -= inertia[j][j];
	}
	for (int k = 0; k < 3; ++k)
	{
		inertia[k][k] += trace;
	}
	return m.volume;
}

// The same of the body that the spheres stand for.
static double read_body(const double *body, double centre[3], double inertia[3][3])
{
	static const int place[3][3] = {{4, 7, 8}, {7, 5, 9}, {8, 9, 6}};
	for (int j = 0; j < 3; ++j)
	{
		centre[j] = body[1 + j];
		for (int k = 0; k < 3; ++k)
		{
			inertia[j][k] = body[place[j][k]] / body[0];
		}
	}
	return body[0];
}

// How many spheres a floor can touch at once: the most that any outer plane through three of them holds. The threes are
// drawn at random; a face with a tenth of the spheres is missed by all draws once in e^4.
static int flat_count(const SandShape *shape)
{
	int best = 1;
	for (uint64_t draw = 0; draw < FLAT_DRAWS && shape->sphere_count > GRAIN_SPHERES; ++draw)
	{
		const float *corner[3];
		double n[3], u[3], v[3], radius = 0;
		for (uint64_t k = 0; k < 3; ++k)
		{
			int sphere = (int)(sand_random(0, 3 * draw + k) * shape->sphere_count);
			corner[k] = shape->offsets + 3 * sphere;
			radius = fmax(radius, (double)shape->radii[sphere]);
		}
		for (int k = 0; k < 3; ++k)
		{
			u[k] = (double)corner[1][k] - (double)corner[0][k];
			v[k] = (double)corner[2][k] - (double)corner[0][k];
		}
		for (int k = 0; k < 3; ++k)
		{
			n[k] = u[(k + 1) % 3] * v[(k + 2) % 3] - u[(k + 2) % 3] * v[(k + 1) % 3];
		}
		double length = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
		double side = n[0] * (double)corner[0][0] + n[1] * (double)corner[0][1] + n[2] * (double)corner[0][2];
		length = side < 0 ? -length : length;
		int count = fabs(length) > 1e-6 * radius * radius ? 0 : -1;
		for (int i = 0; i < shape->sphere_count && count >= 0; ++i)
		{
			// From the plane of the three, which goes through their centres, to the sphere's outermost point.
			const float *o = shape->offsets + 3 * i;
			double over = (n[0] * (double)o[0] + n[1] * (double)o[1] + n[2] * (double)o[2] - side) / length +
			              (double)shape->radii[i] - radius;
			count = over > FLAT_SLACK * radius ? -1 : over > -FLAT_SLACK * radius ? count + 1 : count;
		}
		best = count > best ? count : best;
	}
	return best;
}

// Volume, centre, principal axes and moments (Bell 2005, section 2).
static void measure_shape(const SandShapeDesc *desc, SandShape *shape, float *offsets, float *radii)
{
	double centre[3], inertia[3][3];
	double volume =
	    desc->body != NULL ? read_body(desc->body, centre, inertia) : measure_spheres(desc, centre, inertia);
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
	shape->volume = volume;
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
			o[k] = (desc->offsets != NULL ? (double)desc->offsets[3 * i + k] : 0.0) - centre[k];
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
	shape->share = 1.0 / flat_count(shape);
#ifdef SAND_MUTANT
	for (int k = 0; k < 3; ++k)
	{
		shape->inertia[k] *= SAND_MUTANT == 3 ? 0.5 : 1.0;
	}
#endif
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
	    {desc->max_overlap, 0, 0.5, "The allowed overlap is %g of a radius, expected 0 to 0.5 (0 = the default 0.25)"},
	    {desc->max_speed, 0, 1e5, "The expected speed is %g m/s, expected 0 to 1e5 (0 = from the height of fall)"},
	    {desc->restitution_speed, 0, 1e5, "The speed of the restitution is %g m/s, expected 0 to 1e5 (0 = 1)"},
	    {desc->gravity[0], -1e6, 1e6, "Gravity along x is %g m/s2, expected a finite number within 1e6"},
	    {desc->gravity[1], -1e6, 1e6, "Gravity along y is %g m/s2, expected a finite number within 1e6"},
	    {desc->gravity[2], -1e6, 1e6, "Gravity along z is %g m/s2, expected a finite number within 1e6"},
	    {desc->drag, 0, 1e6, "The drag is %g 1/s, expected 0 to 1e6"},
	    {desc->wind[0], -1e5, 1e5, "The wind along x is %g m/s, expected a finite number within 1e5"},
	    {desc->wind[1], -1e5, 1e5, "The wind along y is %g m/s, expected a finite number within 1e5"},
	    {desc->wind[2], -1e5, 1e5, "The wind along z is %g m/s, expected a finite number within 1e5"},
	    {desc->sleep_speed, 0, 1e5, "The sleeping speed is %g m/s, expected 0 (never) to 1e5"},
	    {desc->sleep_seconds, 0, 1e5, "The time to fall asleep is %g s, expected 0 (= 0.1) to 1e5"},
	    {desc->wake_speed, 0, 1e5, "The waking speed is %g m/s, expected 0 (= 4 sleeping speeds) to 1e5"},
	    {desc->material_count, 0, SAND_MATERIAL_LIMIT, "The scene has %g materials, expected at most 64"},
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
			return sand_fail(err, SAND_ERROR_ARGUMENT, "The %s of number %lld is not finite (%g, %g, %g)", what,
			                 (long long)i, (double)values[width * i], (double)values[width * i + 1],
			                 (double)values[width * i + 2]);
		}
	}
	return SAND_OK;
}

static SandStatus check_grains(const SandSceneDesc *desc, int64_t *sphere_count_out, SandError *err)
{
	if ((desc->grain_count < 1 && desc->emitter_count < 1) || desc->grain_count < 0 ||
	    (desc->grain_count > 0 && desc->grain_positions == NULL))
	{
		return sand_fail(
		    err, SAND_ERROR_ARGUMENT,
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
	int material_count = desc->material_count > 0 ? desc->material_count : 1;
	for (int64_t i = 0; desc->grain_materials != NULL && i < desc->grain_count; ++i)
	{
		if (desc->grain_materials[i] < 0 || desc->grain_materials[i] >= material_count)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Grain %lld has material %d, expected 0 to %d", (long long)i,
			                 desc->grain_materials[i], material_count - 1);
		}
	}
	for (int64_t i = 0; desc->grain_scales != NULL && i < desc->grain_count; ++i)
	{
		if (!(desc->grain_scales[i] > 0 && desc->grain_scales[i] < 1e6f))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Grain %lld has size %g, expected more than 0 and less than 1e6",
			                 (long long)i, (double)desc->grain_scales[i]);
		}
	}
	if (sphere_count > SAND_SPHERE_LIMIT || desc->wall_count > SAND_SPHERE_LIMIT)
	{
		return sand_fail(
		    err, SAND_ERROR_ARGUMENT,
		    "The scene has %lld spheres and %lld wall spheres, expected at most %d of each; use larger grains",
		    (long long)sphere_count, (long long)desc->wall_count, SAND_SPHERE_LIMIT);
	}
	*sphere_count_out = sphere_count;

	SandStatus status = check_vectors(desc->grain_positions, desc->grain_count, 3, "grain position", err);
	status =
	    status != SAND_OK ? status : check_vectors(desc->grain_velocities, desc->grain_count, 3, "grain velocity", err);
	status = status != SAND_OK ? status : check_vectors(desc->grain_spins, desc->grain_count, 3, "grain spin", err);
	status = status != SAND_OK
	             ? status
	             : check_vectors(desc->grain_orientations, desc->grain_count, 4, "grain orientation", err);
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
			                 "The orientation of grain %lld has length %g, expected a unit quaternion w x y z",
			                 (long long)i, sqrt(square));
		}
	}
	return SAND_OK;
}

// Grains an emitter will make. What rounding adds to a whole number is not a grain.
static int64_t emission_of(const SandEmitter *emitter)
{
	double count = ceil((emitter->end - emitter->begin) * emitter->rate * (1 - 1e-12));
	return count < SAND_SPHERE_LIMIT ? (int64_t)count : SAND_SPHERE_LIMIT + INT64_C(1);
}

static SandStatus check_emitters(const SandSceneDesc *desc, int64_t *grain_count, int64_t *sphere_count, SandError *err)
{
	int material_count = desc->material_count > 0 ? desc->material_count : 1;
	for (int i = 0; i < desc->emitter_count; ++i)
	{
		const SandEmitter *e = &desc->emitters[i];
		if (e->position_count < 1 || e->positions == NULL || e->position_count > SAND_SPHERE_LIMIT)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Emitter %d has %lld places, expected at least one", i,
			                 (long long)e->position_count);
		}
		SandStatus status = check_vectors(e->positions, e->position_count, 3, "emitter place", err);
		if (status != SAND_OK)
		{
			return status;
		}
		if (!sand_is_finite(e->velocity, 3))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Emitter %d has velocity (%g, %g, %g) m/s, expected finite numbers", i,
			                 (double)e->velocity[0], (double)e->velocity[1], (double)e->velocity[2]);
		}
		if (!(e->rate > 0 && e->rate <= 1e9))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Emitter %d has a rate of %g grains/s, expected more than 0 to 1e9", i, e->rate);
		}
		if (!(e->begin >= 0 && e->end > e->begin && e->end <= 1e9))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Emitter %d runs from %g s to %g s, expected 0 <= begin < end",
			                 i, e->begin, e->end);
		}
		if (e->shape < 0 || e->shape >= desc->shape_count || e->material < 0 || e->material >= material_count ||
		    !(e->scale >= 0 && e->scale < 1e6f))
		{
			return sand_fail(
			    err, SAND_ERROR_ARGUMENT,
			    "Emitter %d has shape %d, material %d and size %g, expected a shape below %d, a material below %d, a "
			    "size of 0 (= 1) to 1e6",
			    i, e->shape, e->material, (double)e->scale, desc->shape_count, material_count);
		}
		*grain_count += emission_of(e);
		*sphere_count += emission_of(e) * desc->shapes[e->shape].sphere_count;
		if (*sphere_count > SAND_SPHERE_LIMIT)
		{
			return sand_fail(
			    err, SAND_ERROR_ARGUMENT,
			    "Emitter %d brings the scene to %lld spheres, expected at most %d; lower the rate or the time", i,
			    (long long)*sphere_count, SAND_SPHERE_LIMIT);
		}
	}
	for (int i = 0; i < desc->outflow_count; ++i)
	{
		if (!sand_is_finite(desc->outflows[i].min, 3) || !sand_is_finite(desc->outflows[i].max, 3))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Outflow %d has a number that is not finite", i);
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
	int material_count = desc->material_count > 0 ? desc->material_count : 1;
	if (desc->wall_material < 0 || desc->wall_material >= material_count)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The walls have material %d, expected 0 to %d", desc->wall_material,
		                 material_count - 1);
	}
	for (int i = 0; i < desc->obstacle_count; ++i)
	{
		SandObstacle copy = desc->obstacles[i];
		SandStatus status = sand_obstacle_check(&copy, i, err);
		if (status != SAND_OK)
		{
			return status;
		}
		if (copy.material < 0 || copy.material >= material_count)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Obstacle %d has material %d, expected 0 to %d", i,
			                 copy.material, material_count - 1);
		}
	}
	for (int i = 0; i < desc->region_count; ++i)
	{
		const SandForceRegion *r = &desc->regions[i];
		if (!sand_is_finite(r->min, 3) || !sand_is_finite(r->max, 3) || !sand_is_finite(r->acceleration, 3))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Force region %d has a number that is not finite", i);
		}
		if (r->min[0] > r->max[0] || r->min[1] > r->max[1] || r->min[2] > r->max[2])
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Force region %d runs from (%g, %g, %g) to (%g, %g, %g), expected no axis reversed", i,
			                 (double)r->min[0], (double)r->min[1], (double)r->min[2], (double)r->max[0],
			                 (double)r->max[1], (double)r->max[2]);
		}
	}
	return check_vectors(desc->wall_positions, desc->wall_count, 3, "wall position", err);
}

static void measure_radii(SandScene *scene)
{
	scene->radius_min = scene->wall_count > 0 ? scene->wall_radius : FLT_MAX;
	scene->radius_max = scene->wall_radius;
	for (int i = 0; i < scene->grain_count; ++i)
	{
		const SandShape *shape = &scene->shapes[scene->grain_shapes[i]];
		for (int k = 0; k < shape->sphere_count; ++k)
		{
			float radius = shape->radii[k] * scene->grain_scales[i];
			scene->radius_min = fminf(scene->radius_min, radius);
			scene->radius_max = fmaxf(scene->radius_max, radius);
		}
	}
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
		double p[3] = {scene->grain_positions[3 * i], scene->grain_positions[3 * i + 1],
		               scene->grain_positions[3 * i + 2]};
		grow(low, high, p, (double)scene->shapes[scene->grain_shapes[i]].bound * (double)scene->grain_scales[i]);
		for (int k = 0; k < scene->obstacle_count; ++k)
		{
			// The nearest point of the surface is where the grain may fall to.
			SandTouch touches[SAND_TOUCH_LIMIT];
			int slots[SAND_TOUCH_LIMIT], count = sand_obstacle_touch(&scene->obstacles[k], p, 1e30, touches, slots);
			for (int t = 0; t < count; ++t)
			{
				double image[3];
				for (int j = 0; j < 3; ++j)
				{
					image[j] = p[j] - touches[t].distance * touches[t].normal[j];
				}
				grow(low, high, image, 0);
			}
		}
		const float *v = scene->grain_velocities + 3 * i;
		speed_square = fmax(speed_square, (double)v[0] * v[0] + (double)v[1] * v[1] + (double)v[2] * v[2]);
	}
	for (int i = 0; i < scene->wall_count; ++i)
	{
		double p[3] = {scene->wall_positions[3 * i], scene->wall_positions[3 * i + 1],
		               scene->wall_positions[3 * i + 2]};
		grow(low, high, p, scene->wall_radius);
	}
	for (int i = 0; i < scene->collider_count; ++i)
	{
		double ends[2][3];
		sand_collider_bounds(scene->colliders[i], ends[0], ends[1]);
		grow(low, high, ends[0], 0);
		grow(low, high, ends[1], 0);
		double speed = sand_collider_speed(scene->colliders[i], 0, DBL_MAX);
		speed_square = fmax(speed_square, speed * speed);
	}
	for (int i = 0; i < scene->body_count; ++i)
	{
		const SandTrack *track = scene->bodies[i].track;
		int grain = scene->bodies[i].grain;
		double bound = (double)scene->shapes[scene->grain_shapes[grain]].bound * (double)scene->grain_scales[grain];
		for (int k = 0; track != NULL && k < track->sample_count; ++k)
		{
			grow(low, high, track->samples + SAND_TRACK_NUMBERS * k, bound);
		}
		double speed = track != NULL ? sand_track_speed(track, 0, DBL_MAX, bound) : 0;
		speed_square = fmax(speed_square, speed * speed);
	}
	for (int i = 0; i < scene->outflow_count; ++i)
	{
		for (int corner = 0; corner < 2; ++corner)
		{
			const float *at = corner == 0 ? scene->outflows[i].min : scene->outflows[i].max;
			grow(low, high, (const double[3]){(double)at[0], (double)at[1], (double)at[2]}, 0);
		}
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
	scene->max_speed = fmax(scene->max_speed, 10.0 * (double)scene->radius_min);
}

/// The measures of an earlier scene in the place of the own ones, when they are given.
static SandStatus take_measures(const SandSceneDesc *desc, SandScene *scene, SandError *err)
{
	const double *given = desc->measures;
	if (given == NULL)
	{
		return SAND_OK;
	}
	bool is_good = given[6] > 0 && given[6] <= 1e5;
	double extent = 0;
	for (int k = 0; k < 3; ++k)
	{
		is_good = is_good && isfinite(given[k]) && isfinite(given[3 + k]) && given[k] < given[3 + k];
		extent = fmax(extent, (scene->domain_max[k] - scene->domain_min[k]) / 5); // as measure_domain widens it
	}
	if (!is_good)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "The measures hold a domain or speed that cannot be; give those of an earlier scene");
	}
	for (int k = 0; k < 3; ++k)
	{
		double low = scene->domain_min[k] + 2 * extent, high = scene->domain_max[k] - 2 * extent;
		if (low < given[k] || high > given[3 + k])
		{
			return sand_fail(
			    err, SAND_ERROR_ARGUMENT,
			    "Something moves from %g to %g m along %c, out of the space from %g to %g m that was baked "
			    "so far; bake everything anew",
			    low, high, "xyz"[k], given[k], given[3 + k]);
		}
		scene->domain_min[k] = given[k];
		scene->domain_max[k] = given[3 + k];
	}
	scene->max_speed = given[6];
	return SAND_OK;
}

// 1/kg of the lightest share that a grain of each material brings into a contact: 0 for materials of walls only.
static void find_lightest(const SandScene *scene, double inverse_mass[SAND_MATERIAL_LIMIT])
{
	for (int i = 0; i < scene->grain_count; ++i)
	{
		const SandShape *shape = &scene->shapes[scene->grain_shapes[i]];
		double scale = scene->grain_scales[i], volume = shape->volume * shape->share * scale * scale * scale;
		int32_t material = scene->grain_materials[i];
		inverse_mass[material] =
		    fmax(inverse_mass[material], 1 / (volume * (double)scene->materials[material].density));
	}
}

// The law of two materials is calibrated for a pair of the smallest spheres, on the lightest grains that each is on:
// they have the shortest impacts.
static SandStatus make_laws(const SandSceneDesc *desc, SandScene *scene, SandLaw *laws, int32_t *law_of, SandError *err)
{
	double inverse_mass[SAND_MATERIAL_LIMIT] = {0}, largest = 0;
	find_lightest(scene, inverse_mass);
	for (int i = 0; i < scene->material_count; ++i)
	{
		largest = fmax(largest, inverse_mass[i]);
	}
	scene->contact_time = DBL_MAX;
	for (int a = 0; a < scene->material_count; ++a)
	{
		for (int b = a; b < scene->material_count; ++b)
		{
			const SandMaterial *ma = &scene->materials[a], *mb = &scene->materials[b];
			// Two walls never meet, but their law must be a law.
			double inverse = inverse_mass[a] + inverse_mass[b] > 0 ? inverse_mass[a] + inverse_mass[b] : 2 * largest;
			SandLawDesc law = {.a = ma,
			                   .b = mb,
			                   .radius = 0.5 * (double)scene->radius_min,
			                   .mass = 1 / inverse,
			                   .max_overlap = scene->max_overlap,
			                   .max_speed = scene->max_speed,
			                   .restitution_speed = desc->restitution_speed > 0 ? (double)desc->restitution_speed : 1,
			                   .friction = -1,
			                   .rolling = -1,
			                   .cohesion = -1};
			for (int i = 0; i < desc->material_pair_count; ++i)
			{
				const SandMaterialPair *pair = &desc->material_pairs[i];
				if ((pair->a == a && pair->b == b) || (pair->a == b && pair->b == a))
				{
					law.restitution = pair->restitution;
					law.friction = pair->friction;
					law.rolling = pair->rolling;
					law.cohesion = pair->cohesion;
				}
			}
			SandLaw *made = &laws[scene->law_count];
			SandStatus status = sand_law_make(&law, made, err);
			if (status != SAND_OK)
			{
				return status;
			}
			law_of[a * scene->material_count + b] = law_of[b * scene->material_count + a] = scene->law_count++;
			scene->contact_time = fmin(scene->contact_time, made->contact_time);
			scene->has_history = scene->has_history || made->shear == SAND_SHEAR_HISTORY;
			scene->bridge = fmaxf(scene->bridge, made->cohesion_range);
		}
	}
	return SAND_OK;
}

static SandStatus check_material_pairs(const SandSceneDesc *desc, SandError *err)
{
	int material_count = desc->material_count > 0 ? desc->material_count : 1;
	for (int i = 0; i < desc->material_pair_count; ++i)
	{
		const SandMaterialPair *pair = &desc->material_pairs[i];
		if (pair->a < 0 || pair->a >= material_count || pair->b < 0 || pair->b >= material_count)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Material pair %d is of materials %d and %d, expected 0 to %d",
			                 i, pair->a, pair->b, material_count - 1);
		}
		if (!(pair->restitution <= 1) || !(pair->friction <= 100) || !(pair->rolling <= 100) ||
		    !(pair->cohesion <= 1e6f))
		{
			return sand_fail(
			    err, SAND_ERROR_ARGUMENT,
			    "Material pair %d has restitution %g, friction %g, rolling %g, cohesion %g, expected at most 1, 100, "
			    "100, 1e6 (negative = mean of the materials)",
			    i, (double)pair->restitution, (double)pair->friction, (double)pair->rolling, (double)pair->cohesion);
		}
	}
	return SAND_OK;
}

static SandStatus make_materials(const SandSceneDesc *desc, SandScene *scene, SandError *err)
{
	static const SandMaterial plain = {.friction = -1};
	size_t count = (size_t)scene->material_count;
	SandMaterial *materials = sand_alloc(count, sizeof(SandMaterial));
	SandLaw *laws = sand_alloc(count * (count + 1) / 2, sizeof(SandLaw));
	int32_t *law_of = sand_alloc(count * count, sizeof(int32_t));
	scene->materials = materials;
	scene->laws = laws;
	scene->law_of = law_of;
	if (materials == NULL || laws == NULL || law_of == NULL)
	{
		return sand_fail_memory(err, count * sizeof(SandMaterial), "the materials");
	}
	for (int i = 0; i < scene->material_count; ++i)
	{
		SandStatus status =
		    sand_material_check(desc->material_count > 0 ? &desc->materials[i] : &plain, i, &materials[i], err);
		if (status != SAND_OK)
		{
			return status;
		}
	}
	return make_laws(desc, scene, laws, law_of, err);
}

static uint64_t hash_scene(const SandScene *s)
{
	size_t n = (size_t)s->grain_count;
	double numbers[] = {s->gravity[0],   s->gravity[1],  s->gravity[2], s->max_speed,     s->max_overlap,
	                    s->contact_time, s->wall_radius, s->drag,       s->wind[0],       s->wind[1],
	                    s->wind[2],      s->sleep_speed, s->wake_speed, s->sleep_seconds, s->wall_material};
	uint64_t hash = sand_hash64(numbers, sizeof(numbers), 1);
	hash = sand_hash64(s->materials, (size_t)s->material_count * sizeof(SandMaterial), hash);
	for (int i = 0; i < s->law_count; ++i)
	{
		// Field by field: the struct has padding.
		const SandLaw *l = &s->laws[i];
		float law[] = {l->spring, l->damping, l->shear_damping, l->shear_spring, l->friction, l->rolling, l->cohesion};
		hash = sand_hash64(law, sizeof(law), hash);
	}
	hash = sand_hash64(s->regions, (size_t)s->region_count * sizeof(SandForceRegion), hash);
	hash = sand_hash64(s->grain_materials, n * sizeof(int32_t), hash);
	hash = sand_hash64(s->grain_scales, n * sizeof(float), hash);
	hash = sand_hash64(s->grain_births, n * sizeof(double), hash);
	hash = sand_hash64(s->outflows, (size_t)s->outflow_count * sizeof(SandOutflow), hash);
	for (int i = 0; i < s->shape_count; ++i)
	{
		size_t count = (size_t)s->shapes[i].sphere_count;
		hash = sand_hash64(s->shapes[i].offsets, 3 * count * sizeof(float), hash);
		hash = sand_hash64(s->shapes[i].radii, count * sizeof(float), hash);
		hash = sand_hash64(&s->shapes[i].volume, sizeof(double), hash);
		hash = sand_hash64(s->shapes[i].inertia, sizeof(s->shapes[i].inertia), hash);
	}
	for (int i = 0; i < s->collider_count; ++i)
	{
		hash = sand_collider_hash(s->colliders[i], hash);
	}
	for (int i = 0; i < s->body_count; ++i)
	{
		const SandBody *body = &s->bodies[i];
		int32_t is_driven = body->track != NULL;
		hash = sand_hash64(&body->grain, sizeof(body->grain), hash);
		hash = sand_hash64(&body->release, sizeof(body->release), hash);
		hash = sand_hash64(&is_driven, sizeof(is_driven), hash);
	}
	hash = sand_hash64(s->grain_positions, 3 * n * sizeof(float), hash);
	hash = sand_hash64(s->grain_orientations, 4 * n * sizeof(float), hash);
	hash = sand_hash64(s->grain_velocities, 3 * n * sizeof(float), hash);
	hash = sand_hash64(s->grain_spins, 3 * n * sizeof(float), hash);
	hash = sand_hash64(s->grain_shapes, n * sizeof(int32_t), hash);
	hash = sand_hash64(s->wall_positions, 3 * (size_t)s->wall_count * sizeof(float), hash);
	return sand_hash64(s->obstacles, (size_t)s->obstacle_count * sizeof(SandObstacle), hash);
}

uint64_t sand_scene_motion_hash(const SandScene *scene, double until)
{
	uint64_t hash = 0;
	for (int i = 0; i < scene->collider_count; ++i)
	{
		hash = sand_collider_motion_hash(scene->colliders[i], until, hash);
	}
	for (int i = 0; i < scene->body_count; ++i)
	{
		const SandTrack *track = scene->bodies[i].track;
		hash = track != NULL ? sand_track_hash(track, until, hash) : hash;
	}
	return hash;
}

void sand_scene_measures(const SandScene *scene, double measures_out[SAND_SCENE_MEASURES])
{
	memcpy(measures_out, scene->domain_min, sizeof(scene->domain_min));
	memcpy(measures_out + 3, scene->domain_max, sizeof(scene->domain_max));
	measures_out[6] = scene->max_speed;
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
	for (int i = 0; shapes != NULL && i < desc->shape_count; ++i)
	{
		size_t count = (size_t)desc->shapes[i].sphere_count;
		float *block = sand_alloc(4 * count, sizeof(float));
		if (block == NULL)
		{
			return false;
		}
		measure_shape(&desc->shapes[i], &shapes[i], block, block + 3 * count);
		scene->shape_count = i + 1;
	}
	return shapes != NULL;
}

// The first `given` elements from the description (zero without one), room for `count`.
static void *copy_given(const void *source, size_t given, size_t count, size_t size)
{
	void *copy = sand_alloc(count, size);
	if (copy != NULL && source != NULL && given > 0)
	{
		memcpy(copy, source, given * size);
	}
	return copy;
}

static bool copy_emitters(const SandSceneDesc *desc, SandScene *scene)
{
	SandEmitter *emitters = sand_alloc((size_t)desc->emitter_count, sizeof(SandEmitter));
	scene->emitters = emitters;
	for (int i = 0; emitters != NULL && i < desc->emitter_count; ++i)
	{
		emitters[i] = desc->emitters[i];
		emitters[i].scale = desc->emitters[i].scale > 0 ? desc->emitters[i].scale : 1;
		emitters[i].positions =
		    copy_array(desc->emitters[i].positions, 3 * (size_t)emitters[i].position_count, sizeof(float));
		scene->emitter_count = i + 1;
		if (emitters[i].positions == NULL)
		{
			return false;
		}
	}
	return emitters != NULL;
}

// bodies_of: per grain, 1 + the number of the body that it is.
static SandStatus check_one_body(const SandSceneDesc *desc, int i, int32_t *bodies_of, SandError *err)
{
	const SandBody *body = &desc->bodies[i];
	if (body->grain < 0 || body->grain >= desc->grain_count || isnan(body->release))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Body %d is grain %d, let go at %g s, expected a grain below %lld",
		                 i, body->grain, body->release, (long long)desc->grain_count);
	}
	if (bodies_of[body->grain] != 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Bodies %d and %d are both grain %d, expected one each",
		                 bodies_of[body->grain] - 1, i, body->grain);
	}
	bodies_of[body->grain] = 1 + i;
	return body->track != NULL ? sand_track_check(body->track, "Body", i, err) : SAND_OK;
}

static SandStatus check_bodies(const SandSceneDesc *desc, SandError *err)
{
	int material_count = desc->material_count > 0 ? desc->material_count : 1;
	for (int i = 0; i < desc->collider_count; ++i)
	{
		if (desc->colliders[i].material < 0 || desc->colliders[i].material >= material_count)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Collider %d has material %d, expected 0 to %d", i,
			                 desc->colliders[i].material, material_count - 1);
		}
	}
	int32_t *bodies_of = sand_alloc(desc->body_count > 0 ? (size_t)desc->grain_count : 0, sizeof(int32_t));
	if (bodies_of == NULL)
	{
		return sand_fail_memory(err, (size_t)desc->grain_count * sizeof(int32_t), "the bodies");
	}
	SandStatus status = SAND_OK;
	for (int i = 0; i < desc->body_count && status == SAND_OK; ++i)
	{
		status = check_one_body(desc, i, bodies_of, err);
	}
	sand_free(bodies_of);
	return status;
}

static bool copy_bodies(const SandSceneDesc *desc, SandScene *scene)
{
	SandBody *bodies = copy_array(desc->bodies, (size_t)desc->body_count, sizeof(SandBody));
	scene->bodies = bodies;
	for (int i = 0; bodies != NULL && i < desc->body_count; ++i)
	{
		const SandTrack *given = desc->bodies[i].track;
		bodies[i].track = NULL;
		scene->body_count = i + 1;
		if (given != NULL)
		{
			// The samples in the same block, behind the track.
			size_t bytes = SAND_TRACK_NUMBERS * (size_t)given->sample_count * sizeof(double);
			SandTrack *track = sand_alloc(1, sizeof(SandTrack) + bytes);
			if (track == NULL)
			{
				return false;
			}
			*track = *given;
			track->samples = (double *)(void *)(track + 1);
			memcpy((void *)(track + 1), given->samples, bytes);
			bodies[i].track = track;
		}
	}
	return bodies != NULL;
}

static SandStatus make_colliders(const SandSceneDesc *desc, SandScene *scene, SandError *err)
{
	SandCollider **colliders = sand_alloc((size_t)desc->collider_count, sizeof(SandCollider *));
	int32_t *base = sand_alloc((size_t)desc->collider_count + 1, sizeof(int32_t));
	scene->colliders = colliders;
	scene->collider_base = base;
	if (colliders == NULL || base == NULL)
	{
		return sand_fail_memory(err, (size_t)desc->collider_count * sizeof(SandCollider *), "the colliders");
	}
	int64_t triangles = 0;
	for (int i = 0; i < desc->collider_count; ++i)
	{
		SandStatus status = sand_collider_create(&desc->colliders[i], i, &colliders[i], err);
		if (status != SAND_OK)
		{
			return status;
		}
		scene->collider_count = i + 1;
		triangles += sand_collider_triangle_count(colliders[i]);
		if (triangles > SAND_SPHERE_LIMIT)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Collider %d brings the scene to %lld triangles, expected at most %d; use coarser meshes",
			                 i, (long long)triangles, SAND_SPHERE_LIMIT);
		}
		base[i + 1] = (int32_t)triangles;
	}
	return SAND_OK;
}

static bool copy_arrays(const SandSceneDesc *desc, SandScene *scene)
{
	size_t given = (size_t)desc->grain_count, n = (size_t)scene->grain_count;
	float *positions = copy_given(desc->grain_positions, 3 * given, 3 * n, sizeof(float));
	float *orientations = copy_given(desc->grain_orientations, 4 * given, 4 * n, sizeof(float));
	float *velocities = copy_given(desc->grain_velocities, 3 * given, 3 * n, sizeof(float));
	float *scales = copy_given(desc->grain_scales, given, n, sizeof(float));
	int32_t *shapes = copy_given(desc->grain_shapes, given, n, sizeof(int32_t));
	int32_t *materials = copy_given(desc->grain_materials, given, n, sizeof(int32_t));
	int32_t *emitters = sand_alloc(n, sizeof(int32_t));
	double *births = sand_alloc(n, sizeof(double));
	SandObstacle *obstacles = copy_array(desc->obstacles, (size_t)desc->obstacle_count, sizeof(SandObstacle));
	scene->grain_positions = positions;
	scene->grain_orientations = orientations;
	scene->grain_velocities = velocities;
	scene->grain_scales = scales;
	scene->grain_shapes = shapes;
	scene->grain_materials = materials;
	scene->grain_emitters = emitters;
	scene->grain_births = births;
	scene->grain_spins = copy_given(desc->grain_spins, 3 * given, 3 * n, sizeof(float));
	scene->wall_positions = copy_array(desc->wall_positions, 3 * (size_t)desc->wall_count, sizeof(float));
	scene->obstacles = obstacles;
	scene->regions = copy_array(desc->regions, (size_t)desc->region_count, sizeof(SandForceRegion));
	scene->outflows = copy_array(desc->outflows, (size_t)desc->outflow_count, sizeof(SandOutflow));
	if (positions == NULL || orientations == NULL || velocities == NULL || scales == NULL || shapes == NULL ||
	    materials == NULL || emitters == NULL || births == NULL || obstacles == NULL || scene->grain_spins == NULL ||
	    scene->wall_positions == NULL || scene->regions == NULL || scene->outflows == NULL ||
	    !copy_emitters(desc, scene) || !copy_bodies(desc, scene))
	{
		return false;
	}
	for (size_t i = 0; i < given; ++i)
	{
		emitters[i] = -1;
		scales[i] = desc->grain_scales != NULL ? scales[i] : 1;
	}
	size_t at = given;
	for (int e = 0; e < scene->emitter_count; ++e)
	{
		const SandEmitter *emitter = &scene->emitters[e];
		int64_t count = emission_of(emitter);
		for (int64_t k = 0; k < count; ++k, ++at)
		{
			memcpy(positions + 3 * at, emitter->positions + 3 * (k % emitter->position_count), 3 * sizeof(float));
			memcpy(velocities + 3 * at, emitter->velocity, sizeof(emitter->velocity));
			shapes[at] = emitter->shape;
			materials[at] = emitter->material;
			scales[at] = emitter->scale;
			emitters[at] = e;
			births[at] = emitter->begin + (double)k / emitter->rate;
		}
	}
	for (size_t i = desc->grain_orientations == NULL ? 0 : given; i < n; ++i)
	{
		random_orientation(desc->seed, i, orientations + 4 * i);
	}
	for (int i = 0; i < desc->obstacle_count; ++i)
	{
		(void)sand_obstacle_check(&obstacles[i], i, NULL); // checked before; here it makes the axis unit
	}
	return true;
}

SandStatus sand_scene_create(const SandSceneDesc *desc, SandScene **scene_out, SandError *err)
{
	*scene_out = NULL;
	int64_t sphere_count = 0;
	SandStatus status = check_numbers(desc, err);
	status = status != SAND_OK ? status : check_grains(desc, &sphere_count, err);
	int64_t grain_count = desc->grain_count;
	status = status != SAND_OK ? status : check_emitters(desc, &grain_count, &sphere_count, err);
	status = status != SAND_OK ? status : check_walls(desc, err);
	status = status != SAND_OK ? status : check_material_pairs(desc, err);
	status = status != SAND_OK ? status : check_bodies(desc, err);
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
	scene->max_overlap = desc->max_overlap > 0 ? (double)desc->max_overlap : 0.25;
	scene->material_count = desc->material_count > 0 ? desc->material_count : 1;
	scene->drag = desc->drag;
	scene->sleep_speed = desc->sleep_speed;
	scene->sleep_seconds = desc->sleep_seconds > 0 ? (double)desc->sleep_seconds : 0.1;
	scene->wake_speed = desc->wake_speed > 0 ? (double)desc->wake_speed : 4 * scene->sleep_speed;
	for (int k = 0; k < 3; ++k)
	{
		scene->wind[k] = desc->wind[k];
	}
	scene->max_speed = desc->max_speed;
	scene->grain_count = (int)grain_count;
	scene->outflow_count = desc->outflow_count;
	scene->sphere_count = sphere_count;
	scene->wall_count = (int)desc->wall_count;
	scene->wall_radius = desc->wall_count > 0 ? desc->wall_radius : 0;
	scene->wall_material = desc->wall_material;
	scene->obstacle_count = desc->obstacle_count;
	scene->region_count = desc->region_count;
	if (!copy_shapes(desc, scene) || !copy_arrays(desc, scene))
	{
		sand_scene_destroy(scene);
		return sand_fail_memory(err, (size_t)sphere_count * 64, "the grains of the scene");
	}
	status = make_colliders(desc, scene, err);
	if (status != SAND_OK)
	{
		sand_scene_destroy(scene);
		return status;
	}
	measure_radii(scene);
	measure_domain(scene);
	status = take_measures(desc, scene, err);
	status = status != SAND_OK ? status : make_materials(desc, scene, err);
	if (status != SAND_OK)
	{
		sand_scene_destroy(scene);
		return status;
	}
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
	sand_free((void *)scene->obstacles);
	sand_free((void *)scene->regions);
	for (int i = 0; i < scene->emitter_count; ++i)
	{
		sand_free((void *)scene->emitters[i].positions);
	}
	sand_free((void *)scene->emitters);
	for (int i = 0; i < scene->collider_count; ++i)
	{
		sand_collider_destroy(scene->colliders[i]);
	}
	sand_free((void *)scene->colliders);
	sand_free((void *)scene->collider_base);
	for (int i = 0; i < scene->body_count; ++i)
	{
		sand_free((void *)scene->bodies[i].track);
	}
	sand_free((void *)scene->bodies);
	sand_free((void *)scene->outflows);
	sand_free((void *)scene->grain_births);
	sand_free((void *)scene->grain_emitters);
	sand_free((void *)scene->grain_scales);
	sand_free((void *)scene->grain_materials);
	sand_free((void *)scene->materials);
	sand_free((void *)scene->laws);
	sand_free((void *)scene->law_of);
	sand_free(scene);
}
