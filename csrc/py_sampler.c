// py_sampler: mesh to spheres for Python: sample, pack, clump, spread, mass_properties. Comes in: Python calls. Goes
// out: arrays, fit and warnings. Each function runs repair, surface, sampler and fit in one go, without the GIL.
#include "py_module.h"

#include "clump.h"
#include "field.h"
#include "fit.h"
#include "glsurface.h"
#include "packing.h"
#include "pool.h"
#include "repair.h"
#include "sampler.h"
#include "scene.h"
#include "sim.h"
#include "solid.h"
#include "spread.h"
#include "surface.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Distance of neighbouring centres in radii when the caller names no spacing: spheres overlap by two fifths of their
// diameter, so that the surface they make together has only shallow dents.
#define SAND_SPACING_SHARE 1.2f

static SandPyState *state_of(PyObject *module)
{
	return PyModule_GetState(module);
}

// Work without the GIL

/// What is asked of the core. The fields that a function does not use stay zero.
typedef struct Request
{
	const SandMesh *mesh;
	int32_t thread_count;
	float radius;  // m
	float spacing; // m
	float offset;  // m
	float packing;
	int packing_kind;
	int is_calibrated; // the spheres of a filling grow until they are as large together as the mesh
	int32_t sphere_count;
	uint64_t seed;
	const SandCancel *cancel; // may be NULL
	SandEngine engine;
} Request;

/// What the core made of it. Everything in it is freed by free_body; the arrays that Python takes over are NULL then.
typedef struct Body
{
	SandPool *pool;
	SandMesh *mesh; // mended
	SandRepair repair;
	SandSurface *surface;
	SandPoints points;
	SandClump *clump; // NULL when the spheres are all of one radius
	double *masses;   // kg at density 1
	bool has_exact_masses;
	float radius; // m, of a filling's spheres
	SandFit fit;
	double seconds;                // from the first step to the last
	SandGpu *gpu;                  // NULL = the processor
	char device[128];              // its name; empty when the processor did it
	char note[SAND_MESSAGE_BYTES]; // why the processor did what a device was asked for; else empty
} Body;

typedef SandStatus MakeSpheres(const Request *request, Body *body, SandFitDesc *fit_desc, SandError *err);

static void free_body(Body *body)
{
	sand_free(body->masses);
	sand_free(body->clump);
	sand_points_free(&body->points);
	sand_surface_destroy(body->surface);
	sand_mesh_destroy(body->mesh);
	sand_pool_destroy(body->pool);
	sand_gpu_destroy(body->gpu);
}

/// The device that the request asks for. 'auto' takes hardware only, and the processor when there is none.
static SandStatus open_device(const Request *request, Body *body, SandError *err)
{
	if (request->engine == SAND_ENGINE_CPU)
	{
		return SAND_OK;
	}
	bool is_auto = request->engine == SAND_ENGINE_AUTO;
	SandGpuDesc desc = {.refuses_software = is_auto};
	SandError why = {0};
	SandStatus status = sand_gpu_create(&desc, &body->gpu, &why);
	if (status == SAND_OK)
	{
		(void)snprintf(body->device, sizeof body->device, "%s", sand_gpu_info(body->gpu)->name);
		return SAND_OK;
	}
	memcpy(body->note, why.message, sizeof body->note);
	if (!is_auto)
	{
		*err = why;
	}
	return is_auto ? SAND_OK : status;
}

/// Whether the processor has to do what the device could not: with 'auto', for whatever reason but a cancel. What the
/// request itself is wrong about, the processor then says.
static bool falls_back(const Request *request, Body *body, SandStatus status, const SandError *err)
{
	if (status == SAND_OK || status == SAND_CANCELLED || body->gpu == NULL || request->engine != SAND_ENGINE_AUTO)
	{
		return false;
	}
	memcpy(body->note, err->message, sizeof body->note);
	body->device[0] = '\0';
	sand_gpu_destroy(body->gpu);
	body->gpu = NULL;
	return true;
}

static SandStatus spread(const Request *request, Body *body, SandFitDesc *fit_desc, SandError *err)
{
	SandStatus status = open_device(request, body, err);
	SandSpreadDesc desc = {request->spacing, request->offset, request->seed, request->cancel, body->gpu};
	status = status == SAND_OK ? sand_spread_points(body->surface, &desc, body->pool, &body->points, err) : status;
	if (falls_back(request, body, status, err))
	{
		desc.gpu = NULL;
		status = sand_spread_points(body->surface, &desc, body->pool, &body->points, err);
	}
	fit_desc->offset = request->offset;
	fit_desc->radius = request->radius;
	fit_desc->centres = body->points.xyz;
	fit_desc->sphere_count = body->points.count;
	return status;
}

static SandStatus fill_up(const Request *request, Body *body, SandFitDesc *fit_desc, SandError *err)
{
	SandPackingDesc desc = {
	    .kind = (SandPackingKind)request->packing_kind,
	    .radius = request->radius,
	    .packing = request->packing,
	    .seed = request->seed,
	    .cancel = request->cancel,
	};
	body->radius = request->radius;
	SandStatus status = request->is_calibrated
	                        ? sand_solid_fill(body->surface, &desc, body->pool, &body->points, &body->radius, err)
	                        : sand_packing_fill(body->surface, &desc, body->pool, &body->points, err);
	fit_desc->is_filling = true;
	fit_desc->radius = body->radius;
	fit_desc->centres = body->points.xyz;
	fit_desc->sphere_count = body->points.count;
	return status;
}

static SandStatus fit_clump(const Request *request, Body *body, SandFitDesc *fit_desc, SandError *err)
{
	body->clump = sand_alloc(1, sizeof *body->clump);
	if (body->clump == NULL)
	{
		return sand_fail_memory(err, sizeof *body->clump, "the spheres of a clump");
	}
	SandClumpDesc desc = {request->sphere_count, request->seed, request->cancel};
	SandStatus status = sand_clump_fit(body->surface, &desc, body->pool, body->clump, err);
	fit_desc->is_filling = true;
	fit_desc->centres = body->clump->centres;
	fit_desc->radii = body->clump->radii;
	fit_desc->sphere_count = body->clump->sphere_count;
	return status;
}

/// Masses at density 1. An open mesh bounds no volume: its spheres share the volume of their union evenly.
static SandStatus weigh(Body *body, const SandFitDesc *fit_desc, SandError *err)
{
	size_t count = (size_t)fit_desc->sphere_count;
	body->masses = sand_alloc(count, sizeof *body->masses);
	if (body->masses == NULL)
	{
		return sand_fail_memory(err, count * sizeof *body->masses, "the masses of the spheres");
	}
	if (body->mesh->is_closed && body->mesh->volume > 0)
	{
		SandMass wanted = sand_mesh_mass(body->mesh);
		body->has_exact_masses = sand_fit_masses(&wanted, wanted.volume, fit_desc, body->masses);
		return SAND_OK;
	}
	for (size_t i = 0; i < count; ++i)
	{
		body->masses[i] = body->fit.sphere_volume / (double)count;
	}
	return SAND_OK;
}

/// All steps, from the mesh as it came to measured spheres. The caller frees the body, also on failure.
static SandStatus make_body(const Request *request, MakeSpheres *make, Body *body, SandError *err)
{
	double start = sand_ticks();
	SandFitDesc fit_desc = {.cancel = request->cancel};
	SandStatus status = sand_pool_create(request->thread_count, &body->pool, err);
	if (status == SAND_OK)
	{
		status = sand_mesh_repair(request->mesh, &body->mesh, &body->repair, err);
	}
	if (status == SAND_OK)
	{
		status = sand_surface_create(body->mesh, body->pool, &body->surface, err);
	}
	if (status == SAND_OK)
	{
		status = make(request, body, &fit_desc, err);
	}
	if (status == SAND_OK && body->clump != NULL)
	{
		body->fit = body->clump->fit;
	}
	else if (status == SAND_OK)
	{
		status = sand_fit_measure(body->surface, &fit_desc, body->pool, &body->fit, err);
	}
	if (status == SAND_OK)
	{
		status = weigh(body, &fit_desc, err);
	}
	body->seconds = sand_ticks() - start;
	return status;
}

// Dicts out

static PyObject *fit_dict(const Body *body)
{
	const SandFit *fit = &body->fit;
	return Py_BuildValue("{s:i,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d}", "sphere_count", fit->sphere_count,
	                     "spacing_min", fit->spacing_min, "spacing_mean", fit->spacing_mean, "spacing_max",
	                     fit->spacing_max, "evenness", fit->evenness, "uncovered_share", fit->uncovered_share,
	                     "hausdorff", fit->hausdorff, "mesh_volume", fit->mesh_volume, "sphere_volume",
	                     fit->sphere_volume, "volume_error", fit->volume_error, "inertia_error_raw",
	                     fit->inertia_error_raw, "inertia_error", fit->inertia_error, "seconds", body->seconds);
}

/// Adds the sentence to the list, unless it is empty. -1 with an exception.
static int add_warning(PyObject *list, const char *sentence)
{
	if (sentence[0] == '\0')
	{
		return 0;
	}
	// A sentence is cut at a byte, and names come from files: what is no UTF-8 becomes a question mark.
	PyObject *text = PyUnicode_DecodeUTF8(sentence, (Py_ssize_t)strlen(sentence), "replace");
	int result = text != NULL ? PyList_Append(list, text) : -1;
	Py_XDECREF(text);
	return result;
}

/// What was mended and what remains open; and, of a closed mesh, whether it overlaps itself. Of an open one the surface
/// would only say again that it is.
static PyObject *warning_list(const Body *body)
{
	PyObject *list = PyList_New(0);
	const char *overlap = body->mesh->is_closed ? sand_surface_warning(body->surface) : "";
	if (list != NULL && (add_warning(list, body->repair.sentence) != 0 || add_warning(list, overlap) != 0))
	{
		Py_CLEAR(list);
	}
	return list;
}

/// A copy as a new array. column_count 0: one-dimensional.
static PyObject *copy_array(const void *data, int type, size_t item_bytes, npy_intp row_count, npy_intp column_count)
{
	npy_intp shape[2] = {row_count, column_count};
	PyObject *array = PyArray_SimpleNew(column_count == 0 ? 1 : 2, shape, type);
	if (array != NULL)
	{
		size_t item_count = (size_t)row_count * (size_t)(column_count == 0 ? 1 : column_count);
		memcpy(PyArray_DATA((PyArrayObject *)array), data, item_count * item_bytes);
	}
	return array;
}

/// Volume, centre and inertia of the mended mesh, as a Scene takes them for the third of a shape; None when it is open.
static PyObject *body_numbers(const Body *body)
{
	if (!body->mesh->is_closed || !(body->mesh->volume > 0))
	{
		Py_RETURN_NONE;
	}
	SandMass mass = sand_mesh_mass(body->mesh);
	double numbers[SAND_BODY_NUMBERS] = {mass.volume};
	memcpy(numbers + 1, mass.centre, sizeof mass.centre);
	memcpy(numbers + 4, mass.inertia, sizeof mass.inertia);
	return copy_array(numbers, NPY_FLOAT64, sizeof(double), SAND_BODY_NUMBERS, 0);
}

/// centres, masses, has_exact_masses, body, fit and warnings. NULL with an exception.
static PyObject *body_dict(Body *body)
{
	npy_intp count = body->fit.sphere_count;
	PyObject *centres = body->clump != NULL ? copy_array(body->clump->centres, NPY_FLOAT32, sizeof(float), count, 3)
	                                        : sand_py_points(&body->points);
	PyObject *masses = sand_py_block(body->masses, NPY_FLOAT64, count, 0);
	body->masses = NULL; // taken, also on failure
	// A NULL among the objects makes it fail, with the exception that is set, and release the others.
	return Py_BuildValue("{s:N,s:N,s:O,s:N,s:N,s:N}", "centres", centres, "masses", masses, "has_exact_masses",
	                     body->has_exact_masses ? Py_True : Py_False, "body", body_numbers(body), "fit", fit_dict(body),
	                     "warnings", warning_list(body));
}

/// Takes the object. -1 with an exception, also when the object is NULL.
static int set_item(PyObject *dict, const char *key, PyObject *object)
{
	int result = object != NULL ? PyDict_SetItemString(dict, key, object) : -1;
	Py_XDECREF(object);
	return result;
}

static int set_number(PyObject *dict, const char *key, double number)
{
	return set_item(dict, key, PyFloat_FromDouble(number));
}

/// Runs make_body without the GIL; the dict of the body, into which add puts what only its caller has.
static PyObject *answer(const SandPyState *state, const Request *request, MakeSpheres *make,
                        int (*add)(PyObject *dict, const Request *request, const Body *body))
{
	Body body = {0};
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = make_body(request, make, &body, &err);
	PyEval_RestoreThread(thread);
	PyObject *dict = status == SAND_OK ? body_dict(&body) : sand_py_raise(state, &err);
	if (dict != NULL && add(dict, request, &body) != 0)
	{
		Py_CLEAR(dict);
	}
	free_body(&body);
	return dict;
}

// Arguments in

/// The arguments that all have. -1 with an exception.
static int read_common(const SandPyState *state, PyObject *mesh, PyObject *seed, PyObject *threads, PyObject *cancel,
                       Request *request)
{
	if (!PyObject_TypeCheck(mesh, (PyTypeObject *)state->mesh_type))
	{
		sand_py_raise_type(mesh, "mesh", "a barchan.Mesh");
		return -1;
	}
	if (cancel != NULL && cancel != Py_None && !PyObject_TypeCheck(cancel, (PyTypeObject *)state->cancel_type))
	{
		sand_py_raise_type(cancel, "cancel", "a barchan.Cancel or None");
		return -1;
	}
	request->mesh = sand_py_mesh(mesh);
	request->cancel = cancel != NULL && cancel != Py_None ? sand_py_cancel(cancel) : NULL;
	return sand_py_uint64(seed, "seed", &request->seed) != 0 ||
	               sand_py_int32(threads, "threads", &request->thread_count) != 0
	           ? -1
	           : 0;
}

/// -1 with ValueError when the number is not finite or below the least, or the least itself is forbidden.
static int check_number(const SandPyState *state, const char *what, float number, bool may_be_zero)
{
	if (isfinite(number) && (number > 0 || (may_be_zero && number == 0)))
	{
		return 0;
	}
	SandError err;
	sand_fail(&err, SAND_ERROR_ARGUMENT, "The %s is %g m, expected a finite number above 0%s", what, (double)number,
	          may_be_zero ? ", or 0 for the default" : "");
	sand_py_raise(state, &err);
	return -1;
}

static int add_sample(PyObject *dict, const Request *request, const Body *body)
{
	PyObject *engine = Py_BuildValue("{s:s,s:z,s:s}", "engine", body->gpu != NULL ? "gl" : "cpu", "device",
	                                 body->gpu != NULL ? body->device : NULL, "note", body->note);
	return set_number(dict, "radius", (double)request->radius) != 0 ||
	               set_number(dict, "spacing", (double)request->spacing) != 0 ||
	               set_number(dict, "offset", (double)request->offset) != 0 || set_item(dict, "engine", engine) != 0
	           ? -1
	           : 0;
}

static PyObject *sample(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"mesh", "radius", "spacing", "offset", "seed", "threads", "cancel", "engine", NULL};
	SandPyState *state = state_of(module);
	PyObject *mesh, *radius;
	PyObject *spacing = NULL, *offset = NULL, *seed = NULL, *threads = NULL, *cancel = NULL, *engine = NULL;
	Request request = {0};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$OOOOOO:sample", names, &mesh, &radius, &spacing, &offset, &seed,
	                                 &threads, &cancel, &engine) ||
	    sand_py_engine(engine, &request.engine) != 0 ||
	    read_common(state, mesh, seed, threads, cancel, &request) != 0 ||
	    sand_py_float(radius, "radius", &request.radius) != 0 ||
	    sand_py_float(spacing, "spacing", &request.spacing) != 0 ||
	    sand_py_float(offset, "offset", &request.offset) != 0 ||
	    check_number(state, "radius", request.radius, false) != 0 ||
	    check_number(state, "spacing", request.spacing, true) != 0)
	{
		return NULL;
	}
	if (request.spacing == 0)
	{
		request.spacing = SAND_SPACING_SHARE * request.radius;
	}
	return answer(state, &request, spread, add_sample);
}

static PyObject *spread_points(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"mesh", "spacing", "offset", "seed", "threads", "cancel", "engine", NULL};
	SandPyState *state = state_of(module);
	PyObject *mesh, *spacing, *offset = NULL, *seed = NULL, *threads = NULL, *cancel = NULL, *engine = NULL;
	Request request = {0};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$OOOOO:spread", names, &mesh, &spacing, &offset, &seed, &threads,
	                                 &cancel, &engine) ||
	    sand_py_engine(engine, &request.engine) != 0 ||
	    read_common(state, mesh, seed, threads, cancel, &request) != 0 ||
	    sand_py_float(spacing, "spacing", &request.spacing) != 0 ||
	    sand_py_float(offset, "offset", &request.offset) != 0)
	{
		return NULL;
	}
	Body body = {0};
	SandFitDesc unused = {0};
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = sand_pool_create(request.thread_count, &body.pool, &err);
	status = status == SAND_OK ? sand_surface_create(request.mesh, body.pool, &body.surface, &err) : status;
	status = status == SAND_OK ? spread(&request, &body, &unused, &err) : status;
	PyEval_RestoreThread(thread);
	PyObject *points = status == SAND_OK ? sand_py_points(&body.points) : sand_py_raise(state, &err);
	free_body(&body);
	return points;
}

static int add_pack(PyObject *dict, const Request *request, const Body *body)
{
	return set_number(dict, "radius", (double)body->radius) != 0 ||
	               set_number(dict, "packing_radius", (double)request->radius) != 0
	           ? -1
	           : 0;
}

static PyObject *pack(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"mesh", "radius", "kind", "packing", "calibrate", "seed", "threads", "cancel", NULL};
	static const char *const kinds[] = {
	    [SAND_PACKING_HEXAGONAL] = "hexagonal",
	    [SAND_PACKING_JITTERED] = "jittered",
	    [SAND_PACKING_RELAXED] = "relaxed",
	    [SAND_PACKING_COUNT] = NULL,
	};
	SandPyState *state = state_of(module);
	PyObject *mesh, *radius;
	PyObject *kind = NULL, *packing = NULL, *seed = NULL, *threads = NULL, *cancel = NULL;
	Request request = {0};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$OOpOOO:pack", names, &mesh, &radius, &kind, &packing,
	                                 &request.is_calibrated, &seed, &threads, &cancel) ||
	    read_common(state, mesh, seed, threads, cancel, &request) != 0 ||
	    sand_py_float(radius, "radius", &request.radius) != 0 ||
	    sand_py_choice(kind, "kind", kinds, &request.packing_kind) != 0 ||
	    sand_py_float(packing, "packing", &request.packing) != 0 ||
	    check_number(state, "radius", request.radius, false) != 0)
	{
		return NULL;
	}
	return answer(state, &request, fill_up, add_pack);
}

static int add_clump(PyObject *dict, const Request *request, const Body *body)
{
	(void)request;
	const SandClump *clump = body->clump;
	PyObject *radii = copy_array(clump->radii, NPY_FLOAT32, sizeof(float), clump->sphere_count, 0);
	return set_item(dict, "radii", radii) != 0 || set_number(dict, "overlap", clump->overlap) != 0 ? -1 : 0;
}

static PyObject *clump_of(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"mesh", "sphere_count", "seed", "threads", "cancel", NULL};
	SandPyState *state = state_of(module);
	PyObject *mesh;
	PyObject *sphere_count = NULL, *seed = NULL, *threads = NULL, *cancel = NULL;
	Request request = {0};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOO:clump", names, &mesh, &sphere_count, &seed, &threads,
	                                 &cancel) ||
	    read_common(state, mesh, seed, threads, cancel, &request) != 0 ||
	    sand_py_int32(sphere_count, "sphere_count", &request.sphere_count) != 0)
	{
		return NULL;
	}
	return answer(state, &request, fit_clump, add_clump);
}

typedef struct Distances
{
	const SandSurface *surface;
	const float *places;
	double *distances;
	int count, block_count;
} Distances;

static void distance_task(void *context, int block)
{
	const Distances *d = context;
	for (int i = sand_part_start(d->count, block, d->block_count),
	         end = sand_part_start(d->count, block + 1, d->block_count);
	     i < end; ++i)
	{
		const float *place = d->places + 3 * (size_t)i;
		d->distances[i] = sand_surface_distance(d->surface, (const double[3]){place[0], place[1], place[2]});
	}
}

static SandStatus find_distances(const Request *request, Body *body, Distances *d, SandError *err)
{
	SandStatus status = sand_pool_create(request->thread_count, &body->pool, err);
	status = status == SAND_OK ? sand_surface_create(request->mesh, body->pool, &body->surface, err) : status;
	status = status == SAND_OK ? open_device(request, body, err) : status;
	if (status == SAND_OK && body->gpu != NULL)
	{
		SandGlDistanceDesc desc = {.places = d->places, .place_count = d->count};
		status = sand_glsurface_distances(body->gpu, body->surface, &desc, body->pool, d->distances, err);
		if (!falls_back(request, body, status, err))
		{
			return status;
		}
		status = SAND_OK;
	}
	if (status == SAND_OK)
	{
		d->surface = body->surface;
		sand_pool_run(body->pool, distance_task, d, d->block_count);
	}
	return status;
}

static PyObject *distance(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"mesh", "points", "threads", "engine", NULL};
	SandPyState *state = state_of(module);
	PyObject *mesh, *points, *threads = NULL, *engine = NULL, *result = NULL;
	Request request = {0};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:distance", names, &mesh, &points, &threads, &engine) ||
	    sand_py_engine(engine, &request.engine) != 0 || read_common(state, mesh, NULL, threads, NULL, &request) != 0)
	{
		return NULL;
	}
	PyArrayObject *places = sand_py_floats(points, "points", -1, 3);
	npy_intp count = places != NULL ? PyArray_DIM(places, 0) : 0;
	if (places == NULL || count > INT32_MAX || !sand_is_finite(PyArray_DATA(places), 3 * (size_t)count))
	{
		if (places != NULL)
		{
			PyErr_SetString(PyExc_ValueError, "points holds a number that is not finite, or more than 2^31 points");
		}
		Py_XDECREF((PyObject *)places);
		return NULL;
	}
	result = PyArray_SimpleNew(1, &count, NPY_FLOAT64);
	if (result != NULL)
	{
		Body body = {0};
		SandError err = {0};
		Distances d = {.places = PyArray_DATA(places),
		               .distances = PyArray_DATA((PyArrayObject *)result),
		               .count = (int)count,
		               .block_count = sand_block_count((int)count, 64)};
		PyThreadState *thread = PyEval_SaveThread();
		SandStatus status = find_distances(&request, &body, &d, &err);
		PyEval_RestoreThread(thread);
		free_body(&body);
		if (status != SAND_OK)
		{
			Py_CLEAR(result);
			sand_py_raise(state, &err);
		}
	}
	Py_DECREF((PyObject *)places);
	return result;
}

static SandStatus make_field(const Request *request, Body *body, SandField **field_out, SandError *err)
{
	SandStatus status = sand_pool_create(request->thread_count, &body->pool, err);
	status = status == SAND_OK ? sand_surface_create(request->mesh, body->pool, &body->surface, err) : status;
	status = status == SAND_OK ? open_device(request, body, err) : status;
	SandFieldDesc desc = {
	    .voxel = request->spacing, .band = request->offset, .cancel = request->cancel, .gpu = body->gpu};
	status = status == SAND_OK ? sand_field_create(body->surface, &desc, body->pool, field_out, err) : status;
	if (falls_back(request, body, status, err))
	{
		desc.gpu = NULL;
		status = sand_field_create(body->surface, &desc, body->pool, field_out, err);
	}
	return status;
}

static PyObject *field_dict(const SandField *field, const Body *body)
{
	SandFieldInfo info = sand_field_info(field);
	npy_intp places_shape[2] = {(npy_intp)info.brick_count, 3}, values_shape[4] = {(npy_intp)info.brick_count, 8, 8, 8};
	PyObject *places = PyArray_SimpleNew(2, places_shape, NPY_INT32);
	PyObject *values = PyArray_SimpleNew(4, values_shape, NPY_FLOAT32);
	for (int64_t i = 0; places != NULL && values != NULL && i < info.brick_count; ++i)
	{
		int32_t *at = (int32_t *)PyArray_DATA((PyArrayObject *)places) + 3 * i;
		float *to = (float *)PyArray_DATA((PyArrayObject *)values) + 512 * i;
		memcpy(to, sand_field_brick(field, i, at), 512 * sizeof(float));
	}
	return Py_BuildValue("{s:N,s:d,s:d,s:N,s:N,s:s,s:s}", "origin",
	                     copy_array(info.origin, NPY_FLOAT64, sizeof(double), 3, 0), "voxel", (double)info.voxel,
	                     "band", (double)info.band, "bricks", places, "values", values, "engine",
	                     body->gpu != NULL ? "gl" : "cpu", "note", body->note);
}

static PyObject *field_of(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"mesh", "voxel", "band", "threads", "cancel", "engine", NULL};
	SandPyState *state = state_of(module);
	PyObject *mesh, *voxel, *band = NULL, *threads = NULL, *cancel = NULL, *engine = NULL;
	Request request = {0};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$OOOO:field", names, &mesh, &voxel, &band, &threads, &cancel,
	                                 &engine) ||
	    sand_py_engine(engine, &request.engine) != 0 ||
	    read_common(state, mesh, NULL, threads, cancel, &request) != 0 ||
	    sand_py_float(voxel, "voxel", &request.spacing) != 0 || sand_py_float(band, "band", &request.offset) != 0)
	{
		return NULL;
	}
	Body body = {0};
	SandError err = {0};
	SandField *field = NULL;
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = make_field(&request, &body, &field, &err);
	PyEval_RestoreThread(thread);
	PyObject *dict = status == SAND_OK ? field_dict(field, &body) : sand_py_raise(state, &err);
	sand_field_destroy(field);
	free_body(&body);
	return dict;
}

/// The masses of a mended, closed mesh.
static SandStatus measure_mass(const SandMesh *mesh, SandMass *mass_out, SandError *err)
{
	SandMesh *mended = NULL;
	SandRepair repair = {0};
	SandStatus status = sand_mesh_repair(mesh, &mended, &repair, err);
	if (status == SAND_OK)
	{
		status = sand_mesh_require_closed(mended, err);
	}
	if (status == SAND_OK)
	{
		*mass_out = sand_mesh_mass(mended);
	}
	sand_mesh_destroy(mended);
	return status;
}

static PyObject *mass_properties(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"mesh", NULL};
	SandPyState *state = state_of(module);
	PyObject *object;
	Request request = {0};
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:mass_properties", names, &object) ||
	    read_common(state, object, NULL, NULL, NULL, &request) != 0)
	{
		return NULL;
	}
	SandMass mass = {0};
	SandError err = {0};
	PyThreadState *thread = PyEval_SaveThread();
	SandStatus status = measure_mass(request.mesh, &mass, &err);
	PyEval_RestoreThread(thread);
	if (status != SAND_OK)
	{
		return sand_py_raise(state, &err);
	}
	const double *six = mass.inertia; // xx, yy, zz, xy, xz, yz
	const double inertia[9] = {six[0], six[3], six[4], six[3], six[1], six[5], six[4], six[5], six[2]};
	return Py_BuildValue("{s:d,s:N,s:N}", "volume", mass.volume, "centre",
	                     copy_array(mass.centre, NPY_FLOAT64, sizeof(double), 3, 0), "inertia",
	                     copy_array(inertia, NPY_FLOAT64, sizeof(double), 3, 3));
}

// The functions

static PyMethodDef methods[] = {
    {"sample", WITH_KEYWORDS(sample),
     "sample(mesh, radius, *, spacing=0, offset=0, seed=0, threads=0, cancel=None, engine='cpu')\n--\n\n"
     "Equal spheres spread evenly over the surface of a mesh, open or closed, after mending it; lengths in metres.\n"
     "spacing 0 = 1.2 radii; offset: signed distance of the centres from the surface, negative inside.\n"
     "A dict: centres (N, 3) float32, masses (N,) float64 at density 1 that weigh and turn like the mesh when\n"
     "has_exact_masses, body (10,) float64 of the mesh itself for the third of a Scene's shape (None when it is "
     "open),\n"
     "radius, spacing, offset, fit (a dict: how well the spheres stand for the mesh), warnings.\n"
     "engine 'gl' pushes the spheres apart on a GPU, or on a software device; 'auto' does on hardware, and is the\n"
     "processor where there is none or it fails. The dict's engine: engine, device, note."},
    {"spread", WITH_KEYWORDS(spread_points),
     "spread(mesh, spacing, *, offset=0, seed=0, threads=0, cancel=None, engine='cpu')\n--\n\n"
     "Only the centres of sample(), (N, 3) float32, of the mesh as it is: nothing mended, nothing measured."},
    {"pack", WITH_KEYWORDS(pack),
     "pack(mesh, radius, *, kind='hexagonal', packing=0, calibrate=False, seed=0, threads=0, cancel=None)\n--\n\n"
     "Equal spheres that fill the inside of a mesh without poking out; kind: 'hexagonal', 'jittered' or 'relaxed'.\n"
     "packing: share of the volume, 0 = the densest of hexagonal, else 0.55. calibrate: then the spheres grow where "
     "they\n"
     "are until their union is as large as the mesh, for a solid body. A dict as of sample(); radius is the one they\n"
     "have in the end, packing_radius the one they were packed with."},
    {"clump", WITH_KEYWORDS(clump_of),
     "clump(mesh, sphere_count=8, seed=0, threads=0, cancel=None)\n--\n\n"
     "A few spheres of different radii that are like the mesh together, as the shape of a grain.\n"
     "A dict as of sample(), with radii (N,) float32 and overlap: volume in both over volume in either, 0 to 1."},
    {"distance", WITH_KEYWORDS(distance),
     "distance(mesh, points, threads=0, engine='cpu')\n--\n\n"
     "Signed distance of each of the points (N, 3) from the mesh as it is, (N,) float64 in metres, negative inside."},
    {"field", WITH_KEYWORDS(field_of),
     "field(mesh, voxel, *, band=0, threads=0, cancel=None, engine='cpu')\n--\n\n"
     "Signed distances from the mesh as it is on the nodes of a grid, kept only near the surface: at least as far as\n"
     "band, 0 = three voxels. A dict: origin (3,) of node (0, 0, 0), voxel, band, in metres; bricks (B, 3) int32, of\n"
     "8 x 8 x 8 nodes each; values (B, 8, 8, 8) float32 by z, y, x, infinite out of the band; engine, note."},
    {"mass_properties", WITH_KEYWORDS(mass_properties),
     "mass_properties(mesh)\n--\n\n"
     "Of a closed mesh at density 1, after mending it: a dict of volume, centre (3,), inertia (3, 3) about it."},
    {NULL, NULL, 0, NULL},
};

int sand_py_add_sampler(PyObject *module)
{
	return PyModule_AddFunctions(module, methods);
}
