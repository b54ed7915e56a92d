// Tests of base: sentences, memory, hash, random numbers.
#include "test.h"

static void failure_carries_status_and_sentence(void)
{
	SandError err = {0};
	CHECK(sand_fail(&err, SAND_ERROR_MESH, "Mesh '%s' has %d open edges", "Cube", 12) == SAND_ERROR_MESH);
	CHECK(err.status == SAND_ERROR_MESH);
	CHECK(strcmp(err.message, "Mesh 'Cube' has 12 open edges") == 0);
	CHECK(sand_fail(NULL, SAND_ERROR_IO, "no place to put it") == SAND_ERROR_IO);
}

static void long_sentence_is_cut_not_overrun(void)
{
	SandError err = {0};
	char text[2 * SAND_MESSAGE_BYTES];
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	sand_fail(&err, SAND_ERROR_ARGUMENT, "%s", text);
	CHECK_INT(strlen(err.message), SAND_MESSAGE_BYTES - 1);
}

static void every_status_has_a_name(void)
{
	for (int i = 0; i < SAND_STATUS_COUNT; ++i)
	{
		CHECK(strcmp(sand_status_name((SandStatus)i), "unknown") != 0);
	}
	CHECK(strcmp(sand_status_name(SAND_STATUS_COUNT), "unknown") == 0);
}

static void memory_is_zeroed_aligned_and_counted(void)
{
	size_t before = sand_alloc_bytes();
	unsigned char *block = sand_alloc(1000, 3);
	CHECK(block != NULL && (uintptr_t)block % 64 == 0);
	int sum = 0;
	for (int i = 0; i < 3000; ++i)
	{
		sum += block[i];
	}
	CHECK_INT(sum, 0);
	CHECK(sand_alloc_bytes() >= before + 3000);
	sand_free(block);
	CHECK_INT(sand_alloc_bytes(), before);
	sand_free(sand_alloc(0, 8));
	sand_free(NULL);
	CHECK_INT(sand_alloc_bytes(), before);
}

static void impossible_sizes_are_refused(void)
{
	CHECK(sand_alloc(SIZE_MAX, 2) == NULL);
	CHECK(sand_alloc(SIZE_MAX, 1) == NULL);
	CHECK(sand_alloc(SIZE_MAX / 2, 2) == NULL);
}

static void chosen_allocation_fails(void)
{
	sand_alloc_fail_after(2, false);
	void *first = sand_alloc(1, 1), *second = sand_alloc(1, 1), *third = sand_alloc(1, 1);
	CHECK(first != NULL && second == NULL && third != NULL);
	sand_alloc_fail_after(1, true);
	CHECK(sand_alloc(1, 1) == NULL);
	CHECK(sand_alloc(1, 1) == NULL);
	sand_alloc_fail_after(0, false);
	sand_free(first);
	sand_free(third);
}

static void hash_depends_on_every_byte_and_the_seed(void)
{
	unsigned char bytes[64] = {0};
	uint64_t empty = sand_hash64(bytes, 64, 0);
	CHECK(sand_hash64(bytes, 64, 1) != empty);
	for (int i = 0; i < 64; ++i)
	{
		bytes[i] = 1;
		CHECK(sand_hash64(bytes, 64, 0) != empty);
		bytes[i] = 0;
	}
	CHECK(sand_hash64(bytes, 64, 0) == empty);
}

static void random_numbers_are_even_and_repeatable(void)
{
	// 100,000 numbers in 10 bins: the spread of a bin is sqrt(n p q) = 95, five of it is 475.
	int bins[10] = {0};
	for (uint64_t i = 0; i < 100000; ++i)
	{
		double value = sand_random(7, i);
		CHECK(value >= 0 && value < 1);
		++bins[(int)(10 * value)];
	}
	for (int i = 0; i < 10; ++i)
	{
		CHECK_NEAR(bins[i], 10000, 475);
	}
	CHECK(sand_random(7, 5) == sand_random(7, 5));
	CHECK(sand_random(7, 5) != sand_random(8, 5));
}

static void non_finite_numbers_are_found(void)
{
	float values[3] = {1, 2, 3};
	CHECK(sand_is_finite(values, 3));
	values[2] = NAN;
	CHECK(!sand_is_finite(values, 3));
	CHECK(sand_is_finite(values, 2));
	values[0] = INFINITY;
	CHECK(!sand_is_finite(values, 1));
}

void test_base(void)
{
	RUN(failure_carries_status_and_sentence);
	RUN(long_sentence_is_cut_not_overrun);
	RUN(every_status_has_a_name);
	RUN(memory_is_zeroed_aligned_and_counted);
	RUN(impossible_sizes_are_refused);
	RUN(chosen_allocation_fails);
	RUN(hash_depends_on_every_byte_and_the_seed);
	RUN(random_numbers_are_even_and_repeatable);
	RUN(non_finite_numbers_are_found);
}
