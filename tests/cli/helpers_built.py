# SPDX-License-Identifier: MIT
"""The packages of this tree for tests: built once by the lines that a user pastes, shared by
the processes that run tests side by side, and built again when the tree has changed."""

import fcntl
import glob
import hashlib
import os
import subprocess

from helpers import BUILD, ENV, ROOT

FOLDER = os.path.join(BUILD, "packages")


def tree():
    """A checksum of the tarball that both kinds are built from."""
    subprocess.run(["make", "-s", "-C", ROOT, "dist", "BUILD=" + os.path.relpath(BUILD, ROOT)], check=True,
                   env={"PATH": ENV["PATH"]}, timeout=120, stdout=subprocess.DEVNULL)
    tarball, = glob.glob(FOLDER + "/nodeprep-*.tar.xz")
    with open(tarball, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def packages(kind):
    """The folder with the packages of @kind, deb or rpm, by `make deb` or `make rpm`."""
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark, now = os.path.join(FOLDER, ".tree-of-" + kind), tree()
        if os.path.exists(mark):
            with open(mark, encoding="utf-8") as file:
                if file.read() == now and glob.glob("%s/*.%s" % (FOLDER, kind)):
                    return FOLDER
        done = subprocess.run(["make", "-s", kind, "BUILD=" + os.path.relpath(BUILD, ROOT)], cwd=ROOT, text=True,
                              env=dict(ENV, HOME=os.environ.get("HOME", "/root")), timeout=900, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout
        with open(mark, "w", encoding="utf-8") as file:
            file.write(now)
    return FOLDER
