// gpu: the one door to OpenGL: a device that computes and draws, its buffers, textures, programs, fences and timers.
// Comes in: sizes, bytes, the names of embedded shaders. Goes out: bytes computed by the device. Knows no physics.
//
// Entry points come from GLEW, linked statically, and GLEW asks eglGetProcAddress: the three functions of GLX that the
// packaged GLEW refers to are defined here, so that neither libGL nor X11 is needed to load the module.
//
// A display of EGL belongs to the whole process: it is initialised, never terminated. libEGL is never closed either,
// for drivers leave threads and exit handlers behind. Blender without a window draws on the surfaceless display, and
// Mesa 22.3.6 crashes when one thread draws and another computes in contexts of one software display (docs/design.md):
// so that display is left alone as long as any device of EGL serves.
#include "gpu.h"

#define GLEW_STATIC
#define GLEW_NO_GLU
#include <GL/glew.h>

#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>

#include "layout.h"
#include "shaders.h" // made by shaders/embed.py: shader_prelude, shaders[]

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define TIMER_COUNT 256    // queries in flight before the oldest is waited for
#define OBJECT_LIMIT 65535 // slots that fit into a handle
#define LABEL_BYTES 48
#define LINES_PER_FILE 100000 // as in shaders/embed.py
#define SHADER_COUNT (int)(sizeof shaders / sizeof shaders[0])

// libEGL, opened at run time

typedef struct Egl
{
	PFNEGLGETPROCADDRESSPROC get_proc;
	PFNEGLQUERYSTRINGPROC query_string;
	PFNEGLINITIALIZEPROC initialize;
	PFNEGLBINDAPIPROC bind_api;
	PFNEGLCHOOSECONFIGPROC choose_config;
	PFNEGLCREATECONTEXTPROC create_context;
	PFNEGLMAKECURRENTPROC make_current;
	PFNEGLDESTROYCONTEXTPROC destroy_context;
	PFNEGLRELEASETHREADPROC release_thread;
	PFNEGLGETERRORPROC get_error;
	PFNEGLGETPLATFORMDISPLAYEXTPROC get_display;
	PFNEGLQUERYDEVICESEXTPROC query_devices; // NULL without the extension
	PFNEGLQUERYDEVICESTRINGEXTPROC query_device_string;
} Egl;

/// One way to a device: an EGL device, or the surfaceless platform when device is NULL.
typedef struct Candidate
{
	EGLDeviceEXT device;
	int device_index;
	bool is_software; // as far as known before a context is made
} Candidate;

typedef struct Context
{
	EGLDisplay display;
	EGLContext context;
	PFNGLGETGRAPHICSRESETSTATUSPROC reset_status; // NULL when the driver does not tell
} Context;

typedef enum Kind
{
	KIND_NONE = 0,
	KIND_BUFFER,
	KIND_TEXTURE,
	KIND_PROGRAM,
	KIND_FENCE,
	KIND_READ,
	KIND_TARGET,
	KIND_COUNT
} Kind;

typedef struct Object
{
	Kind kind;
	SandGpuState state;
	uint32_t generation;
	GLuint name;
	GLuint texels[3];   // of a buffer: its views as texels of 1, 2 and 4 words, made when first asked for
	int64_t byte_count; // of buffer, texture and read
	int group_size;     // of a program, along x; 0 when it draws
	GLenum target;      // of a texture: GL_TEXTURE_3D or GL_TEXTURE_2D
	int width, height;  // of an image and a target
	SandGpuFormat format;
	int colour_count; // of a target
	bool has_depth;
	GLsync sync;         // of a fence, and of a read that was begun
	int64_t added_bytes; // of a read
	char label[LABEL_BYTES];
} Object;

typedef struct Timer
{
	GLuint query;
	int pass;
} Timer;

struct SandGpu
{
	SandGpuDesc desc;
	Egl egl;
	SandGpuDevice info;

	pthread_t thread;
	pthread_mutex_t turn; // callers of sand_gpu_run, one after the other
	pthread_mutex_t mutex;
	pthread_cond_t wake; // a job or the end
	pthread_cond_t done; // the job is done, or the thread has started
	bool has_started;
	bool is_stopping;
	SandGpuJob *job; // NULL when there is none
	void *job_user;
	SandError *job_err;
	SandStatus job_status;

	// Of the device's thread alone.
	Context context;
	bool is_lost;
	GLenum lost_cause;
	SandError failure; // first of a recording call
	Object *objects;
	int object_capacity;
	Timer timers[TIMER_COUNT]; // ring of pending measurements
	int timer_first, timer_pending;
	GLuint vertex_array; // made with the first draw
	bool is_timing;
	double timing_start; // s, of a software device
	int timing_pass;
	SandGpuPassTime times[SAND_GPU_PASS_LIMIT];

	// Read by any thread.
	atomic_int error_count;
	atomic_int counts[KIND_COUNT];
	atomic_llong byte_count;
};

SAND_PRINTF(2, 3) static void write_log(const SandGpuDesc *desc, const char *format, ...)
{
	if (desc->log != NULL)
	{
		char line[1024];
		va_list args;
		va_start(args, format);
		vsnprintf(line, sizeof line, format, args);
		va_end(args);
		desc->log(desc->log_user, line);
	}
}

/// Whether this event is the one that a test wants to fail.
static bool is_fault(const SandGpuDesc *desc, int *countdown)
{
	if (*countdown > 1)
	{
		--*countdown;
		return false;
	}
	bool is_due = *countdown == 1;
	if (is_due && !desc->faults->is_persistent)
	{
		*countdown = 0;
	}
	return is_due;
}

#define IS_FAULT(desc, kind) ((desc)->faults != NULL && is_fault((desc), &(desc)->faults->kind))

/// Whether a list of words divided by blanks holds the word.
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; at != NULL && (at = strstr(at, word)) != NULL; at += length)
	{
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
		{
			return true;
		}
	}
	return false;
}

static void copy_text(char *out, size_t byte_count, const char *text)
{
	snprintf(out, byte_count, "%s", text != NULL ? text : "");
}

/// A function of libEGL. dlsym gives an object pointer, which C does not let become a function by a cast.
#define FIND(egl, library, member, name)                                                                               \
	do                                                                                                                 \
	{                                                                                                                  \
		void *symbol = dlsym(library, name);                                                                           \
		memcpy(&(egl)->member, &symbol, sizeof symbol);                                                                \
		is_whole = is_whole && symbol != NULL;                                                                         \
	} while (0)

static SandStatus open_egl(const char *name, Egl *egl, SandError *err)
{
	name = name != NULL ? name : "libEGL.so.1";
	*egl = (Egl){0};
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
	{
		const char *cause = dlerror();
		return sand_fail(err, SAND_ERROR_GPU,
		                 "No GPU: %s could not be opened (%s); install it (Debian: libegl1) with a graphics driver, or "
		                 "use the CPU engine",
		                 name, cause != NULL ? cause : "no cause given");
	}
	bool is_whole = true;
	FIND(egl, library, get_proc, "eglGetProcAddress");
	FIND(egl, library, query_string, "eglQueryString");
	FIND(egl, library, initialize, "eglInitialize");
	FIND(egl, library, bind_api, "eglBindAPI");
	FIND(egl, library, choose_config, "eglChooseConfig");
	FIND(egl, library, create_context, "eglCreateContext");
	FIND(egl, library, make_current, "eglMakeCurrent");
	FIND(egl, library, destroy_context, "eglDestroyContext");
	FIND(egl, library, release_thread, "eglReleaseThread");
	FIND(egl, library, get_error, "eglGetError");
	if (!is_whole)
	{
		return sand_fail(err, SAND_ERROR_GPU, "No GPU: %s is no whole libEGL; install EGL 1.4 or later", name);
	}
	const char *extensions = egl->query_string(EGL_NO_DISPLAY, EGL_EXTENSIONS);
	if (has_word(extensions, "EGL_EXT_platform_base"))
	{
		egl->get_display = (PFNEGLGETPLATFORMDISPLAYEXTPROC)egl->get_proc("eglGetPlatformDisplayEXT");
	}
	if (egl->get_display == NULL)
	{
		return sand_fail(
		    err, SAND_ERROR_GPU,
		    "No GPU: %s finds no driver that works without a window (EGL_EXT_platform_base is "
		    "missing); install or update a graphics driver (Debian: libegl-mesa0, libgl1-mesa-dri), or use the "
		    "CPU engine",
		    name);
	}
	bool lists_devices =
	    has_word(extensions, "EGL_EXT_device_base") ||
	    (has_word(extensions, "EGL_EXT_device_enumeration") && has_word(extensions, "EGL_EXT_device_query"));
	if (lists_devices && has_word(extensions, "EGL_EXT_platform_device"))
	{
		egl->query_devices = (PFNEGLQUERYDEVICESEXTPROC)egl->get_proc("eglQueryDevicesEXT");
		egl->query_device_string = (PFNEGLQUERYDEVICESTRINGEXTPROC)egl->get_proc("eglQueryDeviceStringEXT");
	}
	return SAND_OK;
}

/// Hardware devices, software devices, the surfaceless platform: in this order into candidates, at most
/// SAND_GPU_DEVICE_LIMIT. A driver without the device platform has only the last, which is opened when nothing else
/// serves.
static int find_candidates(const Egl *egl, Candidate *candidates)
{
	EGLDeviceEXT devices[SAND_GPU_DEVICE_LIMIT - 1];
	EGLint device_count = 0;
	if (egl->query_devices == NULL || egl->query_device_string == NULL ||
	    !egl->query_devices(SAND_GPU_DEVICE_LIMIT - 1, devices, &device_count))
	{
		device_count = 0;
	}
	int count = 0;
	for (int pass = 0; pass < 2; ++pass)
	{
		for (int i = 0; i < device_count; ++i)
		{
			const char *extensions = egl->query_device_string(devices[i], EGL_EXTENSIONS);
			bool is_software = has_word(extensions, "EGL_MESA_device_software");
			if (is_software == (pass == 1))
			{
				candidates[count++] = (Candidate){devices[i], i, is_software};
			}
		}
	}
	if (has_word(egl->query_string(EGL_NO_DISPLAY, EGL_EXTENSIONS), "EGL_MESA_platform_surfaceless"))
	{
		candidates[count++] = (Candidate){NULL, 0, false};
	}
	return count;
}

// GLEW keeps its entry points for the whole process, so they are loaded once, under a lock; so are the functions of GL
// 1.1, which GLEW leaves to libGL. All come from libEGL, whose entry points serve every context of the process.

typedef void (*Procedure)(void);
static pthread_mutex_t glew_mutex = PTHREAD_MUTEX_INITIALIZER;
static PFNEGLGETPROCADDRESSPROC glew_get_proc; // set once GLEW is being loaded
static bool glew_is_loaded;

static struct
{
	const GLubyte *(GLAPIENTRY *get_string)(GLenum name);
	GLenum(GLAPIENTRY *get_error)(void);
	void(GLAPIENTRY *get_integer)(GLenum name, GLint *value);
	void(GLAPIENTRY *enable)(GLenum name);
	void(GLAPIENTRY *flush)(void);
	void(GLAPIENTRY *finish)(void);
	void(GLAPIENTRY *gen_textures)(GLsizei count, GLuint *names);
	void(GLAPIENTRY *delete_textures)(GLsizei count, const GLuint *names);
	void(GLAPIENTRY *bind_texture)(GLenum target, GLuint name);
	void(GLAPIENTRY *tex_parameter)(GLenum target, GLenum name, GLint value);
	void(GLAPIENTRY *pixel_store)(GLenum name, GLint value);
	void(GLAPIENTRY *get_tex_image)(GLenum target, GLint level, GLenum format, GLenum type, void *texels);
	void(GLAPIENTRY *disable)(GLenum name);
	void(GLAPIENTRY *viewport)(GLint x, GLint y, GLsizei width, GLsizei height);
	bool is_loaded;
} gl_1;

#define LOAD(member, type, name) gl_1.is_loaded = (gl_1.member = (type)egl->get_proc(name)) != NULL && gl_1.is_loaded

static bool load_gl_1(const Egl *egl)
{
	pthread_mutex_lock(&glew_mutex);
	if (!gl_1.is_loaded)
	{
		gl_1.is_loaded = true;
		LOAD(get_string, const GLubyte *(GLAPIENTRY *)(GLenum), "glGetString");
		LOAD(get_error, GLenum(GLAPIENTRY *)(void), "glGetError");
		LOAD(get_integer, void(GLAPIENTRY *)(GLenum, GLint *), "glGetIntegerv");
		LOAD(enable, void(GLAPIENTRY *)(GLenum), "glEnable");
		LOAD(flush, void(GLAPIENTRY *)(void), "glFlush");
		LOAD(finish, void(GLAPIENTRY *)(void), "glFinish");
		LOAD(gen_textures, void(GLAPIENTRY *)(GLsizei, GLuint *), "glGenTextures");
		LOAD(delete_textures, void(GLAPIENTRY *)(GLsizei, const GLuint *), "glDeleteTextures");
		LOAD(bind_texture, void(GLAPIENTRY *)(GLenum, GLuint), "glBindTexture");
		LOAD(tex_parameter, void(GLAPIENTRY *)(GLenum, GLenum, GLint), "glTexParameteri");
		LOAD(pixel_store, void(GLAPIENTRY *)(GLenum, GLint), "glPixelStorei");
		LOAD(get_tex_image, void(GLAPIENTRY *)(GLenum, GLint, GLenum, GLenum, void *), "glGetTexImage");
		LOAD(disable, void(GLAPIENTRY *)(GLenum), "glDisable");
		LOAD(viewport, void(GLAPIENTRY *)(GLint, GLint, GLsizei, GLsizei), "glViewport");
	}
	bool is_loaded = gl_1.is_loaded;
	pthread_mutex_unlock(&glew_mutex);
	return is_loaded;
}

Procedure glXGetProcAddressARB(const GLubyte *name);
Procedure glXGetProcAddressARB(const GLubyte *name)
{
	// Without the functions of GLX, GLEW ends with "GLX 1.1 only" after it has loaded those of GL.
	return strncmp((const char *)name, "glX", 3) == 0 ? NULL : glew_get_proc((const char *)name);
}

int glXQueryVersion(void *display, int *major, int *minor);
int glXQueryVersion(void *display, int *major, int *minor)
{
	(void)display;
	*major = *minor = 0;
	return 0;
}

const char *glXGetClientString(void *display, int name);
const char *glXGetClientString(void *display, int name)
{
	(void)display;
	(void)name;
	return "";
}

static bool load_glew(const Egl *egl)
{
	pthread_mutex_lock(&glew_mutex);
	if (!glew_is_loaded)
	{
		glew_get_proc = egl->get_proc;
		glewExperimental = GL_TRUE; // every entry point, also of versions that this first context does not have
		GLenum result = glewInit();
		glew_is_loaded =
		    result == GLEW_OK || result == GLEW_ERROR_NO_GLX_DISPLAY || result == GLEW_ERROR_GLX_VERSION_11_ONLY;
		glew_is_loaded = glew_is_loaded && glDispatchCompute != NULL && glBindBufferRange != NULL &&
		                 glMemoryBarrier != NULL && glTexBuffer != NULL && glFenceSync != NULL &&
		                 glClearBufferSubData != NULL;
	}
	bool is_loaded = glew_is_loaded;
	pthread_mutex_unlock(&glew_mutex);
	return is_loaded;
}

// A context

static bool has_gl_extension(const char *name)
{
	GLint count = 0;
	gl_1.get_integer(GL_NUM_EXTENSIONS, &count);
	for (GLint i = 0; i < count; ++i)
	{
		const char *extension = (const char *)glGetStringi(GL_EXTENSIONS, (GLuint)i);
		if (extension != NULL && strcmp(extension, name) == 0)
		{
			return true;
		}
	}
	return false;
}

static int gl_int(GLenum name)
{
	GLint value = 0;
	gl_1.get_integer(name, &value);
	return value;
}

static void read_limits(SandGpuLimits *limits)
{
	GLint64 block_bytes = 0;
	glGetInteger64v(GL_MAX_SHADER_STORAGE_BLOCK_SIZE, &block_bytes);
	limits->block_bytes = block_bytes;
	limits->block_alignment = gl_int(GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT);
	limits->block_count = gl_int(GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS);
	limits->binding_count = gl_int(GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS);
	limits->uniform_bytes = gl_int(GL_MAX_UNIFORM_BLOCK_SIZE);
	limits->uniform_alignment = gl_int(GL_UNIFORM_BUFFER_OFFSET_ALIGNMENT);
	limits->uniform_count = gl_int(GL_MAX_COMPUTE_UNIFORM_BLOCKS);
	limits->group_size = gl_int(GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS);
	GLint group_count = 0;
	glGetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_COUNT, 0, &group_count);
	limits->group_count = group_count;
	limits->shared_bytes = gl_int(GL_MAX_COMPUTE_SHARED_MEMORY_SIZE);
	limits->texture_size = gl_int(GL_MAX_3D_TEXTURE_SIZE);
	int compute_units = gl_int(GL_MAX_COMPUTE_TEXTURE_IMAGE_UNITS), units = gl_int(GL_MAX_TEXTURE_IMAGE_UNITS);
	limits->texture_count = compute_units < units ? compute_units : units;
	GLint sizes[2] = {0}, edges[2] = {0};
	gl_1.get_integer(GL_POINT_SIZE_RANGE, sizes);
	gl_1.get_integer(GL_MAX_VIEWPORT_DIMS, edges);
	limits->point_size = sizes[1];
	limits->image_size = gl_int(GL_MAX_TEXTURE_SIZE);
	for (int i = 0; i < 2; ++i)
	{
		limits->image_size = edges[i] < limits->image_size ? edges[i] : limits->image_size;
	}
	limits->unit_count = gl_int(GL_MAX_COMBINED_TEXTURE_IMAGE_UNITS);
	limits->texel_count = gl_int(GL_MAX_TEXTURE_BUFFER_SIZE);
}

/// Errors that GL holds, thrown away; a lost context may report forever.
static void forget_errors(void)
{
	for (int i = 0; i < 16 && gl_1.get_error() != GL_NO_ERROR; ++i)
	{
	}
}

/// The strongest context that the driver gives: robust with resets told, robust, told, plain.
static EGLContext create_context(const Egl *egl, EGLDisplay display, EGLConfig config, bool is_debug, bool has_robust)
{
	for (int attempt = has_robust ? 0 : 3; attempt < 4; ++attempt)
	{
		EGLint attributes[16] = {EGL_CONTEXT_MAJOR_VERSION,       4,
		                         EGL_CONTEXT_MINOR_VERSION,       3,
		                         EGL_CONTEXT_OPENGL_PROFILE_MASK, EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT};
		int count = 6;
		if (attempt == 0 || attempt == 1)
		{
			attributes[count++] = EGL_CONTEXT_OPENGL_ROBUST_ACCESS;
			attributes[count++] = EGL_TRUE;
		}
		if (attempt == 0 || attempt == 2)
		{
			attributes[count++] = EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY;
			attributes[count++] = EGL_LOSE_CONTEXT_ON_RESET;
		}
		if (is_debug && has_robust)
		{
			attributes[count++] = EGL_CONTEXT_OPENGL_DEBUG;
			attributes[count++] = EGL_TRUE;
		}
		attributes[count] = EGL_NONE;
		EGLContext context = egl->create_context(display, config, EGL_NO_CONTEXT, attributes);
		if (context != EGL_NO_CONTEXT)
		{
			return context;
		}
	}
	return EGL_NO_CONTEXT;
}

static void close_context(const Egl *egl, const Context *context)
{
	egl->make_current(context->display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
	egl->destroy_context(context->display, context->context);
}

/// What the current context is and can do. False, with device->reason, when it cannot serve.
static bool describe_context(const Egl *egl, Context *context, SandGpuDevice *device)
{
	if (!load_gl_1(egl))
	{
		snprintf(device->reason, sizeof device->reason, "its driver hands out no GL functions through EGL");
		return false;
	}
	copy_text(device->name, sizeof device->name, (const char *)gl_1.get_string(GL_RENDERER));
	copy_text(device->vendor, sizeof device->vendor, (const char *)gl_1.get_string(GL_VENDOR));
	copy_text(device->driver, sizeof device->driver, (const char *)gl_1.get_string(GL_VERSION));
	GLint major = 0, minor = 0;
	gl_1.get_integer(GL_MAJOR_VERSION, &major);
	gl_1.get_integer(GL_MINOR_VERSION, &minor);
	device->gl_major = major;
	device->gl_minor = minor;
	device->is_software = device->is_software || strstr(device->name, "llvmpipe") != NULL ||
	                      strstr(device->name, "softpipe") != NULL || strstr(device->name, "swrast") != NULL ||
	                      strstr(device->name, "SWR") != NULL;
	if (major * 10 + minor < 43)
	{
		snprintf(device->reason, sizeof device->reason,
		         "it offers OpenGL %d.%d and compute shaders need 4.3: update its driver", major, minor);
		return false;
	}
	if (!load_glew(egl))
	{
		snprintf(device->reason, sizeof device->reason,
		         "its driver lacks functions that OpenGL %d.%d promises: update it", major, minor);
		return false;
	}
	device->is_robust = (gl_int(GL_CONTEXT_FLAGS) & GL_CONTEXT_FLAG_ROBUST_ACCESS_BIT) != 0;
	bool is_45 = major * 10 + minor >= 45;
	if (is_45 || has_gl_extension("GL_KHR_robustness") || has_gl_extension("GL_ARB_robustness"))
	{
		const char *name = is_45                                   ? "glGetGraphicsResetStatus"
		                   : has_gl_extension("GL_KHR_robustness") ? "glGetGraphicsResetStatusKHR"
		                                                           : "glGetGraphicsResetStatusARB";
		context->reset_status = (PFNGLGETGRAPHICSRESETSTATUSPROC)egl->get_proc(name);
		device->tells_resets =
		    context->reset_status != NULL && gl_int(GL_RESET_NOTIFICATION_STRATEGY) == GL_LOSE_CONTEXT_ON_RESET;
	}
	read_limits(&device->limits);
	forget_errors(); // those of GLEW's own looking around
	if (device->limits.block_count < 8 || device->limits.block_bytes <= 0)
	{
		snprintf(device->reason, sizeof device->reason,
		         "a shader of it reads %d storage blocks of %lld bytes, and 8 are needed: update its driver",
		         device->limits.block_count, (long long)device->limits.block_bytes);
		return false;
	}
	device->is_usable = true;
	return true;
}

/// Makes the context of a candidate current on this thread and fills device. False, with device->reason and nothing
/// left current, when that fails.
static bool open_context(const Egl *egl, const SandGpuDesc *desc, const Candidate *candidate, Context *context,
                         SandGpuDevice *device)
{
	*context = (Context){0};
	device->is_software = candidate->is_software;
	if (candidate->device != NULL)
	{
		snprintf(device->platform, sizeof device->platform, "EGL device %d", candidate->device_index);
		context->display = egl->get_display(EGL_PLATFORM_DEVICE_EXT, candidate->device, NULL);
	}
	else
	{
		snprintf(device->platform, sizeof device->platform, "EGL surfaceless");
		context->display = egl->get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
	}
	EGLint major = 0, minor = 0;
	if (context->display == EGL_NO_DISPLAY || !egl->initialize(context->display, &major, &minor))
	{
		snprintf(device->reason, sizeof device->reason,
		         "EGL error 0x%04x when it was initialised: its driver is missing or not allowed to this user",
		         (unsigned)egl->get_error());
		return false;
	}
	const char *extensions = egl->query_string(context->display, EGL_EXTENSIONS);
	bool is_15 = major * 10 + minor >= 15;
	if (!has_word(extensions, "EGL_KHR_surfaceless_context") ||
	    (!is_15 && !has_word(extensions, "EGL_KHR_create_context")) || !egl->bind_api(EGL_OPENGL_API))
	{
		snprintf(device->reason, sizeof device->reason,
		         "its EGL %d.%d makes no OpenGL context without a window: update its driver", major, minor);
		return false;
	}
	EGLConfig config = NULL; // EGL_NO_CONFIG_KHR
	EGLint config_count = 0;
	static const EGLint wanted[] = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_NONE};
	if (!has_word(extensions, "EGL_KHR_no_config_context") &&
	    (!egl->choose_config(context->display, wanted, &config, 1, &config_count) || config_count < 1))
	{
		snprintf(device->reason, sizeof device->reason, "its EGL offers no configuration for OpenGL");
		return false;
	}
	context->context =
	    IS_FAULT(desc, context) ? EGL_NO_CONTEXT : create_context(egl, context->display, config, desc->is_debug, is_15);
	if (context->context == EGL_NO_CONTEXT)
	{
		snprintf(device->reason, sizeof device->reason,
		         "EGL error 0x%04x when an OpenGL 4.3 core context was made: update its driver",
		         (unsigned)egl->get_error());
		return false;
	}
	if (!egl->make_current(context->display, EGL_NO_SURFACE, EGL_NO_SURFACE, context->context))
	{
		snprintf(device->reason, sizeof device->reason, "EGL error 0x%04x when its context was made current",
		         (unsigned)egl->get_error());
		egl->destroy_context(context->display, context->context);
		return false;
	}
	if (!describe_context(egl, context, device))
	{
		close_context(egl, context);
		return false;
	}
	return true;
}

// The list of devices

typedef struct Listing
{
	SandGpuDesc desc;
	SandGpuDevice *devices;
	int capacity;
	int count;
} Listing;

static void *list_main(void *argument)
{
	Listing *listing = argument;
	Egl egl;
	SandError err = {0};
	Candidate candidates[SAND_GPU_DEVICE_LIMIT];
	int count = 0;
	if (open_egl(listing->desc.egl_library, &egl, &err) == SAND_OK)
	{
		count = find_candidates(&egl, candidates);
		if (count == 0)
		{
			(void)sand_fail(&err, SAND_ERROR_GPU,
			                "No GPU: libEGL knows no device and no surfaceless platform; install a graphics driver "
			                "(Debian: libgl1-mesa-dri), or use the CPU engine");
		}
	}
	if (count == 0 && listing->capacity > 0)
	{
		listing->devices[0] = (SandGpuDevice){.number = 1, .platform = "EGL"};
		copy_text(listing->devices[0].reason, SAND_MESSAGE_BYTES, err.message);
		listing->count = 1;
	}
	bool is_any_usable = false;
	for (int i = 0; i < count && i < listing->capacity; ++i)
	{
		SandGpuDevice *device = &listing->devices[i];
		*device = (SandGpuDevice){.number = i + 1};
		Context context;
		if (candidates[i].device == NULL && is_any_usable)
		{
			break;
		}
		if (open_context(&egl, &listing->desc, &candidates[i], &context, device))
		{
			close_context(&egl, &context);
			is_any_usable = true;
		}
		listing->count = i + 1;
	}
	if (count > 0)
	{
		egl.release_thread();
	}
	return NULL;
}

/// A thread that takes no signal: those belong to the program that we live in.
static bool start_thread(pthread_t *thread, void *(*main)(void *), void *argument)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool has_started = pthread_create(thread, NULL, main, argument) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return has_started;
}

SandStatus sand_gpu_list(const SandGpuDesc *desc, SandGpuDevice *devices, int capacity, int *count_out, SandError *err)
{
	Listing listing = {.devices = devices, .capacity = capacity};
	if (desc != NULL)
	{
		listing.desc = *desc;
	}
	*count_out = 0;
	pthread_t thread;
	if (!start_thread(&thread, list_main, &listing))
	{
		return sand_fail(err, SAND_ERROR_MEMORY, "A thread to look for GPUs could not be started; end other programs");
	}
	pthread_join(thread, NULL);
	*count_out = listing.count;
	return SAND_OK;
}

// Failures on the device's thread

static bool is_here(const SandGpu *gpu)
{
	bool is_own = pthread_equal(pthread_self(), gpu->thread) != 0;
	assert(is_own && "gpu is called from outside sand_gpu_run");
	return is_own; // also without asserts nobody may touch the context of another thread, which may be Blender's
}

static SandStatus fail_lost(const SandGpu *gpu, SandError *err)
{
	const char *cause = gpu->lost_cause == GL_GUILTY_CONTEXT_RESET     ? "its work took too long or went wrong"
	                    : gpu->lost_cause == GL_INNOCENT_CONTEXT_RESET ? "another program was the cause"
	                                                                   : "the cause is unknown";
	return sand_fail(err, SAND_ERROR_GPU_LOST,
	                 "The GPU %s was reset by its driver (%s) and everything on it is gone; go on from the last frame, "
	                 "or use the CPU engine",
	                 gpu->info.name, cause);
}

static void lose(SandGpu *gpu, GLenum cause)
{
	gpu->is_lost = true;
	gpu->lost_cause = cause;
	for (int i = 0; i < gpu->object_capacity; ++i)
	{
		if (gpu->objects[i].state == SAND_GPU_VALID)
		{
			gpu->objects[i].state = SAND_GPU_GONE;
		}
	}
	write_log(&gpu->desc, "GPU %s was reset", gpu->info.name);
}

/// The start of every call that returns a status.
static SandStatus enter(const SandGpu *gpu, SandError *err)
{
	if (!is_here(gpu))
	{
		return sand_fail(err, SAND_ERROR_GPU, "The GPU was called from a thread that is not its own; report this");
	}
	return gpu->is_lost ? fail_lost(gpu, err) : SAND_OK;
}

/// The start of every call that records: false when there is nothing to do any more.
static bool is_recording(const SandGpu *gpu)
{
	return is_here(gpu) && !gpu->is_lost && gpu->failure.status == SAND_OK;
}

#define NOTE(gpu, ...) (void)((gpu)->failure.status == SAND_OK ? sand_fail(&(gpu)->failure, __VA_ARGS__) : SAND_OK)

static const char *gl_error_name(GLenum error)
{
	switch (error)
	{
	case GL_INVALID_ENUM:
		return "invalid enum";
	case GL_INVALID_VALUE:
		return "invalid value";
	case GL_INVALID_OPERATION:
		return "invalid operation";
	case GL_OUT_OF_MEMORY:
		return "out of memory";
	case GL_CONTEXT_LOST:
		return "context lost";
	default:
		return "unknown error";
	}
}

/// Errors that GL holds although no call answered for them: counted, logged and noted.
static void take_errors(SandGpu *gpu, const char *where)
{
	for (int i = 0; i < 16; ++i)
	{
		GLenum error = gl_1.get_error();
		if (error == GL_NO_ERROR)
		{
			return;
		}
		if (error == GL_CONTEXT_LOST)
		{
			if (!gpu->is_lost)
			{
				lose(gpu, GL_UNKNOWN_CONTEXT_RESET);
			}
			return;
		}
		atomic_fetch_add(&gpu->error_count, 1);
		write_log(&gpu->desc, "GL error 0x%04x (%s) %s", error, gl_error_name(error), where);
		NOTE(gpu, SAND_ERROR_GPU,
		     "The driver of %s reported '%s' (0x%04x) %s; report this with the driver's version, %s", gpu->info.name,
		     gl_error_name(error), error, where, gpu->info.driver);
	}
}

SandStatus sand_gpu_check(SandGpu *gpu, SandError *err)
{
	SandStatus status = enter(gpu, err);
	if (status == SAND_OK && gpu->failure.status != SAND_OK)
	{
		status = gpu->failure.status;
		if (err != NULL)
		{
			*err = gpu->failure;
		}
	}
	gpu->failure = (SandError){0};
	return status;
}

SandStatus sand_gpu_poll(SandGpu *gpu, SandError *err)
{
	SandStatus status = enter(gpu, err);
	if (status != SAND_OK)
	{
		return status;
	}
	GLenum cause = IS_FAULT(&gpu->desc, reset)         ? GL_UNKNOWN_CONTEXT_RESET
	               : gpu->context.reset_status != NULL ? gpu->context.reset_status()
	                                                   : GL_NO_ERROR;
	if (cause != GL_NO_ERROR)
	{
		lose(gpu, cause);
		return fail_lost(gpu, err);
	}
	return SAND_OK;
}

// Objects

static void delete_gl(SandGpu *gpu, const Object *object)
{
	(void)gpu;
	switch (object->kind)
	{
	case KIND_BUFFER:
	case KIND_READ:
		gl_1.delete_textures(3, object->texels);
		glDeleteBuffers(1, &object->name);
		break;
	case KIND_TEXTURE:
		gl_1.delete_textures(1, &object->name);
		break;
	case KIND_PROGRAM:
		glDeleteProgram(object->name);
		break;
	case KIND_TARGET:
		glDeleteFramebuffers(1, &object->name);
		break;
	default:
		break;
	}
	if (object->sync != NULL)
	{
		glDeleteSync(object->sync);
	}
}

/// A free slot as a FAILED object of that kind, or NULL for want of memory.
static Object *add_object(SandGpu *gpu, Kind kind, const char *label, uint32_t *id_out, SandError *err)
{
	*id_out = 0;
	int slot = 0;
	while (slot < gpu->object_capacity && gpu->objects[slot].kind != KIND_NONE)
	{
		++slot;
	}
	if (slot == gpu->object_capacity)
	{
		int capacity = slot == 0 ? 32 : slot * 2 > OBJECT_LIMIT ? OBJECT_LIMIT : slot * 2;
		Object *objects = slot == OBJECT_LIMIT ? NULL : sand_alloc((size_t)capacity, sizeof(*objects));
		if (objects == NULL)
		{
			(void)sand_fail_memory(err, (size_t)capacity * sizeof(*objects), "the table of GPU objects");
			return NULL;
		}
		if (slot > 0)
		{
			memcpy(objects, gpu->objects, (size_t)slot * sizeof(*objects));
		}
		sand_free(gpu->objects);
		gpu->objects = objects;
		gpu->object_capacity = capacity;
	}
	Object *object = &gpu->objects[slot];
	uint32_t generation = object->generation % 0xffffu + 1;
	*object = (Object){.kind = kind, .state = SAND_GPU_FAILED, .generation = generation};
	copy_text(object->label, sizeof object->label, label != NULL ? label : "unnamed");
	atomic_fetch_add(&gpu->counts[kind], 1);
	*id_out = generation << 16 | (uint32_t)(slot + 1);
	return object;
}

static Object *find_object(SandGpu *gpu, Kind kind, uint32_t id)
{
	uint32_t slot = (id & 0xffffu) - 1u;
	if (id == 0 || slot >= (uint32_t)gpu->object_capacity)
	{
		return NULL;
	}
	Object *object = &gpu->objects[slot];
	return object->kind == kind && object->generation == id >> 16 ? object : NULL;
}

static void remove_object(SandGpu *gpu, Object *object)
{
	if (!gpu->is_lost)
	{
		delete_gl(gpu, object);
	}
	atomic_fetch_sub(&gpu->counts[object->kind], 1);
	atomic_fetch_sub(&gpu->byte_count, object->byte_count);
	*object = (Object){.generation = object->generation};
}

static void destroy_object(SandGpu *gpu, Kind kind, uint32_t id)
{
	if (is_here(gpu))
	{
		Object *object = find_object(gpu, kind, id);
		if (object != NULL)
		{
			remove_object(gpu, object);
		}
	}
}

static SandGpuState object_state(SandGpu *gpu, Kind kind, uint32_t id)
{
	const Object *object = is_here(gpu) ? find_object(gpu, kind, id) : NULL;
	return object != NULL ? object->state : SAND_GPU_NONE;
}

/// A valid object for a recording call, or NULL with a note.
static Object *need_object(SandGpu *gpu, Kind kind, uint32_t id, const char *use)
{
	static const char *const kinds[KIND_COUNT] = {"object", "buffer",    "texture", "program",
	                                              "fence",  "read-back", "target"};
	Object *object = find_object(gpu, kind, id);
	if (object == NULL)
	{
		NOTE(gpu, SAND_ERROR_GPU, "A %s that does not exist was to be %s; report this", kinds[kind], use);
		return NULL;
	}
	if (object->state != SAND_GPU_VALID)
	{
		NOTE(gpu, SAND_ERROR_GPU, "The %s '%s' could not be made and was to be %s; see the failure before this one",
		     kinds[kind], object->label, use);
		return NULL;
	}
	return object;
}

/// The answer to an allocation, from the error that GL holds after it.
static SandStatus settle_allocation(SandGpu *gpu, Object *object, const char *kind, int64_t byte_count, bool is_failed,
                                    SandError *err)
{
	GLenum error = gl_1.get_error();
	if (is_failed)
	{
		error = GL_OUT_OF_MEMORY;
	}
	if (error == GL_CONTEXT_LOST)
	{
		lose(gpu, GL_UNKNOWN_CONTEXT_RESET);
		return fail_lost(gpu, err);
	}
	if (error == GL_OUT_OF_MEMORY)
	{
		return sand_fail(err, SAND_ERROR_GPU_MEMORY,
		                 "The GPU %s has no room for the %s '%s' of %.1f MiB beside %.1f MiB in use; close other "
		                 "programs, use fewer grains, or use the CPU engine",
		                 gpu->info.name, kind, object->label, (double)byte_count / 1048576.0,
		                 (double)atomic_load(&gpu->byte_count) / 1048576.0);
	}
	if (error != GL_NO_ERROR)
	{
		return sand_fail(err, SAND_ERROR_GPU,
		                 "The driver of %s refused the %s '%s' of %lld bytes (%s, 0x%04x); report this with the "
		                 "driver's version, %s",
		                 gpu->info.name, kind, object->label, (long long)byte_count, gl_error_name(error), error,
		                 gpu->info.driver);
	}
	object->state = SAND_GPU_VALID;
	object->byte_count = byte_count;
	atomic_fetch_add(&gpu->byte_count, byte_count);
	return SAND_OK;
}

static void set_label(GLenum kind, const Object *object)
{
	glObjectLabel(kind, object->name, -1, object->label);
}

// Buffers

static SandStatus create_buffer(SandGpu *gpu, Kind kind, int64_t byte_count, const char *label, uint32_t *id_out,
                                SandError *err)
{
	*id_out = 0;
	SandStatus status = enter(gpu, err);
	if (status != SAND_OK)
	{
		return status;
	}
	if (byte_count <= 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The GPU buffer '%s' has %lld bytes, expected 1 or more", label,
		                 (long long)byte_count);
	}
	Object *object = add_object(gpu, kind, label, id_out, err);
	if (object == NULL)
	{
		return SAND_ERROR_MEMORY;
	}
	int64_t limit = gpu->info.limits.block_bytes;
	if (kind == KIND_BUFFER && byte_count > limit - 3)
	{
		return sand_fail(err, SAND_ERROR_GPU_MEMORY,
		                 "The GPU buffer '%s' would take %lld bytes (%.1f MiB) and %s takes at most %lld (%.1f MiB) in "
		                 "one; use fewer grains, or the CPU engine",
		                 object->label, (long long)byte_count, (double)byte_count / 1048576.0, gpu->info.name,
		                 (long long)limit, (double)limit / 1048576.0);
	}
	byte_count = (byte_count + 3) / 4 * 4;
	take_errors(gpu, "before a buffer was made");
	bool is_failed = IS_FAULT(&gpu->desc, buffer);
	glGenBuffers(1, &object->name);
	if (!is_failed)
	{
		glBindBuffer(GL_COPY_WRITE_BUFFER, object->name);
		set_label(GL_BUFFER, object);
		glBufferData(GL_COPY_WRITE_BUFFER, byte_count, NULL, kind == KIND_READ ? GL_STREAM_READ : GL_DYNAMIC_COPY);
	}
	status = settle_allocation(gpu, object, "buffer", byte_count, is_failed, err);
	if (status == SAND_OK && kind == KIND_BUFFER)
	{
		GLuint zero = 0;
		glClearBufferData(GL_COPY_WRITE_BUFFER, GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT, &zero);
	}
	return status;
}

SandStatus sand_gpu_buffer_create(SandGpu *gpu, int64_t byte_count, const char *label, SandGpuBuffer *buffer_out,
                                  SandError *err)
{
	return create_buffer(gpu, KIND_BUFFER, byte_count, label, &buffer_out->id, err);
}

void sand_gpu_buffer_destroy(SandGpu *gpu, SandGpuBuffer buffer)
{
	destroy_object(gpu, KIND_BUFFER, buffer.id);
}

SandGpuState sand_gpu_buffer_state(SandGpu *gpu, SandGpuBuffer buffer)
{
	return object_state(gpu, KIND_BUFFER, buffer.id);
}

int64_t sand_gpu_buffer_bytes(SandGpu *gpu, SandGpuBuffer buffer)
{
	const Object *object = is_here(gpu) ? find_object(gpu, KIND_BUFFER, buffer.id) : NULL;
	return object != NULL && object->state == SAND_GPU_VALID ? object->byte_count : 0;
}

/// Whether the range lies in the object, with a note when it does not.
static bool has_range(SandGpu *gpu, const Object *object, int64_t offset, int64_t byte_count, int64_t alignment,
                      const char *use)
{
	if (offset < 0 || byte_count < 0 || byte_count > object->byte_count || offset > object->byte_count - byte_count ||
	    offset % alignment != 0)
	{
		NOTE(
		    gpu, SAND_ERROR_GPU,
		    "Bytes %lld to %lld of the GPU buffer '%s' were to be %s: it has %lld, and the start must be a multiple of "
		    "%lld; report this",
		    (long long)offset, (long long)(offset + byte_count), object->label, use, (long long)object->byte_count,
		    (long long)alignment);
		return false;
	}
	return true;
}

void sand_gpu_upload(SandGpu *gpu, SandGpuBuffer buffer, int64_t offset, const void *bytes, int64_t byte_count)
{
	const Object *object = is_recording(gpu) ? need_object(gpu, KIND_BUFFER, buffer.id, "written") : NULL;
	if (object != NULL && has_range(gpu, object, offset, byte_count, 1, "written") && byte_count > 0)
	{
		glBindBuffer(GL_COPY_WRITE_BUFFER, object->name);
		glBufferSubData(GL_COPY_WRITE_BUFFER, offset, byte_count, bytes);
	}
}

void sand_gpu_fill(SandGpu *gpu, SandGpuBuffer buffer, int64_t offset, int64_t byte_count, uint32_t word)
{
	const Object *object = is_recording(gpu) ? need_object(gpu, KIND_BUFFER, buffer.id, "filled") : NULL;
	if (object != NULL && has_range(gpu, object, offset, byte_count, 4, "filled") && byte_count > 0)
	{
		if (byte_count % 4 != 0)
		{
			NOTE(gpu, SAND_ERROR_GPU, "%lld bytes of the GPU buffer '%s' were to be filled with words; report this",
			     (long long)byte_count, object->label);
			return;
		}
		glBindBuffer(GL_COPY_WRITE_BUFFER, object->name);
		glClearBufferSubData(GL_COPY_WRITE_BUFFER, GL_R32UI, offset, byte_count, GL_RED_INTEGER, GL_UNSIGNED_INT,
		                     &word);
	}
}

static void copy_range(const Object *from, int64_t from_offset, const Object *to, int64_t to_offset, int64_t byte_count)
{
	glBindBuffer(GL_COPY_READ_BUFFER, from->name);
	glBindBuffer(GL_COPY_WRITE_BUFFER, to->name);
	glCopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, from_offset, to_offset, byte_count);
}

void sand_gpu_copy(SandGpu *gpu, SandGpuBuffer from, int64_t from_offset, SandGpuBuffer to, int64_t to_offset,
                   int64_t byte_count)
{
	if (!is_recording(gpu))
	{
		return;
	}
	const Object *source = need_object(gpu, KIND_BUFFER, from.id, "copied");
	const Object *target = need_object(gpu, KIND_BUFFER, to.id, "copied to");
	if (source != NULL && target != NULL && has_range(gpu, source, from_offset, byte_count, 1, "copied") &&
	    has_range(gpu, target, to_offset, byte_count, 1, "copied to") && byte_count > 0)
	{
		if (source == target && from_offset < to_offset + byte_count && to_offset < from_offset + byte_count)
		{
			NOTE(gpu, SAND_ERROR_GPU, "Overlapping ranges of the GPU buffer '%s' were to be copied; report this",
			     source->label);
			return;
		}
		copy_range(source, from_offset, target, to_offset, byte_count);
	}
}

SandStatus sand_gpu_download(SandGpu *gpu, SandGpuBuffer buffer, int64_t offset, void *bytes_out, int64_t byte_count,
                             SandError *err)
{
	SandStatus status = sand_gpu_check(gpu, err);
	if (status != SAND_OK)
	{
		return status;
	}
	const Object *object = need_object(gpu, KIND_BUFFER, buffer.id, "read");
	if (object != NULL && has_range(gpu, object, offset, byte_count, 1, "read") && byte_count > 0)
	{
		glBindBuffer(GL_COPY_READ_BUFFER, object->name);
		glGetBufferSubData(GL_COPY_READ_BUFFER, offset, byte_count, bytes_out);
		take_errors(gpu, "while a buffer was read");
	}
	return sand_gpu_check(gpu, err);
}

// Textures and images

/// Binds a new texture and says how it is sampled.
static void begin_texture(const Object *object, bool is_linear)
{
	static const GLenum edges[] = {GL_TEXTURE_WRAP_S, GL_TEXTURE_WRAP_T, GL_TEXTURE_WRAP_R};
	glActiveTexture(GL_TEXTURE0);
	gl_1.bind_texture(object->target, object->name);
	set_label(GL_TEXTURE, object);
	gl_1.tex_parameter(object->target, GL_TEXTURE_MIN_FILTER, is_linear ? GL_LINEAR : GL_NEAREST);
	gl_1.tex_parameter(object->target, GL_TEXTURE_MAG_FILTER, is_linear ? GL_LINEAR : GL_NEAREST);
	for (int i = 0; i < (object->target == GL_TEXTURE_3D ? 3 : 2); ++i)
	{
		gl_1.tex_parameter(object->target, edges[i], GL_CLAMP_TO_EDGE);
	}
	gl_1.tex_parameter(object->target, GL_TEXTURE_MAX_LEVEL, 0);
}

SandStatus sand_gpu_texture_create(SandGpu *gpu, const SandGpuTextureDesc *desc, SandGpuTexture *texture_out,
                                   SandError *err)
{
	texture_out->id = 0;
	SandStatus status = enter(gpu, err);
	if (status != SAND_OK)
	{
		return status;
	}
	int limit = gpu->info.limits.texture_size;
	if (desc->width < 1 || desc->height < 1 || desc->depth < 1)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The GPU texture '%s' has %d x %d x %d texels, expected 1 or more",
		                 desc->label, desc->width, desc->height, desc->depth);
	}
	Object *object = add_object(gpu, KIND_TEXTURE, desc->label, &texture_out->id, err);
	if (object == NULL)
	{
		return SAND_ERROR_MEMORY;
	}
	if (desc->width > limit || desc->height > limit || desc->depth > limit)
	{
		return sand_fail(
		    err, SAND_ERROR_GPU_MEMORY,
		    "The GPU texture '%s' would have %d x %d x %d texels and %s takes at most %d along an edge; use a "
		    "coarser field, or the CPU engine",
		    object->label, desc->width, desc->height, desc->depth, gpu->info.name, limit);
	}
	int64_t byte_count = (int64_t)desc->width * desc->height * desc->depth * 4;
	take_errors(gpu, "before a texture was made");
	bool is_failed = IS_FAULT(&gpu->desc, texture);
	void *zeros = NULL;
	if (desc->texels == NULL && (zeros = sand_alloc((size_t)byte_count, 1)) == NULL)
	{
		return sand_fail_memory(err, (size_t)byte_count, "an empty texture");
	}
	gl_1.gen_textures(1, &object->name);
	object->target = GL_TEXTURE_3D;
	if (!is_failed)
	{
		begin_texture(object, desc->is_linear);
		gl_1.pixel_store(GL_UNPACK_ALIGNMENT, 4);
		glTexImage3D(GL_TEXTURE_3D, 0, GL_R32F, desc->width, desc->height, desc->depth, 0, GL_RED, GL_FLOAT,
		             zeros != NULL ? zeros : desc->texels);
	}
	sand_free(zeros);
	return settle_allocation(gpu, object, "texture", byte_count, is_failed, err);
}

void sand_gpu_texture_destroy(SandGpu *gpu, SandGpuTexture texture)
{
	destroy_object(gpu, KIND_TEXTURE, texture.id);
}

SandGpuState sand_gpu_texture_state(SandGpu *gpu, SandGpuTexture texture)
{
	return object_state(gpu, KIND_TEXTURE, texture.id);
}

static const struct
{
	GLenum inside, format, type;
	int byte_count;
} formats[SAND_GPU_FORMAT_COUNT] = {
    [SAND_GPU_RGBA8] = {GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, 4},
    [SAND_GPU_RGBA32F] = {GL_RGBA32F, GL_RGBA, GL_FLOAT, 16},
    [SAND_GPU_R32F] = {GL_R32F, GL_RED, GL_FLOAT, 4},
    [SAND_GPU_DEPTH32F] = {GL_DEPTH_COMPONENT32F, GL_DEPTH_COMPONENT, GL_FLOAT, 4},
};

SandStatus sand_gpu_image_create(SandGpu *gpu, const SandGpuImageDesc *desc, SandGpuTexture *texture_out,
                                 SandError *err)
{
	assert((unsigned)desc->format < SAND_GPU_FORMAT_COUNT);
	assert(!desc->is_compared || desc->format == SAND_GPU_DEPTH32F);
	texture_out->id = 0;
	SandStatus status = enter(gpu, err);
	if (status != SAND_OK)
	{
		return status;
	}
	if (desc->width < 1 || desc->height < 1)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The GPU image '%s' has %d x %d texels, expected 1 or more",
		                 desc->label, desc->width, desc->height);
	}
	Object *object = add_object(gpu, KIND_TEXTURE, desc->label, &texture_out->id, err);
	if (object == NULL)
	{
		return SAND_ERROR_MEMORY;
	}
	int limit = gpu->info.limits.image_size;
	if (desc->width > limit || desc->height > limit)
	{
		return sand_fail(err, SAND_ERROR_GPU_MEMORY,
		                 "The GPU image '%s' would have %d x %d texels and %s takes at most %d along an edge; use a "
		                 "smaller picture",
		                 object->label, desc->width, desc->height, gpu->info.name, limit);
	}
	int64_t byte_count = (int64_t)desc->width * desc->height * formats[desc->format].byte_count;
	take_errors(gpu, "before an image was made");
	bool is_failed = IS_FAULT(&gpu->desc, texture);
	gl_1.gen_textures(1, &object->name);
	object->target = GL_TEXTURE_2D;
	object->width = desc->width;
	object->height = desc->height;
	object->format = desc->format;
	if (!is_failed)
	{
		begin_texture(object, desc->is_linear);
		if (desc->is_compared)
		{
			gl_1.tex_parameter(GL_TEXTURE_2D, GL_TEXTURE_COMPARE_MODE, GL_COMPARE_REF_TO_TEXTURE);
			gl_1.tex_parameter(GL_TEXTURE_2D, GL_TEXTURE_COMPARE_FUNC, GL_LEQUAL);
		}
		glTexStorage2D(GL_TEXTURE_2D, 1, formats[desc->format].inside, desc->width, desc->height);
	}
	return settle_allocation(gpu, object, "image", byte_count, is_failed, err);
}

/// An image for a call about one, or NULL with a note.
static Object *need_image(SandGpu *gpu, SandGpuTexture image, const char *use)
{
	Object *object = need_object(gpu, KIND_TEXTURE, image.id, use);
	if (object != NULL && object->target != GL_TEXTURE_2D)
	{
		NOTE(gpu, SAND_ERROR_GPU, "The GPU texture '%s' is no image and was to be %s; report this", object->label, use);
		return NULL;
	}
	return object;
}

SandStatus sand_gpu_image_read(SandGpu *gpu, SandGpuTexture image, void *bytes_out, int64_t byte_count, SandError *err)
{
	SandStatus status = sand_gpu_check(gpu, err);
	if (status != SAND_OK)
	{
		return status;
	}
	const Object *object = need_image(gpu, image, "read");
	if (object != NULL && has_range(gpu, object, 0, byte_count, 1, "read"))
	{
		if (byte_count != object->byte_count)
		{
			return sand_fail(err, SAND_ERROR_GPU,
			                 "%lld bytes of the GPU image '%s' were to be read, and it has %lld; report this",
			                 (long long)byte_count, object->label, (long long)object->byte_count);
		}
		glActiveTexture(GL_TEXTURE0);
		gl_1.bind_texture(GL_TEXTURE_2D, object->name);
		gl_1.pixel_store(GL_PACK_ALIGNMENT, 4);
		gl_1.get_tex_image(GL_TEXTURE_2D, 0, formats[object->format].format, formats[object->format].type, bytes_out);
		take_errors(gpu, "while an image was read");
	}
	return sand_gpu_check(gpu, err);
}

// Targets

/// Attaches an image; false with a note when it does not belong there.
static bool attach_image(SandGpu *gpu, Object *target, SandGpuTexture image, GLenum place)
{
	const Object *object = need_image(gpu, image, "drawn into");
	if (object == NULL)
	{
		return false;
	}
	bool is_first = target->width == 0;
	bool is_depth = place == GL_DEPTH_ATTACHMENT;
	if (is_depth != (object->format == SAND_GPU_DEPTH32F) ||
	    (!is_first && (object->width != target->width || object->height != target->height)))
	{
		NOTE(gpu, SAND_ERROR_GPU,
		     "The image '%s' of %d x %d texels does not fit the target '%s' of %d x %d, or is no %s; report this",
		     object->label, object->width, object->height, target->label, target->width, target->height,
		     is_depth ? "depth" : "colour");
		return false;
	}
	target->width = object->width;
	target->height = object->height;
	glFramebufferTexture2D(GL_FRAMEBUFFER, place, GL_TEXTURE_2D, object->name, 0);
	return true;
}

SandStatus sand_gpu_target_create(SandGpu *gpu, const SandGpuTargetDesc *desc, SandGpuTarget *target_out,
                                  SandError *err)
{
	assert(desc->colour_count >= 0 && desc->colour_count <= SAND_GPU_COLOUR_LIMIT);
	target_out->id = 0;
	SandStatus status = sand_gpu_check(gpu, err);
	if (status != SAND_OK)
	{
		return status;
	}
	Object *object = add_object(gpu, KIND_TARGET, desc->label, &target_out->id, err);
	if (object == NULL)
	{
		return SAND_ERROR_MEMORY;
	}
	take_errors(gpu, "before a target was made");
	glGenFramebuffers(1, &object->name);
	glBindFramebuffer(GL_FRAMEBUFFER, object->name);
	set_label(GL_FRAMEBUFFER, object);
	static const GLenum places[SAND_GPU_COLOUR_LIMIT] = {GL_COLOR_ATTACHMENT0, GL_COLOR_ATTACHMENT1,
	                                                     GL_COLOR_ATTACHMENT2, GL_COLOR_ATTACHMENT3};
	bool is_whole = true;
	for (int i = 0; i < desc->colour_count && is_whole; ++i)
	{
		is_whole = attach_image(gpu, object, desc->colours[i], places[i]);
	}
	object->has_depth = desc->depth.id != 0;
	is_whole = is_whole && (!object->has_depth || attach_image(gpu, object, desc->depth, GL_DEPTH_ATTACHMENT));
	if (is_whole)
	{
		object->colour_count = desc->colour_count;
		glDrawBuffers(desc->colour_count, places);
		GLenum state = glCheckFramebufferStatus(GL_FRAMEBUFFER);
		if (state != GL_FRAMEBUFFER_COMPLETE || IS_FAULT(&gpu->desc, target))
		{
			NOTE(gpu, SAND_ERROR_GPU,
			     "The driver of %s does not draw into the target '%s' of %d x %d texels (state 0x%04x); report this "
			     "with the driver's version, %s",
			     gpu->info.name, object->label, object->width, object->height, state, gpu->info.driver);
		}
	}
	take_errors(gpu, "while a target was made");
	status = sand_gpu_check(gpu, err);
	object->state = status == SAND_OK ? SAND_GPU_VALID : object->state;
	return status;
}

void sand_gpu_target_destroy(SandGpu *gpu, SandGpuTarget target)
{
	destroy_object(gpu, KIND_TARGET, target.id);
}

SandGpuState sand_gpu_target_state(SandGpu *gpu, SandGpuTarget target)
{
	return object_state(gpu, KIND_TARGET, target.id);
}

void sand_gpu_target_clear(SandGpu *gpu, SandGpuTarget target, const float colour[4])
{
	const Object *object = is_recording(gpu) ? need_object(gpu, KIND_TARGET, target.id, "cleared") : NULL;
	if (object != NULL)
	{
		glBindFramebuffer(GL_FRAMEBUFFER, object->name);
		for (int i = 0; i < object->colour_count; ++i)
		{
			glClearBufferfv(GL_COLOR, i, colour);
		}
		if (object->has_depth)
		{
			GLfloat far_away = 1;
			glClearBufferfv(GL_DEPTH, 0, &far_away);
		}
	}
}

// Programs

const char *sand_gpu_shader_name(int index)
{
	return index >= 0 && index < SHADER_COUNT ? shaders[index].name : NULL;
}

/// Takes the line from "source:line" or "source(line" in the driver's words, whose dialects differ in the rest.
static int find_line(const char *text)
{
	for (const char *at = text; *at != '\0' && *at != '\n'; ++at)
	{
		int source = 0, line = 0;
		if (*at >= '0' && *at <= '9' && sscanf(at, "%d%*1[:(]%d", &source, &line) == 2)
		{
			return line;
		}
	}
	return 0;
}

/// The file that a line number stands for, as shaders/embed.py counts; NULL when it is none.
static const char *source_of(const char *name, int line)
{
	const char *sources[] = {"its defines", "layout.h", "common.glsl", name};
	int file = line / LINES_PER_FILE, included = (int)(sizeof shader_includes / sizeof shader_includes[0]) - 1;
	return line <= 0 ? NULL : file < 4 ? sources[file] : file - 4 < included ? shader_includes[file - 4] : NULL;
}

/// The sentence about a shader that was refused; words are the driver's, all lines.
static SandStatus fail_shader(const SandGpu *gpu, const char *name, const char *verb, const char *words, SandError *err)
{
	const char *fault = strstr(words, "error");
	fault = fault != NULL ? fault : strstr(words, "ERROR");
	fault = fault != NULL ? fault : words;
	const char *start = fault;
	while (start > words && start[-1] != '\n')
	{
		--start;
	}
	int length = (int)strcspn(fault, "\r\n");
	int line = find_line(start);
	const char *source = source_of(name, line);
	char place[LABEL_BYTES + 32] = "";
	if (source != NULL)
	{
		snprintf(place, sizeof place, " at %s line %d", source, line % LINES_PER_FILE);
	}
	write_log(&gpu->desc, "%s does not %s: %s", name, verb, words);
	return sand_fail(err, SAND_ERROR_GPU, "The shader %s does not %s%s: \"%.*s\"; report this with the driver, %s, %s",
	                 name, verb, place, length > 200 ? 200 : length, fault, gpu->info.name, gpu->info.driver);
}

/// One shader of a program.
typedef struct Stage
{
	GLenum kind;
	const char *name, *text;
	const char *define;
} Stage;

/// The GL name of the compiled shader in *shader_out, 0 when it fails.
static SandStatus compile_stage(const SandGpu *gpu, const Stage *stage, const char *defines, GLuint *shader_out,
                                SandError *err)
{
	const char *parts[] = {"#version 430 core\n#define SAND_GLSL 1\n",
	                       stage->define,
	                       defines != NULL ? defines : "",
	                       shader_prelude,
	                       "#line 300001\n",
	                       stage->text};
	GLint is_good = GL_FALSE;
	GLuint shader = glCreateShader(stage->kind);
	glShaderSource(shader, 6, parts, NULL);
	glCompileShader(shader);
	glGetShaderiv(shader, GL_COMPILE_STATUS, &is_good);
	*shader_out = is_good ? shader : 0;
	if (is_good)
	{
		return SAND_OK;
	}
	char words[2048] = "";
	glGetShaderInfoLog(shader, sizeof words, NULL, words);
	glDeleteShader(shader);
	return fail_shader(gpu, stage->name, "compile", words, err);
}

static SandStatus link_program(SandGpu *gpu, Object *object, const Stage *stages, int stage_count, const char *defines,
                               SandError *err)
{
	if (IS_FAULT(&gpu->desc, program))
	{
		return fail_shader(gpu, object->label, "compile", "0:300001(1): error: refused by a test", err);
	}
	GLuint names[2] = {0};
	SandStatus status = SAND_OK;
	for (int i = 0; i < stage_count && status == SAND_OK; ++i)
	{
		status = compile_stage(gpu, &stages[i], defines, &names[i], err);
	}
	if (status == SAND_OK)
	{
		object->name = glCreateProgram();
		for (int i = 0; i < stage_count; ++i)
		{
			glAttachShader(object->name, names[i]);
		}
		glLinkProgram(object->name);
		for (int i = 0; i < stage_count; ++i)
		{
			glDetachShader(object->name, names[i]);
		}
	}
	for (int i = 0; i < stage_count; ++i)
	{
		glDeleteShader(names[i]); // 0 is fine
	}
	if (status != SAND_OK)
	{
		return status;
	}
	GLint is_good = GL_FALSE;
	glGetProgramiv(object->name, GL_LINK_STATUS, &is_good);
	if (!is_good)
	{
		char words[2048] = "";
		glGetProgramInfoLog(object->name, sizeof words, NULL, words);
		return fail_shader(gpu, object->label, "link", words, err);
	}
	if (stage_count == 1)
	{
		GLint size[3] = {0};
		glGetProgramiv(object->name, GL_COMPUTE_WORK_GROUP_SIZE, size);
		object->group_size = size[0];
	}
	set_label(GL_PROGRAM, object);
	object->state = SAND_GPU_VALID;
	return SAND_OK;
}

/// The text of a shader, given or embedded; NULL with the sentence.
static const char *find_text(const char *name, const char *text, SandError *err)
{
	for (int i = 0; i < SHADER_COUNT && text == NULL; ++i)
	{
		text = strcmp(shaders[i].name, name) == 0 ? shaders[i].text : NULL;
	}
	if (text == NULL)
	{
		(void)sand_fail(err, SAND_ERROR_ARGUMENT, "There is no shader '%s' in this build; meson.build lists them",
		                name);
	}
	return text;
}

SandStatus sand_gpu_program_create(SandGpu *gpu, const SandGpuProgramDesc *desc, SandGpuProgram *program_out,
                                   SandError *err)
{
	program_out->id = 0;
	SandStatus status = enter(gpu, err);
	if (status != SAND_OK)
	{
		return status;
	}
	bool draws = desc->fragment != NULL;
	Stage stages[2] = {
	    {draws ? GL_VERTEX_SHADER : GL_COMPUTE_SHADER, desc->name, NULL, draws ? "#define SAND_VERTEX 1\n" : ""},
	    {GL_FRAGMENT_SHADER, desc->fragment, NULL, "#define SAND_FRAGMENT 1\n"}};
	stages[0].text = find_text(desc->name, desc->text, err);
	if (stages[0].text == NULL ||
	    (draws && (stages[1].text = find_text(desc->fragment, desc->fragment_text, err)) == NULL))
	{
		return SAND_ERROR_ARGUMENT;
	}
	Object *object = add_object(gpu, KIND_PROGRAM, desc->name, &program_out->id, err);
	if (object == NULL)
	{
		return SAND_ERROR_MEMORY;
	}
	take_errors(gpu, "before a program was made");
	status = link_program(gpu, object, stages, draws ? 2 : 1, desc->defines, err);
	if (status == SAND_OK)
	{
		take_errors(gpu, "while a program was made");
		status = sand_gpu_check(gpu, err);
		if (status != SAND_OK && object->state == SAND_GPU_VALID)
		{
			object->state = SAND_GPU_FAILED;
		}
	}
	return status;
}

void sand_gpu_program_destroy(SandGpu *gpu, SandGpuProgram program)
{
	destroy_object(gpu, KIND_PROGRAM, program.id);
}

SandGpuState sand_gpu_program_state(SandGpu *gpu, SandGpuProgram program)
{
	return object_state(gpu, KIND_PROGRAM, program.id);
}

int sand_gpu_program_group_size(SandGpu *gpu, SandGpuProgram program)
{
	const Object *object = is_here(gpu) ? find_object(gpu, KIND_PROGRAM, program.id) : NULL;
	return object != NULL && object->state == SAND_GPU_VALID ? object->group_size : 0;
}

// Binding and dispatch

static void bind_range(SandGpu *gpu, GLenum target, int binding, int binding_limit, int alignment, int64_t byte_limit,
                       SandGpuBuffer buffer, int64_t offset, int64_t byte_count)
{
	const Object *object = is_recording(gpu) ? need_object(gpu, KIND_BUFFER, buffer.id, "bound") : NULL;
	if (object == NULL)
	{
		return;
	}
	byte_count = byte_count == 0 ? object->byte_count - offset : byte_count;
	if (binding < 0 || binding >= binding_limit || byte_count > byte_limit || byte_count <= 0)
	{
		NOTE(gpu, SAND_ERROR_GPU,
		     "%lld bytes of the GPU buffer '%s' were to be bound to %d: %s has %d bindings of 1 to %lld bytes; report "
		     "this",
		     (long long)byte_count, object->label, binding, gpu->info.name, binding_limit, (long long)byte_limit);
		return;
	}
	if (has_range(gpu, object, offset, byte_count, alignment > 0 ? alignment : 1, "bound"))
	{
		glBindBufferRange(target, (GLuint)binding, object->name, offset, byte_count);
	}
}

void sand_gpu_bind(SandGpu *gpu, int binding, SandGpuBuffer buffer, int64_t offset, int64_t byte_count)
{
	const SandGpuLimits *limits = &gpu->info.limits;
	bind_range(gpu, GL_SHADER_STORAGE_BUFFER, binding, limits->binding_count, limits->block_alignment,
	           limits->block_bytes, buffer, offset, byte_count);
}

void sand_gpu_bind_uniform(SandGpu *gpu, int binding, SandGpuBuffer buffer, int64_t offset, int64_t byte_count)
{
	const SandGpuLimits *limits = &gpu->info.limits;
	bind_range(gpu, GL_UNIFORM_BUFFER, binding, limits->uniform_count, limits->uniform_alignment, limits->uniform_bytes,
	           buffer, offset, byte_count);
}

void sand_gpu_bind_texture(SandGpu *gpu, int unit, SandGpuTexture texture)
{
	const Object *object = is_recording(gpu) ? need_object(gpu, KIND_TEXTURE, texture.id, "bound") : NULL;
	if (object == NULL)
	{
		return;
	}
	if (unit < 0 || unit >= gpu->info.limits.texture_count)
	{
		NOTE(gpu, SAND_ERROR_GPU, "The GPU texture '%s' was to be bound to unit %d of %d; report this", object->label,
		     unit, gpu->info.limits.texture_count);
		return;
	}
	glActiveTexture(GL_TEXTURE0 + (GLenum)unit);
	gl_1.bind_texture(object->target, object->name);
}

void sand_gpu_bind_texels(SandGpu *gpu, int unit, SandGpuBuffer buffer, int word_count)
{
	assert(word_count == 1 || word_count == 2 || word_count == 4);
	Object *object = is_recording(gpu) ? need_object(gpu, KIND_BUFFER, buffer.id, "bound") : NULL;
	if (object == NULL)
	{
		return;
	}
	const SandGpuLimits *limits = &gpu->info.limits;
	int64_t texel_count = object->byte_count / (4 * word_count);
	if (unit < 0 || unit >= limits->unit_count || texel_count > limits->texel_count)
	{
		NOTE(
		    gpu, SAND_ERROR_GPU,
		    "%lld texels of the GPU buffer '%s' were to be bound to unit %d: %s has %d units of at most %d texels; use "
		    "fewer grains, or the CPU engine",
		    (long long)texel_count, object->label, unit, gpu->info.name, limits->unit_count, limits->texel_count);
		return;
	}
	static const GLenum texel_formats[3] = {GL_R32UI, GL_RG32UI, GL_RGBA32UI};
	int kind = word_count / 2;
	glActiveTexture(GL_TEXTURE0 + (GLenum)unit);
	if (object->texels[kind] == 0)
	{
		gl_1.gen_textures(1, &object->texels[kind]);
		gl_1.bind_texture(GL_TEXTURE_BUFFER, object->texels[kind]);
		glTexBuffer(GL_TEXTURE_BUFFER, texel_formats[kind], object->name);
		return;
	}
	gl_1.bind_texture(GL_TEXTURE_BUFFER, object->texels[kind]);
}

void sand_gpu_set_uint(SandGpu *gpu, SandGpuProgram program, int location, uint32_t value)
{
	const Object *object = is_recording(gpu) ? need_object(gpu, KIND_PROGRAM, program.id, "set") : NULL;
	if (object != NULL)
	{
		glProgramUniform1ui(object->name, location, value);
	}
}

/// A program of that use for a recording call, or NULL with a note.
static const Object *need_program(SandGpu *gpu, SandGpuProgram program, bool draws)
{
	const Object *object = is_recording(gpu) ? need_object(gpu, KIND_PROGRAM, program.id, "run") : NULL;
	if (object != NULL && draws != (object->group_size == 0))
	{
		NOTE(gpu, SAND_ERROR_GPU, "The program %s does not %s; report this", object->label, draws ? "draw" : "compute");
		return NULL;
	}
	return object;
}

/// The program made current, or NULL with a note.
static const Object *use_program(SandGpu *gpu, SandGpuProgram program, bool draws)
{
	const Object *object = need_program(gpu, program, draws);
	if (object != NULL && IS_FAULT(&gpu->desc, dispatch))
	{
		NOTE(gpu, SAND_ERROR_GPU, "The driver of %s refused to run %s; use the CPU engine", gpu->info.name,
		     object->label);
		object = NULL;
	}
	if (object != NULL)
	{
		glUseProgram(object->name);
	}
	return object;
}

void sand_gpu_dispatch_groups(SandGpu *gpu, SandGpuProgram program, int64_t group_count)
{
	assert(group_count >= 0);
	const Object *object = group_count > 0 ? use_program(gpu, program, false) : NULL;
	if (object == NULL)
	{
		return;
	}
	if (group_count > (int64_t)UINT32_MAX / object->group_size - SAND_GROUP_LIMIT)
	{
		NOTE(gpu, SAND_ERROR_GPU,
		     "%s was to run for %lld groups of %d, which 32 bits cannot number; use fewer grains, or the CPU engine",
		     object->label, (long long)group_count, object->group_size);
		return;
	}
	int64_t row_count = (group_count + SAND_GROUP_LIMIT - 1) / SAND_GROUP_LIMIT;
	int64_t row_groups = (group_count + row_count - 1) / row_count;
	glDispatchCompute((GLuint)row_groups, (GLuint)row_count, 1);
}

void sand_gpu_dispatch(SandGpu *gpu, SandGpuProgram program, int64_t invocation_count)
{
	const Object *object = need_program(gpu, program, false);
	if (object != NULL)
	{
		int64_t size = object->group_size;
		sand_gpu_dispatch_groups(gpu, program, invocation_count / size + (invocation_count % size > 0));
	}
}

void sand_gpu_dispatch_indirect(SandGpu *gpu, SandGpuProgram program, SandGpuBuffer buffer, int64_t offset)
{
	const Object *counts = is_recording(gpu) ? need_object(gpu, KIND_BUFFER, buffer.id, "read for group counts") : NULL;
	if (counts != NULL && has_range(gpu, counts, offset, 12, 4, "read for group counts") &&
	    use_program(gpu, program, false) != NULL)
	{
		glBindBuffer(GL_DISPATCH_INDIRECT_BUFFER, counts->name);
		glDispatchComputeIndirect(offset);
	}
}

/// Binds one input of a draw; false with a note when its rows do not lie in its buffer.
static bool bind_input(SandGpu *gpu, int location, const SandGpuInput *input, int64_t row_count)
{
	const Object *object = need_object(gpu, KIND_BUFFER, input->buffer.id, "drawn");
	int64_t row_bytes = 4 * (int64_t)input->component_count;
	assert(input->component_count >= 1 && input->component_count <= 4);
	if (object == NULL || input->stride < row_bytes ||
	    !has_range(gpu, object, input->offset, (row_count - 1) * input->stride + row_bytes, 4, "drawn"))
	{
		return false;
	}
	GLuint place = (GLuint)location;
	const void *start = (const void *)(uintptr_t)input->offset;
	glBindBuffer(GL_ARRAY_BUFFER, object->name);
	if (input->is_uint)
	{
		glVertexAttribIPointer(place, input->component_count, GL_UNSIGNED_INT, input->stride, start);
	}
	else
	{
		glVertexAttribPointer(place, input->component_count, GL_FLOAT, GL_FALSE, input->stride, start);
	}
	glVertexAttribDivisor(place, input->is_per_instance ? 1 : 0);
	glEnableVertexAttribArray(place);
	return true;
}

void sand_gpu_draw(SandGpu *gpu, const SandGpuDraw *draw)
{
	assert(draw->vertex_count >= 0 && draw->instance_count >= 0);
	assert(draw->input_count >= 0 && draw->input_count <= SAND_GPU_INPUT_LIMIT);
	const Object *target = is_recording(gpu) ? need_object(gpu, KIND_TARGET, draw->target.id, "drawn into") : NULL;
	if (target == NULL || draw->vertex_count == 0)
	{
		return;
	}
	int64_t instance_count = draw->instance_count > 0 ? draw->instance_count : 1;
	if (draw->vertex_count > INT32_MAX || instance_count > INT32_MAX)
	{
		NOTE(gpu, SAND_ERROR_GPU, "%lld vertices were to be drawn %lld times at once; report this",
		     (long long)draw->vertex_count, (long long)instance_count);
		return;
	}
	if (gpu->vertex_array == 0)
	{
		glGenVertexArrays(1, &gpu->vertex_array);
	}
	glBindVertexArray(gpu->vertex_array);
	bool is_whole = true;
	for (int i = 0; i < draw->input_count && is_whole; ++i)
	{
		const SandGpuInput *input = &draw->inputs[i];
		is_whole = bind_input(gpu, i, input, input->is_per_instance ? instance_count : draw->vertex_count);
	}
	if (is_whole && use_program(gpu, draw->program, true) != NULL)
	{
		glBindFramebuffer(GL_FRAMEBUFFER, target->name);
		gl_1.viewport(0, 0, target->width, target->height);
		gl_1.enable(GL_PROGRAM_POINT_SIZE);
		(draw->ignores_depth ? gl_1.disable : gl_1.enable)(GL_DEPTH_TEST);
		glDrawArraysInstanced(draw->is_points ? GL_POINTS : GL_TRIANGLES, 0, (GLsizei)draw->vertex_count,
		                      (GLsizei)instance_count);
	}
	for (int i = 0; i < draw->input_count; ++i)
	{
		glDisableVertexAttribArray((GLuint)i);
	}
}

void sand_gpu_barrier(SandGpu *gpu)
{
	if (is_recording(gpu))
	{
		glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT | GL_UNIFORM_BARRIER_BIT | GL_TEXTURE_FETCH_BARRIER_BIT |
		                GL_COMMAND_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT | GL_VERTEX_ATTRIB_ARRAY_BARRIER_BIT);
	}
}

void sand_gpu_flush(SandGpu *gpu)
{
	if (is_recording(gpu))
	{
		gl_1.flush();
	}
}

void sand_gpu_finish(SandGpu *gpu)
{
	if (is_recording(gpu))
	{
		gl_1.finish();
	}
}

// Fences and read-backs

/// Marks the end of what was recorded and hands it to the device.
static SandStatus place_sync(SandGpu *gpu, Object *object, SandError *err)
{
	object->sync = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
	if (object->sync == NULL)
	{
		take_errors(gpu, "while a fence was set");
		SandStatus status = sand_gpu_check(gpu, err);
		return status != SAND_OK ? status
		                         : sand_fail(err, SAND_ERROR_GPU,
		                                     "The driver of %s set no fence; report this with its "
		                                     "version, %s",
		                                     gpu->info.name, gpu->info.driver);
	}
	gl_1.flush();
	return SAND_OK;
}

static SandStatus wait_sync(SandGpu *gpu, const Object *object, double timeout_seconds, bool *is_done_out,
                            SandError *err)
{
	*is_done_out = false;
	double limit = timeout_seconds < 0 ? 0 : timeout_seconds > 3600 ? 3600 : timeout_seconds;
	GLenum result = IS_FAULT(&gpu->desc, fence)
	                    ? GL_WAIT_FAILED
	                    : glClientWaitSync(object->sync, GL_SYNC_FLUSH_COMMANDS_BIT, (GLuint64)(limit * 1e9));
	SandStatus status = sand_gpu_poll(gpu, err);
	if (status != SAND_OK)
	{
		return status;
	}
	if (result == GL_WAIT_FAILED)
	{
		forget_errors();
		return sand_fail(err, SAND_ERROR_GPU,
		                 "Waiting for the GPU %s failed; go on from the last frame, or use the CPU engine",
		                 gpu->info.name);
	}
	*is_done_out = result == GL_ALREADY_SIGNALED || result == GL_CONDITION_SATISFIED;
	return SAND_OK;
}

SandStatus sand_gpu_fence_create(SandGpu *gpu, SandGpuFence *fence_out, SandError *err)
{
	fence_out->id = 0;
	SandStatus status = enter(gpu, err);
	if (status != SAND_OK)
	{
		return status;
	}
	Object *object = add_object(gpu, KIND_FENCE, "fence", &fence_out->id, err);
	if (object == NULL)
	{
		return SAND_ERROR_MEMORY;
	}
	status = place_sync(gpu, object, err);
	object->state = status == SAND_OK ? SAND_GPU_VALID : object->state;
	return status;
}

SandStatus sand_gpu_fence_wait(SandGpu *gpu, SandGpuFence fence, double timeout_seconds, bool *is_done_out,
                               SandError *err)
{
	*is_done_out = false;
	SandStatus status = enter(gpu, err);
	if (status != SAND_OK)
	{
		return status;
	}
	const Object *object = need_object(gpu, KIND_FENCE, fence.id, "waited for");
	return object == NULL ? sand_gpu_check(gpu, err) : wait_sync(gpu, object, timeout_seconds, is_done_out, err);
}

void sand_gpu_fence_destroy(SandGpu *gpu, SandGpuFence fence)
{
	destroy_object(gpu, KIND_FENCE, fence.id);
}

SandStatus sand_gpu_read_create(SandGpu *gpu, int64_t byte_count, const char *label, SandGpuRead *read_out,
                                SandError *err)
{
	return create_buffer(gpu, KIND_READ, byte_count, label, &read_out->id, err);
}

void sand_gpu_read_destroy(SandGpu *gpu, SandGpuRead read)
{
	destroy_object(gpu, KIND_READ, read.id);
}

void sand_gpu_read_add(SandGpu *gpu, SandGpuRead read, SandGpuBuffer buffer, int64_t offset, int64_t byte_count)
{
	if (!is_recording(gpu))
	{
		return;
	}
	Object *target = need_object(gpu, KIND_READ, read.id, "added to");
	const Object *source = need_object(gpu, KIND_BUFFER, buffer.id, "read back");
	if (target == NULL || source == NULL || !has_range(gpu, source, offset, byte_count, 1, "read back") ||
	    !has_range(gpu, target, target->added_bytes, byte_count, 1, "added to"))
	{
		return;
	}
	if (target->sync != NULL)
	{
		NOTE(gpu, SAND_ERROR_GPU, "The read-back '%s' was added to before it was finished; report this", target->label);
		return;
	}
	if (byte_count > 0)
	{
		glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
		copy_range(source, offset, target, target->added_bytes, byte_count);
		target->added_bytes += byte_count;
	}
}

/// The read-back of a call that returns a status, in or out of the state "begun"; NULL with the sentence.
static Object *find_read(SandGpu *gpu, SandGpuRead read, bool is_begun, SandStatus *status_out, SandError *err)
{
	*status_out = sand_gpu_check(gpu, err);
	if (*status_out != SAND_OK)
	{
		return NULL;
	}
	Object *object = need_object(gpu, KIND_READ, read.id, is_begun ? "waited for" : "begun");
	if (object == NULL)
	{
		*status_out = sand_gpu_check(gpu, err);
		return NULL;
	}
	if ((object->sync != NULL) != is_begun)
	{
		*status_out = sand_fail(err, SAND_ERROR_GPU, "The read-back '%s' was %s; report this", object->label,
		                        is_begun ? "waited for before it was begun" : "begun twice");
		return NULL;
	}
	return object;
}

SandStatus sand_gpu_read_begin(SandGpu *gpu, SandGpuRead read, SandError *err)
{
	SandStatus status;
	Object *object = find_read(gpu, read, false, &status, err);
	if (object == NULL)
	{
		return status;
	}
	glMemoryBarrier(GL_CLIENT_MAPPED_BUFFER_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT);
	return place_sync(gpu, object, err);
}

SandStatus sand_gpu_read_poll(SandGpu *gpu, SandGpuRead read, bool *is_done_out, SandError *err)
{
	*is_done_out = false;
	SandStatus status;
	const Object *object = find_read(gpu, read, true, &status, err);
	return object == NULL ? status : wait_sync(gpu, object, 0, is_done_out, err);
}

SandStatus sand_gpu_read_finish(SandGpu *gpu, SandGpuRead read, double timeout_seconds, void *bytes_out, SandError *err)
{
	SandStatus status;
	Object *object = find_read(gpu, read, true, &status, err);
	if (object == NULL)
	{
		return status;
	}
	bool is_done = false;
	status = wait_sync(gpu, object, timeout_seconds, &is_done, err);
	if (status != SAND_OK)
	{
		return status;
	}
	if (!is_done)
	{
		return sand_fail(err, SAND_ERROR_GPU,
		                 "The read-back '%s' of %lld bytes from %s has not arrived after %g s; wait longer, or use the "
		                 "CPU engine",
		                 object->label, (long long)object->added_bytes, gpu->info.name, timeout_seconds);
	}
	int64_t byte_count = object->added_bytes;
	glDeleteSync(object->sync);
	object->sync = NULL;
	object->added_bytes = 0;
	if (byte_count > 0)
	{
		glBindBuffer(GL_COPY_READ_BUFFER, object->name);
		const void *bytes = glMapBufferRange(GL_COPY_READ_BUFFER, 0, byte_count, GL_MAP_READ_BIT);
		if (bytes != NULL)
		{
			memcpy(bytes_out, bytes, (size_t)byte_count);
		}
		if (bytes == NULL || !glUnmapBuffer(GL_COPY_READ_BUFFER))
		{
			forget_errors();
			return sand_fail(err, SAND_ERROR_GPU,
			                 "The driver of %s does not hand out the read-back '%s' of %lld bytes; "
			                 "go on from the last frame, or use the CPU engine",
			                 gpu->info.name, object->label, (long long)byte_count);
		}
	}
	return SAND_OK;
}

// Timers

/// Adds the oldest measurement to its pass; waits for it.
static void collect_timer(SandGpu *gpu)
{
	const Timer *timer = &gpu->timers[gpu->timer_first];
	GLuint64 nanoseconds = 0;
	glGetQueryObjectui64v(timer->query, GL_QUERY_RESULT, &nanoseconds);
	gpu->times[timer->pass].seconds += 1e-9 * (double)nanoseconds;
	gpu->times[timer->pass].count++;
	gpu->timer_first = (gpu->timer_first + 1) % TIMER_COUNT;
	gpu->timer_pending--;
}

void sand_gpu_timer_start(SandGpu *gpu, int pass)
{
	if (!gpu->desc.has_timers || !is_recording(gpu))
	{
		return;
	}
	assert(!gpu->is_timing && pass >= 0 && pass < SAND_GPU_PASS_LIMIT);
	if (gpu->info.is_software)
	{
		// llvmpipe's queries time its rasteriser and give zero for dispatches; its time is the processor's.
		gl_1.finish();
		gpu->is_timing = true;
		gpu->timing_pass = pass;
		gpu->timing_start = sand_ticks();
		return;
	}
	if (gpu->timer_pending == TIMER_COUNT)
	{
		collect_timer(gpu);
	}
	Timer *timer = &gpu->timers[(gpu->timer_first + gpu->timer_pending) % TIMER_COUNT];
	if (timer->query == 0)
	{
		glGenQueries(1, &timer->query);
	}
	timer->pass = pass;
	gpu->timer_pending++;
	gpu->is_timing = true;
	glBeginQuery(GL_TIME_ELAPSED, timer->query);
}

void sand_gpu_timer_stop(SandGpu *gpu)
{
	// Not only while recording: a measurement that was started is ended, or the next could not start.
	if (gpu->desc.has_timers && is_here(gpu) && !gpu->is_lost && gpu->is_timing)
	{
		if (gpu->info.is_software)
		{
			gl_1.finish();
			gpu->times[gpu->timing_pass].seconds += sand_ticks() - gpu->timing_start;
			gpu->times[gpu->timing_pass].count++;
		}
		else
		{
			glEndQuery(GL_TIME_ELAPSED);
		}
		gpu->is_timing = false;
	}
}

void sand_gpu_timer_read(SandGpu *gpu, SandGpuPassTime times_out[SAND_GPU_PASS_LIMIT])
{
	if (is_here(gpu) && !gpu->is_lost)
	{
		sand_gpu_timer_stop(gpu);
		while (gpu->timer_pending > 0)
		{
			collect_timer(gpu);
		}
	}
	memcpy(times_out, gpu->times, sizeof gpu->times);
}

// Self-test

static uint32_t mix(uint32_t i)
{
	i = (i ^ (i >> 15)) * 0x2c1b3c6du;
	i = (i ^ (i >> 12)) * 0x297a2d39u;
	return i ^ (i >> 15);
}

SandStatus sand_gpu_self_test(SandGpu *gpu, SandError *err)
{
	enum
	{
		COUNT = 10007
	};
	SandGpuProgram program = {0};
	SandGpuBuffer buffer = {0};
	uint32_t *words = NULL;
	SandStatus status = sand_gpu_program_create(gpu, &(SandGpuProgramDesc){.name = "00_self_test.comp"}, &program, err);
	if (status == SAND_OK)
	{
		status = sand_gpu_buffer_create(gpu, 2 * COUNT * sizeof(*words), "self-test", &buffer, err);
	}
	if (status == SAND_OK && (words = sand_alloc(2 * COUNT, sizeof(*words))) == NULL)
	{
		status = sand_fail_memory(err, 2 * COUNT * sizeof(*words), "the GPU's self-test");
	}
	if (status == SAND_OK)
	{
		sand_gpu_bind(gpu, 0, buffer, 0, 0);
		sand_gpu_set_uint(gpu, program, 0, COUNT);
		sand_gpu_dispatch(gpu, program, COUNT);
		sand_gpu_barrier(gpu);
		status = sand_gpu_download(gpu, buffer, 0, words, 2 * COUNT * sizeof(*words), err);
	}
	for (uint32_t i = 0; status == SAND_OK && i < COUNT; ++i)
	{
		float value = (float)i * 0.25f + 1.0f;
		uint32_t bits;
		memcpy(&bits, &value, sizeof bits);
		if (words[2 * i] != mix(i) || words[2 * i + 1] != bits)
		{
			status = sand_fail(err, SAND_ERROR_GPU,
			                   "The GPU %s computes wrongly: number %u is %08x %08x, expected %08x %08x; update its "
			                   "driver, or use the CPU engine",
			                   gpu->info.name, i, words[2 * i], words[2 * i + 1], mix(i), bits);
		}
	}
	sand_free(words);
	sand_gpu_buffer_destroy(gpu, buffer);
	sand_gpu_program_destroy(gpu, program);
	return status;
}

// The device and its thread

static void GLAPIENTRY on_message(GLenum source, GLenum type, GLuint id, GLenum severity, GLsizei length,
                                  const GLchar *message, const void *user)
{
	(void)source;
	(void)length;
	const SandGpuDesc *desc = user;
	if (type == GL_DEBUG_TYPE_ERROR || severity != GL_DEBUG_SEVERITY_NOTIFICATION)
	{
		const char *weight = severity == GL_DEBUG_SEVERITY_HIGH     ? "high"
		                     : severity == GL_DEBUG_SEVERITY_MEDIUM ? "medium"
		                                                            : "low";
		write_log(desc, "GL message %u, %s%s: %s", id, weight, type == GL_DEBUG_TYPE_ERROR ? " error" : "", message);
	}
}

/// Whether a device of EGL gives a context, so that the surfaceless display can be left alone.
static bool has_served(const SandGpu *gpu, const Candidate *candidates, int count)
{
	for (int i = 0; i < count; ++i)
	{
		SandGpuDevice device = {.number = i + 1};
		Context context;
		if (candidates[i].device != NULL && open_context(&gpu->egl, &gpu->desc, &candidates[i], &context, &device))
		{
			close_context(&gpu->egl, &context);
			return true;
		}
	}
	return false;
}

/// The first candidate that serves: hardware, software, the surfaceless platform, unless a device was named.
static SandStatus choose_context(SandGpu *gpu, SandError *err)
{
	SandStatus status = open_egl(gpu->desc.egl_library, &gpu->egl, err);
	if (status != SAND_OK)
	{
		return status;
	}
	Candidate candidates[SAND_GPU_DEVICE_LIMIT];
	int count = find_candidates(&gpu->egl, candidates);
	int wanted = gpu->desc.device;
	if (wanted > 0 && wanted <= count && candidates[wanted - 1].device == NULL && has_served(gpu, candidates, count))
	{
		count = wanted - 1; // not in the list
	}
	if (wanted < 0 || wanted > count)
	{
		return sand_fail(err, SAND_ERROR_GPU, "There is no GPU %d, there are %d; python -m barchan devices lists them",
		                 wanted, count);
	}
	char reasons[SAND_MESSAGE_BYTES] = "";
	bool is_any_served = false;
	for (int round = 0; round < 3; ++round)
	{
		bool wants_software = round == 1;
		for (int i = 0; i < count; ++i)
		{
			bool is_surfaceless = candidates[i].device == NULL;
			bool is_turn = is_surfaceless ? round == 2 && !is_any_served
			                              : round < 2 && candidates[i].is_software == wants_software;
			if (wanted > 0 ? wanted != i + 1 || round > 0 : !is_turn)
			{
				continue;
			}
			SandGpuDevice device = {.number = i + 1};
			if (open_context(&gpu->egl, &gpu->desc, &candidates[i], &gpu->context, &device))
			{
				bool is_refused = device.is_software ? gpu->desc.refuses_software : gpu->desc.refuses_hardware;
				bool is_early = wanted == 0 && device.is_software && round == 0;
				is_any_served = true;
				if (!is_refused && !is_early)
				{
					gpu->info = device;
					if (gpu->desc.block_bytes > 0 && gpu->desc.block_bytes < device.limits.block_bytes)
					{
						gpu->info.limits.block_bytes = gpu->desc.block_bytes;
					}
					return SAND_OK;
				}
				close_context(&gpu->egl, &gpu->context);
				if (is_early)
				{
					continue;
				}
				snprintf(device.reason, sizeof device.reason, "%s is %s, which was refused", device.name,
				         device.is_software ? "software" : "hardware");
			}
			size_t used = strlen(reasons);
			snprintf(reasons + used, sizeof reasons - used, "%s%s: %.160s", used > 0 ? "; " : "", device.platform,
			         device.reason);
			write_log(&gpu->desc, "%s: %s", device.platform, device.reason);
		}
	}
	gpu->egl.release_thread();
	return sand_fail(err, SAND_ERROR_GPU,
	                 "No GPU can be used (%.360s); install or update a graphics driver, or use the CPU engine",
	                 count > 0 ? reasons : "libEGL knows no device");
}

static SandStatus run_job(SandGpu *gpu, SandGpuJob *job, void *user, SandError *err)
{
	if (gpu->is_lost)
	{
		return fail_lost(gpu, err);
	}
	SandStatus status = job(gpu, user, err);
	if (!gpu->is_lost)
	{
		take_errors(gpu, "at the end of a job");
	}
	SandError noted = {0};
	SandStatus poll = gpu->is_lost ? fail_lost(gpu, &noted) : sand_gpu_poll(gpu, &noted);
	if (poll == SAND_OK)
	{
		poll = sand_gpu_check(gpu, &noted);
	}
	if (status == SAND_OK || poll == SAND_ERROR_GPU_LOST)
	{
		status = poll;
		if (poll != SAND_OK && err != NULL)
		{
			*err = noted;
		}
	}
	return status;
}

static void free_objects(SandGpu *gpu)
{
	for (int i = 0; i < gpu->object_capacity; ++i)
	{
		if (gpu->objects[i].kind != KIND_NONE)
		{
			remove_object(gpu, &gpu->objects[i]);
		}
	}
	for (int i = 0; i < TIMER_COUNT && !gpu->is_lost; ++i)
	{
		if (gpu->timers[i].query != 0)
		{
			glDeleteQueries(1, &gpu->timers[i].query);
		}
	}
	if (gpu->vertex_array != 0 && !gpu->is_lost)
	{
		glDeleteVertexArrays(1, &gpu->vertex_array);
	}
	sand_free(gpu->objects);
	gpu->objects = NULL;
	gpu->object_capacity = 0;
}

static void *gpu_main(void *argument)
{
	SandGpu *gpu = argument;
	SandStatus status = choose_context(gpu, gpu->job_err);
	if (status == SAND_OK)
	{
		gl_1.enable(GL_DEBUG_OUTPUT);
		gl_1.enable(GL_DEBUG_OUTPUT_SYNCHRONOUS);
		glDebugMessageCallback(on_message, &gpu->desc);
		write_log(&gpu->desc, "GPU %s, %s, GL %s, through %s%s%s", gpu->info.name, gpu->info.vendor, gpu->info.driver,
		          gpu->info.platform, gpu->info.is_robust ? ", robust" : "",
		          gpu->info.tells_resets ? ", tells resets" : "");
	}
	pthread_mutex_lock(&gpu->mutex);
	gpu->job_status = status;
	gpu->has_started = true;
	pthread_cond_broadcast(&gpu->done);
	while (status == SAND_OK)
	{
		while (gpu->job == NULL && !gpu->is_stopping)
		{
			pthread_cond_wait(&gpu->wake, &gpu->mutex);
		}
		if (gpu->is_stopping)
		{
			break;
		}
		pthread_mutex_unlock(&gpu->mutex);
		SandStatus result = run_job(gpu, gpu->job, gpu->job_user, gpu->job_err);
		pthread_mutex_lock(&gpu->mutex);
		gpu->job_status = result;
		gpu->job = NULL;
		pthread_cond_broadcast(&gpu->done);
	}
	pthread_mutex_unlock(&gpu->mutex);
	if (status == SAND_OK)
	{
		free_objects(gpu);
		if (!gpu->is_lost)
		{
			glDebugMessageCallback(NULL, NULL);
		}
		close_context(&gpu->egl, &gpu->context);
		gpu->egl.release_thread();
	}
	return NULL;
}

static void free_gpu(SandGpu *gpu)
{
	pthread_cond_destroy(&gpu->done);
	pthread_cond_destroy(&gpu->wake);
	pthread_mutex_destroy(&gpu->mutex);
	pthread_mutex_destroy(&gpu->turn);
	sand_free(gpu);
}

SandStatus sand_gpu_create(const SandGpuDesc *desc, SandGpu **gpu_out, SandError *err)
{
	*gpu_out = NULL;
	SandGpu *gpu = sand_alloc(1, sizeof(*gpu));
	if (gpu == NULL)
	{
		return sand_fail_memory(err, sizeof(*gpu), "the GPU");
	}
	if (desc != NULL)
	{
		gpu->desc = *desc;
	}
	pthread_mutex_init(&gpu->turn, NULL);
	pthread_mutex_init(&gpu->mutex, NULL);
	pthread_cond_init(&gpu->wake, NULL);
	pthread_cond_init(&gpu->done, NULL);
	gpu->job_err = err;
	// The lock keeps the thread from looking at its own id before it is stored.
	pthread_mutex_lock(&gpu->mutex);
	if (!start_thread(&gpu->thread, gpu_main, gpu))
	{
		pthread_mutex_unlock(&gpu->mutex);
		free_gpu(gpu);
		return sand_fail(err, SAND_ERROR_MEMORY, "A thread for the GPU could not be started; end other programs");
	}
	while (!gpu->has_started)
	{
		pthread_cond_wait(&gpu->done, &gpu->mutex);
	}
	gpu->desc.egl_library = NULL; // the caller's, and not needed any more
	SandStatus status = gpu->job_status;
	pthread_mutex_unlock(&gpu->mutex);
	if (status != SAND_OK)
	{
		pthread_join(gpu->thread, NULL);
		free_gpu(gpu);
		return status;
	}
	*gpu_out = gpu;
	return SAND_OK;
}

void sand_gpu_destroy(SandGpu *gpu)
{
	if (gpu == NULL)
	{
		return;
	}
	assert(!pthread_equal(pthread_self(), gpu->thread) && "a job destroys its own device");
	pthread_mutex_lock(&gpu->mutex);
	gpu->is_stopping = true;
	pthread_cond_broadcast(&gpu->wake);
	pthread_mutex_unlock(&gpu->mutex);
	pthread_join(gpu->thread, NULL);
	free_gpu(gpu);
}

const SandGpuDevice *sand_gpu_info(const SandGpu *gpu)
{
	return &gpu->info;
}

int sand_gpu_error_count(SandGpu *gpu)
{
	return atomic_load(&gpu->error_count);
}

SandGpuCounts sand_gpu_counts(SandGpu *gpu)
{
	return (SandGpuCounts){
	    .buffers = atomic_load(&gpu->counts[KIND_BUFFER]),
	    .textures = atomic_load(&gpu->counts[KIND_TEXTURE]),
	    .programs = atomic_load(&gpu->counts[KIND_PROGRAM]),
	    .fences = atomic_load(&gpu->counts[KIND_FENCE]),
	    .reads = atomic_load(&gpu->counts[KIND_READ]),
	    .targets = atomic_load(&gpu->counts[KIND_TARGET]),
	    .bytes = atomic_load(&gpu->byte_count),
	};
}

SandStatus sand_gpu_run(SandGpu *gpu, SandGpuJob *job, void *user, SandError *err)
{
	if (pthread_equal(pthread_self(), gpu->thread))
	{
		return run_job(gpu, job, user, err);
	}
	pthread_mutex_lock(&gpu->turn);
	pthread_mutex_lock(&gpu->mutex);
	gpu->job_user = user;
	gpu->job_err = err;
	gpu->job = job;
	pthread_cond_broadcast(&gpu->wake);
	while (gpu->job != NULL)
	{
		pthread_cond_wait(&gpu->done, &gpu->mutex);
	}
	SandStatus status = gpu->job_status;
	pthread_mutex_unlock(&gpu->mutex);
	pthread_mutex_unlock(&gpu->turn);
	return status;
}
