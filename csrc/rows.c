// rows: how far the nodes of a brick are from a triangle, a row of eight at a time. Built once per instruction set;
// SAND_KERNEL is the name of this build.
// Comes in: a triangle beside a brick. Goes out: the least squared distance so far of each node, and its side.
//
// Each edge sees a node by how far it lies before its start or past its end, and by how far inwards of it in the face's
// plane; all see its height over that plane. These are linear in the place, so a row costs an addition for each. What
// the middle of the brick sees is found in doubles, so that floats lose nothing to a triangle much larger than a brick.
#include "rows.h"

#include <math.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

typedef float f4 __attribute__((vector_size(16)));
typedef float f8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));

#define INLINE static inline __attribute__((always_inline))
// Share of the longest edge's square: with less area than that the edges are all there is of a triangle.
#define FLAT_SHARE 1e-12
// Voxels, more than floats can lose in a brick.
#define SLACK 0.001F
#define HALF_ROW 3.5F // voxels from the middle of a brick to its outermost nodes

// The triangle seen from the brick. Three numbers each are of the edges, from corner k to the next.
typedef struct View
{
	float along[3][3];  // per axis: unit vectors along the edges
	float across[3][3]; // per axis: unit vectors inwards
	float normal[3];
	float before[3], past[3], inwards[3], height; // of the middle of the brick, voxels
	float bias; // -0 when the triangle has no area: then no node is over it. Joins the signs of `inwards`.
} View;

INLINE f8 splat(float v)
{
	return (f8){v, v, v, v, v, v, v, v};
}

INLINE f8 load_f8(const float *from)
{
	f8 v;
	memcpy(&v, from, sizeof(v));
	return v;
}

INLINE void store_f8(float *to, f8 v)
{
	memcpy(to, &v, sizeof(v));
}

INLINE f8 choose(i8 mask, f8 yes, f8 no)
{
	return (f8)((mask & (i8)yes) | (~mask & (i8)no));
}

// The compiler takes four at a time for these only when told how.
#if defined(__AVX__)
#define OF_EIGHT(name, a, b) (f8) _mm256_##name((__m256)(a), (__m256)(b))
#elif defined(__SSE2__)
#define LOW_HALF(v) (__m128) __builtin_shufflevector(v, v, 0, 1, 2, 3)
#define HIGH_HALF(v) (__m128) __builtin_shufflevector(v, v, 4, 5, 6, 7)
#define OF_EIGHT(name, a, b)                                                                                           \
	__builtin_shufflevector((f4)_mm_##name(LOW_HALF(a), LOW_HALF(b)), (f4)_mm_##name(HIGH_HALF(a), HIGH_HALF(b)), 0,   \
	                        1, 2, 3, 4, 5, 6, 7)
#endif

INLINE f8 larger(f8 a, f8 b)
{
#ifdef OF_EIGHT
	return OF_EIGHT(max_ps, a, b);
#else
	return choose(a > b, a, b);
#endif
}

INLINE f8 smaller(f8 a, f8 b)
{
#ifdef OF_EIGHT
	return OF_EIGHT(min_ps, a, b);
#else
	return choose(a < b, a, b);
#endif
}

INLINE void cross(const double a[3], const double b[3], double out[3])
{
	out[0] = a[1] * b[2] - a[2] * b[1];
	out[1] = a[2] * b[0] - a[0] * b[2];
	out[2] = a[0] * b[1] - a[1] * b[0];
}

INLINE double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// All corners on one line, or at one place: edges along the longest, and some normal.
static void straighten(double unit[3][3], double normal[3], const double edge[3][3], const double square[3])
{
	int longest = square[0] >= square[1] ? 0 : 1;
	longest = square[longest] >= square[2] ? longest : 2;
	double line[3] = {1, 0, 0}, helper[3] = {0, 0, 0};
	for (int k = 0; k < 3 && square[longest] > 0; ++k)
	{
		line[k] = edge[longest][k] / sqrt(square[longest]);
	}
	int least = fabs(line[0]) <= fabs(line[1]) ? 0 : 1;
	helper[fabs(line[least]) <= fabs(line[2]) ? least : 2] = 1;
	cross(line, helper, normal);
	double length = sqrt(dot(normal, normal));
	for (int k = 0; k < 3; ++k)
	{
		normal[k] /= length;
	}
	for (int i = 0; i < 3; ++i)
	{
		double sign = dot(edge[i], line) < 0 ? -1 : 1;
		for (int k = 0; k < 3; ++k)
		{
			unit[i][k] = sign * line[k];
		}
	}
}

INLINE View view_of(const double corners[3][3])
{
	View view;
	double edge[3][3], unit[3][3], square[3], length[3], normal[3];
	for (int i = 0; i < 3; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			edge[i][k] = corners[(i + 1) % 3][k] - corners[i][k];
		}
		square[i] = dot(edge[i], edge[i]);
		length[i] = sqrt(square[i]);
	}
	cross(edge[0], edge[1], normal);
	double longest = fmax(square[0], fmax(square[1], square[2])), area = sqrt(dot(normal, normal));
	view.bias = 0.0F;
	if (area > FLAT_SHARE * longest)
	{
		double inverse = 1 / area;
		for (int k = 0; k < 3; ++k)
		{
			normal[k] *= inverse;
		}
		for (int i = 0; i < 3; ++i)
		{
			double shrink = 1 / length[i];
			for (int k = 0; k < 3; ++k)
			{
				unit[i][k] = edge[i][k] * shrink;
			}
		}
	}
	else
	{
		straighten(unit, normal, edge, square);
		view.bias = -0.0F;
	}
	for (int i = 0; i < 3; ++i)
	{
		double inwards[3];
		cross(normal, unit[i], inwards);
		double ahead = -dot(unit[i], corners[i]);
		view.before[i] = (float)-ahead;
		view.past[i] = (float)(ahead - length[i]);
		view.inwards[i] = (float)-dot(inwards, corners[i]);
		for (int k = 0; k < 3; ++k)
		{
			view.along[k][i] = (float)unit[i][k];
			view.across[k][i] = (float)inwards[k];
		}
		view.normal[i] = (float)normal[i];
	}
	view.height = (float)-dot(normal, corners[0]);
	return view;
}

// The first and the end of the rows along an axis that the triangle comes near, of 0 .. 8.
INLINE void range_of(const double corners[3][3], int axis, float band, int *first_out, int *end_out)
{
	double a = corners[0][axis], b = corners[1][axis], c = corners[2][axis];
	double low = a < b ? a : b, high = a < b ? b : a;
	double reach = (double)(band + SLACK);
	low = (low < c ? low : c) - reach + (double)HALF_ROW;
	high = (high > c ? high : c) + reach + (double)HALF_ROW;
	// Rounded up and down by the cut towards zero of numbers that are not negative.
	*first_out = low <= 0 ? 0 : low > SAND_ROW_NODES ? SAND_ROW_NODES : SAND_ROW_NODES - (int)(SAND_ROW_NODES - low);
	*end_out = high < 0 ? 0 : high >= SAND_ROW_NODES - 1 ? SAND_ROW_NODES : (int)high + 1;
}

static void take(SandRowsBrick *brick, const double corners[3][3], float band)
{
	const f8 x = {-3.5F, -2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F, 3.5F}, zero = {0};
	View view = view_of(corners);
	int y_first, y_end, z_first, z_end;
	range_of(corners, 1, band, &y_first, &y_end);
	range_of(corners, 2, band, &z_first, &z_end);
	f8 along[3], across[3], normal = splat(view.normal[0]) * x;
	for (int i = 0; i < 3; ++i)
	{
		along[i] = splat(view.along[0][i]) * x;
		across[i] = splat(view.across[0][i]) * x;
	}
	f8 bias = splat(view.bias);
	// A row whose middle is higher than this has no node in the band.
	float highest = band + SLACK + HALF_ROW * fabsf(view.normal[0]);
	for (int z = z_first; z < z_end; ++z)
	{
		float rise_z = (float)z - HALF_ROW;
		for (int y = y_first; y < y_end; ++y)
		{
			float rise_y = (float)y - HALF_ROW;
			float middle = view.height + view.normal[1] * rise_y + view.normal[2] * rise_z;
			if (fabsf(middle) > highest)
			{
				continue;
			}
			f8 height = normal + splat(middle), least = splat(INFINITY), signs = bias;
			for (int i = 0; i < 3; ++i)
			{
				float ahead = view.along[1][i] * rise_y + view.along[2][i] * rise_z;
				float inwards = view.inwards[i] + view.across[1][i] * rise_y + view.across[2][i] * rise_z;
				f8 before = splat(view.before[i] - ahead) - along[i], past = splat(view.past[i] + ahead) + along[i];
				f8 beyond = larger(larger(before, past), zero), in = splat(inwards) + across[i];
				least = smaller(beyond * beyond + in * in, least);
				signs = (f8)((i8)signs | (i8)in);
			}
			i8 is_over = ~((i8)signs >> 31);
			f8 square = height * height + (f8)(~is_over & (i8)least);
			float *squares = &brick->square[SAND_ROW_NODES * (SAND_ROW_NODES * z + y)];
			float *heights = &brick->height[SAND_ROW_NODES * (SAND_ROW_NODES * z + y)];
			f8 before = load_f8(squares);
			i8 is_nearer = square < before;
			store_f8(squares, choose(is_nearer, square, before));
			store_f8(heights, choose(is_nearer, (f8)(is_over & (i8)height), load_f8(heights)));
		}
	}
}

#define NAME_OF(set) sand_rows_##set
#define ROWS_OF(set) NAME_OF(set)
#define TEXT_OF(set) #set
#define ROWS_TEXT(set) TEXT_OF(set)

extern const SandRows ROWS_OF(SAND_KERNEL);
const SandRows ROWS_OF(SAND_KERNEL) = {ROWS_TEXT(SAND_KERNEL), take};

// The baseline build, which runs everywhere, also chooses.
#ifdef SAND_KERNEL_CHOOSES
#ifdef SAND_HAS_AVX2
extern const SandRows sand_rows_avx2;
#endif

const SandRows *sand_rows_find(const char *name_wanted)
{
#ifdef SAND_HAS_AVX2
	if ((name_wanted == NULL || strcmp(name_wanted, "avx2") == 0) && __builtin_cpu_supports("avx2"))
	{
		return &sand_rows_avx2;
	}
#endif
	return name_wanted == NULL || strcmp(name_wanted, "baseline") == 0 ? &sand_rows_baseline : NULL;
}
#endif
