// repair: a mesh as artists leave it -> the mesh they meant.
// Comes in: SandMesh. Goes out: a mended SandMesh and what was found.
//
// Vertices at the same place become one, faces that occur twice are dropped, faces that look the other way than most of
// their piece are turned, and a closed mesh that is inside out as a whole is turned. A piece is what hangs together
// over edges with two faces; a cavity, a shell turned inwards within another, is one and stays. Nothing is moved, and
// no hole is closed.
#ifndef SAND_REPAIR_H
#define SAND_REPAIR_H

#include "mesh.h"

typedef struct SandRepair
{
	int welded_count;                  // vertices that lay at the place of another
	int duplicate_count;               // faces with the same three corners as another, in whatever order
	int degenerate_count;              // faces with two corners at one place, dropped; slivers with three are kept
	int flipped_count;                 // faces that looked the other way than most of their piece, by area
	bool was_inside_out;               // after that the volume was still negative: all faces were turned
	char sentence[SAND_MESSAGE_BYTES]; // one sentence with the mesh's name, what was mended, and the open and bad edges
	                                   // that remain; "" when there is nothing to say
} SandRepair;

/// A mended copy, also when nothing was found: vertices and faces in the order they had. Fails: SAND_ERROR_MEMORY. On
/// failure *mesh_out is NULL and *found_out zeroed.
SandStatus sand_mesh_repair(const SandMesh *mesh, SandMesh **mesh_out, SandRepair *found_out, SandError *err);

#endif
