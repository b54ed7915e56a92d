"""The add-on's bake without Blender: killed at any moment it goes on as if it had never stopped."""

import errno
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import barchan
import barchan.cache_command
import numpy as np
import pytest

ADDON = pathlib.Path(__file__).resolve().parents[2] / "addon"
LAST = 24

# addon/bake.py and what it imports, as a package without its __init__, which needs Blender.
BAKER = """
import json, sys, types
package = types.ModuleType("addon")
package.__path__ = [sys.argv[1]]
sys.modules["addon"] = package
import numpy as np
from addon import bake, job
folder, last = sys.argv[2], int(sys.argv[3])
options = json.loads(sys.argv[4])
corners = np.array([(i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)], np.float32)
quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
faces = np.array([row for a, b, c, d in quads for row in ((a, b, c), (a, c, d))], np.int32)
floor = np.array([(-2, -2, 0), (2, -2, 0), (2, 2, 0), (-2, 2, 0)], np.float32)
animated = ()
if options.get("job", {}).pop("is_animated", False):
    # A paddle that goes to and fro, read a little longer than it is baked; changed: from that frame on it goes otherwise.
    times = np.arange(last + 6) / 24
    changed = options["job"].pop("changed", 1000)
    way = np.where(np.arange(last + 6) < changed - 1, 0.1, 0.12) * np.sin(2 * np.pi * times / 0.4) + 0.7
    samples = np.concatenate((np.stack((way, way * 0, way * 0 + 0.3), axis=1), np.tile((1.0, 0, 0, 0), (len(way), 1))), axis=1)
    animated = (job.Collider("Paddle", corners * np.float32(0.2), faces, job.Track(1 / 24, samples)),)
if options.get("job", {}).pop("is_emitting", False):
    options["job"]["emitters"] = (job.Emitter("Tap", corners * np.float32(0.2) + np.float32((1.2, 1.2, 0.6)), faces,
                                              rate=200.0, end=0.3),)
the_job = job.Job(
    sand=(job.Source("Block", corners * np.float32(0.3) + np.float32(0.05), faces),),
    colliders=(job.Collider("Floor", floor, np.array([(0, 1, 2), (0, 2, 3)], np.int32)), *animated),
    bodies=(job.Body("Crate", corners * np.float32(0.2), faces, np.array((0.8, 0.0, 0.1)), np.array((1.0, 0, 0, 0))),),
    folder=folder, frame_start=1, frame_end=last, frame_seconds=1 / 24, threads=1, sleep_speed=0.01,
    **{"engine": "CPU", "checkpoint_interval": 4, **options.pop("job", {})},
)
if options.pop("is_estimate_off", False):
    bake.Bake._check_room = lambda *_: None
options_seam = options.pop("seam", [])
bake.engine.core.slow_io = sys.modules["barchan._core"].slow_io
bake.engine.core.fail_io_after = sys.modules["barchan._core"].fail_io_after
run = bake.Bake(the_job, **options)
seen = [-1]
seam = options_seam  # what happens to the disk when so many frames are done: (frames, kind, value)
def tell(progress):
    if seam and progress.frames_done >= seam[0] and progress.state == "BAKING":
        kind, value = seam[1:3]
        seam.clear()
        if kind == "remove":
            import os
            os.rename(folder, folder + " taken away")  # at once: files that are removed one by one race with the writer
        elif kind == "slow":
            bake.engine.core.slow_io(value)
        else:
            bake.engine.core.fail_io_after(1, value)
    if progress.frames_done != seen[0]:
        seen[0] = progress.frames_done
        print(progress.frames_done, flush=True)
run.run(tell)
print(json.dumps({"state": run.progress.state, "error": run.error, "warnings": run.warnings, "baked": run.baked_count,
                  "frame": run.progress.frame, "done": run.progress.frames_done}), flush=True)
"""


def start(folder, last=LAST, **options):
    command = [sys.executable, "-c", BAKER, str(ADDON), str(folder), str(last), json.dumps(options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(folder, last=LAST, **options):
    process = start(folder, last, **options)
    output, errors = process.communicate()
    assert process.returncode == 0 and errors == "", errors
    return json.loads(output.splitlines()[-1])


def contents(folder):
    """Bytes of frames and loads. The statistics tell the wall clock, which is another one in every run."""
    paths = [path for path in pathlib.Path(folder).iterdir() if path.name == "loads.csv" or path.match("frame_*.sand")]
    return {path.name: path.read_bytes() for path in paths}


def test_a_killed_bake_is_resumed_to_the_bit(tmp_path):
    """BARCHAN_KILLS sets how many kills (`setup.py test --all` makes it 200), BARCHAN_SEED when they come."""
    assert finish(tmp_path / "whole")["state"] == "DONE"
    expected = contents(tmp_path / "whole")
    assert len(expected) == LAST + 1
    kills, seed = int(os.environ.get("BARCHAN_KILLS", "5")), int(os.environ.get("BARCHAN_SEED", str(time.time_ns())))
    print("seed", seed)
    moments = random.Random(seed)
    round_count = 0
    while kills > 0:
        folder = tmp_path / f"round{round_count}"
        round_count += 1
        is_done = False
        while not is_done and kills > 0:
            process = start(folder, resume=True)
            for _ in range(moments.randrange(0, 8)):
                if not process.stdout.readline():
                    break
            time.sleep(moments.random() * 0.03)
            is_done = process.poll() is not None
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills -= not is_done
            found = contents(folder) if folder.is_dir() else {}
            torn = [name for name in found if name != "loads.csv" and found[name] != expected[name]]
            assert torn == []
        result = finish(folder, resume=True)
        assert (result["state"], result["done"]) == ("DONE", LAST), result
        assert contents(folder) == expected
        assert [path.name for path in folder.iterdir() if path.name == "lock.sand"] == []
        barchan.free_frames(folder)
    print(round_count, "bakes")


def test_a_finished_bake_is_extended_and_damage_is_mended(tmp_path):
    finish(tmp_path / "whole")
    expected = contents(tmp_path / "whole")
    folder = tmp_path / "cache"
    assert finish(folder, 15)["baked"] == 15
    result = finish(folder, resume=True)
    assert result["baked"] == LAST - 15 and contents(folder) == expected
    # Nothing is missing: nothing is done.
    assert finish(folder, resume=True)["baked"] == 0
    # A torn frame, a lost one, and a line of loads that a crash cut off.
    (folder / "frame_000006.sand").write_bytes(expected["frame_000006.sand"][:99])
    (folder / "frame_000019.sand").unlink()
    (folder / "loads.csv").write_bytes(expected["loads.csv"][:-7])
    assert finish(folder, resume=True)["baked"] == 3
    assert contents(folder) == expected
    # From a frame on: those are baked again and nothing is doubled.
    assert finish(folder, resume=True, resume_frame=21)["baked"] == LAST - 20
    assert contents(folder) == expected


def test_frames_say_what_every_element_is_by_name(tmp_path):
    folder = tmp_path / "cache"
    assert finish(folder, 12, job={"is_emitting": True})["state"] == "DONE"
    for number in (1, 10, 12):
        frame = barchan.read_frame(folder, number, notes=True)
        arrays, notes = frame["arrays"], json.loads(frame["notes"])
        count = len(arrays["position"])
        assert set(arrays) == set("position rotation velocity spin radius shape material source id age flags".split())
        names = [notes["sources"][k] for k in arrays["source"]]
        assert names[0] == "Crate" and names[1] == "Block" and names[-1] == "Tap" and set(names) == {"Crate", "Block", "Tap"}
        shapes = [notes["shapes"][k] for k in arrays["shape"]]
        assert shapes[0]["name"] == "Crate" and shapes[1]["name"].lower() == shapes[-1]["name"].lower() == "tetrahedron"
        assert shapes[1]["sphere_count"] == 4 and len(shapes[1]["centres"]) == 4
        assert notes["materials"][arrays["material"][1]]["name"] == "Sand"
        assert notes["materials"][arrays["material"][0]]["density"] == 2600.0
        assert (arrays["radius"][1:] == np.float32(0.02)).all() and arrays["radius"][0] > 0
        assert arrays["id"].tolist() == list(range(count))
        given = arrays["source"] != notes["sources"].index("Tap")
        births = frame["seconds"] - arrays["age"]
        assert abs(births[given]).max() <= 5.1e-4  # s, as coarse as ages are kept
        due = np.arange((~given).sum()) / 200.0
        born = due <= frame["seconds"]
        assert abs(births[~given][born] - due[born]).max() <= 5.1e-4
        assert (arrays["age"][~given][~born] == 0).all()
        assert (((arrays["flags"] & 8) != 0)[given] == False).all()  # noqa: E712
    # What does not change costs nothing but its line in the table.
    whole, later = (barchan.frame_info(folder, number)["arrays"] for number in (10, 12))
    for name in ("shape", "material", "source", "id", "radius"):
        assert later[name]["encoding"] in ("same", "one") and later[name]["bytes"] <= 4, (name, later[name])
    assert whole["flags"]["bytes"] < count  # less than a byte each


def test_kept_checkpoints_are_where_a_bake_from_an_earlier_frame_starts(tmp_path):
    folder, keep = tmp_path / "cache", {"keep_interval": 5}
    finish(folder, job=keep)
    expected = contents(folder)
    found = barchan.list_checkpoints(folder, verify=True)
    assert [one["frame"] for one in found if one["is_kept"]] == [6, 11, 16, 21]
    assert [one["error"] for one in found] == [""] * 6
    report = barchan.cache_command.verify(folder)
    assert report["is_good"] and report["kept_checkpoints"] == [6, 11, 16, 21]
    # From frame 13 on, without the two that take turns: from the one kept of frame 11.
    (folder / "checkpoint_a.sand").unlink()
    (folder / "checkpoint_b.sand").unlink()
    settings_hash = barchan.frame_info(folder, 1)["settings_hash"]
    plan = barchan.cache_command.plan(folder, settings_hash, 1, LAST, range(13, LAST + 1))
    assert plan["checkpoint"]["frame"] == 11
    assert finish(folder, resume=True, resume_frame=13, job=keep)["baked"] == LAST - 12
    assert contents(folder) == expected
    # A range baked again in the middle, from the checkpoint before it: the frames around it stay.
    for number in (8, 9):
        (folder / f"frame_{number:06d}.sand").unlink()
    assert finish(folder, resume=True, job=keep)["baked"] == 2
    assert contents(folder) == expected
    # A damaged one is passed over and named by verify.
    (folder / "checkpoint_000021.sand").write_bytes(b"torn")
    report = barchan.cache_command.verify(folder)
    assert not report["is_good"] and "checkpoint_000021.sand" in report["checkpoint_errors"][0]
    # They give way to frames when the limit is near.
    size = sum(path.stat().st_size for path in folder.glob("frame_*.sand"))
    checkpoint = (folder / "checkpoint_000016.sand").stat().st_size
    tight = tmp_path / "tight"
    result = finish(tight, job={**keep, "byte_limit": size + 3 * checkpoint + checkpoint // 2}, is_estimate_off=True)
    assert result["state"] == "DONE", result
    assert {name: data for name, data in contents(tight).items()} == expected
    kept = [one["frame"] for one in barchan.list_checkpoints(tight) if one["is_kept"]]
    assert len(kept) < 4, kept


def test_a_bake_with_animation_is_extended_and_a_changed_past_is_told(tmp_path):
    job = {"is_animated": True, "keep_interval": 5}
    assert finish(tmp_path / "whole", job=job)["state"] == "DONE"
    expected = contents(tmp_path / "whole")
    folder = tmp_path / "cache"
    assert finish(folder, 13, job=job)["baked"] == 13
    result = finish(folder, resume=True, job=job)
    assert (result["state"], result["baked"]) == ("DONE", LAST - 13), result
    assert contents(folder) == expected
    # From frame 18 on it moves otherwise: refused by name, then baked again from there, or from the change on.
    changed = {**job, "changed": 18}
    result = finish(folder, resume=True, job=changed)
    assert result["state"] == "FAILED" and "another animation" in result["error"], result
    assert contents(folder) == expected
    first = int(result["error"].split()[1])
    assert first in (17, 18), result  # a little ahead of the change
    result = finish(folder, resume=True, resume_frame=first + 1, job=changed)
    assert result["state"] == "FAILED", result
    result = finish(folder, resume=True, resume_frame=first, job=changed)
    assert (result["state"], result["baked"]) == ("DONE", LAST + 1 - first), result
    finish(tmp_path / "other", job=changed)
    other = contents(tmp_path / "other")
    frames = {name for name in other if name.startswith("frame_")}
    states = [barchan.frame_info(tmp_path / "other", n)["state_hash"] for n in range(1, LAST + 1)]
    assert [barchan.frame_info(folder, n)["state_hash"] for n in range(1, LAST + 1)] == states
    assert frames == {name for name in contents(folder) if name.startswith("frame_")}
    assert other["frame_000024.sand"] != expected["frame_000024.sand"]


def test_other_settings_or_times_are_refused_and_frames_stay(tmp_path):
    folder = tmp_path / "cache"
    finish(folder, 5)
    before = contents(folder)
    result = finish(folder, 8, resume=True, job={"friction": 0.9})
    assert result["state"] == "FAILED" and "baked with other settings" in result["error"], result
    result = finish(folder, 8, resume=True, job={"seed": 5})
    assert "baked with other settings" in result["error"], result
    assert contents(folder) == before
    assert finish(folder, 8, resume=True, job={"is_exact": True})["state"] == "DONE"  # as the frames that are there
    assert barchan.frame_info(folder, 8)["tolerance"] == barchan.frame_info(folder, 1)["tolerance"] > 0


def test_the_limit_refuses_before_the_start_and_stops_in_between(tmp_path):
    folder = tmp_path / "cache"
    result = finish(folder, job={"byte_limit": 20000})
    assert result["state"] == "FAILED" and "limit of 20.0 kB" in result["error"] and "needs about" in result["error"]
    assert not folder.exists()
    # An estimate that was too low: the writer counts, and what fits stays whole and can be gone on from.
    assert finish(tmp_path / "whole")["state"] == "DONE"
    expected = contents(tmp_path / "whole")
    checkpoint = (tmp_path / "whole" / "checkpoint_a.sand").stat().st_size
    frame_bytes = sum(len(expected[name]) for name in expected if name.startswith("frame_"))
    limit = frame_bytes // 2 + 2 * checkpoint
    result = finish(folder, job={"byte_limit": limit}, is_estimate_off=True)
    print(frame_bytes, checkpoint, limit, result)
    assert result["state"] == "FAILED" and "limit" in result["error"] and 0 < result["done"] < LAST, result
    found = contents(folder)
    assert sorted(found) == [f"frame_{n:06d}.sand" for n in range(1, result["frame"] + 1)] + ["loads.csv"]
    assert all(found[name] == expected[name] for name in found if name != "loads.csv")
    assert finish(folder, resume=True)["state"] == "DONE"
    assert contents(folder) == expected


def test_a_disk_that_fills_up_turns_read_only_or_goes_away_is_one_sentence_and_frames_stay(tmp_path):
    assert finish(tmp_path / "whole")["state"] == "DONE"
    expected = contents(tmp_path / "whole")
    for kind, value, words in (
        ("full", errno.ENOSPC, "free some room"),
        ("read-only", errno.EROFS, "ead-only"),
        ("broken", errno.EIO, "frame_0000"),
    ):
        folder = tmp_path / kind
        result = finish(folder, seam=[6, kind, value])
        assert result["state"] == "FAILED" and words in result["error"], result
        assert 6 <= result["done"] < LAST
        found = contents(folder)
        assert all(found[name] == expected[name] for name in found if name.startswith("frame_"))
        # Without a gap; the writer may have finished one more than had been counted when the disk failed.
        names = [name for name in sorted(found) if name.startswith("frame_")]
        assert names == [f"frame_{n:06d}.sand" for n in range(1, len(names) + 1)] and len(names) >= result["done"], names
        left = [path.name for path in folder.iterdir() if ".tmp" in path.name or path.name == "lock.sand"]
        assert left == [], left
        assert finish(folder, resume=True)["state"] == "DONE"
        assert contents(folder) == expected
    result = finish(tmp_path / "gone", seam=[6, "remove", 0])
    assert result["state"] == "FAILED" and str(tmp_path / "gone") in result["error"], result


def test_a_slow_disk_delays_the_bake_and_changes_nothing(tmp_path):
    assert finish(tmp_path / "whole", 12)["state"] == "DONE"
    result = finish(tmp_path / "slow", 12, seam=[2, "slow", 0.004])
    assert result["state"] == "DONE", result
    assert contents(tmp_path / "slow") == contents(tmp_path / "whole")


def test_a_second_baker_is_refused(tmp_path):
    folder = tmp_path / "cache"
    finish(folder, 3)
    before = contents(folder)
    with barchan.Lock(folder):
        result = finish(folder, 3)
    assert result["state"] == "FAILED" and str(os.getpid()) in result["error"], result
    assert contents(folder) == before


@pytest.mark.skipif(
    not any(device["is_usable"] and device["is_software"] for device in barchan.devices()),
    reason="no software GL device on this machine",
)
def test_a_graphics_device_bakes_the_same_frames(tmp_path):
    # It begins every frame before the last is written; a bake that ends early leaves one under way.
    cpu, gl = tmp_path / "cpu", tmp_path / "gl"
    assert finish(cpu, 4)["state"] == "DONE"
    assert finish(gl, 3, job={"engine": "GPU"})["state"] == "DONE"
    assert finish(gl, 4, job={"engine": "GPU"}, resume=True)["state"] == "DONE"
    hashes = [[barchan.frame_info(folder, frame)["state_hash"] for frame in (1, 2, 3, 4)] for folder in (cpu, gl)]
    assert hashes[0] == hashes[1] and len(set(hashes[0])) == 4
