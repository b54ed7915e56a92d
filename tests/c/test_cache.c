// test_cache: frames come back bit for bit, and nothing that is not a whole frame is taken for one.
// Version 1 is no longer written: old_bytes writes it here, from the document.
#include "cache.h"
#include "checkpoint.h"

#include "folder.h"
#include "io.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

#include <errno.h>
#include <inttypes.h>

static char folder[FOLDER_PATH_BYTES]; // of the running test

// Places in the file, from docs/cache-format.md, written out here so that a change of the format fails a test.
enum
{
	HEADER_BYTES = 128,
	ENTRY_BYTES = 64,
	AT_VERSION = 8,
	AT_ENDIAN = 12,
	AT_HEADER_BYTES = 16,
	AT_ARRAY_COUNT = 20,
	AT_LAYOUT_HASH = 24,
	AT_TOTAL_BYTES = 32,
	AT_FRAME = 40,
	AT_COUNT = 44,
	AT_SECONDS = 48,
	AT_SETTINGS_HASH = 56,
	AT_STATE_HASH = 64,
	AT_TABLE_CHECKSUM = 72,
	AT_RESERVED = 80,
	AT_HEADER_CHECKSUM = 120,
	AT_ENTRY_TYPE = 24,
	AT_ENTRY_COMPONENTS = 28,
	AT_ENTRY_OFFSET = 32,
	AT_ENTRY_BYTES = 40,
	AT_ENTRY_CHECKSUM = 48,
	AT_ENTRY_RESERVED = 56,
	// Version 2
	NEW_HEADER_BYTES = 256,
	NEW_ENTRY_BYTES = 128,
	NEW_AT_BOUNDS = 80,
	NEW_AT_TOLERANCE = 104,
	NEW_AT_EXACT_COUNT = 112,
	NEW_AT_FLAGS = 116,
	NEW_AT_BASE_IDENTITY = 120,
	NEW_AT_BASE_FRAME = 128,
	NEW_AT_LEVEL_COUNT = 132,
	NEW_AT_ENGINE = 136,
	NEW_AT_MOTION_HASH = 200,
	NEW_AT_NOTES_CHECKSUM = 208,
	NEW_AT_NOTE_BYTES = 216,
	NEW_AT_RESERVED = 220,
	NEW_AT_HEADER_CHECKSUM = 248,
	NEW_AT_ENTRY_ENCODING = 56,
	NEW_AT_ENTRY_WORD_BYTES = 60,
	NEW_AT_ENTRY_STEP = 64,
	NEW_AT_ENTRY_ORIGIN = 72,
	NEW_AT_ENTRY_ERROR = 84,
	NEW_AT_ENTRY_RESERVED = 88,
	PIECE_BYTES = 16,
};

static const SandCacheWanted everything = {.has_notes = true};

#define GRAIN_COUNT 7
static float positions[3 * GRAIN_COUNT];
static float rotations[4 * GRAIN_COUNT];
static int32_t ids[GRAIN_COUNT];

static SandCacheFrame example_frame(int32_t number)
{
	for (int i = 0; i < 3 * GRAIN_COUNT; ++i)
	{
		positions[i] = 0.25f * (float)i - 1.0f;
	}
	for (int i = 0; i < 4 * GRAIN_COUNT; ++i)
	{
		rotations[i] = -3.5f * (float)i;
	}
	for (int i = 0; i < GRAIN_COUNT; ++i)
	{
		ids[i] = INT32_MIN + i;
	}
	positions[1] = NAN; // the cache keeps bits, whatever they mean
	positions[2] = INFINITY;
	return (SandCacheFrame){
	    .frame = number,
	    .count = GRAIN_COUNT,
	    .seconds = 1.25,
	    .settings_hash = UINT64_C(0x1122334455667788),
	    .state_hash = UINT64_MAX,
	    .arrays =
	        {
	            {"position", SAND_CACHE_F32, 3, positions},
	            {"rotation", SAND_CACHE_F32, 4, rotations},
	            {"id", SAND_CACHE_I32, 1, ids},
	        },
	    .array_count = 3,
	};
}

static void check_same(const SandCacheFrame *found, const SandCacheFrame *expected)
{
	CHECK_INT(found->frame, expected->frame);
	CHECK_INT(found->count, expected->count);
	CHECK(memcmp(&found->seconds, &expected->seconds, sizeof found->seconds) == 0);
	CHECK(found->settings_hash == expected->settings_hash);
	CHECK(found->state_hash == expected->state_hash);
	if (!CHECK_INT(found->array_count, expected->array_count))
	{
		return;
	}
	for (int i = 0; i < found->array_count; ++i)
	{
		const SandCacheArray *array = &found->arrays[i];
		CHECK(strcmp(array->name, expected->arrays[i].name) == 0);
		CHECK_INT(array->type, expected->arrays[i].type);
		CHECK_INT(array->component_count, expected->arrays[i].component_count);
		CHECK((uintptr_t)array->data % 64 == 0);
		size_t bytes = (size_t)found->count * array->component_count * 4;
		CHECK(bytes == 0 || memcmp(array->data, expected->arrays[i].data, bytes) == 0);
	}
}

static bool is_zeroed(const SandCacheFrame *frame)
{
	static const SandCacheFrame zero;
	return memcmp(frame, &zero, sizeof zero) == 0;
}

static const char *frame_path(int32_t number)
{
	static char path[FOLDER_PATH_BYTES];
	char name[32];
	sand_cache_frame_name(number, name);
	snprintf(path, sizeof path, "%.4000s/%s", folder, name);
	return path;
}

static void put_u32(unsigned char *bytes, size_t at, uint32_t value)
{
	memcpy(bytes + at, &value, sizeof value);
}

static void put_u64(unsigned char *bytes, size_t at, uint64_t value)
{
	memcpy(bytes + at, &value, sizeof value);
}

static uint32_t get_u32(const unsigned char *bytes, size_t at)
{
	uint32_t value;
	memcpy(&value, bytes + at, sizeof value);
	return value;
}

static uint64_t get_u64(const unsigned char *bytes, size_t at)
{
	uint64_t value;
	memcpy(&value, bytes + at, sizeof value);
	return value;
}

/// The example frame in version 1, by the document, in a block of malloc of exactly that size: an overrun is seen.
static unsigned char *old_bytes(size_t *byte_count_out)
{
	static const unsigned char magic[8] = {0x89, 'S', 'A', 'N', 'D', 0x0D, 0x0A, 0x1A};
	SandCacheFrame frame = example_frame(5);
	size_t at = HEADER_BYTES + 3 * ENTRY_BYTES;
	*byte_count_out = at + 128 + 128 + 64; // 84, 112 and 28 bytes of data, each filled up to a multiple of 64
	unsigned char *bytes = calloc(*byte_count_out, 1);
	if (bytes == NULL)
	{
		abort();
	}
	uint64_t layout = 0;
	for (size_t i = 0; i < 3; ++i)
	{
		unsigned char *entry = bytes + HEADER_BYTES + i * ENTRY_BYTES;
		const SandCacheArray *array = &frame.arrays[i];
		size_t size = (size_t)4 * GRAIN_COUNT * array->component_count;
		memcpy(entry, array->name, strlen(array->name));
		put_u32(entry, AT_ENTRY_TYPE, array->type);
		put_u32(entry, AT_ENTRY_COMPONENTS, array->component_count);
		layout = sand_hash64(entry, AT_ENTRY_OFFSET, layout);
		put_u64(entry, AT_ENTRY_OFFSET, at);
		put_u64(entry, AT_ENTRY_BYTES, size);
		put_u64(entry, AT_ENTRY_CHECKSUM, sand_hash64(array->data, size, 0));
		memcpy(bytes + at, array->data, size);
		at += (size + 63) / 64 * 64;
	}
	memcpy(bytes, magic, sizeof magic);
	put_u32(bytes, AT_VERSION, 1);
	put_u32(bytes, AT_ENDIAN, 0x01020304);
	put_u32(bytes, AT_HEADER_BYTES, HEADER_BYTES);
	put_u32(bytes, AT_ARRAY_COUNT, 3);
	put_u64(bytes, AT_LAYOUT_HASH, layout);
	put_u64(bytes, AT_TOTAL_BYTES, *byte_count_out);
	put_u32(bytes, AT_FRAME, 5);
	put_u32(bytes, AT_COUNT, GRAIN_COUNT);
	memcpy(bytes + AT_SECONDS, &frame.seconds, sizeof frame.seconds);
	put_u64(bytes, AT_SETTINGS_HASH, frame.settings_hash);
	put_u64(bytes, AT_STATE_HASH, frame.state_hash);
	put_u64(bytes, AT_TABLE_CHECKSUM, sand_hash64(bytes + HEADER_BYTES, (size_t)3 * ENTRY_BYTES, 0));
	put_u64(bytes, AT_HEADER_CHECKSUM, sand_hash64(bytes, AT_HEADER_CHECKSUM, 0));
	return bytes;
}

/// The bytes of the example frame as they are on disk, in a block of malloc of exactly that size: an overrun is seen.
static unsigned char *new_bytes(size_t *byte_count_out)
{
	SandCacheFrame frame = example_frame(5);
	SandError err = {0};
	folder_make(folder);
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_OK, &err);
	void *bytes = NULL;
	CHECK_STATUS(sand_io_read_file(frame_path(5), 1 << 20, &bytes, byte_count_out, &err), SAND_OK, &err);
	folder_remove(folder);
	unsigned char *copy = malloc(*byte_count_out);
	if (bytes == NULL || copy == NULL)
	{
		abort();
	}
	memcpy(copy, bytes, *byte_count_out);
	sand_free(bytes);
	return copy;
}

/// Parses bytes that must be refused, in a block of exactly their size. True when they were, with nothing taken.
static bool is_refused(const unsigned char *bytes, size_t byte_count, SandError *err)
{
	unsigned char *block = malloc(byte_count == 0 ? 1 : byte_count);
	if (block == NULL)
	{
		abort();
	}
	memcpy(block, bytes, byte_count);
	SandCacheFrame frame;
	memset(&frame, 0xAB, sizeof frame);
	*err = (SandError){0};
	// One byte beyond a block of size 0 is allocated but must not be read either: the size given is what counts.
	SandStatus status = sand_cache_parse("bytes", block, byte_count, NULL, 0, &everything, &frame, err);
	bool is_untouched = memcmp(block, bytes, byte_count) == 0;
	free(block);
	return status == SAND_ERROR_CACHE && err->status == status && strstr(err->message, "bytes") != NULL &&
	       is_zeroed(&frame) && is_untouched;
}

/// Makes the checksums of a changed file right again, so that the checks behind them are reached.
static void sign(unsigned char *bytes, size_t byte_count)
{
	bool is_old = get_u32(bytes, AT_VERSION) < 2;
	size_t header_bytes = is_old ? HEADER_BYTES : NEW_HEADER_BYTES;
	size_t at = is_old ? AT_HEADER_CHECKSUM : NEW_AT_HEADER_CHECKSUM;
	uint64_t table_bytes = (uint64_t)get_u32(bytes, AT_ARRAY_COUNT) * (is_old ? ENTRY_BYTES : NEW_ENTRY_BYTES);
	if (table_bytes <= byte_count - header_bytes)
	{
		put_u64(bytes, AT_TABLE_CHECKSUM, sand_hash64(bytes + header_bytes, (size_t)table_bytes, 0));
	}
	put_u64(bytes, at, sand_hash64(bytes, at, 0));
}

static void frames_of_every_type_read_back_bit_for_bit(void)
{
	folder_make(folder);
	SandError err = {0};
	SandCacheFrame frame = example_frame(-12);
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_OK, &err);
	SandCacheFrame found;
	CHECK_STATUS(sand_cache_read(folder, -12, NULL, &found, &err), SAND_OK, &err);
	check_same(&found, &frame);
	sand_cache_frame_free(&found);
	CHECK(is_zeroed(&found));
	// As many and as wide as allowed, and a name of full length.
	static float wide[16 * GRAIN_COUNT] = {1.0f, -2.0f};
	SandCacheFrame many = {.frame = INT32_MAX, .count = GRAIN_COUNT, .array_count = SAND_CACHE_ARRAY_LIMIT};
	for (int i = 0; i < SAND_CACHE_ARRAY_LIMIT; ++i)
	{
		many.arrays[i] =
		    (SandCacheArray){.type = 1 + (uint32_t)i % 2, .component_count = 1 + (uint32_t)i % 16, .data = wide};
		memcpy(many.arrays[i].name, "a_name_of_23_characters", SAND_CACHE_NAME_BYTES);
		many.arrays[i].name[0] = (char)('A' + i);
	}
	CHECK_STATUS(sand_cache_write(folder, &many, NULL, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_read(folder, INT32_MAX, NULL, &found, &err), SAND_OK, &err);
	check_same(&found, &many);
	sand_cache_frame_free(&found);
	// No grains at all.
	frame.count = 0;
	frame.arrays[0].data = NULL;
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_read(folder, -12, NULL, &found, &err), SAND_OK, &err);
	check_same(&found, &frame);
	sand_cache_frame_free(&found);
	sand_cache_frame_free(NULL);
	folder_remove(folder);
}

static void the_bytes_on_disk_are_as_documented(void)
{
	size_t byte_count = 0;
	unsigned char *bytes = new_bytes(&byte_count);
	static const unsigned char magic[8] = {0x89, 'S', 'A', 'N', 'D', 0x0D, 0x0A, 0x1A};
	CHECK(memcmp(bytes, magic, sizeof magic) == 0);
	CHECK_INT(get_u32(bytes, AT_VERSION), 3);
	CHECK(bytes[AT_ENDIAN] == 4 && bytes[AT_ENDIAN + 3] == 1);
	CHECK_INT(get_u32(bytes, AT_HEADER_BYTES), NEW_HEADER_BYTES);
	CHECK_INT(get_u32(bytes, AT_ARRAY_COUNT), 3);
	CHECK_INT(get_u64(bytes, AT_TOTAL_BYTES), byte_count);
	CHECK_INT(get_u32(bytes, AT_FRAME), 5);
	CHECK_INT(get_u32(bytes, AT_COUNT), GRAIN_COUNT);
	double seconds;
	memcpy(&seconds, bytes + AT_SECONDS, sizeof seconds);
	CHECK_NEAR(seconds, 1.25, 0.0);
	CHECK(get_u64(bytes, AT_SETTINGS_HASH) == UINT64_C(0x1122334455667788));
	CHECK(get_u64(bytes, AT_STATE_HASH) == UINT64_MAX);
	CHECK(get_u64(bytes, NEW_AT_HEADER_CHECKSUM) == sand_hash64(bytes, NEW_AT_HEADER_CHECKSUM, 0));
	CHECK(get_u64(bytes, AT_TABLE_CHECKSUM) == sand_hash64(bytes + NEW_HEADER_BYTES, (size_t)3 * NEW_ENTRY_BYTES, 0));
	float bounds[6];
	memcpy(bounds, bytes + NEW_AT_BOUNDS, sizeof bounds);
	CHECK_NEAR(bounds[0], -1.0, 0.0); // places that are not finite do not count
	CHECK_NEAR(bounds[3], 3.5, 0.0);
	CHECK_INT(get_u64(bytes, NEW_AT_TOLERANCE), 0);
	CHECK_INT(get_u32(bytes, NEW_AT_EXACT_COUNT), 0);
	CHECK_INT(get_u32(bytes, NEW_AT_FLAGS), 0);
	CHECK_INT(get_u64(bytes, NEW_AT_BASE_IDENTITY), 0);
	CHECK_INT(get_u32(bytes, NEW_AT_BASE_FRAME), 0);
	CHECK_INT(get_u32(bytes, NEW_AT_LEVEL_COUNT), 1);
	const unsigned char *entry = bytes + NEW_HEADER_BYTES + NEW_ENTRY_BYTES;
	CHECK(strcmp((const char *)entry, "rotation") == 0);
	CHECK_INT(get_u32(entry, AT_ENTRY_TYPE), SAND_CACHE_F32);
	CHECK_INT(get_u32(entry, AT_ENTRY_COMPONENTS), 4);
	CHECK_INT(get_u32(entry, NEW_AT_ENTRY_ENCODING), SAND_ENCODING_EXACT);
	CHECK_INT(get_u32(entry, NEW_AT_ENTRY_WORD_BYTES), 4);
	CHECK_INT(get_u64(entry, NEW_AT_ENTRY_STEP), 0);
	CHECK_INT(get_u32(entry, NEW_AT_ENTRY_ERROR), 0);
	CHECK_INT(get_u64(entry, NEW_AT_ENTRY_RESERVED), 0);
	uint64_t offset = get_u64(entry, AT_ENTRY_OFFSET), size = get_u64(entry, AT_ENTRY_BYTES);
	const unsigned char *first = bytes + NEW_HEADER_BYTES;
	CHECK_INT(get_u64(first, AT_ENTRY_OFFSET), NEW_HEADER_BYTES + 3 * NEW_ENTRY_BYTES);
	CHECK_INT(offset, get_u64(first, AT_ENTRY_OFFSET) + get_u64(first, AT_ENTRY_BYTES));
	CHECK(get_u64(entry, AT_ENTRY_CHECKSUM) == sand_hash64(bytes + offset, PIECE_BYTES, 0));
	// The directory: one piece with a checksum, its bytes, its rows.
	const unsigned char *piece = bytes + offset;
	CHECK_INT(get_u32(piece, 8), size - PIECE_BYTES);
	CHECK_INT(get_u32(piece, 12), GRAIN_COUNT);
	CHECK(get_u64(piece, 0) == sand_hash64(piece + PIECE_BYTES, (size_t)size - PIECE_BYTES, 0));
	// The first plane: the low bytes of the w of every quaternion, kept as they are or one for all.
	uint32_t plane = get_u32(piece, PIECE_BYTES);
	CHECK_INT(plane & 0xFF, 2);
	CHECK_INT(plane >> 8, 1);
	CHECK_INT(piece[PIECE_BYTES + 4], 0);
	free(bytes);
}

/// A compact frame of version 2 with every encoding, exact rows and a base, and that base.
typedef struct Pair
{
	unsigned char *bytes, *base;
	size_t byte_count, base_byte_count;
} Pair;

static Pair compact_pair(void);
static Pair golden_pair(void);
static bool is_pair_refused(const Pair *pair, size_t byte_count, SandError *err);

static void a_frame_cut_at_any_byte_is_refused(void)
{
	for (int version = 1; version <= 2; ++version)
	{
		size_t byte_count = 0;
		unsigned char *bytes = version == 1 ? old_bytes(&byte_count) : new_bytes(&byte_count);
		SandError err;
		for (size_t cut = 0; cut < byte_count; ++cut)
		{
			if (!CHECK(is_refused(bytes, cut, &err)))
			{
				printf("  version %d cut at %zu: %s\n", version, cut, err.message);
			}
		}
		free(bytes);
	}
	Pair pair = compact_pair();
	SandError err;
	for (size_t cut = 0; cut < pair.byte_count; ++cut)
	{
		if (!CHECK(is_pair_refused(&pair, cut, &err)))
		{
			printf("  compact frame cut at %zu: %s\n", cut, err.message);
		}
	}
	free(pair.bytes);
	free(pair.base);
	pair = golden_pair();
	for (size_t cut = 0; cut < pair.byte_count; ++cut)
	{
		if (!CHECK(is_pair_refused(&pair, cut, &err)))
		{
			printf("  frame of version 2 cut at %zu: %s\n", cut, err.message);
		}
	}
	free(pair.bytes);
	free(pair.base);
}

static void bytes_behind_the_frame_are_refused(void)
{
	size_t byte_count = 0;
	unsigned char *bytes = old_bytes(&byte_count);
	unsigned char *longer = calloc(byte_count + 64, 1);
	if (longer == NULL)
	{
		abort();
	}
	memcpy(longer, bytes, byte_count);
	SandError err;
	CHECK(is_refused(longer, byte_count + 1, &err));
	CHECK(is_refused(longer, byte_count + 64, &err));
	CHECK_CONTAINS(err.message, "damaged");
	// Also when the header owns up to them.
	put_u64(longer, AT_TOTAL_BYTES, byte_count + 64);
	sign(longer, byte_count + 64);
	CHECK(is_refused(longer, byte_count + 64, &err));
	CHECK_CONTAINS(err.message, "arrays end at byte");
	free(longer);
	free(bytes);
}

static void flip(unsigned char *bytes, size_t bit)
{
	bytes[bit / 8] = (unsigned char)(bytes[bit / 8] ^ (1u << bit % 8));
}

static void every_flipped_bit_is_refused(void)
{
	SandError err;
	for (int version = 1; version <= 2; ++version)
	{
		size_t byte_count = 0;
		unsigned char *bytes = version == 1 ? old_bytes(&byte_count) : new_bytes(&byte_count);
		// All bits: header and table, and the blocks with the zeros between them.
		for (size_t bit = 0; bit < 8 * byte_count; ++bit)
		{
			flip(bytes, bit);
			if (!CHECK(is_refused(bytes, byte_count, &err)))
			{
				printf("  version %d, bit %zu of byte %zu\n", version, bit % 8, bit / 8);
			}
			flip(bytes, bit);
		}
		free(bytes);
	}
	for (int version = 2; version <= 3; ++version)
	{
		Pair pair = version == 2 ? golden_pair() : compact_pair();
		for (uint64_t i = 0; i < 10000; ++i)
		{
			size_t bit = (size_t)(sand_random((uint64_t)version, i) * 8 * (double)pair.byte_count);
			flip(pair.bytes, bit);
			if (!CHECK(is_pair_refused(&pair, pair.byte_count, &err)))
			{
				printf("  frame of version %d with a base, bit %zu of byte %zu\n", version, bit % 8, bit / 8);
			}
			flip(pair.bytes, bit);
		}
		// In the base, which is as good as in the frame itself: refused, or the flip is where this frame does not look.
		SandCacheFrame whole, found;
		CHECK_STATUS(sand_cache_parse("bytes", pair.bytes, pair.byte_count, pair.base, pair.base_byte_count,
		                              &everything, &whole, &err),
		             SAND_OK, &err);
		for (uint64_t i = 0; i < 10000; ++i)
		{
			size_t bit = (size_t)(sand_random((uint64_t)version + 5, i) * 8 * (double)pair.base_byte_count);
			flip(pair.base, bit);
			if (sand_cache_parse("bytes", pair.bytes, pair.byte_count, pair.base, pair.base_byte_count, &everything,
			                     &found, &err) == SAND_OK)
			{
				for (int k = 0; k < found.array_count; ++k)
				{
					size_t bytes = (size_t)found.count * found.arrays[k].component_count * 4;
					CHECK(memcmp(found.arrays[k].data, whole.arrays[k].data, bytes) == 0);
				}
				sand_cache_frame_free(&found);
			}
			flip(pair.base, bit);
		}
		sand_cache_frame_free(&whole);
		free(pair.bytes);
		free(pair.base);
	}
}

typedef struct Tamper
{
	size_t at;
	int bytes; // 1, 4 or 8
	uint64_t value;
	const char *sentence; // part of it
} Tamper;

static void a_well_signed_lie_is_refused_with_found_and_expected(void)
{
	enum
	{
		FIRST = HEADER_BYTES,
		SECOND = HEADER_BYTES + ENTRY_BYTES
	};
	static const Tamper tampers[] = {
	    {0, 1, 'P', "begins with 50 53 41 4e, expected 89 53 41 4e"},
	    {AT_VERSION, 4, 4, "format version 4, this Barchan reads versions 1 to 3; update"},
	    {AT_VERSION, 4, 0, "format version 0, this Barchan reads versions 1 to 3; bake again"},
	    {AT_VERSION, 4, 3, "header of 128 bytes, expected 256"},
	    {AT_VERSION, 4, 2, "header of 128 bytes, expected 256"},
	    {AT_ENDIAN, 4, 0x04030201, "04030201, expected 01020304"},
	    {AT_HEADER_BYTES, 4, 256, "header of 256 bytes, expected 128"},
	    {AT_ARRAY_COUNT, 4, 0, "0 arrays, expected 1 to 32"},
	    {AT_ARRAY_COUNT, 4, 33, "33 arrays, expected 1 to 32"},
	    {AT_ARRAY_COUNT, 4, UINT32_MAX, "4294967295 arrays"},
	    {AT_ARRAY_COUNT, 4, 12, "table of 12 arrays needs 896"},
	    {AT_ARRAY_COUNT, 4, 2, "expected 84 at 256"},
	    {AT_LAYOUT_HASH, 8, 1, "layout hash is 0000000000000001"},
	    {AT_TOTAL_BYTES, 8, UINT64_MAX, "its header says 18446744073709551615"},
	    {AT_TOTAL_BYTES, 8, 639, "has 640 bytes, its header says 639"},
	    {AT_COUNT, 4, 8, "84 bytes at 320, expected 96 at 320"},
	    {AT_COUNT, 4, UINT32_MAX, "expected 51539607540 at 320"},
	    {AT_SECONDS, 8, UINT64_C(0x7FF8000000000000), "expected a finite number"},
	    {AT_RESERVED, 1, 1, "header's reserved bytes"},
	    {AT_RESERVED + 39, 1, 1, "header's reserved bytes"},
	    {FIRST, 1, 0, "array 0: the name"},
	    {FIRST, 1, 0xC3, "array 0: the name"},
	    {FIRST + 23, 1, 'x', "array 0: the name"},
	    {FIRST + AT_ENTRY_TYPE, 4, 3, "'position': type 3, expected 1"},
	    {FIRST + AT_ENTRY_COMPONENTS, 4, 0, "'position': 0 components, expected 1 to 16"},
	    {FIRST + AT_ENTRY_COMPONENTS, 4, 17, "'position': 17 components"},
	    {FIRST + AT_ENTRY_COMPONENTS, 4, 2, "84 bytes at 320, expected 56 at 320"},
	    {FIRST + AT_ENTRY_OFFSET, 8, 384, "84 bytes at 384, expected 84 at 320"},
	    {FIRST + AT_ENTRY_OFFSET, 8, UINT64_MAX, "expected 84 at 320"},
	    {FIRST + AT_ENTRY_BYTES, 8, UINT64_MAX, "expected 84 at 320"},
	    {FIRST + AT_ENTRY_CHECKSUM, 8, 7, "'position': the checksum is 0000000000000007"},
	    {FIRST + AT_ENTRY_RESERVED, 8, 1, "'position': the reserved bytes"},
	    {SECOND + AT_ENTRY_OFFSET, 8, 320, "'rotation': 112 bytes at 320, expected 112 at 448"},
	};
	size_t byte_count = 0;
	unsigned char *bytes = old_bytes(&byte_count);
	unsigned char *changed = malloc(byte_count);
	if (changed == NULL)
	{
		abort();
	}
	SandError err;
	for (size_t i = 0; i < sizeof tampers / sizeof tampers[0]; ++i)
	{
		memcpy(changed, bytes, byte_count);
		memcpy(changed + tampers[i].at, &tampers[i].value, (size_t)tampers[i].bytes);
		sign(changed, byte_count);
		if (!CHECK(is_refused(changed, byte_count, &err)) || !CHECK_CONTAINS(err.message, tampers[i].sentence))
		{
			printf("  tamper %zu\n", i);
		}
	}
	// Two arrays of one name.
	memcpy(changed, bytes, byte_count);
	memcpy(changed + SECOND, changed + FIRST, SAND_CACHE_NAME_BYTES);
	sign(changed, byte_count);
	CHECK(is_refused(changed, byte_count, &err));
	CHECK_CONTAINS(err.message, "two arrays are named 'position'");
	// All arrays one size larger than the file: consistent in itself, but beyond the end.
	memcpy(changed, bytes, byte_count);
	put_u32(changed, AT_ARRAY_COUNT, 1);
	put_u32(changed, AT_COUNT, UINT32_MAX);
	put_u64(changed, FIRST + AT_ENTRY_OFFSET, HEADER_BYTES + ENTRY_BYTES);
	put_u64(changed, FIRST + AT_ENTRY_BYTES, (uint64_t)UINT32_MAX * 12);
	sign(changed, byte_count);
	CHECK(is_refused(changed, byte_count, &err));
	CHECK_CONTAINS(err.message, "but the file has 640");
	// The original still passes, so it was the change that was refused.
	SandCacheFrame frame, expected = example_frame(5);
	CHECK_STATUS(sand_cache_parse("bytes", bytes, byte_count, NULL, 0, NULL, &frame, &err), SAND_OK, &err);
	check_same(&frame, &expected);
	sand_cache_frame_free(&frame);
	free(changed);
	free(bytes);
}

static void a_missing_frame_and_a_renamed_frame_are_named(void)
{
	folder_make(folder);
	SandError err = {0};
	SandCacheFrame frame = example_frame(5);
	SandCacheFrame found;
	memset(&found, 0xAB, sizeof found);
	CHECK_STATUS(sand_cache_read(folder, 7, NULL, &found, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "Frame 7 is not in the cache");
	CHECK_CONTAINS(err.message, "frame_000007.sand");
	CHECK(is_zeroed(&found));
	CHECK_STATUS(sand_cache_read(folder, 7, NULL, &found, NULL), SAND_ERROR_CACHE, NULL);
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_OK, &err);
	char from[FOLDER_PATH_BYTES];
	snprintf(from, sizeof from, "%s", frame_path(5));
	CHECK(rename(from, frame_path(7)) == 0);
	memset(&found, 0xAB, sizeof found);
	CHECK_STATUS(sand_cache_read(folder, 7, NULL, &found, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "holds frame 5, expected frame 7");
	CHECK(is_zeroed(&found));
	// A file that the system refuses is no damaged frame.
	CHECK(mkdir(frame_path(9), 0777) == 0);
	CHECK_STATUS(sand_cache_read(folder, 9, NULL, &found, &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, EISDIR);
	CHECK_STATUS(sand_cache_read("", 9, NULL, &found, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_cache_write("", &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	folder_remove(folder);
	CHECK_STATUS(sand_cache_read(folder, 7, NULL, &found, &err), SAND_ERROR_CACHE, &err);
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, ENOENT);
}

static void frames_that_break_a_rule_are_not_written(void)
{
	folder_make(folder);
	SandError err = {0};
	SandCacheFrame frame = example_frame(5);
	frame.array_count = 0;
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "0 arrays, expected 1 to 32");
	frame.array_count = SAND_CACHE_ARRAY_LIMIT + 1;
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	frame = example_frame(5);
	frame.seconds = NAN;
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "expected a finite number");
	frame = example_frame(5);
	frame.arrays[1].type = 9;
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "'rotation': unknown type 9");
	frame = example_frame(5);
	frame.arrays[1].component_count = 17;
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "'rotation': 17 components, expected 1 to 16");
	frame.arrays[1].component_count = 0;
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	frame = example_frame(5);
	frame.arrays[1].data = NULL;
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "no data for 7 elements");
	frame = example_frame(5);
	memcpy(frame.arrays[2].name, "position", sizeof "position");
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "two arrays are named 'position'");
	static const char *const bad_names[] = {"", "d\xC3\xBCne", "tab\there"};
	for (size_t i = 0; i < sizeof bad_names / sizeof bad_names[0]; ++i)
	{
		frame = example_frame(5);
		memcpy(frame.arrays[2].name, bad_names[i], strlen(bad_names[i]) + 1);
		CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
		CHECK_CONTAINS(err.message, "array 2: the name");
	}
	frame = example_frame(5);
	memset(frame.arrays[2].name, 'x', SAND_CACHE_NAME_BYTES); // not terminated
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	// Too large to be written: refused by the size, before any element is read.
	frame = example_frame(5);
	frame.count = UINT32_MAX;
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "use fewer grains");
	CHECK_INT(folder_entry_count(folder), 0);
	folder_remove(folder);
}

static void frame_names_have_six_places_and_a_sign(void)
{
	static const struct
	{
		int32_t frame;
		const char *name;
	} names[] = {{0, "frame_000000.sand"},
	             {123, "frame_000123.sand"},
	             {-12, "frame_-00012.sand"},
	             {1234567, "frame_1234567.sand"},
	             {INT32_MIN, "frame_-2147483648.sand"},
	             {INT32_MAX, "frame_2147483647.sand"}};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
	{
		char name[32];
		sand_cache_frame_name(names[i].frame, name);
		CHECK(strcmp(name, names[i].name) == 0);
	}
}

// What a user might have in that folder, some of it close to our names.
static const char *const foreign_names[] = {
    "scene.blend",
    "frame_1.sand",
    "frame_0000001.sand",
    "frame_000001.sand.bak",
    "frame_000001.SAND",
    "frame_00000x.sand",
    "frame_-000012.sand",
    "frame_+00001.sand",
    "xframe_000001.sand",
    "frame_000001",
    "frame_.sand",
    "frame_2147483648.sand",
    "frame_99999999999999999999.sand",
    "notes.sand",
    "notes.sand.tmp.1.2",
    "frame_000001.sand.tmp",
    "frame_000001.sand.tmp.1",
    "frame_1.sand.tmp.1.2",
    "frame_--0001.sand",
    "frame_0-0001.sand",
    "probe.sand",
};
enum
{
	FOREIGN_COUNT = sizeof foreign_names / sizeof foreign_names[0]
};

static void listing_gives_exactly_our_frames_in_order(void)
{
	SandError err = {0};
	size_t example_size = 0;
	free(new_bytes(&example_size));
	folder_make(folder);
	static const int32_t written[] = {10, -3, 0, 1000000, 2, INT32_MIN, -1, INT32_MAX};
	static const int32_t sorted[] = {INT32_MIN, -3, -1, 0, 2, 10, 1000000, INT32_MAX};
	for (int i = 0; i < FOREIGN_COUNT; ++i)
	{
		folder_put(folder, foreign_names[i], "foreign");
	}
	for (int i = 0; i < 8; ++i)
	{
		SandCacheFrame frame = example_frame(written[i]);
		CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_OK, &err);
	}
	CHECK(mkdir(frame_path(77), 0777) == 0); // a folder is no frame
	int32_t *frames = NULL;
	int frame_count = -1;
	uint64_t byte_count = 0;
	CHECK_STATUS(sand_cache_list(folder, &frames, &frame_count, &byte_count, &err), SAND_OK, &err);
	CHECK_INT(byte_count, 8 * example_size);
	if (CHECK_INT(frame_count, 8))
	{
		for (int i = 0; i < 8; ++i)
		{
			CHECK_INT(frames[i], sorted[i]);
		}
	}
	sand_free(frames);
	CHECK_STATUS(sand_cache_list(folder, NULL, NULL, NULL, &err), SAND_OK, &err);
	folder_remove(folder);
	frame_count = -1;
	byte_count = 99;
	CHECK_STATUS(sand_cache_list(folder, &frames, &frame_count, &byte_count, &err), SAND_OK, &err);
	CHECK_INT(frame_count, 0);
	CHECK_INT(byte_count, 0);
	sand_free(frames);
}

static void a_long_bake_lists_every_frame(void)
{
	enum
	{
		FRAME_COUNT = 600 // makes the list grow twice
	};
	folder_make(folder);
	for (int i = 0; i < FRAME_COUNT; ++i)
	{
		char name[32];
		sand_cache_frame_name(FRAME_COUNT - i, name);
		folder_put(folder, name, "x"); // listing opens nothing
	}
	SandError err = {0};
	int32_t *frames = NULL;
	int frame_count = -1;
	uint64_t byte_count = 0;
	CHECK_STATUS(sand_cache_list(folder, &frames, &frame_count, &byte_count, &err), SAND_OK, &err);
	CHECK_INT(byte_count, FRAME_COUNT);
	if (CHECK_INT(frame_count, FRAME_COUNT))
	{
		int wrong_count = 0;
		for (int i = 0; i < FRAME_COUNT; ++i)
		{
			wrong_count += frames[i] != i + 1;
		}
		CHECK_INT(wrong_count, 0);
	}
	sand_free(frames);
	int file_count = 0;
	CHECK_STATUS(sand_cache_free(folder, INT32_MIN, INT32_MAX, &file_count, &byte_count, &err), SAND_OK, &err);
	CHECK_INT(file_count, FRAME_COUNT);
	CHECK_INT(folder_entry_count(folder), -1);
}

static void freeing_removes_our_files_and_no_others(void)
{
	size_t example_size = 0;
	free(new_bytes(&example_size));
	folder_make(folder);
	SandError err = {0};
	for (int i = 0; i < FOREIGN_COUNT; ++i)
	{
		folder_put(folder, foreign_names[i], "foreign");
	}
	for (int32_t i = -2; i <= 2; ++i)
	{
		SandCacheFrame frame = example_frame(i);
		CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_OK, &err);
	}
	folder_put(folder, "frame_000001.sand.tmp.123.4", "half");
	folder_put(folder, "frame_-00012.sand.tmp.4194304.18446744073709551615", "half");
	folder_put(folder, SAND_IO_PROBE_NAME ".tmp.1.2", "half");
	CHECK(mkdir(frame_path(77), 0777) == 0);
	int file_count = -1;
	uint64_t byte_count = 0;
	CHECK_STATUS(sand_cache_free(folder, INT32_MIN, INT32_MAX, &file_count, &byte_count, &err), SAND_OK, &err);
	CHECK_INT(file_count, 8);
	CHECK_INT(byte_count, 5 * example_size + 3 * 4);
	for (int i = 0; i < FOREIGN_COUNT; ++i)
	{
		if (!CHECK(folder_has(folder, foreign_names[i])))
		{
			printf("  %s is gone\n", foreign_names[i]);
		}
	}
	CHECK_INT(folder_entry_count(folder), FOREIGN_COUNT + 1);
	folder_remove(folder);
	// An empty folder goes too; a missing one is fine.
	folder_make(folder);
	SandCacheFrame frame = example_frame(1);
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_free(folder, INT32_MIN, INT32_MAX, NULL, NULL, NULL), SAND_OK, NULL);
	CHECK_INT(folder_entry_count(folder), -1);
	CHECK_STATUS(sand_cache_free(folder, INT32_MIN, INT32_MAX, &file_count, &byte_count, &err), SAND_OK, &err);
	CHECK_INT(file_count, 0);
}

// Compact frames: encodings, exact rows, levels, references.

#define MANY 5000 // more than one level; a second chunk would make the loops over every byte slow
static float many_positions[3 * MANY], many_rotations[4 * MANY], many_velocities[3 * MANY];
static float many_radii[MANY];
static int32_t many_ids[MANY];
static const char many_notes[] = "{\"sources\": [\"Sand\"]}";

/// Grains strewn in a box, turned at random; those from still_from on are the same in every frame.
static SandCacheFrame many_frame(int32_t number, uint32_t count, uint32_t still_from)
{
	for (uint32_t i = 0; i < count; ++i)
	{
		uint64_t seed = i < still_from ? (uint64_t)(number + 1000) : 0;
		float square = 0;
		for (uint32_t k = 0; k < 4; ++k)
		{
			float x = (float)sand_random(seed, 16 * (uint64_t)i + k) - 0.5f;
			many_rotations[4 * i + k] = x;
			square += x * x;
		}
		for (uint32_t k = 0; k < 4; ++k)
		{
			many_rotations[4 * i + k] /= sqrtf(square);
		}
		for (uint32_t k = 0; k < 3; ++k)
		{
			many_positions[3 * i + k] = (float)sand_random(seed, 16 * (uint64_t)i + 4 + k) - 0.3f;
			many_velocities[3 * i + k] = i < still_from ? (float)sand_random(seed, 16 * (uint64_t)i + 8 + k) : 0;
		}
		many_ids[i] = (int32_t)i;
		many_radii[i] = 0.01f;
	}
	return (SandCacheFrame){
	    .frame = number,
	    .count = count,
	    .seconds = 0.04 * number,
	    .settings_hash = 77,
	    .arrays = {{"position", SAND_CACHE_F32, 3, many_positions, SAND_ENCODING_GRID, 0, 0},
	               {"rotation", SAND_CACHE_F32, 4, many_rotations, SAND_ENCODING_TURN, 0, 0},
	               {"velocity", SAND_CACHE_F32, 3, many_velocities, SAND_ENCODING_HALF, 0, 0},
	               {"id", SAND_CACHE_I32, 1, many_ids, SAND_ENCODING_EXACT, 0, 0},
	               {"radius", SAND_CACHE_F32, 1, many_radii, SAND_ENCODING_EXACT, 0, 0}},
	    .array_count = 5,
	    .motion_hash = 99,
	    .notes = many_notes,
	    .note_bytes = sizeof many_notes - 1,
	};
}

static unsigned char *file_bytes(int32_t number, size_t *byte_count_out)
{
	void *bytes = NULL;
	SandError err = {0};
	CHECK_STATUS(sand_io_read_file(frame_path(number), 1 << 26, &bytes, byte_count_out, &err), SAND_OK, &err);
	unsigned char *copy = malloc(*byte_count_out + 1);
	if (bytes == NULL || copy == NULL)
	{
		abort();
	}
	memcpy(copy, bytes, *byte_count_out);
	sand_free(bytes);
	return copy;
}

/// Writes frames 10 and 12 of count grains, of which those from still_from on do not move, into the folder.
static void write_pair(uint32_t count, uint32_t still_from)
{
	SandError err = {0};
	SandCacheFrame kept = {0};
	SandCacheOptions options = {
	    .tolerance = 1e-4, .exact_count = 3, .thread_count = 1, .engine = "test", .kept_out = &kept};
	SandCacheFrame frame = many_frame(10, count, still_from);
	CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_OK, &err);
	options.base = &kept;
	options.kept_out = NULL;
	frame = many_frame(12, count, still_from);
	CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_OK, &err);
	sand_cache_frame_free(&kept);
}

static Pair compact_pair(void)
{
	Pair pair = {0};
	folder_make(folder);
	write_pair(90, 40);
	pair.base = file_bytes(10, &pair.base_byte_count);
	pair.bytes = file_bytes(12, &pair.byte_count);
	folder_remove(folder);
	return pair;
}

/// Frames 11 and 10 of the cache of version 2 that is kept.
static Pair golden_pair(void)
{
	const char *root = getenv("BARCHAN_GOLDEN");
	Pair pair = {0};
	for (int32_t frame = 10; frame <= 11; ++frame)
	{
		char path[FOLDER_PATH_BYTES];
		snprintf(path, sizeof path, "%.3000s/version_2/frame_%06d.sand", root != NULL ? root : "tests/golden",
		         (int)frame);
		void *bytes = NULL;
		size_t byte_count = 0;
		SandError err = {0};
		CHECK_STATUS(sand_io_read_file(path, 1 << 20, &bytes, &byte_count, &err), SAND_OK, &err);
		unsigned char *copy = malloc(byte_count + 1);
		if (bytes == NULL || copy == NULL)
		{
			abort();
		}
		memcpy(copy, bytes, byte_count);
		sand_free(bytes);
		*(frame == 10 ? &pair.base : &pair.bytes) = copy;
		*(frame == 10 ? &pair.base_byte_count : &pair.byte_count) = byte_count;
	}
	return pair;
}

/// True when the frame of the pair, cut to byte_count, is refused with nothing taken. In blocks of exactly that size.
static bool is_pair_refused(const Pair *pair, size_t byte_count, SandError *err)
{
	unsigned char *block = malloc(byte_count + (byte_count == 0)), *base = malloc(pair->base_byte_count);
	if (block == NULL || base == NULL)
	{
		abort();
	}
	memcpy(block, pair->bytes, byte_count);
	memcpy(base, pair->base, pair->base_byte_count);
	SandCacheFrame frame;
	*err = (SandError){0};
	size_t alloc_bytes = sand_alloc_bytes();
	SandStatus status =
	    sand_cache_parse("bytes", block, byte_count, base, pair->base_byte_count, &everything, &frame, err);
	bool is_refused = status == SAND_ERROR_CACHE && err->status == status && is_zeroed(&frame);
	sand_cache_frame_free(&frame);
	free(block);
	free(base);
	return is_refused && sand_alloc_bytes() == alloc_bytes;
}

/// Angle between two turns of either sign, by the chord between the unit quaternions: an arc cosine of nearly one has
/// no digits left.
static double turn_between(const float *a, const float *b)
{
	double dot = 0, length_a = 0, length_b = 0, square = 0;
	for (int k = 0; k < 4; ++k)
	{
		dot += (double)a[k] * (double)b[k];
		length_a += (double)a[k] * (double)a[k];
		length_b += (double)b[k] * (double)b[k];
	}
	for (int k = 0; k < 4; ++k)
	{
		double way = (double)a[k] / sqrt(length_a) - (dot < 0 ? -1 : 1) * (double)b[k] / sqrt(length_b);
		square += way * way;
	}
	return 4 * asin(0.5 * sqrt(square));
}

static void compact_frames_are_as_near_as_they_promise(void)
{
	folder_make(folder);
	SandError err = {0};
	SandCacheFrame frame = many_frame(1, MANY, MANY), found;
	SandCacheOptions options = {.tolerance = 1e-4, .exact_count = 3, .engine = "cpu avx2"};
	uint64_t byte_count = 0, measured = 0;
	CHECK_STATUS(sand_cache_measure(&frame, &options, &measured, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_write(folder, &frame, &options, &byte_count, &err), SAND_OK, &err);
	CHECK_INT(measured, byte_count);
	if (!CHECK_STATUS(sand_cache_read(folder, 1, NULL, &found, &err), SAND_OK, &err))
	{
		return;
	}
	CHECK_INT(found.byte_count, byte_count);
	CHECK(strcmp(found.engine, "cpu avx2") == 0);
	CHECK_NEAR(found.tolerance, 1e-4, 0);
	CHECK_INT(found.exact_count, 3);
	const float *p = found.arrays[0].data, *q = found.arrays[1].data, *v = found.arrays[2].data;
	double worst_place = 0, worst_turn = 0, worst_speed = 0;
	for (size_t i = 0; i < MANY; ++i)
	{
		double square = 0;
		for (size_t k = 0; k < 3; ++k)
		{
			double d = (double)p[3 * i + k] - (double)many_positions[3 * i + k];
			square += d * d;
			worst_speed = fmax(worst_speed, fabs((double)v[3 * i + k] - (double)many_velocities[3 * i + k]));
		}
		worst_place = fmax(worst_place, sqrt(square));
		worst_turn = fmax(worst_turn, turn_between(q + 4 * i, many_rotations + 4 * i));
	}
	printf("  %.2f bytes a grain; off by at most %.3g m, %.3g rad, %.3g m/s\n", (double)byte_count / MANY, worst_place,
	       worst_turn, worst_speed);
	CHECK(worst_place <= 1e-4 && worst_place > 0.5e-4);
	// Half a step in each of three components; the fourth, when all are equal, is off by their sum; an angle is twice
	// that.
	CHECK(worst_turn <= 2 * sqrt(12.0) * 0.5 / 511 / sqrt(2.0) && worst_turn > 0.0005);
	CHECK(worst_speed <= 0.5 / 2048 && worst_speed > 0);
	// The header says the same; it measures in floats.
	CHECK_NEAR(found.arrays[0].error, worst_place, 1e-10);
	CHECK_NEAR(found.arrays[1].error, worst_turn, 1e-5);
	CHECK_NEAR(found.arrays[2].error, worst_speed, 1e-10);
	CHECK_INT(found.arrays[3].error, 0);
	// Exact: the ids, and the first three of everything.
	CHECK(memcmp(found.arrays[3].data, many_ids, sizeof many_ids) == 0);
	CHECK(memcmp(p, many_positions, 9 * sizeof(float)) == 0);
	CHECK(memcmp(q, many_rotations, 12 * sizeof(float)) == 0);
	CHECK(memcmp(v, many_velocities, 9 * sizeof(float)) == 0);
	sand_cache_frame_free(&found);
	folder_remove(folder);
}

static void numbers_that_cannot_be_coded_are_kept_exactly(void)
{
	folder_make(folder);
	SandError err = {0};
	static const float odd[] = {NAN, INFINITY, 1e9f, 70000.0f};
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; ++i)
	{
		SandCacheFrame frame = many_frame(1, 100, 100), found;
		many_positions[7] = odd[i];
		many_rotations[9] = odd[i];
		many_velocities[11] = odd[i];
		SandCacheOptions options = {.tolerance = 1e-4};
		CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_OK, &err);
		CHECK_STATUS(sand_cache_read(folder, 1, NULL, &found, &err), SAND_OK, &err);
		for (int k = 0; k < 3; ++k)
		{
			CHECK_INT(found.arrays[k].encoding, SAND_ENCODING_EXACT);
			CHECK(memcmp(found.arrays[k].data, frame.arrays[k].data, (size_t)400 * frame.arrays[k].component_count) ==
			      0);
		}
		sand_cache_frame_free(&found);
	}
	folder_remove(folder);
}

static void parts_read_alone_equal_parts_of_the_whole(void)
{
	enum
	{
		TWO_CHUNKS = 40000
	};
	float *places = malloc(sizeof(float) * 3 * TWO_CHUNKS);
	int32_t *numbers = malloc(sizeof(int32_t) * TWO_CHUNKS);
	if (places == NULL || numbers == NULL)
	{
		abort();
	}
	for (size_t i = 0; i < TWO_CHUNKS; ++i)
	{
		numbers[i] = (int32_t)i;
		for (size_t k = 0; k < 3; ++k)
		{
			places[3 * i + k] = (float)sand_random(3, 3 * i + k);
		}
	}
	folder_make(folder);
	SandError err = {0};
	SandCacheFrame frame = {.frame = 1,
	                        .count = TWO_CHUNKS,
	                        .arrays = {{"position", SAND_CACHE_F32, 3, places, SAND_ENCODING_GRID, 0, 0},
	                                   {"id", SAND_CACHE_I32, 1, numbers, 0, 0, 0}},
	                        .array_count = 2};
	SandCacheOptions options = {.tolerance = 1e-4, .exact_count = 70};
	CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_OK, &err);
	SandCacheFrame whole, part;
	CHECK_STATUS(sand_cache_read(folder, 1, NULL, &whole, &err), SAND_OK, &err);
	static const uint32_t strides[] = {1, 2, 3, 4, 7, 8, 16, 32, 48, 64, 65, 128, 1000, 39999, 40000, 100000};
	static const char *const names[] = {"position", "id"};
	for (size_t s = 0; s < sizeof strides / sizeof strides[0]; ++s)
	{
		for (int n = 0; n < 2; ++n)
		{
			SandCacheWanted wanted = {.names = &names[n], .name_count = 1, .every = strides[s], .thread_count = 1 + n};
			if (!CHECK_STATUS(sand_cache_read(folder, 1, &wanted, &part, &err), SAND_OK, &err))
			{
				continue;
			}
			CHECK_INT(part.array_count, 1);
			CHECK_INT(part.count, (TWO_CHUNKS + strides[s] - 1) / strides[s]);
			CHECK_INT(part.full_count, TWO_CHUNKS);
			size_t row_bytes = n == 0 ? 12 : 4;
			int wrong_count = 0;
			for (size_t i = 0; i < part.count; ++i)
			{
				wrong_count += memcmp((const char *)part.arrays[0].data + i * row_bytes,
				                      (const char *)whole.arrays[n].data + i * strides[s] * row_bytes, row_bytes) != 0;
			}
			CHECK_INT(wrong_count, 0);
			sand_cache_frame_free(&part);
		}
	}
	static const char *const unknown[] = {"radius"};
	SandCacheWanted wanted = {.names = unknown, .name_count = 1};
	CHECK_STATUS(sand_cache_read(folder, 1, &wanted, &part, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "has no array 'radius'");
	// Damage in the other array, or in the grains between, is not met when they are not asked for.
	size_t byte_count = 0;
	unsigned char *bytes = file_bytes(1, &byte_count);
	const unsigned char *second = bytes + NEW_HEADER_BYTES + NEW_ENTRY_BYTES;
	bytes[get_u64(second, AT_ENTRY_OFFSET) - 1] ^= 1; // the last level of the last chunk of the first array
	wanted = (SandCacheWanted){.names = &names[1], .name_count = 1};
	CHECK_STATUS(sand_cache_parse("bytes", bytes, byte_count, NULL, 0, &wanted, &part, &err), SAND_OK, &err);
	sand_cache_frame_free(&part);
	wanted = (SandCacheWanted){.every = 2};
	CHECK_STATUS(sand_cache_parse("bytes", bytes, byte_count, NULL, 0, &wanted, &part, &err), SAND_OK, &err);
	sand_cache_frame_free(&part);
	CHECK_STATUS(sand_cache_parse("bytes", bytes, byte_count, NULL, 0, NULL, &part, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "'position', piece 1.6: its checksum is wrong");
	free(bytes);
	sand_cache_frame_free(&whole);
	folder_remove(folder);
	free(places);
	free(numbers);
}

/// All bytes of a frame's arrays.
static uint64_t frame_hash(const SandCacheFrame *frame)
{
	uint64_t hash = frame->count;
	for (int i = 0; i < frame->array_count; ++i)
	{
		hash = sand_hash64(frame->arrays[i].data, (size_t)4 * frame->count * frame->arrays[i].component_count, hash);
	}
	return hash;
}

typedef struct ReaderShare
{
	SandCacheReader *reader;
	uint64_t expected[2]; // of frames 10 and 12
	atomic_int wrong_count;
} ReaderShare;

static void *read_in_turn(void *context)
{
	ReaderShare *share = context;
	for (int i = 0; i < 50; ++i)
	{
		SandCacheFrame found;
		SandError err = {0};
		SandStatus status = sand_cache_reader_read(share->reader, folder, 10 + 2 * (i % 2), NULL, &found, &err);
		bool is_right = status == SAND_OK && frame_hash(&found) == share->expected[i % 2];
		atomic_fetch_add(&share->wrong_count, is_right ? 0 : 1);
		sand_cache_reader_give_back(share->reader, found.block);
	}
	return NULL;
}

static void a_reader_reads_the_same_and_uses_memory_again(void)
{
	folder_make(folder);
	write_pair(MANY, 2000);
	SandError err = {0};
	ReaderShare share = {0};
	SandCacheFrame found;
	for (int i = 0; i < 2; ++i)
	{
		CHECK_STATUS(sand_cache_read(folder, 10 + 2 * i, NULL, &found, &err), SAND_OK, &err);
		share.expected[i] = frame_hash(&found);
		sand_cache_frame_free(&found);
	}
	CHECK(share.expected[0] != share.expected[1]);
	size_t before = sand_alloc_bytes();
	CHECK_STATUS(sand_cache_reader_create(-1, &share.reader, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK(share.reader == NULL);
	if (!CHECK_STATUS(sand_cache_reader_create(2, &share.reader, &err), SAND_OK, &err))
	{
		return;
	}
	const void *first = NULL;
	for (int i = 0; i < 6; ++i)
	{
		CHECK_STATUS(sand_cache_reader_read(share.reader, folder, 10 + 2 * (i % 2), NULL, &found, &err), SAND_OK, &err);
		CHECK(frame_hash(&found) == share.expected[i % 2]);
		first = i == 0 ? found.block : first;
		CHECK(found.block == first); // what was given back
		memset(found.block, 0xAB, sand_alloc_size(found.block));
		sand_cache_reader_give_back(share.reader, found.block);
	}
	// A small part does not hold on to the large block.
	SandCacheWanted wanted = {.every = 64};
	CHECK_STATUS(sand_cache_reader_read(share.reader, folder, 10, &wanted, &found, &err), SAND_OK, &err);
	CHECK(sand_alloc_size(found.block) < 100 * MANY / 64);
	sand_cache_reader_give_back(share.reader, found.block);
	CHECK_STATUS(sand_cache_reader_read(share.reader, folder, 11, NULL, &found, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "Frame 11 is not in the cache");
	// Two threads take turns.
	pthread_t other;
	if (CHECK(pthread_create(&other, NULL, read_in_turn, &share) == 0))
	{
		read_in_turn(&share);
		pthread_join(other, NULL);
	}
	CHECK_INT(share.wrong_count, 0);
	sand_cache_reader_give_back(share.reader, NULL);
	sand_cache_reader_destroy(share.reader);
	sand_cache_reader_destroy(NULL);
	CHECK_INT(sand_alloc_bytes(), before);
	folder_remove(folder);
}

/// Rows of any number decode to the same, whether all of a chunk are brought in order at once or each is put in its
/// place, which a third of them needs.
static void every_count_of_rows_reads_back_in_order(void)
{
	static const uint32_t counts[] = {1, 2, 4095, 4096, 4097, 32767, 32768, 32769, 33000, 65536, 70001};
	enum
	{
		MOST = 70001
	};
	float *turns = malloc(sizeof(float) * 4 * MOST), *speeds = malloc(sizeof(float) * 5 * MOST);
	int32_t *numbers = malloc(sizeof(int32_t) * 2 * MOST);
	if (turns == NULL || speeds == NULL || numbers == NULL)
	{
		abort();
	}
	for (size_t i = 0; i < MOST; ++i)
	{
		double angle = 6 * sand_random(5, i);
		float turn[4] = {(float)cos(angle), 0, (float)sin(angle) * 0.6f, (float)sin(angle) * -0.8f};
		memcpy(turns + 4 * i, turn, sizeof turn);
		numbers[2 * i] = (int32_t)i; // smooth
		numbers[2 * i + 1] = (int32_t)(4e9 * sand_random(6, i) - 2e9);
		for (size_t k = 0; k < 5; ++k)
		{
			speeds[5 * i + k] = (float)sand_random(7, 5 * i + k) - 0.5f;
		}
	}
	SandError err = {0};
	for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c)
	{
		folder_make(folder);
		SandCacheFrame frame = {.frame = 1,
		                        .count = counts[c],
		                        .arrays = {{"rotation", SAND_CACHE_F32, 4, turns, SAND_ENCODING_TURN, 0, 0},
		                                   {"velocity", SAND_CACHE_F32, 5, speeds, SAND_ENCODING_HALF, 0, 0},
		                                   {"place", SAND_CACHE_F32, 2, speeds, SAND_ENCODING_GRID, 0, 0},
		                                   {"id", SAND_CACHE_I32, 2, numbers, 0, 0, 0}},
		                        .array_count = 4};
		SandCacheFrame kept = {0}, whole, third;
		SandCacheOptions options = {.tolerance = 1e-4, .kept_out = &kept};
		CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_OK, &err);
		CHECK_STATUS(sand_cache_read(folder, 1, NULL, &whole, &err), SAND_OK, &err);
		CHECK(frame_hash(&whole) == frame_hash(&kept));
		SandCacheWanted wanted = {.every = 3};
		CHECK_STATUS(sand_cache_read(folder, 1, &wanted, &third, &err), SAND_OK, &err);
		size_t wrong_count = 0;
		for (int a = 0; a < 4; ++a)
		{
			size_t row_bytes = 4 * frame.arrays[a].component_count;
			for (size_t i = 0; i < third.count; ++i)
			{
				wrong_count += memcmp((const char *)third.arrays[a].data + i * row_bytes,
				                      (const char *)whole.arrays[a].data + 3 * i * row_bytes, row_bytes) != 0;
			}
		}
		CHECK_INT(wrong_count, 0);
		CHECK(memcmp(whole.arrays[3].data, numbers, (size_t)8 * counts[c]) == 0);
		sand_cache_frame_free(&third);
		sand_cache_frame_free(&whole);
		sand_cache_frame_free(&kept);
		folder_remove(folder);
	}
	free(turns);
	free(speeds);
	free(numbers);
}

static void the_file_is_the_same_for_every_thread_count(void)
{
	size_t byte_count[2] = {0, 0};
	unsigned char *bytes[2];
	float *places = calloc((size_t)3 * 100000, sizeof(float));
	if (places == NULL)
	{
		abort();
	}
	for (size_t i = 0; i < 300000; ++i)
	{
		places[i] = (float)sand_random(3, i);
	}
	for (int i = 0; i < 2; ++i)
	{
		folder_make(folder);
		SandError err = {0};
		SandCacheFrame frame = {.frame = 1,
		                        .count = 100000,
		                        .arrays = {{"position", SAND_CACHE_F32, 3, places, SAND_ENCODING_GRID, 0, 0}},
		                        .array_count = 1};
		SandCacheOptions options = {.tolerance = 1e-4, .thread_count = 1 + 3 * i};
		CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_OK, &err);
		bytes[i] = file_bytes(1, &byte_count[i]);
		folder_remove(folder);
	}
	CHECK(byte_count[0] == byte_count[1] && memcmp(bytes[0], bytes[1], byte_count[0]) == 0);
	free(bytes[0]);
	free(bytes[1]);
	free(places);
}

static void resting_grains_are_stored_once_and_come_back(void)
{
	folder_make(folder);
	write_pair(MANY, 1000);
	SandError err = {0};
	SandCacheFrame found, base;
	CHECK_STATUS(sand_cache_read(folder, 12, NULL, &found, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_read(folder, 10, NULL, &base, &err), SAND_OK, &err);
	CHECK(found.has_base && found.base_frame == 10 && found.base_identity == base.identity);
	CHECK(!base.has_base);
	printf("  %" PRIu64 " bytes with %d of %d grains at rest, the whole frame takes %" PRIu64 "\n", found.byte_count,
	       MANY - 1000, MANY, base.byte_count);
	CHECK(found.byte_count < base.byte_count / 3);
	SandCacheFrame frame = many_frame(12, MANY, 1000);
	double worst = 0;
	const float *p = found.arrays[0].data;
	for (size_t i = 0; i < (size_t)3 * MANY; ++i)
	{
		worst = fmax(worst, fabs((double)p[i] - (double)many_positions[i]));
	}
	CHECK(worst > 0 && worst <= 1e-4);
	CHECK(memcmp(found.arrays[3].data, frame.arrays[3].data, sizeof many_ids) == 0);
	// The resting ones have the very bits of the base.
	CHECK(memcmp(p + 3000, (const float *)base.arrays[0].data + 3000, (size_t)12 * (MANY - 1000)) == 0);
	sand_cache_frame_free(&found);
	sand_cache_frame_free(&base);
	// Every 16th of it needs every 16th of the base.
	SandCacheWanted wanted = {.every = 16};
	CHECK_STATUS(sand_cache_read(folder, 12, &wanted, &found, &err), SAND_OK, &err);
	sand_cache_frame_free(&found);
	folder_remove(folder);
}

static void a_frame_without_its_base_is_named_and_a_renewed_base_keeps_it(void)
{
	folder_make(folder);
	write_pair(MANY, 1000);
	SandError err = {0};
	SandCacheFrame before, found;
	CHECK_STATUS(sand_cache_read(folder, 12, NULL, &before, &err), SAND_OK, &err);
	// Baked again with the same outcome: the same file.
	SandCacheOptions options = {.tolerance = 1e-4, .exact_count = 3, .engine = "test"};
	SandCacheFrame frame = many_frame(10, MANY, 1000);
	CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_read(folder, 12, NULL, &found, &err), SAND_OK, &err);
	CHECK(found.has_base);
	sand_cache_frame_free(&found);
	// Another outcome: what refers to the old one is written out first.
	frame = many_frame(10, MANY, 2000);
	frame.settings_hash = 78;
	CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_read(folder, 12, NULL, &found, &err), SAND_OK, &err);
	CHECK(!found.has_base);
	CHECK(found.settings_hash == 77);
	CHECK_NEAR(found.tolerance, 1e-4, 0);
	CHECK(found.arrays[0].error > 0);
	for (int i = 0; i < found.array_count; ++i)
	{
		CHECK(memcmp(found.arrays[i].data, before.arrays[i].data, (size_t)4 * MANY * found.arrays[i].component_count) ==
		      0);
	}
	sand_cache_frame_free(&found);
	// Freed: the same.
	write_pair(MANY, 1000);
	int file_count = 0;
	CHECK_STATUS(sand_cache_free(folder, 9, 11, &file_count, NULL, &err), SAND_OK, &err);
	CHECK_INT(file_count, 1);
	CHECK_STATUS(sand_cache_read(folder, 12, NULL, &found, &err), SAND_OK, &err);
	CHECK(memcmp(found.arrays[0].data, before.arrays[0].data, (size_t)12 * MANY) == 0);
	sand_cache_frame_free(&found);
	// Removed behind our back, replaced behind our back, damaged: named.
	write_pair(MANY, 1000);
	size_t byte_count = 0;
	unsigned char *bytes = file_bytes(10, &byte_count);
	CHECK(unlink(frame_path(10)) == 0);
	CHECK_STATUS(sand_cache_read(folder, 12, NULL, &found, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "Frame 12 needs frame 10: Frame 10 is not in the cache");
	CHECK(is_zeroed(&found));
	frame = many_frame(10, MANY, 2000);
	CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_read(folder, 12, NULL, &found, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "Frame 12 keeps resting grains in frame 10, which was baked anew");
	bytes[20] ^= 1;
	FILE *file = fopen(frame_path(10), "wb");
	if (file == NULL || fwrite(bytes, 1, byte_count, file) != byte_count || fclose(file) != 0)
	{
		abort();
	}
	CHECK_STATUS(sand_cache_read(folder, 12, NULL, &found, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "Frame 12 needs frame 10");
	// Frame 10 alone is baked again, and 12 is whole.
	frame = many_frame(10, MANY, 1000);
	CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_read(folder, 12, NULL, &found, &err), SAND_OK, &err);
	CHECK(memcmp(found.arrays[0].data, before.arrays[0].data, (size_t)12 * MANY) == 0);
	sand_cache_frame_free(&found);
	sand_cache_frame_free(&before);
	free(bytes);
	folder_remove(folder);
}

static uint64_t array_bytes_of(int32_t number, const char *name, uint32_t *encoding_out)
{
	SandCacheFrame head;
	SandError err = {0};
	CHECK_STATUS(sand_cache_peek(folder, number, &head, &err), SAND_OK, &err);
	for (int i = 0; i < head.array_count; ++i)
	{
		if (strcmp(head.arrays[i].name, name) == 0)
		{
			*encoding_out = head.arrays[i].encoding;
			return head.arrays[i].byte_count;
		}
	}
	CHECK(false);
	return 0;
}

static void what_does_not_change_is_kept_once_and_so_are_the_notes(void)
{
	folder_make(folder);
	write_pair(MANY, 1000);
	uint32_t encoding = 0;
	CHECK_INT(array_bytes_of(10, "radius", &encoding), 4);
	CHECK_INT(encoding, SAND_ENCODING_ONE);
	CHECK_INT(array_bytes_of(12, "radius", &encoding), 0);
	CHECK_INT(encoding, SAND_ENCODING_SAME);
	CHECK_INT(array_bytes_of(12, "id", &encoding), 0);
	CHECK_INT(encoding, SAND_ENCODING_SAME);
	SandError err = {0};
	for (int32_t number = 10; number <= 12; number += 2)
	{
		for (uint32_t every = 1; every <= 3; ++every)
		{
			SandCacheFrame found;
			SandCacheWanted wanted = {.every = every, .has_notes = true};
			CHECK_STATUS(sand_cache_read(folder, number, &wanted, &found, &err), SAND_OK, &err);
			CHECK(found.motion_hash == 99);
			CHECK_INT(found.note_bytes, sizeof many_notes - 1);
			CHECK(found.notes != NULL && memcmp(found.notes, many_notes, found.note_bytes) == 0);
			for (uint32_t i = 0; i < found.count; ++i)
			{
				CHECK_INT(((const int32_t *)found.arrays[3].data)[i], i * every);
				CHECK_NEAR(((const float *)found.arrays[4].data)[i], 0.01f, 0);
			}
			sand_cache_frame_free(&found);
		}
		SandCacheFrame alone;
		CHECK_STATUS(
		    sand_cache_read(folder, number, &(SandCacheWanted){.has_notes = true, .has_no_arrays = true}, &alone, &err),
		    SAND_OK, &err);
		CHECK_INT(alone.array_count, 0);
		CHECK_INT(alone.note_bytes, sizeof many_notes - 1);
		sand_cache_frame_free(&alone);
	}
	// Stand-alone again: with the notes and all rows.
	CHECK_STATUS(sand_cache_free(folder, 10, 10, NULL, NULL, &err), SAND_OK, &err);
	SandCacheFrame found;
	CHECK_STATUS(sand_cache_read(folder, 12, &everything, &found, &err), SAND_OK, &err);
	CHECK(!found.has_base && found.note_bytes == sizeof many_notes - 1 && found.motion_hash == 99);
	CHECK_INT(((const int32_t *)found.arrays[3].data)[MANY - 1], MANY - 1);
	sand_cache_frame_free(&found);
	// Notes too long to be ours.
	SandCacheFrame frame = many_frame(20, 90, 40);
	frame.note_bytes = SAND_CACHE_NOTES_LIMIT + 1;
	CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "bytes of notes, expected at most");
	folder_remove(folder);
}

static void slow_numbers_are_rounded_only_as_far_as_allowed(void)
{
	folder_make(folder);
	SandError err = {0};
	SandCacheFrame frame = many_frame(1, MANY, MANY);
	for (int i = 0; i < 3 * MANY; ++i)
	{
		many_velocities[i] = (float)(sand_random(3, (uint64_t)i) - 0.5) * (i % 2 == 0 ? 10.0f : 1e-3f);
	}
	uint64_t plain = 0, rounded = 0;
	SandCacheOptions options = {.tolerance = 1e-4};
	CHECK_STATUS(sand_cache_measure(&frame, &options, &plain, &err), SAND_OK, &err);
	options.velocity_tolerance = 4e-3;
	CHECK_STATUS(sand_cache_write(folder, &frame, &options, &rounded, &err), SAND_OK, &err);
	SandCacheFrame found;
	CHECK_STATUS(sand_cache_read(folder, 1, NULL, &found, &err), SAND_OK, &err);
	const float *v = found.arrays[2].data;
	double worst = 0;
	for (int i = 0; i < MANY; ++i)
	{
		double square = 0;
		for (int k = 0; k < 3; ++k)
		{
			double error = (double)v[3 * i + k] - (double)many_velocities[3 * i + k];
			square += error * error;
		}
		worst = fmax(worst, sqrt(square));
	}
	printf("  %" PRIu64 " bytes, %" PRIu64 " when velocities may be off by 4e-3 m/s; off by %.3g\n", plain, rounded,
	       worst);
	CHECK(worst > 1e-3 && worst <= 4e-3);
	CHECK(rounded < plain - 3 * MANY / 2);
	CHECK(found.arrays[2].error > 0 && (double)found.arrays[2].error <= 4e-3);
	sand_cache_frame_free(&found);
	options.velocity_tolerance = -1;
	CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_ERROR_ARGUMENT, &err);
	folder_remove(folder);
}

static void a_frame_above_the_byte_limit_is_not_written(void)
{
	folder_make(folder);
	SandError err = {0};
	SandCacheFrame frame = example_frame(1);
	SandCacheOptions options = {.byte_limit = 500};
	CHECK_STATUS(sand_cache_write(folder, &frame, &options, NULL, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "the limit leaves 500");
	CHECK_INT(folder_entry_count(folder), 0);
	folder_remove(folder);
}

static void signed_lies_of_version_3_are_refused(void)
{
	enum
	{
		FIRST = NEW_HEADER_BYTES
	};
	static const Tamper tampers[] = {
	    {NEW_AT_TOLERANCE, 8, UINT64_C(0x7FF8000000000000), "tolerance in the header"},
	    {NEW_AT_BOUNDS, 4, 0x7FC00000, "bounding box in the header"},
	    {NEW_AT_ENGINE, 1, 7, "engine's name in the header"},
	    {NEW_AT_ENGINE + 63, 1, 'x', "engine's name in the header"},
	    {NEW_AT_EXACT_COUNT, 4, 91, "91 exact elements of 90"},
	    {NEW_AT_FLAGS, 4, 2, "refers to frame 10"},
	    {NEW_AT_FLAGS, 4, 4, "refers to frame 10"},
	    {NEW_AT_NOTES_CHECKSUM, 8, 1, "0 bytes of notes, which cannot be"},
	    {NEW_AT_NOTE_BYTES, 4, 100, "100 bytes of notes, which cannot be"},
	    {NEW_AT_NOTE_BYTES, 4, UINT32_MAX, "4294967295 bytes of notes, which cannot be"},
	    {AT_VERSION, 4, 2, "refers to frame 10"},
	    {NEW_AT_FLAGS, 4, 0, "refers to frame 10"},
	    {NEW_AT_BASE_FRAME, 4, 12, "refers to frame 12"},
	    {NEW_AT_BASE_IDENTITY, 8, 1, "was baked anew"},
	    {NEW_AT_LEVEL_COUNT, 4, 7, "7 levels, expected 1"},
	    {NEW_AT_RESERVED, 1, 1, "header's reserved bytes"},
	    {AT_COUNT, 4, 91, "was baked anew"},
	    {AT_COUNT, 4, UINT32_MAX, "levels"},
	    {FIRST + NEW_AT_ENTRY_ENCODING, 4, 4, "encoding 4"},
	    {FIRST + NEW_AT_ENTRY_ENCODING, 4, 6, "encoding 6"},
	    {FIRST + NEW_AT_ENTRY_WORD_BYTES, 4, 0, "with 0 bytes a number"},
	    {FIRST + NEW_AT_ENTRY_WORD_BYTES, 4, 5, "with 5 bytes a number"},
	    {FIRST + NEW_AT_ENTRY_STEP, 8, 0, "encoding 1"},
	    {FIRST + NEW_AT_ENTRY_STEP, 8, UINT64_C(0xBFF0000000000000), "encoding 1"},
	    {FIRST + NEW_AT_ENTRY_ERROR, 4, 0xBF800000, "encoding 1"},
	    {FIRST + NEW_AT_ENTRY_RESERVED + 39, 1, 1, "'position': the reserved bytes"},
	    {FIRST + AT_ENTRY_OFFSET, 8, 0, "at 0, expected"},
	    {FIRST + AT_ENTRY_BYTES, 8, UINT64_MAX, "but the file has"},
	    {FIRST + AT_ENTRY_BYTES, 8, 8, "8 bytes at 896, expected 52 or more at 896"},
	    {FIRST + AT_ENTRY_CHECKSUM, 8, 7, "'position': the checksum is 0000000000000007"},
	};
	Pair pair = compact_pair();
	unsigned char *original = malloc(pair.byte_count);
	if (original == NULL)
	{
		abort();
	}
	memcpy(original, pair.bytes, pair.byte_count);
	SandError err;
	for (size_t i = 0; i < sizeof tampers / sizeof tampers[0]; ++i)
	{
		memcpy(pair.bytes, original, pair.byte_count);
		memcpy(pair.bytes + tampers[i].at, &tampers[i].value, (size_t)tampers[i].bytes);
		sign(pair.bytes, pair.byte_count);
		if (!CHECK(is_pair_refused(&pair, pair.byte_count, &err)) || !CHECK_CONTAINS(err.message, tampers[i].sentence))
		{
			printf("  tamper %zu: %s\n", i, err.message);
		}
	}
	free(original);
	free(pair.bytes);
	free(pair.base);
}

/// Files of every version ever written stay readable.
static void caches_of_every_version_still_load(void)
{
	const char *root = getenv("BARCHAN_GOLDEN");
	char path[FOLDER_PATH_BYTES];
	for (int version = 1; version <= SAND_CACHE_VERSION; ++version)
	{
		snprintf(path, sizeof path, "%.3000s/version_%d", root != NULL ? root : "tests/golden", version);
		SandError err = {0};
		SandCacheFrame found;
		if (!CHECK_STATUS(sand_cache_read(path, 1, NULL, &found, &err), SAND_OK, &err))
		{
			continue;
		}
		CHECK_INT(found.version, version);
		CHECK_INT(found.count, 40);
		CHECK_INT(found.array_count, version < 3 ? 4 : 6);
		CHECK_INT(found.settings_hash, 11);
		CHECK_INT(found.state_hash, 22);
		CHECK_NEAR(found.seconds, 0.5, 0);
		double tolerance = version == 1 ? 0 : 1e-4;
		for (int i = 0; i < 40; ++i)
		{
			const float *p = (const float *)found.arrays[0].data + 3 * i;
			const float *v = (const float *)found.arrays[2].data + 3 * i;
			CHECK_NEAR(p[0], (float)(0.01 * i), tolerance);
			CHECK_NEAR(p[1], (float)(0.5 - 0.0025 * i), tolerance);
			CHECK_NEAR(p[2], i % 2 == 0 ? 0.125 : -0.25, tolerance);
			CHECK_NEAR(v[0], 0.125 * i, 0); // halves hold it
			CHECK_INT(((const int32_t *)found.arrays[3].data)[i], i % 3);
		}
		sand_cache_frame_free(&found);
	}
	// From version 2 on also a frame that refers to another, and every fourth grain of it alone.
	for (int version = 2; version <= SAND_CACHE_VERSION; ++version)
	{
		snprintf(path, sizeof path, "%.3000s/version_%d", root != NULL ? root : "tests/golden", version);
		SandError err = {0};
		SandCacheFrame found;
		SandCacheWanted wanted = {.every = 4, .has_notes = true};
		if (!CHECK_STATUS(sand_cache_read(path, 11, &wanted, &found, &err), SAND_OK, &err))
		{
			continue;
		}
		CHECK(found.has_base && found.base_frame == 10);
		CHECK_INT(found.count, 10);
		CHECK_NEAR(((const float *)found.arrays[0].data)[3], 0.29, 1e-4);  // moved by 0.25 m
		CHECK_NEAR(((const float *)found.arrays[0].data)[18], 0.24, 1e-4); // as in frame 10
		if (version > 2)
		{
			static const char notes[] = "{\"sources\": [\"D\xC3\xBCne\"]}";
			CHECK_INT(found.motion_hash, 44);
			CHECK_INT(found.note_bytes, sizeof notes - 1);
			CHECK(found.notes != NULL && memcmp(found.notes, notes, sizeof notes - 1) == 0);
			CHECK_INT(found.array_count, 6);
			CHECK_NEAR(((const float *)found.arrays[4].data)[9], 0.02f, 0);
			CHECK_INT(((const int32_t *)found.arrays[5].data)[9], 36);
		}
		sand_cache_frame_free(&found);
		SandCheckpointInfo *infos = NULL;
		int count = 0;
		CHECK_STATUS(sand_checkpoint_list(path, true, &infos, &count, &err), SAND_OK, &err);
		CHECK_INT(count, version == 2 ? 1 : 2);
		for (int i = 0; i < count; ++i)
		{
			CHECK(infos[i].error[0] == '\0');
		}
		sand_free(infos);
	}
}

// Every way in, with a failing allocation or a failing system call.

static SandStatus write_job(SandError *err)
{
	SandCacheFrame frame = example_frame(2);
	return sand_cache_write(folder, &frame, NULL, NULL, err);
}

static SandStatus read_job(SandError *err)
{
	SandCacheFrame expected = example_frame(1);
	SandCacheFrame frame;
	SandStatus status = sand_cache_read(folder, 1, NULL, &frame, err);
	if (status == SAND_OK)
	{
		check_same(&frame, &expected);
	}
	else
	{
		CHECK(is_zeroed(&frame));
	}
	sand_cache_frame_free(&frame);
	return status;
}

static SandStatus list_job(SandError *err)
{
	int32_t *frames = NULL;
	int frame_count = -1;
	SandStatus status = sand_cache_list(folder, &frames, &frame_count, NULL, err);
	CHECK_INT(frame_count, status == SAND_OK ? 1 : 0);
	CHECK(status == SAND_OK || frames == NULL);
	sand_free(frames);
	return status;
}

static SandStatus free_job(SandError *err)
{
	int file_count = -1;
	SandStatus status = sand_cache_free(folder, INT32_MIN, INT32_MAX, &file_count, NULL, err);
	CHECK(file_count == 1 || (file_count == 0 && status != SAND_OK));
	CHECK(folder_has(folder, "frame_000001.sand") == (file_count == 0));
	return status;
}

typedef SandStatus Job(SandError *err);

/// A frame over an older one to which another refers: that one is written out first.
static SandStatus renew_job(SandError *err)
{
	SandCacheOptions options = {.tolerance = 1e-4, .exact_count = 3, .thread_count = 1};
	SandCacheFrame frame = many_frame(10, 90, 60);
	SandStatus status = sand_cache_write(folder, &frame, &options, NULL, err);
	SandCacheFrame found;
	SandError ignored = {0};
	sand_io_fail_after(0, 0); // for what is looked at now
	sand_alloc_fail_after(0, false);
	CHECK_STATUS(sand_cache_read(folder, 12, NULL, &found, &ignored), SAND_OK, &ignored);
	CHECK(found.count == 90 && (status != SAND_OK || !found.has_base));
	sand_cache_frame_free(&found);
	CHECK_STATUS(sand_cache_read(folder, 10, NULL, &found, &ignored), SAND_OK, &ignored);
	sand_cache_frame_free(&found);
	return status;
}

static SandStatus free_range_job(SandError *err)
{
	SandStatus status = sand_cache_free(folder, 10, 11, NULL, NULL, err);
	sand_io_fail_after(0, 0);
	sand_alloc_fail_after(0, false);
	SandCacheFrame found;
	SandError ignored = {0};
	CHECK_STATUS(sand_cache_read(folder, 12, NULL, &found, &ignored), SAND_OK, &ignored);
	CHECK(status != SAND_OK || !found.has_base);
	sand_cache_frame_free(&found);
	return status;
}

static SandStatus read_pair_job(SandError *err)
{
	SandCacheFrame found;
	SandCacheWanted wanted = {.thread_count = 1};
	SandStatus status = sand_cache_read(folder, 12, &wanted, &found, err);
	CHECK((status == SAND_OK) == (found.block != NULL));
	sand_cache_frame_free(&found);
	return status;
}

static SandStatus reader_job(SandError *err)
{
	SandCacheReader *reader = NULL;
	SandStatus status = sand_cache_reader_create(1, &reader, err);
	for (int i = 0; i < 3 && status == SAND_OK; ++i)
	{
		SandCacheFrame found;
		status = sand_cache_reader_read(reader, folder, i == 1 ? 10 : 12, &everything, &found, err);
		CHECK((status == SAND_OK) == (found.block != NULL));
		if (status == SAND_OK)
		{
			sand_cache_reader_give_back(reader, found.block);
		}
	}
	sand_cache_reader_destroy(reader);
	return status;
}

static const struct
{
	Job *job;
	bool has_pair; // frames 10 and 12 are there too
} jobs[] = {{write_job, false}, {read_job, false},      {list_job, false},     {free_job, false},
            {renew_job, true},  {free_range_job, true}, {read_pair_job, true}, {reader_job, true}};

/// Runs every job with its k-th allocation (os_error 0) or system call failing, k = 1, 2, ... until none is left to
/// fail. A close of a file that was read may fail without harm.
static void loop_faults(int os_error)
{
	for (size_t j = 0; j < sizeof jobs / sizeof jobs[0]; ++j)
	{
		bool is_clean = false;
		int fault_count = 0;
		for (uint64_t k = 1; k < 1000 && !is_clean; ++k)
		{
			folder_make(folder);
			SandError err = {0};
			if (jobs[j].has_pair)
			{
				write_pair(90, 40);
			}
			else
			{
				SandCacheFrame frame = example_frame(1);
				CHECK_STATUS(sand_cache_write(folder, &frame, NULL, NULL, &err), SAND_OK, &err);
			}
			size_t alloc_bytes = sand_alloc_bytes();
			uint64_t calls = sand_io_call_count();
			if (os_error == 0)
			{
				sand_alloc_fail_after(k, false);
			}
			else
			{
				sand_io_fail_after(k, os_error);
			}
			SandStatus status = jobs[j].job(&err);
			sand_alloc_fail_after(0, false);
			sand_io_fail_after(0, 0);
			is_clean = os_error == 0 ? status == SAND_OK : sand_io_call_count() - calls < k;
			bool is_harmless = os_error == EINTR || os_error < 0;
			CHECK(status == SAND_OK || !is_harmless);
			if (status != SAND_OK)
			{
				fault_count++;
				CHECK_STATUS(status, os_error == 0 ? SAND_ERROR_MEMORY : SAND_ERROR_IO, &err);
				CHECK_INT(err.os_error, os_error);
			}
			CHECK_INT(sand_alloc_bytes(), alloc_bytes);
			folder_remove(folder);
		}
		CHECK(is_clean);
		CHECK(fault_count >= 1 || os_error == EINTR || os_error < 0);
	}
}

static void every_failing_allocation_is_reported(void)
{
	loop_faults(0);
}

static void every_failing_system_call_is_reported(void)
{
	loop_faults(EIO);
	loop_faults(ENOSPC);
	loop_faults(EROFS);
	loop_faults(EINTR);
	loop_faults(-1); // short transfers
}

void test_cache(void)
{
	RUN(frames_of_every_type_read_back_bit_for_bit);
	RUN(the_bytes_on_disk_are_as_documented);
	RUN(a_frame_cut_at_any_byte_is_refused);
	RUN(bytes_behind_the_frame_are_refused);
	RUN(every_flipped_bit_is_refused);
	RUN(a_well_signed_lie_is_refused_with_found_and_expected);
	RUN(a_missing_frame_and_a_renamed_frame_are_named);
	RUN(frames_that_break_a_rule_are_not_written);
	RUN(frame_names_have_six_places_and_a_sign);
	RUN(listing_gives_exactly_our_frames_in_order);
	RUN(a_long_bake_lists_every_frame);
	RUN(freeing_removes_our_files_and_no_others);
	RUN(compact_frames_are_as_near_as_they_promise);
	RUN(numbers_that_cannot_be_coded_are_kept_exactly);
	RUN(parts_read_alone_equal_parts_of_the_whole);
	RUN(every_count_of_rows_reads_back_in_order);
	RUN(a_reader_reads_the_same_and_uses_memory_again);
	RUN(the_file_is_the_same_for_every_thread_count);
	RUN(resting_grains_are_stored_once_and_come_back);
	RUN(a_frame_without_its_base_is_named_and_a_renewed_base_keeps_it);
	RUN(what_does_not_change_is_kept_once_and_so_are_the_notes);
	RUN(slow_numbers_are_rounded_only_as_far_as_allowed);
	RUN(a_frame_above_the_byte_limit_is_not_written);
	RUN(signed_lies_of_version_3_are_refused);
	RUN(caches_of_every_version_still_load);
	RUN(every_failing_allocation_is_reported);
	RUN(every_failing_system_call_is_reported);
}
