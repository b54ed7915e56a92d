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
    frames = [core.read_frame(str(folder), frame) for frame in (8, 9)]
    first, second = (frame["arrays"] for frame in frames)
    scene.frame_set(8, subframe=0.25)
    mesh = scene.barchan.carrier.data
    seconds = frames[1]["seconds"] - frames[0]["seconds"]
    expected = core.between(first, second, 0.25, seconds=seconds)["position"]
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


def test_sub_frames_of_free_fall_are_on_the_parabola():
    scene, folder = own_copy("falling")
    core = room("engine").core
    first, second = (core.read_frame(str(folder), frame)["arrays"]["position"] for frame in (2, 3))
    scene.frame_set(2, subframe=0.25)
    straight = first + np.float32(0.25) * (second - first)
    # A quarter of the way the parabola is 3/32 g t^2 above the straight line; places are kept to 0.3 mm.
    rise = np.full(len(first), 3 / 32 * 9.81 / 24**2, np.float32)
    check_arrays((harness.carrier_positions(scene) - straight)[:, 2], rise, "rise above the straight line", 4e-4)


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


# ---------------------------------------------------------------------------------------------------------------------
# Which frame, how much of it, and grains that come and go: on frames made here, whose numbers are known

FPS = 24


def made_scene(name, count=40, frame_count=12, shape="SPHERE", flags=None, radius=0.05):
    """Grains in a row along y that all move 0.3 m along x per frame; flags(frame) gives the flags of a frame."""
    folder = FOLDER / name
    core = room("engine").core
    core.make_folder(str(folder))
    turns = np.tile(np.array([1, 0, 0, 0], np.float32), (count, 1))
    for frame in range(1, frame_count + 1):
        places = np.zeros((count, 3), np.float32)
        places[:, 0] = 0.3 * frame
        places[:, 1] = 0.2 * np.arange(count)
        speeds = np.tile(np.array([0.3 * FPS, 0, 0], np.float32), (count, 1))
        arrays = {"position": places, "rotation": turns, "velocity": speeds}
        if flags is not None:
            arrays["flags"] = flags(frame)
        core.write_frame(str(folder), frame, arrays, seconds=(frame - 1) / FPS)
    scene = harness.new_file()
    scene.frame_start, scene.frame_end = 1, frame_count
    scene.barchan.folder = str(folder)
    scene.barchan.radius, scene.barchan.shape = radius, shape
    room("playback").attach(scene, room("playback").Baked(count, radius, shape))
    return scene


def first_x(scene):
    return float(harness.carrier_positions(scene)[0, 0])


def check_x(scene, frame, what):
    check(abs(first_x(scene) - 0.3 * frame) < 1e-5, f"{what}: grains are at {first_x(scene) / 0.3:.4f} frames, expected {frame}")


def test_the_view_shows_every_kth_grain_and_renders_show_all():
    scene = made_scene("share")
    counts = []

    def count_points(scene, depsgraph):
        if scene.session_uid not in room("playback")._renders:
            return  # the view's own, after the render
        for instance in depsgraph.object_instances:
            if instance.object.type == "POINTCLOUD":
                counts.append(len(instance.object.data.points))

    scene.barchan_look.percentage = 25
    scene.frame_set(3)
    positions = harness.carrier_positions(scene)
    check_arrays(positions[:, 1], np.float32(0.2) * np.arange(0, 40, 4, dtype=np.float32), "places of every fourth grain", 1e-6)
    ids = np.empty(10, np.int32)
    scene.barchan.carrier.data.attributes["id"].data.foreach_get("value", ids)
    check_equal(ids.tolist(), list(range(0, 40, 4)), "ids in the view")
    shades = harness.read_attribute(scene.barchan.carrier.data, "shade", "value", 1)
    harness.add_camera(scene, (0, -5, 0), (0, 0, 0))
    scene.render.engine = "CYCLES"
    scene.cycles.samples = 1
    scene.render.resolution_x = scene.render.resolution_y = 16
    scene.render.filepath = str(FOLDER / "share.png")
    bpy.app.handlers.frame_change_post.append(count_points)
    try:
        bpy.ops.render.render(write_still=True)
    finally:
        bpy.app.handlers.frame_change_post.remove(count_points)
    check_equal(set(counts), {40}, "points that renders evaluate")
    check_equal(len(scene.barchan.carrier.data.vertices), 10, "grains in the view after the render")
    scene.barchan_look.percentage = 100
    check_equal(len(scene.barchan.carrier.data.vertices), 40, "grains in the view at 100 %")
    every = harness.read_attribute(scene.barchan.carrier.data, "shade", "value", 1)
    check_arrays(every[::4], shades, "shades of the same grains")


def test_hold_and_override_choose_the_frame():
    scene = made_scene("retimed")
    settings = scene.barchan_look
    scene.frame_set(7)
    check_x(scene, 7, "timeline")
    settings.timing, settings.hold_frame = "HOLD", 3
    check_x(scene, 3, "hold")
    scene.frame_set(9)
    check_x(scene, 3, "hold, after a frame change")
    settings.timing = "OVERRIDE"
    settings.frame = 5.25
    check_x(scene, 5.25, "override")
    for frame, value in ((1, 2.0), (11, 7.0)):  # half the speed
        settings.frame = value
        settings.keyframe_insert("frame", frame=frame)
    for curve in room("follow").curves(scene).values():
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
    for frame in (1, 4, 11, 6):
        scene.frame_set(frame)
        check_x(scene, 2.0 + 0.5 * (frame - 1), f"keyframed override at {frame}")
    scene.frame_set(6, subframe=0.5)
    check_x(scene, 4.75, "keyframed override at 6.5")


def test_a_driven_override_is_right_at_once():
    scene = made_scene("driven")
    settings = scene.barchan_look
    settings.timing = "OVERRIDE"
    driver = settings.driver_add("frame").driver
    driver.type = "SCRIPTED"
    driver.expression = "13 - frame"  # backwards
    for frame in (2, 9, 5):
        scene.frame_set(frame)
        check_x(scene, 13 - frame, f"driven override at {frame}")


def test_switched_off_nothing_is_read():
    scene = made_scene("switched_off")
    scene.frame_set(4)
    scene.barchan_look.is_on = False
    scene.frame_set(8)
    check_x(scene, 4, "switched off")
    scene.frame_set(99)
    check_equal(room("playback").message(scene), "", "message at a missing frame")
    scene.frame_set(8)
    scene.barchan_look.is_on = True
    check_x(scene, 8, "switched on again")


def test_grains_that_come_and_go_keep_their_number_through_a_shutter():
    def flags(frame):
        found = np.zeros(40, np.int32)
        found[10:20] = 8 if frame < 6 else 0  # born on frame 6
        found[20:30] = 16 if frame >= 6 else 0  # gone on frame 6
        return found

    scene = made_scene("come_and_go", flags=flags)
    counts = {}

    def count_points(scene, depsgraph):
        for instance in depsgraph.object_instances:
            if instance.object.type == "POINTCLOUD":
                points = harness.read_attribute(instance.object.data, "position", "vector", 3)
                counts.setdefault(scene.frame_current_final, set()).add((len(points), float(points[:, 0].max())))

    harness.add_camera(scene, (0, -5, 0), (0, 0, 0))
    scene.render.engine = "CYCLES"
    scene.cycles.samples = 1
    scene.render.use_motion_blur = True
    scene.render.motion_blur_shutter = 1.0
    scene.render.resolution_x = scene.render.resolution_y = 16
    scene.render.filepath = str(FOLDER / "come_and_go.png")
    scene.frame_set(6)
    bpy.app.handlers.frame_change_post.append(count_points)
    try:
        bpy.ops.render.render(write_still=True)
    finally:
        bpy.app.handlers.frame_change_post.remove(count_points)
    print(f"  {counts}")
    check({5.5, 6.0, 6.5} <= set(counts), f"the shutter visits {sorted(counts)}")
    for frame in (5.5, 6.0, 6.5):
        check_equal({number for number, _x in counts[frame]}, {30}, f"points at {frame}")
        check(all(abs(x - 0.3 * frame) < 1e-4 for _number, x in counts[frame]), f"places at {frame}: {counts[frame]}")
    scene.frame_set(5, subframe=0.25)
    check_equal(len(harness.drawn_points(scene)[0]), 30, "points at 5.25 in the view")


def test_the_view_reads_places_alone_and_renders_read_all():
    scene = made_scene("sparing")
    read = []
    core = room("engine").core
    kept = core.Reader

    class Spy:
        def __init__(self):
            self.reader = kept()

        def read_frame(self, folder, frame, names=None, every=1):
            read.append(sorted(names) if names else "all")
            return self.reader.read_frame(folder, frame, names=names, every=every)

    room("playback")._store.clear()
    core.Reader = Spy
    try:
        scene.frame_set(5)
        scene.barchan_look.use_all = True
        scene.frame_set(6)
        scene.barchan_look.use_all = False
        bpy.app.handlers.render_init[-1](scene)
        scene.frame_set(7)
    finally:
        core.Reader = kept
        room("playback")._store.clear()
        room("playback").on_render_end(scene)
    check_equal(read[0], ["position"], "arrays read for points in the view")
    check("all" in read[1:3], f"arrays read with All Attributes: {read[1:3]}")
    check_equal(read[-1], "all", "arrays read while rendering")


def memory_mib():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


def test_a_thousand_frame_changes_take_no_memory():
    scene = made_scene("thousand", count=20000, frame_count=6)
    random = np.random.default_rng(3)
    scene.barchan_look.use_all = True
    for frame in random.integers(1, 7, 200):
        scene.frame_set(int(frame))
    before = memory_mib()
    for frame in random.integers(1, 7, 1000):
        scene.frame_set(int(frame))
    after = memory_mib()
    print(f"  {before:.1f} MiB, and after 1000 changes of 20,000 grains {after:.1f} MiB")
    # A frame is 1.1 MiB: a leak of one in a hundred would show.
    check(after - before < 8, f"memory grew from {before:.1f} to {after:.1f} MiB")


if __name__ == "__main__":
    harness.main(globals())
