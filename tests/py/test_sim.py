"""barchan.Sim: stepping, reading, determinism, instability."""

import barchan
import numpy as np
import pytest
from conftest import BALL_RADIUS, advanced, ball_scene, make_scene, scene_arguments

COUNT = 27


def test_a_new_sim_stands_at_the_scene(scene):
    sim = barchan.Sim(scene)
    info = sim.info()
    assert set(info) == {
        *"time step_seconds last_step step_count list_count contact_count lost_count asleep_count unborn_count".split(),
        *"late_count gone_count grain_count sphere_count kinetic_energy potential_energy largest_speed".split(),
        *"drift_seconds force_seconds list_seconds".split(),
    }
    assert info["time"] == 0 and info["step_count"] == 0 and info["kinetic_energy"] == 0
    assert info["grain_count"] == COUNT and info["sphere_count"] == 4 * COUNT
    assert np.array_equal(sim.positions(), scene_arguments()["positions"])
    assert not sim.velocities().any() and not sim.spins().any()


def test_arrays_have_the_promised_shapes(scene):
    sim = barchan.Sim(scene)
    for array, columns in ((sim.positions(), 3), (sim.orientations(), 4), (sim.velocities(), 3), (sim.spins(), 3)):
        assert array.shape == (COUNT, columns)
        assert array.dtype == np.float32 and array.flags.c_contiguous and array.flags.owndata
    # Unit quaternions, rounded to float32.
    assert np.linalg.norm(sim.orientations(), axis=1) == pytest.approx(np.ones(COUNT), abs=1e-6)


def test_arrays_are_new_and_independent(scene):
    sim = barchan.Sim(scene)
    first = sim.positions()
    kept = first.copy()
    sim.advance(0.01)
    assert np.array_equal(first, kept)
    assert not np.array_equal(sim.positions(), kept)
    state = sim.hash()
    first[:] = 0
    assert sim.hash() == state


def test_velocity_and_spin_of_the_scene_are_taken():
    velocities = np.zeros((COUNT, 3), np.float32)
    velocities[:, 0] = np.linspace(0, 1, COUNT, dtype=np.float32)
    spins = velocities[:, ::-1] * 3
    sim = barchan.Sim(make_scene(velocities=velocities, spins=spins))
    assert np.array_equal(sim.velocities(), velocities)
    assert np.allclose(sim.spins(), spins, atol=1e-6)  # kept as angular momentum or in body axes: rounding of float32


def test_free_fall_is_free_fall():
    sim = barchan.Sim(make_scene(positions=scene_arguments()["positions"] + np.float32([0, 0, 5])), threads=1)
    sim.advance(0.1)
    info = sim.info()
    assert info["time"] == pytest.approx(0.1, rel=1e-12)
    assert info["step_count"] > 0 and info["step_seconds"] > 0
    # v = g t, exact in the continuum and for a constant force in every second-order integrator; float32 output.
    assert sim.velocities()[:, 2] == pytest.approx(np.full(COUNT, -0.981), rel=1e-5)


def test_advance_zero_changes_nothing(scene):
    sim = barchan.Sim(scene)
    state = sim.hash()
    assert sim.advance(0) is None
    assert sim.hash() == state
    assert sim.info()["time"] == 0


def test_every_thread_count_gives_the_same_bits(scene):
    states = {}
    for threads in (1, 2, 3, 5):
        sim = barchan.Sim(scene, threads=threads)
        for _ in range(10):
            sim.advance(0.01)
        states[threads] = (sim.hash(), sim.positions().tobytes(), sim.orientations().tobytes())
    print({threads: state[0] for threads, state in states.items()})
    assert len(set(states.values())) == 1
    assert sim.info()["contact_count"] > 0  # the grains have met, so there was something to differ


def test_a_double_or_strided_scene_moves_alike():
    positions = scene_arguments()["positions"]
    hashes = set()
    for form in (positions, positions.astype(np.float64), np.asfortranarray(positions)):
        sim = barchan.Sim(make_scene(positions=form), threads=1)
        sim.advance(0.02)
        hashes.add(sim.hash())
    assert len(hashes) == 1


def test_the_step_can_be_chosen(scene):
    default = barchan.Sim(scene).info()["step_seconds"]
    assert barchan.Sim(scene, step_seconds=default / 2).info()["step_seconds"] == pytest.approx(default / 2)


def test_an_unstable_sim_says_so_stays_readable_and_refuses_to_go_on(scene):
    # Grains deep inside each other, and steps two thousand times too long.
    sim = barchan.Sim(
        make_scene(positions=scene_arguments()["positions"] * np.float32(0.3)),
        threads=1,
        allow_overlap=True,
        step_seconds=2000 * barchan.Sim(scene).info()["step_seconds"],
    )
    with pytest.raises(barchan.UnstableError) as caught:
        sim.advance(1000)
    print(caught.value)
    assert "grain" in str(caught.value).lower()
    assert sim.positions().shape == (COUNT, 3)
    with pytest.raises(barchan.UnstableError):
        sim.advance(0.01)


def test_grains_inside_each_other_are_refused_unless_allowed():
    scene = ball_scene(positions=[[0, 0, 0], [0.5 * BALL_RADIUS, 0, 0]])
    for settings in ({}, {"allow_overlap": False}):
        with pytest.raises(ValueError, match="Grains 0 and 1 overlap by 0.03 m at the start, expected at most 0.01 m"):
            barchan.Sim(scene, **settings)
    for value in (True, np.True_):
        velocities = advanced(scene, 0.1, allow_overlap=value).velocities()
        assert velocities[0, 0] < 0 < velocities[1, 0]  # they part
    with pytest.raises(ValueError, match="Grain 0 is 0.02 m deep in a collider"):
        barchan.Sim(ball_scene(planes=[[0, 0, 0, 0, 0, 1]]))


def test_every_kernel_gives_the_same_bits(scene):
    materials = [{"shear": "history", "rolling": 0.1, "cohesion": 0.1}]
    for each in (scene, make_scene(materials=materials, sleep_speed=0.02, drag=0.1, wind=(1, 0, 0))):
        best, plain = (advanced(each, 0.3, kernel=kernel) for kernel in (None, "baseline"))
        assert best.info()["contact_count"] > 0
        assert best.hash() == plain.hash()
        assert best.save() == plain.save()
        assert best.contacts().tobytes() == plain.contacts().tobytes()


def test_a_resting_grain_falls_asleep_and_a_blow_wakes_it():
    # The first ball rests on the floor; the second falls on it from 0.2 m, which takes 0.2 s, at 2 m/s.
    scene = ball_scene(
        positions=[[0, 0, BALL_RADIUS], [0, 0, 3 * BALL_RADIUS + 0.2]],
        gravity=(0, 0, -10),
        planes=[[0, 0, 0, 0, 0, 1]],
        materials=[{"restitution": 0.2}],
        sleep_speed=0.02,
        sleep_seconds=0.05,
        wake_speed=0.5,
    )
    sim = advanced(scene, 0.04)
    assert sim.info()["asleep_count"] == 0
    sim.advance(0.14)
    assert sim.info()["asleep_count"] == 1
    sim.advance(0.04)
    assert sim.info()["asleep_count"] == 0
    sim.advance(2.0)
    assert sim.info()["asleep_count"] == 2


def test_without_a_sleeping_speed_nothing_sleeps():
    scene = ball_scene(positions=[[0, 0, BALL_RADIUS]], gravity=(0, 0, -10), planes=[[0, 0, 0, 0, 0, 1]])
    assert advanced(scene, 1.0).info()["asleep_count"] == 0


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 10**400])
def test_a_bad_time_is_a_value_error(scene, value):
    sim = barchan.Sim(scene)
    state = sim.hash()
    with pytest.raises(ValueError, match="advance|seconds"):
        sim.advance(value)
    assert sim.hash() == state


@pytest.mark.parametrize("value", [None, "1", [1]])
def test_a_time_that_is_no_number_is_a_type_error(scene, value):
    with pytest.raises(TypeError, match="seconds: found .*, expected a number"):
        barchan.Sim(scene).advance(value)


@pytest.mark.parametrize(
    "arguments, kind, sentence",
    [
        ({"threads": -1}, ValueError, "-1"),
        ({"threads": 2**40}, ValueError, "threads is 1099511627776"),
        ({"threads": 1.5}, TypeError, "threads: found float"),
        ({"threads": None}, TypeError, "threads: found NoneType"),
        ({"step_seconds": -1}, ValueError, "-1"),
        ({"step_seconds": float("nan")}, ValueError, "nan"),
        ({"step_seconds": "x"}, TypeError, "step_seconds: found str"),
        ({"allow_overlap": 1}, TypeError, "allow_overlap: found int, expected True or False"),
        ({"allow_overlap": None}, TypeError, "allow_overlap: found NoneType, expected True or False"),
        ({"kernel": 3}, TypeError, "kernel: found int, expected a str or None"),
        ({"kernel": "abacus"}, ValueError, "kernel 'abacus' does not run on this processor"),
        ({"kernel": "baseline\0"}, ValueError, "kernel: found 'baseline.x00'"),
        ({"kernel": "\ud800"}, UnicodeEncodeError, "surrogates"),
    ],
)
def test_bad_settings_are_named(scene, arguments, kind, sentence):
    with pytest.raises(kind, match=sentence):
        barchan.Sim(scene, **arguments)


def test_only_a_scene_is_simulated(mesh):
    for value in (None, 3, mesh):
        with pytest.raises(TypeError, match="barchan.Scene"):
            barchan.Sim(value)


def test_methods_take_no_arguments(scene):
    sim = barchan.Sim(scene)
    for name in ("cancel", "info", "positions", "orientations", "velocities", "spins", "hash", "contacts", "save"):
        with pytest.raises(TypeError):
            getattr(sim, name)(1)
