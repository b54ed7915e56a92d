# SPDX-License-Identifier: GPL-3.0-or-later
"""bake: a job in, frames in the cache out, on any thread. Imports no bpy.

Comes in: a job.Job of plain arrays and numbers. Goes out: frame files and the loads of bodies and colliders in the cache
folder, a Progress any thread may read, and one sentence when it fails. Everything is validated before the first older
frame is removed.
"""

import csv
import dataclasses
import math
import os
import shutil
import sys
import threading
import time
import traceback

from . import assembly, engine
from .job import BakeError

FRAME_OVERHEAD_BYTES = 4096  # header and file-system rounding of one frame, for the estimate of disk use

LOADS_NAME = "loads.csv"
LOADS_HEADER = ("frame", "seconds", "object", "fx", "fy", "fz", "tx", "ty", "tz")


@dataclasses.dataclass(frozen=True)
class Progress:
    """What a bake is doing now. state: WAITING, PREPARING, BAKING, DONE, STOPPED or FAILED."""

    state: str = "WAITING"
    frame: int = 0  # last frame written
    frames_done: int = 0
    frame_count: int = 0
    grain_count: int = 0
    seconds_left: float = -1.0  # s, negative while unknown

    @property
    def fraction(self):
        return self.frames_done / self.frame_count if self.frame_count else 0.0

    @property
    def is_finished(self):
        return self.state in ("DONE", "STOPPED", "FAILED")

    def text(self):
        if self.state == "BAKING":
            left = f", {duration(self.seconds_left)} left" if self.seconds_left >= 0 else ""
            return f"Baking {100 * self.fraction:.0f} % ({self.frames_done}/{self.frame_count}{left})"
        return {
            "WAITING": "Waiting",
            "PREPARING": "Filling meshes with grains",
            "DONE": "Baked",
            "STOPPED": "Stopped",
            "FAILED": "Failed",
        }[self.state]


def duration(seconds):
    """45 s, 3 min 20 s, 2 h 05 min."""
    seconds = int(seconds + 0.5)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"


def size(byte_count):
    """Bytes for people: 12 bytes, 3.4 MB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if byte_count >= scale:
            return f"{byte_count / scale:.1f} {unit}"
    return f"{byte_count} bytes"


def disk_free(folder):
    """Free bytes where the folder is or will be made; infinite where the file system does not say."""
    while not os.path.exists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    usage = shutil.disk_usage(folder)
    return usage.free if usage.total > 0 else math.inf


# ---------------------------------------------------------------------------------------------------------------------
# Loads: one line per frame and body or collider, mean force (N) and torque (N m) over the frame


def is_loads_ours(folder):
    """True when there is no file of that name in the folder, or one that a bake wrote."""
    try:
        with open(os.path.join(folder, LOADS_NAME), encoding="utf-8", errors="replace", newline="") as stream:
            return stream.readline(1000).rstrip("\r\n") == ",".join(LOADS_HEADER)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except IsADirectoryError:
        return False


def free_loads(folder):
    """Removes the loads of an older bake, and no other file."""
    path = os.path.join(folder, LOADS_NAME)
    if os.path.isfile(path) and is_loads_ours(folder):
        os.remove(path)


def free_folder(folder):
    """Removes frames and loads, and the folder where it is empty then: how many frames, and their bytes."""
    free_loads(folder)
    return engine.core.free_frames(folder)


def add_loads(folder, lines):
    """Adds lines at the end of the file, which is made when it is not there."""
    path = os.path.join(folder, LOADS_NAME)
    is_new = not os.path.exists(path)
    with open(path, "a", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if is_new:
            writer.writerow(LOADS_HEADER)
        writer.writerows(lines)


# ---------------------------------------------------------------------------------------------------------------------
# The bake


class Bake:
    """One bake. run() does the work, on the calling thread or, after start(), on its own; progress, error and warnings
    may be read from any thread, cancel() called from any thread."""

    def __init__(self, job):
        if engine.core is None:
            raise BakeError(engine.problem)
        self.job = job
        self.progress = Progress(frame_count=job.frame_count)
        self.error = ""
        self.warnings = []
        self.settings_hash = 0
        self.assembled = None  # assembly.Assembled, once it is made
        self._cancel = engine.core.Cancel()  # for what samples meshes
        self._cancelled = threading.Event()
        self._sim = None
        self._thread = None

    def start(self):
        """Runs on a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="barchan bake", daemon=True)
        self._thread.start()

    def cancel(self):
        """The frames written so far stay."""
        self._cancelled.set()
        self._cancel.cancel()
        sim = self._sim
        if sim is not None:
            sim.cancel()

    def join(self):
        if self._thread is not None:
            self._thread.join()

    def run(self, on_progress=None):
        """Bakes all frames, never raises: the outcome is in progress.state, and in error when it FAILED.
        on_progress(progress) is called on the running thread after every change."""
        self._on_progress = on_progress
        try:
            self._advance_to("PREPARING")
            made, sim = self._prepare()
            self._write_frames(made, sim)
            self._advance_to("DONE", seconds_left=0.0)
        except (engine.core.Cancelled, KeyboardInterrupt):
            self._advance_to("STOPPED")
        except (BakeError, engine.core.Error, ValueError, OSError, MemoryError) as error:
            self.error = engine.sentence(error)
            self._advance_to("FAILED")
        except Exception as error:  # our own bug: the artist's session goes on, the console has the trace
            traceback.print_exc()
            self.error = f"The bake failed unexpectedly ({engine.sentence(error)}); please report this with the console's text"
            self._advance_to("FAILED")
        finally:
            self._sim = None

    def _advance_to(self, state, **changes):
        self.progress = dataclasses.replace(self.progress, state=state, **changes)
        if self._on_progress is not None:
            self._on_progress(self.progress)

    def _stop_if_cancelled(self):
        if self._cancelled.is_set():
            raise engine.core.Cancelled("The bake was stopped")

    def _prepare(self):
        """Everything that can fail for a reason the user can mend, before any older frame is touched."""
        job, core = self.job, engine.core
        made = assembly.assemble(job, self.warnings, self._cancel, self._stop_if_cancelled)
        sim = core.Sim(made.scene, threads=job.threads)
        self._sim = sim
        self.assembled = made
        count = made.scene.grain_count
        self.progress = dataclasses.replace(self.progress, grain_count=count - made.body_count)

        numbers = 3 + 4 + 3 + (1 if made.has_flags else 0)
        needed = self.progress.frame_count * (count * 4 * numbers + FRAME_OVERHEAD_BYTES)
        free = disk_free(job.folder) + core.list_frames(job.folder)[1]
        if free < needed:
            raise BakeError(
                f"The bake needs {size(needed)} but the disk of '{job.folder}' has {size(free)} free; "
                "choose another cache folder, fewer frames or larger grains"
            )
        if (made.body_names or made.collider_names) and not is_loads_ours(job.folder):
            raise BakeError(
                f"The file '{os.path.join(job.folder, LOADS_NAME)}' is not Barchan's and would be overwritten; "
                "move it away or choose another cache folder"
            )
        self._stop_if_cancelled()
        core.make_folder(job.folder)
        return made, sim

    def _write_frames(self, made, sim):
        job, core = self.job, engine.core
        self.settings_hash = made.scene.hash
        free_folder(job.folder)
        core.make_folder(job.folder)  # it is removed where it is empty
        start = time.monotonic()
        for index, frame in enumerate(range(job.frame_start, job.frame_end + 1)):
            if index > 0:
                sim.advance(job.frame_seconds)
            self._write_frame(frame, made, sim)
            left = -1.0
            if index > 0:  # the first frame is not simulated and would make the estimate too short
                left = (time.monotonic() - start) / index * (job.frame_end - frame)
            self._advance_to("BAKING", frame=frame, frames_done=index + 1, seconds_left=left)
            self._stop_if_cancelled()
        lost = sim.info()["lost_count"]
        if lost:
            self.warnings.append(
                f"{lost} of {made.scene.grain_count} grains left the simulated space and stand still there"
            )

    def _write_frame(self, frame, made, sim):
        job, seconds = self.job, sim.info()["time"]
        arrays = {"position": sim.positions(), "rotation": sim.orientations(), "velocity": sim.velocities()}
        if made.has_flags:
            arrays["flags"] = sim.flags()
        engine.core.write_frame(
            job.folder, frame, arrays, seconds=seconds, settings_hash=made.scene.hash, state_hash=sim.hash()
        )
        if made.body_names or made.collider_names:
            loads = sim.loads()
            rows = [*zip(made.body_names, loads["bodies"]), *zip(made.collider_names, loads["colliders"])]
            lines = [(frame, f"{seconds:.6f}", name, *(f"{x:.6g}" for x in load)) for name, load in rows]
            add_loads(job.folder, lines)


class TerminalBar:
    """Progress on the terminal: one line that is rewritten, or a line every few seconds when it goes to a file."""

    WIDTH = 30
    FILE_SECONDS = 10.0

    def __init__(self, stream=None):
        self._stream = stream or sys.stdout  # None where Blender has no console
        self._is_terminal = self._stream is not None and self._stream.isatty()
        self._last = -self.FILE_SECONDS

    def __call__(self, progress):
        if self._stream is None:
            return
        filled = round(self.WIDTH * progress.fraction)
        line = f"[{'#' * filled}{'.' * (self.WIDTH - filled)}] {progress.text()}"
        if self._is_terminal:
            self._stream.write("\r\x1b[K" + line + ("\n" if progress.is_finished else ""))
            self._stream.flush()
        elif progress.is_finished or time.monotonic() - self._last >= self.FILE_SECONDS:
            self._last = time.monotonic()
            self._stream.write(line + "\n")
            self._stream.flush()


running = None  # the Bake under way in this Blender, None otherwise; set by operators on the main thread


def stop_running():
    """Ends the bake under way, if any, and waits for its thread: before a file is loaded and before Blender quits."""
    global running
    if running is not None:
        running.cancel()
        running.join()
        running = None
