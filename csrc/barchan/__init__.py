"""Barchan's core: mesh, sampler, scene, simulator and frame cache, written in C.

The names are listed and explained in docs/design.md. This package only names what the C module `_core` holds: every
check, every error sentence and every loop lives there.
"""

from ._core import (
    CacheError,
    Cancelled,
    Error,
    GpuError,
    Mesh,
    MeshError,
    Scene,
    Sim,
    UnstableError,
    __version__,
    cover,
    fill,
    free_frames,
    list_frames,
    make_folder,
    read_frame,
    shape,
    sizes,
    tetrahedron,
    write_frame,
)

__all__ = [
    "CacheError",
    "Cancelled",
    "Error",
    "GpuError",
    "Mesh",
    "MeshError",
    "Scene",
    "Sim",
    "UnstableError",
    "__version__",
    "cover",
    "fill",
    "free_frames",
    "list_frames",
    "make_folder",
    "read_frame",
    "shape",
    "sizes",
    "tetrahedron",
    "write_frame",
]
