# SPDX-License-Identifier: GPL-3.0-or-later
"""What the examples share: progress on the terminal, a quiet Blender, the add-on, materials, lights and the render."""

import contextlib
import importlib
import importlib.util
import os
import pathlib
import sys
import time


class Stop(Exception):
    """Ends the run with one sentence."""


# ---------------------------------------------------------------------------------------------------------------------
# Terminal


class Bar:
    """Progress with time left: one line that is rewritten, or a line now and then when the output goes to a file."""

    def __init__(self, label, total, stream):
        self.label, self.total, self.stream = label, total, stream
        self.start = time.monotonic()
        self.last = -1e9
        self.done = 0
        self.show()

    def advance(self):
        self.done += 1
        self.show()

    def show(self):
        elapsed = time.monotonic() - self.start
        is_finished = self.done >= self.total
        filled = round(30 * self.done / self.total)
        note = ""
        if is_finished:
            note = f", {duration(elapsed)}"
        elif self.done:
            note = f", {duration(elapsed / self.done * (self.total - self.done))} left"
        line = f"[{'#' * filled}{'.' * (30 - filled)}] {self.label} {self.done}/{self.total}{note}"
        if self.stream.isatty():
            self.stream.write("\r\x1b[K" + line + ("\n" if is_finished else ""))
        elif is_finished or time.monotonic() - self.last > 10:
            self.last = time.monotonic()
            self.stream.write(line + "\n")
        self.stream.flush()


def duration(seconds):
    seconds = int(seconds + 0.5)
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60:02d} s"


@contextlib.contextmanager
def quiet(log):
    """Blender's own lines go to the log; yields a stream that still reaches the terminal."""
    sys.stdout.flush()
    kept = os.dup(1)
    terminal = os.fdopen(os.dup(kept), "w")
    with open(log, "a") as target:
        os.dup2(target.fileno(), 1)
    try:
        yield terminal
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        terminal.close()


# ---------------------------------------------------------------------------------------------------------------------
# The add-on


def enable_addon(archive):
    """Enables Barchan and returns its package name."""
    import addon_utils
    import bpy

    extension = "bl_ext.user_default.barchan"
    if archive:
        bpy.ops.extensions.package_install_files(
            filepath=os.path.abspath(archive), repo="user_default", enable_on_install=True
        )
    try:
        is_installed = importlib.util.find_spec(extension) is not None
    except ModuleNotFoundError:
        is_installed = False
    if is_installed:
        addon_utils.enable(extension)
        package = extension
    else:
        folder = pathlib.Path(__file__).resolve().parents[1] / "addon"
        package = "barchan_addon"
        spec = importlib.util.spec_from_file_location(
            package, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if not folder.is_dir():
            raise Stop(f"The Barchan extension is not installed and there is no {folder}; give --zip")
        sys.modules[package] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[package])
        sys.modules[package].register()
    engine = importlib.import_module(package + ".engine")
    if engine.core is None:
        raise Stop(engine.problem)
    return package


# ---------------------------------------------------------------------------------------------------------------------
# Looks


def new_material(name):
    """Material with an empty node tree and its output node."""
    import bpy

    material = bpy.data.materials.new(name)
    if material.node_tree is None:
        material.use_nodes = True
    material.node_tree.nodes.clear()
    return material, material.node_tree, material.node_tree.nodes.new("ShaderNodeOutputMaterial")


def plain_material(name, colour, roughness, metallic=0.0):
    material, tree, output = new_material(name)
    shader = tree.nodes.new("ShaderNodeBsdfPrincipled")
    shader.inputs["Base Color"].default_value = (*colour, 1.0)
    shader.inputs["Roughness"].default_value = roughness
    shader.inputs["Metallic"].default_value = metallic
    tree.links.new(shader.outputs[0], output.inputs["Surface"])
    material.diffuse_color = (*colour, 1.0)
    return material


def add_light(name, location, target, size, power, colour=(1.0, 1.0, 1.0)):
    import bpy
    import mathutils

    data = bpy.data.lights.new(name, "AREA")
    data.shape = "RECTANGLE"
    data.size, data.size_y = size
    data.energy = power
    data.color = colour
    ob = bpy.data.objects.new(name, data)
    ob.location = location
    ob.rotation_euler = (mathutils.Vector(target) - ob.location).to_track_quat("-Z", "Y").to_euler()
    bpy.context.scene.collection.objects.link(ob)
    return ob


def set_render(scene, size, samples, is_fast=False):
    """Cycles; is_fast trades some of the denoiser's quality for half its time."""
    scene.render.engine = "CYCLES"
    scene.render.resolution_x, scene.render.resolution_y = size
    scene.render.resolution_percentage = 100
    scene.render.use_persistent_data = True
    scene.render.use_lock_interface = True
    scene.cycles.samples = samples
    scene.cycles.use_adaptive_sampling = not is_fast
    scene.cycles.adaptive_threshold = 0.05
    scene.cycles.use_light_tree = False  # five lights: sampling them all is faster than choosing
    scene.cycles.max_bounces = 3
    scene.cycles.diffuse_bounces = 2
    scene.cycles.glossy_bounces = 2
    scene.cycles.transparent_max_bounces = 8
    scene.cycles.caustics_reflective = False
    scene.cycles.caustics_refractive = False
    scene.cycles.use_denoising = True
    try:
        scene.cycles.denoiser = "OPENIMAGEDENOISE"
        scene.cycles.denoising_prefilter = "FAST" if is_fast else "ACCURATE"
    except TypeError:  # a Blender built without it
        scene.cycles.use_denoising = False
    scene.view_settings.view_transform = "AgX"
    scene.view_settings.look = "AgX - Medium High Contrast"
