// between: grains at a time between two frames. Comes in: their states on both. Goes out: where they are in between,
// for the sub-frames of motion blur and for slow motion. Knows no file.
#ifndef SAND_BETWEEN_H
#define SAND_BETWEEN_H

#include "base.h"

/// Two states of the same grains, [0] on the frame before and [1] on the frame after, and room for the one between.
/// Arrays are the caller's, none overlaps another.
typedef struct SandBetween
{
	uint32_t count;          // grains
	double share;            // 0 = before .. 1 = after
	double seconds;          // between the frames; 0 when unknown: then places go straight
	const float *place[2];   // xyz, m
	const float *speed[2];   // xyz, m/s; NULL when unknown: then places go straight
	const float *turn[2];    // unit quaternions w x y z, of either sign; NULL = not wanted
	const int32_t *flags[2]; // NULL = all grains are there on both frames
	int32_t absent;          // bits of flags of a grain that is not there: not yet born, taken away
	float *place_out;
	float *speed_out; // NULL = not wanted; needs speed
	float *turn_out;  // NULL = not wanted; needs turn
	int thread_count; // 0 = one per core; any number gives the same bits
} SandBetween;

/// A grain whose displacement agrees with its speeds on both frames goes on the cubic through both places with both
/// speeds (Hermite), which for free fall is the exact parabola. One that was hit in between goes straight: the cubic
/// would swing out of its way. One that is there on one frame only moves from there with its speed. Turns go the
/// shorter way round, on the chord, normalised. Fails: SAND_ERROR_ARGUMENT (share outside 0 .. 1, seconds negative or
/// not finite), SAND_ERROR_MEMORY (no thread could be started).
SandStatus sand_between(const SandBetween *between, SandError *err);

#endif
