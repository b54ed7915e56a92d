"""Statistics of a bake and their plots: whole after a stop and a resume, drawn as SVG, freed with the frames."""

import csv
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from test_addon_bake import LAST, finish

from barchan import plot

STEADY = "frame seconds kinetic_energy potential_energy grains asleep contacts".split()


def rows(folder):
    with open(folder / "stats.csv", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def baked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plot") / "cache"
    assert finish(folder)["state"] == "DONE"
    return folder


def test_every_frame_has_a_line_and_energy_is_lost(baked):
    found = rows(baked)
    assert [int(row["frame"]) for row in found] == list(range(1, LAST + 1))
    energy = [float(row["kinetic_energy"]) + float(row["potential_energy"]) for row in found]
    print("energy from", energy[0], "to", energy[-1], "J; speed", found[-1]["grain_steps"])
    assert energy[-1] < energy[0] and float(found[-1]["grain_steps"]) > 0
    assert int(found[0]["steps"]) == 0 and all(int(row["steps"]) > 0 for row in found[1:])
    assert int(found[-1]["contacts"]) > 0


def test_lines_after_a_torn_file_and_a_resume_are_those_of_one_bake(baked, tmp_path):
    folder = tmp_path / "cache"
    assert finish(folder, last=10)["state"] == "DONE"
    with open(folder / "stats.csv", "a", encoding="utf-8") as stream:
        stream.write("11,0.4,1.0")  # what a crash leaves of a line
    assert finish(folder, resume=True)["state"] == "DONE"
    found, expected = rows(folder), rows(baked)
    assert [[row[name] for name in STEADY] for row in found] == [[row[name] for name in STEADY] for row in expected]


def test_the_page_is_svg_with_four_plots(baked, tmp_path):
    text = plot.page(str(baked))
    root = xml.etree.ElementTree.fromstring(text)
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text") if element.get("class") == "title"]
    assert titles == ["Energy", "Grains", "Speed of the bake", "Force on Crate"]
    lines = list(root.iter("{http://www.w3.org/2000/svg}polyline"))
    assert len(lines) == 2 + 2 + 1 + 3
    assert all(len(line.get("points").split()) >= LAST - 1 for line in lines)
    out = tmp_path / "page.svg"
    command = [sys.executable, "-m", "barchan", "plot", str(baked), "--out", str(out), "--object", "Floor"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, str(out)), done.stderr
    assert "Force on Floor" in out.read_text()
    command[-1] = "Nobody"
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "'Crate', 'Floor'" in done.stderr, done.stderr


def test_a_file_of_somebody_else_is_left_alone(baked, tmp_path):
    with pytest.raises(ValueError, match="no statistics"):
        plot.page(str(tmp_path))
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "stats.csv").write_text("mine\n")
    (folder / "plots.svg").write_text("mine\n")
    assert finish(folder, last=3)["state"] == "DONE"
    assert (folder / "stats.csv").read_text() == "mine\n"
    (folder / "stats.csv").write_text((baked / "stats.csv").read_text())
    with pytest.raises(ValueError, match="not Barchan's"):
        plot.save(str(folder))
    assert (folder / "plots.svg").read_text() == "mine\n"


def test_ticks_are_round_and_span_the_numbers():
    for low, high in ((0.0, 1.0), (-3.2, 17.0), (5.0, 5.0), (0.0, 4.9e6)):
        found = plot.ticks(low, high)
        assert found[0] <= low and found[-1] >= high and 2 <= len(found) <= 9
