// cache: frames on disk. Comes in: named arrays. Goes out: the same arrays, or a sentence. Knows no physics.
// One folder per bake; one file per frame, "frame_000123.sand" (negative frames: "frame_-00012.sand").
// Layout: docs/cache-format.md.
#ifndef SAND_CACHE_H
#define SAND_CACHE_H

#include "base.h"

#define SAND_CACHE_VERSION 1
#define SAND_CACHE_NAME_BYTES 24
#define SAND_CACHE_ARRAY_LIMIT 32
#define SAND_CACHE_COMPONENT_LIMIT 16
/// Larger files are neither written nor read: 16 GiB, three times the largest scene.
#define SAND_CACHE_BYTE_LIMIT ((uint64_t)1 << 34)

typedef enum SandCacheType
{
	SAND_CACHE_F32 = 1,
	SAND_CACHE_I32 = 2
} SandCacheType;

/// One named array of count * component_count elements.
typedef struct SandCacheArray
{
	char name[SAND_CACHE_NAME_BYTES]; // printable ASCII, 1 character or more, NUL-terminated, unique in the frame
	uint32_t type;                    // SandCacheType
	uint32_t component_count;         // 1 .. SAND_CACHE_COMPONENT_LIMIT
	const void *data;                 // writing: caller's. reading: inside the SandCacheFrame, 64-byte aligned
} SandCacheArray;

/// One frame. After reading, sand_cache_frame_free frees the block; it may also be kept beyond the struct and freed
/// with sand_free.
typedef struct SandCacheFrame
{
	int32_t frame;          // Blender's frame number
	uint32_t count;         // elements of every array
	double seconds;         // simulated time, finite
	uint64_t settings_hash; // of the scene: frames of another scene are stale
	uint64_t state_hash;    // of the simulator's state
	SandCacheArray arrays[SAND_CACHE_ARRAY_LIMIT];
	int array_count; // 1 .. SAND_CACHE_ARRAY_LIMIT
	void *block;     // reading: sand_alloc'd, holds the data. Writing: NULL
} SandCacheFrame;

/// Writes one frame durably (temp, fsync, rename). The folder must exist (sand_io_make_folder). Fails:
/// SAND_ERROR_ARGUMENT (an array that breaks a rule above, by name), SAND_ERROR_IO, SAND_ERROR_MEMORY.
/// The arrays must not change meanwhile: they are read twice, for the checksum and for the file.
SandStatus sand_cache_write(const char *folder, const SandCacheFrame *frame, SandError *err);

/// Reads and verifies one frame: magic, version, frame number, sizes, checksums. A missing frame is SAND_ERROR_CACHE
/// and says so; SAND_ERROR_IO and SAND_ERROR_MEMORY as they come. A rejected file leaves *frame_out zeroed.
SandStatus sand_cache_read(const char *folder, int32_t frame, SandCacheFrame *frame_out, SandError *err);
void sand_cache_frame_free(SandCacheFrame *frame); // leaves it zeroed; NULL is fine

/// Frame numbers present, ascending, and the bytes of their files; names only, nothing opened. A missing folder has
/// none. Free *frames_out with sand_free; each out pointer may be NULL.
SandStatus sand_cache_list(const char *folder, int32_t **frames_out, int *frame_count_out, uint64_t *byte_count_out,
                           SandError *err);

/// Removes our frame files and left-over temporary files of ours from the folder, nothing else, and the folder when it
/// is then empty. The out pointers (each may be NULL) count what was removed, also when a removal fails and stops the
/// rest.
SandStatus sand_cache_free(const char *folder, int *file_count_out, uint64_t *byte_count_out, SandError *err);

/// For tests and tools: frame file name into a buffer of at least 32 bytes.
void sand_cache_frame_name(int32_t frame, char name_out[32]);

/// Parses and verifies bytes as a frame without a file; the door for the fuzzer. label names them in sentences. Takes
/// `bytes` (sand_alloc'd) on success only; never changes them.
SandStatus sand_cache_parse(const char *label, void *bytes, size_t byte_count, SandCacheFrame *frame_out,
                            SandError *err);

#endif
