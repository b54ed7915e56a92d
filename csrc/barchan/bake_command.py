"""The command `python -m barchan bake`: a .blend file -> its baked frames, with a Blender that is found here.

Comes in: the path of the file and options. Goes out: this process turned into Blender (as a module of this Python, or the
program), where the add-on bakes; its exit code is the command's. The options are listed here once, for the add-on's own
command `blender -b FILE.blend --command barchan bake` too.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import barchan

ADDON = "bl_ext.user_default.barchan"
OLDEST = (4, 2)
ENGINES = ("auto", "cpu", "gpu")


def frame_range(text):
    try:
        first, last = (int(part) for part in text.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError("'%s' is no frame range: give two whole numbers, as in 1:120" % text) from None
    return first, last


def add_options(parser, is_file_needed=False):
    """What to bake and how: the same in both commands."""
    parser.add_argument(
        "file",
        metavar="FILE.blend",
        nargs=None if is_file_needed else "?",
        help="the file to bake" + ("" if is_file_needed else "; default: the one that is open"),
    )
    parser.add_argument("--scene", metavar="NAME", help="of the file; default: the one it was saved with")
    parser.add_argument(
        "--resume", action="store_true", help="keep the good frames in the cache and bake those that are missing"
    )
    parser.add_argument("--from-frame", type=int, metavar="N", help="as --resume, but bake frame N and all after it again")
    parser.add_argument("--frames", type=frame_range, metavar="A:B", help="from frame A to B instead of the file's range")
    parser.add_argument("--folder", metavar="PATH", help="cache folder instead of the file's; it is saved with the file")
    parser.add_argument("--threads", type=int, metavar="N", help="0 = all; the frames are the same")
    parser.add_argument("--engine", choices=ENGINES, help="what computes; the frames are the same")
    parser.add_argument("--save-as", metavar="PATH", help="write the .blend with the sand here instead of in place")
    parser.add_argument("--no-save", action="store_true", help="never write the .blend, also when it has no sand object yet")
    parser.add_argument("--json", action="store_true", help="a JSON object per frame on standard output, and no bar")
    parser.add_argument("--report-fd", type=int, help=argparse.SUPPRESS)  # open file for what standard output is to get


def words_of(arguments):
    """Parsed options as words again."""
    words = []
    for name in ("scene", "from_frame", "frames", "folder", "threads", "engine", "save_as", "report_fd"):
        value = getattr(arguments, name)
        if value is not None:
            text = "%d:%d" % value if name == "frames" else str(value)
            words.append("--%s=%s" % (name.replace("_", "-"), text))  # with =, for a value may begin with -
    for name in ("resume", "no_save", "json"):
        if getattr(arguments, name):
            words.append("--" + name.replace("_", "-"))
    return words


def add_command(commands):
    parser = commands.add_parser(
        "bake",
        help="bake the sand of a .blend file without a window",
        description="Bakes with Blender as a module of this Python (pip install bpy), or else with a Blender program. The "
        "Barchan extension must be installed in that Blender: --install does it.",
        epilog="Exit codes: 0 done, 1 failed with one sentence on standard error, 2 wrong usage, 128 + N stopped by signal N "
        "(130: Ctrl-C). Frames so far are kept; --resume goes on.",
    )
    add_options(parser, is_file_needed=True)
    parser.add_argument("--blender", metavar="PROGRAM", help="this Blender; default: bpy of this Python, else the PATH's")
    parser.add_argument("--install", metavar="ZIP", help="install this extension zip in that Blender first")
    parser.add_argument(
        "--factory-startup", action="store_true", help="of a Blender program: without the user's settings and other add-ons"
    )
    parser.set_defaults(run=run)


def program_version(program):
    """(major, minor) of a Blender program; Error with the sentence where it is none, or too old."""
    try:
        found = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise barchan.Error("'%s' does not run as Blender (%s): give --blender another program." % (program, error)) from None
    match = re.search(r"^Blender (\d+)\.(\d+)", found.stdout, re.MULTILINE)
    if not match:
        raise barchan.Error("'%s' is no Blender: its --version says '%s'." % (program, found.stdout[:60].strip()))
    version = int(match.group(1)), int(match.group(2))
    if version < OLDEST:
        raise barchan.Error("'%s' is Blender %d.%d, and Barchan needs %d.%d or later." % (program, *version, *OLDEST))
    return version


def find_blender(wanted):
    """Path of a Blender program, or None: the module of this Python."""
    if wanted is not None:
        found = shutil.which(wanted)
        if found is None:
            raise barchan.Error("There is no program '%s': give --blender the path of Blender." % wanted)
        return found
    if importlib.util.find_spec("bpy") is not None:
        return None
    found = shutil.which("blender")
    if found is None:
        raise barchan.Error(
            "There is no Blender: neither a module bpy in this Python nor a program blender on the PATH; "
            "python -m pip install bpy, or give --blender PROGRAM."
        )
    return found


def check_paths(arguments):
    if not os.path.isfile(arguments.file):
        raise barchan.Error("There is no file '%s': give the path of a .blend file." % arguments.file)
    if arguments.install is not None and not os.path.isfile(arguments.install):
        raise barchan.Error("There is no file '%s': give the path of the extension zip." % arguments.install)


def program_command(program, arguments, words, command="bake"):
    """The command line of a Blender program, after the extension is installed where that was asked for."""
    program_version(program)
    options = ["--factory-startup"] if arguments.factory_startup else []
    if arguments.install is not None:
        install = [program, "--command", "extension", "install-file", "--repo", "user_default", "--enable"]
        done = subprocess.run(
            install + [os.path.abspath(arguments.install)], stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
        )
        if done.returncode != 0:
            raise barchan.Error("'%s' could not install '%s': see the lines above." % (program, arguments.install))
    # Enabled for this run whatever the settings say; the file is opened by the command itself, so that what other
    # add-ons print on the way is kept out of the report.
    return [program, "--background", *options, "--addons", ADDON, "--command", "barchan", command, *words]


def run(arguments):
    check_paths(arguments)
    program = find_blender(arguments.blender)
    # From here on standard output belongs to the report alone, however much Blender and its add-ons print.
    sys.stdout.flush()
    arguments.report_fd = os.dup(1)
    os.set_inheritable(arguments.report_fd, True)
    os.dup2(2, 1)
    words = [*words_of(arguments), os.path.abspath(arguments.file)]
    if program is not None:
        command = program_command(program, arguments, words)
    else:
        install = [] if arguments.install is None else [os.path.abspath(arguments.install)]
        command = [sys.executable, "-m", "barchan.bake_in_module", *install, "bake", *words]
    sys.stderr.flush()
    # The process becomes Blender: signals and the exit code need no go-between, and nothing is left when it is killed.
    os.execv(command[0], command)
