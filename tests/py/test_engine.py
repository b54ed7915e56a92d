"""The GL engine through Python: the same bits as the cpu engine on a software device, and what engines say."""

import numpy as np
import pytest

import barchan

HAS_GL = any(device["is_usable"] and device["is_software"] for device in barchan.devices())
needs_gl = pytest.mark.skipif(not HAS_GL, reason="no software GL device on this machine")


def scene(side=5, shear="history"):
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)
    rng = np.random.default_rng(5)
    positions = (grid * 0.024 + 0.015 + rng.uniform(-0.0005, 0.0005, grid.shape)).astype(np.float32)
    walls = [(0, 0, 0, 0, 0, 1), (0, 0, 0, 1, 0, 0), (0, 0, 0, 0, 1, 0)]
    walls += [(side * 0.024, 0, 0, -1, 0, 0), (0, side * 0.024, 0, 0, -1, 0)]
    return barchan.Scene(
        positions=positions,
        shapes=[barchan.shape("tetrahedron", 0.005)],
        planes=np.array(walls, np.float32),
        materials=[{"shear": shear}],
        max_speed=2,
    )


@needs_gl
def test_gl_gives_the_bits_of_cpu():
    made = scene()
    cpu, gl = barchan.Sim(made), barchan.Sim(made, engine="gl")
    for _ in range(3):
        cpu.advance(0.02)
        gl.advance(0.02)
        assert gl.hash() == cpu.hash()
    assert (gl.positions() == cpu.positions()).all()
    assert (gl.orientations() == cpu.orientations()).all()
    assert len(gl.contacts()) == len(cpu.contacts())
    assert gl.engine()["engine"] == "gl" and gl.engine()["device"] and gl.engine()["lost_count"] == 0
    assert cpu.engine()["engine"] == "cpu" and cpu.engine()["device"] is None


@needs_gl
def test_state_moves_between_engines():
    made = scene()
    cpu, gl, back = barchan.Sim(made), barchan.Sim(made, engine="gl"), barchan.Sim(made)
    cpu.advance(0.04)
    gl.load(cpu.save())
    gl.advance(0.02)
    back.load(gl.save())
    back.advance(0.02)
    cpu.advance(0.02)
    cpu.advance(0.02)
    assert back.hash() == cpu.hash()


def test_auto_takes_the_processor_without_hardware():
    sim = barchan.Sim(scene(2), engine="auto")
    if not any(device["is_usable"] and not device["is_software"] for device in barchan.devices()):
        assert sim.engine()["engine"] == "cpu"
        assert len(sim.engine()["note"]) > 10
    sim.advance(0.01)


@pytest.mark.parametrize("engine", ["cuda", "", 3, None])
def test_an_unknown_engine_is_one_sentence(engine):
    with pytest.raises(ValueError, match="expected 'cpu', 'gl' or 'auto'"):
        barchan.Sim(scene(2), engine=engine)


def test_a_device_that_is_not_there_is_one_sentence():
    with pytest.raises(barchan.GpuError) as found:
        barchan.Sim(scene(2), engine="gl", device=99)
    assert "99" in str(found.value)
