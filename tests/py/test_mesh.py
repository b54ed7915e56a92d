"""barchan.Mesh: what goes in, what is measured, and the sentence for everything that cannot be a mesh."""

import barchan
import numpy as np
import pytest
from conftest import cube_arrays, make_mesh


def test_a_cube_is_measured():
    mesh = make_mesh(size=2.0)
    assert mesh.vertex_count == 8
    assert mesh.triangle_count == 12
    assert mesh.is_closed is True
    assert mesh.volume == pytest.approx(8.0, rel=1e-12)  # doubles, and every product here is exact but the sixth
    assert mesh.area == pytest.approx(24.0, rel=1e-12)
    assert mesh.bounds.dtype == np.float32
    assert mesh.bounds.tolist() == [[0, 0, 0], [2, 2, 2]]
    assert mesh.require_closed() is None
    assert repr(mesh) == "<barchan.Mesh 'Cube': 8 vertices, 12 triangles>"


def test_the_name_is_optional_and_may_be_none():
    vertices, triangles = cube_arrays()
    for mesh in (
        barchan.Mesh(vertices, triangles),
        barchan.Mesh(vertices, triangles, None),
        barchan.Mesh(vertices=vertices, triangles=triangles, name=""),
    ):
        assert mesh.is_closed


def test_an_open_mesh_is_fine_until_it_must_be_closed():
    vertices, triangles = cube_arrays()
    mesh = barchan.Mesh(vertices, triangles[:-1], name="Caf\u00e9")
    assert mesh.is_closed is False
    with pytest.raises(barchan.MeshError, match="Mesh 'Caf\u00e9' has 3 open edges"):
        mesh.require_closed()


def test_the_mesh_keeps_nothing_of_the_arrays():
    vertices, triangles = cube_arrays()
    mesh = barchan.Mesh(vertices, triangles)
    vertices[:] = 5
    triangles[:] = 99
    assert mesh.bounds.tolist() == [[0, 0, 0], [1, 1, 1]]
    bounds = mesh.bounds
    bounds[:] = 9
    assert mesh.bounds.tolist() == [[0, 0, 0], [1, 1, 1]]


def strided(array):
    """The same values, but not contiguous."""
    wide = np.zeros((array.shape[0] * 2, array.shape[1] + 1), array.dtype)
    wide[::2, :-1] = array
    view = wide[::2, :-1]
    assert not view.flags.c_contiguous
    return view


@pytest.mark.parametrize(
    "convert",
    [
        strided,
        np.asfortranarray,
        lambda array: array.astype(np.float64 if array.dtype.kind == "f" else np.int64),
        lambda array: array.astype(np.float16 if array.dtype.kind == "f" else np.uint8),
        lambda array: array.astype(array.dtype.newbyteorder(">")),
        lambda array: array.tolist(),
        lambda array: tuple(map(tuple, array.tolist())),
    ],
    ids=["strided", "fortran", "wide", "narrow", "swapped", "list", "tuple"],
)
def test_every_form_of_the_same_numbers_gives_the_same_points(convert):
    vertices, triangles = cube_arrays()
    expected = barchan.fill(barchan.Mesh(vertices, triangles), 0.2, jitter=0.5, seed=3)
    mesh = barchan.Mesh(convert(vertices), convert(triangles))
    assert np.array_equal(barchan.fill(mesh, 0.2, jitter=0.5, seed=3), expected)


def test_read_only_arrays_are_fine():
    arrays = cube_arrays()
    for array in arrays:
        array.flags.writeable = False
    assert barchan.Mesh(*arrays).is_closed


@pytest.mark.parametrize(
    "vertices, found",
    [
        (np.zeros((8, 2), np.float32), r"\(8, 2\)"),
        (np.zeros(24, np.float32), r"\(24,\)"),
        (np.zeros((2, 4, 3), np.float32), r"\(2, 4, 3\)"),
        (np.float32(1), r"\(\)"),
        ([], r"\(0,\)"),
    ],
)
def test_a_wrong_shape_of_vertices_names_both_shapes(vertices, found):
    with pytest.raises(ValueError, match=r"vertices: found shape %s, expected \(N, 3\)" % found):
        barchan.Mesh(vertices, cube_arrays()[1])


def test_a_wrong_shape_of_triangles_names_both_shapes():
    with pytest.raises(ValueError, match=r"triangles: found shape \(12, 4\), expected \(N, 3\)"):
        barchan.Mesh(cube_arrays()[0], np.zeros((12, 4), np.int32))


@pytest.mark.parametrize(
    "vertices, found",
    [
        (None, "NoneType"),
        ("abc", "str"),
        (object(), "object"),
        (np.zeros((8, 3), complex), "an array of complex128"),
        (np.zeros((8, 3), bool), "an array of bool"),
        (np.zeros((8, 3), object), "an array of object"),
    ],
)
def test_vertices_that_are_no_numbers_are_a_type_error(vertices, found):
    with pytest.raises(TypeError, match="vertices: found %s, expected an array of float32" % found):
        barchan.Mesh(vertices, cube_arrays()[1])


@pytest.mark.parametrize(
    "triangles, found",
    [(None, "NoneType"), (np.zeros((12, 3), np.float32), "an array of float32"), ([[0.0, 1.0, 2.0]], "list")],
)
def test_triangles_that_are_no_whole_numbers_are_a_type_error(triangles, found):
    with pytest.raises(TypeError, match="triangles: found %s, expected an array of int32" % found):
        barchan.Mesh(cube_arrays()[0], triangles)


@pytest.mark.parametrize(
    "dtype, value, text",
    [
        (np.int64, 2**31, "2147483648"),
        (np.int64, -(2**31) - 1, "-2147483649"),
        (np.int64, 2**32, "4294967296"),
        (np.uint32, 2**31, "2147483648"),
        (np.uint64, 2**64 - 1, "18446744073709551615"),
    ],
)
def test_indices_beyond_32_bits_are_not_cut(dtype, value, text):
    triangles = cube_arrays()[1].astype(dtype)
    triangles[3, 1] = value
    with pytest.raises(ValueError, match="triangles: element 10 is %s, expected" % text):
        barchan.Mesh(cube_arrays()[0], triangles)


@pytest.mark.parametrize("index", [-1, 8])
def test_an_index_out_of_range_names_triangle_and_index(index):
    vertices, triangles = cube_arrays()
    triangles[5, 2] = index
    with pytest.raises(barchan.MeshError, match=r"Mesh 'Box'.*triangle 5.* %d\b.*\b8\b" % index):
        barchan.Mesh(vertices, triangles, name="Box")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_vertex_that_is_not_finite_is_named(value):
    vertices, triangles = cube_arrays()
    vertices[6, 1] = value
    with pytest.raises(barchan.MeshError, match="Mesh 'Box'.*vertex 6"):
        barchan.Mesh(vertices, triangles, name="Box")


def test_a_double_beyond_float32_is_not_taken_for_a_number():
    vertices, triangles = cube_arrays()
    vertices = vertices.astype(np.float64)
    vertices[6, 1] = 1e300
    with np.errstate(over="ignore"), pytest.raises(barchan.MeshError, match="vertex 6"):
        barchan.Mesh(vertices, triangles)


def test_empty_meshes_are_mesh_errors():
    vertices, triangles = cube_arrays()
    with pytest.raises(barchan.MeshError, match="no vertices"):
        barchan.Mesh(vertices[:0], triangles[:0])
    with pytest.raises(barchan.MeshError, match="no faces"):
        barchan.Mesh(vertices, triangles[:0])
    with pytest.raises(barchan.MeshError, match="collapsed"):
        barchan.Mesh(vertices * 0, triangles)


def test_a_mesh_error_is_a_value_error():
    vertices, triangles = cube_arrays()
    with pytest.raises(ValueError):
        barchan.Mesh(vertices, triangles[:0])


def test_a_name_must_be_text():
    with pytest.raises(TypeError):
        barchan.Mesh(*cube_arrays(), name=3)
    with pytest.raises(ValueError):
        barchan.Mesh(*cube_arrays(), name="a\0b")


def test_properties_cannot_be_set():
    mesh = make_mesh()
    for name in ("vertex_count", "triangle_count", "is_closed", "volume", "area", "bounds"):
        with pytest.raises(AttributeError):
            setattr(mesh, name, 1)
