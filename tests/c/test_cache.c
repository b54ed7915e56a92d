// test_cache: frames come back bit for bit, and nothing that is not a whole frame is taken for one.
#include "cache.h"

#include "folder.h"
#include "io.h"
#include "test.h"

#include <errno.h>

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
};

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

/// The bytes of the example frame as they are on disk, in a block of malloc of exactly that size: an overrun is seen.
static unsigned char *example_bytes(size_t *byte_count_out)
{
	SandCacheFrame frame = example_frame(5);
	SandError err = {0};
	folder_make(folder);
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_OK, &err);
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
	SandStatus status = sand_cache_parse("bytes", block, byte_count, &frame, err);
	bool is_untouched = memcmp(block, bytes, byte_count) == 0;
	free(block);
	return status == SAND_ERROR_CACHE && err->status == status && strstr(err->message, "bytes") != NULL &&
	       is_zeroed(&frame) && is_untouched;
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

/// Makes the checksums of a changed file right again, so that the checks behind them are reached.
static void sign(unsigned char *bytes, size_t byte_count)
{
	uint64_t table_bytes = (uint64_t)get_u32(bytes, AT_ARRAY_COUNT) * ENTRY_BYTES;
	if (table_bytes <= byte_count - HEADER_BYTES)
	{
		put_u64(bytes, AT_TABLE_CHECKSUM, sand_hash64(bytes + HEADER_BYTES, (size_t)table_bytes, 0));
	}
	put_u64(bytes, AT_HEADER_CHECKSUM, sand_hash64(bytes, AT_HEADER_CHECKSUM, 0));
}

static void frames_of_every_type_read_back_bit_for_bit(void)
{
	folder_make(folder);
	SandError err = {0};
	SandCacheFrame frame = example_frame(-12);
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_OK, &err);
	SandCacheFrame found;
	CHECK_STATUS(sand_cache_read(folder, -12, &found, &err), SAND_OK, &err);
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
	CHECK_STATUS(sand_cache_write(folder, &many, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_read(folder, INT32_MAX, &found, &err), SAND_OK, &err);
	check_same(&found, &many);
	sand_cache_frame_free(&found);
	// No grains at all.
	frame.count = 0;
	frame.arrays[0].data = NULL;
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_read(folder, -12, &found, &err), SAND_OK, &err);
	check_same(&found, &frame);
	sand_cache_frame_free(&found);
	sand_cache_frame_free(NULL);
	folder_remove(folder);
}

static void the_bytes_on_disk_are_as_documented(void)
{
	size_t byte_count = 0;
	unsigned char *bytes = example_bytes(&byte_count);
	static const unsigned char magic[8] = {0x89, 'S', 'A', 'N', 'D', 0x0D, 0x0A, 0x1A};
	// 84, 112 and 28 bytes of data, each filled up to a multiple of 64.
	CHECK_INT(byte_count, HEADER_BYTES + 3 * ENTRY_BYTES + 128 + 128 + 64);
	CHECK(memcmp(bytes, magic, sizeof magic) == 0);
	CHECK_INT(get_u32(bytes, AT_VERSION), 1);
	CHECK(bytes[AT_ENDIAN] == 4 && bytes[AT_ENDIAN + 3] == 1);
	CHECK_INT(get_u32(bytes, AT_HEADER_BYTES), HEADER_BYTES);
	CHECK_INT(get_u32(bytes, AT_ARRAY_COUNT), 3);
	CHECK_INT(get_u64(bytes, AT_TOTAL_BYTES), byte_count);
	CHECK_INT(get_u32(bytes, AT_FRAME), 5);
	CHECK_INT(get_u32(bytes, AT_COUNT), GRAIN_COUNT);
	double seconds;
	memcpy(&seconds, bytes + AT_SECONDS, sizeof seconds);
	CHECK_NEAR(seconds, 1.25, 0.0);
	CHECK(get_u64(bytes, AT_SETTINGS_HASH) == UINT64_C(0x1122334455667788));
	CHECK(get_u64(bytes, AT_STATE_HASH) == UINT64_MAX);
	CHECK(get_u64(bytes, AT_HEADER_CHECKSUM) == sand_hash64(bytes, AT_HEADER_CHECKSUM, 0));
	CHECK(get_u64(bytes, AT_TABLE_CHECKSUM) == sand_hash64(bytes + HEADER_BYTES, 3 * ENTRY_BYTES, 0));
	const unsigned char *entry = bytes + HEADER_BYTES + ENTRY_BYTES;
	CHECK(strcmp((const char *)entry, "rotation") == 0);
	CHECK_INT(get_u32(entry, AT_ENTRY_TYPE), SAND_CACHE_F32);
	CHECK_INT(get_u32(entry, AT_ENTRY_COMPONENTS), 4);
	CHECK_INT(get_u64(entry, AT_ENTRY_OFFSET), HEADER_BYTES + 3 * ENTRY_BYTES + 128);
	CHECK_INT(get_u64(entry, AT_ENTRY_BYTES), 4 * 4 * GRAIN_COUNT);
	CHECK(get_u64(entry, AT_ENTRY_CHECKSUM) == sand_hash64(rotations, sizeof rotations, 0));
	CHECK_INT(get_u64(entry, AT_ENTRY_RESERVED), 0);
	CHECK(memcmp(bytes + get_u64(entry, AT_ENTRY_OFFSET), rotations, sizeof rotations) == 0);
	free(bytes);
}

static void a_frame_cut_at_any_byte_is_refused(void)
{
	size_t byte_count = 0;
	unsigned char *bytes = example_bytes(&byte_count);
	SandError err;
	for (size_t cut = 0; cut < byte_count; ++cut)
	{
		if (!CHECK(is_refused(bytes, cut, &err)))
		{
			printf("  cut at %zu: %s\n", cut, err.message);
		}
	}
	free(bytes);
}

static void bytes_behind_the_frame_are_refused(void)
{
	size_t byte_count = 0;
	unsigned char *bytes = example_bytes(&byte_count);
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

static void every_flipped_bit_is_refused(void)
{
	size_t byte_count = 0;
	unsigned char *bytes = example_bytes(&byte_count);
	SandError err;
	// All bits: header and table, and the blocks with the zeros between them.
	for (size_t bit = 0; bit < 8 * byte_count; ++bit)
	{
		bytes[bit / 8] = (unsigned char)(bytes[bit / 8] ^ (1u << bit % 8));
		if (!CHECK(is_refused(bytes, byte_count, &err)))
		{
			printf("  bit %zu of byte %zu\n", bit % 8, bit / 8);
		}
		bytes[bit / 8] = (unsigned char)(bytes[bit / 8] ^ (1u << bit % 8));
	}
	free(bytes);
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
	    {AT_VERSION, 4, 2, "format version 2, this Barchan reads version 1; update"},
	    {AT_VERSION, 4, 0, "format version 0, this Barchan reads version 1; bake again"},
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
	unsigned char *bytes = example_bytes(&byte_count);
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
	void *block = sand_alloc(byte_count, 1);
	memcpy(block, bytes, byte_count);
	SandCacheFrame frame;
	CHECK_STATUS(sand_cache_parse("bytes", block, byte_count, &frame, &err), SAND_OK, &err);
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
	CHECK_STATUS(sand_cache_read(folder, 7, &found, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "Frame 7 is not in the cache");
	CHECK_CONTAINS(err.message, "frame_000007.sand");
	CHECK(is_zeroed(&found));
	CHECK_STATUS(sand_cache_read(folder, 7, &found, NULL), SAND_ERROR_CACHE, NULL);
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_OK, &err);
	char from[FOLDER_PATH_BYTES];
	snprintf(from, sizeof from, "%s", frame_path(5));
	CHECK(rename(from, frame_path(7)) == 0);
	memset(&found, 0xAB, sizeof found);
	CHECK_STATUS(sand_cache_read(folder, 7, &found, &err), SAND_ERROR_CACHE, &err);
	CHECK_CONTAINS(err.message, "holds frame 5, expected frame 7");
	CHECK(is_zeroed(&found));
	// A file that the system refuses is no damaged frame.
	CHECK(mkdir(frame_path(9), 0777) == 0);
	CHECK_STATUS(sand_cache_read(folder, 9, &found, &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, EISDIR);
	CHECK_STATUS(sand_cache_read("", 9, &found, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_STATUS(sand_cache_write("", &frame, &err), SAND_ERROR_ARGUMENT, &err);
	folder_remove(folder);
	CHECK_STATUS(sand_cache_read(folder, 7, &found, &err), SAND_ERROR_CACHE, &err);
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_IO, &err);
	CHECK_INT(err.os_error, ENOENT);
}

static void frames_that_break_a_rule_are_not_written(void)
{
	folder_make(folder);
	SandError err = {0};
	SandCacheFrame frame = example_frame(5);
	frame.array_count = 0;
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "0 arrays, expected 1 to 32");
	frame.array_count = SAND_CACHE_ARRAY_LIMIT + 1;
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_ARGUMENT, &err);
	frame = example_frame(5);
	frame.seconds = NAN;
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "expected a finite number");
	frame = example_frame(5);
	frame.arrays[1].type = 9;
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "'rotation': unknown type 9");
	frame = example_frame(5);
	frame.arrays[1].component_count = 17;
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "'rotation': 17 components, expected 1 to 16");
	frame.arrays[1].component_count = 0;
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_ARGUMENT, &err);
	frame = example_frame(5);
	frame.arrays[1].data = NULL;
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "no data for 7 elements");
	frame = example_frame(5);
	memcpy(frame.arrays[2].name, "position", sizeof "position");
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "two arrays are named 'position'");
	static const char *const bad_names[] = {"", "d\xC3\xBCne", "tab\there"};
	for (size_t i = 0; i < sizeof bad_names / sizeof bad_names[0]; ++i)
	{
		frame = example_frame(5);
		memcpy(frame.arrays[2].name, bad_names[i], strlen(bad_names[i]) + 1);
		CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_ARGUMENT, &err);
		CHECK_CONTAINS(err.message, "array 2: the name");
	}
	frame = example_frame(5);
	memset(frame.arrays[2].name, 'x', SAND_CACHE_NAME_BYTES); // not terminated
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_ARGUMENT, &err);
	// Too large to be written: refused by the size, before any element is read.
	frame = example_frame(5);
	frame.count = UINT32_MAX;
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_ERROR_ARGUMENT, &err);
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
	folder_make(folder);
	SandError err = {0};
	static const int32_t written[] = {10, -3, 0, 1000000, 2, INT32_MIN, -1, INT32_MAX};
	static const int32_t sorted[] = {INT32_MIN, -3, -1, 0, 2, 10, 1000000, INT32_MAX};
	for (int i = 0; i < FOREIGN_COUNT; ++i)
	{
		folder_put(folder, foreign_names[i], "foreign");
	}
	for (int i = 0; i < 8; ++i)
	{
		SandCacheFrame frame = example_frame(written[i]);
		CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_OK, &err);
	}
	CHECK(mkdir(frame_path(77), 0777) == 0); // a folder is no frame
	int32_t *frames = NULL;
	int frame_count = -1;
	uint64_t byte_count = 0;
	CHECK_STATUS(sand_cache_list(folder, &frames, &frame_count, &byte_count, &err), SAND_OK, &err);
	CHECK_INT(byte_count, 8 * 640);
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
	CHECK_STATUS(sand_cache_free(folder, &file_count, &byte_count, &err), SAND_OK, &err);
	CHECK_INT(file_count, FRAME_COUNT);
	CHECK_INT(folder_entry_count(folder), -1);
}

static void freeing_removes_our_files_and_no_others(void)
{
	folder_make(folder);
	SandError err = {0};
	for (int i = 0; i < FOREIGN_COUNT; ++i)
	{
		folder_put(folder, foreign_names[i], "foreign");
	}
	for (int32_t i = -2; i <= 2; ++i)
	{
		SandCacheFrame frame = example_frame(i);
		CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_OK, &err);
	}
	folder_put(folder, "frame_000001.sand.tmp.123.4", "half");
	folder_put(folder, "frame_-00012.sand.tmp.4194304.18446744073709551615", "half");
	folder_put(folder, SAND_IO_PROBE_NAME ".tmp.1.2", "half");
	CHECK(mkdir(frame_path(77), 0777) == 0);
	int file_count = -1;
	uint64_t byte_count = 0;
	CHECK_STATUS(sand_cache_free(folder, &file_count, &byte_count, &err), SAND_OK, &err);
	CHECK_INT(file_count, 8);
	CHECK_INT(byte_count, 5 * 640 + 3 * 4);
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
	CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_OK, &err);
	CHECK_STATUS(sand_cache_free(folder, NULL, NULL, NULL), SAND_OK, NULL);
	CHECK_INT(folder_entry_count(folder), -1);
	CHECK_STATUS(sand_cache_free(folder, &file_count, &byte_count, &err), SAND_OK, &err);
	CHECK_INT(file_count, 0);
}

// Every way in, with a failing allocation or a failing system call.

static SandStatus write_job(SandError *err)
{
	SandCacheFrame frame = example_frame(2);
	return sand_cache_write(folder, &frame, err);
}

static SandStatus read_job(SandError *err)
{
	SandCacheFrame expected = example_frame(1);
	SandCacheFrame frame;
	SandStatus status = sand_cache_read(folder, 1, &frame, err);
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
	SandStatus status = sand_cache_free(folder, &file_count, NULL, err);
	CHECK(file_count == 1 || (file_count == 0 && status != SAND_OK));
	CHECK(folder_has(folder, "frame_000001.sand") == (file_count == 0));
	return status;
}

typedef SandStatus Job(SandError *err);
static Job *const jobs[] = {write_job, read_job, list_job, free_job};

/// Runs every job with its k-th allocation (os_error 0) or system call failing, k = 1, 2, ... until one succeeds.
static void loop_faults(int os_error)
{
	for (size_t j = 0; j < sizeof jobs / sizeof jobs[0]; ++j)
	{
		bool is_clean = false;
		int fault_count = 0;
		for (uint64_t k = 1; k < 100 && !is_clean; ++k)
		{
			folder_make(folder);
			SandCacheFrame frame = example_frame(1);
			SandError err = {0};
			CHECK_STATUS(sand_cache_write(folder, &frame, &err), SAND_OK, &err);
			size_t alloc_bytes = sand_alloc_bytes();
			if (os_error == 0)
			{
				sand_alloc_fail_after(k, false);
			}
			else
			{
				sand_io_fail_after(k, os_error);
			}
			SandStatus status = jobs[j](&err);
			sand_alloc_fail_after(0, false);
			sand_io_fail_after(0, 0);
			is_clean = status == SAND_OK;
			if (!is_clean)
			{
				fault_count++;
				CHECK_STATUS(status, os_error == 0 ? SAND_ERROR_MEMORY : SAND_ERROR_IO, &err);
				CHECK_INT(err.os_error, os_error);
			}
			CHECK_INT(sand_alloc_bytes(), alloc_bytes);
			folder_remove(folder);
		}
		CHECK(is_clean);
		CHECK(fault_count >= 1);
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
	RUN(every_failing_allocation_is_reported);
	RUN(every_failing_system_call_is_reported);
}
