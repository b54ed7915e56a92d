"""Plays the folder that this script lies in, a geometry-nodes bake exported by Barchan, in Blender 4.2 and later.

    blender --python play_in_blender.py

or open it in Blender's text editor and press Run. Makes the object "Sand" with a Bake node that reads the folder, and sets
the scene's frames and rate. No add-on is needed. The points carry the attributes position, radius, rotation, velocity, id.
"""

import json
import os

import bpy


def find_folder():
    """Where this script lies; run from the text editor, its own path is not a real one."""
    paths = [globals().get("__file__", "")] + [bpy.path.abspath(text.filepath) for text in bpy.data.texts]
    for path in paths:
        folder = os.path.dirname(os.path.abspath(path))
        if path and os.path.isdir(os.path.join(folder, "meta")) and os.path.isdir(os.path.join(folder, "blobs")):
            return folder
    raise RuntimeError("No folder with meta/ and blobs/ beside this script: open it from the exported folder.")


def make_group():
    group = bpy.data.node_groups.new("Sand Playback", "GeometryNodeTree")
    group.is_modifier = True
    for direction in ("INPUT", "OUTPUT"):
        group.interface.new_socket("Geometry", in_out=direction, socket_type="NodeSocketGeometry")
    bake = group.nodes.new("GeometryNodeBake")
    if len(bake.bake_items) == 0:
        bake.bake_items.new("GEOMETRY", "Geometry")
    entry, leave = group.nodes.new("NodeGroupInput"), group.nodes.new("NodeGroupOutput")
    entry.location, leave.location = (-200, 0), (200, 0)
    group.links.new(entry.outputs[0], bake.inputs[0])
    group.links.new(bake.outputs[0], leave.inputs[0])
    return group


def play(folder, scene):
    """The object that plays the folder in the scene."""
    with open(os.path.join(folder, "barchan_export.json"), encoding="ascii") as file:
        about = json.load(file)
    first, last = about["frames"][0]["frame"], about["frames"][-1]["frame"]
    scene.frame_start, scene.frame_end = first, last
    scene.render.fps = max(1, round(about["fps"]))
    scene.render.fps_base = scene.render.fps / about["fps"]
    ob = bpy.data.objects.new("Sand", bpy.data.meshes.new("Sand"))
    scene.collection.objects.link(ob)
    modifier = ob.modifiers.new("Sand", "NODES")
    modifier.node_group = make_group()
    bake = modifier.bakes[0]
    bake.use_custom_path, bake.directory, bake.bake_mode = True, folder, "ANIMATION"
    bake.use_custom_simulation_frame_range = True
    bake.frame_start, bake.frame_end = first, last
    for owner in (modifier, bake):  # Blender 4.5 and later can also keep bakes inside the file
        if hasattr(owner, "bake_target"):
            owner.bake_target = "DISK"
    scene.frame_set(first)
    return ob


if __name__ == "__main__":
    play(find_folder(), bpy.context.scene)
    if bpy.app.version < (4, 5, 0) and not bpy.data.filepath:
        print("Blender 4.2 plays a bake only in a file that has been saved: save this one and open it again.")
