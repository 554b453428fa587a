# SPDX-License-Identifier: MIT
"""The node's network: TAP devices, addresses and routes.

A TAP device can be told its link type and its carrier, and lives only as long
as its descriptor, so the node's first process keeps them all.
"""

import fcntl
import ipaddress
import os
import socket
import struct
from zlib import crc32

from .errors import SetupError
from .netlink import (IF_OPER_UP, IFA_F_NOPREFIXROUTE, Netlink, default_broadcast,
                      parse_interface)

TUNSETIFF = 0x400454ca
TUNSETLINK = 0x400454cd
TUNSETCARRIER = 0x400454e2
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
ARPHRD_INFINIBAND = 32

DEFAULT_MTU = {("ipoib", "connected"): 65520, ("ipoib", "datagram"): 2044}


class Netdevs:
    def __init__(self, node, tun_path):
        self.node = node
        self.tun_path = tun_path
        self.fds = {}
        self.link = None

    def build(self):
        quiet_ipv6()
        self.link = Netlink()
        self.link.set_link(1, "lo up", up=True)
        for section in self.node.netdevs:
            try:
                if section.get("count") is not None:
                    self.add_crowd(section)
                else:
                    self.add(section)
                self.link.flush()
            except OSError as error:
                self.refused(section, error)
        for section in self.node.ini.all("route"):
            try:
                self.add_route(section)
                self.link.flush()
            except OSError as error:
                self.refused(section, error)
        self.link.close()

    @staticmethod
    def refused(section, error):
        raise SetupError("%s: [%s]: %s: %s" % (
            section.where, section.title, error.filename or "refused",
            error.strerror)) from error

    def add(self, section):
        name, get = section.name, section.get
        fd = open_tap(self.tun_path, name)
        self.fds[name] = fd
        kind = get("type", "ethernet")
        if kind == "ipoib":
            fcntl.ioctl(fd, TUNSETLINK, ARPHRD_INFINIBAND)
        mac = get("mac")
        if kind == "ethernet":
            self.link.set_link(index_of(name), "mac %s" % mac,
                               address=parse_mac(section, mac, name))
        index = index_of(name)
        mtu = get("mtu", DEFAULT_MTU.get((kind, get("mode", "datagram"))))
        if mtu is not None:
            self.link.set_link(index, "mtu %d" % mtu, mtu=mtu)
        for altname in get("altname", []):
            self.link.add_altname(index, altname, "altname " + altname)
        if get("carrier", True):
            # A TAP device says "unknown" until somebody says better.
            self.link.set_link(index, "operstate", operstate=IF_OPER_UP)
        else:
            self.set_carrier(name, False)
        if get("up", True):
            self.link.set_link(index, "up", up=True)
        for text in get("addresses", []):
            self.add_address(section, index, text)
        for text in get("routes", []):
            self.add_short_route(section, index, text)

    def set_carrier(self, name, carrier):
        fcntl.ioctl(self.fds[name], TUNSETCARRIER,
                    struct.pack("=i", int(carrier)))

    def add_address(self, section, index, text):
        words = text.split()
        value = section.keys["addresses"]
        try:
            interface = parse_interface(words[0])
            broadcast = default_broadcast(interface)
            label, flags = None, 0
            rest = iter(words[1:])
            for word in rest:
                if word == "nobrd":
                    broadcast = None
                elif word == "brd":
                    broadcast = ipaddress.ip_address(next(rest))
                elif word == "label":
                    label = next(rest)
                elif word == "noprefixroute":
                    flags |= IFA_F_NOPREFIXROUTE
                else:
                    raise ValueError("unknown word %r" % word)
        except (ValueError, StopIteration) as error:
            value.fail("[%s] addresses: %s: %s" % (section.title, text, error))
        self.link.add_address(index, interface, "address " + text, broadcast,
                              label, flags)

    def add_short_route(self, section, index, text):
        """'default via 10.0.0.1 metric 100' of a netdev's routes key."""
        words = text.split()
        value = section.keys["routes"]
        options = dict(zip(words[1::2], words[2::2]))
        unknown = set(options) - {"via", "metric", "src"}
        if unknown or len(words) % 2 == 0:
            value.fail("[%s] routes: %r is not 'DESTINATION [via A] "
                       "[metric N] [src A]'" % (section.title, text))
        self.route(value.fail, index, words[0], options.get("via"),
                   options.get("metric"), options.get("src"), text)

    def add_route(self, section):
        get = section.get
        dev = get("dev")
        index = None
        if dev is not None:
            try:
                index = index_of(dev)
            except OSError:
                section.keys["dev"].fail("[%s] no netdev %s"
                                         % (section.title, dev))
        self.route(section.fail, index, get("dst", section.name), get("via"),
                   get("metric"), get("src"), section.name)

    def route(self, fail, index, destination, via, metric, source, what):
        try:
            gateway = ipaddress.ip_address(via) if via else None
            if destination == "default":
                version = gateway.version if gateway else 4
                destination = "::/0" if version == 6 else "0.0.0.0/0"
            network = ipaddress.ip_network(destination)
            metric = int(metric) if metric is not None else None
            source = ipaddress.ip_address(source) if source else None
        except ValueError as error:
            fail("route %s: %s" % (what, error))
        self.link.add_route(network, index, "route " + what, gateway, metric,
                            source)

    def add_crowd(self, section):
        """count netdevs NAME0, NAME1... with addresses_per addresses each."""
        get = section.get
        count, per = get("count"), get("addresses_per", 0)
        base = int(ipaddress.IPv4Address(get("base", "10.64.0.0")))
        if per > 254:
            section.keys["addresses_per"].fail("at most 254")
        for number in range(0, count, 2):
            name = "%s%d" % (section.name, number)
            peer = "%s%d" % (section.name, number + 1)
            self.link.add_veth(name, peer, name)
        self.link.flush()
        indexes = dict((name, index) for index, name in socket.if_nameindex())
        for number in range(count):
            name = "%s%d" % (section.name, number)
            index = indexes[name]
            if get("up", True):
                self.link.set_link(index, name + " up", up=True)
            for host in range(1, per + 1):
                address = ipaddress.IPv4Interface(
                    (base + number * 256 + host, 24))
                self.link.add_address(index, address, name,
                                      default_broadcast(address))


def open_tap(tun_path, name):
    try:
        fd = os.open(tun_path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise SetupError("cannot open /dev/net/tun (%s): netdevs need the "
                         "kernel's tun driver and, in a container, access to "
                         "that device" % error.strerror) from error
    request = struct.pack("=16sH22x", name.encode(), IFF_TAP | IFF_NO_PI)
    fcntl.ioctl(fd, TUNSETIFF, request)
    return fd


def index_of(name):
    try:
        return socket.if_nametoindex(name)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


def parse_mac(section, text, name):
    if text is None:
        return b"\x02\x00" + struct.pack(">I", crc32(name.encode()))
    try:
        raw = bytes.fromhex(text.replace(":", ""))
        if len(raw) != 6:
            raise ValueError
    except ValueError:
        section.keys["mac"].fail("[%s] mac: %r is not six octets"
                                 % (section.title, text))
    return raw


def quiet_ipv6():
    """No duplicate address detection: addresses are there at once."""
    for group in ("all", "default"):
        try:
            with open("/proc/sys/net/ipv6/conf/%s/accept_dad" % group, "w",
                      encoding="ascii") as file:
                file.write("0")
        except OSError:
            pass
