"""Blender as a module of this Python, with the Barchan add-on, for `python -m barchan bake` and `preview`.

Comes in: words: the path of an extension zip to install, or nothing, then "bake" or "preview" and its options. Goes out: what the add-on's
command does, and its exit code.
"""

import importlib
import os
import sys


def enable():
    """The add-on's package, enabled; None where it is installed in no repository of this Blender."""
    import addon_utils
    import bpy

    for repository in bpy.context.preferences.extensions.repos:
        if repository.enabled and os.path.isfile(os.path.join(repository.directory, "barchan", "__init__.py")):
            name = "bl_ext.%s.barchan" % repository.module
            if addon_utils.enable(name) is not None:
                return name
    return None


def main(words):
    try:
        import bpy
    except ImportError as error:
        print("barchan: Blender's module cannot be loaded (%s)." % error, file=sys.stderr)
        return 1
    if words[0] not in ("bake", "preview"):
        archive = words.pop(0)
        try:
            bpy.ops.extensions.package_install_files(filepath=archive, repo="user_default", enable_on_install=True)
        except RuntimeError as error:
            print("barchan: '%s' cannot be installed (%s)." % (archive, " ".join(str(error).split())), file=sys.stderr)
            return 1
    name = enable()
    if name is None:
        print(
            "barchan: The Barchan extension is not installed in this Blender %s: give --install with the extension zip."
            % bpy.app.version_string,
            file=sys.stderr,
        )
        return 1
    return importlib.import_module(name + ".headless").main(words)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Blender's own shutdown can hang
