// py_cache: the cache as Python sees it: frames, checkpoints, Writer and Lock. Comes in: Python calls. Goes out:
// arrays, exceptions, files. The GIL is released around everything that takes long or touches a file.
#include "py_module.h"

#include "cache.h"
#include "checkpoint.h"
#include "io.h"
#include "lock.h"
#include "writer.h"

#include <string.h>

// Arrays of a frame

/// The name of an array from a dict's key. -1 with TypeError or ValueError.
static int frame_array_name(PyObject *key, char name_out[SAND_CACHE_NAME_BYTES])
{
	if (!PyUnicode_Check(key))
	{
		PyErr_Format(PyExc_TypeError, "arrays: found the name %R, expected a str", key);
		return -1;
	}
	Py_ssize_t bytes = 0;
	const char *text = PyUnicode_AsUTF8AndSize(key, &bytes);
	if (text == NULL)
	{
		return -1;
	}
	if (bytes < 1 || bytes >= SAND_CACHE_NAME_BYTES || strlen(text) != (size_t)bytes)
	{
		PyErr_Format(PyExc_ValueError, "arrays: found the name %R, expected 1 to %d ASCII characters", key,
		             SAND_CACHE_NAME_BYTES - 1);
		return -1;
	}
	memcpy(name_out, text, (size_t)bytes + 1);
	return 0;
}

static void raise_frame_shape(PyArrayObject *array, const char *name)
{
	PyObject *shape = PyObject_GetAttrString((PyObject *)array, "shape");
	if (shape != NULL)
	{
		PyErr_Format(PyExc_ValueError, "%s: found shape %S, expected (N,) or (N, 1 to %d)", name, shape,
		             SAND_CACHE_COMPONENT_LIMIT);
		Py_DECREF(shape);
	}
}

/// One array of a frame, from a dict's item. Appends the array that holds the data to held. -1 with an exception.
static int add_frame_array(SandCacheFrame *frame, PyObject *key, PyObject *value, PyObject *held)
{
	SandCacheArray *array = &frame->arrays[frame->array_count];
	if (frame_array_name(key, array->name) != 0)
	{
		return -1;
	}
	PyArrayObject *found = sand_py_array(value, array->name);
	if (found == NULL)
	{
		return -1;
	}
	bool is_int = PyTypeNum_ISINTEGER(PyArray_TYPE(found));
	bool is_flat = PyArray_NDIM(found) == 1;
	npy_intp column_count = PyArray_NDIM(found) == 2 ? PyArray_DIM(found, 1) : 0;
	// Every array after the first must have as many rows.
	npy_intp row_count = frame->array_count == 0 ? -1 : (npy_intp)frame->count;
	PyArrayObject *data = NULL;
	if (!sand_py_is_real(found))
	{
		sand_py_raise_kind(value, found, array->name, "an array of float32 or int32");
	}
	else if (!is_flat && (column_count < 1 || column_count > SAND_CACHE_COMPONENT_LIMIT))
	{
		raise_frame_shape(found, array->name);
	}
	else
	{
		data = is_int ? sand_py_ints((PyObject *)found, array->name, row_count, column_count)
		              : sand_py_floats((PyObject *)found, array->name, row_count, column_count);
	}
	Py_DECREF(found);
	if (data == NULL)
	{
		return -1;
	}
	int result = PyList_Append(held, (PyObject *)data);
	Py_DECREF(data); // the list keeps it
	if (result != 0)
	{
		return -1;
	}
	if ((uint64_t)PyArray_DIM(data, 0) > UINT32_MAX)
	{
		PyErr_Format(PyExc_ValueError, "%s: found %zd rows, expected at most 2**32 - 1", array->name,
		             (Py_ssize_t)PyArray_DIM(data, 0));
		return -1;
	}
	frame->count = (uint32_t)PyArray_DIM(data, 0);
	array->type = is_int ? SAND_CACHE_I32 : SAND_CACHE_F32;
	array->component_count = is_flat ? 1 : (uint32_t)column_count;
	array->data = PyArray_DATA(data);
	array->encoding = sand_cache_encoding(array->name);
	frame->array_count++;
	return 0;
}

/// All arrays of a frame from a dict. Returns the list that keeps the data alive, NULL with an exception.
static PyObject *add_frame_arrays(SandCacheFrame *frame, PyObject *arrays)
{
	if (!PyDict_Check(arrays))
	{
		sand_py_raise_type(arrays, "arrays", "a dict of name to array");
		return NULL;
	}
	// A list of the items: converting an array may run Python code, which might change the dict.
	PyObject *items = PyDict_Items(arrays);
	PyObject *held = PyList_New(0);
	bool is_good = items != NULL && held != NULL;
	Py_ssize_t item_count = items != NULL ? PyList_Size(items) : 0;
	if (is_good && item_count > SAND_CACHE_ARRAY_LIMIT)
	{
		PyErr_Format(PyExc_ValueError, "arrays: found %zd, expected 1 to %d", item_count, SAND_CACHE_ARRAY_LIMIT);
		is_good = false;
	}
	for (Py_ssize_t i = 0; i < item_count && is_good; ++i)
	{
		PyObject *item = PyList_GetItem(items, i);
		is_good = add_frame_array(frame, PyTuple_GetItem(item, 0), PyTuple_GetItem(item, 1), held) == 0;
	}
	Py_XDECREF(items);
	if (!is_good)
	{
		Py_XDECREF(held);
		return NULL;
	}
	return held;
}

typedef struct OptionArguments
{
	PyObject *tolerance, *velocity_tolerance, *spin_tolerance, *exact_count, *engine, *threads;
} OptionArguments;

/// How frames are written, from keyword arguments; each may be NULL. -1 with an exception. The engine's text is the
/// object's, which must live on.
static int read_options(const OptionArguments *from, SandCacheOptions *options)
{
	uint64_t exact = 0;
	int32_t thread_count = 0;
	PyObject *engine = from->engine;
	if (sand_py_double(from->tolerance, "tolerance", &options->tolerance) != 0 ||
	    sand_py_double(from->velocity_tolerance, "velocity_tolerance", &options->velocity_tolerance) != 0 ||
	    sand_py_double(from->spin_tolerance, "spin_tolerance", &options->spin_tolerance) != 0 ||
	    sand_py_uint64(from->exact_count, "exact_count", &exact) != 0 ||
	    sand_py_int32(from->threads, "threads", &thread_count) != 0)
	{
		return -1;
	}
	options->exact_count = exact < UINT32_MAX ? (uint32_t)exact : UINT32_MAX;
	options->thread_count = thread_count;
	if (engine != NULL && !PyUnicode_Check(engine))
	{
		sand_py_raise_type(engine, "engine", "a str");
		return -1;
	}
	options->engine = engine != NULL ? PyUnicode_AsUTF8AndSize(engine, NULL) : "";
	return options->engine != NULL ? 0 : -1;
}

/// The notes, which live as long as the object (NULL = none). -1 with an exception.
static int read_notes(PyObject *object, const char **notes_out, uint32_t *note_bytes_out)
{
	*notes_out = NULL;
	*note_bytes_out = 0;
	if (object == NULL)
	{
		return 0;
	}
	if (!PyUnicode_Check(object))
	{
		sand_py_raise_type(object, "notes", "a str");
		return -1;
	}
	Py_ssize_t bytes = 0;
	const char *text = PyUnicode_AsUTF8AndSize(object, &bytes);
	if (text == NULL)
	{
		return -1;
	}
	if (bytes > SAND_CACHE_NOTES_LIMIT)
	{
		PyErr_Format(PyExc_ValueError, "notes: found %zd bytes, expected at most %u", bytes, SAND_CACHE_NOTES_LIMIT);
		return -1;
	}
	*notes_out = text;
	*note_bytes_out = (uint32_t)bytes;
	return 0;
}

/// Number, time and hashes of a frame; each but the number may be NULL.
typedef struct HeadArguments
{
	PyObject *number, *seconds, *settings_hash, *state_hash, *motion_hash;
} HeadArguments;

/// -1 with an exception.
static int read_head(const HeadArguments *from, SandCacheFrame *frame)
{
	return sand_py_int32(from->number, "frame", &frame->frame) == 0 &&
	               sand_py_double(from->seconds, "seconds", &frame->seconds) == 0 &&
	               sand_py_uint64(from->settings_hash, "settings_hash", &frame->settings_hash) == 0 &&
	               sand_py_uint64(from->state_hash, "state_hash", &frame->state_hash) == 0 &&
	               sand_py_uint64(from->motion_hash, "motion_hash", &frame->motion_hash) == 0
	           ? 0
	           : -1;
}

static PyObject *write_frame(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"folder",         "frame",         "arrays",
	                        "seconds",        "settings_hash", "state_hash",
	                        "motion_hash",    "tolerance",     "velocity_tolerance",
	                        "spin_tolerance", "exact_count",   "engine",
	                        "threads",        "notes",         NULL};
	PyObject *folder = NULL;
	PyObject *arrays;
	HeadArguments head = {0};
	OptionArguments from = {0};
	PyObject *notes = NULL;
	SandCacheFrame frame = {0};
	SandCacheOptions options = {0};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&OO|OOO$OOOOOOOO:write_frame", names, PyUnicode_FSConverter,
	                                 &folder, &head.number, &arrays, &head.seconds, &head.settings_hash,
	                                 &head.state_hash, &head.motion_hash, &from.tolerance, &from.velocity_tolerance,
	                                 &from.spin_tolerance, &from.exact_count, &from.engine, &from.threads, &notes))
	{
		return NULL; // the converter has cleaned up after itself
	}
	PyObject *held = NULL;
	if (read_head(&head, &frame) == 0 && read_options(&from, &options) == 0 &&
	    read_notes(notes, &frame.notes, &frame.note_bytes) == 0)
	{
		held = add_frame_arrays(&frame, arrays);
	}
	if (held == NULL)
	{
		Py_DECREF(folder);
		return NULL;
	}
	const char *path = PyBytes_AsString(folder);
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_cache_write(path, &frame, &options, NULL, &err);
	PyEval_RestoreThread(thread);
	Py_DECREF(held);
	Py_DECREF(folder);
	return status == SAND_OK ? Py_NewRef(Py_None) : sand_py_raise(sand_py_state(module), &err);
}

static PyObject *measure_frame(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"arrays",  "tolerance", "velocity_tolerance", "spin_tolerance", "exact_count",
	                        "threads", NULL};
	PyObject *arrays;
	OptionArguments from = {0};
	SandCacheFrame frame = {0};
	SandCacheOptions options = {0};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$OOOO:measure_frame", names, &arrays, &from.tolerance,
	                                 &from.velocity_tolerance, &from.spin_tolerance, &from.exact_count,
	                                 &from.threads) ||
	    read_options(&from, &options) != 0)
	{
		return NULL;
	}
	PyObject *held = add_frame_arrays(&frame, arrays);
	if (held == NULL)
	{
		return NULL;
	}
	uint64_t byte_count = 0;
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_cache_measure(&frame, &options, &byte_count, &err);
	PyEval_RestoreThread(thread);
	Py_DECREF(held);
	return status == SAND_OK ? PyLong_FromUnsignedLongLong(byte_count) : sand_py_raise(sand_py_state(module), &err);
}

/// A dict of views on the frame's block, which owner frees.
static PyObject *frame_arrays(const SandCacheFrame *frame, PyObject *owner)
{
	PyObject *arrays = owner != NULL ? PyDict_New() : NULL;
	for (int i = 0; i < frame->array_count && arrays != NULL; ++i)
	{
		const SandCacheArray *array = &frame->arrays[i];
		npy_intp column_count = array->component_count == 1 ? 0 : (npy_intp)array->component_count;
		PyObject *one = sand_py_view(owner, array->data, array->type == SAND_CACHE_I32 ? NPY_INT32 : NPY_FLOAT32,
		                             (npy_intp)frame->count, column_count);
		if (one == NULL || PyDict_SetItemString(arrays, array->name, one) != 0)
		{
			Py_CLEAR(arrays);
		}
		Py_XDECREF(one);
	}
	return arrays;
}

/// The dict of a frame; takes arrays, also on failure (it may be NULL).
static PyObject *frame_dict(const SandCacheFrame *frame, PyObject *arrays)
{
	if (arrays == NULL)
	{
		return NULL;
	}
	const float *b = frame->bounds;
	PyObject *base = frame->has_base ? PyLong_FromLong(frame->base_frame) : Py_NewRef(Py_None);
	if (base == NULL)
	{
		Py_DECREF(arrays);
		return NULL;
	}
	return Py_BuildValue("{s:i,s:d,s:K,s:K,s:K,s:I,s:I,s:((fff)(fff)),s:d,s:I,s:s,s:N,s:K,s:N}", "frame",
	                     (int)frame->frame, "seconds", frame->seconds, "settings_hash",
	                     (unsigned long long)frame->settings_hash, "motion_hash",
	                     (unsigned long long)frame->motion_hash, "state_hash", (unsigned long long)frame->state_hash,
	                     "version", (unsigned)frame->version, "count", (unsigned)frame->full_count, "bounds",
	                     (double)b[0], (double)b[1], (double)b[2], (double)b[3], (double)b[4], (double)b[5],
	                     "tolerance", frame->tolerance, "exact_count", (unsigned)frame->exact_count, "engine",
	                     frame->engine, "base", base, "bytes", (unsigned long long)frame->byte_count, "arrays", arrays);
}

/// Names out of a list or tuple of str; they live as long as the sequence that is returned. NULL with an exception.
static PyObject *read_names(PyObject *object, const char *names_out[SAND_CACHE_ARRAY_LIMIT], int *name_count_out)
{
	PyObject *list = PyUnicode_Check(object) ? NULL : PySequence_List(object);
	if (list == NULL)
	{
		if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
		{
			PyErr_Clear();
			sand_py_raise_type(object, "names", "a list of str");
		}
		return NULL;
	}
	Py_ssize_t count = PyList_Size(list);
	if (count < 1 || count > SAND_CACHE_ARRAY_LIMIT)
	{
		PyErr_Format(PyExc_ValueError, "names: found %zd, expected 1 to %d", count, SAND_CACHE_ARRAY_LIMIT);
		Py_DECREF(list);
		return NULL;
	}
	for (Py_ssize_t i = 0; i < count; ++i)
	{
		PyObject *item = PyList_GetItem(list, i);
		if (!PyUnicode_Check(item))
		{
			sand_py_raise_type(item, "names", "a list of str");
			names_out[i] = NULL;
		}
		else
		{
			names_out[i] = PyUnicode_AsUTF8AndSize(item, NULL);
		}
		if (names_out[i] == NULL)
		{
			Py_DECREF(list);
			return NULL;
		}
	}
	*name_count_out = (int)count;
	return list;
}

/// What read_frame was asked for. held and folder keep the texts alive.
typedef struct ReadArguments
{
	int32_t frame;
	const char *texts[SAND_CACHE_ARRAY_LIMIT];
	SandCacheWanted wanted;
	PyObject *folder, *held;
} ReadArguments;

static void drop_read_arguments(ReadArguments *from)
{
	Py_CLEAR(from->folder);
	Py_CLEAR(from->held);
}

/// format and names: those of the call, of which `threads` is the last or not there. -1 with an exception.
static int take_read_arguments(PyObject *args, PyObject *kwargs, const char *format, char **names, ReadArguments *out)
{
	*out = (ReadArguments){0};
	out->wanted.names = out->texts;
	PyObject *object, *wanted_names = NULL, *every_object = NULL, *notes = NULL, *threads = NULL;
	int32_t every = 1, thread_count = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, names, PyUnicode_FSConverter, &out->folder, &object,
	                                 &wanted_names, &every_object, &notes, &threads))
	{
		return -1;
	}
	bool is_good = sand_py_int32(object, "frame", &out->frame) == 0 &&
	               sand_py_int32(every_object, "every", &every) == 0 &&
	               sand_py_int32(threads, "threads", &thread_count) == 0 &&
	               sand_py_bool(notes, "notes", &out->wanted.has_notes) == 0;
	if (is_good && every < 1)
	{
		PyErr_Format(PyExc_ValueError, "every is %d, expected 1 or more", (int)every);
		is_good = false;
	}
	if (is_good && wanted_names != NULL && wanted_names != Py_None)
	{
		out->held = read_names(wanted_names, out->texts, &out->wanted.name_count);
		is_good = out->held != NULL;
	}
	out->wanted.every = (uint32_t)every;
	out->wanted.thread_count = thread_count;
	if (!is_good)
	{
		drop_read_arguments(out);
	}
	return is_good ? 0 : -1;
}

/// The dict of a frame that was read; owner frees its block.
static PyObject *read_dict(const SandCacheFrame *frame, bool has_notes, PyObject *owner)
{
	PyObject *found = owner != NULL ? frame_dict(frame, frame_arrays(frame, owner)) : NULL;
	if (found == NULL || !has_notes)
	{
		return found;
	}
	PyObject *text = frame->notes != NULL ? PyUnicode_DecodeUTF8(frame->notes, (Py_ssize_t)frame->note_bytes, "replace")
	                                      : PyUnicode_FromString("");
	if (text == NULL || PyDict_SetItemString(found, "notes", text) != 0)
	{
		Py_CLEAR(found);
	}
	Py_XDECREF(text);
	return found;
}

static PyObject *read_frame(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"folder", "frame", "names", "every", "notes", "threads", NULL};
	ReadArguments from;
	if (take_read_arguments(args, kwargs, "O&O|OOOO:read_frame", names, &from) != 0)
	{
		return NULL;
	}
	const char *path = PyBytes_AsString(from.folder);
	SandCacheFrame frame = {0};
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_cache_read(path, from.frame, &from.wanted, &frame, &err);
	PyEval_RestoreThread(thread);
	drop_read_arguments(&from);
	if (status != SAND_OK)
	{
		return sand_py_raise(sand_py_state(module), &err);
	}
	PyObject *owner = sand_py_own_block(frame.block);
	PyObject *found = read_dict(&frame, from.wanted.has_notes, owner);
	Py_XDECREF(owner);
	return found;
}

/// A dict of what the table says of each array.
static PyObject *array_dicts(const SandCacheFrame *frame)
{
	static const char *const encodings[] = {"exact", "grid", "turn", "half", "one", "same"};
	PyObject *arrays = PyDict_New();
	for (int i = 0; i < frame->array_count && arrays != NULL; ++i)
	{
		const SandCacheArray *array = &frame->arrays[i];
		PyObject *one =
		    Py_BuildValue("{s:s,s:I,s:s,s:f,s:K}", "type", array->type == SAND_CACHE_I32 ? "int32" : "float32",
		                  "components", (unsigned)array->component_count, "encoding", encodings[array->encoding],
		                  "error", (double)array->error, "bytes", (unsigned long long)array->byte_count);
		if (one == NULL || PyDict_SetItemString(arrays, array->name, one) != 0)
		{
			Py_CLEAR(arrays);
		}
		Py_XDECREF(one);
	}
	return arrays;
}

static PyObject *frame_info(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"folder", "frame", NULL};
	PyObject *folder = NULL;
	PyObject *object;
	int32_t number = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O:frame_info", names, PyUnicode_FSConverter, &folder, &object))
	{
		return NULL;
	}
	if (sand_py_int32(object, "frame", &number) != 0)
	{
		Py_DECREF(folder);
		return NULL;
	}
	const char *path = PyBytes_AsString(folder);
	SandCacheFrame frame = {0};
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_cache_peek(path, number, &frame, &err);
	PyEval_RestoreThread(thread);
	Py_DECREF(folder);
	return status == SAND_OK ? frame_dict(&frame, array_dicts(&frame)) : sand_py_raise(sand_py_state(module), &err);
}

static PyObject *make_folder(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"folder", NULL};
	PyObject *folder = NULL;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&:make_folder", names, PyUnicode_FSConverter, &folder))
	{
		return NULL;
	}
	const char *path = PyBytes_AsString(folder);
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_io_make_folder(path, &err);
	PyEval_RestoreThread(thread);
	Py_DECREF(folder);
	return status == SAND_OK ? Py_NewRef(Py_None) : sand_py_raise(sand_py_state(module), &err);
}

static PyObject *list_frames(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"folder", NULL};
	PyObject *folder = NULL;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&:list_frames", names, PyUnicode_FSConverter, &folder))
	{
		return NULL;
	}
	const char *path = PyBytes_AsString(folder);
	int32_t *frames = NULL;
	int frame_count = 0;
	uint64_t byte_count = 0;
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_cache_list(path, &frames, &frame_count, &byte_count, &err);
	PyEval_RestoreThread(thread);
	Py_DECREF(folder);
	if (status != SAND_OK)
	{
		return sand_py_raise(sand_py_state(module), &err);
	}
	PyObject *numbers = PyList_New(frame_count);
	for (int i = 0; i < frame_count && numbers != NULL; ++i)
	{
		PyObject *number = PyLong_FromLong(frames[i]);
		if (number == NULL || PyList_SetItem(numbers, i, number) != 0) // takes number, also on failure
		{
			Py_CLEAR(numbers);
		}
	}
	sand_free(frames);
	return numbers != NULL ? Py_BuildValue("NK", numbers, (unsigned long long)byte_count) : NULL;
}

static PyObject *free_frames(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"folder", "first", "last", NULL};
	PyObject *folder = NULL;
	PyObject *first_object = NULL, *last_object = NULL;
	int32_t first = INT32_MIN, last = INT32_MAX;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|OO:free_frames", names, PyUnicode_FSConverter, &folder,
	                                 &first_object, &last_object))
	{
		return NULL;
	}
	first_object = first_object == Py_None ? NULL : first_object;
	last_object = last_object == Py_None ? NULL : last_object;
	if (sand_py_int32(first_object, "first", &first) != 0 || sand_py_int32(last_object, "last", &last) != 0)
	{
		Py_DECREF(folder);
		return NULL;
	}
	const char *path = PyBytes_AsString(folder);
	int file_count = 0;
	uint64_t byte_count = 0;
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_cache_free(path, first, last, &file_count, &byte_count, &err);
	PyEval_RestoreThread(thread);
	Py_DECREF(folder);
	return status == SAND_OK ? Py_BuildValue("iK", file_count, (unsigned long long)byte_count)
	                         : sand_py_raise(sand_py_state(module), &err);
}

static PyObject *read_checkpoint(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"folder", "settings_hash", "last", NULL};
	PyObject *folder = NULL;
	PyObject *hash_object = NULL, *last_object = NULL;
	uint64_t settings_hash = 0;
	int32_t last = INT32_MAX;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|OO:read_checkpoint", names, PyUnicode_FSConverter, &folder,
	                                 &hash_object, &last_object))
	{
		return NULL;
	}
	last_object = last_object == Py_None ? NULL : last_object;
	if (sand_py_uint64(hash_object, "settings_hash", &settings_hash) != 0 ||
	    sand_py_int32(last_object, "last", &last) != 0)
	{
		Py_DECREF(folder);
		return NULL;
	}
	const char *path = PyBytes_AsString(folder);
	SandCheckpoint checkpoint = {0};
	char note[SAND_MESSAGE_BYTES];
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_checkpoint_read(path, settings_hash, last, &checkpoint, note, &err);
	PyEval_RestoreThread(thread);
	Py_DECREF(folder);
	if (status != SAND_OK)
	{
		return sand_py_raise(sand_py_state(module), &err);
	}
	PyObject *text = PyUnicode_DecodeUTF8(note, (Py_ssize_t)strlen(note), "replace");
	PyObject *bytes = checkpoint.bytes == NULL
	                      ? Py_NewRef(Py_None)
	                      : PyBytes_FromStringAndSize(checkpoint.bytes, (Py_ssize_t)checkpoint.byte_count);
	sand_free((void *)checkpoint.bytes);
	if (text == NULL || bytes == NULL)
	{
		Py_XDECREF(text);
		Py_XDECREF(bytes);
		return NULL;
	}
	return Py_BuildValue("{s:i,s:d,s:K,s:K,s:K,s:N,s:N}", "frame", (int)checkpoint.frame, "seconds", checkpoint.seconds,
	                     "settings_hash", (unsigned long long)checkpoint.settings_hash, "motion_hash",
	                     (unsigned long long)checkpoint.motion_hash, "state_hash",
	                     (unsigned long long)checkpoint.state_hash, "note", text, "bytes", bytes);
}

static PyObject *checkpoint_dict(const SandCheckpointInfo *info)
{
	const SandCheckpoint *found = &info->checkpoint;
	PyObject *error = PyUnicode_DecodeUTF8(info->error, (Py_ssize_t)strlen(info->error), "replace");
	PyObject *is_kept = PyBool_FromLong(found->is_kept);
	if (error == NULL || is_kept == NULL)
	{
		Py_XDECREF(error);
		Py_XDECREF(is_kept);
		return NULL;
	}
	return Py_BuildValue("{s:s,s:i,s:d,s:K,s:K,s:K,s:N,s:N,s:K}", "name", info->name, "frame", (int)found->frame,
	                     "seconds", found->seconds, "settings_hash", (unsigned long long)found->settings_hash,
	                     "motion_hash", (unsigned long long)found->motion_hash, "state_hash",
	                     (unsigned long long)found->state_hash, "is_kept", is_kept, "error", error, "bytes",
	                     (unsigned long long)info->byte_count);
}

static PyObject *list_checkpoints(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"folder", "verify", NULL};
	PyObject *folder = NULL;
	PyObject *verify = NULL;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O:list_checkpoints", names, PyUnicode_FSConverter, &folder,
	                                 &verify))
	{
		return NULL;
	}
	bool is_verified = false;
	if (sand_py_bool(verify, "verify", &is_verified) != 0)
	{
		Py_DECREF(folder);
		return NULL;
	}
	const char *path = PyBytes_AsString(folder);
	SandCheckpointInfo *infos = NULL;
	int count = 0;
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_checkpoint_list(path, is_verified, &infos, &count, &err);
	PyEval_RestoreThread(thread);
	Py_DECREF(folder);
	if (status != SAND_OK)
	{
		return sand_py_raise(sand_py_state(module), &err);
	}
	PyObject *list = PyList_New(count);
	for (int i = 0; i < count && list != NULL; ++i)
	{
		PyObject *one = checkpoint_dict(&infos[i]);
		if (one == NULL || PyList_SetItem(list, i, one) != 0) // takes it, also on failure
		{
			Py_CLEAR(list);
		}
	}
	sand_free(infos);
	return list;
}

// Types. Each is closed by close() or at its end; what is used while another thread closes it is refused.

typedef struct HandleObject
{
	PyObject_HEAD void *handle; // SandCacheReader, SandWriter or SandLock; NULL = closed
	int use_count;              // calls under way without the GIL
	PyObject *note;             // Lock: a str
} HandleObject;

static PyObject *new_handle(PyTypeObject *type)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	return alloc(type, 0);
}

static void release(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
	free_object(self);
	Py_DECREF(type);
}

/// The open handle, or NULL with ValueError.
static void *open_handle(PyObject *self)
{
	HandleObject *object = (HandleObject *)self;
	if (object->handle == NULL)
	{
		PyErr_SetString(PyExc_ValueError, "it is closed");
	}
	return object->handle;
}

static const SandPyState *state_of(PyObject *self)
{
	return PyType_GetModuleState(Py_TYPE(self));
}

/// For close(): takes the handle out, NULL without an exception when it is closed already.
static int take_handle(PyObject *self, void **handle_out)
{
	HandleObject *object = (HandleObject *)self;
	*handle_out = NULL;
	if (object->use_count > 0)
	{
		PyErr_SetString(PyExc_RuntimeError, "another thread uses it");
		return -1;
	}
	*handle_out = object->handle;
	object->handle = NULL;
	return 0;
}

static PyObject *enter_block(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	return open_handle(self) != NULL ? Py_NewRef(self) : NULL;
}

// Reader

#define READ_BLOCK_NAME "barchan.read_block"

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"threads", NULL};
	PyObject *threads = NULL;
	int32_t thread_count = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Reader", names, &threads) ||
	    sand_py_int32(threads, "threads", &thread_count) != 0)
	{
		return NULL;
	}
	PyObject *self = new_handle(type);
	SandCacheReader *reader = NULL;
	SandError err = {0};
	if (self != NULL && sand_cache_reader_create(thread_count, &reader, &err) != SAND_OK)
	{
		sand_py_raise(state_of(self), &err);
		Py_CLEAR(self);
	}
	if (self != NULL)
	{
		((HandleObject *)self)->handle = reader;
	}
	return self;
}

static void reader_dealloc(PyObject *self)
{
	sand_cache_reader_destroy(((HandleObject *)self)->handle);
	release(self);
}

/// The last array of a frame is gone: its block goes to the reader, or away when that is closed.
static void give_back(PyObject *capsule)
{
	void *block = PyCapsule_GetPointer(capsule, READ_BLOCK_NAME);
	PyObject *self = PyCapsule_GetContext(capsule);
	SandCacheReader *reader = ((HandleObject *)self)->handle;
	if (reader != NULL)
	{
		sand_cache_reader_give_back(reader, block);
	}
	else
	{
		sand_free(block);
	}
	Py_DECREF(self);
}

static PyObject *reader_read(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"folder", "frame", "names", "every", "notes", NULL};
	HandleObject *object = (HandleObject *)self;
	ReadArguments from;
	if (open_handle(self) == NULL || take_read_arguments(args, kwargs, "O&O|OOO:read_frame", names, &from) != 0)
	{
		return NULL;
	}
	const char *path = PyBytes_AsString(from.folder);
	SandCacheFrame frame = {0};
	SandError err = {0};
	object->use_count++;
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_cache_reader_read(object->handle, path, from.frame, &from.wanted, &frame, &err);
	PyEval_RestoreThread(thread);
	object->use_count--;
	drop_read_arguments(&from);
	if (status != SAND_OK)
	{
		return sand_py_raise(state_of(self), &err);
	}
	PyObject *owner = PyCapsule_New(frame.block, READ_BLOCK_NAME, NULL);
	if (owner == NULL || PyCapsule_SetContext(owner, self) != 0 || PyCapsule_SetDestructor(owner, give_back) != 0)
	{
		Py_XDECREF(owner); // which has no destructor yet
		sand_free(frame.block);
		return NULL;
	}
	Py_INCREF(self);
	PyObject *found = read_dict(&frame, from.wanted.has_notes, owner);
	Py_DECREF(owner);
	return found;
}

static PyObject *reader_forget(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	SandCacheReader *reader = open_handle(self);
	if (reader == NULL)
	{
		return NULL;
	}
	sand_cache_reader_give_back(reader, NULL);
	return Py_NewRef(Py_None);
}

static PyObject *reader_close(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	void *handle;
	if (take_handle(self, &handle) != 0)
	{
		return NULL;
	}
	sand_cache_reader_destroy(handle);
	return Py_NewRef(Py_None);
}

static PyMethodDef reader_methods[] = {
    {"read_frame", WITH_KEYWORDS(reader_read),
     "read_frame(folder, frame, names=None, every=1, notes=False)\n--\n\nAs barchan.read_frame. Any thread, in turn."},
    {"forget", reader_forget, METH_NOARGS,
     "forget()\n--\n\nGives the memory that is kept for the next frame back to the system."},
    {"close", reader_close, METH_NOARGS, "close()\n--\n\nEnds the threads; arrays that were read stay good."},
    {"__enter__", enter_block, METH_NOARGS, NULL},
    {"__exit__", reader_close, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "Reader(threads=0)\n--\n\nReads frame after frame: keeps threads and, when the arrays of a frame are "
                "gone, their memory for the next."},
    {Py_tp_new, (void *)reader_new},
    {Py_tp_dealloc, (void *)reader_dealloc},
    {Py_tp_methods, reader_methods},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    .name = "barchan.Reader",
    .basicsize = sizeof(HandleObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = reader_slots,
};

// Writer

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"folder", "tolerance", "velocity_tolerance", "spin_tolerance", "exact_count",
	                        "engine", "threads",   "key_interval",       "queue",          "byte_limit",
	                        "notes",  NULL};
	PyObject *folder = NULL;
	OptionArguments from = {0};
	PyObject *key_interval = NULL, *queue = NULL, *byte_limit = NULL, *notes = NULL;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$OOOOOOOOOO:Writer", names, PyUnicode_FSConverter, &folder,
	                                 &from.tolerance, &from.velocity_tolerance, &from.spin_tolerance, &from.exact_count,
	                                 &from.engine, &from.threads, &key_interval, &queue, &byte_limit, &notes))
	{
		return NULL;
	}
	SandWriterDesc desc = {.folder = PyBytes_AsString(folder)};
	int32_t interval = 0, queue_limit = 0;
	PyObject *self = NULL;
	if (read_options(&from, &desc.options) == 0 && sand_py_int32(key_interval, "key_interval", &interval) == 0 &&
	    sand_py_int32(queue, "queue", &queue_limit) == 0 &&
	    sand_py_uint64(byte_limit, "byte_limit", &desc.byte_limit) == 0 &&
	    read_notes(notes, &desc.notes, &desc.note_bytes) == 0)
	{
		desc.key_interval = interval;
		desc.queue_limit = queue_limit;
		self = new_handle(type);
	}
	if (self != NULL)
	{
		SandWriter *writer = NULL;
		SandError err = {0};
		SandStatus status = sand_writer_create(&desc, &writer, &err);
		((HandleObject *)self)->handle = writer;
		if (status != SAND_OK)
		{
			sand_py_raise(state_of(self), &err);
			Py_CLEAR(self);
		}
	}
	Py_DECREF(folder);
	return self;
}

static void writer_dealloc(PyObject *self)
{
	SandWriter *writer = ((HandleObject *)self)->handle;
	if (writer != NULL)
	{
		PyThreadState *thread = PyEval_SaveThread(); // the frame under way is finished
		sand_writer_destroy(writer);
		PyEval_RestoreThread(thread);
	}
	release(self);
}

static PyObject *writer_push(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"frame", "arrays", "seconds", "settings_hash", "state_hash", "motion_hash", NULL};
	PyObject *arrays;
	HeadArguments head = {0};
	SandCacheFrame frame = {0};
	SandWriter *writer = open_handle(self);
	if (writer == NULL ||
	    !PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOOO:push", names, &head.number, &arrays, &head.seconds,
	                                 &head.settings_hash, &head.state_hash, &head.motion_hash) ||
	    read_head(&head, &frame) != 0)
	{
		return NULL;
	}
	PyObject *held = add_frame_arrays(&frame, arrays);
	writer = held != NULL ? open_handle(self) : NULL; // converting an array may have run Python code
	if (writer == NULL)
	{
		Py_XDECREF(held);
		return NULL;
	}
	SandError err = {0};
	((HandleObject *)self)->use_count++;
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_writer_push(writer, &frame, &err);
	PyEval_RestoreThread(thread);
	((HandleObject *)self)->use_count--;
	Py_DECREF(held);
	return status == SAND_OK ? Py_NewRef(Py_None) : sand_py_raise(state_of(self), &err);
}

static PyObject *writer_push_checkpoint(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"frame", "bytes", "seconds", "settings_hash", "state_hash", "motion_hash", "keep", NULL};
	PyObject *bytes;
	PyObject *keep = NULL;
	HeadArguments head = {0};
	SandCacheFrame frame = {0};
	bool is_kept = false;
	SandWriter *writer = open_handle(self);
	if (writer == NULL ||
	    !PyArg_ParseTupleAndKeywords(args, kwargs, "OS|OOOOO:push_checkpoint", names, &head.number, &bytes,
	                                 &head.seconds, &head.settings_hash, &head.state_hash, &head.motion_hash, &keep) ||
	    read_head(&head, &frame) != 0 || sand_py_bool(keep, "keep", &is_kept) != 0)
	{
		return NULL;
	}
	SandCheckpoint checkpoint = {
	    .frame = frame.frame,
	    .seconds = frame.seconds,
	    .settings_hash = frame.settings_hash,
	    .motion_hash = frame.motion_hash,
	    .state_hash = frame.state_hash,
	    .is_kept = is_kept,
	    .bytes = PyBytes_AsString(bytes),
	    .byte_count = (size_t)PyBytes_Size(bytes),
	};
	SandError err = {0};
	Py_INCREF(bytes);
	((HandleObject *)self)->use_count++;
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_writer_push_checkpoint(writer, &checkpoint, &err);
	PyEval_RestoreThread(thread);
	((HandleObject *)self)->use_count--;
	Py_DECREF(bytes);
	return status == SAND_OK ? Py_NewRef(Py_None) : sand_py_raise(state_of(self), &err);
}

static PyObject *writer_flush(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	SandWriter *writer = open_handle(self);
	if (writer == NULL)
	{
		return NULL;
	}
	SandError err = {0};
	((HandleObject *)self)->use_count++;
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_writer_flush(writer, &err);
	PyEval_RestoreThread(thread);
	((HandleObject *)self)->use_count--;
	return status == SAND_OK ? Py_NewRef(Py_None) : sand_py_raise(state_of(self), &err);
}

static PyObject *writer_info(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	SandWriter *writer = open_handle(self);
	if (writer == NULL)
	{
		return NULL;
	}
	SandWriterInfo info = sand_writer_info(writer);
	return Py_BuildValue("{s:L,s:K,s:i,s:d,s:d,s:i,s:i,s:L}", "frame_count", (long long)info.frame_count, "byte_count",
	                     (unsigned long long)info.byte_count, "queue_count", info.queue_count, "wait_seconds",
	                     info.wait_seconds, "write_seconds", info.write_seconds, "last_frame", (int)info.last_frame,
	                     "last_checkpoint", (int)info.last_checkpoint, "checkpoint_count",
	                     (long long)info.checkpoint_count);
}

static PyObject *writer_close(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	void *handle;
	if (take_handle(self, &handle) != 0)
	{
		return NULL;
	}
	SandError err = {0};
	SandStatus status = SAND_OK;
	if (handle != NULL)
	{
		PyThreadState *thread = PyEval_SaveThread();
		status = sand_writer_flush(handle, &err);
		sand_writer_destroy(handle);
		PyEval_RestoreThread(thread);
	}
	return status == SAND_OK ? Py_NewRef(Py_None) : sand_py_raise(state_of(self), &err);
}

/// After an exception in the block what waits is dropped: that exception is the one to report.
static PyObject *writer_exit(PyObject *self, PyObject *args)
{
	PyObject *kind = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : Py_None;
	if (kind == Py_None)
	{
		return writer_close(self, NULL);
	}
	void *handle;
	if (take_handle(self, &handle) != 0)
	{
		return NULL;
	}
	PyThreadState *thread = PyEval_SaveThread();
	sand_writer_destroy(handle);
	PyEval_RestoreThread(thread);
	return Py_NewRef(Py_None);
}

static PyMethodDef writer_methods[] = {
    {"push", WITH_KEYWORDS(writer_push),
     "push(frame, arrays, seconds=0.0, settings_hash=0, state_hash=0, motion_hash=0)\n--\n\n"
     "Hands a frame to the writing thread, a copy of it; waits while the queue is full. Raises what an earlier write "
     "failed with."},
    {"push_checkpoint", WITH_KEYWORDS(writer_push_checkpoint),
     "push_checkpoint(frame, bytes, seconds=0.0, settings_hash=0, state_hash=0, motion_hash=0, keep=False)\n--\n\n"
     "The bytes of Sim.save() as the state of that frame, written behind all frames pushed before. keep: beside the "
     "two\n"
     "that take turns, as long as the limit has room for it."},
    {"flush", writer_flush, METH_NOARGS, "flush()\n--\n\nWaits until everything pushed is durable."},
    {"info", writer_info, METH_NOARGS, "info()\n--\n\nA dict of SandWriterInfo. Any thread."},
    {"close", writer_close, METH_NOARGS, "close()\n--\n\nflush(), and the end of the thread."},
    {"__enter__", enter_block, METH_NOARGS, NULL},
    {"__exit__", writer_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot writer_slots[] = {
    {Py_tp_doc,
     "Writer(folder, *, tolerance=0.0, velocity_tolerance=0.0, spin_tolerance=0.0, exact_count=0, engine='', "
     "threads=0, key_interval=0, queue=0, "
     "byte_limit=0, notes='')\n--\n\nWrites frames and checkpoints on a thread of its own, in the order given."},
    {Py_tp_new, (void *)writer_new},
    {Py_tp_dealloc, (void *)writer_dealloc},
    {Py_tp_methods, writer_methods},
    {0, NULL},
};

static PyType_Spec writer_spec = {
    .name = "barchan.Writer",
    .basicsize = sizeof(HandleObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = writer_slots,
};

// Lock

static PyObject *lock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"folder", NULL};
	PyObject *folder = NULL;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&:Lock", names, PyUnicode_FSConverter, &folder))
	{
		return NULL;
	}
	PyObject *self = new_handle(type);
	if (self != NULL)
	{
		HandleObject *object = (HandleObject *)self;
		const char *path = PyBytes_AsString(folder);
		char note[SAND_MESSAGE_BYTES];
		SandLock *lock = NULL;
		SandError err = {0};
		PyThreadState *thread = PyEval_SaveThread();
		SandStatus status = sand_lock_take(path, &lock, note, &err);
		PyEval_RestoreThread(thread);
		object->handle = lock;
		object->note = status == SAND_OK ? PyUnicode_DecodeUTF8(note, (Py_ssize_t)strlen(note), "replace") : NULL;
		if (status != SAND_OK)
		{
			sand_py_raise(state_of(self), &err);
		}
		if (object->note == NULL)
		{
			Py_CLEAR(self);
		}
	}
	Py_DECREF(folder);
	return self;
}

static void lock_dealloc(PyObject *self)
{
	sand_lock_release(((HandleObject *)self)->handle);
	Py_XDECREF(((HandleObject *)self)->note);
	release(self);
}

static PyObject *lock_release(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	void *handle;
	if (take_handle(self, &handle) != 0)
	{
		return NULL;
	}
	sand_lock_release(handle);
	return Py_NewRef(Py_None);
}

static PyObject *lock_note(PyObject *self, void *closure)
{
	(void)closure;
	return Py_NewRef(((HandleObject *)self)->note);
}

static PyGetSetDef lock_getset[] = {
    {"note", lock_note, NULL, "A sentence when the lock of a dead owner was taken over, else ''.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef lock_methods[] = {
    {"release", lock_release, METH_NOARGS, "release()\n--\n\nGives the folder back; fine when it was before."},
    {"__enter__", enter_block, METH_NOARGS, NULL},
    {"__exit__", lock_release, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot lock_slots[] = {
    {Py_tp_doc, "Lock(folder)\n--\n\nOne baker per cache folder. CacheError when a living process holds it."},
    {Py_tp_new, (void *)lock_new},
    {Py_tp_dealloc, (void *)lock_dealloc},
    {Py_tp_getset, lock_getset},
    {Py_tp_methods, lock_methods},
    {0, NULL},
};

static PyType_Spec lock_spec = {
    .name = "barchan.Lock",
    .basicsize = sizeof(HandleObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = lock_slots,
};

static PyMethodDef methods[] = {
    {"write_frame", WITH_KEYWORDS(write_frame),
     "write_frame(folder, frame, arrays, seconds=0.0, settings_hash=0, state_hash=0, *, motion_hash=0, tolerance=0.0, "
     "velocity_tolerance=0.0, spin_tolerance=0.0, exact_count=0, engine='', threads=0, notes='')\n--\n\n"
     "Writes a dict of arrays as one frame file, whole or not at all. No other thread may change them meanwhile.\n"
     "tolerance: distance in metres that positions may be off by; 0 keeps every array bit for bit."},
    {"measure_frame", WITH_KEYWORDS(measure_frame),
     "measure_frame(arrays, tolerance=0.0, *, velocity_tolerance=0.0, spin_tolerance=0.0, exact_count=0, "
     "threads=0)\n--\n\n"
     "Bytes that write_frame would write, for an estimate."},
    {"read_frame", WITH_KEYWORDS(read_frame),
     "read_frame(folder, frame, names=None, every=1, notes=False, threads=0)\n--\n\n"
     "Reads and verifies one frame, or only the named arrays, or every k-th grain: a dict. notes: also the notes."},
    {"frame_info", WITH_KEYWORDS(frame_info),
     "frame_info(folder, frame)\n--\n\nThe dict of read_frame from header and table alone; arrays: what each is."},
    {"make_folder", WITH_KEYWORDS(make_folder),
     "make_folder(folder)\n--\n\nMakes the folder and its parents, and proves that a file can be written in it."},
    {"list_frames", WITH_KEYWORDS(list_frames),
     "list_frames(folder)\n--\n\nThe frame numbers in the folder, ascending, and the bytes of their files."},
    {"free_frames", WITH_KEYWORDS(free_frames),
     "free_frames(folder, first=None, last=None)\n--\n\n"
     "Removes frames; all of them with the checkpoints, and the folder when it is then empty. The number of files and "
     "bytes removed."},
    {"read_checkpoint", WITH_KEYWORDS(read_checkpoint),
     "read_checkpoint(folder, settings_hash=0, last=None)\n--\n\n"
     "The checkpoint of the latest frame up to last that verifies: a dict; bytes is None when there is none."},
    {"list_checkpoints", WITH_KEYWORDS(list_checkpoints),
     "list_checkpoints(folder, verify=False)\n--\n\n"
     "Every checkpoint in the folder: a list of dicts, from headers or, with verify, from all bytes; error says what "
     "is\n"
     "wrong with one, or is ''."},
    {NULL, NULL, 0, NULL},
};

int sand_py_add_cache(PyObject *module)
{
	PyType_Spec *const specs[] = {&reader_spec, &writer_spec, &lock_spec};
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; ++i)
	{
		PyObject *type = PyType_FromModuleAndSpec(module, specs[i], NULL);
		int result = type != NULL ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
		Py_XDECREF(type); // the module keeps it
		if (result != 0)
		{
			return -1;
		}
	}
	return PyModule_AddFunctions(module, methods);
}
