// Tests of pool: every task runs exactly once, whatever the thread count.
#include "pool.h"
#include "test.h"

#include <stdatomic.h>

typedef struct Tally
{
	atomic_int runs[1000];
} Tally;

static void count_task(void *context, int task_index)
{
	Tally *tally = context;
	atomic_fetch_add(&tally->runs[task_index], 1);
}

static void every_task_runs_once_for_every_thread_count(void)
{
	for (int threads = 1; threads <= 9; threads += 2)
	{
		SandError err = {0};
		SandPool *pool = NULL;
		CHECK_STATUS(sand_pool_create(threads, &pool, &err), SAND_OK, &err);
		CHECK_INT(sand_pool_thread_count(pool), threads);
		for (int round = 0; round < 200; ++round)
		{
			static Tally tally;
			memset(&tally, 0, sizeof(tally));
			int task_count = round * 5 % 1001;
			sand_pool_run(pool, count_task, &tally, task_count);
			int wrong = 0;
			for (int i = 0; i < 1000; ++i)
			{
				wrong += tally.runs[i] != (i < task_count ? 1 : 0);
			}
			CHECK_INT(wrong, 0);
		}
		sand_pool_destroy(pool);
	}
}

static void without_a_pool_tasks_run_here(void)
{
	static Tally tally;
	sand_pool_run(NULL, count_task, &tally, 1000);
	int wrong = 0;
	for (int i = 0; i < 1000; ++i)
	{
		wrong += tally.runs[i] != 1;
	}
	CHECK_INT(wrong, 0);
}

static void bad_thread_counts_and_memory(void)
{
	SandError err = {0};
	SandPool *pool = NULL;
	CHECK_STATUS(sand_pool_create(-1, &pool, &err), SAND_ERROR_ARGUMENT, &err);
	sand_alloc_fail_after(1, false);
	CHECK_STATUS(sand_pool_create(1, &pool, &err), SAND_ERROR_MEMORY, &err);
	CHECK(pool == NULL);
	sand_pool_destroy(NULL);
	CHECK_STATUS(sand_pool_create(1000, &pool, &err), SAND_OK, &err);
	CHECK_INT(sand_pool_thread_count(pool), 64);
	sand_pool_destroy(pool);
}

void test_pool(void)
{
	RUN(every_task_runs_once_for_every_thread_count);
	RUN(without_a_pool_tasks_run_here);
	RUN(bad_thread_counts_and_memory);
}
