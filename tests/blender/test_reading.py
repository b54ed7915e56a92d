# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the animation in slices: what is read is what one pass reads, the timeline is the user's in between, Esc at any tick
changes nothing, and what the user does meanwhile is a sentence at worst. Operators run here as they do in a window, with
timer events from the test and a window manager that keeps count."""

import types

import harness
import numpy as np
from harness import FOLDER, bpy, check, check_equal, room


def animated_scene(name, frame_end=8, is_simulated=False):
    """Sand, a floor, a board with keyframes and half-frame samples, a collider that bends, a body with keyframes."""
    scene = harness.small_scene(FOLDER / name, frame_end=frame_end, radius=0.05)
    board = harness.add_box("Board", (0.5, 0.5, 0.05), (2.0, 0.0, 1.0))
    harness.mark(board, "COLLIDER")
    board.barchan.samples = 2
    for frame, x in ((1, 2.0), (frame_end, 3.0)):
        board.location.x = x
        board.keyframe_insert("location", frame=frame)
    sheet = harness.add_box("Sheet", (0.5, 0.5, 0.05), (-3.0, 0.0, 1.0))
    harness.mark(sheet, "COLLIDER")
    sheet.shape_key_add(name="Basis")
    key = sheet.shape_key_add(name="Up")
    for point in key.data:  # faces stay flat: a bent quad may be cut otherwise on another frame
        point.co.z *= 3.0
    for frame, value in ((1, 0.0), (frame_end, 1.0)):
        key.value = value
        key.keyframe_insert("value", frame=frame)
    ball = harness.add_box("Ball", (0.2, 0.2, 0.2), (0.0, 3.0, 1.0))
    harness.mark(ball, "BODY")
    ball.barchan.is_driven = True
    for frame, z in ((1, 1.0), (frame_end, 2.0)):
        ball.location.z = z
        ball.keyframe_insert("location", frame=frame)
    if is_simulated:
        loose = harness.add_box("Loose", (0.2, 0.2, 0.2), (5.0, 0.0, 2.0))
        bpy.context.view_layer.objects.active = loose
        bpy.ops.rigidbody.object_add()
        harness.mark(loose, "COLLIDER")
    scene.frame_set(5, subframe=0.25)
    return scene


def digest(value):
    """A job as text, arrays included."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tobytes().hex()}"
    if hasattr(value, "__dataclass_fields__"):
        return repr([(name, digest(getattr(value, name))) for name in value.__dataclass_fields__])
    if isinstance(value, (tuple, list)):
        return repr([digest(one) for one in value])
    return repr(value)


def now(scene):
    return scene.frame_current, scene.frame_subframe


class Window:
    """What an operator asks of a window."""

    def __init__(self):
        self.timers, self.handlers, self.status = [], [], None
        self.windows, self.window = [], "a window"
        self.window_manager = self.workspace = self

    def event_timer_add(self, seconds, window):
        self.timers.append(seconds)
        return seconds

    def event_timer_remove(self, timer):
        self.timers.remove(timer)

    def modal_handler_add(self, operator):
        self.handlers.append(operator)

    def status_text_set(self, text):
        self.status = text

    @property
    def scene(self):
        return bpy.context.scene

    @property
    def view_layer(self):
        return bpy.context.view_layer


class Session:
    """An operator in a window whose events come from the test. A slice is one sample long."""

    def __init__(self, kind):
        self.said = []

        class Pressed(kind):
            from_current = False

            def report(_self, level, text):
                self.said.append((*level, text))

        self.stage, self.window = room("stage"), Window()
        self.operator = Pressed()
        self.operator._frame = bpy.context.scene.frame_current
        self.ticks = 0

    def __enter__(self):
        self._before = self.stage.SLICE_SECONDS
        self.stage.advance.__defaults__ = (0.0,)
        self.result = self.operator._begin(self.window)
        return self

    def __exit__(self, *_):
        self.stage.advance.__defaults__ = (self._before,)
        self.stage.stop_running()
        room("bake").stop_running()
        room("estimate").stop_running()

    def event(self, kind="TIMER"):
        self.ticks += kind == "TIMER"
        self.result = self.operator.modal(self.window, types.SimpleNamespace(type=kind, value="PRESS"))
        return self.result

    def is_reading(self):
        return self.stage.reading is not None

    def run_to_the_end(self):
        while self.result not in ({"FINISHED"}, {"CANCELLED"}):
            self.event()
            if self.operator._run is not None:
                self.operator._run.join(0.05)

    def check_gone(self):
        check_equal((self.window.timers, self.window.status), ([], None), "timers and status text that are left")
        check(not self.is_reading() and room("bake").running is None and room("estimate").running is None, "something still runs")
        for name in ("undo_post", "redo_post", "depsgraph_update_post"):
            left = [one for one in getattr(bpy.app.handlers, name) if one.__module__.endswith(".stage")]
            check_equal(left, [], f"handlers left in {name}")


def bake_class():
    return room("operators").BakeOperator


def test_slices_read_what_one_pass_reads_and_leave_the_timeline_alone():
    scene = animated_scene("slices")
    whole = digest(room("export").make_job(bpy.context))
    check_equal(now(scene), (5, 0.25), "frame after reading at once")
    reading = room("export").Reading(bpy.context, keeps_frame=True)
    frames, shares = [], []
    while not room("stage").advance(reading, 0.0):
        frames.append(now(scene))
        shares.append(reading.fraction)
        scene.frame_set(2 + len(frames) % 3)  # the user scrubs
        wanted = now(scene)
        check_equal(now(scene), wanted, "frame")
    print(f"  {len(frames) + 1} slices, shares {shares[0]:.2f} to {shares[-1]:.2f}")
    check(len(frames) > 20 and shares == sorted(shares), shares)
    check_equal(frames[0], (5, 0.25), "frame after the first slice")
    check_equal(frames[1:], [(2 + n % 3, 0.0) for n in range(1, len(frames))], "frames that the user finds between slices")
    check(digest(reading.job) == whole, "slices read another job than one pass")


def test_escape_at_every_tick_changes_nothing():
    scene = animated_scene("escaped", frame_end=6)
    with Session(bake_class()) as session:
        while session.is_reading():
            session.event()
        total = session.ticks
        session.event("ESC")
        session.run_to_the_end()
    check(total > 15, f"{total} ticks")
    scene = animated_scene("escaped_at", frame_end=6)
    before = harness.data_digest()
    for count in range(total):
        with Session(bake_class()) as session:
            for _ in range(count):
                check_equal(session.event(), {"PASS_THROUGH"}, f"result of tick {count}")
            check_equal(now(scene), (5, 0.25), f"frame after {count} ticks")
            check_equal(session.event("MOUSEMOVE"), {"PASS_THROUGH"}, "result of a mouse move")
            check_equal(session.event("ESC"), {"RUNNING_MODAL"}, "result of Esc")
            check_equal(session.event(), {"CANCELLED"}, f"result after Esc at tick {count}")
            session.check_gone()
            check_equal(session.said, [("INFO", "Stopped while the scene was read: nothing was changed")], "reports")
        check(harness.data_digest() == before, f"Esc at tick {count} of {total} left something changed")
    check(not (FOLDER / "escaped_at").exists(), "a bake that was stopped while it read has made its folder")
    print(f"  {total} ticks, each stopped once")


def test_blender_may_end_the_operator_at_every_tick():
    scene = animated_scene("ended", frame_end=3)
    before, count, is_over = harness.data_digest(), 0, False
    while not is_over:
        with Session(bake_class()) as session:
            for _ in range(count):
                session.event()
            is_over = not session.is_reading()
            session.operator.cancel(session.window)
            session.check_gone()
        check_equal(now(scene), (5, 0.25), f"frame after the end at tick {count}")
        if not is_over:
            check(harness.data_digest() == before, f"the end at tick {count} left something changed")
        count += 1
    check(count > 10, f"{count} ticks")


def test_a_bake_says_exporting_then_baking_and_its_frames_are_those_of_a_script():
    scene = animated_scene("said", frame_end=4)
    stage = room("stage")
    before, stage.LOOK_SECONDS = stage.LOOK_SECONDS, 0.0
    texts = []
    try:
        with Session(bake_class()) as session:
            check_equal(session.window.timers, [stage.PAUSE_SECONDS], "timers")
            while session.result not in ({"FINISHED"}, {"CANCELLED"}):
                session.event()
                texts.append(session.window.status)
                if session.operator._run is not None:
                    session.operator._run.join(0.01)
            session.check_gone()
    finally:
        stage.LOOK_SECONDS = before
    check_equal(session.result, {"FINISHED"}, "result")
    check_equal(now(scene), (5, 0.25), "frame after the bake")
    said = [text.split("%")[0] for text in texts if text]
    exporting = [int(text.split()[1]) for text in said if text.startswith("Exporting")]
    print("  ", said[0], "...", said[-1], len(exporting), "times Exporting")
    check(exporting == sorted(exporting) and len(set(exporting)) > 5, exporting)
    rest = said[len(exporting) :]
    check(rest and not any(text.startswith("Exporting") for text in rest), said)
    core = room("engine").core
    found = core.frame_info(str(FOLDER / "said"), 4)["state_hash"]
    scene.barchan.folder = str(FOLDER / "said_script")
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the script's bake")
    check_equal(core.frame_info(str(FOLDER / "said_script"), 4)["state_hash"], found, "state of frame 4")


def test_an_estimate_reads_in_slices_too():
    scene = animated_scene("estimated", frame_end=4)
    before = harness.data_digest()
    kind = room("checks").BARCHAN_OT_estimate
    # Blender makes operators itself; what this one does is taken over as it is.
    own = {name: value for name, value in vars(kind).items() if callable(value) and name != "poll"}
    with Session(type("Estimate", (room("stage").Read,), own)) as session:
        for _ in range(4):
            session.event()
        check(session.is_reading(), "an estimate reads in one piece")
        session.event("ESC")
        check_equal(session.event(), {"CANCELLED"}, "result after Esc")
        session.check_gone()
    check(harness.data_digest() == before and room("checks").last_estimate(scene) is None, "a stopped estimate left something")


def disturbed(name, act, is_simulated=False, ticks=4):
    """The sentence that a bake ends with when act(scene) is done after some ticks."""
    animated_scene(name, is_simulated=is_simulated)
    bpy.ops.ed.undo_push(message="before")
    bpy.context.scene.frame_set(5, subframe=0.25)
    bpy.data.objects["Floor"].location.y += 0.01
    bpy.ops.ed.undo_push(message="after")
    with Session(bake_class()) as session:
        for _ in range(ticks):
            session.event()
        check(session.is_reading(), "nothing is read any more")
        act(bpy.context.scene)
        session.run_to_the_end()
        session.check_gone()
    check_equal(session.result, {"CANCELLED"}, "result")
    errors = [text for level, text in session.said if level == "ERROR"]
    check(len(errors) == 1, session.said)
    print(f"  {errors[0]}")
    check(not (FOLDER / name).exists(), "a folder was made")
    return errors[0]


def test_undo_meanwhile_is_a_sentence():
    text = disturbed("undone", lambda _scene: bpy.ops.ed.undo())
    check("An undo or redo changed the scene" in text, text)


def test_a_deleted_object_is_a_sentence():
    text = disturbed("deleted", lambda _scene: bpy.data.objects.remove(bpy.data.objects["Board"]))
    check("Object 'Board' was removed" in text, text)
    text = disturbed("deleted_sand", lambda _scene: bpy.data.objects.remove(bpy.data.objects["Block"]))
    check("The scene was changed" in text or "Object 'Block' was removed" in text, text)


def test_a_deleted_scene_is_a_sentence():
    def remove(scene):
        bpy.data.scenes.new("Other")
        bpy.data.scenes.remove(scene)

    text = disturbed("no_scene", remove)
    check("was removed while its animation was read" in text, text)


def test_a_changed_setting_or_key_is_a_sentence():
    def louder(scene):
        scene.barchan.friction += 0.1

    check("The scene was changed" in disturbed("setting", louder), "a changed setting went unnoticed")

    def rekey(_scene):
        bpy.data.objects["Board"].keyframe_insert("location", frame=7)
        bpy.context.view_layer.update()

    text = disturbed("keyed", rekey)
    check("Keyframes were changed" in text, text)


def test_another_scene_in_the_window_does_not_matter():
    scene = animated_scene("elsewhere", frame_end=3)
    whole = digest(room("export").make_job(bpy.context))
    reading = room("export").Reading(bpy.context, keeps_frame=True)
    other = bpy.data.scenes.new("Other")
    with bpy.context.temp_override(scene=other, view_layer=other.view_layers[0]):
        while not room("stage").advance(reading, 0.0):
            pass
    check(digest(reading.job) == whole and now(scene) == (5, 0.25), "the other scene was read")


def test_what_blender_simulates_is_read_in_order_and_a_scrub_ends_it():
    scene = animated_scene("ordered", is_simulated=True)
    check(room("export").is_ordered(scene), "a rigid body is not seen")
    reading = room("export").Reading(bpy.context, keeps_frame=True)
    seen = []
    while not room("stage").advance(reading, 0.0):
        seen.append(now(scene))
    check_equal(now(scene), (5, 0.25), "frame at the end")
    walked = seen[: 2 * (reading.job.frame_end - reading.job.frame_start)]
    check(walked == sorted(walked) and walked[0] == (1, 0.0), walked)
    track = next(one for one in reading.job.colliders if one.name == "Loose").track
    print(f"  the rigid body falls from {track.samples[0, 2]:.3f} to {track.samples[-1, 2]:.3f} m")
    check(track.samples[-1, 2] < track.samples[0, 2] - 0.1, "the rigid body does not fall")
    text = disturbed("scrubbed", lambda one: one.frame_set(3), is_simulated=True)
    check("The frame was changed" in text, text)
    check_equal(now(bpy.context.scene), (3, 0.0), "frame that the user went to")
    scene = animated_scene("ordered_esc", is_simulated=True)
    with Session(bake_class()) as session:
        for _ in range(6):
            session.event()
        check(now(scene) != (5, 0.25), "an ordered scene jumps between slices")
        session.event("ESC")
        session.event()
        session.check_gone()
    check_equal(now(scene), (5, 0.25), "frame after Esc")


def test_without_anything_animated_no_frame_is_visited():
    scene = harness.small_scene(FOLDER / "still", frame_end=3, radius=0.05)
    scene.frame_set(1)
    visited = []

    def on_frame(*_):
        visited.append(scene.frame_current)

    bpy.app.handlers.frame_change_pre.append(on_frame)
    try:
        room("export").make_job(bpy.context)
    finally:
        bpy.app.handlers.frame_change_pre.remove(on_frame)
    check_equal(visited, [], "frames visited")


if __name__ == "__main__":
    harness.main(globals())
