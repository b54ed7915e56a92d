"""devices(): the GPUs of this machine, why there is none, and that nothing of GL is loaded before it is asked for."""

import json
import subprocess
import sys
import threading

import barchan
import pytest
from barchan import _core

ABSENT = "libEGL-that-is-not-here.so.1"
KEYS = set(
    "number platform name vendor driver gl is_usable is_software is_robust tells_resets reason limits".split()
)
LIMITS = set(
    """block_bytes block_alignment block_count binding_count uniform_bytes uniform_alignment uniform_count group_size
       group_count shared_bytes texture_size texture_count image_size point_size
       unit_count texel_count""".split()
)


def python(*arguments):
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", *arguments], capture_output=True, text=True, check=False, timeout=600
    )


@pytest.fixture(scope="module")
def found():
    devices = barchan.devices(self_test=True)
    if not any(device["is_usable"] for device in devices):
        pytest.skip("no GPU here: " + "; ".join(device["reason"] for device in devices))
    return devices


def test_every_device_says_what_it_is(found):
    for number, device in enumerate(found, 1):
        print(device)
        assert set(device) == KEYS and set(device["limits"]) == LIMITS
        assert device["number"] == number
        assert device["is_usable"] == (device["reason"] == "")
        if device["is_usable"]:
            assert device["name"] and device["driver"] and device["gl"] >= (4, 3)
            assert device["limits"]["block_bytes"] >= 2**24 and device["limits"]["group_count"] >= 65535
    kinds = [device["is_software"] for device in found if device["platform"].startswith("EGL device")]
    assert kinds == sorted(kinds), "software comes before hardware"


def test_without_libegl_the_one_entry_says_so():
    (device,) = barchan.devices(library=ABSENT)
    print(device["reason"])
    assert not device["is_usable"]
    assert ABSENT in device["reason"] and "CPU engine" in device["reason"]


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="self_test"):
        barchan.devices(self_test=1)
    with pytest.raises(TypeError):
        barchan.devices(library=7)
    with pytest.raises(ValueError):
        barchan.devices(library="a\0b")


def test_devices_are_asked_from_many_threads_at_once(found):
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(barchan.devices(self_test=True))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [found] * 4


def test_asking_again_and_again_leaves_nothing_behind(found):
    before = _core.allocated_bytes()
    for _ in range(10):
        barchan.devices(self_test=True)
    assert _core.allocated_bytes() == before


def test_importing_loads_nothing_of_gl():
    done = python(
        "-c",
        "import barchan; loaded = open('/proc/self/maps').read();"
        "print([name for name in ('libEGL', 'libGL', 'libX11', 'libOpenGL', 'libGLEW') if name in loaded])",
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_the_command_lists_devices_for_people_and_programs(found):
    done = python("-m", "barchan", "devices")
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    for device in found:
        assert "%d. %s" % (device["number"], device["name"]) in done.stdout
    done = python("-m", "barchan", "devices", "--json")
    assert done.returncode == 0, done.stderr
    assert [device["name"] for device in json.loads(done.stdout)] == [device["name"] for device in found]


def test_the_command_says_why_there_is_none():
    done = python("-m", "barchan", "devices", "--library", ABSENT)
    print(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert ABSENT in done.stdout and "CPU engine" in done.stdout.splitlines()[-1]
