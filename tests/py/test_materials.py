"""Scene(materials=, material_pairs=, grain_materials=, wall_material=): what the numbers do, and bad ones by name."""

import numpy as np
import pytest
from conftest import BALL_RADIUS, advanced, advanced_finely, ball_scene, make_scene

FLOOR = [[0, 0, 0, 0, 0, 1], [0, 0, -10, 0, 0, 1]]
# Impacts are integrated with about 128 steps a contact: the error of the leapfrog is a few thousandths.
IMPACT = 0.005


def bounce(speed=1.0, **changes):
    """Vertical speed of a ball after it met the floor at the given speed."""
    changes = {"planes": FLOOR, **changes}
    scene = ball_scene(positions=[[0, 0, BALL_RADIUS + 0.001]], velocities=[[0, 0, -speed]], max_speed=speed, **changes)
    sim = advanced_finely(scene, 0.03 / speed)
    assert sim.info()["contact_count"] == 0 and sim.info()["lost_count"] == 0
    return float(sim.velocities()[0, 2])


@pytest.mark.parametrize("normal", ["linear", "hertz-constant"])
@pytest.mark.parametrize("restitution", [0.3, 0.7, 0.95])
def test_a_ball_leaves_the_floor_with_the_restitution_of_its_material(normal, restitution):
    found = bounce(materials=[{"normal": normal, "restitution": restitution, "friction": 0}])
    print(found)
    assert found == pytest.approx(restitution, abs=IMPACT)


@pytest.mark.parametrize("speed", [0.5, 3.0])
def test_restitution_speed_is_where_the_restitution_holds(speed):
    """Of the laws whose restitution depends on the speed. Two equal balls, for that is what the laws are made for."""
    ends = {}
    for normal in ("hertz", "hertz-damper"):
        for restitution_speed in (speed, 2 * speed):
            scene = ball_scene(
                positions=[[-BALL_RADIUS - 0.001, 0, 0], [BALL_RADIUS + 0.001, 0, 0]],
                velocities=[[speed / 2, 0, 0], [-speed / 2, 0, 0]],
                max_speed=speed,
                restitution_speed=restitution_speed,
                materials=[{"normal": normal, "restitution": 0.6}],
            )
            velocities = advanced_finely(scene, 0.06 / speed).velocities()
            ends[normal, restitution_speed] = (velocities[1, 0] - velocities[0, 0]) / speed
        assert ends[normal, speed] == pytest.approx(0.6, abs=IMPACT), ends
    # Slower than the calibrated speed: hertz gives more back, the damper less.
    print(ends)
    assert ends["hertz", 2 * speed] > 0.6 + IMPACT and ends["hertz-damper", 2 * speed] < 0.6 - IMPACT


def two_materials(**pair):
    materials = [{"normal": "linear", "restitution": 0.5}, {"normal": "linear", "restitution": 0.9}]
    return {"materials": materials, "material_pairs": [pair] if pair else None}


def test_two_materials_meet_at_their_geometric_mean():
    obstacles = [{"kind": "plane", "axis": (0, 0, 1), "material": 1}]
    found = bounce(planes=FLOOR[1:], obstacles=obstacles, **two_materials())
    assert found == pytest.approx((0.5 * 0.9) ** 0.5, abs=IMPACT)


@pytest.mark.parametrize("a, b", [(0, 1), (1, 0)])
def test_a_material_pair_overrules_the_mean(a, b):
    obstacles = [{"kind": "plane", "axis": (0, 0, 1), "material": 1}]
    found = bounce(planes=FLOOR[1:], obstacles=obstacles, **two_materials(a=a, b=b, restitution=0.3))
    assert found == pytest.approx(0.3, abs=IMPACT)


def test_what_a_pair_leaves_out_stays_the_mean():
    obstacles = [{"kind": "plane", "axis": (0, 0, 1), "material": 1}]
    found = bounce(planes=FLOOR[1:], obstacles=obstacles, **two_materials(a=0, b=1, friction=0.1))
    assert found == pytest.approx((0.5 * 0.9) ** 0.5, abs=IMPACT)


@pytest.mark.parametrize("wall_material, expected", [(0, 0.5), (1, 0.3)])
def test_walls_are_of_the_wall_material(wall_material, expected):
    walls = {"wall_positions": [[0, 0, -BALL_RADIUS]], "wall_radius": BALL_RADIUS, "wall_material": wall_material}
    found = bounce(planes=FLOOR[1:], **walls, **two_materials(a=0, b=1, restitution=0.3))
    assert found == pytest.approx(expected, abs=IMPACT)


@pytest.mark.parametrize("grain_material, expected", [(0, 0.5), (1, 0.3)])
def test_grains_are_of_their_own_material(grain_material, expected):
    found = bounce(grain_materials=[grain_material], **two_materials(a=0, b=1, restitution=0.3))
    assert found == pytest.approx(expected, abs=IMPACT)


@pytest.mark.parametrize("friction", [0, 0.2, 0.5])
@pytest.mark.parametrize("shear", ["viscous", "history"])
def test_a_sliding_ball_slows_by_friction_times_gravity(friction, shear):
    # In equilibrium on the floor, so that the normal force is the weight from the start but for the first millimetres.
    materials = [{"density": 1000, "friction": friction, "restitution": 0.1, "shear": shear}]
    scene = ball_scene(positions=[[0, 0, BALL_RADIUS]], planes=FLOOR, gravity=(0, 0, -10), materials=materials)
    sink = BALL_RADIUS - advanced(scene, 1.0).positions()[0, 2]
    scene = ball_scene(
        positions=[[0, 0, BALL_RADIUS - sink]],
        velocities=[[1, 0, 0]],
        planes=FLOOR,
        gravity=(0, 0, -10),
        materials=materials,
    )
    speed = float(advanced(scene, 0.04).velocities()[0, 0])
    print(sink, speed)
    # Sliding ends, with rolling at 5/7 of the speed, only after 2 / (7 friction g) >= 0.057 s.
    assert speed == pytest.approx(1 - friction * 10 * 0.04, abs=0.004)


def test_rolling_resistance_stops_a_ball_and_its_absence_does_not():
    ends = []
    for rolling in (0, 0.1):
        scene = ball_scene(
            positions=[[0, 0, BALL_RADIUS]],
            velocities=[[0.1, 0, 0]],
            spins=[[0, 0.1 / BALL_RADIUS, 0]],
            planes=FLOOR,
            gravity=(0, 0, -10),
            materials=[{"rolling": rolling, "restitution": 0.1}],
        )
        ends.append(float(advanced(scene, 0.5).velocities()[0, 0]))
    print(ends)
    # Rolling keeps its speed but for what the first sinking in takes.
    assert ends[0] > 0.09 and abs(ends[1]) < 0.001


def test_cohesion_holds_a_hanging_ball():
    """Under a ceiling; the pull 2 pi cohesion radius is ten weights, or a tenth."""
    weight = 4 / 3 * np.pi * BALL_RADIUS**3 * 1000 * 10
    ends = []
    for share in (10, 0.1):
        cohesion = share * weight / (2 * np.pi * BALL_RADIUS)
        scene = ball_scene(
            positions=[[0, 0, -BALL_RADIUS]],
            gravity=(0, 0, -10),
            planes=[[0, 0, 0, 0, 0, -1], FLOOR[1]],
            materials=[{"density": 1000, "cohesion": cohesion, "cohesion_range": 0.5}],
        )
        ends.append(float(advanced(scene, 0.2).positions()[0, 2]))
    print(ends)
    assert ends[0] == pytest.approx(-BALL_RADIUS, abs=0.3 * BALL_RADIUS)
    assert ends[1] < -5 * BALL_RADIUS


def test_a_stiffer_material_has_shorter_contacts():
    soft, stiff = (ball_scene(materials=[{"young": young, "poisson": 0.3}]) for young in (1e6, 1e8))
    # Hertz: duration ~ modulus^(-2/5); float32 constants.
    assert soft.contact_time / stiff.contact_time == pytest.approx(100**0.4, rel=1e-5)


def test_the_one_material_is_a_list_of_one():
    numbers = {"density": 1500, "restitution": 0.4, "friction": 0.7}
    assert make_scene(**numbers).hash == make_scene(materials=[numbers]).hash
    assert make_scene().hash == make_scene(materials=[{}]).hash == make_scene(materials=None).hash
    assert make_scene().hash == make_scene(materials=[], material_pairs=[]).hash


def test_every_key_changes_the_scene():
    plain = {"cohesion": 0.1}
    changes = {
        "density": 1000,
        "young": 1e7,
        "poisson": 0.3,
        "restitution": 0.3,
        "friction": 0.1,
        "rolling": 0.1,
        "cohesion": 0.2,
        "cohesion_range": 0.3,
        "normal": "linear",
        "shear": "history",
    }
    hashes = {name: make_scene(materials=[{**plain, name: value}]).hash for name, value in changes.items()}
    for normal in ("hertz-constant", "hertz-damper"):
        hashes[normal] = make_scene(materials=[{**plain, "normal": normal}]).hash
    hashes["plain"] = make_scene(materials=[plain]).hash
    assert make_scene(materials=[{**plain, "normal": "hertz", "shear": "viscous"}]).hash == hashes["plain"]
    for name in ("restitution", "friction", "rolling", "cohesion"):
        hashes["pair", name] = make_scene(materials=[plain], material_pairs=[{"a": 0, "b": 0, name: 0.05}]).hash
    assert len(set(hashes.values())) == len(hashes), hashes


def test_lists_may_be_any_iterable_and_numbers_any_number():
    expected = make_scene(materials=[{"friction": 0.5, "density": 2000}]).hash
    assert make_scene(materials=({"friction": np.float64(0.5), "density": 2000},)).hash == expected
    assert make_scene(materials=iter([{"friction": np.float32(0.5), "density": np.int16(2000)}])).hash == expected


@pytest.mark.parametrize(
    "changes, kind, sentence",
    [
        ({"materials": 3}, TypeError, "materials: found int, expected a sequence of dicts"),
        ({"materials": {"friction": 1}}, TypeError, "materials: found dict, expected a sequence of dicts"),
        ({"materials": [{}, 3]}, TypeError, r"materials\[1\]: found int, expected a dict"),
        ({"materials": "ab"}, TypeError, r"materials\[0\]: found str, expected a dict"),
        (
            {"materials": [{"frction": 1}]},
            ValueError,
            r"materials\[0\]: found the key 'frction', expected density, young, poisson, restitution, friction, "
            "rolling, cohesion, cohesion_range, normal or shear",
        ),
        ({"materials": [{3: 1}]}, TypeError, r"materials\[0\]: found the key 3, expected density"),
        ({"materials": [{}, {"friction": "x"}]}, TypeError, r"materials\[1\] friction: found str, expected a number"),
        ({"materials": [{"density": None}]}, TypeError, r"materials\[0\] density: found NoneType, expected a number"),
        ({"materials": [{"young": 10**400}]}, ValueError, r"materials\[0\] young is a whole number beyond every float"),
        (
            {"materials": [{"normal": "hooke"}]},
            ValueError,
            r"materials\[0\] normal: found 'hooke', expected hertz, hertz-constant, hertz-damper or linear",
        ),
        ({"materials": [{"shear": 1}]}, TypeError, r"materials\[0\] shear: found int, expected viscous or history"),
        ({"materials": [{}], "density": 1000}, TypeError, "density: found beside materials"),
        ({"materials": [{}], "friction": 0}, TypeError, "friction: found beside materials"),
        ({"materials": [{}] * 65}, ValueError, "65 materials, expected at most 64"),
        ({"materials": [{}, {"density": -1}]}, ValueError, "density of material 1 is -1"),
        ({"materials": [{"restitution": float("nan")}]}, ValueError, "restitution of material 0 is nan"),
        ({"materials": [{"normal": "linear"}, {}]}, ValueError, "different contact laws"),
        ({"material_pairs": [{"a": 0}]}, ValueError, r"material_pairs\[0\]: found no key 'b', expected one"),
        (
            {"material_pairs": [{"b": 0, "friction": 1}]},
            ValueError,
            r"material_pairs\[0\]: found no key 'a', expected one",
        ),
        (
            {"material_pairs": [{"a": 0, "b": 1}]},
            ValueError,
            "Material pair 0 is of materials 0 and 1, expected 0 to 0",
        ),
        (
            {"material_pairs": [{"a": 0.5, "b": 0}]},
            TypeError,
            r"material_pairs\[0\] a: found float, expected a whole number",
        ),
        ({"material_pairs": [{"a": 0, "b": 2**40}]}, ValueError, r"material_pairs\[0\] b is 1099511627776"),
        (
            {"material_pairs": [{"a": 0, "b": 0, "density": 1}]},
            ValueError,
            r"material_pairs\[0\]: found the key 'density', expected a, b, restitution, friction, rolling or cohesion",
        ),
        (
            {"material_pairs": [{"a": 0, "b": 0, "friction": float("nan")}]},
            ValueError,
            "Material pair 0 has .* friction nan",
        ),
        ({"wall_material": 1}, ValueError, "walls have material 1, expected 0 to 0"),
        ({"wall_material": "glass"}, TypeError, "wall_material: found str, expected a whole number"),
        ({"grain_materials": np.full(27, 1)}, ValueError, "Grain 0 has material 1, expected 0 to 0"),
        (
            {"grain_materials": np.zeros(27)},
            TypeError,
            "grain_materials: found an array of float64, expected an array of int32",
        ),
        ({"grain_materials": [0]}, ValueError, r"grain_materials: found shape \(1,\), expected \(27,\)"),
    ],
)
def test_bad_materials_are_named(changes, kind, sentence):
    with pytest.raises(kind, match=sentence):
        make_scene(**changes)


def test_a_number_that_changes_the_dict_while_it_is_read_does_no_harm():
    class Sly:
        def __float__(self):
            material.clear()
            materials.clear()
            return 1500.0

    material = {"density": Sly(), "friction": 0.3}
    materials = [material, {"friction": 0.2}]
    expected = make_scene(materials=[{"density": 1500, "friction": 0.3}, {"friction": 0.2}]).hash
    assert make_scene(materials=materials).hash == expected
    assert not materials


def test_what_a_value_raises_is_passed_on():
    class Broken:
        def __float__(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        make_scene(materials=[{"density": Broken()}])
