# SPDX-License-Identifier: GPL-3.0-or-later
"""A keyframed ball is let go at speed and rolls into two pyramids of boxes, after Longmore 2009's bowling."""

from common import (
    FPS,
    Example,
    add_ball,
    add_box,
    add_copy,
    add_stage,
    add_tray,
    animate,
    glass_material,
    main,
    mark,
    plain_material,
)

LANE = (5.2, 2.0, 0.8)  # m
BALL_RADIUS = 0.13
BALL_START = -2.35
BALL_SPEED = 5.0  # m/s, when it is let go
BOX = 0.2
PYRAMIDS = (0.75, 1.25)  # x


def roll(ball, release):
    """Keys of a ball that gains speed evenly until the release and rolls without slipping."""
    seconds = (release - 1) / FPS
    places, turns = {}, {}
    for frame in range(1, release + 1):
        way = 0.5 * BALL_SPEED / seconds * ((frame - 1) / FPS) ** 2
        places[frame] = (BALL_START + way, 0.0, ball.location.z)
        turns[frame] = (0.0, way / BALL_RADIUS, 0.0)
    animate(ball, "location", places)
    animate(ball, "rotation_euler", turns)


def build(scene, size):
    lane = add_tray("Lane", LANE, plain_material("Maple", (0.55, 0.33, 0.16), 0.35), glass_material(edge=0.3))
    mark(lane, "COLLIDER", friction=0.4, restitution=0.3)
    start = (BALL_START, 0.0, BALL_RADIUS + size.gap)
    ball = add_ball("Ball", BALL_RADIUS, start, plain_material("Ball", (0.03, 0.05, 0.22), 0.1))
    roll(ball, size.release)
    mark(ball, "BODY", density=2500.0, friction=0.4, restitution=0.3, is_driven=True, release_frame=size.release)

    colours = ((0.60, 0.10, 0.07), (0.65, 0.45, 0.08), (0.10, 0.33, 0.16))
    meshes = {}
    boxes = []
    for x in PYRAMIDS[: size.pyramids]:
        for row in range(size.base):
            count = size.base - row
            for k in range(count):
                place = (x, (k - (count - 1) / 2) * (BOX + 0.02), (row + 0.5) * BOX + (row + 1) * size.gap)
                colour = row % len(colours)
                if colour in meshes:
                    boxes.append(add_copy("Box", meshes[colour], place))
                else:
                    boxes.append(add_box("Box", (BOX,) * 3, place, plain_material("Box", colours[colour], 0.5)))
                    meshes[colour] = boxes[-1].data
    mark(boxes, "BODY", density=400.0, friction=0.5, restitution=0.2)
    add_stage(scene, 2.4, (-0.9, -3.3, 1.75), (0.75, 0.0, 0.36), 36.0)


EXAMPLE = Example(
    name="bowling",
    build=build,
    full={
        "base": 6,
        "pyramids": 2,
        "release": 21,
        "frames": 84,
        "gap": 0.0005,
        "stills": (20, 32, 84),
        "settings": {"radius": 0.012, "max_overlap": 0.2, "max_speed": 6.0},
    },
    small={
        "base": 3,
        "pyramids": 1,
        "frames": 40,
        "stills": (20, 30, 40),
        "settings": {"radius": 0.02},
    },
)

if __name__ == "__main__":
    main(EXAMPLE)
