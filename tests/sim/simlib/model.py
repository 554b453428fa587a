# SPDX-License-Identifier: MIT
"""What a node file means: CAs, ports and PCI functions with their defaults.

Plain values become what the kernel would show ("ACTIVE" -> "4: ACTIVE"); a
value that is not one of the known words is kept as it stands, so that odd
content can be written down too.
"""

import ipaddress
import re

from .errors import nearest

STATES = {"NOP": 0, "DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4,
          "ACTIVE_DEFER": 5}
PHYS_STATES = {"Sleep": 1, "Polling": 2, "Disabled": 3,
               "PortConfigurationTraining": 4, "LinkUp": 5,
               "LinkErrorRecovery": 6, "Phy Test": 7}
NODE_TYPES = {"CA": "1: CA", "switch": "2: switch", "router": "3: router",
              "RNIC": "4: RNIC", "usNIC": "5: usNIC",
              "usNIC UDP": "6: usNIC UDP"}

COUNTERS = ("VL15_dropped", "excessive_buffer_overrun_errors",
            "link_downed", "link_error_recovery",
            "local_link_integrity_errors", "multicast_rcv_packets",
            "multicast_xmit_packets", "port_rcv_constraint_errors",
            "port_rcv_data", "port_rcv_errors", "port_rcv_packets",
            "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors",
            "port_xmit_constraint_errors", "port_xmit_data",
            "port_xmit_discards", "port_xmit_packets", "port_xmit_wait",
            "symbol_error", "unicast_rcv_packets", "unicast_xmit_packets")

PORT_PLAIN = ("rate", "link_layer", "lid", "sm_lid", "lid_mask_count",
              "sm_sl", "cap_mask")

BDF = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")


def line(text):
    """One sysfs attribute: the value and a newline."""
    data = text if isinstance(text, bytes) else text.encode(
        "utf-8", "surrogateescape")
    return data if data.endswith(b"\n") else data + b"\n"


def numbered(text, table):
    return "%d: %s" % (table[text], text) if text in table else text


def sysfs_gid(text):
    try:
        return ipaddress.IPv6Address(text).exploded
    except ValueError:
        return text


def guid_words(value):
    digits = "%016x" % (value & (1 << 64) - 1)
    return ":".join(digits[i:i + 4] for i in range(0, 16, 4))


def parse_guid(text):
    """0x506b4b0300f5ce9c or 506b:4b03:00f5:ce9c; None when it is neither."""
    try:
        if ":" in text:
            return int("".join(w.zfill(4) for w in text.split(":")), 16)
        return int(text, 16)
    except ValueError:
        return None


class PciFunction:
    """A function on the PCI bus and where it lives under /sys/devices."""

    def __init__(self, section, bdf, defaults):
        bdf = bdf.lower()
        if not BDF.match(bdf):
            section.fail("%r is no PCI address (0000:17:00.0)" % bdf)
        self.section = section
        self.bdf = bdf
        path = section.get("pci_path")
        if path is None:
            domain, bus = bdf.split(":")[:2]
            root = "%s:%02x" % (domain, max(int(bus, 16) - 1, 0))
            path = "pci%s/%s:01.0/%s" % (root, root, bdf)
        if path.rsplit("/", 1)[-1] != bdf:
            section.fail("pci_path %r does not end in %s" % (path, bdf))
        self.path = path.strip("/")
        self.driver = section.get("driver", defaults["driver"])
        self.values = {key: section.get(key, default)
                       for key, default in defaults.items()}
        self.vpd = None

    def attributes(self):
        value = self.values
        ids = {key: int(value[key], 16) for key in
               ("vendor", "device", "class", "subsystem_vendor",
                "subsystem_device") if self.is_hex(key)}
        files = {}
        for key in ("vendor", "device", "class", "subsystem_vendor",
                    "subsystem_device", "local_cpulist",
                    "current_link_speed", "current_link_width",
                    "max_link_speed", "max_link_width"):
            files[key] = value[key]
        files["numa_node"] = str(value["numa_node"])
        files["revision"] = "0x00"
        files["enable"] = "1"
        if len(ids) == 5:
            files["modalias"] = (
                "pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X"
                % (ids["vendor"], ids["device"], ids["subsystem_vendor"],
                   ids["subsystem_device"], ids["class"] >> 16,
                   ids["class"] >> 8 & 255, ids["class"] & 255))
            files["uevent"] = (
                "DRIVER=%s\nPCI_CLASS=%X\nPCI_ID=%04X:%04X\n"
                "PCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\nMODALIAS=%s"
                % (self.driver, ids["class"], ids["vendor"], ids["device"],
                   ids["subsystem_vendor"], ids["subsystem_device"],
                   self.bdf, files["modalias"]))
        return files

    def slot(self):
        """What differs in the bridge above: the slot's own limits."""
        return {key[len("slot_"):]: self.section.get(key)
                for key in ("slot_max_link_speed", "slot_max_link_width")
                if self.section.get(key) is not None}

    def is_hex(self, key):
        try:
            int(self.values[key], 16)
            return True
        except ValueError:
            return False


CA_PCI = {"vendor": "0x15b3", "device": "0x1017", "class": "0x020700",
          "subsystem_vendor": "0x15b3", "subsystem_device": "0x0008",
          "numa_node": 0, "local_cpulist": "0-1", "driver": "mlx5_core",
          "current_link_speed": "8.0 GT/s PCIe", "current_link_width": "16",
          "max_link_speed": "8.0 GT/s PCIe", "max_link_width": "16"}
GPU_PCI = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200",
           "subsystem_vendor": "0x10de", "subsystem_device": "0x16c1",
           "numa_node": 0, "local_cpulist": "0-1", "driver": "nvidia",
           "current_link_speed": "32.0 GT/s PCIe", "current_link_width": "16",
           "max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16"}


class Ca:
    def __init__(self, section, index):
        self.section = section
        self.name = section.name
        self.pci = PciFunction(
            section, section.get("pci", "0000:%02x:00.0" % (0x20 + index)),
            CA_PCI)
        if section.get("vpd"):
            self.pci.vpd = vital_product_data(section.get("vpd"))
        self.ports = []
        self.index = index

    def settle_guid(self):
        """node_guid, or what the first port's GID says, or one made up."""
        text = self.section.get("node_guid")
        guid = parse_guid(text) if text else None
        if guid is None and self.ports:
            gid = self.ports[0].section.get("gid")
            try:
                low = int(ipaddress.IPv6Address(gid)) & (1 << 64) - 1
                guid = low - (self.ports[0].number - 1)
            except ValueError:
                pass
        if guid is None:
            guid = 0x506b4b0300aa0000 + 0x100 * self.index
        self.guid = guid
        self.guid_text = guid_words(guid) if not text \
            or parse_guid(text) is not None else text

    def attributes(self):
        get = self.section.get
        files = {
            "node_type": NODE_TYPES.get(get("node_type", "CA"),
                                        get("node_type", "CA")),
            "node_desc": get("node_desc", "localhost " + self.name),
            "node_guid": self.guid_text,
            "sys_image_guid": get("sys_image_guid", self.guid_text),
            "fw_ver": get("fw_ver", "16.35.2000"),
            "hw_rev": get("hw_rev", "0x0"),
            "hca_type": get("hca_type", "MT4119"),
            "board_id": get("board_id", "MT_0000000008"),
        }
        files.update(self.section.prefixed("file/"))
        return files


class Port:
    def __init__(self, section, ca, number, index):
        self.section = section
        self.ca = ca
        self.number = number
        self.index = index

    @property
    def link_layer(self):
        return self.section.get("link_layer", "InfiniBand")

    def gid(self):
        """GID 0 as sysfs writes it."""
        given = self.section.get("gids")
        text = given[0] if given else self.section.get("gid")
        if text is None:
            guid = guid_words(self.ca.guid + self.number - 1)
            return "fe80:0000:0000:0000:" + guid
        return sysfs_gid(text)

    def attributes(self, netdev=None):
        """Relative path below ports/N -> text; netdev names GID 0's netdev."""
        get = self.section.get
        ethernet = self.link_layer == "Ethernet"
        defaults = {
            "rate": "100 Gb/sec (4X EDR)", "link_layer": "InfiniBand",
            "lid": "0x0" if ethernet else hex(0x10 + self.index),
            "sm_lid": "0x0" if ethernet else "0x1",
            "lid_mask_count": "0", "sm_sl": "0",
            "cap_mask": "0x04010000" if ethernet else "0x2651e848",
        }
        files = {"state": numbered(get("state", "ACTIVE"), STATES),
                 "phys_state": numbered(get("phys_state", "LinkUp"),
                                        PHYS_STATES)}
        for key in PORT_PLAIN:
            files[key] = get(key, defaults[key])
        gids = [self.gid()] + [sysfs_gid(g) for g in get("gids", [])[1:]]
        kinds = get("gid_types",
                    ["RoCE v2" if ethernet else "IB/RoCE v1"] * len(gids))
        ndevs = get("gid_ndevs", [netdev] * len(gids) if netdev else [])
        for number, gid in enumerate(gids):
            files["gids/%d" % number] = gid
            if number < len(kinds):
                files["gid_attrs/types/%d" % number] = kinds[number]
            if number < len(ndevs):
                files["gid_attrs/ndevs/%d" % number] = ndevs[number]
        for number, pkey in enumerate(get("pkeys", ["0xffff", "0x0000"])):
            files["pkeys/%d" % number] = pkey
        for name in COUNTERS:
            files["counters/" + name] = "0"
        for group in ("counters/", "hw_counters/"):
            for name, text in self.section.prefixed(group):
                files[group + name] = text
        files.update(self.section.prefixed("file/"))
        return files


def vital_product_data(note):
    """A VPD image: product name, then read-only fields with the note in V0."""
    def field(key, data):
        return key + bytes([len(data)]) + data
    name = b"ConnectX adapter"
    body = (field(b"PN", b"SIM-0001") + field(b"SN", b"SIM0000001")
            + field(b"V0", note[:255]))
    image = b"\x82" + len(name).to_bytes(2, "little") + name
    image += b"\x90" + (len(body) + 4).to_bytes(2, "little") + body
    image += b"RV\x01"
    image += bytes([-sum(image) & 255])
    return image + b"\x78"


class Node:
    """A checked node file."""

    def __init__(self, ini):
        ini.inherit()
        self.ini = ini
        self.section = ini.get("node") or ini.section("node", None, "node")
        self.hostname = self.section.get("hostname", "node01")
        self.cas, self.ports = [], []
        self.read_ports()
        self.gpus = [PciFunction(s, s.name, GPU_PCI) for s in ini.all("gpu")]
        self.netdevs = ini.all("netdev")
        self.check_netdevs()

    def read_ports(self):
        ini, by_name = self.ini, {}
        for index, section in enumerate(ini.all("ca")):
            by_name[section.name] = Ca(section, index)
        for section in ini.all("port"):
            name, colon, number = section.name.rpartition(":")
            if not colon or not number.isdigit():
                section.fail("a port is named CA:NUMBER")
            if name not in by_name:
                base = ini.section("ca", name, section.where)
                default = ini.get("ca", "*")
                if default is not None:
                    base.keys = dict(default.keys)
                by_name[name] = Ca(base, len(by_name))
            by_name[name].ports.append(Port(section, by_name[name],
                                            int(number), 0))
        self.cas = list(by_name.values())
        for ca in self.cas:
            ca.settle_guid()
            for port in ca.ports:
                port.index = len(self.ports)
                self.ports.append(port)

    def port(self, ca_name, number):
        for port in self.ports:
            if port.ca.name == ca_name and port.number == number:
                return port
        return None

    def netdev_port(self, section):
        """The Port a netdev belongs to, or None."""
        name = section.get("ca")
        parent = section.get("parent")
        if name is None and parent is not None:
            above = self.ini.get("netdev", parent)
            return self.netdev_port(above) if above is not None else None
        if name is None:
            return None
        return self.port(name, section.get("port", 1))

    def netdev_of(self, port):
        """The name of the first netdev of a port, or None."""
        for section in self.netdevs:
            if self.netdev_port(section) is port:
                return section.name
        return None

    def check_netdevs(self):
        names = [ca.name for ca in self.cas]
        for section in self.netdevs:
            if len(section.name) > 15 or "/" in section.name:
                section.fail("an interface name has 1 to 15 characters")
            name = section.get("ca")
            if name is not None and self.netdev_port(section) is None:
                section.keys["ca"].fail("no port %s:%d%s" % (
                    name, section.get("port", 1), nearest(name, names)))
        for section in self.ini.all("route"):
            if section.get("dev") is None and section.get("via") is None:
                section.fail("a route needs dev or via")

    def module_loaded(self, name):
        section = self.ini.get("module", name)
        return section is not None and section.get("loaded", True)

    def wants(self, ca, kind, module):
        """Whether a CA gets umad or uverbs nodes."""
        own = ca.section.get(kind)
        if own is None:
            own = self.section.get(kind)
        return self.module_loaded(module) if own is None else own
