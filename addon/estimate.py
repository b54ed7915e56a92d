# SPDX-License-Identifier: GPL-3.0-or-later
"""estimate: a job -> what its bake will take, on a thread. Imports no bpy.

Comes in: job.Job. Goes out: Estimate: grains, spheres, substeps, memory, disk and time from the first steps of the real scene on
this machine, engine and device; or one sentence. Nothing is written.
"""

import dataclasses
import time

from . import assembly, bake, engine
from .job import BakeError

RUN_SECONDS = 0.5  # s of wall clock that the micro-run takes, after one step that makes the lists
SPHERE_BYTES = 330  # memory of the simulator per sphere in a heap, measured with 53,508 spheres; 273 before they touch
# A heap at rest is slower than the strewn grains of the first steps, for its spheres touch: 4.9 against 2.9 million grain-steps/s
# were measured with 13,377 tetrahedra.
HEAP_FACTOR = 1.7


@dataclasses.dataclass(frozen=True)
class Estimate:
    grain_count: int
    sphere_count: int
    substeps: int  # per frame
    memory: int  # bytes
    disk: int  # bytes of all frames
    seconds: float  # of the whole bake
    grain_steps: float  # per second, in the micro-run
    engine: str
    warnings: tuple  # of the assembly

    def lines(self):
        """For people."""
        return (
            f"{self.grain_count:,} grains, {self.sphere_count:,} spheres",
            f"{self.substeps:,} substeps per frame",
            f"About {bake.duration(self.seconds)}, {bake.size(self.disk)} on disk",
            f"{bake.size(self.memory)} of memory, on {self.engine}",
            f"{bake.rate(self.grain_steps)} grain-steps/s at the start",
        )


class Estimation(bake.Worker):
    """One estimate under way. Any thread may look at result, error and is_finished."""

    name = "estimate"

    def __init__(self, the_job):
        super().__init__()
        self.job = the_job
        self.result = None
        self.error = ""
        self.is_finished = False

    def text(self):
        return "Running the first steps"

    def run(self):
        """Never raises: the outcome is in result or error, both empty when it was cancelled."""
        core = engine.core
        try:
            self.result = self._measure()
        except core.Cancelled:
            pass
        except (BakeError, core.Error, ValueError, OSError, MemoryError) as error:
            self.error = engine.sentence(error)
        finally:
            self._sim = None
            self.is_finished = True

    def _measure(self):
        job, warnings = self.job, []
        made = assembly.assemble(job, warnings, self._cancel, self._stop_if_cancelled)
        sim = engine.core.Sim(made.scene, threads=job.threads, engine=bake.ENGINES[job.engine])
        self._sim = sim
        self._stop_if_cancelled()
        step = sim.info()["step_seconds"]
        disk = job.frame_count * bake.frame_estimate(made, sim, bake.frame_tolerances(job, made))
        sim.advance(step)  # the first one makes the lists and warms caches
        start, first, chunk = time.monotonic(), sim.info()["step_count"], 1
        while time.monotonic() - start < RUN_SECONDS and sim.info()["time"] < (job.frame_count - 1) * job.frame_seconds:
            sim.advance(chunk * step)
            chunk = min(2 * chunk, 64)
            self._stop_if_cancelled()
        spent = max(time.monotonic() - start, 1e-6)
        steps = max(1, sim.info()["step_count"] - first)
        substeps = max(1, round(job.frame_seconds / step + 0.499999))
        return Estimate(
            grain_count=made.scene.grain_count - made.body_count,
            sphere_count=made.scene.sphere_count,
            substeps=substeps,
            memory=SPHERE_BYTES * made.scene.sphere_count,
            disk=disk,
            seconds=HEAP_FACTOR * spent / steps * substeps * max(0, job.frame_count - 1),
            grain_steps=made.scene.grain_count * steps / spent,
            engine=bake.engine_text(sim),
            warnings=tuple(warnings),
        )


running = None  # the Estimation under way in this Blender; set on the main thread


def stop_running():
    global running
    if running is not None:
        running.cancel()
        running.join()
        running = None
