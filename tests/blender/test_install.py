# SPDX-License-Identifier: GPL-3.0-or-later
"""Install, enable, disable, and enable again leave nothing behind."""

import os
import sys

import harness
from harness import bpy, check, check_equal, room


def our_classes():
    """Registered classes whose code is ours, by name."""
    found = []
    for base in (bpy.types.Operator, bpy.types.Panel, bpy.types.PropertyGroup):
        for cls in base.__subclasses__():
            if cls.__module__.startswith(harness.PACKAGE) and cls.is_registered:
                found.append(cls.__name__)
    return sorted(found)


def our_handlers():
    found = []
    for name in dir(bpy.app.handlers):
        handlers = getattr(bpy.app.handlers, name)
        if isinstance(handlers, list):
            found += [name for function in handlers if getattr(function, "__module__", "").startswith(harness.PACKAGE)]
    return sorted(found)


def set_enabled(is_enabled):
    if harness.ZIP:
        import addon_utils

        if is_enabled:
            addon_utils.enable(harness.EXTENSION)
        else:
            addon_utils.disable(harness.EXTENSION)
    elif is_enabled:
        sys.modules[harness.PACKAGE].register()
    else:
        sys.modules[harness.PACKAGE].unregister()


def test_the_add_on_loads_and_finds_its_engine():
    harness.load_addon()
    engine = room("engine")
    check_equal(engine.problem, "", "problem of the engine")
    print(f"  Blender {bpy.app.version_string}, barchan {engine.core.__version__} from {'the zip' if harness.ZIP else 'this Python'}")
    if harness.ZIP:
        user = os.path.realpath(os.environ["BLENDER_USER_RESOURCES"])
        place = os.path.realpath(engine.core.__file__)
        check(place.startswith(user), f"barchan was imported from {place}, expected it under {user}")
        check(bpy.context.preferences.addons.get(harness.EXTENSION) is not None, "the extension is not enabled")
    for name in ("set_type", "bake", "free"):
        getattr(bpy.ops.barchan, name).get_rna_type()


def test_every_setting_has_a_description_and_a_default_within_its_range():
    harness.new_file()
    for group in (bpy.context.scene.barchan, harness.add_box("Block", (1, 1, 1)).barchan):
        for setting in group.bl_rna.properties:
            if setting.identifier in ("rna_type", "name"):
                continue
            check(len(setting.description) > 10, f"{setting.identifier} has no description")
            if setting.type in ("INT", "FLOAT"):
                check(setting.hard_min <= setting.default <= setting.hard_max, f"default of {setting.identifier}")


def test_enabling_and_disabling_twenty_times_leaves_no_handlers_and_classes():
    harness.load_addon()
    classes, handlers = our_classes(), our_handlers()
    check(len(classes) >= 9 and len(handlers) >= 4, f"only {classes} and {handlers} are registered")
    for _ in range(20):
        set_enabled(False)
        check_equal((our_classes(), our_handlers()), ([], []), "classes and handlers after disabling")
        check(not hasattr(bpy.types.Scene, "barchan"), "Scene.barchan is still there after disabling")
        check(not hasattr(bpy.types.Object, "barchan"), "Object.barchan is still there after disabling")
        set_enabled(True)
        check_equal((our_classes(), our_handlers()), (classes, handlers), "classes and handlers after enabling")


def test_without_the_engine_the_buttons_say_so_in_one_sentence():
    harness.new_file()
    engine = room("engine")
    core = engine.core
    engine.core, engine.problem = None, "The sand engine cannot be loaded (test)"
    try:
        sentence = harness.error_of(bpy.ops.barchan.bake)
        bpy.context.scene.frame_set(5)
    finally:
        engine.core, engine.problem = core, ""
    check("The sand engine cannot be loaded (test)" in sentence, f"bake says {sentence!r}")


if __name__ == "__main__":
    harness.main(globals())
