# SPDX-License-Identifier: MIT
"""The node's /dev and the few files of /proc that describe hardware."""

import os
import stat

from . import kernel
from .errors import warn
from .sysfs import (HIDDEN_MODULES, make_dirs, management_nodes, matches,
                    mirror, write_file)

BASIC = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8),
         "urandom": (1, 9), "tty": (5, 0)}
HIDDEN_DEVICES = ("infiniband*", "nvidia*", "gdrdrv*", "uverbs*", "rdma*",
                  "hfi1*", "nvswitch*")
# A character device 0:0 is the one that needs no privilege to make, and
# nobody can open it.
NOWHERE = os.makedev(0, 0)
PCI_DEVICES = "/sys/bus/pci/devices"
PCI_LIST = "/proc/bus/pci/devices"


_majors = {}


def host_char_majors():
    """Character majors that the running kernel has registered.

    Read once, before the node's own /proc/devices is laid over the kernel's.
    """
    majors = _majors
    if majors:
        return majors
    with open("/proc/devices", encoding="ascii") as file:
        for line in file:
            if line.startswith("Block"):
                break
            fields = line.split()
            if len(fields) == 2 and fields[0].isdigit():
                majors[int(fields[0])] = fields[1]
    return majors


def build_dev(node, path, unprivileged):
    """Fills path and binds it over /dev; returns a path that stays valid."""
    os.mkdir(path)
    for name, (major, minor) in BASIC.items():
        device_or_bind(path + "/" + name, "/dev/" + name, major, minor,
                       0o666, unprivileged)
    os.mkdir(path + "/net")
    device_or_bind(path + "/net/tun", "/dev/net/tun", 10, 200, 0o666,
                   unprivileged)
    for name, target in (("fd", "/proc/self/fd"), ("ptmx", "pts/ptmx"),
                         ("stdin", "/proc/self/fd/0"),
                         ("stdout", "/proc/self/fd/1"),
                         ("stderr", "/proc/self/fd/2"),
                         ("core", "/proc/kcore")):
        os.symlink(target, path + "/" + name)
    for name in ("pts", "shm", "mqueue"):
        os.mkdir(path + "/" + name)
    os.chmod(path + "/shm", 0o1777)
    options = "newinstance,ptmxmode=0666,mode=620"
    kernel.mount("devpts", path + "/pts", "devpts",
                 kernel.MS_NOSUID | kernel.MS_NOEXEC,
                 options if unprivileged else options + ",gid=5")
    taken = host_char_majors()
    nodes = list(management_nodes(node))
    if nodes:
        folder = path + "/infiniband"
        os.mkdir(folder)
        # The usual major, unless it would reach a driver of the host.
        major = 231 if 231 not in taken else unused_major(taken)
        for _, _, names in nodes:
            for kind, name, minor in names:
                mode = 0o666 if kind == "uverbs" else 0o600
                make_char(folder + "/" + name, major, minor, mode,
                          unprivileged)
    devices = node.ini.get("devices")
    for name, text in devices.prefixed("node.") if devices else ():
        major = devices.get("char." + name)
        if major is None:
            devices.keys["node." + name].fail(
                "node.%s needs char.%s = MAJOR" % (name, name))
        try:
            number, mode = int(major, 0), int(text, 8)
        except ValueError:
            devices.keys["node." + name].fail(
                "node.%s is an octal mode, as 0666" % name)
        if number in taken:
            warn("/dev/%s: major %d belongs to %s on this host; the node "
                 "gets another" % (name, number, taken[number]))
            number = unused_major(taken)
        make_char(path + "/" + name, number, 0, mode, unprivileged)
    kernel.bind(path, "/dev", recursive=True)
    return "/dev"


def harmless_major(major):
    """major, or an unused one when it reaches an adapter or GPU of the host.
    """
    taken = host_char_majors()
    if matches(taken.get(major, ""), HIDDEN_DEVICES):
        return unused_major(taken)
    return major


def unused_major(taken):
    return next(m for m in range(510, 233, -1) if m not in taken)


def make_char(path, major, minor, mode, unprivileged):
    number = NOWHERE if unprivileged else os.makedev(major, minor)
    os.mknod(path, stat.S_IFCHR | mode, number)
    os.chmod(path, mode)


def device_or_bind(path, source, major, minor, mode, unprivileged):
    if not unprivileged:
        try:
            os.mknod(path, stat.S_IFCHR | mode, os.makedev(major, minor))
            os.chmod(path, mode)
            return
        except PermissionError:
            pass
    if os.path.exists(source):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, mode))
        kernel.bind(source, path)


def build_proc(node, stage):
    """Binds the node's own devices, modules and driver over /proc."""
    os.mkdir(stage)
    write_file(stage + "/devices", devices_text(node))
    kernel.bind(stage + "/devices", "/proc/devices")
    if os.path.exists("/proc/modules"):
        write_file(stage + "/modules", modules_text(node))
        kernel.bind(stage + "/modules", "/proc/modules")
    if os.path.exists(PCI_LIST):
        write_file(stage + "/pci", pci_text())
        kernel.bind(stage + "/pci", PCI_LIST)
    if os.path.isdir("/proc/driver"):
        mirror("/proc/driver", stage + "/driver", ("nvidia*",))
        add_nvidia(node, stage + "/driver/nvidia")
        kernel.bind(stage + "/driver", "/proc/driver", recursive=True)
    for name in ("sys/kernel", "sys/vm", "sys/fs", "sysrq-trigger"):
        # No namespace holds these: they are the host's.
        path = "/proc/" + name
        if os.path.exists(path):
            kernel.bind(path, path)
            kernel.make_readonly(path)


def devices_text(node):
    own = {}
    devices = node.ini.get("devices")
    for name, text in devices.prefixed("char.") if devices else ():
        own[name] = text
    for module, name in (("ib_umad", "infiniband_mad"),
                         ("ib_uverbs", "infiniband_verbs")):
        if node.module_loaded(module):
            own.setdefault(name, "231")
    with open("/proc/devices", encoding="ascii") as file:
        lines = file.read().split("\n")
    result, block = [], False
    for line in lines:
        block = block or line.startswith("Block")
        fields = line.split()
        if not block and len(fields) == 2 and fields[0].isdigit():
            if matches(fields[1], HIDDEN_DEVICES) \
                    or fields[0] in own.values():
                continue
        if not line and own:
            result += ["%3s %s" % (major, name)
                       for name, major in own.items()]
            own = {}
        result.append(line)
    return "\n".join(result).encode()


def pci_text():
    """The functions of /sys, as they stand there by now, in the kernel's own list."""
    lines = []
    for bdf in sorted(os.listdir(PCI_DEVICES)):
        ids = []
        for name in ("vendor", "device"):
            try:
                with open("%s/%s/%s" % (PCI_DEVICES, bdf, name),
                          encoding="ascii") as file:
                    ids.append(int(file.read(), 16))
            except (OSError, ValueError):
                ids.append(0xffff)
        bus, slot, function = int(bdf[-7:-5], 16), int(bdf[-4:-2], 16), int(bdf[-1])
        lines.append("%02x%02x\t%04x%04x\t0%s\n" % (
            bus, slot << 3 | function, ids[0], ids[1], "\t               0" * 14))
    return "".join(lines).encode()


def modules_text(node):
    lines = []
    own = [section.name.replace("-", "_")
           for section in node.ini.all("module")]
    with open("/proc/modules", encoding="ascii") as file:
        for line in file:
            name = line.split()[0]
            if name not in own and not matches(name, HIDDEN_MODULES):
                lines.append(line)
    for section in node.ini.all("module"):
        if section.get("loaded", True) and not section.get("builtin", False):
            holders = section.get("holders", [])
            lines.append("%s %s %s %s Live 0x0000000000000000\n" % (
                section.name.replace("-", "_"),
                section.get("coresize", "65536"), section.get("refcnt", "0"),
                ",".join(holders) + "," if holders else "-"))
    return "".join(lines).encode()


def add_nvidia(node, path):
    """/proc/driver/nvidia as the GPU driver shows it."""
    if not node.module_loaded("nvidia"):
        return
    section = node.ini.get("module", "nvidia")
    version = section.get("version", "580.65.06")
    flavour = "NVIDIA UNIX Open Kernel Module for x86_64"
    if section.get("license", "open") == "proprietary":
        flavour = "NVIDIA UNIX x86_64 Kernel Module"
    make_dirs(path)
    write_file(path + "/version", (
        "NVRM version: %s  %s  Release Build\n"
        "GCC version:  gcc version 12.2.0\n" % (flavour, version)).encode())
    write_file(path + "/params", b"ModifyDeviceFiles: 1\n")
    gpus = [gpu for gpu in node.gpus if gpu.values["class"].startswith("0x03")]
    for number, gpu in enumerate(gpus):
        get = gpu.section.get
        make_dirs("%s/gpus/%s" % (path, gpu.bdf))
        uuid = get("uuid", "GPU-00000000-0000-0000-0000-%012x" % number)
        write_file("%s/gpus/%s/information" % (path, gpu.bdf), (
            "Model: \t\t %s\nIRQ:   \t\t 0\nGPU UUID: \t %s\n"
            "Bus Location: \t %s\nDevice Minor: \t %d\n"
            % (get("model", "NVIDIA H100 80GB HBM3"), uuid, gpu.bdf,
               get("minor", number))).encode())
