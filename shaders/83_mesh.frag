// 83_mesh: the surface of a body or collider, seen from either side.
// In: place and normal in eye space, colour. Out: normal towards the eye and depth, colour and gloss.
#include "light.glsl"

in vec3 eye;
in vec3 across;
flat in uint tint;
layout(location = 0) out vec4 surface;
layout(location = 1) out vec4 paint;

void main()
{
	vec3 ray = sand_is_parallel() ? vec3(0.0, 0.0, -1.0) : eye;
	vec3 normal = normalize(across);
	normal = dot(normal, ray) > 0.0 ? -normal : normal;
	surface = vec4(sand_to_world(normal), -eye.z);
	paint = unpackUnorm4x8(tint);
}
