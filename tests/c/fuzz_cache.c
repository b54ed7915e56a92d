// fuzz_cache: bytes from the fuzzer as frames and checkpoints: refused by name or harmless, never a crash, never a
// leak. Built with clang's libFuzzer by `python3 setup.py test fuzz`; seeds in tests/corpus. The first byte chooses:
// bit 0 makes the checksums right, so that what lies behind them is reached; bit 1 splits the bytes into a frame and
// its base; bit 2 takes them for a checkpoint; bit 3 reads every third element only.
#include "cache.h"
#include "checkpoint.h"

#include <stdlib.h>
#include <string.h>

#define MEMORY_LIMIT ((uint64_t)1 << 26) // of one decoded frame: the fuzzer is after mistakes, not after memory

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Places in a file, from docs/cache-format.md.
enum
{
	AT_VERSION = 8,
	AT_ARRAY_COUNT = 20,
	AT_LAYOUT_HASH = 24,
	AT_TOTAL_BYTES = 32,
	AT_COUNT = 44,
	AT_TABLE_CHECKSUM = 72,
	AT_EXACT_COUNT = 112,
	AT_BASE_IDENTITY = 120,
	AT_NOTES_CHECKSUM = 208,
	AT_NOTE_BYTES = 216,
	ENTRY_COMPONENTS = 28,
	ENTRY_OFFSET = 32,
	ENTRY_BYTES = 40,
	ENTRY_CHECKSUM = 48,
	ENTRY_ENCODING = 56,
	PIECE_BYTES = 16,
};

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

static void put_u64(unsigned char *bytes, size_t at, uint64_t value)
{
	memcpy(bytes + at, &value, sizeof value);
}

/// The pieces of one array, and its directory.
static void sign_array(unsigned char *bytes, size_t size, unsigned char *entry)
{
	uint64_t offset = get_u64(entry, ENTRY_OFFSET);
	uint32_t count = get_u32(bytes, AT_COUNT);
	uint64_t piece_count = (uint64_t)sand_codec_chunk_count(count) * sand_codec_level_count(count);
	uint64_t exact = get_u32(entry, ENTRY_ENCODING) == 0
	                     ? 0
	                     : (uint64_t)get_u32(bytes, AT_EXACT_COUNT) * get_u32(entry, ENTRY_COMPONENTS) * 4;
	uint32_t encoding = get_u32(entry, ENTRY_ENCODING);
	if (encoding == 4 || encoding == 5) // no pieces: one row, or nothing
	{
		piece_count = 0;
		exact = encoding == 4 ? (uint64_t)get_u32(entry, ENTRY_COMPONENTS) * 4 : 0;
	}
	uint64_t lead = piece_count * PIECE_BYTES + exact;
	if (offset > size || lead > size - offset)
	{
		return;
	}
	uint64_t at = offset + lead;
	for (uint64_t i = 0; i < piece_count; ++i)
	{
		unsigned char *piece = bytes + offset + i * PIECE_BYTES;
		uint32_t piece_bytes = get_u32(piece, 8);
		if (piece_bytes > size - at)
		{
			break;
		}
		put_u64(piece, 0, sand_hash64(bytes + at, piece_bytes, 0));
		at += piece_bytes;
	}
	put_u64(entry, ENTRY_CHECKSUM, sand_hash64(bytes + offset, (size_t)lead, 0));
}

/// Makes every checksum right. base_identity 0: left alone. Returns the frame's identity.
static uint64_t sign(unsigned char *bytes, size_t size, uint64_t base_identity)
{
	if (size < 256)
	{
		return 0;
	}
	bool is_old = get_u32(bytes, AT_VERSION) == 1;
	size_t header_bytes = is_old ? 128 : 256, entry_bytes = is_old ? 64 : 128;
	uint64_t array_count = get_u32(bytes, AT_ARRAY_COUNT), layout = 0;
	put_u64(bytes, AT_TOTAL_BYTES, size);
	if (array_count <= SAND_CACHE_ARRAY_LIMIT && header_bytes + array_count * entry_bytes <= size)
	{
		for (uint64_t i = 0; i < array_count; ++i)
		{
			unsigned char *entry = bytes + header_bytes + i * entry_bytes;
			uint64_t offset = get_u64(entry, ENTRY_OFFSET), length = get_u64(entry, ENTRY_BYTES);
			layout = sand_hash64(entry, ENTRY_OFFSET, layout);
			if (is_old && offset <= size && length <= size - offset)
			{
				put_u64(entry, ENTRY_CHECKSUM, sand_hash64(bytes + offset, (size_t)length, 0));
			}
			else if (!is_old)
			{
				sign_array(bytes, size, entry);
			}
		}
		put_u64(bytes, AT_LAYOUT_HASH, layout);
		put_u64(bytes, AT_TABLE_CHECKSUM, sand_hash64(bytes + header_bytes, (size_t)(array_count * entry_bytes), 0));
	}
	if (base_identity != 0 && !is_old)
	{
		put_u64(bytes, AT_BASE_IDENTITY, base_identity);
	}
	uint32_t note_bytes = is_old ? 0 : get_u32(bytes, AT_NOTE_BYTES);
	if (note_bytes > 0 && note_bytes <= size)
	{
		put_u64(bytes, AT_NOTES_CHECKSUM, sand_hash64(bytes + size - note_bytes, note_bytes, 0));
	}
	size_t at = header_bytes - 8;
	put_u64(bytes, at, sand_hash64(bytes, at, 0));
	return get_u64(bytes, at);
}

static bool is_too_large(const unsigned char *bytes, size_t size)
{
	return size >= 48 && (uint64_t)get_u32(bytes, AT_COUNT) * SAND_CACHE_ARRAY_LIMIT * 64 > MEMORY_LIMIT;
}

static void parse_frame(unsigned char *bytes, size_t size, unsigned mode)
{
	size_t base_size = 0;
	if ((mode & 2u) != 0 && size >= 4)
	{
		base_size = get_u32(bytes, 0) % (size - 3);
		bytes += 4;
		size -= 4 + base_size;
	}
	// Blocks of exactly their size: an overrun is seen.
	unsigned char *own = malloc(size + (size == 0)), *base = malloc(base_size + (base_size == 0));
	if (own == NULL || base == NULL)
	{
		abort();
	}
	memcpy(base, bytes, base_size);
	memcpy(own, bytes + base_size, size);
	if ((mode & 1u) != 0)
	{
		uint64_t identity = sign(base, base_size, 0);
		sign(own, size, identity);
	}
	if (!is_too_large(own, size) && !is_too_large(base, base_size))
	{
		SandCacheFrame frame;
		SandError err = {0};
		SandCacheWanted wanted = {.every = (mode & 8u) != 0 ? 3 : 1, .thread_count = 1, .has_notes = true};
		SandStatus status =
		    sand_cache_parse("bytes", own, size, base_size > 0 ? base : NULL, base_size, &wanted, &frame, &err);
		if (status == SAND_OK)
		{
			// Everything that is handed out can be read.
			uint64_t sum = 0;
			for (int i = 0; i < frame.array_count; ++i)
			{
				size_t bytes_of = (size_t)frame.count * frame.arrays[i].component_count * 4;
				sum += sand_hash64(frame.arrays[i].data, bytes_of, 0);
			}
			sum += sand_hash64(frame.notes, frame.note_bytes, 0);
			if (sum == 0 && frame.count > 0 && frame.array_count > 1)
			{
				abort(); // as good as impossible
			}
			sand_cache_frame_free(&frame);
		}
		else if (err.status != status || err.message[0] == '\0' || frame.block != NULL)
		{
			abort();
		}
	}
	free(own);
	free(base);
}

static void parse_checkpoint(unsigned char *bytes, size_t size, unsigned mode)
{
	if ((mode & 1u) != 0 && size >= 128)
	{
		put_u64(bytes, 24, size);
		put_u64(bytes, 64, sand_hash64(bytes + 128, size - 128, 0));
		put_u64(bytes, 120, sand_hash64(bytes, 120, 0));
	}
	SandCheckpoint checkpoint;
	SandError err = {0};
	SandStatus status = sand_checkpoint_parse("bytes", bytes, size, &checkpoint, &err);
	if ((status == SAND_OK) != (checkpoint.bytes != NULL) || (status != SAND_OK && err.message[0] == '\0'))
	{
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
	{
		return 0;
	}
	unsigned char *copy = malloc(size);
	if (copy == NULL)
	{
		abort();
	}
	memcpy(copy, data + 1, size - 1);
	if ((data[0] & 4u) != 0)
	{
		parse_checkpoint(copy, size - 1, data[0]);
	}
	else
	{
		parse_frame(copy, size - 1, data[0]);
	}
	free(copy);
	if (sand_alloc_bytes() != 0)
	{
		abort();
	}
	return 0;
}
