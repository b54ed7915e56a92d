// test_checkpoint: one whole checkpoint is always there, and no damaged one is taken.
#include "checkpoint.h"

#include "cache.h"
#include "folder.h"
#include "io.h"
#include "test.h"

#include <errno.h>

static char folder[FOLDER_PATH_BYTES];

static SandStatus put(int32_t frame, const char *state, SandError *err)
{
	SandCheckpoint checkpoint = {.frame = frame,
	                             .seconds = 0.5 * frame,
	                             .settings_hash = 7,
	                             .state_hash = 8,
	                             .bytes = state,
	                             .byte_count = strlen(state)};
	return sand_checkpoint_write(folder, &checkpoint, NULL, err);
}

/// Frame of the checkpoint that is found for this scene up to last; -1 = none.
static int32_t find(uint64_t settings_hash, int32_t last, char *note)
{
	SandCheckpoint found;
	SandError err = {0};
	CHECK_STATUS(sand_checkpoint_read(folder, settings_hash, last, &found, note, &err), SAND_OK, &err);
	int32_t frame = found.bytes != NULL ? found.frame : -1;
	sand_free((void *)found.bytes);
	return frame;
}

static unsigned char *file_bytes(const char *name, size_t *byte_count_out)
{
	char path[FOLDER_PATH_BYTES];
	snprintf(path, sizeof path, "%.3000s/%s", folder, name);
	void *bytes = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_io_read_file(path, 1 << 20, &bytes, byte_count_out, &err), SAND_OK, &err);
	return bytes;
}

static void the_newest_that_verifies_is_taken(void)
{
	folder_make(folder);
	SandError err = {0};
	char note[SAND_MESSAGE_BYTES];
	CHECK_INT(find(7, INT32_MAX, note), -1);
	static const char *const states[] = {"ten", "twenty", "thirty"};
	for (int32_t i = 0; i < 3; ++i)
	{
		CHECK_STATUS(put(10 * (i + 1), states[i], &err), SAND_OK, &err);
	}
	CHECK_INT(folder_entry_count(folder), 2);
	SandCheckpoint found;
	CHECK_STATUS(sand_checkpoint_read(folder, 7, INT32_MAX, &found, note, &err), SAND_OK, &err);
	CHECK_INT(found.frame, 30);
	CHECK_NEAR(found.seconds, 15, 0);
	CHECK_INT(found.state_hash, 8);
	CHECK_INT(found.byte_count, 6);
	CHECK(found.bytes != NULL && memcmp(found.bytes, "thirty", 6) == 0);
	CHECK(note[0] == '\0');
	sand_free((void *)found.bytes);
	CHECK_INT(find(7, 29, note), 20);
	CHECK_INT(find(7, 19, note), -1);
	CHECK_INT(find(9, INT32_MAX, note), -1); // of another scene
	CHECK_INT(find(0, INT32_MAX, note), 30);
	// Going back in time: the latest frame counts, which is as good a state of this scene, and the older file gave way.
	CHECK_STATUS(put(5, "five", &err), SAND_OK, &err);
	CHECK_INT(find(7, INT32_MAX, note), 30);
	CHECK_INT(find(7, 29, note), 5);
	folder_remove(folder);
}

static SandStatus keep(int32_t frame, const char *state, SandError *err)
{
	SandCheckpoint checkpoint = {.frame = frame,
	                             .settings_hash = 7,
	                             .motion_hash = 9,
	                             .is_kept = true,
	                             .bytes = state,
	                             .byte_count = strlen(state)};
	return sand_checkpoint_write(folder, &checkpoint, NULL, err);
}

static void kept_ones_stay_beside_the_two_and_the_earliest_is_dropped_first(void)
{
	folder_make(folder);
	SandError err = {0};
	char note[SAND_MESSAGE_BYTES];
	for (int32_t i = -1; i < 5; ++i)
	{
		CHECK_STATUS(keep(100 * i, "kept", &err), SAND_OK, &err);
		CHECK_STATUS(put(100 * i + 10, "turn", &err), SAND_OK, &err);
	}
	folder_put(folder, "checkpoint_x.sand", "not ours");
	CHECK_INT(folder_entry_count(folder), 9);
	CHECK_INT(find(7, INT32_MAX, note), 410);
	CHECK_INT(find(7, 399, note), 310);
	CHECK_INT(find(7, 309, note), 300);
	CHECK_INT(find(7, 199, note), 100);
	CHECK_INT(find(7, -1, note), -100);
	CHECK_INT(find(7, -101, note), -1);
	SandCheckpointInfo *infos = NULL;
	int count = 0;
	CHECK_STATUS(sand_checkpoint_list(folder, true, &infos, &count, &err), SAND_OK, &err);
	CHECK_INT(count, 8);
	int kept_count = 0;
	uint64_t kept_bytes = 0, found_bytes = 0, dropped = 0;
	for (int i = 0; i < count; ++i)
	{
		CHECK(infos[i].error[0] == '\0');
		CHECK(infos[i].checkpoint.motion_hash == (infos[i].checkpoint.is_kept ? 9u : 0u));
		kept_count += infos[i].checkpoint.is_kept;
		kept_bytes += infos[i].checkpoint.is_kept ? infos[i].byte_count : 0;
	}
	sand_free(infos);
	CHECK_INT(kept_count, 6);
	CHECK_STATUS(sand_checkpoint_kept_bytes(folder, &found_bytes, &err), SAND_OK, &err);
	CHECK_INT(found_bytes, kept_bytes);
	CHECK_STATUS(sand_checkpoint_drop_kept(folder, &dropped, &err), SAND_OK, &err);
	CHECK(dropped > 128 && !folder_has(folder, "checkpoint_-00100.sand"));
	CHECK_STATUS(sand_checkpoint_drop_kept(folder, &dropped, &err), SAND_OK, &err);
	CHECK(!folder_has(folder, "checkpoint_000000.sand") && folder_has(folder, "checkpoint_000100.sand"));
	// Damage is told of each; one that was renamed is not taken for another frame's.
	folder_put(folder, "checkpoint_000200.sand", "torn");
	char from[FOLDER_PATH_BYTES], to[FOLDER_PATH_BYTES];
	snprintf(from, sizeof from, "%.3000s/checkpoint_000300.sand", folder);
	snprintf(to, sizeof to, "%.3000s/checkpoint_000301.sand", folder);
	CHECK(rename(from, to) == 0);
	CHECK_STATUS(sand_checkpoint_list(folder, true, &infos, &count, &err), SAND_OK, &err);
	CHECK_INT(count, 6);
	CHECK_CONTAINS(infos[1].error, "it is damaged");
	CHECK_CONTAINS(infos[2].error, "it was renamed");
	sand_free(infos);
	CHECK_INT(find(7, 309, note), 100);
	// Freeing everything takes them along, and nothing else.
	CHECK_STATUS(sand_cache_free(folder, INT32_MIN, INT32_MAX, &count, NULL, &err), SAND_OK, &err);
	CHECK_INT(count, 6);
	CHECK_INT(folder_entry_count(folder), 1);
	while (dropped > 0)
	{
		CHECK_STATUS(sand_checkpoint_drop_kept(folder, &dropped, &err), SAND_OK, &err);
	}
	folder_remove(folder);
}

static void a_damaged_one_is_named_and_passed_over(void)
{
	folder_make(folder);
	SandError err = {0};
	char note[SAND_MESSAGE_BYTES];
	CHECK_STATUS(put(10, "ten", &err), SAND_OK, &err);
	CHECK_STATUS(put(20, "twenty", &err), SAND_OK, &err);
	folder_put(folder, SAND_CACHE_CHECKPOINT_B, "torn");
	CHECK_INT(find(7, INT32_MAX, note), 10);
	CHECK_CONTAINS(note, SAND_CACHE_CHECKPOINT_B);
	// It is the next to be overwritten; the good one stays.
	CHECK_STATUS(put(30, "thirty", &err), SAND_OK, &err);
	CHECK_INT(find(7, INT32_MAX, note), 30);
	CHECK_INT(find(7, 29, note), 10);
	folder_remove(folder);
}

static void every_cut_and_every_flipped_bit_is_refused(void)
{
	folder_make(folder);
	SandError err = {0};
	CHECK_STATUS(put(10, "the state of all grains", &err), SAND_OK, &err);
	size_t byte_count = 0;
	unsigned char *bytes = file_bytes(SAND_CACHE_CHECKPOINT_A, &byte_count);
	folder_remove(folder);
	SandCheckpoint found;
	CHECK_STATUS(sand_checkpoint_parse("bytes", bytes, byte_count, &found, &err), SAND_OK, &err);
	for (size_t cut = 0; cut < byte_count; ++cut)
	{
		unsigned char *block = malloc(cut + (cut == 0)); // of exactly that size: an overrun is seen
		if (block == NULL)
		{
			abort();
		}
		memcpy(block, bytes, cut);
		err = (SandError){0};
		CHECK_STATUS(sand_checkpoint_parse("bytes", block, cut, &found, &err), SAND_ERROR_CACHE, &err);
		free(block);
	}
	for (size_t bit = 0; bit < 8 * byte_count; ++bit)
	{
		bytes[bit / 8] = (unsigned char)(bytes[bit / 8] ^ 1u << bit % 8);
		err = (SandError){0};
		CHECK_STATUS(sand_checkpoint_parse("bytes", bytes, byte_count, &found, &err), SAND_ERROR_CACHE, &err);
		CHECK(found.bytes == NULL);
		bytes[bit / 8] = (unsigned char)(bytes[bit / 8] ^ 1u << bit % 8);
	}
	bytes[8] = 3;
	CHECK_STATUS(sand_checkpoint_parse("bytes", bytes, byte_count, &found, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "checkpoint version 3, this Barchan reads versions 1 to 2");
	sand_free(bytes);
}

/// Keeps one, lists, drops the earlier kept one.
static SandStatus keep_job(SandError *err)
{
	SandCheckpointInfo *infos = NULL;
	int count = 0;
	uint64_t dropped = 0;
	SandStatus status = keep(30, "thirty", err);
	status = status == SAND_OK ? sand_checkpoint_list(folder, true, &infos, &count, err) : status;
	status = status == SAND_OK ? sand_checkpoint_drop_kept(folder, &dropped, err) : status;
	CHECK(status != SAND_OK || (count == 4 && dropped > 0));
	sand_free(infos);
	return status;
}

static SandStatus read_job(SandError *err)
{
	SandCheckpoint found;
	SandStatus status = sand_checkpoint_read(folder, 7, INT32_MAX, &found, NULL, err);
	CHECK((status == SAND_OK) == (found.bytes != NULL));
	CHECK(status != SAND_OK || found.frame == 20);
	sand_free((void *)found.bytes);
	return status;
}

static void whatever_fails_kept_ones_are_whole_or_gone(void)
{
	static const int faults[] = {0, EIO, ENOSPC, EROFS, EINTR, -1}; // 0: allocations, -1: short transfers
	for (size_t f = 0; f < 2 * (sizeof faults / sizeof faults[0]); ++f)
	{
		int fault = faults[f / 2];
		bool is_clean = false;
		int fault_count = 0;
		for (uint64_t k = 1; k < 300 && !is_clean; ++k)
		{
			folder_make(folder);
			SandError err = {0};
			CHECK_STATUS(keep(5, "five", &err), SAND_OK, &err);
			CHECK_STATUS(put(10, "ten", &err), SAND_OK, &err);
			CHECK_STATUS(put(20, "twenty", &err), SAND_OK, &err);
			size_t alloc_bytes = sand_alloc_bytes();
			uint64_t calls = sand_io_call_count();
			if (fault == 0)
			{
				sand_alloc_fail_after(k, false);
			}
			else
			{
				sand_io_fail_after(k, fault);
			}
			SandStatus status = f % 2 == 0 ? keep_job(&err) : read_job(&err);
			sand_alloc_fail_after(0, false);
			sand_io_fail_after(0, 0);
			CHECK_INT(sand_alloc_bytes(), alloc_bytes);
			CHECK(status == SAND_OK || !(fault == EINTR || fault < 0));
			is_clean = fault == 0 ? status == SAND_OK : sand_io_call_count() - calls < k;
			fault_count += status != SAND_OK;
			SandCheckpointInfo *infos = NULL;
			int count = 0;
			CHECK_STATUS(sand_checkpoint_list(folder, true, &infos, &count, &err), SAND_OK, &err);
			for (int i = 0; i < count; ++i)
			{
				CHECK(infos[i].error[0] == '\0');
			}
			sand_free(infos);
			CHECK_INT(folder_entry_count(folder), count);
			CHECK(count == 3 || count == 4);
			folder_remove(folder);
		}
		CHECK(is_clean);
		CHECK(fault_count > 0 || fault == EINTR || fault < 0);
	}
}

static void whatever_fails_one_whole_checkpoint_is_left(void)
{
	static const int faults[] = {0, EIO, ENOSPC, EROFS, EINTR, -1}; // 0: allocations, -1: short transfers
	for (size_t f = 0; f < sizeof faults / sizeof faults[0]; ++f)
	{
		bool is_clean = false;
		int fault_count = 0;
		for (uint64_t k = 1; k < 200 && !is_clean; ++k)
		{
			folder_make(folder);
			SandError err = {0};
			char note[SAND_MESSAGE_BYTES];
			CHECK_STATUS(put(10, "ten", &err), SAND_OK, &err);
			CHECK_STATUS(put(20, "twenty", &err), SAND_OK, &err);
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
			SandStatus status = put(30, "thirty", &err);
			sand_alloc_fail_after(0, false);
			sand_io_fail_after(0, 0);
			CHECK_INT(sand_alloc_bytes(), alloc_bytes);
			bool is_harmless = faults[f] == EINTR || faults[f] < 0;
			CHECK(status == SAND_OK || !is_harmless);
			is_clean = faults[f] == 0 ? status == SAND_OK : sand_io_call_count() - calls < k;
			fault_count += status != SAND_OK;
			int32_t found = find(7, INT32_MAX, note);
			CHECK(found == 30 || (found == 20 && status != SAND_OK));
			CHECK_INT(find(7, 20, note), 20); // the newer of the two before was never touched
			CHECK_INT(folder_entry_count(folder), 2);
			folder_remove(folder);
		}
		CHECK(is_clean);
		CHECK(fault_count > 0 || faults[f] == EINTR || faults[f] < 0);
	}
}

void test_checkpoint(void)
{
	RUN(the_newest_that_verifies_is_taken);
	RUN(kept_ones_stay_beside_the_two_and_the_earliest_is_dropped_first);
	RUN(a_damaged_one_is_named_and_passed_over);
	RUN(every_cut_and_every_flipped_bit_is_refused);
	RUN(whatever_fails_kept_ones_are_whole_or_gone);
	RUN(whatever_fails_one_whole_checkpoint_is_left);
}
