// glwork: work on a device that comes and goes. Comes in: names of passes, sizes. Goes out: bytes computed.
#include "glwork.h"

#include "layout.h"

#include <stdatomic.h>

#define SUBMISSION_SECONDS 0.02 // a cancel waits for about two of them
#define WAIT_SECONDS 30.0       // more is a device that hangs
#define FIRST_COST 4e-6         // s per invocation, thought of a pass that was not measured yet
#define PART_LIMIT (INT64_C(1) << 26)

enum
{
	PASS_SCAN = SAND_GLWORK_PASSES,
	PASS_SCAN_ADD,
	PASS_RADIX_COUNT,
	PASS_RADIX_MOVE
};

static const SandGlPass sum_passes[4] = {
    {"27_scan.comp", NULL},
    {"27_scan.comp", "#define ADD\n"},
    {"25_radix_count.comp", NULL},
    {"26_radix_move.comp", NULL},
};

SandStatus sand_glwork_open(SandGlWork *work, const SandGlPass *passes, int pass_count, bool has_sums, SandError *err)
{
	const SandGpuDevice *device = sand_gpu_info(work->gpu);
	if (device->limits.binding_count < SAND_GLWORK_BINDINGS || device->limits.block_count < 16)
	{
		return sand_fail(err, SAND_ERROR_GPU,
		                 "%s binds %d storage buffers, %d in one shader, expected %d and 16; use the cpu engine",
		                 device->name, device->limits.binding_count, device->limits.block_count, SAND_GLWORK_BINDINGS);
	}
	for (int i = 0; i < SAND_GLWORK_PASSES + 4; ++i)
	{
		work->costs[i] = FIRST_COST;
	}
	SandStatus status = SAND_OK;
	for (int i = 0; status == SAND_OK && i < pass_count; ++i)
	{
		SandGpuProgramDesc desc = {.name = passes[i].file, .defines = passes[i].defines};
		status = sand_gpu_program_create(work->gpu, &desc, &work->programs[i], err);
	}
	for (int i = 0; status == SAND_OK && has_sums && i < 4; ++i)
	{
		SandGpuProgramDesc desc = {.name = sum_passes[i].file, .defines = sum_passes[i].defines};
		status = sand_gpu_program_create(work->gpu, &desc, &work->programs[PASS_SCAN + i], err);
	}
	return status;
}

void sand_glwork_close(SandGlWork *work)
{
	if (work == NULL)
	{
		return;
	}
	for (int i = 0; i < SAND_GLWORK_BINDINGS; ++i)
	{
		sand_gpu_buffer_destroy(work->gpu, work->buffers[i]);
		work->buffers[i] = (SandGpuBuffer){0};
		work->bytes[i] = 0;
	}
	for (int i = 0; i < SAND_GLWORK_PASSES + 4; ++i)
	{
		sand_gpu_program_destroy(work->gpu, work->programs[i]);
		work->programs[i] = (SandGpuProgram){0};
	}
}

SandStatus sand_glwork_reserve(SandGlWork *work, int binding, int64_t byte_count, const char *what_for, SandError *err)
{
	int64_t bytes = byte_count < 16 ? 16 : (byte_count + 15) / 16 * 16;
	if (work->bytes[binding] >= bytes)
	{
		return SAND_OK;
	}
	const SandGpuDevice *device = sand_gpu_info(work->gpu);
	if (bytes > device->limits.block_bytes)
	{
		return sand_fail(err, SAND_ERROR_GPU_MEMORY,
		                 "%s would take %.1f MiB in one block of %s, which holds at most %.1f MiB; use the cpu engine "
		                 "or fewer of them",
		                 what_for, (double)bytes / 1048576, device->name, (double)device->limits.block_bytes / 1048576);
	}
	sand_gpu_buffer_destroy(work->gpu, work->buffers[binding]);
	work->buffers[binding] = (SandGpuBuffer){0};
	work->bytes[binding] = 0;
	SandStatus status = sand_gpu_buffer_create(work->gpu, bytes, what_for, &work->buffers[binding], err);
	if (status == SAND_OK)
	{
		work->bytes[binding] = bytes;
		sand_gpu_bind(work->gpu, binding, work->buffers[binding], 0, 0);
	}
	return status;
}

SandStatus sand_glwork_fill(SandGlWork *work, int binding, const void *bytes, int64_t byte_count, const char *what_for,
                            SandError *err)
{
	SandStatus status = sand_glwork_reserve(work, binding, byte_count, what_for, err);
	if (status == SAND_OK)
	{
		sand_glwork_upload(work, binding, 0, bytes, byte_count);
	}
	return status;
}

void sand_glwork_upload(SandGlWork *work, int binding, int64_t offset, const void *bytes, int64_t byte_count)
{
	if (byte_count > 0)
	{
		sand_gpu_upload(work->gpu, work->buffers[binding], offset, bytes, byte_count);
	}
}

SandStatus sand_glwork_download(SandGlWork *work, int binding, int64_t offset, void *bytes_out, int64_t byte_count,
                                SandError *err)
{
	work->pending = 0;
	return byte_count > 0 ? sand_gpu_download(work->gpu, work->buffers[binding], offset, bytes_out, byte_count, err)
	                      : SAND_OK;
}

void sand_glwork_swap(SandGlWork *work, int a, int b)
{
	SandGpuBuffer buffer = work->buffers[a];
	int64_t bytes = work->bytes[a];
	work->buffers[a] = work->buffers[b];
	work->bytes[a] = work->bytes[b];
	work->buffers[b] = buffer;
	work->bytes[b] = bytes;
	sand_gpu_bind(work->gpu, a, work->buffers[a], 0, 0);
	sand_gpu_bind(work->gpu, b, work->buffers[b], 0, 0);
}

void sand_glwork_run(SandGlWork *work, int pass, int64_t count, const uint32_t *numbers, int number_count)
{
	for (int i = 0; i < number_count; ++i)
	{
		sand_gpu_set_uint(work->gpu, work->programs[pass], i, numbers[i]);
	}
	work->began = work->pending > 0 ? work->began : sand_ticks();
	sand_gpu_timer_start(work->gpu, pass);
	sand_gpu_dispatch(work->gpu, work->programs[pass], count);
	sand_gpu_timer_stop(work->gpu);
	sand_gpu_barrier(work->gpu);
}

SandStatus sand_glwork_go_on(const SandGlWork *work, SandError *err)
{
	bool is_cancelled = work->cancel != NULL && atomic_load(&work->cancel->is_raised) != 0;
	return is_cancelled ? sand_fail(err, SAND_CANCELLED, "Cancelled while the device was at work") : SAND_OK;
}

SandStatus sand_glwork_pace(SandGlWork *work, int pass, int64_t invocation_count, SandError *err)
{
	double share = (double)invocation_count * work->costs[pass];
	work->pending += share;
	if (work->pending < SUBMISSION_SECONDS)
	{
		return SAND_OK;
	}
	SandGpuFence fence = {0};
	bool is_done = false;
	SandStatus status = sand_gpu_fence_create(work->gpu, &fence, err);
	status = status == SAND_OK ? sand_gpu_fence_wait(work->gpu, fence, WAIT_SECONDS, &is_done, err) : status;
	sand_gpu_fence_destroy(work->gpu, fence);
	if (status == SAND_OK && !is_done)
	{
		status = sand_fail(err, SAND_ERROR_GPU, "%s did not finish a submission within %g s; use the cpu engine",
		                   sand_gpu_info(work->gpu)->name, WAIT_SECONDS);
	}
	// What was handed over took so many times what was thought. The pass with most of it learns, by a factor of at most
	// four each way: a machine that was busy elsewhere shall not be believed at once.
	double seconds = sand_ticks() - work->began;
	if (2 * share >= work->pending)
	{
		double times = seconds / work->pending;
		times = times < 0.25 ? 0.25 : times > 4 ? 4 : times;
		double cost = work->costs[pass] * times, most = work->costs_most[pass];
		work->costs_most[pass] = most > cost ? most : cost;
		// A pass that finds nothing to do is cheap, and must not be handed all the more the next time.
		work->costs[pass] = cost > 0.25 * most ? cost : 0.25 * most;
	}
	work->pending = 0;
	return status == SAND_OK ? sand_glwork_go_on(work, err) : status;
}

SandStatus sand_glwork_run_parts(SandGlWork *work, int pass, int64_t first, int64_t end, int64_t threads,
                                 SandError *err)
{
	SandStatus status = SAND_OK;
	while (first < end && status == SAND_OK)
	{
		// As many things as the time of a submission allows, in whole groups, and at least one group.
		double room = (SUBMISSION_SECONDS - work->pending) / work->costs[pass] / (double)threads;
		int64_t part = room<64 ? 64 : room>(double) PART_LIMIT ? PART_LIMIT : (int64_t)room / 64 * 64;
		part = part < end - first ? part : end - first;
		sand_glwork_run(work, pass, part * threads, (const uint32_t[2]){(uint32_t)first, (uint32_t)(first + part)}, 2);
		// A little more than the room that it was given, so that a whole part is waited for.
		status = sand_glwork_pace(work, pass, part * threads + 64 * threads, err);
		first += part;
	}
	return status;
}

// ---------------------------------------------------------------------------------------------- running sums

static int levels_of(uint32_t count, uint32_t counts[8], uint32_t firsts[8])
{
	uint32_t next = 0;
	int depth = 0;
	counts[0] = count;
	firsts[0] = 0;
	while (counts[depth] > 1024)
	{
		uint32_t groups = (counts[depth] + 1023) / 1024;
		firsts[depth + 1] = next;
		counts[depth + 1] = groups;
		next += groups;
		++depth;
	}
	return depth + 1;
}

SandStatus sand_glwork_reserve_scan(SandGlWork *work, uint32_t count, SandError *err)
{
	return sand_glwork_reserve(work, SAND_BIND_SCAN_SUMS, 4 * ((int64_t)count / 512 + 64), "Running sums", err);
}

int sand_glwork_scan_groups(uint32_t count, uint32_t groups_out[SAND_GLWORK_SCAN_STEPS])
{
	uint32_t counts[8], firsts[8];
	int depth = levels_of(count, counts, firsts), steps = 0;
	for (int i = 0; i < depth; ++i)
	{
		groups_out[steps++] = (counts[i] + 1023) / 1024;
	}
	for (int i = depth - 2; i >= 0; --i)
	{
		groups_out[steps++] = counts[i + 1];
	}
	return steps;
}

// One dispatch of a scan: of the words, or of the sums of groups.
static void scan_step(SandGlWork *work, int pass, int binding, const uint32_t numbers[3], bool is_first,
                      int64_t group_count, SandGpuBuffer groups, int64_t offset)
{
	sand_gpu_bind(work->gpu, SAND_BIND_SCAN, work->buffers[is_first ? binding : SAND_BIND_SCAN_SUMS], 0, 0);
	if (groups.id == 0)
	{
		sand_glwork_run(work, pass, 256 * group_count, numbers, 3);
		return;
	}
	for (int i = 0; i < 3; ++i)
	{
		sand_gpu_set_uint(work->gpu, work->programs[pass], i, numbers[i]);
	}
	sand_gpu_dispatch_indirect(work->gpu, work->programs[pass], groups, offset);
	sand_gpu_barrier(work->gpu);
}

void sand_glwork_scan_indirect(SandGlWork *work, int binding, uint32_t count, SandGpuBuffer groups, int64_t offset)
{
	uint32_t counts[8], firsts[8] = {0};
	int depth = levels_of(count, counts, firsts);
	uint32_t last = depth > 1 ? firsts[depth - 1] + counts[depth - 1] : 0;
	for (int i = 0; i < depth; ++i, offset += 12)
	{
		const uint32_t numbers[3] = {counts[i], firsts[i], i + 1 < depth ? firsts[i + 1] : last};
		scan_step(work, PASS_SCAN, binding, numbers, i == 0, (counts[i] + 1023) / 1024, groups, offset);
	}
	for (int i = depth - 2; i >= 0; --i, offset += 12)
	{
		const uint32_t numbers[3] = {counts[i], firsts[i], firsts[i + 1]};
		scan_step(work, PASS_SCAN_ADD, binding, numbers, i == 0, counts[i + 1], groups, offset);
	}
	if (work->bytes[SAND_BIND_SCAN] > 0)
	{
		sand_gpu_bind(work->gpu, SAND_BIND_SCAN, work->buffers[SAND_BIND_SCAN], 0, 0);
	}
}

SandStatus sand_glwork_scan(SandGlWork *work, int binding, uint32_t count, SandError *err)
{
	SandStatus status = sand_glwork_reserve_scan(work, count, err);
	if (status == SAND_OK)
	{
		sand_glwork_scan_indirect(work, binding, count, (SandGpuBuffer){0}, 0);
		status = sand_glwork_pace(work, PASS_SCAN, count / 4, err);
	}
	return status;
}

// ---------------------------------------------------------------------------------------------- sorting

SandStatus sand_glwork_sort(SandGlWork *work, uint32_t count, int key_bits, SandError *err)
{
	int64_t groups = ((int64_t)count + 1023) / 1024;
	SandStatus status = sand_glwork_reserve(work, SAND_BIND_SCAN, 4 * 16 * groups, "Counts of digits", err);
	for (int low_bit = 0; status == SAND_OK && low_bit < key_bits && count > 0; low_bit += 4)
	{
		const uint32_t numbers[2] = {count, (uint32_t)low_bit};
		sand_glwork_run(work, PASS_RADIX_COUNT, 64 * groups, numbers, 2);
		status = sand_glwork_scan(work, SAND_BIND_SCAN, (uint32_t)(16 * groups), err);
		if (status == SAND_OK)
		{
			sand_glwork_run(work, PASS_RADIX_MOVE, 64 * groups, numbers, 2);
			sand_glwork_swap(work, SAND_BIND_KEYS, SAND_BIND_KEYS_SPARE);
			status = sand_glwork_pace(work, PASS_RADIX_MOVE, count / 16, err);
		}
	}
	return status;
}
