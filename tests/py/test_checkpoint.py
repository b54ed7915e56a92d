"""Sim.save() and Sim.load(): a sim that takes up another's state goes on to the bit as that one would have."""

import barchan
import numpy as np
import pytest
from barchan import _core
from conftest import ball_scene, make_scene, scene_arguments

MATERIALS = {
    "plain": [{}],
    "springs": [{"shear": "history"}],
    "everything": [{"shear": "history", "rolling": 0.1, "cohesion": 0.1}],
}
HEADER = 64  # bytes before the grains


def moving_scene(materials="springs", **changes):
    return make_scene(materials=MATERIALS[materials], **changes)


@pytest.fixture
def saved():
    """A sim in full motion, and its bytes."""
    sim = barchan.Sim(moving_scene(), threads=1)
    sim.advance(0.2)
    assert sim.info()["contact_count"] > 0
    return sim, sim.save()


@pytest.mark.parametrize("materials", list(MATERIALS))
@pytest.mark.parametrize("changes", [{}, {"sleep_speed": 0.05, "sleep_seconds": 0.02}, {"max_speed": 0.1}], ids=str)
def test_a_loaded_sim_goes_on_to_the_bit(materials, changes):
    scene = moving_scene(materials, **changes)
    sim = barchan.Sim(scene, threads=2)
    sim.advance(0.2)
    state, data = sim.hash(), sim.save()
    assert type(data) is bytes
    others = [barchan.Sim(scene, threads=threads) for threads in (1, 2, 3)]
    others.append(barchan.Sim(scene, kernel="baseline"))
    others.append(barchan.Sim(moving_scene(materials, **changes)))  # an equal scene, made anew
    for other in others:
        other.advance(0.03)  # somewhere else
        assert other.load(data) is None
        assert other.hash() == state
        assert other.info()["time"] == sim.info()["time"] and other.info()["step_count"] == sim.info()["step_count"]
        assert other.save() == data
    for _ in range(3):
        sim.advance(0.1)
        hashes = [other.advance(0.1) or other.hash() for other in others]
        print(sim.hash(), hashes)
        assert set(hashes) == {sim.hash()}
        assert {other.positions().tobytes() for other in others} == {sim.positions().tobytes()}


def test_saving_disturbs_nothing():
    scene = moving_scene()
    watched, alone = barchan.Sim(scene, threads=1), barchan.Sim(scene, threads=1)
    for _ in range(10):
        assert watched.save() == watched.save()
        watched.advance(0.03)
        alone.advance(0.03)
        assert watched.hash() == alone.hash()


def test_springs_are_part_of_the_state(saved):
    _, data = saved
    plain = barchan.Sim(moving_scene("plain"), threads=1)
    plain.advance(0.2)
    assert len(data) > len(plain.save())


def test_a_sim_returns_to_where_it_was(saved):
    sim, data = saved
    state = sim.hash()
    sim.advance(0.1)
    end = sim.hash()
    sim.load(data)
    assert sim.hash() == state
    sim.advance(0.1)
    assert sim.hash() == end


def test_a_new_sim_can_be_saved_and_loaded():
    scene = moving_scene()
    first, second = barchan.Sim(scene), barchan.Sim(scene)
    second.load(first.save())
    first.advance(0.1)
    second.advance(0.1)
    assert first.hash() == second.hash()


def test_a_failed_sim_goes_on_from_a_good_state():
    scene = make_scene(positions=scene_arguments()["positions"] * np.float32(0.3))
    good = barchan.Sim(scene, allow_overlap=True, threads=1)
    data = good.save()
    bad = barchan.Sim(scene, allow_overlap=True, threads=1, step_seconds=1000 * good.info()["step_seconds"])
    with pytest.raises(barchan.UnstableError):
        bad.advance(1000)
    bad.load(data)
    assert bad.hash() == good.hash() and bad.info()["time"] == 0


@pytest.mark.parametrize(
    "form",
    [
        bytes,
        bytearray,
        memoryview,
        lambda data: np.frombuffer(data, np.uint8),
        lambda data: memoryview(b"x" + data)[1:],
    ],
    ids=["bytes", "bytearray", "view", "array", "odd"],
)
def test_every_kind_of_bytes_is_taken(saved, form):
    sim, data = saved
    other = barchan.Sim(moving_scene(), threads=1)
    other.load(form(data))
    assert other.hash() == sim.hash()


@pytest.mark.parametrize("value", [None, 3, "x", [1, 2], {}])
def test_what_is_no_bytes_is_a_type_error(saved, value):
    sim, _ = saved
    with pytest.raises(TypeError, match="bytes: found %s, expected contiguous bytes" % type(value).__name__):
        sim.load(value)


def test_bytes_with_gaps_are_a_type_error(saved):
    sim, data = saved
    for value in (memoryview(data)[::2], np.frombuffer(data, np.uint8)[::2]):
        with pytest.raises(TypeError, match="expected contiguous bytes"):
            sim.load(value)


def is_refused(sim, data):
    """With a CacheError that says what was found, and the sim as it was."""
    state, whole = sim.hash(), sim.save()
    with pytest.raises(barchan.CacheError, match="checkpoint"):
        sim.load(data)
    assert sim.hash() == state
    assert sim.save() == whole


def test_torn_bytes_are_refused_and_leave_the_sim_as_it_was(saved):
    _, data = saved
    sim = barchan.Sim(moving_scene(), threads=1)
    sim.advance(0.15)
    twin = barchan.Sim(moving_scene(), threads=1)
    twin.advance(0.15)
    lengths = [*range(0, HEADER + 3), *range(HEADER, len(data), 97), len(data) - 1]
    for length in lengths:
        is_refused(sim, data[:length])
    is_refused(sim, data + b"\0")
    is_refused(sim, data + bytes(20))  # as if there were one spring more
    is_refused(sim, bytes(len(data)))
    sim.advance(0.1)
    twin.advance(0.1)
    assert sim.hash() == twin.hash()


def test_a_flipped_bit_is_refused(saved):
    _, data = saved
    sim = barchan.Sim(moving_scene(), threads=1)
    # The header's magic, scene, counts and checksum, and everything after the header.
    places = [*range(0, HEADER), *range(HEADER, len(data), 41), len(data) - 1]
    for place in places:
        broken = bytearray(data)
        broken[place] ^= 1 << place % 8
        is_refused(sim, broken)


@pytest.mark.parametrize("changes", [{"seed": 8}, {"gravity": (0, 0, -9.8)}, {"materials": "plain"}], ids=str)
def test_the_state_of_another_scene_is_refused(saved, changes):
    _, data = saved
    other = barchan.Sim(moving_scene(**changes), threads=1)
    with pytest.raises(barchan.CacheError, match="another scene .27 grains, hash [0-9a-f]{16}; expected 27"):
        other.load(data)
    with pytest.raises(barchan.CacheError, match="another scene"):
        barchan.Sim(ball_scene()).load(data)


def test_frames_of_another_thing_are_refused(folder, saved):
    sim, _ = saved
    barchan.write_frame(folder, 1, {"position": np.zeros((27, 3), np.float32)})
    is_refused(sim, next(folder.iterdir()).read_bytes())


def test_no_memory_for_a_save_leaves_the_sim_as_it_was():
    scene = moving_scene()
    sim, twin = barchan.Sim(scene, threads=1), barchan.Sim(scene, threads=1)
    for countdown in range(1, 10):
        sim.advance(0.05)
        twin.advance(0.05)
        _core.fail_alloc_after(countdown)
        try:
            sim.save()
        except MemoryError:
            pass
        finally:
            _core.fail_alloc_after(0)
        assert sim.save() == twin.save()
    sim.advance(0.05)
    twin.advance(0.05)
    assert sim.hash() == twin.hash()
