# SPDX-License-Identifier: GPL-3.0-or-later
"""stage: operators that take their time in a window: the scene is read in slices, then a thread is watched.

Comes in: an operator that says what to make of a job. Goes out: timer events as slices of export.Reading, a worker that is
started when all is read and looked at until it ends, status text, and a way out with Esc at any moment. Main thread.
"""

import time
import traceback

import bpy

from . import engine, export, playback
from .job import BakeError

LOOK_SECONDS = 0.2  # between two looks at a thread, and between two redraws of the panels
SLICE_SECONDS = 0.025  # that a slice of reading may take: the window draws and hears in between
PAUSE_SECONDS = 0.005  # between two slices

reading = None  # the export.Reading under way in a window, None otherwise


def redraw_panels(context):
    for window in context.window_manager.windows:
        for area in window.screen.areas:
            if area.type in {"VIEW_3D", "PROPERTIES"}:
                area.tag_redraw()


def has_window(context):
    return not bpy.app.background and context.window is not None


def advance(one, seconds=SLICE_SECONDS):
    """A slice of a Reading, whichever scene the window shows: True when its job is there. BakeError."""
    scene = one.scene()
    layer = scene.view_layers.get(one.layer_name)
    if layer is None:
        raise BakeError(f"View layer '{one.layer_name}' was removed while the animation was read; press the button again")
    with bpy.context.temp_override(scene=scene, view_layer=layer), playback.paused():
        return one.advance(bpy.context, seconds)


def _on_undo(*_):
    if reading is not None:
        reading.disturb("An undo or redo changed the scene while its animation was read; press the button again")


def _on_update(_scene, depsgraph=None):
    """Keyframes that are edited meanwhile; what else is edited shows in the settings when all is read."""
    if reading is not None and depsgraph is not None:
        if any(isinstance(update.id, bpy.types.Action) for update in depsgraph.updates):
            reading.disturb("Keyframes were changed while the animation was read; press the button again")


_HANDLERS = (("undo_post", _on_undo), ("redo_post", _on_undo), ("depsgraph_update_post", _on_update))


def _set_reading(one):
    """What is read, and who tells of changes meanwhile."""
    global reading
    reading = one
    for name, handler in _HANDLERS:
        handlers = getattr(bpy.app.handlers, name)
        if handler in handlers:
            handlers.remove(handler)
        if one is not None:
            handlers.append(handler)


def stop_running():
    """Before a file is loaded and before Blender quits."""
    if reading is not None:
        reading.cancel()
        reading.stop()
        _set_reading(None)


class Watched:
    """Mix-in of an operator that watches a thread in a window. The worker, self._run, has is_finished, text(), start(), cancel()
    and join(). Who inherits has _finish(scene, run) for the operator's result, and _set_running(run or None) for the panels."""

    ESCAPE = "Esc: stop"  # what the status bar says of it
    _run = _timer = None

    def _look(self, _scene, _is_over):
        """At every tick; the scene is None when it was deleted."""

    def _watch(self, context, run):
        self._run = run
        self._scene_uid = context.scene.session_uid
        self._set_running(run)
        self._set_timer(context, LOOK_SECONDS)
        context.window_manager.modal_handler_add(self)
        run.start()
        return {"RUNNING_MODAL"}

    def _set_timer(self, context, seconds):
        manager = context.window_manager
        if self._timer is not None:
            manager.event_timer_remove(self._timer)
        self._timer = manager.event_timer_add(seconds, window=context.window) if seconds is not None else None

    def _scene(self):
        """The operator's scene; looked up anew because an undo replaces it. None when it was deleted."""
        return next((scene for scene in bpy.data.scenes if scene.session_uid == self._scene_uid), None)

    def _show(self, context, text):
        if context.workspace is not None:
            context.workspace.status_text_set(text)
        redraw_panels(context)

    def modal(self, context, event):
        run = self._run
        if event.type == "ESC" and event.value == "PRESS":
            run.cancel()
            return {"RUNNING_MODAL"}
        if event.type != "TIMER":
            return {"PASS_THROUGH"}
        scene, is_over = self._scene(), run.is_finished
        self._look(scene, is_over)
        if not is_over:
            self._show(context, f"{run.text()}   {self.ESCAPE}")
            return {"PASS_THROUGH"}
        run.join()
        self._end(context)
        return self._finish(scene, run)

    def cancel(self, context):
        """Blender ends the operator itself: another file is loaded, the window is closed."""
        if self._run is not None:
            self._run.cancel()
            self._run.join()
            self._end(context)

    def _end(self, context):
        self._set_running(None)
        self._set_timer(context, None)
        self._show(context, None)


class Read(Watched):
    """Watched, after the scene was read for it. Who inherits has _make_run(job), which may raise BakeError, and may have
    _refuse(scene, sentence) for what could not be read."""

    _reading = None

    def _refuse(self, _scene, sentence):
        self.report({"ERROR"}, sentence)

    def _begin(self, context):
        """The operator's result in a window."""
        self._scene_uid = context.scene.session_uid
        try:
            self._reading = export.Reading(context, keeps_frame=True)
        except (BakeError, MemoryError) as error:
            self._refuse(context.scene, engine.sentence(error))
            return {"CANCELLED"}
        self._last_show = 0.0
        _set_reading(self._reading)
        self._set_timer(context, PAUSE_SECONDS)
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context, event):
        if self._run is not None:
            return Watched.modal(self, context, event)
        if event.type == "ESC" and event.value == "PRESS":
            self._reading.cancel()
            return {"RUNNING_MODAL"}
        return self._read_on(context) if event.type == "TIMER" else {"PASS_THROUGH"}

    def cancel(self, context):
        if self._run is not None:
            Watched.cancel(self, context)
        elif self._reading is reading and reading is not None:
            self._reading.stop()
            self._leave(context)

    def _leave(self, context):
        _set_reading(None)
        self._set_timer(context, None)
        self._show(context, None)

    def _read_on(self, context):
        one = self._reading
        if one.is_cancelled:
            return self._give_up(context, "")
        if bpy.app.is_job_running("RENDER"):  # a render changes frames on a thread of its own
            return {"PASS_THROUGH"}
        try:
            if not advance(one):
                now = time.monotonic()
                if now - self._last_show >= LOOK_SECONDS:
                    self._last_show = now
                    self._show(context, f"{one.text()}   Esc: stop, nothing is changed")
                return {"PASS_THROUGH"}
            run = self._make_run(one.job)
        except (BakeError, MemoryError) as error:
            return self._give_up(context, engine.sentence(error))
        except Exception as error:  # our own bug: the operator must not stay behind
            traceback.print_exc()
            return self._give_up(context, f"Reading the scene failed unexpectedly ({engine.sentence(error)})")
        self._leave(context)
        self._run = run
        self._set_running(run)
        self._set_timer(context, LOOK_SECONDS)
        run.start()
        return {"PASS_THROUGH"}

    def _give_up(self, context, sentence):
        self._reading.stop()
        self._leave(context)
        if sentence:
            self._refuse(self._scene(), sentence)
        else:
            self.report({"INFO"}, "Stopped while the scene was read: nothing was changed")
        return {"CANCELLED"}
