# SPDX-License-Identifier: GPL-3.0-or-later
"""Finished pictures of the examples: grains close, in the hand and as a dune; dry, wet and coloured.

    python examples/gallery.py NAME --out out [--zip dist/barchan-VERSION.zip] [--list]

The bake is that of the example, in out/EXAMPLE; it is made when it is not there. The picture goes to out/gallery/NAME.jpg.
Look, camera and light are set in the opened file and are not saved.
"""

import argparse
import collections
import math
import os
import pathlib
import sys
import types

import common

SIZE = (576, 324)
SAMPLES = 72

# example; frame; where the camera is, what it looks at, its lens (mm); f-number at the target's distance, 0 = all is sharp;
# look: settings of Scene.barchan_look; sun: its height and direction (degrees), None keeps the example's lights
Picture = collections.namedtuple("Picture", "example frame camera target lens aperture look sun caption")

CLOSE = {"kind": "ROUNDED", "by_distance": True, "variation": 0.25, "glints": 0.04}
BROKEN = {**CLOSE, "kind": "ANGULAR"}

PICTURES = {
    "impact": Picture("splash", 28, (0.42, -0.80, 0.46), (0.0, 0.0, 0.27), 40.0, 0, CLOSE, (40, 110),
                      "A steel ball drives into dry desert sand"),
    "crater": Picture("splash", 84, (0.40, -0.62, 0.66), (0.0, 0.02, 0.22), 35.0, 0, CLOSE, (28, 120),
                      "The crater under a low sun: dry"),
    "crater-wet": Picture("splash", 84, (0.40, -0.62, 0.66), (0.0, 0.02, 0.22), 35.0, 0, {**CLOSE, "wet": 1.0}, (28, 120),
                          "The same crater, wet: darker, deeper, shinier"),
    "grains": Picture("splash", 84, (0.30, -0.36, 0.30), (0.24, -0.20, 0.20), 60.0, 11, CLOSE, (35, 100),
                      "Grains: rounded, iron-stained quartz"),
    "grains-black": Picture("splash", 84, (0.30, -0.36, 0.30), (0.24, -0.20, 0.20), 60.0, 11, {**BROKEN, "sand": "BLACK"},
                            (35, 100), "Grains: angular basalt with olivine"),
    "blade": Picture("bulldozer", 130, (1.55, -1.15, 0.62), (0.62, 0.0, 0.10), 35.0, 0, CLOSE, (24, 140),
                     "A blade heaps dry sand with crates in it"),
    "dune": Picture("bulldozer", 160, (1.95, -1.15, 0.42), (0.75, 0.1, 0.10), 40.0, 0, {**CLOSE, "sand": "RED"}, (12, 150),
                    "The heap that the blade left, as a red dune under an evening sun"),
    "pour": Picture("bowl", 72, (0.62, -1.25, 0.92), (0.0, 0.0, 0.34), 38.0, 0, {**CLOSE, "sand": "BEACH"}, None,
                    "Beach sand pours into a bowl, a shutter of half a frame open"),
    "drum": Picture("tumbler", 60, (0.32, -1.55, 0.92), (0.0, 0.0, 0.46), 45.0, 0, {**CLOSE, "sand": "BLUE"}, None,
                    "Dyed sand in a turning drum"),
}


def add_sun(scene, height, direction):
    """A sun and a clear sky instead of the example's lights; angles in degrees."""
    import bpy

    for ob in [ob for ob in scene.objects if ob.type == "LIGHT"]:
        bpy.data.objects.remove(ob)
    light = bpy.data.lights.new("Sun", "SUN")
    light.energy = 3.0
    light.angle = math.radians(0.53)
    light.color = (1.0, 0.93, 0.82) if height > 20 else (1.0, 0.80, 0.58)
    ob = bpy.data.objects.new("Sun", light)
    ob.rotation_euler = (math.radians(90 - height), 0.0, math.radians(direction))
    scene.collection.objects.link(ob)
    common.add_world(scene, (0.42, 0.58, 0.90), 0.40)
    for name in ("Tray",):  # its glass would only add noise
        if name in scene.objects:
            scene.objects[name].hide_render = True
    if "Backdrop" in scene.objects:
        scene.objects["Backdrop"].data.materials[0] = common.plain_material("Earth", (0.30, 0.24, 0.17), 0.95)


def set_camera(scene, picture):
    import mathutils

    camera = scene.camera
    camera.location = picture.camera
    way = mathutils.Vector(picture.target) - camera.location
    camera.rotation_euler = way.to_track_quat("-Z", "Y").to_euler()
    camera.data.lens = picture.lens
    camera.data.clip_start = 0.01
    camera.data.dof.use_dof = picture.aperture > 0
    if picture.aperture:
        camera.data.dof.focus_distance = way.length
        camera.data.dof.aperture_fstop = picture.aperture


def render(name, folder, arguments):
    import bpy

    picture = PICTURES[name]
    blend = folder / picture.example / f"{picture.example}.blend"
    target = folder / "gallery" / f"{name}.jpg"
    target.parent.mkdir(parents=True, exist_ok=True)
    if not blend.exists():
        example = __import__(picture.example).EXAMPLE
        options = types.SimpleNamespace(out=str(blend.parent), small=False, zip=arguments.zip, movie=False)
        common.run(example, options)
    else:
        common.enable_addon(arguments.zip)
    with common.quiet(target.with_name("blender.log")) as terminal:
        bpy.ops.wm.open_mainfile(filepath=str(blend))
        scene = bpy.context.scene
        scene.barchan.display = "GRAINS"
        common.assign(scene.barchan_look, picture.look)
        set_camera(scene, picture)
        if picture.sun:
            add_sun(scene, *picture.sun)
        size = [length * arguments.percent // 100 for length in SIZE]
        common.set_render(scene, size, max(1, SAMPLES * arguments.percent // 100))
        scene.cycles.use_adaptive_sampling = False
        scene.render.use_motion_blur = name == "pour"
        scene.render.image_settings.file_format = "JPEG"
        scene.render.image_settings.quality = 82
        scene.render.filepath = str(target)
        scene.frame_set(picture.frame)
        terminal.write(f"Rendering {name}: {picture.caption}\n")
        bpy.ops.render.render(write_still=True)
    print(f"{target}  {target.stat().st_size / 1e3:.0f} kB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("name", choices=sorted(PICTURES), help="picture")
    parser.add_argument("--out", default="out", help="folder with the examples' folders; the picture goes to gallery/ in it")
    parser.add_argument("--percent", type=int, default=100, help="share of the size and the samples, to try it out")
    parser.add_argument("--zip", help="extension to install first")
    arguments = parser.parse_args()
    code = 0
    try:
        render(arguments.name, pathlib.Path(arguments.out).resolve(), arguments)
    except (common.Stop, RuntimeError, OSError) as error:
        print(f"gallery: {error}", file=sys.stderr)
        code = 1
    sys.stdout.flush()
    os._exit(code)  # Blender's own shutdown can hang


if __name__ == "__main__":
    main()
