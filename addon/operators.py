# SPDX-License-Identifier: GPL-3.0-or-later
"""operators: mark, bake, free.

Comes in: what the user pressed. Goes out: marked objects, a bake under way, removed frames, and one sentence for
everything that went wrong. Bake is modal in a window (the work is on bake.py's thread, a timer looks at it) and
synchronous in scripts and in `blender -b`. None of them is an undo step that could take frames away.
"""

import atexit
import os

import bpy
from bpy.app.handlers import persistent
from bpy.props import EnumProperty

from . import bake, engine, export, playback, properties

TIMER_SECONDS = 0.2


def is_ready(cls):
    """Poll shared by bake and free; says why a button is grey."""
    if engine.core is None:
        cls.poll_message_set(engine.problem)
        return False
    if bake.running is not None:
        cls.poll_message_set("A bake is running; press Esc in the 3D view to stop it")
        return False
    return True


_listed = {}  # folder -> (time of change, frame count, bytes): panels redraw often, folders change seldom


def cached_frames(scene):
    """Frame count and bytes in the scene's cache folder; (0, 0) when it cannot be read."""
    folder = properties.cache_folder(scene)
    try:
        changed = os.stat(folder).st_mtime_ns
    except OSError:
        return 0, 0
    if _listed.get(folder, (None,))[0] != changed:
        try:
            frames, byte_count = engine.core.list_frames(folder)
        except (engine.core.Error, OSError):
            return 0, 0
        _listed.clear()
        _listed[folder] = (changed, len(frames), byte_count)
    return _listed[folder][1:]


class BARCHAN_OT_set_type(bpy.types.Operator):
    """Mark the selected meshes as sand, as collider, or as neither"""

    bl_idname = "barchan.set_type"
    bl_label = "Set Sand Type"
    bl_options = {"REGISTER", "UNDO"}

    type: EnumProperty(
        name="Type",
        description="What the selected meshes are for the sand",
        items=properties.OBJECT_TYPES,
        default="SAND",
    )

    @classmethod
    def description(cls, _context, operator_properties):
        return next(item[2] for item in properties.OBJECT_TYPES if item[0] == operator_properties.type)

    def execute(self, context):
        sand = context.scene.barchan.carrier
        meshes = [ob for ob in context.selected_objects if ob.type == "MESH" and ob != sand]
        if not meshes:
            self.report({"ERROR"}, "No mesh object is selected; select the meshes to mark and try again")
            return {"CANCELLED"}
        for ob in meshes:
            ob.barchan.type = self.type
        return {"FINISHED"}


class BARCHAN_OT_bake(bpy.types.Operator):
    """Fill the sand meshes with grains, simulate them and write every frame to the cache folder. Esc stops and keeps the frames"""

    bl_idname = "barchan.bake"
    bl_label = "Bake Sand"
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, _context):
        return is_ready(cls)

    def _make_bake(self, context):
        """The bake, not started; None after reporting why not."""
        try:
            with playback.paused():  # the first frame is visited to read the meshes, not to show grains
                return bake.Bake(export.make_job(context))
        except (bake.BakeError, MemoryError) as error:
            self.report({"ERROR"}, engine.sentence(error))
            return None

    def _finish(self, scene, run):
        """Reports the outcome; the operator's result."""
        progress = run.progress
        for warning in run.warnings:
            self.report({"WARNING"}, warning)
        if progress.state == "FAILED":
            kept = f" ({progress.frames_done} frames before that are kept)" if progress.frames_done else ""
            self.report({"ERROR"}, run.error + kept)
            return {"CANCELLED"}
        where = ""
        if scene is not None and properties.is_folder_temporary(scene):
            where = "; they are lost when Blender closes, save the file and bake again to keep them"
        verb = "Stopped" if progress.state == "STOPPED" else "Baked"
        self.report(
            {"INFO"},
            f"{verb}: {progress.frames_done} of {progress.frame_count} frames of {progress.grain_count} grains{where}",
        )
        return {"FINISHED"}

    @staticmethod
    def _show(scene, run):
        """Once the first frame is there, the carrier is made to fit it."""
        job = run.job
        playback.attach(scene, playback.Baked(run.progress.grain_count, job.radius, job.shape))

    def execute(self, context):
        run = self._make_bake(context)
        if run is None:
            return {"CANCELLED"}
        bar = bake.TerminalBar()
        manager = context.window_manager
        manager.progress_begin(0, 100)

        def on_progress(progress):
            bar(progress)
            manager.progress_update(int(100 * progress.fraction))

        bake.running = run
        try:
            run.run(on_progress)
        finally:
            bake.running = None
            manager.progress_end()
        if run.progress.frames_done:
            self._show(context.scene, run)
        return self._finish(context.scene, run)

    def invoke(self, context, _event):
        if bpy.app.background or context.window is None:
            return self.execute(context)
        run = self._make_bake(context)
        if run is None:
            return {"CANCELLED"}
        self._run = run
        self._is_shown = False
        self._scene_uid = context.scene.session_uid
        self._timer = context.window_manager.event_timer_add(TIMER_SECONDS, window=context.window)
        context.window_manager.modal_handler_add(self)
        bake.running = run
        run.start()
        return {"RUNNING_MODAL"}

    def _scene(self):
        """The scene that is baked; looked up anew because an undo replaces it. None when it was deleted."""
        return next((scene for scene in bpy.data.scenes if scene.session_uid == self._scene_uid), None)

    def modal(self, context, event):
        run = self._run
        if event.type == "ESC" and event.value == "PRESS":
            run.cancel()
            return {"RUNNING_MODAL"}
        if event.type != "TIMER":
            return {"PASS_THROUGH"}
        progress = run.progress
        scene = self._scene()
        if progress.frames_done and not self._is_shown and scene is not None:
            self._is_shown = True
            self._show(scene, run)
        elif scene is not None and playback.message(scene):
            playback.show(scene)  # the frame that was missing may be there by now
        context.workspace.status_text_set(f"{progress.text()}   Esc: stop and keep the frames")
        redraw_panels(context)
        if not progress.is_finished:
            return {"PASS_THROUGH"}
        run.join()
        self._end(context)
        if scene is not None:
            playback.show(scene)
        return self._finish(scene, run)

    def cancel(self, context):
        """Blender ends the operator itself: another file is loaded, the window is closed."""
        bake.stop_running()
        self._end(context)

    def _end(self, context):
        bake.running = None
        context.window_manager.event_timer_remove(self._timer)
        if context.workspace is not None:
            context.workspace.status_text_set(None)
        redraw_panels(context)


class BARCHAN_OT_free(bpy.types.Operator):
    """Remove the baked frames from the cache folder, and nothing else in it"""

    bl_idname = "barchan.free"
    bl_label = "Free Bake"
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        if not is_ready(cls):
            return False
        if cached_frames(context.scene)[0] == 0 and context.scene.barchan.carrier is None:
            cls.poll_message_set("There are no baked frames in the cache folder")
            return False
        return True

    def invoke(self, context, event):
        frame_count, byte_count = cached_frames(context.scene)
        return context.window_manager.invoke_confirm(
            self,
            event,
            title="Free Bake",
            message=f"Remove {frame_count} frames ({bake.size(byte_count)}) from {properties.cache_folder(context.scene)}?",
            confirm_text="Remove",
        )

    def execute(self, context):
        scene = context.scene
        try:
            file_count, byte_count = engine.core.free_frames(properties.cache_folder(scene))
        except (engine.core.Error, OSError, ValueError) as error:
            self.report({"ERROR"}, engine.sentence(error))
            return {"CANCELLED"}
        playback.detach(scene)
        redraw_panels(context)
        self.report({"INFO"}, f"Removed {file_count} frames ({bake.size(byte_count)})")
        return {"FINISHED"}


def redraw_panels(context):
    for window in context.window_manager.windows:
        for area in window.screen.areas:
            if area.type in {"VIEW_3D", "PROPERTIES"}:
                area.tag_redraw()


@persistent
def on_load_pre(_path=None):
    bake.stop_running()


_classes = (BARCHAN_OT_set_type, BARCHAN_OT_bake, BARCHAN_OT_free)


def register():
    for cls in _classes:
        bpy.utils.register_class(cls)
    if on_load_pre not in bpy.app.handlers.load_pre:
        bpy.app.handlers.load_pre.append(on_load_pre)
    atexit.register(bake.stop_running)


def unregister():
    bake.stop_running()
    atexit.unregister(bake.stop_running)
    if on_load_pre in bpy.app.handlers.load_pre:
        bpy.app.handlers.load_pre.remove(on_load_pre)
    for cls in reversed(_classes):
        bpy.utils.unregister_class(cls)
