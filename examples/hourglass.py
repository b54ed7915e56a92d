# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo: sand runs through an hourglass of glass and walnut, after Bell 2005's Hourglass.

    python examples/hourglass.py --out out/demo --movie

adds larger stills and hourglass.mp4.
"""

import math
import shutil

from common import (
    BOUND,
    FILL_VOLUME,
    FPS,
    Example,
    Stop,
    add_camera,
    add_light,
    add_mesh,
    add_revolved,
    add_world,
    glass_material,
    main,
    mark,
    new_material,
    only_for_the_camera,
    plain_material,
    quiet,
    render_frames,
    set_render,
)

# Glass, in metres: two bulbs of this height and radius, joined by a neck whose width follows from the grain size.
BULB_HEIGHT = 0.30
BULB_RADIUS = 0.15
BULB_WIDEST = 0.19  # height above the neck where the bulb is widest
CAP_RADIUS = 0.085  # of the flat end that the wooden disc holds
DISC_RADIUS = 0.185
DISC_HEIGHT = 0.026
SAND_BOTTOM, SAND_TOP = 0.012, 0.285  # the sand's start, height above the neck
SAND_GAP = 0.1  # sphere radii between the sand's start and the glass

# A tetrahedron of four touching spheres flows like a sphere of this many sphere radii across.
GRAIN_DIAMETER = 3.3
# Neck width in grain diameters. Beverloo 1961: 0.58 sqrt(g / d) (D / d - 1.4)^2.5 grains per second.
NECK_DIAMETERS = 10.5

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
    return NECK_DIAMETERS / 2 * GRAIN_DIAMETER * radius


def sphere_radius_for(grain_count):
    """Sphere radius (m) with which the upper bulb holds a little more than grain_count grains."""
    low, high = 1e-5, 0.05
    for _ in range(60):
        radius = (low + high) / 2
        room = 0.0
        if neck_radius_for(radius) < 0.6 * BULB_RADIUS:
            # Centres stay a bounding radius inside the sand mesh.
            outline = sand_profile(neck_radius_for(radius), (SAND_GAP + BOUND) * radius)
            outline = [(r, min(z, SAND_TOP - BOUND * radius)) for r, z in outline]
            room = revolved_volume(outline) / (FILL_VOLUME * radius**3)
        low, high = (radius, high) if room > 1.02 * grain_count else (low, radius)
    return low


# ---------------------------------------------------------------------------------------------------------------------
# Looks


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
    floor_height = -BULB_HEIGHT - DISC_HEIGHT
    sweep = [(-3.0, 0.0), (1.0, 0.0)]
    sweep += [(1.0 + math.sin(a), 1.0 - math.cos(a)) for a in (k * math.pi / 32 for k in range(1, 17))]
    sweep += [(2.0, 5.0)]
    vertices = [(x, y, floor_height + z) for y, z in sweep for x in (-5.0, 5.0)]
    faces = [(2 * k, 2 * k + 1, 2 * k + 3, 2 * k + 2) for k in range(len(sweep) - 1)]
    add_mesh("Backdrop", vertices, faces, plain_material("Backdrop", (0.115, 0.135, 0.155), 0.7), is_smooth=True)

    # Key and Fill would be mirrored in the glass right over the sand; Rim and Strip draw its outline instead.
    key = add_light("Key", (-0.95, -1.05, 0.95), (0, 0, -0.03), (0.55, 0.9), 32.0, (1.0, 0.94, 0.86))
    fill = add_light("Fill", (1.3, -1.3, 0.25), (0, 0, -0.1), (0.9, 0.9), 9.0, (0.92, 0.96, 1.0))
    key.visible_glossy = fill.visible_glossy = False
    add_light("Rim", (0.95, 0.75, 0.55), (0, 0, 0), (0.35, 0.9), 20.0, (0.86, 0.93, 1.0))
    add_light("Strip", (-1.1, 0.15, 0.1), (0, 0, 0), (0.12, 1.2), 7.0, (1.0, 0.97, 0.92))
    glow = add_light("Glow", (0.0, 0.75, 0.25), (0.0, 1.9, 0.15), (0.9, 0.9), 14.0, (0.95, 0.9, 0.82))
    glow.visible_camera = glow.visible_glossy = False

    add_world(scene, strength=0.16)
    camera = add_camera(scene, (0.0, -1.58, 0.13), (0.0, 0.0, -0.005), 70.0)
    camera.data.sensor_fit = "VERTICAL"
    camera.data.sensor_height = 36.0


def build(scene, size):
    radius = sphere_radius_for(size.grains)
    neck = neck_radius_for(radius)
    scene.barchan.radius = radius
    upper = bulb_profile(neck)
    lower = [(r, -z) for r, z in reversed(upper)]
    profile = [(0.0, -BULB_HEIGHT)] + lower[:-1] + upper + [(0.0, BULB_HEIGHT)]
    glass = add_revolved("Glass", profile, size.segments, material=glass_material())
    only_for_the_camera(glass)
    sand = add_revolved("Sand", sand_profile(neck, SAND_GAP * radius), segments=64)
    mark(glass, "COLLIDER", friction=0.4, restitution=0.3)
    mark(sand, "SAND")
    add_frame()
    add_stage(scene)


# ---------------------------------------------------------------------------------------------------------------------
# The movie


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


def make_movie(folder, scene, is_small):
    """Larger stills and hourglass.mp4, unless they are there."""
    shrink = 4 if is_small else 1
    log = folder / "blender.log"
    shares = (0.06, 0.35, 0.68, 1.0)  # early, running, late, and the heap at the end
    stills = {frame: folder / f"large_{frame:03d}.png" for frame in (max(1, round(a * scene.frame_end)) for a in shares)}
    set_render(scene, [length // shrink for length in STILL_SIZE], STILL_SAMPLES // shrink)
    render_frames(scene, stills, "Rendering large stills", log)
    movie = folder / "hourglass.mp4"
    if movie.exists():
        return
    frames_folder = folder / "frames"
    frames_folder.mkdir(exist_ok=True)
    size = [length // shrink for length in MOVIE_SIZE]
    set_render(scene, size, MOVIE_SAMPLES, is_fast=True)
    pictures = {frame: frames_folder / f"{frame:04d}.png" for frame in range(1, scene.frame_end + 1)}
    render_frames(scene, pictures, "Rendering the animation", log)
    encode(list(pictures.values()), size, movie, log)
    shutil.rmtree(frames_folder)


EXAMPLE = Example(
    name="hourglass",
    build=build,
    movie=make_movie,
    picture=(224, 336),
    full={
        "grains": 27000,
        "segments": 96,
        "frames": 104,
        "stills": (8, 42, 82, 104),
        "settings": {
            "friction": 0.7,
            "restitution": 0.3,
            # Half a radius in an impact at full speed; resting grains overlap by a hundredth. Nothing falls farther
            # than a bulb.
            "max_overlap": 0.5,
            "max_speed": math.sqrt(2 * 9.81 * BULB_HEIGHT),
        },
    },
    small={"grains": 700, "segments": 48, "frames": 14, "stills": (2, 8, 14)},
)

if __name__ == "__main__":
    main(EXAMPLE)
