// test_lock: two bakers never share a folder, and no crash keeps one locked.
#include "lock.h"

#include "cache.h"
#include "folder.h"
#include "io.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

static char folder[FOLDER_PATH_BYTES];

static void a_held_folder_is_refused_with_its_owner(void)
{
	folder_make(folder);
	SandError err = {0};
	char note[SAND_MESSAGE_BYTES];
	SandLock *lock = NULL, *second = NULL;
	CHECK_STATUS(sand_lock_take(folder, &lock, note, &err), SAND_OK, &err);
	CHECK(note[0] == '\0');
	CHECK(folder_has(folder, SAND_CACHE_LOCK));
	CHECK_STATUS(sand_lock_take(folder, &second, note, &err), SAND_ERROR_CACHE, &err);
	CHECK(second == NULL);
	char text[32];
	snprintf(text, sizeof text, "process %ld", (long)getpid());
	CHECK_CONTAINS(err.message, text);
	CHECK_CONTAINS(err.message, "this very Blender");
	// Freeing everything leaves a held lock alone.
	CHECK_STATUS(sand_cache_free(folder, INT32_MIN, INT32_MAX, NULL, NULL, &err), SAND_OK, &err);
	CHECK(folder_has(folder, SAND_CACHE_LOCK));
	sand_lock_release(lock);
	CHECK_INT(folder_entry_count(folder), 0);
	CHECK_STATUS(sand_lock_take(folder, &second, note, &err), SAND_OK, &err);
	sand_lock_release(second);
	sand_lock_release(NULL);
	folder_remove(folder);
}

static void a_killed_owner_is_taken_over(void)
{
	folder_make(folder);
	int pipes[2];
	if (pipe(pipes) != 0)
	{
		abort();
	}
	pid_t child = fork();
	if (child == 0)
	{
		SandLock *lock = NULL;
		char ready = sand_lock_take(folder, &lock, NULL, NULL) == SAND_OK ? 'y' : 'n';
		(void)!write(pipes[1], &ready, 1);
		for (;;)
		{
			(void)pause();
		}
	}
	char ready = 0;
	CHECK(read(pipes[0], &ready, 1) == 1 && ready == 'y');
	SandError err = {0};
	char note[SAND_MESSAGE_BYTES], text[32];
	SandLock *lock = NULL;
	snprintf(text, sizeof text, "rocess %ld", (long)child);
	CHECK_STATUS(sand_lock_take(folder, &lock, note, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, text);
	CHECK(kill(child, SIGKILL) == 0);
	CHECK(waitpid(child, NULL, 0) == child);
	CHECK(folder_has(folder, SAND_CACHE_LOCK));
	CHECK_STATUS(sand_lock_take(folder, &lock, note, &err), SAND_OK, &err);
	CHECK_CONTAINS(note, text);
	CHECK_CONTAINS(note, "taken over");
	sand_lock_release(lock);
	CHECK_INT(folder_entry_count(folder), 0);
	(void)close(pipes[0]);
	(void)close(pipes[1]);
	folder_remove(folder);
}

static void a_left_lock_goes_with_the_frames(void)
{
	folder_make(folder);
	folder_put(folder, SAND_CACHE_LOCK, "barchan lock 1\npid 1\nstart 1\nboot x\nhost y\n");
	SandError err = {0};
	CHECK_STATUS(sand_cache_free(folder, INT32_MIN, INT32_MAX, NULL, NULL, &err), SAND_OK, &err);
	CHECK_INT(folder_entry_count(folder), -1);
	CHECK_STATUS(sand_lock_take(folder, &(SandLock *){NULL}, NULL, &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, ENOENT);
}

/// A file system without locks says ENOLCK: then the text decides.
static void without_the_systems_locks_the_text_decides(void)
{
	folder_make(folder);
	SandError err = {0};
	char note[SAND_MESSAGE_BYTES];
	SandLock *lock = NULL;
	// The calls of one take: those of finding out who we are, then open and flock. Count the former with a lock at
	// hand.
	uint64_t before = sand_io_call_count();
	CHECK_STATUS(sand_lock_take(folder, &lock, note, &err), SAND_OK, &err);
	sand_lock_release(lock);
	uint64_t calls = sand_io_call_count() - before;
	static const struct
	{
		const char *text;
		SandStatus status;
	} cases[] = {
	    {"barchan lock 1\npid 2000000000\nstart 5\nboot elsewhere\nhost elsewhere\n", SAND_ERROR_CACHE},
	    {"something else", SAND_ERROR_CACHE},
	    {"", SAND_OK},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
	{
		// Whichever call the lock is: with ENOLCK there the outcome is this, with ENOLCK elsewhere it is a failure or
		// OK.
		int seen_count = 0;
		for (uint64_t k = 1; k <= calls; ++k)
		{
			folder_put(folder, SAND_CACHE_LOCK, cases[i].text);
			sand_io_fail_after(k, ENOLCK);
			SandStatus status = sand_lock_take(folder, &lock, note, &err);
			sand_io_fail_after(0, 0);
			seen_count += status == cases[i].status;
			sand_lock_release(lock);
			lock = NULL;
		}
		CHECK(seen_count >= 1);
	}
	folder_remove(folder);
}

static void no_fault_leaves_a_lock_or_a_block(void)
{
	static const int faults[] = {0, EIO, ENOSPC, EACCES, EINTR};
	for (size_t f = 0; f < sizeof faults / sizeof faults[0]; ++f)
	{
		uint64_t k = 1;
		bool is_clean = false;
		for (; k < 200 && !is_clean; ++k)
		{
			folder_make(folder);
			SandError err = {0};
			SandLock *lock = NULL;
			size_t alloc_bytes = sand_alloc_bytes();
			uint64_t calls = sand_io_call_count();
			if (faults[f] == 0)
			{
				sand_alloc_fail_after(k, false);
			}
			else
			{
				sand_io_fail_after(k, faults[f]);
			}
			SandStatus status = sand_lock_take(folder, &lock, NULL, &err);
			sand_alloc_fail_after(0, false);
			sand_io_fail_after(0, 0);
			CHECK((status == SAND_OK) == (lock != NULL));
			is_clean = faults[f] == 0 ? status == SAND_OK : sand_io_call_count() - calls < k;
			sand_lock_release(lock);
			CHECK_INT(sand_alloc_bytes(), alloc_bytes);
			// A file without an owner may stay behind, but it locks nobody out.
			CHECK_STATUS(sand_lock_take(folder, &lock, NULL, &err), SAND_OK, &err);
			sand_lock_release(lock);
			CHECK_INT(folder_entry_count(folder), 0);
			folder_remove(folder);
		}
		CHECK(is_clean);
		CHECK(k > 2);
	}
}

void test_lock(void)
{
	RUN(a_held_folder_is_refused_with_its_owner);
	RUN(a_killed_owner_is_taken_over);
	RUN(a_left_lock_goes_with_the_frames);
	RUN(without_the_systems_locks_the_text_decides);
	RUN(no_fault_leaves_a_lock_or_a_block);
}
