# SPDX-License-Identifier: GPL-3.0-or-later
"""Shadows of the core's pictures against those of Cycles: a grain over a plane, a body over sand, sand over a body; the
camera that is read from a scene; `preview` of a .blend file."""

import os

import harness
import numpy as np
from harness import FOLDER, bpy, check, check_equal, room

WIDTH, HEIGHT = 320, 240
SUN = np.array((-0.5, 0.35, 1.0))
LEAST_OVERLAP = 0.95  # asked for


def empty_scene():
    harness.new_file()
    for ob in list(bpy.data.objects):
        bpy.data.objects.remove(ob)
    scene = bpy.context.scene
    scene.world = None
    scene.render.engine = "CYCLES"
    scene.cycles.device = "CPU"
    scene.cycles.samples = 4
    scene.cycles.use_denoising = False
    scene.cycles.use_adaptive_sampling = False
    scene.cycles.max_bounces = 0
    scene.cycles.pixel_filter_type = "GAUSSIAN"  # a box is a pixel wide whatever the width says
    scene.cycles.filter_width = 0.01  # the pixel's centre, as the core has it
    scene.render.resolution_x, scene.render.resolution_y = WIDTH, HEIGHT
    scene.render.resolution_percentage = 100
    scene.render.film_transparent = True
    scene.render.image_settings.file_format = "OPEN_EXR"
    scene.render.image_settings.color_mode = "RGBA"
    lamp = bpy.data.lights.new("Sun", "SUN")
    lamp.angle, lamp.energy = 0.0, 3.0
    sun = bpy.data.objects.new("Sun", lamp)
    sun.rotation_mode = "QUATERNION"
    sun.rotation_quaternion = quaternion_of(SUN)
    scene.collection.objects.link(sun)
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.location = (1.6, -2.6, 2.2)
    camera.rotation_mode = "QUATERNION"
    camera.rotation_quaternion = quaternion_of((1.6, -2.6, 2.0))
    scene.collection.objects.link(camera)
    scene.camera = camera
    return scene


def quaternion_of(back):
    """Of an object whose z axis points along back, with the world's z up."""
    return room("engine").core.preview.look_rotation(-np.asarray(back, float))


def add_mesh(name, vertices, faces, smooth=False):
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata([tuple(map(float, v)) for v in vertices], [], faces)
    if smooth:
        mesh.polygons.foreach_set("use_smooth", [True] * len(mesh.polygons))
    ob = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(ob)
    return ob


def add_plane(size=6.0):
    h = size / 2
    return add_mesh("Plane", [(-h, -h, 0), (h, -h, 0), (h, h, 0), (-h, h, 0)], [(0, 1, 2, 3)])


def add_box(centre, size, turn=0.4):
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.array(size) / 2
    ob = add_mesh(
        "Box", corners, [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    )
    ob.location = centre
    ob.rotation_euler = (0.2, 0.1, turn)
    return ob


def add_grains(places, radius):
    """One object per grain, all of one fine sphere; what Cycles traces is within 2e-4 of the radius."""
    import bmesh

    mesh = bpy.data.meshes.new("Grain")
    made = bmesh.new()
    bmesh.ops.create_icosphere(made, subdivisions=5, radius=radius)
    made.to_mesh(mesh)
    made.free()
    mesh.polygons.foreach_set("use_smooth", [True] * len(mesh.polygons))
    found = []
    for place in places:
        ob = bpy.data.objects.new("Grain", mesh)
        ob.location = tuple(map(float, place))
        bpy.context.scene.collection.objects.link(ob)
        found.append(ob)
    return found


def cycles_masks(scene):
    """What Cycles sees: where something is, and where the sun does not reach it."""
    path = str(FOLDER / "cycles.exr")
    scene.render.filepath = path
    bpy.ops.render.render(write_still=True)
    image = bpy.data.images.load(path)
    pixels = np.empty(WIDTH * HEIGHT * 4, np.float32)
    image.pixels.foreach_get(pixels)
    bpy.data.images.remove(image)
    os.unlink(path)
    pixels = pixels.reshape(HEIGHT, WIDTH, 4)[::-1]
    return pixels[..., 3] > 0.5, pixels[..., :3].max(axis=2) < 1e-4


def core_masks(scene, places, radius):
    """The same by the core, and its depths."""
    core, picture = room("engine").core, room("picture")
    bpy.context.view_layer.update()
    depsgraph = bpy.context.evaluated_depsgraph_get()
    camera, is_parallel = picture.camera_numbers(scene, depsgraph, (WIDTH, HEIGHT))
    meshes = [
        (*picture.export.read_surface(ob, depsgraph)[:2], (0, 0, 0, 1, 0, 0, 0), (0.8, 0.8, 0.8, 0), False, False)
        for ob in scene.objects
        if ob.type == "MESH" and ob.data.name != "Grain" and not ob.hide_render
    ]
    light = core.Light(WIDTH, HEIGHT, 1)
    drawn = light.draw(
        camera, orthographic=is_parallel, positions=np.asarray(places, np.float32).reshape(-1, 3),
        scales=np.full(len(places), radius, np.float32), shapes=[(np.zeros((1, 3), np.float32), np.ones(1, np.float32))],
        round=True, meshes=meshes, sun=picture.sun_numbers(scene, depsgraph, np.zeros(3))[0], give_samples=True,
    )  # fmt: skip
    return drawn["depths"] > 0, (drawn["lit"] >= 0) & (drawn["lit"] < 0.5), drawn["depths"]


def overlap(a, b):
    return float((a & b).sum() / max((a | b).sum(), 1))


def compare(name, scene, places, radius, occluders, places_without):
    """All that is dark, and what the occluders alone make dark on what is seen with and without them."""
    hit, dark = cycles_masks(scene)
    our_hit, our_dark, depths = core_masks(scene, places, radius)
    for ob in occluders:
        ob.hide_render = True
    without_hit, without_dark = cycles_masks(scene)
    our_without_hit, our_without_dark, depths_without = core_masks(scene, places_without, radius)
    same = (np.abs(depths - depths_without) < 1e-4) & hit & our_hit & without_hit & our_without_hit
    cast, our_cast = dark & ~without_dark & same, our_dark & ~our_without_dark & same
    seen, all_dark, thrown = overlap(hit, our_hit), overlap(dark & hit, our_dark & our_hit), overlap(cast, our_cast)
    print(
        f"{name}: what is seen overlaps by {seen:.4f}, all that is dark by {all_dark:.4f} ({int((dark & hit).sum())} pixels), "
        f"the shadow thrown by {thrown:.4f} ({int(cast.sum())} pixels)"
    )
    check(int(cast.sum()) > 300, f"{name}: the occluders throw a shadow of {int(cast.sum())} pixels only")
    check(seen > 0.99, f"{name}: what is seen overlaps by {seen:.4f}")
    check(thrown >= LEAST_OVERLAP, f"{name}: the shadow thrown overlaps by {thrown:.4f}, expected {LEAST_OVERLAP}")
    check(all_dark >= LEAST_OVERLAP, f"{name}: the dark overlaps by {all_dark:.4f}, expected {LEAST_OVERLAP}")


def bed(count, radius, height=0.0, layers=1, seed=1):
    """Grains side by side, a little out of line, in layers."""
    random = np.random.default_rng(seed)
    places = []
    for layer in range(layers):
        for i in range(count):
            for j in range(count):
                shift = (random.random(2) - 0.5) * 0.3 * radius + (layer % 2) * radius
                places.append(
                    (
                        (2.1 * i - 1.05 * (count - 1)) * radius + shift[0],
                        (2.1 * j - 1.05 * (count - 1)) * radius + shift[1],
                        height + radius * (1 + 1.6 * layer),
                    )
                )
    return np.array(places)


def test_a_grain_shades_a_plane_as_in_cycles():
    scene = empty_scene()
    add_plane()
    place = [(0.0, 0.1, 0.55)]
    grains = add_grains(place, 0.3)
    compare("a grain over a plane", scene, place, 0.3, grains, np.zeros((0, 3)))


def test_a_body_shades_sand_as_in_cycles():
    scene = empty_scene()
    add_plane()
    radius = 0.07
    places = bed(14, radius, layers=2)
    add_grains(places, radius)
    box = add_box((0.1, 0.0, 0.75), (0.8, 0.5, 0.3))
    compare("a body over sand", scene, places, radius, [box], places)


def test_sand_shades_a_body_as_in_cycles():
    scene = empty_scene()
    add_plane()
    add_box((0.0, 0.0, 0.3), (1.3, 1.1, 0.5), turn=0.5)
    radius = 0.06
    random = np.random.default_rng(4)
    places = random.random((60, 3)) * (1.1, 1.0, 0.35) + (-0.75, -0.4, 0.95)
    grains = add_grains(places, radius)
    compare("sand over a body", scene, places, radius, grains, np.zeros((0, 3)))


def test_the_camera_of_a_scene_is_read_to_the_pixel():
    """Corners of a cube, where Blender says they are and where the core's numbers put them."""
    import mathutils
    from bpy_extras.object_utils import world_to_camera_view

    scene = empty_scene()
    camera = scene.camera
    picture = room("picture")
    for kind, shift, fit in (("PERSP", (0.0, 0.0), "AUTO"), ("PERSP", (0.13, -0.07), "VERTICAL"), ("ORTHO", (0.1, 0.2), "AUTO")):
        camera.data.type, camera.data.sensor_fit, camera.data.ortho_scale = kind, fit, 4.0
        camera.data.shift_x, camera.data.shift_y = shift
        bpy.context.view_layer.update()
        depsgraph = bpy.context.evaluated_depsgraph_get()
        numbers, is_parallel = picture.camera_numbers(scene, depsgraph, (WIDTH, HEIGHT))
        place, w, v = numbers[:3].astype(float), float(numbers[3]), numbers[4:7].astype(float)
        worst = 0.0
        for corner in np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (0, 1)], float):
            way = corner - place
            seen = way + 2 * np.cross(-v, np.cross(-v, way) + w * way)
            ours = seen[:2] / (1.0 if is_parallel else -seen[2]) / numbers[7:9] + numbers[9:11]
            theirs = world_to_camera_view(scene, camera, mathutils.Vector(corner))
            worst = max(worst, *np.abs((ours + 1) / 2 - np.array(theirs)[:2]))
        print(f"{kind}, shifted by {shift}: within {worst * WIDTH:.5f} pixels")
        check(worst * WIDTH < 0.01, f"{kind}: the camera is off by {worst * WIDTH} pixels")


def test_a_blend_file_is_drawn_with_its_camera_lights_and_meshes():
    scene = harness.baked_scene(frame_end=4, edge=0.5, radius=0.025)
    harness.add_camera(scene, (1.5, -1.5, 1.0), (0, 0, 0.1))
    lamp = bpy.data.objects.new("Lamp", bpy.data.lights.new("Lamp", "POINT"))
    lamp.data.energy, lamp.location = 200.0, (1.0, -0.5, 2.0)
    scene.collection.objects.link(lamp)
    path, out = str(FOLDER / "preview.blend"), FOLDER / "pictures"
    bpy.ops.wm.save_as_mainfile(filepath=path)
    preview = room("engine").core.preview
    words = ["preview", f"--out={out}", "--size=96x64", "--frames=2:3", "--animation=apng", path]
    check_equal(room("headless").main(words), 0, "exit code")
    check_equal(sorted(os.listdir(out)), ["frame_000002.png", "frame_000003.png", "preview.apng"], "files")
    pixels = preview.read_png(str(out / "frame_000003.png")).astype(float)
    check(pixels.std() > 15, f"the picture is flat: its pixels scatter by {pixels.std():.1f}")
    picture, arguments = room("picture"), room("headless").make_parser().parse_args(words)
    drawn = picture.Picture(bpy.context.scene, room("properties").cache_folder(bpy.context.scene), arguments).arguments_of(3)
    check_equal(len(drawn["meshes"]), 1, "meshes: the floor, not the sand's own box")
    check(drawn["sun"][2] > 0.8, "the lamp above is the sun")
    grain_count = len(drawn["positions"])
    check(grain_count > 20 and len(drawn["shapes"][0][1]) == 4, f"{grain_count} grains, as tetrahedra")
    check_equal(room("headless").main(["preview", "--frames=70:80", path]), 1, "exit code without such frames")


if __name__ == "__main__":
    harness.main(globals())
