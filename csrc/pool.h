// pool: a fixed set of worker threads that run numbered tasks.
// Comes in: a thread count. Goes out: sand_pool_run.
// Tasks are numbered by the caller, never by the thread: results that depend only on the task number are the
// same for every thread count. Own pthreads instead of OpenMP: no libgomp for users to miss.
#ifndef SAND_POOL_H
#define SAND_POOL_H

#include "base.h"

typedef struct SandPool SandPool;

/// One task. Runs on any pool thread; task_index in [0, task_count).
typedef void SandTask(void *context, int task_index);

/// thread_count 0 = one per online core, at most 64. The calling thread of sand_pool_run counts as one of them,
/// so 1 starts no thread at all. Fails with SAND_ERROR_MEMORY when a thread cannot be started.
SandStatus sand_pool_create(int thread_count, SandPool **pool_out, SandError *err);

/// Joins the threads and frees. NULL is fine. Not from inside a task.
void sand_pool_destroy(SandPool *pool);

int sand_pool_thread_count(const SandPool *pool);

/// How a pass over `count` things is cut into tasks: at most 64, none smaller than `smallest` unless it is the only
/// one. The same for every thread count.
int sand_block_count(int count, int smallest);

/// First of the things of part `part`, when `count` are cut evenly into `part_count`; part_count itself gives count.
static inline int sand_part_start(int count, int part, int part_count)
{
	return (int)((int64_t)count * part / part_count);
}

#define SAND_BLOCK_LIMIT 64

/// Runs task for 0 .. task_count-1 and returns when all are done, on this thread alone when pool is NULL. One caller at
/// a time per pool.
void sand_pool_run(SandPool *pool, SandTask *task, void *context, int task_count);

#endif
