# SPDX-License-Identifier: GPL-3.0-or-later
"""A keyframed blade pushes a bed of sand with crates on it, and its load is plotted, after Bell 2005's Bulldozer."""

import math

from common import (
    Example,
    add_box,
    add_mesh,
    add_stage,
    add_tray,
    animate,
    fill_height,
    glass_material,
    main,
    mark,
    plain_material,
    read_loads,
    write_plot,
)

TRAY = (2.7, 1.4, 0.5)  # m
BED = (-0.85, 1.33)  # m along x
BLADE_WIDTH = 1.05
BLADE_HEIGHT = 0.42
BLADE_BEND = 0.34  # m, radius of its hollow face
BLADE_FLOOR = 0.06  # m, what it leaves on the floor
BLADE_START, BLADE_END = -1.1, 0.5
CRATE = 0.17
CRATES = ((0.0, -0.3, 0.3), (0.35, 0.25, 0.9), (0.75, -0.1, 0.5))  # x, y, turn


def add_blade(material):
    """A closed profile, hollow in front, along y; the origin is at the cutting edge."""
    half = BLADE_HEIGHT / 2
    chord = math.sqrt(BLADE_BEND**2 - half**2)
    front = []
    for k in range(17):
        z = BLADE_HEIGHT * k / 16
        front.append((chord - math.sqrt(BLADE_BEND**2 - (z - half) ** 2), z))
    profile = front + [(x - 0.035, z) for x, z in reversed(front)]
    count = len(profile)
    vertices = [(x, side * BLADE_WIDTH / 2, z) for side in (-1, 1) for x, z in profile]
    quads = [(k, (k + 1) % count, count + (k + 1) % count, count + k) for k in range(count)]
    ends = [(k, count - 1 - k, count - 2 - k, k + 1) for k in range(16)]
    ends += [(count + k, count + k + 1, 2 * count - 2 - k, 2 * count - 1 - k) for k in range(16)]
    return add_mesh("Blade", vertices, quads + ends, material)


def build(scene, size):
    radius = scene.barchan.radius
    tray = add_tray("Tray", TRAY, plain_material("Floor", (0.25, 0.25, 0.26), 0.8), glass_material(edge=0.3))
    mark(tray, "COLLIDER", friction=0.5)
    blade = add_blade(plain_material("Blade", (0.75, 0.42, 0.02), 0.35, 0.3))
    start, end = (BLADE_START, 0.0, BLADE_FLOOR), (BLADE_END, 0.0, BLADE_FLOOR)
    lifted = (BLADE_END - 0.25, 0.0, BLADE_FLOOR + 0.3)
    animate(blade, "location", {1: start, size.push: start, size.lift: end, size.frames: lifted})
    mark(blade, "COLLIDER", friction=0.35)
    floor = (BED[1] - BED[0], TRAY[1] - 0.2 * radius)
    height = fill_height(size.grains, radius, floor)
    mark(add_box("Bed", (*floor, height), ((BED[0] + BED[1]) / 2, 0.0, height / 2 + 0.1 * radius)), "SAND")
    wood = plain_material("Crate", (0.30, 0.16, 0.07), 0.6)
    crates = [add_box("Crate", (CRATE,) * 3, (x, y, height + 0.65 * CRATE), wood) for x, y, _turn in CRATES]
    for crate, (_x, _y, turn) in zip(crates, CRATES):
        crate.rotation_euler.z = turn
    mark(crates, "BODY", density=600.0, friction=0.5)
    add_stage(scene, 2.2, (2.4, -3.0, 1.75), (0.1, 0.0, 0.16), 42.0)


def after(folder, scene, size):
    """blade_load.svg: force on the blade over time."""
    rows = read_loads(folder / "cache", "Blade")
    lines = {
        "against the push": [(seconds, -force[0]) for seconds, force in rows],
        "upwards": [(seconds, force[2]) for seconds, force in rows],
    }
    write_plot(folder / "blade_load.svg", "Load on the blade", "time / s", "force / N", lines)


EXAMPLE = Example(
    name="bulldozer",
    build=build,
    after=after,
    full={
        "grains": 26500,  # asked for; the lattice of the filling ends with 27,000
        "push": 16,
        "lift": 136,
        "frames": 160,
        "stills": (16, 76, 130, 160),
        "settings": {
            "radius": 0.007,
            "friction": 0.6,
            "restitution": 0.3,
            "max_overlap": 0.3,
            "max_speed": 2.0,
        },
    },
    small={
        "grains": 1700,
        "push": 8,
        "lift": 50,
        "frames": 56,
        "stills": (8, 30, 50),
        "settings": {"radius": 0.021},
    },
)

if __name__ == "__main__":
    main(EXAMPLE)
