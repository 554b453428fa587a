# SPDX-License-Identifier: MIT
"""A small rtnetlink client: many requests in few system calls."""

import ipaddress
import os
import socket
import struct

RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_NEWROUTE = 16, 17, 20, 24
RTM_NEWLINKPROP = 108
NLM_F_REQUEST, NLM_F_ACK = 1, 4
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE, NLM_F_APPEND = (
    0x100, 0x200, 0x400, 0x800)
NLMSG_ERROR = 2

IFF_UP = 1
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_OPERSTATE, IFLA_LINKINFO = \
    1, 3, 4, 16, 18
IFLA_INFO_KIND, IFLA_INFO_DATA = 1, 2
IFLA_PROP_LIST, IFLA_ALT_IFNAME = 52, 53
VETH_INFO_PEER = 1
NLA_F_NESTED = 0x8000
IF_OPER_UP = 6

IFA_ADDRESS, IFA_LOCAL, IFA_LABEL, IFA_BROADCAST, IFA_FLAGS = 1, 2, 3, 4, 8
IFA_F_NODAD, IFA_F_NOPREFIXROUTE = 0x02, 0x200

RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_PREFSRC = 1, 4, 5, 6, 7
RT_TABLE_MAIN, RTPROT_STATIC, RTN_UNICAST = 254, 4, 1
RT_SCOPE_UNIVERSE, RT_SCOPE_LINK, RT_SCOPE_HOST = 0, 253, 254


def attr(kind, payload):
    if isinstance(payload, int):
        payload = struct.pack("=I", payload)
    elif isinstance(payload, str):
        payload = payload.encode() + b"\0"
    size = len(payload) + 4
    return struct.pack("=HH", size, kind) + payload + b"\0" * (-size % 4)


def family_of(address):
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


class Netlink:
    """Requests pile up; flush() sends them and reports the first refusal."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                                    socket.NETLINK_ROUTE)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.bind((0, 0))
        self.pending = []
        self.size = 0

    def request(self, kind, flags, payload, what, ignore=()):
        number = len(self.pending) + 1
        data = struct.pack("=IHHII", 16 + len(payload), kind,
                           flags | NLM_F_REQUEST | NLM_F_ACK, number, 0)
        self.pending.append((data + payload, what, ignore))
        self.size += len(data) + len(payload)
        # Each acknowledgement takes room in the receive buffer.
        if self.size > 32000 or len(self.pending) >= 200:
            self.flush()

    def flush(self):
        pending, self.pending, self.size = self.pending, [], 0
        if not pending:
            return
        self.socket.send(b"".join(item[0] for item in pending))
        left = len(pending)
        failure = None
        while left:
            data = self.socket.recv(1 << 17)
            offset = 0
            while offset + 16 <= len(data):
                size, kind, _, number, _ = struct.unpack_from("=IHHII", data,
                                                              offset)
                if kind == NLMSG_ERROR:
                    left -= 1
                    code = -struct.unpack_from("=i", data, offset + 16)[0]
                    _, what, ignore = pending[number - 1]
                    if code and code not in ignore and failure is None:
                        failure = OSError(code, os.strerror(code), what)
                offset += (size + 3) & ~3
        if failure:
            raise failure

    def set_link(self, index, what, up=None, mtu=None, address=None,
                 operstate=None):
        flags = IFF_UP if up else 0
        change = 0 if up is None else IFF_UP
        payload = struct.pack("=BxHiII", 0, 0, index, flags, change)
        if mtu is not None:
            payload += attr(IFLA_MTU, mtu)
        if address is not None:
            payload += attr(IFLA_ADDRESS, address)
        if operstate is not None:
            payload += attr(IFLA_OPERSTATE, bytes([operstate]))
        self.request(RTM_NEWLINK, 0, payload, what)

    def add_altname(self, index, altname, what):
        payload = struct.pack("=BxHiII", 0, 0, index, 0, 0)
        payload += attr(IFLA_PROP_LIST | NLA_F_NESTED,
                        attr(IFLA_ALT_IFNAME, altname))
        self.request(RTM_NEWLINKPROP,
                     NLM_F_CREATE | NLM_F_EXCL | NLM_F_APPEND, payload, what)

    def add_veth(self, name, peer, what, mtu=1500):
        end = struct.pack("=BxHiII", 0, 0, 0, 0, 0)
        data = attr(VETH_INFO_PEER, end + attr(IFLA_IFNAME, peer)
                    + attr(IFLA_MTU, mtu))
        info = attr(IFLA_INFO_KIND, b"veth") + attr(IFLA_INFO_DATA, data)
        payload = (end + attr(IFLA_IFNAME, name) + attr(IFLA_MTU, mtu)
                   + attr(IFLA_LINKINFO, info))
        self.request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, payload, what)

    def add_address(self, index, interface, what, broadcast=None, label=None,
                    flags=0):
        """interface: an ipaddress.IPv4Interface or IPv6Interface."""
        scope = RT_SCOPE_UNIVERSE
        if interface.ip.is_loopback:
            scope = RT_SCOPE_HOST
        elif interface.version == 6 and interface.ip.is_link_local:
            scope = RT_SCOPE_LINK
        payload = struct.pack("=BBBBi", family_of(interface),
                              interface.network.prefixlen, 0, scope, index)
        payload += attr(IFA_LOCAL, interface.ip.packed)
        payload += attr(IFA_ADDRESS, interface.ip.packed)
        if broadcast is not None:
            payload += attr(IFA_BROADCAST, broadcast.packed)
        if label is not None:
            payload += attr(IFA_LABEL, label)
        if interface.version == 6:
            flags |= IFA_F_NODAD
        payload += attr(IFA_FLAGS, flags)
        self.request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, payload, what)

    def add_route(self, destination, index, what, via=None, metric=None,
                  source=None):
        """destination: an ipaddress network."""
        scope = RT_SCOPE_UNIVERSE if via or destination.version == 6 \
            else RT_SCOPE_LINK
        payload = struct.pack("=BBBBBBBBI", family_of(destination),
                              destination.prefixlen, 0, 0, RT_TABLE_MAIN,
                              RTPROT_STATIC, scope, RTN_UNICAST, 0)
        if destination.prefixlen:
            payload += attr(RTA_DST, destination.network_address.packed)
        if via is not None:
            payload += attr(RTA_GATEWAY, via.packed)
        if index is not None:
            payload += attr(RTA_OIF, index)
        if metric is not None:
            payload += attr(RTA_PRIORITY, metric)
        if source is not None:
            payload += attr(RTA_PREFSRC, source.packed)
        self.request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, payload, what)

    def close(self):
        self.flush()
        self.socket.close()


def default_broadcast(interface):
    if interface.version != 4 or interface.network.prefixlen >= 31:
        return None
    return interface.network.broadcast_address


def parse_interface(text):
    """'10.0.0.50/24' as an interface; ValueError when it is none."""
    if "/" not in text:
        raise ValueError("%r has no prefix length" % text)
    return ipaddress.ip_interface(text)
