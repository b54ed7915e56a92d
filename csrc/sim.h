// sim: state and stepping. Comes in: SandScene. Goes out: grain arrays per frame.
// Reads no file, knows no cache. Same bits for every thread count and every run on one build.
#ifndef SAND_SIM_H
#define SAND_SIM_H

#include "scene.h"

typedef struct SandSim SandSim;

typedef struct SandSimDesc
{
	int thread_count;     // 0 = one per core
	double step_seconds;  // s; 0 = a share of the scene's contact time
} SandSimDesc;

/// The scene is used, not copied: it must outlive the sim. One sim = one owner thread at a time.
SandStatus sand_sim_create(const SandScene *scene, const SandSimDesc *desc, SandSim **sim_out, SandError *err);
void sand_sim_destroy(SandSim *sim); // NULL is fine

/// Advances by seconds (>= 0), in equal steps no longer than step_seconds. cancel may be NULL; it is polled every step.
/// SAND_CANCELLED leaves the state at the last whole step; SAND_ERROR_UNSTABLE names grain, time, speed and likely cause
/// and leaves the sim readable but refusing to advance.
SandStatus sand_sim_advance(SandSim *sim, double seconds, SandCancel *cancel, SandError *err);

typedef struct SandSimInfo
{
	double time;          // s simulated
	double step_seconds;  // s, longest step used
	int64_t step_count;   // steps done
	int64_t contact_count;// touching pairs in the last step
	int lost_count;       // grains that left the domain; they are frozen where they left
	int grain_count;
	int64_t sphere_count;
	double kinetic_energy;// J
} SandSimInfo;
SandSimInfo sand_sim_info(const SandSim *sim);

/// Destination arrays, each NULL or of grain_count elements, owned by the caller. Not while advancing.
typedef struct SandSimArrays
{
	float *positions;    // xyz, m
	float *orientations; // w x y z
	float *velocities;   // xyz, m/s
	float *spins;        // xyz, rad/s, world axes
} SandSimArrays;
void sand_sim_read(const SandSim *sim, const SandSimArrays *arrays);

/// Hash of the full state (double precision), for determinism tests and the cache's state hash.
uint64_t sand_sim_hash(const SandSim *sim);

#endif
