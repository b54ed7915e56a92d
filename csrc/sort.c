// sort: records into ascending order of their key, on all threads.
// Comes in: records of key and value. Goes out: the same, sorted by key, in their first order within a key.
#include "sort.h"

#include <string.h>

enum
{
	DIGIT_LIMIT = 11,     // bits: a block's counts stay in the first-level cache
	BLOCK_SMALLEST = 2048 // records
};

struct SandSorter
{
	int limit;
	uint64_t *from, *to;
	int32_t *counts; // per block, one per value of the digit
	// Of the pass that runs:
	int count, block_count, shift, digit_bits;
};

SandStatus sand_sorter_create(int limit, SandSorter **sorter_out, SandError *err)
{
	*sorter_out = NULL;
	SandSorter *sorter = sand_alloc(1, sizeof(*sorter));
	if (sorter != NULL)
	{
		sorter->limit = limit;
		sorter->from = sand_alloc((size_t)limit, sizeof(uint64_t));
		sorter->to = sand_alloc((size_t)limit, sizeof(uint64_t));
		sorter->counts = sand_alloc((size_t)SAND_BLOCK_LIMIT << DIGIT_LIMIT, sizeof(int32_t));
	}
	if (sorter == NULL || sorter->from == NULL || sorter->to == NULL || sorter->counts == NULL)
	{
		sand_sorter_destroy(sorter);
		return sand_fail_memory(err, (size_t)limit * 2 * sizeof(uint64_t), "the sorter");
	}
	*sorter_out = sorter;
	return SAND_OK;
}

void sand_sorter_destroy(SandSorter *sorter)
{
	if (sorter == NULL)
	{
		return;
	}
	sand_free(sorter->from);
	sand_free(sorter->to);
	sand_free(sorter->counts);
	sand_free(sorter);
}

uint64_t *sand_sorter_records(SandSorter *sorter)
{
	return sorter->from;
}

static int block_start(const SandSorter *sorter, int block)
{
	return sand_part_start(sorter->count, block, sorter->block_count);
}

static uint32_t digit_of(const SandSorter *sorter, uint64_t record)
{
	return (uint32_t)(record >> sorter->shift) & ((1u << sorter->digit_bits) - 1);
}

static void count_task(void *context, int block)
{
	const SandSorter *sorter = context;
	int32_t *counts = sorter->counts + ((size_t)block << sorter->digit_bits);
	memset(counts, 0, sizeof(int32_t) << sorter->digit_bits);
	for (int i = block_start(sorter, block), end = block_start(sorter, block + 1); i < end; ++i)
	{
		++counts[digit_of(sorter, sorter->from[i])];
	}
}

static void move_task(void *context, int block)
{
	const SandSorter *sorter = context;
	int32_t *places = sorter->counts + ((size_t)block << sorter->digit_bits);
	for (int i = block_start(sorter, block), end = block_start(sorter, block + 1); i < end; ++i)
	{
		sorter->to[places[digit_of(sorter, sorter->from[i])]++] = sorter->from[i];
	}
}

// Counts to places: all blocks' records of the lowest digit first. False when one digit has them all.
static bool find_places(SandSorter *sorter)
{
	int32_t place = 0;
	for (uint32_t digit = 0; digit < 1u << sorter->digit_bits; ++digit)
	{
		int32_t before = place;
		for (int block = 0; block < sorter->block_count; ++block)
		{
			int32_t *count = &sorter->counts[((size_t)block << sorter->digit_bits) + digit];
			int32_t here = *count;
			*count = place;
			place += here;
		}
		if (place - before == sorter->count)
		{
			return false;
		}
	}
	return true;
}

const uint64_t *sand_sort(SandSorter *sorter, int count, int key_bits, SandPool *pool)
{
	sorter->count = count;
	sorter->block_count = sand_block_count(count, BLOCK_SMALLEST);
	int pass_count = (key_bits + DIGIT_LIMIT - 1) / DIGIT_LIMIT;
	for (int pass = 0; pass < pass_count; ++pass)
	{
		// Digits of equal width, from the lowest.
		int low = key_bits * pass / pass_count;
		sorter->shift = 32 + low;
		sorter->digit_bits = key_bits * (pass + 1) / pass_count - low;
		sand_pool_run(pool, count_task, sorter, sorter->block_count);
		if (find_places(sorter))
		{
			sand_pool_run(pool, move_task, sorter, sorter->block_count);
			uint64_t *swap = sorter->from;
			sorter->from = sorter->to;
			sorter->to = swap;
		}
	}
	return sorter->from;
}
