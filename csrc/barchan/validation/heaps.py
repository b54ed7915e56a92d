"""Heaps: a tube of grains is lifted slowly from a rough disc, and what stays is measured.

Comes in: a Lab. Goes out: angles of repose against friction, of every preset, and of grains that cannot heap.
"""

import json
import math
import os

import barchan
import numpy as np

from .. import presets
from . import measure
from .lab import Check, Experiment, Plot

RADIUS = 0.005  # m, of a sphere
YOUNG = 4e6
WIDEST = 8.0  # degrees: an angle less certain than that is not told. Grains that hold together break off in lumps


def tube(radius, bottom, height, sides=24):
    """An open tube of triangles."""
    angles = 2 * math.pi * np.arange(sides) / sides
    ring = np.column_stack([radius * np.cos(angles), radius * np.sin(angles)])
    vertices = np.concatenate([np.column_stack([ring, np.full(sides, z)]) for z in (bottom, bottom + height)])
    triangles = []
    for i in range(sides):
        j = (i + 1) % sides
        triangles += [(i, j, sides + j), (i, sides + j, sides + i)]
    return barchan.Mesh(vertices.astype(np.float32), np.array(triangles, np.int32))


def disc(radius, pitch):
    """Places of fixed spheres: a rough plate."""
    rows = []
    height = math.sqrt(3) / 2 * pitch
    for j in range(-math.floor(radius / height), math.floor(radius / height) + 1):
        for i in range(-math.ceil(radius / pitch) - 1, math.ceil(radius / pitch) + 2):
            x, y = (i + 0.5 * (j % 2)) * pitch, j * height
            if math.hypot(x, y) <= radius:
                rows.append((x, y, 0.0))
    return np.array(rows, np.float32)


def slope(centres, radii, base, size):
    """Angle of a heap's flanks, degrees: highest point per sector and ring, a robust line over the rings from 0.4 to 0.9 of
    the base (Longmore 2009: least squares with bisquare weights on surface grains). Farther in, where the tube stood, the
    tip is round: no grain has come down there."""
    x, y, top = centres[:, 0], centres[:, 1], centres[:, 2] + radii
    rings = max(6, int(base / (1.6 * size)))
    distance = np.hypot(x, y)
    ring = np.minimum((distance / base * rings).astype(int), rings)
    sector = ((np.arctan2(y, x) + math.pi) / (2 * math.pi) * 12).astype(int) % 12
    highest = np.full((rings + 1, 12), np.nan)
    np.fmax.at(highest, (ring, sector), top)
    where = (np.arange(rings) + 0.5) / rings
    used = (where > 0.4) & (where < 0.9)
    rho, z = np.repeat(where[used] * base, 12), highest[:rings][used].ravel()
    kept = np.isfinite(z)
    if kept.sum() < 8 or np.ptp(rho[kept]) == 0:  # nothing lies there
        return math.nan, rho[kept], z[kept]
    gradient, _, _ = measure.robust_line(rho[kept], z[kept])
    return math.degrees(math.atan(-gradient)), rho[kept], z[kept]


def heap(lab, shape, material, seed, base_radii, has_disc=True, scales_of=None, note=""):
    """Angle of repose, degrees, and the heap's profile. base_radii: the disc's radius in sphere radii."""
    offsets, radii = shape
    bound = float((np.linalg.norm(offsets, axis=1) + radii).max())
    size = (len(radii) ** (1 / 3)) * RADIUS  # radius of a ball of the grain's volume
    base = base_radii * RADIUS
    inner = 0.5 * base
    # Grains enough for a cone of 45 degrees on the disc, at a packing of a half.
    count = int(math.pi / 3 * base**3 / (4 / 3 * math.pi * size**3 / 0.5) * 0.9)
    rng = np.random.default_rng(seed)
    scales = np.ones(count, np.float32) if scales_of is None else scales_of(count, seed)
    pitch = 2.06 * bound * float(scales.max())
    steps = np.arange(-math.floor(inner / pitch), math.floor(inner / pitch) + 1) * pitch
    layer = np.array([(a, b) for a in steps for b in steps if math.hypot(a, b) < inner - bound * scales.max() * 1.05])
    layers = math.ceil(count / len(layer))
    places = np.concatenate(
        [np.column_stack([layer, np.full(len(layer), RADIUS + bound * scales.max() * 1.1 + k * pitch)]) for k in range(layers)]
    )[:count]
    places += rng.uniform(-0.02, 0.02, places.shape) * RADIUS
    height = layers * pitch + 4 * RADIUS
    filled = 1.5 * count * (4 / 3 * math.pi * size**3 / 0.5) / (math.pi * inner**2)  # of the tube once they lie
    wait, speed = 0.35 + 0.15 * math.sqrt(height / 0.2), 0.2
    lift = filled + 4 * RADIUS
    rise = lift / speed
    # At even times 0, t, 2t ...: still until the grains lie, then up.
    interval = 0.05
    times = np.arange(math.ceil((wait + rise) / interval) + 2) * interval
    samples = np.zeros((len(times), 7))
    samples[:, 3] = 1
    samples[:, 2] = np.clip(times - wait, 0, None) * speed
    low = -8 * RADIUS
    ground = {"wall_positions": disc(base, 2 * RADIUS), "wall_radius": RADIUS} if has_disc else {}
    planes = [[0, 0, 2 * low if has_disc else 0, 0, 0, 1]]
    reach = 12 * base
    outflows = [{"min": (-reach, -reach, 2 * low), "max": (reach, reach, low)}] if has_disc else None
    scene = barchan.Scene(
        positions=places.astype(np.float32),
        scales=scales,
        shapes=[shape],
        materials=[{"young": YOUNG, **material}],
        planes=planes,
        colliders=[{"mesh": tube(inner, 0.0, height), "track": (0.0, interval, samples)}],
        outflows=outflows,
        max_speed=1.5,
        seed=seed,
        **ground,
    )
    sim = lab.sim(scene)
    lab.advance(sim, wait + rise + 0.5, note or "heap of %d grains" % count)
    here = (sim.flags() & (1 | 16)) == 0
    centres, sizes = [], []
    q = sim.orientations().astype(float)[here]
    positions, scale = sim.positions().astype(float)[here], scales[here].astype(float)
    for offset, radius in zip(np.asarray(offsets, float), radii, strict=True):
        v = q[:, 1:]
        t = 2 * np.cross(v, offset)
        centres.append(positions + (offset + q[:, :1] * t + np.cross(v, t)) * scale[:, None])
        sizes.append(radius * scale)
    centres, sizes = np.concatenate(centres), np.concatenate(sizes)
    if not has_disc:
        base = max(base, float(np.quantile(np.hypot(centres[:, 0], centres[:, 1]), 0.9)))
    angle, rho, z = slope(centres, sizes, base, size)
    return angle, rho / base, z / RADIUS, centres, sim.info()


def tetrahedron():
    return barchan.shape("tetrahedron", RADIUS)


def repose(lab):
    frictions = lab.pick((0.1, 0.25, 0.6), (0.1, 0.17, 0.25, 0.35, 0.45, 0.6))  # the range of Zhou 2002; beyond it the angle saturates
    values, angles, widths = {}, [], []
    for friction in frictions:
        found = [
            heap(
                lab,
                tetrahedron(),
                {"friction": friction, "restitution": 0.5, "shear": "history"},
                seed,
                lab.pick(24, 44),
                note="heap, friction %g" % friction,
            )[0]
            for seed in lab.seeds(3, 4)
        ]
        angles.append(measure.estimate(found))
        values["angle_%g" % friction] = angles[-1]
    means = np.array([angle.mean for angle in angles])
    exponent, offset, fit = measure.line(np.log(frictions), np.log(np.maximum(means, 0.1)))
    values.update(exponent=exponent, fit=fit, least_rise=float(np.diff(means).min()))
    values["sand_angle"] = angles[-1]
    x = np.geomspace(frictions[0], frictions[-1], 40)
    series = [("tetrahedra", frictions, means, "points"), ("%.1f mu^%.2f" % (math.exp(offset), exponent), x, np.exp(offset) * x**exponent, "line")]
    return values, [Plot("repose", "Angle of repose", "friction", "angle (degrees)", series)]


def piling(lab):
    """Viscous friction only, on a flat floor: spheres run apart, tetrahedra stay a heap."""
    material = {"friction": 0.5, "restitution": 0.5, "shear": "viscous"}
    ball = barchan.shape("sphere", RADIUS * 4 ** (1 / 3))  # of a tetrahedron's volume
    values, series = {}, []
    for name, shape in (("tetrahedra", tetrahedron()), ("spheres", ball)):
        angle, rho, z, centres, _ = heap(lab, shape, material, 1, lab.pick(18, 36), False, note=name)
        values["angle_" + name] = angle
        values["height_" + name] = float(np.quantile(centres[:, 2], 0.9)) / (RADIUS * 4 ** (1 / 3))
        series.append((name, rho, z, "points"))
    return values, [Plot("piling", "Without static friction", "distance from the axis / base", "height / sphere radius", series)]


def preset_angles(lab):
    """Every preset's angle of repose; also written to the file that the presets are read with."""
    values, rows, found = {}, {}, presets.presets()
    for name, preset in found.items():
        angles = [
            heap(
                lab,
                presets.grain(preset, RADIUS),
                presets.material(preset, RADIUS),
                seed,
                lab.pick(24, 44),
                scales_of=lambda count, seed, preset=preset: presets.scales(preset, count, seed),
                note="heap of " + name,
            )[0]
            for seed in lab.seeds(4, 5)
        ]
        angle = measure.estimate(angles)
        values[name] = angle
        if not angle.half_width <= WIDEST:  # also when there were no flanks: the column stands as the tube left it
            lab.note("%s has no angle of its own: %.0f +- %.0f degrees" % (name, angle.mean, angle.half_width))
            continue
        rows[name] = {
            "repose_degrees": round(angle.mean, 1),
            "half_width_95": round(angle.half_width, 1),
            "seeds": angle.count,
            "size": lab.size,
        }
    if lab.measures:
        partial = lab.measures + ".tmp"
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent="\t")
            file.write("\n")
        os.replace(partial, lab.measures)
    names = list(values)
    series = [("mean", list(range(len(names))), [values[n].mean for n in names], "points")]
    plot = Plot("presets", "Angle of repose: " + ", ".join(names), "preset", "angle (degrees)", series)
    return values, [plot]


SAND = "20 to 40 degrees for sand-like grains (Al-Hashemi and Al-Amoudi 2018; Zhou 2002)"
EXPERIMENTS = (
    Experiment(
        "repose",
        "Angle of repose against friction",
        "Longmore 2009 experiment 9; Zhou 2002",
        "A tube of tetrahedra with springs is lifted at 0.2 m/s from a rough disc; flanks by a robust line.",
        (
            Check("sand_angle", "angle at friction 0.6", 20, 40, SAND, "degrees"),
            Check("exponent", "exponent of the power law", 0.1, 0.49, "positive; Zhou 2002: 0.27 for grains and 0.22 for the base, together 0.49"),
            Check("fit", "R^2 of the power law", 0.9, 1.0, "Longmore 2009: a power law fits"),
            Check("least_rise", "least rise from one friction to the next", 0, 90, "monotone in friction", "degrees"),
        ),
        repose,
        {"small": 20, "full": 900},
    ),
    Experiment(
        "piling",
        "Grains without static friction",
        "Bell 2005, sections 1 and 2.3",
        "Viscous friction only (eq. 18), flat floor: the same volume of tetrahedra and of spheres.",
        (
            Check("angle_tetrahedra", "tetrahedra: angle", 10, 40, "Bell 2005: clusters hold a finite slope", "degrees"),
            Check("angle_spheres", "spheres: angle", -3, 3, "Bell 2005: lone spheres do not pile", "degrees"),
            Check("height_spheres", "spheres: height of nine tenths / radius", 0.9, 1.2, "one layer: its centres lie at one radius"),
        ),
        piling,
        {"small": 5, "full": 60},
    ),
    Experiment(
        "presets",
        "Angle of repose of every preset",
        "this suite; the add-on's tooltips",
        "As repose, with each preset's grain, sizes and material; four seeds. Writes repose.json.",
        (
            Check("dry_sand", "dry sand", 25, 40, "dry sand: 30 to 35 degrees in tables, 25 to 40 in handbooks (Al-Hashemi and Al-Amoudi 2018)", "degrees"),
        ),
        preset_angles,
        {"small": 40, "full": 900},
        on_request=True,
    ),
)
