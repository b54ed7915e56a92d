// list: which spheres may touch in the next steps. Comes in: placed spheres in chunks. Goes out: pairs per chunk.
// A pair is listed when its gap is below the margins of both grains: the few fast grains of a scene carry a wide
// margin, the many slow ones a narrow one, so that lists stay short and last long. Linear in spheres and independent of
// empty space: spheres are put into hashed cells, one table per size class, so that large spheres among small ones do
// not make the small ones' cells large.
#ifndef SAND_LIST_H
#define SAND_LIST_H

#include "kernel.h"
#include "pool.h"
#include "sort.h"

typedef struct SandList SandList;

typedef struct SandListDesc
{
	int sphere_count; // of grains
	int wall_count;   // following them in the sphere array
	int grain_count;
	float radius_min, radius_max; // units
	float bridge;                 // units: reach of bridges beyond touching, half of it on either sphere
	float margin_slow;            // units, of slow grains
	float margin_fast_limit;      // units, largest margin of fast ones
	bool has_history;             // some pair has something to remember: a spring, or the side of a mesh
	int obstacle_count;
	const int32_t *collider_base; // number of the first triangle of each collider, counted over all; NULL without
	int collider_count;
} SandListDesc;

SandStatus sand_list_create(const SandListDesc *desc, SandList **list_out, SandError *err);
void sand_list_destroy(SandList *list); // NULL is fine

/// Saves the tangential springs of the chunks' pairs by the spheres' lasting ids. Call before grains are reordered.
/// sphere_base[id] = lasting id of the first sphere of grain id.
SandStatus sand_list_save_history(SandList *list, const SandWork *work, const SandChunk *chunks, int chunk_count,
                                  const int32_t *sphere_base, SandPool *pool, SandError *err);

/// Makes the chunks' pairs from the spheres' places; restores saved springs. The sorter has room for every sphere.
/// Fails with SAND_ERROR_MEMORY.
SandStatus sand_list_build(SandList *list, const SandKernel *kernel, const SandWork *work, SandChunk *chunks,
                           int chunk_count, const int32_t *sphere_base, SandSorter *sorter, SandPool *pool,
                           SandError *err);

/// Tangential springs as they were last saved, for checkpoints: in order of sphere.
typedef struct SandSpring
{
	int32_t low;      // lasting id of the sphere with the lower one
	int32_t other;    // lasting id of the other, or -1 - (SAND_SLOT_COUNT * obstacle + slot), or, for a triangle of a
	                  // collider, -1 - (SAND_SLOT_COUNT * obstacle_count + its number over all colliders)
	float stretch[3]; // m, of low against other
	float side;       // of the triangle that the sphere is on; 0 for all else
} SandSpring;
int64_t sand_list_spring_count(const SandList *list);
void sand_list_read_springs(const SandList *list, SandSpring *springs_out);
/// Replaces the saved springs; the next build restores them into its pairs. springs are in ascending order of low.
SandStatus sand_list_write_springs(SandList *list, const SandSpring *springs, int64_t count, SandError *err);

/// Classes of spheres, slow ones first, then as many fast ones: for an engine that makes its lists elsewhere. Returns
/// how many there are.
typedef struct SandListClass
{
	float radius_max; // units
	uint32_t mask;    // buckets - 1
	uint32_t stride_y, stride_z;
} SandListClass;
#define SAND_CLASS_LIMIT 32
int sand_list_classes(const SandList *list, SandListClass classes_out[SAND_CLASS_LIMIT]);

/// Frees what a chunk holds.
void sand_list_chunk_free(SandChunk *chunk);

#endif
