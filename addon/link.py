# SPDX-License-Identifier: GPL-3.0-or-later
"""link: keeps the way from a file to its cache folder when it is saved elsewhere, appended from or linked.

Comes in: Blender's load and save, and frame changes after an append. Goes out: `Scene.barchan.home` and `folder`, which say
together where the frames are (properties.cache_folder), and on the sand object where its frames are, for those who append
or link it alone. No frame is ever moved but out of the temporary folder of a file that was never saved.
"""

import os
import shutil

import bpy
from bpy.app.handlers import persistent

from . import bake, engine, properties

_before = {}  # scene's session_uid -> (folder, home) before the save under way
_temporary = {}  # scene's session_uid -> temporary cache folder before the first save
_object_count = -1  # objects in the file when an appended sand object was last looked for


def _own_scenes():
    return [scene for scene in bpy.data.scenes if scene.library is None]


def _current_home():
    return os.path.dirname(bpy.data.filepath) if bpy.data.filepath else ""


def _relative(folder, home):
    """The folder as written in a file that lies in home."""
    try:
        return "//" + os.path.relpath(folder, home).replace(os.sep, "/") + "/"
    except ValueError:  # another drive
        return folder


@persistent
def on_load(_path=None, *_):
    """What is relative in a file is relative to where it lies now: file and cache may have been moved together."""
    global _object_count
    _before.clear()
    _temporary.clear()
    _object_count = -1
    for scene in _own_scenes():
        scene.barchan.home = _current_home()
    properties.known_file = bpy.data.filepath
    for scene in _own_scenes():
        adopt(scene)


@persistent
def on_save_pre(path="", *_):
    """The file that is written finds the frames from its new place."""
    if not path:  # the start-up file
        return
    home = os.path.dirname(os.path.abspath(path))
    _before.clear()
    _temporary.clear()
    for scene in _own_scenes():
        settings = scene.barchan
        was_temporary = properties.is_folder_temporary(scene)
        folder = properties.cache_folder(scene)
        _before[scene.session_uid] = (settings.folder, settings.home)
        written = settings.folder or properties.DEFAULT_FOLDER
        if was_temporary:
            _temporary[scene.session_uid] = folder
        is_moved = written.startswith("//") and not was_temporary and properties.home(scene) != home
        settings.home = home
        if is_moved:
            settings.folder = _relative(folder, home)
        ob = settings.carrier
        if ob is not None and ob.library is None:
            ob.barchan.source_folder = os.path.normpath(os.path.join(home, written[2:])) if was_temporary else folder
            ob.barchan.source_body_count = settings.body_count


@persistent
def on_save_post(path="", *_):
    if not path:
        return
    if os.path.abspath(path) != bpy.data.filepath:  # a copy: the open file stays where it is
        on_save_fail()
        return
    properties.known_file = bpy.data.filepath
    for scene in _own_scenes():
        source = _temporary.get(scene.session_uid)
        if source is not None:
            _take_along(source, properties.cache_folder(scene))
    _before.clear()
    _temporary.clear()


@persistent
def on_save_fail(_path=None, *_):
    for scene in _own_scenes():
        if scene.session_uid in _before:
            folder, home = _before[scene.session_uid]
            scene.barchan.home = home
            if scene.barchan.folder != folder:
                scene.barchan.folder = folder
    _before.clear()
    _temporary.clear()


def _take_along(source, target):
    """Frames baked before the first save go with the file, where there are none yet."""
    core = engine.core
    if core is None or bake.running is not None or not os.path.isdir(source):
        return
    try:
        if core.list_frames(source)[0] and not os.path.exists(target):
            shutil.move(source, target)
            print(f"Barchan: the frames of the unsaved file are now in '{target}'", flush=True)
    except (core.Error, OSError) as error:
        print(f"Barchan: the frames of the unsaved file stay in '{source}' ({engine.sentence(error)})", flush=True)


def _to_write_to(ob):
    """The sand object as one whose grains can be written: Blender writes nothing into a linked mesh and does not say so."""
    if ob.library is not None:
        ob = ob.override_create(remap_local_usages=True)
    if ob.data.library is not None:
        ob.data = ob.data.copy()
    return ob


def adopt(scene):
    """A sand object that was appended or linked alone plays in a scene that has none: it knows its own folder. A linked one
    becomes a library override, as Blender has it for what is to change."""
    settings = scene.barchan
    if scene.library is not None or settings.carrier is not None or len(settings.followers) > 0:
        return
    taken = {other.barchan.carrier for other in _own_scenes()}
    for ob in scene.objects:
        if ob.type == "MESH" and ob.barchan.source_folder and ob not in taken:
            ob = _to_write_to(ob)
            settings.carrier = ob
            settings.body_count = ob.barchan.source_body_count
            settings.folder = ob.barchan.source_folder
            return


@persistent
def on_frame_change(scene, *_):
    """Blender 4.2 does not tell of an append; the next frame change does. Not while rendering: that is another thread."""
    global _object_count
    if scene.barchan.carrier is not None or _object_count == len(bpy.data.objects):
        return
    if not bpy.app.is_job_running("RENDER"):
        _object_count = len(bpy.data.objects)
        adopt(scene)


_handlers = (
    ("load_post", on_load),
    ("save_pre", on_save_pre),
    ("save_post", on_save_post),
    ("save_post_fail", on_save_fail),
    ("frame_change_pre", on_frame_change),
)


def register():
    """Before playback, whose handlers read frames."""
    for name, function in _handlers:
        handlers = getattr(bpy.app.handlers, name)
        if function not in handlers:
            handlers.append(function)


def unregister():
    for name, function in _handlers:
        handlers = getattr(bpy.app.handlers, name)
        if function in handlers:
            handlers.remove(function)
    _before.clear()
    _temporary.clear()
    properties.known_file = None
