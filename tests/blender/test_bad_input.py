# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input: one clear sentence each, and the file and an older bake stay as they were."""

import dataclasses
import os

import harness
from harness import FOLDER, bpy, check, check_equal, room


def scene_with_older_bake(name):
    """A good scene, baked, whose next bake a test spoils; the older frames are what must survive."""
    scene = harness.small_scene(FOLDER / name, frame_end=3, radius=0.05)
    bpy.ops.barchan.bake()
    scene.frame_set(2)
    return scene


def refused(operator, *words, folder, **arguments):
    """The operator must fail with one sentence that holds the words, and change nothing."""
    data, files = harness.data_digest(), harness.folder_digest(folder)
    sentence = harness.error_of(operator, **arguments)
    check(sentence != "", "the operator went through, expected a sentence")
    lines = [line for line in sentence.splitlines() if line.startswith("Error:")]
    print(f"  {sentence}")
    check_equal(len(lines), 1, f"error sentences in {sentence!r}")
    check("Traceback" not in sentence and "Errno" not in sentence, f"{sentence!r} is not a sentence for a user")
    for word in words:
        check(word.lower() in sentence.lower(), f"{sentence!r} does not say {word!r}")
    check_equal(harness.data_digest(), data, "data of the file")
    check_equal(harness.folder_digest(folder), files, "contents of the cache folder")


def spoil(vertices, faces):
    """Gives the sand of the scene other geometry."""
    mesh = bpy.data.objects["Block"].data
    mesh.clear_geometry()
    mesh.from_pydata(vertices, [], faces)
    bpy.context.view_layer.update()


def test_no_mesh_selected():
    scene_with_older_bake("unselected")
    for ob in bpy.context.scene.objects:
        ob.select_set(False)
    refused(bpy.ops.barchan.set_type, "no mesh", "select", folder=FOLDER / "unselected", type="SAND")


def test_only_a_camera_selected():
    scene = scene_with_older_bake("camera")
    harness.add_camera(scene, (0, -3, 1), (0, 0, 0))
    for ob in scene.objects:
        ob.select_set(ob.type == "CAMERA")
    refused(bpy.ops.barchan.set_type, "no mesh", "select", folder=FOLDER / "camera", type="SAND")


def test_no_sand_object():
    scene_with_older_bake("sandless")
    harness.mark(bpy.data.objects["Block"], "NONE")
    refused(bpy.ops.barchan.bake, "no sand", "select a closed mesh", folder=FOLDER / "sandless")


def test_an_empty_sand_mesh():
    scene_with_older_bake("empty")
    spoil([], [])
    refused(bpy.ops.barchan.bake, "Block", "no vertices", folder=FOLDER / "empty")


def test_a_sand_mesh_without_faces():
    scene_with_older_bake("faceless")
    spoil([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [])
    refused(bpy.ops.barchan.bake, "Block", "no faces", folder=FOLDER / "faceless")


def test_nan_vertices_in_sand():
    scene_with_older_bake("nan")
    bpy.data.objects["Block"].data.vertices[5].co.y = float("nan")
    refused(bpy.ops.barchan.bake, "Block", "vertex 5", folder=FOLDER / "nan")


def test_nan_vertices_in_a_collider():
    scene_with_older_bake("nan_wall")
    bpy.data.objects["Floor"].data.vertices[2].co.x = float("nan")
    refused(bpy.ops.barchan.bake, "Floor", "vertex 2", folder=FOLDER / "nan_wall")


def test_an_empty_collider_mesh():
    scene_with_older_bake("empty_wall")
    bpy.data.objects["Floor"].data.clear_geometry()
    refused(bpy.ops.barchan.bake, "Floor", "no vertices", folder=FOLDER / "empty_wall")


def test_an_open_mesh_as_sand():
    scene_with_older_bake("open")
    spoil([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (0, 3, 2)])
    refused(bpy.ops.barchan.bake, "Block", "open", folder=FOLDER / "open")


def test_grains_larger_than_the_sand_mesh():
    scene = scene_with_older_bake("large")
    scene.barchan.radius = 0.5
    refused(bpy.ops.barchan.bake, "Block", folder=FOLDER / "large")


def test_all_grains_in_a_collider():
    scene = scene_with_older_bake("blocked")
    harness.mark(harness.add_box("Thin", (0.25, 0.25, 0.25), (3.0, 0.0, 0.0)), "SAND")
    harness.mark(harness.add_box("Amidst", (0.05, 0.05, 0.05), (3.0, 0.0, 0.0)), "COLLIDER")
    harness.mark(bpy.data.objects["Block"], "NONE")
    scene.frame_set(2)
    refused(bpy.ops.barchan.bake, "collider", folder=FOLDER / "blocked")


def test_frame_range_reversed():
    scene = scene_with_older_bake("reversed")
    scene.barchan.frame_start, scene.barchan.frame_end = 20, 10
    refused(bpy.ops.barchan.bake, "reversed", "20", "10", folder=FOLDER / "reversed")


def test_a_cache_folder_whose_path_goes_through_a_file():
    scene = scene_with_older_bake("through")
    (FOLDER / "a_file").write_text("mine")
    scene.barchan.folder = str(FOLDER / "a_file" / "cache")
    refused(bpy.ops.barchan.bake, "a_file", folder=FOLDER / "through")
    check_equal((FOLDER / "a_file").read_text(), "mine", "the file in the way")


def test_a_cache_folder_that_is_a_file():
    scene = scene_with_older_bake("is_file")
    (FOLDER / "plain").write_text("mine")
    scene.barchan.folder = str(FOLDER / "plain")
    refused(bpy.ops.barchan.bake, "plain", folder=FOLDER / "is_file")
    check_equal((FOLDER / "plain").read_text(), "mine", "the file in the way")


def test_a_cache_folder_that_cannot_be_written():
    # Root may write into read-only folders, so the refusal comes from a file system that takes no files at all.
    scene = scene_with_older_bake("read_only")
    locked = FOLDER / "locked"
    locked.mkdir()
    if os.geteuid() == 0:
        target = "/proc/barchan_cache"
    else:
        locked.chmod(0o500)
        target = str(locked / "cache")
    scene.barchan.folder = target
    refused(bpy.ops.barchan.bake, target, folder=FOLDER / "read_only")
    locked.chmod(0o700)


def test_a_disk_with_too_little_room():
    bake = room("bake")
    scene_with_older_bake("full")
    disk_free = bake.disk_free
    bake.disk_free = lambda folder: 1000
    try:
        refused(bpy.ops.barchan.bake, "needs", "kB free", "another cache folder", folder=FOLDER / "full")
    finally:
        bake.disk_free = disk_free


def test_an_object_disabled_in_the_viewport_says_so_instead_of_losing_its_modifiers():
    scene_with_older_bake("disabled")
    block = bpy.data.objects["Block"]
    block.modifiers.new("Bevel", "BEVEL")
    block.hide_viewport = True
    bpy.context.view_layer.update()
    refused(bpy.ops.barchan.bake, "Block", "disabled", folder=FOLDER / "disabled")


def scene_with_a_body(name, location=(2.0, 0.0, 1.0)):
    """An older bake, and a body beside the sand that the next bake has to do with."""
    scene = scene_with_older_bake(name)
    ob = harness.add_box("Crate", (0.4, 0.4, 0.4), location)
    harness.mark(ob, "BODY")
    return scene, ob


def add_motion(ob, path, first, last):
    for frame, value in ((1, first), (3, last)):
        setattr(ob, path, value)
        ob.keyframe_insert(path, frame=frame)


def test_a_body_that_overlaps_a_collider_is_refused_and_can_be_pushed_out():
    scene, crate = scene_with_a_body("overlap", (0.7, 0.0, 0.1))
    refused(bpy.ops.barchan.bake, "Crate", "Floor", "Push Out", folder=FOLDER / "overlap")
    bpy.ops.ed.undo_push(message="overlapping")
    check_equal(bpy.ops.barchan.push_out(), {"FINISHED"}, "result of pushing out")
    bpy.ops.ed.undo_push(message="pushed out")
    print(f"  pushed from 0.1 m to {crate.location.z:.4f} m")
    check(abs(crate.location.z - 0.2) < 0.01, f"Crate was put {crate.location.z:.3f} m high, expected 0.2")
    check(abs(crate.location.x - 0.7) + abs(crate.location.y) < 1e-4, "Crate was moved sideways")
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake afterwards")
    bpy.ops.ed.undo()
    check(abs(bpy.data.objects["Crate"].location.z - 0.1) < 1e-6, "undo did not bring Crate back")


def test_push_out_finds_the_way_for_turned_parented_and_animated_bodies():
    scene, crate = scene_with_a_body("pushed", (0.0, 0.0, 0.0))
    harness.mark(bpy.data.objects["Block"], "NONE")
    wall = harness.add_box("Wall", (0.2, 2.0, 2.0), (0.85, 0.0, 1.0))
    harness.mark(wall, "COLLIDER")
    parent = bpy.data.objects.new("Parent", None)
    scene.collection.objects.link(parent)
    parent.rotation_euler, parent.scale = (0.0, 0.0, 1.2), (2.0, 2.0, 2.0)
    crate.parent = parent
    crate.scale = (0.5, 0.5, 0.5)
    add_motion(crate, "location", (0.1, -0.25, 0.06), (0.0, 0.0, 0.5))
    harness.mark(crate, "BODY")
    scene.frame_set(2)
    check("Crate" in harness.error_of(bpy.ops.barchan.bake), "the bake of an overlapping body went through")
    check_equal(bpy.ops.barchan.push_out(), {"FINISHED"}, "result of pushing out")
    check_equal(scene.frame_current, 2, "frame after pushing out")
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    check_equal(harness.error_of(bpy.ops.barchan.push_out), "", "pushing out what is free")
    harness.mark(wall, "COLLIDER")
    check("No body is selected" in harness.error_of(bpy.ops.barchan.push_out), "push out without a body went through")


def test_a_body_with_an_animated_scale():
    _scene, crate = scene_with_a_body("scaled")
    add_motion(crate, "scale", (1.0, 1.0, 1.0), (2.0, 1.0, 1.0))
    bpy.context.scene.frame_set(2)
    refused(bpy.ops.barchan.bake, "Crate", "scale", folder=FOLDER / "scaled")


def test_a_body_without_volume():
    _scene, crate = scene_with_a_body("flat")
    crate.data.clear_geometry()
    crate.data.from_pydata([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], [], [(0, 1, 2, 3)])
    bpy.context.view_layer.update()
    refused(bpy.ops.barchan.bake, "Crate", "volume", folder=FOLDER / "flat")
    crate.barchan.fill = "VOLUME"
    refused(bpy.ops.barchan.bake, "Crate", "volume", folder=FOLDER / "flat")


def test_a_body_scaled_to_nothing():
    _scene, crate = scene_with_a_body("squashed")
    crate.scale.z = 0.0
    bpy.context.view_layer.update()
    refused(bpy.ops.barchan.bake, "Crate", "scale above 0", folder=FOLDER / "squashed")


def test_a_collider_without_faces():
    scene_with_older_bake("wire")
    mesh = bpy.data.objects["Floor"].data
    mesh.clear_geometry()
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1)], [])
    bpy.context.view_layer.update()
    refused(bpy.ops.barchan.bake, "Floor", "no faces", folder=FOLDER / "wire")


def test_a_collider_that_changes_its_vertices():
    scene_with_older_bake("changing")
    floor = bpy.data.objects["Floor"]
    array = floor.modifiers.new("Array", "ARRAY")
    add_motion(array, "count", 1, 3)
    bpy.context.scene.frame_set(2)
    refused(bpy.ops.barchan.bake, "Floor", "keep its vertices", folder=FOLDER / "changing")


def test_a_rough_collider_that_bends():
    scene_with_older_bake("rough")
    floor = bpy.data.objects["Floor"]
    floor.barchan.is_rough = True
    add_motion(floor, "scale", (1.0, 1.0, 1.0), (2.0, 1.0, 1.0))
    bpy.context.scene.frame_set(2)
    refused(bpy.ops.barchan.bake, "Floor", "rough", folder=FOLDER / "rough")


def test_an_emitter_inside_a_collider():
    scene_with_older_bake("emitter")
    harness.mark(harness.add_box("Source", (0.3, 0.3, 0.3), (3.0, 0.0, 1.0)), "EMITTER")
    harness.mark(harness.add_box("Rock", (0.2, 0.2, 0.2), (3.0, 0.0, 1.0)), "COLLIDER")
    bpy.context.scene.frame_set(2)
    refused(bpy.ops.barchan.bake, "Source", "Rock", "move the emitter", folder=FOLDER / "emitter")
    bpy.data.objects["Rock"].scale = (4.0, 4.0, 4.0)
    bpy.context.view_layer.update()
    warnings = []
    room("assembly").assemble(room("export").make_job(bpy.context), warnings)
    print(f"  {warnings}")
    check(any("Source" in text and "Rock" in text and "cannot leave" in text for text in warnings), f"warnings: {warnings}")


def test_a_negative_density_or_mass():
    _scene, crate = scene_with_a_body("negative")
    crate.barchan.density = -5.0
    check(crate.barchan.density > 0.0, f"the setting took a density of {crate.barchan.density}")
    job = room("export").make_job(bpy.context)
    for changes in ({"density": -5.0}, {"mass": -1.0}, {"density": float("nan")}):
        spoiled = dataclasses.replace(job, bodies=(dataclasses.replace(job.bodies[0], **changes),))
        run = room("bake").Bake(spoiled)
        run.run()
        print(f"  {run.error}")
        check_equal(run.progress.state, "FAILED", f"state with {changes}")
        check("Crate" in run.error and "above 0" in run.error, f"the sentence is {run.error!r}")
    check_equal(len(room("engine").core.list_frames(str(FOLDER / "negative"))[0]), 3, "frames of the older bake")


def test_two_bodies_in_one_place():
    scene_with_a_body("same")
    harness.mark(harness.add_box("Twin", (0.4, 0.4, 0.4), (2.1, 0.0, 1.0)), "BODY")
    bpy.context.scene.frame_set(2)
    refused(bpy.ops.barchan.bake, "Crate", "Twin", "overlap", folder=FOLDER / "same")


def test_a_body_that_changed_since_it_was_converted():
    _scene, crate = scene_with_a_body("stale")
    bpy.ops.barchan.convert_to_body(radius=0.05)
    crate.data.vertices[0].co.x -= 0.2
    bpy.context.view_layer.update()
    bpy.context.scene.frame_set(2)
    refused(bpy.ops.barchan.bake, "Crate", "convert it again", folder=FOLDER / "stale")


def test_a_bake_while_one_is_running():
    scene_with_older_bake("busy")
    bake = room("bake")
    bake.running = bake.Bake(room("export").make_job(bpy.context))
    try:
        for operator in (bpy.ops.barchan.bake, bpy.ops.barchan.push_out, bpy.ops.barchan.bake_keyframes):
            check("A bake is running" in harness.error_of(operator), f"{operator} says {harness.error_of(operator)!r}")
    finally:
        bake.running = None


def test_two_scenes_that_share_an_object():
    scene, crate = scene_with_a_body("scenes")
    bpy.ops.barchan.bake()
    other = bpy.data.scenes.new("Second")
    other.frame_start, other.frame_end = 1, 2
    other.collection.objects.link(crate)
    other.barchan.folder = scene.barchan.folder
    other.barchan.radius = scene.barchan.radius
    bpy.context.window.scene = other
    refused(bpy.ops.barchan.bake, "Crate", scene.name, "folder", folder=FOLDER / "scenes")
    other.barchan.folder = str(FOLDER / "scenes_second")
    refused(bpy.ops.barchan.bake, "Crate", scene.name, "free that bake", folder=FOLDER / "scenes")
    bpy.context.window.scene = scene


def test_a_foreign_file_where_the_loads_go():
    scene_with_older_bake("loads")
    (FOLDER / "loads" / "loads.csv").write_text("mine,not yours\n1,2\n")
    refused(bpy.ops.barchan.bake, "loads.csv", "not Barchan's", folder=FOLDER / "loads")
    bpy.ops.barchan.free()
    check_equal((FOLDER / "loads" / "loads.csv").read_text(), "mine,not yours\n1,2\n", "the foreign file after free")


def test_keyframes_without_a_frame_change_nothing():
    _scene, crate = scene_with_a_body("frameless")
    bpy.ops.barchan.bake()
    path = FOLDER / "frameless" / "frame_000002.sand"
    path.write_bytes(path.read_bytes()[:-50])
    refused(bpy.ops.barchan.bake_keyframes, "frame_000002.sand", folder=FOLDER / "frameless")
    check(crate.animation_data is None and len(crate.constraints) == 1, "Crate was changed")


def test_after_a_refusal_the_next_good_bake_goes_through():
    scene = scene_with_older_bake("after")
    scene.barchan.frame_start, scene.barchan.frame_end = 20, 10
    harness.error_of(bpy.ops.barchan.bake)
    scene.barchan.frame_end = 21
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    frames, _bytes = room("engine").core.list_frames(str(FOLDER / "after"))
    check_equal(frames, [20, 21], "frames: the older ones are gone, the new ones are there")


if __name__ == "__main__":
    harness.main(globals())
