# SPDX-License-Identifier: GPL-3.0-or-later
"""stats: one line per baked frame beside the frames, stats.csv, for plots. Imports no bpy.

Comes in: the simulator at a frame. Goes out: frame, time, energies, grains there, asleep and touching, steps and the wall clock
that the frame took. Lines of frames that are baked again are replaced; a line that a crash cut off is left out when it is read.
A file of that name that is not ours is left alone.
"""

import csv
import os

from . import engine

NAME = "stats.csv"
HEADER = (
    "frame",
    "seconds",  # s, simulated
    "kinetic_energy",  # J
    "potential_energy",  # J
    "grains",  # born and not taken
    "asleep",
    "contacts",
    "steps",  # of this frame
    "wall_seconds",  # s, of this frame
    "grain_steps",  # grains times steps per second of wall clock
)


def _path(folder):
    return os.path.join(folder, NAME)


def is_ours(folder):
    """True when there is no file of that name in the folder, or one that a bake wrote."""
    try:
        with open(_path(folder), encoding="utf-8", errors="replace", newline="") as stream:
            return stream.readline(1000).rstrip("\r\n") == ",".join(HEADER)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except IsADirectoryError:
        return False


def free(folder):
    """Removes the file of an older bake and the plots made of it, and no other."""
    if os.path.isfile(_path(folder)) and is_ours(folder):
        os.remove(_path(folder))
    plot = engine.core.plot
    if plot.is_ours(os.path.join(folder, plot.OUT)):
        os.remove(os.path.join(folder, plot.OUT))


def read(folder):
    """Whole lines by frame: dict of frame -> list of text; {} when there is none of ours."""
    found = {}
    if not is_ours(folder) or not os.path.isfile(_path(folder)):
        return found
    with open(_path(folder), encoding="utf-8", errors="replace", newline="") as stream:
        text = stream.read()
    for row in csv.reader(text[: text.rfind("\n") + 1].splitlines()[1:]):
        try:
            if len(row) == len(HEADER):
                found[int(row[0])] = row
        except ValueError:
            continue
    return found


def keep(folder, frames):
    """Leaves only the lines of these frames, whole and in order; nothing happens to a file that is not ours."""
    if not is_ours(folder) or not os.path.isfile(_path(folder)):
        return
    rows = read(folder)
    partial = _path(folder) + ".tmp"
    with open(partial, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(rows[frame] for frame in sorted(rows) if frame in frames)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, _path(folder))


class Recorder:
    """Adds the lines of one run. Statistics are not worth a bake: a disk that refuses them is left to the frames to report."""

    def __init__(self, folder, grain_count, now):
        self._folder = folder
        self._grain_count = grain_count
        self._is_open = is_ours(folder)
        self._last = now  # s of wall clock, and steps, at the last frame
        self._steps = None

    def add(self, frame, info, now):
        """info: Sim.info() at the frame; now: s of wall clock."""
        steps = info["step_count"] - (self._steps if self._steps is not None else info["step_count"])
        spent = now - self._last
        self._steps, self._last = info["step_count"], now
        if not self._is_open:
            return
        grains = self._grain_count - info["unborn_count"] - info["gone_count"]
        speed = self._grain_count * steps / spent if steps and spent > 0.0 else 0.0
        row = (
            frame,
            f"{info['time']:.6f}",
            f"{info['kinetic_energy']:.9g}",
            f"{info['potential_energy']:.9g}",
            grains,
            info["asleep_count"],
            info["contact_count"],
            steps,
            f"{spent if steps else 0.0:.4f}",
            f"{speed:.6g}",
        )
        try:
            is_new = not os.path.exists(_path(self._folder))
            with open(_path(self._folder), "a", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream, lineterminator="\n")
                if is_new:
                    writer.writerow(HEADER)
                writer.writerow(row)
        except OSError:
            self._is_open = False
