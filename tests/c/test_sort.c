// Tests of sort: ascending, stable, and the same for every thread count.
#include "sort.h"
#include "test.h"

static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	v = (v ^ v >> 27) * UINT64_C(0x94D049BB133111EB);
	return v ^ v >> 31;
}

// Values are the places before sorting, so that stability shows.
static int faults_of(SandSorter *sorter, SandPool *pool, int count, int key_bits)
{
	uint64_t *records = sand_sorter_records(sorter), sum = 0;
	for (int i = 0; i < count; ++i)
	{
		uint64_t key = mix((uint64_t)i + 7) & ((UINT64_C(1) << key_bits) - 1);
		records[i] = key << 32 | (uint32_t)i;
		sum += mix(records[i]);
	}
	const uint64_t *sorted = sand_sort(sorter, count, key_bits, pool);
	int faults = 0;
	for (int i = 0; i < count; ++i)
	{
		// Key, then place: whole records ascend.
		faults += i > 0 && sorted[i] <= sorted[i - 1];
		sum -= mix(sorted[i]);
	}
	return faults + (sum != 0);
}

static void records_ascend_and_keep_their_order_within_a_key(void)
{
	enum
	{
		LIMIT = 300000
	};
	static const int counts[] = {0, 1, 2, 63, 2047, 2048, 4099, 131072, LIMIT};
	SandError err = {0};
	SandSorter *sorter = NULL;
	CHECK_STATUS(sand_sorter_create(LIMIT, &sorter, &err), SAND_OK, &err);
	for (int threads = 1; threads <= 5; threads += 2)
	{
		SandPool *pool = NULL;
		CHECK_STATUS(sand_pool_create(threads, &pool, &err), SAND_OK, &err);
		for (int i = 0; i < (int)(sizeof(counts) / sizeof(counts[0])); ++i)
		{
			CHECK_INT(faults_of(sorter, pool, counts[i], 1), 0);
			CHECK_INT(faults_of(sorter, pool, counts[i], 10), 0);
			CHECK_INT(faults_of(sorter, pool, counts[i], 23), 0);
			CHECK_INT(faults_of(sorter, pool, counts[i], 32), 0);
		}
		sand_pool_destroy(pool);
	}
	sand_sorter_destroy(sorter);
}

static void equal_keys_stay_as_they_are(void)
{
	SandError err = {0};
	SandSorter *sorter = NULL;
	SandPool *pool = NULL;
	CHECK_STATUS(sand_sorter_create(5000, &sorter, &err), SAND_OK, &err);
	CHECK_STATUS(sand_pool_create(2, &pool, &err), SAND_OK, &err);
	uint64_t *records = sand_sorter_records(sorter);
	for (uint32_t i = 0; i < 5000; ++i)
	{
		records[i] = UINT64_C(12345) << 32 | (4999 - i);
	}
	const uint64_t *sorted = sand_sort(sorter, 5000, 20, pool);
	int wrong = 0;
	for (uint32_t i = 0; i < 5000; ++i)
	{
		wrong += (uint32_t)sorted[i] != 4999 - i;
	}
	CHECK_INT(wrong, 0);
	sand_pool_destroy(pool);
	sand_sorter_destroy(sorter);
}

static void failed_allocations_are_reported(void)
{
	size_t before = sand_alloc_bytes();
	for (uint64_t countdown = 1; countdown <= 4; ++countdown)
	{
		SandError err = {0};
		SandSorter *sorter = NULL;
		sand_alloc_fail_after(countdown, false);
		CHECK_STATUS(sand_sorter_create(100, &sorter, &err), SAND_ERROR_MEMORY, &err);
		CHECK(sorter == NULL);
		CHECK_INT(sand_alloc_bytes(), before);
	}
	sand_sorter_destroy(NULL);
}

void test_sort(void)
{
	RUN(records_ascend_and_keep_their_order_within_a_key);
	RUN(equal_keys_stay_as_they_are);
	RUN(failed_allocations_are_reported);
}
