// glfield: the bricks of a distance field filled by a device. Comes in: SandSurface, a grid. Goes out: pairs of brick
// and triangle, values of nodes.
//
// Passes 70 to 75: pairs are counted, written and sorted; the pairs of a batch of bricks become views; nodes take the
// nearest triangle; signs go around inside a brick; what nobody knows is asked of the tree; values go home.
#include "glfield.h"

#include "glsurface.h"
#include "layout.h"

#include <string.h>

#define BRICK_NODES 512
#define VIEW_BYTES 144
#define BATCH_SECONDS 0.04 // that the bricks of a batch take together
#define BATCH_BRICKS 16384 // at most
#define FIRST_BRICKS 64    // of the first batch
#define BATCH_PAIRS 262144 // of a batch, at most; of one brick, in one part

typedef enum Pass
{
	PASS_REACHES,
	PASS_REACHES_WRITE,
	PASS_VIEWS,
	PASS_DISTANCES,
	PASS_SIGNS,
	PASS_SIDES,
	PASS_VALUES,
	PASS_COUNT
} Pass;

static const SandGlPass passes[PASS_COUNT] = {
    [PASS_REACHES] = {"70_reaches.comp", NULL}, [PASS_REACHES_WRITE] = {"70_reaches.comp", "#define WRITE\n"},
    [PASS_VIEWS] = {"71_views.comp", NULL},     [PASS_DISTANCES] = {"72_distances.comp", NULL},
    [PASS_SIGNS] = {"73_signs.comp", NULL},     [PASS_SIDES] = {"74_sides.comp", NULL},
    [PASS_VALUES] = {"75_values.comp", NULL},
};

struct SandGlFieldWork
{
	SandGlWork work;
	SandGlFieldDesc desc;
	SandPool *pool;
	int64_t pair_count;
	uint32_t *reaches; // per triangle
	// The call under way.
	int key_bits;
	uint64_t *pairs_out;
	const uint32_t *keys;
	const int32_t *starts;
	const uint64_t *pairs;
	int brick_count;
	float *values;
	// Of a batch, on the host.
	uint32_t (*records)[2], (*bricks)[2];
	int32_t *codes;
	int record_room, brick_room;
};

static int64_t triangles_of(const SandGlFieldWork *field)
{
	return sand_surface_mesh(field->desc.surface)->triangle_count;
}

static SandStatus open_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)gpu;
	SandGlFieldWork *field = user;
	const SandGlFieldDesc *desc = &field->desc;
	SandStatus status = sand_glwork_open(&field->work, passes, PASS_COUNT, true, err);
	status = status == SAND_OK
	             ? sand_glsurface_load(&field->work, desc->surface, SAND_GLSURFACE_NORMALS | SAND_GLSURFACE_DIPOLES,
	                                   desc->doubt, field->pool, err)
	             : status;
	SandGlField head = {.inverse_voxel = desc->inverse_voxel,
	                    .reach = desc->band,
	                    .voxel = (double)desc->voxel,
	                    .band = (float)desc->band,
	                    .voxel_float = desc->voxel,
	                    .triangle_count = (int32_t)triangles_of(field),
	                    .is_clean = sand_surface_is_clean(desc->surface)};
	memcpy(head.origin, desc->origin, sizeof(head.origin));
	memcpy(head.bricks, desc->bricks, sizeof(head.bricks));
	return status == SAND_OK ? sand_glwork_fill(&field->work, SAND_BIND_FIELD, &head, sizeof(head), "The grid", err)
	                         : status;
}

static SandStatus close_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)gpu;
	(void)err;
	sand_glwork_close(user);
	return SAND_OK;
}

SandStatus sand_glfield_create(const SandGlFieldDesc *desc, SandPool *pool, SandGlFieldWork **work_out, SandError *err)
{
	*work_out = NULL;
	SandGlFieldWork *field = sand_alloc(1, sizeof(*field));
	if (field == NULL)
	{
		return sand_fail_memory(err, sizeof(*field), "a distance field on the device");
	}
	field->desc = *desc;
	field->pool = pool;
	field->work.gpu = desc->gpu;
	field->work.cancel = desc->cancel;
	SandStatus status = sand_gpu_run(desc->gpu, open_job, field, err);
	if (status != SAND_OK)
	{
		sand_glfield_destroy(field);
		return status;
	}
	*work_out = field;
	return SAND_OK;
}

void sand_glfield_destroy(SandGlFieldWork *field)
{
	if (field != NULL)
	{
		// After a loss no job is run, and nothing is left to destroy.
		(void)sand_gpu_run(field->work.gpu, close_job, &field->work, NULL);
		sand_free(field->reaches);
		sand_free(field->records);
		sand_free(field->bricks);
		sand_free(field->codes);
		sand_free(field);
	}
}

// ---------------------------------------------------------------------------------------------- pairs

static SandStatus count_job(SandGpu *gpu, void *user, SandError *err)
{
	SandGlFieldWork *field = user;
	int64_t count = triangles_of(field);
	SandStatus status = sand_glwork_reserve(&field->work, SAND_BIND_FIELD_REACHES, 4 * (count + 1), "Counts", err);
	status = status == SAND_OK ? sand_glwork_run_parts(&field->work, PASS_REACHES, 0, count, 1, err) : status;
	status = status == SAND_OK
	             ? sand_glwork_download(&field->work, SAND_BIND_FIELD_REACHES, 0, field->reaches, 4 * count, err)
	             : status;
	return status == SAND_OK ? sand_gpu_check(gpu, err) : status;
}

SandStatus sand_glfield_count(SandGlFieldWork *field, int64_t *count_out, SandError *err)
{
	size_t count = (size_t)triangles_of(field);
	sand_free(field->reaches);
	field->reaches = sand_alloc(count, sizeof(uint32_t));
	if (field->reaches == NULL)
	{
		return sand_fail_memory(err, count * sizeof(uint32_t), "counts of bricks");
	}
	SandStatus status = sand_gpu_run(field->work.gpu, count_job, field, err);
	// Summed here, in 64 bits: more pairs than 32 bits count are refused, not wrapped.
	field->pair_count = 0;
	for (size_t i = 0; i < count && status == SAND_OK; ++i)
	{
		field->pair_count += field->reaches[i];
	}
	*count_out = field->pair_count;
	return status;
}

int64_t sand_glfield_pair_limit(const SandGlFieldWork *field)
{
	int64_t limit = sand_gpu_info(field->work.gpu)->limits.block_bytes / 8;
	return limit < INT32_MAX / 2 ? limit : INT32_MAX / 2;
}

static SandStatus list_job(SandGpu *gpu, void *user, SandError *err)
{
	SandGlFieldWork *field = user;
	SandGlWork *work = &field->work;
	int64_t triangles = triangles_of(field), count = field->pair_count;
	SandStatus status = sand_glwork_reserve(work, SAND_BIND_KEYS, 8 * count, "Pairs of triangle and brick", err);
	status = status == SAND_OK
	             ? sand_glwork_reserve(work, SAND_BIND_KEYS_SPARE, 8 * count, "Pairs of triangle and brick", err)
	             : status;
	status = status == SAND_OK ? sand_glwork_scan(work, SAND_BIND_FIELD_REACHES, (uint32_t)triangles, err) : status;
	status = status == SAND_OK ? sand_glwork_run_parts(work, PASS_REACHES_WRITE, 0, triangles, 1, err) : status;
	status = status == SAND_OK ? sand_glwork_sort(work, (uint32_t)count, field->key_bits, err) : status;
	status =
	    status == SAND_OK ? sand_glwork_download(work, SAND_BIND_KEYS, 0, field->pairs_out, 8 * count, err) : status;
	return status == SAND_OK ? sand_gpu_check(gpu, err) : status;
}

SandStatus sand_glfield_list(SandGlFieldWork *field, int64_t count, int key_bits, uint64_t *pairs_out, SandError *err)
{
	if (count != field->pair_count || count > sand_glfield_pair_limit(field))
	{
		return sand_fail(err, SAND_ERROR_GPU_MEMORY,
		                 "A distance field has %lld pairs of triangle and brick, expected at most %lld; use the cpu "
		                 "engine or a larger voxel",
		                 (long long)count, (long long)sand_glfield_pair_limit(field));
	}
	field->key_bits = key_bits;
	field->pairs_out = pairs_out;
	SandStatus status = sand_gpu_run(field->work.gpu, list_job, field, err);
	// The device has the brick in the first word, which is the lower half here.
	for (int64_t i = 0; i < count && status == SAND_OK; ++i)
	{
		pairs_out[i] = pairs_out[i] << 32 | pairs_out[i] >> 32;
	}
	return status;
}

// ---------------------------------------------------------------------------------------------- bricks

// How many bricks from `first` on go into the batch: as many as wanted, but no more pairs than fit, and at least one.
static int fitting(const SandGlFieldWork *field, int first, int wanted)
{
	int end = first + 1, last = field->brick_count < first + wanted ? field->brick_count : first + wanted;
	while (end < last && field->starts[end + 1] - field->starts[first] <= BATCH_PAIRS)
	{
		++end;
	}
	return end - first;
}

static SandStatus make_room(SandGlFieldWork *field, SandError *err)
{
	int64_t bricks = field->brick_count < BATCH_BRICKS ? field->brick_count : BATCH_BRICKS;
	int64_t limit = sand_gpu_info(field->work.gpu)->limits.block_bytes;
	int64_t all = field->starts[field->brick_count], pairs = all < BATCH_PAIRS ? all : BATCH_PAIRS;
	bricks = bricks < limit / (4 * BRICK_NODES) - 1 ? bricks : limit / (4 * BRICK_NODES) - 1;
	pairs = pairs < limit / VIEW_BYTES ? pairs : limit / VIEW_BYTES;
	field->brick_room = (int)bricks;
	field->record_room = (int)pairs;
	field->records = sand_alloc((size_t)pairs, sizeof(field->records[0]));
	field->bricks = sand_alloc((size_t)bricks + 1, sizeof(field->bricks[0]));
	if (field->records == NULL || field->bricks == NULL)
	{
		return sand_fail_memory(err, (size_t)(pairs + bricks) * 8, "a batch of bricks");
	}
	const struct
	{
		int binding;
		int64_t bytes;
		const char *what_for;
	} wanted[] = {
	    {SAND_BIND_FIELD_RECORDS, 8 * pairs, "Pairs of a batch"},
	    {SAND_BIND_FIELD_VIEWS, VIEW_BYTES * pairs, "Views of a batch"},
	    {SAND_BIND_FIELD_BRICKS, 8 * (bricks + 1), "Bricks of a batch"},
	    {SAND_BIND_FIELD_SQUARES, 4 * BRICK_NODES * bricks, "Nodes of a batch"},
	    {SAND_BIND_FIELD_HEIGHTS, 4 * BRICK_NODES * bricks, "Nodes of a batch"},
	    {SAND_BIND_FIELD_CODES, 4 * BRICK_NODES * bricks, "Nodes of a batch"},
	    {SAND_BIND_FIELD_ASKED, 8 + 4 * BRICK_NODES * bricks, "Nodes of a batch"},
	};
	SandStatus status = SAND_OK;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && status == SAND_OK; ++i)
	{
		status = sand_glwork_reserve(&field->work, wanted[i].binding, wanted[i].bytes, wanted[i].what_for, err);
	}
	return status;
}

// Views and distances of pairs part .. part_end of all, for the bricks of the batch.
static SandStatus take_part(SandGlFieldWork *field, int first, int count, int part, int part_end, SandError *err)
{
	SandGlWork *work = &field->work;
	int records = part_end - part, base = field->starts[first];
	for (int i = 0; i < records; ++i)
	{
		uint64_t pair = field->pairs[part + i];
		field->records[i][0] = (uint32_t)pair;
		field->records[i][1] = (uint32_t)(pair >> 32);
	}
	sand_glwork_upload(work, SAND_BIND_FIELD_RECORDS, 0, field->records, 8 * (int64_t)records);
	sand_gpu_barrier(work->gpu);
	sand_glwork_run(work, PASS_VIEWS, records, (const uint32_t[1]){(uint32_t)records}, 1);
	SandStatus status = sand_glwork_pace(work, PASS_VIEWS, records, err);
	if (status == SAND_OK)
	{
		const uint32_t numbers[4] = {(uint32_t)(part - base), (uint32_t)(part_end - base), (uint32_t)count, 0};
		sand_glwork_run(work, PASS_DISTANCES, (int64_t)BRICK_NODES * count, numbers, 4);
		status = sand_glwork_pace(work, PASS_DISTANCES, (int64_t)BRICK_NODES * count, err);
	}
	return status;
}

// Turns the nodes that hang on one that the device was not sure of.
static SandStatus judge_unsure(SandGlFieldWork *field, int first, int count, SandError *err)
{
	size_t node_count = (size_t)count * BRICK_NODES;
	if (field->codes == NULL)
	{
		field->codes = sand_alloc((size_t)field->brick_room * BRICK_NODES, sizeof(int32_t));
	}
	if (field->codes == NULL)
	{
		return sand_fail_memory(err, node_count * sizeof(int32_t), "the sides of nodes");
	}
	SandStatus status = sand_glwork_download(&field->work, SAND_BIND_FIELD_CODES, 0, field->codes,
	                                         (int64_t)(node_count * sizeof(int32_t)), err);
	for (size_t at = 0; at < node_count && status == SAND_OK; ++at)
	{
		if (field->codes[at] != SAND_SIDE_UNSURE)
		{
			continue;
		}
		const SandGlFieldDesc *desc = &field->desc;
		size_t brick = at / BRICK_NODES, node = at % BRICK_NODES;
		uint32_t key = field->keys[(size_t)first + brick], columns = (uint32_t)desc->bricks[0],
		         rows = (uint32_t)desc->bricks[1];
		const uint32_t along[3] = {key % columns, key / columns % rows, key / columns / rows};
		const size_t inner[3] = {node % 8, node / 8 % 8, node / 64};
		double place[3];
		for (int k = 0; k < 3; ++k)
		{
			place[k] = desc->origin[k] + (double)desc->voxel * (8 * (double)along[k] + (double)inner[k]);
		}
		if (!sand_surface_is_inside(desc->surface, place))
		{
			continue;
		}
		for (size_t i = brick * BRICK_NODES; i < (brick + 1) * BRICK_NODES; ++i)
		{
			float *value = &field->values[(size_t)first * BRICK_NODES + i];
			bool hangs = i == at || field->codes[i] == SAND_SIDE_OF + (int32_t)node;
			*value = hangs && *value < (float)desc->band * desc->voxel ? -*value : *value;
		}
	}
	return status;
}

static SandStatus fill_batch(SandGlFieldWork *field, int first, int count, SandError *err)
{
	SandGlWork *work = &field->work;
	int base = field->starts[first], end = field->starts[first + count];
	int64_t node_bytes = 4 * BRICK_NODES * (int64_t)count;
	for (int i = 0; i <= count; ++i)
	{
		field->bricks[i][0] = (uint32_t)(field->starts[first + i] - base);
		field->bricks[i][1] = i < count ? field->keys[first + i] : 0;
	}
	sand_glwork_upload(work, SAND_BIND_FIELD_BRICKS, 0, field->bricks, 8 * ((int64_t)count + 1));
	sand_gpu_fill(work->gpu, work->buffers[SAND_BIND_FIELD_SQUARES], 0, node_bytes, UINT32_C(0x7f800000));
	sand_gpu_fill(work->gpu, work->buffers[SAND_BIND_FIELD_HEIGHTS], 0, node_bytes, 0);
	sand_gpu_fill(work->gpu, work->buffers[SAND_BIND_FIELD_ASKED], 0, 8, 0);
	SandStatus status = SAND_OK;
	for (int part = base; part < end && status == SAND_OK; part += field->record_room)
	{
		int part_end = end - part < field->record_room ? end : part + field->record_room;
		status = take_part(field, first, count, part, part_end, err);
	}
	uint32_t asked[2] = {0};
	if (status == SAND_OK)
	{
		sand_glwork_run(work, PASS_SIGNS, 64 * (int64_t)count, (const uint32_t[1]){(uint32_t)count}, 1);
		status = sand_glwork_pace(work, PASS_SIGNS, 64 * (int64_t)count, err);
	}
	status = status == SAND_OK ? sand_glwork_download(work, SAND_BIND_FIELD_ASKED, 0, asked, 8, err) : status;
	status = status == SAND_OK ? sand_glwork_run_parts(work, PASS_SIDES, 0, asked[0], 1, err) : status;
	if (status == SAND_OK)
	{
		sand_glwork_run(work, PASS_VALUES, BRICK_NODES * (int64_t)count,
		                (const uint32_t[1]){BRICK_NODES * (uint32_t)count}, 1);
		status = sand_glwork_download(work, SAND_BIND_FIELD_SQUARES, 0, field->values + (size_t)first * BRICK_NODES,
		                              node_bytes, err);
	}
	status = status == SAND_OK ? sand_glwork_download(work, SAND_BIND_FIELD_ASKED, 0, asked, 8, err) : status;
	status = status == SAND_OK && asked[1] > 0 ? judge_unsure(field, first, count, err) : status;
	return status == SAND_OK ? sand_gpu_check(work->gpu, err) : status;
}

static SandStatus fill_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)gpu;
	SandGlFieldWork *field = user;
	SandStatus status = make_room(field, err);
	int wanted = FIRST_BRICKS;
	for (int first = 0; first < field->brick_count && status == SAND_OK;)
	{
		wanted = wanted < field->brick_room ? wanted : field->brick_room;
		int count = fitting(field, first, wanted);
		double start = sand_ticks();
		status = fill_batch(field, first, count, err);
		// The next batch takes about BATCH_SECONDS.
		double share = BATCH_SECONDS / (sand_ticks() - start + 1e-6);
		share = share < 0.25 ? 0.25 : share > 2 ? 2 : share;
		wanted = 1 + (int)(share * (double)wanted);
		first += count;
		// Cancels are looked for at every wait, and here for batches that needed none.
		status = status == SAND_OK ? sand_glwork_go_on(&field->work, err) : status;
	}
	return status;
}

SandStatus sand_glfield_fill(SandGlFieldWork *field, const uint32_t *keys, const int32_t *starts, const uint64_t *pairs,
                             int brick_count, float *values_out, SandError *err)
{
	field->keys = keys;
	field->starts = starts;
	field->pairs = pairs;
	field->brick_count = brick_count;
	field->values = values_out;
	return sand_gpu_run(field->work.gpu, fill_job, field, err);
}
