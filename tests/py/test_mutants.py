"""The validation notices a wrong contact law: the module is built again with one mistake each (meson.build)."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import barchan
import pytest

# Seconds, and together they look at every term: friction, its cap, its damping, the inertia.
SENSITIVE = ("chung_oblique", "chung_spinning", "slip_to_roll")
BUILD = pathlib.Path(os.environ.get("BARCHAN_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))


def validate(tmp_path, mutant):
    """Exit code and the names of the numbers outside their band."""
    package = tmp_path / "path" / "barchan"
    shutil.copytree(pathlib.Path(barchan.__file__).parent, package)
    if mutant:
        found = sorted((BUILD / "release").glob("barchan_mutant_%s*.so" % mutant))
        if not found:
            pytest.skip("no mutant '%s' in %s: python3 setup.py test python builds it" % (mutant, BUILD))
        (module,) = package.glob("_core*.so")
        shutil.copy(found[0], module)
    result = subprocess.run(
        [sys.executable, "-m", "barchan", "validate", *SENSITIVE, "--out", str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "path")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    print(result.stdout, result.stderr)
    data = json.loads((tmp_path / "out" / "results.json").read_text())
    missed = {e["name"] + "." + c["name"] for e in data["experiments"] for c in e["checks"] if not c["is_met"]}
    return result.returncode, missed


def test_the_law_as_it_is_passes(tmp_path):
    assert validate(tmp_path, None) == (0, set())


@pytest.mark.parametrize(
    "mutant, expected",
    [
        ("damping", "slip_to_roll.end_viscous"),  # tangential damping pushes
        ("cap", "chung_oblique.error_sliding"),  # friction without Coulomb's limit
        ("inertia", "chung_oblique.error_lever"),  # half the moment of inertia
    ],
)
def test_a_wrong_law_is_noticed(tmp_path, mutant, expected):
    code, missed = validate(tmp_path, mutant)
    assert code == 1 and expected in missed, missed
