"""Sim.contacts(): who touches whom, where, and with which force."""

import barchan
import numpy as np
import pytest
from conftest import BALL_RADIUS, advanced, ball_scene, make_scene

FIELDS = np.dtype(
    [
        ("grain", np.int32),
        ("other", np.int32),
        ("overlap", np.float32),
        ("point", np.float32, 3),
        ("normal", np.float32, 3),
        ("normal_force", np.float32),
        ("shear_force", np.float32, 3),
    ]
)
FLOOR = [0, 0, 0, 0, 0, 1]
GRAVITY = 10.0
WEIGHT = 1000 * 4 / 3 * np.pi * BALL_RADIUS**3 * GRAVITY  # N, of the unscaled ball


def resting(**changes):
    """Balls that have come to rest, and their contacts."""
    arguments = {"planes": [FLOOR], "positions": [[0, 0, BALL_RADIUS]], "gravity": (0, 0, -GRAVITY)}
    arguments["materials"] = [{"density": 1000, "restitution": 0.2}]
    sim = advanced(ball_scene(**{**arguments, **changes}), 1.5)
    print(sim.info()["largest_speed"], sim.contacts())
    assert sim.info()["largest_speed"] < 1e-4
    return sim, sim.contacts()


def test_a_resting_ball_presses_with_its_weight():
    sim, contacts = resting()
    assert contacts.dtype == FIELDS and contacts.shape == (1,) and contacts.flags.owndata
    contact = contacts[0]
    assert contact["grain"] == 0 and contact["other"] == -2
    assert contact["normal_force"] == pytest.approx(WEIGHT, rel=1e-3)  # what is left of the bouncing
    assert contact["normal"] == pytest.approx([0, 0, 1], abs=1e-6)
    assert contact["shear_force"] == pytest.approx([0, 0, 0], abs=1e-6 * WEIGHT)
    # Where the ball reaches into the plane, the overlap is what its centre has sunk; the rest is rounding.
    assert contact["overlap"] == pytest.approx(BALL_RADIUS - sim.positions()[0, 2], abs=1e-6)
    assert contact["point"][:2] == pytest.approx([0, 0], abs=1e-6)
    assert -contact["overlap"] - 1e-6 <= contact["point"][2] <= 1e-6


def test_the_weight_is_that_of_the_size():
    _, contacts = resting(scales=[1.5], positions=[[0, 0, 1.5 * BALL_RADIUS]])
    assert contacts["normal_force"] == pytest.approx([1.5**3 * WEIGHT], rel=1e-3)


def test_a_tower_carries_what_is_above_and_tells_who_touches_whom():
    """Three balls, one above the other; nothing pushes them aside."""
    heights = BALL_RADIUS * np.array([3, 5, 1])
    _, contacts = resting(
        positions=[[0, 0, height] for height in heights], materials=[{"density": 1000, "restitution": 0.2}]
    )
    forces = {frozenset(pair): force for *pair, force in contacts[["grain", "other", "normal_force"]].tolist()}
    expected = {frozenset([1, 0]): WEIGHT, frozenset([0, 2]): 2 * WEIGHT, frozenset([2, -2]): 3 * WEIGHT}
    assert forces == pytest.approx(expected, rel=2e-3)
    for contact in contacts:
        # The normal is towards grain: up when grain is the upper one.
        is_upper = contact["other"] < 0 or heights[contact["grain"]] > heights[contact["other"]]
        assert contact["normal"] == pytest.approx([0, 0, 1 if is_upper else -1], abs=1e-5)


def test_the_other_is_the_number_of_the_obstacle():
    floor = {"kind": "box", "point": (0, 0, -1), "size": (1, 1, 1)}
    _, contacts = resting(planes=[[0, 0, -5, 0, 0, 1], [0, 0, -6, 0, 0, 1]], obstacles=[floor])
    assert contacts["other"].tolist() == [-2 - 2]


def test_the_other_of_a_wall_is_minus_one():
    corner = BALL_RADIUS * np.array([[-1, -1, 0], [1, -1, 0], [-1, 1, 0], [1, 1, 0]], np.float32)
    # Four walls, each one diameter from the ball's centre: at 45 degrees each carries weight / (4 cos 45).
    _, contacts = resting(
        positions=[[0, 0, 2**0.5 * BALL_RADIUS]],
        wall_positions=corner,
        wall_radius=BALL_RADIUS,
        planes=[[0, 0, -5, 0, 0, 1]],
        materials=[{"density": 1000, "restitution": 0.2, "friction": 0}],
    )
    assert contacts["other"].tolist() == [-1] * 4
    cosine = contacts["normal"][:, 2]
    assert (contacts["normal_force"] * cosine).sum() == pytest.approx(WEIGHT, rel=1e-3)
    assert contacts["normal_force"] == pytest.approx(np.full(4, contacts["normal_force"].mean()), rel=1e-3)


def test_a_sliding_ball_feels_friction_against_its_motion():
    scene = ball_scene(
        planes=[FLOOR],
        positions=[[0, 0, BALL_RADIUS]],
        gravity=(0, 0, -GRAVITY),
        velocities=[[2, 0, 0]],
        max_speed=2,
        materials=[{"density": 1000, "friction": 0.3, "restitution": 0.2}],
    )
    contact = advanced(scene, 0.01).contacts()[0]
    print(contact)
    assert contact["normal_force"] > 0
    # Coulomb, in float32.
    assert contact["shear_force"] == pytest.approx([-0.3 * contact["normal_force"], 0, 0], rel=1e-4, abs=1e-6 * WEIGHT)


def test_balls_apart_have_no_contacts():
    contacts = advanced(ball_scene(), 0.1).contacts()
    assert contacts.shape == (0,) and contacts.dtype == FIELDS


def test_forces_balance_in_a_heap():
    """The floor carries the weight of everything that lies on it."""
    scene = make_scene(restitution=0.1, friction=0.8)
    sim = advanced(scene, 3.0, threads=2)
    contacts = sim.contacts()
    info = sim.info()
    print(info, len(contacts))
    assert len(contacts) == info["contact_count"]
    on_floor = contacts[contacts["other"] == -2]
    up = (on_floor["normal_force"][:, None] * on_floor["normal"] + on_floor["shear_force"])[:, 2].sum()
    weight = 27 * 4 * 4 / 3 * np.pi * 0.02**3 * 2600 * 9.81
    assert up == pytest.approx(weight, rel=0.02)  # the last trembling of the heap


def test_the_array_is_new_and_belongs_to_the_caller():
    sim, contacts = resting()
    state = sim.hash()
    expected = contacts.copy()
    contacts["normal_force"] = 0
    assert sim.hash() == state
    assert np.array_equal(sim.contacts(), expected)


def test_an_unstable_sim_can_still_be_asked(scene):
    sim = barchan.Sim(make_scene(positions=np.zeros((27, 3))), threads=1, allow_overlap=True, step_seconds=1.0)
    with pytest.raises(barchan.UnstableError):
        sim.advance(1000)
    assert sim.contacts().dtype == FIELDS
    assert isinstance(sim.save(), bytes)
