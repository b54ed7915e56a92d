// law: constants of the contact between two materials. Comes in: material numbers and what the artist allows (overlap,
// speed). Goes out: SandLaw, ready for the kernel, calibrated so that an impact returns the restitution asked for.
#ifndef SAND_LAW_H
#define SAND_LAW_H

#include "base.h"

/// Normal force, Bell 2005 eq. 7: spring xi^beta + damper xi^alpha, never pulling.
typedef enum SandNormal
{
	SAND_NORMAL_HERTZ,          // alpha 1/2, beta 3/2: restitution falls with speed, as measured on real grains
	SAND_NORMAL_HERTZ_CONSTANT, // alpha 1/4, beta 3/2: restitution is the same at every speed
	SAND_NORMAL_HERTZ_DAMPER,   // alpha 0,   beta 3/2: restitution rises with speed; for comparison only
	SAND_NORMAL_LINEAR,         // alpha 0,   beta 1:   restitution and duration are the same at every speed
	SAND_NORMAL_COUNT
} SandNormal;

/// Friction below the Coulomb limit.
typedef enum SandShear
{
	SAND_SHEAR_VISCOUS, // viscous (Bell 2005 eq. 18): enough for clusters, which hold by interlocking
	SAND_SHEAR_HISTORY, // spring and dashpot (Longmore 2009 eqs. 3.9-3.12, Papadimitriou 2012): lone spheres need it to
	                    // rest
	SAND_SHEAR_COUNT
} SandShear;

/// Zero is valid everywhere: 0 = the default said, except friction and rolling, where 0 is none.
typedef struct SandMaterial
{
	float density;     // kg/m^3 of the spheres; 0 = 2600, quartz
	float young;       // Pa; 0 = as soft as the allowed overlap permits
	float poisson;     // 0 < nu < 0.5; 0 = 0.25
	float restitution; // 0 < e <= 1, at restitution_speed; 0 = 0.5
	float friction;    // Coulomb coefficient >= 0; negative = 0.5
	float rolling;     // rolling resistance: torque <= rolling * effective radius * normal force; >= 0
	float cohesion;    // N/m, pull of a touching pair = 2 pi cohesion * effective radius (a capillary bridge's surface
	                   // tension)
	float
	    cohesion_range; // share of the effective radius beyond touching at which the pull has faded to nothing; 0 = 0.2
	SandNormal normal;
	SandShear shear;
} SandMaterial;

/// What a contact is calibrated for.
typedef struct SandLawDesc
{
	const SandMaterial *a, *b;
	double radius;            // m, effective radius r1 r2 / (r1 + r2) of the reference pair
	double mass;              // kg, effective mass of the reference pair
	double max_overlap;       // share of 2 * radius the pair may overlap at max_speed
	double max_speed;         // m/s
	double restitution_speed; // m/s, where the restitution is as asked for
	double restitution;       // 0 = geometric mean of the materials'
	double friction;          // negative = geometric mean of the materials'
	double rolling;           // negative = geometric mean
	double cohesion;          // negative = geometric mean
} SandLawDesc;

/// Constants as the kernel uses them. "per kg": multiplied by the pair's effective mass.
typedef struct SandLaw
{
	SandNormal normal;
	SandShear shear;
	float spring;  // linear: 1/s^2 per kg. Hertz: Pa, 4/3 of the effective modulus (Bell 2005 eq. 15)
	float damping; // linear and alpha 0: 1/s per kg. alpha 1/4: of sqrt(mass * spring). alpha 1/2: s, times the spring
	float shear_damping; // 1/s per kg
	float shear_spring;  // linear: 1/s^2 per kg. Hertz: Pa, 8 times the effective shear modulus (Mindlin)
	float friction;
	float rolling;         // times effective radius and normal force
	float rolling_damping; // 1/s per kg and square metre of effective radius squared
	float cohesion;        // N per m of effective radius
	float cohesion_range;  // of effective radius
	double contact_time;   // s, duration of the reference pair's impact at max_speed
} SandLaw;

/// Fails with SAND_ERROR_ARGUMENT when the materials' laws differ; numbers are checked by sand_material_check.
SandStatus sand_law_make(const SandLawDesc *desc, SandLaw *law_out, SandError *err);

/// Names the material's number and the bad value. Fills in defaults.
SandStatus sand_material_check(const SandMaterial *material, int index, SandMaterial *complete_out, SandError *err);

/// Restitution of one impact of the dimensionless law x'' + damping x^alpha x' + x^beta = 0 (never pulling) from x'
/// = 1. The constants above scale out of every law but through `damping`.
double sand_law_restitution(SandNormal normal, double damping);

#endif
