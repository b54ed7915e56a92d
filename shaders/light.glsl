// light: what the shaders that draw share: the view, its rays and depths, and hashes. Eye space: x right, y up, looking
// along -z; depth is the distance along -z, in m. csrc/light.c holds the twin of View.

layout(std140, binding = 0) uniform View
{
	vec4 right, up, back; // axes of the eye in the world
	vec4 lens;            // half width and half height at depth 1 (orthographic: m), then the shift of the axis, 1 = half a picture
	vec4 range;           // nearest and farthest depth, m; width and height of the target, pixels
	vec4 kind;            // x: 1 = orthographic; y: share of a whole turn by which samples are turned
} view;

bool sand_is_parallel()
{
	return view.kind.x > 0.5;
}

// The ray through a place of the window (pixels): from * 1 + along * depth.
void sand_ray(vec2 place, out vec3 from, out vec3 along)
{
	vec2 slope = (2.0 * place / view.range.zw - 1.0 - view.lens.zw) * view.lens.xy;
	from = sand_is_parallel() ? vec3(slope, 0.0) : vec3(0.0);
	along = sand_is_parallel() ? vec3(0.0, 0.0, -1.0) : vec3(slope, -1.0);
}

vec3 sand_place(vec2 window, float depth)
{
	vec3 from, along;
	sand_ray(window, from, along);
	return from + depth * along;
}

// Where a place of eye space lies in the window, -1 to 1.
vec2 sand_window(vec3 place)
{
	return place.xy / (sand_is_parallel() ? 1.0 : max(-place.z, 1e-9)) / view.lens.xy + view.lens.zw;
}

// 0 nearest to 1 farthest, as the depth image holds it.
float sand_depth(float depth)
{
	float n = view.range.x, f = view.range.y;
	return sand_is_parallel() ? (depth - n) / (f - n) : f * (depth - n) / (depth * (f - n));
}

vec3 sand_to_world(vec3 eye)
{
	return view.right.xyz * eye.x + view.up.xyz * eye.y + view.back.xyz * eye.z;
}

vec3 sand_to_eye(vec3 world)
{
	return vec3(dot(view.right.xyz, world), dot(view.up.xyz, world), dot(view.back.xyz, world));
}

uint sand_mix(uint i)
{
	i = (i ^ (i >> 16)) * 0x7feb352du;
	i = (i ^ (i >> 15)) * 0x846ca68bu;
	return i ^ (i >> 16);
}

float sand_unit(uint bits)
{
	return float(bits >> 8) * (1.0 / 16777216.0);
}

// Quaternion w x y z in four signed bytes.
vec4 sand_turn(uint word)
{
	return normalize(unpackSnorm4x8(word) + vec4(1e-6, 0.0, 0.0, 0.0));
}

vec3 sand_rotate(vec4 q, vec3 v)
{
	return v + 2.0 * cross(q.yzw, cross(q.yzw, v) + q.x * v);
}

vec3 sand_rotate_back(vec4 q, vec3 v)
{
	return sand_rotate(vec4(q.x, -q.yzw), v);
}
