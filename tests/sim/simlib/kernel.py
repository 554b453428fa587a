# SPDX-License-Identifier: MIT
"""System calls that Python 3.11 does not wrap: namespaces and mounts."""

import ctypes
import errno
import os

from .errors import SetupError

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 2

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH = 0x4
MOUNT_ATTR_RDONLY = 0x1

# The generic numbers of new system calls, the same on every architecture
# but alpha (include/uapi/asm-generic/unistd.h).
SYS_OPEN_TREE = 428
SYS_MOVE_MOUNT = 429
SYS_MOUNT_SETATTR = 442

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24

CAP_SYS_MODULE = 16
CAP_SYS_ADMIN = 21
CAP_SYS_BOOT = 22
CAP_SYS_TIME = 25

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p,
                        ctypes.c_ulong, ctypes.c_char_p)
_libc.syscall.restype = ctypes.c_long


def _check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def unshare(flags):
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(fd, flags=0):
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(flags)), "setns")


def mount(source, target, fstype=None, flags=0, data=None):
    def raw(text):
        return None if text is None else os.fsencode(text)
    _check(_libc.mount(raw(source), raw(target), raw(fstype), flags,
                       raw(data)), target)


def bind(source, target, recursive=False):
    mount(source, target, None, MS_BIND | (MS_REC if recursive else 0))


def make_root_private():
    """Nothing that is mounted from here on reaches the host.

    Below a plain chroot "/" is no mount point, and only those can be made private. So
    the way out of the chroot is taken (in a mount namespace of our own), everything
    is made private there, and the chroot is entered again as a mount of its own.
    """
    try:
        mount("none", "/", None, MS_REC | MS_PRIVATE)
        return
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    try:
        cwd = os.getcwd()
    except OSError:  # deleted
        cwd = "/"
    root = os.open("/", os.O_PATH | os.O_DIRECTORY)
    below = "/proc"  # any directory: whoever stands above the root can leave it
    os.chroot(below)
    for _ in range(256):
        os.chdir("..")
    os.chroot(".")
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    os.fchdir(root)
    path = os.getcwd()
    bind(path, path, recursive=True)
    os.chdir(path)
    os.chroot(".")
    os.close(root)
    os.chdir(cwd)


def umount(target, flags=0):
    _check(_libc.umount2(os.fsencode(target), ctypes.c_int(flags)), target)


def open_tree(path):
    """A detached copy of the mounts at path, as a descriptor."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
    return _check(_libc.syscall(
        ctypes.c_long(SYS_OPEN_TREE), ctypes.c_int(AT_FDCWD),
        ctypes.c_char_p(os.fsencode(path)), ctypes.c_uint(flags)), path)


def move_mount(fd, target):
    _check(_libc.syscall(
        ctypes.c_long(SYS_MOVE_MOUNT), ctypes.c_int(fd), ctypes.c_char_p(b""),
        ctypes.c_int(AT_FDCWD), ctypes.c_char_p(os.fsencode(target)),
        ctypes.c_uint(MOVE_MOUNT_F_EMPTY_PATH)), target)


class _MountAttr(ctypes.Structure):
    _fields_ = [("attr_set", ctypes.c_uint64), ("attr_clr", ctypes.c_uint64),
                ("propagation", ctypes.c_uint64),
                ("userns_fd", ctypes.c_uint64)]


def make_readonly(path):
    """Every mount at and below path refuses writes."""
    attr = _MountAttr(attr_set=MOUNT_ATTR_RDONLY)
    _check(_libc.syscall(
        ctypes.c_long(SYS_MOUNT_SETATTR), ctypes.c_int(AT_FDCWD),
        ctypes.c_char_p(os.fsencode(path)), ctypes.c_uint(AT_RECURSIVE),
        ctypes.byref(attr), ctypes.c_size_t(ctypes.sizeof(attr))), path)


def die_with_parent():
    _check(_libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0), "prctl")


def allow_tracing():
    """Lets the same user enter this process's namespaces again."""
    _check(_libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")


def drop_capability(number):
    """Takes a capability from the bounding set, so exec cannot regain it."""
    _libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)


def sethostname(name):
    raw = os.fsencode(name)
    _check(_libc.sethostname(ctypes.c_char_p(raw),
                             ctypes.c_size_t(len(raw))), "sethostname")


def has_capability(number):
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> number & 1)
    return False


def become_root_of_new_user_namespace(flags):
    """unshare with a user namespace in which the caller is root."""
    uid, gid = os.geteuid(), os.getegid()
    try:
        unshare(flags | CLONE_NEWUSER)
        with open("/proc/self/setgroups", "w", encoding="ascii") as file:
            file.write("deny")
        with open("/proc/self/uid_map", "w", encoding="ascii") as file:
            file.write("0 %d 1" % uid)
        with open("/proc/self/gid_map", "w", encoding="ascii") as file:
            file.write("0 %d 1" % gid)
    except OSError as error:
        raise SetupError(
            "cannot make a user namespace (%s): run as root, or allow "
            "unprivileged user namespaces on this machine" % error) from error
