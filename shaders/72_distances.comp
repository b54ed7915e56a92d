// 72_distances: how far the nodes of each brick are from the triangles that may reach it; the twin of take in
// csrc/rows.c, same bits. In: views of the batch's records, bricks; location 0 the first record of this part, 1 the end,
// 2 the number of bricks, 3 of the first one. Out: per node the least square and the height over the nearest face. What
// lies there already counts: a brick with more records than fit is looked at in parts.
// Groups of 64: a layer of a brick; a row of eight is a vector of llvmpipe. Rows that a triangle is far from are passed
// over together. Records come in ascending triangles, and only a nearer one takes a node: so of two as near the lower
// number has it. No barrier inside; one before 73.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint record_first;
layout(location = 1) uniform uint record_end;
layout(location = 2) uniform uint brick_count;
layout(location = 3) uniform uint brick_first;
#define USE_BRICKS
#define USE_SQUARES
#define USE_HEIGHTS
#include "field.glsl"

layout(std430, binding = SAND_BIND_FIELD_VIEWS) readonly buffer ViewBlock
{
	vec4 views[];
};

vec4 inwards_of(uint at, float rise_y, float rise_z)
{
	precise vec4 inwards_z = views[at + 8u] + views[at + 5u] * rise_z, inwards = inwards_z + views[at + 4u] * rise_y;
	return inwards;
}

// Whether a row may have a node in the band: not when it is out of the triangle's rows, or all lie out over one edge, or
// all over or all under the face, by more than the band.
bool is_row_near(uint at, uint y, uint z, vec4 inwards)
{
	uint range = uint(views[at + 6u].w);
	vec4 reach = field.band + 0.001 + 3.5 * abs(views[at + 3u]);
	return y >= (range & 15u) && y < (range >> 4 & 15u) && z >= (range >> 8 & 15u) && z < range >> 12 &&
	       inwards.x >= -reach.x && inwards.y >= -reach.y && inwards.z >= -reach.z && inwards.w >= -reach.w &&
	       inwards.w <= reach.w;
}

void main()
{
	uint group = sand_group(), brick = brick_first + group / 8u, local = gl_LocalInvocationID.x;
	if (brick >= brick_count)
	{
		return;
	}
	uint y = local / 8u, z = group % 8u, node = 512u * brick + 64u * z + local;
	uint first = max(bricks[brick].x, record_first), end = min(bricks[brick + 1u].x, record_end);
	precise float x = float(local % 8u) - 3.5, rise_y = float(y) - 3.5, rise_z = float(z) - 3.5;
	float known = squares[node], known_height = heights[node];
	for (uint record = first; record < end; ++record)
	{
		uint at = 9u * (record - record_first);
		vec4 inwards = inwards_of(at, rise_y, rise_z);
		while (!is_row_near(at, y, z, inwards))
		{
			++record;
			if (record >= end)
			{
				break;
			}
			at = 9u * (record - record_first);
			inwards = inwards_of(at, rise_y, rise_z);
		}
		if (record >= end)
		{
			break;
		}
		vec4 along_x = views[at], across_x = views[at + 3u];
		precise vec4 ahead_z = views[at + 2u] * rise_z, ahead = ahead_z + views[at + 1u] * rise_y;
		precise vec4 before = views[at + 6u] - ahead, past = views[at + 7u] + ahead;
		precise vec4 step = along_x * x, in_all = inwards + across_x * x;
		precise vec4 low = before - step, high = past + step;
		float least = 3.402823466e38;
		bool is_beside = views[at + 7u].w != 0.0;
		for (int i = 0; i < 3; ++i)
		{
			precise float beyond = low[i] > high[i] ? low[i] : high[i];
			beyond = beyond > 0.0 ? beyond : 0.0;
			precise float square = beyond * beyond + in_all[i] * in_all[i];
			least = square < least ? square : least;
			is_beside = is_beside || floatBitsToInt(in_all[i]) < 0;
		}
		precise float height = in_all.w, plane = height * height, beside = plane + least;
		precise float square = is_beside ? beside : plane;
		if (square < known)
		{
			known = square;
			known_height = is_beside ? 0.0 : height;
		}
	}
	squares[node] = known;
	heights[node] = known_height;
}
