# SPDX-License-Identifier: GPL-3.0-or-later
"""Barchan, sand for Blender: register and unregister, nothing else."""

from . import body, checks, headless, link, look, operators, panels, playback, properties, starters, viewport


def register():
    properties.register()
    operators.register()
    starters.register()
    checks.register()
    panels.register()
    look.register()
    link.register()
    playback.register()
    viewport.register()
    body.register()
    headless.register()


def unregister():
    headless.unregister()
    body.unregister()
    viewport.unregister()
    playback.unregister()
    link.unregister()
    look.unregister()
    panels.unregister()
    checks.unregister()
    starters.unregister()
    operators.unregister()
    properties.unregister()
