# SPDX-License-Identifier: GPL-3.0-or-later
"""starters: presets of grains, Quick Sand, Add-menu entries and template scenes.

Comes in: what the user pressed. Goes out: settings, marked objects, or a scene of its own that bakes in about a minute.
"""

import math

import bpy
from bpy.props import EnumProperty
from mathutils import Matrix, Vector

from . import engine, operators

QUICK_GRAINS = 4000  # that Quick Sand aims at
TETRAHEDRON_BOUND = 2.22474  # bounding radius of a grain of four spheres, in sphere radii
PRESET_FIELDS = "density restitution friction rolling bond".split()


# ---------------------------------------------------------------------------------------------------------------------
# Presets


def preset_items():
    """Identifier, label and tooltip of every preset: what it is, its numbers, and its angle of repose as measured."""
    if engine.core is None:
        return [("NONE", "None", engine.problem)]
    rows = []
    for one in engine.core.presets.presets().values():
        angle = "angle of repose not measured" if one.repose_degrees is None else (
            f"angle of repose {one.repose_degrees:.0f}\u00b0, measured"
        )
        text = (
            f"{one.description}: {one.shape}, {one.density:g} kg/m\u00b3, friction {one.friction:g}, restitution "
            f"{one.restitution:g}; {angle}"
        )
        rows.append((one.name.upper(), one.label, text))
    return rows


def _preset_fields(preset):
    """Names of the numbers that a preset sets: those of its shape and sizes, and no others."""
    names = list(PRESET_FIELDS)
    if preset.shape == "rod":
        names.append("rod_count")
    if preset.size_kind != "equal":
        names += ["size_low", "size_high"]
    if preset.size_kind == "lognormal":
        names.append("size_spread")
    return names


def apply_preset(settings, preset):
    """Shape, sizes and material of a preset; the radius stays."""
    settings.shape = preset.shape.upper()
    settings.size_kind = preset.size_kind.upper()
    for name in _preset_fields(preset):
        setattr(settings, name, getattr(preset, name))


def preset_of(settings):
    """Label of the preset that these settings are, "" when they are none."""
    for one in engine.core.presets.presets().values() if engine.core is not None else ():
        is_alike = settings.shape == one.shape.upper() and settings.size_kind == one.size_kind.upper()
        if is_alike and all(
            math.isclose(getattr(settings, name), getattr(one, name), rel_tol=1e-5, abs_tol=1e-7) for name in _preset_fields(one)
        ):
            return one.label
    return ""


class BARCHAN_OT_preset(bpy.types.Operator):
    """Give the grains the shape, sizes and material of a preset; the sphere radius stays"""

    bl_idname = "barchan.preset"
    bl_label = "Grain Preset"
    bl_options = {"REGISTER", "UNDO"}

    name: EnumProperty(name="Preset", description="Which material", items=preset_items())
    target: EnumProperty(
        name="For",
        description="Whose grains are set",
        items=(
            ("SCENE", "Scene", "All sand that has no grains of its own"),
            ("OBJECT", "Object", "The active object, which gets grains of its own"),
        ),
        default="SCENE",
    )

    @classmethod
    def description(cls, _context, operator_properties):
        return next((row[2] for row in preset_items() if row[0] == operator_properties.name), cls.__doc__)

    @classmethod
    def poll(cls, _context):
        return operators.is_ready(cls)

    def execute(self, context):
        settings = context.scene.barchan
        if self.target == "OBJECT":
            ob = context.active_object
            if ob is None or ob.barchan.type not in {"SAND", "EMITTER"}:
                self.report({"ERROR"}, "The active object is neither sand nor an emitter")
                return {"CANCELLED"}
            ob.barchan.own_grains = True
            settings = ob.barchan.grains
        preset = engine.core.presets.presets()[self.name.lower()]
        apply_preset(settings, preset)
        look = getattr(context.scene, "barchan_look", None)
        if look is not None and hasattr(look, "wet") and self.target == "SCENE":
            look.wet = 1.0 if preset.name == "wet_sand" else 0.0
            if hasattr(look, "sand"):
                look.sand = "WHITE" if preset.name in {"snow", "salt", "rice"} else "DESERT"
        return {"FINISHED"}


class PresetMenu:
    bl_label = "Grain Presets"
    target = "SCENE"

    def draw(self, _context):
        for identifier, label, _text in preset_items():
            row = self.layout.operator("barchan.preset", text=label)
            row.name = identifier
            row.target = self.target


class BARCHAN_MT_presets(PresetMenu, bpy.types.Menu):
    bl_idname = "BARCHAN_MT_presets"


class BARCHAN_MT_object_presets(PresetMenu, bpy.types.Menu):
    bl_idname = "BARCHAN_MT_object_presets"
    target = "OBJECT"


# ---------------------------------------------------------------------------------------------------------------------
# Meshes


BOX_FACES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


def _box(size):
    """Corners and faces of a box of this size about the origin, faces outwards."""
    x, y, z = (0.5 * s for s in size)
    return [(i, j, k) for i in (-x, x) for j in (-y, y) for k in (-z, z)], BOX_FACES


def _tray(size, height):
    """An open box: floor and four walls, without thickness."""
    vertices, faces = _box((size[0], size[1], height))
    return vertices, [face for face in faces if face != (1, 5, 7, 3)]


def _turned(profile, count, is_closed):
    """Corners and faces of a profile (radius, height) turned about z, from the bottom up; closed with a lid at each end."""
    vertices = [
        (radius * math.cos(2 * math.pi * k / count), radius * math.sin(2 * math.pi * k / count), height)
        for radius, height in profile
        for k in range(count)
    ]
    faces = [
        (count * row + k, count * row + (k + 1) % count, count * (row + 1) + (k + 1) % count, count * (row + 1) + k)
        for row in range(len(profile) - 1)
        for k in range(count)
    ]
    if is_closed:
        last = count * (len(profile) - 1)
        faces += [tuple(range(count - 1, -1, -1)), tuple(range(last, last + count))]
    return vertices, faces


def _ball_profile(radius, rows=12):
    return [
        (max(radius * math.sin(math.pi * k / rows), 0.02 * radius), -radius * math.cos(math.pi * k / rows)) for k in range(rows + 1)
    ]


def add_mesh(scene, name, shape, kind, place=(0.0, 0.0, 0.0), **settings):
    """A marked mesh object in the scene's collection; keywords are settings of Object.barchan."""
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(shape[0], [], shape[1])
    mesh.update()
    ob = bpy.data.objects.new(name, mesh)
    ob.location = place
    scene.collection.objects.link(ob)
    ob.barchan.type = kind
    for key, value in settings.items():
        setattr(ob.barchan, key, value)
    return ob


def _key(ob, path, frames):
    for frame, value in frames:
        setattr(ob, path, value)
        ob.keyframe_insert(path, frame=frame)


# ---------------------------------------------------------------------------------------------------------------------
# Quick Sand and the Add menu


class BARCHAN_OT_quick_sand(bpy.types.Operator):
    """Make the selected meshes sand of about four thousand grains, with a floor under them where the scene has no collider"""

    bl_idname = "barchan.quick_sand"
    bl_label = "Quick Sand"
    bl_options = {"REGISTER", "UNDO"}

    preset: EnumProperty(name="Preset", description="Material of the grains", items=preset_items())

    @classmethod
    def poll(cls, context):
        if not operators.is_ready(cls) or not operators.is_in_object_mode(cls, context):
            return False
        if not operators.selected_meshes(context):
            cls.poll_message_set("No mesh object is selected")
            return False
        return True

    def execute(self, context):
        scene, meshes = context.scene, operators.selected_meshes(context)
        apply_preset(scene.barchan, engine.core.presets.presets()[self.preset.lower()])
        volume, low, reach = 0.0, math.inf, 0.0
        context.view_layer.update()
        for ob in meshes:
            ob.barchan.type = "SAND"
            corners = [ob.matrix_world @ Vector(corner) for corner in ob.bound_box]
            volume += max(ob.dimensions.x * ob.dimensions.y * ob.dimensions.z, 0.0)
            low = min(low, min(corner.z for corner in corners))
            reach = max(reach, max(max(abs(corner.x), abs(corner.y)) for corner in corners))
        if volume <= 0.0:
            self.report({"ERROR"}, "The selected meshes are flat; sand fills a closed mesh with a volume")
            return {"CANCELLED"}
        spacing = (math.sqrt(2.0) * 0.6 * volume / QUICK_GRAINS) ** (1.0 / 3.0)  # a mesh fills about 0.6 of its box
        scene.barchan.radius = spacing / 2.05 / TETRAHEDRON_BOUND / 1.15
        scene.render.use_lock_interface = True
        if not any(ob.type == "MESH" and ob.barchan.type == "COLLIDER" for ob in scene.objects):
            edge = 3.0 * max(reach, 1e-3)
            plane = [(-edge, -edge, 0), (edge, -edge, 0), (edge, edge, 0), (-edge, edge, 0)], [(0, 1, 2, 3)]
            add_mesh(scene, "Sand Floor", plane, "COLLIDER", (0.0, 0.0, low - 0.01 * edge))
        self.report({"INFO"}, f"Sand of radius {scene.barchan.radius:.3g} m; press Bake Sand in the sidebar's Barchan tab")
        return {"FINISHED"}


ADDED = (
    ("HEAP", "Sand Block", "A block of sand, half a metre wide", "OUTLINER_DATA_POINTCLOUD"),
    ("BOWL", "Collider Bowl", "An open bowl that holds sand", "MOD_PHYSICS"),
    ("FLOOR", "Collider Floor", "A floor of four by four metres", "MESH_PLANE"),
    ("EMITTER", "Emitter", "A box that grains come out of, 500 per second", "PARTICLES"),
    ("BODY", "Body Ball", "A ball that sand moves and that moves sand", "RIGID_BODY"),
    ("OUTFLOW", "Outflow", "A box in which grains vanish", "TRASH"),
    ("FORCE", "Force", "A box in which everything is pushed sideways", "FORCE_WIND"),
)


class BARCHAN_OT_add(bpy.types.Operator):
    """Add a mesh that is marked for the sand already"""

    bl_idname = "barchan.add"
    bl_label = "Add Barchan Object"
    bl_options = {"REGISTER", "UNDO"}

    kind: EnumProperty(name="Kind", description="What is added", items=[row[:3] for row in ADDED], default="HEAP")

    @classmethod
    def description(cls, _context, operator_properties):
        return next(row[2] for row in ADDED if row[0] == operator_properties.kind)

    @classmethod
    def poll(cls, context):
        return operators.is_in_object_mode(cls, context)

    def execute(self, context):
        scene, at = context.scene, Vector(context.scene.cursor.location)
        bowl = [(0.05, 0.0), (0.35, 0.05), (0.6, 0.2), (0.75, 0.45)]
        floor = [(-2, -2, 0), (2, -2, 0), (2, 2, 0), (-2, 2, 0)], [(0, 1, 2, 3)]
        made = {
            "HEAP": ("Sand Block", _box((0.5, 0.5, 0.5)), "SAND", (0, 0, 0.3), {}),
            "BOWL": ("Bowl", _bowl(bowl), "COLLIDER", (0, 0, 0), {}),
            "FLOOR": ("Floor", floor, "COLLIDER", (0, 0, 0), {}),
            "EMITTER": ("Emitter", _box((0.4, 0.4, 0.2)), "EMITTER", (0, 0, 1.0), {"velocity": (0.0, 0.0, -1.0)}),
            "BODY": ("Ball", _turned(_ball_profile(0.15), 24, True), "BODY", (0, 0, 1.0), {"density": 7850.0}),
            "OUTFLOW": ("Outflow", _box((1.0, 1.0, 0.3)), "OUTFLOW", (0, 0, -0.5), {}),
            "FORCE": ("Force", _box((1.0, 1.0, 1.0)), "FORCE", (0, 0, 0.5), {"acceleration": (5.0, 0.0, 0.0)}),
        }[self.kind]
        name, shape, kind, place, settings = made
        for other in context.selected_objects:
            other.select_set(False)
        ob = add_mesh(scene, name, shape, kind, at + Vector(place), **settings)
        if ob.name in context.view_layer.objects:
            ob.select_set(True)
            context.view_layer.objects.active = ob
        return {"FINISHED"}


def _bowl(profile):
    """A turned profile with a bottom: open above."""
    vertices, faces = _turned(profile, 32, False)
    return vertices, faces + [tuple(range(31, -1, -1))]


# ---------------------------------------------------------------------------------------------------------------------
# Templates: small scenes, 60 to 96 frames, a few thousand spheres


def _hourglass(scene):
    neck = [(0.42, -0.6), (0.42, -0.25), (0.1, 0.0), (0.42, 0.25), (0.42, 0.6)]
    add_mesh(scene, "Glass", _turned(neck, 32, True), "COLLIDER", (0, 0, 0.6), friction=0.2)
    add_mesh(scene, "Sand", _turned([(0.2, 0.12), (0.36, 0.26), (0.36, 0.5)], 24, True), "SAND", (0, 0, 0.6))
    scene.barchan.radius, scene.barchan.shape = 0.012, "SPHERE"
    scene.barchan.rolling = 0.1
    scene.frame_end = 96


def _collapse(scene):
    add_mesh(scene, "Tray", _tray((2.4, 1.2), 0.5), "COLLIDER", (0, 0, 0.25))
    add_mesh(scene, "Column", _box((0.4, 0.6, 0.9)), "SAND", (-0.6, 0, 0.5))
    scene.barchan.radius = 0.014
    scene.frame_end = 60


def _castle(scene):
    add_mesh(scene, "Floor", _tray((2.0, 2.0), 0.2), "COLLIDER", (0, 0, 0.1))
    add_mesh(scene, "Dry Half", _box((0.5, 0.4, 0.6)), "SAND", (-0.4, 0, 0.33))
    wet = add_mesh(scene, "Wet Half", _box((0.5, 0.4, 0.6)), "SAND", (0.4, 0, 0.33), own_grains=True)
    scene.barchan.radius = 0.013
    apply_preset(wet.barchan.grains, engine.core.presets.presets()["wet_sand"])
    wet.barchan.grains.radius = 0.013
    scene.frame_end = 48


def _pour(scene):
    add_mesh(scene, "Bowl", _bowl([(0.05, 0.0), (0.35, 0.05), (0.6, 0.2), (0.75, 0.45)]), "COLLIDER")
    tap = add_mesh(
        scene, "Spout", _box((0.16, 0.16, 0.16)), "EMITTER", (-0.3, 0, 1.0), rate=300.0, velocity=(0.0, 0.0, -1.5)
    )
    _key(tap, "location", [(1, (-0.3, 0, 1.0)), (48, (0.3, 0, 1.0)), (72, (0.0, 0.3, 1.0))])
    apply_preset(scene.barchan, engine.core.presets.presets()["coffee_beans"])
    scene.barchan.radius = 0.022
    scene.frame_end = 72


def _splash(scene):
    add_mesh(scene, "Box", _tray((0.9, 0.9), 0.7), "COLLIDER", (0, 0, 0.35))
    add_mesh(scene, "Bed", _box((0.86, 0.86, 0.5)), "SAND", (0, 0, 0.27))
    add_mesh(
        scene, "Ball", _turned(_ball_profile(0.12), 24, True), "BODY", (0, 0, 0.9), density=7850.0, velocity=(0.0, 0.0, -1.0)
    )
    scene.barchan.radius = 0.014
    scene.frame_end = 48


def _plough(scene):
    add_mesh(scene, "Tray", _tray((2.4, 1.0), 0.4), "COLLIDER", (0, 0, 0.2))
    add_mesh(scene, "Layer", _box((2.0, 0.94, 0.14)), "SAND", (0.1, 0, 0.09))
    blade = add_mesh(scene, "Blade", _box((0.06, 0.6, 0.3)), "COLLIDER", (-1.05, 0, 0.2))
    blade.rotation_euler = (0.0, 0.0, 0.35)
    _key(blade, "location", [(1, (-1.05, 0, 0.2)), (72, (0.9, 0, 0.2))])
    scene.barchan.radius = 0.012
    scene.frame_end = 72


TEMPLATES = (
    ("HOURGLASS", "Hourglass", "Sand runs through the neck of a glass", _hourglass),
    ("COLLAPSE", "Column Collapse", "A column of sand slumps in a tray", _collapse),
    ("CASTLE", "Dry and Wet", "A dry and a wet block side by side, each with its own material", _castle),
    ("POUR", "Pour Beans", "A spout that moves pours coffee beans into a bowl", _pour),
    ("SPLASH", "Steel Ball", "A steel ball falls into a bed of sand", _splash),
    ("PLOUGH", "Plough", "An animated blade pushes through a layer of sand", _plough),
)


class BARCHAN_OT_template(bpy.types.Operator):
    """Add a scene with sand, ready to bake in about a minute; the scenes of the file stay"""

    bl_idname = "barchan.template"
    bl_label = "Sand Template"
    bl_options = {"REGISTER", "UNDO"}

    name: EnumProperty(
        name="Template", description="Which scene is made", items=[row[:3] for row in TEMPLATES], default="HOURGLASS"
    )

    @classmethod
    def description(cls, _context, operator_properties):
        return next(row[2] for row in TEMPLATES if row[0] == operator_properties.name)

    @classmethod
    def poll(cls, context):
        return operators.is_ready(cls) and operators.is_in_object_mode(cls, context)

    def execute(self, context):
        _identifier, label, _text, build = next(row for row in TEMPLATES if row[0] == self.name)
        scene = bpy.data.scenes.new(f"Barchan {label}")
        scene.world = context.scene.world
        scene.render.fps, scene.render.fps_base = 24, 1.0
        scene.render.use_lock_interface = True
        apply_preset(scene.barchan, engine.core.presets.presets()["dry_sand"])
        folder = "".join(character if character.isalnum() else "_" for character in scene.name.lower())
        scene.barchan.folder = f"//{folder}_cache/"
        scene.frame_start = 1
        build(scene)
        camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
        eye, target = Vector((2.2, -3.2, 1.9)), Vector((0.0, 0.0, 0.4))
        camera.matrix_world = Matrix.Translation(eye) @ (target - eye).to_track_quat("-Z", "Y").to_matrix().to_4x4()
        scene.collection.objects.link(camera)
        scene.camera = camera
        sun = bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN"))
        sun.data.energy = 3.0
        sun.rotation_euler = (0.6, 0.2, 0.5)
        scene.collection.objects.link(sun)
        if context.window is not None:
            context.window.scene = scene
        self.report({"INFO"}, f"Scene '{scene.name}' is there; press Bake Sand in the sidebar's Barchan tab")
        return {"FINISHED"}


class BARCHAN_MT_templates(bpy.types.Menu):
    bl_idname = "BARCHAN_MT_templates"
    bl_label = "Barchan Templates"

    def draw(self, _context):
        for identifier, label, _text, _build in TEMPLATES:
            self.layout.operator("barchan.template", text=label).name = identifier


class BARCHAN_MT_add(bpy.types.Menu):
    bl_idname = "BARCHAN_MT_add"
    bl_label = "Barchan"

    def draw(self, _context):
        for identifier, label, _text, icon in ADDED:
            self.layout.operator("barchan.add", text=label, icon=icon).kind = identifier
        self.layout.separator()
        self.layout.menu("BARCHAN_MT_templates")


def _draw_add(self, _context):
    self.layout.menu("BARCHAN_MT_add", icon="OUTLINER_DATA_POINTCLOUD")


def _draw_quick(self, _context):
    self.layout.operator("barchan.quick_sand")


def _draw_templates(self, _context):
    self.layout.separator()
    self.layout.menu("BARCHAN_MT_templates")


MENUS = (
    ("VIEW3D_MT_add", _draw_add),
    ("VIEW3D_MT_object_quick_effects", _draw_quick),
    ("TOPBAR_MT_file_new", _draw_templates),
)

_classes = (
    BARCHAN_OT_preset,
    BARCHAN_MT_presets,
    BARCHAN_MT_object_presets,
    BARCHAN_OT_quick_sand,
    BARCHAN_OT_add,
    BARCHAN_OT_template,
    BARCHAN_MT_templates,
    BARCHAN_MT_add,
)


def register():
    for cls in _classes:
        bpy.utils.register_class(cls)
    for name, draw in MENUS:
        if hasattr(bpy.types, name):  # Blender as a Python module has them all; a stripped one may not
            getattr(bpy.types, name).append(draw)


def unregister():
    for name, draw in MENUS:
        if hasattr(bpy.types, name):
            getattr(bpy.types, name).remove(draw)
    for cls in reversed(_classes):
        bpy.utils.unregister_class(cls)
