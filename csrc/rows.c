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
typedef double d4 __attribute__((vector_size(32)));
typedef int64_t l4 __attribute__((vector_size(32)));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef int32_t i8 __attribute__((vector_size(32)));

#define INLINE static inline __attribute__((always_inline))
// Share of the longest edge's square: with less area than that the edges are all there is of a triangle.
#define FLAT_SHARE 1e-12
// Voxels, more than floats can lose in a brick.
#define SLACK 0.001F
#define HALF_ROW 3.5F // voxels from the middle of a brick to its outermost nodes

// The triangle seen from the brick. The first three lanes are of the edges, from corner k to the next.
typedef struct View
{
	f4 along[3];     // per axis: unit vectors along the edges
	f4 across[3];    // per axis: unit vectors inwards; the fourth is the face's normal
	f4 before, past; // of the middle of the brick, voxels: how far before the edge's start, how far past its end
	f4 inwards;      // the same: how far inwards; the fourth is the height over the face
	float flat_sign; // -0 when the triangle has no area: then no node is over it. Joins the signs of `inwards`.
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

// Wider than the machine, the compiler compares one by one.
INLINE i8 is_less(f8 a, f8 b)
{
#if !defined(__AVX__) && defined(__SSE2__)
	return (i8)OF_EIGHT(cmplt_ps, a, b);
#else
	return a < b;
#endif
}

// Whether the sign bit is set, also of a zero.
INLINE i8 is_negative(f8 v)
{
#if !defined(__AVX__) && defined(__SSE2__)
	f4 low = (f4)_mm_srai_epi32((__m128i)LOW_HALF(v), 31), high = (f4)_mm_srai_epi32((__m128i)HIGH_HALF(v), 31);
	return (i8)__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#else
	return (i8)v < 0;
#endif
}

INLINE d4 splat_d4(double v)
{
	return (d4){v, v, v, v};
}

INLINE d4 root(d4 v)
{
#if defined(__AVX__)
	return (d4)_mm256_sqrt_pd((__m256d)v);
#else
	for (int k = 0; k < 4; ++k)
	{
		v[k] = sqrt(v[k]);
	}
	return v;
#endif
}

INLINE f4 narrow(d4 v)
{
#if defined(__AVX__)
	return (f4)_mm256_cvtpd_ps((__m256d)v);
#else
	return __builtin_convertvector(v, f4);
#endif
}

INLINE void cross(const d4 a[3], const d4 b[3], d4 out[3])
{
	out[0] = a[1] * b[2] - a[2] * b[1];
	out[1] = a[2] * b[0] - a[0] * b[2];
	out[2] = a[0] * b[1] - a[1] * b[0];
}

INLINE d4 dot(const d4 a[3], const d4 b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// All corners on one line, or at one place: unit vectors along the longest edge, and some normal. Comes in and goes out
// in lanes as in view_of.
static void straighten(d4 edge[3], d4 square)
{
	int longest = square[0] >= square[1] ? 0 : 1;
	longest = square[longest] >= square[2] ? longest : 2;
	double length = sqrt(square[longest]), line[3] = {1, 0, 0};
	for (int k = 0; k < 3 && length > 0; ++k)
	{
		line[k] = edge[k][longest] / length;
	}
	// A normal in the plane of the axes that the line follows most.
	int least = fabs(line[0]) <= fabs(line[1]) ? 0 : 1;
	least = fabs(line[least]) <= fabs(line[2]) ? least : 2;
	int next = (least + 1) % 3, last = (least + 2) % 3;
	double across = sqrt(line[next] * line[next] + line[last] * line[last]), normal[3] = {0, 0, 0};
	normal[next] = -line[last] / across;
	normal[last] = line[next] / across;
	for (int i = 0; i < 3; ++i)
	{
		double sign = edge[0][i] * line[0] + edge[1][i] * line[1] + edge[2][i] * line[2] < 0 ? -1 : 1;
		for (int k = 0; k < 3; ++k)
		{
			edge[k][i] = sign * line[k];
		}
	}
	for (int k = 0; k < 3; ++k)
	{
		edge[k][3] = normal[k];
	}
}

INLINE View view_of(const double corners[3][3])
{
	// Per axis; the first three lanes are the edges, the fourth is the face: its first corner and its normal.
	d4 from[3], unit[3], normal[3], across[3];
	for (int k = 0; k < 3; ++k)
	{
		double a = corners[0][k], b = corners[1][k], c = corners[2][k];
		from[k] = (d4){a, b, c, a};
		unit[k] = (d4){b, c, a, c} - from[k];
	}
	for (int k = 0; k < 3; ++k)
	{
		int next = (k + 1) % 3, last = (k + 2) % 3;
		// From the edges before any lane of them is replaced: b - a across c - a.
		across[k] = splat_d4(unit[next][0] * unit[last][3] - unit[last][0] * unit[next][3]);
	}
	const l4 is_face = {0, 0, 0, -1};
	for (int k = 0; k < 3; ++k)
	{
		unit[k] = (d4)(((l4)unit[k] & ~is_face) | ((l4)across[k] & is_face));
	}
	d4 square = dot(unit, unit), length = root(square);
	double longest = square[0] > square[1] ? square[0] : square[1];
	longest = longest > square[2] ? longest : square[2];
	View view = {.flat_sign = 0.0F};
	if (length[3] > FLAT_SHARE * longest)
	{
		d4 inverse = 1 / length;
		for (int k = 0; k < 3; ++k)
		{
			unit[k] *= inverse;
		}
	}
	else
	{
		straighten(unit, square);
		view.flat_sign = -0.0F;
	}
	for (int k = 0; k < 3; ++k)
	{
		normal[k] = splat_d4(unit[k][3]);
	}
	cross(normal, unit, across);
	for (int k = 0; k < 3; ++k)
	{
		across[k] = (d4)(((l4)across[k] & ~is_face) | ((l4)unit[k] & is_face));
		view.along[k] = narrow(unit[k]);
		view.across[k] = narrow(across[k]);
	}
	d4 ahead = -dot(unit, from);
	view.before = narrow(-ahead);
	view.past = narrow(ahead - length);
	view.inwards = narrow(-dot(across, from));
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

// Whether a row of which the middle is seen like this may have a node in the band: not when all lie out over one edge,
// or all over or all under the face, by more than the band. reach: what the row's ends may add to it.
INLINE bool is_row_near(f4 inwards, f4 reach)
{
	i4 over = inwards<-reach, under = inwards> reach;
	i4 is_far = over | (under & (i4){0, 0, 0, -1});
#if defined(__SSE2__)
	return _mm_movemask_ps((__m128)is_far) == 0;
#else
	return (is_far[0] | is_far[1] | is_far[2] | is_far[3]) == 0;
#endif
}

static void take(SandRowsBrick *brick, const double corners[3][3], float band)
{
	const f8 x = {-3.5F, -2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F, 3.5F}, zero = {0};
	View view = view_of(corners);
	int y_first, y_end, z_first, z_end;
	range_of(corners, 1, band, &y_first, &y_end);
	range_of(corners, 2, band, &z_first, &z_end);
	f8 along[3], across[4];
	f4 reach = {0};
	for (int i = 0; i < 4; ++i)
	{
		across[i] = splat(view.across[0][i]) * x;
		reach[i] = band + SLACK + HALF_ROW * fabsf(view.across[0][i]);
	}
	for (int i = 0; i < 3; ++i)
	{
		along[i] = splat(view.along[0][i]) * x;
	}
	f8 flat_sign = splat(view.flat_sign);
	for (int z = z_first; z < z_end; ++z)
	{
		float rise_z = (float)z - HALF_ROW;
		f4 ahead_z = view.along[2] * rise_z, inwards_z = view.inwards + view.across[2] * rise_z;
		for (int y = y_first; y < y_end; ++y)
		{
			float rise_y = (float)y - HALF_ROW;
			f4 inwards = inwards_z + view.across[1] * rise_y;
			if (!is_row_near(inwards, reach))
			{
				continue;
			}
			float *squares = &brick->square[SAND_ROW_NODES * (SAND_ROW_NODES * z + y)];
			float *heights = &brick->height[SAND_ROW_NODES * (SAND_ROW_NODES * z + y)];
			f4 ahead = ahead_z + view.along[1] * rise_y, before = view.before - ahead, past = view.past + ahead;
			f8 height = splat(inwards[3]) + across[3], least = splat(INFINITY), signs = flat_sign;
			for (int i = 0; i < 3; ++i)
			{
				f8 beyond = larger(larger(splat(before[i]) - along[i], splat(past[i]) + along[i]), zero);
				f8 in = splat(inwards[i]) + across[i];
				least = smaller(beyond * beyond + in * in, least);
				signs = (f8)((i8)signs | (i8)in);
			}
			i8 is_beside = is_negative(signs);
			f8 square = height * height + (f8)(is_beside & (i8)least);
			f8 known = load_f8(squares);
			i8 is_nearer = is_less(square, known);
			store_f8(squares, smaller(square, known));
			store_f8(heights, choose(is_nearer, (f8)(~is_beside & (i8)height), load_f8(heights)));
		}
	}
}

static void finish(SandRowsBrick *brick, float band)
{
	for (int node = 0; node < SAND_BRICK_NODES; ++node)
	{
		float distance = sqrtf(brick->square[node]);
		brick->square[node] = distance < band ? distance : band;
	}
}

#define NAME_OF(set) sand_rows_##set
#define ROWS_OF(set) NAME_OF(set)
#define TEXT_OF(set) #set
#define ROWS_TEXT(set) TEXT_OF(set)

extern const SandRows ROWS_OF(SAND_KERNEL);
const SandRows ROWS_OF(SAND_KERNEL) = {ROWS_TEXT(SAND_KERNEL), take, finish};

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
