// collider: a triangle mesh that grains bounce off: standing, moving or changing shape.
// Comes in: a mesh with a track, or its vertices over time. Goes out: where a sphere touches it, and how it moves
// there.
//
// Search: triangles in the order of a Morton curve, four to a node, nodes four to a node (an implicit tree). A rigid
// mesh is searched in its own axes and its tree never changes; one that changes shape keeps the tree and fits its
// boxes.
//
// Touch: the nearest point of each triangle (Ericson 2005, section 5.1.5) lies on its face, an edge or a corner. On a
// face it is a local minimum of the distance over the mesh; on an edge or corner it is one when no triangle around that
// edge or corner leads nearer, which a dot product tells. Local minima on triangles that meet, with normals nearly the
// same, are one contact on a part that is flat or gently bent: counting two would double its stiffness.
//
// shaders/collider.glsl is the twin of search and touch, same bits.
#include "collider.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "sort.h"

// A triangle whose sides at its first corner span an angle with a squared sine below this has no area but rounding.
#define THIN 1e-18
// Slope to a neighbour below which it leads no nearer but by rounding.
#define LEVEL 1e-13
// Nearer than this share of the reach a point lies on an edge or corner, and the way from there to it is rounding.
#define TOUCHING 1e-9
// Cosine of the angle between two normals, 8 degrees: a crease flatter than that counts as none. Seen from inside it
// has two minima whose distances differ by half the square of the angle, 1 % of a radius: less than usual overlaps.
#define FLAT_COSINE 0.99
// Slope of an edge or corner against the plane of a contact that it lies in.
#define FLAT_SLOPE 1e-3
// A centre is through an edge or corner when it is this far behind one of the triangles there and behind all others:
// rolling round the rim of an open mesh begins with 0, being pressed through with 1.
#define BEHIND 0.5
// A centre nearer than this share of the reach may be through with the next step, and for the triangles beside, but for
// rounding, it may be already: what is known then stays.
#define HOLD 0.1
// Two contacts on gently bent triangles that meet are no farther apart than this share of the reach: twice the angle.
#define FLAT_APART 0.3
// Rounding of a place carried into the mesh's axes, as a share of the reach or the size.
#define CARRYING 1e-9

enum
{
	WIDTH = 4,
	LEVEL_LIMIT = SAND_NODE_LEVELS, // 4^16 triangles
	STACK_LIMIT = (WIDTH - 1) * LEVEL_LIMIT + 1,
	CANDIDATE_LIMIT = 64,
	SHORT_SORT = 24,
	FACE = 7, // a feature is a bit for each corner of the triangle that it runs between
	NO_VERTEX = -1
};

// Boxes of the four children; an absent one is inside out.
typedef struct Node
{
	float low[3][WIDTH], high[3][WIDTH];
} Node;
_Static_assert(sizeof(Node) == SAND_NODE_NUMBERS * sizeof(float), "nodes are read as rows of numbers");

struct SandCollider
{
	char *name;
	int32_t material;
	int triangle_count, vertex_count;
	int32_t *triangles; // 3 each, as given, of vertices at one place the lowest
	float *vertices;    // m, one frame after the other
	int32_t frame_count;
	double frame_begin, frame_interval;
	double *speeds; // m/s, per interval of frames the fastest vertex
	bool has_track;
	SandTrack track; // samples owned
	double *samples;
	double radius;    // m, farthest vertex from the origin of its own axes
	double top_speed; // m/s, ever
	double low[3], high[3];
	uint64_t hash;
	int32_t *around_first, *around; // triangles with an area around each vertex

	int32_t *order; // of the triangles in the tree
	int level_count, node_count;
	int level_first[LEVEL_LIMIT], level_size[LEVEL_LIMIT];
	Node *nodes; // NULL when it changes shape: the state's
};

struct SandColliderState
{
	SandPose pose;
	SandMoment moment; // of the frames
	const float *here, *next;
	Node *nodes; // NULL when rigid
	bool is_fit;
};

// ---- vectors --------------------------------------------------------------------------------------------------------

static inline double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline void cross(const double a[3], const double b[3], double out[3])
{
	out[0] = a[1] * b[2] - a[2] * b[1];
	out[1] = a[2] * b[0] - a[0] * b[2];
	out[2] = a[0] * b[1] - a[1] * b[0];
}

static inline void subtract(const double a[3], const double b[3], double out[3])
{
	for (int k = 0; k < 3; ++k)
	{
		out[k] = a[k] - b[k];
	}
}

// ---- vertices -------------------------------------------------------------------------------------------------------

static bool changes_shape(const SandCollider *c)
{
	return c->frame_count > 1;
}

// In the axes that the mesh is searched in: its own, or the world's when it changes shape.
static inline void vertex_at(const SandColliderState *state, int32_t vertex, double out[3])
{
	const float *here = state->here + 3 * (size_t)vertex;
	for (int k = 0; k < 3; ++k)
	{
		out[k] = (double)here[k];
	}
	if (state->moment.share > 0)
	{
		const float *next = state->next + 3 * (size_t)vertex;
		for (int k = 0; k < 3; ++k)
		{
			out[k] += state->moment.share * ((double)next[k] - out[k]);
		}
	}
}

static inline void corners_at(const SandCollider *c, const SandColliderState *state, int32_t triangle, double out[3][3])
{
	const int32_t *corners = c->triangles + 3 * (size_t)triangle;
	for (int k = 0; k < 3; ++k)
	{
		vertex_at(state, corners[k], out[k]);
	}
}

// A place of the world in the axes that the mesh is searched in.
static void carry(const SandCollider *c, const SandColliderState *state, const double p[3], double out[3])
{
	if (!c->has_track)
	{
		memcpy(out, p, 3 * sizeof(double));
		return;
	}
	double from[3];
	subtract(p, state->pose.position, from);
	sand_turn_back(state->pose.orientation, from, out);
}

// ---- one triangle ---------------------------------------------------------------------------------------------------

typedef enum Where
{
	NO_AREA,
	FAR_OFF, // its plane is not nearer than the reach
	NEAR_BY
} Where;

typedef struct Foot
{
	double normal[3]; // not unit
	double area2;     // square of its length
	double lift;      // of p along it: height times length
	// Only when near by:
	double d[3];   // m, from the nearest point to p
	double square; // m^2
	double weights[3];
	unsigned feature;
} Foot;

// On the way from corner i to corner j.
static void foot_on_edge(Foot *foot, const double from[3], const double along[3], double share, int i, int j)
{
	for (int k = 0; k < 3; ++k)
	{
		foot->d[k] = from[k] - share * along[k];
	}
	foot->weights[i] = 1 - share;
	foot->weights[j] = share;
	foot->feature = 1u << i | 1u << j;
}

static void foot_on_corner(Foot *foot, const double from[3], int i)
{
	memcpy(foot->d, from, sizeof(foot->d));
	foot->weights[i] = 1;
	foot->feature = 1u << i;
}

// The areas' signs come from the normal instead of from products of dot products: slivers keep their digits.
static void find_nearest(Foot *foot, const double ab[3], const double ac[3], const double ap[3])
{
	double bp[3], cp[3], bc[3], turned[3];
	double d1 = dot(ab, ap), d2 = dot(ac, ap);
	if (d1 <= 0 && d2 <= 0)
	{
		foot_on_corner(foot, ap, 0);
		return;
	}
	subtract(ap, ab, bp);
	double d3 = dot(ab, bp), d4 = dot(ac, bp);
	if (d3 >= 0 && d4 <= d3)
	{
		foot_on_corner(foot, bp, 1);
		return;
	}
	cross(ab, ap, turned);
	double area_c = dot(foot->normal, turned);
	if (area_c <= 0 && d1 >= 0 && d3 <= 0)
	{
		foot_on_edge(foot, ap, ab, d1 / (d1 - d3), 0, 1);
		return;
	}
	subtract(ap, ac, cp);
	double d5 = dot(ab, cp), d6 = dot(ac, cp);
	if (d6 >= 0 && d5 <= d6)
	{
		foot_on_corner(foot, cp, 2);
		return;
	}
	cross(ap, ac, turned);
	double area_b = dot(foot->normal, turned);
	if (area_b <= 0 && d2 >= 0 && d6 <= 0)
	{
		foot_on_edge(foot, ap, ac, d2 / (d2 - d6), 0, 2);
		return;
	}
	subtract(ac, ab, bc);
	cross(bc, bp, turned);
	double area_a = dot(foot->normal, turned);
	if (area_a <= 0 && d4 >= d3 && d5 >= d6)
	{
		foot_on_edge(foot, bp, bc, (d4 - d3) / ((d4 - d3) + (d5 - d6)), 1, 2);
		return;
	}
	double sum = area_a + area_b + area_c;
	foot->weights[0] = area_a / sum;
	foot->weights[1] = area_b / sum;
	foot->weights[2] = area_c / sum;
	foot->feature = FACE;
	for (int k = 0; k < 3; ++k)
	{
		foot->d[k] = foot->normal[k] * (foot->lift / foot->area2);
	}
}

static inline Where find_plane(double corners[3][3], const double p[3], double ab[3], double ac[3], double ap[3],
                               Foot *foot)
{
	subtract(corners[1], corners[0], ab);
	subtract(corners[2], corners[0], ac);
	subtract(p, corners[0], ap);
	cross(ab, ac, foot->normal);
	foot->area2 = dot(foot->normal, foot->normal);
	foot->lift = dot(ap, foot->normal);
	return foot->area2 > THIN * dot(ab, ab) * dot(ac, ac) ? NEAR_BY : NO_AREA;
}

static inline Where find_foot(double corners[3][3], const double p[3], double reach, Foot *foot)
{
	double ab[3], ac[3], ap[3];
	if (find_plane(corners, p, ab, ac, ap, foot) == NO_AREA)
	{
		return NO_AREA;
	}
	if (foot->lift * foot->lift >= reach * reach * foot->area2)
	{
		return FAR_OFF;
	}
	memset(foot->weights, 0, sizeof(foot->weights));
	find_nearest(foot, ab, ac, ap);
	foot->square = dot(foot->d, foot->d);
	return NEAR_BY;
}

// ---- creation -------------------------------------------------------------------------------------------------------

static SandStatus check_frames(const SandColliderDesc *desc, int index, SandError *err)
{
	SandMeshLabel label = sand_mesh_label(desc->mesh);
	if (desc->frame_count < 1)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Collider %d: %s has %d frames of its vertices, expected at least 1",
		                 index, label.text, (int)desc->frame_count);
	}
	if (!isfinite(desc->frame_begin) ||
	    (desc->frame_count > 1 &&
	     !(desc->frame_interval > 0 && isfinite(desc->frame_begin + desc->frame_count * desc->frame_interval))))
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Collider %d: the frames of %s begin at %g s with an interval of %g s, expected finite times "
		                 "and an interval above 0",
		                 index, label.text, desc->frame_begin, desc->frame_interval);
	}
	size_t vertex_count = (size_t)desc->mesh->vertex_count;
	for (size_t frame = 0; frame < (size_t)desc->frame_count; ++frame)
	{
		const float *vertices = desc->frames + 3 * vertex_count * frame;
		if (sand_is_finite(vertices, 3 * vertex_count))
		{
			continue;
		}
		size_t vertex = 0;
		while (sand_is_finite(vertices + 3 * vertex, 3))
		{
			++vertex;
		}
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Collider %d: vertex %zu of %s is at (%g, %g, %g) in frame %zu, which is no place in space; "
		                 "mend the modifier or driver that moves it",
		                 index, vertex, label.text, (double)vertices[3 * vertex], (double)vertices[3 * vertex + 1],
		                 (double)vertices[3 * vertex + 2], frame);
	}
	return SAND_OK;
}

static SandStatus check_desc(const SandColliderDesc *desc, int index, SandError *err)
{
	if (desc->mesh == NULL || desc->mesh->triangle_count < 1)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Collider %d: %s has no triangles; choose an object with faces",
		                 index, desc->mesh == NULL ? "no mesh is given, it" : sand_mesh_label(desc->mesh).text);
	}
	if (desc->track != NULL && desc->frames != NULL)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Collider %d: %s has a track and frames at once, expected one of them; frames hold the motion "
		                 "already",
		                 index, sand_mesh_label(desc->mesh).text);
	}
	if (desc->frames == NULL && desc->frame_count != 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Collider %d: %s announces %d frames and gives none, expected 0",
		                 index, sand_mesh_label(desc->mesh).text, (int)desc->frame_count);
	}
	if (desc->frames != NULL)
	{
		return check_frames(desc, index, err);
	}
	return desc->track != NULL ? sand_track_check(desc->track, "Collider", index, err) : SAND_OK;
}

static uint64_t hash_desc(const SandColliderDesc *desc, const float *vertices, int32_t frame_count)
{
	const SandMesh *mesh = desc->mesh;
	const int32_t counts[] = {mesh->vertex_count, mesh->triangle_count, frame_count > 1, desc->material,
	                          desc->track != NULL};
	uint64_t hash = sand_hash64(counts, sizeof(counts), 1);
	hash = sand_hash64(mesh->triangles, 3 * (size_t)mesh->triangle_count * sizeof(int32_t), hash);
	hash = sand_hash64(vertices, 3 * (size_t)mesh->vertex_count * sizeof(float), hash); // of the first frame
	if (frame_count > 1)
	{
		const double times[2] = {desc->frame_begin, desc->frame_interval};
		hash = sand_hash64(times, sizeof(times), hash);
	}
	return hash;
}

static bool is_one_place(const SandCollider *c, int32_t a, int32_t b)
{
	for (int32_t frame = 0; frame < c->frame_count; ++frame)
	{
		const float *vertices = c->vertices + 3 * (size_t)c->vertex_count * (size_t)frame;
		for (size_t k = 0; k < 3; ++k)
		{
			if (vertices[3 * (size_t)a + k] != vertices[3 * (size_t)b + k])
			{
				return false;
			}
		}
	}
	return true;
}

static uint64_t hash_of_vertex(const SandCollider *c, int32_t vertex)
{
	uint64_t hash = 0;
	for (int32_t frame = 0; frame < c->frame_count; ++frame)
	{
		const float *x = c->vertices + 3 * ((size_t)c->vertex_count * (size_t)frame + (size_t)vertex);
		const float place[3] = {x[0] + 0.0F, x[1] + 0.0F, x[2] + 0.0F}; // makes -0 the 0 that it equals
		hash = sand_hash64(place, sizeof(place), hash);
	}
	return hash;
}

// Triangles that meet at equal places, in all frames, meet at one vertex: the lowest number among them.
static bool weld(SandCollider *c)
{
	size_t slot_count = 2;
	while (slot_count < 2 * (size_t)c->vertex_count)
	{
		slot_count *= 2;
	}
	int32_t *slots = sand_alloc(slot_count, sizeof(int32_t)); // number + 1, 0 = free
	int32_t *lowest = sand_alloc((size_t)c->vertex_count, sizeof(int32_t));
	bool is_done = slots != NULL && lowest != NULL;
	for (int32_t vertex = 0; is_done && vertex < c->vertex_count; ++vertex)
	{
		size_t slot = (size_t)hash_of_vertex(c, vertex) & (slot_count - 1);
		while (slots[slot] != 0 && !is_one_place(c, slots[slot] - 1, vertex))
		{
			slot = (slot + 1) & (slot_count - 1);
		}
		if (slots[slot] == 0)
		{
			slots[slot] = vertex + 1;
		}
		lowest[vertex] = slots[slot] - 1;
	}
	for (size_t i = 0; is_done && i < 3 * (size_t)c->triangle_count; ++i)
	{
		c->triangles[i] = lowest[c->triangles[i]];
	}
	sand_free(slots);
	sand_free(lowest);
	return is_done;
}

// A state for the work before there is one: at a frame.
static SandColliderState state_at_frame(const SandCollider *c, int32_t frame)
{
	const float *vertices = c->vertices + 3 * (size_t)c->vertex_count * (size_t)frame;
	return (SandColliderState){.here = vertices, .next = vertices, .pose.orientation = {1, 0, 0, 0}};
}

static bool has_area_ever(const SandCollider *c, int32_t triangle)
{
	for (int32_t frame = 0; frame < c->frame_count; ++frame)
	{
		SandColliderState state = state_at_frame(c, frame);
		double corners[3][3], ab[3], ac[3], ap[3];
		Foot foot;
		corners_at(c, &state, triangle, corners);
		if (find_plane(corners, corners[0], ab, ac, ap, &foot) != NO_AREA)
		{
			return true;
		}
	}
	return false;
}

static bool find_around(SandCollider *c)
{
	c->around_first = sand_alloc((size_t)c->vertex_count + 2, sizeof(int32_t));
	c->around = sand_alloc(3 * (size_t)c->triangle_count, sizeof(int32_t));
	uint8_t *has_area = sand_alloc((size_t)c->triangle_count, 1);
	bool is_done = c->around_first != NULL && c->around != NULL && has_area != NULL;
	if (is_done)
	{
		int32_t *first = c->around_first + 1; // filled one ahead, so that the end of a vertex becomes its begin
		for (int32_t t = 0; t < c->triangle_count; ++t)
		{
			has_area[t] = has_area_ever(c, t) ? 1 : 0;
			for (int k = 0; k < 3 && has_area[t]; ++k)
			{
				++first[c->triangles[3 * (size_t)t + (size_t)k] + 1];
			}
		}
		for (int v = 0; v < c->vertex_count; ++v)
		{
			first[v + 1] += first[v];
		}
		for (int32_t t = 0; t < c->triangle_count; ++t)
		{
			for (int k = 0; k < 3 && has_area[t]; ++k)
			{
				c->around[first[c->triangles[3 * (size_t)t + (size_t)k]]++] = t;
			}
		}
	}
	sand_free(has_area);
	return is_done;
}

static bool find_order(SandCollider *c)
{
	SandSorter *sorter;
	c->order = sand_alloc((size_t)c->triangle_count, sizeof(int32_t));
	if (c->order == NULL || sand_sorter_create(c->triangle_count, &sorter, NULL) != SAND_OK)
	{
		return false;
	}
	uint64_t *records = sand_sorter_records(sorter);
	SandColliderState state = state_at_frame(c, 0);
	double low[3] = {DBL_MAX, DBL_MAX, DBL_MAX}, high[3] = {-DBL_MAX, -DBL_MAX, -DBL_MAX};
	for (int pass = 0; pass < 2; ++pass)
	{
		for (int32_t t = 0; t < c->triangle_count; ++t)
		{
			double corners[3][3];
			int64_t cell[3];
			corners_at(c, &state, t, corners);
			for (int k = 0; k < 3; ++k)
			{
				double middle = (corners[0][k] + corners[1][k] + corners[2][k]) / 3;
				low[k] = fmin(low[k], middle);
				high[k] = fmax(high[k], middle);
				cell[k] = pass == 1 && high[k] > low[k] ? (int64_t)((middle - low[k]) / (high[k] - low[k]) * 1023) : 0;
			}
			records[t] = (uint64_t)sand_morton(cell) << 32 | (uint32_t)t;
		}
	}
	const uint64_t *sorted = sand_sort(sorter, c->triangle_count, 30, NULL);
	for (int32_t t = 0; t < c->triangle_count; ++t)
	{
		c->order[t] = (int32_t)(uint32_t)sorted[t];
	}
	sand_sorter_destroy(sorter);
	return true;
}

static void find_levels(SandCollider *c)
{
	int size = c->triangle_count;
	do
	{
		size = size / WIDTH + (size % WIDTH != 0);
		assert(c->level_count < LEVEL_LIMIT);
		c->level_first[c->level_count] = c->node_count;
		c->level_size[c->level_count++] = size;
		c->node_count += size;
	} while (size > 1);
}

static void clear_child(Node *node, int child)
{
	for (int k = 0; k < 3; ++k)
	{
		node->low[k][child] = INFINITY;
		node->high[k][child] = -INFINITY;
	}
}

static void box_of_triangle(const SandCollider *c, const SandColliderState *state, int32_t triangle, Node *node,
                            int child)
{
	double corners[3][3];
	corners_at(c, state, triangle, corners);
	for (int k = 0; k < 3; ++k)
	{
		double low = fmin(fmin(corners[0][k], corners[1][k]), corners[2][k]);
		double high = fmax(fmax(corners[0][k], corners[1][k]), corners[2][k]);
		// Rounding keeps order: a box that meets another one does so in floats.
		node->low[k][child] = (float)low;
		node->high[k][child] = (float)high;
	}
}

static void box_of_node(const Node *from, Node *node, int child)
{
	for (int k = 0; k < 3; ++k)
	{
		float low = INFINITY, high = -INFINITY;
		for (int i = 0; i < WIDTH; ++i)
		{
			low = from->low[k][i] < low ? from->low[k][i] : low;
			high = from->high[k][i] > high ? from->high[k][i] : high;
		}
		node->low[k][child] = low;
		node->high[k][child] = high;
	}
}

static void fit_nodes(const SandCollider *c, const SandColliderState *state, Node *nodes)
{
	for (int level = 0; level < c->level_count; ++level)
	{
		int child_count = level == 0 ? c->triangle_count : c->level_size[level - 1];
		for (int i = 0; i < c->level_size[level]; ++i)
		{
			Node *node = &nodes[c->level_first[level] + i];
			for (int k = 0; k < WIDTH; ++k)
			{
				// Not 4 i + k < count: that may leave the range of int.
				if (k >= child_count - WIDTH * i)
				{
					clear_child(node, k);
				}
				else if (level == 0)
				{
					box_of_triangle(c, state, c->order[WIDTH * i + k], node, k);
				}
				else
				{
					box_of_node(&nodes[c->level_first[level - 1] + WIDTH * i + k], node, k);
				}
			}
		}
	}
}

// Of the vertices in use, over all frames, in its own axes.
static void measure(SandCollider *c)
{
	for (int k = 0; k < 3; ++k)
	{
		c->low[k] = DBL_MAX;
		c->high[k] = -DBL_MAX;
	}
	for (int32_t frame = 0; frame < c->frame_count; ++frame)
	{
		const float *here = c->vertices + 3 * (size_t)c->vertex_count * (size_t)frame;
		double fastest = 0;
		for (size_t i = 0; i < 3 * (size_t)c->triangle_count; ++i)
		{
			const float *x = here + 3 * (size_t)c->triangles[i];
			const float *before = frame > 0 ? x - 3 * (size_t)c->vertex_count : x;
			double square = 0, moved = 0;
			for (int k = 0; k < 3; ++k)
			{
				double way = (double)x[k] - (double)before[k];
				c->low[k] = fmin(c->low[k], (double)x[k]);
				c->high[k] = fmax(c->high[k], (double)x[k]);
				square += (double)x[k] * (double)x[k];
				moved += way * way;
			}
			c->radius = fmax(c->radius, sqrt(square));
			fastest = fmax(fastest, sqrt(moved));
		}
		if (frame > 0)
		{
			c->speeds[frame - 1] = fastest / c->frame_interval;
			c->top_speed = fmax(c->top_speed, c->speeds[frame - 1]);
		}
	}
}

// The box in its own axes, carried along the track: at each sample the box of the turned box or of the sphere around
// it, the smaller one. Between two samples a point leaves the straight way by the sagitta of its arc at most.
static void sweep(SandCollider *c)
{
	double middle[3], half[3], low[3], high[3], sphere = 0;
	for (int k = 0; k < 3; ++k)
	{
		middle[k] = 0.5 * (c->low[k] + c->high[k]);
		half[k] = 0.5 * (c->high[k] - c->low[k]);
		sphere += half[k] * half[k];
		low[k] = DBL_MAX;
		high[k] = -DBL_MAX;
	}
	sphere = sqrt(sphere);
	double sag_before = 0;
	for (int32_t i = 0; i < c->track.sample_count; ++i)
	{
		SandPose pose;
		double axes[3][3], turned[3], sag = 0;
		sand_track_pose(&c->track, c->track.begin + (i > 0 ? i * c->track.interval : 0), &pose);
		if (i + 1 < c->track.sample_count)
		{
			double spin = sqrt(dot(pose.spin, pose.spin));
			sag = c->radius * (1 - cos(0.5 * spin * c->track.interval));
		}
		sand_turn(pose.orientation, middle, turned);
		for (int j = 0; j < 3; ++j)
		{
			const double axis[3] = {j == 0, j == 1, j == 2};
			sand_turn(pose.orientation, axis, axes[j]);
		}
		for (int k = 0; k < 3; ++k)
		{
			double box = fabs(axes[0][k]) * half[0] + fabs(axes[1][k]) * half[1] + fabs(axes[2][k]) * half[2];
			double out = fmin(box, sphere) + fmax(sag, sag_before);
			double at = pose.position[k] + turned[k], rounding = 1e-14 * (fabs(pose.position[k]) + c->radius);
			low[k] = fmin(low[k], at - out - rounding);
			high[k] = fmax(high[k], at + out + rounding);
		}
		sag_before = sag;
	}
	memcpy(c->low, low, sizeof(low));
	memcpy(c->high, high, sizeof(high));
	c->top_speed = sand_track_speed(&c->track, -DBL_MAX, DBL_MAX, c->radius);
}

static bool copy_desc(SandCollider *c, const SandColliderDesc *desc)
{
	const SandMesh *mesh = desc->mesh;
	const char *name = sand_mesh_name(mesh);
	size_t name_bytes = strlen(name) + 1;
	c->material = desc->material;
	c->triangle_count = mesh->triangle_count;
	c->vertex_count = mesh->vertex_count;
	c->frame_count = desc->frames != NULL ? desc->frame_count : 1;
	c->frame_begin = desc->frame_begin;
	c->frame_interval = desc->frame_interval;
	c->has_track = desc->track != NULL;
	size_t corner_count = 3 * (size_t)mesh->triangle_count, number_count = 3 * (size_t)mesh->vertex_count;
	size_t sample_count = c->has_track ? (size_t)desc->track->sample_count : 0;
	c->name = sand_alloc(name_bytes, 1);
	c->triangles = sand_alloc(corner_count, sizeof(int32_t));
	c->vertices = sand_alloc(number_count * (size_t)c->frame_count, sizeof(float));
	c->speeds = sand_alloc((size_t)c->frame_count, sizeof(double));
	c->samples = sand_alloc(sample_count, SAND_TRACK_NUMBERS * sizeof(double));
	if (c->name == NULL || c->triangles == NULL || c->vertices == NULL || c->speeds == NULL || c->samples == NULL)
	{
		return false;
	}
	memcpy(c->name, name, name_bytes);
	memcpy(c->triangles, mesh->triangles, corner_count * sizeof(int32_t));
	memcpy(c->vertices, desc->frames != NULL ? desc->frames : mesh->vertices,
	       number_count * (size_t)c->frame_count * sizeof(float));
	if (c->has_track)
	{
		memcpy(c->samples, desc->track->samples, sample_count * SAND_TRACK_NUMBERS * sizeof(double));
		c->track = *desc->track;
		c->track.samples = c->samples;
	}
	c->hash = hash_desc(desc, c->vertices, c->frame_count);
	return true;
}

static bool build(SandCollider *c, const SandColliderDesc *desc)
{
	if (!copy_desc(c, desc) || !weld(c) || !find_around(c) || !find_order(c))
	{
		return false;
	}
	find_levels(c);
	measure(c);
	if (c->has_track)
	{
		sweep(c);
	}
	if (!changes_shape(c))
	{
		c->nodes = sand_alloc((size_t)c->node_count, sizeof(Node));
		if (c->nodes == NULL)
		{
			return false;
		}
		SandColliderState state = state_at_frame(c, 0);
		fit_nodes(c, &state, c->nodes);
	}
	return true;
}

SandStatus sand_collider_create(const SandColliderDesc *desc, int index, SandCollider **collider_out, SandError *err)
{
	*collider_out = NULL;
	SandStatus status = check_desc(desc, index, err);
	if (status != SAND_OK)
	{
		return status;
	}
	SandCollider *c = sand_alloc(1, sizeof(*c));
	if (c == NULL || !build(c, desc))
	{
		sand_collider_destroy(c);
		size_t frames = (size_t)(desc->frames != NULL ? desc->frame_count : 1);
		return sand_fail_memory(err,
		                        (size_t)desc->mesh->triangle_count * 100 +
		                            (size_t)desc->mesh->vertex_count * 3 * sizeof(float) * frames,
		                        "a collider");
	}
	if (!isfinite(c->top_speed))
	{
		sand_collider_destroy(c);
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Collider %d: %s goes infinitely fast; give a longer interval between its samples or frames",
		                 index, sand_mesh_label(desc->mesh).text);
	}
	*collider_out = c;
	return SAND_OK;
}

void sand_collider_destroy(SandCollider *c)
{
	if (c == NULL)
	{
		return;
	}
	sand_free(c->name);
	sand_free(c->triangles);
	sand_free(c->vertices);
	sand_free(c->speeds);
	sand_free(c->samples);
	sand_free(c->around_first);
	sand_free(c->around);
	sand_free(c->order);
	sand_free(c->nodes);
	sand_free(c);
}

// ---- what it is -----------------------------------------------------------------------------------------------------

const char *sand_collider_name(const SandCollider *c)
{
	return c->name;
}

int sand_collider_triangle_count(const SandCollider *c)
{
	return c->triangle_count;
}

int32_t sand_collider_material(const SandCollider *c)
{
	return c->material;
}

bool sand_collider_is_moving(const SandCollider *c)
{
	return c->top_speed > 0;
}

uint64_t sand_collider_hash(const SandCollider *c, uint64_t seed)
{
	return sand_hash64(&c->hash, sizeof(c->hash), seed);
}

uint64_t sand_collider_motion_hash(const SandCollider *c, double until, uint64_t seed)
{
	if (c->has_track)
	{
		return sand_track_hash(&c->track, until, seed);
	}
	if (!changes_shape(c))
	{
		return seed;
	}
	size_t count = (size_t)sand_sample_count(c->frame_begin, c->frame_interval, c->frame_count, until);
	return sand_hash64(c->vertices, 3 * (size_t)c->vertex_count * count * sizeof(float), seed);
}

void sand_collider_bounds(const SandCollider *c, double low_out[3], double high_out[3])
{
	memcpy(low_out, c->low, sizeof(c->low));
	memcpy(high_out, c->high, sizeof(c->high));
}

double sand_collider_speed(const SandCollider *c, double from, double to)
{
	assert(from <= to);
	if (c->has_track)
	{
		return sand_track_speed(&c->track, from, to, c->radius);
	}
	if (!changes_shape(c) || to < c->frame_begin)
	{
		return 0;
	}
	double speed = 0;
	int32_t first = sand_moment(c->frame_begin, c->frame_interval, c->frame_count, from).index;
	int32_t last = sand_moment(c->frame_begin, c->frame_interval, c->frame_count, to).index;
	for (int32_t i = first; i <= last && i + 1 < c->frame_count; ++i)
	{
		speed = fmax(speed, c->speeds[i]);
	}
	return speed;
}

// ---- where it is ----------------------------------------------------------------------------------------------------

SandStatus sand_collider_state_create(const SandCollider *c, SandColliderState **state_out, SandError *err)
{
	*state_out = NULL;
	SandColliderState *state = sand_alloc(1, sizeof(*state));
	if (state != NULL)
	{
		*state = state_at_frame(c, 0);
		state->nodes = changes_shape(c) ? sand_alloc((size_t)c->node_count, sizeof(Node)) : NULL;
	}
	if (state == NULL || (changes_shape(c) && state->nodes == NULL))
	{
		sand_collider_state_destroy(state);
		return sand_fail_memory(err, (size_t)c->node_count * sizeof(Node), "a collider's place");
	}
	sand_collider_set_time(c, state, 0);
	sand_collider_fit(c, state);
	*state_out = state;
	return SAND_OK;
}

void sand_collider_state_destroy(SandColliderState *state)
{
	if (state == NULL)
	{
		return;
	}
	sand_free(state->nodes);
	sand_free(state);
}

void sand_collider_set_time(const SandCollider *c, SandColliderState *state, double time)
{
	if (c->has_track)
	{
		sand_track_pose(&c->track, time, &state->pose);
	}
	if (!changes_shape(c))
	{
		return;
	}
	SandMoment moment = sand_moment(c->frame_begin, c->frame_interval, c->frame_count, time);
	size_t stride = 3 * (size_t)c->vertex_count;
	state->is_fit = state->is_fit && moment.index == state->moment.index && !(moment.share != state->moment.share);
	state->moment = moment;
	state->here = c->vertices + stride * (size_t)moment.index;
	state->next = state->here + (moment.is_moving ? stride : 0);
}

void sand_collider_fit(const SandCollider *c, SandColliderState *state)
{
	if (changes_shape(c) && !state->is_fit)
	{
		fit_nodes(c, state, state->nodes);
		state->is_fit = true;
	}
}

void sand_collider_origin(const SandCollider *c, const SandColliderState *state, double origin_out[3])
{
	for (int k = 0; k < 3; ++k)
	{
		origin_out[k] = c->has_track ? state->pose.position[k] : 0.5 * (c->low[k] + c->high[k]);
	}
}

void sand_collider_view(const SandCollider *c, SandColliderView *view_out)
{
	*view_out = (SandColliderView){.triangles = c->triangles,
	                               .vertices = c->vertices,
	                               .around_first = c->around_first,
	                               .around = c->around,
	                               .order = c->order,
	                               .nodes = changes_shape(c) ? NULL : c->nodes->low[0],
	                               .level_first = c->level_first,
	                               .speeds = changes_shape(c) ? c->speeds : NULL,
	                               .track = c->has_track ? &c->track : NULL,
	                               .radius = c->radius,
	                               .frame_begin = c->frame_begin,
	                               .frame_interval = c->frame_interval,
	                               .triangle_count = c->triangle_count,
	                               .vertex_count = c->vertex_count,
	                               .frame_count = c->frame_count,
	                               .node_count = c->node_count,
	                               .level_count = c->level_count};
}

void sand_collider_place(const SandColliderState *state, SandPose *pose_out, SandMoment *moment_out)
{
	*pose_out = state->pose;
	*moment_out = state->moment;
}

const float *sand_collider_boxes(const SandColliderState *state)
{
	assert(state->nodes == NULL || state->is_fit);
	return state->nodes != NULL ? state->nodes->low[0] : NULL;
}

// ---- search ---------------------------------------------------------------------------------------------------------

static void sift(int32_t *values, int begin, int count)
{
	int32_t value = values[begin];
	for (int child; (child = 2 * begin + 1) < count; begin = child)
	{
		child += child + 1 < count && values[child + 1] > values[child];
		if (values[child] <= value)
		{
			break;
		}
		values[begin] = values[child];
	}
	values[begin] = value;
}

// Ascending, in place: by insertion when short, else by a heap (Williams 1964).
static void sort_numbers(int32_t *values, int count)
{
	if (count <= SHORT_SORT)
	{
		for (int i = 1; i < count; ++i)
		{
			int32_t value = values[i];
			int at = i;
			for (; at > 0 && values[at - 1] > value; --at)
			{
				values[at] = values[at - 1];
			}
			values[at] = value;
		}
		return;
	}
	for (int i = count / 2 - 1; i >= 0; --i)
	{
		sift(values, i, count);
	}
	for (int end = count - 1; end > 0; --end)
	{
		int32_t largest = values[0];
		values[0] = values[end];
		values[end] = largest;
		sift(values, 0, end);
	}
}

static bool is_near(const SandCollider *c, const SandColliderState *state, int32_t triangle, const double p[3],
                    double reach)
{
	double corners[3][3];
	Foot foot;
	corners_at(c, state, triangle, corners);
	return find_foot(corners, p, reach, &foot) == NEAR_BY && foot.square < reach * reach;
}

// Four comparisons at a time; a set lane is -1.
typedef float f4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));
_Static_assert(WIDTH % 4 == 0, "children are compared in fours");

// Bits of the children whose boxes meet the box.
static inline unsigned meeting(const Node *node, const float low[3], const float high[3])
{
	unsigned bits = 0;
	for (int i = 0; i < WIDTH; i += 4)
	{
		i4 meets = {-1, -1, -1, -1};
		for (int k = 0; k < 3; ++k)
		{
			f4 from, to;
			memcpy(&from, node->low[k] + i, sizeof(from));
			memcpy(&to, node->high[k] + i, sizeof(to));
			meets &= (from <= high[k]) & (to >= low[k]);
		}
		for (int lane = 0; lane < 4; ++lane)
		{
			bits |= (unsigned)(meets[lane] & 1) << (i + lane);
		}
	}
	return bits;
}

// A search of the boxes that meet a ball.
typedef struct Search
{
	const Node *nodes;
	double own[3], reach; // the ball, in the collider's axes
	float low[3], high[3];
	struct
	{
		int level, index;
	} stack[STACK_LIMIT];
	int depth;
} Search;

static void start_search(Search *s, const SandCollider *c, const SandColliderState *state, const double p[3],
                         double reach)
{
	assert(!changes_shape(c) || state->is_fit);
	s->nodes = changes_shape(c) ? state->nodes : c->nodes;
	s->reach = reach * (1 + CARRYING) + DBL_MIN;
	carry(c, state, p, s->own);
	for (int k = 0; k < 3; ++k)
	{
		// Within the finite floats, so that an absent child meets nothing.
		s->low[k] = (float)fmin(fmax(s->own[k] - s->reach, -FLT_MAX), FLT_MAX);
		s->high[k] = (float)fmin(fmax(s->own[k] + s->reach, -FLT_MAX), FLT_MAX);
	}
	s->stack[0].level = c->level_count - 1;
	s->stack[0].index = 0;
	s->depth = 1;
}

// Opens nodes until one holds triangles whose boxes meet the ball's: bits of them, of places first, first + 1, ... in
// the order; 0 at the end.
static unsigned next_triangles(Search *s, const SandCollider *c, int *first_out)
{
	while (s->depth > 0)
	{
		int level = s->stack[--s->depth].level, index = s->stack[s->depth].index;
		unsigned bits = meeting(&s->nodes[c->level_first[level] + index], s->low, s->high);
		if (level == 0 && bits != 0)
		{
			*first_out = WIDTH * index;
			return bits;
		}
		for (; bits != 0; bits &= bits - 1)
		{
			assert(s->depth < STACK_LIMIT);
			s->stack[s->depth].level = level - 1;
			s->stack[s->depth++].index = WIDTH * index + __builtin_ctz(bits);
		}
	}
	return 0;
}

bool sand_collider_is_near(const SandCollider *c, const SandColliderState *state, const double p[3], double reach)
{
	Search s;
	int first;
	start_search(&s, c, state, p, reach);
	return next_triangles(&s, c, &first) != 0;
}

int sand_collider_near(const SandCollider *c, const SandColliderState *state, const double p[3], double reach,
                       int32_t *triangles_out, int capacity)
{
	Search s;
	int first, count = 0;
	start_search(&s, c, state, p, reach);
	for (unsigned bits; (bits = next_triangles(&s, c, &first)) != 0;)
	{
		for (; bits != 0; bits &= bits - 1)
		{
			int32_t triangle = c->order[first + __builtin_ctz(bits)];
			if (is_near(c, state, triangle, s.own, s.reach))
			{
				if (count < capacity)
				{
					triangles_out[count] = triangle;
				}
				++count;
			}
		}
	}
	if (capacity > 0)
	{
		sort_numbers(triangles_out, count < capacity ? count : capacity);
	}
	return count;
}

// ---- touch ----------------------------------------------------------------------------------------------------------

// A local minimum of the distance.
typedef struct Candidate
{
	Foot foot; // normal unit from here on, lift in m
	int32_t corners[3];
	int slot;
	bool is_pressed; // p is behind the side it belongs to
	double distance; // m, signed
	double n[3];     // unit, to the side that p belongs to
} Candidate;

// The call as it was made, in the axes that the mesh is searched in.
typedef struct Call
{
	const SandCollider *c;
	const SandColliderState *state;
	double p[3];
	double reach;
	const int32_t *triangles;
	float *sides;
	int count;
} Call;

// While a call runs, a side is open, unless p is over that face:
// 2 or -2: known, half of it, but the other one if nothing is held;
// 3 or -3: not known before, and a third of it if nothing is held;
// 4 or -4: known, a quarter of it.
static float known_side(float side)
{
	return fabsf(side) == 3 ? 0 : side < 0 ? -1.0F : side > 0 ? 1.0F : 0;
}

static void note_side(float *side, bool is_over_face, double lift)
{
	float sign = lift < 0 ? -1.0F : 1.0F;
	if (*side == 0)
	{
		*side = 3 * sign;
	}
	else if (!is_over_face)
	{
		*side *= *side == sign ? 4 : 2;
	}
}

// The vertex behind a feature's corner; the others are none.
static int32_t vertex_of(const Candidate *a, int corner)
{
	return (a->foot.feature >> corner & 1) != 0 ? a->corners[corner] : NO_VERTEX;
}

static bool has_corner(const int32_t corners[3], int32_t vertex)
{
	return corners[0] == vertex || corners[1] == vertex || corners[2] == vertex;
}

// True when the triangle contains the whole feature.
static bool contains(const int32_t corners[3], const Candidate *a)
{
	for (int k = 0; k < 3; ++k)
	{
		int32_t vertex = vertex_of(a, k);
		if (vertex != NO_VERTEX && !has_corner(corners, vertex))
		{
			return false;
		}
	}
	return true;
}

static bool meet(const Candidate *a, const Candidate *b)
{
	return has_corner(a->corners, b->corners[0]) || has_corner(a->corners, b->corners[1]) ||
	       has_corner(a->corners, b->corners[2]);
}

// Whether no triangle around an edge or corner leads nearer to p. From a point where the way to p is across the edge,
// or from a corner, a triangle leads nearer when one of its other corners lies in the way's half space.
static bool is_minimum(const Call *call, const Candidate *a)
{
	int first = (a->foot.feature & 1) != 0 ? 0 : (a->foot.feature & 2) != 0 ? 1 : 2;
	int32_t vertex = a->corners[first];
	double from[3];
	vertex_at(call->state, vertex, from);
	for (int32_t i = call->c->around_first[vertex]; i < call->c->around_first[vertex + 1]; ++i)
	{
		const int32_t *corners = call->c->triangles + 3 * (size_t)call->c->around[i];
		if (!contains(corners, a))
		{
			continue;
		}
		for (int k = 0; k < 3; ++k)
		{
			double to[3];
			bool is_own =
			    corners[k] == vertex_of(a, 0) || corners[k] == vertex_of(a, 1) || corners[k] == vertex_of(a, 2);
			if (is_own)
			{
				continue;
			}
			vertex_at(call->state, corners[k], to);
			subtract(to, from, to);
			if (dot(a->foot.d, to) > LEVEL * (a->foot.square + dot(to, to)))
			{
				return false;
			}
		}
	}
	return true;
}

// In order of slot. When there are too many the farthest gives way.
static void add_candidate(Candidate *all, int *count, const Candidate *a)
{
	if (*count == CANDIDATE_LIMIT)
	{
		int at = 0;
		for (int i = 1; i < CANDIDATE_LIMIT; ++i)
		{
			at = all[i].foot.square > all[at].foot.square ? i : at;
		}
		if (all[at].foot.square <= a->foot.square)
		{
			return;
		}
		memmove(&all[at], &all[at + 1], (size_t)(CANDIDATE_LIMIT - 1 - at) * sizeof(*all));
		--*count;
	}
	Candidate *to = &all[(*count)++];
	*to = *a;
	double scale = 1 / sqrt(to->foot.area2);
	for (int k = 0; k < 3; ++k)
	{
		to->foot.normal[k] *= scale;
	}
	to->foot.lift *= scale;
}

static Where look(const Call *call, int slot, Candidate *a)
{
	double corners[3][3];
	corners_at(call->c, call->state, call->triangles[slot], corners);
	memcpy(a->corners, call->c->triangles + 3 * (size_t)call->triangles[slot], sizeof(a->corners));
	a->slot = slot;
	a->is_pressed = false;
	return find_foot(corners, call->p, call->reach, &a->foot);
}

static int find_candidates(const Call *call, Candidate *all)
{
	int count = 0, nearest = -1;
	double least = call->reach * call->reach, reach2 = least;
	Candidate a;
	for (int slot = 0; slot < call->count; ++slot)
	{
		Where where = look(call, slot, &a);
		if (where == NO_AREA)
		{
			continue;
		}
		note_side(&call->sides[slot], where == NEAR_BY && a.foot.feature == FACE, a.foot.lift);
		if (where == FAR_OFF || !(a.foot.square < reach2))
		{
			continue;
		}
		if (a.foot.square < least)
		{
			least = a.foot.square;
			nearest = slot;
		}
		if (a.foot.feature == FACE || is_minimum(call, &a))
		{
			add_candidate(all, &count, &a);
		}
	}
	if (count == 0 && nearest >= 0) // by rounding
	{
		(void)look(call, nearest, &a);
		add_candidate(all, &count, &a);
	}
	return count;
}

static double lift_over(const Call *call, int slot, const double p[3], double *length_out)
{
	double corners[3][3], ab[3], ac[3], ap[3];
	Foot foot;
	corners_at(call->c, call->state, call->triangles[slot], corners);
	Where where = find_plane(corners, p, ab, ac, ap, &foot);
	*length_out = where == NO_AREA ? 0 : sqrt(foot.area2);
	return foot.lift;
}

static bool is_on_feature(const Call *call, const Candidate *a)
{
	return a->foot.square <= TOUCHING * TOUCHING * call->reach * call->reach;
}

static bool is_pressed(const Call *call, const Candidate *a)
{
	double deepest = (double)known_side(call->sides[a->slot]) * a->foot.lift, length = sqrt(a->foot.square);
	if (a->foot.feature == FACE || !(deepest < 0) || is_on_feature(call, a))
	{
		return deepest < 0;
	}
	for (int slot = 0; slot < call->count; ++slot)
	{
		double side = (double)known_side(call->sides[slot]), scale;
		if (side == 0 || !contains(call->c->triangles + 3 * (size_t)call->triangles[slot], a))
		{
			continue;
		}
		double lift = side * lift_over(call, slot, call->p, &scale);
		if (scale > 0)
		{
			if (lift > 1e-6 * length * scale) // in front of it; in its plane but for rounding is not
			{
				return false;
			}
			deepest = fmin(deepest, lift / scale);
		}
	}
	return deepest < -BEHIND * length;
}

// Where p is on the side it belongs to, off the face or feature that holds it there.
static void clear_place(const Call *call, const Candidate *holding, double out[3])
{
	double height = sqrt(holding->foot.square), side = (double)known_side(call->sides[holding->slot]);
	double lifted = fmax(height, HOLD * call->reach), side_of_feature = holding->is_pressed ? -1 : 1;
	bool is_normal = holding->foot.feature == FACE || is_on_feature(call, holding);
	for (int k = 0; k < 3; ++k)
	{
		double n = is_normal ? side * holding->foot.normal[k] : side_of_feature * holding->foot.d[k] / height;
		out[k] = call->p[k] - holding->foot.d[k] + lifted * n;
	}
}

// 1 when the two have an edge in common and are wound alike, -1 when they are wound against each other, 0 when they
// have none.
static float winding(const int32_t a[3], const int32_t b[3])
{
	for (int i = 0; i < 3; ++i)
	{
		for (int k = 0; k < 3; ++k)
		{
			if (a[i] == b[k] && a[(i + 1) % 3] == b[(k + 2) % 3])
			{
				return 1;
			}
			if (a[i] == b[k] && a[(i + 1) % 3] == b[(k + 1) % 3])
			{
				return -1;
			}
		}
	}
	return 0;
}

// Around the triangle that holds p the open sides follow its own from edge to edge: the surface goes on there, and so
// may p. Behind a bent surface a plane's side would not tell.
static void spread_side(const Call *call, const Candidate *holding)
{
	int ring[CANDIDATE_LIMIT], count = 1, settled = 1;
	ring[0] = holding->slot;
	call->sides[holding->slot] = known_side(call->sides[holding->slot]);
	for (int slot = 0; slot < call->count && count < CANDIDATE_LIMIT; ++slot)
	{
		const int32_t *corners = call->c->triangles + 3 * (size_t)call->triangles[slot];
		if (fabsf(call->sides[slot]) >= 2 &&
		    (has_corner(corners, holding->corners[0]) || has_corner(corners, holding->corners[1]) ||
		     has_corner(corners, holding->corners[2])))
		{
			ring[count++] = slot;
		}
	}
	for (int from = 0; from < settled; ++from)
	{
		for (int i = settled; i < count; ++i)
		{
			float side = winding(call->c->triangles + 3 * (size_t)call->triangles[ring[from]],
			                     call->c->triangles + 3 * (size_t)call->triangles[ring[i]]);
			if (side != 0)
			{
				int slot = ring[i];
				ring[i] = ring[settled];
				ring[settled++] = slot;
				call->sides[slot] = side * call->sides[ring[from]];
			}
		}
	}
}

// Open sides get their value. When p is held somewhere they follow its side there, farther off what is known stays, and
// what is not is judged from the side that p belongs to.
static void settle_sides(const Call *call, const Candidate *holding)
{
	double place[3], length;
	if (holding != NULL)
	{
		spread_side(call, holding);
		clear_place(call, holding, place);
	}
	for (int slot = 0; slot < call->count; ++slot)
	{
		float side = call->sides[slot], size = fabsf(side), sign = side < 0 ? -1.0F : 1.0F;
		if (size == 2 && holding == NULL)
		{
			sign = -sign;
		}
		else if (size == 3 && holding != NULL)
		{
			sign = lift_over(call, slot, place, &length) < 0 ? -1.0F : 1.0F;
		}
		call->sides[slot] = size == 0 ? 0 : sign;
	}
}

static void judge(const Call *call, Candidate *all, int count)
{
	const Candidate *holding = NULL;
	for (int i = 0; i < count; ++i)
	{
		Candidate *a = &all[i];
		a->is_pressed = is_pressed(call, a);
		bool holds = known_side(call->sides[a->slot]) != 0 &&
		             (a->is_pressed || a->foot.square < HOLD * HOLD * call->reach * call->reach);
		if (holds && (holding == NULL || a->foot.square < holding->foot.square))
		{
			holding = a;
		}
	}
	settle_sides(call, holding);
	for (int i = 0; i < count; ++i)
	{
		Candidate *a = &all[i];
		double side = (double)call->sides[a->slot], length = sqrt(a->foot.square);
		if (a->foot.feature == FACE || is_on_feature(call, a))
		{
			a->distance = side * a->foot.lift;
			a->is_pressed = a->distance < 0;
		}
		else
		{
			a->distance = a->is_pressed ? -length : length;
		}
		for (int k = 0; k < 3; ++k)
		{
			a->n[k] = a->foot.feature == FACE || is_on_feature(call, a) ? side * a->foot.normal[k]
			                                                            : a->foot.d[k] / a->distance;
		}
	}
}

// Edges and corners of a triangle that p is pressed through are seen from the wrong side. Of triangles that meet, and
// that it is behind, it is pressed through the nearest one.
static bool is_false(const Candidate *all, int count, const Candidate *a)
{
	for (int i = 0; i < count && (a->foot.feature != FACE || a->is_pressed); ++i)
	{
		const Candidate *b = &all[i];
		bool is_nearer = b->foot.square < a->foot.square || (b->foot.square == a->foot.square && b->slot < a->slot);
		if (b->is_pressed && (!a->is_pressed || is_nearer) && meet(a, b))
		{
			return true;
		}
	}
	return false;
}

// Two places of a part that is flat or gently bent; or an edge or corner in the plane of the contact, as at a
// T-junction or a seam, where triangles go on without meeting.
static bool is_same_contact(const Candidate *kept, const Candidate *a, double reach)
{
	double way[3];
	subtract(kept->foot.d, a->foot.d, way);
	double apart = dot(way, way), rise = dot(way, kept->n);
	if (dot(kept->n, a->n) > FLAT_COSINE && apart <= FLAT_APART * FLAT_APART * reach * reach && meet(kept, a))
	{
		return true;
	}
	return a->foot.feature != FACE && rise * rise <= FLAT_SLOPE * FLAT_SLOPE * apart;
}

// By distance, then slot.
static int sort_candidates(const Candidate *all, int count, int *order)
{
	int sorted = 0;
	for (int i = 0; i < count; ++i)
	{
		if (is_false(all, count, &all[i]))
		{
			continue;
		}
		int at = sorted++;
		for (; at > 0 && fabs(all[order[at - 1]].distance) > fabs(all[i].distance); --at)
		{
			order[at] = order[at - 1];
		}
		order[at] = i;
	}
	return sorted;
}

// The nearest of those that are one contact stays, under the lowest slot.
static int choose(Candidate *all, int count, double reach, Candidate *kept[SAND_HIT_LIMIT])
{
	int order[CANDIDATE_LIMIT], sorted = sort_candidates(all, count, order), kept_count = 0;
	for (int i = 0; i < sorted; ++i)
	{
		Candidate *a = &all[order[i]];
		int same = 0;
		while (same < kept_count && !is_same_contact(kept[same], a, reach))
		{
			++same;
		}
		if (same < kept_count)
		{
			kept[same]->slot = a->slot < kept[same]->slot ? a->slot : kept[same]->slot;
		}
		else if (kept_count < SAND_HIT_LIMIT)
		{
			kept[kept_count++] = a;
		}
	}
	for (int i = 1; i < kept_count; ++i)
	{
		Candidate *moved = kept[i];
		int at = i;
		for (; at > 0 && kept[at - 1]->slot > moved->slot; --at)
		{
			kept[at] = kept[at - 1];
		}
		kept[at] = moved;
	}
	return kept_count;
}

static void velocity_at(const Call *call, const Candidate *a, double velocity_out[3])
{
	const SandColliderState *state = call->state;
	memset(velocity_out, 0, 3 * sizeof(double));
	if (call->c->has_track)
	{
		double own[3], arm[3];
		subtract(call->p, a->foot.d, own);
		sand_turn(state->pose.orientation, own, arm);
		cross(state->pose.spin, arm, velocity_out);
		for (int k = 0; k < 3; ++k)
		{
			velocity_out[k] += state->pose.velocity[k];
		}
	}
	for (int i = 0; i < 3 && state->moment.is_moving; ++i)
	{
		const float *here = state->here + 3 * (size_t)a->corners[i], *next = state->next + 3 * (size_t)a->corners[i];
		for (int k = 0; k < 3; ++k)
		{
			velocity_out[k] += a->foot.weights[i] * ((double)next[k] - (double)here[k]) / call->c->frame_interval;
		}
	}
}

int sand_collider_touch(const SandCollider *c, const SandColliderState *state, const double p[3], double reach,
                        const int32_t *triangles, float *sides, int count, SandHit hits_out[SAND_HIT_LIMIT])
{
	Call call = {.c = c, .state = state, .reach = reach, .triangles = triangles, .sides = sides, .count = count};
	Candidate all[CANDIDATE_LIMIT], *kept[SAND_HIT_LIMIT];
	carry(c, state, p, call.p);
	int found = find_candidates(&call, all);
	judge(&call, all, found);
	int hit_count = choose(all, found, reach, kept);
	for (int i = 0; i < hit_count; ++i)
	{
		SandHit *hit = &hits_out[i];
		hit->distance = kept[i]->distance;
		hit->slot = kept[i]->slot;
		memcpy(hit->normal, kept[i]->n, sizeof(hit->normal));
		if (c->has_track)
		{
			sand_turn(state->pose.orientation, kept[i]->n, hit->normal);
		}
		velocity_at(&call, kept[i], hit->velocity);
	}
	return hit_count;
}
