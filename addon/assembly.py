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


def grain_shape(shape, radius):
    """Sphere offsets (K,3) and radii (K,) of a grain in metres, and its bounding radius."""
    if shape == "SPHERE":
        offsets = np.zeros((1, 3), np.float32)
    else:
        offsets = engine.core.tetrahedron(radius)
    radii = np.full(len(offsets), radius, np.float32)
    return offsets, radii, float(np.linalg.norm(offsets, axis=1).max() + radius)


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


# ---------------------------------------------------------------------------------------------------------------------
# The scene


@dataclasses.dataclass(frozen=True)
class Assembled:
    scene: object  # barchan.Scene
    poses: tuple  # of every body of the job: centre of mass (3,) and turn (4,) on the first frame, float32
    body_count: int  # elements at the front that are no grains: bodies and rough colliders that move
    body_names: tuple  # in the order of sim.loads()["bodies"]
    collider_names: tuple  # in the order of sim.loads()["colliders"]
    sources: np.ndarray  # (elements,) int32: which of source_names each came from
    source_names: tuple  # of objects: bodies, rough colliders that move, sand, emitters
    shape_names: tuple  # in the order of the scene's shapes
    material_names: tuple  # in the order of the scene's materials: who has it first
    materials: tuple  # dicts of numbers, as the core was given them


class _Assembler:
    """The parts of the scene while they are put together."""

    def __init__(self, the_job, warnings, cancel, stop_if_cancelled):
        self.job = the_job
        self.warnings = warnings
        self.cancel = cancel
        self.stop_if_cancelled = stop_if_cancelled
        self.offsets, self.radii, self.bound = grain_shape(the_job.shape, the_job.radius)
        self.materials = []
        self.shapes, self.shape_of = [], {}
        self.positions, self.turns, self.velocities, self.spins = [], [], [], []
        self.element_shapes, self.element_materials, self.element_sources = [], [], []
        self.source_names, self.shape_names, self.material_names = [], [], []
        self.emitter_sources = []
        self.body_rows, self.body_names = [], []
        self.spheres = []  # per body: world centres (K,3) float32, radius
        self.colliders, self.collider_names = [], []
        self.surfaces = []  # (collider's name, Mesh in world space on the first frame)
        self.walls, self.wall_material = [], 0  # walls: (collider's name, centres in world space)
        self.material(the_job.density, job.Contact(the_job.friction, the_job.restitution), "Sand")

    def material(self, density, contact, name):
        """Index of the material of these numbers; a new one is named."""
        # Shear with a history: the viscous kind lets a heap creep, this one stands still, and costs little more.
        found = {
            "density": float(density),
            "young": float(contact.stiffness),
            "restitution": float(contact.restitution),
            "friction": float(contact.friction),
            "shear": "history",
        }
        if found not in self.materials:
            self.materials.append(found)
            self.material_names.append(name)
        if len(self.materials) > MATERIAL_LIMIT:
            raise BakeError(
                f"The sand, bodies and colliders are of more than {MATERIAL_LIMIT} different materials; "
                "give some of them the same density, friction, restitution and stiffness"
            )
        return self.materials.index(found)

    def source(self, name):
        """Index of a new source of elements: an object."""
        self.source_names.append(name)
        return len(self.source_names) - 1

    def shape(self, name, key, *parts):
        """Index of the shape of this key, made of (offsets, radii) or (offsets, radii, body) and named when it is new."""
        if key not in self.shape_of:
            self.shape_of[key] = len(self.shapes)
            self.shapes.append(parts)
            self.shape_names.append(name)
        return self.shape_of[key]

    def element(self, name, position, turn, shape, material, velocity=(0.0, 0.0, 0.0), spin=(0.0, 0.0, 0.0)):
        """One more at the end, from the object of that name; its index."""
        self.positions.append(np.asarray(position, np.float32).reshape(1, 3))
        self.turns.append(np.asarray(turn, np.float32).reshape(1, 4))
        self.velocities.append(np.asarray(velocity, np.float32).reshape(1, 3))
        self.spins.append(np.asarray(spin, np.float32).reshape(1, 3))
        self.element_shapes.append(np.full(1, shape, np.int32))
        self.element_materials.append(np.full(1, material, np.int32))
        self.element_sources.append(np.full(1, self.source(name), np.int32))
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
            shape = self.shape(one.name, key, made[key].centres, made[key].radii, made[key].body)
            self._add_body(one, made[key], shape)

    def _add_body(self, one, spheres, shape):
        volume, centre = spheres.body[0], spheres.body[1:4]
        density = one.mass / volume if one.mass > 0.0 else one.density
        turned = rotation(one.turn)
        material = self.material(density, one.contact, one.name)
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
            contact = self.material(self.job.density, one.contact, one.name)
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

    def blocked(self, points, has_bodies):
        """Mask of the grains' places that touch a collider or, if wanted, a body; and which one most of them touch."""
        mask, most, name_of_most = np.zeros(len(points), bool), 0, ""
        for name, near in self._obstructions(points, has_bodies):
            mask |= near
            if int(near.sum()) > most:
                most, name_of_most = int(near.sum()), name
        return mask, name_of_most

    def _obstructions(self, points, has_bodies):
        """Name and mask of everything that grains at these places may touch."""
        for name, mesh in self.surfaces:
            yield f"collider '{name}'", near_surface(points, mesh, self.bound, self.job.threads)
        for name, centres in self.walls:
            yield f"collider '{name}'", near_any(points, centres, self.bound + self.job.radius)
        for name, (centres, radius) in zip(self.body_names, self.spheres) if has_bodies else ():
            reach = self.bound + radius
            near = ((points >= centres.min(axis=0) - reach) & (points <= centres.max(axis=0) + reach)).all(axis=1)
            near[near] = near_any(points[near], centres, reach)
            yield f"body '{name}'", near

    def add_sand(self):
        """Fills the meshes; what touches something is left out."""
        core, the_job = engine.core, self.job
        parts, sources, left_out = [], [], 0
        for index, source in enumerate(the_job.sand):
            mesh = core.Mesh(source.vertices, source.triangles, name=source.name)
            points = core.fill(
                mesh,
                spacing=FILL_SPACING * self.bound,
                clearance=self.bound,
                jitter=FILL_JITTER,
                seed=the_job.seed + index,
            )
            self.stop_if_cancelled()
            mask, _name = self.blocked(points, has_bodies=True)
            for other in parts:
                mask |= near_any(points, other, 2 * self.bound)
            left_out += int(mask.sum())
            parts.append(points[~mask])
            sources.append(np.full(len(parts[-1]), self.source(source.name), np.int32))
        points = np.ascontiguousarray(np.concatenate(parts)) if parts else np.zeros((0, 3), np.float32)
        if the_job.sand and len(points) == 0:
            raise BakeError(
                f"No grain is left: each of the {left_out} that fit touches a collider or body; "
                "move the sand away from the colliders or use smaller grains"
            )
        if left_out:
            self.warnings.append(
                f"{left_out} of {left_out + len(points)} grains were left out because they touch a collider, a body or "
                "other sand"
            )
        if len(points) == 0:
            return
        zeros = np.zeros((len(points), 3), np.float32)
        self.positions.append(points)
        self.turns.append(random_turns(len(points), the_job.seed))
        self.velocities.append(zeros)
        self.spins.append(zeros)
        self.element_shapes.append(np.full(len(points), self.grain(), np.int32))
        self.element_materials.append(np.zeros(len(points), np.int32))
        self.element_sources.append(np.concatenate(sources))

    def grain(self):
        """Index of the grains' shape."""
        return self.shape(self.job.shape.capitalize(), "grain", self.offsets, self.radii)

    def _places(self, one, seed):
        """Where the grains of an emitter appear, in a random order, so that they do not come row by row."""
        core = engine.core
        mesh = core.Mesh(one.vertices, one.triangles, name=one.name)
        spacing = FILL_SPACING * self.bound
        if one.emit_from == "SURFACE":
            points = core.spread(mesh, spacing, seed=seed, threads=self.job.threads, cancel=self.cancel)
        else:
            points = core.fill(mesh, spacing=spacing, clearance=self.bound, jitter=FILL_JITTER, seed=seed)
        self.stop_if_cancelled()
        mask, name = self.blocked(points, has_bodies=False)  # bodies may move away
        if mask.all():
            raise BakeError(
                f"Emitter '{one.name}' has no free place: {name} is where its {len(points)} grains would appear; "
                "move the emitter out of it"
            )
        points = points[~mask]
        return np.ascontiguousarray(points[np.random.default_rng(seed).permutation(len(points))])

    def _warn_of_enclosed(self, one):
        """A closed collider holds grains in as well as out: an emitter that lies all in one is perhaps a mistake."""
        for name, mesh in self.surfaces:
            if mesh.is_closed and (engine.core.distance(mesh, one.vertices, threads=self.job.threads) < 0.0).all():
                self.warnings.append(
                    f"Emitter '{one.name}' is inside the closed collider '{name}', which its grains cannot leave"
                )

    def emitters(self):
        rows = []
        for index, one in enumerate(self.job.emitters):
            if one.end <= one.begin:
                continue
            end = one.end
            if one.target_count:  # a grain is due every 1 / rate s, the first at once: half an interval after the last
                end = min(end, one.begin + (one.target_count - 0.5) / one.rate)
            rows.append(
                {
                    "positions": self._places(one, self.job.seed + len(self.job.sand) + index),
                    "velocity": one.velocity,
                    "rate": one.rate,
                    "begin": one.begin,
                    "end": end,
                    "shape": self.grain(),
                    "material": 0,
                }
            )
            self.emitter_sources.append(self.source(one.name))
            self._warn_of_enclosed(one)
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
        scene = engine.core.Scene(
            shapes=self.shapes,
            materials=self.materials,
            gravity=the_job.gravity,
            max_overlap=the_job.max_overlap,
            max_speed=the_job.max_speed,
            sleep_speed=the_job.sleep_speed,
            seed=the_job.seed,
            measures=measures,
            **options,
        )
        emitted = scene.grains()["emitters"][sum(map(len, self.positions)) :]
        self.element_sources.append(np.array(self.emitter_sources, np.int32)[emitted])
        poses = tuple((self.positions[i][0], self.turns[i][0]) for i in range(len(the_job.bodies)))
        return Assembled(
            scene=scene,
            poses=poses,
            body_count=body_count,
            body_names=tuple(self.body_names),
            collider_names=tuple(self.collider_names),
            sources=np.concatenate(self.element_sources),
            source_names=tuple(self.source_names),
            shape_names=tuple(self.shape_names),
            material_names=tuple(self.material_names),
            materials=tuple(self.materials),
        )


def assemble(the_job, warnings, cancel=None, stop_if_cancelled=lambda: None, measures=None):
    """Assembled. Adds sentences to warnings; raises BakeError or what the core raises. cancel: a barchan.Cancel.
    measures: of the scene of an earlier bake that this one goes on from, Scene.measures."""
    return _Assembler(the_job, warnings, cancel, stop_if_cancelled).make(measures)
