// pool: a fixed set of worker threads that run numbered tasks.
// Comes in: a thread count. Goes out: sand_pool_run.
//
// A step of the simulator runs several short passes, thousands of times a second, so workers spin briefly for the next
// pass before they sleep; a futex round trip per pass would cost more than a small pass itself.
//
// Each thread starts with its own share of the task numbers, the same in every pass over the same count, and only then
// helps the others: so a chunk's memory stays in the cache of the core that worked on it in the last pass.
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#define THREAD_LIMIT 64
#define SPIN_COUNT 4000

// The task numbers of one thread that nobody has taken yet, on a cache line of its own.
typedef struct Share
{
	_Alignas(64) atomic_int next;
	int end;
} Share;

typedef struct Worker
{
	SandPool *pool;
	int index;
} Worker;

struct SandPool
{
	int thread_count; // including the caller of sand_pool_run
	int started_count;
	pthread_t threads[THREAD_LIMIT];
	pthread_mutex_t mutex;
	pthread_cond_t wake;

	SandTask *task;
	void *context;
	Worker workers[THREAD_LIMIT];
	Share shares[THREAD_LIMIT];
	_Alignas(64) atomic_int busy_count;  // workers that have not yet left the current run
	_Alignas(64) atomic_uint generation; // one more per run; a worker that sees a new one joins it
	atomic_bool is_stopping;
};

static void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void run_tasks(SandPool *pool, int thread)
{
	for (int i = 0; i < pool->thread_count; ++i)
	{
		Share *share = &pool->shares[(thread + i) % pool->thread_count];
		for (;;)
		{
			int index = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);
			if (index >= share->end)
			{
				break;
			}
			pool->task(pool->context, index);
		}
	}
}

static unsigned wait_for_run(SandPool *pool, unsigned seen)
{
	for (int spin = 0; spin < SPIN_COUNT; ++spin)
	{
		unsigned now = atomic_load_explicit(&pool->generation, memory_order_acquire);
		if (now != seen)
		{
			return now;
		}
		spin_pause();
	}
	pthread_mutex_lock(&pool->mutex);
	unsigned now;
	while ((now = atomic_load_explicit(&pool->generation, memory_order_acquire)) == seen)
	{
		pthread_cond_wait(&pool->wake, &pool->mutex);
	}
	pthread_mutex_unlock(&pool->mutex);
	return now;
}

static void *worker_main(void *argument)
{
	const Worker *worker = argument;
	SandPool *pool = worker->pool;
	unsigned seen = 0;
	for (;;)
	{
		seen = wait_for_run(pool, seen);
		if (atomic_load_explicit(&pool->is_stopping, memory_order_relaxed))
		{
			return NULL;
		}
		run_tasks(pool, worker->index);
		atomic_fetch_sub_explicit(&pool->busy_count, 1, memory_order_release);
	}
}

static void start_generation(SandPool *pool)
{
	pthread_mutex_lock(&pool->mutex);
	atomic_fetch_add_explicit(&pool->generation, 1, memory_order_release);
	pthread_cond_broadcast(&pool->wake);
	pthread_mutex_unlock(&pool->mutex);
}

SandStatus sand_pool_create(int thread_count, SandPool **pool_out, SandError *err)
{
	*pool_out = NULL;
	if (thread_count < 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The thread count is %d, expected 0 (all cores) or more",
		                 thread_count);
	}
	if (thread_count == 0)
	{
		long online = sysconf(_SC_NPROCESSORS_ONLN);
		thread_count = online < 1 ? 1 : online > THREAD_LIMIT ? THREAD_LIMIT : (int)online;
	}
	if (thread_count > THREAD_LIMIT)
	{
		thread_count = THREAD_LIMIT;
	}
	SandPool *pool = sand_alloc(1, sizeof(*pool));
	if (pool == NULL)
	{
		return sand_fail_memory(err, sizeof(*pool), "the thread pool");
	}
	pool->thread_count = thread_count;
	pthread_mutex_init(&pool->mutex, NULL);
	pthread_cond_init(&pool->wake, NULL);
	for (int i = 0; i < thread_count - 1; ++i)
	{
		pool->workers[i] = (Worker){pool, i + 1};
		if (pthread_create(&pool->threads[i], NULL, worker_main, &pool->workers[i]) != 0)
		{
			sand_pool_destroy(pool);
			return sand_fail(err, SAND_ERROR_MEMORY,
			                 "Only %d of %d threads could be started; ask for fewer threads or end other programs",
			                 i + 1, thread_count);
		}
		pool->started_count = i + 1;
	}
	*pool_out = pool;
	return SAND_OK;
}

void sand_pool_destroy(SandPool *pool)
{
	if (pool == NULL)
	{
		return;
	}
	atomic_store(&pool->is_stopping, true);
	start_generation(pool);
	for (int i = 0; i < pool->started_count; ++i)
	{
		pthread_join(pool->threads[i], NULL);
	}
	pthread_cond_destroy(&pool->wake);
	pthread_mutex_destroy(&pool->mutex);
	sand_free(pool);
}

int sand_pool_thread_count(const SandPool *pool)
{
	return pool->thread_count;
}

int sand_block_count(int count, int smallest)
{
	int blocks = count / smallest;
	return blocks < 1 ? 1 : blocks > SAND_BLOCK_LIMIT ? SAND_BLOCK_LIMIT : blocks;
}

void sand_pool_run(SandPool *pool, SandTask *task, void *context, int task_count)
{
	if (pool == NULL || pool->started_count == 0 || task_count == 1)
	{
		for (int i = 0; i < task_count; ++i)
		{
			task(context, i);
		}
		return;
	}
	pool->task = task;
	pool->context = context;
	for (int i = 0; i < pool->thread_count; ++i)
	{
		atomic_store_explicit(&pool->shares[i].next, sand_part_start(task_count, i, pool->thread_count),
		                      memory_order_relaxed);
		pool->shares[i].end = sand_part_start(task_count, i + 1, pool->thread_count);
	}
	atomic_store_explicit(&pool->busy_count, pool->started_count, memory_order_relaxed);
	start_generation(pool);
	run_tasks(pool, 0);
	// With more threads than free cores a worker may not be running at all: give way to it instead of burning its core.
	for (int spin = 0; atomic_load_explicit(&pool->busy_count, memory_order_acquire) != 0; ++spin)
	{
		if (spin < SPIN_COUNT)
		{
			spin_pause();
		}
		else
		{
			sched_yield();
		}
	}
}
