"""write_frame, read_frame, make_folder, list_frames, free_frames: through real files, with every way to fail."""

import errno
import os

import barchan
import numpy as np
import pytest
from barchan import _core


def example_arrays(count=5):
    random = np.random.default_rng(1)
    return {
        "position": random.random((count, 3), np.float32),
        "rotation": random.random((count, 4), np.float32),
        "id": np.arange(count, dtype=np.int32),
        "mass": random.random(count, np.float32),
    }


def test_a_frame_comes_back_bit_for_bit(folder):
    arrays = example_arrays()
    arrays["mass"][2] = np.nan
    assert barchan.write_frame(folder, -7, arrays, seconds=1.25, settings_hash=2**64 - 1, state_hash=3) is None
    frame = barchan.read_frame(folder, -7)
    size = os.path.getsize(os.path.join(folder, "frame_-00007.sand"))
    low, high = arrays["position"].min(axis=0), arrays["position"].max(axis=0)
    assert {name: value for name, value in frame.items() if name != "arrays"} == {
        "frame": -7,
        "seconds": 1.25,
        "settings_hash": 2**64 - 1,
        "motion_hash": 0,
        "state_hash": 3,
        "version": 3,
        "count": 5,
        "bounds": (tuple(low.tolist()), tuple(high.tolist())),
        "tolerance": 0.0,
        "exact_count": 0,
        "engine": "",
        "base": None,
        "bytes": size,
    }
    assert list(frame["arrays"]) == list(arrays)
    for name, array in arrays.items():
        found = frame["arrays"][name]
        assert found.dtype == array.dtype and found.shape == array.shape, name
        assert found.tobytes() == array.tobytes(), name


def test_the_optional_numbers_are_zero(folder):
    barchan.write_frame(folder, 1, {"a": [1.0]})
    frame = barchan.read_frame(folder=folder, frame=1)
    assert (frame["seconds"], frame["settings_hash"], frame["state_hash"]) == (0.0, 0, 0)


def test_keywords_name_every_argument(folder):
    barchan.write_frame(folder=folder, frame=1, arrays={"a": [1.0]}, seconds=2, settings_hash=3, state_hash=4)
    frame = barchan.read_frame(folder, 1)
    assert (frame["seconds"], frame["settings_hash"], frame["state_hash"]) == (2.0, 3, 4)


def test_the_folder_may_be_str_path_or_bytes(folder):
    for index, form in enumerate((str(folder), folder, os.fsencode(folder))):
        barchan.write_frame(form, index, {"a": [1.0]})
        assert barchan.read_frame(form, index)["frame"] == index
        assert len(barchan.list_frames(form)[0]) == index + 1


@pytest.mark.parametrize("name", ["with space", "d\u00fcne \u7802", "n" * 200, "-dash", "100%s %d"])
def test_odd_folder_names_work(tmp_path, name):
    folder = tmp_path / name / "deep" / "er"
    barchan.make_folder(folder)
    barchan.write_frame(folder, 1, {"a": [1.0]})
    assert barchan.list_frames(folder)[0] == [1]
    with pytest.raises(barchan.CacheError, match="Frame 2 is not in the cache"):
        barchan.read_frame(folder, 2)


def test_a_folder_name_that_is_no_utf8_works(tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff\xfe"
    barchan.make_folder(folder)
    barchan.write_frame(folder, 1, {"a": [1.0]})
    with pytest.raises(barchan.CacheError, match="Frame 2"):
        barchan.read_frame(folder, 2)


def test_every_form_of_the_same_numbers_gives_the_same_file(folder):
    arrays = {name: array for name, array in example_arrays().items() if name in ("position", "id")}
    wide = np.zeros((10, 4), np.float32)
    wide[::2, 1:] = arrays["position"]
    forms = [
        arrays,
        {"position": wide[::2, 1:], "id": arrays["id"][::-1][::-1]},
        {"position": arrays["position"].astype(np.float64), "id": arrays["id"].astype(np.int64)},
        {"position": np.asfortranarray(arrays["position"]), "id": arrays["id"].tolist()},
        {"position": arrays["position"].astype(">f4"), "id": arrays["id"].astype(np.uint8)},
    ]
    contents = set()
    for form in forms:
        barchan.write_frame(folder, 1, form)
        contents.add((folder / "frame_000001.sand").read_bytes())
    assert len(contents) == 1


def test_shapes_are_kept_but_one_column_is_none(folder):
    barchan.write_frame(folder, 1, {"flat": np.zeros(3), "column": np.zeros((3, 1)), "wide": np.zeros((3, 16))})
    arrays = barchan.read_frame(folder, 1)["arrays"]
    assert {name: array.shape for name, array in arrays.items()} == {"flat": (3,), "column": (3,), "wide": (3, 16)}


def test_no_grains_are_a_frame_too(folder):
    barchan.write_frame(folder, 1, {"position": np.zeros((0, 3), np.float32), "id": np.zeros(0, np.int32)})
    arrays = barchan.read_frame(folder, 1)["arrays"]
    assert arrays["position"].shape == (0, 3) and arrays["id"].shape == (0,)


def test_views_may_be_written_to_without_touching_each_other(folder):
    barchan.write_frame(folder, 1, example_arrays())
    arrays = barchan.read_frame(folder, 1)["arrays"]
    arrays["position"][:] = 9
    assert np.array_equal(arrays["rotation"], example_arrays()["rotation"])
    assert np.array_equal(barchan.read_frame(folder, 1)["arrays"]["position"], example_arrays()["position"])


@pytest.mark.parametrize(
    "arrays, kind, sentence",
    [
        ({}, ValueError, "0 arrays, expected 1 to 32"),
        ({"a%d" % i: [1.0] for i in range(33)}, ValueError, "found 33, expected 1 to 32"),
        (None, TypeError, "arrays: found NoneType, expected a dict"),
        ([("a", [1.0])], TypeError, "arrays: found list, expected a dict"),
        ({"a": None}, TypeError, "a: found NoneType, expected an array of float32 or int32"),
        ({"a": "text"}, TypeError, "a: found str"),
        ({"a": np.zeros(3, complex)}, TypeError, "a: found an array of complex128"),
        ({"a": np.zeros(3, bool)}, TypeError, "a: found an array of bool"),
        ({"a": 1.0}, ValueError, r"a: found shape \(\), expected \(N,\) or \(N, 1 to 16\)"),
        ({"a": np.zeros((3, 0))}, ValueError, r"a: found shape \(3, 0\)"),
        ({"a": np.zeros((3, 17))}, ValueError, r"a: found shape \(3, 17\)"),
        ({"a": np.zeros((3, 2, 2))}, ValueError, r"a: found shape \(3, 2, 2\)"),
        ({"a": np.zeros(3), "b": np.zeros((4, 3))}, ValueError, r"b: found shape \(4, 3\), expected \(3, 3\)"),
        ({"a": np.zeros(3), "b": np.zeros(2, np.int32)}, ValueError, r"b: found shape \(2,\), expected \(3,\)"),
        ({"a": np.array([1, 2**31])}, ValueError, "a: element 1 is 2147483648"),
        ({3: [1.0]}, TypeError, "found the name 3, expected a str"),
        ({"": [1.0]}, ValueError, "found the name ''"),
        ({"x" * 24: [1.0]}, ValueError, "found the name 'x{24}', expected 1 to 23"),
        ({"a\0b": [1.0]}, ValueError, "found the name"),
        ({"d\u00fcne": [1.0]}, ValueError, "array 0: the name"),
    ],
)
def test_arrays_that_break_a_rule_are_named_and_nothing_is_written(folder, arrays, kind, sentence):
    with pytest.raises(kind, match=sentence):
        barchan.write_frame(folder, 1, arrays)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    "name, value, kind, sentence",
    [
        ("frame", 2**31, ValueError, "frame is 2147483648, expected -2147483648 to 2147483647"),
        ("frame", 1.5, TypeError, "frame: found float, expected a whole number"),
        ("frame", None, TypeError, "frame: found NoneType"),
        ("seconds", float("nan"), ValueError, "nan s, expected a finite number"),
        ("seconds", "x", TypeError, "seconds: found str, expected a number"),
        ("settings_hash", -1, ValueError, "settings_hash is -1"),
        ("settings_hash", 2**64, ValueError, "settings_hash is 18446744073709551616"),
        ("state_hash", 0.5, TypeError, "state_hash: found float"),
        ("folder", 3.5, TypeError, "float"),
        ("folder", "", ValueError, "folder is empty"),
        ("folder", "a\0b", ValueError, "null"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_written(folder, name, value, kind, sentence):
    arguments = {"folder": folder, "frame": 1, "arrays": {"a": [1.0]}, name: value}
    with pytest.raises(kind, match=sentence):
        barchan.write_frame(**arguments)
    assert not list(folder.iterdir())


def test_frame_numbers_reach_over_all_of_int32(folder):
    numbers = [-(2**31), -1, 0, 1, 999999, 1000000, 2**31 - 1]
    for number in reversed(numbers):
        barchan.write_frame(folder, number, {"a": [1.0]})
    frames, byte_count = barchan.list_frames(folder)
    assert frames == numbers
    assert byte_count == sum(path.stat().st_size for path in folder.iterdir())
    for number in numbers:
        assert barchan.read_frame(folder, number)["frame"] == number


def test_a_missing_frame_is_a_cache_error_that_names_it(folder):
    for number in (5, -5):
        with pytest.raises(barchan.CacheError, match="Frame %d is not in the cache" % number):
            barchan.read_frame(folder, number)
    with pytest.raises(barchan.CacheError, match="Frame 5"):
        barchan.read_frame(folder / "missing", 5)


def test_a_damaged_frame_is_a_cache_error_and_stays_as_it_is(folder):
    barchan.write_frame(folder, 1, example_arrays())
    path = folder / "frame_000001.sand"
    whole = path.read_bytes()
    for damaged in (
        b"",
        whole[:100],
        whole[:-1],
        whole + b"\0",
        b"\x89PNG" + whole[4:],
        whole[:300] + b"\xff" + whole[301:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(barchan.CacheError, match="frame_000001.sand"):
            barchan.read_frame(folder, 1)
        assert path.read_bytes() == damaged
    path.write_bytes(whole)
    path.rename(folder / "frame_000002.sand")
    with pytest.raises(barchan.CacheError, match="holds frame 1, expected frame 2"):
        barchan.read_frame(folder, 2)


def test_refused_file_calls_are_os_errors_with_errno(tmp_path, folder):
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotADirectoryError) as caught:
        barchan.make_folder(tmp_path / "file" / "sub")
    assert caught.value.errno == errno.ENOTDIR
    assert str(tmp_path / "file") in str(caught.value)
    with pytest.raises(FileNotFoundError) as caught:
        barchan.write_frame(tmp_path / "missing", 1, {"a": [1.0]})
    assert caught.value.errno == errno.ENOENT
    assert str(tmp_path / "missing") in str(caught.value)
    with pytest.raises(NotADirectoryError):
        barchan.list_frames(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        barchan.free_frames(tmp_path / "file")
    (folder / "frame_000001.sand").mkdir()
    with pytest.raises(IsADirectoryError):
        barchan.read_frame(folder, 1)


@pytest.mark.parametrize(
    "os_error, kind",
    [(errno.ENOSPC, OSError), (errno.EIO, OSError), (errno.EACCES, PermissionError), (errno.EROFS, OSError)],
)
def test_every_refused_call_of_a_write_is_reported_and_the_old_frame_stays_whole(folder, os_error, kind):
    failures = 0
    for countdown in range(1, 30):  # more calls than one write makes
        barchan.write_frame(folder, 1, {"a": [1.0]})
        _core.fail_io_after(countdown, os_error)
        try:
            barchan.write_frame(folder, 1, {"a": [2.0]})
            expected = ([2.0],)
        except kind as error:
            failures += 1
            expected = ([1.0], [2.0])
            assert error.errno == os_error
            assert str(folder) in str(error)
        _core.fail_io_after(0, 0)
        assert barchan.read_frame(folder, 1)["arrays"]["a"].tolist() in expected
        assert [path.name for path in folder.iterdir()] == ["frame_000001.sand"]
    assert failures >= 12


def test_make_folder_is_repeatable_and_leaves_nothing(tmp_path):
    path = tmp_path / "a" / "b"
    for _ in range(2):
        assert barchan.make_folder(path) is None
        assert path.is_dir() and not list(path.iterdir())


def test_listing_a_missing_folder_finds_nothing(tmp_path):
    assert barchan.list_frames(tmp_path / "missing") == ([], 0)
    assert barchan.free_frames(tmp_path / "missing") == (0, 0)


def test_freeing_leaves_foreign_files_alone(folder):
    for number in (-1, 0, 1):
        barchan.write_frame(folder, number, {"a": [1.0]})
    size = (folder / "frame_000001.sand").stat().st_size
    (folder / "frame_000002.sand.tmp.12.34").write_text("half")
    foreign = ["scene.blend", "frame_1.sand", "frame_000001.sand.bak", "notes.sand", "notes.sand.tmp.1.2"]
    for name in foreign:
        (folder / name).write_text("mine")
    assert barchan.free_frames(folder) == (4, 3 * size + 4)
    assert sorted(path.name for path in folder.iterdir()) == sorted(foreign)
    for name in foreign:
        (folder / name).unlink()
    barchan.write_frame(folder, 1, {"a": [1.0]})
    assert barchan.free_frames(folder) == (1, size)
    assert not folder.exists()


@pytest.mark.parametrize("call", [barchan.make_folder, barchan.list_frames, barchan.free_frames])
def test_a_folder_must_be_a_path(call):
    for value in (None, 3.5, ["a"]):
        with pytest.raises(TypeError):
            call(value)
    with pytest.raises(ValueError, match="empty"):
        call("")
    with pytest.raises(ValueError, match="null"):
        call("a\0b")


def test_a_reader_reads_as_read_frame_does(folder):
    arrays = example_arrays(9000)
    barchan.write_frame(folder, 1, arrays)
    barchan.write_frame(folder, 2, {name: array[::-1].copy() for name, array in arrays.items()}, notes="hello")
    with barchan.Reader(threads=2) as reader:
        for frame in (1, 2, 1):
            found, expected = reader.read_frame(folder, frame, notes=True), barchan.read_frame(folder, frame, notes=True)
            assert {**found, "arrays": 0} == {**expected, "arrays": 0}
            assert all(found["arrays"][name].tobytes() == array.tobytes() for name, array in expected["arrays"].items())
        part = reader.read_frame(folder=folder, frame=2, names=["id"], every=4)["arrays"]
        assert list(part) == ["id"] and part["id"].tolist() == arrays["id"][::-1][::4].tolist()
        with pytest.raises(barchan.CacheError, match="Frame 3 is not in the cache"):
            reader.read_frame(folder, 3)


def test_a_reader_uses_memory_again_only_when_every_array_on_it_is_gone(folder):
    arrays = example_arrays(9000)
    barchan.write_frame(folder, 1, arrays)
    reader = barchan.Reader(threads=1)
    first = reader.read_frame(folder, 1)["arrays"]
    kept = first["mass"][5:9]
    address = first["position"].ctypes.data
    del first
    second = reader.read_frame(folder, 1)["arrays"]
    assert second["position"].ctypes.data != address
    assert kept.tobytes() == arrays["mass"][5:9].tobytes()
    del kept
    third = reader.read_frame(folder, 1)["arrays"]
    assert third["position"].ctypes.data == address


def test_a_closed_reader_leaves_its_arrays_good_and_nothing_behind(folder):
    barchan.write_frame(folder, 1, example_arrays(9000))
    held = _core.allocated_bytes()
    reader = barchan.Reader()
    arrays = reader.read_frame(folder, 1)["arrays"]
    reader.read_frame(folder, 1)
    reader.forget()
    reader.close()
    reader.close()
    for call in (reader.forget, lambda: reader.read_frame(folder, 1), reader.__enter__):
        with pytest.raises(ValueError, match="it is closed"):
            call()
    assert arrays["id"].sum() == 9000 * 8999 // 2
    del arrays, reader
    assert _core.allocated_bytes() == held
    with pytest.raises(ValueError):
        barchan.Reader(threads=-1)
