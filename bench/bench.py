#!/usr/bin/env python3
"""How fast the CPU engine is, on one machine, in one run. `python3 setup.py bench` runs this file; docs/performance.md
says what came out.

    (nothing)    beside LAMMPS on the peers' settled beds: W1 spheres, W2 tetrahedral grains
    --scaling    cost and memory per grain, from 16K to 1M tetrahedral grains
    --sleep      a settled bed with sleeping on against the same bed awake
    --cache      a frame of 1M grains to disk and back, beside the same bytes with nothing done to them
    --playback   is bench/playback.py: frame changes in Blender
    --gl         the gl engine beside the cpu engine on the peers' beds, and its time per pass
    --mesh       even points on a mesh of 69,120 triangles, beside open3d and pymeshlab
    --mesh-gl    the same points, the mesh's distance field and distances of places, on a software device beside the
                 processor: whole calls, with the device made and the mesh uploaded

Comes in: the installed package; for the comparison the peers' folder (beds, their definition in common.py, the harness
that runs LAMMPS) and a folder with LAMMPS as that harness expects it. Goes out: one JSON line per work on standard
output, the same as a row of the CSV of this machine, and lines `@ done total note` that a progress bar can follow.

Programs take turns and never run at the same time. In each of its runs a program is timed in several windows, in the
same number each; of all the shortest counts, for on a shared machine the others measure the neighbours.
"""

import argparse
import csv
import datetime
import json
import math
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent

WORKS = {"w1-10000": ("w1", 10_000), "w1-100000": ("w1", 100_000), "w2-10000": ("w2", 10_000)}
SHEARS = ("history", "viscous")
STEPS = 1000  # timed at once, about a frame of film: our engine makes its neighbour list anew at each start
WARM_STEPS = {10_000: 1000, 100_000: 400}  # as the peers' harness does
GL_STEPS = {10_000: 200, 100_000: 40}
WINDOWS = 3  # timed one after the other in one run of a program; the best counts

# The bed of --scaling and --sleep: a tile of the smallest size, laid out again and again for the larger ones.
RADIUS = 0.005  # m
TILE_SIDE = 32  # grains
TILE_LAYERS = 16
TILE_SIZE = TILE_SIDE * TILE_SIDE * TILE_LAYERS
PITCH = 4.6 * RADIUS  # the bounding sphere of a tetrahedron of touching spheres is 4.45 radii wide
SETTLE_SECONDS = 0.4  # the lattice is 0.37 m high and falls for about half of that
SCALING_TILES = (1, 2, 4, 8)  # tiles along a side: 16K, 64K, 256K and 1M grains
SCALING_STEPS = 200
CACHE_TILES = 8  # 1M grains
CACHE_PRECISION = 0.01  # of a sphere's radius: what the add-on asks for
MESH_POINTS = (20_000, 28_700)  # as many as open3d and pymeshlab gave where the peers' figures come from
MESH_PROGRAMS = ("open3d", "pymeshlab")
SLEEP_SPEED = 0.01  # m/s
SLEEP_FRAME = 1 / 24  # s

# rate, peer_rate: million grain steps a second; ratio: ours to the peer's; spread: noise, see spread();
# other_cpu: cores that others used in the repeat that counts; contacts: per grain, as either of the two counts them;
# growth: cost against the first of its series; evenness: least over mean distance to the nearest neighbour.
COLUMNS = (
    "date machine command barchan peer work n shear threads repeats steps rate peer_rate ratio spread peer_spread "
    "other_cpu contacts peer_contacts ns_per_grain_step growth bytes_per_grain peak_mib asleep milliseconds "
    "peer_milliseconds evenness peer_evenness peer_n"
).split()

# ---------------------------------------------------------------------------------------------------------------------
# The machine


def busy_seconds():
    """CPU seconds that the whole machine has used since it started, over all cores; stolen ones count."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Others:
    """Mean number of cores that everybody else kept busy since it was made."""

    def __init__(self):
        self.begin = time.perf_counter(), busy_seconds(), own_seconds()

    def cores(self):
        now = time.perf_counter(), busy_seconds(), own_seconds()
        wall, busy, own = (late - early for late, early in zip(now, self.begin))
        return max(0.0, (busy - own) / wall)


def wait_for_quiet(show, limit=600, share=0.12):
    """Waits, at most limit seconds, until others use less than share of a core. PEERS_NOWAIT=1 skips it, as in the
    peers' harness."""
    begin = time.monotonic()
    while not os.environ.get("PEERS_NOWAIT") and time.monotonic() - begin < limit:
        others = Others()
        time.sleep(3)
        cores = others.cores()
        if cores < share:
            break
        show("waiting for a quiet machine, others use %.1f cores" % cores)


def machine_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = re.findall(r"^model name\s*:\s*(.*)$", file.read(), re.MULTILINE)
    return "%s, %d cores" % (re.sub(r"\s+", " ", models[0]) if models else "unknown processor", os.cpu_count())


def csv_name(machine):
    return re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-") + ".csv"


def memory_mib(field):
    """VmRSS or VmHWM of this process."""
    with open("/proc/self/status", encoding="ascii") as file:
        return int(re.search(r"^%s:\s*(\d+) kB" % field, file.read(), re.MULTILINE).group(1)) / 1024


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def own_version():
    import barchan

    def git(*words):
        if shutil.which("git") is None:
            return ""
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit, changed = git("rev-parse", "--short", "HEAD"), git("status", "--porcelain", "csrc", "meson.build")
    return " ".join(filter(None, [barchan.__version__, commit, "with changes" if changed else ""]))


# ---------------------------------------------------------------------------------------------------------------------
# Arithmetic


def law_for(stiffness, grain_mass, radius):
    """max_overlap and max_speed that give two equal grains a linear spring of that stiffness, N/m. The core takes the
    time scale of the contact, sqrt(m_eff / k), from max_overlap * radius / max_speed (csrc/law.c)."""
    overlap = 0.25
    return overlap, overlap * radius / math.sqrt(0.5 * grain_mass / stiffness)


def million_rate(n, steps, seconds):
    """Million grain steps a second of the best repeat."""
    return n * steps / min(seconds) / 1e6


def spread(seconds):
    """How far the middle repeat lies above the best, as a share: the noise of the machine."""
    return sorted(seconds)[len(seconds) // 2] / min(seconds) - 1


def box_planes(side):
    """Floor and four walls of an open box with its corner at the origin: point and normal of each."""
    floor, low_walls = [0, 0, 0, 0, 0, 1], [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]]
    high_walls = [[side, 0, 0, -1, 0, 0], [0, side, 0, 0, -1, 0]]
    return np.array([floor, *low_walls, *high_walls], np.float32)


def tile_lattice(seed=1):
    """Centres and orientations of a jittered lattice of one tile, no two bounding spheres touching; and its side."""
    rng = np.random.default_rng(seed)
    index = np.arange(TILE_SIZE)
    cells = np.stack([index % TILE_SIDE, index // TILE_SIDE % TILE_SIDE, index // TILE_SIDE**2], 1)
    positions = (cells + 0.5) * PITCH + rng.uniform(-0.05, 0.05, cells.shape) * RADIUS
    quaternions = rng.normal(size=(TILE_SIZE, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    return positions.astype(np.float32), quaternions.astype(np.float32), TILE_SIDE * PITCH


def lay_tiles(positions, quaternions, side, count):
    """count times count copies of a bed, side by side."""
    shifts = np.array([[x, y, 0] for y in range(count) for x in range(count)], np.float64) * side
    tiled = (positions[None].astype(np.float64) + shifts[:, None]).reshape(-1, 3)
    return tiled.astype(np.float32), np.tile(quaternions, (count * count, 1)), side * count


# ---------------------------------------------------------------------------------------------------------------------
# Reporting


class Report:
    """Progress as lines `@ done total note`; results as JSON lines and CSV rows."""

    def __init__(self, folder, command, total):
        self.machine, self.command, self.version, self.done, self.total = (
            machine_name(),
            command,
            own_version(),
            0,
            total,
        )
        self.path = pathlib.Path(folder) / csv_name(self.machine)

    def show(self, note):
        print("@ %d %d %s" % (self.done, self.total, note), flush=True)

    def advance(self, note):
        self.done += 1
        self.show(note)

    def result(self, **values):
        print(json.dumps(values), flush=True)
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")
        row = {"date": date, "machine": self.machine, "command": self.command, "barchan": self.version, **values}
        is_new = not self.path.exists()
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)


def timed_advance(sim, steps, step_seconds):
    """Seconds that `steps` equal steps took, and the cores that others used meanwhile."""
    before, others, begin = sim.info()["step_count"], Others(), time.perf_counter()
    sim.advance(steps * step_seconds)
    seconds = time.perf_counter() - begin
    done = sim.info()["step_count"] - before
    if done != steps:
        sys.exit("The engine took %d steps, expected %d: grains are faster than the bench allows for." % (done, steps))
    return seconds, others.cores()


# ---------------------------------------------------------------------------------------------------------------------
# Beside LAMMPS


def peer_scene(common, work, n, shear):
    """The peers' bed as a scene of ours: the same grains, box, spring, restitution and friction."""
    import barchan

    positions, quaternions = common.load(work, n)
    offsets = common.TETRA * common.R if work == "w2" else np.zeros((1, 3))
    mass = common.grain_mass() if work == "w2" else common.M
    max_overlap, max_speed = law_for(common.KN, mass, common.R)
    material = {"density": common.RHO, "restitution": common.E, "friction": common.MU, "normal": "linear"}
    return barchan.Scene(
        positions=positions.astype(np.float32),
        orientations=quaternions.astype(np.float32),
        shapes=[(offsets.astype(np.float32), np.full(len(offsets), common.R, np.float32))],
        gravity=(0, 0, -common.G),
        max_overlap=max_overlap,
        max_speed=max_speed,
        planes=box_planes(common.side(work, n)),
        materials=[dict(material, shear=shear)],
    )


def contacts_per_grain(common, sim, work, n):
    """As the peers' harness counts them, from the positions alone."""
    positions = sim.positions().astype(float)
    if work == "w1":
        return common.bed_measures(positions, work, n)["contacts_per_particle"]
    spheres = common.tetra_spheres(positions, sim.orientations().astype(float)).reshape(-1, 3)
    return common.bed_measures(spheres, work, n, body=np.repeat(np.arange(n), 4))["contacts_per_particle"]


def run_ours(common, work, n, shear, threads):
    import barchan

    sim = barchan.Sim(peer_scene(common, work, n, shear), threads=threads, step_seconds=common.DT)
    sim.advance(WARM_STEPS[n] * common.DT)
    seconds, others = min(timed_advance(sim, STEPS, common.DT) for window in range(WINDOWS))
    return {"seconds": seconds, "others": others, "contacts": contacts_per_grain(common, sim, work, n)}


def run_peer(peers, python, work, n, threads):
    command = [python, peers / ("%s_lammps.py" % work), "-n", n, "-t", threads, "--warm", WARM_STEPS[n]]
    command += ["--steps", STEPS, "--repeats", WINDOWS]
    # The machine was found quiet just before: the harness need not wait again.
    env = dict(os.environ, PEERS_NOWAIT="1")
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        sys.exit("LAMMPS failed on %s, %d grains, with code %d:\n%s" % (work, n, done.returncode, done.stderr[-2000:]))
    found = json.loads(lines[-1])
    return {
        "seconds": found["wall_s"],
        "others": found["other_cpu"],
        "contacts": found["contacts_per_particle"],
        "version": "%s %s" % (found["peer"], found["version"]),
    }


def best(runs):
    return min(runs, key=lambda run: run["seconds"])


def compare(common, options, report, work, n):
    programs = {"LAMMPS": lambda: run_peer(options.peers, options.peer_python, work, n, options.threads)}
    for shear in SHEARS:
        programs[shear] = lambda shear=shear: run_ours(common, work, n, shear, options.threads)
    runs = {program: [] for program in programs}
    for repeat in range(options.repeats):
        for program, run in programs.items():
            note = "%s %d, %s, %d of %d" % (work, n, program, repeat + 1, options.repeats)
            wait_for_quiet(report.show)
            report.show(note)
            runs[program].append(run())
            report.advance(note)
    peer, best_peer = [run["seconds"] for run in runs["LAMMPS"]], best(runs["LAMMPS"])
    for shear in SHEARS:
        ours, best_ours = [run["seconds"] for run in runs[shear]], best(runs[shear])
        report.result(
            work=work,
            n=n,
            shear=shear,
            rate=round(million_rate(n, STEPS, ours), 3),
            peer_rate=round(million_rate(n, STEPS, peer), 3),
            ratio=round(min(peer) / min(ours), 3),
            threads=options.threads,
            repeats=options.repeats,
            steps=STEPS,
            spread=round(spread(ours), 3),
            peer_spread=round(spread(peer), 3),
            other_cpu=round(max(best_ours["others"], best_peer["others"]), 2),
            contacts=best_ours["contacts"],
            peer_contacts=best_peer["contacts"],
            peer=best_peer["version"],
        )


def compare_all(options, report):
    sys.path.insert(0, str(options.peers))
    import common

    for name in options.work:
        compare(common, options, report, *WORKS[name])


# ---------------------------------------------------------------------------------------------------------------------
# The gl engine beside the cpu engine


def run_engine(common, work, n, engine, threads, measure=False):
    """Seconds of the best window; and, measured, seconds per pass over all of them."""
    import barchan

    scene, steps = peer_scene(common, work, n, "history"), GL_STEPS[n]
    sim = barchan.Sim(scene, threads=threads, step_seconds=common.DT, engine=engine, measure=measure)
    sim.advance(steps * common.DT)  # programs are compiled, lists are made
    before = sim.passes() if measure else {}
    windows = [timed_advance(sim, steps, common.DT) for window in range(1 if measure else WINDOWS)]
    passes = {name: seconds - before[name][0] for name, (seconds, runs) in sim.passes().items()} if measure else {}
    seconds, others = min(windows)
    return {"seconds": seconds, "others": others, "passes": passes, "engine": sim.engine(), "hash": sim.hash()}


def compare_engines(options, report):
    sys.path.insert(0, str(options.peers))
    import common

    for name in options.work:
        (work, n), runs = WORKS[name], {"cpu": [], "gl": []}
        for repeat in range(options.repeats):
            for engine in runs:
                note = "%s %d, %s, %d of %d" % (work, n, engine, repeat + 1, options.repeats)
                wait_for_quiet(report.show)
                report.show(note)
                runs[engine].append(run_engine(common, work, n, engine, options.threads))
                report.advance(note)
        measured = run_engine(common, work, n, "gl", options.threads, measure=True)
        report.advance("%s %d, per pass" % (work, n))
        gl, cpu, steps = best(runs["gl"]), best(runs["cpu"]), GL_STEPS[n]
        times = {engine: [run["seconds"] for run in runs[engine]] for engine in runs}
        shared = {"n": n, "shear": "history", "threads": options.threads, "steps": steps}
        report.result(
            work="gl-" + work,
            peer="the cpu engine%s" % ("" if gl["hash"] == cpu["hash"] else ", other bits"),
            rate=round(million_rate(n, steps, times["gl"]), 3),
            peer_rate=round(million_rate(n, steps, times["cpu"]), 3),
            ratio=round(cpu["seconds"] / gl["seconds"], 3),
            milliseconds=round(1e3 * gl["seconds"] / steps, 3),
            peer_milliseconds=round(1e3 * cpu["seconds"] / steps, 3),
            repeats=options.repeats,
            spread=round(spread(times["gl"]), 3),
            peer_spread=round(spread(times["cpu"]), 3),
            other_cpu=round(max(gl["others"], cpu["others"]), 2),
            **shared,
        )
        for name_of_pass, seconds in sorted(measured["passes"].items(), key=lambda item: -item[1]):
            if seconds > 0.005 * measured["seconds"]:
                milliseconds = round(1e3 * seconds / steps, 4)
                report.result(work="gl-%s %s" % (work, name_of_pass), milliseconds=milliseconds, repeats=1, **shared)


# ---------------------------------------------------------------------------------------------------------------------
# Our own beds


def tile_scene(positions, quaternions, side, **changes):
    import barchan

    offsets = barchan.tetrahedron(RADIUS)
    return barchan.Scene(
        positions=positions,
        orientations=quaternions,
        shapes=[(offsets, np.full(4, RADIUS, np.float32))],
        planes=box_planes(side),
        **changes,
    )


def settled_tile(threads, report):
    import barchan

    positions, quaternions, side = tile_lattice()
    sim = barchan.Sim(tile_scene(positions, quaternions, side), threads=threads)
    for part in range(8):
        report.show("settling %d grains, %d of 8" % (TILE_SIZE, part + 1))
        sim.advance(SETTLE_SECONDS / 8)
    report.advance("settled")
    return sim.positions(), sim.orientations(), side


def scaling(options, report):
    import barchan

    tile = settled_tile(options.threads, report)
    # One law for all sizes: the height of fall, which the default follows, is that of the settled tile everywhere.
    beds = []
    for count in SCALING_TILES:
        n = TILE_SIZE * count * count
        report.show("%d grains: making the bed" % n)
        positions, quaternions, side = lay_tiles(*tile, count)
        forget_peak()
        held, resident = barchan._core.allocated_bytes(), memory_mib("VmRSS")
        sim = barchan.Sim(tile_scene(positions, quaternions, side), threads=options.threads)
        step = sim.info()["step_seconds"]
        sim.advance(500 * step)  # grains of neighbouring tiles, which leaned on a wall, come to lean on each other
        beds.append(
            {
                "n": n,
                "sim": sim,
                "step": step,
                "seconds": [],
                "others": [],
                "bytes": (barchan._core.allocated_bytes() - held) / n,
                "peak": memory_mib("VmHWM") - resident,
            }
        )
        report.advance("%d grains made" % n)
    for repeat in range(options.repeats):
        for bed in beds:
            wait_for_quiet(report.show)
            report.show("%d grains, %d of %d" % (bed["n"], repeat + 1, options.repeats))
            seconds, others = timed_advance(bed["sim"], SCALING_STEPS, bed["step"])
            bed["seconds"].append(seconds)
            bed["others"].append(others)
            report.advance("%d grains, %d of %d" % (bed["n"], repeat + 1, options.repeats))
    costs = [min(bed["seconds"]) / (bed["n"] * SCALING_STEPS) * 1e9 for bed in beds]
    for bed, cost in zip(beds, costs):
        report.result(
            work="scaling",
            n=bed["n"],
            shear="viscous",
            rate=round(million_rate(bed["n"], SCALING_STEPS, bed["seconds"]), 3),
            threads=options.threads,
            repeats=options.repeats,
            steps=SCALING_STEPS,
            spread=round(spread(bed["seconds"]), 3),
            other_cpu=round(bed["others"][int(np.argmin(bed["seconds"]))], 2),
            contacts=round(2 * bed["sim"].info()["contact_count"] / bed["n"], 3),
            ns_per_grain_step=round(cost, 2),
            growth=round(cost / costs[0], 3),
            bytes_per_grain=round(bed["bytes"], 1),
            peak_mib=round(bed["peak"]),
        )


def sleep(options, report):
    import barchan

    positions, quaternions, side = settled_tile(options.threads, report)
    awake = barchan.Sim(tile_scene(positions, quaternions, side), threads=options.threads)
    asleep = barchan.Sim(tile_scene(positions, quaternions, side, sleep_speed=SLEEP_SPEED), threads=options.threads)
    step = awake.info()["step_seconds"]
    steps = math.ceil(SLEEP_FRAME / step)
    for frame in range(24):  # a second is ten times what the default asks for
        report.show("falling asleep, frame %d of at most 24" % (frame + 1))
        for sim in (awake, asleep):
            sim.advance(steps * step)
        if asleep.info()["asleep_count"] >= 0.999 * TILE_SIZE:
            break
    report.advance("%d of %d grains asleep" % (asleep.info()["asleep_count"], TILE_SIZE))
    seconds = {"awake": [], "asleep": []}
    others = []
    for repeat in range(options.repeats):
        for name, sim in (("awake", awake), ("asleep", asleep)):
            wait_for_quiet(report.show)
            report.show("%s, %d of %d" % (name, repeat + 1, options.repeats))
            found = timed_advance(sim, steps, step)
            seconds[name].append(found[0])
            others.append(found[1])
            report.advance("%s, %d of %d" % (name, repeat + 1, options.repeats))
    report.result(
        work="sleep",
        n=TILE_SIZE,
        shear="viscous",
        rate=round(million_rate(TILE_SIZE, steps, seconds["asleep"]), 3),
        peer_rate=round(million_rate(TILE_SIZE, steps, seconds["awake"]), 3),
        peer="the same bed awake",
        ratio=round(min(seconds["awake"]) / min(seconds["asleep"]), 2),
        threads=options.threads,
        repeats=options.repeats,
        steps=steps,
        spread=round(spread(seconds["asleep"]), 3),
        peer_spread=round(spread(seconds["awake"]), 3),
        other_cpu=round(max(others), 2),
        growth=round(min(seconds["asleep"]) / min(seconds["awake"]), 4),
        asleep=round(asleep.info()["asleep_count"] / TILE_SIZE, 4),
    )


# ---------------------------------------------------------------------------------------------------------------------
# A frame to disk and back


def timed(action):
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def copy_durably(source, target):
    """What dd says it takes to write these bytes and have them on the disk."""
    subprocess.run(["dd", "if=%s" % source, "of=%s" % target, "bs=1M", "conv=fsync"], check=True, capture_output=True)


def cache(options, report):
    import barchan

    positions, quaternions, side = settled_tile(options.threads, report)
    positions, quaternions, _ = lay_tiles(positions, quaternions, side, CACHE_TILES)
    count = len(positions)
    velocities = (np.random.default_rng(1).normal(size=(count, 3)) * 0.1).astype(np.float32)
    random = np.random.default_rng(2)
    small = {"position": positions, "rotation": quaternions, "velocity": velocities}
    # As the add-on writes them: grains of one size, material and source.
    arrays = {
        **small,
        "spin": (random.normal(size=(count, 3)) * 10).astype(np.float32),
        "age": np.full(count, 1.0, np.float32),
        "flags": np.zeros(count, np.int32),
        "radius": np.full(count, RADIUS, np.float32),
        **{name: np.zeros(count, np.int32) for name in ("shape", "material", "source")},
        "id": np.arange(count, dtype=np.int32),
    }
    folder = options.scratch / "cache"
    barchan.make_folder(folder)
    path, copy = folder / "frame_000001.sand", folder / "copy"
    times = {name: [] for name in ("write", "dd", "read", "first", "shown", "raw", "encode", "small")}
    reader = barchan.Reader(threads=options.threads)  # as playback has it
    buffer = None
    others = []
    for repeat in range(options.repeats):
        wait_for_quiet(report.show)
        report.show("a frame of %d grains, %d of %d" % (count, repeat + 1, options.repeats))
        around = Others()
        settings = {
            "tolerance": CACHE_PRECISION * RADIUS,
            "velocity_tolerance": CACHE_PRECISION * RADIUS * 24,
            "spin_tolerance": 0.01 * 24,
            "threads": options.threads,
        }
        times["small"].append(timed(lambda: barchan.write_frame(folder, 1, small, **settings))[0])
        times["encode"].append(timed(lambda: barchan.measure_frame(arrays, **settings))[0])
        times["write"].append(timed(lambda: barchan.write_frame(folder, 1, arrays, **settings))[0])
        times["dd"].append(timed(lambda: copy_durably(path, copy))[0])
        shown = ["position", "rotation", "velocity", "radius", "flags"]  # what playback asks for
        times["first"].append(timed(lambda: barchan.read_frame(folder, 1, threads=options.threads))[0])
        for name, wanted in (("read", None), ("shown", shown)):
            for _ in range(3):
                seconds, frame = timed(lambda: reader.read_frame(folder, 1, names=wanted))
                del frame
            times[name].append(seconds)
        if buffer is None:
            buffer = bytearray(path.stat().st_size)
        with open(path, "rb", buffering=0) as stream:
            times["raw"].append(timed(lambda: stream.readinto(buffer))[0])
        others.append(around.cores())
        report.advance("%d of %d" % (repeat + 1, options.repeats))
    byte_count = path.stat().st_size
    shutil.rmtree(folder)
    for work, ours, peer, name in (
        ("cache-read", "read", "raw", "the same bytes read raw"),
        ("cache-read-first", "first", "raw", "the same bytes read raw"),
        ("cache-read-shown", "shown", "raw", "the same bytes read raw"),
        ("cache-write", "write", "dd", "dd conv=fsync of the same bytes"),
        ("cache-write-three", "small", "dd", "dd conv=fsync of the bytes of all arrays"),
        ("cache-encode", "encode", "dd", "dd conv=fsync of the same bytes"),
    ):
        report.result(
            work=work,
            n=count,
            peer=name,
            threads=options.threads,
            repeats=options.repeats,
            milliseconds=round(1e3 * min(times[ours]), 2),
            peer_milliseconds=round(1e3 * min(times[peer]), 2),
            ratio=round(min(times[ours]) / min(times[peer]), 2),
            spread=round(spread(times[ours]), 3),
            peer_spread=round(spread(times[peer]), 3),
            other_cpu=round(min(others), 2),
            bytes_per_grain=round(byte_count / count, 2),
        )


# ---------------------------------------------------------------------------------------------------------------------
# Points on a mesh


def knot(ring_count=480, side_count=72):
    """A bumpy tube along a torus knot, 2 * ring_count * side_count triangles: the mesh of the peers' W3."""
    t = np.linspace(0, 2 * np.pi, ring_count, endpoint=False)

    def middle(t):
        r = 1 + 0.45 * np.cos(3 * t)
        return np.stack([r * np.cos(2 * t), r * np.sin(2 * t), 0.45 * np.sin(3 * t)], -1)

    def unit(v):
        return v / np.linalg.norm(v, axis=-1, keepdims=True)

    along = unit(middle(t + 1e-4) - middle(t - 1e-4))
    out = middle(t) - np.stack([np.cos(2 * t), np.sin(2 * t), 0 * t], -1)
    across = unit(out - (out * along).sum(-1, keepdims=True) * along)
    third = np.cross(along, across)
    tt, ss = np.meshgrid(t, np.linspace(0, 2 * np.pi, side_count, endpoint=False), indexing="ij")
    radius = 0.22 + 0.02 * np.sin(40 * tt) * np.cos(6 * ss) + 0.01 * np.sin(90 * tt + 5 * ss)
    ring = np.cos(ss)[..., None] * across[:, None] + np.sin(ss)[..., None] * third[:, None]
    i, j = np.meshgrid(np.arange(ring_count), np.arange(side_count), indexing="ij")
    a, b = i * side_count + j, (i + 1) % ring_count * side_count + j
    d, e = i * side_count + (j + 1) % side_count, (i + 1) % ring_count * side_count + (j + 1) % side_count
    faces = np.concatenate([np.stack([a, e, b], -1).reshape(-1, 3), np.stack([a, d, e], -1).reshape(-1, 3)])
    vertices = (middle(t)[:, None] + radius[..., None] * ring).reshape(-1, 3)
    return vertices.astype(np.float32), faces.astype(np.int32)


def evenness(options, points_file):
    """Smallest over mean distance to the nearest neighbour, by the peers' tools for all."""
    command = [options.peer_python, ROOT / "bench" / "mesh_peer.py", "measure", points_file]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["evenness"]


def run_mesh_peer(options, program, mesh_file, count):
    out = options.scratch / "points.npy"
    command = [options.peer_python, ROOT / "bench" / "mesh_peer.py", program, mesh_file, count, WINDOWS, out]
    others = Others()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    cores = others.cores()
    return {**found, "seconds": min(found["seconds"]), "others": cores, "evenness": evenness(options, out)}


def run_mesh_ours(options, mesh, count):
    import barchan

    spacing, seconds, others = math.sqrt(0.918 * mesh.area / count), [], Others()
    for seed in range(WINDOWS):
        begin = time.perf_counter()
        points = barchan.spread(mesh, spacing, seed=seed, threads=options.threads)
        seconds.append(time.perf_counter() - begin)
    cores, out = others.cores(), options.scratch / "points.npy"
    np.save(out, points)
    return {"seconds": min(seconds), "others": cores, "points": len(points), "evenness": evenness(options, out)}


def mesh_points(options, report):
    import barchan

    vertices, faces = knot()
    options.scratch.mkdir(parents=True, exist_ok=True)
    mesh_file = options.scratch / "knot.npz"
    np.savez(mesh_file, v=vertices, f=faces)
    mesh = barchan.Mesh(vertices, faces, "knot")
    programs = {name: lambda count, name=name: run_mesh_peer(options, name, mesh_file, count) for name in MESH_PROGRAMS}
    programs["Barchan"] = lambda count: run_mesh_ours(options, mesh, count)
    for count in MESH_POINTS:
        runs = {name: [] for name in programs}
        for repeat in range(options.repeats):
            for name, run in programs.items():
                note = "%d points, %s, %d of %d" % (count, name, repeat + 1, options.repeats)
                wait_for_quiet(report.show)
                report.show(note)
                runs[name].append(run(count))
                report.advance(note)
        ours = best(runs["Barchan"])
        for name in MESH_PROGRAMS:
            peer = best(runs[name])
            report.result(
                work="mesh",
                n=ours["points"],
                rate=round(ours["points"] / ours["seconds"] / 1e6, 4),
                peer_rate=round(peer["points"] / peer["seconds"] / 1e6, 4),
                ratio=round(peer["seconds"] / ours["seconds"], 3),
                threads=options.threads,
                repeats=options.repeats,
                spread=round(spread([run["seconds"] for run in runs["Barchan"]]), 3),
                peer_spread=round(spread([run["seconds"] for run in runs[name]]), 3),
                other_cpu=round(max(ours["others"], peer["others"]), 2),
                milliseconds=round(1e3 * ours["seconds"], 1),
                peer_milliseconds=round(1e3 * peer["seconds"], 1),
                evenness=round(min(run["evenness"] for run in runs["Barchan"]), 3),
                peer_evenness=round(max(run["evenness"] for run in runs[name]), 3),
                peer_n=peer["points"],
                peer=peer["version"],
            )


def mesh_engines(options, report):
    """The sampler's calls with both engines; the answers are compared as well."""
    import barchan

    vertices, faces = knot()
    mesh = barchan.Mesh(vertices, faces, "knot")
    spacing = math.sqrt(0.918 * mesh.area / MESH_POINTS[0])
    places = np.random.default_rng(1).uniform(-1.8, 1.8, (100_000, 3)).astype(np.float32)
    works = {
        "spread": lambda engine: barchan.spread(mesh, spacing, threads=options.threads, engine=engine),
        "field": lambda engine: barchan.field(mesh, 0.02, threads=options.threads, engine=engine)["values"],
        "distance": lambda engine: barchan.distance(mesh, places, threads=options.threads, engine=engine),
    }
    for name, work in works.items():
        times, answers, others = {"cpu": [], "gl": []}, {}, []
        for repeat in range(options.repeats):
            for engine, seconds in times.items():
                note = "%s, %s, %d of %d" % (name, engine, repeat + 1, options.repeats)
                wait_for_quiet(report.show)
                report.show(note)
                watch, begin = Others(), time.perf_counter()
                answers[engine] = work(engine)
                seconds.append(time.perf_counter() - begin)
                others.append(watch.cores())
                report.advance(note)
        if not np.array_equal(answers["cpu"], answers["gl"]):
            raise SystemExit("%s: the device's answer is another one than the processor's." % name)
        cpu, gl = min(times["cpu"]), min(times["gl"])
        report.result(
            work="mesh-gl " + name,
            n=len(answers["cpu"]),
            rate=round(len(answers["cpu"]) / gl / 1e6, 4),
            peer_rate=round(len(answers["cpu"]) / cpu / 1e6, 4),
            ratio=round(cpu / gl, 3),
            threads=options.threads,
            repeats=options.repeats,
            spread=round(spread(times["gl"]), 3),
            peer_spread=round(spread(times["cpu"]), 3),
            other_cpu=round(max(others), 2),
            milliseconds=round(1e3 * gl, 1),
            peer_milliseconds=round(1e3 * cpu, 1),
            peer="the cpu engine",
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--sleep", action="store_true")
    parser.add_argument("--mesh", action="store_true")
    parser.add_argument("--mesh-gl", action="store_true")
    parser.add_argument("--cache", action="store_true")
    parser.add_argument("--gl", action="store_true")
    parser.add_argument(
        "--work", action="append", choices=WORKS, help="only this comparison; may be given several times"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", type=pathlib.Path, help="folder of the peers' harness")
    parser.add_argument("--peer-python", help="Python of the LAMMPS environment; PEERS_HOME names the folder around it")
    parser.add_argument("--out", default=ROOT / "bench", help="folder of the CSV")
    parser.add_argument("--scratch", type=pathlib.Path, default=ROOT / "build" / "bench-mesh", help="folder of points")
    parser.add_argument(
        "--command", default=" ".join(["bench.py", *sys.argv[1:]]), help="what to write down as the command"
    )
    options = parser.parse_args()
    others = options.scaling or options.sleep or options.mesh or options.mesh_gl or options.cache or options.gl
    wants_comparison = not options.gl and (bool(options.work) or not others)
    options.work = options.work or list(WORKS)
    total = len(options.work) * (1 + len(SHEARS)) * options.repeats if wants_comparison else 0
    total += 1 + len(SCALING_TILES) * (1 + options.repeats) if options.scaling else 0
    total += 2 + 2 * options.repeats if options.sleep else 0
    total += 3 * 2 * options.repeats if options.mesh_gl else 0
    total += len(MESH_POINTS) * (1 + len(MESH_PROGRAMS)) * options.repeats if options.mesh else 0
    total += 1 + options.repeats if options.cache else 0
    total += len(options.work) * (2 * options.repeats + 1) if options.gl else 0
    report = Report(options.out, options.command, total)
    if wants_comparison:
        compare_all(options, report)
    if options.scaling:
        scaling(options, report)
    if options.sleep:
        sleep(options, report)
    if options.cache:
        cache(options, report)
    if options.mesh:
        mesh_points(options, report)
    if options.mesh_gl:
        mesh_engines(options, report)
    if options.gl:
        compare_engines(options, report)


if __name__ == "__main__":
    main()
