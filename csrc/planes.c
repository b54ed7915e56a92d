// planes: the bytes of a chunk's numbers, plane by plane, and the rows that they stand for. Built once per instruction
// set; SAND_KERNEL is the name of this build.
// Comes in: planes, one byte of a word per row. Goes out: rows of numbers, in order.
//
// A block of rows at a time: planes to words, words to numbers, columns to rows, each a plain loop over arrays that fit
// in the first cache, which compilers turn into vectors.
#include "planes.h"

#include <math.h>
#include <string.h>

#define BLOCK 512 // rows

static void zip(const unsigned char *even, const unsigned char *odd, size_t count, unsigned char *restrict bytes_out)
{
	size_t pairs = count / 2;
	for (size_t i = 0; i < pairs; ++i)
	{
		bytes_out[2 * i] = even[i];
		bytes_out[2 * i + 1] = odd[i];
	}
	if (count % 2 != 0)
	{
		bytes_out[count - 1] = even[pairs];
	}
}

/// Words of rows first .. first + count of a column.
static void join(const SandPlanesColumn *column, uint32_t word_bytes, size_t first, size_t count,
                 uint32_t *restrict words)
{
	const unsigned char *a = column->bytes[0] + first;
	if (word_bytes == 1)
	{
		for (size_t i = 0; i < count; ++i)
		{
			words[i] = a[i];
		}
		return;
	}
	const unsigned char *b = column->bytes[1] + first;
	if (word_bytes == 2)
	{
		for (size_t i = 0; i < count; ++i)
		{
			words[i] = a[i] | (uint32_t)b[i] << 8;
		}
		return;
	}
	const unsigned char *c = column->bytes[2] + first;
	if (word_bytes == 3)
	{
		for (size_t i = 0; i < count; ++i)
		{
			words[i] = a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16;
		}
		return;
	}
	const unsigned char *d = column->bytes[3] + first;
	for (size_t i = 0; i < count; ++i)
	{
		words[i] = a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
	}
}

static size_t block_count(size_t first, size_t count)
{
	return count - first < BLOCK ? count - first : BLOCK;
}

static void add_up(const SandPlanesColumn *column, uint32_t word_bytes, size_t count,
                   unsigned char *const planes_out[SAND_PLANES_WORD])
{
	uint32_t words[BLOCK], sum = 0; // bits beyond the word's carry nothing into it
	for (size_t first = 0; first < count; first += BLOCK)
	{
		size_t part = block_count(first, count);
		join(column, word_bytes, first, part, words);
		for (size_t i = 0; i < part; ++i)
		{
			words[i] = words[i] >> 1 ^ (0u - (words[i] & 1u)); // d of 2d, ~d of 2d + 1
		}
		for (size_t i = 0; i < part; ++i)
		{
			sum += words[i];
			words[i] = sum;
		}
		for (uint32_t k = 0; k < word_bytes; ++k)
		{
			unsigned char *restrict plane = planes_out[k] + first;
			for (size_t i = 0; i < part; ++i)
			{
				plane[i] = (unsigned char)(words[i] >> 8 * k);
			}
		}
	}
}

/// Columns of a block to rows. Whole numbers: bits that mean nothing as floats must not pass through one.
static void weave(uint32_t columns[][BLOCK], size_t width, size_t count, void *place)
{
	uint32_t *restrict rows_out = place;
	const uint32_t *x = columns[0], *y = columns[1], *z = columns[2], *w = columns[3];
	switch (width)
	{
	case 1:
		memcpy(rows_out, x, count * sizeof *x);
		return;
	case 3:
		for (size_t i = 0; i < count; ++i)
		{
			rows_out[3 * i] = x[i];
			rows_out[3 * i + 1] = y[i];
			rows_out[3 * i + 2] = z[i];
		}
		return;
	case 4:
		for (size_t i = 0; i < count; ++i)
		{
			rows_out[4 * i] = x[i];
			rows_out[4 * i + 1] = y[i];
			rows_out[4 * i + 2] = z[i];
			rows_out[4 * i + 3] = w[i];
		}
		return;
	default:
		for (size_t k = 0; k < width; ++k)
		{
			for (size_t i = 0; i < count; ++i)
			{
				rows_out[width * i + k] = columns[k][i];
			}
		}
	}
}

static void set_floats(uint32_t *restrict bits, const float *restrict values, size_t count)
{
	memcpy(bits, values, count * sizeof *values);
}

static void grid(const SandPlanesColumn *columns, size_t width, const SandPlanesGrid *how, size_t count,
                 float *rows_out)
{
	uint32_t words[BLOCK], found[SAND_PLANES_WORD][BLOCK];
	float values[BLOCK];
	for (size_t first = 0; first < count; first += BLOCK)
	{
		size_t part = block_count(first, count);
		for (size_t k = 0; k < width; ++k)
		{
			double origin = how->origin[k], step = how->step;
			join(&columns[k], how->word_bytes, first, part, words);
			if (how->word_bytes < 4) // the words are positive as int32 too, which processors turn into doubles at once
			{
				for (size_t i = 0; i < part; ++i)
				{
					values[i] = (float)((origin + (double)(int32_t)words[i]) * step);
				}
			}
			else
			{
				for (size_t i = 0; i < part; ++i)
				{
					values[i] = sand_planes_grid_value(origin, words[i], step);
				}
			}
			set_floats(found[k], values, part);
		}
		weave(found, width, part, rows_out + first * width);
	}
}

static void half(const SandPlanesColumn *columns, size_t width, size_t count, float *rows_out)
{
	uint32_t words[BLOCK], found[SAND_PLANES_WIDTH][BLOCK];
	float values[BLOCK];
	for (size_t first = 0; first < count; first += BLOCK)
	{
		size_t part = block_count(first, count);
		for (size_t k = 0; k < width; ++k)
		{
			join(&columns[k], 2, first, part, words);
			for (size_t i = 0; i < part; ++i)
			{
				values[i] = sand_planes_half_value(words[i]);
			}
			set_floats(found[k], values, part);
		}
		weave(found, width, part, rows_out + first * width);
	}
}

/// yes where the mask's bits are set.
static uint32_t choose(uint32_t mask, uint32_t yes, uint32_t no)
{
	return (yes & mask) | (no & ~mask);
}

static void turn(const SandPlanesColumn *column, size_t count, float *rows_out)
{
	const float scale = (float)(1.0 / (SAND_PLANES_TURN_SCALE * SAND_PLANES_TURN_HALF));
	uint32_t words[BLOCK], bits[4][BLOCK], found[4][BLOCK];
	float small[3][BLOCK], large[BLOCK];
	for (size_t first = 0; first < count; first += BLOCK)
	{
		size_t part = block_count(first, count);
		join(column, 4, first, part, words);
		for (size_t i = 0; i < part; ++i)
		{
			float a = (float)((int32_t)(words[i] & 1023u) - SAND_PLANES_TURN_HALF) * scale;
			float b = (float)((int32_t)(words[i] >> 10 & 1023u) - SAND_PLANES_TURN_HALF) * scale;
			float c = (float)((int32_t)(words[i] >> 20 & 1023u) - SAND_PLANES_TURN_HALF) * scale;
			float rest = 1.0f - (a * a + b * b + c * c);
			small[0][i] = a;
			small[1][i] = b;
			small[2][i] = c;
			large[i] = sqrtf(rest > 0 ? rest : 0);
		}
		for (size_t k = 0; k < 3; ++k)
		{
			set_floats(bits[k], small[k], part);
		}
		set_floats(bits[3], large, part);
		// The largest stands at its place, the three others follow it in turn: d abc, c dab, bc da, abc d.
		for (size_t i = 0; i < part; ++i)
		{
			uint32_t is_odd = 0u - (words[i] >> 30 & 1u), is_high = 0u - (words[i] >> 31);
			uint32_t a = bits[0][i], b = bits[1][i], c = bits[2][i], d = bits[3][i];
			found[0][i] = choose(is_high, choose(is_odd, a, b), choose(is_odd, c, d));
			found[1][i] = choose(is_high, choose(is_odd, b, c), choose(is_odd, d, a));
			found[2][i] = choose(is_high, choose(is_odd, c, d), choose(is_odd, a, b));
			found[3][i] = choose(is_high, choose(is_odd, d, a), choose(is_odd, b, c));
		}
		weave(found, 4, part, rows_out + 4 * first);
	}
}

static void exact(const SandPlanesColumn *columns, size_t width, size_t count, uint32_t *rows_out)
{
	uint32_t found[SAND_PLANES_WIDTH][BLOCK];
	for (size_t first = 0; first < count; first += BLOCK)
	{
		size_t part = block_count(first, count);
		for (size_t k = 0; k < width; ++k)
		{
			join(&columns[k], 4, first, part, found[k]);
		}
		weave(found, width, part, rows_out + first * width);
	}
}

#define NAME_OF(set) sand_planes_##set
#define PLANES_OF(set) NAME_OF(set)
#define TEXT_OF(set) #set
#define PLANES_TEXT(set) TEXT_OF(set)

extern const SandPlanes PLANES_OF(SAND_KERNEL);
const SandPlanes PLANES_OF(SAND_KERNEL) = {PLANES_TEXT(SAND_KERNEL), zip, add_up, grid, half, turn, exact};

// The baseline build, which runs everywhere, also chooses.
#ifdef SAND_KERNEL_CHOOSES
#ifdef SAND_HAS_AVX2
extern const SandPlanes sand_planes_avx2;
#endif

const SandPlanes *sand_planes_find(const char *name_wanted)
{
#ifdef SAND_HAS_AVX2
	if ((name_wanted == NULL || strcmp(name_wanted, "avx2") == 0) && __builtin_cpu_supports("avx2"))
	{
		return &sand_planes_avx2;
	}
#endif
	return name_wanted == NULL || strcmp(name_wanted, "baseline") == 0 ? &sand_planes_baseline : NULL;
}
#endif
