// sim: state and stepping of rigid sphere clusters by the discrete element method.
// Comes in: SandScene. Goes out: grain arrays.
//
// One step (leapfrog: kick, drift, kick; forces use the half-step velocities, as engineering codes do):
//   forces  contacts of every sphere
//   move    second half kick of the last step, first of this one, move and turn every grain, place its spheres
// Grains are kept in space-filling order and cut into chunks. A chunk computes the pairs whose first sphere is its own;
// what these do to spheres of later chunks it sums apart, for them to take in the move. So no two tasks write the same
// memory, and the order of every sum depends on the state alone, never on the threads.
//
// A chunk can be moved as soon as it and the earlier chunks that touch it have their forces: later ones never look at
// it. So a task sweeps over a run of chunks, forces and move of each while it is in the cache; chunks that touch
// another task's run are moved when all are done.
//
// Sphere positions are 32-bit integers, in units of about the domain's extent / 2^31: differences are exact, so the
// force on a pair does not depend on where in the domain it lies.
#include "sim.h"

#include "glsim.h"
#include "kernel.h"
#include "list.h"
#include "pool.h"
#include "scheme.h"
#include "sort.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHUNK_SPHERES 2048   // per chunk in a large scene: its sums stay in the second-level cache
#define CHUNK_COUNT 16       // in a small scene: enough to share out evenly
#define CHUNK_SMALLEST 128   // spheres; smaller tasks cost more to hand out than to do
#define STEPS_PER_CONTACT 16 // of the contact time; leapfrog is stable to about 1/5 of it in a dense bed
#define FAST_MARGIN 1.5      // of the smallest radius: at most, for a fast one
#define TURN_STEPS 8         // lone spheres turn once in so many: nothing but their look depends on it

struct SandSim
{
	const SandScene *scene;
	const SandKernel *kernel;
	SandPool *pool;
	SandList *list;
	SandWork work;
	double time;
	double step_limit; // s, longest allowed step
	int64_t step_count, list_count;
	double drift_seconds, force_seconds, list_seconds; // wall time
	bool is_failed;

	SandGrain *grains, *grains_spare;
	SandTraits *traits, *traits_spare; // in the order of the grains
	int grain_count;
	SandSphere *spheres; // of grains, then walls
	int sphere_count, wall_count;
	int32_t *sphere_base; // lasting id of the first sphere of each grain id
	SandSorter *sorter;   // for every sphere

	SandChunk *chunks;
	int chunk_count, chunk_limit;
	int chunk_spheres; // about as many in a chunk
	int run_count;     // of a sweep
	SandSum *sums;     // one chunk's for every run, then those of chunks that wait for other runs
	int64_t sum_capacity;
	bool is_closing;

	SandColliderState **collider_states;
	double *collider_slack;    // m, of the list
	double *collider_impulses; // six numbers each, of the last advance
	double colliders_until;    // s: the list is good for the colliders' motion up to then
	SandGrain *targets;        // per body
	int32_t *body_at;          // per body: where its grain is in memory
	double *impulses;          // per body, six numbers, of the last advance
	double load_seconds;       // s, of the last advance
	bool has_driven;

	double turn_seconds; // s moved since lone spheres last turned
	int turn_steps;      // in as many steps
	int32_t *waiting;    // ids of unborn grains, in order of birth
	int32_t *place_of;   // per id, of those due: where in memory
	int32_t *rivals;     // scratch: grains near the places of birth
	int waiting_count;
	SandScheme scheme;
	double tolerance;
	double trial_step;      // s, RKF45: step to try next; 0 = the limit
	SandSchemeState *trial; // per grain: state at the start of the step, then the rates of six stages
	double next_birth;      // s, first birth after the last attempt; grains that are late come along then

	SandGlSim *gl; // NULL = the CPU engine
	SandGlSimDesc gl_desc;
	bool stops_without_gpu;
	bool is_changed;       // the host's state since the device last had it
	bool is_stopped;       // no device, and none else is to go on
	int64_t contact_count; // as the device counted them
	int lost_count;        // devices that failed
	char note[SAND_MESSAGE_BYTES];
};

static void quaternion_multiply(const double a[4], const double b[4], double out[4])
{
	double r[4] = {
	    a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
	    a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
	memcpy(out, r, sizeof(r));
}

static void quaternion_normalise(double q[4])
{
	double s = 1 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
	for (int k = 0; k < 4; ++k)
	{
		q[k] *= s;
	}
}

static void rotation_of(const double q[4], double m[3][3])
{
	double w = q[0], x = q[1], y = q[2], z = q[3];
	m[0][0] = 1 - 2 * (y * y + z * z);
	m[0][1] = 2 * (x * y - w * z);
	m[0][2] = 2 * (x * z + w * y);
	m[1][0] = 2 * (x * y + w * z);
	m[1][1] = 1 - 2 * (x * x + z * z);
	m[1][2] = 2 * (y * z - w * x);
	m[2][0] = 2 * (x * z - w * y);
	m[2][1] = 2 * (y * z + w * x);
	m[2][2] = 1 - 2 * (x * x + y * y);
}

static bool is_isotropic(const SandShape *shape)
{
	double largest = fmax(shape->inertia[0], fmax(shape->inertia[1], shape->inertia[2]));
	double smallest = fmin(shape->inertia[0], fmin(shape->inertia[1], shape->inertia[2]));
	return largest - smallest <= 1e-6 * largest;
}

static SandTraits *traits_of(const SandSim *sim, const SandGrain *grain)
{
	return &sim->traits[grain - sim->grains];
}

static double moment(const SandSim *sim, const SandTraits *traits, const SandGrain *grain, int axis)
{
	double scale = traits->scale;
	return sim->scene->shapes[traits->shape].inertia[axis] * scale * scale / grain->inverse_mass;
}

static double moment_of(const SandSim *sim, const SandGrain *grain, int axis)
{
	return moment(sim, traits_of(sim, grain), grain, axis);
}

// Angular velocity, world axes: R I^-1 R^T L.
static void spin_of(const SandSim *sim, const SandGrain *grain, double spin[3])
{
	double m[3][3], body[3];
	rotation_of(grain->orientation, m);
	for (int k = 0; k < 3; ++k)
	{
		body[k] = (m[0][k] * grain->momentum[0] + m[1][k] * grain->momentum[1] + m[2][k] * grain->momentum[2]) /
		          moment_of(sim, grain, k);
	}
	for (int k = 0; k < 3; ++k)
	{
		spin[k] = m[k][0] * body[0] + m[k][1] * body[1] + m[k][2] * body[2];
	}
}

// The inverse: momentum of a given spin. The grain need not be among the simulator's.
static void momentum_of(const SandSim *sim, const SandTraits *traits, SandGrain *grain, const double spin[3])
{
	double m[3][3], body[3];
	rotation_of(grain->orientation, m);
	for (int k = 0; k < 3; ++k)
	{
		body[k] = moment(sim, traits, grain, k) * (m[0][k] * spin[0] + m[1][k] * spin[1] + m[2][k] * spin[2]);
	}
	for (int k = 0; k < 3; ++k)
	{
		grain->momentum[k] = m[k][0] * body[0] + m[k][1] * body[1] + m[k][2] * body[2];
	}
}

static int32_t to_fixed(const SandSim *sim, double value, int axis)
{
	double steps = (value - sim->work.origin[axis]) / sim->work.unit;
	steps = steps > 1073741823.0 ? 1073741823.0 : steps > -1073741823.0 ? steps : -1073741823.0;
	return (int32_t)lrint(steps);
}

static void force_task(void *context, int chunk_index)
{
	SandSim *sim = context;
	sim->kernel->forces(&sim->work, &sim->chunks[chunk_index]);
}

static void move_chunk(SandSim *sim, int chunk_index)
{
	double begin = sand_ticks();
	(sim->is_closing ? sim->kernel->finish : sim->kernel->move)(&sim->work, sim->chunks, chunk_index);
	sim->chunks[chunk_index].is_moved = 1;
	sim->chunks[chunk_index].move_seconds += sand_ticks() - begin;
}

static int run_start(const SandSim *sim, int run)
{
	return sand_part_start(sim->chunk_count, run, sim->run_count);
}

// Whether chunks before the run's first touch this one. Inflows are in order of source.
static bool is_waiting(const SandChunk *chunk, int run_first)
{
	return chunk->inflow_count > 0 && chunk->inflows[0].source < run_first;
}

// Cuts the chunks into runs and gives them room for their sums. A chunk that is moved in its turn needs it only till
// then, so a run has one room for them all, which stays in the cache; other time schemes need all at once.
static SandStatus plan_runs(SandSim *sim, SandError *err)
{
	int threads = sand_pool_thread_count(sim->pool);
	bool is_keeping = sim->scheme != SAND_SCHEME_LEAPFROG;
	sim->run_count = threads == 1 ? 1 : sim->chunk_count < 4 * threads ? sim->chunk_count : 4 * threads;
	int64_t room = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		room = sim->chunks[c].sphere_count > room ? sim->chunks[c].sphere_count : room;
	}
	for (int is_counting = 1; is_counting >= 0; --is_counting)
	{
		int64_t used = room * sim->run_count;
		for (int run = 0; run < sim->run_count; ++run)
		{
			int first = run_start(sim, run), end = run_start(sim, run + 1);
			for (int c = first; c < end; ++c)
			{
				bool is_own = is_keeping || is_waiting(&sim->chunks[c], first);
				if (!is_counting)
				{
					sim->chunks[c].sums = sim->sums + (is_own ? used : room * run);
				}
				used += is_own ? sim->chunks[c].sphere_count : 0;
			}
		}
		if (is_counting && used > sim->sum_capacity)
		{
			sand_free(sim->sums);
			sim->sum_capacity = used + used / 8;
			sim->sums = sand_alloc((size_t)sim->sum_capacity, sizeof(SandSum));
			if (sim->sums == NULL)
			{
				sim->sum_capacity = 0;
				return sand_fail_memory(err, (size_t)used * sizeof(SandSum), "the sums of forces");
			}
		}
	}
	return SAND_OK;
}

static void sweep_task(void *context, int run)
{
	SandSim *sim = context;
	int first = run_start(sim, run), end = run_start(sim, run + 1);
	for (int c = first; c < end; ++c)
	{
		SandChunk *chunk = &sim->chunks[c];
		double begin = sand_ticks();
		sim->kernel->forces(&sim->work, chunk);
		chunk->force_seconds += sand_ticks() - begin;
		chunk->is_moved = 0;
		if (!is_waiting(chunk, first))
		{
			move_chunk(sim, c);
		}
	}
}

static void rest_task(void *context, int chunk_index)
{
	SandSim *sim = context;
	if (!sim->chunks[chunk_index].is_moved)
	{
		move_chunk(sim, chunk_index);
	}
}

// Forces at the present places, then the next move; or, closing, only the kick that is owed.
static void sweep(SandSim *sim, bool is_closing)
{
	int threads = sand_pool_thread_count(sim->pool);
	sim->is_closing = is_closing;
	sim->turn_seconds += is_closing ? 0 : sim->work.step;
	bool is_turning = is_closing || ++sim->turn_steps == TURN_STEPS;
	sim->work.turn = is_turning ? sim->turn_seconds : 0;
	sim->turn_seconds = is_turning ? 0 : sim->turn_seconds;
	sim->turn_steps = is_turning ? 0 : sim->turn_steps;
	sand_pool_run(sim->pool, sweep_task, sim, sim->run_count);
	sand_pool_run(sim->pool, rest_task, sim, sim->chunk_count);
	double acts = 0.5 * sim->work.last_step + (is_closing ? 0 : 0.5 * sim->work.step); // s, that these forces act for
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		for (int i = 0; i < 6 * sim->scene->collider_count; ++i)
		{
			sim->collider_impulses[i] += acts * sim->chunks[c].collider_sums[i];
		}
	}
	double force = 0, move = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		force += sim->chunks[c].force_seconds;
		move += sim->chunks[c].move_seconds;
		sim->chunks[c].force_seconds = sim->chunks[c].move_seconds = 0;
	}
	sim->force_seconds += force / threads;
	sim->drift_seconds += move / threads;
}

static void gather_task(void *context, int chunk_index)
{
	SandSim *sim = context;
	sim->kernel->gather(&sim->work, sim->chunks, chunk_index);
}

static void trial_place_task(void *context, int chunk_index)
{
	SandSim *sim = context;
	sim->kernel->place(&sim->work, &sim->chunks[chunk_index], false);
}

// ---------------------------------------------------------------------------------------------- order and list

enum
{
	MARGIN_CHOICES = 7
};

typedef struct GrainPass
{
	SandSim *sim;
	int block_count;
	const uint64_t *sorted;
	int32_t low[SAND_BLOCK_LIMIT][3], high[SAND_BLOCK_LIMIT][3]; // per block, of present grains
	int32_t corner[3];
	int cell_shift; // cells of 2^cell_shift units
	double thresholds[MARGIN_CHOICES];
	int64_t faster[SAND_BLOCK_LIMIT][MARGIN_CHOICES]; // per block: grains above each threshold
	double fastest[SAND_BLOCK_LIMIT];
	double fast_speed;
} GrainPass;

static int pass_start(const GrainPass *pass, int block)
{
	return sand_part_start(pass->sim->grain_count, block, pass->block_count);
}

static void run_pass(GrainPass *pass, SandTask *task)
{
	sand_pool_run(pass->sim->pool, task, pass, pass->block_count);
}

static void begin_pass(GrainPass *pass, SandSim *sim)
{
	pass->sim = sim;
	pass->block_count = sand_block_count(sim->grain_count, 256);
}

static void bounds_task(void *context, int block)
{
	GrainPass *pass = context;
	for (int k = 0; k < 3; ++k)
	{
		pass->low[block][k] = INT32_MAX;
		pass->high[block][k] = INT32_MIN;
	}
	for (int i = pass_start(pass, block), end = pass_start(pass, block + 1); i < end; ++i)
	{
		const SandGrain *grain = &pass->sim->grains[i];
		for (int k = 0; k < 3 && (grain->flags & SAND_GRAIN_ABSENT) == 0; ++k)
		{
			int32_t x = to_fixed(pass->sim, grain->position[k], k);
			pass->low[block][k] = x < pass->low[block][k] ? x : pass->low[block][k];
			pass->high[block][k] = x > pass->high[block][k] ? x : pass->high[block][k];
		}
	}
}

static void morton_task(void *context, int block)
{
	GrainPass *pass = context;
	uint64_t *records = sand_sorter_records(pass->sim->sorter);
	for (int i = pass_start(pass, block), end = pass_start(pass, block + 1); i < end; ++i)
	{
		const SandGrain *grain = &pass->sim->grains[i];
		int64_t cell[3];
		for (int k = 0; k < 3; ++k)
		{
			cell[k] = ((int64_t)to_fixed(pass->sim, grain->position[k], k) - pass->corner[k]) >> pass->cell_shift;
		}
		// In order of id, which the stable sort keeps within a key.
		records[pass->sim->traits[i].id] = (uint64_t)sand_morton(cell) << 32 | (uint32_t)i;
	}
}

static void reorder_task(void *context, int block)
{
	GrainPass *pass = context;
	for (int i = pass_start(pass, block), end = pass_start(pass, block + 1); i < end; ++i)
	{
		uint32_t from = (uint32_t)pass->sorted[i];
		pass->sim->grains_spare[i] = pass->sim->grains[from];
		pass->sim->traits_spare[i] = pass->sim->traits[from];
	}
}

// Grains into Morton order of their cell, ties by id: the order depends on the state alone. Cells are about two grains
// wide, or a thousandth of the sand's extent.
static void sort_grains(SandSim *sim)
{
	GrainPass pass;
	begin_pass(&pass, sim);
	run_pass(&pass, bounds_task);
	int64_t extent = 0;
	for (int k = 0; k < 3; ++k)
	{
		int32_t low = INT32_MAX, high = INT32_MIN;
		for (int block = 0; block < pass.block_count; ++block)
		{
			low = pass.low[block][k] < low ? pass.low[block][k] : low;
			high = pass.high[block][k] > high ? pass.high[block][k] : high;
		}
		pass.corner[k] = low;
		extent = low <= high && (int64_t)high - low > extent ? (int64_t)high - low : extent;
	}
	double cell = 4.0 * (double)sim->scene->radius_max / sim->work.unit;
	pass.cell_shift = 0;
	while (extent >> pass.cell_shift > 1023 || (double)(INT64_C(2) << pass.cell_shift) <= cell)
	{
		++pass.cell_shift;
	}
	run_pass(&pass, morton_task);
	pass.sorted = sand_sort(sim->sorter, sim->grain_count, 30, sim->pool);
	run_pass(&pass, reorder_task);
	SandGrain *swap = sim->grains;
	sim->grains = sim->grains_spare;
	sim->grains_spare = swap;
	SandTraits *traits = sim->traits;
	sim->traits = sim->traits_spare;
	sim->traits_spare = traits;
	sim->work.grains = sim->grains;
	sim->work.traits = sim->traits;
}

// A chunk is the grains whose first spheres lie in one stretch of chunk_spheres: a rule that needs no other grain.
static void cut_chunks(SandSim *sim)
{
	int sphere = 0, chunk_index = -1, stretch = -1;
	for (int i = 0; i < sim->grain_count; ++i)
	{
		SandGrain *grain = &sim->grains[i];
		int sphere_count = sim->scene->shapes[sim->traits[i].shape].sphere_count;
		if (sphere / sim->chunk_spheres != stretch)
		{
			stretch = sphere / sim->chunk_spheres;
			SandChunk *chunk = &sim->chunks[++chunk_index];
			chunk->first_grain = i;
			chunk->first_sphere = sphere;
			chunk->grain_count = chunk->sphere_count = 0;
			chunk->bad_grain = INT32_MAX;
			chunk->needs_list = chunk->awake_count = 0;
		}
		grain->first_sphere = sphere;
		sphere += sphere_count;
		sim->chunks[chunk_index].grain_count += 1;
		sim->chunks[chunk_index].sphere_count += sphere_count;
	}
	sim->chunk_count = chunk_index + 1;
}

// Wakes who is to wake, and gives every grain of a chunk its spheres.
static void dress_task(void *context, int chunk_index)
{
	SandSim *sim = context;
	SandChunk *chunk = &sim->chunks[chunk_index];
	for (int i = chunk->first_grain; i < chunk->first_grain + chunk->grain_count; ++i)
	{
		SandGrain *grain = &sim->grains[i];
		SandTraits *traits = &sim->traits[i];
		const SandShape *shape = &sim->scene->shapes[traits->shape];
		if ((grain->flags & SAND_GRAIN_WAKING) != 0 || traits->is_woken)
		{
			grain->flags &= ~(SAND_GRAIN_WAKING | SAND_GRAIN_ASLEEP);
			traits->is_woken = traits->quiet_steps = 0;
		}
		traits->quiet_steps = grain->flags & SAND_GRAIN_ABSENT ? 0 : traits->quiet_steps;
		if (traits->body >= 0)
		{
			sim->body_at[traits->body] = i;
		}
		chunk->awake_count += (grain->flags & SAND_GRAIN_STILL) == 0;
		for (int k = 0; k < shape->sphere_count; ++k)
		{
			SandSphere *sphere = &sim->spheres[grain->first_sphere + k];
			sphere->radius = (float)((double)(shape->radii[k] * traits->scale) / sim->work.unit);
			sphere->grain = i;
		}
	}
	sim->kernel->place(&sim->work, chunk, true);
}

static int compare_births(const SandSim *sim, int32_t a, int32_t b)
{
	double ta = sim->scene->grain_births[a], tb = sim->scene->grain_births[b];
	return ta < tb ? -1 : ta > tb ? 1 : a < b ? -1 : a > b;
}

static void sift_down(SandSim *sim, int at, int count)
{
	for (int child = 2 * at + 1; child < count; at = child, child = 2 * at + 1)
	{
		child += child + 1 < count && compare_births(sim, sim->waiting[child], sim->waiting[child + 1]) < 0;
		if (compare_births(sim, sim->waiting[at], sim->waiting[child]) >= 0)
		{
			return;
		}
		int32_t swap = sim->waiting[at];
		sim->waiting[at] = sim->waiting[child];
		sim->waiting[child] = swap;
	}
}

// Unborn grains in order of birth, by heap sort: no recursion, no worst case.
static void collect_waiting(SandSim *sim)
{
	sim->waiting_count = 0;
	for (int i = 0; i < sim->grain_count; ++i)
	{
		if (sim->grains[i].flags & SAND_GRAIN_UNBORN)
		{
			sim->waiting[sim->waiting_count++] = sim->traits[i].id;
		}
	}
	for (int i = sim->waiting_count / 2 - 1; i >= 0; --i)
	{
		sift_down(sim, i, sim->waiting_count);
	}
	for (int last = sim->waiting_count - 1; last > 0; --last)
	{
		int32_t swap = sim->waiting[0];
		sim->waiting[0] = sim->waiting[last];
		sim->waiting[last] = swap;
		sift_down(sim, 0, last);
	}
}

static double bound_of(const SandSim *sim, const SandGrain *grain)
{
	const SandTraits *traits = traits_of(sim, grain);
	return (double)sim->scene->shapes[traits->shape].bound * (double)traits->scale;
}

// Free when no present grain's bounding sphere reaches into the newcomer's. rivals = those that can.
static bool is_place_free(const SandSim *sim, const SandGrain *newcomer, const int32_t *rivals, int rival_count)
{
	for (int i = 0; i < rival_count; ++i)
	{
		const SandGrain *grain = &sim->grains[rivals[i]];
		double square = 0, reach = bound_of(sim, grain) + bound_of(sim, newcomer);
		for (int k = 0; k < 3; ++k)
		{
			double d = grain->position[k] - newcomer->position[k];
			square += d * d;
		}
		if (square < reach * reach && (grain->flags & SAND_GRAIN_ABSENT) == 0)
		{
			return false;
		}
	}
	return true;
}

// Carries a newcomer along the way it would have gone since its birth, or back. One that waited for its place to be
// free starts now.
static void carry(const SandSim *sim, SandGrain *grain, double birth, double sign)
{
	double since = sim->time - birth;
	since = since < 2 * SAND_BIRTH_STEPS * sim->step_limit ? since : 0;
	for (int k = 0; k < 3; ++k)
	{
		double kick = sim->scene->gravity[k] * since;
		// Back: the velocity before the kick.
		double velocity = sign > 0 ? grain->velocity[k] : grain->velocity[k] - kick;
		grain->position[k] += sign * (velocity + 0.5 * kick) * since;
		grain->velocity[k] += sign * kick;
	}
}

// Where the newcomers that are due are in memory, and the grains that may be in their way. Returns how many are due.
static int find_newcomers(SandSim *sim, int32_t *rivals, int *rival_count_out)
{
	double low[3] = {DBL_MAX, DBL_MAX, DBL_MAX}, high[3] = {-DBL_MAX, -DBL_MAX, -DBL_MAX}, room = 0;
	int due = 0;
	for (int i = 0; i < sim->grain_count; ++i)
	{
		const SandGrain *grain = &sim->grains[i];
		int32_t id = sim->traits[i].id;
		room = fmax(room, bound_of(sim, grain));
		if ((grain->flags & SAND_GRAIN_UNBORN) == 0 || sim->scene->grain_births[id] > sim->time)
		{
			continue;
		}
		sim->place_of[id] = i;
		++due;
		for (int k = 0; k < 3; ++k)
		{
			low[k] = fmin(low[k], grain->position[k]);
			high[k] = fmax(high[k], grain->position[k]);
		}
	}
	// Twice the largest bound, and the way a newcomer is carried.
	room = 2 * room + 2 * SAND_BIRTH_STEPS * sim->step_limit * sim->work.speed_limit;
	*rival_count_out = 0;
	for (int i = 0; i < sim->grain_count && due > 0; ++i)
	{
		bool is_near = true;
		for (int k = 0; k < 3; ++k)
		{
			double x = sim->grains[i].position[k];
			is_near = is_near && x > low[k] - room && x < high[k] + room;
		}
		if (is_near && (sim->grains[i].flags & SAND_GRAIN_ABSENT) == 0)
		{
			rivals[(*rival_count_out)++] = i;
		}
	}
	return due;
}

// Grains that are due appear, in order of birth, where there is room; the others try again with the next list.
static void give_birth(SandSim *sim)
{
	int kept = 0, rival_count = 0, due = find_newcomers(sim, sim->rivals, &rival_count);
	for (int i = 0; i < sim->waiting_count; ++i)
	{
		int32_t id = sim->waiting[i];
		double birth = sim->scene->grain_births[id];
		if (due > 0 && birth <= sim->time)
		{
			SandGrain *grain = &sim->grains[sim->place_of[id]];
			carry(sim, grain, birth, 1);
			if (is_place_free(sim, grain, sim->rivals, rival_count))
			{
				grain->flags &= ~SAND_GRAIN_UNBORN;
				sim->rivals[rival_count++] = sim->place_of[id];
				continue;
			}
			carry(sim, grain, birth, -1);
		}
		sim->waiting[kept++] = id;
	}
	sim->waiting_count = kept;
	sim->next_birth = DBL_MAX;
	for (int i = 0; i < kept && sim->next_birth == DBL_MAX; ++i)
	{
		double birth = sim->scene->grain_births[sim->waiting[i]];
		sim->next_birth = birth > sim->time ? birth : DBL_MAX;
	}
}

static void speeds_task(void *context, int block)
{
	GrainPass *pass = context;
	memset(pass->faster[block], 0, sizeof(pass->faster[block]));
	pass->fastest[block] = 0;
	for (int i = pass_start(pass, block), end = pass_start(pass, block + 1); i < end; ++i)
	{
		const SandGrain *grain = &pass->sim->grains[i];
		double speed = grain->flags & SAND_GRAIN_STILL ? 0 : (double)pass->sim->traits[i].reach_speed;
		pass->fastest[block] = fmax(pass->fastest[block], speed);
		for (int k = 0; k < MARGIN_CHOICES; ++k)
		{
			pass->faster[block][k] += speed > pass->thresholds[k];
		}
	}
}

static void mark_fast_task(void *context, int block)
{
	GrainPass *pass = context;
	for (int i = pass_start(pass, block), end = pass_start(pass, block + 1); i < end; ++i)
	{
		SandGrain *grain = &pass->sim->grains[i];
		double speed = pass->sim->traits[i].reach_speed;
		bool is_fast = (grain->flags & SAND_GRAIN_STILL) == 0 && speed > pass->fast_speed;
		grain->flags = is_fast ? grain->flags | SAND_GRAIN_FAST : grain->flags & ~SAND_GRAIN_FAST;
	}
}

// Which grains are fast, and how wide their margin. A margin that lasts k steps makes lists longer by the volume it
// adds and needs a new one only every k steps; k is the power of two with the least of (pairs) * (1 + price / k), where
// making a list costs about as much as `price` steps.
static void choose_margins(SandSim *sim)
{
	const double price = 10, radius = sim->scene->radius_min, step = sim->step_limit, slow = SAND_SLOW_MARGIN * radius;
	double best_cost = DBL_MAX, best_margin = slow, fastest_point = 0;
	GrainPass pass;
	begin_pass(&pass, sim);
	for (int choice = 0; choice < MARGIN_CHOICES; ++choice)
	{
		pass.thresholds[choice] = slow / ((64 >> choice) * step);
	}
	run_pass(&pass, speeds_task);
	for (int block = 0; block < pass.block_count; ++block)
	{
		fastest_point = fmax(fastest_point, pass.fastest[block]);
	}
	pass.fast_speed = DBL_MAX;
	for (int choice = 0; choice < MARGIN_CHOICES; ++choice)
	{
		int k = 64 >> choice;
		double margin = fmin(fmax(1.1 * fastest_point * k * step, slow), FAST_MARGIN * radius);
		double lasts = fastest_point > 0 ? fmin(margin / (fastest_point * step), k) : k;
		int64_t fast_count = 0;
		for (int block = 0; block < pass.block_count; ++block)
		{
			fast_count += pass.faster[block][choice];
		}
		double share = (double)fast_count / sim->grain_count, wide = 1 + margin / radius, narrow = 1 + SAND_SLOW_MARGIN;
		double cost =
		    (share * wide * wide * wide + (1 - share) * narrow * narrow * narrow) * (1 + price / fmax(lasts, 1));
		if (cost < best_cost)
		{
			best_cost = cost;
			pass.fast_speed = pass.thresholds[choice];
			best_margin = margin;
		}
	}
	sim->work.margin_fast = (float)(best_margin / sim->work.unit);
	run_pass(&pass, mark_fast_task);
}

static void place_colliders(SandSim *sim)
{
	for (int i = 0; i < sim->scene->collider_count; ++i)
	{
		sand_collider_set_time(sim->scene->colliders[i], sim->collider_states[i], sim->time);
	}
}

// Colliders at the present time for a list, which looks as much farther as they may go while it lasts.
static void fit_colliders(SandSim *sim)
{
	double horizon = SAND_COLLIDER_STEPS * sim->step_limit;
	place_colliders(sim);
	sim->colliders_until = DBL_MAX;
	for (int i = 0; i < sim->scene->collider_count; ++i)
	{
		double speed = sand_collider_speed(sim->scene->colliders[i], sim->time, sim->time + horizon);
		sand_collider_fit(sim->scene->colliders[i], sim->collider_states[i]);
		sim->collider_slack[i] = speed * horizon;
		// One that stands now may start later.
		if (sand_collider_is_moving(sim->scene->colliders[i]))
		{
			sim->colliders_until = sim->time + horizon;
		}
	}
}

// A sleeper that has lost a support since it fell asleep, to a neighbour that crept away, wakes with the next list.
static void support_task(void *context, int chunk_index)
{
	SandSim *sim = context;
	SandChunk *chunk = &sim->chunks[chunk_index];
	for (int i = chunk->first_grain; i < chunk->first_grain + chunk->grain_count; ++i)
	{
		SandTraits *traits = &sim->traits[i];
		if ((sim->grains[i].flags & SAND_GRAIN_STILL) != SAND_GRAIN_ASLEEP)
		{
			continue;
		}
		int32_t supports = 1 + sim->work.supports[i];
		traits->is_woken = traits->is_woken || supports < traits->quiet_steps;
		chunk->needs_list |= traits->is_woken;
		traits->quiet_steps = supports > traits->quiet_steps ? supports : traits->quiet_steps;
	}
}

static SandStatus build_list(SandSim *sim, bool is_sorting, SandError *err)
{
	double begin = sand_ticks();
	SandStatus status = SAND_OK;
	if (sim->chunk_count > 0)
	{
		// Before the first list there are no pairs, but there may be springs from a checkpoint.
		status = sand_list_save_history(sim->list, &sim->work, sim->chunks, sim->chunk_count, sim->sphere_base,
		                                sim->pool, err);
	}
	if (status == SAND_OK)
	{
		if (sim->waiting_count > 0)
		{
			give_birth(sim);
		}
		if (is_sorting)
		{
			sort_grains(sim);
		}
		cut_chunks(sim);
		sand_pool_run(sim->pool, dress_task, sim, sim->chunk_count);
		choose_margins(sim);
		fit_colliders(sim);
		bool can_sleep = sim->scene->sleep_speed > 0;
		if (can_sleep)
		{
			memset(sim->work.supports, 0, (size_t)sim->grain_count * sizeof(int32_t));
		}
		status = sand_list_build(sim->list, sim->kernel, &sim->work, sim->chunks, sim->chunk_count, sim->sphere_base,
		                         sim->sorter, sim->pool, err);
		status = status != SAND_OK ? status : plan_runs(sim, err);
		if (can_sleep && status == SAND_OK)
		{
			sand_pool_run(sim->pool, support_task, sim, sim->chunk_count);
		}
		if (status != SAND_OK)
		{
			// Half a list is none: the grains and the saved springs are whole, the next list starts from them.
			sim->chunk_count = 0;
		}
	}
	++sim->list_count;
	sim->list_seconds += sand_ticks() - begin;
	return status;
}

// ---------------------------------------------------------------------------------------------- life and stepping

static SandStatus allocate(SandSim *sim, SandError *err)
{
	size_t grains = (size_t)sim->grain_count, total = (size_t)sim->sphere_count + (size_t)sim->wall_count;
	int share = sim->sphere_count / CHUNK_COUNT;
	sim->chunk_spheres = share < CHUNK_SMALLEST ? CHUNK_SMALLEST : share > CHUNK_SPHERES ? CHUNK_SPHERES : share;
	sim->chunk_limit = sim->sphere_count / sim->chunk_spheres + 1;
	sim->grains = sand_alloc(grains, sizeof(SandGrain));
	sim->grains_spare = sand_alloc(grains, sizeof(SandGrain));
	sim->traits = sand_alloc(grains, sizeof(SandTraits));
	sim->traits_spare = sand_alloc(grains, sizeof(SandTraits));
	sim->spheres = sand_alloc(total, sizeof(SandSphere));
	sim->sphere_base = sand_alloc(grains, sizeof(int32_t));
	size_t newcomers = sim->scene->emitter_count > 0 ? grains : 0;
	sim->waiting = sand_alloc(newcomers, sizeof(int32_t));
	sim->place_of = sand_alloc(newcomers, sizeof(int32_t));
	sim->rivals = sand_alloc(newcomers, sizeof(int32_t));
	sim->work.supports = sand_alloc(sim->scene->sleep_speed > 0 ? grains : 0, sizeof(int32_t));
	sim->chunks = sand_alloc((size_t)sim->chunk_limit, sizeof(SandChunk));
	size_t colliders = (size_t)sim->scene->collider_count, bodies = (size_t)sim->scene->body_count;
	sim->collider_states = sand_alloc(colliders, sizeof(SandColliderState *));
	sim->collider_slack = sand_alloc(colliders, sizeof(double));
	sim->collider_impulses = sand_alloc(6 * colliders, sizeof(double));
	sim->targets = sand_alloc(bodies, sizeof(SandGrain));
	sim->body_at = sand_alloc(bodies, sizeof(int32_t));
	sim->impulses = sand_alloc(6 * bodies, sizeof(double));
	if (sim->collider_states == NULL || sim->collider_slack == NULL || sim->collider_impulses == NULL ||
	    sim->targets == NULL || sim->body_at == NULL || sim->impulses == NULL)
	{
		return sand_fail_memory(err, colliders * 64 + bodies * sizeof(SandGrain), "the colliders and bodies");
	}
	for (size_t i = 0; i < colliders; ++i)
	{
		SandStatus status = sand_collider_state_create(sim->scene->colliders[i], &sim->collider_states[i], err);
		if (status != SAND_OK)
		{
			return status;
		}
	}
	sim->work.colliders = sim->scene->colliders;
	sim->work.collider_count = sim->scene->collider_count;
	sim->work.collider_states = sim->collider_states;
	sim->work.collider_slack = sim->collider_slack;
	sim->work.targets = sim->targets;
	sim->work.impulses = sim->impulses;
	if (sim->grains == NULL || sim->grains_spare == NULL || sim->traits == NULL || sim->traits_spare == NULL ||
	    sim->spheres == NULL || sim->sphere_base == NULL || sim->waiting == NULL || sim->place_of == NULL ||
	    sim->rivals == NULL || sim->work.supports == NULL || sim->chunks == NULL)
	{
		return sand_fail_memory(
		    err, total * (sizeof(SandSphere) + sizeof(SandSum)) + grains * 2 * (sizeof(SandGrain) + sizeof(SandTraits)),
		    "the simulator's state");
	}
	return SAND_OK;
}

static void set_scales(SandSim *sim)
{
	const SandScene *scene = sim->scene;
	SandWork *work = &sim->work;
	double extent = 0;
	for (int k = 0; k < 3; ++k)
	{
		work->origin[k] = 0.5 * (scene->domain_min[k] + scene->domain_max[k]);
		work->domain_min[k] = scene->domain_min[k];
		work->domain_max[k] = scene->domain_max[k];
		work->gravity[k] = scene->gravity[k];
		extent = fmax(extent, scene->domain_max[k] - scene->domain_min[k]);
	}
	// A power of two, so that conversion is exact, with the grains' own size as room at the border.
	work->unit = exp2(ceil(log2((extent + 8.0 * (double)scene->radius_max) / 2147483648.0)));
	work->speed_limit = fmax(20 * scene->max_speed, 0.5 * (double)scene->radius_min / sim->step_limit);
	work->margin_slow = work->margin_fast = (float)(SAND_SLOW_MARGIN * (double)scene->radius_min / work->unit);
	work->shapes = scene->shapes;
	work->laws = scene->laws;
	work->law_count = scene->law_count;
	work->law_of = scene->law_of;
	work->material_count = scene->material_count;
	work->wall_material = scene->wall_material;
	work->obstacles = scene->obstacles;
	work->obstacle_count = scene->obstacle_count;
	work->drag = scene->drag;
	memcpy(work->wind, scene->wind, sizeof(work->wind));
	work->regions = scene->regions;
	work->region_count = scene->region_count;
	work->outflows = scene->outflows;
	work->outflow_count = scene->outflow_count;
	work->sleep_speed = scene->sleep_speed;
	work->wake_speed_square = (float)(scene->wake_speed * scene->wake_speed);
}

// Where a driven grain is at a time, and how it moves: into `to`, which may be the grain itself.
static void aim(const SandSim *sim, const SandGrain *grain, const SandBody *body, double time, SandGrain *to)
{
	const SandShape *shape = &sim->scene->shapes[traits_of(sim, grain)->shape];
	SandPose pose;
	sand_track_pose(body->track, time, &pose);
	SandGrain aimed = *grain;
	memcpy(aimed.position, pose.position, sizeof(aimed.position));
	memcpy(aimed.velocity, pose.velocity, sizeof(aimed.velocity));
	quaternion_multiply(pose.orientation, shape->axes, aimed.orientation);
	quaternion_normalise(aimed.orientation);
	momentum_of(sim, traits_of(sim, grain), &aimed, pose.spin);
	*to = aimed;
}

// Before a move: targets of the driven ones at its end. Those that are due are let go, with the motion they have; true
// when there were any, which have pairs now that they had not.
static bool aim_bodies(SandSim *sim, double time_after)
{
	bool is_any_released = false;
	if (!sim->has_driven)
	{
		return false;
	}
	sim->has_driven = false;
	for (int i = 0; i < sim->scene->body_count; ++i)
	{
		SandGrain *grain = &sim->grains[sim->body_at[i]];
		const SandBody *body = &sim->scene->bodies[i];
		if ((grain->flags & SAND_GRAIN_DRIVEN) == 0)
		{
			continue;
		}
		if (body->release > 0 && sim->time >= body->release)
		{
			grain->flags &= ~SAND_GRAIN_DRIVEN;
			is_any_released = true;
			continue;
		}
		sim->has_driven = true;
		aim(sim, grain, body, time_after, &sim->targets[i]);
	}
	return is_any_released;
}

static void load_scene(SandSim *sim)
{
	const SandScene *scene = sim->scene;
	int32_t base = 0;
	sim->work.grains = sim->grains;
	sim->work.traits = sim->traits;
	sim->work.spheres = sim->spheres;
	for (int i = 0; i < scene->grain_count; ++i)
	{
		SandGrain *grain = &sim->grains[i];
		const SandShape *shape = &scene->shapes[scene->grain_shapes[i]];
		double q[4], scale = scene->grain_scales[i];
		int material = scene->grain_materials[i];
		sim->traits[i] = (SandTraits){.id = i,
		                              .shape = scene->grain_shapes[i],
		                              .material = material,
		                              .scale = scene->grain_scales[i],
		                              .body = -1};
		grain->inverse_mass = 1 / (shape->volume * scale * scale * scale * (double)scene->materials[material].density);
		grain->inverse_inertia = is_isotropic(shape) ? 1 / moment_of(sim, grain, 0) : 0;
		for (int k = 0; k < 4; ++k)
		{
			q[k] = scene->grain_orientations[4 * i + k];
		}
		quaternion_normalise(q);
		quaternion_multiply(q, shape->axes, grain->orientation);
		quaternion_normalise(grain->orientation);
		for (int k = 0; k < 3; ++k)
		{
			grain->position[k] = scene->grain_positions[3 * i + k];
			grain->velocity[k] = scene->grain_velocities[3 * i + k];
		}
		const float *spin = scene->grain_spins + 3 * i;
		momentum_of(sim, &sim->traits[i], grain, (const double[3]){(double)spin[0], (double)spin[1], (double)spin[2]});
		grain->flags = scene->grain_emitters[i] >= 0 ? SAND_GRAIN_UNBORN : 0;
		sim->sphere_base[i] = base;
		base += shape->sphere_count;
	}
	for (int i = 0; i < scene->body_count; ++i)
	{
		SandGrain *grain = &sim->grains[scene->bodies[i].grain];
		sim->traits[scene->bodies[i].grain].body = i;
		sim->body_at[i] = scene->bodies[i].grain;
		grain->flags |= SAND_GRAIN_BODY;
		if (scene->bodies[i].track != NULL)
		{
			grain->flags |= SAND_GRAIN_DRIVEN;
			sim->has_driven = true;
			aim(sim, grain, &scene->bodies[i], 0, grain);
		}
	}
	for (int i = 0; i < scene->wall_count; ++i)
	{
		SandSphere *wall = &sim->spheres[sim->sphere_count + i];
		for (int k = 0; k < 3; ++k)
		{
			wall->x[k] = wall->x_listed[k] = to_fixed(sim, scene->wall_positions[3 * i + k], k);
		}
		wall->radius = wall->radius_again = (float)((double)scene->wall_radius / sim->work.unit);
		wall->grain = -1;
	}
}

static SandStatus make_list(SandSim *sim, SandError *err)
{
	const SandScene *scene = sim->scene;
	double unit = sim->work.unit;
	SandListDesc desc = {.sphere_count = sim->sphere_count,
	                     .wall_count = sim->wall_count,
	                     .grain_count = sim->grain_count,
	                     .radius_min = (float)((double)scene->radius_min / unit),
	                     .radius_max = (float)((double)scene->radius_max / unit),
	                     // The effective radius of a bridge is at most half the largest radius.
	                     .bridge = (float)(0.5 * (double)(scene->bridge * scene->radius_max) / unit),
	                     .margin_slow = sim->work.margin_slow,
	                     .margin_fast_limit = (float)(FAST_MARGIN * (double)scene->radius_min / unit),
	                     .has_history = scene->has_history || scene->collider_count > 0,
	                     .obstacle_count = scene->obstacle_count,
	                     .collider_base = scene->collider_base,
	                     .collider_count = scene->collider_count};
	return sand_list_create(&desc, &sim->list, err);
}

static SandStatus set_scheme(SandSim *sim, const SandSimDesc *desc, SandError *err)
{
	const SandScene *scene = sim->scene;
	sim->scheme = desc->scheme;
	sim->tolerance = desc->tolerance > 0 ? desc->tolerance : 1e-5;
	if ((unsigned)desc->scheme >= SAND_SCHEME_COUNT || !(desc->tolerance >= 0 && desc->tolerance < 1))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "The time scheme is %d with tolerance %g, expected 0 to %d and 0 to 1", (int)desc->scheme,
		                 desc->tolerance, SAND_SCHEME_COUNT - 1);
	}
	if (desc->scheme == SAND_SCHEME_LEAPFROG)
	{
		return SAND_OK;
	}
	if (scene->emitter_count > 0 || scene->outflow_count > 0 || scene->collider_count > 0 || scene->body_count > 0 ||
	    scene->sleep_speed > 0 || scene->drag > 0 || scene->region_count > 0 ||
	    (desc->scheme == SAND_SCHEME_RKF45 && scene->has_history))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Time scheme %d is for comparison and knows no emitters, outflows, colliders, bodies, sleep, "
		                 "wind, regions%s; use "
		                 "leapfrog (0)",
		                 (int)desc->scheme, desc->scheme == SAND_SCHEME_RKF45 ? " or history friction" : "");
	}
	sim->trial = sand_alloc((size_t)sim->grain_count * (SAND_RKF45_STAGES + 1), sizeof(SandSchemeState));
	sim->work.loads = sand_alloc((size_t)sim->grain_count, sizeof(SandLoad));
	return sim->trial != NULL && sim->work.loads != NULL
	           ? SAND_OK
	           : sand_fail_memory(err, (size_t)sim->grain_count * 7 * sizeof(SandSchemeState), "the trial states");
}

// Number of the body that a grain is, -1 for none.
static int body_of(const SandSim *sim, int32_t id)
{
	for (int i = 0; i < sim->scene->body_count; ++i)
	{
		if (sim->scene->bodies[i].grain == id)
		{
			return i;
		}
	}
	return -1;
}

static SandStatus refuse_overlap(const SandSim *sim, const SandContact *worst, float limit, SandError *err)
{
	int body = body_of(sim, worst->grain), other_body = worst->other >= 0 ? body_of(sim, worst->other) : -1;
	int collider = -2 - sim->scene->obstacle_count - worst->other;
	double overlap = worst->overlap, allowed = limit;
	const char *label = body >= 0 ? "Body" : "Grain";
	int number = body >= 0 ? body : worst->grain;
	if (worst->other >= 0 && body < 0 && other_body < 0)
	{
		return sand_fail(
		    err, SAND_ERROR_ARGUMENT,
		    "Grains %d and %d overlap by %g m at the start, expected at most %g m (half the smallest radius); fill "
		    "with more room between grains",
		    worst->grain, worst->other, overlap, allowed);
	}
	if (worst->other >= 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "%s %d and %s %d overlap by %g m at the start, expected at most %g m (half the smallest "
		                 "radius); move the body away",
		                 label, number, other_body >= 0 ? "body" : "grain", other_body >= 0 ? other_body : worst->other,
		                 overlap, allowed);
	}
	if (collider >= 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "%s %d is %g m deep in collider %d, mesh '%s', at the start, expected at most %g m (half the "
		                 "smallest radius); move it away from the collider",
		                 label, number, overlap, collider, sand_collider_name(sim->scene->colliders[collider]),
		                 allowed);
	}
	return sand_fail(err, SAND_ERROR_ARGUMENT,
	                 "%s %d is %g m deep in a collider at the start, expected at most %g m (half the smallest radius); "
	                 "move the sand away from the collider",
	                 label, number, overlap, allowed);
}

// The deepest overlap at the start must be one that a bed at rest could have.
static SandStatus check_overlaps(SandSim *sim, SandError *err)
{
	SandStatus status = build_list(sim, true, err);
	if (status != SAND_OK)
	{
		return status;
	}
	// A chunk's contacts at a time: those of a large scene would need as much memory as the scene.
	float limit = 0.5f * sim->scene->radius_min;
	SandContact deepest = {.overlap = limit}, *contacts = NULL;
	int64_t capacity = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		int64_t count = sim->kernel->contacts(&sim->work, &sim->chunks[c], NULL, 0);
		if (count > capacity)
		{
			sand_free(contacts);
			capacity = count + count / 4;
			contacts = sand_alloc((size_t)capacity, sizeof(SandContact));
			if (contacts == NULL)
			{
				return sand_fail_memory(err, (size_t)capacity * sizeof(SandContact), "the contacts at the start");
			}
		}
		sim->kernel->contacts(&sim->work, &sim->chunks[c], contacts, count);
		for (int64_t i = 0; i < count; ++i)
		{
			deepest = contacts[i].overlap > deepest.overlap ? contacts[i] : deepest;
		}
	}
	if (deepest.overlap > limit)
	{
		status = refuse_overlap(sim, &deepest, limit, err);
	}
	sand_free(contacts);
	return status;
}

static SandStatus fail_unstable(SandSim *sim, int32_t bad, double speed, SandError *err)
{
	sim->is_failed = true;
	return sand_fail(
	    err, SAND_ERROR_UNSTABLE,
	    "Grain %d reached %g m/s at %.4f s, expected less than %g m/s; grains that overlap at the start or a "
	    "step that is too long (%g s) do this: fill with more room or lower the step",
	    bad, speed, sim->time, sim->work.speed_limit, sim->work.step);
}

static SandStatus report_bad_grain(SandSim *sim, SandError *err)
{
	int32_t bad = INT32_MAX;
	double speed = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		if (sim->chunks[c].bad_grain < bad)
		{
			bad = sim->chunks[c].bad_grain;
			speed = sim->chunks[c].bad_speed;
		}
	}
	return bad == INT32_MAX ? SAND_OK : fail_unstable(sim, bad, speed, err);
}

// ---------------------------------------------------------------------------------------------- the GL engine

static SandStatus start_gl(SandSim *sim, SandError *err)
{
	SandGlSimDesc *desc = &sim->gl_desc;
	desc->scene = sim->scene;
	desc->work = &sim->work;
	desc->list = sim->list;
	desc->step_limit = sim->step_limit;
	desc->chunk_spheres = sim->chunk_spheres;
	desc->sphere_count = sim->sphere_count;
	desc->wall_count = sim->wall_count;
	desc->has_asymmetric = false;
	for (int i = 0; i < sim->grain_count; ++i)
	{
		desc->has_asymmetric = desc->has_asymmetric || !(sim->grains[i].inverse_inertia > 0);
	}
	desc->walls = sim->spheres + sim->sphere_count;
	desc->sphere_base = sim->sphere_base;
	sim->is_changed = true;
	return sand_glsim_create(desc, &sim->gl, err);
}

static SandStatus choose_engine(SandSim *sim, const SandSimDesc *desc, SandError *err)
{
	if ((unsigned)desc->engine >= SAND_ENGINE_COUNT)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The engine is %d, expected 0 to %d", (int)desc->engine,
		                 SAND_ENGINE_COUNT - 1);
	}
	if (desc->engine == SAND_ENGINE_CPU)
	{
		return SAND_OK;
	}
	if (desc->scheme != SAND_SCHEME_LEAPFROG)
	{
		return desc->engine == SAND_ENGINE_AUTO
		           ? SAND_OK
		           : sand_fail(err, SAND_ERROR_ARGUMENT,
		                       "The gl engine knows only the leapfrog (0), found time scheme %d", (int)desc->scheme);
	}
	sim->stops_without_gpu = desc->stops_without_gpu;
	sim->gl_desc.batch_seconds = desc->batch_seconds;
	sim->gl_desc.defines = desc->gl_defines;
	sim->gl_desc.gpu = desc->gpu;
	sim->gl_desc.gpu.refuses_software = desc->gpu.refuses_software || desc->engine == SAND_ENGINE_AUTO;
	SandError why = {0};
	SandStatus status = start_gl(sim, &why);
	if (status == SAND_OK)
	{
		return SAND_OK;
	}
	if (desc->engine == SAND_ENGINE_AUTO && status != SAND_ERROR_MEMORY)
	{
		memcpy(sim->note, why.message, sizeof(sim->note));
		return SAND_OK;
	}
	if (err != NULL)
	{
		*err = why;
	}
	return status;
}

// The state between two calls, to the device and back.
static SandStatus advance_gl(SandSim *sim, double seconds, double ahead_seconds, SandCancel *cancel, SandError *err)
{
	double next = sand_glsim_next(sim->gl);
	if (next > 0 && (sim->is_changed || next != seconds))
	{
		sand_glsim_drop(sim->gl);
		sim->is_changed = true;
	}
	SandGlState state = {.is_changed = sim->is_changed,
	                     .grains = sim->grains,
	                     .traits = sim->traits,
	                     .time = sim->time,
	                     .step_count = sim->step_count,
	                     .list_count = sim->list_count,
	                     .waiting = sim->waiting,
	                     .waiting_count = sim->waiting_count,
	                     .next_birth = sim->next_birth,
	                     .body_impulses = sim->impulses,
	                     .collider_impulses = sim->collider_impulses};
	if (sim->is_changed)
	{
		SandStatus status = SAND_OK;
		if (sim->chunk_count > 0)
		{
			status = sand_list_save_history(sim->list, &sim->work, sim->chunks, sim->chunk_count, sim->sphere_base,
			                                sim->pool, err);
		}
		state.spring_count = sand_list_spring_count(sim->list);
		state.springs = sand_alloc((size_t)state.spring_count, sizeof(SandSpring));
		if (status != SAND_OK || state.springs == NULL)
		{
			return status != SAND_OK ? status : sand_fail_memory(err, (size_t)state.spring_count * 24, "the springs");
		}
		sand_list_read_springs(sim->list, state.springs);
	}
	double begin = sand_ticks();
	SandStatus status = sand_glsim_advance(sim->gl, &state, seconds, ahead_seconds, cancel, err);
	bool is_new = status == SAND_OK || status == SAND_CANCELLED || status == SAND_ERROR_UNSTABLE;
	// After any failure the device holds nothing of use.
	sim->is_changed = true;
	if (is_new)
	{
		SandStatus kept = sand_list_write_springs(sim->list, state.springs, state.spring_count, err);
		status = kept != SAND_OK ? kept : status;
		sim->load_seconds = state.time - sim->time;
		sim->time = state.time;
		sim->work.step = state.last_step;
		sim->step_count = state.step_count;
		sim->list_count = state.list_count;
		sim->contact_count = state.contact_count;
		sim->waiting_count = state.waiting_count;
		sim->next_birth = state.next_birth;
		sim->is_changed = state.is_changed;
		sim->has_driven = false;
		for (int i = 0; i < sim->grain_count && sim->scene->body_count > 0; ++i)
		{
			sim->has_driven = sim->has_driven || (sim->grains[i].flags & SAND_GRAIN_DRIVEN) != 0;
		}
		sim->chunk_count = 0; // the host's pairs are not this state's
		sim->force_seconds += sand_ticks() - begin;
	}
	if (status == SAND_ERROR_UNSTABLE)
	{
		double square = 0;
		for (int i = 0; i < sim->grain_count; ++i)
		{
			const double *v = sim->grains[i].velocity;
			square = sim->traits[i].id == state.bad_grain ? v[0] * v[0] + v[1] * v[1] + v[2] * v[2] : square;
		}
		status = fail_unstable(sim, state.bad_grain, sqrt(square), err);
	}
	sand_free(state.springs);
	return status;
}

static void leave_gl(SandSim *sim, const char *why)
{
	sand_glsim_destroy(sim->gl);
	sim->gl = NULL;
	(void)snprintf(sim->note, sizeof(sim->note), "The device failed twice in a row, the cpu engine goes on: %.400s",
	               why);
}

// A device that fails is made anew, and the state of the last call is taken up again; after the second failure in a row
// the CPU engine goes on, or the simulation stops, as was asked for.
static SandStatus advance_on_device(SandSim *sim, double seconds, double ahead_seconds, SandCancel *cancel,
                                    SandError *err)
{
	SandError why = {0};
	SandStatus status = SAND_OK;
	for (int attempt = 0; attempt < 2; ++attempt)
	{
		why = (SandError){0};
		status = sim->gl != NULL ? SAND_OK : start_gl(sim, &why);
		status = status != SAND_OK ? status : advance_gl(sim, seconds, ahead_seconds, cancel, &why);
		if (status != SAND_ERROR_GPU && status != SAND_ERROR_GPU_LOST && status != SAND_ERROR_GPU_MEMORY)
		{
			break;
		}
		++sim->lost_count;
		sand_glsim_destroy(sim->gl);
		sim->gl = NULL;
		sim->is_changed = true;
	}
	if (status == SAND_ERROR_GPU || status == SAND_ERROR_GPU_LOST || status == SAND_ERROR_GPU_MEMORY)
	{
		if (!sim->stops_without_gpu)
		{
			leave_gl(sim, why.message);
			return sand_sim_advance(sim, seconds, cancel, err);
		}
		sim->is_stopped = true;
	}
	if (err != NULL && status != SAND_OK)
	{
		*err = why;
	}
	return status;
}

SandSimEngine sand_sim_engine(const SandSim *sim)
{
	return (SandSimEngine){.engine = sim->gl != NULL ? SAND_ENGINE_GL : SAND_ENGINE_CPU,
	                       .device = sim->gl != NULL ? sand_glsim_device(sim->gl) : NULL,
	                       .ahead_count = sim->gl != NULL ? sand_glsim_ahead_count(sim->gl) : 0,
	                       .note = sim->note,
	                       .lost_count = sim->lost_count};
}

int sand_sim_passes(SandSim *sim, SandSimPass passes_out[SAND_GPU_PASS_LIMIT])
{
	SandGpuPassTime times[SAND_GPU_PASS_LIMIT];
	int count = 0;
	if (sim->gl == NULL || sand_glsim_pass_times(sim->gl, times, NULL) != SAND_OK)
	{
		return 0;
	}
	for (; count < SAND_GPU_PASS_LIMIT && sand_glsim_pass_name(count) != NULL; ++count)
	{
		passes_out[count] = (SandSimPass){sand_glsim_pass_name(count), times[count].seconds, times[count].count};
	}
	return count;
}

SandStatus sand_sim_create(const SandScene *scene, const SandSimDesc *desc, SandSim **sim_out, SandError *err)
{
	*sim_out = NULL;
	if (!(desc->step_seconds >= 0) || !isfinite(desc->step_seconds))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The step is %g s, expected a positive number (0 = automatic)",
		                 desc->step_seconds);
	}
	SandSim *sim = sand_alloc(1, sizeof(*sim));
	if (sim == NULL)
	{
		return sand_fail_memory(err, sizeof(*sim), "the simulator");
	}
	sim->scene = scene;
	sim->grain_count = scene->grain_count;
	sim->sphere_count = (int)scene->sphere_count;
	sim->wall_count = scene->wall_count;
	sim->step_limit = desc->step_seconds > 0 ? desc->step_seconds : scene->contact_time / STEPS_PER_CONTACT;
	sim->kernel = sand_kernel_find(desc->kernel);
	set_scales(sim);
	SandStatus status = SAND_OK;
	if (sim->kernel == NULL)
	{
		status = sand_fail(err, SAND_ERROR_ARGUMENT, "The kernel '%s' does not run on this processor", desc->kernel);
	}
	status = status != SAND_OK ? status : sand_pool_create(desc->thread_count, &sim->pool, err);
	status = status != SAND_OK ? status : allocate(sim, err);
	status = status != SAND_OK ? status : sand_sorter_create(sim->sphere_count + sim->wall_count, &sim->sorter, err);
	status = status != SAND_OK ? status : make_list(sim, err);
	status = status != SAND_OK ? status : set_scheme(sim, desc, err);
	if (status != SAND_OK)
	{
		sand_sim_destroy(sim);
		return status;
	}
	load_scene(sim);
	collect_waiting(sim);
	status = desc->is_overlap_allowed ? SAND_OK : check_overlaps(sim, err);
	status = status != SAND_OK ? status : choose_engine(sim, desc, err);
	if (status != SAND_OK)
	{
		sand_sim_destroy(sim);
		return status;
	}
	*sim_out = sim;
	return SAND_OK;
}

void sand_sim_destroy(SandSim *sim)
{
	if (sim == NULL)
	{
		return;
	}
	for (int c = 0; sim->chunks != NULL && c < sim->chunk_limit; ++c)
	{
		sand_list_chunk_free(&sim->chunks[c]);
	}
	sand_glsim_destroy(sim->gl);
	sand_list_destroy(sim->list);
	sand_pool_destroy(sim->pool);
	sand_free(sim->grains);
	sand_free(sim->grains_spare);
	sand_free(sim->traits);
	sand_free(sim->traits_spare);
	sand_sorter_destroy(sim->sorter);
	sand_free(sim->sums);
	sand_free(sim->spheres);
	sand_free(sim->sphere_base);
	sand_free(sim->waiting);
	sand_free(sim->place_of);
	sand_free(sim->rivals);
	sand_free(sim->work.supports);
	for (int i = 0; sim->collider_states != NULL && i < sim->scene->collider_count; ++i)
	{
		sand_collider_state_destroy(sim->collider_states[i]);
	}
	sand_free(sim->collider_states);
	sand_free(sim->collider_slack);
	sand_free(sim->collider_impulses);
	sand_free(sim->targets);
	sand_free(sim->body_at);
	sand_free(sim->impulses);
	sand_free(sim->trial);
	sand_free(sim->work.loads);
	sand_free(sim->chunks);
	sand_free(sim);
}

static bool needs_list(const SandSim *sim)
{
	bool needs = false;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		needs = needs || sim->chunks[c].needs_list;
	}
	return needs;
}

static double fastest(const SandSim *sim)
{
	double square = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		square = fmax(square, sim->chunks[c].fastest_square);
	}
	return sqrt(square);
}

// Of x in 0 .. 1, by Newton's method from above; only the four operations, so that every machine gives the same bits.
static double fifth_root(double x)
{
	double root = 1;
	for (int i = 0; i < 100; ++i)
	{
		double next = (4 * root + x / ((root * root) * (root * root))) * 0.2;
		if (!(next < root))
		{
			break;
		}
		root = next;
	}
	return root;
}

// The longest safe step: a share of the contact duration, which shrinks as v^(-1/5) when impacts are faster than the
// scene expected; no sphere may cross more than a fifth of the smallest radius; and the path in the force field may
// leave the straight line by at most a hundredth of it.
static double safe_step(const SandSim *sim)
{
	const SandScene *scene = sim->scene;
	double speed = fastest(sim), step = sim->step_limit, radius = scene->radius_min, field = 0, collider = 0;
	for (int i = 0; i < scene->collider_count; ++i)
	{
		collider = fmax(collider, sand_collider_speed(scene->colliders[i], sim->time, sim->time + step));
	}
	speed += collider;
	for (int k = 0; k < 3; ++k)
	{
		field += fabs(scene->gravity[k]);
	}
	if (speed > scene->max_speed)
	{
		step *= fifth_root(scene->max_speed / speed);
	}
	step = speed > 0 ? fmin(step, 0.2 * radius / speed) : step;
	return field > 0 ? fmin(step, sqrt(0.02 * radius / field)) : step;
}

// Spheres and forces of the grains as they are. The list is renewed when they left its reach.
static SandStatus evaluate(SandSim *sim, SandError *err)
{
	sand_pool_run(sim->pool, trial_place_task, sim, sim->chunk_count);
	SandStatus status = SAND_OK;
	if (needs_list(sim))
	{
		// Grains keep their order: trial states are kept by place in memory.
		status = build_list(sim, false, err);
	}
	if (status == SAND_OK)
	{
		sand_pool_run(sim->pool, force_task, sim, sim->chunk_count);
		sand_pool_run(sim->pool, gather_task, sim, sim->chunk_count);
	}
	return status;
}

static SandStatus check_speeds(SandSim *sim, SandError *err)
{
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		SandChunk *chunk = &sim->chunks[c];
		for (int i = chunk->first_grain; i < chunk->first_grain + chunk->grain_count; ++i)
		{
			const double *v = sim->grains[i].velocity;
			double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
			if (!(square < sim->work.speed_limit * sim->work.speed_limit) && sim->traits[i].id < chunk->bad_grain)
			{
				chunk->bad_grain = sim->traits[i].id;
				chunk->bad_speed = sqrt(square);
			}
		}
	}
	return report_bad_grain(sim, err);
}

static SandStatus take_euler_step(SandSim *sim, SandError *err)
{
	static const double whole = 1;
	for (int i = 0; i < sim->grain_count; ++i)
	{
		SandSchemeState state = sand_scheme_read(&sim->grains[i]),
		                rates = sand_scheme_rates(&sim->work, &sim->grains[i], &sim->work.loads[i]);
		sand_scheme_combine(&state, &rates, 1, 1, &whole, sim->work.step, &state);
		sand_scheme_write(&state, &sim->grains[i]);
	}
	sim->work.last_step = sim->work.step;
	SandStatus status = check_speeds(sim, err);
	return status != SAND_OK ? status : evaluate(sim, err);
}

// One accepted step of at most work.step, which is shortened to the step taken.
static SandStatus take_rkf45_step(SandSim *sim, SandError *err)
{
	size_t n = (size_t)sim->grain_count;
	SandSchemeState *start = sim->trial, *rates = sim->trial + n;
	double limit = sim->work.step, step = sim->trial_step > 0 ? fmin(sim->trial_step, limit) : limit;
	double radius = sim->scene->radius_min, speed = sim->scene->max_speed;
	sim->work.step = 0; // forces only: no spring stretches
	for (size_t i = 0; i < n; ++i)
	{
		start[i] = sand_scheme_read(&sim->grains[i]);
	}
	for (int attempt = 0; attempt < 100; ++attempt)
	{
		double error = 0;
		for (int stage = 0; stage < SAND_RKF45_STAGES; ++stage)
		{
			for (size_t i = 0; i < n; ++i)
			{
				SandSchemeState state;
				sand_scheme_combine(&start[i], rates + i, stage, n, sand_rkf45_row(stage), step, &state);
				sand_scheme_write(&state, &sim->grains[i]);
			}
			SandStatus status = evaluate(sim, err);
			if (status != SAND_OK)
			{
				return status;
			}
			for (size_t i = 0; i < n; ++i)
			{
				rates[(size_t)stage * n + i] = sand_scheme_rates(&sim->work, &sim->grains[i], &sim->work.loads[i]);
			}
		}
		for (size_t i = 0; i < n; ++i)
		{
			error = fmax(error, sand_scheme_error(rates + i, n, step, sim->grains[i].inverse_mass, radius, speed,
			                                      sim->tolerance));
		}
		double growth = error > 0 ? fmin(fmax(0.9 * pow(error, -0.2), 0.2), 5) : 5;
		sim->trial_step = fmin(step * growth, sim->step_limit * 10);
		if (error <= 1 || step < 1e-6 * sim->step_limit)
		{
			for (size_t i = 0; i < n; ++i)
			{
				SandSchemeState state;
				sand_scheme_combine(&start[i], rates + i, SAND_RKF45_STAGES, n, sand_rkf45_fourth(), step, &state);
				sand_scheme_write(&state, &sim->grains[i]);
			}
			sim->work.step = step;
			return check_speeds(sim, err);
		}
		step = sim->trial_step;
	}
	sim->is_failed = true;
	return sand_fail(err, SAND_ERROR_UNSTABLE, "RKF45 found no step small enough for its tolerance %g at %.6f s",
	                 sim->tolerance, sim->time);
}

static SandStatus take_scheme_step(SandSim *sim, SandError *err)
{
	double begin = sand_ticks();
	SandStatus status = sim->scheme == SAND_SCHEME_EULER ? take_euler_step(sim, err) : take_rkf45_step(sim, err);
	sim->is_failed = sim->is_failed || status != SAND_OK;
	sim->force_seconds += sand_ticks() - begin;
	sim->step_count += status == SAND_OK;
	return status;
}

static SandStatus take_step(SandSim *sim, SandError *err)
{
	sim->work.sleep_steps = (int)fmin(ceil(sim->scene->sleep_seconds / sim->work.step), 1e9);
	if (aim_bodies(sim, sim->time + sim->work.step))
	{
		SandStatus listed = build_list(sim, false, err);
		if (listed != SAND_OK)
		{
			sim->is_failed = true;
			return listed;
		}
	}
	place_colliders(sim);
	sweep(sim, false);
	sim->work.last_step = sim->work.step;
	SandStatus status = report_bad_grain(sim, err);
	sim->time += sim->work.step;
	if (status == SAND_OK &&
	    (needs_list(sim) ||
	     (sim->waiting_count > 0 && sim->next_birth + SAND_BIRTH_STEPS * sim->step_limit <= sim->time) ||
	     sim->time + sim->step_limit > sim->colliders_until))
	{
		status = build_list(sim, sim->list_count % SAND_SORT_LISTS == 0, err);
	}
	sim->is_failed = status != SAND_OK;
	sim->step_count += status == SAND_OK;
	return status;
}

static SandStatus take_steps(SandSim *sim, double seconds, SandCancel *cancel, SandError *err)
{
	double begin = sim->time, done = 0;
	while (done < seconds)
	{
		if (cancel != NULL && cancel->is_raised)
		{
			return sand_fail(err, SAND_CANCELLED, "The simulation was cancelled at %.4f s", sim->time);
		}
		// Equal steps over what is left, so that the last is not a sliver.
		double left = seconds - done, parts = ceil(left / safe_step(sim) * (1 - 1e-12));
		double step = parts > 1 ? left / parts : left;
		sim->work.step = step;
		SandStatus status = sim->scheme == SAND_SCHEME_LEAPFROG ? take_step(sim, err) : take_scheme_step(sim, err);
		if (status != SAND_OK)
		{
			return status;
		}
		// RKF45 may have taken a shorter one.
		done = parts > 1 || sim->work.step < step ? done + sim->work.step : seconds;
		sim->time = begin + done;
	}
	return SAND_OK;
}

SandStatus sand_sim_advance(SandSim *sim, double seconds, SandCancel *cancel, SandError *err)
{
	return sand_sim_advance_ahead(sim, seconds, 0, cancel, err);
}

SandStatus sand_sim_advance_ahead(SandSim *sim, double seconds, double ahead_seconds, SandCancel *cancel,
                                  SandError *err)
{
	if (!(seconds >= 0) || !isfinite(seconds))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The time to advance is %g s, expected zero or more", seconds);
	}
	if (!(ahead_seconds >= 0) || !isfinite(ahead_seconds) || ahead_seconds / sim->step_limit > 1e12)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The time ahead is %g s, expected zero to 1e12 steps of %g s",
		                 ahead_seconds, sim->step_limit);
	}
	if (sim->is_failed)
	{
		return sand_fail(err, SAND_ERROR_UNSTABLE,
		                 "The simulation stopped at %.4f s because it became unstable and cannot go on", sim->time);
	}
	if (seconds == 0)
	{
		return SAND_OK;
	}
	if (seconds / sim->step_limit > 1e12)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Advancing %g s would take %g steps of %g s, expected at most 1e12; use larger grains",
		                 seconds, seconds / sim->step_limit, sim->step_limit);
	}
	if (sim->gl != NULL || sim->is_stopped)
	{
		return advance_on_device(sim, seconds, ahead_seconds, cancel, err);
	}
	// Every call starts from a fresh list and fresh forces, so that the state between calls is the grains' and the
	// springs' alone. With no time passing, no spring stretches.
	SandStatus status = build_list(sim, true, err);
	if (status != SAND_OK)
	{
		return status;
	}
	double begin = sim->time;
	sim->work.step = sim->work.last_step = 0;
	sim->trial_step = 0;
	memset(sim->impulses, 0, 6 * (size_t)sim->scene->body_count * sizeof(double));
	memset(sim->collider_impulses, 0, 6 * (size_t)sim->scene->collider_count * sizeof(double));
	if (sim->scheme == SAND_SCHEME_LEAPFROG)
	{
		status = take_steps(sim, seconds, cancel, err);
		// Velocities catch up with the positions, also when the call ends early.
		if ((status == SAND_OK || status == SAND_CANCELLED) && sim->work.last_step > 0)
		{
			place_colliders(sim);
			sweep(sim, true);
		}
		sim->load_seconds = sim->time - begin;
		return status;
	}
	sand_pool_run(sim->pool, force_task, sim, sim->chunk_count);
	sand_pool_run(sim->pool, gather_task, sim, sim->chunk_count);
	return take_steps(sim, seconds, cancel, err);
}

void sand_sim_loads(const SandSim *sim, double *bodies_out, double *colliders_out)
{
	double per_second = sim->load_seconds > 0 ? 1 / sim->load_seconds : 0;
	for (int i = 0; bodies_out != NULL && i < 6 * sim->scene->body_count; ++i)
	{
		bodies_out[i] = sim->impulses[i] * per_second;
	}
	for (int i = 0; colliders_out != NULL && i < 6 * sim->scene->collider_count; ++i)
	{
		colliders_out[i] = sim->collider_impulses[i] * per_second;
	}
}

static int64_t count_contacts(const SandSim *sim, SandContact *contacts_out, int64_t capacity)
{
	int64_t count = 0;
	for (int c = 0; c < sim->chunk_count; ++c)
	{
		int64_t room = capacity > count ? capacity - count : 0;
		count += sim->kernel->contacts(&sim->work, &sim->chunks[c], room > 0 ? contacts_out + count : NULL, room);
	}
	return count;
}

// The device's pairs stay there: a list of the host's own shows the contacts of the same state, and leaves no trace.
static int64_t count_gl_contacts(SandSim *sim, SandContact *contacts_out, int64_t capacity)
{
	size_t grains = (size_t)sim->grain_count;
	SandGrain *kept = sand_alloc(grains, sizeof(SandGrain));
	SandTraits *kept_traits = sand_alloc(grains, sizeof(SandTraits));
	int waiting_count = sim->waiting_count;
	int64_t list_count = sim->list_count, count = 0;
	sim->waiting_count = 0;
	if (kept != NULL && kept_traits != NULL)
	{
		memcpy(kept, sim->grains, grains * sizeof(SandGrain));
		memcpy(kept_traits, sim->traits, grains * sizeof(SandTraits));
		if (build_list(sim, true, NULL) == SAND_OK)
		{
			count = count_contacts(sim, contacts_out, capacity);
		}
		memcpy(sim->grains, kept, grains * sizeof(SandGrain));
		memcpy(sim->traits, kept_traits, grains * sizeof(SandTraits));
	}
	sim->chunk_count = 0;
	sim->waiting_count = waiting_count;
	sim->list_count = list_count;
	sand_free(kept);
	sand_free(kept_traits);
	return count;
}

int64_t sand_sim_contacts(SandSim *sim, SandContact *contacts_out, int64_t capacity)
{
	return sim->gl != NULL ? count_gl_contacts(sim, contacts_out, capacity)
	                       : count_contacts(sim, contacts_out, capacity);
}

// ---------------------------------------------------------------------------------------------- checkpoint

#define CHECKPOINT_MAGIC UINT64_C(0x33544B4348435242) // "BRCHCKT3"

typedef struct CheckpointHeader
{
	uint64_t magic;
	uint64_t scene_hash;
	int64_t grain_count, spring_count;
	int64_t step_count, list_count;
	double time;
	uint64_t motion_hash; // up to that time
	uint64_t checksum;    // of the fields above and everything after the header
} CheckpointHeader;
_Static_assert(sizeof(CheckpointHeader) == 72, "the header is part of the format");

typedef struct CheckpointGrain
{
	double position[3], orientation[4], velocity[3], momentum[3];
	int32_t flags, quiet_steps;
} CheckpointGrain;
_Static_assert(sizeof(CheckpointGrain) == 112, "the record is part of the format");

static uint64_t checkpoint_checksum(const CheckpointHeader *header, const void *payload, size_t byte_count)
{
	return sand_hash64(payload, byte_count, sand_hash64(header, offsetof(CheckpointHeader, checksum), 0));
}

SandStatus sand_sim_save(SandSim *sim, void **bytes_out, size_t *byte_count_out, SandError *err)
{
	*bytes_out = NULL;
	*byte_count_out = 0;
	SandStatus status = SAND_OK;
	if (sim->chunk_count > 0)
	{
		status = sand_list_save_history(sim->list, &sim->work, sim->chunks, sim->chunk_count, sim->sphere_base,
		                                sim->pool, err);
	}
	if (status != SAND_OK)
	{
		return status;
	}
	int64_t spring_count = sand_list_spring_count(sim->list);
	size_t grain_bytes = (size_t)sim->grain_count * sizeof(CheckpointGrain);
	size_t byte_count = sizeof(CheckpointHeader) + grain_bytes + (size_t)spring_count * sizeof(SandSpring);
	char *bytes = sand_alloc(byte_count, 1);
	if (bytes == NULL)
	{
		return sand_fail_memory(err, byte_count, "the checkpoint");
	}
	CheckpointGrain *records = (CheckpointGrain *)(void *)(bytes + sizeof(CheckpointHeader));
	for (int i = 0; i < sim->grain_count; ++i)
	{
		const SandGrain *grain = &sim->grains[i];
		CheckpointGrain *record = &records[sim->traits[i].id];
		memcpy(record->position, grain->position, sizeof(record->position));
		memcpy(record->orientation, grain->orientation, sizeof(record->orientation));
		memcpy(record->velocity, grain->velocity, sizeof(record->velocity));
		memcpy(record->momentum, grain->momentum, sizeof(record->momentum));
		record->flags = grain->flags & ~SAND_GRAIN_FAST; // made anew with every list
		record->flags |= sim->traits[i].is_woken ? SAND_GRAIN_WAKING : 0;
		record->quiet_steps = sim->traits[i].quiet_steps;
	}
	sand_list_read_springs(sim->list, (SandSpring *)(void *)(bytes + sizeof(CheckpointHeader) + grain_bytes));
	CheckpointHeader header = {.magic = CHECKPOINT_MAGIC,
	                           .scene_hash = sim->scene->hash,
	                           .grain_count = sim->grain_count,
	                           .spring_count = spring_count,
	                           .step_count = sim->step_count,
	                           .list_count = sim->list_count,
	                           .time = sim->time,
	                           .motion_hash = sand_sim_motion_hash(sim, sim->time)};
	header.checksum = checkpoint_checksum(&header, bytes + sizeof(header), byte_count - sizeof(header));
	memcpy(bytes, &header, sizeof(header));
	*bytes_out = bytes;
	*byte_count_out = byte_count;
	return SAND_OK;
}

SandStatus sand_sim_load(SandSim *sim, const void *bytes, size_t byte_count, SandError *err)
{
	CheckpointHeader header = {0};
	if (byte_count >= sizeof(header))
	{
		memcpy(&header, bytes, sizeof(header));
	}
	size_t grain_bytes = (size_t)sim->grain_count * sizeof(CheckpointGrain);
	if (byte_count < sizeof(header) || header.magic != CHECKPOINT_MAGIC)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "The checkpoint is %zu bytes and does not begin like one of ours",
		                 byte_count);
	}
	if (header.scene_hash != sim->scene->hash || header.grain_count != sim->grain_count)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "The checkpoint is of another scene (%lld grains, hash %016llx; expected %d, %016llx)",
		                 (long long)header.grain_count, (unsigned long long)header.scene_hash, sim->grain_count,
		                 (unsigned long long)sim->scene->hash);
	}
	if (header.motion_hash != sand_sim_motion_hash(sim, header.time))
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "The checkpoint is of a scene in which something moved otherwise in the first %g s",
		                 header.time);
	}
	size_t room = byte_count - sizeof(header);
	if (room < grain_bytes || header.spring_count < 0 ||
	    (uint64_t)header.spring_count != (room - grain_bytes) / sizeof(SandSpring) ||
	    (room - grain_bytes) % sizeof(SandSpring) != 0)
	{
		return sand_fail(err, SAND_ERROR_CACHE,
		                 "The checkpoint is %zu bytes, expected room for %d grains and %lld springs", byte_count,
		                 sim->grain_count, (long long)header.spring_count);
	}
	const char *payload = (const char *)bytes + sizeof(header);
	uint64_t checksum = checkpoint_checksum(&header, payload, room);
	if (checksum != header.checksum)
	{
		return sand_fail(err, SAND_ERROR_CACHE, "The checkpoint is damaged (checksum %016llx, expected %016llx)",
		                 (unsigned long long)checksum, (unsigned long long)header.checksum);
	}
	// The payload may be unaligned in the caller's block.
	SandSpring *springs = sand_alloc((size_t)header.spring_count, sizeof(SandSpring));
	if (springs == NULL)
	{
		return sand_fail_memory(err, (size_t)header.spring_count * sizeof(SandSpring), "the checkpoint");
	}
	if (header.spring_count > 0)
	{
		memcpy(springs, payload + grain_bytes, (size_t)header.spring_count * sizeof(SandSpring));
	}
	SandStatus status = sand_list_write_springs(sim->list, springs, header.spring_count, err);
	sand_free(springs);
	if (status != SAND_OK)
	{
		return status;
	}
	for (int i = 0; i < sim->grain_count; ++i)
	{
		SandGrain *grain = &sim->grains[i];
		CheckpointGrain record;
		memcpy(&record, payload + (size_t)sim->traits[i].id * sizeof(record), sizeof(record));
		memcpy(grain->position, record.position, sizeof(record.position));
		memcpy(grain->orientation, record.orientation, sizeof(record.orientation));
		memcpy(grain->velocity, record.velocity, sizeof(record.velocity));
		memcpy(grain->momentum, record.momentum, sizeof(record.momentum));
		grain->flags = record.flags;
		sim->traits[i].is_woken = 0;
		sim->has_driven = sim->has_driven || (grain->flags & SAND_GRAIN_DRIVEN) != 0;
		sim->traits[i].quiet_steps = record.quiet_steps;
	}
	sim->time = header.time;
	sim->step_count = header.step_count;
	sim->list_count = header.list_count;
	sim->is_failed = false;
	sim->chunk_count = 0; // the old pairs are not this state's
	sim->is_changed = true;
	collect_waiting(sim);
	return SAND_OK;
}

SandSimInfo sand_sim_info(const SandSim *sim)
{
	SandSimInfo info = {.time = sim->time,
	                    .step_seconds = sim->step_limit,
	                    .last_step = sim->work.step,
	                    .step_count = sim->step_count,
	                    .list_count = sim->list_count,
	                    .drift_seconds = sim->drift_seconds,
	                    .force_seconds = sim->force_seconds,
	                    .list_seconds = sim->list_seconds,
	                    .grain_count = sim->grain_count,
	                    .sphere_count = sim->sphere_count};
	info.contact_count = sim->gl != NULL ? sim->contact_count : 0;
	for (int c = 0; c < sim->chunk_count && sim->gl == NULL; ++c)
	{
		info.contact_count += sim->chunks[c].contact_count;
	}
	for (int i = 0; i < sim->grain_count; ++i)
	{
		const SandGrain *grain = &sim->grains[i];
		double spin[3], speed_square = 0;
		spin_of(sim, grain, spin);
		if (grain->flags & SAND_GRAIN_UNBORN)
		{
			++info.unborn_count;
			// Births come with the next list.
			info.late_count +=
			    sim->scene->grain_births[sim->traits[i].id] < sim->time - 2 * SAND_BIRTH_STEPS * sim->step_limit;
			continue;
		}
		info.lost_count += (grain->flags & SAND_GRAIN_LOST) != 0;
		info.asleep_count += (grain->flags & SAND_GRAIN_ASLEEP) != 0;
		info.gone_count += (grain->flags & SAND_GRAIN_GONE) != 0;
		for (int k = 0; k < 3; ++k)
		{
			info.kinetic_energy += 0.5 / grain->inverse_mass * grain->velocity[k] * grain->velocity[k];
			info.kinetic_energy += 0.5 * grain->momentum[k] * spin[k];
			info.potential_energy -= sim->scene->gravity[k] * grain->position[k] / grain->inverse_mass;
			speed_square += grain->velocity[k] * grain->velocity[k];
		}
		info.largest_speed = fmax(info.largest_speed, sqrt(speed_square));
	}
	return info;
}

void sand_sim_read(const SandSim *sim, const SandSimArrays *arrays)
{
	for (int i = 0; i < sim->grain_count; ++i)
	{
		const SandGrain *grain = &sim->grains[i];
		const SandShape *shape = &sim->scene->shapes[sim->traits[i].shape];
		size_t id = (size_t)sim->traits[i].id;
		double back[4] = {shape->axes[0], -shape->axes[1], -shape->axes[2], -shape->axes[3]}, q[4], spin[3];
		quaternion_multiply(grain->orientation, back, q);
		spin_of(sim, grain, spin);
		for (size_t k = 0; k < 3; ++k)
		{
			if (arrays->positions != NULL)
			{
				arrays->positions[3 * id + k] = (float)grain->position[k];
			}
			if (arrays->velocities != NULL)
			{
				arrays->velocities[3 * id + k] = (float)grain->velocity[k];
			}
			if (arrays->spins != NULL)
			{
				arrays->spins[3 * id + k] = (float)spin[k];
			}
		}
		if (arrays->flags != NULL)
		{
			arrays->flags[id] = grain->flags & ~(SAND_GRAIN_FAST | SAND_GRAIN_BODY);
		}
		for (size_t k = 0; k < 4 && arrays->orientations != NULL; ++k)
		{
			arrays->orientations[4 * id + k] = (float)q[k];
		}
	}
}

uint64_t sand_sim_motion_hash(const SandSim *sim, double time)
{
	// As far as a list looks ahead.
	return sand_scene_motion_hash(sim->scene, time + SAND_COLLIDER_STEPS * sim->step_limit);
}

uint64_t sand_sim_hash(const SandSim *sim)
{
	// Summed over grains, each hashed with its id, so that the order in memory does not matter.
	uint64_t hash = sand_hash64(&sim->time, sizeof(sim->time), 0);
	for (int i = 0; i < sim->grain_count; ++i)
	{
		const SandGrain *grain = &sim->grains[i];
		int32_t state[2] = {grain->flags & ~SAND_GRAIN_FAST, sim->traits[i].quiet_steps};
		SandSchemeState numbers = sand_scheme_read(grain);
		uint64_t seed = sand_hash64(&numbers, sizeof(numbers), (uint64_t)sim->traits[i].id + 1);
		hash += sand_hash64(state, sizeof(state), seed);
	}
	return hash;
}
