// rows: how far the nodes of a brick are from a triangle, a row of eight at a time.
// Comes in: a triangle beside a brick. Goes out: the least squared distance so far of each node, and its side.
// Lengths are in voxels, the distance of neighbouring nodes, and places relative to the middle of the brick.
#ifndef SAND_ROWS_H
#define SAND_ROWS_H

#include "base.h"

#define SAND_ROW_NODES 8
#define SAND_BRICK_NODES 512 // SAND_ROW_NODES cubed

/// Nodes in rows along x, rows along y, layers along z.
typedef struct SandRowsBrick
{
	_Alignas(64) float square[SAND_BRICK_NODES]; // voxels^2, least of the triangles so far; voxels when finished
	_Alignas(64) float height[SAND_BRICK_NODES]; // voxels over the nearest face, negative behind it; 0 when an edge or
	                                             // a vertex is nearest
} SandRowsBrick;

/// Takes a triangle, degenerate ones included. Nodes farther than band from it may be passed over. corners: xyz each.
typedef void SandRowsTake(SandRowsBrick *brick, const double corners[3][3], float band);

/// Squares become distances, voxels, none larger than band.
typedef void SandRowsFinish(SandRowsBrick *brick, float band);

typedef struct SandRows
{
	const char *name;
	SandRowsTake *take;
	SandRowsFinish *finish;
} SandRows;

/// The build for an instruction set, "avx2" or "baseline", all with the same results; NULL = the best that runs here.
/// NULL when there is none of that name.
const SandRows *sand_rows_find(const char *name_wanted);

#endif
