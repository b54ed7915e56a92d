"""barchan.export and python -m barchan export: every file read back and compared with the cache, and every way to fail."""

import json
import os
import signal
import subprocess
import sys
import threading

import barchan
import numpy as np
import pytest

FORMATS = ("usd", "nodes", "ply", "npz")
RADIUS = 0.02
HIDDEN, GONE, ASLEEP = 8, 16, 2


def frame_arrays(frame, count=50):
    """Grains that move, turn, and are born and taken one after the other: on frame f those from f - 1 to 9 + 5 f."""
    random = np.random.default_rng(1000 + frame)
    rotation = random.normal(size=(count, 4))
    index = np.arange(count)
    flags = np.where(index > 9 + 5 * frame, HIDDEN, 0) | np.where(index < frame - 1, GONE, 0) | np.where(index % 3, ASLEEP, 0)
    return {
        "position": random.random((count, 3), np.float32),
        "rotation": (rotation / np.linalg.norm(rotation, axis=1, keepdims=True)).astype(np.float32),
        "velocity": random.random((count, 3), np.float32),
        "flags": flags.astype(np.int32),
    }


def shown(arrays):
    """What an export must hold of these arrays, and the ids."""
    index = np.flatnonzero((arrays["flags"] & (HIDDEN | GONE)) == 0)
    return {name: array[index] for name, array in arrays.items()}, index


def write_cache(folder, frames=range(1, 7), fps=24.0, make=frame_arrays):
    for frame in frames:
        barchan.write_frame(folder, frame, make(frame), seconds=(frame - 1) / fps)
    return folder


@pytest.fixture
def cache(folder):
    return write_cache(folder)


def leftovers(cache):
    """Everything beside the cache."""
    return sorted(path.name for path in cache.parent.iterdir() if path != cache)


# ---------------------------------------------------------------------------------------------------------------------
# Readers: an exported file -> {frame: arrays by name}


def read_usd(path):
    pxr = pytest.importorskip("pxr.Usd")
    from pxr import UsdGeom

    stage = pxr.Stage.Open(str(path))
    points = UsdGeom.Points(stage.GetDefaultPrim())
    primvars = {one.GetPrimvarName(): one for one in UsdGeom.PrimvarsAPI(points).GetPrimvarsWithAuthoredValues()}
    found = {}
    for time in points.GetPointsAttr().GetTimeSamples():
        position = np.array(points.GetPointsAttr().Get(time), np.float32).reshape(-1, 3)
        rotation = primvars["rotation"].Get(time)
        rows = [(one.GetReal(), *one.GetImaginary()) for one in rotation]
        found[int(time)] = {
            "position": position,
            "velocity": np.array(points.GetVelocitiesAttr().Get(time), np.float32).reshape(-1, 3),
            "radius": np.array(points.GetWidthsAttr().Get(time), np.float32) / 2,
            "rotation": np.array(rows, np.float32).reshape(-1, 4),
            "id": np.array(primvars["id"].Get(time), np.int32),
            "ids": np.array(points.GetIdsAttr().Get(time), np.int64),
            "extent": np.array(points.GetExtentAttr().Get(time)),
        }
    return found, stage, primvars


def read_nodes(folder):
    found = {}
    for path in sorted((folder / "meta").iterdir()):
        item = json.loads(path.read_text())["items"]["0"]
        assert item["name"] == item["value_name"] == "Geometry" and item["type"] == "GEOMETRY"
        cloud = item["data"]["pointcloud"]
        arrays = {}
        for one in cloud["attributes"]:
            kind, width = {"FLOAT": ("<f4", 1), "FLOAT_VECTOR": ("<f4", 3), "QUATERNION": ("<f4", 4), "INT": ("<i4", 1)}[
                one["type"]
            ]
            place = one["data"]
            blob = folder / "blobs" / place["name"]
            data = blob.read_bytes()[place["start"] : place["start"] + place["size"]] if place["size"] else b""
            values = np.frombuffer(data, kind)
            arrays[one["name"]] = values.reshape(-1, width) if width > 1 else values
            assert len(arrays[one["name"]]) == cloud["num_points"] and one["domain"] == "POINT"
        found[int(float(path.stem.replace("_", ".")))] = arrays
    return found


PLY_TYPES = {"float": "<f4", "int": "<i4"}


def read_ply(folder):
    found = {}
    for path in sorted(folder.glob("frame_*.ply")):
        header, data = path.read_bytes().split(b"end_header\n", 1)
        lines = header.decode("ascii").split("\n")
        assert lines[:2] == ["ply", "format binary_little_endian 1.0"]
        fields = [(line.split()[2], PLY_TYPES[line.split()[1]]) for line in lines if line.startswith("property")]
        rows = np.frombuffer(data, fields)
        assert "element vertex %d" % len(rows) in lines

        def columns(names, rows=rows):
            return np.stack([rows[name] for name in names.split()], axis=1)

        found[int(path.stem[6:])] = {
            "position": columns("x y z"),
            "velocity": columns("vx vy vz"),
            "rotation": columns("qw qx qy qz"),
            "radius": rows["radius"],
            "id": rows["id"],
        }
    return found


def read_npz(folder):
    return {int(path.stem[6:]): dict(np.load(path)) for path in sorted(folder.glob("frame_*.npz"))}


def read(to, path):
    return read_usd(path)[0] if to == "usd" else {"nodes": read_nodes, "ply": read_ply, "npz": read_npz}[to](path)


# ---------------------------------------------------------------------------------------------------------------------
# What is written


@pytest.mark.parametrize("to", FORMATS)
def test_every_number_comes_back_to_the_bit(cache, tmp_path, to):
    out = tmp_path / ("sand.usdc" if to == "usd" else "sand")
    report = barchan.export(cache, to, out, radius=RADIUS)
    print(report)
    found = read(to, out)
    assert list(found) == [1, 2, 3, 4, 5, 6]
    counts = set()
    for frame, arrays in found.items():
        expected, ids = shown(frame_arrays(frame))
        counts.add(len(ids))
        for name in ("position", "velocity", "rotation"):
            assert arrays[name].tobytes() == expected[name].tobytes(), (frame, name)
        assert arrays["id"].tolist() == ids.tolist()
        assert (arrays["radius"] == np.float32(RADIUS)).all() and len(arrays["radius"]) == len(ids)
    assert len(counts) > 3, "the count does not change"
    assert (report["point_count_min"], report["point_count_max"]) == (min(counts), max(counts))
    assert {"format": to, "first": 1, "last": 6, "frame_count": 6, "missing": 0, "fps": 24.0}.items() <= report.items()
    size = out.stat().st_size if to == "usd" else sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert report["byte_count"] == size and report["out"] == str(out)


def test_usd_says_time_units_axis_extent_and_ids(cache, tmp_path):
    pytest.importorskip("pxr.Usd")
    from pxr import UsdGeom

    barchan.export(cache, "usd", tmp_path / "sand.usd", radius=RADIUS)
    found, stage, primvars = read_usd(tmp_path / "sand.usd")
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (1, 6)
    assert stage.GetTimeCodesPerSecond() == stage.GetFramesPerSecond() == 24
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1 and UsdGeom.GetStageUpAxis(stage) == "Z"
    points = UsdGeom.Points(stage.GetDefaultPrim())
    assert points.GetWidthsInterpolation() == "vertex"
    assert set(primvars) == {"rotation", "id"}
    assert all(one.GetInterpolation() == "vertex" for one in primvars.values())
    for arrays in found.values():
        assert arrays["ids"].tolist() == arrays["id"].tolist()
        low, high = arrays["position"].min(axis=0) - RADIUS, arrays["position"].max(axis=0) + RADIUS
        assert np.abs(arrays["extent"] - [low, high]).max() < 1e-6  # rounding of sums below 2
    for one in (points.GetPointsAttr(), points.GetVelocitiesAttr(), points.GetWidthsAttr(), points.GetExtentAttr()):
        assert one.GetTimeSamples() == [1, 2, 3, 4, 5, 6]


def test_usd_keeps_little_in_memory_and_every_sample(folder, tmp_path, monkeypatch):
    """Samples leave memory as they pile up; the file saved in many pieces holds the same."""
    pytest.importorskip("pxr.Usd")
    write_cache(folder)
    barchan.export(folder, "usd", tmp_path / "once.usdc", radius=RADIUS)
    monkeypatch.setattr(sys.modules["barchan.exporter"], "SAVE_BYTES", 1)
    barchan.export(folder, "usd", tmp_path / "often.usdc", radius=RADIUS)
    once, often = read_usd(tmp_path / "once.usdc")[0], read_usd(tmp_path / "often.usdc")[0]
    for frame in once:
        for name in once[frame]:
            assert once[frame][name].tobytes() == often[frame][name].tobytes()


def test_nodes_store_what_does_not_change_once(folder, tmp_path):
    still = frame_arrays(6)

    def make(frame):
        arrays = dict(still)
        if frame >= 3:
            arrays["position"] = frame_arrays(frame)["position"]
        return arrays

    write_cache(folder, make=make)
    barchan.export(folder, "nodes", tmp_path / "sand", radius=RADIUS)
    count = len(shown(still)[1])
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "sand" / "blobs").iterdir()}
    print(sizes)
    # position, velocity, rotation, radius, id on the first frame; nothing on the second; positions from the third on
    assert sizes == {"%05d_00000.blob" % frame: count * (12 + 12 + 16 + 4 + 4 if frame == 1 else 12) for frame in (1, 3, 4, 5, 6)}
    for frame, arrays in read_nodes(tmp_path / "sand").items():
        assert arrays["position"].tobytes() == shown(make(frame))[0]["position"].tobytes()
        assert arrays["rotation"].tobytes() == shown(still)[0]["rotation"].tobytes()


def test_every_folder_says_what_it_holds(cache, tmp_path):
    for to in FORMATS[1:]:
        barchan.export(cache, to, tmp_path / to, radius=RADIUS, frames=(2, 3))
        about = json.loads((tmp_path / to / "barchan_export.json").read_text())
        assert about["format"] == to and about["fps"] == 24 and about["barchan"] == barchan.__version__
        assert [row["frame"] for row in about["frames"]] == [2, 3]
        assert [row["seconds"] for row in about["frames"]] == [1 / 24, 2 / 24]
        assert [row["points"] for row in about["frames"]] == [len(shown(frame_arrays(frame))[1]) for frame in (2, 3)]
    assert (tmp_path / "nodes" / "play_in_blender.py").read_text().startswith('"""Plays the folder')


def test_numpy_keeps_frame_seconds_flags_and_every_array(folder, tmp_path):
    extra = {"age": np.arange(50, dtype=np.float32), "material": np.arange(50, dtype=np.int32), "radius": np.full(50, 0.5)}
    write_cache(folder, make=lambda frame: {**frame_arrays(frame), **extra})
    barchan.export(folder, "npz", tmp_path / "sand")
    arrays = read_npz(tmp_path / "sand")[4]
    expected, ids = shown({**frame_arrays(4), **extra})
    assert arrays["frame"] == 4 and arrays["seconds"] == 3 / 24
    assert set(arrays) == set(expected) | {"id", "frame", "seconds"}
    for name, array in expected.items():
        assert np.array_equal(arrays[name], array), name
    assert (arrays["radius"] == 0.5).all()


def test_further_arrays_arrive_by_name(folder, tmp_path):
    extra = {"age": np.arange(50, dtype=np.float32), "material": np.arange(50, dtype=np.int32), "spin": np.ones((50, 3))}
    extra["radius"] = np.linspace(0.1, 0.2, 50)
    extra["id"] = np.arange(1000, 1050)
    write_cache(folder, make=lambda frame: {**frame_arrays(frame), **extra})
    barchan.export(folder, "nodes", tmp_path / "nodes")
    barchan.export(folder, "ply", tmp_path / "ply")
    expected, index = shown({**frame_arrays(4), **extra})
    arrays = read_nodes(tmp_path / "nodes")[4]
    assert set(arrays) == {"position", "rotation", "velocity", "age", "material", "spin", "radius", "id"}
    assert arrays["id"].tolist() == (1000 + index).tolist() and arrays["material"].tolist() == index.tolist()
    assert np.array_equal(arrays["radius"], expected["radius"].astype(np.float32))
    header = (tmp_path / "ply" / "frame_000004.ply").read_bytes().split(b"end_header")[0].decode("ascii")
    names = [line.split()[2] for line in header.split("\n") if line.startswith("property")]
    assert names[:12] == "x y z vx vy vz radius qw qx qy qz id".split()
    assert sorted(names[12:]) == ["age", "material", "spin_0", "spin_1", "spin_2"]
    pytest.importorskip("pxr.Usd")
    barchan.export(folder, "usd", tmp_path / "sand.usdc")
    _found, _stage, primvars = read_usd(tmp_path / "sand.usdc")
    assert set(primvars) == {"rotation", "id", "age", "material", "spin"}
    assert list(primvars["age"].Get(4)) == expected["age"].tolist()
    assert str(primvars["spin"].GetTypeName()) == "vector3f[]" and str(primvars["material"].GetTypeName()) == "int[]"


@pytest.mark.parametrize("to", FORMATS)
def test_frames_without_grains_are_kept(folder, tmp_path, to):
    def make(frame):
        arrays = frame_arrays(frame)
        if frame in (1, 4):
            arrays["flags"][:] = HIDDEN
        return arrays

    write_cache(folder, make=make)
    out = tmp_path / ("sand.usdc" if to == "usd" else "sand")
    barchan.export(folder, to, out, radius=RADIUS)
    found = read(to, out)
    assert list(found) == [1, 2, 3, 4, 5, 6]
    assert [len(found[frame]["position"]) == 0 for frame in found] == [True, False, False, True, False, False]


def test_grains_without_a_place_are_left_out(folder, tmp_path):
    def make(frame):
        arrays = frame_arrays(6, 20)
        arrays["position"][[3, 5], [0, 2]] = np.nan, np.inf
        arrays["flags"][:] = 0
        return arrays

    write_cache(folder, make=make)
    barchan.export(folder, "npz", tmp_path / "sand", radius=RADIUS)
    assert read_npz(tmp_path / "sand")[2]["id"].tolist() == [index for index in range(20) if index not in (3, 5)]


def test_what_to_take_can_be_chosen(cache, tmp_path):
    def exported(name, **options):
        barchan.export(cache, "npz", tmp_path / name, radius=RADIUS, **options)
        return read_npz(tmp_path / name)

    assert list(exported("a", frames=(2, 4))) == [2, 3, 4]
    assert list(exported("b", frames=(None, 2))) == [1, 2]
    assert list(exported("c", frames=(5, None))) == [5, 6]
    assert list(exported("d", every=2)) == [1, 3, 5]
    assert list(exported("e", frames=(2, 100), every=3)) == [2, 5]
    ids = shown(frame_arrays(4))[1]
    assert exported("f", thin=4)[4]["id"].tolist() == [index for index in ids if index % 4 == 0]
    assert exported("g", skip=6)[4]["id"].tolist() == [index for index in ids if index >= 6]


def test_gaps_are_counted(cache, tmp_path):
    (cache / "frame_000003.sand").unlink()
    report = barchan.export(cache, "npz", tmp_path / "sand", radius=RADIUS)
    assert report["missing"] == 1 and list(read_npz(tmp_path / "sand")) == [1, 2, 4, 5, 6]


@pytest.mark.parametrize("fps, expected", [(24, 24.0), (30, 30.0), (24 / 1.001, 24 / 1.001), (1000, 1000.0)])
def test_the_rate_comes_from_the_simulated_time(folder, tmp_path, fps, expected):
    write_cache(folder, frames=range(-3, 40, 7), fps=fps)
    report = barchan.export(folder, "npz", tmp_path / "sand", radius=RADIUS)
    assert report["fps"] == pytest.approx(expected, rel=1e-12)
    report = barchan.export(folder, "npz", tmp_path / "given", radius=RADIUS, fps=12.5)
    assert report["fps"] == 12.5


def test_one_frame_has_the_usual_rate(folder, tmp_path):
    write_cache(folder, frames=[7])
    assert barchan.export(folder, "npz", tmp_path / "sand", radius=RADIUS)["fps"] == 24


def rotate(quaternion, vector):
    """By the matrix of the quaternion, in double precision."""
    w, x, y, z = map(float, quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    ) @ np.asarray(vector, float)


def test_tetrahedra_become_four_spheres_each(folder, tmp_path):
    spin = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    write_cache(folder, make=lambda frame: {**frame_arrays(frame), "spin": spin})
    report = barchan.export(folder, "npz", tmp_path / "sand", radius=0.1, shape="tetrahedron")
    arrays, (expected, ids) = read_npz(tmp_path / "sand")[3], shown({**frame_arrays(3), "spin": spin})
    assert len(arrays["position"]) == 4 * len(ids) and report["point_count_max"] == 4 * len(shown(frame_arrays(6))[1])
    offsets = barchan.tetrahedron(0.1)
    for index, grain in enumerate(ids):
        for number in range(4):
            row = 4 * index + number
            arm = rotate(expected["rotation"][index], offsets[number])
            # Single precision: sums below 2 and products below 1 are good to 2^-23 each.
            assert np.abs(arrays["position"][row] - expected["position"][index] - arm).max() < 5e-7
            speed = expected["velocity"][index] + np.cross(spin[grain], arm)
            assert np.abs(arrays["velocity"][row] - speed).max() < 1e-6
            assert arrays["id"][row] == 4 * grain + number and arrays["grain"][row] == grain
            assert (arrays["rotation"][row] == expected["rotation"][index]).all()
    assert (arrays["radius"] == np.float32(0.1)).all()


def test_the_default_name_is_beside_the_cache(cache):
    for to, name in {"npz": "cache_npz", "ply": "cache_ply", "nodes": "cache_nodes"}.items():
        assert barchan.export(cache, to, radius=RADIUS)["out"] == str(cache.parent / name)
    pytest.importorskip("pxr.Usd")
    assert barchan.export(str(cache) + "/", "usd", radius=RADIUS)["out"] == str(cache.parent / "cache.usdc")
    assert leftovers(cache) == ["cache.usdc", "cache_nodes", "cache_npz", "cache_ply"]


def test_the_same_cache_gives_the_same_bytes(cache, tmp_path):
    for to in ("nodes", "ply", "npz"):
        contents = []
        for name in ("a", "b"):
            barchan.export(cache, to, tmp_path / (to + name), radius=RADIUS)
            files = sorted(path for path in (tmp_path / (to + name)).rglob("*") if path.is_file())
            contents.append([path.read_bytes() for path in files])
        assert contents[0] == contents[1]


# ---------------------------------------------------------------------------------------------------------------------
# Whole or not there


@pytest.mark.parametrize("to", FORMATS)
def test_an_older_export_is_kept_unless_told_otherwise(cache, tmp_path, to):
    out = tmp_path / ("sand.usdc" if to == "usd" else "sand")
    barchan.export(cache, to, out, radius=RADIUS)
    with pytest.raises(ValueError, match="is there already"):
        barchan.export(cache, to, out, radius=RADIUS, frames=(2, 3))
    assert list(read(to, out)) == [1, 2, 3, 4, 5, 6]
    barchan.export(cache, to, out, radius=RADIUS, frames=(2, 3), overwrite=True)
    assert list(read(to, out)) == [2, 3]
    assert leftovers(cache) == [out.name]


def test_folders_with_anything_else_in_them_are_never_overwritten(cache, tmp_path):
    out = tmp_path / "sand"
    barchan.export(cache, "nodes", out, radius=RADIUS)
    (out / "blobs" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="notes.txt"):
        barchan.export(cache, "nodes", out, radius=RADIUS, overwrite=True)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "frame_000001.ply").write_text("mine")
    with pytest.raises(ValueError, match="not only an older export"):
        barchan.export(cache, "ply", mine, radius=RADIUS, overwrite=True)
    assert (mine / "frame_000001.ply").read_text() == "mine"
    with pytest.raises(ValueError, match="is the cache itself"):
        barchan.export(cache, "ply", cache, radius=RADIUS, overwrite=True)
    assert (out / "blobs" / "notes.txt").read_text() == "mine" and leftovers(cache) == ["mine", "sand"]


@pytest.mark.parametrize("to", FORMATS)
def test_a_damaged_frame_stops_the_export_and_leaves_nothing(cache, to):
    path = cache / "frame_000004.sand"
    path.write_bytes(path.read_bytes()[:-70] + bytes(70))
    with pytest.raises(barchan.CacheError, match="frame_000004"):
        barchan.export(cache, to, radius=RADIUS)
    assert leftovers(cache) == []


@pytest.mark.parametrize("to", FORMATS)
def test_cancel_leaves_the_older_export_whole(cache, to):
    out = cache.parent / ("sand.usdc" if to == "usd" else "sand")
    barchan.export(cache, to, out, radius=RADIUS)
    cancel, seen = barchan.Cancel(), []

    def progress(done, total):
        seen.append((done, total))
        if done == 3:
            thread = threading.Thread(target=cancel.cancel)
            thread.start()
            thread.join()

    with pytest.raises(barchan.Cancelled, match="nothing was written"):
        barchan.export(cache, to, out, radius=RADIUS, frames=(1, 5), overwrite=True, progress=progress, cancel=cancel)
    assert seen == [(1, 5), (2, 5), (3, 5)]
    assert list(read(to, out)) == [1, 2, 3, 4, 5, 6] and leftovers(cache) == [out.name]


@pytest.mark.parametrize("to", FORMATS)
def test_every_refused_file_call_leaves_the_older_export_whole(cache, to, monkeypatch):
    """The N-th call that makes, syncs or renames something fails, N from 1 until one export goes through."""
    out = cache.parent / ("sand.usdc" if to == "usd" else "sand")
    barchan.export(cache, to, out, radius=RADIUS, frames=(1, 2))
    real = {name: getattr(os, name) for name in ("mkdir", "fsync", "rename", "replace")}
    left = [0]

    def failing(name):
        def call(*arguments, **keywords):
            left[0] -= 1
            if left[0] == 0:
                raise OSError(28, "No space left on device")
            return real[name](*arguments, **keywords)

        return call

    for name in real:
        monkeypatch.setattr(os, name, failing(name))
    failures = 0
    for count in range(1, 100):
        left[0] = count
        before = list(read(to, out))
        try:
            barchan.export(cache, to, out, radius=RADIUS, frames=(3, 4) if before == [1, 2] else (1, 2), overwrite=True)
        except OSError as error:
            failures += 1
            assert error.errno == 28
            # After the last rename only the sync of the parent folder can fail: then the new one is there, whole.
            assert list(read(to, out)) in ([1, 2], [3, 4])
        else:
            break
        assert leftovers(cache) == [out.name], count
    print(to, failures)
    assert failures >= (3 if to == "usd" else 6)
    assert leftovers(cache) == [out.name]


# ---------------------------------------------------------------------------------------------------------------------
# Bad input


@pytest.mark.parametrize(
    "options, kind, sentence",
    [
        ({"to": "abc"}, ValueError, "'abc' is no format to export to: expected usd, nodes, ply, npz"),
        ({"radius": None}, ValueError, "does not say how large the grains are.*--radius"),
        ({"radius": 0}, ValueError, "radius is 0, expected a number above 0"),
        ({"radius": float("nan")}, ValueError, "radius is nan"),
        ({"radius": "x"}, ValueError, "radius is 'x'"),
        ({"fps": -1}, ValueError, "fps is -1"),
        ({"every": 0}, ValueError, "every is 0, expected a whole number from 1 on"),
        ({"thin": 1.5}, ValueError, "thin is 1.5"),
        ({"skip": -1}, ValueError, "skip is -1"),
        ({"skip": 51}, ValueError, "Frame 1 holds 50 elements, fewer than the 51 to skip"),
        ({"shape": "cube"}, ValueError, "'cube' is no shape of grains"),
        ({"frames": (10, 20)}, barchan.CacheError, "No frame to export from 10 to 20.*holds 1 to 6"),
        ({"frames": (4, 2)}, barchan.CacheError, "No frame to export from 4 to 2"),
        ({"out": "no/such/folder"}, ValueError, "the folder '.*no/such' does not exist"),
        ({"to": "usd", "out": "sand.abc"}, ValueError, "no name for a usd file: expected .usdc or .usd"),
        ({"folder": "missing"}, barchan.CacheError, "There is no folder"),
    ],
)
def test_bad_options_are_named_and_nothing_is_written(cache, monkeypatch, options, kind, sentence):
    monkeypatch.chdir(cache.parent)
    with pytest.raises(kind, match=sentence):
        barchan.export(**{"folder": cache, "to": "ply", "radius": RADIUS, **options})
    assert leftovers(cache) == []


def test_an_empty_cache_and_frames_without_positions(folder):
    with pytest.raises(barchan.CacheError, match="There are no frames in"):
        barchan.export(folder, "npz", radius=RADIUS)
    barchan.write_frame(folder, 1, {"a": [1.0]})
    with pytest.raises(barchan.CacheError, match="Frame 1 of .* has no positions"):
        barchan.export(folder, "npz", radius=RADIUS)
    assert leftovers(folder) == []


def test_a_file_where_a_folder_should_be_and_the_other_way_round(cache, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "sand.usdc").mkdir()
    for to, name in (("ply", "file"), ("usd", "sand.usdc")):
        with pytest.raises(ValueError, match="already"):
            barchan.export(cache, to, tmp_path / name, radius=RADIUS, overwrite=True)
    assert (tmp_path / "file").read_text() == "mine"


# ---------------------------------------------------------------------------------------------------------------------
# The command


def run(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-m", "barchan", "export", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
        timeout=600,
    )
    return done.returncode, done.stdout, done.stderr


def refused(*arguments, words=(), **environment):
    """The one sentence on standard error."""
    code, out, err = run(*arguments, **environment)
    print(err)
    assert code == 1 and out == "", (code, out, err)
    assert err.startswith("barchan: ") and err.count("\n") == 1 and "Errno" not in err
    for word in words:
        assert word.lower() in err.lower(), (word, err)


def test_the_command_exports_and_reports(cache, tmp_path):
    out = tmp_path / "sand"
    code, text, err = run(cache, "--to", "npz", "--out", out, "--frames", "2:6", "--every", 2, "--thin", 3, "--radius", 0.5)
    assert (code, err) == (0, "") and text.count("\n") == 1
    report = json.loads(text)
    assert report["frame_count"] == 3 and report["out"] == str(out)
    found = read_npz(out)
    assert list(found) == [2, 4, 6] and found[4]["id"].tolist() == [i for i in shown(frame_arrays(4))[1] if i % 3 == 0]
    code, text, err = run(cache, "--to", "npz", "--out", out, "--frames", ":3", "--radius", 0.5, "--overwrite")
    assert (code, err) == (0, "") and list(read_npz(out)) == [1, 2, 3]


def test_the_command_writes_usd(cache, tmp_path):
    pytest.importorskip("pxr.Usd")
    out = tmp_path / "sand.usdc"
    code, _text, err = run(cache, "--to", "usd", "--out", out, "--radius", RADIUS, "--shape", "tetrahedron", "--fps", 30)
    assert (code, err) == (0, "")
    found, stage, primvars = read_usd(out)
    assert stage.GetTimeCodesPerSecond() == 30 and set(primvars) == {"rotation", "id", "grain"}
    assert len(found[2]["position"]) == 4 * len(shown(frame_arrays(2))[1])


def test_what_goes_wrong_is_one_sentence_and_code_1(cache, tmp_path):
    refused(cache, "--to", "ply", words=["--radius"])
    refused(cache, "--to", "ply", "--radius", 1, "--frames", "1-3", words=["--frames is '1-3'", "FIRST:LAST"])
    refused(tmp_path / "none", "--to", "ply", words=["no folder"])
    refused(cache, "--to", "ply", "--radius", 1, "--out", tmp_path / "no" / "such", words=["does not exist"])
    assert run(cache, "--to", "abc")[0] == 2 and run(cache)[0] == 2
    assert leftovers(cache) == []


def test_without_pxr_the_sentence_says_how_to_get_it(cache, tmp_path):
    # A package of that name that cannot be imported stands before the real one.
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pxr.py").write_text("raise ImportError('not installed')\n")
    path = os.pathsep.join([str(tmp_path / "other"), os.environ.get("PYTHONPATH", "")])
    refused(cache, "--to", "usd", "--radius", 1, words=["usd-core", "pip install", "barchan[usd]"], PYTHONPATH=path)
    assert leftovers(cache) == ["other"]


@pytest.mark.parametrize("to", FORMATS)
def test_a_file_that_may_not_grow_is_one_sentence_and_leaves_nothing(folder, to):
    """As on a full disk: the system refuses bytes beyond a limit."""
    write_cache(folder, make=lambda frame: {**frame_arrays(frame, 20000), "flags": np.zeros(20000, np.int32)})
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000));"
        "sys.argv[0] = 'barchan'; from barchan.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "export", str(folder), "--to", to, "--radius", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    print(done.stderr)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("barchan: ") and "Traceback" not in done.stderr
    assert "'%s" % folder in done.stderr
    assert leftovers(folder) == []


@pytest.mark.parametrize("number, to", [(signal.SIGINT, "ply"), (signal.SIGTERM, "nodes"), (signal.SIGHUP, "usd")])
def test_a_terminal_sees_the_time_left_and_a_signal_leaves_nothing(folder, number, to):
    # Enough frames to be still at work when the first line is there.
    arrays = {**frame_arrays(1, 20000), "flags": np.zeros(20000, np.int32)}
    write_cache(folder, frames=range(1, 200), make=lambda frame: arrays)
    terminal, inner = os.openpty()
    command = [sys.executable, "-m", "barchan", "export", str(folder), "--to", to, "--radius", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=inner, start_new_session=True) as process:
        os.close(inner)
        shown_text = b""
        while b" left" not in shown_text:
            shown_text += os.read(terminal, 1000)
        process.send_signal(number)
        assert process.stdout.read() == b""
        code = process.wait()
    shown_text += os.read(terminal, 100000)
    os.close(terminal)
    print(shown_text)
    assert code == 130 and b"stopped; nothing was written" in shown_text and b"Traceback" not in shown_text
    assert b"of 199 frames, " in shown_text
    assert leftovers(folder) == []
