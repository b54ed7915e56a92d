# SPDX-License-Identifier: GPL-3.0-or-later
"""follow: the objects of the bodies move as the cache says.

Comes in: the bodies' poses of a frame. Goes out: per body a hidden empty in the collection "Barchan Bodies" and a Copy
Transforms constraint on the object, last in its stack, so that the artist's own transform and keyframes stay as they are;
or ordinary keyframes instead. The empties hang on one that stands at the origin and are placed by their parent inverse,
which unlike location, rotation and scale can also shear.
"""

import contextlib
import dataclasses

import bpy
import mathutils
import numpy as np

from . import assembly, engine, properties
from .properties import CONSTRAINT_NAME, is_own_constraint

COLLECTION_NAME = "Barchan Bodies"
COLLECTION_TAG = "barchan_bodies"  # custom property of the collection

LINEAR = 1  # number of the interpolation of keyframes for foreach_set


@dataclasses.dataclass(frozen=True)
class Start:
    """A body as it was on the first frame of its bake."""

    uid: int  # session_uid of the object, which undo keeps
    matrix: tuple  # 16 numbers, row by row: the object's world matrix
    place: tuple  # m, centre of mass
    turn: tuple  # w x y z


def motions(followers, positions, rotations):
    """World matrices (B,4,4) float64 of the objects for poses (B,3) and (B,4): moved as the pose moved since the start."""
    count = len(followers)
    start = np.array([row.matrix[:] for row in followers], np.float64).reshape(count, 4, 4)
    place = np.array([row.place[:] for row in followers], np.float64).reshape(count, 3)
    turn = np.array([row.turn[:] for row in followers], np.float64).reshape(count, 4)
    turned = assembly.multiply(np.asarray(rotations, np.float64), assembly.inverse(turn))
    turned /= np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-12)
    matrix = np.tile(np.eye(4), (count, 1, 1))
    matrix[:, :3, :3] = assembly.rotation(turned)
    matrix[:, :3, 3] = positions - (matrix[:, :3, :3] @ place[:, :, None])[:, :, 0]
    return matrix @ start


# ---------------------------------------------------------------------------------------------------------------------
# Constraints and empties


def own_constraints(scene):
    """(object, constraint) of everything in the scene that follows a bake."""
    return [(ob, found) for ob in scene.objects for found in ob.constraints if is_own_constraint(found)]


@contextlib.contextmanager
def muted(scene):
    """Inside the block the bodies are where the artist put them."""
    active = [(ob, found) for ob, found in own_constraints(scene) if not found.mute and ob.is_editable]
    for _ob, constraint in active:
        constraint.mute = True
    try:
        yield
    finally:
        for ob, constraint in active:
            constraint.mute = False
            ob.update_tag()
        if active:
            for layer in scene.view_layers:
                layer.update()


def _collection(scene):
    """The scene's own collection of empties, made when it is not there, and the empty at its origin."""
    found = next((child for child in scene.collection.children if COLLECTION_TAG in child), None)
    if found is None:
        found = bpy.data.collections.new(COLLECTION_NAME)
        found[COLLECTION_TAG] = 1
        found.hide_viewport = True
        found.hide_render = True
        scene.collection.children.link(found)
    root = next((ob for ob in found.objects if ob.parent is None), None)
    if root is None:
        root = _new_empty(found, COLLECTION_NAME)
    return found, root


def _new_empty(collection, name):
    empty = bpy.data.objects.new(name, None)
    empty.hide_select = True
    empty.hide_render = True
    collection.objects.link(empty)
    return empty


def _constrain(ob, empty):
    found = next((constraint for constraint in ob.constraints if is_own_constraint(constraint)), None)
    if found is None:
        found = ob.constraints.new("COPY_TRANSFORMS")
        found.name = CONSTRAINT_NAME
    found.target = empty


def _unconstrain(ob):
    for constraint in [found for found in ob.constraints if is_own_constraint(found)]:
        ob.constraints.remove(constraint)


def _resize(rows, count):
    bpy.data.batch_remove([row.empty for row in list(rows)[count:] if row.empty is not None])
    while len(rows) > count:
        rows.remove(len(rows) - 1)
    while len(rows) < count:
        rows.add()


def attach(scene, starts, left_alone=frozenset()):
    """Lets the objects follow, and no others; does nothing where they do already. left_alone: uids of objects that
    may follow or not. Main thread."""
    objects = {ob.session_uid: ob for ob in scene.objects}
    wanted = {start.uid for start in starts} | left_alone
    for ob, _constraint in own_constraints(scene):
        if ob.session_uid not in wanted and ob.is_editable:
            _unconstrain(ob)
    rows = scene.barchan.followers
    _resize(rows, len(starts))
    if not starts:
        _drop_collection(scene)
        return
    collection, root = _collection(scene)
    for row, start in zip(rows, starts):
        row.matrix, row.place, row.turn = start.matrix, start.place, start.turn
        if start.uid in left_alone:
            continue
        row.object = objects.get(start.uid)
        if row.object is None:
            continue
        if row.empty is None:
            row.empty = _new_empty(collection, f"Barchan {row.object.name}")
            row.empty.matrix_parent_inverse = mathutils.Matrix(np.reshape(start.matrix, (4, 4)).tolist())
        row.empty.parent = root
        _constrain(row.object, row.empty)


def detach(scene):
    """All objects are the artist's again. Main thread."""
    attach(scene, ())


def _drop_collection(scene):
    for collection in [child for child in scene.collection.children if COLLECTION_TAG in child]:
        bpy.data.batch_remove([*collection.objects, collection])  # one pass over the file for all


def show(scene, positions, rotations):
    """Places the bodies; positions and rotations of at least all of them. Any thread that may write to the scene."""
    rows = scene.barchan.followers
    count = len(rows)
    if count == 0:
        return
    matrices = motions(rows, positions[:count], rotations[:count])
    for row, matrix in zip(rows, matrices.tolist()):
        if row.empty is not None:
            row.empty.matrix_parent_inverse = mathutils.Matrix(matrix)
            row.empty.update_tag(refresh={"OBJECT"})


# ---------------------------------------------------------------------------------------------------------------------
# Keyframes


def curves(ob):
    """The F-curves of the action of an object or scene, by (path, index). Actions have slots from Blender 4.4 on."""
    data = ob.animation_data
    if data is None or data.action is None:
        return {}
    slot = getattr(data, "action_slot", None)
    if slot is not None:
        bags = [strip.channelbag(slot) for layer in data.action.layers for strip in layer.strips]
        found = [curve for bag in bags if bag is not None for curve in bag.fcurves]
    else:
        found = getattr(data.action, "fcurves", [])
    return {(curve.data_path, curve.array_index): curve for curve in found}


def _write_curves(ob, path, frames, values):
    """Linear keyframes (frame by frame, a column per component) in the place of those that were between them."""
    ob.keyframe_insert(path, frame=frames[0])  # makes the curves where there are none
    found = curves(ob)
    for index in range(values.shape[1]):
        points = found[path, index].keyframe_points
        for point in reversed([point for point in points if frames[0] <= point.co.x <= frames[-1]]):
            points.remove(point, fast=True)
        first = len(points)
        points.add(len(frames))
        pairs, kinds = np.empty(2 * len(points), np.float32), np.empty(len(points), np.int32)
        points.foreach_get("co", pairs)
        points.foreach_get("interpolation", kinds)
        pairs[2 * first :: 2], pairs[2 * first + 1 :: 2] = frames, values[:, index]
        kinds[first:] = LINEAR
        points.foreach_set("co", pairs)
        points.foreach_set("interpolation", kinds)
        found[path, index].update()


def _rotation_values(ob, turns):
    """Path and values (F,k) of the object's own way to be rotated, without jumps, for rotation matrices (F,3,3)."""
    mode = ob.rotation_mode
    values, last = [], None
    if mode not in {"QUATERNION", "AXIS_ANGLE"}:
        back = ob.delta_rotation_euler.to_matrix().inverted()
        for turn in turns:
            matrix = back @ mathutils.Matrix(turn.tolist())
            last = matrix.to_euler(mode, last) if last is not None else matrix.to_euler(mode)
            values.append(tuple(last))
        return "rotation_euler", np.array(values)
    back = ob.delta_rotation_quaternion.inverted() if mode == "QUATERNION" else mathutils.Quaternion()
    for turn in turns:
        quaternion = back @ mathutils.Matrix(turn.tolist()).to_quaternion()
        if last is not None and quaternion.dot(last) < 0.0:
            quaternion.negate()
        last = quaternion
        if mode == "QUATERNION":
            values.append(tuple(quaternion))
        else:
            axis, angle = quaternion.to_axis_angle()
            values.append((angle, *axis))
    return ("rotation_quaternion" if mode == "QUATERNION" else "rotation_axis_angle"), np.array(values)


def _key(ob, frames, bases):
    """Keyframes of location and rotation for the object's own matrices (F,4,4); its scale stays as it is."""
    data = ob.animation_data
    if data is not None and data.action is not None and data.action.users > 1:  # shared with other objects
        data.action = data.action.copy()
    scale = np.array(ob.scale) * np.array(ob.delta_scale)
    _write_curves(ob, "location", frames, bases[:, :3, 3] - np.array(ob.delta_location))
    left, _scales, right = np.linalg.svd(bases[:, :3, :3] / scale)  # the nearest rotation, where a parent shears
    path, values = _rotation_values(ob, left @ right)
    _write_curves(ob, path, frames, values)


def _depth(ob, objects):
    """How many of the objects the object hangs on."""
    depth, ob = 0, ob.parent
    while ob is not None:
        depth += ob in objects
        ob = ob.parent
    return depth


def _parent_parts(context, objects, frames):
    """What stands before each object's own matrix on every frame, by parents and constraints: lists of matrices."""
    found = {ob: [mathutils.Matrix()] * len(frames) for ob in objects}
    hanging = [ob for ob in objects if ob.parent is not None or len(ob.constraints) > 1]
    for ob in hanging:
        found[ob] = []
    for frame in frames if hanging else []:
        context.scene.frame_set(frame)
        depsgraph = context.evaluated_depsgraph_get()
        for ob in hanging:
            evaluated = ob.evaluated_get(depsgraph)
            found[ob].append(evaluated.matrix_world @ evaluated.matrix_basis.inverted())
    return found


def read_motion(scene, indices):
    """Baked frames, and the world matrices (F,B,4,4) of these followers on them. Raises what the core raises."""
    folder = properties.cache_folder(scene)
    frames, _byte_count = engine.core.list_frames(folder)
    rows = [scene.barchan.followers[index] for index in indices]
    found = []
    for frame in frames:
        arrays = engine.core.read_frame(folder, frame)["arrays"]
        found.append(motions(rows, arrays["position"][indices], arrays["rotation"][indices]))
    return frames, np.array(found).reshape(len(frames), len(indices), 4, 4)


def write_keyframes(context, indices):
    """Turns the motion of these followers into keyframes; they do not follow the cache any more afterwards. Number of
    frames. Raises what the core raises, before anything is changed."""
    scene = context.scene
    frames, matrices = read_motion(scene, indices)
    if not frames:
        raise engine.core.CacheError("There are no baked frames in the cache folder; bake first")
    rows = {scene.barchan.followers[index].object: number for number, index in enumerate(indices)}
    frame, subframe = scene.frame_current, scene.frame_subframe
    for depth in sorted({_depth(ob, rows) for ob in rows}):  # parents first: what hangs on them is read from their keys
        level = [ob for ob in rows if _depth(ob, rows) == depth]
        for ob in level:
            next(found for found in ob.constraints if is_own_constraint(found)).mute = True
        parts = _parent_parts(context, level, frames)
        for ob in level:
            own = [part.inverted() @ mathutils.Matrix(m.tolist()) for part, m in zip(parts[ob], matrices[:, rows[ob]])]
            _unconstrain(ob)
            _key(ob, frames, np.array(own, np.float64))
    done = [scene.barchan.followers[index] for index in indices]
    bpy.data.batch_remove([row.empty for row in done if row.empty is not None])
    for row in done:
        row.object = row.empty = None
    if all(row.object is None for row in scene.barchan.followers):
        _drop_collection(scene)
    scene.frame_set(frame, subframe=subframe)
    return len(frames)
