// checkpoint: the simulator's whole state on disk, so that a stopped bake goes on as if it had never stopped.
// Comes in: bytes of sand_sim_save. Goes out: the newest of two files that verifies. Does not know what the bytes mean.
#include "checkpoint.h"

#include "cache.h"
#include "io.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ENDIAN_TAG 0x01020304u
#define SHOWN_BYTES 160

typedef struct FileHeader
{
	unsigned char magic[8];
	uint32_t version;
	uint32_t endian_tag;
	uint32_t header_bytes;
	int32_t frame;
	uint64_t total_bytes;
	uint64_t serial;
	double seconds;
	uint64_t settings_hash;
	uint64_t state_hash;
	uint64_t checksum;          // of the bytes behind the header
	unsigned char reserved[48]; // zero
	uint64_t header_checksum;   // of the 120 bytes above
} FileHeader;
_Static_assert(sizeof(FileHeader) == 128, "the header is 128 bytes on disk");
_Static_assert(offsetof(FileHeader, frame) == 20, "on disk");
_Static_assert(offsetof(FileHeader, total_bytes) == 24, "on disk");
_Static_assert(offsetof(FileHeader, checksum) == 64, "on disk");
_Static_assert(offsetof(FileHeader, header_checksum) == 120, "on disk");

static const unsigned char magic[8] = {0x89, 'S', 'A', 'N', 'C', '\r', '\n', 0x1A};
static const char *const names[2] = {SAND_CACHE_CHECKPOINT_A, SAND_CACHE_CHECKPOINT_B};

static SandStatus join(const char *folder, const char *name, char **path_out, SandError *err)
{
	*path_out = NULL;
	if (folder == NULL || folder[0] == '\0')
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The cache folder is empty; choose a folder");
	}
	size_t bytes = strlen(folder) + strlen(name) + 2;
	*path_out = sand_alloc(bytes, 1);
	if (*path_out == NULL)
	{
		return sand_fail_memory(err, bytes, "a file name");
	}
	snprintf(*path_out, bytes, "%s/%s", folder, name);
	return SAND_OK;
}

static const char *shown(const char *label)
{
	size_t bytes = strlen(label);
	label += bytes > SHOWN_BYTES ? bytes - SHOWN_BYTES : 0;
	while (((unsigned char)*label & 0xC0u) == 0x80u) // not into the middle of a UTF-8 character
	{
		++label;
	}
	return label;
}

static SandStatus check_header(const char *label, const FileHeader *header, uint64_t byte_count, SandError *err)
{
	static const char other[] = "an older checkpoint or the first frame is used instead";
	if (memcmp(header->magic, magic, sizeof magic) != 0 || header->endian_tag != ENDIAN_TAG)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' is not a Barchan checkpoint; %s", label, other);
	}
	if (header->version != SAND_CHECKPOINT_VERSION)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' has checkpoint version %" PRIu32
		                 ", this Barchan reads version %d; update Barchan, or %s",
		                 label, header->version, SAND_CHECKPOINT_VERSION, other);
	}
	uint64_t checksum = sand_hash64(header, offsetof(FileHeader, header_checksum), 0);
	bool is_zero = true;
	for (size_t i = 0; i < sizeof header->reserved; ++i)
	{
		is_zero = is_zero && header->reserved[i] == 0;
	}
	if (header->header_checksum != checksum || header->header_bytes != sizeof *header || !is_zero ||
	    !isfinite(header->seconds))
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s': the header's checksum is %016" PRIx64 ", its bytes give %016" PRIx64
		                 ": it is damaged; %s",
		                 label, header->header_checksum, checksum, other);
	}
	if (header->total_bytes != byte_count)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %" PRIu64 " bytes, its header says %" PRIu64 "; %s", label,
		                 byte_count, header->total_bytes, other);
	}
	return SAND_OK;
}

SandStatus sand_checkpoint_parse(const char *label, const void *bytes, size_t byte_count,
                                 SandCheckpoint *checkpoint_out, SandError *err)
{
	memset(checkpoint_out, 0, sizeof *checkpoint_out);
	label = shown(label);
	FileHeader header;
	if (byte_count < sizeof header)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "'%s' has %zu bytes, a checkpoint has at least %zu: it is damaged",
		                 label, byte_count, sizeof header);
	}
	memcpy(&header, bytes, sizeof header);
	SandStatus status = check_header(label, &header, byte_count, err);
	if (status != SAND_OK)
	{
		return status;
	}
	const unsigned char *state = (const unsigned char *)bytes + sizeof header;
	uint64_t checksum = sand_hash64(state, byte_count - sizeof header, 0);
	if (checksum != header.checksum)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s': the checksum is %016" PRIx64 ", its bytes give %016" PRIx64
		                 ": it is damaged; an older checkpoint or the first frame is used instead",
		                 label, header.checksum, checksum);
	}
	*checkpoint_out = (SandCheckpoint){header.frame,  header.seconds, header.settings_hash,      header.state_hash,
	                                   header.serial, state,          byte_count - sizeof header};
	return SAND_OK;
}

/// The header of a file; false when there is none that verifies. A failing system call other than "not there" is told.
static SandStatus peek(const char *path, FileHeader *header_out, bool *is_good_out, SandError *err)
{
	SandIoFile file;
	*is_good_out = false;
	SandError found = {0};
	SandStatus status = sand_io_open(path, &file, &found);
	if (status == SAND_OK && file.byte_count >= sizeof *header_out)
	{
		status = sand_io_read_at(&file, path, 0, header_out, sizeof *header_out, &found);
		SandError ignored;
		*is_good_out = status == SAND_OK && check_header(path, header_out, file.byte_count, &ignored) == SAND_OK;
	}
	sand_io_close(&file);
	if (status != SAND_OK && found.os_error != ENOENT)
	{
		if (err != NULL)
		{
			*err = found;
		}
		return status;
	}
	return SAND_OK;
}

SandStatus sand_checkpoint_write(const char *folder, const SandCheckpoint *checkpoint, uint64_t *byte_count_out,
                                 SandError *err)
{
	if (!isfinite(checkpoint->seconds) || checkpoint->bytes == NULL || checkpoint->byte_count == 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The checkpoint of frame %" PRId32 " has no bytes or no finite time",
		                 checkpoint->frame);
	}
	char *paths[2] = {NULL, NULL};
	FileHeader headers[2];
	bool is_good[2] = {false, false};
	SandStatus status = SAND_OK;
	for (int i = 0; i < 2 && status == SAND_OK; ++i)
	{
		status = join(folder, names[i], &paths[i], err);
		if (status == SAND_OK)
		{
			status = peek(paths[i], &headers[i], &is_good[i], err);
		}
	}
	if (status == SAND_OK)
	{
		int older = is_good[0] && (!is_good[1] || headers[0].serial > headers[1].serial) ? 1 : 0;
		FileHeader header = {
		    .version = SAND_CHECKPOINT_VERSION,
		    .endian_tag = ENDIAN_TAG,
		    .header_bytes = sizeof header,
		    .frame = checkpoint->frame,
		    .total_bytes = sizeof header + checkpoint->byte_count,
		    .serial = is_good[1 - older] ? headers[1 - older].serial + 1 : 1,
		    .seconds = checkpoint->seconds,
		    .settings_hash = checkpoint->settings_hash,
		    .state_hash = checkpoint->state_hash,
		    .checksum = sand_hash64(checkpoint->bytes, checkpoint->byte_count, 0),
		};
		memcpy(header.magic, magic, sizeof magic);
		header.header_checksum = sand_hash64(&header, offsetof(FileHeader, header_checksum), 0);
		const SandIoPart parts[2] = {{&header, sizeof header}, {checkpoint->bytes, checkpoint->byte_count}};
		status = sand_io_write_file(paths[older], parts, 2, err);
	}
	if (byte_count_out != NULL)
	{
		*byte_count_out = status == SAND_OK ? sizeof(FileHeader) + checkpoint->byte_count : 0;
	}
	sand_free(paths[0]);
	sand_free(paths[1]);
	return status;
}

/// Reads and verifies one file. Damage is a note, not a failure.
static SandStatus read_one(const char *path, SandCheckpoint *checkpoint_out, char *note_out, SandError *err)
{
	SandIoFile file;
	SandStatus status = sand_io_open(path, &file, err);
	if (status != SAND_OK)
	{
		return status;
	}
	size_t byte_count = (size_t)file.byte_count;
	unsigned char *bytes = sand_alloc_raw(byte_count, 1);
	status = bytes == NULL ? sand_fail_memory(err, byte_count, "a checkpoint")
	                       : sand_io_read_at(&file, path, 0, bytes, byte_count, err);
	sand_io_close(&file);
	SandError damage = {0};
	if (status == SAND_OK && sand_checkpoint_parse(path, bytes, byte_count, checkpoint_out, &damage) == SAND_OK)
	{
		// The state to the front of the block, which the caller frees.
		memmove(bytes, checkpoint_out->bytes, checkpoint_out->byte_count);
		checkpoint_out->bytes = bytes;
		return SAND_OK;
	}
	if (status == SAND_OK && note_out != NULL)
	{
		memcpy(note_out, damage.message, SAND_MESSAGE_BYTES);
	}
	sand_free(bytes);
	return status;
}

SandStatus sand_checkpoint_read(const char *folder, uint64_t settings_hash, int32_t last_frame,
                                SandCheckpoint *checkpoint_out, char note_out[SAND_MESSAGE_BYTES], SandError *err)
{
	SandError own_error = {0};
	err = err != NULL ? err : &own_error; // looked at below
	memset(checkpoint_out, 0, sizeof *checkpoint_out);
	if (note_out != NULL)
	{
		note_out[0] = '\0';
	}
	SandStatus status = SAND_OK;
	for (int i = 0; i < 2 && status == SAND_OK; ++i)
	{
		char *path = NULL;
		SandCheckpoint found = {0};
		status = join(folder, names[i], &path, err);
		if (status == SAND_OK)
		{
			status = read_one(path, &found, note_out, err);
			if (status == SAND_ERROR_IO && err->os_error == ENOENT)
			{
				*err = (SandError){0};
				status = SAND_OK;
			}
		}
		sand_free(path);
		bool is_wanted = found.bytes != NULL && found.frame <= last_frame &&
		                 (settings_hash == 0 || found.settings_hash == settings_hash) &&
		                 (checkpoint_out->bytes == NULL || found.serial > checkpoint_out->serial);
		SandCheckpoint loser = is_wanted ? *checkpoint_out : found;
		*checkpoint_out = is_wanted ? found : *checkpoint_out;
		sand_free((void *)loser.bytes);
	}
	if (status != SAND_OK)
	{
		sand_free((void *)checkpoint_out->bytes);
		memset(checkpoint_out, 0, sizeof *checkpoint_out);
	}
	return status;
}
