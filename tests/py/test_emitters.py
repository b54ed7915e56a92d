"""Scene(emitters=, outflows=) and Sim.flags(): grains that come and go, when and where they were told to."""

import barchan
import numpy as np
import pytest
from conftest import BALL_RADIUS, advanced, ball_scene, make_scene

LOST, ASLEEP, UNBORN, GONE = 1, 2, 8, 16
NOTHING = np.zeros((0, 3), np.float32)
JET = {"positions": [[0, 0, 0]], "rate": 10, "begin": 0.5, "end": 1.5, "velocity": (1, 0, 0)}
DRAIN = {"min": (-1, -1, -2), "max": (1, 1, -0.8)}


def jet_scene(*emitters, **changes):
    """Weightless balls from emitters alone: once born, nothing changes their flight."""
    return ball_scene(**{"positions": NOTHING, "emitters": emitters or [JET], **changes})


def shower_scene(**changes):
    """Clusters from four places 0.3 m above a floor onto which a few given ones fall too; sixty in 0.6 s."""
    places = np.float32([[0.1, 0.1, 0.5], [0.3, 0.1, 0.5], [0.1, 0.3, 0.5], [0.3, 0.3, 0.5]])
    shower = {"positions": places, "rate": 100, "end": 0.6, "velocity": (0, 0, -1)}
    corner = {"min": (0.25, 0.25, -1), "max": (1, 1, 0.06)}
    return make_scene(**{"emitters": [shower], "outflows": [corner], "materials": [{"shear": "history"}], **changes})


def test_an_emitter_brings_its_rate_times_its_time():
    counts = [
        (10, 0, 1, 10),
        (10, 0.5, 1.5, 10),
        (10, 0, 1.01, 11),  # the eleventh is due at one second
        (1000, 0, 0.0015, 2),
        (0.1, 3, 4, 1),
    ]
    for rate, begin, end, count in counts:
        scene = jet_scene({**JET, "rate": rate, "begin": begin, "end": end})
        assert scene.grain_count == scene.sphere_count == count, (rate, begin, end)
        sim = barchan.Sim(scene, threads=1)
        assert sim.info()["unborn_count"] == count - (begin == 0)  # one is due at once
        sim.advance(begin + count / rate + 0.1)
        assert sim.info()["unborn_count"] == 0, (rate, begin, end)


def test_grains_follow_the_given_ones_emitter_by_emitter():
    first = {**JET, "positions": [[0, 1, 0]], "end": 0.75}
    second = {**JET, "positions": [[0, 2, 0], [0, 3, 0]], "end": 0.9, "velocity": [0, 0, 0]}
    scene = ball_scene(emitters=[first, second])
    sim = advanced(scene, 1)
    assert scene.grain_count == 1 + 3 + 4
    assert sim.positions()[:, 1].tolist() == [0, 1, 1, 1, 2, 3, 2, 3]  # the places of one in turn
    assert sim.velocities()[:, 0].tolist() == [0, 1, 1, 1, 0, 0, 0, 0]
    # The second grain at each place of the second emitter waits for ever: the first one never leaves.
    assert sim.flags().tolist() == [0, 0, 0, 0, 0, 0, UNBORN, UNBORN]


def test_each_grain_is_born_when_it_is_due_and_flies_from_then_on():
    sim = barchan.Sim(jet_scene(), threads=1)
    step = sim.info()["step_seconds"]
    due = 0.5 + 0.1 * np.arange(10)
    for _ in range(35):
        sim.advance(0.05)
        time, flags = sim.info()["time"], sim.flags()
        assert flags.dtype == np.int32 and flags.shape == (10,)
        # A birth that is due within the last step comes with the next one.
        assert set(flags[due < time - 2 * step]) <= {0} and set(flags[due > time]) <= {UNBORN}
        flown = sim.positions()[flags == 0, 0]
        late = time - due[flags == 0] - flown
        assert np.all((late >= -1e-6) & (late <= 2 * step)), late
        assert np.all(sim.velocities()[flags == 0] == np.float32([1, 0, 0]))
        assert sim.info()["unborn_count"] == np.sum(flags == UNBORN) and sim.info()["late_count"] == 0
    assert not sim.flags().any()
    assert sim.info()["kinetic_energy"] == pytest.approx(10 * 0.5 * 1000 * 4 / 3 * np.pi * BALL_RADIUS**3, rel=1e-5)


def test_a_grain_that_is_not_born_touches_nothing_and_stays():
    """A given ball flies through the place of one that comes later."""
    emitter = {**JET, "begin": 0.9, "end": 1, "velocity": (0, 0, 0)}
    sim = advanced(ball_scene(positions=[[-0.4, 0, 0]], velocities=[[1, 0, 0]], emitters=[emitter]), 0.8)
    assert sim.flags().tolist() == [0, UNBORN]
    assert sim.velocities()[0].tolist() == [1, 0, 0]
    assert sim.positions()[1].tolist() == [0, 0, 0]
    sim.advance(0.2)
    assert not sim.flags().any()


def test_a_taken_place_makes_grains_late_and_none_is_lost():
    """The first stands in the way, until a region pushes it off; then the others come, one after the other."""
    jet = {**JET, "begin": 0, "rate": 100, "end": 0.1, "velocity": (0, 0, 0)}
    sim = advanced(jet_scene(jet), 0.5)
    info = sim.info()
    assert (info["unborn_count"], info["late_count"]) == (9, 9)
    assert sim.flags().tolist() == [0] + 9 * [UNBORN]
    assert info["largest_speed"] == 0  # nothing was born into the first one
    push = {"min": (-0.5, -0.5, -0.5), "max": (0.5, 0.5, 0.5), "acceleration": (0, 1, 0)}
    sim = barchan.Sim(jet_scene(jet, regions=[push]), threads=1)
    count = []
    for _ in range(40):
        sim.advance(0.1)
        count.append(10 - sim.info()["unborn_count"])
    print(count)
    assert count[0] == 1 and count[-1] == 10 and np.all(np.diff(count) >= 0)
    # Pushed with 1 m/s^2, a place is free after the way of a diameter: sqrt(2 * 0.04) = 0.283 s.
    assert count[9] == 4 and count[19] == 8
    assert sim.info()["late_count"] == sim.info()["lost_count"] == 0


def test_shape_material_and_scale_of_an_emitter():
    shapes = [barchan.shape("sphere", 0.02), barchan.shape("sphere", 0.03)]
    jet = {**JET, "begin": 0, "end": 0.1, "shape": 1, "material": 1, "scale": 0.5}
    scene = jet_scene(jet, shapes=shapes, materials=[{"density": 1000}, {"density": 3000}])
    energy = advanced(scene, 0.2).info()["kinetic_energy"]
    assert energy == pytest.approx(0.5 * 3000 * 4 / 3 * np.pi * 0.015**3, rel=1e-5)


def test_every_key_changes_the_scene():
    base = {"materials": [{}, {}], "shapes": 2 * [barchan.shape("sphere", 0.02)]}
    changes = {
        "positions": [[0, 0, 0.1]],
        "rate": 11,
        "begin": 0.6,
        "end": 1.6,
        "velocity": (1, 0, 0.1),
        "shape": 1,
        "material": 1,
        "scale": 0.9,
    }
    hashes = {name: jet_scene({**JET, name: value}, **base).hash for name, value in changes.items()}
    hashes["plain"] = jet_scene(**base).hash
    hashes["twice"] = jet_scene(JET, JET, **base).hash
    hashes["outflow"] = jet_scene(outflows=[DRAIN], **base).hash
    hashes["min"] = jet_scene(outflows=[{**DRAIN, "min": (-1, -1, -3)}], **base).hash
    hashes["max"] = jet_scene(outflows=[{**DRAIN, "max": (1, 1, 0)}], **base).hash
    assert len(set(hashes.values())) == len(hashes), hashes
    assert jet_scene({**JET, "shape": 0, "material": 0, "scale": 0}, outflows=(), **base).hash == hashes["plain"]
    assert make_scene(emitters=[], outflows=[]).hash == make_scene(emitters=None, outflows=None).hash
    assert make_scene(emitters=[]).hash == make_scene().hash


def test_an_outflow_takes_what_comes_into_it_and_counts():
    """Four places one metre up; a fall of 0.8 m takes 0.404 s."""
    places = np.float32([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0.1, 0.1, 0]])
    rain = {"positions": places, "rate": 40, "begin": 0.5, "end": 2.5}
    changes = {"positions": [[0, 0.5, -0.5], [0, 3, -0.5]], "gravity": (0, 0, -9.81), "max_speed": 6}
    scene = ball_scene(emitters=[rain], outflows=[DRAIN], **changes)
    sim = barchan.Sim(scene, threads=2)
    for _ in range(31):
        sim.advance(0.1)
        time, flags, info = sim.info()["time"], sim.flags(), sim.info()
        if time < 1.3:
            assert flags[1] == 0
        fallen = 40 * np.clip(time - 0.5 - 0.4039, 0, 2) + (time > 0.25)
        assert np.sum(flags == GONE) == info["gone_count"] == pytest.approx(fallen, abs=1.01)
        inside = sim.positions()[flags == GONE]
        assert np.all((inside >= DRAIN["min"]) & (inside <= DRAIN["max"]))
        assert inside[:, 2] == pytest.approx(-0.8, abs=0.05)  # where it was taken, there it stays
    # Beside the box nothing is taken: that one fell past it.
    assert flags[0] == GONE and flags[1] != GONE
    assert info["gone_count"] == 81 and info["late_count"] == 0


def test_the_rest_of_an_outflow_is_not_touched():
    sims = [advanced(ball_scene(positions=[[0, 0, 0], [0.06, 0, 0]], outflows=o), 0.1) for o in ([DRAIN], [])]
    assert sims[0].positions().tobytes() == sims[1].positions().tobytes()
    # A ball that was taken is no obstacle to the next one.
    box = {"min": (0, -1, -1), "max": (0.1, 1, 1)}
    speeds = [[1, 0, 0], [1, 0, 0]]
    sim = advanced(ball_scene(positions=[[-0.1, 0, 0], [-0.2, 0, 0]], velocities=speeds, outflows=[box]), 0.25)
    assert sim.flags().tolist() == [GONE, GONE]
    assert sim.velocities()[1].tolist() == sim.velocities()[0].tolist() == [0, 0, 0]
    assert np.abs(sim.positions()[:, 0]).max() < 0.02


def test_flags_of_the_lost_and_the_sleeping():
    scene = ball_scene(positions=[[0, 0, 0], [0.5, 0, 0]], velocities=[[0, 0, 0], [1, 0, 0]], planes=None)
    sim = advanced(scene, 30)
    assert sim.flags().tolist() == [0, LOST] and sim.info()["lost_count"] == 1
    floor = [[0, 0, -BALL_RADIUS, 0, 0, 1]]
    sim = advanced(ball_scene(planes=floor, gravity=(0, 0, -9.81), sleep_speed=0.01, sleep_seconds=0.05), 0.5)
    assert sim.flags().tolist() == [ASLEEP] and sim.info()["asleep_count"] == 1
    sim = barchan.Sim(make_scene(), threads=1)
    assert sim.flags().tolist() == 27 * [0]


def test_flags_are_a_new_array_each_time():
    sim = barchan.Sim(jet_scene(), threads=1)
    sim.flags()[:] = 99
    assert sim.flags().tolist() == 10 * [UNBORN]
    with pytest.raises(TypeError):
        sim.flags(1)


def test_emission_is_the_same_for_every_number_of_threads():
    scene = shower_scene()
    ends = []
    for settings in ({"threads": 1}, {"threads": 2}, {"threads": 3}, {"threads": 2, "kernel": "baseline"}):
        sim = barchan.Sim(scene, **settings)
        seen = []
        for _ in range(8):
            sim.advance(0.1)
            seen.append((sim.hash(), sim.flags().tobytes(), sim.info()["unborn_count"], sim.info()["gone_count"]))
        ends.append(seen)
    print([(unborn, gone) for _, _, unborn, gone in ends[0]])
    assert ends[0] == ends[1] == ends[2] == ends[3]
    assert ends[0][0][2] > 0 and ends[0][-1][3] > 5


@pytest.mark.parametrize("pause", [0, 0.05, 0.33, 0.7])
def test_a_checkpoint_in_the_middle_of_an_emission_goes_on_to_the_bit(pause):
    scene = shower_scene()
    sim = advanced(scene, pause, threads=2)
    data, flags = sim.save(), sim.flags()
    if pause in (0.05, 0.33):
        assert 0 < np.sum(flags == UNBORN) < 60
    others = [barchan.Sim(scene, threads=threads) for threads in (1, 2, 3)]
    others.append(barchan.Sim(shower_scene(), threads=1))  # an equal scene, made anew
    for other in others:
        other.advance(0.2)  # somewhere else, with grains born and gone
        other.load(data)
        assert np.array_equal(other.flags(), flags) and other.hash() == sim.hash()
    for _ in range(4):
        sim.advance(0.1)
        for other in others:
            other.advance(0.1)
            assert other.hash() == sim.hash() and np.array_equal(other.flags(), sim.flags())
            assert other.info()["late_count"] == sim.info()["late_count"]


def test_nothing_is_kept_of_the_places():
    places = np.zeros((1, 3), np.float32)
    scene = jet_scene({**JET, "positions": places})
    places[:] = 7
    assert advanced(scene, 2).hash() == advanced(jet_scene(), 2).hash()
    wide = np.zeros((4, 5), np.float64)[::2, 1:4]
    assert jet_scene({**JET, "positions": wide[:1]}).hash == scene.hash


@pytest.mark.parametrize(
    "argument, change, kind, sentence",
    [
        ("emitters", 3, TypeError, "emitters: found int, expected a sequence of dicts"),
        ("emitters", JET, TypeError, "emitters: found dict, expected a sequence of dicts"),
        ("emitters", [3], TypeError, r"emitters\[0\]: found int, expected a dict"),
        ("emitters", [JET, {"rate": 3}], ValueError, r"emitters\[1\]: found no key 'positions', expected one"),
        ("emitters", [{"positions": NOTHING, "rate": 1}], ValueError, r"emitters\[0\]: found no key 'end'"),
        ("emitters", [{"positions": NOTHING, "end": 1}], ValueError, r"emitters\[0\]: found no key 'rate'"),
        (
            "emitters",
            [{**JET, "speed": 1}],
            ValueError,
            r"emitters\[0\]: found the key 'speed', expected positions, velocity, rate, begin, end, shape, material "
            "or scale",
        ),
        ("positions", None, TypeError, r"emitters\[0\] positions: found NoneType, expected an array of float32"),
        ("positions", [0, 0, 0], ValueError, r"emitters\[0\] positions: found shape \(3,\), expected \(N, 3\)"),
        ("positions", NOTHING, ValueError, "Emitter 0 has 0 places, expected at least one"),
        ("positions", [[0, np.nan, 0]], ValueError, "emitter place of number 0 is not finite"),
        ("velocity", 1, ValueError, r"emitters\[0\] velocity: found shape \(\), expected \(3,\)"),
        ("velocity", (0, 0, np.inf), ValueError, "Emitter 0"),
        ("rate", "many", TypeError, r"emitters\[0\] rate: found str, expected a number"),
        ("rate", None, TypeError, r"emitters\[0\] rate: found NoneType, expected a number"),
        ("rate", 0, ValueError, "Emitter 0 has a rate of 0 grains/s"),
        ("rate", np.nan, ValueError, "Emitter 0 has a rate of nan grains/s"),
        ("rate", 10**400, ValueError, r"emitters\[0\] rate is a whole number beyond every float"),
        ("rate", 1e9, ValueError, "Emitter 0 brings the scene to .* spheres, expected at most"),
        ("begin", 2, ValueError, "Emitter 0 runs from 2 s to 1.5 s, expected 0 <= begin < end"),
        ("begin", -1, ValueError, "Emitter 0 runs from -1 s"),
        ("end", np.inf, ValueError, "Emitter 0 runs from 0.5 s to inf s"),
        ("shape", 1, ValueError, "Emitter 0 has shape 1"),
        ("shape", 0.5, TypeError, r"emitters\[0\] shape: found float, expected a whole number"),
        ("material", -1, ValueError, "Emitter 0 has shape 0, material -1"),
        ("scale", -1, ValueError, "size -1"),
        ("outflows", [{"min": (0, 0, 0)}], ValueError, r"outflows\[0\]: found no key 'max', expected one"),
        ("outflows", [{**DRAIN, "size": 1}], ValueError, r"outflows\[0\]: found the key 'size', expected min or max"),
        ("outflows", [{**DRAIN, "max": 1}], ValueError, r"outflows\[0\] max: found shape \(\), expected \(3,\)"),
        ("outflows", [DRAIN, {**DRAIN, "min": (0, np.nan, 0)}], ValueError, "Outflow 1"),
        ("outflows", [None], TypeError, r"outflows\[0\]: found NoneType, expected a dict"),
    ],
)
def test_bad_emitters_and_outflows_are_named(argument, change, kind, sentence):
    if argument not in ("emitters", "outflows"):
        argument, change = "emitters", [{**JET, argument: change}]
    with pytest.raises(kind, match=sentence):
        ball_scene(**{argument: change})


def test_without_grains_and_without_emitters_there_is_no_scene():
    with pytest.raises(ValueError, match="no grains"):
        ball_scene(positions=NOTHING, emitters=[])
