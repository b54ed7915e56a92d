# SPDX-License-Identifier: GPL-3.0-or-later
"""Emitters and outflows: grains come and go, and only those that are there are drawn."""

import harness
from harness import FOLDER, bpy, check, check_arrays, check_equal, np, room


def emitter_scene(name, frame_end=25, **settings):
    """A small box of sand on a floor below an emitter of spheres."""
    scene = harness.new_file()
    scene.frame_start, scene.frame_end = 1, frame_end
    scene.barchan.folder = str(FOLDER / name)
    scene.barchan.radius = 0.05
    scene.barchan.shape = "SPHERE"
    scene.barchan.threads = 1
    harness.mark(harness.add_floor(), "COLLIDER")
    ob = harness.add_box("Source", (0.5, 0.5, 0.3), (0.0, 0.0, 1.5))
    harness.mark(ob, "EMITTER")
    for key, value in settings.items():
        setattr(ob.barchan, key, value)
    return scene, ob


def flags_of(scene, frame):
    return room("engine").core.read_frame(scene.barchan.folder, frame)["arrays"]["flags"]


def shown_of(scene, frame):
    return int(((flags_of(scene, frame) & (8 | 16)) == 0).sum())


def test_grains_come_at_their_rate_and_only_those_there_are_drawn():
    scene, _ob = emitter_scene("rate", rate=48.0, velocity=(0.0, 0.0, -1.0))
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    count = len(scene.barchan.carrier.data.vertices)
    check_equal(count, 48, "grains of one second")
    for frame in (1, 7, 13, 25):
        scene.frame_set(frame)
        shown = shown_of(scene, frame)
        points, radii = harness.drawn_points(scene)
        check_equal(len(points), shown, f"points drawn on frame {frame}")
        due = 48 * (frame - 1) / 24
        check(abs(shown - due) <= 3, f"{shown} grains are there on frame {frame}, expected about {due:.0f}")
        cached = room("engine").core.read_frame(scene.barchan.folder, frame)["arrays"]
        there = (cached["flags"] & 24) == 0
        check_arrays(points, cached["position"][there], f"points on frame {frame}", 1e-6)
        check_arrays(radii, np.full(shown, 0.05, np.float32), "radius of the points")
    for subframe, nearest in ((0.25, 7), (0.75, 8)):
        scene.frame_set(7, subframe=subframe)
        check_equal(len(harness.drawn_points(scene)[0]), shown_of(scene, nearest), f"points drawn at {7 + subframe}")
    scene.barchan.display = "GRAINS"
    scene.frame_set(13)
    check_equal(len(harness.drawn_instances(scene)), shown_of(scene, 13), "instances drawn")


def test_grains_start_inside_the_mesh_with_their_velocity():
    scene, _ob = emitter_scene("inside", frame_end=4, rate=240.0, velocity=(1.0, 0.0, 0.0))
    scene.use_gravity = False
    bpy.ops.barchan.bake()
    arrays = room("engine").core.read_frame(scene.barchan.folder, 4)["arrays"]
    there = (arrays["flags"] & 24) == 0
    position, velocity = arrays["position"][there], arrays["velocity"][there]
    check_arrays(velocity, np.tile(np.float32((1.0, 0.0, 0.0)), (len(velocity), 1)), "velocity", 1e-5)
    check((np.abs(position[:, 1]) <= 0.2 + 1e-5).all(), "a grain came from outside the mesh")
    check((position[:, 0] >= -0.2 - 1e-5).all() and (position[:, 0] <= 0.2 + 3 / 24 + 1e-5).all(), "a grain flew too far")


def test_start_stop_and_target_count():
    scene, ob = emitter_scene("range", rate=48.0, use_range=True, emit_start=5, emit_end=15, velocity=(0.0, 0.0, -2.0))
    bpy.ops.barchan.bake()
    check_equal(len(scene.barchan.carrier.data.vertices), 20, "grains of ten frames")
    check_equal((shown_of(scene, 4), shown_of(scene, 5) <= 1, shown_of(scene, 25)), (0, True, 20), "grains there")
    ob.barchan.target_count = 7
    bpy.ops.barchan.bake()
    check_equal(len(scene.barchan.carrier.data.vertices), 7, "grains with a target")
    check_equal(shown_of(scene, 25), 7, "grains there with a target")
    ob.barchan.emit_end = 3
    sentence = harness.error_of(bpy.ops.barchan.bake)
    check("Source" in sentence and "stop" in sentence, f"an emitter that stops before it starts says {sentence!r}")


def test_emission_from_a_surface_that_is_open():
    scene, ob = emitter_scene("surface", frame_end=6, rate=480.0, emit_from="SURFACE")
    scene.use_gravity = False
    scene.barchan.is_exact = True
    ob.data.clear_geometry()
    ob.data.from_pydata([(-0.3, -0.3, 0), (0.3, -0.3, 0), (0.3, 0.3, 0), (-0.3, 0.3, 0)], [], [(0, 1, 2, 3)])
    bpy.context.view_layer.update()
    bpy.ops.barchan.bake()
    arrays = room("engine").core.read_frame(scene.barchan.folder, 6)["arrays"]
    there = arrays["position"][(arrays["flags"] & 24) == 0]
    check(len(there) > 10, f"{len(there)} grains came, expected more than 10")
    check_arrays(there[:, 2], np.full(len(there), 1.5, np.float32), "height of the grains", 1e-5)


def test_an_outflow_takes_grains_away():
    scene, _ob = emitter_scene("outflow", frame_end=30, rate=96.0, velocity=(0.0, 0.0, -3.0))
    harness.mark(harness.add_box("Drain", (2.0, 2.0, 0.5), (0.0, 0.0, 0.25)), "OUTFLOW")
    bpy.ops.barchan.bake()
    flags = flags_of(scene, 30)
    taken = int(((flags & 16) != 0).sum())
    print(f"  {taken} of {len(flags)} grains were taken, {shown_of(scene, 30)} are there")
    check(taken > 20, f"{taken} grains were taken")
    scene.frame_set(30)
    points, _radii = harness.drawn_points(scene)
    check_equal(len(points), shown_of(scene, 30), "points drawn")
    check(points[:, 2].min() > 0.5, f"a grain is drawn in the outflow, at {points[:, 2].min():.3f} m")


def test_emitters_beside_sand_and_bodies():
    scene, _ob = emitter_scene("beside", frame_end=10, rate=48.0, velocity=(0.0, 0.0, -1.0))
    harness.mark(harness.add_box("Heap", (0.4, 0.4, 0.3), (0.6, 0.0, 0.3)), "SAND")
    harness.mark(harness.add_box("Box", (0.3, 0.3, 0.3), (-0.6, 0.0, 0.5)), "BODY")
    bpy.ops.barchan.bake()
    arrays = room("engine").core.read_frame(scene.barchan.folder, 1)["arrays"]
    check_arrays(arrays["position"][0], np.float32((-0.6, 0.0, 0.5)), "the first element, which is the body", 1e-6)
    unborn = (arrays["flags"] & 8) != 0
    given = len(unborn) - 18
    check(not unborn[:given].any(), "a given grain is not born")
    scene.frame_set(10)
    check_equal(len(scene.barchan.carrier.data.vertices), len(unborn) - 1, "grains of the carrier")
    check_equal(len(harness.drawn_points(scene)[0]), shown_of(scene, 10) - 1, "points drawn")


def test_the_disk_estimate_counts_grains_to_come():
    bake = room("bake")
    scene, _ob = emitter_scene("estimate", rate=100000.0)
    disk_free = bake.disk_free
    bake.disk_free = lambda folder: 50_000_000
    run = bake.Bake(room("export").make_job(bpy.context))
    try:
        run.run()
    finally:
        bake.disk_free = disk_free
    print(f"  {run.error}")
    count, needed = run.assembled.scene.grain_count, run.progress.byte_estimate
    check(count > 50000, f"{count} grains will come, expected more than 50000")
    # No grain that moves takes less than 12 bytes of place, rotation and velocity.
    check(needed > 12 * count * run.job.frame_count, f"{needed} bytes are estimated for {count} grains")
    check(f"needs about {bake.size(needed)}" in run.error and "50.0 MB free" in run.error, f"the sentence is {run.error!r}")


if __name__ == "__main__":
    harness.main(globals())
