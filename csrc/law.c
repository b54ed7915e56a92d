// law: constants of the contact between two materials.
// Comes in: material numbers, allowed overlap, speeds. Goes out: SandLaw.
//
// Every normal law becomes dimensionless with a time T and the length v T, where v is the impact speed:
//   linear: T = sqrt(m / k);  Hertz: T = (m^2 / (k^2 v))^(1/5)
// so restitution depends on one number, the damping in those units, found here by bisection on a computed impact.
#include "law.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static double repulsion(SandNormal normal, double damping, double x, double v)
{
	x = x > 0 ? x : 0;
	double root = sqrt(x);
	switch (normal)
	{
	case SAND_NORMAL_HERTZ:
		return x * root + damping * root * v;
	case SAND_NORMAL_HERTZ_CONSTANT:
		return x * root + damping * sqrt(root) * v;
	case SAND_NORMAL_HERTZ_DAMPER:
		return x * root + damping * v;
	default:
		return x + damping * v;
	}
}

double sand_law_restitution(SandNormal normal, double damping)
{
	// Fourth-order Runge-Kutta; this share of the time scale gives restitution to about 1e-6.
	const double h = 1e-3;
	double x = 0, v = 1;
	for (int i = 0; i < 1000000; ++i)
	{
		double a1 = -repulsion(normal, damping, x, v);
		double a2 = -repulsion(normal, damping, x + 0.5 * h * v, v + 0.5 * h * a1);
		double a3 = -repulsion(normal, damping, x + 0.5 * h * v + 0.25 * h * h * a1, v + 0.5 * h * a2);
		double a4 = -repulsion(normal, damping, x + h * v + 0.5 * h * h * a2, v + h * a3);
		x += h * v + h * h * (a1 + a2 + a3) / 6;
		v += h * (a1 + 2 * a2 + 2 * a3 + a4) / 6;
		// A spring that may not pull lets go as soon as the force is gone, on the way out.
		if (v < 0 && (x <= 0 || repulsion(normal, damping, x, v) <= 0))
		{
			return -v;
		}
	}
	return 0;
}

// The damping whose impact returns the restitution: false position (Illinois), about ten impacts.
static double damping_for(SandNormal normal, double restitution)
{
	double low = 0, high = 1, at_low = 1 - restitution, at_high;
	if (restitution >= 1)
	{
		return 0;
	}
	while ((at_high = sand_law_restitution(normal, high) - restitution) > 0 && high < 1e4)
	{
		low = high;
		at_low = at_high;
		high *= 2;
	}
	for (int i = 0; i < 60 && high - low > 1e-9 * high; ++i)
	{
		double middle = high - at_high * (high - low) / (at_high - at_low);
		double at_middle = sand_law_restitution(normal, middle) - restitution;
		if (fabs(at_middle) < 1e-9)
		{
			return middle;
		}
		if ((at_middle > 0) == (at_low > 0))
		{
			low = middle;
			at_low = at_middle;
			at_high *= 0.5;
		}
		else
		{
			high = middle;
			at_high = at_middle;
			at_low *= 0.5;
		}
	}
	return 0.5 * (low + high);
}

static SandStatus check_number(double value, double low, double high, int index, const char *what, const char *range,
                               SandError *err)
{
	if (value >= low && value <= high)
	{
		return SAND_OK;
	}
	return sand_fail(err, SAND_ERROR_ARGUMENT, "The %s of material %d is %g, expected %s", what, index, value, range);
}

SandStatus sand_material_check(const SandMaterial *m, int index, SandMaterial *out, SandError *err)
{
	const struct
	{
		double value, low, high;
		const char *what, *range;
	} numbers[] = {
	    {m->density, 0, 1e6, "density", "0 to 1e6 kg/m3 (0 = 2600, quartz)"},
	    {m->young, 0, 1e13, "Young's modulus", "0 to 1e13 Pa (0 = as soft as the allowed overlap permits)"},
	    {m->poisson, 0, 0.4999, "Poisson ratio", "0 to 0.4999 (0 = the default 0.25)"},
	    {m->restitution, 0, 1, "restitution", "0 to 1 (0 = the default 0.5)"},
	    {m->friction, -1e30, 100, "friction", "0 to 100 (negative = the default 0.5)"},
	    {m->rolling, 0, 100, "rolling resistance", "0 to 100"},
	    {m->cohesion, 0, 1e6, "cohesion", "0 to 1e6 N/m"},
	    {m->cohesion_range, 0, 1, "cohesion range", "0 to 1 of the effective radius (0 = the default 0.2)"},
	    {(double)m->normal, 0, SAND_NORMAL_COUNT - 1, "normal law", "one of SandNormal"},
	    {(double)m->shear, 0, SAND_SHEAR_COUNT - 1, "shear law", "one of SandShear"},
	};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i)
	{
		SandStatus status = check_number(numbers[i].value, numbers[i].low, numbers[i].high, index, numbers[i].what,
		                                 numbers[i].range, err);
		if (status != SAND_OK)
		{
			return status;
		}
	}
	*out = *m;
	out->density = m->density > 0 ? m->density : 2600;
	out->poisson = m->poisson > 0 ? m->poisson : 0.25f;
	out->restitution = m->restitution > 0 ? m->restitution : 0.5f;
	out->friction = m->friction >= 0 ? m->friction : 0.5f;
	out->cohesion_range = m->cohesion_range > 0 ? m->cohesion_range : 0.2f;
	return SAND_OK;
}

static double mean_or(double given, double a, double b)
{
	return given >= 0 ? given : sqrt(a * b);
}

// 1/E* = (1 - nu1^2)/E1 + (1 - nu2^2)/E2 (Bell 2005 eq. 14); a material without a modulus is as stiff as needed.
static double effective_modulus(const SandLawDesc *desc)
{
	double overlap = desc->max_overlap * 2 * desc->radius;
	// Peak overlap of an undamped Hertz impact: (5 m v^2 / (4 k))^(2/5), k = 4/3 E* sqrt(R).
	double needed =
	    0.75 * 1.25 * desc->mass * desc->max_speed * desc->max_speed / (pow(overlap, 2.5) * sqrt(desc->radius));
	double softness = 0;
	const SandMaterial *both[2] = {desc->a, desc->b};
	for (int i = 0; i < 2; ++i)
	{
		double modulus = both[i]->young > 0
		                     ? (double)both[i]->young / (1 - (double)both[i]->poisson * (double)both[i]->poisson)
		                     : 2 * needed;
		softness += 1 / modulus;
	}
	return 1 / softness;
}

static void make_linear(const SandLawDesc *desc, double restitution, SandLaw *law)
{
	// Undamped: peak overlap = v T, contact lasts pi T.
	double t = desc->max_overlap * 2 * desc->radius / desc->max_speed;
	law->spring = (float)(1 / (t * t));
	law->damping = (float)(damping_for(SAND_NORMAL_LINEAR, restitution) / t);
	law->shear_spring = law->spring * (2.0f / 7.0f);
	law->contact_time = pi * t;
}

static void make_hertz(const SandLawDesc *desc, double restitution, SandLaw *law)
{
	double modulus = effective_modulus(desc), k = 4.0 / 3.0 * modulus * sqrt(desc->radius), m = desc->mass;
	double damping = damping_for(desc->a->normal, restitution);
	double t = pow(m * m / (k * k * desc->restitution_speed), 0.2);
	law->spring = (float)(4.0 / 3.0 * modulus);
	law->damping = (float)(desc->a->normal == SAND_NORMAL_HERTZ            ? damping * t
	                       : desc->a->normal == SAND_NORMAL_HERTZ_CONSTANT ? damping
	                                                                       : damping / t);
	// Mindlin: kt = 8 G* sqrt(R xi); for like materials G*/E* = (1 - nu) / (2 (2 - nu)).
	double nu = 0.5 * ((double)desc->a->poisson + (double)desc->b->poisson);
	law->shear_spring = (float)(8 * modulus * (1 - nu) / (2 * (2 - nu)));
	law->contact_time = 3.2181 * pow(m * m / (k * k * desc->max_speed), 0.2); // Longmore 2009 eq. 3.22
}

SandStatus sand_law_make(const SandLawDesc *desc, SandLaw *law, SandError *err)
{
	const SandMaterial *a = desc->a, *b = desc->b;
	if (a->normal != b->normal || a->shear != b->shear)
	{
		return sand_fail(
		    err, SAND_ERROR_ARGUMENT,
		    "Two materials that can touch have different contact laws (%d/%d and %d/%d), expected the same",
		    (int)a->normal, (int)a->shear, (int)b->normal, (int)b->shear);
	}
	double restitution =
	    desc->restitution > 0 ? desc->restitution : sqrt((double)a->restitution * (double)b->restitution);
	*law = (SandLaw){.normal = a->normal, .shear = a->shear};
	if (a->normal == SAND_NORMAL_LINEAR)
	{
		make_linear(desc, restitution, law);
	}
	else
	{
		make_hertz(desc, restitution, law);
	}
	law->friction = (float)mean_or(desc->friction, a->friction, b->friction);
	law->rolling = (float)mean_or(desc->rolling, a->rolling, b->rolling);
	law->cohesion = (float)(2 * pi * mean_or(desc->cohesion, a->cohesion, b->cohesion));
	law->cohesion_range = law->cohesion > 0 ? fmaxf(a->cohesion_range, b->cohesion_range) : 0;
	// Strong enough to act as Coulomb friction at any visible slip, weak enough to be stable with ten contacts a grain.
	// Beside a spring it takes from a tangential swing what Bell 2005 eq. 9 takes from a normal one, and no more than
	// damps it: a contact that gives everything back along the normal must not swallow the slip.
	double damping = a->shear == SAND_SHEAR_VISCOUS ? 2.0 : fmin(1.0, -2 * log(restitution));
	law->shear_damping = (float)(damping / law->contact_time);
	law->rolling_damping = (float)(2.0 / law->contact_time);
#ifdef SAND_MUTANT
	// A wrong law on purpose, in the mutants of meson.build only: the validation must notice
	// (tests/py/test_mutants.py).
	law->shear_damping *= SAND_MUTANT == 1 ? -1.0f : 1.0f;
	law->friction = SAND_MUTANT == 2 && law->friction > 0 ? 1e12f : law->friction;
#endif
	return SAND_OK;
}
