// checkpoint: the simulator's whole state on disk, so that a stopped bake goes on as if it had never stopped.
// Comes in: bytes of sand_sim_save. Goes out: the latest file that verifies. Does not know what the bytes mean.
#include "checkpoint.h"

#include "cache.h"
#include "io.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
	uint64_t motion_hash;       // version 1: zero
	unsigned char reserved[40]; // zero
	uint64_t header_checksum;   // of the 120 bytes above
} FileHeader;
_Static_assert(sizeof(FileHeader) == 128, "the header is 128 bytes on disk");
_Static_assert(offsetof(FileHeader, frame) == 20, "on disk");
_Static_assert(offsetof(FileHeader, total_bytes) == 24, "on disk");
_Static_assert(offsetof(FileHeader, checksum) == 64, "on disk");
_Static_assert(offsetof(FileHeader, motion_hash) == 72, "on disk");
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
	if (header->version < 1 || header->version > SAND_CHECKPOINT_VERSION)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "'%s' has checkpoint version %" PRIu32
		                 ", this Barchan reads versions 1 to %d; update Barchan, or %s",
		                 label, header->version, SAND_CHECKPOINT_VERSION, other);
	}
	uint64_t checksum = sand_hash64(header, offsetof(FileHeader, header_checksum), 0);
	bool is_zero = header->version > 1 || header->motion_hash == 0;
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

/// A header that has been checked, without the state behind it.
static SandCheckpoint describe(const FileHeader *header)
{
	return (SandCheckpoint){
	    .frame = header->frame,
	    .seconds = header->seconds,
	    .settings_hash = header->settings_hash,
	    .motion_hash = header->motion_hash,
	    .state_hash = header->state_hash,
	    .serial = header->serial,
	    .is_kept = header->serial == 0,
	};
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
	*checkpoint_out = describe(&header);
	checkpoint_out->bytes = state;
	checkpoint_out->byte_count = byte_count - sizeof header;
	return SAND_OK;
}

/// The header of a file; when it does not verify *is_good_out is false and damage_out (may be NULL) says why. A failing
/// system call is told, but that the file is not there.
static SandStatus peek(const char *path, FileHeader *header_out, uint64_t *byte_count_out, bool *is_good_out,
                       SandError *damage_out, SandError *err)
{
	SandIoFile file;
	SandError found = {0}, damage = {0};
	*is_good_out = false;
	SandStatus status = sand_io_open(path, &file, &found);
	*byte_count_out = status == SAND_OK ? file.byte_count : 0;
	if (status == SAND_OK && file.byte_count >= sizeof *header_out)
	{
		status = sand_io_read_at(&file, path, 0, header_out, sizeof *header_out, &found);
		*is_good_out = status == SAND_OK && check_header(shown(path), header_out, file.byte_count, &damage) == SAND_OK;
	}
	else if (status == SAND_OK)
	{
		sand_fail(&damage, SAND_ERROR_CACHE, "'%s' has %" PRIu64 " bytes, a checkpoint has at least %zu: it is damaged",
		          shown(path), file.byte_count, sizeof *header_out);
	}
	sand_io_close(&file);
	if (damage_out != NULL)
	{
		*damage_out = damage;
	}
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

/// Where the next one that is not kept goes, and its serial: over the older of the two, or one that does not verify.
static SandStatus choose_turn(const char *folder, char **path_out, uint64_t *serial_out, SandError *err)
{
	char *paths[2] = {NULL, NULL};
	FileHeader headers[2];
	memset(headers, 0, sizeof headers);
	bool is_good[2] = {false, false};
	SandStatus status = SAND_OK;
	for (int i = 0; i < 2 && status == SAND_OK; ++i)
	{
		uint64_t byte_count;
		status = join(folder, names[i], &paths[i], err);
		if (status == SAND_OK)
		{
			status = peek(paths[i], &headers[i], &byte_count, &is_good[i], NULL, err);
		}
	}
	int older = is_good[0] && (!is_good[1] || headers[0].serial > headers[1].serial) ? 1 : 0;
	if (status == SAND_OK)
	{
		*serial_out = is_good[1 - older] ? headers[1 - older].serial + 1 : 1;
		*path_out = paths[older];
		paths[older] = NULL;
	}
	sand_free(paths[0]);
	sand_free(paths[1]);
	return status;
}

SandStatus sand_checkpoint_write(const char *folder, const SandCheckpoint *checkpoint, uint64_t *byte_count_out,
                                 SandError *err)
{
	if (!isfinite(checkpoint->seconds) || checkpoint->bytes == NULL || checkpoint->byte_count == 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The checkpoint of frame %" PRId32 " has no bytes or no finite time",
		                 checkpoint->frame);
	}
	char *path = NULL;
	uint64_t serial = 0;
	SandStatus status;
	if (checkpoint->is_kept)
	{
		char name[32];
		sand_cache_checkpoint_name(checkpoint->frame, name);
		status = join(folder, name, &path, err);
	}
	else
	{
		status = choose_turn(folder, &path, &serial, err);
	}
	if (status == SAND_OK)
	{
		FileHeader header = {
		    .version = SAND_CHECKPOINT_VERSION,
		    .endian_tag = ENDIAN_TAG,
		    .header_bytes = sizeof header,
		    .frame = checkpoint->frame,
		    .total_bytes = sizeof header + checkpoint->byte_count,
		    .serial = serial,
		    .seconds = checkpoint->seconds,
		    .settings_hash = checkpoint->settings_hash,
		    .state_hash = checkpoint->state_hash,
		    .checksum = sand_hash64(checkpoint->bytes, checkpoint->byte_count, 0),
		    .motion_hash = checkpoint->motion_hash,
		};
		memcpy(header.magic, magic, sizeof magic);
		header.header_checksum = sand_hash64(&header, offsetof(FileHeader, header_checksum), 0);
		const SandIoPart parts[2] = {{&header, sizeof header}, {checkpoint->bytes, checkpoint->byte_count}};
		status = sand_io_write_file(path, parts, 2, err);
	}
	if (byte_count_out != NULL)
	{
		*byte_count_out = status == SAND_OK ? sizeof(FileHeader) + checkpoint->byte_count : 0;
	}
	sand_free(path);
	return status;
}

/// Reads and verifies one file. Damage is told in damage_out, not a failure: then checkpoint_out->bytes is NULL.
static SandStatus read_one(const char *path, SandCheckpoint *checkpoint_out, SandError *damage_out, SandError *err)
{
	SandIoFile file;
	memset(checkpoint_out, 0, sizeof *checkpoint_out);
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
	if (status == SAND_OK && sand_checkpoint_parse(path, bytes, byte_count, checkpoint_out, damage_out) == SAND_OK)
	{
		// The state to the front of the block, which the caller frees.
		memmove(bytes, checkpoint_out->bytes, checkpoint_out->byte_count);
		checkpoint_out->bytes = bytes;
		return SAND_OK;
	}
	sand_free(bytes);
	return status;
}

// Listing

typedef struct Listing
{
	SandCheckpointInfo *infos;
	int count, room;
	bool is_short_of_memory;
} Listing;

static bool visit(void *context, const char *name, uint64_t byte_count)
{
	Listing *listing = context;
	bool is_kept;
	int32_t frame = 0;
	if (!sand_cache_is_checkpoint(name, &is_kept, &frame))
	{
		return true;
	}
	if (listing->count == listing->room)
	{
		int room = 2 * listing->room + 8;
		SandCheckpointInfo *infos = sand_alloc((size_t)room, sizeof *infos);
		if (infos == NULL)
		{
			listing->is_short_of_memory = true;
			return false;
		}
		if (listing->count > 0)
		{
			memcpy(infos, listing->infos, (size_t)listing->count * sizeof *infos);
		}
		sand_free(listing->infos);
		listing->infos = infos;
		listing->room = room;
	}
	SandCheckpointInfo *info = &listing->infos[listing->count++];
	snprintf(info->name, sizeof info->name, "%s", name);
	info->byte_count = byte_count;
	info->checkpoint.is_kept = is_kept;
	info->checkpoint.frame = frame;
	return true;
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(((const SandCheckpointInfo *)left)->name, ((const SandCheckpointInfo *)right)->name);
}

/// By name and size alone; of a kept one the frame is known too.
static SandStatus list_names(const char *folder, Listing *listing, SandError *err)
{
	*listing = (Listing){0};
	SandStatus status = sand_io_list_folder(folder, visit, listing, err);
	if (status == SAND_OK && listing->is_short_of_memory)
	{
		status = sand_fail_memory(err, 2 * (size_t)listing->room * sizeof *listing->infos, "the list of checkpoints");
	}
	if (status != SAND_OK)
	{
		sand_free(listing->infos);
		*listing = (Listing){0};
	}
	else if (listing->count > 1)
	{
		qsort(listing->infos, (size_t)listing->count, sizeof *listing->infos, compare_names);
	}
	return status;
}

/// What the file says, by its header or all its bytes.
static SandStatus look_into(const char *folder, bool is_verified, SandCheckpointInfo *info, SandError *err)
{
	char *path = NULL;
	bool is_named_kept = info->checkpoint.is_kept;
	int32_t named_frame = info->checkpoint.frame;
	SandStatus status = join(folder, info->name, &path, err);
	if (status != SAND_OK)
	{
		return status;
	}
	FileHeader header;
	SandError damage = {0};
	bool is_good = false;
	status = peek(path, &header, &info->byte_count, &is_good, &damage, err);
	info->checkpoint = is_good ? describe(&header) : (SandCheckpoint){0};
	if (is_good && (is_named_kept != info->checkpoint.is_kept || (is_named_kept && header.frame != named_frame)))
	{
		sand_fail(&damage, SAND_ERROR_CACHE, "'%s' holds the checkpoint of frame %" PRId32 ": it was renamed",
		          shown(path), header.frame);
		is_good = false;
	}
	if (status == SAND_OK && is_good && is_verified)
	{
		SandCheckpoint found;
		status = read_one(path, &found, &damage, err);
		is_good = found.bytes != NULL;
		sand_free((void *)found.bytes);
	}
	if (!is_good && damage.message[0] == '\0')
	{
		snprintf(damage.message, sizeof damage.message, "'%s' is not there any more", shown(path));
	}
	memcpy(info->error, damage.message, sizeof info->error);
	sand_free(path);
	return status;
}

SandStatus sand_checkpoint_list(const char *folder, bool is_verified, SandCheckpointInfo **infos_out, int *count_out,
                                SandError *err)
{
	Listing listing;
	*infos_out = NULL;
	*count_out = 0;
	SandStatus status = list_names(folder, &listing, err);
	for (int i = 0; i < listing.count && status == SAND_OK; ++i)
	{
		status = look_into(folder, is_verified, &listing.infos[i], err);
	}
	if (status != SAND_OK)
	{
		sand_free(listing.infos);
		return status;
	}
	*infos_out = listing.infos;
	*count_out = listing.count;
	return SAND_OK;
}

SandStatus sand_checkpoint_kept_bytes(const char *folder, uint64_t *byte_count_out, SandError *err)
{
	Listing listing;
	*byte_count_out = 0;
	SandStatus status = list_names(folder, &listing, err);
	for (int i = 0; i < listing.count; ++i)
	{
		*byte_count_out += listing.infos[i].checkpoint.is_kept ? listing.infos[i].byte_count : 0;
	}
	sand_free(listing.infos);
	return status;
}

SandStatus sand_checkpoint_drop_kept(const char *folder, uint64_t *byte_count_out, SandError *err)
{
	Listing listing;
	*byte_count_out = 0;
	SandStatus status = list_names(folder, &listing, err);
	const SandCheckpointInfo *first = NULL;
	for (int i = 0; i < listing.count; ++i)
	{
		const SandCheckpointInfo *info = &listing.infos[i];
		if (info->checkpoint.is_kept && (first == NULL || info->checkpoint.frame < first->checkpoint.frame))
		{
			first = info;
		}
	}
	char *path = NULL;
	if (status == SAND_OK && first != NULL)
	{
		status = join(folder, first->name, &path, err);
		status = status == SAND_OK ? sand_io_remove_own_file(path, err) : status;
		*byte_count_out = status == SAND_OK ? first->byte_count : 0;
	}
	sand_free(path);
	sand_free(listing.infos);
	return status;
}

// Reading

/// Latest frame first, of two of the same frame the one written later.
static int compare_latest(const void *left, const void *right)
{
	const SandCheckpoint *a = &((const SandCheckpointInfo *)left)->checkpoint;
	const SandCheckpoint *b = &((const SandCheckpointInfo *)right)->checkpoint;
	return a->frame != b->frame ? (a->frame < b->frame) - (a->frame > b->frame)
	                            : (a->serial < b->serial) - (a->serial > b->serial);
}

SandStatus sand_checkpoint_read(const char *folder, uint64_t settings_hash, int32_t last_frame,
                                SandCheckpoint *checkpoint_out, char note_out[SAND_MESSAGE_BYTES], SandError *err)
{
	memset(checkpoint_out, 0, sizeof *checkpoint_out);
	char ignored[SAND_MESSAGE_BYTES];
	char *note = note_out != NULL ? note_out : ignored;
	note[0] = '\0';
	SandCheckpointInfo *infos = NULL;
	int count = 0;
	SandStatus status = sand_checkpoint_list(folder, false, &infos, &count, err);
	if (count > 1)
	{
		qsort(infos, (size_t)count, sizeof *infos, compare_latest);
	}
	for (int i = 0; i < count; ++i)
	{
		if (infos[i].error[0] != '\0')
		{
			memcpy(note, infos[i].error, SAND_MESSAGE_BYTES);
		}
	}
	for (int i = 0; i < count && status == SAND_OK && checkpoint_out->bytes == NULL; ++i)
	{
		const SandCheckpointInfo *info = &infos[i];
		SandError damage = {0}, failure = {0};
		bool is_wanted = info->error[0] == '\0' && info->checkpoint.frame <= last_frame &&
		                 (settings_hash == 0 || info->checkpoint.settings_hash == settings_hash);
		char *path = NULL;
		status = is_wanted ? join(folder, info->name, &path, err) : SAND_OK;
		if (is_wanted && status == SAND_OK)
		{
			status = read_one(path, checkpoint_out, &damage, &failure);
			if (status == SAND_ERROR_IO && failure.os_error == ENOENT)
			{
				status = SAND_OK; // somebody freed it
			}
			else if (status != SAND_OK && err != NULL)
			{
				*err = failure;
			}
		}
		sand_free(path);
		if (damage.message[0] != '\0')
		{
			memcpy(note, damage.message, SAND_MESSAGE_BYTES);
		}
	}
	sand_free(infos);
	return status;
}
