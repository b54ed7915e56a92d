// planes: the bytes of a chunk's numbers, plane by plane, and the rows that they stand for. The inner loops of codec's
// decoding, built once per instruction set.
// Comes in: planes, one byte of a word per row. Goes out: rows of numbers, in order. What they mean: codec.
#ifndef SAND_PLANES_H
#define SAND_PLANES_H

#include "base.h"

#include <string.h>

#define SAND_PLANES_WORD 4   // planes of a word, at most
#define SAND_PLANES_WIDTH 16 // columns of a row, at most

/// Planes of one column, lowest byte first; those beyond the word's bytes are not looked at.
typedef struct SandPlanesColumn
{
	const unsigned char *bytes[SAND_PLANES_WORD];
} SandPlanesColumn;

/// What words stand for; encodings of codec.h that have words.
typedef struct SandPlanesGrid
{
	uint32_t word_bytes; // 1 .. 4
	double step;
	int32_t origin[3]; // per column
} SandPlanesGrid;

typedef struct SandPlanes
{
	const char *name;
	/// Bytes of even and odd places, in turn: count in all, of which even holds the half rounded up.
	void (*zip)(const unsigned char *even, const unsigned char *odd, size_t count, unsigned char *bytes_out);
	/// Words that are differences to the one before (2d for d >= 0, -2d - 1 for d < 0) to the words, plane by plane; a
	/// plane may become itself.
	void (*add_up)(const SandPlanesColumn *column, uint32_t word_bytes, size_t count,
	               unsigned char *const planes_out[SAND_PLANES_WORD]);
	/// rows_out: count * width floats. width 1 .. 3.
	void (*grid)(const SandPlanesColumn *columns, size_t width, const SandPlanesGrid *grid, size_t count,
	             float *rows_out);
	/// binary16, two planes a column.
	void (*half)(const SandPlanesColumn *columns, size_t width, size_t count, float *rows_out);
	/// Four planes of one column: unit quaternions as codec packs them, four floats a row.
	void (*turn)(const SandPlanesColumn *column, size_t count, float *rows_out);
	/// Four planes a column: the bits themselves.
	void (*exact)(const SandPlanesColumn *columns, size_t width, size_t count, uint32_t *rows_out);
} SandPlanes;

/// The build for an instruction set, "avx2" or "baseline", all with the same results; NULL = the best that runs here.
/// NULL when there is none of that name.
const SandPlanes *sand_planes_find(const char *name_wanted);

// One number each, as the builds and the encoder's check have them.

/// Smallest-three steps on each side of zero, and what makes them of a component up to sqrt(1/2).
#define SAND_PLANES_TURN_HALF 511
#define SAND_PLANES_TURN_SCALE 1.41421356237309504880

static inline float sand_planes_grid_value(double origin, uint32_t word, double step)
{
	return (float)((origin + (double)word) * step); // the sum is exact
}

static inline float sand_planes_half_value(uint32_t word)
{
	// The exponent is moved by a product, which is exact and right for the smallest ones too.
	uint32_t bits = (word & 0x7FFFu) << 13;
	float magnitude;
	memcpy(&magnitude, &bits, sizeof magnitude);
	magnitude *= 0x1p112f;
	memcpy(&bits, &magnitude, sizeof bits);
	bits |= (word & 0x8000u) << 16;
	memcpy(&magnitude, &bits, sizeof magnitude);
	return magnitude;
}

#endif
