// scheme: the time stepping of the source papers, for comparison.
// Comes in: grains with their forces. Goes out: rates, weighted sums and errors for the simulator to step with.
#include "scheme.h"

#include <math.h>
#include <string.h>

enum
{
	NUMBERS = sizeof(SandSchemeState) / sizeof(double)
};
_Static_assert(sizeof(SandSchemeState) == 13 * sizeof(double), "a state is 13 numbers in a row");

// Angular velocity, world axes: R I^-1 R^T L.
static void spin_of(const SandWork *work, const SandGrain *grain, double spin[3])
{
	const SandTraits *traits = &work->traits[grain - work->grains];
	const double *q = grain->orientation, *inertia = work->shapes[traits->shape].inertia;
	double w = q[0], x = q[1], y = q[2], z = q[3],
	       scale = (double)traits->scale * (double)traits->scale / grain->inverse_mass;
	double m[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
	                  {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
	                  {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
	double body[3];
	for (int k = 0; k < 3; ++k)
	{
		body[k] = (m[0][k] * grain->momentum[0] + m[1][k] * grain->momentum[1] + m[2][k] * grain->momentum[2]) /
		          (inertia[k] * scale);
	}
	for (int k = 0; k < 3; ++k)
	{
		spin[k] = m[k][0] * body[0] + m[k][1] * body[1] + m[k][2] * body[2];
	}
}

SandSchemeState sand_scheme_rates(const SandWork *work, const SandGrain *grain, const SandLoad *load)
{
	SandSchemeState r;
	const double *q = grain->orientation;
	double s[3];
	spin_of(work, grain, s);
	for (int k = 0; k < 3; ++k)
	{
		r.position[k] = grain->velocity[k];
		r.velocity[k] = load->force[k] * grain->inverse_mass + work->gravity[k];
		r.momentum[k] = load->torque[k];
	}
	// dq/dt = 1/2 (0, w) q
	r.orientation[0] = 0.5 * (-s[0] * q[1] - s[1] * q[2] - s[2] * q[3]);
	r.orientation[1] = 0.5 * (s[0] * q[0] + s[1] * q[3] - s[2] * q[2]);
	r.orientation[2] = 0.5 * (s[1] * q[0] + s[2] * q[1] - s[0] * q[3]);
	r.orientation[3] = 0.5 * (s[2] * q[0] + s[0] * q[2] - s[1] * q[1]);
	return r;
}

SandSchemeState sand_scheme_read(const SandGrain *grain)
{
	SandSchemeState state;
	memcpy(state.position, grain->position, sizeof(state.position));
	memcpy(state.orientation, grain->orientation, sizeof(state.orientation));
	memcpy(state.velocity, grain->velocity, sizeof(state.velocity));
	memcpy(state.momentum, grain->momentum, sizeof(state.momentum));
	return state;
}

void sand_scheme_write(const SandSchemeState *state, SandGrain *grain)
{
	const double *q = state->orientation;
	double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
	for (int k = 0; k < 4; ++k)
	{
		grain->orientation[k] = q[k] / length;
	}
	memcpy(grain->position, state->position, sizeof(state->position));
	memcpy(grain->velocity, state->velocity, sizeof(state->velocity));
	memcpy(grain->momentum, state->momentum, sizeof(state->momentum));
}

void sand_scheme_combine(const SandSchemeState *from, const SandSchemeState *rates, int count, size_t stride,
                         const double *weights, double step, SandSchemeState *to)
{
	double sum[NUMBERS] = {0}, start[NUMBERS];
	memcpy(start, from, sizeof(start));
	for (int i = 0; i < count; ++i)
	{
		double rate[NUMBERS];
		memcpy(rate, rates + (size_t)i * stride, sizeof(rate));
		for (int k = 0; k < NUMBERS; ++k)
		{
			sum[k] += weights[i] * rate[k];
		}
	}
	for (int k = 0; k < NUMBERS; ++k)
	{
		start[k] += step * sum[k];
	}
	memcpy(to, start, sizeof(start));
}

const double *sand_rkf45_row(int stage)
{
	static const double rows[SAND_RKF45_STAGES][5] = {
	    {0},
	    {1.0 / 4},
	    {3.0 / 32, 9.0 / 32},
	    {1932.0 / 2197, -7200.0 / 2197, 7296.0 / 2197},
	    {439.0 / 216, -8, 3680.0 / 513, -845.0 / 4104},
	    {-8.0 / 27, 2, -3544.0 / 2565, 1859.0 / 4104, -11.0 / 40},
	};
	return rows[stage];
}

const double *sand_rkf45_fourth(void)
{
	static const double weights[SAND_RKF45_STAGES] = {25.0 / 216, 0, 1408.0 / 2565, 2197.0 / 4104, -1.0 / 5, 0};
	return weights;
}

const double *sand_rkf45_error(void)
{
	static const double weights[SAND_RKF45_STAGES] = {
	    16.0 / 135 - 25.0 / 216, 0,       6656.0 / 12825 - 1408.0 / 2565, 28561.0 / 56430 - 2197.0 / 4104,
	    -9.0 / 50 + 1.0 / 5,     2.0 / 55};
	return weights;
}

double sand_scheme_error(const SandSchemeState *rates, size_t stride, double step, double inverse_mass, double radius,
                         double speed, double tolerance)
{
	SandSchemeState zero = {{0}, {0}, {0}, {0}}, error;
	sand_scheme_combine(&zero, rates, SAND_RKF45_STAGES, stride, sand_rkf45_error(), step, &error);
	double worst = 0;
	for (int k = 0; k < 3; ++k)
	{
		worst = fmax(worst, fabs(error.position[k]) / radius);
		worst = fmax(worst, fabs(error.velocity[k]) / speed);
		worst = fmax(worst, fabs(error.momentum[k]) * inverse_mass / (radius * speed));
	}
	for (int k = 0; k < 4; ++k)
	{
		worst = fmax(worst, fabs(error.orientation[k]));
	}
	return worst / tolerance;
}
