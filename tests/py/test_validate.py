"""python -m barchan validate: the small suite meets its bands, the fits find what was put in, the report says it all."""

import json
import os
import subprocess
import sys

import barchan
import numpy as np
import pytest
from barchan import __main__ as command
from barchan.validation import EXPERIMENTS, Lab, lab, measure, report, run_experiment

QUICK = ("chung_elastic", "slip_to_roll")
# Half of the suite's time; with BARCHAN_VALIDATE=all, as setup.py test --all has it.
LONG = ("beverloo", "compression", "dosta_silo", "oedometer", "penetration", "repose")
WANTED = [
    name
    for name, experiment in EXPERIMENTS.items()
    if not experiment.on_request and (name not in LONG or os.environ.get("BARCHAN_VALIDATE") == "all")
]


@pytest.fixture(scope="module")
def shared_lab():
    """One lab for all: beds are settled once."""
    return Lab()


@pytest.mark.parametrize("name", WANTED)
def test_every_band_is_met_at_small_size(shared_lab, name):
    result = run_experiment(EXPERIMENTS[name], shared_lab)
    for check, found, is_met in result.outcomes():
        print(check.what, found, (check.low, check.high), is_met)
    assert result.is_met, result.error


@pytest.mark.skipif(os.environ.get("BARCHAN_VALIDATE") != "all", reason="a software device is slow: BARCHAN_VALIDATE=all")
@pytest.mark.parametrize("name", ["chung_restitution", "slip_to_roll", "chung_oblique"])
def test_the_main_bands_are_met_on_gl(name):
    if not any(device["is_usable"] for device in barchan.devices()):
        pytest.skip("no GPU here")
    result = run_experiment(EXPERIMENTS[name], Lab("gl"))
    for check, found, is_met in result.outcomes():
        print(check.what, found, (check.low, check.high), is_met)
    assert result.is_met, result.error


def test_every_number_has_a_band_with_a_source():
    names = [check.name for experiment in EXPERIMENTS.values() for check in experiment.checks]
    assert len(names) > 30
    for experiment in EXPERIMENTS.values():
        assert experiment.source and experiment.method and set(experiment.seconds) == {"small", "full"}
        for check in experiment.checks:
            assert check.source and check.low < check.high, (experiment.name, check)


def test_the_same_run_gives_the_same_numbers():
    first, second = (run_experiment(EXPERIMENTS["slip_to_roll"], Lab(threads=count)) for count in (1, 2))
    assert first.values == second.values


def run_command(*words):
    return subprocess.run(
        [sys.executable, "-m", "barchan", "validate", *words], capture_output=True, text=True, timeout=300, check=False
    )


def test_the_command_writes_numbers_pictures_and_a_page(tmp_path):
    found = run_command(*QUICK, "--out", str(tmp_path / "deep" / "out"))
    print(found.stdout, found.stderr)
    assert found.returncode == 0 and "0 outside their band" in found.stdout and "left" in found.stderr
    data = json.loads((tmp_path / "deep" / "out" / "results.json").read_text())
    assert [experiment["name"] for experiment in data["experiments"]] == list(QUICK)
    assert data["is_met"] and data["engine"] == "cpu" and data["size"] == "small" and not data["is_stopped"]
    for experiment in data["experiments"]:
        assert experiment["checks"] and all(check["is_met"] and check["source"] for check in experiment["checks"])
        for plot in experiment["plots"]:
            assert (tmp_path / "deep" / "out" / (plot + "." + data["pictures"])).stat().st_size > 1000
    page = (tmp_path / "deep" / "out" / "report.html").read_text()
    assert "Chung and Ooi 2011" in page and "missed" not in page


def test_a_missed_band_is_said_and_is_exit_code_1(tmp_path, monkeypatch, capsys):
    def run(here):
        return {"answer": 41.0, "other": measure.estimate([1.0, 2.0, 3.0])}, []

    checks = (lab.Check("answer", "the answer", 42, 43, "Adams 1979"), lab.Check("other", "another", 0, 3, "none"))
    wrong = lab.Experiment("wrong", "Wrong", "nobody", "none", checks, run, {"small": 1, "full": 1})
    monkeypatch.setitem(EXPERIMENTS, "wrong", wrong)
    assert command.main(["validate", "wrong", "--out", str(tmp_path)]) == 1
    assert "MISSED the answer: 41" in capsys.readouterr().out
    data = json.loads((tmp_path / "results.json").read_text())
    assert [check["is_met"] for check in data["experiments"][0]["checks"]] == [False, True]
    assert data["experiments"][0]["checks"][1]["half_width_95"] == pytest.approx(4.30 / 3**0.5, rel=1e-6)
    assert "missed" in (tmp_path / "report.html").read_text()


def test_a_number_that_is_missing_or_no_number_is_a_miss():
    check = lab.Check("x", "x", 0, 1, "none")
    experiment = lab.Experiment("x", "x", "x", "x", (check,), None, {"small": 1, "full": 1})
    for values in ({}, {"x": float("nan")}, {"x": 2.0}):
        assert not lab.Result(experiment, values, [], [], 0.0).is_met
    assert lab.Result(experiment, {"x": 0.5}, [], [], 0.0).is_met


def test_a_sim_that_fails_is_a_miss_with_its_sentence(tmp_path, monkeypatch, capsys):
    def run(here):
        raise barchan.UnstableError("Grain 3 is too fast.")

    broken = lab.Experiment("broken", "Broken", "x", "x", (lab.Check("x", "x", 0, 1, "x"),), run, {"small": 1, "full": 1})
    monkeypatch.setitem(EXPERIMENTS, "broken", broken)
    assert command.main(["validate", "broken", "--out", str(tmp_path)]) == 1
    assert "Grain 3 is too fast." in capsys.readouterr().out


def test_ctrl_c_keeps_what_is_done(tmp_path, monkeypatch, capsys):
    def run(here):
        raise KeyboardInterrupt

    stopped = lab.Experiment("stopped", "x", "x", "x", (lab.Check("x", "x", 0, 1, "x"),), run, {"small": 1, "full": 1})
    monkeypatch.setitem(EXPERIMENTS, "stopped", stopped)
    assert command.main(["validate", "slip_to_roll", "stopped", "--out", str(tmp_path)]) == 130
    assert "the report holds" in capsys.readouterr().err
    data = json.loads((tmp_path / "results.json").read_text())
    assert data["is_stopped"] and [e["name"] for e in data["experiments"]] == ["slip_to_roll"]


def test_an_unknown_name_is_refused_and_the_list_names_all(capsys):
    assert command.main(["validate", "sandwich"]) == 1
    assert "no experiment 'sandwich'" in capsys.readouterr().err
    assert command.main(["validate", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in EXPERIMENTS)


def test_pictures_need_no_matplotlib(tmp_path):
    plot = lab.Plot("p", "A <title>", "x", "y", [("a", [1, 2, 3], [1, 10, 100], "line"), ("b", [2], [0.0], "points")], log_y=True)
    report.draw_svg(plot, tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert text.startswith("<svg") and "polyline" in text and "A &lt;title&gt;" in text and "nan" not in text


# ---- fits find what was put in ---------------------------------------------------------------------------------------------

SAMPLES = np.random.default_rng(5)


def test_gamma_fit():
    a, b, gap = measure.fit_gamma(SAMPLES.gamma(3.36, 0.30, 20000))
    print(a, b, gap)
    assert a == pytest.approx(3.36, rel=0.04) and b == pytest.approx(0.30, rel=0.04) and gap < 0.012
    assert measure.fit_gamma(SAMPLES.uniform(0, 2, 20000))[2] > 0.05


def test_exponential_fit():
    x = np.linspace(0, 12, 120001)
    below = np.cumsum((1 - 0.72 * np.exp(-(x**2))) * np.exp(-1.46 * x))
    f = np.interp(SAMPLES.uniform(0, 1, 20000), below / below[-1], x)
    a, b, beta = measure.fit_exponential(f)
    print(a, b, beta)
    assert a == pytest.approx(2.78, rel=0.1) and b == pytest.approx(0.72, abs=0.05) and beta == pytest.approx(1.46, rel=0.03)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_tail_fit(alpha):
    x = np.linspace(0, 15, 150001)
    below = np.cumsum(np.exp(-(x**alpha)))
    f = np.interp(SAMPLES.uniform(0, 1, 100000), below / below[-1], x)
    c, found = measure.fit_tail(f)
    print(c, found)
    assert found == pytest.approx(alpha, abs=0.15)


def test_robust_line_passes_over_strays():
    x = np.linspace(0, 1, 100)
    y = 3 - 2 * x + SAMPLES.normal(0, 0.01, 100)
    y[::17] += 5
    slope, offset, _ = measure.robust_line(x, y)
    assert slope == pytest.approx(-2, abs=0.03) and offset == pytest.approx(3, abs=0.03)
    assert measure.robust_line(np.arange(6), [0, 0, 0, 0, 0, 7])[:2] == pytest.approx((0, 0), abs=1e-6)


def test_half_of_exponential_forces_carry_what_theory_says():
    assert measure.upper_half_share(SAMPLES.exponential(1, 200000)) == pytest.approx(0.5 + np.log(2) / 2, abs=0.005)


def test_distance_of_samples():
    a = SAMPLES.normal(0, 1, 20000)
    assert measure.distance(a, SAMPLES.normal(0, 1, 20000)) < 0.02
    assert measure.distance(a, SAMPLES.normal(1, 1, 20000)) == pytest.approx(0.3829, abs=0.02)
