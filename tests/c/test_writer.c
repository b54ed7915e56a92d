// test_writer: frames arrive in order and whole; a failure stops everything behind it and is told.
#include "writer.h"

#include "folder.h"
#include "io.h"
#include "test.h"

#include <errno.h>

#define COUNT 200
static char folder[FOLDER_PATH_BYTES];
static float positions[3 * COUNT];

/// Grains from 50 on rest.
static SandCacheFrame frame_of(int32_t number)
{
	for (int i = 0; i < 3 * COUNT; ++i)
	{
		positions[i] = (float)sand_random(i < 150 ? (uint64_t)(number + 100) : 0, (uint64_t)i);
	}
	return (SandCacheFrame){.frame = number,
	                        .count = COUNT,
	                        .seconds = 0.1 * number,
	                        .settings_hash = 5,
	                        .state_hash = (uint64_t)(number + 1000),
	                        .arrays = {{"position", SAND_CACHE_F32, 3, positions, SAND_ENCODING_GRID, 0, 0}},
	                        .array_count = 1};
}

static SandWriterDesc describe(void)
{
	return (SandWriterDesc){.folder = folder, .options = {.tolerance = 1e-3, .thread_count = 1, .engine = "test"}};
}

static void check_frame(int32_t number)
{
	SandError err = {0};
	SandCacheFrame found, expected = frame_of(number);
	if (!CHECK_STATUS(sand_cache_read(folder, number, NULL, &found, &err), SAND_OK, &err))
	{
		return;
	}
	double worst = 0;
	for (int i = 0; i < 3 * COUNT; ++i)
	{
		worst = fmax(worst, fabs((double)((const float *)found.arrays[0].data)[i] - (double)positions[i]));
	}
	CHECK(worst <= 1e-3);
	CHECK(found.state_hash == expected.state_hash);
	sand_cache_frame_free(&found);
}

static void frames_and_checkpoints_arrive_in_order(void)
{
	folder_make(folder);
	SandError err = {0};
	SandWriterDesc desc = describe();
	SandWriter *writer = NULL;
	CHECK_STATUS(sand_writer_create(&desc, &writer, &err), SAND_OK, &err);
	for (int32_t i = -3; i <= 24; ++i)
	{
		SandCacheFrame frame = frame_of(i);
		CHECK_STATUS(sand_writer_push(writer, &frame, &err), SAND_OK, &err);
		if (i % 8 == 0)
		{
			SandCheckpoint checkpoint = {.frame = i, .settings_hash = 5, .bytes = "state", .byte_count = 5};
			CHECK_STATUS(sand_writer_push_checkpoint(writer, &checkpoint, &err), SAND_OK, &err);
		}
	}
	CHECK_STATUS(sand_writer_flush(writer, &err), SAND_OK, &err);
	SandWriterInfo info = sand_writer_info(writer);
	CHECK_INT(info.frame_count, 28);
	CHECK_INT(info.checkpoint_count, 4);
	CHECK_INT(info.queue_count, 0);
	CHECK_INT(info.last_frame, 24);
	CHECK_INT(info.last_checkpoint, 24);
	uint64_t bytes = 0;
	CHECK_STATUS(sand_cache_list(folder, NULL, NULL, &bytes, &err), SAND_OK, &err);
	CHECK_INT(info.byte_count, bytes);
	sand_writer_destroy(writer);
	for (int32_t i = -3; i <= 24; ++i)
	{
		check_frame(i);
		SandCacheFrame head;
		CHECK_STATUS(sand_cache_peek(folder, i, &head, &err), SAND_OK, &err);
		// -10, the key of the first three, was never written: they are whole.
		CHECK_INT(head.has_base, i > 0 && i % 10 != 0);
		CHECK(!head.has_base || head.base_frame == i / 10 * 10);
	}
	// One frame baked again alone, its key found on disk: the same file.
	SandCacheFrame before, after;
	CHECK_STATUS(sand_cache_peek(folder, 17, &before, &err), SAND_OK, &err);
	CHECK_STATUS(sand_writer_create(&desc, &writer, &err), SAND_OK, &err);
	SandCacheFrame frame = frame_of(17);
	CHECK_STATUS(sand_writer_push(writer, &frame, &err), SAND_OK, &err);
	CHECK_STATUS(sand_writer_flush(writer, &err), SAND_OK, &err);
	sand_writer_destroy(writer);
	CHECK_STATUS(sand_cache_peek(folder, 17, &after, &err), SAND_OK, &err);
	CHECK(before.identity == after.identity);
	folder_remove(folder);
}

static void a_pushed_frame_is_a_copy(void)
{
	folder_make(folder);
	SandError err = {0};
	SandWriterDesc desc = describe();
	desc.key_interval = 1;
	SandWriter *writer = NULL;
	CHECK_STATUS(sand_writer_create(&desc, &writer, &err), SAND_OK, &err);
	SandCacheFrame frame = frame_of(1);
	CHECK_STATUS(sand_writer_push(writer, &frame, &err), SAND_OK, &err);
	memset(positions, 0, sizeof positions);
	CHECK_STATUS(sand_writer_flush(writer, &err), SAND_OK, &err);
	check_frame(1);
	sand_writer_destroy(writer);
	folder_remove(folder);
}

static void the_limit_stops_the_bake_and_keeps_what_is_there(void)
{
	folder_make(folder);
	SandError err = {0};
	SandWriterDesc desc = describe();
	desc.key_interval = 1;
	desc.byte_limit = 10000;
	SandWriter *writer = NULL;
	CHECK_STATUS(sand_writer_create(&desc, &writer, &err), SAND_OK, &err);
	SandStatus status = SAND_OK;
	for (int32_t i = 1; i < 100 && status == SAND_OK; ++i)
	{
		SandCacheFrame frame = frame_of(i);
		status = sand_writer_push(writer, &frame, &err);
	}
	status = status == SAND_OK ? sand_writer_flush(writer, &err) : status;
	CHECK_STATUS(status, SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "raise the limit");
	SandWriterInfo info = sand_writer_info(writer);
	uint64_t bytes = 0;
	int frame_count = 0;
	CHECK_STATUS(sand_cache_list(folder, NULL, &frame_count, &bytes, &err), SAND_OK, &err);
	CHECK(bytes <= 10000 && bytes > 5000);
	CHECK_INT(info.frame_count, frame_count);
	CHECK_INT(info.last_frame, frame_count);
	// It keeps saying so.
	CHECK_STATUS(sand_writer_flush(writer, &err), SAND_ERROR_CACHE, &err);
	sand_writer_destroy(writer);
	for (int32_t i = 1; i <= frame_count; ++i)
	{
		check_frame(i);
	}
	folder_remove(folder);
}

static void bad_descriptions_are_refused(void)
{
	SandError err = {0};
	SandWriter *writer = NULL;
	SandWriterDesc desc = {0};
	CHECK_STATUS(sand_writer_create(&desc, &writer, &err), SAND_ERROR_ARGUMENT, &err);
	desc = (SandWriterDesc){.folder = "x", .key_interval = 64};
	CHECK_STATUS(sand_writer_create(&desc, &writer, &err), SAND_ERROR_ARGUMENT, &err);
	desc = (SandWriterDesc){.folder = "x", .queue_limit = -1};
	CHECK_STATUS(sand_writer_create(&desc, &writer, &err), SAND_ERROR_ARGUMENT, &err);
	char engine[100];
	memset(engine, 'x', sizeof engine);
	engine[99] = '\0';
	desc = (SandWriterDesc){.folder = "x", .options = {.engine = engine}};
	CHECK_STATUS(sand_writer_create(&desc, &writer, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK(writer == NULL);
	sand_writer_destroy(NULL);
}

/// A bake of frames 10 to 13 and a checkpoint.
static SandStatus bake(SandError *err)
{
	SandWriterDesc desc = describe();
	SandWriter *writer = NULL;
	SandStatus status = sand_writer_create(&desc, &writer, err);
	for (int32_t i = 10; i <= 13 && status == SAND_OK; ++i)
	{
		SandCacheFrame frame = frame_of(i);
		status = sand_writer_push(writer, &frame, err);
		status = status == SAND_OK ? sand_writer_flush(writer, err) : status; // one allocation at a time
	}
	if (status == SAND_OK)
	{
		SandCheckpoint checkpoint = {.frame = 13, .settings_hash = 5, .bytes = "state", .byte_count = 5};
		status = sand_writer_push_checkpoint(writer, &checkpoint, err);
		status = status == SAND_OK ? sand_writer_flush(writer, err) : status;
	}
	sand_writer_destroy(writer);
	return status;
}

static void whatever_fails_the_frames_before_it_are_whole(void)
{
	static const int faults[] = {0, EIO, ENOSPC, EROFS, EINTR, -1}; // 0: allocations, -1: short transfers
	for (size_t f = 0; f < sizeof faults / sizeof faults[0]; ++f)
	{
		bool is_clean = false;
		uint64_t k = 1;
		for (; k < 1000 && !is_clean; ++k)
		{
			folder_make(folder);
			SandError err = {0};
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
			SandStatus status = bake(&err);
			sand_alloc_fail_after(0, false);
			sand_io_fail_after(0, 0);
			CHECK_INT(sand_alloc_bytes(), alloc_bytes);
			bool is_harmless = faults[f] == EINTR || faults[f] < 0;
			CHECK(status == SAND_OK || !is_harmless);
			if (status != SAND_OK)
			{
				CHECK_STATUS(status, faults[f] == 0 ? SAND_ERROR_MEMORY : SAND_ERROR_IO, &err);
			}
			is_clean = faults[f] == 0 ? status == SAND_OK : sand_io_call_count() - calls < k;
			int32_t *frames = NULL;
			int frame_count = 0;
			CHECK_STATUS(sand_cache_list(folder, &frames, &frame_count, NULL, &err), SAND_OK, &err);
			for (int i = 0; i < frame_count; ++i)
			{
				CHECK_INT(frames[i], 10 + i); // no gap
				check_frame(frames[i]);
			}
			sand_free(frames);
			CHECK(frame_count == 4 || status != SAND_OK);
			CHECK_INT(folder_entry_count(folder), frame_count + (folder_has(folder, SAND_CACHE_CHECKPOINT_A) ? 1 : 0));
			folder_remove(folder);
		}
		CHECK(is_clean);
		CHECK(k > 10);
	}
}

void test_writer(void)
{
	RUN(frames_and_checkpoints_arrive_in_order);
	RUN(a_pushed_frame_is_a_copy);
	RUN(the_limit_stops_the_bake_and_keeps_what_is_there);
	RUN(bad_descriptions_are_refused);
	RUN(whatever_fails_the_frames_before_it_are_whole);
}
