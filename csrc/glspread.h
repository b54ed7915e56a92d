// glspread: the sweeps of the relaxation on a device; under spread, beside its own.
// Comes in: SandSurface, points on it. Goes out: the points pushed apart, their neighbours, places for more: the
// processor's, to the bit where the device computes floats and doubles as it does.
//
// Points, lists and cells live on the device for a whole round of sweeps: it decides by itself when lists are due and
// when nothing is left to do, and nothing is read back before the round ends. Who goes and who comes is the host's.
#ifndef SAND_GLSPREAD_H
#define SAND_GLSPREAD_H

#include "gpu.h"
#include "surface.h"

#define SAND_GLSPREAD_LIST 32      // neighbours that a point lists
#define SAND_GLSPREAD_DIRECTIONS 8 // places looked at around a point

typedef struct SandGlSpreadDesc
{
	SandGpu *gpu; // must outlive the work; its bindings are this work's alone until destroy
	const SandSurface *surface;
	double spacing, offset; // m
	double cells_per_metre;
	float list_reach;         // m
	float list_margin;        // m: what a point may move before lists are due
	float settled;            // share of the spacing that no pair lacks more of at the end
	int capacity;             // points
	int bucket_bits;          // of the cells' hash
	const SandCancel *cancel; // may be NULL; about 100 ms
} SandGlSpreadDesc;

/// The points, in the host's memory: places relative to the middle of the mesh; the fourth number is unused.
typedef struct SandGlPoints
{
	float (*places)[4], (*drifts)[4]; // m; drifts: way of the last sweep
	int32_t *triangles;               // that a point lies on
	int count;
	bool is_changed; // since the device last gave them: it takes them up and makes lists
} SandGlPoints;

typedef struct SandGlPlace
{
	float place[3];   // m, as above
	int32_t triangle; // -1 = nobody may go there
} SandGlPlace;

typedef struct SandGlSpreadWork SandGlSpreadWork;

/// Compiles the passes, uploads the mesh, makes room for capacity points. Fails as sand_glsurface_load does;
/// SAND_ERROR_GPU_MEMORY with the numbers when 128 bytes per point do not fit into one block. On failure *work_out is
/// NULL. Any thread.
SandStatus sand_glspread_create(const SandGlSpreadDesc *desc, SandPool *pool, SandGlSpreadWork **work_out,
                                SandError *err);
void sand_glspread_destroy(SandGlSpreadWork *work); // NULL is fine

/// Sweeps until no pair lacks more than the settled share, or sweep_limit of them are done; *lacking_out is the largest
/// share that a pair lacked before the last. The points come back in `points`.
SandStatus sand_glspread_settle(SandGlSpreadWork *work, SandGlPoints *points, int sweep_limit, float *lacking_out,
                                SandError *err);

/// The lists of the device as they are after a settle.
SandStatus sand_glspread_lists(SandGlSpreadWork *work, int count, int32_t (*lists_out)[SAND_GLSPREAD_LIST],
                               int32_t *counts_out, SandError *err);

/// Places beside every point with nobody nearer than sqrt(free_square), SAND_GLSPREAD_DIRECTIONS each.
SandStatus sand_glspread_rooms(SandGlSpreadWork *work, SandGlPoints *points, float free_square, SandGlPlace *rooms_out,
                               SandError *err);

#endif
