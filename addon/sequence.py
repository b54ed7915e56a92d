# SPDX-License-Identifier: GPL-3.0-or-later
"""sequence: cached frames in, files for people without Barchan out, on any thread. Imports no bpy.

Comes in: the cache folder and the choices of the core's export. Goes out: one file or folder that is whole or not there, a
progress any thread may read, and one sentence when it fails.
"""

import threading
import time
import traceback

from . import bake, engine

# (identifier, name, tooltip, what is added to the file's name)
FORMATS = (
    ("USD", "USD Points", "One .usdc file that Blender, Houdini and others open", ".usdc"),
    ("NODES", "Geometry Nodes Bake", "A folder that a Bake node plays, with a script that sets it up", "_nodes"),
    ("PLY", "PLY", "A folder with one .ply file per frame", "_ply"),
    ("NPZ", "NumPy", "A folder with one .npz file per frame", "_npz"),
)


class Export:
    """One export. state: RUNNING, DONE, STOPPED or FAILED."""

    def __init__(self, folder, to, out, **options):
        self.state, self.error, self.report = "RUNNING", "", None
        self.done = self.total = 0
        self._call = (folder, to.lower(), out)
        self._options = options
        self._cancel = engine.core.Cancel()
        self._thread = None
        self._start = time.monotonic()

    @property
    def fraction(self):
        return self.done / self.total if self.total else 0.0

    @property
    def is_finished(self):
        return self.state != "RUNNING"

    def text(self):
        if not self.done:
            return "Exporting"
        left = (time.monotonic() - self._start) * (self.total - self.done) / self.done
        return f"Exporting {100 * self.fraction:.0f} % ({self.done}/{self.total}, {bake.duration(left)} left)"

    def run(self, on_progress=None):
        def step(done, total):
            self.done, self.total = done, total
            if on_progress is not None:
                on_progress(self)

        core = engine.core
        try:
            self.report = core.export(*self._call, progress=step, cancel=self._cancel, **self._options)
            self.state = "DONE"
        except core.Cancelled:
            self.state = "STOPPED"
        except (core.Error, OSError, ValueError, MemoryError) as error:
            self.error, self.state = engine.sentence(error), "FAILED"
        except BaseException as error:  # our own fault: the thread must not end in silence
            traceback.print_exc()
            self.error, self.state = f"The export failed ({type(error).__name__}: {error})", "FAILED"

    def start(self):
        self._thread = threading.Thread(target=self.run, name="barchan export")
        self._thread.start()

    def cancel(self):
        self._cancel.cancel()

    def join(self):
        if self._thread is not None:
            self._thread.join()


running = None  # the Export under way in this Blender, None otherwise; set by operators on the main thread


def stop_running():
    """Ends the export under way, if any, and waits for its thread: before a file is loaded and before Blender quits."""
    global running
    if running is not None:
        running.cancel()
        running.join()
        running = None
