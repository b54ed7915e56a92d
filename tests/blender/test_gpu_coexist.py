# SPDX-License-Identifier: GPL-3.0-or-later
"""GL of our own and Blender's drawing in one process: neither disturbs the other."""

import ctypes
import threading

import harness
from harness import FOLDER, bpy, check, check_equal, np

ROUNDS = 20
RESOLUTION = (96, 72)


def device_names():
    """Every usable device has computed and its numbers were right; asked for and given up within the call."""
    devices = harness.room("engine").core.devices(self_test=True)
    broken = [device["reason"] for device in devices if not device["is_usable"]]
    check(not broken, f"a device does not compute: {broken}")
    return [device["name"] for device in devices]


def current_context():
    """Blender's context on this thread, 0 when there is none."""
    egl = ctypes.CDLL("libEGL.so.1")
    egl.eglGetCurrentContext.restype = ctypes.c_void_p
    return egl.eglGetCurrentContext() or 0


def cube_scene(engine):
    scene = harness.new_file()
    harness.add_box("Cube", (0.6, 0.6, 0.6))
    harness.add_camera(scene, (1.2, -1.6, 1.0), (0.0, 0.0, 0.0))
    scene.world = bpy.data.worlds.new("World")
    scene.render.engine = engine
    scene.render.resolution_x, scene.render.resolution_y = RESOLUTION
    scene.render.image_settings.file_format = "PNG"
    if engine == "CYCLES":
        scene.cycles.samples = 4
        scene.cycles.seed = 0
        scene.cycles.use_denoising = False
        scene.cycles.use_adaptive_sampling = False
    return scene


def still(scene, name):
    path = FOLDER / f"{name}.png"
    scene.render.filepath = str(path)
    bpy.ops.render.render(write_still=True)
    return harness.pixels(path)


class Worker:
    """Devices come, compute and go on a thread of ours for as long as the block lasts."""

    def __enter__(self):
        self.is_over = threading.Event()
        self.counts, self.errors = 0, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        try:
            while not self.is_over.is_set():
                device_names()
                self.counts += 1
        except BaseException as error:  # told by the test, on its own thread
            self.errors.append(error)

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def check_engine(engine):
    scene = cube_scene(engine)
    names = device_names()
    first = still(scene, f"{engine}_alone")
    check(float(first.std()) > 0.01, f"the picture of {engine} is blank")
    with Worker() as worker:
        for i in range(ROUNDS):
            before = current_context()
            check_equal(device_names(), names, "the devices")
            check_equal(current_context(), before, "the context of Blender's thread")
            picture = still(scene, f"{engine}_{i}")
            check(bool(np.array_equal(picture, first)), f"picture {i} of {engine} differs beside our GL")
            check(not worker.errors, f"our GL failed beside {engine}: {worker.errors}")
    print(f"  {engine}: {ROUNDS} pictures, {worker.counts} rounds of {len(names)} devices beside them")
    check(worker.counts > 0, "no device computed while the pictures were rendered")


def test_our_gl_beside_cycles():
    check_engine("CYCLES")


def test_our_gl_beside_workbench():
    check_engine("BLENDER_WORKBENCH")


if __name__ == "__main__":
    harness.main(globals())
