# SPDX-License-Identifier: GPL-3.0-or-later
"""The scenes of examples/, baked at test size: each does what its picture shows."""

import importlib
import math
import sys

import harness
from harness import FOLDER, ROOT, check, check_equal, np, room

sys.path.insert(0, str(ROOT / "examples"))

import common  # noqa: E402

UNBORN = 8  # flag of a grain that its emitter has not made yet


class Baked:
    """An example at test size: its scene, figures, and frames with bodies first."""

    def __init__(self, name):
        self.module = importlib.import_module(name)
        example = self.module.EXAMPLE
        self.size = example.size(is_small=True)
        package = harness.load_addon()
        self.scene = example.make(is_small=True)
        self.radius = self.scene.barchan.radius
        self.bound = common.BOUND * self.radius
        self.folder = FOLDER / name
        self.scene.barchan.folder = str(self.folder)
        self.figures = common.bake(self.scene, package)
        self.names = [ob.name for ob in room("export").objects_of_type(self.scene, "BODY")]
        print(f"  {name}: {self.figures}")
        check_equal(self.figures["lost"], 0, "grains lost")
        check_equal(self.figures["frames"], self.size.frames, "frames")
        for frame in (1, self.size.frames):
            position = self.arrays(frame)["position"]
            check_equal(len(position), self.figures["grains"] + self.figures["bodies"], f"rows of frame {frame}")
            check(np.isfinite(position).all(), f"frame {frame} has positions that are not finite")

    def arrays(self, frame):
        return room("engine").core.read_frame(str(self.folder), frame)["arrays"]

    def grains(self, frame):
        """Centres of the grains, m."""
        return self.arrays(frame)["position"][len(self.names) :]

    def bodies(self, frame, prefix=""):
        """Centres of mass of the bodies whose name begins so, m."""
        rows = [index for index, name in enumerate(self.names) if name.startswith(prefix)]
        return self.arrays(frame)["position"][rows]

    def way(self, first, last, prefix=""):
        """How far each of those bodies went, m."""
        return np.linalg.norm(self.bodies(last, prefix) - self.bodies(first, prefix), axis=1)

    def check_in_tray(self, places, size, what, slack):
        outside = np.maximum(np.abs(places[:, :2]) - np.array(size[:2]) / 2, 0.0).max()
        check(outside <= slack, f"{what} are up to {outside:g} m beyond the walls")
        check(places[:, 2].min() >= -slack, f"{what} are down to {places[:, 2].min():g} m, below the floor")


def test_hourglass_sand_runs_through_the_neck_and_stays_in_the_glass():
    baked = Baked("hourglass")
    glass = baked.module
    neck = glass.neck_radius_for(baked.radius)
    profile = np.array(glass.bulb_profile(neck))
    last = baked.grains(baked.size.frames)
    inside = np.interp(np.abs(last[:, 2]), profile[:, 1], profile[:, 0])
    beyond = float((np.hypot(last[:, 0], last[:, 1]) - inside).max())
    check(beyond < 0.0, f"a grain's centre is {beyond:g} m outside the glass")
    check(np.abs(last[:, 2]).max() < glass.BULB_HEIGHT, "a grain has passed an end of the glass")
    passed = int((last[:, 2] < 0.0).sum())
    print(f"  {passed} of {len(last)} grains below the neck")
    check_equal(int((baked.grains(1)[:, 2] < 0.0).sum()), 0, "grains below the neck at the start")
    check(passed > len(last) // 20, f"only {passed} grains have passed the neck")


def test_splash_ball_is_held_then_falls_into_the_bed_and_throws_sand_up():
    baked = Baked("splash")
    tray, size = baked.module.TRAY, baked.size
    start, held = baked.bodies(1)[0], baked.bodies(size.release)[0]
    check(np.abs(held - start).max() < 1e-5, "the ball moved before it was let go")
    bed = np.quantile(baked.grains(size.release)[:, 2], 0.99)
    ball = baked.bodies(size.frames)[0]
    highest = max(float(baked.grains(frame)[:, 2].max()) for frame in range(size.release, size.frames + 1))
    print(f"  bed {bed:.3f} m, ball from {start[2]:.3f} to {ball[2]:.3f} m, sand up to {highest:.3f} m")
    check(ball[2] - baked.module.BALL_RADIUS < bed, "the ball lies on the bed as if it weighed nothing")
    check(ball[2] > 0.9 * baked.module.BALL_RADIUS, "the ball sank through the floor")
    check(highest > float(baked.grains(size.release)[:, 2].max()) + baked.radius, "no sand was thrown up")
    baked.check_in_tray(baked.grains(size.frames), tray, "grains", 0.0)


def test_avalanche_runs_down_and_throws_structures_over():
    baked = Baked("avalanche")
    size = baked.size
    stood = baked.way(1, size.release)
    went = baked.way(1, size.frames)
    first, last = baked.grains(1), baked.grains(size.frames)
    moved = int((went > 0.05).sum())
    print(f"  structures moved {stood.max():.4f} m before, {went.max():.3f} m after; {moved} of {len(went)} by 5 cm")
    print(f"  sand's middle from x {first[:, 0].mean():.2f} to {last[:, 0].mean():.2f} m")
    # They fall the gaps between them, and their spheres sink into each other's dimples.
    check(stood.max() < size.body_radius, f"a structure moved {stood.max():g} m before the sand came")
    check(moved >= 3, f"only {moved} stones were moved")
    check(last[:, 0].mean() > first[:, 0].mean() + 0.8, "the sand did not run down")
    check(last[:, 2].min() > 0.0, f"a grain is at {last[:, 2].min():g} m, below the ground")
    check(baked.bodies(size.frames)[:, 2].min() > 0.0, "a stone sank into the ground")


def test_bulldozer_blade_pushes_sand_and_its_load_is_told():
    baked = Baked("bulldozer")
    size, module = baked.size, baked.module
    rows = common.read_loads(baked.folder, "Blade")
    check_equal(len(rows), size.frames, "loads of the blade")
    push = np.array([-force[0] for _seconds, force in rows])
    check(np.isfinite(push).all(), "a load is not finite")
    pushing = push[size.push + 10 : size.lift - 1]
    print(f"  load {push[: size.push - 1].mean():.1f} N before, {pushing.mean():.1f} N (at most {push.max():.1f}) while pushing")
    check(pushing.mean() > 5.0, f"the blade's mean load is {pushing.mean():g} N")
    weight = 9.81 * baked.figures["grains"] * 4 * 4 / 3 * math.pi * baked.radius**3 * baked.scene.barchan.density
    check(push.max() < 3 * weight, f"the blade's load reaches {push.max():g} N, all the sand weighs {weight:g} N")
    first, last = baked.grains(size.push), baked.grains(size.lift)
    check(last[:, 0].mean() > first[:, 0].mean() + 0.1, "the sand was not pushed along")
    check(last[:, 2].max() > first[:, 2].max(), "no heap before the blade")
    baked.check_in_tray(last, module.TRAY, "grains", 0.0)
    baked.check_in_tray(baked.bodies(size.frames), module.TRAY, "crates", 0.0)
    common.write_plot(FOLDER / "plot.svg", "Load", "s", "N", {"push": [(t, -f[0]) for t, f in rows]})
    check("<polyline" in (FOLDER / "plot.svg").read_text(), "no line in the plot")


def test_rings_fall_over_their_poles_and_stay_in_the_box():
    baked = Baked("rings")
    size, module = baked.size, baked.module
    check_equal(len(baked.names), size.side**2 * size.layers, "rings")
    spheres = baked.figures["spheres"] / len(baked.names)
    check(90 <= spheres <= 130, f"a ring has {spheres:g} spheres, Bell 2005's had 110")
    last = baked.bodies(size.frames)
    middle = (size.side - 1) / 2
    axes = np.array([((i - middle), (k - middle)) for i in range(size.side) for k in range(size.side)]) * module.POLE_STEP
    aside = np.linalg.norm(last[:, None, :2] - axes[None], axis=2).min(axis=1)
    hooked = int(((aside < module.RING[0]) & (last[:, 2] < size.height)).sum())
    print(f"  {hooked} of {len(last)} rings round a pole, lowest {last[:, 2].min():.3f} m")
    check(last[:, 2].min() > 0.3 * module.RING[1], "a ring sank into the floor")
    check(hooked >= len(last) // 2, f"only {hooked} rings are round a pole")
    wide = (size.side + 0.6) * module.POLE_STEP
    check(np.abs(last[:, :2]).max() < wide / 2, "a ring left the box")


def test_bowling_ball_is_let_go_with_the_speed_of_its_keys_and_hits_the_boxes():
    baked = Baked("bowling")
    size, module = baked.size, baked.module
    stood = baked.way(1, size.release, "Box")
    check(stood.max() < 0.004, f"a box moved {stood.max():g} m before the ball came")
    ball = baked.bodies(size.release, "Ball")[0]
    speed = float((baked.bodies(size.release + 1, "Ball")[0] - ball)[0]) * common.FPS
    went = baked.way(size.release, size.frames, "Box")
    hit = int((went > 0.05).sum())
    print(f"  ball let go at x {ball[0]:.3f} m with {speed:.2f} m/s; {hit} of {len(went)} boxes moved, up to {went.max():.2f} m")
    check(abs(speed / module.BALL_SPEED - 1) < 0.05, f"the ball rolls on with {speed:g} m/s, keys end with {module.BALL_SPEED}")
    check(hit >= len(went) // 2, f"only {hit} of {len(went)} boxes were hit")
    baked.check_in_tray(baked.bodies(size.frames), module.LANE, "bodies", 0.0)


def test_bowl_catches_the_sand_that_is_poured():
    baked = Baked("bowl")
    size, module = baked.size, baked.module
    check_equal(baked.figures["grains"], size.grains, "grains of the emitter")
    flags = baked.arrays(size.frames)["flags"]
    born = flags & UNBORN == 0
    last = baked.grains(size.frames)[born]
    wide = module.BOWL_RADIUS + module.BOWL_WALL
    caught = np.hypot(last[:, 0], last[:, 1]) < wide
    caught &= (last[:, 2] > module.BOWL_WALL) & (last[:, 2] < module.SPOUT_HEIGHT)
    print(f"  {born.sum()} of {len(born)} grains poured, {caught.sum()} of them in the bowl or above it")
    check(born.sum() > 0.9 * len(born), f"only {born.sum()} grains came")
    check(caught.sum() > 0.8 * born.sum(), f"only {caught.sum()} of {born.sum()} grains are in the bowl")
    check(last[:, 2].min() > 0.0, f"a grain is at {last[:, 2].min():g} m, below the table")


def test_tumbler_holds_sand_and_cube_and_lifts_them():
    baked = Baked("tumbler")
    size, module = baked.size, baked.module
    last, cube = baked.grains(size.frames), baked.bodies(size.frames)
    middle = module.DRUM_RADIUS + 0.06
    for what, places in (("grain", last), ("cube", cube)):
        beyond = float(np.hypot(places[:, 0], places[:, 2] - middle).max() - module.DRUM_RADIUS)
        check(beyond < 0.0, f"a {what} is {beyond:g} m outside the drum")
        aside = float(np.abs(places[:, 1]).max() - module.DRUM_LENGTH / 2)
        check(aside < 0.0, f"a {what} is {aside:g} m beyond an end of the drum")
    lean = [float(baked.grains(frame)[:, 0].mean()) for frame in (size.start, size.frames)]
    went = float(baked.way(size.start, size.frames)[0])
    print(f"  sand's middle at x {lean[0]:.3f} and {lean[1]:.3f} m, cube went {went:.3f} m")
    # A drum that turns from z to x at its top takes the sand at its bottom to -x.
    check(lean[1] < lean[0] - 0.02, "the sand does not lean with the drum")
    check(went > 0.03, f"the cube went {went:g} m")


if __name__ == "__main__":
    harness.main(globals())
