"""The habits of this codebase, as tests: format, warnings, layering, one version, exported symbols.

Comes in: the tree, and the builds that `python3 setup.py test` leaves in build/ and in .venv. Goes out: one complaint
per line, each naming file, line and rule. Every scanner is itself tried on text that it must refuse, for a check that
cannot fail is none.
"""

import ast
import collections
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BARCHAN_BUILD", ROOT / "build"))
CSRC = ROOT / "csrc"
C_FILES = sorted([*CSRC.glob("*.[ch]"), *(ROOT / "tests" / "c").glob("*.[ch]")])

# Which room may include whose header, besides its own. Data flows one way (docs/design.md).
CORE = {
    "base": set(),
    "pool": {"base"},
    "sort": {"base", "pool"},
    "io": {"base"},
    "mesh": {"base"},
    "repair": {"base", "mesh", "pool", "sort"},
    "surface": {"base", "mesh", "pool"},
    "rows": {"base"},
    "glwork": {"base", "gpu", "layout"},
    "glsurface": {"base", "glwork", "gpu", "layout", "mesh", "pool", "surface"},
    "glfield": {"base", "glsurface", "glwork", "gpu", "layout", "mesh", "pool", "surface"},
    "field": {"base", "glfield", "gpu", "mesh", "pool", "rows", "sort", "surface"},
    "sampler": {"base", "mesh"},
    "glspread": {"base", "glsurface", "glwork", "gpu", "layout", "mesh", "pool", "surface"},
    "spread": {"base", "glspread", "gpu", "mesh", "pool", "sampler", "sort", "surface"},
    "packing": {"base", "mesh", "pool", "sampler", "sort", "surface"},
    "fit": {"base", "mesh", "pool", "sort", "surface"},
    "solid": {"base", "fit", "mesh", "packing", "pool", "sampler", "spread", "surface"},
    "clump": {"base", "field", "fit", "mesh", "pool", "surface"},
    "track": {"base"},
    "collider": {"base", "mesh", "pool", "sort", "track"},
    "law": {"base"},
    "obstacle": {"base"},
    "scene": {"base", "collider", "law", "obstacle"},
    "kernel": {"base", "law", "obstacle", "scene"},
    "list": {"base", "kernel", "pool", "sort"},
    "scheme": {"base", "kernel"},
    "glcollider": {"base", "collider", "layout", "track"},
    "glsim": {"base", "glcollider", "gpu", "kernel", "layout", "list", "scene"},
    "sim": {"base", "glsim", "gpu", "kernel", "list", "pool", "scene", "scheme", "sort"},
    "between": {"base", "pool"},
    "planes": {"base"},
    "codec": {"base", "planes"},
    "cache": {"base", "codec", "io", "pool"},
    "checkpoint": {"base", "cache", "io"},
    "lock": {"base", "cache", "io"},
    "writer": {"base", "cache", "checkpoint"},
    "light": {"base", "gpu"},
    "gpu": {"base", "layout", "shaders"},  # shaders/layout.h, and the header that shaders/embed.py makes
}
PYTHON_ROOMS = {"py_between", "py_cache", "py_gpu", "py_light", "py_module", "py_sampler", "py_types"}
ROOMS = {**CORE, **{room: set(CORE) | PYTHON_ROOMS for room in PYTHON_ROOMS}}

# System headers that live in one room only: pattern -> files that may include it.
OWNED_HEADERS = {
    r"Python\.h|numpy/.*|structmember\.h|pythread\.h": {"py_cache.c", "py_module.c", "py_module.h", "py_types.c"},
    r"(GL|EGL|GLES\d?|KHR|GLFW)/.*|epoxy/.*": {"gpu.c"},
    r"fcntl\.h|dirent\.h|ftw\.h|glob\.h|sys/(stat|mman|file|uio|statvfs)\.h": {"io.c"},
}

FILE_CALLS = (
    "open openat open64 creat fopen fopen64 freopen fdopen tmpfile mkstemp mkostemp mkdtemp tmpnam close fclose "
    "read pread readv write pwrite writev fread fwrite fflush fsync fdatasync sync syncfs lseek fseek fseeko "
    "ftell truncate ftruncate fallocate posix_fallocate rename renameat renameat2 unlink unlinkat remove link "
    "linkat symlink mkdir mkdirat rmdir opendir fdopendir readdir closedir scandir nftw ftw stat lstat fstat "
    "fstatat access faccessat chmod fchmod utimensat mmap munmap flock lockf realpath getcwd chdir"
).split()
PRINT_CALLS = (
    "printf vprintf fprintf vfprintf dprintf vdprintf puts fputs putchar fputc putc perror PySys_WriteStdout "
    "PySys_WriteStderr PySys_FormatStdout PySys_FormatStderr"
).split()

GL_CALLS = [r"(?:gl|egl|glX)[A-Z]\w*", r"glew\w*"]

WARNING_FLAGS = (
    "-std=c17 -Wall -Wextra -Wconversion -Wshadow -Wmissing-prototypes -Wundef -Werror -ffp-contract=off "
    "-fvisibility=hidden"
).split()

Complaint = collections.namedtuple("Complaint", "place rule")


def complaints_text(complaints):
    return "\n".join("%s: %s" % complaint for complaint in complaints)


def tracked_files():
    """Every file that is or would be committed; without git, every file outside the folders that setup.py makes."""
    listed = (
        subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if (ROOT / ".git").exists() and shutil.which("git")
        else None
    )
    if listed and listed.returncode == 0 and listed.stdout:
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        made = re.compile(r"(\.venv[^/]*|build|dist|out|\.git)/|(.*/)?(__pycache__|\.\w+_cache)/")
        paths = [path for path in ROOT.rglob("*") if not made.match(path.relative_to(ROOT).as_posix() + "/")]
    return sorted(path for path in paths if path.is_file())


def text_files():
    for path in tracked_files():
        content = path.read_bytes()
        if b"\0" not in content:
            yield path, content.decode("utf-8")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


# ---- scanners: text in, complaints out ------------------------------------------------------------------------------


def strip_c(text):
    """C without comments and literals; lines keep their numbers. `#include "x.h"` keeps its name."""

    def blank(match):
        found = match.group()
        if found.startswith("/"):
            return "\n" * found.count("\n") or " "
        return found[0] * 2

    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|(?<!include )"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    return pattern.sub(blank, text)


def scan_calls(name, text, calls, rule):
    """Calls of the listed functions; not of members (`x.read(`, `x->read(`) nor of longer names (`sand_io_open(`)."""
    pattern = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(calls))
    for number, line in enumerate(strip_c(text).split("\n"), 1):
        for match in pattern.finditer(line):
            yield Complaint("%s:%d" % (name, number), "%s(): %s" % (match.group(1), rule))


def scan_includes(name, text):
    """Edges against the table, and system headers outside the room that owns them."""
    file_name = name.rsplit("/", 1)[-1]
    room = file_name.rsplit(".", 1)[0]
    if room not in ROOMS:
        yield Complaint(name, "room '%s' is not in the table of tests/test_codebase.py" % room)
        return
    for number, line in enumerate(strip_c(text).split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        header = match.group(2)
        if match.group(1) == '"':
            target = header.rsplit(".", 1)[0]
            if target != room and target not in ROOMS[room]:
                yield Complaint("%s:%d" % (name, number), '"%s" must not be included from room %s' % (header, room))
        for pattern, owners in OWNED_HEADERS.items():
            if re.fullmatch(pattern, header) and file_name not in owners:
                yield Complaint("%s:%d" % (name, number), "<%s> belongs in %s" % (header, ", ".join(sorted(owners))))


def scan_words(name, text):
    """Marks of unfinished work, places of one machine, addresses of package registries."""
    marks = "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"])
    rules = {
        r"\b(%s)\b" % marks: "unfinished work: do it or open an issue",
        r"(?<![\w./}])/(%s)/" % "|".join(["work", "root", "home", "Users", "farm"]): "path of one machine",
        r"(?i)(extra-)?index"
        + r"-url|find"
        + r"-links|py"
        + r"pi\.org|python"
        + r"hosted|arti"
        + r"factory|/simp"
        + r"le/": "address of a registry",
        r"\w+://[\w.-]+:\d+": "address with a port",
    }
    for number, line in enumerate(text.split("\n"), 1):
        for pattern, rule in rules.items():
            match = re.search(pattern, line)
            if match:
                yield Complaint("%s:%d" % (name, number), "'%s': %s" % (match.group(), rule))


def scan_imports(name, source, forbidden, rule):
    """Imports of a module, anywhere in the file, also `importlib.import_module("...")`."""
    for node in ast.walk(ast.parse(source, name)):
        found = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found = [node.module]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            found = [node.args[0].value] if called in ("import_module", "__import__") else []
        for module in found:
            if isinstance(module, str) and module.split(".")[0] in forbidden:
                yield Complaint("%s:%d" % (name, node.lineno), "imports %s: %s" % (module, rule))


def scan_suppressions(name, text):
    """An inline suppression of cppcheck must say why: // cppcheck-suppress id ; reason"""
    for number, line in enumerate(text.split("\n"), 1):
        if "cppcheck-suppress" in line and not re.search(r"cppcheck-suppress\s+\w+\s*;\s*\w+.{8,}", line):
            yield Complaint("%s:%d" % (name, number), "a suppression without its reason")


def scan_sources(listed, present, suffix):
    """The list in meson.build against the folder: each file exactly once, nothing else."""
    counts = collections.Counter(name for name in listed if name.endswith(suffix))
    for name in sorted(set(counts) | set(present)):
        if counts[name] != 1 or name not in present:
            place = "there" if name in present else "absent"
            yield Complaint("meson.build", "%s is listed %d times and is %s" % (name, counts[name], place))


def scan_flags(command, flags):
    given = shlex.split(command)
    for flag in flags:
        if flag not in given:
            yield Complaint(given[-1], "compiled without " + flag)
    for flag in given:
        if flag in ("-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-w", "-march=native"):
            yield Complaint(given[-1], "compiled with " + flag)


SCANNED = [
    (scan_calls, ("csrc/x.c", "int x(void) { return write(1, 0, 0); }", FILE_CALLS, "")),
    (scan_calls, ("csrc/x.c", '/* a\n// b */ FILE *f = fopen ("a", "b");', FILE_CALLS, "")),
    (scan_calls, ("csrc/x.c", "void y(void) { glFlush(); }", GL_CALLS, "")),
    (scan_calls, ("csrc/x.c", "void y(void) { eglTerminate(0); }", GL_CALLS, "")),
    (scan_calls, ("csrc/x.c", 'void y(void) { char c = \'"\'; printf("x"); }', PRINT_CALLS, "")),
    (scan_includes, ("csrc/mesh.c", '#include "sim.h"')),
    (scan_includes, ("csrc/cache.c", '#include "scene.h"')),
    (scan_includes, ("csrc/unknown.c", "")),
    (scan_includes, ("csrc/sim.c", "#include <Python.h>")),
    (scan_includes, ("csrc/sim.c", "# include <numpy/arrayobject.h>")),
    (scan_includes, ("csrc/sim.c", "#include <GL/glew.h>")),
    (scan_includes, ("csrc/cache.c", "#include <fcntl.h>")),
    (scan_words, ("a.md", "later: TO" + "DO")),
    (scan_words, ("a.md", "in /wo" + "rk/main")),
    (scan_words, ("a.md", "pip install --extra-index" + "-url x")),
    (scan_words, ("a.md", "http:/" + "/machine:8080/")),
    (scan_imports, ("addon/bake.py", "def f():\n    import bpy.types", {"bpy"}, "")),
    (scan_imports, ("addon/bake.py", "from bpy import types", {"bpy"}, "")),
    (scan_imports, ("addon/bake.py", "import importlib\nimportlib.import_module('bpy')", {"bpy"}, "")),
    (scan_suppressions, ("csrc/x.c", "// cppcheck-suppress nullPointer")),
    (scan_sources, (["csrc/a.c", "csrc/a.c"], ["csrc/a.c"], ".c")),
    (scan_sources, (["csrc/a.c"], ["csrc/a.c", "csrc/b.c"], ".c")),
    (scan_sources, (["csrc/a.c", "csrc/b.c"], ["csrc/a.c"], ".c")),
    (scan_flags, ("cc -Wall x.c", ["-Wextra"])),
    (scan_flags, ("cc -Wextra -ffast-math x.c", ["-Wextra"])),
]
ALLOWED = [
    (
        scan_calls,
        ("csrc/x.c", '// write(1)\nsand_io_write(a); p->read(b); s.close(c); char *t = "open(x)";', FILE_CALLS, ""),
    ),
    (scan_calls, ("csrc/x.c", 'snprintf(a, 1, "printf(1)"); vsnprintf(a, 1, b, c);', PRINT_CALLS, "")),
    (scan_includes, ("csrc/cache.c", '#include "cache.h"\n#include "io.h"\n#include <string.h>\n// #include "sim.h"')),
    (scan_words, ("a.md", "see https://example.org/home/x and ${HOME}/work/y and ./work/z")),
    (scan_imports, ("addon/bake.py", "import numpy\nfrom . import engine", {"bpy", "barchan"}, "")),
    (scan_suppressions, ("csrc/x.c", "// cppcheck-suppress nullPointer ; the pool never hands out a null context")),
    (scan_sources, (["csrc/a.c", "csrc/barchan/x.py"], ["csrc/a.c"], ".c")),
    (scan_flags, ("cc -Wall -Wextra x.c", ["-Wextra"])),
]


@pytest.mark.parametrize("scan, arguments", SCANNED)
def test_scanners_refuse_what_they_must(scan, arguments):
    assert list(scan(*arguments)), "the scanner saw nothing wrong with %r" % (arguments[:2],)


@pytest.mark.parametrize("scan, arguments", ALLOWED)
def test_scanners_let_pass_what_is_fine(scan, arguments):
    assert not list(scan(*arguments)), complaints_text(scan(*arguments))


# ---- C --------------------------------------------------------------------------------------------------------------


def test_there_are_c_files_to_check():
    assert {"csrc/base.c", "csrc/base.h", "tests/c/main.c", "tests/c/test.h"} <= {name_of(path) for path in C_FILES}


def test_c_is_formatted():
    tool = pathlib.Path(sys.executable).with_name("clang-format")
    result = subprocess.run(
        [tool, "--dry-run", "--Werror", *C_FILES],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    places = sorted({line.split(": ")[0] for line in result.stdout.splitlines() if "-Wclang-format-violations" in line})
    assert result.returncode == 0, (
        "run .venv/bin/clang-format -i on the files of\n%s"
        % "\n".join(os.path.relpath(place, ROOT) for place in places[:40])
        or result.stdout
    )


def test_cppcheck_finds_nothing():
    command = [
        "cppcheck",
        "--quiet",
        "--std=c11",
        "--language=c",
        "--enable=warning,performance,portability",
        "--inline-suppr",
        "--error-exitcode=1",
        "--library=posix",
        "--library=python",
        "--suppress=missingIncludeSystem",
        "--template={file}:{line}: {id}: {message}",
        "-I",
        str(CSRC),
        "-I",
        str(ROOT / "shaders"),
        "-D__GNUC__=12",
        "-D__x86_64__=1",
        *[str(path) for path in C_FILES if path.suffix == ".c"],
    ]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_suppressions_say_why():
    found = [complaint for path in C_FILES for complaint in scan_suppressions(name_of(path), path.read_text())]
    assert not found, complaints_text(found)


def test_includes_go_one_way():
    found = [
        complaint
        for path in sorted(CSRC.glob("*.[ch]"))
        for complaint in scan_includes(name_of(path), path.read_text())
    ]
    assert not found, complaints_text(found)


def test_files_are_touched_only_by_io():
    found = [
        complaint
        for path in sorted(CSRC.glob("*.[ch]"))
        if path.name != "io.c"
        for complaint in scan_calls(name_of(path), path.read_text(), FILE_CALLS, "file calls live in io.c")
    ]
    assert not found, complaints_text(found)
    assert list(scan_calls("csrc/io.c", (CSRC / "io.c").read_text(), FILE_CALLS, "")), (
        "io.c makes no file call: the list is out of date"
    )


def test_gl_is_called_only_by_gpu():
    found = [
        complaint
        for path in sorted(CSRC.glob("*.[ch]"))
        if path.name != "gpu.c"
        for complaint in scan_calls(name_of(path), path.read_text(), GL_CALLS, "GL lives in gpu.c")
    ]
    assert not found, complaints_text(found)
    assert list(scan_calls("csrc/gpu.c", (CSRC / "gpu.c").read_text(), GL_CALLS, "")), "gpu.c makes no GL call"


def test_the_library_prints_nothing():
    found = [
        complaint
        for path in sorted(CSRC.glob("*.[ch]"))
        for complaint in scan_calls(name_of(path), path.read_text(), PRINT_CALLS, "the library prints nothing")
    ]
    assert not found, complaints_text(found)


def test_c_is_ascii():
    found = [
        "%s:%d" % (name_of(path), number)
        for path in C_FILES
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1)
        if not line.isascii()
    ]
    assert not found, found


def test_every_room_is_a_pair_with_a_first_line():
    for source in sorted(CSRC.glob("*.c")):
        header = source.with_suffix(".h")
        is_own = source.name not in ("py_between.c", "py_cache.c", "py_gpu.c", "py_light.c", "py_sampler.c", "py_types.c")  # py_module.h speaks for these
        assert header.exists() or not is_own, "%s has no header: its contract" % name_of(source)
        for path in [source, header]:
            if path.exists():
                first = path.read_text().split("\n", 1)[0]
                assert re.match(r"// %s: \S" % path.stem, first), "%s must begin with '// %s: what this room is'" % (
                    name_of(path),
                    path.stem,
                )
    for header in sorted(CSRC.glob("*.h")):
        assert header.with_suffix(".c").exists(), "%s has no source" % name_of(header)


def test_meson_lists_every_source_once():
    listed = re.findall(r"'([\w/]+\.(?:c|py|comp|vert|frag))'", (ROOT / "meson.build").read_text())
    shaders = [name_of(path) for path in [*(ROOT / "shaders").glob("*.comp"), *(ROOT / "tests" / "c").glob("*.comp")]]
    c_present = [name_of(path) for path in [*CSRC.glob("*.c"), *(ROOT / "tests" / "c").glob("*.c")]]
    python_present = [name_of(path) for path in [*(CSRC / "barchan").rglob("*.py"), *(ROOT / "shaders").glob("*.py")]]
    found = [*scan_sources(listed, c_present, ".c"), *scan_sources(listed, python_present, ".py")]
    found += scan_sources(listed, shaders, ".comp")
    for suffix in (".vert", ".frag"):
        found += scan_sources(listed, [name_of(path) for path in (ROOT / "shaders").glob("*" + suffix)], suffix)
    assert not found, complaints_text(found)
    running = [name for name in listed if name.endswith(".comp")]
    assert running and running == sorted(running), "the passes are not in running order: %s" % running


def test_every_shader_says_what_it_does():
    for path in sorted(path for suffix in ("comp", "vert", "frag") for path in (ROOT / "shaders").glob("*." + suffix)):
        assert re.match(r"\d\d_\w+$", path.stem), "%s: a pass begins with its number in running order" % name_of(path)
        lines = path.read_text().split("\n")[:10]
        assert lines[0].startswith("// %s: " % path.stem), "%s must begin with '// %s: what it does'" % (
            name_of(path),
            path.stem,
        )
        head = " ".join(line for line in lines if line.startswith("//"))
        wanted = ("In:", "Out:", "Groups", "arrier") if path.suffix == ".comp" else ("In:", "Out:")
        missing = [word for word in wanted if word not in head]
        assert not missing, "%s does not say in its first lines: %s" % (name_of(path), missing)


def compiled(folder):
    path = BUILD / folder / "compile_commands.json"
    assert path.exists(), "%s is missing: run python3 setup.py test" % path
    return [(os.path.basename(entry["file"]), entry["command"]) for entry in json.loads(path.read_text())]


@pytest.mark.parametrize("folder", ["release", "sanitized"])
def test_c_is_compiled_with_every_warning_as_an_error(folder):
    commands = compiled(folder)
    rooms = {path.name for path in CSRC.glob("*.c") if folder == "release" or not path.name.startswith("py_")}
    assert rooms <= {name for name, _ in commands}, "not compiled: %s" % sorted(rooms - {name for name, _ in commands})
    extra = ["-DNDEBUG"] if folder == "release" else ["-fsanitize=address,undefined"]
    found = [
        complaint
        for name, command in commands
        if name in rooms
        for complaint in scan_flags(command, WARNING_FLAGS + extra)
    ]
    assert not found, complaints_text(found)


def test_only_mutants_are_compiled_wrong():
    """Deliberate mistakes (csrc/law.c, csrc/scene.c) reach no object of the module that ships."""
    wrong = [command for _, command in compiled("release") if "SAND_MUTANT" in command]
    assert len(wrong) == 6 and all("-o barchan_mutant_" in command for command in wrong), wrong
    assert not [name for name, command in compiled("sanitized") if "SAND_MUTANT" in command]


def test_sanitized_build_keeps_its_asserts():
    assert not [name for name, command in compiled("sanitized") if "-DNDEBUG" in command]


# ---- the extension module -------------------------------------------------------------------------------------------


def test_extension_exports_only_its_entry():
    import barchan._core

    result = subprocess.run(
        ["nm", "-D", "--defined-only", barchan._core.__file__], stdout=subprocess.PIPE, text=True, check=True
    )
    assert [line.split()[-1] for line in result.stdout.splitlines()] == ["PyInit__core"]


def test_extension_needs_only_the_c_library():
    import barchan._core

    result = subprocess.run(["readelf", "-d", barchan._core.__file__], stdout=subprocess.PIPE, text=True, check=True)
    needed = set(re.findall(r"NEEDED.*\[([^\]]+)\]", result.stdout))
    assert needed <= {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}, needed


def test_extension_asks_the_loader_for_nothing_of_gl():
    import barchan._core

    result = subprocess.run(
        ["nm", "-D", "--undefined-only", barchan._core.__file__], stdout=subprocess.PIPE, text=True, check=True
    )
    wanted = [line.split()[-1] for line in result.stdout.splitlines()]
    assert "dlopen" in {name.split("@")[0] for name in wanted}, "gpu.c is not in the module"
    assert not [name for name in wanted if re.match(r"(gl|egl|glX|glew)[A-Z_]|X[A-Z]", name)]


def test_package_names_what_it_promises():
    import barchan

    assert sorted(barchan.__all__) == barchan.__all__
    assert [name for name in barchan.__all__ if not hasattr(barchan, name)] == []


# ---- one version ----------------------------------------------------------------------------------------------------


def test_one_version_number():
    import barchan

    version = re.search(
        r'^version = "(\d+\.\d+\.\d+)"$', (ROOT / "blender_manifest.toml").read_text(), re.MULTILINE
    ).group(1)
    assert barchan.__version__ == version
    assert importlib.metadata.version("barchan") == version
    assert "## [%s]" % version in (ROOT / "CHANGELOG.md").read_text()
    sources = [ROOT / "meson.build", ROOT / "pyproject.toml", ROOT / "setup.py"]
    sources += [*CSRC.glob("*.[ch]"), *(CSRC / "barchan").glob("*.py"), *(ROOT / "addon").glob("*.py")]
    copies = [
        name_of(path) for path in sources if re.search(r"(?<![\d.])%s(?![\d.])" % re.escape(version), path.read_text())
    ]
    assert copies == [], "the version is written again in these files; blender_manifest.toml holds it"


def test_add_on_has_no_second_version():
    found = [name_of(path) for path in (ROOT / "addon").glob("*.py") if "bl_info" in path.read_text()]
    assert found == [], "bl_info belongs to the add-ons of old; the manifest speaks for this one"


# ---- Python ---------------------------------------------------------------------------------------------------------


def test_bake_thread_never_sees_bpy():
    found = []
    for name in ("bake", "assembly", "job", "engine", "sequence"):
        found += scan_imports(
            f"addon/{name}.py",
            (ROOT / "addon" / f"{name}.py").read_text(),
            {"bpy", "bmesh", "mathutils"},
            "the worker thread must not touch Blender",
        )
    assert not found, complaints_text(found)


def test_engine_is_the_one_door_to_the_core():
    files = sorted((ROOT / "addon").glob("*.py"))
    found = [
        complaint
        for path in files
        if path.name != "engine.py"
        for complaint in scan_imports(
            name_of(path), path.read_text(), {"barchan"}, "only addon/engine.py imports barchan"
        )
    ]
    assert not found, complaints_text(found)
    assert list(scan_imports("addon/engine.py", (ROOT / "addon" / "engine.py").read_text(), {"barchan"}, "")), (
        "engine.py imports no barchan"
    )


def test_add_on_imports_only_what_blender_ships():
    shipped = set(sys.stdlib_module_names) | {
        "bpy",
        "bmesh",
        "mathutils",
        "gpu",
        "gpu_extras",
        "numpy",
        "barchan",
        "addon_utils",
    }
    for path in sorted((ROOT / "addon").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 11))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            strange = [module for module in modules if module.split(".")[0] not in shipped]
            assert not strange, "%s:%d imports %s" % (name_of(path), node.lineno, strange)


def test_setup_runs_on_any_python_from_3_9_with_nothing_installed():
    tree = ast.parse((ROOT / "setup.py").read_text(), feature_version=(3, 9))
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert modules and [module for module in modules if module.split(".")[0] not in sys.stdlib_module_names] == []


# ---- every file -----------------------------------------------------------------------------------------------------


def test_no_machine_paths_registries_or_unfinished_marks():
    found = [complaint for path, text in text_files() for complaint in scan_words(name_of(path), text)]
    assert not found, complaints_text(found)


def test_text_files_are_tidy():
    found = []
    for path, text in text_files():
        if text and not text.endswith("\n"):
            found.append(Complaint(name_of(path), "no newline at the end"))
        if "\r" in text:
            found.append(Complaint(name_of(path), "carriage returns"))
        found += [
            Complaint("%s:%d" % (name_of(path), number), "blanks at the end of the line")
            for number, line in enumerate(text.split("\n"), 1)
            if line != line.rstrip()
        ]
    assert not found, complaints_text(found)


def test_ci_runs_exactly_the_command_of_the_readme():
    command = "python3 setup.py test"
    script = (ROOT / ".ci" / "run").read_text()
    lines = [line for line in script.split("\n") if line and not line.startswith("#")]
    assert lines == ["set -e", 'cd "$(dirname "$0")/.."', command]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert command in (ROOT / "README.md").read_text()
