# SPDX-License-Identifier: GPL-3.0-or-later
"""Sand pours from an emitter into a bowl that wobbles on its keyframes."""

import math

from common import (
    FPS,
    GROUND_COLOUR,
    Example,
    add_grid_floor,
    add_revolved,
    add_stage,
    animate,
    main,
    mark,
    plain_material,
)

BOWL_RADIUS = 0.36  # m, inside
BOWL_DEPTH = 0.30
BOWL_WALL = 0.025
SPOUT = (0.13, 0.12)  # m: radius and height of the emitter
SPOUT_HEIGHT = 0.95
POUR_SPEED = 1.5  # m/s
TILT = math.radians(9)
WOBBLE = 0.9  # turns a second
GROUND = 1.6


def bowl_profile(count=24):
    """Outside up from the axis, over the rim, inside back down: half an ellipse and a second one a wall apart."""

    def half(radius, depth, foot):
        angles = [0.5 * math.pi * k / count for k in range(1, count + 1)]
        return [(0.0, foot)] + [(radius * math.sin(a), foot + depth * (1 - math.cos(a))) for a in angles]

    outside = half(BOWL_RADIUS + BOWL_WALL, BOWL_DEPTH + BOWL_WALL, 0.0)
    inside = half(BOWL_RADIUS, BOWL_DEPTH, BOWL_WALL)
    return outside + list(reversed(inside))


def wobble(bowl, first, last):
    """The axis goes round a cone about the bowl's foot, wider and wider over the first second."""
    keys = {}
    for frame in range(first, last + 1):
        seconds = (frame - first) / FPS
        tilt, angle = TILT * min(1.0, seconds), 2 * math.pi * WOBBLE * seconds
        keys[frame] = (tilt * math.cos(angle), tilt * math.sin(angle), 0.0)
    animate(bowl, "rotation_euler", keys)


def build(scene, size):
    clay = plain_material("Clay", (0.07, 0.22, 0.30), 0.25)
    bowl = add_revolved("Bowl", bowl_profile(), 72, material=clay)
    bowl.location.z = 0.02
    wobble(bowl, 1, size.frames)
    ground = add_grid_floor("Ground", (-GROUND,) * 2, (GROUND,) * 2, plain_material("Table", GROUND_COLOUR, 0.85))
    mark(bowl, "COLLIDER", friction=0.4, restitution=0.2, samples=2)
    mark(ground, "COLLIDER", friction=0.6, restitution=0.2)
    radius, height = SPOUT
    spout = add_revolved("Spout", [(0.0, 0.0), (radius, 0.0), (radius, height), (0.0, height)], 48)
    spout.location.z = SPOUT_HEIGHT
    spout.display_type = "WIRE"
    spout.hide_render = True
    mark(
        spout,
        "EMITTER",
        emit_from="VOLUME",
        rate=size.rate,
        velocity=(0.0, 0.0, -POUR_SPEED),
        target_count=size.grains,
    )
    add_stage(scene, 0.9, (0.85, -1.65, 1.40), (0.0, 0.0, 0.38), 36.0)


EXAMPLE = Example(
    name="bowl",
    build=build,
    full={
        "grains": 20000,
        "rate": 4500.0,
        "frames": 132,
        "stills": (24, 72, 132),
        "settings": {
            "radius": 0.005,
            "friction": 0.6,
            "restitution": 0.3,
            "max_overlap": 0.3,
            "max_speed": 4.5,
        },
    },
    small={
        "grains": 280,
        "rate": 250.0,
        "frames": 40,
        "stills": (16, 28, 40),
        "settings": {"radius": 0.014},
    },
)

if __name__ == "__main__":
    main(EXAMPLE)
