# SPDX-License-Identifier: GPL-3.0-or-later
"""panels: draws the settings; no logic.

Comes in: properties, the state of the bake, messages. Goes out: the sidebar tab "Barchan" of the 3D view and a panel in
the object's physics properties.
"""

import textwrap

import bpy

from . import bake, body, engine, operators, playback, properties, sequence

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
        layout.prop(settings, "target_count")
        layout.prop(settings, "use_range")
        if settings.use_range:
            column = layout.column(align=True)
            column.prop(settings, "emit_start")
            column.prop(settings, "emit_end")
    if settings.type == "OUTFLOW":
        draw_sentence(layout, context, "Grains that come into the box around this mesh vanish")
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
        return ob is not None and ob.type == "MESH" and ob.barchan.type not in {"NONE", "SAND"}

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
        settings = context.scene.barchan
        for name in "shape radius density restitution friction max_overlap max_speed sleep_speed seed".split():
            layout.prop(settings, name)


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
        column.enabled = bake.running is None
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
        if properties.is_folder_temporary(scene):
            draw_sentence(
                layout, context, "The file is not saved: frames go to a temporary folder and are lost when Blender closes"
            )

        run = bake.running
        if run is not None:
            layout.progress(factor=run.progress.fraction, text=run.progress.text())
            if run.engine_name:
                layout.label(text=f"On {run.engine_name}, about {bake.size(run.progress.byte_estimate)} on disk")
            layout.label(text="Esc stops and keeps the frames", icon="EVENT_ESC")
        elif sequence.running is not None:
            layout.progress(factor=sequence.running.fraction, text=sequence.running.text())
            layout.label(text="Esc stops and writes nothing", icon="EVENT_ESC")
        else:
            row = layout.row(align=True)
            row.operator("barchan.bake", icon="REC")
            row.operator("barchan.free", icon="TRASH")
            found = operators.listed(scene)
            if found.frame_count:
                row = layout.row(align=True)
                row.operator("barchan.resume", icon="PLAY")
                row.operator("barchan.resume", text="From Here", icon="FRAME_NEXT").from_current = True
                by = f", baked on {found.engine}" if found.engine else ""
                layout.label(text=f"{found.frame_count} frames in the cache, {bake.size(found.byte_count)}{by}")
                if operators.is_stale(scene):
                    draw_sentence(
                        layout, context, "The frames are stale: settings have changed since they were baked", icon="ERROR"
                    )
                layout.operator("barchan.export", text="Export", icon="EXPORT")
        message = playback.message(scene)
        if message:
            draw_sentence(layout, context, message, icon="ERROR")


class BARCHAN_PT_display(BarchanPanel, bpy.types.Panel):
    bl_idname = "BARCHAN_PT_display"
    bl_label = "Display"

    def draw(self, context):
        scene = context.scene
        self.layout.row().prop(scene.barchan, "display", expand=True)
        if not scene.render.use_lock_interface:
            draw_sentence(self.layout, context, "Lock the interface while rendering: frames change in the render's thread")
            self.layout.prop(scene.render, "use_lock_interface")


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
