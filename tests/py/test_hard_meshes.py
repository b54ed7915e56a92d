"""Meshes as people have them: each becomes a good body, or one sentence says why not; none crashes or hangs."""

import barchan
import numpy as np
import pytest
from conftest import CUBE_TRIANGLES, cube_arrays


def check_body(body, uncovered=0.005):
    fit = body["fit"]
    print({name: round(value, 4) for name, value in fit.items()}, body["warnings"])
    assert np.isfinite(body["centres"]).all()
    assert fit["evenness"] >= 0.92
    assert fit["uncovered_share"] < uncovered
    # A centre on the mesh reaches one radius out of it, and a rounding of floats.
    assert fit["hausdorff"] <= body["radius"] * (1 + 1e-5)


def fine_cube(n=8):
    """A cube of edge 1 with n x n squares a side; its triangles."""
    corners, triangles = [], []
    for axis in range(3):
        for side in (0.0, 1.0):
            first = len(corners)
            for i in range(n + 1):
                for j in range(n + 1):
                    corner = [0.0, 0.0, 0.0]
                    corner[axis], corner[(axis + 1) % 3], corner[(axis + 2) % 3] = side, i / n, j / n
                    corners.append(corner)
            for i in range(n):
                for j in range(n):
                    a = first + i * (n + 1) + j
                    b, c, d = a + n + 1, a + n + 2, a + 1
                    square = [[a, b, c], [a, c, d]] if side else [[a, c, b], [a, d, c]]
                    triangles += square
    return np.array(corners, np.float32), np.array(triangles, np.int32)


def test_no_faces_at_all():
    with pytest.raises(barchan.MeshError, match="no vertices"):
        barchan.Mesh(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.int32), name="Empty")
    with pytest.raises(barchan.MeshError, match="no faces"):
        barchan.Mesh(np.zeros((3, 3), np.float32), np.zeros((0, 3), np.int32), name="Points")


def test_one_triangle():
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
    body = barchan.sample(barchan.Mesh(corners, np.array([[0, 1, 2]], np.int32), name="One"), 0.05)
    check_body(body)
    assert body["body"] is None
    assert any("open" in warning for warning in body["warnings"])
    with pytest.raises(barchan.MeshError, match="One"):
        barchan.pack(barchan.Mesh(corners, np.array([[0, 1, 2]], np.int32), name="One"), 0.05)


def test_faces_without_area():
    corners, triangles = fine_cube()
    flat = np.array([[0, 1, 1], [0, 1, 2], [3, 3, 3]], np.int32)
    check_body(barchan.sample(barchan.Mesh(corners, np.concatenate([triangles, flat]), name="Flat"), 0.05))
    line = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0]], np.float32)
    with pytest.raises(barchan.MeshError, match="collapsed"):
        barchan.Mesh(line, np.array([[0, 1, 2]], np.int32), name="Line")


def test_doubled_faces():
    corners, triangles = fine_cube()
    doubled = np.concatenate([triangles, triangles[:40], triangles[40:60, ::-1]])
    body = barchan.sample(barchan.Mesh(corners, doubled, name="Doubled"), 0.05)
    check_body(body)
    assert any("60" in warning for warning in body["warnings"])
    assert body["body"][0] == pytest.approx(1, rel=1e-6)


def test_ten_flipped_faces():
    corners, triangles = fine_cube()
    triangles[5:105:10] = triangles[5:105:10, ::-1]
    body = barchan.sample(barchan.Mesh(corners, triangles, name="Flipped"), 0.05)
    check_body(body)
    assert any("10" in warning for warning in body["warnings"])
    assert body["body"][0] == pytest.approx(1, rel=1e-6)


def test_an_open_bottle():
    corners, triangles = fine_cube()
    lid = np.ptp(corners[triangles][:, :, 2], axis=1) == 0
    lid &= corners[triangles][:, 0, 2] == 1.0
    mesh = barchan.Mesh(corners, triangles[~lid], name="Bottle")
    body = barchan.sample(mesh, 0.05)
    check_body(body)
    assert any("open" in warning for warning in body["warnings"])
    inside = barchan.pack(mesh, 0.05)["centres"]
    assert len(inside) > 100 and (inside[:, :2] > 0.05 - 1e-4).all() and (inside[:, :2] < 0.95 + 1e-4).all()


@pytest.mark.parametrize("is_hollow", [True, False])
def test_two_nested_shells(is_hollow):
    corners, triangles = fine_cube()
    inner = triangles[:, ::-1] if is_hollow else triangles
    mesh = barchan.Mesh(
        np.concatenate([corners, 0.25 + 0.5 * corners]), np.concatenate([triangles, inner + len(corners)]), name="Nested"
    )
    body = barchan.sample(mesh, 0.05)
    check_body(body)
    assert is_hollow or any("inside" in warning for warning in body["warnings"])
    grains = barchan.pack(mesh, 0.04)["centres"]
    in_core = (np.abs(grains - 0.5).max(axis=1) < 0.2).sum()
    assert (in_core == 0) if is_hollow else (in_core > 50)


def test_a_knot_that_runs_through_itself(bench):
    vertices, faces = bench.knot(480, 72)
    rings = vertices.reshape(480, 72, 3)
    middle = rings.mean(axis=1, keepdims=True)
    fat = (middle + 1.9 * (rings - middle)).reshape(-1, 3).astype(np.float32)
    mesh = barchan.Mesh(fat, faces, name="Fat")
    body = barchan.sample(mesh, 0.04)
    check_body(body)
    assert any("overlaps itself" in warning for warning in body["warnings"])
    solid = barchan.pack(mesh, 0.06, kind="relaxed", packing=0.6, calibrate=True)
    assert solid["fit"]["hausdorff"] <= solid["radius"]


def test_five_million_triangles(bench):
    vertices, faces = bench.knot(3600, 700)
    assert len(faces) > 5_000_000
    check_body(barchan.sample(barchan.Mesh(vertices, faces, name="Fine"), 0.025))


def test_coordinates_of_a_million():
    corners, _ = cube_arrays()
    far = (corners.astype(np.float64) * 100 + 1e6).astype(np.float32)
    check_body(barchan.sample(barchan.Mesh(far, CUBE_TRIANGLES, name="Far"), 4.0), uncovered=0.01)
    near = (corners.astype(np.float64) + 1e6).astype(np.float32)
    with pytest.raises(ValueError, match="Far.*too coarse for spacing.*move it nearer to the origin"):
        barchan.sample(barchan.Mesh(near, CUBE_TRIANGLES, name="Far"), 0.05)


@pytest.mark.parametrize("size", [1e-30, 1e-22, 1e-10, 1e10, 1e18, 1e20, 1e30])
def test_meshes_of_absurd_size(size):
    """Squares of such lengths leave the range of floats: refused, or as good as any other."""
    corners, triangles = cube_arrays(size)
    mesh = barchan.Mesh(corners, triangles, name="Absurd")
    places = np.array([[0.5, 0.5, 0.25], [2.0, 0.5, 0.5]], np.float32) * np.float32(size)
    assert barchan.distance(mesh, places) / size == pytest.approx([-0.25, 1.0], rel=1e-6)
    if 1e-12 < 0.06 * size < 1e12:
        check_body(barchan.sample(mesh, 0.05 * size))
    else:
        with pytest.raises(ValueError, match="only 1e-12 to 1e.12 m.*Absurd"):
            barchan.sample(mesh, 0.05 * size)
    try:
        solid = barchan.pack(mesh, 0.05 * size, kind="relaxed", calibrate=True)
    except ValueError as error:
        assert "Absurd" in str(error)
    else:
        assert solid["fit"]["volume_error"] < 0.01


def test_a_radius_larger_than_the_mesh():
    mesh = barchan.Mesh(*cube_arrays(), name="Small")
    with pytest.raises(ValueError, match="Small.*only 1.73205 m across"):
        barchan.sample(mesh, 5.0)
    with pytest.raises(barchan.MeshError, match="radius 5 m.*Small"):
        barchan.pack(mesh, 5.0)


def test_a_billion_spheres():
    mesh = barchan.Mesh(*cube_arrays(), name="Dust")
    with pytest.raises(ValueError, match=r"Dust.*about \S+ points, more than the limit"):
        barchan.sample(mesh, 5e-5)
    with pytest.raises(ValueError, match=r"Dust.*about \S+ grains .*more than the limit"):
        barchan.pack(mesh, 5e-4)
