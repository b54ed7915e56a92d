"""The arithmetic of bench/bench.py: what it times must be what it says. Nothing is timed here."""

import csv
import json
import math

import barchan
import numpy as np
import pytest


@pytest.mark.parametrize("count", [1, 4])
def test_law_for_gives_the_stiffness_asked_for(bench, count):
    radius, density, stiffness = 0.005, 2500.0, 5000.0
    offsets = np.zeros((1, 3), np.float32) if count == 1 else barchan.tetrahedron(radius)
    mass = count * density * 4 / 3 * math.pi * radius**3
    max_overlap, max_speed = bench.law_for(stiffness, mass, radius)
    scene = barchan.Scene(
        positions=np.array([[0, 0, 0], [1, 0, 0]], np.float32),
        shapes=[(offsets, np.full(count, radius, np.float32))],
        max_overlap=max_overlap,
        max_speed=max_speed,
        materials=[{"density": density, "normal": "linear", "shear": "history"}],
    )
    expected = math.pi * math.sqrt(0.5 * mass / stiffness)  # half an oscillation of the pair's effective mass
    print(scene.contact_time, expected)
    # max_speed, radii and volume pass through single precision: a few parts in ten million each.
    assert scene.contact_time == pytest.approx(expected, rel=1e-5)


def test_best_repeat_counts_and_the_middle_one_shows_the_noise(bench):
    assert bench.million_rate(10_000, 1000, [4.0, 2.0, 5.0]) == 5.0
    assert bench.spread([4.0, 2.0, 5.0]) == 1.0
    assert bench.spread([3.0]) == 0.0


def test_tiles_stand_side_by_side(bench):
    positions = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], np.float32)
    quaternions = np.array([[1, 0, 0, 0], [0, 1, 0, 0]], np.float32)
    tiled, turned, side = bench.lay_tiles(positions, quaternions, 1.0, 3)
    assert side == 3.0 and tiled.shape == (18, 3) and turned.shape == (18, 4)
    assert np.array_equal(turned[16:], quaternions)
    assert np.allclose(tiled[:2], positions) and np.allclose(tiled[16:], positions + np.array([2, 2, 0], np.float32))
    assert len({tuple(row) for row in tiled.tolist()}) == 18


def test_lattice_starts_apart_and_inside_the_box(bench):
    positions, quaternions, side = bench.tile_lattice()
    bound = bench.RADIUS * (1 + math.sqrt(1.5))  # of a tetrahedron of touching spheres
    for x, y, z, *normal in bench.box_planes(side):
        distances = (positions - np.array([x, y, z])) @ np.array(normal)
        print(normal, distances.min(), bound)
        assert distances.min() > bound
    steps = np.diff(positions.reshape(bench.TILE_LAYERS, bench.TILE_SIDE, bench.TILE_SIDE, 3), axis=2)
    assert np.linalg.norm(steps, axis=-1).min() > 2 * bound
    assert np.allclose(np.linalg.norm(quaternions, axis=1), 1, atol=1e-6)


def test_results_are_json_lines_and_csv_rows(bench, tmp_path, capsys):
    report = bench.Report(tmp_path, "the command", 2)
    report.show("begin")
    report.advance("half")
    report.result(work="w1", n=10, ratio=2.5)
    report.result(work="w2", n=20, ratio=3.5)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["@ 0 2 begin", "@ 1 2 half"]
    assert [json.loads(line)["ratio"] for line in lines[2:]] == [2.5, 3.5]
    (path,) = tmp_path.iterdir()
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["work"], row["n"], row["command"], row["machine"]) for row in rows] == [
        ("w1", "10", "the command", report.machine),
        ("w2", "20", "the command", report.machine),
    ]
    assert list(rows[0]) == bench.COLUMNS


def test_csv_is_named_after_the_processor(bench):
    assert bench.csv_name("AMD EPYC, 2 cores") == "amd-epyc-2-cores.csv"
    assert bench.csv_name("Some(R) CPU @ 3.0GHz, 8 cores") == "some-r-cpu-3-0ghz-8-cores.csv"
