// writer: frames and checkpoints go to disk on a thread of their own while the simulation runs on.
// Comes in: frames, copied. Goes out: files, in the order given; the first failure is told by every call from then on.
// Rests of a bake that stand still are kept once: every key_interval-th frame is whole, the others may refer to it.
#ifndef SAND_WRITER_H
#define SAND_WRITER_H

#include "cache.h"
#include "checkpoint.h"

#define SAND_WRITER_KEY_INTERVAL 10

typedef struct SandWriterDesc
{
	const char *folder;       // exists; copied
	SandCacheOptions options; // base, kept_out and byte_limit are the writer's own; the engine's name is copied
	int key_interval;         // frames whose number it divides are whole; 0 = SAND_WRITER_KEY_INTERVAL, 1 = all are
	int queue_limit;          // frames and checkpoints that wait at most; 0 = 2
	uint64_t byte_limit;      // of all frames and checkpoints in the folder; 0 = none. Kept checkpoints give way to
	                          // frames, the earliest first
	const char *notes;        // of every frame, SandCacheFrame.notes; copied
	uint32_t note_bytes;
} SandWriterDesc;

typedef struct SandWriterInfo
{
	int64_t frame_count;     // written
	uint64_t byte_count;     // of these frames
	int queue_count;         // waiting or being written
	double wait_seconds;     // that pushes have waited for room: a disk slower than the simulation
	double write_seconds;    // that the thread has been encoding and writing
	int32_t last_frame;      // last one that is durable; 0 when frame_count is 0
	int32_t last_checkpoint; // frame of the last durable checkpoint; meaningful when checkpoint_count > 0
	int64_t checkpoint_count;
} SandWriterInfo;

typedef struct SandWriter SandWriter;

/// SAND_ERROR_ARGUMENT, SAND_ERROR_MEMORY.
SandStatus sand_writer_create(const SandWriterDesc *desc, SandWriter **writer_out, SandError *err);
/// Drops what waits, ends the thread, frees. NULL is fine. sand_writer_flush first to keep everything.
void sand_writer_destroy(SandWriter *writer);

/// Copies the frame into the queue; waits while it is full. A failure of an earlier write is returned here, nothing
/// that came after it was or will be written, and the files before it are whole. One pushing thread at a time.
SandStatus sand_writer_push(SandWriter *writer, const SandCacheFrame *frame, SandError *err);
/// The same for a checkpoint, which is written behind all frames pushed before. One to keep for which the limit has no
/// room is not kept, but takes its turn with the others.
SandStatus sand_writer_push_checkpoint(SandWriter *writer, const SandCheckpoint *checkpoint, SandError *err);
/// Waits until everything is durable or something failed.
SandStatus sand_writer_flush(SandWriter *writer, SandError *err);
SandWriterInfo sand_writer_info(SandWriter *writer); // any thread

#endif
