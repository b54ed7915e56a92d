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


def plan(folder, settings_hash, first, last, again=(), threads=0):
    """What to do for frames first to last to be there, with these settings: {"frames": numbers to bake, ascending,
    "checkpoint": dict of read_checkpoint to go on from, or None: from the first frame}. again: numbers to bake although
    they are there. Frames are read in full: one that does not verify, or whose base does not, is baked again."""
    again = set(again)
    frames = []
    for frame in range(first, last + 1):
        try:
            is_good = frame not in again and (
                barchan.frame_info(folder, frame)["settings_hash"] == settings_hash
                and barchan.read_frame(folder, frame, threads=threads)["frame"] == frame
            )
        except barchan.CacheError:
            is_good = False
        if not is_good:
            frames.append(frame)
    checkpoint = None
    # The state of the first frame is the scene's own.
    if frames and frames[0] > first:
        found = barchan.read_checkpoint(folder, settings_hash, last=frames[0] - 1)
        checkpoint = found if found["bytes"] is not None and found["frame"] > first else None
    return {"frames": frames, "checkpoint": checkpoint}


def verify(folder, threads=0):
    """Reads everything: a dict with is_good, the damaged frames with their sentences, and what is there."""
    must_exist(folder)
    frames, byte_count = barchan.list_frames(folder)
    damaged, settings = [], {}
    for frame in frames:
        try:
            found = barchan.read_frame(folder, frame, threads=threads)
            settings.setdefault(found["settings_hash"], []).append(frame)
        except (barchan.CacheError, OSError) as error:
            damaged.append({"frame": frame, "error": sentence(error)})
    checkpoint = barchan.read_checkpoint(folder)
    return {
        "folder": os.fsdecode(folder),
        "is_good": not damaged and not checkpoint["note"],
        "frames": len(frames),
        "bytes": byte_count,
        "ranges": spans(frames),
        "damaged": damaged,
        "settings": {"%016x" % key: spans(numbers) for key, numbers in settings.items()},
        "checkpoint": checkpoint["frame"] if checkpoint["bytes"] is not None else None,
        "checkpoint_error": checkpoint["note"],
    }


def info(folder):
    """The same from headers alone, with what the frames hold."""
    must_exist(folder)
    frames, byte_count = barchan.list_frames(folder)
    damaged, kinds, settings = [], {}, {}
    grain_frames = 0
    for frame in frames:
        try:
            found = barchan.frame_info(folder, frame)
        except (barchan.CacheError, OSError) as error:
            damaged.append({"frame": frame, "error": sentence(error)})
            continue
        settings.setdefault(found["settings_hash"], []).append(frame)
        grain_frames += found["count"]
        arrays = {
            name: {key: array[key] for key in ("type", "components", "encoding")}
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
        "ranges": spans(frames),
        "kinds": [{"frames": spans(numbers), **json.loads(kind)} for kind, numbers in kinds.items()],
        "settings": {"%016x" % key: spans(numbers) for key, numbers in settings.items()},
        "damaged": damaged,
    }


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
