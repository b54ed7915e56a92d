# SPDX-License-Identifier: GPL-3.0-or-later
"""A drum with lifters turns on its keyframes, sand and a wooden cube inside."""

import math

from common import (
    FPS,
    Example,
    add_box,
    add_copy,
    add_mesh,
    add_stage,
    animate,
    box_mesh,
    glass_material,
    joined,
    main,
    mark,
    only_for_the_camera,
    plain_material,
)

DRUM_RADIUS = 0.5  # m
DRUM_LENGTH = 0.5
SEGMENTS = 96
LIFTERS = 6
LIFTER = (0.025, 0.08)  # m: thickness, height
SPEED = 0.3  # turns a second
CUBE = 0.17
SAND_LEVEL = 0.10  # m above the axis, before the grains settle


def circle(count, radius, begin=0.0, end=2 * math.pi):
    """(x, z) of points along an arc, both ends included when it is open."""
    steps = count if end - begin >= 2 * math.pi else count - 1
    angles = [begin + (end - begin) * k / steps for k in range(count)]
    return [(radius * math.cos(a), radius * math.sin(a)) for a in angles]


def prism(outline, length):
    """Vertices and faces of an outline in the x-z plane, closed, along y about the middle: sides, front, back."""
    count = len(outline)
    vertices = [(x, side * length / 2, z) for side in (-1, 1) for x, z in outline]
    sides = [(count + k, count + (k + 1) % count, (k + 1) % count, k) for k in range(count)]
    return vertices, sides + [tuple(range(count)), tuple(reversed(range(count, 2 * count)))]


def lifter(index):
    """A box that stands on the inside of the drum."""
    thickness, height = LIFTER
    vertices, faces = box_mesh(
        (DRUM_RADIUS - height, -DRUM_LENGTH / 2, -thickness / 2), (DRUM_RADIUS + 0.002, DRUM_LENGTH / 2, thickness / 2)
    )
    c, s = math.cos(2 * math.pi * index / LIFTERS), math.sin(2 * math.pi * index / LIFTERS)
    return [(x * c - z * s, y, x * s + z * c) for x, y, z in vertices], faces


def add_drum():
    """Shell, back and lifters of steel, the front of glass."""
    parts = [prism(circle(SEGMENTS, DRUM_RADIUS), DRUM_LENGTH)] + [lifter(k) for k in range(LIFTERS)]
    drum = add_mesh("Drum", *joined(parts), plain_material("Drum", (0.35, 0.37, 0.40), 0.35, 0.9))
    drum.data.materials.append(glass_material(edge=0.3))
    drum.data.polygons[SEGMENTS].material_index = 1
    only_for_the_camera(drum)
    return drum


def build(scene, size):
    radius = scene.barchan.radius
    height = DRUM_RADIUS + 0.06
    drum = add_drum()
    drum.location.z = height
    turn = 2 * math.pi * SPEED * (size.frames - size.start) / FPS
    animate(drum, "rotation_euler", {1: (0.0, 0.0, 0.0), size.start: (0.0, 0.0, 0.0), size.frames: (0.0, turn, 0.0)})
    mark(drum, "COLLIDER", friction=0.5, restitution=0.2, samples=4)
    edge = DRUM_RADIUS - 0.1 * radius - DRUM_RADIUS * (1 - math.cos(math.pi / SEGMENTS))
    half = math.asin(SAND_LEVEL / edge)
    outline = circle(64, edge, -math.pi - half, half)
    sand = add_mesh("Load", *prism(outline, DRUM_LENGTH - 0.2 * radius), None, (0.0, 0.0, height))
    mark(sand, "SAND")
    wood = plain_material("Wood", (0.50, 0.08, 0.05), 0.5)
    cube = add_box("Cube", (CUBE,) * 3, (0.0, 0.0, height + SAND_LEVEL + 0.75 * CUBE), wood)
    cube.rotation_euler = (0.0, 0.4, 0.3)
    mark(cube, "BODY", density=700.0, friction=0.5, restitution=0.2)
    add_stage(scene, 1.2, (0.60, -2.4, 1.25), (0.0, 0.0, 0.52), 42.0)


EXAMPLE = Example(
    name="tumbler",
    build=build,
    full={
        "start": 10,
        "frames": 112,
        "stills": (10, 60, 112),
        "settings": {
            "radius": 0.0055,
            "friction": 0.6,
            "restitution": 0.3,
            "max_overlap": 0.3,
            "max_speed": 3.5,
        },
    },
    small={
        "start": 6,
        "frames": 44,
        "stills": (6, 24, 44),
        "settings": {"radius": 0.017},
    },
)

if __name__ == "__main__":
    main(EXAMPLE)
