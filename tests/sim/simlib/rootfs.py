# SPDX-License-Identifier: MIT
"""The node's own /etc, /var, /run, /root, /home and /tmp."""

import glob
import os
from zlib import crc32

from . import kernel
from .errors import SetupError, warn
from .sysfs import make_dirs, remove_tree, write_file

# What another nodeprep, a vendor or the site may have left on the host.
FOREIGN = (
    "/etc/nccl.conf", "/etc/nodeprep", "/etc/profile.d/nodeprep*",
    "/etc/modules-load.d/nodeprep*", "/etc/modprobe.d/nodeprep*",
    "/etc/security/limits.d/nodeprep*", "/etc/dask", "/etc/ucx",
    "/etc/udev/rules.d/*nodeprep*", "/etc/systemd/system/nodeprep*",
    "/etc/systemd/network/*", "/etc/netplan", "/etc/network/interfaces.d/*",
    "/etc/NetworkManager/system-connections/*",
    "/etc/NetworkManager/conf.d/*", "/etc/cloud", "/etc/infiniband",
    "/etc/slurm*", "/etc/subuid", "/etc/subgid", "/etc/ssh/ssh_host_*",
    "/var/lib/nodeprep", "/var/log/nodeprep*", "/var/lib/NetworkManager/*",
    "/var/lib/cloud", "/var/cache/nodeprep", "/var/spool/cron/*",
)
HOMES = range(1000, 60000)
# Folders of /etc that an unprivileged node shows read-only: large, and none
# of a node's business.
BOUND_ETC = ("alternatives", "ssl", "fonts", "X11", "ca-certificates",
             "vim", "apt", "gnucobol", "texmf", "java", "pki", "selinux",
             "apparmor.d", "perl")


class Rootfs:
    def __init__(self, node, stage, binds, unprivileged):
        self.node = node
        self.stage = stage
        self.binds = binds
        self.unprivileged = unprivileged
        self.trees = []
        self.homes = []

    def keep(self):
        """Takes hold of the shared directories before all is covered."""
        for path in self.binds:
            try:
                self.trees.append((path, kernel.open_tree(path)))
            except OSError as error:
                raise SetupError("cannot share %s with the node: %s"
                                 % (path, error.strerror)) from error

    def build(self):
        private = self.node.section.get("private", [])
        if self.unprivileged:
            if private:
                raise SetupError(
                    "%s: [node] private: only root can lay a writable copy "
                    "over %s" % (self.node.section.where, private[0]))
            self.copy_etc()
            self.plain_var()
        else:
            for path in ["/etc", "/var"] + private:
                self.overlay(path)
        self.hide_foreign()
        for path, mode in (("/run", 0o755), ("/root", 0o700),
                           ("/home", 0o755), ("/var/tmp", 0o1777)):
            self.empty(path, mode)
        os.mkdir("/run/lock", 0o1777)
        os.chmod("/run/lock", 0o1777)
        self.identity()
        self.accounts()
        self.cover_stage()
        self.share()
        for section, uid, gid in self.homes:
            self.make_home(section, uid, gid)

    def overlay(self, path):
        base = "%s/overlay%s" % (self.stage, path.replace("/", "-"))
        for part in ("upper", "work"):
            make_dirs("%s/%s" % (base, part))
        os.chmod(base + "/upper", os.stat(path).st_mode & 0o7777)
        options = ("lowerdir=%s,upperdir=%s/upper,workdir=%s/work"
                   % (path.replace(":", "\\:"), base, base))
        try:
            kernel.mount("overlay", path, "overlay", 0, options)
        except OSError as error:
            raise SetupError("cannot lay a writable copy over %s: %s (needs "
                             "overlayfs)" % (path, error.strerror)) from error

    def copy_etc(self):
        """A copy of what the user can read; root's secrets stay behind."""
        target = self.stage + "/etc"
        os.mkdir(target)
        binds = []
        for entry in os.scandir("/etc"):
            path = target + "/" + entry.name
            try:
                if entry.is_symlink():
                    os.symlink(os.readlink(entry.path), path)
                elif entry.name.startswith(BOUND_ETC) and entry.is_dir():
                    os.mkdir(path)
                    binds.append((entry.path, path))
                elif entry.is_dir():
                    copy_readable(entry.path, path)
                elif entry.is_file():
                    copy_file(entry.path, path)
            except PermissionError:
                continue
        for source, path in binds:
            kernel.bind(source, path)
        kernel.bind(target, "/etc", recursive=True)

    def plain_var(self):
        target = self.stage + "/var"
        for name in ("cache", "lib", "local", "log", "mail", "opt", "spool",
                     "tmp"):
            make_dirs(target + "/" + name)
        os.symlink("/run", target + "/run")
        os.symlink("/run/lock", target + "/lock")
        for name in ("lib/dpkg", "lib/rpm"):
            if os.path.isdir("/var/" + name):
                make_dirs(target + "/" + name)
                kernel.bind("/var/" + name, target + "/" + name)
        kernel.bind(target, "/var", recursive=True)

    def empty(self, path, mode):
        if not os.path.isdir(path) or os.path.islink(path):
            return
        own = self.stage + "/new" + path.replace("/", "-")
        os.mkdir(own)
        os.chmod(own, mode)
        kernel.bind(own, path)

    @staticmethod
    def hide_foreign():
        for pattern in FOREIGN:
            for path in glob.glob(pattern):
                try:
                    if os.path.isdir(path) and not os.path.islink(path):
                        remove_tree(path)
                    else:
                        os.unlink(path)
                except OSError as error:
                    raise SetupError("cannot hide the host's %s: %s"
                                     % (path, error.strerror)) from error

    def identity(self):
        node = self.node
        machine_id = node.section.get("machine_id")
        if machine_id is None:
            machine_id = "%08x" % crc32(node.hostname.encode()) * 4
        short = node.hostname.split(".")[0]
        names = node.hostname + ("" if short == node.hostname
                                 else " " + short)
        hosts = ("127.0.0.1\tlocalhost\n127.0.1.1\t%s\n"
                 "::1\tlocalhost ip6-localhost ip6-loopback\n" % names)
        extra = node.ini.get("hosts")
        if extra is not None:
            hosts += "".join("%s\t%s\n" % (extra.get(name), name)
                             for name in extra.keys)
        for path, text in (
                ("/etc/machine-id", machine_id + "\n"),
                ("/etc/hostname", node.hostname + "\n"),
                ("/etc/hosts", hosts),
                # Nobody answers, and the resolver hears so at once.
                ("/etc/resolv.conf", "nameserver 127.0.0.1\n"
                 "options timeout:1 attempts:1\n")):
            replace(path, text, 0o644)

    def accounts(self):
        """passwd, group and shadow: the system's accounts, [user]'s users."""
        passwd = [f for f in read_table("/etc/passwd", 7)
                  if int(f[2]) not in HOMES]
        group = [f for f in read_table("/etc/group", 4)
                 if int(f[2]) not in HOMES]
        for fields in passwd:
            if fields[0] == "root":
                fields[5], fields[6] = "/root", "/bin/bash"
        gone = {f[0] for f in read_table("/etc/passwd", 7)} \
            - {f[0] for f in passwd}
        for fields in group:
            fields[3] = ",".join(m for m in fields[3].split(",")
                                 if m not in gone)
        for section in self.node.ini.all("user"):
            self.add_user(section, passwd, group)
        replace("/etc/passwd", join_table(passwd), 0o644)
        replace("/etc/group", join_table(group), 0o644)
        replace("/etc/shadow", "".join(
            "%s:*:19000:0:99999:7:::\n" % f[0] for f in passwd), 0o640)
        replace("/etc/gshadow", "".join(
            "%s:*::%s\n" % (f[0], f[3]) for f in group), 0o640)
        for name in ("passwd-", "group-", "shadow-", "gshadow-"):
            if os.path.lexists("/etc/" + name):
                os.unlink("/etc/" + name)

    def add_user(self, section, passwd, group):
        get, name = section.get, section.name
        uid = get("uid", 1000 + len(self.homes))
        gid = get("gid", uid)
        clash = next((f[0] for f in passwd
                      if f[2] == str(uid) and f[0] != name), None)
        if clash is not None:
            section.fail("uid %d is %s's" % (uid, clash))
        passwd[:] = [f for f in passwd if f[0] != name]
        group_name = get("group", name)
        if all(f[2] != str(gid) for f in group):
            group.append([group_name, "x", str(gid), ""])
        for other in get("groups", []):
            for fields in group:
                if fields[0] == other:
                    fields[3] = (fields[3] + "," + name).strip(",")
                    break
            else:
                section.keys["groups"].fail("the node has no group " + other)
        default = "/root" if name == "root" else "/home/" + name
        passwd.append([name, "x", str(uid), str(gid), get("gecos", ""),
                       get("home", default), get("shell", "/bin/bash")])
        self.homes.append((section, uid, gid))

    def make_home(self, section, uid, gid):
        default = "/root" if section.name == "root" \
            else "/home/" + section.name
        home = section.get("home", default)
        if not section.get("create_home", True) or os.path.isdir(home):
            return
        try:
            make_dirs(home)
            os.chmod(home, int(section.get("home_mode", "0755"), 8))
        except OSError as error:
            section.fail("cannot make %s: %s (homes live in /home, /root, "
                         "/var, /tmp or a [node] private folder)"
                         % (home, error.strerror))
        except ValueError:
            section.keys["home_mode"].fail("not an octal mode")
        if self.unprivileged:
            if uid:
                warn("%s: [user %s]: its home belongs to you: an "
                     "unprivileged node has no other user"
                     % (section.where, section.name))
            return
        os.chown(home, uid, gid)

    def cover_stage(self):
        """Puts the node's /tmp where the stage is mounted."""
        own = self.stage + "/new-tmp"
        os.mkdir(own)
        os.chmod(own, 0o1777)
        tree = kernel.open_tree(own)
        kernel.umount(self.stage, kernel.MNT_DETACH)
        kernel.move_mount(tree, "/tmp")
        os.close(tree)

    def share(self):
        """Puts the shared directories back at their paths."""
        for path, tree in self.trees:
            if not os.path.isdir(path):
                make_way(path)
            if path.startswith("/root/"):
                os.chmod("/root", 0o711)
            try:
                kernel.move_mount(tree, path)
            except OSError as error:
                raise SetupError("cannot share %s with the node: %s"
                                 % (path, error.strerror)) from error
            os.close(tree)


def make_way(path):
    try:
        os.makedirs(path)
    except OSError as error:
        raise SetupError("cannot share %s with the node: %s"
                         % (path, error.strerror)) from error


def replace(path, text, mode):
    """Writes path anew, also where the host has a symbolic link."""
    if os.path.lexists(path):
        os.unlink(path)
    write_file(path, text.encode("utf-8", "surrogateescape"), mode)


def read_table(path, size):
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            rows = [text.rstrip("\n").split(":") for text in file]
    except OSError:
        rows = [["root", "x", "0", "0", "root", "/root", "/bin/bash"][:size]]
    return [row for row in rows if len(row) == size and row[2].isdigit()]


def join_table(rows):
    return "".join(":".join(row) + "\n" for row in rows)


def copy_file(source, target):
    with open(source, "rb") as file:
        data = file.read()
        mode = os.fstat(file.fileno()).st_mode & 0o777
    write_file(target, data, mode)


def copy_readable(source, target):
    os.mkdir(target)
    try:
        entries = list(os.scandir(source))
    except PermissionError:
        return
    for entry in entries:
        path = target + "/" + entry.name
        try:
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), path)
            elif entry.is_dir():
                copy_readable(entry.path, path)
            elif entry.is_file():
                copy_file(entry.path, path)
        except PermissionError:
            continue
