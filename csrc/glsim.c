// glsim: the GL engine. Comes in: a scene and the state of its grains. Goes out: the state some time later.
//
// A batch of steps is recorded at once: 10_control chooses each step's length on the device, forces and moves follow. A
// pass that finds work for the host sets control.halt; what is recorded behind it then does nothing, and the one small
// read-back of the batch tells the host. That is where neighbour lists are made: how many pairs there are decides how
// large the buffers must be, which only the host can change.
#include "glsim.h"

#include "glcollider.h"
#include "layout.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BATCH_LIMIT 256      // steps in one batch
#define WAIT_SECONDS 30.0    // for one batch; more is a device that hangs
#define SETTLED_PAIRS 4      // listed per sphere in a settled bed: 3.9 of spheres, 2.0 of tetrahedra
#define SPEEDS_AT_ONCE 32768 // that 10_control looks through alone
#define DEFINE_BYTES 512     // of the lines that say what a scene has not

SAND_OFFSET(SandSphere, velocity, 16)
SAND_OFFSET(SandSphere, spin, 32)
SAND_OFFSET(SandSphere, x_listed, 48)
SAND_OFFSET(SandSphere, grain, 60)
SAND_SIZE(SandSphere, 64)
SAND_OFFSET(SandGrain, orientation, 32)
SAND_OFFSET(SandGrain, velocity, 64)
SAND_OFFSET(SandGrain, momentum, 96)
SAND_OFFSET(SandGrain, flags, 120)
SAND_OFFSET(SandGrain, first_sphere, 124)
SAND_SIZE(SandGrain, 128)
SAND_OFFSET(SandTraits, quiet_steps, 12)
SAND_OFFSET(SandTraits, reach_speed, 20)
SAND_OFFSET(SandTraits, is_woken, 28)
SAND_SIZE(SandTraits, 32)
SAND_OFFSET(SandSum, torque, 16)
SAND_SIZE(SandSum, 32)
SAND_OFFSET(SandLaw, spring, 8)
SAND_OFFSET(SandLaw, friction, 24)
SAND_OFFSET(SandLaw, cohesion_range, 40)
SAND_OFFSET(SandLaw, contact_time, 48)
SAND_SIZE(SandLaw, 56)
SAND_OFFSET(SandObstacle, point, 12)
SAND_OFFSET(SandObstacle, size, 36)
SAND_OFFSET(SandObstacle, roughness, 52)
SAND_OFFSET(SandObstacle, unit_axis, 56)
SAND_SIZE(SandObstacle, 80)
SAND_SIZE(SandForceRegion, 36)
SAND_SIZE(SandOutflow, 24)
_Static_assert(SAND_GRAIN_ABSENT == 25 && SAND_GRAIN_STILL == 27, "as layout.h has them");

typedef enum Pass
{
	PASS_CONTROL,
	PASS_BODIES,
	PASS_POSES,
	PASS_SPRINGS_COUNT,
	PASS_SPRINGS,
	PASS_BIRTHS,
	PASS_KEYS,
	PASS_RADIX_COUNT,
	PASS_RADIX_MOVE,
	PASS_SCAN,
	PASS_SCAN_ADD,
	PASS_REORDER,
	PASS_COUNTS,
	PASS_DRESS,
	PASS_PLACE_LISTED,
	PASS_MARGINS,
	PASS_FAST,
	PASS_CELLS,
	PASS_FILL,
	PASS_SEARCH_COUNT,
	PASS_SEARCH,
	PASS_BACKS,
	PASS_TOUCHES_COUNT,
	PASS_TOUCHES,
	PASS_NEARS_COUNT,
	PASS_NEARS,
	PASS_ENTRIES,
	PASS_RESTORE,
	PASS_SUPPORTS,
	PASS_PAIRS,
	PASS_CONTACTS,
	PASS_SUMS,
	PASS_OBSTACLES,
	PASS_COLLIDERS,
	PASS_WATCH,
	PASS_LOADS,
	PASS_MOVE,
	PASS_MOVE_TURN,
	PASS_MOVE_CLOSING,
	PASS_FASTEST,
	PASS_PLACE,
	PASS_COUNT
} Pass;
_Static_assert(PASS_COUNT <= SAND_GPU_PASS_LIMIT, "every pass has a timer");

static const struct
{
	const char *name, *file, *defines;
} passes[PASS_COUNT] = {
    [PASS_CONTROL] = {"control", "10_control.comp", NULL},
    [PASS_BODIES] = {"bodies", "11_bodies.comp", NULL},
    [PASS_POSES] = {"poses", "12_poses.comp", NULL},
    [PASS_SPRINGS_COUNT] = {"springs, count", "20_springs.comp", NULL},
    [PASS_SPRINGS] = {"springs", "20_springs.comp", "#define WRITE\n"},
    [PASS_BIRTHS] = {"births", "22_births.comp", NULL},
    [PASS_KEYS] = {"keys", "24_keys.comp", NULL},
    [PASS_RADIX_COUNT] = {"radix, count", "25_radix_count.comp", NULL},
    [PASS_RADIX_MOVE] = {"radix, move", "26_radix_move.comp", NULL},
    [PASS_SCAN] = {"scan", "27_scan.comp", NULL},
    [PASS_SCAN_ADD] = {"scan, add", "27_scan.comp", "#define ADD\n"},
    [PASS_REORDER] = {"reorder", "28_reorder.comp", NULL},
    [PASS_COUNTS] = {"counts", "30_counts.comp", NULL},
    [PASS_DRESS] = {"dress", "31_dress.comp", NULL},
    [PASS_PLACE_LISTED] = {"place, listed", "62_place.comp", "#define LISTING\n"},
    [PASS_MARGINS] = {"margins", "33_margins.comp", NULL},
    [PASS_FAST] = {"fast", "34_fast.comp", NULL},
    [PASS_CELLS] = {"cells", "35_cells.comp", NULL},
    [PASS_FILL] = {"fill", "36_fill.comp", NULL},
    [PASS_SEARCH_COUNT] = {"search, count", "38_search.comp", NULL},
    [PASS_SEARCH] = {"search", "38_search.comp", "#define WRITE\n"},
    [PASS_BACKS] = {"backs", "39_backs.comp", NULL},
    [PASS_TOUCHES_COUNT] = {"touches, count", "41_touches.comp", NULL},
    [PASS_TOUCHES] = {"touches", "41_touches.comp", "#define WRITE\n"},
    [PASS_NEARS_COUNT] = {"nears, count", "43_nears.comp", NULL},
    [PASS_NEARS] = {"nears", "43_nears.comp", "#define WRITE\n"},
    [PASS_ENTRIES] = {"entries", "44_entries.comp", NULL},
    [PASS_RESTORE] = {"restore", "46_restore.comp", NULL},
    [PASS_SUPPORTS] = {"supports", "48_supports.comp", NULL},
    [PASS_PAIRS] = {"pairs", "50_pairs.comp", NULL},
    [PASS_CONTACTS] = {"contacts", "51_contacts.comp", NULL},
    [PASS_SUMS] = {"sums", "52_sums.comp", NULL},
    [PASS_OBSTACLES] = {"obstacles", "54_obstacles.comp", NULL},
    [PASS_COLLIDERS] = {"colliders", "56_colliders.comp", NULL},
    [PASS_WATCH] = {"watch", "57_watch.comp", NULL},
    [PASS_LOADS] = {"loads", "59_loads.comp", NULL},
    [PASS_MOVE] = {"move", "60_move.comp", "#define NO_TURN\n"},
    [PASS_MOVE_TURN] = {"move, turn", "60_move.comp", NULL},
    [PASS_MOVE_CLOSING] = {"move, close", "60_move.comp", "#define CLOSING\n"},
    [PASS_FASTEST] = {"fastest", "61_fastest.comp", NULL},
    [PASS_PLACE] = {"place", "62_place.comp", NULL},
};

// Words of a texel where shaders read a buffer as texels.
static const uint8_t texel_words[SAND_BIND_COUNT] = {
    [SAND_BIND_GRAINS] = 4,  [SAND_BIND_TRAITS] = 4, [SAND_BIND_SPHERES] = 4,      [SAND_BIND_SHAPES] = 4,
    [SAND_BIND_OFFSETS] = 4, [SAND_BIND_PAIRS] = 4,  [SAND_BIND_STRETCHES] = 4,    [SAND_BIND_FORCES] = 4,
    [SAND_BIND_SUMS] = 4,    [SAND_BIND_SPEEDS] = 2, [SAND_BIND_ENTRY_FIRSTS] = 1, [SAND_BIND_ADDENDS] = 1,
    [SAND_BIND_TOUCHES] = 4, [SAND_BIND_LAWS] = 2,   [SAND_BIND_STARTS] = 1,       [SAND_BIND_ENTRIES] = 1,
};

// What a call of advance leaves for its caller.
typedef struct Result
{
	SandStatus outcome;  // SAND_OK, SAND_CANCELLED or SAND_ERROR_UNSTABLE
	SandControl control; // at its end
	int64_t list_count, spring_count;
	double next_seconds;  // of the call that was begun behind it before this was read back; 0 = none
	unsigned char *bytes; // grains, traits, springs, ids that wait, impulses of bodies and colliders
	int64_t capacity;     // bytes
} Result;

// A buffer for every binding, bound to it for good.
typedef struct Buffer
{
	SandGpuBuffer handle;
	int64_t bytes;
} Buffer;

struct SandGlSim
{
	const SandScene *scene;
	SandGpu *gpu;
	SandGpuProgram programs[PASS_COUNT];
	Buffer buffers[SAND_BIND_COUNT];
	char defines[DEFINE_BYTES]; // what the scene has not: passes are compiled without it
	SandControl control;        // as the host last wrote or read it
	SandGlLevel levels[SAND_LEVELS];
	uint32_t bucket_count;
	int chunk_spheres;
	double batch_seconds;
	int batch_steps;
	bool is_resident; // the device's state is the host's
	bool has_pairs;   // of a list that is this state's
	bool has_history;
	bool has_clusters;    // grains of more than one sphere
	bool has_big;         // of more than SAND_BIG_GRAIN
	int force_rows;       // of a force record
	int64_t spring_count; // saved on the device
	SandGlMeshes meshes;
	SandColliderState **states; // per collider, for lists
	int chunk_count;

	// Of the device's thread, while a run is under way; set by the owner before it.
	const SandGlState *state; // to take up; NULL when the device has it
	double seconds;
	SandCancel *caller_cancel; // NULL when the run is on a thread of its own
	double time;               // s, of the state that the device holds between two calls
	int64_t list_count;
	Result pending;
	SandGpuRead read;
	int64_t read_bytes;

	// A run is one call of advance, or several of which each was begun before its caller came for it. Shared by the
	// owner's thread and the run's.
	pthread_mutex_t mutex;
	pthread_cond_t change;
	bool is_delivered;    // result is one that nobody has taken yet
	bool has_ended;       // the run
	double ahead_seconds; // what to begin behind the call under way; 0 = nothing
	Result result;
	SandCancel cancel;
	SandStatus end_status;
	SandError end_error;

	// Of the owner's thread.
	pthread_t thread;
	bool has_thread;
	double next_seconds; // of the call that was begun ahead; 0 = none
	int ahead_count;
};

// ---------------------------------------------------------------------------------------------- buffers and passes

static void bind(SandGlSim *gl, int binding)
{
	sand_gpu_bind(gl->gpu, binding, gl->buffers[binding].handle, 0, 0);
	if (texel_words[binding] > 0)
	{
		sand_gpu_bind_texels(gl->gpu, binding, gl->buffers[binding].handle, texel_words[binding]);
	}
}

// At least so many bytes at a binding; contents are lost when it grows.
static SandStatus ensure(SandGlSim *gl, int binding, int64_t bytes, const char *label, SandError *err)
{
	Buffer *buffer = &gl->buffers[binding];
	bytes = bytes < 16 ? 16 : (bytes + 15) / 16 * 16;
	if (buffer->bytes >= bytes)
	{
		return SAND_OK;
	}
	int64_t limit = sand_gpu_info(gl->gpu)->limits.block_bytes;
	int64_t roomy = buffer->bytes > 0 ? (bytes + bytes / 4 + 15) / 16 * 16 : bytes;
	sand_gpu_buffer_destroy(gl->gpu, buffer->handle);
	*buffer = (Buffer){{0}, 0};
	SandStatus status = sand_gpu_buffer_create(gl->gpu, roomy <= limit ? roomy : bytes, label, &buffer->handle, err);
	if (status == SAND_OK)
	{
		buffer->bytes = sand_gpu_buffer_bytes(gl->gpu, buffer->handle);
		bind(gl, binding);
	}
	return status;
}

static void upload(SandGlSim *gl, int binding, int64_t offset, const void *bytes, int64_t byte_count)
{
	if (byte_count > 0)
	{
		sand_gpu_upload(gl->gpu, gl->buffers[binding].handle, offset, bytes, byte_count);
	}
}

static void clear(SandGlSim *gl, int binding, int64_t byte_count)
{
	if (byte_count == 0)
	{
		return;
	}
	sand_gpu_fill(gl->gpu, gl->buffers[binding].handle, 0, byte_count, 0);
}

static SandStatus download(SandGlSim *gl, int binding, int64_t offset, void *bytes_out, int64_t byte_count,
                           SandError *err)
{
	return byte_count > 0 ? sand_gpu_download(gl->gpu, gl->buffers[binding].handle, offset, bytes_out, byte_count, err)
	                      : SAND_OK;
}

static void swap_buffers(SandGlSim *gl, int a, int b)
{
	Buffer buffer = gl->buffers[a];
	gl->buffers[a] = gl->buffers[b];
	gl->buffers[b] = buffer;
	bind(gl, a);
	bind(gl, b);
}

static void run_pass(SandGlSim *gl, Pass pass, int64_t count)
{
	sand_gpu_timer_start(gl->gpu, (int)pass);
	sand_gpu_dispatch(gl->gpu, gl->programs[pass], count);
	sand_gpu_timer_stop(gl->gpu);
	sand_gpu_barrier(gl->gpu);
}

// A pass of a step, as many groups as open_passes has said, or none once the device halts.
static void run_open(SandGlSim *gl, Pass pass, int slot)
{
	sand_gpu_timer_start(gl->gpu, (int)pass);
	sand_gpu_dispatch_indirect(gl->gpu, gl->programs[pass], gl->buffers[SAND_BIND_GROUPS].handle, 12 * (int64_t)slot);
	sand_gpu_timer_stop(gl->gpu);
	sand_gpu_barrier(gl->gpu);
}

static void run_part(SandGlSim *gl, Pass pass, uint32_t part, int64_t count)
{
	sand_gpu_set_uint(gl->gpu, gl->programs[pass], 0, part);
	run_pass(gl, pass, count);
}

static void write_control(SandGlSim *gl)
{
	upload(gl, SAND_BIND_CONTROL, 0, &gl->control, sizeof(gl->control));
	sand_gpu_barrier(gl->gpu);
}

static SandStatus read_control(SandGlSim *gl, SandError *err)
{
	return download(gl, SAND_BIND_CONTROL, 0, &gl->control, sizeof(gl->control), err);
}

// Running sums of the first count words at a binding, in place.
static void scan(SandGlSim *gl, int binding, uint32_t count)
{
	SandGpuBuffer sums = gl->buffers[SAND_BIND_SCAN_SUMS].handle;
	uint32_t counts[8] = {count}, firsts[8] = {0}, next = 0;
	int depth = 0;
	for (;; ++depth)
	{
		uint32_t groups = (counts[depth] + 1023) / 1024;
		sand_gpu_bind(gl->gpu, SAND_BIND_SCAN, depth == 0 ? gl->buffers[binding].handle : sums, 0, 0);
		sand_gpu_set_uint(gl->gpu, gl->programs[PASS_SCAN], 0, counts[depth]);
		sand_gpu_set_uint(gl->gpu, gl->programs[PASS_SCAN], 1, firsts[depth]);
		sand_gpu_set_uint(gl->gpu, gl->programs[PASS_SCAN], 2, next);
		run_pass(gl, PASS_SCAN, (int64_t)groups * 256);
		if (groups <= 1)
		{
			break;
		}
		counts[depth + 1] = groups;
		firsts[depth + 1] = next;
		next += groups;
	}
	for (--depth; depth >= 0; --depth)
	{
		sand_gpu_bind(gl->gpu, SAND_BIND_SCAN, depth == 0 ? gl->buffers[binding].handle : sums, 0, 0);
		sand_gpu_set_uint(gl->gpu, gl->programs[PASS_SCAN_ADD], 0, counts[depth]);
		sand_gpu_set_uint(gl->gpu, gl->programs[PASS_SCAN_ADD], 1, firsts[depth]);
		sand_gpu_set_uint(gl->gpu, gl->programs[PASS_SCAN_ADD], 2, firsts[depth + 1]);
		run_pass(gl, PASS_SCAN_ADD, (int64_t)counts[depth + 1] * 256);
	}
	sand_gpu_bind(gl->gpu, SAND_BIND_SCAN, gl->buffers[SAND_BIND_SCAN].handle, 0, 0);
}

// Turns counts[0 .. count) at a binding into firsts[0 .. count], of which the last is their sum.
static SandStatus make_firsts(SandGlSim *gl, int binding, int64_t count, int64_t *sum_out, SandError *err)
{
	uint32_t sum = 0;
	sand_gpu_fill(gl->gpu, gl->buffers[binding].handle, 4 * count, 4, 0);
	sand_gpu_barrier(gl->gpu);
	scan(gl, binding, (uint32_t)count + 1);
	SandStatus status = sum_out != NULL ? download(gl, binding, 4 * count, &sum, 4, err) : SAND_OK;
	if (status == SAND_OK && sum_out != NULL)
	{
		*sum_out = sum;
		if (sum > INT32_MAX / 2)
		{
			return sand_fail(err, SAND_ERROR_GPU_MEMORY, "The neighbour list has %u pairs, expected at most %d", sum,
			                 INT32_MAX / 2);
		}
	}
	return status;
}

// ---------------------------------------------------------------------------------------------- the neighbour list

static int64_t total_spheres(const SandGlSim *gl)
{
	return (int64_t)gl->control.sphere_count + gl->control.wall_count;
}

// Springs of the pairs, by lasting ids, beside those of grains that rest.
static SandStatus save_springs(SandGlSim *gl, SandError *err)
{
	int64_t total = total_spheres(gl), count = 0;
	SandStatus status = ensure(gl, SAND_BIND_NEW_FIRSTS, 4 * (total + 1), "spring numbers", err);
	if (status != SAND_OK)
	{
		return status;
	}
	clear(gl, SAND_BIND_NEW_FIRSTS, 4 * (total + 1));
	clear(gl, SAND_BIND_CURSORS, 4 * total);
	sand_gpu_barrier(gl->gpu);
	const Pass both[2] = {PASS_SPRINGS_COUNT, PASS_SPRINGS};
	for (int i = 0; i < 2; ++i)
	{
		run_part(gl, both[i], 0, gl->control.pair_count);
		if (gl->scene->obstacle_count > 0 || gl->scene->collider_count > 0)
		{
			run_part(gl, both[i], 1, gl->control.sphere_count);
		}
		if (gl->control.sleep_speed > 0)
		{
			run_part(gl, both[i], 2, total);
		}
		if (i == 0)
		{
			status = make_firsts(gl, SAND_BIND_NEW_FIRSTS, total, &count, err);
			status = status != SAND_OK ? status
			                           : ensure(gl, SAND_BIND_NEW_SPRINGS, count * (int64_t)sizeof(SandGlSpring),
			                                    "friction springs", err);
			if (status != SAND_OK)
			{
				return status;
			}
		}
	}
	swap_buffers(gl, SAND_BIND_NEW_FIRSTS, SAND_BIND_SPRING_FIRSTS);
	swap_buffers(gl, SAND_BIND_NEW_SPRINGS, SAND_BIND_SPRINGS);
	gl->spring_count = count;
	return SAND_OK;
}

static void give_birth(SandGlSim *gl)
{
	run_part(gl, PASS_BIRTHS, 0, 1);
	run_part(gl, PASS_BIRTHS, 1, gl->control.grain_count);
	run_part(gl, PASS_BIRTHS, 2, 64);
}

static void sort_grains(SandGlSim *gl)
{
	uint32_t count = (uint32_t)gl->control.grain_count, groups = (count + 1023) / 1024;
	run_part(gl, PASS_KEYS, 0, count);
	run_part(gl, PASS_KEYS, 1, count);
	// Keys have 30 bits.
	for (uint32_t low_bit = 0; low_bit < 32; low_bit += 4)
	{
		const Pass both[2] = {PASS_RADIX_COUNT, PASS_RADIX_MOVE};
		for (int i = 0; i < 2; ++i)
		{
			sand_gpu_set_uint(gl->gpu, gl->programs[both[i]], 0, count);
			sand_gpu_set_uint(gl->gpu, gl->programs[both[i]], 1, low_bit);
			run_pass(gl, both[i], (int64_t)groups * 64);
			if (i == 0)
			{
				scan(gl, SAND_BIND_SCAN, 16 * groups);
			}
		}
		swap_buffers(gl, SAND_BIND_KEYS, SAND_BIND_KEYS_SPARE);
	}
	run_pass(gl, PASS_REORDER, count);
	swap_buffers(gl, SAND_BIND_GRAINS, SAND_BIND_GRAINS_SPARE);
	swap_buffers(gl, SAND_BIND_TRAITS, SAND_BIND_TRAITS_SPARE);
}

static void dress_grains(SandGlSim *gl)
{
	run_pass(gl, PASS_COUNTS, gl->control.grain_count);
	scan(gl, SAND_BIND_SCAN, (uint32_t)gl->control.grain_count);
	run_pass(gl, PASS_DRESS, gl->control.grain_count);
	run_pass(gl, PASS_PLACE_LISTED, gl->control.sphere_count);
	sand_gpu_timer_start(gl->gpu, PASS_MARGINS);
	sand_gpu_dispatch_groups(gl->gpu, gl->programs[PASS_MARGINS], 1);
	sand_gpu_timer_stop(gl->gpu);
	sand_gpu_barrier(gl->gpu);
	run_pass(gl, PASS_FAST, gl->control.grain_count);
}

static void fill_cells(SandGlSim *gl)
{
	int64_t total = total_spheres(gl);
	clear(gl, SAND_BIND_STARTS, 4 * ((int64_t)gl->bucket_count + 1));
	clear(gl, SAND_BIND_CURSORS, 4 * (int64_t)gl->bucket_count);
	sand_gpu_barrier(gl->gpu);
	run_pass(gl, PASS_CELLS, total);
	scan(gl, SAND_BIND_STARTS, gl->bucket_count + 1);
	run_part(gl, PASS_FILL, 0, total);
	sand_gpu_set_uint(gl->gpu, gl->programs[PASS_FILL], 1, gl->bucket_count);
	run_part(gl, PASS_FILL, 1, gl->bucket_count);
}

// Colliders at the time of the list, which looks as much farther as they may go while it lasts.
static void fit_colliders(SandGlSim *gl)
{
	SandControl *c = &gl->control;
	double horizon = SAND_COLLIDER_STEPS * c->step_limit;
	c->colliders_until = DBL_MAX;
	for (int i = 0; i < gl->scene->collider_count; ++i)
	{
		const SandCollider *collider = gl->scene->colliders[i];
		SandGlPose pose;
		int64_t first = 0, count = 0;
		sand_collider_set_time(collider, gl->states[i], c->list_time);
		sand_collider_fit(collider, gl->states[i]);
		gl->meshes.meshes[i].slack = sand_collider_speed(collider, c->list_time, c->list_time + horizon) * horizon;
		c->colliders_until = sand_collider_is_moving(collider) ? c->list_time + horizon : c->colliders_until;
		sand_gl_pose(&gl->meshes, i, gl->states[i], &pose);
		upload(gl, SAND_BIND_POSES, i * (int64_t)sizeof(pose), &pose, sizeof(pose));
		const float *boxes = sand_gl_boxes(&gl->meshes, i, collider, gl->states[i], &first, &count);
		upload(gl, SAND_BIND_MESH_FLOATS, 4 * first, boxes, boxes != NULL ? 4 * SAND_NODE_NUMBERS * count : 0);
	}
	upload(gl, SAND_BIND_MESHES, 0, gl->meshes.meshes, gl->scene->collider_count * (int64_t)sizeof(SandGlCollider));
}

static SandStatus find_pairs(SandGlSim *gl, SandError *err)
{
	int64_t spheres = gl->control.sphere_count, count = 0, touch_count = 0, near_count = 0;
	if (gl->control.sleep_speed > 0)
	{
		clear(gl, SAND_BIND_SUPPORTS, 4 * (int64_t)gl->control.grain_count);
		sand_gpu_barrier(gl->gpu);
	}
	run_pass(gl, PASS_SEARCH_COUNT, spheres);
	SandStatus status = make_firsts(gl, SAND_BIND_FIRSTS, spheres, &count, err);
	if (status == SAND_OK && gl->scene->obstacle_count > 0)
	{
		run_pass(gl, PASS_TOUCHES_COUNT, spheres);
		status = make_firsts(gl, SAND_BIND_TOUCH_FIRSTS, spheres, &touch_count, err);
	}
	if (status == SAND_OK && gl->scene->collider_count > 0)
	{
		run_pass(gl, PASS_NEARS_COUNT, spheres);
		status = make_firsts(gl, SAND_BIND_NEAR_FIRSTS, spheres, &near_count, err);
	}
	status = status != SAND_OK ? status : read_control(gl, err);
	if (status != SAND_OK)
	{
		return status;
	}
	int64_t watch_count = gl->control.watch_count, records = count + touch_count + near_count;
	const struct
	{
		int binding;
		int64_t bytes;
		const char *label;
	} wanted[] = {
	    {SAND_BIND_PAIRS, count * (int64_t)sizeof(SandGlPair), "pairs"},
	    {SAND_BIND_FORCES, records * gl->force_rows * SAND_ROW_BYTES, "forces of pairs"},
	    {SAND_BIND_ADDENDS, 4 * (records + count), "entries"},
	    {SAND_BIND_STRETCHES, gl->has_history ? count * 16 : 0, "springs of pairs"},
	    {SAND_BIND_BACKS, count * 4, "pairs of the higher spheres"},
	    {SAND_BIND_WATCHES, watch_count * 8, "pairs of sleepers"},
	    {SAND_BIND_TOUCHES, touch_count * (int64_t)sizeof(SandGlTouch), "pairs with obstacles"},
	    {SAND_BIND_NEARS, near_count * (int64_t)sizeof(SandGlNear), "pairs with triangles"},
	    {SAND_BIND_NEAR_LOADS, near_count * 48, "loads on triangles"},
	};
	for (size_t i = 0; status == SAND_OK && i < sizeof(wanted) / sizeof(wanted[0]); ++i)
	{
		status = ensure(gl, wanted[i].binding, wanted[i].bytes, wanted[i].label, err);
	}
	if (status != SAND_OK)
	{
		return status;
	}
	gl->control.pair_count = (int32_t)count;
	gl->control.touch_count = (int32_t)touch_count;
	gl->control.near_count = (int32_t)near_count;
	gl->control.watch_count = 0; // counted again while they are written
	write_control(gl);
	run_pass(gl, PASS_SEARCH, spheres);
	if (touch_count > 0)
	{
		run_pass(gl, PASS_TOUCHES, spheres);
	}
	if (near_count > 0)
	{
		run_pass(gl, PASS_NEARS, spheres);
	}
	clear(gl, SAND_BIND_BACK_FIRSTS, 4 * (spheres + 1));
	clear(gl, SAND_BIND_CURSORS, 4 * spheres);
	sand_gpu_barrier(gl->gpu);
	run_part(gl, PASS_BACKS, 0, count);
	status = make_firsts(gl, SAND_BIND_BACK_FIRSTS, spheres, NULL, err);
	run_part(gl, PASS_BACKS, 1, count);
	run_part(gl, PASS_BACKS, 2, spheres);
	run_pass(gl, PASS_ENTRIES, spheres + 1);
	return status;
}

// Groups of the passes of a step, for the list that is there.
static void open_passes(SandGlSim *gl)
{
	const SandControl *c = &gl->control;
	const int64_t counts[SAND_GROUPS_COUNT] = {
	    [SAND_GROUPS_BODIES] = c->body_count,
	    [SAND_GROUPS_POSES] = c->collider_count,
	    [SAND_GROUPS_PAIRS] = c->pair_count,
	    [SAND_GROUPS_TOUCHES] = c->touch_count,
	    [SAND_GROUPS_COLLIDERS] = c->near_sphere_count,
	    [SAND_GROUPS_LOADS] = (int64_t)gl->chunk_count * c->collider_count,
	    [SAND_GROUPS_LOAD_SUMS] = c->collider_count,
	    [SAND_GROUPS_SUMS] = c->sphere_count,
	    [SAND_GROUPS_WATCH] = c->watch_count,
	    [SAND_GROUPS_MOVE] = c->grain_count,
	    [SAND_GROUPS_PLACE] = c->big_sphere_count,
	    [SAND_GROUPS_FASTEST] = c->speed_count,
	};
	uint32_t groups[SAND_GROUPS_COUNT][3];
	for (int i = 0; i < SAND_GROUPS_COUNT; ++i)
	{
		// Every one of these passes has groups of 64; rows as sand_gpu_dispatch makes them.
		int64_t wanted = (counts[i] + 63) / 64, rows = (wanted + SAND_GROUP_LIMIT - 1) / SAND_GROUP_LIMIT;
		rows = rows > 0 ? rows : 1;
		groups[i][0] = (uint32_t)((wanted + rows - 1) / rows);
		groups[i][1] = (uint32_t)rows;
		groups[i][2] = 1;
	}
	upload(gl, SAND_BIND_GROUPS, 0, groups, sizeof(groups));
	sand_gpu_barrier(gl->gpu);
}

// The list for the time control.list_time; control is the device's, before and after.
static SandStatus build_list(SandGlSim *gl, bool is_sorting, SandError *err)
{
	SandControl *c = &gl->control;
	SandStatus status = SAND_OK;
	if (gl->has_history && gl->has_pairs)
	{
		status = save_springs(gl, err);
	}
	if (status != SAND_OK)
	{
		return status;
	}
	for (int k = 0; k < 3; ++k)
	{
		c->low[k] = INT32_MAX;
		c->high[k] = INT32_MIN;
	}
	memset(c->faster, 0, sizeof(c->faster));
	c->needs_list = c->watch_count = c->near_sphere_count = c->big_sphere_count = 0;
	c->bad_grain = SAND_NO_GRAIN;
	c->halt = SAND_HALT_NONE;
	fit_colliders(gl);
	write_control(gl);
	if (c->waiting_first < c->waiting_end)
	{
		give_birth(gl);
	}
	if (is_sorting)
	{
		sort_grains(gl);
	}
	dress_grains(gl);
	fill_cells(gl);
	status = find_pairs(gl, err);
	if (status != SAND_OK)
	{
		return status;
	}
	if (gl->has_history)
	{
		run_part(gl, PASS_RESTORE, 0, c->pair_count);
		run_part(gl, PASS_RESTORE, 1, c->sphere_count);
	}
	if (c->sleep_speed > 0)
	{
		run_pass(gl, PASS_SUPPORTS, c->grain_count);
	}
	gl->has_pairs = true;
	++gl->list_count;
	status = read_control(gl, err);
	open_passes(gl);
	return status;
}

// ---------------------------------------------------------------------------------------------- stepping

// Counts the step behind it; unless is_ending, chooses the next.
static void run_control(SandGlSim *gl, bool is_ending)
{
	sand_gpu_set_uint(gl->gpu, gl->programs[PASS_CONTROL], 0, is_ending);
	sand_gpu_timer_start(gl->gpu, PASS_CONTROL);
	sand_gpu_dispatch_groups(gl->gpu, gl->programs[PASS_CONTROL], 1);
	sand_gpu_timer_stop(gl->gpu);
	sand_gpu_barrier(gl->gpu);
}

// Everything that writes force records, and the sums of clusters.
static void run_forces(SandGlSim *gl)
{
	const SandControl *c = &gl->control;
	run_open(gl, PASS_PAIRS, SAND_GROUPS_PAIRS);
	if (c->touch_count > 0)
	{
		run_open(gl, PASS_OBSTACLES, SAND_GROUPS_TOUCHES);
	}
	if (c->collider_count > 0)
	{
		run_open(gl, PASS_POSES, SAND_GROUPS_POSES);
		run_open(gl, PASS_COLLIDERS, SAND_GROUPS_COLLIDERS);
		sand_gpu_set_uint(gl->gpu, gl->programs[PASS_LOADS], 1, (uint32_t)gl->chunk_count);
		sand_gpu_set_uint(gl->gpu, gl->programs[PASS_LOADS], 0, 0);
		run_open(gl, PASS_LOADS, SAND_GROUPS_LOADS);
		sand_gpu_set_uint(gl->gpu, gl->programs[PASS_LOADS], 0, 1);
		run_open(gl, PASS_LOADS, SAND_GROUPS_LOAD_SUMS);
	}
	if (gl->has_clusters)
	{
		run_open(gl, PASS_SUMS, SAND_GROUPS_SUMS);
	}
	if (c->watch_count > 0)
	{
		run_open(gl, PASS_WATCH, SAND_GROUPS_WATCH);
	}
}

// Steps of one batch, then the read-back; the next batch is as long as the time it took allows.
static SandStatus run_batch(SandGlSim *gl, SandError *err)
{
	double begin = sand_ticks();
	int turn_steps = gl->control.turn_steps;
	for (int i = 0; i < gl->batch_steps; ++i)
	{
		run_control(gl, false);
		if (gl->control.body_count > 0)
		{
			sand_gpu_set_uint(gl->gpu, gl->programs[PASS_BODIES], 0, 0);
			run_open(gl, PASS_BODIES, SAND_GROUPS_BODIES);
		}
		run_forces(gl);
		// Until the device halts it counts as is counted here; behind that nothing runs.
		turn_steps = (turn_steps + 1) % SAND_TURN_STEPS;
		run_open(gl, gl->has_clusters || turn_steps == 0 ? PASS_MOVE_TURN : PASS_MOVE, SAND_GROUPS_MOVE);
		if (gl->has_big)
		{
			run_open(gl, PASS_PLACE, SAND_GROUPS_PLACE);
		}
		if (gl->control.speed_first > 0)
		{
			run_open(gl, PASS_FASTEST, SAND_GROUPS_FASTEST);
		}
	}
	run_control(gl, true);
	int32_t before = gl->control.step_count;
	SandGpuFence fence = {0};
	bool is_done = false;
	SandStatus status = sand_gpu_fence_create(gl->gpu, &fence, err);
	status = status != SAND_OK ? status : sand_gpu_fence_wait(gl->gpu, fence, WAIT_SECONDS, &is_done, err);
	sand_gpu_fence_destroy(gl->gpu, fence);
	if (status == SAND_OK && !is_done)
	{
		status = sand_fail(err, SAND_ERROR_GPU, "The device has not finished %d steps within %g s; use the cpu engine",
		                   gl->batch_steps, WAIT_SECONDS);
	}
	status = status != SAND_OK ? status : read_control(gl, err);
	if (status != SAND_OK)
	{
		return status;
	}
	double seconds = sand_ticks() - begin;
	int steps = gl->control.step_count - before;
	if (steps > 0)
	{
		double per_step = seconds / gl->batch_steps;
		int wanted = (int)fmin(fmax(gl->batch_seconds / per_step, 1), BATCH_LIMIT);
		gl->batch_steps = wanted < 2 * gl->batch_steps ? wanted : 2 * gl->batch_steps;
	}
	return SAND_OK;
}

// Velocities catch up with the positions, also when the call ends early, but not when a grain has failed. Contacts are
// counted as they were last.
static SandStatus close_steps(SandGlSim *gl, bool is_bad, SandError *err)
{
	SandControl *c = &gl->control;
	c->halt = SAND_HALT_NONE;
	c->is_closing = 1;
	c->contact_count = 0;
	if (!is_bad)
	{
		c->turn = c->turn_seconds;
		c->turn_seconds = 0;
		c->turn_steps = 0;
	}
	write_control(gl);
	open_passes(gl);
	if (!is_bad)
	{
		run_forces(gl);
		run_open(gl, PASS_MOVE_CLOSING, SAND_GROUPS_MOVE);
	}
	run_pass(gl, PASS_CONTACTS, (int64_t)c->pair_count + c->touch_count + c->near_count);
	SandStatus status = read_control(gl, err);
	c->is_closing = 0;
	return status;
}

static bool is_cancelled(SandGlSim *gl)
{
	return gl->cancel.is_raised || (gl->caller_cancel != NULL && gl->caller_cancel->is_raised);
}

static SandStatus take_steps(SandGlSim *gl, SandStatus *outcome_out, SandError *err)
{
	SandControl *c = &gl->control;
	SandStatus status = SAND_OK, outcome = SAND_OK;
	while (status == SAND_OK)
	{
		if (is_cancelled(gl))
		{
			outcome = SAND_CANCELLED;
			break;
		}
		status = run_batch(gl, err);
		if (status != SAND_OK || c->halt == SAND_HALT_NONE)
		{
			continue;
		}
		if (c->halt == SAND_HALT_LIST)
		{
			status = build_list(gl, gl->list_count % SAND_SORT_LISTS == 0, err);
			if (status == SAND_OK && !(c->done < c->seconds))
			{
				break;
			}
			continue;
		}
		if (c->halt == SAND_HALT_RELEASE)
		{
			run_part(gl, PASS_BODIES, 1, c->body_count);
			status = build_list(gl, false, err);
			continue;
		}
		outcome = c->halt == SAND_HALT_BAD ? SAND_ERROR_UNSTABLE : SAND_OK;
		break;
	}
	*outcome_out = outcome;
	bool is_bad = outcome == SAND_ERROR_UNSTABLE;
	return status == SAND_OK && (is_bad || c->last_step > 0) ? close_steps(gl, is_bad, err) : status;
}

// ---------------------------------------------------------------------------------------------- state

static SandStatus upload_state(SandGlSim *gl, const SandGlState *state, SandError *err)
{
	int64_t grains = gl->control.grain_count, total = total_spheres(gl);
	int32_t *numbers = sand_alloc((size_t)(grains + total + 2), sizeof(int32_t));
	SandGlSpring *springs = sand_alloc((size_t)state->spring_count, sizeof(SandGlSpring));
	SandStatus status = numbers != NULL && springs != NULL
	                        ? SAND_OK
	                        : sand_fail_memory(err, (size_t)(grains + total) * 4, "the state for the device");
	if (status == SAND_OK)
	{
		upload(gl, SAND_BIND_GRAINS, 0, state->grains, grains * (int64_t)sizeof(SandGrain));
		upload(gl, SAND_BIND_TRAITS, 0, state->traits, grains * (int64_t)sizeof(SandTraits));
		for (int64_t i = 0; i < grains; ++i)
		{
			numbers[state->traits[i].id] = (int32_t)i;
		}
		upload(gl, SAND_BIND_PLACES, 0, numbers, 4 * grains);
		upload(gl, SAND_BIND_PLACES, 4 * grains, state->waiting, 4 * (int64_t)state->waiting_count);
		int64_t low = 0;
		for (int64_t i = 0; i <= state->spring_count; ++i)
		{
			// Numbers of the springs up to this one's sphere.
			for (int64_t next = i < state->spring_count ? state->springs[i].low : total; low <= next; ++low)
			{
				numbers[low] = (int32_t)i;
			}
			if (i < state->spring_count)
			{
				const SandSpring *from = &state->springs[i];
				springs[i] = (SandGlSpring){.other = from->other, .side = from->side, .low = from->low};
				memcpy(springs[i].stretch, from->stretch, sizeof(springs[i].stretch));
			}
		}
		upload(gl, SAND_BIND_SPRING_FIRSTS, 0, numbers, gl->has_history ? 4 * (total + 1) : 0);
		status =
		    ensure(gl, SAND_BIND_SPRINGS, state->spring_count * (int64_t)sizeof(SandGlSpring), "friction springs", err);
	}
	if (status == SAND_OK)
	{
		upload(gl, SAND_BIND_SPRINGS, 0, springs, state->spring_count * (int64_t)sizeof(SandGlSpring));
		gl->spring_count = state->spring_count;
		gl->has_pairs = false;
		gl->is_resident = true;
	}
	sand_free(numbers);
	sand_free(springs);
	return status;
}

// What a result's bytes are, one behind the other: where each begins, and the end.
enum
{
	AT_GRAINS,
	AT_TRAITS,
	AT_SPRINGS,
	AT_WAITING,
	AT_BODIES,
	AT_COLLIDERS,
	AT_END
};

static void lay_out(const Result *result, int64_t at_out[AT_END + 1])
{
	const SandControl *c = &result->control;
	const int64_t sizes[AT_END] = {[AT_GRAINS] = c->grain_count * (int64_t)sizeof(SandGrain),
	                               [AT_TRAITS] = c->grain_count * (int64_t)sizeof(SandTraits),
	                               [AT_SPRINGS] = result->spring_count * (int64_t)sizeof(SandGlSpring),
	                               [AT_WAITING] = 4 * (int64_t)(c->waiting_end - c->waiting_first),
	                               [AT_BODIES] = 48 * (int64_t)c->body_count,
	                               [AT_COLLIDERS] = 48 * (int64_t)c->collider_count};
	at_out[0] = 0;
	for (int i = 0; i < AT_END; ++i)
	{
		at_out[i + 1] = at_out[i] + sizes[i];
	}
}

// The state into the staging buffer, behind the work that makes it; nothing is waited for.
static SandStatus begin_read(SandGlSim *gl, SandStatus outcome, SandError *err)
{
	Result *result = &gl->pending;
	SandStatus status = gl->has_history ? save_springs(gl, err) : SAND_OK;
	if (status != SAND_OK)
	{
		return status;
	}
	const SandControl *c = &gl->control;
	result->outcome = outcome;
	result->control = *c;
	result->list_count = gl->list_count;
	result->spring_count = gl->has_history ? gl->spring_count : 0;
	gl->time = c->time;
	int64_t at[AT_END + 1];
	lay_out(result, at);
	if (gl->read_bytes < at[AT_END])
	{
		int64_t roomy = at[AT_END] + at[AT_END] / 4;
		sand_gpu_read_destroy(gl->gpu, gl->read);
		gl->read_bytes = 0;
		status = sand_gpu_read_create(gl->gpu, roomy, "the state", &gl->read, err);
		gl->read_bytes = status == SAND_OK ? roomy : 0;
	}
	if (status == SAND_OK && result->capacity < at[AT_END])
	{
		sand_free(result->bytes);
		result->bytes = sand_alloc((size_t)gl->read_bytes, 1);
		result->capacity = result->bytes != NULL ? gl->read_bytes : 0;
		status = result->bytes != NULL ? SAND_OK : sand_fail_memory(err, (size_t)gl->read_bytes, "the state");
	}
	const struct
	{
		int binding;
		int64_t offset;
	} from[AT_END] = {[AT_GRAINS] = {SAND_BIND_GRAINS, 0},
	                  [AT_TRAITS] = {SAND_BIND_TRAITS, 0},
	                  [AT_SPRINGS] = {SAND_BIND_SPRINGS, 0},
	                  [AT_WAITING] = {SAND_BIND_PLACES, 4 * ((int64_t)c->grain_count + c->waiting_first)},
	                  [AT_BODIES] = {SAND_BIND_IMPULSES, 0},
	                  [AT_COLLIDERS] = {SAND_BIND_LOAD_SUMS, 48 * (int64_t)c->collider_count * gl->chunk_count}};
	for (int i = 0; i < AT_END && status == SAND_OK; ++i)
	{
		if (at[i + 1] > at[i])
		{
			sand_gpu_read_add(gl->gpu, gl->read, gl->buffers[from[i].binding].handle, from[i].offset,
			                  at[i + 1] - at[i]);
		}
	}
	return status != SAND_OK ? status : sand_gpu_read_begin(gl->gpu, gl->read, err);
}

static SandStatus finish_read(SandGlSim *gl, SandError *err)
{
	SandStatus status = sand_gpu_read_finish(gl->gpu, gl->read, WAIT_SECONDS, gl->pending.bytes, err);
	return status != SAND_OK ? status : sand_gpu_check(gl->gpu, err);
}

// A result into the caller's arrays; changes nothing when there is no memory.
static SandStatus copy_state(const Result *result, SandGlState *state, SandError *err)
{
	const SandControl *c = &result->control;
	int64_t at[AT_END + 1];
	lay_out(result, at);
	SandSpring *kept = sand_alloc((size_t)result->spring_count, sizeof(SandSpring));
	if (kept == NULL)
	{
		return sand_fail_memory(err, (size_t)result->spring_count * sizeof(SandSpring), "the springs");
	}
	const unsigned char *bytes = result->bytes;
	void *to[AT_END] = {[AT_GRAINS] = state->grains,
	                    [AT_TRAITS] = state->traits,
	                    [AT_WAITING] = state->waiting,
	                    [AT_BODIES] = state->body_impulses,
	                    [AT_COLLIDERS] = state->collider_impulses};
	for (int i = 0; i < AT_END; ++i)
	{
		if (to[i] != NULL && at[i + 1] > at[i])
		{
			memcpy(to[i], bytes + at[i], (size_t)(at[i + 1] - at[i]));
		}
	}
	for (int64_t i = 0; i < result->spring_count; ++i)
	{
		SandGlSpring spring;
		memcpy(&spring, bytes + at[AT_SPRINGS] + i * (int64_t)sizeof(spring), sizeof(spring));
		kept[i] = (SandSpring){.low = spring.low, .other = spring.other, .side = spring.side};
		memcpy(kept[i].stretch, spring.stretch, sizeof(kept[i].stretch));
	}
	sand_free(state->springs);
	state->springs = kept;
	state->spring_count = result->spring_count;
	state->waiting_count = c->waiting_end - c->waiting_first;
	state->next_birth = c->next_birth;
	state->time = c->time;
	state->last_step = c->step;
	state->step_count += c->step_count;
	state->list_count = result->list_count;
	state->contact_count = c->contact_count;
	state->bad_grain = c->bad_grain;
	state->is_changed = false;
	return SAND_OK;
}

// ---------------------------------------------------------------------------------------------- calls and runs

// Everything up to the first list of a call.
static SandStatus begin_call(SandGlSim *gl, double seconds, SandError *err)
{
	SandControl *c = &gl->control;
	SandStatus status = SAND_OK;
	if (gl->state != NULL)
	{
		c->waiting_first = 0;
		c->waiting_end = gl->state->waiting_count;
		c->next_birth = gl->state->next_birth;
		status = upload_state(gl, gl->state, err);
		gl->state = NULL;
	}
	c->seconds = seconds;
	c->done = c->step = c->last_step = c->turn = c->turn_seconds = 0;
	c->begin = c->time = c->list_time = gl->time;
	c->step_count = c->turn_steps = c->is_stepped = c->is_chosen = c->is_closing = c->contact_count = 0;
	clear(gl, SAND_BIND_IMPULSES, 48 * (int64_t)c->body_count);
	clear(gl, SAND_BIND_LOAD_SUMS, 48 * (int64_t)c->collider_count * (gl->chunk_count + 1));
	return status != SAND_OK ? status : build_list(gl, true, err);
}

static double ask_ahead(SandGlSim *gl)
{
	pthread_mutex_lock(&gl->mutex);
	double seconds = gl->ahead_seconds;
	gl->ahead_seconds = 0;
	pthread_mutex_unlock(&gl->mutex);
	return seconds;
}

static void deliver(SandGlSim *gl, double next_seconds)
{
	pthread_mutex_lock(&gl->mutex);
	while (gl->is_delivered)
	{
		pthread_cond_wait(&gl->change, &gl->mutex);
	}
	Result taken = gl->result;
	gl->result = gl->pending;
	gl->pending = taken;
	gl->result.next_seconds = next_seconds;
	gl->is_delivered = true;
	pthread_cond_broadcast(&gl->change);
	pthread_mutex_unlock(&gl->mutex);
}

// Calls, one behind the other, on the device's thread. The list of the next call is on its way before the state of the
// last is waited for; its caller has that state while the steps of the next are made.
static SandStatus run_job(SandGpu *gpu, void *user, SandError *err)
{
	SandGlSim *gl = user;
	(void)gpu;
	SandStatus status = begin_call(gl, gl->seconds, err);
	while (status == SAND_OK)
	{
		SandStatus outcome = SAND_OK, ahead_status = SAND_OK;
		SandError ahead_error = {0};
		status = take_steps(gl, &outcome, err);
		status = status != SAND_OK ? status : begin_read(gl, outcome, err);
		if (status != SAND_OK)
		{
			break;
		}
		double next_seconds = outcome == SAND_OK ? ask_ahead(gl) : 0;
		if (next_seconds > 0)
		{
			ahead_status = begin_call(gl, next_seconds, &ahead_error);
		}
		status = finish_read(gl, err);
		if (status != SAND_OK)
		{
			break;
		}
		deliver(gl, next_seconds);
		if (next_seconds == 0)
		{
			break;
		}
		status = ahead_status;
		if (ahead_status != SAND_OK && err != NULL)
		{
			*err = ahead_error;
		}
	}
	// After a failure what the device holds is no longer what the host has.
	gl->is_resident = gl->is_resident && status == SAND_OK;
	return status;
}

static void *run_thread(void *user)
{
	SandGlSim *gl = user;
	SandStatus status = sand_gpu_run(gl->gpu, run_job, gl, &gl->end_error);
	pthread_mutex_lock(&gl->mutex);
	gl->end_status = status;
	gl->has_ended = true;
	pthread_cond_broadcast(&gl->change);
	pthread_mutex_unlock(&gl->mutex);
	return NULL;
}

// Begins a run with the call of gl->seconds; on a thread of its own, or, when there is none to be had, done on return.
static void start_run(SandGlSim *gl, bool is_threaded, double ahead_seconds)
{
	gl->has_ended = gl->is_delivered = false;
	gl->ahead_seconds = is_threaded ? ahead_seconds : 0;
	gl->cancel.is_raised = 0;
	gl->end_error = (SandError){0};
	gl->has_thread = is_threaded && pthread_create(&gl->thread, NULL, run_thread, gl) == 0;
	if (!gl->has_thread)
	{
		gl->ahead_seconds = 0;
		(void)run_thread(gl);
	}
}

// Waits for the end of a run whose results are all taken.
static void end_run(SandGlSim *gl)
{
	if (gl->has_thread)
	{
		pthread_join(gl->thread, NULL);
		gl->has_thread = false;
	}
	gl->next_seconds = 0;
	gl->is_resident = gl->is_resident && gl->end_status == SAND_OK;
}

void sand_glsim_drop(SandGlSim *gl)
{
	if (!gl->has_thread)
	{
		return;
	}
	gl->cancel.is_raised = 1;
	pthread_mutex_lock(&gl->mutex);
	while (!gl->has_ended)
	{
		gl->is_delivered = false;
		pthread_cond_broadcast(&gl->change);
		pthread_cond_wait(&gl->change, &gl->mutex);
	}
	gl->is_delivered = false;
	pthread_mutex_unlock(&gl->mutex);
	end_run(gl);
	gl->is_resident = false;
}

double sand_glsim_next(const SandGlSim *gl)
{
	return gl->next_seconds;
}

int sand_glsim_ahead_count(const SandGlSim *gl)
{
	return gl->ahead_count;
}

// Waits for the result of the call under way, and for a cancel meanwhile. False: the run has ended without one.
static bool wait_for_result(SandGlSim *gl, SandCancel *cancel)
{
	pthread_mutex_lock(&gl->mutex);
	while (!gl->is_delivered && !gl->has_ended)
	{
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 10000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		(void)pthread_cond_timedwait(&gl->change, &gl->mutex, &until);
		if (cancel != NULL && cancel->is_raised)
		{
			gl->cancel.is_raised = 1;
		}
	}
	bool is_there = gl->is_delivered;
	pthread_mutex_unlock(&gl->mutex);
	return is_there;
}

SandStatus sand_glsim_advance(SandGlSim *gl, SandGlState *state, double seconds, double ahead_seconds,
                              SandCancel *cancel, SandError *err)
{
	assert(gl->next_seconds == 0 || (!state->is_changed && gl->next_seconds == seconds));
	if (gl->next_seconds > 0)
	{
		pthread_mutex_lock(&gl->mutex);
		gl->ahead_seconds = ahead_seconds;
		pthread_mutex_unlock(&gl->mutex);
	}
	else
	{
		gl->state = state->is_changed || !gl->is_resident ? state : NULL;
		gl->seconds = seconds;
		gl->time = state->time;
		gl->list_count = state->list_count;
		gl->caller_cancel = ahead_seconds > 0 ? NULL : cancel;
		start_run(gl, ahead_seconds > 0, ahead_seconds);
	}
	if (!wait_for_result(gl, cancel))
	{
		end_run(gl);
		gl->is_resident = false;
		if (err != NULL)
		{
			*err = gl->end_error;
		}
		return gl->end_status;
	}
	SandStatus outcome = gl->result.outcome, status = copy_state(&gl->result, state, err);
	double next_seconds = gl->result.next_seconds;
	pthread_mutex_lock(&gl->mutex);
	gl->is_delivered = false;
	pthread_cond_broadcast(&gl->change);
	pthread_mutex_unlock(&gl->mutex);
	gl->next_seconds = next_seconds;
	gl->ahead_count += next_seconds > 0;
	if (next_seconds == 0)
	{
		// A device that is lost behind the last read-back has done its work; the next call will meet the loss.
		end_run(gl);
		if (ahead_seconds > 0 && status == SAND_OK && outcome == SAND_OK && gl->is_resident)
		{
			// The caller came when the work was done already.
			gl->seconds = ahead_seconds;
			gl->caller_cancel = NULL;
			start_run(gl, true, 0);
			gl->next_seconds = ahead_seconds;
		}
	}
	if (gl->next_seconds > 0 && (gl->cancel.is_raised || status != SAND_OK))
	{
		// A cancel that came too late for this call is not the next one's.
		sand_glsim_drop(gl);
		state->is_changed = true;
	}
	if (status == SAND_OK && outcome == SAND_CANCELLED)
	{
		return sand_fail(err, SAND_CANCELLED, "The simulation was cancelled at %.4f s", state->time);
	}
	return status == SAND_OK && outcome == SAND_ERROR_UNSTABLE ? SAND_ERROR_UNSTABLE : status;
}

// ---------------------------------------------------------------------------------------------- life

static void set_control(SandGlSim *gl, const SandGlSimDesc *desc)
{
	const SandScene *scene = desc->scene;
	const SandWork *work = desc->work;
	SandControl *c = &gl->control;
	double field = 0, bound = 0;
	c->unit = work->unit;
	c->inverse_unit = 1 / work->unit;
	c->unit_float = (float)work->unit;
	c->per_unit = (float)(1 / work->unit);
	for (int k = 0; k < 3; ++k)
	{
		c->origin[k] = work->origin[k];
		c->gravity[k] = work->gravity[k];
		c->domain_min[k] = work->domain_min[k];
		c->domain_max[k] = work->domain_max[k];
		c->wind[k] = work->wind[k];
		field += fabs(scene->gravity[k]);
	}
	c->speed_limit = work->speed_limit;
	c->drag = work->drag;
	c->sleep_speed = scene->sleep_speed;
	c->sleep_seconds = scene->sleep_seconds;
	c->step_limit = desc->step_limit;
	c->max_speed = scene->max_speed;
	c->radius_min = (double)scene->radius_min;
	c->field_step = field > 0 ? sqrt(0.02 * c->radius_min / field) : DBL_MAX;
	c->colliders_until = DBL_MAX;
	c->birth_slack = SAND_BIRTH_STEPS * desc->step_limit;
	for (int i = 0; i < scene->grain_count; ++i)
	{
		bound = fmax(bound, (double)scene->shapes[scene->grain_shapes[i]].bound * (double)scene->grain_scales[i]);
	}
	c->birth_room = 2 * bound + 2 * c->birth_slack * c->speed_limit;
	c->sort_cell = 4.0 * (double)scene->radius_max / c->unit;
	for (int k = 0; k < SAND_MARGIN_CHOICES; ++k)
	{
		c->thresholds[k] = SAND_SLOW_MARGIN * c->radius_min / ((64 >> k) * desc->step_limit);
	}
	c->margin_slow = c->margin_fast = work->margin_slow;
	c->wake_speed_square = work->wake_speed_square;
	c->bridge = (float)(0.5 * (double)(scene->bridge * scene->radius_max) / c->unit);
	c->grain_count = scene->grain_count;
	c->sphere_count = desc->sphere_count;
	c->wall_count = desc->wall_count;
	c->law_count = scene->law_count;
	c->material_count = scene->material_count;
	c->wall_material = scene->wall_material;
	c->chunk_spheres = desc->chunk_spheres;
	c->region_count = scene->region_count;
	c->outflow_count = scene->outflow_count;
	c->obstacle_count = scene->obstacle_count;
	c->collider_count = scene->collider_count;
	c->body_count = scene->body_count;
	c->partial_count = (scene->grain_count + 63) / 64;
	bool is_large = scene->grain_count > SPEEDS_AT_ONCE;
	c->speed_first = is_large ? scene->grain_count : 0;
	c->speed_count = is_large ? (scene->grain_count + SAND_SPEED_BLOCK - 1) / SAND_SPEED_BLOCK : scene->grain_count;
	c->bad_grain = SAND_NO_GRAIN;
}

static void define(SandGlSim *gl, bool is_so, const char *line)
{
	size_t length = strlen(gl->defines), more = strlen(line);
	assert(length + more < DEFINE_BYTES);
	if (is_so)
	{
		memcpy(gl->defines + length, line, more + 1);
	}
}

// What the scene does not have. A processor runs both sides of every branch of a shader, and a graphics card keeps
// registers for both: what is not there is better not compiled.
static void set_defines(SandGlSim *gl, bool has_asymmetric)
{
	const SandScene *scene = gl->scene;
	bool has_rolling = false, has_cohesion = false, has_rough = false, has_kinds[SAND_OBSTACLE_CONE + 1] = {false};
	bool has_one_normal = true, has_one_shear = true;
	for (int i = 0; i < scene->law_count; ++i)
	{
		const SandLaw *law = &scene->laws[i];
		has_rolling = has_rolling || law->rolling > 0;
		has_cohesion = has_cohesion || law->cohesion > 0;
		has_one_normal = has_one_normal && law->normal == scene->laws[0].normal;
		has_one_shear = has_one_shear && law->shear == scene->laws[0].shear;
	}
	for (int i = 0; i < scene->obstacle_count; ++i)
	{
		has_kinds[scene->obstacles[i].kind] = true;
		has_rough = has_rough || scene->obstacles[i].roughness > 0;
	}
	for (int i = 0; i < scene->grain_count; ++i)
	{
		int count = scene->shapes[scene->grain_shapes[i]].sphere_count;
		gl->has_clusters = gl->has_clusters || count > 1;
		gl->has_big = gl->has_big || count > SAND_BIG_GRAIN;
	}
	gl->force_rows = has_rolling ? 3 : 2;
	define(gl, !has_rolling, "#define NO_ROLLING\n");
	define(gl, !has_cohesion, "#define NO_COHESION\n");
	define(gl, !scene->has_history, "#define NO_HISTORY\n");
	define(gl, scene->law_count == 1, "#define ONE_LAW\n");
	for (int kind = 0; kind < 4; ++kind)
	{
		char line[] = "#define LAW_NORMAL 0\n", *digit = line + sizeof("#define LAW_NORMAL ") - 1;
		*digit = (char)('0' + kind);
		define(gl, has_one_normal && (int)scene->laws[0].normal == kind, line);
	}
	define(gl, has_one_shear && scene->laws[0].shear == SAND_SHEAR_VISCOUS, "#define LAW_SHEAR 0\n");
	define(gl, has_one_shear && scene->laws[0].shear == SAND_SHEAR_HISTORY, "#define LAW_SHEAR 1\n");
	define(gl, !has_kinds[SAND_OBSTACLE_BOX], "#define NO_BOXES\n");
	define(gl, !has_kinds[SAND_OBSTACLE_CYLINDER], "#define NO_CYLINDERS\n");
	define(gl, !has_kinds[SAND_OBSTACLE_CONE], "#define NO_CONES\n");
	define(gl, !has_rough, "#define NO_ROUGH\n");
	define(gl, !has_asymmetric, "#define NO_ASYMMETRIC\n");
	define(gl, !gl->has_clusters, "#define NO_CLUSTERS\n");
	define(gl, !gl->has_big, "#define NO_BIG\n");
	define(gl, !(scene->sleep_speed > 0), "#define NO_SLEEP\n");
	define(gl, scene->body_count == 0, "#define NO_BODIES\n");
	define(gl, !(gl->control.drag > 0) && scene->region_count == 0, "#define NO_FIELD\n");
	define(gl, scene->outflow_count == 0, "#define NO_OUTFLOW\n");
	define(gl, scene->body_count == 0 && gl->control.wall_count == 0, "#define NO_FIXED\n");
}

// Whether a pass is ever run for this scene.
static bool is_needed(const SandGlSim *gl, Pass pass)
{
	switch (pass)
	{
	case PASS_BODIES:
		return gl->scene->body_count > 0;
	case PASS_SPRINGS_COUNT:
	case PASS_SPRINGS:
	case PASS_RESTORE:
		return gl->has_history;
	case PASS_BIRTHS:
		return gl->scene->emitter_count > 0;
	case PASS_TOUCHES_COUNT:
	case PASS_TOUCHES:
	case PASS_OBSTACLES:
		return gl->scene->obstacle_count > 0;
	case PASS_POSES:
	case PASS_NEARS_COUNT:
	case PASS_NEARS:
	case PASS_COLLIDERS:
	case PASS_LOADS:
		return gl->scene->collider_count > 0;
	case PASS_SUPPORTS:
	case PASS_WATCH:
		return gl->scene->sleep_speed > 0;
	case PASS_SUMS:
		return gl->has_clusters;
	case PASS_MOVE:
		return !gl->has_clusters;
	case PASS_PLACE:
		return gl->has_big;
	case PASS_FASTEST:
		return gl->control.speed_first > 0;
	default:
		return true;
	}
}

static SandStatus make_programs(SandGlSim *gl, SandError *err)
{
	SandStatus status = SAND_OK;
	for (int i = 0; status == SAND_OK && i < PASS_COUNT; ++i)
	{
		char defines[2 * DEFINE_BYTES];
		snprintf(defines, sizeof(defines), "%s%s", gl->defines, passes[i].defines != NULL ? passes[i].defines : "");
		SandGpuProgramDesc desc = {.name = passes[i].file, .defines = defines};
		status = is_needed(gl, (Pass)i) ? sand_gpu_program_create(gl->gpu, &desc, &gl->programs[i], err) : SAND_OK;
	}
	return status;
}

static void set_levels(SandGlSim *gl, const SandList *list)
{
	SandListClass classes[SAND_CLASS_LIMIT];
	int count = sand_list_classes(list, classes);
	for (int l = 0; l < count; ++l)
	{
		gl->levels[l] = (SandGlLevel){.radius_max = classes[l].radius_max,
		                              .mask = classes[l].mask,
		                              .stride_y = classes[l].stride_y,
		                              .stride_z = classes[l].stride_z,
		                              .first_bucket = gl->bucket_count};
		gl->bucket_count += classes[l].mask + 1;
	}
	gl->control.level_count = count;
	gl->control.size_count = count / 2;
}

static SandStatus make_buffers(SandGlSim *gl, SandError *err)
{
	int64_t grains = gl->control.grain_count, spheres = gl->control.sphere_count, total = total_spheres(gl);
	int64_t history = gl->has_history ? total : 0, sleepers = gl->control.sleep_speed > 0 ? grains : 0;
	int64_t newcomers = gl->scene->emitter_count > 0 ? grains : 0, buckets = gl->bucket_count;
	int64_t radix = 16 * ((grains + 1023) / 1024), widest = buckets + 1 > total + 1 ? buckets + 1 : total + 1;
	const struct
	{
		int binding;
		int64_t bytes;
		const char *label;
	} wanted[] = {
	    {SAND_BIND_CONTROL, sizeof(SandControl), "control"},
	    {SAND_BIND_GRAINS, grains * (int64_t)sizeof(SandGrain), "grains"},
	    {SAND_BIND_GRAINS_SPARE, grains * (int64_t)sizeof(SandGrain), "grains"},
	    {SAND_BIND_TRAITS, grains * (int64_t)sizeof(SandTraits), "traits"},
	    {SAND_BIND_TRAITS_SPARE, grains * (int64_t)sizeof(SandTraits), "traits"},
	    {SAND_BIND_SPHERES, total * (int64_t)sizeof(SandSphere), "spheres"},
	    {SAND_BIND_SUMS, gl->has_clusters ? spheres * (int64_t)sizeof(SandSum) : 0, "sums"},
	    {SAND_BIND_PAIRS, 0, "pairs"},
	    {SAND_BIND_STRETCHES, 0, "springs of pairs"},
	    {SAND_BIND_FORCES, 0, "forces of pairs"},
	    {SAND_BIND_FIRSTS, 4 * (spheres + 1), "first pairs"},
	    {SAND_BIND_BACK_FIRSTS, 4 * (spheres + 1), "first pairs"},
	    {SAND_BIND_BACKS, 0, "pairs of the higher spheres"},
	    {SAND_BIND_PARTIALS, 16 * (int64_t)gl->control.partial_count, "fastest of groups"},
	    {SAND_BIND_STARTS, 4 * (buckets + 1), "buckets"},
	    {SAND_BIND_ENTRIES, 4 * total, "spheres in buckets"},
	    {SAND_BIND_BUCKETS, 4 * total, "buckets of spheres"},
	    {SAND_BIND_CURSORS, 4 * widest, "cursors"},
	    {SAND_BIND_SCAN, 4 * (radix > grains ? radix : grains), "running sums"},
	    {SAND_BIND_SCAN_SUMS, 4 * (widest / 512 + 64), "sums of groups"},
	    {SAND_BIND_SPRING_FIRSTS, 4 * (history + 1), "spring numbers"},
	    {SAND_BIND_SPRINGS, 0, "friction springs"},
	    {SAND_BIND_NEW_FIRSTS, 4 * (history + 1), "spring numbers"},
	    {SAND_BIND_NEW_SPRINGS, 0, "friction springs"},
	    {SAND_BIND_BASES, 4 * (grains + history), "lasting ids"},
	    {SAND_BIND_SUPPORTS, 4 * sleepers, "supports"},
	    {SAND_BIND_WATCHES, 0, "pairs of sleepers"},
	    {SAND_BIND_TARGETS, gl->control.body_count * (int64_t)sizeof(SandGrain), "targets"},
	    {SAND_BIND_IMPULSES, 48 * (int64_t)gl->control.body_count, "impulses"},
	    {SAND_BIND_KEYS, 8 * grains, "keys"},
	    {SAND_BIND_KEYS_SPARE, 8 * grains, "keys"},
	    {SAND_BIND_PLACES, 4 * (grains + newcomers), "places of grains"},
	    {SAND_BIND_BIRTHS, 8 * newcomers, "births"},
	    {SAND_BIND_RIVALS, 4 * newcomers, "rivals"},
	    {SAND_BIND_TOUCH_FIRSTS, 4 * (spheres + 1), "first obstacle pairs"},
	    {SAND_BIND_TOUCHES, 0, "pairs with obstacles"},
	    {SAND_BIND_NEAR_FIRSTS, 4 * (spheres + 1), "first triangles"},
	    {SAND_BIND_NEARS, 0, "pairs with triangles"},
	    {SAND_BIND_NEAR_LOADS, 0, "loads on triangles"},
	    {SAND_BIND_POSES, gl->control.collider_count * (int64_t)sizeof(SandGlPose), "poses"},
	    {SAND_BIND_ENTRY_FIRSTS, 4 * (spheres + 1), "first entries"},
	    {SAND_BIND_ADDENDS, 0, "entries"},
	    {SAND_BIND_SPEEDS, 8 * (grains + (gl->control.speed_first > 0 ? gl->control.speed_count : 0)), "speeds"},
	    {SAND_BIND_NEAR_SPHERES, gl->control.collider_count > 0 ? 4 * spheres : 0, "spheres near triangles"},
	    {SAND_BIND_BIG_SPHERES, gl->has_big ? 4 * spheres : 0, "spheres of big grains"},
	    {SAND_BIND_GROUPS, 12 * SAND_GROUPS_COUNT, "groups of passes"},
	    {SAND_BIND_LOAD_SUMS, 48 * (int64_t)gl->control.collider_count * (gl->chunk_count + 1), "loads on colliders"},
	};
	// What a list takes is known when it is made: here as much as that of a settled bed.
	int64_t pairs = SETTLED_PAIRS * spheres, limit = sand_gpu_info(gl->gpu)->limits.block_bytes;
	int64_t largest = gl->force_rows * SAND_ROW_BYTES * pairs;
	const char *label = "forces of pairs";
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); ++i)
	{
		label = wanted[i].bytes > largest ? wanted[i].label : label;
		largest = wanted[i].bytes > largest ? wanted[i].bytes : largest;
	}
	if (largest > limit - 3) // a buffer is whole words
	{
		return sand_fail(err, SAND_ERROR_GPU_MEMORY,
		                 "The '%s' of %lld grains take about %lld bytes (%.1f MiB), and %s holds %lld bytes (%.1f MiB) "
		                 "in one block; about %lld grains would fit: use fewer, or the cpu engine",
		                 label, (long long)grains, (long long)largest, (double)largest / 1048576.0,
		                 sand_gpu_info(gl->gpu)->name, (long long)limit, (double)limit / 1048576.0,
		                 (long long)((double)grains * ((double)limit / (double)largest)));
	}
	SandStatus status = SAND_OK;
	for (size_t i = 0; status == SAND_OK && i < sizeof(wanted) / sizeof(wanted[0]); ++i)
	{
		status = ensure(gl, wanted[i].binding, wanted[i].bytes, wanted[i].label, err);
	}
	return status;
}

// What never changes.
static SandStatus fill_scene(SandGlSim *gl, const SandGlSimDesc *desc, SandError *err)
{
	const SandScene *scene = gl->scene;
	int64_t offset_count = 0, shapes = scene->shape_count, fields = 9 * scene->region_count + 6 * scene->outflow_count;
	for (int i = 0; i < scene->shape_count; ++i)
	{
		offset_count += scene->shapes[i].sphere_count;
	}
	SandGlShape *records = sand_alloc((size_t)shapes, sizeof(SandGlShape));
	float *offsets = sand_alloc(4 * (size_t)offset_count, sizeof(float));
	SandStatus status = records != NULL && offsets != NULL
	                        ? SAND_OK
	                        : sand_fail_memory(err, 16 * (size_t)offset_count, "the shapes for the device");
	const struct
	{
		int binding;
		int64_t bytes;
		const void *from;
		const char *label;
	} constants[] = {
	    {SAND_BIND_SHAPES, shapes * (int64_t)sizeof(SandGlShape), records, "shapes"},
	    {SAND_BIND_OFFSETS, 16 * offset_count, offsets, "offsets"},
	    {SAND_BIND_LAWS, scene->law_count * (int64_t)sizeof(SandLaw), scene->laws, "laws"},
	    {SAND_BIND_LAW_OF, 4 * (int64_t)scene->material_count * scene->material_count, scene->law_of, "laws of pairs"},
	    {SAND_BIND_LEVELS, sizeof(gl->levels), gl->levels, "classes"},
	    {SAND_BIND_OBSTACLES, scene->obstacle_count * (int64_t)sizeof(SandObstacle), scene->obstacles, "obstacles"},
	    {SAND_BIND_FIELDS, 4 * fields, NULL, "regions"},
	};
	int first = 0;
	for (int i = 0; status == SAND_OK && i < scene->shape_count; ++i)
	{
		const SandShape *shape = &scene->shapes[i];
		records[i] = (SandGlShape){
		    .share = shape->share, .bound = shape->bound, .sphere_count = shape->sphere_count, .first_offset = first};
		memcpy(records[i].inertia, shape->inertia, sizeof(shape->inertia));
		for (int k = 0; k < shape->sphere_count; ++k, ++first)
		{
			memcpy(offsets + 4 * (size_t)first, shape->offsets + 3 * (size_t)k, 3 * sizeof(float));
			offsets[4 * (size_t)first + 3] = shape->radii[k];
		}
	}
	for (size_t i = 0; status == SAND_OK && i < sizeof(constants) / sizeof(constants[0]); ++i)
	{
		status = ensure(gl, constants[i].binding, constants[i].bytes, constants[i].label, err);
		if (status == SAND_OK && constants[i].from != NULL)
		{
			upload(gl, constants[i].binding, 0, constants[i].from, constants[i].bytes);
		}
	}
	if (status == SAND_OK)
	{
		upload(gl, SAND_BIND_FIELDS, 0, scene->regions, scene->region_count * (int64_t)sizeof(SandForceRegion));
		upload(gl, SAND_BIND_FIELDS, scene->region_count * (int64_t)sizeof(SandForceRegion), scene->outflows,
		       scene->outflow_count * (int64_t)sizeof(SandOutflow));
		upload(gl, SAND_BIND_SPHERES, gl->control.sphere_count * (int64_t)sizeof(SandSphere), desc->walls,
		       gl->control.wall_count * (int64_t)sizeof(SandSphere));
		upload(gl, SAND_BIND_BASES, 0, desc->sphere_base, 4 * (int64_t)gl->control.grain_count);
		upload(gl, SAND_BIND_BIRTHS, 0, scene->grain_births,
		       scene->emitter_count > 0 ? 8 * (int64_t)gl->control.grain_count : 0);
		if (gl->has_history && gl->control.wall_count > 0)
		{
			// Walls are always at rest.
			sand_gpu_fill(gl->gpu, gl->buffers[SAND_BIND_BASES].handle,
			              4 * ((int64_t)gl->control.grain_count + gl->control.sphere_count),
			              4 * (int64_t)gl->control.wall_count, 1);
		}
	}
	sand_free(records);
	sand_free(offsets);
	return status;
}

// Meshes, and the tracks of colliders, then of bodies.
static SandStatus fill_meshes(SandGlSim *gl, SandError *err)
{
	const SandScene *scene = gl->scene;
	int64_t count = gl->meshes.track_count, bodies = scene->body_count;
	for (int i = 0; i < scene->body_count; ++i)
	{
		count += scene->bodies[i].track != NULL ? sand_gl_track_size(scene->bodies[i].track) : 0;
	}
	double *tracks = sand_alloc((size_t)count, sizeof(double));
	SandGlBody *records = sand_alloc((size_t)bodies, sizeof(SandGlBody));
	SandStatus status = tracks != NULL && records != NULL
	                        ? SAND_OK
	                        : sand_fail_memory(err, (size_t)count * sizeof(double), "the tracks for the device");
	if (status == SAND_OK)
	{
		int64_t first = gl->meshes.track_count;
		memcpy(tracks, gl->meshes.tracks, (size_t)first * sizeof(double));
		for (int i = 0; i < scene->body_count; ++i)
		{
			const SandBody *body = &scene->bodies[i];
			records[i] = (SandGlBody){.release = body->release, .grain = body->grain, .track = (int32_t)first};
			memcpy(records[i].axes, scene->shapes[scene->grain_shapes[body->grain]].axes, sizeof(records[i].axes));
			if (body->track != NULL)
			{
				sand_gl_track_write(body->track, 0, tracks + first);
				first += sand_gl_track_size(body->track);
			}
		}
	}
	const struct
	{
		int binding;
		int64_t bytes;
		const void *from;
		const char *label;
	} wanted[] = {
	    {SAND_BIND_MESHES, gl->meshes.collider_count * (int64_t)sizeof(SandGlCollider), gl->meshes.meshes, "colliders"},
	    {SAND_BIND_MESH_WORDS, 4 * gl->meshes.word_count, gl->meshes.words, "triangles"},
	    {SAND_BIND_MESH_FLOATS, 4 * gl->meshes.float_count, gl->meshes.floats, "vertices"},
	    {SAND_BIND_TRACKS, 8 * count, tracks, "tracks"},
	    {SAND_BIND_BODIES, bodies * (int64_t)sizeof(SandGlBody), records, "bodies"},
	};
	for (size_t i = 0; status == SAND_OK && i < sizeof(wanted) / sizeof(wanted[0]); ++i)
	{
		status = ensure(gl, wanted[i].binding, wanted[i].bytes, wanted[i].label, err);
		if (status == SAND_OK)
		{
			upload(gl, wanted[i].binding, 0, wanted[i].from, wanted[i].bytes);
		}
	}
	sand_free(tracks);
	sand_free(records);
	return status;
}

static SandStatus make_states(SandGlSim *gl, SandError *err)
{
	int count = gl->scene->collider_count;
	SandStatus status = sand_gl_meshes_create(gl->scene->colliders, count, &gl->meshes, err);
	gl->states = sand_alloc((size_t)count, sizeof(SandColliderState *));
	if (status == SAND_OK && gl->states == NULL)
	{
		status = sand_fail_memory(err, (size_t)count * sizeof(void *), "the colliders");
	}
	for (int i = 0; status == SAND_OK && i < count; ++i)
	{
		status = sand_collider_state_create(gl->scene->colliders[i], &gl->states[i], err);
	}
	return status;
}

typedef struct Setup
{
	SandGlSim *gl;
	const SandGlSimDesc *desc;
} Setup;

static SandStatus setup_job(SandGpu *gpu, void *user, SandError *err)
{
	Setup *setup = user;
	SandGlSim *gl = setup->gl;
	const SandGpuDevice *device = sand_gpu_info(gpu);
	if (device->limits.binding_count < SAND_BIND_COUNT || device->limits.block_count < 16)
	{
		return sand_fail(err, SAND_ERROR_GPU,
		                 "%s binds %d storage buffers, %d in one shader, expected %d and 16; use the cpu engine",
		                 device->name, device->limits.binding_count, device->limits.block_count, SAND_BIND_COUNT);
	}
	SandStatus status = make_programs(gl, err);
	status = status != SAND_OK ? status : make_buffers(gl, err);
	status = status != SAND_OK ? status : fill_scene(gl, setup->desc, err);
	return status != SAND_OK ? status : fill_meshes(gl, err);
}

SandStatus sand_glsim_create(const SandGlSimDesc *desc, SandGlSim **gl_out, SandError *err)
{
	*gl_out = NULL;
	SandGlSim *gl = sand_alloc(1, sizeof(*gl));
	if (gl == NULL)
	{
		return sand_fail_memory(err, sizeof(*gl), "the GL engine");
	}
	pthread_mutex_init(&gl->mutex, NULL);
	pthread_cond_init(&gl->change, NULL);
	gl->scene = desc->scene;
	gl->has_history = desc->scene->has_history || desc->scene->collider_count > 0;
	gl->batch_seconds = desc->batch_seconds > 0 ? desc->batch_seconds : 0.03;
	gl->batch_steps = 4;
	set_control(gl, desc);
	set_defines(gl, desc->has_asymmetric);
	define(gl, desc->defines != NULL, desc->defines != NULL ? desc->defines : "");
	set_levels(gl, desc->list);
	gl->chunk_count = (desc->sphere_count - 1) / desc->chunk_spheres + 1;
	SandStatus status = make_states(gl, err);
	status = status != SAND_OK ? status : sand_gpu_create(&desc->gpu, &gl->gpu, err);
	Setup setup = {gl, desc};
	status = status != SAND_OK ? status : sand_gpu_run(gl->gpu, setup_job, &setup, err);
	if (status != SAND_OK)
	{
		sand_glsim_destroy(gl);
		return status;
	}
	*gl_out = gl;
	return SAND_OK;
}

void sand_glsim_destroy(SandGlSim *gl)
{
	if (gl != NULL)
	{
		sand_glsim_drop(gl);
		sand_gpu_destroy(gl->gpu);
		sand_free(gl->pending.bytes);
		sand_free(gl->result.bytes);
		pthread_cond_destroy(&gl->change);
		pthread_mutex_destroy(&gl->mutex);
		for (int i = 0; gl->states != NULL && i < gl->scene->collider_count; ++i)
		{
			sand_collider_state_destroy(gl->states[i]);
		}
		sand_free(gl->states);
		sand_gl_meshes_destroy(&gl->meshes);
		sand_free(gl);
	}
}

const SandGpuDevice *sand_glsim_device(const SandGlSim *gl)
{
	return sand_gpu_info(gl->gpu);
}

static SandStatus times_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)err;
	sand_gpu_timer_read(gpu, user);
	return SAND_OK;
}

SandStatus sand_glsim_pass_times(SandGlSim *gl, SandGpuPassTime times_out[SAND_GPU_PASS_LIMIT], SandError *err)
{
	memset(times_out, 0, SAND_GPU_PASS_LIMIT * sizeof(times_out[0]));
	return sand_gpu_run(gl->gpu, times_job, times_out, err);
}

int sand_glsim_texel_words(int binding)
{
	return binding >= 0 && binding < SAND_BIND_COUNT ? texel_words[binding] : 0;
}

const char *sand_glsim_pass_name(int pass)
{
	return pass >= 0 && pass < PASS_COUNT ? passes[pass].name : NULL;
}
