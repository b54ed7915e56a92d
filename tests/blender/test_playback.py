# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames that are missing, torn, between two others, after a reload, after an undo."""

import shutil

import harness
from harness import FOLDER, bpy, check, check_arrays, check_equal, np, room


def frame_file(folder, frame):
    return folder / f"frame_{frame:06d}.sand"


def own_copy(name):
    """The baked scene with a cache folder of its own that a test may damage."""
    scene = harness.baked_scene(frame_end=12, radius=0.03)
    folder = FOLDER / name
    shutil.copytree(scene.barchan.folder, folder)
    scene.barchan.folder = str(folder)
    return scene, folder


def test_a_missing_frame_keeps_the_grains_and_says_so_once():
    scene, folder = own_copy("missing")
    frame_file(folder, 7).unlink()
    scene.frame_set(6)
    before = harness.carrier_positions(scene)
    with harness.console() as lines:
        scene.frame_set(7)
        scene.frame_set(7)
    check_arrays(harness.carrier_positions(scene), before, "grains at the missing frame")
    message = room("playback").message(scene)
    check("7" in message and str(folder) in message, f"message is {message!r}")
    check_equal([line for line in lines if "Traceback" in line or "Error" in line], [], "exceptions")
    check_equal(len([line for line in lines if line.startswith("Barchan:")]), 1, f"lines on the console ({lines})")
    print(f"  {message}")
    scene.frame_set(8)
    check_equal(room("playback").message(scene), "", "message at the next frame")


def test_a_torn_frame_keeps_the_grains_and_names_the_file():
    scene, folder = own_copy("torn")
    path = frame_file(folder, 7)
    path.write_bytes(path.read_bytes()[:-100])
    scene.frame_set(6)
    before = harness.carrier_positions(scene)
    scene.frame_set(7)
    check_arrays(harness.carrier_positions(scene), before, "grains at the torn frame")
    message = room("playback").message(scene)
    check(path.name in message, f"message is {message!r}")
    print(f"  {message}")


def test_frames_outside_the_bake_keep_the_grains_and_say_so():
    scene, _folder = own_copy("outside")
    scene.frame_set(12)
    before = harness.carrier_positions(scene)
    scene.frame_set(13)
    check_arrays(harness.carrier_positions(scene), before, "grains after the last frame")
    check("13" in room("playback").message(scene), f"message is {room('playback').message(scene)!r}")


def test_sub_frames_are_between_their_frames():
    scene, folder = own_copy("between")
    core = room("engine").core
    first, second = (core.read_frame(str(folder), frame)["arrays"] for frame in (8, 9))
    scene.frame_set(8, subframe=0.25)
    mesh = scene.barchan.carrier.data
    expected = first["position"] + np.float32(0.25) * (second["position"] - first["position"])
    check_arrays(harness.carrier_positions(scene), expected, "positions at 8.25")
    rotation = harness.read_attribute(mesh, "rotation", "value", 4)
    check_arrays(np.linalg.norm(rotation, axis=1), np.ones(len(rotation)), "length of rotations", 1e-6)
    # Between the two: the cosine to either end is at least the cosine between the ends.
    both = np.abs((first["rotation"] * second["rotation"]).sum(axis=1))
    for end in (first, second):
        cosine = np.abs((end["rotation"] * rotation).sum(axis=1))
        check((cosine >= both - 1e-5).all(), f"a rotation at 8.25 is outside its frames by {float((both - cosine).max()):g}")
    scene.frame_set(8)
    check_arrays(harness.carrier_positions(scene), first["position"], "positions at 8 afterwards")


def test_sub_frames_at_the_ends_hold_the_frame_that_exists():
    scene, folder = own_copy("ends")
    core = room("engine").core
    for frame, subframe, shown in ((0, 0.5, 1), (12, 0.5, 12)):
        scene.frame_set(5)
        scene.frame_set(frame, subframe=subframe)
        expected = core.read_frame(str(folder), shown)["arrays"]["position"]
        check_arrays(harness.carrier_positions(scene), expected, f"positions at {frame + subframe}")
        check_equal(room("playback").message(scene), "", f"message at {frame + subframe}")


def test_a_frame_rewritten_by_another_process_is_read_again():
    scene, folder = own_copy("rewritten")
    core = room("engine").core
    scene.frame_set(5)
    arrays = {name: array.copy() for name, array in core.read_frame(str(folder), 5)["arrays"].items()}
    arrays["position"] += np.float32(1.0)
    core.write_frame(str(folder), 5, arrays)
    scene.frame_set(5)
    check_arrays(harness.carrier_positions(scene), arrays["position"], "positions of the new frame")


def test_frames_with_another_grain_count_resize_the_carrier():
    scene, folder = own_copy("resized")
    core = room("engine").core
    arrays = {name: array[:50].copy() for name, array in core.read_frame(str(folder), 5)["arrays"].items()}
    core.write_frame(str(folder), 5, arrays)
    scene.frame_set(5)
    check_arrays(harness.carrier_positions(scene), arrays["position"], "positions")
    _points, radii = harness.drawn_points(scene)
    check_arrays(radii, np.full(200, 0.03, np.float32), "radius of the points")


def test_save_reload_and_move_keep_the_frames():
    place = FOLDER / "project"
    place.mkdir()
    scene = harness.small_scene("//barchan_cache/", frame_end=8, radius=0.04)
    bpy.ops.wm.save_as_mainfile(filepath=str(place / "sand.blend"))
    bpy.ops.barchan.bake()
    scene.frame_set(8)
    expected = harness.carrier_positions(scene)
    points, _radii = harness.drawn_points(scene)
    scene.frame_set(2)
    bpy.ops.wm.save_mainfile()
    check_equal(len(list((place / "barchan_cache").glob("frame_*.sand"))), 8, "frames beside the .blend")
    moved = FOLDER / "elsewhere"
    shutil.move(place, moved)
    harness.new_file()
    bpy.ops.wm.open_mainfile(filepath=str(moved / "sand.blend"))
    scene = bpy.context.scene
    check_equal(scene.barchan.folder, "//barchan_cache/", "cache folder in the file")
    scene.frame_set(8)
    check_equal(room("playback").message(scene), "", "message")
    check_arrays(harness.carrier_positions(scene), expected, "positions after reload")
    check_arrays(harness.drawn_points(scene)[0], points, "points after reload")


def test_an_unsaved_file_bakes_into_the_temporary_folder():
    scene = harness.small_scene("//barchan_cache/", frame_end=2, radius=0.04)
    folder = room("properties").cache_folder(scene)
    check(folder.startswith(bpy.app.tempdir.rstrip("/")), f"folder is {folder}, expected it in {bpy.app.tempdir}")
    bpy.ops.barchan.bake()
    scene.frame_set(2)
    check_equal(room("playback").message(scene), "", "message")
    bpy.ops.barchan.free()


def test_undo_does_not_undo_a_bake():
    scene = harness.small_scene(FOLDER / "undone", frame_end=3, radius=0.04)
    bpy.ops.ed.undo_push(message="before the bake")
    bpy.ops.barchan.bake()
    scene.frame_set(3)
    expected = harness.carrier_positions(scene)
    bpy.data.objects["Floor"].location.x = 0.1
    bpy.ops.ed.undo_push(message="moved")
    bpy.ops.ed.undo()
    scene = bpy.context.scene
    check_equal(bpy.data.objects["Floor"].location.x, 0.0, "floor after undo")
    check(scene.barchan.carrier is not None, "undo took the carrier away")
    scene.frame_set(3)
    check_arrays(harness.carrier_positions(scene), expected, "positions after undo")
    check_equal(len([ob for ob in bpy.data.objects if ob.name.startswith("Barchan")]), 1, "carriers after undo")
    bpy.ops.ed.redo()
    scene = bpy.context.scene
    scene.frame_set(3)
    check_arrays(harness.carrier_positions(scene), expected, "positions after redo")
    check_equal(len([ob for ob in bpy.data.objects if ob.name.startswith("Barchan")]), 1, "carriers after redo")


def test_undo_does_not_bring_freed_grains_back():
    scene = harness.small_scene(FOLDER / "freed_undo", frame_end=2, radius=0.04)
    bpy.ops.barchan.bake()
    bpy.ops.ed.undo_push(message="baked")
    bpy.ops.barchan.free()
    bpy.data.objects["Floor"].location.x = 0.1
    bpy.ops.ed.undo_push(message="moved")
    bpy.ops.ed.undo()
    check(bpy.context.scene.barchan.carrier is None, "undo brought the carrier of freed frames back")


def test_a_carrier_deleted_by_the_user_comes_back_with_the_next_bake():
    scene = harness.small_scene(FOLDER / "deleted", frame_end=2, radius=0.04)
    bpy.ops.barchan.bake()
    bpy.data.objects.remove(scene.barchan.carrier)
    scene.frame_set(2)
    bpy.ops.barchan.bake()
    bpy.context.scene.collection.objects.unlink(scene.barchan.carrier)
    scene.frame_set(1)
    bpy.ops.barchan.bake()
    check_equal([ob.name for ob in bpy.data.objects if ob.name.startswith("Barchan")], ["Barchan Sand"], "carriers")


if __name__ == "__main__":
    harness.main(globals())
