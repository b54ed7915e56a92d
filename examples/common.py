# SPDX-License-Identifier: GPL-3.0-or-later
"""What the examples share: geometry, marks, looks, and the run from a built scene to its bake, stills and figures.

An example is a module with EXAMPLE, an `Example`, and `main(EXAMPLE)` at its end:

    python examples/NAME.py --out out/NAME [--small] [--zip dist/barchan-VERSION.zip]

Runs with any Python that has bpy. The add-on comes from the zip, from an installed extension, or from the source tree
beside this file. Leaves in the folder NAME.blend with its cache, stills as PNG and NAME.json, the figures of the bake.
The same bake is not made twice: a run with the same settings takes the cache that is there.
"""

import argparse
import collections.abc
import contextlib
import csv
import dataclasses
import hashlib
import importlib
import importlib.util
import json
import math
import os
import pathlib
import resource
import sys
import time
import types

FPS = 24
GROUND_COLOUR = (0.12, 0.13, 0.14)
# m^3 per tetrahedral grain in units of the sphere radius^3 at the start of a bake: hexagonal close packing with the
# add-on's spacing of 2.05 bounding radii. Sand at rest needs about half of it.
BOUND = 1 + math.sqrt(1.5)  # bounding radius of a tetrahedral grain in sphere radii
FILL_VOLUME = (2.05 * BOUND) ** 3 / math.sqrt(2)


class Stop(Exception):
    """Ends the run with one sentence."""


# ---------------------------------------------------------------------------------------------------------------------
# Terminal


class Bar:
    """Progress with time left: one line that is rewritten, or a line now and then when the output goes to a file."""

    def __init__(self, label, total, stream):
        self.label, self.total, self.stream = label, total, stream
        self.start = time.monotonic()
        self.last = -1e9
        self.done = 0
        self.show()

    def advance(self):
        self.done += 1
        self.show()

    def show(self):
        elapsed = time.monotonic() - self.start
        is_finished = self.done >= self.total
        filled = round(30 * self.done / self.total)
        note = ""
        if is_finished:
            note = f", {duration(elapsed)}"
        elif self.done:
            note = f", {duration(elapsed / self.done * (self.total - self.done))} left"
        line = f"[{'#' * filled}{'.' * (30 - filled)}] {self.label} {self.done}/{self.total}{note}"
        if self.stream.isatty():
            self.stream.write("\r\x1b[K" + line + ("\n" if is_finished else ""))
        elif is_finished or time.monotonic() - self.last > 10:
            self.last = time.monotonic()
            self.stream.write(line + "\n")
        self.stream.flush()


def duration(seconds):
    seconds = int(seconds + 0.5)
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60:02d} s"


@contextlib.contextmanager
def quiet(log):
    """Blender's own lines go to the log; yields a stream that still reaches the terminal."""
    sys.stdout.flush()
    kept = os.dup(1)
    terminal = os.fdopen(os.dup(kept), "w")
    with open(log, "a") as target:
        os.dup2(target.fileno(), 1)
    try:
        yield terminal
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        terminal.close()


# ---------------------------------------------------------------------------------------------------------------------
# The add-on


def enable_addon(archive):
    """Enables Barchan and returns its package name."""
    import addon_utils
    import bpy

    extension = "bl_ext.user_default.barchan"
    if archive:
        bpy.ops.extensions.package_install_files(
            filepath=os.path.abspath(archive), repo="user_default", enable_on_install=True
        )
    try:
        is_installed = importlib.util.find_spec(extension) is not None
    except ModuleNotFoundError:
        is_installed = False
    if is_installed:
        addon_utils.enable(extension)
        package = extension
    else:
        folder = pathlib.Path(__file__).resolve().parents[1] / "addon"
        package = "barchan_addon"
        spec = importlib.util.spec_from_file_location(
            package, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if not folder.is_dir():
            raise Stop(f"The Barchan extension is not installed and there is no {folder}; give --zip")
        sys.modules[package] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[package])
        sys.modules[package].register()
    engine = importlib.import_module(package + ".engine")
    if engine.core is None:
        raise Stop(engine.problem)
    return package


# ---------------------------------------------------------------------------------------------------------------------
# Looks


def new_material(name):
    """Material with an empty node tree and its output node."""
    import bpy

    material = bpy.data.materials.new(name)
    if material.node_tree is None:
        material.use_nodes = True
    material.node_tree.nodes.clear()
    return material, material.node_tree, material.node_tree.nodes.new("ShaderNodeOutputMaterial")


def plain_material(name, colour, roughness, metallic=0.0):
    material, tree, output = new_material(name)
    shader = tree.nodes.new("ShaderNodeBsdfPrincipled")
    shader.inputs["Base Color"].default_value = (*colour, 1.0)
    shader.inputs["Roughness"].default_value = roughness
    shader.inputs["Metallic"].default_value = metallic
    tree.links.new(shader.outputs[0], output.inputs["Surface"])
    material.diffuse_color = (*colour, 1.0)
    return material


def add_light(name, location, target, size, power, colour=(1.0, 1.0, 1.0)):
    import bpy
    import mathutils

    data = bpy.data.lights.new(name, "AREA")
    data.shape = "RECTANGLE"
    data.size, data.size_y = size
    data.energy = power
    data.color = colour
    ob = bpy.data.objects.new(name, data)
    ob.location = location
    ob.rotation_euler = (mathutils.Vector(target) - ob.location).to_track_quat("-Z", "Y").to_euler()
    bpy.context.scene.collection.objects.link(ob)
    return ob


def set_render(scene, size, samples, is_fast=False):
    """Cycles; is_fast trades some of the denoiser's quality for half its time."""
    scene.render.engine = "CYCLES"
    scene.render.resolution_x, scene.render.resolution_y = size
    scene.render.resolution_percentage = 100
    scene.render.use_persistent_data = True
    scene.render.use_lock_interface = True
    scene.cycles.samples = samples
    scene.cycles.use_adaptive_sampling = not is_fast
    scene.cycles.adaptive_threshold = 0.05
    scene.cycles.use_light_tree = False  # five lights: sampling them all is faster than choosing
    scene.cycles.max_bounces = 3
    scene.cycles.diffuse_bounces = 2
    scene.cycles.glossy_bounces = 2
    scene.cycles.transparent_max_bounces = 8
    scene.cycles.caustics_reflective = False
    scene.cycles.caustics_refractive = False
    scene.cycles.use_denoising = True
    try:
        scene.cycles.denoiser = "OPENIMAGEDENOISE"
        scene.cycles.denoising_prefilter = "FAST" if is_fast else "ACCURATE"
    except TypeError:  # a Blender built without it
        scene.cycles.use_denoising = False
    scene.view_settings.view_transform = "AgX"
    scene.view_settings.look = "AgX - Medium High Contrast"


# ---------------------------------------------------------------------------------------------------------------------
# Geometry. Metres, z upwards.


def add_mesh(name, vertices, faces, material=None, location=(0.0, 0.0, 0.0), is_smooth=False):
    import bpy

    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(vertices, [], faces)
    mesh.polygons.foreach_set("use_smooth", [is_smooth] * len(mesh.polygons))
    mesh.update()
    if material is not None:
        mesh.materials.append(material)
    return add_copy(name, mesh, location)


def add_copy(name, mesh, location=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, 0.0)):
    """Another object of the same mesh; rotation in Euler angles."""
    import bpy

    ob = bpy.data.objects.new(name, mesh)
    ob.location = location
    ob.rotation_euler = rotation
    bpy.context.scene.collection.objects.link(ob)
    return ob


def box_mesh(low, high):
    """Vertices and faces of a closed box, faces outwards."""
    vertices = [(x, y, z) for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])]
    return vertices, [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


def add_box(name, size, location=(0.0, 0.0, 0.0), material=None):
    """A closed box about its middle."""
    half = [length / 2 for length in size]
    vertices, faces = box_mesh([-length for length in half], half)
    return add_mesh(name, vertices, faces, material, location)


def add_boxes(name, boxes, material=None):
    """Closed boxes, each (low, high), as one object."""
    return add_mesh(name, *joined(box_mesh(low, high) for low, high in boxes), material)


def joined(parts):
    """Vertices and faces of several meshes as one."""
    vertices, faces = [], []
    for part_vertices, part_faces in parts:
        faces += [tuple(corner + len(vertices) for corner in face) for face in part_faces]
        vertices += part_vertices
    return vertices, faces


def add_grid_floor(name, low, high, material=None, height=0.0):
    """A flat rectangle between two corners (x, y)."""
    (x0, y0), (x1, y1) = low, high
    corners = [(x0, y0, height), (x1, y0, height), (x1, y1, height), (x0, y1, height)]
    return add_mesh(name, corners, [(0, 1, 2, 3)], material)


def add_tray(name, size, floor_material, wall_material):
    """Floor and four thin walls, open at the top: size (x, y, z), the floor's middle at the origin."""
    import bpy

    x, y, z = size[0] / 2, size[1] / 2, size[2]
    corners = [(-x, -y), (x, -y), (x, y), (-x, y)]
    vertices = [(a, b, c) for c in (0.0, z) for a, b in corners]
    faces = [(0, 1, 2, 3)] + [(k, (k + 1) % 4, 4 + (k + 1) % 4, 4 + k) for k in range(4)]
    ob = add_mesh(name, vertices, faces, floor_material)
    ob.data.materials.append(wall_material)
    ob.data.polygons.foreach_set("material_index", [0, 1, 1, 1, 1])
    only_for_the_camera(ob)
    bpy.context.view_layer.update()
    return ob


def add_ball(name, radius, location=(0.0, 0.0, 0.0), material=None, segments=48):
    rings = segments // 2
    angles = [math.pi * k / rings for k in range(rings + 1)]
    profile = [(radius * math.sin(a), -radius * math.cos(a)) for a in angles]
    profile[0], profile[-1] = (0.0, -radius), (0.0, radius)
    ob = add_revolved(name, profile, segments)
    ob.location = location
    if material is not None:
        ob.data.materials.append(material)
    return ob


def revolved(profile, segments=96, is_closed=False):
    """Vertices and faces of a profile of (radius, height) turned about z; points on the axis become one vertex each."""
    vertices, faces, rings = [], [], []
    for radius, height in profile:
        if radius < 1e-9:
            rings.append([len(vertices)] * segments)
            vertices.append((0.0, 0.0, height))
        else:
            rings.append(list(range(len(vertices), len(vertices) + segments)))
            for k in range(segments):
                angle = 2 * math.pi * k / segments
                vertices.append((radius * math.cos(angle), radius * math.sin(angle), height))
    pairs = list(zip(rings, rings[1:])) + ([(rings[-1], rings[0])] if is_closed else [])
    for lower, upper in pairs:
        for k in range(segments):
            n = (k + 1) % segments
            corners = tuple(dict.fromkeys((lower[k], lower[n], upper[n], upper[k])))
            if len(corners) > 2:
                faces.append(corners)
    return vertices, faces


def add_revolved(name, profile, segments=96, is_closed=False, material=None):
    vertices, faces = revolved(profile, segments, is_closed)
    return add_mesh(name, vertices, faces, material, is_smooth=True)


def torus_profile(major, minor, count):
    """For revolved(..., is_closed=True), anticlockwise so that faces look outwards."""
    angles = [2 * math.pi * k / count for k in range(count)]
    return [(major + minor * math.cos(a), minor * math.sin(a)) for a in angles]


def fill_height(grain_count, radius, size):
    """Height (m) of a box with the floor size (x, y) in which a bake finds room for about so many tetrahedral grains:
    centres stay a bounding radius inside the mesh."""
    bound = BOUND * radius
    return grain_count * FILL_VOLUME * radius**3 / ((size[0] - 2 * bound) * (size[1] - 2 * bound)) + 2 * bound


# ---------------------------------------------------------------------------------------------------------------------
# Marks and motion


def new_scene(frame_count, settings):
    """An empty file with the frame range and what `Scene.barchan` is set to."""
    import bpy

    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True, load_ui=False)
    scene = bpy.context.scene
    scene.render.fps = FPS
    scene.frame_start, scene.frame_end = 1, frame_count
    scene.barchan.folder = "//cache/"
    scene.barchan.seed = 1
    assign(scene.barchan, settings)
    return scene


def assign(target, values):
    """Sets properties by name; a name that is not there is our mistake."""
    for name, value in values.items():
        if not hasattr(target, name):
            raise Stop(f"This Barchan has no setting '{name}'; use the example that came with it")
        setattr(target, name, value)


def mark(objects, kind, **values):
    """Gives one object or several their Barchan type through the operator, and its settings."""
    import bpy

    objects = list(objects) if isinstance(objects, collections.abc.Iterable) else [objects]
    for other in bpy.context.scene.objects:
        other.select_set(False)
    for ob in objects:
        ob.select_set(True)
    bpy.ops.barchan.set_type(type=kind)
    for ob in objects:
        assign(ob.barchan, values)
        ob.select_set(False)
    return objects


def animate(ob, path, keys):
    """Keyframes {frame: value} of a property, straight between them."""
    for frame, value in keys.items():
        setattr(ob, path, value)
        ob.keyframe_insert(path, frame=frame)
    data = ob.animation_data
    if hasattr(data.action, "fcurves"):
        curves = data.action.fcurves
    else:  # Blender 5.0 and later
        curves = data.action.layers[0].strips[0].channelbag(data.action_slot).fcurves
    for curve in curves:
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"


# ---------------------------------------------------------------------------------------------------------------------
# The stage


def glass_material(name="Glass", edge=0.75):
    """Thin glass: light goes straight through, the rim reflects and darkens a little."""
    material, tree, output = new_material(name)
    nodes, link = tree.nodes, tree.links.new
    weight = nodes.new("ShaderNodeLayerWeight")
    weight.inputs["Blend"].default_value = 0.28
    ramp = nodes.new("ShaderNodeMapRange")
    ramp.inputs["To Min"].default_value = 0.025
    ramp.inputs["To Max"].default_value = edge
    clear = nodes.new("ShaderNodeBsdfTransparent")
    clear.inputs["Color"].default_value = (0.955, 0.975, 0.97, 1.0)
    shine = nodes.new("ShaderNodeBsdfGlossy")
    shine.inputs["Roughness"].default_value = 0.03
    mix = nodes.new("ShaderNodeMixShader")
    link(weight.outputs["Facing"], ramp.inputs["Value"])
    link(ramp.outputs[0], mix.inputs[0])
    link(clear.outputs[0], mix.inputs[1])
    link(shine.outputs[0], mix.inputs[2])
    link(mix.outputs[0], output.inputs["Surface"])
    material.diffuse_color = (0.8, 0.9, 0.95, 0.15)
    return material


def only_for_the_camera(ob):
    """Light reaches the sand as through real thin glass, and shadow rays cost half."""
    ob.visible_shadow = ob.visible_diffuse = ob.visible_glossy = False


def add_world(scene, colour=(0.55, 0.62, 0.70), strength=0.35):
    import bpy

    world = bpy.data.worlds.new("World")
    scene.world = world
    if world.node_tree is None:
        world.use_nodes = True
    background = next(node for node in world.node_tree.nodes if node.type == "BACKGROUND")
    background.inputs["Color"].default_value = (*colour, 1.0)
    background.inputs["Strength"].default_value = strength


def add_camera(scene, location, target, lens=50.0):
    import bpy
    import mathutils

    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.data.lens = lens
    camera.location = location
    camera.rotation_euler = (mathutils.Vector(target) - camera.location).to_track_quat("-Z", "Y").to_euler()
    scene.collection.objects.link(camera)
    scene.camera = camera
    return camera


def add_stage(scene, extent, camera, target, lens=50.0, height=0.0):
    """A wide ground a little below height, for looks only, two lights and a sky for things of this extent (m), and the
    camera."""
    wide = 20 * extent
    ground = plain_material("Ground", GROUND_COLOUR, 0.85)
    add_grid_floor("Backdrop", (-wide, -wide), (wide, wide), ground, height - 0.002 * extent)
    middle = (target[0], target[1], height)
    x, y, _z = middle

    def place(dx, dy, dz):
        return (x + dx * extent, y + dy * extent, height + dz * extent)

    add_light("Key", place(-1.3, -1.2, 1.9), middle, (extent, extent), 85 * extent**2, (1.0, 0.95, 0.88))
    add_light("Fill", place(1.9, -1.0, 1.1), middle, (1.3 * extent, 1.3 * extent), 24 * extent**2, (0.88, 0.94, 1.0))
    add_light("Rim", place(0.6, 2.0, 1.5), middle, (1.5 * extent, 0.6 * extent), 40 * extent**2, (0.95, 0.97, 1.0))
    add_world(scene)
    add_camera(scene, camera, target, lens)


# ---------------------------------------------------------------------------------------------------------------------
# Loads


def read_loads(cache, name):
    """[(seconds, (fx, fy, fz))] of one object from the cache's loads.csv."""
    rows = []
    with open(cache / "loads.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["object"] == name:
                rows.append((float(row["seconds"]), tuple(float(row[key]) for key in ("fx", "fy", "fz"))))
    return rows


def tick_step(span):
    """1, 2 or 5 times a power of ten, for four to nine ticks."""
    power = 10.0 ** math.floor(math.log10(max(span, 1e-12) / 4))
    return next(factor * power for factor in (1, 2, 5, 10) if span / (factor * power) <= 9)


def write_plot(path, title, x_label, y_label, lines):
    """A small SVG line plot; lines is {label: [(x, y), ...]}."""
    width, height, left, right, top, bottom = 480, 270, 56, 12, 26, 40
    points = [point for line in lines.values() for point in line]
    x0, x1 = min(x for x, _ in points), max(x for x, _ in points)
    y0, y1 = min(0.0, min(y for _, y in points)), max(0.0, max(y for _, y in points))
    x1, y1 = max(x1, x0 + 1e-9), max(y1, y0 + 1e-9)

    def place(x, y):
        return (
            left + (x - x0) / (x1 - x0) * (width - left - right),
            height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom),
        )

    middle_x, middle_y = (left + width - right) / 2, (top + height - bottom) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"',
        '     font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="16" font-size="13">{title}</text>',
        f'<text x="{middle_x:.0f}" y="{height - 6}" text-anchor="middle">{x_label}</text>',
        f'<text transform="translate(12 {middle_y:.0f}) rotate(-90)" text-anchor="middle">{y_label}</text>',
    ]
    for low, high, is_x in ((x0, x1, True), (y0, y1, False)):
        step = tick_step(high - low)
        for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
            value = k * step
            ax, ay = place(value, y0) if is_x else place(x0, value)
            bx, by = place(value, y1) if is_x else place(x1, value)
            parts.append(f'<path d="M{ax:.1f} {ay:.1f}L{bx:.1f} {by:.1f}" stroke="#ddd"/>')
            dx, dy, anchor = (0, 14, "middle") if is_x else (-4, 4, "end")
            parts.append(f'<text x="{ax + dx:.1f}" y="{ay + dy:.1f}" text-anchor="{anchor}">{value:g}</text>')
    for index, (label, line) in enumerate(lines.items()):
        colour = ("#b03a2e", "#1f618d", "#1e8449", "#7d6608")[index % 4]
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{left + 8}" y="{top + 14 + 14 * index}" fill="{colour}">{label}</text>')
    path.write_text("\n".join(parts + ["</svg>"]) + "\n", encoding="utf-8")


# ---------------------------------------------------------------------------------------------------------------------
# The run


@dataclasses.dataclass(frozen=True)
class Example:
    """build(scene, size) makes the scene in the open Blender file; size is full or small as a namespace, and holds
    frames, stills (frames to render) and settings (of Scene.barchan) besides what the build reads. after(folder, scene,
    size) may write more into the folder; movie(folder, scene, is_small) makes what --movie asks for."""

    name: str
    build: collections.abc.Callable
    full: dict
    small: dict
    after: collections.abc.Callable = None
    movie: collections.abc.Callable = None
    picture: tuple = (384, 216)
    samples: int = 48

    def size(self, is_small):
        """small says only what differs from full, in its settings too."""
        small = self.small if is_small else {}
        merged = {**self.full, **small}
        merged["settings"] = {**self.full["settings"], **small.get("settings", {})}
        return types.SimpleNamespace(**merged)

    def make(self, is_small):
        """The scene, built and marked, not baked."""
        import bpy

        size = self.size(is_small)
        scene = new_scene(size.frames, size.settings)
        self.build(scene, size)
        bpy.context.view_layer.update()
        return scene


def job_digest(value):
    """Hash of a job: changes whenever the bake would."""
    import numpy

    digest = hashlib.sha256()

    def add(part):
        if dataclasses.is_dataclass(part):
            for field in dataclasses.fields(part):
                if field.name not in ("folder", "threads", "uid"):
                    digest.update(field.name.encode())
                    add(getattr(part, field.name))
        elif isinstance(part, numpy.ndarray):
            digest.update(repr((part.shape, part.dtype.str)).encode() + part.tobytes())
        elif isinstance(part, dict):
            add(sorted(part.items()))
        elif isinstance(part, (list, tuple)):
            digest.update(str(len(part)).encode())
            for item in part:
                add(item)
        else:
            digest.update(repr(part).encode())

    add(value)
    return digest.hexdigest()


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


class Counter:
    """Follows the bake under way for the figures that its frames do not hold."""

    def __init__(self, room):
        self.room, self.info = room, {}

    def __enter__(self):
        counter, bar = self, self.room.TerminalBar

        class CountingBar(bar):
            def __call__(self, progress):
                counter.note()
                super().__call__(progress)

        self.kept = bar
        self.room.TerminalBar = CountingBar
        return self

    def __exit__(self, *_):
        self.room.TerminalBar = self.kept

    def note(self):
        sim = getattr(self.room.running, "_sim", None)
        if sim is not None:
            self.info = sim.info()


def memory_mib():
    """The most memory this process has ever held, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def bake(scene, package):
    """Bakes through the operator, as a user does; returns the figures."""
    import bpy

    before = memory_mib()
    start = time.monotonic()
    with Counter(importlib.import_module(package + ".bake")) as counter:
        result = bpy.ops.barchan.bake()
    seconds = time.monotonic() - start
    core = importlib.import_module(package + ".engine").core
    properties = importlib.import_module(package + ".properties")
    frames = core.list_frames(properties.cache_folder(scene))[0]
    if result != {"FINISHED"} or frames != list(range(scene.frame_start, scene.frame_end + 1)):
        raise Stop("The bake did not finish; run the same command again")
    bodies = sum(ob.barchan.type == "BODY" for ob in scene.objects)
    return {
        "grains": counter.info["grain_count"] - bodies,
        "spheres": counter.info["sphere_count"],
        "bodies": bodies,
        "frames": len(frames),
        "steps": counter.info["step_count"],
        "lost": counter.info["lost_count"],
        "bake_seconds": round(seconds, 1),
        "peak_mib": round(memory_mib()),
        "blender_mib": round(before),
    }


def render_frames(scene, targets, label, log):
    """Renders {frame: path} one by one, those that are not there; each file is whole or not there."""
    import bpy

    targets = {frame: path for frame, path in targets.items() if not path.exists()}
    if not targets:
        return
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGB"
    scene.render.image_settings.compression = 100
    with quiet(log) as terminal:
        bar = Bar(label, len(targets), terminal)
        for frame, path in targets.items():
            scene.frame_set(frame)
            partial = path.with_name("partial.png")
            scene.render.filepath = str(partial)
            bpy.ops.render.render(write_still=True)
            partial.replace(path)
            bar.advance()


def run(example, arguments):
    """From the example to its folder."""
    import bpy

    folder = pathlib.Path(arguments.out or f"out/{example.name}").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    log, blend, figures = folder / "blender.log", folder / f"{example.name}.blend", folder / f"{example.name}.json"
    package = enable_addon(arguments.zip)
    bpy.context.preferences.filepaths.save_version = 0  # no .blend1
    size = example.size(arguments.small)
    scene = example.make(arguments.small)
    known = read_json(figures)
    digest = job_digest(importlib.import_module(package + ".export").make_job(bpy.context))
    if known.get("job") == digest and blend.exists():
        with quiet(log):
            bpy.ops.wm.open_mainfile(filepath=str(blend))
        scene = bpy.context.scene
        print(f"Baked before: {known['frames']} frames of {known['grains']} grains and {known['bodies']} bodies")
    else:
        for path in [figures, *folder.glob("*.png"), *folder.glob("*.svg"), *folder.glob("*.mp4")]:
            path.unlink(missing_ok=True)
        with quiet(log):
            bpy.ops.wm.save_as_mainfile(filepath=str(blend))
        known = {"example": example.name, "is_small": arguments.small, **bake(scene, package), "job": digest}
        with quiet(log):
            bpy.ops.wm.save_mainfile()
        figures.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    if example.after:
        example.after(folder, scene, size)
    set_render(scene, example.picture, example.samples // (6 if arguments.small else 1), is_fast=True)
    stills = {frame: folder / f"still_{frame:03d}.png" for frame in size.stills}
    render_frames(scene, stills, "Rendering stills", log)
    if arguments.movie:
        example.movie(folder, scene, arguments.small)
    print(json.dumps(known))
    print(f"In {folder}:")
    for path in sorted(path for path in folder.iterdir() if path.suffix in (".blend", ".json", ".png", ".svg", ".mp4")):
        print(f"  {path.name}  {path.stat().st_size / 1e3:.0f} kB")


def main(example):
    parser = argparse.ArgumentParser(description=f"Bake and render the example {example.name} with Barchan.")
    parser.add_argument("--out", help=f"folder of the results (default: out/{example.name})")
    parser.add_argument("--small", action="store_true", help="few grains and frames, to try the whole way out")
    parser.add_argument("--zip", help="extension to install first")
    parser.add_argument("--movie", action="store_true", help="also larger stills and a movie, where there is one")
    arguments = parser.parse_args()
    if arguments.movie and not example.movie:
        parser.error("this example has no movie")
    code = 0
    try:
        run(example, arguments)
    except (Stop, RuntimeError, OSError) as error:
        print(f"{example.name}: {error}", file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        print(f"\n{example.name}: stopped; run the same command again to go on.", file=sys.stderr)
        code = 130
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Blender's own shutdown can hang
