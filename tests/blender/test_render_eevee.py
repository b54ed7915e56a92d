# SPDX-License-Identifier: GPL-3.0-or-later
"""EEVEE draws the grains. A file of its own: compiling its shaders on a software rasteriser takes most of a minute."""

import harness
from harness import bpy
from test_render import check_render


def test_eevee_renders_points():
    names = bpy.types.RenderSettings.bl_rna.properties["engine"].enum_items.keys()
    check_render("BLENDER_EEVEE_NEXT" if "BLENDER_EEVEE_NEXT" in names else "BLENDER_EEVEE", "POINTS")


if __name__ == "__main__":
    harness.main({"test_eevee_renders_points": test_eevee_renders_points})
