// base: what every room stands on: status and sentence, memory, hash, clock.
// Comes in: nothing. Goes out: SandStatus, SandError, sand_alloc, sand_hash64, sand_ticks.
// Prints nothing, opens nothing, knows no other room.
#ifndef SAND_BASE_H
#define SAND_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define SAND_PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#else
#define SAND_PRINTF(format_index, first_index)
#endif

/// The one table of outcomes. py_module.c maps each to one Python exception.
typedef enum SandStatus
{
	SAND_OK = 0,
	SAND_ERROR_ARGUMENT,   // a number or count outside its range        -> ValueError
	SAND_ERROR_MESH,       // a mesh that cannot be used                 -> barchan.MeshError (a ValueError)
	SAND_ERROR_MEMORY,     // an allocation failed                       -> MemoryError
	SAND_ERROR_IO,         // the operating system refused a file call   -> OSError with errno
	SAND_ERROR_CACHE,      // a cache file that is torn, foreign, absent -> barchan.CacheError
	SAND_ERROR_GPU,        // no device, refused shader or call          -> barchan.GpuError
	SAND_ERROR_GPU_MEMORY, // more than the device can hold            -> barchan.GpuError
	SAND_ERROR_GPU_LOST,   // the driver has reset the device          -> barchan.GpuError
	SAND_ERROR_UNSTABLE,   // a grain became non-finite or too fast      -> barchan.UnstableError
	SAND_CANCELLED,        // the caller raised the cancel flag          -> barchan.Cancelled
	SAND_STATUS_COUNT
} SandStatus;

#define SAND_MESSAGE_BYTES 512

/// One failure. Zero-initialised means "no failure". The message is one UTF-8 sentence:
/// what, where, found, expected, what to do. Always NUL-terminated, cut at SAND_MESSAGE_BYTES - 1.
typedef struct SandError
{
	SandStatus status;
	int os_error; // errno of the failed call when status is SAND_ERROR_IO, else 0
	char message[SAND_MESSAGE_BYTES];
} SandError;

/// Fills err (may be NULL) and returns status, so that `return sand_fail(err, ...)` is the one way to fail.
SandStatus sand_fail(SandError *err, SandStatus status, const char *format, ...) SAND_PRINTF(3, 4);

/// "out of memory" with the size and purpose; same use as sand_fail.
SandStatus sand_fail_memory(SandError *err, size_t bytes, const char *purpose);

/// Constant name of a status ("mesh", "io", ...), never NULL.
const char *sand_status_name(SandStatus status);

/// Zeroed array of count elements, 64-byte aligned; NULL when count * size overflows or memory is short.
/// count or size 0 gives a valid pointer to free. Any thread.
void *sand_alloc(size_t count, size_t size);
/// The same, not zeroed: for large blocks that are filled at once.
void *sand_alloc_raw(size_t count, size_t size);
/// Counterpart of both; NULL is fine. Any thread.
void sand_free(void *memory);
/// Bytes that the block has room for, at least what was asked for.
size_t sand_alloc_size(const void *memory);
/// Bytes now held through sand_alloc, process-wide. Any thread. Used by leak tests and memory reports.
size_t sand_alloc_bytes(void);

/// Test seam: the allocation number `countdown` from now (1 = the next) fails, and so do all after it when
/// is_persistent. 0 switches the seam off. Process-wide; not for use while another thread allocates.
void sand_alloc_fail_after(uint64_t countdown, bool is_persistent);

/// 64-bit hash (xxHash XXH3) of bytes, chained through seed. Same value on every little-endian machine.
uint64_t sand_hash64(const void *bytes, size_t byte_count, uint64_t seed);

/// Monotonic seconds since an arbitrary start. Any thread.
double sand_ticks(void);

/// Counter-based random number in [0, 1): a pure function of (seed, index), so any order of calls and any
/// thread count gives the same sequence.
double sand_random(uint64_t seed, uint64_t index);

/// True when every one of count floats is finite.
bool sand_is_finite(const float *values, size_t count);

/// Raised by any thread, polled by the worker. Zero-initialised = not raised. Must outlive the call it is given to.
typedef struct SandCancel
{
	_Atomic int is_raised;
} SandCancel;

#endif
