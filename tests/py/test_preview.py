"""Pictures: the PNG that is written, the camera that is found, Light's arrays and refusals, the command on a small cache."""

import json
import os
import signal
import struct
import subprocess
import sys
import zlib

import barchan
import numpy as np
import pytest
from barchan import preview


def has_device():
    return any(device["is_usable"] for device in barchan.devices())


needs_device = pytest.mark.skipif(not has_device(), reason="no device that draws")


def chunks(data):
    at = 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        yield kind, body
        at += 12 + length


@pytest.fixture
def pixels():
    return np.random.default_rng(3).integers(0, 256, (7, 11, 4), np.uint8)


def test_a_png_comes_back(tmp_path, pixels):
    path = str(tmp_path / "a.png")
    preview.write_png(path, pixels)
    assert (preview.read_png(path) == pixels[..., :3]).all()
    kinds = [kind for kind, _ in chunks((tmp_path / "a.png").read_bytes())]
    assert kinds == [b"IHDR", b"sRGB", b"IDAT", b"IEND"]
    assert os.listdir(tmp_path) == ["a.png"]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, pixels):
    (tmp_path / "a.png").mkdir()
    with pytest.raises(OSError):
        preview.write_png(str(tmp_path / "a.png"), pixels)
    assert os.listdir(tmp_path) == ["a.png"]


def test_an_animation_holds_every_picture_in_order(tmp_path, pixels):
    paths = []
    for index in range(3):
        paths.append(str(tmp_path / ("%d.png" % index)))
        preview.write_png(paths[-1], pixels + np.uint8(index))
    preview.write_animation(str(tmp_path / "a.apng"), paths, 25)
    found = list(chunks((tmp_path / "a.apng").read_bytes()))
    assert [kind for kind, _ in found] == [
        b"IHDR", b"sRGB", b"acTL", b"fcTL", b"IDAT", b"fcTL", b"fdAT", b"fcTL", b"fdAT", b"IEND",
    ]  # fmt: skip
    assert struct.unpack(">II", found[2][1]) == (3, 0)
    numbers = [struct.unpack(">I", body[:4])[0] for kind, body in found if kind in (b"fcTL", b"fdAT")]
    assert numbers == list(range(5))
    delay = struct.unpack(">HH", found[3][1][20:24])
    assert delay[0] / delay[1] == pytest.approx(1 / 25)
    lines = np.frombuffer(zlib.decompress(found[-2][1][4:]), np.uint8).reshape(7, 34)
    assert (np.cumsum(lines[:, 1:], axis=0, dtype=np.uint8).reshape(7, 11, 3) == (pixels + np.uint8(2))[..., :3]).all()


@pytest.mark.parametrize("direction", [(-0.55, -1, 0.55), (0, -1, 0.1), (1, 0, 0.1), (0, -0.02, 1), (0, 0, 1), (0.3, 1, -0.4)])
def test_the_camera_sees_all_of_the_box(direction):
    low, high = np.array((-1.0, 2.0, 0.5)), np.array((3.0, 2.5, 4.0))
    camera = preview.frame_camera(low, high, 16 / 9, direction).astype(float)
    eye, (w, *v), lens = camera[:3], camera[3:7], camera[7:9]
    v = np.array(v)
    assert w * w + v @ v == pytest.approx(1)
    corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])]) - eye
    seen = corners + 2 * np.cross(-v, np.cross(-v, corners) + w * corners)
    assert (seen[:, 2] < 0).all()
    assert (np.abs(seen[:, :2]) <= -seen[:, 2:] * lens).all()
    assert camera[11] < -seen[:, 2].max() and camera[12] > -seen[:, 2].min()


SPHERE = [(np.zeros((1, 3), np.float32), np.ones(1, np.float32))]
CAMERA = np.array((0, 0, 4, 1, 0, 0, 0, 0.4, 0.3, 0, 0, 0.1, 20), np.float32)


@needs_device
def test_a_picture_comes_with_what_was_measured():
    light = barchan.Light(32, 24, 2, 64, measure=True)
    place = np.array([(0.0, 0.0, 0.5)], np.float32)
    drawn = light.draw(
        CAMERA, positions=place, shapes=SPHERE, scales=np.array([0.5], np.float32), round=True, sun=(1, 0, 2, 3, 3, 3, 0),
        sky=(0.3, 0.3, 0.3), ground=(0.0, 0.5, 0.5, 0.5), give_samples=True,
    )  # fmt: skip
    assert drawn["pixels"].shape == (24, 32, 4) and (drawn["pixels"][..., 3] == 255).all()
    assert drawn["depths"].shape == (48, 64) and drawn["normals"].shape == (48, 64, 3)
    assert drawn["depths"][24, 32] == pytest.approx(3.0, abs=1e-3)  # 4 m above, the ball's top at 1 m
    assert drawn["depths"][2, 2] == pytest.approx(4.0, abs=1e-3)
    assert drawn["normals"][2, 2] == pytest.approx((0, 0, 1), abs=1e-5)
    left, right = drawn["lit"][24, 17], drawn["lit"][24, 50]
    assert left < 0.5 < right, "the ball's shadow lies away from the sun"
    assert light.times()["draws"] == 1 and light.times()["surfaces"] > 0


@needs_device
def test_light_refuses_with_a_sentence():
    with pytest.raises(ValueError, match="16384"):
        barchan.Light(0, 3)
    light = barchan.Light(8, 8, 1, 16)
    with pytest.raises(ValueError, match="lens"):
        light.draw(np.zeros(13, np.float32))
    with pytest.raises(ValueError, match="positions"):
        light.draw(CAMERA, positions=np.zeros((3, 2), np.float32))
    with pytest.raises(ValueError, match="shape"):
        light.draw(CAMERA, positions=np.zeros((3, 3), np.float32))
    with pytest.raises(TypeError, match="meshes"):
        light.draw(CAMERA, meshes=[3])
    with pytest.raises(ValueError, match="Mesh 0"):
        light.draw(CAMERA, meshes=[(np.zeros((3, 3)), [[0, 1, 9]], (0, 0, 0, 1, 0, 0, 0), (1, 1, 1, 0), False, False)])
    with pytest.raises(TypeError, match="field"):
        light.draw(CAMERA, field=3)


@needs_device
def test_a_field_of_distances_is_met_where_it_is_zero():
    """A ball of 0.8 m in a field of 41^3: seen from 4 m above its top is 3.2 m away."""
    axis = np.linspace(-1, 1, 41, dtype=np.float32)
    z, y, x = np.meshgrid(axis, axis, axis, indexing="ij")
    distances = np.sqrt(x * x + y * y + z * z) - np.float32(0.8)
    light = barchan.Light(33, 33, 1, 16)
    drawn = light.draw(CAMERA, field=(distances, (-1, -1, -1, 0.05), (0.5, 0.5, 0.5)), give_samples=True)
    assert drawn["depths"][16, 16] == pytest.approx(3.2, abs=0.01)
    assert drawn["normals"][16, 16] == pytest.approx((0, 0, 1), abs=0.05)
    assert drawn["depths"][0, 0] == 0


@pytest.fixture
def cache(tmp_path):
    folder = str(tmp_path / "cache")
    barchan.make_folder(folder)
    places = np.random.default_rng(1).random((60, 3)).astype(np.float32) * np.float32(0.2)
    turns = np.tile(np.array((1, 0, 0, 0), np.float32), (60, 1))
    for frame in range(1, 5):
        barchan.write_frame(folder, frame, {"position": places + np.float32(0.01 * frame), "rotation": turns})
    return folder


def command(*words, **options):
    return subprocess.run([sys.executable, "-m", "barchan", "preview", *words], capture_output=True, text=True, **options)


@needs_device
def test_the_command_draws_a_cache(cache, tmp_path):
    out = str(tmp_path / "pictures")
    done = command(cache, "--out", out, "--size", "48x32", "--samples", "1", "--frames", "2:4", "--animation", "apng")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["pictures"] == 3 and report["frames"] == [2, 4] and "taken as" in done.stderr
    assert sorted(os.listdir(out)) == ["frame_%06d.png" % n for n in (2, 3, 4)] + ["preview.apng"]
    assert preview.read_png(os.path.join(out, "frame_000003.png")).std() > 10
    one = str(tmp_path / "one.png")
    done = command(cache, "--out", one, "--size", "48x32", "--camera", "top", "--radius", "0.02", "--round", "--light", "30,60")
    assert done.returncode == 0 and json.loads(done.stdout)["frames"] == [4, 4] and done.stderr == ""
    assert preview.read_png(one).shape == (32, 48, 3)


@needs_device
@pytest.mark.parametrize(
    "words, code, sentence",
    [
        (["--frames", "9:12"], 1, "There is no frame"),
        (["--out", "absent/one.png"], 1, "does not exist"),
        (["--size", "0x9"], 2, "expected 1 to 16384"),
        (["--camera", "below"], 2, "corner, front"),
        (["--frames", "1:2", "--out", "one.png"], 1, "give --out a folder"),
    ],
)
def test_the_command_refuses_with_a_sentence(cache, tmp_path, words, code, sentence):
    done = command(cache, *words, cwd=tmp_path)
    assert done.returncode == code and sentence in done.stderr, done.stderr


def test_a_cache_that_is_not_there_is_named(tmp_path):
    done = command(str(tmp_path / "absent"))
    assert done.returncode == 1 and "There is no folder" in done.stderr


@needs_device
def test_ctrl_c_keeps_whole_pictures(cache, tmp_path):
    out = tmp_path / "pictures"
    run = subprocess.Popen(
        [sys.executable, "-m", "barchan", "preview", cache, "--out", str(out), "--size", "640x360"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    while not out.exists() and run.poll() is None:
        pass
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=120)
    assert run.returncode == 130 and "stopped" in errors, errors
    for path in out.iterdir():
        assert path.suffix == ".png"
        preview.read_png(str(path))


@needs_device
def test_the_samplers_view_shows_what_is_not_covered(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    path, out = str(tmp_path / "ball.ply"), str(tmp_path / "ball.png")
    trimesh.creation.icosphere(subdivisions=3, radius=1.0).export(path)
    shares = {}
    for name, spacing in (("dense", "0.2"), ("sparse", "0.6")):
        done = subprocess.run(
            [sys.executable, "-m", "barchan", "sample", path, "--radius", "0.12", "--spacing", spacing, "--preview", out],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        shares[name] = json.loads(done.stdout)["uncovered_share"]
        assert preview.read_png(out).shape == (480, 640, 3)
    print(shares)
    assert shares["dense"] < 0.15 < 0.5 < shares["sparse"] < 1
