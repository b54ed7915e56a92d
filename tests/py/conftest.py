"""Shared by the extension's tests: small meshes and scenes, and the count of what is allocated.

The tests meet the installed package, under `python -X dev -W error`. Random numbers have fixed seeds.
"""

import gc
import importlib.util
import itertools
import pathlib
import sys

import barchan
import numpy as np
import pytest
from barchan import _core

CUBE_TRIANGLES = np.array(
    [
        [0, 1, 3],
        [0, 3, 2],
        [4, 6, 7],
        [4, 7, 5],
        [0, 4, 5],
        [0, 5, 1],
        [2, 3, 7],
        [2, 7, 6],
        [0, 2, 6],
        [0, 6, 4],
        [1, 5, 7],
        [1, 7, 3],
    ],
    np.int32,
)


def cube_arrays(size=1.0):
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=3)), np.float32) * np.float32(size)
    return corners, CUBE_TRIANGLES.copy()


def make_mesh(size=1.0, name="Cube"):
    return barchan.Mesh(*cube_arrays(size), name=name)


def scene_arguments(side=3, radius=0.02):
    """side**3 tetrahedral grains above a floor, a little apart, falling."""
    steps = np.arange(side, dtype=np.float32) * np.float32(6 * radius) + np.float32(4 * radius)
    positions = np.array(list(itertools.product(steps, repeat=3)), np.float32)
    offsets = barchan.tetrahedron(radius)
    return {
        "positions": positions,
        "shapes": [(offsets, np.full(4, radius, np.float32))],
        "planes": np.array([[0, 0, 0, 0, 0, 1]], np.float32),
        "seed": 7,
    }


def make_scene(**changes):
    return barchan.Scene(**{**scene_arguments(), **changes})


BALL_RADIUS = 0.02  # m


def ball_scene(**changes):
    """One ball of 1000 kg/m^3 at the origin, weightless and at rest. A plane ten metres below only widens the domain,
    so that the ball may travel."""
    arguments = {
        "positions": [[0, 0, 0]],
        "shapes": [barchan.shape("sphere", BALL_RADIUS)],
        "gravity": (0, 0, 0),
        "materials": [{"density": 1000}],
        "planes": [[0, 0, -10, 0, 0, 1]],
        "max_speed": 1,
    }
    return barchan.Scene(**{**arguments, **changes})


def advanced(scene, seconds, **settings):
    """A sim of the scene that has advanced."""
    sim = barchan.Sim(scene, **{"threads": 1, **settings})
    sim.advance(seconds)
    return sim


def advanced_finely(scene, seconds):
    """With an eighth of the default step, for closed forms of single impacts."""
    return advanced(scene, seconds, step_seconds=barchan.Sim(scene, threads=1).info()["step_seconds"] / 8)


@pytest.fixture
def mesh():
    return make_mesh()


@pytest.fixture
def scene():
    return make_scene()


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "cache"
    barchan.make_folder(path)
    return path


@pytest.fixture(autouse=True)
def seams_off():
    """No test leaves a fault behind for the next one."""
    yield
    _core.fail_alloc_after(0)
    _core.fail_io_after(0, 0)


def growth(action, rounds):
    """Python blocks and core bytes that `rounds` runs of action leave behind: the least of three times, for the
    interpreter and NumPy fill caches of their own now and then, but a leak grows every time."""

    def measure():
        gc.collect()
        return sys.getallocatedblocks(), _core.allocated_bytes()

    found = []
    for _ in range(4):
        before = measure()
        for _ in range(rounds):
            action()
        after = measure()
        found.append((after[0] - before[0], after[1] - before[1]))
    return min(blocks for blocks, _ in found[1:]), min(core_bytes for _, core_bytes in found[1:])


@pytest.fixture(scope="session")
def bench():
    """bench/bench.py as a module."""
    path = pathlib.Path(__file__).resolve().parents[2] / "bench" / "bench.py"
    spec = importlib.util.spec_from_file_location("barchan_bench", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
