// Tests of track: turns in closed form, motion against differences in time, what the speed bounds.
#include "test.h"
#include "track.h"

#define PI 3.14159265358979323846

static double between(uint64_t index, double low, double high)
{
	return low + (high - low) * sand_random(11, index);
}

static void random_unit(uint64_t seed, int count, double *out)
{
	double square = 0;
	for (int k = 0; k < count; ++k)
	{
		out[k] = between(16 * seed + (uint64_t)k, -1, 1);
		square += out[k] * out[k];
	}
	for (int k = 0; k < count; ++k)
	{
		out[k] /= sqrt(square);
	}
}

static void turn_about(const double axis[3], double angle, double q_out[4])
{
	q_out[0] = cos(0.5 * angle);
	for (int k = 0; k < 3; ++k)
	{
		q_out[1 + k] = sin(0.5 * angle) * axis[k];
	}
}

static void turning_is_that_of_the_rotation_matrix(void)
{
	for (uint64_t i = 0; i < 200; ++i)
	{
		double axis[3], v[3], q[4], turned[3], back[3], angle = between(i, -6, 6), along = 0;
		random_unit(3 * i, 3, axis);
		random_unit(3 * i + 1, 3, v);
		turn_about(axis, angle, q);
		sand_turn(q, v, turned);
		sand_turn_back(q, turned, back);
		for (int k = 0; k < 3; ++k)
		{
			along += axis[k] * v[k];
		}
		for (int k = 0; k < 3; ++k)
		{
			// Rodrigues' formula.
			int a = (k + 1) % 3, b = (k + 2) % 3;
			double expected =
			    v[k] * cos(angle) + (axis[a] * v[b] - axis[b] * v[a]) * sin(angle) + axis[k] * along * (1 - cos(angle));
			CHECK_NEAR(turned[k], expected, 1e-14);
			CHECK_NEAR(back[k], v[k], 1e-14);
		}
		sand_turn(q, v, v); // in place
		CHECK(memcmp(v, turned, sizeof(v)) == 0);
	}
}

static void turn_between_two_samples_is_even_and_takes_the_shorter_way(void)
{
	const double angles[] = {1e-9, 0.001, 0.5, 1.5, 3, PI - 1e-6, PI + 1e-6, 4, 6};
	for (size_t i = 0; i < sizeof(angles) / sizeof(angles[0]); ++i)
	{
		for (int sign = -1; sign <= 1; sign += 2)
		{
			double axis[3], samples[14] = {1, 2, 3, 1, 0, 0, 0, 3, 2, 1}, q[4];
			random_unit(100 + i, 3, axis);
			turn_about(axis, angles[i], q);
			for (int k = 0; k < 4; ++k)
			{
				samples[10 + k] = sign * q[k]; // q and -q are one orientation
			}
			SandTrack track = {.begin = 2, .interval = 0.5, .samples = samples, .sample_count = 2};
			double shorter = angles[i] < PI ? angles[i] : angles[i] - 2 * PI;
			for (int part = 0; part < 8; ++part)
			{
				SandPose pose;
				double share = part / 8.0, same = 0;
				sand_track_pose(&track, 2 + 0.5 * share, &pose);
				turn_about(axis, shorter * share, q);
				for (int k = 0; k < 4; ++k)
				{
					same += pose.orientation[k] * q[k];
				}
				CHECK_NEAR(fabs(same), 1, 1e-14);
				CHECK_NEAR(pose.position[0], 1 + 2 * share, 1e-15);
				CHECK_NEAR(pose.velocity[0], 4, 1e-15);
				CHECK_NEAR(pose.velocity[1], 0, 0);
				for (int k = 0; k < 3; ++k)
				{
					// 1e-8: the axis of nearly half a turn and of a tiny turn is known no better.
					CHECK_NEAR(pose.spin[k], 2 * shorter * axis[k], 1e-8);
				}
			}
		}
	}
}

enum
{
	SAMPLE_COUNT = 9
};

static SandTrack random_track(double *samples)
{
	for (uint64_t i = 0; i < SAMPLE_COUNT; ++i)
	{
		for (uint64_t k = 0; k < 3; ++k)
		{
			samples[7 * i + k] = between(1000 + 3 * i + k, -2, 2);
		}
		random_unit(200 + i, 4, &samples[7 * i + 3]);
	}
	return (SandTrack){.begin = 0.1, .interval = 0.1, .samples = samples, .sample_count = SAMPLE_COUNT};
}

static void motion_is_the_derivative_of_the_pose(void)
{
	double samples[7 * SAMPLE_COUNT];
	SandTrack track = random_track(samples);
	const double h = 1e-6, own[3] = {0.3, -0.8, 0.5};
	for (uint64_t i = 0; i < 500; ++i)
	{
		double share = between(5000 + i, 0.01, 0.99), time = 0.1 + 0.1 * ((double)(i % (SAMPLE_COUNT - 1)) + share);
		SandPose now, before, after;
		double arm[3], from[3], to[3];
		sand_track_pose(&track, time, &now);
		sand_track_pose(&track, time - h, &before);
		sand_track_pose(&track, time + h, &after);
		sand_turn(now.orientation, own, arm);
		sand_turn(before.orientation, own, from);
		sand_turn(after.orientation, own, to);
		for (int k = 0; k < 3; ++k)
		{
			int a = (k + 1) % 3, b = (k + 2) % 3;
			double velocity = now.velocity[k] + now.spin[a] * arm[b] - now.spin[b] * arm[a];
			double moved = after.position[k] + to[k] - before.position[k] - from[k];
			CHECK_NEAR(moved / (2 * h), velocity, 1e-6);
		}
	}
}

static void samples_are_met_exactly_and_outside_it_stands(void)
{
	double samples[7 * SAMPLE_COUNT];
	SandTrack track = random_track(samples);
	for (int i = 0; i < SAMPLE_COUNT; ++i)
	{
		SandPose pose;
		double time = track.begin + i * track.interval;
		SandMoment moment = sand_moment(track.begin, track.interval, SAMPLE_COUNT, time);
		CHECK_INT(moment.index, i);
		CHECK_NEAR(moment.share, 0, 0);
		CHECK(moment.is_moving == (i + 1 < SAMPLE_COUNT));
		sand_track_pose(&track, time, &pose);
		CHECK(memcmp(pose.position, &samples[7 * i], sizeof(pose.position)) == 0);
		for (int k = 0; k < 4; ++k)
		{
			CHECK_NEAR(pose.orientation[k], samples[7 * i + 3 + k], 1e-15);
		}
		if (i + 1 < SAMPLE_COUNT) // the motion is that of the interval that begins here
		{
			CHECK_NEAR(pose.velocity[0], (samples[7 * i + 7] - samples[7 * i]) / 0.1, 1e-12);
		}
	}
	const double outside[] = {-1e300, -5, 0.1 - 1e-9, 0.1 + 0.1 * (SAMPLE_COUNT - 1), 7, 1e300};
	for (int i = 0; i < 6; ++i)
	{
		SandPose pose;
		const double *sample = i < 3 ? samples : &samples[7 * (SAMPLE_COUNT - 1)], zero[3] = {0};
		sand_track_pose(&track, outside[i], &pose);
		CHECK(memcmp(pose.position, sample, sizeof(pose.position)) == 0);
		CHECK(memcmp(pose.velocity, zero, sizeof(zero)) == 0 && memcmp(pose.spin, zero, sizeof(zero)) == 0);
	}
	SandTrack single = {.samples = samples, .sample_count = 1};
	SandPose pose;
	sand_track_pose(&single, 3, &pose);
	CHECK_NEAR(pose.position[1], samples[1], 0);
	CHECK_NEAR(sand_track_speed(&single, 0, 1, 1), 0, 0);
}

static void speed_is_the_fastest_of_all_points_and_times(void)
{
	double samples[7 * SAMPLE_COUNT];
	SandTrack track = random_track(samples);
	const double reach = 0.7;
	for (uint64_t i = 0; i < 40; ++i)
	{
		double from = between(9000 + 2 * i, 0, 0.9), to = from + between(9001 + 2 * i, 0, 0.15), fastest = 0;
		double bound = sand_track_speed(&track, from, to, reach);
		for (uint64_t j = 0; j < 2000; ++j)
		{
			SandPose pose;
			double arm[3], square = 0;
			sand_track_pose(&track, from + (to - from) * (double)(j % 50) / 49, &pose);
			random_unit(5000 + j, 3, arm);
			for (int k = 0; k < 3; ++k)
			{
				int a = (k + 1) % 3, b = (k + 2) % 3;
				double v = pose.velocity[k] + reach * (pose.spin[a] * arm[b] - pose.spin[b] * arm[a]);
				square += v * v;
			}
			fastest = fmax(fastest, sqrt(square));
		}
		CHECK(fastest <= bound * (1 + 1e-12));
		CHECK(fastest >= 0.9 * bound); // 40 directions an interval come near the fastest
	}
	CHECK_NEAR(sand_track_speed(&track, -2, 0.0999, reach), 0, 0);
	CHECK_NEAR(sand_track_speed(&track, 0.9, 5, reach), 0, 0);
	CHECK(sand_track_speed(&track, -1e300, 1e300, reach) > 0);
	// Straight along the axis of its turn: the two add at right angles.
	const double screw[14] = {0, 0, 0, 1, 0, 0, 0, 0, 0, 3, cos(1), 0, 0, sin(1)};
	SandTrack drill = {.interval = 1, .samples = screw, .sample_count = 2};
	CHECK_NEAR(sand_track_speed(&drill, 0, 1, 2), 5, 1e-12);
}

static void bad_tracks_are_refused_with_a_sentence(void)
{
	double samples[7 * SAMPLE_COUNT];
	const SandTrack good = random_track(samples);
	SandError err = {0};
	CHECK_STATUS(sand_track_check(&good, "Body", 3, &err), SAND_OK, &err);
	SandTrack track = good;
	track.sample_count = 0;
	CHECK_STATUS(sand_track_check(&track, "Body", 3, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "Body 3");
	CHECK_CONTAINS(err.message, "0 samples");
	track = good;
	track.samples = NULL;
	CHECK_STATUS(sand_track_check(&track, "Body", 3, &err), SAND_ERROR_ARGUMENT, &err);
	track = good;
	track.begin = (double)NAN;
	CHECK_STATUS(sand_track_check(&track, "Body", 3, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "begins at");
	const double intervals[] = {0, -1, (double)NAN, (double)INFINITY, 1e308};
	for (int i = 0; i < 5; ++i)
	{
		track = good;
		track.interval = intervals[i];
		CHECK_STATUS(sand_track_check(&track, "Body", 3, &err), SAND_ERROR_ARGUMENT, &err);
		CHECK_CONTAINS(err.message, "interval");
		track.sample_count = 1; // then it is not used
		CHECK_STATUS(sand_track_check(&track, "Body", 3, &err), SAND_OK, &err);
	}
	for (int k = 0; k < 7; ++k)
	{
		double kept = samples[21 + k];
		samples[21 + k] = (double)INFINITY;
		CHECK_STATUS(sand_track_check(&good, "Collider", 4, &err), SAND_ERROR_ARGUMENT, &err);
		CHECK_CONTAINS(err.message, "Collider 4: sample 3");
		CHECK_CONTAINS(err.message, k < 3 ? "position" : "orientation");
		samples[21 + k] = kept;
	}
	for (int k = 0; k < 4; ++k)
	{
		samples[17 + k] *= 1.002;
	}
	CHECK_STATUS(sand_track_check(&good, "Body", 3, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "sample 2");
	CHECK_CONTAINS(err.message, "1.002");
	for (int k = 0; k < 4; ++k)
	{
		samples[17 + k] *= 0.9985; // within what is mended
	}
	CHECK_STATUS(sand_track_check(&good, "Body", 3, &err), SAND_OK, &err);
	SandPose pose;
	sand_track_pose(&good, 0.1 + 2 * 0.1, &pose);
	const double *q = pose.orientation;
	CHECK_NEAR(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3], 1, 1e-15);
	samples[0] = 1e308;
	samples[7] = -1e308;
	CHECK_STATUS(sand_track_check(&good, "Body", 3, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "after sample 0");
}

void test_track(void)
{
	RUN(turning_is_that_of_the_rotation_matrix);
	RUN(turn_between_two_samples_is_even_and_takes_the_shorter_way);
	RUN(motion_is_the_derivative_of_the_pose);
	RUN(samples_are_met_exactly_and_outside_it_stands);
	RUN(speed_is_the_fastest_of_all_points_and_times);
	RUN(bad_tracks_are_refused_with_a_sentence);
}
