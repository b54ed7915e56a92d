// py_light: Light of the extension module: pictures of grains and meshes. Comes in: Python calls with arrays. Goes out:
// arrays of pixels. The GIL is released while a device works; one call at a time per object.
#include "py_module.h"

#include "light.h"

#include <string.h>

typedef struct LightObject
{
	PyObject_HEAD SandLight *light;
	int width, height;
	bool is_busy;
} LightObject;

/// Arrays of one call, kept until it ends: items of a list, which owns them.
static PyArrayObject *keep(PyObject *kept, PyArrayObject *array)
{
	if (array == NULL || PyList_Append(kept, (PyObject *)array) != 0)
	{
		Py_XDECREF((PyObject *)array);
		return NULL;
	}
	Py_DECREF((PyObject *)array);
	return array;
}

static bool is_given(PyObject *object)
{
	return object != NULL && object != Py_None;
}

/// Floats of a fixed count. False with an exception.
static bool read_floats(PyObject *object, const char *name, int count, float *out)
{
	if (!is_given(object))
	{
		return true;
	}
	PyArrayObject *array = sand_py_floats(object, name, count, 0);
	if (array == NULL)
	{
		return false;
	}
	memcpy(out, PyArray_DATA(array), (size_t)count * sizeof *out);
	Py_DECREF((PyObject *)array);
	return true;
}

/// An array that may be left out. False with an exception.
static bool read_array(PyObject *kept, PyObject *object, const char *name, npy_intp rows, npy_intp columns,
                       const float **out)
{
	if (!is_given(object))
	{
		return true;
	}
	PyArrayObject *array = keep(kept, sand_py_floats(object, name, rows, columns));
	*out = array != NULL ? PyArray_DATA(array) : NULL;
	return array != NULL;
}

static bool read_ints(PyObject *kept, PyObject *object, const char *name, npy_intp rows, const int32_t **out)
{
	if (!is_given(object))
	{
		return true;
	}
	PyArrayObject *array = keep(kept, sand_py_ints(object, name, rows, 0));
	*out = array != NULL ? PyArray_DATA(array) : NULL;
	return array != NULL;
}

/// A sequence as a list of tuples with so many items, or NULL with an exception. A new reference.
static PyObject *read_tuples(PyObject *object, const char *name, Py_ssize_t item_count, const char *expected)
{
	PyObject *list = is_given(object) ? PySequence_List(object) : PyList_New(0);
	for (Py_ssize_t i = 0; list != NULL && i < PyList_Size(list); ++i)
	{
		PyObject *item = PyList_GetItem(list, i);
		if (!PyTuple_Check(item) || PyTuple_Size(item) != item_count)
		{
			sand_py_raise_type(item, name, expected);
			Py_CLEAR(list);
		}
	}
	return list;
}

static bool read_shapes(PyObject *kept, PyObject *object, SandLightGrains *grains)
{
	PyObject *list = read_tuples(object, "shapes", 2, "a list of (offsets, radii)");
	if (list == NULL)
	{
		return false;
	}
	Py_ssize_t count = PyList_Size(list);
	SandLightShape *shapes = sand_alloc((size_t)count, sizeof *shapes);
	grains->shapes = shapes;
	grains->shape_count = (int)count;
	bool is_good = shapes != NULL;
	if (!is_good)
	{
		PyErr_NoMemory();
	}
	for (Py_ssize_t i = 0; i < count && is_good; ++i)
	{
		PyObject *item = PyList_GetItem(list, i);
		PyArrayObject *offsets = keep(kept, sand_py_floats(PyTuple_GetItem(item, 0), "shapes: offsets", -1, 3));
		npy_intp sphere_count = offsets != NULL ? PyArray_DIM(offsets, 0) : 0;
		PyArrayObject *radii =
		    offsets != NULL ? keep(kept, sand_py_floats(PyTuple_GetItem(item, 1), "shapes: radii", sphere_count, 0))
		                    : NULL;
		is_good = radii != NULL;
		if (is_good)
		{
			shapes[i] = (SandLightShape){PyArray_DATA(offsets), PyArray_DATA(radii), (int)sphere_count};
		}
	}
	Py_DECREF(list);
	return is_good;
}

static bool read_meshes(PyObject *kept, PyObject *object, SandLightScene *scene)
{
	PyObject *list = read_tuples(object, "meshes", 6, "a list of (vertices, triangles, pose, colour, smooth, clear)");
	if (list == NULL)
	{
		return false;
	}
	Py_ssize_t count = PyList_Size(list);
	SandLightMesh *meshes = sand_alloc((size_t)count, sizeof *meshes);
	scene->meshes = meshes;
	scene->mesh_count = (int)count;
	bool is_good = meshes != NULL;
	if (!is_good)
	{
		PyErr_NoMemory();
	}
	for (Py_ssize_t i = 0; i < count && is_good; ++i)
	{
		PyObject *item = PyList_GetItem(list, i);
		float pose[7] = {0, 0, 0, 1, 0, 0, 0}, colour[4] = {0};
		PyArrayObject *vertices = keep(kept, sand_py_floats(PyTuple_GetItem(item, 0), "meshes: vertices", -1, 3));
		PyArrayObject *triangles =
		    vertices != NULL ? keep(kept, sand_py_ints(PyTuple_GetItem(item, 1), "meshes: triangles", -1, 3)) : NULL;
		is_good = triangles != NULL && read_floats(PyTuple_GetItem(item, 2), "meshes: pose", 7, pose) &&
		          read_floats(PyTuple_GetItem(item, 3), "meshes: colour and gloss", 4, colour) &&
		          sand_py_bool(PyTuple_GetItem(item, 4), "meshes: smooth", &meshes[i].is_smooth) == 0 &&
		          sand_py_bool(PyTuple_GetItem(item, 5), "meshes: clear", &meshes[i].is_clear) == 0;
		if (is_good)
		{
			meshes[i].vertices = PyArray_DATA(vertices);
			meshes[i].vertex_count = (int)PyArray_DIM(vertices, 0);
			meshes[i].triangles = PyArray_DATA(triangles);
			meshes[i].triangle_count = (int)PyArray_DIM(triangles, 0);
			memcpy(meshes[i].position, pose, sizeof meshes[i].position);
			memcpy(meshes[i].rotation, pose + 3, sizeof meshes[i].rotation);
			memcpy(meshes[i].colour, colour, sizeof meshes[i].colour);
			meshes[i].gloss = colour[3];
		}
	}
	Py_DECREF(list);
	return is_good;
}

/// field: (distances (D, H, W), (x, y, z, spacing), colour). False with an exception.
static bool read_field(PyObject *kept, PyObject *object, SandLightField *field)
{
	if (!PyTuple_Check(object) || PyTuple_Size(object) != 3)
	{
		sand_py_raise_type(object, "field", "(distances, (x, y, z, spacing), colour)");
		return false;
	}
	float place[4] = {0};
	PyObject *given = PyTuple_GetItem(object, 0);
	if (!PyArray_Check(given) || PyArray_NDIM((PyArrayObject *)given) != 3)
	{
		sand_py_raise_type(given, "field: distances", "an array of three dimensions");
		return false;
	}
	PyObject *flat = PyArray_Ravel((PyArrayObject *)given, NPY_CORDER);
	PyArrayObject *distances = flat != NULL ? keep(kept, sand_py_floats(flat, "field: distances", -1, 0)) : NULL;
	Py_XDECREF(flat);
	if (distances == NULL || !read_floats(PyTuple_GetItem(object, 1), "field: origin and spacing", 4, place) ||
	    !read_floats(PyTuple_GetItem(object, 2), "field: colour", 3, field->colour))
	{
		return false;
	}
	field->distances = PyArray_DATA(distances);
	field->depth = (int)PyArray_DIM((PyArrayObject *)given, 0);
	field->height = (int)PyArray_DIM((PyArrayObject *)given, 1);
	field->width = (int)PyArray_DIM((PyArrayObject *)given, 2);
	memcpy(field->origin, place, sizeof field->origin);
	field->spacing = place[3];
	return true;
}

static PyObject *light_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"width", "height", "samples", "shadow_size", "device", "measure", NULL};
	SandLightDesc desc = {0};
	PyObject *measure = NULL;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ii|iii$O:Light", names, &desc.width, &desc.height,
	                                 &desc.sample_edge, &desc.shadow_size, &desc.device.device, &measure) ||
	    sand_py_bool(measure, "measure", &desc.has_timers) != 0)
	{
		return NULL;
	}
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	PyObject *self = alloc(type, 0);
	if (self == NULL)
	{
		return NULL;
	}
	LightObject *object = (LightObject *)self;
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_light_create(&desc, &object->light, &err);
	PyEval_RestoreThread(thread);
	object->width = desc.width;
	object->height = desc.height;
	if (status != SAND_OK)
	{
		sand_py_raise(PyType_GetModuleState(type), &err);
		Py_CLEAR(self);
	}
	return self;
}

static void light_dealloc(PyObject *self)
{
	LightObject *object = (LightObject *)self;
	PyTypeObject *type = Py_TYPE(self);
	PyThreadState *thread = PyEval_SaveThread();
	sand_light_destroy(object->light);
	PyEval_RestoreThread(thread);
	freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
	free_object(self);
	Py_DECREF(type);
}

/// A new array (height, width, columns) under a name of the dict, and its data; NULL with an exception.
static void *add_array(PyObject *dict, const char *name, int type, npy_intp height, npy_intp width, npy_intp columns)
{
	npy_intp shape[3] = {height, width, columns};
	PyObject *array = PyArray_SimpleNew(columns > 1 ? 3 : 2, shape, type);
	if (array == NULL || PyDict_SetItemString(dict, name, array) != 0)
	{
		Py_XDECREF(array);
		return NULL;
	}
	void *data = PyArray_DATA((PyArrayObject *)array);
	Py_DECREF(array); // the dict keeps it
	return data;
}

static PyObject *run_draw(LightObject *object, const SandLightScene *scene, bool wants_samples)
{
	PyObject *dict = PyDict_New();
	SandLightImage image = {0};
	bool is_good =
	    dict != NULL && (image.pixels = add_array(dict, "pixels", NPY_UINT8, object->height, object->width, 4)) != NULL;
	if (is_good && wants_samples)
	{
		npy_intp edge = sand_light_sample_edge(object->light);
		npy_intp height = object->height * edge, width = object->width * edge;
		is_good = (image.depths = add_array(dict, "depths", NPY_FLOAT32, height, width, 1)) != NULL &&
		          (image.normals = add_array(dict, "normals", NPY_FLOAT32, height, width, 3)) != NULL &&
		          (image.lit = add_array(dict, "lit", NPY_FLOAT32, height, width, 1)) != NULL &&
		          (image.radiance = add_array(dict, "radiance", NPY_FLOAT32, height, width, 3)) != NULL;
	}
	if (is_good && object->is_busy)
	{
		PyErr_SetString(PyExc_RuntimeError, "another thread draws with it");
		is_good = false;
	}
	if (is_good)
	{
		SandError err = {0};
		object->is_busy = true;
		PyThreadState *thread = PyEval_SaveThread();
		SandStatus status = sand_light_draw(object->light, scene, &image, &err);
		PyEval_RestoreThread(thread);
		object->is_busy = false;
		is_good = status == SAND_OK;
		if (!is_good)
		{
			sand_py_raise(PyType_GetModuleState(Py_TYPE((PyObject *)object)), &err);
		}
	}
	if (!is_good)
	{
		Py_CLEAR(dict);
	}
	return dict;
}

static PyObject *light_draw(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"camera", "positions", "shapes",    "orthographic", "rotations",    "shape_of",
	                        "scales", "seeds",     "hidden",    "wetness",      "round",        "palette",
	                        "meshes", "field",     "sun",       "sky",          "floor",        "exposure",
	                        "ground", "shadows",   "occlusion", "seed",         "give_samples", NULL};
	PyObject *camera = NULL, *positions = NULL, *shapes = NULL, *orthographic = NULL, *rotations = NULL,
	         *shape_of = NULL, *scales = NULL, *seeds = NULL, *hidden = NULL, *wetness = NULL, *round = NULL,
	         *palette = NULL, *meshes = NULL, *field = NULL, *sun = NULL, *sky = NULL, *floor = NULL, *ground = NULL,
	         *shadows = NULL, *occlusion = NULL, *give_samples = NULL;
	SandLightScene scene = {0};
	int seed = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOOOOOOOOOOOOOOfOOOiO:draw", names, &camera, &positions,
	                                 &shapes, &orthographic, &rotations, &shape_of, &scales, &seeds, &hidden, &wetness,
	                                 &round, &palette, &meshes, &field, &sun, &sky, &floor, &scene.exposure, &ground,
	                                 &shadows, &occlusion, &seed, &give_samples))
	{
		return NULL;
	}
	PyObject *kept = PyList_New(0);
	if (kept == NULL)
	{
		return NULL;
	}
	SandLightGrains *grains = &scene.grains;
	SandLightField of_field = {0};
	float lens[13] = {0}, of_sun[7] = {0}, of_ground[4] = {0};
	bool has_shadows = true, has_occlusion = true, wants_samples = false;
	const int32_t *of_seeds = NULL, *of_hidden = NULL;
	uint8_t *is_hidden = NULL;
	PyObject *result = NULL;
	scene.seed = (uint32_t)seed;
	PyArrayObject *places = is_given(positions) ? keep(kept, sand_py_floats(positions, "positions", -1, 3)) : NULL;
	bool is_good = !is_given(positions) || places != NULL;
	npy_intp count = places != NULL ? PyArray_DIM(places, 0) : 0;
	is_good =
	    is_good && read_floats(camera, "camera", 13, lens) && read_floats(sun, "sun", 7, of_sun) &&
	    read_floats(sky, "sky", 3, scene.sky_colour) && read_floats(floor, "floor", 3, scene.floor_colour) &&
	    read_floats(ground, "ground", 4, of_ground) && read_shapes(kept, shapes, grains) &&
	    read_meshes(kept, meshes, &scene) && read_array(kept, rotations, "rotations", count, 4, &grains->rotations) &&
	    read_array(kept, scales, "scales", count, 0, &grains->scales) &&
	    read_ints(kept, shape_of, "shape_of", count, &grains->shape_of) &&
	    read_ints(kept, seeds, "seeds", count, &of_seeds) && read_ints(kept, hidden, "hidden", count, &of_hidden) &&
	    sand_py_bool(orthographic, "orthographic", &scene.camera.is_orthographic) == 0 &&
	    sand_py_bool(round, "round", &grains->is_round) == 0 && sand_py_bool(shadows, "shadows", &has_shadows) == 0 &&
	    sand_py_bool(occlusion, "occlusion", &has_occlusion) == 0 &&
	    sand_py_bool(give_samples, "give_samples", &wants_samples) == 0;
	if (is_good && is_given(palette))
	{
		PyArrayObject *colours = keep(kept, sand_py_floats(palette, "palette", 5, 3));
		is_good = colours != NULL;
		if (is_good)
		{
			memcpy(grains->palette, PyArray_DATA(colours), sizeof grains->palette);
		}
	}
	if (is_good && is_given(wetness))
	{
		is_good = PyFloat_Check(wetness) || PyLong_Check(wetness)
		              ? sand_py_float(wetness, "wetness", &grains->all_wetness) == 0
		              : read_array(kept, wetness, "wetness", count, 0, &grains->wetness);
	}
	if (is_good && of_hidden != NULL)
	{
		is_hidden = sand_alloc_raw((size_t)count, 1);
		is_good = is_hidden != NULL;
		for (npy_intp i = 0; i < count && is_good; ++i)
		{
			is_hidden[i] = of_hidden[i] != 0;
		}
		if (!is_good)
		{
			PyErr_NoMemory();
		}
	}
	if (is_good && is_given(field))
	{
		is_good = read_field(kept, field, &of_field);
		scene.field = &of_field;
	}
	if (is_good)
	{
		grains->count = count;
		grains->positions = places != NULL ? PyArray_DATA(places) : NULL;
		grains->seeds = (const uint32_t *)of_seeds;
		grains->is_hidden = is_hidden;
		memcpy(scene.camera.position, lens, sizeof scene.camera.position);
		memcpy(scene.camera.rotation, lens + 3, sizeof scene.camera.rotation);
		memcpy(scene.camera.lens, lens + 7, sizeof scene.camera.lens);
		memcpy(scene.camera.shift, lens + 9, sizeof scene.camera.shift);
		memcpy(scene.camera.clip, lens + 11, sizeof scene.camera.clip);
		memcpy(scene.sun_direction, of_sun, sizeof scene.sun_direction);
		memcpy(scene.sun_colour, of_sun + 3, sizeof scene.sun_colour);
		scene.sun_angle = of_sun[6];
		scene.has_ground = is_given(ground);
		scene.ground_height = of_ground[0];
		memcpy(scene.ground_colour, of_ground + 1, sizeof scene.ground_colour);
		scene.has_no_shadows = !has_shadows;
		scene.has_no_occlusion = !has_occlusion;
		result = run_draw((LightObject *)self, &scene, wants_samples);
	}
	sand_free(is_hidden);
	sand_free((void *)(uintptr_t)grains->shapes);
	sand_free((void *)(uintptr_t)scene.meshes);
	Py_DECREF(kept);
	return result;
}

static PyObject *light_times(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	SandLightTimes times = sand_light_times(((LightObject *)self)->light);
	return Py_BuildValue("{s:d,s:d,s:d,s:d,s:L,s:L}", "surfaces", times.seconds[SAND_LIGHT_SURFACES], "shadows",
	                     times.seconds[SAND_LIGHT_SHADOWS], "shading", times.seconds[SAND_LIGHT_SHADING], "reading",
	                     times.seconds[SAND_LIGHT_READING], "draws", (long long)times.draw_count, "spheres",
	                     (long long)times.sphere_count);
}

static PyObject *light_device(PyObject *self, void *closure)
{
	(void)closure;
	const char *name = sand_light_device(((LightObject *)self)->light)->name;
	return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
}

static PyMethodDef light_methods[] = {
    {"draw", WITH_KEYWORDS(light_draw),
     "draw(camera, *, positions=None, shapes=None, orthographic=False, rotations=None, shape_of=None, scales=None,\n"
     "    seeds=None, hidden=None, wetness=0.0, round=False, palette=None, meshes=None, field=None, sun=None, "
     "sky=None,\n"
     "    floor=None, exposure=1.0, ground=None, shadows=True, occlusion=True, seed=0, give_samples=False)\n--\n\n"
     "A picture: a dict with pixels (H, W, 4) uint8, and, with give_samples, depths, normals, lit and radiance of "
     "every\n"
     "sample. camera: 13 floats: place, rotation w x y z, lens, shift, clip. sun: direction, colour, angle. ground:\n"
     "height, colour. The rest is said in docs/preview.md and csrc/light.h."},
    {"times", light_times, METH_NOARGS, "times()\n--\n\nSeconds per part since the start, with measure=True."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef light_getset[] = {
    {"device", light_device, NULL, "Name of the device that draws.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot light_slots[] = {
    {Py_tp_doc, "Light(width, height, samples=2, shadow_size=0, device=0, *, measure=False)\n--\n\n"
                "Draws pictures of width x height pixels, each of samples x samples."},
    {Py_tp_new, (void *)light_new},
    {Py_tp_dealloc, (void *)light_dealloc},
    {Py_tp_methods, light_methods},
    {Py_tp_getset, light_getset},
    {0, NULL},
};

static PyType_Spec light_spec = {
    .name = "barchan.Light",
    .basicsize = sizeof(LightObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = light_slots,
};

int sand_py_add_light(PyObject *module)
{
	PyObject *type = PyType_FromModuleAndSpec(module, &light_spec, NULL);
	int result = type != NULL ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
	Py_XDECREF(type); // the module keeps it
	return result;
}
