# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Blender tests share: the add-on under test, small scenes, what is drawn, and the runner.

Each test_*.py is a plain script: `python tests/blender/test_x.py [--zip dist/barchan-VERSION.zip]` with a Python that has
bpy. With a zip (or BARCHAN_ZIP) the extension is installed into an empty Blender user folder; without one the add-on is
taken from the source tree, and `barchan` from the Python that runs the test. bpy reads its user folder when it is
imported, so the tests take bpy from here. Prints "ok NAME" or "FAILED NAME: sentence"
per test and closes with "N passed, N failed".
"""

import contextlib
import hashlib
import importlib
import importlib.util
import math
import os
import pathlib
import sys
import tempfile
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXTENSION = "bl_ext.user_default.barchan"
SOURCE_PACKAGE = "barchan_addon"

_temporary = tempfile.TemporaryDirectory(prefix="barchan_test_")
FOLDER = pathlib.Path(_temporary.name)  # scratch of this run


def _zip_argument():
    if "--zip" in sys.argv:
        return sys.argv[sys.argv.index("--zip") + 1]
    return os.environ.get("BARCHAN_ZIP", "")


ZIP = os.path.abspath(_zip_argument()) if _zip_argument() else ""
if ZIP and not os.environ.get("BLENDER_USER_RESOURCES"):
    (FOLDER / "user").mkdir()
    os.environ["BLENDER_USER_RESOURCES"] = str(FOLDER / "user")  # before bpy is imported: it reads this once

import bpy  # noqa: E402
import numpy as np  # noqa: E402

PACKAGE = EXTENSION if ZIP else SOURCE_PACKAGE
_is_loaded = False


def load_addon():
    """Installs and enables the add-on under test once; returns its package name."""
    global _is_loaded
    if _is_loaded:
        return PACKAGE
    _is_loaded = True
    if ZIP:
        import addon_utils

        bpy.ops.extensions.package_install_files(filepath=ZIP, repo="user_default", enable_on_install=True)
        addon_utils.enable(EXTENSION)
    else:
        folder = ROOT / "addon"
        spec = importlib.util.spec_from_file_location(
            SOURCE_PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules[SOURCE_PACKAGE] = module
        spec.loader.exec_module(module)
        module.register()
    return PACKAGE


def room(name):
    """A module of the add-on under test: room("bake")."""
    return importlib.import_module(f"{load_addon()}.{name}")


# ---------------------------------------------------------------------------------------------------------------------
# Scenes


def new_file():
    """An empty file with the add-on still enabled (factory settings would switch an extension off)."""
    load_addon()
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True, load_ui=False)
    if not hasattr(bpy.types.Scene, "barchan"):
        if ZIP:
            import addon_utils

            addon_utils.enable(EXTENSION)
        else:
            sys.modules[SOURCE_PACKAGE].register()
    scene = bpy.context.scene
    scene.render.fps = 24
    return scene


def add_mesh(name, vertices, faces, location=(0.0, 0.0, 0.0)):
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(vertices, [], faces)
    ob = bpy.data.objects.new(name, mesh)
    ob.location = location
    bpy.context.scene.collection.objects.link(ob)
    bpy.context.view_layer.update()
    return ob


def add_box(name, size, location=(0.0, 0.0, 0.0)):
    """A closed box of edge lengths size (m), triangles and quads outwards."""
    x, y, z = (length / 2 for length in size)
    vertices = [(i * x, j * y, k * z) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return add_mesh(name, vertices, faces, location)


def add_floor(size=2.0):
    x = size / 2
    return add_mesh("Floor", [(-x, -x, 0), (x, -x, 0), (x, x, 0), (-x, x, 0)], [(0, 1, 2, 3)])


def mark(ob, object_type):
    """Through the operator, as a user does."""
    for other in bpy.context.scene.objects:
        other.select_set(other == ob)
    bpy.context.view_layer.objects.active = ob
    return bpy.ops.barchan.set_type(type=object_type)


def small_scene(folder, frame_end=60, edge=0.7, radius=0.02, shape="TETRAHEDRON"):
    """A few hundred grains falling on a floor; frames go to folder."""
    scene = new_file()
    mark(add_box("Block", (edge, edge, edge), (0.0, 0.0, edge / 2 + 0.1)), "SAND")
    mark(add_floor(), "COLLIDER")
    scene.frame_start, scene.frame_end = 1, frame_end
    settings = scene.barchan
    settings.folder = str(folder)
    settings.radius = radius
    settings.shape = shape
    return scene


_baked = {}


def baked_scene(frame_end=60, **options):
    """small_scene, baked; the same frames are baked once per run."""
    key = (frame_end, tuple(sorted(options.items())))
    folder = FOLDER / f"baked_{len(_baked) if key not in _baked else _baked[key]}"
    is_new = key not in _baked
    _baked.setdefault(key, len(_baked))
    scene = small_scene(folder, frame_end, **options)
    if is_new:
        check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    else:
        frame = room("engine").core.read_frame(str(folder), 1)
        count = len(frame["arrays"]["position"])
        room("playback").attach(scene, room("playback").Baked(count, scene.barchan.radius, scene.barchan.shape))
    return scene


# ---------------------------------------------------------------------------------------------------------------------
# What is there


def read_attribute(data, name, key, components):
    attribute = data.attributes[name]
    values = np.empty(len(attribute.data) * components, np.float32)
    attribute.data.foreach_get(key, values)
    return values.reshape(-1, components) if components > 1 else values


def carrier_positions(scene):
    """Positions of the evaluated carrier before its node group: what the handler wrote."""
    return read_attribute(scene.barchan.carrier.data, "position", "vector", 3)


def drawn_points(scene):
    """Position (N,3) and radius (N,) of the points that reach the renderer."""
    depsgraph = bpy.context.evaluated_depsgraph_get()
    name = scene.barchan.carrier.name
    for instance in depsgraph.object_instances:
        ob = instance.object
        if ob.type == "POINTCLOUD" and ob.name.startswith(name):
            return read_attribute(ob.data, "position", "vector", 3), read_attribute(ob.data, "radius", "value", 1)
    return np.zeros((0, 3), np.float32), np.zeros(0, np.float32)


def drawn_instances(scene):
    """World matrices (N,4,4) of the instances that reach the renderer."""
    depsgraph = bpy.context.evaluated_depsgraph_get()
    parent = scene.barchan.carrier
    found = [
        [list(row) for row in instance.matrix_world]
        for instance in depsgraph.object_instances
        if instance.is_instance and instance.parent is not None and instance.parent.original == parent
    ]
    return np.array(found, np.float32).reshape(-1, 4, 4)


def rotate(quaternions, vectors):
    """(N,4) w x y z applied to (K,3): (N,K,3)."""
    w, x, y, z = quaternions.astype(np.float64).T
    matrix = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    ).transpose(2, 0, 1)
    return np.einsum("nij,kj->nki", matrix, vectors.astype(np.float64))


def folder_digest(folder):
    """Names, contents and times of change of everything under a folder; "" when it is not there."""
    folder = pathlib.Path(folder)
    if not folder.exists():
        return ""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(str(path.relative_to(folder)).encode())
        if path.is_file():
            digest.update(path.read_bytes())
            digest.update(str(path.stat().st_mtime_ns).encode())
    return digest.hexdigest()


def data_digest():
    """Names and user counts of all data-blocks, and the marks: what a refused bake must not change."""
    lines = []
    for collection in ("objects", "meshes", "node_groups", "materials", "scenes", "collections"):
        for item in getattr(bpy.data, collection):
            lines.append(f"{collection} {item.name} {item.users}")
    for ob in bpy.data.objects:
        lines.append(f"{ob.name} {ob.barchan.type} {ob.display_type} {ob.hide_render} {[tuple(row) for row in ob.matrix_world]}")
    for scene in bpy.data.scenes:
        lines.append(f"{scene.name} {scene.frame_current_final} {scene.barchan.carrier}")
    return "\n".join(lines)


def pixels(path):
    """A picture as (height * width, 3) floats."""
    image = bpy.data.images.load(str(path))
    values = np.empty(len(image.pixels), np.float32)
    image.pixels.foreach_get(values)
    bpy.data.images.remove(image)
    return values.reshape(-1, 4)[:, :3]


def add_camera(scene, location, target):
    import mathutils

    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(camera)
    camera.location = location
    direction = mathutils.Vector(target) - mathutils.Vector(location)
    camera.rotation_euler = direction.to_track_quat("-Z", "Y").to_euler()
    scene.camera = camera
    light = bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN"))
    light.data.energy = 3.0
    light.rotation_euler = (math.radians(40), 0.0, math.radians(30))
    scene.collection.objects.link(light)
    bpy.context.view_layer.update()


# ---------------------------------------------------------------------------------------------------------------------
# Checks and the runner


class Failure(Exception):
    pass


class Skip(Exception):
    """What this Blender cannot do here; the message says what is missing. Shown, and not counted as passed."""


def check(condition, sentence):
    if not condition:
        raise Failure(sentence)


def check_equal(found, expected, what):
    check(found == expected, f"{what} is {found!r}, expected {expected!r}")


def check_arrays(found, expected, what, tolerance=0.0):
    check(found.shape == expected.shape, f"{what} has shape {found.shape}, expected {expected.shape}")
    worst = float(np.abs(found.astype(np.float64) - expected.astype(np.float64)).max()) if found.size else 0.0
    check(worst <= tolerance, f"{what} differs by up to {worst:g}, allowed {tolerance:g}")


def error_of(function, *arguments, **keywords):
    """The sentence an operator reported: bpy raises it as RuntimeError, one report per line. "" when it went through."""
    try:
        function(*arguments, **keywords)
    except RuntimeError as error:
        return str(error).strip()
    return ""


@contextlib.contextmanager
def console():
    """What Python prints in the block: a list of lines, filled when the block ends."""
    import io

    lines = []
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        yield lines
    lines.extend(stream.getvalue().splitlines())


def main(names):
    """Runs every test_ function of a module's globals in the order of the file, and ends the process."""
    passed = failed = 0
    for name, function in list(names.items()):
        if not name.startswith("test_") or not callable(function):
            continue
        try:
            function()
        except Failure as failure:
            failed += 1
            print(f"FAILED {name}: {failure}", flush=True)
        except Skip as reason:
            print(f"SKIPPED {name}: {reason}", flush=True)
        except BaseException as error:
            failed += 1
            traceback.print_exc()
            text = " ".join(str(error).split())
            print(f"FAILED {name}: {type(error).__name__}: {text}", flush=True)
        else:
            passed += 1
            print(f"ok {name}", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    _temporary.cleanup()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if failed or not passed else 0)  # Blender's own shutdown can hang
