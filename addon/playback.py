# SPDX-License-Identifier: GPL-3.0-or-later
"""playback: cached frames -> attributes of the carrier mesh, and bodies in their places. The only writer of bpy geometry.

Comes in: frames of the cache. Goes out: the object "Barchan Sand", one loose vertex per grain with the attributes
position, rotation, velocity, radius, shade, id, is_hidden and what else the frames hold, drawn by the node group of grains
(platform fact: of all carriers only a mesh under geometry nodes draws in every Blender from 4.2 to 5.2). The bodies, which
stand before the grains in every frame, are handed to follow.

A frame change reads no more than what will be drawn: the viewport's points need places alone. A render reads every array
of every grain. The handlers also run in Blender's render thread: they call no operator and touch nothing but the carrier's
attributes and the places of the bodies' empties.
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

from . import engine, follow, grains, properties

CARRIER_NAME = "Barchan Sand"
SHAPES_NAME = "Barchan Shapes"
MODIFIER_NAME = "Barchan"

# (name, type, value key for foreach_set, components)
ATTRIBUTES = (
    ("rotation", "QUATERNION", "value", 4),
    ("velocity", "FLOAT_VECTOR", "vector", 3),
    ("radius", "FLOAT", "value", 1),
    ("shade", "FLOAT", "value", 1),
    ("id", "INT", "value", 1),
    ("is_hidden", "BOOLEAN", "value", 1),
)

# Arrays of a frame that are the same in all frames of a bake: read once per bake, not once per frame.
CONSTANTS = ("radius", "shape", "material", "source", "id")
PLAIN_TYPES = {  # attribute type and key for other arrays, by kind of number and components
    ("f", 1): ("FLOAT", "value"),
    ("f", 3): ("FLOAT_VECTOR", "vector"),
    ("i", 1): ("INT", "value"),
}

FLAGS_HIDDEN = 8 | 16  # of a cached grain: not yet born, taken by an outflow
FIRST_HIDDEN = 8  # flags below it have none of these

FRAME_LIMIT = 3  # frames kept in memory: the two around a sub-frame and the one before

OVERRIDE_PATH = "barchan_look.frame"
EVERY_TAG = "barchan_every"  # custom property of the carrier's mesh: every how many-th grain it holds


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What is read of a frame."""

    names: tuple = ()  # arrays, those that the frame has; () = all
    every: int = 1  # only every k-th element


@dataclasses.dataclass(frozen=True)
class Frame:
    arrays: dict
    seconds: float  # simulated time


class FrameStore:
    """The last few frames read, so that the sub-frames of motion blur read each file once. Any thread.
    A folder whose contents changed since (its time of change differs) is read again."""

    def __init__(self, limit):
        self._limit = limit
        self._frames = collections.OrderedDict()
        self._names = {}  # (folder, time of change) -> names of the arrays that its frames hold
        self._reader = None  # keeps threads and memory from frame to frame
        self._lock = threading.Lock()

    def read(self, folder, frame, wanted=Wanted()):
        """A Frame; raises what the core raises."""
        changed = self._changed(folder)
        key = (folder, frame, changed, wanted)
        with self._lock:
            if key in self._frames:
                self._frames.move_to_end(key)
                return self._frames[key]
        found = self._read(folder, frame, changed, wanted)
        found = Frame(found["arrays"], found["seconds"])
        with self._lock:
            self._frames[key] = found
            while len(self._frames) > self._limit:
                self._frames.popitem(last=False)
        return found

    def names(self, folder, frame):
        """Names of the arrays in the folder's frames; raises what the core raises."""
        key = (folder, self._changed(folder))
        if key not in self._names:
            if len(self._names) > 16:
                self._names.clear()
            self._names[key] = frozenset(engine.core.frame_info(folder, frame)["arrays"])
        return self._names[key]

    def _changed(self, folder):
        try:
            return os.stat(folder).st_mtime_ns
        except OSError:
            return 0

    def _read(self, folder, frame, changed, wanted):
        names = [name for name in wanted.names if name in self.names(folder, frame)] or None
        with self._lock:
            reader = self._reader = self._reader or engine.core.Reader()
        try:
            return reader.read_frame(folder, frame, names=names, every=wanted.every)
        except ValueError:  # this frame has other arrays than the one that was asked
            return reader.read_frame(folder, frame, every=wanted.every)

    def clear(self):
        """Forgets the frames; their memory goes back to the system, and the threads end."""
        with self._lock:
            self._frames.clear()
            self._names.clear()
            self._reader = None


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
    # Unless every grain is of `shape`: rows with index (as the frames' array "shape"), offsets (K,3) and radii (K,), in m
    shapes: tuple = ()


@dataclasses.dataclass
class Render:
    """A render under way: it shows every grain with everything, and one moment decides which grains are there."""

    centre: float = None  # timeline frame of the picture being made; None between two pictures


_store = FrameStore(FRAME_LIMIT)
_is_paused = False
_messages = {}  # scene's session_uid -> sentence about the frame that cannot be shown
_baked = {}  # scene's session_uid -> Baked, or None after Free; only for bakes of this session
_renders = {}  # scene's session_uid -> Render
_constants = {}  # mesh's session_uid -> (folder, count, every) that its constant attributes are of
_shown = {}  # scene's session_uid -> cached frame that was asked for last
drawn = {}  # scene's session_uid -> arrays of the grains that viewport draws; only with View: Spheres


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
# Carrier


def shades(ids):
    """One number in [0, 1) per grain, by its id, so that a grain keeps its colour in every bake."""
    index = np.array(ids, np.uint32)
    index ^= index >> np.uint32(16)
    index *= np.uint32(0x7FEB352D)
    index ^= index >> np.uint32(15)
    index *= np.uint32(0x846CA68B)
    index ^= index >> np.uint32(16)
    return (index >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def _ensure(mesh, name, data_type):
    """The attribute of that name and type, made when it is not there."""
    attribute = mesh.attributes.get(name)
    if attribute is not None and (attribute.data_type != data_type or attribute.domain != "POINT"):
        mesh.attributes.remove(attribute)
        attribute = None
    return attribute or mesh.attributes.new(name, data_type, "POINT")


def _resize(mesh, count, radius, every=1):
    """Gives the mesh count loose vertices with our attributes, of every so many-th grain."""
    if len(mesh.vertices) != count or len(mesh.edges) > 0:
        mesh.clear_geometry()
        mesh.vertices.add(count)
    for name, data_type, _key, _components in ATTRIBUTES:
        _ensure(mesh, name, data_type)
    mesh[EVERY_TAG] = every
    ids = np.arange(count, dtype=np.int32) * np.int32(every)
    mesh.attributes["radius"].data.foreach_set("value", np.full(count, radius, np.float32))
    mesh.attributes["id"].data.foreach_set("value", ids)
    mesh.attributes["shade"].data.foreach_set("value", shades(ids))
    _constants.pop(mesh.session_uid, None)


def carrier(scene):
    """The carrier of the scene, None when there is none or the user took it out of the scene."""
    ob = scene.barchan.carrier
    if ob is None or ob.type != "MESH" or scene.objects.get(ob.name) != ob:
        return None
    return ob


def _modifier(ob):
    """The modifier with our node group, None where the user took it away."""
    modifier = ob.modifiers.get(MODIFIER_NAME) if ob is not None else None
    if modifier is None or modifier.type != "NODES" or modifier.node_group is None:
        return None
    return modifier if grains.GROUP_TAG in modifier.node_group else None


def attach(scene, baked):
    """Makes the carrier fit a bake: made when missing, reused otherwise; shows the current frame. Main thread."""
    ob = carrier(scene)
    if ob is None:
        detach(scene)
        ob = bpy.data.objects.new(CARRIER_NAME, bpy.data.meshes.new(CARRIER_NAME))
        scene.collection.objects.link(ob)
        scene.barchan.carrier = ob
        scene.render.use_lock_interface = True  # frames change in the render's thread
    _resize(ob.data, baked.grain_count, baked.radius)
    is_new = bpy.data.materials.get((grains.MATERIAL_NAME, None)) is None
    material = grains.sand_material()
    if is_new:
        grains.apply_sand(scene)
    if len(ob.data.materials) == 0:
        ob.data.materials.append(material)
    modifier = ob.modifiers.get(MODIFIER_NAME) or ob.modifiers.new(MODIFIER_NAME, "NODES")
    if modifier.node_group is None or modifier.node_group.get(grains.GROUP_TAG, 0) not in (0, grains.GROUP_LAYOUT):
        modifier.node_group = grains.node_group()
        grains.set_input(modifier, "Material", material)
    if _modifier(ob) is not None:
        grains.set_input(modifier, "Tetrahedron", baked.shape == "TETRAHEDRON")
        _apply_shapes(scene, modifier, baked.shapes)
    _baked[scene.session_uid] = baked
    scene.barchan.body_count = baked.body_count
    scene.barchan.baked_settings = baked.settings
    follow.attach(scene, baked.starts, baked.keyed)
    apply_display(scene)
    _store.clear()
    show(scene)


def _shapes_object(modifier):
    """The object with the spheres of the shapes, None where all grains are alike."""
    if modifier is None or modifier.node_group.get(grains.GROUP_TAG) != grains.GROUP_LAYOUT:
        return None
    return grains.get_input(modifier, "Shapes") if grains.get_input(modifier, "Many Shapes") else None


def _apply_shapes(scene, modifier, shapes):
    """Keeps the shapes in a hidden object of the scene: a vertex per sphere, in units of the shape's largest sphere, with
    shape and unit_radius. Shapes that have no grain stand there too, so that a shape's place in the row is its number."""
    ob = grains.get_input(modifier, "Shapes")
    grains.set_input(modifier, "Many Shapes", bool(shapes))
    if not shapes:
        grains.set_input(modifier, "Shapes", None)
        _drop_mesh_object(ob)
        return
    by_index = {row.index: row for row in shapes}
    places, numbers, radii = [], [], []
    for index in range(max(by_index) + 1):
        row = by_index.get(index)
        largest = float(np.max(row.radii)) if row is not None else 1.0
        offsets = np.asarray(row.offsets, np.float32) / largest if row is not None else np.zeros((1, 3), np.float32)
        places.append(offsets)
        radii.append(np.asarray(row.radii, np.float32) / largest if row is not None else np.zeros(1, np.float32))
        numbers.append(np.full(len(offsets), index, np.int32))
    if ob is None:
        ob = bpy.data.objects.new(SHAPES_NAME, bpy.data.meshes.new(SHAPES_NAME))
        scene.collection.objects.link(ob)
        ob.hide_render = ob.hide_select = ob.hide_viewport = True
    mesh = ob.data
    mesh.clear_geometry()
    mesh.vertices.add(sum(map(len, places)))
    _set(mesh, "position", "vector", np.concatenate(places))
    for name, data_type, array in (("shape", "INT", numbers), ("unit_radius", "FLOAT", radii)):
        _ensure(mesh, name, data_type)
        _set(mesh, name, "value", np.concatenate(array))
    mesh.update_tag()
    grains.set_input(modifier, "Shapes", ob)


def _drop_mesh_object(ob):
    if ob is None:
        return
    mesh = ob.data
    bpy.data.objects.remove(ob)
    if isinstance(mesh, bpy.types.Mesh) and mesh.users == 0:
        bpy.data.meshes.remove(mesh)


def _balls(modifier, shapes):
    """Per grain the radius of the one sphere that stands for it from afar, in units of its largest sphere: 1.12 times that of
    all its spheres' volume, which for a tetrahedron is the rounded one around it."""
    mesh = _shapes_object(modifier).data
    count = len(mesh.vertices)
    numbers, radii = np.empty(count, np.int32), np.empty(count, np.float32)
    mesh.attributes["shape"].data.foreach_get("value", numbers)
    mesh.attributes["unit_radius"].data.foreach_get("value", radii)
    sums = np.bincount(numbers, radii.astype(np.float64) ** 3)
    singles = np.bincount(numbers) == 1
    factors = np.where(singles, 1.0, 1.12 * np.cbrt(sums)).astype(np.float32)
    return factors[np.clip(shapes, 0, len(factors) - 1)]


def detach(scene):
    """Removes the carrier and its mesh; the bodies are the artist's again. Main thread."""
    follow.detach(scene)
    scene.barchan.body_count = 0
    scene.barchan.baked_settings = ""
    ob = scene.barchan.carrier
    scene.barchan.carrier = None
    modifier = _modifier(ob)
    if modifier is not None and modifier.node_group.get(grains.GROUP_TAG) == grains.GROUP_LAYOUT:
        _drop_mesh_object(grains.get_input(modifier, "Shapes"))
    _drop_mesh_object(ob)
    _baked[scene.session_uid] = None
    _messages.pop(scene.session_uid, None)
    drawn.pop(scene.session_uid, None)
    _store.clear()


def apply_display(scene):
    """The settings of the look, as inputs of the node group; an older group is rebuilt. Main thread."""
    ob = carrier(scene)
    modifier = _modifier(ob)
    if modifier is None:
        return
    if modifier.node_group.get(grains.GROUP_TAG) != grains.GROUP_LAYOUT and modifier.node_group.library is None:
        kept = {name: grains.get_input(modifier, name) for name in ("Tetrahedron", "Material")}
        modifier.node_group = grains.node_group()
        for name, value in kept.items():
            grains.set_input(modifier, name, bool(value) if name == "Tetrahedron" else value)
    grains.apply(scene, modifier, _first_radius(ob.data, scene.barchan.radius))
    ob.update_tag()


# ---------------------------------------------------------------------------------------------------------------------
# Which frame, and how much of it


def cache_frame(scene, frame=None):
    """The cached frame, whole or not, that is shown at a frame of the timeline; None: the current one."""
    settings = scene.barchan_look
    frame = scene.frame_current_final if frame is None else frame
    if settings.timing == "HOLD":
        return float(settings.hold_frame)
    if settings.timing == "OVERRIDE":
        # The handler runs before Blender animates the scene: keyframes are asked for this very frame.
        curve = follow.curves(scene).get((OVERRIDE_PATH, 0))
        return curve.evaluate(frame) if curve is not None and not curve.mute else settings.frame
    return frame


def _wanted(scene, ob):
    """What the current display needs of a frame."""
    body_count = scene.barchan.body_count
    settings = scene.barchan_look
    if scene.session_uid in _renders or settings.use_all:
        return Wanted()
    names = {"position", "flags"}
    modifier = _modifier(ob)
    if ob is None or body_count > 0:
        names.add("rotation")
    elif modifier is None or modifier.node_group.get(grains.GROUP_TAG) != grains.GROUP_LAYOUT:
        return Wanted()
    elif settings.view != "POINTS" and (
        scene.barchan.display == "GRAINS"
        or grains.get_input(modifier, "Tetrahedron")
        or grains.get_input(modifier, "Many Shapes")
    ):
        names.add("rotation")
    return Wanted(tuple(sorted(names)))


def view_step(scene):
    """Every how many-th grain is shown."""
    if scene.session_uid in _renders:
        return 1
    return max(1, round(100 / scene.barchan_look.percentage))


def _between(before, after, share, hidden):
    """State between two frames. hidden: the frame whose flags say which grains are there."""
    arrays = dict(hidden.arrays)  # what else they hold does not change between two frames
    seconds = max(0.0, after.seconds - before.seconds)
    arrays.update(engine.core.between(before.arrays, after.arrays, share, seconds=seconds, absent=FLAGS_HIDDEN))
    return Frame(arrays, before.seconds + share * seconds)


def read(folder, frame, wanted=Wanted(), centre=None):
    """State at a cached frame, which may lie between two whole ones. Between two frames of which one is missing, as at
    both ends of the range, it is the other one. centre: cached frame of the picture whose shutter is open, the one
    nearest to it decides which grains are there. Raises what the core raises."""
    whole = math.floor(frame)
    share = frame - whole
    decides = round(frame if centre is None else centre)
    if share == 0.0 and (centre is None or decides == whole):
        return _store.read(folder, whole, wanted)
    if wanted.names:  # the way between two places needs the speeds
        wanted = dataclasses.replace(wanted, names=tuple(sorted({*wanted.names, "velocity"})))
    try:
        before = _store.read(folder, whole, wanted)
    except engine.core.CacheError:
        return _store.read(folder, whole + 1, wanted)
    try:
        after = _store.read(folder, whole + 1, wanted) if share > 0.0 else before
    except engine.core.CacheError:
        return before
    hidden = before if decides <= whole else after
    if decides not in (whole, whole + 1):
        try:
            hidden = _store.read(folder, decides, wanted)
        except engine.core.CacheError:
            pass
    if len({len(one.arrays["position"]) for one in (before, after, hidden)}) > 1:
        return before
    return _between(before, after, share, hidden)


# ---------------------------------------------------------------------------------------------------------------------
# Show


def show(scene):
    """Shows the scene's current frame; when it cannot be read grains and bodies stay where they were and message() says
    why."""
    ob = carrier(scene)
    if (ob is None and len(scene.barchan.followers) == 0) or engine.core is None:
        return
    if not scene.barchan_look.is_on:
        _set_message(scene, "")
        return
    folder = properties.cache_folder(scene)
    frame = cache_frame(scene)
    _shown[scene.session_uid] = frame
    render = _renders.get(scene.session_uid)
    centre = cache_frame(scene, render.centre) if render is not None and render.centre is not None else None
    body_count, step = scene.barchan.body_count, view_step(scene)
    wanted = _wanted(scene, ob)
    if body_count == 0:
        wanted = dataclasses.replace(wanted, every=step)
    try:
        arrays = read(folder, frame, wanted, centre).arrays
        positions, rotations = arrays["position"], arrays["rotation"] if body_count else None
    except (engine.core.Error, OSError, MemoryError, ValueError) as error:
        _set_message(scene, engine.sentence(error))
        return
    except KeyError as error:
        _set_message(scene, f"Frame {frame:g} has no array {error}; bake it again")
        return
    if len(positions) < body_count:
        _set_message(
            scene,
            f"Frame {frame:g} holds {len(positions)} elements, fewer than the {body_count} bodies of this "
            "scene; bake it again",
        )
        return
    if body_count:
        follow.show(scene, positions, rotations)
        arrays = {name: array[body_count::step] for name, array in arrays.items()}
    if ob is not None:
        _show_grains(scene, ob, arrays, folder, frame, step)
    _set_message(scene, "")


def _show_grains(scene, ob, arrays, folder, frame, every):
    mesh = ob.data
    count = len(arrays["position"])
    if len(mesh.vertices) != count or mesh.get(EVERY_TAG, 1) != every:  # baked by another session, or another share is shown
        baked = _baked.get(scene.session_uid)
        radius = baked.radius if baked else _first_radius(mesh, scene.barchan.radius)
        _resize(mesh, count, radius, every)
    if count:
        _show_constants(scene, ob, folder, frame, count, every)
    if scene.barchan_look.view == "SPHERES" and scene.session_uid not in _renders and not bpy.app.background:
        drawn[scene.session_uid] = arrays  # by viewport; the carrier draws nothing
        return
    drawn.pop(scene.session_uid, None)
    if count == 0:  # a mesh without vertices has no positions
        return
    _set(mesh, "position", "vector", arrays["position"])
    for name, _data_type, key, _components in ATTRIBUTES[:2]:
        if name in arrays and name in mesh.attributes:
            _set(mesh, name, key, arrays[name])
    _show_hidden(ob, arrays.get("flags"))
    if scene.session_uid in _renders or scene.barchan_look.use_all:
        _show_others(mesh, arrays)
    mesh.update_tag()


def _set(mesh, name, key, array):
    """One copy of a float32 or int32 buffer."""
    mesh.attributes[name].data.foreach_set(key, np.ascontiguousarray(array).ravel())


def _show_hidden(ob, flags):
    mesh = ob.data
    modifier = _modifier(ob)
    if "is_hidden" not in mesh.attributes:  # not in files of an older version
        return
    # One pass tells in nearly all frames that every grain is there.
    some = flags is not None and int(flags.max(initial=0)) >= FIRST_HIDDEN and bool((flags & FLAGS_HIDDEN).any())
    if modifier is not None and modifier.node_group.get(grains.GROUP_TAG) == grains.GROUP_LAYOUT:
        if bool(grains.get_input(modifier, "Some Hidden")) != some:
            grains.set_input(modifier, "Some Hidden", some)
            ob.update_tag()
        if not some:  # the group does not look at the attribute then
            return
    is_hidden = (flags & FLAGS_HIDDEN) != 0 if some else np.zeros(len(mesh.vertices), bool)
    mesh.attributes["is_hidden"].data.foreach_set("value", is_hidden)


def _show_constants(scene, ob, folder, frame, count, every):
    """Radius, source and the like, which frames may hold, once per bake."""
    mesh = ob.data
    key = (folder, count, every)
    if _constants.get(mesh.session_uid) == key:
        return
    _constants[mesh.session_uid] = key
    try:
        names = tuple(sorted(set(CONSTANTS) & _store.names(folder, math.floor(frame))))
        if not names:
            return
        body_count = scene.barchan.body_count
        step = 1 if body_count else every
        arrays = engine.core.read_frame(folder, math.floor(frame), names=list(names), every=step)["arrays"]
    except (engine.core.Error, OSError, MemoryError, ValueError):
        return  # the frame itself says what is wrong
    arrays = {name: array[body_count::every] if body_count else array for name, array in arrays.items()}
    if any(len(array) != count for array in arrays.values()):
        return
    _show_others(mesh, arrays)
    modifier = _modifier(ob)
    if "shape" in arrays and _shapes_object(modifier) is not None:
        _ensure(mesh, "ball", "FLOAT")
        _set(mesh, "ball", "value", _balls(modifier, arrays["shape"]))
    if "id" in arrays:
        mesh.attributes["shade"].data.foreach_set("value", shades(arrays["id"]))


def _show_others(mesh, arrays):
    """Arrays that have no place of their own, as attributes of the same name."""
    known = {"position", "flags", *(item[0] for item in ATTRIBUTES[:2])}
    for name, array in arrays.items():
        found = PLAIN_TYPES.get((array.dtype.kind, array.shape[1] if array.ndim == 2 else 1))
        if name in known or found is None:
            continue
        _ensure(mesh, name, found[0])
        _set(mesh, name, found[1], array)


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


def drawn_sizes(scene):
    """Radius (m) of every grain's largest sphere, or with many shapes of the one that stands for the grain, (N,) float32; and the
    shape that all are drawn as."""
    ob = carrier(scene)
    mesh = ob.data
    sizes = np.empty(len(mesh.vertices), np.float32)
    mesh.attributes["radius"].data.foreach_get("value", sizes)
    if _shapes_object(_modifier(ob)) is None or "ball" not in mesh.attributes:
        return sizes, baked_size(scene)[1]
    balls = np.empty_like(sizes)
    mesh.attributes["ball"].data.foreach_get("value", balls)
    return sizes * balls, "SPHERE"


def baked_size(scene):
    """Radius (m) and shape of the grains as they were baked, which the settings may have left since; the settings' own
    where there is no carrier to ask."""
    ob = carrier(scene)
    modifier = _modifier(ob)
    if modifier is None:
        return scene.barchan.radius, scene.barchan.shape
    shape = "TETRAHEDRON" if grains.get_input(modifier, "Tetrahedron") else "SPHERE"
    return _first_radius(ob.data, scene.barchan.radius), shape


# ---------------------------------------------------------------------------------------------------------------------
# Handlers


@persistent
def on_frame_change(scene, _depsgraph=None):
    if not _is_paused:
        show(scene)


@persistent
def on_frame_changed(scene, _depsgraph=None):
    """Drivers and strips of the override frame are known only now; keyframes were right before."""
    settings = scene.barchan_look
    if _is_paused or settings.timing != "OVERRIDE" or (OVERRIDE_PATH, 0) in follow.curves(scene):
        return
    if _shown.get(scene.session_uid) != settings.frame:
        show(scene)


@persistent
def on_render_start(scene, *_):
    _renders[scene.session_uid] = Render()
    show(scene)  # all grains with all attributes, also when no frame changes


@persistent
def on_picture_start(scene, *_):
    _renders.setdefault(scene.session_uid, Render()).centre = scene.frame_current_final


@persistent
def on_picture_end(scene, *_):
    if scene.session_uid in _renders:
        _renders[scene.session_uid].centre = None


@persistent
def on_render_end(scene, *_):
    _renders.pop(scene.session_uid, None)
    show(scene)


@persistent
def on_load(_path=None):
    """Another file: what is known of the session's bakes belongs to the file before."""
    _forget()
    for scene in bpy.data.scenes:
        if carrier(scene) is not None and scene.library is None:
            apply_display(scene)
        show(scene)


@persistent
def on_undo(scene, _depsgraph=None):
    """Undo takes the carrier back to what it was, but the frames on disk are what they are: bakes are not undone."""
    _constants.clear()
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


def _forget():
    for known in (_messages, _baked, _renders, _constants, _shown, drawn):
        known.clear()
    _store.clear()


_handlers = (
    ("frame_change_pre", on_frame_change),
    ("frame_change_post", on_frame_changed),
    ("render_init", on_render_start),
    ("render_pre", on_picture_start),
    ("render_post", on_picture_end),
    ("render_complete", on_render_end),
    ("render_cancel", on_render_end),
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
    _forget()
