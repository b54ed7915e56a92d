# SPDX-License-Identifier: GPL-3.0-or-later
"""A gate opens and an avalanche runs down a chute into gates and a wall of stone, after Bell 2005's Avalanche."""

import math

from common import (
    GROUND_COLOUR,
    Example,
    add_box,
    add_copy,
    add_grid_floor,
    add_mesh,
    add_stage,
    animate,
    fill_height,
    glass_material,
    main,
    mark,
    only_for_the_camera,
    plain_material,
)

SLOPE = math.radians(40)
WIDTH = 1.2  # m, of the chute
TOP = 2.35  # m along the slope, from its foot
GATE = 1.3
WALL = 0.75  # m, of the chute's sides
BEND = 0.6  # m, radius of the bend at the foot
GROUND = (4.6, 2.6)  # m beyond the foot, and to each side

STONE = 800.0  # kg/m^3: aerated concrete
PILLAR = (0.12, 0.12, 0.42)
LINTEL = (0.14, 0.50, 0.10)
BRICK = (0.10, 0.22, 0.10)


def on_slope(x, y, z):
    """World place of x metres down the slope from its foot and z above it."""
    return x * math.cos(SLOPE) + z * math.sin(SLOPE), y, z * math.cos(SLOPE) - x * math.sin(SLOPE)


def add_chute(floor_material, wall_material):
    """Floor with a bend into the ground; sides and back are an object of their own, of glass."""
    run = BEND * math.tan(SLOPE / 2)  # from the foot to where the bend begins and ends
    line = [on_slope(-TOP, 0.0, 0.0), on_slope(-run, 0.0, 0.0)]
    for k in range(9):
        angle = SLOPE * (1 - (k + 1) / 9)
        line.append((run - BEND * math.sin(angle), 0.0, BEND * (1 - math.cos(angle))))
    vertices = [(x, side * WIDTH / 2, z) for x, _y, z in line for side in (-1, 1)]
    faces = [(2 * k, 2 * k + 2, 2 * k + 3, 2 * k + 1) for k in range(len(line) - 1)]
    floor = add_mesh("Chute", vertices, faces, floor_material)
    corners = [(-TOP, 0.0), (-0.25, 0.0), (-0.25, 0.4 * WALL), (-GATE, WALL), (-TOP, WALL)]
    vertices = [on_slope(x, side * WIDTH / 2, z) for side in (-1, 1) for x, z in corners]
    walls = add_mesh("Walls", vertices, [(0, 1, 2, 3, 4), (9, 8, 7, 6, 5), (0, 4, 9, 5)], wall_material)
    only_for_the_camera(walls)
    return floor, walls


def add_structures(gap):
    """Two gates of three stones and a wall of bricks, a gap apart so that nothing starts in touch."""
    stone = plain_material("Stone", (0.42, 0.45, 0.50), 0.85)
    brick = plain_material("Brick", (0.42, 0.13, 0.08), 0.8)
    bodies = []
    for side in (-1, 1):
        y = 0.36 * side
        for foot in (-0.17, 0.17):
            bodies.append(add_box("Pillar", PILLAR, (0.85, y + foot, PILLAR[2] / 2 + gap), stone))
        bodies.append(add_box("Lintel", LINTEL, (0.85, y, PILLAR[2] + LINTEL[2] / 2 + 2 * gap), stone))
    first = None
    for row in range(4):
        count = 5 - row % 2
        for k in range(count):
            place = (1.4, (k - (count - 1) / 2) * (BRICK[1] + gap), (row + 0.5) * BRICK[2] + (row + 1) * gap)
            first = add_copy("Brick", first.data, place) if first else add_box("Brick", BRICK, place, brick)
            bodies.append(first)
    return bodies


def build(scene, size):
    radius = scene.barchan.radius
    grey = plain_material("Concrete", (0.30, 0.30, 0.31), 0.8)
    floor, walls = add_chute(grey, glass_material(edge=0.3))
    plain = plain_material("Plain", GROUND_COLOUR, 0.85)
    ground = add_grid_floor("Ground", (-TOP, -GROUND[1]), (GROUND[0], GROUND[1]), plain)
    iron = plain_material("Iron", (0.1, 0.1, 0.1), 0.4, 1.0)
    gate = add_box("Gate", (0.02, WIDTH, WALL), on_slope(-GATE, 0.0, WALL / 2), iron)
    gate.rotation_euler.y = SLOPE
    shut, lifted = gate.location[:], on_slope(-GATE, 0.0, 1.7 * WALL)
    animate(gate, "location", {1: shut, size.release: shut, size.release + 5: lifted})
    mark((floor, gate), "COLLIDER", friction=0.25)
    mark(walls, "COLLIDER", friction=0.2)
    mark(ground, "COLLIDER", friction=0.6)

    length, width = TOP - GATE - 0.02 - 0.2 * radius, WIDTH - 0.2 * radius
    depth = fill_height(size.grains, radius, (length, width))
    sand = add_box("Load", (length, width, depth), on_slope(-(TOP + GATE) / 2 - 0.005, 0.0, depth / 2 + 0.1 * radius))
    sand.rotation_euler.y = SLOPE
    mark(sand, "SAND")
    mark(add_structures(size.gap), "BODY", density=STONE, friction=0.6, restitution=0.2, body_radius=size.body_radius)
    add_stage(scene, 3.0, (4.2, -4.6, 2.5), (-0.05, 0.0, 0.58), 38.0)


EXAMPLE = Example(
    name="avalanche",
    build=build,
    full={
        "grains": 30000,
        "release": 14,
        "frames": 96,
        "stills": (13, 40, 56, 96),
        "gap": 0.0005,
        "body_radius": 0.009,
        "settings": {
            "radius": 0.007,
            "friction": 0.5,
            "restitution": 0.3,
            "max_overlap": 0.3,
            "max_speed": 4.0,
        },
    },
    small={
        "grains": 1500,
        "release": 8,
        "frames": 56,
        "stills": (8, 32, 56),
        "body_radius": 0.02,
        "settings": {"radius": 0.02},
    },
)

if __name__ == "__main__":
    main(EXAMPLE)
