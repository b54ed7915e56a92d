# SPDX-License-Identifier: GPL-3.0-or-later
"""A steel ball falls into a bed of sand between glass walls, after Bell 2005's Splash.

The bed settles while the ball is held in the air; at RELEASE the ball is let go.
"""

from common import (
    BOUND,
    Example,
    add_ball,
    add_box,
    add_stage,
    add_tray,
    fill_height,
    glass_material,
    main,
    mark,
    plain_material,
)

TRAY = (1.0, 1.0, 0.75)  # m
BALL_RADIUS = 0.12
BALL_HEIGHT = 0.95  # of its middle, when it is let go
STEEL = 7800.0  # kg/m^3


def build(scene, size):
    radius = scene.barchan.radius
    tray = add_tray("Tray", TRAY, plain_material("Floor", (0.25, 0.25, 0.26), 0.8), glass_material(edge=0.35))
    mark(tray, "COLLIDER", friction=0.5, restitution=0.3)
    floor = [length - 0.2 * radius for length in TRAY[:2]]
    height = fill_height(size.grains, radius, floor)
    mark(add_box("Bed", (*floor, height), (0.0, 0.0, height / 2 + 0.1 * radius)), "SAND")
    start = max(BALL_HEIGHT, height + BALL_RADIUS + BOUND * radius)
    steel = plain_material("Steel", (0.62, 0.64, 0.66), 0.18, 1.0)
    ball = add_ball("Ball", BALL_RADIUS, (0.0, 0.0, start), steel)
    mark(ball, "BODY", density=STEEL, friction=0.4, is_driven=True, release_frame=size.release)
    add_stage(scene, 1.1, (1.15, -2.35, 1.35), (0.0, 0.0, 0.42), 38.0)


EXAMPLE = Example(
    name="splash",
    build=build,
    full={
        "grains": 43000,  # asked for; the lattice of the filling ends with 45,000
        "release": 17,
        "frames": 84,
        "stills": (16, 27, 29, 84),
        "settings": {
            "radius": 0.005,
            "friction": 0.6,
            "restitution": 0.3,
            "max_overlap": 0.3,
            "max_speed": 4.0,
            "sleep_speed": 0.01,
        },
    },
    small={
        "grains": 1300,
        "release": 10,
        "frames": 36,
        "stills": (9, 24, 36),
        "settings": {"radius": 0.016},
    },
)

if __name__ == "__main__":
    main(EXAMPLE)
