// 88_resolve: samples -> pixels: each through a film-like curve, their mean, then sRGB.
// In: radiance per sample, Shade.sun_colour.w (exposure), Shade.size.z (samples along an edge). Out: bytes of the picture, opaque.
#include "light.glsl"
#include "shade.glsl"

layout(binding = 0) uniform sampler2D radiances;
layout(location = 0) out vec4 pixel;

// A shoulder and a toe, per channel (Narkowicz 2015).
vec3 film(vec3 x)
{
	return clamp(x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14), 0.0, 1.0);
}

void main()
{
	int edge = int(shade.size.z + 0.5);
	ivec2 first = ivec2(gl_FragCoord.xy) * edge;
	vec3 sum = vec3(0.0);
	for (int y = 0; y < edge; ++y)
	{
		for (int x = 0; x < edge; ++x)
		{
			sum += film(texelFetch(radiances, first + ivec2(x, y), 0).rgb * shade.sun_colour.w);
		}
	}
	vec3 mean = sum / float(edge * edge);
	vec3 bent = 1.055 * pow(mean, vec3(1.0 / 2.4)) - 0.055;
	pixel = vec4(mix(12.92 * mean, bent, greaterThan(mean, vec3(0.0031308))), 1.0);
}
