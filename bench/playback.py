#!/usr/bin/env python3
"""How long Blender takes to show another cached frame. `python3 setup.py bench --playback` runs this file with a Python that
has bpy; docs/performance.md says what came out.

A frame change is `Scene.frame_set` to a random frame: the handler reads and decodes the file (which the system has in
memory), copies it into the carrier, and Blender evaluates the node group to points. Beside it, in turn with it: the copy
of the same arrays alone (`foreach_set`), and a frame change whose handler does that copy and nothing else. Medians count:
a scrub shows every frame once. Frames that playback keeps in memory are thrown away before each change.

With --render: a million tetrahedral grains in Cycles instead, 480 x 270 at 16 samples, each display in a process of its own, and
the most memory that the process held.
"""

import argparse
import importlib.util
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import bench
import bpy
import numpy as np

RADIUS = 0.005  # m
SIZES = ((100_000, 24), (1_000_000, 10))  # grains, frames
CHANGES = 40
LEAK_CHANGES = 1000
FPS = 24


def load_addon():
    folder = bench.ROOT / "addon"
    spec = importlib.util.spec_from_file_location(
        "barchan_addon", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["barchan_addon"] = module
    spec.loader.exec_module(module)
    module.register()


def write_frames(folder, count, frame_count, moving_share):
    """A bed on a lattice, of which the upper share flows; written as bakes write."""
    import barchan

    random = np.random.default_rng(1)
    side = int(np.ceil((count / 2) ** (1 / 3)))
    index = np.arange(count)
    places = np.stack([index % side, index // side % side, index // side**2], 1) * 2.2 * RADIUS
    places += random.normal(0, 0.2 * RADIUS, (count, 3))
    moving = index >= count * (1 - moving_share)
    speeds = np.where(moving[:, None], random.normal(0, 0.3, (count, 3)), 0.0)
    turns = random.normal(size=(count, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    barchan.make_folder(folder)
    with barchan.Writer(folder, tolerance=0.01 * RADIUS, key_interval=10) as writer:
        for frame in range(1, frame_count + 1):
            arrays = {
                "position": (places + speeds * (frame - 1) / FPS).astype(np.float32),
                "rotation": turns.astype(np.float32),
                "velocity": speeds.astype(np.float32),
                "spin": speeds.astype(np.float32),
                "radius": np.full(count, RADIUS, np.float32),
                **{name: np.zeros(count, np.int32) for name in ("shape", "material", "source")},
                "id": index.astype(np.int32),
                "age": np.full(count, (frame - 1) / FPS, np.float32),
                "flags": np.where(moving, 0, 2).astype(np.int32),
            }
            writer.push(frame, arrays, seconds=(frame - 1) / FPS)


def make_scene(folder, count, frame_count):
    playback = sys.modules["barchan_addon.playback"]
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True, load_ui=False)
    scene = bpy.context.scene
    scene.render.fps = FPS
    scene.frame_start, scene.frame_end = 1, frame_count
    scene.barchan.folder = str(folder)
    scene.barchan.radius, scene.barchan.shape = RADIUS, "TETRAHEDRON"
    playback.attach(scene, playback.Baked(count, RADIUS, "TETRAHEDRON"))
    scene.barchan_look.view = "POINTS"
    return scene


def timed(function):
    begin = time.perf_counter()
    function()
    return 1e3 * (time.perf_counter() - begin)


def measure(scene, frame_count):
    """Milliseconds of each of CHANGES frame changes, of the raw copies, and of changes that only copy."""
    playback = sys.modules["barchan_addon.playback"]
    mesh = scene.barchan.carrier.data
    random = np.random.default_rng(2)
    arrays = [
        playback.read(scene.barchan.folder, frame, playback.Wanted(("position",))).arrays["position"].ravel().copy()
        for frame in (1, 2)
    ]
    data = mesh.attributes["position"].data

    def copy_only(scene, *_):
        mesh.attributes["position"].data.foreach_set("vector", arrays[scene.frame_current % 2])
        mesh.update_tag()

    found = {"ours": [], "raw": [], "copied": []}
    frame = 1
    for _ in range(CHANGES):
        frame = 1 + (frame + int(random.integers(1, frame_count)) - 1) % frame_count  # never the one that is shown
        playback._store.clear()
        found["ours"].append(timed(lambda: scene.frame_set(frame)))
        found["raw"].append(timed(lambda: data.foreach_set("vector", arrays[frame % 2])))
        scene.barchan_look.is_on = False
        bpy.app.handlers.frame_change_pre.append(copy_only)
        found["copied"].append(timed(lambda: scene.frame_set(frame % frame_count + 1)))
        bpy.app.handlers.frame_change_pre.remove(copy_only)
        scene.barchan_look.is_on = True
        scene.frame_set(frame)
    return found


def memory_mib():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def leak(scene, frame_count):
    """MiB that memory grew over LEAK_CHANGES random frame changes, after some to get going."""
    random = np.random.default_rng(3)
    marks = []
    for changes in (50, LEAK_CHANGES):
        for frame in random.integers(1, frame_count + 1, changes):
            scene.frame_set(int(frame))
        marks.append(memory_mib())
    return marks


RENDERS = {  # Scene.barchan.display and settings of Scene.barchan_look
    "points": ("POINTS", {}),
    "rounded grains": ("GRAINS", {"kind": "ROUNDED"}),
    "by distance": ("GRAINS", {"kind": "ROUNDED", "by_distance": True}),
}


def render(name, folder, count):
    """Renders one picture in this process; prints seconds and peak memory in MiB."""
    import mathutils

    scene = make_scene(folder, count, 2)
    scene.barchan.display, settings = RENDERS[name]
    for key, value in settings.items():
        setattr(scene.barchan_look, key, value)
    scene.frame_set(1)
    side = 2.2 * RADIUS * (count / 2) ** (1 / 3)
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(camera)
    camera.location = (1.6 * side, -0.9 * side, 2.6 * side)
    camera.rotation_euler = (mathutils.Vector((0.5 * side, 0.5 * side, side)) - camera.location).to_track_quat("-Z", "Y").to_euler()
    scene.camera = camera
    sun = bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN"))
    sun.data.energy = 3.0
    sun.rotation_euler = (0.9, 0.0, 0.5)
    scene.collection.objects.link(sun)
    scene.render.engine = "CYCLES"
    scene.cycles.samples = 16
    scene.cycles.use_denoising = False
    scene.render.resolution_x, scene.render.resolution_y = 480, 270
    scene.render.filepath = str(folder / f"{name}.png")
    seconds = timed(lambda: bpy.ops.render.render(write_still=True)) / 1e3
    print(f"RENDERED {seconds:.1f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}", flush=True)
    os._exit(0)


def render_all(options, report):
    count = SIZES[-1][0]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "frames"
        write_frames(folder, count, 2, 0.5)
        for name in RENDERS:
            report.show(name)
            others = bench.Others()
            command = [sys.executable, __file__, "--one", name, "--folder", str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            cores = others.cores()
            seconds, mib = next(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("RENDERED"))
            report.result(
                work="render",
                n=count,
                peer=name,
                threads=os.cpu_count(),
                repeats=1,
                milliseconds=round(1e3 * float(seconds)),
                peak_mib=int(mib),
                other_cpu=round(cores, 2),
            )
            if options.keep:
                (folder / f"{name}.png").replace(pathlib.Path(options.keep) / f"{name}.png")
            report.advance(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", default=bench.ROOT / "bench")
    parser.add_argument("--command", default="bench/playback.py")
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--keep", help="folder that the pictures of --render go to")
    parser.add_argument("--one", choices=RENDERS, help="of --render, in this process")
    parser.add_argument("--folder", type=pathlib.Path, help="frames for --one")
    options = parser.parse_args()
    load_addon()
    if options.one:
        render(options.one, options.folder, SIZES[-1][0])
    if options.render:
        render_all(options, bench.Report(options.out, options.command, len(RENDERS)))
        os._exit(0)
    report = bench.Report(options.out, options.command, 2 * len(SIZES) + 1)
    with tempfile.TemporaryDirectory() as scratch:
        for count, frame_count in SIZES:
            for name, moving_share in (("all moving", 1.0), ("half moving", 0.5)):
                folder = pathlib.Path(scratch) / f"{count}_{moving_share}"
                write_frames(folder, count, frame_count, moving_share)
                scene = make_scene(folder, count, frame_count)
                bench.wait_for_quiet(report.show)
                report.show(f"{count} grains, {name}")
                others = bench.Others()
                times = measure(scene, frame_count)
                cores = others.cores()
                ours, raw, copied = (statistics.median(times[key]) for key in ("ours", "raw", "copied"))
                for peer, milliseconds in (("foreach_set alone", raw), ("frame change with foreach_set alone", copied)):
                    report.result(
                        work="playback",
                        n=count,
                        peer=f"{peer}, {name}",
                        threads=os.cpu_count(),
                        repeats=CHANGES,
                        milliseconds=round(ours, 2),
                        peer_milliseconds=round(milliseconds, 2),
                        ratio=round(ours / milliseconds, 2),
                        spread=round(ours / min(times["ours"]) - 1, 3),
                        other_cpu=round(cores, 2),
                    )
                report.advance(f"{count} grains, {name}")
                if count == SIZES[0][0] and moving_share == 0.5:
                    before, after = leak(scene, frame_count)
                    report.result(
                        work="playback-memory", n=count, repeats=LEAK_CHANGES, peak_mib=round(after), growth=round(after - before, 1)
                    )
                    report.advance("memory")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
