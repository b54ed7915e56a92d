"""Blender as a module of this Python, as a movie encoder: pictures -> one H.264 file, for `python -m barchan preview`.

Comes in: the path of the movie, frames per second, the paths of the pictures in order. Goes out: the movie, exit code 0.
"""

import os
import sys


def main(words):
    movie, fps, paths = words[0], float(words[1]), words[2:]
    try:
        import bpy
    except ImportError as error:
        print("there is no module bpy in this Python: %s" % error)
        return 1
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    image = bpy.data.images.load(paths[0])
    scene.render.resolution_x, scene.render.resolution_y = (size - size % 2 for size in image.size)
    scene.render.resolution_percentage = 100
    scene.render.fps, scene.render.fps_base = max(1, round(fps)), max(1, round(fps)) / fps
    scene.frame_start, scene.frame_end = 1, len(paths)
    scene.view_settings.view_transform = "Standard"
    scene.render.use_sequencer = True
    editor = scene.sequence_editor_create()
    strips = editor.strips if hasattr(editor, "strips") else editor.sequences
    strip = strips.new_image("preview", paths[0], 1, 1)
    for path in paths[1:]:
        strip.elements.append(os.path.basename(path))
    settings = scene.render.image_settings
    if hasattr(settings, "media_type"):
        settings.media_type = "VIDEO"
    settings.file_format = "FFMPEG"
    scene.render.ffmpeg.format = "MPEG4"
    scene.render.ffmpeg.codec = "H264"
    scene.render.ffmpeg.constant_rate_factor = "HIGH"
    scene.render.ffmpeg.gopsize = 12
    scene.render.ffmpeg.audio_codec = "NONE"
    scene.render.filepath = os.path.abspath(movie)
    scene.render.use_file_extension = False
    bpy.ops.render.render(animation=True)
    return 0 if os.path.isfile(movie) else 1


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Blender's own shutdown can hang
