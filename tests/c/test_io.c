// test_io: files that are whole or not there, under every failing system call.
#include "io.h"

#include "folder.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>

static char folder[FOLDER_PATH_BYTES]; // of the running test

static const char *inside(const char *name)
{
	static char path[FOLDER_PATH_BYTES];
	if (snprintf(path, sizeof path, "%.2000s/%.2000s", folder, name) < 0)
	{
		abort();
	}
	return path;
}

static SandStatus write_text(const char *path, const char *text, SandError *err)
{
	// Two parts with an empty one between them.
	size_t half = strlen(text) / 2;
	SandIoPart parts[3] = {{text, half}, {NULL, 0}, {text + half, strlen(text) - half}};
	return sand_io_write_file(path, parts, 3, err);
}

/// True when the file holds exactly the text.
static bool is_text(const char *path, const char *text)
{
	void *bytes = NULL;
	size_t byte_count = 0;
	SandStatus status = sand_io_read_file(path, 1 << 20, &bytes, &byte_count, NULL);
	bool is_same = status == SAND_OK && byte_count == strlen(text) && memcmp(bytes, text, byte_count) == 0;
	sand_free(bytes);
	return is_same;
}

static void written_files_read_back_whole(void)
{
	folder_make(folder);
	static const size_t sizes[] = {0, 1, 63, 64, 4096, 300001};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
	{
		unsigned char *pattern = sand_alloc(sizes[i], 1);
		for (size_t j = 0; j < sizes[i]; ++j)
		{
			pattern[j] = (unsigned char)(j * 31 + i);
		}
		SandIoPart part = {pattern, sizes[i]};
		SandError err = {0};
		CHECK_STATUS(sand_io_write_file(inside("a.sand"), &part, 1, &err), SAND_OK, &err);
		void *bytes = NULL;
		size_t byte_count = 0;
		CHECK_STATUS(sand_io_read_file(inside("a.sand"), sizes[i], &bytes, &byte_count, &err), SAND_OK, &err);
		CHECK_INT(byte_count, sizes[i]);
		CHECK(bytes != NULL && byte_count == sizes[i] && memcmp(bytes, pattern, sizes[i]) == 0);
		sand_free(bytes);
		sand_free(pattern);
	}
	CHECK_INT(folder_entry_count(folder), 1);
	folder_remove(folder);
}

static void paths_with_spaces_unicode_and_length_work(void)
{
	folder_make(folder);
	char long_name[201];
	memset(long_name, 'n', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	char path[FOLDER_PATH_BYTES];
	SandError err = {0};
	// Eight folders of 200 characters, one with a space, one with letters outside ASCII, doubled and trailing slashes.
	snprintf(path, sizeof path, "%.1000s/with space//d\xC3\xBCne \xE6\xB2\x99", folder);
	for (int i = 0; i < 8; ++i)
	{
		size_t used = strlen(path);
		snprintf(path + used, sizeof path - used, "/%s", long_name);
	}
	size_t used = strlen(path);
	snprintf(path + used, sizeof path - used, "//");
	CHECK_STATUS(sand_io_make_folder(path, &err), SAND_OK, &err);
	CHECK_STATUS(sand_io_make_folder(path, &err), SAND_OK, &err); // exists already
	CHECK_INT(folder_entry_count(path), 0);
	used = strlen(path);
	snprintf(path + used, sizeof path - used, "\xC3\xA9 x.sand");
	CHECK_STATUS(write_text(path, "grain", &err), SAND_OK, &err);
	CHECK(is_text(path, "grain"));
	CHECK_STATUS(sand_io_remove_own_file(path, &err), SAND_OK, &err);
	// A name too long for the file system is a sentence with the reason, although the path alone would fill it.
	used = strlen(path);
	for (int i = 0; i < 2; ++i)
	{
		snprintf(path + used, sizeof path - used, "%s", long_name);
		used = strlen(path);
	}
	CHECK_STATUS(write_text(path, "grain", &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, ENAMETOOLONG);
	CHECK_CONTAINS(err.message, "shorter path");
	CHECK_CONTAINS(err.message, "nnnnnnnn'");
	folder_remove(folder);
}

static void unwritable_places_give_a_sentence_with_the_path(void)
{
	folder_make(folder);
	folder_put(folder, "file", "x");
	SandError err = {0};
	CHECK_STATUS(write_text(inside("missing/a.sand"), "x", &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, ENOENT);
	CHECK_CONTAINS(err.message, inside("missing/a.sand"));
	CHECK_STATUS(write_text(inside("file/a.sand"), "x", &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, ENOTDIR);
	CHECK_CONTAINS(err.message, inside("file/a.sand"));
	CHECK_STATUS(sand_io_make_folder(inside("file/sub/sub"), &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, ENOTDIR);
	CHECK_CONTAINS(err.message, inside("file"));
	CHECK_STATUS(sand_io_make_folder(inside("file"), &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, ENOTDIR);
	CHECK(symlink("nowhere", inside("link")) == 0);
	CHECK_STATUS(sand_io_make_folder(inside("link"), &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, ENOENT);
	CHECK(is_text(inside("file"), "x"));
	// A folder in the file's place: nothing is lost and no temporary stays.
	CHECK_STATUS(sand_io_make_folder(inside("a.sand"), &err), SAND_OK, &err);
	CHECK_STATUS(write_text(inside("a.sand"), "x", &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, EISDIR);
	CHECK_INT(folder_entry_count(folder), 3);
	// Without an err, failures are only statuses.
	CHECK_STATUS(write_text(inside("missing/a.sand"), "x", NULL), SAND_ERROR_IO, NULL);
	folder_remove(folder);
}

static void empty_paths_are_refused(void)
{
	SandError err = {0};
	void *bytes;
	size_t byte_count;
	CHECK_STATUS(write_text("", "x", &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_io_read_file("", 1, &bytes, &byte_count, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_io_read_file(NULL, 1, &bytes, &byte_count, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_io_make_folder("", &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_io_remove_empty_folder("", &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_io_remove_own_file("", &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_io_list_folder("", NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
}

static void reading_refuses_what_is_missing_too_big_or_no_file(void)
{
	folder_make(folder);
	SandError err = {0};
	void *bytes = &err;
	size_t byte_count = 9;
	CHECK_STATUS(sand_io_read_file(inside("a.sand"), 100, &bytes, &byte_count, &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, ENOENT);
	CHECK_CONTAINS(err.message, inside("a.sand"));
	CHECK(bytes == NULL);
	CHECK_INT(byte_count, 0);
	CHECK_STATUS(write_text(inside("a.sand"), "12345", &err), SAND_OK, &err);
	CHECK_STATUS(sand_io_read_file(inside("a.sand"), 4, &bytes, &byte_count, &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, EFBIG);
	CHECK_CONTAINS(err.message, "5 bytes, expected at most 4");
	CHECK_STATUS(sand_io_read_file(folder, 100, &bytes, &byte_count, &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, EISDIR);
	CHECK(mkfifo(inside("pipe.sand"), 0600) == 0);
	CHECK_STATUS(sand_io_read_file(inside("pipe.sand"), 100, &bytes, &byte_count, &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, EINVAL);
	folder_remove(folder);
}

static void the_guard_removes_only_our_names(void)
{
	folder_make(folder);
	static const char *const foreign[] = {"scene.blend",   "sand",           ".sand",           "a.sand.bak",
	                                      "a.sand.tmp",    "a.sand.tmp.",    "a.tmp.1.2",       "a.sand.tmp.1",
	                                      "a.sand.tmp.1.", "a.sand.tmp.1.x", "a.sand.tmp.1.2.", "a.sand.tmp.1.2 ",
	                                      ".sand.tmp.1.2", "a.sandy"};
	SandError err = {0};
	for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; ++i)
	{
		folder_put(folder, foreign[i], "keep");
		CHECK_STATUS(sand_io_remove_own_file(inside(foreign[i]), &err), SAND_ERROR_ARGUMENT, &err);
		CHECK_CONTAINS(err.message, foreign[i]);
		CHECK(is_text(inside(foreign[i]), "keep"));
		CHECK_INT(sand_io_temporary_stem(foreign[i]), 0);
	}
	static const char *const own[] = {"a.sand", "a.sand.tmp.1.2", "a.tmp.3.4.sand.tmp.123456.18446744073709551615"};
	for (size_t i = 0; i < sizeof own / sizeof own[0]; ++i)
	{
		folder_put(folder, own[i], "x");
		CHECK_STATUS(sand_io_remove_own_file(inside(own[i]), &err), SAND_OK, &err);
		CHECK(!folder_has(folder, own[i]));
		CHECK_STATUS(sand_io_remove_own_file(inside(own[i]), &err), SAND_ERROR_IO, &err);
		CHECK_INT(err.os_error, ENOENT);
	}
	CHECK_INT(sand_io_temporary_stem("a.sand"), 0);
	CHECK_INT(sand_io_temporary_stem("a.sand.tmp.1.2"), strlen("a.sand"));
	CHECK_INT(sand_io_temporary_stem("a.tmp.3.4.sand.tmp.1.2"), strlen("a.tmp.3.4.sand"));
	// A folder with our suffix in its name gives its files no pass.
	CHECK_STATUS(sand_io_make_folder(inside("x.sand"), &err), SAND_OK, &err);
	folder_put(folder, "x.sand/notes.txt", "keep");
	CHECK_STATUS(sand_io_remove_own_file(inside("x.sand/notes.txt"), &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_io_remove_own_file(inside("x.sand"), &err), SAND_ERROR_IO, &err);
	CHECK(is_text(inside("x.sand/notes.txt"), "keep"));
	folder_remove(folder);
}

typedef struct Seen
{
	int count;
	int stop_after; // 0 = never
	uint64_t byte_count;
	char names[8][32];
} Seen;

static bool see(void *context, const char *name, uint64_t byte_count)
{
	Seen *seen = context;
	snprintf(seen->names[seen->count % 8], sizeof seen->names[0], "%.31s", name);
	seen->count++;
	seen->byte_count += byte_count;
	return seen->count != seen->stop_after;
}

static bool has_seen(const Seen *seen, const char *name)
{
	for (int i = 0; i < seen->count; ++i)
	{
		if (strcmp(seen->names[i], name) == 0)
		{
			return true;
		}
	}
	return false;
}

static void listing_visits_every_regular_file_once(void)
{
	folder_make(folder);
	folder_put(folder, "a", "1");
	folder_put(folder, "b.sand", "22");
	folder_put(folder, ".hidden", "333");
	CHECK(mkdir(inside("sub"), 0777) == 0);
	CHECK(symlink("nowhere", inside("broken")) == 0);
	CHECK(symlink("a", inside("link")) == 0);
	SandError err = {0};
	Seen seen = {0};
	CHECK_STATUS(sand_io_list_folder(folder, see, &seen, &err), SAND_OK, &err);
	CHECK_INT(seen.count, 4);
	CHECK_INT(seen.byte_count, 1 + 2 + 3 + 1);
	CHECK(has_seen(&seen, "a"));
	CHECK(has_seen(&seen, "b.sand"));
	CHECK(has_seen(&seen, ".hidden"));
	CHECK(has_seen(&seen, "link"));
	seen = (Seen){.stop_after = 2};
	CHECK_STATUS(sand_io_list_folder(folder, see, &seen, &err), SAND_OK, &err);
	CHECK_INT(seen.count, 2);
	seen = (Seen){0};
	CHECK_STATUS(sand_io_list_folder(inside("missing"), see, &seen, &err), SAND_OK, &err);
	CHECK_INT(seen.count, 0);
	CHECK_STATUS(sand_io_list_folder(inside("a"), see, &seen, &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, ENOTDIR);
	CHECK_CONTAINS(err.message, inside("a"));
	folder_remove(folder);
}

static void only_an_empty_folder_is_removed(void)
{
	folder_make(folder);
	SandError err = {0};
	CHECK(mkdir(inside("empty"), 0777) == 0);
	CHECK(mkdir(inside("full"), 0777) == 0);
	folder_put(folder, "full/a", "x");
	CHECK_STATUS(sand_io_remove_empty_folder(inside("empty"), &err), SAND_OK, &err);
	CHECK_STATUS(sand_io_remove_empty_folder(inside("full"), &err), SAND_OK, &err);
	CHECK_STATUS(sand_io_remove_empty_folder(inside("missing"), &err), SAND_OK, &err);
	CHECK_STATUS(sand_io_remove_empty_folder(inside("full/a"), &err), SAND_OK, &err);
	CHECK(!folder_has(folder, "empty"));
	CHECK(is_text(inside("full/a"), "x"));
	sand_io_fail_after(1, EIO);
	CHECK_STATUS(sand_io_remove_empty_folder(inside("full"), &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, EIO);
	folder_remove(folder);
}

// Fault loops: a job is prepared, run with its k-th system call failing, and checked, for k = 1, 2, ... until a run
// meets no fault. Every fault that was met must be reported, and none that was not.

typedef struct Job
{
	const char *name;
	/// System calls of a run that meets no fault, counted by hand: a dropped fsync or an unchecked close shows here.
	int call_count;
	void (*prepare)(void);
	SandStatus (*run)(SandError *err);
	/// The state is before or after, never between; is_done: the run reported success.
	void (*check)(bool is_done);
} Job;

static void prepare_nothing(void)
{
}

static SandStatus run_write(SandError *err)
{
	return write_text(inside("a.sand"), "the new contents", err);
}

static void check_write_new(bool is_done)
{
	bool is_new = is_text(inside("a.sand"), "the new contents");
	CHECK(is_new || (!is_done && !folder_has(folder, "a.sand")));
	CHECK_INT(folder_entry_count(folder), folder_has(folder, "a.sand") ? 1 : 0);
}

static void prepare_old(void)
{
	folder_put(folder, "a.sand", "the old contents");
}

static void check_write_over_old(bool is_done)
{
	bool is_new = is_text(inside("a.sand"), "the new contents");
	CHECK(is_new || (!is_done && is_text(inside("a.sand"), "the old contents")));
	CHECK_INT(folder_entry_count(folder), 1);
}

static SandStatus run_read(SandError *err)
{
	void *bytes = NULL;
	size_t byte_count = 0;
	SandStatus status = sand_io_read_file(inside("a.sand"), 100, &bytes, &byte_count, err);
	if (status == SAND_OK)
	{
		CHECK_INT(byte_count, strlen("the old contents"));
		CHECK(memcmp(bytes, "the old contents", byte_count) == 0);
	}
	else
	{
		CHECK(bytes == NULL);
		CHECK_INT(byte_count, 0);
	}
	sand_free(bytes);
	return status;
}

static void check_read(bool is_done)
{
	(void)is_done;
	CHECK(is_text(inside("a.sand"), "the old contents"));
}

static SandStatus run_make_folder(SandError *err)
{
	return sand_io_make_folder(inside("one/two/three"), err);
}

static void check_make_folder(bool is_done)
{
	int count = folder_entry_count(inside("one/two/three"));
	CHECK(!is_done || count == 0);
	// When removing the probe was what failed, it stays, and is recognised.
	CHECK(count <= 1);
	if (count == 1)
	{
		Seen seen = {0};
		SandError err = {0};
		CHECK_STATUS(sand_io_list_folder(inside("one/two/three"), see, &seen, &err), SAND_OK, &err);
		CHECK_INT(seen.count, 1);
		CHECK_INT(sand_io_temporary_stem(seen.names[0]), strlen(SAND_IO_PROBE_NAME));
	}
}

static SandStatus run_list(SandError *err)
{
	Seen seen = {0};
	SandStatus status = sand_io_list_folder(folder, see, &seen, err);
	CHECK(status != SAND_OK || seen.count == 1);
	return status;
}

static SandStatus run_remove(SandError *err)
{
	return sand_io_remove_own_file(inside("a.sand"), err);
}

static void check_remove(bool is_done)
{
	CHECK(is_done ? !folder_has(folder, "a.sand") : is_text(inside("a.sand"), "the old contents"));
}

static const Job jobs[] = {
    // Open, one write per part that is not empty, fsync, close, rename; open, fsync and close the folder.
    {"write a new file", 9, prepare_nothing, run_write, check_write_new},
    {"write over a file", 9, prepare_old, run_write, check_write_over_old},
    // Open, stat, read, read at the end, close.
    {"read a file", 5, prepare_old, run_read, check_read},
    // Per new folder: stat, mkdir, and open, fsync, close of its parent. The probe: open, write, close, remove. And a
    // stat
    // per folder that exists.
    {"make a folder", 19, prepare_nothing, run_make_folder, check_make_folder},
    // Open, then per entry (".", "..", the file) read and stat, read at the end, close.
    {"list a folder", 9, prepare_old, run_list, check_read},
    {"remove a file", 1, prepare_old, run_remove, check_remove},
};
enum
{
	JOB_COUNT = sizeof jobs / sizeof jobs[0]
};

/// System calls of a run that meets no fault.
static uint64_t clean_call_count(const Job *job)
{
	folder_make(folder);
	job->prepare();
	SandError err = {0};
	uint64_t before = sand_io_call_count();
	CHECK_STATUS(job->run(&err), SAND_OK, &err);
	uint64_t count = sand_io_call_count() - before;
	folder_remove(folder);
	return count;
}

/// Folders in a path: "/a//b/" has two.
static int folder_depth(const char *path)
{
	int depth = 0;
	for (size_t i = 0; path[i] != '\0'; ++i)
	{
		depth += path[i] != '/' && (path[i + 1] == '/' || path[i + 1] == '\0');
	}
	return depth;
}

static void every_failing_call_is_reported_and_leaves_old_or_new_whole(void)
{
	static const int os_errors[] = {EIO, ENOSPC};
	for (int j = 0; j < JOB_COUNT; ++j)
	{
		uint64_t call_count = clean_call_count(&jobs[j]);
		int depth = jobs[j].run == run_make_folder ? folder_depth(folder) : 0;
		if (!CHECK_INT(call_count, jobs[j].call_count + depth))
		{
			printf("  in: %s\n", jobs[j].name);
		}
		for (int e = 0; e < 2; ++e)
		{
			for (uint64_t k = 1; k <= call_count + 1; ++k)
			{
				size_t alloc_bytes = sand_alloc_bytes();
				folder_make(folder);
				jobs[j].prepare();
				SandError err = {0};
				sand_io_fail_after(k, os_errors[e]);
				SandStatus status = jobs[j].run(&err);
				sand_io_fail_after(0, 0);
				bool is_clean = k == call_count + 1;
				if (!CHECK_STATUS(status, is_clean ? SAND_OK : SAND_ERROR_IO, &err) ||
				    !CHECK_INT(err.os_error, is_clean ? 0 : os_errors[e]))
				{
					printf("  in: %s, call %d\n", jobs[j].name, (int)k);
				}
				jobs[j].check(status == SAND_OK);
				CHECK_INT(sand_alloc_bytes(), alloc_bytes);
				folder_remove(folder);
			}
		}
	}
}

static void interrupted_and_short_calls_go_on(void)
{
	static const int os_errors[] = {EINTR, -1};
	for (int j = 0; j < JOB_COUNT; ++j)
	{
		uint64_t call_count = clean_call_count(&jobs[j]);
		for (int e = 0; e < 2; ++e)
		{
			bool is_longer = false;
			for (uint64_t k = 1; k <= call_count; ++k)
			{
				folder_make(folder);
				jobs[j].prepare();
				SandError err = {0};
				uint64_t before = sand_io_call_count();
				sand_io_fail_after(k, os_errors[e]);
				CHECK_STATUS(jobs[j].run(&err), SAND_OK, &err);
				sand_io_fail_after(0, 0);
				is_longer = is_longer || sand_io_call_count() - before > call_count;
				jobs[j].check(true);
				folder_remove(folder);
			}
			// The seam did something: a call was repeated or a transfer took one call more.
			bool is_transfer = jobs[j].run == run_write || jobs[j].run == run_read || jobs[j].run == run_make_folder;
			CHECK(is_longer || (os_errors[e] == -1 && !is_transfer));
		}
	}
}

static void a_taken_temporary_name_is_passed_over(void)
{
	folder_make(folder);
	SandError err = {0};
	sand_io_fail_after(1, EEXIST);
	CHECK_STATUS(write_text(inside("a.sand"), "x", &err), SAND_OK, &err);
	sand_io_fail_after(0, 0);
	CHECK(is_text(inside("a.sand"), "x"));
	CHECK_INT(folder_entry_count(folder), 1);
	folder_remove(folder);
}

static void every_failing_allocation_is_reported(void)
{
	for (int j = 0; j < JOB_COUNT; ++j)
	{
		bool is_clean = false;
		for (uint64_t k = 1; k < 10 && !is_clean; ++k)
		{
			size_t alloc_bytes = sand_alloc_bytes();
			folder_make(folder);
			jobs[j].prepare();
			SandError err = {0};
			sand_alloc_fail_after(k, false);
			SandStatus status = jobs[j].run(&err);
			sand_alloc_fail_after(0, false);
			is_clean = status == SAND_OK;
			if (!is_clean)
			{
				CHECK_STATUS(status, SAND_ERROR_MEMORY, &err);
			}
			jobs[j].check(is_clean);
			CHECK_INT(sand_alloc_bytes(), alloc_bytes);
			folder_remove(folder);
		}
		CHECK(is_clean);
	}
}

static void *write_many(void *text)
{
	intptr_t failure_count = 0;
	char path[FOLDER_PATH_BYTES];
	snprintf(path, sizeof path, "%.4000s/a.sand", folder);
	for (int i = 0; i < 20; ++i)
	{
		failure_count += write_text(path, text, NULL) != SAND_OK;
	}
	return (void *)failure_count;
}

static void two_threads_writing_one_file_leave_one_whole(void)
{
	static char texts[2][100001];
	folder_make(folder);
	memset(texts[0], 'a', sizeof texts[0] - 1);
	memset(texts[1], 'b', sizeof texts[1] - 1);
	pthread_t threads[2];
	for (int i = 0; i < 2; ++i)
	{
		CHECK(pthread_create(&threads[i], NULL, write_many, texts[i]) == 0);
	}
	for (int i = 0; i < 2; ++i)
	{
		void *failure_count = NULL;
		CHECK(pthread_join(threads[i], &failure_count) == 0);
		CHECK_INT((intptr_t)failure_count, 0);
	}
	CHECK(is_text(inside("a.sand"), texts[0]) || is_text(inside("a.sand"), texts[1]));
	CHECK_INT(folder_entry_count(folder), 1);
	folder_remove(folder);
}

void test_io(void)
{
	RUN(written_files_read_back_whole);
	RUN(paths_with_spaces_unicode_and_length_work);
	RUN(unwritable_places_give_a_sentence_with_the_path);
	RUN(empty_paths_are_refused);
	RUN(reading_refuses_what_is_missing_too_big_or_no_file);
	RUN(the_guard_removes_only_our_names);
	RUN(listing_visits_every_regular_file_once);
	RUN(only_an_empty_folder_is_removed);
	RUN(every_failing_call_is_reported_and_leaves_old_or_new_whole);
	RUN(interrupted_and_short_calls_go_on);
	RUN(a_taken_temporary_name_is_passed_over);
	RUN(every_failing_allocation_is_reported);
	RUN(two_threads_writing_one_file_leave_one_whole);
}
