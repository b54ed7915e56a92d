// track: where something rigid is, over time. Comes in: a table of the track. Goes out: pose and motion at any time.
// The twin of csrc/track.c, same bits. A track is known by the place of its first number in the table, which
// csrc/glcollider.c makes: SAND_TRACK_HEAD numbers (begin, interval, samples), then SAND_TRACK_ROW per sample.
#ifndef SAND_TRACK_GLSL
#define SAND_TRACK_GLSL
#include "vector.glsl"

layout(std430, binding = SAND_BIND_TRACKS) readonly buffer TrackBlock
{
	double tracks[];
};

struct Moment
{
	int index;
	double share;
	bool is_moving;
};

struct Pose
{
	dvec3 position;    // m
	dvec4 orientation; // w x y z, unit
	dvec3 velocity;    // m/s
	dvec3 spin;        // rad/s, world axes
};

Moment moment_at(double begin, double interval, int count, double time)
{
	precise double end = begin + double(count - 1) * interval;
	if (count < 2 || time < begin)
	{
		return Moment(0, 0.0lf, false);
	}
	if (!(time < end))
	{
		return Moment(count - 1, 0.0lf, false);
	}
	// The quotient's rounding must not put a sample's own time into the interval before it.
	precise double quotient = floor((time - begin) / interval);
	int index = quotient > double(count - 2) ? count - 2 : int(quotient);
	precise double here = begin + double(index) * interval, next = begin + double(index + 1) * interval;
	if (time < here && index > 0)
	{
		--index;
	}
	else if (index < count - 2 && time >= next)
	{
		++index;
	}
	precise double share = (time - (begin + double(index) * interval)) / interval;
	return Moment(index, share < 1.0lf ? share : 1.0lf, true);
}

Moment track_moment(int track, double time)
{
	return moment_at(tracks[track], tracks[track + 1], int(tracks[track + 2]), time);
}

dvec3 track_vector(int at)
{
	return dvec3(tracks[at], tracks[at + 1], tracks[at + 2]);
}

// cos(a) and sin(a) / a of the square of a.
double track_cosine(double square)
{
	precise double sum = 1.0lf;
	for (int k = 22; k > 0; k -= 2)
	{
		sum = 1.0lf - square / double(k * (k - 1)) * sum;
	}
	return sum;
}

double track_sine_ratio(double square)
{
	precise double sum = 1.0lf;
	for (int k = 23; k > 1; k -= 2)
	{
		sum = 1.0lf - square / double(k * (k - 1)) * sum;
	}
	return sum;
}

dvec4 quaternion_product(dvec4 a, dvec4 b)
{
	precise dvec4 q =
	    dvec4(a.x * b.x - a.y * b.y - a.z * b.z - a.w * b.w, a.x * b.y + a.y * b.x + a.z * b.w - a.w * b.z,
	          a.x * b.z - a.y * b.w + a.z * b.x + a.w * b.y, a.x * b.w + a.y * b.z - a.z * b.y + a.w * b.x);
	return q;
}

Pose track_pose(int track, double time)
{
	Moment moment = track_moment(track, time);
	int row = track + SAND_TRACK_HEAD + SAND_TRACK_ROW * moment.index;
	dvec4 start = dvec4(tracks[row + 3], tracks[row + 4], tracks[row + 5], tracks[row + 6]);
	Pose pose = Pose(track_vector(row), start, dvec3(0.0lf), dvec3(0.0lf));
	if (!moment.is_moving)
	{
		return pose;
	}
	pose.velocity = track_vector(row + 7);
	pose.spin = track_vector(row + 10);
	precise double since = moment.share * tracks[track + 1], half_turn = 0.5lf * since * tracks[row + 13];
	precise double square = half_turn * half_turn, scale = 0.5lf * since * track_sine_ratio(square);
	precise dvec3 position = pose.position + since * pose.velocity, axis = scale * pose.spin;
	pose.position = position;
	pose.orientation = quaternion_product(dvec4(track_cosine(square), axis.x, axis.y, axis.z), start);
	return pose;
}

// The largest of the numbers `offset` behind the rows of `width` numbers that begin at `first`, of the intervals
// between two times.
double fastest_between(int track, int first, int width, double from, double to)
{
	int count = int(tracks[track + 2]);
	precise double speed = 0.0lf;
	if (count < 2 || to < tracks[track])
	{
		return speed;
	}
	int last = track_moment(track, to).index;
	for (int i = track_moment(track, from).index; i <= last && i + 1 < count; ++i)
	{
		double next = tracks[first + width * i];
		speed = next > speed ? next : speed;
	}
	return speed;
}

// The fastest that any point of what follows the track moves between two times, m/s.
double track_speed(int track, double from, double to)
{
	return fastest_between(track, track + SAND_TRACK_HEAD + 14, SAND_TRACK_ROW, from, to);
}

// Likewise of a mesh that changes shape: its table holds one number per frame.
double frames_speed(int table, double from, double to)
{
	return fastest_between(table, table + SAND_TRACK_HEAD, 1, from, to);
}
#endif
