// repair: a mesh as artists leave it -> the mesh they meant.
// Comes in: SandMesh. Goes out: a mended SandMesh and what was found.
//
// Equal places, equal faces and the two faces of an edge are found by sorting, so that nothing depends on a hash.
// Pieces are flooded over their edges with a list instead of recursion: a piece may have millions of faces.
#include "repair.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sort.h"

typedef struct Work
{
	const SandMesh *mesh;
	SandSorter *sorter;
	float *vertices;     // those that stay
	int32_t *vertex_of;  // per vertex of the mesh: its number among them
	int32_t *triangles;  // faces that stay
	int32_t *neighbours; // per side of a face: the side of the other face at this edge; -1 unless there is exactly one
	int32_t *reached;    // faces in the order of the flood
	uint8_t *is_reached;
	uint8_t *is_turned;
	int vertex_count, triangle_count;
	bool is_paired; // every edge has two faces, and all can look the same way
} Work;

// One of the words that an item is sorted by, the most significant first.
typedef uint32_t Word(const Work *work, uint32_t item, int word);

// Items 0 .. count - 1 in ascending order of their words, equal ones in that of their number; the lower half of each
// record is the item.
static const uint64_t *sort_items(const Work *work, int count, Word *word_of, int word_count, int key_bits)
{
	uint64_t *records = sand_sorter_records(work->sorter);
	for (int i = 0; i < count; ++i)
	{
		records[i] = (uint64_t)i;
	}
	for (int word = word_count - 1; word >= 0; --word)
	{
		for (int i = 0; i < count; ++i)
		{
			uint32_t item = (uint32_t)records[i];
			records[i] = (uint64_t)word_of(work, item, word) << 32 | item;
		}
		(void)sand_sort(work->sorter, count, key_bits, NULL);
		records = sand_sorter_records(work->sorter);
	}
	return records;
}

static bool are_equal(const Work *work, Word *word_of, int word_count, uint32_t a, uint32_t b)
{
	for (int word = 0; word < word_count; ++word)
	{
		if (word_of(work, a, word) != word_of(work, b, word))
		{
			return false;
		}
	}
	return true;
}

// Bits of a coordinate; both zeros are one place.
static uint32_t place_word(const Work *work, uint32_t vertex, int word)
{
	float value = work->mesh->vertices[3 * (size_t)vertex + (size_t)word] + 0.0F;
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

// Corners of a face in ascending order.
static uint32_t corner_word(const Work *work, uint32_t face, int word)
{
	const int32_t *corners = &work->triangles[3 * (size_t)face];
	int32_t a = corners[0], b = corners[1], c = corners[2];
	int32_t low = a < b ? a : b, high = a < b ? b : a;
	int32_t lowest = low < c ? low : c, highest = high > c ? high : c;
	return (uint32_t)(word == 0 ? lowest : word == 2 ? highest : a ^ b ^ c ^ lowest ^ highest);
}

// The side after this one, of the same face.
static uint32_t next_side(uint32_t side)
{
	return side % 3 == 2 ? side - 2 : side + 1;
}

// Lower and higher end of the edge at a side.
static uint32_t edge_word(const Work *work, uint32_t side, int word)
{
	int32_t from = work->triangles[side], to = work->triangles[next_side(side)];
	return (uint32_t)((from < to) == (word == 0) ? from : to);
}

static int bits_of(int count)
{
	int bits = 1;
	while (bits < 31 && count >> bits != 0)
	{
		++bits;
	}
	return bits;
}

static SandStatus reserve(Work *work, SandError *err)
{
	const SandMesh *mesh = work->mesh;
	size_t vertex_count = (size_t)mesh->vertex_count, triangle_count = (size_t)mesh->triangle_count;
	int side_count = 3 * mesh->triangle_count;
	int limit = side_count > mesh->vertex_count ? side_count : mesh->vertex_count;
	SandStatus status = sand_sorter_create(limit, &work->sorter, err);
	if (status != SAND_OK)
	{
		return status;
	}
	work->vertices = sand_alloc(vertex_count, 3 * sizeof(float));
	work->vertex_of = sand_alloc(vertex_count, sizeof(int32_t));
	work->triangles = sand_alloc(triangle_count, 3 * sizeof(int32_t));
	work->neighbours = sand_alloc(triangle_count, 3 * sizeof(int32_t));
	work->reached = sand_alloc(triangle_count, sizeof(int32_t));
	work->is_reached = sand_alloc(triangle_count, 1);
	work->is_turned = sand_alloc(triangle_count, 1);
	if (work->vertices == NULL || work->vertex_of == NULL || work->triangles == NULL || work->neighbours == NULL ||
	    work->reached == NULL || work->is_reached == NULL || work->is_turned == NULL)
	{
		size_t bytes = vertex_count * 16 + triangle_count * 30;
		return sand_fail_memory(err, bytes, "mending a mesh");
	}
	return SAND_OK;
}

static void release(Work *work)
{
	sand_free(work->is_turned);
	sand_free(work->is_reached);
	sand_free(work->reached);
	sand_free(work->neighbours);
	sand_free(work->triangles);
	sand_free(work->vertex_of);
	sand_free(work->vertices);
	sand_sorter_destroy(work->sorter);
}

// The first vertex of each place stays.
static void weld(Work *work)
{
	const SandMesh *mesh = work->mesh;
	const uint64_t *sorted = sort_items(work, mesh->vertex_count, place_word, 3, 32);
	uint32_t first = 0;
	for (int i = 0; i < mesh->vertex_count; ++i)
	{
		uint32_t vertex = (uint32_t)sorted[i];
		first = i > 0 && are_equal(work, place_word, 3, first, vertex) ? first : vertex;
		work->vertex_of[vertex] = (int32_t)first;
	}
	// Numbers that go up: the first of a place comes before the others.
	for (int vertex = 0; vertex < mesh->vertex_count; ++vertex)
	{
		int32_t stays = work->vertex_of[vertex];
		if (stays != vertex)
		{
			work->vertex_of[vertex] = work->vertex_of[stays];
			continue;
		}
		memcpy(&work->vertices[3 * (size_t)work->vertex_count], &mesh->vertices[3 * (size_t)vertex], 3 * sizeof(float));
		work->vertex_of[vertex] = work->vertex_count++;
	}
}

static void keep_real_faces(Work *work)
{
	const SandMesh *mesh = work->mesh;
	for (size_t triangle = 0; triangle < (size_t)mesh->triangle_count; ++triangle)
	{
		int32_t *kept = &work->triangles[3 * (size_t)work->triangle_count];
		for (size_t side = 0; side < 3; ++side)
		{
			kept[side] = work->vertex_of[mesh->triangles[3 * triangle + side]];
		}
		work->triangle_count += kept[0] != kept[1] && kept[1] != kept[2] && kept[2] != kept[0] ? 1 : 0;
	}
}

// The first of equal faces stays.
static void drop_duplicates(Work *work)
{
	uint8_t *is_dropped = work->is_reached; // free until the flood
	const uint64_t *sorted = sort_items(work, work->triangle_count, corner_word, 3, bits_of(work->vertex_count));
	for (int i = 1; i < work->triangle_count; ++i)
	{
		uint32_t before = (uint32_t)sorted[i - 1], face = (uint32_t)sorted[i];
		is_dropped[face] = are_equal(work, corner_word, 3, before, face) ? 1 : 0;
	}
	int kept_count = 0;
	for (int face = 0; face < work->triangle_count; ++face)
	{
		if (!is_dropped[face])
		{
			memmove(&work->triangles[3 * (size_t)kept_count++], &work->triangles[3 * (size_t)face],
			        3 * sizeof(int32_t));
		}
		is_dropped[face] = 0;
	}
	work->triangle_count = kept_count;
}

static void pair_sides(Work *work)
{
	int side_count = 3 * work->triangle_count;
	const uint64_t *sorted = sort_items(work, side_count, edge_word, 2, bits_of(work->vertex_count));
	work->is_paired = true;
	for (int first = 0, next; first < side_count; first = next)
	{
		uint32_t side = (uint32_t)sorted[first];
		for (next = first + 1; next < side_count && are_equal(work, edge_word, 2, side, (uint32_t)sorted[next]); ++next)
		{
			work->neighbours[(uint32_t)sorted[next]] = -1;
		}
		work->neighbours[side] = -1;
		if (next - first == 2)
		{
			uint32_t other = (uint32_t)sorted[first + 1];
			work->neighbours[side] = (int32_t)other;
			work->neighbours[other] = (int32_t)side;
		}
		work->is_paired = work->is_paired && next - first == 2;
	}
}

static double area_of(const Work *work, int32_t face)
{
	const int32_t *corners = &work->triangles[3 * (size_t)face];
	const float *a = &work->vertices[3 * (size_t)corners[0]], *b = &work->vertices[3 * (size_t)corners[1]];
	const float *c = &work->vertices[3 * (size_t)corners[2]];
	double u[3], v[3];
	for (int k = 0; k < 3; ++k)
	{
		u[k] = (double)b[k] - (double)a[k];
		v[k] = (double)c[k] - (double)a[k];
	}
	double x = u[1] * v[2] - u[2] * v[1], y = u[2] * v[0] - u[0] * v[2], z = u[0] * v[1] - u[1] * v[0];
	return 0.5 * sqrt(x * x + y * y + z * z);
}

// Lists the piece of the face reached[start] behind it and says of each whether it looks the other way than that one.
// A strip with one side only cannot agree everywhere: what was reached first decides. Returns the end of the list.
static int flood(Work *work, int start)
{
	int end = start + 1;
	for (int i = start; i < end; ++i)
	{
		int32_t face = work->reached[i];
		for (uint32_t k = 0; k < 3; ++k)
		{
			uint32_t side = 3 * (uint32_t)face + k;
			int32_t other = work->neighbours[side];
			if (other < 0)
			{
				continue;
			}
			// Two that look the same way run along their edge in opposite directions.
			bool is_alike = work->triangles[side] != work->triangles[other];
			uint8_t is_turned = work->is_turned[face] ^ (is_alike ? 0 : 1);
			int32_t next = other / 3;
			if (!work->is_reached[next])
			{
				work->is_reached[next] = 1;
				work->is_turned[next] = is_turned;
				work->reached[end++] = next;
			}
			work->is_paired = work->is_paired && work->is_turned[next] == is_turned;
		}
	}
	return end;
}

static void turn_face(Work *work, int32_t face)
{
	int32_t *corners = &work->triangles[3 * (size_t)face], swapped = corners[1];
	corners[1] = corners[2];
	corners[2] = swapped;
}

// Of each piece the smaller part by area is turned; of equal parts the one without the first face. Returns how many.
static int turn_minorities(Work *work)
{
	int flipped_count = 0, end = 0;
	for (int32_t seed = 0; seed < work->triangle_count; ++seed)
	{
		if (work->is_reached[seed])
		{
			continue;
		}
		int start = end;
		work->is_reached[seed] = 1;
		work->reached[start] = seed;
		end = flood(work, start);
		double areas[2] = {0, 0};
		for (int i = start; i < end; ++i)
		{
			areas[work->is_turned[work->reached[i]]] += area_of(work, work->reached[i]);
		}
		uint8_t minority = areas[1] > areas[0] ? 0 : 1;
		for (int i = start; i < end; ++i)
		{
			work->is_turned[work->reached[i]] = work->is_turned[work->reached[i]] == minority;
			flipped_count += work->is_turned[work->reached[i]];
		}
	}
	for (int32_t face = 0; face < work->triangle_count; ++face)
	{
		if (work->is_turned[face])
		{
			turn_face(work, face);
		}
	}
	return flipped_count;
}

// Signed, from a corner of the mesh, times six.
static double six_volumes_of(const Work *work)
{
	const float *apex = &work->vertices[3 * (size_t)work->triangles[0]];
	double sum = 0;
	for (int face = 0; face < work->triangle_count; ++face)
	{
		double p[3][3];
		for (int side = 0; side < 3; ++side)
		{
			const float *corner = &work->vertices[3 * (size_t)work->triangles[3 * (size_t)face + (size_t)side]];
			for (int k = 0; k < 3; ++k)
			{
				p[side][k] = (double)corner[k] - (double)apex[k];
			}
		}
		sum += p[0][0] * (p[1][1] * p[2][2] - p[1][2] * p[2][1]) + p[0][1] * (p[1][2] * p[2][0] - p[1][0] * p[2][2]) +
		       p[0][2] * (p[1][0] * p[2][1] - p[1][1] * p[2][0]);
	}
	return sum;
}

static bool turn_inside_out(Work *work)
{
	if (!work->is_paired || !(six_volumes_of(work) < 0))
	{
		return false;
	}
	for (int32_t face = 0; face < work->triangle_count; ++face)
	{
		turn_face(work, face);
	}
	return true;
}

// Adds to the sentence, after a comma when it is not the first thing said.
static void say(char *sentence, bool *has_said, const char *format, ...) SAND_PRINTF(3, 4);
static void say(char *sentence, bool *has_said, const char *format, ...)
{
	size_t length = strlen(sentence);
	if (*has_said && length + 2 < SAND_MESSAGE_BYTES)
	{
		memcpy(sentence + length, ", ", 3);
		length += 2;
	}
	va_list args;
	va_start(args, format);
	(void)vsnprintf(sentence + length, SAND_MESSAGE_BYTES - length, format, args);
	va_end(args);
	*has_said = true;
}

static void say_count(char *sentence, bool *has_said, int count, const char *one, const char *many)
{
	if (count > 0)
	{
		say(sentence, has_said, "%d %s", count, count == 1 ? one : many);
	}
}

static void describe(const SandMesh *mended, SandRepair *found)
{
	char *text = found->sentence;
	int mended_count = found->welded_count + found->duplicate_count + found->degenerate_count + found->flipped_count;
	bool is_mended = mended_count > 0 || found->was_inside_out, has_said = false;
	bool is_open = mended->open_edge_count > 0 || mended->bad_edge_count > 0;
	if (!is_mended && !is_open)
	{
		return;
	}
	(void)snprintf(text, SAND_MESSAGE_BYTES, "%s %s", sand_mesh_label(mended).text,
	               is_mended ? "was mended: " : "has ");
	say_count(text, &has_said, found->welded_count, "doubled vertex joined", "doubled vertices joined");
	say_count(text, &has_said, found->degenerate_count, "collapsed face dropped", "collapsed faces dropped");
	say_count(text, &has_said, found->duplicate_count, "doubled face dropped", "doubled faces dropped");
	say_count(text, &has_said, found->flipped_count, "face turned to look as its neighbours do",
	          "faces turned to look as their neighbours do");
	if (found->was_inside_out)
	{
		say(text, &has_said, "all faces turned, for it was inside out");
	}
	if (is_mended && is_open)
	{
		has_said = false;
		say(text, &has_said, "; left are ");
		has_said = false;
	}
	say_count(text, &has_said, mended->open_edge_count, "open edge", "open edges");
	say_count(text, &has_said, mended->bad_edge_count, "edge where faces do not fit together",
	          "edges where faces do not fit together");
	if (is_open)
	{
		say(text, &has_said, "which Mesh > Clean Up > Fill Holes or deleting inner faces would mend");
	}
}

SandStatus sand_mesh_repair(const SandMesh *mesh, SandMesh **mesh_out, SandRepair *found_out, SandError *err)
{
	*mesh_out = NULL;
	*found_out = (SandRepair){0};
	Work work = {.mesh = mesh};
	SandRepair found = {0};
	SandStatus status = reserve(&work, err);
	if (status == SAND_OK)
	{
		weld(&work);
		found.welded_count = mesh->vertex_count - work.vertex_count;
		keep_real_faces(&work);
		found.degenerate_count = mesh->triangle_count - work.triangle_count;
		drop_duplicates(&work);
		found.duplicate_count = mesh->triangle_count - found.degenerate_count - work.triangle_count;
		assert(work.triangle_count > 0); // a SandMesh has area, hence a face with three places
		pair_sides(&work);
		found.flipped_count = turn_minorities(&work);
		found.was_inside_out = turn_inside_out(&work);
		status = sand_mesh_create(sand_mesh_name(mesh), work.vertices, work.vertex_count, work.triangles,
		                          work.triangle_count, mesh_out, err);
	}
	if (status == SAND_OK)
	{
		describe(*mesh_out, &found);
		*found_out = found;
	}
	release(&work);
	return status;
}
