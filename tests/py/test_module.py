"""The module itself: names, exceptions, build information, and two copies of it in one process."""

import gc
import importlib.util
import inspect
import re

import barchan
import pytest
from barchan import _core
from conftest import cube_arrays, make_mesh


def test_every_name_of_the_face_is_there():
    names = """Mesh Scene Sim cover fill tetrahedron shape sizes write_frame read_frame make_folder list_frames
               free_frames sample pack clump mass_properties devices Cancel
               Error MeshError CacheError GpuError UnstableError Cancelled __version__""".split()
    missing = [name for name in names if not hasattr(barchan, name)]
    assert not missing


def test_the_version_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", barchan.__version__), barchan.__version__


def test_exceptions_have_the_bases_that_the_design_promises():
    assert issubclass(barchan.Error, Exception)
    for name in ("MeshError", "CacheError", "GpuError", "UnstableError", "Cancelled"):
        exception = getattr(barchan, name)
        assert issubclass(exception, barchan.Error), name
        assert exception.__module__ == "barchan", name
        assert exception.__doc__, name
    assert issubclass(barchan.MeshError, ValueError)
    assert not issubclass(barchan.CacheError, (ValueError, OSError))


def test_build_info_says_how_it_was_built():
    info = _core.build_info()
    print(info)
    assert set(info) == {"version", "compiler", "asserts", "python_target", "numpy_target", "cache_version"}
    assert info["version"] == barchan.__version__
    assert info["asserts"] in (True, False)
    assert info["python_target"] == "0x030b0000"
    assert info["cache_version"] == 3


@pytest.mark.parametrize("name", [name for name in dir(_core) if not name.startswith("_")])
def test_everything_has_a_docstring(name):
    thing = getattr(_core, name)
    assert inspect.getdoc(thing)
    if isinstance(thing, type) and not issubclass(thing, Exception):
        for attribute in vars(thing):
            assert attribute.startswith("__") or inspect.getdoc(getattr(thing, attribute)), attribute


@pytest.mark.parametrize("name", ["Mesh", "Scene", "Sim", "Cancel"])
def test_types_cannot_be_changed_or_inherited(name):
    kind = getattr(barchan, name)
    assert kind.__module__ == "barchan"
    with pytest.raises(TypeError):
        type("Child", (kind,), {})
    with pytest.raises(TypeError):
        kind.extra = 1


@pytest.mark.parametrize("name", ["Mesh", "Scene", "Sim"])
def test_types_need_their_arguments(name):
    with pytest.raises(TypeError):
        getattr(barchan, name)()
    with pytest.raises(TypeError):
        object.__new__(getattr(barchan, name))


def second_core():
    spec = importlib.util.spec_from_file_location("barchan._core", _core.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_copies_of_the_module_do_not_mix():
    other = second_core()
    assert other.MeshError is not barchan.MeshError
    assert other.Mesh is not barchan.Mesh
    with pytest.raises(TypeError):
        other.fill(make_mesh(), 0.2)
    theirs = other.Mesh(*cube_arrays())
    assert other.fill(theirs, 0.2).shape[1] == 3
    with pytest.raises(other.MeshError):
        other.Mesh(*[array[:0] for array in cube_arrays()])


def test_a_mesh_outlives_the_names_of_its_module():
    other = second_core()
    mesh = other.Mesh(*cube_arrays())
    points = other.fill(mesh, 0.2)
    del other
    gc.collect()
    assert mesh.triangle_count == 12
    assert points.shape[1] == 3
    with pytest.raises(ValueError, match="no faces|open edge"):
        type(mesh)(cube_arrays()[0], cube_arrays()[1][:0])
