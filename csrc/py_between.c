// py_between: grains between two frames as Python sees them. Comes in: arrays of two frames. Goes out: arrays.
#include "py_module.h"

#include "between.h"

// Columns of the arrays that are blended, in the order of Part.
typedef enum Part
{
	PLACE,
	SPEED,
	TURN,
	FLAGS,
	PART_COUNT
} Part;

static const struct
{
	const char *name;
	npy_intp column_count; // 0: one-dimensional
} parts[PART_COUNT] = {{"position", 3}, {"velocity", 3}, {"rotation", 4}, {"flags", 0}};

/// The arrays of one frame; those that are not in the dict stay NULL. -1 with an exception.
static int read_parts(PyObject *dict, const char *name, npy_intp row_count, PyArrayObject *arrays_out[PART_COUNT])
{
	if (!PyDict_Check(dict))
	{
		sand_py_raise_type(dict, name, "a dict of name to array");
		return -1;
	}
	for (int i = 0; i < PART_COUNT; ++i)
	{
		PyObject *found = PyDict_GetItemString(dict, parts[i].name);
		if (found == NULL)
		{
			if (i == PLACE)
			{
				PyErr_Format(PyExc_ValueError, "%s: found no array 'position', expected one", name);
				return -1;
			}
			continue;
		}
		Py_INCREF(found); // converting may run Python code, which might change the dict
		arrays_out[i] = i == FLAGS ? sand_py_ints(found, parts[i].name, row_count, 0)
		                           : sand_py_floats(found, parts[i].name, row_count, parts[i].column_count);
		Py_DECREF(found);
		if (arrays_out[i] == NULL)
		{
			return -1;
		}
		row_count = PyArray_DIM(arrays_out[i], 0);
	}
	return 0;
}

/// Adds a new array to the dict and returns its data, NULL with an exception.
static float *new_part(PyObject *dict, Part part, npy_intp row_count)
{
	float *block = sand_alloc_raw((size_t)row_count, (size_t)parts[part].column_count * sizeof(float));
	if (block == NULL)
	{
		PyErr_NoMemory();
		return NULL;
	}
	PyObject *array = sand_py_block(block, NPY_FLOAT32, row_count, parts[part].column_count);
	int result = array != NULL ? PyDict_SetItemString(dict, parts[part].name, array) : -1;
	Py_XDECREF(array);
	return result == 0 ? block : NULL;
}

static PyObject *between_dict(PyObject *module, SandBetween *between, PyArrayObject *arrays[2][PART_COUNT])
{
	for (int side = 0; side < 2; ++side)
	{
		between->place[side] = PyArray_DATA(arrays[side][PLACE]);
		between->speed[side] = arrays[side][SPEED] != NULL ? PyArray_DATA(arrays[side][SPEED]) : NULL;
		between->turn[side] = arrays[side][TURN] != NULL ? PyArray_DATA(arrays[side][TURN]) : NULL;
		between->flags[side] = arrays[side][FLAGS] != NULL ? PyArray_DATA(arrays[side][FLAGS]) : NULL;
	}
	npy_intp row_count = PyArray_DIM(arrays[0][PLACE], 0);
	if ((uint64_t)row_count > UINT32_MAX)
	{
		PyErr_Format(PyExc_ValueError, "position: found %zd rows, expected at most 2**32 - 1", (Py_ssize_t)row_count);
		return NULL;
	}
	between->count = (uint32_t)row_count;
	PyObject *dict = PyDict_New();
	bool is_good = dict != NULL && (between->place_out = new_part(dict, PLACE, row_count)) != NULL;
	if (is_good && between->speed[0] != NULL && between->speed[1] != NULL)
	{
		is_good = (between->speed_out = new_part(dict, SPEED, row_count)) != NULL;
	}
	if (is_good && between->turn[0] != NULL && between->turn[1] != NULL)
	{
		is_good = (between->turn_out = new_part(dict, TURN, row_count)) != NULL;
	}
	if (is_good)
	{
		SandError err = {0};
		PyThreadState *thread = PyEval_SaveThread();
		SandStatus status = sand_between(between, &err);
		PyEval_RestoreThread(thread);
		if (status != SAND_OK)
		{
			sand_py_raise(sand_py_state(module), &err);
			is_good = false;
		}
	}
	if (!is_good)
	{
		Py_CLEAR(dict);
	}
	return dict;
}

static PyObject *between_frames(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"before", "after", "share", "seconds", "absent", "threads", NULL};
	PyObject *before, *after, *share;
	PyObject *seconds = NULL, *absent = NULL, *threads = NULL;
	SandBetween between = {0};
	int32_t thread_count = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|OOO:between", names, &before, &after, &share, &seconds, &absent,
	                                 &threads) ||
	    sand_py_double(share, "share", &between.share) != 0 ||
	    sand_py_double(seconds, "seconds", &between.seconds) != 0 ||
	    sand_py_int32(absent, "absent", &between.absent) != 0 || sand_py_int32(threads, "threads", &thread_count) != 0)
	{
		return NULL;
	}
	between.thread_count = thread_count;
	PyArrayObject *arrays[2][PART_COUNT] = {{NULL}};
	PyObject *result = NULL;
	if (read_parts(before, "before", -1, arrays[0]) == 0 &&
	    read_parts(after, "after", PyArray_DIM(arrays[0][PLACE], 0), arrays[1]) == 0)
	{
		result = between_dict(module, &between, arrays);
	}
	for (int i = 0; i < 2 * PART_COUNT; ++i)
	{
		Py_XDECREF((PyObject *)arrays[i / PART_COUNT][i % PART_COUNT]);
	}
	return result;
}

static PyMethodDef methods[] = {
    {"between", WITH_KEYWORDS(between_frames),
     "between(before, after, share, seconds=0.0, absent=0, threads=0)\n--\n\n"
     "Grains between two frames. before, after: dicts with position (N,3), and any of velocity (N,3), rotation (N,4) "
     "and\n"
     "flags (N,), as read_frame gives them. share: 0 before to 1 after. seconds: between the two; 0 takes places on "
     "the\n"
     "straight line. absent: bits of flags of grains that are not there. Returns a dict with position, and with\n"
     "velocity and rotation where both have them."},
    {NULL, NULL, 0, NULL},
};

int sand_py_add_between(PyObject *module)
{
	return PyModule_AddFunctions(module, methods);
}
