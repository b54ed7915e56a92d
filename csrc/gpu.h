// gpu: the one door to OpenGL: a device that computes and draws, its buffers, textures, programs, fences and timers.
// Comes in: sizes, bytes, the names of embedded shaders. Goes out: bytes computed by the device. Knows no physics.
//
// The device has a context of its own, current on a thread of its own that lives from create to destroy; no other
// thread's context is ever looked at or changed, Blender's least of all. Work reaches that thread through sand_gpu_run.
// libEGL is opened when a device is asked for: a machine without it runs everything else.
//
// Errors. Calls that make or read something return a status and a sentence. Calls that record work (bind, dispatch,
// draw, copy, barrier) return nothing: the first that fails is kept, what follows it is skipped, and sand_gpu_check or
// the end of sand_gpu_run hands it out.
//   SAND_ERROR_GPU         no device, a shader that does not compile, a call that the driver refuses
//   SAND_ERROR_GPU_MEMORY  a buffer or texture that the device cannot hold; the device goes on
//   SAND_ERROR_GPU_LOST    the driver has reset: every object is gone, only sand_gpu_destroy is left to call
#ifndef SAND_GPU_H
#define SAND_GPU_H

#include "base.h"

typedef struct SandGpu SandGpu;

/// Handles: a slot and its generation. Zero is no object; destroying it, or one that is gone, does nothing. All objects
/// die with their device.
typedef struct SandGpuBuffer
{
	uint32_t id;
} SandGpuBuffer;
typedef struct SandGpuTexture
{
	uint32_t id;
} SandGpuTexture;
typedef struct SandGpuProgram
{
	uint32_t id;
} SandGpuProgram;
typedef struct SandGpuFence
{
	uint32_t id;
} SandGpuFence;
typedef struct SandGpuRead
{
	uint32_t id;
} SandGpuRead;
typedef struct SandGpuTarget
{
	uint32_t id;
} SandGpuTarget;

/// Of an object. One that could not be made is FAILED: it may be bound and dispatched, which fails with a sentence, and
/// must be destroyed like any other.
typedef enum SandGpuState
{
	SAND_GPU_NONE = 0, // never made, or destroyed
	SAND_GPU_VALID,
	SAND_GPU_FAILED,
	SAND_GPU_GONE, // was valid when the device was lost
} SandGpuState;

/// What the device takes at most, as its driver says.
typedef struct SandGpuLimits
{
	int64_t block_bytes; // one storage block; llvmpipe: 128 MiB
	int block_alignment; // bytes, of the start of a bound storage range
	int block_count;     // storage blocks in one shader; llvmpipe: 16
	int binding_count;   // storage bindings; llvmpipe: 80
	int uniform_bytes;   // one uniform block
	int uniform_alignment;
	int uniform_count; // uniform blocks in one shader
	int group_size;    // invocations in one group
	int group_count;   // groups along x; 65535 at least
	int shared_bytes;  // shared memory of one group
	int texture_size;  // edge of a 3-D texture, texels
	int texture_count; // textures in one shader
	int image_size;    // edge of a 2-D texture and of a target, texels
	int point_size;    // pixels across a drawn point
	int unit_count;    // texture units; 96 at least
	int texel_count;   // texels of a buffer bound as texels
} SandGpuLimits;

/// One way to a device, usable or not.
typedef struct SandGpuDevice
{
	int number;        // from 1, for SandGpuDesc.device; the best comes first
	char platform[32]; // "EGL device 0", "EGL surfaceless"
	char name[128];    // the driver's name of the device
	char vendor[64];
	char driver[128]; // version of GL and of the driver
	int gl_major, gl_minor;
	bool is_usable;
	bool is_software;                // runs on the processor: llvmpipe and its like
	bool is_robust;                  // reads and writes beyond a buffer do no harm
	bool tells_resets;               // a reset is told to us instead of being a crash or a silence
	char reason[SAND_MESSAGE_BYTES]; // why it is not usable, one sentence; else empty
	SandGpuLimits limits;
} SandGpuDevice;

/// Test seam: the Nth of its kind from now fails, 0 = none. Counted down on the device's thread; 0 afterwards means
/// that it happened. Outlives every device that is made with it, and counts on from one to the next.
typedef struct SandGpuFaults
{
	int context;        // no context can be made                  -> SAND_ERROR_GPU
	int buffer;         // a buffer or read-back: out of memory    -> SAND_ERROR_GPU_MEMORY
	int texture;        // likewise, also an image
	int target;         // the driver cannot draw into it          -> SAND_ERROR_GPU
	int program;        // the shader does not compile             -> SAND_ERROR_GPU
	int dispatch;       // the driver refuses the dispatch or draw -> SAND_ERROR_GPU
	int fence;          // waiting for it fails                    -> SAND_ERROR_GPU
	int reset;          // the Nth look for a reset finds one      -> SAND_ERROR_GPU_LOST
	bool is_persistent; // the Nth and all after it; the counter stays at 1
} SandGpuFaults;

/// One line, without its end. On the device's thread; must not call back into gpu.
typedef void SandGpuLog(void *user, const char *line);

/// Zero is valid: the best device, software when there is no other, no log.
typedef struct SandGpuDesc
{
	int device;              // number of sand_gpu_list; 0 = the first that is usable
	bool refuses_software;   // no device rather than a slow one
	bool refuses_hardware;   // for tests that compare bits
	bool is_debug;           // ask the driver for a debug context: more messages, slower
	bool has_timers;         // sand_gpu_timer_* measure; else they do nothing
	const char *egl_library; // NULL = libEGL.so.1
	SandGpuLog *log;         // device, driver messages, GL errors; NULL = nowhere
	void *log_user;
	SandGpuFaults *faults; // NULL = none
	int64_t block_bytes;   // for tests: a device whose storage blocks are no larger; 0 = as the driver says
} SandGpuDesc;

/// Every way to a device, hardware first, into devices[0 .. *count_out), at most capacity of them. Each is tried on a
/// thread of its own. What stands in the way is said in the reason of its entry; without libEGL there is one entry that
/// says so. Fails only for want of memory. Any thread. desc may be NULL; device and the refusals are not looked at.
SandStatus sand_gpu_list(const SandGpuDesc *desc, SandGpuDevice *devices, int capacity, int *count_out, SandError *err);
#define SAND_GPU_DEVICE_LIMIT 32

/// Starts the device's thread and makes the context there. Any thread. desc may be NULL and need not outlive the call,
/// but log_user and faults must outlive the device. SAND_ERROR_GPU says what was tried and why it failed.
SandStatus sand_gpu_create(const SandGpuDesc *desc, SandGpu **gpu_out, SandError *err);

/// Frees every object and the context on the device's thread, then ends it. NULL is fine. Any thread but the device's
/// own, when nobody is inside sand_gpu_run.
void sand_gpu_destroy(SandGpu *gpu);

/// Which device it is. Any thread; lives as long as the device.
const SandGpuDevice *sand_gpu_info(const SandGpu *gpu);

/// GL errors that no call had to answer for, since create: 0 in a healthy program. Any thread.
int sand_gpu_error_count(SandGpu *gpu);

/// Objects alive, for leak tests. Any thread.
typedef struct SandGpuCounts
{
	int buffers, textures, programs, fences, reads, targets;
	int64_t bytes; // of buffers, textures and read-backs
} SandGpuCounts;
SandGpuCounts sand_gpu_counts(SandGpu *gpu);

/// A batch of work, run on the device's thread. Everything below this line may be called only from inside it.
typedef SandStatus SandGpuJob(SandGpu *gpu, void *user, SandError *err);

/// Runs job on the device's thread and returns when it has returned (the device may still be working: see fences). The
/// status is SAND_ERROR_GPU_LOST when the device was lost, which is looked for at the end of every run; else that of
/// the job; else the first failure of a recording call, or a GL error that was left behind. After a loss no job is run.
/// Any thread, also from inside a job (runs at once); callers are served one after the other.
SandStatus sand_gpu_run(SandGpu *gpu, SandGpuJob *job, void *user, SandError *err);

/// The first failure of a recording call since the last check, and forgets it.
SandStatus sand_gpu_check(SandGpu *gpu, SandError *err);

/// Asks the driver for a reset: SAND_OK or SAND_ERROR_GPU_LOST. Done by every wait and at the end of every run.
SandStatus sand_gpu_poll(SandGpu *gpu, SandError *err);

/// Buffers. Zeroed. byte_count is rounded up to a multiple of 4; more than limits.block_bytes is refused with numbers.
/// The label is for sentences and the driver's messages. On failure *buffer_out is a FAILED object, or zero when even
/// that could not be had.
SandStatus sand_gpu_buffer_create(SandGpu *gpu, int64_t byte_count, const char *label, SandGpuBuffer *buffer_out,
                                  SandError *err);
void sand_gpu_buffer_destroy(SandGpu *gpu, SandGpuBuffer buffer);
SandGpuState sand_gpu_buffer_state(SandGpu *gpu, SandGpuBuffer buffer);
int64_t sand_gpu_buffer_bytes(SandGpu *gpu, SandGpuBuffer buffer); // 0 when it is not valid
/// Offsets and sizes in bytes. upload copies bytes before it returns; download waits for the device. fill repeats a
/// 32-bit word: offset and byte_count are multiples of 4. upload, copy and fill are ordered with dispatches by
/// sand_gpu_barrier.
void sand_gpu_upload(SandGpu *gpu, SandGpuBuffer buffer, int64_t offset, const void *bytes, int64_t byte_count);
void sand_gpu_fill(SandGpu *gpu, SandGpuBuffer buffer, int64_t offset, int64_t byte_count, uint32_t word);
void sand_gpu_copy(SandGpu *gpu, SandGpuBuffer from, int64_t from_offset, SandGpuBuffer to, int64_t to_offset,
                   int64_t byte_count);
SandStatus sand_gpu_download(SandGpu *gpu, SandGpuBuffer buffer, int64_t offset, void *bytes_out, int64_t byte_count,
                             SandError *err);

/// 3-D textures of one 32-bit float per texel, for texelFetch, or for texture() with linear filtering when is_linear;
/// clamped at the edges. texels: width * height * depth floats, x fastest; NULL leaves zeros.
typedef struct SandGpuTextureDesc
{
	int width, height, depth;
	bool is_linear;
	const float *texels;
	const char *label;
} SandGpuTextureDesc;
SandStatus sand_gpu_texture_create(SandGpu *gpu, const SandGpuTextureDesc *desc, SandGpuTexture *texture_out,
                                   SandError *err);
void sand_gpu_texture_destroy(SandGpu *gpu, SandGpuTexture texture);
SandGpuState sand_gpu_texture_state(SandGpu *gpu, SandGpuTexture texture);

/// 2-D textures: to be drawn into, sampled in later draws and dispatches (sampler2D at the unit of
/// sand_gpu_bind_texture; clamped at the edges) and read back. Not zeroed: clear the target. A depth image with
/// is_compared is a sampler2DShadow: 1 where the reference is nearer than or as near as the texel.
typedef enum SandGpuFormat
{
	SAND_GPU_RGBA8 = 0,
	SAND_GPU_RGBA32F,
	SAND_GPU_R32F,
	SAND_GPU_DEPTH32F, // 0 near to 1 far
	SAND_GPU_FORMAT_COUNT
} SandGpuFormat;
typedef struct SandGpuImageDesc
{
	int width, height;
	SandGpuFormat format;
	bool is_linear; // else the nearest texel
	bool is_compared;
	const char *label;
} SandGpuImageDesc;
SandStatus sand_gpu_image_create(SandGpu *gpu, const SandGpuImageDesc *desc, SandGpuTexture *texture_out,
                                 SandError *err);
/// All texels, the lowest row first, in the image's format: byte_count must be all of its bytes. Waits for the device.
SandStatus sand_gpu_image_read(SandGpu *gpu, SandGpuTexture image, void *bytes_out, int64_t byte_count, SandError *err);

/// What is drawn into: up to SAND_GPU_COLOUR_LIMIT colour images, a depth image, or both, all of one size; zero = none.
/// Fragment output `layout(location = N)` goes to colours[N]. Destroyed before its images.
#define SAND_GPU_COLOUR_LIMIT 4
typedef struct SandGpuTargetDesc
{
	SandGpuTexture colours[SAND_GPU_COLOUR_LIMIT];
	int colour_count;
	SandGpuTexture depth;
	const char *label;
} SandGpuTargetDesc;
SandStatus sand_gpu_target_create(SandGpu *gpu, const SandGpuTargetDesc *desc, SandGpuTarget *target_out,
                                  SandError *err);
void sand_gpu_target_destroy(SandGpu *gpu, SandGpuTarget target);
SandGpuState sand_gpu_target_state(SandGpu *gpu, SandGpuTarget target);
/// Every colour image to this colour, the depth image to 1.
void sand_gpu_target_clear(SandGpu *gpu, SandGpuTarget target, const float colour[4]);

/// Programs that compute, or, with a fragment shader, that draw. name is a file of shaders/ that meson.build lists
/// ("00_self_test.comp"; "82_spheres.vert"), or, with text given, only what sentences call it; fragment likewise.
/// text: GLSL without #version; layout.h and common.glsl are in front of every shader, with SAND_VERTEX or
/// SAND_FRAGMENT defined in those that draw. defines: lines put before them, "#define X 1\n", or NULL. A sentence about
/// a shader names file and line.
typedef struct SandGpuProgramDesc
{
	const char *name;
	const char *text;
	const char *fragment; // NULL: it computes
	const char *fragment_text;
	const char *defines;
} SandGpuProgramDesc;
SandStatus sand_gpu_program_create(SandGpu *gpu, const SandGpuProgramDesc *desc, SandGpuProgram *program_out,
                                   SandError *err);
void sand_gpu_program_destroy(SandGpu *gpu, SandGpuProgram program);
SandGpuState sand_gpu_program_state(SandGpu *gpu, SandGpuProgram program);
int sand_gpu_program_group_size(SandGpu *gpu, SandGpuProgram program); // invocations along x; 0 when it is not valid

/// The embedded shaders in running order; NULL beyond the last. Any thread.
const char *sand_gpu_shader_name(int index);

/// Binds a storage range to `layout(std430, binding = N) buffer`, or a uniform range to `layout(std140, binding = N)
/// uniform`. byte_count 0 = to the end of the buffer. Stays bound until something else is.
void sand_gpu_bind(SandGpu *gpu, int binding, SandGpuBuffer buffer, int64_t offset, int64_t byte_count);
void sand_gpu_bind_uniform(SandGpu *gpu, int binding, SandGpuBuffer buffer, int64_t offset, int64_t byte_count);
/// Binds to `layout(binding = N) uniform sampler3D`, or sampler2D and sampler2DShadow for an image.
void sand_gpu_bind_texture(SandGpu *gpu, int unit, SandGpuTexture texture);
/// Binds a whole buffer to `layout(binding = N) uniform usamplerBuffer`, for texelFetch: read-only texels of 1, 2 or 4
/// words. Processors read whole texels of many invocations at once, where storage blocks are read word by word.
void sand_gpu_bind_texels(SandGpu *gpu, int unit, SandGpuBuffer buffer, int word_count);
/// Sets `layout(location = N) uniform uint` of a program, for what changes from dispatch to dispatch.
void sand_gpu_set_uint(SandGpu *gpu, SandGpuProgram program, int location, uint32_t value);

/// Runs the program for invocation_count invocations, in whole groups along x. More than SAND_GROUP_LIMIT groups are
/// folded into rows: the shader takes its number from sand_thread() and compares it with the count. 0 does nothing.
void sand_gpu_dispatch(SandGpu *gpu, SandGpuProgram program, int64_t invocation_count);
void sand_gpu_dispatch_groups(SandGpu *gpu, SandGpuProgram program, int64_t group_count);
/// Group counts x, y, z from three uint32 in the buffer; a shader makes them with sand_fold().
void sand_gpu_dispatch_indirect(SandGpu *gpu, SandGpuProgram program, SandGpuBuffer buffer, int64_t offset);

/// One input of a vertex shader, `layout(location = N) in`, N its place in SandGpuDraw.inputs: 1 to 4 floats or uints
/// from a buffer, one row per vertex, or per instance.
typedef struct SandGpuInput
{
	SandGpuBuffer buffer;
	int64_t offset; // bytes, of the first row
	int stride;     // bytes from row to row
	int component_count;
	bool is_uint;
	bool is_per_instance;
} SandGpuInput;

/// A draw. Zero is valid but for target, program and vertex_count: triangles, one instance, no inputs (the shader takes
/// gl_VertexID), the whole target. Points are as wide as gl_PointSize says, at most limits.point_size, and vanish with
/// their centre. Nothing is blended or culled. The target's images must not be bound to a unit that the program reads.
#define SAND_GPU_INPUT_LIMIT 8
typedef struct SandGpuDraw
{
	SandGpuTarget target;
	SandGpuProgram program;
	SandGpuInput inputs[SAND_GPU_INPUT_LIMIT];
	int input_count;
	int64_t vertex_count;
	int64_t instance_count; // 0 = 1
	bool is_points;
	bool ignores_depth; // neither tests nor writes it; else the nearest fragment stays
} SandGpuDraw;
void sand_gpu_draw(SandGpu *gpu, const SandGpuDraw *draw);

/// What follows sees what the dispatches before have written: through storage and uniform blocks, textures, indirect
/// counts, copies, uploads, downloads and read-backs.
void sand_gpu_barrier(SandGpu *gpu);
/// Hands what was recorded to the device, without waiting.
void sand_gpu_flush(SandGpu *gpu);
/// Waits until the device has done everything; for tests and for the end of a measurement.
void sand_gpu_finish(SandGpu *gpu);

/// A mark in the device's work. wait: *is_done_out tells whether the mark was passed within timeout_seconds (0 = only
/// look). Waiting also looks for a reset.
SandStatus sand_gpu_fence_create(SandGpu *gpu, SandGpuFence *fence_out, SandError *err);
SandStatus sand_gpu_fence_wait(SandGpu *gpu, SandGpuFence fence, double timeout_seconds, bool *is_done_out,
                               SandError *err);
void sand_gpu_fence_destroy(SandGpu *gpu, SandGpuFence fence);

/// Read-back that does not wait: a staging buffer of byte_count bytes, used again and again.
///   add     queues a copy to the end of what was added, after a barrier of its own
///   begin   marks the end of the batch and hands it to the device
///   poll    whether it has arrived
///   finish  waits up to timeout_seconds, copies all that was added to bytes_out, in the order of add, and empties it;
///           SAND_ERROR_GPU when it has not arrived by then (it may be finished later)
SandStatus sand_gpu_read_create(SandGpu *gpu, int64_t byte_count, const char *label, SandGpuRead *read_out,
                                SandError *err);
void sand_gpu_read_destroy(SandGpu *gpu, SandGpuRead read);
void sand_gpu_read_add(SandGpu *gpu, SandGpuRead read, SandGpuBuffer buffer, int64_t offset, int64_t byte_count);
SandStatus sand_gpu_read_begin(SandGpu *gpu, SandGpuRead read, SandError *err);
SandStatus sand_gpu_read_poll(SandGpu *gpu, SandGpuRead read, bool *is_done_out, SandError *err);
SandStatus sand_gpu_read_finish(SandGpu *gpu, SandGpuRead read, double timeout_seconds, void *bytes_out,
                                SandError *err);

/// Device time per pass: everything between start and stop is added to the pass. Not nested. Does nothing without
/// SandGpuDesc.has_timers. read waits for what is measured. On a software device both ends wait for the work before
/// them, so that the passes together take a little more than the same work without timers.
#define SAND_GPU_PASS_LIMIT 64
typedef struct SandGpuPassTime
{
	double seconds;
	int64_t count;
} SandGpuPassTime;
void sand_gpu_timer_start(SandGpu *gpu, int pass);
void sand_gpu_timer_stop(SandGpu *gpu);
void sand_gpu_timer_read(SandGpu *gpu, SandGpuPassTime times_out[SAND_GPU_PASS_LIMIT]);

/// Runs a small program on the device and compares every word with the processor's: SAND_ERROR_GPU when one differs.
/// From inside a job.
SandStatus sand_gpu_self_test(SandGpu *gpu, SandError *err);

#endif
