# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input: one clear sentence each, and the file and an older bake stay as they were."""

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
