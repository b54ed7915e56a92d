# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside a Blender with a window: marks, bakes, stops and resumes by simulated clicks and keys, and takes pictures.

    blender --factory-startup --enable-event-simulate -P session.py -- OUT_FOLDER

Pictures come from the X server (Blender's own screenshot is black under Xvfb in 4.3), cut to the areas that matter. A button
is found by what Blender says of it: the mouse goes down the panel and copies the command of every button it meets. Prints
"ok NAME" or "FAILED NAME: sentence" per step and closes with "N passed, N failed".
"""

import os
import subprocess
import sys
import time
import traceback

import bpy

OUT = sys.argv[sys.argv.index("--") + 1]
LAST = 120  # frame
PROBE_STEP = 9  # pixels between two looks for a button; buttons are about 20 high
SETTLE = 0.4  # s for Blender to draw what was changed
counts = {"ok": 0, "FAILED": 0}
state = {"step": None, "has_failed": False}


def window():
    return bpy.context.window_manager.windows[0]


def area(kind):
    return next(one for one in window().screen.areas if one.type == kind)


def region(kind, name):
    return next(one for one in area(kind).regions if one.type == name)


def simulate(kind, value, x, y, **options):
    window().event_simulate(type=kind, value=value, x=int(x), y=int(y), **options)


def move(x, y):
    simulate("MOUSEMOVE", "NOTHING", x, y)
    yield 0.03


def click(x, y):
    yield from move(x, y)
    simulate("LEFTMOUSE", "PRESS", x, y)
    simulate("LEFTMOUSE", "RELEASE", x, y)
    yield SETTLE


def key(kind, x, y, **options):
    simulate(kind, "PRESS", x, y, **options)
    simulate(kind, "RELEASE", x, y, **options)
    yield SETTLE


def draw():
    for one in window().screen.areas:
        one.tag_redraw()
    yield SETTLE
    yield SETTLE


def picture(name, kind=None, part=None, quality=32):
    """The whole window, an area, or a region of one, as PNG of few colours."""
    yield from move(window().width / 2, window().height - 4)  # off every button
    yield from draw()
    command = ["import", "-window", "root"]
    if kind is not None:
        place = region(kind, part) if part else area(kind)
        height = window().height
        # A pixel of its neighbours' border is of no use to anybody.
        command += ["-crop", f"{place.width}x{place.height}+{place.x}+{height - place.y - place.height}", "+repage"]
    path = os.path.join(OUT, name + ".png")
    subprocess.run(command + ["+dither", "-colors", str(quality), "-strip", "PNG8:" + path], check=True)
    print(f"  picture {name}.png, {os.path.getsize(path)} bytes", flush=True)


def find_button(command, kind="VIEW_3D", part="UI", share=0.25):
    """Window coordinates of the button that runs the command; None when it is not drawn. share: how far from the left of the
    panel to look."""
    place = region(kind, part)
    x = place.x + share * place.width
    for y in range(place.y + place.height - 8, place.y + 4, -PROBE_STEP):
        window_manager = bpy.context.window_manager
        window_manager.clipboard = ""
        yield from move(x, y)
        simulate("C", "PRESS", x, y, ctrl=True)
        simulate("C", "RELEASE", x, y, ctrl=True)
        yield 0.03
        if window_manager.clipboard.startswith(f"bpy.ops.{command}("):
            return x, y
    return None


def press(command, **options):
    found = yield from find_button(command, **options)
    check(found is not None, f"no button for {command} is drawn")
    yield from click(*found)


def check(condition, sentence):
    if not condition:
        state["has_failed"] = True
        raise AssertionError(sentence)


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, f"{what} did not come within {seconds} s")
        yield 0.05


def room(name):
    """A module of the add-on, by whatever name it is loaded."""
    found = next(key for key in sys.modules if key.endswith("barchan." + name))
    return sys.modules[found]


def scroll_panels(clicks):
    """Positive: down, to see what is below."""
    place = region("VIEW_3D", "UI")
    x, y = place.x + place.width / 2, place.y + place.height / 2
    yield from move(x, y)
    for _ in range(abs(clicks)):
        simulate("WHEELDOWNMOUSE" if clicks > 0 else "WHEELUPMOUSE", "PRESS", x, y)
        yield 0.05
    yield SETTLE


def open_tab():
    area("VIEW_3D").spaces.active.show_region_ui = True
    yield from draw()
    place = region("VIEW_3D", "UI")
    if hasattr(place, "active_panel_category"):
        try:
            place.active_panel_category = "Barchan"
        except (AttributeError, TypeError):  # read-only before 4.2
            pass
    yield from draw()


def make_scene():
    for ob in list(bpy.data.objects):
        bpy.data.objects.remove(ob)
    bpy.ops.mesh.primitive_plane_add(size=4)
    floor = bpy.context.object
    floor.name = "Floor"
    bpy.ops.mesh.primitive_cube_add(size=1.0, location=(0, 0, 0.8))
    block = bpy.context.object
    block.name = "Block"
    scene = bpy.context.scene
    scene.frame_end = LAST
    scene.barchan.radius = 0.02
    scene.barchan.folder = os.path.join(OUT, "cache")
    floor.barchan.type = "COLLIDER"
    space = area("VIEW_3D").spaces.active
    space.region_3d.view_distance = 6
    space.shading.type = "MATERIAL"
    for window_region in area("VIEW_3D").regions:
        window_region.tag_redraw()


# ---------------------------------------------------------------------------------------------------------------------
# Steps


def step_panels_without_a_bake():
    make_scene()
    yield from open_tab()
    yield from picture("window", quality=64)
    yield from press("barchan.set_type")
    check(bpy.data.objects["Block"].barchan.type == "SAND", "the click on Sand did not mark the block")
    yield from picture("panel_idle", "VIEW_3D", "UI")


def step_estimate_pressed_and_mended():
    yield from scroll_panels(60)
    yield from press("barchan.estimate")
    checks = room("checks")
    yield from wait_until(lambda: checks.last_estimate(bpy.context.scene) is not None, 60, "the estimate")
    print("  " + "; ".join(checks.last_estimate(bpy.context.scene).lines()), flush=True)
    yield from picture("panel_estimate", "VIEW_3D", "UI")
    yield from press("barchan.fix")
    check(bpy.context.scene.render.use_lock_interface, "the click on Lock Interface mended nothing")


def step_bake_pressed_and_watched():
    yield from scroll_panels(60)
    found = yield from find_button("barchan.bake")
    check(found is not None, "no button for Bake is drawn")
    yield from click(*found)
    bake = room("bake")
    check(bake.running is not None, "the click started no bake")
    run = bake.running
    yield from wait_until(lambda: run.progress.frames_done >= 8 or run.progress.is_finished, 120, "frame 8")
    check(run.progress.state == "BAKING", f"the bake is {run.progress.state} ({run.error})")
    print(f"  {run.progress.line()}", flush=True)
    bpy.context.scene.frame_set(6)
    yield from picture("panel_baking", "VIEW_3D", "UI")
    yield from picture("window_baking", quality=64)
    state["run"] = run


def step_escape_stops_and_keeps_the_frames():
    run = state["run"]
    place = region("VIEW_3D", "WINDOW")
    x, y = place.x + place.width / 3, place.y + place.height / 3
    yield from move(x, y)
    yield from key("ESC", x, y)
    yield from wait_until(lambda: room("bake").running is None, 30, "the end of the bake")
    check(run.progress.state == "STOPPED", f"the bake is {run.progress.state}")
    done = run.progress.frames_done
    check(8 <= done < LAST, f"{done} frames are done")
    print(f"  stopped after {done} frames", flush=True)
    yield from picture("panel_stopped", "VIEW_3D", "UI")


def step_resume_to_the_end():
    yield from press("barchan.resume")
    check(room("bake").running is not None, "the click started no bake")
    run = room("bake").running
    yield from wait_until(lambda: room("bake").running is None, 300, "the end of the bake")
    check(run.progress.state == "DONE", f"the bake is {run.progress.state} ({run.error})")
    bpy.context.scene.frame_set(LAST)
    check(room("playback").message(bpy.context.scene) == "", "the last frame is not shown")
    yield from picture("panel_done", "VIEW_3D", "UI")
    yield from picture("window_done", quality=64)


def step_grains_of_an_object():
    yield from scroll_panels(-120)
    block = bpy.data.objects["Block"]
    bpy.context.view_layer.objects.active = block
    bpy.ops.barchan.preset(name="RICE", target="OBJECT")
    yield from picture("panel_object", "VIEW_3D", "UI")
    block.barchan.own_grains = False
    bpy.ops.barchan.preset(name="GRAVEL")
    yield from picture("panel_grains", "VIEW_3D", "UI")


STEPS = [value for name, value in list(globals().items()) if name.startswith("step_")]


def run_steps():
    for function in STEPS:
        name = function.__name__
        if state["has_failed"]:
            break
        try:
            yield from function()
            counts["ok"] += 1
            print(f"ok {name}", flush=True)
        except BaseException as error:
            counts["FAILED"] += 1
            state["has_failed"] = True
            traceback.print_exc()
            print(f"FAILED {name}: {' '.join(str(error).split())}", flush=True)
            yield from picture("failed", quality=64)
    print(f"{counts['ok']} passed, {counts['FAILED']} failed", flush=True)
    os._exit(1 if counts["FAILED"] else 0)


story = run_steps()
bpy.context.preferences.view.show_splash = False
bpy.app.timers.register(lambda: next(story), first_interval=2.0)
