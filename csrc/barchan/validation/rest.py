"""Sand at rest and under a plunger: how contacts share the load (Longmore 2009 experiments 1 to 8).

Comes in: a Lab. Goes out: distributions of contact forces, their correlation and angles, a stress-strain curve. Beds are
settled once and measured by several experiments.
"""

import dataclasses
import math

import barchan
import numpy as np

from . import measure
from .lab import INFINITE, Check, Experiment, Plot

RADIUS = 0.005  # m, of a sphere; d = 2 RADIUS in what follows
DENSITY = 2600.0
GRAIN_MASS = 4 * 4 / 3 * math.pi * RADIUS**3 * DENSITY
RESTITUTION = 0.65  # Longmore 2009, section 3.3
FRICTION = 0.5


@dataclasses.dataclass
class Bed:
    """Grains at rest in a smooth cylinder on a rough floor."""

    positions: np.ndarray
    orientations: np.ndarray
    contacts: np.ndarray
    spheres: np.ndarray  # (N, 4, 3) centres
    cylinder: float  # m, radius
    friction: float
    shear: str
    young: float
    energy: float  # kinetic, of a grain's weight times a sphere's diameter, per grain


def lattice(radius, count, pitch, bottom, seed):
    """Places for grains in a cylinder, layer by layer, a little off the lattice."""
    rng = np.random.default_rng(seed)
    steps = np.arange(-math.floor(radius / pitch), math.floor(radius / pitch) + 1) * pitch
    layer = np.array([(x, y) for x in steps for y in steps if math.hypot(x, y) < radius])
    places = []
    for k in range(math.ceil(count / len(layer))):
        places.append(np.column_stack([layer, np.full(len(layer), bottom + k * pitch)]))
    places = np.concatenate(places)[:count]
    return (places + rng.uniform(-0.02, 0.02, places.shape) * pitch).astype(np.float32)


def container(cylinder, material=0):
    return [
        {"kind": "plane", "axis": (0, 0, 1), "roughness": RADIUS},
        {"kind": "cylinder", "axis": (0, 0, 1), "size": (cylinder, 0, 0), "is_inside": True, "material": material},
    ]


def material(bed):
    numbers = {"friction": bed.friction, "restitution": RESTITUTION, "young": bed.young, "density": DENSITY}
    return {**numbers, "shear": bed.shear}


def bed_scene(bed, **changes):
    arguments = {
        "positions": bed.positions,
        "orientations": bed.orientations,
        "shapes": [barchan.shape("tetrahedron", RADIUS)],
        "materials": [material(bed)],
        "obstacles": container(bed.cylinder),
        "max_speed": 1.5,
    }
    return barchan.Scene(**{**arguments, **changes})


def sphere_centres(positions, orientations):
    offsets = barchan.shape("tetrahedron", RADIUS)[0].astype(float)
    w, v = orientations[:, :1].astype(float), orientations[:, 1:].astype(float)
    turned = []
    for offset in offsets:
        t = 2 * np.cross(v, offset)
        turned.append(offset + w * t + np.cross(v, t))
    return positions[:, None, :] + np.stack(turned, axis=1)


def settle(lab, friction, shear="viscous", seed=1):
    """The thesis's own friction is viscous (eq. 3.28), which leaves no tangential force at rest. Thesis: 65,536 grains, friction 0.5; a plunger's width of 46 d is read from a damaged caption."""

    def make():
        count, cylinder = lab.pick((1200, 16 * RADIUS), (65536, 92 * RADIUS))
        bound = RADIUS * (1 + math.sqrt(1.5))
        young = 4e6  # so that the deepest grains overlap by a few hundredths of a radius
        places = lattice(cylinder - 1.05 * bound, count, 2.08 * bound, bound + 1.6 * RADIUS, seed)
        bed = Bed(places, None, None, None, cylinder, friction, shear, young, 0.0)
        scene = bed_scene(bed, orientations=None, seed=seed)
        sim = lab.sim(scene)
        lab.advance(sim, lab.pick(1.2, 1.1), "settling %d grains, friction %g, %s" % (count, friction, shear))
        bed.positions, bed.orientations = sim.positions(), sim.orientations()
        bed.contacts = sim.contacts()
        bed.spheres = sphere_centres(bed.positions, bed.orientations)
        info = sim.info()
        bed.energy = info["kinetic_energy"] / (count * GRAIN_MASS * 9.81 * 2 * RADIUS)
        return bed

    return lab.shared(("bed", friction, shear, seed), make)


def in_bulk(points, cylinder, top, margin=4 * RADIUS):
    inside = (points[:, 2] > margin) & (points[:, 2] < top - 1.5 * margin)
    return inside & (np.hypot(points[:, 0], points[:, 1]) < cylinder - margin)


def bulk(contacts, cylinder, top):
    """Contacts between grains away from floor, wall and surface."""
    inside = in_bulk(contacts["point"], cylinder, top)
    return contacts[inside & (contacts["other"] >= 0) & (contacts["normal_force"] > 0)]


def surface_height(positions):
    return float(np.quantile(positions[:, 2], 0.98))


def normalised(values, heights):
    """Forces over the mean force at their height: pressure grows with depth, and that is no property of the network."""
    slope, offset, _ = measure.line(heights, values)
    mean = np.maximum(slope * heights + offset, 0.2 * values.mean())
    f = values / mean
    return f / f.mean()


def bed_forces(bed):
    contacts = bulk(bed.contacts, bed.cylinder, surface_height(bed.positions))
    normal = contacts["normal_force"].astype(float)
    shear = np.linalg.norm(contacts["shear_force"], axis=1).astype(float)
    heights = contacts["point"][:, 2].astype(float)
    return contacts, normalised(normal, heights), normalised(shear, heights) if shear.any() else shear


def force_plot(name, title, f, curves):
    x, y, counts = measure.density(f, 0, 6, 40)
    keep = counts > 3
    series = [("measured", x[keep], y[keep], "points")] + [(label, x, values(x), "line") for label, values in curves]
    return Plot(name, title, "f = F / mean F", "P(f)", [(a, np.asarray(b), c, d) for a, b, c, d in series], log_y=True)


def exponential_curve(a, b, beta):
    return lambda x: a * (1 - b * np.exp(-(x**2))) * np.exp(-beta * x)


def peak(f):
    """Where the density is largest: of a smoothed histogram."""
    x, y, _ = measure.density(f, 0, 3, 60)
    smooth = np.convolve(y, np.ones(7) / 7, "same")
    return float(x[int(np.argmax(smooth[2:-2])) + 2])


def normal_forces(lab, friction, name, title):
    bed = settle(lab, friction)
    lab.note("kinetic energy left per grain: %.1e of its weight times d" % bed.energy)
    _, f, _ = bed_forces(bed)
    a, b, beta = measure.fit_exponential(f)
    c, alpha = measure.fit_tail(f)
    values = {"a": a, "b": b, "beta": beta, "alpha": alpha, "peak": peak(f), "contacts": float(len(f))}
    values["below_mean"] = float((f < 1).mean())
    x, y, counts = measure.density(f, 0, 4, 32)
    model = exponential_curve(a, b, beta)(x)
    expected = model * len(f) * 0.125
    # Of the histogram up to f = 3: how far it is from the fit, in the standard error of its bins.
    part = (x < 3) & (expected > 8)
    values["misfit"] = float(np.mean((counts[part] - expected[part]) ** 2 / expected[part]) ** 0.5)
    values["relative_misfit"] = float(np.abs(y[part] - model[part]).sum() / model[part].sum())
    at_one = y[np.argmin(np.abs(x - 1.2))]

    def tail(x):
        return np.where(x > 1, at_one * np.exp(-c * (np.maximum(x, 1) ** alpha - 1.2**alpha)), np.nan)

    plot = force_plot(name, title, f, [("a (1 - b exp(-f^2)) exp(-beta f)", exponential_curve(a, b, beta)), ("exp(-c f^alpha), f > 1", tail)])
    return values, [plot]


def forces_friction(lab):
    values, plots = normal_forces(lab, FRICTION, "forces_friction", "Normal forces at rest, friction 0.5")
    _, f, _ = bed_forces(settle(lab, FRICTION, "history"))  # no band: what springs change
    values["beta_springs"], values["alpha_springs"] = measure.fit_exponential(f)[2], measure.fit_tail(f)[1]
    return values, plots


def forces_frictionless(lab):
    values, plots = normal_forces(lab, 0.0, "forces_frictionless", "Normal forces at rest, no friction")
    bed = settle(lab, 0.0)
    f = sphere_forces(bed.contacts, bed.spheres, bed.cylinder)
    a, b, beta = measure.fit_exponential(f)
    thesis = exponential_curve(10.05, 1.01, 2.13)  # Longmore 2009 table 7.2; its norm is 1
    grid = np.linspace(0, 12, 12001)
    below = np.cumsum(np.maximum(thesis(grid), 0))
    at = np.interp(np.sort(f), grid, below / below[-1])
    values["thesis_gap"] = float(np.abs(at - np.arange(1, len(f) + 1) / len(f)).max())
    values.update(sphere_a=a, sphere_b=b, sphere_beta=beta, sphere_peak=peak(f), spheres=float(len(f)))
    plots.append(
        force_plot(
            "forces_on_spheres",
            "Forces on spheres at rest, no friction",
            f,
            [("fit: a %.2f, b %.2f, beta %.2f" % (a, b, beta), exponential_curve(a, b, beta)), ("thesis: 10.05, 1.01, 2.13", thesis)],
        )
    )
    return values, plots


def forces_tangential(lab):
    _, f, t = bed_forces(settle(lab, FRICTION, "history"))
    ratio = measure.tail_rate(t) / measure.tail_rate(f)
    x, y, n = measure.density(f, 0, 6, 30)
    x2, y2, n2 = measure.density(t, 0, 6, 30)
    series = [("normal", x[n > 3], y[n > 3], "points"), ("tangential", x2[n2 > 3], y2[n2 > 3], "points")]
    plot = Plot("forces_tangential", "Normal and tangential forces", "f = F / mean F", "P(f)", series, log_y=True)
    return {"rate_ratio": ratio, "rate_normal": measure.tail_rate(f), "rate_tangential": measure.tail_rate(t)}, [plot]


def sphere_loads(contacts, spheres):
    """On every sphere: the size of the sum of its contact forces, and the sum of its normal forces. A contact's sphere is its
    grain's nearest to the contact point."""
    vectors, sums = np.zeros(spheres.shape), np.zeros(spheres.shape[:2])
    force = contacts["normal_force"][:, None] * contacts["normal"] + contacts["shear_force"]
    for side, sign in (("grain", 1), ("other", -1)):
        at = contacts[side] >= 0
        who = contacts[side][at]
        gaps = np.linalg.norm(spheres[who] - contacts["point"][at][:, None, :], axis=2)
        which = np.argmin(gaps, axis=1)
        np.add.at(vectors, (who, which), sign * force[at])
        np.add.at(sums, (who, which), contacts["normal_force"][at])
    return np.linalg.norm(vectors, axis=2), sums


def sphere_forces(contacts, spheres, cylinder):
    """Forces on spheres that touch something, away from walls and surface, over the mean at their height. This is what the
    thesis reads from its force texture and calls the force of a particle."""
    loads, _ = sphere_loads(contacts, spheres)
    centres, loads = spheres.reshape(-1, 3), loads.ravel()
    inside = in_bulk(centres, cylinder, surface_height(centres)) & (loads > 0)
    return normalised(loads[inside], centres[inside, 2])


def correlation(lab):
    """F(r) = <f_i f_j> of spheres of different grains at distance r (Longmore 2009 eq. 7.4)."""
    bed = settle(lab, FRICTION)
    _, loads = sphere_loads(bed.contacts, bed.spheres)
    centres = bed.spheres.reshape(-1, 3)
    grain = np.repeat(np.arange(len(bed.spheres)), bed.spheres.shape[1])
    inside = in_bulk(centres, bed.cylinder, surface_height(bed.positions))
    centres, grain, f = centres[inside], grain[inside], loads.ravel()[inside]
    f = normalised(f, centres[:, 2])
    chosen = np.random.default_rng(1).permutation(len(centres))[: lab.pick(3000, 12000)]
    d = 2 * RADIUS
    edges = np.linspace(0.9, 5.0, 42)
    sums, counts = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    order = np.argsort(centres[:, 2])
    centres, grain, f = centres[order], grain[order], f[order]
    for i in chosen:
        low = np.searchsorted(centres[:, 2], centres[i, 2] - 5 * d)
        high = np.searchsorted(centres[:, 2], centres[i, 2] + 5 * d)
        near = slice(low, high)
        distance = np.linalg.norm(centres[near] - centres[i], axis=1) / d
        keep = (distance < 5) & (grain[near] != grain[i])
        bins = np.histogram(distance[keep], edges)[0]
        counts += bins
        sums += np.histogram(distance[keep], edges, weights=f[near][keep] * f[i])[0]
    r = 0.5 * (edges[1:] + edges[:-1])
    found = sums / np.maximum(counts, 1)
    plateau = float(found[r > 3.5].mean())
    excess = found / plateau - 1
    beyond = np.where(np.abs(excess) > 0.05)[0]
    values = {
        "length": float(edges[beyond[-1] + 1]) if len(beyond) else 0.9,
        "plateau": plateau,
        "contact_excess": float(excess[r < 1.05].max()),
    }
    keep = counts > 100
    series = [("spheres of different grains", r[keep], found[keep] / plateau, "points"), ("no correlation", r, np.ones_like(r), "line")]
    return values, [Plot("correlation", "Correlation of forces in space", "distance / d", "F(r) / plateau", series)]


def contact_angles(bed):
    """Angle from the vertical of the line between the centres of touching grains, degrees, once per pair of grains; and the
    force of that pair."""
    c = bulk(bed.contacts, bed.cylinder, surface_height(bed.positions))
    a, b = np.minimum(c["grain"], c["other"]).astype(np.int64), np.maximum(c["grain"], c["other"]).astype(np.int64)
    key, index = np.unique(a * len(bed.positions) + b, return_inverse=True)
    force = np.bincount(index.ravel(), c["normal_force"])
    one, two = key // len(bed.positions), key % len(bed.positions)
    apart = bed.positions[one] - bed.positions[two]
    cosine = np.abs(apart[:, 2]) / np.linalg.norm(apart, axis=1)
    return np.degrees(np.arccos(np.clip(cosine, 0, 1))), force / force.mean()


def angles(lab):
    rough, force = contact_angles(settle(lab, FRICTION))
    smooth, _ = contact_angles(settle(lab, 0.0))
    strong = rough[force > 2]
    isotropic = np.degrees(np.arccos(np.linspace(0, 1, 20001)))
    values = {
        "friction_distance": measure.distance(rough, smooth),
        "isotropy_distance": measure.distance(rough, isotropic),
        "mean_rough": float(rough.mean()),
        "mean_smooth": float(smooth.mean()),
        "mean_strong": float(strong.mean()),
    }
    series = []
    for label, sample in (("friction 0.5", rough), ("no friction", smooth), ("f > 2", strong)):
        x, y, _ = measure.density(sample, 0, 90, 18)
        series.append((label, x, y, "points"))
    x = np.linspace(0, 90, 91)
    series.append(("any direction alike", x, np.sin(np.radians(x)) * math.pi / 180, "line"))
    return values, [Plot("angles", "Contact angles", "angle from the vertical (degrees)", "density (1/degree)", series)]


def network(lab):
    contacts, _, _ = bed_forces(settle(lab, FRICTION))
    f = contacts["normal_force"].astype(float)
    share = measure.upper_half_share(f)
    _, g, _ = bed_forces(settle(lab, FRICTION))
    ordered = np.sort(f)[::-1]
    x = np.arange(1, len(f) + 1) / len(f)
    series = [("measured", x[:: max(1, len(x) // 200)], (np.cumsum(ordered) / f.sum())[:: max(1, len(x) // 200)], "line")]
    series.append(("half carries 80 %", [0.5], [0.8], "points"))
    values = {"upper_half": share, "upper_half_by_depth": measure.upper_half_share(g)}
    return values, [Plot("network", "Strong and weak contacts", "share of contacts, strongest first", "share of the force", series)]


# ---- plunger ---------------------------------------------------------------------------------------------------------------


def plate(radius, height):
    half = 1.5 * radius
    vertices = np.array([(-half, -half, height), (half, -half, height), (half, half, height), (-half, half, height)], np.float32)
    return barchan.Mesh(vertices, np.array([(0, 2, 1), (0, 3, 2)], np.int32))


def press(lab, shear, young, stress_wanted, speed, is_lifted=True):
    """Lowers a plate on a settled bed to a stress, holds it, lifts it: stress and strain, and the contacts under load."""

    def make():
        bed = settle(lab, FRICTION, shear)
        area = math.pi * bed.cylinder**2
        walls = container(bed.cylinder, 1)  # a wall without friction: else it, and not the floor, carries the load
        state = {"positions": bed.positions, "orientations": bed.orientations}
        top = float(bed.spheres[:, :, 2].max()) + RADIUS
        stiff = dataclasses.replace(bed, young=young)
        records = []
        height = top + 0.2 * RADIUS

        def scene(begin, velocity):
            samples = np.zeros((2, 7))
            samples[:, 3] = 1
            samples[1, 2] = velocity * 10.0
            return bed_scene(
                stiff,
                **state,
                materials=[material(stiff), material(stiff)],
                material_pairs=[{"a": 0, "b": 1, "friction": 0.0}],
                obstacles=walls,
                max_speed=0.5,
                colliders=[{"mesh": plate(bed.cylinder, begin), "track": (0.0, 10.0, samples)}],
            )

        def move(sim, begin, velocity, seconds, is_done=None):
            at = begin
            piece = 0.02 * RADIUS / abs(velocity) if velocity else seconds / 10
            while sim.info()["time"] < seconds - 1e-9:
                lab.advance(sim, piece, "pressing")
                at = begin + velocity * sim.info()["time"]
                stress = float(sim.loads()["colliders"][0, 2]) / area
                records.append((at, stress))
                if is_done and is_done(stress):
                    break
            state.update(positions=sim.positions(), orientations=sim.orientations())
            state.update(velocities=sim.velocities(), spins=sim.spins())
            return at

        def run(velocity, seconds, is_done=None):
            nonlocal height
            sim = lab.sim(scene(height, velocity), allow_overlap=True)
            height = move(sim, height, velocity, seconds, is_done)
            return sim

        run(-speed, 4 * RADIUS / speed + 1.0, lambda stress: stress > 0.1 * stress_wanted)  # flatten the top
        run(speed, 1.0, lambda stress: stress <= 0)  # lift to the lowest height without load
        records.clear()
        start = height
        run(-speed, 2.0, lambda stress: stress > stress_wanted)
        loaded_end = len(records)
        sim = run(0.0, 0.05)
        contacts, spheres = sim.contacts(), sphere_centres(sim.positions(), sim.orientations())
        hold_end = len(records)
        if is_lifted:
            run(speed, 2.0, lambda stress: stress <= 0)
        table = np.array(records)
        strain = (start - table[:, 0]) / start
        return bed, strain, table[:, 1], loaded_end, hold_end, contacts, spheres

    return lab.shared(("press", shear, young), make)


def compression(lab):
    # As deep as the thesis allows, a tenth of a diameter at most.
    bed, _, _, _, _, contacts, spheres = press(lab, "viscous", 4e6, 20e3, 0.1, False)
    f = sphere_forces(contacts, spheres, bed.cylinder)
    rest = sphere_forces(bed.contacts, bed.spheres, bed.cylinder)
    a, b, gap = measure.fit_gamma(f)
    values = {"gamma_a": a, "gamma_b": b, "gamma_gap": gap, "peak": peak(f), "spheres": float(len(f))}
    values["overlap"] = float(contacts["overlap"].mean() / RADIUS)
    values["spread_ratio"] = float(f.std() / rest.std())

    def curve(x):
        x = np.maximum(x, 1e-6)
        return np.exp((a - 1) * np.log(x) - x / b - a * math.log(b) - math.lgamma(a))

    return values, [force_plot("compression", "Forces on spheres under a plunger", f, [("gamma a = %.2f" % a, curve)])]


def oedometer(lab):
    # Stiff, so that strain is of the packing: overlaps stay below a tenth of a radius. With springs, which hold at rest.
    _, strain, stress, loaded_end, hold_end, _, _ = press(lab, "history", 3e7, 40e3, 0.05)
    threshold = 0.01 * stress[:loaded_end].max()
    first = int(np.argmax(stress[:loaded_end] > threshold))
    strain = strain - strain[first]
    largest = float(strain[loaded_end - 1])
    left = float(strain[hold_end:][stress[hold_end:] > threshold][-1])

    def work(part):
        return float(np.sum(0.5 * (stress[part][1:] + stress[part][:-1]) * np.diff(strain[part])))

    ratio = -work(slice(hold_end, None)) / work(slice(0, loaded_end))
    values = {"recovered": 1 - left / largest, "energy_ratio": ratio, "largest_strain": largest}
    series = [
        ("loading", strain[:loaded_end] * 100, stress[:loaded_end] / 1e3, "line"),
        ("unloading", strain[hold_end:] * 100, stress[hold_end:] / 1e3, "line"),
    ]
    return values, [Plot("oedometer", "Stress and strain under a plunger", "strain (%)", "stress (kPa)", series)]


TAIL = "Longmore 2009 eq. 7.2 quotes 1.5 +- 0.4 and 1.7 +- 0.1 (van Eerd 2007: 1.7 in three dimensions)"
BETA = "from 1.21 (Longmore 2009 table 7.2, grains) over 1.5 (Mueth 1998) to 1.8 (Loevoll 1999)"
EXPERIMENTS = (
    Experiment(
        "forces_friction",
        "Normal forces at rest, friction 0.5",
        "Longmore 2009 experiment 1; Silbert, Grest and Landry 2002",
        "Grains at rest in a cylinder; contacts between grains, away from walls and surface, over the mean at their height.",
        (
            Check("beta", "decay rate of the exponential fit", 1.21, 1.8, BETA),
            Check("alpha", "exponent of the tail beyond the mean", 1.1, 1.9, TAIL),
        ),
        forces_friction,
        {"small": 4, "full": 500},
    ),
    Experiment(
        "forces_frictionless",
        "Normal forces at rest, no friction",
        "Longmore 2009 experiment 2",
        "The same without friction.",
        (
            Check("alpha", "exponent of the tail beyond the mean", 1.1, 1.9, TAIL),
            Check(
                "thesis_gap",
                "forces on spheres: gap to the thesis's fit (distribution functions)",
                0,
                0.05,
                "Longmore 2009 table 7.2, no friction: a 10.05, b 1.01, beta 2.13; 0.05 is what a histogram shows",
            ),
            Check("sphere_peak", "most frequent force on a sphere", 0.5, 1.2, "Longmore 2009: a peak near 1; that of its fit is at 0.75"),
        ),
        forces_frictionless,
        {"small": 5, "full": 500},
    ),
    Experiment(
        "compression",
        "Normal forces under a plunger",
        "Longmore 2009 experiment 3",
        "A plate presses the settled bed to 20 kPa (grains of 4 MPa, smooth wall) and holds; forces on spheres; gamma distribution by likelihood.",
        (
            Check("gamma_a", "shape of the gamma fit", 3.16, 6.34, "Longmore 2009 table 7.2: 3.36 (particles) to 6.34 (grains); less 0.2, two standard errors a sqrt(2 / n) of a fit to 2,100 spheres"),
            Check("gamma_gap", "gamma fit: largest gap of the distribution functions", 0, 0.05, "Longmore 2009: fits the whole range; 0.05 is what a histogram shows"),
            Check("peak", "most frequent force", 0.5, 1.2, "Longmore 2009: a clear peak near 1; that of its fit is at 0.71"),
            Check("spread_ratio", "spread of forces against at rest", 0, 1, "Longmore 2009: narrower range of forces"),
        ),
        compression,
        {"small": 6, "full": 400},
    ),
    Experiment(
        "forces_tangential",
        "Tangential forces",
        "Longmore 2009 experiment 4; Silbert, Grest and Landry 2002",
        "Exponential decay rate beyond the mean, tangential against normal. With springs: viscous friction leaves no tangential force at rest.",
        (Check("rate_ratio", "decay rate, tangential / normal", 0, 1, "Longmore 2009: tangential forces decay slower"),),
        forces_tangential,
        {"small": 0.1, "full": 5},
    ),
    Experiment(
        "correlation",
        "Correlation of forces in space",
        "Longmore 2009 experiment 5, eq. 7.4",
        "Sum of normal forces on spheres, pairs of different grains, 0.9 to 5 d. Length: beyond it F stays within 5 % of its plateau.",
        (
            Check("length", "correlation length", 0.9, 3.0, "Silbert, Grest and Landry 2002: 2 to 3 d; Longmore 2009: 2.5 d", "d"),
            Check("contact_excess", "excess at contact", 0.0, INFINITE, "Longmore 2009: touching spheres are correlated"),
        ),
        correlation,
        {"small": 1, "full": 20},
    ),
    Experiment(
        "angles",
        "Contact angles with and without friction",
        "Longmore 2009 experiment 6",
        "Lines between centres of touching grains, from the vertical.",
        (
            Check("friction_distance", "gap of the distribution functions, with and without friction", 0, 0.1, "Longmore 2009: friction insignificant"),
        ),
        angles,
        {"small": 0.1, "full": 5},
    ),
    Experiment(
        "network",
        "Strong and weak contacts",
        "Longmore 2009 experiment 7; Silbert, Grest and Landry 2002",
        "Share of the whole force that the stronger half of the contacts carries; forces as they are, as in the thesis.",
        (Check("upper_half", "share of the force on the stronger half", 0.75, 0.85, "about 80 % (Silbert 2002), 81 % (Longmore 2009); an exponential distribution gives 0.847"),),
        network,
        {"small": 0.1, "full": 2},
    ),
    Experiment(
        "oedometer",
        "Stress and strain under a plunger",
        "Longmore 2009 experiment 8; Coetzee and Els 2009",
        "Springs. Flattened, lifted to no load, loaded slowly to 40 kPa (grains of 30 MPa), unloaded; from a hundredth of the largest stress on.",
        (
            Check("recovered", "share of the strain that comes back", 0.567, 0.767, "two thirds, +- 0.1 for 'about' (Coetzee and Els 2009, Longmore 2009)"),
            Check("energy_ratio", "work given back / work done", 0, 0.95, "hysteresis: less comes back than was put in"),
        ),
        oedometer,
        {"small": 0.1, "full": 2},
    ),
)
