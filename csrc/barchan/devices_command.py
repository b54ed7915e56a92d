"""The command `python -m barchan devices`: the GPUs of this machine, and why one cannot be used.

Comes in: nothing. Goes out: a few lines per device, or one JSON array of what barchan.devices() gives. The exit code is 0 in
any case: sand needs no GPU.
"""

import json

import barchan


def add_command(commands):
    parser = commands.add_parser(
        "devices",
        help="list the GPUs of this machine, or say why there is none",
        description="Lists every way to a GPU, best first, lets each usable one compute something and checks it. A bake "
        "does without: the CPU engine needs none.",
    )
    parser.add_argument("--json", action="store_true", help="as one JSON array")
    parser.add_argument("--library", metavar="FILE", help="another libEGL than libEGL.so.1")
    parser.set_defaults(run=run)


def lines_of(device):
    kind = "software" if device["is_software"] else "hardware"
    if not device["is_usable"]:
        name = device["name"] or device["platform"]
        return ["%d. %s: not usable: %s" % (device["number"], name, device["reason"])]
    promises = ", robust" * device["is_robust"] + ", tells resets" * device["tells_resets"]
    limits = device["limits"]
    return [
        "%d. %s (%s)" % (device["number"], device["name"], kind),
        "   %s, %s, OpenGL %s%s" % (device["platform"], device["vendor"], device["driver"], promises),
        "   one buffer up to %.0f MiB, %d in one shader, groups of %d, %d KiB shared, textures up to %d texels along an edge"
        % (
            limits["block_bytes"] / 2**20,
            limits["block_count"],
            limits["group_size"],
            limits["shared_bytes"] // 1024,
            limits["texture_size"],
        ),
    ]


def run(arguments):
    devices = barchan.devices(self_test=True, library=arguments.library)
    if arguments.json:
        print(json.dumps(devices))
        return
    for device in devices:
        print("\n".join(lines_of(device)))
    if not any(device["is_usable"] for device in devices):
        print("No GPU can be used; bakes run on the CPU engine.")
