// 83_mesh: triangles of bodies and colliders.
// In: place and normal in eye space, colour. Out: their places in the window.
#include "light.glsl"

layout(location = 0) in vec4 place;
layout(location = 1) in vec3 normal;
layout(location = 2) in uint colour;
out vec3 eye;
out vec3 across;
flat out uint tint;

void main()
{
	float d = -place.z, n = view.range.x, f = view.range.y;
	bool is_parallel = sand_is_parallel();
	float w = is_parallel ? 1.0 : d;
	float z = is_parallel ? 2.0 * (d - n) / (f - n) - 1.0 : ((f + n) * d - 2.0 * f * n) / (f - n);
	gl_Position = vec4(place.xy / view.lens.xy + view.lens.zw * w, z, w);
	eye = place.xyz;
	across = normal;
	tint = colour;
}
