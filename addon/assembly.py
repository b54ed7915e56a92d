# SPDX-License-Identifier: GPL-3.0-or-later
"""assembly: a job -> the scene that is simulated. Imports no bpy.

Comes in: job.Job. Goes out: Assembled: a barchan.Scene whose elements are the bodies, in the order of the job, then rough
colliders that move, then sand, then what emitters will make; or one sentence. Sand that would start in a body or a
collider is left out; a body that would is refused.
"""

import dataclasses

import numpy as np

from . import engine, job
from .job import BakeError

# Room between neighbouring grains at the start, in bounding radii: 2 is touching, the rest is free for jitter, so that
# the first rows do not fall as a crystal.
FILL_SPACING = 2.05
FILL_JITTER = 1.0

MATERIAL_LIMIT = 64  # of the core
OVERLAP_ALLOWED = 0.05  # radii by which a body may stand in a collider at the start: what rounding and resting leave
BODIES_OVERLAP_ALLOWED = 0.5  # smallest radii by which two bodies may, as the core has it


SIZE_STEP = 1.36  # largest over smallest size of the grains that share a lattice when a mesh is filled
SIZE_SAMPLE = 4096  # sizes drawn to know a distribution
EMITTED_SIZES = 8  # different sizes of grains that an emitter gives, in turn
PLACES_TRIED = 4  # places of a moving emitter that a grain tries before it is left out


@dataclasses.dataclass(frozen=True)
class Kind:
    """One sort of grains, as the core takes it."""

    name: str  # for people
    offsets: np.ndarray  # (K,3) float32, m
    radii: np.ndarray  # (K,) float32, m
    body: np.ndarray | None  # (10,) float64 of the mesh that the spheres stand for; None = of the spheres
    bound: float  # m, radius of a sphere around its centre of mass that holds it
    uid: int  # of a CUSTOM grain's object, 0 for the others

    def centred(self):
        """The offsets from the centre of mass; the shapes of equal spheres are made about it."""
        return self.offsets if self.body is None else (self.offsets - self.body[1:4]).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class GrainShape:
    """A shape that grains of the scene have, for playback: spheres from the centre of mass, at size 1."""

    index: int  # among the scene's shapes, as the frames' array "shape" has it
    name: str
    offsets: np.ndarray  # (K,3) float32, m
    radii: np.ndarray  # (K,) float32, m
    uid: int  # of a CUSTOM grain's object, 0 for the others


def make_kind(grains, seed=0, threads=0, cancel=None):
    """The Kind of a job.Grains. BakeError, or what the core raises."""
    core = engine.core
    if grains.shape == "CUSTOM":
        mesh = core.Mesh(grains.mesh.vertices, grains.mesh.triangles, name=grains.mesh.name)
        made = core.clump(mesh, sphere_count=grains.clump_count, seed=seed, threads=threads, cancel=cancel)
        if made["body"] is None or not made["body"][0] > 0.0:
            raise BakeError(
                f"Grain object '{grains.mesh.name}' has no volume because its mesh is open or flat; close its holes or choose "
                "another object"
            )
        offsets = np.ascontiguousarray(made["centres"], np.float32)
        radii = np.ascontiguousarray(made["radii"], np.float32)
        body = np.asarray(made["body"], np.float64)
        bound = float((np.linalg.norm(offsets - body[1:4], axis=1) + radii).max())
        return Kind(grains.mesh.name, offsets, radii, body, bound, grains.mesh.uid)
    offsets, radii = core.shape(grains.shape.lower(), grains.radius, count=grains.rod_count)
    bound = float(np.linalg.norm(offsets, axis=1).max() + grains.radius)
    return Kind(grains.shape, offsets, radii, None, bound, 0)


def draw_sizes(grains, seed, count):
    """Random sizes of count grains against the one set, float32."""
    if grains.size_kind == "EQUAL" or grains.size_high <= grains.size_low:
        return np.ones(count, np.float32)
    return engine.core.sizes(
        grains.size_kind.lower(), grains.size_low, grains.size_high, grains.size_spread, seed=seed, count=count
    )


def near_any(points, others, distance):
    """Mask of the points that have one of the others within distance (m). Cells of that size, 27 of them looked at."""
    near = np.zeros(len(points), bool)
    if len(points) == 0 or len(others) == 0:
        return near
    origin = np.minimum(points.min(axis=0), others.min(axis=0)).astype(np.float64)
    point_cells = ((points - origin) / distance).astype(np.int64) + 1
    other_cells = ((others - origin) / distance).astype(np.int64) + 1
    size_y, size_z = (np.maximum(point_cells.max(axis=0), other_cells.max(axis=0)) + 2)[1:]
    strides = np.array((size_y * size_z, size_z, 1), np.int64)
    other_keys = other_cells @ strides
    order = np.argsort(other_keys, kind="stable")
    other_keys = other_keys[order]
    others = others[order]
    point_keys = point_cells @ strides
    for offset in np.ndindex(3, 3, 3):
        keys = point_keys + (np.array(offset) - 1) @ strides
        first = np.searchsorted(other_keys, keys, side="left")
        last = np.searchsorted(other_keys, keys, side="right")
        open_points = np.flatnonzero((first < last) & ~near)
        while len(open_points):
            difference = points[open_points] - others[first[open_points]]
            hit = (difference * difference).sum(axis=1) < distance * distance
            near[open_points[hit]] = True
            open_points = open_points[~hit]
            first[open_points] += 1
            open_points = open_points[first[open_points] < last[open_points]]
    return near


def near_surface(points, mesh, limit, threads):
    """Mask of the points within limit (m) of the mesh, on either side of it."""
    low, high = mesh.bounds
    near = ((points >= low - limit) & (points <= high + limit)).all(axis=1)
    if near.any():
        inside = np.ascontiguousarray(points[near], np.float32)
        near[near] = np.abs(engine.core.distance(mesh, inside, threads=threads)) < limit
    return near


# ---------------------------------------------------------------------------------------------------------------------
# Rotations: quaternions w x y z, float64


def multiply(a, b):
    """Quaternions (..., 4): first b, then a."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a, np.float64), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b, np.float64), -1, 0)
    return np.stack(
        (
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ),
        axis=-1,
    )


def inverse(q):
    return np.asarray(q, np.float64) * (1.0, -1.0, -1.0, -1.0)


def rotation(q):
    """Matrices (..., 3, 3) of unit quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(q, np.float64), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def random_turns(count, seed):
    """Uniformly random rotations (Shoemake 1992), (count, 4) float32."""
    a, b, c = np.random.default_rng(seed).random((3, count))
    b, c = 2 * np.pi * b, 2 * np.pi * c
    parts = (np.sqrt(1 - a) * np.sin(b), np.sqrt(1 - a) * np.cos(b), np.sqrt(a) * np.sin(c), np.sqrt(a) * np.cos(c))
    return np.stack(parts, axis=1).astype(np.float32)


# ---------------------------------------------------------------------------------------------------------------------
# Bodies as spheres


def _thin_body(one, mesh, radius, options):
    """The spheres of a body in which none of them has room: on its surface, so that they stand out of it."""
    made = engine.core.sample(mesh, radius, **options)
    made["warnings"].append(
        f"Body '{one.name}' is too thin for spheres of radius {radius:.3g} m, which stand out of it now; "
        "give it a smaller sphere radius"
    )
    return made


def sample_body(one, radius, seed, threads, cancel=None):
    """The spheres that stand for a job.Body: job.Spheres, and a list of warnings. BakeError, or what the core raises."""
    if one.spheres is not None:
        return one.spheres, []
    core = engine.core
    mesh = core.Mesh(one.vertices, one.triangles, name=one.name)
    radius = one.radius or radius
    options = {"seed": seed, "threads": threads, "cancel": cancel}
    made = {"body": None}  # of an open mesh, which cannot be filled
    if one.fill == "VOLUME":
        try:
            made = core.pack(mesh, radius, kind="relaxed", packing=0.6, calibrate=True, **options)
        except core.MeshError:
            if mesh.is_closed:
                raise
    else:
        try:
            # Inside, touching the surface: what stands exactly on a floor, or on another body, touches it.
            made = core.sample(mesh, radius, offset=-radius, **options)
        except core.MeshError:
            made = _thin_body(one, mesh, radius, options)
    if made["body"] is None or not made["body"][0] > 0.0:
        raise BakeError(
            f"Body '{one.name}' has no volume because its mesh is open or flat, so it has no mass; "
            "close its holes, give it a thickness or make it a collider"
        )
    centres = np.ascontiguousarray(made["centres"], np.float32)
    radii = np.full(len(centres), made["radius"], np.float32)
    return job.Spheres(centres, radii, np.asarray(made["body"], np.float64)), list(made["warnings"])


def _cluster_body(centres, radius):
    """The ten numbers of a cluster whose mass does not matter, for it never moves freely: equal points of that radius."""
    centre = centres.mean(axis=0, dtype=np.float64)
    x, y, z = (centres - centre).T.astype(np.float64)
    volume = len(centres) * 4.0 / 3.0 * np.pi * radius**3
    share = volume / len(centres)
    own = 0.4 * volume * radius**2
    moments = [share * (b * b + c * c).sum() + own for b, c in ((y, z), (x, z), (x, y))]
    products = [-share * (a * b).sum() for a, b in ((x, y), (x, z), (y, z))]
    return np.array([volume, *centre, *moments, *products])


def _is_held(one):
    """True for a body that is moved by its animation to the end: nothing can push it away."""
    return one.track is not None and one.release <= 0.0


def _after_release(track, release):
    """The track with the motion of its last interval going on after the release, so that the body leaves with the speed
    it came with, whether or not keyframes end there."""
    samples = track.samples
    if release <= 0.0 or len(samples) < 2:
        return track
    before, last = samples[-2], samples[-1]
    turn = multiply(multiply(last[3:], inverse(before[3:])), last[3:])
    following = np.concatenate((2.0 * last[:3] - before[:3], turn / np.linalg.norm(turn)))
    return dataclasses.replace(track, samples=np.vstack((samples, following)))


def _centred(track, centre):
    """The track of the point that the object's origin is centre (m, own axes) away from."""
    samples = track.samples.copy()
    samples[:, :3] += rotation(samples[:, 3:]) @ centre
    return (0.0, track.interval, samples)


def _poses_at(track, seconds):
    """Poses (N,7) of a track at these times, straight between its samples and standing before and after them."""
    at = np.clip(np.asarray(seconds) / track.interval, 0.0, len(track.samples) - 1.0)
    index = np.minimum(at.astype(np.int64), max(0, len(track.samples) - 2))
    share = (at - index)[:, None]
    after = track.samples[np.minimum(index + 1, len(track.samples) - 1)]
    poses = (1.0 - share) * track.samples[index] + share * after
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    return poses


def _emission(one):
    """Grains that an emitter gives, as the core counts them; its target may be less."""
    count = int(np.ceil((one.end - one.begin) * one.rate * (1.0 - 1e-12)))
    return min(count, one.target_count) if one.target_count else count


# ---------------------------------------------------------------------------------------------------------------------
# The scene


@dataclasses.dataclass(frozen=True)
class Assembled:
    scene: object  # barchan.Scene
    poses: tuple  # of every body of the job: centre of mass (3,) and turn (4,) on the first frame, float32
    body_count: int  # elements at the front that are no grains: bodies and rough colliders that move
    body_names: tuple  # in the order of sim.loads()["bodies"]
    collider_names: tuple  # in the order of sim.loads()["colliders"]
    sources: np.ndarray  # (elements,) int32 into source_names: the object that an element came from
    source_names: tuple
    shape_names: tuple  # of the scene's shapes: kind of grain, or the body's name
    material_names: tuple  # of the scene's materials: who has it first
    materials: tuple  # dicts of numbers, as the core was given them
    grain_shapes: tuple  # GrainShape of every shape that grains have
    least_radius: float  # m, of the smallest sphere of any grain


class _Assembler:
    """The parts of the scene while they are put together."""

    def __init__(self, the_job, warnings, cancel, stop_if_cancelled):
        self.job = the_job
        self.warnings = warnings
        self.cancel = cancel
        self.stop_if_cancelled = stop_if_cancelled
        self.kinds = {}  # job.Grains by what it holds -> Kind
        self.grain_shapes = {}  # index of the scene's shape -> Kind
        self.materials, self.material_names = [], []
        self.shapes, self.shape_of, self.shape_names = [], {}, []
        self.scales, self.sources, self.source_names = [], [], []
        self.least_radius = np.inf
        self.positions, self.turns, self.velocities, self.spins = [], [], [], []
        self.element_shapes, self.element_materials = [], []
        self.body_rows, self.body_names = [], []
        self.spheres = []  # per body: world centres (K,3) float32, radius
        self.colliders, self.collider_names = [], []
        self.surfaces = []  # (collider's name, Mesh in world space on the first frame)
        self.walls, self.wall_material = [], 0  # walls: (collider's name, centres in world space)
        self.placed = []  # sand so far: (points, bounding radius)

    def material(self, name, density, contact, rolling=0.0, cohesion=0.0):
        """Index of the material of these numbers, which gets the name when it is new."""
        # Shear with a history: the viscous kind lets a heap creep, this one stands still, and costs little more.
        found = {
            "density": float(density),
            "young": float(contact.stiffness),
            "restitution": float(contact.restitution),
            "friction": float(contact.friction),
            "rolling": float(rolling),
            "cohesion": float(cohesion),
            "shear": "history",
        }
        if found not in self.materials:
            self.materials.append(found)
            self.material_names.append(name)
        if len(self.materials) > MATERIAL_LIMIT:
            raise BakeError(
                f"The sand, bodies and colliders are of more than {MATERIAL_LIMIT} different materials; "
                "give some of them the same numbers"
            )
        return self.materials.index(found)

    def shape(self, name, key, *parts):
        """Index of the shape of this key, made of (offsets, radii) or (offsets, radii, body) when it is new."""
        if key not in self.shape_of:
            self.shape_of[key] = len(self.shapes)
            self.shapes.append(parts)
            self.shape_names.append(name)
        return self.shape_of[key]

    def kind(self, grains):
        """The Kind of grains, its shape's index and its material's."""
        key = (grains.radius, grains.shape, grains.rod_count, grains.clump_count)
        if grains.mesh is not None:
            key += (grains.mesh.vertices.tobytes(), grains.mesh.triangles.tobytes())
        if key not in self.kinds:
            self.kinds[key] = make_kind(grains, self.job.seed, self.job.threads, self.cancel)
            self.stop_if_cancelled()
        kind = self.kinds[key]
        parts = (kind.offsets, kind.radii) if kind.body is None else (kind.offsets, kind.radii, kind.body)
        shape = self.shape(kind.name, ("grain", key), *parts)
        self.grain_shapes[shape] = kind
        gravity = float(np.linalg.norm(self.job.gravity)) or engine.core.presets.STANDARD_GRAVITY
        cohesion = engine.core.presets.cohesion_of(grains.bond, float(kind.radii.mean()), grains.density, gravity)
        contact = job.Contact(grains.friction, grains.restitution)
        return kind, shape, self.material("Sand", grains.density, contact, grains.rolling, cohesion)

    def source(self, name, count):
        """The next count elements came from the object of this name."""
        if name not in self.source_names:
            self.source_names.append(name)
        self.sources.append(np.full(count, self.source_names.index(name), np.int32))

    def element(self, name, position, turn, shape, material, velocity=(0.0, 0.0, 0.0), spin=(0.0, 0.0, 0.0)):
        """One more at the end; its index."""
        self.positions.append(np.asarray(position, np.float32).reshape(1, 3))
        self.turns.append(np.asarray(turn, np.float32).reshape(1, 4))
        self.velocities.append(np.asarray(velocity, np.float32).reshape(1, 3))
        self.spins.append(np.asarray(spin, np.float32).reshape(1, 3))
        self.element_shapes.append(np.full(1, shape, np.int32))
        self.element_materials.append(np.full(1, material, np.int32))
        self.scales.append(np.ones(1, np.float32))
        self.source(name, 1)
        return len(self.positions) - 1

    # Bodies

    def add_bodies(self):
        """One element each, in the order of the job; equal meshes share their spheres."""
        made = {}
        for one in self.job.bodies:
            for value, what, unit in ((one.density, "density", "kg/m\u00b3"), (one.mass, "mass", "kg")):
                if not np.isfinite(value) or value < 0.0 or (what == "density" and value == 0.0):
                    raise BakeError(f"Body '{one.name}' has a {what} of {value:g} {unit}; give it one above 0")
            if one.spheres is not None:
                key = (one.spheres.centres.tobytes(), one.spheres.radii.tobytes(), one.spheres.body.tobytes())
            else:
                key = (one.vertices.tobytes(), one.triangles.tobytes(), one.fill, one.radius)
            if key not in made:
                made[key], found = sample_body(one, self.job.radius, self.job.seed, self.job.threads, self.cancel)
                self.warnings.extend(found)
                self.stop_if_cancelled()
            self._add_body(one, made[key], self.shape(one.name, key, made[key].centres, made[key].radii, made[key].body))

    def _add_body(self, one, spheres, shape):
        volume, centre = spheres.body[0], spheres.body[1:4]
        density = one.mass / volume if one.mass > 0.0 else one.density
        turned = rotation(one.turn)
        material = self.material(one.name, density, one.contact)
        grain = self.element(
            one.name, one.place + turned @ centre, one.turn, shape, material, one.velocity, one.spin
        )
        row = {"grain": grain}
        if one.track is not None:
            row["track"] = _centred(_after_release(one.track, one.release), centre)
            row["release"] = one.release
        self.body_rows.append(row)
        self.body_names.append(one.name)
        self.spheres.append(((one.place + spheres.centres @ turned.T).astype(np.float32), float(spheres.radii.max())))

    def check_bodies(self):
        """Refuses bodies that stand in a collider or in each other, by their names. What is never let go may."""
        for index, one in enumerate(self.job.bodies):
            if not _is_held(one):
                self._check_surfaces(one.name, *self.spheres[index])
        lows = np.array([centres.min(axis=0) - radius for centres, radius in self.spheres]).reshape(-1, 3)
        highs = np.array([centres.max(axis=0) + radius for centres, radius in self.spheres]).reshape(-1, 3)
        least = min([self.job.radius] + [radius for _centres, radius in self.spheres])
        held = [_is_held(one) for one in self.job.bodies] + [True] * (len(self.spheres) - len(self.job.bodies))
        for i in range(len(self.job.bodies)):
            boxes = (lows[i] < highs[i + 1 :]).all(axis=1) & (lows[i + 1 :] < highs[i]).all(axis=1)
            for j in np.flatnonzero(boxes) + i + 1:
                limit = self.spheres[i][1] + self.spheres[j][1] - BODIES_OVERLAP_ALLOWED * least
                if not (held[i] and held[j]) and near_any(self.spheres[i][0], self.spheres[j][0], limit).any():
                    raise BakeError(
                        f"Body '{self.body_names[i]}' overlaps '{self.body_names[j]}' at the start; move them apart"
                    )

    def _check_surfaces(self, name, centres, radius):
        reach = (1.0 - OVERLAP_ALLOWED) * radius
        near = [(other, near_surface(centres, mesh, reach, self.job.threads)) for other, mesh in self.surfaces]
        near += [(other, near_any(centres, points, reach + self.job.radius)) for other, points in self.walls]
        for other, mask in near:
            if mask.any():
                raise BakeError(
                    f"Body '{name}' overlaps collider '{other}' at the start; move it, or select it and press Push Out"
                )

    # Colliders

    def add_colliders(self):
        """Smooth ones as meshes; rough ones as walls of spheres or, where they move, as driven clusters of them."""
        core = engine.core
        for index, one in enumerate(self.job.colliders):
            mesh = core.Mesh(one.vertices, one.triangles, name=one.name)
            contact = self.material(one.name, self.job.density, one.contact)
            if one.is_rough:
                # Two spheres of the wall's own radius at most one radius apart leave no hole for a third of that size.
                centres = core.cover(mesh, spacing=self.job.radius, seed=self.job.seed + index)
                self._add_rough(one, centres, contact)
            else:
                self._add_smooth(one, mesh, contact)
            self.stop_if_cancelled()

    def _add_smooth(self, one, mesh, contact):
        row = {"mesh": mesh, "material": contact}
        if one.track is not None:
            place, turn = one.track.samples[0, :3], one.track.samples[0, 3:]
            world = (one.vertices @ rotation(turn).T + place).astype(np.float32)
            row["track"] = (0.0, one.track.interval, one.track.samples)
            mesh = engine.core.Mesh(world, one.triangles, name=one.name)
        elif one.frames is not None:
            row["frames"] = (0.0, one.frames_interval, one.frames)
        self.colliders.append(row)
        self.collider_names.append(one.name)
        self.surfaces.append((one.name, mesh))

    def _add_rough(self, one, centres, contact):
        if one.track is None and (not self.walls or contact == self.wall_material):
            self.walls.append((one.name, centres))
            self.wall_material = contact
            return
        # Walls have one material and stand still: another one, or one that moves, is a cluster that is never let go.
        track = one.track or job.Track(1.0, np.array([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]))
        body = _cluster_body(centres, self.job.radius)
        radii = np.full(len(centres), self.job.radius, np.float32)
        place, turn = track.samples[0, :3], track.samples[0, 3:]
        turned = rotation(turn)
        shape = self.shape(one.name, ("rough", one.name), centres, radii, body)
        grain = self.element(one.name, place + turned @ body[1:4], turn, shape, contact)
        self.body_rows.append({"grain": grain, "track": _centred(track, body[1:4]), "release": 0.0})
        self.body_names.append(one.name)
        self.spheres.append(((place + centres @ turned.T).astype(np.float32), self.job.radius))

    # Grains

    def blocked(self, points, bound, has_bodies):
        """Mask of the places of grains of this bounding radius (m) that touch a collider or, if wanted, a body; and which one
        most of them touch."""
        mask, most, name_of_most = np.zeros(len(points), bool), 0, ""
        for name, near in self._obstructions(points, bound, has_bodies):
            mask |= near
            if int(near.sum()) > most:
                most, name_of_most = int(near.sum()), name
        return mask, name_of_most

    def _obstructions(self, points, bound, has_bodies):
        """Name and mask of everything that grains at these places may touch."""
        for name, mesh in self.surfaces:
            yield f"collider '{name}'", near_surface(points, mesh, bound, self.job.threads)
        for name, centres in self.walls:
            yield f"collider '{name}'", near_any(points, centres, bound + self.job.radius)
        for name, (centres, radius) in zip(self.body_names, self.spheres) if has_bodies else ():
            reach = bound + radius
            near = ((points >= centres.min(axis=0) - reach) & (points <= centres.max(axis=0) + reach)).all(axis=1)
            near[near] = near_any(points[near], centres, reach)
            yield f"body '{name}'", near

    def _size_classes(self, grains, seed):
        """Sizes in groups that may share a lattice, the largest first: (sizes drawn, share of the space) of each."""
        drawn = np.sort(draw_sizes(grains, seed, SIZE_SAMPLE))
        count = max(1, int(np.ceil(np.log(drawn[-1] / drawn[0]) / np.log(SIZE_STEP) - 1e-9)))
        edges = drawn[0] * (drawn[-1] / drawn[0]) ** (np.arange(1, count) / count)
        groups = [group for group in np.split(drawn, np.searchsorted(drawn, edges)) if len(group)][::-1]
        space = np.array([len(group) * float(group[-1]) ** 3 for group in groups])
        return list(zip(groups, space / space.sum()))

    def _fill(self, source, seed):
        """Grains in one mesh: points (N,3) and sizes (N,) of what is free, and how many were left out. Large grains take their
        share of a wide lattice, smaller ones what that leaves of a narrower one."""
        core, the_job = engine.core, self.job
        grains = source.grains or the_job.scene_grains
        kind, shape, material = self.kind(grains)
        mesh = core.Mesh(source.vertices, source.triangles, name=source.name)
        random = np.random.default_rng(seed)
        own, left_out, refusal = [], 0, None
        classes = self._size_classes(grains, seed)
        for sizes, share in classes:
            bound = kind.bound * float(sizes[-1])
            try:
                points = core.fill(
                    mesh, spacing=FILL_SPACING * bound, clearance=bound, jitter=FILL_JITTER, seed=seed
                )
            except core.MeshError as error:  # no room for the large ones is no reason to leave out the small ones
                refusal = error
                continue
            self.stop_if_cancelled()
            mask, _name = self.blocked(points, bound, has_bodies=True)
            for other, reach in self.placed:
                mask |= near_any(points, other, bound + reach)
            left_out += round(share * int(mask.sum()))
            wanted = round(share * int((~mask).sum()))
            for other, _sizes, reach in own:
                mask |= near_any(points, other, bound + reach)
            points = points[~mask]
            if len(classes) > 1:
                points = points[np.sort(random.permutation(len(points))[:wanted])]
            own.append((points, random.choice(sizes, len(points)), bound))
        if not own:
            raise refusal
        self.placed += [(points, bound) for points, _sizes, bound in own if len(points)]
        count = sum(len(points) for points, _sizes, _bound in own)
        if count:
            self.positions.append(np.concatenate([row[0] for row in own]))
            self.scales.append(np.concatenate([row[1] for row in own]).astype(np.float32))
            self.element_shapes.append(np.full(count, shape, np.int32))
            self.element_materials.append(np.full(count, material, np.int32))
            self.source(source.name, count)
            self.least_radius = min(self.least_radius, float(kind.radii.min()) * float(self.scales[-1].min()))
        return count, left_out

    def add_sand(self):
        """Fills the meshes; what touches something is left out."""
        the_job = self.job
        found = [self._fill(source, the_job.seed + index) for index, source in enumerate(the_job.sand)]
        count, left_out = (sum(numbers) for numbers in zip(*found)) if found else (0, 0)
        if the_job.sand and count == 0:
            raise BakeError(
                f"No grain is left: each of the {left_out} that fit touches a collider or body; "
                "move the sand away from the colliders or use smaller grains"
            )
        if left_out:
            self.warnings.append(
                f"{left_out} of {left_out + count} grains were left out because they touch a collider, a body or "
                "other sand"
            )
        if count:
            zeros = np.zeros((count, 3), np.float32)
            self.turns.append(random_turns(count, the_job.seed))
            self.velocities.append(zeros)
            self.spins.append(zeros)

    def _places(self, one, bound, seed):
        """Where the grains of an emitter appear, in a random order, so that they do not come row by row; of one that moves,
        along its own axes."""
        core = engine.core
        mesh = core.Mesh(one.vertices, one.triangles, name=one.name)
        spacing = FILL_SPACING * bound
        if one.emit_from == "SURFACE":
            points = core.spread(mesh, spacing, seed=seed, threads=self.job.threads, cancel=self.cancel)
        else:
            points = core.fill(mesh, spacing=spacing, clearance=bound, jitter=FILL_JITTER, seed=seed)
        self.stop_if_cancelled()
        if one.track is None:
            mask, name = self.blocked(points, bound, has_bodies=False)  # bodies may move away
            if mask.all():
                raise self._no_place(one, name, len(points))
            points = points[~mask]
        return np.ascontiguousarray(points[np.random.default_rng(seed).permutation(len(points))])

    def _no_place(self, one, name, count):
        return BakeError(
            f"Emitter '{one.name}' has no free place: {name} is where its {count} grains would appear; "
            "move the emitter out of it"
        )

    def _warn_of_enclosed(self, one, vertices):
        """A closed collider holds grains in as well as out: an emitter that lies all in one is perhaps a mistake."""
        for name, mesh in self.surfaces:
            if mesh.is_closed and (engine.core.distance(mesh, vertices, threads=self.job.threads) < 0.0).all():
                self.warnings.append(
                    f"Emitter '{one.name}' is inside the closed collider '{name}', which its grains cannot leave"
                )

    def _moving_places(self, one, places, bound, births):
        """Where each grain of a moving emitter appears, at the time of its birth (s): (N,3) float32, and a mask of those that
        find no free place there."""
        poses = _poses_at(one.track, births)
        turned, origins = rotation(poses[:, 3:]), poses[:, :3]
        found = np.zeros((len(births), 3), np.float32)
        is_open = np.ones(len(births), bool)
        for shift in range(min(PLACES_TRIED, len(places))):
            rows = np.flatnonzero(is_open)
            own = places[(rows + shift) % len(places)].astype(np.float64)
            found[rows] = (origins[rows] + np.einsum("nij,nj->ni", turned[rows], own)).astype(np.float32)
            is_open[rows], name = self.blocked(found[rows], bound, has_bodies=False)
            if not is_open.any():
                break
        if is_open.all():
            raise self._no_place(one, name, len(births))
        return found, is_open

    def _emitter_rows(self, one, seed):
        """One emitter as those of the core: one per size that it gives in turn and, while it moves, per stretch of its track,
        so that each grain appears where the emitter is then, with its speed."""
        grains = one.grains or self.job.scene_grains
        kind, shape, material = self.kind(grains)
        every = SIZE_SAMPLE // EMITTED_SIZES
        sizes = np.unique(np.sort(draw_sizes(grains, seed, SIZE_SAMPLE))[every // 2 :: every])
        self.least_radius = min(self.least_radius, float(kind.radii.min()) * float(sizes[0]))
        count = _emission(one)
        births = one.begin + np.arange(count) / one.rate
        turn = np.random.default_rng(seed).permutation(len(sizes))  # else grains would come from small to large
        size_of = turn[np.arange(count) % len(sizes)]
        bound = kind.bound * float(sizes[-1])
        places = self._places(one, bound, seed)
        velocities = np.array([one.velocity], np.float64)
        stretch_of = np.zeros(count, np.int64)
        if one.track is not None:
            positions, is_blocked = self._moving_places(one, places, bound, births)
            if is_blocked.any():
                self.warnings.append(
                    f"{int(is_blocked.sum())} of {count} grains of emitter '{one.name}' are left out: it passes through a collider"
                )
            size_of = np.where(is_blocked, -1, size_of)
            steps = np.diff(one.track.samples[:, :3], axis=0) / one.track.interval
            velocities = np.asarray(one.velocity) + one.inherit * steps
            stretch_of = np.clip((births / one.track.interval).astype(np.int64), 0, len(steps) - 1)
        rows = []
        for stretch in np.unique(stretch_of):
            for size, scale in enumerate(sizes):
                own = np.flatnonzero((stretch_of == stretch) & (size_of == size))
                # Grains that are left out make gaps: what comes at one rate is one emitter of the core.
                for part in np.split(own, np.flatnonzero(np.diff(own) != len(sizes)) + 1) if len(own) else ():
                    rows.append(
                        {
                            "positions": positions[part] if one.track is not None else places[part % len(places)],
                            "velocity": tuple(map(float, velocities[stretch])),
                            "rate": one.rate / len(sizes),
                            "begin": float(births[part[0]]),
                            # A grain is due every 1 / rate s, the first at once: half an interval after the last.
                            "end": float(births[part[0]] + (len(part) - 0.5) * len(sizes) / one.rate),
                            "shape": shape,
                            "material": material,
                            "scale": float(scale),
                        }
                    )
                    self.source(one.name, len(part))
        vertices = one.vertices
        if one.track is not None:
            vertices = (one.vertices @ rotation(one.track.samples[0, 3:]).T + one.track.samples[0, :3]).astype(np.float32)
        self._warn_of_enclosed(one, vertices)
        return rows

    def emitters(self):
        rows = []
        for index, one in enumerate(self.job.emitters):
            if one.end > one.begin:
                rows += self._emitter_rows(one, self.job.seed + len(self.job.sand) + index)
        return rows

    def make(self, measures):
        the_job = self.job
        self.add_bodies()
        self.add_colliders()
        self.check_bodies()
        body_count = len(self.positions)
        self.add_sand()
        emitters = self.emitters()
        if not self.positions and not emitters:
            raise BakeError("No grain comes from the emitters in the frames that are baked; change their start and stop")
        options = {}
        if self.positions:
            options["positions"] = np.ascontiguousarray(np.concatenate(self.positions))
            options["grain_shapes"] = np.concatenate(self.element_shapes)
            options["grain_materials"] = np.concatenate(self.element_materials)
            scales = np.concatenate(self.scales)
            if (scales != 1.0).any():
                options["scales"] = scales
            if body_count:  # else the core turns the grains at random
                options["orientations"] = np.concatenate(self.turns)
                options["velocities"] = np.concatenate(self.velocities)
                options["spins"] = np.concatenate(self.spins)
        else:
            options["positions"] = np.zeros((0, 3), np.float32)
        if self.walls:
            options["wall_positions"] = np.concatenate([centres for _name, centres in self.walls])
            options["wall_radius"] = the_job.radius
            options["wall_material"] = self.wall_material
        if self.colliders:
            options["colliders"] = self.colliders
        if self.body_rows:
            options["bodies"] = self.body_rows
        if emitters:
            options["emitters"] = emitters
        if the_job.outflows:
            options["outflows"] = [{"min": one.low, "max": one.high} for one in the_job.outflows]
        if the_job.forces:
            options["regions"] = [
                {"min": one.low, "max": one.high, "acceleration": one.acceleration} for one in the_job.forces
            ]
        scene = engine.core.Scene(
            shapes=self.shapes,
            materials=self.materials,
            gravity=the_job.gravity,
            max_overlap=the_job.max_overlap,
            max_speed=the_job.max_speed,
            sleep_speed=the_job.sleep_speed,
            drag=the_job.drag,
            wind=the_job.wind,
            seed=the_job.seed,
            measures=measures,
            **options,
        )
        sources = np.concatenate(self.sources) if self.sources else np.zeros(0, np.int32)
        assert len(sources) == scene.grain_count, (len(sources), scene.grain_count)
        poses = tuple((self.positions[i][0], self.turns[i][0]) for i in range(len(the_job.bodies)))
        return Assembled(
            scene=scene,
            poses=poses,
            body_count=body_count,
            body_names=tuple(self.body_names),
            collider_names=tuple(self.collider_names),
            sources=sources,
            source_names=tuple(self.source_names),
            shape_names=tuple(self.shape_names),
            material_names=tuple(self.material_names),
            materials=tuple(self.materials),
            grain_shapes=tuple(
                GrainShape(
                    index, kind.name, kind.centred(), kind.radii, kind.uid
                )
                for index, kind in sorted(self.grain_shapes.items())
            ),
            least_radius=self.least_radius if np.isfinite(self.least_radius) else the_job.radius,
        )


def assemble(the_job, warnings, cancel=None, stop_if_cancelled=lambda: None, measures=None):
    """Assembled. Adds sentences to warnings; raises BakeError or what the core raises. cancel: a barchan.Cancel.
    measures: of the scene of an earlier bake that this one goes on from, Scene.measures."""
    return _Assembler(the_job, warnings, cancel, stop_if_cancelled).make(measures)
