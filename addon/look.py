# SPDX-License-Identifier: GPL-3.0-or-later
"""look: how baked grains are played and drawn.

Comes in: what the user sets. Goes out: `Scene.barchan_look`, its panels, and the inputs of the carrier's node group and material.
"""

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, PointerProperty

from . import grains, panels, playback

TIMINGS = (
    ("TIMELINE", "Timeline", "The frame of the timeline"),
    ("HOLD", "Hold", "One frame, whatever the timeline shows"),
    ("OVERRIDE", "Override", "The frame that Override Frame says, which may be keyframed: slow motion, rewind, other speeds"),
)

VIEWS = (
    ("RENDER", "As Rendered", "What a render shows"),
    ("POINTS", "Points", "One point per grain: the lightest"),
    ("SPHERES", "Spheres", "Lit spheres drawn on the graphics card straight from the cache, without geometry"),
)

KINDS = (
    ("SPHERES", "Spheres", "The spheres that were simulated"),
    ("ROUNDED", "Rounded", "Grains worn smooth by wind and water, a few hundred triangles"),
    ("ANGULAR", "Angular", "Freshly broken grains with flat faces, a few hundred triangles"),
    ("OBJECT", "Object", "An object of your own, made for spheres of radius 1 m, with its own materials"),
)

SANDS = (
    ("DESERT", "Desert", "Quartz stained by iron, and some dark minerals"),
    ("BEACH", "Beach", "Pale quartz and shells"),
    ("RED", "Red", "Quartz deep red with iron"),
    ("BLACK", "Black", "Basalt with olivine"),
    ("WHITE", "White", "Gypsum or coral"),
    ("BLUE", "Blue", "Dyed sand"),
)


def _frames_changed(self, _context):
    playback.show(self.id_data)


def _look_changed(self, _context):
    playback.apply_display(self.id_data)


def _view_changed(self, _context):
    playback.apply_display(self.id_data)
    playback.show(self.id_data)


def _sand_changed(self, _context):
    grains.apply_sand(self.id_data)


class BarchanLook(bpy.types.PropertyGroup):
    is_on: BoolProperty(
        name="Load Frames",
        description="Read the cache when the frame changes; off leaves grains and bodies as they are, while you work on "
        "something else. Renders obey it too",
        default=True,
        update=_frames_changed,
        options=set(),
    )
    timing: EnumProperty(
        name="Frame",
        description="Which cached frame is shown",
        items=TIMINGS,
        default="TIMELINE",
        update=_frames_changed,
        options=set(),
    )
    hold_frame: IntProperty(
        name="Hold Frame",
        description="Cached frame to show",
        default=1,
        min=-99999,
        max=999999,
        update=_frames_changed,
        options=set(),
    )
    frame: FloatProperty(
        name="Override Frame",
        description="Cached frame to show; between two frames the grains are where they were between them. Keyframe it to "
        "change the speed of the sand",
        default=1.0,
        min=-99999.0,
        max=999999.0,
        precision=2,
        step=10,
        update=_frames_changed,
        options={"ANIMATABLE"},
    )
    percentage: IntProperty(
        name="Grains in View",
        description="Share of the grains that the viewport shows; renders show all",
        subtype="PERCENTAGE",
        default=100,
        min=1,
        max=100,
        update=_view_changed,
        options=set(),
    )
    view: EnumProperty(
        name="View",
        description="How the viewport shows the grains",
        items=VIEWS,
        default="RENDER",
        update=_view_changed,
        options=set(),
    )
    use_all: BoolProperty(
        name="All Attributes",
        description="Also read what the viewport does not draw, such as velocity, for node groups of your own; renders always "
        "read everything",
        default=False,
        update=_frames_changed,
        options=set(),
    )
    kind: EnumProperty(
        name="Grains",
        description="Meshes that Display: Grains draws",
        items=KINDS,
        default="SPHERES",
        update=_look_changed,
        options=set(),
    )
    grain_object: PointerProperty(
        name="Object",
        type=bpy.types.Object,
        description="Grain of your own, made for spheres of radius 1 m about its origin",
        update=_look_changed,
    )
    by_distance: BoolProperty(
        name="By Distance",
        description="Fine meshes near the camera, coarse ones behind them, and one true sphere per grain beyond",
        default=False,
        update=_look_changed,
        options=set(),
    )
    close: FloatProperty(
        name="Fine Until",
        description="Distance to the camera up to which meshes are fine; 0 is 300 sphere radii",
        subtype="DISTANCE",
        unit="LENGTH",
        default=0.0,
        min=0.0,
        max=1e6,
        soft_max=100.0,
        update=_look_changed,
        options=set(),
    )
    far: FloatProperty(
        name="Meshes Until",
        description="Distance to the camera from which a grain is one sphere; 0 is 2000 sphere radii",
        subtype="DISTANCE",
        unit="LENGTH",
        default=0.0,
        min=0.0,
        max=1e6,
        soft_max=1000.0,
        update=_look_changed,
        options=set(),
    )
    variation: FloatProperty(
        name="Size Variation",
        description="Share of its radius by which the smallest grain is drawn smaller than it was simulated (no unit)",
        default=0.0,
        min=0.0,
        max=0.9,
        soft_max=0.5,
        update=_look_changed,
        options=set(),
    )
    sand: EnumProperty(
        name="Minerals",
        description="Colours of the material 'Barchan Sand', by the grain's number",
        items=SANDS,
        default="DESERT",
        update=_sand_changed,
        options=set(),
    )
    wet: FloatProperty(
        name="Wetness",
        description="Water on the grains (no unit): darker, deeper, shinier",
        subtype="FACTOR",
        default=0.0,
        min=0.0,
        max=1.0,
        update=_sand_changed,
        options=set(),
    )
    glints: FloatProperty(
        name="Glints",
        description="Share of the grains with a mirror-like face (no unit)",
        subtype="FACTOR",
        default=0.03,
        min=0.0,
        max=1.0,
        soft_max=0.2,
        update=_sand_changed,
        options=set(),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Panels


class BARCHAN_PT_look(panels.BarchanPanel, bpy.types.Panel):
    bl_idname = "BARCHAN_PT_look"
    bl_label = "Look"

    def draw(self, context):
        scene = context.scene
        settings = scene.barchan_look
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop(settings, "view")
        layout.prop(settings, "percentage")
        column = layout.column()
        column.enabled = scene.barchan.display == "GRAINS"
        column.prop(settings, "kind")
        if settings.kind == "OBJECT":
            column.prop(settings, "grain_object")
        column.prop(settings, "by_distance")
        if settings.by_distance:
            column.prop(settings, "close")
            column.prop(settings, "far")
        layout.prop(settings, "variation")
        layout.prop(settings, "sand")
        layout.prop(settings, "wet")
        layout.prop(settings, "glints")


class BARCHAN_PT_playback(panels.BarchanPanel, bpy.types.Panel):
    bl_idname = "BARCHAN_PT_playback"
    bl_label = "Playback"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_header(self, context):
        self.layout.prop(context.scene.barchan_look, "is_on", text="")

    def draw(self, context):
        settings = context.scene.barchan_look
        layout = self.layout
        layout.use_property_split = True
        layout.enabled = settings.is_on
        layout.row().prop(settings, "timing", expand=True)
        if settings.timing == "HOLD":
            layout.prop(settings, "hold_frame")
        elif settings.timing == "OVERRIDE":
            layout.prop(settings, "frame")
        layout.prop(settings, "use_all")


_classes = (BarchanLook, BARCHAN_PT_look, BARCHAN_PT_playback)


def register():
    for cls in _classes:
        bpy.utils.register_class(cls)
    bpy.types.Scene.barchan_look = PointerProperty(type=BarchanLook)


def unregister():
    del bpy.types.Scene.barchan_look
    for cls in reversed(_classes):
        bpy.utils.unregister_class(cls)
