// 84_field: the surface where a field of distances is zero, ray-cast (Longmore 2009, 6.4): what shows between the particles
// is not covered.
// In: a ray per fragment, the distances, View, Shade.field_*. Out: normal and depth, colour; nothing beside the field.
#include "light.glsl"
#include "shade.glsl"

layout(binding = 4) uniform sampler3D distances;
layout(location = 0) out vec4 surface;
layout(location = 1) out vec4 paint;

float distance_at(vec3 cell)
{
	return texture(distances, (cell + 0.5) / (shade.field_size.xyz + 1.0)).r;
}

void main()
{
	vec3 from, along;
	sand_ray(gl_FragCoord.xy, from, along);
	float spacing = shade.field_low.w;
	// In cells of the field, by depth.
	vec3 start = (sand_to_world(from) - shade.field_low.xyz) / spacing, way = sand_to_world(along) / spacing;
	vec3 safe = mix(way, vec3(1e-9), lessThan(abs(way), vec3(1e-9)));
	vec3 one = -start / safe, other = (shade.field_size.xyz - start) / safe;
	vec3 enter = min(one, other), leave = max(one, other);
	float depth = max(max(enter.x, enter.y), max(enter.z, view.range.x));
	float end = min(min(leave.x, leave.y), min(leave.z, view.range.y));
	float per_depth = length(way) * spacing; // m of the ray per m of depth
	float before = 0.0, last = depth;
	bool is_hit = false;
	for (int i = 0; i < 400 && depth < end && !is_hit; ++i)
	{
		float now = distance_at(start + depth * way);
		if (now <= 0.0)
		{
			depth = i == 0 ? depth : mix(last, depth, before / max(before - now, 1e-12));
			is_hit = true;
		}
		else
		{
			before = now;
			last = depth;
			depth += max(0.9 * now, 0.2 * spacing) / per_depth;
		}
	}
	if (!is_hit)
	{
		discard;
	}
	vec3 cell = start + depth * way;
	vec3 slope = vec3(distance_at(cell + vec3(0.5, 0, 0)) - distance_at(cell - vec3(0.5, 0, 0)),
	                  distance_at(cell + vec3(0, 0.5, 0)) - distance_at(cell - vec3(0, 0.5, 0)),
	                  distance_at(cell + vec3(0, 0, 0.5)) - distance_at(cell - vec3(0, 0, 0.5)));
	surface = vec4(normalize(slope + vec3(0.0, 0.0, 1e-12)), depth);
	paint = vec4(shade.field_colour.rgb, 0.1);
	gl_FragDepth = sand_depth(depth);
}
