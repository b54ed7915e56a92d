"""Grain materials as sets of numbers: presets.json -> Preset, shared by the add-on's menu and by the validation.

Comes in: presets.json (numbers and where each is from) and repose.json, which `python -m barchan validate presets` writes:
name -> {"repose_degrees": number, ...}. Goes out: Preset, and what barchan.Scene takes for a radius: shape, scales and
material. A preset has no radius: lengths follow the radius asked for, and the pull of wet grains follows their weight.
"""

import dataclasses
import functools
import json
import math
import os

STANDARD_GRAVITY = 9.80665  # m/s^2


@dataclasses.dataclass(frozen=True)
class Preset:
    """One grain material, SI units."""

    name: str
    label: str
    description: str
    shape: str  # "sphere", "tetrahedron", "cube" or "rod"
    rod_count: int  # spheres of a rod
    size_kind: str  # "equal", "uniform" or "lognormal", of barchan.sizes
    size_low: float  # smallest and largest size against the radius
    size_high: float
    size_spread: float  # lognormal: standard deviation of the logarithm
    density: float  # kg/m^3
    restitution: float
    friction: float
    rolling: float
    bond: float  # pull of two touching spheres over the weight of one: the Bond number
    sources: dict  # of each number, one sentence
    repose_degrees: float | None = None  # as measured; None = not measured


def cohesion_of(bond, radius, density, gravity=STANDARD_GRAVITY):
    """Cohesion in N/m for which two touching spheres of this radius (m) pull bond times the weight of one of them:
    2 pi cohesion radius / 2 = bond 4/3 pi radius^3 density gravity."""
    return bond * 4.0 / 3.0 * radius * radius * density * gravity


def bond_of(cohesion, radius, density, gravity=STANDARD_GRAVITY):
    """The way back from cohesion_of."""
    return cohesion / (4.0 / 3.0 * radius * radius * density * gravity)


def grain(preset, radius):
    """Offsets and radii of the preset's grain for spheres of this radius (m): for Scene(shapes=[...])."""
    import barchan

    return barchan.shape(preset.shape, radius, count=preset.rod_count)


def scales(preset, count, seed=0):
    """Sizes of count grains: for Scene(scales=...)."""
    import barchan

    if preset.size_kind == "equal":
        return barchan.sizes("uniform", 1.0, 1.0, seed=seed, count=count)
    return barchan.sizes(
        preset.size_kind, preset.size_low, preset.size_high, preset.size_spread, seed=seed, count=count
    )


def material(preset, radius, gravity=STANDARD_GRAVITY):
    """The material for spheres of this radius (m), with the shear that the add-on bakes with: for Scene(materials=[...])."""
    return {
        "density": preset.density,
        "restitution": preset.restitution,
        "friction": preset.friction,
        "rolling": preset.rolling,
        "cohesion": cohesion_of(preset.bond, radius, preset.density, gravity),
        "shear": "history",
    }


def _read(name):
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as stream:
        return json.load(stream)


@functools.cache
def presets():
    """All of them, in the order of the menu: dict of name -> Preset."""
    measured = _read("repose.json")
    found = {}
    for row in _read("presets.json")["presets"]:
        sizes = row["sizes"]
        degrees = measured.get(row["name"], {}).get("repose_degrees")
        found[row["name"]] = Preset(
            **{key: value for key, value in row.items() if key != "sizes"},
            size_kind=sizes["kind"],
            size_low=sizes["low"],
            size_high=sizes["high"],
            size_spread=sizes["spread"],
            repose_degrees=degrees if degrees is not None and math.isfinite(degrees) else None,
        )
    return found
