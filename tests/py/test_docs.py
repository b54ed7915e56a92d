"""The documents say what is so: code in docs/python.md runs, links lead somewhere, tests that docs/compare.md names exist."""

import ast
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TESTS = ROOT / "tests"


def code_blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("index", range(3))
def test_the_code_of_the_python_page_runs(index, tmp_path):
    blocks = code_blocks(DOCS / "python.md")
    assert len(blocks) == 3
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", blocks[index]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0 and done.stderr == ""


def test_the_first_example_takes_ten_lines():
    """Statements, however they are broken."""
    assert len(ast.parse(code_blocks(DOCS / "python.md")[0]).body) <= 10


def documents():
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")]


def test_links_and_pictures_lead_somewhere():
    missing = []
    for path in documents():
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text) + re.findall(r'src="([^"]+)"', text):
            if "://" not in target and not (path.parent / target).exists():
                missing.append(f"{path.name}: {target}")
    assert not missing, missing


def test_pictures_of_windows_are_small():
    large = [path.name for path in (DOCS / "window").glob("*.png") if path.stat().st_size > 150_000]
    assert not large, large


def named_tests(text):
    """(file, name) of every test named as `path/test_x.py::test_y` or, in C, `test_x.c::test_y`."""
    return re.findall(r"`((?:[\w/]+/)?[\w]+\.(?:py|c))(?:::(\w+))?`", text)


def test_every_item_of_the_comparison_names_tests_that_exist():
    text = (DOCS / "compare.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| \d+ ", line)]
    assert sorted({int(row.split("|")[1]) for row in rows}) == list(range(1, 26))
    wrong = []
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        found = named_tests(cells[3])
        if not found and not cells[3].startswith("none"):
            wrong.append(f"item {cells[0]} names no test")
        for file, name in found:
            path = TESTS / file
            if not path.is_file():
                wrong.append(f"item {cells[0]}: there is no tests/{file}")
            elif name and not re.search(rf"^(?:static void |def |void ){name}\b", path.read_text(encoding="utf-8"), re.M):
                wrong.append(f"item {cells[0]}: there is no {name} in tests/{file}")
    assert not wrong, wrong


def test_a_name_that_does_not_exist_would_be_noticed():
    assert named_tests("`py/test_docs.py::test_nothing`, `blender/test_bake.py`") == [
        ("py/test_docs.py", "test_nothing"),
        ("blender/test_bake.py", ""),
    ]
