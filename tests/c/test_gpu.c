// Tests of gpu: the device's thread, its objects, its limits, its failures. Run on the software device where there is
// one, so that they run everywhere alike; skipped, and counted as such, where there is no device at all.
#include "gpu.h"
#include "layout.h"
#include "test.h"

#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <dlfcn.h>
#include <pthread.h>

static SandGpu *make_gpu(const SandGpuDesc *desc)
{
	SandError err = {0};
	SandGpu *gpu = NULL;
	CHECK_STATUS(sand_gpu_create(desc, &gpu, &err), SAND_OK, &err);
	return gpu;
}

/// Ends a test: no GL error and no object is left behind.
static void close_gpu(SandGpu *gpu)
{
	CHECK_INT(sand_gpu_error_count(gpu), 0);
	SandGpuCounts counts = sand_gpu_counts(gpu);
	CHECK_INT(counts.buffers + counts.textures + counts.programs + counts.fences + counts.reads + counts.targets, 0);
	CHECK_INT(counts.bytes, 0);
	sand_gpu_destroy(gpu);
}

/// A test as a job: make the device, run, check that it went well and left nothing.
static void run_on_gpu(SandGpuJob *job, void *user)
{
	SandGpu *gpu = make_gpu(NULL);
	if (gpu != NULL)
	{
		SandError err = {0};
		CHECK_STATUS(sand_gpu_run(gpu, job, user, &err), SAND_OK, &err);
		close_gpu(gpu);
	}
}

static SandStatus self_test_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	return sand_gpu_self_test(gpu, err);
}

static void device_computes_what_the_processor_does(void)
{
	run_on_gpu(self_test_job, NULL);
}

static void devices_come_and_go(void)
{
	size_t bytes = sand_alloc_bytes();
	for (int i = 0; i < 50; ++i)
	{
		run_on_gpu(self_test_job, NULL);
	}
	CHECK_INT(sand_alloc_bytes(), bytes);
	sand_gpu_destroy(NULL);
}

static void the_list_names_the_device_that_is_made(void)
{
	SandGpuDevice devices[SAND_GPU_DEVICE_LIMIT];
	int count = 0;
	SandError err = {0};
	CHECK_STATUS(sand_gpu_list(NULL, devices, SAND_GPU_DEVICE_LIMIT, &count, &err), SAND_OK, &err);
	CHECK(count >= 1);
	int usable_count = 0;
	for (int i = 0; i < count; ++i)
	{
		CHECK_INT(devices[i].number, i + 1);
		CHECK(devices[i].is_usable == (devices[i].reason[0] == '\0'));
		if (devices[i].is_usable)
		{
			++usable_count;
			SandGpu *gpu = make_gpu(&(SandGpuDesc){.device = i + 1});
			if (gpu != NULL)
			{
				CHECK(strcmp(sand_gpu_info(gpu)->name, devices[i].name) == 0);
				CHECK(strcmp(sand_gpu_info(gpu)->platform, devices[i].platform) == 0);
				CHECK_INT(sand_gpu_info(gpu)->limits.block_bytes, devices[i].limits.block_bytes);
				CHECK(devices[i].gl_major * 10 + devices[i].gl_minor >= 43);
				CHECK(devices[i].limits.block_count >= 8 && devices[i].limits.group_count >= SAND_GROUP_LIMIT);
				CHECK_STATUS(sand_gpu_run(gpu, self_test_job, NULL, &err), SAND_OK, &err);
				close_gpu(gpu);
			}
		}
	}
	CHECK(usable_count >= 1);
	CHECK_STATUS(sand_gpu_list(NULL, devices, 1, &count, &err), SAND_OK, &err);
	CHECK_INT(count, 1);
}

static bool is_surfaceless(const SandGpuDevice *device)
{
	return strcmp(device->platform, "EGL surfaceless") == 0;
}

// Blender draws there when it has no window, and Mesa 22.3.6 does not bear a second thread in contexts of one display.
static void the_display_that_blender_may_hold_is_the_last_resort(void)
{
	SandGpuDevice devices[SAND_GPU_DEVICE_LIMIT];
	int count = 0;
	bool has_device = false;
	SandError err = {0};
	CHECK_STATUS(sand_gpu_list(NULL, devices, SAND_GPU_DEVICE_LIMIT, &count, &err), SAND_OK, &err);
	for (int i = 0; i < count; ++i)
	{
		CHECK(!(has_device && is_surfaceless(&devices[i])));
		has_device = has_device || devices[i].is_usable;
	}
	if (count == 0 || is_surfaceless(&devices[0]))
	{
		SKIP("the_display_that_blender_may_hold_is_the_last_resort", "EGL lists no device here");
		return;
	}
	SandGpu *gpu = NULL;
	CHECK_STATUS(sand_gpu_create(&(SandGpuDesc){.device = count + 1}, &gpu, &err), SAND_ERROR_GPU, &err);
	gpu = make_gpu(NULL);
	CHECK(gpu != NULL && !is_surfaceless(sand_gpu_info(gpu)));
	close_gpu(gpu);
	// When no device gives a context, it serves.
	SandGpuFaults faults = {.context = 1};
	int devices_only = count;
	CHECK_STATUS(sand_gpu_list(&(SandGpuDesc){.faults = &faults}, devices, SAND_GPU_DEVICE_LIMIT, &count, &err),
	             SAND_OK, &err);
	if (devices_only == 1 && CHECK_INT(count, 2))
	{
		CHECK(!devices[0].is_usable && devices[1].is_usable && is_surfaceless(&devices[1]));
		faults.context = 1;
		gpu = make_gpu(&(SandGpuDesc){.faults = &faults});
		CHECK(gpu != NULL && is_surfaceless(sand_gpu_info(gpu)));
		close_gpu(gpu);
	}
}

static void *live_and_die(void *argument)
{
	int *failed_count = argument;
	for (int i = 0; i < 3; ++i)
	{
		SandGpu *gpu = NULL;
		SandError err = {0};
		SandStatus status = sand_gpu_create(NULL, &gpu, &err);
		for (int round = 0; status == SAND_OK && round < 3; ++round)
		{
			status = sand_gpu_run(gpu, self_test_job, NULL, &err);
		}
		*failed_count += status != SAND_OK || sand_gpu_error_count(gpu) != 0;
		sand_gpu_destroy(gpu);
	}
	return NULL;
}

static void devices_live_side_by_side(void)
{
	enum
	{
		THREAD_COUNT = 4
	};
	pthread_t threads[THREAD_COUNT];
	int failed_counts[THREAD_COUNT] = {0};
	for (int i = 0; i < THREAD_COUNT; ++i)
	{
		CHECK_INT(pthread_create(&threads[i], NULL, live_and_die, &failed_counts[i]), 0);
	}
	for (int i = 0; i < THREAD_COUNT; ++i)
	{
		pthread_join(threads[i], NULL);
		CHECK_INT(failed_counts[i], 0);
	}
}

typedef struct Shared
{
	SandGpu *gpu;
	int job_count; // plain: only the device's thread counts
} Shared;

static SandStatus count_job(SandGpu *gpu, void *user, SandError *err)
{
	Shared *shared = user;
	shared->job_count++;
	return sand_gpu_poll(gpu, err);
}

static SandStatus nested_job(SandGpu *gpu, void *user, SandError *err)
{
	return sand_gpu_run(gpu, count_job, user, err);
}

static void *call_often(void *argument)
{
	Shared *shared = argument;
	SandError err = {0};
	for (int i = 0; i < 100; ++i)
	{
		(void)sand_gpu_run(shared->gpu, i % 2 ? count_job : nested_job, shared, &err);
	}
	return NULL;
}

static void callers_are_served_one_after_the_other(void)
{
	Shared shared = {.gpu = make_gpu(NULL)};
	if (shared.gpu == NULL)
	{
		return;
	}
	pthread_t threads[4];
	for (int i = 0; i < 4; ++i)
	{
		CHECK_INT(pthread_create(&threads[i], NULL, call_often, &shared), 0);
	}
	for (int i = 0; i < 4; ++i)
	{
		pthread_join(threads[i], NULL);
	}
	CHECK_INT(shared.job_count, 400);
	close_gpu(shared.gpu);
}

/// A context of somebody else, current on this thread, as Blender's is on its own.
static void the_callers_context_stays_current(void)
{
	void *library = dlopen("libEGL.so.1", RTLD_NOW);
	CHECK(library != NULL);
	if (library == NULL)
	{
		return;
	}
	PFNEGLGETPROCADDRESSPROC get_proc;
	void *symbol = dlsym(library, "eglGetProcAddress");
	memcpy(&get_proc, &symbol, sizeof symbol);
	PFNEGLGETPLATFORMDISPLAYEXTPROC get_display = (PFNEGLGETPLATFORMDISPLAYEXTPROC)get_proc("eglGetPlatformDisplayEXT");
	PFNEGLINITIALIZEPROC initialize = (PFNEGLINITIALIZEPROC)get_proc("eglInitialize");
	PFNEGLBINDAPIPROC bind_api = (PFNEGLBINDAPIPROC)get_proc("eglBindAPI");
	PFNEGLCREATECONTEXTPROC create = (PFNEGLCREATECONTEXTPROC)get_proc("eglCreateContext");
	PFNEGLMAKECURRENTPROC make_current = (PFNEGLMAKECURRENTPROC)get_proc("eglMakeCurrent");
	PFNEGLGETCURRENTCONTEXTPROC current = (PFNEGLGETCURRENTCONTEXTPROC)get_proc("eglGetCurrentContext");
	PFNEGLDESTROYCONTEXTPROC destroy = (PFNEGLDESTROYCONTEXTPROC)get_proc("eglDestroyContext");
	EGLDisplay display = get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
	EGLContext context = EGL_NO_CONTEXT;
	if (CHECK(initialize(display, NULL, NULL) && bind_api(EGL_OPENGL_API)))
	{
		context = create(display, NULL, EGL_NO_CONTEXT, NULL);
	}
	if (CHECK(context != EGL_NO_CONTEXT && make_current(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context)))
	{
		// On every device; none of them shares the display of this context.
		SandGpuDevice devices[SAND_GPU_DEVICE_LIMIT];
		int count = 0;
		CHECK_STATUS(sand_gpu_list(NULL, devices, SAND_GPU_DEVICE_LIMIT, &count, NULL), SAND_OK, NULL);
		for (int i = 0; i < count; ++i)
		{
			SandGpu *gpu = devices[i].is_usable ? make_gpu(&(SandGpuDesc){.device = i + 1}) : NULL;
			if (gpu != NULL)
			{
				CHECK(current() == context);
				CHECK_STATUS(sand_gpu_run(gpu, self_test_job, NULL, NULL), SAND_OK, NULL);
				CHECK(current() == context);
				close_gpu(gpu);
			}
			CHECK(current() == context);
		}
		// Still usable, not only current.
		CHECK(make_current(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT));
		CHECK(make_current(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context));
		CHECK(make_current(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT));
	}
	destroy(display, context);
	dlclose(library);
}

static SandStatus buffer_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	SandGpuBuffer a = {0}, b = {0}, bad = {0};
	uint32_t words[64], out[64];
	for (uint32_t i = 0; i < 64; ++i)
	{
		words[i] = i * 2654435761u;
	}
	CHECK_STATUS(sand_gpu_buffer_create(gpu, 254, "first", &a, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, 256, "second", &b, err), SAND_OK, err);
	CHECK_INT(sand_gpu_buffer_bytes(gpu, a), 256);
	CHECK_INT(sand_gpu_counts(gpu).buffers, 2);
	CHECK_INT(sand_gpu_counts(gpu).bytes, 512);
	memset(out, 0xff, sizeof out);
	CHECK_STATUS(sand_gpu_download(gpu, a, 0, out, 256, err), SAND_OK, err);
	int wrong_count = 0;
	for (int i = 0; i < 64; ++i)
	{
		wrong_count += out[i] != 0;
	}
	CHECK_INT(wrong_count, 0);
	sand_gpu_upload(gpu, a, 0, words, 256);
	sand_gpu_fill(gpu, b, 0, 128, 7);
	sand_gpu_copy(gpu, a, 64, b, 128, 128);
	sand_gpu_copy(gpu, b, 0, b, 192, 64);
	CHECK_STATUS(sand_gpu_download(gpu, b, 0, out, 256, err), SAND_OK, err);
	for (uint32_t i = 0; i < 64; ++i)
	{
		wrong_count += out[i] != (i < 32 || i >= 48 ? 7 : words[i - 16]);
	}
	CHECK_INT(wrong_count, 0);

	// What is out of range is said with its numbers, what follows is skipped, and the device goes on.
	sand_gpu_upload(gpu, a, 200, words, 57);
	sand_gpu_fill(gpu, a, 0, 256, 9);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "'first'");
	CHECK_CONTAINS(err->message, "257");
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_download(gpu, a, 0, out, 256, err), SAND_OK, err);
	CHECK(memcmp(out, words, 256) == 0);
	CHECK_STATUS(sand_gpu_download(gpu, a, 4, out, 256, err), SAND_ERROR_GPU, err);
	sand_gpu_copy(gpu, a, 0, a, 100, 128);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "verlap");
	sand_gpu_bind(gpu, 0, a, 1, 0);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	sand_gpu_bind(gpu, sand_gpu_info(gpu)->limits.binding_count, a, 0, 0);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);

	// Handles that are gone, or never were.
	SandGpuBuffer old = a;
	sand_gpu_buffer_destroy(gpu, a);
	sand_gpu_buffer_destroy(gpu, a);
	sand_gpu_buffer_destroy(gpu, (SandGpuBuffer){0});
	sand_gpu_buffer_destroy(gpu, (SandGpuBuffer){0xffffffffu});
	CHECK_INT(sand_gpu_buffer_state(gpu, a), SAND_GPU_NONE);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, 16, "third", &a, err), SAND_OK, err);
	CHECK(a.id != old.id);
	sand_gpu_fill(gpu, old, 0, 16, 1);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "does not exist");

	// More than a block: refused with both numbers, and the object is FAILED, not absent.
	int64_t limit = sand_gpu_info(gpu)->limits.block_bytes;
	char number[32];
	snprintf(number, sizeof number, "%lld", (long long)limit);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, limit + 4, "too big", &bad, err), SAND_ERROR_GPU_MEMORY, err);
	CHECK_CONTAINS(err->message, number);
	CHECK_CONTAINS(err->message, "too big");
	CHECK_INT(sand_gpu_buffer_state(gpu, bad), SAND_GPU_FAILED);
	CHECK_INT(sand_gpu_buffer_bytes(gpu, bad), 0);
	sand_gpu_bind(gpu, 0, bad, 0, 0);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "could not be made");
	sand_gpu_buffer_destroy(gpu, bad);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, 0, "nothing", &bad, err), SAND_ERROR_ARGUMENT, err);
	CHECK_INT(bad.id, 0);

	sand_gpu_buffer_destroy(gpu, a);
	sand_gpu_buffer_destroy(gpu, b);
	return SAND_OK;
}

static void buffers_hold_and_refuse(void)
{
	run_on_gpu(buffer_job, NULL);
}

static SandStatus many_objects_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	SandGpuBuffer buffers[200];
	for (int i = 0; i < 200; ++i)
	{
		CHECK_STATUS(sand_gpu_buffer_create(gpu, 4, "small", &buffers[i], err), SAND_OK, err);
		sand_gpu_fill(gpu, buffers[i], 0, 4, (uint32_t)i);
	}
	for (int i = 0; i < 200; ++i)
	{
		uint32_t word = 999;
		CHECK_STATUS(sand_gpu_download(gpu, buffers[i], 0, &word, 4, err), SAND_OK, err);
		CHECK_INT(word, i);
	}
	for (int i = 199; i >= 0; --i)
	{
		sand_gpu_buffer_destroy(gpu, buffers[i]);
	}
	return SAND_OK;
}

static void the_table_of_objects_grows(void)
{
	run_on_gpu(many_objects_job, NULL);
}

static const char *const count_text = "layout(local_size_x = 1) in;\n"
                                      "layout(location = 0) uniform uint count;\n"
                                      "layout(std430, binding = 0) buffer Words { uint words[]; };\n"
                                      "layout(std430, binding = 1) buffer Fold { uint fold[]; };\n"
                                      "void main()\n"
                                      "{\n"
                                      "	uint i = sand_thread();\n"
                                      "	if (i == 0u) { uvec3 f = sand_fold(count); fold[0] = f.x; fold[1] = f.y; "
                                      "fold[2] = f.z; }\n"
                                      "	if (i < count) { words[i] += i + 1u; }\n"
                                      "}\n";

/// Words that are not `times` times their number.
static int count_wrong(SandGpu *gpu, SandGpuBuffer buffer, uint32_t count, uint32_t times, SandError *err)
{
	uint32_t *words = sand_alloc(count, sizeof(*words));
	CHECK_STATUS(sand_gpu_download(gpu, buffer, 0, words, (int64_t)count * 4, err), SAND_OK, err);
	int wrong_count = 0;
	for (uint32_t i = 0; i < count; ++i)
	{
		wrong_count += words[i] != times * (i + 1);
	}
	sand_free(words);
	return wrong_count;
}

static SandStatus fold_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	static const uint32_t counts[] = {1, SAND_GROUP_LIMIT, SAND_GROUP_LIMIT + 1, 2 * SAND_GROUP_LIMIT + 77};
	SandGpuProgram program = {0};
	SandGpuBuffer fold = {0};
	CHECK_STATUS(
	    sand_gpu_program_create(gpu, &(SandGpuProgramDesc){.name = "count", .text = count_text}, &program, err),
	    SAND_OK, err);
	CHECK_INT(sand_gpu_program_group_size(gpu, program), 1);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, 32, "fold", &fold, err), SAND_OK, err);
	for (int i = 0; i < 4; ++i)
	{
		SandGpuBuffer words = {0};
		CHECK_STATUS(sand_gpu_buffer_create(gpu, (int64_t)counts[i] * 4, "words", &words, err), SAND_OK, err);
		sand_gpu_bind(gpu, 0, words, 0, 0);
		sand_gpu_bind(gpu, 1, fold, 0, 0);
		sand_gpu_set_uint(gpu, program, 0, counts[i]);
		sand_gpu_dispatch(gpu, program, counts[i]);
		sand_gpu_barrier(gpu);
		CHECK_INT(count_wrong(gpu, words, counts[i], 1, err), 0);
		// The group counts that the shader has made carry the next dispatch.
		SandGpuBuffer indirect = {0};
		CHECK_STATUS(sand_gpu_buffer_create(gpu, 16, "indirect", &indirect, err), SAND_OK, err);
		sand_gpu_copy(gpu, fold, 0, indirect, 4, 12);
		sand_gpu_dispatch_indirect(gpu, program, indirect, 4);
		sand_gpu_barrier(gpu);
		CHECK_INT(count_wrong(gpu, words, counts[i], 2, err), 0);
		sand_gpu_buffer_destroy(gpu, indirect);
		sand_gpu_buffer_destroy(gpu, words);
	}
	sand_gpu_dispatch(gpu, program, 0);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_OK, err);
	sand_gpu_dispatch(gpu, program, INT64_C(1) << 33);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "8589934592");
	sand_gpu_dispatch_indirect(gpu, program, fold, 24);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	sand_gpu_buffer_destroy(gpu, fold);
	sand_gpu_program_destroy(gpu, program);
	return SAND_OK;
}

static void big_dispatches_are_folded_into_rows(void)
{
	run_on_gpu(fold_job, NULL);
}

static void check_shader_sentence(SandGpu *gpu, const SandGpuProgramDesc *desc, const char *place, const char *words)
{
	SandError err = {0};
	SandGpuProgram program = {0};
	CHECK_STATUS(sand_gpu_program_create(gpu, desc, &program, &err), SAND_ERROR_GPU, &err);
	CHECK_CONTAINS(err.message, place);
	CHECK_CONTAINS(err.message, words);
	CHECK_CONTAINS(err.message, sand_gpu_info(gpu)->name);
	CHECK_INT(sand_gpu_program_state(gpu, program), SAND_GPU_FAILED);
	sand_gpu_dispatch(gpu, program, 1);
	CHECK_STATUS(sand_gpu_check(gpu, &err), SAND_ERROR_GPU, &err);
	CHECK_CONTAINS(err.message, desc->name);
	sand_gpu_program_destroy(gpu, program);
}

static SandStatus shader_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	check_shader_sentence(
	    gpu,
	    &(SandGpuProgramDesc){.name = "55_wrong.comp",
	                          .text = "layout(local_size_x = 1) in;\n\nvoid main() { pebble = 1; }\n"},
	    "at 55_wrong.comp line 3", "pebble");
	check_shader_sentence(gpu,
	                      &(SandGpuProgramDesc){.name = "56_wrong.comp",
	                                            .text = "layout(local_size_x = 1) in;\nvoid main() {}\n",
	                                            .defines = "#define SAND_GROUP_LIMIT (\n"},
	                      "layout.h line", "");
	check_shader_sentence(gpu,
	                      &(SandGpuProgramDesc){.name = "57_wrong.comp",
	                                            .text = "layout(local_size_x = 1) in;\nvoid later();\n"
	                                                    "void main() { later(); }\n"},
	                      "does not link", "later");
	SandGpuProgram program = {0};
	CHECK_STATUS(sand_gpu_program_create(gpu, &(SandGpuProgramDesc){.name = "99_absent.comp"}, &program, err),
	             SAND_ERROR_ARGUMENT, err);
	CHECK_CONTAINS(err->message, "99_absent.comp");
	CHECK_INT(program.id, 0);
	// Every embedded shader that computes compiles here.
	int index = 0;
	for (const char *name; (name = sand_gpu_shader_name(index)) != NULL; ++index)
	{
		if (strstr(name, ".comp") == NULL)
		{
			continue;
		}
		CHECK_STATUS(sand_gpu_program_create(gpu, &(SandGpuProgramDesc){.name = name}, &program, err), SAND_OK, err);
		CHECK(sand_gpu_program_group_size(gpu, program) > 0);
		sand_gpu_program_destroy(gpu, program);
	}
	CHECK(index >= 1);
	CHECK(sand_gpu_shader_name(-1) == NULL);
	return SAND_OK;
}

static void shaders_are_refused_with_file_and_line(void)
{
	run_on_gpu(shader_job, NULL);
}

#define LITERAL(...) #__VA_ARGS__
// The same members for C here and for GLSL in layout_job.
// clang-format off
SAND_STRUCT(TestRow)
	float radius;
	uint32_t count;
	int32_t sign;
	float ends[3];
	uint32_t last;
SAND_STRUCT_END(TestRow)
SAND_OFFSET(TestRow, ends, 12)
SAND_OFFSET(TestRow, last, 24)
SAND_SIZE(TestRow, 28)
// clang-format on

static SandStatus layout_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	static const char text[] = "layout(local_size_x = 1) in;\n" LITERAL(
	    SAND_STRUCT(TestRow) float radius; uint32_t count; int32_t sign; float ends[3]; uint32_t last;
	    SAND_STRUCT_END(TestRow)) "\n"
	                              "layout(std430, binding = 0) buffer Rows { TestRow rows[]; };\n"
	                              "layout(std430, binding = 1) buffer Words { uint words[]; };\n"
	                              "layout(std140, binding = 2) uniform Block { uint32_t first; float second; "
	                              "int32_t third; };\n"
	                              "void main()\n"
	                              "{\n"
	                              "	uint i = sand_thread();\n"
	                              "	if (i >= 3u) { return; }\n"
	                              "	words[8u * i] = floatBitsToUint(rows[i].radius);\n"
	                              "	words[8u * i + 1u] = rows[i].count;\n"
	                              "	words[8u * i + 2u] = uint(rows[i].sign);\n"
	                              "	for (uint k = 0u; k < 3u; ++k) { words[8u * i + 3u + k] = "
	                              "floatBitsToUint(rows[i].ends[k]); }\n"
	                              "	words[8u * i + 6u] = rows[i].last;\n"
	                              "	words[8u * i + 7u] = i == 0u ? first : i == 1u ? floatBitsToUint(second) : "
	                              "uint(third);\n"
	                              "}\n";
	TestRow rows[3];
	for (int i = 0; i < 3; ++i)
	{
		rows[i] = (TestRow){(float)i + 0.1f, 10u + (uint32_t)i, -i, {1.5f * (float)i, -2, 3e-9f}, 4000000000u};
	}
	struct
	{
		uint32_t first;
		float second;
		int32_t third;
	} block = {17, 0.3f, -5};
	uint32_t words[24];
	SandGpuProgram program = {0};
	SandGpuBuffer row_buffer = {0}, word_buffer = {0}, uniform = {0};
	CHECK_STATUS(sand_gpu_program_create(gpu, &(SandGpuProgramDesc){.name = "layout", .text = text}, &program, err),
	             SAND_OK, err);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, sizeof rows, "rows", &row_buffer, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, sizeof words, "words", &word_buffer, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, 16, "block", &uniform, err), SAND_OK, err);
	sand_gpu_upload(gpu, row_buffer, 0, rows, sizeof rows);
	sand_gpu_upload(gpu, uniform, 0, &block, sizeof block);
	sand_gpu_bind(gpu, 0, row_buffer, 0, 0);
	sand_gpu_bind(gpu, 1, word_buffer, 0, 0);
	sand_gpu_bind_uniform(gpu, 2, uniform, 0, 0);
	sand_gpu_dispatch(gpu, program, 3);
	sand_gpu_barrier(gpu);
	CHECK_STATUS(sand_gpu_download(gpu, word_buffer, 0, words, sizeof words, err), SAND_OK, err);
	for (int i = 0; i < 3; ++i)
	{
		CHECK(memcmp(&words[8 * i], &rows[i], sizeof rows[i]) == 0);
		CHECK(memcmp(&words[8 * i + 7], (const char *)&block + 4 * i, 4) == 0);
	}
	sand_gpu_buffer_destroy(gpu, row_buffer);
	sand_gpu_buffer_destroy(gpu, word_buffer);
	sand_gpu_buffer_destroy(gpu, uniform);
	sand_gpu_program_destroy(gpu, program);
	return SAND_OK;
}

static void structs_lie_alike_in_c_and_in_shaders(void)
{
	run_on_gpu(layout_job, NULL);
}

static SandStatus texture_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	static const char text[] =
	    "layout(local_size_x = 32) in;\n"
	    "layout(binding = 3) uniform sampler3D texels;\n"
	    "layout(binding = 5) uniform sampler3D smoothed;\n"
	    "layout(std430, binding = 0) buffer Values { float values[]; };\n"
	    "void main()\n"
	    "{\n"
	    "	int i = int(sand_thread());\n"
	    "	if (i < 60) { values[i] = texelFetch(texels, ivec3(i % 3, i / 3 % 4, i / 12), 0).r; }\n"
	    "	if (i == 60) { values[i] = texture(smoothed, vec3(1.0 / 3.0, 0.125, 0.1)).r; }\n"
	    "	if (i == 61) { values[i] = texture(smoothed, vec3(-4.0, 0.125, 0.1)).r; }\n"
	    "}\n";
	float texels[60], values[62];
	for (int i = 0; i < 60; ++i)
	{
		texels[i] = (float)i * 1.7f - 20.0f;
	}
	SandGpuTextureDesc desc = {.width = 3, .height = 4, .depth = 5, .texels = texels, .label = "field"};
	SandGpuTexture texture = {0}, smoothed = {0}, empty = {0}, bad = {0};
	SandGpuProgram program = {0};
	SandGpuBuffer buffer = {0};
	CHECK_STATUS(sand_gpu_texture_create(gpu, &desc, &texture, err), SAND_OK, err);
	desc.is_linear = true;
	CHECK_STATUS(sand_gpu_texture_create(gpu, &desc, &smoothed, err), SAND_OK, err);
	desc.texels = NULL;
	CHECK_STATUS(sand_gpu_texture_create(gpu, &desc, &empty, err), SAND_OK, err);
	CHECK_INT(sand_gpu_counts(gpu).textures, 3);
	CHECK_INT(sand_gpu_counts(gpu).bytes, 3 * 240);
	CHECK_STATUS(sand_gpu_program_create(gpu, &(SandGpuProgramDesc){.name = "fetch", .text = text}, &program, err),
	             SAND_OK, err);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, sizeof values, "values", &buffer, err), SAND_OK, err);
	sand_gpu_bind_texture(gpu, 3, texture);
	sand_gpu_bind_texture(gpu, 5, smoothed);
	sand_gpu_bind(gpu, 0, buffer, 0, 0);
	sand_gpu_dispatch(gpu, program, 62);
	sand_gpu_barrier(gpu);
	CHECK_STATUS(sand_gpu_download(gpu, buffer, 0, values, sizeof values, err), SAND_OK, err);
	CHECK(memcmp(values, texels, sizeof texels) == 0);
	// Filters of devices work with 8 bits of fraction.
	CHECK_NEAR(values[60], 0.5f * (texels[0] + texels[1]), 1.7 / 256);
	CHECK_NEAR(values[61], texels[0], 0);
	sand_gpu_bind_texture(gpu, 3, empty);
	sand_gpu_dispatch(gpu, program, 62);
	sand_gpu_barrier(gpu);
	CHECK_STATUS(sand_gpu_download(gpu, buffer, 0, values, sizeof values, err), SAND_OK, err);
	CHECK(values[0] == 0 && values[59] == 0);

	desc.width = sand_gpu_info(gpu)->limits.texture_size + 1;
	CHECK_STATUS(sand_gpu_texture_create(gpu, &desc, &bad, err), SAND_ERROR_GPU_MEMORY, err);
	CHECK_CONTAINS(err->message, "'field'");
	CHECK_INT(sand_gpu_texture_state(gpu, bad), SAND_GPU_FAILED);
	sand_gpu_bind_texture(gpu, 0, bad);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	sand_gpu_texture_destroy(gpu, bad);
	desc.width = 0;
	CHECK_STATUS(sand_gpu_texture_create(gpu, &desc, &bad, err), SAND_ERROR_ARGUMENT, err);
	sand_gpu_bind_texture(gpu, 10000, texture);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	sand_gpu_texture_destroy(gpu, texture);
	sand_gpu_texture_destroy(gpu, smoothed);
	sand_gpu_texture_destroy(gpu, empty);
	sand_gpu_buffer_destroy(gpu, buffer);
	sand_gpu_program_destroy(gpu, program);
	return SAND_OK;
}

static void textures_are_fetched_to_the_bit(void)
{
	run_on_gpu(texture_job, NULL);
}

/// What a batch of the engine does: work, a fence, a read-back that is fetched in a later job.
// Drawing

/// Rows of the draws: clip position, point size or unused, and a number.
typedef struct Row
{
	float place[4];
	uint32_t number;
} Row;

static const char *const draw_vertex = "layout(location = 0) in vec4 place;\n"
                                       "layout(location = 1) in uint number;\n"
                                       "layout(location = 0) uniform uint scale;\n"
                                       "flat out uint shade;\n"
                                       "void main()\n"
                                       "{\n"
                                       "	gl_Position = vec4(place.xyz, 1);\n"
                                       "	gl_PointSize = place.w;\n"
                                       "	shade = number * scale;\n"
                                       "}\n";
static const char *const draw_fragment = "flat in uint shade;\n"
                                         "layout(location = 0) out vec4 colour;\n"
                                         "layout(location = 1) out vec4 place;\n"
                                         "void main()\n"
                                         "{\n"
                                         "	colour = vec4(float(shade) / 255.0, 0, 1, 1);\n"
                                         "	place = vec4(gl_FragCoord.xy, gl_FragCoord.z, float(shade));\n"
                                         "}\n";
static const char *const cover_vertex = "void main()\n"
                                        "{\n"
                                        "	gl_Position = vec4(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1, "
                                        "0, 1);\n"
                                        "}\n";
static const char *const compare_fragment =
    "layout(binding = 0) uniform sampler2DShadow depths;\n"
    "layout(binding = 1) uniform sampler2D colours;\n"
    "layout(location = 0) out float lit;\n"
    "void main()\n"
    "{\n"
    "	ivec2 size = textureSize(depths, 0);\n"
    "	lit = texture(depths, vec3(gl_FragCoord.xy / vec2(size), 0.6)) + 2.0 * texelFetch(colours, "
    "ivec2(gl_FragCoord.xy), 0).r;\n"
    "}\n";

enum
{
	DRAW_WIDTH = 16,
	DRAW_HEIGHT = 8,
	DRAW_TEXELS = DRAW_WIDTH * DRAW_HEIGHT
};

static SandStatus draw_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	// A far triangle over everything, a near point of 4 x 4 pixels about the corner between (4, 4) and (3, 3), and a
	// point whose centre is outside.
	static const Row rows[] = {
	    {{-1, -1, 0.8f, 1}, 100},  {{3, -1, 0.8f, 1}, 100},   {{-1, 3, 0.8f, 1}, 100},
	    {{-0.5f, 0, -0.5f, 4}, 7}, {{1.5f, 0, -0.5f, 16}, 9},
	};
	static uint8_t bytes[DRAW_TEXELS][4];
	static float places[DRAW_TEXELS][4], depths[DRAW_TEXELS], lit[DRAW_TEXELS];
	SandGpuTexture colour = {0}, place = {0}, depth = {0}, result = {0}, field = {0};
	SandGpuTarget target = {0}, second = {0}, bad = {0};
	SandGpuProgram program = {0}, compare = {0}, counts = {0};
	SandGpuBuffer buffer = {0};
	SandGpuImageDesc image = {.width = DRAW_WIDTH, .height = DRAW_HEIGHT, .label = "colour"};
	CHECK_STATUS(sand_gpu_image_create(gpu, &image, &colour, err), SAND_OK, err);
	image.format = SAND_GPU_RGBA32F;
	CHECK_STATUS(sand_gpu_image_create(gpu, &image, &place, err), SAND_OK, err);
	image.format = SAND_GPU_R32F;
	CHECK_STATUS(sand_gpu_image_create(gpu, &image, &result, err), SAND_OK, err);
	image = (SandGpuImageDesc){DRAW_WIDTH, DRAW_HEIGHT, SAND_GPU_DEPTH32F, false, true, "depth"};
	CHECK_STATUS(sand_gpu_image_create(gpu, &image, &depth, err), SAND_OK, err);
	CHECK_INT(sand_gpu_counts(gpu).bytes, DRAW_TEXELS * (4 + 16 + 4 + 4));
	SandGpuTargetDesc all = {{colour, place}, 2, depth, "target"};
	CHECK_STATUS(sand_gpu_target_create(gpu, &all, &target, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_target_create(gpu, &(SandGpuTargetDesc){{result}, 1, {0}, "second"}, &second, err), SAND_OK,
	             err);
	CHECK_INT(sand_gpu_target_state(gpu, target), SAND_GPU_VALID);
	SandGpuProgramDesc desc = {"draw", draw_vertex, "draw fragment", draw_fragment, NULL};
	CHECK_STATUS(sand_gpu_program_create(gpu, &desc, &program, err), SAND_OK, err);
	CHECK_INT(sand_gpu_program_group_size(gpu, program), 0);
	desc = (SandGpuProgramDesc){"cover", cover_vertex, "compare", compare_fragment, NULL};
	CHECK_STATUS(sand_gpu_program_create(gpu, &desc, &compare, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, sizeof rows, "rows", &buffer, err), SAND_OK, err);
	sand_gpu_upload(gpu, buffer, 0, rows, sizeof rows);
	sand_gpu_set_uint(gpu, program, 0, 2);
	SandGpuDraw draw = {
	    .target = target,
	    .program = program,
	    .inputs = {{buffer, 0, sizeof(Row), 4, false, false},
	               {buffer, offsetof(Row, number), sizeof(Row), 1, true, false}},
	    .input_count = 2,
	    .vertex_count = 3,
	};
	SandGpuDraw points = draw;
	points.inputs[0].offset += 3 * (int64_t)sizeof(Row);
	points.inputs[1].offset += 3 * (int64_t)sizeof(Row);
	points.vertex_count = 2;
	points.is_points = true;
	sand_gpu_target_clear(gpu, target, (const float[4]){0});
	sand_gpu_draw(gpu, &points); // the nearer first: the depth test keeps it
	sand_gpu_draw(gpu, &draw);
	CHECK_STATUS(sand_gpu_image_read(gpu, colour, bytes, sizeof bytes, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_image_read(gpu, place, places, sizeof places, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_image_read(gpu, depth, depths, sizeof depths, err), SAND_OK, err);
	sand_gpu_bind_texture(gpu, 0, depth);
	sand_gpu_bind_texture(gpu, 1, colour);
	sand_gpu_draw(gpu, &(SandGpuDraw){.target = second, .program = compare, .vertex_count = 3, .ignores_depth = true});
	CHECK_STATUS(sand_gpu_image_read(gpu, result, lit, sizeof lit, err), SAND_OK, err);
	int wrong_count = 0, point_count = 0;
	for (int i = 0; i < DRAW_TEXELS; ++i)
	{
		int x = i % DRAW_WIDTH, y = i / DRAW_WIDTH;
		bool is_point = x >= 2 && x < 6 && y >= 2 && y < 6;
		uint8_t shade = is_point ? 14 : 200;
		float z = is_point ? 0.25f : 0.9f;
		float light = (is_point ? 0.0f : 1.0f) + 2.0f * (float)shade / 255.0f;
		point_count += is_point;
		wrong_count += bytes[i][0] != shade || bytes[i][1] != 0 || bytes[i][2] != 255 || bytes[i][3] != 255;
		wrong_count += places[i][0] != (float)x + 0.5f || places[i][1] != (float)y + 0.5f;
		wrong_count += fabsf(depths[i] - z) > 1e-6f || places[i][3] != (float)shade;
		wrong_count += fabsf(lit[i] - light) > 1e-6f;
	}
	CHECK_INT(point_count, 16);
	CHECK_INT(wrong_count, 0);

	// One row per instance, three vertices each: the last instance wins where depths are not looked at.
	sand_gpu_target_clear(gpu, target, (const float[4]){0});
	SandGpuDraw instances = draw;
	instances.inputs[1].is_per_instance = true;
	instances.inputs[1].offset = (int64_t)offsetof(Row, number) + 2 * (int64_t)sizeof(Row);
	instances.instance_count = 2;
	instances.ignores_depth = true;
	sand_gpu_draw(gpu, &instances);
	CHECK_STATUS(sand_gpu_image_read(gpu, colour, bytes, sizeof bytes, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_image_read(gpu, depth, depths, sizeof depths, err), SAND_OK, err);
	for (int i = 0; i < DRAW_TEXELS; ++i)
	{
		wrong_count += bytes[i][0] != 14 || depths[i] != 1;
	}
	CHECK_INT(wrong_count, 0);

	// Misuse is a sentence, and the device goes on.
	draw.vertex_count = 6;
	sand_gpu_draw(gpu, &draw);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "'rows'");
	sand_gpu_draw(gpu, &(SandGpuDraw){.program = program, .vertex_count = 3});
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "target");
	CHECK_STATUS(
	    sand_gpu_program_create(gpu, &(SandGpuProgramDesc){"count", count_text, NULL, NULL, NULL}, &counts, err),
	    SAND_OK, err);
	sand_gpu_draw(gpu, &(SandGpuDraw){.target = target, .program = counts, .vertex_count = 3});
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "does not draw");
	sand_gpu_dispatch(gpu, program, 3);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "does not compute");
	CHECK_STATUS(sand_gpu_image_read(gpu, colour, bytes, 4, err), SAND_ERROR_GPU, err);
	SandGpuTextureDesc solid = {.width = 2, .height = 2, .depth = 2, .label = "solid"};
	CHECK_STATUS(sand_gpu_texture_create(gpu, &solid, &field, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_image_read(gpu, field, bytes, 32, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "'solid' is no image");
	const SandGpuTargetDesc wrong[] = {
	    {{depth}, 1, {0}, "colours are depths"},
	    {{colour}, 1, place, "depths are colours"},
	    {{field}, 1, {0}, "no image"},
	    {{{0}}, 1, {0}, "nothing"},
	    {{{0}}, 0, {0}, "empty"},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i)
	{
		CHECK_STATUS(sand_gpu_target_create(gpu, &wrong[i], &bad, err), SAND_ERROR_GPU, err);
		CHECK_INT(sand_gpu_target_state(gpu, bad), SAND_GPU_FAILED);
		sand_gpu_target_destroy(gpu, bad);
	}
	SandGpuTexture small = {0};
	image = (SandGpuImageDesc){.width = 2, .height = 2, .label = "small"};
	CHECK_STATUS(sand_gpu_image_create(gpu, &image, &small, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_target_create(gpu, &(SandGpuTargetDesc){{colour, small}, 2, {0}, "uneven"}, &bad, err),
	             SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "2 x 2");
	sand_gpu_target_destroy(gpu, bad);
	sand_gpu_texture_destroy(gpu, small);
	image.width = sand_gpu_info(gpu)->limits.image_size + 1;
	CHECK_STATUS(sand_gpu_image_create(gpu, &image, &small, err), SAND_ERROR_GPU_MEMORY, err);
	sand_gpu_texture_destroy(gpu, small);
	image.width = 0;
	CHECK_STATUS(sand_gpu_image_create(gpu, &image, &small, err), SAND_ERROR_ARGUMENT, err);
	desc = (SandGpuProgramDesc){"draw", draw_vertex, "79_wrong.frag", "\nvoid main() { pebble = 1; }\n", NULL};
	sand_gpu_program_destroy(gpu, counts);
	CHECK_STATUS(sand_gpu_program_create(gpu, &desc, &counts, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "at 79_wrong.frag line 2");

	sand_gpu_program_destroy(gpu, counts);
	sand_gpu_program_destroy(gpu, program);
	sand_gpu_program_destroy(gpu, compare);
	sand_gpu_buffer_destroy(gpu, buffer);
	sand_gpu_target_destroy(gpu, target);
	sand_gpu_target_destroy(gpu, second);
	sand_gpu_texture_destroy(gpu, field);
	sand_gpu_texture_destroy(gpu, result);
	sand_gpu_texture_destroy(gpu, depth);
	sand_gpu_texture_destroy(gpu, place);
	sand_gpu_texture_destroy(gpu, colour);
	return SAND_OK;
}

static void points_and_triangles_are_drawn_to_the_pixel(void)
{
	run_on_gpu(draw_job, NULL);
}

typedef struct Batch
{
	SandGpuProgram program;
	SandGpuBuffer words, fold;
	SandGpuTexture texture;
	SandGpuFence fence;
	SandGpuRead reads[2];
	SandGpuProgram cover;
	SandGpuTexture colour, depth;
	SandGpuTarget target;
	uint32_t count;
	uint32_t *fetched[2];
} Batch;

static SandStatus batch_make_job(SandGpu *gpu, void *user, SandError *err)
{
	Batch *batch = user;
	SandStatus status =
	    sand_gpu_program_create(gpu, &(SandGpuProgramDesc){.name = "count", .text = count_text}, &batch->program, err);
	if (status == SAND_OK)
	{
		status = sand_gpu_buffer_create(gpu, batch->count * 4, "words", &batch->words, err);
	}
	if (status == SAND_OK)
	{
		status = sand_gpu_buffer_create(gpu, 12, "fold", &batch->fold, err);
	}
	if (status == SAND_OK)
	{
		SandGpuTextureDesc desc = {.width = 2, .height = 2, .depth = 2, .label = "field"};
		status = sand_gpu_texture_create(gpu, &desc, &batch->texture, err);
	}
	for (int i = 0; i < 2 && status == SAND_OK; ++i)
	{
		status =
		    sand_gpu_read_create(gpu, batch->count * 4, i == 0 ? "even frames" : "odd frames", &batch->reads[i], err);
	}
	if (status == SAND_OK)
	{
		static const char text[] = "layout(location = 0) out vec4 c; void main() { c = vec4(0, 1, 0, 1); }\n";
		SandGpuProgramDesc desc = {"cover", cover_vertex, "green", text, NULL};
		status = sand_gpu_program_create(gpu, &desc, &batch->cover, err);
	}
	for (int i = 0; i < 2 && status == SAND_OK; ++i)
	{
		SandGpuImageDesc desc = {4, 4, i == 0 ? SAND_GPU_RGBA8 : SAND_GPU_DEPTH32F, false, false, "picture"};
		status = sand_gpu_image_create(gpu, &desc, i == 0 ? &batch->colour : &batch->depth, err);
	}
	if (status == SAND_OK)
	{
		SandGpuTargetDesc desc = {{batch->colour}, 1, batch->depth, "picture"};
		status = sand_gpu_target_create(gpu, &desc, &batch->target, err);
	}
	return status;
}

/// Two frames in flight: words times 1, then times 2.
static SandStatus batch_work_job(SandGpu *gpu, void *user, SandError *err)
{
	Batch *batch = user;
	SandStatus status = SAND_OK;
	for (int i = 0; i < 2 && status == SAND_OK; ++i)
	{
		sand_gpu_bind(gpu, 0, batch->words, 0, 0);
		sand_gpu_bind(gpu, 1, batch->fold, 0, 0);
		sand_gpu_bind_texture(gpu, 0, batch->texture);
		sand_gpu_set_uint(gpu, batch->program, 0, batch->count);
		sand_gpu_timer_start(gpu, i);
		sand_gpu_dispatch(gpu, batch->program, batch->count);
		sand_gpu_timer_stop(gpu);
		sand_gpu_barrier(gpu);
		// Halves the other way round: they come back in the order of adding.
		int64_t half = batch->count / 2 * 4;
		sand_gpu_read_add(gpu, batch->reads[i], batch->words, half, half);
		sand_gpu_read_add(gpu, batch->reads[i], batch->words, 0, half);
		status = sand_gpu_read_begin(gpu, batch->reads[i], err);
	}
	if (status == SAND_OK)
	{
		uint8_t bytes[16][4] = {{0}};
		sand_gpu_target_clear(gpu, batch->target, (const float[4]){0});
		sand_gpu_draw(gpu, &(SandGpuDraw){.target = batch->target, .program = batch->cover, .vertex_count = 3});
		status = sand_gpu_image_read(gpu, batch->colour, bytes, sizeof bytes, err);
		CHECK_INT(bytes[15][1], status == SAND_OK ? 255 : 0);
	}
	return status == SAND_OK ? sand_gpu_fence_create(gpu, &batch->fence, err) : status;
}

static SandStatus batch_fetch_job(SandGpu *gpu, void *user, SandError *err)
{
	Batch *batch = user;
	bool is_done = false;
	SandStatus status = sand_gpu_fence_wait(gpu, batch->fence, 60, &is_done, err);
	if (status == SAND_OK)
	{
		CHECK(is_done);
		status = sand_gpu_read_poll(gpu, batch->reads[0], &is_done, err);
	}
	if (status == SAND_OK)
	{
		CHECK(is_done);
		status = sand_gpu_read_finish(gpu, batch->reads[0], 0, batch->fetched[0], err);
	}
	return status == SAND_OK ? sand_gpu_read_finish(gpu, batch->reads[1], 60, batch->fetched[1], err) : status;
}

static SandStatus batch_free_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)err;
	Batch *batch = user;
	sand_gpu_fence_destroy(gpu, batch->fence);
	sand_gpu_read_destroy(gpu, batch->reads[0]);
	sand_gpu_read_destroy(gpu, batch->reads[1]);
	sand_gpu_target_destroy(gpu, batch->target);
	sand_gpu_texture_destroy(gpu, batch->colour);
	sand_gpu_texture_destroy(gpu, batch->depth);
	sand_gpu_program_destroy(gpu, batch->cover);
	sand_gpu_texture_destroy(gpu, batch->texture);
	sand_gpu_buffer_destroy(gpu, batch->fold);
	sand_gpu_buffer_destroy(gpu, batch->words);
	sand_gpu_program_destroy(gpu, batch->program);
	return SAND_OK;
}

/// Everything from create to destroy; the objects are freed by hand when frees, else they die with their device. A run
/// that goes well has the right words.
static SandStatus run_batch(const SandGpuDesc *desc, bool frees, SandError *err)
{
	enum
	{
		COUNT = 1000
	};
	static uint32_t fetched[2][COUNT];
	memset(fetched, 0, sizeof fetched);
	Batch batch = {.count = COUNT, .fetched = {fetched[0], fetched[1]}};
	SandGpu *gpu = NULL;
	SandStatus status = sand_gpu_create(desc, &gpu, err);
	if (status != SAND_OK)
	{
		CHECK(gpu == NULL);
		return status;
	}
	static SandGpuJob *const jobs[] = {batch_make_job, batch_work_job, batch_fetch_job};
	for (int i = 0; i < 3 && status == SAND_OK; ++i)
	{
		status = sand_gpu_run(gpu, jobs[i], &batch, err);
	}
	if (status == SAND_OK)
	{
		int wrong_count = 0;
		for (uint32_t i = 0; i < COUNT; ++i)
		{
			uint32_t number = (i + COUNT / 2) % COUNT + 1;
			wrong_count += fetched[0][i] != number || fetched[1][i] != 2 * number;
		}
		CHECK_INT(wrong_count, 0);
	}
	if (frees)
	{
		SandError later = {0};
		SandStatus freed = sand_gpu_run(gpu, batch_free_job, &batch, &later);
		if (freed == SAND_OK)
		{
			SandGpuCounts counts = sand_gpu_counts(gpu);
			CHECK_INT(
			    counts.buffers + counts.textures + counts.programs + counts.fences + counts.reads + counts.targets, 0);
			CHECK_INT(counts.bytes, 0);
		}
		else if (status == SAND_OK)
		{
			status = freed;
			*err = later;
		}
	}
	CHECK_INT(sand_gpu_error_count(gpu), 0);
	sand_gpu_destroy(gpu);
	return status;
}

static void frames_come_back_while_the_next_is_made(void)
{
	SandError err = {0};
	CHECK_STATUS(run_batch(NULL, true, &err), SAND_OK, &err);
	CHECK_STATUS(run_batch(NULL, false, &err), SAND_OK, &err);
	CHECK_STATUS(run_batch(&(SandGpuDesc){.is_debug = true, .has_timers = true}, true, &err), SAND_OK, &err);
}

static SandStatus misuse_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	SandGpuRead read = {0};
	SandGpuBuffer buffer = {0};
	uint32_t words[8];
	bool is_done;
	CHECK_STATUS(sand_gpu_read_create(gpu, 32, "frame", &read, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, 32, "words", &buffer, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_read_finish(gpu, read, 1, words, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "before it was begun");
	CHECK_STATUS(sand_gpu_read_poll(gpu, read, &is_done, err), SAND_ERROR_GPU, err);
	sand_gpu_read_add(gpu, read, buffer, 0, 32);
	sand_gpu_read_add(gpu, read, buffer, 0, 4);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	CHECK_CONTAINS(err->message, "'frame'");
	CHECK_STATUS(sand_gpu_read_begin(gpu, read, err), SAND_OK, err);
	CHECK_STATUS(sand_gpu_read_begin(gpu, read, err), SAND_ERROR_GPU, err);
	sand_gpu_read_add(gpu, read, buffer, 0, 0);
	CHECK_STATUS(sand_gpu_check(gpu, err), SAND_ERROR_GPU, err);
	CHECK_STATUS(sand_gpu_read_finish(gpu, read, 60, words, err), SAND_OK, err);
	CHECK_INT(words[7], 0);
	CHECK_STATUS(sand_gpu_fence_wait(gpu, (SandGpuFence){0}, 1, &is_done, err), SAND_ERROR_GPU, err);
	CHECK_STATUS(sand_gpu_download(gpu, (SandGpuBuffer){0}, 0, words, 4, err), SAND_ERROR_GPU, err);
	sand_gpu_read_destroy(gpu, read);
	sand_gpu_read_destroy(gpu, read);
	sand_gpu_buffer_destroy(gpu, buffer);
	return SAND_OK;
}

static void misused_objects_give_sentences(void)
{
	run_on_gpu(misuse_job, NULL);
}

static SandStatus timer_job(SandGpu *gpu, void *user, SandError *err)
{
	SandGpuPassTime *times = user;
	SandGpuProgram program = {0};
	SandGpuBuffer buffer = {0};
	CHECK_STATUS(sand_gpu_program_create(gpu, &(SandGpuProgramDesc){.name = "00_self_test.comp"}, &program, err),
	             SAND_OK, err);
	CHECK_STATUS(sand_gpu_buffer_create(gpu, 800000, "words", &buffer, err), SAND_OK, err);
	sand_gpu_bind(gpu, 0, buffer, 0, 0);
	sand_gpu_set_uint(gpu, program, 0, 100000);
	for (int i = 0; i < 600; ++i)
	{
		sand_gpu_timer_start(gpu, i % 3);
		sand_gpu_dispatch(gpu, program, i % 3 == 0 ? 100000 : 64);
		sand_gpu_timer_stop(gpu);
		sand_gpu_barrier(gpu);
	}
	sand_gpu_timer_read(gpu, times);
	sand_gpu_buffer_destroy(gpu, buffer);
	sand_gpu_program_destroy(gpu, program);
	return SAND_OK;
}

static void timers_count_every_pass(void)
{
	SandGpuPassTime times[SAND_GPU_PASS_LIMIT];
	SandGpu *gpu = make_gpu(&(SandGpuDesc){.has_timers = true});
	SandError err = {0};
	if (gpu == NULL)
	{
		return;
	}
	CHECK_STATUS(sand_gpu_run(gpu, timer_job, times, &err), SAND_OK, &err);
	CHECK_INT(times[0].count, 200);
	CHECK_INT(times[2].count, 200);
	CHECK_INT(times[3].count, 0);
	printf("200 dispatches of 100,000: %.6f s, of 64: %.6f s\n", times[0].seconds, times[1].seconds);
	CHECK(times[0].seconds > 0);
	close_gpu(gpu);
	gpu = make_gpu(NULL);
	CHECK_STATUS(sand_gpu_run(gpu, timer_job, times, &err), SAND_OK, &err);
	CHECK_INT(times[0].count, 0);
	close_gpu(gpu);
}

static SandStatus stray_error_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	SandGpuProgram program = {0};
	SandStatus status = sand_gpu_program_create(gpu, &(SandGpuProgramDesc){.name = "00_self_test.comp"}, &program, err);
	sand_gpu_set_uint(gpu, program, 12345, 1); // no such location: the driver says so, and the call does not
	return status;
}

typedef struct Lines
{
	int count;
	char last[512];
} Lines;

static void keep_line(void *user, const char *line)
{
	Lines *lines = user;
	lines->count++;
	snprintf(lines->last, sizeof lines->last, "%s", line);
}

static void errors_of_gl_do_not_go_unnoticed(void)
{
	Lines lines = {0};
	SandGpu *gpu = make_gpu(&(SandGpuDesc){.log = keep_line, .log_user = &lines});
	SandError err = {0};
	if (gpu == NULL)
	{
		return;
	}
	CHECK_INT(lines.count, 1);
	CHECK_CONTAINS(lines.last, sand_gpu_info(gpu)->name);
	CHECK_STATUS(sand_gpu_run(gpu, stray_error_job, NULL, &err), SAND_ERROR_GPU, &err);
	CHECK_CONTAINS(err.message, "invalid operation");
	CHECK_INT(sand_gpu_error_count(gpu), 1);
	CHECK(lines.count >= 2);
	CHECK_CONTAINS(lines.last, "GL error");
	// Noticed once, and the device goes on.
	CHECK_STATUS(sand_gpu_run(gpu, self_test_job, NULL, &err), SAND_OK, &err);
	CHECK_INT(sand_gpu_error_count(gpu), 1);
	sand_gpu_destroy(gpu);
}

static SandStatus lost_state_job(SandGpu *gpu, void *user, SandError *err)
{
	SandGpuBuffer *buffer = user;
	SandStatus status = sand_gpu_buffer_create(gpu, 64, "words", buffer, err);
	if (status == SAND_OK)
	{
		CHECK_INT(sand_gpu_buffer_state(gpu, *buffer), SAND_GPU_VALID);
		CHECK_STATUS(sand_gpu_poll(gpu, err), SAND_ERROR_GPU_LOST, err);
		CHECK_INT(sand_gpu_buffer_state(gpu, *buffer), SAND_GPU_GONE);
		CHECK_INT(sand_gpu_buffer_bytes(gpu, *buffer), 0);
		sand_gpu_fill(gpu, *buffer, 0, 64, 1);
		uint32_t word;
		CHECK_STATUS(sand_gpu_download(gpu, *buffer, 0, &word, 4, err), SAND_ERROR_GPU_LOST, err);
		SandGpuBuffer another = {77};
		CHECK_STATUS(sand_gpu_buffer_create(gpu, 64, "more", &another, err), SAND_ERROR_GPU_LOST, err);
		CHECK_INT(another.id, 0);
		sand_gpu_buffer_destroy(gpu, *buffer);
		CHECK_INT(sand_gpu_buffer_state(gpu, *buffer), SAND_GPU_NONE);
	}
	return SAND_OK;
}

static void a_lost_device_says_so_and_a_new_one_works(void)
{
	SandGpuFaults faults = {.reset = 1};
	SandGpu *gpu = make_gpu(&(SandGpuDesc){.faults = &faults});
	SandError err = {0};
	SandGpuBuffer buffer = {0};
	if (gpu == NULL)
	{
		return;
	}
	CHECK_STATUS(sand_gpu_run(gpu, lost_state_job, &buffer, &err), SAND_ERROR_GPU_LOST, &err);
	CHECK_CONTAINS(err.message, sand_gpu_info(gpu)->name);
	CHECK_INT(faults.reset, 0);
	Shared shared = {.gpu = gpu};
	CHECK_STATUS(sand_gpu_run(gpu, count_job, &shared, &err), SAND_ERROR_GPU_LOST, &err);
	CHECK_INT(shared.job_count, 0);
	close_gpu(gpu);
	gpu = make_gpu(&(SandGpuDesc){.faults = &faults});
	CHECK_STATUS(sand_gpu_run(gpu, self_test_job, NULL, &err), SAND_OK, &err);
	close_gpu(gpu);
}

static void every_nth_fault_ends_in_a_sentence_without_a_leak(void)
{
	static const struct
	{
		const char *name;
		size_t counter;
		SandStatus expected;
		int least; // faults that this run must have met
	} kinds[] = {
	    {"context", offsetof(SandGpuFaults, context), SAND_ERROR_GPU, 1},
	    {"buffer", offsetof(SandGpuFaults, buffer), SAND_ERROR_GPU_MEMORY, 4},
	    {"texture", offsetof(SandGpuFaults, texture), SAND_ERROR_GPU_MEMORY, 3},
	    {"target", offsetof(SandGpuFaults, target), SAND_ERROR_GPU, 1},
	    {"program", offsetof(SandGpuFaults, program), SAND_ERROR_GPU, 2},
	    {"dispatch", offsetof(SandGpuFaults, dispatch), SAND_ERROR_GPU, 3},
	    {"fence", offsetof(SandGpuFaults, fence), SAND_ERROR_GPU, 4},
	    {"reset", offsetof(SandGpuFaults, reset), SAND_ERROR_GPU_LOST, 8},
	};
	for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; ++kind)
	{
		for (int is_persistent = 0; is_persistent < 2; ++is_persistent)
		{
			int met_count = 0;
			for (int n = 1;; ++n)
			{
				size_t bytes = sand_alloc_bytes();
				SandGpuFaults faults = {.is_persistent = is_persistent == 1};
				int *counter = (int *)((char *)&faults + kinds[kind].counter);
				*counter = n;
				SandError err = {0};
				SandStatus status = run_batch(&(SandGpuDesc){.faults = &faults}, n % 2 == 0, &err);
				CHECK_INT(sand_alloc_bytes(), bytes);
				bool was_met = is_persistent == 1 ? *counter == 1 && status != SAND_OK : *counter == 0;
				if (!was_met)
				{
					CHECK_STATUS(status, SAND_OK, &err);
					break;
				}
				++met_count;
				// Another device may serve in place of the one whose context failed.
				if (status != SAND_OK || strcmp(kinds[kind].name, "context") != 0)
				{
					CHECK_STATUS(status, kinds[kind].expected, &err);
				}
				if (!CHECK(n < 100))
				{
					break;
				}
			}
			printf("%s%s: %d faults met\n", kinds[kind].name, is_persistent ? ", persistent" : "", met_count);
			CHECK(met_count >= kinds[kind].least);
		}
	}
}

static void every_nth_allocation_may_fail(void)
{
	for (int is_persistent = 0; is_persistent < 2; ++is_persistent)
	{
		for (uint64_t n = 1;; ++n)
		{
			size_t bytes = sand_alloc_bytes();
			SandError err = {0};
			sand_alloc_fail_after(n, is_persistent == 1);
			SandStatus status = run_batch(NULL, true, &err);
			sand_alloc_fail_after(0, false);
			CHECK_INT(sand_alloc_bytes(), bytes);
			if (status == SAND_OK)
			{
				CHECK(n > 2); // the device, the table, the empty texture
				break;
			}
			CHECK_STATUS(status, SAND_ERROR_MEMORY, &err);
			if (!CHECK(n < 100))
			{
				break;
			}
		}
	}
}

static void without_a_library_the_sentence_names_it(void)
{
	static const struct
	{
		const char *library, *part;
	} cases[] = {
	    {"libEGL-that-is-not-here.so.1", "libEGL-that-is-not-here.so.1 could not be opened"},
	    {"libc.so.6", "no whole libEGL"},
	};
	for (int i = 0; i < 2; ++i)
	{
		SandGpuDesc desc = {.egl_library = cases[i].library};
		SandError err = {0};
		SandGpu *gpu = NULL;
		CHECK_STATUS(sand_gpu_create(&desc, &gpu, &err), SAND_ERROR_GPU, &err);
		CHECK(gpu == NULL);
		CHECK_CONTAINS(err.message, cases[i].part);
		SandGpuDevice devices[SAND_GPU_DEVICE_LIMIT];
		int count = 0;
		CHECK_STATUS(sand_gpu_list(&desc, devices, SAND_GPU_DEVICE_LIMIT, &count, &err), SAND_OK, &err);
		CHECK_INT(count, 1);
		CHECK(!devices[0].is_usable);
		CHECK_CONTAINS(devices[0].reason, cases[i].part);
	}
}

static void a_device_that_is_not_wanted_is_not_taken(void)
{
	SandError err = {0};
	SandGpu *gpu = NULL;
	CHECK_STATUS(sand_gpu_create(&(SandGpuDesc){.device = 999}, &gpu, &err), SAND_ERROR_GPU, &err);
	CHECK_CONTAINS(err.message, "999");
	CHECK_STATUS(sand_gpu_create(&(SandGpuDesc){.device = -1}, &gpu, &err), SAND_ERROR_GPU, &err);
	SandGpuDesc neither = {.refuses_software = true, .refuses_hardware = true};
	CHECK_STATUS(sand_gpu_create(&neither, &gpu, &err), SAND_ERROR_GPU, &err);
	CHECK(gpu == NULL);
	CHECK_CONTAINS(err.message, "refused");
	gpu = make_gpu(NULL);
	bool is_software = sand_gpu_info(gpu)->is_software;
	close_gpu(gpu);
	SandGpuDesc same = {.refuses_software = !is_software, .refuses_hardware = is_software};
	gpu = make_gpu(&same);
	CHECK(sand_gpu_info(gpu)->is_software == is_software);
	close_gpu(gpu);
}

void test_gpu(void)
{
	RUN(without_a_library_the_sentence_names_it);
	SandError err = {0};
	SandGpu *gpu = NULL;
	if (sand_gpu_create(NULL, &gpu, &err) != SAND_OK)
	{
		SKIP("every other test of gpu", err.message);
		return;
	}
	sand_gpu_destroy(gpu);
	RUN(device_computes_what_the_processor_does);
	RUN(devices_come_and_go);
	RUN(the_list_names_the_device_that_is_made);
	RUN(the_display_that_blender_may_hold_is_the_last_resort);
	RUN(devices_live_side_by_side);
	RUN(callers_are_served_one_after_the_other);
	RUN(the_callers_context_stays_current);
	RUN(buffers_hold_and_refuse);
	RUN(the_table_of_objects_grows);
	RUN(big_dispatches_are_folded_into_rows);
	RUN(shaders_are_refused_with_file_and_line);
	RUN(structs_lie_alike_in_c_and_in_shaders);
	RUN(textures_are_fetched_to_the_bit);
	RUN(points_and_triangles_are_drawn_to_the_pixel);
	RUN(frames_come_back_while_the_next_is_made);
	RUN(misused_objects_give_sentences);
	RUN(timers_count_every_pass);
	RUN(errors_of_gl_do_not_go_unnoticed);
	RUN(a_lost_device_says_so_and_a_new_one_works);
	RUN(every_nth_fault_ends_in_a_sentence_without_a_leak);
	RUN(every_nth_allocation_may_fail);
	RUN(a_device_that_is_not_wanted_is_not_taken);
}
