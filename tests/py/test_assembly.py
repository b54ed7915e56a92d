"""The add-on's assembly without Blender: grains of several sizes, shapes and materials, moving emitters, forces."""

import dataclasses
import importlib
import pathlib
import sys
import types

import numpy as np
import pytest

import barchan

ADDON = pathlib.Path(__file__).resolve().parents[2] / "addon"
CORNERS = np.array([(i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)], np.float32)
QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
FACES = np.array([row for a, b, c, d in QUADS for row in ((a, b, c), (a, c, d))], np.int32)


@pytest.fixture(scope="module")
def rooms():
    """addon/job.py and addon/assembly.py, as a package without its __init__, which needs Blender."""
    package = types.ModuleType("addon_rooms")
    package.__path__ = [str(ADDON)]
    sys.modules["addon_rooms"] = package
    found = types.SimpleNamespace(
        job=importlib.import_module("addon_rooms.job"), assembly=importlib.import_module("addon_rooms.assembly")
    )
    yield found
    for name in [name for name in sys.modules if name.startswith("addon_rooms")]:
        del sys.modules[name]


def box(job, name, low, size, **options):
    vertices = np.asarray(low, np.float32) + CORNERS * np.asarray(size, np.float32)
    return job.Source(name, vertices, FACES, **options)


def make(rooms, **options):
    given = {"sand": (), "colliders": (), "folder": "", "frame_start": 1, "frame_end": 25, "frame_seconds": 1 / 24}
    warnings = []
    return rooms.assembly.assemble(rooms.job.Job(**{**given, **options}), warnings), warnings


def test_two_sands_keep_their_own_size_shape_material_and_source(rooms):
    job = rooms.job
    sticky = job.Grains(radius=0.01, shape="SPHERE", density=1000.0, bond=5.0, rolling=0.2)
    made, warnings = make(
        rooms,
        sand=(box(job, "A", (0, 0, 0), 0.4), box(job, "B", (1, 0, 0), 0.2, grains=sticky)),
        radius=0.03,
    )
    assert made.source_names == ("A", "B") and made.shape_names == ("TETRAHEDRON", "SPHERE")
    assert made.least_radius == pytest.approx(0.01)
    assert len(made.sources) == made.scene.grain_count and len(made.material_names) == 2
    sim = barchan.Sim(made.scene, threads=1)
    is_b = made.sources == 1
    places = sim.positions()
    assert (places[is_b][:, 0] > 0.9).all() and (places[~is_b][:, 0] < 0.5).all()
    print("grains of A and B:", int((~is_b).sum()), int(is_b.sum()), warnings)
    assert is_b.sum() > 8 * (~is_b).sum() > 0


@pytest.mark.parametrize("kind,low,high,spread", [("UNIFORM", 0.7, 1.3, 0.0), ("LOGNORMAL", 0.6, 1.8, 0.3)])
def test_mixed_sizes_follow_their_distribution_and_nothing_overlaps(rooms, kind, low, high, spread):
    job = rooms.job
    grains = job.Grains(radius=0.01, shape="SPHERE", size_kind=kind, size_low=low, size_high=high, size_spread=spread)
    made, _warnings = make(rooms, sand=(box(job, "A", (0, 0, 0), 0.5, grains=grains),))
    equal, _warnings = make(rooms, sand=(box(job, "A", (0, 0, 0), 0.5, grains=dataclasses.replace(grains, size_kind="EQUAL")),))
    assert made.least_radius == pytest.approx(0.01 * low, rel=0.05)
    barchan.Sim(made.scene, threads=1)  # refuses grains that overlap
    assembler = rooms.assembly._Assembler(
        job.Job(sand=(), colliders=(), folder="", frame_start=1, frame_end=2, frame_seconds=1.0), [], None, lambda: None
    )
    assembler._fill(box(job, "A", (0, 0, 0), 0.5, grains=grains), 0)
    sizes = np.concatenate(assembler.scales)
    wanted = barchan.sizes(kind.lower(), low, high, spread, seed=5, count=100000)
    volume = float((sizes**3).sum()) / equal.scene.grain_count
    print(f"{kind}: {len(sizes)} grains, mean size {sizes.mean():.3f} of {wanted.mean():.3f}, "
          f"{sizes.min():.3f} to {sizes.max():.3f}, volume against equal grains {volume:.2f}")
    assert sizes.min() >= low * 0.999 and sizes.max() <= high * 1.001
    assert sizes.std() > 0.6 * wanted.std()
    assert abs(sizes.mean() - wanted.mean()) < 0.12  # small ones fill what large ones leave, and find less of it
    assert volume > 0.4


def test_a_custom_grain_is_the_mesh_as_large_as_it_is(rooms):
    job = rooms.job
    brick = job.Source("Brick", (CORNERS - 0.5) * np.array((0.12, 0.06, 0.04), np.float32), FACES, uid=7)
    grains = job.Grains(shape="CUSTOM", mesh=brick, clump_count=12, density=2000.0)
    made, _warnings = make(rooms, sand=(box(job, "A", (0, 0, 0), 0.6, grains=grains),))
    (shape,) = made.grain_shapes
    kind = rooms.assembly.make_kind(grains)
    reach = np.abs(kind.offsets).max(axis=0) + kind.radii.max()
    print(made.scene.grain_count, "bricks of", len(kind.offsets), "spheres, reach", reach)
    assert shape.index == 0 and shape.uid == 7 and shape.name == "Brick" and 2 <= len(shape.offsets) <= 12
    assert np.abs(kind.body[1:4]).max() < 1e-3 and np.allclose(shape.offsets, kind.offsets - kind.body[1:4])
    assert kind.body[0] == pytest.approx(0.12 * 0.06 * 0.04, rel=1e-3)
    assert 0.9 < reach[0] / 0.06 < 1.3 and kind.bound < 0.09
    with pytest.raises(rooms.job.BakeError, match="Brick"):
        rooms.assembly.make_kind(dataclasses.replace(grains, mesh=dataclasses.replace(brick, triangles=FACES[:-1])))


def test_an_emitter_gives_mixed_sizes_and_no_more_than_asked_for(rooms):
    job = rooms.job
    grains = job.Grains(radius=0.01, shape="SPHERE", size_kind="UNIFORM", size_low=0.5, size_high=1.5)
    source = box(job, "Tap", (0, 0, 1), 0.3)
    tap = job.Emitter("Tap", source.vertices, FACES, rate=300.0, end=1.0, target_count=101, grains=grains)
    made, _warnings = make(rooms, emitters=(tap,))
    assert made.scene.grain_count == 101 and (made.sources == 0).all()
    sim = barchan.Sim(made.scene, threads=1)
    sim.advance(0.2)
    early = int((sim.flags() & 8 == 0).sum())
    print("born after 0.2 s:", early)
    assert 55 <= early <= 61
    sim.advance(0.3)
    assert (sim.flags() & 8 == 0).all()


def test_grains_of_a_moving_emitter_appear_where_it_is_then_with_its_speed(rooms):
    job = rooms.job
    speed, interval, count = 2.0, 1 / 48, 49
    samples = np.zeros((count, 7))
    samples[:, 0] = speed * interval * np.arange(count)
    samples[:, 2], samples[:, 3] = 1.0, 1.0
    vertices = (CORNERS - 0.5) * np.float32(0.1)
    tap = job.Emitter("Tap", vertices, FACES, rate=100.0, end=1.0, track=job.Track(interval, samples))
    made, _warnings = make(rooms, emitters=(tap,), gravity=(0.0, 0.0, 0.0), radius=0.01, shape="SPHERE")
    assert made.scene.grain_count == 100
    sim = barchan.Sim(made.scene, threads=1)
    sim.advance(0.5)
    born = sim.flags() & 8 == 0
    # Weightless and as fast as the emitter: all that were born are still inside it.
    off = sim.positions()[born] - (speed * 0.5, 0.0, 1.0)
    print(int(born.sum()), "born, off by", np.abs(off).max(axis=0), "speed", sim.velocities()[born].mean(axis=0))
    assert 48 <= born.sum() <= 52
    assert np.abs(off).max() < 0.06
    assert np.abs(sim.velocities()[born][:, 0] - speed).max() < 0.2
    still, _warnings = make(
        rooms, emitters=(dataclasses.replace(tap, inherit=0.0),), gravity=(0.0, 0.0, 0.0), radius=0.01, shape="SPHERE"
    )
    sim = barchan.Sim(still.scene, threads=1)
    sim.advance(0.5)
    places = np.sort(sim.positions()[sim.flags() & 8 == 0][:, 0])
    print("left behind from", places[0], "to", places[-1])
    assert places[0] < 0.1 and places[-1] > 0.9


def test_what_a_moving_emitter_would_put_into_a_collider_is_left_out(rooms):
    job = rooms.job
    samples = np.zeros((25, 7))
    samples[:, 0], samples[:, 3] = np.linspace(0.0, 2.0, 25), 1.0
    wall = np.array([(1.0, -1, -1), (1.0, 1, -1), (1.0, 1, 1), (1.0, -1, 1)], np.float32)
    tap = job.Emitter("Tap", (CORNERS - 0.5) * np.float32(0.1), FACES, rate=100.0, end=1.0, track=job.Track(1 / 24, samples))
    made, warnings = make(
        rooms,
        emitters=(tap,),
        colliders=(job.Collider("Wall", wall, np.array([(0, 1, 2), (0, 2, 3)], np.int32)),),
        radius=0.04,
        shape="SPHERE",
    )
    print(made.scene.grain_count, warnings)
    assert 90 <= made.scene.grain_count < 100
    assert any("Tap" in text and "left out" in text for text in warnings)


def test_forces_and_wind_reach_the_core(rooms):
    job = rooms.job
    force = job.Force("Fan", (-1.0, -1.0, -1.0), (3.0, 3.0, 3.0), (5.0, 0.0, 0.0))
    options = {"sand": (box(job, "A", (0, 0, 0), 0.2),), "gravity": (0.0, 0.0, 0.0), "radius": 0.02}
    made, _warnings = make(rooms, forces=(force,), **options)
    sim = barchan.Sim(made.scene, threads=1)
    sim.advance(0.1)
    assert sim.velocities()[:, 0].mean() == pytest.approx(0.5, rel=0.01)
    made, _warnings = make(rooms, drag=2.0, wind=(0.0, 3.0, 0.0), **options)
    sim = barchan.Sim(made.scene, threads=1)
    sim.advance(0.1)
    assert sim.velocities()[:, 1].mean() == pytest.approx(3.0 * (1 - np.exp(-0.2)), rel=0.01)
