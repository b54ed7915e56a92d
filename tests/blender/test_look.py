# SPDX-License-Identifier: GPL-3.0-or-later
"""How grains are drawn: kinds of meshes, distance to the camera, own objects, sizes, minerals; nothing piles up."""

import harness
import test_playback
from harness import bpy, check, check_arrays, check_equal, np, room


def meshes_drawn(scene):
    """[(triangles, matrix (4,4), mesh name)] of the instances that reach the renderer, and the points' radii."""
    depsgraph = bpy.context.evaluated_depsgraph_get()
    found, radii = [], np.zeros(0, np.float32)
    for instance in depsgraph.object_instances:
        ob = instance.object
        if not instance.is_instance or instance.parent is None or instance.parent.original != scene.barchan.carrier:
            if ob.type == "POINTCLOUD" and ob.name.startswith(scene.barchan.carrier.name):
                radii = harness.read_attribute(ob.data, "radius", "value", 1)
            continue
        if ob.type == "POINTCLOUD":
            radii = harness.read_attribute(ob.data, "radius", "value", 1)
        else:
            ob.data.calc_loop_triangles()
            found.append((len(ob.data.loop_triangles), np.array(instance.matrix_world), ob.data.name))
    return found, radii


def made(name, shape="TETRAHEDRON", count=40, **settings):
    scene = test_playback.made_scene(name, count=count, frame_count=2, shape=shape)
    scene.barchan.display = "GRAINS"
    for key, value in settings.items():
        setattr(scene.barchan_look, key, value)
    scene.frame_set(1)
    return scene


def test_kinds_are_a_few_hundred_triangles_in_four_variants():
    limits = {"SPHERES": (80, 320), "ROUNDED": (60, 250), "ANGULAR": (20, 80)}  # coarse: the view's
    for shape in ("SPHERE", "TETRAHEDRON"):
        for kind, (low, high) in limits.items():
            scene = made(f"kind_{shape}_{kind}", shape, kind=kind)
            found, _radii = meshes_drawn(scene)
            counts = sorted({triangles for triangles, _matrix, _name in found})
            check_equal(len(found), 40, f"{shape} {kind}: instances")
            check(low <= counts[0] and counts[-1] <= high, f"{shape} {kind}: {counts} triangles in the view")
            scene.barchan_look.by_distance, scene.barchan_look.close = True, 1e5
            harness.add_camera(scene, (0, -5, 0), (0, 0, 0))
            fine = sorted({triangles for triangles, _matrix, _name in meshes_drawn(scene)[0]})
            print(f"  {shape} {kind}: {counts} triangles coarse, {fine} fine")
            check(fine[-1] <= 800, f"{shape} {kind}: {fine} triangles close")
            check(kind == "SPHERES" or fine[0] > counts[0], f"{shape} {kind}: close ones are not finer")
            # The matrix scales by the radius.
            scale = np.linalg.norm(found[0][1][:3, 0])
            check(abs(scale - 0.05) < 1e-6, f"{shape} {kind}: scale {scale}")


def test_distance_to_the_camera_chooses_fine_coarse_and_sphere():
    # Grains stand 0.2 m apart along y; the camera at y = -1 looks along them.
    scene = made("distance", "SPHERE", kind="ROUNDED", by_distance=True, close=3.05, far=5.05)
    harness.add_camera(scene, (0.3, -1.0, 0.0), (0.3, 0.0, 0.0))
    found, radii = meshes_drawn(scene)
    near = sorted(round(float(matrix[1, 3]), 2) for triangles, matrix, _name in found if triangles > 150)
    coarse = sorted(round(float(matrix[1, 3]), 2) for triangles, matrix, _name in found if triangles <= 150)
    check_equal((near[0], near[-1], len(near)), (0.0, 2.0, 11), "places of fine grains")
    check_equal((coarse[0], coarse[-1], len(coarse)), (2.2, 4.0, 10), "places of coarse grains")
    check_equal(int((radii > 0).sum()), 40 - 21, "spheres beyond")
    check_equal(len(radii), 40, "points, those of radius 0 with them")
    check_arrays(radii[radii > 0], np.full(19, 0.05, np.float32), "radius of the spheres", 1e-7)


def test_an_object_of_ones_own_is_instanced_with_its_size():
    scene = made("own", "SPHERE", variation=0.4)
    own = harness.add_box("Brick", (1.0, 1.0, 1.0), (5.0, 5.0, 5.0))
    scene.barchan_look.kind, scene.barchan_look.grain_object = "OBJECT", own
    scene.frame_set(2)
    found = [matrix for _triangles, matrix, name in meshes_drawn(scene)[0] if name == own.data.name]
    check_equal(len(found), 40, "instances of the object")
    scales = np.array([np.linalg.norm(matrix[:3, 0]) for matrix in found])
    check(0.6 * 0.05 - 1e-6 <= scales.min() and scales.max() <= 0.05 + 1e-6, f"sizes from {scales.min():.4f} to {scales.max():.4f} m")
    check(scales.max() / scales.min() > 1.3, f"sizes from {scales.min():.4f} to {scales.max():.4f} m are all alike")
    places = np.array(sorted(matrix[1, 3] for matrix in found))
    check_arrays(places, 0.2 * np.arange(40), "places along y", 1e-5)


def test_a_grain_keeps_size_and_variant_when_others_are_hidden():
    def flags(frame):
        return np.where(np.arange(40) < 10, 8 if frame == 1 else 0, 0).astype(np.int32)

    scene = test_playback.made_scene("kept", count=40, frame_count=2, flags=flags)
    scene.barchan.display = "GRAINS"
    scene.barchan_look.kind, scene.barchan_look.variation = "ROUNDED", 0.5
    looks = []
    for frame in (1, 2):
        scene.frame_set(frame)
        found, _radii = meshes_drawn(scene)
        looks.append({round(float(m[1, 3]), 2): (t, round(float(np.linalg.norm(m[:3, 0])), 5)) for t, m, _name in found})
    check_equal((len(looks[0]), len(looks[1])), (30, 40), "grains on the two frames")
    check_equal({place: looks[1][place] for place in looks[0]}, looks[0], "looks of the grains that were there before")


def test_grains_of_many_shapes_and_sizes_are_drawn_as_their_spheres():
    import types

    core = room("engine").core
    random = np.random.default_rng(5)
    count, folder = 30, str(harness.FOLDER / "many")
    core.make_folder(folder)
    # Shape 0 is a body's and has no row; the rods have one thick sphere.
    rod = types.SimpleNamespace(
        index=1, offsets=np.array([(-0.1, 0, 0), (0, 0, 0), (0.08, 0, 0)], np.float32), radii=np.array([0.05, 0.05, 0.03], np.float32)
    )
    four = types.SimpleNamespace(index=2, offsets=core.tetrahedron(0.02), radii=np.full(4, 0.02, np.float32))
    shapes = np.where(np.arange(count) % 3 == 0, 2, 1).astype(np.int32)
    scales = random.uniform(0.5, 1.5, count).astype(np.float32)
    largest = np.where(shapes == 1, np.float32(0.05), np.float32(0.02))
    places = random.uniform(-1, 1, (count, 3)).astype(np.float32)
    turns = random.normal(size=(count, 4)).astype(np.float32)
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    arrays = {"position": places, "rotation": turns, "velocity": np.zeros((count, 3), np.float32), "radius": scales * largest, "shape": shapes}
    core.write_frame(folder, 1, arrays)
    scene = harness.new_file()
    scene.barchan.folder = folder
    playback = room("playback")
    playback.attach(scene, playback.Baked(count, 0.05, "TETRAHEDRON", shapes=(rod, four)))
    scene.frame_set(1)
    centres, radii = [], []
    for index in range(count):
        row = rod if shapes[index] == 1 else four
        centres.append(places[index] + harness.rotate(turns[index : index + 1], scales[index] * row.offsets)[0])
        radii.append(scales[index] * row.radii)
    expected = np.column_stack([np.concatenate(centres), np.concatenate(radii)])
    points, drawn = harness.drawn_points(scene)
    found = np.column_stack([points, drawn])
    check_equal(len(found), len(expected), "spheres drawn")
    order = [np.lexsort(np.round(array.T, 4)) for array in (found, expected)]
    check_arrays(found[order[0]], expected[order[1]], "spheres (x, y, z, radius)", 2e-6)
    scene.barchan.display = "GRAINS"
    found, _radii = meshes_drawn(scene)
    spheres = np.array([[*m[:3, 3], np.linalg.norm(m[:3, 0])] for _triangles, m, _name in found])
    order[0] = np.lexsort(np.round(spheres.T, 4))
    check_arrays(spheres[order[0]], expected[order[1]], "instanced spheres", 2e-6)
    scene.barchan_look.view = "POINTS"
    _points, drawn = harness.drawn_points(scene)
    check_equal(len(drawn), count, "points of View: Points")
    check(((drawn >= 0.999 * scales * largest) & (drawn <= 1.8 * scales * largest)).all(), "one point per grain has an odd size")
    playback.attach(scene, playback.Baked(count, 0.05, "SPHERE"))
    check_equal([ob.name for ob in bpy.data.objects if "Shapes" in ob.name], [], "shapes kept for a bake of one shape")


def test_minerals_and_wetness_change_the_one_material():
    scene = made("minerals")
    material = bpy.data.materials["Barchan Sand"]
    ramp = material.node_tree.nodes["Minerals"].color_ramp

    def middle():
        return sum(ramp.evaluate(0.5)[:3])

    dry = middle()
    scene.barchan_look.sand = "BLACK"
    check(middle() < 0.3 * dry, f"black sand is {middle() / dry:.2f} times as bright as desert sand")
    scene.barchan_look.wet = 0.8
    check(abs(material.node_tree.nodes["Wetness"].outputs[0].default_value - 0.8) < 1e-6, "wetness does not reach the material")
    material.node_tree.nodes.remove(material.node_tree.nodes["Wetness"])
    scene.barchan_look.wet = 0.2  # an artist's own nodes are left alone


def test_nothing_piles_up_and_an_older_group_is_rebuilt():
    scene = made("pile", kind="ANGULAR")
    playback = room("playback")

    def names():
        return [sorted(block.name for block in blocks) for blocks in (bpy.data.node_groups, bpy.data.materials, bpy.data.meshes)]

    before = names()
    for _ in range(3):
        playback.attach(scene, playback.Baked(40, 0.05, "TETRAHEDRON"))
    check_equal(names(), before, "data-blocks after three more bakes")
    modifier = scene.barchan.carrier.modifiers["Barchan"]
    modifier.node_group["barchan_layout"] = 2
    playback.apply_display(scene)
    check_equal(names(), before, "data-blocks after the rebuild")
    check_equal(playback.baked_size(scene)[1], "TETRAHEDRON", "shape after the rebuild")
    scene.frame_set(2)
    check_equal(len(meshes_drawn(scene)[0]), 40, "instances after the rebuild")


def test_the_first_bake_locks_the_interface_of_renders():
    scene = harness.new_file()
    scene.render.use_lock_interface = False
    scene = made("locked")
    check_equal(scene.render.use_lock_interface, True, "Lock Interface after the first bake")
    scene.render.use_lock_interface = False
    room("playback").attach(scene, room("playback").Baked(40, 0.05, "TETRAHEDRON"))
    check_equal(scene.render.use_lock_interface, False, "Lock Interface that the user switched off, after another bake")


if __name__ == "__main__":
    harness.main(globals())
