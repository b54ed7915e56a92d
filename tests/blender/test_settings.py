# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings and starters: every property says what it is, every grey button says why, presets, own grains, forces, moving
emitters, templates, the estimate and its warnings."""

import harness
import numpy as np
from harness import FOLDER, bpy, check, room

FREE_OF_RANGE = {"seed"}  # any number will do


def groups():
    properties = room("properties")
    return [properties.BarchanObject, properties.BarchanScene, properties.BarchanGrains]


def own_properties(group):
    return [prop for prop in group.bl_rna.properties if prop.identifier not in {"rna_type", "name"}]


def test_every_property_has_a_tooltip_a_range_and_a_unit():
    complaints = []
    for group in groups():
        for prop in own_properties(group):
            where = f"{group.__name__}.{prop.identifier}"
            text = prop.description
            if len(text) < 10 or text.endswith("."):
                complaints.append(f"{where}: tooltip '{text}'")
            if prop.is_hidden:
                continue
            if not prop.name:
                complaints.append(f"{where}: no name")
            if prop.type in {"INT", "FLOAT"} and prop.identifier not in FREE_OF_RANGE:
                if prop.hard_max >= (2**31 - 1 if prop.type == "INT" else 1e30) or prop.hard_min <= -(2**31):
                    complaints.append(f"{where}: range {prop.hard_min} to {prop.hard_max}")
            if prop.type == "FLOAT" and prop.unit == "NONE":
                is_said = any(words in text for words in ("(no unit)", "kg/m", "rad/s", " in Pa", "per second", "1/s", "megabytes"))
                is_share = text.startswith("Share of")
                if not is_said and not is_share:
                    complaints.append(f"{where}: no unit")
    check(not complaints, "; ".join(complaints))


def test_the_walk_refuses_a_property_without_a_tooltip():
    class Bad(bpy.types.PropertyGroup):
        length: bpy.props.FloatProperty(name="Length")

    bpy.utils.register_class(Bad)
    try:
        prop = Bad.bl_rna.properties["length"]
        check(prop.description == "" and prop.hard_max > 1e30 and prop.unit == "NONE", "the walk would not see it")
    finally:
        bpy.utils.unregister_class(Bad)


def test_every_operator_has_a_tooltip_and_a_grey_one_says_why():
    harness.new_file()
    harness.load_addon()
    rooms = [room(name) for name in ("operators", "starters", "checks")]
    classes = [cls for one in rooms for cls in vars(one).values() if hasattr(cls, "bl_idname") and "OT" in str(cls)]
    classes = {cls.bl_idname: cls for cls in classes if issubclass(cls, bpy.types.Operator)}
    check(len(classes) >= 15, sorted(classes))
    grey = {}
    for name, cls in sorted(classes.items()):
        operator = getattr(bpy.ops.barchan, name.split(".")[1])
        check(len((cls.__doc__ or "")) > 10, f"{name} has no tooltip")
        for prop in operator.get_rna_type().properties:
            if prop.identifier != "rna_type" and not prop.is_hidden:
                check(len(prop.description) > 5, f"{name}.{prop.identifier} has no tooltip")
        if operator.poll():
            continue
        try:
            operator()
        except RuntimeError as error:
            grey[name] = str(error)
        check("poll()" in grey[name] and "context is incorrect" not in grey[name], f"{name} does not say why: {grey[name]}")
    print("  grey in an empty file:", ", ".join(sorted(grey)))
    check({"barchan.resume", "barchan.free", "barchan.export", "barchan.estimate", "barchan.stop"} <= set(grey), sorted(grey))


def test_presets_set_shape_sizes_and_material_and_leave_the_radius():
    harness.new_file()
    settings = bpy.context.scene.barchan
    starters = room("starters")
    check(len(starters.preset_items()) == 7, starters.preset_items())
    for identifier, label, text in starters.preset_items():
        check("angle of repose" in text, text)
        bpy.ops.barchan.preset(name=identifier)
        check(starters.preset_of(settings) == label, f"{label} reads back as '{starters.preset_of(settings)}'")
    check(abs(settings.radius - 0.02) < 1e-7, settings.radius)
    settings.friction = 0.123
    check(starters.preset_of(settings) == "", "a changed preset keeps its name")
    settings.quality = "FINE"
    check(abs(settings.max_overlap - 0.1) < 1e-6, settings.max_overlap)
    settings.max_overlap = 0.3
    check(settings.quality == "CUSTOM", settings.quality)


def make_job():
    return room("export").make_job(bpy.context)


def assemble():
    warnings = []
    return room("assembly").assemble(make_job(), warnings), warnings


def test_objects_have_grains_of_their_own():
    harness.new_file()
    scene = bpy.context.scene
    scene.barchan.radius = 0.05
    scene.barchan.shape = "SPHERE"
    harness.mark(harness.add_box("Plain", (0.6, 0.6, 0.6)), "SAND")
    other = harness.add_box("Rice", (0.6, 0.6, 0.6), (2, 0, 0))
    harness.mark(other, "SAND")
    bpy.context.view_layer.objects.active = other
    bpy.ops.barchan.preset(name="RICE", target="OBJECT")
    other.barchan.grains.radius = 0.02
    brick = harness.add_box("Brick", (0.2, 0.1, 0.08), (0, 5, 0))
    third = harness.add_box("Wall", (1, 1, 1), (4, 0, 0))
    harness.mark(third, "SAND")
    third.barchan.own_grains = True
    third.barchan.grains.shape = "CUSTOM"
    try:
        bpy.ops.barchan.bake()
        check(False, "a custom grain without an object was baked")
    except RuntimeError as error:
        check("no grain object is chosen" in str(error), error)
    third.barchan.grains.grain_object = brick
    before = room("export").fingerprint(scene)
    made, _warnings = assemble()
    print("  shapes", made.shape_names, "sources", made.source_names, "counts", np.bincount(made.sources).tolist())
    check(made.source_names == ("Plain", "Rice", "Wall"), made.source_names)
    check(set(made.shape_names) == {"SPHERE", "ROD", "Brick"}, made.shape_names)
    check(len(made.material_names) >= 2 and made.scene.grain_count == len(made.sources), made.material_names)
    other.barchan.grains.friction = 0.9
    check(room("export").fingerprint(scene) != before, "a change of own grains goes unnoticed")


def test_every_shape_and_size_is_drawn_as_it_is_simulated():
    harness.new_file()
    scene = bpy.context.scene
    scene.barchan.folder = str(FOLDER / "shapes")
    scene.barchan.radius, scene.barchan.shape = 0.05, "SPHERE"
    scene.barchan.size_kind, scene.barchan.size_low, scene.barchan.size_high = "UNIFORM", 0.8, 1.2
    scene.frame_start, scene.frame_end = 1, 3
    harness.mark(harness.add_box("Plain", (0.6, 0.6, 0.6)), "SAND")
    other = harness.add_box("Rods", (0.6, 0.6, 0.6), (2, 0, 0))
    harness.mark(other, "SAND")
    other.barchan.own_grains = True
    other.barchan.grains.shape, other.barchan.grains.rod_count, other.barchan.grains.radius = "ROD", 4, 0.03
    bpy.ops.barchan.bake()
    scene.frame_set(3)
    arrays = room("engine").core.read_frame(str(FOLDER / "shapes"), 3)["arrays"]
    made, _warnings = assemble()
    rods = next(row for row in made.grain_shapes if row.name == "ROD")
    expected = []
    for place, turn, radius, shape in zip(arrays["position"], arrays["rotation"], arrays["radius"], arrays["shape"]):
        if shape != rods.index:
            expected.append((*place, radius))
            continue
        size = radius / rods.radii.max()
        centres = place + harness.rotate(turn[None], rods.offsets * size)[0]
        expected += [(*centre, size * one) for centre, one in zip(centres, rods.radii)]
    expected = np.array(expected)
    points, radii = harness.drawn_points(scene)
    found = np.column_stack((points, radii))
    check(found.shape == expected.shape, f"{len(found)} points are drawn, {len(expected)} spheres are simulated")
    check(len({round(float(r), 4) for r in found[:, 3]}) > 20, "all grains are of one size")
    distances = np.linalg.norm(found[:, None, :] - expected[None], axis=2).min(axis=1)
    check(distances.max() < 1e-3, f"a sphere is drawn {distances.max():.2g} m off")


def test_a_force_pushes_and_wind_drags_in_a_bake():
    harness.new_file()
    scene = bpy.context.scene
    scene.barchan.radius, scene.barchan.shape = 0.05, "SPHERE"
    scene.barchan.folder = str(FOLDER / "force")
    scene.frame_start, scene.frame_end = 1, 6
    scene.use_gravity = False
    harness.mark(harness.add_box("Block", (0.4, 0.4, 0.4)), "SAND")
    fan = harness.add_box("Fan", (4, 4, 4))
    harness.mark(fan, "FORCE")
    fan.barchan.acceleration = (0.0, 3.0, 0.0)
    check(fan.display_type == "WIRE" and fan.hide_render, "a force is drawn and rendered")
    bpy.ops.barchan.bake()
    core = room("engine").core
    speed = core.read_frame(str(FOLDER / "force"), 6)["arrays"]["velocity"].mean(axis=0)
    check(abs(speed[1] - 3.0 * 5 / 24) < 0.02, speed)
    fan.barchan.type = "NONE"
    scene.barchan.drag, scene.barchan.wind = 2.0, (4.0, 0.0, 0.0)
    bpy.ops.barchan.bake()
    speed = core.read_frame(str(FOLDER / "force"), 6)["arrays"]["velocity"].mean(axis=0)
    check(abs(speed[0] - 4.0 * (1 - np.exp(-2.0 * 5 / 24))) < 0.03, speed)


def test_an_emitter_with_keyframes_leaves_its_grains_along_its_way():
    harness.new_file()
    scene = bpy.context.scene
    scene.barchan.radius, scene.barchan.shape = 0.02, "SPHERE"
    scene.frame_start, scene.frame_end = 1, 25
    scene.use_gravity = False
    tap = harness.add_box("Tap", (0.2, 0.2, 0.2))
    harness.mark(tap, "EMITTER")
    tap.barchan.rate, tap.barchan.inherit = 40.0, 0.0
    tap.location = (0, 0, 0)
    tap.keyframe_insert("location", frame=1)
    tap.location = (4, 0, 0)
    tap.keyframe_insert("location", frame=25)
    told = []
    the_job = room("export").make_job(bpy.context, told.append)
    check(the_job.emitters[0].track is not None, "the emitter stands")
    check(told and told[0] == 0.0 and max(told) < 1.0 and len(told) >= 25, f"the export tells {told}")
    made = room("assembly").assemble(the_job, [])
    sim = room("engine").core.Sim(made.scene, threads=1)
    sim.advance(1.0)
    places = np.sort(sim.positions()[sim.flags() & 8 == 0][:, 0])
    print("  grains from", places[0], "to", places[-1])
    check(places[0] < 0.3 and places[-1] > 3.6, (places[0], places[-1]))
    check(np.diff(places).max() < 0.5, np.diff(places).max())


def test_quick_sand_marks_the_selection_and_puts_a_floor_under_it():
    harness.new_file()
    ob = harness.add_box("Block", (1, 1, 1), (0, 0, 2))
    bpy.ops.object.select_all(action="DESELECT")
    check(not bpy.ops.barchan.quick_sand.poll(), "Quick Sand without a selection")
    ob.select_set(True)
    bpy.ops.barchan.quick_sand(preset="GRAVEL")
    check(ob.barchan.type == "SAND", ob.barchan.type)
    floors = [one for one in bpy.context.scene.objects if one.barchan.type == "COLLIDER"]
    check(len(floors) == 1 and floors[0].location.z < 1.5, floors)
    count, _spheres = room("checks").count_grains(bpy.context.scene)
    check(1500 < count < 12000, f"{count} grains")
    made, _warnings = assemble()
    print("  about", count, "announced,", made.scene.grain_count, "made")


def test_the_add_menu_adds_marked_objects_that_can_be_baked():
    harness.new_file()
    kinds = [row[0] for row in room("starters").ADDED]
    for kind in kinds:
        bpy.ops.barchan.add(kind=kind)
    types = sorted(ob.barchan.type for ob in bpy.context.scene.objects if ob.type == "MESH" and ob.barchan.type != "NONE")
    check(types == ["BODY", "COLLIDER", "COLLIDER", "EMITTER", "FORCE", "OUTFLOW", "SAND"], types)
    core = room("engine").core
    for name in ("SAND", "BODY", "EMITTER"):
        for source in room("export").objects_of_type(bpy.context.scene, name):
            found = room("export").read_object(source, bpy.context.evaluated_depsgraph_get())
            mesh = core.Mesh(found.vertices, found.triangles, name=source.name)
            check(mesh.is_closed and mesh.volume > 0, f"'{source.name}' is open or inside out")


def test_the_six_templates_are_whole_scenes():
    harness.new_file()
    before = len(bpy.data.scenes)
    names = [row[0] for row in room("starters").TEMPLATES]
    check(len(names) == 6, names)
    for name in names:
        bpy.ops.barchan.template(name=name)
        scene = next(one for one in bpy.data.scenes if one.name.startswith("Barchan") and one.get("seen") is None)
        scene["seen"] = True
        with bpy.context.temp_override(scene=scene, view_layer=scene.view_layers[0]):
            made, warnings = assemble()
        print(f"  {scene.name}: {made.scene.grain_count} grains, {made.scene.sphere_count} spheres, {scene.frame_end} frames, {warnings}")
        check(200 < made.scene.grain_count < 8000, made.scene.grain_count)
        check(made.scene.sphere_count < 16000, made.scene.sphere_count)
    check(len(bpy.data.scenes) == before + 6, "scenes are missing")


def test_the_estimate_comes_from_a_run_of_this_scene():
    harness.new_file()
    scene = bpy.context.scene
    scene.barchan.radius = 0.04
    scene.frame_start, scene.frame_end = 1, 10
    harness.mark(harness.add_box("Block", (0.6, 0.6, 0.6), (0, 0, 1)), "SAND")
    harness.mark(harness.add_box("Floor", (4, 4, 0.2), (0, 0, 0)), "COLLIDER")
    checks = room("checks")
    check(checks.last_estimate(scene) is None, "an estimate before any was made")
    bpy.ops.barchan.estimate()
    found = checks.last_estimate(scene)
    made, _warnings = assemble()
    print("  " + "; ".join(found.lines()))
    check(found.grain_count == made.scene.grain_count and found.sphere_count == made.scene.sphere_count, found)
    check(found.seconds > 0 and found.disk > 0 and found.substeps > 10 and found.engine, found)
    about, _spheres = checks.count_grains(scene)
    check(0.5 < about / found.grain_count < 2.0, f"announced {about}, made {found.grain_count}")
    scene.barchan.radius = 0.05
    check(checks.last_estimate(scene) is None, "the estimate of other settings is shown")


def test_a_running_estimate_can_be_stopped():
    harness.new_file()
    harness.mark(harness.add_box("Block", (1, 1, 1)), "SAND")
    bpy.context.scene.barchan.radius = 0.02
    run = room("estimate").Estimation(make_job())
    run.cancel()
    run.run()
    check(run.is_finished and run.result is None and run.error == "", (run.result, run.error))


def test_warnings_come_with_a_button_that_mends_them():
    harness.new_file()
    scene = bpy.context.scene
    checks = room("checks")
    ob = harness.add_box("Block", (1, 1, 1))
    harness.mark(ob, "SAND")

    def fixes():
        return {warning.fix for warning in checks.warnings(scene)}

    check({"SAVE", "LOCK"} <= fixes(), fixes())
    bpy.ops.barchan.fix(what="LOCK")
    check("LOCK" not in fixes() and scene.render.use_lock_interface, fixes())
    import bmesh

    made = bmesh.new()
    made.from_mesh(ob.data)
    made.faces.ensure_lookup_table()
    bmesh.ops.delete(made, geom=[made.faces[0]], context="FACES_ONLY")
    made.to_mesh(ob.data)
    made.free()
    check("CLOSE" in fixes(), fixes())
    bpy.ops.barchan.fix(what="CLOSE", object="Block")
    check("CLOSE" not in fixes(), fixes())
    made, _warnings = assemble()
    check(made.scene.grain_count > 0, "the mended mesh holds no grain")
    scene.barchan.radius = 0.001
    check("LARGER" in fixes(), fixes())
    bpy.ops.barchan.fix(what="LARGER")
    check("LARGER" not in fixes() and scene.barchan.radius > 0.002, scene.barchan.radius)
    scene.barchan.radius = 0.4
    check("SMALLER" in fixes(), fixes())
    bpy.ops.barchan.fix(what="SMALLER", object="Block")
    check("SMALLER" not in fixes(), fixes())


if __name__ == "__main__":
    harness.main(globals())
