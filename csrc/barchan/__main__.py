"""The small command line: python -m barchan --version | frames FOLDER | verify FOLDER | info FOLDER | sample MESH --radius R |
devices | export CACHE --to FORMAT | bake FILE.blend | preview CACHE | plot CACHE |
validate [NAME ...]

Comes in: arguments. Goes out: text for a person; on failure one sentence on standard error and exit code 1.
"""

import argparse
import os
import sys

import barchan

from . import bake_command, cache_command, devices_command, export_command, plot, preview_command, sample_command, validate_command


def ranges(frames):
    """Ascending frame numbers as text: [1, 2, 3, 7] -> "1..3 7"."""
    spans = []
    for frame in frames:
        if spans and frame == spans[-1][1] + 1:
            spans[-1][1] = frame
        else:
            spans.append([frame, frame])
    return " ".join(str(first) if first == last else "%d..%d" % (first, last) for first, last in spans)


def sentence(error):
    """One line for a person: without Python's decoration, without the line breaks of others."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = "%s: '%s'" % (error.strerror, error.filename) if error.filename else error.strerror
    elif isinstance(error, MemoryError) and not text:
        text = "There is not enough memory for this; use fewer or larger spheres."
    return " ".join(text.split())


def print_frames(arguments):
    folder = arguments.folder
    if not os.path.isdir(folder):
        raise barchan.CacheError(
            "There is no folder '%s': give the cache folder that the Barchan panel shows." % folder
        )
    frames, byte_count = barchan.list_frames(folder)
    if frames:
        print("%d frames, %d bytes (%.1f MB): %s" % (len(frames), byte_count, byte_count / 1e6, ranges(frames)))
    else:
        print("0 frames, 0 bytes")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m barchan", description="Barchan: sand for Blender, without Blender."
    )
    parser.add_argument("--version", action="version", version="barchan " + barchan.__version__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    frames = commands.add_parser("frames", help="list the cached frames of a folder and the bytes they take")
    frames.add_argument("folder", metavar="FOLDER")
    frames.set_defaults(run=print_frames)
    cache_command.add_commands(commands)
    sample_command.add_command(commands)
    devices_command.add_command(commands)
    export_command.add_command(commands)
    bake_command.add_command(commands)
    preview_command.add_command(commands)
    plot.add_command(commands)
    validate_command.add_command(commands)
    parsed = parser.parse_args(arguments)
    try:
        return parsed.run(parsed) or 0
    except (barchan.Error, OSError, ValueError, MemoryError) as error:
        print("barchan: %s" % sentence(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("barchan: stopped; nothing was written.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
