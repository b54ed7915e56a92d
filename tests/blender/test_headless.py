# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m barchan bake` and the command `barchan` of Blender: progress, options, exit codes, signals, other add-ons."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys

import harness
from harness import FOLDER, bpy, check, check_equal, room

# What another add-on may do to everybody: print, and raise from every handler.
NOISY = """
import bpy, sys
bl_info = {"name": "Noisy", "blender": (4, 2, 0), "category": "Object"}
def bad(*_):
    print("{noise on standard output", flush=True)
    raise RuntimeError("another add-on's handler")
def lists():
    handlers = bpy.app.handlers
    return handlers.frame_change_pre, handlers.frame_change_post, handlers.load_post, handlers.save_pre, handlers.depsgraph_update_post
def register():
    bad_ = bpy.app.handlers.persistent(bad)
    for one in lists():
        one.insert(0, bad_)
def unregister():
    pass
"""

# What a Blender program does with the words that `python -m barchan bake --blender` gives it, by the module of this Python.
PROGRAM = """#!{python}
import sys
if sys.argv[1:] == ["--version"]:
    print("Blender {version}")
    sys.exit(0)
import os
words = sys.argv[1:]
print("noise of the program", words, flush=True)
assert words[:1] == ["--background"] and words[-1].endswith(".blend"), words
import bpy, addon_utils
addon = words[words.index("--addons") + 1]
assert addon_utils.enable(addon) is not None
if {is_noisy}:
    sys.path.insert(0, {folder!r})
    import noisy
    noisy.register()
import importlib
words = words[words.index("--command") + 1 :]
assert words[0] == "barchan", words
code = importlib.import_module(addon + ".headless").main(words[1:])
sys.stdout.flush()
os._exit(code)
"""


def environment(**changes):
    package = pathlib.Path(room("engine").core.__file__).parent.parent
    return {**os.environ, "PYTHONPATH": str(package), "PYTHONUNBUFFERED": "1", **changes}


def command(*words):
    return [sys.executable, "-m", "barchan", "bake", *map(str, words)]


def run(*words, **changes):
    """Exit code, the JSON objects of standard output, and standard error."""
    done = subprocess.run(command(*words), capture_output=True, text=True, env=environment(**changes))
    lines = done.stdout.splitlines()
    try:
        found = [json.loads(line) for line in lines]
    except ValueError:
        raise harness.Failure(f"standard output holds more than JSON: {lines}\n{done.stderr}")
    return done.returncode, found, done.stderr


def save(name, frame_end=6, edge=0.4, **settings):
    """A saved file with sand that was never baked; its cache folder is beside it."""
    scene = harness.small_scene(f"//{name}_cache/", frame_end=frame_end, edge=edge, radius=0.03)
    scene.barchan.checkpoint_interval = 4
    for key, value in settings.items():
        setattr(scene.barchan, key, value)
    path = FOLDER / f"{name}.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def frames(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).glob("frame_*.sand")}


_expected = {}


def expected():
    """The frames that an operator bakes from the same scene."""
    if not _expected:
        scene = harness.small_scene(FOLDER / "by_operator", frame_end=6, edge=0.4, radius=0.03)
        scene.barchan.checkpoint_interval = 4
        bpy.ops.barchan.bake()
        _expected.update(frames(scene.barchan.folder))
    return dict(_expected)


def test_a_file_is_baked_reported_and_saved_with_its_sand():
    path = save("plain")
    code, found, errors = run(path)
    check_equal(code, 0, f"exit code ({errors})")
    check_equal(len(found), 1, "JSON objects")
    report = found[0]
    print(f"  {report}")
    check_equal((report["state"], report["frames_done"], report["baked"]), ("DONE", 6, 6), "outcome")
    check("100 % (6/6" in errors or "Baked" in errors, f"no progress in {errors!r}")
    check(frames(FOLDER / "plain_cache") == expected(), "the frames differ from those of the operator")
    bpy.ops.wm.open_mainfile(filepath=str(path))
    scene = bpy.context.scene
    check(scene.barchan.carrier is not None, "the saved file has no sand")
    check_equal(len(harness.carrier_positions(scene)), report["grains"], "grains in the saved file")
    scene.frame_set(6)
    check_equal(room("playback").message(scene), "", "message at frame 6")
    before = path.read_bytes()
    code, found, errors = run(path, "--resume")
    check_equal((code, found[-1]["baked"], found[-1]["saved"]), (0, 0, ""), f"a second run with --resume ({errors})")
    check(path.read_bytes() == before, "a file that shows its bake was written again")


def test_options_and_json_lines():
    path = save("options")
    target, folder = FOLDER / "farm.blend", FOLDER / "farm cache"
    before = path.read_bytes()
    words = ("--json", "--frames", "1:4", "--folder", folder, "--threads", "1", "--engine", "cpu", "--save-as", target)
    code, found, errors = run(path, *words)
    check_equal(code, 0, f"exit code ({errors})")
    progress = [one for one in found if one["event"] == "progress"]
    done = [one["frames_done"] for one in progress]
    check(done == sorted(done) and done[-1] == 4 and progress[-1]["percent"] == 100, f"progress {progress}")
    check(any(one["grain_steps_per_second"] > 0 for one in progress), f"no speed in {progress}")
    check_equal([found[-1][key] for key in ("event", "state", "frames", "engine")], ["end", "DONE", [1, 4], "CPU"], "end")
    wanted = {name: data for name, data in expected().items() if name <= "frame_000004.sand"}
    check(frames(folder) == wanted, "the frames differ from those of the operator")
    check(path.read_bytes() == before, "--save-as wrote the file itself too")
    code, found, errors = run(target, "--resume", "--no-save")
    check_equal((code, found[-1]["baked"], found[-1]["folder"]), (0, 2, str(folder)), f"extended ({errors})")
    check(frames(folder) == expected(), "the extended frames differ")
    code, found, errors = run(target, "--from-frame", "5", "--no-save")
    check_equal((code, found[-1]["baked"]), (0, 2), f"from frame 5 ({errors})")
    check(frames(folder) == expected(), "the frames baked again differ")


def test_failures_are_one_sentence_and_a_code():
    path = save("bad")
    empty = FOLDER / "empty.blend"
    harness.new_file()
    bpy.ops.wm.save_as_mainfile(filepath=str(empty))
    torn = FOLDER / "torn.blend"
    torn.write_bytes(b"BLENDER-v402" + bytes(100))
    cases = (
        ((FOLDER / "missing.blend",), 1, "There is no file"),
        ((empty,), 1, "There is no sand in this scene"),
        ((torn,), 1, "cannot open"),
        ((path, "--scene", "Nowhere"), 1, "There is no scene 'Nowhere'"),
        ((path, "--frames", "9:3"), 1, "The frame range is reversed"),
        ((path, "--from-frame", "99"), 1, "Frame 99 is not in the range"),
        ((path, "--frames", "1-9"), 2, "is no frame range"),
        ((path, "--engine", "abacus"), 2, "invalid choice"),
        ((path, "--blender", FOLDER / "no_blender"), 1, "There is no program"),
        ((path, "--blender", "/bin/echo"), 1, "is no Blender"),
        ((path, "--install", FOLDER / "no.zip"), 1, "There is no file"),
    )
    for words, wanted, part in cases:
        code, _found, errors = run(*words)
        check_equal(code, wanted, f"exit code of {words} ({errors})")
        check(part in errors and "Traceback" not in errors, f"{words} says {errors!r}, expected {part!r}")
    check(not (FOLDER / "bad_cache").exists(), "a refused bake made a folder")
    code, _found, errors = run(path, BLENDER_USER_RESOURCES=str(FOLDER / "nobody"))
    if harness.ZIP:
        check(code == 1 and "not installed in this Blender" in errors, f"without the extension: {code}, {errors!r}")


def start(path, *words):
    return subprocess.Popen(
        command(path, "--json", *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )


def until_frame(process, count):
    for line in process.stdout:
        found = json.loads(line)
        if found.get("frames_done", 0) >= count:
            return
    raise harness.Failure(f"the bake ended before {count} frames: {process.stderr.read()}")


def test_signals_stop_a_bake_and_kill_spoils_nothing():
    path = save("long", frame_end=60, edge=0.5)
    whole = FOLDER / "whole"
    check_equal(run(path, "--no-save", "--folder", whole)[0], 0, "exit code of a bake in peace")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        process = start(path, "--no-save", "--resume")
        until_frame(process, {signal.SIGINT: 3, signal.SIGTERM: 12, signal.SIGKILL: 25}[number])
        process.send_signal(number)
        output, errors = process.communicate()
        if number == signal.SIGKILL:
            check_equal(process.returncode, -signal.SIGKILL, "code of a killed process")
            continue
        check_equal(process.returncode, 128 + number, f"exit code after {number.name} ({errors})")
        check_equal(json.loads(output.splitlines()[-1])["state"], "STOPPED", "state")
        check("--resume goes on" in errors, errors)
    there = frames(FOLDER / "long_cache")
    check(25 <= len(there) < 60, f"{len(there)} frames are there after the kills")
    code, found, errors = run(path, "--resume")
    check_equal(code, 0, f"exit code of the last run ({errors})")
    print(f"  {len(there)} frames were kept, {found[-1]['baked']} baked at last")
    check(frames(FOLDER / "long_cache") == frames(whole), "the resumed frames differ from those of one bake")


def test_a_blender_program_with_an_add_on_that_raises_everywhere():
    if not harness.ZIP:
        return
    path = save("noisy")
    (FOLDER / "noisy.py").write_text(NOISY)
    program = FOLDER / "programs" / "blender"
    program.parent.mkdir()
    text = PROGRAM.format(python=sys.executable, version="4.2.0", folder=str(FOLDER), is_noisy=True)
    program.write_text(text)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    code, found, errors = run(path, "--json", "--blender", program)
    check_equal(code, 0, f"exit code ({errors})")
    check_equal(found[-1]["state"], "DONE", "state")
    check("another add-on's handler" in errors and "{noise on standard output" in errors, "the other add-on did not run")
    check(frames(FOLDER / "noisy_cache") == expected(), "the frames differ")
    program.write_text(PROGRAM.format(python=sys.executable, version="3.4.1", folder="", is_noisy=False))
    code, found, errors = run(path, "--blender", program)
    check_equal(code, 1, "exit code of an old Blender")
    check("is Blender 3.4, and Barchan needs 4.2 or later" in errors, errors)


def test_the_command_of_blender_bakes_the_open_file_and_returns_its_code():
    path = save("open")
    headless = room("headless")
    check_equal(headless.main(["bake", "--no-save"]), 0, "code")
    check(frames(FOLDER / "open_cache") == expected(), "the frames differ")
    check(bpy.context.scene.barchan.carrier is not None, "the sand is not shown in the open file")
    check_equal(headless.main(["boil"]), 2, "code of a wrong command")
    harness.new_file()
    check_equal(headless.main(["bake"]), 1, "code in an empty file")
    check(path.exists(), "the file is gone")


if __name__ == "__main__":
    harness.main(globals())
