// field: what the passes of the distance field share: the grid, its bricks and the steps between neighbouring nodes.
#ifndef SAND_FIELD_GLSL
#define SAND_FIELD_GLSL

layout(std430, binding = SAND_BIND_FIELD) readonly buffer FieldBlock
{
	SandGlField field;
};
#ifdef USE_BRICKS
layout(std430, binding = SAND_BIND_FIELD_BRICKS) readonly buffer BrickBlock
{
	uvec2 bricks[]; // first record, counted from that of the batch's first; number in the grid. One more closes them
};
#endif
#ifdef USE_SQUARES
layout(std430, binding = SAND_BIND_FIELD_SQUARES) buffer SquareBlock
{
	float squares[];
};
#endif
#ifdef USE_HEIGHTS
layout(std430, binding = SAND_BIND_FIELD_HEIGHTS) buffer HeightBlock
{
	float heights[];
};
#endif
#ifdef USE_CODES
layout(std430, binding = SAND_BIND_FIELD_CODES) buffer CodeBlock
{
	int codes[];
};
layout(std430, binding = SAND_BIND_FIELD_ASKED) buffer AskedBlock
{
	uint asked_count;
	uint unsure_count;
	uint asked[]; // numbers of nodes in the batch, in no order
};
#endif

// Bricks along x and y of the one with this number.
uvec3 brick_place(uint key)
{
	uint columns = uint(field.bricks[0]), rows = uint(field.bricks[1]);
	return uvec3(key % columns, key / columns % rows, key / columns / rows);
}

// Corner of a triangle, in voxels from the first node; v in m.
dvec3 field_corner(dvec3 v)
{
	precise dvec3 at = (v - dvec3(field.origin[0], field.origin[1], field.origin[2])) * field.inverse_voxel;
	return at;
}
#endif
