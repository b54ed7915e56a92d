# SPDX-License-Identifier: GPL-3.0-or-later
"""Export: the operator writes what is drawn, and stock Blender plays USD and geometry-nodes bakes with the add-on disabled:
position, velocity, radius, rotation and id of every frame to the bit, with counts that change."""

import importlib.util
import json
import os
import subprocess
import sys
import types

import harness
from harness import FOLDER, bpy, check, check_arrays, check_equal, np, room

FRAMES = range(1, 7)
RADIUS = np.float32(0.02)
HIDDEN, GONE = 8, 16
# (key for foreach_get, components) by attribute type
KEYS = {"FLOAT_VECTOR": ("vector", 3), "QUATERNION": ("value", 4), "FLOAT": ("value", 1), "INT": ("value", 1)}


def frame_arrays(frame, count=50):
    """Grains are born and taken one after the other; on frame 4 there is none."""
    random = np.random.default_rng(frame)
    rotation = random.normal(size=(count, 4))
    index = np.arange(count)
    flags = np.where(index > 9 + 5 * frame, HIDDEN, 0) | np.where(index < frame - 1, GONE, 0)
    return {
        "position": random.random((count, 3), np.float32),
        "rotation": (rotation / np.linalg.norm(rotation, axis=1, keepdims=True)).astype(np.float32),
        "velocity": random.random((count, 3), np.float32),
        "flags": np.where(frame == 4, GONE, flags).astype(np.int32),
    }


def expected_points(frame):
    arrays = frame_arrays(frame)
    index = np.flatnonzero(arrays.pop("flags") == 0)
    points = {name: array[index] for name, array in arrays.items()}
    return {**points, "radius": np.full(len(index), RADIUS), "id": index.astype(np.int32)}


def made_cache():
    """The synthetic cache, written once."""
    folder = FOLDER / "made"
    core = room("engine").core
    if not folder.exists():
        core.make_folder(folder)
        for frame in FRAMES:
            core.write_frame(folder, frame, frame_arrays(frame), seconds=(frame - 1) / 25)
    return folder


def export_usd(cache, out):
    """With the USD library of this Blender; Blender 4.2 bundles none, so there by usd-core in a process of its own."""
    if hasattr(bpy.utils, "expose_bundled_modules"):
        bpy.utils.expose_bundled_modules()
        room("engine").core.export(cache, "usd", out, radius=float(RADIUS))
        return
    package = os.path.dirname(os.path.dirname(room("engine").core.__file__))
    command = [sys.executable, "-m", "barchan", "export", cache, "--to", "usd", "--out", out, "--radius", RADIUS]
    done = subprocess.run(
        [str(part) for part in command], env={**os.environ, "PYTHONPATH": package}, capture_output=True, text=True, check=False
    )
    check_equal((done.returncode, done.stderr), (0, ""), "the command's exit code and standard error")


def stock_file():
    """An empty file in a Blender whose add-on is switched off."""
    harness.load_addon()
    if harness.ZIP:
        import addon_utils

        addon_utils.disable(harness.EXTENSION)
    elif hasattr(bpy.types.Scene, "barchan"):
        sys.modules[harness.SOURCE_PACKAGE].unregister()
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True, load_ui=False)
    check(not hasattr(bpy.types.Scene, "barchan"), "the add-on is still registered")
    for function in bpy.app.handlers.frame_change_pre:
        check("barchan" not in function.__module__, f"a handler of the add-on is still there: {function}")
    return bpy.context.scene


def played(ob):
    """Attributes of the point cloud that an object evaluates to: arrays by name."""
    depsgraph = bpy.context.evaluated_depsgraph_get()
    evaluated = ob.evaluated_get(depsgraph)
    if hasattr(evaluated, "evaluated_geometry"):
        geometry = evaluated.evaluated_geometry()  # must outlive its components
        data = geometry.pointcloud
    elif ob.type == "POINTCLOUD":
        data = evaluated.data
    else:
        clouds = [one.object for one in depsgraph.object_instances if one.object.type == "POINTCLOUD"]
        data = clouds[0].data if clouds else None
    found = {}
    for attribute in data.attributes if data is not None else ():
        key, components = KEYS[attribute.data_type]
        values = np.empty(len(attribute.data) * components, np.int32 if attribute.data_type == "INT" else np.float32)
        attribute.data.foreach_get(key, values)
        found[attribute.name] = values.reshape(-1, components) if components > 1 else values
    return found


def check_playback(scene, ob, what):
    """Forwards, backwards and at random."""
    for frame in (*FRAMES, *reversed(FRAMES), 3, 6, 2, 5):
        scene.frame_set(frame)
        found, expected = played(ob), expected_points(frame)
        count = len(expected["id"])
        for name, array in expected.items():
            if count == 0:  # USD leaves attributes of an empty cloud out
                check_equal(len(found.get(name, ())), 0, f"{what}: {name} on frame {frame}")
                continue
            check(name in found, f"{what}: no {name} on frame {frame}, only {sorted(found)}")
            check_arrays(found[name], array, f"{what}: {name} on frame {frame}")
    counts = {len(expected_points(frame)["id"]) for frame in FRAMES}
    check(len(counts) >= 5, f"the count hardly changes: {counts}")


# ---------------------------------------------------------------------------------------------------------------------
# The operator


def test_the_operator_writes_what_is_drawn():
    scene = harness.baked_scene(frame_end=4, edge=0.4, radius=0.02)
    scene.barchan.radius, scene.barchan.shape = 0.5, "SPHERE"  # set for a next bake: the frames are what they are
    out = FOLDER / "drawn"
    out.mkdir()
    check_equal(bpy.ops.barchan.export(to="NPZ", directory=str(out)), {"FINISHED"}, "result of the export")
    for frame in (1, 4):
        scene.frame_set(frame)
        drawn, radii = harness.drawn_points(scene)
        points = np.load(out / "untitled_sand_npz" / f"frame_{frame:06d}.npz")
        check(len(drawn) > 100, f"only {len(drawn)} points are drawn")
        # Grain by grain; the four spheres of one are drawn in an order of Blender's own.
        own, seen = points["position"].reshape(-1, 4, 1, 3), drawn.reshape(-1, 1, 4, 3)
        distances = np.abs(own - seen).max(axis=3)
        check((np.sort(distances.argmin(axis=2), axis=1) == [0, 1, 2, 3]).all(), f"spheres fall together on frame {frame}")
        # Blender turns the offsets by matrices in single precision: coordinates below 1 m, good to a few 1e-7.
        worst = float(distances.min(axis=2).max())
        check(worst <= 2e-6, f"spheres on frame {frame} are off by up to {worst:g} m")
        check_arrays(points["radius"], radii, "radii", 0.0)
    check_equal(bpy.ops.barchan.export(to="PLY", points="GRAINS", directory=str(out)), {"FINISHED"}, "result")
    about = json.loads((out / "untitled_sand_ply" / "barchan_export.json").read_text())
    check_equal(about["fps"], 24.0, "frames per second")
    check_equal(about["frames"][0]["points"], len(drawn) // 4, "points for grains")


def test_the_operator_leaves_bodies_out_and_names_exports_after_the_file():
    scene = harness.baked_scene(frame_end=4, edge=0.4, radius=0.02)
    scene.barchan.body_count = 3  # as after a bake whose first three elements are bodies
    out = FOLDER / "named"
    out.mkdir()
    bpy.ops.wm.save_as_mainfile(filepath=str(out / "dune.blend"))
    check_equal(bpy.ops.barchan.export(to="NPZ", points="GRAINS", directory="//"), {"FINISHED"}, "result")
    points = np.load(out / "dune_sand_npz" / "frame_000002.npz")
    whole = room("engine").core.read_frame(scene.barchan.folder, 2)["arrays"]["position"]
    check_arrays(points["position"], whole[3:], "grains behind the bodies")
    check_equal(points["id"][0], 3, "first id")


def test_what_goes_wrong_is_said_and_an_older_export_stays():
    harness.new_file()
    text = harness.error_of(bpy.ops.barchan.export, to="NPZ", directory=str(FOLDER))
    check("no baked frames" in text, f"without frames: {text!r}")
    harness.baked_scene(frame_end=4, edge=0.4, radius=0.02)
    out = FOLDER / "twice"
    out.mkdir()
    bpy.ops.barchan.export(to="NODES", directory=str(out))
    before = harness.folder_digest(out)
    text = harness.error_of(bpy.ops.barchan.export, to="NODES", directory=str(out))
    check("is there already" in text, f"a second time: {text!r}")
    check_equal(harness.folder_digest(out), before, "the older export")
    check_equal(bpy.ops.barchan.export(to="NODES", directory=str(out), overwrite=True), {"FINISHED"}, "with Replace")
    text = harness.error_of(bpy.ops.barchan.export, to="PLY", directory=str(out / "missing"))
    check("does not exist" in text, f"a missing folder: {text!r}")
    check_equal(os.listdir(out), ["untitled_sand_nodes"], "what is there")


def test_the_worker_stops_and_leaves_nothing():
    harness.load_addon()
    sequence = room("sequence")
    cache, out = made_cache(), FOLDER / "stopped"
    run = sequence.Export(str(cache), "PLY", str(out), radius=0.02)
    run.run(lambda run: run.cancel() if run.done == 2 else None)
    check_equal((run.state, run.done, out.exists()), ("STOPPED", 2, False), "state, frames, output")
    check("Exporting 33 % (2/6, " in run.text(), run.text())
    run = sequence.Export(str(cache), "PLY", str(out), radius=0.02)
    run.start()
    run.join()
    check_equal((run.state, run.report["frame_count"], out.is_dir()), ("DONE", 6, True), "state, frames, output")
    run = sequence.Export(str(cache), "PLY", str(out), radius=0.02)
    run.run()
    check(run.state == "FAILED" and "is there already" in run.error, f"{run.state}: {run.error}")


def test_no_bake_starts_while_an_export_runs():
    harness.small_scene(FOLDER / "busy", frame_end=2, radius=0.05)
    room("sequence").running = types.SimpleNamespace(fraction=0.5, text=lambda: "")
    try:
        text = harness.error_of(bpy.ops.barchan.bake)
    finally:
        room("sequence").running = None
    check("An export is running" in text, f"bake says {text!r}")


def test_the_operator_writes_usd_where_blender_can():
    harness.baked_scene(frame_end=4, edge=0.4, radius=0.02)
    out = FOLDER / "operator_usd"
    out.mkdir()
    if hasattr(bpy.utils, "expose_bundled_modules"):
        check_equal(bpy.ops.barchan.export(to="USD", directory=str(out)), {"FINISHED"}, "result")
        check_equal(os.listdir(out), ["untitled_sand.usdc"], "what is there")
        return
    sys.modules["pxr"] = None  # Blender 4.2 as people have it: no USD library for Python
    try:
        text = harness.error_of(bpy.ops.barchan.export, to="USD", directory=str(out))
    finally:
        del sys.modules["pxr"]
    check("usd-core" in text and "another format" in text, f"without pxr: {text!r}")
    check_equal(os.listdir(out), [], "what is there")


# ---------------------------------------------------------------------------------------------------------------------
# Stock Blender


def test_stock_blender_plays_usd():
    cache, out = made_cache(), FOLDER / "stock.usdc"
    export_usd(cache, out)
    scene = stock_file()
    check_equal(bpy.ops.wm.usd_import(filepath=str(out)), {"FINISHED"}, "result of the import")
    ob = scene.objects["Sand"]
    check_equal((ob.type, [one.type for one in ob.modifiers]), ("POINTCLOUD", ["MESH_SEQUENCE_CACHE"]), "the object")
    check_equal((scene.frame_start, scene.frame_end), (1, 6), "frames of the scene")
    check_playback(scene, ob, "USD")
    path = FOLDER / "stock_usd.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))
    scene = bpy.context.scene
    check_playback(scene, scene.objects["Sand"], "USD after a reload")


def test_stock_blender_plays_the_nodes_bake():
    cache, out = made_cache(), FOLDER / "stock_nodes"
    if not out.exists():
        room("engine").core.export(cache, "nodes", out, radius=float(RADIUS))
    scene = stock_file()
    script = out / "play_in_blender.py"
    spec = importlib.util.spec_from_file_location("__main__", script)  # as `blender --python` runs it
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    ob = scene.objects["Sand"]
    check_equal((scene.frame_start, scene.frame_end), (1, 6), "frames of the scene")
    check(abs(scene.render.fps / scene.render.fps_base - 25) < 1e-6, "frames per second of the scene")
    if bpy.app.version >= (4, 5, 0):
        check_playback(scene, ob, "nodes")
    path = FOLDER / "stock_nodes.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))
    scene = bpy.context.scene
    check_playback(scene, scene.objects["Sand"], "nodes after a reload")
    scene.frame_set(5, subframe=0.5)
    found, first, second = played(scene.objects["Sand"]), expected_points(5), expected_points(6)
    # Grains of both frames are matched by their id and lie half-way.
    rows = {number: index for index, number in enumerate(found["id"])}
    common = [number for number in second["id"] if number in set(first["id"]) and number in rows]
    check(len(common) > 20, f"only {len(common)} grains are on both frames")
    middle = [
        (first["position"][list(first["id"]).index(number)] + second["position"][list(second["id"]).index(number)]) / 2
        for number in common
    ]
    check_arrays(found["position"][[rows[number] for number in common]], np.array(middle), "positions at 5.5", 1e-6)


if __name__ == "__main__":
    harness.main(globals())
