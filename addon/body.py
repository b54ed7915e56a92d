# SPDX-License-Identifier: GPL-3.0-or-later
"""body: a mesh object -> the spheres that stand for it, kept in the .blend.

Comes in: export.Unplaced, settings. Goes out: a mesh "Barchan Body NAME" of loose vertices, one per sphere, in metres along
the object's own axes from its origin (its scale is applied, its rotation and place are not), with the attributes radius,
mass_share and fit, and the fit as JSON; and a child object that shows it. Objects of equal shape and scale share one.
Main thread only.
"""

import dataclasses
import hashlib
import json
import math

import bpy
import mathutils
import mathutils.kdtree
import numpy as np
from bpy.app.handlers import persistent

from . import engine, job

NAME = "Barchan Body"
MODIFIER_NAME = "Barchan Body"
REPORT_KEY = "barchan_body"  # custom property of the mesh: the report as JSON
SHAPE_KEY = "barchan_shape"  # custom property of the mesh: what it was made of; equal keys, equal spheres

REPORT_FIELDS = set(
    """fill radius spacing seed warnings sphere_count spacing_min spacing_mean spacing_max evenness uncovered_share hausdorff
       mesh_volume volume_error inertia_error seconds""".split()
)

# Layout of the node group and material. Those of another number, from another version of the add-on, are rebuilt.
LAYOUT = 2
LAYOUT_TAG = "barchan_layout"

RADIUS_SHARE = 1.0 / 40.0  # of the largest dimension, when no radius is given
SPHERE_LIMIT = 2_000_000  # of one body: more freezes Blender for minutes, and an operator with undo cannot be stopped

SOURCE_CHANGE = 1e-4  # share of its size by which a mesh may differ from the one that the body was made of

# (name, type)
ATTRIBUTES = (("radius", "FLOAT"), ("mass_share", "FLOAT"), ("fit", "FLOAT"))

# Colours over the distance to the nearest neighbour in spacings: crowded, even, gap.
FIT_COLOURS = ((0.8, (0.02, 0.06, 0.9)), (0.95, (0.03, 0.6, 0.1)), (1.05, (0.03, 0.6, 0.1)), (1.2, (0.9, 0.03, 0.02)))
FIT_LOW, FIT_HIGH = FIT_COLOURS[0][0], FIT_COLOURS[-1][0]


class BodyError(Exception):
    """A body that cannot be made; the text is the sentence for the user."""


@dataclasses.dataclass(frozen=True)
class Settings:
    radius: float = 0.0  # m; 0 = RADIUS_SHARE of the largest dimension
    spacing_factor: float = 0.0  # radii; 0 = the core's default
    offset_factor: float = 0.0  # radii, negative inside
    seed: int = 0
    fill: str = "SURFACE"
    threads: int = 0


# ---------------------------------------------------------------------------------------------------------------------
# Sampling


def default_radius(vertices):
    """From the largest dimension of the mesh; 0 when it has none."""
    if len(vertices) == 0 or not np.isfinite(vertices).all():
        return 0.0
    return float((vertices.max(axis=0) - vertices.min(axis=0)).max()) * RADIUS_SHARE


def _named(name, text):
    """The sentence with the object's name in it."""
    return text if f"'{name}'" in text else f"Object '{name}': {text}"


def _check_count(name, mesh, radius, settings):
    """Refuses what would freeze Blender: a dense packing of discs on the area, of balls in the volume."""
    if settings.fill == "VOLUME":
        count = abs(mesh.volume) * math.pi / math.sqrt(18.0) / (4.0 / 3.0 * math.pi * radius**3)
    else:
        count = mesh.area * 2.0 / math.sqrt(3.0) / ((settings.spacing_factor or 1.0) * radius) ** 2
    if count > SPHERE_LIMIT:
        raise BodyError(
            f"Object '{name}' needs about {count:.3g} spheres of radius {radius:.3g} m, "
            f"more than the limit of {SPHERE_LIMIT}; use a larger radius"
        )


def sample(unplaced, settings):
    """What the core makes of the mesh: the dict of barchan.sample or barchan.pack with the radius used. BodyError."""
    core = engine.core
    try:
        mesh = core.Mesh(unplaced.vertices, unplaced.triangles, name=unplaced.name)
        radius = settings.radius or default_radius(unplaced.vertices)
        if radius > 0.0:
            _check_count(unplaced.name, mesh, radius, settings)
        if settings.fill == "VOLUME":
            made = core.pack(
                mesh, radius, kind="relaxed", packing=0.6, calibrate=True, seed=settings.seed, threads=settings.threads
            )
            made["spacing"] = 2.0 * radius
            return made
        return core.sample(
            mesh,
            radius,
            spacing=settings.spacing_factor * radius,
            offset=settings.offset_factor * radius,
            seed=settings.seed,
            threads=settings.threads,
        )
    except (core.Error, ValueError, MemoryError) as error:
        raise BodyError(_named(unplaced.name, engine.sentence(error))) from error


def shape_key(unplaced, settings):
    """Equal for equal triangles, scale and settings, whatever the object's name, place or thread count."""
    digest = hashlib.sha256()
    digest.update(unplaced.vertices.tobytes())
    digest.update(unplaced.triangles.tobytes())
    settings = dataclasses.replace(settings, threads=0)
    digest.update(repr((engine.core.__version__, LAYOUT, dataclasses.astuple(settings))).encode())
    return digest.hexdigest()


def find(key):
    """The body of the file that was made of the same, None when there is none."""
    return next((mesh for mesh in bpy.data.meshes if mesh.library is None and mesh.get(SHAPE_KEY) == key), None)


# ---------------------------------------------------------------------------------------------------------------------
# The mesh


def nearest_distances(centres):
    """Distance of every centre to the nearest other, m; 0 for a single one."""
    tree = mathutils.kdtree.KDTree(len(centres))
    rows = centres.tolist()
    for index, row in enumerate(rows):
        tree.insert(row, index)
    tree.balance()
    if len(rows) < 2:
        return np.zeros(len(rows), np.float32)
    # The nearest of all is the centre itself, at 0; of two at one place the second is as well.
    return np.fromiter((tree.find_n(row, 2)[1][2] for row in rows), np.float32, len(rows))


def store(unplaced, key, made, settings):
    """A new points-only mesh of the spheres."""
    centres = np.ascontiguousarray(made["centres"], np.float32)
    mesh = bpy.data.meshes.new(f"{NAME} {unplaced.name}")
    mesh.vertices.add(len(centres))
    mesh.attributes["position"].data.foreach_set("vector", centres.ravel())
    values = {
        "radius": np.full(len(centres), made["radius"], np.float32),
        "mass_share": (made["masses"] / made["masses"].sum()).astype(np.float32),
        "fit": nearest_distances(centres) / np.float32(made["spacing"]),
    }
    for attribute_name, data_type in ATTRIBUTES:
        attribute = mesh.attributes.new(attribute_name, data_type, "POINT")
        attribute.data.foreach_set("value", np.ascontiguousarray(values[attribute_name], np.float32))
    mesh[SHAPE_KEY] = key
    mesh[REPORT_KEY] = json.dumps(
        {
            "fill": settings.fill,
            "radius": made["radius"],
            "spacing": made["spacing"],
            "seed": settings.seed,
            "warnings": made["warnings"],
            "body": None if made["body"] is None else [float(x) for x in made["body"]],
            "source": _extent(unplaced.vertices).tolist(),
            **made["fit"],
        }
    )
    mesh.update()
    return mesh


def _extent(vertices):
    """What tells a mesh from another: its number of vertices, its corners, the mean of its vertices."""
    low, high, mean = vertices.min(axis=0), vertices.max(axis=0), vertices.mean(axis=0, dtype=np.float64)
    return np.concatenate(([len(vertices)], low, high, mean)).astype(np.float64)


def is_made_of(ob, vertices):
    """True when the object's body was made of a mesh like this one, (N,3) float32 along the object's own axes."""
    source = (report(ob) or {}).get("source")
    if source is None or len(source) != 10 or len(vertices) != source[0]:
        return False
    difference = np.abs(_extent(vertices) - source)
    return bool((difference <= SOURCE_CHANGE * np.abs(source[1:7]).max()).all())


def spheres(ob):
    """The object's body for a bake: job.Spheres; None when it has none, or one without a volume."""
    mesh, found = ob.barchan.body, report(ob)
    if mesh is None or found is None or found.get("body") is None or "radius" not in mesh.attributes:
        return None
    centres, radii = np.empty((len(mesh.vertices), 3), np.float32), np.empty(len(mesh.vertices), np.float32)
    mesh.attributes["position"].data.foreach_get("vector", centres.ravel())
    mesh.attributes["radius"].data.foreach_get("value", radii)
    return job.Spheres(centres, radii, np.array(found["body"], np.float64))


def report(ob):
    """The fit of the object's body as a dict; None when it has no body, or one whose report cannot be read."""
    mesh = ob.barchan.body
    try:
        found = json.loads(mesh[REPORT_KEY]) if mesh is not None else None
    except (KeyError, TypeError, ValueError):  # taken away or edited by hand
        return None
    return found if isinstance(found, dict) and REPORT_FIELDS <= set(found) else None


def report_lines(found):
    """The report for people, one line each."""
    radius = found["radius"]
    lines = [
        f"{found['sphere_count']} spheres of radius {radius:.4g} m",
        f"Spacing {found['spacing_min']:.4g} / {found['spacing_mean']:.4g} / {found['spacing_max']:.4g} m",
        f"Evenness {found['evenness']:.3f}",
    ]
    if found["fill"] == "SURFACE":
        lines.append(f"Uncovered {100 * found['uncovered_share']:.2f} %")
    lines.append(f"Hausdorff {found['hausdorff'] / radius:.2f} radii")
    if found["mesh_volume"] > 0:
        lines.append(f"Volume error {100 * found['volume_error']:.2f} %")
        lines.append(f"Inertia error {100 * found['inertia_error']:.2g} %")
    lines.append(f"Made in {found['seconds']:.2f} s")
    return lines


# ---------------------------------------------------------------------------------------------------------------------
# Preview


def fit_material():
    """The one material of the previews: the colour is the distance to the nearest neighbour in spacings."""
    material = bpy.data.materials.get((NAME, None))
    if material is not None and material.get(LAYOUT_TAG) == LAYOUT:
        return material
    if material is None:
        material = bpy.data.materials.new(NAME)
    if material.node_tree is None:
        material.use_nodes = True
    tree = material.node_tree
    tree.nodes.clear()
    attribute = tree.nodes.new("ShaderNodeAttribute")
    attribute.attribute_type = "INSTANCER"  # the spheres are instances; the points hold the number
    attribute.attribute_name = "fit"
    scale = tree.nodes.new("ShaderNodeMapRange")
    scale.inputs["From Min"].default_value = FIT_LOW
    scale.inputs["From Max"].default_value = FIT_HIGH
    ramp = tree.nodes.new("ShaderNodeValToRGB")
    elements = ramp.color_ramp.elements
    while len(elements) < len(FIT_COLOURS):
        elements.new(1.0)
    for element, (position, colour) in zip(elements, FIT_COLOURS):
        element.position = (position - FIT_LOW) / (FIT_HIGH - FIT_LOW)
        element.color = (*colour, 1.0)
    shader = tree.nodes.new("ShaderNodeBsdfPrincipled")
    output = tree.nodes.new("ShaderNodeOutputMaterial")
    tree.links.new(attribute.outputs["Fac"], scale.inputs["Value"])
    tree.links.new(scale.outputs[0], ramp.inputs[0])
    tree.links.new(ramp.outputs["Color"], shader.inputs["Base Color"])
    tree.links.new(shader.outputs[0], output.inputs["Surface"])
    for column, node in enumerate((attribute, scale, ramp, shader, output)):
        node.location = (240 * column, 0)
    material.diffuse_color = (*FIT_COLOURS[1][1], 1.0)
    material[LAYOUT_TAG] = LAYOUT
    return material


def _build_group(group):
    group.nodes.clear()
    group.interface.clear()
    group.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
    group.interface.new_socket("Geometry", in_out="INPUT", socket_type="NodeSocketGeometry")
    nodes, links = group.nodes, group.links
    start = nodes.new("NodeGroupInput")
    ball = nodes.new("GeometryNodeMeshIcoSphere")
    ball.inputs["Radius"].default_value = 1.0
    ball.inputs["Subdivisions"].default_value = 2
    smooth = nodes.new("GeometryNodeSetShadeSmooth")
    paint = nodes.new("GeometryNodeSetMaterial")
    paint.inputs["Material"].default_value = fit_material()
    radius = nodes.new("GeometryNodeInputNamedAttribute")
    radius.data_type = "FLOAT"
    radius.inputs["Name"].default_value = "radius"
    instance = nodes.new("GeometryNodeInstanceOnPoints")
    end = nodes.new("NodeGroupOutput")
    links.new(ball.outputs[0], smooth.inputs[0])
    links.new(smooth.outputs[0], paint.inputs["Geometry"])
    links.new(start.outputs["Geometry"], instance.inputs["Points"])
    links.new(paint.outputs[0], instance.inputs["Instance"])
    links.new(
        next(socket for socket in radius.outputs if socket.enabled and socket.name == "Attribute"),
        instance.inputs["Scale"],
    )
    links.new(instance.outputs[0], end.inputs[0])
    for node, place in ((ball, (0, -150)), (smooth, (220, -150)), (paint, (440, -150)), (radius, (440, -350))):
        node.location = place
    start.location, instance.location, end.location = (440, 50), (680, 0), (900, 0)
    group[LAYOUT_TAG] = LAYOUT


def node_group():
    """The one node group of the previews, made or rebuilt when needed."""
    group = bpy.data.node_groups.get((NAME, None))
    if group is None or group.bl_idname != "GeometryNodeTree":
        group = bpy.data.node_groups.new(NAME, "GeometryNodeTree")
    if group.get(LAYOUT_TAG) != LAYOUT:
        _build_group(group)
    return group


def preview(ob):
    """The child that shows the object's body. A copy of the object still points to the other's child: that is none."""
    child = ob.barchan.preview
    return child if child is not None and child.parent == ob else None


def is_preview(ob):
    return ob.parent is not None and preview(ob.parent) == ob


def show(ob):
    """Shows or hides the spheres, as set on the object."""
    child = preview(ob)
    if child is not None:
        child.hide_viewport = not ob.barchan.show_body


def _attach_preview(ob, stretch):
    child = preview(ob)
    if child is None:
        child = bpy.data.objects.new(f"{NAME} {ob.name}", ob.barchan.body)
        child.parent = ob
        child.hide_select = True
        child.hide_render = True
        ob.barchan.preview = child
    if len(child.users_collection) == 0:  # new, or taken out of the scene by the user
        for collection in ob.users_collection:
            collection.objects.link(child)
    child.data = ob.barchan.body
    # The spheres are in metres already: the child must not be scaled by its parent once more.
    child.matrix_parent_inverse = mathutils.Matrix(stretch.tolist()).to_4x4().inverted()
    modifier = child.modifiers.get(MODIFIER_NAME) or child.modifiers.new(MODIFIER_NAME, "NODES")
    modifier.node_group = node_group()
    show(ob)


# ---------------------------------------------------------------------------------------------------------------------
# Attach and detach


def _drop_mesh(mesh):
    if mesh is not None and mesh.users == 0:
        bpy.data.meshes.remove(mesh)


def attach(ob, mesh, stretch):
    """Gives the object the body, in the place of an older one. stretch: (3, 3), of export.Unplaced."""
    old = ob.barchan.body
    ob.barchan.body = mesh
    _attach_preview(ob, stretch)
    if old != mesh:
        _drop_mesh(old)


def detach(ob):
    """Removes body and preview; the mesh stays while another object uses it."""
    child, mesh = preview(ob), ob.barchan.body
    ob.barchan.body = ob.barchan.preview = None
    if child is not None:
        bpy.data.objects.remove(child)
    _drop_mesh(mesh)


# ---------------------------------------------------------------------------------------------------------------------
# Deleted objects


def remove_orphans():
    """Removes the previews whose object was deleted: they cannot be selected, so nobody else can."""
    for child in [ob for ob in bpy.data.objects if ob.parent is None and ob.library is None]:
        mesh = child.data
        if isinstance(mesh, bpy.types.Mesh) and SHAPE_KEY in mesh and MODIFIER_NAME in child.modifiers:
            bpy.data.objects.remove(child)
            _drop_mesh(mesh)


_object_count = 0  # of the file when it was last looked at


@persistent
def on_update(_scene, _depsgraph=None):
    """After a deletion the previews are looked through, in a moment: a handler may not remove objects itself."""
    global _object_count
    count = len(bpy.data.objects)
    if count < _object_count and not bpy.app.timers.is_registered(remove_orphans):
        bpy.app.timers.register(remove_orphans, first_interval=0.0)
    _object_count = count


def register():
    if on_update not in bpy.app.handlers.depsgraph_update_post:
        bpy.app.handlers.depsgraph_update_post.append(on_update)


def unregister():
    if on_update in bpy.app.handlers.depsgraph_update_post:
        bpy.app.handlers.depsgraph_update_post.remove(on_update)
    if bpy.app.timers.is_registered(remove_orphans):
        bpy.app.timers.unregister(remove_orphans)
