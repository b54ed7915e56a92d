// Tests of planes: what each loop makes of bytes, number by number, and the same bits from every build.
#include "planes.h"

#include "test.h"

#define ROWS 1500 // two blocks and a part, an even number of them
static unsigned char bytes[SAND_PLANES_WIDTH][SAND_PLANES_WORD][ROWS];
static SandPlanesColumn columns[SAND_PLANES_WIDTH];
static const size_t counts[] = {0, 1, 2, 3, 17, 511, 512, 513, 1023, 1024, 1499, ROWS};
static const char *const builds[] = {"baseline", "avx2"};

static void fill_bytes(void)
{
	for (size_t k = 0; k < SAND_PLANES_WIDTH; ++k)
	{
		for (size_t i = 0; i < SAND_PLANES_WORD; ++i)
		{
			for (size_t row = 0; row < ROWS; ++row)
			{
				bytes[k][i][row] = (unsigned char)(256 * sand_random(11 + i, SAND_PLANES_WIDTH * row + k));
			}
			columns[k].bytes[i] = bytes[k][i];
		}
	}
}

static uint32_t word_at(size_t column, size_t row, uint32_t word_bytes)
{
	uint32_t word = 0;
	for (uint32_t i = 0; i < word_bytes; ++i)
	{
		word |= (uint32_t)bytes[column][i][row] << 8 * i;
	}
	return word;
}

static uint32_t bits_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

/// What each build makes of the first count rows against expected, bit for bit, and that nothing behind is touched.
static void check_rows(const uint32_t *found, const uint32_t *expected, size_t count)
{
	size_t wrong_count = 0;
	for (size_t i = 0; i < count; ++i)
	{
		wrong_count += found[i] != expected[i];
	}
	CHECK_INT(wrong_count, 0);
	CHECK_INT(found[count], 0xABABABAB);
}

static uint32_t found_rows[SAND_PLANES_WIDTH * ROWS + 1], expected_rows[SAND_PLANES_WIDTH * ROWS];

/// A build that runs here and a number of rows. Zero is before the first.
typedef struct Case
{
	size_t number;
	const SandPlanes *loops;
	size_t count;
} Case;

static bool next_case(Case *at)
{
	const size_t count_count = sizeof counts / sizeof counts[0];
	do
	{
		if (at->number == count_count * (sizeof builds / sizeof builds[0]))
		{
			return false;
		}
		at->loops = sand_planes_find(builds[at->number / count_count]);
		at->count = counts[at->number % count_count];
		at->number++;
	} while (at->loops == NULL);
	memset(found_rows, 0xAB, sizeof found_rows);
	return true;
}

static void a_build_is_found_by_name(void)
{
	CHECK(strcmp(sand_planes_find("baseline")->name, "baseline") == 0);
	CHECK(sand_planes_find("abacus") == NULL);
	CHECK(sand_planes_find(NULL) != NULL);
}

static void bytes_are_zipped_in_turn(void)
{
	fill_bytes();
	unsigned char found[ROWS + 1];
	for (Case at = {0}; next_case(&at);)
	{
		memset(found, 0xAB, sizeof found);
		at.loops->zip(bytes[0][0], bytes[1][0], at.count, found);
		size_t wrong_count = 0;
		for (size_t i = 0; i < at.count; ++i)
		{
			wrong_count += found[i] != bytes[i % 2][0][i / 2];
		}
		CHECK_INT(wrong_count, 0);
		CHECK_INT(found[at.count], 0xAB);
	}
}

static void differences_add_up_within_their_word(void)
{
	fill_bytes();
	static unsigned char sums[SAND_PLANES_WORD][ROWS];
	for (uint32_t word_bytes = 1; word_bytes <= 4; ++word_bytes)
	{
		for (Case at = {0}; next_case(&at);)
		{
			unsigned char *places[SAND_PLANES_WORD] = {sums[0], sums[1], sums[2], sums[3]};
			at.loops->add_up(&columns[0], word_bytes, at.count, places);
			uint64_t sum = 0;
			size_t wrong_count = 0;
			for (size_t i = 0; i < at.count; ++i)
			{
				uint64_t word = word_at(0, i, word_bytes);
				sum += word % 2 == 0 ? word / 2 : UINT64_MAX - word / 2; // -2d - 1 stands for d
				for (uint32_t k = 0; k < word_bytes; ++k)
				{
					wrong_count += sums[k][i] != (unsigned char)(sum >> 8 * k);
				}
			}
			CHECK_INT(wrong_count, 0);
		}
	}
}

static void a_grid_is_its_planes_times_the_step(void)
{
	fill_bytes();
	for (size_t width = 1; width <= 3; ++width)
	{
		for (uint32_t word_bytes = 1; word_bytes <= 4; ++word_bytes)
		{
			SandPlanesGrid grid = {word_bytes, 1.15e-4, {-20000, 3, INT32_MIN}};
			for (size_t i = 0; i < width * ROWS; ++i)
			{
				size_t k = i % width;
				int64_t place = grid.origin[k] + (int64_t)word_at(k, i / width, word_bytes);
				expected_rows[i] = bits_of((float)((double)place * grid.step));
			}
			for (Case at = {0}; next_case(&at);)
			{
				at.loops->grid(columns, width, &grid, at.count, (void *)found_rows);
				check_rows(found_rows, expected_rows, at.count * width);
			}
		}
	}
}

static void a_half_is_its_sixteen_bits(void)
{
	fill_bytes();
	for (size_t width = 1; width <= SAND_PLANES_WIDTH; ++width)
	{
		for (size_t i = 0; i < width * ROWS; ++i)
		{
			// 1 sign, 5 bits of exponent, 10 of mantissa; the writer makes no infinities, files may.
			uint32_t word = word_at(i % width, i / width, 2), exponent = word >> 10 & 31u, mantissa = word & 1023u;
			double value = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024.0 + mantissa, (int)exponent - 25);
			expected_rows[i] = bits_of((float)(word >> 15 != 0 ? -value : value));
		}
		for (Case at = {0}; next_case(&at);)
		{
			at.loops->half(columns, width, at.count, (void *)found_rows);
			check_rows(found_rows, expected_rows, at.count * width);
		}
	}
}

static void a_turn_is_a_unit_quaternion_of_its_three_smaller_numbers(void)
{
	fill_bytes();
	for (size_t row = 0; row < ROWS; ++row)
	{
		uint32_t word = word_at(0, row, 4), largest = word >> 30;
		const float scale = (float)(1.0 / (SAND_PLANES_TURN_SCALE * SAND_PLANES_TURN_HALF));
		float small[3], q[4];
		for (uint32_t k = 0; k < 3; ++k)
		{
			small[k] = (float)((int32_t)(word >> 10 * k & 1023u) - SAND_PLANES_TURN_HALF) * scale;
			q[(largest + 1 + k) % 4] = small[k];
		}
		float rest = 1.0f - (small[0] * small[0] + small[1] * small[1] + small[2] * small[2]);
		q[largest] = sqrtf(rest > 0 ? rest : 0);
		memcpy(expected_rows + 4 * row, q, sizeof q);
	}
	for (Case at = {0}; next_case(&at);)
	{
		at.loops->turn(columns, at.count, (void *)found_rows);
		check_rows(found_rows, expected_rows, 4 * at.count);
	}
}

static void exact_words_are_their_bits(void)
{
	fill_bytes();
	for (size_t width = 1; width <= SAND_PLANES_WIDTH; ++width)
	{
		for (size_t i = 0; i < width * ROWS; ++i)
		{
			expected_rows[i] = word_at(i % width, i / width, 4);
		}
		for (Case at = {0}; next_case(&at);)
		{
			at.loops->exact(columns, width, at.count, found_rows);
			check_rows(found_rows, expected_rows, at.count * width);
		}
	}
}

void test_planes(void)
{
	RUN(a_build_is_found_by_name);
	RUN(bytes_are_zipped_in_turn);
	RUN(differences_add_up_within_their_word);
	RUN(a_grid_is_its_planes_times_the_step);
	RUN(a_half_is_its_sixteen_bits);
	RUN(a_turn_is_a_unit_quaternion_of_its_three_smaller_numbers);
	RUN(exact_words_are_their_bits);
}
