# SPDX-License-Identifier: GPL-3.0-or-later
"""A camel of metaballs, turned into a body of about four thousand spheres, in the manner of Bell 2005, and rendered.

    python examples/camel.py --out out/camel [--spheres 4000] [--small] [--zip dist/barchan-VERSION.zip]

Runs with any Python that has bpy. Leaves camel.blend, camel.png (mesh and spheres side by side, the spheres coloured by
how far each is from its nearest neighbour) and camel.json, the fit report.
"""

import argparse
import json
import math
import pathlib
import sys

from common import (
    Stop,
    add_camera,
    add_grid_floor,
    add_light,
    add_world,
    enable_addon,
    plain_material,
    quiet,
    set_render,
)

SIZE = (720, 336)
SAMPLES = 48

# Tubes of the camel, metres: corners of the middle line, radius at its start and end. Those with a y are there twice.
TUBES = (
    ("trunk", ((-0.75, 0, 1.25), (-0.35, 0, 1.2), (0.1, 0, 1.18), (0.6, 0, 1.25)), 0.36, 0.38),
    ("hump", ((-0.42, 0, 1.45), (-0.4, 0, 1.78), (-0.4, 0, 1.9)), 0.26, 0.10),
    ("hump", ((0.22, 0, 1.45), (0.24, 0, 1.78), (0.24, 0, 1.9)), 0.26, 0.10),
    ("neck", ((0.75, 0, 1.2), (1.05, 0, 1.12), (1.3, 0, 1.4), (1.42, 0, 1.75), (1.45, 0, 1.95)), 0.24, 0.13),
    ("head", ((1.45, 0, 2.0), (1.65, 0, 1.98), (1.85, 0, 1.9)), 0.16, 0.10),
    ("tail", ((-1.05, 0, 1.3), (-1.2, 0, 1.05), (-1.22, 0, 0.8)), 0.07, 0.05),
    ("ear", ((1.42, 0.08, 2.08), (1.38, 0.14, 2.22)), 0.05, 0.035),
    ("foreleg", ((0.62, 0.2, 1.1), (0.62, 0.22, 0.6), (0.6, 0.22, 0.1)), 0.15, 0.075),
    ("hind leg", ((-0.72, 0.2, 1.1), (-0.8, 0.23, 0.6), (-0.74, 0.23, 0.1)), 0.17, 0.075),
    ("forefoot", ((0.62, 0.22, 0.05), (0.7, 0.22, 0.04)), 0.1, 0.09),
    ("hind foot", ((-0.72, 0.23, 0.05), (-0.63, 0.23, 0.04)), 0.1, 0.09),
)
BALL_STEP = 0.05  # m between the balls of a tube
BALL_SWELL = 1.35  # a ball's radius over that of the surface it gives
RESOLUTION = 0.035  # m, of the metaballs' mesh


def add_tube(balls, corners, first_radius, last_radius):
    import mathutils

    corners = [mathutils.Vector(corner) for corner in corners]
    length, gone = sum((b - a).length for a, b in zip(corners, corners[1:])), 0.0
    for a, b in zip(corners, corners[1:]):
        count = max(2, math.ceil((b - a).length / BALL_STEP))
        for index in range(count + 1):
            share = (gone + (b - a).length * index / count) / length
            ball = balls.elements.new(type="BALL")
            ball.co = a.lerp(b, index / count)
            ball.radius = BALL_SWELL * (first_radius + (last_radius - first_radius) * share)
            ball.stiffness = 2.0
        gone += (b - a).length


def add_camel():
    import bpy

    balls = bpy.data.metaballs.new("Camel")
    balls.resolution = balls.render_resolution = RESOLUTION
    balls.threshold = 0.1
    for _name, corners, first_radius, last_radius in TUBES:
        add_tube(balls, corners, first_radius, last_radius)
        if corners[0][1] != 0:
            add_tube(balls, [(x, -y, z) for x, y, z in corners], first_radius, last_radius)
    soft = bpy.data.objects.new("Camel", balls)
    collection = bpy.context.scene.collection
    collection.objects.link(soft)
    evaluated = soft.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = bpy.data.meshes.new_from_object(evaluated)
    bpy.data.objects.remove(soft)
    for polygon in mesh.polygons:
        polygon.use_smooth = True
    mesh.materials.append(plain_material("Hide", (0.55, 0.38, 0.2), 0.8))
    camel = bpy.data.objects.new("Camel", mesh)
    collection.objects.link(camel)
    return camel


def add_stage(scene):
    add_grid_floor("Ground", (-20, -20), (20, 20), plain_material("Ground", (0.75, 0.68, 0.58), 0.9))
    add_light("Key", (3.0, -6.0, 7.0), (0.0, 0.0, 1.0), (4.0, 4.0), 900.0)
    add_light("Fill", (-6.0, -3.0, 4.0), (0.0, 0.0, 1.0), (4.0, 4.0), 250.0, (0.8, 0.9, 1.0))
    add_world(scene, (0.5, 0.6, 0.7), 1.0)
    add_camera(scene, (0.8, -10.2, 2.6), (0.42, 0.0, 1.02))


def run(arguments):
    import bpy

    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    with quiet(out / "blender.log") as terminal:
        bpy.ops.wm.read_factory_settings(use_empty=True)
        package = enable_addon(arguments.zip)
        scene = bpy.context.scene
        mesh, camel = add_camel(), add_camel()
        mesh.location.x, camel.location.x = -1.75, 1.75
        area = sum(polygon.area for polygon in camel.data.polygons)
        # Spheres 1.2 radii apart, 0.92 of them for every square of that spacing.
        radius = math.sqrt(0.92 * area / arguments.spheres) / 1.2
        bpy.ops.object.select_all(action="DESELECT")
        camel.select_set(True)
        bpy.context.view_layer.objects.active = camel
        if bpy.ops.barchan.convert_to_body(radius=radius) != {"FINISHED"}:
            raise Stop("The camel could not be converted; see blender.log in the output folder")
        body = sys.modules[package + ".body"]
        report = body.report(camel)
        (out / "camel.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
        preview = next(child for child in camel.children if body.is_preview(child))
        preview.hide_render = False
        camel.hide_render = True
        add_stage(scene)
        set_render(scene, SIZE, SAMPLES)
        scene.render.filepath = str(out / "camel.png")
        bpy.ops.wm.save_as_mainfile(filepath=str(out / "camel.blend"))
        bpy.ops.render.render(write_still=True)
        terminal.write(json.dumps(report) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", default="out/camel")
    parser.add_argument("--spheres", type=int, default=4000)
    parser.add_argument("--small", action="store_true", help="a tenth of the spheres")
    parser.add_argument("--zip", help="extension to install first")
    arguments = parser.parse_args()
    if arguments.small:
        arguments.spheres //= 10
    try:
        run(arguments)
    except Stop as stop:
        sys.exit(str(stop))


if __name__ == "__main__":
    main()
