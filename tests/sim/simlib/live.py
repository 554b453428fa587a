# SPDX-License-Identifier: MIT
"""Changes to a running node, made in place as the kernel would."""

import os

from . import model
from .errors import UsageError
from .netlink import Netlink
from .netdevs import index_of
from .sysfs import netdev_attributes, remove_tree

NETDEV_LINK = ("carrier", "up", "mtu")
NETDEV_FILES = ("mode", "umcast", "pkey", "hwaddress", "broadcast", "dev_id",
                "dev_port", "speed")


def apply_changes(world, changes):
    """SECTION.KEY=VALUE texts; all are checked before the first is made."""
    node = world.node
    before = {title: (section, dict(section.keys))
              for title, section in node.ini.sections.items()}
    steps = []
    try:
        for text in changes:
            kind, name, key = node.ini.assign(text, "set " + text)
            if name == "*" or ((kind, name) not in before
                               and kind != "module"):
                raise UsageError("set %s: the node has no [%s %s]"
                                 % (text, kind, name))
            steps.append((step_for(world, kind, name, key, text), name, key))
    except UsageError:
        node.ini.sections.clear()
        for title, (section, keys) in before.items():
            section.keys = keys
            node.ini.sections[title] = section
        raise
    for step, name, key in steps:
        step(world, name, key)


def step_for(world, kind, name, key, text):
    if kind == "port" and key != "missing":
        return set_port
    if kind == "ca" and (key == "unreadable" or key.startswith("file/") or
                         key in world.node.cas[0].attributes()):
        return set_ca
    if kind == "netdev" and name in world.netdevs.fds:
        if key in NETDEV_LINK:
            return set_netdev_link
        if key in NETDEV_FILES or key.startswith("file/"):
            return set_netdev_file
    if kind == "module" and key != "builtin":
        return set_module
    raise UsageError("set %s: this cannot be changed in a running node"
                     % text)


def write_in_place(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o444)
    try:
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def write_changed(base, files):
    for name, text in files.items():
        path, data = "%s/%s" % (base, name), model.line(text)
        try:
            with open(path, "rb") as file:
                if file.read() == data:
                    continue
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError:
            continue
        write_in_place(path, data)


def set_port(world, name, key):
    ca, _, number = name.rpartition(":")
    port = world.node.port(ca, int(number))
    base = world.sysfs.port_path(port)
    if key == "unreadable":
        world.sysfs.set_unreadable(base, port.section.get(key))
        return
    files = port.attributes(world.node.netdev_of(port))
    missing = port.section.get("missing", [])
    write_changed(base, {n: t for n, t in files.items() if n not in missing})


def set_ca(world, name, key):
    ca = next(c for c in world.node.cas if c.name == name)
    base = world.sysfs.ca_path(ca)
    if key == "unreadable":
        world.sysfs.set_unreadable(base, ca.section.get(key))
        return
    ca.settle_guid()
    missing = ca.section.get("missing", [])
    write_changed(base, {n: t for n, t in ca.attributes().items()
                         if n not in missing})


def set_netdev_link(world, name, key):
    value = world.node.ini.get("netdev", name).get(key)
    if key == "carrier":
        world.netdevs.set_carrier(name, value)
        return
    link = Netlink()
    link.set_link(index_of(name), name, **{key: value})
    link.close()


def set_netdev_file(world, name, key):
    section = world.node.ini.get("netdev", name)
    port = world.node.netdev_port(section)
    files = netdev_attributes(section, port)
    names = {"hwaddress": "address"}
    target = key[5:] if key.startswith("file/") else names.get(key, key)
    path = "/sys/class/net/%s/%s" % (name, target)
    if target not in files or not os.path.exists(path):
        raise UsageError("set netdev.%s.%s: %s has no such file"
                         % (name, key, name))
    write_in_place(path, model.line(files[target]))


def set_module(world, name, key):
    section = world.node.ini.get("module", name)
    path = "/sys/module/" + name.replace("-", "_")
    if os.path.isdir(path):
        remove_tree(path)
    if section.get("loaded", True):
        world.sysfs.add_module(section)
    del key
    if os.path.exists("/proc/modules"):
        from .devfs import modules_text
        write_in_place("/proc/modules", modules_text(world.node))
