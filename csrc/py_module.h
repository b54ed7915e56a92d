// py_module: what the Python files share: the module's state, the status -> exception function, arrays in and out.
// Comes in: Python.h and NumPy, here and nowhere else. Goes out: the names below, for py_*.c only.
#ifndef SAND_PY_MODULE_H
#define SAND_PY_MODULE_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000 // one file for Python 3.11 and later
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifndef NPY_TARGET_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION // Blender 4.2 ships 1.24
#endif
#ifndef NPY_NO_DEPRECATED_API
#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#endif
// NumPy's function table is one pointer of the whole extension; py_module.c fills it.
#define PY_ARRAY_UNIQUE_SYMBOL sand_py_array_api
#ifndef SAND_PY_IMPORTS_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "base.h"
#include "mesh.h"
#include "sampler.h"
#include "sim.h"

/// Of one module object; nothing Python-owned is static.
typedef struct SandPyState
{
	PyObject *error;                         // barchan.Error, base of the exceptions of our own
	PyObject *exceptions[SAND_STATUS_COUNT]; // class to raise for each status; NULL for SAND_OK
	PyObject *mesh_type;
	PyObject *scene_type;
	PyObject *sim_type;
	PyObject *cancel_type;
} SandPyState;

SandPyState *sand_py_state(PyObject *module);

/// The one place where a failure becomes a Python exception: class by status, errno for OSError, the sentence as text.
/// Returns NULL, so that `return sand_py_raise(state, &err)` is the one way to fail.
PyObject *sand_py_raise(const SandPyState *state, const SandError *err);

/// Array arguments. The object itself when it is a contiguous array of that type (no copy), else a converted copy.
/// A new reference; NULL with TypeError (not numbers) or ValueError (shape, a whole number beyond 32 bits), naming the
/// argument, what was found and what is expected. row_count -1: any. column_count 0: one-dimensional.
PyArrayObject *sand_py_floats(PyObject *object, const char *name, npy_intp row_count, npy_intp column_count);
PyArrayObject *sand_py_doubles(PyObject *object, const char *name, npy_intp row_count, npy_intp column_count);
PyArrayObject *sand_py_ints(PyObject *object, const char *name, npy_intp row_count, npy_intp column_count);
PyArrayObject *sand_py_float_frames(PyObject *object, const char *name); // (F, N, 3) float32, any F and N

/// What these stand on: any object as an array of whatever type NumPy finds (NULL with an exception), whether it holds
/// real numbers, and the TypeError when it does not.
PyArrayObject *sand_py_array(PyObject *object, const char *name);
bool sand_py_is_real(PyArrayObject *array);
void sand_py_raise_kind(PyObject *object, PyArrayObject *array, const char *name, const char *expected);

/// Number arguments. NULL (left out) leaves *value_out as it is. -1 with TypeError or ValueError, naming the argument.
int sand_py_uint64(PyObject *object, const char *name, uint64_t *value_out);
int sand_py_int32(PyObject *object, const char *name, int32_t *value_out);
int sand_py_double(PyObject *object, const char *name, double *value_out);
int sand_py_float(PyObject *object, const char *name, float *value_out);
int sand_py_bool(PyObject *object, const char *name, bool *value_out); // True or False, no other truth

/// A word out of a list that ends with NULL; *index_out becomes its place. Else as the numbers.
/// "cpu", "gl" or "auto"; NULL leaves it. -1 with ValueError.
int sand_py_engine(PyObject *object, SandEngine *engine_out);

int sand_py_choice(PyObject *object, const char *name, const char *const *choices, int *index_out);

/// "a, b or c" of a list that ends with NULL, for sentences; cut at byte_count - 1.
void sand_py_join(const char *const *words, char *text_out, size_t byte_count);

/// TypeError: "name: found <type of object>, expected <expected>".
void sand_py_raise_type(PyObject *object, const char *name, const char *expected);

/// Mesh object -> mesh; the object must be of state->mesh_type. Lives as long as the object.
const SandMesh *sand_py_mesh(PyObject *object);

/// Cancel object -> flag; the object must be of state->cancel_type. Lives as long as the object.
const SandCancel *sand_py_cancel(PyObject *object);

/// Arrays out. An array on a block of sand_alloc, which it takes, also on failure; no copy. column_count 0:
/// one-dimensional.
PyObject *sand_py_block(void *block, int type, npy_intp row_count, npy_intp column_count);
/// The same in two steps, for several arrays on one block: its owner (takes the block, also on failure), and an array
/// on data inside it.
PyObject *sand_py_own_block(void *block);
PyObject *sand_py_view(PyObject *owner, const void *data, int type, npy_intp row_count, npy_intp column_count);
PyObject *sand_py_points(SandPoints *points); // (N, 3) float32; leaves the points empty, also on failure

/// Makes Mesh, Scene, Sim and Cancel and adds them to the module. -1 with an exception.
int sand_py_add_types(PyObject *module, SandPyState *state);

/// Adds sample, pack, clump and mass_properties (py_sampler.c). -1 with an exception.
int sand_py_add_sampler(PyObject *module);

/// Adds devices (py_gpu.c). -1 with an exception.
int sand_py_add_gpu(PyObject *module);

/// Adds Light (py_light.c). -1 with an exception.
int sand_py_add_light(PyObject *module);

/// Adds the functions of the cache, Writer and Lock (py_cache.c). -1 with an exception.
int sand_py_add_cache(PyObject *module);

/// Adds between (py_between.c). -1 with an exception.
int sand_py_add_between(PyObject *module);

#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

#endif
