"""Writer, Lock, checkpoints, plan, verify and info: a bake that is stopped in every way goes on as if it never was."""

import errno
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import barchan
import numpy as np
import pytest
from barchan import _core, cache_command
from conftest import growth, make_scene

# A bake as an add-on does it, in a process that can be killed: lock, plan, checkpoint, frames, checkpoints.
BAKER = """
import sys, barchan
from barchan import cache_command
sys.path.insert(0, sys.argv[1])
from conftest import make_scene
folder, last = sys.argv[2], int(sys.argv[3])
scene = make_scene(sleep_speed=0.02)
barchan.make_folder(folder)
with barchan.Lock(folder):
    plan = cache_command.plan(folder, scene.hash, 1, last, threads=1)
    sim, frame = barchan.Sim(scene, threads=1), 1
    if plan["checkpoint"]:
        sim.load(plan["checkpoint"]["bytes"])
        frame = plan["checkpoint"]["frame"]
    wanted = set(plan["frames"])
    with barchan.Writer(folder, tolerance=2e-4, exact_count=1, engine="cpu", threads=1) as writer:
        while wanted:
            tags = {"seconds": sim.info()["time"], "settings_hash": scene.hash, "state_hash": sim.hash()}
            if frame in wanted:
                arrays = {"position": sim.positions(), "rotation": sim.orientations(), "velocity": sim.velocities()}
                writer.push(frame, arrays, **tags)
                wanted.discard(frame)
                print(frame, flush=True)
            if frame % 4 == 0:
                writer.push_checkpoint(frame, sim.save(), **tags)
            if wanted:
                sim.advance(1 / 24)
                frame += 1
"""
LAST = 30


def bake(folder, last=LAST):
    command = [sys.executable, "-c", BAKER, str(pathlib.Path(__file__).parent), str(folder), str(last)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(folder, last=LAST):
    process = bake(folder, last)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return [int(line) for line in output.split()]


def files(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir() if path.name.startswith("frame_")}


@pytest.fixture(scope="module")
def whole_bake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    assert finish(folder) == list(range(1, LAST + 1))
    return folder


def example(count=50, offset=0.0):
    positions = np.random.default_rng(1).random((count, 3), np.float32) + np.float32(offset)
    return {"position": positions, "id": np.arange(count, dtype=np.int32)}


def test_a_killed_bake_goes_on_as_if_it_never_stopped(whole_bake, tmp_path):
    """BARCHAN_KILLS sets how many kills, 200 before a release; each bake is killed again and again until it is done."""
    expected = files(whole_bake)
    kills, rounds = int(os.environ.get("BARCHAN_KILLS", "12")), 0
    seed = int(os.environ.get("BARCHAN_SEED", "1"))
    print("seed", seed)
    moments = random.Random(seed)
    while kills > 0:
        folder = tmp_path / ("round%d" % rounds)
        rounds += 1
        is_done = False
        while not is_done and kills > 0:
            process = bake(folder)
            wanted = moments.randrange(0, 12)  # frames to see before the blow
            for _ in range(wanted):
                if not process.stdout.readline():
                    break
            time.sleep(moments.random() * 0.02)
            is_done = process.poll() is not None
            process.kill()
            process.communicate()
            kills -= not is_done
            if folder.is_dir():
                found = files(folder)
                torn = [name for name in found if "tmp" not in name and found[name] != expected[name]]
                assert not torn, torn
        finish(folder)
        found = files(folder)
        left = [name for name in found if ".tmp." in name]
        assert {name: data for name, data in found.items() if name not in left} == expected
        report = cache_command.verify(folder)
        assert report["is_good"] and report["frames"] == LAST and report["checkpoint"] == 28
        barchan.free_frames(folder)
        assert not folder.exists()


def test_a_finished_bake_is_extended_and_damage_is_baked_again(whole_bake, tmp_path):
    folder = tmp_path / "cache"
    assert finish(folder, 22) == list(range(1, 23))
    assert finish(folder) == list(range(23, LAST + 1))
    expected = files(whole_bake)
    assert files(folder) == expected
    assert finish(folder) == []
    # A torn frame, a flipped bit in a frame that others refer to, a lost one: those and only those, bit for bit.
    (folder / "frame_000005.sand").write_bytes(expected["frame_000005.sand"][:100])
    flipped = bytearray(expected["frame_000020.sand"])
    flipped[len(flipped) // 2] ^= 1
    (folder / "frame_000020.sand").write_bytes(flipped)
    os.unlink(folder / "frame_000027.sand")
    report = cache_command.verify(folder)
    assert not report["is_good"]
    damaged = [row["frame"] for row in report["damaged"]]
    dependants = [n for n in range(21, 30) if n != 27 and barchan.frame_info(folder, n)["base"] == 20]
    assert damaged == [5, 20, *dependants]
    assert all("frame_0000" in row["error"] for row in report["damaged"])
    baked = finish(folder)
    assert baked[0] == 5 and set(baked) == {5, 20, 27, *dependants}
    assert files(folder) == expected


def test_other_settings_make_frames_stale_not_gone(whole_bake):
    hash_now = barchan.frame_info(whole_bake, 1)["settings_hash"]
    assert set(cache_command.states(whole_bake, hash_now).values()) == {("fresh", "")}
    found = cache_command.states(whole_bake, hash_now + 1)
    assert len(found) == LAST and {state for state, _ in found.values()} == {"stale"}
    assert "other settings" in found[3][1]
    assert barchan.read_frame(whole_bake, 3)["frame"] == 3
    plan = cache_command.plan(whole_bake, hash_now + 1, 1, LAST)
    assert plan == {"frames": list(range(1, LAST + 1)), "checkpoint": None}


def test_a_range_is_baked_again_from_the_checkpoint_before_it(whole_bake):
    hash_now = barchan.frame_info(whole_bake, 1)["settings_hash"]
    plan = cache_command.plan(whole_bake, hash_now, 1, LAST, again=range(26, 28))
    assert plan["frames"] == [26, 27] and plan["checkpoint"]["frame"] == 24
    plan = cache_command.plan(whole_bake, hash_now, 1, LAST, again=[10])  # older than both checkpoints
    assert plan == {"frames": [10], "checkpoint": None}


def test_verify_and_info_print_json_and_an_exit_code(whole_bake, tmp_path, capsys):
    def run(*arguments):
        command = [sys.executable, "-m", "barchan", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    code, output, _ = run("verify", whole_bake)
    report = json.loads(output)
    assert code == 0 and report["is_good"] and report["ranges"] == [[1, LAST]] and len(report["settings"]) == 1
    code, output, _ = run("info", whole_bake)
    report = json.loads(output)
    assert code == 0 and report["frames"] == LAST and report["damaged"] == []
    assert report["kinds"][0]["engine"] == "cpu" and report["kinds"][0]["grains"] == 27
    assert report["kinds"][0]["arrays"]["rotation"] == {"type": "float32", "components": 4}
    assert 0 < report["array_bytes_per_grain"]["rotation"] < report["bytes_per_grain"]
    assert [row["error"] for row in report["checkpoints"]] == ["", ""] and report["notes"] == {}
    folder = tmp_path / "cache"
    barchan.make_folder(folder)
    barchan.write_frame(folder, 1, {"a": [1.0]})
    data = bytearray((folder / "frame_000001.sand").read_bytes())
    data[8] = 4
    (folder / "frame_000002.sand").write_bytes(data)
    code, output, _ = run("verify", folder)
    report = json.loads(output)
    assert code == 1 and [row["frame"] for row in report["damaged"]] == [2]
    assert "format version 4, this Barchan reads versions 1 to 3" in report["damaged"][0]["error"]
    assert json.loads(run("info", folder)[1])["damaged"][0]["frame"] == 2
    code, output, errors = run("verify", tmp_path / "missing")
    assert code == 1 and output == "" and "There is no folder" in errors


def test_positions_alone_and_every_kth_grain(folder):
    arrays = example(10000)
    barchan.write_frame(folder, 1, arrays, tolerance=1e-4, exact_count=5)
    whole = barchan.read_frame(folder, 1)
    assert whole["tolerance"] == 1e-4 and whole["exact_count"] == 5
    distance = np.linalg.norm(whole["arrays"]["position"].astype(float) - arrays["position"], axis=1)
    assert 0 < distance.max() <= 1e-4 and distance[:5].max() == 0
    assert np.array_equal(whole["arrays"]["id"], arrays["id"])
    for every in (1, 2, 5, 64, 100, 20000):
        part = barchan.read_frame(folder, 1, names=["position"], every=every, threads=2)
        assert list(part["arrays"]) == ["position"] and part["count"] == 10000
        assert np.array_equal(part["arrays"]["position"], whole["arrays"]["position"][::every])
    with pytest.raises(ValueError, match="has no array 'radius'"):
        barchan.read_frame(folder, 1, names=["radius"])
    for names in ("position", 3, [3]):
        with pytest.raises(TypeError, match="expected a list of str"):
            barchan.read_frame(folder, 1, names=names)
    with pytest.raises(ValueError, match="names: found 0"):
        barchan.read_frame(folder, 1, names=[])
    with pytest.raises(ValueError, match="every is 0"):
        barchan.read_frame(folder, 1, every=0)
    info = barchan.frame_info(folder, 1)
    assert info["arrays"]["position"]["encoding"] == "grid" and 0 < info["arrays"]["position"]["error"] <= 1e-4
    assert barchan.measure_frame(arrays, tolerance=1e-4, exact_count=5) == info["bytes"]


def test_a_writer_reports_a_full_disk_once_and_for_all(folder):
    with pytest.raises(OSError) as caught:
        with barchan.Writer(folder, threads=1) as writer:
            writer.push(1, example())
            writer.flush()
            _core.fail_io_after(1, errno.ENOSPC)
            for frame in range(2, 100):
                writer.push(frame, example())
            pytest.fail("no push told of it")
    assert caught.value.errno == errno.ENOSPC and "free some room" in str(caught.value)
    assert barchan.list_frames(folder)[0] == [1]
    with pytest.raises(ValueError, match="closed"):
        writer.push(1, example())
    writer.close()


def test_a_writer_in_a_folder_that_is_gone_or_not_ours_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="check that the folder exists"):
        with barchan.Writer(tmp_path / "missing") as writer:
            writer.push(1, example())
    if os.geteuid() != 0:  # root may write anywhere
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        with pytest.raises(PermissionError, match="choose a folder you may write to"):
            with barchan.Writer(locked) as writer:
                writer.push(1, example())


def test_a_writer_keeps_to_the_limit(folder):
    with pytest.raises(barchan.CacheError, match="raise the limit"):
        with barchan.Writer(folder, byte_limit=5000) as writer:
            for frame in range(1, 100):
                writer.push(frame, example(offset=frame))
    assert 0 < barchan.list_frames(folder)[1] <= 5000


def test_an_exception_in_the_block_wins_and_the_writer_is_closed(folder):
    with pytest.raises(KeyError):
        with barchan.Writer(folder) as writer:
            writer.push(1, example())
            raise KeyError("mine")
    with pytest.raises(ValueError, match="closed"):
        writer.info()


def test_pushing_overlaps_with_other_work(folder):
    with barchan.Writer(folder, queue=3) as writer:
        for frame in range(10):
            writer.push(frame, example(1000, frame))
        writer.flush()
        info = writer.info()
    assert info["frame_count"] == 10 and info["queue_count"] == 0 and info["last_frame"] == 9
    assert info["byte_count"] == barchan.list_frames(folder)[1] and info["write_seconds"] > 0


@pytest.mark.parametrize(
    "arguments, kind",
    [
        ({"key_interval": 64}, ValueError),
        ({"queue": -1}, ValueError),
        ({"engine": "x" * 64}, ValueError),
        ({"engine": 3}, TypeError),
        ({"tolerance": "x"}, TypeError),
        ({"byte_limit": -1}, ValueError),
    ],
)
def test_bad_arguments_of_a_writer_are_refused(folder, arguments, kind):
    with pytest.raises(kind):
        barchan.Writer(folder, **arguments)


def test_a_second_process_is_told_who_bakes(folder):
    with barchan.Lock(folder) as lock:
        assert lock.note == ""
        code = "import barchan, sys\ntry: barchan.Lock(sys.argv[1])\nexcept barchan.CacheError as error: print(error)"
        done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
        assert "in use by process %d" % os.getpid() in done.stdout
        with pytest.raises(barchan.CacheError, match="this very Blender"):
            barchan.Lock(folder)
        # Playback goes on meanwhile.
        barchan.write_frame(folder, 1, example())
        assert barchan.read_frame(folder, 1)["frame"] == 1
    assert not (folder / "lock.sand").exists()
    lock.release()
    barchan.Lock(folder).release()


def test_the_lock_of_a_killed_process_is_taken_over(folder):
    code = "import barchan, sys, time\nlock = barchan.Lock(sys.argv[1])\nprint('held', flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(barchan.CacheError, match="in use by process %d" % process.pid):
            barchan.Lock(folder)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with barchan.Lock(folder) as lock:
        assert "Process %d" % process.pid in lock.note and "taken over" in lock.note


def test_a_closing_thread_is_refused_while_another_pushes(folder):
    writer = barchan.Writer(folder, queue=1)
    arrays = example(300000)
    refused = []

    def push():
        for frame in range(6):
            writer.push(frame, arrays)

    thread = threading.Thread(target=push)
    thread.start()
    while thread.is_alive() and not refused:
        try:
            if writer.info()["queue_count"] >= 1 and thread.is_alive():
                writer.close()
                break
        except RuntimeError as error:
            refused.append(str(error))
    if refused:  # the usual case: a push was waiting
        assert refused == ["another thread uses it"]
    thread.join()
    writer.close()


def test_writers_locks_and_checkpoints_leave_nothing(folder):
    arrays = example()

    def action():
        with barchan.Lock(folder), barchan.Writer(folder) as writer:
            writer.push(10, arrays)
            writer.push(11, arrays)
            writer.push_checkpoint(11, b"state")
        barchan.read_checkpoint(folder)
        barchan.read_frame(folder, 11, names=["id"], every=2)
        barchan.frame_info(folder, 11)
        with pytest.raises(TypeError):
            barchan.read_frame(folder, 11, names=[1])

    blocks, core_bytes = growth(action, 20)
    assert core_bytes == 0 and blocks < 20


def test_a_checkpoint_goes_on_to_the_bit(folder):
    scene = make_scene()
    one = barchan.Sim(scene, threads=1)
    one.advance(0.1)
    with barchan.Writer(folder) as writer:
        writer.push_checkpoint(7, one.save(), seconds=0.1, settings_hash=scene.hash, state_hash=one.hash())
    found = barchan.read_checkpoint(folder, scene.hash)
    assert found["frame"] == 7 and found["seconds"] == 0.1 and found["note"] == "" and found["state_hash"] == one.hash()
    other = barchan.Sim(scene, threads=1)
    other.load(found["bytes"])
    one.advance(0.1)
    other.advance(0.1)
    assert one.hash() == other.hash()
    assert barchan.read_checkpoint(folder, scene.hash + 1)["bytes"] is None
    assert barchan.read_checkpoint(folder, last=6)["bytes"] is None


def test_freeing_a_range_keeps_the_rest_whole(whole_bake, tmp_path):
    folder = tmp_path / "cache"
    barchan.make_folder(folder)
    for name, data in files(whole_bake).items():
        (folder / name).write_bytes(data)
    before = {n: barchan.read_frame(folder, n)["arrays"]["position"].copy() for n in range(21, 31)}
    count, size = barchan.free_frames(folder, 5, 20)
    assert count == 16 and size > 0
    assert barchan.list_frames(folder)[0] == [1, 2, 3, 4, *range(21, 31)]
    for n, positions in before.items():
        assert np.array_equal(barchan.read_frame(folder, n)["arrays"]["position"], positions)
