# SPDX-License-Identifier: GPL-3.0-or-later
"""The panels draw in every state. Blender without a window has no layout, so a recorder stands in for it and checks every
property and operator it is handed."""

import types

import harness
from harness import FOLDER, bpy, check, room


class Recorder:
    """A UILayout that keeps the texts; unknown properties and operators raise as they would in a window."""

    def __init__(self, texts=None):
        self.texts = texts if texts is not None else []

    def _child(self, **_options):
        return Recorder(self.texts)

    row = column = box = _child

    def label(self, text="", icon="NONE"):
        check(icon in bpy.types.UILayout.bl_rna.functions["label"].parameters["icon"].enum_items, f"no icon {icon}")
        self.texts.append(text)

    def prop(self, data, name, **_options):
        check(name in data.bl_rna.properties, f"no property {name}")
        self.texts.append(data.bl_rna.properties[name].name)

    def operator(self, name, text="", icon="NONE", **_options):
        group, operator = name.split(".")
        rna = getattr(getattr(bpy.ops, group), operator).get_rna_type()
        self.texts.append(text or rna.name)
        return types.SimpleNamespace()

    def menu(self, name, text="", icon="NONE"):
        check(hasattr(bpy.types, name), f"no menu {name}")
        self.texts.append(text or getattr(bpy.types, name).bl_label)

    def separator(self):
        pass

    def progress(self, factor=0.0, text=""):
        check(0.0 <= factor <= 1.0, f"progress is {factor}")
        self.texts.append(text)


def drawn(panel):
    """All texts of a panel of panels.py, by class name."""
    recorder = Recorder()
    getattr(room("panels"), panel).draw(types.SimpleNamespace(layout=recorder), bpy.context)
    return " | ".join(recorder.texts)


def test_panels_draw_in_an_empty_file():
    harness.new_file()
    check("0 sand, 0 colliders" in drawn("BARCHAN_PT_objects"), drawn("BARCHAN_PT_objects"))
    check("Sphere Radius" in drawn("BARCHAN_PT_grains"), drawn("BARCHAN_PT_grains"))
    text = drawn("BARCHAN_PT_bake")
    check("Bake Sand | Free Bake" in text, text)
    check("not saved" in text, f"an unsaved file is not mentioned: {text}")
    check("Lock the interface" in text and "Lock Interface" in text, f"no button for the lock: {text}")
    check("Wind" in drawn("BARCHAN_PT_world") and "Quality" in drawn("BARCHAN_PT_world"), drawn("BARCHAN_PT_world"))


def test_panels_draw_for_a_marked_object():
    harness.new_file()
    harness.mark(harness.add_box("Block", (1, 1, 1)), "SAND")
    check("1 sand, 0 colliders" in drawn("BARCHAN_PT_objects"), drawn("BARCHAN_PT_objects"))
    check("Type" in drawn("BARCHAN_PT_physics"), drawn("BARCHAN_PT_physics"))
    bpy.context.scene.barchan.frame_end = 20
    check("Start | End" in drawn("BARCHAN_PT_bake"), drawn("BARCHAN_PT_bake"))


def test_the_object_panel_shows_only_what_the_type_uses():
    harness.new_file()
    ob = harness.add_box("Block", (1, 1, 1))
    expected = {
        "COLLIDER": ("Friction Restitution Stiffness Rough Samples", "Density Rate Velocity Spin"),
        "BODY": ("Density Velocity Spin Animated Friction Push", "Rough Rate Grains Samples Let"),
        "EMITTER": ("Emit Rate Velocity Grains", "Friction Density Spin Rough Samples"),
        "OUTFLOW": ("vanish", "Friction Rate"),
        "FORCE": ("Acceleration", "Friction Rate Velocity"),
        "SAND": ("Own", "Rate Velocity Rough"),
    }
    panel = room("panels").BARCHAN_PT_object
    for name, (words, absent) in expected.items():
        harness.mark(ob, name)
        check(panel.poll(bpy.context), f"the panel is hidden for {name}")
        text = drawn("BARCHAN_PT_object")
        check(drawn("BARCHAN_PT_physics") != "", "the physics panel is empty")
        for word in words.split():
            check(word in text, f"{name}: no {word} in {text}")
        for word in absent.split():
            check(word not in text.replace("Block", ""), f"{name}: {word} in {text}")
    harness.mark(ob, "BODY")
    ob.barchan.is_driven, ob.barchan.mass_from = True, "MASS"
    text = drawn("BARCHAN_PT_object")
    check("Let Go at Frame" in text and "Samples" in text and "Velocity" not in text, text)
    check("| Mass |" in text and "Density" not in text, text)
    harness.mark(ob, "EMITTER")
    ob.barchan.use_range = True
    check("Start | Stop" in drawn("BARCHAN_PT_object").replace("Start and Stop | ", ""), drawn("BARCHAN_PT_object"))
    harness.mark(ob, "NONE")
    check(not panel.poll(bpy.context), "the panel is shown for an object that is nothing")
    harness.mark(ob, "BODY")
    check("0 sand, 0 colliders, 1 bodies" in drawn("BARCHAN_PT_objects"), drawn("BARCHAN_PT_objects"))


def test_every_setting_has_a_unit_or_says_so_and_one_sentence():
    for group in (room("properties").BarchanObject, room("properties").BarchanScene):
        for prop in group.bl_rna.properties:
            if prop.identifier in {"rna_type", "name"}:
                continue
            text = prop.description
            check(text != "" and not text.endswith("."), f"{prop.identifier} is described by {text!r}")
            check(text.count(". ") == 0, f"{prop.identifier} has more than one sentence: {text!r}")
            words = ("no unit", "kg/m", "Pa", "rad/s", "Share", "per second", "number", "Number", "quaternion", "World")
            if prop.type == "FLOAT" and prop.unit == "NONE":
                check(any(word in text for word in words), f"{prop.identifier} has no unit: {text!r}")


def test_the_bake_panel_says_what_is_cached_and_what_is_missing():
    scene = harness.small_scene(FOLDER / "panel", frame_end=2, radius=0.05)
    bpy.ops.barchan.bake()
    scene.frame_set(2)
    text = drawn("BARCHAN_PT_bake")
    check("2 frames in the cache" in text and "is not in the cache" not in text, text)
    check(text.endswith("| Export | Plots") and "Free (" in text and "From Here (2)" in text, text)
    scene.frame_set(3)
    check("Frame 3 is not in the cache" in drawn("BARCHAN_PT_bake"), drawn("BARCHAN_PT_bake"))
    bpy.ops.barchan.free()
    check("frames in the cache" not in drawn("BARCHAN_PT_bake"), drawn("BARCHAN_PT_bake"))


def test_the_bake_panel_says_how_much_of_the_animation_is_read():
    stage = room("stage")
    harness.small_scene(FOLDER / "reading", frame_end=2, radius=0.05)
    stage.reading = room("export").Reading(bpy.context)
    stage.reading.fraction = 0.37
    try:
        text = drawn("BARCHAN_PT_bake")
        busy = harness.error_of(bpy.ops.barchan.bake)
        bpy.ops.barchan.stop()
        check(stage.reading.is_cancelled, "Stop does not stop the reading")
    finally:
        stage.reading = None
    check("Exporting 37 %" in text and "Stop" in text and "Bake Sand" not in text, text)
    check("The animation is being read" in busy, f"bake says {busy!r}")


def test_the_stop_button_cancels_the_bake_and_resume_names_its_frame():
    bake = room("bake")
    scene = harness.small_scene(FOLDER / "stopped", frame_end=400, radius=0.05)
    run = bake.Bake(room("export").make_job(bpy.context))

    def stop(progress):
        if progress.frames_done >= 2 and bake.running is not None:
            bpy.ops.barchan.stop()

    bake.running = run
    try:
        run.run(stop)
    finally:
        bake.running = None
    check(run.progress.state == "STOPPED" and 2 <= run.progress.frames_done < 400, run.progress)
    text = drawn("BARCHAN_PT_bake")
    check(f"Resume from Frame {run.progress.frames_done + 1}" in text, text)
    scene.frame_end = run.progress.frames_done + 2
    bpy.ops.barchan.resume()
    check("Resume Bake" in drawn("BARCHAN_PT_bake") and room("operators").next_frame(scene) is None, drawn("BARCHAN_PT_bake"))


def test_the_bake_panel_shows_progress_while_baking():
    bake = room("bake")
    harness.small_scene(FOLDER / "progress", frame_end=2, radius=0.05)
    run = bake.Bake(room("export").make_job(bpy.context))
    run.progress = bake.Progress("BAKING", 45, 45, 120, 1000, 200.0)
    bake.running = run
    try:
        text = drawn("BARCHAN_PT_bake")
        busy = harness.error_of(bpy.ops.barchan.free)
    finally:
        bake.running = None
    check("Baking 38 % (45/120, 3 min 20 s left)" in text and "Bake Sand" not in text, text)
    check("A bake is running" in busy, f"free says {busy!r}")


def test_the_bake_panel_shows_progress_while_exporting():
    sequence = room("sequence")
    harness.new_file()
    run = sequence.Export("nowhere", "PLY", "nowhere_ply")
    run.done, run.total = 1, 4
    sequence.running = run
    try:
        text = drawn("BARCHAN_PT_bake")
    finally:
        sequence.running = None
    check("Exporting 25 % (1/4, " in text and "writes nothing" in text and "Bake Sand" not in text, text)


def test_without_the_engine_the_panel_says_so():
    harness.new_file()
    engine = room("engine")
    core = engine.core
    engine.core, engine.problem = None, "The sand engine cannot be loaded (test)"
    try:
        text = drawn("BARCHAN_PT_bake")
    finally:
        engine.core, engine.problem = core, ""
    check("The sand engine cannot be loaded (test)" in text.replace(" | ", " "), text)


if __name__ == "__main__":
    harness.main(globals())
