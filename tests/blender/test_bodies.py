# SPDX-License-Identifier: GPL-3.0-or-later
"""Bodies: the sand moves them, their objects follow on the timeline, and everything comes back when the bake is freed."""

import csv
import math
import shutil

import harness
from harness import FOLDER, bpy, check, check_arrays, check_equal, np, room


def matrix_of(ob):
    """World matrix on the current frame, (4, 4)."""
    evaluated = ob.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return np.array([list(row) for row in evaluated.matrix_world])


def add_body(name, size, location, **settings):
    ob = harness.add_box(name, size, location)
    harness.mark(ob, "BODY")
    for key, value in settings.items():
        setattr(ob.barchan, key, value)
    return ob


def new_scene(folder, frame_end=20, radius=0.05):
    scene = harness.new_file()
    scene.frame_start, scene.frame_end = 1, frame_end
    scene.barchan.folder = str(folder)
    scene.barchan.radius = radius
    scene.barchan.shape = "SPHERE"
    scene.barchan.threads = 1
    scene.barchan.max_overlap = 0.3
    return scene


def hand_written(name, frame_count=10):
    """A scene whose bake is written by the test: body A under a turning parent, body B mirrored, one grain."""
    follow, playback, core = room("follow"), room("playback"), room("engine").core
    scene = new_scene(FOLDER / name, frame_count)
    parent = bpy.data.objects.new("Parent", None)
    scene.collection.objects.link(parent)
    parent.scale = (2.0, 2.0, 2.0)
    for frame, angle in ((1, 0.3), (frame_count, 1.5)):
        parent.rotation_euler = (angle, 0.5, 0.1)
        parent.keyframe_insert("rotation_euler", frame=frame)
    first = add_body("A", (1.0, 1.0, 1.0), (1.0, 2.0, 3.0))
    first.rotation_euler = (0.7, 0.2, 0.4)
    first.parent = parent
    second = add_body("B", (0.3, 0.4, 0.5), (-1.0, 0.0, 0.0))
    second.rotation_mode = "QUATERNION"
    second.scale = (-1.0, 1.0, 2.0)
    scene.frame_set(1)
    start = np.array([[0.1, 0.2, 0.3], [1.0, 1.0, 1.0]], np.float32)
    core.make_folder(str(FOLDER / name))
    for frame in range(1, frame_count + 1):
        angle = 0.4 * (frame - 1)
        rotation = np.array(
            [[math.cos(angle), 0, math.sin(angle), 0], [math.cos(angle / 2), math.sin(angle / 2), 0, 0], [1, 0, 0, 0]],
            np.float32,
        )
        position = np.vstack((start + np.float32(0.1 * (frame - 1)), np.zeros((1, 3)))).astype(np.float32)
        core.write_frame(
            str(FOLDER / name),
            frame,
            {"position": position, "rotation": rotation, "velocity": np.zeros_like(position)},
        )
    starts = tuple(
        follow.Start(ob.session_uid, tuple(matrix_of(ob).ravel()), tuple(map(float, place)), (1.0, 0.0, 0.0, 0.0))
        for ob, place in zip((first, second), start)
    )
    playback.attach(scene, playback.Baked(1, 0.02, "SPHERE", 2, starts))
    return scene, first, second


def expected_matrix(ob, frame, start_matrix, place, folder):
    """T(x) R(q) T(-x0) M0 from the cached frame of the body at index 0 or 1."""
    arrays = room("engine").core.read_frame(str(folder), frame)["arrays"]
    index = 0 if ob.name == "A" else 1
    turn = harness.rotate(arrays["rotation"][index : index + 1], np.eye(3))[0].T
    matrix = np.eye(4)
    matrix[:3, :3] = turn
    matrix[:3, 3] = arrays["position"][index] - turn @ place
    return matrix @ start_matrix


def test_objects_follow_the_cache_through_parents_mirrors_sub_frames_and_missing_frames():
    scene, first, second = hand_written("followed")
    folder = FOLDER / "followed"
    starts = {ob: matrix_of(ob) for ob in (first, second)}
    places = {first: np.array([0.1, 0.2, 0.3]), second: np.array([1.0, 1.0, 1.0])}
    for frame in (10, 4, 1):
        scene.frame_set(frame)
        for ob in (first, second):
            expected = expected_matrix(ob, frame, starts[ob], places[ob], folder)
            check_arrays(matrix_of(ob), expected, f"{ob.name} on frame {frame}", 2e-6)
    scene.frame_set(4, subframe=0.5)
    between = matrix_of(second)[:3, 3]
    scene.frame_set(4)
    before = matrix_of(second)[:3, 3]
    scene.frame_set(5)
    check(np.linalg.norm(between - 0.5 * (before + matrix_of(second)[:3, 3])) < 0.03, "B is not between its frames at 4.5")
    check_equal(len(scene.barchan.carrier.data.vertices), 1, "grains: bodies are not drawn as such")
    stays = matrix_of(first)
    (folder / "frame_000007.sand").unlink()
    scene.frame_set(7)
    check_arrays(matrix_of(first), stays, "A on the missing frame")
    check("Frame 7 is not in the cache" in room("playback").message(scene), room("playback").message(scene))
    check(tuple(first.location) == (1.0, 2.0, 3.0), "the artist's own location has changed")


def test_objects_follow_after_save_reload_and_undo_and_come_back_when_freed():
    place = FOLDER / "kept"
    place.mkdir()
    scene, first, _second = hand_written("kept_frames")
    shutil.move(FOLDER / "kept_frames", place / "frames")
    scene.barchan.folder = "//frames/"
    bpy.ops.wm.save_as_mainfile(filepath=str(place / "bodies.blend"))
    scene.frame_set(6)
    expected = matrix_of(first)
    bpy.ops.wm.save_mainfile()
    harness.new_file()
    bpy.ops.wm.open_mainfile(filepath=str(place / "bodies.blend"))
    scene = bpy.context.scene
    scene.frame_set(2)
    scene.frame_set(6)
    check_arrays(matrix_of(bpy.data.objects["A"]), expected, "A after reload", 1e-6)
    bpy.ops.ed.undo_push(message="here")
    bpy.data.objects["B"].location.x = 5.0
    bpy.ops.ed.undo_push(message="moved")
    bpy.ops.ed.undo()
    scene = bpy.context.scene
    scene.frame_set(6)
    check_arrays(matrix_of(bpy.data.objects["A"]), expected, "A after undo", 1e-6)
    bpy.ops.barchan.free()
    ob = bpy.data.objects["A"]
    check_equal(len(ob.constraints), 0, "constraints after free")
    check_equal([c.name for c in bpy.data.collections], [], "collections after free")
    check_equal([o.name for o in bpy.data.objects], ["A", "B", "Parent"], "objects after free")
    check(tuple(ob.location) == (1.0, 2.0, 3.0), "location after free")


def test_undo_does_not_undo_what_bodies_follow():
    scene, first, second = hand_written("undone")
    bpy.ops.ed.undo_push(message="followed")
    first.constraints.remove(first.constraints[0])
    second.location.x = 4.0
    bpy.ops.ed.undo_push(message="broken")
    bpy.ops.ed.undo()
    scene = bpy.context.scene
    check_equal(len(bpy.data.objects["A"].constraints), 1, "constraints after undo")
    check_equal(len(scene.barchan.followers), 2, "followers after undo")


def test_keyframes_equal_playback_and_are_undone():
    scene, first, second = hand_written("keyed")
    second.keyframe_insert("location", frame=3)
    second.keyframe_insert("location", frame=30)
    seen = {}
    for frame in range(1, 11):
        scene.frame_set(frame)
        seen[frame] = matrix_of(first), matrix_of(second)
    bpy.ops.ed.undo_push(message="followed")
    for ob in scene.objects:
        ob.select_set(ob == second)
    check_equal(bpy.ops.barchan.bake_keyframes(), {"FINISHED"}, "result")
    check_equal((len(first.constraints), len(second.constraints)), (1, 0), "constraints: only the selected body is keyed")
    for ob in scene.objects:
        ob.select_set(False)
    bpy.ops.barchan.bake_keyframes()
    bpy.ops.ed.undo_push(message="keyed")
    check_equal(len(first.constraints), 0, "constraints when none is selected: all are keyed")
    check("Barchan Bodies" not in bpy.data.collections, "the empties are still there")
    for frame in range(1, 11):
        scene.frame_set(frame)
        for ob, expected in zip((first, second), seen[frame]):
            check_arrays(matrix_of(ob), expected, f"{ob.name} on frame {frame}", 1e-5)
    curves = room("follow").curves(first)
    euler = np.array([[curves["rotation_euler", k].evaluate(frame) for k in range(3)] for frame in range(1, 11)])
    jump = float(np.abs(np.diff(euler, axis=0)).max())
    check(jump < 1.5, f"the rotation of A jumps by {jump:.2f} rad")
    numbers = [point.co.x for point in room("follow").curves(second)["location", 0].keyframe_points]
    check_equal(numbers, [*range(1, 11), 30], "keyframes of B: those outside the bake stay")
    bpy.ops.ed.undo()
    check_equal(len(bpy.data.objects["A"].constraints), 1, "constraints after undo")
    bpy.context.scene.frame_set(5)
    check_arrays(matrix_of(bpy.data.objects["A"]), seen[5][0], "A after undo", 1e-6)


def test_keyframes_of_a_body_that_hangs_on_another():
    scene = new_scene(FOLDER / "hanging", 8)
    lower = add_body("Lower", (0.3, 0.3, 0.3), (0.0, 0.0, 1.0), spin=(0.0, 3.0, 1.0), velocity=(1.0, 0.0, 2.0))
    upper = add_body("Upper", (0.3, 0.3, 0.3), (0.0, 0.0, 1.0), spin=(4.0, 0.0, 0.0))
    upper.rotation_mode = "AXIS_ANGLE"
    upper.parent = lower
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    seen = {}
    for frame in range(1, 9):
        scene.frame_set(frame)
        seen[frame] = matrix_of(lower), matrix_of(upper)
    check_equal(bpy.ops.barchan.bake_keyframes(), {"FINISHED"}, "result of the keyframes")
    for frame in range(1, 9):
        scene.frame_set(frame)
        for ob, expected in zip((lower, upper), seen[frame]):
            check_arrays(matrix_of(ob), expected, f"{ob.name} on frame {frame}", 1e-5)


def test_a_render_shows_the_bodies_where_they_are():
    scene, first, second = hand_written("rendered")
    harness.add_camera(scene, (0.5, -8.0, 1.5), (0.5, 0.0, 1.5))
    first.hide_render = True
    scene.render.engine = "CYCLES"
    scene.cycles.samples = 4
    scene.cycles.use_denoising = False
    scene.render.resolution_x, scene.render.resolution_y = 80, 60
    scene.render.film_transparent = True
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGBA"
    scene.frame_start, scene.frame_end, scene.frame_step = 2, 9, 7

    def alpha(path):
        image = bpy.data.images.load(str(path))
        values = np.array(image.pixels[:], np.float32).reshape(60, 80, 4)[:, :, 3]
        bpy.data.images.remove(image)
        return values

    scene.render.filepath = str(FOLDER / "film_")
    bpy.ops.render.render(animation=True)
    film = [alpha(FOLDER / f"film_{frame:04d}.png") for frame in (2, 9)]
    scene.frame_set(9)
    scene.render.filepath = str(FOLDER / "still.png")
    bpy.ops.render.render(write_still=True)
    check_arrays(alpha(FOLDER / "still.png"), film[1], "alpha of frame 9 as a still", 0.3)
    middles = [np.argwhere(picture > 0.5).mean(axis=0) for picture in film]
    print(f"  B covers {int((film[0] > 0.5).sum())} pixels and moves by {middles[1] - middles[0]} pixels")
    check(np.linalg.norm(middles[1] - middles[0]) > 3.0, "B does not move in the film")
    scene.render.use_motion_blur = True
    scene.render.motion_blur_shutter = 1.0
    scene.cycles.samples = 16
    bpy.ops.render.render(write_still=True)
    blurred = alpha(FOLDER / "still.png")
    partly = [int(((picture > 0.1) & (picture < 0.9)).sum()) for picture in (film[1], blurred)]
    print(f"  {partly[0]} pixels are partly covered, {partly[1]} with motion blur")
    check(partly[1] > 1.5 * partly[0], f"B is not blurred: {partly} pixels are partly covered")


def test_a_body_falls_on_sand_and_its_object_follows():
    scene = new_scene(FOLDER / "fall", 25)
    harness.mark(harness.add_box("Bed", (0.7, 0.7, 0.3), (0.0, 0.0, 0.2)), "SAND")
    harness.mark(harness.add_floor(), "COLLIDER")
    ob = add_body("Box", (0.25, 0.25, 0.25), (0.0, 0.0, 0.6), density=7850.0)
    ob.rotation_euler = (0.2, 0.1, 0.3)
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    start = np.array([0.0, 0.0, 0.6])
    heights = []
    for frame in range(1, 26):
        scene.frame_set(frame)
        heights.append(matrix_of(ob)[2, 3])
    scene.frame_set(1)
    check_arrays(matrix_of(ob)[:3, 3], start, "Box on the first frame", 1e-6)
    print(f"  heights {heights[0]:.3f} {heights[4]:.3f} {heights[-1]:.3f}")
    fall = 0.5 * 9.81 * (2 / 24) ** 2
    fallen = heights[0] - heights[2]
    check(abs(fallen - fall) < 0.1 * fall, f"Box fell {fallen:.4f} m in two frames, expected {fall:.4f}")
    check(0.125 < heights[-1] < 0.5, f"Box came to {heights[-1]:.3f} m")
    scene.frame_set(25)
    cached = room("engine").core.read_frame(str(FOLDER / "fall"), 25)["arrays"]["position"]
    check_arrays(matrix_of(ob)[:3, 3], cached[0], "centre of Box", 2e-6)
    check_equal(len(scene.barchan.carrier.data.vertices), len(cached) - 1, "grains drawn")
    with open(FOLDER / "fall" / "loads.csv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    check_equal(list(rows[0]), "frame seconds object fx fy fz tx ty tz".split(), "columns of loads.csv")
    check_equal(len(rows), 2 * 25, "lines of loads.csv")
    check_equal({row["object"] for row in rows}, {"Box", "Floor"}, "objects in loads.csv")
    weight = 9.81 * (7850 * 0.25**3 + (len(cached) - 1) * 2600 * 4 / 3 * math.pi * 0.05**3)
    floor = -np.mean([float(row["fz"]) for row in rows if row["object"] == "Floor" and int(row["frame"]) > 20])
    print(f"  load on the floor {floor:.0f} N, weight {weight:.0f} N")
    check(abs(floor - weight) < 0.25 * weight, f"the floor bears {floor:.0f} N, the weight is {weight:.0f} N")
    bpy.ops.barchan.free()
    check(not (FOLDER / "fall").exists(), "free left something in the cache folder")
    check_arrays(matrix_of(ob)[:3, 3], start, "Box after free", 1e-6)


def test_a_driven_body_follows_its_animation_and_is_let_go_with_its_speed():
    scene = new_scene(FOLDER / "driven", 16)
    parent = bpy.data.objects.new("Parent", None)
    scene.collection.objects.link(parent)
    parent.rotation_euler = (0.0, 0.0, 0.7)
    ob = add_body("Thrown", (0.3, 0.2, 0.4), (0.0, 0.0, 2.0), is_driven=True, release_frame=9)
    ob.parent = parent
    ob.scale = (1.0, -1.0, 1.5)
    for frame, x, angle in ((1, 0.0, 0.0), (9, 0.8, 1.6)):
        ob.location.x = x
        ob.rotation_euler = (0.0, angle, 0.3)
        ob.keyframe_insert("location", frame=frame)
        ob.keyframe_insert("rotation_euler", frame=frame)
    for curve in room("follow").curves(ob).values():
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
    wanted = {}
    for frame in range(1, 17):
        scene.frame_set(frame)
        wanted[frame] = matrix_of(ob)
    scene.frame_set(5)
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    check_equal(scene.frame_current, 5, "frame after the bake")
    for frame in range(1, 10):
        scene.frame_set(frame)
        check_arrays(matrix_of(ob), wanted[frame], f"Thrown on frame {frame}", 1e-5)
    seconds = 1 / 24
    speed = (wanted[9][:3, 3] - wanted[8][:3, 3]) / seconds
    scene.frame_set(16)
    flown = 7 * seconds
    expected = wanted[9][:3, 3] + speed * flown + np.array([0.0, 0.0, -0.5 * 9.81 * flown**2])
    off = float(np.linalg.norm(matrix_of(ob)[:3, 3] - expected))
    print(f"  {off:.5f} m off a free flight of {np.linalg.norm(expected - wanted[9][:3, 3]):.3f} m")
    check(off < 0.002, f"Thrown is {off:.4f} m off its flight")
    turned = matrix_of(ob)[:3, :3] @ np.linalg.inv(wanted[9][:3, :3])
    step = wanted[9][:3, :3] @ np.linalg.inv(wanted[8][:3, :3])
    angle = math.acos(min(1.0, (np.trace(turned) - 1) / 2))
    each = math.acos(min(1.0, (np.trace(step) - 1) / 2))
    print(f"  turned by {angle:.3f} rad in 7 frames after {each:.3f} rad a frame")
    check(abs(angle - 7 * each) < 0.15 * 7 * each, f"Thrown turned {angle:.3f} rad in flight, expected {7 * each:.3f}")
    bpy.ops.barchan.free()
    scene.frame_set(16)
    check_arrays(matrix_of(ob), wanted[16], "Thrown after free", 1e-6)


def test_a_body_that_is_never_let_go_may_stand_in_a_collider():
    scene = new_scene(FOLDER / "held", 8)
    harness.mark(harness.add_floor(), "COLLIDER")
    ob = add_body("Blade", (0.2, 0.6, 0.6), (-0.5, 0.0, 0.2), is_driven=True)
    for frame, x in ((1, -0.5), (8, 0.3)):
        ob.location.x = x
        ob.keyframe_insert("location", frame=frame)
    harness.mark(harness.add_box("Block", (0.3, 0.3, 0.2), (0.0, 0.0, 0.15)), "SAND")
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    scene.frame_set(8)
    check_arrays(matrix_of(ob)[:3, 3], np.array((0.3, 0.0, 0.2)), "Blade at the end", 1e-5)
    grains = room("engine").core.read_frame(str(FOLDER / "held"), 8)["arrays"]["position"][1:]
    print(f"  grains from x {grains[:, 0].min():.3f}, blade to 0.4 m")
    check(grains[:, 0].min() > 0.4, f"a grain is in or behind the blade, at {grains[:, 0].min():.3f} m")


def test_a_second_bake_reads_the_artists_places_not_the_baked_ones():
    scene = new_scene(FOLDER / "twice", 6)
    ob = add_body("Box", (0.3, 0.3, 0.3), (0.0, 0.0, 1.0))
    positions = []
    for _ in range(2):
        bpy.ops.barchan.bake()
        scene.frame_set(6)
        positions.append(matrix_of(ob)[:3, 3].copy())
    check_arrays(positions[1], positions[0], "Box at the end of the second bake")
    check_equal(len(ob.constraints), 1, "constraints")
    harness.mark(ob, "NONE")
    harness.mark(harness.add_box("Other", (0.3, 0.3, 0.3), (2.0, 0.0, 1.0)), "BODY")
    bpy.ops.barchan.bake()
    check_equal(len(ob.constraints), 0, "constraints of an object that is a body no more")
    check_equal(len([o for o in bpy.data.objects if o.name.startswith("Barchan")]), 3, "carrier, origin and one empty")


def test_bodies_of_one_mesh_share_their_spheres_and_converted_ones_are_used():
    scene = new_scene(FOLDER / "shared", 2)
    first = add_body("A", (0.3, 0.3, 0.3), (0.0, 0.0, 0.0))
    other = bpy.data.objects.new("B", first.data)
    other.location = (1.0, 0.0, 0.0)
    other.rotation_euler = (0.5, 0.6, 0.7)
    scene.collection.objects.link(other)
    other.barchan.type = "BODY"
    assembled = room("assembly").assemble(room("export").make_job(bpy.context), [])
    per_body = assembled.scene.sphere_count // 2
    check_equal(assembled.scene.grain_count, 2, "elements")
    for ob in scene.objects:
        ob.select_set(ob == first)
    bpy.ops.barchan.convert_to_body(radius=0.04, fill="VOLUME")
    job = room("export").make_job(bpy.context)
    check_equal(len(job.bodies[0].spheres.centres), len(first.barchan.body.vertices), "spheres of the converted body")
    assembled = room("assembly").assemble(job, [])
    check_equal(assembled.scene.sphere_count, per_body + len(first.barchan.body.vertices), "spheres of both")


def test_a_body_with_a_given_mass_weighs_that():
    scene = new_scene(FOLDER / "mass", 12)
    add_body("Box", (0.4, 0.4, 0.4), (0.0, 0.0, 0.2), mass_from="MASS", mass=10.0)
    harness.mark(harness.add_floor(), "COLLIDER")
    bpy.ops.barchan.bake()
    with open(FOLDER / "mass" / "loads.csv", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["object"] == "Box"]
    loads = [float(row["fz"]) for row in rows]
    print(f"  loads {loads}")
    check(abs(np.mean(loads[6:]) - 98.1) < 0.1 * 98.1, f"Box weighs {np.mean(loads[6:]):.1f} N, expected 98.1")
    scene.frame_set(12)
    height = float(matrix_of(bpy.data.objects["Box"])[2, 3])
    check(abs(height - 0.2) < 0.02, f"Box, put on the floor, stands {height:.4f} m high, expected 0.2")


if __name__ == "__main__":
    harness.main(globals())
