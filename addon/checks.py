# SPDX-License-Identifier: GPL-3.0-or-later
"""checks: what a panel can say of a scene before it is baked, and the buttons that mend it.

Comes in: a scene. Goes out: a line with the grains that will be there, Warnings with the operator that mends each, and the
Estimate of the last micro-run. What is looked at while a panel draws is cheap; the rest is asked for with Estimate.
"""

import dataclasses
import math
import os

import bpy
import numpy as np
from bpy.props import EnumProperty, StringProperty

from . import assembly, bake, engine, estimate, export, job, operators, playback, properties, stage

MANY_GRAINS = 2_000_000  # more than this is asked about
LATTICE = math.sqrt(2.0)  # grains per cube of the spacing: the densest lattice
MIXED_SPACING = 1.43  # sizes that the spacing grows by at most when sizes are mixed: measured with lognormal ones, 0.6 to 1.8
POLYGON_LIMIT = 200_000  # meshes above this are not measured while a panel draws

_volumes = {}  # (object's uid, counts, matrix) -> (volume in m^3, is closed)
_results = {}  # scene's session_uid -> (fingerprint, Estimate or None, sentence)


@dataclasses.dataclass(frozen=True)
class Warning:
    text: str
    fix: str = ""  # identifier of FIXES, "" when only people can mend it
    object: str = ""


FIXES = (
    ("SAVE", "Save File", "Save the file, so that frames go beside it and are kept"),
    ("LOCK", "Lock Interface", "Lock the interface while rendering: frames change in the render's thread"),
    ("CLOSE", "Fill Holes", "Fill the holes of the mesh and turn its faces outwards"),
    ("LARGER", "Larger Grains", "Make the grains so large that a million of them fill the sand"),
    ("SMALLER", "Smaller Grains", "Make the grains small enough for the mesh: a twelfth of its smallest dimension"),
    ("FOLDER", "Default Folder", "Put the cache folder back beside the file"),
    ("PUSH", "Push Out", "Move the bodies out of the colliders that they overlap"),
    ("SHOW", "Enable", "Show the object in the viewport, so that its modifiers and animation are read"),
)


def _mesh_volume(ob):
    """Volume (m^3) of an object's mesh as it is, without modifiers, and whether every edge has two faces. Cached."""
    mesh = ob.data
    matrix = ob.matrix_world
    key = (ob.session_uid, len(mesh.vertices), len(mesh.polygons), tuple(x for row in matrix for x in row))
    if key in _volumes:
        return _volumes[key]
    if len(mesh.polygons) == 0 or len(mesh.polygons) > POLYGON_LIMIT:
        return (0.0, True)
    places = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.vertices.foreach_get("co", places)
    places = places.reshape(-1, 3).astype(np.float64)
    starts = np.empty(len(mesh.polygons), np.int32)
    totals = np.empty(len(mesh.polygons), np.int32)
    corners = np.empty(len(mesh.loops), np.int32)
    edges = np.empty(len(mesh.loops), np.int32)
    mesh.polygons.foreach_get("loop_start", starts)
    mesh.polygons.foreach_get("loop_total", totals)
    mesh.loops.foreach_get("vertex_index", corners)
    mesh.loops.foreach_get("edge_index", edges)
    # Fans of every polygon: corner 0 with each following pair.
    volume = 0.0
    for size in np.unique(totals):
        first = starts[totals == size]
        for k in range(1, int(size) - 1):
            a, b, c = (places[corners[first + j]] for j in (0, k, k + 1))
            volume += float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum()) / 6.0
    is_closed = bool((np.bincount(edges, minlength=len(mesh.edges)) == 2).all())
    scale = abs(matrix.to_3x3().determinant())
    if len(_volumes) > 500:
        _volumes.clear()
    _volumes[key] = (abs(volume) * scale, is_closed)
    return _volumes[key]


def _bound(settings):
    """Bounding radius (m) of a grain of these settings, and its spheres."""
    if settings.shape == "CUSTOM":
        ob = settings.grain_object
        return (max(1e-6, 0.5 * max(ob.dimensions)) if ob is not None else settings.radius), settings.clump_count
    kind = assembly.make_kind(job.Grains(radius=settings.radius, shape=settings.shape, rod_count=settings.rod_count))
    return kind.bound, len(kind.offsets)


def grain_settings(scene, ob):
    return ob.barchan.grains if ob.barchan.own_grains else scene.barchan


def count_grains(scene):
    """About how many grains and spheres the scene will have, from volumes and rates alone."""
    grains = spheres = 0.0
    first, last = properties.frame_range(scene)
    seconds = max(0, last - first) * scene.render.fps_base / scene.render.fps
    for ob in export.objects_of_type(scene, "SAND") + export.objects_of_type(scene, "EMITTER"):
        settings = grain_settings(scene, ob)
        bound, sphere_count = _bound(settings)
        if ob.barchan.type == "SAND":
            volume, _is_closed = _mesh_volume(ob)
            if settings.size_kind != "EQUAL":  # large grains keep the small ones apart
                bound *= min(settings.size_high, MIXED_SPACING)
            edge = volume ** (1.0 / 3.0)
            count = LATTICE * max(0.0, edge - 2.0 * bound) ** 3 / (assembly.FILL_SPACING * bound) ** 3
        else:
            count = ob.barchan.rate * seconds
            if ob.barchan.use_range:
                count = ob.barchan.rate * max(0, ob.barchan.emit_end - ob.barchan.emit_start) * seconds / max(1, last - first)
            if ob.barchan.target_count:
                count = min(count, ob.barchan.target_count)
        grains += count
        spheres += count * sphere_count
    return int(grains), int(spheres)


def warnings(scene):
    """What is amiss, as far as a panel can see while it draws."""
    found = []
    if properties.is_folder_temporary(scene):
        found.append(
            Warning("The file is not saved: frames go to a temporary folder and are lost when Blender closes", "SAVE")
        )
    if not scene.render.use_lock_interface:
        found.append(Warning("Lock the interface while rendering: frames change in the render's thread", "LOCK"))
    for ob in export.objects_of_type(scene, "SAND") + export.objects_of_type(scene, "BODY"):
        is_sand = ob.barchan.type == "SAND"
        if not ob.modifiers and not _mesh_volume(ob)[1]:
            found.append(Warning(f"'{ob.name}' is open; {'sand fills' if is_sand else 'a body needs'} a closed mesh", "CLOSE", ob.name))
        if is_sand and len(ob.data.polygons):
            bound, _count = _bound(grain_settings(scene, ob))
            if min(ob.dimensions) < 2.0 * bound:
                found.append(Warning(f"'{ob.name}' is too thin for a grain, which is {2 * bound:.3g} m thick", "SMALLER", ob.name))
        if (ob.hide_viewport or ob.hide_get()) and (ob.modifiers or export.may_move(ob)) and ob.hide_viewport:
            found.append(Warning(f"'{ob.name}' is disabled in the viewport and cannot be read", "SHOW", ob.name))
    grains, _spheres = count_grains(scene)
    if grains > MANY_GRAINS:
        found.append(Warning(f"About {grains:,} grains: that takes hours and gigabytes", "LARGER"))
    folder = properties.cache_folder(scene)
    if os.path.exists(folder) and not os.path.isdir(folder):
        found.append(Warning(f"The cache folder '{folder}' is a file", "FOLDER"))
    result = last_estimate(scene)
    if result is not None:
        free = bake.disk_free(folder)
        if result.disk > free:
            found.append(Warning(f"The frames need {bake.size(result.disk)} and the disk has {bake.size(free)} free", "LARGER"))
        limit = properties.byte_limit(scene)
        if 0 < limit < result.disk:
            found.append(Warning(f"The frames need {bake.size(result.disk)}, more than the disk limit of {bake.size(limit)}"))
        found += [Warning(text) for text in result.warnings]
    return found


def last_estimate(scene):
    """The Estimate of the scene as it is now, None when there is none."""
    fingerprint, result, _text = _results.get(scene.session_uid, ("", None, ""))
    return result if result is not None and fingerprint == _fingerprint(scene) else None


def estimate_problem(scene):
    """Why the last estimate failed, as (sentence, Warning or None); ("", None) when it did not or the scene has changed."""
    fingerprint, _result, text = _results.get(scene.session_uid, ("", None, ""))
    if not text or fingerprint != _fingerprint(scene):
        return "", None
    fix = Warning(text, "PUSH") if "overlaps collider" in text else None
    return text, fix


def _fingerprint(scene):
    first, last = properties.frame_range(scene)
    settings = scene.barchan
    return export.fingerprint(scene) + repr((first, last, settings.threads, settings.engine, settings.is_exact))


class BARCHAN_OT_estimate(stage.Read, bpy.types.Operator):
    """Run the first steps of this scene on this machine, and say what the bake will take. Esc stops it; nothing is written"""

    bl_idname = "barchan.estimate"
    bl_label = "Estimate"
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        if not operators.is_ready(cls):
            return False
        if estimate.running is not None:
            cls.poll_message_set("An estimate is running; press Esc in the 3D view to stop it")
            return False
        if not operators.has_sand(context.scene):
            cls.poll_message_set(operators.NO_SAND)
            return False
        return True

    def _make_run(self, the_job):
        return estimate.Estimation(the_job)

    def _set_running(self, run):
        estimate.running = run

    def _refuse(self, scene, sentence):
        if scene is not None:
            self._keep(scene, None, sentence)
        self.report({"ERROR"}, sentence)

    def _keep(self, scene, result, text):
        _results[scene.session_uid] = (_fingerprint(scene), result, text)

    def _finish(self, scene, run):
        if scene is not None and (run.result is not None or run.error):
            self._keep(scene, run.result, run.error)
        if run.error:
            self.report({"ERROR"}, run.error)
            return {"CANCELLED"}
        if run.result is None:
            self.report({"INFO"}, "Stopped")
            return {"CANCELLED"}
        self.report({"INFO"}, "; ".join(run.result.lines()))
        return {"FINISHED"}

    def execute(self, context):
        try:
            with playback.paused():
                run = estimate.Estimation(export.make_job(context))
        except (job.BakeError, MemoryError) as error:
            self._refuse(context.scene, engine.sentence(error))
            return {"CANCELLED"}
        run.run()
        return self._finish(context.scene, run)

    def invoke(self, context, _event):
        return self._begin(context) if stage.has_window(context) else self.execute(context)


class BARCHAN_OT_fix(bpy.types.Operator):
    """Mend what the warning beside this button says"""

    bl_idname = "barchan.fix"
    bl_label = "Fix"
    bl_options = {"REGISTER", "UNDO"}

    what: EnumProperty(name="What", description="What is mended", items=[row[:3] for row in FIXES], default="LOCK")
    object: StringProperty(name="Object", description="Name of the object that is mended; empty for the scene", default="")

    @classmethod
    def description(cls, _context, operator_properties):
        return next(row[2] for row in FIXES if row[0] == operator_properties.what)

    @classmethod
    def poll(cls, context):
        return operators.is_ready(cls) and operators.is_in_object_mode(cls, context)

    def execute(self, context):
        scene = context.scene
        ob = scene.objects.get(self.object) if self.object else None
        if self.object and ob is None:
            self.report({"ERROR"}, f"There is no object '{self.object}' in this scene")
            return {"CANCELLED"}
        return getattr(self, f"_fix_{self.what.lower()}")(context, scene, ob)

    def _fix_save(self, context, _scene, _ob):
        if bpy.app.background or context.window is None:
            self.report({"ERROR"}, "Without a window, save the file with bpy.ops.wm.save_as_mainfile")
            return {"CANCELLED"}
        bpy.ops.wm.save_as_mainfile("INVOKE_DEFAULT")
        return {"FINISHED"}

    def _fix_lock(self, _context, scene, _ob):
        scene.render.use_lock_interface = True
        return {"FINISHED"}

    def _fix_folder(self, _context, scene, _ob):
        scene.barchan.folder = properties.DEFAULT_FOLDER
        return {"FINISHED"}

    def _fix_show(self, _context, _scene, ob):
        ob.hide_viewport = False
        return {"FINISHED"}

    def _fix_close(self, _context, _scene, ob):
        import bmesh

        if ob is None or not ob.is_editable or not ob.data.is_editable:
            self.report({"ERROR"}, f"Object '{self.object}' is linked from another file; make it local first")
            return {"CANCELLED"}
        made = bmesh.new()
        made.from_mesh(ob.data)
        bmesh.ops.remove_doubles(made, verts=made.verts, dist=1e-6 * max(max(ob.dimensions), 1e-6))
        bmesh.ops.holes_fill(made, edges=[edge for edge in made.edges if edge.is_boundary], sides=0)
        bmesh.ops.recalc_face_normals(made, faces=made.faces)
        open_count = sum(not edge.is_manifold for edge in made.edges)
        made.to_mesh(ob.data)
        made.free()
        ob.data.update()
        _volumes.clear()
        if open_count:
            self.report({"WARNING"}, f"{open_count} edges of '{ob.name}' still have no two faces; mend them in edit mode")
        return {"FINISHED"}

    def _fix_larger(self, _context, scene, _ob):
        count, _spheres = count_grains(scene)
        if count > 1e6:
            factor = (count / 1e6) ** (1.0 / 3.0)
            scene.barchan.radius *= factor
            for ob in export.objects_of_type(scene, "SAND"):
                ob.barchan.grains.radius *= factor
        else:
            scene.barchan.radius *= 2.0 ** (1.0 / 3.0)
        self.report({"INFO"}, f"The sphere radius is {scene.barchan.radius:.4g} m now")
        return {"FINISHED"}

    def _fix_smaller(self, _context, scene, ob):
        settings = grain_settings(scene, ob)
        bound, _count = _bound(settings)
        if settings.shape == "CUSTOM":
            self.report({"ERROR"}, "A custom grain is as large as its object; scale the grain object down")
            return {"CANCELLED"}
        settings.radius *= min(1.0, min(ob.dimensions) / 12.0 / bound)
        self.report({"INFO"}, f"The sphere radius is {settings.radius:.4g} m now")
        return {"FINISHED"}

    def _fix_push(self, context, scene, _ob):
        for other in context.selected_objects:
            other.select_set(False)
        for body in export.objects_of_type(scene, "BODY"):
            body.select_set(True)
        return bpy.ops.barchan.push_out()


_classes = (BARCHAN_OT_estimate, BARCHAN_OT_fix)


def register():
    for cls in _classes:
        bpy.utils.register_class(cls)


def unregister():
    estimate.stop_running()
    _results.clear()
    _volumes.clear()
    for cls in reversed(_classes):
        bpy.utils.unregister_class(cls)
