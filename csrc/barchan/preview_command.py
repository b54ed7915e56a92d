"""The command `python -m barchan preview`: a cache, or a .blend file with its cache -> pictures and an animation.

Comes in: the path of a cache folder or of a .blend file, what to draw and from where. Goes out: PNG files, one JSON object on
standard output, progress on standard error. A cache alone is framed by its bounds and lies on a ground that is guessed; a
.blend file is opened in the Blender that is found, whose camera, lights and meshes are drawn.
"""

import argparse
import json
import os
import signal
import sys
import time

import barchan

from . import bake_command, export_command, preview

ANIMATIONS = ("png", "apng", "mp4")
VIEWS = {
    "corner": (-0.55, -1.0, 0.55),
    "front": (0.0, -1.0, 0.12),
    "side": (1.0, 0.0, 0.12),
    "top": (0.0, -0.02, 1.0),
}


def size_of(text):
    try:
        width, height = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError("'%s' is no size: give WIDTHxHEIGHT, as in 640x360" % text) from None
    if not (1 <= width <= 16384 and 1 <= height <= 16384):
        raise argparse.ArgumentTypeError("'%s': expected 1 to 16384 pixels along each edge" % text)
    return width, height


def numbers_of(counts, example):
    def read(text):
        try:
            numbers = tuple(float(part) for part in text.split(","))
        except ValueError:
            numbers = ()
        if len(numbers) not in counts:
            raise argparse.ArgumentTypeError("'%s': give numbers divided by commas, as in %s" % (text, example))
        return numbers

    return read


def camera_of(text):
    return text if text in VIEWS else numbers_of((6,), "2,-3,1.5,0,0,0.2 (eye, target), or " + ", ".join(VIEWS))(text)


def add_options(parser, is_file_needed=True):
    """What to draw and how: the same here and inside Blender."""
    parser.add_argument(
        "file", metavar="CACHE|FILE.blend", nargs=None if is_file_needed else "?", help="a cache folder, or a .blend file"
    )
    parser.add_argument("--out", metavar="DIR|FILE.png", help="a folder for all frames, or one picture; default: preview beside it")
    parser.add_argument("--frames", metavar="A:B", help="only from frame A to B, both included, or one frame A; default: all, or "
                        "the last for one picture")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only every K-th frame")
    parser.add_argument("--size", type=size_of, default=(640, 360), metavar="WxH", help="of the pictures, default 640x360")
    parser.add_argument("--camera", type=camera_of, metavar="C", help="corner, front, side, top, or x,y,z,tx,ty,tz: eye and target")
    parser.add_argument("--light", type=numbers_of((2, 3, 4), "-50,40,3,0.5"), metavar="L",
                        help="azimuth,elevation[,strength[,angle]] of the sun, degrees; default -60,42,3.2,0.5")
    parser.add_argument("--animation", choices=ANIMATIONS, default="png", help="png: numbered pictures only; apng: also a picture "
                        "that browsers play; mp4: also a movie, with bpy")
    parser.add_argument("--fps", type=float, metavar="F", help="of the animation; default 24, or the scene's")
    parser.add_argument("--radius", type=float, metavar="R", help="of the grains' spheres in m; default: what the cache says, else a guess")
    parser.add_argument("--shape", choices=preview.SHAPES, help="of the grains; default: what the cache says, else sphere")
    parser.add_argument("--skip", type=int, metavar="N", help="leave out the first N elements; default: the bodies")
    parser.add_argument("--wet", type=float, default=0.0, metavar="W", help="0 dry to 1 wet")
    parser.add_argument("--round", action="store_true", help="exact spheres instead of grains with corners")
    parser.add_argument("--samples", type=int, default=2, choices=(1, 2, 3, 4), help="along an edge of a pixel, default 2")
    parser.add_argument("--no-shadows", action="store_true", help="quicker")
    parser.add_argument("--no-ground", action="store_true", help="no plane below the sand of a cache")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="of python -m barchan devices; 0 = the best")


def add_command(commands):
    parser = commands.add_parser(
        "preview",
        help="draw cached frames, with shadows, without a Blender render",
        description="Draws every grain as a lit sphere or cut sphere, with shadows on each other, on bodies and on the ground.",
        epilog="Exit codes: 0 done, 1 failed with one sentence on standard error, 2 wrong usage, 128 + N stopped by signal N "
        "(130: Ctrl-C); pictures so far are kept.",
    )
    add_options(parser)
    parser.add_argument("--blender", metavar="PROGRAM", help="for a .blend: this Blender; default: bpy of this Python, else the PATH's")
    parser.add_argument("--install", metavar="ZIP", help="for a .blend: install this extension zip in that Blender first")
    parser.add_argument("--factory-startup", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def words_of(arguments):
    """Parsed options as words again, for the command inside Blender."""
    words = ["--size=%dx%d" % arguments.size]
    for name in ("out", "frames", "every", "animation", "fps", "radius", "shape", "skip", "wet", "samples", "device"):
        value = getattr(arguments, name)
        if value is not None:
            words.append("--%s=%s" % (name, os.path.abspath(value) if name == "out" else value))
    for name in ("camera", "light"):
        value = getattr(arguments, name)
        if value is not None:
            words.append("--%s=%s" % (name, value if isinstance(value, str) else ",".join(map(repr, value))))
    for name in ("round", "no_shadows", "no_ground"):
        if getattr(arguments, name):
            words.append("--" + name.replace("_", "-"))
    return words


def choose_numbers(numbers, arguments):
    """The frames that are asked for, of those that are there."""
    text = arguments.frames
    is_one = arguments.out is not None and arguments.out.lower().endswith(".png")
    if text is not None and ":" not in text:
        text = "%s:%s" % (text, text)
    first, last = (None, None) if text is None else export_command.frame_range(text)
    if arguments.every < 1:
        raise ValueError("--every is %d, expected 1 or more." % arguments.every)
    chosen = [n for n in numbers if (first is None or n >= first) and (last is None or n <= last)][:: arguments.every]
    if not chosen:
        raise ValueError("There is no frame from %s; the cache has %d to %d." % (text, numbers[0], numbers[-1]))
    return chosen[-1:] if is_one and arguments.frames is None else chosen


def default_out(path):
    return os.path.splitext(os.path.abspath(path).rstrip(os.sep))[0] + "_preview"


def sun_of(arguments):
    return preview.sun_of(*(arguments.light or (-60.0, 42.0, 3.2)))


def draw_cache(arguments):
    """A cache without anything else. -> the report."""
    frames = preview.Frames(arguments.file, arguments.radius, arguments.shape, arguments.skip)
    if frames.note:
        print("barchan: %s" % frames.note, file=sys.stderr)
    numbers = choose_numbers(frames.numbers, arguments)
    width, height = arguments.size
    low, high = frames.bounds(numbers)
    if isinstance(arguments.camera, tuple):
        reach = float(((high - low) ** 2).sum() ** 0.5)
        camera = preview.make_camera(arguments.camera[:3], arguments.camera[3:], width / height, reach)
    else:
        camera = preview.frame_camera(low, high, width / height, VIEWS[arguments.camera or "corner"])
    common = {
        "camera": camera,
        "sun": sun_of(arguments),
        "sky": preview.SKY,
        "floor": preview.FLOOR,
        "wetness": arguments.wet,
        "round": arguments.round,
        "shadows": not arguments.no_shadows,
    }
    if not arguments.no_ground:
        common["ground"] = (frames.lowest(numbers[-1]), *preview.TABLE)
    light = barchan.Light(width, height, arguments.samples, 0, arguments.device)
    bar = export_command.Bar(sys.stderr)
    try:
        return preview.run(
            light,
            numbers,
            arguments.out or default_out(arguments.file),
            lambda number: {**common, **frames.read(number)},
            arguments.animation,
            arguments.fps or 24.0,
            bar,
        )
    finally:
        bar.close()


def stop(number, _frame):
    raise SystemExit(128 + number)


def run(arguments):
    if os.path.isfile(arguments.file):
        return run_in_blender(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):  # files are whole at any moment
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    start = time.monotonic()
    try:
        report = draw_cache(arguments)
    except KeyboardInterrupt:
        print("barchan: stopped; the pictures so far are kept.", file=sys.stderr)
        return 130
    print(json.dumps({**report, "seconds": round(time.monotonic() - start, 3)}))
    return 0


def run_in_blender(arguments):
    bake_command.check_paths(arguments)
    program = bake_command.find_blender(arguments.blender)
    arguments.out = arguments.out or default_out(arguments.file)
    words = [*words_of(arguments), os.path.abspath(arguments.file)]
    if program is not None:
        command = bake_command.program_command(program, arguments, words, "preview")
    else:
        install = [] if arguments.install is None else [os.path.abspath(arguments.install)]
        command = [sys.executable, "-m", "barchan.bake_in_module", *install, "preview", *words]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)
