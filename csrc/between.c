// between: see between.h.
#include "between.h"

#include "pool.h"

#include <math.h>

#define TASK_GRAINS 32768u // grains of one task

// A displacement agrees with the speeds when it is within this share of itself of what their mean gives,
#define AGREEMENT 0.25f
// and when the change of speed, times the time, is at most this many times as long. Free fall from rest has 2.
#define BEND_LIMIT 4.0f

typedef struct Weights
{
	float share;
	float seconds;
	float far;      // Hermite's weight of the place after
	float along[2]; // of the speeds, s
} Weights;

typedef struct Work
{
	const SandBetween *between;
	Weights weights;
} Work;

static float squared(const float v[3])
{
	return v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
}

static bool is_absent(const SandBetween *between, int side, size_t grain)
{
	return between->flags[side] != NULL && (between->flags[side][grain] & between->absent) != 0;
}

static void go_straight(const float *a, const float *b, float share, float *out)
{
	for (int k = 0; k < 3; ++k)
	{
		out[k] = a[k] + share * (b[k] - a[k]);
	}
}

/// The place of a grain that is there on both frames.
static void blend_place(const Weights *w, const float *a, const float *b, const float *u, const float *v, float *out)
{
	float way[3], miss[3], bend[3];
	for (int k = 0; k < 3; ++k)
	{
		way[k] = b[k] - a[k];
		miss[k] = way[k] - 0.5f * w->seconds * (u[k] + v[k]);
		bend[k] = w->seconds * (v[k] - u[k]);
	}
	float length = squared(way);
	bool is_smooth =
	    squared(miss) <= AGREEMENT * AGREEMENT * length && squared(bend) <= BEND_LIMIT * BEND_LIMIT * length;
	if (!is_smooth)
	{
		go_straight(a, b, w->share, out);
		return;
	}
	for (int k = 0; k < 3; ++k)
	{
		out[k] = a[k] + w->far * way[k] + w->along[0] * u[k] + w->along[1] * v[k];
	}
}

static void blend_turn(float share, const float *a, const float *b, float *out)
{
	float dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
	float sign = dot < 0.0f ? -1.0f : 1.0f;
	float sum = 0.0f;
	for (int k = 0; k < 4; ++k)
	{
		out[k] = a[k] + share * (sign * b[k] - a[k]);
		sum += out[k] * out[k];
	}
	float length = sqrtf(sum);
	for (int k = 0; k < 4; ++k)
	{
		out[k] = length > 1e-12f ? out[k] / length : a[k];
	}
}

/// A grain that is there on one frame only moves from its place there with its speed.
static void leave_or_come(const Work *work, int side, size_t grain)
{
	const SandBetween *between = work->between;
	const float *place = between->place[side] + 3 * grain;
	float seconds = work->weights.seconds * (side == 0 ? work->weights.share : work->weights.share - 1.0f);
	for (int k = 0; k < 3; ++k)
	{
		float speed = between->speed[side] != NULL ? between->speed[side][3 * grain + (size_t)k] : 0.0f;
		between->place_out[3 * grain + (size_t)k] = place[k] + seconds * speed;
		if (between->speed_out != NULL)
		{
			between->speed_out[3 * grain + (size_t)k] = speed;
		}
	}
	for (size_t k = 0; k < 4 && between->turn_out != NULL; ++k)
	{
		between->turn_out[4 * grain + k] = between->turn[side][4 * grain + k];
	}
}

static void blend_task(void *context, int task)
{
	const Work *work = context;
	const SandBetween *b = work->between;
	const Weights *w = &work->weights;
	bool has_speed = b->speed[0] != NULL && b->speed[1] != NULL;
	size_t begin = (size_t)task * TASK_GRAINS;
	size_t end = begin + TASK_GRAINS < b->count ? begin + TASK_GRAINS : b->count;
	for (size_t i = begin; i < end; ++i)
	{
		bool is_gone[2] = {is_absent(b, 0, i), is_absent(b, 1, i)};
		if (is_gone[0] != is_gone[1])
		{
			leave_or_come(work, is_gone[0] ? 1 : 0, i);
			continue;
		}
		if (has_speed)
		{
			blend_place(w, b->place[0] + 3 * i, b->place[1] + 3 * i, b->speed[0] + 3 * i, b->speed[1] + 3 * i,
			            b->place_out + 3 * i);
		}
		else
		{
			go_straight(b->place[0] + 3 * i, b->place[1] + 3 * i, w->share, b->place_out + 3 * i);
		}
		if (b->speed_out != NULL)
		{
			go_straight(b->speed[0] + 3 * i, b->speed[1] + 3 * i, w->share, b->speed_out + 3 * i);
		}
		if (b->turn_out != NULL)
		{
			blend_turn(w->share, b->turn[0] + 4 * i, b->turn[1] + 4 * i, b->turn_out + 4 * i);
		}
	}
}

SandStatus sand_between(const SandBetween *between, SandError *err)
{
	double s = between->share, t = between->seconds;
	if (!(s >= 0.0 && s <= 1.0))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "share is %g, expected 0 to 1", s);
	}
	if (!(t >= 0.0 && isfinite(t)))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "seconds is %g, expected 0 or more", t);
	}
	Work work = {.between = between};
	work.weights = (Weights){
	    .share = (float)s,
	    .seconds = (float)t,
	    .far = (float)(s * s * (3.0 - 2.0 * s)),
	    .along = {(float)(t * s * (1.0 - s) * (1.0 - s)), (float)(-t * s * s * (1.0 - s))},
	};
	int task_count = (int)((between->count + (TASK_GRAINS - 1)) / TASK_GRAINS);
	SandPool *pool = NULL;
	if (task_count > 1)
	{
		SandStatus status = sand_pool_create(between->thread_count, &pool, err);
		if (status != SAND_OK)
		{
			return status;
		}
	}
	sand_pool_run(pool, blend_task, &work, task_count);
	sand_pool_destroy(pool);
	return SAND_OK;
}
