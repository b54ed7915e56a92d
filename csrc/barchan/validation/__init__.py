"""Barchan's physics against the literature: experiments as data, their bands and where these come from.

Comes in: names, engine, size. Goes out: results, a report (docs/validation.md). NumPy and barchan only.
"""

from . import flow, gas, heaps, impacts, report, rest
from .lab import Lab, run_experiment

EXPERIMENTS = {experiment.name: experiment for module in (rest, heaps, flow, gas, impacts) for experiment in module.EXPERIMENTS}

__all__ = ["EXPERIMENTS", "Lab", "report", "run_experiment"]
