// solid: a mesh -> spheres that fill it out, for a solid body.
// Comes in: SandSurface. Goes out: SandPoints and the radius of all.
//
// Grains are packed, then their spheres grow where they are until their union is as large as the mesh. Where the
// surface is still farther than half a radius from every sphere, as in a corner that no grain went into, one more is
// put just beneath it. Spheres overlap and stand out of the mesh by a part of their radius, as a body's may.
#ifndef SAND_SOLID_H
#define SAND_SOLID_H

#include "fit.h"
#include "packing.h"

/// desc->radius is that of packing; radius_out the larger one that the spheres have in the end. Fails as
/// sand_packing_fill, and with SAND_ERROR_MESH for a mesh that does not close: it has no volume to match. On failure
/// *points_out is empty.
SandStatus sand_solid_fill(const SandSurface *surface, const SandPackingDesc *desc, SandPool *pool,
                           SandPoints *points_out, float *radius_out, SandError *err);

#endif
