# SPDX-License-Identifier: GPL-3.0-or-later
"""pushing: bodies that stand in colliders -> the shortest ways out.

Comes in: a job.Job. Goes out: a vector per body, and moved objects. A body belongs to the side of a collider that its centre
of mass is on; its spheres are moved, the deepest first, until none is nearer to a collider than its radius. Main thread.
"""

import mathutils.bvhtree

from . import assembly, properties

ROUND_LIMIT = 200
CLEARANCE = 1e-3  # radii left free when a body is out, so that rounding does not put it back


def _trees(the_job):
    """A tree of triangles per collider as it is on the first frame, and how far its surface reaches out of them, m."""
    found = []
    for one in the_job.colliders:
        vertices = one.vertices
        if one.track is not None:
            vertices = vertices @ assembly.rotation(one.track.samples[0, 3:]).T + one.track.samples[0, :3]
        tree = mathutils.bvhtree.BVHTree.FromPolygons(vertices.tolist(), one.triangles.tolist(), all_triangles=True)
        found.append((tree, the_job.radius if one.is_rough else 0.0))
    return found


def _push(tree, heart, centre, reach):
    """How far, and along which unit vector, a sphere of that reach must move to be clear on the side that heart is on."""
    place, normal, _index, distance = tree.find_nearest(centre)
    if place is None:
        return 0.0, None
    away = centre - heart
    is_through = away.length > 0.0 and tree.ray_cast(heart, away.normalized(), away.length)[0] is not None
    if not is_through and distance >= reach:
        return 0.0, None
    direction = (centre - place).normalized() if distance > 1e-6 * reach else None
    if direction is None:  # the centre lies on the surface: along its normal, to the heart's side
        direction = normal if normal.dot(heart - place) >= 0.0 else -normal
        is_through = False
    return (distance + reach, -direction) if is_through else (reach - distance, direction)


def _way_out(trees, heart, centres, radius):
    """The vector, m; None when there is no free place."""
    moved = mathutils.Vector((0.0, 0.0, 0.0))
    for _round in range(ROUND_LIMIT):
        deepest, way = 0.0, None
        for tree, skin in trees:
            for centre in centres:
                depth, direction = _push(tree, heart + moved, centre + moved, radius + skin)
                if depth > deepest:
                    deepest, way = depth, direction
        if way is None:
            return moved
        moved = moved + way * (deepest + CLEARANCE * radius)
    return None


def ways_out(the_job, uids):
    """{uid: vector in m, zero where the body is free already, or None where it cannot be}. What the core raises."""
    trees = _trees(the_job)
    found = {}
    for one in the_job.bodies:
        if one.uid in uids:
            spheres, _warnings = assembly.sample_body(one, the_job.radius, the_job.seed, the_job.threads)
            turned = assembly.rotation(one.turn)
            centres = [mathutils.Vector(row) for row in (one.place + spheres.centres @ turned.T).tolist()]
            heart = mathutils.Vector((one.place + turned @ spheres.body[1:4]).tolist())
            radius = float(spheres.radii.max()) * (1.0 - 0.5 * assembly.OVERLAP_ALLOWED)
            found[one.uid] = _way_out(trees, heart, centres, radius)
    return found


def move(context, ways):
    """Moves objects, {object: vector in m}, on the first frame of the bake. Where location is animated, the offset on top
    of it is what changes."""
    scene = context.scene
    frame, subframe = scene.frame_current, scene.frame_subframe
    scene.frame_set(properties.frame_range(scene)[0])
    depsgraph = context.evaluated_depsgraph_get()
    steps = {}
    for ob, way in ways.items():
        evaluated = ob.evaluated_get(depsgraph)
        before = evaluated.matrix_world @ evaluated.matrix_basis.inverted()
        steps[ob] = before.to_3x3().inverted() @ way
    for ob, step in steps.items():
        if ob.animation_data is None or ob.animation_data.action is None:
            ob.location += step
        else:
            ob.delta_location += step
    scene.frame_set(frame, subframe=subframe)
