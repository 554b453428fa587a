#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""alter.py MODULE.ko DIR: makes, out of a module that loads, files in DIR that do not."""

import os
import sys

path, folder = sys.argv[1:]
image = open(path, "rb").read()
name = os.path.basename(path)[:-3]


def replaced(data, old, new):
    """Once, and at the same length: sections do not move."""
    if data.count(old) != 1 or len(new) > len(old):
        sys.exit(f"broken: {path} has {data.count(old)} times {old!r}")
    return data.replace(old, new + bytes(len(old) - len(new)))


def magic():
    at = image.index(b"vermagic=")
    return image[at:image.index(b"\0", at)]


def with_other_checksum(data):
    """An entry of __versions is 8 bytes of checksum and 56 of name."""
    at = data.find(b"module_layout\0") - 8
    if at < 0 or data.count(b"module_layout\0", at, at + 64) != 1:
        sys.exit(f"broken: {path} has no checksum of module_layout: no modversions?")
    return data[:at] + bytes([data[at] ^ 0xff]) + data[at + 1:]


release, flags = magic().split(b" ", 1)
other = release.rsplit(b"-", 2)[0] + b"-2-amd64"
variants = {
    "flags": replaced(image, magic(), release + b" " + flags.replace(b"preempt ", b"")),
    "release": with_other_checksum(replaced(image, magic(), other + b" " + flags)),
    "format": image[:len(image) // 2],
}
for what, data in variants.items():
    if data == image:
        sys.exit(f"broken: {name}-{what}.ko would be no other than {name}.ko")
    with open(os.path.join(folder, f"{name}-{what}.ko"), "wb") as out:
        out.write(data)
