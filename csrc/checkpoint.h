// checkpoint: the simulator's whole state on disk, so that a stopped bake goes on as if it had never stopped.
// Comes in: bytes of sand_sim_save. Goes out: the latest file that verifies. Does not know what the bytes mean.
// Two files take turns, so one whole checkpoint is always there; others are kept under the number of their frame, for
// bakes from an earlier frame on. Layout: docs/cache-format.md.
#ifndef SAND_CHECKPOINT_H
#define SAND_CHECKPOINT_H

#include "base.h"

#define SAND_CHECKPOINT_VERSION 2

typedef struct SandCheckpoint
{
	int32_t frame;  // whose state it is: the frame is on disk before the checkpoint
	double seconds; // simulated time, finite
	uint64_t settings_hash;
	uint64_t motion_hash; // of how things are moved up to this frame; 0 = nothing is
	uint64_t state_hash;
	uint64_t serial;   // reading: larger = written later, of those that take turns; 0 = kept
	bool is_kept;      // writing: under the number of its frame, beside the two that take turns
	const void *bytes; // writing: caller's. Reading: sand_alloc'd, the caller's to sand_free
	size_t byte_count;
} SandCheckpoint;

/// Writes durably: one to keep under its own name, else over the older of the two files, or the one that does not
/// verify by its header. SAND_ERROR_ARGUMENT, SAND_ERROR_IO, SAND_ERROR_MEMORY. byte_count_out (may be NULL): of the
/// file.
SandStatus sand_checkpoint_write(const char *folder, const SandCheckpoint *checkpoint, uint64_t *byte_count_out,
                                 SandError *err);

/// The one of the latest frame up to last_frame, of this scene, that verifies; settings_hash 0 = of any scene. None is
/// SAND_OK with bytes NULL. A file that is damaged is passed over and named in note_out (may be NULL), which is ""
/// otherwise.
SandStatus sand_checkpoint_read(const char *folder, uint64_t settings_hash, int32_t last_frame,
                                SandCheckpoint *checkpoint_out, char note_out[SAND_MESSAGE_BYTES], SandError *err);

/// One file of the folder, by its header, or by all its bytes.
typedef struct SandCheckpointInfo
{
	char name[32];
	uint64_t byte_count;
	SandCheckpoint checkpoint;      // without bytes; of a damaged file zero
	char error[SAND_MESSAGE_BYTES]; // what is wrong with it, or ""
} SandCheckpointInfo;
/// Ascending by name. Free *infos_out with sand_free. A missing folder has none.
SandStatus sand_checkpoint_list(const char *folder, bool is_verified, SandCheckpointInfo **infos_out, int *count_out,
                                SandError *err);

/// Bytes of the kept ones.
SandStatus sand_checkpoint_kept_bytes(const char *folder, uint64_t *byte_count_out, SandError *err);
/// Removes the kept one of the earliest frame; *byte_count_out becomes its bytes, 0 when there is none.
SandStatus sand_checkpoint_drop_kept(const char *folder, uint64_t *byte_count_out, SandError *err);

/// Verifies bytes as a checkpoint file; the door for the fuzzer. checkpoint_out->bytes points into them.
SandStatus sand_checkpoint_parse(const char *label, const void *bytes, size_t byte_count,
                                 SandCheckpoint *checkpoint_out, SandError *err);

#endif
