// repair: a mesh as artists leave it -> the mesh they meant.
// Comes in: SandMesh. Goes out: a mended SandMesh and what was found.
//
// Vertices at the same place become one, faces that occur twice are dropped, faces that look the other way than most of
// their connected neighbours are turned, and a mesh that is inside out as a whole is turned. Nothing is moved, and no
// hole is closed.
#ifndef SAND_REPAIR_H
#define SAND_REPAIR_H

#include "mesh.h"

typedef struct SandRepair
{
	int welded_count;     // vertices that lay at the place of another
	int duplicate_count;  // faces with the same three corners as another, in whatever order
	int degenerate_count; // faces with two corners at one place, dropped; slivers with three are kept
	int flipped_count;    // faces turned
	bool was_inside_out;
	char sentence[SAND_MESSAGE_BYTES]; // "" when nothing was found; else one sentence with the counts and the mesh's
	                                   // name, holes that remain included
} SandRepair;

/// A mended copy, also when nothing was found. Fails: SAND_ERROR_MEMORY, SAND_ERROR_MESH (nothing of it is left, or
/// what sand_mesh_create refuses). On failure *mesh_out is NULL.
SandStatus sand_mesh_repair(const SandMesh *mesh, SandMesh **mesh_out, SandRepair *found_out, SandError *err);

#endif
