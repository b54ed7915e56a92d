# SPDX-License-Identifier: GPL-3.0-or-later
"""Mark, bake, scrub, stop, free."""

import threading

import harness
from harness import FOLDER, bpy, check, check_arrays, check_equal, np, room


def test_set_type_marks_selected_meshes_and_hides_sand_from_the_render():
    harness.new_file()
    block = harness.add_box("Block", (1, 1, 1))
    check_equal(harness.mark(block, "SAND"), {"FINISHED"}, "result of set_type")
    check_equal(block.barchan.type, "SAND", "type")
    check_equal((block.display_type, block.hide_render), ("WIRE", True), "display of sand")
    harness.mark(block, "COLLIDER")
    check_equal((block.display_type, block.hide_render), ("TEXTURED", False), "display of a collider that was sand")
    for name in ("EMITTER", "OUTFLOW"):
        harness.mark(block, name)
        check_equal((block.display_type, block.hide_render), ("WIRE", True), f"display of {name}")
    harness.mark(block, "BODY")
    check_equal((block.display_type, block.hide_render), ("TEXTURED", False), "display of a body")
    harness.mark(block, "NONE")
    check_equal(block.barchan.type, "NONE", "type")


def test_bake_writes_every_frame_and_makes_one_carrier():
    scene = harness.baked_scene()
    frames, byte_count = room("engine").core.list_frames(scene.barchan.folder)
    check_equal(frames, list(range(1, 61)), "frames in the cache")
    count = len(harness.carrier_positions(scene))
    print(f"  {count} grains, {byte_count} bytes")
    check(200 <= count <= 1000, f"{count} grains were made, expected a few hundred")
    check_equal([ob.name for ob in bpy.data.objects if ob.name.startswith("Barchan")], ["Barchan Sand"], "carriers")


def test_scrubbing_60_10_60_shows_identical_grains_equal_to_the_cache():
    scene = harness.baked_scene()
    core = room("engine").core
    seen = []
    for frame in (60, 10, 60):
        scene.frame_set(frame)
        cached = core.read_frame(scene.barchan.folder, frame)["arrays"]
        check_arrays(harness.carrier_positions(scene), cached["position"], f"carrier at frame {frame}")
        points, radii = harness.drawn_points(scene)
        offsets = core.tetrahedron(scene.barchan.radius)
        expected = cached["position"][:, None, :] + harness.rotate(cached["rotation"], offsets)
        check_equal(len(points), 4 * len(expected), "points drawn")
        # The order of the four spheres within a grain is Blender's own: each drawn one must be one of the expected, and
        # each expected one must be drawn.
        gaps = np.linalg.norm(points.reshape(-1, 4, 1, 3) - expected[:, None], axis=3)
        worst = max(float(gaps.min(axis=1).max()), float(gaps.min(axis=2).max()))
        # Blender multiplies in float32: a few rounding errors of a coordinate of about 1 m.
        check(worst < 2e-6, f"points drawn at frame {frame} are off by {worst:g} m")
        check_arrays(radii, np.full(len(points), scene.barchan.radius, np.float32), "radius of the points")
        seen.append(points)
    check_arrays(seen[2], seen[0], "points at frame 60 the second time")
    check(np.abs(seen[1] - seen[0]).max() > 0.05, "the grains did not move between frames 10 and 60")


def test_grains_display_instances_meshes_with_the_cached_rotation():
    scene = harness.baked_scene()
    scene.barchan.display = "GRAINS"
    scene.frame_set(60)
    first = harness.drawn_instances(scene)
    scene.frame_set(10)
    matrices = harness.drawn_instances(scene)
    scene.frame_set(60)
    check_arrays(harness.drawn_instances(scene), first, "instances at frame 60 the second time")
    cached = room("engine").core.read_frame(scene.barchan.folder, 10)["arrays"]
    check_arrays(matrices[:, :3, 3], cached["position"], "instance positions", 1e-6)
    axes = harness.rotate(cached["rotation"], np.eye(3) * scene.barchan.radius).transpose(0, 2, 1)
    check_arrays(matrices[:, :3, :3], axes, "instance axes", 1e-6)


def test_spheres_bake_and_draw_one_point_each():
    scene = harness.baked_scene(frame_end=3, shape="SPHERE", radius=0.05)
    scene.frame_set(3)
    points, radii = harness.drawn_points(scene)
    check_arrays(points, harness.carrier_positions(scene), "points drawn")
    check_arrays(radii, np.full(len(points), 0.05, np.float32), "radius of the points")


def test_grains_stay_above_the_floor_and_shapes_agree_with_the_simulator():
    # A grain's spheres as drawn must rest on the floor without sinking in: if the drawn cluster were turned differently
    # from the simulated one, spheres would reach below the floor by up to a radius. A tenth of a radius is the overlap
    # allowed at the fastest impact.
    scene = harness.baked_scene()
    scene.frame_set(60)
    points, _radii = harness.drawn_points(scene)
    radius = scene.barchan.radius
    inside = np.abs(points[:, :2]).max(axis=1) < 0.9
    lowest = float(points[inside, 2].min())
    print(f"  lowest sphere centre {lowest / radius:.3f} radii above the floor")
    check(0.9 * radius < lowest < 1.1 * radius, f"a sphere centre lies {lowest / radius:.3f} radii above the floor")


def test_baking_again_reuses_node_group_material_and_carrier():
    scene = harness.small_scene(FOLDER / "again", frame_end=2)
    for radius in (0.03, 0.04, 0.03):
        scene.barchan.radius = radius
        bpy.ops.barchan.bake()
    names = [group.name for group in bpy.data.node_groups if group.name.startswith("Barchan")]
    check_equal(names, ["Barchan Grain", "Barchan Grains"], "node groups")
    check_equal([m.name for m in bpy.data.materials if m.name.startswith("Barchan")], ["Barchan Sand"], "materials")
    check_equal([m.name for m in bpy.data.meshes if m.name.startswith("Barchan")], ["Barchan Sand"], "carrier meshes")
    check_equal(len(scene.barchan.carrier.modifiers), 1, "modifiers of the carrier")


def test_two_bakes_of_the_same_scene_are_the_same_bits():
    positions = []
    for threads in (1, 2):
        scene = harness.small_scene(FOLDER / f"same_{threads}", frame_end=12, radius=0.03)
        scene.barchan.threads = threads
        bpy.ops.barchan.bake()
        frame = room("engine").core.read_frame(scene.barchan.folder, 12)
        positions.append((frame["state_hash"], frame["arrays"]["position"].copy()))
    check_equal(positions[0][0], positions[1][0], "state hash with two threads")
    check_arrays(positions[0][1], positions[1][1], "positions with two threads")


def test_grains_that_touch_a_collider_are_left_out_with_a_warning():
    scene = harness.small_scene(FOLDER / "touching", frame_end=1)
    harness.mark(harness.add_box("Post", (0.1, 0.1, 2.0), (0.0, 0.0, 1.0)), "COLLIDER")
    run = room("bake").Bake(room("export").make_job(bpy.context))
    run.run()
    check_equal(run.progress.state, "DONE", f"state ({run.error})")
    check(len(run.warnings) == 1 and "left out" in run.warnings[0], f"warnings are {run.warnings}")
    print(f"  {run.warnings[0]}")
    positions = room("engine").core.read_frame(scene.barchan.folder, 1)["arrays"]["position"]
    check(np.abs(positions[:, :2]).max(axis=1).min() > 0.05 + scene.barchan.radius, "a grain stands in the post")


def test_near_any_agrees_with_every_pair():
    near_any = room("assembly").near_any
    random = np.random.default_rng(7)
    points = random.random((400, 3), np.float32)
    others = random.random((300, 3), np.float32) * np.float32(1.5) - np.float32(0.3)
    distance = np.linalg.norm(points[:, None] - others[None], axis=2).min(axis=1)
    for limit in (0.01, 0.07, 0.3):
        check_arrays(near_any(points, others, limit), distance < limit, f"mask for {limit}")
    check_equal(near_any(points, others[:0], 1.0).any(), np.bool_(False), "mask without others")


def test_a_stopped_bake_keeps_the_frames_done_so_far():
    scene = harness.small_scene(FOLDER / "stopped", frame_end=500)
    run = room("bake").Bake(room("export").make_job(bpy.context))
    some_frames = threading.Event()
    thread = threading.Thread(
        target=run.run,
        args=(lambda progress: (progress.frames_done >= 4 or progress.is_finished) and some_frames.set(),),
    )
    thread.start()
    some_frames.wait()
    run.cancel()
    thread.join()
    progress = run.progress
    print(f"  {progress}")
    check_equal(progress.state, "STOPPED", f"state ({run.error})")
    frames, _bytes = room("engine").core.list_frames(scene.barchan.folder)
    check_equal(frames, list(range(1, progress.frames_done + 1)), "frames in the cache")
    check(4 <= len(frames) < 500, f"{len(frames)} frames are in the cache, expected at least 4 and not all")
    for frame in frames:
        room("engine").core.read_frame(scene.barchan.folder, frame)


def test_progress_says_frame_count_and_time_left():
    progress = room("bake").Progress("BAKING", 45, 45, 120, 1000, 200.0)
    check_equal(progress.text(), "Baking 38 % (45/120, 3 min 20 s left)", "text")


def test_free_removes_our_frames_and_nothing_else():
    folder = FOLDER / "freed"
    scene = harness.small_scene(folder, frame_end=2, radius=0.04)
    bpy.ops.barchan.bake()
    foreign = [folder / "notes.txt", folder / "frame_000001.txt", folder / "picture.sand.png"]
    for path in foreign:
        path.write_text("mine")
    before = len(bpy.data.meshes)
    check_equal(bpy.ops.barchan.free(), {"FINISHED"}, "result of free")
    check_equal(sorted(p.name for p in folder.iterdir()), sorted(p.name for p in foreign), "files left")
    check(scene.barchan.carrier is None, "the carrier is still there")
    check_equal(len(bpy.data.meshes), before - 1, "meshes in the file")
    for path in foreign:
        path.unlink()
    folder.rmdir()
    sentence = harness.error_of(bpy.ops.barchan.free)
    check("There are no baked frames in the cache folder" in sentence, f"free of nothing says {sentence!r}")


if __name__ == "__main__":
    harness.main(globals())
