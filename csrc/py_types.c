// py_types: the types Mesh, Scene and Sim. Comes in: Python calls. Goes out: properties, arrays, exceptions.
// Mesh and Scene never change after they are made, so any thread may read them. A Sim belongs to one call at a time:
// a second thread that comes while advance() runs gets a RuntimeError; only cancel() may come at any time.
// The types cannot be subclassed: the type of an object leads straight to the module's state.
#include "py_module.h"

#include "scene.h"
#include "sim.h"

#include <stdatomic.h>
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
	PyObject *positions, *shapes, *gravity;
	PyObject *orientations, *velocities, *spins, *grain_shapes;
	PyObject *wall_positions, *planes, *seed;
	PyObject *density, *restitution, *friction, *max_overlap, *max_speed, *wall_radius;
} SceneArguments;

static bool is_given(PyObject *object)
{
	return object != NULL && object != Py_None;
}

/// Puts the array, which it takes, into the list that lives as long as the call. -1 with an exception.
static int hold(PyObject *held, PyArrayObject *array)
{
	if (array == NULL)
	{
		return -1;
	}
	int result = PyList_Append(held, (PyObject *)array);
	Py_DECREF(array);
	return result;
}

/// An optional float32 array of the scene; left out it stays NULL. row_count_out may be NULL.
static int hold_floats(PyObject *held, PyObject *object, const char *name, npy_intp row_count, npy_intp column_count,
                       const float **data_out, int64_t *row_count_out)
{
	if (!is_given(object))
	{
		return 0;
	}
	PyArrayObject *array = sand_py_floats(object, name, row_count, column_count);
	if (hold(held, array) != 0)
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

/// One (offsets, radii) pair. offsets None = all zero.
static int read_shape(PyObject *held, PyObject *pair, Py_ssize_t index, SandShapeDesc *shape)
{
	PyObject *items = PySequence_Tuple(pair);
	char name[64];
	snprintf(name, sizeof name, "shapes[%lld]", (long long)index);
	if (items == NULL)
	{
		if (PyErr_ExceptionMatches(PyExc_TypeError))
		{
			PyErr_Clear();
			sand_py_raise_type(pair, name, "a pair (offsets, radii)");
		}
		return -1;
	}
	if (PyTuple_Size(items) != 2)
	{
		PyErr_Format(PyExc_ValueError, "%s: found %zd items, expected a pair (offsets, radii)", name,
		             PyTuple_Size(items));
		Py_DECREF(items);
		return -1;
	}
	int64_t sphere_count = 0;
	snprintf(name, sizeof name, "shapes[%lld] radii", (long long)index);
	PyObject *radii = PyTuple_GetItem(items, 1);
	PyArrayObject *array = sand_py_floats(radii, name, -1, 0);
	int result = hold(held, array);
	if (result == 0)
	{
		shape->radii = PyArray_DATA(array);
		sphere_count = PyArray_DIM(array, 0);
		snprintf(name, sizeof name, "shapes[%lld] offsets", (long long)index);
		result = hold_floats(held, PyTuple_GetItem(items, 0), name, (npy_intp)sphere_count, 3, &shape->offsets, NULL);
	}
	// Beyond the limit the scene says so; here it only has to fit into the field.
	shape->sphere_count = sphere_count > INT32_MAX ? INT32_MAX : (int)sphere_count;
	Py_DECREF(items);
	return result;
}

/// All shapes, in a block of sand_alloc that the caller frees: desc->shapes.
static int read_shapes(PyObject *held, PyObject *object, SandSceneDesc *desc)
{
	PyObject *pairs = PySequence_Tuple(object);
	if (pairs == NULL)
	{
		if (PyErr_ExceptionMatches(PyExc_TypeError))
		{
			PyErr_Clear();
			sand_py_raise_type(object, "shapes", "a sequence of pairs (offsets, radii)");
		}
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
		result = read_shape(held, PyTuple_GetItem(pairs, i), i, &shapes[i]);
	}
	Py_DECREF(pairs);
	return result;
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

/// Arguments -> description. The arrays live in held; desc->shapes and desc->obstacles are the caller's to free, also
/// on failure.
static int read_scene(PyObject *held, const SceneArguments *from, SandMaterial *material, SandSceneDesc *desc)
{
	if (!is_given(from->positions) || !is_given(from->shapes))
	{
		PyErr_Format(PyExc_TypeError, "Scene() needs the keyword argument '%s'",
		             is_given(from->positions) ? "shapes" : "positions");
		return -1;
	}
	if (sand_py_float(from->density, "density", &material->density) != 0 ||
	    sand_py_float(from->restitution, "restitution", &material->restitution) != 0 ||
	    sand_py_float(from->friction, "friction", &material->friction) != 0 ||
	    sand_py_float(from->max_overlap, "max_overlap", &desc->max_overlap) != 0 ||
	    sand_py_float(from->max_speed, "max_speed", &desc->max_speed) != 0 ||
	    sand_py_float(from->wall_radius, "wall_radius", &desc->wall_radius) != 0)
	{
		return -1;
	}
	if (read_gravity(from->gravity, desc->gravity) != 0 || sand_py_uint64(from->seed, "seed", &desc->seed) != 0 ||
	    hold_floats(held, from->positions, "positions", -1, 3, &desc->grain_positions, &desc->grain_count) != 0)
	{
		return -1;
	}
	npy_intp count = (npy_intp)desc->grain_count;
	const float *planes = NULL;
	int64_t plane_count = 0;
	if (hold_floats(held, from->orientations, "orientations", count, 4, &desc->grain_orientations, NULL) != 0 ||
	    hold_floats(held, from->velocities, "velocities", count, 3, &desc->grain_velocities, NULL) != 0 ||
	    hold_floats(held, from->spins, "spins", count, 3, &desc->grain_spins, NULL) != 0 ||
	    hold_floats(held, from->wall_positions, "wall_positions", -1, 3, &desc->wall_positions, &desc->wall_count) !=
	        0 ||
	    hold_floats(held, from->planes, "planes", -1, 6, &planes, &plane_count) != 0 ||
	    read_shapes(held, from->shapes, desc) != 0)
	{
		return -1;
	}
	if (plane_count > INT32_MAX)
	{
		PyErr_Format(PyExc_ValueError, "planes: found %lld, expected at most %d", (long long)plane_count, INT32_MAX);
		return -1;
	}
	SandObstacle *obstacles = sand_alloc((size_t)plane_count, sizeof(SandObstacle));
	if (obstacles == NULL)
	{
		PyErr_NoMemory();
		return -1;
	}
	for (int64_t i = 0; i < plane_count; ++i)
	{
		memcpy(obstacles[i].point, planes + 6 * i, sizeof(obstacles[i].point));
		memcpy(obstacles[i].axis, planes + 6 * i + 3, sizeof(obstacles[i].axis));
	}
	desc->obstacles = obstacles;
	desc->obstacle_count = (int)plane_count;
	if (is_given(from->grain_shapes))
	{
		PyArrayObject *array = sand_py_ints(from->grain_shapes, "grain_shapes", count, 0);
		if (hold(held, array) != 0)
		{
			return -1;
		}
		desc->grain_shapes = PyArray_DATA(array);
	}
	return 0;
}

static PyObject *scene_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {
	    "positions",      "shapes",      "gravity",      "density",    "restitution", "friction",
	    "max_overlap",    "max_speed",   "orientations", "velocities", "spins",       "grain_shapes",
	    "wall_positions", "wall_radius", "planes",       "seed",       NULL};
	SceneArguments from = {0};
	SandMaterial material = {.friction = -1};
	SandSceneDesc desc = {.materials = &material, .material_count = 1};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOOOOOOOOOOOOOO:Scene", names, &from.positions, &from.shapes,
	                                 &from.gravity, &from.density, &from.restitution, &from.friction, &from.max_overlap,
	                                 &from.max_speed, &from.orientations, &from.velocities, &from.spins,
	                                 &from.grain_shapes, &from.wall_positions, &from.wall_radius, &from.planes,
	                                 &from.seed))
	{
		return NULL;
	}
	SceneObject *self = NULL;
	PyObject *held = PyList_New(0);
	if (held != NULL && read_scene(held, &from, &material, &desc) == 0)
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
	sand_free((void *)desc.shapes);
	sand_free((void *)desc.obstacles);
	Py_XDECREF(held);
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

static PyGetSetDef scene_getset[] = {
    {"grain_count", scene_grain_count, NULL, "Number of grains.", NULL},
    {"sphere_count", scene_sphere_count, NULL, "Number of spheres of all grains.", NULL},
    {"hash", scene_hash, NULL, "Hash of the whole description: frames of another hash are stale.", NULL},
    {"contact_time", scene_contact_time, NULL, "Duration of a head-on impact of two grains, in seconds.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot scene_slots[] = {
    {Py_tp_doc,
     "Scene(*, positions, shapes, gravity=(0, 0, -9.81), density=0, restitution=0, friction=-1, max_overlap=0, "
     "max_speed=0, orientations=None, velocities=None, spins=None, grain_shapes=None, wall_positions=None, "
     "wall_radius=0, planes=None, seed=0)\n--\n\n"
     "What is simulated, in SI units. Copied; never changes."},
    {Py_tp_new, (void *)scene_new},
    {Py_tp_dealloc, (void *)scene_dealloc},
    {Py_tp_getset, scene_getset},
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
	bool is_busy;      // advance() runs without the GIL; read and written with it
} SimObject;

static PyObject *sim_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"scene", "threads", "step_seconds", NULL};
	SandPyState *state = state_of(type);
	PyObject *scene;
	PyObject *threads = NULL;
	PyObject *step_seconds = NULL;
	SandSimDesc desc = {0};
	int32_t thread_count = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OO:Sim", names, (PyTypeObject *)state->scene_type, &scene,
	                                 &threads, &step_seconds) ||
	    sand_py_int32(threads, "threads", &thread_count) != 0 ||
	    sand_py_double(step_seconds, "step_seconds", &desc.step_seconds) != 0)
	{
		return NULL;
	}
	desc.thread_count = thread_count;
	SimObject *self = (SimObject *)allocate(type);
	if (self == NULL)
	{
		return NULL;
	}
	self->scene = Py_NewRef(scene);
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_sim_create(scene_of(scene), &desc, &self->sim, &err);
	PyEval_RestoreThread(thread);
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

/// NULL with RuntimeError while advance() runs in another thread.
static SimObject *idle_sim(PyObject *self)
{
	SimObject *object = (SimObject *)self;
	if (object->is_busy)
	{
		PyErr_SetString(PyExc_RuntimeError,
		                "This Sim is advancing in another thread; wait until its advance() returns, or "
		                "stop it with cancel()");
		return NULL;
	}
	return object;
}

static PyObject *sim_advance(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"seconds", NULL};
	PyObject *number;
	double seconds = 0;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:advance", names, &number) ||
	    sand_py_double(number, "seconds", &seconds) != 0)
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
	object->is_busy = true;
	PyThreadState *thread = PyEval_SaveThread();
	if (atomic_load(&object->cancel.is_raised) != 0)
	{
		// Also when there is no step to do, at which the core would look.
		status = sand_fail(&err, SAND_CANCELLED, "The simulation was cancelled before it advanced");
	}
	else
	{
		status = sand_sim_advance(object->sim, seconds, &object->cancel, &err);
	}
	PyEval_RestoreThread(thread);
	object->is_busy = false;
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
	return Py_BuildValue("{s:d,s:d,s:d,s:L,s:L,s:L,s:i,s:i,s:i,s:L,s:d,s:d,s:d,s:d,s:d,s:d}", "time", info.time,
	                     "step_seconds", info.step_seconds, "last_step", info.last_step, "step_count",
	                     (long long)info.step_count, "list_count", (long long)info.list_count, "contact_count",
	                     (long long)info.contact_count, "lost_count", info.lost_count, "asleep_count",
	                     info.asleep_count, "grain_count", info.grain_count, "sphere_count",
	                     (long long)info.sphere_count, "kinetic_energy", info.kinetic_energy, "potential_energy",
	                     info.potential_energy, "largest_speed", info.largest_speed, "drift_seconds",
	                     info.drift_seconds, "force_seconds", info.force_seconds, "list_seconds", info.list_seconds);
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

static PyObject *sim_hash(PyObject *self, PyObject *ignored)
{
	(void)ignored;
	const SimObject *object = idle_sim(self);
	return object != NULL ? PyLong_FromUnsignedLongLong(sand_sim_hash(object->sim)) : NULL;
}

static PyMethodDef sim_methods[] = {
    {"advance", (PyCFunction)(void (*)(void))sim_advance, METH_VARARGS | METH_KEYWORDS,
     "advance(seconds)\n--\n\nSimulates on; other threads run meanwhile. Raises Cancelled or UnstableError."},
    {"cancel", sim_cancel, METH_NOARGS,
     "cancel()\n--\n\nFrom any thread, at any time: the running or the next advance() raises Cancelled."},
    {"info", sim_info, METH_NOARGS,
     "info()\n--\n\nA dict: time, step_seconds, step_count, contact_count, lost_count, grain_count, sphere_count, "
     "kinetic_energy."},
    {"positions", sim_positions, METH_NOARGS, "positions()\n--\n\nA new (N, 3) float32 array, in metres."},
    {"orientations", sim_orientations, METH_NOARGS,
     "orientations()\n--\n\nA new (N, 4) float32 array of unit quaternions: w, x, y, z."},
    {"velocities", sim_velocities, METH_NOARGS, "velocities()\n--\n\nA new (N, 3) float32 array, in m/s."},
    {"spins", sim_spins, METH_NOARGS, "spins()\n--\n\nA new (N, 3) float32 array, in rad/s, world axes."},
    {"hash", sim_hash, METH_NOARGS, "hash()\n--\n\nHash of the full state: equal states have equal hashes."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot sim_slots[] = {
    {Py_tp_doc, "Sim(scene, threads=0, step_seconds=0.0)\n--\n\n"
                "Grains in motion. threads 0 = one per core; step_seconds 0 = by the scene's contact time."},
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

int sand_py_add_types(PyObject *module, SandPyState *state)
{
	const struct
	{
		PyType_Spec *spec;
		PyObject **type;
	} types[] = {{&mesh_spec, &state->mesh_type}, {&scene_spec, &state->scene_type}, {&sim_spec, &state->sim_type}};
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
