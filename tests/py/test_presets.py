"""Grain materials: every preset is a whole scene, with a source for each number."""

import numpy as np
import pytest

import barchan
from barchan import presets

RADIUS = 0.01  # m
NAMES = ["dry_sand", "wet_sand", "gravel", "rice", "coffee_beans", "salt", "snow"]


def test_the_seven_presets_are_there_and_differ():
    found = presets.presets()
    assert list(found) == NAMES
    numbers = {
        (one.shape, one.rod_count, one.density, one.restitution, one.friction, one.rolling, one.bond)
        for one in found.values()
    }
    assert len(numbers) == len(NAMES)
    assert len({one.label for one in found.values()}) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_says_where_it_is_from(name):
    one = presets.presets()[name]
    assert set(one.sources) == {"shape", "sizes", "density", "restitution", "friction", "rolling", "bond"}
    assert all(one.sources.values()), one.sources
    assert one.repose_degrees is None or 0.0 < one.repose_degrees <= 90.0


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_falls_and_comes_to_lie_on_a_floor(name):
    one = presets.presets()[name]
    offsets, radii = presets.grain(one, RADIUS)
    sizes = presets.scales(one, 27, seed=1)
    bound = float(np.linalg.norm(offsets, axis=1).max() + RADIUS) * float(sizes.max())
    places = np.stack(np.meshgrid(*[np.arange(3) * 2.05 * bound] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    places[:, 2] += 1.05 * bound
    scene = barchan.Scene(
        positions=places.astype(np.float32),
        shapes=[(offsets, radii)],
        scales=sizes,
        materials=[presets.material(one, RADIUS)],
        planes=[[0, 0, 0, 0, 0, 1]],
    )
    sim = barchan.Sim(scene, threads=1)
    start = sim.positions()[:, 2].mean()
    sim.advance(0.3)
    heights = sim.positions()[:, 2]
    print(name, "mean height", start, heights.mean(), "m")
    assert sim.info()["lost_count"] == 0
    assert heights.mean() < start and (heights > 0.5 * RADIUS).all()


def test_two_wet_spheres_hold_as_many_weights_as_their_bond_number():
    """The lower of two touching spheres hangs from the upper one while the pull exceeds its weight."""
    density, gravity = 2600.0, 9.81
    drops = {}
    for bond in (0.5, 2.0):
        cohesion = presets.cohesion_of(bond, RADIUS, density, gravity)
        assert presets.bond_of(cohesion, RADIUS, density, gravity) == pytest.approx(bond)
        # The upper one is held by a track; the lower one starts in touch.
        track = (0.0, 1.0, np.array([[0, 0, 1.0, 1, 0, 0, 0]], np.float64))
        scene = barchan.Scene(
            positions=np.array([[0, 0, 1.0], [0, 0, 1.0 - 2 * RADIUS]], np.float32),
            shapes=[barchan.shape("sphere", RADIUS)],
            materials=[{"density": density, "cohesion": cohesion, "friction": 0.5, "restitution": 0.2}],
            bodies=[{"grain": 0, "track": track, "release": 0.0}],
            gravity=(0, 0, -gravity),
            max_speed=1.0,
        )
        sim = barchan.Sim(scene, threads=1)
        sim.advance(0.2)
        drops[bond] = float(1.0 - 2 * RADIUS - sim.positions()[1, 2])
    print(drops)
    assert drops[0.5] > 2 * RADIUS, "half a weight must not hold it"
    assert abs(drops[2.0]) < 0.5 * RADIUS
