# SPDX-License-Identifier: GPL-3.0-or-later
"""EEVEE draws the grains. A file of its own: compiling its shaders on a software rasteriser takes most of a minute."""

import harness
from harness import bpy
from test_render import check_render, check_wet


def eevee():
    names = bpy.types.RenderSettings.bl_rna.properties["engine"].enum_items.keys()
    return "BLENDER_EEVEE_NEXT" if "BLENDER_EEVEE_NEXT" in names else "BLENDER_EEVEE"


def test_eevee_renders_points():
    check_render(eevee(), "POINTS")


def test_wet_sand_is_darker_in_eevee():
    check_wet(eevee())


if __name__ == "__main__":
    harness.main({test.__name__: test for test in (test_eevee_renders_points, test_wet_sand_is_darker_in_eevee)})
