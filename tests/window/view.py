# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside a Blender with a window: bakes a little sand and takes pictures of the 3D view as it draws it.

    blender --factory-startup -P view.py -- OUT_FOLDER

Leaves view_spheres.png, view_points.png and view_rendered.png, checks that spheres and points are drawn where the sand is,
and that a render draws none of ours. Prints "ok NAME" or "FAILED NAME: sentence" and closes with "N passed, N failed".
"""

import os
import subprocess
import sys
import time
import traceback

import bpy

OUT = sys.argv[sys.argv.index("--") + 1]
counts = {"ok": 0, "FAILED": 0}


def view_area():
    return next(area for area in bpy.context.window_manager.windows[0].screen.areas if area.type == "VIEW_3D")


def picture(name):
    """The 3D view from the X server: Blender's own screenshot is black under Xvfb in 4.3."""
    area = view_area()
    area.tag_redraw()
    for _ in range(4):
        bpy.ops.wm.redraw_timer(type="DRAW_WIN_SWAP", iterations=1)
        time.sleep(0.2)
    path = os.path.join(OUT, f"view_{name}.png")
    height = bpy.context.window_manager.windows[0].height
    cut = f"{area.width}x{area.height}+{area.x}+{height - area.y - area.height}"
    subprocess.run(["import", "-window", "root", "-crop", cut, "+repage", "-resize", "50%", "-dither", "None", "-colors", "48", path], check=True)
    return path


def sandy_share(path):
    """Share of the pixels that are sand-coloured: red well above blue."""
    done = subprocess.run(["convert", path, "-fx", "r>b+0.1?1:0", "-format", "%[fx:mean]", "info:"], capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def step(name, function):
    try:
        function()
        counts["ok"] += 1
        print(f"ok {name}", flush=True)
    except Exception as error:
        traceback.print_exc()
        counts["FAILED"] += 1
        print(f"FAILED {name}: {error}", flush=True)


def build():
    scene = bpy.context.scene
    for ob in list(scene.objects):
        bpy.data.objects.remove(ob)
    bpy.ops.mesh.primitive_cylinder_add(radius=0.5, depth=1.0, location=(0, 0, 0.6))
    bpy.ops.barchan.set_type(type="SAND")
    bpy.ops.mesh.primitive_plane_add(size=4)
    bpy.ops.barchan.set_type(type="COLLIDER")
    scene.barchan.radius = 0.013
    scene.frame_start, scene.frame_end = 1, 20
    scene.barchan.folder = os.path.join(OUT, "cache")
    bpy.ops.barchan.bake("EXEC_DEFAULT")
    scene.frame_set(20)
    space = view_area().spaces.active
    space.region_3d.view_distance = 2.6
    space.region_3d.view_location = (0, 0, 0.3)
    space.overlay.show_overlays = True


def check_view(name, setting):
    scene = bpy.context.scene
    scene.barchan_look.view = setting
    scene.frame_set(19)
    scene.frame_set(20)
    share = sandy_share(picture(name))
    print(f"  {name}: {100 * share:.1f} % of the view is sand", flush=True)
    if not 0.02 < share < 0.6:
        raise AssertionError(f"{100 * share:.1f} % of the view is sand-coloured")


def check_none():
    """Nothing to draw: the sand object is hidden, and ours goes with it. Axes and icons are sand-coloured too: what counts is
    that the view is the same whether spheres were asked for or not."""
    scene = bpy.context.scene
    scene.barchan.carrier.hide_set(True)
    shares = []
    for setting in ("POINTS", "SPHERES"):
        scene.barchan_look.view = setting
        shares.append(sandy_share(picture("hidden")))
        os.remove(os.path.join(OUT, "view_hidden.png"))
    scene.barchan.carrier.hide_set(False)
    print(f"  hidden: {100 * shares[0]:.2f} % without and {100 * shares[1]:.2f} % with spheres", flush=True)
    if abs(shares[1] - shares[0]) > 0.001:
        raise AssertionError(f"{100 * (shares[1] - shares[0]):.2f} % more of the view is sand-coloured though it is hidden")


def main():
    step("bake", build)
    step("spheres", lambda: check_view("spheres", "SPHERES"))
    step("points", lambda: check_view("points", "POINTS"))
    step("rendered", lambda: check_view("rendered", "RENDER"))
    step("hidden", check_none)
    print(f"{counts['ok']} passed, {counts['FAILED']} failed", flush=True)
    os._exit(1 if counts["FAILED"] else 0)


bpy.context.preferences.view.show_splash = False
bpy.app.timers.register(main, first_interval=2.0)
