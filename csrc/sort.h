// sort: records into ascending order of their key, on all threads. Comes in: records. Goes out: the same, sorted.
// Stable, and the same for every thread count: radix passes over blocks whose number does not depend on the threads.
#ifndef SAND_SORT_H
#define SAND_SORT_H

#include "pool.h"

/// A record holds its key in the upper 32 bits and a value that goes with it in the lower ones.
typedef struct SandSorter SandSorter;

/// For at most `limit` records. Holds 16 bytes for each, and half a megabyte.
SandStatus sand_sorter_create(int limit, SandSorter **sorter_out, SandError *err);
void sand_sorter_destroy(SandSorter *sorter); // NULL is fine

/// Room for the records to sort, limit of them; sand_sort may swap it: ask again after each.
uint64_t *sand_sorter_records(SandSorter *sorter);

/// Sorts the first `count` records by the lower key_bits bits of their keys; the others must be zero. Returns them.
/// pool NULL = on this thread.
const uint64_t *sand_sort(SandSorter *sorter, int count, int key_bits, SandPool *pool);

/// Key of a cell on the Morton curve, on which neighbours are mostly near each other: ten bits an axis, more is cut
/// off.
static inline uint32_t sand_morton(const int64_t cell[3])
{
	uint32_t key = 0;
	for (int k = 0; k < 3; ++k)
	{
		uint32_t v = (uint32_t)(cell[k] < 0 ? 0 : cell[k] > 1023 ? 1023 : cell[k]);
		v = (v | v << 16) & 0x030000FF;
		v = (v | v << 8) & 0x0300F00F;
		v = (v | v << 4) & 0x030C30C3;
		key |= ((v | v << 2) & 0x09249249) << k;
	}
	return key;
}

#endif
