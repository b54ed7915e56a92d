// track: where something rigid is, over time.
// Comes in: poses at even times. Goes out: the pose and motion at any time.
//
// Between two samples the turn is q(t) = exp(t w / 2) q0 with one spin w in world axes (Shoemake 1985), so position and
// orientation change evenly and the motion told is exactly the derivative of the pose.
//
// shaders/track.glsl is the twin of sand_moment, sand_track_pose and the turns, same bits. What it cannot compute, the
// stretches, it reads from a table that is made of sand_track_stretch.
#include "track.h"

#include <assert.h>
#include <math.h>

// Samples are normalised before use; more than this away from unit length is no rounding but an error.
#define UNIT_TOLERANCE 1e-3

static const double *sample_of(const SandTrack *track, int32_t index)
{
	return track->samples + (size_t)index * SAND_TRACK_NUMBERS;
}

static double length_of(const double *v, int count)
{
	double square = 0;
	for (int k = 0; k < count; ++k)
	{
		square += v[k] * v[k];
	}
	return sqrt(square);
}

static void unit_orientation(const double *sample, double q_out[4])
{
	double length = length_of(sample + 3, 4);
	for (int k = 0; k < 4; ++k)
	{
		q_out[k] = sample[3 + k] / length;
	}
}

static void multiply(const double a[4], const double b[4], double out[4])
{
	out[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
	out[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
	out[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
	out[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
}

void sand_track_stretch(const SandTrack *track, int32_t index, SandStretch *stretch)
{
	*stretch = (SandStretch){.spin_size = 0};
	const double *here = sample_of(track, index), *next = here + SAND_TRACK_NUMBERS;
	double to[4], relative[4];
	unit_orientation(here, stretch->turn);
	if (index + 1 >= track->sample_count)
	{
		return;
	}
	unit_orientation(next, to);
	const double back[4] = {stretch->turn[0], -stretch->turn[1], -stretch->turn[2], -stretch->turn[3]};
	multiply(to, back, relative);
	// q and -q are one orientation: the one with w >= 0 turns by half a turn at most.
	double sign = relative[0] < 0 ? -1 : 1, sine = length_of(relative + 1, 3);
	double rate = sine > 0 ? sign * 2 * atan2(sine, sign * relative[0]) / (sine * track->interval) : 0;
	for (int k = 0; k < 3; ++k)
	{
		stretch->velocity[k] = (next[k] - here[k]) / track->interval;
		stretch->spin[k] = rate * relative[1 + k];
	}
	stretch->spin_size = length_of(stretch->spin, 3);
}

// cos(a) and sin(a) / a of the square of a, to the terms below 1e-17 at a quarter turn. No library sine, so that every
// machine and every shader gives the same bits.
static double cosine(double square)
{
	double sum = 1;
	for (int k = 22; k > 0; k -= 2)
	{
		sum = 1 - square / (k * (k - 1)) * sum;
	}
	return sum;
}

static double sine_ratio(double square)
{
	double sum = 1;
	for (int k = 23; k > 1; k -= 2)
	{
		sum = 1 - square / (k * (k - 1)) * sum;
	}
	return sum;
}

SandMoment sand_moment(double begin, double interval, int32_t count, double time)
{
	if (count < 2 || time < begin)
	{
		return (SandMoment){0, 0, false};
	}
	if (!(time < begin + (count - 1) * interval))
	{
		return (SandMoment){count - 1, 0, false};
	}
	// The quotient's rounding must not put a sample's own time into the interval before it.
	double quotient = floor((time - begin) / interval);
	int32_t index = quotient > count - 2 ? count - 2 : (int32_t)quotient;
	if (time < begin + index * interval && index > 0)
	{
		--index;
	}
	else if (index < count - 2 && time >= begin + (index + 1) * interval)
	{
		++index;
	}
	double share = (time - (begin + index * interval)) / interval;
	return (SandMoment){index, share < 1 ? share : 1, true};
}

SandStatus sand_track_check(const SandTrack *track, const char *what, int index, SandError *err)
{
	if (track->sample_count < 1 || track->samples == NULL)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "%s %d: its track has %d samples, expected at least 1", what, index,
		                 track->samples == NULL ? 0 : (int)track->sample_count);
	}
	int32_t count = track->sample_count;
	if (!isfinite(track->begin))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "%s %d: its track begins at %g s, expected a finite time", what,
		                 index, track->begin);
	}
	if (count > 1 && !(track->interval > 0 && isfinite(track->begin + count * track->interval)))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "%s %d: its track has an interval of %g s between samples, expected a finite one above 0",
		                 what, index, track->interval);
	}
	for (int32_t i = 0; i < count; ++i)
	{
		const double *sample = sample_of(track, i);
		for (int k = 0; k < SAND_TRACK_NUMBERS; ++k)
		{
			if (!isfinite(sample[k]))
			{
				return sand_fail(err, SAND_ERROR_ARGUMENT,
				                 "%s %d: sample %d of its track has %g as its %s, expected a finite number", what,
				                 index, (int)i, sample[k], k < 3 ? "position" : "orientation");
			}
		}
		double length = length_of(sample + 3, 4);
		if (!(fabs(length - 1) <= UNIT_TOLERANCE))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "%s %d: sample %d of its track has an orientation of length %g, expected 1 (w, x, y, z of "
			                 "a unit quaternion)",
			                 what, index, (int)i, length);
		}
	}
	for (int32_t i = 0; i + 1 < count; ++i)
	{
		SandStretch stretch;
		sand_track_stretch(track, i, &stretch);
		double speed = length_of(stretch.velocity, 3) + stretch.spin_size;
		if (!isfinite(speed))
		{
			return sand_fail(err, SAND_ERROR_ARGUMENT,
			                 "%s %d: its track goes infinitely fast after sample %d; give nearer places or a longer "
			                 "interval than %g s",
			                 what, index, (int)i, track->interval);
		}
	}
	return SAND_OK;
}

void sand_track_pose(const SandTrack *track, double time, SandPose *pose_out)
{
	SandMoment moment = sand_moment(track->begin, track->interval, track->sample_count, time);
	const double *sample = sample_of(track, moment.index);
	*pose_out = (SandPose){.position = {sample[0], sample[1], sample[2]}};
	if (!moment.is_moving)
	{
		unit_orientation(sample, pose_out->orientation);
		return;
	}
	SandStretch stretch;
	sand_track_stretch(track, moment.index, &stretch);
	double since = moment.share * track->interval, half = 0.5 * since * stretch.spin_size, square = half * half;
	double turn[4] = {cosine(square), 0, 0, 0}, scale = 0.5 * since * sine_ratio(square);
	for (int k = 0; k < 3; ++k)
	{
		pose_out->position[k] = sample[k] + since * stretch.velocity[k];
		pose_out->velocity[k] = stretch.velocity[k];
		pose_out->spin[k] = stretch.spin[k];
		turn[1 + k] = scale * stretch.spin[k];
	}
	multiply(turn, stretch.turn, pose_out->orientation);
}

// |v + w x r| over the ball |r| <= reach: w x r fills the disc across w with radius |w| reach, so the part of v across
// w adds to it and the part along w does not.
double sand_stretch_speed(const SandStretch *stretch, double reach)
{
	double spin = stretch->spin_size, along = 0, across[3];
	for (int k = 0; k < 3 && spin > 0; ++k)
	{
		along += stretch->velocity[k] * stretch->spin[k] / spin;
	}
	for (int k = 0; k < 3; ++k)
	{
		across[k] = stretch->velocity[k] - (spin > 0 ? along * stretch->spin[k] / spin : 0);
	}
	return hypot(length_of(across, 3) + spin * reach, along);
}

int32_t sand_sample_count(double begin, double interval, int32_t count, double until)
{
	// Times are sums of rounded intervals: one that is just missed counts.
	double last = interval > 0 ? floor((until - begin) / interval + 1e-6) : 0;
	return last >= (double)count ? count : last < 1 ? 1 : (int32_t)last + 1 < count ? (int32_t)last + 1 : count;
}

uint64_t sand_track_hash(const SandTrack *track, double until, uint64_t seed)
{
	int32_t count = sand_sample_count(track->begin, track->interval, track->sample_count, until);
	const double times[3] = {track->begin, track->sample_count > 1 ? track->interval : 0, count};
	return sand_hash64(track->samples, SAND_TRACK_NUMBERS * (size_t)count * sizeof(double),
	                   sand_hash64(times, sizeof(times), seed));
}

double sand_track_speed(const SandTrack *track, double from, double to, double reach)
{
	assert(from <= to);
	double speed = 0;
	if (track->sample_count < 2 || to < track->begin)
	{
		return 0;
	}
	SandMoment first = sand_moment(track->begin, track->interval, track->sample_count, from);
	SandMoment last = sand_moment(track->begin, track->interval, track->sample_count, to);
	for (int32_t i = first.index; i <= last.index && i + 1 < track->sample_count; ++i)
	{
		SandStretch stretch;
		sand_track_stretch(track, i, &stretch);
		speed = fmax(speed, sand_stretch_speed(&stretch, reach));
	}
	return speed;
}

void sand_turn(const double q[4], const double v[3], double turned_out[3])
{
	// v + 2 w (u x v) + 2 u x (u x v) with q = (w, u).
	const double x[3] = {2 * (q[2] * v[2] - q[3] * v[1]), 2 * (q[3] * v[0] - q[1] * v[2]),
	                     2 * (q[1] * v[1] - q[2] * v[0])};
	const double turned[3] = {v[0] + q[0] * x[0] + q[2] * x[2] - q[3] * x[1],
	                          v[1] + q[0] * x[1] + q[3] * x[0] - q[1] * x[2],
	                          v[2] + q[0] * x[2] + q[1] * x[1] - q[2] * x[0]};
	for (int k = 0; k < 3; ++k)
	{
		turned_out[k] = turned[k];
	}
}

void sand_turn_back(const double q[4], const double v[3], double turned_out[3])
{
	const double back[4] = {q[0], -q[1], -q[2], -q[3]};
	sand_turn(back, v, turned_out);
}
