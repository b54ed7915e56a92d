"""barchan.cover, fill and tetrahedron: arrays out of the core's own memory, and bad numbers by name."""

import barchan
import numpy as np
import pytest
from conftest import cube_arrays, make_mesh


def test_fill_gives_points_inside(mesh):
    points = barchan.fill(mesh, spacing=0.1, clearance=0.05, jitter=0.2, seed=1)
    assert points.dtype == np.float32
    assert points.ndim == 2 and points.shape[1] == 3 and len(points) > 500
    assert points.flags.c_contiguous and points.flags.writeable
    low, high = points.min(axis=0), points.max(axis=0)
    print(low, high)
    # One rounding of a float32 near 1 is allowed.
    assert (low >= 0.05 - 1e-6).all() and (high <= 0.95 + 1e-6).all()


def test_cover_gives_points_on_the_surface(mesh):
    points = barchan.cover(mesh, spacing=0.1, seed=1)
    assert points.dtype == np.float32 and points.shape[1] == 3 and len(points) > 100
    distance = np.minimum(abs(points), abs(points - 1)).min(axis=1)
    assert distance.max() <= 1e-6  # one rounding of a float32 near 1


def test_one_seed_gives_one_set_of_points(mesh):
    for sample in (
        lambda seed: barchan.fill(mesh, 0.1, jitter=0.5, seed=seed),
        lambda seed: barchan.cover(mesh, 0.1, seed=seed),
    ):
        assert np.array_equal(sample(5), sample(5))
        assert not np.array_equal(sample(5), sample(6))
        assert not np.array_equal(sample(0), sample(2**64 - 1))


def test_the_default_seed_is_zero(mesh):
    assert np.array_equal(barchan.cover(mesh, 0.2), barchan.cover(mesh, spacing=0.2, seed=0))


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 1e300])
def test_a_bad_spacing_is_named_with_its_value(mesh, value):
    for sample in (barchan.cover, barchan.fill):
        with pytest.raises(ValueError, match="Spacing is"):
            sample(mesh, spacing=value)


@pytest.mark.parametrize(
    "name, value",
    [("clearance", -0.1), ("clearance", float("nan")), ("jitter", -0.1), ("jitter", 1.5), ("jitter", float("nan"))],
)
def test_other_bad_numbers_are_named(mesh, name, value):
    with pytest.raises(ValueError, match=name.capitalize()):
        barchan.fill(mesh, spacing=0.1, **{name: value})


def test_too_many_points_are_refused_before_they_are_made(mesh):
    for sample in (barchan.cover, barchan.fill):
        with pytest.raises(ValueError, match="points|coarse|pieces"):
            sample(mesh, spacing=1e-5)


@pytest.mark.parametrize("name", ["spacing", "clearance", "jitter"])
@pytest.mark.parametrize("value", ["x", None, [1.0], 1j])
def test_numbers_that_are_none_are_type_errors_by_name(mesh, name, value):
    with pytest.raises(TypeError, match="%s: found .*, expected a number" % name):
        barchan.fill(mesh, **{"spacing": 0.1, name: value})


@pytest.mark.parametrize("value, kind", [(-1, ValueError), (2**64, ValueError), (1.5, TypeError), ("1", TypeError)])
def test_a_bad_seed_is_named(mesh, value, kind):
    for sample in (barchan.cover, barchan.fill):
        with pytest.raises(kind, match="seed"):
            sample(mesh, 0.2, seed=value)


def test_only_a_mesh_is_sampled():
    for sample in (barchan.cover, barchan.fill):
        for value in (None, 3, cube_arrays()):
            with pytest.raises(TypeError, match="barchan.Mesh"):
                sample(value, 0.1)


def test_an_open_mesh_can_be_covered_but_not_filled():
    vertices, triangles = cube_arrays()
    mesh = barchan.Mesh(vertices, triangles[:-2], name="Open box")
    assert len(barchan.cover(mesh, 0.2)) > 10
    with pytest.raises(barchan.MeshError, match="Open box"):
        barchan.fill(mesh, 0.2)


def test_a_mesh_without_room_for_a_grain_says_so():
    with pytest.raises(barchan.MeshError, match="Cube"):
        barchan.fill(make_mesh(size=0.1), spacing=0.2, clearance=0.1)


def test_a_tetrahedron_has_touching_spheres():
    offsets = barchan.tetrahedron(0.5)
    assert offsets.shape == (4, 3) and offsets.dtype == np.float32
    distances = [np.linalg.norm(offsets[i] - offsets[j]) for i in range(4) for j in range(i)]
    assert distances == pytest.approx([1.0] * 6, rel=1e-6)  # float32 rounds at 6e-8


@pytest.mark.parametrize(
    "value, kind",
    [
        (0, ValueError),
        (-1, ValueError),
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ("x", TypeError),
        (None, TypeError),
    ],
)
def test_a_bad_radius_is_named(value, kind):
    with pytest.raises(kind, match="radius"):
        barchan.tetrahedron(value)
