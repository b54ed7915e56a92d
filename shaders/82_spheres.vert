// 82_spheres: one sphere as one point, or, with SAND_QUADS, as two triangles that hold all of its picture: a point
// vanishes with its centre and has a largest size. With SAND_DISCS its corners lie at the depth of its centre.
// In: centre and radius in eye space (m); seed, turn, colour, kind. Out: a square about the sphere's picture.
//
// The picture of a sphere is no circle. Its bounds along an axis are where the tangents through the eye meet depth 1:
// (x d -+ r sqrt(x^2 + d^2 - r^2)) / (d^2 - r^2).
#include "light.glsl"

layout(location = 0) in vec4 sphere;
layout(location = 1) in uvec4 traits;
flat out vec4 ball;
flat out uvec4 grain;

vec2 bounds(float x, float d, float r, float extent, float shift)
{
	vec2 ends = vec2(x - r, x + r);
	if (!sand_is_parallel())
	{
		float side = r * sqrt(max(x * x + d * d - r * r, 0.0));
		ends = (x * d + vec2(-side, side)) / (d * d - r * r);
	}
	return ends / extent + shift;
}

void main()
{
	float d = -sphere.z, r = sphere.w;
	vec2 across = vec2(-1.0, 1.0), high = vec2(-1.0, 1.0);
	if (sand_is_parallel() || d > 1.001 * r)
	{
		across = bounds(sphere.x, d, r, view.lens.x, view.lens.z);
		high = bounds(sphere.y, d, r, view.lens.y, view.lens.w);
	}
#ifdef SAND_QUADS
	// One pixel wider all around, so that a fragment on the very edge is asked.
	vec2 pixel = 2.0 / view.range.zw;
	int corner = gl_VertexID % 3 + (gl_VertexID < 3 ? 0 : 1);
	float x = (corner & 1) == 0 ? max(across.x - pixel.x, -1.0) : min(across.y + pixel.x, 1.0);
	float y = (corner & 2) == 0 ? max(high.x - pixel.y, -1.0) : min(high.y + pixel.y, 1.0);
	gl_Position = vec4(x, y, 0.0, 1.0);
	gl_PointSize = 1.0;
#else
	vec2 size = vec2(across.y - across.x, high.y - high.x) * 0.5 * view.range.zw;
	gl_Position = vec4(0.5 * (across.x + across.y), 0.5 * (high.x + high.y), 0.0, 1.0);
	gl_PointSize = max(size.x, size.y) + 1.0;
#endif
#ifdef SAND_DISCS
	gl_Position.z = 2.0 * sand_depth(d) - 1.0;
#endif
	ball = sphere;
	grain = traits;
}
