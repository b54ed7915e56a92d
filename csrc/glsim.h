// glsim: the GL engine: the passes of shaders/ in their order, on one device. Comes in: a scene and the state of its
// grains. Goes out: the state some time later, the same bits as the CPU engine's where the device computes exactly.
// The state lives on the device; what the host holds is the state between two calls, which is where a lost device is
// taken up again. Knows gpu.h, never GL; sim decides which engine runs.
#ifndef SAND_GLSIM_H
#define SAND_GLSIM_H

#include "gpu.h"
#include "kernel.h"
#include "list.h"
#include "scene.h"

typedef struct SandGlSim SandGlSim;

typedef struct SandGlSimDesc
{
	const SandScene *scene; // outlives the engine
	const SandWork *work;   // scales and margins; read when it is created
	const SandList *list;   // classes of spheres; likewise
	double step_limit;      // s
	int chunk_spheres;
	int sphere_count, wall_count;
	bool has_asymmetric;        // grains whose spin turns with their orientation
	const SandSphere *walls;    // wall_count placed ones; copied
	const int32_t *sphere_base; // per grain: lasting id of its first sphere; copied
	const char *defines;        // for tests: lines put before every shader; NULL = none
	double batch_seconds;       // s of work handed over at once; 0 = 0.03: a cancel waits for one batch
	SandGpuDesc gpu;
} SandGlSimDesc;

/// The state between two calls, in the host's memory, which the caller owns.
typedef struct SandGlState
{
	bool is_changed; // by the host since the last advance; in and out
	SandGrain *grains;
	SandTraits *traits; // in the order of the grains
	double time;        // s
	double last_step;   // s
	int64_t step_count, list_count, contact_count;
	SandSpring *springs; // in order of low; replaced by advance, from sand_alloc
	int64_t spring_count;
	int32_t *waiting; // ids of unborn grains in order of birth
	int waiting_count;
	double next_birth;         // s
	double *body_impulses;     // six per body, of this advance
	double *collider_impulses; // six per collider
	int32_t bad_grain;         // id of the one that failed
} SandGlState;

/// Finds a device and makes the programs. SAND_ERROR_GPU: no device, too few bindings or too small blocks, with
/// numbers.
SandStatus sand_glsim_create(const SandGlSimDesc *desc, SandGlSim **gl_out, SandError *err);
void sand_glsim_destroy(SandGlSim *gl); // NULL is fine

const SandGpuDevice *sand_glsim_device(const SandGlSim *gl);

/// Advances by seconds > 0. ahead_seconds > 0 says what the next call will ask for: the device begins with it before
/// this one's state is waited for, and goes on while the caller has that state; a call that comes late begins it on
/// return. Until then the state must not be changed, and the next call must ask for the same, or sand_glsim_drop be
/// called first. SAND_CANCELLED leaves the state at the last whole step, SAND_ERROR_UNSTABLE where it
/// failed, with bad_grain for the caller's sentence. Any error of the device leaves the state as it was:
/// SAND_ERROR_GPU_LOST and SAND_ERROR_GPU ask for a new engine, SAND_ERROR_GPU_MEMORY for a smaller scene or another
/// one.
SandStatus sand_glsim_advance(SandGlSim *gl, SandGlState *state, double seconds, double ahead_seconds,
                              SandCancel *cancel, SandError *err);

/// What the call that was begun ahead is to advance by; 0 = none.
double sand_glsim_next(const SandGlSim *gl);
/// Throws that call away. The next one must say that the state has changed.
void sand_glsim_drop(SandGlSim *gl);
/// How many states were read back with the next call's list on its way already.
int sand_glsim_ahead_count(const SandGlSim *gl);

/// Words of the texels that shaders read the buffer at a binding of layout.h as; 0 = they do not.
int sand_glsim_texel_words(int binding);

/// How long the device was at each pass so far, when SandGpuDesc.has_timers; passes in the order of their names, NULL
/// beyond the last.
SandStatus sand_glsim_pass_times(SandGlSim *gl, SandGpuPassTime times_out[SAND_GPU_PASS_LIMIT], SandError *err);
const char *sand_glsim_pass_name(int pass);

#endif
