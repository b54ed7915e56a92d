# SPDX-License-Identifier: GPL-3.0-or-later
"""bake: a job in, frames in the cache out, on any thread. Imports no bpy.

Comes in: a job.Job of plain arrays and numbers. Goes out: frames, checkpoints and the loads of bodies and colliders in the
cache folder, a Progress any thread may read, and one sentence when it fails. Everything is validated before the first
older frame is removed. The core's writer puts frames on disk while the next one is simulated; a frame counts as done when
it is durable. The folder is locked while a bake writes or frees.
"""

import csv
import dataclasses
import json
import math
import os
import shutil
import sys
import threading
import time
import traceback

import numpy as np

from . import assembly, engine, stats
from .job import BakeError

FRAME_OVERHEAD_BYTES = 4096  # file-system rounding of one frame, for the estimate of disk use
MEASURED_COUNT = 65536  # grains that the estimate encodes; more of them are as large each
TOLERANCE = 0.01  # radii that the position of a grain in the cache may be off by, and its way in a frame by its velocity
TURN_TOLERANCE = 0.01  # rad that its turn in a frame may be off by, by its spin
NOTED_SPHERES = 64  # most spheres of a shape whose places the frames' notes tell: those of grains, not of bodies
TIME_TOLERANCE = 1e-3  # frames by which a cached frame's time may be off: another frame rate or first frame is off by more

ENGINES = {"AUTO": "auto", "CPU": "cpu", "GPU": "gl"}

LOADS_NAME = "loads.csv"
LOADS_HEADER = ("frame", "seconds", "object", "fx", "fy", "fz", "tx", "ty", "tz")


@dataclasses.dataclass(frozen=True)
class Progress:
    """What a bake is doing now. state: WAITING, EXPORTING (the scene is read), PREPARING, BAKING, DONE, STOPPED or FAILED."""

    state: str = "WAITING"
    frame: int = 0  # last frame that is durable
    frames_done: int = 0  # frames of the range that are in the cache
    frame_count: int = 0
    grain_count: int = 0
    seconds_left: float = -1.0  # s, negative while unknown
    byte_estimate: int = 0  # of the whole range on disk, 0 while unknown
    grain_steps: float = 0.0  # grains times time steps per second of this run, 0 while unknown
    share_read: float = 0.0  # of the animation, while EXPORTING

    @property
    def fraction(self):
        if self.state == "EXPORTING":
            return self.share_read
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
            "EXPORTING": f"Exporting {100 * self.share_read:.0f} %",
            "PREPARING": "Filling meshes with grains",
            "DONE": "Baked",
            "STOPPED": "Stopped",
            "FAILED": "Failed",
        }[self.state]

    def line(self):
        """text() with all that a terminal has room for."""
        parts = [self.text()]
        if self.frames_done:
            parts.append(f"frame {self.frame}")
        if self.grain_count:
            parts.append(f"{self.grain_count} grains")
        if self.grain_steps:
            parts.append(f"{rate(self.grain_steps)} grain-steps/s")
        return ", ".join(parts)


def rate(count):
    """A number for people: 950, 12.3 k, 4.5 M."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f}"


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
    """Removes frames, checkpoints and loads, and the folder where it is empty then: how many frames, and their bytes.
    CacheError while another process bakes into it."""
    core = engine.core
    if not os.path.isdir(folder):
        return core.free_frames(folder)
    with core.Lock(folder):
        found = _free_locked(folder)
    core.free_frames(folder)  # the lock was in it: only now it may be empty
    return found


def _free_locked(folder):
    free_loads(folder)
    stats.free(folder)
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


def read_loads(folder):
    """Whole lines by frame; a line that a crash cut off is left out. None when there is no file."""
    found = {}
    try:
        with open(os.path.join(folder, LOADS_NAME), encoding="utf-8", errors="replace", newline="") as stream:
            text = stream.read()
    except FileNotFoundError:
        return None
    for row in csv.reader(text[: text.rfind("\n") + 1].splitlines()[1:]):
        try:
            frame = int(row[0])
        except (ValueError, IndexError):
            continue
        if len(row) == len(LOADS_HEADER):
            found.setdefault(frame, []).append(row)
    return found


def write_loads(folder, by_frame):
    """Puts these lines, ordered by frame, in the place of the file's."""
    path = os.path.join(folder, LOADS_NAME)
    partial = f"{path}.tmp"
    with open(partial, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(LOADS_HEADER)
        for frame in sorted(by_frame):
            writer.writerows(by_frame[frame])
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, path)


# ---------------------------------------------------------------------------------------------------------------------
# Notes: what the numbers in the arrays of a frame mean, and what the next bake needs to go on, as JSON


def make_notes(the_job, made):
    """The text that every frame of a bake carries or refers to."""
    shapes = []
    for name, (centres, radii) in zip(made.shape_names, made.scene.shapes()):
        one = {"name": name, "sphere_count": len(radii)}
        if len(radii) <= NOTED_SPHERES:
            one["centres"], one["radii"] = centres.tolist(), radii.tolist()  # m, at the size of the largest radius
        shapes.append(one)
    materials = [{"name": name, **numbers} for name, numbers in zip(made.material_names, made.materials)]
    return json.dumps(
        {
            "sources": list(made.source_names),
            "shapes": shapes,
            "materials": materials,
            "body_count": made.body_count,
            "frame_seconds": the_job.frame_seconds,
            "max_speed": the_job.max_speed,
            "measures": list(made.scene.measures),
        },
        ensure_ascii=False,
    )


def read_notes(folder):
    """The notes of the first frame that has some; {} when none has."""
    core = engine.core
    return core.cache_command.first_notes(folder, core.list_frames(folder)[0])


# ---------------------------------------------------------------------------------------------------------------------
# The bake


class Worker:
    """Work on a thread of its own that any thread may stop. Who inherits has run(), and keeps its simulation in _sim."""

    name = "work"  # for people

    def __init__(self):
        self._cancel = engine.core.Cancel()  # for what samples meshes
        self._cancelled = threading.Event()
        self._sim = None
        self._thread = None

    def start(self):
        self._thread = threading.Thread(target=self.run, name="barchan " + self.name, daemon=True)
        self._thread.start()

    def cancel(self):
        self._cancelled.set()
        self._cancel.cancel()
        sim = self._sim
        if sim is not None:
            sim.cancel()

    def join(self, timeout=None):
        """Waits for the thread of start() to end, at most timeout seconds."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _stop_if_cancelled(self):
        if self._cancelled.is_set():
            raise engine.core.Cancelled(f"The {self.name} was stopped")


class Bake(Worker):
    """One bake. run() does the work, on the calling thread or, after start(), on its own; progress, error and warnings
    may be read from any thread, cancel() called from any thread.

    Without resume everything is baked anew. With it the good frames of the range stay and what is missing or damaged is
    baked, as if the bake had never stopped; from resume_frame on frames are baked again although they are there. After
    cancel() the frames simulated so far stay."""

    name = "bake"

    def __init__(self, job, resume=False, resume_frame=None):
        if engine.core is None:
            raise BakeError(engine.problem)
        if resume_frame is not None and not job.frame_start <= resume_frame <= job.frame_end:
            raise BakeError(
                f"Frame {resume_frame} is not in the range to bake, {job.frame_start} to {job.frame_end}; "
                "go to a frame of the range"
            )
        super().__init__()
        self.job = job
        self.resume = resume
        self.resume_frame = resume_frame
        self.progress = Progress(frame_count=job.frame_count)
        self.error = ""
        self.warnings = []
        self.settings_hash = 0
        self.engine_name = ""  # what simulates, for people; "" before it is known
        self.baked_count = 0  # frames that this run has put on disk
        self.assembled = None  # assembly.Assembled, once it is made

    @property
    def is_finished(self):
        return self.progress.is_finished

    def text(self):
        return self.progress.text()

    def run(self, on_progress=None):
        """Bakes all frames, never raises: the outcome is in progress.state, and in error when it FAILED.
        on_progress(progress) is called on the running thread after every change."""
        self._on_progress = on_progress
        try:
            self._advance_to("PREPARING")
            made, sim = self._prepare()
            with engine.core.Lock(self.job.folder) as lock:
                if lock.note:
                    self.warnings.append(lock.note)
                self._bake_locked(made, sim)
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

    def _prepare(self):
        """Everything that can fail for a reason the user can mend, before any older frame is touched."""
        job, core = self.job, engine.core
        # A longer range may bring motion that is wider or faster. What was measured of the first one stays, so that the
        # frames that are there and those to come are of one scene.
        notes = read_notes(job.folder) if self.resume else {}
        measures = notes.get("measures") if notes.get("max_speed") == job.max_speed else None
        made = assembly.assemble(job, self.warnings, self._cancel, self._stop_if_cancelled, measures)
        sim = core.Sim(made.scene, threads=job.threads, engine=ENGINES[job.engine])
        self._sim = sim
        self.assembled = made
        self.settings_hash = made.scene.hash
        self.engine_name = engine_text(sim)
        self.progress = dataclasses.replace(self.progress, grain_count=made.scene.grain_count - made.body_count)
        if not self.resume:
            self._check_room(made, sim, job.frame_count, 0)
        if (made.body_names or made.collider_names) and not is_loads_ours(job.folder):
            raise BakeError(
                f"The file '{os.path.join(job.folder, LOADS_NAME)}' is not Barchan's and would be overwritten; "
                "move it away or choose another cache folder"
            )
        self._stop_if_cancelled()
        core.make_folder(job.folder)
        return made, sim

    def _check_room(self, made, sim, frame_count, kept_bytes):
        """Refuses frame_count more frames for which disk or limit have no room. kept_bytes: of frames that stay."""
        job, core = self.job, engine.core
        frames_bytes = frame_count * frame_estimate(made, sim, frame_tolerances(self.job, made))
        # Two checkpoints and those to keep, of which each grows as grains come to touch: about twice in a heap at rest.
        # Those to keep give way where the limit is low.
        checkpoint_bytes = 2 * len(sim.save())
        needed = frames_bytes + 2 * checkpoint_bytes
        kept = frame_count // job.keep_interval * checkpoint_bytes if job.keep_interval else 0
        if job.byte_limit == 0 or needed + kept + kept_bytes <= job.byte_limit:
            needed += kept
        self.progress = dataclasses.replace(self.progress, byte_estimate=kept_bytes + needed)
        free = disk_free(job.folder) + core.list_frames(job.folder)[1] - kept_bytes
        if free < needed:
            raise BakeError(
                f"The bake needs about {size(needed)} but the disk of '{job.folder}' has {size(free)} free; "
                "choose another cache folder, fewer frames or larger grains"
            )
        if 0 < job.byte_limit < kept_bytes + needed:
            there = f" beside the {size(kept_bytes)} that are there" if kept_bytes else ""
            raise BakeError(
                f"The bake needs about {size(needed)}{there}, more than the limit of {size(job.byte_limit)}; "
                "raise the limit, or bake fewer frames or larger grains"
            )

    def _bake_locked(self, made, sim):
        job = self.job
        if not self.resume:
            _free_locked(job.folder)
            wanted = range(job.frame_start, job.frame_end + 1)
            self._write_frames(made, sim, job.frame_start, wanted, frame_tolerances(self.job, made))
            return
        tolerances = self._check_cached(made, sim)
        again = set() if self.resume_frame is None else set(range(self.resume_frame, job.frame_end + 1))
        has_loads = bool(made.body_names or made.collider_names)
        loads = read_loads(job.folder) if has_loads else None
        if loads is not None:
            row_count = len(made.body_names) + len(made.collider_names)
            again |= {f for f in range(job.frame_start, job.frame_end + 1) if len(loads.get(f, ())) != row_count}
        plan = engine.core.cache_command.plan(
            job.folder, made.scene.hash, job.frame_start, job.frame_end, again, sim.motion_hash, threads=job.threads
        )
        self._stop_if_cancelled()
        wanted = plan["frames"]
        if not wanted:
            self._advance_to("BAKING", frame=job.frame_end, frames_done=job.frame_count)
            return
        self._check_room(made, sim, len(wanted), self._bytes_without(set(wanted)))
        if loads is not None:
            missing = set(wanted)
            write_loads(job.folder, {frame: rows for frame, rows in loads.items() if frame not in missing})
        first = job.frame_start
        if plan["checkpoint"] is not None:
            sim.load(plan["checkpoint"]["bytes"])
            first = plan["checkpoint"]["frame"]
        self._write_frames(made, sim, first, wanted, tolerances)
        if has_loads:
            write_loads(job.folder, read_loads(job.folder) or {})

    def _bytes_without(self, frames):
        """Bytes of the frames in the folder but for these."""
        numbers, byte_count = engine.core.list_frames(self.job.folder)
        for frame in frames.intersection(numbers):
            try:
                byte_count -= engine.core.frame_info(self.job.folder, frame)["bytes"]
            except engine.core.CacheError:
                pass  # damaged and of no known size: counted as if it stayed
        return max(0, byte_count)

    def _check_cached(self, made, sim):
        """Refuses frames that this scene did not make and that are to stay; returns the tolerances of those that are there."""
        job, core = self.job, engine.core
        tolerance = None
        first_again = job.frame_end + 1 if self.resume_frame is None else self.resume_frame
        for frame in core.list_frames(job.folder)[0]:
            try:
                found = core.frame_info(job.folder, frame)
            except core.CacheError:
                continue  # damaged: baked again
            seconds = (frame - job.frame_start) * job.frame_seconds
            if found["settings_hash"] != made.scene.hash:
                names = job.emits_to_the_end()
                also = f", also the end frame, up to which '{names[0]}' emits" if names else ""
                raise BakeError(
                    f"Frame {frame} in the cache was baked with other settings; take back what was changed since{also}, or "
                    "press Bake Sand to bake everything anew"
                )
            if abs(found["seconds"] - seconds) > TIME_TOLERANCE * job.frame_seconds:
                raise BakeError(
                    f"Frame {frame} in the cache is {found['seconds']:.4f} s after the start, with the first frame and "
                    f"frame rate of now it would be {seconds:.4f} s; take back what was changed since, or press Bake Sand to "
                    "bake everything anew"
                )
            if frame < first_again and found["motion_hash"] != sim.motion_hash(found["seconds"]):
                raise BakeError(
                    f"Frame {frame} in the cache was baked with another animation of a collider or body; take back what was "
                    f"changed since, go to frame {frame} or an earlier one and press From Here, or press Bake Sand to bake "
                    "everything anew"
                )
            tolerance = found["tolerance"]
        return frame_tolerances(self.job, made, tolerance)

    def _write_frames(self, made, sim, first, wanted, tolerances):
        """Simulates from frame first, at which sim is, to the last wanted frame, and writes those that are wanted."""
        job, core = self.job, engine.core
        kept_count, last, missing = job.frame_count - len(wanted), wanted[-1], set(wanted)
        constant = constant_arrays(made)
        writer = core.Writer(
            job.folder,
            **tolerances,
            notes=make_notes(job, made),
            exact_count=made.body_count,
            engine=self.engine_name.encode("ascii", "replace").decode()[:63],
            threads=job.threads,
            byte_limit=job.byte_limit,
        )
        start, first_step = time.monotonic(), sim.info()["step_count"]
        stats.keep(job.folder, set(core.list_frames(job.folder)[0]) - missing)
        recorder = stats.Recorder(job.folder, made.scene.grain_count, start)
        try:
            for frame in range(first, last + 1):
                if frame > first:
                    # A graphics device goes on while this frame is written.
                    sim.advance(job.frame_seconds, ahead=job.frame_seconds if frame < last else 0.0)
                if frame in missing:
                    recorder.add(frame, sim.info(), time.monotonic())
                seconds = sim.info()["time"]
                tags = {
                    "seconds": seconds,
                    "settings_hash": made.scene.hash,
                    "motion_hash": sim.motion_hash(seconds),
                    "state_hash": sim.hash(),
                }
                if frame in missing:
                    self._write_frame(frame, made, sim, constant, writer, tags)
                elif core.frame_info(job.folder, frame)["state_hash"] != tags["state_hash"]:
                    raise BakeError(
                        f"Frame {frame} came out different from the one in the cache: it was baked by another version of "
                        "Barchan; press Bake Sand to bake everything anew"
                    )
                is_due = frame > job.frame_start and (frame - job.frame_start) % job.checkpoint_interval == 0
                keep = job.keep_interval > 0 and (frame - job.frame_start) % job.keep_interval == 0
                if frame == last or ((is_due or keep) and frame > first):
                    writer.push_checkpoint(frame, sim.save(), **tags, keep=keep and frame > job.frame_start)
                left, speed = -1.0, 0.0
                if frame > first:  # the first one is not simulated and would make the estimate too short
                    spent = max(time.monotonic() - start, 1e-6)
                    left = spent / (frame - first) * (last - frame)
                    speed = made.scene.grain_count * (sim.info()["step_count"] - first_step) / spent
                self._count(writer, kept_count, left, grain_steps=speed)
                self._stop_if_cancelled()
            writer.flush()
        except (core.Cancelled, KeyboardInterrupt):
            writer.flush()  # what is simulated is kept
            raise
        finally:
            self._count(writer, kept_count, -1.0)
            writer.close()
        lost = sim.info()["lost_count"]
        if lost:
            self.warnings.append(
                f"{lost} of {made.scene.grain_count} grains left the simulated space and stand still there"
            )
        now = sim.engine()
        if now["lost_count"]:
            self.warnings.append(f"The graphics device failed {now['lost_count']} times. {now['note']}".strip())
        self.engine_name = engine_text(sim)

    def _count(self, writer, kept_count, left, **changes):
        """What is durable by now."""
        info = writer.info()
        if info["frame_count"] == 0 and kept_count == 0:
            return
        self.baked_count = info["frame_count"]
        frame = info["last_frame"] if info["frame_count"] else self.progress.frame
        done = kept_count + info["frame_count"]
        self._advance_to("BAKING", frame=frame, frames_done=done, seconds_left=left, **changes)

    def _write_frame(self, frame, made, sim, constant, writer, tags):
        # The loads come first: lines of a frame that is not there are replaced by the next bake, but a frame without its
        # lines would have to be baked again.
        if made.body_names or made.collider_names:
            loads = sim.loads()
            rows = [*zip(made.body_names, loads["bodies"]), *zip(made.collider_names, loads["colliders"])]
            seconds = tags["seconds"]
            lines = [(frame, f"{seconds:.6f}", name, *(f"{x:.6g}" for x in load)) for name, load in rows]
            add_loads(self.job.folder, lines)
        births = constant["birth"]
        arrays = {
            "position": sim.positions(),
            "rotation": sim.orientations(),
            "velocity": sim.velocities(),
            "spin": sim.spins(),
            "age": np.maximum(tags["seconds"] - births, 0.0).astype(np.float32),
            "flags": sim.flags(),
            **{name: array for name, array in constant.items() if name != "birth"},
        }
        writer.push(frame, arrays, **tags)


def constant_arrays(made):
    """What does not change during a bake, of every element; and its birth (s), from which comes its age."""
    grains = made.scene.grains()
    return {
        "radius": grains["radii"],
        "shape": grains["shapes"],
        "material": grains["materials"],
        "source": made.sources,
        "id": np.arange(made.scene.grain_count, dtype=np.int32),
        "birth": grains["births"],
    }


def frame_tolerances(job, made, tolerance=None):
    """How far off numbers in frames may be, as keywords for the core. tolerance (m): of frames that are there."""
    if tolerance is None:
        tolerance = 0.0 if job.is_exact else TOLERANCE * made.least_radius
    spin = TURN_TOLERANCE / job.frame_seconds if tolerance else 0.0
    return {
        "tolerance": tolerance,
        "velocity_tolerance": tolerance / job.frame_seconds,
        "spin_tolerance": spin,
    }


def engine_text(sim):
    """What simulates: CPU, or GPU and its device."""
    found = sim.engine()
    return "CPU" if found["engine"] == "cpu" else f"GPU {found['device']}"


def frame_estimate(made, sim, tolerances):
    """Bytes that a frame will take on disk: that of as many grains, strewn, turning and moving at random, which packs worst.
    What does not change is in every tenth frame."""
    count = made.scene.grain_count
    positions = sim.positions()
    step = max(1, count // MEASURED_COUNT)
    measured = positions[::step]
    random = np.random.default_rng(0)
    edge = np.maximum(np.ptp(positions, axis=0), 1e-3) if count else np.ones(3)
    place = positions.min(axis=0) if count else np.zeros(3)
    turns = random.standard_normal((len(measured), 4))
    grains = made.scene.grains()
    arrays = {
        "position": (place + edge * random.random((len(measured), 3))).astype(np.float32),
        "rotation": (turns / np.linalg.norm(turns, axis=1, keepdims=True)).astype(np.float32),
        "velocity": random.standard_normal((len(measured), 3)).astype(np.float32),
        "spin": 20 * random.standard_normal((len(measured), 3)).astype(np.float32),
        "age": grains["births"][::step].astype(np.float32),
        "flags": random.integers(0, 2, len(measured), np.int32) * 2,
    }
    constant = {name: array[::step] for name, array in constant_arrays(made).items() if name != "birth"}
    core = engine.core
    measured_bytes = core.measure_frame(arrays, **tolerances) + core.measure_frame(constant, **tolerances) / 10
    return int(measured_bytes * count / max(1, len(measured))) + FRAME_OVERHEAD_BYTES


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
        line = f"[{'#' * filled}{'.' * (self.WIDTH - filled)}] {progress.line()}"
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
