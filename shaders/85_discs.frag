// 85_discs: a sphere in the shadow map: the flat disc through its centre across the light (Longmore 2009, 5.2). For everything
// outside the sphere that is exact: what lies behind the disc lies behind the sphere, and the sphere's own lit half lies
// before it, so that no grain shades itself. Its depth is that of the corners, so that hidden discs are left early.
// In: the sphere, View. Out: depth alone.
#include "light.glsl"

flat in vec4 ball;
flat in uvec4 grain;

void main()
{
	vec3 from, along;
	sand_ray(gl_FragCoord.xy, from, along);
	vec2 aside = from.xy - ball.xy;
	if (dot(aside, aside) > ball.w * ball.w)
	{
		discard;
	}
}
