"""The sampler on a device through Python: the same points and distances as on the processor, and what engines say."""

import inspect
import json
import os
import subprocess
import sys
import threading
import time

import barchan
import numpy as np
import pytest
import test_hard_meshes
from conftest import cube_arrays

HAS_GL = any(device["is_usable"] and device["is_software"] for device in barchan.devices())
HAS_HARDWARE = any(device["is_usable"] and not device["is_software"] for device in barchan.devices())
needs_gl = pytest.mark.skipif(not HAS_GL, reason="no software GL device on this machine")


def torus(rings=40, sides=20):
    turn, angle = np.meshgrid(np.arange(rings) * 2 * np.pi / rings, np.arange(sides) * 2 * np.pi / sides, indexing="ij")
    out = 1 + 0.4 * np.cos(angle)
    vertices = np.stack([out * np.cos(turn), out * np.sin(turn), 0.4 * np.sin(angle)], -1).reshape(-1, 3)
    i, j = (axis.ravel() for axis in np.meshgrid(np.arange(rings), np.arange(sides), indexing="ij"))
    a, b, c, d = (
        sides * ((i + u) % rings) + (j + v) % sides for u, v in ((0, 0), (1, 0), (1, 1), (0, 1))
    )
    faces = np.concatenate([np.stack([a, b, c], -1), np.stack([a, c, d], -1)])
    return barchan.Mesh(vertices.astype(np.float32), faces.astype(np.int32), name="Torus")


@needs_gl
def test_points_and_distances_are_the_processors():
    mesh = torus()
    points = barchan.spread(mesh, 0.1, seed=3)
    assert len(points) > 500
    assert (barchan.spread(mesh, 0.1, seed=3, engine="gl") == points).all()
    places = np.random.default_rng(4).uniform(-1.6, 1.6, (2000, 3)).astype(np.float32)
    distances = barchan.distance(mesh, places)
    assert (distances < 0).sum() > 50
    assert (barchan.distance(mesh, places, engine="gl") == distances).all()


def test_a_field_holds_the_distances_of_its_nodes():
    mesh = torus()
    field = barchan.field(mesh, 0.1)
    assert field["voxel"] == pytest.approx(0.1) and field["band"] == pytest.approx(0.3) and field["engine"] == "cpu"
    brick, z, y, x = (axis[::50] for axis in np.nonzero(np.isfinite(field["values"])))
    assert len(brick) > 100
    nodes = field["origin"] + field["voxel"] * (8 * field["bricks"][brick] + np.stack([x, y, z], -1))
    distances = barchan.distance(mesh, nodes.astype(np.float32))
    assert np.abs(distances - field["values"][brick, z, y, x]).max() < 1e-6  # the places are rounded to float
    with pytest.raises(ValueError, match="voxel"):
        barchan.field(mesh, 0)


@needs_gl
def test_a_field_is_the_processors():
    cpu, gl = (barchan.field(torus(), 0.07, engine=engine) for engine in ("cpu", "gl"))
    assert gl["engine"] == "gl" and gl["note"] == ""
    assert (cpu["bricks"] == gl["bricks"]).all() and (cpu["values"] == gl["values"]).all()


@needs_gl
def test_a_sample_says_who_made_it():
    cpu, gl = barchan.sample(torus(), 0.08), barchan.sample(torus(), 0.08, engine="gl")
    assert (cpu["centres"] == gl["centres"]).all() and cpu["fit"]["evenness"] == gl["fit"]["evenness"]
    assert cpu["engine"] == {"engine": "cpu", "device": None, "note": ""}
    assert gl["engine"]["engine"] == "gl" and gl["engine"]["device"] and gl["engine"]["note"] == ""


def test_auto_is_the_processor_without_hardware():
    body = barchan.sample(torus(), 0.1, engine="auto")
    assert (body["centres"] == barchan.sample(torus(), 0.1)["centres"]).all() or HAS_HARDWARE
    if not HAS_HARDWARE:
        assert body["engine"]["engine"] == "cpu" and len(body["engine"]["note"]) > 10
    assert np.allclose(barchan.distance(torus(), body["centres"], engine="auto"), 0, atol=1e-6)
    assert len(barchan.spread(torus(), 0.12, engine="auto")) > 100


def test_engines_that_do_not_exist_are_refused():
    for call in (
        lambda: barchan.sample(torus(), 0.1, engine="vulkan"),
        lambda: barchan.spread(torus(), 0.1, engine=3),
        lambda: barchan.distance(torus(), np.zeros((1, 3), np.float32), engine="GL"),
    ):
        with pytest.raises(ValueError, match="'cpu', 'gl' or 'auto'"):
            call()


@needs_gl
@pytest.mark.parametrize(
    "name",
    # Without the two that take long by themselves: five million triangles, which no block of llvmpipe holds, and a
    # knot through itself, which tests/c/test_glsample.c has.
    [name for name in dir(test_hard_meshes) if name.startswith("test_") and name.count("million_tri") + name.count("knot") == 0],
)
def test_hard_meshes_become_the_same_bodies(name, monkeypatch, request):
    """Every mesh of test_hard_meshes.py, and every refusal, once more with both engines."""
    real = barchan.sample
    compared = []

    def both(mesh, radius, **options):
        body = real(mesh, radius, **options)
        # Larger spheres do here: what is compared is the engines, not the fit.
        coarse = {key: value for key, value in options.items() if key in ("seed", "offset")}
        cpu, gl = real(mesh, 2 * radius, **coarse), real(mesh, 2 * radius, engine="gl", **coarse)
        assert (cpu["centres"] == gl["centres"]).all()
        compared.append(len(cpu["centres"]))
        return body

    monkeypatch.setattr(barchan, "sample", both)
    test = getattr(test_hard_meshes, name)
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    chosen = marks[0].args[0] if marks else None
    others = [word for word in inspect.signature(test).parameters if word != chosen]
    fixtures = {word: request.getfixturevalue(word) for word in others}
    for value in marks[0].args[1] if marks else [None]:
        test(**fixtures, **({chosen: value} if marks else {}))
    print(name, compared)


@needs_gl
@pytest.mark.parametrize("threads", ["0", "2"])
def test_points_do_not_depend_on_the_devices_threads(threads, tmp_path):
    text = (
        "import barchan, numpy, sys; sys.path[:0] = [%r]; import test_sample_engine as t;"
        "m = t.torus(); p = barchan.spread(m, 0.1, seed=3, engine='gl'); print(len(p), p.tobytes().hex()[-64:], hash(p.tobytes()));"
        "assert (p == barchan.spread(m, 0.1, seed=3)).all()" % os.path.dirname(__file__)
    )
    made = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "LP_NUM_THREADS": threads, "PYTHONPATH": os.path.dirname(os.path.dirname(barchan.__file__))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert made.returncode == 0, made.stderr


@needs_gl
def test_a_cancel_ends_the_device_soon():
    cancel, raised = barchan.Cancel(), []
    mesh = torus(200, 100)

    def work():
        try:
            barchan.spread(mesh, 0.006, engine="gl", cancel=cancel)
        except barchan.Cancelled as error:
            raised.append(str(error))

    begun = []

    def raise_it():
        begun.append(time.monotonic())
        cancel.cancel()

    timer = threading.Timer(1, raise_it)  # in the middle: all of it takes many seconds
    timer.start()
    work()
    timer.join()
    print("heard after %.0f ms" % (1000 * (time.monotonic() - begun[0])))
    assert raised and "ancelled" in raised[0]


@needs_gl
def test_the_command_names_its_engine(tmp_path):
    path = tmp_path / "cube.obj"
    vertices, triangles = cube_arrays()
    path.write_text(
        "".join("v %g %g %g\n" % tuple(v) for v in vertices) + "".join("f %d %d %d\n" % tuple(t + 1) for t in triangles)
    )
    answers = []
    for engine in ("cpu", "gl"):
        command = [sys.executable, "-m", "barchan", "sample", path, "--radius", "0.1", "--engine", engine]
        made = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert made.returncode == 0, made.stderr
        answers.append(json.loads(made.stdout))
    assert [answer["engine"]["engine"] for answer in answers] == ["cpu", "gl"]
    for name in ("sphere_count", "evenness", "uncovered_share"):
        assert answers[0][name] == answers[1][name]
    refused = subprocess.run(
        [sys.executable, "-m", "barchan", "sample", path, "--clump", "4", "--engine", "gl"], capture_output=True, text=True
    )
    assert refused.returncode != 0 and "--engine" in refused.stderr
