# SPDX-License-Identifier: GPL-3.0-or-later
"""viewport: grains as lit spheres in the 3D view, straight from the cache.

Comes in: the arrays that playback holds for View: Spheres. Goes out: pixels with depth, by Blender's gpu module: one point
per grain, whose fragments meet the grain's spheres exactly. No geometry is built and nothing is drawn while a render runs.
Where the shader does not compile, or there are more grains than LIMIT, plain points are drawn instead.
"""

import bpy
import numpy as np

from . import engine, playback

LIMIT = 4_000_000  # grains that are drawn as spheres

TYPES = """
struct GrainView {
  mat4 view;
  mat4 projection;
  vec4 place;  /* x, y, width, height of the viewport in pixels */
  vec4 shape;  /* 1, bounding radius over sphere radius, spheres per grain, 1 for a view without perspective */
  vec4 offset[4];  /* of the spheres in units of the radius */
  vec4 colour[3];  /* dark, middle, bright */
};
"""

VERTEX = """
void main() {
  vec4 centre = grain_view.view * vec4(position, 1.0);
  gl_Position = grain_view.projection * centre;
  float away = grain_view.shape.w > 0.5 ? 1.0 : max(-centre.z, 1e-6);
  /* A ball seen off the axis is an ellipse up to 1/cos longer; 1.3 covers a view of 80 degrees. */
  gl_PointSize = clamp(1.3 * size * grain_view.shape.y * grain_view.projection[1][1] / away * grain_view.place.w + 2.0, 1.0, 2048.0);
  at = centre.xyz;
  quaternion = rotation;
  tint = shade;
  radius = size;
}
"""

FRAGMENT = """
vec3 turned(vec4 q, vec3 v) {
  vec3 t = 2.0 * cross(q.yzw, v);
  return v + q.x * t + cross(q.yzw, t);
}

void main() {
  vec2 p = (gl_FragCoord.xy - grain_view.place.xy) / grain_view.place.zw * 2.0 - 1.0;
  mat4 m = grain_view.projection;
  bool is_flat = grain_view.shape.w > 0.5;
  vec3 from = is_flat ? vec3((p.x - m[3][0]) / m[0][0], (p.y - m[3][1]) / m[1][1], at.z + 2.0 * radius * grain_view.shape.y) : vec3(0.0);
  vec3 along = is_flat ? vec3(0.0, 0.0, -1.0) : normalize(vec3((p.x + m[2][0]) / m[0][0], (p.y + m[2][1]) / m[1][1], -1.0));
  float nearest = 1e30;
  vec3 normal = vec3(0.0, 0.0, 1.0);
  int count = int(grain_view.shape.z);
  for (int i = 0; i < count; i++) {
    vec3 centre = at + mat3(grain_view.view) * turned(quaternion, grain_view.offset[i].xyz * radius);
    vec3 to = centre - from;
    float b = dot(to, along);
    vec3 off = to - b * along;
    float d = radius * radius - dot(off, off);
    if (d >= 0.0 && b - sqrt(d) < nearest && b - sqrt(d) > 0.0) {
      nearest = b - sqrt(d);
      normal = (from + nearest * along - centre) / radius;
    }
  }
  if (nearest > 1e29) {
    discard;
  }
  vec4 clip = m * vec4(from + nearest * along, 1.0);
  gl_FragDepth = clamp(0.5 * clip.z / clip.w + 0.5, 0.0, 1.0);
  vec3 up = mat3(grain_view.view) * vec3(0.0, 0.0, 1.0);
  vec3 key = normalize(vec3(-0.4, 0.55, 0.73));
  float light = 0.75 * max(dot(normal, key), 0.0) + 0.25 + 0.2 * dot(normal, up);
  vec3 half_way = normalize(key - along);
  float shine = 0.12 * pow(max(dot(normal, half_way), 0.0), 24.0);
  vec3 colour = tint < 0.5 ? mix(grain_view.colour[0].rgb, grain_view.colour[1].rgb, 2.0 * tint)
                           : mix(grain_view.colour[1].rgb, grain_view.colour[2].rgb, 2.0 * tint - 1.0);
  pixel = vec4(pow(max(colour * light + shine, vec3(0.0)), vec3(1.0 / 2.2)), 1.0);
}
"""

_handle = None
_shader = None
_has_failed = False
_batches = {}  # scene's session_uid -> (arrays, batch, is_spheres, shape)


def _make_shader():
    import gpu

    info = gpu.types.GPUShaderCreateInfo()
    info.typedef_source(TYPES)
    info.uniform_buf(0, "GrainView", "grain_view")
    info.vertex_in(0, "VEC3", "position")
    info.vertex_in(1, "VEC4", "rotation")
    info.vertex_in(2, "FLOAT", "shade")
    info.vertex_in(3, "FLOAT", "size")
    between = gpu.types.GPUStageInterfaceInfo("barchan_grain")
    between.flat("VEC3", "at")
    between.flat("VEC4", "quaternion")
    between.flat("FLOAT", "tint")
    between.flat("FLOAT", "radius")
    info.vertex_out(between)
    info.fragment_out(0, "VEC4", "pixel")
    if hasattr(info, "depth_write"):
        info.depth_write("ANY")
    info.vertex_source(VERTEX)
    info.fragment_source(FRAGMENT)
    return gpu.shader.create_from_info(info)


def shader():
    """The shader of the spheres, None where it does not compile."""
    global _shader, _has_failed
    if _shader is None and not _has_failed:
        try:
            _shader = _make_shader()
        except Exception as error:  # drivers and backends raise what they like; points are drawn instead
            _has_failed = True
            print(f"Barchan: grains are drawn as points, for this graphics driver refuses the spheres ({error})", flush=True)
    return _shader


def make_batch(arrays, ids, sizes, is_spheres):
    """The grains on the graphics card, one copy per column. sizes: sphere radius (m) of every grain."""
    import gpu

    keep = slice(None)
    flags = arrays.get("flags")
    if flags is not None:
        keep = (flags & playback.FLAGS_HIDDEN) == 0
    positions = np.ascontiguousarray(arrays["position"][keep], np.float32)
    layout = gpu.types.GPUVertFormat()
    columns = [("position" if is_spheres else "pos", positions, 3)]
    if is_spheres:
        turns = arrays.get("rotation")
        if turns is None:
            turns = np.tile(np.array([1, 0, 0, 0], np.float32), (len(arrays["position"]), 1))
        columns.append(("rotation", np.ascontiguousarray(turns[keep], np.float32), 4))
        columns.append(("shade", playback.shades(ids)[keep], 1))
        columns.append(("size", np.ascontiguousarray(sizes[keep], np.float32), 1))
    for name, _array, width in columns:
        layout.attr_add(id=name, comp_type="F32", len=width, fetch_mode="FLOAT")
    buffer = gpu.types.GPUVertBuf(layout, len(positions))
    for name, array, _width in columns:
        buffer.attr_fill(name, array)
    return gpu.types.GPUBatch(type="POINTS", buf=buffer)


def draw_batch(batch, is_spheres, view, projection, place, shape, colours):
    """Draws into what is bound. view, projection: 4x4 row by row; place: x, y, width, height of the viewport in pixels;
    colours: three linear RGB."""
    import gpu

    offsets = engine.core.tetrahedron(1.0) if shape == "TETRAHEDRON" else np.zeros((1, 3), np.float32)
    bound = 1.0 + float(np.linalg.norm(offsets, axis=1).max())
    gpu.state.depth_test_set("LESS_EQUAL")
    gpu.state.depth_mask_set(True)
    try:
        if not is_spheres:
            gpu.state.point_size_set(2.0)
            plain = gpu.shader.from_builtin("UNIFORM_COLOR")
            plain.uniform_float("color", (*(channel ** (1 / 2.2) for channel in colours[1]), 1.0))
            batch.draw(plain)
            return
        gpu.state.program_point_size_set(True)
        numbers = np.zeros(32 + 8 + 16 + 12, np.float32)
        numbers[0:16] = np.asarray(view, np.float32).T.ravel()
        numbers[16:32] = np.asarray(projection, np.float32).T.ravel()
        numbers[32:36] = place
        numbers[36:40] = 1.0, bound, len(offsets), float(abs(np.asarray(projection)[3][3]) > 0.5)
        for i, offset in enumerate(offsets):
            numbers[40 + 4 * i : 43 + 4 * i] = offset
        for i, colour in enumerate(colours):
            numbers[56 + 4 * i : 59 + 4 * i] = colour
        uniforms = gpu.types.GPUUniformBuf(gpu.types.Buffer("FLOAT", len(numbers), numbers))
        found = shader()
        found.bind()
        found.uniform_block("grain_view", uniforms)
        batch.draw(found)
    finally:
        gpu.state.program_point_size_set(False)
        gpu.state.point_size_set(1.0)
        gpu.state.depth_mask_set(False)
        gpu.state.depth_test_set("NONE")


def colours(scene):
    """Dark, middle and bright mineral of the sand that is set, as wet as it is."""
    from . import grains

    settings = scene.barchan_look
    stops = grains.SANDS[settings.sand]
    wet = 1.0 - 0.5 * settings.wet
    return [tuple(channel * wet for channel in stops[index][1]) for index in (1, len(stops) // 2, -1)]


def is_active(scene):
    """True when the view is ours to draw: something is there and no render runs."""
    if playback._renders or bpy.app.is_job_running("RENDER"):
        return False
    ob = playback.carrier(scene)
    return scene.session_uid in playback.drawn and ob is not None and ob.visible_get()


def draw():
    """Once per 3D view and redraw."""
    import gpu

    context = bpy.context
    scene = context.scene
    if scene is None or not is_active(scene):
        return
    arrays = playback.drawn[scene.session_uid]
    known = _batches.get(scene.session_uid)
    if known is None or known[0] is not arrays:
        is_spheres = len(arrays["position"]) <= LIMIT and shader() is not None
        ids = np.arange(len(arrays["position"]), dtype=np.int32) * np.int32(playback.view_step(scene))
        sizes, shape = playback.drawn_sizes(scene)
        if len(sizes) != len(ids):  # the carrier is not the cache's any more
            return
        known = _batches[scene.session_uid] = (arrays, make_batch(arrays, ids, sizes, is_spheres), is_spheres, shape)
    region = context.region_data
    draw_batch(
        known[1], known[2], region.view_matrix, region.window_matrix, gpu.state.viewport_get(), known[3], colours(scene)
    )


def register():
    global _handle
    if _handle is None and not bpy.app.background:
        _handle = bpy.types.SpaceView3D.draw_handler_add(draw, (), "WINDOW", "POST_VIEW")


def unregister():
    global _handle, _shader, _has_failed
    if _handle is not None:
        bpy.types.SpaceView3D.draw_handler_remove(_handle, "WINDOW")
        _handle = None
    _shader, _has_failed = None, False
    _batches.clear()
