"""Numbers from samples: confidence, fits, distributions. NumPy only.

Comes in: arrays. Goes out: estimates and fitted parameters, each with what it needs to be judged.
"""

import dataclasses
import math

import numpy as np

# Two-sided 95 % quantile of Student's t by degrees of freedom; beyond the table the normal one.
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean over seeds with the half width of its 95 % confidence interval; None when there is one seed only."""

    mean: float
    half_width: float | None
    count: int


def estimate(values):
    values = np.asarray(values, float)
    count = len(values)
    if count < 2:
        return Estimate(float(values.mean()), None, count)
    quantile = STUDENT[count - 2] if count - 2 < len(STUDENT) else 1.96
    return Estimate(float(values.mean()), float(quantile * values.std(ddof=1) / math.sqrt(count)), count)


def line(x, y, weights=None):
    """Least squares y = slope x + offset -> slope, offset, R^2."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, float)
    mean_x, mean_y = np.average(x, weights=w), np.average(y, weights=w)
    spread = np.sum(w * (x - mean_x) ** 2)
    slope = float(np.sum(w * (x - mean_x) * (y - mean_y)) / spread)
    offset = float(mean_y - slope * mean_x)
    rest, total = np.sum(w * (y - slope * x - offset) ** 2), np.sum(w * (y - mean_y) ** 2)
    return slope, offset, float(1 - rest / total) if total > 0 else 1.0


def robust_line(x, y):
    """A line by bisquare weights (Longmore 2009, section 7.2): grains that roll far away do not tilt it."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    weights = np.ones(len(x))
    for _ in range(20):
        slope, offset, fit = line(x, y, weights)
        rest = np.abs(y - slope * x - offset)
        scale = 6 * np.median(rest) + 1e-9 * (np.ptp(y) + 1e-9)
        weights = np.where(rest < scale, (1 - (rest / scale) ** 2) ** 2, 0)
        if len(set(x[weights > 0])) < 2:
            break  # what is left lies at one x: the line of the last round stands
    return slope, offset, fit


def density(values, low, high, bins):
    """Histogram as a probability density -> centres, densities, counts."""
    counts, edges = np.histogram(values, bins=bins, range=(low, high))
    width = (high - low) / bins
    return 0.5 * (edges[1:] + edges[:-1]), counts / (len(values) * width), counts


def simplex(cost, start, steps=400):
    """Nelder and Mead's search for the least cost; enough for fits of three parameters."""
    start = np.asarray(start, float)
    points = [start] + [start + np.eye(len(start))[i] * (0.2 * abs(start[i]) + 0.05) for i in range(len(start))]
    costs = [cost(p) for p in points]
    for _ in range(steps):
        order = np.argsort(costs)
        points, costs = [points[i] for i in order], [costs[i] for i in order]
        centre = np.mean(points[:-1], axis=0)
        mirrored = 2 * centre - points[-1]
        found = cost(mirrored)
        if found < costs[0]:
            farther = 3 * centre - 2 * points[-1]
            other = cost(farther)
            points[-1], costs[-1] = (farther, other) if other < found else (mirrored, found)
        elif found < costs[-2]:
            points[-1], costs[-1] = mirrored, found
        else:
            nearer = 0.5 * (centre + points[-1])
            other = cost(nearer)
            if other < costs[-1]:
                points[-1], costs[-1] = nearer, other
            else:
                points = [points[0]] + [0.5 * (points[0] + p) for p in points[1:]]
                costs = [costs[0]] + [cost(p) for p in points[1:]]
    best = int(np.argmin(costs))
    return points[best], costs[best]


def fit_exponential(forces):
    """P(f) = a (1 - b exp(-f^2)) exp(-beta f), Longmore 2009 eq. 7.1 after Mueth 1998, by likelihood; a from the norm."""
    f = np.asarray(forces, float)
    grid = np.linspace(0, 12, 2401)

    def shape(at, b, beta):
        return (1 - b * np.exp(-(at**2))) * np.exp(-beta * at)

    def cost(p):
        b, beta = p
        if not (b < 1 and b > -5 and 0.1 < beta < 10):
            return 1e9
        norm = np.trapezoid(shape(grid, b, beta), grid) if hasattr(np, "trapezoid") else np.trapz(shape(grid, b, beta), grid)
        return -float(np.mean(np.log(np.maximum(shape(f, b, beta), 1e-300)))) + math.log(norm)

    (b, beta), _ = simplex(cost, (0.7, 1.4))
    norm = np.trapezoid(shape(grid, b, beta), grid) if hasattr(np, "trapezoid") else np.trapz(shape(grid, b, beta), grid)
    return 1 / float(norm), float(b), float(beta)


def fit_tail(forces, begin=1.0):
    """P(f) ~ exp(-c f^alpha) for f > begin (Longmore 2009 eq. 7.2), by likelihood -> c, alpha."""
    f = np.asarray(forces, float)
    f = f[f > begin]
    grid = np.linspace(begin, 15, 3001)

    def cost(p):
        c, alpha = p
        if not (1e-3 < c < 20 and 0.3 < alpha < 4):
            return 1e9
        values = np.exp(-c * (grid**alpha - begin**alpha))
        norm = float(np.sum(0.5 * (values[1:] + values[:-1])) * (grid[1] - grid[0]))
        return float(np.mean(c * (f**alpha - begin**alpha))) + math.log(norm)

    (c, alpha), _ = simplex(cost, (1.0, 1.5))
    return float(c), float(alpha)


def tail_rate(forces, begin=1.0):
    """Decay rate of an exponential tail beyond begin: one over the mean excess."""
    f = np.asarray(forces, float)
    f = f[f > begin]
    return float(1 / (f - begin).mean())


def fit_gamma(forces):
    """P(f) = f^(a-1) exp(-f/b) / (b^a Gamma(a)), Longmore 2009 eq. 7.3, by likelihood -> a, b, distance of the
    distribution functions (Kolmogorov)."""
    f = np.asarray(forces, float)
    f = f[f > 0]
    s = math.log(f.mean()) - float(np.log(f).mean())
    a = (3 - s + math.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s)
    for _ in range(50):
        a -= (math.log(a) - digamma(a) - s) / (1 / a - trigamma(a))
    b = float(f.mean()) / a
    f = np.sort(f)
    grid = np.linspace(0, max(f[-1], 12 * b * a), 20001)
    values = np.zeros_like(grid)
    values[1:] = np.exp((a - 1) * np.log(grid[1:]) - grid[1:] / b - a * math.log(b) - math.lgamma(a))
    below = np.concatenate([[0], np.cumsum(0.5 * (values[1:] + values[:-1]) * (grid[1] - grid[0]))])
    at = np.interp(f, grid, below)
    rank = np.arange(1, len(f) + 1) / len(f)
    return a, b, float(np.max(np.abs(at - rank)))


def digamma(x):
    total = 0.0
    while x < 6:
        total -= 1 / x
        x += 1
    y = 1 / (x * x)
    return total + math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y / 252))


def trigamma(x):
    total = 0.0
    while x < 6:
        total += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    return total + 1 / x + y / 2 + y / x * (1 / 6 - y * (1 / 30 - y / 42))


def distance(a, b):
    """Largest difference of two samples' distribution functions (Kolmogorov and Smirnov)."""
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    return float(
        np.max(np.abs(np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)))
    )


def upper_half_share(forces):
    """Share of the sum that the larger half of the forces carries."""
    f = np.sort(np.asarray(forces, float))
    return float(f[len(f) // 2 :].sum() / f.sum())
