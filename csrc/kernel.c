// kernel: the inner loops of the CPU engine. Built once per instruction set; SAND_KERNEL is the name of this build.
// Comes in: a chunk of grains and its pairs. Goes out: moved grains, placed spheres, forces.
//
// Contacts are computed eight at a time. A first pass over a batch of pairs tests distances and collects the pairs that
// touch; three more read those, compute their forces and add them up. Who reads spheres takes whole 16-byte rows of two
// pairs, subtracts them as rows, and only then turns them into columns: half the shuffles of turning each record.
#include "kernel.h"

#include <math.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

typedef float f4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef float f8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));
typedef double d4 __attribute__((vector_size(32)));
typedef int64_t l4 __attribute__((vector_size(32)));

#define INLINE static inline __attribute__((always_inline))

INLINE f4 load_f4(const float *from)
{
	f4 v;
	memcpy(&v, from, sizeof(v));
	return v;
}

INLINE i4 load_i4(const int32_t *from)
{
	i4 v;
	memcpy(&v, from, sizeof(v));
	return v;
}

INLINE f8 load_f8(const float *from)
{
	f8 v;
	memcpy(&v, from, sizeof(v));
	return v;
}

INLINE i8 load_i8(const int32_t *from)
{
	i8 v;
	memcpy(&v, from, sizeof(v));
	return v;
}

INLINE d4 load_d4(const double *from)
{
	d4 v;
	memcpy(&v, from, sizeof(v));
	return v;
}

// Three numbers and a zero; what follows the three in memory must be readable.
INLINE d4 load_d3(const double *from)
{
	const l4 three = {-1, -1, -1, 0};
	return (d4)((l4)load_d4(from) & three);
}

INLINE void store_f4(float *to, f4 v)
{
	memcpy(to, &v, sizeof(v));
}

INLINE void store_f8(float *to, f8 v)
{
	memcpy(to, &v, sizeof(v));
}

INLINE void store_i4(int32_t *to, i4 v)
{
	memcpy(to, &v, sizeof(v));
}

INLINE void store_d4(double *to, d4 v)
{
	memcpy(to, &v, sizeof(v));
}

INLINE void store_d3(double *to, d4 v)
{
	memcpy(to, &v, 3 * sizeof(to[0]));
}

INLINE f8 splat(float v)
{
	return (f8){v, v, v, v, v, v, v, v};
}

INLINE d4 splat_d4(double v)
{
	return (d4){v, v, v, v};
}

INLINE f8 root(f8 v)
{
#if defined(__AVX__)
	return (f8)_mm256_sqrt_ps((__m256)v);
#elif defined(__SSE2__)
	f4 low = (f4)_mm_sqrt_ps((__m128)__builtin_shufflevector(v, v, 0, 1, 2, 3));
	f4 high = (f4)_mm_sqrt_ps((__m128)__builtin_shufflevector(v, v, 4, 5, 6, 7));
	return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#else
	for (int k = 0; k < 8; ++k)
	{
		v[k] = sqrtf(v[k]);
	}
	return v;
#endif
}

// Conversions between four floats, doubles and integers: the compiler's own go through memory.
INLINE d4 widen(f4 v)
{
#if defined(__AVX__)
	return (d4)_mm256_cvtps_pd((__m128)v);
#else
	return __builtin_convertvector(v, d4);
#endif
}

INLINE d4 widen_i4(i4 v)
{
#if defined(__AVX__)
	return (d4)_mm256_cvtepi32_pd((__m128i)v);
#else
	return __builtin_convertvector(v, d4);
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

// To the nearest integer, ties to even; of numbers within the range of int32_t.
INLINE i4 round_i4(d4 v)
{
#if defined(__AVX__)
	return (i4)_mm256_cvtpd_epi32((__m256d)v);
#else
	// Adding 1.5 * 2^52 rounds like that.
	d4 magic = splat_d4(6755399441055744.0);
	return __builtin_convertvector((v + magic) - magic, i4);
#endif
}

// Whether any of the first three lanes is set.
INLINE bool any_of_three(l4 mask)
{
#if defined(__AVX__)
	return (_mm256_movemask_pd((__m256d)mask) & 7) != 0;
#else
	return (mask[0] | mask[1] | mask[2]) != 0;
#endif
}

INLINE int mask_bits_l4(l4 mask)
{
#if defined(__AVX__)
	return _mm256_movemask_pd((__m256d)mask);
#else
	return (mask[0] != 0) | (mask[1] != 0) << 1 | (mask[2] != 0) << 2 | (mask[3] != 0) << 3;
#endif
}

INLINE int mask_bits(i8 mask)
{
#if defined(__AVX__)
	return _mm256_movemask_ps((__m256)mask);
#elif defined(__SSE2__)
	i4 low = __builtin_shufflevector(mask, mask, 0, 1, 2, 3), high = __builtin_shufflevector(mask, mask, 4, 5, 6, 7);
	return _mm_movemask_ps((__m128)low) | _mm_movemask_ps((__m128)high) << 4;
#else
	int bits = 0;
	for (int k = 0; k < 8; ++k)
	{
		bits |= (mask[k] != 0) << k;
	}
	return bits;
#endif
}

// Lane by lane; the instruction looks only at the sign bit of a mask that is all ones or all zeros.
INLINE f8 choose(i8 mask, f8 yes, f8 no)
{
#if defined(__AVX__)
	return (f8)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
#else
	return (f8)(((i8)yes & mask) | ((i8)no & ~mask));
#endif
}

INLINE d4 choose_d4(l4 mask, d4 yes, d4 no)
{
#if defined(__AVX__)
	return (d4)_mm256_blendv_pd((__m256d)no, (__m256d)yes, (__m256d)mask);
#else
	return (d4)(((l4)yes & mask) | ((l4)no & ~mask));
#endif
}

// a > b ? a : b, so b where one of them is not a number: as the instruction has it.
INLINE f8 largest(f8 a, f8 b)
{
#if defined(__AVX__)
	return (f8)_mm256_max_ps((__m256)a, (__m256)b);
#else
	return choose(a > b, a, b);
#endif
}

INLINE d4 largest_d4(d4 a, d4 b)
{
#if defined(__AVX__)
	return (d4)_mm256_max_pd((__m256d)a, (__m256d)b);
#else
	return choose_d4(a > b, a, b);
#endif
}

INLINE d4 smallest_d4(d4 a, d4 b)
{
#if defined(__AVX__)
	return (d4)_mm256_min_pd((__m256d)a, (__m256d)b);
#else
	return choose_d4(a < b, a, b);
#endif
}

INLINE f8 join(f4 low, f4 high)
{
	return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

// Four vectors of two rows each (rows k and k + 4) to four columns of eight, and back: its own inverse.
INLINE void transpose(f8 v[4])
{
	f8 a = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13);
	f8 b = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
	f8 c = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13);
	f8 d = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
	v[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
	v[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
	v[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
	v[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

// Eight pairs of spheres.
typedef struct Eight
{
	const SandSphere *a[8], *b[8];
} Eight;

// Two rows of four words, one after the other: as wide as the arithmetic, so that what is done with rows costs half.
INLINE f8 two_rows(const void *low, const void *high)
{
#if defined(__AVX__)
	return (f8)_mm256_loadu2_m128(high, low);
#else
	f4 rows[2];
	memcpy(&rows[0], low, sizeof(rows[0]));
	memcpy(&rows[1], high, sizeof(rows[1]));
	return join(rows[0], rows[1]);
#endif
}

// Lanes 0 to 2 of the one, lane 3 of the other, of both rows.
INLINE f8 three_and_one(f8 three, f8 one)
{
	return __builtin_shufflevector(three, one, 0, 1, 2, 11, 4, 5, 6, 15);
}

// x, y, z differences, and the sum of the radii; all in units.
INLINE void difference_columns(const Eight *pairs, f8 d[4])
{
	for (int k = 0; k < 4; ++k)
	{
		f8 a = two_rows(pairs->a[k]->x, pairs->a[k + 4]->x), b = two_rows(pairs->b[k]->x, pairs->b[k + 4]->x);
		d[k] = three_and_one((f8)((i8)a - (i8)b), a + b);
	}
	transpose(d);
	for (int k = 0; k < 3; ++k)
	{
		d[k] = __builtin_convertvector((i8)d[k], f8);
	}
}

static int find_near(const SandNear *near, const int32_t x[3], int32_t after, float limit, int32_t *numbers_out)
{
	int count = 0;
	for (int32_t i = 0; i < near->count; i += 8)
	{
		f8 square = {0};
		for (int k = 0; k < 3; ++k)
		{
			f8 d = __builtin_convertvector(load_i8(near->x[k] + i) - x[k], f8);
			square += d * d;
		}
		int bits = mask_bits((square < splat(limit)) & (load_i8(near->sphere + i) > after));
		for (; bits != 0; bits &= bits - 1)
		{
			numbers_out[count++] = i + __builtin_ctz((unsigned)bits);
		}
	}
	return count;
}

// Velocity at the sphere centres and radius a minus radius b; radius-weighted spin and 1/m_a + 1/m_b.
INLINE void motion_columns(const Eight *pairs, f8 velocity[4], f8 spin[4])
{
	for (int k = 0; k < 4; ++k)
	{
		f8 va = two_rows(pairs->a[k]->velocity, pairs->a[k + 4]->velocity),
		   vb = two_rows(pairs->b[k]->velocity, pairs->b[k + 4]->velocity);
		f8 wa = two_rows(pairs->a[k]->spin, pairs->a[k + 4]->spin),
		   wb = two_rows(pairs->b[k]->spin, pairs->b[k + 4]->spin);
		// Beside a velocity stands the radius.
		f8 ra = __builtin_shufflevector(va, va, 3, 3, 3, 3, 7, 7, 7, 7);
		f8 rb = __builtin_shufflevector(vb, vb, 3, 3, 3, 3, 7, 7, 7, 7);
		velocity[k] = va - vb;
		spin[k] = three_and_one(wa * ra + wb * rb, wa + wb);
	}
	transpose(velocity);
	transpose(spin);
}

// Eight contacts of one law. n from b to a; overlap in m, negative in the gap of a capillary bridge; velocity of a
// against b at the contact point, m/s; radius = effective radius, m; mass = effective mass, kg.
typedef struct Contact
{
	f8 mass, radius, overlap;
	f8 n[3], v[3];
	f8 stretch[4]; // m, tangential spring
	f8 force[4];   // N on a
	f8 normal;     // N, repulsion before cohesion
} Contact;

// Repulsion (Bell 2005 eq. 7), never pulling, and the spring constant of the tangential spring.
INLINE void normal_force(const SandLaw *law, Contact *c, f8 *shear_spring)
{
	f8 zero = {0};
	f8 approach = c->v[0] * c->n[0] + c->v[1] * c->n[1] + c->v[2] * c->n[2];
	if (law->normal == SAND_NORMAL_LINEAR)
	{
		c->normal = c->mass * (law->spring * c->overlap - law->damping * approach);
		*shear_spring = c->mass * law->shear_spring;
	}
	else
	{
		f8 depth = largest(c->overlap, zero), depth_root = root(depth), radius_root = root(c->radius);
		f8 spring = law->spring * radius_root, damper;
		if (law->normal == SAND_NORMAL_HERTZ)
		{
			damper = law->damping * spring * depth_root;
		}
		else if (law->normal == SAND_NORMAL_HERTZ_CONSTANT)
		{
			damper = law->damping * root(c->mass * spring * depth_root);
		}
		else
		{
			damper = law->damping * c->mass;
		}
		c->normal = spring * depth * depth_root - damper * approach;
		*shear_spring = law->shear_spring * radius_root * depth_root;
	}
	c->normal = choose(c->overlap > zero, largest(c->normal, zero), zero);
	for (int k = 0; k < 3; ++k)
	{
		c->v[k] = c->v[k] - approach * c->n[k];
	}
}

// Force on a. Shear: viscous (Bell 2005 eq. 18) or spring and dashpot, capped by Coulomb's law.
INLINE void contact_force(const SandLaw *law, float step, Contact *c)
{
	f8 zero = {0}, shear_spring;
	normal_force(law, c, &shear_spring);
	const f8 *t = c->v;
	f8 cap = law->friction * c->normal, along = c->normal;
	if (law->cohesion > 0)
	{
		// Pull of the bridge: constant while touching, fading linearly to nothing at its reach.
		f8 fade = largest(1.0f + c->overlap / (law->cohesion_range * c->radius), zero);
		along -= law->cohesion * c->radius * choose(fade > splat(1), splat(1), fade);
	}
	if (law->shear == SAND_SHEAR_VISCOUS)
	{
		// No slip takes the viscous branch, so the division is never used there.
		f8 slip = root(t[0] * t[0] + t[1] * t[1] + t[2] * t[2]);
		f8 viscous = c->mass * law->shear_damping;
		f8 scale = choose(viscous * slip > cap, cap / slip, viscous);
		for (int k = 0; k < 3; ++k)
		{
			c->force[k] = along * c->n[k] - scale * t[k];
		}
		return;
	}
	// The spring turns with the contact: projected to the new tangent plane, stretched by the slip of this step.
	f8 out = c->stretch[0] * c->n[0] + c->stretch[1] * c->n[1] + c->stretch[2] * c->n[2];
	f8 pull[3], square = zero, ahead = zero, dashpot = c->mass * law->shear_damping;
	for (int k = 0; k < 3; ++k)
	{
		c->stretch[k] = c->stretch[k] - out * c->n[k] + step * t[k];
		pull[k] = shear_spring * c->stretch[k] + dashpot * t[k];
		square += pull[k] * pull[k];
		ahead += pull[k] * t[k];
	}
	f8 size = root(square);
	i8 is_sliding = size > cap;
	f8 scale = choose(is_sliding, cap / size, splat(1));
	// A dashpot that exceeds the cap leaves nothing for the spring. Stretched against the slip instead, it would become
	// a false force as soon as the overlap, and with it a Hertz contact's spring constant, has changed.
	f8 softness = choose((shear_spring > zero) & (cap * size > dashpot * ahead), 1.0f / shear_spring, zero);
	for (int k = 0; k < 3; ++k)
	{
		// While sliding the spring keeps the stretch that carries the cap.
		f8 capped = pull[k] * scale;
		c->stretch[k] = choose(is_sliding, (capped - dashpot * t[k]) * softness, c->stretch[k]);
		c->force[k] = along * c->n[k] - capped;
	}
}

// Couple against rolling, on a (b gets the opposite): capped viscous in the tangential part of the relative spin.
INLINE void rolling_couple(const SandLaw *law, const Contact *c, const f8 spin[3], f8 couple[3])
{
	f8 about = spin[0] * c->n[0] + spin[1] * c->n[1] + spin[2] * c->n[2], roll[3], square = {0};
	for (int k = 0; k < 3; ++k)
	{
		roll[k] = spin[k] - about * c->n[k];
		square += roll[k] * roll[k];
	}
	f8 speed = root(square), cap = law->rolling * c->radius * c->normal;
	f8 viscous = law->rolling_damping * c->mass * c->radius * c->radius;
	f8 scale = choose(viscous * speed > cap, cap / speed, viscous);
	for (int k = 0; k < 3; ++k)
	{
		couple[k] = -(scale * roll[k]);
	}
}

// Contact point velocity: centres plus rotation, spin weighted by the levers against n.
INLINE void contact_velocity(const f8 velocity[4], const f8 spin[4], const f8 n[3], f8 v[3])
{
	v[0] = velocity[0] - (spin[1] * n[2] - spin[2] * n[1]);
	v[1] = velocity[1] - (spin[2] * n[0] - spin[0] * n[2]);
	v[2] = velocity[2] - (spin[0] * n[1] - spin[1] * n[0]);
}

// n x force: the torque on either centre is minus its lever times that.
INLINE void moment_of(const f8 n[3], const f8 force[3], f8 moment[3])
{
	moment[0] = n[1] * force[2] - n[2] * force[1];
	moment[1] = n[2] * force[0] - n[0] * force[2];
	moment[2] = n[0] * force[1] - n[1] * force[0];
}

// Row k of a force and of a torque, as a sum holds them.
INLINE f8 sum_row(const f8 force[4], const f8 torque[4], int k)
{
	f8 f = force[k & 3], t = torque[k & 3];
	return k < 4 ? __builtin_shufflevector(f, t, 0, 1, 2, 3, 8, 9, 10, 11)
	             : __builtin_shufflevector(f, t, 4, 5, 6, 7, 12, 13, 14, 15);
}

// Difference of the spins, rad/s; only rolling resistance needs it.
INLINE void roll_columns(const SandWork *work, const Eight *pairs, f8 spin[4])
{
	for (int k = 0; k < 4; ++k)
	{
		spin[k] =
		    two_rows(pairs->a[k]->spin, pairs->a[k + 4]->spin) - two_rows(pairs->b[k]->spin, pairs->b[k + 4]->spin);
	}
	transpose(spin);
	float per_unit = (float)(1 / work->unit);
	for (int k = 0; k < 3; ++k)
	{
		spin[k] = spin[k] * per_unit;
	}
}

INLINE f4 row_of(const f8 v[4], int k)
{
	f8 w = v[k & 3];
	return k < 4 ? __builtin_shufflevector(w, w, 0, 1, 2, 3) : __builtin_shufflevector(w, w, 4, 5, 6, 7);
}

// Geometry and motion of eight pairs; levers in fixed-point units.
INLINE void eight_pairs(const SandWork *work, const SandLaw *law, const Eight *pairs, Contact *c, f8 levers[2])
{
	f8 d[4], velocity[4], spin[4];
	float unit = (float)work->unit;
	difference_columns(pairs, d);
	motion_columns(pairs, velocity, spin);
	f8 square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
	f8 distance = root(largest(square, splat(1e-30f)));
	f8 inverse = 1.0f / distance;
	for (int k = 0; k < 3; ++k)
	{
		c->n[k] = d[k] * inverse;
	}
	f8 radius_a = 0.5f * (d[3] + velocity[3]), radius_b = 0.5f * (d[3] - velocity[3]);
	// Both forces act at one point, or their pair would turn the two grains: the levers share the distance.
	f8 share = distance / d[3];
	c->overlap = (d[3] - distance) * unit;
	c->mass = 1.0f / spin[3];
	if (law->normal != SAND_NORMAL_LINEAR || law->rolling > 0 || law->cohesion > 0)
	{
		c->radius = radius_a * radius_b / d[3] * unit;
	}
	for (int k = 0; k < 3; ++k)
	{
		spin[k] = spin[k] * share;
	}
	contact_velocity(velocity, spin, c->n, c->v);
	levers[0] = radius_a * share;
	levers[1] = radius_b * share;
}

enum
{
	BATCH = 128 // pairs per batch: hits stay in the first-level cache
};

INLINE Eight eight_of(const SandSphere *spheres, const SandPair *pairs, const int32_t numbers[8])
{
	Eight eight;
	for (int k = 0; k < 8; ++k)
	{
		SandPair pair = pairs[numbers[k]];
		eight.a[k] = &spheres[pair.a];
		eight.b[k] = &spheres[pair.b];
	}
	return eight;
}

// Eight touching pairs on their way through the passes.
typedef struct Contacts
{
	Contact c;
	f8 levers[2];                // units
	f8 roll[4];                  // rad/s, difference of the spins, where rolling is resisted
	f8 torque_a[3], torque_b[3]; // N units
} Contacts;

// The first pass: what the spheres of the eight say, and their springs.
INLINE void read_contacts(const SandWork *work, const SandLaw *law, const SandChunk *chunk, const int32_t *hits,
                          Contacts *to)
{
	Eight pairs = eight_of(work->spheres, chunk->pairs, hits);
	eight_pairs(work, law, &pairs, &to->c, to->levers);
	if (law->shear == SAND_SHEAR_HISTORY)
	{
		const SandHistory *history = chunk->history;
		for (int k = 0; k < 4; ++k)
		{
			to->c.stretch[k] = two_rows(history[hits[k]].stretch, history[hits[k + 4]].stretch);
		}
		transpose(to->c.stretch);
	}
	if (law->rolling > 0)
	{
		roll_columns(work, &pairs, to->roll);
	}
}

// The second: the forces.
INLINE void compute_contacts(const SandWork *work, const SandLaw *law, Contacts *eight)
{
	f8 moment[3], couple[3];
	Contact c = eight->c;
	contact_force(law, (float)work->last_step, &c);
	moment_of(c.n, c.force, moment);
	if (law->rolling > 0)
	{
		rolling_couple(law, &c, eight->roll, couple);
	}
	for (int k = 0; k < 3; ++k)
	{
		eight->c.force[k] = c.force[k];
		eight->torque_a[k] = -(eight->levers[0] * moment[k]);
		eight->torque_b[k] = eight->levers[1] * moment[k];
		if (law->rolling > 0)
		{
			f8 turn = couple[k] * (float)(1 / work->unit);
			eight->torque_a[k] += turn;
			eight->torque_b[k] += turn;
		}
		if (law->shear == SAND_SHEAR_HISTORY)
		{
			eight->c.stretch[k] = c.stretch[k];
		}
	}
}

// The third: adds forces to a, takes them from b, of the first `count` of the eight, in their order.
INLINE void add_contacts(const SandLaw *law, const SandChunk *chunk, bool is_outer, const int32_t *hits, int count,
                         const Contacts *eight)
{
	f8 force[4], torque_a[4], torque_b[4];
	for (int k = 0; k < 3; ++k)
	{
		force[k] = eight->c.force[k];
		torque_a[k] = eight->torque_a[k];
		torque_b[k] = eight->torque_b[k];
	}
	force[3] = torque_a[3] = torque_b[3] = splat(0);
	transpose(force);
	transpose(torque_a);
	transpose(torque_b);
	// Copies: for all that the compiler knows, a sum may lie upon the chunk.
	SandSum *sums = chunk->sums, *sums_b = is_outer ? chunk->ghost_sums : sums;
	const SandPair *pairs = chunk->pairs;
	const int32_t *slots = chunk->outer_slots;
	int32_t first_sphere = chunk->first_sphere, inner_count = chunk->inner_count;
#pragma GCC unroll 8
	for (int k = 0; k < count; ++k)
	{
		SandPair pair = pairs[hits[k]];
		SandSum *a = &sums[pair.a - first_sphere];
		SandSum *b = &sums_b[is_outer ? slots[hits[k] - inner_count] : pair.b - first_sphere];
		store_f8(a->force, load_f8(a->force) + sum_row(force, torque_a, k));
		store_f8(b->force, load_f8(b->force) - sum_row(force, torque_b, k));
	}
	if (law->shear == SAND_SHEAR_HISTORY)
	{
		f8 stretch[4];
		SandHistory *history = chunk->history;
		memcpy(stretch, eight->c.stretch, sizeof(stretch));
		transpose(stretch);
#pragma GCC unroll 8
		for (int k = 0; k < count; ++k)
		{
			store_f4(history[hits[k]].stretch, row_of(stretch, k));
		}
	}
}

// Which of four pairs are those of the set bits, in order.
static const int32_t four_bits[16][4] = {
    {0}, {0},    {1},    {0, 1},    {2},    {0, 2},    {1, 2},    {0, 1, 2},
    {3}, {0, 3}, {1, 3}, {0, 1, 3}, {2, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3},
};

// Appends the numbers first + k of the set bits k of eight. Without a branch: which of eight pairs touch is what a
// processor predicts worst. Writes up to eight, whatever the count.
INLINE int append_bits(int32_t *numbers, int count, int first, int bits)
{
	int low = bits & 15, high = bits >> 4;
	store_i4(numbers + count, load_i4(four_bits[low]) + first);
	count += __builtin_popcount((unsigned)low);
	store_i4(numbers + count, load_i4(four_bits[high]) + (first + 4));
	return count + __builtin_popcount((unsigned)high);
}

// Numbers of the pairs of [first, last) that touch, or are within reach of a bridge, after the hit_count that there
// are; how many there are then. A pair out of touch loses its tangential spring.
INLINE int find_touching(const SandWork *work, const SandLaw *law, const SandChunk *chunk, int first, int last,
                         int32_t *hits, int hit_count)
{
	// The effective radius is at most a quarter of the sum of both.
	float reach = 1.0f + (law->cohesion > 0 ? 0.25f * law->cohesion_range : 0.0f);
	const SandSphere *spheres = work->spheres;
	const int32_t eight[8] = {0, 1, 2, 3, 4, 5, 6, 7};
	for (int i = first; i < last; i += 8)
	{
		f8 d[4];
		// Reading past the section's end stays inside the padded list; the tail mask drops what was read.
		Eight pairs = eight_of(spheres, chunk->pairs + i, eight);
		difference_columns(&pairs, d);
		f8 limit = law->cohesion > 0 ? d[3] * reach : d[3];
		i8 touching = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < limit * limit;
		int real = last - i < 8 ? (1 << (last - i)) - 1 : 255, bits = mask_bits(touching) & real;
		if (law->shear == SAND_SHEAR_HISTORY)
		{
			for (int rest = ~bits & real; rest != 0; rest &= rest - 1)
			{
				store_f4(chunk->history[i + __builtin_ctz((unsigned)rest)].stretch, (f4){0});
			}
		}
		hit_count = append_bits(hits, hit_count, i, bits);
	}
	return hit_count;
}

// The contacts of a batch go through three passes, each over all of them. Eight contacts wait for their own roots and
// quotients, but not for those of the eight before: a processor computes both at once if little else lies between.
INLINE int64_t section_forces(const SandWork *work, const SandLaw *law, SandChunk *chunk, const SandSection *section)
{
	int first = section->first, last = section->first + section->count;
	int64_t contact_count = 0;
	int32_t hits[BATCH + 16]; // numbers of pairs found to touch
	Contacts eights[BATCH / 8 + 1];
	int kept = 0;
	for (int i = first; i < last; i += BATCH)
	{
		int end = last < i + BATCH ? last : i + BATCH;
		int count = find_touching(work, law, chunk, i, end, hits, kept);
		contact_count += count - kept;
		if (end == last && count > 0)
		{
			// The rest of the last eight repeat the last pair, and are not added.
			for (int k = 0; k < 8; ++k)
			{
				hits[count + k] = hits[count - 1];
			}
		}
		int eight_count = end == last ? (count + 7) / 8 : count / 8, done = 8 * (count / 8);
		for (int k = 0; k < eight_count; ++k)
		{
			read_contacts(work, law, chunk, hits + 8 * k, &eights[k]);
		}
		for (int k = 0; k < eight_count; ++k)
		{
			compute_contacts(work, law, &eights[k]);
		}
		if (section->is_outer)
		{
			for (int k = 0; k < count / 8; ++k)
			{
				add_contacts(law, chunk, true, hits + 8 * k, 8, &eights[k]);
			}
		}
		else
		{
			for (int k = 0; k < count / 8; ++k)
			{
				add_contacts(law, chunk, false, hits + 8 * k, 8, &eights[k]);
			}
		}
		kept = count - done;
		if (end == last && kept > 0)
		{
			add_contacts(law, chunk, section->is_outer != 0, hits + done, kept, &eights[count / 8]);
		}
		for (int k = 0; k < kept && done > 0; ++k)
		{
			hits[k] = hits[done + k];
		}
	}
	return contact_count;
}

// One function per law, with the law's kind as a constant, so that each loop holds only its own arithmetic.
typedef int64_t SectionForces(const SandWork *work, const SandLaw *law, SandChunk *chunk, const SandSection *section);

#define SECTION(name, normal_kind, shear_kind, is_plain)                                                               \
	static int64_t name(const SandWork *work, const SandLaw *given, SandChunk *chunk, const SandSection *section)      \
	{                                                                                                                  \
		SandLaw law = *given;                                                                                          \
		law.normal = normal_kind;                                                                                      \
		law.shear = shear_kind;                                                                                        \
		law.rolling = is_plain ? 0 : law.rolling;                                                                      \
		law.cohesion = is_plain ? 0 : law.cohesion;                                                                    \
		return section_forces(work, &law, chunk, section);                                                             \
	}

SECTION(hertz_viscous, SAND_NORMAL_HERTZ, SAND_SHEAR_VISCOUS, true)
SECTION(hertz_history, SAND_NORMAL_HERTZ, SAND_SHEAR_HISTORY, true)
SECTION(hertz_viscous_sticky, SAND_NORMAL_HERTZ, SAND_SHEAR_VISCOUS, false)
SECTION(hertz_history_sticky, SAND_NORMAL_HERTZ, SAND_SHEAR_HISTORY, false)
SECTION(constant_viscous, SAND_NORMAL_HERTZ_CONSTANT, SAND_SHEAR_VISCOUS, false)
SECTION(constant_history, SAND_NORMAL_HERTZ_CONSTANT, SAND_SHEAR_HISTORY, false)
SECTION(damper_viscous, SAND_NORMAL_HERTZ_DAMPER, SAND_SHEAR_VISCOUS, false)
SECTION(damper_history, SAND_NORMAL_HERTZ_DAMPER, SAND_SHEAR_HISTORY, false)
SECTION(linear_viscous, SAND_NORMAL_LINEAR, SAND_SHEAR_VISCOUS, true)
SECTION(linear_history, SAND_NORMAL_LINEAR, SAND_SHEAR_HISTORY, true)
SECTION(linear_viscous_sticky, SAND_NORMAL_LINEAR, SAND_SHEAR_VISCOUS, false)
SECTION(linear_history_sticky, SAND_NORMAL_LINEAR, SAND_SHEAR_HISTORY, false)

static SectionForces *section_function(const SandLaw *law)
{
	static SectionForces *const functions[SAND_NORMAL_COUNT][SAND_SHEAR_COUNT][2] = {
	    [SAND_NORMAL_HERTZ] = {{hertz_viscous, hertz_viscous_sticky}, {hertz_history, hertz_history_sticky}},
	    [SAND_NORMAL_HERTZ_CONSTANT] = {{constant_viscous, constant_viscous}, {constant_history, constant_history}},
	    [SAND_NORMAL_HERTZ_DAMPER] = {{damper_viscous, damper_viscous}, {damper_history, damper_history}},
	    [SAND_NORMAL_LINEAR] = {{linear_viscous, linear_viscous_sticky}, {linear_history, linear_history_sticky}},
	};
	return functions[law->normal][law->shear][law->rolling > 0 || law->cohesion > 0];
}

// Up to eight contacts with closed-form surfaces and meshes, of one law.
typedef struct Touching
{
	const SandLaw *law;
	int count;
	int32_t sphere[8];
	float *spring[8];                     // where the stretch is kept
	int32_t collider[8];                  // -1 = a closed-form surface
	double arm[8][3];                     // m, from the collider's origin to the contact
	float normal[3][8], overlap[8];       // m
	float lever[8];                       // units
	float velocity[3][8], weighted[3][8]; // of the centre against the surface, and by spin: m/s
	float mass[8], radius[8];             // kg, m
	float stretch[3][8];                  // m
} Touching;

// The obstacle pair's touch at its own slot. A smooth plane, by far the most common, is found here and now.
INLINE bool find_touch(const SandObstacle *obstacle, int slot, const double p[3], double reach, SandTouch *touch)
{
	if (obstacle->kind == SAND_OBSTACLE_PLANE && obstacle->roughness == 0)
	{
		touch->distance = sand_plane_height(obstacle, p);
		memcpy(touch->normal, obstacle->unit_axis, sizeof(touch->normal));
		return touch->distance < reach;
	}
	SandTouch touches[SAND_TOUCH_LIMIT];
	int slots[SAND_TOUCH_LIMIT], found = -1, count = sand_obstacle_touch(obstacle, p, reach, touches, slots);
	for (int k = 0; k < count; ++k)
	{
		found = slots[k] == slot ? k : found;
	}
	if (found >= 0)
	{
		*touch = touches[found];
	}
	return found >= 0;
}

INLINE void sphere_place(const SandWork *work, const SandSphere *s, double p[3])
{
	for (int k = 0; k < 3; ++k)
	{
		p[k] = (double)s->x[k] * work->unit + work->origin[k];
	}
}

INLINE double bridge_of(const SandLaw *law, double radius)
{
	return law->cohesion > 0 ? (double)law->cohesion_range * radius : 0;
}

// Adds a contact of a sphere with a surface to the eight; returns its lane.
INLINE int add_touch(const SandWork *work, int32_t sphere, const SandTouch *touch, float *spring, Touching *t)
{
	const SandSphere *s = &work->spheres[sphere];
	double radius = (double)s->radius * work->unit;
	int lane = t->count++;
	t->sphere[lane] = sphere;
	t->spring[lane] = spring;
	t->collider[lane] = -1;
	t->lever[lane] = (float)(touch->distance / work->unit);
	t->mass[lane] = 1.0f / s->inverse_mass;
	t->radius[lane] = (float)radius;
	t->overlap[lane] = (float)(radius - touch->distance);
	for (int k = 0; k < 3; ++k)
	{
		t->normal[k][lane] = (float)touch->normal[k];
		t->velocity[k][lane] = s->velocity[k];
		t->weighted[k][lane] = s->spin[k] * t->lever[lane];
		t->stretch[k][lane] = t->law->shear == SAND_SHEAR_HISTORY ? spring[k] : 0.0f;
	}
	return lane;
}

// Adds obstacle pair i to the eight; false when the two do not touch.
INLINE bool take_touch(const SandWork *work, const SandChunk *chunk, int i, Touching *t)
{
	SandPair pair = chunk->obstacle_pairs[i];
	const SandSphere *s = &work->spheres[pair.a];
	double p[3], radius = (double)s->radius * work->unit;
	sphere_place(work, s, p);
	SandTouch touch = {0};
	if (!find_touch(&work->obstacles[pair.b / SAND_SLOT_COUNT], pair.b % SAND_SLOT_COUNT, p,
	                radius + bridge_of(t->law, radius), &touch))
	{
		return false;
	}
	(void)add_touch(work, pair.a, &touch, chunk->obstacle_history != NULL ? chunk->obstacle_history[i].stretch : NULL,
	                t);
	return true;
}

// Where the group's sphere touches its mesh.
static int group_hits(const SandWork *work, const SandChunk *chunk, const SandGroup *group,
                      SandHit hits[SAND_HIT_LIMIT])
{
	const SandSphere *s = &work->spheres[group->sphere];
	double p[3], radius = (double)s->radius * work->unit;
	sphere_place(work, s, p);
	return sand_collider_touch(work->colliders[group->collider], work->collider_states[group->collider], p,
	                           radius + bridge_of(&work->laws[group->law], radius),
	                           chunk->near_triangles + group->first, chunk->near_sides + group->first, group->count,
	                           hits);
}

INLINE void take_hit(const SandWork *work, const SandChunk *chunk, const SandGroup *group, const SandHit *hit,
                     Touching *t)
{
	SandTouch touch = {.distance = hit->distance};
	memcpy(touch.normal, hit->normal, sizeof(touch.normal));
	int lane = add_touch(work, group->sphere, &touch, chunk->near_history[group->first + hit->slot].stretch, t);
	double p[3], origin[3];
	sphere_place(work, &work->spheres[group->sphere], p);
	sand_collider_origin(work->colliders[group->collider], work->collider_states[group->collider], origin);
	t->collider[lane] = group->collider;
	for (int k = 0; k < 3; ++k)
	{
		t->velocity[k][lane] -= (float)hit->velocity[k];
		t->arm[lane][k] = p[k] - hit->distance * hit->normal[k] - origin[k];
	}
}

// A contact that slides from one triangle to the next takes its spring along; springs without a contact are gone.
static void pass_springs(SandHistory *history, int count, const SandHit *hits, int hit_count)
{
	for (int i = 0; i < count; ++i)
	{
		bool is_hit = false;
		int heir = -1;
		for (int k = 0; k < hit_count; ++k)
		{
			const float *own = history[hits[k].slot].stretch;
			is_hit = is_hit || hits[k].slot == i;
			heir = heir < 0 && own[0] == 0 && own[1] == 0 && own[2] == 0 ? hits[k].slot : heir;
		}
		if (!is_hit)
		{
			const float *left = history[i].stretch;
			if (heir >= 0 && (left[0] != 0 || left[1] != 0 || left[2] != 0))
			{
				history[heir] = history[i];
			}
			memset(&history[i], 0, sizeof(SandHistory));
		}
	}
}

// Geometry and motion of the eight; lanes beyond count hold whatever they held, and are not used.
INLINE Contact contact_of(const Touching *t)
{
	Contact c = {.mass = load_f8(t->mass), .radius = load_f8(t->radius), .overlap = load_f8(t->overlap)};
	f8 velocity[4], weighted[4];
	for (int k = 0; k < 3; ++k)
	{
		c.n[k] = load_f8(t->normal[k]);
		velocity[k] = load_f8(t->velocity[k]);
		weighted[k] = load_f8(t->weighted[k]);
		c.stretch[k] = load_f8(t->stretch[k]);
	}
	contact_velocity(velocity, weighted, c.n, c.v);
	return c;
}

static void add_touching(const SandWork *work, SandChunk *chunk, Touching *t)
{
	Contact c = contact_of(t);
	const SandLaw *law = t->law;
	f8 spin[3] = {{0}}, moment[3], couple[3] = {{0}};
	contact_force(law, (float)work->last_step, &c);
	moment_of(c.n, c.force, moment);
	if (law->rolling > 0)
	{
		for (int lane = 0; lane < t->count; ++lane)
		{
			for (int k = 0; k < 3; ++k)
			{
				const SandSphere *s = &work->spheres[t->sphere[lane]];
				spin[k][lane] = (float)((double)s->spin[k] / work->unit);
			}
		}
		rolling_couple(law, &c, spin, couple);
	}
	for (int lane = 0; lane < t->count; ++lane)
	{
		SandSum *sum = &chunk->sums[t->sphere[lane] - chunk->first_sphere];
		for (int k = 0; k < 3; ++k)
		{
			sum->force[k] += c.force[k][lane];
			sum->torque[k] += couple[k][lane] * (float)(1 / work->unit) - t->lever[lane] * moment[k][lane];
			if (law->shear == SAND_SHEAR_HISTORY)
			{
				t->spring[lane][k] = c.stretch[k][lane];
			}
		}
		if (t->collider[lane] >= 0)
		{
			double *load = chunk->collider_sums + 6 * (size_t)t->collider[lane];
			const double *arm = t->arm[lane];
			double f[3] = {-(double)c.force[0][lane], -(double)c.force[1][lane], -(double)c.force[2][lane]};
			for (int k = 0; k < 3; ++k)
			{
				int u = (k + 1) % 3, v = (k + 2) % 3;
				load[k] += f[k];
				load[3 + k] += arm[u] * f[v] - arm[v] * f[u] - (double)couple[k][lane];
			}
		}
	}
	chunk->contact_count += t->count;
	t->count = 0;
}

// Contacts with closed-form surfaces and meshes: found one at a time, their forces eight at a time.
static void obstacle_forces(const SandWork *work, SandChunk *chunk)
{
	Touching t = {.law = NULL};
	for (int i = 0; i < chunk->obstacle_pair_count; ++i)
	{
		const SandLaw *law = &work->laws[chunk->obstacle_laws[i]];
		if (t.count == 8 || (t.count > 0 && law != t.law))
		{
			add_touching(work, chunk, &t);
		}
		t.law = law;
		if (!take_touch(work, chunk, i, &t) && chunk->obstacle_history != NULL)
		{
			memset(&chunk->obstacle_history[i], 0, sizeof(SandHistory));
		}
	}
	for (int i = 0; i < chunk->group_count; ++i)
	{
		const SandGroup *group = &chunk->groups[i];
		const SandLaw *law = &work->laws[group->law];
		SandHit hits[SAND_HIT_LIMIT];
		int count = group_hits(work, chunk, group, hits);
		if (law->shear == SAND_SHEAR_HISTORY)
		{
			pass_springs(chunk->near_history + group->first, group->count, hits, count);
		}
		for (int k = 0; k < count; ++k)
		{
			if (t.count == 8 || (t.count > 0 && law != t.law))
			{
				add_touching(work, chunk, &t);
			}
			t.law = law;
			take_hit(work, chunk, group, &hits[k], &t);
		}
	}
	if (t.count > 0)
	{
		add_touching(work, chunk, &t);
	}
}

static bool is_touching(const SandWork *work, const SandLaw *law, SandPair pair)
{
	const SandSphere *a = &work->spheres[pair.a], *b = &work->spheres[pair.b];
	float square = 0,
	      reach = (a->radius + b->radius) * (1.0f + (law->cohesion > 0 ? 0.25f * law->cohesion_range : 0.0f));
	for (int k = 0; k < 3; ++k)
	{
		float d = (float)(a->x[k] - b->x[k]);
		square += d * d;
	}
	return square < reach * reach;
}

static void write_contact(const SandWork *work, const SandSphere *s, float lever, const Contact *c, SandContact *out)
{
	float along = 0;
	for (int k = 0; k < 3; ++k)
	{
		out->normal[k] = c->n[k][0];
		along += c->force[k][0] * c->n[k][0];
		out->point[k] = (float)(((double)s->x[k] - (double)(lever * c->n[k][0])) * work->unit + work->origin[k]);
	}
	for (int k = 0; k < 3; ++k)
	{
		out->shear_force[k] = c->force[k][0] - along * c->n[k][0];
	}
	out->normal_force = along;
	out->overlap = c->overlap[0];
}

static int64_t contacts(const SandWork *work, const SandChunk *chunk, SandContact *out, int64_t capacity)
{
	int64_t count = 0;
	for (int i = 0; i < chunk->section_count; ++i)
	{
		const SandSection *section = &chunk->sections[i];
		const SandLaw *law = &work->laws[section->law];
		for (int k = section->first; k < section->first + section->count; ++k)
		{
			SandPair pair = chunk->pairs[k];
			if (!is_touching(work, law, pair))
			{
				continue;
			}
			if (count < capacity)
			{
				Contact c = {.mass = {0}};
				f8 levers[2];
				const int32_t same[8] = {0};
				Eight pairs = eight_of(work->spheres, &pair, same);
				eight_pairs(work, law, &pairs, &c, levers);
				for (int axis = 0; axis < 3 && law->shear == SAND_SHEAR_HISTORY; ++axis)
				{
					c.stretch[axis] = splat(chunk->history[k].stretch[axis]);
				}
				contact_force(law, 0, &c);
				int32_t other = work->spheres[pair.b].grain;
				out[count].grain = work->traits[work->spheres[pair.a].grain].id;
				out[count].other = other < 0 ? -1 : work->traits[other].id;
				write_contact(work, &work->spheres[pair.a], levers[0][0], &c, &out[count]);
			}
			++count;
		}
	}
	for (int i = 0; i < chunk->obstacle_pair_count; ++i)
	{
		Touching t = {.law = &work->laws[chunk->obstacle_laws[i]]};
		bool is_hit = take_touch(work, chunk, i, &t);
		if (is_hit && count < capacity)
		{
			Contact c = contact_of(&t);
			const SandSphere *s = &work->spheres[chunk->obstacle_pairs[i].a];
			contact_force(t.law, 0, &c);
			out[count].grain = work->traits[s->grain].id;
			out[count].other = -2 - chunk->obstacle_pairs[i].b / SAND_SLOT_COUNT;
			write_contact(work, s, t.lever[0], &c, &out[count]);
		}
		count += is_hit;
	}
	for (int i = 0; i < chunk->group_count; ++i)
	{
		const SandGroup *group = &chunk->groups[i];
		const SandSphere *s = &work->spheres[group->sphere];
		SandHit hits[SAND_HIT_LIMIT];
		int hit_count = group_hits(work, chunk, group, hits);
		for (int k = 0; k < hit_count; ++k, ++count)
		{
			if (count < capacity)
			{
				Touching t = {.law = &work->laws[group->law]};
				take_hit(work, chunk, group, &hits[k], &t);
				Contact c = contact_of(&t);
				contact_force(t.law, 0, &c);
				out[count].grain = work->traits[s->grain].id;
				out[count].other = -2 - work->obstacle_count - group->collider;
				write_contact(work, s, t.lever[0], &c, &out[count]);
			}
		}
	}
	return count;
}

// Sleeping grains that something awake and fast touches. Several tasks may wake the same one.
static void watch_sleepers(const SandWork *work, SandChunk *chunk)
{
	for (int i = 0; i < chunk->watch_count; ++i)
	{
		const SandSphere *a = &work->spheres[chunk->watch_pairs[i].a], *b = &work->spheres[chunk->watch_pairs[i].b];
		float dx = (float)(a->x[0] - b->x[0]), dy = (float)(a->x[1] - b->x[1]), dz = (float)(a->x[2] - b->x[2]);
		float reach = a->radius + b->radius;
		float speed =
		    b->velocity[0] * b->velocity[0] + b->velocity[1] * b->velocity[1] + b->velocity[2] * b->velocity[2];
		// A driven grain does not give way, however slow it is.
		float limit = b->inverse_mass == 0 ? 0 : work->wake_speed_square;
		if (dx * dx + dy * dy + dz * dz < reach * reach && speed > limit)
		{
			__atomic_fetch_or(&work->grains[a->grain].flags, SAND_GRAIN_WAKING, __ATOMIC_RELAXED);
			chunk->needs_list = 1;
		}
	}
}

INLINE SandTraits *traits_of(const SandWork *work, const SandGrain *grain)
{
	return &work->traits[grain - work->grains];
}

INLINE const SandShape *shape_of(const SandWork *work, const SandGrain *grain)
{
	return &work->shapes[traits_of(work, grain)->shape];
}

INLINE d4 cross(d4 a, d4 b)
{
	d4 a1 = __builtin_shufflevector(a, a, 1, 2, 0, 3), b1 = __builtin_shufflevector(b, b, 1, 2, 0, 3);
	d4 c = a * b1 - a1 * b;
	return __builtin_shufflevector(c, c, 1, 2, 0, 3);
}

// What other chunks have summed for spheres of this one, in order of chunk and sphere.
INLINE void take_inflows(SandChunk *chunks, int index)
{
	SandChunk *chunk = &chunks[index];
	for (int i = 0; i < chunk->inflow_count; ++i)
	{
		const SandInflow *inflow = &chunk->inflows[i];
		const SandChunk *source = &chunks[inflow->source];
		const SandSum *from = source->ghost_sums + inflow->first;
		const int32_t *spheres = source->ghosts + inflow->first;
		SandSum *sums = chunk->sums;
		for (int k = 0, count = inflow->count, first_sphere = chunk->first_sphere; k < count; ++k)
		{
			SandSum *to = &sums[spheres[k] - first_sphere];
			store_f8(to->force, load_f8(to->force) + load_f8(from[k].force));
		}
	}
}

INLINE i4 to_fixed(d4 steps)
{
	// A lost or failing grain may be anywhere; it keeps a legal place until it is reported. NaN becomes the upper
	// bound.
	d4 high = splat_d4(1073741823.0), low = -high;
	steps = largest_d4(smallest_d4(steps, high), low);
	return round_i4(steps);
}

// Sphere sums to the force (N) and torque (N m) of their grain. Levers come from the fixed-point positions the contacts
// saw.
INLINE void grain_forces(const SandWork *work, const SandChunk *chunk, const SandGrain *grain, d4 *force_out,
                         d4 *torque_out)
{
	int count = shape_of(work, grain)->sphere_count;
	const SandSum *sums = chunk->sums + (grain->first_sphere - chunk->first_sphere);
	// The fourth lanes of sums are not zero.
	const i4 three = {-1, -1, -1, 0};
	d4 force = {0}, torque = {0};
	d4 origin = {work->origin[0], work->origin[1], work->origin[2], 0};
	i4 centre = count > 1 ? to_fixed((load_d3(grain->position) - origin) * splat_d4(1 / work->unit)) : (i4){0};
	for (int k = 0; k < count; ++k)
	{
		d4 f = widen((f4)((i4)load_f4(sums[k].force) & three));
		d4 t = widen((f4)((i4)load_f4(sums[k].torque) & three));
		force += f;
		torque += t;
		if (count > 1)
		{
			i4 lever = load_i4(work->spheres[grain->first_sphere + k].x) - centre;
			torque += cross(widen_i4(lever), f);
		}
	}
	*force_out = force;
	*torque_out = torque * splat_d4(work->unit);
}

static void gather(const SandWork *work, SandChunk *chunks, int index)
{
	SandChunk *chunk = &chunks[index];
	take_inflows(chunks, index);
	for (int i = chunk->first_grain; i < chunk->first_grain + chunk->grain_count; ++i)
	{
		d4 force, torque;
		grain_forces(work, chunk, &work->grains[i], &force, &torque);
		store_d4(work->loads[i].force, force);
		store_d4(work->loads[i].torque, torque);
	}
}

// Reads a word of every sphere in order. Pairs name spheres in no order, and each would wait for main memory; read in a
// row they stream in. Software prefetches of the same lines gained nothing.
INLINE void warm_spheres(const SandWork *work, const SandChunk *chunk)
{
	int32_t sum = 0;
	for (int i = 0; i < chunk->sphere_count; ++i)
	{
		sum += work->spheres[chunk->first_sphere + i].grain;
	}
	for (int i = 0; i < chunk->ghost_count; ++i)
	{
		sum += work->spheres[chunk->ghosts[i]].grain;
	}
	__asm__ volatile("" : : "r"(sum)); // keeps the reads
}

static void forces(const SandWork *work, SandChunk *chunk)
{
	chunk->contact_count = 0;
	if (work->collider_count > 0)
	{
		memset(chunk->collider_sums, 0, 6 * (size_t)work->collider_count * sizeof(double));
	}
	watch_sleepers(work, chunk);
	if (chunk->awake_count == 0 && chunk->pair_count == 0)
	{
		return;
	}
	warm_spheres(work, chunk);
	memset(chunk->sums, 0, (size_t)chunk->sphere_count * sizeof(SandSum));
	memset(chunk->ghost_sums, 0, (size_t)chunk->ghost_count * sizeof(SandSum));
	for (int i = 0; i < chunk->section_count; ++i)
	{
		const SandSection *section = &chunk->sections[i];
		const SandLaw *law = &work->laws[section->law];
		chunk->contact_count += section_function(law)(work, law, chunk, section);
	}
	obstacle_forces(work, chunk);
}

// Acceleration that does not come from contacts: gravity, wind, regions.
INLINE d4 field_at(const SandWork *work, const SandGrain *grain, d4 v, d4 gravity)
{
	d4 a = gravity, p = load_d3(grain->position);
	if (work->drag > 0)
	{
		a += ((d4){work->wind[0], work->wind[1], work->wind[2], 0} - v) * work->drag;
	}
	for (int i = 0; i < work->region_count; ++i)
	{
		const SandForceRegion *region = &work->regions[i];
		bool is_inside = true;
		for (int k = 0; k < 3; ++k)
		{
			is_inside = is_inside && p[k] >= (double)region->min[k] && p[k] <= (double)region->max[k];
		}
		if (is_inside)
		{
			a += (d4){region->acceleration[0], region->acceleration[1], region->acceleration[2], 0};
		}
	}
	return a;
}

// Velocity after `dt` of contact force and field.
INLINE d4 kicked(const SandWork *work, const SandGrain *grain, d4 velocity, d4 force, d4 gravity, double dt)
{
	d4 field = work->drag > 0 || work->region_count > 0 ? field_at(work, grain, velocity, gravity) : gravity;
	return velocity + splat_d4(dt) * (force * grain->inverse_mass + field);
}

// Columns of the rotation matrix of q: where the principal axes point.
INLINE void columns_of(d4 q, d4 c[3])
{
	// 1 - 2(yy + zz), 2(xy + wz), 2(xz - wy) and so on, a column at a time.
	d4 twice = q + q;
	d4 x = __builtin_shufflevector(twice, twice, 1, 1, 1, 1), y = __builtin_shufflevector(twice, twice, 2, 2, 2, 2);
	d4 z = __builtin_shufflevector(twice, twice, 3, 3, 3, 3);
	d4 yxw = __builtin_shufflevector(q, q, 2, 1, 0, 0), zwx = __builtin_shufflevector(q, q, 3, 0, 1, 0);
	d4 wzy = __builtin_shufflevector(q, q, 0, 3, 2, 0);
	c[0] = (d4){1, 0, 0, 0} + y * (yxw * (d4){-1, 1, -1, 0}) + z * (zwx * (d4){-1, 1, 1, 0});
	c[1] = (d4){0, 1, 0, 0} + x * (yxw * (d4){1, -1, 1, 0}) + z * (wzy * (d4){-1, -1, 1, 0});
	c[2] = (d4){0, 0, 1, 0} + x * (zwx * (d4){1, -1, -1, 0}) + y * (wzy * (d4){1, 1, -1, 0});
}

// The fourth lanes are zero.
INLINE double dot(d4 a, d4 b)
{
	d4 p = a * b;
	p += __builtin_shufflevector(p, p, 2, 3, 0, 1);
	return p[0] + p[1];
}

// Angular velocity, world axes: R I^-1 R^T L.
INLINE d4 spin_of(const SandWork *work, const SandGrain *grain, d4 q, d4 momentum)
{
	if (grain->inverse_inertia > 0)
	{
		return momentum * grain->inverse_inertia;
	}
	d4 c[3], spin = {0};
	const SandTraits *traits = traits_of(work, grain);
	double scale = (double)traits->scale * (double)traits->scale / grain->inverse_mass;
	columns_of(q, c);
	for (int k = 0; k < 3; ++k)
	{
		spin += c[k] * (dot(c[k], momentum) / (work->shapes[traits->shape].inertia[k] * scale));
	}
	return spin;
}

// sin(a) / a and cos(a) of the square of a, to a^6: below 1e-10 for the half angle of a quarter radian a step. No
// library sine, so that every machine gives the same bits.
INLINE d4 sine_ratio(d4 square)
{
	return 1 - square * (1.0 / 6) * (1 - square * (1.0 / 20) * (1 - square * (1.0 / 42)));
}

INLINE d4 cosine(d4 square)
{
	return 1 - square * 0.5 * (1 - square * (1.0 / 12) * (1 - square * (1.0 / 30)));
}

// q turned by a constant spin for dt, by a quarter radian at most; faster spins are split.
INLINE d4 turn(d4 q, d4 spin, double dt)
{
	d4 half = spin * (0.5 * dt);
	d4 square = splat_d4(dot(half, half)), c = cosine(square);
	half *= sine_ratio(square);
	d4 x = __builtin_shufflevector(half, half, 0, 0, 0, 0), y = __builtin_shufflevector(half, half, 1, 1, 1, 1);
	d4 z = __builtin_shufflevector(half, half, 2, 2, 2, 2);
	d4 qx = __builtin_shufflevector(q, q, 1, 0, 3, 2), qy = __builtin_shufflevector(q, q, 2, 3, 0, 1);
	d4 qz = __builtin_shufflevector(q, q, 3, 2, 1, 0);
	const d4 sx = {-1, 1, -1, 1}, sy = {-1, 1, 1, -1}, sz = {-1, -1, 1, 1};
	d4 r = (q * c + qx * (sx * x)) + (qy * (sy * y) + qz * (sz * z));
	d4 p = r * r;
	p += __builtin_shufflevector(p, p, 2, 3, 0, 1);
	p += __builtin_shufflevector(p, p, 1, 0, 3, 2);
	// One Newton step of 1/sqrt from 1: the length is already 1 within rounding, and this keeps it so for ever.
	return r * (1.5 - 0.5 * p);
}

INLINE d4 turn_safely(d4 q, d4 spin, double dt)
{
	double square = dot(spin, spin) * dt * dt;
	if (square < 0.25)
	{
		return turn(q, spin, dt);
	}
	// Beyond 1e6 rad a step the grain is failing anyway.
	int parts = square < 1e12 ? (int)(2 * sqrt(square)) + 1 : 1;
	for (int i = 0; i < parts; ++i)
	{
		q = turn(q, spin, dt / parts);
	}
	return q;
}

// p in fixed-point units.
INLINE void place_sphere(SandSphere *sphere, d4 p, d4 velocity, f4 spin_row)
{
	f4 radius_row = {0, 0, 0, sphere->radius};
	store_f4(sphere->velocity, __builtin_shufflevector(narrow(velocity), radius_row, 0, 1, 2, 7));
	store_i4(sphere->x, (i4)__builtin_shufflevector((f4)to_fixed(p), radius_row, 0, 1, 2, 7));
	store_f4(sphere->spin, spin_row);
}

// Spheres of a grain at `where` and q with that velocity and spin.
INLINE void place_spheres(const SandWork *work, SandGrain *grain, d4 where, d4 q, d4 velocity, d4 spin, d4 inverse_unit,
                          d4 origin)
{
	const SandShape *shape = shape_of(work, grain);
	d4 position = (where - origin) * inverse_unit;
	double own = grain->flags & SAND_GRAIN_DRIVEN ? 0 : grain->inverse_mass / shape->share;
	f4 inverse_mass = {0, 0, 0, (float)own};
	f4 spin_row = __builtin_shufflevector(narrow(spin * work->unit), inverse_mass, 0, 1, 2, 7);
	SandSphere *spheres = work->spheres + grain->first_sphere;
	if (shape->sphere_count == 1)
	{
		place_sphere(spheres, position, velocity, spin_row);
		return;
	}
	d4 c[3], m[3];
	columns_of(q, c);
	for (int k = 0; k < 3; ++k)
	{
		c[k] = c[k] * (double)traits_of(work, grain)->scale;
		m[k] = cross(spin, c[k]);
		c[k] = c[k] * inverse_unit;
	}
	for (int i = 0; i < shape->sphere_count; ++i)
	{
		const float *o = shape->offsets + 3 * i;
		d4 p = position + c[0] * (double)o[0] + c[1] * (double)o[1] + c[2] * (double)o[2];
		d4 v = velocity + m[0] * (double)o[0] + m[1] * (double)o[1] + m[2] * (double)o[2];
		place_sphere(&spheres[i], p, v, spin_row);
	}
}

INLINE void place_grain(const SandWork *work, SandGrain *grain, d4 inverse_unit, d4 origin)
{
	d4 q = load_d4(grain->orientation);
	place_spheres(work, grain, load_d3(grain->position), q, load_d3(grain->velocity),
	              spin_of(work, grain, q, load_d3(grain->momentum)), inverse_unit, origin);
}

INLINE bool is_far(const SandWork *work, const SandGrain *grain)
{
	const SandSphere *sphere = work->spheres + grain->first_sphere;
	int count = shape_of(work, grain)->sphere_count;
	float margin = grain->flags & SAND_GRAIN_FAST ? work->margin_fast : work->margin_slow;
	float limit = margin * margin, farthest = 0;
	for (int i = 0; i < count; ++i)
	{
		f4 d = __builtin_convertvector(load_i4(sphere[i].x) - load_i4(sphere[i].x_listed), f4);
		d *= d;
		float square = d[0] + d[1] + d[2];
		farthest = square > farthest ? square : farthest;
	}
	return farthest > limit;
}

static bool is_in_outflow(const SandWork *work, const SandGrain *grain)
{
	for (int i = 0; i < work->outflow_count; ++i)
	{
		const SandOutflow *outflow = &work->outflows[i];
		bool is_inside = true;
		for (int k = 0; k < 3; ++k)
		{
			is_inside = is_inside && grain->position[k] >= (double)outflow->min[k] &&
			            grain->position[k] <= (double)outflow->max[k];
		}
		if (is_inside)
		{
			return true;
		}
	}
	return false;
}

// A grain at rest long enough, held by something, stops where it is.
INLINE bool falls_asleep(const SandWork *work, SandGrain *grain, d4 velocity, d4 momentum, d4 force)
{
	d4 spin = spin_of(work, grain, load_d4(grain->orientation), momentum);
	SandTraits *traits = traits_of(work, grain);
	double bound = (double)work->shapes[traits->shape].bound * (double)traits->scale,
	       limit = work->sleep_speed * work->sleep_speed;
	bool is_quiet = dot(velocity, velocity) < limit && dot(spin, spin) * bound * bound < limit && dot(force, force) > 0;
	traits->quiet_steps = is_quiet ? traits->quiet_steps + 1 : 0;
	return traits->quiet_steps >= work->sleep_steps;
}

static void stop_grain(const SandWork *work, SandGrain *grain, int32_t flag)
{
	grain->flags |= flag;
	traits_of(work, grain)->quiet_steps = 0;
	memset(grain->velocity, 0, sizeof(grain->velocity));
	memset(grain->momentum, 0, sizeof(grain->momentum));
}

// Rows to columns and back.
INLINE void transpose_d4(d4 v[4])
{
	d4 a = __builtin_shufflevector(v[0], v[1], 0, 4, 2, 6), b = __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7);
	d4 c = __builtin_shufflevector(v[2], v[3], 0, 4, 2, 6), d = __builtin_shufflevector(v[2], v[3], 1, 5, 3, 7);
	v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
	v[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
	v[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
	v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// turn() of four grains at once, in columns: one after the other they would wait for their own results. q becomes the
// turned ones; returned: the squares of their half angles, whose turn is only good below a quarter radian squared.
INLINE d4 turn_columns(d4 q[4], const d4 spin[3], d4 dt)
{
	d4 half = 0.5 * dt, h[3] = {spin[0] * half, spin[1] * half, spin[2] * half};
	d4 square = h[0] * h[0] + h[1] * h[1] + h[2] * h[2];
	d4 s = sine_ratio(square), c = cosine(square), x = h[0] * s, y = h[1] * s, z = h[2] * s;
	d4 t[4] = {
	    (q[0] * c - q[1] * x) - (q[2] * y + q[3] * z),
	    (q[1] * c + q[0] * x) + (q[3] * y - q[2] * z),
	    (q[2] * c - q[3] * x) + (q[0] * y + q[1] * z),
	    (q[3] * c + q[2] * x) + (q[0] * z - q[1] * y),
	};
	// As in turn().
	d4 correction = 1.5 - 0.5 * ((t[0] * t[0] + t[1] * t[1]) + (t[2] * t[2] + t[3] * t[3]));
	for (int k = 0; k < 4; ++k)
	{
		q[k] = t[k] * correction;
	}
	return square;
}

#define TURN_LIMIT 0.0625 // the quarter radian of turn(), squared

// Orientations in rows, spins in columns.
INLINE void turn_four(d4 q[4], const d4 spin[3], d4 dt)
{
	d4 r[4];
	memcpy(r, q, sizeof(r));
	transpose_d4(r);
	d4 square = turn_columns(r, spin, dt);
	transpose_d4(r);
	if (mask_bits_l4(~((square < TURN_LIMIT) & (dt > 0))) == 0)
	{
		memcpy(q, r, sizeof(r));
		return;
	}
	for (int k = 0; k < 4; ++k)
	{
		// A lone sphere that does not turn in this step keeps its bits, as in move_four.
		if (!(dt[k] > 0))
		{
			continue;
		}
		q[k] = square[k] < TURN_LIMIT ? r[k] : turn_safely(q[k], (d4){spin[0][k], spin[1][k], spin[2][k], 0}, dt[k]);
	}
}

// Constants of a move.
typedef struct Motion
{
	d4 gravity, inverse_unit, origin, domain_min, domain_max;
	double dt, half, owed;
	float far_slow, far_fast; // units squared, the margins
	bool can_sleep;
} Motion;

INLINE Motion motion_of(const SandWork *work)
{
	return (Motion){.gravity = {work->gravity[0], work->gravity[1], work->gravity[2], 0},
	                .inverse_unit = splat_d4(1 / work->unit),
	                .origin = {work->origin[0], work->origin[1], work->origin[2], 0},
	                .domain_min = {work->domain_min[0], work->domain_min[1], work->domain_min[2], 0},
	                .domain_max = {work->domain_max[0], work->domain_max[1], work->domain_max[2], 0},
	                .dt = work->step,
	                .half = 0.5 * work->step,
	                .owed = 0.5 * work->last_step,
	                .far_slow = work->margin_slow * work->margin_slow,
	                .far_fast = work->margin_fast * work->margin_fast,
	                .can_sleep = work->sleep_speed > 0 && work->last_step > 0};
}

typedef struct Kick
{
	d4 force, torque;
	d4 velocity, momentum; // after it
} Kick;

static void add_impulse(const SandWork *work, const SandGrain *grain, const Kick *k, double dt)
{
	double *sum = work->impulses + 6 * (size_t)traits_of(work, grain)->body;
	for (int axis = 0; axis < 3; ++axis)
	{
		sum[axis] += k->force[axis] * dt;
		sum[3 + axis] += k->torque[axis] * dt;
	}
}

// Forces and the owed half kick of one grain, not yet stored; false when it falls asleep or is driven instead. after =
// time that the forces act on beyond what is owed.
INLINE bool owed_kick(const SandWork *work, SandChunk *chunk, const Motion *m, SandGrain *grain, double after, Kick *k)
{
	grain_forces(work, chunk, grain, &k->force, &k->torque);
	if (grain->flags & SAND_GRAIN_BODY)
	{
		add_impulse(work, grain, k, m->owed + after);
	}
	if (grain->flags & SAND_GRAIN_DRIVEN)
	{
		return false;
	}
	k->velocity = kicked(work, grain, load_d3(grain->velocity), k->force, m->gravity, m->owed);
	k->momentum = load_d3(grain->momentum) + splat_d4(m->owed) * k->torque;
	if (m->can_sleep && falls_asleep(work, grain, k->velocity, k->momentum, k->force))
	{
		stop_grain(work, grain, SAND_GRAIN_ASLEEP);
		--chunk->awake_count;
		return false;
	}
	return true;
}

static void finish(const SandWork *work, SandChunk *chunks, int index)
{
	SandChunk *chunk = &chunks[index];
	if (chunk->awake_count == 0)
	{
		return;
	}
	Motion m = motion_of(work);
	take_inflows(chunks, index);
	for (int i = chunk->first_grain; i < chunk->first_grain + chunk->grain_count; ++i)
	{
		SandGrain *grain = &work->grains[i];
		Kick kick;
		if ((grain->flags & SAND_GRAIN_STILL) == 0 && owed_kick(work, chunk, &m, grain, 0, &kick))
		{
			if (work->turn > 0 && shape_of(work, grain)->sphere_count == 1)
			{
				d4 q = load_d4(grain->orientation);
				store_d4(grain->orientation,
				         turn_safely(q, spin_of(work, grain, q, load_d3(grain->momentum)), work->turn));
			}
			store_d3(grain->velocity, kick.velocity);
			store_d3(grain->momentum, kick.momentum);
		}
	}
}

static void follow_track(const SandWork *work, SandGrain *grain)
{
	const SandGrain *target = &work->targets[traits_of(work, grain)->body];
	memcpy(grain->position, target->position, sizeof(grain->position));
	memcpy(grain->orientation, target->orientation, sizeof(grain->orientation));
	memcpy(grain->velocity, target->velocity, sizeof(grain->velocity));
	memcpy(grain->momentum, target->momentum, sizeof(grain->momentum));
}

// Of its fastest point, (m/s)^2.
static double driven_speed_square(const SandWork *work, const SandGrain *grain)
{
	d4 velocity = load_d3(grain->velocity);
	d4 spin = spin_of(work, grain, load_d4(grain->orientation), load_d3(grain->momentum));
	double bound = (double)shape_of(work, grain)->bound * (double)traits_of(work, grain)->scale;
	double speed = sqrt(dot(velocity, velocity)) + sqrt(dot(spin, spin)) * bound;
	return speed * speed;
}

// Both kicks of one grain; false when it does not move on. The spin is the one to turn with, for that time.
INLINE bool kick_grain(const SandWork *work, SandChunk *chunk, const Motion *m, SandGrain *grain, d4 *velocity_out,
                       d4 *spin_out, double *turn_out)
{
	Kick kick;
	if (!owed_kick(work, chunk, m, grain, m->half, &kick))
	{
		if (grain->flags & SAND_GRAIN_DRIVEN)
		{
			follow_track(work, grain);
			chunk->fastest_square = fmax(chunk->fastest_square, driven_speed_square(work, grain));
		}
		place_grain(work, grain, m->inverse_unit, m->origin);
		chunk->needs_list |= is_far(work, grain);
		return false;
	}
	d4 velocity = kicked(work, grain, kick.velocity, kick.force, m->gravity, m->half);
	d4 momentum = kick.momentum + splat_d4(m->half) * kick.torque;
	store_d3(grain->velocity, velocity);
	store_d3(grain->momentum, momentum);
	d4 q = load_d4(grain->orientation), spin = spin_of(work, grain, q, momentum);
	*turn_out = shape_of(work, grain)->sphere_count == 1 ? work->turn : m->dt;
	if (!(grain->inverse_inertia > 0))
	{
		// Midpoint rule: the spin of a free asymmetric body changes with its orientation.
		spin = spin_of(work, grain, turn_safely(q, spin, m->half), momentum);
	}
	*velocity_out = velocity;
	*spin_out = spin;
	return true;
}

// Moves a kicked grain, places its spheres; true when the list is due.
INLINE bool move_grain(const SandWork *work, const Motion *m, SandGrain *grain, d4 velocity, d4 q, d4 spin)
{
	d4 position = load_d3(grain->position) + velocity * m->dt;
	store_d3(grain->position, position);
	store_d4(grain->orientation, q);
	l4 outside = (position <= m->domain_min) | (position >= m->domain_max);
	bool is_outside = any_of_three(outside);
	bool is_out = work->outflow_count > 0 && is_in_outflow(work, grain);
	if (is_outside || is_out)
	{
		// Absent from the next list on; until then it stands still.
		stop_grain(work, grain, is_out ? SAND_GRAIN_GONE : SAND_GRAIN_LOST);
		place_grain(work, grain, m->inverse_unit, m->origin);
		return true;
	}
	// The spin of the new orientation, where it matters.
	spin = grain->inverse_inertia > 0 ? spin : spin_of(work, grain, q, load_d3(grain->momentum));
	place_spheres(work, grain, position, q, velocity, spin, m->inverse_unit, m->origin);
	return is_far(work, grain);
}

// Whether these four can be moved together: awake, and one sphere each. next_sphere = the first of the grain
// after them.
INLINE bool are_lone_spheres(const SandGrain *grains, int32_t next_sphere)
{
	int32_t flags = grains[0].flags | grains[1].flags | grains[2].flags | grains[3].flags;
	return (flags & (SAND_GRAIN_STILL | SAND_GRAIN_DRIVEN | SAND_GRAIN_BODY)) == 0 &&
	       next_sphere - grains[0].first_sphere == 4;
}

// Four rows of four words to columns and back.
INLINE void transpose_f4(f4 v[4])
{
	f4 a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
	f4 c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
	v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
	v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
	v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
	v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

static void report_bad(SandChunk *chunk, int32_t id, double speed_square)
{
	if (id < chunk->bad_grain)
	{
		chunk->bad_grain = id;
		chunk->bad_speed = sqrt(speed_square);
	}
}

// Three lanes, and the fourth as it stands in memory.
INLINE void store_three(double *row, d4 v)
{
	store_d4(row, __builtin_shufflevector(v, load_d4(row), 0, 1, 2, 7));
}

INLINE void store_three_f4(float *row, f4 v)
{
	store_f4(row, __builtin_shufflevector(v, load_f4(row), 0, 1, 2, 7));
}

INLINE void store_three_i4(int32_t *row, i4 v)
{
	store_i4(row, __builtin_shufflevector(v, load_i4(row), 0, 1, 2, 7));
}

// Turns four lone spheres by what is due.
static void turn_lone(const SandWork *work, SandGrain *grains)
{
	d4 q[4], spin[4];
	for (int k = 0; k < 4; ++k)
	{
		q[k] = load_d4(grains[k].orientation);
		spin[k] = load_d3(grains[k].momentum) * grains[k].inverse_inertia;
	}
	transpose_d4(spin);
	turn_four(q, spin, splat_d4(work->turn));
	for (int k = 0; k < 4; ++k)
	{
		store_d4(grains[k].orientation, q[k]);
	}
}

// Moved lone spheres of which one is too fast or outside: says so, and stops who is outside.
static void check_lone(const SandWork *work, SandChunk *chunk, const Motion *m, SandGrain *grains,
                       const double speed_square[4])
{
	for (int k = 0; k < 4; ++k)
	{
		d4 position = load_d3(grains[k].position);
		// Written so that a NaN fails it.
		if (!(speed_square[k] < work->speed_limit * work->speed_limit))
		{
			report_bad(chunk, traits_of(work, &grains[k])->id, speed_square[k]);
		}
		if (any_of_three((position <= m->domain_min) | (position >= m->domain_max)))
		{
			stop_grain(work, &grains[k], SAND_GRAIN_LOST);
			place_grain(work, &grains[k], m->inverse_unit, m->origin);
			chunk->needs_list = 1;
		}
	}
}

// The move of four lone spheres: row by row, for a row of three numbers is wide enough, and nothing has to be turned
// into columns but what is summed over the axes. The same bits as one after the other.
INLINE void move_four(const SandWork *work, SandChunk *chunk, const Motion *m, SandGrain *grains, d4 *fastest,
                      i4 *far_out)
{
	SandSphere *spheres = work->spheres + grains[0].first_sphere;
	const SandSum *sums = chunk->sums + (grains[0].first_sphere - chunk->first_sphere);
	d4 v[4], unit = splat_d4(work->unit);
	f4 far[4];
	l4 outside = {0};
#pragma GCC unroll 4
	for (int k = 0; k < 4; ++k)
	{
		SandGrain *grain = &grains[k];
		SandSphere *sphere = &spheres[k];
		d4 f = widen(load_f4(sums[k].force)) * grain->inverse_mass + m->gravity;
		d4 t = widen(load_f4(sums[k].torque)) * unit;
		v[k] = (load_d3(grain->velocity) + splat_d4(m->owed) * f) + splat_d4(m->half) * f;
		d4 momentum = (load_d3(grain->momentum) + splat_d4(m->owed) * t) + splat_d4(m->half) * t;
		d4 position = load_d3(grain->position) + v[k] * m->dt;
		outside |= (position <= m->domain_min) | (position >= m->domain_max);
		i4 x = to_fixed((position - m->origin) * m->inverse_unit);
		far[k] = __builtin_convertvector(x - load_i4(sphere->x_listed), f4);
		store_three(grain->momentum, momentum);
		store_three_f4(sphere->spin, narrow(momentum * grain->inverse_inertia * unit));
		store_three(grain->velocity, v[k]);
		store_three_f4(sphere->velocity, narrow(v[k]));
		store_three(grain->position, position);
		store_three_i4(sphere->x, x);
	}
	transpose_d4(v);
	transpose_f4(far);
	d4 speed_square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
	*fastest = largest_d4(speed_square, *fastest);
	i4 is_fast = ((i4){grains[0].flags, grains[1].flags, grains[2].flags, grains[3].flags} & SAND_GRAIN_FAST) != 0;
	f4 slow = {m->far_slow, m->far_slow, m->far_slow, m->far_slow};
	f4 fast = {m->far_fast, m->far_fast, m->far_fast, m->far_fast};
	f4 limit = (f4)(((i4)fast & is_fast) | ((i4)slow & ~is_fast));
	*far_out |= far[0] * far[0] + far[1] * far[1] + far[2] * far[2] > limit;
	if (work->turn > 0)
	{
		turn_lone(work, grains);
	}
	if (any_of_three(outside) || mask_bits_l4(~(speed_square < work->speed_limit * work->speed_limit)) != 0)
	{
		double squares[4];
		store_d4(squares, speed_square);
		check_lone(work, chunk, m, grains, squares);
	}
}

static void move(const SandWork *work, SandChunk *chunks, int index)
{
	SandChunk *chunk = &chunks[index];
	chunk->fastest_square = 0;
	if (chunk->awake_count == 0)
	{
		return;
	}
	Motion m = motion_of(work);
	bool needs_list = false,
	     is_plain = !(work->drag > 0) && work->region_count == 0 && work->outflow_count == 0 && !m.can_sleep;
	double limit = work->speed_limit * work->speed_limit;
	d4 fastest = {0};
	i4 far = {0};
	take_inflows(chunks, index);
	for (int first = chunk->first_grain, end = first + chunk->grain_count; first < end; first += 4)
	{
		SandGrain *grains = &work->grains[first];
		int32_t next_sphere = first + 4 < end ? grains[4].first_sphere : chunk->first_sphere + chunk->sphere_count;
		if (is_plain && first + 4 <= end && are_lone_spheres(grains, next_sphere))
		{
			move_four(work, chunk, &m, grains, &fastest, &far);
			continue;
		}
		bool is_moving[4];
		double time[4] = {0};
		d4 velocity[4], spin[4], q[4];
		for (int k = 0; k < 4; ++k)
		{
			is_moving[k] = first + k < end && (grains[k].flags & SAND_GRAIN_STILL) == 0;
			velocity[k] = spin[k] = (d4){0};
			q[k] = (d4){1, 0, 0, 0};
			if (is_moving[k])
			{
				q[k] = load_d4(grains[k].orientation);
				is_moving[k] = kick_grain(work, chunk, &m, &grains[k], &velocity[k], &spin[k], &time[k]);
			}
		}
		d4 s[4] = {spin[0], spin[1], spin[2], spin[3]};
		transpose_d4(s);
		turn_four(q, s, load_d4(time));
		d4 v[4] = {velocity[0], velocity[1], velocity[2], velocity[3]};
		transpose_d4(v);
		d4 speed_square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
		fastest = largest_d4(speed_square, fastest);
		for (int k = 0; k < 4; ++k)
		{
			if (is_moving[k])
			{
				// Written so that a NaN fails it.
				if (!(speed_square[k] < limit))
				{
					report_bad(chunk, traits_of(work, &grains[k])->id, speed_square[k]);
				}
				needs_list |= move_grain(work, &m, &grains[k], velocity[k], q[k], spin[k]);
			}
		}
	}
	// A sleeper may have been woken by the last forces: then the list is due as well.
	chunk->needs_list |= needs_list || (far[0] | far[1] | far[2] | far[3]) != 0;
	for (int k = 0; k < 4; ++k)
	{
		chunk->fastest_square = fastest[k] > chunk->fastest_square ? fastest[k] : chunk->fastest_square;
	}
}

static void place(const SandWork *work, SandChunk *chunk, bool is_listing)
{
	d4 inverse_unit = splat_d4(1 / work->unit), origin = {work->origin[0], work->origin[1], work->origin[2], 0};
	chunk->fastest_square = 0;
	for (int i = chunk->first_grain; i < chunk->first_grain + chunk->grain_count; ++i)
	{
		d4 velocity = load_d3(work->grains[i].velocity);
		double speed_square = dot(velocity, velocity);
		chunk->fastest_square = speed_square > chunk->fastest_square ? speed_square : chunk->fastest_square;
		place_grain(work, &work->grains[i], inverse_unit, origin);
		if (is_listing)
		{
			const SandGrain *grain = &work->grains[i];
			SandTraits *traits = &work->traits[i];
			d4 spin = spin_of(work, grain, load_d4(grain->orientation), load_d3(grain->momentum));
			double bound = (double)work->shapes[traits->shape].bound * (double)traits->scale;
			traits->reach_speed = (float)(sqrt(speed_square) + sqrt(dot(spin, spin)) * bound);
		}
		chunk->needs_list |= !is_listing && is_far(work, &work->grains[i]);
	}
	for (int i = chunk->first_sphere; is_listing && i < chunk->first_sphere + chunk->sphere_count; ++i)
	{
		memcpy(work->spheres[i].x_listed, work->spheres[i].x, sizeof(work->spheres[i].x));
	}
}

#define NAME_OF(set) sand_kernel_##set
#define KERNEL_OF(set) NAME_OF(set)
#define TEXT_OF(set) #set
#define KERNEL_TEXT(set) TEXT_OF(set)

extern const SandKernel KERNEL_OF(SAND_KERNEL);
const SandKernel KERNEL_OF(SAND_KERNEL) = {
    KERNEL_TEXT(SAND_KERNEL), forces, move, finish, gather, find_near, contacts, place};

// The baseline build, which runs everywhere, also chooses.
#ifdef SAND_KERNEL_CHOOSES
#ifdef SAND_HAS_AVX2
extern const SandKernel sand_kernel_avx2;
#endif

const SandKernel *sand_kernel_find(const char *name_wanted)
{
#ifdef SAND_HAS_AVX2
	if ((name_wanted == NULL || strcmp(name_wanted, "avx2") == 0) && __builtin_cpu_supports("avx2"))
	{
		return &sand_kernel_avx2;
	}
#endif
	return name_wanted == NULL || strcmp(name_wanted, "baseline") == 0 ? &sand_kernel_baseline : NULL;
}
#endif
