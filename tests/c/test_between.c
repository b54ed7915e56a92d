// Tests of between: grains at a time between two frames.
#include "between.h"
#include "test.h"

#define FRAME (1.0 / 24.0) // s

/// One grain between two states without turn or flags.
static SandBetween one(const float *a, const float *b, const float *u, const float *v, double share, float *out)
{
	return (SandBetween){
	    .count = 1, .share = share, .seconds = FRAME, .place = {a, b}, .speed = {u, v}, .place_out = out};
}

static void free_fall_is_the_parabola(void)
{
	// Thrown at 3 and 2 m/s under gravity; float places of this size are exact to 1.2e-7 m.
	const double g = -9.81, vx = 3.0, vz = 2.0;
	const float a[3] = {0, 0, 1}, u[3] = {3, 0, 2};
	const float b[3] = {(float)(vx * FRAME), 0, (float)(1.0 + vz * FRAME + 0.5 * g * FRAME * FRAME)};
	const float v[3] = {3, 0, (float)(vz + g * FRAME)};
	for (int i = 0; i <= 8; ++i)
	{
		double share = i / 8.0, t = share * FRAME;
		float out[3] = {0}, speed[3] = {0};
		SandError err = {0};
		SandBetween between = one(a, b, u, v, share, out);
		between.speed_out = speed;
		CHECK_STATUS(sand_between(&between, &err), SAND_OK, &err);
		CHECK_NEAR(out[0], vx * t, 3e-7);
		CHECK_NEAR(out[2], 1.0 + vz * t + 0.5 * g * t * t, 3e-7);
		CHECK_NEAR(speed[2], vz + g * t, 1e-6);
	}
}

static void rest_falls_on_the_parabola_too(void)
{
	const double g = -9.81;
	const float a[3] = {0}, u[3] = {0}, b[3] = {0, 0, (float)(0.5 * g * FRAME * FRAME)};
	const float v[3] = {0, 0, (float)(g * FRAME)};
	float out[3] = {0};
	SandError err = {0};
	SandBetween between = one(a, b, u, v, 0.5, out);
	CHECK_STATUS(sand_between(&between, &err), SAND_OK, &err);
	CHECK_NEAR(out[2], g * FRAME * FRAME / 8.0, 1e-8);
}

static void a_grain_that_was_hit_goes_straight(void)
{
	// Comes down at 5 m/s and leaves upwards at 3 m/s; the cubic would go through the floor that it hit.
	const float a[3] = {0, 0, 0.02f}, u[3] = {0, 0, -5}, b[3] = {0.01f, 0, 0.03f}, v[3] = {0, 0, 3};
	float out[3] = {0};
	SandError err = {0};
	SandBetween between = one(a, b, u, v, 0.25, out);
	CHECK_STATUS(sand_between(&between, &err), SAND_OK, &err);
	CHECK_NEAR(out[0], 0.0025, 1e-9);
	CHECK_NEAR(out[2], 0.0225, 1e-9);
}

static void without_speeds_places_go_straight(void)
{
	const float a[3] = {1, 2, 3}, b[3] = {2, 4, 7};
	float out[3] = {0};
	SandError err = {0};
	SandBetween between = one(a, b, NULL, NULL, 0.75, out);
	CHECK_STATUS(sand_between(&between, &err), SAND_OK, &err);
	CHECK_NEAR(out[0], 1.75, 1e-7);
	CHECK_NEAR(out[1], 3.5, 1e-7);
	CHECK_NEAR(out[2], 6.0, 1e-6);
}

static void grains_come_and_go_with_their_speed(void)
{
	// Grain 0 is born on the second frame, grain 1 is gone there; absent places mean nothing.
	const float a[6] = {9, 9, 9, 1, 0, 0}, b[6] = {2, 0, 0, 9, 9, 9};
	const float u[6] = {0, 0, 0, 24, 0, 0}, v[6] = {0, 0, -48, 0, 0, 0};
	const float turns[8] = {1, 0, 0, 0, 0, 1, 0, 0};
	const int32_t before[2] = {8, 2}, after[2] = {2, 16};
	float out[6] = {0}, turn_out[8] = {0};
	SandError err = {0};
	SandBetween between = one(a, b, u, v, 0.25, out);
	between.count = 2;
	between.turn[0] = between.turn[1] = turns;
	between.turn_out = turn_out;
	between.flags[0] = before;
	between.flags[1] = after;
	between.absent = 8 | 16;
	CHECK_STATUS(sand_between(&between, &err), SAND_OK, &err);
	CHECK_NEAR(out[0], 2.0, 1e-6);
	CHECK_NEAR(out[2], 1.5, 1e-6); // three quarters of a frame before it is at 0, at 2 m a frame downwards
	CHECK_NEAR(out[3], 1.25, 1e-6);
	CHECK_NEAR(turn_out[5], 1.0, 0.0);
}

static void turns_go_the_shorter_way(void)
{
	// A quarter turn about z, the second one written with the other sign.
	const float half = (float)sqrt(0.5);
	const float places[3] = {0}, a[4] = {1, 0, 0, 0}, b[4] = {-half, 0, 0, -half};
	float out[3], turn_out[4] = {0};
	SandError err = {0};
	SandBetween between = one(places, places, NULL, NULL, 0.5, out);
	between.turn[0] = a;
	between.turn[1] = b;
	between.turn_out = turn_out;
	CHECK_STATUS(sand_between(&between, &err), SAND_OK, &err);
	CHECK_NEAR(turn_out[0], cos(atan(1.0) / 2.0), 1e-6);
	CHECK_NEAR(turn_out[3], sin(atan(1.0) / 2.0), 1e-6);
	CHECK_NEAR(turn_out[1], 0.0, 0.0);
}

static void any_number_of_threads_gives_the_same_bits(void)
{
	enum
	{
		COUNT = 100000
	};
	float *values = sand_alloc(12 * COUNT, sizeof(float));
	float *out = sand_alloc(6 * COUNT, sizeof(float));
	if (!CHECK(values != NULL && out != NULL))
	{
		return;
	}
	for (uint64_t i = 0; i < 12 * COUNT; ++i)
	{
		values[i] = (float)sand_random(7, i);
	}
	for (int threads = 1; threads <= 3; threads += 2)
	{
		SandBetween between = {
		    .count = COUNT,
		    .share = 0.3,
		    .seconds = FRAME,
		    .place = {values, values + 3 * COUNT},
		    .speed = {values + 6 * COUNT, values + 9 * COUNT},
		    .place_out = threads == 1 ? out : out + 3 * COUNT,
		    .thread_count = threads,
		};
		SandError err = {0};
		CHECK_STATUS(sand_between(&between, &err), SAND_OK, &err);
	}
	CHECK(memcmp(out, out + 3 * COUNT, 3 * COUNT * sizeof(float)) == 0);
	sand_free(values);
	sand_free(out);
}

static void shares_outside_are_refused(void)
{
	const float place[3] = {0};
	float out[3];
	SandError err = {0};
	SandBetween between = one(place, place, NULL, NULL, 1.5, out);
	CHECK_STATUS(sand_between(&between, &err), SAND_ERROR_ARGUMENT, &err);
	CHECK_CONTAINS(err.message, "1.5");
	err = (SandError){0};
	between.share = NAN;
	CHECK_STATUS(sand_between(&between, &err), SAND_ERROR_ARGUMENT, &err);
	err = (SandError){0};
	between.share = 0.5;
	between.seconds = -1.0;
	CHECK_STATUS(sand_between(&between, &err), SAND_ERROR_ARGUMENT, &err);
}

void test_between(void)
{
	RUN(free_fall_is_the_parabola);
	RUN(rest_falls_on_the_parabola_too);
	RUN(a_grain_that_was_hit_goes_straight);
	RUN(without_speeds_places_go_straight);
	RUN(grains_come_and_go_with_their_speed);
	RUN(turns_go_the_shorter_way);
	RUN(any_number_of_threads_gives_the_same_bits);
	RUN(shares_outside_are_refused);
}
