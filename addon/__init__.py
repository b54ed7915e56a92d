# SPDX-License-Identifier: GPL-3.0-or-later
"""Barchan, sand for Blender: register and unregister, nothing else."""

from . import body, headless, link, operators, panels, playback, properties


def register():
    properties.register()
    operators.register()
    panels.register()
    link.register()
    playback.register()
    body.register()
    headless.register()


def unregister():
    headless.unregister()
    body.unregister()
    playback.unregister()
    link.unregister()
    panels.unregister()
    operators.unregister()
    properties.unregister()
