# SPDX-License-Identifier: GPL-3.0-or-later
"""GL of our own and Blender's drawing in one process: neither disturbs the other."""

import ctypes
import os
import threading

import harness
from harness import FOLDER, bpy, check, check_equal, np

ROUNDS = int(os.environ.get("BARCHAN_PICTURES", "5"))  # 20 with setup.py test --all
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
    """Calls something on a thread of ours, again and again, for as long as the block lasts."""

    def __init__(self, work=device_names):
        self.work = work

    def __enter__(self):
        self.is_over = threading.Event()
        self.counts, self.errors = 0, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        try:
            while not self.is_over.is_set():
                self.work()
                self.counts += 1
        except BaseException as error:  # told by the test, on its own thread
            self.errors.append(error)

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def check_engine(engine):
    """Pictures between calls of ours on Blender's thread, beside those of a worker."""
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
    check(worker.counts > 0, "no device computed while the pictures were rendered")
    print(f"  {ROUNDS} pictures, {worker.counts} rounds of devices beside them")


def test_our_gl_beside_cycles():
    check_engine("CYCLES")


def test_our_gl_beside_workbench():
    """Blender draws on EGL's surfaceless display, and Mesa 22.3.6 crashes when two threads are in contexts of one display
    (docs/design.md): ours is another."""
    check_engine("BLENDER_WORKBENCH")


def current_display():
    egl = ctypes.CDLL("libEGL.so.1")
    egl.eglGetCurrentDisplay.restype = ctypes.c_void_p
    return egl.eglGetCurrentDisplay() or 0


def surfaceless_display():
    egl = ctypes.CDLL("libEGL.so.1")
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    find = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)
    return find(egl.eglGetProcAddress(b"eglGetPlatformDisplayEXT"))(0x31DD, None, None) or 0


def test_blender_draws_on_a_display_that_we_leave_alone():
    still(cube_scene("BLENDER_WORKBENCH"), "display")
    check_equal(current_display(), surfaceless_display(), "the display that Blender draws on")
    platforms = [device["platform"] for device in harness.room("engine").core.devices() if device["is_usable"]]
    check("EGL surfaceless" not in platforms or len(platforms) == 1, f"we draw there too: {platforms}")


def bake_of(engine, folder):
    """The add-on's own bake of a block of grains over a floor, as its operator starts it."""
    job = harness.room("job")
    corners = np.array([(i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)], np.float32)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([row for a, b, c, d in quads for row in ((a, b, c), (a, c, d))], np.int32)
    floor = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], np.float32)
    return harness.room("bake").Bake(
        job.Job(
            sand=(job.Source("Block", corners * np.float32(0.2) + np.float32((0, 0, 0.02)), faces),),
            colliders=(job.Collider("Floor", floor, np.array([(0, 1, 2), (0, 2, 3)], np.int32)),),
            folder=str(folder),
            frame_start=1,
            frame_end=4,
            frame_seconds=1 / 24,
            radius=0.02,
            threads=1,
            engine=engine,
            is_exact=True,
        )
    )


def frames_of(bake):
    core = harness.room("engine").core
    check_equal((bake.progress.state, bake.error), ("DONE", ""), "the bake")
    frames = [core.read_frame(bake.job.folder, frame)["arrays"] for frame in range(1, 5)]
    return [{name: np.array(values) for name, values in frame.items()} for frame in frames]


def check_bakes_beside(engine):
    """Bakes on the add-on's thread, one after the other, on the device; pictures on Blender's, meanwhile."""
    alone = bake_of("CPU", FOLDER / f"{engine}_cpu")
    alone.run()
    wanted = frames_of(alone)
    check(float(np.abs(wanted[0]["position"] - wanted[3]["position"]).max()) > 1e-3, "no grain has moved")
    is_exact = all(device["is_software"] for device in harness.room("engine").core.devices() if device["is_usable"])
    scene = cube_scene(engine)
    first = still(scene, f"{engine}_alone")
    done, bake, beside = 0, None, 0
    while beside < ROUNDS or bake is not None:
        if bake is None:
            bake = bake_of("GPU", FOLDER / f"{engine}_gl")
            bake.start()
        picture = still(scene, f"{engine}_beside_{beside}")
        check(bool(np.array_equal(picture, first)), f"picture {beside} of {engine} differs beside a bake")
        beside += 1
        if beside >= ROUNDS:
            bake.join()
        if bake.progress.state in ("DONE", "FAILED", "STOPPED"):
            frames = frames_of(bake)
            check(bake.engine_name.startswith("GPU"), f"the bake was made by the {bake.engine_name}")
            for frame, (ours, theirs) in enumerate(zip(wanted, frames), 1):
                check_equal(sorted(theirs), sorted(ours), f"the arrays of frame {frame}")
                for name in ours if is_exact else ():
                    check(bool(np.array_equal(ours[name], theirs[name])), f"{name} of frame {frame} differs beside {engine}")
            done, bake = done + 1, None
    check(done > 0, "no bake ended while the pictures were rendered")
    print(f"  {beside} pictures, {done} bakes beside them")


def test_bakes_on_the_gl_engine_beside_cycles():
    check_bakes_beside("CYCLES")


def test_bakes_on_the_gl_engine_beside_workbench():
    check_bakes_beside("BLENDER_WORKBENCH")


if __name__ == "__main__":
    harness.main(globals())
