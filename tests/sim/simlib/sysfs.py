# SPDX-License-Identifier: MIT
"""The node's /sys: a fresh sysfs with the described hardware laid into it.

class, devices, module and bus become small trees in memory. What they keep of
the real sysfs is bound into them entry by entry, so it stays live and
writable; whatever belongs to the host's own adapters and GPUs is left out.
"""

import fnmatch
import os

from . import kernel, model
from .errors import SetupError

HIDDEN_MODULES = ("ib_*", "rdma*", "mlx*", "iw_*", "irdma*", "nvidia*",
                  "gdrdrv*", "hfi1*", "qib*", "bnxt_re*", "siw*", "efa*",
                  "rpcrdma", "xprtrdma", "svcrdma", "nv_peer*", "knem",
                  "xpmem", "infiniband*", "nouveau", "mana_ib", "ocrdma*",
                  "qedr*", "usnic*", "vmw_pvrdma*", "hns_roce*", "erdma*",
                  "nvme_rdma", "nvmet_rdma", "ko2iblnd", "mst_pci*")
HIDDEN_CLASSES = ("infiniband*", "nvidia*", "drm", "block", "pci_bus",
                  "virtio-ports", "gdrdrv*", "hwmon")
HIDDEN_DEVICES = ("pci[0-9a-f]*:*",)
EINVAL_SOURCE = "/sys/devices/virtual/net/lo/speed"


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, p) for p in patterns)


def write_file(path, data, mode=0o444):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW,
                 0o600)
    try:
        os.write(fd, data)
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def make_dirs(path):
    try:
        os.mkdir(path)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make_dirs(os.path.dirname(path))
        os.mkdir(path)


def write_tree(base, files, missing=()):
    """Relative path -> text, below base; one line each."""
    made = set()
    for name, text in files.items():
        if name in missing:
            continue
        head = os.path.dirname(name)
        if head not in made:
            make_dirs(os.path.join(base, head) if head else base)
            made.add(head)
        write_file(os.path.join(base, name), model.line(text))


def mirror(source, target, hidden=()):
    """Makes target a directory with source's entries bound into it."""
    make_dirs(target)
    try:
        entries = list(os.scandir(source))
    except FileNotFoundError:
        return
    for entry in entries:
        if matches(entry.name, hidden):
            continue
        path = os.path.join(target, entry.name)
        if os.path.lexists(path):
            continue
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), path)
            continue
        if entry.is_dir(follow_symlinks=False):
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o444))
        kernel.bind(entry.path, path)


class Sysfs:
    def __init__(self, node, stage):
        self.node = node
        self.settle(stage)
        self.late_unreadable = []

    def build(self):
        """Lays everything over /sys, which is a fresh sysfs by now."""
        os.mkdir(self.stage)
        mirror("/sys/class", self.class_dir, HIDDEN_CLASSES)
        mirror("/sys/devices", self.devices, HIDDEN_DEVICES)
        mirror("/sys/module", self.stage + "/module", HIDDEN_MODULES)
        mirror("/sys/bus", self.stage + "/bus", ("pci",))
        make_dirs(self.pci_dir + "/devices")
        make_dirs(self.pci_dir + "/drivers")
        for ca in self.node.cas:
            self.add_ca(ca)
        self.add_management()
        for gpu in self.node.gpus:
            self.add_pci(gpu)
            write_tree(self.pci_path(gpu), dict(gpu.section.prefixed("file/")))
        for section in self.node.ini.all("module"):
            if section.get("loaded", True):
                self.add_module(section)
        for name in ("class", "devices", "module", "bus"):
            kernel.bind("%s/%s" % (self.stage, name), "/sys/" + name,
                        recursive=True)
        self.add_services()
        for section in self.node.netdevs:
            if section.get("count") is None:
                self.add_netdev(section)
        for path in self.late_unreadable:
            make_unreadable(path)
        # The stage has the layout of /sys and is about to be covered.
        self.settle("/sys")

    def settle(self, stage):
        self.stage = stage
        self.class_dir = stage + "/class"
        self.devices = stage + "/devices"
        self.pci_dir = stage + "/bus/pci"

    def port_path(self, port):
        return "%s/%s/infiniband/%s/ports/%d" % (
            self.devices, port.ca.pci.path, port.ca.name, port.number)

    def ca_path(self, ca):
        return "%s/%s/infiniband/%s" % (self.devices, ca.pci.path, ca.name)

    def set_unreadable(self, base, names):
        """Makes just these files below base unreadable."""
        wanted = ["%s/%s" % (base, name) for name in names]
        for path in self.late_unreadable:
            if path.startswith(base + "/") and path not in wanted:
                kernel.umount(path, kernel.MNT_DETACH)
        for path in wanted:
            if path not in self.late_unreadable:
                make_unreadable(path)
        self.late_unreadable = wanted + [
            path for path in self.late_unreadable
            if not path.startswith(base + "/")]

    def pci_path(self, function):
        return "%s/%s" % (self.devices, function.path)

    def add_pci(self, function):
        path = self.pci_path(function)
        if os.path.exists(path + "/vendor"):
            function.section.fail("two devices at PCI address %s"
                                  % function.bdf)
        self.add_bridges(function)
        write_tree(path, function.attributes())
        if function.vpd is not None:
            write_file(path + "/vpd", function.vpd, 0o600)
        up = "../" * (function.path.count("/") + 2)
        os.symlink(up + "bus/pci", path + "/subsystem")
        os.symlink("../../../devices/" + function.path,
                   "%s/devices/%s" % (self.pci_dir, function.bdf))
        if function.driver:
            driver = "%s/drivers/%s" % (self.pci_dir, function.driver)
            make_dirs(driver)
            os.symlink("%sbus/pci/drivers/%s" % (up, function.driver),
                       path + "/driver")
            os.symlink("../../../../devices/" + function.path,
                       "%s/%s" % (driver, function.bdf))

    def add_bridges(self, function):
        """The PCI bridges on the way to a function."""
        parts = function.path.split("/")
        for depth in range(1, len(parts) - 1):
            below = "/".join(parts[:depth + 1])
            path = "%s/%s" % (self.devices, below)
            if os.path.exists(path + "/class") \
                    or not model.BDF.match(parts[depth]):
                continue
            files = function.attributes()
            for name in ("modalias", "uevent"):
                files.pop(name, None)
            files.update({"vendor": "0x8086", "device": "0x352a",
                          "subsystem_vendor": "0x0000",
                          "subsystem_device": "0x0000", "class": "0x060400"})
            if depth == len(parts) - 2:
                files.update(function.slot())
            write_tree(path, files)
            os.symlink("../../../devices/" + below,
                       "%s/devices/%s" % (self.pci_dir, parts[depth]))

    def add_services(self):
        """systemd's cgroups of [service *]; without any, no systemd is seen."""
        services = self.node.ini.all("service")
        if not services:
            return
        kernel.mount("simnode", "/sys/fs/cgroup", "tmpfs", 0, "mode=755")
        for section in services:
            path = "/sys/fs/cgroup/system.slice/%s.service" % section.name
            make_dirs(path)
            running = section.get("running", True)
            write_file(path + "/cgroup.procs", b"1\n" if running else b"",
                       0o644)

    def add_ca(self, ca):
        self.add_pci(ca.pci)
        below = "%s/infiniband/%s" % (ca.pci.path, ca.name)
        path = self.ca_path(ca)
        missing = ca.section.get("missing", [])
        write_tree(path, ca.attributes(), missing)
        make_dirs(path + "/ports")
        os.symlink("../../../" + ca.pci.bdf, path + "/device")
        for port in ca.ports:
            base = self.port_path(port)
            missing = port.section.get("missing", [])
            netdev = self.node.netdev_of(port)
            write_tree(base, port.attributes(netdev), missing)
            os.makedirs(base + "/gid_attrs/ndevs", exist_ok=True)
            for name in missing:
                if os.path.isdir(base + "/" + name):
                    remove_tree(base + "/" + name)
            for name in port.section.get("unreadable", []):
                self.unreadable(port.section, base, name)
        for name in ca.section.get("unreadable", []):
            self.unreadable(ca.section, path, name)
        if self.node.section.get("infiniband_class", True):
            self.class_link("infiniband", ca.name, below)

    def class_link(self, group, name, below):
        folder = "%s/%s" % (self.class_dir, group)
        make_dirs(folder)
        os.symlink("../../devices/" + below, "%s/%s" % (folder, name))

    def unreadable(self, section, base, name):
        path = "%s/%s" % (base, name)
        if not os.path.isfile(path):
            section.keys["unreadable"].fail(
                "[%s] has no file %s" % (section.title, name))
        self.late_unreadable.append("/sys" + path[len(self.stage):])

    def add_management(self):
        """class/infiniband_mad and class/infiniband_verbs."""
        node = self.node
        if node.module_loaded("ib_core") or node.cas:
            if node.section.get("infiniband_class", True):
                make_dirs(self.class_dir + "/infiniband")
        if node.module_loaded("ib_umad"):
            write_tree(self.class_dir + "/infiniband_mad",
                       {"abi_version": "5"})
        if node.module_loaded("ib_uverbs"):
            write_tree(self.class_dir + "/infiniband_verbs",
                       {"abi_version": "6"})
        for ca, port, names in management_nodes(node):
            for kind, name, minor in names:
                group = "infiniband_verbs" if kind == "uverbs" \
                    else "infiniband_mad"
                below = "%s/%s/%s" % (ca.pci.path, group, name)
                files = {"ibdev": ca.name, "dev": "231:%d" % minor}
                if port is not None:
                    files["port"] = str(port.number)
                else:
                    files["abi_version"] = "1"
                path = "%s/%s" % (self.devices, below)
                write_tree(path, files)
                os.symlink("../../../" + ca.pci.bdf, path + "/device")
                self.class_link(group, name, below)

    def add_module(self, section):
        path = "%s/module/%s" % (self.stage, section.name.replace("-", "_"))
        get = section.get
        files = {}
        if not get("builtin", False):
            files.update({"initstate": get("initstate", "live"),
                          "refcnt": get("refcnt", "0"),
                          "coresize": get("coresize", "65536"),
                          "taint": get("taint", "")})
        for key in ("version", "srcversion"):
            if get(key) is not None:
                files[key] = get(key)
        for item in get("parameters", []):
            name, equals, text = item.partition("=")
            if not equals:
                section.keys["parameters"].fail("%r is not NAME=VALUE" % item)
            files["parameters/" + name.strip()] = text.strip()
        files.update(section.prefixed("file/"))
        make_dirs(path)
        write_tree(path, files)
        if not get("builtin", False):
            make_dirs(path + "/holders")
        for holder in get("holders", []):
            os.symlink("../../" + holder, "%s/holders/%s" % (path, holder))
        driver = "%s/drivers/%s" % (self.pci_dir, section.name)
        if os.path.isdir(driver):
            os.symlink("../../../../module/" + section.name,
                       driver + "/module")

    def add_netdev(self, section):
        """Lays what only real adapters have over a netdev's attributes."""
        port = self.node.netdev_port(section)
        files = netdev_attributes(section, port)
        missing = section.get("missing", [])
        unreadable = section.get("unreadable", [])
        if not files and not missing and not unreadable and port is None:
            return
        live = "/sys/devices/virtual/net/" + section.name
        copy = "%s/net-%s" % (self.stage, section.name)
        os.mkdir(copy)
        for name, text in files.items():
            write_tree(copy, {name: text})
            if name in ("mode", "umcast"):
                os.chmod(copy + "/" + name, 0o644)
        if port is not None:
            os.symlink("/sys/devices/" + port.ca.pci.path, copy + "/device")
        # Absolute, since the directory is also seen below the PCI function.
        os.symlink("/sys/class/net", copy + "/subsystem")
        mirror(live, copy, list(missing) + ["tun_flags", "owner", "group"])
        for name in missing:
            if os.path.lexists(copy + "/" + name):
                os.unlink(copy + "/" + name)
        kernel.bind(copy, live, recursive=True)
        for name in unreadable:
            make_unreadable(live + "/" + name)
        if port is not None:
            place = "/sys/devices/%s/net/%s" % (port.ca.pci.path,
                                                section.name)
            os.makedirs(place)
            kernel.bind(live, place, recursive=True)


def netdev_attributes(section, port):
    """The attributes an IPoIB netdev has and a TAP device lacks."""
    get = section.get
    files = {}
    if get("type", "ethernet") == "ipoib":
        pkey = get("pkey", "0xffff")
        gid = port.gid() if port is not None else \
            "fe80:0000:0000:0000:0002:c903:0000:0001"
        raw = gid.replace(":", "")
        octets = [raw[i:i + 2] for i in range(0, len(raw), 2)]
        try:
            key = int(pkey, 16)
        except ValueError:
            key = 0xffff
        broadcast = "00:ff:ff:ff:ff:12:40:1b:%02x:%02x" % (key >> 8 & 255,
                                                           key & 255)
        files = {
            "address": get("hwaddress", "80:00:00:48:" + ":".join(octets)),
            "broadcast": get("broadcast", broadcast
                             + ":00:00:00:00:00:00:ff:ff:ff:ff"),
            "addr_len": "20",
            "mode": get("mode", "datagram"),
            "umcast": get("umcast", "0"),
            "pkey": pkey,
        }
        if get("parent") is not None:
            files["parent"] = get("parent")
    if port is not None or get("type") == "ipoib":
        number = port.number - 1 if port is not None else 0
        files["dev_id"] = get("dev_id", hex(number))
        files["dev_port"] = get("dev_port", str(number))
    for key in ("dev_id", "dev_port", "speed", "broadcast"):
        if get(key) is not None:
            files[key] = get(key)
    files.update(section.prefixed("file/"))
    return files


def management_nodes(node):
    """(Ca, Port or None, [(kind, name, minor)]) of each umad and uverbs."""
    umad = 0
    for ca in node.cas:
        if node.wants(ca, "uverbs", "ib_uverbs"):
            yield ca, None, [("uverbs", "uverbs%d" % ca.index,
                              192 + ca.index)]
        if ca.section.get("node_type") != "RNIC" \
                and node.wants(ca, "umad", "ib_umad"):
            for port in ca.ports:
                names = [("umad", "umad%d" % umad, umad)]
                if port.link_layer != "Ethernet":
                    names.append(("issm", "issm%d" % umad, 64 + umad))
                yield ca, port, names
                umad += 1


def make_unreadable(path):
    """From here on open() works and read() fails with EINVAL."""
    try:
        kernel.bind(EINVAL_SOURCE, path)
    except OSError as error:
        raise SetupError("cannot make %s unreadable: %s"
                         % (path, error.strerror)) from error


def remove_tree(path):
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            remove_tree(entry.path)
        else:
            os.unlink(entry.path)
    os.rmdir(path)
