# SPDX-License-Identifier: MIT
"""[file /path] sections: any file the node file wants to see."""

import os

from .devfs import harmless_major, make_char
from .errors import SetupError, UsageError, warn
from .runner import find_user
from .sysfs import remove_tree


def read_sources(node):
    """Reads what 'from' names while the host's files are still in sight."""
    content = {}
    for section in node.ini.all("file"):
        source = section.get("from")
        if source is None:
            continue
        value = section.keys["from"]
        base = os.path.dirname(value.where.rpartition(":")[0])
        try:
            with open(os.path.join(base, source), "rb") as file:
                content[section.name] = file.read()
        except OSError as error:
            value.fail("[%s] from: %s: %s" % (section.title, source,
                                              error.strerror))
    return content


class Files:
    def __init__(self, node, content, unprivileged):
        self.node = node
        self.content = content
        self.unprivileged = unprivileged

    def build(self):
        for section in self.node.ini.all("file"):
            if not section.name.startswith("/"):
                section.fail("a file is named by its full path")
            try:
                self.make(section, section.name)
            except OSError as error:
                hint = ""
                if isinstance(error, OSError) and error.errno == 30:
                    hint = " (name its folder in [node] private)"
                raise SetupError("%s: [%s]: %s%s" % (
                    section.where, section.title, error.strerror,
                    hint)) from error

    def make(self, section, path):
        get = section.get
        kind = get("type", "regular")
        if kind == "absent":
            if os.path.isdir(path) and not os.path.islink(path):
                remove_tree(path)
            elif os.path.lexists(path):
                os.unlink(path)
            return
        owner = self.owner(section, path)
        self.parents(os.path.dirname(path), owner)
        if os.path.lexists(path) and not (
                kind == "dir" or get("append", False)):
            os.unlink(path)
        mode = self.mode(section, 0o755 if kind == "dir" else 0o644)
        if kind == "dir":
            os.makedirs(path, exist_ok=True)
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "symlink":
            os.symlink(self.needed(section, "target"), path)
        elif kind == "hardlink":
            os.link(self.needed(section, "target"), path,
                    follow_symlinks=False)
        elif kind == "char":
            major = harmless_major(self.needed(section, "major"))
            make_char(path, major, get("minor", 0), mode, self.unprivileged)
        else:
            self.regular(section, path)
        if kind == "hardlink":
            return
        if kind != "symlink":
            os.chmod(path, mode)
        if not self.unprivileged:
            os.chown(path, *owner, follow_symlinks=False)

    def regular(self, section, path):
        data = self.content.get(section.name)
        if data is None:
            data = section.get("text", b"")
            if data and not data.endswith(b"\n") \
                    and section.get("final_newline", True):
                data += b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW
        flags |= os.O_APPEND if section.get("append", False) else os.O_TRUNC
        fd = os.open(path, flags, 0o600)
        try:
            while data:
                data = data[os.write(fd, data):]
        finally:
            os.close(fd)

    @staticmethod
    def needed(section, key):
        value = section.get(key)
        if value is None:
            section.fail("type = %s needs the key %s"
                         % (section.get("type"), key))
        return value

    @staticmethod
    def mode(section, default):
        try:
            return int(section.get("mode", oct(default)[2:]), 8)
        except ValueError:
            section.keys["mode"].fail("[%s] mode: not an octal mode"
                                      % section.title)

    def owner(self, section, path):
        """uid and gid: as told, else those of the folder it goes into."""
        text = section.get("owner")
        if text is None:
            above = os.path.dirname(path)
            while not os.path.isdir(above):
                above = os.path.dirname(above)
            status = os.stat(above)
            return status.st_uid, status.st_gid
        user, colon, group = text.partition(":")
        try:
            if user.isdigit():
                uid, gid = int(user), int(user)
            else:
                entry = find_user(user)
                uid, gid = int(entry[2]), int(entry[3])
            if colon:
                gid = int(group) if group.isdigit() else find_group(group)
        except SetupError as error:
            raise UsageError("%s: [%s] owner: %s" % (
                section.keys["owner"].where, section.title, error)) from error
        if self.unprivileged and uid:
            warn("%s: [%s]: belongs to you, not to %s: an unprivileged node "
                 "has no other user" % (section.where, section.title, user))
        return uid, gid

    def parents(self, path, owner):
        if os.path.isdir(path):
            return
        self.parents(os.path.dirname(path), owner)
        os.mkdir(path)
        os.chmod(path, 0o755)
        if not self.unprivileged:
            os.chown(path, *owner)


def find_group(name):
    with open("/etc/group", encoding="utf-8",
              errors="surrogateescape") as file:
        for text in file:
            fields = text.split(":")
            if fields[0] == name:
                return int(fields[2])
    raise SetupError("the node has no group %s" % name)
