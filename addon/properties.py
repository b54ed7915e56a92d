# SPDX-License-Identifier: GPL-3.0-or-later
"""properties: every setting with unit, range, default and one-sentence tooltip.

Comes in: what the user sets. Goes out: `Object.barchan` and `Scene.barchan`, and the folder they mean.
"""

import os

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

DEFAULT_FOLDER = "//barchan_cache/"

# Blender 4.5 and later must be told that a path may start with "//"; 4.2 refuses the word.
PATH_OPTIONS = {"PATH_SUPPORTS_BLEND_RELATIVE"} if bpy.app.version >= (4, 5, 0) else set()

OBJECT_TYPES = (
    ("NONE", "None", "Barchan leaves this object alone", "X", 0),
    ("SAND", "Sand", "The closed volume of this mesh is filled with grains; the mesh itself is drawn as wire and not "
     "rendered", "OUTLINER_DATA_POINTCLOUD", 1),
    ("COLLIDER", "Collider", "Grains and bodies bounce off this mesh, which may move and change its shape but is not moved "
     "by them", "MOD_PHYSICS", 2),
    ("BODY", "Body", "This closed mesh is a rigid body: sand, colliders and other bodies move it, and it moves the sand",
     "RIGID_BODY", 3),
    ("EMITTER", "Emitter", "Grains come out of this mesh while it is baked; it is drawn as wire and not rendered",
     "PARTICLES", 4),
    ("OUTFLOW", "Outflow", "Grains that come into the box around this mesh vanish; it is drawn as wire and not rendered",
     "TRASH", 5),
    ("FORCE", "Force", "Grains and bodies in the box around this mesh are accelerated; it is drawn as wire and not rendered",
     "FORCE_WIND", 6),
)

CONSTRAINT_NAME = "Barchan"  # of the constraint by which a body follows its bake

WIRE_TYPES = {"SAND", "EMITTER", "OUTFLOW", "FORCE"}  # drawn as wire and not rendered

GRAIN_SHAPES = (
    ("TETRAHEDRON", "Tetrahedron", "Four touching spheres: interlocks and heaps like sand"),
    ("SPHERE", "Sphere", "One sphere: four times as fast, but rolls and heaps flatter than sand"),
    ("CUBE", "Cube", "Eight touching spheres at the corners of a cube: salt, sugar, dice"),
    ("ROD", "Rod", "Spheres in a row, one radius apart: rice, pills, beans"),
    ("CUSTOM", "Custom", "The mesh of an object, as large as it is, approximated by a few spheres"),
)

SIZES = (
    ("EQUAL", "Equal", "All grains have the same size"),
    ("UNIFORM", "Uniform", "Sizes are spread evenly between the smallest and the largest"),
    ("LOGNORMAL", "Lognormal", "Most grains are near the radius, some are much larger: gravel, crushed stone"),
)

# Softness of each quality: share of the radius that grains may overlap in the fastest impact.
QUALITIES = (
    ("DRAFT", "Draft", "Soft grains and long steps: about two thirds of the time of Normal", 0.4),
    ("NORMAL", "Normal", "Grains overlap by a fifth of their radius in the fastest impact", 0.2),
    ("FINE", "Fine", "Hard grains and short steps: about one and a half times the time of Normal", 0.1),
)

DISPLAYS = (
    ("POINTS", "Points", "Every sphere of every grain as a point: light, and true spheres in Cycles"),
    ("GRAINS", "Grains", "Every grain as an instanced low-poly mesh: heavier, for close-ups and other exporters"),
)


def _object_type_changed(self, _context):
    """Meshes of sand would hide their own grains: wire and unrendered while they are sand, as before afterwards."""
    ob = self.id_data
    if self.type in WIRE_TYPES and not self.shown_as:
        self.shown_as = ob.display_type
        self.was_rendered = not ob.hide_render
        ob.display_type = "WIRE"
        ob.hide_render = True
    elif self.type not in WIRE_TYPES and self.shown_as:
        ob.display_type = self.shown_as
        ob.hide_render = not self.was_rendered
        self.shown_as = ""


def _range_changed(self, _context):
    self.use_scene_range = False


def _folder_changed(self, _context):
    from . import playback

    playback.show(self.id_data)


def _display_changed(self, _context):
    from . import playback

    playback.apply_display(self.id_data)


BODY_FILLS = (
    ("SURFACE", "Surface", "Spheres spread evenly over the surface, open or closed"),
    ("VOLUME", "Volume", "Spheres that fill the inside, as dense as balls can be"),
)


MASSES = (
    ("DENSITY", "Density", "The body weighs as much as its volume of this density"),
    ("MASS", "Mass", "The body weighs this much, whatever its size"),
)

EMIT_FROM = (
    ("VOLUME", "Volume", "Grains appear all over the inside of the mesh, which must be closed"),
    ("SURFACE", "Surface", "Grains appear all over the surface of the mesh"),
)


def _show_body_changed(self, _context):
    from . import body

    body.show(self.id_data)


def _is_mesh(_self, ob):
    return ob.type == "MESH"


class GrainSettings:
    """What a grain is: of the scene, and of a sand or emitter object that has grains of its own."""

    shape: EnumProperty(
        name="Grain Shape",
        description="The rigid cluster of spheres every grain is made of",
        items=GRAIN_SHAPES,
        default="TETRAHEDRON",
        options=set(),
    )
    rod_count: IntProperty(
        name="Spheres",
        description="Spheres of a rod; five of them are three times as long as thick",
        default=3,
        min=2,
        max=16,
        options=set(),
    )
    grain_object: PointerProperty(
        name="Grain Object",
        description="Mesh object whose shape and size a custom grain has; it must be closed",
        type=bpy.types.Object,
        poll=_is_mesh,
        options=set(),
    )
    clump_count: IntProperty(
        name="Spheres",
        description="Spheres that stand for a custom grain: more follow its mesh more closely and take longer",
        default=8,
        min=1,
        max=64,
        options=set(),
    )
    radius: FloatProperty(
        name="Sphere Radius",
        description="Radius of the spheres a grain is made of; half the radius means eight times as many grains",
        subtype="DISTANCE",
        unit="LENGTH",
        default=0.02,
        min=1e-5,
        soft_min=0.001,
        max=100.0,
        soft_max=0.5,
        precision=4,
        step=0.1,
        options=set(),
    )
    size_kind: EnumProperty(
        name="Sizes",
        description="How the sizes of the grains differ from the one set",
        items=SIZES,
        default="EQUAL",
        options=set(),
    )
    size_low: FloatProperty(
        name="Smallest",
        description="Size of the smallest grains against the one set (no unit)",
        default=0.7,
        min=0.1,
        max=1.0,
        options=set(),
    )
    size_high: FloatProperty(
        name="Largest",
        description="Size of the largest grains against the one set (no unit)",
        default=1.3,
        min=1.0,
        max=5.0,
        options=set(),
    )
    size_spread: FloatProperty(
        name="Spread",
        description="Standard deviation of the logarithm of the size (no unit): 0.1 is nearly equal, 0.5 very mixed",
        default=0.25,
        min=0.01,
        max=1.0,
        options=set(),
    )
    restitution: FloatProperty(
        name="Restitution",
        description="Share of the speed left after a head-on impact of two grains (no unit): low for sand, high for marbles",
        default=0.5,
        min=0.05,
        max=1.0,
        options=set(),
    )
    friction: FloatProperty(
        name="Friction",
        description="Coulomb friction coefficient of the grains (no unit)",
        default=0.5,
        min=0.0,
        max=10.0,
        soft_max=1.5,
        options=set(),
    )
    rolling: FloatProperty(
        name="Rolling Resistance",
        description="Torque against rolling over the normal force and the effective radius (no unit): lets spheres heap as edged "
        "grains do",
        default=0.0,
        min=0.0,
        max=10.0,
        soft_max=1.0,
        options=set(),
    )
    bond: FloatProperty(
        name="Stickiness",
        description="Pull of two touching spheres over the weight of one, the Bond number (no unit): 0 is dry, 20 is wet sand",
        default=0.0,
        min=0.0,
        max=10000.0,
        soft_max=100.0,
        precision=1,
        options=set(),
    )
    density: FloatProperty(
        name="Density",
        description="Density of the grain material in kg/m\u00b3 (quartz is 2600)",
        default=2600.0,
        min=1.0,
        max=30000.0,
        soft_min=100.0,
        soft_max=10000.0,
        precision=0,
        options=set(),
    )


class BarchanGrains(GrainSettings, bpy.types.PropertyGroup):
    """Grains of one sand or emitter object."""


class BarchanObject(bpy.types.PropertyGroup):
    type: EnumProperty(
        name="Type",
        description="What this mesh is for the sand",
        items=OBJECT_TYPES,
        default="NONE",
        update=_object_type_changed,
        options=set(),
    )
    own_grains: BoolProperty(
        name="Own Grains",
        description="Grains of this object have a size, shape and material of their own instead of the scene's",
        default=False,
        options=set(),
    )
    grains: PointerProperty(type=BarchanGrains, name="Grains", description="Size, shape and material of this object's grains")
    acceleration: FloatVectorProperty(
        name="Acceleration",
        description="Acceleration along the world's axes that grains and bodies get inside the box, besides gravity",
        size=3,
        subtype="ACCELERATION",
        unit="ACCELERATION",
        default=(0.0, 0.0, 0.0),
        min=-10000.0,
        max=10000.0,
        soft_min=-50.0,
        soft_max=50.0,
        options=set(),
    )
    inherit: FloatProperty(
        name="Inherit Motion",
        description="Share of the emitter's own speed that its grains get when they appear (no unit)",
        default=1.0,
        min=0.0,
        max=1.0,
        options=set(),
    )
    shown_as: StringProperty(options={"HIDDEN"}, description="Display type the object had before it became sand")
    was_rendered: BoolProperty(options={"HIDDEN"}, description="Whether the object was rendered before it became sand")
    source_folder: StringProperty(
        options={"HIDDEN"}, description="Of the object that shows baked grains: where its frames are, for who appends it"
    )
    source_body_count: IntProperty(
        options={"HIDDEN"}, min=0, description="How many elements at the front of those frames are no grains"
    )
    body: PointerProperty(
        name="Particle Body",
        type=bpy.types.Mesh,
        description="The spheres that stand for this object, one vertex each",
        options={"HIDDEN"},
    )
    preview: PointerProperty(
        name="Preview",
        type=bpy.types.Object,
        description="The child object that shows the spheres",
        options={"HIDDEN"},
    )
    show_body: BoolProperty(
        name="Show Spheres",
        description="Draw the spheres of the particle body in the viewport: blue where they crowd, red where there is a gap",
        default=True,
        update=_show_body_changed,
        options=set(),
    )
    mass_from: EnumProperty(
        name="Mass From",
        description="Which number decides how heavy the body is",
        items=MASSES,
        default="DENSITY",
        options=set(),
    )
    density: FloatProperty(
        name="Density",
        description="Density of the body in kg/m\u00b3: wood 600, water 1000, stone 2600, steel 7850",
        default=2600.0,
        min=0.001,
        max=30000.0,
        soft_min=10.0,
        soft_max=10000.0,
        precision=0,
        options=set(),
    )
    mass: FloatProperty(
        name="Mass",
        description="Mass of the body",
        unit="MASS",
        default=1.0,
        min=1e-9,
        max=1e9,
        soft_min=0.001,
        soft_max=1000.0,
        options=set(),
    )
    velocity: FloatVectorProperty(
        name="Velocity",
        description="Speed along the world's axes that a body starts with, or that emitted grains have",
        size=3,
        subtype="VELOCITY",
        unit="VELOCITY",
        default=(0.0, 0.0, 0.0),
        min=-1000.0,
        max=1000.0,
        soft_min=-20.0,
        soft_max=20.0,
        options=set(),
    )
    spin: FloatVectorProperty(
        name="Spin",
        description="Turning about the world's axes that the body starts with, in rad/s (6.28 is one turn per second)",
        size=3,
        subtype="XYZ",
        default=(0.0, 0.0, 0.0),
        min=-10000.0,
        max=10000.0,
        soft_min=-100.0,
        soft_max=100.0,
        options=set(),
    )
    is_driven: BoolProperty(
        name="Animated",
        description="The body follows its keyframes, parent and constraints and pushes the sand, until it is let go",
        default=False,
        options=set(),
    )
    release_frame: IntProperty(
        name="Let Go at Frame",
        description="From this frame on the body moves freely, with the speed its animation has there; 0 never lets it go, "
        "a frame before the bake lets it go at once with the velocity set here",
        default=0,
        min=-99999,
        max=999999,
        options=set(),
    )
    fill: EnumProperty(
        name="Spheres",
        description="Where the spheres are that stand for the body",
        items=BODY_FILLS,
        default="SURFACE",
        options=set(),
    )
    body_radius: FloatProperty(
        name="Sphere Radius",
        description="Radius of the spheres that stand for the body; 0 takes that of the grains",
        subtype="DISTANCE",
        unit="LENGTH",
        default=0.0,
        min=0.0,
        max=100.0,
        soft_max=0.5,
        precision=4,
        step=0.1,
        options=set(),
    )
    friction: FloatProperty(
        name="Friction",
        description="Coulomb friction coefficient of the surface (no unit); two that touch have the geometric mean of theirs",
        default=0.5,
        min=0.0,
        max=10.0,
        soft_max=1.5,
        options=set(),
    )
    restitution: FloatProperty(
        name="Restitution",
        description="Share of the speed left after a head-on impact (no unit); two that touch have the geometric mean of "
        "theirs",
        default=0.3,
        min=0.05,
        max=1.0,
        options=set(),
    )
    stiffness: FloatProperty(
        name="Stiffness",
        description="Young's modulus of the surface in Pa: a high one makes the bake slow; 0 is as soft as Softness allows",
        default=0.0,
        min=0.0,
        max=1e12,
        soft_max=1e9,
        precision=0,
        options=set(),
    )
    is_rough: BoolProperty(
        name="Rough",
        description="Covers the surface with spheres of the grains' size, so that grains catch on it instead of sliding",
        default=False,
        options=set(),
    )
    samples: IntProperty(
        name="Samples per Frame",
        description="How often per frame the animation is read; more follows fast turns and swings more closely",
        default=2,
        min=1,
        max=16,
        options=set(),
    )
    emit_from: EnumProperty(
        name="Emit From",
        description="Where the grains appear",
        items=EMIT_FROM,
        default="VOLUME",
        options=set(),
    )
    rate: FloatProperty(
        name="Rate",
        description="Grains per second; one whose place is still taken comes later",
        default=500.0,
        min=0.001,
        max=1e7,
        soft_max=10000.0,
        precision=0,
        options=set(),
    )
    use_range: BoolProperty(
        name="Start and Stop",
        description="Emit from one frame to another only, instead of during the whole bake",
        default=False,
        options=set(),
    )
    emit_start: IntProperty(
        name="Start",
        description="Frame of the first grain",
        default=1,
        min=-99999,
        max=999999,
        options=set(),
    )
    emit_end: IntProperty(
        name="Stop",
        description="Frame after which no more grains come",
        default=100,
        min=-99999,
        max=999999,
        options=set(),
    )
    target_count: IntProperty(
        name="Grains",
        description="Stop after this many grains; 0 does not stop before the last frame",
        default=0,
        min=0,
        max=100000000,
        options=set(),
    )


ENGINES = (
    ("AUTO", "Auto", "The graphics card where there is one that can, else the processor"),
    ("CPU", "CPU", "The processor, on as many threads as set"),
    ("GPU", "GPU", "The graphics card; a bake that it cannot compute is refused"),
)


class BarchanFollower(bpy.types.PropertyGroup):
    """One body of the bake, at its index in the frames: the object moves as the cached pose moved from its first one."""

    object: PointerProperty(type=bpy.types.Object, description="The body; none after it was deleted or keyframed")
    empty: PointerProperty(type=bpy.types.Object, description="What the body copies its place from")
    matrix: FloatVectorProperty(size=16, description="World matrix of the object on the first frame, row by row")
    place: FloatVectorProperty(size=3, description="Centre of mass on the first frame in m")
    turn: FloatVectorProperty(size=4, description="Rotation on the first frame as quaternion w x y z")


def _quality(self):
    """Which quality the softness is; one more than the last for any other."""
    found = (index for index, row in enumerate(QUALITIES) if abs(self.max_overlap - row[3]) < 1e-6)
    return next(found, len(QUALITIES))


def _set_quality(self, index):
    if index < len(QUALITIES):
        self.max_overlap = QUALITIES[index][3]


class BarchanScene(GrainSettings, bpy.types.PropertyGroup):
    quality: EnumProperty(
        name="Quality",
        description="How hard the grains are, and so how many substeps a frame has: it sets Softness",
        items=[(*row[:3], index) for index, row in enumerate(QUALITIES)]
        + [("CUSTOM", "Custom", "As Softness is set", len(QUALITIES))],
        get=_quality,
        set=_set_quality,
        options=set(),
    )
    max_overlap: FloatProperty(
        name="Softness",
        description="Share of the sphere radius by which two grains may overlap in the fastest impact: twice as much "
        "halves the time of the bake and makes the sand softer",
        default=0.2,
        min=0.01,
        max=0.5,
        options=set(),
    )
    max_speed: FloatProperty(
        name="Fastest Impact",
        description="Speed for which Softness holds; 0 takes free fall through the whole scene, and a lower speed that the "
        "grains do not exceed shortens the bake",
        unit="VELOCITY",
        default=0.0,
        min=0.0,
        max=1000.0,
        soft_max=20.0,
        options=set(),
    )
    drag: FloatProperty(
        name="Air Drag",
        description="Share of its speed against the wind that a grain loses per second, in 1/s: 0 is no air, 1 dust, 0.1 sand",
        default=0.0,
        min=0.0,
        max=1000.0,
        soft_max=10.0,
        options=set(),
    )
    wind: FloatVectorProperty(
        name="Wind",
        description="Speed of the air along the world's axes; it moves grains only where Air Drag is above 0",
        size=3,
        subtype="VELOCITY",
        unit="VELOCITY",
        default=(0.0, 0.0, 0.0),
        min=-1000.0,
        max=1000.0,
        soft_min=-30.0,
        soft_max=30.0,
        options=set(),
    )
    sleep_speed: FloatProperty(
        name="Sleep Speed",
        description="Grains slower than this for a tenth of a second rest until something faster touches them, which "
        "shortens the bake; 0 keeps all awake",
        unit="VELOCITY",
        default=0.0,
        min=0.0,
        max=10.0,
        soft_max=0.1,
        precision=4,
        step=0.1,
        options=set(),
    )
    seed: IntProperty(
        name="Seed",
        description="Number that decides where the grains start and how they are turned; the same number gives the same bake",
        default=0,
        min=0,
        options=set(),
    )
    use_scene_range: BoolProperty(
        name="Scene Frame Range",
        description="Bake the frames of the scene's own range",
        default=True,
        options=set(),
    )
    frame_start: IntProperty(
        name="Start",
        description="First frame to bake: the grains at rest where they were filled in",
        default=1,
        min=-99999,
        max=999999,
        update=_range_changed,
        options=set(),
    )
    frame_end: IntProperty(
        name="End",
        description="Last frame to bake",
        default=250,
        min=-99999,
        max=999999,
        update=_range_changed,
        options=set(),
    )
    folder: StringProperty(
        name="Cache Folder",
        description="Folder of the baked frames; // is the folder of the .blend file",
        default=DEFAULT_FOLDER,
        subtype="DIR_PATH",
        update=_folder_changed,
        options=PATH_OPTIONS,
    )
    display: EnumProperty(
        name="Display",
        description="How the grains are drawn and rendered",
        items=DISPLAYS,
        default="POINTS",
        update=_display_changed,
        options=set(),
    )
    threads: IntProperty(
        name="Threads",
        description="Processor threads a bake may use; 0 uses all of them, and any number gives the same result",
        default=0,
        min=0,
        max=64,
        options=set(),
    )
    engine: EnumProperty(
        name="Engine",
        description="What computes the bake; both give the same frames",
        items=ENGINES,
        default="AUTO",
        options=set(),
    )
    checkpoint_interval: IntProperty(
        name="Checkpoint Every",
        description="Frames after which the whole state is kept, to go on from when the bake is stopped: fewer frames to "
        "simulate again, but more to write",
        default=10,
        min=1,
        max=1000,
        options=set(),
    )
    keep_interval: IntProperty(
        name="Keep Every",
        description="Frames after which a checkpoint is kept for good, so that From Here starts at the one before the chosen "
        "frame; each takes about as much disk as twenty frames, 0 keeps none",
        default=50,
        min=0,
        max=10000,
        options=set(),
    )
    is_exact: BoolProperty(
        name="Lossless",
        description="Keep every bit of every grain in larger files; otherwise places are off by up to a hundredth of the sphere "
        "radius, and only bodies are kept exactly",
        default=False,
        options=set(),
    )
    disk_limit: FloatProperty(
        name="Disk Limit",
        description="Number of megabytes that frames and checkpoints in the cache folder may take; 0 sets no limit",
        default=0.0,
        min=0.0,
        max=1e9,
        soft_max=100000.0,
        precision=0,
        step=10000,
        options=set(),
    )
    carrier: PointerProperty(
        name="Sand",
        type=bpy.types.Object,
        description="The object that shows the baked grains",
        options={"HIDDEN"},
    )
    baked_settings: StringProperty(
        options={"HIDDEN"}, description="Fingerprint of the settings that the frames were baked with; empty when unknown"
    )
    followers: CollectionProperty(type=BarchanFollower, options={"HIDDEN"}, description="The bodies of the bake")
    body_count: IntProperty(
        options={"HIDDEN"}, min=0, description="How many elements at the front of every baked frame are no grains"
    )
    home: StringProperty(
        options={"HIDDEN"}, description="Folder that // in the cache folder stands for: that of the file it was last saved in"
    )


def frame_range(scene):
    """First and last frame to bake, as set; may be reversed."""
    settings = scene.barchan
    if settings.use_scene_range:
        return scene.frame_start, scene.frame_end
    return settings.frame_start, settings.frame_end


def byte_limit(scene):
    """Bytes that the cache folder may hold, 0 for any number."""
    return int(scene.barchan.disk_limit * 1e6)


known_file = None  # path of the file whose scenes' homes are right: loaded or saved while the add-on was there


def home(scene):
    """Folder that // stands for in this scene's settings: of the library it is linked from, of the file it was appended
    from, else of the open file; "" when that was never saved."""
    if scene.library is not None:
        return os.path.dirname(os.path.abspath(bpy.path.abspath(scene.library.filepath)))
    if scene.barchan.home and known_file == bpy.data.filepath:
        return scene.barchan.home
    return os.path.dirname(bpy.data.filepath) if bpy.data.filepath else ""


def is_folder_temporary(scene):
    """True when the cache folder is relative to a .blend file that does not exist yet."""
    path = scene.barchan.folder or DEFAULT_FOLDER
    return path.startswith("//") and not home(scene)


def cache_folder(scene):
    """Absolute path of the cache folder; inside Blender's own temporary folder while the file was never saved."""
    path = scene.barchan.folder or DEFAULT_FOLDER
    if is_folder_temporary(scene):
        return os.path.join(bpy.app.tempdir, *[part for part in path[2:].split("/") if part not in ("", "..")])
    if path.startswith("//"):
        return os.path.normpath(os.path.join(home(scene), path[2:]))
    return os.path.normpath(bpy.path.abspath(path))


def is_own_constraint(constraint):
    """True for the constraint by which an object follows the bake."""
    return constraint.type == "COPY_TRANSFORMS" and constraint.name == CONSTRAINT_NAME


_classes = (BarchanGrains, BarchanObject, BarchanFollower, BarchanScene)


def register():
    for cls in _classes:
        bpy.utils.register_class(cls)
    bpy.types.Object.barchan = PointerProperty(type=BarchanObject)
    bpy.types.Scene.barchan = PointerProperty(type=BarchanScene)


def unregister():
    del bpy.types.Scene.barchan
    del bpy.types.Object.barchan
    for cls in reversed(_classes):
        bpy.utils.unregister_class(cls)
