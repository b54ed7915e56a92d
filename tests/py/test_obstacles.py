"""Scene(obstacles=, regions=, drag=, wind=): surfaces and fields around the grains, and bad ones by name."""

import barchan
import numpy as np
import pytest
from conftest import BALL_RADIUS, advanced, advanced_finely, ball_scene, make_scene, scene_arguments

BOUNCY = [{"normal": "linear", "restitution": 0.5, "friction": 0}]
IMPACT = 0.005  # of an impact of about 128 steps


def test_planes_are_obstacles():
    rows = [[0, 0, 0, 0, 0, 1], [0.5, 0, 0, -1, 0, 0]]
    dicts = [{"kind": "plane", "point": row[:3], "axis": row[3:]} for row in rows]
    scenes = [
        make_scene(planes=rows),
        make_scene(planes=None, obstacles=dicts),
        make_scene(planes=rows[:1], obstacles=dicts[1:]),  # planes come first
    ]
    assert len({scene.hash for scene in scenes}) == 1
    assert len({advanced(scene, 0.2).hash() for scene in scenes}) == 1
    assert make_scene(planes=rows[1:], obstacles=dicts[:1]).hash != scenes[0].hash


def test_an_axis_need_not_be_unit():
    axes = ([0, 0, 2], (0, 0, np.float32(0.125)), np.array([0, 0, 1]))
    assert len({make_scene(planes=None, obstacles=[{"kind": "plane", "axis": axis}]).hash for axis in axes}) == 1


@pytest.mark.parametrize(
    "obstacle, start",
    [
        ({"kind": "box", "size": (0.1, 0.2, 0.2), "is_inside": True}, 0),
        ({"kind": "cylinder", "axis": (0, 0, 1), "size": (0.1, 0.2, 0), "is_inside": True}, 0),
        ({"kind": "cylinder", "axis": (0, 0, 1), "size": (0.1, 0, 0), "is_inside": True}, 0),  # endless
        ({"kind": "cylinder", "axis": (1, 0, 0), "size": (0.2, 0.1, 0), "is_inside": np.True_}, 0),  # its end cap
        ({"kind": "box", "size": (0.1, 0.2, 0.2)}, -0.2),
        ({"kind": "cylinder", "axis": (0, 0, 1), "size": (0.1, 0.2, 0), "is_inside": False}, -0.2),
    ],
)
def test_a_ball_is_turned_back_where_the_surface_is(obstacle, start):
    """It flies along x with 1 m/s. Inside, the surface is at 0.1; outside, coming from the left, at -0.1."""
    surface = 0.1 if obstacle.get("is_inside") else -0.1
    scene = ball_scene(
        positions=[[start, 0, 0]], velocities=[[1, 0, 0]], materials=BOUNCY, obstacles=[{"material": 0, **obstacle}]
    )
    time = surface - BALL_RADIUS - start
    before, after = advanced_finely(scene, 0.98 * time), advanced_finely(scene, time + 0.02)
    assert before.velocities()[0] == pytest.approx([1, 0, 0], abs=1e-6)
    assert after.velocities()[0] == pytest.approx([-0.5, 0, 0], abs=IMPACT)
    assert after.info()["lost_count"] == 0


def test_a_funnel_of_45_degrees_turns_a_falling_ball_aside():
    # The apex below; the ball falls onto the side at 45 degrees: frictionless, with restitution 1, down becomes across.
    cone = {"kind": "cone", "point": (0, 0, -0.2), "axis": (0, 0, 1), "size": (1, 0, 1), "is_inside": True}
    materials = [{"normal": "linear", "restitution": 1, "friction": 0}]
    scene = ball_scene(positions=[[0.1, 0, 0]], velocities=[[0, 0, -1]], materials=materials, obstacles=[cone])
    velocity = advanced_finely(scene, 0.12).velocities()[0]
    print(velocity)
    assert velocity == pytest.approx([-1, 0, 0], abs=2 * IMPACT)


def test_a_rough_plane_is_not_a_smooth_one():
    def end(roughness):
        plane = {"kind": "plane", "axis": (0, 0, 1), "roughness": roughness}
        scene = ball_scene(
            positions=[[0.003, 0.004, 0.05]], velocities=[[0, 0, -1]], materials=BOUNCY, obstacles=[plane]
        )
        return advanced_finely(scene, 0.08).velocities()[0]

    assert end(0)[:2] == pytest.approx([0, 0], abs=1e-6)
    assert np.abs(end(0.01)[:2]).max() > 0.01


def test_wind_carries_with_its_drag():
    scene = ball_scene(drag=2, wind=(1, 0, -0.5))
    # v = wind (1 - exp(-drag t)); second order in a step of milliseconds.
    assert advanced(scene, 0.5).velocities()[0] == pytest.approx((1 - np.exp(-1)) * np.array([1, 0, -0.5]), abs=1e-3)


def test_a_region_pushes_only_what_is_inside():
    region = {"min": (0.5, -1, -1), "max": (2, 1, 1), "acceleration": (0, 3, 0)}
    scene = ball_scene(positions=[[0, 0, 0], [1, 0, 0]], regions=[region])
    velocities = advanced(scene, 0.1).velocities()
    assert velocities[0].tolist() == [0, 0, 0]
    assert velocities[1] == pytest.approx([0, 0.3, 0], abs=1e-6)
    assert ball_scene(regions=[region]).hash != ball_scene(regions=[]).hash == ball_scene().hash


def test_every_key_changes_the_scene():
    cylinder = {"kind": "cylinder", "axis": (0, 0, 1), "size": (1, 1, 0.5)}
    changes = {
        "kind": "box",
        "is_inside": True,
        "material": 1,
        "point": (0, 0, 0.1),
        "axis": (0, 1, 0),
        "size": (1, 1, 1),
        "roughness": 0.1,
    }
    obstacles = {"cylinder": cylinder, **{name: {**cylinder, name: value} for name, value in changes.items()}}
    hashes = {name: make_scene(materials=[{}, {}], obstacles=[one]).hash for name, one in obstacles.items()}
    region = {"min": (0, 0, 0), "max": (1, 1, 1), "acceleration": (0, 0, 1)}
    hashes["region"] = make_scene(materials=[{}, {}], regions=[region]).hash
    for name in region:
        hashes["region", name] = make_scene(materials=[{}, {}], regions=[{**region, name: (0.1, 0.2, 0.3)}]).hash
    assert len(set(hashes.values())) == len(hashes), hashes


@pytest.mark.parametrize(
    "changes, kind, sentence",
    [
        ({"obstacles": 3}, TypeError, "obstacles: found int, expected a sequence of dicts"),
        ({"obstacles": {"kind": "box"}}, TypeError, "obstacles: found dict, expected a sequence of dicts"),
        ({"obstacles": [None]}, TypeError, r"obstacles\[0\]: found NoneType, expected a dict"),
        ({"obstacles": [{}]}, ValueError, r"obstacles\[0\]: found no key 'kind', expected one"),
        (
            {"obstacles": [{"kind": "ball"}]},
            ValueError,
            r"obstacles\[0\] kind: found 'ball', expected plane, box, cylinder or cone",
        ),
        ({"obstacles": [{"kind": "box\0"}]}, ValueError, r"obstacles\[0\] kind: found 'box.x00'"),
        (
            {"obstacles": [{"kind": 1}]},
            TypeError,
            r"obstacles\[0\] kind: found int, expected plane, box, cylinder or cone",
        ),
        (
            {"obstacles": [{"kind": "box", "radius": 1}]},
            ValueError,
            r"obstacles\[0\]: found the key 'radius', expected kind, is_inside, material, point, axis, size or "
            "roughness",
        ),
        (
            {"obstacles": [{"kind": "box", "size": 1}]},
            ValueError,
            r"obstacles\[0\] size: found shape \(\), expected \(3,\)",
        ),
        (
            {"obstacles": [{"kind": "box", "size": (1, 2)}]},
            ValueError,
            r"obstacles\[0\] size: found shape \(2,\), expected \(3,\)",
        ),
        ({"obstacles": [{"kind": "box", "size": (1, [2], 3)}]}, ValueError, r"obstacles\[0\] size: "),
        ({"obstacles": [{"kind": "box", "size": "big"}]}, TypeError, r"obstacles\[0\] size: found str"),
        ({"obstacles": [{"kind": "plane", "axis": None}]}, TypeError, r"obstacles\[0\] axis: found NoneType"),
        (
            {"obstacles": [{"kind": "box", "is_inside": 1}]},
            TypeError,
            r"obstacles\[0\] is_inside: found int, expected True or False",
        ),
        (
            {"obstacles": [{"kind": "box", "material": 1.5}]},
            TypeError,
            r"obstacles\[0\] material: found float, expected a whole number",
        ),
        (
            {"obstacles": [{"kind": "plane", "axis": (0, 0, 1), "material": 3}]},
            ValueError,
            "Obstacle 1 has material 3, expected 0 to 0",
        ),
        ({"obstacles": [{"kind": "box"}]}, ValueError, r"Obstacle 1 \(box\) has size 0 m"),
        (
            {"obstacles": [{"kind": "cone", "axis": (0, 0, 1), "size": (1, 2, 1)}]},
            ValueError,
            r"Obstacle 1 \(cone\) begins at height 2",
        ),
        ({"obstacles": [{"kind": "plane", "axis": (0, 0, 1), "roughness": -1}]}, ValueError, "negative roughness"),
        (
            {"regions": [{"min": (0, 0, 0), "max": (1, 1, 1)}]},
            ValueError,
            r"regions\[0\]: found no key 'acceleration', expected one",
        ),
        (
            {"regions": [{"force": 1}]},
            ValueError,
            r"regions\[0\]: found the key 'force', expected min, max or acceleration",
        ),
        (
            {"regions": [{"min": 0, "max": 1, "acceleration": 0}]},
            ValueError,
            r"regions\[0\] min: found shape \(\), expected \(3,\)",
        ),
        (
            {"regions": [{"min": (0, 0, 0), "max": (1, 1, 1), "acceleration": (0, 0, np.inf)}]},
            ValueError,
            "Force region 0",
        ),
        ({"wind": (0, 0)}, ValueError, r"wind: found shape \(2,\), expected \(3,\)"),
        ({"wind": "west"}, TypeError, "wind: found str"),
        ({"wind": (0, np.nan, 0)}, ValueError, "wind along y is nan"),
        ({"drag": -1}, ValueError, "drag is -1"),
        ({"drag": "much"}, TypeError, "drag: found str, expected a number"),
    ],
)
def test_bad_surroundings_are_named(changes, kind, sentence):
    with pytest.raises(kind, match=sentence):
        make_scene(**changes)


def test_nothing_is_kept_of_the_dicts():
    point, obstacle = np.zeros(3, np.float32), {"kind": "plane", "axis": [0, 0, 1]}
    obstacle["point"] = point
    scene = make_scene(planes=None, obstacles=[obstacle])
    state = advanced(scene, 0.1).hash()
    point[:] = 5
    obstacle.clear()
    assert advanced(scene, 0.1).hash() == state
    assert scene.hash == barchan.Scene(**scene_arguments()).hash
