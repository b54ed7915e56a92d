"""The commands `python -m barchan verify` and `info`, and what a bake asks about a cache before it starts.

Comes in: a cache folder. Goes out: plain dicts, or one JSON object on standard output. Every check is the core's.
"""

import json
import os

import barchan


def add_commands(commands):
    verify_parser = commands.add_parser(
        "verify",
        help="read every frame and checkpoint of a cache folder; exit code 1 when one is damaged",
        description="Reads and checks every byte of every frame and checkpoint, and prints one JSON object.",
    )
    verify_parser.add_argument("folder", metavar="FOLDER")
    verify_parser.add_argument("--threads", type=int, default=0, metavar="N", help="0 = all")
    verify_parser.set_defaults(run=run_verify)
    info_parser = commands.add_parser(
        "info",
        help="say what a cache folder holds, from the frames' headers",
        description="Reads the headers of all frames, no more, and prints one JSON object.",
    )
    info_parser.add_argument("folder", metavar="FOLDER")
    info_parser.set_defaults(run=run_info)


def must_exist(folder):
    if not os.path.isdir(folder):
        raise barchan.CacheError(
            "There is no folder '%s': give the cache folder that the Barchan panel shows." % os.fsdecode(folder)
        )


def states(folder, settings_hash):
    """Every frame in the folder by its header alone: {number: (state, sentence)}. state: "fresh", "stale" (of other
    settings, still shown) or "damaged" (also of a newer version); the sentence says why, "" when fresh."""
    found = {}
    for frame in barchan.list_frames(folder)[0]:
        try:
            hash_of_frame = barchan.frame_info(folder, frame)["settings_hash"]
        except barchan.CacheError as error:
            found[frame] = ("damaged", str(error))
            continue
        if hash_of_frame == settings_hash:
            found[frame] = ("fresh", "")
        else:
            found[frame] = ("stale", "Frame %d was baked with other settings; bake it again to renew it" % frame)
    return found


def plan(folder, settings_hash, first, last, again=(), motion_hash=None, threads=0):
    """What to do for frames first to last to be there, with these settings: {"frames": numbers to bake, ascending,
    "checkpoint": dict of read_checkpoint to go on from, or None: from the first frame}. again: numbers to bake although
    they are there. motion_hash: Sim.motion_hash; None = nothing is moved. Frames are read in full: one that does not
    verify, or whose base does not, is baked again."""

    def is_moved_so(found):
        return found["motion_hash"] == (motion_hash(found["seconds"]) if motion_hash is not None else 0)

    def is_whole(frame):
        found = barchan.frame_info(folder, frame)
        if found["settings_hash"] != settings_hash or not is_moved_so(found):
            return False
        return barchan.read_frame(folder, frame, threads=threads, notes=True)["frame"] == frame

    again = set(again)
    frames = []
    for frame in range(first, last + 1):
        try:
            is_good = frame not in again and is_whole(frame)
        except barchan.CacheError:
            is_good = False
        if not is_good:
            frames.append(frame)
    checkpoint = None
    # The state of the first frame is the scene's own.
    last_before = frames[0] - 1 if frames else first
    while last_before > first and checkpoint is None:
        found = barchan.read_checkpoint(folder, settings_hash, last=last_before)
        if found["bytes"] is None or found["frame"] <= first:
            break
        checkpoint = found if is_moved_so(found) else None
        last_before = found["frame"] - 1
    return {"frames": frames, "checkpoint": checkpoint}


def verify(folder, threads=0):
    """Reads everything: a dict with is_good, the damaged frames with their sentences, and what is there."""
    must_exist(folder)
    frames, byte_count = barchan.list_frames(folder)
    damaged, settings = [], {}
    for frame in frames:
        try:
            found = barchan.read_frame(folder, frame, threads=threads, notes=True)
            settings.setdefault(found["settings_hash"], []).append(frame)
        except (barchan.CacheError, OSError) as error:
            damaged.append({"frame": frame, "error": sentence(error)})
    checkpoints = barchan.list_checkpoints(folder, verify=True)
    whole = [one for one in checkpoints if not one["error"]]
    errors = [one["error"] for one in checkpoints if one["error"]]
    return {
        "folder": os.fsdecode(folder),
        "is_good": not damaged and not errors,
        "frames": len(frames),
        "bytes": byte_count,
        "ranges": spans(frames),
        "damaged": damaged,
        "settings": {"%016x" % key: spans(numbers) for key, numbers in settings.items()},
        "checkpoint": max((one["frame"] for one in whole), default=None),
        "kept_checkpoints": sorted(one["frame"] for one in whole if one["is_kept"]),
        "checkpoint_bytes": sum(one["bytes"] for one in checkpoints),
        "checkpoint_errors": errors,
    }


def info(folder):
    """The same from headers alone, with what the frames hold."""
    must_exist(folder)
    frames, byte_count = barchan.list_frames(folder)
    damaged, kinds, settings = [], {}, {}
    grain_frames = 0
    array_bytes = {}
    for frame in frames:
        try:
            found = barchan.frame_info(folder, frame)
        except (barchan.CacheError, OSError) as error:
            damaged.append({"frame": frame, "error": sentence(error)})
            continue
        settings.setdefault(found["settings_hash"], []).append(frame)
        grain_frames += found["count"]
        for name, array in found["arrays"].items():
            array_bytes[name] = array_bytes.get(name, 0) + array["bytes"]
        arrays = {
            name: {key: array[key] for key in ("type", "components")}
            for name, array in found["arrays"].items()
        }
        kind = {
            "version": found["version"],
            "engine": found["engine"],
            "grains": found["count"],
            "tolerance": found["tolerance"],
            "arrays": arrays,
        }
        kinds.setdefault(json.dumps(kind), []).append(frame)
    return {
        "folder": os.fsdecode(folder),
        "frames": len(frames),
        "bytes": byte_count,
        "bytes_per_grain": round(byte_count / grain_frames, 3) if grain_frames else None,
        "array_bytes_per_grain": {name: round(count / grain_frames, 3) for name, count in array_bytes.items() if grain_frames},
        "ranges": spans(frames),
        "kinds": [{"frames": spans(numbers), **json.loads(kind)} for kind, numbers in kinds.items()],
        "settings": {"%016x" % key: spans(numbers) for key, numbers in settings.items()},
        "damaged": damaged,
        "checkpoints": [
            {key: one[key] for key in ("name", "frame", "is_kept", "bytes", "error")}
            for one in barchan.list_checkpoints(folder)
        ],
        "notes": first_notes(folder, frames),
    }


def first_notes(folder, frames):
    """What the bake says of its numbers, from the first frame that has notes: a dict, {} when none has."""
    for frame in frames:
        try:
            text = barchan.read_frame(folder, frame, names=["position"], every=1 << 30, notes=True)["notes"]
            found = json.loads(text) if text else None
        except (barchan.CacheError, OSError, ValueError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def spans(frames):
    """Ascending numbers as a list of [first, last]."""
    found = []
    for frame in frames:
        if found and frame == found[-1][1] + 1:
            found[-1][1] = frame
        else:
            found.append([frame, frame])
    return found


def sentence(error):
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def run_verify(arguments):
    report = verify(arguments.folder, arguments.threads)
    print(json.dumps(report, indent=1))
    return 0 if report["is_good"] else 1


def run_info(arguments):
    print(json.dumps(info(arguments.folder), indent=1))
    return 0
