// base: what every room stands on: status and sentence, memory, hash, clock.
// Comes in: nothing. Goes out: the functions of base.h.
#include "base.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

SandStatus sand_fail(SandError *err, SandStatus status, const char *format, ...)
{
	if (err != NULL)
	{
		err->status = status;
		err->os_error = 0;
		va_list args;
		va_start(args, format);
		vsnprintf(err->message, sizeof(err->message), format, args);
		va_end(args);
	}
	return status;
}

SandStatus sand_fail_memory(SandError *err, size_t bytes, const char *purpose)
{
	return sand_fail(err, SAND_ERROR_MEMORY,
	                 "Out of memory: %.1f MiB for %s could not be had; close other programs or use fewer grains",
	                 (double)bytes / 1048576.0, purpose);
}

const char *sand_status_name(SandStatus status)
{
	static const char *const names[SAND_STATUS_COUNT] = {
	    [SAND_OK] = "ok",
	    [SAND_ERROR_ARGUMENT] = "argument",
	    [SAND_ERROR_MESH] = "mesh",
	    [SAND_ERROR_MEMORY] = "memory",
	    [SAND_ERROR_IO] = "io",
	    [SAND_ERROR_CACHE] = "cache",
	    [SAND_ERROR_GPU] = "gpu",
	    [SAND_ERROR_GPU_MEMORY] = "gpu memory",
	    [SAND_ERROR_GPU_LOST] = "gpu lost",
	    [SAND_ERROR_UNSTABLE] = "unstable",
	    [SAND_CANCELLED] = "cancelled",
	};
	return (unsigned)status < SAND_STATUS_COUNT ? names[status] : "unknown";
}

// Each block starts with its own size, padded to the alignment, so that sand_free can keep the byte count.
#define BLOCK_ALIGNMENT 64

static atomic_size_t allocated_bytes;
static atomic_uint_fast64_t fail_countdown; // 0 = off, 1 = the next one fails
static atomic_bool fail_is_persistent;

static bool is_failure_due(void)
{
	uint_fast64_t countdown = atomic_load(&fail_countdown);
	if (countdown == 0)
	{
		return false;
	}
	if (countdown > 1)
	{
		atomic_store(&fail_countdown, countdown - 1);
		return false;
	}
	if (!atomic_load(&fail_is_persistent))
	{
		atomic_store(&fail_countdown, 0);
	}
	return true;
}

void *sand_alloc_raw(size_t count, size_t size)
{
	if (size != 0 && count > (SIZE_MAX - 2 * BLOCK_ALIGNMENT) / size)
	{
		return NULL;
	}
	if (is_failure_due())
	{
		return NULL;
	}
	size_t bytes = count * size;
	size_t block_bytes = BLOCK_ALIGNMENT + (bytes + BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
	void *block = NULL;
	if (posix_memalign(&block, BLOCK_ALIGNMENT, block_bytes) != 0)
	{
		return NULL;
	}
	memcpy(block, &block_bytes, sizeof(block_bytes));
	atomic_fetch_add(&allocated_bytes, block_bytes);
	return (char *)block + BLOCK_ALIGNMENT;
}

void *sand_alloc(size_t count, size_t size)
{
	void *memory = sand_alloc_raw(count, size);
	if (memory != NULL)
	{
		memset(memory, 0, count * size);
	}
	return memory;
}

void sand_free(void *memory)
{
	if (memory == NULL)
	{
		return;
	}
	void *block = (char *)memory - BLOCK_ALIGNMENT;
	size_t block_bytes;
	memcpy(&block_bytes, block, sizeof(block_bytes));
	atomic_fetch_sub(&allocated_bytes, block_bytes);
	free(block);
}

size_t sand_alloc_size(const void *memory)
{
	size_t block_bytes;
	memcpy(&block_bytes, (const char *)memory - BLOCK_ALIGNMENT, sizeof(block_bytes));
	return block_bytes - BLOCK_ALIGNMENT;
}

size_t sand_alloc_bytes(void)
{
	return atomic_load(&allocated_bytes);
}

void sand_alloc_fail_after(uint64_t countdown, bool is_persistent)
{
	atomic_store(&fail_is_persistent, is_persistent);
	atomic_store(&fail_countdown, countdown);
}

uint64_t sand_hash64(const void *bytes, size_t byte_count, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes, byte_count, seed);
}

double sand_ticks(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double sand_random(uint64_t seed, uint64_t index)
{
	// A 64-bit finaliser over a Weyl sequence (Steele, Lea and Flood 2014): every output bit depends on every input
	// bit.
	uint64_t z = seed * UINT64_C(0xD1342543DE82EF95) + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	z ^= z >> 31;
	return (double)(z >> 11) * 0x1p-53;
}

bool sand_is_finite(const float *values, size_t count)
{
	for (size_t i = 0; i < count; ++i)
	{
		if (!isfinite(values[i]))
		{
			return false;
		}
	}
	return true;
}
