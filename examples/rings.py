# SPDX-License-Identifier: GPL-3.0-or-later
"""A thousand rings of about 110 spheres each fall over twenty-five poles, after Bell 2005's 1000 Rings."""

import colorsys
import math
import random

from common import (
    Example,
    add_copy,
    add_grid_floor,
    add_mesh,
    add_stage,
    add_tray,
    glass_material,
    joined,
    main,
    mark,
    plain_material,
    revolved,
    torus_profile,
)

RING = (0.10, 0.022)  # m: middle line, tube
SPHERE = 0.0126  # m
POLE_RADIUS = 0.03
POLE_STEP = 0.40
RING_STEP = 0.09  # m between the rings of a column at the start
RING_ASIDE = 0.070  # m, at most, from the axis of the pole; up to 0.048 passes the pole untouched
RING_TILT = math.radians(9)
COLOURS = 6


def pole(place, height):
    """A pole with a round top, its foot a little in the ground."""
    x, y = place
    profile = [(0.0, -0.01), (POLE_RADIUS, -0.01)]
    profile += [
        (POLE_RADIUS * math.cos(a), height - POLE_RADIUS + POLE_RADIUS * math.sin(a))
        for a in (k * math.pi / 16 for k in range(8))
    ]
    profile.append((0.0, height))
    vertices, faces = revolved(profile, 24)
    return [(x + a, y + b, c) for a, b, c in vertices], faces


def build(scene, size):
    middle = (size.side - 1) / 2
    places = [((i - middle) * POLE_STEP, (k - middle) * POLE_STEP) for i in range(size.side) for k in range(size.side)]
    wide = (size.side + 0.6) * POLE_STEP
    grey = plain_material("Floor", (0.22, 0.23, 0.25), 0.7)
    tray = add_tray("Box", (wide, wide, 0.35), grey, glass_material(edge=0.3))
    poles = add_mesh(
        "Poles",
        *joined(pole(place, size.height) for place in places),
        plain_material("Pole", (0.30, 0.17, 0.08), 0.5),
        is_smooth=True,
    )
    # Rings that go over the edge lie around the box, on what the backdrop shows.
    reach = 4 * wide
    ground = add_grid_floor("Ground", (-reach, -reach), (reach, reach), grey, -0.002 * wide)
    ground.hide_render = True
    mark((tray, poles, ground), "COLLIDER", friction=size.friction, restitution=0.3)

    # One mesh per colour; equal shapes share one particle body.
    vertices, faces = revolved(torus_profile(*RING, 12), 36, is_closed=True)
    meshes = []
    for k in range(COLOURS):
        colour = colorsys.hsv_to_rgb(k / COLOURS, 0.75, 0.75)
        meshes.append(add_mesh("Ring", vertices, faces, plain_material("Ring", colour, 0.3), is_smooth=True).data)
    for ob in [ob for ob in scene.objects if ob.data in meshes]:
        scene.collection.objects.unlink(ob)
    dice = random.Random(1)
    rings = []
    for layer in range(size.layers):
        for x, y in places:
            aside, angle = RING_ASIDE * math.sqrt(dice.random()), 2 * math.pi * dice.random()
            place = (x + aside * math.cos(angle), y + aside * math.sin(angle), size.height + 0.1 + RING_STEP * layer)
            turn = (dice.uniform(-RING_TILT, RING_TILT), dice.uniform(-RING_TILT, RING_TILT), 0.0)
            rings.append(add_copy(f"Ring {len(rings):04d}", meshes[layer % COLOURS], place, turn))
    mark(rings, "BODY", density=1200.0, friction=size.friction, restitution=0.3, body_radius=SPHERE)
    high = size.height
    add_stage(scene, wide, (0.95 * wide, -1.7 * wide, 0.9 * high + 0.6 * wide), (0.0, 0.0, 0.42 * high), 40.0)


EXAMPLE = Example(
    name="rings",
    build=build,
    full={
        "side": 5,
        "layers": 40,
        "height": 1.1,
        "friction": 0.4,
        "frames": 84,
        "stills": (12, 22, 84),
        "settings": {"radius": SPHERE, "max_overlap": 0.25, "max_speed": 8.0},
    },
    small={
        "side": 2,
        "layers": 5,
        "height": 0.5,
        "frames": 30,
        "stills": (1, 10, 30),
        "settings": {"max_speed": 4.0},
    },
)

if __name__ == "__main__":
    main(EXAMPLE)
