// glspread: the sweeps of the relaxation on a device. Comes in: SandSurface, points. Goes out: points, lists, rooms.
//
// Passes 90 to 97. Between a sweep and the next the passes that make lists are always recorded and do nothing unless
// 95_decide has found them due: so a round needs the host for nothing but the recording.
#include "glspread.h"

#include "glsurface.h"
#include "layout.h"

#include <math.h>
#include <string.h>

#define REACH_LIMIT 1e18 // m: squares of coordinates below fit into floats

typedef enum Pass
{
	PASS_CLEAR,
	PASS_CELLS,
	PASS_ENTRIES,
	PASS_ENTRIES_SORT,
	PASS_LISTS,
	PASS_SWEEP,
	PASS_DECIDE,
	PASS_ROOMS,
	PASS_COUNT
} Pass;

// The second row: for points at an offset, which need normals.
static const SandGlPass passes[2][PASS_COUNT] = {
    {
        [PASS_CLEAR] = {"90_clear.comp", NULL},
        [PASS_CELLS] = {"91_cells.comp", NULL},
        [PASS_ENTRIES] = {"92_entries.comp", NULL},
        [PASS_ENTRIES_SORT] = {"92_entries.comp", "#define SORT\n"},
        [PASS_LISTS] = {"93_lists.comp", NULL},
        [PASS_SWEEP] = {"94_sweep.comp", NULL},
        [PASS_DECIDE] = {"95_decide.comp", NULL},
        [PASS_ROOMS] = {"97_rooms.comp", NULL},
    },
    {
        [PASS_CLEAR] = {"90_clear.comp", NULL},
        [PASS_CELLS] = {"91_cells.comp", NULL},
        [PASS_ENTRIES] = {"92_entries.comp", NULL},
        [PASS_ENTRIES_SORT] = {"92_entries.comp", "#define SORT\n"},
        [PASS_LISTS] = {"93_lists.comp", NULL},
        [PASS_SWEEP] = {"94_sweep.comp", "#define OFFSET\n"},
        [PASS_DECIDE] = {"95_decide.comp", NULL},
        [PASS_ROOMS] = {"97_rooms.comp", "#define OFFSET\n"},
    },
};

struct SandGlSpreadWork
{
	SandGlWork work;
	SandGlSpreadDesc desc;
	SandPool *pool;
	SandGlSpread control;                      // as the host last wrote or read it
	uint32_t groups[2 * SAND_SPREAD_STEPS][3]; // of the scan: as they are, as they would be
	uint32_t bucket_count;
	// The call under way.
	SandGlPoints *points;
	int sweep_limit;
	int list_count;
	int32_t *flat; // lists as the device has them
	int32_t *counts;
	float free_square;
	SandGlPlace *rooms;
};
_Static_assert(sizeof(SandGlPlace) == sizeof(SandGlRoom) && SAND_GLSPREAD_LIST == SAND_SPREAD_LIST &&
                   SAND_GLSPREAD_DIRECTIONS == SAND_SPREAD_DIRECTIONS && SAND_GLWORK_SCAN_STEPS == SAND_SPREAD_STEPS,
               "as layout.h has them");

static SandStatus make_room(SandGlSpreadWork *spread, SandError *err)
{
	int64_t n = spread->desc.capacity, buckets = (int64_t)spread->bucket_count + 1;
	const struct
	{
		int binding;
		int64_t bytes;
		const char *what_for;
	} wanted[] = {
	    {SAND_BIND_SPREAD_LISTS, 4 * SAND_SPREAD_LIST * n, "Neighbour lists of points"},
	    {SAND_BIND_SPREAD_ROOMS, (int64_t)sizeof(SandGlRoom) * SAND_SPREAD_DIRECTIONS * n, "Places beside points"},
	    {SAND_BIND_SPREAD_PLACES, 32 * n, "Points"},
	    {SAND_BIND_SPREAD_DRIFTS, 16 * n, "Points"},
	    {SAND_BIND_SPREAD_TRIANGLES, 4 * n, "Points"},
	    {SAND_BIND_SPREAD_COUNTS, 4 * n, "Points"},
	    {SAND_BIND_SPREAD_LISTED, 16 * n, "Points"},
	    {SAND_BIND_SPREAD_CELLS, 16 * n, "Cells of points"},
	    {SAND_BIND_SPREAD_ENTRIES, 4 * n, "Cells of points"},
	    {SAND_BIND_SPREAD_STARTS, 4 * buckets, "Cells"},
	    {SAND_BIND_SPREAD_CURSORS, 4 * buckets, "Cells"},
	};
	SandStatus status = SAND_OK;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && status == SAND_OK; ++i)
	{
		status = sand_glwork_reserve(&spread->work, wanted[i].binding, wanted[i].bytes, wanted[i].what_for, err);
	}
	status = status == SAND_OK ? sand_glwork_reserve_scan(&spread->work, (uint32_t)buckets, err) : status;
	status = status == SAND_OK ? sand_glwork_fill(&spread->work, SAND_BIND_SPREAD_GROUPS, spread->groups,
	                                              sizeof(spread->groups), "Group counts", err)
	                           : status;
	return status == SAND_OK ? sand_glwork_fill(&spread->work, SAND_BIND_SPREAD, &spread->control,
	                                            sizeof(spread->control), "The spread", err)
	                         : status;
}

static SandStatus open_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)gpu;
	SandGlSpreadWork *spread = user;
	const SandGlSpreadDesc *desc = &spread->desc;
	bool has_offset = desc->offset != 0;
	SandStatus status = sand_glwork_open(&spread->work, passes[has_offset], PASS_COUNT, true, err);
	// First what may be refused for its size.
	status = status == SAND_OK ? make_room(spread, err) : status;
	return status == SAND_OK ? sand_glsurface_load(&spread->work, desc->surface,
	                                               has_offset ? SAND_GLSURFACE_NORMALS : 0, 0, spread->pool, err)
	                         : status;
}

static SandStatus close_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)gpu;
	(void)err;
	sand_glwork_close(user);
	return SAND_OK;
}

SandStatus sand_glspread_create(const SandGlSpreadDesc *desc, SandPool *pool, SandGlSpreadWork **work_out,
                                SandError *err)
{
	*work_out = NULL;
	if (!(fabs(desc->offset) < 0.1 * REACH_LIMIT))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "The offset is %g m, more than the gl engine can search; use the cpu "
		                 "engine",
		                 desc->offset);
	}
	SandGlSpreadWork *spread = sand_alloc(1, sizeof(*spread));
	if (spread == NULL)
	{
		return sand_fail_memory(err, sizeof(*spread), "a relaxation on the device");
	}
	spread->desc = *desc;
	spread->pool = pool;
	spread->work.gpu = desc->gpu;
	spread->work.cancel = desc->cancel;
	spread->bucket_count = UINT32_C(1) << desc->bucket_bits;
	spread->control = (SandGlSpread){.spacing = desc->spacing,
	                                 .offset = desc->offset,
	                                 .cells_per_metre = desc->cells_per_metre,
	                                 .spacing_float = (float)desc->spacing,
	                                 .list_square = desc->list_reach * desc->list_reach,
	                                 .margin_square = desc->list_margin * desc->list_margin,
	                                 .settled = desc->settled,
	                                 .capacity = desc->capacity,
	                                 .bucket_bits = desc->bucket_bits};
	uint32_t groups[SAND_SPREAD_STEPS];
	int steps = sand_glwork_scan_groups(spread->bucket_count + 1, groups);
	for (int i = 0; i < steps; ++i)
	{
		uint32_t *full = spread->groups[SAND_SPREAD_STEPS + i];
		full[0] = groups[i];
		full[1] = full[2] = 1;
	}
	SandStatus status = sand_gpu_run(desc->gpu, open_job, spread, err);
	if (status != SAND_OK)
	{
		sand_glspread_destroy(spread);
		return status;
	}
	*work_out = spread;
	return SAND_OK;
}

void sand_glspread_destroy(SandGlSpreadWork *spread)
{
	if (spread != NULL)
	{
		// After a loss no job is run, and nothing is left to destroy.
		(void)sand_gpu_run(spread->work.gpu, close_job, &spread->work, NULL);
		sand_free(spread->flat);
		sand_free(spread);
	}
}

// ---------------------------------------------------------------------------------------------- lists

// Records the making of lists; the device skips it unless they are due.
static SandStatus record_lists(SandGlSpreadWork *spread, SandError *err)
{
	SandGlWork *work = &spread->work;
	int64_t count = spread->control.count, buckets = spread->bucket_count;
	SandStatus status = sand_glwork_run_parts(work, PASS_CLEAR, 0, buckets + 1, 1, err);
	status = status == SAND_OK ? sand_glwork_run_parts(work, PASS_CELLS, 0, count, 1, err) : status;
	if (status == SAND_OK)
	{
		sand_glwork_scan_indirect(work, SAND_BIND_SPREAD_STARTS, spread->bucket_count + 1,
		                          work->buffers[SAND_BIND_SPREAD_GROUPS], 0);
	}
	status = status == SAND_OK ? sand_glwork_run_parts(work, PASS_ENTRIES, 0, count, 1, err) : status;
	status = status == SAND_OK ? sand_glwork_run_parts(work, PASS_ENTRIES_SORT, 0, buckets, 1, err) : status;
	return status == SAND_OK ? sand_glwork_run_parts(work, PASS_LISTS, 0, count, 1, err) : status;
}

static void write_control(SandGlSpreadWork *spread)
{
	sand_glwork_upload(&spread->work, SAND_BIND_SPREAD, 0, &spread->control, sizeof(spread->control));
	sand_gpu_barrier(spread->work.gpu);
}

// Takes up points that the host has changed, and makes their lists.
static SandStatus take_up(SandGlSpreadWork *spread, SandError *err)
{
	SandGlWork *work = &spread->work;
	const SandGlPoints *points = spread->points;
	int64_t count = points->count;
	if (!points->is_changed)
	{
		return SAND_OK;
	}
	spread->control.count = points->count;
	spread->control.side = 0;
	spread->control.sweep_count = 0;
	spread->control.needs_lists = 1;
	sand_glwork_upload(work, SAND_BIND_SPREAD_PLACES, 0, points->places, 16 * count);
	sand_glwork_upload(work, SAND_BIND_SPREAD_DRIFTS, 0, points->drifts, 16 * count);
	sand_glwork_upload(work, SAND_BIND_SPREAD_TRIANGLES, 0, points->triangles, 4 * count);
	sand_glwork_upload(work, SAND_BIND_SPREAD_GROUPS, 0, spread->groups[SAND_SPREAD_STEPS],
	                   (int64_t)sizeof(spread->groups) / 2);
	write_control(spread);
	SandStatus status = record_lists(spread, err);
	spread->control.needs_lists = 0;
	return status;
}

// ---------------------------------------------------------------------------------------------- sweeps

static SandStatus settle_job(SandGpu *gpu, void *user, SandError *err)
{
	SandGlSpreadWork *spread = user;
	SandGlWork *work = &spread->work;
	SandGlPoints *points = spread->points;
	int64_t count = points->count;
	SandStatus status = take_up(spread, err);
	spread->control.is_done = 0;
	spread->control.sweeps_done = 0;
	spread->control.lack_bits = 0;
	spread->control.moved_bits = 0;
	write_control(spread);
	for (int i = 0; i < spread->sweep_limit && status == SAND_OK; ++i)
	{
		status = sand_glwork_run_parts(work, PASS_SWEEP, 0, count, 1, err);
		if (status == SAND_OK)
		{
			sand_glwork_run(work, PASS_DECIDE, 1, NULL, 0);
			status = record_lists(spread, err);
		}
		status = status == SAND_OK ? sand_glwork_go_on(work, err) : status;
	}
	status = status == SAND_OK
	             ? sand_glwork_download(work, SAND_BIND_SPREAD, 0, &spread->control, sizeof(spread->control), err)
	             : status;
	int64_t first = 16 * (int64_t)spread->control.side * spread->desc.capacity;
	status = status == SAND_OK
	             ? sand_glwork_download(work, SAND_BIND_SPREAD_PLACES, first, points->places, 16 * count, err)
	             : status;
	status = status == SAND_OK ? sand_glwork_download(work, SAND_BIND_SPREAD_DRIFTS, 0, points->drifts, 16 * count, err)
	                           : status;
	status = status == SAND_OK
	             ? sand_glwork_download(work, SAND_BIND_SPREAD_TRIANGLES, 0, points->triangles, 4 * count, err)
	             : status;
	return status == SAND_OK ? sand_gpu_check(gpu, err) : status;
}

SandStatus sand_glspread_settle(SandGlSpreadWork *spread, SandGlPoints *points, int sweep_limit, float *lacking_out,
                                SandError *err)
{
	spread->points = points;
	spread->sweep_limit = sweep_limit;
	SandStatus status = sand_gpu_run(spread->work.gpu, settle_job, spread, err);
	points->is_changed = status != SAND_OK;
	*lacking_out = spread->control.lacking;
	return status;
}

// ---------------------------------------------------------------------------------------------- for the host

static SandStatus lists_job(SandGpu *gpu, void *user, SandError *err)
{
	SandGlSpreadWork *spread = user;
	int64_t count = spread->list_count, row = 4 * (int64_t)spread->desc.capacity;
	SandStatus status = sand_glwork_download(&spread->work, SAND_BIND_SPREAD_COUNTS, 0, spread->counts, 4 * count, err);
	for (int i = 0; i < SAND_SPREAD_LIST && status == SAND_OK; ++i)
	{
		status = sand_glwork_download(&spread->work, SAND_BIND_SPREAD_LISTS, i * row, spread->flat + i * count,
		                              4 * count, err);
	}
	return status == SAND_OK ? sand_gpu_check(gpu, err) : status;
}

SandStatus sand_glspread_lists(SandGlSpreadWork *spread, int count, int32_t (*lists_out)[SAND_GLSPREAD_LIST],
                               int32_t *counts_out, SandError *err)
{
	size_t capacity = (size_t)spread->desc.capacity;
	if (spread->flat == NULL)
	{
		spread->flat = sand_alloc(capacity * SAND_SPREAD_LIST, sizeof(int32_t));
	}
	if (spread->flat == NULL)
	{
		return sand_fail_memory(err, capacity * SAND_SPREAD_LIST * sizeof(int32_t), "neighbour lists");
	}
	spread->list_count = count;
	spread->counts = counts_out;
	SandStatus status = sand_gpu_run(spread->work.gpu, lists_job, spread, err);
	for (size_t i = 0; i < (size_t)count && status == SAND_OK; ++i)
	{
		for (size_t k = 0; k < (size_t)counts_out[i]; ++k)
		{
			lists_out[i][k] = spread->flat[k * (size_t)count + i];
		}
	}
	return status;
}

static SandStatus rooms_job(SandGpu *gpu, void *user, SandError *err)
{
	SandGlSpreadWork *spread = user;
	int64_t count = (int64_t)SAND_SPREAD_DIRECTIONS * spread->points->count;
	SandStatus status = take_up(spread, err);
	spread->control.free_square = spread->free_square;
	write_control(spread);
	status = status == SAND_OK ? sand_glwork_run_parts(&spread->work, PASS_ROOMS, 0, count, 1, err) : status;
	status = status == SAND_OK ? sand_glwork_download(&spread->work, SAND_BIND_SPREAD_ROOMS, 0, spread->rooms,
	                                                  (int64_t)sizeof(SandGlRoom) * count, err)
	                           : status;
	return status == SAND_OK ? sand_gpu_check(gpu, err) : status;
}

SandStatus sand_glspread_rooms(SandGlSpreadWork *spread, SandGlPoints *points, float free_square,
                               SandGlPlace *rooms_out, SandError *err)
{
	spread->points = points;
	spread->free_square = free_square;
	spread->rooms = rooms_out;
	// The lists must be those of the points as they are, also where the host has changed none.
	points->is_changed = true;
	return sand_gpu_run(spread->work.gpu, rooms_job, spread, err);
}
