// codec: one array of a frame as bytes, and back. Comes in: floats or whole numbers. Goes out: small pieces that can be
// decoded one by one, on any thread. Knows no file and no physics. Byte by byte: docs/cache-format.md.
// An array is cut into chunks of consecutive rows, a chunk into levels: level 0 holds every 64th row, each next level
// the rows half way between those before. So every k-th row is the beginning of each chunk, for k = 2, 4 .. 64.
#ifndef SAND_CODEC_H
#define SAND_CODEC_H

#include "base.h"

#define SAND_CODEC_CHUNK 32768u    // rows
#define SAND_CODEC_LEVELS 7u       // of an array with SAND_CODEC_SMALL rows or more, else 1
#define SAND_CODEC_SMALL 4096u     // rows
#define SAND_CODEC_COMPONENTS 16u  // numbers in a row, at most
#define SAND_CODEC_DEFAULT_LEVEL 1 // zstd's

typedef enum SandEncoding
{
	SAND_ENCODING_EXACT = 0, // the bits as they are
	SAND_ENCODING_GRID = 1,  // 1 to 3 floats: the nearest point of a grid through the origin
	SAND_ENCODING_TURN = 2, // 4 floats, a unit quaternion: the three smaller components, 10 bits each; the sign is lost
	SAND_ENCODING_HALF = 3, // floats as IEEE 754 binary16
	SAND_ENCODING_ONE = 4,  // every row is the same one. Not coded here: the cache keeps that row
	SAND_ENCODING_SAME = 5, // every row is as in the base. Not coded here: nothing is kept
	SAND_ENCODING_COUNT
} SandEncoding;

/// How one array is coded. A file holds it, so every field is checked by sand_codec_is_valid before it is used.
typedef struct SandCodec
{
	uint32_t is_int;          // 1: int32, which is always EXACT
	uint32_t component_count; // 1 .. SAND_CODEC_COMPONENTS
	uint32_t encoding;        // SandEncoding
	uint32_t word_bytes;      // bytes of one coded number, 1 .. 4
	double step;              // GRID: distance of the grid's planes; else 0
	int32_t origin[3];        // GRID: first plane in use per component; else 0
	float quantum;            // HALF, not in a file: numbers are rounded to multiples of this power of two; 0 = not
} SandCodec;

/// One piece: the rows of one level of one chunk.
typedef struct SandCodecPiece
{
	uint64_t checksum; // of its bytes
	uint32_t byte_count;
	uint32_t stored_count; // rows in it; the others are as in the base
} SandCodecPiece;
_Static_assert(sizeof(SandCodecPiece) == 16, "a piece is 16 bytes in a file's directory");

uint32_t sand_codec_level_count(uint32_t row_count);
uint32_t sand_codec_chunk_count(uint32_t row_count);
/// Rows of one level of one chunk.
uint32_t sand_codec_piece_rows(uint32_t row_count, uint32_t chunk, uint32_t level);
/// Levels to decode for every `every`-th row.
uint32_t sand_codec_levels_for(uint32_t row_count, uint32_t every);
bool sand_codec_is_valid(const SandCodec *codec);

/// Fills word_bytes, step and origin for these rows from is_int, component_count and the wanted encoding, which is not
/// ONE or SAME. Falls back to EXACT when a row cannot be coded as wanted: not finite, too far out, too large, no unit
/// quaternion. tolerance: largest distance that a row may be moved; HALF: by more than binary16 does where that is
/// less, 0 = never.
void sand_codec_plan(SandCodec *codec, const void *rows, uint32_t row_count, double tolerance);

/// Working memory of one thread, either to encode or to decode. zstd allocates with sand_alloc too. NULL when memory is
/// short.
typedef struct SandCodecScratch SandCodecScratch;
SandCodecScratch *sand_codec_scratch_create(bool is_encoder);
void sand_codec_scratch_destroy(SandCodecScratch *scratch); // NULL is fine

/// Most bytes that encoding one chunk can take.
size_t sand_codec_chunk_bound(const SandCodec *codec, uint32_t row_count, uint32_t chunk);

/// Encodes one chunk into bytes_out (room: sand_codec_chunk_bound), pieces_out (one per level) and, unless it is NULL,
/// decoded_out: the whole array as a reader will see it, of which the chunk's rows are filled. Rows that decode to the
/// same bits as in base (whole array, NULL = none) are left out. *error_out becomes the largest error of a row: GRID a
/// distance, TURN an angle in radians, HALF per component, EXACT 0. zstd_level 0 = not compressed.
/// Returns the bytes written; SIZE_MAX when zstd found no memory.
size_t sand_codec_encode(SandCodecScratch *scratch, const SandCodec *codec, const void *rows, const void *base,
                         uint32_t row_count, uint32_t chunk, int zstd_level, unsigned char *bytes_out,
                         SandCodecPiece *pieces_out, void *decoded_out, double *error_out);

/// Decodes the levels of one chunk that hold its every `every`-th rows (sand_codec_levels_for) into rows_out: the array
/// of all rows, or of every `every`-th. pieces: of the chunk's levels; bytes: theirs, one behind the other. Rows that
/// are not stored are left alone. Checks the checksum and every length; returns NULL, or what is wrong with the piece
/// of *level_out.
const char *sand_codec_decode(SandCodecScratch *scratch, const SandCodec *codec, const SandCodecPiece *pieces,
                              const unsigned char *bytes, uint32_t row_count, uint32_t chunk, uint32_t every,
                              void *rows_out, uint32_t *level_out);

#endif
