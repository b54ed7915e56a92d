// cache: frames on disk. Comes in: named arrays. Goes out: the same arrays, or a sentence. Knows no physics.
// One file per frame: header, table of arrays, blocks of data. Byte by byte: docs/cache-format.md.
// The header's checksum covers the header, the table's checksum (kept in the header) covers the table, and each array's
// checksum (kept in the table) covers its block: so one array can be read and trusted without the others.
#include "cache.h"

#include "io.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ALIGNMENT 64
#define ENDIAN_TAG 0x01020304u
#define FRAME_NAME_BYTES 32
#define OWN_NAME_BYTES 96 // "frame_-2147483648.sand" and the ending of a temporary, generously
#define LABEL_BYTES 200   // of a path shown in a sentence

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "frames are written as they lie in memory: little-endian only");

typedef struct FileHeader
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
	unsigned char reserved[40]; // zero
	uint64_t header_checksum;   // of the 120 bytes above
} FileHeader;

typedef struct FileEntry
{
	char name[SAND_CACHE_NAME_BYTES]; // filled up with zeros
	uint32_t type;
	uint32_t component_count;
	uint64_t offset; // from the start of the file
	uint64_t byte_count;
	uint64_t checksum;
	uint64_t reserved; // zero
} FileEntry;

_Static_assert(sizeof(FileHeader) == 128, "the header is 128 bytes on disk");
_Static_assert(offsetof(FileHeader, version) == 8, "on disk");
_Static_assert(offsetof(FileHeader, endian_tag) == 12, "on disk");
_Static_assert(offsetof(FileHeader, header_bytes) == 16, "on disk");
_Static_assert(offsetof(FileHeader, array_count) == 20, "on disk");
_Static_assert(offsetof(FileHeader, layout_hash) == 24, "on disk");
_Static_assert(offsetof(FileHeader, total_bytes) == 32, "on disk");
_Static_assert(offsetof(FileHeader, frame) == 40, "on disk");
_Static_assert(offsetof(FileHeader, count) == 44, "on disk");
_Static_assert(offsetof(FileHeader, seconds) == 48, "on disk");
_Static_assert(offsetof(FileHeader, settings_hash) == 56, "on disk");
_Static_assert(offsetof(FileHeader, state_hash) == 64, "on disk");
_Static_assert(offsetof(FileHeader, table_checksum) == 72, "on disk");
_Static_assert(offsetof(FileHeader, reserved) == 80, "on disk");
_Static_assert(offsetof(FileHeader, header_checksum) == 120, "on disk");
_Static_assert(sizeof(FileEntry) == 64, "a table entry is 64 bytes on disk");
_Static_assert(offsetof(FileEntry, type) == 24, "on disk");
_Static_assert(offsetof(FileEntry, component_count) == 28, "on disk");
_Static_assert(offsetof(FileEntry, offset) == 32, "on disk");
_Static_assert(offsetof(FileEntry, byte_count) == 40, "on disk");
_Static_assert(offsetof(FileEntry, checksum) == 48, "on disk");
_Static_assert(offsetof(FileEntry, reserved) == 56, "on disk");

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

static uint64_t header_checksum(const FileHeader *header)
{
	return sand_hash64(header, offsetof(FileHeader, header_checksum), 0);
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

/// Length of a name by the rules of SandCacheArray; 0 when it breaks them.
static size_t name_length(const char name[SAND_CACHE_NAME_BYTES])
{
	size_t length = 0;
	while (length < SAND_CACHE_NAME_BYTES && name[length] != '\0')
	{
		if (name[length] < ' ' || name[length] > '~')
		{
			return 0;
		}
		++length;
	}
	return length < SAND_CACHE_NAME_BYTES ? length : 0;
}

static bool is_type(uint32_t type)
{
	return type == SAND_CACHE_F32 || type == SAND_CACHE_I32;
}

void sand_cache_frame_name(int32_t frame, char name_out[32])
{
	snprintf(name_out, FRAME_NAME_BYTES, "frame_%06" PRId32 ".sand", frame);
}

/// True when name is exactly what sand_cache_frame_name makes of some frame.
static bool parse_frame_name(const char *name, int32_t *frame_out)
{
	static const char prefix[] = "frame_";
	if (strncmp(name, prefix, sizeof prefix - 1) != 0)
	{
		return false;
	}
	// At most ten digits and a sign fit into an int32; longer texts would not fit into a long long either.
	const char *text = name + sizeof prefix - 1;
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
	sand_cache_frame_name((int32_t)value, expected);
	*frame_out = (int32_t)value;
	return strcmp(name, expected) == 0;
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

// Writing

static SandStatus check_frame(const SandCacheFrame *frame, SandError *err)
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
	return SAND_OK;
}

/// Fills the header and the table, which lie one after the other in the file.
static void fill_head(const SandCacheFrame *frame, FileHeader *header, FileEntry *entries)
{
	uint32_t array_count = (uint32_t)frame->array_count;
	uint64_t offset = sizeof(FileHeader) + array_count * sizeof(FileEntry);
	memset(entries, 0, array_count * sizeof(FileEntry));
	for (uint32_t i = 0; i < array_count; ++i)
	{
		const SandCacheArray *array = &frame->arrays[i];
		memcpy(entries[i].name, array->name, name_length(array->name));
		entries[i].type = array->type;
		entries[i].component_count = array->component_count;
		entries[i].offset = offset;
		entries[i].byte_count = array_bytes(frame->count, array->component_count);
		entries[i].checksum = sand_hash64(array->data, (size_t)entries[i].byte_count, 0);
		offset += aligned(entries[i].byte_count);
	}
	memset(header, 0, sizeof *header);
	memcpy(header->magic, magic, sizeof magic);
	header->version = SAND_CACHE_VERSION;
	header->endian_tag = ENDIAN_TAG;
	header->header_bytes = sizeof(FileHeader);
	header->array_count = array_count;
	header->layout_hash = layout_hash(entries, array_count);
	header->total_bytes = offset;
	header->frame = frame->frame;
	header->count = frame->count;
	header->seconds = frame->seconds;
	header->settings_hash = frame->settings_hash;
	header->state_hash = frame->state_hash;
	header->table_checksum = sand_hash64(entries, array_count * sizeof(FileEntry), 0);
	header->header_checksum = header_checksum(header);
}

static uint64_t frame_bytes(const SandCacheFrame *frame)
{
	uint64_t bytes = sizeof(FileHeader) + (uint64_t)frame->array_count * sizeof(FileEntry);
	for (int i = 0; i < frame->array_count; ++i)
	{
		bytes += aligned(array_bytes(frame->count, frame->arrays[i].component_count));
	}
	return bytes;
}

SandStatus sand_cache_write(const char *folder, const SandCacheFrame *frame, SandError *err)
{
	static const unsigned char zeros[BLOCK_ALIGNMENT] = {0};
	SandStatus status = check_frame(frame, err);
	if (status != SAND_OK)
	{
		return status;
	}
	uint64_t total_bytes = frame_bytes(frame);
	if (total_bytes > SAND_CACHE_BYTE_LIMIT || total_bytes > SIZE_MAX)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Frame %" PRId32 " would take %" PRIu64 " bytes, more than %" PRIu64 "; use fewer grains",
		                 frame->frame, total_bytes, SAND_CACHE_BYTE_LIMIT);
	}
	FileHeader header;
	FileEntry entries[SAND_CACHE_ARRAY_LIMIT];
	fill_head(frame, &header, entries);
	SandIoPart parts[2 + 2 * SAND_CACHE_ARRAY_LIMIT];
	int part_count = 0;
	parts[part_count++] = (SandIoPart){&header, sizeof header};
	parts[part_count++] = (SandIoPart){entries, header.array_count * sizeof(FileEntry)};
	for (int i = 0; i < frame->array_count; ++i)
	{
		uint64_t bytes = entries[i].byte_count;
		parts[part_count++] = (SandIoPart){frame->arrays[i].data, (size_t)bytes};
		parts[part_count++] = (SandIoPart){zeros, (size_t)(aligned(bytes) - bytes)};
	}
	char name[FRAME_NAME_BYTES];
	sand_cache_frame_name(frame->frame, name);
	char *path;
	status = join(folder, name, &path, err);
	if (status != SAND_OK)
	{
		return status;
	}
	status = sand_io_write_file(path, parts, part_count, err);
	sand_free(path);
	return status;
}

// Reading

static const char damaged[] = "the file is damaged, bake this frame again";

/// Everything in the header that needs neither the table nor the blocks.
static SandStatus check_header(const char *label, const FileHeader *header, size_t byte_count, SandError *err)
{
	if (memcmp(header->magic, magic, sizeof magic) != 0)
	{
		const unsigned char *found = header->magic;
		return sand_fail(
		    err, SAND_ERROR_CACHE,
		    "'%s' is not a Barchan frame: it begins with %02x %02x %02x %02x, expected %02x %02x %02x %02x "
		    "and four more bytes of a Barchan frame",
		    label, found[0], found[1], found[2], found[3], magic[0], magic[1], magic[2], magic[3]);
	}
	if (header->endian_tag != ENDIAN_TAG)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' has the byte order tag %08" PRIx32 ", expected %08x: it comes from another kind of "
		                 "machine or is damaged, bake it again",
		                 label, header->endian_tag, ENDIAN_TAG);
	}
	if (header->version != SAND_CACHE_VERSION)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' has format version %" PRIu32 ", this Barchan reads version %d; %s", label,
		                 header->version, SAND_CACHE_VERSION,
		                 header->version > SAND_CACHE_VERSION ? "update Barchan or bake again" : "bake again");
	}
	if (header->header_bytes != sizeof(FileHeader))
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has a header of %" PRIu32 " bytes, expected %zu; %s", label,
		                 header->header_bytes, sizeof(FileHeader), damaged);
	}
	uint64_t checksum = header_checksum(header);
	if (header->header_checksum != checksum)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s': the header's checksum is %016" PRIx64 ", its bytes give %016" PRIx64 "; %s", label,
		                 header->header_checksum, checksum, damaged);
	}
	if (!is_zero(header->reserved, sizeof header->reserved))
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s': the header's reserved bytes are not zero; %s", label, damaged);
	}
	if (!isfinite(header->seconds))
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has the time %g s, expected a finite number; %s", label,
		                 header->seconds, damaged);
	}
	if (header->total_bytes != byte_count)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %zu bytes, its header says %" PRIu64 "; %s", label,
		                 byte_count, header->total_bytes, damaged);
	}
	if (header->array_count < 1 || header->array_count > SAND_CACHE_ARRAY_LIMIT)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %" PRIu32 " arrays, expected 1 to %d; %s", label,
		                 header->array_count, SAND_CACHE_ARRAY_LIMIT, damaged);
	}
	return SAND_OK;
}

/// One table entry by itself: the name, type and component count are sane.
static SandStatus check_entry(const char *label, const FileEntry *entries, uint32_t index, SandError *err)
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
	if (entry->reserved != 0)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s', array '%s': the reserved bytes are not zero; %s", label,
		                 entry->name, damaged);
	}
	return SAND_OK;
}

/// The table against the header and the file's size: every block lies where the layout puts it, inside the file.
static SandStatus check_table(const char *label, const FileHeader *header, const FileEntry *entries, size_t byte_count,
                              SandError *err)
{
	uint64_t offset = sizeof(FileHeader) + header->array_count * sizeof(FileEntry);
	for (uint32_t i = 0; i < header->array_count; ++i)
	{
		SandStatus status = check_entry(label, entries, i, err);
		if (status != SAND_OK)
		{
			return status;
		}
		uint64_t expected = array_bytes(header->count, entries[i].component_count);
		if (entries[i].offset != offset || entries[i].byte_count != expected)
		{
			return sand_fail(
			    err, SAND_ERROR_CACHE,
			    "'%s', array '%s': %" PRIu64 " bytes at %" PRIu64 ", expected %" PRIu64 " at %" PRIu64 "; %s", label,
			    entries[i].name, entries[i].byte_count, entries[i].offset, expected, offset, damaged);
		}
		offset += aligned(expected); // at most 32 arrays of 2^38 bytes
		if (offset > byte_count)
		{
			return sand_fail(err, SAND_ERROR_CACHE,
			                 "'%s', array '%s' ends at byte %" PRIu64 ", but the file has %zu; %s", label,
			                 entries[i].name, offset, byte_count, damaged);
		}
	}
	if (offset != byte_count)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %zu bytes, its arrays end at byte %" PRIu64 "; %s", label,
		                 byte_count, offset, damaged);
	}
	uint64_t layout = layout_hash(entries, header->array_count);
	if (header->layout_hash != layout)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s': the layout hash is %016" PRIx64 ", its table gives %016" PRIx64 "; %s", label,
		                 header->layout_hash, layout, damaged);
	}
	return SAND_OK;
}

static SandStatus check_block(const char *label, const FileEntry *entry, const unsigned char *bytes, SandError *err)
{
	const unsigned char *block = bytes + entry->offset;
	uint64_t checksum = sand_hash64(block, (size_t)entry->byte_count, 0);
	if (entry->checksum != checksum)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s', array '%s': the checksum is %016" PRIx64 ", its bytes give %016" PRIx64 "; %s", label,
		                 entry->name, entry->checksum, checksum, damaged);
	}
	if (!is_zero(block + entry->byte_count, (size_t)(aligned(entry->byte_count) - entry->byte_count)))
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s', array '%s': the bytes behind it are not zero; %s", label,
		                 entry->name, damaged);
	}
	return SAND_OK;
}

SandStatus sand_cache_parse(const char *label, void *bytes, size_t byte_count, SandCacheFrame *frame_out,
                            SandError *err)
{
	memset(frame_out, 0, sizeof *frame_out);
	label = shown(label);
	FileHeader header;
	if (byte_count < sizeof header)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %zu bytes, a frame has at least %zu; %s", label, byte_count,
		                 sizeof header, damaged);
	}
	memcpy(&header, bytes, sizeof header);
	SandStatus status = check_header(label, &header, byte_count, err);
	if (status != SAND_OK)
	{
		return status;
	}
	size_t table_bytes = header.array_count * sizeof(FileEntry);
	if (table_bytes > byte_count - sizeof header)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %zu bytes, its table of %" PRIu32 " arrays needs %zu; %s",
		                 label, byte_count, header.array_count, sizeof header + table_bytes, damaged);
	}
	FileEntry entries[SAND_CACHE_ARRAY_LIMIT];
	memcpy(entries, (const unsigned char *)bytes + sizeof header, table_bytes);
	uint64_t checksum = sand_hash64(entries, table_bytes, 0);
	if (header.table_checksum != checksum)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s': the table's checksum is %016" PRIx64 ", its bytes give %016" PRIx64 "; %s", label,
		                 header.table_checksum, checksum, damaged);
	}
	status = check_table(label, &header, entries, byte_count, err);
	for (uint32_t i = 0; i < header.array_count && status == SAND_OK; ++i)
	{
		status = check_block(label, &entries[i], bytes, err);
	}
	if (status != SAND_OK)
	{
		return status;
	}
	frame_out->frame = header.frame;
	frame_out->count = header.count;
	frame_out->seconds = header.seconds;
	frame_out->settings_hash = header.settings_hash;
	frame_out->state_hash = header.state_hash;
	frame_out->array_count = (int)header.array_count;
	for (uint32_t i = 0; i < header.array_count; ++i)
	{
		SandCacheArray *array = &frame_out->arrays[i];
		memcpy(array->name, entries[i].name, sizeof array->name);
		array->type = entries[i].type;
		array->component_count = entries[i].component_count;
		array->data = (const unsigned char *)bytes + entries[i].offset;
	}
	frame_out->block = bytes;
	return SAND_OK;
}

/// Reads path and parses it as the frame asked for.
static SandStatus read_path(const char *path, int32_t frame, SandCacheFrame *frame_out, SandError *err)
{
	void *bytes = NULL;
	size_t byte_count = 0;
	size_t byte_limit = SAND_CACHE_BYTE_LIMIT < SIZE_MAX ? (size_t)SAND_CACHE_BYTE_LIMIT : SIZE_MAX;
	SandStatus status = sand_io_read_file(path, byte_limit, &bytes, &byte_count, err);
	if (status == SAND_ERROR_IO && err->os_error == ENOENT)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "Frame %" PRId32 " is not in the cache: there is no '%s'; bake it",
		                 frame, shown(path));
	}
	if (status != SAND_OK)
	{
		return status;
	}
	status = sand_cache_parse(path, bytes, byte_count, frame_out, err);
	if (status != SAND_OK)
	{
		sand_free(bytes);
		return status;
	}
	int32_t found = frame_out->frame;
	if (found != frame)
	{
		sand_cache_frame_free(frame_out);
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' holds frame %" PRId32 ", expected frame %" PRId32
		                 ": the file was renamed; bake it again",
		                 shown(path), found, frame);
	}
	return SAND_OK;
}

SandStatus sand_cache_read(const char *folder, int32_t frame, SandCacheFrame *frame_out, SandError *err)
{
	memset(frame_out, 0, sizeof *frame_out);
	SandError own_error = {0};
	err = err != NULL ? err : &own_error; // read_path looks at the errno
	char name[FRAME_NAME_BYTES];
	sand_cache_frame_name(frame, name);
	char *path;
	SandStatus status = join(folder, name, &path, err);
	if (status == SAND_OK)
	{
		status = read_path(path, frame, frame_out, err);
		sand_free(path);
	}
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

static SandStatus list_records(const char *folder, SandIoVisit *visit, Records *records, SandError *err)
{
	SandStatus status = sand_io_list_folder(folder, visit, records, err);
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
	SandStatus status = list_records(folder, visit_frame, &records, err);
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

/// A frame, or what a crash left of writing one or of proving the folder writable.
static bool is_own_name(const char *name)
{
	int32_t frame;
	size_t stem_bytes = sand_io_temporary_stem(name);
	if (stem_bytes == 0)
	{
		return parse_frame_name(name, &frame);
	}
	char stem[FRAME_NAME_BYTES];
	if (stem_bytes >= sizeof stem)
	{
		return false;
	}
	memcpy(stem, name, stem_bytes);
	stem[stem_bytes] = '\0';
	return strcmp(stem, SAND_IO_PROBE_NAME) == 0 || parse_frame_name(stem, &frame);
}

static bool visit_own_file(void *context, const char *name, uint64_t byte_count)
{
	OwnFile file = {.byte_count = byte_count};
	size_t name_bytes = strlen(name) + 1;
	if (name_bytes > sizeof file.name || !is_own_name(name))
	{
		return true;
	}
	memcpy(file.name, name, name_bytes);
	return append_record(context, &file);
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

SandStatus sand_cache_free(const char *folder, int *file_count_out, uint64_t *byte_count_out, SandError *err)
{
	SandError own_error = {0};
	err = err != NULL ? err : &own_error; // looked at below
	// Names first, removal after: a folder that changes while it is listed may show a file twice or not at all.
	Records records = {.record_bytes = sizeof(OwnFile)};
	int file_count = 0;
	uint64_t byte_count = 0;
	SandStatus status = list_records(folder, visit_own_file, &records, err);
	size_t found_count = status == SAND_OK ? records.count : 0;
	for (size_t i = 0; i < found_count && status == SAND_OK; ++i)
	{
		OwnFile file;
		memcpy(&file, records.bytes + i * sizeof file, sizeof file);
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
	sand_free(records.bytes);
	if (status == SAND_OK)
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
