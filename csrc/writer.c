// writer: frames and checkpoints go to disk on a thread of their own while the simulation runs on.
// Comes in: frames, copied. Goes out: files, in the order given; the first failure is told by every call from then on.
#include "writer.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#define QUEUE_LIMIT 64
#define DEFAULT_QUEUE 2

typedef struct Item
{
	struct Item *next;
	SandCacheFrame frame; // array_count 0: a checkpoint
	SandCheckpoint checkpoint;
	void *block; // holds what either points to
} Item;

struct SandWriter
{
	char *folder;
	char engine[SAND_CACHE_ENGINE_BYTES];
	SandCacheOptions options;
	int key_interval;
	int queue_limit;
	uint64_t byte_limit;
	char *notes;
	uint32_t note_bytes;

	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	// Under the mutex:
	Item *first, *last;
	bool is_stopping;
	SandError error; // the first failure; status SAND_OK while there is none
	SandWriterInfo info;

	uint64_t checkpoint_bytes; // the thread's own: of one, 0 while there is none
	SandCacheFrame key;        // the thread's own: the last whole frame, for the next ones to refer to
};

static void item_free(Item *item)
{
	if (item != NULL)
	{
		sand_free(item->block);
		sand_free(item);
	}
}

static int32_t key_of(const SandWriter *writer, int32_t frame)
{
	int64_t n = frame, interval = writer->key_interval;
	int64_t key = (n >= 0 ? n / interval : -((-n + interval - 1) / interval)) * interval;
	return key < INT32_MIN ? frame : (int32_t)key;
}

/// The frame that this one may refer to: in memory, or on disk when frames are baked again one by one. Not finding one
/// is no failure, the frame is then whole.
static SandStatus find_key(SandWriter *writer, const SandCacheFrame *frame, SandCacheFrame **key_out, SandError *err)
{
	*key_out = NULL;
	int32_t number = key_of(writer, frame->frame);
	if (number == frame->frame)
	{
		return SAND_OK;
	}
	if (writer->key.block == NULL || writer->key.frame != number || writer->key.settings_hash != frame->settings_hash)
	{
		sand_cache_frame_free(&writer->key);
		SandError found = {0};
		SandCacheFrame head;
		SandStatus status = sand_cache_peek(writer->folder, number, &head, &found);
		if (status == SAND_OK && !head.has_base && head.settings_hash == frame->settings_hash &&
		    head.count == frame->count)
		{
			SandCacheWanted wanted = {.thread_count = writer->options.thread_count, .has_notes = true};
			status = sand_cache_read(writer->folder, number, &wanted, &writer->key, &found);
		}
		if (status != SAND_OK && status != SAND_ERROR_CACHE)
		{
			*err = found;
			return status;
		}
	}
	*key_out = writer->key.block != NULL ? &writer->key : NULL;
	return SAND_OK;
}

static SandStatus write_frame(SandWriter *writer, const SandCacheFrame *frame, uint64_t room, uint64_t *bytes_out,
                              SandError *err)
{
	SandCacheOptions options = writer->options;
	SandCacheFrame kept = {0};
	SandStatus status = find_key(writer, frame, &options.base, err);
	if (status != SAND_OK)
	{
		return status;
	}
	bool is_key = key_of(writer, frame->frame) == frame->frame && writer->key_interval > 1;
	options.kept_out = is_key ? &kept : NULL;
	options.byte_limit = room;
	status = sand_cache_write(writer->folder, frame, &options, bytes_out, err);
	if (status == SAND_OK && is_key)
	{
		sand_cache_frame_free(&writer->key);
		writer->key = kept;
	}
	return status;
}

/// Bytes of all frames in the folder, of the two checkpoints that are or will be there, and of kept ones.
static SandStatus measure_folder(const SandWriter *writer, const Item *item, uint64_t *bytes_out, SandError *err)
{
	uint64_t kept_bytes = 0;
	SandStatus status = sand_cache_list(writer->folder, NULL, NULL, bytes_out, err);
	status = status == SAND_OK ? sand_checkpoint_kept_bytes(writer->folder, &kept_bytes, err) : status;
	bool is_turn = item->frame.array_count == 0 && !item->checkpoint.is_kept;
	*bytes_out += 2 * (is_turn ? item->checkpoint.byte_count : writer->checkpoint_bytes) + kept_bytes;
	return status;
}

static SandStatus fail_full(const SandWriter *writer, uint64_t used, SandError *err)
{
	return sand_fail(err, SAND_ERROR_CACHE,
	                 "The cache '%.200s' takes %" PRIu64 " bytes with its checkpoints, the limit is %" PRIu64
	                 "; raise the limit or free older frames, those baked so far are kept",
	                 writer->folder, used, writer->byte_limit);
}

/// Bytes that the limit leaves, 0 = any. When none are left, kept checkpoints give way.
static SandStatus find_room(const SandWriter *writer, const Item *item, uint64_t *room_out, SandError *err)
{
	*room_out = 0;
	uint64_t used = 0, dropped = 1;
	SandStatus status = SAND_OK;
	while (writer->byte_limit > 0 && *room_out == 0 && dropped > 0 && status == SAND_OK)
	{
		status = measure_folder(writer, item, &used, err);
		*room_out = status == SAND_OK && used < writer->byte_limit ? writer->byte_limit - used : 0;
		if (status == SAND_OK && *room_out == 0)
		{
			status = sand_checkpoint_drop_kept(writer->folder, &dropped, err);
		}
	}
	return status == SAND_OK && dropped == 0 ? fail_full(writer, used, err) : status;
}

static SandStatus write_checkpoint(SandWriter *writer, const Item *item, uint64_t *bytes_out, SandError *err)
{
	SandCheckpoint checkpoint = item->checkpoint;
	if (checkpoint.is_kept && writer->byte_limit > 0)
	{
		uint64_t used;
		SandStatus status = measure_folder(writer, item, &used, err);
		if (status != SAND_OK)
		{
			return status;
		}
		checkpoint.is_kept = used + checkpoint.byte_count < writer->byte_limit;
	}
	if (!checkpoint.is_kept)
	{
		uint64_t room;
		Item turn = {.checkpoint = checkpoint};
		SandStatus status = find_room(writer, &turn, &room, err);
		if (status != SAND_OK)
		{
			return status;
		}
		writer->checkpoint_bytes = checkpoint.byte_count;
	}
	return sand_checkpoint_write(writer->folder, &checkpoint, bytes_out, err);
}

static SandStatus write_item(SandWriter *writer, const Item *item, uint64_t *bytes_out, SandError *err)
{
	if (item->frame.array_count == 0)
	{
		return write_checkpoint(writer, item, bytes_out, err);
	}
	for (;;)
	{
		uint64_t room, dropped;
		SandStatus status = find_room(writer, item, &room, err);
		status = status == SAND_OK ? write_frame(writer, &item->frame, room, bytes_out, err) : status;
		if (status != SAND_ERROR_CACHE || room == 0)
		{
			return status;
		}
		// The frame is larger than what the limit leaves: a kept checkpoint gives way, if there is one.
		SandError failure = {0};
		SandStatus drop_status = sand_checkpoint_drop_kept(writer->folder, &dropped, &failure);
		if (drop_status != SAND_OK)
		{
			*err = failure;
			return drop_status;
		}
		if (dropped == 0)
		{
			return status;
		}
	}
}

static void count_item(SandWriterInfo *info, const Item *item, uint64_t bytes, double seconds)
{
	info->write_seconds += seconds;
	if (item->frame.array_count > 0)
	{
		info->frame_count++;
		info->byte_count += bytes;
		info->last_frame = item->frame.frame;
	}
	else
	{
		info->checkpoint_count++;
		info->last_checkpoint = item->checkpoint.frame;
	}
}

static void *writer_main(void *argument)
{
	SandWriter *writer = argument;
	pthread_mutex_lock(&writer->mutex);
	for (;;)
	{
		while (writer->first == NULL && !writer->is_stopping)
		{
			pthread_cond_wait(&writer->changed, &writer->mutex);
		}
		if (writer->is_stopping)
		{
			break;
		}
		Item *item = writer->first;
		bool is_dropped = writer->error.status != SAND_OK;
		pthread_mutex_unlock(&writer->mutex);
		SandError err = {0};
		uint64_t bytes = 0;
		double start = sand_ticks();
		SandStatus status = is_dropped ? SAND_OK : write_item(writer, item, &bytes, &err);
		double seconds = sand_ticks() - start;
		pthread_mutex_lock(&writer->mutex);
		if (status != SAND_OK)
		{
			writer->error = err;
		}
		else if (!is_dropped)
		{
			count_item(&writer->info, item, bytes, seconds);
		}
		writer->first = item->next;
		writer->last = writer->first == NULL ? NULL : writer->last;
		writer->info.queue_count--;
		item_free(item);
		pthread_cond_broadcast(&writer->changed);
	}
	pthread_mutex_unlock(&writer->mutex);
	return NULL;
}

SandStatus sand_writer_create(const SandWriterDesc *desc, SandWriter **writer_out, SandError *err)
{
	*writer_out = NULL;
	if (desc->folder == NULL || desc->folder[0] == '\0')
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The cache folder is empty; choose a folder");
	}
	if (desc->key_interval < 0 || desc->key_interval >= SAND_CACHE_BASE_SPAN || desc->queue_limit < 0 ||
	    desc->queue_limit > QUEUE_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "The writer was given key_interval %d and queue_limit %d, expected 0 to %d and 0 to %d",
		                 desc->key_interval, desc->queue_limit, SAND_CACHE_BASE_SPAN - 1, QUEUE_LIMIT);
	}
	const char *engine = desc->options.engine != NULL ? desc->options.engine : "";
	if (strlen(engine) >= SAND_CACHE_ENGINE_BYTES)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The engine's name has %zu characters, expected at most %d",
		                 strlen(engine), SAND_CACHE_ENGINE_BYTES - 1);
	}
	if (desc->note_bytes > SAND_CACHE_NOTES_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The notes have %" PRIu32 " bytes, expected at most %u",
		                 desc->note_bytes, SAND_CACHE_NOTES_LIMIT);
	}
	size_t folder_size = strlen(desc->folder) + 1;
	SandWriter *writer = sand_alloc(1, sizeof *writer);
	char *folder = sand_alloc(folder_size, 1);
	char *notes = sand_alloc((size_t)desc->note_bytes + 1, 1);
	if (writer == NULL || folder == NULL || notes == NULL)
	{
		sand_free(writer);
		sand_free(folder);
		sand_free(notes);
		return sand_fail_memory(err, sizeof *writer + folder_size + desc->note_bytes, "the writer of frames");
	}
	memcpy(folder, desc->folder, folder_size);
	if (desc->note_bytes > 0)
	{
		memcpy(notes, desc->notes, desc->note_bytes);
	}
	writer->folder = folder;
	writer->notes = notes;
	writer->note_bytes = desc->note_bytes;
	memcpy(writer->engine, engine, strlen(engine));
	writer->options = desc->options;
	writer->options.engine = writer->engine;
	writer->options.base = NULL;
	writer->options.kept_out = NULL;
	writer->key_interval = desc->key_interval == 0 ? SAND_WRITER_KEY_INTERVAL : desc->key_interval;
	writer->queue_limit = desc->queue_limit == 0 ? DEFAULT_QUEUE : desc->queue_limit;
	writer->byte_limit = desc->byte_limit;
	pthread_mutex_init(&writer->mutex, NULL);
	pthread_cond_init(&writer->changed, NULL);
	if (pthread_create(&writer->thread, NULL, writer_main, writer) != 0)
	{
		pthread_cond_destroy(&writer->changed);
		pthread_mutex_destroy(&writer->mutex);
		sand_free(folder);
		sand_free(notes);
		sand_free(writer);
		return sand_fail(err, SAND_ERROR_MEMORY,
		                 "The thread that writes frames could not be started; end other programs");
	}
	*writer_out = writer;
	return SAND_OK;
}

void sand_writer_destroy(SandWriter *writer)
{
	if (writer == NULL)
	{
		return;
	}
	pthread_mutex_lock(&writer->mutex);
	writer->is_stopping = true;
	pthread_cond_broadcast(&writer->changed);
	pthread_mutex_unlock(&writer->mutex);
	pthread_join(writer->thread, NULL);
	for (Item *item = writer->first, *next; item != NULL; item = next)
	{
		next = item->next;
		item_free(item);
	}
	sand_cache_frame_free(&writer->key);
	pthread_cond_destroy(&writer->changed);
	pthread_mutex_destroy(&writer->mutex);
	sand_free(writer->folder);
	sand_free(writer->notes);
	sand_free(writer);
}

/// Takes item; frees it on failure.
static SandStatus push(SandWriter *writer, Item *item, SandError *err)
{
	pthread_mutex_lock(&writer->mutex);
	double start = sand_ticks();
	while (writer->info.queue_count >= writer->queue_limit && writer->error.status == SAND_OK)
	{
		pthread_cond_wait(&writer->changed, &writer->mutex);
	}
	writer->info.wait_seconds += sand_ticks() - start;
	SandStatus status = writer->error.status;
	if (status != SAND_OK)
	{
		if (err != NULL)
		{
			*err = writer->error;
		}
	}
	else
	{
		if (writer->last != NULL)
		{
			writer->last->next = item;
		}
		else
		{
			writer->first = item;
		}
		writer->last = item;
		writer->info.queue_count++;
		pthread_cond_broadcast(&writer->changed);
	}
	pthread_mutex_unlock(&writer->mutex);
	if (status != SAND_OK)
	{
		item_free(item);
	}
	return status;
}

static SandStatus make_item(size_t byte_count, Item **item_out, SandError *err)
{
	Item *item = sand_alloc(1, sizeof *item);
	void *block = sand_alloc_raw(byte_count, 1);
	if (item == NULL || block == NULL)
	{
		sand_free(item);
		sand_free(block);
		return sand_fail_memory(err, byte_count, "a frame that waits to be written");
	}
	item->block = block;
	*item_out = item;
	return SAND_OK;
}

SandStatus sand_writer_push(SandWriter *writer, const SandCacheFrame *frame, SandError *err)
{
	if (frame->array_count < 1 || frame->array_count > SAND_CACHE_ARRAY_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Frame %" PRId32 " has %d arrays, expected 1 to %d", frame->frame,
		                 frame->array_count, SAND_CACHE_ARRAY_LIMIT);
	}
	uint64_t total = 0;
	for (int i = 0; i < frame->array_count; ++i)
	{
		const SandCacheArray *array = &frame->arrays[i];
		if (array->component_count > SAND_CACHE_COMPONENT_LIMIT || (array->data == NULL && frame->count > 0))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Frame %" PRId32 ", array %d: %" PRIu32 " components, or no data", frame->frame, i,
			                 array->component_count);
		}
		total += (uint64_t)frame->count * array->component_count * 4;
	}
	if (total > SAND_CACHE_BYTE_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Frame %" PRId32 " would take %" PRIu64 " bytes, more than %" PRIu64 "; use fewer grains",
		                 frame->frame, total, SAND_CACHE_BYTE_LIMIT);
	}
	Item *item = NULL;
	SandStatus status = make_item((size_t)total, &item, err);
	if (status != SAND_OK)
	{
		return status;
	}
	item->frame = *frame;
	item->frame.notes = writer->note_bytes > 0 ? writer->notes : NULL;
	item->frame.note_bytes = writer->note_bytes;
	char *place = item->block;
	for (int i = 0; i < frame->array_count; ++i)
	{
		size_t bytes = (size_t)frame->count * frame->arrays[i].component_count * 4;
		if (bytes > 0)
		{
			memcpy(place, frame->arrays[i].data, bytes);
		}
		item->frame.arrays[i].data = place;
		place += bytes;
	}
	return push(writer, item, err);
}

SandStatus sand_writer_push_checkpoint(SandWriter *writer, const SandCheckpoint *checkpoint, SandError *err)
{
	if (checkpoint->bytes == NULL || checkpoint->byte_count == 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The checkpoint of frame %" PRId32 " has no bytes",
		                 checkpoint->frame);
	}
	Item *item = NULL;
	SandStatus status = make_item(checkpoint->byte_count, &item, err);
	if (status != SAND_OK)
	{
		return status;
	}
	item->checkpoint = *checkpoint;
	memcpy(item->block, checkpoint->bytes, checkpoint->byte_count);
	item->checkpoint.bytes = item->block;
	return push(writer, item, err);
}

SandStatus sand_writer_flush(SandWriter *writer, SandError *err)
{
	pthread_mutex_lock(&writer->mutex);
	while (writer->first != NULL && writer->error.status == SAND_OK)
	{
		pthread_cond_wait(&writer->changed, &writer->mutex);
	}
	SandStatus status = writer->error.status;
	if (status != SAND_OK && err != NULL)
	{
		*err = writer->error;
	}
	pthread_mutex_unlock(&writer->mutex);
	return status;
}

SandWriterInfo sand_writer_info(SandWriter *writer)
{
	pthread_mutex_lock(&writer->mutex);
	SandWriterInfo info = writer->info;
	pthread_mutex_unlock(&writer->mutex);
	return info;
}
