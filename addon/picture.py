# SPDX-License-Identifier: GPL-3.0-or-later
"""picture: the open scene -> what the core's Light draws: camera, sun, sky, meshes. For `python -m barchan preview FILE.blend`.

Comes in: a scene and the frame it is on. Goes out: plain arrays and numbers. Main thread. Grains come from the cache, not from
here. One sun is drawn: the strongest light of the scene, taken as so far away that its rays are parallel.
"""

import math

import bpy
import numpy as np

from . import engine, export, playback

SEEN_TYPES = {"MESH", "CURVE", "SURFACE", "META", "FONT"}
UNSEEN_ROLES = {"SAND", "EMITTER", "OUTFLOW"}  # marks for the bake, not things
GREY = (0.5, 0.5, 0.5)
OTHERS_SHARE = 0.25  # of what other lights give to a surface that faces them: most surfaces face away


def camera_numbers(scene, depsgraph, size):
    """13 numbers for Light.draw and whether it is orthographic; None where the scene has no camera."""
    ob = scene.camera
    if ob is None or ob.type != "CAMERA":
        return None
    evaluated = ob.evaluated_get(depsgraph)
    width, height = size
    projection = np.array(
        evaluated.calc_matrix_camera(
            depsgraph, x=width, y=height, scale_x=scene.render.pixel_aspect_x, scale_y=scene.render.pixel_aspect_y
        )
    )
    is_parallel = ob.data.type == "ORTHO"
    place, rotation, _scale = evaluated.matrix_world.decompose()
    lens = 1.0 / projection[0, 0], 1.0 / projection[1, 1]
    shift = (projection[0, 3], projection[1, 3]) if is_parallel else (-projection[0, 2], -projection[1, 2])
    clip = ob.data.clip_start, ob.data.clip_end
    return np.array([*place, *rotation, *lens, *shift, *clip], np.float32), is_parallel


def sun_numbers(scene, depsgraph, target):
    """7 numbers for Light.draw: direction, irradiance, angle of the strongest light at the target, None without lights; and the
    radiance that stands for all the others, as if it came from everywhere above."""
    found = []
    for ob in scene.objects:
        if ob.type != "LIGHT" or ob.hide_render:
            continue
        lamp, matrix = ob.data, np.array(ob.evaluated_get(depsgraph).matrix_world, float)
        back = matrix[:3, 2] / max(np.linalg.norm(matrix[:3, 2]), 1e-12)
        if lamp.type == "SUN":
            direction, strength, angle = back, lamp.energy, lamp.angle
        else:
            way = matrix[:3, 3] - target
            distance = max(float(np.linalg.norm(way)), 1e-3)
            direction = way / distance
            # Watts all around, or, of a face, by the cosine to its normal.
            strength = lamp.energy / (4 * math.pi * distance**2)
            if lamp.type == "AREA":
                strength *= 4 * max(float(direction @ back), 0.0)
            size = lamp.size if lamp.type == "AREA" else 2 * lamp.shadow_soft_size
            angle = 2 * math.atan2(0.5 * size, distance)
        colour = strength * 2.0 ** getattr(lamp, "exposure", 0.0) * np.array(lamp.color)
        found.append((float(colour.sum()), len(found), direction, colour, min(angle, 0.6)))
    if not found:
        return None, np.zeros(3)
    found.sort(reverse=True)
    _strength, _number, direction, colour, angle = found[0]
    others = sum((one[3] for one in found[1:]), np.zeros(3))
    return np.array([*direction, *colour, angle], np.float32), OTHERS_SHARE * others / math.pi


def sky_colours(scene):
    """Radiance from above and from below: the world's colour, or a clear day's where it is a picture."""
    world = scene.world
    if world is None:
        return np.full(3, 0.05), np.full(3, 0.03)
    colour = np.array(world.color)
    if world.node_tree is not None:
        node = next((one for one in world.node_tree.nodes if one.type == "BACKGROUND"), None)
        if node is not None:
            socket = node.inputs["Color"]
            colour = np.array((0.30, 0.38, 0.50) if socket.is_linked else socket.default_value[:3])
            colour = colour * node.inputs["Strength"].default_value
    return colour, 0.6 * colour


def _input(node, *names):
    for name in names:
        socket = node.inputs.get(name)
        if socket is not None:
            return None if socket.is_linked else socket.default_value
    return None


def paint_of(ob, slot):
    """Linear colour and gloss (4 numbers) of a material slot, and whether one sees through it."""
    if ob.display_type in {"WIRE", "BOUNDS"}:
        return (*GREY, 0.1), True
    material = ob.material_slots[slot].material if slot < len(ob.material_slots) else None
    if material is None:
        return (*GREY, 0.1), False
    colour, gloss, is_clear = tuple(material.diffuse_color[:3]), 0.15, material.diffuse_color[3] < 0.5
    for node in material.node_tree.nodes if material.node_tree is not None else ():
        if node.type == "BSDF_PRINCIPLED":
            base = _input(node, "Base Color")
            colour = tuple(base[:3]) if base is not None else colour
            roughness = _input(node, "Roughness")
            gloss = 0.5 * (1.0 - roughness) if roughness is not None else gloss
            through = _input(node, "Transmission Weight", "Transmission") or 0.0
            alpha = _input(node, "Alpha")
            is_clear = is_clear or through > 0.5 or (alpha is not None and alpha < 0.5)
        elif node.type in {"BSDF_GLASS", "BSDF_TRANSPARENT", "BSDF_REFRACTION"}:
            is_clear = True
        elif node.type in {"BSDF_DIFFUSE", "BSDF_GLOSSY"}:
            base = _input(node, "Color")
            colour = tuple(base[:3]) if base is not None else colour
    return (*colour, gloss), is_clear


def seen_meshes(scene, depsgraph):
    """Every object that a render would show, but the sand: tuples for Light.draw."""
    found = []
    sand = playback.carrier(scene)
    for ob in scene.objects:
        if ob.type not in SEEN_TYPES or ob == sand or ob.hide_render or ob.barchan.type in UNSEEN_ROLES:
            continue
        surface = export.read_surface(ob, depsgraph)
        if surface is None or not np.isfinite(surface[0]).all():
            continue
        vertices, triangles, slots, is_smooth = surface
        for slot in np.unique(slots):
            paint, is_clear = paint_of(ob, int(slot))
            part = triangles if (slots == slot).all() else np.ascontiguousarray(triangles[slots == slot])
            found.append((vertices, part, (0, 0, 0, 1, 0, 0, 0), paint, is_smooth, is_clear))
    return found


class Picture:
    """The scene frame by frame, with grains of its cache."""

    def __init__(self, scene, folder, arguments):
        self.scene, self.arguments = scene, arguments
        preview = engine.core.preview
        radius, shape = arguments.radius, arguments.shape
        frames = preview.Frames(folder, radius, shape, scene.barchan.body_count if arguments.skip is None else arguments.skip)
        if frames.note and radius is None:  # frames of an older version: the carrier knows
            radius, baked_shape = playback.baked_size(scene)
            frames = preview.Frames(folder, radius, shape or baked_shape.lower(), frames.skip)
        self.frames = frames
        low, high = frames.bounds(frames.numbers)
        self.target, self.reach = 0.5 * (low + high), float(np.linalg.norm(high - low))
        self.low, self.high = low, high

    def arguments_of(self, number):
        """Keyword arguments of Light.draw for a frame; the scene is on it afterwards."""
        scene, arguments, preview = self.scene, self.arguments, engine.core.preview
        command = engine.core.preview_command
        scene.frame_set(number)
        depsgraph = bpy.context.evaluated_depsgraph_get()
        aspect = arguments.size[0] / arguments.size[1]
        found = None if arguments.camera is not None else camera_numbers(scene, depsgraph, arguments.size)
        if found is not None:
            camera, is_parallel = found
        else:
            is_parallel = False
            if isinstance(arguments.camera, tuple):
                camera = preview.make_camera(arguments.camera[:3], arguments.camera[3:], aspect, self.reach)
            else:
                camera = preview.frame_camera(self.low, self.high, aspect, command.VIEWS[arguments.camera or "corner"])
        sun, others = (None, np.zeros(3)) if arguments.light is not None else sun_numbers(scene, depsgraph, self.target)
        if sun is None:
            sun = command.sun_of(arguments)
        sky, floor = sky_colours(scene)
        return {
            "camera": camera,
            "orthographic": is_parallel,
            "sun": sun,
            "sky": tuple(sky + others),
            "floor": tuple(floor + 0.5 * others),
            "meshes": seen_meshes(scene, depsgraph),
            "exposure": 2.0**scene.view_settings.exposure,
            "wetness": arguments.wet,
            "round": arguments.round,
            "shadows": not arguments.no_shadows,
            **self.frames.read(number),
        }


def draw(scene, folder, arguments, progress, is_stopped):
    """Draws the frames that are asked for. -> the report."""
    core = engine.core
    picture = Picture(scene, folder, arguments)
    numbers = core.preview_command.choose_numbers(picture.frames.numbers, arguments)
    light = core.Light(*arguments.size, arguments.samples, 0, arguments.device)
    fps = arguments.fps or scene.render.fps / scene.render.fps_base
    frame = scene.frame_current
    try:
        return core.preview.run(
            light, numbers, arguments.out, picture.arguments_of, arguments.animation, fps, progress, is_stopped
        )
    finally:
        scene.frame_set(frame)
