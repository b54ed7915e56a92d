// shade: the light of a picture. csrc/light.c holds the twin of Shade.

layout(std140, binding = 1) uniform Shade
{
	vec4 sun;           // direction to the sun, in eye space; w: half its angle, rad
	vec4 sun_colour;    // irradiance; w: exposure
	vec4 sky;           // radiance from above; w: 1 = there is a sky to see
	vec4 floor_light;   // radiance from below; w: m per texel of the shadow map
	vec4 up;            // direction, in eye space; w: m, how far shadows are blurred
	vec4 ground;        // normal and height of the plane, in eye space
	vec4 ground_colour; // w: radius of a grain, m
	vec4 shadow_x, shadow_y, shadow_z; // eye space -> place in the shadow map and depth there, 0 to 1
	vec4 size;          // width and height of the picture, samples along one edge of a pixel, farthest reach of occlusion, m
	vec4 switches;      // x: shadows, y: occlusion, z: something is clear, w: seed of the samples
	vec4 field_low;     // first corner of the field, from the eye, along the world's axes; w: m per cell
	vec4 field_size;    // cells
	vec4 field_colour;
} shade;
