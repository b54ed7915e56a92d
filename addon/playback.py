# SPDX-License-Identifier: GPL-3.0-or-later
"""playback: cached frames -> attributes of the carrier mesh, and bodies in their places. The only writer of bpy geometry.

Comes in: frames of the cache. Goes out: the object "Barchan Sand", one loose vertex per grain with the attributes
position, rotation, velocity, radius, shade and is_hidden, drawn by one geometry-nodes group (platform fact: of all carriers
only a mesh under geometry nodes draws in every Blender from 4.2 to 5.2). The bodies, which stand before the grains in every
frame, are handed to follow.
The handlers also run in Blender's render thread: they call no operator and touch nothing but the carrier's attributes and
the places of the bodies' empties.
"""

import collections
import contextlib
import dataclasses
import math
import os
import threading

import bpy
import numpy as np
from bpy.app.handlers import persistent

from . import engine, follow, properties

CARRIER_NAME = "Barchan Sand"
GROUP_NAME = "Barchan Grains"
MATERIAL_NAME = "Barchan Sand"
MODIFIER_NAME = "Barchan"

# Layout of the node group. A group of another number, from another version of the add-on, is rebuilt in place.
GROUP_LAYOUT = 2
GROUP_TAG = "barchan_layout"

# (name, type, value key for foreach_set, components)
ATTRIBUTES = (
    ("rotation", "QUATERNION", "value", 4),
    ("velocity", "FLOAT_VECTOR", "vector", 3),
    ("radius", "FLOAT", "value", 1),
    ("shade", "FLOAT", "value", 1),
    ("is_hidden", "BOOLEAN", "value", 1),
)

FLAGS_HIDDEN = 8 | 16  # of a cached grain: not yet born, taken by an outflow

FRAME_LIMIT = 3  # frames kept in memory: the two around a sub-frame and the one before


class FrameStore:
    """The last few frames read, so that the sub-frames of motion blur read each file once. Any thread.
    A folder whose contents changed since (its time of change differs) is read again."""

    def __init__(self, limit):
        self._limit = limit
        self._frames = collections.OrderedDict()
        self._lock = threading.Lock()

    def read(self, folder, frame):
        """Arrays by name; raises what the core raises."""
        try:
            changed = os.stat(folder).st_mtime_ns
        except OSError:
            changed = 0
        key = (folder, frame, changed)
        with self._lock:
            if key in self._frames:
                self._frames.move_to_end(key)
                return self._frames[key]
        arrays = engine.core.read_frame(folder, frame)["arrays"]
        with self._lock:
            self._frames[key] = arrays
            while len(self._frames) > self._limit:
                self._frames.popitem(last=False)
        return arrays

    def clear(self):
        with self._lock:
            self._frames.clear()


@dataclasses.dataclass(frozen=True)
class Baked:
    """What the frames in the cache do not say: needed to put the carrier back after an undo."""

    grain_count: int
    radius: float  # m
    shape: str
    body_count: int = 0  # elements before the grains in every frame
    starts: tuple = ()  # follow.Start of every body
    keyed: frozenset = frozenset()  # uids of those that were given keyframes since
    settings: str = ""  # export.fingerprint of the scene that was baked


_store = FrameStore(FRAME_LIMIT)
_is_paused = False
_messages = {}  # scene's session_uid -> sentence about the frame that cannot be shown
_baked = {}  # scene's session_uid -> Baked, or None after Free; only for bakes of this session


def message(scene):
    """Why the current frame is not shown, "" when it is."""
    return _messages.get(scene.session_uid, "")


@contextlib.contextmanager
def paused():
    """Frame changes inside the block leave the grains alone, and the bodies are where the artist put them; the caller is
    back on the same frame at its end."""
    global _is_paused
    _is_paused = True
    try:
        with follow.muted(bpy.context.scene):
            yield
    finally:
        _is_paused = False


def _set_message(scene, text):
    if text and _messages.get(scene.session_uid) != text:
        print(f"Barchan: {text}", flush=True)
    _messages[scene.session_uid] = text


# ---------------------------------------------------------------------------------------------------------------------
# Node group and material


def _attribute(nodes, name, data_type):
    """Output socket of a Named Attribute node; it has one socket per type, of which one is enabled."""
    node = nodes.new("GeometryNodeInputNamedAttribute")
    node.data_type = data_type
    node.inputs["Name"].default_value = name
    return next(socket for socket in node.outputs if socket.enabled and socket.name == "Attribute")


def _switch(group, condition, when_false, when_true):
    node = group.nodes.new("GeometryNodeSwitch")
    node.input_type = "GEOMETRY"
    by_name = {socket.name: socket for socket in node.inputs if socket.enabled}
    group.links.new(condition, by_name["Switch"])
    group.links.new(when_false, by_name["False"])
    group.links.new(when_true, by_name["True"])
    return next(socket for socket in node.outputs if socket.enabled)


def _grain_points(group, offsets):
    """A grain of unit sphere radius as a point cloud."""
    join = group.nodes.new("GeometryNodeJoinGeometry")
    for offset in offsets:
        point = group.nodes.new("GeometryNodePoints")
        point.inputs["Count"].default_value = 1
        point.inputs["Position"].default_value = offset
        point.inputs["Radius"].default_value = 1.0
        group.links.new(point.outputs[0], join.inputs[0])
    return join.outputs[0]


def _grain_mesh(group, offsets):
    """A grain of unit sphere radius as joined icospheres."""
    ball = group.nodes.new("GeometryNodeMeshIcoSphere")
    ball.inputs["Radius"].default_value = 1.0
    ball.inputs["Subdivisions"].default_value = 2
    smooth = group.nodes.new("GeometryNodeSetShadeSmooth")
    group.links.new(ball.outputs[0], smooth.inputs[0])
    join = group.nodes.new("GeometryNodeJoinGeometry")
    for offset in offsets:
        move = group.nodes.new("GeometryNodeSetPosition")
        move.inputs["Offset"].default_value = offset
        group.links.new(smooth.outputs[0], move.inputs[0])
        group.links.new(move.outputs[0], join.inputs[0])
    return join.outputs[0]


def _instance(group, points, grain):
    """The grain on every vertex, turned by its rotation and scaled by its radius."""
    node = group.nodes.new("GeometryNodeInstanceOnPoints")
    group.links.new(points, node.inputs["Points"])
    group.links.new(grain, node.inputs["Instance"])
    group.links.new(_attribute(group.nodes, "rotation", "QUATERNION"), node.inputs["Rotation"])
    group.links.new(_attribute(group.nodes, "radius", "FLOAT"), node.inputs["Scale"])
    return node.outputs[0]


def _realised_points(group, vertices, grain):
    """Every sphere of every grain as a point. Realising keeps the points' own radius of 1 instead of scaling it, so the
    grain's radius travels in an attribute of another name."""
    store = group.nodes.new("GeometryNodeStoreNamedAttribute")
    store.data_type = "FLOAT"
    store.domain = "POINT"
    store.inputs["Name"].default_value = "sphere_radius"
    value = next(socket for socket in store.inputs if socket.enabled and socket.name == "Value")
    group.links.new(vertices, store.inputs["Geometry"])
    group.links.new(_attribute(group.nodes, "radius", "FLOAT"), value)
    realise = group.nodes.new("GeometryNodeRealizeInstances")
    group.links.new(_instance(group, store.outputs[0], grain), realise.inputs["Geometry"])
    resize = group.nodes.new("GeometryNodeSetPointRadius")
    group.links.new(realise.outputs[0], resize.inputs["Points"])
    group.links.new(_attribute(group.nodes, "sphere_radius", "FLOAT"), resize.inputs["Radius"])
    return resize.outputs[0]


def _build_group(group):
    group.nodes.clear()
    group.interface.clear()
    new_socket = group.interface.new_socket
    new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
    new_socket("Geometry", in_out="INPUT", socket_type="NodeSocketGeometry")
    new_socket("Grains", in_out="INPUT", socket_type="NodeSocketBool", description="Instanced meshes instead of points")
    new_socket("Tetrahedron", in_out="INPUT", socket_type="NodeSocketBool", description="Four spheres instead of one")
    new_socket("Material", in_out="INPUT", socket_type="NodeSocketMaterial", description="Material of the grains")
    sockets = group.nodes.new("NodeGroupInput").outputs
    hide = group.nodes.new("GeometryNodeDeleteGeometry")
    hide.domain = "POINT"
    group.links.new(sockets["Geometry"], hide.inputs["Geometry"])
    group.links.new(_attribute(group.nodes, "is_hidden", "BOOLEAN"), hide.inputs["Selection"])
    vertices = hide.outputs[0]

    offsets = [tuple(map(float, offset)) for offset in engine.core.tetrahedron(1.0)]
    single = group.nodes.new("GeometryNodeMeshToPoints")
    group.links.new(vertices, single.inputs["Mesh"])
    group.links.new(_attribute(group.nodes, "radius", "FLOAT"), single.inputs["Radius"])
    points = _switch(
        group,
        sockets["Tetrahedron"],
        single.outputs[0],
        _realised_points(group, vertices, _grain_points(group, offsets)),
    )
    grain = _switch(
        group, sockets["Tetrahedron"], _grain_mesh(group, [(0.0, 0.0, 0.0)]), _grain_mesh(group, offsets)
    )
    shown = _switch(group, sockets["Grains"], points, _instance(group, vertices, grain))

    paint = group.nodes.new("GeometryNodeSetMaterial")
    group.links.new(shown, paint.inputs["Geometry"])
    group.links.new(sockets["Material"], paint.inputs["Material"])
    output = group.nodes.new("NodeGroupOutput")
    group.links.new(paint.outputs[0], output.inputs[0])
    _arrange(group)
    group[GROUP_TAG] = GROUP_LAYOUT


def _arrange(group):
    """Columns by distance from the output, for people who open the group."""
    depth = {node: 0 for node in group.nodes}
    for _ in range(len(group.nodes)):
        for link in group.links:
            depth[link.from_node] = max(depth[link.from_node], depth[link.to_node] + 1)
    rows = collections.Counter()
    for node, column in depth.items():
        node.location = (-220 * column, -180 * rows[column])
        rows[column] += 1


def node_group():
    """The one node group of the file, made or rebuilt when needed."""
    group = bpy.data.node_groups.get((GROUP_NAME, None))
    if group is None or group.bl_idname != "GeometryNodeTree":
        group = bpy.data.node_groups.new(GROUP_NAME, "GeometryNodeTree")
    if group.get(GROUP_TAG) != GROUP_LAYOUT:
        _build_group(group)
    return group


def sand_material():
    """The one sand material of the file: quartz, feldspar and iron-stained grains mixed by the grain's shade.
    Points carry the shade themselves, instances carry it on the instance; the attribute that is absent reads 0."""
    material = bpy.data.materials.get((MATERIAL_NAME, None))
    if material is not None:
        return material
    material = bpy.data.materials.new(MATERIAL_NAME)
    material.diffuse_color = (0.76, 0.60, 0.38, 1.0)
    if material.node_tree is None:
        material.use_nodes = True
    tree = material.node_tree
    shader = next((node for node in tree.nodes if node.type == "BSDF_PRINCIPLED"), None)
    if shader is None:
        shader = tree.nodes.new("ShaderNodeBsdfPrincipled")
        output = tree.nodes.new("ShaderNodeOutputMaterial")
        tree.links.new(shader.outputs[0], output.inputs["Surface"])
    add = tree.nodes.new("ShaderNodeMath")
    add.operation = "ADD"
    add.location = (-480, 200)
    for index, attribute_type in enumerate(("GEOMETRY", "INSTANCER")):
        attribute = tree.nodes.new("ShaderNodeAttribute")
        attribute.attribute_type = attribute_type
        attribute.attribute_name = "shade"
        attribute.location = (-700, 300 - 200 * index)
        tree.links.new(attribute.outputs["Fac"], add.inputs[index])
    ramp = tree.nodes.new("ShaderNodeValToRGB")
    ramp.location = (-300, 200)
    colours = (
        (0.00, (0.20, 0.09, 0.035)),
        (0.07, (0.50, 0.26, 0.10)),
        (0.35, (0.68, 0.43, 0.20)),
        (0.75, (0.78, 0.57, 0.31)),
        (1.00, (0.90, 0.77, 0.54)),
    )
    elements = ramp.color_ramp.elements
    while len(elements) < len(colours):
        elements.new(1.0)
    for element, (position, colour) in zip(elements, colours):
        element.position = position
        element.color = (*colour, 1.0)
    tree.links.new(add.outputs[0], ramp.inputs[0])
    tree.links.new(ramp.outputs["Color"], shader.inputs["Base Color"])
    shader.inputs["Roughness"].default_value = 0.55
    return material


def _set_input(modifier, name, value):
    """Sets a modifier input by its socket name: an ID property up to Blender 5.1, a real property from 5.2 on."""
    socket = next(
        item
        for item in modifier.node_group.interface.items_tree
        if item.item_type == "SOCKET" and item.in_out == "INPUT" and item.name == name
    )
    inputs = getattr(getattr(modifier, "properties", None), "inputs", None)
    if inputs is not None:
        getattr(inputs, socket.identifier).value = value
    else:
        modifier[socket.identifier] = value


def _input(modifier, name):
    """What _set_input set."""
    socket = next(
        item
        for item in modifier.node_group.interface.items_tree
        if item.item_type == "SOCKET" and item.in_out == "INPUT" and item.name == name
    )
    inputs = getattr(getattr(modifier, "properties", None), "inputs", None)
    return getattr(inputs, socket.identifier).value if inputs is not None else modifier[socket.identifier]


# ---------------------------------------------------------------------------------------------------------------------
# Carrier


def _shades(count):
    """One number in [0, 1) per grain, by the grain's index, so that a grain keeps its colour in every bake."""
    index = np.arange(count, dtype=np.uint32)
    index ^= index >> np.uint32(16)
    index *= np.uint32(0x7FEB352D)
    index ^= index >> np.uint32(15)
    index *= np.uint32(0x846CA68B)
    index ^= index >> np.uint32(16)
    return (index >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def _resize(mesh, count, radius):
    """Gives the mesh count loose vertices with our attributes."""
    if len(mesh.vertices) != count or len(mesh.edges) > 0:
        mesh.clear_geometry()
        mesh.vertices.add(count)
    for name, data_type, _key, _components in ATTRIBUTES:
        attribute = mesh.attributes.get(name)
        if attribute is not None and (attribute.data_type != data_type or attribute.domain != "POINT"):
            mesh.attributes.remove(attribute)
            attribute = None
        if attribute is None:
            mesh.attributes.new(name, data_type, "POINT")
    mesh.attributes["radius"].data.foreach_set("value", np.full(count, radius, np.float32))
    mesh.attributes["shade"].data.foreach_set("value", _shades(count))


def carrier(scene):
    """The carrier of the scene, None when there is none or the user took it out of the scene."""
    ob = scene.barchan.carrier
    if ob is None or ob.type != "MESH" or scene.objects.get(ob.name) != ob:
        return None
    return ob


def attach(scene, baked):
    """Makes the carrier fit a bake: made when missing, reused otherwise; shows the current frame. Main thread."""
    ob = carrier(scene)
    if ob is None:
        detach(scene)
        ob = bpy.data.objects.new(CARRIER_NAME, bpy.data.meshes.new(CARRIER_NAME))
        scene.collection.objects.link(ob)
        scene.barchan.carrier = ob
    _resize(ob.data, baked.grain_count, baked.radius)
    material = sand_material()
    if len(ob.data.materials) == 0:
        ob.data.materials.append(material)
    modifier = ob.modifiers.get(MODIFIER_NAME) or ob.modifiers.new(MODIFIER_NAME, "NODES")
    if modifier.node_group is None or modifier.node_group.get(GROUP_TAG, GROUP_LAYOUT) != GROUP_LAYOUT:
        modifier.node_group = node_group()
        _set_input(modifier, "Material", material)
    _set_input(modifier, "Tetrahedron", baked.shape == "TETRAHEDRON")
    _baked[scene.session_uid] = baked
    scene.barchan.body_count = baked.body_count
    scene.barchan.baked_settings = baked.settings
    follow.attach(scene, baked.starts, baked.keyed)
    apply_display(scene)
    _store.clear()
    show(scene)


def detach(scene):
    """Removes the carrier and its mesh; the bodies are the artist's again. Main thread."""
    follow.detach(scene)
    scene.barchan.body_count = 0
    scene.barchan.baked_settings = ""
    ob = scene.barchan.carrier
    scene.barchan.carrier = None
    if ob is not None:
        mesh = ob.data
        bpy.data.objects.remove(ob)
        if isinstance(mesh, bpy.types.Mesh) and mesh.users == 0:
            bpy.data.meshes.remove(mesh)
    _baked[scene.session_uid] = None
    _messages.pop(scene.session_uid, None)
    _store.clear()


def apply_display(scene):
    """Points or Grains, as set in the scene. Main thread."""
    ob = carrier(scene)
    modifier = ob.modifiers.get(MODIFIER_NAME) if ob is not None else None
    if modifier is None or modifier.node_group is None:
        return
    _set_input(modifier, "Grains", scene.barchan.display == "GRAINS")
    ob.update_tag()


def _blend(before, after, share):
    """State between two frames: positions and velocities on the straight line, rotations on the shorter arc, normalised."""
    first, second = before["rotation"], after["rotation"]
    share = np.float32(share)
    sign = np.where((first * second).sum(axis=1, keepdims=True) < 0, np.float32(-1), np.float32(1))
    rotation = first + share * (sign * second - first)
    rotation /= np.maximum(np.linalg.norm(rotation, axis=1, keepdims=True), np.float32(1e-12))
    blended = {
        "position": before["position"] + share * (after["position"] - before["position"]),
        "rotation": rotation,
        "velocity": before["velocity"] + share * (after["velocity"] - before["velocity"]),
    }
    if "flags" in before and "flags" in after:
        blended["flags"] = before["flags"] | after["flags"]  # hidden on one of them: it has no place between them
    return blended


def read(folder, frame):
    """State at a frame number, which may lie between two whole frames. Between two frames of which one is missing, as at
    both ends of the range, it is the other one. Raises what the core raises."""
    whole = math.floor(frame)
    share = frame - whole
    if share == 0.0:
        return _store.read(folder, whole)
    try:
        before = _store.read(folder, whole)
    except engine.core.CacheError:
        return _store.read(folder, whole + 1)
    try:
        after = _store.read(folder, whole + 1)
    except engine.core.CacheError:
        return before
    if len(after["position"]) != len(before["position"]):
        return before
    return _blend(before, after, share)


def show(scene):
    """Shows the scene's current frame; when it cannot be read grains and bodies stay where they were and message() says
    why."""
    ob = carrier(scene)
    if (ob is None and len(scene.barchan.followers) == 0) or engine.core is None:
        return
    try:
        arrays = read(properties.cache_folder(scene), scene.frame_current_final)
        positions, rotations = arrays["position"], arrays["rotation"]
    except (engine.core.Error, OSError, MemoryError, ValueError) as error:
        _set_message(scene, engine.sentence(error))
        return
    except KeyError as error:
        _set_message(scene, f"Frame {scene.frame_current} has no array {error}; bake it again")
        return
    body_count = scene.barchan.body_count
    if len(positions) < body_count:
        _set_message(
            scene,
            f"Frame {scene.frame_current} holds {len(positions)} elements, fewer than the {body_count} bodies of this "
            "scene; bake it again",
        )
        return
    follow.show(scene, positions, rotations)
    if ob is not None:
        _show_grains(scene, ob.data, {name: array[body_count:] for name, array in arrays.items()})
    _set_message(scene, "")


def _show_grains(scene, mesh, arrays):
    count = len(arrays["position"])
    if len(mesh.vertices) != count:  # baked by another session: same scene, other count
        baked = _baked.get(scene.session_uid)
        _resize(mesh, count, baked.radius if baked else _first_radius(mesh, scene.barchan.radius))
    if count == 0:  # a mesh without vertices has no positions
        return
    mesh.attributes["position"].data.foreach_set("vector", np.ascontiguousarray(arrays["position"], np.float32).ravel())
    for name, _data_type, key, _components in ATTRIBUTES[:2]:
        if name in arrays and name in mesh.attributes:
            mesh.attributes[name].data.foreach_set(key, np.ascontiguousarray(arrays[name], np.float32).ravel())
    if "is_hidden" in mesh.attributes:  # not in files of an older version
        flags = arrays["flags"] if "flags" in arrays else np.zeros(count, np.int32)
        mesh.attributes["is_hidden"].data.foreach_set("value", (flags & FLAGS_HIDDEN) != 0)
    mesh.update_tag()


def forget_keyed(scene, uids):
    """These bodies have keyframes now: undo may bring their constraints back or not."""
    baked = _baked.get(scene.session_uid)
    if baked:
        _baked[scene.session_uid] = dataclasses.replace(baked, keyed=baked.keyed | frozenset(uids))


def _first_radius(mesh, otherwise):
    attribute = mesh.attributes.get("radius")
    if attribute is None or len(attribute.data) == 0:
        return otherwise
    return attribute.data[0].value


def baked_size(scene):
    """Radius (m) and shape of the grains as they were baked, which the settings may have left since; the settings' own
    where there is no carrier to ask."""
    ob = carrier(scene)
    modifier = ob.modifiers.get(MODIFIER_NAME) if ob is not None else None
    if modifier is None or modifier.node_group is None or GROUP_TAG not in modifier.node_group:
        return scene.barchan.radius, scene.barchan.shape
    shape = "TETRAHEDRON" if _input(modifier, "Tetrahedron") else "SPHERE"
    return _first_radius(ob.data, scene.barchan.radius), shape


# ---------------------------------------------------------------------------------------------------------------------
# Handlers


@persistent
def on_frame_change(scene, _depsgraph=None):
    if not _is_paused:
        show(scene)


@persistent
def on_load(_path=None):
    """Another file: what is known of the session's bakes belongs to the file before."""
    _messages.clear()
    _baked.clear()
    _store.clear()
    for scene in bpy.data.scenes:
        show(scene)


@persistent
def on_undo(scene, _depsgraph=None):
    """Undo takes the carrier back to what it was, but the frames on disk are what they are: bakes are not undone."""
    for scene in bpy.data.scenes:
        if scene.session_uid not in _baked:
            show(scene)
            continue
        baked = _baked[scene.session_uid]
        if baked is None:
            if scene.barchan.carrier is not None:
                detach(scene)
        else:
            attach(scene, baked)


_handlers = (
    ("frame_change_pre", on_frame_change),
    ("load_post", on_load),
    ("undo_post", on_undo),
    ("redo_post", on_undo),
)


def register():
    for name, function in _handlers:
        handlers = getattr(bpy.app.handlers, name)
        if function not in handlers:
            handlers.append(function)


def unregister():
    for name, function in _handlers:
        handlers = getattr(bpy.app.handlers, name)
        if function in handlers:
            handlers.remove(function)
    _messages.clear()
    _baked.clear()
    _store.clear()
