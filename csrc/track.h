// track: where something rigid is, over time. Comes in: poses at even times. Goes out: the pose and motion at any time.
#ifndef SAND_TRACK_H
#define SAND_TRACK_H

#include "base.h"

#define SAND_TRACK_NUMBERS 7

/// Poses at begin, begin + interval, ... Between two of them the position goes straight and the turn about one axis,
/// both evenly (the shorter way round); before the first and after the last it stands still.
typedef struct SandTrack
{
	double begin;          // s
	double interval;       // s, > 0; not used with one sample
	const double *samples; // SAND_TRACK_NUMBERS each: position (m), orientation (w x y z, unit within 1e-3)
	int32_t sample_count;  // >= 1
} SandTrack;

typedef struct SandPose
{
	double position[3];    // m
	double orientation[4]; // w x y z, unit
	double velocity[3];    // m/s
	double spin[3];        // rad/s, world axes
} SandPose;

/// Motion from one sample to the next; none after the last one.
typedef struct SandStretch
{
	double turn[4];     // w x y z, unit, at the sample
	double velocity[3]; // m/s
	double spin[3];     // rad/s, world axes
	double spin_size;   // rad/s, its length
} SandStretch;
/// index = of the sample it begins at. Any thread.
void sand_track_stretch(const SandTrack *track, int32_t index, SandStretch *stretch_out);
/// The fastest that any point within reach (m) of the position moves meanwhile, m/s.
double sand_stretch_speed(const SandStretch *stretch, double reach);

/// Where a time falls among count times begin, begin + interval, ...: between `index` and the next, `share` of the way
/// (0 <= share <= 1); or standing at the first or the last one. Exactly at one of them share is 0. Any thread.
typedef struct SandMoment
{
	int32_t index;
	double share;
	bool is_moving;
} SandMoment;
SandMoment sand_moment(double begin, double interval, int32_t count, double time);

/// How many of the first count times begin, begin + interval, ... are not after a time, at least 1.
int32_t sand_sample_count(double begin, double interval, int32_t count, double until);
/// Hash of the track up to a time: of the samples that are not after it.
uint64_t sand_track_hash(const SandTrack *track, double until, uint64_t seed);

/// Names `what` ("Collider", "Body"), its number, the sample and the value (SAND_ERROR_ARGUMENT).
SandStatus sand_track_check(const SandTrack *track, const char *what, int index, SandError *err);

/// At a time exactly between two intervals the motion is that of the later one; at the last sample's it is none. Any
/// thread.
void sand_track_pose(const SandTrack *track, double time, SandPose *pose_out);

/// The fastest that any point within reach (m) of the position moves between two times, m/s.
double sand_track_speed(const SandTrack *track, double from, double to, double reach);

/// v turned by the unit quaternion q, and back.
void sand_turn(const double q[4], const double v[3], double turned_out[3]);
void sand_turn_back(const double q[4], const double v[3], double turned_out[3]);

#endif
