# SPDX-License-Identifier: GPL-3.0-or-later
"""Colliders that stand, move and bend: what is read of them, and that the sand follows."""

import math

import harness
from harness import FOLDER, bpy, check, check_arrays, check_equal, np, room

TAIL = 6  # frames after the range that are read as well: a quarter of a second at 24 frames a second


def new_scene(name, frame_end=12, radius=0.05):
    scene = harness.new_file()
    scene.frame_start, scene.frame_end = 1, frame_end
    scene.barchan.folder = str(FOLDER / name)
    scene.barchan.radius = radius
    scene.barchan.shape = "SPHERE"
    scene.barchan.threads = 1
    return scene


def make_job():
    return room("export").make_job(bpy.context)


def key_linear(ob, path, rows):
    for frame, value in rows:
        setattr(ob, path, value)
        ob.keyframe_insert(path, frame=frame)
    for curve in room("follow").curves(ob).values():
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"


def sand_on(ob, size, above):
    """A block of sand above the object."""
    place = (ob.location.x, ob.location.y, ob.location.z + above)
    harness.mark(harness.add_box("Block", size, place), "SAND")


def positions_on(scene, frame):
    return room("engine").core.read_frame(scene.barchan.folder, frame)["arrays"]["position"]


def test_what_stands_is_read_once_in_world_space():
    new_scene("standing")
    floor = harness.add_floor()
    floor.location = (1.0, 2.0, 3.0)
    harness.mark(floor, "COLLIDER")
    floor.modifiers.new("Solid", "SOLIDIFY").thickness = 0.1
    sand_on(floor, (0.5, 0.5, 0.5), 0.5)
    one = make_job().colliders[0]
    check(one.track is None and one.frames is None, "a standing collider has a motion")
    check_arrays(one.vertices.max(axis=0)[:2], np.float32((2.0, 3.0)), "corner", 1e-6)


def test_a_keyframed_collider_is_a_track_of_its_scaled_mesh():
    scene = new_scene("keyed", frame_end=9)
    board = harness.add_floor()
    board.scale = (-1.0, 0.5, 1.0)
    harness.mark(board, "COLLIDER")
    board.barchan.samples = 4
    key_linear(board, "location", ((1, (0.0, 0.0, 0.0)), (9, (0.8, 0.0, 0.4))))
    key_linear(board, "rotation_euler", ((1, (0.0, 0.0, 0.0)), (9, (0.0, 0.0, 4.0))))
    sand_on(board, (0.4, 0.4, 0.4), 0.4)
    scene.frame_set(4)
    one = make_job().colliders[0]
    check_equal((scene.frame_current, scene.frame_subframe), (4, 0.0), "frame after the reading")
    check(one.track is not None and one.frames is None, "a moving collider has no track")
    samples = one.track.samples
    check_equal(len(samples), (8 + TAIL) * 4 + 1, "samples")
    check(abs(one.track.interval - 1 / 96) < 1e-9, f"the interval is {one.track.interval} s")
    share = np.minimum(np.arange(len(samples))[:, None] / 32, 1.0)
    check_arrays(samples[:, :3], share * np.array((0.8, 0.0, 0.4)), "places", 1e-5)
    check(((samples[1:, 3:] * samples[:-1, 3:]).sum(axis=1) > 0).all(), "a quaternion changes its sign")
    for index, frame, subframe in ((0, 1, 0.0), (7, 2, 0.75), (32, 9, 0.0)):
        scene.frame_set(frame, subframe=subframe)
        mesh = np.array([tuple(board.matrix_world @ vertex.co) for vertex in board.data.vertices])
        turned = harness.rotate(samples[index : index + 1, 3:], one.vertices)[0] + samples[index, :3]
        check_arrays(turned, mesh, f"vertices on frame {frame + subframe}", 1e-5)


def test_sand_is_carried_by_a_moving_board_and_pushed_by_a_blade():
    scene = new_scene("pushed", frame_end=13)
    floor = harness.add_floor(3.0)
    harness.mark(floor, "COLLIDER")
    blade = harness.add_box("Blade", (0.1, 1.4, 0.8), (-0.6, 0.0, 0.45))
    harness.mark(blade, "COLLIDER")
    key_linear(blade, "location", ((1, (-0.6, 0.0, 0.45)), (13, (0.4, 0.0, 0.45))))
    harness.mark(harness.add_box("Block", (0.5, 0.5, 0.3), (0.0, 0.0, 0.2)), "SAND")
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    last = positions_on(scene, 13)
    print(f"  sand from x {positions_on(scene, 1)[:, 0].min():.3f} to {last[:, 0].min():.3f}, blade at 0.45 m")
    check((last[:, 0] > 0.45 + 0.8 * 0.05).all(), "a grain is in or behind the blade")
    loads = (FOLDER / "pushed" / "loads.csv").read_text().splitlines()
    pushed = [float(line.split(",")[3]) for line in loads[1:] if ",Blade," in line]
    check(min(pushed) < -1.0 and max(pushed[-4:]) < 0.0, f"the blade's load is {pushed}")


def test_a_grain_leaves_a_rising_floor_with_its_velocity():
    # A floor that rises at 2 m/s and stops lets what lies on it fly up by v^2 / 2g = 0.204 m.
    scene = new_scene("thrown", frame_end=14)
    floor = harness.add_floor()
    harness.mark(floor, "COLLIDER")
    floor.barchan.restitution = 0.05
    scene.barchan.restitution = 0.05
    key_linear(floor, "location", ((1, (0.0, 0.0, 0.0)), (5, (0.0, 0.0, 8 / 24)), (20, (0.0, 0.0, 8 / 24))))
    harness.mark(harness.add_box("Block", (0.14, 0.14, 0.14), (0.0, 0.0, 0.07)), "SAND")
    bpy.ops.barchan.bake()
    heights = [float(positions_on(scene, frame)[0, 2]) for frame in range(1, 15)]
    top = max(heights) - heights[4]
    print(f"  {len(positions_on(scene, 1))} grain, at the stop {heights[4]:.3f} m, then up by {top:.3f} m")
    check(abs(top - 0.204) < 0.04, f"the grain rose by {top:.3f} m, expected 0.204")


def test_a_shape_key_is_frames_of_world_vertices_and_lifts_the_sand():
    scene = new_scene("bent", frame_end=13)
    floor = harness.add_floor()
    floor.location.z = 0.1
    harness.mark(floor, "COLLIDER")
    floor.shape_key_add(name="Basis")
    key = floor.shape_key_add(name="Up")
    for point in key.data:
        point.co.z += 0.5
    for frame, value in ((1, 0.0), (13, 1.0)):
        key.value = value
        key.keyframe_insert("value", frame=frame)
    sand_on(floor, (0.5, 0.5, 0.3), 0.2)
    one = make_job().colliders[0]
    check(one.frames is not None and one.track is None, "a bending collider has no frames")
    check_equal(one.frames.shape, ((12 + TAIL) * 2 + 1, 4, 3), "frames")
    check_arrays(one.frames[[0, -1], 0, 2], np.float32((0.1, 0.6)), "height of the first and last shape", 1e-6)
    bpy.ops.barchan.bake()
    lowest = float(positions_on(scene, 13)[:, 2].min())
    print(f"  lowest grain {lowest:.3f} m, floor at 0.600 m")
    check(lowest > 0.6 + 0.8 * 0.05, f"a grain is at {lowest:.3f} m, below the risen floor")


def test_an_animated_scale_and_an_armature_are_frames_too():
    new_scene("reshaped", frame_end=5)
    floor = harness.add_floor()
    harness.mark(floor, "COLLIDER")
    floor.barchan.samples = 1
    key_linear(floor, "scale", ((1, (1.0, 1.0, 1.0)), (5, (2.0, 1.0, 1.0))))
    board = harness.add_box("Board", (0.2, 0.2, 1.0), (3.0, 0.0, 0.0))
    harness.mark(board, "COLLIDER")
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    bone = rig.data.edit_bones.new("Bone")
    bone.head, bone.tail = (3.0, 0.0, -0.5), (3.0, 0.0, 0.5)
    bpy.ops.object.mode_set(mode="OBJECT")
    group = board.vertex_groups.new(name="Bone")
    group.add([v.index for v in board.data.vertices if v.co.z > 0], 1.0, "ADD")
    board.modifiers.new("Rig", "ARMATURE").object = rig
    pose = rig.pose.bones["Bone"]
    pose.rotation_mode = "XYZ"
    for frame, angle in ((1, 0.0), (5, 0.6)):
        pose.rotation_euler = (angle, 0.0, 0.0)
        pose.keyframe_insert("rotation_euler", frame=frame)
    harness.mark(harness.add_box("Block", (0.4, 0.4, 0.4), (0.0, 0.0, 0.4)), "SAND")
    colliders = {one.name: one for one in make_job().colliders}
    check_equal(colliders["Floor"].frames.shape, (5 + TAIL, 4, 3), "frames of the scaled floor")
    check(abs(np.ptp(colliders["Floor"].frames[-1, :, 0]) - 4.0) < 1e-5, "the floor is not scaled on the last frame")
    frames = colliders["Board"].frames
    check(frames is not None, "a rigged collider has no frames")
    moved = np.linalg.norm(frames[-1] - frames[0], axis=1)
    check(moved.max() > 0.3 and moved.min() < 1e-5, f"the armature moved the vertices by {moved}")


def test_a_parented_collider_moves_with_its_parent():
    scene = new_scene("parented", frame_end=5)
    parent = bpy.data.objects.new("Parent", None)
    scene.collection.objects.link(parent)
    key_linear(parent, "rotation_euler", ((1, (0.0, 0.0, 0.0)), (5, (0.0, 0.0, 1.0))))
    floor = harness.add_floor()
    floor.location.x = 2.0
    floor.parent = parent
    harness.mark(floor, "COLLIDER")
    harness.mark(harness.add_box("Block", (0.4, 0.4, 0.4), (2.0, 0.0, 0.4)), "SAND")
    samples = make_job().colliders[0].track.samples
    check_arrays(samples[-1, :3], np.array((2 * math.cos(1), 2 * math.sin(1), 0.0)), "last place", 1e-5)


def test_a_closed_box_holds_the_sand_that_is_in_it():
    scene = new_scene("container", frame_end=16)
    box = harness.add_box("Container", (0.8, 0.8, 0.8), (0.0, 0.0, 0.5))
    harness.mark(box, "COLLIDER")
    key_linear(box, "location", ((1, (0.0, 0.0, 0.5)), (6, (0.3, 0.0, 0.5)), (11, (0.0, 0.0, 0.7)), (16, (0.0, 0.3, 0.5))))
    harness.mark(harness.add_box("Block", (0.6, 0.6, 0.6), (0.0, 0.0, 0.5)), "SAND")
    bpy.ops.barchan.bake()
    count = len(positions_on(scene, 1))
    for frame in range(1, 17):
        scene.frame_set(frame)
        apart = np.abs(positions_on(scene, frame) - np.array(box.matrix_world.translation)).max()
        check(apart < 0.4 - 0.6 * 0.05, f"a grain is {apart:.3f} m from the middle on frame {frame}")
    print(f"  {count} grains in a shaken box")
    check(count > 50, f"{count} grains were put into the box")


def test_rough_colliders_stand_as_walls_and_move_as_bodies():
    scene = new_scene("rough", frame_end=10)
    floor = harness.add_floor()
    harness.mark(floor, "COLLIDER")
    floor.barchan.is_rough = True
    blade = harness.add_box("Blade", (0.1, 0.6, 0.5), (-0.6, 0.0, 0.25))
    harness.mark(blade, "COLLIDER")
    blade.barchan.is_rough = True
    key_linear(blade, "location", ((1, (-0.6, 0.0, 0.25)), (10, (0.0, 0.0, 0.25))))
    harness.mark(harness.add_box("Block", (0.3, 0.3, 0.3), (0.0, 0.0, 0.3)), "SAND")
    check_equal(bpy.ops.barchan.bake(), {"FINISHED"}, "result of the bake")
    last = positions_on(scene, 10)
    check_arrays(last[0], np.float32((0.0, 0.0, 0.25)), "the blade, which is the first element", 0.01)
    check_equal(len(scene.barchan.carrier.data.vertices), len(last) - 1, "grains drawn")
    check((last[1:, 0] > 0.05).all(), f"a grain is in the blade, at {last[1:, 0].min():.3f} m")
    check(last[1:, 2].min() > 1.5 * 0.05, f"a grain sank into the floor's spheres, at {last[1:, 2].min():.3f} m")


if __name__ == "__main__":
    harness.main(globals())
