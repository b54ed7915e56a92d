"""The command `python -m barchan sample`: a mesh file -> spheres that stand for it.

Comes in: the path of an OBJ, PLY or STL file and a radius. Goes out: one JSON object with the fit on standard output and,
when asked for, a PLY file of points with their radii. All geometry is the core's; trimesh only reads the file.
"""

import json
import os
import sys
import threading
import time

import barchan
import numpy as np

from . import preview

SUFFIXES = (".obj", ".ply", ".stl")
KINDS = ("hexagonal", "jittered", "relaxed")
ENGINES = ("cpu", "gl", "auto")
BODY_KIND = "relaxed"  # its spheres lie against the surface, those of a lattice where they happen to
REDRAW = 0.2  # s between two looks at the clock on a terminal


def add_command(commands):
    parser = commands.add_parser(
        "sample",
        help="turn a mesh file into spheres and say how well they fit",
        description="Spreads equal spheres over the surface of a mesh, fills its volume with them (--volume) or fits a "
        "few of different sizes (--clump). Lengths are in the unit of the file.",
    )
    parser.add_argument("mesh", metavar="MESH", help="an OBJ, PLY or STL file")
    parser.add_argument("--radius", type=float, metavar="R", help="of every sphere; needed but for --clump")
    parser.add_argument("--spacing", type=float, metavar="S", help="of neighbouring centres on the surface")
    parser.add_argument("--offset", type=float, metavar="O", help="of the centres from the surface, negative inside")
    parser.add_argument("--volume", action="store_true", help="fill the inside instead of covering the surface")
    parser.add_argument("--kind", choices=KINDS, help="of the filling, default relaxed")
    parser.add_argument("--packing", type=float, metavar="P", help="share of the volume that the filling takes up")
    parser.add_argument("--clump", type=int, metavar="N", help="at most N spheres that together look like the mesh")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the same number gives the same spheres")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="0 = all; the result is the same")
    parser.add_argument("--engine", choices=ENGINES, help="what pushes spheres apart on a surface, default cpu; the result is the same")
    parser.add_argument("--out", metavar="FILE.ply", help="write the spheres: x y z radius")
    parser.add_argument(
        "--preview", metavar="FILE.png", help="draw the spheres over the mesh's distance field: red is what they do not cover"
    )
    parser.set_defaults(run=run)


def check_arguments(arguments):
    """Refuses what contradicts itself, before the file is read."""
    is_clump = arguments.clump is not None
    if arguments.radius is None and not is_clump:
        raise ValueError("--radius is missing: give the radius of the spheres in the unit of the file.")
    wanted = {
        "--radius": (arguments.radius is not None, not is_clump),
        "--spacing": (arguments.spacing is not None, not is_clump and not arguments.volume),
        "--offset": (arguments.offset is not None, not is_clump and not arguments.volume),
        "--engine": (arguments.engine is not None, not is_clump and not arguments.volume),
        "--kind": (arguments.kind is not None, arguments.volume and not is_clump),
        "--packing": (arguments.packing is not None, arguments.volume and not is_clump),
        "--volume": (arguments.volume, not is_clump),
    }
    for name, (is_given, is_used) in wanted.items():
        if is_given and not is_used:
            what = "--clump" if is_clump else "--volume" if arguments.volume else "a surface"
            raise ValueError("%s has no meaning for %s: leave one of them out." % (name, what))
    for out in (arguments.out, arguments.preview):
        if out is None:
            continue
        if os.path.isdir(out) or not os.path.isdir(os.path.dirname(out) or "."):
            raise ValueError("'%s' cannot be written: give a file name in a folder that exists." % out)
        if os.path.exists(out) and os.path.samefile(out, arguments.mesh):
            raise ValueError("'%s' is the mesh itself: give another name." % out)


def read_mesh(path):
    """The file as it is, all its objects in one: nothing is merged, turned or left out before the core looks at it."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise ValueError("'%s' is no mesh file that can be read: expected %s." % (path, ", ".join(SUFFIXES)))
    with open(path, "rb") as file:
        try:
            import trimesh
        except ImportError as error:
            raise barchan.Error(
                "Reading '%s' needs the package trimesh (%s): python -m pip install 'barchan[files]'." % (path, error)
            ) from error
        options = {"skip_materials": True} if suffix == ".obj" else {}
        try:
            scene = trimesh.load_scene(file, file_type=suffix[1:], process=False, **options)
            mesh = scene.to_mesh()
        except MemoryError:
            raise
        except Exception as error:  # each of trimesh's readers fails in its own way
            raise barchan.MeshError(
                "'%s' is no whole %s file (%s: %s): export it again."
                % (path, suffix[1:].upper(), type(error).__name__, " ".join(str(error).split()))
            ) from error
    with np.errstate(over="ignore"):  # beyond float32 is infinite, which the core refuses by its number
        vertices = np.asarray(mesh.vertices).astype(np.float32)
    return barchan.Mesh(vertices, np.asarray(mesh.faces), name=os.path.basename(path))


def write_ply(path, centres, radii):
    """Points with their radii as binary little-endian PLY; the file is whole or not there."""
    rows = np.empty((len(centres), 4), "<f4")
    rows[:, :3] = centres
    rows[:, 3] = radii
    names = "".join("property float %s\n" % name for name in ("x", "y", "z", "radius"))
    header = "ply\nformat binary_little_endian 1.0\nelement vertex %d\n%send_header\n" % (len(rows), names)
    partial = "%s.%d.tmp" % (path, os.getpid())
    try:
        with open(partial, "wb") as file:
            file.write(header.encode("ascii"))
            file.write(rows.tobytes())
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def make_spheres(mesh, arguments, cancel):
    common = {"seed": arguments.seed, "threads": arguments.threads, "cancel": cancel}
    if arguments.clump is not None:
        return barchan.clump(mesh, arguments.clump, **common)
    if arguments.volume:
        return barchan.pack(
            mesh,
            arguments.radius,
            kind=arguments.kind or BODY_KIND,
            packing=arguments.packing or 0,
            calibrate=True,
            **common,
        )
    return barchan.sample(
        mesh,
        arguments.radius,
        spacing=arguments.spacing or 0,
        offset=arguments.offset or 0,
        engine=arguments.engine or "cpu",
        **common,
    )


def watched(work, stream):
    """work(cancel) on a thread of its own, so that Ctrl-C ends it and a terminal sees the time; its result or exception."""
    cancel = barchan.Cancel()
    outcome = {}

    def body():
        try:
            outcome["result"] = work(cancel)
        except BaseException as error:  # handed to the thread that waits
            outcome["error"] = error

    thread = threading.Thread(target=body, name="barchan sample")
    is_shown = stream is not None and stream.isatty()
    start = time.monotonic()
    thread.start()
    try:
        while thread.is_alive():
            thread.join(REDRAW)
            if is_shown:
                stream.write("\r\x1b[KSampling: %.1f s" % (time.monotonic() - start))
                stream.flush()
    except KeyboardInterrupt:
        cancel.cancel()
        thread.join()
        raise
    finally:
        if is_shown:
            stream.write("\n")
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def report(arguments, body):
    """What standard output gets: how the spheres were made, the fit, the warnings."""
    radii = body.get("radii")
    kind = "surface" if radii is None and not arguments.volume else "volume" if radii is None else "clump"
    made = {"file": arguments.mesh, "kind": kind, "seed": arguments.seed}
    made.update({name: body[name] for name in ("radius", "packing_radius", "spacing", "offset", "overlap", "engine") if name in body})
    if radii is not None:
        made.update(radius_min=float(radii.min()), radius_max=float(radii.max()))
    return {**made, **body["fit"], "warnings": body["warnings"], "out": arguments.out}


def run(arguments):
    check_arguments(arguments)
    mesh = read_mesh(arguments.mesh)
    body = watched(lambda cancel: make_spheres(mesh, arguments, cancel), sys.stderr)
    if arguments.out is not None:
        write_ply(arguments.out, body["centres"], body.get("radii", body.get("radius")))
    shown = {}
    if arguments.preview is not None:
        radii = body.get("radii", body.get("radius"))
        pixels, share = watched(
            lambda cancel: preview.sample_picture(mesh, body["centres"], radii, threads=arguments.threads, cancel=cancel), sys.stderr
        )
        preview.write_png(arguments.preview, pixels)
        shown = {"preview": arguments.preview, "uncovered_share": round(share, 4)}
    print(json.dumps({**report(arguments, body), **shown}))
