// 86_shade: light of every sample: sun with filtered shadow, sky and floor with occlusion, gloss and glints.
// In: normal and depth, colour and gloss, the shadow map, the clear surfaces. Out: radiance; alpha: share of the sun that arrives
// there, -1 where there is no surface.
#include "light.glsl"
#include "shade.glsl"

layout(binding = 0) uniform sampler2D surfaces;
layout(binding = 1) uniform sampler2D paints;
layout(binding = 2) uniform sampler2DShadow shadows;
layout(binding = 3) uniform sampler2D clears;
layout(location = 0) out vec4 radiance;

const float PI = 3.14159265;
const float GOLDEN = 2.39996323; // rad: neighbours on a spiral of even density

float noise(uvec2 place, uint salt)
{
	return sand_unit(sand_mix(place.x + sand_mix(place.y + sand_mix(salt + uint(shade.switches.w)))));
}

// Share of the sun's disc that is not hidden: compared places on a disc as wide as the blur, turned per pixel.
float sunlight(vec3 place, vec3 normal, float turn)
{
	if (shade.switches.x < 0.5)
	{
		return 1.0;
	}
	vec4 at = vec4(place, 1.0);
	vec3 seen = vec3(dot(shade.shadow_x, at), dot(shade.shadow_y, at), dot(shade.shadow_z, at));
	vec2 per_m = vec2(length(shade.shadow_x.xyz), length(shade.shadow_y.xyz));
	vec2 rim = shade.up.w * per_m + 2.0 / vec2(textureSize(shadows, 0)); // beyond it the filter would look past the map
	if (any(lessThan(seen, vec3(rim, 0.0))) || any(greaterThan(seen, vec3(1.0 - rim, 1.0))))
	{
		return 1.0;
	}
	// Every place on the disc is compared with the surface's own plane there, a little nearer to the sun: as much as the plane
	// rises within a texel.
	float deep = length(shade.shadow_z.xyz);
	vec2 slope = vec2(dot(shade.shadow_x.xyz, normal), dot(shade.shadow_y.xyz, normal)) / per_m;
	slope /= max(dot(normal, shade.sun.xyz), 0.1);
	float reference = seen.z - deep * shade.floor_light.w * (0.5 + 0.75 * (abs(slope.x) + abs(slope.y)));
	float lit = 0.0;
	const int COUNT = 8;
	for (int i = 0; i < COUNT; ++i)
	{
		float angle = GOLDEN * float(i) + 2.0 * PI * turn;
		vec2 aside = shade.up.w * sqrt((float(i) + 0.5) / float(COUNT)) * vec2(cos(angle), sin(angle)); // m
		lit += texture(shadows, vec3(seen.xy + aside * per_m, reference + deep * dot(slope, aside)));
	}
	return lit / float(COUNT);
}

// Share of the sky that neighbours in the picture hide, on a spiral whose steps grow from a grain to the farthest reach.
float occlusion(vec3 place, vec3 normal, float depth, float turn)
{
	if (shade.switches.y < 0.5)
	{
		return 0.0;
	}
	float per_m = 0.5 * view.range.w / (view.lens.y * (sand_is_parallel() ? 1.0 : depth)); // pixels
	float small = max(0.5 * shade.ground_colour.w * per_m, 1.0), wide = max(shade.size.w * per_m, 2.0 * small);
	float hidden = 0.0, weight = 0.0;
	const int COUNT = 14;
	for (int i = 0; i < COUNT; ++i)
	{
		float share = (float(i) + turn) / float(COUNT);
		float reach = small * pow(wide / small, share);
		float angle = GOLDEN * float(i) + 2.0 * PI * fract(turn * 7.0);
		vec2 at = gl_FragCoord.xy + reach * vec2(cos(angle), sin(angle));
		at = clamp(at, vec2(0.5), view.range.zw - 0.5);
		float other = texelFetch(surfaces, ivec2(at), 0).w;
		vec3 way = sand_place(floor(at) + 0.5, other) - place;
		float distance2 = dot(way, way) + 1e-12;
		float limit = 2.5 * reach / per_m;
		float rise = max(dot(normal, way) * inversesqrt(distance2) - 0.08, 0.0);
		float nearness = other > 0.0 ? clamp(1.0 - distance2 / (limit * limit), 0.0, 1.0) : 0.0;
		float share_of = 1.0 - 0.5 * share; // what is near hides more
		hidden += share_of * rise * nearness;
		weight += share_of;
	}
	return clamp(2.6 * hidden / weight, 0.0, 1.0);
}

vec3 sky_towards(vec3 direction)
{
	float high = dot(direction, shade.up.xyz);
	return mix(shade.floor_light.rgb, shade.sky.rgb, smoothstep(-0.15, 0.35, high));
}

// Share that a surface of water or glass throws back (Schlick 1994).
float fresnel(float cosine, float straight)
{
	return straight + (1.0 - straight) * pow(clamp(1.0 - cosine, 0.0, 1.0), 5.0);
}

void main()
{
	ivec2 at = ivec2(gl_FragCoord.xy);
	vec4 surface = texelFetch(surfaces, at, 0);
	vec3 from, along;
	sand_ray(gl_FragCoord.xy, from, along);
	vec3 out_of = -normalize(along);
	float depth = surface.w;
	vec3 colour;
	float lit = -1.0;
	if (depth <= 0.0)
	{
		colour = sky_towards(-out_of);
	}
	else
	{
		vec4 paint = texelFetch(paints, at, 0);
		vec3 albedo = pow(paint.rgb, vec3(2.2));
		vec3 place = from + depth * along, normal = sand_to_eye(surface.xyz);
		float turn = noise(uvec2(at), 1u);
		float facing = dot(normal, shade.sun.xyz);
		lit = facing > 0.0 ? sunlight(place, normal, turn) : 0.0;
		float sky_share = 1.0 - occlusion(place, normal, depth, noise(uvec2(at), 2u));
		// Light that bounces between grains of one colour: brighter and warmer than black (after Jimenez 2016).
		vec3 bounced = sky_share / (1.0 - albedo * 0.8 * (1.0 - sky_share));
		float high = 0.5 + 0.5 * dot(normal, shade.up.xyz);
		vec3 around = mix(shade.floor_light.rgb, shade.sky.rgb, high);
		colour = albedo * (around * bounced + shade.sun_colour.rgb / PI * max(facing, 0.0) * lit);
		float gloss = min(paint.a, 0.9);
		bool glints = paint.a > 0.95;
		// Specular after Blinn 1977, normalised: broad for dry grains, tight for wet ones.
		vec3 halfway = normalize(shade.sun.xyz + out_of);
		float power = mix(12.0, 90.0, gloss);
		float straight = mix(0.02, 0.05, gloss);
		float bent = fresnel(max(dot(halfway, out_of), 0.0), straight);
		float spot = (power + 2.0) / 8.0 * pow(max(dot(normal, halfway), 0.0), power);
		spot = glints ? spot + 60.0 * pow(max(dot(normal, halfway), 0.0), 40.0) : spot;
		colour += shade.sun_colour.rgb / PI * max(facing, 0.0) * lit * bent * spot * mix(0.5, 1.0, gloss);
		float mirrored = fresnel(max(dot(normal, out_of), 0.0), straight) * gloss * sky_share;
		colour += mirrored * sky_towards(reflect(-out_of, normal));
	}
	if (shade.switches.z > 0.5)
	{
		vec4 clear = texelFetch(clears, at, 0);
		if (clear.w > 0.0 && (depth <= 0.0 || clear.w < depth))
		{
			vec3 normal = sand_to_eye(clear.xyz);
			float thrown = 2.0 * fresnel(max(dot(normal, out_of), 0.0), 0.04);
			float spot = pow(max(dot(normal, normalize(shade.sun.xyz + out_of)), 0.0), 400.0);
			colour = mix(0.96 * colour, sky_towards(reflect(-out_of, normal)), min(thrown, 1.0));
			colour += 4.0 * spot * shade.sun_colour.rgb / PI;
		}
	}
	radiance = vec4(colour, lit);
}
