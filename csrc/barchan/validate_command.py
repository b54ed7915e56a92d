"""The command `python -m barchan validate`: experiments of the literature, run and judged.

Comes in: names of experiments. Goes out: a line per number on standard output, a folder with report.html, pictures and
results.json; exit code 1 when a number is outside its band.
"""

import argparse
import os
import sys
import time

import barchan

REDRAW = 0.2  # s between two lines on a terminal
LOG_EVERY = 20.0  # s in a log


def add_command(commands):
    parser = commands.add_parser(
        "validate",
        help="run the physics against the literature and report every number",
        description="Runs experiments whose results are known from closed forms and the literature, and judges every "
        "number by its band. Writes report.html, pictures and results.json.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these experiments; --list shows them")
    parser.add_argument("--engine", choices=("cpu", "gl"), default="cpu", help="default cpu; gl runs the main ones only")
    parser.add_argument("--size", choices=("small", "full"), default="small", help="full takes hours")
    parser.add_argument("--out", default=os.path.join("out", "validation"), metavar="FOLDER", help="default out/validation")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="0 = all; the result is the same")
    parser.add_argument(
        "--measures", metavar="FILE", help="where the experiment presets writes its angles; default: the package's repose.json"
    )
    parser.add_argument("--kernel", help=argparse.SUPPRESS)  # of tests: a kernel that computes something else
    parser.add_argument("--list", action="store_true", help="name the experiments and their sources, run nothing")
    parser.set_defaults(run=run)


class Bar:
    """Share done and time left, by the wall time that each experiment took elsewhere."""

    def __init__(self, experiments, size, stream):
        self.costs = [max(experiment.seconds[size], 0.05) for experiment in experiments]
        self.names = [experiment.name for experiment in experiments]
        self.stream = stream
        self.start = time.monotonic()
        self.at = 0
        self.began = self.start
        self.shown = -1e9

    def begin(self, index):
        self.at = index
        self.began = time.monotonic()
        self.show("", index == 0)

    def show(self, note, is_due=False):
        now = time.monotonic()
        is_terminal = self.stream.isatty()
        if not is_due and now - self.shown < (REDRAW if is_terminal else LOG_EVERY):
            return
        self.shown = now
        done = sum(self.costs[: self.at])
        pace = (self.began - self.start) / done if done > 0 else 1.0
        inside = min((now - self.began) / max(pace, 1e-9), 0.95 * self.costs[self.at])
        left = pace * (sum(self.costs) - done - inside)
        text = "%d/%d %s%s: %.0f s, about %s left" % (
            self.at + 1, len(self.costs), self.names[self.at], " (%s)" % note if note else "", now - self.start, duration(left))
        self.stream.write("\r\x1b[K" + text if is_terminal else text + "\n")
        self.stream.flush()

    def clear(self):
        if self.stream.isatty():
            self.stream.write("\r\x1b[K")


def duration(seconds):
    seconds = int(seconds + 0.5)
    return "%d s" % seconds if seconds < 60 else "%d min" % (seconds // 60 + 1)


def chosen(names, engine):
    from .validation import EXPERIMENTS

    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError("There is no experiment '%s': expected some of %s." % (unknown[0], ", ".join(EXPERIMENTS)))
    if names:
        return [EXPERIMENTS[name] for name in names]
    return [experiment for experiment in EXPERIMENTS.values() if not experiment.on_request and (engine == "cpu" or experiment.gl)]


def print_result(result, stream):
    state = "met" if result.is_met else "MISSED"
    print("%s: %s, %.1f s%s" % (result.experiment.name, state, result.seconds, ": " + result.error if result.error else ""), file=stream)
    for check, found, is_met in result.outcomes():
        value = "nothing" if found is None else "%.4g" % found.mean
        if found is not None and found.half_width is not None:
            value += " +- %.2g" % found.half_width
        print("  %-6s %s: %s %s, band %.4g to %.4g" % ("" if is_met else "MISSED", check.what, value, check.unit, check.low, check.high), file=stream)
    stream.flush()


def run(arguments):
    from .validation import EXPERIMENTS, Lab, report, run_experiment

    if arguments.list:
        for experiment in EXPERIMENTS.values():
            print("%-20s %s (%s)" % (experiment.name, experiment.title, experiment.source))
        return 0
    experiments = chosen(arguments.names, arguments.engine)
    bar = Bar(experiments, arguments.size, sys.stderr)
    lab = Lab(arguments.engine, arguments.size, arguments.threads, arguments.kernel, bar.show)
    lab.measures = arguments.measures or os.path.join(os.path.dirname(__file__), "repose.json")
    results = []

    def write(is_stopped):
        about = {"version": barchan.__version__, "engine": arguments.engine, "size": arguments.size}
        about.update(is_stopped=is_stopped, seconds=round(time.monotonic() - bar.start, 1), grain_steps=lab.grain_steps)
        return report.write(arguments.out, results, about)

    is_stopped = False
    try:
        for index, experiment in enumerate(experiments):
            bar.begin(index)
            results.append(run_experiment(experiment, lab))
            bar.clear()
            print_result(results[-1], sys.stdout)
            data = write(index + 1 < len(experiments))  # a full run takes hours: what is done is on disk
    except KeyboardInterrupt:
        is_stopped = True
        bar.clear()
        if not results:
            raise
    checks = [check for experiment in data["experiments"] for check in experiment["checks"]]
    missed = sum(not check["is_met"] for check in checks)
    print("%d numbers, %d outside their band: %s" % (len(checks), missed, os.path.join(arguments.out, "report.html")))
    if is_stopped:
        print("barchan: stopped; the report holds the experiments that were done.", file=sys.stderr)
        return 130
    return 0 if data["is_met"] else 1
