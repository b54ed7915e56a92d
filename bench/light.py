#!/usr/bin/env python3
"""What light and shadows cost beside a step. `python3 setup.py bench --light` runs this file; docs/performance.md says what came
out.

Heaps of 20,000 to 1,000,000 spheres, drawn at 640 x 360 with four samples a pixel: seconds of a picture, of each of its parts,
without shadows, and beside them one step of the CPU engine on the same heap. Best of a few, for on a shared machine the others measure the
neighbours. Goes out: one JSON line per size.
"""

import argparse
import json
import time

import barchan
import numpy as np
from barchan import preview

RADIUS = 0.005  # m
SIZES = (20_000, 100_000, 1_000_000)
PICTURE = (640, 360)
REPOSE = 31.0  # degrees
STEPS = {20_000: 200, 100_000: 60, 1_000_000: 10}


def heap(count):
    """The lowest places of a lattice under a cone, a little out of line."""
    side, layer = 2.04 * RADIUS, 1.75 * RADIUS
    edge = int((count * 3) ** (1 / 3) * 1.6) + 4
    across, high = np.arange(-edge, edge + 1) * side, np.arange(edge) * layer
    places = np.stack(np.meshgrid(across, across, high, indexing="ij"), axis=-1).reshape(-1, 3)
    under = np.hypot(places[:, 0], places[:, 1]) * np.tan(np.radians(REPOSE)) + places[:, 2]
    places = places[np.argsort(under, kind="stable")[:count]]
    places += (np.random.default_rng(1).random(places.shape) - 0.5) * 0.02 * RADIUS
    places[:, 2] += RADIUS
    return places.astype(np.float32)


def best(work, repeats):
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        found.append((time.perf_counter() - start, result))
    return min(found, key=lambda one: one[0])


def measure_step(places, threads):
    """Seconds of one step of the CPU engine on the heap."""
    scene = barchan.Scene(
        positions=places,
        shapes=[(np.zeros((1, 3), np.float32), np.full(1, RADIUS, np.float32))],
        planes=[[0, 0, 0, 0, 0, 1]],
        density=2600.0,
        restitution=0.5,
        friction=0.5,
    )
    sim = barchan.Sim(scene, threads=threads, allow_overlap=True)
    step = sim.info()["step_seconds"]
    sim.advance(20 * step)
    times = []
    for _ in range(3):
        before = sim.info()["step_count"]
        start = time.perf_counter()
        sim.advance(STEPS[len(places)] * step)
        times.append((time.perf_counter() - start) / max(sim.info()["step_count"] - before, 1))
    return min(times)


def measure(count, repeats, threads):
    places = heap(count)
    turns = np.random.default_rng(2).normal(size=(count, 4)).astype(np.float32)
    light = barchan.Light(*PICTURE, measure=True)
    camera = preview.frame_camera(places.min(axis=0), places.max(axis=0), PICTURE[0] / PICTURE[1])
    scene = {
        "positions": places,
        "rotations": turns,
        "scales": np.full(count, RADIUS, np.float32),
        "shapes": [(np.zeros((1, 3), np.float32), np.ones(1, np.float32))],
        "sun": preview.sun_of(-60, 42, 3.2),
        "sky": preview.SKY,
        "floor": preview.FLOOR,
        "ground": (0.0, *preview.TABLE),
    }
    parts = []

    def draw(**changes):
        before = light.times()
        light.draw(camera, **{**scene, **changes})
        after = light.times()
        return {name: after[name] - before[name] for name in ("surfaces", "shadows", "shading", "reading")}

    draw()
    whole, parts = best(draw, repeats)
    plain, _ = best(lambda: draw(shadows=False, occlusion=False), repeats)
    step = measure_step(places, threads)
    return {
        "work": "light",
        "n": count,
        "device": light.device,
        "picture_seconds": round(whole, 4),
        **{name + "_seconds": round(seconds, 4) for name, seconds in parts.items()},
        "without_shadows_seconds": round(plain, 4),
        "nanoseconds_per_grain": round(1e9 * whole / count, 1),
        "step_seconds": round(step, 6),
        "steps_per_picture": round(whole / step, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=SIZES)
    arguments = parser.parse_args()
    for index, count in enumerate(arguments.sizes):
        print("@ %d %d %d grains" % (index, len(arguments.sizes), count), flush=True)
        print(json.dumps(measure(count, arguments.repeats, arguments.threads)), flush=True)


if __name__ == "__main__":
    main()
