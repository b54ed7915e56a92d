# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo: an hourglass built from Blender meshes, baked and rendered through the add-on.

    python examples/hourglass.py --out out/demo [--grains 20000] [--frames 144] [--zip dist/barchan-VERSION.zip]

Runs with any Python that has bpy. The add-on comes from the zip, from an installed extension, or from the source tree
beside this file. Leaves hourglass.blend with its cache, stills as PNG and hourglass.mp4 in the folder; what is there from
an earlier run with the same settings is kept.
"""

import argparse
import hashlib
import json
import math
import os
import pathlib
import shutil
import sys
import time

from common import Bar, Stop, add_light, duration, enable_addon, new_material, plain_material, quiet, set_render

FPS = 24

# Glass, in metres: two bulbs of this height and radius, joined by a neck whose width follows from the grain size.
BULB_HEIGHT = 0.30
BULB_RADIUS = 0.15
BULB_WIDEST = 0.19  # height above the neck where the bulb is widest
CAP_RADIUS = 0.085  # of the flat end that the wooden disc holds
DISC_RADIUS = 0.185
DISC_HEIGHT = 0.026
SAND_BOTTOM, SAND_TOP = 0.012, 0.285  # the sand's start, height above the neck

# A tetrahedron of four touching spheres flows like a sphere of this many sphere radii across.
GRAIN_DIAMETER = 3.3
# Neck width in grain diameters. Beverloo 1961: 0.58 sqrt(g / d) (D / d - 1.4)^2.5 grains per second.
NECK_DIAMETERS = 9.5
# m^3 per grain in units of the sphere radius^3: hexagonal close packing with the add-on's spacing of 2.05 bounding radii.
FILL_VOLUME = (2.05 * (1 + math.sqrt(1.5))) ** 3 / math.sqrt(2)

STILL_SIZE = (540, 810)
STILL_SAMPLES = 48
MOVIE_SIZE = (320, 480)
MOVIE_SAMPLES = 5


# ---------------------------------------------------------------------------------------------------------------------
# Geometry


def bezier(points, count):
    """count + 1 points of a cubic in the (radius, height) plane."""
    curve = []
    for index in range(count + 1):
        t = index / count
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        curve.append(tuple(sum(w * p[k] for w, p in zip(weights, points)) for k in range(2)))
    return curve


def bulb_profile(neck_radius, count=40):
    """(radius, height) from the neck up to the cap: funnel, belly, shoulder."""
    a, belly, top = neck_radius, BULB_WIDEST, BULB_HEIGHT
    funnel = bezier([(a, 0.0), (a, 0.13 * belly), (BULB_RADIUS, 0.50 * belly), (BULB_RADIUS, belly)], count)
    shoulder = bezier(
        [(BULB_RADIUS, belly), (BULB_RADIUS, belly + 0.62 * (top - belly)), (0.8 * BULB_RADIUS, top), (CAP_RADIUS, top)],
        count // 2,
    )
    return funnel + shoulder[1:]


def inset(profile, distance):
    """The profile moved inwards by distance (m), along its normals."""
    moved = []
    for index, (radius, height) in enumerate(profile):
        before = profile[max(index - 1, 0)]
        after = profile[min(index + 1, len(profile) - 1)]
        dr, dz = after[0] - before[0], after[1] - before[1]
        length = math.hypot(dr, dz)
        moved.append((radius - distance * dz / length, height + distance * dr / length))
    return moved


def sand_profile(neck_radius, distance):
    """Outline of the sand in the upper bulb, at least distance from the glass, from the axis round to the axis."""
    wall = []
    for radius, height in inset(bulb_profile(neck_radius), distance):
        if SAND_BOTTOM <= height <= SAND_TOP and radius > 0 and (not wall or height > wall[-1][1]):
            wall.append((radius, height))
    return [(0.0, wall[0][1])] + wall + [(0.0, wall[-1][1])]


def revolved_volume(profile):
    """m^3 of the solid of revolution under a profile: stacked cones."""
    return sum(
        math.pi / 3 * (r0 * r0 + r0 * r1 + r1 * r1) * (z1 - z0) for (r0, z0), (r1, z1) in zip(profile, profile[1:])
    )


def neck_radius_for(radius):
    """m; the wall's own spheres stand one radius into the neck."""
    return NECK_DIAMETERS / 2 * GRAIN_DIAMETER * radius + radius


def sphere_radius_for(grain_count):
    """Sphere radius (m) with which the upper bulb holds a little more than grain_count grains."""
    bound = 1 + math.sqrt(1.5)
    low, high = 1e-5, 0.05
    for _ in range(60):
        radius = (low + high) / 2
        room = 0.0
        if neck_radius_for(radius) < 0.6 * BULB_RADIUS:
            # Centres stay a bounding radius inside the sand mesh.
            outline = sand_profile(neck_radius_for(radius), 1.1 * radius + bound * radius)
            outline = [(r, min(z, SAND_TOP - bound * radius)) for r, z in outline]
            room = revolved_volume(outline) / (FILL_VOLUME * radius**3)
        low, high = (radius, high) if room > 1.02 * grain_count else (low, radius)
    return low


def add_revolved(name, profile, segments=96, is_closed=False):
    """A mesh of revolution about z; points on the axis become one vertex each."""
    import bpy

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
            corners = list(dict.fromkeys((lower[k], lower[n], upper[n], upper[k])))
            if len(corners) > 2:
                faces.append(corners)
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(vertices, [], faces)
    mesh.polygons.foreach_set("use_smooth", [True] * len(mesh.polygons))
    mesh.update()
    ob = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(ob)
    return ob


# ---------------------------------------------------------------------------------------------------------------------
# Looks


def glass_material():
    """Thin glass: light goes straight through, the rim reflects and darkens a little."""
    material, tree, output = new_material("Glass")
    nodes, link = tree.nodes, tree.links.new
    weight = nodes.new("ShaderNodeLayerWeight")
    weight.inputs["Blend"].default_value = 0.28
    ramp = nodes.new("ShaderNodeMapRange")
    ramp.inputs["To Min"].default_value = 0.025
    ramp.inputs["To Max"].default_value = 0.75
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


def wood_material():
    material, tree, output = new_material("Walnut")
    nodes, link = tree.nodes, tree.links.new
    place = nodes.new("ShaderNodeTexCoord")
    stretch = nodes.new("ShaderNodeMapping")
    stretch.inputs["Scale"].default_value = (28.0, 4.0, 28.0)
    noise = nodes.new("ShaderNodeTexNoise")
    noise.inputs["Scale"].default_value = 1.6
    noise.inputs["Detail"].default_value = 3.0
    noise.inputs["Distortion"].default_value = 1.2
    ramp = nodes.new("ShaderNodeValToRGB")
    ramp.color_ramp.elements[0].position = 0.35
    ramp.color_ramp.elements[0].color = (0.030, 0.011, 0.005, 1.0)
    ramp.color_ramp.elements[1].position = 0.68
    ramp.color_ramp.elements[1].color = (0.165, 0.068, 0.028, 1.0)
    shader = nodes.new("ShaderNodeBsdfPrincipled")
    shader.inputs["Roughness"].default_value = 0.32
    link(place.outputs["Object"], stretch.inputs["Vector"])
    link(stretch.outputs[0], noise.inputs["Vector"])
    link(noise.outputs[0], ramp.inputs[0])
    link(ramp.outputs["Color"], shader.inputs["Base Color"])
    link(shader.outputs[0], output.inputs["Surface"])
    material.diffuse_color = (0.16, 0.07, 0.03, 1.0)
    return material


def add_frame():
    """Wooden discs, three turned posts and brass rings: for looks only, the sand never meets them."""
    wood = wood_material()
    brass = plain_material("Brass", (0.72, 0.47, 0.18), 0.28, 1.0)
    edge = DISC_HEIGHT * 0.32
    disc = [(0.0, 0.0), (DISC_RADIUS - edge, 0.0)]
    disc += [
        (DISC_RADIUS - edge + edge * math.sin(a), edge - edge * math.cos(a)) for a in (k * math.pi / 12 for k in range(1, 7))
    ]
    disc += [
        (DISC_RADIUS - edge + edge * math.cos(a), DISC_HEIGHT - edge + edge * math.sin(a))
        for a in (k * math.pi / 12 for k in range(0, 7))
    ]
    disc += [(0.0, DISC_HEIGHT)]
    ring = [(CAP_RADIUS + 0.028 + 0.006 * math.cos(a), 0.006 * math.sin(a)) for a in (k * math.pi / 8 for k in range(16))]
    for sign in (-1, 1):
        part = add_revolved("Disc", disc)
        part.location.z = sign * BULB_HEIGHT - (DISC_HEIGHT if sign < 0 else 0.0)
        part.data.materials.append(wood)
        part = add_revolved("Ring", ring, is_closed=True)
        part.location.z = sign * (BULB_HEIGHT - 0.005)
        part.data.materials.append(brass)
    post = []
    steps = 64
    for index in range(steps + 1):
        share = index / steps
        height = -BULB_HEIGHT + 2 * BULB_HEIGHT * share
        beads = 0.0030 * math.exp(-(((abs(share - 0.5) - 0.36) / 0.016) ** 2)) + 0.0022 * math.exp(-((share - 0.5) / 0.022) ** 2)
        post.append((0.0062 + 0.0022 * math.sin(math.pi * share) ** 2 + beads, height))
    for index in range(3):
        angle = math.radians(90 + 120 * index)
        part = add_revolved("Post", post, segments=32)
        distance = DISC_RADIUS - 0.018
        part.location.x, part.location.y = distance * math.cos(angle), distance * math.sin(angle)
        part.data.materials.append(wood)


def add_stage(scene):
    """Ground that bends up into a backdrop, three lights, a dim world, the camera."""
    import bpy
    import mathutils

    floor_height = -BULB_HEIGHT - DISC_HEIGHT
    sweep = [(-3.0, 0.0), (1.0, 0.0)]
    sweep += [(1.0 + math.sin(a), 1.0 - math.cos(a)) for a in (k * math.pi / 32 for k in range(1, 17))]
    sweep += [(2.0, 5.0)]
    vertices = [(x, y, floor_height + z) for y, z in sweep for x in (-5.0, 5.0)]
    faces = [(2 * k, 2 * k + 1, 2 * k + 3, 2 * k + 2) for k in range(len(sweep) - 1)]
    mesh = bpy.data.meshes.new("Backdrop")
    mesh.from_pydata(vertices, [], faces)
    mesh.polygons.foreach_set("use_smooth", [True] * len(mesh.polygons))
    mesh.materials.append(plain_material("Backdrop", (0.115, 0.135, 0.155), 0.7))
    scene.collection.objects.link(bpy.data.objects.new("Backdrop", mesh))

    # Key and Fill would be mirrored in the glass right over the sand; Rim and Strip draw its outline instead.
    key = add_light("Key", (-0.95, -1.05, 0.95), (0, 0, -0.03), (0.55, 0.9), 32.0, (1.0, 0.94, 0.86))
    fill = add_light("Fill", (1.3, -1.3, 0.25), (0, 0, -0.1), (0.9, 0.9), 9.0, (0.92, 0.96, 1.0))
    key.visible_glossy = fill.visible_glossy = False
    add_light("Rim", (0.95, 0.75, 0.55), (0, 0, 0), (0.35, 0.9), 20.0, (0.86, 0.93, 1.0))
    add_light("Strip", (-1.1, 0.15, 0.1), (0, 0, 0), (0.12, 1.2), 7.0, (1.0, 0.97, 0.92))
    glow = add_light("Glow", (0.0, 0.75, 0.25), (0.0, 1.9, 0.15), (0.9, 0.9), 14.0, (0.95, 0.9, 0.82))
    glow.visible_camera = glow.visible_glossy = False

    world = bpy.data.worlds.new("World")
    scene.world = world
    if world.node_tree is None:
        world.use_nodes = True
    background = next(node for node in world.node_tree.nodes if node.type == "BACKGROUND")
    background.inputs["Color"].default_value = (0.55, 0.62, 0.70, 1.0)
    background.inputs["Strength"].default_value = 0.16

    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.data.lens = 70.0
    camera.data.sensor_fit = "VERTICAL"
    camera.data.sensor_height = 36.0
    camera.location = (0.0, -1.58, 0.13)
    aim = mathutils.Vector((0.0, 0.0, -0.005)) - camera.location
    camera.rotation_euler = aim.to_track_quat("-Z", "Y").to_euler()
    scene.collection.objects.link(camera)
    scene.camera = camera


def build(frame_count, grain_count):
    """The scene, marked through the add-on's operators."""
    import bpy

    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True, load_ui=False)
    scene = bpy.context.scene
    scene.render.fps = FPS
    scene.frame_start, scene.frame_end = 1, frame_count
    radius = sphere_radius_for(grain_count)
    neck = neck_radius_for(radius)

    upper = bulb_profile(neck)
    lower = [(r, -z) for r, z in reversed(upper)]
    glass = add_revolved("Glass", [(0.0, -BULB_HEIGHT)] + lower[:-1] + upper + [(0.0, BULB_HEIGHT)])
    glass.data.materials.append(glass_material())
    # Only the camera sees the glass: light reaches the sand as through real thin glass, and shadow rays cost half.
    glass.visible_shadow = glass.visible_diffuse = glass.visible_glossy = False
    sand = add_revolved("Sand", sand_profile(neck, 1.1 * radius), segments=64)
    for ob, kind in ((glass, "COLLIDER"), (sand, "SAND")):
        for other in scene.objects:
            other.select_set(other == ob)
        bpy.ops.barchan.set_type(type=kind)
    add_frame()
    add_stage(scene)
    set_render(scene, STILL_SIZE, STILL_SAMPLES)

    settings = scene.barchan
    settings.radius = radius
    settings.shape = "TETRAHEDRON"
    settings.folder = "//cache/"
    settings.display = "POINTS"
    settings.seed = 1
    settings.friction = 0.7
    settings.restitution = 0.3
    # Half a radius in an impact at full speed; resting grains overlap by a hundredth. Nothing falls farther than a bulb.
    settings.max_overlap = 0.5
    settings.max_speed = math.sqrt(2 * 9.81 * BULB_HEIGHT)
    return scene


# ---------------------------------------------------------------------------------------------------------------------
# The run


def job_digest(job):
    """Changes whenever the bake would."""
    digest = hashlib.sha256()
    for source in job.sand + job.colliders:
        digest.update(source.vertices.tobytes() + source.triangles.tobytes())
    values = (job.frame_start, job.frame_end, job.frame_seconds, job.gravity, job.radius, job.shape, job.restitution,
              job.friction, job.density, job.max_overlap, job.max_speed, job.seed)
    digest.update(repr(values).encode())
    return digest.hexdigest()


def read_stamp(out):
    try:
        return json.loads((out / "stamp.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_stamp(out, **changes):
    (out / "stamp.json").write_text(json.dumps({**read_stamp(out), **changes}, indent=1), encoding="utf-8")


def bake(scene, package, out):
    """Bakes unless the same bake is there; returns its digest."""
    import bpy

    export = importlib.import_module(package + ".export")
    playback = importlib.import_module(package + ".playback")
    core = importlib.import_module(package + ".engine").core
    digest = job_digest(export.make_job(bpy.context))
    folder = str(out / "cache")
    wanted = list(range(scene.frame_start, scene.frame_end + 1))
    if read_stamp(out).get("bake") == digest and core.list_frames(folder)[0] == wanted:
        first = core.read_frame(folder, scene.frame_start)["arrays"]["position"]
        playback.attach(scene, playback.Baked(len(first), scene.barchan.radius, scene.barchan.shape))
        print(f"Baked before: {len(wanted)} frames of {len(first)} grains")
        return digest
    start = time.monotonic()
    if bpy.ops.barchan.bake() != {"FINISHED"} or core.list_frames(folder)[0] != wanted:
        raise Stop("The bake did not finish; run the same command again")
    write_stamp(out, bake=digest, bake_seconds=round(time.monotonic() - start, 1))
    return digest


def render_frames(scene, targets, label, log):
    """Renders {frame: path} one by one; each file is whole or not there."""
    import bpy

    targets = {frame: path for frame, path in targets.items() if not path.exists()}
    if not targets:
        return
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGB"
    with quiet(log) as terminal:
        bar = Bar(label, len(targets), terminal)
        for frame, path in targets.items():
            scene.frame_set(frame)
            partial = path.with_name("partial.png")
            scene.render.filepath = str(partial)
            bpy.ops.render.render(write_still=True)
            partial.replace(path)
            bar.advance()


def still_frames(frame_count):
    """Early, running, late, and the heap at the end."""
    return sorted({max(1, round(share * frame_count)) for share in (0.06, 0.35, 0.68, 1.0)})


def encode(pictures, size, path, log):
    """PNG frames to H.264 in MP4 through Blender's own FFmpeg, in a scene of its own."""
    import bpy

    scene = bpy.data.scenes.new("Movie")
    editor = scene.sequence_editor_create()
    strips = editor.strips if hasattr(editor, "strips") else editor.sequences
    strip = strips.new_image("Frames", str(pictures[0]), channel=1, frame_start=1, fit_method="ORIGINAL")
    for picture in pictures[1:]:
        strip.elements.append(picture.name)
    scene.frame_start, scene.frame_end = 1, len(pictures)
    scene.render.fps = FPS
    scene.render.resolution_x, scene.render.resolution_y = size
    scene.view_settings.view_transform = "Standard"  # the pictures have their view transform already
    scene.render.use_sequencer = True
    image = scene.render.image_settings
    if hasattr(image, "media_type"):
        image.media_type = "VIDEO"
    image.file_format = "FFMPEG"
    ffmpeg = scene.render.ffmpeg
    ffmpeg.format = "MPEG4"
    ffmpeg.codec = "H264"
    ffmpeg.constant_rate_factor = "HIGH"
    ffmpeg.gopsize = 12
    ffmpeg.audio_codec = "NONE"
    partial = path.with_name("partial.mp4")
    scene.render.filepath = str(partial)
    scene.render.use_file_extension = False
    with quiet(log):
        bpy.ops.render.render(animation=True, scene=scene.name)
    bpy.data.scenes.remove(scene)
    if not partial.exists() or partial.stat().st_size == 0:
        raise Stop(f"Blender wrote no movie; its own lines are in {log}")
    partial.replace(path)


def run(arguments):
    import bpy

    out = pathlib.Path(arguments.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    package = enable_addon(arguments.zip)
    bpy.context.preferences.filepaths.save_version = 0  # no hourglass.blend1
    scene = build(arguments.frames, arguments.grains)
    blend = out / "hourglass.blend"
    log = out / "blender.log"
    with quiet(log):
        bpy.ops.wm.save_as_mainfile(filepath=str(blend))
    digest = bake(scene, package, out)
    scene.frame_set(scene.frame_end)
    with quiet(log):
        bpy.ops.wm.save_mainfile()

    shrink = 4 if arguments.quick else 1
    look = hashlib.sha256((f"{shrink} {digest}" + pathlib.Path(__file__).read_text(encoding="utf-8")).encode()).hexdigest()
    frames_folder = out / "frames"
    if read_stamp(out).get("look") != look:
        for path in list(out.glob("still_*.png")) + [out / "hourglass.mp4"]:
            path.unlink(missing_ok=True)
        shutil.rmtree(frames_folder, ignore_errors=True)
        write_stamp(out, look=look)

    stills = {frame: out / f"still_{frame:03d}.png" for frame in still_frames(arguments.frames)}
    set_render(scene, [length // shrink for length in STILL_SIZE], STILL_SAMPLES // shrink)
    render_frames(scene, stills, "Rendering stills", log)
    movie = out / "hourglass.mp4"
    if not movie.exists():
        frames_folder.mkdir(exist_ok=True)
        size = [length // shrink for length in MOVIE_SIZE]
        set_render(scene, size, MOVIE_SAMPLES, is_fast=True)
        pictures = {frame: frames_folder / f"{frame:04d}.png" for frame in range(1, arguments.frames + 1)}
        render_frames(scene, pictures, "Rendering the animation", log)
        encode(list(pictures.values()), size, movie, log)
        shutil.rmtree(frames_folder)
    print(f"In {out}:")
    for path in sorted(stills.values()) + [movie, blend]:
        if path.exists():
            print(f"  {path.name}  {path.stat().st_size / 1e6:.1f} MB")


def main():
    parser = argparse.ArgumentParser(description="Bake and render an hourglass with Barchan.")
    parser.add_argument("--out", default="out/demo", help="folder of the results (default: %(default)s)")
    parser.add_argument("--grains", type=int, default=20000, help="about this many grains (default: %(default)s)")
    parser.add_argument("--frames", type=int, default=144, help=f"frames at {FPS} per second (default: %(default)s)")
    parser.add_argument("--zip", default="", help="extension zip to install first")
    parser.add_argument("--quick", action="store_true", help="small pictures with few samples, to try the whole way out")
    arguments = parser.parse_args()
    if arguments.grains < 100 or arguments.frames < 2:
        parser.error("at least 100 grains and 2 frames are needed")
    code = 0
    try:
        run(arguments)
    except (Stop, RuntimeError, OSError) as error:
        print(f"hourglass: {error}", file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        print("\nhourglass: stopped; the same command goes on from here.", file=sys.stderr)
        code = 130
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Blender's own shutdown can hang


if __name__ == "__main__":
    main()
