// checkpoint: the simulator's whole state on disk, so that a stopped bake goes on as if it had never stopped.
// Comes in: bytes of sand_sim_save. Goes out: the newest of two files that verifies. Does not know what the bytes mean.
// The two files take turns, so one whole checkpoint is always there. Layout: docs/cache-format.md.
#ifndef SAND_CHECKPOINT_H
#define SAND_CHECKPOINT_H

#include "base.h"

#define SAND_CHECKPOINT_VERSION 1

typedef struct SandCheckpoint
{
	int32_t frame;  // whose state it is: the frame is on disk before the checkpoint
	double seconds; // simulated time, finite
	uint64_t settings_hash;
	uint64_t state_hash;
	uint64_t serial;   // reading: larger = written later
	const void *bytes; // writing: caller's. Reading: sand_alloc'd, the caller's to sand_free
	size_t byte_count;
} SandCheckpoint;

/// Writes durably over the older of the two files, or the one that does not verify by its header.
/// SAND_ERROR_ARGUMENT, SAND_ERROR_IO, SAND_ERROR_MEMORY. byte_count_out (may be NULL): of the file.
SandStatus sand_checkpoint_write(const char *folder, const SandCheckpoint *checkpoint, uint64_t *byte_count_out,
                                 SandError *err);

/// The last written one of this scene for a frame up to last_frame that verifies; settings_hash 0 = of any scene. None
/// is SAND_OK with bytes NULL. A file that is damaged is passed over and named in note_out (may be NULL), which is ""
/// otherwise.
SandStatus sand_checkpoint_read(const char *folder, uint64_t settings_hash, int32_t last_frame,
                                SandCheckpoint *checkpoint_out, char note_out[SAND_MESSAGE_BYTES], SandError *err);

/// Verifies bytes as a checkpoint file; the door for the fuzzer. checkpoint_out->bytes points into them.
SandStatus sand_checkpoint_parse(const char *label, const void *bytes, size_t byte_count,
                                 SandCheckpoint *checkpoint_out, SandError *err);

#endif
