"""Other threads while the core works: they run, they may cancel, and they cannot do harm.

No test here measures time. A call that holds the GIL cannot be seen running by another thread when threads are never
made to take turns (`no_turns`); a call that releases it can. So being seen is the proof.
"""

import contextlib
import sys
import threading

import barchan
import numpy as np
import pytest
from barchan import _core
from conftest import make_mesh, make_scene, scene_arguments

LONG = 3600.0  # s of simulated time; every test that starts it cancels it


@contextlib.contextmanager
def no_turns():
    """The interpreter takes the GIL from nobody: it changes hands only where a thread lets go of it."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def is_seen_running(call):
    """Whether another thread gets to run between the start and the end of call."""
    started, done = threading.Event(), threading.Event()

    def work():
        started.set()
        call()
        done.set()

    thread = threading.Thread(target=work)
    with no_turns():
        thread.start()
        started.wait()
        is_seen = not done.is_set()
        thread.join()
    return is_seen


def is_ever_seen_running(call):
    """A short call may be over before the other thread wakes: try again. One sight is proof."""
    return any(is_seen_running(call) for _ in range(100))


def test_a_call_that_holds_the_gil_is_never_seen():
    numbers = range(1000000)
    assert not any(is_seen_running(lambda: sum(numbers)) for _ in range(3))


def large_sheet():
    """180000 triangles."""
    side = 300
    steps = np.linspace(0, 1, side, dtype=np.float32)
    vertices = np.ascontiguousarray(
        np.stack([*np.meshgrid(steps, steps), np.zeros((side, side), np.float32)], axis=-1).reshape(-1, 3)
    )
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1, 1)
    triangles = np.concatenate([corner + [0, 1, side], corner + [1, side + 1, side]]).astype(np.int32)
    return vertices, triangles


def test_other_threads_run_while_a_mesh_is_made():
    vertices, triangles = large_sheet()
    assert is_ever_seen_running(lambda: barchan.Mesh(vertices, triangles))


def test_other_threads_run_while_a_mesh_is_sampled():
    mesh = make_mesh()
    assert is_ever_seen_running(lambda: barchan.fill(mesh, 0.02))
    assert is_ever_seen_running(lambda: barchan.cover(mesh, 0.02))
    assert is_ever_seen_running(lambda: barchan.sample(mesh, 0.05, threads=1))
    assert is_ever_seen_running(lambda: barchan.pack(mesh, 0.05, threads=1))


def test_other_threads_run_while_a_scene_and_a_sim_are_made():
    arguments = scene_arguments(side=30)
    scene = barchan.Scene(**arguments)
    assert is_ever_seen_running(lambda: barchan.Scene(**arguments))
    assert is_ever_seen_running(lambda: barchan.Sim(scene))
    arguments = {**scene_arguments(), "colliders": [{"mesh": barchan.Mesh(*large_sheet())}]}
    assert is_ever_seen_running(lambda: barchan.Scene(**arguments))


def test_other_threads_run_while_the_sim_advances(scene):
    sim = barchan.Sim(scene, threads=1)
    assert is_ever_seen_running(lambda: sim.advance(0.05))


def test_other_threads_run_while_contacts_are_listed_and_states_saved_and_loaded():
    # A heap in which everything touches: 27000 grains, closer than in the other scenes.
    arguments = scene_arguments(side=30)
    arguments.update(positions=arguments["positions"] * np.float32(0.5), shapes=[barchan.shape("tetrahedron", 0.02)])
    sim = barchan.Sim(barchan.Scene(**arguments), allow_overlap=True)
    sim.advance(1e-5)
    assert len(sim.contacts()) > 10000
    assert is_ever_seen_running(sim.contacts)
    assert is_ever_seen_running(sim.save)
    data = sim.save()
    assert is_ever_seen_running(lambda: sim.load(data))


def test_other_threads_run_while_sizes_are_drawn():
    assert is_ever_seen_running(lambda: barchan.sizes("lognormal", 0.5, 2, spread=0.3, count=300000))


def test_other_threads_run_while_frames_are_written_read_listed_and_freed(folder):
    arrays = {"position": np.zeros((1000000, 3), np.float32)}
    assert is_ever_seen_running(lambda: barchan.write_frame(folder, 1, arrays))
    assert is_ever_seen_running(lambda: barchan.read_frame(folder, 1))
    assert is_ever_seen_running(lambda: barchan.list_frames(folder))
    assert is_ever_seen_running(lambda: barchan.make_folder(folder))
    assert is_ever_seen_running(lambda: barchan.free_frames(folder))


class Advance(threading.Thread):
    """Advances a sim in its own thread and keeps what it raised."""

    def __init__(self, sim, seconds=LONG):
        super().__init__()
        self.sim, self.seconds, self.raised = sim, seconds, None
        self.start()

    def run(self):
        try:
            self.sim.advance(self.seconds)
        except Exception as error:
            self.raised = error

    def wait_until_busy(self):
        """Returns once advance() is seen to run, by the refusal of a harmless call. Gives up, rather than hang, after
        more tries than a fair interpreter needs by far."""
        for _ in range(5000000):
            if not self.is_alive():
                break
            try:
                self.sim.info()
            except RuntimeError:
                return
        self.sim.cancel()
        self.join()
        raise AssertionError("advance() was never seen to run; it raised %r" % self.raised)


def test_a_running_advance_is_cancelled_from_another_thread(scene):
    sim = barchan.Sim(scene, threads=2)
    work = Advance(sim)
    work.wait_until_busy()
    sim.cancel()
    work.join()
    assert type(work.raised) is barchan.Cancelled
    assert "cancelled" in str(work.raised)
    # The state is that of a whole step, and the sim goes on from there.
    info = sim.info()
    assert 0 <= info["time"] < LONG
    assert np.isfinite(sim.positions()).all()
    sim.advance(0.001)
    assert sim.info()["time"] == pytest.approx(info["time"] + 0.001)


def test_a_cancelled_advance_equals_a_shorter_one(scene):
    """What was simulated before the cancel is what an advance of so many steps gives."""
    sim = barchan.Sim(scene, threads=1, step_seconds=1e-4)
    work = Advance(sim, seconds=100.0)
    work.wait_until_busy()
    sim.cancel()
    work.join()
    info = sim.info()
    assert isinstance(work.raised, barchan.Cancelled)
    assert info["time"] == pytest.approx(info["step_count"] * 1e-4, abs=1e-9)


@pytest.mark.parametrize("seconds", [0, 0.01])
def test_a_cancel_beforehand_stops_the_next_advance_once(scene, seconds):
    sim = barchan.Sim(scene)
    state = sim.hash()
    sim.cancel()
    sim.cancel()
    with pytest.raises(barchan.Cancelled):
        sim.advance(seconds)
    assert sim.hash() == state
    sim.advance(0.01)
    assert sim.info()["time"] == pytest.approx(0.01)


def test_a_busy_sim_refuses_every_other_call(scene):
    sim = barchan.Sim(scene)
    data = sim.save()
    work = Advance(sim)
    work.wait_until_busy()
    try:
        for call in (
            lambda: sim.advance(0.01),
            sim.info,
            sim.positions,
            sim.orientations,
            sim.velocities,
            sim.spins,
            sim.hash,
            sim.contacts,
            sim.flags,
            sim.loads,
            sim.save,
            lambda: sim.load(data),
        ):
            with pytest.raises(RuntimeError, match="advancing in another thread") as caught:
                call()
            assert not isinstance(caught.value, barchan.Error)
    finally:
        sim.cancel()
        work.join()
    assert isinstance(work.raised, barchan.Cancelled)
    assert sim.hash() == sim.hash()


def test_calls_from_many_threads_are_whole_or_refused(scene):
    """Saving, loading and listing release the GIL: whoever comes meanwhile is told, and nobody sees a half state."""
    sim = barchan.Sim(scene, threads=2)
    sim.advance(0.3)
    data, state, positions = sim.save(), sim.hash(), sim.positions().tobytes()
    wrong, barrier = [], threading.Barrier(3)

    def work(offset):
        calls = [
            (sim.save, data),
            (sim.hash, state),
            (lambda: sim.positions().tobytes(), positions),
            (lambda: sim.load(data), None),
            (lambda: sim.contacts().dtype.names[0], "grain"),
        ]
        barrier.wait()
        for i in range(500):
            call, expected = calls[(i + offset) % len(calls)]
            try:
                found = call()
            except RuntimeError as error:
                if "in another thread" not in str(error):
                    wrong.append(error)
            except Exception as error:
                wrong.append(error)
            else:
                if found != expected:
                    wrong.append(found)

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sim.hash() == state


def test_a_failed_call_leaves_the_sim_free(scene):
    sim = barchan.Sim(scene)
    with pytest.raises(barchan.CacheError):
        sim.load(b"")
    with pytest.raises(TypeError):
        sim.load(None)
    sim.advance(0.001)
    _core.fail_alloc_after(1)
    with pytest.raises(MemoryError):
        sim.save()
    _core.fail_alloc_after(0)
    sim.save()


def test_a_failed_advance_leaves_the_sim_free(scene):
    sim = barchan.Sim(scene)
    with pytest.raises(ValueError):
        sim.advance(-1)
    sim.advance(0.001)


def test_a_running_sim_survives_the_loss_of_every_name(scene):
    work = Advance(barchan.Sim(scene, threads=2), seconds=0.05)
    del scene
    work.join()
    assert work.raised is None
    assert work.sim.info()["time"] == pytest.approx(0.05)


def test_scenes_and_meshes_are_shared_by_threads():
    mesh, scene = make_mesh(), make_scene()
    results, barrier = [], threading.Barrier(4)

    def work():
        barrier.wait()
        sim = barchan.Sim(scene, threads=2)
        sim.advance(0.02)
        results.append((sim.hash(), barchan.fill(mesh, 0.1, jitter=0.5, seed=1).tobytes(), mesh.bounds.tobytes()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert len(set(results)) == 1


def test_threads_writing_one_frame_leave_one_whole(folder):
    failures, barrier = [], threading.Barrier(3)

    def work(value):
        barrier.wait()
        try:
            for _ in range(10):
                barchan.write_frame(folder, 1, {"a": np.full(1000, value, np.float32)})
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [path.name for path in folder.iterdir()] == ["frame_000001.sand"]
    assert len(set(barchan.read_frame(folder, 1)["arrays"]["a"].tolist())) == 1
