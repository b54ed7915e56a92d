"""Who keeps what alive, what is copied, and that many rounds of anything leave nothing behind."""

import errno
import gc
import sys
import tracemalloc

import barchan
import numpy as np
import pytest
from barchan import _core
from conftest import cube_arrays, growth, make_mesh, make_scene, scene_arguments


def held():
    gc.collect()
    return _core.allocated_bytes()


def test_points_live_in_the_core_until_the_last_view_is_gone(mesh):
    before = held()
    points = barchan.fill(mesh, 0.05)
    assert not points.flags.owndata and points.base is not None
    assert held() - before >= points.nbytes
    # The block is the sampler's own, not one block and a copy of it.
    assert held() - before < 2 * points.nbytes
    expected = points.copy()
    view = points[3:10, 1]
    del points
    assert held() > before
    assert np.array_equal(view, expected[3:10, 1])
    del view
    assert held() == before


def test_points_outlive_their_mesh():
    mesh = make_mesh()
    points = barchan.cover(mesh, 0.1)
    expected = points.copy()
    del mesh
    gc.collect()
    assert np.array_equal(points, expected)


def test_frames_share_one_block_that_the_last_array_frees(folder):
    barchan.write_frame(folder, 1, {"position": np.ones((1000, 3), np.float32), "id": np.arange(1000, dtype=np.int32)})
    before = held()
    frame = barchan.read_frame(folder, 1)
    arrays = frame["arrays"]
    assert arrays["position"].base is arrays["id"].base
    assert not arrays["position"].flags.owndata
    size = held() - before
    assert 16000 <= size < 2 * 16000  # the file's bytes, once
    ids = arrays["id"][500:]
    del frame, arrays
    assert held() - before == size
    assert ids[0] == 500
    del ids
    assert held() == before


def test_a_sim_keeps_its_scene():
    before = held()
    scene = make_scene()
    sim = barchan.Sim(scene, threads=2)
    count = sys.getrefcount(scene)
    del sim
    assert sys.getrefcount(scene) == count - 1
    sim = barchan.Sim(scene, threads=2)
    del scene
    gc.collect()
    sim.advance(0.01)
    assert sim.positions().shape == (27, 3)
    del sim
    assert held() == before


def test_the_core_holds_nothing_after_everything_is_gone():
    before = held()
    mesh = make_mesh()
    scene = make_scene(wall_positions=barchan.cover(mesh, 0.2), wall_radius=0.02)
    sim = barchan.Sim(scene)
    sim.advance(0.005)
    assert held() > before
    del mesh, scene, sim
    assert held() == before


def numpy_peak(action):
    """Bytes that NumPy and Python allocate at most while action runs; the core's own memory is not counted."""
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        start = tracemalloc.get_traced_memory()[0]
        action()
        return tracemalloc.get_traced_memory()[1] - start
    finally:
        tracemalloc.stop()


def test_contiguous_arrays_are_not_copied(folder):
    side = 100
    steps = np.linspace(0, 1, side, dtype=np.float32)
    vertices = np.stack([*np.meshgrid(steps, steps), np.zeros((side, side), np.float32)], axis=-1).reshape(-1, 3)
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1, 1)
    triangles = np.concatenate([corner + [0, 1, side], corner + [1, side + 1, side]]).astype(np.int32)
    vertices = np.ascontiguousarray(vertices)
    assert numpy_peak(lambda: barchan.Mesh(vertices, triangles)) < 10000
    assert numpy_peak(lambda: barchan.Mesh(vertices.astype(np.float64), triangles)) > vertices.nbytes
    arrays = {"position": vertices}
    assert numpy_peak(lambda: barchan.write_frame(folder, 1, arrays)) < 10000
    assert numpy_peak(lambda: barchan.read_frame(folder, 1)) < 10000


def test_arguments_keep_their_reference_counts(folder):
    vertices, triangles = cube_arrays()
    arguments = scene_arguments()
    positions = arguments["positions"]
    name, path, whole, real = "Cube of some length", str(folder), int("9" * 18), float("0.3")
    frame, many = int("123456"), int("300")
    kernel, material, point = "".join(["base", "line"]), {"friction": real}, np.zeros(3)
    materials, obstacles = [material], [{"kind": "plane", "axis": (0, 0, 1), "point": point}]
    track, frames = (real, real, np.array(STILL, float)), (real, real, FRAMES)
    body, mesh = {"grain": 0, "track": track, "release": real}, make_mesh()
    emitter = {"positions": positions, "rate": real, "end": float("1.5"), "velocity": point}
    things = [
        vertices,
        triangles,
        positions,
        name,
        path,
        whole,
        real,
        frame,
        many,
        arguments["shapes"],
        arguments["shapes"][0][0],
        barchan.Mesh,
        barchan.Scene,
        barchan.Sim,
        kernel,
        material,
        materials,
        point,
        obstacles,
        obstacles[0],
        emitter,
        emitter["end"],
        track,
        track[2],
        frames,
        FRAMES,
        body,
        mesh,
    ]
    before = [sys.getrefcount(thing) for thing in things]
    for _ in range(10):
        solid = barchan.Mesh(vertices, triangles, name=name)
        points = barchan.fill(solid, real, seed=whole)
        scene = barchan.Scene(**{**arguments, "seed": whole, "friction": real})
        scene = barchan.Scene(**{**arguments, "materials": materials, "obstacles": obstacles})
        scene = barchan.Scene(**{**arguments, "emitters": [emitter], "outflows": [{"min": point, "max": point}]})
        colliders = [{"mesh": mesh, "track": track}, {"mesh": mesh, "frames": frames}]
        barchan.Scene(**{**arguments, "colliders": colliders, "bodies": [body]})
        sim = barchan.Sim(scene, threads=many, step_seconds=real, kernel=kernel)
        data = sim.save()
        count = sys.getrefcount(data)
        sim.load(data)
        assert sys.getrefcount(data) == count
        barchan.write_frame(path, frame, {"position": positions}, seconds=real, settings_hash=whole, state_hash=whole)
        barchan.read_frame(path, frame)
        with pytest.raises(ValueError):
            barchan.Mesh(vertices, triangles[:, :2], name=name)
        with pytest.raises(ValueError):
            barchan.Scene(**{**arguments, "velocities": positions[:3]})
        with pytest.raises(ValueError):
            barchan.Scene(**{**arguments, "materials": [material, {"colour": real}], "obstacles": obstacles})
        with pytest.raises(ValueError):
            barchan.Scene(**{**arguments, "emitters": [emitter, {**emitter, "colour": real}]})
        with pytest.raises(ValueError):
            barchan.Scene(**{**arguments, "colliders": [*colliders, {"mesh": mesh, "frames": frames, "track": track}]})
        with pytest.raises(ValueError):
            barchan.Scene(**{**arguments, "colliders": colliders, "bodies": [body, body]})
        with pytest.raises(TypeError):
            barchan.Scene(**{**arguments, "colliders": [*colliders, {"mesh": mesh, "track": (real, real, mesh)}]})
        with pytest.raises(TypeError):
            barchan.Scene(**{**arguments, "materials": materials, "obstacles": [*obstacles, {"kind": real}]})
        with pytest.raises(ValueError):
            barchan.write_frame(path, 1, {"position": positions, "other": positions[:3]})
    del solid, points, scene, sim, data, colliders
    assert [sys.getrefcount(thing) for thing in things] == before


def expect(kind, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except kind:
        return
    raise AssertionError("%s did not raise %s" % (call, kind))


def mesh_rounds():
    vertices, triangles = cube_arrays()
    barchan.Mesh(vertices, triangles, name="Box").bounds.sum()
    barchan.Mesh(vertices.astype(np.float64), triangles.astype(np.int64))
    repr(barchan.Mesh(vertices.tolist(), triangles.tolist()))
    expect(TypeError, barchan.Mesh, None, triangles)
    expect(TypeError, barchan.Mesh, vertices, vertices)
    expect(ValueError, barchan.Mesh, vertices[:, :2], triangles)
    expect(ValueError, barchan.Mesh, vertices, triangles.astype(np.int64) + 2**32)
    expect(barchan.MeshError, barchan.Mesh, vertices, triangles + 1)
    expect(barchan.MeshError, barchan.Mesh(vertices, triangles[1:]).require_closed)


def sampler_rounds():
    mesh = make_mesh()
    barchan.fill(mesh, 0.3, jitter=0.1)
    barchan.cover(mesh, 0.5)
    barchan.tetrahedron(0.1)
    expect(ValueError, barchan.fill, mesh, -1)
    expect(ValueError, barchan.cover, mesh, 0.2, seed=-1)
    expect(TypeError, barchan.fill, 3, 0.2)
    expect(TypeError, barchan.cover, mesh, "x")
    expect(ValueError, barchan.tetrahedron, 0)


def scene_rounds():
    arguments = scene_arguments(side=2)
    barchan.Scene(**arguments)
    barchan.Scene(**{**arguments, "positions": arguments["positions"].tolist(), "gravity": (0, 0, -1.62)})
    expect(ValueError, barchan.Scene, **{**arguments, "velocities": np.zeros((3, 3))})
    expect(ValueError, barchan.Scene, **{**arguments, "positions": arguments["positions"] * np.float32(np.nan)})
    expect(ValueError, barchan.Scene, **{**arguments, "shapes": arguments["shapes"] + [(None, [-1])]})
    expect(TypeError, barchan.Scene, **{**arguments, "shapes": arguments["shapes"] + [3]})
    expect(TypeError, barchan.Scene, **{**arguments, "grain_shapes": np.zeros(8)})
    expect(TypeError, barchan.Scene, **{**arguments, "density": "x"})
    expect(TypeError, barchan.Scene)


STILL = [[0, 0, 0, 1, 0, 0, 0]] * 2
FRAMES = np.stack([cube_arrays()[0]] * 2)
FULL = {
    "materials": [{"density": 2000, "normal": "linear", "shear": "history"}, {"normal": "linear", "shear": "history"}],
    "material_pairs": [{"a": 0, "b": 1, "friction": 0.1}],
    "obstacles": [{"kind": "box", "size": (1, 1, 1), "is_inside": True, "material": 1}],
    "regions": [{"min": (0, 0, 0), "max": (1, 1, 1), "acceleration": [0, 0, 1]}],
    "emitters": [
        {
            "positions": [[0.5, 0.5, 0.9]],
            "rate": 100,
            "begin": 0,
            "end": 0.1,
            "velocity": (0, 0, -1),
            "shape": 0,
            "material": 1,
            "scale": 1,
        }
    ],
    "outflows": [{"min": (-1, -1, -1), "max": (0, 0, 0)}],
    "colliders": [{"mesh": make_mesh(), "material": 1, "track": (0, 0.1, STILL)}],
    "bodies": [{"grain": 1, "track": (0, 0.1, STILL), "release": 0.5}],
    "grain_materials": [0, 1] * 4,
    "scales": [1.0] * 8,
    "wind": (1, 0, 0),
    "wall_material": 1,
}


def full_arguments(**changes):
    return {**scene_arguments(side=2), **FULL, **changes}


def dict_rounds():
    barchan.Scene(**full_arguments())
    for argument in (
        "materials",
        "material_pairs",
        "obstacles",
        "regions",
        "emitters",
        "outflows",
        "colliders",
        "bodies",
    ):
        good = FULL[argument]
        expect(TypeError, barchan.Scene, **full_arguments(**{argument: 3}))
        expect(TypeError, barchan.Scene, **full_arguments(**{argument: [*good, 3]}))
        expect(TypeError, barchan.Scene, **full_arguments(**{argument: good[0]}))
        expect(ValueError, barchan.Scene, **full_arguments(**{argument: [*good, {**good[0], "colour": 1}]}))
        expect(TypeError, barchan.Scene, **full_arguments(**{argument: [*good, {3: 1}]}))
        for key in good[0]:
            expect((TypeError, ValueError), barchan.Scene, **full_arguments(**{argument: [{**good[0], key: "x"}]}))
            if key != "track":  # which may be None
                expect(TypeError, barchan.Scene, **full_arguments(**{argument: [{**good[0], key: None}]}))
    expect(ValueError, barchan.Scene, **full_arguments(material_pairs=[{"a": 0}]))
    expect(TypeError, barchan.Scene, **full_arguments(density=1))
    expect(ValueError, barchan.Scene, **full_arguments(positions=[[1], [1, 2]]))
    expect(ValueError, barchan.Scene, **full_arguments(scales=[1.0]))
    expect(TypeError, barchan.Scene, **full_arguments(grain_materials=[1.0] * 8))


def motion_rounds():
    """What a collider's or a body's dict can hold beyond numbers, and every way to fail in it."""
    mesh = make_mesh()
    barchan.Scene(**full_arguments(colliders=[{"mesh": mesh}, {"mesh": make_mesh(), "frames": (0, 1, FRAMES)}]))
    barchan.Scene(**full_arguments(colliders=[{"mesh": mesh, "frames": [0, 1, FRAMES.tolist()], "track": None}]))
    barchan.Scene(**full_arguments(bodies=[{"grain": 0, "track": None}, {"grain": 3}]))
    expect(ValueError, barchan.Scene, **full_arguments(bodies=[{"grain": 0}, {"grain": 0, "track": (0, 1, STILL)}]))
    for track in ((0, 1), (0, 0, STILL), (0, 1, STILL[0]), (0, 1, [[1], [1, 2]]), (0, 1, np.zeros((2, 7)))):
        expect(ValueError, barchan.Scene, **full_arguments(colliders=[{"mesh": mesh, "track": track}]))
        expect(ValueError, barchan.Scene, **full_arguments(bodies=[{"grain": 0, "track": track}]))
    for track in (3, ("x", 1, STILL), (0, "x", STILL), (0, 1, None), (0, 1, np.zeros((2, 7), complex))):
        expect(TypeError, barchan.Scene, **full_arguments(colliders=[{"mesh": mesh, "track": track}]))
        expect(TypeError, barchan.Scene, **full_arguments(bodies=[{"grain": 0, "track": track}]))
    for frames in ((0, 1), (0, 0, FRAMES), (0, 1, FRAMES[0]), (0, 1, FRAMES[:, 1:]), (0, 1, FRAMES[:0])):
        expect(ValueError, barchan.Scene, **full_arguments(colliders=[{"mesh": mesh, "frames": frames}]))
    for frames in (3, ("x", 1, FRAMES), (0, "x", FRAMES), (0, 1, None), (0, 1, FRAMES.astype(complex))):
        expect(TypeError, barchan.Scene, **full_arguments(colliders=[{"mesh": mesh, "frames": frames}]))
    both = {"mesh": mesh, "track": (0, 1, STILL), "frames": (0, 1, FRAMES)}
    expect(ValueError, barchan.Scene, **full_arguments(colliders=[both]))


def grain_rounds():
    barchan.sizes("lognormal", 0.5, 2, spread=0.2, count=100)
    for kind in ("tetrahedron", "cube", "rod", "sphere"):
        barchan.shape(kind, 0.1)
    expect(ValueError, barchan.sizes, "uniform", 2, 1, count=10)
    expect(ValueError, barchan.sizes, "x", 1, 2, count=10)
    expect(ValueError, barchan.sizes, "uniform", 1, 2, count=-1)
    expect(TypeError, barchan.sizes, "uniform", 1, 2)
    expect(ValueError, barchan.shape, "rod", 0.1, 0)
    expect(TypeError, barchan.shape, 3, 0.1)
    expect(ValueError, barchan.shape, "cube", -1)


def state_rounds():
    scene = barchan.Scene(**full_arguments())
    sim = barchan.Sim(scene, threads=1, allow_overlap=True, kernel="baseline")
    sim.advance(0.001)
    assert sim.contacts()["normal_force"].dtype == np.float32
    assert sim.loads()["bodies"].shape == sim.loads()["colliders"].shape == (1, 6)
    data = sim.save()
    sim.load(data)
    sim.load(bytearray(data))
    sim.load(np.frombuffer(data, np.uint8))
    expect(barchan.CacheError, sim.load, data[:-1])
    expect(barchan.CacheError, sim.load, b"")
    expect(TypeError, sim.load, "x")
    expect(TypeError, sim.load, memoryview(data)[::2])
    expect(TypeError, barchan.Sim, scene, kernel=3)
    expect(ValueError, barchan.Sim, scene, kernel="x")
    expect(TypeError, barchan.Sim, scene, allow_overlap=1)


def sim_rounds():
    scene = barchan.Scene(**scene_arguments(side=2))
    sim = barchan.Sim(scene, threads=2)
    sim.advance(0.001)
    sim.info()
    sim.hash()
    for array in (sim.positions(), sim.orientations(), sim.velocities(), sim.spins(), sim.flags()):
        array.sum()
    sim.cancel()
    expect(barchan.Cancelled, sim.advance, 1)
    expect(ValueError, sim.advance, -1)
    expect(TypeError, sim.advance, "x")
    expect(ValueError, barchan.Sim, scene, threads=-1)
    expect(TypeError, barchan.Sim, 3)


def cache_rounds(folder):
    barchan.make_folder(folder)
    arrays = {"position": np.ones((5, 3), np.float32), "id": [1, 2, 3, 4, 5]}
    barchan.write_frame(folder, 1, arrays, seconds=1.5, settings_hash=2**63)
    barchan.read_frame(folder, 1)["arrays"]["id"].sum()
    expect(barchan.CacheError, barchan.read_frame, folder, 2)
    expect(TypeError, barchan.read_frame, folder, "x")
    expect(ValueError, barchan.write_frame, folder, 1, {**arrays, "b": [1.0]})
    expect(TypeError, barchan.write_frame, folder, 1, {**arrays, "b": None})
    expect(ValueError, barchan.write_frame, folder, 1, arrays, settings_hash=-1)
    expect(TypeError, barchan.write_frame, folder, 1, None)
    _core.fail_io_after(2, errno.ENOSPC)
    expect(OSError, barchan.write_frame, folder, 1, arrays)
    barchan.list_frames(folder)
    barchan.free_frames(folder)


@pytest.mark.parametrize(
    "rounds",
    [mesh_rounds, sampler_rounds, scene_rounds, grain_rounds, sim_rounds, state_rounds],
    ids=lambda f: f.__name__,
)
def test_many_rounds_leave_nothing(rounds):
    blocks, core_bytes = growth(rounds, 200)
    print(blocks, core_bytes)
    assert core_bytes == 0
    # A leak of one block per round shows as 200; the rest is what the interpreter and NumPy keep for themselves.
    assert blocks < 100


def test_many_rounds_of_dicts_leave_nothing():
    blocks, core_bytes = growth(dict_rounds, 40)
    print(blocks, core_bytes)
    assert core_bytes == 0
    assert blocks < 20  # each round fails in more than a hundred ways: a block left in one of them shows as 40


def test_many_rounds_of_tracks_and_frames_leave_nothing():
    blocks, core_bytes = growth(motion_rounds, 100)
    print(blocks, core_bytes)
    assert core_bytes == 0
    assert blocks < 50


def test_many_rounds_of_frames_leave_nothing(tmp_path):
    blocks, core_bytes = growth(lambda: cache_rounds(tmp_path / "cache"), 50)
    print(blocks, core_bytes)
    assert core_bytes == 0
    assert blocks < 25


def test_the_leak_counter_sees_a_leak():
    kept = []
    blocks, core_bytes = growth(lambda: kept.append(barchan.fill(make_mesh(), 0.5)), 200)
    assert core_bytes > 0 and blocks >= 200


def alloc_jobs(folder):
    mesh = make_mesh()
    scene = barchan.Scene(**scene_arguments(side=2))
    full = barchan.Scene(**full_arguments())
    sim = barchan.Sim(full, threads=1, allow_overlap=True)
    sim.advance(0.01)
    data = sim.save()
    barchan.write_frame(folder, 1, {"a": [1.0]})
    return {
        "mesh": make_mesh,
        "cover": lambda: barchan.cover(mesh, 0.3),
        "fill": lambda: barchan.fill(mesh, 0.3, clearance=0.05),
        "scene": lambda: barchan.Scene(**full_arguments()),
        "save": sim.save,
        "load": lambda: sim.load(data),
        "sim": lambda: barchan.Sim(scene, threads=1).advance(0.001),
        "sim with everything": lambda: barchan.Sim(full, threads=1, allow_overlap=True).advance(0.001),
        "write_frame": lambda: barchan.write_frame(folder, 2, {"a": [1.0]}),
        "read_frame": lambda: barchan.read_frame(folder, 1),
        "list_frames": lambda: barchan.list_frames(folder),
        "make_folder": lambda: barchan.make_folder(folder),
    }


@pytest.mark.parametrize(
    "name",
    [
        "mesh",
        "cover",
        "fill",
        "scene",
        "sim",
        "sim with everything",
        "save",
        "load",
        "write_frame",
        "read_frame",
        "list_frames",
        "make_folder",
    ],
)
def test_every_failing_allocation_is_a_memory_error_and_leaks_nothing(folder, name):
    job = alloc_jobs(folder)[name]
    job()
    before = held()
    failures = 0
    for countdown in range(1, 200):
        _core.fail_alloc_after(countdown)
        try:
            job()
        except MemoryError:
            failures += 1
        else:
            break
        finally:
            _core.fail_alloc_after(0)
        assert held() == before, countdown
    print(name, failures)
    assert 1 <= failures < 199
    assert held() == before
