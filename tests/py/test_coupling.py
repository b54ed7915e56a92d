# SPDX-License-Identifier: GPL-3.0-or-later
"""Sand moves objects, objects move sand: bodies sampled from meshes, on meshes, among grains."""

import math

import barchan
import numpy as np
import pytest

G = 9.81
FRICTION = 0.5
HISTORY = {"friction": FRICTION, "restitution": 0.3, "shear": "history"}


def box_mesh(sides, name="box"):
    """Closed box around the origin."""
    half = np.array(sides) / 2
    corners = np.array([[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)]) * half
    quads = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    triangles = [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
    return barchan.Mesh(corners.astype(np.float32), np.array(triangles, np.int32), name=name)


def ball_mesh(radius, rings=24, name="ball"):
    """Closed sphere of latitude rings."""
    latitudes = np.linspace(0, math.pi, rings + 1)[1:-1]
    around = np.linspace(0, 2 * math.pi, 2 * rings, endpoint=False)
    points = [(0, 0, 1)]
    points += [(math.sin(a) * math.cos(b), math.sin(a) * math.sin(b), math.cos(a)) for a in latitudes for b in around]
    points.append((0, 0, -1))
    n, last = len(around), len(points) - 1
    faces = [(0, 1 + i, 1 + (i + 1) % n) for i in range(n)]
    for ring in range(len(latitudes) - 1):
        for i in range(n):
            a, b = 1 + ring * n + i, 1 + ring * n + (i + 1) % n
            faces += [(a, a + n, b), (b, a + n, b + n)]
    first = 1 + (len(latitudes) - 1) * n
    faces += [(first + (i + 1) % n, first + i, last) for i in range(n)]
    return barchan.Mesh(np.array(points, np.float32) * radius, np.array(faces, np.int32), name=name)


def square_mesh(half, cells=4, height=0.0, name="floor"):
    """Open square of triangles."""
    line = np.linspace(-half, half, cells + 1)
    points = np.array([[x, y, height] for y in line for x in line], np.float32)
    side = cells + 1
    faces = []
    for y in range(cells):
        for x in range(cells):
            a = y * side + x
            faces += [(a, a + 1, a + side + 1), (a, a + side + 1, a + side)]
    return barchan.Mesh(points, np.array(faces, np.int32), name=name)


def body_shape(mesh, radius, spacing=0.0):
    """Shape of a body covered by spheres that weighs like its mesh."""
    made = barchan.sample(mesh, radius, spacing=spacing)
    return made["centres"], np.full(len(made["centres"]), radius, np.float32), made["body"]


def upright(count):
    return np.tile(np.array([1, 0, 0, 0], np.float32), (count, 1))


def slope_run(degrees):
    """Of a box on a slope: metres that it slides in the last half second of 1.5, and its acceleration."""
    angle = math.radians(degrees)
    radius = 0.02
    scene = barchan.Scene(
        positions=np.array([[0, 0, 0.1 + radius]], np.float32),
        orientations=upright(1),
        shapes=[body_shape(box_mesh((0.2, 0.2, 0.2)), radius)],
        gravity=(G * math.sin(angle), 0, -G * math.cos(angle)),
        materials=[dict(HISTORY, density=1000), dict(HISTORY)],
        colliders=[{"mesh": square_mesh(20, 40), "material": 1}],
        bodies=[{"grain": 0}],
        max_speed=2,
    )
    sim = barchan.Sim(scene)
    places = []
    for seconds in (0.5, 0.5, 0.5):
        sim.advance(seconds)
        places.append(float(sim.positions()[0, 0]))
    assert abs(sim.positions()[0, 2] - 0.12) < 0.01  # on the slope, not in it
    return places[2] - places[1], (places[2] - 2 * places[1] + places[0]) / 0.5**2


def test_a_box_stands_below_the_friction_angle_and_slides_above_it():
    limit = math.degrees(math.atan(FRICTION))
    angle = math.radians(limit + 1.5)
    pull = G * (math.sin(angle) - FRICTION * math.cos(angle))
    stands, slides = slope_run(limit - 1.5)[0], slope_run(limit + 1.5)[1]
    print(f"1.5 degrees below {limit:.2f}: {stands * 1e6:.1f} um in 0.5 s, above: {slides:.4f} m/s2 ({pull:.4f})")
    assert abs(stands) < 1e-4
    assert slides == pytest.approx(pull, rel=0.05)


def test_a_stack_of_ten_boxes_stands_for_five_seconds():
    radius, side, count = 0.025, 0.2, 10
    pitch = side + 2 * radius
    positions = np.zeros((count, 3), np.float32)
    positions[:, 2] = side / 2 + radius + pitch * np.arange(count)
    scene = barchan.Scene(
        positions=positions,
        orientations=upright(count),
        # Closer than by default: bumps of a twentieth of a radius, on which a tall stack sways little.
        shapes=[body_shape(box_mesh((side, side, side)), radius, spacing=0.6 * radius)],
        materials=[dict(HISTORY, density=1000), dict(HISTORY)],
        colliders=[{"mesh": square_mesh(2), "material": 1}],
        bodies=[{"grain": i} for i in range(count)],
    )
    sim = barchan.Sim(scene)
    for _ in range(10):
        sim.advance(0.5)
    after = sim.positions()
    lean = np.abs(after[:, :2]).max()
    orientations = sim.orientations()
    tilt = np.degrees(np.arccos(np.clip(1 - 2 * (orientations[:, 1] ** 2 + orientations[:, 2] ** 2), -1, 1))).max()
    speed = np.abs(sim.velocities()).max()
    heights = np.diff(after[:, 2])
    print(f"lean {1000 * lean:.2f} mm, tilt {tilt:.3f} degrees, speed {speed:.1e} m/s")
    assert lean < 0.1 * side
    assert tilt < 1.5
    assert speed < 0.1
    assert heights.min() > side  # each stands on the one below
    loads = sim.loads()
    weight = 1000 * side**3 * G
    assert -loads["colliders"][0, 2] == pytest.approx(count * weight, rel=0.02)


def bed(half, height, radius, seed=1):
    """Places for lone spheres with a little room, shaken from a lattice."""
    pitch = 2.08 * radius
    line = np.arange(-half + 1.05 * radius, half - 1.05 * radius, pitch)
    levels = np.arange(1.1 * radius, height, pitch)
    places = np.array([[x, y, z] for z in levels for y in line for x in line])
    return (places + np.random.default_rng(seed).uniform(-0.03, 0.03, places.shape) * radius).astype(np.float32)


def drop_on_bed(mesh, density, size, seconds=1.5, sand_density=2600, gap=0.02):
    """A body let down on a settled bed: its centre and the bed's surface when all is at rest, the speeds at the end."""
    radius, half = 0.012, 0.2
    grains = bed(half, 0.16, radius)
    shape = body_shape(mesh, radius)
    box = box_mesh((2 * half, 2 * half, 1.6), "walls")
    lift = (0.0, 1.0, np.array([[0, 0, 0.8, 1, 0, 0, 0]], np.float64))
    sand = {"friction": 0.6, "rolling": 0.1, "restitution": 0.2, "shear": "history", "density": sand_density}

    def scene_of(body_height, release):
        hang = (0.0, 1.0, np.array([[0, 0, body_height, 1, 0, 0, 0]], np.float64))
        return barchan.Scene(
            positions=np.concatenate([np.array([[0, 0, body_height]], np.float32), grains]),
            orientations=upright(1 + len(grains)),
            shapes=[shape, (np.zeros((1, 3), np.float32), np.array([radius], np.float32))],
            grain_shapes=np.array([0] + [1] * len(grains), np.int32),
            grain_materials=np.array([1] + [0] * len(grains), np.int32),
            materials=[sand, dict(sand, density=density), dict(sand)],
            colliders=[{"mesh": box, "material": 2, "track": lift}],
            bodies=[{"grain": 0, "track": hang, "release": release}],
            max_speed=1.5,
        )

    # The bed settles under the body, which hangs; then it is let go from just above the surface.
    scene = scene_of(0.6, 0.0)
    sim = barchan.Sim(scene)
    sim.advance(0.5)
    surface = np.sort(sim.positions()[1:, 2])[-40:].mean() + radius
    scene = scene_of(float(surface + size + gap), 0.5)
    sim = barchan.Sim(scene)
    sim.advance(0.5 + seconds)
    positions, velocities = sim.positions(), sim.velocities()
    assert sim.info()["lost_count"] == 0
    return float(positions[0, 2]), float(surface), float(np.linalg.norm(velocities[0]))


def test_a_ball_three_times_as_dense_is_carried_by_the_bed():
    size = 0.06
    height, surface, speed = drop_on_bed(ball_mesh(size, 16), 3 * 2600, size)
    print(f"the ball's middle is {1000 * (height - surface):.1f} mm over the surface, speed {1000 * speed:.3f} mm/s")
    assert height > surface - size  # its top half is above: it does not sink
    assert speed < 0.005


def test_an_empty_box_floats_higher_than_a_full_one():
    side = 0.12
    mesh = box_mesh((side, side, side))
    empty, surface, _ = drop_on_bed(mesh, 150, side / 2, gap=0.15)
    full, _, _ = drop_on_bed(mesh, 5000, side / 2, gap=0.15)
    print(f"empty box {1000 * (empty - surface):.1f} mm over the surface, full one {1000 * (full - surface):.1f} mm")
    assert empty > full + 0.012


def test_a_jet_gives_a_body_the_momentum_it_loses():
    radius, count = 0.01, 200
    plate = box_mesh((0.02, 0.3, 0.3), "plate")
    rng = np.random.default_rng(3)
    jet = np.zeros((count, 3), np.float32)
    jet[:, 0] = -0.05 - 0.021 * np.arange(count)
    jet[:, 1:] = rng.uniform(-0.05, 0.05, (count, 2))
    scene = barchan.Scene(
        positions=np.concatenate([np.zeros((1, 3), np.float32), jet]),
        orientations=upright(1 + count),
        velocities=np.concatenate([np.zeros((1, 3)), np.tile((5, 0, 0), (count, 1))]).astype(np.float32),
        shapes=[body_shape(plate, radius), (np.zeros((1, 3), np.float32), np.array([radius], np.float32))],
        grain_shapes=np.array([0] + [1] * count, np.int32),
        grain_materials=np.array([1] + [0] * count, np.int32),
        materials=[dict(HISTORY), dict(HISTORY, density=7800)],
        bodies=[{"grain": 0}],
        gravity=(0, 0, 0),
        max_speed=5,
    )
    sim = barchan.Sim(scene)
    grain_mass, plate_mass = 2600 * 4 / 3 * math.pi * radius**3, 7800 * 0.02 * 0.3 * 0.3
    before = grain_mass * count * 5.0
    impulse = np.zeros(3)
    for _ in range(30):
        sim.advance(0.04)
        impulse += sim.loads()["bodies"][0, :3] * 0.04
    velocities = sim.velocities().astype(np.float64)
    lost = before - grain_mass * velocities[1:, 0].sum()
    gained = plate_mass * velocities[0, 0]
    print(f"the grains lost {lost:.5f} N s, the plate gained {gained:.5f}, its load says {impulse[0]:.5f}")
    assert lost > 0.9 * before  # the jet was stopped and thrown back
    assert gained == pytest.approx(lost, rel=0.01)
    assert impulse[0] == pytest.approx(gained, rel=0.001)
