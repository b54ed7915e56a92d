# SPDX-License-Identifier: GPL-3.0-or-later
"""export: Blender meshes -> contiguous NumPy arrays. The only reader of bpy meshes.

Comes in: a scene with objects marked Sand and Collider, or one object. Goes out: a bake.Job, everything in world space and
SI units (one Blender unit is one metre), or the object's Unplaced mesh. Main thread only. Bad geometry is passed on as it
is: the core names what is wrong.
"""

import dataclasses

import numpy as np

from . import bake, properties

STRETCH_DIGITS = 6  # of the scale of an object that count: beyond them rotations leave rounding in it
STRETCH_LEAST = 1e-6  # smallest over largest scale; flatter than that has no way back


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


def _evaluated(ob, depsgraph, cure):
    """The object with its modifiers. BakeError, which closes with the cure, where Blender has not applied them."""
    evaluated = ob.evaluated_get(depsgraph)
    if not evaluated.is_evaluated and len(ob.modifiers) > 0:
        raise bake.BakeError(
            f"Object '{ob.name}' is disabled in the viewport, so its modifiers cannot be applied; "
            f"enable it in the Outliner{cure}"
        )
    return evaluated


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


def read_object(ob, depsgraph):
    """World-space triangles of one object with its modifiers: bake.Source."""
    evaluated = _evaluated(ob, depsgraph, " or set its Barchan type to None")
    vertices, triangles = _read_triangles(evaluated)
    matrix = np.array(evaluated.matrix_world, np.float64)
    if np.linalg.det(matrix[:3, :3]) < 0:  # a mirrored object: keep triangles counter-clockwise seen from outside
        triangles = np.ascontiguousarray(triangles[:, ::-1])
    return bake.Source(ob.name, _transform(vertices, matrix[:3, :3], matrix[:3, 3]), triangles)


def stretch_of(matrix):
    """The symmetric factor S of a (3, 3) matrix = rotation S, rounded so that turned copies get the same bits."""
    squares, axes = np.linalg.eigh(matrix.T @ matrix)
    stretch = (axes * np.sqrt(np.maximum(squares, 0.0))) @ axes.T
    step = 10.0 ** (np.floor(np.log10(max(abs(stretch).max(), 1e-30))) - STRETCH_DIGITS + 1)
    return np.round(stretch / step) * step


def read_unplaced(ob, depsgraph):
    """The object's mesh with modifiers and scale: Unplaced. BakeError with the sentence."""
    evaluated = _evaluated(ob, depsgraph, "")
    stretch = stretch_of(np.array(evaluated.matrix_world, np.float64)[:3, :3])
    scales = np.linalg.eigvalsh(stretch)
    if not np.isfinite(scales).all() or scales[0] <= STRETCH_LEAST * scales[-1]:
        raise bake.BakeError(f"Object '{ob.name}' is scaled to nothing; give it a scale above 0 on every axis")
    vertices, triangles = _read_triangles(evaluated)
    return Unplaced(ob.name, _transform(vertices, stretch, 0.0), triangles, stretch)


def make_job(context):
    """The whole bake as plain arrays and numbers, read at the first frame. Raises bake.BakeError with the sentence.
    The scene is on the frame it was on before when this returns or raises."""
    scene = context.scene
    settings = scene.barchan
    sand = objects_of_type(scene, "SAND")
    if not sand:
        raise bake.BakeError("There is no sand in this scene; select a closed mesh and press Sand")
    frame_start, frame_end = properties.frame_range(scene)
    if frame_end < frame_start:
        raise bake.BakeError(
            f"The frame range is reversed: it starts at {frame_start} and ends at {frame_end}; "
            "set an end that is not before the start"
        )
    frame, subframe = scene.frame_current, scene.frame_subframe
    is_elsewhere = frame != frame_start or subframe != 0.0
    if is_elsewhere:
        scene.frame_set(frame_start)
    try:
        depsgraph = context.evaluated_depsgraph_get()
        sand_sources = tuple(read_object(ob, depsgraph) for ob in sand)
        collider_sources = tuple(read_object(ob, depsgraph) for ob in objects_of_type(scene, "COLLIDER"))
    finally:
        if is_elsewhere:
            scene.frame_set(frame, subframe=subframe)
    return bake.Job(
        sand=sand_sources,
        colliders=collider_sources,
        folder=properties.cache_folder(scene),
        frame_start=frame_start,
        frame_end=frame_end,
        frame_seconds=scene.render.fps_base / scene.render.fps,
        gravity=tuple(scene.gravity) if scene.use_gravity else (0.0, 0.0, 0.0),
        radius=settings.radius,
        shape=settings.shape,
        restitution=settings.restitution,
        friction=settings.friction,
        density=settings.density,
        max_overlap=settings.max_overlap,
        max_speed=settings.max_speed,
        seed=settings.seed,
        threads=settings.threads,
    )
