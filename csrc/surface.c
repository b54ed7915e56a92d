// surface: where a mesh is nearest, and whether a place is inside it.
// Comes in: SandMesh. Goes out: SandSurface.
//
// Triangles are split in halves along the longest side of their centres' box until four are left: a leaf. A node holds
// the boxes of four leaves or four nodes, all full but the last of a level, so the tree needs no pointers: child k of
// node i is 4 i + k of the level below. Boxes and triangles are floats relative to the middle of the mesh, in columns
// of four. A search first finds the least distance in floats, then looks again, in doubles, at all triangles that
// rounding may have kept from being it.
//
// For the winding number a node also knows, of each child, the sum of area times normal, its first moment about the
// child's middle, and how far the child reaches; a child farther away than FAR times that counts as one dipole and its
// correction (Barill 2018, second order), others are opened, and triangles near by are solid angles (van Oosterom and
// Strackee 1983).
#include "surface.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define WIDTH 4
#define LEVEL_LIMIT 16      // 4^16 triangles are more than there can be
#define STACK_LIMIT 64      // at most three siblings wait on each level
#define FAR 2.5f            // a child this many times its reach away is far
#define PROBE_COUNT 1024    // places that tell whether the mesh overlaps itself
#define PROBE_LIMIT 0.25    // winding number just outside a face of a clean mesh: 0, but for the error of the sum
#define FLOAT_LIMIT 1e18    // m: squares of coordinates below fit into floats
#define ROUNDING 4e-7       // of a coordinate: what rounding to float may add to a distance
#define BOUND_MARGIN 1e-6f  // of the mesh's size: what boxes are grown by, more than rounding takes
#define TASK_TRIANGLES 4096 // at least, per task

typedef float f4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline))

typedef struct Leaf
{
	float a[3][WIDTH];              // first corner
	float side[2][3][WIDTH];        // second minus first, third minus second
	float normal[3][WIDTH];         // cross product of the sides: twice the area long
	float inverse_square[3][WIDTH]; // 1 / |side|^2; 0 when it has no length
	float inverse_normal[WIDTH];    // 1 / |normal|^2; 0 when there is none
} Leaf;

// Boxes of a node's children; those of absent ones are far away.
typedef struct Node
{
	float low[3][WIDTH], high[3][WIDTH];
} Node;

// Of a node's children, what the winding number needs: apart, so that searches for the nearest do not drag it along.
typedef struct Dipoles
{
	float middle[3][WIDTH];    // of the area
	float reach_square[WIDTH]; // (FAR * farthest corner of the box from the middle)^2
	float area[WIDTH];
	float dipole[3][WIDTH]; // area times normal, summed
	float moment[6][WIDTH]; // xx, yy, zz, xy, xz, yz of area * normal * (centre - middle), made symmetric
} Dipoles;

typedef struct Level
{
	int first; // index of its first node
	int count;
} Level;

struct SandSurface
{
	const SandMesh *mesh;
	double middle[3];
	double extent;  // m, half of the largest side of the box
	double turn;    // -1 when the mesh is inside out, else 1
	int32_t *order; // triangle of each place in the leaves
	Leaf *leaves;
	int leaf_count;
	Node *nodes;
	Dipoles *dipoles;          // one per node
	Level levels[LEVEL_LIMIT]; // 0 = nodes over leaves
	int level_count;
	int32_t *first_of_vertex; // into triangles_of_vertex, vertex_count + 1
	int32_t *triangles_of_vertex;
	bool is_clean;
	char warning[SAND_MESSAGE_BYTES];
};

// ------------------------------------------------------------------------------------------------- small geometry

typedef struct Vec
{
	double x, y, z;
} Vec;

static Vec sub(Vec a, Vec b)
{
	return (Vec){a.x - b.x, a.y - b.y, a.z - b.z};
}

static Vec add_scaled(Vec a, Vec b, double factor)
{
	return (Vec){a.x + factor * b.x, a.y + factor * b.y, a.z + factor * b.z};
}

static double dot(Vec a, Vec b)
{
	return a.x * b.x + a.y * b.y + a.z * b.z;
}

static Vec cross(Vec a, Vec b)
{
	return (Vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static Vec unit(Vec v)
{
	double length = sqrt(dot(v, v));
	return length > 0 ? (Vec){v.x / length, v.y / length, v.z / length} : (Vec){0, 0, 0};
}

// Corner of a triangle, relative to the middle.
static Vec corner_of(const SandSurface *s, int triangle, int corner)
{
	const float *v = s->mesh->vertices + 3 * (size_t)s->mesh->triangles[3 * (size_t)triangle + (size_t)corner];
	return (Vec){(double)v[0] - s->middle[0], (double)v[1] - s->middle[1], (double)v[2] - s->middle[2]};
}

static Vec normal_of(const SandSurface *s, int triangle)
{
	Vec a = corner_of(s, triangle, 0);
	return cross(sub(corner_of(s, triangle, 1), a), sub(corner_of(s, triangle, 2), a));
}

INLINE f4 load(const float *from)
{
	f4 v;
	memcpy(&v, from, sizeof(v));
	return v;
}

INLINE f4 splat(float v)
{
	return (f4){v, v, v, v};
}

INLINE f4 choose(i4 mask, f4 yes, f4 no)
{
	return (f4)(((i4)yes & mask) | ((i4)no & ~mask));
}

INLINE f4 least(f4 a, f4 b)
{
#if defined(__SSE2__)
	return (f4)_mm_min_ps((__m128)a, (__m128)b);
#else
	return choose(a < b, a, b);
#endif
}

INLINE f4 most(f4 a, f4 b)
{
#if defined(__SSE2__)
	return (f4)_mm_max_ps((__m128)a, (__m128)b);
#else
	return choose(a > b, a, b);
#endif
}

INLINE f4 root(f4 v)
{
#if defined(__SSE2__)
	return (f4)_mm_sqrt_ps((__m128)v);
#else
	return (f4){sqrtf(v[0]), sqrtf(v[1]), sqrtf(v[2]), sqrtf(v[3])};
#endif
}

INLINE int bits_of(i4 mask)
{
#if defined(__SSE2__)
	return _mm_movemask_ps((__m128)mask);
#else
	return (mask[0] != 0) | (mask[1] != 0) << 1 | (mask[2] != 0) << 2 | (mask[3] != 0) << 3;
#endif
}

// ------------------------------------------------------------------------------------------------- building

typedef struct Build
{
	SandSurface *s;
	float *centres[3]; // of triangles
	int level;
	int task_count;
} Build;

static int triangles_of(const SandSurface *s)
{
	return s->mesh->triangle_count;
}

static void centre_task(void *context, int task)
{
	const Build *build = context;
	const SandSurface *s = build->s;
	int count = triangles_of(s), end = sand_part_start(count, task + 1, build->task_count);
	for (int i = sand_part_start(count, task, build->task_count); i < end; ++i)
	{
		Vec a = corner_of(s, i, 0), b = corner_of(s, i, 1), c = corner_of(s, i, 2);
		build->centres[0][i] = (float)((a.x + b.x + c.x) / 3);
		build->centres[1][i] = (float)((a.y + b.y + c.y) / 3);
		build->centres[2][i] = (float)((a.z + b.z + c.z) / 3);
		s->order[i] = i;
	}
}

// In order of key, then number: no two are equal.
INLINE bool comes_before(const float *key, int32_t a, int32_t b)
{
	return key[a] < key[b] || (a < b && key[a] == key[b]);
}

// Rearranges items[0 .. count) so that the first `part` are those that come first by key (Hoare 1961).
static void select_first(int32_t *items, int count, int part, const float *key)
{
	int low = 0, high = count - 1;
	while (low < high)
	{
		int32_t pivot = items[low + (high - low) / 2];
		int i = low, j = high;
		while (i <= j)
		{
			while (comes_before(key, items[i], pivot))
			{
				++i;
			}
			while (comes_before(key, pivot, items[j]))
			{
				--j;
			}
			if (i <= j)
			{
				int32_t kept = items[i];
				items[i++] = items[j];
				items[j--] = kept;
			}
		}
		if (part > j && part < i)
		{
			return;
		}
		high = part <= j ? j : high;
		low = part >= i ? i : low;
	}
}

// Brings `part` of the triangles of order[first, end) to the front, along the longest side of the box of their centres.
static void split(const Build *build, int64_t first, int64_t end, int64_t part)
{
	if (part >= end - first)
	{
		return;
	}
	int32_t *items = build->s->order + first;
	int count = (int)(end - first), longest = 0;
	float sides[3];
	for (int axis = 0; axis < 3; ++axis)
	{
		const float *key = build->centres[axis];
		float low = key[items[0]], high = low;
		for (int i = 1; i < count; ++i)
		{
			low = key[items[i]] < low ? key[items[i]] : low;
			high = key[items[i]] > high ? key[items[i]] : high;
		}
		sides[axis] = high - low;
		longest = sides[axis] > sides[longest] ? axis : longest;
	}
	select_first(items, count, (int)part, build->centres[longest]);
}

// Splits the triangles of every node of a level among its four children.
static void split_task(void *context, int task)
{
	const Build *build = context;
	const SandSurface *s = build->s;
	const Level *level = &s->levels[build->level];
	int64_t span = WIDTH, count = triangles_of(s); // span: triangles of a child
	for (int i = 0; i < build->level; ++i)
	{
		span *= WIDTH;
	}
	int last = sand_part_start(level->count, task + 1, build->task_count);
	for (int64_t i = sand_part_start(level->count, task, build->task_count); i < last; ++i)
	{
		int64_t first = i * WIDTH * span, end = first + WIDTH * span < count ? first + WIDTH * span : count;
		int64_t half = first + 2 * span < end ? first + 2 * span : end;
		split(build, first, end, 2 * span);
		split(build, first, half, span);
		split(build, half, end, span);
	}
}

static void leaf_task(void *context, int task)
{
	const Build *build = context;
	SandSurface *s = build->s;
	int count = triangles_of(s);
	for (int i = sand_part_start(s->leaf_count, task, build->task_count);
	     i < sand_part_start(s->leaf_count, task + 1, build->task_count); ++i)
	{
		Leaf *leaf = &s->leaves[i];
		for (int k = 0; k < WIDTH; ++k)
		{
			// The last leaf is filled up with its last triangle.
			int place = WIDTH * i + k < count ? WIDTH * i + k : count - 1, t = s->order[place];
			Vec a = corner_of(s, t, 0), b = corner_of(s, t, 1), c = corner_of(s, t, 2);
			float corners[3][3] = {{(float)a.x, (float)a.y, (float)a.z},
			                       {(float)b.x, (float)b.y, (float)b.z},
			                       {(float)c.x, (float)c.y, (float)c.z}};
			float side[3][3], normal[3];
			for (int axis = 0; axis < 3; ++axis)
			{
				leaf->a[axis][k] = corners[0][axis];
				for (int e = 0; e < 3; ++e)
				{
					side[e][axis] = corners[(e + 1) % 3][axis] - corners[e][axis];
				}
				leaf->side[0][axis][k] = side[0][axis];
				leaf->side[1][axis][k] = side[1][axis];
			}
			for (int axis = 0; axis < 3; ++axis)
			{
				int u = (axis + 1) % 3, v = (axis + 2) % 3;
				normal[axis] = side[0][u] * side[1][v] - side[0][v] * side[1][u];
				leaf->normal[axis][k] = normal[axis];
			}
			for (int e = 0; e < 3; ++e)
			{
				float square = side[e][0] * side[e][0] + side[e][1] * side[e][1] + side[e][2] * side[e][2];
				leaf->inverse_square[e][k] = square > FLT_MIN ? 1 / square : 0;
			}
			float square = normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2];
			leaf->inverse_normal[k] = square > FLT_MIN ? 1 / square : 0;
		}
	}
}

// Sums over one child of a node.
typedef struct Child
{
	double low[3], high[3];
	double area, middle[3];      // first area times middle
	double dipole[3], moment[6]; // as in Dipoles
} Child;

static Child empty_child(void)
{
	return (Child){.low = {DBL_MAX, DBL_MAX, DBL_MAX}, .high = {-DBL_MAX, -DBL_MAX, -DBL_MAX}};
}

static void add_box(Child *child, const double low[3], const double high[3])
{
	for (int axis = 0; axis < 3; ++axis)
	{
		child->low[axis] = fmin(child->low[axis], low[axis]);
		child->high[axis] = fmax(child->high[axis], high[axis]);
	}
}

static void find_middle(Child *child)
{
	for (int axis = 0; axis < 3; ++axis)
	{
		child->middle[axis] =
		    child->area > 0 ? child->middle[axis] / child->area : 0.5 * (child->low[axis] + child->high[axis]);
	}
}

// A dipole at `centre` and its own moment, seen from the child's middle.
static void add_dipole(Child *child, const double dipole[3], const double centre[3], const double moment[6])
{
	double d[3];
	for (int axis = 0; axis < 3; ++axis)
	{
		d[axis] = centre[axis] - child->middle[axis];
		child->dipole[axis] += dipole[axis];
		child->moment[axis] += moment[axis] + dipole[axis] * d[axis];
	}
	child->moment[3] += moment[3] + dipole[0] * d[1] + dipole[1] * d[0];
	child->moment[4] += moment[4] + dipole[0] * d[2] + dipole[2] * d[0];
	child->moment[5] += moment[5] + dipole[1] * d[2] + dipole[2] * d[1];
}

static void close_child(const SandSurface *s, Node *node, Dipoles *far, int k, const Child *child)
{
	float margin = BOUND_MARGIN * (float)s->extent;
	double reach = 0;
	for (int axis = 0; axis < 3; ++axis)
	{
		node->low[axis][k] = (float)child->low[axis] - margin;
		node->high[axis][k] = (float)child->high[axis] + margin;
		far->middle[axis][k] = (float)child->middle[axis];
		far->dipole[axis][k] = (float)child->dipole[axis];
		double side = fmax(child->high[axis] - child->middle[axis], child->middle[axis] - child->low[axis]);
		reach += side * side;
	}
	for (int j = 0; j < 6; ++j)
	{
		far->moment[j][k] = (float)child->moment[j];
	}
	far->area[k] = (float)child->area;
	far->reach_square[k] = (float)reach * FAR * FAR;
}

// So far away that no search opens it, and without winding.
static void close_empty(Node *node, Dipoles *far, int k)
{
	for (int axis = 0; axis < 3; ++axis)
	{
		node->low[axis][k] = node->high[axis][k] = far->middle[axis][k] = 1e30f;
	}
}

static Child child_of_triangles(const SandSurface *s, int first, int end)
{
	Child child = empty_child();
	double dipoles[WIDTH][3], centres[WIDTH][3];
	const double none[6] = {0};
	for (int i = first; i < end; ++i)
	{
		Vec a = corner_of(s, s->order[i], 0), b = corner_of(s, s->order[i], 1), c = corner_of(s, s->order[i], 2);
		Vec n = cross(sub(b, a), sub(c, a));
		double *dipole = dipoles[i - first], *centre = centres[i - first], area = 0.5 * sqrt(dot(n, n));
		double corners[3][3] = {{a.x, a.y, a.z}, {b.x, b.y, b.z}, {c.x, c.y, c.z}};
		dipole[0] = 0.5 * n.x;
		dipole[1] = 0.5 * n.y;
		dipole[2] = 0.5 * n.z;
		child.area += area;
		for (int k = 0; k < 3; ++k)
		{
			add_box(&child, corners[k], corners[k]);
			centre[k] = (corners[0][k] + corners[1][k] + corners[2][k]) / 3;
			child.middle[k] += area * centre[k];
		}
	}
	find_middle(&child);
	for (int i = 0; i < end - first; ++i)
	{
		add_dipole(&child, dipoles[i], centres[i], none);
	}
	return child;
}

static Child child_of_node(const Node *node, const Dipoles *far, int count)
{
	Child child = empty_child();
	double middles[WIDTH][3];
	for (int i = 0; i < count; ++i)
	{
		double low[3], high[3];
		for (int k = 0; k < 3; ++k)
		{
			low[k] = node->low[k][i];
			high[k] = node->high[k][i];
			middles[i][k] = far->middle[k][i];
			child.middle[k] += (double)far->area[i] * middles[i][k];
		}
		child.area += (double)far->area[i];
		add_box(&child, low, high);
	}
	find_middle(&child);
	for (int i = 0; i < count; ++i)
	{
		double dipole[3], moment[6];
		for (int k = 0; k < 6; ++k)
		{
			moment[k] = far->moment[k][i];
			dipole[k % 3] = far->dipole[k % 3][i];
		}
		add_dipole(&child, dipole, middles[i], moment);
	}
	return child;
}

// Level 0 from the triangles, the others from the level below.
static void node_task(void *context, int task)
{
	const Build *build = context;
	SandSurface *s = build->s;
	const Level *level = &s->levels[build->level], *below = level - 1;
	int child_count = build->level == 0 ? s->leaf_count : below->count;
	int grandchild_count = build->level == 0   ? triangles_of(s)
	                       : build->level == 1 ? s->leaf_count
	                                           : s->levels[build->level - 2].count;
	for (int i = sand_part_start(level->count, task, build->task_count);
	     i < sand_part_start(level->count, task + 1, build->task_count); ++i)
	{
		Node *node = &s->nodes[level->first + i];
		Dipoles *far = &s->dipoles[level->first + i];
		for (int k = 0; k < WIDTH; ++k)
		{
			int child = WIDTH * i + k;
			if (child >= child_count)
			{
				close_empty(node, far, k);
				continue;
			}
			int first = WIDTH * child, rest = grandchild_count - first, count = rest < WIDTH ? rest : WIDTH;
			Child sums = build->level == 0
			                 ? child_of_triangles(s, first, first + count)
			                 : child_of_node(&s->nodes[below->first + child], &s->dipoles[below->first + child], count);
			close_child(s, node, far, k, &sums);
		}
	}
}

// Which triangles a vertex has, for pseudo-normals.
static void link_vertices(SandSurface *s)
{
	const SandMesh *mesh = s->mesh;
	size_t corner_count = 3 * (size_t)mesh->triangle_count;
	for (size_t i = 0; i < corner_count; ++i)
	{
		++s->first_of_vertex[mesh->triangles[i] + 1];
	}
	for (int i = 0; i < mesh->vertex_count; ++i)
	{
		s->first_of_vertex[i + 1] += s->first_of_vertex[i];
	}
	for (size_t i = corner_count; i-- > 0;)
	{
		// Filled from behind, so that the starts move to the front and end up where they belong.
		int32_t vertex = mesh->triangles[i];
		s->triangles_of_vertex[--s->first_of_vertex[vertex + 1]] = (int32_t)(i / 3);
	}
	memmove(s->first_of_vertex, s->first_of_vertex + 1, (size_t)mesh->vertex_count * sizeof(int32_t));
	s->first_of_vertex[mesh->vertex_count] = (int32_t)corner_count;
}

static void place_mesh(SandSurface *s)
{
	for (int axis = 0; axis < 3; ++axis)
	{
		double low = s->mesh->bounds_min[axis], high = s->mesh->bounds_max[axis];
		s->middle[axis] = 0.5 * (low + high);
		s->extent = fmax(s->extent, 0.5 * (high - low));
	}
	double volume = 0;
	for (int i = 0; i < triangles_of(s); ++i)
	{
		volume += dot(corner_of(s, i, 0), cross(corner_of(s, i, 1), corner_of(s, i, 2)));
	}
	s->turn = volume < 0 ? -1 : 1;
}

static void plan_levels(SandSurface *s)
{
	int first = 0, count = s->leaf_count;
	do
	{
		count = (count + WIDTH - 1) / WIDTH;
		s->levels[s->level_count++] = (Level){first, count};
		first += count;
	} while (count > 1);
}

static SandStatus order_triangles(Build *build, SandPool *pool, SandError *err)
{
	SandSurface *s = build->s;
	size_t count = (size_t)triangles_of(s);
	float *centres = sand_alloc(3 * count, sizeof(float));
	if (centres == NULL)
	{
		return sand_fail_memory(err, 3 * count * sizeof(float), "the centres of triangles");
	}
	for (int axis = 0; axis < 3; ++axis)
	{
		build->centres[axis] = centres + (size_t)axis * count;
	}
	build->task_count = sand_block_count((int)count, TASK_TRIANGLES);
	sand_pool_run(pool, centre_task, build, build->task_count);
	for (build->level = s->level_count - 1; build->level >= 0; --build->level)
	{
		build->task_count = sand_block_count(s->levels[build->level].count, 1);
		sand_pool_run(pool, split_task, build, build->task_count);
	}
	sand_free(centres);
	return SAND_OK;
}

typedef struct Probe
{
	const SandSurface *s;
	const double *areas; // running sum by triangle
	_Atomic int bad_count;
	int task_count;
} Probe;

// Winding numbers a hair outside faces spread evenly over the area.
static void probe_task(void *context, int task)
{
	Probe *probe = context;
	const SandSurface *s = probe->s;
	int count = triangles_of(s), bad_count = 0;
	for (int i = sand_part_start(PROBE_COUNT, task, probe->task_count);
	     i < sand_part_start(PROBE_COUNT, task + 1, probe->task_count); ++i)
	{
		double at = probe->areas[count - 1] * (i + 0.5) / PROBE_COUNT;
		int low = 0, high = count - 1;
		while (low < high)
		{
			int half = low + (high - low) / 2;
			low = probe->areas[half] < at ? half + 1 : low;
			high = probe->areas[half] < at ? high : half;
		}
		Vec n = normal_of(s, low);
		double size = sqrt(dot(n, n));
		if (size > 0)
		{
			double height = s->turn * 1e-6 * sqrt(size) / size, p[3];
			double f = sand_random(0, 2 * (uint64_t)i), g = sand_random(0, 2 * (uint64_t)i + 1);
			bool is_beyond = f + g > 1;
			f = is_beyond ? 1 - f : f;
			g = is_beyond ? 1 - g : g;
			Vec a = corner_of(s, low, 0), place = add_scaled(a, sub(corner_of(s, low, 1), a), f);
			place = add_scaled(add_scaled(place, sub(corner_of(s, low, 2), a), g), n, height);
			p[0] = place.x + s->middle[0];
			p[1] = place.y + s->middle[1];
			p[2] = place.z + s->middle[2];
			bad_count += fabs(sand_surface_winding(s, p)) > PROBE_LIMIT;
		}
	}
	atomic_fetch_add(&probe->bad_count, bad_count);
}

static SandStatus judge(SandSurface *s, SandPool *pool, SandError *err)
{
	const SandMesh *mesh = s->mesh;
	const char *name = sand_mesh_name(mesh);
	if (!mesh->is_closed)
	{
		(void)snprintf(
		    s->warning, sizeof(s->warning),
		    "Mesh '%.100s' does not close: %d open edges, %d edges with faces that do not match; its inside is "
		    "judged by winding number, mend it (Edit Mode, Mesh > Clean Up) if the result looks wrong",
		    name, mesh->open_edge_count, mesh->bad_edge_count);
		return SAND_OK;
	}
	int count = triangles_of(s);
	double *areas = sand_alloc((size_t)count, sizeof(double));
	if (areas == NULL)
	{
		return sand_fail_memory(err, (size_t)count * sizeof(double), "the areas of a mesh");
	}
	for (int i = 0; i < count; ++i)
	{
		Vec n = normal_of(s, i);
		areas[i] = sqrt(dot(n, n)) + (i > 0 ? areas[i - 1] : 0);
	}
	Probe probe = {.s = s, .areas = areas, .task_count = 32};
	sand_pool_run(pool, probe_task, &probe, probe.task_count);
	sand_free(areas);
	int bad_count = atomic_load(&probe.bad_count);
	s->is_clean = bad_count == 0;
	if (!s->is_clean)
	{
		(void)snprintf(
		    s->warning, sizeof(s->warning),
		    "Mesh '%.100s' overlaps itself or holds shells inside each other: about %.1f %% of its surface lies "
		    "inside; its inside is judged by winding number, so what overlaps counts as one solid",
		    name, 100.0 * bad_count / PROBE_COUNT);
	}
	return SAND_OK;
}

static SandStatus build_surface(SandSurface *s, SandPool *pool, SandError *err)
{
	const SandMesh *mesh = s->mesh;
	size_t triangle_count = (size_t)mesh->triangle_count, vertex_count = (size_t)mesh->vertex_count;
	place_mesh(s);
	s->leaf_count = (mesh->triangle_count + WIDTH - 1) / WIDTH;
	plan_levels(s);
	const Level *top = &s->levels[s->level_count - 1];
	size_t node_count = (size_t)top->first + 1;
	s->order = sand_alloc(triangle_count, sizeof(int32_t));
	s->leaves = sand_alloc((size_t)s->leaf_count, sizeof(Leaf));
	s->nodes = sand_alloc(node_count, sizeof(Node));
	s->dipoles = sand_alloc(node_count, sizeof(Dipoles));
	s->first_of_vertex = sand_alloc(vertex_count + 1, sizeof(int32_t));
	s->triangles_of_vertex = sand_alloc(3 * triangle_count, sizeof(int32_t));
	if (s->order == NULL || s->leaves == NULL || s->nodes == NULL || s->dipoles == NULL || s->first_of_vertex == NULL ||
	    s->triangles_of_vertex == NULL)
	{
		return sand_fail_memory(err,
		                        triangle_count * 4 * sizeof(int32_t) + (size_t)s->leaf_count * sizeof(Leaf) +
		                            node_count * (sizeof(Node) + sizeof(Dipoles)),
		                        "the tree over a mesh");
	}
	Build build = {.s = s};
	SandStatus status = order_triangles(&build, pool, err);
	if (status != SAND_OK)
	{
		return status;
	}
	build.task_count = sand_block_count(s->leaf_count, TASK_TRIANGLES / WIDTH);
	sand_pool_run(pool, leaf_task, &build, build.task_count);
	for (build.level = 0; build.level < s->level_count; ++build.level)
	{
		build.task_count = sand_block_count(s->levels[build.level].count, 8);
		sand_pool_run(pool, node_task, &build, build.task_count);
	}
	link_vertices(s);
	return judge(s, pool, err);
}

SandStatus sand_surface_create(const SandMesh *mesh, SandPool *pool, SandSurface **surface_out, SandError *err)
{
	*surface_out = NULL;
	SandSurface *s = sand_alloc(1, sizeof(SandSurface));
	SandStatus status = s == NULL ? sand_fail_memory(err, sizeof(SandSurface), "a surface") : SAND_OK;
	if (status == SAND_OK)
	{
		s->mesh = mesh;
		status = build_surface(s, pool, err);
	}
	if (status != SAND_OK)
	{
		sand_surface_destroy(s);
		return status;
	}
	*surface_out = s;
	return SAND_OK;
}

void sand_surface_destroy(SandSurface *s)
{
	if (s != NULL)
	{
		sand_free(s->order);
		sand_free(s->leaves);
		sand_free(s->nodes);
		sand_free(s->dipoles);
		sand_free(s->first_of_vertex);
		sand_free(s->triangles_of_vertex);
		sand_free(s);
	}
}

const SandMesh *sand_surface_mesh(const SandSurface *s)
{
	return s->mesh;
}

bool sand_surface_is_clean(const SandSurface *s)
{
	return s->is_clean;
}

const char *sand_surface_warning(const SandSurface *s)
{
	return s->warning;
}

// ------------------------------------------------------------------------------------------------- nearest

// Squared distances from p to the boxes of a node's children.
INLINE f4 box_squares(const Node *node, const f4 p[3])
{
	f4 square = {0};
	for (int axis = 0; axis < 3; ++axis)
	{
		f4 d = most(most(load(node->low[axis]) - p[axis], p[axis] - load(node->high[axis])), splat(0));
		square += d * d;
	}
	return square;
}

INLINE f4 dot_columns(const f4 a[3], const f4 b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// (u x n) . w > 0 for all sides, w from the side's start to p: p is over the triangle. Then the distance is that to its
// plane, else the least of those to the sides.
INLINE f4 triangle_squares(const Leaf *leaf, const f4 p[3])
{
	f4 side[3][3], w[3][3], n[3];
	for (int axis = 0; axis < 3; ++axis)
	{
		side[0][axis] = load(leaf->side[0][axis]);
		side[1][axis] = load(leaf->side[1][axis]);
		side[2][axis] = -(side[0][axis] + side[1][axis]);
		n[axis] = load(leaf->normal[axis]);
		w[0][axis] = p[axis] - load(leaf->a[axis]);
		w[1][axis] = w[0][axis] - side[0][axis];
		w[2][axis] = w[1][axis] - side[1][axis];
	}
	f4 nearest = splat(FLT_MAX);
	i4 is_over = load(leaf->inverse_normal) > splat(0);
	for (int e = 0; e < 3; ++e)
	{
		f4 across[3] = {side[e][1] * n[2] - side[e][2] * n[1], side[e][2] * n[0] - side[e][0] * n[2],
		                side[e][0] * n[1] - side[e][1] * n[0]};
		is_over &= dot_columns(across, w[e]) <= splat(0);
		f4 t = least(most(dot_columns(side[e], w[e]) * load(leaf->inverse_square[e]), splat(0)), splat(1));
		f4 d[3] = {w[e][0] - t * side[e][0], w[e][1] - t * side[e][1], w[e][2] - t * side[e][2]};
		nearest = least(nearest, dot_columns(d, d));
	}
	f4 height = dot_columns(n, w[0]);
	return choose(is_over, height * height * load(leaf->inverse_normal), nearest);
}

typedef enum Feature
{
	FEATURE_FACE,
	FEATURE_EDGE_0, // from corner 0 to corner 1
	FEATURE_EDGE_1,
	FEATURE_EDGE_2,
	FEATURE_CORNER_0,
	FEATURE_CORNER_1,
	FEATURE_CORNER_2
} Feature;

// Nearest point of a triangle to p (Ericson 2005, section 5.1.5), and what it lies on.
static Feature nearest_of_triangle(const Vec corner[3], Vec p, Vec *nearest_out)
{
	Vec ab = sub(corner[1], corner[0]), ac = sub(corner[2], corner[0]), ap = sub(p, corner[0]);
	double d1 = dot(ab, ap), d2 = dot(ac, ap);
	if (d1 <= 0 && d2 <= 0)
	{
		*nearest_out = corner[0];
		return FEATURE_CORNER_0;
	}
	Vec bp = sub(p, corner[1]);
	double d3 = dot(ab, bp), d4 = dot(ac, bp);
	if (d3 >= 0 && d4 <= d3)
	{
		*nearest_out = corner[1];
		return FEATURE_CORNER_1;
	}
	double vc = d1 * d4 - d3 * d2;
	if (vc <= 0 && d1 >= 0 && d3 <= 0)
	{
		*nearest_out = add_scaled(corner[0], ab, d1 / (d1 - d3));
		return FEATURE_EDGE_0;
	}
	Vec cp = sub(p, corner[2]);
	double d5 = dot(ab, cp), d6 = dot(ac, cp);
	if (d6 >= 0 && d5 <= d6)
	{
		*nearest_out = corner[2];
		return FEATURE_CORNER_2;
	}
	double vb = d5 * d2 - d1 * d6;
	if (vb <= 0 && d2 >= 0 && d6 <= 0)
	{
		*nearest_out = add_scaled(corner[0], ac, d2 / (d2 - d6));
		return FEATURE_EDGE_2;
	}
	double va = d3 * d6 - d5 * d4;
	if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0)
	{
		double t = (d4 - d3) / ((d4 - d3) + (d5 - d6));
		*nearest_out = add_scaled(corner[1], sub(corner[2], corner[1]), t);
		return FEATURE_EDGE_1;
	}
	double sum = va + vb + vc;
	*nearest_out = add_scaled(add_scaled(corner[0], ab, vb / sum), ac, vc / sum);
	return FEATURE_FACE;
}

// Nodes and leaves still to look at. Level -1 = a leaf.
typedef struct Waiting
{
	float square;
	int32_t level, index;
} Waiting;

typedef struct Search
{
	Waiting stack[STACK_LIMIT];
	int count;
} Search;

// Children nearer than limit, the nearest on top.
INLINE void open_node(const SandSurface *s, Search *search, Waiting w, const f4 p[3], float limit)
{
	f4 squares = box_squares(&s->nodes[s->levels[w.level].first + w.index], p);
	int bits = bits_of(squares <= splat(limit)), first = search->count;
	for (; bits != 0; bits &= bits - 1)
	{
		int k = __builtin_ctz((unsigned)bits), at = search->count++;
		Waiting child = {squares[k], w.level - 1, WIDTH * w.index + k};
		assert(search->count <= STACK_LIMIT);
		for (; at > first && search->stack[at - 1].square < child.square; --at)
		{
			search->stack[at] = search->stack[at - 1];
		}
		search->stack[at] = child;
	}
}

INLINE void start_search(const SandSurface *s, Search *search)
{
	search->stack[0] = (Waiting){0, s->level_count - 1, 0};
	search->count = 1;
}

// Least squared distance to any triangle, by floats, and its place in the order; limit and -1 when none is nearer.
static float least_square(const SandSurface *s, const f4 p[3], float limit, int *at_out)
{
	*at_out = -1;
	Search search;
	start_search(s, &search);
	while (search.count > 0)
	{
		Waiting w = search.stack[--search.count];
		if (w.square > limit)
		{
			continue;
		}
		if (w.level >= 0)
		{
			open_node(s, &search, w, p, limit);
			continue;
		}
		f4 squares = triangle_squares(&s->leaves[w.index], p);
		int bits = bits_of(squares < splat(limit));
		for (; bits != 0; bits &= bits - 1)
		{
			int k = __builtin_ctz((unsigned)bits);
			if (squares[k] < limit)
			{
				limit = squares[k];
				*at_out = WIDTH * w.index + k;
			}
		}
	}
	return limit;
}

typedef struct Found
{
	double square;
	Vec point;
	int triangle;
	Feature feature;
} Found;

// Takes the triangle when it is nearer by doubles, or as near and of a lower number.
static void try_triangle(const SandSurface *s, int triangle, Vec place, Found *found)
{
	Vec corner[3] = {corner_of(s, triangle, 0), corner_of(s, triangle, 1), corner_of(s, triangle, 2)}, point;
	Feature feature = nearest_of_triangle(corner, place, &point);
	Vec d = sub(place, point);
	double square = dot(d, d);
	if (square < found->square || (square == found->square && triangle < found->triangle))
	{
		*found = (Found){square, point, triangle, feature};
	}
}

// The nearest triangle by doubles, among those that floats put below limit.
static Found nearest_below(const SandSurface *s, Vec place, const f4 p[3], float limit)
{
	Found found = {.square = DBL_MAX, .triangle = -1};
	Search search;
	start_search(s, &search);
	while (search.count > 0)
	{
		Waiting w = search.stack[--search.count];
		if (w.level >= 0)
		{
			open_node(s, &search, w, p, limit);
			continue;
		}
		int bits = bits_of(triangle_squares(&s->leaves[w.index], p) <= splat(limit));
		for (; bits != 0; bits &= bits - 1)
		{
			int at = WIDTH * w.index + __builtin_ctz((unsigned)bits);
			if (at < triangles_of(s))
			{
				try_triangle(s, s->order[at], place, &found);
			}
		}
	}
	return found;
}

// What rounding may hide, added to a distance found by floats.
static float widened(const SandSurface *s, Vec place, float square)
{
	double farthest = fmax(s->extent, fmax(fabs(place.x), fmax(fabs(place.y), fabs(place.z))));
	double distance = sqrt((double)square) * (1 + ROUNDING) + ROUNDING * farthest;
	return (float)(distance * distance) * (1 + FLT_EPSILON);
}

// Sum of the faces around the edge between two vertices, weighted by the angle they take of it: all the same.
static Vec edge_normal(const SandSurface *s, int32_t from, int32_t to)
{
	Vec sum = {0, 0, 0};
	for (int32_t i = s->first_of_vertex[from]; i < s->first_of_vertex[from + 1]; ++i)
	{
		int32_t t = s->triangles_of_vertex[i];
		const int32_t *corners = s->mesh->triangles + 3 * (size_t)t;
		if (corners[0] == to || corners[1] == to || corners[2] == to)
		{
			sum = add_scaled(sum, unit(normal_of(s, t)), 1);
		}
	}
	return sum;
}

static Vec vertex_normal(const SandSurface *s, int32_t vertex)
{
	Vec sum = {0, 0, 0};
	for (int32_t i = s->first_of_vertex[vertex]; i < s->first_of_vertex[vertex + 1]; ++i)
	{
		int32_t t = s->triangles_of_vertex[i];
		const int32_t *corners = s->mesh->triangles + 3 * (size_t)t;
		int k = corners[0] == vertex ? 0 : corners[1] == vertex ? 1 : 2;
		Vec at = corner_of(s, t, k), u = sub(corner_of(s, t, (k + 1) % 3), at),
		    v = sub(corner_of(s, t, (k + 2) % 3), at);
		Vec n = cross(u, v);
		double angle = atan2(sqrt(dot(n, n)), dot(u, v));
		sum = add_scaled(sum, unit(n), angle);
	}
	return sum;
}

static Vec feature_normal(const SandSurface *s, const Found *found)
{
	const int32_t *corners = s->mesh->triangles + 3 * (size_t)found->triangle;
	switch (found->feature)
	{
	case FEATURE_EDGE_0:
		return edge_normal(s, corners[0], corners[1]);
	case FEATURE_EDGE_1:
		return edge_normal(s, corners[1], corners[2]);
	case FEATURE_EDGE_2:
		return edge_normal(s, corners[2], corners[0]);
	case FEATURE_CORNER_0:
		return vertex_normal(s, corners[0]);
	case FEATURE_CORNER_1:
		return vertex_normal(s, corners[1]);
	case FEATURE_CORNER_2:
		return vertex_normal(s, corners[2]);
	case FEATURE_FACE:
		break;
	}
	return normal_of(s, found->triangle);
}

static Vec relative(const SandSurface *s, const double place[3])
{
	return (Vec){place[0] - s->middle[0], place[1] - s->middle[1], place[2] - s->middle[2]};
}

// Squares of floats neither overflow nor reach the absent children of nodes; never so for a place that is no number.
static bool fits_floats(const SandSurface *s, Vec place)
{
	return s->extent < FLOAT_LIMIT && fabs(place.x) < FLOAT_LIMIT && fabs(place.y) < FLOAT_LIMIT &&
	       fabs(place.z) < FLOAT_LIMIT;
}

// By doubles alone, where floats do not do.
static Found nearest_of_all(const SandSurface *s, Vec place)
{
	Found found = {.square = DBL_MAX, .triangle = -1};
	for (int i = 0; i < triangles_of(s); ++i)
	{
		try_triangle(s, i, place, &found);
	}
	return found;
}

// Of the square of a distance, for places within reach. Finite: nothing of the tree is farther than sqrt(12)
// FLOAT_LIMIT.
static float limit_of(const SandSurface *s, Vec place, double reach)
{
	return widened(s, place, (float)fmin(reach * reach, 16.0 * FLOAT_LIMIT * FLOAT_LIMIT));
}

// False when nothing is nearer than reach, and for a place that is not a number.
static bool find_nearest(const SandSurface *s, Vec place, double reach, Found *found_out)
{
	Found found;
	if (fits_floats(s, place))
	{
		const f4 p[3] = {splat((float)place.x), splat((float)place.y), splat((float)place.z)};
		int at;
		float square = least_square(s, p, limit_of(s, place, reach), &at);
		found = nearest_below(s, place, p, widened(s, place, square));
	}
	else
	{
		found = nearest_of_all(s, place);
	}
	if (found.triangle < 0 || !(sqrt(found.square) < reach || isinf(reach)))
	{
		return false;
	}
	*found_out = found;
	return true;
}

bool sand_surface_nearest(const SandSurface *s, const double place[3], double reach, SandNearest *nearest_out)
{
	Found found;
	if (!find_nearest(s, relative(s, place), reach, &found))
	{
		return false;
	}
	Vec normal = unit(feature_normal(s, &found));
	nearest_out->distance = sqrt(found.square);
	nearest_out->point[0] = found.point.x + s->middle[0];
	nearest_out->point[1] = found.point.y + s->middle[1];
	nearest_out->point[2] = found.point.z + s->middle[2];
	nearest_out->normal[0] = s->turn * normal.x;
	nearest_out->normal[1] = s->turn * normal.y;
	nearest_out->normal[2] = s->turn * normal.z;
	nearest_out->triangle = found.triangle;
	return true;
}

bool sand_surface_snap(const SandSurface *s, double place[3], double reach, int *triangle_out)
{
	Vec from = relative(s, place), to;
	const f4 p[3] = {splat((float)from.x), splat((float)from.y), splat((float)from.z)};
	int at = -1;
	if (fits_floats(s, from))
	{
		(void)least_square(s, p, limit_of(s, from, reach), &at);
	}
	if (at < 0)
	{
		return false;
	}
	int triangle = s->order[at < triangles_of(s) ? at : triangles_of(s) - 1];
	Vec corner[3] = {corner_of(s, triangle, 0), corner_of(s, triangle, 1), corner_of(s, triangle, 2)};
	(void)nearest_of_triangle(corner, from, &to);
	place[0] = to.x + s->middle[0];
	place[1] = to.y + s->middle[1];
	place[2] = to.z + s->middle[2];
	*triangle_out = triangle;
	return true;
}

const int32_t *sand_surface_order(const SandSurface *s)
{
	return s->order;
}

_Static_assert(sizeof(Node) == SAND_TREE_NODE_FLOATS * sizeof(float) &&
                   sizeof(Leaf) == SAND_TREE_LEAF_FLOATS * sizeof(float) &&
                   sizeof(Dipoles) == SAND_TREE_DIPOLE_FLOATS * sizeof(float),
               "as surface.h and shaders/tree.glsl have them");

SandSurfaceTree sand_surface_tree(const SandSurface *s)
{
	SandSurfaceTree tree = {.extent = s->extent,
	                        .turn = s->turn,
	                        .nodes = (const float *)s->nodes,
	                        .leaves = (const float *)s->leaves,
	                        .dipoles = (const float *)s->dipoles,
	                        .order = s->order,
	                        .first_of_vertex = s->first_of_vertex,
	                        .triangles_of_vertex = s->triangles_of_vertex,
	                        .node_count = s->levels[s->level_count - 1].first + 1,
	                        .leaf_count = s->leaf_count,
	                        .level_count = s->level_count};
	memcpy(tree.middle, s->middle, sizeof(tree.middle));
	for (int i = 0; i < s->level_count; ++i)
	{
		tree.level_first[i] = s->levels[i].first;
	}
	return tree;
}

void sand_surface_vertex_normal(const SandSurface *s, int vertex, double normal_out[3])
{
	Vec normal = vertex_normal(s, vertex);
	normal_out[0] = normal.x;
	normal_out[1] = normal.y;
	normal_out[2] = normal.z;
}

// ------------------------------------------------------------------------------------------------- winding

// Solid angle over 4 pi of a triangle seen from p.
static double triangle_winding(const SandSurface *s, int triangle, Vec p)
{
	Vec a = sub(corner_of(s, triangle, 0), p), b = sub(corner_of(s, triangle, 1), p),
	    c = sub(corner_of(s, triangle, 2), p);
	double la = sqrt(dot(a, a)), lb = sqrt(dot(b, b)), lc = sqrt(dot(c, c));
	double over = dot(a, cross(b, c)), under = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb;
	return atan2(over, under) / (2 * 3.14159265358979323846);
}

// Dipole and its correction of a node's children, where mask is set.
INLINE double far_winding(const Dipoles *far, const f4 r[3], f4 square, i4 mask)
{
	f4 inverse = 1.0f / choose(mask, square, splat(1));
	f4 cube = inverse * root(inverse);
	f4 sum = load(far->dipole[0]) * r[0] + load(far->dipole[1]) * r[1] + load(far->dipole[2]) * r[2];
	f4 xx = load(far->moment[0]), yy = load(far->moment[1]), zz = load(far->moment[2]);
	f4 along = xx * r[0] * r[0] + yy * r[1] * r[1] + zz * r[2] * r[2] + load(far->moment[3]) * r[0] * r[1] +
	           load(far->moment[4]) * r[0] * r[2] + load(far->moment[5]) * r[1] * r[2];
	sum += (xx + yy + zz) - 3.0f * along * inverse;
	f4 part = choose(mask, sum * cube, splat(0));
	double total = 0;
	for (int k = 0; k < WIDTH; ++k)
	{
		total += (double)part[k];
	}
	return total / (4 * 3.14159265358979323846);
}

double sand_surface_winding(const SandSurface *s, const double place[3])
{
	Vec at = relative(s, place);
	const f4 p[3] = {splat((float)at.x), splat((float)at.y), splat((float)at.z)};
	Search search;
	search.count = 0;
	double total = 0;
	if (fits_floats(s, at))
	{
		start_search(s, &search);
	}
	else
	{
		for (int i = 0; i < triangles_of(s); ++i)
		{
			total += triangle_winding(s, i, at);
		}
	}
	while (search.count > 0)
	{
		Waiting w = search.stack[--search.count];
		if (w.level < 0)
		{
			int end = WIDTH * w.index + WIDTH < triangles_of(s) ? WIDTH * w.index + WIDTH : triangles_of(s);
			for (int i = WIDTH * w.index; i < end; ++i)
			{
				total += triangle_winding(s, s->order[i], at);
			}
			continue;
		}
		const Dipoles *far = &s->dipoles[s->levels[w.level].first + w.index];
		f4 r[3], square = {0};
		for (int axis = 0; axis < 3; ++axis)
		{
			r[axis] = load(far->middle[axis]) - p[axis];
			square += r[axis] * r[axis];
		}
		i4 is_far = square > load(far->reach_square);
		total += far_winding(far, r, square, is_far);
		for (int bits = bits_of(~is_far); bits != 0; bits &= bits - 1)
		{
			assert(search.count < STACK_LIMIT);
			search.stack[search.count++] = (Waiting){0, w.level - 1, WIDTH * w.index + __builtin_ctz((unsigned)bits)};
		}
	}
	return s->turn * total;
}

// ------------------------------------------------------------------------------------------------- inside

static bool is_beyond_bounds(const SandSurface *s, const double place[3])
{
	bool is_within = true;
	for (int axis = 0; axis < 3; ++axis)
	{
		is_within = is_within && place[axis] >= (double)s->mesh->bounds_min[axis] &&
		            place[axis] <= (double)s->mesh->bounds_max[axis];
	}
	return !is_within;
}

// By the normal where it can tell; a place on the mesh is not inside, nor one beyond its bounds, however far.
static bool is_inside_at(const SandSurface *s, const double place[3], const Found *found)
{
	if (is_beyond_bounds(s, place))
	{
		return false;
	}
	if (s->is_clean)
	{
		double side = s->turn * dot(sub(relative(s, place), found->point), feature_normal(s, found));
		if (side != 0 || found->square == 0)
		{
			return side < 0;
		}
	}
	return sand_surface_winding(s, place) > 0.5;
}

bool sand_surface_is_inside(const SandSurface *s, const double place[3])
{
	Found found = {0};
	bool is_asked = s->is_clean && !is_beyond_bounds(s, place);
	return (!is_asked || find_nearest(s, relative(s, place), (double)INFINITY, &found)) &&
	       is_inside_at(s, place, &found);
}

double sand_surface_distance(const SandSurface *s, const double place[3])
{
	Found found;
	if (!find_nearest(s, relative(s, place), (double)INFINITY, &found))
	{
		return (double)NAN;
	}
	double distance = sqrt(found.square);
	return is_inside_at(s, place, &found) ? -distance : distance;
}
