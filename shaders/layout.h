// layout: what C and GLSL read alike: constants, and the structs that lie in buffers.
// C includes this file; every shader has it in front, with SAND_GLSL defined.
//
// A struct holds float, int32_t and uint32_t only, no vectors: then std430, std140 (one struct, no array of it) and C
// place every member at the same byte, without padding. Close each with the offset of its last member and its size:
//
//   SAND_STRUCT(SandExample)
//       float radius;   // m
//       uint32_t count;
//   SAND_STRUCT_END(SandExample)
//   SAND_OFFSET(SandExample, count, 4)
//   SAND_SIZE(SandExample, 8)
#ifndef SAND_LAYOUT_H
#define SAND_LAYOUT_H

#ifdef SAND_GLSL
#define uint32_t uint
#define int32_t int
#define SAND_STRUCT(name) struct name {
#define SAND_STRUCT_END(name) };
#define SAND_OFFSET(name, member, bytes)
#define SAND_SIZE(name, bytes)
#else
#include <stddef.h>
#include <stdint.h>
#define SAND_STRUCT(name) typedef struct name {
#define SAND_STRUCT_END(name) } name;
#define SAND_OFFSET(name, member, bytes)                                                                               \
	_Static_assert(offsetof(name, member) == (bytes), #name "." #member " is not where the shaders read it");
#define SAND_SIZE(name, bytes) _Static_assert(sizeof(name) == (bytes), #name " has another size in the shaders");
#endif

// Groups along one axis that every device takes (the least that GL 4.3 allows). More are folded into rows.
#define SAND_GROUP_LIMIT 65535

#endif
