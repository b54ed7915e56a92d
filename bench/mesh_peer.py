"""One peer's Poisson-disk points on a mesh, timed: mesh_peer.py PROGRAM MESH.npz COUNT WINDOWS POINTS.npy
or how even points are: mesh_peer.py measure POINTS.npy

Runs in the peers' environment, not in ours. Comes in: v and f of the mesh. Goes out: the points, and one JSON line with
the seconds of every window. Making the library's mesh is timed where a user cannot keep it: pymeshlab changes it.
"""

import json
import sys
import time

import numpy as np


def measure(points_file):
    from scipy.spatial import cKDTree

    points = np.load(points_file).astype(np.float64)
    nearest = cKDTree(points).query(points, 2)[0][:, 1]
    print(json.dumps({"evenness": float(nearest.min() / nearest.mean())}))


def main():
    if sys.argv[1] == "measure":
        measure(sys.argv[2])
        return
    program, mesh_file, count, windows, out = sys.argv[1:6]
    mesh = np.load(mesh_file)
    vertices, faces = mesh["v"].astype(np.float64), mesh["f"]
    if program == "open3d":
        import open3d

        solid = open3d.geometry.TriangleMesh(
            open3d.utility.Vector3dVector(vertices), open3d.utility.Vector3iVector(faces)
        )
        version = open3d.__version__

        def sample():
            return np.asarray(solid.sample_points_poisson_disk(int(count), init_factor=5).points)

    else:
        import importlib.metadata

        import pymeshlab

        version = importlib.metadata.version("pymeshlab")
        # It takes a radius: that of a maximal random set of as many points (0.7 of area over radius squared).
        edges = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
        radius = float(np.sqrt(0.7 * 0.5 * np.linalg.norm(edges, axis=1).sum() / int(count)))

        def sample():
            meshes = pymeshlab.MeshSet()
            meshes.add_mesh(pymeshlab.Mesh(vertices, faces))
            meshes.generate_sampling_poisson_disk(radius=pymeshlab.PureValue(radius))
            return meshes.current_mesh().vertex_matrix()

    seconds = []
    for _ in range(int(windows)):
        begin = time.perf_counter()
        points = sample()
        seconds.append(time.perf_counter() - begin)
    np.save(out, points)
    print(json.dumps({"seconds": seconds, "version": "%s %s" % (program, version), "points": len(points)}))


main()
