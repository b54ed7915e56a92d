# SPDX-License-Identifier: GPL-3.0-or-later
"""One artist's week, step by step in one file: install, mark, bake, kill, resume, scrub, save as, reload, append, link, render,
uninstall. The tests build on each other in the order of the file; `BARCHAN_SEED` repeats a run's random frames."""

import gc
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import harness
from harness import FOLDER, bpy, check, check_arrays, check_equal, np, room

LAST = 24  # frame
KILLED_AT = 7  # frames on disk when the bake is killed
SCRUBS = 200
CYCLES = 100  # of enabling and disabling

BAKER = """
import sys
import bpy, addon_utils  # in this order: the second is there only once the first is
assert addon_utils.enable(sys.argv[1]) is not None
bpy.ops.wm.open_mainfile(filepath=sys.argv[2])
bpy.ops.barchan.bake()
"""

PROJECT = FOLDER / "project"
FILE = PROJECT / "sand.blend"
CACHE = PROJECT / "barchan_cache"


def frames(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).glob("frame_*.sand")}


def cached(folder, frame):
    return room("engine").core.read_frame(str(folder), frame)["arrays"]


def check_shown(scene, folder, frame, body_count=1):
    """Grains and message of the scene at its current frame."""
    check_equal(room("playback").message(scene), "", f"message at frame {frame}")
    expected = cached(folder, frame)["position"][body_count:]
    check_arrays(harness.carrier_positions(scene), expected, f"grains at frame {frame}")


def open_file(path):
    bpy.ops.wm.open_mainfile(filepath=str(path))
    return bpy.context.scene


def test_install():
    harness.load_addon()
    check_equal(room("engine").problem, "", "problem of the engine")
    if harness.ZIP:
        check(harness.EXTENSION in bpy.context.preferences.addons, "the extension is not enabled")


def test_mark_objects_and_save():
    PROJECT.mkdir()
    scene = harness.small_scene("//barchan_cache/", frame_end=LAST, edge=0.5, radius=0.03)
    crate = harness.add_box("Crate", (0.2, 0.2, 0.2), (0.6, 0.0, 0.4))
    check_equal(harness.mark(crate, "BODY"), {"FINISHED"}, "result of set_type")
    scene.barchan.checkpoint_interval = 4
    scene.barchan.threads = 1
    bpy.ops.wm.save_as_mainfile(filepath=str(FILE))
    check_equal(sorted(ob.barchan.type for ob in scene.objects), ["BODY", "COLLIDER", "SAND"], "types")


def test_bake_is_killed():
    if not harness.ZIP:
        return
    child = subprocess.Popen(
        [sys.executable, "-c", BAKER, harness.EXTENSION, str(FILE)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    while len(frames(CACHE)) < KILLED_AT and child.poll() is None:
        time.sleep(0.005)  # the file system is all that both processes share
    child.send_signal(signal.SIGKILL)
    output = child.communicate()[0].decode(errors="replace")
    check_equal(child.returncode, -signal.SIGKILL, f"code of the killed process ({output[-500:]})")
    print(f"  killed with {len(frames(CACHE))} of {LAST} frames on disk")


def test_resume_gives_the_frames_of_one_bake():
    scene = open_file(FILE)
    if harness.ZIP:
        check(KILLED_AT <= len(frames(CACHE)) < LAST, f"{len(frames(CACHE))} frames are there after the kill")
        check_equal(bpy.ops.barchan.resume(), {"FINISHED"}, "result of resume")
    else:
        bpy.ops.barchan.bake()
    check_equal(len(frames(CACHE)), LAST, "frames")
    bpy.ops.wm.save_mainfile()
    scene.barchan.folder = str(FOLDER / "whole")
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of a bake in peace")
    check(frames(CACHE) == frames(FOLDER / "whole"), "the resumed frames differ from those of one bake")


def test_scrub_random_frames():
    scene = open_file(FILE)
    seed = int(os.environ.get("BARCHAN_SEED", str(time.time_ns() % 1000000)))
    print(f"  seed {seed}")
    moments = random.Random(seed)
    crate = bpy.data.objects["Crate"]
    for _ in range(SCRUBS):
        frame = moments.randint(1, LAST)
        scene.frame_set(frame)
        check_shown(scene, CACHE, frame)
        place = cached(CACHE, frame)["position"][0]
        check_arrays(np.array(crate.matrix_world.translation), place, f"crate at frame {frame}", 1e-5)


def test_save_as_elsewhere_keeps_the_cache():
    scene = open_file(FILE)
    elsewhere = FOLDER / "elsewhere" / "deep"
    elsewhere.mkdir(parents=True)
    copy = FOLDER / "copies" / "copy.blend"
    copy.parent.mkdir()
    bpy.ops.wm.save_as_mainfile(filepath=str(copy), copy=True)
    check_equal(scene.barchan.folder, "//barchan_cache/", "folder of the open file after a copy was saved")
    bpy.ops.wm.save_as_mainfile(filepath=str(elsewhere / "sand.blend"))
    check_equal(scene.barchan.folder, "//../../project/barchan_cache/", "folder after Save As")
    for path in (elsewhere / "sand.blend", copy, FILE):
        scene = open_file(path)
        for frame in (5, LAST):
            scene.frame_set(frame)
            check_shown(scene, CACHE, frame)
    check_equal(scene.barchan.folder, "//barchan_cache/", "folder in the first file")
    check("stale" not in room("operators").__dict__ or not room("operators").is_stale(scene), "the frames became stale")


def test_frames_of_an_unsaved_file_come_along_with_the_first_save():
    scene = harness.small_scene("//barchan_cache/", frame_end=2, radius=0.04)
    bpy.ops.barchan.bake()
    place = FOLDER / "first"
    place.mkdir()
    bpy.ops.wm.save_as_mainfile(filepath=str(place / "sand.blend"))
    check_equal(len(frames(place / "barchan_cache")), 2, "frames beside the saved file")
    scene = open_file(place / "sand.blend")
    scene.frame_set(2)
    check_shown(scene, place / "barchan_cache", 2, body_count=0)


def test_append_into_another_file():
    for kind, name in (("Scene", "Scene"), ("Object", "Barchan Sand")):
        other = FOLDER / f"other_{kind}" / "other.blend"
        other.parent.mkdir()
        scene = harness.new_file()
        scene.name = "Other"
        bpy.ops.wm.save_as_mainfile(filepath=str(other))
        bpy.ops.wm.append(filename=name, directory=f"{FILE}/{kind}/")
        scene = bpy.data.scenes["Scene"] if kind == "Scene" else bpy.context.scene
        for frame in (3, LAST):
            scene.frame_set(frame)
            check_shown(scene, CACHE, frame)
        bpy.ops.wm.save_mainfile()
        open_file(other)
        scene = bpy.data.scenes["Scene" if kind == "Scene" else "Other"]
        scene.frame_set(9)
        check_shown(scene, CACHE, 9)


def test_link_from_another_file():
    other = FOLDER / "linking" / "other.blend"
    other.parent.mkdir()
    harness.new_file()
    bpy.context.scene.name = "Other"
    bpy.ops.wm.save_as_mainfile(filepath=str(other))
    bpy.ops.wm.link(filename="Barchan Sand", directory=f"{FILE}/Object/", instance_collections=False)
    scene = bpy.context.scene
    for frame in (3, LAST):
        scene.frame_set(frame)
        check_shown(scene, CACHE, frame)
        check(len(harness.drawn_points(scene)[0]) > 100, "no points are drawn")
    check_equal([ob.name for ob in scene.objects], ["Barchan Sand"], "objects")
    check(scene.objects[0].override_library is not None, "the linked sand is no library override")
    bpy.ops.wm.save_mainfile()
    scene = open_file(other)
    scene.frame_set(9)
    check_shown(scene, CACHE, 9)
    bpy.ops.wm.link(filename="Scene", directory=f"{FILE}/Scene/")
    linked = bpy.data.scenes["Scene"]
    check_equal(room("properties").cache_folder(linked), str(CACHE), "cache folder of a linked scene")


def points_in(depsgraph, name):
    """Positions of the drawn points in a dependency graph."""
    for instance in depsgraph.object_instances:
        ob = instance.object
        if ob.type == "POINTCLOUD" and ob.name.startswith(name):
            return harness.read_attribute(ob.data, "position", "vector", 3).copy()
    return None


def test_what_is_rendered_is_what_the_view_shows():
    scene = open_file(FILE)
    harness.add_camera(scene, (0.0, -2.2, 1.0), (0.0, 0.0, 0.3))
    scene.render.engine = "CYCLES"
    scene.cycles.samples = 1
    scene.render.resolution_x, scene.render.resolution_y = 64, 48
    scene.render.use_lock_interface = True
    scene.frame_start, scene.frame_end = 8, 10
    scene.render.filepath = str(FOLDER / "rendered_")
    name = scene.barchan.carrier.name
    rendered = {}

    def on_change(scene, depsgraph):
        if depsgraph.mode == "RENDER":
            rendered[scene.frame_current] = points_in(depsgraph, name)

    bpy.app.handlers.frame_change_post.append(on_change)
    try:
        bpy.ops.render.render(animation=True)
    finally:
        bpy.app.handlers.frame_change_post.remove(on_change)
    check_equal(sorted(set(rendered) & {8, 9, 10}), [8, 9, 10], "frames that the render evaluated")
    for frame in (8, 9, 10):
        scene.frame_set(frame)
        view = points_in(bpy.context.evaluated_depsgraph_get(), name)
        check(view is not None and len(view) > 100, f"frame {frame} draws no points")
        check_arrays(rendered[frame], view, f"points rendered at frame {frame}")
    bpy.ops.wm.save_as_mainfile(filepath=str(FOLDER / "render.blend"))


FARM = """
import sys, os
import bpy, addon_utils  # in this order: the second is there only once the first is
assert addon_utils.enable(sys.argv[1]) is not None
bpy.ops.wm.open_mainfile(filepath=sys.argv[2])
bpy.context.scene.frame_set(9)
bpy.context.scene.render.filepath = sys.argv[3]
bpy.ops.render.render(write_still=True)
sys.stdout.flush()
os._exit(0)
"""


def test_another_process_renders_one_frame_alone():
    if not harness.ZIP:
        return
    path = FOLDER / "alone.png"
    command = [sys.executable, "-c", FARM, harness.EXTENSION, str(FOLDER / "render.blend"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    check_equal(done.returncode, 0, f"exit code ({done.stderr})")
    difference = float(np.abs(harness.pixels(path) - harness.pixels(FOLDER / "rendered_0009.png")).max())
    check_equal(difference, 0.0, "largest difference from the frame of the animation")


def registered():
    """Names of what the add-on has put into Blender."""
    found = []
    for base in (bpy.types.Operator, bpy.types.Panel, bpy.types.PropertyGroup, bpy.types.Menu, bpy.types.UIList):
        for cls in base.__subclasses__():
            if cls.__module__.startswith(harness.PACKAGE) and cls.is_registered:
                found.append(cls.__name__)
    for name in dir(bpy.app.handlers):
        handlers = getattr(bpy.app.handlers, name)
        if isinstance(handlers, list):
            found += [name for one in handlers if getattr(one, "__module__", "").startswith(harness.PACKAGE)]
    return sorted(found)


def memory_bytes():
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def set_enabled(is_enabled):
    if harness.ZIP:
        import addon_utils

        (addon_utils.enable if is_enabled else addon_utils.disable)(harness.EXTENSION)
    else:
        module = sys.modules[harness.PACKAGE]
        module.register() if is_enabled else module.unregister()


def test_enabling_a_hundred_times_leaks_nothing():
    harness.new_file()
    before = registered()
    check(len(before) > 20, f"only {before} are registered")
    blocks, memory = [], []
    for index in range(CYCLES + 20):
        set_enabled(False)
        check_equal(registered(), [], "registered after disabling")
        set_enabled(True)
        check_equal(registered(), before, "registered after enabling")
        if index >= 19:  # caches are filled by then
            gc.collect()
            blocks.append(sys.getallocatedblocks())
            memory.append(memory_bytes())
    per_cycle = (blocks[-1] - blocks[0]) / CYCLES
    grown = memory[-1] - memory[0]
    print(f"  {per_cycle:+.2f} Python objects and {grown / CYCLES / 1024:+.1f} kB per cycle")
    # A module or class that stays is hundreds of objects. A page now and then is the allocator's.
    check(per_cycle < 20, f"{per_cycle:.1f} Python objects are left per cycle")
    check(grown < CYCLES * 16384, f"{grown} bytes are left after {CYCLES} cycles")


def test_uninstall_leaves_a_file_that_opens():
    if not harness.ZIP:
        return
    open_file(FILE)
    index = [repo.module for repo in bpy.context.preferences.extensions.repos].index("user_default")
    place = pathlib.Path(bpy.context.preferences.extensions.repos[index].directory) / "barchan"
    check(place.is_dir(), f"there is no {place}")
    bpy.ops.extensions.package_uninstall(repo_index=index, pkg_id="barchan")
    check_equal(registered(), [], "registered after the uninstall")
    check(not hasattr(bpy.types.Scene, "barchan") and not hasattr(bpy.types.Object, "barchan"), "properties are left")
    check(not place.exists(), f"{place} is left")
    check(not list(place.parent.parent.rglob("barchan*")), f"left: {list(place.parent.parent.rglob('barchan*'))}")
    open_file(FILE)
    bpy.context.scene.frame_set(3)
    check("Barchan Sand" in bpy.data.objects, "the sand is gone from the file")
    check_equal(len(frames(CACHE)), LAST, "frames, which are the artist's")
    print("  " + json.dumps({"frames kept": len(frames(CACHE))}))


if __name__ == "__main__":
    harness.main(globals())
