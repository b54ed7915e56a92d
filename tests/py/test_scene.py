"""barchan.Scene: everything by keyword, every array checked, nothing kept of the caller's arrays."""

import barchan
import numpy as np
import pytest
from conftest import make_scene, scene_arguments

COUNT = 27


def test_counts_hash_contact_time_and_speed(scene):
    assert scene.grain_count == COUNT
    assert scene.sphere_count == 4 * COUNT
    assert 0 <= scene.hash < 2**64
    assert 0 < scene.contact_time < 1
    assert 0 < scene.max_speed < 10


def test_max_speed_is_as_given_or_from_the_height_of_fall():
    assert make_scene(max_speed=4).max_speed == 4
    # One grain whose centre is 2 m above the floor: free fall through all of the height, its own radius included.
    tall = make_scene(positions=[[0, 0, 2]], shapes=[(None, [0.25])], planes=[[0, 0, 0, 0, 0, 1]])
    assert tall.max_speed == pytest.approx((2 * 9.81 * 2.25) ** 0.5, rel=1e-6)


def test_every_argument_is_taken_and_changes_the_scene():
    base = make_scene()
    turned = np.tile(np.float32([0, 1, 0, 0]), (COUNT, 1))
    ones = np.ones((COUNT, 3), np.float32)
    radius = np.full(4, 0.02, np.float32)
    changes = {
        "positions": scene_arguments()["positions"] + np.float32(0.001),
        "shapes": [(barchan.tetrahedron(0.02), radius * np.float32(0.99))],
        "gravity": (0, 0, -9.80),
        "max_overlap": 0.05,
        "max_speed": 9,
        "restitution_speed": 3,
        "density": 1000,
        "restitution": 0.3,
        "friction": 0.1,
        "scales": np.full(COUNT, 0.9),
        "drag": 0.1,
        "wind": (1, 0, 0),
        "sleep_speed": 0.1,
        "sleep_seconds": 0.2,
        "wake_speed": 0.3,
        "orientations": turned,
        "velocities": ones,
        "spins": ones,
        "wall_positions": np.float32([[0, 0, -5]]),
        "planes": np.float32([[0, 0, -0.1, 0, 0, 1]]),
        "seed": 8,
    }
    hashes = {name: make_scene(**{"wall_radius": 0.02, name: value}).hash for name, value in changes.items()}
    hashes["base"] = base.hash
    # Of two shapes, the second is chosen by some grains.
    two = [(None, [0.02]), (None, [0.03])]
    chosen = np.arange(COUNT, dtype=np.int32) % 2
    hashes["two shapes"] = make_scene(shapes=two).hash
    hashes["grain_shapes"] = make_scene(shapes=two, grain_shapes=chosen).hash
    hashes["no planes"] = make_scene(planes=None).hash
    materials = [{}, {"friction": 0.1}]
    hashes["materials"] = make_scene(materials=materials).hash
    hashes["material_pairs"] = make_scene(materials=materials, material_pairs=[{"a": 0, "b": 1, "friction": 0}]).hash
    hashes["grain_materials"] = make_scene(materials=materials, grain_materials=chosen).hash
    hashes["wall_material"] = make_scene(materials=materials, wall_material=1).hash
    hashes["obstacles"] = make_scene(obstacles=[{"kind": "box", "size": (1, 1, 1), "is_inside": True}]).hash
    hashes["regions"] = make_scene(regions=[{"min": (0, 0, 0), "max": (1, 1, 1), "acceleration": (0, 0, 1)}]).hash
    walls = np.float32([[0, 0, -5]])
    hashes["wall_radius"] = make_scene(wall_positions=walls, wall_radius=0.01).hash
    assert len(set(hashes.values())) == len(hashes), hashes


def test_equal_arguments_give_equal_hashes():
    assert make_scene().hash == make_scene().hash
    assert make_scene(gravity=None, orientations=None).hash == make_scene(gravity=(0, 0, -9.81)).hash
    assert make_scene(friction=-1, density=0).hash == make_scene().hash
    assert (
        make_scene(
            scales=None,
            materials=None,
            material_pairs=None,
            grain_materials=None,
            obstacles=None,
            regions=None,
            wind=None,
            drag=0,
            restitution_speed=0,
            sleep_speed=0,
            sleep_seconds=0,
            wake_speed=0,
            wall_material=0,
        ).hash
        == make_scene().hash
    )


def test_gravity_keeps_double_precision():
    assert make_scene(gravity=np.float64([0, 0, -9.81])).hash == make_scene().hash
    assert make_scene(gravity=np.float32([0, 0, -9.81])).hash != make_scene().hash


def test_every_form_of_the_same_numbers_gives_the_same_hash():
    arguments = scene_arguments()
    positions, (offsets, radii) = arguments["positions"], arguments["shapes"][0]
    wide = np.zeros((2 * COUNT, 5), np.float32)
    wide[::2, 1:4] = positions
    expected = make_scene().hash
    assert make_scene(positions=wide[::2, 1:4]).hash == expected
    assert make_scene(positions=positions.astype(np.float64)).hash == expected
    assert make_scene(positions=np.asfortranarray(positions)).hash == expected
    assert make_scene(positions=positions.tolist()).hash == expected
    assert make_scene(shapes=((offsets.astype(np.float64), radii.tolist()),)).hash == expected
    assert make_scene(shapes=iter([[offsets[::-1][::-1], radii]])).hash == expected
    assert make_scene(planes=[(0, 0, 0, 0, 0, 1)]).hash == expected


def test_the_scene_keeps_nothing_of_the_arrays():
    arguments = scene_arguments()
    scene = barchan.Scene(**arguments)
    expected = barchan.Sim(scene, threads=1).positions()
    arguments["positions"][:] = 9
    arguments["shapes"][0][0][:] = 9
    arguments["planes"][:] = 9
    assert np.array_equal(barchan.Sim(scene, threads=1).positions(), expected)


def test_arguments_are_keyword_only_and_two_are_required():
    arguments = scene_arguments()
    with pytest.raises(TypeError, match="positional"):
        barchan.Scene(arguments["positions"], arguments["shapes"])
    with pytest.raises(TypeError, match="'positions'"):
        barchan.Scene(shapes=arguments["shapes"])
    with pytest.raises(TypeError, match="'shapes'"):
        barchan.Scene(positions=arguments["positions"])
    with pytest.raises(TypeError, match="'positions'"):
        barchan.Scene(positions=None, shapes=arguments["shapes"])
    with pytest.raises(TypeError, match="colour"):
        make_scene(colour=3)


@pytest.mark.parametrize(
    "name, value, sentence",
    [
        ("positions", np.zeros((5, 2)), r"positions: found shape \(5, 2\), expected \(N, 3\)"),
        ("orientations", np.zeros((COUNT, 3)), r"orientations: found shape \(27, 3\), expected \(27, 4\)"),
        ("orientations", np.zeros((5, 4)), r"orientations: found shape \(5, 4\), expected \(27, 4\)"),
        ("velocities", np.zeros((26, 3)), r"velocities: found shape \(26, 3\), expected \(27, 3\)"),
        ("spins", np.zeros(81), r"spins: found shape \(81,\), expected \(27, 3\)"),
        ("grain_shapes", np.zeros(26, np.int32), r"grain_shapes: found shape \(26,\), expected \(27,\)"),
        ("grain_shapes", np.zeros((27, 1), np.int32), r"grain_shapes: found shape \(27, 1\), expected \(27,\)"),
        ("wall_positions", np.zeros((5, 4)), r"wall_positions: found shape \(5, 4\), expected \(N, 3\)"),
        ("planes", np.zeros((1, 4)), r"planes: found shape \(1, 4\), expected \(N, 6\)"),
        ("planes", np.zeros(6), r"planes: found shape \(6,\), expected \(N, 6\)"),
        ("gravity", (0, 0), r"gravity: found shape \(2,\), expected \(3,\)"),
        ("gravity", 9.81, r"gravity: found shape \(\), expected \(3,\)"),
        ("shapes", [(np.zeros((4, 2)), np.ones(4))], r"shapes\[0\] offsets: found shape \(4, 2\), expected \(4, 3\)"),
        ("shapes", [(np.zeros((3, 3)), np.ones(4))], r"shapes\[0\] offsets: found shape \(3, 3\), expected \(4, 3\)"),
        ("shapes", [(None, [0.1]), (None, 0.1)], r"shapes\[1\] radii: found shape \(\), expected \(N,\)"),
        ("shapes", [(None, [0.1], None, 3)], r"shapes\[0\]: found 4 items, expected a pair"),
        ("shapes", [(None, [0.1], 3)], r"shapes\[0\] body: "),
        ("shapes", [], "no grain shape"),
    ],
)
def test_a_wrong_shape_is_named_with_found_and_expected(name, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_scene(**{name: value})


@pytest.mark.parametrize(
    "name, value, sentence",
    [
        ("positions", "abc", "positions: found str, expected an array of float32"),
        ("velocities", np.zeros((COUNT, 3), complex), "velocities: found an array of complex128"),
        ("grain_shapes", np.zeros(COUNT), "grain_shapes: found an array of float64, expected an array of int32"),
        ("gravity", "down", "gravity: found str"),
        ("shapes", 3, "shapes: found int, expected a sequence of pairs"),
        ("shapes", [3], r"shapes\[0\]: found int, expected a pair"),
        ("shapes", [(None, None)], r"shapes\[0\] radii: found NoneType"),
        ("shapes", [("x", [0.1])], r"shapes\[0\] offsets: found str"),
        ("density", "heavy", "density: found str, expected a number"),
        ("restitution", None, "restitution: found NoneType, expected a number"),
        ("friction", [1], "friction: found list, expected a number"),
        ("max_overlap", "x", "max_overlap: found str, expected a number"),
        ("max_speed", 1j, "max_speed: found complex, expected a number"),
        ("wall_radius", "x", "wall_radius: found str, expected a number"),
        ("restitution_speed", "x", "restitution_speed: found str, expected a number"),
        ("sleep_speed", None, "sleep_speed: found NoneType, expected a number"),
        ("sleep_seconds", "x", "sleep_seconds: found str, expected a number"),
        ("wake_speed", [1], "wake_speed: found list, expected a number"),
        ("shapes", {"a": 1}, "shapes: found dict, expected a sequence of pairs"),
        ("seed", 0.5, "seed: found float, expected a whole number"),
    ],
)
def test_a_wrong_type_is_named(name, value, sentence):
    with pytest.raises(TypeError, match=sentence):
        make_scene(**{name: value})


def spoilt(shape, index, value):
    array = np.ones(shape, np.float32) * np.float32(0.5)
    array[index] = value
    return array


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"positions": spoilt((COUNT, 3), (11, 2), np.nan)}, r"\b11\b"),
        ({"positions": np.zeros((0, 3))}, "grain"),
        ({"velocities": spoilt((COUNT, 3), (12, 0), np.inf)}, r"\b12\b"),
        ({"spins": spoilt((COUNT, 3), (13, 0), np.nan)}, r"\b13\b"),
        ({"orientations": spoilt((COUNT, 4), (14, 0), 3)}, r"\b14\b"),
        ({"grain_shapes": np.full(COUNT, 1, np.int32)}, r"\b1\b"),
        ({"grain_shapes": np.full(COUNT, -1, np.int32)}, "-1"),
        ({"shapes": [(None, [0.02, -1])]}, "-1"),
        ({"shapes": [(None, [])]}, "sphere"),
        ({"shapes": [(np.full((1, 3), np.nan), [0.02])]}, "Sphere 0 of grain shape 0"),
        ({"wall_positions": spoilt((5, 3), (4, 1), np.nan), "wall_radius": 0.02}, r"\b4\b"),
        ({"wall_positions": np.zeros((5, 3)), "wall_radius": 0}, "radius"),
        ({"planes": np.float32([[0, 0, 0, 0, 0, 0]])}, "Obstacle 0"),
        ({"planes": np.float32([[0, 0, np.nan, 0, 0, 1]])}, "Obstacle 0"),
        ({"gravity": (0, 0, np.nan)}, "(?i)gravity"),
        ({"density": -1}, "-1"),
        ({"density": np.nan}, "(?i)density"),
        ({"restitution": 1.5}, "1.5"),
        ({"friction": np.nan}, "(?i)friction"),
        ({"friction": np.inf}, "(?i)friction"),
        ({"max_overlap": 0.9}, "0.9"),
        ({"max_speed": -3}, "-3"),
        ({"max_speed": 1e300}, "(?i)speed"),
        ({"restitution_speed": -1}, "-1"),
        ({"sleep_speed": np.nan}, "sleeping speed is nan"),
        ({"sleep_seconds": -1}, "fall asleep is -1"),
        ({"wake_speed": np.inf}, "waking speed is inf"),
        ({"positions": [[1, 2], [3]]}, "positions: "),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
    ],
)
def test_a_bad_number_is_a_value_error_that_names_it(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_scene(**changes)


def test_empty_optional_arrays_are_like_none():
    expected = make_scene(planes=None).hash
    assert make_scene(planes=np.zeros((0, 6), np.float32), wall_positions=np.zeros((0, 3), np.float32)).hash == expected


def test_properties_cannot_be_set(scene):
    for name in ("grain_count", "sphere_count", "hash", "contact_time", "max_speed"):
        with pytest.raises(AttributeError):
            setattr(scene, name, 1)
