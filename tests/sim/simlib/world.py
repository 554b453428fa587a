# SPDX-License-Identifier: MIT
"""Puts a node together inside fresh namespaces."""

import os

from . import kernel
from .devfs import build_dev, build_proc
from .errors import SetupError
from .files import Files
from .netdevs import Netdevs
from .rootfs import Rootfs
from .sysfs import Sysfs

STAGE = "/tmp"


class World:
    """Kept by the node's first process: descriptors and the description."""

    def __init__(self, node, binds, content):
        self.node = node
        self.binds = binds
        self.content = content
        self.netdevs = None
        self.sysfs = None

    def build(self, unprivileged):
        """Makes the node; called as process 1 of its namespaces."""
        node = self.node
        kernel.make_root_private()
        rootfs = Rootfs(node, STAGE, self.binds, unprivileged)
        rootfs.keep()
        try:
            kernel.make_readonly("/")
        except OSError as error:
            raise SetupError("cannot make the host's files read-only (%s): "
                             "simnode needs Linux 5.12 or newer"
                             % error.strerror) from error
        self.fresh("proc", "/proc")
        self.fresh("sysfs", "/sys")
        kernel.mount("simnode", STAGE, "tmpfs", 0, "mode=755")
        kernel.sethostname(node.hostname)
        dev = build_dev(node, STAGE + "/dev", unprivileged)
        self.netdevs = Netdevs(node, dev + "/net/tun")
        self.netdevs.build()
        self.sysfs = Sysfs(node, STAGE + "/sys")
        self.sysfs.build()
        build_proc(node, STAGE + "/proc")
        rootfs.build()
        Files(node, self.content, unprivileged).build()
        return self

    @staticmethod
    def fresh(kind, target):
        try:
            kernel.mount(kind, target, kind,
                         kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        except OSError as error:
            raise SetupError(
                "cannot mount a fresh %s (%s): in a container, run it "
                "privileged, or with /proc and /sys unmasked"
                % (target, error.strerror)) from error


def default_binds(extra):
    """The checkout, the working directory and --bind, where they may be."""
    here = os.path.realpath(__file__)
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.dirname(here))))
    paths = [checkout]
    try:
        cwd = os.getcwd()
        if may_bind(cwd):
            paths.append(cwd)
    except OSError:
        pass
    for path in extra:
        real = os.path.realpath(path)
        if not os.path.exists(real):
            raise SetupError("--bind %s: no such file or directory" % path)
        paths.append(real)
    paths = sorted(set(paths))
    return [p for p in paths
            if not any(p.startswith(q + "/") for q in paths)]


SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/run", "/usr", "/boot", "/bin",
          "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
NEVER_WHOLE = ("/", "/var", "/root", "/home", "/tmp", "/opt", "/srv", "/mnt",
               "/media", "/var/tmp", "/var/lib", "/dev/shm")


def may_bind(path):
    """Whether a working directory is shared with the host.

    Not the system's own folders, and not a home directory: the node has homes
    of its own, and the host's must stay as they are.
    """
    if path in NEVER_WHOLE or path == os.path.expanduser("~"):
        return False
    if path.startswith("/dev/shm/"):
        return True
    return not any(path == top or path.startswith(top + "/")
                   for top in SYSTEM)
