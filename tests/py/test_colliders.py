"""Scene(colliders=, bodies=) and Sim.loads(): meshes and objects that hold, carry and push grains, and feel them."""

import barchan
import numpy as np
import pytest
from conftest import BALL_RADIUS, advanced, advanced_finely, ball_scene, cube_arrays, make_mesh, make_scene

G = 9.81
BALL_MASS = 1000 * 4 / 3 * np.pi * BALL_RADIUS**3
BOUNCY = [{"density": 1000, "normal": "linear", "restitution": 0.7, "friction": 0.3}]
UPRIGHT = (1, 0, 0, 0)


def floor_arrays(half=1.0, cells=8):
    """An open square around the origin, of two triangles a cell."""
    line = np.linspace(-half, half, cells + 1)
    vertices = np.array([[x, y, 0] for y in line for x in line], np.float32)
    corner = ((cells + 1) * np.arange(cells)[:, None] + np.arange(cells)).reshape(-1, 1)
    triangles = np.concatenate([corner + [0, 1, cells + 2], corner + [0, cells + 2, cells + 1]])
    return vertices, triangles.astype(np.int32)


def make_floor(half=1.0, cells=8):
    return barchan.Mesh(*floor_arrays(half, cells), name="Floor")


def poses(*places, turn=UPRIGHT):
    return np.array([[*place, *turn] for place in places], np.float64)


def falling(height=0.3, place=(0.013, 0.028), **changes):
    """A ball above the origin; without a plane of its own."""
    arguments = {"positions": [[*place, height]], "gravity": (0, 0, -G), "planes": None, "max_speed": 3}
    return ball_scene(**{**arguments, "materials": BOUNCY, **changes})


def rebound(scene):
    """Its highest place between the first impact and the second."""
    sim = barchan.Sim(scene, threads=1)
    highest, has_hit, speed = 0, False, 0
    while not has_hit or speed >= 0:
        sim.advance(0.002)
        speed = sim.velocities()[0, 2]
        has_hit = has_hit or speed > 0
        highest = max(highest, float(sim.positions()[0, 2])) if has_hit else 0
        assert sim.info()["time"] < 2
    return highest


# What holds


@pytest.mark.parametrize("cells", [1, 8, 100], ids=["coarse", "fine", "finer than the ball"])
def test_a_ball_on_a_mesh_bounces_and_rests_as_on_the_plane(cells):
    plane = falling(planes=[[0, 0, 0, 0, 0, 1]])
    mesh = falling(colliders=[{"mesh": make_floor(cells=cells)}])
    heights = rebound(plane), rebound(mesh)
    print("rebound from the plane %.6f m, from the mesh %.6f m" % heights)
    assert 0.08 < heights[0] < 0.25
    assert heights[1] == pytest.approx(heights[0], rel=0.01)
    ends = [advanced(scene, 3) for scene in (plane, mesh)]
    rests = [float(sim.positions()[0, 2]) for sim in ends]
    print("rest on the plane %.8f m, on the mesh %.8f m" % tuple(rests))
    assert 0.9 * BALL_RADIUS < rests[0] < BALL_RADIUS
    assert rests[1] - rests[0] == pytest.approx(0, abs=0.01 * (BALL_RADIUS - rests[0]))
    assert ends[1].positions()[0, :2] == pytest.approx([0.013, 0.028], abs=1e-4)
    assert abs(ends[1].velocities()).max() < 1e-3


def test_both_sides_of_an_open_mesh_hold():
    scene = falling(height=-0.1, gravity=(0, 0, G), colliders=[{"mesh": make_floor()}])
    assert advanced(scene, 3).positions()[0, 2] == pytest.approx(-BALL_RADIUS, abs=0.1 * BALL_RADIUS)


def test_a_material_of_a_collider_is_the_one_named():
    materials = [*BOUNCY, {"normal": "linear", "restitution": 0.1}, {"normal": "linear", "restitution": 0.9}]
    heights = [
        rebound(falling(materials=materials, colliders=[{"mesh": make_floor(), "material": material}]))
        for material in (1, 0, 2)
    ]
    print(heights)
    assert heights[0] + 0.02 < heights[1] < heights[2] - 0.02


def box_of_balls():
    """343 balls in a closed mesh box of 0.3 m."""
    steps = np.linspace(0.028, 0.272, 7)
    positions = np.array([[x, y, z] for z in steps for y in steps for x in steps], np.float32)
    positions += np.random.default_rng(5).uniform(-1e-3, 1e-3, positions.shape).astype(np.float32)
    return ball_scene(
        positions=positions,
        gravity=(0, 0, -G),
        planes=None,
        materials=[{"density": 1000, "shear": "history", "restitution": 0.3}],
        colliders=[{"mesh": make_mesh(0.3, "Box")}],
        max_speed=2,
    )


def test_a_box_feels_the_weight_of_what_rests_in_it():
    scene = box_of_balls()
    sim = advanced(scene, 2, threads=2)
    positions = sim.positions()
    assert sim.info()["lost_count"] == 0 and 0.9 * BALL_RADIUS < positions.min()
    assert positions.max() < 0.3 - 0.9 * BALL_RADIUS
    sim.advance(0.5)
    load = sim.loads()["colliders"][0]
    weight = scene.grain_count * BALL_MASS * G
    print("force", load[:3], "weight %.4f N" % weight)
    assert load[:3] == pytest.approx([0, 0, -weight], abs=0.01 * weight)
    # About the middle of the box; of the weights where they are.
    arms = sim.positions().astype(np.float64) - 0.15
    torque = np.cross(arms, [0, 0, -BALL_MASS * G]).sum(axis=0)
    print("torque", load[3:], "expected", torque)
    assert load[3:] == pytest.approx(torque, abs=0.01 * weight * 0.15)


def test_what_a_mesh_gives_it_takes_itself():
    """Newton's third law over an impact: the ball's momentum, the body's load and the collider's are one number."""
    scene = falling(
        height=0.1,
        velocities=[[0.7, 0.3, -1]],
        spins=[[3, -4, 5]],
        colliders=[{"mesh": make_floor()}],
        bodies=[{"grain": 0}],
    )
    sim = barchan.Sim(scene, threads=1)
    before = sim.velocities()[0].astype(np.float64)
    sim.advance(0.2)
    loads, change = sim.loads(), sim.velocities()[0].astype(np.float64) - before
    body, collider = loads["bodies"][0], loads["colliders"][0]
    print(body, collider)
    assert collider[:3] == pytest.approx(-body[:3], abs=1e-12)
    contact = BALL_MASS * (change / 0.2 + [0, 0, G])
    assert body[:3] == pytest.approx(contact, rel=1e-4, abs=1e-6)
    # Torques: on the ball by an arm of almost its radius, on the floor about its middle by where it was hit.
    force = body[:3]
    assert np.abs(force).min() > 0.01
    assert body[3:] == pytest.approx(np.cross([0, 0, -BALL_RADIUS], force), rel=0.15, abs=1e-12)
    place = np.array([-collider[4] / collider[2], collider[3] / collider[2], 0])
    assert place[:2] == pytest.approx([0.013 + 0.7 * 0.06, 0.028 + 0.3 * 0.06], abs=0.005)
    assert collider[3:] == pytest.approx(np.cross(place, -force), rel=0.01)
    assert loads["bodies"].shape == loads["colliders"].shape == (1, 6)


def test_two_bodies_push_each_other_alike():
    scene = ball_scene(
        positions=[[0, 0, 0], [0.05, 0.01, 0], [1, 1, 1]],
        velocities=[[1, 0, 0], [0, 0, 0], [0, 0, 0]],
        bodies=[{"grain": 1}, {"grain": 0}],
    )
    sim = advanced(scene, 0.05)
    first, second = sim.loads()["bodies"]
    print(first, second)
    assert first[:3] == pytest.approx(-second[:3], abs=1e-9) and first[0] > 0.1  # in the order of the bodies
    assert sim.loads()["colliders"].shape == (0, 6)


def test_loads_are_of_the_last_advance_alone():
    scene = falling(height=0.1, colliders=[{"mesh": make_floor()}, {"mesh": make_floor(0.2)}], bodies=[{"grain": 0}])
    sim = barchan.Sim(scene, threads=1)
    loads = sim.loads()
    assert set(loads) == {"bodies", "colliders"}
    assert loads["bodies"].dtype == loads["colliders"].dtype == np.float64
    assert not loads["bodies"].any() and not loads["colliders"].any()
    assert loads["bodies"].shape == (1, 6) and loads["colliders"].shape == (2, 6)
    sim.advance(0.1)
    assert not sim.loads()["bodies"].any()  # still falling
    sim.advance(0.1)
    hit = sim.loads()["bodies"]
    assert hit[0, 2] > 0
    sim.loads()["bodies"][:] = 7  # a new array each time
    assert np.array_equal(sim.loads()["bodies"], hit)
    sim.advance(0)
    sim.advance(0.01)
    assert not sim.loads()["bodies"].any()  # in flight again
    with pytest.raises(TypeError):
        sim.loads(1)


def test_a_scene_without_colliders_and_bodies_has_empty_loads(scene):
    loads = advanced(scene, 0.1).loads()
    assert loads["bodies"].shape == loads["colliders"].shape == (0, 6)


# What moves


def test_a_moving_collider_carries_what_lies_on_it():
    """The floor stands for a second, then goes 0.5 m along x and 0.1 m up in two."""
    track = (1.0, 2.0, poses((0, 0, 0), (0.5, 0, 0.1)))
    scene = falling(height=BALL_RADIUS, colliders=[{"mesh": make_floor(), "track": track}])
    # A ball rolls; a grain of four cannot, and goes with the floor.
    shape = barchan.shape("tetrahedron", BALL_RADIUS)
    grain = falling(
        height=0.05,
        shapes=[shape],
        materials=[{"shear": "history", "friction": 0.9}],
        colliders=[{"mesh": make_floor(), "track": track}],
    )
    sim = advanced(grain, 1)
    before = sim.positions()[0].astype(np.float64)
    sim.advance(1)
    assert sim.velocities()[0] == pytest.approx([0.25, 0, 0.05], abs=0.005)
    sim.advance(2)
    moved = sim.positions()[0] - before
    print("moved", moved, "speed", sim.velocities()[0])
    assert moved == pytest.approx([0.5, 0, 0.1], abs=0.005)
    assert sim.velocities()[0] == pytest.approx([0, 0, 0], abs=1e-3)
    rest = advanced(scene, 1).positions()[0, 2]
    assert advanced(scene, 4).positions()[0, 2] == pytest.approx(rest + 0.1, abs=1e-4)  # and lifts the ball


def test_a_collider_stands_where_its_track_says():
    """The mesh is in its own axes: turned about y by a right angle and put at 0.1, the floor is a wall that stops."""
    half = np.sqrt(0.5)
    wall = {"mesh": make_floor(), "track": (0, 1, poses((0.1, 0, 0), turn=(half, 0, half, 0)))}
    scene = ball_scene(velocities=[[1, 0, 0]], materials=BOUNCY, colliders=[wall])
    sim = advanced_finely(scene, 0.075)
    assert sim.velocities()[0] == pytest.approx([1, 0, 0], abs=1e-6)
    sim.advance(0.05)
    assert sim.velocities()[0] == pytest.approx([-0.7, 0, 0], abs=0.02)
    assert sim.loads()["colliders"][0, 0] == pytest.approx(1.7 * BALL_MASS / 0.05, rel=0.02)


def test_a_turning_collider_throws_by_its_speed_there():
    """A paddle on the x axis turns about z with 2 rad/s: 0.4 m out it strikes with 0.8 m/s."""
    times = np.linspace(0, 1, 11)
    samples = np.array([[0, 0, 0, np.cos(t), 0, 0, np.sin(t)] for t in times])
    vertices = np.float32([[0.2, 0, -0.3], [0.6, 0, -0.3], [0.6, 0, 0.3], [0.2, 0, 0.3]])
    paddle = barchan.Mesh(vertices, np.int32([[0, 1, 2], [0, 2, 3]]), name="Paddle")
    smooth = [{**BOUNCY[0], "restitution": 0.8, "friction": 0}]
    place = [0.4 * np.cos(0.2), 0.4 * np.sin(0.2), 0]
    scene = ball_scene(positions=[place], materials=smooth, colliders=[{"mesh": paddle, "track": (0, 0.1, samples)}])
    speed = np.linalg.norm(advanced_finely(scene, 0.12).velocities()[0])
    # It is met where the paddle is a radius nearer; 0.4 m is its distance to within that angle.
    print("thrown with %.4f m/s" % speed)
    assert speed == pytest.approx(1.8 * 0.8, rel=0.02)


def test_a_collider_that_changes_shape_lifts():
    """The floor bulges 0.1 m up in half a second, from 0.2 s on."""
    vertices, _ = floor_arrays()
    frames = np.stack([vertices, vertices + np.float32([0, 0, 0.1])])
    scene = falling(height=BALL_RADIUS, colliders=[{"mesh": make_floor(), "frames": (0.2, 0.5, frames)}])
    sim = advanced(scene, 0.2)
    before = sim.positions()[0, 2]
    assert before == pytest.approx(BALL_RADIUS, rel=0.02)
    sim.advance(0.3)
    assert sim.velocities()[0, 2] == pytest.approx(0.2, abs=0.02)
    sim.advance(2)
    assert sim.positions()[0, 2] - before == pytest.approx(0.1, abs=1e-3)


def test_frames_of_one_are_the_mesh_itself():
    vertices, _ = floor_arrays()
    raised = vertices + np.float32([0, 0, 0.05])
    scene = falling(colliders=[{"mesh": make_floor(), "frames": (0, 0, raised[None])}])
    assert advanced(scene, 3).positions()[0, 2] == pytest.approx(0.05 + BALL_RADIUS, abs=0.1 * BALL_RADIUS)


def test_a_driven_body_pushes_and_is_not_pushed():
    """A ball of 1 g/cm^3 goes 0.4 m along x in a second, whatever is in its way."""
    track = (0, 1, poses((0, 0, 0), (0.4, 0, 0)))
    scene = ball_scene(
        positions=[[9, 9, 9], [0.2, 0, 0]],  # of a driven one the track counts alone
        materials=[{**BOUNCY[0], "friction": 0}],
        bodies=[{"grain": 0, "track": track}],
    )
    sim = barchan.Sim(scene, threads=1)
    assert sim.positions()[0].tolist() == [0, 0, 0]
    impulse = 0
    for _ in range(10):
        sim.advance(0.1)
        impulse += 0.1 * sim.loads()["bodies"][0, 0]
        assert sim.positions()[0] == pytest.approx([0.4 * sim.info()["time"], 0, 0], abs=1e-6)
    velocity = sim.velocities()[1]
    print("pushed to %.4f m/s, impulse %.6f N s" % (velocity[0], impulse))
    assert velocity == pytest.approx([1.7 * 0.4, 0, 0], abs=0.01)
    assert impulse == pytest.approx(-BALL_MASS * velocity[0], rel=1e-3)
    sim.advance(0.5)
    assert sim.positions()[0] == pytest.approx([0.4, 0, 0], abs=1e-6) and not sim.velocities()[0].any()


def test_a_body_that_is_let_go_flies_on():
    track = (0, 1, poses((0, 0, 0), (1, 0, 0)))
    bodies = [{"grain": 0, "track": track, "release": 0.5}]
    sim = advanced(ball_scene(gravity=(0, 0, -1), bodies=bodies), 0.5)
    assert sim.positions()[0] == pytest.approx([0.5, 0, 0], abs=1e-5)
    sim.advance(1)
    assert sim.velocities()[0] == pytest.approx([1, 0, -1], abs=0.01)
    assert sim.positions()[0] == pytest.approx([1.5, 0, -0.5], abs=0.01)
    free = advanced(ball_scene(gravity=(0, 0, -1), bodies=[{"grain": 0}]), 1)
    alone = advanced(ball_scene(gravity=(0, 0, -1)), 1)
    assert free.positions().tobytes() == alone.positions().tobytes()  # to be told of changes nothing


def test_flags_tell_nothing_of_bodies():
    track = (0, 1, poses((0, 0, 0), (0.1, 0, 0)))
    sim = advanced(ball_scene(bodies=[{"grain": 0, "track": track}]), 0.1)
    assert sim.flags().tolist() == [0]


# The same every time


def clod_positions():
    steps = (0.16, 0.28, 0.40)
    return np.array([[x, y, z - 0.04] for x in steps for y in steps for z in steps], np.float32)


def busy_scene():
    """All of it: a tray that shakes, a lid that sinks in, a driven clod among loose ones, one that is let go."""
    shake = 0.02 * np.sin(np.linspace(0, 8 * np.pi, 81))
    tray = {"mesh": make_floor(0.6), "track": (0, 0.01, poses(*[(x, 0, 0) for x in shake]))}
    vertices, _ = floor_arrays(0.6)
    tilted = vertices + np.float32([0, 0, 1]) * vertices[:, :1] * np.float32(0.2)
    lid = {"mesh": make_floor(0.6), "frames": (0, 0.5, np.stack([vertices, tilted]) + np.float32([0, 0, 0.45]))}
    arguments = {
        "planes": [[0, 0, -1, 0, 0, 1]],
        "materials": [{"shear": "history", "friction": 0.6}],
        "colliders": [tray, lid, {"mesh": make_mesh(0.1, "Block"), "material": 0}],
        "bodies": [
            {"grain": 26, "track": (0, 0.4, poses((0.32, 0.32, 0.3), (0.1, 0.1, 0.2)))},
            {"grain": 0},
            {"grain": 8, "track": (0, 1, poses((0.08, 0.32, 0.32))), "release": 0.15},
        ],
        "max_speed": 4,
    }
    return make_scene(positions=clod_positions(), **arguments)


def test_the_same_bits_for_every_number_of_threads():
    scene = busy_scene()
    ends = []
    for settings in ({"threads": 1}, {"threads": 2}, {"threads": 3}, {"threads": 2, "kernel": "baseline"}):
        sim = barchan.Sim(scene, **settings)
        seen = []
        for _ in range(6):
            sim.advance(0.1)
            loads = sim.loads()
            seen.append((sim.hash(), loads["bodies"].tobytes(), loads["colliders"].tobytes()))
        ends.append(seen)
    print([state for state, _, _ in ends[0]], sim.info()["contact_count"])
    assert ends[0] == ends[1] == ends[2] == ends[3]
    assert sim.info()["contact_count"] > 10 and np.all(sim.loads()["colliders"][0] != 0)


@pytest.mark.parametrize("pause", [0, 0.12, 0.33])
def test_a_loaded_sim_goes_on_to_the_bit(pause):
    scene = busy_scene()
    sim = advanced(scene, pause, threads=2)
    data = sim.save()
    others = [barchan.Sim(scene, threads=threads) for threads in (1, 2, 3)]
    others.append(barchan.Sim(busy_scene(), threads=1))  # an equal scene, made anew
    for other in others:
        other.advance(0.2)  # somewhere else: the third body let go or not
        other.load(data)
        assert other.hash() == sim.hash()
    for _ in range(4):
        sim.advance(0.1)
        for other in others:
            other.advance(0.1)
            assert other.hash() == sim.hash()
            assert other.positions().tobytes() == sim.positions().tobytes()
            for name, load in sim.loads().items():
                assert load.tobytes() == other.loads()[name].tobytes()


def test_every_key_changes_the_scene():
    floor, half = make_floor(), np.sqrt(0.5)
    vertices, _ = floor_arrays()
    track = (0, 1, poses((0, 0, 0), (0.1, 0, 0)))
    frames = (0, 1, np.stack([vertices, vertices]))
    colliders = {
        "plain": {"mesh": floor},
        "mesh": {"mesh": make_floor(cells=4)},
        "material": {"mesh": floor, "material": 1},
        "track": {"mesh": floor, "track": track},
        "begin": {"mesh": floor, "track": (0.5, *track[1:])},
        "interval": {"mesh": floor, "track": (0, 2, track[2])},
        "samples": {"mesh": floor, "track": (0, 1, poses((0, 0, 0), (0.2, 0, 0)))},
        "turn": {"mesh": floor, "track": (0, 1, poses((0, 0, 0), (0.1, 0, 0), turn=(half, 0, 0, half)))},
        "frames": {"mesh": floor, "frames": frames},
        "frames begin": {"mesh": floor, "frames": (0.5, *frames[1:])},
        "frames interval": {"mesh": floor, "frames": (0, 2, frames[2])},
        "vertices": {"mesh": floor, "frames": (0, 1, frames[2] * np.float32(1.1))},
    }
    bodies = {
        "body": {"grain": 0},
        "grain": {"grain": 1},
        "body track": {"grain": 0, "track": track},
        "body samples": {"grain": 0, "track": (0, 1, poses((0, 0, 0), (0.2, 0, 0)))},
        "release": {"grain": 0, "track": track, "release": 0.5},
    }
    base = {"positions": clod_positions(), "planes": None, "materials": [{}, {}]}
    hashes, motions = {}, {}
    for name, more in (
        [(name, {"colliders": [one]}) for name, one in colliders.items()]
        + [(name, {"bodies": [one]}) for name, one in bodies.items()]
        + [("none", {}), ("twice", {"colliders": 2 * [colliders["plain"]]})]
    ):
        scene = make_scene(**base, **more)
        hashes[name] = scene.hash
        motions[name] = barchan.Sim(scene, threads=1, allow_overlap=True).motion_hash(1.5)
    # What the grains are and how they are moved are hashed apart, so that a longer range is the same scene.
    assert len(set(zip(hashes.values(), motions.values()))) == len(hashes), (hashes, motions)
    moved = {"track", "begin", "interval", "samples", "turn", "frames", "frames begin", "frames interval", "vertices", "body track"}
    moved |= {"body samples", "release"}
    assert {name for name in motions if motions[name]} == moved, motions
    assert make_scene(**base, colliders=[], bodies=()).hash == hashes["none"]
    assert make_scene(**base, colliders=None, bodies=None).hash == hashes["none"]
    same = {"mesh": floor, "material": 0, "track": None, "frames": None}
    assert make_scene(**base, colliders=iter([same])).hash == hashes["plain"]
    assert make_scene(**base, bodies=[{"grain": 0, "track": None, "release": 0}]).hash == hashes["body"]


def test_every_form_of_the_same_numbers_gives_the_same_scene():
    vertices, _ = floor_arrays()
    samples, frames = poses((0, 0, 0), (0.1, 0, 0)), np.stack([vertices, vertices])
    wide = np.zeros((4, 9))
    wide[::2, 1:8] = samples
    for same in ((0, 1, samples.tolist()), [0.0, np.float32(1), np.asfortranarray(samples)], (0, 1, wide[::2, 1:8])):
        first, second = (falling(colliders=[{"mesh": make_floor(), "track": t}]) for t in ((0, 1, samples), same))
        assert first.hash == second.hash
        first, second = (falling(bodies=[{"grain": 0, "track": t}]) for t in ((0, 1, samples), same))
        assert first.hash == second.hash
    for same in (frames.astype(np.float64), frames.tolist(), np.asfortranarray(frames), frames[::-1][::-1]):
        first, second = (falling(colliders=[{"mesh": make_floor(), "frames": (0, 1, f)}]) for f in (frames, same))
        assert first.hash == second.hash


def test_nothing_is_kept_of_the_mesh_and_the_arrays():
    samples = poses((0, 0, 0), (0.1, 0, 0))
    frames = np.stack([floor_arrays()[0]] * 2)
    mesh = make_floor()
    colliders = [{"mesh": mesh, "track": (0, 1, samples)}, {"mesh": mesh, "frames": (0, 1, frames)}]
    bodies = [{"grain": 0, "track": (0, 1, samples)}]
    scene = falling(colliders=colliders, bodies=bodies)
    state = advanced(scene, 0.5).hash()
    samples[:], frames[:] = 7, 7
    colliders.clear()
    del mesh
    assert advanced(scene, 0.5).hash() == state


# What is refused

FLOOR = make_floor()
STANDING = (0, 1, poses((0, 0, 0)))
FRAMES = np.zeros((2, 81, 3), np.float32) + floor_arrays()[0]
NAN = float("nan")


def spoilt(array, index, value):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    "colliders, kind, sentence",
    [
        (3, TypeError, "colliders: found int, expected a sequence of dicts"),
        ({"mesh": FLOOR}, TypeError, "colliders: found dict, expected a sequence of dicts"),
        ([FLOOR], TypeError, r"colliders\[0\]: found Mesh, expected a dict"),
        ([{}], ValueError, r"colliders\[0\]: found no key 'mesh', expected one"),
        ([{"mesh": FLOOR}, {"material": 0}], ValueError, r"colliders\[1\]: found no key 'mesh', expected one"),
        (
            [{"mesh": FLOOR, "friction": 1}],
            ValueError,
            r"colliders\[0\]: found the key 'friction', expected mesh, material, track or frames",
        ),
        ([{"mesh": FLOOR, 3: 1}], TypeError, r"colliders\[0\]: found the key 3"),
        ([{"mesh": None}], TypeError, r"colliders\[0\] mesh: found NoneType, expected a Mesh"),
        ([{"mesh": floor_arrays()}], TypeError, r"colliders\[0\] mesh: found tuple, expected a Mesh"),
        ([{"mesh": "Floor"}], TypeError, r"colliders\[0\] mesh: found str, expected a Mesh"),
        ([{"mesh": FLOOR, "material": 1}], ValueError, "Collider 0 has material 1, expected 0 to 0"),
        ([{"mesh": FLOOR, "material": -1}], ValueError, "Collider 0 has material -1"),
        ([{"mesh": FLOOR, "material": None}], TypeError, r"colliders\[0\] material: found NoneType"),
        (
            [{"mesh": FLOOR, "track": STANDING, "frames": (0, 1, FRAMES)}],
            ValueError,
            "Collider 0: Mesh 'Floor' has a track and frames at once, expected one of them",
        ),
    ],
)
def test_bad_colliders_are_named(colliders, kind, sentence):
    with pytest.raises(kind, match=sentence):
        falling(colliders=colliders)


@pytest.mark.parametrize(
    "track, kind, sentence",
    [
        (3, TypeError, r"%s track: found int, expected a triple \(begin, interval, samples\)"),
        ((0, 1), ValueError, r"%s track: found 2 items, expected a triple \(begin, interval, samples\)"),
        (poses((0, 0, 0)), ValueError, r"%s track: found 1 items, expected a triple"),
        ({"begin": 0}, TypeError, r"%s track: found dict, expected a triple"),
        (("soon", 1, STANDING[2]), TypeError, r"%s track begin: found str, expected a number"),
        ((0, None, STANDING[2]), TypeError, r"%s track interval: found NoneType, expected a number"),
        ((0, 1, None), TypeError, r"%s track samples: found NoneType, expected an array of float64"),
        ((0, 1, np.zeros(7)), ValueError, r"%s track samples: found shape \(7,\), expected \(N, 7\)"),
        ((0, 1, np.zeros((3, 6))), ValueError, r"%s track samples: found shape \(3, 6\), expected \(N, 7\)"),
        ((0, 1, np.zeros((3, 7), complex)), TypeError, r"%s track samples: found an array of complex128"),
        ((0, 1, [[1, 2], [3]]), ValueError, r"%s track samples: "),
        ((0, 1, np.zeros((0, 7))), ValueError, "{} 0: its track has 0 samples, expected at least 1"),
        ((NAN, 1, STANDING[2]), ValueError, "{} 0: its track begins at nan s"),
        ((0, 0, poses((0, 0, 0), (1, 0, 0))), ValueError, "{} 0: its track has an interval of 0 s between samples"),
        ((0, -1, poses((0, 0, 0), (1, 0, 0))), ValueError, "{} 0: its track has an interval of -1 s between samples"),
        ((0, NAN, poses((0, 0, 0), (1, 0, 0))), ValueError, "{} 0: its track has an interval of nan s"),
        ((0, 1, poses((0, 0, 0), (0, NAN, 0))), ValueError, "{} 0: sample 1 of its track has nan as its position"),
        ((0, 1, poses((0, 0, np.inf))), ValueError, "{} 0: sample 0 of its track has inf as its position"),
        (
            (0, 1, poses((0, 0, 0), turn=(2, 0, 0, 0))),
            ValueError,
            "{} 0: sample 0 of its track has an orientation of length 2, expected 1",
        ),
    ],
)
def test_bad_tracks_are_named_in_colliders_and_in_bodies(track, kind, sentence):
    for argument, label, one in (("colliders", "Collider", {"mesh": FLOOR}), ("bodies", "Body", {"grain": 0})):
        expected = sentence.replace("%s", argument + r"\[0\]").replace("{}", label)
        with pytest.raises(kind, match=expected):
            falling(**{argument: [{**one, "track": track}]})


@pytest.mark.parametrize(
    "frames, kind, sentence",
    [
        (3, TypeError, r"colliders\[0\] frames: found int, expected a triple \(begin, interval, vertices\)"),
        ((0, 1, FRAMES, 2), ValueError, r"colliders\[0\] frames: found 4 items, expected a triple"),
        ((0, 1, None), TypeError, r"colliders\[0\] frames vertices: found NoneType, expected an array of float32"),
        (
            (0, 1, FRAMES[0]),
            ValueError,
            r"colliders\[0\] frames vertices: found shape \(81, 3\), expected \(F, N, 3\)",
        ),
        (
            (0, 1, FRAMES[:, :, :2]),
            ValueError,
            r"colliders\[0\] frames vertices: found shape \(2, 81, 2\), expected \(F, N, 3\)",
        ),
        (
            (0, 1, FRAMES[:, :80]),
            ValueError,
            r"colliders\[0\] frames vertices: found 80 vertices a frame, expected the 81 of its mesh 'Floor'",
        ),
        ((0, 1, FRAMES[:0]), ValueError, "Collider 0: Mesh 'Floor' has 0 frames of its vertices, expected at least 1"),
        ((0, 0, FRAMES), ValueError, "Collider 0: the frames of Mesh 'Floor' begin at 0 s with an interval of 0 s"),
        ((NAN, 1, FRAMES), ValueError, "Collider 0: the frames of Mesh 'Floor' begin at nan s"),
        (
            (0, 1, spoilt(FRAMES, (1, 7, 2), np.inf)),
            ValueError,
            r"Collider 0: vertex 7 of Mesh 'Floor' is at \(.*inf\) in frame 1",
        ),
    ],
)
def test_bad_frames_are_named(frames, kind, sentence):
    for collider in ({"mesh": FLOOR, "frames": frames}, {"frames": frames, "mesh": FLOOR}):  # in any order
        with pytest.raises(kind, match=sentence):
            falling(colliders=[collider])


@pytest.mark.parametrize(
    "bodies, kind, sentence",
    [
        (3, TypeError, "bodies: found int, expected a sequence of dicts"),
        ([0], TypeError, r"bodies\[0\]: found int, expected a dict"),
        ([{"track": None}], ValueError, r"bodies\[0\]: found no key 'grain', expected one"),
        ([{"grain": 0, "mass": 1}], ValueError, r"bodies\[0\]: found the key 'mass', expected grain, track or release"),
        ([{"grain": 0.0}], TypeError, r"bodies\[0\] grain: found float, expected a whole number"),
        ([{"grain": 2**31}], ValueError, r"bodies\[0\] grain is 2147483648"),
        ([{"grain": 2}], ValueError, "Body 0 is grain 2, .*expected a grain below 2"),
        ([{"grain": 1}, {"grain": -1}], ValueError, "Body 1 is grain -1, .*expected a grain below 2"),
        ([{"grain": 0}, {"grain": 1}, {"grain": 0}], ValueError, "Bodies 0 and 2 are both grain 0, expected one each"),
        ([{"grain": 0, "release": "now"}], TypeError, r"bodies\[0\] release: found str, expected a number"),
        ([{"grain": 0, "release": None}], TypeError, r"bodies\[0\] release: found NoneType"),
        ([{"grain": 0, "release": NAN}], ValueError, "Body 0 is grain 0, let go at nan s"),
    ],
)
def test_bad_bodies_are_named(bodies, kind, sentence):
    with pytest.raises(kind, match=sentence):
        falling(positions=[[0, 0, 1], [0, 0, 2]], bodies=bodies)


def test_an_emitted_grain_is_no_body():
    jet = {"positions": [[0, 0, 0.5]], "rate": 10, "end": 1}
    with pytest.raises(ValueError, match="Body 0 is grain 1, .*expected a grain below 1"):
        falling(emitters=[jet], bodies=[{"grain": 1}])


def test_a_start_deep_in_a_collider_is_refused_by_name():
    scene = falling(height=0.3 * BALL_RADIUS, colliders=[{"mesh": make_floor()}])
    with pytest.raises(ValueError, match="Grain 0 is .* deep in collider 0, mesh 'Floor', at the start"):
        barchan.Sim(scene, threads=1)
    barchan.Sim(scene, threads=1, allow_overlap=True)


def test_contacts_with_colliders_come_after_those_with_obstacles():
    scene = falling(
        positions=[[0, 0, BALL_RADIUS], [5, 0, BALL_RADIUS - 0.5]],
        planes=[[0, 0, -0.5, 0, 0, 1]],
        colliders=[{"mesh": make_mesh(0.1), "track": (0, 1, poses((0, 3, 0)))}, {"mesh": make_floor()}],
    )
    contacts = advanced(scene, 2).contacts()
    print(contacts)
    assert dict(zip(contacts["grain"].tolist(), contacts["other"].tolist())) == {0: -2 - 1 - 1, 1: -2 - 0}
    assert contacts["normal"] == pytest.approx(np.tile([0, 0, 1], (2, 1)), abs=1e-5)
    assert contacts["normal_force"] == pytest.approx(np.full(2, BALL_MASS * G), rel=0.01)


def test_a_mesh_that_another_thread_takes_away_lives_on():
    """The arguments may be all that holds a mesh; the scene needs it to the end of the call."""
    vertices, triangles = cube_arrays()
    expected = falling(height=2, colliders=[{"mesh": barchan.Mesh(vertices, triangles)}]).hash

    class Sneaky:
        """Read as a number after the mesh, it takes the mesh away."""

        def __index__(self):
            collider.pop("mesh")
            return 0

    collider = {"mesh": barchan.Mesh(vertices, triangles), "material": Sneaky()}
    assert falling(height=2, colliders=[collider]).hash == expected
