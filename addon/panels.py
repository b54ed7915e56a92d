# SPDX-License-Identifier: GPL-3.0-or-later
"""panels: draws the settings; no logic.

Comes in: properties, the state of the bake, messages. Goes out: the sidebar tab "Barchan" of the 3D view and a panel in
the object's physics properties.
"""

import textwrap

import bpy

from . import bake, body, engine, operators, playback, properties

CHARACTER_PIXELS = 7.0  # mean width of a character at UI scale 1, for wrapping sentences


def draw_sentence(layout, context, text, icon="INFO"):
    """A sentence over as many lines as the panel's width needs."""
    width = context.region.width / context.preferences.system.ui_scale if context.region else 300
    column = layout.column(align=True)
    for index, line in enumerate(textwrap.wrap(text, max(20, int((width - 60) / CHARACTER_PIXELS)))):
        column.label(text=line, icon=icon if index == 0 else "BLANK1")


def draw_types(layout, context):
    ob = context.active_object
    row = layout.row(align=True)
    for identifier, name, _description, icon, _number in properties.OBJECT_TYPES[1:] + properties.OBJECT_TYPES[:1]:
        is_active = ob is not None and ob.type == "MESH" and ob.select_get() and ob.barchan.type == identifier
        row.operator("barchan.set_type", text=name, icon=icon, depress=is_active).type = identifier


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
        self.layout.label(text=f"In the scene: {types.count('SAND')} sand, {types.count('COLLIDER')} colliders")


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
        for name in ("shape", "radius", "density", "restitution", "friction", "max_overlap", "max_speed", "seed"):
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
        column.prop(settings, "threads")
        if properties.is_folder_temporary(scene):
            draw_sentence(
                layout, context, "The file is not saved: frames go to a temporary folder and are lost when Blender closes"
            )

        run = bake.running
        if run is not None:
            layout.progress(factor=run.progress.fraction, text=run.progress.text())
            layout.label(text="Esc stops and keeps the frames", icon="EVENT_ESC")
        else:
            row = layout.row(align=True)
            row.operator("barchan.bake", icon="REC")
            row.operator("barchan.free", icon="TRASH")
            frame_count, byte_count = operators.cached_frames(scene)
            if frame_count:
                layout.label(text=f"{frame_count} frames in the cache, {bake.size(byte_count)}")
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
        self.layout.row().prop(context.object.barchan, "type", expand=True)
        if engine.core is None:
            draw_sentence(self.layout, context, engine.problem, icon="ERROR")
        else:
            self.layout.label(text="Settings and Bake: 3D view, sidebar (N), tab Barchan")


_classes = (
    BARCHAN_PT_objects,
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
