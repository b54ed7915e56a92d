// cache: frames on disk. Comes in: named arrays. Goes out: the same arrays, or a sentence. Knows no physics.
// One folder per bake; one file per frame, "frame_000123.sand" (negative frames: "frame_-00012.sand").
// Layout of versions 1 to 3: docs/cache-format.md. Written is version 3, all are read.
#ifndef SAND_CACHE_H
#define SAND_CACHE_H

#include "base.h"
#include "codec.h"

#define SAND_CACHE_VERSION 3
#define SAND_CACHE_NAME_BYTES 24
#define SAND_CACHE_ENGINE_BYTES 64
#define SAND_CACHE_ARRAY_LIMIT 32
#define SAND_CACHE_COMPONENT_LIMIT 16
#define SAND_CACHE_AGE_TOLERANCE 5e-4     // s that an "age" may be off by, unless everything is exact
#define SAND_CACHE_NOTES_LIMIT (1u << 24) // bytes
/// Larger files are neither written nor read, nor frames that decode to more: 16 GiB, three times the largest scene.
#define SAND_CACHE_BYTE_LIMIT ((uint64_t)1 << 34)
/// A frame refers to one that is fewer than this many frames before it.
#define SAND_CACHE_BASE_SPAN 64

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
	uint32_t encoding;   // SandEncoding. Writing: as wanted, 0 = exact; kept exact where the numbers do not allow it
	float error;         // reading: largest error of a row (m, rad or the array's unit), 0 = bit for bit
	uint64_t byte_count; // reading: in the file
} SandCacheArray;

/// One frame. After reading, sand_cache_frame_free frees the block; it may also be kept beyond the struct and freed
/// with sand_free.
typedef struct SandCacheFrame
{
	int32_t frame;          // Blender's frame number
	uint32_t count;         // elements of every array
	double seconds;         // simulated time, finite
	uint64_t settings_hash; // of the scene: frames of another scene are stale
	uint64_t motion_hash;   // of how things are moved up to this frame; 0 = nothing is
	uint64_t state_hash;    // of the simulator's state
	SandCacheArray arrays[SAND_CACHE_ARRAY_LIMIT];
	int array_count;     // 1 .. SAND_CACHE_ARRAY_LIMIT
	void *block;         // reading: sand_alloc'd, holds the data and the notes. Writing: NULL
	const char *notes;   // what does not change during a bake, as text: names. UTF-8, need not end in NUL; NULL = none
	uint32_t note_bytes; // up to SAND_CACHE_NOTES_LIMIT
	// Known after reading or writing:
	uint32_t version;                     // of the file
	uint32_t full_count;                  // grains in the file; count is less when every k-th was asked for
	uint64_t byte_count;                  // of the file
	float bounds[6];                      // least and greatest x y z of "position"; zero without grains
	double tolerance;                     // m, that positions may be off by; 0 = exact
	uint32_t exact_count;                 // first elements that are exact in every array
	char engine[SAND_CACHE_ENGINE_BYTES]; // what made it
	uint64_t identity;                    // of the contents: two files with the same one hold the same
	bool has_base;                        // elements that are as in another frame are kept there
	int32_t base_frame;
	uint64_t base_identity;
} SandCacheFrame;

/// Zero writes everything exactly, compressed, on all cores, and refers to no other frame.
typedef struct SandCacheOptions
{
	double tolerance;          // m: largest distance of a GRID row from its place; 0 = every array exact
	double velocity_tolerance; // m/s: "velocity" may be off by that much, or by binary16's rounding; 0 = only by that
	double spin_tolerance;     // rad/s: the same for "spin"
	uint32_t exact_count;      // the first elements are exact in every array: bodies, that need more than grains do
	int thread_count;          // 0 = one per core
	int zstd_level;            // 0 = SAND_CODEC_DEFAULT_LEVEL, -1 = nothing is compressed
	const char *engine;        // up to 63 printable ASCII characters; NULL = ""
	SandCacheFrame *base;      // whole frame, read or kept: what is equal there is not stored again. NULL = none.
	                      // Ignored when it has a base itself, other arrays, another count or is not shortly before
	SandCacheFrame *kept_out; // unless NULL: the frame as a reader will see it; sand_cache_frame_free
	uint64_t byte_limit;      // 0 = none: refuses a file that is larger
} SandCacheOptions;

/// The encoding that suits an array of that name: position, rotation or orientation, velocity, spin, age; others exact.
SandEncoding sand_cache_encoding(const char *name);

/// Writes one frame durably (temp, fsync, rename). The folder must exist (sand_io_make_folder). options may be NULL.
/// Frames that refer to an older file of this number, whose contents differ, are first made to stand alone. Fails:
/// SAND_ERROR_ARGUMENT (an array that breaks a rule above, by name), SAND_ERROR_CACHE (byte_limit), SAND_ERROR_IO,
/// SAND_ERROR_MEMORY. The arrays must not change meanwhile.
/// byte_count_out may be NULL.
SandStatus sand_cache_write(const char *folder, const SandCacheFrame *frame, const SandCacheOptions *options,
                            uint64_t *byte_count_out, SandError *err);

/// Bytes that sand_cache_write would write, without writing: for estimates.
SandStatus sand_cache_measure(const SandCacheFrame *frame, const SandCacheOptions *options, uint64_t *byte_count_out,
                              SandError *err);

/// What to read. Zero = everything.
typedef struct SandCacheWanted
{
	const char *const *names; // arrays, in any order; name_count 0 = all
	int name_count;
	uint32_t every;     // every k-th element only, from the first; 0 = 1
	int thread_count;   // 0 = one per core
	bool has_notes;     // also the notes
	bool has_no_arrays; // nothing but the notes
} SandCacheWanted;

/// Reads and verifies one frame, or the asked parts of it: magic, version, frame number, sizes, checksums, and the base
/// when elements are kept there. Bytes of other parts are not read. wanted may be NULL.
/// A missing frame, or one whose base is missing or another, is SAND_ERROR_CACHE and says so; SAND_ERROR_ARGUMENT for a
/// name that the frame has not; SAND_ERROR_IO and SAND_ERROR_MEMORY as they come. A rejected file leaves *frame_out
/// zeroed.
SandStatus sand_cache_read(const char *folder, int32_t frame, const SandCacheWanted *wanted, SandCacheFrame *frame_out,
                           SandError *err);
void sand_cache_frame_free(SandCacheFrame *frame); // leaves it zeroed; NULL is fine

/// For whoever reads frame after frame: keeps its threads, their working memory and the block of a frame that was given
/// back, so that a frame asks the system for nothing. Fails: SAND_ERROR_ARGUMENT (thread_count), SAND_ERROR_MEMORY.
typedef struct SandCacheReader SandCacheReader;
SandStatus sand_cache_reader_create(int thread_count, SandCacheReader **reader_out, SandError *err);
/// NULL is fine. No call may be under way; frames that were read stay good.
void sand_cache_reader_destroy(SandCacheReader *reader);
/// As sand_cache_read, on the reader's threads instead of wanted's. Any thread: one frame at a time, a second one
/// waits.
SandStatus sand_cache_reader_read(SandCacheReader *reader, const char *folder, int32_t frame,
                                  const SandCacheWanted *wanted, SandCacheFrame *frame_out, SandError *err);
/// Takes the block of a frame that nobody needs any more, for a next one of about its size; the one it had is freed.
/// Any thread. NULL frees that one alone.
void sand_cache_reader_give_back(SandCacheReader *reader, void *block);

/// Header and table only: everything but data, which is NULL. Fails as sand_cache_read.
SandStatus sand_cache_peek(const char *folder, int32_t frame, SandCacheFrame *frame_out, SandError *err);

/// Frame numbers present, ascending, and the bytes of their files; names only, nothing opened. A missing folder has
/// none. Free *frames_out with sand_free; each out pointer may be NULL.
SandStatus sand_cache_list(const char *folder, int32_t **frames_out, int *frame_count_out, uint64_t *byte_count_out,
                           SandError *err);

/// Removes our frame files from first to last, and frames that refer to one of them are first made to stand alone.
/// With first INT32_MIN and last INT32_MAX also checkpoints and left-over temporary files of ours, and the folder when
/// it is then empty; never a file of others, never the lock. The out pointers (each may be NULL) count what was
/// removed, also when a removal fails and stops the rest.
SandStatus sand_cache_free(const char *folder, int32_t first, int32_t last, int *file_count_out,
                           uint64_t *byte_count_out, SandError *err);

/// For tests and tools: frame file name into a buffer of at least 32 bytes.
void sand_cache_frame_name(int32_t frame, char name_out[32]);

/// Names in the folder that are ours besides frames. Checkpoints that are kept are "checkpoint_000123.sand".
#define SAND_CACHE_CHECKPOINT_A "checkpoint_a.sand"
#define SAND_CACHE_CHECKPOINT_B "checkpoint_b.sand"
void sand_cache_checkpoint_name(int32_t frame, char name_out[32]);
/// *is_kept_out and *frame_out (of a kept one) are set when it is one.
bool sand_cache_is_checkpoint(const char *name, bool *is_kept_out, int32_t *frame_out);
#define SAND_CACHE_LOCK "lock.sand"

/// Parses and verifies bytes as a frame without a file; the door for the fuzzer. label names them in sentences.
/// base_bytes is the file it refers to, NULL when there is none. Copies what it needs.
SandStatus sand_cache_parse(const char *label, const void *bytes, size_t byte_count, const void *base_bytes,
                            size_t base_byte_count, const SandCacheWanted *wanted, SandCacheFrame *frame_out,
                            SandError *err);

#endif
