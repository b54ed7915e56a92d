// cache: frames on disk. Comes in: named arrays. Goes out: the same arrays, or a sentence. Knows no physics.
// One file per frame: header, table of arrays, and for each array a directory of its pieces and the pieces (codec).
// Byte by byte: docs/cache-format.md. The header's checksum covers the header, the table's checksum (kept in the
// header) covers the table, each array's (kept in the table) its directory, and each piece's (kept in the directory)
// the piece: so a part of an array can be read and trusted without the rest, and the header's checksum stands for all
// contents.
#include "cache.h"

#include "io.h"
#include "pool.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ALIGNMENT 64
#define ENDIAN_TAG 0x01020304u
#define FRAME_NAME_BYTES 32
#define OWN_NAME_BYTES 96 // "frame_-2147483648.sand" and the ending of a temporary, generously
#define LABEL_BYTES 160   // of a path shown in a sentence
// Flags of the header.
#define HAS_BASE 1u
#define HAS_NOTES_OF_BASE 2u // the notes are the base's

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "frames are written as they lie in memory: little-endian only");

/// The same in every version.
typedef struct FileStart
{
	unsigned char magic[8];
	uint32_t version;
	uint32_t endian_tag;
	uint32_t header_bytes;
	uint32_t array_count;
	uint64_t layout_hash; // of the names, types and component counts: equal for all frames of a bake
	uint64_t total_bytes;
	int32_t frame;
	uint32_t count;
	double seconds;
	uint64_t settings_hash;
	uint64_t state_hash;
	uint64_t table_checksum;
} FileStart;

typedef struct FileHeader1
{
	FileStart start;
	unsigned char reserved[40]; // zero
	uint64_t header_checksum;   // of the 120 bytes above
} FileHeader1;

typedef struct FileHeader
{
	FileStart start;
	float bounds[6];
	double tolerance;
	uint32_t exact_count;
	uint32_t flags; // HAS_BASE, HAS_NOTES_OF_BASE
	uint64_t base_identity;
	int32_t base_frame;
	uint32_t level_count; // of the codec: so that a reader with other levels says so
	char engine[SAND_CACHE_ENGINE_BYTES];
	// From here to the checksum version 2 has zeros.
	uint64_t motion_hash;
	uint64_t notes_checksum;    // 0 without notes of its own
	uint32_t note_bytes;        // behind the last array
	unsigned char reserved[28]; // zero
	uint64_t header_checksum;   // of the 248 bytes above
} FileHeader;

typedef struct FileEntry1
{
	char name[SAND_CACHE_NAME_BYTES]; // filled up with zeros
	uint32_t type;
	uint32_t component_count;
	uint64_t offset; // from the start of the file
	uint64_t byte_count;
	uint64_t checksum;
	uint64_t reserved; // zero
} FileEntry1;

typedef struct FileEntry
{
	char name[SAND_CACHE_NAME_BYTES]; // filled up with zeros
	uint32_t type;
	uint32_t component_count;
	uint64_t offset; // of the directory, from the start of the file
	uint64_t byte_count;
	uint64_t checksum; // of the directory and the exact rows behind it
	uint32_t encoding;
	uint32_t word_bytes;
	double step;
	int32_t origin[3];
	float error;
	unsigned char reserved[40]; // zero
} FileEntry;

_Static_assert(sizeof(FileStart) == 80, "on disk");
_Static_assert(offsetof(FileStart, version) == 8, "on disk");
_Static_assert(offsetof(FileStart, endian_tag) == 12, "on disk");
_Static_assert(offsetof(FileStart, header_bytes) == 16, "on disk");
_Static_assert(offsetof(FileStart, array_count) == 20, "on disk");
_Static_assert(offsetof(FileStart, layout_hash) == 24, "on disk");
_Static_assert(offsetof(FileStart, total_bytes) == 32, "on disk");
_Static_assert(offsetof(FileStart, frame) == 40, "on disk");
_Static_assert(offsetof(FileStart, count) == 44, "on disk");
_Static_assert(offsetof(FileStart, seconds) == 48, "on disk");
_Static_assert(offsetof(FileStart, settings_hash) == 56, "on disk");
_Static_assert(offsetof(FileStart, state_hash) == 64, "on disk");
_Static_assert(offsetof(FileStart, table_checksum) == 72, "on disk");
_Static_assert(sizeof(FileHeader1) == 128, "the header of version 1 is 128 bytes on disk");
_Static_assert(offsetof(FileHeader1, header_checksum) == 120, "on disk");
_Static_assert(sizeof(FileHeader) == 256, "the header is 256 bytes on disk");
_Static_assert(offsetof(FileHeader, bounds) == 80, "on disk");
_Static_assert(offsetof(FileHeader, tolerance) == 104, "on disk");
_Static_assert(offsetof(FileHeader, exact_count) == 112, "on disk");
_Static_assert(offsetof(FileHeader, flags) == 116, "on disk");
_Static_assert(offsetof(FileHeader, base_identity) == 120, "on disk");
_Static_assert(offsetof(FileHeader, base_frame) == 128, "on disk");
_Static_assert(offsetof(FileHeader, level_count) == 132, "on disk");
_Static_assert(offsetof(FileHeader, engine) == 136, "on disk");
_Static_assert(offsetof(FileHeader, motion_hash) == 200, "on disk");
_Static_assert(offsetof(FileHeader, notes_checksum) == 208, "on disk");
_Static_assert(offsetof(FileHeader, note_bytes) == 216, "on disk");
_Static_assert(offsetof(FileHeader, reserved) == 220, "on disk");
_Static_assert(offsetof(FileHeader, header_checksum) == 248, "on disk");
_Static_assert(sizeof(FileEntry1) == 64, "a table entry of version 1 is 64 bytes on disk");
_Static_assert(sizeof(FileEntry) == 128, "a table entry is 128 bytes on disk");
_Static_assert(offsetof(FileEntry, type) == 24, "on disk");
_Static_assert(offsetof(FileEntry, component_count) == 28, "on disk");
_Static_assert(offsetof(FileEntry, offset) == 32, "on disk");
_Static_assert(offsetof(FileEntry, byte_count) == 40, "on disk");
_Static_assert(offsetof(FileEntry, checksum) == 48, "on disk");
_Static_assert(offsetof(FileEntry, encoding) == 56, "on disk");
_Static_assert(offsetof(FileEntry, word_bytes) == 60, "on disk");
_Static_assert(offsetof(FileEntry, step) == 64, "on disk");
_Static_assert(offsetof(FileEntry, origin) == 72, "on disk");
_Static_assert(offsetof(FileEntry, error) == 84, "on disk");
_Static_assert(offsetof(FileEntry, reserved) == 88, "on disk");

// The first byte is no text and loses its top bit on a 7-bit path; CR LF and Ctrl-Z show a file copied as text.
static const unsigned char magic[8] = {0x89, 'S', 'A', 'N', 'D', '\r', '\n', 0x1A};

/// The end of a path, which tells more than its beginning.
static const char *shown(const char *label)
{
	size_t bytes = strlen(label);
	if (bytes > LABEL_BYTES)
	{
		label += bytes - LABEL_BYTES;
		while (((unsigned char)*label & 0xC0u) == 0x80u) // not into the middle of a UTF-8 character
		{
			++label;
		}
	}
	return label;
}

/// Cannot overflow: at most 2^32 * SAND_CACHE_COMPONENT_LIMIT * 4.
static uint64_t array_bytes(uint32_t count, uint32_t component_count)
{
	return (uint64_t)count * component_count * 4u;
}

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
}

/// The hash of what the arrays are, not of what they hold: name, type and component count of each.
static uint64_t layout_hash(const FileEntry *entries, uint32_t array_count)
{
	uint64_t hash = 0;
	for (uint32_t i = 0; i < array_count; ++i)
	{
		hash = sand_hash64(&entries[i], offsetof(FileEntry, offset), hash);
	}
	return hash;
}

static bool is_zero(const void *bytes, size_t byte_count)
{
	const unsigned char *byte = bytes;
	for (size_t i = 0; i < byte_count; ++i)
	{
		if (byte[i] != 0)
		{
			return false;
		}
	}
	return true;
}

/// Length of a text of printable ASCII that ends within byte_count; SIZE_MAX when it breaks these rules.
static size_t text_length(const char *text, size_t byte_count)
{
	size_t length = 0;
	while (length < byte_count && text[length] != '\0')
	{
		if (text[length] < ' ' || text[length] > '~')
		{
			return SIZE_MAX;
		}
		++length;
	}
	return length < byte_count ? length : SIZE_MAX;
}

/// Length of a name by the rules of SandCacheArray; 0 when it breaks them.
static size_t name_length(const char name[SAND_CACHE_NAME_BYTES])
{
	size_t length = text_length(name, SAND_CACHE_NAME_BYTES);
	return length == SIZE_MAX ? 0 : length;
}

static bool is_type(uint32_t type)
{
	return type == SAND_CACHE_F32 || type == SAND_CACHE_I32;
}

static SandCodec codec_of(const FileEntry *entry)
{
	return (SandCodec){
	    .is_int = entry->type == SAND_CACHE_I32,
	    .component_count = entry->component_count,
	    .encoding = entry->encoding,
	    .word_bytes = entry->word_bytes,
	    .step = entry->step,
	    .origin = {entry->origin[0], entry->origin[1], entry->origin[2]},
	};
}

/// Directory of the pieces of an array that has them.
static uint64_t directory_bytes(uint32_t count)
{
	return (uint64_t)sand_codec_chunk_count(count) * sand_codec_level_count(count) * sizeof(SandCodecPiece);
}

/// Does an array of this encoding have pieces?
static bool has_pieces(uint32_t encoding)
{
	return encoding < SAND_ENCODING_ONE;
}

/// Of the rows in front of the pieces that replace what is decoded; also the one row of ONE.
static uint64_t exact_bytes(uint32_t encoding, uint32_t component_count, uint32_t exact_count)
{
	switch (encoding)
	{
	case SAND_ENCODING_EXACT:
	case SAND_ENCODING_SAME:
		return 0;
	case SAND_ENCODING_ONE:
		return array_bytes(1, component_count);
	default:
		return array_bytes(exact_count, component_count);
	}
}

static bool has_base(const FileHeader *header)
{
	return (header->flags & HAS_BASE) != 0;
}

SandEncoding sand_cache_encoding(const char *name)
{
	static const struct
	{
		const char *name;
		SandEncoding encoding;
	} known[] = {{"position", SAND_ENCODING_GRID},    {"rotation", SAND_ENCODING_TURN},
	             {"orientation", SAND_ENCODING_TURN}, {"velocity", SAND_ENCODING_HALF},
	             {"spin", SAND_ENCODING_HALF},        {"age", SAND_ENCODING_GRID}};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i)
	{
		if (strcmp(name, known[i].name) == 0)
		{
			return known[i].encoding;
		}
	}
	return SAND_ENCODING_EXACT;
}

void sand_cache_frame_name(int32_t frame, char name_out[32])
{
	snprintf(name_out, FRAME_NAME_BYTES, "frame_%06" PRId32 ".sand", frame);
}

void sand_cache_checkpoint_name(int32_t frame, char name_out[32])
{
	snprintf(name_out, FRAME_NAME_BYTES, "checkpoint_%06" PRId32 ".sand", frame);
}

/// True when name is exactly what make makes of some number, which stands behind the first prefix_bytes.
static bool parse_number(const char *name, size_t prefix_bytes, void (*make)(int32_t, char *), int32_t *number_out)
{
	// At most ten digits and a sign fit into an int32; longer texts would not fit into a long long either.
	const char *text = strnlen(name, prefix_bytes) == prefix_bytes ? name + prefix_bytes : "";
	size_t text_bytes = strspn(text, "-0123456789");
	if (text_bytes == 0 || text_bytes > 11)
	{
		return false;
	}
	long long value = strtoll(text, NULL, 10);
	if (value < INT32_MIN || value > INT32_MAX)
	{
		return false;
	}
	char expected[FRAME_NAME_BYTES];
	make((int32_t)value, expected);
	*number_out = (int32_t)value;
	return strcmp(name, expected) == 0;
}

static bool parse_frame_name(const char *name, int32_t *frame_out)
{
	return parse_number(name, strlen("frame_"), sand_cache_frame_name, frame_out);
}

bool sand_cache_is_checkpoint(const char *name, bool *is_kept_out, int32_t *frame_out)
{
	*is_kept_out = parse_number(name, strlen("checkpoint_"), sand_cache_checkpoint_name, frame_out);
	return *is_kept_out || strcmp(name, SAND_CACHE_CHECKPOINT_A) == 0 || strcmp(name, SAND_CACHE_CHECKPOINT_B) == 0;
}

/// folder + "/" + name in a block of sand_alloc.
static SandStatus join(const char *folder, const char *name, char **path_out, SandError *err)
{
	*path_out = NULL;
	if (folder == NULL || folder[0] == '\0')
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The cache folder is empty; choose a folder");
	}
	size_t path_bytes = strlen(folder) + 1 + strlen(name) + 1;
	char *path = sand_alloc(path_bytes, 1);
	if (path == NULL)
	{
		return sand_fail_memory(err, path_bytes, "a file name");
	}
	snprintf(path, path_bytes, "%s/%s", folder, name);
	*path_out = path;
	return SAND_OK;
}

/// What one task of a reading works with; kept for its next frame.
typedef struct Desk
{
	SandCodecScratch *scratch;
	unsigned char *bytes; // as they are in the file
	size_t byte_count;
} Desk;

struct SandCacheReader
{
	int thread_count;
	pthread_mutex_t reading; // held while a frame is read: what is below, but for spare
	SandPool *pool;          // NULL as long as one thread was enough
	Desk *desks;             // one per thread
	int desk_count;
	pthread_mutex_t giving; // held for a moment: spare
	void *spare;            // a block that nobody uses, or NULL
};

/// A block of so many bytes: the reader's spare one where it fits and is not much larger, else a new one.
static void *take_block(SandCacheReader *reader, size_t bytes)
{
	if (reader != NULL)
	{
		pthread_mutex_lock(&reader->giving);
		void *spare = reader->spare;
		reader->spare = NULL;
		pthread_mutex_unlock(&reader->giving);
		if (spare != NULL && sand_alloc_size(spare) >= bytes && sand_alloc_size(spare) / 2 <= bytes)
		{
			return spare;
		}
		sand_free(spare); // before the new one is asked for
	}
	return sand_alloc_raw(bytes, 1);
}

/// One block for arrays of row_count rows, each at a multiple of 64 bytes, and note_bytes behind them; their places
/// into places_out, of which there is one more for the notes. reader may be NULL.
static SandStatus alloc_arrays(SandCacheReader *reader, const FileEntry *const *entries, int array_count,
                               uint32_t row_count, uint32_t note_bytes, void **block_out, void **places_out,
                               SandError *err)
{
	uint64_t total = note_bytes;
	for (int i = 0; i < array_count; ++i)
	{
		total += aligned(array_bytes(row_count, entries[i]->component_count)); // at most 32 of 2^38
	}
	unsigned char *block = total <= SIZE_MAX ? take_block(reader, (size_t)total) : NULL;
	if (block == NULL)
	{
		return sand_fail_memory(err, (size_t)total, "the arrays of a frame");
	}
	*block_out = block;
	for (int i = 0; i < array_count; ++i)
	{
		places_out[i] = block;
		block += aligned(array_bytes(row_count, entries[i]->component_count));
	}
	places_out[array_count] = block;
	return SAND_OK;
}

// Reading

static const char damaged[] = "the file is damaged, bake this frame again";

/// Where bytes come from: an open file, or memory.
typedef struct Source
{
	const char *label; // for sentences, shortened
	const char *path;  // of the file
	SandIoFile file;
	const unsigned char *bytes; // NULL: the file
	uint64_t byte_count;
} Source;

/// The caller has made sure that the bytes are there.
static SandStatus source_read(const Source *source, uint64_t offset, void *bytes_out, size_t byte_count, SandError *err)
{
	assert(offset + byte_count <= source->byte_count);
	if (source->bytes == NULL)
	{
		return sand_io_read_at(&source->file, source->path, offset, bytes_out, byte_count, err);
	}
	if (byte_count > 0)
	{
		memcpy(bytes_out, source->bytes + offset, byte_count);
	}
	return SAND_OK;
}

/// Header and table of a file, checked. Those of version 1 are kept in the form of version 2: exact, in one piece.
typedef struct Head
{
	FileHeader header; // version as in the file
	FileEntry entries[SAND_CACHE_ARRAY_LIMIT];
} Head;

/// What every version has.
static SandStatus check_start(const char *label, const FileStart *start, SandError *err)
{
	if (memcmp(start->magic, magic, sizeof magic) != 0)
	{
		const unsigned char *found = start->magic;
		return sand_fail(
		    err, SAND_ERROR_CACHE,
		    "'%s' is not a Barchan frame: it begins with %02x %02x %02x %02x, expected %02x %02x %02x %02x "
		    "and four more bytes of a Barchan frame",
		    label, found[0], found[1], found[2], found[3], magic[0], magic[1], magic[2], magic[3]);
	}
	if (start->endian_tag != ENDIAN_TAG)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' has the byte order tag %08" PRIx32 ", expected %08x: it comes from another kind of "
		                 "machine or is damaged, bake it again",
		                 label, start->endian_tag, ENDIAN_TAG);
	}
	if (start->version < 1 || start->version > SAND_CACHE_VERSION)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' has format version %" PRIu32 ", this Barchan reads versions 1 to %d; %s", label,
		                 start->version, SAND_CACHE_VERSION,
		                 start->version > SAND_CACHE_VERSION ? "update Barchan or bake again" : "bake again");
	}
	size_t header_bytes = start->version == 1 ? sizeof(FileHeader1) : sizeof(FileHeader);
	if (start->header_bytes != header_bytes)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has a header of %" PRIu32 " bytes, expected %zu; %s", label,
		                 start->header_bytes, header_bytes, damaged);
	}
	return SAND_OK;
}

/// The header's own checksum, and what it says of itself.
static SandStatus check_header(const char *label, const FileStart *start, uint64_t found, uint64_t expected,
                               bool is_reserved_zero, uint64_t byte_count, SandError *err)
{
	if (found != expected)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s': the header's checksum is %016" PRIx64 ", its bytes give %016" PRIx64 "; %s", label,
		                 found, expected, damaged);
	}
	if (!is_reserved_zero)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s': the header's reserved bytes are not zero; %s", label, damaged);
	}
	if (!isfinite(start->seconds))
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has the time %g s, expected a finite number; %s", label,
		                 start->seconds, damaged);
	}
	if (start->total_bytes != byte_count)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %" PRIu64 " bytes, its header says %" PRIu64 "; %s", label,
		                 byte_count, start->total_bytes, damaged);
	}
	if (start->array_count < 1 || start->array_count > SAND_CACHE_ARRAY_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %" PRIu32 " arrays, expected 1 to %d; %s", label,
		                 start->array_count, SAND_CACHE_ARRAY_LIMIT, damaged);
	}
	return SAND_OK;
}

/// What versions 2 and 3 have.
static SandStatus check_header_2(const char *label, const FileHeader *header, SandError *err)
{
	size_t length = text_length(header->engine, sizeof header->engine);
	bool is_text = length != SIZE_MAX && is_zero(header->engine + length, sizeof header->engine - length);
	if (!is_text || !isfinite(header->tolerance) || header->tolerance < 0 || !sand_is_finite(header->bounds, 6))
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s': the %s in the header is malformed; %s", label,
		                 !is_text                                                ? "engine's name"
		                 : !isfinite(header->tolerance) || header->tolerance < 0 ? "tolerance"
		                                                                         : "bounding box",
		                 damaged);
	}
	if (header->exact_count > header->start.count)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %" PRIu32 " exact elements of %" PRIu32 "; %s", label,
		                 header->exact_count, header->start.count, damaged);
	}
	if (header->level_count != sand_codec_level_count(header->start.count))
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %" PRIu32 " levels, expected %" PRIu32 "; %s", label,
		                 header->level_count, sand_codec_level_count(header->start.count), damaged);
	}
	int64_t back = (int64_t)header->start.frame - header->base_frame;
	bool is_based = has_base(header);
	uint32_t flag_limit = header->start.version == 2 ? HAS_BASE : HAS_BASE | HAS_NOTES_OF_BASE;
	if (header->flags > flag_limit || (is_based && (back < 1 || back >= SAND_CACHE_BASE_SPAN)) ||
	    (!is_based && (header->flags != 0 || header->base_frame != 0 || header->base_identity != 0)))
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' refers to frame %" PRId32 " in a way that cannot be (%" PRIu32 "); %s", label,
		                 header->base_frame, header->flags, damaged);
	}
	bool is_old = header->start.version == 2;
	if ((is_old && (header->motion_hash != 0 || header->notes_checksum != 0 || header->note_bytes != 0)) ||
	    header->note_bytes > SAND_CACHE_NOTES_LIMIT || header->note_bytes > header->start.total_bytes ||
	    (header->note_bytes == 0 && header->notes_checksum != 0) ||
	    (header->note_bytes > 0 && (header->flags & HAS_NOTES_OF_BASE) != 0))
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %" PRIu32 " bytes of notes, which cannot be; %s", label,
		                 header->note_bytes, damaged);
	}
	return SAND_OK;
}

/// One table entry by itself: the name, type, component count and coding are sane.
static SandStatus check_entry(const char *label, const FileHeader *header, const FileEntry *entries, uint32_t index,
                              SandError *err)
{
	const FileEntry *entry = &entries[index];
	size_t length = name_length(entry->name);
	if (length == 0 || !is_zero(entry->name + length, sizeof entry->name - length))
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s', array %" PRIu32 ": the name is not printable ASCII; %s", label,
		                 index, damaged);
	}
	for (uint32_t i = 0; i < index; ++i)
	{
		if (memcmp(entries[i].name, entry->name, sizeof entry->name) == 0)
		{
			return sand_fail(err, SAND_ERROR_CACHE, "'%s': two arrays are named '%s'; %s", label, entry->name, damaged);
		}
	}
	if (!is_type(entry->type))
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s', array '%s': type %" PRIu32 ", expected %d (float32) or %d (int32); %s", label,
		                 entry->name, entry->type, SAND_CACHE_F32, SAND_CACHE_I32, damaged);
	}
	if (entry->component_count < 1 || entry->component_count > SAND_CACHE_COMPONENT_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s', array '%s': %" PRIu32 " components, expected 1 to %d; %s", label,
		                 entry->name, entry->component_count, SAND_CACHE_COMPONENT_LIMIT, damaged);
	}
	if (!is_zero(entry->reserved, sizeof entry->reserved))
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s', array '%s': the reserved bytes are not zero; %s", label,
		                 entry->name, damaged);
	}
	SandCodec codec = codec_of(entry);
	bool is_known = has_pieces(entry->encoding) || (header->start.version > 2 && header->start.count > 0 &&
	                                                (entry->encoding == SAND_ENCODING_ONE || has_base(header)));
	if (!sand_codec_is_valid(&codec) || !is_known || !isfinite(entry->error) || entry->error < 0)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s', array '%s': encoding %" PRIu32 " with %" PRIu32 " bytes a number cannot be; %s", label,
		                 entry->name, entry->encoding, entry->word_bytes, damaged);
	}
	return SAND_OK;
}

/// Bytes in front of the pieces of an array, or all the bytes of one of version 1.
static uint64_t entry_bytes(const FileHeader *header, const FileEntry *entry)
{
	if (header->start.version == 1)
	{
		return array_bytes(header->start.count, entry->component_count);
	}
	return (has_pieces(entry->encoding) ? directory_bytes(header->start.count) : 0) +
	       exact_bytes(entry->encoding, entry->component_count, header->exact_count);
}

/// The table against the header and the file's size: every array lies where the layout puts it, inside the file.
static SandStatus check_table(const char *label, const Head *head, uint64_t table_bytes, SandError *err)
{
	const FileStart *start = &head->header.start;
	bool is_old = start->version == 1;
	uint64_t offset = start->header_bytes + table_bytes;
	uint64_t decoded_bytes = 0;
	for (uint32_t i = 0; i < start->array_count; ++i)
	{
		const FileEntry *entry = &head->entries[i];
		SandStatus status = check_entry(label, &head->header, head->entries, i, err);
		if (status != SAND_OK)
		{
			return status;
		}
		uint64_t expected = entry_bytes(&head->header, entry);
		bool is_fixed = is_old || !has_pieces(entry->encoding);
		if (entry->offset != offset || (is_fixed ? entry->byte_count != expected : entry->byte_count < expected))
		{
			return sand_fail(
			    err, SAND_ERROR_CACHE,
			    "'%s', array '%s': %" PRIu64 " bytes at %" PRIu64 ", expected %" PRIu64 "%s at %" PRIu64 "; %s", label,
			    entry->name, entry->byte_count, entry->offset, expected, is_fixed ? "" : " or more", offset, damaged);
		}
		uint64_t room = start->total_bytes - offset; // offset is within the file, or the check below has failed
		uint64_t taken = is_old ? aligned(expected) : entry->byte_count;
		if (taken > room)
		{
			return sand_fail(err, SAND_ERROR_CACHE,
			                 "'%s', array '%s' has %" PRIu64 " bytes at %" PRIu64 ", but the file has %" PRIu64 "; %s",
			                 label, entry->name, taken, offset, start->total_bytes, damaged);
		}
		offset += taken;
		decoded_bytes += aligned(array_bytes(start->count, entry->component_count)); // at most 32 of 2^38
	}
	if (offset + head->header.note_bytes != start->total_bytes) // both are at most SAND_CACHE_BYTE_LIMIT
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' has %" PRIu64 " bytes, its arrays end at byte %" PRIu64 " and %" PRIu32
		                 " bytes of notes follow; %s",
		                 label, start->total_bytes, offset, head->header.note_bytes, damaged);
	}
	if (decoded_bytes > SAND_CACHE_BYTE_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' would take %" PRIu64 " bytes of memory, more than %" PRIu64 "; %s", label, decoded_bytes,
		                 SAND_CACHE_BYTE_LIMIT, damaged);
	}
	uint64_t layout = layout_hash(head->entries, start->array_count);
	if (start->layout_hash != layout)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s': the layout hash is %016" PRIx64 ", its table gives %016" PRIx64 "; %s", label,
		                 start->layout_hash, layout, damaged);
	}
	return SAND_OK;
}

/// Entries of version 1 in the form of version 2.
static SandStatus convert_entries(const char *label, const FileEntry1 *old, uint32_t array_count,
                                  FileEntry *entries_out, SandError *err)
{
	for (uint32_t i = 0; i < array_count; ++i)
	{
		FileEntry *entry = &entries_out[i];
		memset(entry, 0, sizeof *entry);
		memcpy(entry, &old[i], offsetof(FileEntry1, reserved)); // the same up to there
		entry->word_bytes = 4;
		if (old[i].reserved != 0)
		{
			return sand_fail(err, SAND_ERROR_CACHE, "'%s', array '%.23s': the reserved bytes are not zero; %s", label,
			                 old[i].name, damaged);
		}
	}
	return SAND_OK;
}

static SandStatus read_table(const Source *source, Head *head, SandError *err)
{
	const FileStart *start = &head->header.start;
	union
	{
		FileEntry1 old[SAND_CACHE_ARRAY_LIMIT];
		FileEntry now[SAND_CACHE_ARRAY_LIMIT];
	} table;
	bool is_old = start->version == 1;
	size_t table_bytes = start->array_count * (is_old ? sizeof table.old[0] : sizeof table.now[0]);
	if (table_bytes > source->byte_count - start->header_bytes)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' has %" PRIu64 " bytes, its table of %" PRIu32 " arrays needs %zu; %s", source->label,
		                 source->byte_count, start->array_count, start->header_bytes + table_bytes, damaged);
	}
	SandStatus status = source_read(source, start->header_bytes, &table, table_bytes, err);
	if (status != SAND_OK)
	{
		return status;
	}
	uint64_t checksum = sand_hash64(&table, table_bytes, 0);
	if (start->table_checksum != checksum)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s': the table's checksum is %016" PRIx64 ", its bytes give %016" PRIx64 "; %s",
		                 source->label, start->table_checksum, checksum, damaged);
	}
	if (is_old)
	{
		status = convert_entries(source->label, table.old, start->array_count, head->entries, err);
	}
	else
	{
		memcpy(head->entries, table.now, table_bytes);
	}
	return status == SAND_OK ? check_table(source->label, head, table_bytes, err) : status;
}

static SandStatus read_head(const Source *source, Head *head, SandError *err)
{
	memset(head, 0, sizeof *head);
	FileHeader *header = &head->header;
	if (source->byte_count < sizeof(FileHeader1))
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %" PRIu64 " bytes, a frame has at least %zu; %s",
		                 source->label, source->byte_count, sizeof(FileHeader1), damaged);
	}
	if (source->byte_count > SAND_CACHE_BYTE_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %" PRIu64 " bytes, a frame has at most %" PRIu64 "; %s",
		                 source->label, source->byte_count, SAND_CACHE_BYTE_LIMIT, damaged);
	}
	size_t here = source->byte_count < sizeof *header ? (size_t)source->byte_count : sizeof *header;
	SandStatus status = source_read(source, 0, header, here, err);
	if (status == SAND_OK)
	{
		status = check_start(source->label, &header->start, err);
	}
	if (status != SAND_OK)
	{
		return status;
	}
	if (header->start.header_bytes > here)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %zu bytes, its header alone has %" PRIu32 "; %s",
		                 source->label, here, header->start.header_bytes, damaged);
	}
	if (header->start.version == 1)
	{
		FileHeader1 old;
		memcpy(&old, header, sizeof old);
		memset((char *)header + sizeof header->start, 0, sizeof *header - sizeof header->start);
		header->header_checksum = old.header_checksum;
		status = check_header(source->label, &old.start, old.header_checksum,
		                      sand_hash64(&old, offsetof(FileHeader1, header_checksum), 0),
		                      is_zero(old.reserved, sizeof old.reserved), source->byte_count, err);
	}
	else
	{
		status = check_header(source->label, &header->start, header->header_checksum,
		                      sand_hash64(header, offsetof(FileHeader, header_checksum), 0),
		                      is_zero(header->reserved, sizeof header->reserved), source->byte_count, err);
		if (status == SAND_OK)
		{
			status = check_header_2(source->label, header, err);
		}
	}
	return status == SAND_OK ? read_table(source, head, err) : status;
}

static void fill_frame(const Head *head, SandCacheFrame *frame_out)
{
	const FileHeader *header = &head->header;
	frame_out->frame = header->start.frame;
	frame_out->count = header->start.count;
	frame_out->seconds = header->start.seconds;
	frame_out->settings_hash = header->start.settings_hash;
	frame_out->motion_hash = header->motion_hash;
	frame_out->state_hash = header->start.state_hash;
	frame_out->version = header->start.version;
	frame_out->full_count = header->start.count;
	frame_out->byte_count = header->start.total_bytes;
	memcpy(frame_out->bounds, header->bounds, sizeof frame_out->bounds);
	frame_out->tolerance = header->tolerance;
	frame_out->exact_count = header->start.version == 1 ? header->start.count : header->exact_count;
	memcpy(frame_out->engine, header->engine, sizeof frame_out->engine);
	frame_out->identity = header->header_checksum;
	frame_out->has_base = has_base(header);
	frame_out->base_frame = header->base_frame;
	frame_out->base_identity = header->base_identity;
}

static void fill_array(const FileEntry *entry, const void *data, SandCacheArray *array_out)
{
	memcpy(array_out->name, entry->name, sizeof array_out->name);
	array_out->type = entry->type;
	array_out->component_count = entry->component_count;
	array_out->data = data;
	array_out->encoding = entry->encoding;
	array_out->error = entry->error;
	array_out->byte_count = entry->byte_count;
}

/// The directory of one array, read and checked, and where each chunk's pieces begin.
typedef struct Directory
{
	const FileEntry *entry;
	SandCodec codec;
	unsigned char *block; // the directory, then the exact rows
	const SandCodecPiece *pieces;
	uint64_t *chunk_offsets;
} Directory;

static void directory_free(Directory *directory)
{
	sand_free(directory->block);
	sand_free(directory->chunk_offsets);
	*directory = (Directory){0};
}

static SandStatus check_pieces(const Source *source, const FileHeader *header, Directory *directory, SandError *err)
{
	const FileEntry *entry = directory->entry;
	uint32_t level_count = header->level_count, chunk_count = sand_codec_chunk_count(header->start.count);
	uint64_t offset = entry->offset + entry_bytes(header, entry);
	uint64_t end = entry->offset + entry->byte_count;
	for (uint32_t chunk = 0; chunk < chunk_count; ++chunk)
	{
		directory->chunk_offsets[chunk] = offset;
		for (uint32_t level = 0; level < level_count; ++level)
		{
			const SandCodecPiece *piece = &directory->pieces[(size_t)chunk * level_count + level];
			uint32_t rows = sand_codec_piece_rows(header->start.count, chunk, level);
			if (piece->byte_count > end - offset || piece->stored_count > rows ||
			    (piece->stored_count < rows && !has_base(header)))
			{
				return sand_fail(err, SAND_ERROR_CACHE,
				                 "'%s', array '%s', piece %" PRIu32 ".%" PRIu32 " has %" PRIu32 " bytes and %" PRIu32
				                 " of %" PRIu32 " rows, which cannot be; %s",
				                 source->label, entry->name, chunk, level, piece->byte_count, piece->stored_count, rows,
				                 damaged);
			}
			offset += piece->byte_count;
		}
	}
	if (offset != end)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s', array '%s': its pieces end at byte %" PRIu64 ", expected %" PRIu64 "; %s",
		                 source->label, entry->name, offset, end, damaged);
	}
	return SAND_OK;
}

static SandStatus read_directory(const Source *source, const FileHeader *header, const FileEntry *entry,
                                 Directory *directory, SandError *err)
{
	*directory = (Directory){.entry = entry, .codec = codec_of(entry)};
	size_t bytes = (size_t)entry_bytes(header, entry); // no more than the file has
	size_t chunk_count = sand_codec_chunk_count(header->start.count);
	directory->block = sand_alloc_raw(bytes, 1);
	directory->chunk_offsets = sand_alloc(chunk_count, sizeof(uint64_t));
	if (directory->block == NULL || directory->chunk_offsets == NULL)
	{
		return sand_fail_memory(err, bytes, "the directory of a frame");
	}
	directory->pieces = (const SandCodecPiece *)(const void *)directory->block;
	SandStatus status = source_read(source, entry->offset, directory->block, bytes, err);
	if (status != SAND_OK)
	{
		return status;
	}
	uint64_t checksum = sand_hash64(directory->block, bytes, 0);
	if (entry->checksum != checksum)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s', array '%s': the checksum is %016" PRIx64 ", its bytes give %016" PRIx64 "; %s",
		                 source->label, entry->name, entry->checksum, checksum, damaged);
	}
	return has_pieces(entry->encoding) ? check_pieces(source, header, directory, err) : SAND_OK;
}

/// One frame file that is being read.
typedef struct Reading
{
	Source source;
	Head head;
	Directory directories[SAND_CACHE_ARRAY_LIMIT]; // of the wanted arrays
} Reading;

typedef struct Decoding
{
	const Reading *own, *base; // base may be NULL
	int array_count;
	void *const *places;
	uint32_t every;
	atomic_int next;   // chunk that nobody has taken yet
	Desk *desks;       // per task
	SandError *errors; // per task
} Decoding;

/// The rows of one chunk of an array whose rows are all the same.
static void fill_chunk(const Reading *reading, const Directory *directory, uint32_t chunk, uint32_t every, void *place)
{
	uint32_t count = reading->head.header.start.count;
	uint32_t first = chunk * SAND_CODEC_CHUNK;
	uint32_t last = count - first < SAND_CODEC_CHUNK ? count - 1 : first + SAND_CODEC_CHUNK - 1;
	size_t begin = first / every + (first % every != 0), end = (size_t)(last / every) + 1;
	size_t width = directory->entry->component_count;
	const uint32_t *row = (const uint32_t *)(const void *)directory->block;
	uint32_t *rows = (uint32_t *)place + begin * width;
	if (width == 1)
	{
		uint32_t value = row[0];
		for (size_t i = begin; i < end; ++i)
		{
			*rows++ = value;
		}
		return;
	}
	for (size_t i = begin; i < end; ++i, rows += width)
	{
		memcpy(rows, row, width * sizeof *row);
	}
}

/// Decodes the wanted levels of one chunk of one array. buffer has room for them.
static SandStatus decode_chunk(const Reading *reading, const Directory *directory, uint32_t chunk, uint32_t every,
                               SandCodecScratch *scratch, unsigned char *buffer, void *place, SandError *err)
{
	const FileHeader *header = &reading->head.header;
	if (directory->codec.encoding == SAND_ENCODING_ONE)
	{
		fill_chunk(reading, directory, chunk, every, place);
		return SAND_OK;
	}
	if (directory->codec.encoding == SAND_ENCODING_SAME)
	{
		return SAND_OK; // the base's rows are in place
	}
	const SandCodecPiece *pieces = directory->pieces + (size_t)chunk * header->level_count;
	uint32_t level_count = sand_codec_levels_for(header->start.count, every);
	size_t bytes = 0;
	for (uint32_t level = 0; level < level_count; ++level)
	{
		bytes += pieces[level].byte_count;
	}
	const unsigned char *from = buffer;
	if (reading->source.bytes != NULL)
	{
		from = reading->source.bytes + directory->chunk_offsets[chunk];
	}
	else
	{
		SandStatus status = source_read(&reading->source, directory->chunk_offsets[chunk], buffer, bytes, err);
		if (status != SAND_OK)
		{
			return status;
		}
	}
	uint32_t level = 0;
	const char *complaint =
	    sand_codec_decode(scratch, &directory->codec, pieces, from, header->start.count, chunk, every, place, &level);
	if (complaint != NULL)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s', array '%s', piece %" PRIu32 ".%" PRIu32 ": %s; %s",
		                 reading->source.label, directory->entry->name, chunk, level, complaint, damaged);
	}
	return SAND_OK;
}

/// Are there rows in this chunk that the base holds?
static bool needs_base(const Reading *own, const Directory *directory, uint32_t chunk)
{
	const FileHeader *header = &own->head.header;
	if (!has_pieces(directory->codec.encoding))
	{
		return directory->codec.encoding == SAND_ENCODING_SAME;
	}
	for (uint32_t level = 0; level < header->level_count; ++level)
	{
		if (directory->pieces[(size_t)chunk * header->level_count + level].stored_count <
		    sand_codec_piece_rows(header->start.count, chunk, level))
		{
			return true;
		}
	}
	return false;
}

/// Most bytes of one chunk of any wanted array.
static size_t largest_chunk(const Reading *reading, int array_count)
{
	size_t largest = 0;
	uint32_t level_count = reading->head.header.level_count;
	for (int i = 0; i < array_count && reading->source.bytes == NULL; ++i)
	{
		if (!has_pieces(reading->directories[i].codec.encoding))
		{
			continue;
		}
		for (uint32_t chunk = 0; chunk < sand_codec_chunk_count(reading->head.header.start.count); ++chunk)
		{
			size_t bytes = 0;
			for (uint32_t level = 0; level < level_count; ++level)
			{
				bytes += reading->directories[i].pieces[(size_t)chunk * level_count + level].byte_count;
			}
			largest = bytes > largest ? bytes : largest;
		}
	}
	return largest;
}

/// Room for so many bytes of a file, and the codec's working memory. False without memory.
static bool set_desk(Desk *desk, size_t byte_count)
{
	if (desk->scratch == NULL)
	{
		desk->scratch = sand_codec_scratch_create(false);
	}
	if (desk->bytes == NULL || desk->byte_count < byte_count)
	{
		sand_free(desk->bytes);
		desk->bytes = sand_alloc_raw(byte_count, 1);
		desk->byte_count = byte_count;
	}
	return desk->scratch != NULL && desk->bytes != NULL;
}

static void decode_task(void *context, int task)
{
	Decoding *decoding = context;
	SandError *err = &decoding->errors[task];
	Desk *desk = &decoding->desks[task];
	const Reading *own = decoding->own, *base = decoding->base;
	size_t own_bytes = largest_chunk(own, decoding->array_count);
	size_t base_bytes = base != NULL ? largest_chunk(base, decoding->array_count) : 0;
	size_t byte_count = own_bytes > base_bytes ? own_bytes : base_bytes;
	SandStatus status = SAND_OK;
	if (!set_desk(desk, byte_count))
	{
		status = sand_fail_memory(err, byte_count, "reading a frame");
	}
	int chunk_count = (int)sand_codec_chunk_count(own->head.header.start.count);
	for (int chunk; status == SAND_OK && (chunk = atomic_fetch_add(&decoding->next, 1)) < chunk_count;)
	{
		for (int i = 0; i < decoding->array_count && status == SAND_OK; ++i)
		{
			if (base != NULL && needs_base(own, &own->directories[i], (uint32_t)chunk))
			{
				status = decode_chunk(base, &base->directories[i], (uint32_t)chunk, decoding->every, desk->scratch,
				                      desk->bytes, decoding->places[i], err);
			}
			if (status == SAND_OK)
			{
				status = decode_chunk(own, &own->directories[i], (uint32_t)chunk, decoding->every, desk->scratch,
				                      desk->bytes, decoding->places[i], err);
			}
		}
	}
}

/// The first elements as they were given, over what was decoded of them.
static void place_exact_rows(const FileHeader *header, const Directory *directory, uint32_t every, void *place)
{
	const FileEntry *entry = directory->entry;
	size_t row_bytes = (size_t)entry->component_count * 4;
	const unsigned char *rows = directory->block + directory_bytes(header->start.count);
	bool has_rows = entry->encoding != SAND_ENCODING_EXACT && has_pieces(entry->encoding);
	uint32_t count = has_rows ? header->exact_count : 0;
	for (size_t row = 0; row < count; row += every)
	{
		memcpy((unsigned char *)place + row / every * row_bytes, rows + row * row_bytes, row_bytes);
	}
}

/// Threads for a frame of so many rows; NULL when one is enough.
static SandStatus make_pool(uint32_t row_count, int thread_count, SandPool **pool_out, SandError *err)
{
	*pool_out = NULL;
	int chunk_count = (int)sand_codec_chunk_count(row_count);
	if (chunk_count < 2 || thread_count == 1)
	{
		return SAND_OK;
	}
	return sand_pool_create(thread_count < chunk_count ? thread_count : chunk_count, pool_out, err);
}

/// Runs one task per thread, which take turns at what is to be done, and reports the failure of the first that failed.
static SandStatus run_tasks(SandPool *pool, SandTask *task, void *context, SandError **errors, SandError *err)
{
	int task_count = pool != NULL ? sand_pool_thread_count(pool) : 1;
	SandStatus status = SAND_OK;
	*errors = sand_alloc((size_t)task_count, sizeof(SandError));
	if (*errors == NULL)
	{
		return sand_fail_memory(err, (size_t)task_count * sizeof(SandError), "the tasks of a frame");
	}
	sand_pool_run(pool, task, context, task_count);
	for (int i = 0; i < task_count && status == SAND_OK; ++i)
	{
		status = (*errors)[i].status;
		if (status != SAND_OK && err != NULL)
		{
			*err = (*errors)[i];
		}
	}
	sand_free(*errors);
	*errors = NULL;
	return status;
}

/// Threads for so many rows, unless one is enough, and a desk for each.
static SandStatus set_up(SandCacheReader *reader, uint32_t row_count, SandError *err)
{
	SandStatus status = SAND_OK;
	if (reader->pool == NULL)
	{
		status = make_pool(row_count, reader->thread_count, &reader->pool, err);
	}
	int needed = reader->pool != NULL ? sand_pool_thread_count(reader->pool) : 1;
	if (status == SAND_OK && reader->desk_count < needed)
	{
		Desk *desks = sand_alloc((size_t)needed, sizeof(Desk));
		if (desks == NULL)
		{
			return sand_fail_memory(err, (size_t)needed * sizeof(Desk), "reading a frame");
		}
		for (int i = 0; i < reader->desk_count; ++i)
		{
			desks[i] = reader->desks[i];
		}
		sand_free(reader->desks);
		reader->desks = desks;
		reader->desk_count = needed;
	}
	return status;
}

static void reader_clear(SandCacheReader *reader)
{
	sand_pool_destroy(reader->pool);
	for (int i = 0; i < reader->desk_count; ++i)
	{
		sand_codec_scratch_destroy(reader->desks[i].scratch);
		sand_free(reader->desks[i].bytes);
	}
	sand_free(reader->desks);
	sand_free(reader->spare);
	pthread_mutex_destroy(&reader->reading);
	pthread_mutex_destroy(&reader->giving);
}

/// A reader for one frame, to be cleared.
static void reader_init(SandCacheReader *reader, int thread_count)
{
	*reader = (SandCacheReader){.thread_count = thread_count};
	pthread_mutex_init(&reader->reading, NULL);
	pthread_mutex_init(&reader->giving, NULL);
}

/// The arrays of version 2, into places.
static SandStatus decode_arrays(SandCacheReader *reader, Reading *own, Reading *base, const FileEntry *const *entries,
                                int array_count, uint32_t every, void *const *places, SandError *err)
{
	const FileHeader *header = &own->head.header;
	SandStatus status = SAND_OK;
	for (int i = 0; i < array_count && status == SAND_OK; ++i)
	{
		status = read_directory(&own->source, header, entries[i], &own->directories[i], err);
		if (status == SAND_OK && base != NULL)
		{
			// The layouts are equal, so the places in the tables are.
			const FileEntry *entry = &base->head.entries[entries[i] - own->head.entries];
			status = read_directory(&base->source, &base->head.header, entry, &base->directories[i], err);
		}
	}
	if (status == SAND_OK)
	{
		status = set_up(reader, header->start.count, err);
		Decoding decoding = {own, base, array_count, places, every, 0, reader->desks, NULL};
		status = status == SAND_OK ? run_tasks(reader->pool, decode_task, &decoding, &decoding.errors, err) : status;
	}
	for (int i = 0; i < array_count; ++i)
	{
		if (status == SAND_OK)
		{
			// What is all as in the base is so with its exact rows.
			bool is_same = entries[i]->encoding == SAND_ENCODING_SAME;
			place_exact_rows(is_same ? &base->head.header : header,
			                 is_same ? &base->directories[i] : &own->directories[i], every, places[i]);
		}
		directory_free(&own->directories[i]);
		if (base != NULL)
		{
			directory_free(&base->directories[i]);
		}
	}
	return status;
}

/// One array of version 1, which is one block with a checksum of its own and zeros up to a multiple of 64 bytes.
static SandStatus read_old_array(const Reading *own, const FileEntry *entry, uint32_t every, void *place,
                                 SandError *err)
{
	size_t bytes = (size_t)entry->byte_count, row_bytes = (size_t)entry->component_count * 4;
	void *block = every == 1 ? place : sand_alloc_raw(bytes, 1);
	if (block == NULL)
	{
		return sand_fail_memory(err, bytes, "an array of a frame");
	}
	unsigned char padding[BLOCK_ALIGNMENT] = {0};
	size_t padding_bytes = (size_t)(aligned(bytes) - bytes);
	SandStatus status = source_read(&own->source, entry->offset, block, bytes, err);
	if (status == SAND_OK)
	{
		status = source_read(&own->source, entry->offset + bytes, padding, padding_bytes, err);
	}
	uint64_t checksum = status == SAND_OK ? sand_hash64(block, bytes, 0) : 0;
	if (status == SAND_OK && entry->checksum != checksum)
	{
		status = sand_fail(err, SAND_ERROR_CACHE,
		                   "'%s', array '%s': the checksum is %016" PRIx64 ", its bytes give %016" PRIx64 "; %s",
		                   own->source.label, entry->name, entry->checksum, checksum, damaged);
	}
	if (status == SAND_OK && !is_zero(padding, padding_bytes))
	{
		status = sand_fail(err, SAND_ERROR_CACHE, "'%s', array '%s': the bytes behind it are not zero; %s",
		                   own->source.label, entry->name, damaged);
	}
	for (size_t row = 0; row < own->head.header.start.count && every > 1 && status == SAND_OK; row += every)
	{
		memcpy((char *)place + row / every * row_bytes, (const char *)block + row * row_bytes, row_bytes);
	}
	if (block != place)
	{
		sand_free(block);
	}
	return status;
}

/// The wanted entries in the order of the file.
static SandStatus choose_entries(const Reading *own, const SandCacheWanted *wanted, const FileEntry **entries_out,
                                 int *array_count_out, SandError *err)
{
	const Head *head = &own->head;
	int array_count = 0;
	for (uint32_t i = 0; i < head->header.start.array_count; ++i)
	{
		bool is_wanted = wanted->name_count == 0 && !wanted->has_no_arrays;
		for (int k = 0; k < wanted->name_count && !is_wanted; ++k)
		{
			is_wanted = strcmp(wanted->names[k], head->entries[i].name) == 0;
		}
		if (is_wanted)
		{
			entries_out[array_count++] = &head->entries[i];
		}
	}
	*array_count_out = array_count;
	for (int k = 0; k < wanted->name_count; ++k)
	{
		bool is_there = false;
		for (int i = 0; i < array_count; ++i)
		{
			is_there = is_there || strcmp(wanted->names[k], entries_out[i]->name) == 0;
		}
		if (!is_there)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "'%s' has no array '%.40s'", own->source.label,
			                 wanted->names[k]);
		}
	}
	return SAND_OK;
}

/// The file whose notes are the frame's.
static const Reading *notes_of(const Reading *own, const Reading *base)
{
	return (own->head.header.flags & HAS_NOTES_OF_BASE) != 0 ? base : own;
}

static SandStatus read_notes(const Reading *from, char *notes, SandError *err)
{
	const FileHeader *header = &from->head.header;
	SandStatus status =
	    source_read(&from->source, header->start.total_bytes - header->note_bytes, notes, header->note_bytes, err);
	uint64_t checksum = status == SAND_OK ? sand_hash64(notes, header->note_bytes, 0) : 0;
	if (status == SAND_OK && header->note_bytes > 0 && checksum != header->notes_checksum)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s': the notes' checksum is %016" PRIx64 ", their bytes give %016" PRIx64 "; %s",
		                 from->source.label, header->notes_checksum, checksum, damaged);
	}
	return status;
}

/// Everything behind the head, from one file or two.
static SandStatus read_arrays(SandCacheReader *reader, Reading *own, Reading *base, const SandCacheWanted *wanted,
                              SandCacheFrame *frame_out, SandError *err)
{
	static const SandCacheWanted everything;
	wanted = wanted != NULL ? wanted : &everything;
	uint32_t every = wanted->every == 0 ? 1 : wanted->every;
	const FileEntry *entries[SAND_CACHE_ARRAY_LIMIT];
	void *places[SAND_CACHE_ARRAY_LIMIT + 1];
	int array_count = 0;
	SandStatus status = choose_entries(own, wanted, entries, &array_count, err);
	if (status != SAND_OK)
	{
		return status;
	}
	uint32_t full_count = own->head.header.start.count;
	uint32_t count = full_count / every + (full_count % every != 0);
	void *block = NULL;
	const Reading *noted = notes_of(own, base);
	uint32_t note_bytes = wanted->has_notes ? noted->head.header.note_bytes : 0;
	status = alloc_arrays(reader, entries, array_count, count, note_bytes, &block, places, err);
	if (status != SAND_OK)
	{
		return status;
	}
	if (note_bytes > 0)
	{
		status = read_notes(noted, places[array_count], err);
	}
	if (status == SAND_OK && own->head.header.start.version > 1 && array_count > 0)
	{
		status = decode_arrays(reader, own, base, entries, array_count, every, places, err);
	}
	for (int i = 0; i < array_count && status == SAND_OK && own->head.header.start.version == 1; ++i)
	{
		status = read_old_array(own, entries[i], every, places[i], err);
	}
	if (status != SAND_OK)
	{
		sand_free(block);
		return status;
	}
	fill_frame(&own->head, frame_out);
	frame_out->count = count;
	frame_out->array_count = array_count;
	for (int i = 0; i < array_count; ++i)
	{
		fill_array(entries[i], places[i], &frame_out->arrays[i]);
	}
	frame_out->block = block;
	frame_out->notes = note_bytes > 0 ? places[array_count] : NULL;
	frame_out->note_bytes = note_bytes;
	return SAND_OK;
}

/// Is the file at hand the one that the frame was written against?
static SandStatus check_base(const Reading *own, const Reading *base, SandError *err)
{
	const FileHeader *header = &own->head.header, *other = &base->head.header;
	if (other->header_checksum != header->base_identity || other->start.version != header->start.version ||
	    has_base(other) || other->start.frame != header->base_frame || other->start.count != header->start.count ||
	    other->start.layout_hash != header->start.layout_hash)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "Frame %" PRId32 " keeps resting grains in frame %" PRId32
		                 ", which was baked anew since ('%s'); bake frame %" PRId32 " again",
		                 header->start.frame, header->base_frame, base->source.label, header->start.frame);
	}
	return SAND_OK;
}

/// A failure of the base is one of the frame that needs it.
static SandStatus fail_base(const Reading *own, SandStatus status, SandError *err)
{
	SandError cause = *err;
	status = sand_fail(err, status, "Frame %" PRId32 " needs frame %" PRId32 ": %.400s", own->head.header.start.frame,
	                   own->head.header.base_frame, cause.message);
	err->os_error = cause.os_error;
	return status;
}

SandStatus sand_cache_parse(const char *label, const void *bytes, size_t byte_count, const void *base_bytes,
                            size_t base_byte_count, const SandCacheWanted *wanted, SandCacheFrame *frame_out,
                            SandError *err)
{
	SandError own_error = {0};
	err = err != NULL ? err : &own_error;
	memset(frame_out, 0, sizeof *frame_out);
	Reading *readings = sand_alloc(2, sizeof(Reading));
	if (readings == NULL)
	{
		return sand_fail_memory(err, 2 * sizeof(Reading), "reading a frame");
	}
	Reading *own = &readings[0], *base = NULL;
	own->source = (Source){.label = shown(label), .bytes = bytes, .byte_count = byte_count};
	SandStatus status = read_head(&own->source, &own->head, err);
	if (status == SAND_OK && has_base(&own->head.header))
	{
		base = &readings[1];
		base->source = (Source){.label = shown(label), .bytes = base_bytes, .byte_count = base_byte_count};
		status = base_bytes == NULL
		             ? sand_fail(err, SAND_ERROR_CACHE, "'%s' needs frame %" PRId32 ", which is not there; bake it",
		                         own->source.label, own->head.header.base_frame)
		             : read_head(&base->source, &base->head, err);
		status = status == SAND_OK ? check_base(own, base, err) : status;
	}
	if (status == SAND_OK)
	{
		SandCacheReader reader;
		reader_init(&reader, wanted != NULL ? wanted->thread_count : 0);
		status = read_arrays(&reader, own, base, wanted, frame_out, err);
		reader_clear(&reader);
	}
	sand_free(readings);
	return status;
}

/// Opens a frame's file and reads its head. path_out is the caller's to free, also on failure; so is the source.
static SandStatus open_frame(const char *folder, int32_t frame, Reading *reading, char **path_out, SandError *err)
{
	reading->source.file.handle = -1;
	char name[FRAME_NAME_BYTES];
	sand_cache_frame_name(frame, name);
	SandStatus status = join(folder, name, path_out, err);
	if (status != SAND_OK)
	{
		return status;
	}
	const char *path = *path_out;
	status = sand_io_open(path, &reading->source.file, err);
	if (status == SAND_ERROR_IO && err->os_error == ENOENT)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "Frame %" PRId32 " is not in the cache: there is no '%s'; bake it",
		                 frame, shown(path));
	}
	if (status != SAND_OK)
	{
		return status;
	}
	reading->source.label = shown(path);
	reading->source.path = path;
	reading->source.byte_count = reading->source.file.byte_count;
	status = read_head(&reading->source, &reading->head, err);
	int32_t found = reading->head.header.start.frame;
	if (status == SAND_OK && found != frame)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' holds frame %" PRId32 ", expected frame %" PRId32
		                 ": the file was renamed; bake it again",
		                 shown(path), found, frame);
	}
	return status;
}

/// The arrays of an open frame, with its base where it has one.
static SandStatus read_opened(SandCacheReader *reader, const char *folder, Reading *own, Reading *base,
                              const SandCacheWanted *wanted, SandCacheFrame *frame_out, SandError *err)
{
	if (!has_base(&own->head.header))
	{
		return read_arrays(reader, own, NULL, wanted, frame_out, err);
	}
	char *path = NULL;
	SandStatus status = open_frame(folder, own->head.header.base_frame, base, &path, err);
	if (status != SAND_OK)
	{
		status = fail_base(own, status, err);
	}
	else
	{
		status = check_base(own, base, err);
	}
	if (status == SAND_OK)
	{
		status = read_arrays(reader, own, base, wanted, frame_out, err);
	}
	sand_io_close(&base->source.file);
	sand_free(path);
	return status;
}

SandStatus sand_cache_reader_create(int thread_count, SandCacheReader **reader_out, SandError *err)
{
	*reader_out = NULL;
	if (thread_count < 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The thread count is %d, expected 0 (all cores) or more",
		                 thread_count);
	}
	SandCacheReader *reader = sand_alloc(1, sizeof *reader);
	if (reader == NULL)
	{
		return sand_fail_memory(err, sizeof *reader, "a reader of frames");
	}
	reader_init(reader, thread_count);
	*reader_out = reader;
	return SAND_OK;
}

void sand_cache_reader_destroy(SandCacheReader *reader)
{
	if (reader != NULL)
	{
		reader_clear(reader);
		sand_free(reader);
	}
}

void sand_cache_reader_give_back(SandCacheReader *reader, void *block)
{
	pthread_mutex_lock(&reader->giving);
	void *former = reader->spare;
	reader->spare = block;
	pthread_mutex_unlock(&reader->giving);
	sand_free(former);
}

/// With a reader that nobody else uses meanwhile.
static SandStatus read_with(SandCacheReader *reader, const char *folder, int32_t frame, const SandCacheWanted *wanted,
                            SandCacheFrame *frame_out, SandError *err)
{
	SandError own_error = {0};
	err = err != NULL ? err : &own_error; // open_frame looks at the errno
	memset(frame_out, 0, sizeof *frame_out);
	Reading *readings = sand_alloc(2, sizeof(Reading));
	if (readings == NULL)
	{
		return sand_fail_memory(err, 2 * sizeof(Reading), "reading a frame");
	}
	char *path = NULL;
	SandStatus status = open_frame(folder, frame, &readings[0], &path, err);
	if (status == SAND_OK)
	{
		status = read_opened(reader, folder, &readings[0], &readings[1], wanted, frame_out, err);
	}
	sand_io_close(&readings[0].source.file);
	sand_free(path);
	sand_free(readings);
	return status;
}

SandStatus sand_cache_reader_read(SandCacheReader *reader, const char *folder, int32_t frame,
                                  const SandCacheWanted *wanted, SandCacheFrame *frame_out, SandError *err)
{
	pthread_mutex_lock(&reader->reading);
	SandStatus status = read_with(reader, folder, frame, wanted, frame_out, err);
	pthread_mutex_unlock(&reader->reading);
	return status;
}

SandStatus sand_cache_read(const char *folder, int32_t frame, const SandCacheWanted *wanted, SandCacheFrame *frame_out,
                           SandError *err)
{
	SandCacheReader reader;
	reader_init(&reader, wanted != NULL ? wanted->thread_count : 0);
	SandStatus status = read_with(&reader, folder, frame, wanted, frame_out, err);
	reader_clear(&reader);
	return status;
}

SandStatus sand_cache_peek(const char *folder, int32_t frame, SandCacheFrame *frame_out, SandError *err)
{
	SandError own_error = {0};
	err = err != NULL ? err : &own_error;
	memset(frame_out, 0, sizeof *frame_out);
	Reading *reading = sand_alloc(1, sizeof(Reading));
	if (reading == NULL)
	{
		return sand_fail_memory(err, sizeof(Reading), "reading a frame");
	}
	char *path = NULL;
	SandStatus status = open_frame(folder, frame, reading, &path, err);
	if (status == SAND_OK)
	{
		fill_frame(&reading->head, frame_out);
		frame_out->array_count = (int)reading->head.header.start.array_count;
		for (int i = 0; i < frame_out->array_count; ++i)
		{
			fill_array(&reading->head.entries[i], NULL, &frame_out->arrays[i]);
		}
	}
	sand_io_close(&reading->source.file);
	sand_free(path);
	sand_free(reading);
	return status;
}

void sand_cache_frame_free(SandCacheFrame *frame)
{
	if (frame != NULL)
	{
		sand_free(frame->block);
		memset(frame, 0, sizeof *frame);
	}
}

// Writing

static SandStatus check_frame(const SandCacheFrame *frame, const SandCacheOptions *options, SandError *err)
{
	if (frame->array_count < 1 || frame->array_count > SAND_CACHE_ARRAY_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Frame %" PRId32 " has %d arrays, expected 1 to %d", frame->frame,
		                 frame->array_count, SAND_CACHE_ARRAY_LIMIT);
	}
	if (!isfinite(frame->seconds))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Frame %" PRId32 " has the time %g s, expected a finite number",
		                 frame->frame, frame->seconds);
	}
	if (!isfinite(options->velocity_tolerance) || options->velocity_tolerance < 0 ||
	    !isfinite(options->spin_tolerance) || options->spin_tolerance < 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Frame %" PRId32 ": the tolerances are %g m/s and %g rad/s, expected 0 or more", frame->frame,
		                 options->velocity_tolerance, options->spin_tolerance);
	}
	if (!isfinite(options->tolerance) || options->tolerance < 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Frame %" PRId32 ": the tolerance is %g m, expected 0 (exact) or more", frame->frame,
		                 options->tolerance);
	}
	if (options->engine != NULL && text_length(options->engine, SAND_CACHE_ENGINE_BYTES) == SIZE_MAX)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Frame %" PRId32 ": the engine's name is not 0 to %d printable ASCII characters", frame->frame,
		                 SAND_CACHE_ENGINE_BYTES - 1);
	}
	if (frame->note_bytes > SAND_CACHE_NOTES_LIMIT || (frame->note_bytes > 0 && frame->notes == NULL))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Frame %" PRId32 " has %" PRIu32 " bytes of notes, expected at most %u; use shorter names",
		                 frame->frame, frame->note_bytes, SAND_CACHE_NOTES_LIMIT);
	}
	for (int i = 0; i < frame->array_count; ++i)
	{
		const SandCacheArray *array = &frame->arrays[i];
		if (name_length(array->name) == 0)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Frame %" PRId32 ", array %d: the name is not 1 to %d printable ASCII characters",
			                 frame->frame, i, SAND_CACHE_NAME_BYTES - 1);
		}
		for (int j = 0; j < i; ++j)
		{
			if (strcmp(array->name, frame->arrays[j].name) == 0)
			{
				return sand_fail(err, SAND_ERROR_ARGUMENT, "Frame %" PRId32 ": two arrays are named '%s'", frame->frame,
				                 array->name);
			}
		}
		if (!is_type(array->type))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT, "Frame %" PRId32 ", array '%s': unknown type %" PRIu32,
			                 frame->frame, array->name, array->type);
		}
		if (array->component_count < 1 || array->component_count > SAND_CACHE_COMPONENT_LIMIT)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Frame %" PRId32 ", array '%s': %" PRIu32 " components, expected 1 to %d", frame->frame,
			                 array->name, array->component_count, SAND_CACHE_COMPONENT_LIMIT);
		}
		if (array->data == NULL && frame->count > 0)
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "Frame %" PRId32 ", array '%s': no data for %" PRIu32 " elements", frame->frame,
			                 array->name, frame->count);
		}
	}
	uint64_t total = 0;
	for (int i = 0; i < frame->array_count; ++i)
	{
		total += aligned(array_bytes(frame->count, frame->arrays[i].component_count));
	}
	if (total > SAND_CACHE_BYTE_LIMIT || total > SIZE_MAX)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Frame %" PRId32 " would take %" PRIu64 " bytes, more than %" PRIu64 "; use fewer grains",
		                 frame->frame, total, SAND_CACHE_BYTE_LIMIT);
	}
	return SAND_OK;
}

/// One array on its way into a file.
typedef struct Encoded
{
	SandCodec codec;
	uint32_t plain;           // ONE or SAME, 0 = it has pieces
	double tolerance;         // in the array's unit
	unsigned char *directory; // pieces, then exact rows
	unsigned char *bytes;     // each chunk at chunk_bound * chunk
	size_t chunk_bound;
	size_t *chunk_bytes;     // per chunk
	double *chunk_errors;    // per chunk
	const void *rows, *base; // the caller's; base may be NULL
	void *decoded;           // may be NULL
	bool is_due;             // to be encoded by the next run
} Encoded;

static void encoded_free(Encoded *encoded)
{
	sand_free(encoded->directory);
	sand_free(encoded->bytes);
	sand_free(encoded->chunk_bytes);
	sand_free(encoded->chunk_errors);
	encoded->directory = encoded->bytes = NULL;
	encoded->chunk_bytes = NULL;
	encoded->chunk_errors = NULL;
}

/// A whole file in memory, in parts.
typedef struct Image
{
	FileHeader header;
	FileEntry entries[SAND_CACHE_ARRAY_LIMIT];
	Encoded encoded[SAND_CACHE_ARRAY_LIMIT];
	SandIoPart *parts;
	int part_count;
	SandCacheFrame kept; // block is NULL unless wanted
} Image;

static void image_free(Image *image)
{
	for (int i = 0; i < SAND_CACHE_ARRAY_LIMIT; ++i)
	{
		encoded_free(&image->encoded[i]);
	}
	sand_free(image->parts);
	sand_cache_frame_free(&image->kept);
	sand_free(image);
}

/// Are all rows the same bits?
static bool is_one_row(const SandCacheFrame *frame, const SandCacheArray *array)
{
	size_t row_bytes = (size_t)array->component_count * 4, bytes = row_bytes * frame->count;
	const char *rows = array->data;
	// The first rows tell of most arrays that they are not.
	size_t few = bytes < 64 * row_bytes ? bytes : 64 * row_bytes;
	return frame->count > 0 && memcmp(rows, rows + row_bytes, few - row_bytes) == 0 &&
	       memcmp(rows, rows + row_bytes, bytes - row_bytes) == 0;
}

typedef struct Encoding
{
	const SandCacheFrame *frame;
	const SandCacheOptions *options;
	Image *image;
	atomic_int next; // array, or chunk of one, that nobody has taken yet
	SandError *errors;
} Encoding;

static double tolerance_of(const char *name, const SandCacheOptions *options)
{
	return strcmp(name, "age") == 0        ? SAND_CACHE_AGE_TOLERANCE
	       : strcmp(name, "velocity") == 0 ? options->velocity_tolerance
	       : strcmp(name, "spin") == 0     ? options->spin_tolerance
	                                       : options->tolerance;
}

/// Chooses how an array is written: one row over and over, all as in the base when it is exact, or by which codec.
static void plan_array(const SandCacheFrame *frame, int index, const SandCacheOptions *options, Encoded *encoded)
{
	const SandCacheArray *array = &frame->arrays[index];
	size_t bytes = (size_t)array_bytes(frame->count, array->component_count);
	bool is_exact = options->tolerance <= 0 || array->encoding == SAND_ENCODING_EXACT;
	encoded->tolerance = tolerance_of(array->name, options);
	encoded->codec = (SandCodec){
	    .is_int = array->type == SAND_CACHE_I32,
	    .component_count = array->component_count,
	    .encoding = !is_exact && has_pieces(array->encoding) ? array->encoding : SAND_ENCODING_EXACT,
	};
	if (frame->count > 0 && encoded->base != NULL && is_exact && memcmp(array->data, encoded->base, bytes) == 0)
	{
		encoded->plain = SAND_ENCODING_SAME;
	}
	else if (is_one_row(frame, array))
	{
		encoded->plain = SAND_ENCODING_ONE;
	}
	else
	{
		sand_codec_plan(&encoded->codec, array->data, frame->count, encoded->tolerance);
		encoded->is_due = true;
	}
}

static void find_bounds(const SandCacheFrame *frame, float bounds_out[6]);

static void plan_task(void *context, int task)
{
	(void)task;
	Encoding *encoding = context;
	int array_count = encoding->frame->array_count;
	for (int i; (i = atomic_fetch_add(&encoding->next, 1)) <= array_count;)
	{
		if (i == array_count)
		{
			find_bounds(encoding->frame, encoding->image->header.bounds);
			continue;
		}
		plan_array(encoding->frame, i, encoding->options, &encoding->image->encoded[i]);
	}
}

static void encode_task(void *context, int task)
{
	Encoding *encoding = context;
	SandError *err = &encoding->errors[task];
	uint32_t row_count = encoding->frame->count;
	int chunk_count = (int)sand_codec_chunk_count(row_count);
	int zstd_level = encoding->options->zstd_level < 0    ? 0
	                 : encoding->options->zstd_level == 0 ? SAND_CODEC_DEFAULT_LEVEL
	                                                      : encoding->options->zstd_level;
	SandCodecScratch *scratch = sand_codec_scratch_create(true);
	if (scratch == NULL)
	{
		sand_fail_memory(err, 0, "compressing a frame");
		return;
	}
	int item_count = chunk_count * encoding->frame->array_count;
	for (int item; err->status == SAND_OK && (item = atomic_fetch_add(&encoding->next, 1)) < item_count;)
	{
		Encoded *encoded = &encoding->image->encoded[item / chunk_count];
		size_t chunk = (size_t)(item % chunk_count);
		if (!encoded->is_due)
		{
			continue;
		}
		SandCodecPiece *pieces = (SandCodecPiece *)(void *)encoded->directory;
		size_t size = sand_codec_encode(scratch, &encoded->codec, encoded->rows, encoded->base, row_count,
		                                (uint32_t)chunk, zstd_level, encoded->bytes + chunk * encoded->chunk_bound,
		                                pieces + chunk * sand_codec_level_count(row_count), encoded->decoded,
		                                &encoded->chunk_errors[chunk]);
		encoded->chunk_bytes[chunk] = size;
		if (size == SIZE_MAX)
		{
			sand_fail_memory(err, encoded->chunk_bound, "compressing a frame");
		}
	}
	sand_codec_scratch_destroy(scratch);
}

/// Memory for what an array becomes.
static SandStatus make_room(const SandCacheFrame *frame, uint32_t exact_count, Encoded *encoded, SandError *err)
{
	const SandCodec *codec = &encoded->codec;
	size_t chunk_count = sand_codec_chunk_count(frame->count);
	size_t exact = (size_t)exact_bytes(codec->encoding, codec->component_count, exact_count);
	encoded_free(encoded);
	encoded->chunk_bound = chunk_count > 0 ? sand_codec_chunk_bound(codec, frame->count, 0) : 0; // the largest
	encoded->directory = sand_alloc((size_t)directory_bytes(frame->count) + exact, 1);
	encoded->chunk_bytes = sand_alloc(chunk_count, sizeof(size_t));
	encoded->bytes = sand_alloc_raw(chunk_count, encoded->chunk_bound);
	encoded->chunk_errors = sand_alloc(chunk_count, sizeof(double));
	if (encoded->directory == NULL || encoded->chunk_bytes == NULL || encoded->bytes == NULL ||
	    encoded->chunk_errors == NULL)
	{
		return sand_fail_memory(err, chunk_count * encoded->chunk_bound, "writing a frame");
	}
	if (exact > 0)
	{
		memcpy(encoded->directory + directory_bytes(frame->count), encoded->rows, exact);
	}
	return SAND_OK;
}

/// Encodes all arrays that are due.
static SandStatus encode_due(Encoding *encoding, SandPool *pool, SandError *err)
{
	SandStatus status = SAND_OK;
	bool is_any = false;
	for (int i = 0; i < encoding->frame->array_count && status == SAND_OK; ++i)
	{
		Encoded *encoded = &encoding->image->encoded[i];
		is_any = is_any || encoded->is_due;
		status =
		    encoded->is_due ? make_room(encoding->frame, encoding->image->header.exact_count, encoded, err) : status;
	}
	if (status != SAND_OK || !is_any || encoding->frame->count == 0)
	{
		return status;
	}
	atomic_store(&encoding->next, 0);
	return run_tasks(pool, encode_task, encoding, &encoding->errors, err);
}

static double largest_error(const Encoded *encoded, uint32_t row_count)
{
	double largest = 0;
	for (size_t i = 0; i < sand_codec_chunk_count(row_count); ++i)
	{
		largest = fmax(largest, encoded->chunk_errors[i]);
	}
	return largest;
}

/// All arrays: planned, then encoded, those that turn out too coarse once more as they are.
static SandStatus encode_arrays(const SandCacheFrame *frame, const SandCacheOptions *options, Image *image,
                                SandError *err)
{
	Encoding encoding = {.frame = frame, .options = options, .image = image};
	SandPool *pool = NULL;
	SandStatus status = make_pool(frame->count, options->thread_count, &pool, err);
	if (status == SAND_OK)
	{
		sand_pool_run(pool, plan_task, &encoding, pool != NULL ? sand_pool_thread_count(pool) : 1);
		status = encode_due(&encoding, pool, err);
	}
	for (int i = 0; i < frame->array_count && status == SAND_OK; ++i)
	{
		Encoded *encoded = &image->encoded[i];
		bool is_grid = encoded->is_due && encoded->codec.encoding == SAND_ENCODING_GRID;
		// Far from the origin floats are too coarse for the grid.
		encoded->is_due = is_grid && largest_error(encoded, frame->count) > encoded->tolerance;
		if (encoded->is_due)
		{
			encoded->codec.encoding = SAND_ENCODING_EXACT;
			sand_codec_plan(&encoded->codec, encoded->rows, frame->count, encoded->tolerance);
		}
	}
	status = status == SAND_OK ? encode_due(&encoding, pool, err) : status;
	sand_pool_destroy(pool);
	return status;
}

/// Fills the table's entry but for its offset, and adds the array's parts.
static void put_array(const SandCacheFrame *frame, int index, Image *image)
{
	const SandCacheArray *array = &frame->arrays[index];
	FileEntry *entry = &image->entries[index];
	const Encoded *encoded = &image->encoded[index];
	size_t rows_bytes = (size_t)array_bytes(frame->count, array->component_count);
	memcpy(entry->name, array->name, name_length(array->name));
	entry->type = array->type;
	entry->component_count = array->component_count;
	entry->word_bytes = 4;
	entry->error = array->error; // what is rewritten was off before
	if (encoded->plain != 0)
	{
		entry->encoding = encoded->plain;
		entry->byte_count = encoded->plain == SAND_ENCODING_ONE ? array_bytes(1, array->component_count) : 0;
		entry->checksum = sand_hash64(array->data, (size_t)entry->byte_count, 0);
		image->parts[image->part_count++] = (SandIoPart){array->data, (size_t)entry->byte_count};
		if (encoded->decoded != NULL)
		{
			memcpy(encoded->decoded, array->data, rows_bytes);
		}
		return;
	}
	const SandCodec *codec = &encoded->codec;
	size_t exact = (size_t)exact_bytes(codec->encoding, codec->component_count, image->header.exact_count);
	size_t lead = (size_t)directory_bytes(frame->count) + exact;
	entry->encoding = codec->encoding;
	entry->word_bytes = codec->word_bytes;
	entry->step = codec->step;
	memcpy(entry->origin, codec->origin, sizeof entry->origin);
	entry->checksum = sand_hash64(encoded->directory, lead, 0);
	entry->error = fmaxf((float)largest_error(encoded, frame->count), array->error);
	image->parts[image->part_count++] = (SandIoPart){encoded->directory, lead};
	entry->byte_count = lead;
	for (size_t chunk = 0; chunk < sand_codec_chunk_count(frame->count); ++chunk)
	{
		image->parts[image->part_count++] =
		    (SandIoPart){encoded->bytes + chunk * encoded->chunk_bound, encoded->chunk_bytes[chunk]};
		entry->byte_count += encoded->chunk_bytes[chunk];
	}
	if (encoded->decoded != NULL && exact > 0)
	{
		memcpy(encoded->decoded, array->data, exact);
	}
}

/// Least and greatest place, of "position" when it is there; those that are not finite do not count.
static void find_bounds(const SandCacheFrame *frame, float bounds_out[6])
{
	for (int i = 0; i < frame->array_count; ++i)
	{
		const SandCacheArray *array = &frame->arrays[i];
		if (strcmp(array->name, "position") != 0 || array->type != SAND_CACHE_F32 || array->component_count != 3)
		{
			continue;
		}
		float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
		const float *rows = array->data;
		for (size_t row = 0; row < frame->count; ++row)
		{
			for (size_t k = 0; k < 3; ++k)
			{
				float value = rows[3 * row + k];
				low[k] = value < low[k] && value > -INFINITY ? value : low[k];
				high[k] = value > high[k] && value < INFINITY ? value : high[k];
			}
		}
		for (size_t k = 0; k < 3; ++k)
		{
			bounds_out[k] = low[k] <= high[k] ? low[k] : 0;
			bounds_out[3 + k] = low[k] <= high[k] ? high[k] : 0;
		}
	}
}

/// Can rows of frame be kept in base?
static bool is_base(const SandCacheFrame *frame, const SandCacheFrame *base)
{
	int64_t back = base != NULL ? (int64_t)frame->frame - base->frame : 0;
	if (base == NULL || base->version != SAND_CACHE_VERSION || base->has_base || base->identity == 0 || back < 1 ||
	    back >= SAND_CACHE_BASE_SPAN || base->count != frame->count || base->full_count != base->count ||
	    base->array_count != frame->array_count)
	{
		return false;
	}
	for (int i = 0; i < frame->array_count; ++i)
	{
		const SandCacheArray *a = &frame->arrays[i], *b = &base->arrays[i];
		if (strcmp(a->name, b->name) != 0 || a->type != b->type || a->component_count != b->component_count)
		{
			return false;
		}
	}
	return true;
}

static SandStatus fill_image(const SandCacheFrame *frame, const SandCacheOptions *options, Image *image, SandError *err)
{
	uint32_t array_count = (uint32_t)frame->array_count;
	size_t part_limit = 3 + array_count * (1 + (size_t)sand_codec_chunk_count(frame->count));
	image->parts = sand_alloc(part_limit, sizeof(SandIoPart));
	if (image->parts == NULL)
	{
		return sand_fail_memory(err, part_limit * sizeof(SandIoPart), "writing a frame");
	}
	const SandCacheFrame *base = is_base(frame, options->base) ? options->base : NULL;
	FileHeader *header = &image->header;
	header->exact_count = options->exact_count < frame->count ? options->exact_count : frame->count;
	image->parts[0] = (SandIoPart){header, sizeof *header};
	image->parts[1] = (SandIoPart){image->entries, array_count * sizeof(FileEntry)};
	image->part_count = 2;
	void *places[SAND_CACHE_ARRAY_LIMIT + 1] = {NULL};
	if (options->kept_out != NULL)
	{
		const FileEntry *entries[SAND_CACHE_ARRAY_LIMIT];
		for (uint32_t i = 0; i < array_count; ++i)
		{
			image->entries[i].component_count = frame->arrays[i].component_count;
			entries[i] = &image->entries[i];
		}
		SandStatus status = alloc_arrays(NULL, entries, (int)array_count, frame->count, frame->note_bytes,
		                                 &image->kept.block, places, err);
		if (status != SAND_OK)
		{
			return status;
		}
		if (frame->note_bytes > 0)
		{
			memcpy(places[array_count], frame->notes, frame->note_bytes);
		}
	}
	for (uint32_t i = 0; i < array_count; ++i)
	{
		image->encoded[i].rows = frame->arrays[i].data;
		image->encoded[i].base = base != NULL ? base->arrays[i].data : NULL;
		image->encoded[i].decoded = places[i];
	}
	SandStatus status = encode_arrays(frame, options, image, err);
	if (status != SAND_OK)
	{
		return status;
	}
	uint64_t offset = sizeof(FileHeader) + array_count * sizeof(FileEntry);
	for (uint32_t i = 0; i < array_count; ++i)
	{
		put_array(frame, (int)i, image);
		image->entries[i].offset = offset;
		offset += image->entries[i].byte_count;
	}
	bool is_noted = base != NULL && frame->note_bytes > 0 && base->note_bytes == frame->note_bytes &&
	                memcmp(base->notes, frame->notes, frame->note_bytes) == 0;
	if (frame->note_bytes > 0 && !is_noted)
	{
		image->parts[image->part_count++] = (SandIoPart){frame->notes, frame->note_bytes};
		header->note_bytes = frame->note_bytes;
		header->notes_checksum = sand_hash64(frame->notes, frame->note_bytes, 0);
		offset += frame->note_bytes;
	}
	FileStart *start = &header->start;
	memcpy(start->magic, magic, sizeof magic);
	start->version = SAND_CACHE_VERSION;
	start->endian_tag = ENDIAN_TAG;
	start->header_bytes = sizeof(FileHeader);
	start->array_count = array_count;
	start->layout_hash = layout_hash(image->entries, array_count);
	start->total_bytes = offset;
	start->frame = frame->frame;
	start->count = frame->count;
	start->seconds = frame->seconds;
	start->settings_hash = frame->settings_hash;
	start->state_hash = frame->state_hash;
	start->table_checksum = sand_hash64(image->entries, array_count * sizeof(FileEntry), 0);
	header->tolerance = options->tolerance;
	header->flags = (base != NULL ? HAS_BASE : 0) | (is_noted ? HAS_NOTES_OF_BASE : 0);
	header->motion_hash = frame->motion_hash;
	header->base_frame = base != NULL ? base->frame : 0;
	header->base_identity = base != NULL ? base->identity : 0;
	header->level_count = sand_codec_level_count(frame->count);
	if (options->engine != NULL)
	{
		memcpy(header->engine, options->engine, strlen(options->engine));
	}
	header->header_checksum = sand_hash64(header, offsetof(FileHeader, header_checksum), 0);
	if (options->kept_out != NULL)
	{
		Head head = {.header = *header};
		fill_frame(&head, &image->kept);
		image->kept.array_count = (int)array_count;
		for (uint32_t i = 0; i < array_count; ++i)
		{
			fill_array(&image->entries[i], places[i], &image->kept.arrays[i]);
		}
		image->kept.notes = frame->note_bytes > 0 ? places[array_count] : NULL;
		image->kept.note_bytes = frame->note_bytes;
	}
	return SAND_OK;
}

/// The frame as a file in memory; free with image_free.
static SandStatus make_image(const SandCacheFrame *frame, const SandCacheOptions *options, Image **image_out,
                             SandError *err)
{
	*image_out = NULL;
	SandStatus status = check_frame(frame, options, err);
	if (status != SAND_OK)
	{
		return status;
	}
	Image *image = sand_alloc(1, sizeof *image);
	if (image == NULL)
	{
		return sand_fail_memory(err, sizeof *image, "writing a frame");
	}
	status = fill_image(frame, options, image, err);
	if (status != SAND_OK)
	{
		image_free(image);
		return status;
	}
	*image_out = image;
	return SAND_OK;
}

SandStatus sand_cache_measure(const SandCacheFrame *frame, const SandCacheOptions *options, uint64_t *byte_count_out,
                              SandError *err)
{
	static const SandCacheOptions plain;
	SandCacheOptions used = options != NULL ? *options : plain;
	used.kept_out = NULL;
	Image *image;
	SandStatus status = make_image(frame, &used, &image, err);
	*byte_count_out = 0;
	if (status == SAND_OK)
	{
		*byte_count_out = image->header.start.total_bytes;
		image_free(image);
	}
	return status;
}

static SandStatus write_image(const char *folder, const Image *image, SandError *err)
{
	char name[FRAME_NAME_BYTES];
	sand_cache_frame_name(image->header.start.frame, name);
	char *path;
	SandStatus status = join(folder, name, &path, err);
	if (status == SAND_OK)
	{
		status = sand_io_write_file(path, image->parts, image->part_count, err);
		sand_free(path);
	}
	return status;
}

/// Writes a frame that refers to another so that it stands alone: the same numbers, now all its own.
static SandStatus detach(const char *folder, int32_t frame, SandError *err)
{
	SandCacheFrame found;
	SandStatus status = sand_cache_read(folder, frame, &(SandCacheWanted){.has_notes = true}, &found, err);
	if (status != SAND_OK)
	{
		return status;
	}
	for (int i = 0; i < found.array_count; ++i)
	{
		found.arrays[i].encoding = SAND_ENCODING_EXACT;
	}
	SandCacheOptions options = {.tolerance = found.tolerance, .exact_count = found.exact_count, .engine = found.engine};
	Image *image;
	status = make_image(&found, &options, &image, err);
	if (status == SAND_OK)
	{
		status = write_image(folder, image, err);
		image_free(image);
	}
	sand_cache_frame_free(&found);
	return status;
}

/// Detaches the frames from first to last that refer to one of base_first to base_last. Those that cannot be read are
/// left alone: they are lost already, and say so when they are asked for.
static SandStatus detach_range(const char *folder, int64_t first, int64_t last, int32_t base_first, int32_t base_last,
                               SandError *err)
{
	for (int64_t i = first; i <= last && i <= INT32_MAX; ++i)
	{
		SandCacheFrame found;
		SandError ignored = {0};
		SandStatus status = sand_cache_peek(folder, (int32_t)i, &found, &ignored);
		if (status == SAND_OK && found.has_base && found.base_frame >= base_first && found.base_frame <= base_last)
		{
			status = detach(folder, (int32_t)i, &ignored);
		}
		if (status != SAND_OK && status != SAND_ERROR_CACHE)
		{
			if (err != NULL)
			{
				*err = ignored;
			}
			return status;
		}
	}
	return SAND_OK;
}

/// Before a frame is written over an older one with other contents: those that refer to it are made to stand alone.
static SandStatus keep_dependants(const char *folder, const Image *image, SandError *err)
{
	SandCacheFrame old;
	SandError found = {0};
	int32_t frame = image->header.start.frame;
	SandStatus status = sand_cache_peek(folder, frame, &old, &found);
	if (status == SAND_OK && !old.has_base && old.identity != image->header.header_checksum)
	{
		int64_t next = (int64_t)frame + 1;
		return detach_range(folder, next, next + SAND_CACHE_BASE_SPAN - 2, frame, frame, err);
	}
	if (status != SAND_OK && status != SAND_ERROR_CACHE) // absent or damaged: nothing can be kept of it
	{
		if (err != NULL)
		{
			*err = found;
		}
		return status;
	}
	return SAND_OK;
}

SandStatus sand_cache_write(const char *folder, const SandCacheFrame *frame, const SandCacheOptions *options,
                            uint64_t *byte_count_out, SandError *err)
{
	static const SandCacheOptions plain;
	options = options != NULL ? options : &plain;
	if (byte_count_out != NULL)
	{
		*byte_count_out = 0;
	}
	Image *image;
	SandStatus status = make_image(frame, options, &image, err);
	if (status != SAND_OK)
	{
		return status;
	}
	uint64_t bytes = image->header.start.total_bytes;
	if (options->byte_limit > 0 && bytes > options->byte_limit)
	{
		status = sand_fail(err, SAND_ERROR_CACHE,
		                   "Frame %" PRId32 " takes %" PRIu64 " bytes and the limit leaves %" PRIu64
		                   "; raise the limit or free older frames, those baked so far are kept",
		                   frame->frame, bytes, options->byte_limit);
	}
	if (status == SAND_OK)
	{
		status = keep_dependants(folder, image, err);
	}
	if (status == SAND_OK)
	{
		status = write_image(folder, image, err);
	}
	if (status == SAND_OK && byte_count_out != NULL)
	{
		*byte_count_out = bytes;
	}
	if (status == SAND_OK && options->kept_out != NULL)
	{
		*options->kept_out = image->kept;
		memset(&image->kept, 0, sizeof image->kept);
	}
	image_free(image);
	return status;
}

// Listing and removing

/// A growing array of records, filled while a folder is listed.
typedef struct Records
{
	char *bytes;
	size_t record_bytes;
	size_t count;
	size_t room;
	uint64_t file_bytes; // of all files seen
	bool is_short_of_memory;
} Records;

static bool append_record(Records *records, const void *record)
{
	if (records->count == records->room)
	{
		size_t room = records->room == 0 ? 256 : 2 * records->room;
		char *bytes = sand_alloc(room, records->record_bytes);
		if (bytes == NULL)
		{
			records->is_short_of_memory = true;
			return false;
		}
		if (records->count > 0)
		{
			memcpy(bytes, records->bytes, records->count * records->record_bytes);
		}
		sand_free(records->bytes);
		records->bytes = bytes;
		records->room = room;
	}
	memcpy(records->bytes + records->count * records->record_bytes, record, records->record_bytes);
	records->count++;
	return true;
}

static SandStatus list_records(const char *folder, SandIoVisit *visit, void *context, Records *records, SandError *err)
{
	SandStatus status = sand_io_list_folder(folder, visit, context, err);
	if (status == SAND_OK && records->is_short_of_memory)
	{
		status = sand_fail_memory(err, 2 * records->room * records->record_bytes, "the list of frames");
	}
	if (status != SAND_OK)
	{
		sand_free(records->bytes);
		records->bytes = NULL;
	}
	return status;
}

static bool visit_frame(void *context, const char *name, uint64_t byte_count)
{
	Records *records = context;
	int32_t frame;
	if (!parse_frame_name(name, &frame))
	{
		return true;
	}
	records->file_bytes += byte_count;
	return append_record(records, &frame);
}

static int compare_frames(const void *left, const void *right)
{
	int32_t a = *(const int32_t *)left;
	int32_t b = *(const int32_t *)right;
	return (a > b) - (a < b);
}

SandStatus sand_cache_list(const char *folder, int32_t **frames_out, int *frame_count_out, uint64_t *byte_count_out,
                           SandError *err)
{
	Records records = {.record_bytes = sizeof(int32_t)};
	SandStatus status = list_records(folder, visit_frame, &records, &records, err);
	if (status != SAND_OK)
	{
		records.count = 0;
		records.file_bytes = 0;
	}
	if (records.count > 1)
	{
		qsort(records.bytes, records.count, sizeof(int32_t), compare_frames);
	}
	if (frame_count_out != NULL)
	{
		assert(records.count <= INT_MAX); // there are only 2^32 names, and no folder of that size
		*frame_count_out = (int)records.count;
	}
	if (byte_count_out != NULL)
	{
		*byte_count_out = records.file_bytes;
	}
	if (frames_out != NULL)
	{
		*frames_out = (int32_t *)(void *)records.bytes;
	}
	else
	{
		sand_free(records.bytes);
	}
	return status;
}

typedef struct OwnFile
{
	char name[OWN_NAME_BYTES];
	uint64_t byte_count;
} OwnFile;

/// A frame from first to last; with everything also checkpoints, and what a crash left of writing one of these or of
/// proving the folder writable.
typedef struct Removal
{
	Records records; // of OwnFile
	int32_t first, last;
	bool is_everything;
	bool has_lock;
} Removal;

static bool is_own_name(const Removal *removal, const char *name)
{
	int32_t frame;
	size_t stem_bytes = sand_io_temporary_stem(name);
	if (stem_bytes == 0 && parse_frame_name(name, &frame))
	{
		return frame >= removal->first && frame <= removal->last;
	}
	char stem[FRAME_NAME_BYTES];
	size_t bytes = stem_bytes == 0 ? strlen(name) : stem_bytes;
	if (!removal->is_everything || bytes >= sizeof stem)
	{
		return false;
	}
	memcpy(stem, name, bytes);
	stem[bytes] = '\0';
	bool is_kept;
	return sand_cache_is_checkpoint(stem, &is_kept, &frame) ||
	       (stem_bytes > 0 && (strcmp(stem, SAND_IO_PROBE_NAME) == 0 || parse_frame_name(stem, &frame)));
}

static bool visit_own_file(void *context, const char *name, uint64_t byte_count)
{
	Removal *removal = context;
	OwnFile file = {.byte_count = byte_count};
	size_t name_bytes = strlen(name) + 1;
	removal->has_lock = removal->has_lock || strcmp(name, SAND_CACHE_LOCK) == 0;
	if (name_bytes > sizeof file.name || !is_own_name(removal, name))
	{
		return true;
	}
	memcpy(file.name, name, name_bytes);
	return append_record(&removal->records, &file);
}

/// Removes the lock that a dead owner left. One that is held, by us or by another, stays.
static SandStatus remove_left_lock(const char *folder, SandError *err)
{
	char *path;
	char holder[64];
	SandIoLock *lock = NULL;
	SandStatus status = join(folder, SAND_CACHE_LOCK, &path, err);
	if (status == SAND_OK)
	{
		status = sand_io_lock(path, "", false, holder, sizeof holder, &lock, err);
		sand_io_unlock(lock);
		sand_free(path);
	}
	return status;
}

static SandStatus remove_in_folder(const char *folder, const char *name, SandError *err)
{
	char *path;
	SandStatus status = join(folder, name, &path, err);
	if (status == SAND_OK)
	{
		status = sand_io_remove_own_file(path, err);
		sand_free(path);
	}
	return status;
}

SandStatus sand_cache_free(const char *folder, int32_t first, int32_t last, int *file_count_out,
                           uint64_t *byte_count_out, SandError *err)
{
	SandError own_error = {0};
	err = err != NULL ? err : &own_error; // looked at below
	int file_count = 0;
	uint64_t byte_count = 0;
	Removal removal = {
	    .records = {.record_bytes = sizeof(OwnFile)},
	    .first = first,
	    .last = last,
	    .is_everything = first == INT32_MIN && last == INT32_MAX,
	};
	SandStatus status = SAND_OK;
	if (!removal.is_everything)
	{
		status = detach_range(folder, (int64_t)last + 1, (int64_t)last + SAND_CACHE_BASE_SPAN - 1, first, last, err);
	}
	// Names first, removal after: a folder that changes while it is listed may show a file twice or not at all.
	if (status == SAND_OK)
	{
		status = list_records(folder, visit_own_file, &removal, &removal.records, err);
	}
	size_t found_count = status == SAND_OK ? removal.records.count : 0;
	for (size_t i = 0; i < found_count && status == SAND_OK; ++i)
	{
		OwnFile file;
		memcpy(&file, removal.records.bytes + i * sizeof file, sizeof file);
		status = remove_in_folder(folder, file.name, err);
		if (status == SAND_OK)
		{
			file_count++;
			byte_count += file.byte_count;
		}
		else if (status == SAND_ERROR_IO && err->os_error == ENOENT)
		{
			*err = (SandError){0}; // someone else was faster
			status = SAND_OK;
		}
	}
	sand_free(removal.records.bytes);
	if (status == SAND_OK && removal.is_everything && removal.has_lock)
	{
		status = remove_left_lock(folder, err);
	}
	if (status == SAND_OK && removal.is_everything)
	{
		status = sand_io_remove_empty_folder(folder, err);
	}
	if (file_count_out != NULL)
	{
		*file_count_out = file_count;
	}
	if (byte_count_out != NULL)
	{
		*byte_count_out = byte_count;
	}
	return status;
}
