#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Blender with a window, from Debian, in a folder of its own: installs the extension zip, runs a session, keeps the pictures.

    sudo python3 tests/window/run.py dist/barchan-VERSION.zip [--session view.py] [--keep docs/window]

Needs root (debootstrap, chroot), the network the first time, about 2 GB under build/window, and Linux on x86-64. Not part of
`setup.py test`. Mounts live in a namespace of their own and are gone when the program ends.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITE = "trixie"  # Blender 4.3
PACKAGES = "blender xvfb libgl1-mesa-dri libegl1 imagemagick python3-numpy fonts-dejavu-core"
MOUNTED = """
set -e
root=$1; shift
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
exec chroot "$root" "$@"
"""
SESSION = """
set -e
cd /session
export HOME=/session/home LIBGL_ALWAYS_SOFTWARE=1
blender --command extension install-file --repo user_default --enable barchan.zip
Xvfb :77 -screen 0 1280x800x24 +extension GLX >/dev/null 2>&1 &
screen=$!
trap 'kill $screen' EXIT
sleep 2
DISPLAY=:77 timeout 900 blender --window-geometry 0 0 1280 800 --enable-event-simulate \
    --addons bl_ext.user_default.barchan -P session.py -- /session/out
"""


def inside(root, script):
    return subprocess.call(["unshare", "--mount", "sh", "-c", MOUNTED, "sh", str(root), "sh", "-c", script])


def prepare(root):
    stamp = root / "packages"
    if stamp.exists() and stamp.read_text() == PACKAGES:
        return
    if not (root / "bin" / "sh").exists():
        subprocess.run(["debootstrap", "--variant=minbase", SUITE, str(root)], check=True)
    install = "export DEBIAN_FRONTEND=noninteractive; apt-get update && apt-get install -y --no-install-recommends "
    if inside(root, install + PACKAGES) != 0:
        sys.exit("run.py: the packages cannot be installed: see the lines above.")
    stamp.write_text(PACKAGES)


def main():
    parser = argparse.ArgumentParser(description="The add-on in a Blender with a window; pictures of its panels.")
    parser.add_argument("zip", type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT / "build" / "window" / SUITE)
    parser.add_argument("--session", default="session.py", help="session.py: panels and a bake; view.py: spheres in the 3D view")
    parser.add_argument("--keep", type=pathlib.Path, help="folder that the pictures are copied to when all went well")
    arguments = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        sys.exit("run.py: needs root and debootstrap (apt-get install debootstrap).")
    root = arguments.root.resolve()
    root.mkdir(parents=True, exist_ok=True)
    prepare(root)
    place = root / "session"
    shutil.rmtree(place, ignore_errors=True)
    (place / "home").mkdir(parents=True)
    (place / "out").mkdir()
    shutil.copyfile(arguments.zip, place / "barchan.zip")
    shutil.copyfile(pathlib.Path(__file__).with_name(arguments.session), place / "session.py")
    code = inside(root, SESSION)
    if code == 0 and arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        for path in sorted((place / "out").glob("*.png")):
            shutil.copyfile(path, arguments.keep / path.name)
    print(f"pictures in {place / 'out'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
