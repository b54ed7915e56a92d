// 76_places: how far places are from a mesh, and on which side; the twin of sand_surface_distance. In: tree with normals
// and dipoles, places; location 0 the first of this part, 1 the end. Out: distance in m, not signed, and side; those
// that are unsure, or so far away that floats overflow, are the host's to ask again.
// One invocation per place. Groups of 32: a tree is walked by each alone. A barrier before the answers are read.
layout(local_size_x = 32) in;
layout(location = 0) uniform uint place_first;
layout(location = 1) uniform uint place_end;
#define USE_NORMALS
#define USE_DIPOLES
#include "tree.glsl"

layout(std430, binding = SAND_BIND_ASK_PLACES) readonly buffer AskPlaceBlock
{
	float places[];
};
layout(std430, binding = SAND_BIND_ASK_DISTANCES) writeonly buffer AskDistanceBlock
{
	double answers[];
};
layout(std430, binding = SAND_BIND_ASK_SIDES) writeonly buffer AskSideBlock
{
	int answer_sides[];
};

void main()
{
	uint i = place_first + sand_thread();
	if (i >= place_end)
	{
		return;
	}
	dvec3 place = dvec3(double(places[3u * i]), double(places[3u * i + 1u]), double(places[3u * i + 2u]));
	dvec3 at = relative_place(place);
	Found found;
	answer_sides[i] = SAND_SIDE_UNSURE;
	if (fits_floats(at) && find_nearest(at, -1.0lf, found))
	{
		precise double distance = sqrt(found.square);
		answers[i] = distance;
		answer_sides[i] = side_at(place, at, found);
	}
}
