# SPDX-License-Identifier: MIT
"""Node files: reading, checking and merging them.

A file is sections of KEY = VALUE lines. A line that starts with a blank
continues the value above it; "#" and ";" start a comment in the first column
only, so that values may hold both. Every value remembers where it came from.
"""

import codecs
import os

from . import schema
from .errors import UsageError, nearest


class Value:
    __slots__ = ("text", "where")

    def __init__(self, text, where):
        self.text = text
        self.where = where

    def fail(self, message):
        raise UsageError("%s: %s" % (self.where, message))


class Section:
    def __init__(self, kind, name, where):
        self.kind = kind
        self.name = name
        self.where = where
        self.keys = {}

    @property
    def title(self):
        return self.kind if self.name is None else "%s %s" % (self.kind,
                                                              self.name)

    def fail(self, message):
        raise UsageError("%s: [%s]: %s" % (self.where, self.title, message))

    def get(self, key, default=None):
        """The value of a key in its type; default when it is not set."""
        value = self.keys.get(key)
        if value is None:
            return default
        kind = schema.key_type(self.kind, key)
        try:
            return convert(value.text, kind)
        except ValueError as error:
            value.fail("[%s] %s: %s" % (self.title, key, error))

    def prefixed(self, prefix):
        """(rest of the key, value) of each key that starts with prefix."""
        for key in self.keys:
            if key.startswith(prefix):
                yield key[len(prefix):], self.get(key)


def convert(text, kind):
    if isinstance(kind, tuple):
        if text not in kind:
            raise ValueError("%r is none of %s%s"
                             % (text, ", ".join(kind), nearest(text, kind)))
        return text
    if kind == "bool":
        words = {"yes": True, "true": True, "on": True, "1": True,
                 "no": False, "false": False, "off": False, "0": False}
        if text.lower() not in words:
            raise ValueError("%r is neither yes nor no" % text)
        return words[text.lower()]
    if kind == "int":
        try:
            return int(text, 0)
        except ValueError:
            raise ValueError("%r is not a number" % text) from None
    if kind == "list":
        return [item.strip() for item in text.replace("\n", ",").split(",")
                if item.strip()]
    if kind == "text":
        return decode_escapes(text)
    return text


def decode_escapes(text):
    """\\n, \\r, \\t, \\xNN and the like as in Python; the result is bytes."""
    try:
        return codecs.escape_decode(text.encode("utf-8", "surrogateescape"))[0]
    except ValueError as error:
        raise ValueError("bad escape: %s" % error) from None


class NodeFile:
    """The merged sections of a node file, what it includes, and overlays."""

    def __init__(self):
        self.sections = {}

    def get(self, kind, name=None):
        return self.sections.get((kind, name))

    def all(self, kind):
        """The sections of a kind in order, '*' (defaults) left out."""
        return [section for (k, name), section in self.sections.items()
                if k == kind and name != "*"]

    def section(self, kind, name, where):
        key = (kind, name)
        if key not in self.sections:
            self.sections[key] = Section(kind, name, where)
        return self.sections[key]

    def load(self, path, seen=()):
        real = os.path.realpath(path)
        if real in seen:
            raise UsageError("%s: includes itself" % path)
        parsed = parse(path)
        node = next((s for s in parsed if s.kind == "node"), None)
        if node is not None:
            for name in node.get("include", []):
                base = os.path.join(os.path.dirname(path), name)
                if not os.path.exists(base):
                    node.keys["include"].fail("no such file: %s" % base)
                self.load(base, seen + (real,))
            for title in node.get("without", []):
                self.remove(title, node.keys["without"].where)
        for section in parsed:
            target = self.section(section.kind, section.name, section.where)
            target.keys.update(section.keys)
            for gone in ("include", "without"):
                if section.kind == "node":
                    target.keys.pop(gone, None)

    def remove(self, title, where):
        kind, name = split_title(title, where)
        if self.sections.pop((kind, name), None) is None:
            titles = [s.title for s in self.sections.values()]
            raise UsageError("%s: no section [%s] to leave out%s"
                             % (where, title, nearest(title, titles)))

    def assign(self, assignment, where):
        """'SECTION.KEY=VALUE', the section with its blank or with a dot."""
        kind, name, key, text = split_assignment(assignment, where)
        section = self.section(kind, name, where)
        section.keys[key] = Value(text, where)
        section.get(key)
        return kind, name, key

    def inherit(self):
        """Keys of [KIND *] become defaults of each [KIND NAME]."""
        for (kind, name), section in list(self.sections.items()):
            base = self.sections.get((kind, "*"))
            if base is not None and name != "*":
                section.keys = {**base.keys, **section.keys}
                for key in section.keys:
                    section.get(key)


def split_title(title, where):
    kind, _, name = title.strip().partition(" ")
    name = name.strip() or None
    if kind not in schema.kinds():
        raise UsageError("%s: unknown section [%s]%s"
                         % (where, title, nearest(kind, schema.kinds())))
    if kind in schema.PLAIN and name is not None:
        raise UsageError("%s: section [%s] takes no name" % (where, kind))
    if kind in schema.NAMED and name is None:
        raise UsageError("%s: section [%s] needs a name, as in [%s NAME]"
                         % (where, kind, kind))
    return kind, name


def split_assignment(assignment, where):
    left, equals, text = assignment.partition("=")
    left = left.strip()
    if not equals:
        raise UsageError("%s: %r is not SECTION.KEY=VALUE"
                         % (where, assignment))
    head = left.partition(".")[0]
    if head in schema.NAMED:
        left = head + " " + left[len(head) + 1:]
    elif head in schema.PLAIN and "." in left:
        key = left[len(head) + 1:]
        check_key(head, None, key, where)
        return head, None, key, text
    kind = split_title(left, where)[0]
    # A name may hold dots (ib0.8001) and so may a key: take the shortest key
    # that the section knows.
    at = left.rfind(".")
    while at > 0:
        title, key = left[:at], left[at + 1:]
        if schema.key_type(kind, key) is not None:
            return split_title(title, where) + (key, text)
        at = left.rfind(".", 0, at)
    title, dot, key = left.rpartition(".")
    if not dot:
        raise UsageError("%s: %r names no key: write SECTION.KEY=VALUE"
                         % (where, assignment))
    check_key(kind, title, key, where)
    raise AssertionError("unreachable")


def check_key(kind, title, key, where):
    if schema.key_type(kind, key) is None:
        raise UsageError("%s: [%s] has no key %r%s"
                         % (where, title or kind, key,
                            nearest(key, schema.known_keys(kind))))


def parse(path):
    """The sections of one file, in order."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape",
                  newline="") as file:
            lines = file.read().split("\n")
    except OSError as error:
        raise UsageError("%s: %s" % (path, error.strerror)) from error
    sections, current, last = [], None, None
    for number, line in enumerate(lines, 1):
        where = "%s:%d" % (path, number)
        line = line.rstrip("\r")
        if line[:1] in ("#", ";") or not line.strip():
            continue
        if line[0] in " \t":
            if last is None:
                raise UsageError("%s: a continued line without a key above it"
                                 % where)
            last.text += ("\n" if last.text else "") + line.strip()
            continue
        line = line.strip()
        if line[0] == "[":
            if line[-1] != "]":
                raise UsageError("%s: section without a closing ]" % where)
            kind, name = split_title(line[1:-1], where)
            for section in sections:
                if (section.kind, section.name) == (kind, name):
                    raise UsageError("%s: [%s] is already at %s"
                                     % (where, section.title, section.where))
            current, last = Section(kind, name, where), None
            sections.append(current)
            continue
        key, equals, text = line.partition("=")
        key = key.strip()
        if not equals:
            raise UsageError("%s: neither [section] nor KEY = VALUE: %s"
                             % (where, line))
        if current is None:
            raise UsageError("%s: %r stands before the first section"
                             % (where, key))
        check_key(current.kind, current.title, key, where)
        if key in current.keys:
            raise UsageError("%s: [%s] %s is already set at %s" % (
                where, current.title, key, current.keys[key].where))
        last = Value(text.strip(), where)
        current.keys[key] = last
    for section in sections:
        for key in section.keys:
            section.get(key)
    return sections
