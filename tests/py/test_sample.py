"""barchan.sample, pack, clump and mass_properties: a mesh becomes spheres, measured; and what stops them."""

import gc
import itertools
import threading

import barchan
import numpy as np
import pytest
from barchan import _core
from conftest import CUBE_TRIANGLES, cube_arrays, growth, make_mesh

FIT_KEYS = set(
    """sphere_count spacing_min spacing_mean spacing_max evenness uncovered_share hausdorff mesh_volume sphere_volume
       volume_error inertia_error_raw inertia_error seconds""".split()
)
BODY_KEYS = {"centres", "masses", "has_exact_masses", "body", "fit", "warnings"}


def box(size, name="Box"):
    corners = np.array(list(itertools.product((-0.5, 0.5), repeat=3)), np.float32) * np.float32(size)
    return barchan.Mesh(corners, CUBE_TRIANGLES, name=name)


def open_box():
    """A cube of edge 1 without its lid."""
    corners, triangles = cube_arrays()
    return barchan.Mesh(corners, triangles[2:], name="Open")


def nearest_of(points):
    """Distance of each point to the nearest other, by brute force."""
    points = points.astype(np.float64)
    square = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.fill_diagonal(square, np.inf)
    return np.sqrt(square.min(axis=1))


def inertia_of(masses, centres, radius):
    """Tensor of balls about their centre of mass."""
    centres = centres.astype(np.float64)
    middle = (masses[:, None] * centres).sum(axis=0) / masses.sum()
    arm = centres - middle
    tensor = (masses * (arm**2).sum(axis=1)).sum() * np.eye(3) - (masses[:, None] * arm).T @ arm
    return middle, tensor + 0.4 * (masses * radius**2).sum() * np.eye(3)


# ---- what is made ---------------------------------------------------------------------------------------------------


def test_a_cube_is_covered_evenly(mesh):
    body = barchan.sample(mesh, 0.05)
    fit = body["fit"]
    print(fit)
    assert set(body) == BODY_KEYS | {"radius", "spacing", "offset", "engine"}
    assert body["engine"] == {"engine": "cpu", "device": None, "note": ""}
    assert set(fit) == FIT_KEYS
    centres = body["centres"]
    assert centres.dtype == np.float32 and centres.shape == (fit["sphere_count"], 3)
    assert body["radius"] == pytest.approx(0.05) and body["offset"] == 0
    assert body["spacing"] == pytest.approx(1.2 * 0.05)
    # On the surface: one coordinate is 0 or 1, within a rounding of float32 near 1.
    assert np.minimum(abs(centres), abs(centres - 1)).min(axis=1).max() <= 1e-6
    assert fit["uncovered_share"] < 0.001
    assert fit["evenness"] > 0.7
    assert fit["mesh_volume"] == pytest.approx(1)
    assert fit["seconds"] > 0
    assert body["warnings"] == []


def test_the_spacings_are_those_of_the_centres(mesh):
    body = barchan.sample(mesh, 0.08, spacing=0.1, seed=3)
    found = nearest_of(body["centres"])
    fit = body["fit"]
    assert [fit["spacing_min"], fit["spacing_mean"], fit["spacing_max"]] == pytest.approx(
        [found.min(), found.mean(), found.max()], rel=1e-5
    )
    assert fit["evenness"] == pytest.approx(found.min() / found.mean(), rel=1e-5)


def test_masses_of_a_filling_weigh_and_turn_like_the_mesh():
    mesh = box((1, 0.6, 0.4))
    body = barchan.pack(mesh, 0.05)
    wanted = barchan.mass_properties(mesh)
    masses = body["masses"]
    assert masses.dtype == np.float64 and masses.shape == (len(body["centres"]),)
    assert body["has_exact_masses"] is True
    assert masses.sum() == pytest.approx(1 * 0.6 * 0.4) and (masses > 0).all()
    middle, tensor = inertia_of(masses, body["centres"], np.float32(0.05))
    # Centres are float32, and 1e-9 of size and largest moment is what the core promises of them.
    assert middle == pytest.approx(np.zeros(3), abs=1e-8)
    assert tensor == pytest.approx(wanted["inertia"], abs=1e-8 * wanted["inertia"].max())
    equal = inertia_of(np.full(len(masses), masses.mean()), body["centres"], 0.05)[1]
    assert np.abs(equal - wanted["inertia"]).max() > 1e-3 * wanted["inertia"].max()  # equal masses would not do


def test_masses_on_a_surface_come_as_near_as_they_can():
    # A shell turns harder than a solid: no positive masses on it that are anywhere near equal turn like the box.
    body = barchan.sample(box((1, 0.6, 0.4)), 0.05)
    fit = body["fit"]
    print(fit["inertia_error_raw"], fit["inertia_error"])
    assert body["has_exact_masses"] is False
    assert body["masses"].sum() == pytest.approx(1 * 0.6 * 0.4) and (body["masses"] > 0).all()
    assert 0 < fit["inertia_error"] < fit["inertia_error_raw"]


def test_an_offset_puts_the_centres_inside(mesh):
    body = barchan.sample(mesh, 0.05, offset=-0.05)
    low, high = body["centres"].min(), body["centres"].max()
    print(low, high)
    # A thousandth of the radius is what the level may be off.
    assert low >= 0.05 - 5e-5 and high <= 0.95 + 5e-5


def test_an_open_mesh_is_covered_and_says_that_it_is_open():
    body = barchan.sample(open_box(), 0.05)
    print(body["warnings"])
    assert len(body["warnings"]) == 1 and "Open" in body["warnings"][0] and "open edges" in body["warnings"][0]
    assert body["fit"]["mesh_volume"] == 0 and body["fit"]["volume_error"] == 0
    assert body["fit"]["uncovered_share"] < 0.001
    # Nothing says what an open mesh weighs: its spheres share the volume that they take up.
    assert body["masses"] == pytest.approx(np.full(len(body["masses"]), body["masses"][0]))
    assert body["masses"].sum() == pytest.approx(body["fit"]["sphere_volume"])


def test_a_mesh_with_flipped_and_doubled_faces_is_mended_first():
    corners, triangles = cube_arrays()
    triangles[0] = triangles[0][::-1]
    broken = barchan.Mesh(corners, np.concatenate([triangles, triangles[3:5]]), name="Broken")
    body = barchan.sample(broken, 0.05)
    print(body["warnings"])
    assert body["warnings"] and "Broken" in body["warnings"][0]
    assert body["fit"]["mesh_volume"] == pytest.approx(1)
    assert barchan.mass_properties(broken)["volume"] == pytest.approx(1)


def test_mass_properties_of_a_box():
    found = barchan.mass_properties(box((3, 2, 1)))
    assert set(found) == {"volume", "centre", "inertia"}
    assert found["volume"] == pytest.approx(6)
    assert found["centre"] == pytest.approx(np.zeros(3), abs=1e-12)
    # m / 12 (b^2 + c^2)
    assert found["inertia"] == pytest.approx(np.diag([6 / 12 * 5, 6 / 12 * 10, 6 / 12 * 13]), abs=1e-12)


def test_products_of_inertia_stand_in_the_tensor_as_negative_sums():
    # A rod of four cubes along (1, 1, 0), turned by 45 degrees: its inertia is least about that axis.
    corners = np.array(list(itertools.product((-2, 2), (-0.1, 0.1), (-0.1, 0.1))))
    turn = np.array([[1, -1, 0], [1, 1, 0], [0, 0, np.sqrt(2)]]) / np.sqrt(2)
    rod = barchan.Mesh((corners @ turn.T).astype(np.float32), CUBE_TRIANGLES)
    tensor = barchan.mass_properties(rod)["inertia"]
    axis = np.array([1, 1, 0]) / np.sqrt(2)
    volume = 4 * 0.2 * 0.2
    assert axis @ tensor @ axis == pytest.approx(volume / 12 * (0.2**2 + 0.2**2), rel=1e-4)


def test_mass_properties_of_an_open_mesh_are_refused():
    with pytest.raises(barchan.MeshError, match="Open"):
        barchan.mass_properties(open_box())


@pytest.mark.parametrize("kind", ["hexagonal", "jittered", "relaxed"])
def test_nothing_of_a_packed_cube_pokes_out(mesh, kind):
    body = barchan.pack(mesh, 0.06, kind=kind, seed=2)
    centres, fit = body["centres"], body["fit"]
    packing = fit["sphere_count"] * 4 / 3 * np.pi * 0.06**3
    print(kind, fit["sphere_count"], packing, fit["spacing_min"])
    assert set(body) == BODY_KEYS | {"radius", "packing_radius"}
    assert centres.min() >= 0.06 - 1e-6 and centres.max() <= 0.94 + 1e-6
    # One per cent of a radius may overlap when relaxed.
    assert nearest_of(centres).min() >= 2 * 0.06 * (0.995 if kind == "relaxed" else 1 - 1e-5)
    assert packing > 0.3
    assert fit["uncovered_share"] == 0


@pytest.mark.parametrize("kind", ["hexagonal", "jittered", "relaxed"])
def test_a_calibrated_filling_is_as_large_as_the_mesh(kind):
    solid = box((0.4, 0.3, 0.2))
    plain = barchan.pack(solid, 0.01, kind=kind)
    body = barchan.pack(solid, 0.01, kind=kind, calibrate=True)
    count = len(plain["centres"])
    assert np.array_equal(plain["centres"], body["centres"][:count])
    assert len(body["centres"]) < 1.25 * count
    assert body["packing_radius"] == plain["radius"] == pytest.approx(0.01)
    print(kind, plain["fit"]["volume_error"], body["fit"])
    assert plain["fit"]["volume_error"] > 0.1
    assert body["fit"]["volume_error"] < 0.01
    assert body["fit"]["inertia_error"] < 0.01
    # A lattice ends where it happens to, the others lie against the surface.
    assert body["fit"]["hausdorff"] <= body["radius"] * (1.5 if kind == "hexagonal" else 1.0)


def test_a_sampled_body_turns_like_its_mesh(mesh):
    """Two balls of equal mass meet a body off its centre: what it spins with is the mesh's inertia, not the spheres'."""
    solid = box((0.4, 0.3, 0.2))
    body = barchan.sample(solid, 0.02)
    volume, inertia = 0.4 * 0.3 * 0.2, 0.4 * 0.3 * 0.2 / 12 * np.array([0.13, 0.2, 0.25])
    assert body["body"] == pytest.approx([volume, 0, 0, 0, *inertia, 0, 0, 0], rel=1e-6, abs=1e-12)
    radii = np.full(len(body["centres"]), body["radius"], np.float32)
    for axis in range(3):
        spin = np.zeros((1, 3), np.float32)
        spin[0, axis] = 2.0
        scene = barchan.Scene(
            positions=np.zeros((1, 3), np.float32),
            orientations=np.array([[1, 0, 0, 0]], np.float32),
            shapes=[(body["centres"], radii, body["body"])],
            spins=spin,
            gravity=(0, 0, 0),
            density=1000.0,
        )
        energy = barchan.Sim(scene).info()["kinetic_energy"]
        assert energy == pytest.approx(0.5 * 1000 * inertia[axis] * 4.0, rel=0.01)


def test_distances_of_a_box_are_signed():
    solid = box((0.4, 0.3, 0.2))
    points = np.random.default_rng(1).uniform(-0.5, 0.5, (2000, 3)).astype(np.float32)
    over = np.abs(points.astype(np.float64)) - np.array([0.2, 0.15, 0.1], np.float32).astype(np.float64)
    expected = np.linalg.norm(np.maximum(over, 0), axis=1) + np.minimum(over.max(axis=1), 0)
    for threads in (1, 2):
        assert np.abs(barchan.distance(solid, points, threads=threads) - expected).max() < 1e-9
    assert len(barchan.distance(solid, np.zeros((0, 3), np.float32))) == 0
    with pytest.raises(ValueError, match="not finite"):
        barchan.distance(solid, [[0, 0, np.nan]])


def test_spread_gives_the_centres_of_sample():
    solid = box((0.4, 0.3, 0.2))
    points = barchan.spread(solid, 0.02, seed=3, threads=2)
    body = barchan.sample(solid, 0.02, spacing=0.02, seed=3)
    assert points.dtype == np.float32 and points.shape == body["centres"].shape
    nearest = nearest_of(points)
    assert nearest.min() / nearest.mean() > 0.92
    with pytest.raises(ValueError, match="spacing|Spacing"):
        barchan.spread(solid, -1.0)


def test_a_looser_packing_holds_fewer(mesh):
    assert barchan.pack(mesh, 0.05, packing=0.4)["fit"]["sphere_count"] < barchan.pack(mesh, 0.05)["fit"]["sphere_count"]


def test_a_rod_becomes_a_row_of_spheres():
    body = barchan.clump(box((4, 1, 1)), sphere_count=6)
    print(body["centres"], body["radii"], body["overlap"])
    assert set(body) == BODY_KEYS | {"radii", "overlap"}
    count = len(body["radii"])
    assert 2 <= count <= 6 and body["centres"].shape == (count, 3)
    assert body["radii"].dtype == np.float32 and (body["radii"] > 0.2).all() and (body["radii"] < 1).all()
    assert 0.6 < body["overlap"] <= 1
    # Along the rod, not beside it.
    assert np.ptp(body["centres"][:, 0]) > 2 and np.abs(body["centres"][:, 1:]).max() < 0.4
    assert body["masses"].sum() == pytest.approx(4)


def test_clump_takes_eight_spheres_when_not_told():
    mesh = box((2, 1, 1))
    assert np.array_equal(barchan.clump(mesh)["centres"], barchan.clump(mesh, 8)["centres"])


# ---- the same again -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda **rest: barchan.sample(make_mesh(), 0.1, **rest),
        lambda **rest: barchan.pack(make_mesh(), 0.1, kind="relaxed", **rest),
        lambda **rest: barchan.clump(box((3, 1, 1)), 4, **rest),
    ],
    ids=["sample", "pack", "clump"],
)
def test_every_thread_count_gives_the_same_bits(make):
    bodies = [make(seed=5, threads=threads) for threads in (1, 2, 3)]
    for body in bodies[1:]:
        assert body["centres"].tobytes() == bodies[0]["centres"].tobytes()
        assert body["masses"].tobytes() == bodies[0]["masses"].tobytes()
        first = {**bodies[0]["fit"], "seconds": 0}
        assert {**body["fit"], "seconds": 0} == first


def test_a_seed_decides(mesh):
    one, two = (barchan.sample(mesh, 0.1, seed=seed)["centres"] for seed in (1, 2))
    assert one.shape != two.shape or not np.array_equal(one, two)


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 1e300])
def test_a_bad_radius_is_named_with_its_value(mesh, value):
    for make in (barchan.sample, barchan.pack):
        with pytest.raises(ValueError, match="radius is"):
            make(mesh, value)


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_a_bad_spacing_is_named_with_its_value(mesh, value):
    with pytest.raises(ValueError, match="spacing is"):
        barchan.sample(mesh, 0.1, spacing=value)


def test_an_offset_that_is_no_number(mesh):
    with pytest.raises(ValueError, match="(?i)offset"):
        barchan.sample(mesh, 0.1, offset=float("nan"))


def test_an_offset_deeper_than_the_mesh(mesh):
    with pytest.raises(barchan.MeshError, match="Cube"):
        barchan.sample(mesh, 0.1, offset=-2)


def test_too_many_spheres_are_refused_before_they_are_made(mesh):
    for make in (barchan.sample, barchan.pack):
        with pytest.raises(ValueError, match="(?i)points|grains|spheres|coarse"):
            make(mesh, 1e-5)


@pytest.mark.parametrize("count", [-1, 1, 51, 10**6])
def test_a_bad_count_of_a_clump_is_named(mesh, count):
    with pytest.raises(ValueError, match="(?i)spheres|count"):
        barchan.clump(mesh, count)


def test_other_bad_arguments_are_named(mesh):
    for call, kind, match in (
        (lambda: barchan.sample(None, 1), TypeError, "mesh: found NoneType"),
        (lambda: barchan.mass_properties(3), TypeError, "mesh: found int"),
        (lambda: barchan.sample(mesh), TypeError, "radius"),
        (lambda: barchan.sample(mesh, "x"), TypeError, "radius: found str"),
        (lambda: barchan.sample(mesh, 0.1, 0.1), TypeError, "positional"),
        (lambda: barchan.sample(mesh, 0.1, seed=-1), ValueError, "seed"),
        (lambda: barchan.sample(mesh, 0.1, threads=-1), ValueError, "(?i)thread"),
        (lambda: barchan.sample(mesh, 0.1, cancel=3), TypeError, "cancel: found int"),
        (lambda: barchan.pack(mesh, 0.1, kind="cubic"), ValueError, "kind: found 'cubic'"),
        (lambda: barchan.pack(mesh, 0.1, packing=0.9), ValueError, "(?i)packing"),
        (lambda: barchan.pack(mesh, 5), barchan.MeshError, "Cube"),
        (lambda: barchan.clump(mesh, 2.5), TypeError, "sphere_count"),
        (lambda: barchan.Cancel(1), TypeError, "Cancel"),
    ):
        with pytest.raises(kind, match=match):
            call()


def test_a_raised_cancel_stops_before_the_end(mesh):
    cancel = barchan.Cancel()
    assert not cancel.is_cancelled
    assert barchan.sample(mesh, 0.1, cancel=cancel)["fit"]["sphere_count"] > 0
    cancel.cancel()
    assert cancel.is_cancelled
    for call in (
        lambda: barchan.sample(mesh, 0.1, cancel=cancel),
        lambda: barchan.pack(mesh, 0.1, kind="relaxed", cancel=cancel),
        lambda: barchan.clump(mesh, 4, cancel=cancel),
    ):
        with pytest.raises(barchan.Cancelled):
            call()


def test_another_thread_may_cancel(mesh):
    cancel = barchan.Cancel()
    outcome = []

    def work():
        try:
            outcome.append(barchan.sample(mesh, 0.002, threads=1, cancel=cancel))
        except barchan.Cancelled as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    cancel.cancel()
    thread.join()
    assert isinstance(outcome[0], barchan.Cancelled), outcome


# ---- lifetimes ------------------------------------------------------------------------------------------------------


def test_the_arrays_live_in_the_core_until_the_last_is_gone(mesh):
    gc.collect()
    before = _core.allocated_bytes()
    body = barchan.sample(mesh, 0.05)
    centres = body["centres"]
    assert not centres.flags.owndata
    expected = centres.copy()
    del body
    gc.collect()
    assert _core.allocated_bytes() - before >= centres.nbytes
    assert np.array_equal(centres, expected)
    del centres
    gc.collect()
    assert _core.allocated_bytes() == before


def test_many_rounds_leave_nothing_behind(mesh):
    def action():
        barchan.sample(mesh, 0.2)
        barchan.pack(mesh, 0.2)
        barchan.clump(mesh, 2)
        barchan.mass_properties(mesh)
        with pytest.raises(ValueError):
            barchan.sample(mesh, 0.1, threads=-1)

    blocks, core_bytes = growth(action, 5)
    assert blocks < 20 and core_bytes == 0


@pytest.mark.parametrize("name", ["sample", "pack", "clump", "mass_properties"])
def test_every_failing_allocation_is_reported(mesh, name):
    calls = {
        "sample": lambda: barchan.sample(mesh, 0.2, threads=1),
        "pack": lambda: barchan.pack(mesh, 0.2, threads=1),
        "clump": lambda: barchan.clump(mesh, 2, threads=1),
        "mass_properties": lambda: barchan.mass_properties(mesh),
    }
    calls[name]()
    gc.collect()
    before = _core.allocated_bytes()
    failed = 0
    for countdown in itertools.count(1):
        _core.fail_alloc_after(countdown)
        try:
            calls[name]()
        except MemoryError as error:
            failed += 1
            assert str(error)
        else:
            break
        finally:
            _core.fail_alloc_after(0)
        gc.collect()
        assert _core.allocated_bytes() == before, countdown
    print(name, failed)
    assert failed >= 3
