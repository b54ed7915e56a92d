# SPDX-License-Identifier: GPL-3.0-or-later
"""operators: mark, bake, resume, free, export, convert to a particle body, push out, keyframes.

Comes in: what the user pressed. Goes out: marked objects, a bake under way, removed frames, exported frames, particle bodies,
bodies moved out of colliders, keyframes, and one sentence for everything that went wrong. Bake and export are modal in a
window (stage.py: the scene is read in slices, the work is on a thread of bake.py or sequence.py) and synchronous in scripts
and in `blender -b`. No undo step takes frames away.
"""

import atexit
import dataclasses
import os

import bpy
from bpy.app.handlers import persistent
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, StringProperty

from . import bake, body, engine, estimate, export, follow, job, playback, properties, pushing, sequence, stage
from .stage import redraw_panels


def is_idle(cls):
    """Poll of what must not happen while a scene is read or baked."""
    if stage.reading is not None:
        cls.poll_message_set("The animation is being read; press Stop, or Esc in the 3D view, to stop it")
        return False
    if bake.running is not None:
        cls.poll_message_set("A bake is running; press Stop, or Esc in the 3D view, to stop it")
        return False
    return True


def is_ready(cls):
    """Poll shared by bake, free and export; says why a button is grey."""
    if engine.core is None:
        cls.poll_message_set(engine.problem)
        return False
    if not is_idle(cls):
        return False
    if sequence.running is not None:
        cls.poll_message_set("An export is running; press Esc in the 3D view to stop it")
        return False
    return True


NO_SAND = "There is no sand, body or emitter in this scene; select a closed mesh and press Sand"


def has_sand(scene):
    return any(ob.type == "MESH" and ob.barchan.type in {"SAND", "BODY", "EMITTER"} for ob in scene.objects)


def is_in_object_mode(cls, context):
    if context.mode != "OBJECT":
        cls.poll_message_set("Leave the edit mode first")
        return False
    return True


_listed = {}  # folder -> (time of change, Listed): panels redraw often, folders change seldom


@dataclasses.dataclass(frozen=True)
class Listed:
    """What is in a cache folder."""

    frame_count: int = 0
    byte_count: int = 0
    frames: tuple = ()  # their numbers, ascending
    engine: str = ""  # what baked the last frame, "" when it does not say


def listed(scene):
    """What is in the scene's cache folder; nothing when it cannot be read."""
    folder = properties.cache_folder(scene)
    core = engine.core
    try:
        changed = os.stat(folder).st_mtime_ns
    except OSError:
        return Listed()
    if _listed.get(folder, (None,))[0] != changed:
        try:
            frames, byte_count = core.list_frames(folder)
        except (core.Error, OSError):
            return Listed()
        try:
            name = core.frame_info(folder, frames[-1])["engine"] if frames else ""
        except (core.Error, OSError):
            name = ""
        _listed.clear()
        _listed[folder] = (changed, Listed(len(frames), byte_count, tuple(frames), name))
    return _listed[folder][1]


def cached_frames(scene):
    """Frame count and bytes in the scene's cache folder; (0, 0) when it cannot be read."""
    found = listed(scene)
    return found.frame_count, found.byte_count


def next_frame(scene):
    """First frame of the range that is not in the cache; None when all are."""
    first, last = properties.frame_range(scene)
    there = set(listed(scene).frames)
    return next((frame for frame in range(first, last + 1) if frame not in there), None)


def is_stale(scene):
    """True when settings have changed since the frames in the cache were baked, as far as a panel can see."""
    baked = scene.barchan.baked_settings
    return bool(baked) and baked != export.fingerprint(scene)


def has_frames(cls, scene, is_shown=False):
    """Poll of what works on baked frames; is_shown: the scene shows some, though they may be gone."""
    if not is_ready(cls):
        return False
    if not is_shown and cached_frames(scene)[0] == 0:
        cls.poll_message_set("There are no baked frames in the cache folder")
        return False
    return True


class BARCHAN_OT_set_type(bpy.types.Operator):
    """Mark the selected meshes as sand, collider, body, emitter, outflow or force, or as none of them"""

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

    @classmethod
    def poll(cls, _context):
        return is_idle(cls)

    def execute(self, context):
        meshes = selected_meshes(context)
        if not meshes:
            self.report({"ERROR"}, "No mesh object is selected; select the meshes to mark and try again")
            return {"CANCELLED"}
        for ob in meshes:
            ob.barchan.type = self.type
        return {"FINISHED"}


def show_run(scene, run, settings):
    """Makes the carrier fit what a run has baked, and lets the bodies follow. settings: the export.fingerprint at its start."""
    made = run.assembled
    starts = tuple(
        follow.Start(one.uid, tuple(one.matrix.ravel()), tuple(map(float, place)), tuple(map(float, turn)))
        for one, (place, turn) in zip(run.job.bodies, made.poses)
    )
    first = made.grain_shapes[0] if made.grain_shapes else None
    is_plain = first is None or (len(made.grain_shapes) == 1 and first.name in {"SPHERE", "TETRAHEDRON"})
    playback.attach(
        scene,
        playback.Baked(
            run.progress.grain_count,
            float(first.radii.max()) if first is not None else run.job.radius,
            first.name if is_plain and first is not None else "SPHERE",
            made.body_count,
            starts,
            settings=settings,
            shapes=() if is_plain else made.grain_shapes,
        ),
    )


class BakeOperator(stage.Read):
    """What Bake and Resume share: modal in a window, synchronous elsewhere."""

    ESCAPE = "Esc: stop and keep the frames"
    _is_shown = False

    def _options(self):
        """Keywords of bake.Bake."""
        return {}

    def _make_run(self, the_job):
        self._settings = export.fingerprint(self._scene())
        return bake.Bake(the_job, **self._options())

    def _set_running(self, run):
        bake.running = run

    def _look(self, scene, is_over):
        if scene is None:
            return
        progress = self._run.progress
        if progress.frames_done and not self._is_shown:
            self._is_shown = True
            show_run(scene, self._run, self._settings)
        elif is_over or playback.message(scene):
            playback.show(scene)  # the frame that was missing may be there by now

    def _finish(self, scene, run):
        """Reports the outcome; the operator's result."""
        progress = run.progress
        for warning in run.warnings:
            self.report({"WARNING"}, warning)
        if progress.state == "FAILED":
            kept = ""
            if progress.frames_done:
                kept = f" ({progress.frames_done} frames are kept, the last one written is {progress.frame})"
            self.report({"ERROR"}, run.error + kept)
            return {"CANCELLED"}
        where = ""
        if scene is not None and properties.is_folder_temporary(scene):
            where = "; they are lost when Blender closes, save the file and bake again to keep them"
        verb = "Stopped" if progress.state == "STOPPED" else "Baked"
        what = f"{progress.grain_count} grains" + (f" and {len(run.job.bodies)} bodies" if run.job.bodies else "")
        if run.resume:
            what += f", {run.baked_count} frames now"
        self.report({"INFO"}, f"{verb}: {progress.frames_done} of {progress.frame_count} frames of {what}{where}")
        return {"FINISHED"}

    def execute(self, context):
        self._scene_uid, self._frame = context.scene.session_uid, context.scene.frame_current
        bar = bake.TerminalBar()
        manager = context.window_manager
        manager.progress_begin(0, 100)

        def on_progress(progress):
            bar(progress)
            manager.progress_update(int(100 * progress.fraction))

        try:
            with playback.paused():  # frames are visited to read the meshes, not to show grains
                the_job = export.make_job(context, lambda share: on_progress(bake.Progress("EXPORTING", share_read=share)))
            run = bake.running = self._make_run(the_job)
            run.run(on_progress)
        except (job.BakeError, MemoryError) as error:
            self._refuse(context.scene, engine.sentence(error))
            return {"CANCELLED"}
        finally:
            bake.running = None
            manager.progress_end()
        if run.progress.frames_done:
            show_run(context.scene, run, self._settings)
        redraw_panels(context)
        return self._finish(context.scene, run)

    def invoke(self, context, _event):
        self._frame = context.scene.frame_current  # when the button was pressed
        return self._begin(context) if stage.has_window(context) else self.execute(context)


class BARCHAN_OT_bake(BakeOperator, bpy.types.Operator):
    """Fill the sand meshes with grains, simulate them and write every frame to the cache folder. Esc stops and keeps the frames"""

    bl_idname = "barchan.bake"
    bl_label = "Bake Sand"
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, _context):
        return is_ready(cls)


class BARCHAN_OT_stop(bpy.types.Operator):
    """Stop the bake and keep its frames; Resume goes on with it"""

    bl_idname = "barchan.stop"
    bl_label = "Stop"
    bl_options = {"INTERNAL"}

    @classmethod
    def poll(cls, _context):
        if bake.running is None and stage.reading is None:
            cls.poll_message_set("No bake is running")
            return False
        return True

    def execute(self, _context):
        (stage.reading or bake.running).cancel()
        return {"FINISHED"}


class BARCHAN_OT_resume(BakeOperator, bpy.types.Operator):
    """Bake the frames of the range that are missing or damaged and keep the others, as if the bake had never stopped"""

    bl_idname = "barchan.resume"
    bl_label = "Resume Bake"
    bl_options = {"REGISTER"}

    from_current: BoolProperty(
        name="From Current Frame",
        description="Bake the current frame and all after it again, although they are there",
        default=False,
        options={"SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context):
        return has_frames(cls, context.scene)

    @classmethod
    def description(cls, _context, operator_properties):
        if operator_properties.from_current:
            return "Bake the current frame and all after it again, from the last checkpoint before it"
        return cls.__doc__

    def _options(self):
        return {"resume": True, "resume_frame": self._frame if self.from_current else None}


class BARCHAN_OT_free(bpy.types.Operator):
    """Remove the baked frames, checkpoints and loads from the cache folder, and nothing else in it; bodies go back to where they were"""

    bl_idname = "barchan.free"
    bl_label = "Free Bake"
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        settings = context.scene.barchan
        return has_frames(cls, context.scene, is_shown=settings.carrier is not None or len(settings.followers) > 0)

    def invoke(self, context, event):
        frame_count, byte_count = cached_frames(context.scene)
        return context.window_manager.invoke_confirm(
            self,
            event,
            title="Free Bake",
            message=f"Remove {frame_count} frames ({bake.size(byte_count)}) and their checkpoints from "
            f"{properties.cache_folder(context.scene)}?",
            confirm_text="Remove",
        )

    def execute(self, context):
        scene = context.scene
        try:
            file_count, byte_count = bake.free_folder(properties.cache_folder(scene))
        except (engine.core.Error, OSError, ValueError) as error:
            self.report({"ERROR"}, engine.sentence(error))
            return {"CANCELLED"}
        playback.detach(scene)
        redraw_panels(context)
        self.report({"INFO"}, f"Removed {file_count} files ({bake.size(byte_count)})")
        return {"FINISHED"}


class BARCHAN_OT_export(stage.Watched, bpy.types.Operator):
    """Write the baked frames for people who do not have Barchan. Esc stops and leaves nothing behind"""

    bl_idname = "barchan.export"
    bl_label = "Export Sand"
    bl_options = {"REGISTER"}

    to: EnumProperty(
        name="Format",
        description="What the frames are written as",
        items=[item[:3] for item in sequence.FORMATS],
        default="USD",
    )
    points: EnumProperty(
        name="Points",
        description="What a point stands for",
        items=(
            ("SPHERES", "Spheres", "A point for every sphere of every grain: looks as the points in Blender do"),
            ("GRAINS", "Grains", "A point for every grain, with its rotation: put a grain of your own on it"),
        ),
        default="SPHERES",
    )
    overwrite: BoolProperty(
        name="Replace",
        description="Replace an older export of the same name, once the new one is whole",
        default=False,
        options={"SKIP_SAVE"},
    )
    directory: StringProperty(
        name="Folder",
        description="Folder that the export is put into",
        subtype="DIR_PATH",
        options={"HIDDEN", "SKIP_SAVE"} | properties.PATH_OPTIONS,
    )
    filter_folder: BoolProperty(default=True, options={"HIDDEN"})

    @classmethod
    def poll(cls, context):
        return has_frames(cls, context.scene)

    def _make_export(self, context):
        scene = context.scene
        if self.to == "USD" and hasattr(bpy.utils, "expose_bundled_modules"):
            bpy.utils.expose_bundled_modules()  # Blender as a Python module hides its USD library until asked
        name = os.path.splitext(os.path.basename(bpy.data.filepath))[0] or "untitled"
        ending = next(item[3] for item in sequence.FORMATS if item[0] == self.to)
        folder = bpy.path.abspath(self.directory or "//") or os.getcwd()
        radius, shape = playback.baked_size(scene)
        cache = properties.cache_folder(scene)
        shape = "spheres" if bake.read_notes(cache).get("shapes") else shape.lower()  # older frames do not tell
        return sequence.Export(
            cache,
            self.to,
            os.path.join(folder, f"{name}_sand{ending}"),
            radius=radius,
            shape=shape if self.points == "SPHERES" else "sphere",
            skip=scene.barchan.body_count,
            overwrite=self.overwrite,
        )

    ESCAPE = "Esc: stop and write nothing"

    def _set_running(self, run):
        sequence.running = run

    def _finish(self, _scene, run):
        if run.state == "FAILED":
            self.report({"ERROR"}, run.error)
            return {"CANCELLED"}
        if run.state == "STOPPED":
            self.report({"INFO"}, "Stopped: nothing was written")
            return {"CANCELLED"}
        found = run.report
        if found["missing"]:
            self.report({"WARNING"}, f"{found['missing']} frames in between are not in the cache and were left out")
        self.report({"INFO"}, f"Exported {found['frame_count']} frames ({bake.size(found['byte_count'])}): {found['out']}")
        return {"FINISHED"}

    def execute(self, context):
        run = self._make_export(context)
        if stage.has_window(context):
            return self._watch(context, run)
        manager = context.window_manager
        manager.progress_begin(0, 100)
        run.run(lambda run: manager.progress_update(int(100 * run.fraction)))
        manager.progress_end()
        return self._finish(context.scene, run)

    def invoke(self, context, _event):
        if not stage.has_window(context):
            return self.execute(context)
        self.directory = self.directory or bpy.path.abspath("//")
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}


class BARCHAN_OT_save_plots(bpy.types.Operator):
    """Draw energy, grains, speed of the bake and the force on the active body or collider as plots.svg in the cache folder"""

    bl_idname = "barchan.save_plots"
    bl_label = "Save Plots"
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        return has_frames(cls, context.scene)

    def execute(self, context):
        folder, plot = properties.cache_folder(context.scene), engine.core.plot
        active = context.active_object
        try:
            of = active.name if active is not None and active.name in plot.load_names(folder) else None
            path = plot.save(folder, of=of)
        except (OSError, ValueError) as error:
            self.report({"ERROR"}, engine.sentence(error))
            return {"CANCELLED"}
        self.report({"INFO"}, f"Plots are in {path}")
        return {"FINISHED"}


def selected_meshes(context):
    """The selected mesh objects that are not Barchan's own, ordered by name."""
    sand = context.scene.barchan.carrier
    found = [ob for ob in context.selected_objects if ob.type == "MESH" and ob != sand and not body.is_preview(ob)]
    return sorted(found, key=lambda ob: ob.name)


class BARCHAN_OT_convert_to_body(bpy.types.Operator):
    """Turn the selected meshes, with their modifiers and scale, into spheres that stand for them. The meshes stay"""

    bl_idname = "barchan.convert_to_body"
    bl_label = "Convert to Particle Body"
    bl_options = {"REGISTER", "UNDO"}

    radius: FloatProperty(
        name="Radius",
        description="Radius of every sphere; 0 takes a fortieth of each object's largest dimension",
        subtype="DISTANCE",
        unit="LENGTH",
        default=0.0,
        min=0.0,
        precision=4,
        step=0.1,
        options={"SKIP_SAVE"},  # of the last object, which may have been of any size
    )
    spacing_factor: FloatProperty(
        name="Spacing",
        description="Distance of neighbouring spheres on the surface in radii; 2 makes them touch, less makes them overlap",
        default=1.2,
        min=0.2,
        max=10.0,
        soft_max=2.0,
    )
    offset_factor: FloatProperty(
        name="Offset",
        description="Distance of the centres from the surface in radii; -1 puts the spheres inside, touching it",
        default=0.0,
        min=-10.0,
        max=10.0,
        soft_min=-1.0,
        soft_max=1.0,
    )
    fill: EnumProperty(
        name="Fill", description="Where the spheres are", items=properties.BODY_FILLS, default="SURFACE"
    )
    seed: IntProperty(
        name="Seed", description="The same number gives the same spheres; another one gives others", default=0, min=0
    )

    @classmethod
    def poll(cls, context):
        if engine.core is None:
            cls.poll_message_set(engine.problem)
            return False
        if context.mode != "OBJECT":
            cls.poll_message_set("Leave the edit mode first")
            return False
        return True

    def draw(self, _context):
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop(self, "fill", expand=True)
        layout.prop(self, "radius")
        if self.fill == "SURFACE":
            layout.prop(self, "spacing_factor")
            layout.prop(self, "offset_factor")
        layout.prop(self, "seed")

    def _settings(self, context):
        is_surface = self.fill == "SURFACE"
        return body.Settings(
            radius=self.radius,
            spacing_factor=self.spacing_factor if is_surface else 0.0,
            offset_factor=self.offset_factor if is_surface else 0.0,
            seed=self.seed,
            fill=self.fill,
            threads=context.scene.barchan.threads,
        )

    def invoke(self, context, _event):
        """A radius that the redo panel can show, by the active object; the others get the same."""
        ob = context.active_object
        if self.radius == 0.0 and ob is not None and ob.type == "MESH":
            try:
                unplaced = export.read_unplaced(ob, context.evaluated_depsgraph_get())
                self.radius = body.default_radius(unplaced.vertices)
            except job.BakeError:
                pass  # execute meets the same and reports it
        return self.execute(context)

    def _sample_all(self, context, meshes):
        """For each object its Unplaced, the key of its body, and what the core made of it, None where the file has it
        already. Reports the objects that cannot be converted; None when there is one. Changes nothing."""
        settings = self._settings(context)
        depsgraph = context.evaluated_depsgraph_get()
        manager = context.window_manager
        made, rows, is_good = {}, [], True
        manager.progress_begin(0, len(meshes))
        for index, ob in enumerate(meshes):
            manager.progress_update(index)
            try:
                if not ob.is_editable:
                    raise body.BodyError(f"Object '{ob.name}' is linked from another file; make it local first")
                unplaced = export.read_unplaced(ob, depsgraph)
                key = body.shape_key(unplaced, settings)
                if key not in made:
                    made[key] = None if body.find(key) is not None else body.sample(unplaced, settings)
                rows.append((ob, unplaced, key))
            except (job.BakeError, body.BodyError, MemoryError) as error:
                self.report({"ERROR"}, engine.sentence(error))
                is_good = False
        manager.progress_end()
        return (rows, made, settings) if is_good else None

    def execute(self, context):
        meshes = selected_meshes(context)
        if not meshes:
            self.report({"ERROR"}, "No mesh object is selected; select the meshes to convert and try again")
            return {"CANCELLED"}
        sampled = self._sample_all(context, meshes)
        if sampled is None:
            return {"CANCELLED"}
        rows, made, settings = sampled
        for ob, unplaced, key in rows:
            mesh = body.find(key) or body.store(unplaced, key, made[key], settings)
            body.attach(ob, mesh, unplaced.stretch)
        body.remove_orphans()  # only now: one of their meshes may be the body of another object by now
        found = {ob.barchan.body.name: body.report(ob) or {} for ob, _unplaced, _key in rows}
        for warning in dict.fromkeys(warning for one in found.values() for warning in one.get("warnings", [])):
            self.report({"WARNING"}, warning)
        count = sum(len(bpy.data.meshes[name].vertices) for name in found)
        self.report({"INFO"}, f"Objects converted: {len(rows)}, particle bodies: {len(found)}, spheres: {count}")
        return {"FINISHED"}


class BARCHAN_OT_remove_body(bpy.types.Operator):
    """Remove the particle bodies of the selected objects; the objects themselves stay as they are"""

    bl_idname = "barchan.remove_body"
    bl_label = "Remove Particle Body"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        if not any(ob.barchan.body is not None for ob in context.selected_objects):
            cls.poll_message_set("No selected object has a particle body")
            return False
        return True

    def execute(self, context):
        meshes = [ob for ob in selected_meshes(context) if ob.barchan.body is not None and ob.is_editable]
        for ob in meshes:
            body.detach(ob)
        body.remove_orphans()
        self.report({"INFO"}, f"Particle bodies removed: {len(meshes)}")
        return {"FINISHED"}


class BARCHAN_OT_bake_keyframes(bpy.types.Operator):
    """Turn the baked motion of the selected bodies, or of all when none is selected, into ordinary keyframes"""

    bl_idname = "barchan.bake_keyframes"
    bl_label = "Bake to Keyframes"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        if not is_ready(cls):
            return False
        if not any(row.object is not None for row in context.scene.barchan.followers):
            cls.poll_message_set("No body of this scene follows a bake")
            return False
        return True

    def execute(self, context):
        scene = context.scene
        rows = [(index, row.object) for index, row in enumerate(scene.barchan.followers) if row.object is not None]
        selected = [(index, ob) for index, ob in rows if ob in context.selected_objects] or rows
        uids = [ob.session_uid for _index, ob in selected]
        try:
            count = follow.write_keyframes(context, [index for index, _ob in selected])
        except (engine.core.Error, OSError, MemoryError, IndexError) as error:
            self.report({"ERROR"}, engine.sentence(error))
            return {"CANCELLED"}
        playback.forget_keyed(scene, uids)
        self.report({"INFO"}, f"Keyframes on {count} frames for {len(selected)} bodies")
        return {"FINISHED"}


class BARCHAN_OT_push_out(bpy.types.Operator):
    """Move the selected bodies, by the shortest way, out of the colliders that they overlap on the first frame"""

    bl_idname = "barchan.push_out"
    bl_label = "Push Out"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        if not is_ready(cls):
            return False
        if not any(ob.barchan.type == "BODY" for ob in context.selected_objects):
            cls.poll_message_set("No body is selected")
            return False
        return True

    def execute(self, context):
        bodies = [ob for ob in selected_meshes(context) if ob.barchan.type == "BODY"]
        try:
            with playback.paused():
                ways = pushing.ways_out(export.make_job(context), {ob.session_uid for ob in bodies})
        except (job.BakeError, engine.core.Error, ValueError, MemoryError) as error:
            self.report({"ERROR"}, engine.sentence(error))
            return {"CANCELLED"}
        stuck = [ob.name for ob in bodies if ways[ob.session_uid] is None]
        if stuck:
            self.report(
                {"ERROR"}, f"Body '{stuck[0]}' finds no free place near where it is; move it or the collider by hand"
            )
            return {"CANCELLED"}
        moved = {ob: ways[ob.session_uid] for ob in bodies if ways[ob.session_uid].length > 0.0}
        with playback.paused():
            pushing.move(context, moved)
        self.report({"INFO"}, f"Bodies pushed out: {len(moved)} of {len(bodies)}")
        return {"FINISHED"}


def stop_running():
    """No thread of ours outlives the file or Blender."""
    stage.stop_running()
    bake.stop_running()
    sequence.stop_running()
    estimate.stop_running()


@persistent
def on_load_pre(_path=None):
    stop_running()


_classes = (
    BARCHAN_OT_set_type,
    BARCHAN_OT_bake,
    BARCHAN_OT_stop,
    BARCHAN_OT_resume,
    BARCHAN_OT_free,
    BARCHAN_OT_export,
    BARCHAN_OT_save_plots,
    BARCHAN_OT_convert_to_body,
    BARCHAN_OT_remove_body,
    BARCHAN_OT_bake_keyframes,
    BARCHAN_OT_push_out,
)


def register():
    for cls in _classes:
        bpy.utils.register_class(cls)
    if on_load_pre not in bpy.app.handlers.load_pre:
        bpy.app.handlers.load_pre.append(on_load_pre)
    atexit.register(stop_running)


def unregister():
    stop_running()
    atexit.unregister(stop_running)
    if on_load_pre in bpy.app.handlers.load_pre:
        bpy.app.handlers.load_pre.remove(on_load_pre)
    for cls in reversed(_classes):
        bpy.utils.unregister_class(cls)
