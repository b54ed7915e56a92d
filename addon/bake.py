# SPDX-License-Identifier: GPL-3.0-or-later
"""bake: sampler, scene, simulator and cache in one run, on any thread. Imports no bpy.

Comes in: a Job of plain arrays and numbers. Goes out: frame files in the cache folder, a Progress any thread may read,
and one sentence when it fails. Everything is validated before the first older frame is removed.
"""

import dataclasses
import math
import os
import shutil
import sys
import threading
import time
import traceback

import numpy as np

from . import engine

# Room between neighbouring grains at the start, in bounding radii: 2 is touching, the rest is free for jitter, so that
# the first rows do not fall as a crystal.
FILL_SPACING = 2.05
FILL_JITTER = 1.0

FRAME_OVERHEAD_BYTES = 4096  # header and file-system rounding of one frame, for the estimate of disk use


class BakeError(Exception):
    """A bake that cannot start or go on; the text is the sentence for the user."""


@dataclasses.dataclass(frozen=True)
class Source:
    """One mesh in world space: name, (N,3) float32 vertices in metres, (M,3) int32 triangles."""

    name: str
    vertices: np.ndarray
    triangles: np.ndarray


@dataclasses.dataclass(frozen=True)
class Job:
    """All a bake needs, in SI units. The arrays must not change while the bake runs."""

    sand: tuple
    colliders: tuple
    folder: str
    frame_start: int
    frame_end: int
    frame_seconds: float  # s per frame
    gravity: tuple = (0.0, 0.0, -9.81)  # m/s^2
    radius: float = 0.02  # m, of a grain's spheres and of the wall spheres
    shape: str = "TETRAHEDRON"
    restitution: float = 0.5
    friction: float = 0.5
    density: float = 2600.0  # kg/m^3
    max_overlap: float = 0.2  # share of the radius at the fastest impact
    max_speed: float = 0.0  # m/s of the fastest impact; 0 = free fall through the scene
    seed: int = 0
    threads: int = 0


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


def grain_shape(shape, radius):
    """Sphere offsets (K,3) and radii (K,) of a grain in metres, and its bounding radius."""
    if shape == "SPHERE":
        offsets = np.zeros((1, 3), np.float32)
    else:
        offsets = engine.core.tetrahedron(radius)
    radii = np.full(len(offsets), radius, np.float32)
    return offsets, radii, float(np.linalg.norm(offsets, axis=1).max() + radius)


def near_any(points, others, distance):
    """Mask of the points that have one of the others within distance (m). Cells of that size, 27 of them looked at."""
    near = np.zeros(len(points), bool)
    if len(points) == 0 or len(others) == 0:
        return near
    origin = np.minimum(points.min(axis=0), others.min(axis=0)).astype(np.float64)
    point_cells = ((points - origin) / distance).astype(np.int64) + 1
    other_cells = ((others - origin) / distance).astype(np.int64) + 1
    size_y, size_z = (np.maximum(point_cells.max(axis=0), other_cells.max(axis=0)) + 2)[1:]
    strides = np.array((size_y * size_z, size_z, 1), np.int64)
    other_keys = other_cells @ strides
    order = np.argsort(other_keys, kind="stable")
    other_keys = other_keys[order]
    others = others[order]
    point_keys = point_cells @ strides
    for offset in np.ndindex(3, 3, 3):
        keys = point_keys + (np.array(offset) - 1) @ strides
        first = np.searchsorted(other_keys, keys, side="left")
        last = np.searchsorted(other_keys, keys, side="right")
        open_points = np.flatnonzero((first < last) & ~near)
        while len(open_points):
            difference = points[open_points] - others[first[open_points]]
            hit = (difference * difference).sum(axis=1) < distance * distance
            near[open_points[hit]] = True
            open_points = open_points[~hit]
            first[open_points] += 1
            open_points = open_points[first[open_points] < last[open_points]]
    return near


class Bake:
    """One bake. run() does the work, on the calling thread or, after start(), on its own; progress, error and warnings
    may be read from any thread, cancel() called from any thread."""

    def __init__(self, job):
        if engine.core is None:
            raise BakeError(engine.problem)
        self.job = job
        self.progress = Progress(frame_count=job.frame_end - job.frame_start + 1)
        self.error = ""
        self.warnings = []
        self.settings_hash = 0
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
            scene, sim = self._prepare()
            self._write_frames(scene, sim)
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
        offsets, radii, bound = grain_shape(job.shape, job.radius)
        meshes = [core.Mesh(source.vertices, source.triangles, name=source.name) for source in job.sand]
        walls = [core.Mesh(source.vertices, source.triangles, name=source.name) for source in job.colliders]

        # Two spheres of the wall's own radius at most one radius apart leave no hole for a third of the same size.
        covers = []
        for index, mesh in enumerate(walls):
            covers.append(core.cover(mesh, spacing=job.radius, seed=job.seed + index))
            self._stop_if_cancelled()
        wall_positions = np.concatenate(covers) if covers else None

        parts = []
        left_out = 0
        for index, mesh in enumerate(meshes):
            points = core.fill(
                mesh, spacing=FILL_SPACING * bound, clearance=bound, jitter=FILL_JITTER, seed=job.seed + index
            )
            self._stop_if_cancelled()
            blocked = np.zeros(len(points), bool)
            for other in parts:
                blocked |= near_any(points, other, 2 * bound)
            if wall_positions is not None:
                blocked |= near_any(points, wall_positions, bound + job.radius)
            left_out += int(blocked.sum())
            parts.append(points[~blocked])
        positions = np.ascontiguousarray(np.concatenate(parts))
        if len(positions) == 0:
            raise BakeError(
                f"No grain is left: each of the {left_out} that fit touches a collider; "
                "move the sand away from the colliders or use smaller grains"
            )
        if left_out:
            self.warnings.append(
                f"{left_out} of {left_out + len(positions)} grains were left out because they touch a collider or other sand"
            )

        # Shear with a history: the viscous kind lets a heap creep, this one stands still, and costs little more.
        material = {
            "density": job.density,
            "restitution": job.restitution,
            "friction": job.friction,
            "shear": "history",
        }
        scene = core.Scene(
            positions=positions,
            shapes=[(offsets, radii)],
            gravity=job.gravity,
            materials=[material],
            max_overlap=job.max_overlap,
            max_speed=job.max_speed,
            wall_positions=wall_positions,
            wall_radius=job.radius if wall_positions is not None else 0.0,
            seed=job.seed,
        )
        sim = core.Sim(scene, threads=job.threads)
        self._sim = sim
        self.progress = dataclasses.replace(self.progress, grain_count=len(positions))

        needed = self.progress.frame_count * (len(positions) * 4 * (3 + 4 + 3) + FRAME_OVERHEAD_BYTES)
        free = disk_free(job.folder) + core.list_frames(job.folder)[1]
        if free < needed:
            raise BakeError(
                f"The bake needs {size(needed)} but the disk of '{job.folder}' has {size(free)} free; "
                "choose another cache folder, fewer frames or larger grains"
            )
        self._stop_if_cancelled()
        core.make_folder(job.folder)
        return scene, sim

    def _write_frames(self, scene, sim):
        job, core = self.job, engine.core
        self.settings_hash = scene.hash
        core.free_frames(job.folder)
        core.make_folder(job.folder)  # free_frames also removes a folder that is empty afterwards
        start = time.monotonic()
        for index, frame in enumerate(range(job.frame_start, job.frame_end + 1)):
            if index > 0:
                sim.advance(job.frame_seconds)
            arrays = {"position": sim.positions(), "rotation": sim.orientations(), "velocity": sim.velocities()}
            core.write_frame(
                job.folder,
                frame,
                arrays,
                seconds=sim.info()["time"],
                settings_hash=scene.hash,
                state_hash=sim.hash(),
            )
            left = -1.0
            if index > 0:  # the first frame is not simulated and would make the estimate too short
                left = (time.monotonic() - start) / index * (job.frame_end - frame)
            self._advance_to("BAKING", frame=frame, frames_done=index + 1, seconds_left=left)
            self._stop_if_cancelled()
        lost = sim.info()["lost_count"]
        if lost:
            self.warnings.append(f"{lost} of {scene.grain_count} grains left the simulated space and stand still there")


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
