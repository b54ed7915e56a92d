"""python -m barchan sample: JSON and PLY out, and one sentence for everything that goes wrong."""

import json
import os
import signal
import subprocess
import sys

import barchan
import numpy as np
import pytest
from conftest import cube_arrays

KEYS = set(
    """file kind seed sphere_count spacing_min spacing_mean spacing_max evenness uncovered_share hausdorff mesh_volume
       sphere_volume volume_error inertia_error_raw inertia_error seconds warnings out""".split()
)


def run(*arguments, **environment):
    """Exit code, standard output and standard error of the command."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-m", "barchan", "sample", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
        timeout=600,
    )
    return done.returncode, done.stdout, done.stderr


def good(*arguments):
    code, out, err = run(*arguments)
    assert (code, err) == (0, ""), (code, err)
    assert out.count("\n") == 1
    return json.loads(out)


def refused(*arguments, words=(), **environment):
    """The one sentence on standard error."""
    code, out, err = run(*arguments, **environment)
    print(err)
    assert code == 1 and out == "", (code, out, err)
    assert err.startswith("barchan: ") and err.count("\n") == 1 and "Errno" not in err
    for word in words:
        assert word.lower() in err.lower(), (word, err)
    return err


def write_obj(path, vertices, faces):
    lines = ["v %r %r %r" % tuple(map(float, vertex)) for vertex in vertices]
    lines += ["f " + " ".join(str(index + 1) for index in face) for face in faces]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def cube(tmp_path):
    return write_obj(tmp_path / "cube.obj", *cube_arrays())


def read_ply(path):
    """Vertices of a binary PLY as (N, 4): x y z radius."""
    header, data = path.read_bytes().split(b"end_header\n", 1)
    lines = header.decode("ascii").split("\n")
    assert lines[:2] == ["ply", "format binary_little_endian 1.0"]
    names = [line for line in lines if line.startswith("property")]
    assert names == ["property float %s" % name for name in ("x", "y", "z", "radius")]
    count = int(next(line for line in lines if line.startswith("element vertex")).split()[-1])
    rows = np.frombuffer(data, "<f4").reshape(-1, 4)
    assert len(rows) == count
    return rows


def test_a_surface_is_reported_and_written(cube, tmp_path):
    out = tmp_path / "spheres.ply"
    report = good(cube, "--radius", 0.05, "--seed", 3, "--out", out)
    print(report)
    assert set(report) == KEYS | {"radius", "spacing", "offset", "engine"}
    assert report["kind"] == "surface" and report["out"] == str(out) and report["file"] == str(cube)
    rows = read_ply(out)
    assert len(rows) == report["sphere_count"]
    expected = barchan.sample(barchan.Mesh(*cube_arrays()), 0.05, seed=3)
    assert np.array_equal(rows[:, :3], expected["centres"])
    assert (rows[:, 3] == np.float32(0.05)).all()
    for key in ("spacing_mean", "uncovered_share", "hausdorff", "volume_error", "inertia_error"):
        assert report[key] == expected["fit"][key]
    assert sorted(os.listdir(tmp_path)) == ["cube.obj", "spheres.ply"]


def test_trimesh_reads_the_ply_back(cube, tmp_path):
    trimesh = pytest.importorskip("trimesh")
    out = tmp_path / "spheres.ply"
    report = good(cube, "--radius", 0.1, "--out", out)
    cloud = next(iter(trimesh.load_scene(out).geometry.values()))
    assert len(cloud.vertices) == report["sphere_count"]


def test_a_volume_and_a_clump(cube, tmp_path):
    report = good(cube, "--radius", 0.1, "--volume", "--kind", "jittered", "--packing", 0.5)
    assert set(report) == KEYS | {"radius", "packing_radius"}
    assert report["kind"] == "volume" and report["sphere_count"] > 20
    out = tmp_path / "clump.ply"
    report = good(cube, "--clump", 5, "--out", out)
    assert set(report) == KEYS | {"overlap", "radius_min", "radius_max"}
    assert report["kind"] == "clump" and len(read_ply(out)) == report["sphere_count"] <= 5


def test_every_format_gives_the_same_spheres(cube, tmp_path):
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.Trimesh(*cube_arrays(), process=False)
    counts = []
    for suffix in ("obj", "ply", "stl"):
        path = tmp_path / ("same." + suffix)
        mesh.export(path)
        report = good(path, "--radius", 0.1)
        counts.append((report["sphere_count"], round(report["mesh_volume"], 6)))
    assert counts == [counts[0]] * 3 and counts[0][1] == 1


def test_the_objects_of_a_file_are_one_mesh(tmp_path):
    path = tmp_path / "two.obj"
    vertices, faces = cube_arrays()
    lines = []
    for number, shift in enumerate((0, 5)):
        lines.append("o part%d" % number)
        lines += ["v %g %g %g" % (x + shift, y, z) for x, y, z in vertices]
        lines += ["f " + " ".join(str(8 * number + index + 1) for index in face) for face in faces]
    path.write_text("\n".join(lines))
    report = good(path, "--radius", 0.1)
    assert report["mesh_volume"] == pytest.approx(2)


def test_an_open_mesh_is_a_warning(tmp_path):
    vertices, faces = cube_arrays()
    report = good(write_obj(tmp_path / "open.obj", vertices, faces[2:]), "--radius", 0.1)
    assert any("open" in warning for warning in report["warnings"])


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((), ["--radius", "missing"]),
        (("--radius", 0), ["radius is 0"]),
        (("--radius", -1), ["radius is -1"]),
        (("--radius", "nan"), ["radius is nan"]),
        (("--radius", 1e-5), ["cube.obj", "1e-05|1.2e-05|points|spheres"]),
        (("--radius", 0.1, "--spacing", -1), ["spacing"]),
        (("--radius", 0.1, "--clump", 4), ["--radius", "--clump"]),
        (("--radius", 0.1, "--kind", "relaxed"), ["--kind", "surface"]),
        (("--radius", 0.1, "--volume", "--offset", 1), ["--offset", "--volume"]),
        (("--radius", 9, "--volume"), ["cube.obj"]),
        (("--radius", 0.1, "--volume", "--packing", 2), ["packing"]),
        (("--clump", 1000), ["1000"]),
        (("--radius", 0.1, "--seed", -1), ["seed"]),
        (("--radius", 0.1, "--threads", -1), ["thread"]),
    ],
)
def test_bad_numbers_are_one_sentence(cube, tmp_path, arguments, words):
    out = tmp_path / "never.ply"
    err = refused(cube, *arguments, "--out", out)
    for word in words:
        assert any(one.lower() in err.lower() for one in word.split("|")), (word, err)
    assert os.listdir(tmp_path) == ["cube.obj"]


def test_bad_files_are_one_sentence(tmp_path):
    contents = {
        "empty.obj": b"",
        "empty.ply": b"",
        "empty.stl": b"",
        "torn.ply": b"ply\nformat ascii 1.0\nelement vertex 3\n",
        "torn.stl": b"\0" * 90,
        "noise.stl": bytes(range(256)) * 4,
        "noise.obj": b"v a b c\nf 1 2 3\n",
        "points.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\n",
        "far.obj": b"v 0 0 0\nv 1e300 0 0\nv 0 1 0\nf 1 2 3\n",
        "index.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, "--radius", 0.1, "--out", tmp_path / "never.ply", words=[name])
    assert not (tmp_path / "never.ply").exists()


def test_a_file_that_is_not_there(tmp_path):
    refused(tmp_path / "none.obj", "--radius", 1, words=["none.obj", "no such file"])


def test_a_folder_and_an_unknown_suffix(tmp_path):
    (tmp_path / "folder.obj").mkdir()
    refused(tmp_path / "folder.obj", "--radius", 1, words=["folder.obj"])
    (tmp_path / "mesh.abc").write_text("x")
    refused(tmp_path / "mesh.abc", "--radius", 1, words=["mesh.abc", ".obj", ".stl"])


def test_an_output_that_cannot_be_written(cube, tmp_path):
    refused(cube, "--radius", 0.1, "--out", tmp_path / "no" / "x.ply", words=["x.ply", "folder"])
    refused(cube, "--radius", 0.1, "--out", tmp_path, words=["file name"])
    refused(cube, "--radius", 0.1, "--out", cube, words=["the mesh itself"])
    assert os.listdir(tmp_path) == ["cube.obj"]


def test_without_trimesh_the_sentence_says_how_to_get_it(cube, tmp_path):
    # A package of that name that cannot be imported stands before the real one.
    (tmp_path / "trimesh.py").write_text("raise ImportError('not installed')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    refused(cube, "--radius", 0.1, words=["trimesh", "pip install", "barchan[files]"], PYTHONPATH=path)


def test_an_older_output_survives_a_failure(cube, tmp_path):
    out = tmp_path / "kept.ply"
    out.write_bytes(b"mine")
    refused(cube, "--radius", 0, "--out", out)
    assert out.read_bytes() == b"mine"
    good(cube, "--radius", 0.2, "--out", out)
    assert len(read_ply(out)) > 10


def test_a_terminal_sees_the_time_and_ctrl_c_stops_without_a_file(cube, tmp_path):
    terminal, inner = os.openpty()
    out = tmp_path / "never.ply"
    # A million spheres: still at work when the first line is there.
    command = [sys.executable, "-m", "barchan", "sample", str(cube), "--radius", "0.002", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=inner, start_new_session=True) as process:
        os.close(inner)
        shown = b""
        while b"Sampling: " not in shown:
            shown += os.read(terminal, 1000)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == b""
        code = process.wait()
    shown += os.read(terminal, 100000)
    os.close(terminal)
    print(shown)
    assert code == 130 and b"stopped; nothing was written" in shown and b"Traceback" not in shown
    assert os.listdir(tmp_path) == ["cube.obj"]
