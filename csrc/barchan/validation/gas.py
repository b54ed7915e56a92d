"""A gas of grains that cools by its collisions (Haff 1983), and a ball that falls into a bed (Uehara 2003, Dosta et al. 2024).

Comes in: a Lab. Goes out: how straight 1 / sqrt(T) is over time; how deep the ball goes.
"""

import math

import barchan
import numpy as np

from . import measure
from .lab import Check, Experiment, Plot

RADIUS = 0.005  # m, of a sphere


def cooling(lab, shape, friction, count, seed):
    """Times and temperature (mean square of velocity against the mean, and of spin) of grains in an elastic box."""
    offsets, radii = shape
    bound = float((np.linalg.norm(offsets, axis=1) + radii).max())
    volume = len(radii) * 4 / 3 * math.pi * RADIUS**3
    side = (count * volume / 0.1) ** (1 / 3)
    rng = np.random.default_rng(seed)
    cells = math.ceil(count ** (1 / 3))
    pitch = (side - 2.2 * bound) / cells
    assert pitch > 2 * bound
    grid = (np.stack(np.meshgrid(*[np.arange(cells)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5) * pitch + 1.1 * bound - side / 2
    places = grid[rng.permutation(len(grid))[:count]]
    velocities = rng.normal(0, 1, (count, 3))
    velocities -= velocities.mean(axis=0)
    velocities *= 1 / math.sqrt((velocities**2).sum(axis=1).mean())
    # Spin shares the motion from the start: inertia of four spheres m (2/3 R^2 + 2/5 r^2), R^2 = 3/2 r^2.
    spins = rng.normal(0, 1 / math.sqrt(3 * 1.4) / RADIUS, (count, 3)) if len(radii) == 4 else np.zeros((count, 3))
    material = {"restitution": 0.9, "friction": friction, "normal": "hertz-constant", "young": 2e7, "shear": "viscous"}
    scene = barchan.Scene(
        positions=places.astype(np.float32),
        velocities=velocities.astype(np.float32),
        spins=spins.astype(np.float32),
        shapes=[shape],
        gravity=(0, 0, 0),
        materials=[material, material],
        material_pairs=[{"a": 0, "b": 1, "restitution": 1.0, "friction": 0.0}],
        obstacles=[{"kind": "box", "size": (side / 2,) * 3, "is_inside": True, "material": 1}],
        max_speed=3,
        seed=seed,
    )
    sim = lab.sim(scene)
    rows = []
    end = lab.pick(0.8, 2.5)
    for _ in range(40):
        lab.advance(sim, end / 40, "gas of %d" % count)
        v = sim.velocities().astype(float)
        # The spin's part belongs to it: the two pass energy to and fro.
        turning = 1.4 * RADIUS**2 * (sim.spins().astype(float) ** 2).sum(axis=1).mean() if len(radii) == 4 else 0.0
        rows.append((sim.info()["time"], ((v - v.mean(axis=0)) ** 2).sum(axis=1).mean() + turning))
    return np.array(rows)


def haff(lab):
    values, series = {}, []
    count = lab.pick(800, 4000)
    for name, shape, friction in (("spheres", barchan.shape("sphere", RADIUS), 0.0), ("clusters", barchan.shape("tetrahedron", RADIUS), 0.0)):
        rows = cooling(lab, shape, friction, count, 1)
        slope, offset, fit = measure.line(rows[:, 0], rows[:, 1] ** -0.5)
        values["fit_" + name] = fit
        values["slope_" + name] = slope
        values["cooled_" + name] = float(rows[-1, 1] / rows[0, 1])
        series += [(name, rows[:, 0], rows[:, 1] ** -0.5, "points"), (name + ", line", rows[:, 0], slope * rows[:, 0] + offset, "line")]
        if name == "spheres":
            # Haff 1983: d T^(-1/2)/dt = (1 - e^2) / 6 omega / sqrt(T); omega of Enskog: 4 n g (2 r)^2 sqrt(pi T / 3), T = <v^2>.
            share = 0.1
            number = share / (4 / 3 * math.pi * RADIUS**3)
            enskog = (1 - share / 2) / (1 - share) ** 3
            omega = 4 * number * enskog * (2 * RADIUS) ** 2 * math.sqrt(math.pi / 3)
            values["slope_ratio"] = slope / ((1 - 0.9**2) / 6 * omega)
    return values, [Plot("haff", "Cooling of a gas", "time (s)", "1 / sqrt(T) (s/m)", series)]


def penetration(lab):
    """A steel ball falls on a bed of spheres from several heights (case 3 of Dosta et al.: M1, 0.1 s)."""
    count, cylinder = lab.pick((3200, 20 * RADIUS), (25000, 36 * RADIUS))
    ball = lab.pick(3.0, 5.0) * RADIUS
    material = {"density": 2500, "restitution": 0.5, "friction": 0.3, "poisson": 0.2, "young": 4e6, "shear": "history"}
    steel = {**material, "density": 7200, "restitution": 0.4, "friction": 0.2}
    rng = np.random.default_rng(1)
    pitch = 2.1 * RADIUS
    steps = np.arange(-math.floor(cylinder / pitch), math.floor(cylinder / pitch) + 1) * pitch
    layer = np.array([(a, b) for a in steps for b in steps if math.hypot(a, b) < cylinder - 1.05 * RADIUS])
    places = np.concatenate([np.column_stack([layer, np.full(len(layer), 1.1 * RADIUS + k * pitch)]) for k in range(math.ceil(count / len(layer)))])[:count]
    places += rng.uniform(-0.04, 0.04, places.shape) * RADIUS
    common = {
        "shapes": [barchan.shape("sphere", RADIUS), barchan.shape("sphere", ball)],
        "materials": [material, steel],
        "obstacles": [{"kind": "plane", "axis": (0, 0, 1)}, {"kind": "cylinder", "axis": (0, 0, 1), "size": (cylinder, 0, 0), "is_inside": True}],
        "max_speed": 2.5,
    }
    sim = lab.sim(barchan.Scene(positions=places.astype(np.float32), **common))
    lab.advance(sim, 0.6, "bed of %d spheres" % count)
    bed = sim.positions()
    top = float(np.quantile(bed[:, 2], 0.97)) + RADIUS
    packing = count * 4 / 3 * math.pi * RADIUS**3 / (math.pi * cylinder**2 * top)
    near = np.hypot(bed[:, 0], bed[:, 1]) < ball
    touch = float(bed[near, 2].max()) + RADIUS
    drops, depths = np.array([0.03, 0.1, 0.3]), []
    for drop in drops:
        positions = np.concatenate([bed, [[0, 0, touch + ball * 1.01]]]).astype(np.float32)
        velocities = np.zeros_like(positions)
        velocities[-1, 2] = -math.sqrt(2 * 9.81 * drop)
        kinds = np.zeros(count + 1, np.int32)
        kinds[-1] = 1
        scene = barchan.Scene(positions=positions, velocities=velocities, grain_shapes=kinds, grain_materials=kinds, **common)
        sim = lab.sim(scene, allow_overlap=True)
        lab.advance(sim, 0.25, "drop of %g m" % drop)
        depths.append(top - (float(sim.positions()[-1, 2]) - ball))
    depths = np.array(depths)
    total = drops + depths
    exponent, offset, fit = measure.line(np.log(total), np.log(depths))
    repose = math.tan(math.radians(22))  # of glass beads, as Uehara's
    expected = 0.14 / repose * math.sqrt(7200 / (2500 * packing)) * (2 * ball) ** (2 / 3) * total ** (1 / 3)
    values = {"exponent": exponent, "fit": fit, "prefactor": float(np.exp(np.log(depths / expected).mean())), "packing": packing}
    for drop, depth in zip(drops, depths, strict=True):
        values["depth_%g" % drop] = depth
    series = [("measured", total, depths, "points"), ("Uehara 2003", total, expected, "line")]
    return values, [Plot("penetration", "A steel ball into spheres", "drop and depth together (m)", "depth (m)", series, True, True)]


EXPERIMENTS = (
    Experiment(
        "haff",
        "Cooling of a gas of grains",
        "Haff 1983",
        "Spheres, then tetrahedra, without friction at a share of 0.1 of an elastic box; restitution 0.9; 1 / sqrt(T) against time.",
        (
            Check("fit_spheres", "R^2, spheres", 0.999, 1, "Haff 1983: a straight line; 0.999 is the bench's bar"),
            Check("fit_clusters", "R^2, clusters", 0.999, 1, "the same"),
            Check("slope_ratio", "rate of spheres / kinetic theory", 0.8, 1.2, "Enskog's collision rate, Carnahan and Starling 1969; walls and soft contacts leave 20 %"),
        ),
        haff,
        {"small": 8, "full": 120},
    ),
    Experiment(
        "penetration",
        "A ball falls into a bed",
        "Uehara 2003; Dosta et al. 2024 case 3",
        "A steel ball from three heights into spheres of M1, softer than there; 0.25 s.",
        (
            Check("exponent", "depth ~ H^n", 0.2, 0.5, "1/3 (Uehara 2003) to 1/2 (de Bruyn and Walsh 2004); 0.2 for the scatter of three drops"),
            Check("prefactor", "depth / Uehara's", 0.6, 1.4, "Uehara 2003, whose own data scatter by a quarter; the bed is ten balls wide at most"),
        ),
        penetration,
        {"small": 8, "full": 200},
    ),
)
