// py_gpu: devices() of the extension module: what the GPUs of this machine are and whether they compute.
// Comes in: Python calls. Goes out: dicts. The GIL is released while drivers are asked.
#include "py_module.h"

#include "gpu.h"

#include <stdio.h>
#include <string.h>

static SandStatus self_test_job(SandGpu *gpu, void *user, SandError *err)
{
	(void)user;
	return sand_gpu_self_test(gpu, err);
}

/// Lets the device compute; a failure becomes the reason why it is not usable.
static void try_device(const SandGpuDesc *desc, SandGpuDevice *device)
{
	SandGpuDesc own = *desc;
	own.device = device->number;
	SandGpu *gpu = NULL;
	SandError err = {0};
	SandStatus status = sand_gpu_create(&own, &gpu, &err);
	if (status == SAND_OK)
	{
		status = sand_gpu_run(gpu, self_test_job, NULL, &err);
	}
	sand_gpu_destroy(gpu);
	if (status != SAND_OK)
	{
		device->is_usable = false;
		snprintf(device->reason, sizeof device->reason, "%s", err.message);
	}
}

/// Words of a driver need not be UTF-8.
static PyObject *text_of(const char *text)
{
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *dict_of(const SandGpuDevice *device)
{
	const SandGpuLimits *limits = &device->limits;
	PyObject *of_limits = Py_BuildValue(
	    "{s:L,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "block_bytes",
	    (long long)limits->block_bytes, "block_alignment", limits->block_alignment, "block_count", limits->block_count,
	    "binding_count", limits->binding_count, "uniform_bytes", limits->uniform_bytes, "uniform_alignment",
	    limits->uniform_alignment, "uniform_count", limits->uniform_count, "group_size", limits->group_size,
	    "group_count", limits->group_count, "shared_bytes", limits->shared_bytes, "texture_size", limits->texture_size,
	    "texture_count", limits->texture_count, "image_size", limits->image_size, "point_size", limits->point_size,
	    "unit_count", limits->unit_count, "texel_count", limits->texel_count);
	return Py_BuildValue("{s:i,s:N,s:N,s:N,s:N,s:(ii),s:N,s:N,s:N,s:N,s:N,s:N}", "number", device->number, "platform",
	                     text_of(device->platform), "name", text_of(device->name), "vendor", text_of(device->vendor),
	                     "driver", text_of(device->driver), "gl", device->gl_major, device->gl_minor, "is_usable",
	                     PyBool_FromLong(device->is_usable), "is_software", PyBool_FromLong(device->is_software),
	                     "is_robust", PyBool_FromLong(device->is_robust), "tells_resets",
	                     PyBool_FromLong(device->tells_resets), "reason", text_of(device->reason), "limits", of_limits);
}

static PyObject *devices(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"self_test", "library", NULL};
	PyObject *self_test = NULL;
	const char *library = NULL;
	bool wants_test = false;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Oz:devices", names, &self_test, &library) ||
	    sand_py_bool(self_test, "self_test", &wants_test) != 0)
	{
		return NULL;
	}
	SandGpuDesc desc = {.egl_library = library};
	SandError err = {0};
	SandGpuDevice *found = sand_alloc(SAND_GPU_DEVICE_LIMIT, sizeof(*found));
	if (found == NULL)
	{
		(void)sand_fail_memory(&err, SAND_GPU_DEVICE_LIMIT * sizeof(*found), "the list of GPUs");
		return sand_py_raise(PyModule_GetState(module), &err);
	}
	int count = 0;
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_gpu_list(&desc, found, SAND_GPU_DEVICE_LIMIT, &count, &err);
	for (int i = 0; i < count && wants_test; ++i)
	{
		if (found[i].is_usable)
		{
			try_device(&desc, &found[i]);
		}
	}
	PyEval_RestoreThread(thread);
	PyObject *list = status == SAND_OK ? PyList_New(0) : sand_py_raise(PyModule_GetState(module), &err);
	for (int i = 0; i < count && list != NULL; ++i)
	{
		PyObject *dict = dict_of(&found[i]);
		if (dict == NULL || PyList_Append(list, dict) != 0)
		{
			Py_CLEAR(list);
		}
		Py_XDECREF(dict);
	}
	sand_free(found);
	return list;
}

static PyMethodDef methods[] = {
    {"devices", (PyCFunction)(void (*)(void))devices, METH_VARARGS | METH_KEYWORDS,
     "devices(self_test=False, library=None)\n--\n\n"
     "The GPUs of this machine, hardware first, and what stands in the way of each: a list of dicts with number, "
     "platform,\n"
     "name, vendor, driver, gl (major, minor), is_usable, is_software, is_robust, tells_resets, reason, limits. Never\n"
     "empty: without libEGL its one entry says so. self_test: let each compute something, and check it.\n"
     "library: another libEGL than libEGL.so.1."},
    {NULL, NULL, 0, NULL},
};

int sand_py_add_gpu(PyObject *module)
{
	return PyModule_AddFunctions(module, methods);
}
