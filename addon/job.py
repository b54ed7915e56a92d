# SPDX-License-Identifier: GPL-3.0-or-later
"""job: what a bake is given, as plain arrays and numbers in SI units. Imports no bpy.

Comes in: what export read from the file. Goes out: Job, which assembly turns into a scene and bake into frames. The arrays
must not change while the bake runs.
"""

import dataclasses

import numpy as np


class BakeError(Exception):
    """A bake that cannot start or go on; the text is the sentence for the user."""


@dataclasses.dataclass(frozen=True)
class Grains:
    """Shape, sizes and material of grains."""

    radius: float = 0.02  # m, of the spheres; of no meaning for CUSTOM
    shape: str = "TETRAHEDRON"  # SPHERE, TETRAHEDRON, CUBE, ROD or CUSTOM
    rod_count: int = 3  # spheres of a ROD
    mesh: "Source | None" = None  # of a CUSTOM grain, in metres along its object's axes
    clump_count: int = 8  # spheres of a CUSTOM grain
    size_kind: str = "EQUAL"  # EQUAL, UNIFORM or LOGNORMAL
    size_low: float = 1.0  # share of the size
    size_high: float = 1.0
    size_spread: float = 0.25  # LOGNORMAL: standard deviation of the logarithm
    density: float = 2600.0  # kg/m^3
    restitution: float = 0.5
    friction: float = 0.5
    rolling: float = 0.0
    bond: float = 0.0  # pull of two touching spheres over the weight of one


@dataclasses.dataclass(frozen=True)
class Source:
    """One mesh in world space: name, (N,3) float32 vertices in metres, (M,3) int32 triangles."""

    name: str
    vertices: np.ndarray
    triangles: np.ndarray
    grains: Grains | None = None  # of sand: None = those of the job
    uid: int = 0  # which object it is: of a CUSTOM grain, for playback


@dataclasses.dataclass(frozen=True)
class Contact:
    """How the surface of an object meets what touches it."""

    friction: float = 0.5
    restitution: float = 0.3
    stiffness: float = 0.0  # Pa; 0 = as soft as the allowed overlap permits


@dataclasses.dataclass(frozen=True)
class Track:
    """Poses at 0, interval, 2 interval, ... seconds from the first frame: (S,7) float64, x y z, w x y z."""

    interval: float  # s
    samples: np.ndarray


@dataclasses.dataclass(frozen=True)
class Collider:
    """A mesh that grains bounce off. Its vertices are in world space, as they are on the first frame; along a track they
    are in metres along its own axes."""

    name: str
    vertices: np.ndarray  # (N,3) float32
    triangles: np.ndarray  # (M,3) int32
    track: Track | None = None
    frames: np.ndarray | None = None  # (F,N,3) float32 world space, one shape every frames_interval
    frames_interval: float = 0.0  # s
    contact: Contact = Contact()
    is_rough: bool = False


@dataclasses.dataclass(frozen=True)
class Spheres:
    """A body that was converted before the bake, along its object's own axes."""

    centres: np.ndarray  # (K,3) float32
    radii: np.ndarray  # (K,) float32
    body: np.ndarray  # (10,) float64: volume, centre, inertia of its mesh at density 1


@dataclasses.dataclass(frozen=True)
class Body:
    """A mesh that the sand moves: in metres along its own axes, placed by its pose on the first frame."""

    name: str
    vertices: np.ndarray  # (N,3) float32
    triangles: np.ndarray  # (M,3) int32
    place: np.ndarray  # (3,) float64, of the object's origin
    turn: np.ndarray  # (4,) float64, w x y z
    spheres: Spheres | None = None
    fill: str = "SURFACE"
    radius: float = 0.0  # m; 0 = the grains'
    density: float = 2600.0  # kg/m^3
    mass: float = 0.0  # kg; above 0 it takes the place of the density
    velocity: tuple = (0.0, 0.0, 0.0)  # m/s
    spin: tuple = (0.0, 0.0, 0.0)  # rad/s, world axes
    track: Track | None = None  # of the object's origin, while it is driven
    release: float = 0.0  # s; 0 = never let go
    contact: Contact = Contact()
    uid: int = 0  # which object it is: for playback
    matrix: np.ndarray | None = None  # (4,4) float64, of the object on the first frame: for playback


@dataclasses.dataclass(frozen=True)
class Emitter:
    """A mesh that grains come from: in world space as it is on the first frame, or, along a track, in metres along its own
    axes."""

    name: str
    vertices: np.ndarray  # (N,3) float32
    triangles: np.ndarray  # (M,3) int32
    emit_from: str = "VOLUME"
    rate: float = 500.0  # grains per second
    velocity: tuple = (0.0, 0.0, 0.0)  # m/s
    begin: float = 0.0  # s
    end: float = 0.0  # s
    target_count: int = 0  # 0 = no limit
    grains: Grains | None = None  # None = those of the job
    track: Track | None = None  # where it is over the whole bake; None = it stands
    inherit: float = 1.0  # share of its own speed that its grains get


@dataclasses.dataclass(frozen=True)
class Outflow:
    """A box in world space, m, in which grains vanish."""

    name: str
    low: tuple
    high: tuple


@dataclasses.dataclass(frozen=True)
class Force:
    """A box in world space, m, in which everything is accelerated, m/s^2."""

    name: str
    low: tuple
    high: tuple
    acceleration: tuple


@dataclasses.dataclass(frozen=True)
class Job:
    """All a bake needs."""

    sand: tuple  # of Source
    colliders: tuple  # of Collider
    folder: str
    frame_start: int
    frame_end: int
    frame_seconds: float  # s per frame
    bodies: tuple = ()
    emitters: tuple = ()
    outflows: tuple = ()
    forces: tuple = ()
    grains: Grains | None = None  # of all sand and emitters without their own; None = of the five numbers below
    drag: float = 0.0  # 1/s
    wind: tuple = (0.0, 0.0, 0.0)  # m/s
    gravity: tuple = (0.0, 0.0, -9.81)  # m/s^2
    radius: float = 0.02  # m, of a grain's spheres and of those of rough colliders
    shape: str = "TETRAHEDRON"
    restitution: float = 0.5
    friction: float = 0.5
    density: float = 2600.0  # kg/m^3
    max_overlap: float = 0.2  # share of the radius at the fastest impact
    max_speed: float = 0.0  # m/s of the fastest impact; 0 = free fall through the scene
    sleep_speed: float = 0.0  # m/s; 0 = grains never sleep
    seed: int = 0
    threads: int = 0
    engine: str = "AUTO"  # AUTO, CPU or GPU
    checkpoint_interval: int = 10  # frames
    keep_interval: int = 50  # frames between checkpoints that are kept, to bake again from; 0 = none
    is_exact: bool = False  # frames hold every bit
    byte_limit: int = 0  # of the cache folder; 0 = none

    @property
    def frame_count(self):
        return self.frame_end - self.frame_start + 1

    @property
    def scene_grains(self):
        """Grains of all that has none of its own."""
        return self.grains or Grains(
            radius=self.radius,
            shape=self.shape,
            density=self.density,
            restitution=self.restitution,
            friction=self.friction,
        )

    def emits_to_the_end(self):
        """Names of emitters that make a job of a later end frame another scene, with more grains."""
        seconds = (self.frame_end - self.frame_start) * self.frame_seconds
        return [one.name for one in self.emitters if one.end >= seconds]
