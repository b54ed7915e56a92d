# SPDX-License-Identifier: GPL-3.0-or-later
"""panels: draws the settings; no logic.

Comes in: properties, the state of the bake, messages. Goes out: the sidebar tab "Barchan" of the 3D view and a panel in
the object's physics properties.
"""

import textwrap

import bpy

from . import bake, body, checks, engine, estimate, export, operators, playback, properties, sequence, stage, starters

CHARACTER_PIXELS = 7.0  # mean width of a character at UI scale 1, for wrapping sentences


def draw_sentence(layout, context, text, icon="INFO"):
    """A sentence over as many lines as the panel's width needs."""
    width = context.region.width / context.preferences.system.ui_scale if context.region else 300
    column = layout.column(align=True)
    for index, line in enumerate(textwrap.wrap(text, max(20, int((width - 60) / CHARACTER_PIXELS)))):
        column.label(text=line, icon=icon if index == 0 else "BLANK1")


def draw_types(layout, context):
    ob = context.active_object
    types = properties.OBJECT_TYPES[1:] + properties.OBJECT_TYPES[:1]
    column = layout.column(align=True)
    for first in range(0, len(types), 3):
        row = column.row(align=True)
        for identifier, name, _description, icon, _number in types[first : first + 3]:
            is_active = ob is not None and ob.type == "MESH" and ob.select_get() and ob.barchan.type == identifier
            row.operator("barchan.set_type", text=name, icon=icon, depress=is_active).type = identifier


def draw_grains(layout, settings, menu):
    """Preset, shape, sizes and material of grains: of the scene, or of an object's own."""
    layout.menu(menu, text=starters.preset_of(settings) or "Presets", icon="PRESET")
    layout.prop(settings, "shape")
    if settings.shape == "CUSTOM":
        layout.prop(settings, "grain_object")
        layout.prop(settings, "clump_count")
    else:
        if settings.shape == "ROD":
            layout.prop(settings, "rod_count")
        layout.prop(settings, "radius")
    layout.prop(settings, "size_kind")
    if settings.size_kind != "EQUAL":
        column = layout.column(align=True)
        column.prop(settings, "size_low")
        column.prop(settings, "size_high")
        if settings.size_kind == "LOGNORMAL":
            column.prop(settings, "size_spread")
    for name in "density restitution friction rolling bond".split():
        layout.prop(settings, name)


def draw_warning(layout, context, warning):
    """The sentence and, where there is one, the button that mends it."""
    box = layout.box()
    draw_sentence(box, context, warning.text, icon="ERROR")
    if warning.fix:
        row = box.operator("barchan.fix", text=next(row[1] for row in checks.FIXES if row[0] == warning.fix), icon="MODIFIER")
        row.what = warning.fix
        row.object = warning.object


def draw_object(layout, context, ob):
    """The settings that the object's type uses, and no others."""
    settings = ob.barchan
    layout = layout.column()
    layout.use_property_split = True
    layout.use_property_decorate = False
    if settings.type == "BODY":
        layout.row().prop(settings, "mass_from", expand=True)
        layout.prop(settings, "mass" if settings.mass_from == "MASS" else "density")
        layout.prop(settings, "is_driven")
        if settings.is_driven:
            layout.prop(settings, "release_frame")
            layout.prop(settings, "samples")
        else:
            layout.prop(settings, "velocity")
            layout.prop(settings, "spin")
        if settings.body is None:
            layout.prop(settings, "fill")
            layout.prop(settings, "body_radius")
    if settings.type in {"BODY", "COLLIDER"}:
        layout.prop(settings, "friction")
        layout.prop(settings, "restitution")
        layout.prop(settings, "stiffness")
    if settings.type == "COLLIDER":
        layout.prop(settings, "is_rough")
        layout.prop(settings, "samples")
    if settings.type == "EMITTER":
        layout.row().prop(settings, "emit_from", expand=True)
        layout.prop(settings, "rate")
        layout.prop(settings, "velocity")
        if export.may_move(ob):
            layout.prop(settings, "inherit")
            layout.prop(settings, "samples")
        layout.prop(settings, "target_count")
        layout.prop(settings, "use_range")
        if settings.use_range:
            column = layout.column(align=True)
            column.prop(settings, "emit_start")
            column.prop(settings, "emit_end")
    if settings.type == "OUTFLOW":
        draw_sentence(layout, context, "Grains that come into the box around this mesh vanish")
    if settings.type == "FORCE":
        layout.prop(settings, "acceleration")
        draw_sentence(layout, context, "Holds in the box around this mesh, along the world's axes")
    if settings.type in {"SAND", "EMITTER"}:
        layout.prop(settings, "own_grains")
        if settings.own_grains:
            draw_grains(layout, settings.grains, "BARCHAN_MT_object_presets")
    if settings.type == "BODY":
        row = layout.row(align=True)
        row.operator("barchan.push_out", icon="FULLSCREEN_EXIT")
        row.operator("barchan.bake_keyframes", text="Keyframes", icon="KEYFRAME")


COUNTED = (
    ("SAND", "sand"),
    ("COLLIDER", "colliders"),
    ("BODY", "bodies"),
    ("EMITTER", "emitters"),
    ("OUTFLOW", "outflows"),
    ("FORCE", "forces"),
)


class BarchanPanel:
    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "Barchan"


class BARCHAN_PT_objects(BarchanPanel, bpy.types.Panel):
    bl_idname = "BARCHAN_PT_objects"
    bl_label = "Selected Meshes"

    def draw(self, context):
        draw_types(self.layout, context)
        self.layout.operator("barchan.quick_sand", icon="LIGHT")
        types = [ob.barchan.type for ob in context.scene.objects if ob.type == "MESH"]
        counts = [(types.count(identifier), name) for identifier, name in COUNTED]
        shown = [f"{count} {name}" for index, (count, name) in enumerate(counts) if count or index < 2]
        self.layout.label(text="In the scene: " + ", ".join(shown))


class BARCHAN_PT_object(BarchanPanel, bpy.types.Panel):
    bl_idname = "BARCHAN_PT_object"
    bl_label = "Active Object"

    @classmethod
    def poll(cls, context):
        ob = context.active_object
        return ob is not None and ob.type == "MESH" and ob.barchan.type != "NONE"

    def draw(self, context):
        ob = context.active_object
        kind = next(item for item in properties.OBJECT_TYPES if item[0] == ob.barchan.type)
        self.layout.label(text=f"{ob.name}: {kind[1]}", icon=kind[3])
        draw_object(self.layout, context, ob)


class BARCHAN_PT_body(BarchanPanel, bpy.types.Panel):
    bl_idname = "BARCHAN_PT_body"
    bl_label = "Particle Body"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context):
        layout = self.layout
        if engine.core is None:
            draw_sentence(layout, context, engine.problem, icon="ERROR")
            return
        row = layout.row(align=True)
        row.operator("barchan.convert_to_body", text="Convert", icon="OUTLINER_OB_POINTCLOUD")
        row.operator("barchan.remove_body", text="Remove", icon="TRASH")
        ob = context.active_object
        found = body.report(ob) if ob is not None else None
        if found is None:
            return
        layout.prop(ob.barchan, "show_body")
        column = layout.column(align=True)
        for line in body.report_lines(found):
            column.label(text=line)
        for warning in found["warnings"]:
            draw_sentence(layout, context, warning, icon="ERROR")


class BARCHAN_PT_grains(BarchanPanel, bpy.types.Panel):
    bl_idname = "BARCHAN_PT_grains"
    bl_label = "Grains"

    def draw(self, context):
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        draw_grains(layout, context.scene.barchan, "BARCHAN_MT_presets")


class BARCHAN_PT_world(BarchanPanel, bpy.types.Panel):
    bl_idname = "BARCHAN_PT_world"
    bl_label = "World and Quality"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context):
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        scene = context.scene
        layout.prop(scene, "use_gravity")
        if scene.use_gravity:
            layout.prop(scene, "gravity")
        for name in "drag wind quality max_overlap max_speed sleep_speed seed".split():
            layout.prop(scene.barchan, name)


def draw_reading(layout, context, reading):
    """A scene that is being read."""
    layout.progress(factor=reading.fraction, text=reading.text())
    layout.operator("barchan.stop", icon="CANCEL")
    draw_sentence(layout, context, "The animation is read before the bake; Stop or Esc changes nothing", icon="EVENT_ESC")


def draw_running(layout, context, run):
    """A bake under way."""
    progress = run.progress
    layout.progress(factor=progress.fraction, text=progress.text())
    if progress.frames_done:
        column = layout.column(align=True)
        column.label(text=f"Frame {progress.frame}, {progress.grain_count:,} grains")
        if progress.grain_steps:
            column.label(text=f"{bake.rate(progress.grain_steps)} grain-steps/s")
    if run.engine_name:
        layout.label(text=f"On {run.engine_name}, about {bake.size(progress.byte_estimate)} on disk")
    layout.operator("barchan.stop", icon="CANCEL")
    draw_sentence(layout, context, "Stop or Esc keeps the frames; Blender may be closed at any moment", icon="EVENT_ESC")


def draw_before(layout, context, scene):
    """What the bake will take, as far as it is known, and what should be mended first."""
    if operators.has_sand(scene):
        result = checks.last_estimate(scene)
        column = layout.column(align=True)
        if result is not None:
            for line in result.lines():
                column.label(text=line)
        else:
            grains, spheres = checks.count_grains(scene)
            column.label(text=f"About {grains:,} grains, {spheres:,} spheres")
        if estimate.running is not None:
            column.label(text="Running the first steps; Esc stops", icon="SORTTIME")
        elif result is None:
            layout.operator("barchan.estimate", text="Estimate Time, Disk and Memory", icon="SORTTIME")
        text, fix = checks.estimate_problem(scene)
        if text:
            draw_warning(layout, context, fix or checks.Warning(text))
    for warning in checks.warnings(scene):
        draw_warning(layout, context, warning)


def draw_buttons(layout, context, scene):
    """Bake, Resume, Free and Export, by what is in the cache."""
    found = operators.listed(scene)
    row = layout.row(align=True)
    row.operator("barchan.bake", icon="REC")
    row.operator("barchan.free", text=f"Free ({bake.size(found.byte_count)})" if found.byte_count else "Free Bake", icon="TRASH")
    if not found.frame_count:
        return
    column = layout.column(align=True)
    missing = operators.next_frame(scene)
    column.operator("barchan.resume", text=f"Resume from Frame {missing}" if missing is not None else "Resume Bake", icon="PLAY")
    column.operator("barchan.resume", text=f"From Here ({scene.frame_current})", icon="FRAME_NEXT").from_current = True
    by = f", baked on {found.engine}" if found.engine else ""
    draw_sentence(layout, context, f"{found.frame_count} frames in the cache, {bake.size(found.byte_count)}{by}")
    if operators.is_stale(scene):
        draw_sentence(layout, context, "The frames are stale: settings have changed since they were baked", icon="ERROR")
    row = layout.row(align=True)
    row.operator("barchan.export", text="Export", icon="EXPORT")
    row.operator("barchan.save_plots", text="Plots", icon="GRAPH")


class BARCHAN_PT_bake(BarchanPanel, bpy.types.Panel):
    bl_idname = "BARCHAN_PT_bake"
    bl_label = "Bake"

    def draw(self, context):
        layout = self.layout
        if engine.core is None:
            draw_sentence(layout, context, engine.problem, icon="ERROR")
            return
        scene = context.scene
        settings = scene.barchan
        column = layout.column()
        column.use_property_split = True
        column.use_property_decorate = False
        column.enabled = bake.running is None and stage.reading is None
        column.prop(settings, "use_scene_range")
        if not settings.use_scene_range:
            sub = column.column(align=True)
            sub.prop(settings, "frame_start")
            sub.prop(settings, "frame_end")
        column.prop(settings, "folder")
        column.prop(settings, "disk_limit")
        column.prop(settings, "is_exact")
        column.prop(settings, "checkpoint_interval")
        column.prop(settings, "keep_interval")
        column.prop(settings, "engine")
        column.prop(settings, "threads")
        run = bake.running
        if stage.reading is not None:
            draw_reading(layout, context, stage.reading)
        elif run is not None:
            draw_running(layout, context, run)
        elif sequence.running is not None:
            layout.progress(factor=sequence.running.fraction, text=sequence.running.text())
            layout.label(text="Esc stops and writes nothing", icon="EVENT_ESC")
        else:
            draw_before(layout, context, scene)
            draw_buttons(layout, context, scene)
        message = playback.message(scene)
        if message:
            draw_sentence(layout, context, message, icon="ERROR")


class BARCHAN_PT_display(BarchanPanel, bpy.types.Panel):
    bl_idname = "BARCHAN_PT_display"
    bl_label = "Display"

    def draw(self, context):
        scene = context.scene
        self.layout.row().prop(scene.barchan, "display", expand=True)


class BARCHAN_PT_physics(bpy.types.Panel):
    bl_idname = "BARCHAN_PT_physics"
    bl_label = "Barchan"
    bl_space_type = "PROPERTIES"
    bl_region_type = "WINDOW"
    bl_context = "physics"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context):
        return context.object is not None and context.object.type == "MESH"

    def draw(self, context):
        self.layout.prop(context.object.barchan, "type")
        draw_object(self.layout, context, context.object)
        if engine.core is None:
            draw_sentence(self.layout, context, engine.problem, icon="ERROR")
        else:
            self.layout.label(text="Settings and Bake: 3D view, sidebar (N), tab Barchan")


_classes = (
    BARCHAN_PT_objects,
    BARCHAN_PT_object,
    BARCHAN_PT_body,
    BARCHAN_PT_grains,
    BARCHAN_PT_world,
    BARCHAN_PT_bake,
    BARCHAN_PT_display,
    BARCHAN_PT_physics,
)


def register():
    for cls in _classes:
        bpy.utils.register_class(cls)


def unregister():
    for cls in reversed(_classes):
        bpy.utils.unregister_class(cls)
