"""What an experiment is, and what it runs in.

Comes in: engine, size, where progress goes. Goes out: Result per experiment: every number with its band and source.
"""

import dataclasses
import time

import barchan
import numpy as np

from .measure import Estimate

SLICE_STEPS = 64  # between two looks at Ctrl-C and the clock
INFINITE = float("inf")


@dataclasses.dataclass(frozen=True)
class Check:
    """One number and the band it must be in."""

    name: str  # key of the number that run() returns
    what: str  # for a person
    low: float
    high: float
    source: str  # where the band comes from
    unit: str = ""


@dataclasses.dataclass(frozen=True)
class Plot:
    """Lines and points for one picture. series: (label, x, y, kind), kind one of "line", "dash", "points"."""

    name: str
    title: str
    x: str
    y: str
    series: list
    log_x: bool = False
    log_y: bool = False


@dataclasses.dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    source: str
    method: str  # how it is set up and measured, one or two sentences
    checks: tuple
    run: callable  # Lab -> (dict of numbers: float or Estimate, list of Plot)
    seconds: dict  # wall time on two idle cores by size, for the time left
    gl: bool = False  # one of the main ones: small enough for a software device
    on_request: bool = False  # runs by name only


@dataclasses.dataclass
class Result:
    experiment: Experiment
    values: dict  # name -> float or Estimate
    plots: list
    notes: list
    seconds: float
    error: str = ""

    def outcomes(self):
        """(check, estimate or None, is met) of every check."""
        for check in self.experiment.checks:
            found = self.values.get(check.name)
            found = Estimate(float(found), None, 1) if isinstance(found, (int, float, np.floating)) else found
            yield check, found, found is not None and check.low <= found.mean <= check.high

    @property
    def is_met(self):
        return not self.error and all(is_met for _, _, is_met in self.outcomes())


class Lab:
    """Sims of one run: one engine, one size; beds that several experiments measure are settled once."""

    def __init__(self, engine="cpu", size="small", threads=0, kernel=None, progress=None, measures=None):
        self.engine, self.size, self.threads, self.kernel = engine, size, threads, kernel
        self.progress = progress or (lambda note: None)
        self.measures = measures  # file for the presets' angles
        self.notes = []
        self.grain_steps = 0
        self._shared = {}

    def pick(self, small, full):
        return small if self.size == "small" else full

    def seeds(self, small, full):
        return range(1, 1 + self.pick(small, full))

    def sim(self, scene, **settings):
        return barchan.Sim(scene, threads=self.threads, engine=self.engine, kernel=self.kernel, **settings)

    def advance(self, sim, seconds, note=""):
        """Advances in slices, so that Ctrl-C and the clock are looked at. Slices end where a step ends, wherever the clock
        stands: the same run gives the same bits."""
        begin = sim.info()
        end = begin["time"] + seconds
        piece = SLICE_STEPS * begin["step_seconds"]
        while True:
            left = end - sim.info()["time"]
            if left <= 1e-12 + 1e-9 * end:
                break
            sim.advance(min(piece, left))
            self.progress(note)
        self.grain_steps += (sim.info()["step_count"] - begin["step_count"]) * begin["grain_count"]

    def shared(self, key, make):
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def note(self, sentence):
        if sentence not in self.notes:
            self.notes.append(sentence)


def run_experiment(experiment, lab):
    lab.notes = []
    start = time.monotonic()
    values, plots, error = {}, [], ""
    try:
        values, plots = experiment.run(lab)
    except barchan.Error as problem:
        error = str(problem)
    return Result(experiment, values, plots, list(lab.notes), time.monotonic() - start, error)
