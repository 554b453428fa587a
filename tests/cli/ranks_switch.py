#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ranks_switch.py HOST,HOST... [A:B:MS]...: an Ethernet switch between network namespaces.

Each host gets an eth1 (a TAP device). Frames between hosts A and B (names; B may be *) come MS
milliseconds late, both ways. What is not delayed passes at once, so that only the named
pairs are slow. Prints "ready"."""

import ctypes
import fcntl
import heapq
import os
import select
import struct
import sys
import time

TUNSETIFF = 0x400454ca
IFF_TAP, IFF_NO_PI = 2, 0x1000
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def tap(host):
    """eth1 in the namespace of @host; this process comes back."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open("/run/netns/" + host, os.O_RDONLY)
    assert libc.setns(there, CLONE_NEWNET) == 0
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"eth1", IFF_TAP | IFF_NO_PI))
    assert libc.setns(own, CLONE_NEWNET) == 0
    os.close(own)
    os.close(there)
    return fd


class Switch:
    def __init__(self, hosts, rules):
        self.ports = [tap(host) for host in hosts]
        self.index = {fd: i for i, fd in enumerate(self.ports)}
        self.delay = {}
        for rule in rules:
            one, other, ms = rule.split(":")
            for i, a in enumerate(hosts):
                for j, b in enumerate(hosts):
                    if i != j and (a, b) in ((one, other), (other, one)) or \
                            i != j and other == "*" and one in (a, b):
                        self.delay[i, j] = float(ms) / 1000
        self.where = {}
        self.late = []
        self.count = 0

    def send(self, port, frame):
        try:
            os.write(self.ports[port], frame)
        except OSError:
            pass  # it is down, or its queue is full: as on a wire

    def take(self, at, frame):
        self.where[frame[6:12]] = at
        known = self.where.get(frame[:6])
        for to in range(len(self.ports)) if known is None else (known,):
            if to == at:
                continue
            wait = self.delay.get((at, to))
            if wait is None:
                self.send(to, frame)
                continue
            self.count += 1
            heapq.heappush(self.late, (time.monotonic() + wait, self.count, to, frame))

    def run(self):
        poll = select.epoll()
        for fd in self.ports:
            poll.register(fd, select.EPOLLIN)
        while True:
            left = self.late[0][0] - time.monotonic() if self.late else -1
            for fd, _ in poll.poll(max(left, 0) if self.late else -1):
                for _ in range(64):
                    try:
                        self.take(self.index[fd], os.read(fd, 65536))
                    except OSError:
                        break
            while self.late and self.late[0][0] <= time.monotonic():
                _, _, to, frame = heapq.heappop(self.late)
                self.send(to, frame)


def main():
    switch = Switch(sys.argv[1].split(","), sys.argv[2:])
    print("ready", flush=True)
    switch.run()


if __name__ == "__main__":
    main()
