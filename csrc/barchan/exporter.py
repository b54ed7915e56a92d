"""Cached frames -> files that play and compute without Barchan: USD points, a geometry-nodes bake, PLY, NumPy.

Comes in: a cache folder, read with read_frame alone. Goes out: one file or one folder that is whole or not there. Everything
is written under a temporary name beside the output, synced, and renamed when the last frame is in it; an error, a cancel or
Ctrl-C removes it. docs/export.md says what arrives where.
"""

import contextlib
import errno
import io
import json
import math
import os
import re
import shutil
import time

import numpy as np

from . import cache_command
from ._core import CacheError, Cancelled, Error, __version__, list_frames, read_frame, tetrahedron

FLAGS_HIDDEN = 8 | 16  # of a cached grain: not yet born, taken by an outflow
DEFAULT_FPS = 24.0  # of a single frame, which has no rate
SHAPES = ("sphere", "spheres", "tetrahedron")
MARKER = "barchan_export.json"  # in every folder that is exported: what it holds, and that Barchan wrote it
PLAYER = "play_in_blender.py"
SAVE_BYTES = 1 << 26  # of USD samples held in memory before they go to the file


# ---------------------------------------------------------------------------------------------------------------------
# Files that are whole or not there


def write_file(path, *parts):
    """A new file of these bytes, on the disk when this returns."""
    with open(path, "xb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def sync(path):
    """What was written to a file, or the names in a folder, is on the disk when this returns."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path):
    """Only ever called for what this process made, or for a folder that is_export has looked through."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


FOLDER_FILES = re.compile(
    r"(%s|%s|frame_[-\d]+\.(ply|npz)|meta|meta/[-\d]+_\d+\.json|blobs|blobs/[-\d]+_\d+\.blob)"
    % (re.escape(MARKER), re.escape(PLAYER))
)


def foreign_file(folder):
    """The first thing in a folder that no export wrote, None when all of it is ours."""
    if not os.path.isfile(os.path.join(folder, MARKER)):
        return MARKER + " is missing"
    for parent, folders, files in os.walk(folder):
        for name in sorted(folders) + sorted(files):
            found = os.path.relpath(os.path.join(parent, name), folder)
            if not FOLDER_FILES.fullmatch(found.replace(os.sep, "/")):
                return found
    return None


def check_output(path, is_folder, overwrite):
    """Refuses an output that could not be put in its place at the end."""
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        raise ValueError("'%s' cannot be written: the folder '%s' does not exist." % (path, parent))
    if not os.path.lexists(path):
        return
    if os.path.isdir(path) != is_folder:
        kind = "a file" if is_folder else "a folder"
        raise ValueError("'%s' is %s already: give the export another name." % (path, kind))
    if not overwrite:
        raise ValueError("'%s' is there already: give the export another name, or let it overwrite." % path)
    found = foreign_file(path) if is_folder else None
    if found:
        raise ValueError(
            "'%s' is not only an older export (%s), so it is not overwritten: give the export another name." % (path, found)
        )


@contextlib.contextmanager
def whole(path, is_folder):
    """A temporary path beside path, which takes its place when the block ends well and vanishes when it does not."""
    parent, name = os.path.split(path)
    temporary = os.path.join(parent, ".%s.tmp.%d%s" % (name, os.getpid(), os.path.splitext(name)[1]))
    older = temporary + ".old"
    try:
        if is_folder:
            os.mkdir(temporary)
        yield temporary
        sync(temporary)
        if is_folder and os.path.isdir(path):
            os.rename(path, older)
            try:
                os.rename(temporary, path)
            except BaseException:
                os.rename(older, path)
                raise
            remove(older)
        else:
            os.replace(temporary, path)
        sync(parent)
    except BaseException as error:
        remove(temporary)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = path  # a refused write or sync does not say of which file
        raise


# ---------------------------------------------------------------------------------------------------------------------
# Frames -> points


def as_numbers(array, name):
    """float32 or int32 and contiguous, as all formats but NumPy's want it."""
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, np.float32)
    limits = np.iinfo(np.int32)
    if array.dtype.itemsize >= 4 and array.dtype != np.int32 and array.size:
        if array.max() > limits.max or array.min() < limits.min:
            raise ValueError("The array '%s' holds numbers beyond 32 bits, which only npz can keep." % name)
    return np.ascontiguousarray(array, np.int32)


def turned(rotation, offset):
    """(N,4) unit quaternions w x y z applied to (N,3) vectors: v + 2w(u x v) + 2u x (u x v)."""
    w, u = rotation[:, :1], rotation[:, 1:]
    cross = 2 * np.cross(u, offset)
    return offset + w * cross + np.cross(u, cross)


def unit_shapes(notes):
    """Spheres of every shape that the notes tell of: centres (K,3) and radii (K,), for a largest radius of 1; None for one
    whose spheres they do not tell."""
    found = []
    for shape in notes.get("shapes", ()):
        if "centres" not in shape:
            found.append(None)
            continue
        radii = np.array(shape["radii"], np.float64)
        centres = np.array(shape["centres"], np.float64).reshape(len(radii), 3)
        found.append(((centres / radii.max()).astype(np.float32), (radii / radii.max()).astype(np.float32)))
    return found


def spheres_of(points, shapes):
    """Every sphere of every grain as a point of its own. Its id is the grain's times the most spheres that a grain has, plus
    its number."""
    shape_of = points["shape"] if "shape" in points else np.zeros(len(points["position"]), np.int32)
    counts = np.array([0 if shape is None else len(shape[1]) for shape in shapes], np.int64)
    if len(shape_of) and counts[shape_of].min() == 0:
        raise ValueError("Some grains are of a shape whose spheres the cache does not tell: export a point per grain.")
    most, first = int(counts.max(initial=1)), np.concatenate(([0], np.cumsum(counts)))
    all_centres = np.concatenate([shape[0] for shape in shapes if shape is not None])
    all_radii = np.concatenate([shape[1] for shape in shapes if shape is not None])
    repeats = counts[shape_of]
    spread = {name: np.repeat(array, repeats, axis=0) for name, array in points.items()}
    number = np.arange(int(repeats.sum())) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    place = np.repeat(first[shape_of], repeats) + number
    arms = all_centres[place] * spread["radius"][:, None]
    arms = turned(spread["rotation"], arms).astype(np.float32)
    spread["position"] = spread["position"] + arms
    if "velocity" in spread and "spin" in spread:
        spread["velocity"] = spread["velocity"] + np.cross(spread["spin"], arms).astype(np.float32)
    spread["radius"] = spread["radius"] * all_radii[place]
    spread["grain"] = spread["id"]
    spread["id"] = spread["id"].astype(np.int64) * most + number
    return spread


class Reader:
    """The frames of a cache as points: hidden grains left out, radius and id always there."""

    def __init__(self, folder, radius, skip, thin, shape, notes):
        self.folder, self.radius, self.thin, self.shape = folder, radius, thin, shape
        self.skip = notes.get("body_count", 0) if skip is None else skip
        self.shapes = unit_shapes(notes)

    def read(self, number):
        """(seconds, arrays by name), all of the same length."""
        frame = read_frame(self.folder, number)
        arrays = frame["arrays"]
        if "position" not in arrays:
            raise CacheError("Frame %d of '%s' has no positions: bake it again." % (number, self.folder))
        if len(arrays["position"]) < self.skip:
            raise ValueError(
                "Frame %d holds %d elements, fewer than the %d to skip." % (number, len(arrays["position"]), self.skip)
            )
        if "id" not in arrays:  # grains keep their place in the frame for the whole bake
            arrays["id"] = np.arange(len(arrays["position"]), dtype=np.int32)
        points = {name: array[self.skip :: self.thin] for name, array in arrays.items()}
        is_shown = np.isfinite(points["position"]).all(axis=1)
        if "flags" in points:
            is_shown &= (points["flags"] & FLAGS_HIDDEN) == 0
        if not is_shown.all():
            points = {name: array[is_shown] for name, array in points.items()}
        if "radius" not in points:
            if self.radius is None:
                raise ValueError(
                    "Frame %d of '%s' does not say how large the grains are: give the radius of their spheres (--radius, "
                    "in m)." % (number, self.folder)
                )
            points["radius"] = np.full(len(points["position"]), self.radius, np.float32)
        if self.shape != "sphere":
            if "rotation" not in points:
                raise ValueError("Frame %d of '%s' has no rotations: export grains as spheres." % (number, self.folder))
            told = self.shape == "spheres" and self.shapes
            if self.shape == "spheres" and not told:
                raise ValueError(
                    "The frames of '%s' do not say of which spheres a grain is: give --shape tetrahedron, or sphere for a "
                    "point per grain." % self.folder
                )
            if not told:
                points.pop("shape", None)
            points = spheres_of(points, self.shapes if told else [(tetrahedron(1.0), np.ones(4, np.float32))])
        return frame["seconds"], points


def names_of(notes):
    """What the numbers in source, shape and material stand for: lists of names, where the frames tell."""
    found = {"sources": list(notes.get("sources", ()))}
    for key in ("shapes", "materials"):
        found[key] = [one.get("name", "") for one in notes.get(key, ())]
    return {key: names for key, names in found.items() if names}


def numbers_of(points):
    """The points as float32 and int32, without the flags, which are Barchan's own."""
    return {name: as_numbers(array, name) for name, array in points.items() if name != "flags"}


# ---------------------------------------------------------------------------------------------------------------------
# Formats: made with a temporary path, given one frame at a time in ascending order, closed


class UsdWriter:
    """One UsdGeomPoints with time samples. Units are metres, z is up, a time code is a frame."""

    is_folder = False
    suffixes = (".usdc", ".usd")

    def __init__(self, path, fps, frames, notes):
        try:
            from pxr import Sdf, Usd, UsdGeom, Vt
        except ImportError as error:
            raise Error(
                "Writing USD needs the package usd-core (%s): python -m pip install 'barchan[usd]', or choose another "
                "format." % error
            ) from error
        self.vt = Vt
        self.types = {
            ("f", 1): (Sdf.ValueTypeNames.FloatArray, Vt.FloatArray),
            ("f", 2): (Sdf.ValueTypeNames.Float2Array, Vt.Vec2fArray),
            ("f", 3): (Sdf.ValueTypeNames.Vector3fArray, Vt.Vec3fArray),
            ("f", 4): (Sdf.ValueTypeNames.Float4Array, Vt.Vec4fArray),
            ("i", 1): (Sdf.ValueTypeNames.IntArray, Vt.IntArray),
        }
        self.quaternion = Sdf.ValueTypeNames.QuatfArray
        stage = Usd.Stage.CreateNew(path)
        UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(stage, 1.0)
        stage.SetFramesPerSecond(fps)
        stage.SetTimeCodesPerSecond(fps)
        stage.SetStartTimeCode(frames[0])
        stage.SetEndTimeCode(frames[-1])
        stage.GetRootLayer().documentation = "Sand baked with Barchan %s" % __version__
        stage.GetRootLayer().customLayerData = {key: Vt.StringArray(names) for key, names in names_of(notes).items()}
        self.points = UsdGeom.Points.Define(stage, "/Sand")
        self.points.SetWidthsInterpolation(UsdGeom.Tokens.vertex)
        stage.SetDefaultPrim(self.points.GetPrim())
        self.primvars = UsdGeom.PrimvarsAPI(self.points)
        self.interpolation = UsdGeom.Tokens.vertex
        self.stage, self.pending = stage, 0

    def array(self, kind, values):
        return kind.FromNumpy(np.ascontiguousarray(values)) if len(values) else kind()

    def primvar(self, name, values, frame):
        components = values.shape[1] if values.ndim > 1 else 1
        if name == "rotation":
            usd_type, kind, values = self.quaternion, self.vt.QuatfArray, values[:, [1, 2, 3, 0]]  # x y z w in memory
        elif (values.dtype.kind, components) in self.types:
            usd_type, kind = self.types[values.dtype.kind, components]
        else:
            return
        self.primvars.CreatePrimvar(name, usd_type, self.interpolation).Set(self.array(kind, values), frame)

    def add(self, frame, seconds, points):
        points = numbers_of(points)
        position, radius = points["position"], points["radius"]
        vector, set_of = self.vt.Vec3fArray, self.points
        set_of.GetPointsAttr().Set(self.array(vector, position), frame)
        if "velocity" in points:
            set_of.GetVelocitiesAttr().Set(self.array(vector, points["velocity"]), frame)
        set_of.GetWidthsAttr().Set(self.array(self.vt.FloatArray, 2 * radius), frame)
        set_of.GetIdsAttr().Set(self.array(self.vt.Int64Array, points["id"].astype(np.int64)), frame)
        if len(position):
            extent = np.array([(position - radius[:, None]).min(axis=0), (position + radius[:, None]).max(axis=0)])
            set_of.GetExtentAttr().Set(self.array(vector, extent), frame)
        else:
            set_of.GetExtentAttr().Set(self.array(vector, np.zeros((2, 3), np.float32)), frame)
        for name, values in points.items():
            if name not in ("position", "velocity", "radius"):
                self.primvar(name, values, frame)
        self.pending += sum(array.nbytes for array in points.values())
        if self.pending >= SAVE_BYTES:
            self.save()

    def save(self):
        """Samples go to the end of the file and out of memory."""
        try:
            self.stage.GetRootLayer().Save()
        except RuntimeError as error:  # pxr's own, whose text is many lines about its source files
            raise OSError(errno.EIO, "USD could not write all of it (is the disk full?)") from error
        self.pending = 0

    def close(self):
        self.save()


class NodesWriter:
    """The folder that a Bake node of Blender's geometry nodes reads: JSON per frame, raw little-endian blobs. Arrays that
    did not change since the frame before are referred to, not written again."""

    is_folder = True
    suffixes = ()
    TYPES = {("f", 1): "FLOAT", ("f", 2): "FLOAT2", ("f", 3): "FLOAT_VECTOR", ("f", 4): "FLOAT_COLOR", ("i", 1): "INT"}

    def __init__(self, path, fps, frames, notes):
        self.path, self.last = path, {}
        for name in ("meta", "blobs"):
            os.mkdir(os.path.join(path, name))

    def add(self, frame, seconds, points):
        name = ("%011.5f" % frame).replace(".", "_")
        blob, start, blocks, attributes = name + ".blob", 0, [], []
        for key, values in numbers_of(points).items():
            components = values.shape[1] if values.ndim > 1 else 1
            kind = "QUATERNION" if key == "rotation" else self.TYPES.get((values.dtype.kind, components))
            if kind is None:
                continue
            data = values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
            known = self.last.get(key)
            if known is None or known[0] != data:
                known = self.last[key] = (data, {"name": blob, "start": start, "size": len(data)})
                blocks.append(data)
                start += len(data)
            attributes.append({"name": key, "domain": "POINT", "type": kind, "data": known[1]})
        cloud = {"num_points": len(points["position"]), "materials": [], "attributes": attributes}
        # The item's name is `name` up to Blender 5.1 and `value_name` from 5.2 on.
        item = {"name": "Geometry", "value_name": "Geometry", "type": "GEOMETRY", "data": {"pointcloud": cloud}}
        if blocks:
            write_file(os.path.join(self.path, "blobs", blob), *blocks)
        text = json.dumps({"version": 3, "items": {"0": item}})
        write_file(os.path.join(self.path, "meta", name + ".json"), text.encode("utf-8"))

    def close(self):
        with open(os.path.join(os.path.dirname(__file__), PLAYER), "rb") as file:
            write_file(os.path.join(self.path, PLAYER), file.read())
        for name in ("meta", "blobs"):
            sync(os.path.join(self.path, name))


def frame_name(frame, suffix):
    return "frame_%06d%s" % (frame, suffix)


class PlyWriter:
    """frame_NNNNNN.ply, binary little-endian, one vertex per point."""

    is_folder = True
    suffixes = ()
    NAMES = {"position": "x y z", "velocity": "vx vy vz", "radius": "radius", "rotation": "qw qx qy qz", "id": "id"}

    def __init__(self, path, fps, frames, notes):
        self.path = path

    def add(self, frame, seconds, points):
        points = numbers_of(points)
        fields, values = [], []
        for key in sorted(points, key=lambda key: (list(self.NAMES) + [key]).index(key)):
            columns = points[key] if points[key].ndim > 1 else points[key][:, None]
            width = columns.shape[1]
            names = [key] if width == 1 else ["%s_%d" % (key, index) for index in range(width)]
            names = self.NAMES[key].split() if key in self.NAMES else names
            fields += [(name, "<f4" if columns.dtype.kind == "f" else "<i4") for name in names]
            values += list(columns.T)
        rows = np.empty(len(points["position"]), fields)
        for (name, _kind), column in zip(fields, values):
            rows[name] = column
        kinds = {"<f4": "float", "<i4": "int"}
        lines = ["ply", "format binary_little_endian 1.0", "comment Barchan %s" % __version__]
        lines += ["comment frame %d, %r s" % (frame, seconds), "element vertex %d" % len(rows)]
        lines += ["property %s %s" % (kinds[kind], name) for name, kind in fields] + ["end_header", ""]
        write_file(os.path.join(self.path, frame_name(frame, ".ply")), "\n".join(lines).encode("ascii"), rows.tobytes())

    def close(self):
        pass


class NpzWriter:
    """frame_NNNNNN.npz: every array under its name in the cache, and the numbers frame and seconds."""

    is_folder = True
    suffixes = ()

    def __init__(self, path, fps, frames, notes):
        self.path = path

    def add(self, frame, seconds, points):
        memory = io.BytesIO()
        np.savez(memory, frame=np.int32(frame), seconds=np.float64(seconds), **points)
        write_file(os.path.join(self.path, frame_name(frame, ".npz")), memory.getbuffer())

    def close(self):
        pass


FORMATS = {"usd": UsdWriter, "nodes": NodesWriter, "ply": PlyWriter, "npz": NpzWriter}


# ---------------------------------------------------------------------------------------------------------------------
# The whole export


def whole_number(value, name, least):
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError("%s is %r, expected a whole number from %d on." % (name, value, least))
    return int(value)


def above_zero(value, name):
    if not isinstance(value, (int, float, np.number)) or not (math.isfinite(value) and value > 0):
        raise ValueError("%s is %r, expected a number above 0." % (name, value))
    return float(value)


def choose_frames(folder, wanted, every):
    """Numbers of the frames to export, and how many between the first and the last are not there."""
    if not os.path.isdir(folder):
        raise CacheError("There is no folder '%s': give the cache folder that the Barchan panel shows." % folder)
    found = list_frames(folder)[0]
    if not found:
        raise CacheError("There are no frames in '%s': bake first." % folder)
    first, last = wanted if wanted is not None else (None, None)
    first, last = found[0] if first is None else first, found[-1] if last is None else last
    chosen = [frame for frame in found if first <= frame <= last and (frame - first) % every == 0]
    if not chosen:
        raise CacheError(
            "No frame to export from %d to %d is in '%s', which holds %d to %d." % (first, last, folder, found[0], found[-1])
        )
    return chosen, (chosen[-1] - chosen[0]) // every + 1 - len(chosen)


def frame_rate(folder, frames):
    """Frames per second, from the simulated times of the first and the last frame."""
    begin, end = (read_frame(folder, frame)["seconds"] for frame in (frames[0], frames[-1]))
    if not end > begin:
        return DEFAULT_FPS
    rate = (frames[-1] - frames[0]) / (end - begin)
    return float(round(rate)) if abs(rate - round(rate)) < 1e-6 * rate else rate  # times are sums of rounded steps


def output_path(folder, to, out):
    writer = FORMATS[to]
    if out is None:
        out = os.path.abspath(folder) + (writer.suffixes[0] if writer.suffixes else "_" + to)
    out = os.path.abspath(os.fspath(out))
    if writer.suffixes and os.path.splitext(out)[1].lower() not in writer.suffixes:
        raise ValueError("'%s' is no name for a %s file: expected %s." % (out, to, " or ".join(writer.suffixes)))
    if out == os.path.abspath(folder):
        raise ValueError("'%s' is the cache itself: give the export another name." % out)
    return out


def size_of(path):
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(parent, name)) for parent, _, names in os.walk(path) for name in names)


def export(
    folder,
    to,
    out=None,
    *,
    frames=None,
    every=1,
    thin=1,
    radius=None,
    shape="sphere",
    skip=None,
    fps=None,
    overwrite=False,
    progress=None,
    cancel=None,
):
    """Writes cached frames in a format for others; docs/export.md says what each holds.

    folder     the cache
    to         "usd" (one file), "nodes", "ply" or "npz" (a folder each)
    out        its path; by default beside the cache
    frames     (first, last), both included, either None for the end of the cache; every: only each every-th of them
    thin       only each thin-th grain
    radius     of the grains' spheres in m, for caches that do not hold it; one that does goes before
    shape      "sphere": a point per grain; "spheres": a point for each sphere of a grain, as the frames tell; "tetrahedron":
               the same for caches that do not, four touching spheres each
    skip       how many elements of each frame come before the grains, the bodies; by default as the frames tell
    fps        frames per second; by default from the simulated time
    overwrite  an older export of the same name is replaced, once the new one is whole
    progress   called as progress(done, total) after every frame
    cancel     a Cancel that any thread may use; Cancelled is raised

    Returns a dict: format, out, frame_count, first, last, missing, point_count_min, point_count_max, fps, byte_count, seconds.
    """
    start = time.monotonic()
    if to not in FORMATS:
        raise ValueError("'%s' is no format to export to: expected %s." % (to, ", ".join(FORMATS)))
    if shape not in SHAPES:
        raise ValueError("'%s' is no shape of grains: expected %s." % (shape, ", ".join(SHAPES)))
    folder = os.fsdecode(folder)
    every, thin = whole_number(every, "every", 1), whole_number(thin, "thin", 1)
    radius = None if radius is None else above_zero(radius, "radius")
    fps = None if fps is None else above_zero(fps, "fps")
    skip = None if skip is None else whole_number(skip, "skip", 0)
    path = output_path(folder, to, out)
    chosen, missing = choose_frames(folder, frames, every)
    notes = cache_command.first_notes(folder, chosen)
    reader = Reader(folder, radius, skip, thin, shape, notes)
    kind = FORMATS[to]
    check_output(path, kind.is_folder, overwrite)
    fps = frame_rate(folder, chosen) if fps is None else fps
    rows = []
    with whole(path, kind.is_folder) as temporary:
        writer = kind(temporary, fps, chosen, notes)
        for index, number in enumerate(chosen):
            if cancel is not None and cancel.is_cancelled:
                raise Cancelled("The export was cancelled; nothing was written.")
            seconds, points = reader.read(number)
            writer.add(number, seconds, points)
            rows.append({"frame": number, "seconds": seconds, "points": len(points["position"])})
            if progress is not None:
                progress(index + 1, len(chosen))
        writer.close()
        if kind.is_folder:
            about = {"barchan": __version__, "format": to, "fps": fps, "frames": rows, **names_of(notes)}
            write_file(os.path.join(temporary, MARKER), json.dumps(about, indent=1).encode("ascii"))
        byte_count = size_of(temporary)
    counts = [row["points"] for row in rows]
    return {
        "format": to,
        "out": path,
        "frame_count": len(chosen),
        "first": chosen[0],
        "last": chosen[-1],
        "missing": missing,
        "point_count_min": min(counts),
        "point_count_max": max(counts),
        "fps": fps,
        "byte_count": byte_count,
        "seconds": time.monotonic() - start,
    }
