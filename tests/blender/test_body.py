# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert to Particle Body: instances share, scale and modifiers count, redo, undo and reload keep it, and every hard mesh
gives a good body or one clear sentence."""

import json
import math

import harness
from harness import FOLDER, bpy, check, check_arrays, check_equal, np, read_attribute, room
from mathutils import bvhtree


def select(*objects):
    for ob in bpy.context.scene.objects:
        ob.select_set(ob in objects)
    bpy.context.view_layer.objects.active = objects[0] if objects else None


def convert(*objects, **settings):
    select(*objects)
    check_equal(bpy.ops.barchan.convert_to_body(**settings), {"FINISHED"}, "result of the conversion")


def centres(ob):
    return read_attribute(ob.barchan.body, "position", "vector", 3)


def report(ob):
    return json.loads(ob.barchan.body["barchan_body"])


def box_distance(points, size):
    """Distance of points from the surface of a box of edge lengths size about the origin."""
    beyond = np.abs(points.astype(np.float64)) - np.asarray(size) / 2
    outside = np.linalg.norm(np.maximum(beyond, 0), axis=1)
    return np.abs(outside + np.minimum(beyond.max(axis=1), 0))


def preview_spheres(ob):
    """World matrices (N,4,4) of the spheres that the preview draws."""
    bpy.context.view_layer.update()
    depsgraph = bpy.context.evaluated_depsgraph_get()
    child = ob.barchan.preview
    found = [
        [list(row) for row in instance.matrix_world]
        for instance in depsgraph.object_instances
        if instance.is_instance and instance.parent is not None and instance.parent.original == child
    ]
    return np.array(found, np.float64).reshape(-1, 4, 4)


def refused(*words, **settings):
    """The conversion must fail with one sentence that holds the words, and change nothing."""
    before = harness.data_digest()
    sentence = harness.error_of(bpy.ops.barchan.convert_to_body, **settings)
    print(f"  {sentence}")
    lines = [line for line in sentence.splitlines() if line.startswith("Error:")]
    check_equal(len(lines), 1, f"error sentences in {sentence!r}")
    check("Traceback" not in sentence, f"{sentence!r} is not a sentence for a user")
    for word in words:
        check(word.lower() in sentence.lower(), f"{sentence!r} does not say {word!r}")
    check_equal(harness.data_digest(), before, "data of the file")


def check_cover(ob, size):
    """Spheres of a box: on its surface, neither crowded nor with holes."""
    found = report(ob)
    print("  ", {key: round(value, 4) if isinstance(value, float) else value for key, value in found.items()})
    check(box_distance(centres(ob), size).max() < 1e-5, "a centre is off the surface")
    check_equal(found["sphere_count"], len(centres(ob)), "spheres in the report")
    check(found["spacing_min"] > 0.5 * found["spacing"], f"spheres crowd: {found['spacing_min']}")
    check(found["uncovered_share"] < 0.02, f"{found['uncovered_share']} of the area is uncovered")


# ---------------------------------------------------------------------------------------------------------------------
# What is made


def test_a_cube_becomes_spheres_on_its_surface():
    harness.new_file()
    cube = harness.add_box("Cube", (1, 1, 1), (3, 4, 5))
    convert(cube, radius=0.05)
    check_cover(cube, (1, 1, 1))
    mesh = cube.barchan.body
    check(mesh.name.startswith("Barchan Body Cube"), mesh.name)
    radius = read_attribute(mesh, "radius", "value", 1)
    check_arrays(radius, np.full(len(mesh.vertices), 0.05, np.float32), "radius", 1e-7)
    shares = read_attribute(mesh, "mass_share", "value", 1).astype(np.float64)
    check(abs(shares.sum() - 1) < 1e-4, f"mass shares add up to {shares.sum()}")
    fit = read_attribute(mesh, "fit", "value", 1)
    positions = centres(cube).astype(np.float64)
    square = ((positions[:, None] - positions[None]) ** 2).sum(axis=2)
    np.fill_diagonal(square, np.inf)
    check_arrays(fit, np.sqrt(square.min(axis=1)) / report(cube)["spacing"], "fit", 1e-5)


def test_the_default_radius_is_a_fortieth_of_the_largest_dimension():
    harness.new_file()
    bar = harness.add_box("Bar", (2, 0.5, 0.5))
    bar.scale = (1, 1, 2)
    bpy.context.view_layer.update()
    convert(bar)
    check(abs(report(bar)["radius"] - 2 / 40) < 1e-6, f"radius {report(bar)['radius']}")


def test_a_filled_cube_holds_its_spheres():
    harness.new_file()
    cube = harness.add_box("Cube", (1, 1, 1))
    convert(cube, radius=0.06, fill="VOLUME")
    points = centres(cube)
    check(len(points) > 200, f"{len(points)} spheres")
    check(np.abs(points).max() < 0.5, f"a centre is outside: {np.abs(points).max()}")
    found = report(cube)
    print("  ", found)
    check(found["volume_error"] < 0.01, f"volume error {found['volume_error']}")
    check(found["inertia_error"] < 0.01, f"inertia error {found['inertia_error']}")
    check(found["hausdorff"] <= found["radius"], f"Hausdorff {found['hausdorff']} m, radius {found['radius']} m")


def test_two_instances_share_one_body():
    harness.new_file()
    first = harness.add_box("First", (1, 1, 1))
    second = bpy.data.objects.new("Second", first.data)
    third = bpy.data.objects.new("Third", first.data)
    for ob in (second, third):
        bpy.context.scene.collection.objects.link(ob)
    second.location, second.rotation_euler = (3, 0, 0), (0.3, 1.2, -0.7)
    third.scale = (1, 1, 2)
    bpy.context.view_layer.update()
    convert(first, second, third, radius=0.1)
    check(first.barchan.body == second.barchan.body, "turned instances have two bodies")
    check(third.barchan.body != first.barchan.body, "an instance of another scale shares the body")
    check(first.barchan.preview != second.barchan.preview, "two objects share one preview")
    fourth = bpy.data.objects.new("Fourth", first.data)
    bpy.context.scene.collection.objects.link(fourth)
    bpy.context.view_layer.update()
    convert(fourth, radius=0.1)
    check(fourth.barchan.body == first.barchan.body, "an instance converted afterwards has a body of its own")


def test_modifiers_and_uneven_scale_are_measured():
    harness.new_file()
    ob = harness.add_box("Pair", (1, 1, 1), (1, 2, 3))
    array = ob.modifiers.new("Array", "ARRAY")
    array.count, array.use_relative_offset, array.use_constant_offset = 2, False, True
    array.constant_offset_displace = (2, 0, 0)
    ob.scale = (1.0, 2.0, 0.5)
    ob.rotation_euler = (0.4, -0.2, 1.0)
    bpy.context.view_layer.update()
    convert(ob, radius=0.06)
    points = centres(ob)
    size = (1.0, 2.0, 0.5)
    near = np.minimum(box_distance(points, size), box_distance(points - np.float32([2, 0, 0]), size))
    check(near.max() < 1e-5, f"a centre is {near.max()} m off the two scaled boxes")
    check((points[:, 0] > 1).sum() > 0.4 * len(points), "the copy of the array modifier has no spheres")
    # What is drawn: balls of that radius at the places that the object's matrix gives the surface.
    matrices = preview_spheres(ob)
    check_equal(len(matrices), len(points), "spheres drawn")
    lengths = np.linalg.norm(matrices[:, :3, :3], axis=1)
    check(np.abs(lengths - 0.06).max() < 1e-5, f"drawn radii from {lengths.min()} to {lengths.max()}")
    local = points.astype(np.float64) / np.array(size)
    world = local @ np.array(ob.matrix_world)[:3, :3].T + np.array(ob.matrix_world)[:3, 3]
    difference = np.abs(np.sort(matrices[:, :3, 3], axis=0) - np.sort(world, axis=0)).max()
    check(difference < 1e-5, f"spheres are drawn {difference} m off their places")


def test_a_mirrored_and_sheared_object_is_drawn_where_it_is():
    harness.new_file()
    parent = bpy.data.objects.new("Parent", None)
    bpy.context.scene.collection.objects.link(parent)
    parent.scale = (1.0, 2.0, -1.0)
    ob = harness.add_box("Child", (1, 1, 1))
    ob.parent = parent
    ob.rotation_euler = (0.0, 0.0, math.radians(30))
    bpy.context.view_layer.update()
    convert(ob, radius=0.1)
    matrices = preview_spheres(ob)
    lengths = np.linalg.norm(matrices[:, :3, :3], axis=1)
    check(np.abs(lengths - 0.1).max() < 1e-4, f"drawn radii from {lengths.min()} to {lengths.max()}")
    local = (matrices[:, :3, 3] - np.array(ob.matrix_world)[:3, 3]) @ np.linalg.inv(np.array(ob.matrix_world)[:3, :3]).T
    check(box_distance(local, (1, 1, 1)).max() < 1e-4, "a sphere is drawn off the surface")


def test_the_preview_can_be_hidden_and_is_not_rendered():
    harness.new_file()
    cube = harness.add_box("Cube", (1, 1, 1))
    convert(cube, radius=0.1)
    child = cube.barchan.preview
    check(child.parent == cube and child.hide_select and child.hide_render, "preview can be selected or rendered")
    check(len(preview_spheres(cube)) == len(centres(cube)), "spheres are not drawn")
    cube.barchan.show_body = False
    check_equal(len(preview_spheres(cube)), 0, "spheres drawn when hidden")
    cube.barchan.show_body = True
    check(len(preview_spheres(cube)) > 0, "spheres are not drawn again")


# ---------------------------------------------------------------------------------------------------------------------
# Again, back, away


def bodies():
    return [mesh.name for mesh in bpy.data.meshes if mesh.name.startswith("Barchan Body")]


def test_converting_again_replaces_the_body():
    harness.new_file()
    cube = harness.add_box("Cube", (1, 1, 1))
    convert(cube, radius=0.1)
    first, child = len(centres(cube)), cube.barchan.preview
    convert(cube, radius=0.05)
    ratio = len(centres(cube)) / first
    check(3 < ratio < 5, f"half the radius gives {ratio} times the spheres")
    check_equal(len(bodies()), 1, "body meshes")
    check(cube.barchan.preview == child and child.data == cube.barchan.body, "the preview shows another body")
    check_equal(len([ob for ob in bpy.data.objects if ob.name.startswith("Barchan")]), 1, "previews")


def test_the_redo_panel_takes_the_last_body_back_before_the_next():
    """What Blender does when a number in the redo panel changes: undo, then the same operator again."""
    harness.new_file()
    select(harness.add_box("Cube", (1, 1, 1)))
    counts = []
    bpy.ops.ed.undo_push(message="before")
    for settings in ({"radius": 0.1}, {"radius": 0.05}, {"radius": 0.05, "spacing_factor": 2.0}, {"fill": "VOLUME"}):
        bpy.ops.barchan.convert_to_body(**settings)
        bpy.ops.ed.undo_push(message="converted")
        cube = bpy.data.objects["Cube"]
        counts.append(len(centres(cube)))
        check_equal(len(preview_spheres(cube)), counts[-1], "spheres drawn")
        check_equal(len(bodies()), 1, "body meshes")
        bpy.ops.ed.undo()
        check_equal((bodies(), [ob.name for ob in bpy.data.objects]), ([], ["Cube"]), "bodies and objects after the undo")
    print("  ", counts)
    check(counts[1] > 3 * counts[0] and counts[2] < counts[1] / 2, f"sphere counts {counts}")


def test_a_preview_that_was_taken_out_of_the_scene_comes_back():
    harness.new_file()
    cube = harness.add_box("Cube", (1, 1, 1))
    convert(cube, radius=0.1)
    bpy.context.scene.collection.objects.unlink(cube.barchan.preview)
    check_equal(len(preview_spheres(cube)), 0, "spheres drawn without the preview")
    convert(cube, radius=0.1)
    check(len(preview_spheres(cube)) > 0, "no spheres are drawn")


def test_seed_decides_and_the_same_seed_repeats():
    harness.new_file()
    cube = harness.add_box("Cube", (1, 1, 1))
    convert(cube, radius=0.1, seed=1)
    first = centres(cube)
    convert(cube, radius=0.1, seed=2)
    second = centres(cube)
    convert(cube, radius=0.1, seed=1)
    check(len(first) != len(second) or not np.array_equal(first, second), "two seeds gave the same spheres")
    check_arrays(centres(cube), first, "spheres of the same seed")


def test_undo_takes_the_body_away_and_redo_brings_it_back():
    harness.new_file()
    cube = harness.add_box("Cube", (1, 1, 1))
    select(cube)
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.barchan.convert_to_body(radius=0.1)
    bpy.ops.ed.undo_push(message="converted")
    expected = centres(bpy.data.objects["Cube"])
    bpy.ops.ed.undo()
    cube = bpy.data.objects["Cube"]
    check(cube.barchan.body is None and cube.barchan.preview is None, "undo left the body")
    check_equal([ob.name for ob in bpy.data.objects], ["Cube"], "objects after undo")
    bpy.ops.ed.redo()
    cube = bpy.data.objects["Cube"]
    check_arrays(centres(cube), expected, "spheres after redo")
    check_equal(len(preview_spheres(cube)), len(expected), "spheres drawn after redo")


def test_save_and_reload_keep_the_body():
    harness.new_file()
    cube = harness.add_box("Cube", (1, 1, 1))
    convert(cube, radius=0.1)
    expected, found = centres(cube), report(cube)
    path = str(FOLDER / "body.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    cube = bpy.data.objects["Cube"]
    check_arrays(centres(cube), expected, "spheres after the reload")
    check_equal(report(cube), found, "report after the reload")
    check_equal(len(preview_spheres(cube)), len(expected), "spheres drawn after the reload")


def test_remove_takes_body_and_preview_but_not_those_of_an_instance():
    harness.new_file()
    first = harness.add_box("First", (1, 1, 1))
    second = bpy.data.objects.new("Second", first.data)
    bpy.context.scene.collection.objects.link(second)
    bpy.context.view_layer.update()
    convert(first, second, radius=0.1)
    select(first)
    check_equal(bpy.ops.barchan.remove_body(), {"FINISHED"}, "result of the removal")
    check(first.barchan.body is None and second.barchan.body is not None, "the wrong body was removed")
    check_equal(len(bodies()), 1, "body meshes")
    select(second)
    bpy.ops.barchan.remove_body()
    check_equal(bodies(), [], "body meshes")
    check_equal(sorted(ob.name for ob in bpy.data.objects), ["First", "Second"], "objects")
    check("No selected object has" in harness.error_of(bpy.ops.barchan.remove_body), "nothing to remove is not said")


def test_a_copied_object_does_not_take_the_preview_of_the_other():
    harness.new_file()
    cube = harness.add_box("Cube", (1, 1, 1))
    convert(cube, radius=0.1)
    copy = cube.copy()
    bpy.context.scene.collection.objects.link(copy)
    bpy.context.view_layer.update()
    select(copy)
    bpy.ops.barchan.remove_body()
    check(cube.barchan.preview is not None and len(preview_spheres(cube)) > 0, "the other's preview is gone")
    check(copy.barchan.body is None, "the copy keeps its body")


def test_the_preview_of_a_deleted_object_goes_too():
    harness.new_file()
    first = harness.add_box("First", (1, 1, 1))
    second = harness.add_box("Second", (2, 1, 1))
    convert(first, second, radius=0.1)
    bpy.context.view_layer.update()
    select(first)
    bpy.ops.object.delete()
    bpy.context.view_layer.update()
    orphans = room("body").remove_orphans
    check(bpy.app.timers.is_registered(orphans), "the deletion was not noticed")
    orphans()  # without a window no timer runs
    check_equal(len([ob for ob in bpy.data.objects if ob.name.startswith("Barchan")]), 1, "previews")
    check_equal(len(bodies()), 1, "body meshes")
    check(len(preview_spheres(second)) > 0, "the spheres of the other object are gone")


def test_the_body_of_a_deleted_object_may_serve_the_next():
    harness.new_file()
    first = harness.add_box("First", (1, 1, 1))
    convert(first, radius=0.1)
    bpy.data.objects.remove(first)
    second = harness.add_box("Second", (1, 1, 1))
    convert(second, radius=0.1)
    check_equal(len(preview_spheres(second)), len(centres(second)), "spheres drawn")
    check_equal(len([ob for ob in bpy.data.objects if ob.name.startswith("Barchan")]), 1, "previews")
    check_equal(len(bodies()), 1, "body meshes")


# ---------------------------------------------------------------------------------------------------------------------
# Hard meshes


def subdivided_cube(cuts=4):
    """A closed cube of edge 1 with a grid of quads on each side."""
    import bmesh

    mesh = bpy.data.meshes.new("Grid Cube")
    work = bmesh.new()
    bmesh.ops.create_cube(work, size=1.0)
    bmesh.ops.subdivide_edges(work, edges=work.edges[:], cuts=cuts, use_grid_fill=True)
    work.to_mesh(mesh)
    work.free()
    ob = bpy.data.objects.new("Hard", mesh)
    bpy.context.scene.collection.objects.link(ob)
    bpy.context.view_layer.update()
    return ob


def arrays_of(mesh):
    vertices = [tuple(vertex.co) for vertex in mesh.vertices]
    return vertices, [tuple(polygon.vertices) for polygon in mesh.polygons]


def test_no_mesh_selected():
    harness.new_file()
    harness.add_box("Cube", (1, 1, 1))
    select()
    refused("no mesh", "select")


def test_an_empty_mesh():
    harness.new_file()
    select(harness.add_mesh("Hard", [], []))
    refused("Hard", "no vertices")


def test_only_loose_vertices():
    harness.new_file()
    select(harness.add_mesh("Hard", [(0, 0, 0), (1, 0, 0)], []))
    refused("Hard", "no faces")


def test_faces_without_area():
    harness.new_file()
    select(harness.add_mesh("Hard", [(0, 0, 0), (1, 0, 0), (2, 0, 0)], [(0, 1, 2)]))
    refused("Hard")


def test_a_vertex_that_is_no_number():
    harness.new_file()
    ob = harness.add_box("Hard", (1, 1, 1))
    ob.data.vertices[5].co.y = float("nan")
    select(ob)
    refused("Hard", "vertex 5")


def test_a_scale_of_zero():
    harness.new_file()
    ob = harness.add_box("Hard", (1, 1, 1))
    ob.scale = (1, 0, 1)
    bpy.context.view_layer.update()
    select(ob)
    refused("Hard", "scale")


def test_one_bad_mesh_among_good_ones_changes_nothing():
    harness.new_file()
    good = harness.add_box("Good", (1, 1, 1))
    select(good, harness.add_mesh("Hard", [], []))
    refused("Hard", "no vertices")
    check(good.barchan.body is None, "the good one was converted")


def test_a_radius_that_needs_a_thousand_million_spheres():
    harness.new_file()
    select(harness.add_box("Hard", (1, 1, 1)))
    refused("Hard", "spheres", "larger radius", radius=6e-5)


def test_a_single_triangle():
    harness.new_file()
    ob = harness.add_mesh("Hard", [(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])
    convert(ob, radius=0.05)
    points = centres(ob)
    inside = (points[:, 0] >= -1e-5) & (points[:, 1] >= -1e-5) & (points[:, 0] + points[:, 1] <= 1 + 1e-5)
    check(inside.all() and np.abs(points[:, 2]).max() < 1e-6, "a centre is off the triangle")
    check(len(points) > 50, f"{len(points)} spheres")


def test_some_faces_without_area():
    harness.new_file()
    vertices, faces = arrays_of(subdivided_cube().data)
    vertices += [(0.5, 0.5, 0.5)] * 3
    faces.append((len(vertices) - 3, len(vertices) - 2, len(vertices) - 1))
    ob = harness.add_mesh("Zero", vertices, faces)
    convert(ob, radius=0.05)
    check_cover(ob, (1, 1, 1))


def test_duplicated_faces():
    harness.new_file()
    vertices, faces = arrays_of(subdivided_cube().data)
    base = len(vertices)
    twice = faces + [tuple(index + base for index in face) for face in faces[:20]]
    ob = harness.add_mesh("Twice", vertices + vertices, twice)
    convert(ob, radius=0.05)
    check_cover(ob, (1, 1, 1))
    check(report(ob)["warnings"], "twenty doubled faces are not mentioned")


def test_ten_flipped_faces():
    harness.new_file()
    vertices, faces = arrays_of(subdivided_cube().data)
    faces = [face[::-1] if index % 15 == 0 and index < 150 else face for index, face in enumerate(faces)]
    ob = harness.add_mesh("Flipped", vertices, faces)
    convert(ob, radius=0.05)
    check_cover(ob, (1, 1, 1))
    check(report(ob)["warnings"], "ten flipped faces are not mentioned")
    check(report(ob)["mesh_volume"] > 0.99, f"volume {report(ob)['mesh_volume']}")


def bottle():
    """A tube of radius 0.3 and height 1 with a bottom and no lid."""
    count = 24
    ring = [(0.3 * math.cos(2 * math.pi * i / count), 0.3 * math.sin(2 * math.pi * i / count)) for i in range(count)]
    vertices = [(x, y, 0.0) for x, y in ring] + [(x, y, 1.0) for x, y in ring]
    faces = [(i, (i + 1) % count, count + (i + 1) % count, count + i) for i in range(count)]
    return harness.add_mesh("Bottle", vertices, faces + [tuple(range(count))[::-1]])


def test_an_open_bottle():
    harness.new_file()
    ob = bottle()
    convert(ob, radius=0.03)
    found = report(ob)
    print("  ", found["warnings"])
    check(any("open" in warning for warning in found["warnings"]), "the open edge is not mentioned")
    check(found["uncovered_share"] < 0.02, f"{found['uncovered_share']} of the area is uncovered")


def winding(vertices, triangles, points):
    """Generalised winding number by the sum over all triangles (van Oosterom and Strackee 1983)."""
    total = np.zeros(len(points))
    for corners in vertices[triangles]:
        a, b, c = (corner - points for corner in corners)
        la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
        over = np.einsum("ij,ij->i", a, np.cross(b, c))
        dots = [np.einsum("ij,ij->i", u, v) for u, v in ((a, b), (b, c), (c, a))]
        total += 2 * np.arctan2(over, la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb)
    return total / (4 * np.pi)


def test_suzanne():
    """The monkey, subdivided, with eyes that float in open sockets: distances, signs and cover."""
    harness.new_file()
    bpy.ops.mesh.primitive_monkey_add()
    monkey = bpy.context.active_object
    monkey.modifiers.new("Subdivision", "SUBSURF").levels = 1
    bpy.context.view_layer.update()
    unplaced = room("export").read_unplaced(monkey, bpy.context.evaluated_depsgraph_get())
    vertices, triangles = unplaced.vertices.astype(np.float64), unplaced.triangles
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    points = np.random.default_rng(3).uniform(low - 0.1, high + 0.1, (10000, 3)).astype(np.float32)
    core = room("engine").core
    mesh = core.Mesh(unplaced.vertices, unplaced.triangles, name="Suzanne")
    found = core.distance(mesh, points)
    tree = bvhtree.BVHTree.FromPolygons(vertices.tolist(), triangles.tolist())
    expected = np.array([tree.find_nearest(point)[3] for point in points.tolist()])
    extent = (high - low).max()
    worst = np.abs(np.abs(found) - expected).max() / extent
    numbers = winding(vertices, triangles, points.astype(np.float64))
    # Where the number is half, in the open sockets, rounding decides.
    is_sure = np.abs(numbers - 0.5) > 0.02
    wrong = ((found < 0) != (numbers > 0.5)) & is_sure
    print(f"   {len(triangles)} triangles, distance within {worst:.1e} of the extent, {(found < 0).sum()} inside")
    check(worst < 1e-5, f"distances are off by {worst} of the extent")
    check(is_sure.mean() > 0.98, f"only {is_sure.mean()} of the places have a clear side")
    check(not wrong.any(), f"{wrong.sum()} signs are wrong")
    convert(monkey, radius=0.05)
    found = report(monkey)
    print("  ", found)
    check(found["evenness"] >= 0.92, f"evenness {found['evenness']}")
    check(found["uncovered_share"] < 0.005, f"{found['uncovered_share']} of the area is uncovered")


def test_two_nested_shells():
    harness.new_file()
    vertices, faces = arrays_of(subdivided_cube().data)
    inner = [(0.5 * x, 0.5 * y, 0.5 * z) for x, y, z in vertices]
    hollow = [tuple(index + len(vertices) for index in face[::-1]) for face in faces]
    ob = harness.add_mesh("Hollow", vertices + inner, faces + hollow)
    convert(ob, radius=0.04)
    points = centres(ob)
    near = np.minimum(box_distance(points, (1, 1, 1)), box_distance(points, (0.5, 0.5, 0.5)))
    check(near.max() < 1e-5, "a centre is off both shells")
    check((np.abs(points).max(axis=1) < 0.3).sum() > 50, "the inner shell has no spheres")
    convert(ob, radius=0.04, fill="VOLUME")
    points = centres(ob)
    check(np.abs(points).max(axis=1).min() > 0.25, "a sphere lies in the hollow")
    check(report(ob)["volume_error"] < 0.01, f"volume error {report(ob)['volume_error']}")


def test_a_radius_larger_than_the_mesh():
    harness.new_file()
    ob = harness.add_box("Cube", (1, 1, 1))
    select(ob)
    refused("Cube", radius=5.0, fill="VOLUME")
    sentence = harness.error_of(bpy.ops.barchan.convert_to_body, radius=5.0)
    if sentence:
        check("Cube" in sentence and len(sentence.splitlines()) == 1, sentence)
    else:
        check(box_distance(centres(ob), (1, 1, 1)).max() < 1e-5, "a centre is off the surface")


def test_far_from_the_origin_and_tiny():
    harness.new_file()
    far = harness.add_box("Far", (1, 1, 1), (10000, 0, 0))
    tiny = harness.add_box("Tiny", (1e-3, 1e-3, 1e-3))
    convert(far, radius=0.1)
    convert(tiny)
    check_cover(far, (1, 1, 1))
    check(box_distance(centres(tiny), (1e-3, 1e-3, 1e-3)).max() < 1e-8, "a centre is off the tiny cube")


# ---------------------------------------------------------------------------------------------------------------------
# Panel


def test_the_panel_shows_the_fit():
    import test_panels

    harness.new_file()
    cube = harness.add_box("Cube", (1, 1, 1))
    text = test_panels.drawn("BARCHAN_PT_body")
    check("Convert | Remove" in text and "spheres" not in text, text)
    convert(cube, radius=0.1)
    text = test_panels.drawn("BARCHAN_PT_body")
    print("  ", text)
    for word in ("spheres of radius 0.1 m", "Spacing", "Evenness", "Uncovered", "Hausdorff", "Volume error", "Show"):
        check(word in text, f"{word!r} is not in {text!r}")
    cube.barchan.body["barchan_body"] = "not JSON"
    check("Evenness" not in test_panels.drawn("BARCHAN_PT_body"), "a broken report is shown")


if __name__ == "__main__":
    harness.main(globals())
