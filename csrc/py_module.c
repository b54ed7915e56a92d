// py_module: the extension module barchan._core. Comes in: Python calls. Goes out: arrays, exceptions, frames on disk.
// Holds the module's state, the status -> exception function, conversion of arrays, and the functions that belong to no
// type. Face: docs/design.md. The GIL is released around everything that takes long or touches a file.
#define SAND_PY_IMPORTS_ARRAY
#include "py_module.h"

#include "cache.h"
#include "io.h"
#include "sampler.h"
#include "scene.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#ifndef SAND_VERSION
#define SAND_VERSION "unknown" // meson.build gives the manifest's version
#endif

#define BLOCK_NAME "barchan.block"
#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)

// Failures

PyObject *sand_py_raise(const SandPyState *state, const SandError *err)
{
	if (err->status <= SAND_OK || err->status >= SAND_STATUS_COUNT)
	{
		PyErr_Format(PyExc_SystemError, "barchan raised status %d, which is no failure", (int)err->status);
		return NULL;
	}
	PyObject *class = state->exceptions[err->status];
	// A path need not be UTF-8 on Linux; what cannot be shown becomes a question mark.
	PyObject *text = PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message), "replace");
	if (text == NULL)
	{
		return NULL;
	}
	if (err->status == SAND_ERROR_IO)
	{
		// OSError(errno, text) makes the subclass of that errno, FileNotFoundError for one.
		PyObject *exception = PyObject_CallFunction(class, "iO", err->os_error, text);
		if (exception != NULL)
		{
			PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
			Py_DECREF(exception);
		}
	}
	else
	{
		PyErr_SetObject(class, text);
	}
	Py_DECREF(text);
	return NULL;
}

SandPyState *sand_py_state(PyObject *module)
{
	return PyModule_GetState(module);
}

// Arrays in

void sand_py_raise_type(PyObject *object, const char *name, const char *expected)
{
	PyObject *type_name = PyType_GetName(Py_TYPE(object));
	PyErr_Format(PyExc_TypeError, "%s: found %V, expected %s", name, type_name, "another type", expected);
	Py_XDECREF(type_name);
}

/// TypeError: the argument is not an array of the kind of numbers that are expected.
void sand_py_raise_kind(PyObject *object, PyArrayObject *array, const char *name, const char *expected)
{
	if (PyArray_CheckExact(object))
	{
		PyErr_Format(PyExc_TypeError, "%s: found an array of %S, expected %s", name, PyArray_DESCR(array), expected);
	}
	else
	{
		sand_py_raise_type(object, name, expected);
	}
}

/// Any object as an array of whatever type NumPy finds. What NumPy refuses, rows of different lengths for one, is told
/// in its own words after the name.
PyArrayObject *sand_py_array(PyObject *object, const char *name)
{
	PyObject *array = PyArray_FROM_O(object);
	if (array == NULL && PyErr_ExceptionMatches(PyExc_ValueError))
	{
		PyObject *type, *value, *traceback;
		PyErr_Fetch(&type, &value, &traceback);
		PyObject *text = value != NULL ? PyObject_Str(value) : NULL;
		PyErr_Clear();
		PyErr_Format(PyExc_ValueError, "%s: %V", name, text, "not an array");
		Py_XDECREF(text);
		Py_XDECREF(type);
		Py_XDECREF(value);
		Py_XDECREF(traceback);
	}
	return (PyArrayObject *)array;
}

bool sand_py_is_real(PyArrayObject *array)
{
	return PyTypeNum_ISFLOAT(PyArray_TYPE(array)) || PyTypeNum_ISINTEGER(PyArray_TYPE(array));
}

static bool is_shape(PyArrayObject *array, npy_intp row_count, npy_intp column_count)
{
	return PyArray_NDIM(array) == (column_count == 0 ? 1 : 2) &&
	       (row_count < 0 || PyArray_DIM(array, 0) == row_count) &&
	       (column_count == 0 || PyArray_DIM(array, 1) == column_count);
}

/// ValueError with both shapes.
static void raise_shape(PyArrayObject *array, const char *name, const char *expected)
{
	PyObject *shape = PyObject_GetAttrString((PyObject *)array, "shape");
	if (shape != NULL)
	{
		PyErr_Format(PyExc_ValueError, "%s: found shape %S, expected %s", name, shape, expected);
		Py_DECREF(shape);
	}
}

/// ValueError with both shapes; an open number of rows is written N.
static void raise_rows(PyArrayObject *array, const char *name, npy_intp row_count, npy_intp column_count)
{
	char rows[32] = "N";
	if (row_count >= 0)
	{
		snprintf(rows, sizeof rows, "%lld", (long long)row_count);
	}
	char columns[32] = "";
	if (column_count > 0)
	{
		snprintf(columns, sizeof columns, " %lld", (long long)column_count);
	}
	char expected[80];
	snprintf(expected, sizeof expected, "(%s,%s)", rows, columns);
	raise_shape(array, name, expected);
}

/// Takes array; gives a contiguous one of the type, itself when it is that already.
static PyArrayObject *contiguous(PyArrayObject *array, int type)
{
	PyObject *result = PyArray_FROM_OTF((PyObject *)array, type, NPY_ARRAY_IN_ARRAY | NPY_ARRAY_FORCECAST);
	Py_DECREF(array);
	return (PyArrayObject *)result;
}

/// Any object as an array of numbers, of whatever type; type only names what is expected.
static PyArrayObject *real_array(PyObject *object, int type, const char *name)
{
	PyArrayObject *array = sand_py_array(object, name);
	if (array != NULL && !sand_py_is_real(array))
	{
		sand_py_raise_kind(object, array, name, type == NPY_FLOAT64 ? "an array of float64" : "an array of float32");
		Py_CLEAR(array);
	}
	return array;
}

/// Checks kind and shape, then converts to the floating-point type.
static PyArrayObject *reals(PyObject *object, int type, const char *name, npy_intp row_count, npy_intp column_count)
{
	PyArrayObject *array = real_array(object, type, name);
	if (array == NULL)
	{
		return NULL;
	}
	if (!is_shape(array, row_count, column_count))
	{
		raise_rows(array, name, row_count, column_count);
		Py_DECREF(array);
		return NULL;
	}
	return contiguous(array, type);
}

PyArrayObject *sand_py_floats(PyObject *object, const char *name, npy_intp row_count, npy_intp column_count)
{
	return reals(object, NPY_FLOAT32, name, row_count, column_count);
}

PyArrayObject *sand_py_doubles(PyObject *object, const char *name, npy_intp row_count, npy_intp column_count)
{
	return reals(object, NPY_FLOAT64, name, row_count, column_count);
}

PyArrayObject *sand_py_float_frames(PyObject *object, const char *name)
{
	PyArrayObject *array = real_array(object, NPY_FLOAT32, name);
	if (array == NULL)
	{
		return NULL;
	}
	if (PyArray_NDIM(array) != 3 || PyArray_DIM(array, 2) != 3)
	{
		raise_shape(array, name, "(F, N, 3)");
		Py_DECREF(array);
		return NULL;
	}
	return contiguous(array, NPY_FLOAT32);
}

/// -1 with ValueError when an element does not fit into 32 bits: a cast would cut it silently.
static int check_int32(PyArrayObject *array, const char *name)
{
	bool is_unsigned = PyTypeNum_ISUNSIGNED(PyArray_TYPE(array));
	PyArrayObject *wide =
	    (PyArrayObject *)PyArray_FROM_OTF((PyObject *)array, is_unsigned ? NPY_UINT64 : NPY_INT64, NPY_ARRAY_IN_ARRAY);
	if (wide == NULL)
	{
		return -1;
	}
	const int64_t *values = PyArray_DATA(wide);
	const uint64_t *unsigned_values = PyArray_DATA(wide);
	npy_intp count = PyArray_SIZE(wide);
	npy_intp i = 0;
	while (i < count &&
	       (is_unsigned ? unsigned_values[i] <= INT32_MAX : values[i] >= INT32_MIN && values[i] <= INT32_MAX))
	{
		++i;
	}
	if (i < count && is_unsigned)
	{
		PyErr_Format(PyExc_ValueError, "%s: element %zd is %llu, expected at most %d", name, (Py_ssize_t)i,
		             (unsigned long long)unsigned_values[i], INT32_MAX);
	}
	else if (i < count)
	{
		PyErr_Format(PyExc_ValueError, "%s: element %zd is %lld, expected %d to %d", name, (Py_ssize_t)i,
		             (long long)values[i], INT32_MIN, INT32_MAX);
	}
	Py_DECREF(wide);
	return i < count ? -1 : 0;
}

PyArrayObject *sand_py_ints(PyObject *object, const char *name, npy_intp row_count, npy_intp column_count)
{
	PyArrayObject *array = sand_py_array(object, name);
	if (array == NULL)
	{
		return NULL;
	}
	int type = PyArray_TYPE(array);
	bool is_good = false;
	if (!PyTypeNum_ISINTEGER(type))
	{
		sand_py_raise_kind(object, array, name, "an array of int32");
	}
	else if (!is_shape(array, row_count, column_count))
	{
		raise_rows(array, name, row_count, column_count);
	}
	else
	{
		is_good = type == NPY_INT32 || check_int32(array, name) == 0;
	}
	if (!is_good)
	{
		Py_DECREF(array);
		return NULL;
	}
	return contiguous(array, NPY_INT32);
}

// Numbers in

/// The object as a Python int; NULL with TypeError.
static PyObject *whole_number(PyObject *object, const char *name)
{
	PyObject *number = PyNumber_Index(object);
	if (number == NULL && PyErr_ExceptionMatches(PyExc_TypeError))
	{
		PyErr_Clear();
		sand_py_raise_type(object, name, "a whole number");
	}
	return number;
}

int sand_py_uint64(PyObject *object, const char *name, uint64_t *value_out)
{
	if (object == NULL)
	{
		return 0;
	}
	PyObject *number = whole_number(object, name);
	if (number == NULL)
	{
		return -1;
	}
	unsigned long long value = PyLong_AsUnsignedLongLong(number);
	if (value == (unsigned long long)-1 && PyErr_Occurred())
	{
		PyErr_Clear();
		PyErr_Format(PyExc_ValueError, "%s is %S, expected 0 to 2**64 - 1", name, number);
		Py_DECREF(number);
		return -1;
	}
	Py_DECREF(number);
	*value_out = value;
	return 0;
}

int sand_py_int32(PyObject *object, const char *name, int32_t *value_out)
{
	if (object == NULL)
	{
		return 0;
	}
	PyObject *number = whole_number(object, name);
	if (number == NULL)
	{
		return -1;
	}
	int overflow = 0;
	long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
	if (overflow != 0 || value < INT32_MIN || value > INT32_MAX)
	{
		PyErr_Format(PyExc_ValueError, "%s is %S, expected %d to %d", name, number, INT32_MIN, INT32_MAX);
		Py_DECREF(number);
		return -1;
	}
	Py_DECREF(number);
	*value_out = (int32_t)value;
	return 0;
}

int sand_py_double(PyObject *object, const char *name, double *value_out)
{
	if (object == NULL)
	{
		return 0;
	}
	double value = PyFloat_AsDouble(object);
	if (value == -1.0 && PyErr_Occurred())
	{
		if (PyErr_ExceptionMatches(PyExc_TypeError))
		{
			PyErr_Clear();
			sand_py_raise_type(object, name, "a number");
		}
		else if (PyErr_ExceptionMatches(PyExc_OverflowError))
		{
			PyErr_Clear();
			PyErr_Format(PyExc_ValueError, "%s is a whole number beyond every float", name);
		}
		return -1;
	}
	*value_out = value;
	return 0;
}

int sand_py_float(PyObject *object, const char *name, float *value_out)
{
	double value = (double)*value_out;
	if (sand_py_double(object, name, &value) != 0)
	{
		return -1;
	}
	// Beyond float32 is infinite for the core, which says what it expects.
	*value_out = fabs(value) > (double)FLT_MAX ? (float)copysign(INFINITY, value) : (float)value;
	return 0;
}

int sand_py_bool(PyObject *object, const char *name, bool *value_out)
{
	if (object == NULL)
	{
		return 0;
	}
	if (!PyBool_Check(object) && !PyArray_IsScalar(object, Bool))
	{
		sand_py_raise_type(object, name, "True or False");
		return -1;
	}
	int truth = PyObject_IsTrue(object);
	if (truth < 0)
	{
		return -1;
	}
	*value_out = truth != 0;
	return 0;
}

// Words in

void sand_py_join(const char *const *words, char *text_out, size_t byte_count)
{
	size_t used = 0;
	text_out[0] = '\0';
	for (int i = 0; words[i] != NULL && used < byte_count; ++i)
	{
		const char *before = i == 0 ? "" : words[i + 1] != NULL ? ", " : " or ";
		int added = snprintf(text_out + used, byte_count - used, "%s%s", before, words[i]);
		used += added > 0 ? (size_t)added : byte_count;
	}
}

int sand_py_choice(PyObject *object, const char *name, const char *const *choices, int *index_out)
{
	if (object == NULL)
	{
		return 0;
	}
	char expected[256];
	sand_py_join(choices, expected, sizeof expected);
	if (!PyUnicode_Check(object))
	{
		sand_py_raise_type(object, name, expected);
		return -1;
	}
	for (int i = 0; choices[i] != NULL; ++i)
	{
		if (PyUnicode_CompareWithASCIIString(object, choices[i]) == 0)
		{
			*index_out = i;
			return 0;
		}
	}
	PyErr_Format(PyExc_ValueError, "%s: found %R, expected %s", name, object, expected);
	return -1;
}

// Arrays out

static void free_block(PyObject *capsule)
{
	sand_free(PyCapsule_GetPointer(capsule, BLOCK_NAME));
}

/// Takes block, frees it on failure. The capsule frees it when the last array on it is gone.
PyObject *sand_py_own_block(void *block)
{
	PyObject *owner = PyCapsule_New(block, BLOCK_NAME, free_block);
	if (owner == NULL)
	{
		sand_free(block);
	}
	return owner;
}

/// An array on data inside the owner's block, without a copy. column_count 0: one-dimensional.
PyObject *sand_py_view(PyObject *owner, const void *data, int type, npy_intp row_count, npy_intp column_count)
{
	npy_intp shape[2] = {row_count, column_count};
	PyObject *array = PyArray_SimpleNewFromData(column_count == 0 ? 1 : 2, shape, type, (void *)data);
	if (array == NULL)
	{
		return NULL;
	}
	Py_INCREF(owner); // taken by the array, also on failure
	if (PyArray_SetBaseObject((PyArrayObject *)array, owner) != 0)
	{
		Py_DECREF(array);
		return NULL;
	}
	return array;
}

PyObject *sand_py_block(void *block, int type, npy_intp row_count, npy_intp column_count)
{
	PyObject *owner = sand_py_own_block(block);
	if (owner == NULL)
	{
		return NULL;
	}
	PyObject *array = sand_py_view(owner, block, type, row_count, column_count);
	Py_DECREF(owner);
	return array;
}

PyObject *sand_py_points(SandPoints *points)
{
	npy_intp count = points->count;
	if (count == 0)
	{
		npy_intp shape[2] = {0, 3};
		sand_points_free(points);
		return PyArray_SimpleNew(2, shape, NPY_FLOAT32);
	}
	float *xyz = points->xyz;
	*points = (SandPoints){0};
	return sand_py_block(xyz, NPY_FLOAT32, count, 3);
}

// Sampler

static PyObject *cover(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"mesh", "spacing", "seed", NULL};
	SandPyState *state = sand_py_state(module);
	PyObject *mesh_object;
	PyObject *spacing;
	PyObject *seed = NULL;
	SandCoverDesc desc = {0};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|O:cover", names, (PyTypeObject *)state->mesh_type, &mesh_object,
	                                 &spacing, &seed) ||
	    sand_py_float(spacing, "spacing", &desc.spacing) != 0 || sand_py_uint64(seed, "seed", &desc.seed) != 0)
	{
		return NULL;
	}
	const SandMesh *mesh = sand_py_mesh(mesh_object);
	SandPoints points = {0};
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_sampler_cover(mesh, &desc, &points, &err);
	PyEval_RestoreThread(thread);
	return status == SAND_OK ? sand_py_points(&points) : sand_py_raise(state, &err);
}

static PyObject *fill(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"mesh", "spacing", "clearance", "jitter", "seed", NULL};
	SandPyState *state = sand_py_state(module);
	PyObject *mesh_object;
	PyObject *spacing;
	PyObject *clearance = NULL;
	PyObject *jitter = NULL;
	PyObject *seed = NULL;
	SandFillDesc desc = {0};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|OOO:fill", names, (PyTypeObject *)state->mesh_type,
	                                 &mesh_object, &spacing, &clearance, &jitter, &seed) ||
	    sand_py_float(spacing, "spacing", &desc.spacing) != 0 ||
	    sand_py_float(clearance, "clearance", &desc.clearance) != 0 ||
	    sand_py_float(jitter, "jitter", &desc.jitter) != 0 || sand_py_uint64(seed, "seed", &desc.seed) != 0)
	{
		return NULL;
	}
	const SandMesh *mesh = sand_py_mesh(mesh_object);
	SandPoints points = {0};
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_sampler_fill(mesh, &desc, &points, &err);
	PyEval_RestoreThread(thread);
	return status == SAND_OK ? sand_py_points(&points) : sand_py_raise(state, &err);
}

// Grains

/// The radius of a grain's spheres, in metres. -1 with TypeError or ValueError.
static int read_radius(const SandPyState *state, PyObject *object, float *radius_out)
{
	if (sand_py_float(object, "radius", radius_out) != 0)
	{
		return -1;
	}
	if (!(*radius_out > 0) || !isfinite(*radius_out))
	{
		SandError err;
		sand_fail(&err, SAND_ERROR_ARGUMENT, "The radius is %g m, expected a finite number above 0",
		          (double)*radius_out);
		sand_py_raise(state, &err);
		return -1;
	}
	return 0;
}

static PyObject *tetrahedron(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"radius", NULL};
	PyObject *object;
	float radius = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:tetrahedron", names, &object) ||
	    read_radius(sand_py_state(module), object, &radius) != 0)
	{
		return NULL;
	}
	npy_intp shape[2] = {4, 3};
	PyObject *array = PyArray_SimpleNew(2, shape, NPY_FLOAT32);
	if (array != NULL)
	{
		sand_shape_tetrahedron(radius, PyArray_DATA((PyArrayObject *)array));
	}
	return array;
}

typedef enum ShapeKind
{
	SHAPE_TETRAHEDRON,
	SHAPE_CUBE,
	SHAPE_ROD,
	SHAPE_SPHERE,
} ShapeKind;

static PyObject *grain_shape(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"kind", "radius", "count", NULL};
	static const char *const kinds[] = {"tetrahedron", "cube", "rod", "sphere", NULL};
	PyObject *kind_object;
	PyObject *radius_object;
	PyObject *count_object = NULL;
	int kind = SHAPE_TETRAHEDRON;
	float radius = 0;
	int32_t rod_count = 3;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:shape", names, &kind_object, &radius_object, &count_object) ||
	    sand_py_choice(kind_object, "kind", kinds, &kind) != 0 ||
	    read_radius(sand_py_state(module), radius_object, &radius) != 0 ||
	    sand_py_int32(count_object, "count", &rod_count) != 0)
	{
		return NULL;
	}
	if (kind == SHAPE_ROD && (rod_count < 1 || rod_count > SAND_SHAPE_SPHERE_LIMIT))
	{
		SandError err;
		sand_fail(&err, SAND_ERROR_ARGUMENT, "The rod's count is %d spheres, expected 1 to %d", (int)rod_count,
		          SAND_SHAPE_SPHERE_LIMIT);
		return sand_py_raise(sand_py_state(module), &err);
	}
	npy_intp size[2] = {kind == SHAPE_TETRAHEDRON ? 4 : kind == SHAPE_CUBE ? 8 : kind == SHAPE_ROD ? rod_count : 1, 3};
	PyObject *offsets = PyArray_SimpleNew(2, size, NPY_FLOAT32);
	PyObject *radii = offsets != NULL ? PyArray_SimpleNew(1, size, NPY_FLOAT32) : NULL;
	if (radii == NULL)
	{
		Py_XDECREF(offsets);
		return NULL;
	}
	float *offset_data = PyArray_DATA((PyArrayObject *)offsets);
	float *radius_data = PyArray_DATA((PyArrayObject *)radii);
	switch (kind)
	{
	case SHAPE_TETRAHEDRON:
		sand_shape_tetrahedron(radius, offset_data);
		break;
	case SHAPE_CUBE:
		sand_shape_cube(radius, offset_data);
		break;
	case SHAPE_ROD:
		sand_shape_rod(radius, rod_count, offset_data);
		break;
	default:
		memset(offset_data, 0, 3 * sizeof(float));
		break;
	}
	for (npy_intp i = 0; i < size[0]; ++i)
	{
		radius_data[i] = radius;
	}
	return Py_BuildValue("NN", offsets, radii);
}

static PyObject *grain_sizes(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"kind", "low", "high", "spread", "seed", "count", NULL};
	static const char *const kinds[] = {"uniform", "lognormal", NULL};
	PyObject *kind_object;
	PyObject *low_object;
	PyObject *high_object;
	PyObject *spread_object = NULL;
	PyObject *seed_object = NULL;
	PyObject *count_object = NULL;
	int kind = SAND_SIZES_UNIFORM;
	double low = 0, high = 0, spread = 0;
	uint64_t seed = 0;
	int32_t count = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|OO$O:sizes", names, &kind_object, &low_object, &high_object,
	                                 &spread_object, &seed_object, &count_object))
	{
		return NULL;
	}
	if (count_object == NULL)
	{
		PyErr_SetString(PyExc_TypeError, "sizes() needs the keyword argument 'count'");
		return NULL;
	}
	if (sand_py_choice(kind_object, "kind", kinds, &kind) != 0 || sand_py_double(low_object, "low", &low) != 0 ||
	    sand_py_double(high_object, "high", &high) != 0 || sand_py_double(spread_object, "spread", &spread) != 0 ||
	    sand_py_uint64(seed_object, "seed", &seed) != 0 || sand_py_int32(count_object, "count", &count) != 0)
	{
		return NULL;
	}
	if (count < 0)
	{
		PyErr_Format(PyExc_ValueError, "count is %d, expected 0 to %d", (int)count, INT32_MAX);
		return NULL;
	}
	npy_intp size[1] = {count};
	PyObject *array = PyArray_SimpleNew(1, size, NPY_FLOAT32);
	if (array == NULL)
	{
		return NULL;
	}
	float *scales = PyArray_DATA((PyArrayObject *)array);
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_scene_sizes((SandSizes)kind, low, high, spread, seed, count, scales, &err);
	PyEval_RestoreThread(thread);
	if (status != SAND_OK)
	{
		Py_DECREF(array);
		return sand_py_raise(sand_py_state(module), &err);
	}
	return array;
}

// What the build and the tests want to know

static PyObject *build_info(PyObject *module, PyObject *ignored)
{
	(void)module;
	(void)ignored;
#ifdef __clang__
	const char *compiler = "clang " __clang_version__;
#else
	const char *compiler = "gcc " __VERSION__;
#endif
#ifdef NDEBUG
	PyObject *asserts = Py_False;
#else
	PyObject *asserts = Py_True;
#endif
	return Py_BuildValue("{s:s,s:s,s:O,s:s,s:s,s:i}", "version", SAND_VERSION, "compiler", compiler, "asserts", asserts,
	                     "python_target", TEXT_OF(Py_LIMITED_API), "numpy_target", TEXT_OF(NPY_TARGET_VERSION),
	                     "cache_version", SAND_CACHE_VERSION);
}

static PyObject *allocated_bytes(PyObject *module, PyObject *ignored)
{
	(void)module;
	(void)ignored;
	return PyLong_FromSize_t(sand_alloc_bytes());
}

static PyObject *fail_alloc_after(PyObject *module, PyObject *args)
{
	(void)module;
	unsigned long long countdown;
	if (!PyArg_ParseTuple(args, "K:fail_alloc_after", &countdown))
	{
		return NULL;
	}
	sand_alloc_fail_after(countdown, false);
	return Py_NewRef(Py_None);
}

static PyObject *slow_io(PyObject *module, PyObject *seconds)
{
	(void)module;
	double delay = 0;
	if (sand_py_double(seconds, "seconds", &delay) != 0)
	{
		return NULL;
	}
	sand_io_slow_down(delay);
	return Py_NewRef(Py_None);
}

static PyObject *fail_io_after(PyObject *module, PyObject *args)
{
	(void)module;
	unsigned long long countdown;
	int os_error;
	if (!PyArg_ParseTuple(args, "Ki:fail_io_after", &countdown, &os_error))
	{
		return NULL;
	}
	sand_io_fail_after(countdown, os_error);
	return Py_NewRef(Py_None);
}

// The module

static PyMethodDef methods[] = {
    {"cover", WITH_KEYWORDS(cover),
     "cover(mesh, spacing, seed=0)\n--\n\nEven points on the surface of a mesh, as a (K, 3) float32 array, in metres."},
    {"fill", WITH_KEYWORDS(fill),
     "fill(mesh, spacing, clearance=0.0, jitter=0.0, seed=0)\n--\n\n"
     "Points inside a closed mesh, as a (K, 3) float32 array, in metres."},
    {"tetrahedron", WITH_KEYWORDS(tetrahedron),
     "tetrahedron(radius)\n--\n\nCentres of four touching spheres, as a (4, 3) float32 array, in metres."},
    {"shape", WITH_KEYWORDS(grain_shape),
     "shape(kind, radius, count=3)\n--\n\n"
     "A grain of equal spheres as Scene takes it: (K, 3) float32 offsets and (K,) float32 radii, in metres.\n"
     "kind: 'tetrahedron' and 'cube' of touching spheres, 'rod' of count spheres one radius apart, 'sphere'."},
    {"sizes", WITH_KEYWORDS(grain_sizes),
     "sizes(kind, low, high, spread=0, seed=0, *, count)\n--\n\n"
     "Random sizes for Scene's scales, a (count,) float32 array from low to high.\n"
     "kind: 'uniform', or 'lognormal' about 1, whose logarithm deviates by spread."},
    {"build_info", build_info, METH_NOARGS,
     "build_info()\n--\n\nHow this module was built: version, compiler, asserts, python_target, numpy_target, "
     "cache_version."},
    {"allocated_bytes", allocated_bytes, METH_NOARGS,
     "allocated_bytes()\n--\n\nBytes that the core holds now, over all objects."},
    {"fail_alloc_after", fail_alloc_after, METH_VARARGS,
     "fail_alloc_after(countdown)\n--\n\nFor tests: the core's allocation number countdown from now fails; 0 = off."},
    {"slow_io", slow_io, METH_O,
     "slow_io(seconds)\n--\n\nFor tests: every file call of the core takes this much longer; 0 = off."},
    {"fail_io_after", fail_io_after, METH_VARARGS,
     "fail_io_after(countdown, os_error)\n--\n\nFor tests: the core's file call number countdown from now fails; 0 = "
     "off."},
    {NULL, NULL, 0, NULL},
};

/// Makes an exception, adds it to the module and returns a reference for the state. base: borrowed, a class or a tuple.
static PyObject *add_exception(PyObject *module, const char *full_name, PyObject *base, const char *doc)
{
	PyObject *class = PyErr_NewExceptionWithDoc(full_name, doc, base, NULL);
	if (class != NULL && PyModule_AddObjectRef(module, strrchr(full_name, '.') + 1, class) != 0)
	{
		Py_CLEAR(class);
	}
	return class;
}

static int add_exceptions(PyObject *module, SandPyState *state)
{
	state->error = add_exception(module, "barchan.Error", PyExc_Exception, "Base of Barchan's own exceptions.");
	if (state->error == NULL)
	{
		return -1;
	}
	PyObject *mesh_bases = PyTuple_Pack(2, state->error, PyExc_ValueError);
	if (mesh_bases == NULL)
	{
		return -1;
	}
	PyObject **of = state->exceptions;
	of[SAND_ERROR_ARGUMENT] = Py_NewRef(PyExc_ValueError);
	of[SAND_ERROR_MEMORY] = Py_NewRef(PyExc_MemoryError);
	of[SAND_ERROR_IO] = Py_NewRef(PyExc_OSError);
	of[SAND_ERROR_MESH] = add_exception(module, "barchan.MeshError", mesh_bases, "A mesh that cannot be used.");
	of[SAND_ERROR_CACHE] =
	    add_exception(module, "barchan.CacheError", state->error, "A cache file that is torn, foreign or absent.");
	of[SAND_ERROR_GPU] = add_exception(module, "barchan.GpuError", state->error, "No graphics device, or a lost one.");
	of[SAND_ERROR_GPU_MEMORY] = Py_XNewRef(of[SAND_ERROR_GPU]);
	of[SAND_ERROR_GPU_LOST] = Py_XNewRef(of[SAND_ERROR_GPU]);
	of[SAND_ERROR_UNSTABLE] =
	    add_exception(module, "barchan.UnstableError", state->error, "A grain became non-finite or too fast.");
	of[SAND_CANCELLED] = add_exception(module, "barchan.Cancelled", state->error, "The work was cancelled.");
	Py_DECREF(mesh_bases);
	for (int status = SAND_OK + 1; status < SAND_STATUS_COUNT; ++status)
	{
		if (of[status] == NULL)
		{
			return -1;
		}
	}
	return 0;
}

static int module_exec(PyObject *module)
{
	SandPyState *state = sand_py_state(module);
	if (PyArray_ImportNumPyAPI() < 0 || add_exceptions(module, state) != 0 || sand_py_add_types(module, state) != 0 ||
	    sand_py_add_sampler(module) != 0 || sand_py_add_gpu(module) != 0 || sand_py_add_light(module) != 0 ||
	    sand_py_add_cache(module) != 0 || sand_py_add_between(module) != 0)
	{
		return -1;
	}
	return PyModule_AddStringConstant(module, "__version__", SAND_VERSION);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
	SandPyState *state = sand_py_state(module);
	Py_VISIT(state->error);
	for (int status = 0; status < SAND_STATUS_COUNT; ++status)
	{
		Py_VISIT(state->exceptions[status]);
	}
	Py_VISIT(state->mesh_type);
	Py_VISIT(state->scene_type);
	Py_VISIT(state->sim_type);
	Py_VISIT(state->cancel_type);
	return 0;
}

static int module_clear(PyObject *module)
{
	SandPyState *state = sand_py_state(module);
	Py_CLEAR(state->error);
	for (int status = 0; status < SAND_STATUS_COUNT; ++status)
	{
		Py_CLEAR(state->exceptions[status]);
	}
	Py_CLEAR(state->mesh_type);
	Py_CLEAR(state->scene_type);
	Py_CLEAR(state->sim_type);
	Py_CLEAR(state->cancel_type);
	return 0;
}

static void module_free(void *module)
{
	module_clear(module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, (void *)module_exec},
    {0, NULL},
};

static PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "barchan._core",
    .m_doc = "Barchan's core in C: meshes, sampler, scene, simulator, frame cache. Face: docs/design.md.",
    .m_size = sizeof(SandPyState),
    .m_methods = methods,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
	return PyModuleDef_Init(&module_def);
}
