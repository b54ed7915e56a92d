"""Pictures of a cache without a Blender render: frames -> PNG files, an animated PNG, a movie where Blender's encoder is found.

Comes in: a cache folder, or grains, meshes, camera and lights that Blender's side hands over. Goes out: files that are whole or
not there. All drawing is the core's (barchan.Light); this file frames, lights and writes.
"""

import os
import struct
import subprocess
import sys
import zlib

import numpy as np

from . import cache_command, exporter
from ._core import CacheError, Cancelled, Error, Light, distance, frame_info, list_frames, read_frame, tetrahedron

HIDDEN = 8 | 16  # flags of a grain that is not yet born or was taken by an outflow
SHAPES = ("sphere", "tetrahedron")
LENS = 0.36  # half the picture's width at depth 1: 50 mm on Blender's 36 mm
NEIGHBOURS = 200  # grains whose neighbours are asked when nobody says how large grains are


# ---- files ----------------------------------------------------------------------------------------------------------


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _header(pixels):
    height, width = pixels.shape[:2]
    return _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + _chunk(b"sRGB", b"\0")


def _packed(pixels):
    """Scanlines, each the difference to the one above (filter 2), deflated."""
    rows = np.ascontiguousarray(pixels[..., :3]).reshape(len(pixels), -1)
    lines = np.empty((len(rows), rows.shape[1] + 1), np.uint8)
    lines[:, 0] = 2
    lines[0, 1:] = rows[0]
    lines[1:, 1:] = rows[1:] - rows[:-1]
    return zlib.compress(lines.tobytes(), 6)


def write_whole(path, parts):
    """Bytes into a file that is whole or not there."""
    partial = "%s.%d.tmp" % (path, os.getpid())
    try:
        with open(partial, "wb") as file:
            for part in parts:
                file.write(part)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


SIGNATURE = b"\x89PNG\r\n\x1a\n"


def write_png(path, pixels):
    """pixels: (H, W, 3 or 4) uint8, sRGB, the top row first; alpha is left out."""
    write_whole(path, [SIGNATURE, _header(pixels), _chunk(b"IDAT", _packed(pixels)), _chunk(b"IEND", b"")])


def read_png(path):
    """What write_png wrote, as (H, W, 3) uint8; ValueError for any other file."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != SIGNATURE or data[12:16] != b"IHDR" or data[24:29] != b"\x08\x02\x00\x00\x00":
        raise ValueError("'%s' is no PNG of this program." % path)
    width, height = struct.unpack(">II", data[16:24])
    at, packed = 8, b""
    while at < len(data):
        length = struct.unpack(">I", data[at : at + 4])[0]
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += length + 12
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 3 * width + 1)
    if (lines[:, 0] != 2).any():
        raise ValueError("'%s' is no PNG of this program." % path)
    return np.cumsum(lines[:, 1:], axis=0, dtype=np.uint8).reshape(height, width, 3)


def write_animation(path, paths, fps):
    """An animated PNG, which browsers play, of pictures that write_png wrote; it goes on forever."""

    def parts():
        number = 0
        for index, one in enumerate(paths):
            pixels = read_png(one)
            height, width = pixels.shape[:2]
            if index == 0:
                yield SIGNATURE + _header(pixels) + _chunk(b"acTL", struct.pack(">II", len(paths), 0))
            delay = (1000, max(1, round(1000 * fps)))
            yield _chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, 0, 0, *_fraction(*delay), 0, 0))
            number += 1
            if index == 0:
                yield _chunk(b"IDAT", _packed(pixels))
            else:
                yield _chunk(b"fdAT", struct.pack(">I", number) + _packed(pixels))
                number += 1
        yield _chunk(b"IEND", b"")

    write_whole(path, parts())


def _fraction(above, below):
    """The same in sixteen bits each."""
    while below > 65535:
        above, below = above // 2, below // 2
    return max(1, above), below


def write_movie(path, paths, fps):
    """An H.264 movie by the encoder of Blender as a module, in a process of its own. Error when there is none."""
    command = [sys.executable, "-m", "barchan.movie_in_module", path, repr(float(fps)), *paths]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0 or not os.path.isfile(path):
        last = done.stdout.decode("utf-8", "replace").strip().split("\n")[-1]
        raise Error("No movie could be made (%s); --animation apng needs no encoder." % (last or "no reason given"))


# ---- where to stand -------------------------------------------------------------------------------------------------


def look_rotation(direction):
    """Quaternion w x y z of an eye that looks along the direction with z up."""
    back = -np.asarray(direction, float)
    back /= np.linalg.norm(back)
    right = np.cross((0.0, 0.0, 1.0), back)
    right = np.array((1.0, 0.0, 0.0)) if np.linalg.norm(right) < 1e-6 else right / np.linalg.norm(right)
    m = np.stack([right, np.cross(back, right), back], axis=1)
    # From a rotation matrix, by its largest diagonal sum (Shepperd 1978).
    choices = [1 + m[0, 0] + m[1, 1] + m[2, 2]] + [1 + 2 * m[i, i] - m.trace() for i in range(3)]
    k = int(np.argmax(choices))
    q = np.empty(4)
    if k == 0:
        q[:] = choices[0], m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    else:
        i, j, n = k - 1, k % 3, (k + 1) % 3
        q[0] = m[n, j] - m[j, n]
        q[1 + i] = choices[k]
        q[1 + j] = m[j, i] + m[i, j]
        q[1 + n] = m[n, i] + m[i, n]
    return q / np.linalg.norm(q)


def make_camera(eye, target, aspect, reach, lens=LENS):
    """13 numbers for Light.draw: from the eye towards the target; reach: m beyond which nothing is."""
    eye, target = np.asarray(eye, float), np.asarray(target, float)
    distance = max(float(np.linalg.norm(target - eye)), 1e-6)
    far = max(20 * reach, 4 * distance)
    return np.concatenate(
        [eye, look_rotation(target - eye), (lens, lens / aspect), (0.0, 0.0), (0.002 * distance, far)]
    ).astype(np.float32)


def frame_camera(low, high, aspect, direction=(-0.55, -1.0, 0.55)):
    """A camera from whose place along the direction all of the box is seen."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    middle, size = 0.5 * (low + high), np.maximum(high - low, 1e-6)
    way = np.asarray(direction, float) / np.linalg.norm(direction)
    rotation = look_rotation(-way)
    w, v = rotation[0], rotation[1:]
    corners = 0.5 * size * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    seen = corners + 2 * np.cross(-v, np.cross(-v, corners) + w * corners)
    # Far enough that every corner is inside both edges: |x| <= lens (distance - z).
    distance = max((np.abs(seen[:, 0]) / LENS + seen[:, 2]).max(), (np.abs(seen[:, 1]) * aspect / LENS + seen[:, 2]).max())
    eye = middle + way * max(distance * 1.08, 0.6 * float(np.linalg.norm(size)))
    return make_camera(eye, middle, aspect, float(np.linalg.norm(size)))


def sun_of(azimuth, elevation, strength=3.0, angle=0.5):
    """7 numbers for Light.draw. Degrees; azimuth from +x towards +y; strength as Blender's sun."""
    a, e = np.radians(azimuth), np.radians(elevation)
    warm = strength * np.array((1.0, 0.95, 0.87))
    return np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e), *warm, np.radians(angle)], np.float32)


SKY = (0.30, 0.38, 0.50)
FLOOR = (0.13, 0.115, 0.095)
TABLE = (0.20, 0.185, 0.165)


# ---- frames of a cache ----------------------------------------------------------------------------------------------


class Frames:
    """Frames of a cache as what Light.draw takes. Where the notes tell of which spheres a grain is, all are drawn; bodies, which
    stand before the grains, are drawn when their spheres are told and the caller does not skip them."""

    def __init__(self, folder, radius=None, shape=None, skip=None):
        if not os.path.isdir(folder):
            raise CacheError("There is no folder '%s': give the cache folder that the Barchan panel shows." % folder)
        self.folder = folder
        self.numbers = list_frames(folder)[0]
        if not self.numbers:
            raise CacheError("There are no frames in '%s': bake first." % folder)
        info = frame_info(folder, self.numbers[0])
        notes = cache_command.first_notes(folder, self.numbers) if shape is None else {}
        told = exporter.unit_shapes(notes) if "shape" in info["arrays"] and "radius" in info["arrays"] else []
        self.is_told = bool(told) and radius is None
        bodies = 0 if self.is_told else int(info["exact_count"])
        self.skip = bodies if skip is None else skip
        single = (np.zeros((1, 3), np.float32), np.ones(1, np.float32))
        if self.is_told:
            self.shapes = [single if one is None else one for one in told]
            self.is_unknown = np.array([one is None for one in told])
        else:
            self.shapes = [single if shape != "tetrahedron" else (tetrahedron(1.0), np.ones(4, np.float32))]
        self.reach = [float((np.linalg.norm(centres, axis=1) + radii).max()) for centres, radii in self.shapes]
        self.note = ""
        self.radius = radius
        if radius is None and "radius" not in info["arrays"]:
            self.radius = self._guess_radius()
            self.note = "The cache does not say how large the grains are: taken as %.3g m (--radius sets it)." % self.radius

    def _guess_radius(self):
        """Half the usual distance of neighbours, in the last frame, where most grains lie."""
        points = read_frame(self.folder, self.numbers[-1], names=["position"])["arrays"]["position"][self.skip :]
        if len(points) < 2:
            return 0.01
        some = points[np.linspace(0, len(points) - 1, min(len(points), NEIGHBOURS)).astype(int)]
        nearest = []
        for point in some:
            apart = ((points - point) ** 2).sum(axis=1)
            nearest.append(np.partition(apart, 1)[1])
        return max(0.5 * float(np.sqrt(np.median(nearest))), 1e-6)

    def _shown(self, number):
        """Places and reaches of the grains that are seen in a frame."""
        grains = self.read(number)
        is_seen = grains["hidden"] == 0
        reach = grains["scales"] * np.array(self.reach, np.float32)[grains["shape_of"]]
        return grains["positions"][is_seen], reach[is_seen]

    def bounds(self, numbers):
        """Low and high corner of the grains over some of these frames."""
        corners = []
        for number in sorted({numbers[0], numbers[len(numbers) // 2], numbers[-1]}):
            places, reach = self._shown(number)
            if len(places):
                # One grain that flew away is not what the picture is about.
                low, high = np.percentile(places, 0.5, axis=0), np.percentile(places, 99.5, axis=0)
                margin = float(np.median(reach))
                corners.append([low - margin, high + margin])
        if not corners:
            return np.zeros(3), np.ones(3)
        corners = np.array(corners)
        return corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)

    def lowest(self, number):
        """Height under the lowest grains of a frame."""
        places, reach = self._shown(number)
        return float(np.percentile(places[:, 2] - reach, 0.2)) if len(places) else 0.0

    def read(self, number):
        arrays = {name: array[self.skip :] for name, array in read_frame(self.folder, number)["arrays"].items()}
        positions = arrays["position"]
        count = len(positions)
        is_hidden = ~np.isfinite(positions).all(axis=1)
        if "flags" in arrays:
            is_hidden |= (arrays["flags"] & HIDDEN) != 0
        shape_of = arrays["shape"] if self.is_told else np.zeros(count, np.int32)
        if self.is_told:
            is_hidden |= self.is_unknown[shape_of]
        scales = arrays["radius"] if self.radius is None else np.full(count, self.radius, np.float32)
        return {
            "positions": np.nan_to_num(np.ascontiguousarray(positions, np.float32), posinf=0, neginf=0),
            "rotations": np.ascontiguousarray(arrays["rotation"], np.float32) if "rotation" in arrays else None,
            "scales": np.ascontiguousarray(scales, np.float32),
            "shape_of": np.ascontiguousarray(shape_of, np.int32),
            "hidden": is_hidden.astype(np.int32),
            "shapes": self.shapes,
        }


# ---- the sampler's view ---------------------------------------------------------------------------------------------

FIELD_CELLS = 64  # along the longest edge of a mesh
UNCOVERED = (0.75, 0.08, 0.05)
PARTICLES = ((0.62, 0.62, 0.60),) * 5


def sample_field(mesh, cells=FIELD_CELLS, threads=0, cancel=None):
    """Distances on a grid around a mesh, for Light.draw, and its bounds."""
    low, high = np.asarray(mesh.bounds, float)
    spacing = float((high - low).max()) / cells
    start = low - 1.5 * spacing
    counts = np.ceil((high - low) / spacing).astype(int) + 4
    places = np.stack(np.meshgrid(*(start[i] + spacing * np.arange(counts[i]) for i in range(3)), indexing="ij"), axis=-1)
    places = places.transpose(2, 1, 0, 3).reshape(-1, 3).astype(np.float32)
    found = np.empty(len(places), np.float32)
    for first in range(0, len(places), 65536):  # so that Ctrl-C is heard
        if cancel is not None and cancel.is_cancelled:
            raise Cancelled("stopped")
        part = slice(first, first + 65536)
        found[part] = distance(mesh, places[part], threads=threads)
    return (found.reshape(counts[::-1]), (*start, spacing), UNCOVERED), low, high


def sample_picture(mesh, centres, radii, size=(640, 480), threads=0, cancel=None, device=0):
    """The mesh's distance field ray-cast together with the spheres that stand for it (Longmore 2009, 6.4): red where no sphere
    covers it. -> pixels, and the share of the mesh's picture that shows through."""
    field, low, high = sample_field(mesh, threads=threads, cancel=cancel)
    width, height = size
    reach = float(np.max(radii))
    camera = frame_camera(low - reach, high + reach, width / height, (-0.6, -1.0, 0.5))
    light = Light(width, height, 2, 0, device)
    common = {"sun": sun_of(-70, 50, 2.6), "sky": SKY, "floor": FLOOR, "field": field, "shadows": False}
    bare = light.draw(camera, **common, give_samples=True)["depths"]
    drawn = light.draw(
        camera,
        **common,
        positions=np.asarray(centres, np.float32),
        scales=np.broadcast_to(np.asarray(radii, np.float32), len(centres)).copy(),
        shapes=[(np.zeros((1, 3), np.float32), np.ones(1, np.float32))],
        round=True,
        palette=PARTICLES,
        give_samples=True,
    )
    is_mesh = bare > 0
    shows = (np.abs(drawn["depths"] - bare) < 1e-3 * bare) & is_mesh
    return drawn["pixels"], float(shows.sum() / max(is_mesh.sum(), 1))


# ---- a run ----------------------------------------------------------------------------------------------------------


def picture_paths(out, numbers):
    """Where every frame goes: one file, or numbered ones in a folder, which is made."""
    if out.lower().endswith(".png"):
        if len(numbers) != 1:
            raise ValueError("'%s' holds one picture and %d frames are asked for: give --out a folder." % (out, len(numbers)))
        if not os.path.isdir(os.path.dirname(os.path.abspath(out))):
            raise ValueError("'%s' cannot be written: its folder does not exist." % out)
        return [out]
    os.makedirs(out, exist_ok=True)
    return [os.path.join(out, "frame_%06d.png" % number) for number in numbers]


def run(light, numbers, out, scene_of, animation="png", fps=24.0, progress=None, is_stopped=None):
    """Draws scene_of(number), keyword arguments of Light.draw, for every frame. -> dict about what was written."""
    paths = picture_paths(out, numbers)
    if animation != "png" and out.lower().endswith(".png"):
        raise ValueError("An animation of one picture: give --out a folder.")
    for index, (number, path) in enumerate(zip(numbers, paths)):
        if is_stopped is not None and is_stopped():
            raise Cancelled("stopped; %d of %d pictures are written." % (index, len(paths)))
        write_png(path, light.draw(seed=number & 0xFFFF, **scene_of(number))["pixels"])
        if progress is not None:
            progress(index + 1, len(paths))
    movie = ""
    if animation == "apng":
        movie = os.path.join(out, "preview.apng")
        write_animation(movie, paths, fps)
    elif animation == "mp4":
        movie = os.path.join(out, "preview.mp4")
        write_movie(movie, paths, fps)
    return {"frames": [numbers[0], numbers[-1]], "pictures": len(paths), "out": out, "movie": movie, "device": light.device}
