// 82_spheres: the sphere that a ray through the pixel's centre meets: exact normal and depth, also at the edge of the
// view (Longmore 2009, 5.1, has a disc instead). With SAND_ROUGH the grain is the sphere cut by planes.
// In: the sphere, its traits, View. Out: normal and depth, colour and gloss (1 = a glint).
#include "light.glsl"

flat in vec4 ball;
flat in uvec4 grain;
layout(location = 0) out vec4 surface;
layout(location = 1) out vec4 paint;

#ifdef SAND_ROUGH
// Directions to the corners of an icosahedron: 12 cuts, each at its own distance by four bits of the seed.
const float A = 0.525731112, B = 0.850650808;
const vec3 cuts[12] = vec3[12](vec3(0, A, B), vec3(0, A, -B), vec3(0, -A, B), vec3(0, -A, -B), vec3(A, B, 0),
                               vec3(A, -B, 0), vec3(-A, B, 0), vec3(-A, -B, 0), vec3(B, 0, A), vec3(-B, 0, A),
                               vec3(B, 0, -A), vec3(-B, 0, -A));
#endif

void main()
{
	vec3 from, along;
	sand_ray(gl_FragCoord.xy, from, along);
	float r = ball.w;
	vec3 centre = ball.xyz - from;
	float length2 = dot(along, along);
	float middle = dot(centre, along) / length2;
	vec3 aside = centre - middle * along;
	float half2 = (r * r - dot(aside, aside)) / length2;
	if (half2 < 0.0)
	{
		discard;
	}
	float first = -sqrt(half2); // from the middle, in depths
	vec3 normal = (first * along - aside) / r;
#ifdef SAND_ROUGH
	if ((grain.w & 1u) != 0u)
	{
		vec4 turn = sand_turn(grain.y);
		vec3 axis = sand_rotate_back(turn, sand_to_world(along));
		vec3 place = sand_rotate_back(turn, sand_to_world(-aside));
		vec3 flank = vec3(0.0);
		float last = -first;
		uint low = sand_mix(grain.x), high = sand_mix(low);
		for (int i = 0; i < 12; ++i)
		{
			uint bits = (i < 8 ? low >> (4 * i) : high >> (4 * (i - 8))) & 15u;
			float room = r * (0.70 + 0.022 * float(bits)) - dot(cuts[i], place);
			float slope = dot(cuts[i], axis);
			float meet = room / (abs(slope) < 1e-9 ? 1e-9 : slope);
			bool enters = slope < 0.0;
			flank = enters && meet > first ? cuts[i] : flank;
			first = enters ? max(first, meet) : first;
			last = enters ? last : min(last, meet);
		}
		if (first > last)
		{
			discard;
		}
		if (flank != vec3(0.0))
		{
			// Broken faces are not polished: between the face and the ball that it was cut from.
			vec3 face = sand_to_eye(sand_rotate(turn, flank));
			normal = normalize(0.75 * face + 0.25 * (first * along - aside) / r);
		}
	}
#endif
	float depth = middle + first;
	if (depth < view.range.x)
	{
		discard;
	}
	surface = vec4(sand_to_world(normal), depth);
	paint = unpackUnorm4x8(grain.z);
	gl_FragDepth = sand_depth(depth);
}
