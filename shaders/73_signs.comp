// 73_signs: on which side of the mesh nodes are, as far as they know it themselves or from their neighbours; the twin of
// finish in csrc/rows.c and find_signs in csrc/field.c. In: squares, heights. Out: distances in voxels in place of the
// squares; a code per node: its side, or the node whose side is its own; the list of the nodes to be asked for.
// Groups of 64: a brick, eight nodes each; distances and numbers in shared memory, barriers between the rounds. The
// list's order is that of atomics; nothing depends on it.
//
// Nodes whose distances sum up to more than what lies between them have no surface between them. The processor walks
// through such nodes one after the other, from the lowest number on; what it finds is that all that hang together take
// the side that the lowest of them has which knows one, or which is asked. So here the lowest number goes around
// until nothing changes, in any order.
layout(local_size_x = 64) in;
layout(location = 0) uniform uint brick_count;
#define USE_SQUARES
#define USE_HEIGHTS
#define USE_CODES
#include "field.glsl"

const int NOBODY = 1 << 20;
const float EDGE_STEP = 1.41421356;
const float CORNER_STEP = 1.73205081;

shared float distances[512];
shared int sides[512];  // SAND_SIDE_OUT, SAND_SIDE_IN; SAND_SIDE_NONE not known; -1 need not be known
shared int numbers[512];
shared uint is_changed;

// Steps to the neighbours, in the order of the processor's.
const ivec3 steps[26] = ivec3[26](
    ivec3(1, 0, 0), ivec3(-1, 0, 0), ivec3(0, 1, 0), ivec3(0, -1, 0), ivec3(0, 0, 1), ivec3(0, 0, -1),
    ivec3(1, 1, 0), ivec3(1, -1, 0), ivec3(-1, 1, 0), ivec3(-1, -1, 0), ivec3(1, 0, 1), ivec3(1, 0, -1),
    ivec3(-1, 0, 1), ivec3(-1, 0, -1), ivec3(0, 1, 1), ivec3(0, 1, -1), ivec3(0, -1, 1), ivec3(0, -1, -1),
    ivec3(1, 1, 1), ivec3(1, 1, -1), ivec3(1, -1, 1), ivec3(1, -1, -1), ivec3(-1, 1, 1), ivec3(-1, 1, -1),
    ivec3(-1, -1, 1), ivec3(-1, -1, -1));

// The neighbour at a step when nothing can lie between the two, else -1.
int linked(int node, int step)
{
	ivec3 at = ivec3(node & 7, node >> 3 & 7, node >> 6) + steps[step];
	if (((at.x | at.y | at.z) & ~7) != 0)
	{
		return -1;
	}
	int other = 64 * at.z + 8 * at.y + at.x;
	precise float size = step < 6 ? 1.0 : step < 18 ? EDGE_STEP : CORNER_STEP;
	precise float sum = distances[node] + distances[other], least = size * 1.00001;
	return sum > least ? other : -1;
}

// The side of the first neighbour that knows one.
int side_of_neighbours(int node)
{
	for (int i = 0; i < 26; ++i)
	{
		int other = linked(node, i);
		if (other >= 0 && sides[other] > 0)
		{
			return sides[other];
		}
	}
	return SAND_SIDE_NONE;
}

void meet()
{
	memoryBarrierShared();
	barrier();
}

// The lowest number of all unknown nodes that hang together, for each of them.
void carry_numbers(int first)
{
	bool is_going = true;
	while (is_going)
	{
		meet();
		if (first == 0)
		{
			is_changed = 0u;
		}
		meet();
		for (int node = first; node < 512; node += 64)
		{
			if (sides[node] != SAND_SIDE_NONE)
			{
				continue;
			}
			int least = numbers[node];
			for (int i = 0; i < 26; ++i)
			{
				int other = linked(node, i);
				if (other >= 0 && sides[other] == SAND_SIDE_NONE && numbers[other] < least)
				{
					least = numbers[other];
				}
			}
			if (least < numbers[node])
			{
				numbers[node] = least;
				is_changed = 1u;
			}
		}
		meet();
		is_going = is_changed != 0u;
	}
}

void main()
{
	uint brick = sand_group();
	int first = int(gl_LocalInvocationID.x);
	if (brick >= brick_count)
	{
		return;
	}
	bool is_clean = field.is_clean != 0;
	for (int node = first; node < 512; node += 64)
	{
		uint at = 512u * brick + uint(node);
		precise float distance = sqrt(squares[at]);
		bool is_near = distance < field.band;
		distances[node] = is_near ? distance : field.band;
		squares[at] = distances[node];
		float height = heights[at];
		int side = height > 0.0 ? SAND_SIDE_OUT : height < 0.0 ? SAND_SIDE_IN : SAND_SIDE_NONE;
		sides[node] = !is_clean ? SAND_SIDE_NONE : is_near ? side : -1;
	}
	meet();
	for (int node = first; node < 512; node += 64)
	{
		bool is_source = is_clean ? sides[node] == SAND_SIDE_NONE && side_of_neighbours(node) != SAND_SIDE_NONE
		                          : distances[node] < field.band;
		numbers[node] = is_source ? node : NOBODY;
	}
	carry_numbers(first);
	int found[8];
	for (int k = 0; k < 8; ++k)
	{
		int node = first + 64 * k, source = numbers[node];
		found[k] = is_clean && sides[node] == SAND_SIDE_NONE && source < NOBODY ? side_of_neighbours(source) : SAND_SIDE_NONE;
	}
	meet();
	for (int k = 0; k < 8 && is_clean; ++k)
	{
		int node = first + 64 * k;
		if (found[k] != SAND_SIDE_NONE)
		{
			sides[node] = found[k];
		}
		else if (sides[node] == SAND_SIDE_NONE)
		{
			numbers[node] = node;
		}
	}
	if (is_clean)
	{
		carry_numbers(first);
	}
	for (int node = first; node < 512; node += 64)
	{
		uint at = 512u * brick + uint(node);
		bool is_asked = sides[node] == SAND_SIDE_NONE && numbers[node] < NOBODY;
		codes[at] = is_asked ? SAND_SIDE_OF + numbers[node] : max(sides[node], 0);
		if (is_asked && numbers[node] == node)
		{
			asked[atomicAdd(asked_count, 1u)] = at;
		}
	}
}
