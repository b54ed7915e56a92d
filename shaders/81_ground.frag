// 81_ground: the plane that the sand lies on.
// In: a ray per fragment, View, Shade.ground. Out: normal and depth, colour; nothing above the horizon.
#include "light.glsl"
#include "shade.glsl"

layout(location = 0) out vec4 surface;
layout(location = 1) out vec4 paint;

void main()
{
	vec3 from, along;
	sand_ray(gl_FragCoord.xy, from, along);
	float rise = dot(shade.ground.xyz, along);
	float depth = (shade.ground.w - dot(shade.ground.xyz, from)) / rise;
	if (!(depth > view.range.x) || depth > view.range.y)
	{
		discard;
	}
	surface = vec4(sand_to_world(shade.ground.xyz * (rise < 0.0 ? 1.0 : -1.0)), depth);
	paint = vec4(shade.ground_colour.rgb, 0.05);
	gl_FragDepth = sand_depth(depth);
}
