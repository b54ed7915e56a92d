"""The command `python -m barchan export`: a cache folder -> files for people without Barchan.

Comes in: the cache folder, a format, what to take. Goes out: the export, one JSON object about it on standard output, and
progress on standard error: a line that is drawn again on a terminal, a line every ten seconds in a log.
"""

import json
import re
import signal
import sys
import time

from . import exporter

REDRAW = 0.2  # s between two looks on a terminal
LOG_EVERY = 10.0  # s between two lines in a log
WIDTH = 24


def frame_range(text):
    """ "3:10" -> (3, 10); either may be missing."""
    match = re.fullmatch(r"(-?\d+)?:(-?\d+)?", text)
    if not match:
        raise ValueError("--frames is '%s', expected FIRST:LAST, as 1:120, 50: or :50." % text)
    return tuple(None if number is None else int(number) for number in match.groups())


def add_command(commands):
    parser = commands.add_parser(
        "export",
        help="write cached frames as USD, geometry-nodes bake, PLY or NumPy files",
        description="Writes the frames of a cache so that others play or read them without Barchan. The output is whole or "
        "not there.",
    )
    parser.add_argument("folder", metavar="CACHE")
    parser.add_argument("--to", required=True, choices=list(exporter.FORMATS), help="the format")
    parser.add_argument("--out", metavar="PATH", help="a file for usd, else a folder; default: beside the cache")
    parser.add_argument("--frames", metavar="A:B", help="only from frame A to B, both included; --frames=-5:3 if negative")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only every K-th frame")
    parser.add_argument("--thin", type=int, default=1, metavar="K", help="only every K-th grain")
    parser.add_argument("--radius", type=float, metavar="R", help="of the grains' spheres in m, if the cache has none")
    parser.add_argument(
        "--shape", choices=exporter.SHAPES, default="sphere", help="spheres: a point per sphere, not per grain"
    )
    parser.add_argument(
        "--skip", type=int, metavar="N", help="leave out the first N elements; default: the bodies, as the frames tell"
    )
    parser.add_argument("--fps", type=float, metavar="F", help="frames per second; default: from the simulated time")
    parser.add_argument("--overwrite", action="store_true", help="replace an older export of the same name")
    parser.set_defaults(run=run)


def duration(seconds):
    seconds = int(seconds + 0.5)
    return "%d s" % seconds if seconds < 60 else "%d min %02d s" % (seconds // 60, seconds % 60)


class Bar:
    """Share done and time left on a stream."""

    def __init__(self, stream):
        self.stream = stream
        self.is_terminal = stream is not None and stream.isatty()
        self.start = self.drawn = time.monotonic()
        self.is_open = False

    def __call__(self, done, total):
        now = time.monotonic()
        is_due = now - self.drawn >= (REDRAW if self.is_terminal else LOG_EVERY)
        if self.stream is None or not (is_due or (self.is_terminal and done in (1, total))):
            return
        self.drawn = now
        filled = WIDTH * done // total
        left = duration((now - self.start) * (total - done) / done)
        text = "[%s%s] %d of %d frames, %s left" % ("#" * filled, "." * (WIDTH - filled), done, total, left)
        self.stream.write("\r\x1b[K" + text if self.is_terminal else text + "\n")
        self.stream.flush()
        self.is_open = self.is_terminal

    def close(self):
        if self.is_open:
            self.stream.write("\n")
            self.stream.flush()


def run(arguments):
    for number in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: what is half written goes
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, signal.default_int_handler)
    frames = None if arguments.frames is None else frame_range(arguments.frames)
    bar = Bar(sys.stderr)
    try:
        report = exporter.export(
            arguments.folder,
            arguments.to,
            arguments.out,
            frames=frames,
            every=arguments.every,
            thin=arguments.thin,
            radius=arguments.radius,
            shape=arguments.shape,
            skip=arguments.skip,
            fps=arguments.fps,
            overwrite=arguments.overwrite,
            progress=bar,
        )
    finally:
        bar.close()
    print(json.dumps(report))
