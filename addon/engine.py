# SPDX-License-Identifier: GPL-3.0-or-later
"""engine: the one door to the C module `barchan`.

Comes in: nothing. Goes out: the module as `core`, or None and the sentence `problem` that says why not;
`sentence`, which turns what the core raises into the one line a person reads. Imports no bpy.
"""

import pathlib
import tomllib

core = None
problem = ""


def _expected_version():
    """Version in the manifest beside this package, "" where the package runs from the source tree."""
    manifest = pathlib.Path(__file__).with_name("blender_manifest.toml")
    try:
        return tomllib.loads(manifest.read_text(encoding="utf-8")).get("version", "")
    except (OSError, ValueError):
        return ""


def _load():
    global core, problem
    try:
        import barchan
        import barchan.bake_command
        import barchan.preview_command
        import barchan.cache_command
        import barchan.plot
        import barchan.presets
    except Exception as error:  # a broken wheel raises anything from ImportError to SystemError; the panel must still draw
        problem = f"The sand engine cannot be loaded ({error}); install the Barchan extension zip made for this system"
        return
    expected = _expected_version()
    if expected and barchan.__version__ != expected:
        problem = (
            f"The sand engine is version {barchan.__version__} but this add-on needs {expected}; "
            "remove other copies of barchan and install the extension zip again"
        )
        return
    core = barchan


_load()


def sentence(error):
    """The one sentence of an exception, without Python's decoration."""
    if isinstance(error, MemoryError) and not str(error):
        return "There is not enough memory for this; use larger grains or a smaller mesh"
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
        if error.filename and str(error.filename) not in text:
            text = f"{text}: '{error.filename}'"
        return text
    return str(error) or type(error).__name__
