"""barchan.sizes, barchan.shape and Scene(scales=): grains of many sizes and of the ready-made shapes."""

import barchan
import numpy as np
import pytest
from conftest import BALL_RADIUS, ball_scene, make_scene


@pytest.mark.parametrize("kind", ["uniform", "lognormal"])
def test_sizes_lie_in_their_range_and_follow_their_seed(kind):
    sizes = barchan.sizes(kind, 0.5, 2, spread=0.5, seed=3, count=1000)
    assert sizes.shape == (1000,) and sizes.dtype == np.float32 and sizes.flags.owndata
    assert 0.5 <= sizes.min() < sizes.max() <= 2
    assert np.array_equal(sizes, barchan.sizes(kind, 0.5, 2, 0.5, 3, count=1000))
    assert not np.array_equal(sizes, barchan.sizes(kind, 0.5, 2, 0.5, 4, count=1000))
    # Each grain's size is its own, whatever their number.
    assert np.array_equal(sizes[:10], barchan.sizes(kind, 0.5, 2, 0.5, 3, count=10))


def test_uniform_sizes_are_even():
    sizes = barchan.sizes("uniform", 1, 3, seed=1, count=100000)
    print(sizes.mean(), sizes.std())
    # Four deviations of a mean of 100000: 4 * 0.577 / 316 = 0.007.
    assert sizes.mean() == pytest.approx(2, abs=0.007)
    assert sizes.std() == pytest.approx(2 / 12**0.5, abs=0.007)


def test_lognormal_sizes_have_their_median_and_spread():
    logarithms = np.log(barchan.sizes("lognormal", 0.1, 10, spread=0.3, seed=1, count=100000))
    print(np.median(logarithms), logarithms.std())
    # The cut at 7.7 deviations removes nothing; four deviations of the median: 4 * 1.25 * 0.3 / 316 = 0.005.
    assert np.median(logarithms) == pytest.approx(0, abs=0.005)
    assert logarithms.std() == pytest.approx(0.3, abs=0.005)


def test_sizes_without_room_are_one_size():
    assert barchan.sizes("uniform", 2, 2, count=3).tolist() == [2, 2, 2]
    assert barchan.sizes("lognormal", 0.5, 2, count=3).tolist() == [1, 1, 1]  # spread 0
    assert barchan.sizes("uniform", 1, 2, count=0).shape == (0,)


@pytest.mark.parametrize(
    "arguments, keywords, kind, sentence",
    [
        (("gauss", 1, 2), {"count": 1}, ValueError, "kind: found 'gauss', expected uniform or lognormal"),
        ((None, 1, 2), {"count": 1}, TypeError, "kind: found NoneType, expected uniform or lognormal"),
        (("uniform", 1, 2), {}, TypeError, r"sizes\(\) needs the keyword argument 'count'"),
        (("uniform", 1, 2, 0, 0, 5), {}, TypeError, "positional"),
        (("uniform", 1), {"count": 1}, TypeError, "high"),
        (("uniform", 1, 2), {"count": -1}, ValueError, "count is -1, expected 0 to 2147483647"),
        (("uniform", 1, 2), {"count": 2**31}, ValueError, "count is 2147483648"),
        (("uniform", 1, 2), {"count": 1.0}, TypeError, "count: found float, expected a whole number"),
        (("uniform", 0, 2), {"count": 1}, ValueError, "from 0 to 2"),
        (("uniform", 2, 1), {"count": 1}, ValueError, "from 2 to 1"),
        (("uniform", float("nan"), 1), {"count": 1}, ValueError, "nan"),
        (("uniform", 1, float("inf")), {"count": 1}, ValueError, "inf"),
        (("lognormal", 1, 2), {"count": 1, "spread": -1}, ValueError, "spread -1"),
        (("uniform", "x", 2), {"count": 1}, TypeError, "low: found str, expected a number"),
        (("uniform", 1, 2), {"count": 1, "seed": -1}, ValueError, "seed is -1"),
    ],
)
def test_bad_sizes_are_named(arguments, keywords, kind, sentence):
    with pytest.raises(kind, match=sentence):
        barchan.sizes(*arguments, **keywords)


def distances(offsets):
    return sorted(float(np.linalg.norm(a - b)) for i, a in enumerate(offsets) for b in offsets[:i])


@pytest.mark.parametrize("kind, count", [("tetrahedron", 4), ("cube", 8), ("rod", 3), ("sphere", 1)])
def test_shapes_fit_into_a_scene(kind, count):
    offsets, radii = barchan.shape(kind, 0.02)
    assert offsets.shape == (count, 3) and offsets.dtype == np.float32
    assert radii.shape == (count,) and radii.dtype == np.float32
    assert np.unique(radii).tolist() == [np.float32(0.02)]
    assert offsets.mean(axis=0) == pytest.approx([0, 0, 0], abs=1e-8)
    assert make_scene(shapes=[barchan.shape(kind, 0.02)]).sphere_count == 27 * count


def test_shapes_are_what_they_are_called():
    assert np.array_equal(barchan.shape("tetrahedron", 0.5)[0], barchan.tetrahedron(0.5))
    # 12 edges, 12 diagonals of faces, 4 of the cube; float32 rounds at 6e-8.
    edges = [1.0] * 12 + [2**0.5] * 12 + [3**0.5] * 4
    assert distances(barchan.shape("cube", 0.5)[0]) == pytest.approx(edges, rel=1e-6)
    rod = barchan.shape("rod", 0.5, count=5)[0]
    assert rod[:, 0] == pytest.approx([-1, -0.5, 0, 0.5, 1], abs=1e-6) and not rod[:, 1:].any()
    assert barchan.shape("sphere", 0.5)[0].tolist() == [[0, 0, 0]]


def test_count_is_for_rods():
    assert len(barchan.shape("rod", 0.1, 1)[0]) == 1
    assert len(barchan.shape("rod", 0.1, count=4096)[1]) == 4096
    assert len(barchan.shape("cube", 0.1, count=0)[0]) == 8


@pytest.mark.parametrize(
    "arguments, kind, sentence",
    [
        (("ball", 1), ValueError, "kind: found 'ball', expected tetrahedron, cube, rod or sphere"),
        ((3, 1), TypeError, "kind: found int, expected tetrahedron, cube, rod or sphere"),
        (("cube", 0), ValueError, "radius is 0 m"),
        (("cube", float("nan")), ValueError, "radius is nan m"),
        (("cube", "x"), TypeError, "radius: found str, expected a number"),
        (("rod", 1, 0), ValueError, "count is 0 spheres, expected 1 to 4096"),
        (("rod", 1, 4097), ValueError, "count is 4097 spheres, expected 1 to 4096"),
        (("rod", 1, 2.5), TypeError, "count: found float, expected a whole number"),
        (("rod",), TypeError, "radius"),
    ],
)
def test_bad_shapes_are_named(arguments, kind, sentence):
    with pytest.raises(kind, match=sentence):
        barchan.shape(*arguments)


def test_a_scaled_grain_has_the_mass_of_its_size():
    """Kinetic energy tells the mass: 1/2 m v^2, m = density 4/3 pi (scale r)^3."""
    scales = [1, 2, 0.5]
    positions = [[i, 0, 0] for i in range(3)]
    for i in range(3):
        velocities = np.zeros((3, 3))
        velocities[i, 0] = 3
        scene = ball_scene(positions=positions, scales=scales, velocities=velocities, materials=[{"density": 2000}])
        mass = 2 * barchan.Sim(scene).info()["kinetic_energy"] / 9
        assert mass == pytest.approx(2000 * 4 / 3 * np.pi * (scales[i] * BALL_RADIUS) ** 3, rel=1e-6)  # float32 radius


def test_scales_may_come_from_sizes():
    scene = make_scene(scales=barchan.sizes("uniform", 0.5, 1, seed=1, count=27))
    assert scene.hash != make_scene().hash == make_scene(scales=np.ones(27)).hash
    barchan.Sim(scene).advance(0.01)


@pytest.mark.parametrize(
    "scales, kind, sentence",
    [
        (np.ones(26), ValueError, r"scales: found shape \(26,\), expected \(27,\)"),
        (np.ones((27, 1)), ValueError, r"scales: found shape \(27, 1\), expected \(27,\)"),
        (["x"] * 27, TypeError, "scales: found list, expected an array of float32"),
        ([1] * 26 + [0], ValueError, "Grain 26 has size 0"),
        ([1] * 26 + [np.nan], ValueError, "Grain 26 has size nan"),
    ],
)
def test_bad_scales_are_named(scales, kind, sentence):
    with pytest.raises(kind, match=sentence):
        make_scene(scales=scales)
