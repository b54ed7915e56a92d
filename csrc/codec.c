// codec: one array of a frame as bytes, and back. Comes in: floats or whole numbers. Goes out: small pieces that can be
// decoded one by one, on any thread. Knows no file and no physics. Byte by byte: docs/cache-format.md.
// Rows become columns of unsigned words, words become planes of bytes, and each plane is kept as it is, as one repeated
// byte, or compressed: the low bytes of coordinates are noise that no codec shortens, the high ones are not.
#include "codec.h"

#include "planes.h"

#include <math.h>
#include <string.h>

#define ZSTD_STATIC_LINKING_ONLY // for the allocator of our own: its failures are tested like ours
#include <zstd.h>
#include <zstd_errors.h>

#define PIECE_ROWS (SAND_CODEC_CHUNK / 2) // of the largest level, and more than an array with one level has
#define TURN_HALF SAND_PLANES_TURN_HALF
#define TURN_SCALE SAND_PLANES_TURN_SCALE
#define PLANE_HEADER_BYTES 4
#define NOISE_SAMPLE 2048   // bytes
#define SMOOTH_SAMPLE 1024  // words
#define COMPRESSION_GAIN 16 // a plane is compressed when that saves a 16th of it, else the time is not worth it

typedef enum PlaneMode
{
	PLANE_RAW = 0,
	PLANE_ZSTD = 1,
	PLANE_CONSTANT = 2 // one byte
} PlaneMode;
#define PLANE_MODE 0xFu
#define PLANE_DELTA 0x10u // of a column's first plane: the column holds differences
#define PLANE_SIZE_SHIFT 8

_Static_assert(PIECE_ROWS >= SAND_CODEC_SMALL, "an array with one level is one piece");
_Static_assert(SAND_CODEC_COMPONENTS <= SAND_PLANES_WIDTH, "planes takes every row");

struct SandCodecScratch
{
	ZSTD_CCtx *compressor; // one of the two, the other is NULL
	ZSTD_DCtx *decompressor;
	const SandPlanes *loops;
	uint32_t stored[PIECE_ROWS];
	uint32_t column[PIECE_ROWS];
	unsigned char planes[4][PIECE_ROWS];
	unsigned char mask[PIECE_ROWS / 8];
	// Of a whole chunk, in the order of its rows unless it says otherwise; pages that are not used cost nothing.
	union
	{
		struct
		{
			uint32_t words[SAND_CODEC_CHUNK * SAND_CODEC_COMPONENTS];
			uint32_t decoded[SAND_CODEC_CHUNK * SAND_CODEC_COMPONENTS];
			float squares[SAND_CODEC_CHUNK * 3];
			unsigned char is_changed[SAND_CODEC_CHUNK]; // row by row, against the base
		};
		struct
		{
			unsigned char by_level[SAND_CODEC_COMPONENTS][SAND_PLANES_WORD][SAND_CODEC_CHUNK]; // level by level
			unsigned char by_row[SAND_CODEC_COMPONENTS][SAND_PLANES_WORD][SAND_CODEC_CHUNK];
			unsigned char half_way[2][SAND_CODEC_CHUNK / 2];
		};
	};
};

static void *zstd_alloc(void *context, size_t bytes)
{
	(void)context;
	return sand_alloc_raw(bytes, 1);
}

static void zstd_free(void *context, void *memory)
{
	(void)context;
	sand_free(memory);
}

static const ZSTD_customMem zstd_memory = {zstd_alloc, zstd_free, NULL};

SandCodecScratch *sand_codec_scratch_create(bool is_encoder)
{
	SandCodecScratch *scratch = sand_alloc_raw(1, sizeof *scratch);
	if (scratch == NULL)
	{
		return NULL;
	}
	scratch->compressor = is_encoder ? ZSTD_createCCtx_advanced(zstd_memory) : NULL;
	scratch->decompressor = is_encoder ? NULL : ZSTD_createDCtx_advanced(zstd_memory);
	scratch->loops = sand_planes_find(NULL);
	if (scratch->compressor == NULL && scratch->decompressor == NULL)
	{
		sand_free(scratch);
		return NULL;
	}
	return scratch;
}

/// Only long matches, of seven bytes or more: planes of coordinates have none but by chance, what shrinks them is the
/// entropy coder, and each short match takes longer to decode than it saves. False without memory.
static bool set_level(SandCodecScratch *scratch, int level)
{
	// A plane that did not fit has left a session open, in which no parameter may be set.
	return !ZSTD_isError(ZSTD_CCtx_reset(scratch->compressor, ZSTD_reset_session_only)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(scratch->compressor, ZSTD_c_compressionLevel, level)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(scratch->compressor, ZSTD_c_minMatch, 7)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(scratch->compressor, ZSTD_c_contentSizeFlag, 0));
}

void sand_codec_scratch_destroy(SandCodecScratch *scratch)
{
	if (scratch != NULL)
	{
		ZSTD_freeCCtx(scratch->compressor);
		ZSTD_freeDCtx(scratch->decompressor);
		sand_free(scratch);
	}
}

// Which rows are where

uint32_t sand_codec_level_count(uint32_t row_count)
{
	return row_count < SAND_CODEC_SMALL ? 1 : SAND_CODEC_LEVELS;
}

uint32_t sand_codec_chunk_count(uint32_t row_count)
{
	return row_count / SAND_CODEC_CHUNK + (row_count % SAND_CODEC_CHUNK != 0);
}

typedef struct Level
{
	uint32_t first; // row within the chunk
	uint32_t stride;
	uint32_t count;
} Level;

static Level level_of(uint32_t row_count, uint32_t chunk, uint32_t level)
{
	uint32_t left = row_count - chunk * SAND_CODEC_CHUNK;
	uint32_t rows = left < SAND_CODEC_CHUNK ? left : SAND_CODEC_CHUNK;
	if (sand_codec_level_count(row_count) == 1)
	{
		return (Level){0, 1, rows};
	}
	uint32_t top = 1u << (SAND_CODEC_LEVELS - 1);
	Level found = {.first = level == 0 ? 0 : top >> level, .stride = level == 0 ? top : 2 * (top >> level)};
	found.count = rows > found.first ? (rows - found.first - 1) / found.stride + 1 : 0;
	return found;
}

uint32_t sand_codec_piece_rows(uint32_t row_count, uint32_t chunk, uint32_t level)
{
	return level_of(row_count, chunk, level).count;
}

uint32_t sand_codec_levels_for(uint32_t row_count, uint32_t every)
{
	uint32_t levels = sand_codec_level_count(row_count);
	for (uint32_t k = every; levels > 1 && k % 2 == 0; k /= 2)
	{
		--levels;
	}
	return levels;
}

static uint32_t column_count_of(const SandCodec *codec)
{
	return codec->encoding == SAND_ENCODING_TURN ? 1 : codec->component_count;
}

bool sand_codec_is_valid(const SandCodec *codec)
{
	if (codec->is_int > 1 || codec->component_count < 1 || codec->component_count > SAND_CODEC_COMPONENTS ||
	    codec->encoding >= SAND_ENCODING_COUNT ||
	    (codec->is_int == 1 && codec->encoding != SAND_ENCODING_EXACT && codec->encoding < SAND_ENCODING_ONE))
	{
		return false;
	}
	bool is_grid = codec->encoding == SAND_ENCODING_GRID;
	if (!is_grid && (codec->step != 0 || codec->origin[0] != 0 || codec->origin[1] != 0 || codec->origin[2] != 0))
	{
		return false;
	}
	switch (codec->encoding)
	{
	case SAND_ENCODING_GRID:
		return codec->component_count <= 3 && codec->word_bytes >= 1 && codec->word_bytes <= 4 &&
		       isfinite(codec->step) && codec->step > 0;
	case SAND_ENCODING_TURN:
		return codec->component_count == 4 && codec->word_bytes == 4;
	case SAND_ENCODING_HALF:
		return codec->word_bytes == 2;
	default:
		return codec->word_bytes == 4;
	}
}

// Numbers to words and back. Each encoder has its decoder beside it; what is decoded is what the error is measured on.

/// Nearest whole number, ties to even, of |x| < 2^51: the sum has no bits left for fractions.
static double nearest(double x)
{
	const double shift = 6755399441055744.0; // 1.5 * 2^52
	return (x + shift) - shift;
}

static uint32_t bits_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

static float float_of(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

/// binary16 of a float up to its largest, 65504; ties to even.
static uint32_t half_word(float value)
{
	uint32_t bits = bits_of(value);
	uint32_t sign = bits >> 16 & 0x8000u;
	uint32_t magnitude = bits & 0x7FFFFFFFu;
	// Below 2^-14 a sum with 0.5 leaves the multiple of 2^-24 in the low bits.
	uint32_t small = bits_of(float_of(magnitude) + 0.5f) - 0x3F000000u;
	uint32_t rounded = magnitude + 0xFFFu + (magnitude >> 13 & 1u);
	return sign | (magnitude < 0x38800000u ? small : (rounded - 0x38000000u) >> 13);
}

/// The nearest multiple of a quantum. shift: 1.5 * 2^23 quanta, whose sum with a small number has no finer bits;
/// numbers from limit on, 2^11 quanta, keep only multiples in binary16 anyway.
static float rounded_to(float value, float shift, float limit)
{
	float rounded = (value + shift) - shift;
	return fabsf(value) < limit ? rounded : value;
}

// Four rows at a time, in the vectors of the compiler.
typedef float Floats __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(16)));
typedef uint32_t Words __attribute__((vector_size(16)));

static Floats floats_of(const float *from)
{
	Floats found;
	memcpy(&found, from, sizeof found);
	return found;
}

static Floats choose(Ints mask, Floats yes, Floats no)
{
	return (Floats)(((Ints)yes & mask) | ((Ints)no & ~mask));
}

/// -511 to 511 steps of a small component. Beyond the last step only by rounding: the largest of four is as large.
static Floats steps_of(Floats x)
{
	const Floats shift = {0x1.8p23f, 0x1.8p23f, 0x1.8p23f, 0x1.8p23f};
	const Floats limit = {TURN_HALF, TURN_HALF, TURN_HALF, TURN_HALF};
	Floats steps = (x + shift) - shift; // nearest whole number, ties to even
	steps = choose(steps > limit, limit, steps);
	return choose(steps < -limit, -limit, steps);
}

/// Words of four unit quaternions; the squares of how far they are off, to first order, into squares_out.
static void turn_words(const float *rows, uint32_t words_out[4], float squares_out[4])
{
	Floats a = floats_of(rows), b = floats_of(rows + 4), c = floats_of(rows + 8), d = floats_of(rows + 12);
	Floats ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
	Floats cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
	Floats w = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
	Floats x = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
	Floats y = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
	Floats z = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
	const Ints no_sign = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
	Floats size_w = (Floats)((Ints)w & no_sign), size_x = (Floats)((Ints)x & no_sign);
	Floats size_y = (Floats)((Ints)y & no_sign), size_z = (Floats)((Ints)z & no_sign);
	Ints is_odd_low = size_x > size_w, is_odd_high = size_z > size_y;
	Ints is_high = choose(is_odd_high, size_z, size_y) > choose(is_odd_low, size_x, size_w);
	Ints largest = (is_high & 2) | (((is_high & is_odd_high) | (~is_high & is_odd_low)) & 1);
	// The largest and the three that follow it, in turn: w xyz, x yzw, y zwx or z wxy. Positive, by the sign of all.
	Floats own = choose(is_high, choose(is_odd_high, z, y), choose(is_odd_low, x, w));
	Floats first = choose(is_high, choose(is_odd_high, w, z), choose(is_odd_low, y, x));
	Floats second = choose(is_high, choose(is_odd_high, x, w), choose(is_odd_low, z, y));
	Floats third = choose(is_high, choose(is_odd_high, y, x), choose(is_odd_low, w, z));
	Ints sign = (Ints)own & ~no_sign;
	own = (Floats)((Ints)own & no_sign);
	first = (Floats)((Ints)first ^ sign);
	second = (Floats)((Ints)second ^ sign);
	third = (Floats)((Ints)third ^ sign);
	const float to_steps = (float)(TURN_SCALE * TURN_HALF), from_steps = (float)(1.0 / (TURN_SCALE * TURN_HALF));
	Floats s1 = steps_of(first * to_steps), s2 = steps_of(second * to_steps), s3 = steps_of(third * to_steps);
	Words word = (Words)(__builtin_convertvector(s1, Ints) + TURN_HALF) |
	             (Words)(__builtin_convertvector(s2, Ints) + TURN_HALF) << 10 |
	             (Words)(__builtin_convertvector(s3, Ints) + TURN_HALF) << 20 | (Words)largest << 30;
	Floats e1 = first - s1 * from_steps, e2 = second - s2 * from_steps, e3 = third - s3 * from_steps;
	Floats own_error = (first * e1 + second * e2 + third * e3) / own;
	Floats squares = (e1 * e1 + e2 * e2) + (e3 * e3 + own_error * own_error);
	memcpy(words_out, &word, sizeof word);
	memcpy(squares_out, &squares, sizeof squares);
}

static void turn_value(uint32_t word, float q[4])
{
	const float scale = (float)(1.0 / (TURN_SCALE * TURN_HALF));
	uint32_t largest = word >> 30;
	float a = (float)((int32_t)(word & 1023u) - TURN_HALF) * scale;
	float b = (float)((int32_t)(word >> 10 & 1023u) - TURN_HALF) * scale;
	float c = (float)((int32_t)(word >> 20 & 1023u) - TURN_HALF) * scale;
	float rest = 1.0f - (a * a + b * b + c * c);
	q[largest] = sqrtf(rest > 0 ? rest : 0);
	q[(largest + 1) & 3u] = a;
	q[(largest + 2) & 3u] = b;
	q[(largest + 3) & 3u] = c;
}

// Planning

#define LANES 12 // a multiple of 1, 2, 3 and 4: the compiler takes several at a time

/// Least and greatest number per component, of 1 to 3. False when one is not finite.
static bool find_range(const float *rows, uint32_t row_count, uint32_t width, float low_out[3], float high_out[3])
{
	float low[LANES], high[LANES];
	uint32_t bad[LANES] = {0};
	for (uint32_t k = 0; k < LANES; ++k)
	{
		low[k] = INFINITY;
		high[k] = -INFINITY;
	}
	size_t count = (size_t)row_count * width, i = 0;
	for (; i + LANES <= count; i += LANES)
	{
		for (uint32_t k = 0; k < LANES; ++k)
		{
			float value = rows[i + k];
			low[k] = value < low[k] ? value : low[k];
			high[k] = value > high[k] ? value : high[k];
			bad[k] |= fabsf(value) <= 3e38f ? 0u : 1u;
		}
	}
	for (; i < count; ++i)
	{
		uint32_t k = (uint32_t)(i % LANES);
		low[k] = rows[i] < low[k] ? rows[i] : low[k];
		high[k] = rows[i] > high[k] ? rows[i] : high[k];
		bad[k] |= fabsf(rows[i]) <= 3e38f ? 0u : 1u;
	}
	bool is_finite = true;
	for (uint32_t k = 0; k < LANES; ++k)
	{
		uint32_t own = k % width;
		low_out[own] = k < width || low[k] < low_out[own] ? low[k] : low_out[own];
		high_out[own] = k < width || high[k] > high_out[own] ? high[k] : high_out[own];
		is_finite = is_finite && bad[k] == 0;
	}
	return is_finite;
}

static bool plan_grid(SandCodec *codec, const float *rows, uint32_t row_count, double tolerance)
{
	// A row moves by at most half the diagonal of a cell. The step is a little smaller than that allows: the decoded
	// number is rounded to float.
	codec->step = tolerance * 1.15;
	if (codec->component_count > 3 || !(codec->step > 0) || !isfinite(codec->step))
	{
		return false;
	}
	float low[3] = {0}, high[3] = {0};
	uint32_t width = codec->component_count;
	bool is_finite = find_range(rows, row_count, width, low, high);
	double span = 0;
	for (uint32_t k = 0; k < width && is_finite && row_count > 0; ++k)
	{
		// As encode_grid has it.
		double first = (double)low[k] * (1.0 / codec->step), last = (double)high[k] * (1.0 / codec->step);
		// Beyond 2^23 planes from the origin a float is coarser than the grid.
		if (!(fabs(first) < 0x1p23 && fabs(last) < 0x1p23))
		{
			return false;
		}
		codec->origin[k] = (int32_t)nearest(first);
		span = fmax(span, nearest(last) - codec->origin[k]);
	}
	codec->word_bytes = span < 0x1p8 ? 1 : span < 0x1p16 ? 2 : 3;
	return is_finite;
}

static bool plan_half(SandCodec *codec, const float *rows, uint32_t row_count, double tolerance)
{
	codec->word_bytes = 2;
	// Half the diagonal of a cell again. What binary16 cannot hold is not worth a quantum, nor is what it keeps anyway.
	bool is_used = tolerance >= 0x1p-20 && tolerance <= 0x1p10;
	codec->quantum = is_used ? (float)exp2(floor(log2(1.15 * tolerance))) : 0;
	uint32_t bad = 0;
	for (size_t i = 0; i < (size_t)row_count * codec->component_count; ++i)
	{
		bad |= fabsf(rows[i]) <= 65504.0f ? 0u : 1u; // a NaN is not
	}
	return bad == 0;
}

static bool plan_turn(SandCodec *codec, const float *rows, uint32_t row_count)
{
	codec->word_bytes = 4;
	if (codec->component_count != 4)
	{
		return false;
	}
	uint32_t bad = 0;
	for (size_t i = 0; i < row_count; ++i)
	{
		const float *q = rows + 4 * i;
		float square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
		bad |= fabsf(square - 1.0f) <= 1e-4f ? 0u : 1u;
	}
	return bad == 0;
}

void sand_codec_plan(SandCodec *codec, const void *rows, uint32_t row_count, double tolerance)
{
	codec->step = 0;
	codec->quantum = 0;
	memset(codec->origin, 0, sizeof codec->origin);
	codec->word_bytes = 4;
	bool is_good = codec->is_int == 0;
	if (codec->encoding == SAND_ENCODING_GRID)
	{
		is_good = is_good && plan_grid(codec, rows, row_count, tolerance);
	}
	else if (codec->encoding == SAND_ENCODING_TURN)
	{
		is_good = is_good && plan_turn(codec, rows, row_count);
	}
	else if (codec->encoding == SAND_ENCODING_HALF)
	{
		is_good = is_good && plan_half(codec, rows, row_count, tolerance);
	}
	else
	{
		is_good = false;
	}
	if (!is_good)
	{
		codec->encoding = SAND_ENCODING_EXACT;
		codec->step = 0;
		memset(codec->origin, 0, sizeof codec->origin);
		codec->word_bytes = 4;
	}
}

// Encoding

size_t sand_codec_chunk_bound(const SandCodec *codec, uint32_t row_count, uint32_t chunk)
{
	size_t bytes = 0;
	size_t plane_count = (size_t)column_count_of(codec) * codec->word_bytes;
	for (uint32_t level = 0; level < sand_codec_level_count(row_count); ++level)
	{
		size_t rows = sand_codec_piece_rows(row_count, chunk, level);
		bytes += plane_count * (PLANE_HEADER_BYTES + rows) + PLANE_HEADER_BYTES + (rows + 7) / 8;
	}
	return bytes;
}

static size_t put_header(unsigned char *bytes, uint32_t mode, uint32_t size)
{
	uint32_t header = mode | size << PLANE_SIZE_SHIFT;
	memcpy(bytes, &header, sizeof header);
	return PLANE_HEADER_BYTES;
}

static bool is_constant(const unsigned char *plane, size_t count)
{
	return count > 0 && memcmp(plane, plane + 1, count - 1) == 0;
}

/// True when a sample of the bytes is as even as noise: two of them are equal about as often as by chance.
static bool is_noise(const unsigned char *plane, size_t count)
{
	if (count < NOISE_SAMPLE)
	{
		return false;
	}
	uint16_t counts[2][256] = {{0}}; // two, so that equal neighbours do not wait for each other
	uint64_t sample = NOISE_SAMPLE, pairs = 0;
	for (size_t i = 0; i < NOISE_SAMPLE; i += 2)
	{
		counts[0][plane[i]]++;
		counts[1][plane[i + 1]]++;
	}
	for (size_t i = 0; i < 256; ++i)
	{
		uint32_t both = (uint32_t)counts[0][i] + counts[1][i];
		pairs += both * both;
	}
	// With 7.5 bits of 8 in a byte, the least that pays, it would be 1.4 times.
	return pairs * 100 < (sample + sample * (sample - 1) / 256) * 115;
}

/// Writes one plane, header first; returns its bytes, SIZE_MAX without memory.
static size_t put_plane(SandCodecScratch *scratch, const unsigned char *plane, size_t count, uint32_t flags, int level,
                        bool is_raw, unsigned char *bytes)
{
	if (is_constant(plane, count))
	{
		bytes[PLANE_HEADER_BYTES] = plane[0];
		return put_header(bytes, PLANE_CONSTANT | flags, 1) + 1;
	}
	if (level != 0 && count >= 64 && !is_raw)
	{
		size_t room = count - count / COMPRESSION_GAIN;
		size_t size = ZSTD_compress2(scratch->compressor, bytes + PLANE_HEADER_BYTES, room, plane, count);
		if (!ZSTD_isError(size))
		{
			return put_header(bytes, PLANE_ZSTD | flags, (uint32_t)size) + size;
		}
		if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation)
		{
			return SIZE_MAX;
		}
	}
	memcpy(bytes + PLANE_HEADER_BYTES, plane, count);
	return put_header(bytes, PLANE_RAW | flags, (uint32_t)count) + count;
}

/// True when neighbours differ by much less than the numbers among themselves, in a sample from the middle.
static bool is_smooth(const uint32_t *words, uint32_t count)
{
	uint32_t sample = count < SMOOTH_SAMPLE ? count : SMOOTH_SAMPLE;
	words += (count - sample) / 2;
	uint64_t step_sum = 0, spread_sum = 0, sum = 0;
	for (uint32_t i = 0; i < sample; ++i)
	{
		sum += words[i];
	}
	uint32_t middle = sample > 0 ? (uint32_t)(sum / sample) : 0;
	for (uint32_t i = 1; i < sample; ++i)
	{
		step_sum += words[i] > words[i - 1] ? words[i] - words[i - 1] : words[i - 1] - words[i];
		spread_sum += words[i] > middle ? words[i] - middle : middle - words[i];
	}
	return step_sum < spread_sum / 2;
}

/// Differences of neighbours, small ones of either sign as small numbers, within the bits of mask.
static void to_differences(uint32_t *words, uint32_t count, uint32_t mask)
{
	uint32_t top = mask ^ mask >> 1; // the sign's bit
	uint32_t before = 0;
	for (uint32_t i = 0; i < count; ++i)
	{
		uint32_t difference = (words[i] - before) & mask;
		before = words[i];
		words[i] = (difference & top ? ~(difference << 1) : difference << 1) & mask;
	}
}

static void from_differences(uint32_t *words, uint32_t count, uint32_t mask)
{
	for (uint32_t i = 0; i < count; ++i)
	{
		words[i] = words[i] >> 1 ^ (0u - (words[i] & 1u)); // d of 2d, ~d of 2d + 1
	}
	uint32_t value = 0; // higher bits than the mask's carry nothing into it
	for (uint32_t i = 0; i < count; ++i)
	{
		value += words[i];
		words[i] = value & mask;
	}
}

/// One column of count words; returns its bytes, SIZE_MAX without memory.
static size_t put_column(SandCodecScratch *scratch, const SandCodec *codec, uint32_t *words, uint32_t count, int level,
                         unsigned char *bytes)
{
	uint32_t mask = UINT32_MAX >> (32 - 8 * codec->word_bytes);
	bool may_differ = level != 0 && (codec->is_int == 1 || codec->encoding == SAND_ENCODING_GRID);
	uint32_t flags = may_differ && is_smooth(words, count) ? PLANE_DELTA : 0;
	if (flags != 0)
	{
		to_differences(words, count, mask);
	}
	size_t total = 0;
	for (uint32_t plane = 0; plane < codec->word_bytes; ++plane)
	{
		unsigned char *place = scratch->planes[0];
		for (uint32_t i = 0; i < count; ++i)
		{
			place[i] = (unsigned char)(words[i] >> 8 * plane);
		}
		// Exact numbers may repeat themselves in ways that a count of bytes does not show.
		bool is_plane_noise = codec->encoding != SAND_ENCODING_EXACT && is_noise(place, count);
		size_t size = put_plane(scratch, place, count, plane == 0 ? flags : 0, level, is_plane_noise, bytes + total);
		if (size == SIZE_MAX)
		{
			return SIZE_MAX;
		}
		total += size;
	}
	return total;
}

/// The bits of a float that is not negative grow with it: a maximum of whole numbers, which compilers take in lanes.
static uint32_t larger(uint32_t a, uint32_t b)
{
	return (int32_t)a > (int32_t)b ? a : b;
}

// The rows of a chunk in order: words and the bits that a reader will see. Each returns the largest error, for
// sand_codec_encode to make a distance or angle of.

/// Words are the planes' numbers, not yet from the origin. The square of the largest distance.
static float encode_grid(SandCodecScratch *scratch, const SandCodec *codec, const float *rows, size_t row_count)
{
	size_t width = codec->component_count, count = row_count * width;
	double per_step = 1.0 / codec->step, step = codec->step;
	uint32_t *words = scratch->words, *decoded = scratch->decoded;
	float *squares = scratch->squares;
	for (size_t i = 0; i < count; ++i)
	{
		// The plane may be the second nearest when two are as near as rounding can tell.
		double plane = nearest((double)rows[i] * per_step);
		float found = (float)(plane * step);
		float error = rows[i] - found;
		words[i] = (uint32_t)(int32_t)plane;
		decoded[i] = bits_of(found);
		squares[i] = error * error;
	}
	uint32_t largest = 0;
	for (size_t i = 0; i < row_count; ++i)
	{
		float sum = squares[width * i];
		for (size_t k = 1; k < width; ++k)
		{
			sum += squares[width * i + k];
		}
		largest = larger(largest, bits_of(sum));
	}
	return float_of(largest);
}

/// The largest difference of a component.
static float encode_half(SandCodecScratch *scratch, const SandCodec *codec, const float *rows, size_t row_count)
{
	size_t count = row_count * codec->component_count;
	float shift = 0x1.8p23f * codec->quantum, limit = 0x1p11f * codec->quantum;
	uint32_t *words = scratch->words, *decoded = scratch->decoded, largest = 0;
	for (size_t i = 0; i < count; ++i)
	{
		uint32_t word = half_word(rounded_to(rows[i], shift, limit));
		float found = sand_planes_half_value(word);
		words[i] = word;
		decoded[i] = bits_of(found);
		largest = larger(largest, bits_of(fabsf(rows[i] - found)));
	}
	return float_of(largest);
}

/// The square of the largest distance of two unit quaternions, of either sign. What is decoded only if it is wanted.
static float encode_turn(SandCodecScratch *scratch, const float *rows, size_t row_count, bool is_decoded)
{
	uint32_t *words = scratch->words, largest = 0;
	float *squares = scratch->squares;
	size_t i = 0;
	for (; i + 4 <= row_count; i += 4)
	{
		turn_words(rows + 4 * i, words + i, squares + i);
	}
	if (i < row_count)
	{
		float padded[16] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, own_squares[4];
		uint32_t own_words[4];
		memcpy(padded, rows + 4 * i, (row_count - i) * 4 * sizeof(float));
		turn_words(padded, own_words, own_squares);
		memcpy(words + i, own_words, (row_count - i) * sizeof *words);
		memcpy(squares + i, own_squares, (row_count - i) * sizeof *squares);
	}
	for (i = 0; i < row_count; ++i)
	{
		largest = larger(largest, bits_of(squares[i]));
	}
	for (i = 0; i < row_count && is_decoded; ++i)
	{
		float found[4];
		turn_value(words[i], found);
		memcpy(scratch->decoded + 4 * i, found, sizeof found);
	}
	return float_of(largest);
}

/// Which rows of the chunk differ from the base.
static void find_changed(SandCodecScratch *scratch, const uint32_t *base, const uint32_t *decoded, size_t row_count,
                         size_t width)
{
	for (size_t i = 0; i < row_count; ++i)
	{
		uint32_t difference = 0;
		for (size_t k = 0; k < width; ++k)
		{
			difference |= base[width * i + k] ^ decoded[width * i + k];
		}
		scratch->is_changed[i] = difference != 0;
	}
}

/// Marks the changed rows of a level in scratch->mask; returns how many.
static uint32_t mark_changed(SandCodecScratch *scratch, Level part)
{
	uint32_t stored_count = 0;
	memset(scratch->mask, 0, (part.count + 7) / 8);
	for (uint32_t i = 0; i < part.count; ++i)
	{
		uint32_t is_changed = scratch->is_changed[part.first + i * part.stride];
		scratch->mask[i / 8] = (unsigned char)(scratch->mask[i / 8] | is_changed << i % 8);
		stored_count += is_changed;
	}
	return stored_count;
}

/// The words of one column of a level together, of all its rows or of the changed ones.
static void gather(SandCodecScratch *scratch, const uint32_t *words, size_t width, uint32_t origin, Level part,
                   bool is_all)
{
	const uint32_t *from = words + (size_t)part.first * width;
	size_t stride = (size_t)part.stride * width;
	uint32_t *column = scratch->column;
	if (is_all)
	{
		for (uint32_t i = 0; i < part.count; ++i)
		{
			column[i] = from[i * stride] - origin;
		}
		return;
	}
	size_t count = 0;
	for (uint32_t i = 0; i < part.count; ++i)
	{
		column[count] = from[i * stride] - origin;
		count += scratch->is_changed[part.first + i * part.stride];
	}
}

size_t sand_codec_encode(SandCodecScratch *scratch, const SandCodec *codec, const void *rows, const void *base,
                         uint32_t row_count, uint32_t chunk, int zstd_level, unsigned char *bytes_out,
                         SandCodecPiece *pieces_out, void *decoded_out, double *error_out)
{
	if (zstd_level != 0 && !set_level(scratch, zstd_level))
	{
		return SIZE_MAX;
	}
	size_t width = codec->component_count, first = (size_t)chunk * SAND_CODEC_CHUNK;
	size_t count = row_count - first < SAND_CODEC_CHUNK ? row_count - first : SAND_CODEC_CHUNK;
	const float *own = (const float *)rows + first * width;
	const uint32_t *words = scratch->words, *decoded = scratch->decoded;
	switch (codec->encoding)
	{
	case SAND_ENCODING_GRID:
		*error_out = sqrt((double)encode_grid(scratch, codec, own, count));
		break;
	case SAND_ENCODING_HALF:
		*error_out = (double)encode_half(scratch, codec, own, count);
		break;
	case SAND_ENCODING_TURN:
		*error_out =
		    4 * asin(0.5 * sqrt((double)encode_turn(scratch, own, count, base != NULL || decoded_out != NULL)));
		break;
	default:
		words = decoded = (const uint32_t *)rows + first * width;
		*error_out = 0;
		break;
	}
	if (decoded_out != NULL)
	{
		memcpy((uint32_t *)decoded_out + first * width, decoded, count * width * sizeof(uint32_t));
	}
	if (base != NULL)
	{
		find_changed(scratch, (const uint32_t *)base + first * width, decoded, count, width);
	}
	uint32_t column_count = column_count_of(codec);
	size_t total = 0;
	for (uint32_t level = 0; level < sand_codec_level_count(row_count); ++level)
	{
		Level part = level_of(row_count, chunk, level);
		uint32_t stored_count = base != NULL ? mark_changed(scratch, part) : part.count;
		unsigned char *start = bytes_out + total;
		size_t size = 0;
		if (stored_count != 0 && stored_count != part.count)
		{
			size = put_plane(scratch, scratch->mask, (part.count + 7) / 8, 0, zstd_level, false, start);
		}
		for (uint32_t k = 0; k < column_count && stored_count > 0 && size != SIZE_MAX; ++k)
		{
			uint32_t origin = codec->encoding == SAND_ENCODING_GRID ? (uint32_t)codec->origin[k] : 0;
			gather(scratch, words + k, column_count, origin, part, stored_count == part.count);
			size_t more = put_column(scratch, codec, scratch->column, stored_count, zstd_level, start + size);
			size = more == SIZE_MAX ? SIZE_MAX : size + more;
		}
		if (size == SIZE_MAX)
		{
			return SIZE_MAX;
		}
		pieces_out[level] = (SandCodecPiece){sand_hash64(start, size, 0), (uint32_t)size, stored_count};
		total += size;
	}
	return total;
}

// Decoding

typedef struct Cursor
{
	const unsigned char *bytes;
	size_t left;
} Cursor;

static const char short_piece[] = "it is too short";
static const char bad_plane[] = "a plane of it is malformed";
static const char too_long[] = "it is too long";

/// Takes one plane of count bytes into place, or points at it where it lies. Returns what is wrong, or NULL.
static const char *take_plane(SandCodecScratch *scratch, Cursor *cursor, size_t count, unsigned char *place,
                              const unsigned char **plane_out, bool *is_delta_out)
{
	uint32_t header;
	if (cursor->left < PLANE_HEADER_BYTES)
	{
		return short_piece;
	}
	memcpy(&header, cursor->bytes, sizeof header);
	cursor->bytes += PLANE_HEADER_BYTES;
	cursor->left -= PLANE_HEADER_BYTES;
	size_t size = header >> PLANE_SIZE_SHIFT;
	if (size > cursor->left)
	{
		return short_piece;
	}
	const unsigned char *bytes = cursor->bytes;
	cursor->bytes += size;
	cursor->left -= size;
	*is_delta_out = (header & PLANE_DELTA) != 0;
	*plane_out = place;
	if ((header & 0xE0u) != 0)
	{
		return bad_plane;
	}
	switch (header & PLANE_MODE)
	{
	case PLANE_RAW:
		*plane_out = bytes;
		return size == count ? NULL : bad_plane;
	case PLANE_CONSTANT:
		if (size != 1)
		{
			return bad_plane;
		}
		memset(place, bytes[0], count);
		return NULL;
	case PLANE_ZSTD:
		return ZSTD_decompressDCtx(scratch->decompressor, place, count, bytes, size) == count ? NULL : bad_plane;
	default:
		return bad_plane;
	}
}

static void join_planes(const unsigned char *const planes[SAND_PLANES_WORD], uint32_t word_bytes, uint32_t count,
                        uint32_t *words)
{
	const unsigned char *a = planes[0], *b = planes[1], *c = planes[2], *d = planes[3];
	switch (word_bytes)
	{
	case 1:
		for (uint32_t i = 0; i < count; ++i)
		{
			words[i] = a[i];
		}
		break;
	case 2:
		for (uint32_t i = 0; i < count; ++i)
		{
			words[i] = a[i] | (uint32_t)b[i] << 8;
		}
		break;
	case 3:
		for (uint32_t i = 0; i < count; ++i)
		{
			words[i] = a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16;
		}
		break;
	default:
		for (uint32_t i = 0; i < count; ++i)
		{
			words[i] = a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
		}
		break;
	}
}

static const char *take_column(SandCodecScratch *scratch, const SandCodec *codec, Cursor *cursor, uint32_t count,
                               uint32_t *words)
{
	const unsigned char *planes[4] = {NULL};
	bool is_delta = false;
	for (uint32_t i = 0; i < codec->word_bytes; ++i)
	{
		bool is_marked;
		const char *complaint = take_plane(scratch, cursor, count, scratch->planes[i], &planes[i], &is_marked);
		if (complaint != NULL)
		{
			return complaint;
		}
		if (is_marked && i > 0)
		{
			return bad_plane;
		}
		is_delta = is_delta || is_marked;
	}
	join_planes(planes, codec->word_bytes, count, words);
	if (is_delta)
	{
		from_differences(words, count, UINT32_MAX >> (32 - 8 * codec->word_bytes));
	}
	return NULL;
}

/// Words to the bits of the numbers, one column. TURN has its own.
static void column_values(const SandCodec *codec, uint32_t component, uint32_t *words, uint32_t count)
{
	if (codec->encoding == SAND_ENCODING_GRID)
	{
		double origin = codec->origin[component];
		for (uint32_t i = 0; i < count; ++i)
		{
			words[i] = bits_of(sand_planes_grid_value(origin, words[i], codec->step));
		}
	}
	else if (codec->encoding == SAND_ENCODING_HALF)
	{
		for (uint32_t i = 0; i < count; ++i)
		{
			words[i] = bits_of(sand_planes_half_value(words[i]));
		}
	}
}

/// Where the stored rows go in the array of every `every`-th row; UINT32_MAX = not wanted.
static void place_rows(SandCodecScratch *scratch, Level part, uint32_t chunk, uint32_t every, const unsigned char *mask)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < part.count; ++i)
	{
		if (mask == NULL || ((uint32_t)mask[i / 8] >> i % 8 & 1u) != 0)
		{
			uint32_t row = chunk * SAND_CODEC_CHUNK + part.first + i * part.stride;
			scratch->stored[count++] = row % every == 0 ? row / every : UINT32_MAX;
		}
	}
}

/// Moves the wanted rows of a column into place.
static void scatter(const SandCodecScratch *scratch, const uint32_t *words, uint32_t count, uint32_t width,
                    uint32_t *rows_out)
{
	for (uint32_t i = 0; i < count; ++i)
	{
		if (scratch->stored[i] != UINT32_MAX)
		{
			rows_out[(size_t)scratch->stored[i] * width] = words[i];
		}
	}
}

static const char *take_mask(SandCodecScratch *scratch, Cursor *cursor, Level part, uint32_t stored_count,
                             const unsigned char **mask_out)
{
	bool is_delta = false;
	size_t bytes = (part.count + 7) / 8;
	const char *complaint = take_plane(scratch, cursor, bytes, scratch->mask, mask_out, &is_delta);
	if (complaint != NULL || is_delta)
	{
		return complaint != NULL ? complaint : bad_plane;
	}
	uint32_t count = 0;
	for (uint32_t i = 0; i < part.count; ++i)
	{
		count += (uint32_t)(*mask_out)[i / 8] >> i % 8 & 1u;
	}
	return count == stored_count ? NULL : "its mask marks another number of rows than it holds";
}

/// The beginning of every piece: its checksum and the number of its rows.
static const char *check_piece(const SandCodecPiece *piece, const unsigned char *bytes, uint32_t row_count)
{
	if (sand_hash64(bytes, piece->byte_count, 0) != piece->checksum)
	{
		return "its checksum is wrong";
	}
	if (piece->stored_count > row_count)
	{
		return "it claims more rows than there are";
	}
	return piece->stored_count > 0 || piece->byte_count == 0 ? NULL : "it holds bytes but no rows";
}

/// One piece, whatever rows it stores, into the array of every `every`-th row: each row is moved to its place.
static const char *decode_piece(SandCodecScratch *scratch, const SandCodec *codec, const SandCodecPiece *piece,
                                const unsigned char *bytes, Level part, uint32_t chunk, uint32_t every, void *rows_out)
{
	const char *complaint = check_piece(piece, bytes, part.count);
	uint32_t count = piece->stored_count;
	if (complaint != NULL || count == 0)
	{
		return complaint;
	}
	Cursor cursor = {bytes, piece->byte_count};
	const unsigned char *mask = NULL;
	complaint = count < part.count ? take_mask(scratch, &cursor, part, count, &mask) : NULL;
	if (complaint != NULL)
	{
		return complaint;
	}
	place_rows(scratch, part, chunk, every, mask);
	for (uint32_t k = 0; k < column_count_of(codec); ++k)
	{
		uint32_t *words = scratch->column;
		complaint = take_column(scratch, codec, &cursor, count, words);
		if (complaint != NULL)
		{
			return complaint;
		}
		if (codec->encoding != SAND_ENCODING_TURN)
		{
			column_values(codec, k, words, count);
			scatter(scratch, words, count, codec->component_count, (uint32_t *)rows_out + k);
			continue;
		}
		for (uint32_t i = 0; i < count; ++i)
		{
			if (scratch->stored[i] != UINT32_MAX)
			{
				turn_value(words[i], (float *)rows_out + 4 * (size_t)scratch->stored[i]);
			}
		}
	}
	return cursor.left == 0 ? NULL : too_long;
}

/// Takes one column of a piece that stores all its rows, as planes at `at` of by_level or, as they are in the file,
/// where they lie.
static const char *take_planes(SandCodecScratch *scratch, const SandCodec *codec, Cursor *cursor, uint32_t column,
                               size_t at, uint32_t count, const unsigned char *planes_out[SAND_PLANES_WORD])
{
	bool is_delta = false;
	for (uint32_t i = 0; i < codec->word_bytes; ++i)
	{
		bool is_marked;
		const char *complaint =
		    take_plane(scratch, cursor, count, scratch->by_level[column][i] + at, &planes_out[i], &is_marked);
		if (complaint != NULL || (is_marked && i > 0))
		{
			return complaint != NULL ? complaint : bad_plane;
		}
		is_delta = is_delta || is_marked;
	}
	if (is_delta)
	{
		SandPlanesColumn differences = {{planes_out[0], planes_out[1], planes_out[2], planes_out[3]}};
		unsigned char *places[SAND_PLANES_WORD] = {NULL};
		for (uint32_t i = 0; i < codec->word_bytes; ++i)
		{
			planes_out[i] = places[i] = scratch->by_level[column][i] + at;
		}
		scratch->loops->add_up(&differences, codec->word_bytes, count, places);
	}
	return NULL;
}

/// The planes of all levels of a column as one, in the order of rows; returns where it is.
static const unsigned char *order_plane(SandCodecScratch *scratch, const Level *parts, uint32_t level_count,
                                        const unsigned char *levels[SAND_CODEC_LEVELS], unsigned char *place)
{
	const unsigned char *found = levels[0];
	size_t count = parts[0].count;
	for (uint32_t level = 1; level < level_count; ++level)
	{
		count += parts[level].count;
		unsigned char *next = level + 1 == level_count ? place : scratch->half_way[level % 2];
		scratch->loops->zip(found, levels[level], count, next);
		found = next;
	}
	return found;
}

/// A chunk whose pieces store all their rows: planes are brought into the order of rows before numbers are made of
/// them.
static const char *decode_whole(SandCodecScratch *scratch, const SandCodec *codec, const SandCodecPiece *pieces,
                                const unsigned char *bytes, const Level *parts, uint32_t level_count, void *rows_out,
                                uint32_t *level_out)
{
	uint32_t column_count = column_count_of(codec);
	const unsigned char *levels[SAND_CODEC_COMPONENTS][SAND_PLANES_WORD][SAND_CODEC_LEVELS];
	size_t count = 0;
	for (uint32_t level = 0; level < level_count; ++level)
	{
		*level_out = level;
		const char *complaint = check_piece(&pieces[level], bytes, parts[level].count);
		Cursor cursor = {bytes, pieces[level].byte_count};
		for (uint32_t k = 0; k < column_count && complaint == NULL; ++k)
		{
			const unsigned char *planes[SAND_PLANES_WORD] = {NULL};
			// A level without rows has no bytes, not even of planes.
			complaint = parts[level].count > 0
			                ? take_planes(scratch, codec, &cursor, k, count, parts[level].count, planes)
			                : NULL;
			for (uint32_t i = 0; i < SAND_PLANES_WORD; ++i)
			{
				levels[k][i][level] = planes[i];
			}
		}
		if (complaint != NULL || cursor.left != 0)
		{
			return complaint != NULL ? complaint : too_long;
		}
		count += parts[level].count;
		bytes += pieces[level].byte_count;
	}
	SandPlanesColumn columns[SAND_CODEC_COMPONENTS] = {0};
	for (uint32_t k = 0; k < column_count; ++k)
	{
		for (uint32_t i = 0; i < codec->word_bytes; ++i)
		{
			columns[k].bytes[i] = order_plane(scratch, parts, level_count, levels[k][i], scratch->by_row[k][i]);
		}
	}
	SandPlanesGrid grid = {codec->word_bytes, codec->step, {codec->origin[0], codec->origin[1], codec->origin[2]}};
	switch (codec->encoding)
	{
	case SAND_ENCODING_GRID:
		scratch->loops->grid(columns, column_count, &grid, count, rows_out);
		break;
	case SAND_ENCODING_HALF:
		scratch->loops->half(columns, column_count, count, rows_out);
		break;
	case SAND_ENCODING_TURN:
		scratch->loops->turn(columns, count, rows_out);
		break;
	default:
		scratch->loops->exact(columns, column_count, count, rows_out);
		break;
	}
	return NULL;
}

const char *sand_codec_decode(SandCodecScratch *scratch, const SandCodec *codec, const SandCodecPiece *pieces,
                              const unsigned char *bytes, uint32_t row_count, uint32_t chunk, uint32_t every,
                              void *rows_out, uint32_t *level_out)
{
	uint32_t level_count = sand_codec_levels_for(row_count, every);
	Level parts[SAND_CODEC_LEVELS];
	// The rows of some levels, in order, are every 2nd, 4th .. row.
	bool is_whole = every == 1u << (sand_codec_level_count(row_count) - level_count);
	for (uint32_t level = 0; level < level_count; ++level)
	{
		parts[level] = level_of(row_count, chunk, level);
		is_whole = is_whole && pieces[level].stored_count == parts[level].count;
	}
	if (is_whole)
	{
		size_t first = (size_t)chunk * SAND_CODEC_CHUNK / every;
		return decode_whole(scratch, codec, pieces, bytes, parts, level_count,
		                    (uint32_t *)rows_out + first * codec->component_count, level_out);
	}
	const char *complaint = NULL;
	for (uint32_t level = 0; level < level_count && complaint == NULL; ++level)
	{
		*level_out = level;
		complaint = decode_piece(scratch, codec, &pieces[level], bytes, parts[level], chunk, every, rows_out);
		bytes += pieces[level].byte_count;
	}
	return complaint;
}
