# SPDX-License-Identifier: GPL-3.0-or-later
"""Resume, bake again from a frame, extend, stale frames, the limit, the engine: through operators and panel."""

import harness
from harness import FOLDER, bpy, check, check_equal, room
from test_panels import drawn


def frames_of(scene):
    """Bytes of every frame in the cache."""
    folder = FOLDER / scene.barchan.folder
    return {path.name: path.read_bytes() for path in folder.glob("frame_*.sand")}


def small(name, frame_end):
    scene = harness.small_scene(FOLDER / name, frame_end=frame_end, radius=0.03)
    scene.barchan.checkpoint_interval = 4
    return scene


def bake_in_full(frame_end=14):
    """What frames 1 to frame_end are when nothing stops the bake."""
    scene = small("full", frame_end)
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    return frames_of(scene)


def test_extended_lost_and_rebaked_frames_are_those_of_one_bake():
    expected = bake_in_full()
    scene = small("resumed", 9)
    bpy.ops.barchan.bake()
    scene.frame_end = 14
    check_equal(bpy.ops.barchan.resume(), {"FINISHED"}, "result of resume")
    check(frames_of(scene) == expected, "the extended bake differs from the one in full")
    (FOLDER / "resumed" / "frame_000005.sand").unlink()
    path = FOLDER / "resumed" / "frame_000013.sand"
    path.write_bytes(path.read_bytes()[:-1])
    bpy.ops.barchan.resume()
    check(frames_of(scene) == expected, "the mended bake differs from the one in full")
    scene.frame_set(12)
    bpy.ops.barchan.resume(from_current=True)
    check(frames_of(scene) == expected, "the bake from frame 12 on differs from the one in full")
    scene.frame_set(20)
    sentence = harness.error_of(bpy.ops.barchan.resume, from_current=True)
    check("Frame 20 is not in the range to bake, 1 to 14" in sentence, sentence)


def test_resume_after_the_file_was_saved_and_loaded():
    expected = bake_in_full()
    scene = small("reloaded", 6)
    bpy.ops.barchan.bake()
    path = str(FOLDER / "reloaded.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    scene = bpy.context.scene
    check("stale" not in drawn("BARCHAN_PT_bake"), drawn("BARCHAN_PT_bake"))
    scene.frame_end = 14
    bpy.ops.barchan.resume()
    check(frames_of(scene) == expected, "the bake after the reload differs from the one in full")


def test_changed_settings_make_frames_stale_and_resume_refuses():
    scene = small("stale", 5)
    bpy.ops.barchan.bake()
    before = frames_of(scene)
    text = drawn("BARCHAN_PT_bake")
    check("Resume Bake" in text and "baked on CPU" in text and "stale" not in text, text)
    scene.frame_end = 8
    scene.barchan.threads = 1
    check("stale" not in drawn("BARCHAN_PT_bake"), "range and threads change no frame, but the panel calls them stale")
    block = bpy.data.objects["Block"]
    changes = (
        (scene.barchan, "friction", 0.9, "other settings"),
        (scene.barchan, "seed", 3, "other settings"),
        (scene, "gravity", (0.0, 0.0, -5.0), "other settings"),
        (block, "location", (0.0, 0.0, 1.0), "other settings"),
        (scene.render, "fps", 25, "with the first frame and frame rate of now"),
        (scene, "frame_start", 0, "with the first frame and frame rate of now"),
    )
    for owner, name, value, expected in changes:
        old = getattr(owner, name)
        old = tuple(old) if not isinstance(old, (int, float)) else old
        setattr(owner, name, value)
        bpy.context.view_layer.update()
        check("stale" in drawn("BARCHAN_PT_bake"), f"the panel does not see a change of {name}")
        sentence = harness.error_of(bpy.ops.barchan.resume)
        check(expected in sentence and "Bake Sand" in sentence, f"after a change of {name} resume says {sentence!r}")
        setattr(owner, name, old)
        bpy.context.view_layer.update()
        check("stale" not in drawn("BARCHAN_PT_bake"), f"the frames stay stale when {name} is taken back")
    check(frames_of(scene) == before, "frames were changed by a refused resume")
    check_equal(bpy.ops.barchan.resume(), {"FINISHED"}, "result of resume")
    check_equal(len(frames_of(scene)), 8, "frames")


def test_a_bake_with_an_animated_collider_is_extended():
    scene = small("animated", 4)
    floor = bpy.data.objects["Floor"]
    for frame, height in ((1, 0.0), (40, 0.2)):
        floor.location.z = height
        floor.keyframe_insert("location", frame=frame)
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    expected = frames_of(scene)
    (FOLDER / "animated" / "frame_000003.sand").unlink()
    check_equal(bpy.ops.barchan.resume(), {"FINISHED"}, "result of resume")
    check(frames_of(scene) == expected, "the mended bake differs from the first")
    scene.frame_end = 7
    check_equal(bpy.ops.barchan.resume(), {"FINISHED"}, "result of the longer resume")
    longer = frames_of(scene)
    check_equal(len(longer), 7, "frames")
    check({name: longer[name] for name in expected} == expected, "the first frames were changed by extending")
    # In two steps as in one.
    scene.frame_end = 6
    bpy.ops.barchan.free()
    scene.frame_end = 4
    bpy.ops.barchan.bake()
    for end in (5, 7):
        scene.frame_end = end
        check_equal(bpy.ops.barchan.resume(), {"FINISHED"}, f"result of resume to {end}")
    check(frames_of(scene) == longer, "extending in two steps differs from one")
    # Another past is told, and what comes after it is baked again from there.
    floor.location.z = 0.5
    floor.keyframe_insert("location", frame=6)
    sentence = harness.error_of(bpy.ops.barchan.resume)
    print(f"  {sentence}")
    check("was baked with another animation" in sentence and "From Here" in sentence, sentence)
    check(frames_of(scene) == longer, "frames were changed by a refused resume")


def test_the_limit_is_told_with_numbers_before_anything_is_removed():
    scene = small("limit", 3)
    bpy.ops.barchan.bake()
    before = frames_of(scene)
    scene.barchan.disk_limit = 0.01
    scene.frame_end = 100
    for operator in (bpy.ops.barchan.bake, bpy.ops.barchan.resume):
        sentence = harness.error_of(operator)
        print(f"  {sentence}")
        check("needs about" in sentence and "limit of 10.0 kB" in sentence, sentence)
    check(frames_of(scene) == before, "frames were changed by a refused bake")


def test_the_estimate_is_above_what_a_bake_takes_and_not_far():
    scene = small("estimate", 14)
    run = room("bake").Bake(room("export").make_job(bpy.context))
    run.run()
    check_equal(run.progress.state, "DONE", f"state ({run.error})")
    folder = FOLDER / "estimate"
    taken = sum(path.stat().st_size for path in folder.glob("*.sand"))
    print(f"  estimated {run.progress.byte_estimate}, taken {taken} bytes")
    check(
        taken <= run.progress.byte_estimate <= 3 * taken,
        f"{taken} bytes were taken, {run.progress.byte_estimate} were estimated",
    )


def test_engines_are_chosen_and_named():
    scene = small("engine", 3)
    scene.barchan.engine = "CPU"
    bpy.ops.barchan.bake()
    core = room("engine").core
    check_equal(core.frame_info(scene.barchan.folder, 3)["engine"], "CPU", "engine of a frame")
    states = [core.frame_info(scene.barchan.folder, frame)["state_hash"] for frame in (1, 2, 3)]
    scene.barchan.engine = "AUTO"
    bpy.ops.barchan.bake()
    found = [core.frame_info(scene.barchan.folder, frame)["state_hash"] for frame in (1, 2, 3)]
    check_equal(found, states, "states of the automatic engine")
    scene.barchan.engine = "GPU"
    sentence = harness.error_of(bpy.ops.barchan.bake)
    name = core.frame_info(scene.barchan.folder, 3)["engine"]
    print(f"  GPU: {sentence or name}")
    if sentence:  # this machine has none
        check_equal(name, "CPU", "engine of the older frame, which stays")
    else:
        check(name.startswith("GPU "), f"the engine is {name!r}")
    found = [core.frame_info(scene.barchan.folder, frame)["state_hash"] for frame in (1, 2, 3)]
    check_equal(found, states, "states of the GPU")


def test_lossless_keeps_every_bit():
    scene = small("lossless", 3)
    scene.barchan.is_exact = True
    bpy.ops.barchan.bake()
    info = room("engine").core.frame_info(scene.barchan.folder, 3)
    check_equal(info["tolerance"], 0.0, "tolerance")
    found = {array["encoding"] for array in info["arrays"].values()}
    check(found <= {"exact", "one", "same"}, f"encodings are {found}")
    check_equal({array["error"] for array in info["arrays"].values()}, {0.0}, "errors")


def test_resume_without_frames_says_so():
    small("nothing", 3)
    sentence = harness.error_of(bpy.ops.barchan.resume)
    check("There are no baked frames in the cache folder" in sentence, sentence)


if __name__ == "__main__":
    harness.main(globals())
