// scheme: the time stepping of the source papers, for comparison with the simulator's own leapfrog.
// Comes in: grains with their forces. Goes out: grains one step later. Double precision, scalar, for small scenes.
#ifndef SAND_SCHEME_H
#define SAND_SCHEME_H

#include "kernel.h"

typedef enum SandScheme
{
	SAND_SCHEME_LEAPFROG, // kick, drift, kick: second order, one force evaluation a step; the default
	SAND_SCHEME_EULER,    // forward Euler (Longmore 2009 eqs. 3.44-3.50, with w accumulated): first order, gains energy
	SAND_SCHEME_RKF45,    // Runge-Kutta-Fehlberg (Bell 2005 section 5): adaptive, six evaluations a step; viscous shear
	                      // only
	SAND_SCHEME_COUNT
} SandScheme;

/// The 13 numbers of a grain that a scheme integrates, or their rates.
typedef struct SandSchemeState
{
	double position[3], orientation[4], velocity[3], momentum[3];
} SandSchemeState;

/// Rates of change of a grain: velocity, turning, acceleration by contacts and gravity, torque.
SandSchemeState sand_scheme_rates(const SandWork *work, const SandGrain *grain, const SandLoad *load);

SandSchemeState sand_scheme_read(const SandGrain *grain);
/// Makes the orientation unit.
void sand_scheme_write(const SandSchemeState *state, SandGrain *grain);

/// to = from + sum over count of weights[i] * rates[i], times step. rates of one grain lie stride apart.
void sand_scheme_combine(const SandSchemeState *from, const SandSchemeState *rates, int count, size_t stride,
                         const double *weights, double step, SandSchemeState *to);

#define SAND_RKF45_STAGES 6
/// Row of stage i (0 .. 5): weights of the stages before it.
const double *sand_rkf45_row(int stage);
const double *sand_rkf45_fourth(void); // weights of the fourth-order result
const double *sand_rkf45_error(void);  // fifth minus fourth

/// Largest error of a step in units of the tolerance, from the weighted rates: position against radius, velocity
/// against speed, angle against 1, angular momentum against mass * radius * speed.
double sand_scheme_error(const SandSchemeState *rates, size_t stride, double step, double inverse_mass, double radius,
                         double speed, double tolerance);

#endif
