// py_types: the types Mesh, Scene, Sim and Cancel. Comes in: Python calls. Goes out: properties, arrays, exceptions.
// Mesh and Scene never change after they are made, so any thread may read them. A Sim belongs to one call at a time:
// a second thread that comes while a call works without the GIL gets a RuntimeError; only cancel() may come any time.
// The types cannot be subclassed: the type of an object leads straight to the module's state.
#include "py_module.h"

#include "scene.h"
#include "sim.h"

#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static SandPyState *state_of(PyTypeObject *type)
{
	return PyType_GetModuleState(type);
}

/// A zeroed object of the type, without its __init__.
static PyObject *allocate(PyTypeObject *type)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	return alloc(type, 0);
}

/// The end of every tp_dealloc: an object of a heap type holds a reference to its type.
static void release(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
	free_object(self);
	Py_DECREF(type);
}

// Mesh

typedef struct MeshObject
{
	PyObject_HEAD SandMesh *mesh;
} MeshObject;

const SandMesh *sand_py_mesh(PyObject *object)
{
	return ((MeshObject *)object)->mesh;
}

static PyObject *mesh_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"vertices", "triangles", "name", NULL};
	PyObject *vertices_object;
	PyObject *triangles_object;
	const char *name = NULL;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|z:Mesh", names, &vertices_object, &triangles_object, &name))
	{
		return NULL;
	}
	PyArrayObject *vertices = sand_py_floats(vertices_object, "vertices", -1, 3);
	PyArrayObject *triangles = vertices != NULL ? sand_py_ints(triangles_object, "triangles", -1, 3) : NULL;
	MeshObject *self = triangles != NULL ? (MeshObject *)allocate(type) : NULL;
	if (self != NULL)
	{
		const float *vertex_data = PyArray_DATA(vertices);
		const int32_t *triangle_data = PyArray_DATA(triangles);
		int64_t vertex_count = PyArray_DIM(vertices, 0);
		int64_t triangle_count = PyArray_DIM(triangles, 0);
		SandError err = {0};
		PyThreadState *thread = PyEval_SaveThread();
		SandStatus status =
		    sand_mesh_create(name, vertex_data, vertex_count, triangle_data, triangle_count, &self->mesh, &err);
		PyEval_RestoreThread(thread);
		if (status != SAND_OK)
		{
			Py_CLEAR(self);
			sand_py_raise(state_of(type), &err);
		}
	}
	Py_XDECREF((PyObject *)triangles);
	Py_XDECREF((PyObject *)vertices);
	return (PyObject *)self;
}

static void mesh_dealloc(PyObject *self)
{
	sand_mesh_destroy(((MeshObject *)self)->mesh);
	release(self);
}

static PyObject *mesh_repr(PyObject *self)
{
	const SandMesh *mesh = sand_py_mesh(self);
	const char *name = sand_mesh_name(mesh);
	return PyUnicode_FromFormat("<barchan.Mesh '%s': %d vertices, %d triangles>", name, mesh->vertex_count,
	                            mesh->triangle_count);
}

static PyObject *mesh_vertex_count(PyObject *self, void *closure)
{
	(void)closure;
	return PyLong_FromLong(sand_py_mesh(self)->vertex_count);
}

static PyObject *mesh_triangle_count(PyObject *self, void *closure)
{
	(void)closure;
	return PyLong_FromLong(sand_py_mesh(self)->triangle_count);
}

static PyObject *mesh_is_closed(PyObject *self, void *closure)
{
	(void)closure;
	return PyBool_FromLong(sand_py_mesh(self)->is_closed);
}

static PyObject *mesh_volume(PyObject *self, void *closure)
{
	(void)closure;
	return PyFloat_FromDouble(sand_py_mesh(self)->volume);
}

static PyObject *mesh_area(PyObject *self, void *closure)
{
	(void)closure;
	return PyFloat_FromDouble(sand_py_mesh(self)->area);
}

static PyObject *mesh_bounds(PyObject *self, void *closure)
{
	(void)closure;
	const SandMesh *mesh = sand_py_mesh(self);
	npy_intp shape[2] = {2, 3};
	PyObject *bounds = PyArray_SimpleNew(2, shape, NPY_FLOAT32);
	if (bounds != NULL)
	{
		float *data = PyArray_DATA((PyArrayObject *)bounds);
		memcpy(data, mesh->bounds_min, sizeof mesh->bounds_min);
		memcpy(data + 3, mesh->bounds_max, sizeof mesh->bounds_max);
	}
	return bounds;
}

static PyObject *mesh_require_closed(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	SandError err = {0};
	if (sand_mesh_require_closed(sand_py_mesh(self), &err) != SAND_OK)
	{
		return sand_py_raise(state_of(Py_TYPE(self)), &err);
	}
	return Py_NewRef(Py_None);
}

static PyGetSetDef mesh_getset[] = {
    {"vertex_count", mesh_vertex_count, NULL, "Number of vertices.", NULL},
    {"triangle_count", mesh_triangle_count, NULL, "Number of triangles.", NULL},
    {"is_closed", mesh_is_closed, NULL, "Whether every edge has exactly two triangles, one in each direction.", NULL},
    {"volume", mesh_volume, NULL, "Enclosed volume in m^3; meaningful only when is_closed.", NULL},
    {"area", mesh_area, NULL, "Surface area in m^2.", NULL},
    {"bounds", mesh_bounds, NULL, "Lowest and highest corner, (2, 3) float32, in metres.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef mesh_methods[] = {
    {"require_closed", mesh_require_closed, METH_NOARGS,
     "require_closed()\n--\n\nRaises MeshError when the mesh bounds no volume, and says what to do."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot mesh_slots[] = {
    {Py_tp_doc, "Mesh(vertices, triangles, name=None)\n--\n\n"
                "A checked triangle mesh: (N, 3) float32 in metres, (M, 3) int32. Copied; never changes."},
    {Py_tp_new, (void *)mesh_new},
    {Py_tp_dealloc, (void *)mesh_dealloc},
    {Py_tp_repr, (void *)mesh_repr},
    {Py_tp_getset, mesh_getset},
    {Py_tp_methods, mesh_methods},
    {0, NULL},
};

static PyType_Spec mesh_spec = {
    .name = "barchan.Mesh",
    .basicsize = sizeof(MeshObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = mesh_slots,
};

// Scene

typedef struct SceneObject
{
	PyObject_HEAD SandScene *scene;
} SceneObject;

static const SandScene *scene_of(PyObject *self)
{
	return ((SceneObject *)self)->scene;
}

/// The arguments of Scene() as Python gave them; NULL = left out.
typedef struct SceneArguments
{
	PyObject *positions, *shapes, *gravity, *max_overlap, *max_speed, *restitution_speed;
	PyObject *density, *restitution, *friction, *materials, *material_pairs;
	PyObject *orientations, *velocities, *spins, *scales, *grain_shapes, *grain_materials;
	PyObject *wall_positions, *wall_radius, *wall_material, *planes, *obstacles;
	PyObject *emitters, *outflows, *colliders, *bodies;
	PyObject *drag, *wind, *regions;
	PyObject *sleep_speed, *sleep_seconds, *wake_speed, *seed, *measures;
} SceneArguments;

/// What the readers of the arguments share.
typedef struct Reader
{
	PyObject *held;            // list of what lives as long as the call: arrays, meshes
	const SandPyState *module; // for the type of meshes
} Reader;

static bool is_given(PyObject *object)
{
	return object != NULL && object != Py_None;
}

/// Keeps the array, which it takes, as long as the call. -1 with an exception.
static int hold(const Reader *reader, PyArrayObject *array)
{
	if (array == NULL)
	{
		return -1;
	}
	int result = PyList_Append(reader->held, (PyObject *)array);
	Py_DECREF(array);
	return result;
}

/// An optional float32 array of the scene; left out it stays NULL. row_count_out may be NULL.
static int hold_floats(const Reader *reader, PyObject *object, const char *name, npy_intp row_count,
                       npy_intp column_count, const float **data_out, int64_t *row_count_out)
{
	if (!is_given(object))
	{
		return 0;
	}
	PyArrayObject *array = sand_py_floats(object, name, row_count, column_count);
	if (hold(reader, array) != 0)
	{
		return -1;
	}
	*data_out = PyArray_DATA(array);
	if (row_count_out != NULL)
	{
		*row_count_out = PyArray_DIM(array, 0);
	}
	return 0;
}

/// An optional int32 array, one number per grain; left out it stays NULL.
static int hold_ints(const Reader *reader, PyObject *object, const char *name, npy_intp row_count,
                     const int32_t **data_out)
{
	if (!is_given(object))
	{
		return 0;
	}
	PyArrayObject *array = sand_py_ints(object, name, row_count, 0);
	if (hold(reader, array) != 0)
	{
		return -1;
	}
	*data_out = PyArray_DATA(array);
	return 0;
}

/// The items of a list, or of anything else that can be walked through. A new tuple, so that no Python code that runs
/// while an item is read can change it. NULL with an exception.
static PyObject *items_of(PyObject *object, const char *name, const char *expected)
{
	// Walking through a dict gives its keys, which nobody means here.
	PyObject *items = PyDict_Check(object) ? NULL : PySequence_Tuple(object);
	if (items == NULL && (PyDict_Check(object) || PyErr_ExceptionMatches(PyExc_TypeError)))
	{
		PyErr_Clear();
		sand_py_raise_type(object, name, expected);
	}
	return items;
}

/// One (offsets, radii), or (offsets, radii, body). offsets None = all zero; body None = where the spheres are.
static int read_shape(const Reader *reader, PyObject *pair, Py_ssize_t index, SandShapeDesc *shape)
{
	char name[64];
	snprintf(name, sizeof name, "shapes[%lld]", (long long)index);
	PyObject *items = items_of(pair, name, "a pair (offsets, radii), or with a body as third");
	if (items == NULL)
	{
		return -1;
	}
	if (PyTuple_Size(items) != 2 && PyTuple_Size(items) != 3)
	{
		PyErr_Format(PyExc_ValueError, "%s: found %zd items, expected a pair (offsets, radii), or with a body as third",
		             name, PyTuple_Size(items));
		Py_DECREF(items);
		return -1;
	}
	int64_t sphere_count = 0;
	snprintf(name, sizeof name, "shapes[%lld] radii", (long long)index);
	PyObject *radii = PyTuple_GetItem(items, 1);
	PyArrayObject *array = sand_py_floats(radii, name, -1, 0);
	int result = hold(reader, array);
	if (result == 0)
	{
		shape->radii = PyArray_DATA(array);
		sphere_count = PyArray_DIM(array, 0);
		snprintf(name, sizeof name, "shapes[%lld] offsets", (long long)index);
		result = hold_floats(reader, PyTuple_GetItem(items, 0), name, (npy_intp)sphere_count, 3, &shape->offsets, NULL);
	}
	if (result == 0 && PyTuple_Size(items) == 3 && is_given(PyTuple_GetItem(items, 2)))
	{
		snprintf(name, sizeof name, "shapes[%lld] body", (long long)index);
		array = sand_py_doubles(PyTuple_GetItem(items, 2), name, SAND_BODY_NUMBERS, 0);
		result = hold(reader, array);
		shape->body = result == 0 ? PyArray_DATA(array) : NULL;
	}
	// Beyond the limit the scene says so; here it only has to fit into the field.
	shape->sphere_count = sphere_count > INT32_MAX ? INT32_MAX : (int)sphere_count;
	Py_DECREF(items);
	return result;
}

/// All shapes, in a block of sand_alloc that the caller frees: desc->shapes.
static int read_shapes(const Reader *reader, PyObject *object, SandSceneDesc *desc)
{
	PyObject *pairs = items_of(object, "shapes", "a sequence of pairs (offsets, radii)");
	if (pairs == NULL)
	{
		return -1;
	}
	Py_ssize_t count = PyTuple_Size(pairs);
	SandShapeDesc *shapes = count <= INT32_MAX ? sand_alloc((size_t)count, sizeof(SandShapeDesc)) : NULL;
	if (shapes == NULL)
	{
		PyErr_NoMemory();
		Py_DECREF(pairs);
		return -1;
	}
	desc->shapes = shapes;
	desc->shape_count = (int)count;
	int result = 0;
	for (Py_ssize_t i = 0; i < count && result == 0; ++i)
	{
		result = read_shape(reader, PyTuple_GetItem(pairs, i), i, &shapes[i]);
	}
	Py_DECREF(pairs);
	return result;
}

// Dicts of the scene: each becomes one C struct, by a table of its keys.

typedef enum KeyKind
{
	KEY_FLOAT,
	KEY_DOUBLE,
	KEY_VECTOR, // three floats
	KEY_PLACES, // Places
	KEY_MESH,   // const SandMesh *
	KEY_TRACK,  // SandTrack; None leaves it without samples
	KEY_FRAMES, // Frames; None leaves them without vertices
	KEY_INT,    // int32_t
	KEY_BOOL,   // int32_t
	KEY_CHOICE, // an enum, as the place in choices
} KeyKind;

/// What KEY_PLACES writes: (N, 3) float32 in an array that is held for the call.
typedef struct Places
{
	const float *positions;
	int64_t count;
} Places;
_Static_assert(offsetof(SandEmitter, position_count) - offsetof(SandEmitter, positions) == offsetof(Places, count),
               "the places of an emitter lie as written");

/// What KEY_FRAMES writes: (F, N, 3) float32 in an array that is held for the call, and their times.
typedef struct Frames
{
	double begin, interval; // s
	const float *vertices;
	npy_intp frame_count, vertex_count;
} Frames;

typedef struct Key
{
	const char *name;
	KeyKind kind;
	size_t offset; // in the struct
	bool is_required;
	const char *const *choices; // of KEY_CHOICE, ends with NULL
} Key;

#define KEY_LIMIT 16

/// What the dicts of one argument look like.
typedef struct Record
{
	const char *argument;
	const Key *keys;
	int key_count; // at most KEY_LIMIT
	size_t byte_count;
	const void *plain; // the struct of a dict without keys
} Record;

#define RECORD(argument, keys, plain) {argument, keys, sizeof keys / sizeof keys[0], sizeof plain, &plain}
#define CHECK_KEYS(keys) _Static_assert(sizeof keys / sizeof keys[0] <= KEY_LIMIT, "keys fit into their list")

// KEY_CHOICE writes these as int32_t.
_Static_assert(sizeof(SandNormal) == 4 && sizeof(SandShear) == 4 && sizeof(SandObstacleKind) == 4, "enums of 4 bytes");

static const char *const normal_names[] = {
    [SAND_NORMAL_HERTZ] = "hertz",
    [SAND_NORMAL_HERTZ_CONSTANT] = "hertz-constant",
    [SAND_NORMAL_HERTZ_DAMPER] = "hertz-damper",
    [SAND_NORMAL_LINEAR] = "linear",
    [SAND_NORMAL_COUNT] = NULL,
};

static const char *const shear_names[] = {
    [SAND_SHEAR_VISCOUS] = "viscous",
    [SAND_SHEAR_HISTORY] = "history",
    [SAND_SHEAR_COUNT] = NULL,
};

static const char *const obstacle_names[] = {
    [SAND_OBSTACLE_PLANE] = "plane", [SAND_OBSTACLE_BOX] = "box",  [SAND_OBSTACLE_CYLINDER] = "cylinder",
    [SAND_OBSTACLE_CONE] = "cone",   [SAND_OBSTACLE_COUNT] = NULL,
};

static const Key material_keys[] = {
    {"density", KEY_FLOAT, offsetof(SandMaterial, density), false, NULL},
    {"young", KEY_FLOAT, offsetof(SandMaterial, young), false, NULL},
    {"poisson", KEY_FLOAT, offsetof(SandMaterial, poisson), false, NULL},
    {"restitution", KEY_FLOAT, offsetof(SandMaterial, restitution), false, NULL},
    {"friction", KEY_FLOAT, offsetof(SandMaterial, friction), false, NULL},
    {"rolling", KEY_FLOAT, offsetof(SandMaterial, rolling), false, NULL},
    {"cohesion", KEY_FLOAT, offsetof(SandMaterial, cohesion), false, NULL},
    {"cohesion_range", KEY_FLOAT, offsetof(SandMaterial, cohesion_range), false, NULL},
    {"normal", KEY_CHOICE, offsetof(SandMaterial, normal), false, normal_names},
    {"shear", KEY_CHOICE, offsetof(SandMaterial, shear), false, shear_names},
};
CHECK_KEYS(material_keys);
static const SandMaterial plain_material = {.friction = -1};
static const Record material_record = RECORD("materials", material_keys, plain_material);

static const Key pair_keys[] = {
    {"a", KEY_INT, offsetof(SandMaterialPair, a), true, NULL},
    {"b", KEY_INT, offsetof(SandMaterialPair, b), true, NULL},
    {"restitution", KEY_FLOAT, offsetof(SandMaterialPair, restitution), false, NULL},
    {"friction", KEY_FLOAT, offsetof(SandMaterialPair, friction), false, NULL},
    {"rolling", KEY_FLOAT, offsetof(SandMaterialPair, rolling), false, NULL},
    {"cohesion", KEY_FLOAT, offsetof(SandMaterialPair, cohesion), false, NULL},
};
CHECK_KEYS(pair_keys);
static const SandMaterialPair plain_pair = {.restitution = -1, .friction = -1, .rolling = -1, .cohesion = -1};
static const Record pair_record = RECORD("material_pairs", pair_keys, plain_pair);

static const Key obstacle_keys[] = {
    {"kind", KEY_CHOICE, offsetof(SandObstacle, kind), true, obstacle_names},
    {"is_inside", KEY_BOOL, offsetof(SandObstacle, is_inside), false, NULL},
    {"material", KEY_INT, offsetof(SandObstacle, material), false, NULL},
    {"point", KEY_VECTOR, offsetof(SandObstacle, point), false, NULL},
    {"axis", KEY_VECTOR, offsetof(SandObstacle, axis), false, NULL},
    {"size", KEY_VECTOR, offsetof(SandObstacle, size), false, NULL},
    {"roughness", KEY_FLOAT, offsetof(SandObstacle, roughness), false, NULL},
};
CHECK_KEYS(obstacle_keys);
static const SandObstacle plain_obstacle = {.kind = SAND_OBSTACLE_PLANE};
static const Record obstacle_record = RECORD("obstacles", obstacle_keys, plain_obstacle);

static const Key region_keys[] = {
    {"min", KEY_VECTOR, offsetof(SandForceRegion, min), true, NULL},
    {"max", KEY_VECTOR, offsetof(SandForceRegion, max), true, NULL},
    {"acceleration", KEY_VECTOR, offsetof(SandForceRegion, acceleration), true, NULL},
};
CHECK_KEYS(region_keys);
static const SandForceRegion plain_region = {.acceleration = {0, 0, 0}};
static const Record region_record = RECORD("regions", region_keys, plain_region);

static const Key emitter_keys[] = {
    {"positions", KEY_PLACES, offsetof(SandEmitter, positions), true, NULL},
    {"velocity", KEY_VECTOR, offsetof(SandEmitter, velocity), false, NULL},
    {"rate", KEY_DOUBLE, offsetof(SandEmitter, rate), true, NULL},
    {"begin", KEY_DOUBLE, offsetof(SandEmitter, begin), false, NULL},
    {"end", KEY_DOUBLE, offsetof(SandEmitter, end), true, NULL},
    {"shape", KEY_INT, offsetof(SandEmitter, shape), false, NULL},
    {"material", KEY_INT, offsetof(SandEmitter, material), false, NULL},
    {"scale", KEY_FLOAT, offsetof(SandEmitter, scale), false, NULL},
};
CHECK_KEYS(emitter_keys);
static const SandEmitter plain_emitter = {.begin = 0};
static const Record emitter_record = RECORD("emitters", emitter_keys, plain_emitter);

static const Key outflow_keys[] = {
    {"min", KEY_VECTOR, offsetof(SandOutflow, min), true, NULL},
    {"max", KEY_VECTOR, offsetof(SandOutflow, max), true, NULL},
};
CHECK_KEYS(outflow_keys);
static const SandOutflow plain_outflow = {.min = {0, 0, 0}};
static const Record outflow_record = RECORD("outflows", outflow_keys, plain_outflow);

/// A collider's dict, from which its description is made when it is whole.
typedef struct ColliderItem
{
	const SandMesh *mesh;
	int32_t material;
	SandTrack track;
	Frames frames;
} ColliderItem;

static const Key collider_keys[] = {
    {"mesh", KEY_MESH, offsetof(ColliderItem, mesh), true, NULL},
    {"material", KEY_INT, offsetof(ColliderItem, material), false, NULL},
    {"track", KEY_TRACK, offsetof(ColliderItem, track), false, NULL},
    {"frames", KEY_FRAMES, offsetof(ColliderItem, frames), false, NULL},
};
CHECK_KEYS(collider_keys);
static const ColliderItem plain_collider = {.mesh = NULL};
static const Record collider_record = RECORD("colliders", collider_keys, plain_collider);

typedef struct BodyItem
{
	int32_t grain;
	SandTrack track;
	double release; // s
} BodyItem;

static const Key body_keys[] = {
    {"grain", KEY_INT, offsetof(BodyItem, grain), true, NULL},
    {"track", KEY_TRACK, offsetof(BodyItem, track), false, NULL},
    {"release", KEY_DOUBLE, offsetof(BodyItem, release), false, NULL},
};
CHECK_KEYS(body_keys);
static const BodyItem plain_body = {.grain = 0};
static const Record body_record = RECORD("bodies", body_keys, plain_body);

/// Three numbers, in metres or what the argument is in. None is no vector here: the caller asks is_given().
static int read_vector(PyObject *object, const char *name, float vector_out[3])
{
	PyArrayObject *array = sand_py_floats(object, name, 3, 0);
	if (array == NULL)
	{
		return -1;
	}
	memcpy(vector_out, PyArray_DATA(array), 3 * sizeof(float));
	Py_DECREF(array);
	return 0;
}

/// (N, 3) float32. None is no array here.
static int read_places(const Reader *reader, PyObject *object, const char *name, Places *places_out)
{
	PyArrayObject *array = sand_py_floats(object, name, -1, 3);
	if (hold(reader, array) != 0)
	{
		return -1;
	}
	*places_out = (Places){PyArray_DATA(array), PyArray_DIM(array, 0)};
	return 0;
}

/// A Mesh, kept as long as the call: another thread may take it out of its dict meanwhile.
static int read_mesh(const Reader *reader, PyObject *object, const char *name, const SandMesh **mesh_out)
{
	if (!Py_IS_TYPE(object, (PyTypeObject *)reader->module->mesh_type))
	{
		sand_py_raise_type(object, name, "a Mesh");
		return -1;
	}
	*mesh_out = sand_py_mesh(object);
	return PyList_Append(reader->held, object);
}

/// The two times of a triple (begin, interval, array), and its array as it is. A new tuple that keeps the array; NULL
/// with an exception. What is not a triple is told with the name of the third: "samples".
static PyObject *read_times(PyObject *object, const char *name, const char *third, double *begin_out,
                            double *interval_out)
{
	char expected[64], part[128];
	snprintf(expected, sizeof expected, "a triple (begin, interval, %s)", third);
	PyObject *items = items_of(object, name, expected);
	if (items == NULL)
	{
		return NULL;
	}
	int result = 0;
	if (PyTuple_Size(items) != 3)
	{
		PyErr_Format(PyExc_ValueError, "%s: found %zd items, expected %s", name, PyTuple_Size(items), expected);
		result = -1;
	}
	if (result == 0)
	{
		snprintf(part, sizeof part, "%s begin", name);
		result = sand_py_double(PyTuple_GetItem(items, 0), part, begin_out);
	}
	if (result == 0)
	{
		snprintf(part, sizeof part, "%s interval", name);
		result = sand_py_double(PyTuple_GetItem(items, 1), part, interval_out);
	}
	if (result != 0)
	{
		Py_CLEAR(items);
	}
	return items;
}

/// -1 with ValueError when there are more than the core counts.
static int check_sample_count(npy_intp count, const char *name)
{
	if (count <= INT32_MAX)
	{
		return 0;
	}
	PyErr_Format(PyExc_ValueError, "%s: found %zd, expected at most %d", name, (Py_ssize_t)count, INT32_MAX);
	return -1;
}

/// (begin, interval, samples (N, 7)), or None.
static int read_track(const Reader *reader, PyObject *object, const char *name, SandTrack *track_out)
{
	SandTrack track = {0};
	*track_out = track;
	if (!is_given(object))
	{
		return 0;
	}
	PyObject *items = read_times(object, name, "samples", &track.begin, &track.interval);
	if (items == NULL)
	{
		return -1;
	}
	char part[128];
	snprintf(part, sizeof part, "%s samples", name);
	PyArrayObject *samples = sand_py_doubles(PyTuple_GetItem(items, 2), part, -1, SAND_TRACK_NUMBERS);
	Py_DECREF(items);
	if (hold(reader, samples) != 0 || check_sample_count(PyArray_DIM(samples, 0), part) != 0)
	{
		return -1;
	}
	track.samples = PyArray_DATA(samples);
	track.sample_count = (int32_t)PyArray_DIM(samples, 0);
	*track_out = track;
	return 0;
}

/// (begin, interval, vertices (F, N, 3)), or None. That N is the mesh's, which may come later, is seen in the end.
static int read_frames(const Reader *reader, PyObject *object, const char *name, Frames *frames_out)
{
	Frames frames = {0};
	*frames_out = frames;
	if (!is_given(object))
	{
		return 0;
	}
	PyObject *items = read_times(object, name, "vertices", &frames.begin, &frames.interval);
	if (items == NULL)
	{
		return -1;
	}
	char part[128];
	snprintf(part, sizeof part, "%s vertices", name);
	PyArrayObject *vertices = sand_py_float_frames(PyTuple_GetItem(items, 2), part);
	Py_DECREF(items);
	if (hold(reader, vertices) != 0 || check_sample_count(PyArray_DIM(vertices, 0), part) != 0)
	{
		return -1;
	}
	frames.vertices = PyArray_DATA(vertices);
	frames.frame_count = PyArray_DIM(vertices, 0);
	frames.vertex_count = PyArray_DIM(vertices, 1);
	*frames_out = frames;
	return 0;
}

/// One value of a dict into its place in the struct. where names the dict: "materials[1]".
static int read_key(const Reader *reader, const Key *key, PyObject *value, const char *where, char *record)
{
	char name[96];
	snprintf(name, sizeof name, "%s %s", where, key->name);
	char *place = record + key->offset;
	float number = 0, vector[3] = {0};
	double wide = 0;
	Places places = {0};
	const SandMesh *mesh = NULL;
	SandTrack track = {0};
	Frames frames = {0};
	int32_t whole = 0;
	bool is_true = false;
	int choice = 0, result = 0;
	switch (key->kind)
	{
	case KEY_FLOAT:
		result = sand_py_float(value, name, &number);
		memcpy(place, &number, sizeof number);
		return result;
	case KEY_VECTOR:
		result = read_vector(value, name, vector);
		memcpy(place, vector, sizeof vector);
		return result;
	case KEY_DOUBLE:
		result = sand_py_double(value, name, &wide);
		memcpy(place, &wide, sizeof wide);
		return result;
	case KEY_PLACES:
		result = read_places(reader, value, name, &places);
		memcpy(place, &places, sizeof places);
		return result;
	case KEY_MESH:
		result = read_mesh(reader, value, name, &mesh);
		memcpy(place, &mesh, sizeof mesh);
		return result;
	case KEY_TRACK:
		result = read_track(reader, value, name, &track);
		memcpy(place, &track, sizeof track);
		return result;
	case KEY_FRAMES:
		result = read_frames(reader, value, name, &frames);
		memcpy(place, &frames, sizeof frames);
		return result;
	case KEY_INT:
		result = sand_py_int32(value, name, &whole);
		break;
	case KEY_BOOL:
		result = sand_py_bool(value, name, &is_true);
		whole = is_true;
		break;
	case KEY_CHOICE:
		result = sand_py_choice(value, name, key->choices, &choice);
		whole = choice;
		break;
	}
	memcpy(place, &whole, sizeof whole);
	return result;
}

/// TypeError or ValueError: a key that the record does not have.
static void raise_unknown_key(const Record *record, PyObject *key, const char *where)
{
	const char *names[KEY_LIMIT + 1] = {NULL};
	for (int i = 0; i < record->key_count; ++i)
	{
		names[i] = record->keys[i].name;
	}
	char expected[256];
	sand_py_join(names, expected, sizeof expected);
	PyErr_Format(PyUnicode_Check(key) ? PyExc_ValueError : PyExc_TypeError, "%s: found the key %R, expected %s", where,
	             key, expected);
}

/// One dict -> one struct, which holds the plain values already.
static int read_record(const Reader *reader, const Record *record, PyObject *object, Py_ssize_t index, char *struct_out)
{
	char where[64];
	snprintf(where, sizeof where, "%s[%lld]", record->argument, (long long)index);
	if (!PyDict_Check(object))
	{
		sand_py_raise_type(object, where, "a dict");
		return -1;
	}
	// A list of the items: reading a value may run Python code, which might change the dict.
	PyObject *items = PyDict_Items(object);
	if (items == NULL)
	{
		return -1;
	}
	bool is_seen[KEY_LIMIT] = {false};
	int result = 0;
	for (Py_ssize_t i = 0; i < PyList_Size(items) && result == 0; ++i)
	{
		PyObject *item = PyList_GetItem(items, i);
		PyObject *key = PyTuple_GetItem(item, 0);
		int k = 0;
		while (k < record->key_count &&
		       !(PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, record->keys[k].name) == 0))
		{
			++k;
		}
		if (k == record->key_count)
		{
			raise_unknown_key(record, key, where);
			result = -1;
			break;
		}
		is_seen[k] = true;
		result = read_key(reader, &record->keys[k], PyTuple_GetItem(item, 1), where, struct_out);
	}
	Py_DECREF(items);
	for (int k = 0; k < record->key_count && result == 0; ++k)
	{
		if (record->keys[k].is_required && !is_seen[k])
		{
			PyErr_Format(PyExc_ValueError, "%s: found no key '%s', expected one", where, record->keys[k].name);
			result = -1;
		}
	}
	return result;
}

/// All dicts of an argument (NULL and None: none) behind lead_count plain structs, which the caller fills. The block is
/// of sand_alloc and the caller's to free, also on failure; *block_out stays NULL when there is none.
static int read_records(const Reader *reader, const Record *record, PyObject *object, int64_t lead_count,
                        void **block_out, int *count_out)
{
	PyObject *items = is_given(object) ? items_of(object, record->argument, "a sequence of dicts") : PyTuple_New(0);
	if (items == NULL)
	{
		return -1;
	}
	Py_ssize_t item_count = PyTuple_Size(items);
	int64_t count = lead_count + item_count;
	char *block = count <= INT32_MAX ? sand_alloc((size_t)count, record->byte_count) : NULL;
	if (block == NULL)
	{
		PyErr_NoMemory();
		Py_DECREF(items);
		return -1;
	}
	*block_out = block;
	*count_out = (int)count;
	int result = 0;
	for (int64_t i = 0; i < count && result == 0; ++i)
	{
		char *one = block + (size_t)i * record->byte_count;
		memcpy(one, record->plain, record->byte_count);
		if (i >= lead_count)
		{
			Py_ssize_t index = (Py_ssize_t)(i - lead_count);
			result = read_record(reader, record, PyTuple_GetItem(items, index), index, one);
		}
	}
	Py_DECREF(items);
	return result;
}

/// The list of materials, or the one that density, restitution and friction describe.
static int read_materials(const Reader *reader, const SceneArguments *from, SandSceneDesc *desc)
{
	const struct
	{
		PyObject *object;
		const char *name;
		size_t offset;
	} numbers[] = {{from->density, "density", offsetof(SandMaterial, density)},
	               {from->restitution, "restitution", offsetof(SandMaterial, restitution)},
	               {from->friction, "friction", offsetof(SandMaterial, friction)}};
	bool is_list = is_given(from->materials);
	void *block = NULL;
	int result =
	    read_records(reader, &material_record, from->materials, is_list ? 0 : 1, &block, &desc->material_count);
	desc->materials = block;
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && result == 0; ++i)
	{
		if (is_list && numbers[i].object != NULL)
		{
			PyErr_Format(PyExc_TypeError, "%s: found beside materials, expected one of the two; put it into the dicts",
			             numbers[i].name);
			result = -1;
		}
		else if (!is_list)
		{
			float *place = (float *)(void *)((char *)block + numbers[i].offset);
			result = sand_py_float(numbers[i].object, numbers[i].name, place);
		}
	}
	if (result != 0)
	{
		return -1;
	}
	block = NULL;
	result = read_records(reader, &pair_record, from->material_pairs, 0, &block, &desc->material_pair_count);
	desc->material_pairs = block;
	return result;
}

/// Planes first, then the dicts.
static int read_obstacles(const Reader *reader, const SceneArguments *from, SandSceneDesc *desc)
{
	const float *planes = NULL;
	int64_t plane_count = 0;
	if (hold_floats(reader, from->planes, "planes", -1, 6, &planes, &plane_count) != 0)
	{
		return -1;
	}
	void *block = NULL;
	int result = read_records(reader, &obstacle_record, from->obstacles, plane_count, &block, &desc->obstacle_count);
	SandObstacle *obstacles = block;
	desc->obstacles = obstacles;
	for (int64_t i = 0; i < plane_count && result == 0; ++i)
	{
		memcpy(obstacles[i].point, planes + 6 * i, sizeof(obstacles[i].point));
		memcpy(obstacles[i].axis, planes + 6 * i + 3, sizeof(obstacles[i].axis));
	}
	return result;
}

/// The dicts of an argument as items that live as long as the call. *items_out stays NULL on failure.
static int hold_records(const Reader *reader, const Record *record, PyObject *object, void **items_out, int *count_out)
{
	void *block = NULL;
	int count = 0;
	if (read_records(reader, record, object, 0, &block, &count) != 0)
	{
		sand_free(block);
		return -1;
	}
	// An array that owns the block is as good a keeper as any; it takes the block, also on failure.
	npy_intp byte_count = (npy_intp)((size_t)count * record->byte_count);
	if (hold(reader, (PyArrayObject *)sand_py_block(block, NPY_UINT8, byte_count, 0)) != 0)
	{
		return -1;
	}
	*items_out = block;
	*count_out = count;
	return 0;
}

/// -1 with ValueError when the frames are of another mesh.
static int check_frames(const ColliderItem *item, int index)
{
	npy_intp expected = item->mesh->vertex_count;
	if (item->frames.vertices == NULL || item->frames.vertex_count == expected)
	{
		return 0;
	}
	PyErr_Format(PyExc_ValueError,
	             "colliders[%d] frames vertices: found %zd vertices a frame, expected the %zd of its mesh '%s'", index,
	             (Py_ssize_t)item->frames.vertex_count, (Py_ssize_t)expected, sand_mesh_shown_name(item->mesh));
	return -1;
}

/// The descriptions are in a block of sand_alloc that the caller frees: desc->colliders.
static int read_colliders(const Reader *reader, PyObject *object, SandSceneDesc *desc)
{
	void *block = NULL;
	int count = 0;
	if (hold_records(reader, &collider_record, object, &block, &count) != 0)
	{
		return -1;
	}
	const ColliderItem *items = block;
	SandColliderDesc *colliders = sand_alloc((size_t)count, sizeof(SandColliderDesc));
	if (colliders == NULL)
	{
		PyErr_NoMemory();
		return -1;
	}
	desc->colliders = colliders;
	desc->collider_count = count;
	int result = 0;
	for (int i = 0; i < count && result == 0; ++i)
	{
		const Frames *frames = &items[i].frames;
		colliders[i] = (SandColliderDesc){.mesh = items[i].mesh,
		                                  .track = items[i].track.samples != NULL ? &items[i].track : NULL,
		                                  .frames = frames->vertices,
		                                  .frame_count = (int32_t)frames->frame_count,
		                                  .frame_begin = frames->begin,
		                                  .frame_interval = frames->interval,
		                                  .material = items[i].material};
		result = check_frames(&items[i], i);
	}
	return result;
}

/// As the colliders: desc->bodies.
static int read_bodies(const Reader *reader, PyObject *object, SandSceneDesc *desc)
{
	void *block = NULL;
	int count = 0;
	if (hold_records(reader, &body_record, object, &block, &count) != 0)
	{
		return -1;
	}
	const BodyItem *items = block;
	SandBody *bodies = sand_alloc((size_t)count, sizeof(SandBody));
	if (bodies == NULL)
	{
		PyErr_NoMemory();
		return -1;
	}
	desc->bodies = bodies;
	desc->body_count = count;
	for (int i = 0; i < count; ++i)
	{
		bodies[i] = (SandBody){.grain = items[i].grain,
		                       .track = items[i].track.samples != NULL ? &items[i].track : NULL,
		                       .release = items[i].release};
	}
	return 0;
}

static int read_gravity(PyObject *object, double gravity[3])
{
	if (!is_given(object))
	{
		gravity[2] = -9.81;
		return 0;
	}
	PyArrayObject *array = sand_py_doubles(object, "gravity", 3, 0);
	if (array == NULL)
	{
		return -1;
	}
	memcpy(gravity, PyArray_DATA(array), 3 * sizeof(double));
	Py_DECREF(array);
	return 0;
}

static int read_numbers(const SceneArguments *from, SandSceneDesc *desc)
{
	const struct
	{
		PyObject *object;
		const char *name;
		float *value;
	} numbers[] = {{from->max_overlap, "max_overlap", &desc->max_overlap},
	               {from->max_speed, "max_speed", &desc->max_speed},
	               {from->restitution_speed, "restitution_speed", &desc->restitution_speed},
	               {from->wall_radius, "wall_radius", &desc->wall_radius},
	               {from->drag, "drag", &desc->drag},
	               {from->sleep_speed, "sleep_speed", &desc->sleep_speed},
	               {from->sleep_seconds, "sleep_seconds", &desc->sleep_seconds},
	               {from->wake_speed, "wake_speed", &desc->wake_speed}};
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i)
	{
		if (sand_py_float(numbers[i].object, numbers[i].name, numbers[i].value) != 0)
		{
			return -1;
		}
	}
	if (sand_py_int32(from->wall_material, "wall_material", &desc->wall_material) != 0 ||
	    sand_py_uint64(from->seed, "seed", &desc->seed) != 0 || read_gravity(from->gravity, desc->gravity) != 0)
	{
		return -1;
	}
	return is_given(from->wind) ? read_vector(from->wind, "wind", desc->wind) : 0;
}

/// Arrays of one row per grain, and the walls.
static int read_grains(const Reader *reader, const SceneArguments *from, SandSceneDesc *desc)
{
	if (hold_floats(reader, from->positions, "positions", -1, 3, &desc->grain_positions, &desc->grain_count) != 0)
	{
		return -1;
	}
	npy_intp count = (npy_intp)desc->grain_count;
	if (hold_floats(reader, from->orientations, "orientations", count, 4, &desc->grain_orientations, NULL) != 0 ||
	    hold_floats(reader, from->velocities, "velocities", count, 3, &desc->grain_velocities, NULL) != 0 ||
	    hold_floats(reader, from->spins, "spins", count, 3, &desc->grain_spins, NULL) != 0 ||
	    hold_floats(reader, from->scales, "scales", count, 0, &desc->grain_scales, NULL) != 0 ||
	    hold_ints(reader, from->grain_shapes, "grain_shapes", count, &desc->grain_shapes) != 0 ||
	    hold_ints(reader, from->grain_materials, "grain_materials", count, &desc->grain_materials) != 0)
	{
		return -1;
	}
	return hold_floats(reader, from->wall_positions, "wall_positions", -1, 3, &desc->wall_positions, &desc->wall_count);
}

/// Arguments -> description. The arrays live as long as the reader's list; the blocks are the caller's to free with
/// free_scene_blocks(), also on failure.
static int read_scene(const Reader *reader, const SceneArguments *from, SandSceneDesc *desc)
{
	if (!is_given(from->positions) || !is_given(from->shapes))
	{
		PyErr_Format(PyExc_TypeError, "Scene() needs the keyword argument '%s'",
		             is_given(from->positions) ? "shapes" : "positions");
		return -1;
	}
	if (read_numbers(from, desc) != 0 || read_grains(reader, from, desc) != 0 ||
	    read_shapes(reader, from->shapes, desc) != 0 || read_materials(reader, from, desc) != 0 ||
	    read_obstacles(reader, from, desc) != 0)
	{
		return -1;
	}
	void *regions = NULL, *emitters = NULL, *outflows = NULL;
	int result = read_records(reader, &region_record, from->regions, 0, &regions, &desc->region_count);
	desc->regions = regions;
	if (result == 0)
	{
		result = read_records(reader, &emitter_record, from->emitters, 0, &emitters, &desc->emitter_count);
		desc->emitters = emitters;
	}
	if (result == 0)
	{
		result = read_records(reader, &outflow_record, from->outflows, 0, &outflows, &desc->outflow_count);
		desc->outflows = outflows;
	}
	if (result == 0)
	{
		result = read_colliders(reader, from->colliders, desc);
	}
	if (result == 0)
	{
		result = read_bodies(reader, from->bodies, desc);
	}
	if (result == 0 && is_given(from->measures))
	{
		PyArrayObject *array = sand_py_doubles(from->measures, "measures", SAND_SCENE_MEASURES, 0);
		result = array != NULL ? PyList_Append(reader->held, (PyObject *)array) : -1;
		desc->measures = array != NULL ? PyArray_DATA(array) : NULL;
		Py_XDECREF((PyObject *)array); // the list keeps it
	}
	return result;
}

static void free_scene_blocks(const SandSceneDesc *desc)
{
	sand_free((void *)desc->shapes);
	sand_free((void *)desc->materials);
	sand_free((void *)desc->material_pairs);
	sand_free((void *)desc->obstacles);
	sand_free((void *)desc->regions);
	sand_free((void *)desc->emitters);
	sand_free((void *)desc->outflows);
	sand_free((void *)desc->colliders);
	sand_free((void *)desc->bodies);
}

static PyObject *scene_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"positions",
	                        "shapes",
	                        "gravity",
	                        "max_overlap",
	                        "max_speed",
	                        "restitution_speed",
	                        "density",
	                        "restitution",
	                        "friction",
	                        "materials",
	                        "material_pairs",
	                        "orientations",
	                        "velocities",
	                        "spins",
	                        "scales",
	                        "grain_shapes",
	                        "grain_materials",
	                        "wall_positions",
	                        "wall_radius",
	                        "wall_material",
	                        "planes",
	                        "obstacles",
	                        "emitters",
	                        "outflows",
	                        "colliders",
	                        "bodies",
	                        "drag",
	                        "wind",
	                        "regions",
	                        "sleep_speed",
	                        "sleep_seconds",
	                        "wake_speed",
	                        "seed",
	                        "measures",
	                        NULL};
	SceneArguments from = {0};
	SandSceneDesc desc = {0};
	if (!PyArg_ParseTupleAndKeywords(
	        args, kwargs, "|$OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO:Scene", names, &from.positions, &from.shapes,
	        &from.gravity, &from.max_overlap, &from.max_speed, &from.restitution_speed, &from.density,
	        &from.restitution, &from.friction, &from.materials, &from.material_pairs, &from.orientations,
	        &from.velocities, &from.spins, &from.scales, &from.grain_shapes, &from.grain_materials,
	        &from.wall_positions, &from.wall_radius, &from.wall_material, &from.planes, &from.obstacles, &from.emitters,
	        &from.outflows, &from.colliders, &from.bodies, &from.drag, &from.wind, &from.regions, &from.sleep_speed,
	        &from.sleep_seconds, &from.wake_speed, &from.seed, &from.measures))
	{
		return NULL;
	}
	SceneObject *self = NULL;
	const Reader reader = {PyList_New(0), state_of(type)};
	if (reader.held != NULL && read_scene(&reader, &from, &desc) == 0)
	{
		self = (SceneObject *)allocate(type);
	}
	if (self != NULL)
	{
		SandError err = {0};
		PyThreadState *thread = PyEval_SaveThread();
		SandStatus status = sand_scene_create(&desc, &self->scene, &err);
		PyEval_RestoreThread(thread);
		if (status != SAND_OK)
		{
			Py_CLEAR(self);
			sand_py_raise(state_of(type), &err);
		}
	}
	free_scene_blocks(&desc);
	Py_XDECREF(reader.held);
	return (PyObject *)self;
}

static void scene_dealloc(PyObject *self)
{
	sand_scene_destroy(((SceneObject *)self)->scene);
	release(self);
}

static PyObject *scene_grain_count(PyObject *self, void *closure)
{
	(void)closure;
	return PyLong_FromLong(scene_of(self)->grain_count);
}

static PyObject *scene_sphere_count(PyObject *self, void *closure)
{
	(void)closure;
	return PyLong_FromLongLong(scene_of(self)->sphere_count);
}

static PyObject *scene_hash(PyObject *self, void *closure)
{
	(void)closure;
	return PyLong_FromUnsignedLongLong(scene_of(self)->hash);
}

static PyObject *scene_contact_time(PyObject *self, void *closure)
{
	(void)closure;
	return PyFloat_FromDouble(scene_of(self)->contact_time);
}

static PyObject *scene_max_speed(PyObject *self, void *closure)
{
	(void)closure;
	return PyFloat_FromDouble(scene_of(self)->max_speed);
}

static PyObject *scene_measures(PyObject *self, void *closure)
{
	(void)closure;
	double m[SAND_SCENE_MEASURES];
	sand_scene_measures(scene_of(self), m);
	return Py_BuildValue("(ddddddd)", m[0], m[1], m[2], m[3], m[4], m[5], m[6]);
}

/// A copy of count numbers of 4 or 8 bytes each; NULL with an exception.
static PyObject *copied(const void *data, int type, size_t count, size_t size, npy_intp column_count)
{
	void *block = sand_alloc_raw(count, size);
	if (block == NULL)
	{
		return PyErr_NoMemory();
	}
	if (count > 0)
	{
		memcpy(block, data, count * size);
	}
	return sand_py_block(block, type, (npy_intp)(column_count > 0 ? count / (size_t)column_count : count),
	                     column_count);
}

/// Radius of the largest sphere of each grain.
static PyObject *largest_radii(const SandScene *scene)
{
	float *radii = sand_alloc_raw((size_t)scene->grain_count, sizeof(float));
	float *largest = sand_alloc((size_t)scene->shape_count, sizeof(float));
	if (radii == NULL || largest == NULL)
	{
		sand_free(radii);
		sand_free(largest);
		return PyErr_NoMemory();
	}
	for (int i = 0; i < scene->shape_count; ++i)
	{
		for (int k = 0; k < scene->shapes[i].sphere_count; ++k)
		{
			largest[i] = fmaxf(largest[i], scene->shapes[i].radii[k]);
		}
	}
	for (int i = 0; i < scene->grain_count; ++i)
	{
		radii[i] = largest[scene->grain_shapes[i]] * scene->grain_scales[i];
	}
	sand_free(largest);
	return sand_py_block(radii, NPY_FLOAT32, scene->grain_count, 0);
}

static PyObject *scene_grains(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	const SandScene *scene = scene_of(self);
	size_t count = (size_t)scene->grain_count;
	PyObject *shapes = copied(scene->grain_shapes, NPY_INT32, count, sizeof(int32_t), 0);
	PyObject *materials = copied(scene->grain_materials, NPY_INT32, count, sizeof(int32_t), 0);
	PyObject *emitters = copied(scene->grain_emitters, NPY_INT32, count, sizeof(int32_t), 0);
	PyObject *scales = copied(scene->grain_scales, NPY_FLOAT32, count, sizeof(float), 0);
	PyObject *births = copied(scene->grain_births, NPY_FLOAT64, count, sizeof(double), 0);
	PyObject *radii = largest_radii(scene);
	PyObject *all[] = {shapes, materials, emitters, scales, births, radii};
	bool is_good = true;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
	{
		is_good = is_good && all[i] != NULL;
	}
	if (is_good)
	{
		return Py_BuildValue("{s:N,s:N,s:N,s:N,s:N,s:N}", "shapes", shapes, "materials", materials, "emitters",
		                     emitters, "scales", scales, "births", births, "radii", radii);
	}
	for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
	{
		Py_XDECREF(all[i]);
	}
	return NULL;
}

/// Centres from the centre of mass along the axes of the description, and radii: at scale 1.
static PyObject *shape_spheres(const SandShape *shape)
{
	size_t count = (size_t)shape->sphere_count;
	float *offsets = sand_alloc_raw(count, 3 * sizeof(float));
	if (offsets == NULL)
	{
		return PyErr_NoMemory();
	}
	for (size_t i = 0; i < count; ++i)
	{
		const float *at = shape->offsets + 3 * i;
		double turned[3];
		sand_turn(shape->axes, (const double[3]){(double)at[0], (double)at[1], (double)at[2]}, turned);
		for (size_t k = 0; k < 3; ++k)
		{
			offsets[3 * i + k] = (float)turned[k];
		}
	}
	PyObject *centres = sand_py_block(offsets, NPY_FLOAT32, (npy_intp)count, 3);
	PyObject *radii = centres != NULL ? copied(shape->radii, NPY_FLOAT32, count, sizeof(float), 0) : NULL;
	if (radii == NULL)
	{
		Py_XDECREF(centres);
		return NULL;
	}
	return Py_BuildValue("(NN)", centres, radii);
}

static PyObject *scene_shapes(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	const SandScene *scene = scene_of(self);
	PyObject *list = PyList_New(scene->shape_count);
	for (int i = 0; i < scene->shape_count && list != NULL; ++i)
	{
		PyObject *one = shape_spheres(&scene->shapes[i]);
		if (one == NULL || PyList_SetItem(list, i, one) != 0) // takes it, also on failure
		{
			Py_CLEAR(list);
		}
	}
	return list;
}

static PyMethodDef scene_methods[] = {
    {"grains", scene_grains, METH_NOARGS,
     "grains()\n--\n\n"
     "What every grain is, given and emitted: a dict of new (N,) arrays: shapes, materials (numbers), emitters (-1: "
     "was\n"
     "given), scales, births (s, when it is due) and radii (m, of its largest sphere)."},
    {"shapes", scene_shapes, METH_NOARGS,
     "shapes()\n--\n\n"
     "The shapes as they are simulated: a list of (centres (K, 3), radii (K,)) in metres at scale 1, from the centre "
     "of\n"
     "mass, along the axes that orientations() turn."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef scene_getset[] = {
    {"grain_count", scene_grain_count, NULL, "Number of grains, given and emitted.", NULL},
    {"sphere_count", scene_sphere_count, NULL, "Number of spheres of all grains.", NULL},
    {"hash", scene_hash, NULL, "Hash of all but motion: frames of another hash are stale.", NULL},
    {"contact_time", scene_contact_time, NULL, "Duration of a head-on impact of two grains, in seconds.", NULL},
    {"max_speed", scene_max_speed, NULL, "Fastest impact expected, as given or found, in m/s.", NULL},
    {"measures", scene_measures, NULL, "What was measured over all motion, for the measures of a longer scene.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot scene_slots[] = {
    {Py_tp_doc,
     "Scene(*, positions, shapes, gravity=(0, 0, -9.81), max_overlap=0, max_speed=0, restitution_speed=0, density=0, "
     "restitution=0, friction=-1, materials=None, material_pairs=None, orientations=None, velocities=None, spins=None, "
     "scales=None, grain_shapes=None, grain_materials=None, wall_positions=None, wall_radius=0, wall_material=0, "
     "planes=None, obstacles=None, emitters=None, outflows=None, colliders=None, bodies=None, drag=0, wind=(0, 0, 0), "
     "regions=None, sleep_speed=0, "
     "sleep_seconds=0, "
     "wake_speed=0, seed=0, measures=None)\n--\n\n"
     "What is simulated, in SI units; 0 = the core's default. Copied; never changes.\n\n"
     "materials: dicts of density, young, poisson, restitution, friction, rolling, cohesion, cohesion_range,\n"
     "    normal ('hertz', 'hertz-constant', 'hertz-damper', 'linear') and shear ('viscous', 'history').\n"
     "    Without them, density, restitution and friction describe the one material.\n"
     "material_pairs: dicts of a, b, and any of restitution, friction, rolling, cohesion.\n"
     "obstacles: dicts of kind ('plane', 'box', 'cylinder', 'cone'), is_inside, material, point, axis, size,\n"
     "    roughness. They follow the planes, which are (P, 6): point, normal.\n"
     "regions: dicts of min, max, acceleration.\n"
     "emitters: dicts of positions (K, 3), rate (grains per second) and end (s), and any of begin, velocity, shape,\n"
     "    material, scale. Their grains follow the given ones, which may then be none.\n"
     "outflows: dicts of min, max: boxes that take out the grains whose centre comes into them.\n"
     "colliders: dicts of mesh (a Mesh) and any of material; track = (begin, interval, samples) when it moves: x y z,\n"
     "    w x y z at even times in s, (S, 7) float64; frames = (begin, interval, vertices) when it changes shape:\n"
     "    (F, V, 3) float32.\n"
     "bodies: dicts of grain, whose forces loads() tells, and, when it is driven, track as above and release (s; 0 =\n"
     "    never): when it is let go.\n"
     "measures: those of an earlier scene that this one goes on from with more motion."},
    {Py_tp_new, (void *)scene_new},
    {Py_tp_dealloc, (void *)scene_dealloc},
    {Py_tp_getset, scene_getset},
    {Py_tp_methods, scene_methods},
    {0, NULL},
};

static PyType_Spec scene_spec = {
    .name = "barchan.Scene",
    .basicsize = sizeof(SceneObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = scene_slots,
};

// Sim

typedef struct SimObject
{
	PyObject_HEAD SandSim *sim;
	PyObject *scene;   // the SceneObject that sim uses
	SandCancel cancel; // raised by any thread, lowered by the advance() that raises Cancelled
	const char *doing; // what a call does to the sim without the GIL, else NULL; read and written with it
} SimObject;

/// The kernel's name of an argument that may be None; borrowed from the object.
static int read_kernel(PyObject *object, const char **name_out)
{
	if (!is_given(object))
	{
		return 0;
	}
	if (!PyUnicode_Check(object))
	{
		sand_py_raise_type(object, "kernel", "a str or None");
		return -1;
	}
	Py_ssize_t byte_count = 0;
	const char *name = PyUnicode_AsUTF8AndSize(object, &byte_count);
	if (name != NULL && strlen(name) != (size_t)byte_count)
	{
		PyErr_Format(PyExc_ValueError, "kernel: found %R, expected a name without NUL", object);
		return -1;
	}
	*name_out = name;
	return name != NULL ? 0 : -1;
}

static const char *const engine_names[] = {
    [SAND_ENGINE_CPU] = "cpu",
    [SAND_ENGINE_GL] = "gl",
    [SAND_ENGINE_AUTO] = "auto",
};

int sand_py_engine(PyObject *object, SandEngine *engine_out)
{
	for (int i = 0; object != NULL && PyUnicode_Check(object) && i < SAND_ENGINE_COUNT; ++i)
	{
		if (PyUnicode_CompareWithASCIIString(object, engine_names[i]) == 0)
		{
			*engine_out = (SandEngine)i;
			return 0;
		}
	}
	if (object != NULL)
	{
		PyErr_Format(PyExc_ValueError, "engine: found %R, expected 'cpu', 'gl' or 'auto'", object);
	}
	return object != NULL ? -1 : 0;
}

static PyObject *sim_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"scene",  "threads", "step_seconds",     "allow_overlap", "kernel",
	                        "engine", "device",  "stop_without_gpu", "measure",       NULL};
	SandPyState *state = state_of(type);
	PyObject *scene;
	PyObject *threads = NULL;
	PyObject *step_seconds = NULL;
	PyObject *allow_overlap = NULL;
	PyObject *kernel = NULL;
	PyObject *engine = NULL;
	PyObject *device = NULL;
	PyObject *stop_without_gpu = NULL;
	PyObject *measure = NULL;
	SandSimDesc desc = {0};
	int32_t thread_count = 0, device_number = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OOOOOOOO:Sim", names, (PyTypeObject *)state->scene_type, &scene,
	                                 &threads, &step_seconds, &allow_overlap, &kernel, &engine, &device,
	                                 &stop_without_gpu, &measure) ||
	    sand_py_bool(measure, "measure", &desc.gpu.has_timers) != 0 || sand_py_engine(engine, &desc.engine) != 0 ||
	    sand_py_int32(device, "device", &device_number) != 0 ||
	    sand_py_bool(stop_without_gpu, "stop_without_gpu", &desc.stops_without_gpu) != 0 ||
	    sand_py_int32(threads, "threads", &thread_count) != 0 ||
	    sand_py_double(step_seconds, "step_seconds", &desc.step_seconds) != 0 ||
	    sand_py_bool(allow_overlap, "allow_overlap", &desc.is_overlap_allowed) != 0 ||
	    read_kernel(kernel, &desc.kernel) != 0)
	{
		return NULL;
	}
	desc.thread_count = thread_count;
	desc.gpu.device = device_number;
	SimObject *self = (SimObject *)allocate(type);
	if (self == NULL)
	{
		return NULL;
	}
	self->scene = Py_NewRef(scene);
	Py_XINCREF(kernel); // its text is read without the GIL
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_sim_create(scene_of(scene), &desc, &self->sim, &err);
	PyEval_RestoreThread(thread);
	Py_XDECREF(kernel);
	if (status != SAND_OK)
	{
		Py_DECREF(self);
		return sand_py_raise(state, &err);
	}
	return (PyObject *)self;
}

static void sim_dealloc(PyObject *self)
{
	SimObject *object = (SimObject *)self;
	sand_sim_destroy(object->sim); // before the scene it uses
	Py_XDECREF(object->scene);
	release(self);
}

/// NULL with RuntimeError while another thread's call works on the sim.
static SimObject *idle_sim(PyObject *self)
{
	SimObject *object = (SimObject *)self;
	if (object->doing != NULL)
	{
		PyErr_Format(PyExc_RuntimeError,
		             "This Sim is %s in another thread; wait until that call returns, or stop an advance() with "
		             "cancel()",
		             object->doing);
		return NULL;
	}
	return object;
}

/// Releases the GIL; until enter() the sim belongs to this call alone.
static PyThreadState *leave(SimObject *object, const char *doing)
{
	object->doing = doing;
	return PyEval_SaveThread();
}

static void enter(SimObject *object, PyThreadState *thread)
{
	PyEval_RestoreThread(thread);
	object->doing = NULL;
}

static PyObject *sim_advance(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"seconds", "ahead", NULL};
	PyObject *number, *next = NULL;
	double seconds = 0, ahead = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:advance", names, &number, &next) ||
	    sand_py_double(number, "seconds", &seconds) != 0 ||
	    (next != NULL && sand_py_double(next, "ahead", &ahead) != 0))
	{
		return NULL;
	}
	SimObject *object = idle_sim(self);
	if (object == NULL)
	{
		return NULL;
	}
	SandError err = {0};
	SandStatus status;
	PyThreadState *thread = leave(object, "advancing");
	if (atomic_load(&object->cancel.is_raised) != 0)
	{
		// Also when there is no step to do, at which the core would look.
		status = sand_fail(&err, SAND_CANCELLED, "The simulation was cancelled before it advanced");
	}
	else
	{
		status = sand_sim_advance_ahead(object->sim, seconds, ahead, &object->cancel, &err);
	}
	enter(object, thread);
	if (status == SAND_CANCELLED)
	{
		atomic_store(&object->cancel.is_raised, 0);
	}
	return status == SAND_OK ? Py_NewRef(Py_None) : sand_py_raise(state_of(Py_TYPE(self)), &err);
}

static PyObject *sim_cancel(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	atomic_store(&((SimObject *)self)->cancel.is_raised, 1);
	return Py_NewRef(Py_None);
}

static PyObject *sim_info(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	const SimObject *object = idle_sim(self);
	if (object == NULL)
	{
		return NULL;
	}
	SandSimInfo info = sand_sim_info(object->sim);
	return Py_BuildValue("{s:d,s:d,s:d,s:L,s:L,s:L,s:i,s:i,s:i,s:i,s:i,s:i,s:L,s:d,s:d,s:d,s:d,s:d,s:d}", "time",
	                     info.time, "step_seconds", info.step_seconds, "last_step", info.last_step, "step_count",
	                     (long long)info.step_count, "list_count", (long long)info.list_count, "contact_count",
	                     (long long)info.contact_count, "lost_count", info.lost_count, "asleep_count",
	                     info.asleep_count, "unborn_count", info.unborn_count, "late_count", info.late_count,
	                     "gone_count", info.gone_count, "grain_count", info.grain_count, "sphere_count",
	                     (long long)info.sphere_count, "kinetic_energy", info.kinetic_energy, "potential_energy",
	                     info.potential_energy, "largest_speed", info.largest_speed, "drift_seconds",
	                     info.drift_seconds, "force_seconds", info.force_seconds, "list_seconds", info.list_seconds);
}

static PyObject *sim_engine(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	const SimObject *object = idle_sim(self);
	if (object == NULL)
	{
		return NULL;
	}
	SandSimEngine now = sand_sim_engine(object->sim);
	const SandGpuDevice *device = now.device;
	return Py_BuildValue("{s:s,s:z,s:z,s:O,s:s,s:i}", "engine", engine_names[now.engine], "device",
	                     device != NULL ? device->name : NULL, "driver", device != NULL ? device->driver : NULL,
	                     "is_software", device != NULL && device->is_software ? Py_True : Py_False, "note", now.note,
	                     "lost_count", now.lost_count);
}

static PyObject *sim_passes(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	const SimObject *object = idle_sim(self);
	PyObject *dict = object != NULL ? PyDict_New() : NULL;
	if (dict == NULL)
	{
		return NULL;
	}
	SandSimPass passes[SAND_GPU_PASS_LIMIT];
	int count = sand_sim_passes(object->sim, passes);
	for (int i = 0; i < count; ++i)
	{
		PyObject *value = Py_BuildValue("(dL)", passes[i].seconds, (long long)passes[i].count);
		if (value == NULL || PyDict_SetItemString(dict, passes[i].name, value) != 0)
		{
			Py_XDECREF(value);
			Py_DECREF(dict);
			return NULL;
		}
		Py_DECREF(value);
	}
	return dict;
}

/// A new (grain_count, column_count) array, and the sim to fill it from. NULL with an exception.
static PyObject *new_grain_array(PyObject *self, npy_intp column_count, float **data_out)
{
	const SimObject *object = idle_sim(self);
	if (object == NULL)
	{
		return NULL;
	}
	npy_intp shape[2] = {scene_of(object->scene)->grain_count, column_count};
	PyObject *array = PyArray_SimpleNew(2, shape, NPY_FLOAT32);
	if (array != NULL)
	{
		*data_out = PyArray_DATA((PyArrayObject *)array);
	}
	return array;
}

static PyObject *sim_positions(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	SandSimArrays arrays = {0};
	PyObject *array = new_grain_array(self, 3, &arrays.positions);
	if (array != NULL)
	{
		sand_sim_read(((SimObject *)self)->sim, &arrays);
	}
	return array;
}

static PyObject *sim_orientations(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	SandSimArrays arrays = {0};
	PyObject *array = new_grain_array(self, 4, &arrays.orientations);
	if (array != NULL)
	{
		sand_sim_read(((SimObject *)self)->sim, &arrays);
	}
	return array;
}

static PyObject *sim_velocities(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	SandSimArrays arrays = {0};
	PyObject *array = new_grain_array(self, 3, &arrays.velocities);
	if (array != NULL)
	{
		sand_sim_read(((SimObject *)self)->sim, &arrays);
	}
	return array;
}

static PyObject *sim_spins(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	SandSimArrays arrays = {0};
	PyObject *array = new_grain_array(self, 3, &arrays.spins);
	if (array != NULL)
	{
		sand_sim_read(((SimObject *)self)->sim, &arrays);
	}
	return array;
}

static PyObject *sim_flags(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	const SimObject *object = idle_sim(self);
	if (object == NULL)
	{
		return NULL;
	}
	npy_intp count = scene_of(object->scene)->grain_count;
	PyObject *array = PyArray_SimpleNew(1, &count, NPY_INT32);
	if (array != NULL)
	{
		SandSimArrays arrays = {.flags = PyArray_DATA((PyArrayObject *)array)};
		sand_sim_read(object->sim, &arrays);
		for (npy_intp i = 0; i < count; ++i)
		{
			arrays.flags[i] &= SAND_GRAIN_STILL; // the others are the stepping's own
		}
	}
	return array;
}

/// The type of one SandContact. A new reference.
static PyArray_Descr *contact_descr(void)
{
	_Static_assert(sizeof(SandContact) == 52 && offsetof(SandContact, point) == 12 &&
	                   offsetof(SandContact, normal_force) == 36 && offsetof(SandContact, shear_force) == 40,
	               "words one after the other, as named below");
	PyObject *fields = Py_BuildValue("[(ss)(ss)(ss)(ss)(ss)(ss)(ss)]", "grain", "i4", "other", "i4", "overlap", "f4",
	                                 "point", "3f4", "normal", "3f4", "normal_force", "f4", "shear_force", "3f4");
	PyArray_Descr *descr = NULL;
	if (fields != NULL)
	{
		(void)PyArray_DescrConverter(fields, &descr); // NULL on failure
		Py_DECREF(fields);
	}
	return descr;
}

static PyObject *sim_contacts(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	SimObject *object = idle_sim(self);
	PyArray_Descr *descr = object != NULL ? contact_descr() : NULL;
	if (descr == NULL)
	{
		return NULL;
	}
	PyThreadState *thread = leave(object, "listing its contacts");
	npy_intp count = (npy_intp)sand_sim_contacts(object->sim, NULL, 0);
	PyEval_RestoreThread(thread);                                                                 // still this call's
	PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, 1, &count, NULL, NULL, 0, NULL); // takes descr
	if (array == NULL)
	{
		object->doing = NULL;
		return NULL;
	}
	SandContact *contacts = PyArray_DATA((PyArrayObject *)array);
	thread = leave(object, "listing its contacts");
	(void)sand_sim_contacts(object->sim, contacts, count);
	enter(object, thread);
	return array;
}

/// A new (row_count, 6) array. NULL with an exception.
static PyObject *new_loads(npy_intp row_count)
{
	npy_intp shape[2] = {row_count, 6};
	return PyArray_SimpleNew(2, shape, NPY_FLOAT64);
}

static PyObject *sim_loads(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	const SimObject *object = idle_sim(self);
	if (object == NULL)
	{
		return NULL;
	}
	const SandScene *scene = scene_of(object->scene);
	PyObject *bodies = new_loads(scene->body_count);
	PyObject *colliders = bodies != NULL ? new_loads(scene->collider_count) : NULL;
	if (colliders == NULL)
	{
		Py_XDECREF(bodies);
		return NULL;
	}
	sand_sim_loads(object->sim, PyArray_DATA((PyArrayObject *)bodies), PyArray_DATA((PyArrayObject *)colliders));
	return Py_BuildValue("{s:N,s:N}", "bodies", bodies, "colliders", colliders);
}

static PyObject *sim_save(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	SimObject *object = idle_sim(self);
	if (object == NULL)
	{
		return NULL;
	}
	void *block = NULL;
	size_t byte_count = 0;
	SandError err = {0};
	PyThreadState *thread = leave(object, "saving");
	SandStatus status = sand_sim_save(object->sim, &block, &byte_count, &err);
	enter(object, thread);
	if (status != SAND_OK)
	{
		return sand_py_raise(state_of(Py_TYPE(self)), &err);
	}
	PyObject *bytes = NULL;
	if (byte_count <= (size_t)PY_SSIZE_T_MAX)
	{
		bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)byte_count);
	}
	else
	{
		PyErr_NoMemory();
	}
	if (bytes != NULL)
	{
		// Nobody else has seen the new object, so it may be filled without the GIL.
		char *target = PyBytes_AsString(bytes);
		thread = PyEval_SaveThread();
		memcpy(target, block, byte_count);
		PyEval_RestoreThread(thread);
	}
	sand_free(block);
	return bytes;
}

static PyObject *sim_load(PyObject *self, PyObject *bytes)
{
	Py_buffer view;
	if (PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) != 0)
	{
		// No buffer, or one with gaps, which each type refuses in its own way.
		if (!PyErr_ExceptionMatches(PyExc_MemoryError))
		{
			PyErr_Clear();
			sand_py_raise_type(bytes, "bytes", "contiguous bytes as save() gives them");
		}
		return NULL;
	}
	SimObject *object = idle_sim(self);
	if (object == NULL)
	{
		PyBuffer_Release(&view);
		return NULL;
	}
	SandError err = {0};
	PyThreadState *thread = leave(object, "loading");
	SandStatus status = sand_sim_load(object->sim, view.buf, (size_t)view.len, &err);
	enter(object, thread);
	PyBuffer_Release(&view);
	return status == SAND_OK ? Py_NewRef(Py_None) : sand_py_raise(state_of(Py_TYPE(self)), &err);
}

static PyObject *sim_hash(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	const SimObject *object = idle_sim(self);
	return object != NULL ? PyLong_FromUnsignedLongLong(sand_sim_hash(object->sim)) : NULL;
}

static PyObject *sim_motion_hash(PyObject *self, PyObject *seconds)
{
	double time = 0;
	const SimObject *object = idle_sim(self);
	if (object == NULL || sand_py_double(seconds, "seconds", &time) != 0)
	{
		return NULL;
	}
	return PyLong_FromUnsignedLongLong(sand_sim_motion_hash(object->sim, time));
}

static PyMethodDef sim_methods[] = {
    {"advance", (PyCFunction)(void (*)(void))sim_advance, METH_VARARGS | METH_KEYWORDS,
     "advance(seconds, ahead=0.0)\n--\n\nSimulates on; other threads run meanwhile. Raises Cancelled or "
     "UnstableError.\n"
     "ahead: what the next call will ask for, which the gl engine then begins with before this one returns."},
    {"cancel", sim_cancel, METH_NOARGS,
     "cancel()\n--\n\nFrom any thread, at any time: the running or the next advance() raises Cancelled."},
    {"info", sim_info, METH_NOARGS,
     "info()\n--\n\nA dict: time, step_seconds, last_step, step_count, list_count, contact_count, lost_count, "
     "asleep_count, unborn_count, late_count, gone_count, grain_count, sphere_count, kinetic_energy, potential_energy, "
     "largest_speed; drift_seconds, "
     "force_seconds, list_seconds of wall time."},
    {"positions", sim_positions, METH_NOARGS, "positions()\n--\n\nA new (N, 3) float32 array, in metres."},
    {"orientations", sim_orientations, METH_NOARGS,
     "orientations()\n--\n\nA new (N, 4) float32 array of unit quaternions: w, x, y, z."},
    {"velocities", sim_velocities, METH_NOARGS, "velocities()\n--\n\nA new (N, 3) float32 array, in m/s."},
    {"spins", sim_spins, METH_NOARGS, "spins()\n--\n\nA new (N, 3) float32 array, in rad/s, world axes."},
    {"flags", sim_flags, METH_NOARGS,
     "flags()\n--\n\n"
     "A new (N,) int32 array, a sum for each grain of 1 lost: left the domain, 2 asleep, 8 not yet born, 16 taken by\n"
     "an outflow."},
    {"loads", sim_loads, METH_NOARGS,
     "loads()\n--\n\n"
     "What the contacts did over the last advance(), on average: a dict of bodies (B, 6) and colliders (C, 6), new\n"
     "float64 arrays of force in N and torque in N m: about the body's centre of mass, or the collider's track\n"
     "(without one, the middle of its bounds). Zero before the first."},
    {"contacts", sim_contacts, METH_NOARGS,
     "contacts()\n--\n\n"
     "The contacts as they act now, after an advance(): a new structured array of grain, other (grain; -1 a wall,\n"
     "-2 - i obstacle i; after the last obstacle the colliders go on), overlap and point in metres, normal towards\n"
     "grain, normal_force and shear_force in N."},
    {"engine", sim_engine, METH_NOARGS,
     "engine()\n--\n\nThe engine at work, its device and driver, whether it is a software one, a note when it is not\n"
     "the one asked for, and how many devices failed so far."},
    {"passes", sim_passes, METH_NOARGS,
     "passes()\n--\n\nSeconds and runs of each pass of the gl engine so far, of a Sim made with measure=True."},
    {"save", sim_save, METH_NOARGS, "save()\n--\n\nThe whole state as bytes, for load()."},
    {"load", sim_load, METH_O,
     "load(bytes)\n--\n\n"
     "Takes up a state that a Sim of an equal scene saved, and goes on to the bit as that one would have.\n"
     "Raises CacheError, and stays as it was, when the bytes are torn or of another scene. No other thread may\n"
     "change them meanwhile."},
    {"hash", sim_hash, METH_NOARGS, "hash()\n--\n\nHash of the full state: equal states have equal hashes."},
    {"motion_hash", sim_motion_hash, METH_O,
     "motion_hash(seconds)\n--\n\n"
     "Hash of all motion of colliders and bodies that the state at that time depends on; 0 when nothing is moved."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot sim_slots[] = {
    {Py_tp_doc,
     "Sim(scene, threads=0, step_seconds=0.0, allow_overlap=False, kernel=None, engine='cpu', device=0,\n"
     "    stop_without_gpu=False)\n--\n\n"
     "Grains in motion. threads 0 = one per core; step_seconds 0 = by the scene's contact time.\n"
     "Grains that start deep inside each other are refused unless allow_overlap. kernel, for tests: the\n"
     "inner loops to use, 'baseline' or 'avx2', with equal results; None = the fastest that runs here.\n"
     "engine 'gl' computes on a GPU, the best or the one with that number of barchan.devices(); 'auto' does\n"
     "so when it is not a software one. A device that fails twice in a row hands the state to the cpu\n"
     "engine, or raises GpuError with stop_without_gpu."},
    {Py_tp_new, (void *)sim_new},
    {Py_tp_dealloc, (void *)sim_dealloc},
    {Py_tp_methods, sim_methods},
    {0, NULL},
};

static PyType_Spec sim_spec = {
    .name = "barchan.Sim",
    .basicsize = sizeof(SimObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = sim_slots,
};

// Cancel

typedef struct CancelObject
{
	PyObject_HEAD SandCancel cancel;
} CancelObject;

const SandCancel *sand_py_cancel(PyObject *object)
{
	return &((CancelObject *)object)->cancel;
}

static PyObject *cancel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {NULL};
	return PyArg_ParseTupleAndKeywords(args, kwargs, ":Cancel", names) ? allocate(type) : NULL;
}

static void cancel_dealloc(PyObject *self)
{
	release(self);
}

static PyObject *cancel_cancel(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	atomic_store(&((CancelObject *)self)->cancel.is_raised, 1);
	return Py_NewRef(Py_None);
}

static PyObject *cancel_is_cancelled(PyObject *self, void *closure)
{
	(void)closure;
	return PyBool_FromLong(atomic_load(&((CancelObject *)self)->cancel.is_raised));
}

static PyGetSetDef cancel_getset[] = {
    {"is_cancelled", cancel_is_cancelled, NULL, "Whether cancel() was called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef cancel_methods[] = {
    {"cancel", cancel_cancel, METH_NOARGS,
     "cancel()\n--\n\nFrom any thread, at any time: every call that was given this object raises Cancelled."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot cancel_slots[] = {
    {Py_tp_doc, "Cancel()\n--\n\nHanded to sample(), pack() or clump(), it can stop them from another thread."},
    {Py_tp_new, (void *)cancel_new},
    {Py_tp_dealloc, (void *)cancel_dealloc},
    {Py_tp_getset, cancel_getset},
    {Py_tp_methods, cancel_methods},
    {0, NULL},
};

static PyType_Spec cancel_spec = {
    .name = "barchan.Cancel",
    .basicsize = sizeof(CancelObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = cancel_slots,
};

int sand_py_add_types(PyObject *module, SandPyState *state)
{
	const struct
	{
		PyType_Spec *spec;
		PyObject **type;
	} types[] = {{&mesh_spec, &state->mesh_type},
	             {&scene_spec, &state->scene_type},
	             {&sim_spec, &state->sim_type},
	             {&cancel_spec, &state->cancel_type}};
	for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i)
	{
		*types[i].type = PyType_FromModuleAndSpec(module, types[i].spec, NULL);
		if (*types[i].type == NULL || PyModule_AddType(module, (PyTypeObject *)*types[i].type) != 0)
		{
			return -1;
		}
	}
	return 0;
}
