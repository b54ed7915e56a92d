# SPDX-License-Identifier: GPL-3.0-or-later
"""export: Blender meshes -> contiguous NumPy arrays. The only reader of bpy meshes.

Comes in: a scene with marked objects, or one object. Goes out: a job.Job, everything in SI units (one Blender unit is one
metre), or the object's Unplaced mesh. What is animated is read over the whole frame range before the bake starts, in slices where a
window waits, so that the timeline is free all the time. Main thread only. Bad geometry is passed on as it is: the core names what is wrong.
"""

import dataclasses
import hashlib
import fractions
import math
import time

import bpy
import numpy as np

from . import body, job, properties
from .job import BakeError

STRETCH_DIGITS = 6  # of the scale of an object that count: beyond them rotations leave rounding in it
STRETCH_LEAST = 1e-6  # smallest over largest scale; flatter than that has no way back
STRETCH_CHANGE = 1e-4  # share of the scale by which it may differ between frames and still count as the same
TAIL_SECONDS = 0.25  # after the last frame that what is animated is read: longer than steps look ahead
STILL = 1e-6  # share of its size by which an object may differ between frames and still count as standing

# Modifiers that give the same mesh on every frame unless their own settings are animated.
STILL_MODIFIERS = set(
    """BEVEL DECIMATE EDGE_SPLIT MULTIRES REMESH SKIN SOLIDIFY SUBSURF TRIANGULATE WEIGHTED_NORMAL WELD WIREFRAME""".split()
)


@dataclasses.dataclass(frozen=True)
class Unplaced:
    """One mesh in metres along its object's axes: the scale is applied, rotation and place are not. stretch, (3, 3)
    float64, symmetric, is what was applied; the object's matrix times its inverse is a rotation, or a mirrored one."""

    name: str
    vertices: np.ndarray  # (N,3) float32
    triangles: np.ndarray  # (M,3) int32
    stretch: np.ndarray


def objects_of_type(scene, object_type):
    """Mesh objects of the scene marked with this type, ordered by name so that the order is the same in every session."""
    found = [ob for ob in scene.objects if ob.type == "MESH" and ob.barchan.type == object_type]
    return sorted(found, key=lambda ob: ob.name)


# ---------------------------------------------------------------------------------------------------------------------
# One object on one frame


def _evaluated(ob, depsgraph, cure):
    """The object with its modifiers. BakeError, which closes with the cure, where Blender has not applied them."""
    evaluated = ob.evaluated_get(depsgraph)
    if not evaluated.is_evaluated and (len(ob.modifiers) > 0 or may_move(ob)):
        raise BakeError(
            f"Object '{ob.name}' is disabled in the viewport, so its modifiers and animation cannot be applied; "
            f"enable it in the Outliner{cure}"
        )
    return evaluated


def _evaluated_mark(ob, depsgraph):
    return _evaluated(ob, depsgraph, " or set its Barchan type to None")


def _read_triangles(evaluated):
    """Vertices (N,3) float32 and triangles (M,3) int32 in the object's local space."""
    mesh = evaluated.to_mesh()
    try:
        vertices = np.empty((len(mesh.vertices), 3), np.float32)
        mesh.vertices.foreach_get("co", vertices.ravel())
        mesh.calc_loop_triangles()
        triangles = np.empty((len(mesh.loop_triangles), 3), np.int32)
        mesh.loop_triangles.foreach_get("vertices", triangles.ravel())
    finally:
        evaluated.to_mesh_clear()
    return vertices, triangles


def _transform(vertices, linear, origin):
    with np.errstate(over="ignore", invalid="ignore"):  # non-finite vertices are reported by the core, with their number
        return (vertices @ linear.T + origin).astype(np.float32)


def _outwards(triangles, matrix):
    """The triangles, turned round where the matrix mirrors: counter-clockwise seen from outside."""
    return np.ascontiguousarray(triangles[:, ::-1]) if np.linalg.det(matrix[:3, :3]) < 0 else triangles


def read_object(ob, depsgraph):
    """World-space triangles of one object with its modifiers: job.Source."""
    evaluated = _evaluated_mark(ob, depsgraph)
    vertices, triangles = _read_triangles(evaluated)
    matrix = np.array(evaluated.matrix_world, np.float64)
    return job.Source(ob.name, _transform(vertices, matrix[:3, :3], matrix[:3, 3]), _outwards(triangles, matrix))


def read_surface(ob, depsgraph):
    """What is seen of an object: world-space vertices, triangles and their material slots as arrays, and whether most of its
    faces are smooth; None where it has no faces."""
    evaluated = ob.evaluated_get(depsgraph)
    try:
        mesh = evaluated.to_mesh()
    except RuntimeError:  # objects without geometry
        return None
    try:
        if mesh is None or len(mesh.polygons) == 0:
            return None
        smooth = np.empty(len(mesh.polygons), bool)
        mesh.polygons.foreach_get("use_smooth", smooth)
        mesh.calc_loop_triangles()
        slots = np.empty(len(mesh.loop_triangles), np.int32)
        mesh.loop_triangles.foreach_get("material_index", slots)
    finally:
        evaluated.to_mesh_clear()
    vertices, triangles = _read_triangles(evaluated)
    matrix = np.array(evaluated.matrix_world, np.float64)
    placed = _transform(vertices, matrix[:3, :3], matrix[:3, 3])
    return placed, _outwards(triangles, matrix), slots, bool(smooth.mean() > 0.5)


def stretch_of(matrix):
    """The symmetric factor S of a (3, 3) matrix = rotation S, rounded so that turned copies get the same bits."""
    squares, axes = np.linalg.eigh(matrix.T @ matrix)
    stretch = (axes * np.sqrt(np.maximum(squares, 0.0))) @ axes.T
    step = 10.0 ** (np.floor(np.log10(max(abs(stretch).max(), 1e-30))) - STRETCH_DIGITS + 1)
    return np.round(stretch / step) * step


def _placed_stretch(name, matrix):
    """stretch_of an object's matrix. BakeError where there is no way back."""
    stretch = stretch_of(matrix[:3, :3])
    scales = np.linalg.eigvalsh(stretch)
    if not np.isfinite(scales).all() or scales[0] <= STRETCH_LEAST * scales[-1]:
        raise BakeError(f"Object '{name}' is scaled to nothing; give it a scale above 0 on every axis")
    return stretch


def read_unplaced(ob, depsgraph):
    """The object's mesh with modifiers and scale: Unplaced. BakeError with the sentence."""
    evaluated = _evaluated(ob, depsgraph, "")
    stretch = _placed_stretch(ob.name, np.array(evaluated.matrix_world, np.float64))
    vertices, triangles = _read_triangles(evaluated)
    return Unplaced(ob.name, _transform(vertices, stretch, 0.0), triangles, stretch)


# ---------------------------------------------------------------------------------------------------------------------
# Poses


def _quaternion(rotation):
    """w x y z of a (3, 3) rotation, by its largest component (Shepperd 1978)."""
    trace = np.trace(rotation)
    diagonal = np.array((trace, rotation[0, 0], rotation[1, 1], rotation[2, 2]))
    largest = int(diagonal.argmax())
    q = np.empty(4)
    if largest == 0:
        q[:] = (
            1.0 + trace,
            rotation[2, 1] - rotation[1, 2],
            rotation[0, 2] - rotation[2, 0],
            rotation[1, 0] - rotation[0, 1],
        )
    else:
        i = largest - 1
        j, k = (i + 1) % 3, (i + 2) % 3
        q[0] = rotation[k, j] - rotation[j, k]
        q[1 + i] = 1.0 + rotation[i, i] - rotation[j, j] - rotation[k, k]
        q[1 + j] = rotation[j, i] + rotation[i, j]
        q[1 + k] = rotation[k, i] + rotation[i, k]
    return q / np.linalg.norm(q)


def side_of(matrix):
    """1, or -1 for a mirrored object. A mirrored one is its mesh turned through its origin, and then rotated."""
    return -1.0 if np.linalg.det(matrix[:3, :3]) < 0 else 1.0


def pose_of(matrix, stretch):
    """Place (3,) and turn (4,), w x y z, of an object's matrix: matrix = turn * side_of * stretch."""
    left, _scales, right = np.linalg.svd(side_of(matrix) * matrix[:3, :3] @ np.linalg.inv(stretch))
    return matrix[:3, 3].copy(), _quaternion(left @ right)


def _track(matrices, stretch, interval):
    """Poses in a row, with quaternions that do not change sign on the way."""
    samples = np.empty((len(matrices), 7))
    for index, matrix in enumerate(matrices):
        samples[index, :3], samples[index, 3:] = pose_of(matrix, stretch)
        if index and samples[index, 3:] @ samples[index - 1, 3:] < 0:
            samples[index, 3:] *= -1.0
    return job.Track(interval, samples)


# ---------------------------------------------------------------------------------------------------------------------
# Over the timeline


def _is_animated(block):
    data = block.animation_data if block is not None else None
    return data is not None and (data.action is not None or len(data.drivers) > 0 or len(data.nla_tracks) > 0)


def may_move(ob):
    """False when nothing is there that could move or scale the object between frames."""
    while ob is not None:
        others = [constraint for constraint in ob.constraints if not properties.is_own_constraint(constraint)]
        if _is_animated(ob) or others or ob.rigid_body is not None:
            return True
        if ob.parent is not None and ob.parent_type != "OBJECT":  # a bone, a vertex: may follow anything
            return True
        ob = ob.parent
    return False


def may_bend(ob):
    """False when nothing is there that could change the object's mesh between frames."""
    if ob.data.shape_keys is not None or _is_animated(ob.data):
        return True
    return any(modifier.type not in STILL_MODIFIERS or _is_animated(ob) for modifier in ob.modifiers)


class _Watch:
    """One object over the timeline: its matrix at every sample and, where it may bend, its mesh. It is looked at for a while
    after the last frame, so that what is baked does not depend on where the range ends; how it moves there does not decide
    what it is."""

    def __init__(self, ob, samples, last_frame, tail_frame, is_shape_read):
        self.uid, self.name = ob.session_uid, ob.name  # an undo between two looks replaces the object
        self.samples = samples  # per frame
        self.last_frame, self.tail_frame = last_frame, tail_frame
        self.count = 0  # samples up to the last frame
        self.is_over = False  # another mesh after the last frame
        self.matrices = []
        self.shapes = [] if is_shape_read else None  # a shape like the first one is the first one

    def look(self, ob, depsgraph, frame):
        evaluated = _evaluated_mark(ob, depsgraph)
        matrix = np.array(evaluated.matrix_world, np.float64)
        if frame <= self.last_frame:
            self.count += 1
        if self.shapes is None:
            self.matrices.append(matrix)
            return
        vertices, triangles = _read_triangles(evaluated)
        if frame > self.last_frame and (len(vertices) != len(self.shapes[0]) or not np.array_equal(triangles, self.triangles)):
            self.is_over = True
            return
        self.matrices.append(matrix)
        if not self.shapes:
            self.first_frame, self.triangles = frame, triangles
            self.shapes.append(vertices)
            return
        first = self.shapes[0]
        if len(vertices) != len(first) or not np.array_equal(triangles, self.triangles):
            raise BakeError(
                f"The mesh of '{self.name}' has {len(vertices)} vertices and {len(triangles)} triangles on frame "
                f"{float(frame):g}, but {len(first)} and {len(self.triangles)}, or joined otherwise, on frame "
                f"{self.first_frame}; it may bend during a bake, but it must keep its vertices and faces"
            )
        limit = STILL * np.abs(first).max(initial=0.0)
        self.shapes.append(first if (np.abs(vertices - first) <= limit).all() else vertices)

    def stretch_change(self):
        """The index of the first sample at which the object's scale is another than at the start; -1 = none."""
        first = stretch_of(self.matrices[0][:3, :3])
        for index, matrix in enumerate(self.matrices[: self.count]):
            difference = np.abs(stretch_of(matrix[:3, :3]) - first).max()
            if difference > STRETCH_CHANGE * np.abs(first).max() or side_of(matrix) != side_of(self.matrices[0]):
                return index
        return -1

    def is_bending(self):
        return self.shapes is not None and any(shape is not self.shapes[0] for shape in self.shapes[: self.count])

    def is_moving(self):
        first = self.matrices[0]
        limit = STILL * np.abs(first).max()
        return any(np.abs(matrix - first).max() > limit for matrix in self.matrices[: self.count])

    def world_shapes(self, vertices):
        """(F,N,3) float32; vertices = those of the mesh where no shapes were read."""
        shapes = self.shapes if self.shapes is not None else [vertices] * len(self.matrices)
        return np.stack([_transform(v, m[:3, :3], m[:3, 3]) for v, m in zip(shapes, self.matrices)])


# ---------------------------------------------------------------------------------------------------------------------
# Objects of each type


def _contact(ob):
    settings = ob.barchan
    return job.Contact(settings.friction, settings.restitution, settings.stiffness)


def _read_collider(ob, depsgraph, watch, interval):
    """Standing, moving or bending, by what was seen of it; watch None = nothing can move it."""
    evaluated = _evaluated_mark(ob, depsgraph)
    vertices, triangles = _read_triangles(evaluated)
    matrix = np.array(evaluated.matrix_world, np.float64)
    triangles = _outwards(triangles, matrix)
    common = {"contact": _contact(ob), "is_rough": ob.barchan.is_rough}
    is_reshaped = watch is not None and (watch.is_bending() or watch.stretch_change() >= 0)
    if is_reshaped and ob.barchan.is_rough:
        raise BakeError(
            f"Collider '{ob.name}' is rough and changes its shape or scale, which only smooth colliders may; "
            "switch Rough off or remove the change"
        )
    if is_reshaped:
        frames = watch.world_shapes(vertices)
        interval /= watch.samples
        return job.Collider(ob.name, frames[0], triangles, frames=frames, frames_interval=interval, **common)
    if watch is not None and watch.is_moving():
        stretch = _placed_stretch(ob.name, matrix)
        own = _transform(vertices, side_of(matrix) * stretch, 0.0)
        return job.Collider(
            ob.name, own, triangles, track=_track(watch.matrices, stretch, interval / watch.samples), **common
        )
    return job.Collider(ob.name, _transform(vertices, matrix[:3, :3], matrix[:3, 3]), triangles, **common)


def _read_spheres(ob, unplaced):
    """The spheres that the object was converted to: job.Spheres, None when it was not. BakeError when it has changed."""
    if ob.barchan.body is None:
        return None
    spheres = body.spheres(ob)
    if spheres is None or not body.is_made_of(ob, unplaced.vertices):
        raise BakeError(
            f"Body '{ob.name}' has changed since it was converted to a particle body; convert it again or remove the body"
        )
    return spheres


def is_let_go_at_once(ob, frame_start):
    return ob.barchan.release_frame != 0 and ob.barchan.release_frame <= frame_start


def _read_body(ob, depsgraph, watch, frame_start, frame_seconds):
    settings = ob.barchan
    if not ob.is_editable:
        raise BakeError(f"Body '{ob.name}' is linked from another file; make it local or a library override first")
    unplaced = read_unplaced(ob, depsgraph)
    matrix = np.array(ob.evaluated_get(depsgraph).matrix_world, np.float64)
    side = side_of(matrix)
    place, turn = pose_of(matrix, unplaced.stretch)
    spheres = _read_spheres(ob, unplaced)
    if spheres is not None and side < 0:
        mirrored = spheres.body.copy()
        mirrored[1:4] *= -1.0
        spheres = job.Spheres(-spheres.centres, spheres.radii, mirrored)
    track, release = None, 0.0
    if watch is not None:
        change = watch.stretch_change()
        if change >= 0:
            raise BakeError(
                f"Body '{ob.name}' is scaled by its animation (frame {frame_start + change / watch.samples:g}), but a rigid "
                "body keeps its size; remove the keyframes of its scale"
            )
    if settings.is_driven and not is_let_go_at_once(ob, frame_start):
        matrices, samples = (watch.matrices, watch.samples) if watch is not None else ([matrix], 1)
        track = _track(matrices, unplaced.stretch, frame_seconds / samples)
        release = max(0.0, (settings.release_frame - frame_start) * frame_seconds) if settings.release_frame else 0.0
    return job.Body(
        name=ob.name,
        vertices=unplaced.vertices * np.float32(side),
        triangles=_outwards(unplaced.triangles, matrix),
        place=place,
        turn=turn,
        spheres=spheres,
        fill=settings.fill,
        radius=settings.body_radius,
        density=settings.density,
        mass=settings.mass if settings.mass_from == "MASS" else 0.0,
        velocity=tuple(settings.velocity),
        spin=tuple(settings.spin),
        track=track,
        release=release,
        contact=_contact(ob),
        uid=ob.session_uid,
        matrix=matrix,
    )


def _read_grains(settings, depsgraph):
    """job.Grains of the scene's settings or of an object's own."""
    mesh, ob = None, settings.grain_object
    if settings.shape == "CUSTOM":
        if ob is None or ob.type != "MESH":
            raise BakeError("The grain shape is Custom, but no grain object is chosen; choose a closed mesh or another shape")
        # A grain object need not be in the scene: then it has no evaluated copy, and its mesh is taken as it is.
        found = read_unplaced(ob, depsgraph)
        side = np.float32(side_of(np.array(ob.matrix_world, np.float64)))
        mesh = job.Source(
            ob.name, found.vertices * side, found.triangles[:, ::-1] if side < 0 else found.triangles, uid=ob.session_uid
        )
    is_equal = settings.size_kind == "EQUAL"
    return job.Grains(
        radius=settings.radius,
        shape=settings.shape,
        rod_count=settings.rod_count,
        mesh=mesh,
        clump_count=settings.clump_count,
        size_kind=settings.size_kind,
        size_low=1.0 if is_equal else settings.size_low,
        size_high=1.0 if is_equal else settings.size_high,
        size_spread=settings.size_spread,
        density=settings.density,
        restitution=settings.restitution,
        friction=settings.friction,
        rolling=settings.rolling,
        bond=settings.bond,
    )


def _own_grains(ob, depsgraph):
    return _read_grains(ob.barchan.grains, depsgraph) if ob.barchan.own_grains else None


def _read_sand(ob, depsgraph):
    return dataclasses.replace(read_object(ob, depsgraph), grains=_own_grains(ob, depsgraph))


def _read_emitter(ob, depsgraph, watch, frame_start, frame_end, frame_seconds):
    settings = ob.barchan
    source = read_object(ob, depsgraph)
    vertices, track = source.vertices, None
    if watch is not None and watch.is_moving():
        change = watch.stretch_change()
        if change >= 0:
            raise BakeError(
                f"Emitter '{ob.name}' is scaled by its animation (frame {frame_start + change / watch.samples:g}); an emitter may "
                "move and turn, but keeps its size: remove the keyframes of its scale"
            )
        unplaced = read_unplaced(ob, depsgraph)
        vertices = unplaced.vertices * np.float32(side_of(watch.matrices[0]))
        track = _track(watch.matrices, unplaced.stretch, frame_seconds / watch.samples)
    begin, end = frame_start, frame_end
    if settings.use_range:
        if settings.emit_end <= settings.emit_start:
            raise BakeError(
                f"Emitter '{ob.name}' starts at frame {settings.emit_start} and stops at frame {settings.emit_end}; "
                "let it stop after it starts"
            )
        begin, end = max(begin, settings.emit_start), min(end, settings.emit_end)
    return job.Emitter(
        source.name,
        vertices,
        source.triangles,
        emit_from=settings.emit_from,
        rate=settings.rate,
        velocity=tuple(settings.velocity),
        begin=(begin - frame_start) * frame_seconds,
        end=(end - frame_start) * frame_seconds,
        target_count=settings.target_count,
        grains=_own_grains(ob, depsgraph),
        track=track,
        inherit=settings.inherit,
    )


def _read_box(ob, depsgraph, what):
    """Lowest and highest corner of the box around a mesh."""
    source = read_object(ob, depsgraph)
    if len(source.vertices) == 0 or not np.isfinite(source.vertices).all():
        raise BakeError(f"{what} '{ob.name}' has no vertices, or some that are no numbers; give it a mesh with a size")
    low, high = source.vertices.min(axis=0), source.vertices.max(axis=0)
    return tuple(map(float, low)), tuple(map(float, high))


def _read_outflow(ob, depsgraph):
    return job.Outflow(ob.name, *_read_box(ob, depsgraph, "Outflow"))


def _read_force(ob, depsgraph):
    return job.Force(ob.name, *_read_box(ob, depsgraph, "Force"), tuple(ob.barchan.acceleration))


# ---------------------------------------------------------------------------------------------------------------------
# What a panel can see of a change

NO_SETTINGS = {"folder", "display", "threads", "engine", "checkpoint_interval", "keep_interval", "is_exact", "disk_limit", "carrier",
               "followers", "body_count", "baked_settings", "use_scene_range", "frame_start", "frame_end", "name",
               "rna_type", "shown_as", "was_rendered", "body", "preview", "show_body", "home", "source_folder",
               "source_body_count", "quality"}  # fmt: skip


def _values(group):
    """The settings of a property group that change what is baked, as text."""
    found = []
    for prop in group.bl_rna.properties:
        if prop.identifier not in NO_SETTINGS:
            value = getattr(group, prop.identifier)
            if isinstance(value, bpy.types.PropertyGroup):
                value = _values(value) if group.own_grains else ""
            elif isinstance(value, bpy.types.ID):
                value = value.name
            found.append((prop.identifier, tuple(value) if getattr(prop, "is_array", False) else value))
    return repr(found)


def fingerprint(scene):
    """Text that differs when settings, marked objects, their places or the size of their meshes differ. Made for panels: it
    reads no vertex and evaluates nothing, so a mesh that was bent without a vertex more or less goes unnoticed here."""
    render = scene.render
    parts = [_values(scene.barchan), repr((properties.frame_range(scene)[0], render.fps, render.fps_base))]
    parts.append(repr(tuple(scene.gravity) if scene.use_gravity else None))
    for ob in sorted(scene.objects, key=lambda ob: ob.name):
        if ob.type != "MESH" or ob.barchan.type == "NONE":
            continue
        parts.append(repr((ob.name, len(ob.data.vertices), len(ob.data.polygons), len(ob.modifiers))))
        parts.append(_values(ob.barchan))
        if not may_move(ob):
            owner = ob
            while owner is not None:  # the artist's own transform: a body that follows the bake keeps it
                parts.append(repr([tuple(row) for row in owner.matrix_basis]))
                owner = owner.parent
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


# ---------------------------------------------------------------------------------------------------------------------
# The job


def _check_other_scenes(scene, marked):
    """An object in two scenes can follow one bake only, and two bakes cannot share a folder."""
    names = {ob.name for ob in marked}
    for other in bpy.data.scenes:
        shared = sorted(names.intersection(ob.name for ob in other.objects)) if other != scene else []
        if not shared or other.barchan.carrier is None:
            continue
        if properties.cache_folder(other) == properties.cache_folder(scene):
            raise BakeError(
                f"Object '{shared[0]}' is in the bake of scene '{other.name}' too, with the same cache folder; give one of "
                "the scenes another folder or free that bake"
            )
        followers = {row.object.name for row in other.barchan.followers if row.object is not None}
        taken = sorted(names & followers)
        if taken:
            raise BakeError(
                f"Body '{taken[0]}' follows the bake of scene '{other.name}' already; free that bake, or use a copy of the "
                "object in one of the scenes"
            )


def _watches(colliders, bodies, emitters, frame_start, frame_end, tail_end):
    """Who must be watched over the timeline, by session_uid; the others stand still."""
    found = {}
    for ob in colliders:
        if may_move(ob) or may_bend(ob):
            found[ob.session_uid] = _Watch(ob, ob.barchan.samples, frame_end, tail_end, may_bend(ob))
    for ob in emitters:
        if may_move(ob):
            found[ob.session_uid] = _Watch(ob, ob.barchan.samples, frame_end, tail_end, False)
    for ob in bodies:
        if not may_move(ob):
            continue
        settings = ob.barchan
        is_driven = settings.is_driven and not is_let_go_at_once(ob, frame_start)
        is_released = is_driven and settings.release_frame != 0
        last, tail = (min(frame, settings.release_frame) if is_released else frame for frame in (frame_end, tail_end))
        found[ob.session_uid] = _Watch(ob, settings.samples if is_driven else 1, last, tail, False)
    return found


READ_AS = (  # field of job.Job, type of object
    ("sand", "SAND"),
    ("colliders", "COLLIDER"),
    ("bodies", "BODY"),
    ("emitters", "EMITTER"),
    ("outflows", "OUTFLOW"),
    ("forces", "FORCE"),
)
# Modifiers whose state on a frame comes from the frame before it.
ORDERED_MODIFIERS = {"CLOTH", "DYNAMIC_PAINT", "FLUID", "PARTICLE_SYSTEM", "SOFT_BODY"}


def _has_simulation(tree, seen):
    if tree is None or tree in seen:
        return False
    seen.add(tree)
    return any(
        node.bl_idname == "GeometryNodeSimulationOutput" or _has_simulation(getattr(node, "node_tree", None), seen)
        for node in tree.nodes
    )


def is_ordered(scene):
    """True when Blender simulates something in the scene: its frames are right only when they come one after the other."""
    seen = set()
    return any(
        ob.rigid_body is not None
        or any(
            modifier.type in ORDERED_MODIFIERS or (modifier.type == "NODES" and _has_simulation(modifier.node_group, seen))
            for modifier in ob.modifiers
        )
        for ob in scene.objects
    )


class Reading:
    """A scene that is being read, one slice after the other, on the main thread.

    Between two slices the user may scrub, edit, undo, delete. With keeps_frame the timeline is on the user's frame then,
    unless the scene is_ordered: such a scene waits on the frame that was read last, and a scrub ends the reading. What would
    make the job wrong ends it with a sentence. Who does not read to the end calls stop()."""

    def __init__(self, context, keeps_frame=False):
        """BakeError with the sentence."""
        scene = context.scene
        self.scene_uid, self.scene_name, self.layer_name = scene.session_uid, scene.name, context.view_layer.name
        self.job = None  # job.Job, once all is read
        self.fraction = 0.0  # that is read
        self.is_cancelled = False  # a wish: whoever advances looks at it
        marked = {kind: objects_of_type(scene, kind) for _what, kind in READ_AS}
        if not (marked["SAND"] or marked["BODY"] or marked["EMITTER"]):
            raise BakeError("There is no sand in this scene; select a closed mesh and press Sand")
        self._start, self._end = properties.frame_range(scene)
        if self._end < self._start:
            raise BakeError(
                f"The frame range is reversed: it starts at {self._start} and ends at {self._end}; "
                "set an end that is not before the start"
            )
        sand, colliders, bodies, emitters = (marked[kind] for kind in ("SAND", "COLLIDER", "BODY", "EMITTER"))
        _check_other_scenes(scene, sand + colliders + bodies + emitters)
        self._frame_seconds = scene.render.fps_base / scene.render.fps
        self._tail = self._end + math.ceil(TAIL_SECONDS / self._frame_seconds)
        self._watches = _watches(colliders, bodies, emitters, self._start, self._end, self._tail)
        # From here on objects are known by number: an undo between two slices replaces them.
        self._marked = {kind: [(ob.session_uid, ob.name) for ob in found] for kind, found in marked.items()}
        self._settings = None  # fingerprint on the first frame
        self._keeps_frame = keeps_frame and not is_ordered(scene)
        self._home = (scene.frame_current, scene.frame_subframe)  # where the user wants the timeline
        self._at = None  # where the timeline was left, when it was not put back
        self._problem = ""
        self._is_busy = False  # inside a slice: what changes then is our own doing
        self._steps = self._read()

    def scene(self):
        """Looked up anew, because an undo replaces it. BakeError when it was removed."""
        found = next((scene for scene in bpy.data.scenes if scene.session_uid == self.scene_uid), None)
        if found is None:
            raise BakeError(f"Scene '{self.scene_name}' was removed while its animation was read")
        return found

    def text(self):
        return f"Exporting {100 * self.fraction:.0f} %"

    def cancel(self):
        self.is_cancelled = True

    def disturb(self, sentence):
        """Something changed between two slices that makes what was read worthless; the next slice says so."""
        if not self._is_busy:
            self._problem = self._problem or sentence

    def advance(self, context, seconds=0.0):
        """Reads for about so many seconds, one sample at least: True when the job is there. BakeError with the sentence. With
        either the timeline is on the user's frame."""
        scene = self.scene()
        now = (scene.frame_current, scene.frame_subframe)
        if self._at is None:
            self._home = now
        elif now != self._at:
            self._home = now
            self.disturb(
                "The frame was changed while the animation was read, and what Blender simulates is read frame by frame; press "
                "the button again, and leave the timeline alone while it says Exporting"
            )
        is_over = True
        try:
            if self._problem:
                raise BakeError(self._problem)
            self._context, self._is_busy = context, True
            end = time.monotonic() + seconds
            is_over = next(self._steps, "over") == "over"
            while not is_over and time.monotonic() < end:
                is_over = next(self._steps, "over") == "over"
        finally:
            self._is_busy = False
            if is_over or self._keeps_frame:
                self.stop()
            else:
                self._at = (scene.frame_current, scene.frame_subframe)
        return is_over

    def stop(self):
        """Puts the timeline on the user's frame, where there still is a scene."""
        scene = next((scene for scene in bpy.data.scenes if scene.session_uid == self.scene_uid), None)
        if scene is not None and (scene.frame_current, scene.frame_subframe) != self._home:
            scene.frame_set(self._home[0], subframe=self._home[1])
        self._at = None

    def _depsgraph(self, frame, share=0, is_forced=False):
        """The scene evaluated at a time."""
        scene = self.scene()
        if is_forced or (scene.frame_current, scene.frame_subframe) != (frame, float(share)):
            scene.frame_set(frame, subframe=float(share))
        return self._context.evaluated_depsgraph_get()

    def _object(self, uid, name):
        found = next((ob for ob in self.scene().objects if ob.session_uid == uid), None)
        if found is None:
            raise BakeError(f"Object '{name}' was removed while the animation was read; press the button again")
        return found

    def _read(self):
        """Reads everything; a step is one time of what is animated, or one object."""
        yield from self._walk(list(self._watches.values()))
        depsgraph = self._depsgraph(self._start)
        self._compare()
        read = {"grains": _read_grains(self.scene().barchan, depsgraph)}
        for what, kind in READ_AS:
            found = []
            for uid, name in self._marked[kind]:
                found.append(self._read_marked(kind, self._object(uid, name), self._depsgraph(self._start)))
                yield
            read[what] = tuple(found)
        self._depsgraph(self._start)
        self._compare()
        self.job = self._make_job(read)

    def _compare(self):
        """On the first frame: BakeError when settings are others than when this was called first."""
        settings = fingerprint(self.scene())
        self._settings = self._settings or settings
        if settings != self._settings:
            raise BakeError("The scene was changed while its animation was read; press the button again")

    def _walk(self, watches):
        """Looks at every watched object at its own times, in one pass over the frames."""
        shares = sorted({fractions.Fraction(k, watch.samples) for watch in watches for k in range(watch.samples)})
        for frame in range(self._start, self._tail + 1) if watches else ():
            self.fraction = (frame - self._start) / (self._tail - self._start + 1)
            for share in shares:
                when = frame + share
                due = [w for w in watches if when <= w.tail_frame and not w.is_over and (share * w.samples).denominator == 1]
                if due:
                    depsgraph = self._depsgraph(frame, share, is_forced=True)
                    if frame == self._start and share == 0:
                        self._compare()
                    for watch in due:
                        watch.look(self._object(watch.uid, watch.name), depsgraph, when)
                    yield

    def _read_marked(self, kind, ob, depsgraph):
        watch, start, seconds = self._watches.get(ob.session_uid), self._start, self._frame_seconds
        if kind == "SAND":
            return _read_sand(ob, depsgraph)
        if kind == "COLLIDER":
            return _read_collider(ob, depsgraph, watch, seconds)
        if kind == "BODY":
            return _read_body(ob, depsgraph, watch, start, seconds)
        if kind == "EMITTER":
            return _read_emitter(ob, depsgraph, watch, start, self._end, seconds)
        return _read_outflow(ob, depsgraph) if kind == "OUTFLOW" else _read_force(ob, depsgraph)

    def _make_job(self, read):
        scene = self.scene()
        settings = scene.barchan
        return job.Job(
            **read,
            folder=properties.cache_folder(scene),
            frame_start=self._start,
            frame_end=self._end,
            frame_seconds=self._frame_seconds,
            gravity=tuple(scene.gravity) if scene.use_gravity else (0.0, 0.0, 0.0),
            drag=settings.drag,
            wind=tuple(settings.wind),
            radius=settings.radius,
            shape=settings.shape,
            density=settings.density,
            max_overlap=settings.max_overlap,
            max_speed=settings.max_speed,
            sleep_speed=settings.sleep_speed,
            seed=settings.seed,
            threads=settings.threads,
            engine=settings.engine,
            checkpoint_interval=settings.checkpoint_interval,
            keep_interval=settings.keep_interval,
            is_exact=settings.is_exact,
            byte_limit=properties.byte_limit(scene),
        )


def make_job(context, tell=lambda fraction: None):
    """The whole bake as plain arrays and numbers, read at once. Raises BakeError with the sentence. tell(0 to 1) is called on
    the way. The scene is on the frame it was on before when this returns or raises."""
    reading = Reading(context)
    try:
        tell(0.0)
        while not reading.advance(context):
            tell(reading.fraction)
        return reading.job
    finally:
        reading.stop()
