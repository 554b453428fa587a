# SPDX-License-Identifier: MIT
"""The RPM packages: built twice, judged by rpmlint, and installed, upgraded, erased and
interrupted in a root that rpm alone makes. Its libraries are those of this machine, in
packages whose Provides RPM finds by itself, as it finds what ours require."""

import glob
import os
import re
import shutil
import subprocess

import pytest

from helpers import ROOT
from helpers_packages import (VENDORS, Space, build_twice, digests, elf_needs, must, need_tools,
                              opened_libraries, version)

SPEC = os.path.join(ROOT, "packaging/rpm/nodeprep.spec")
CONF = "/etc/nodeprep/nodeprep.conf"
HOOK = "/usr/libexec/nodeprep/post-install"
RECORD = "/var/lib/nodeprep/record.json"
ARCH = os.uname().machine
# the agent's, less those that each program has; what UCX loads by itself is the self-test's
AGENT_LIBS = ["libnl-3.so.200", "libjansson.so.4", "libinih.so.1", "libkmod.so.2", "libibumad.so.3"]
SELFTEST_LIBS = ["libucp.so.0", "libibverbs.so.1", "libpmix.so.2"]
# what the specs of glibc and of the tools say, which busybox is here
SYSTEM = ["rtld(GNU_HASH)", "coreutils", "gawk", "grep", "/bin/bash"]
SYSTEMCTL = '#!/bin/sh\necho "systemctl $*" >>/asked\n'


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    need_tools("rpmbuild", "rpm", "xz")
    return build_twice("rpm", tmp_path_factory.mktemp("rpm"))


def package(folder, name):
    found = glob.glob(os.path.join(folder, "%s-%s-*.%s.rpm" % (name, version(), ARCH)))
    assert len(found) == 1, found
    return found[0]


def query(path, *what):
    return must(["rpm", "-qp", *what, path])


def requires(path):
    return set(query(path, "--requires").splitlines())


# ---- packages for the root ----
def ldd(path):
    """All that a program or library loads, by path: soname to file."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", must(["ldd", path]), re.M))


def rpm_of(where, name, files, extra=""):
    """An RPM of files: path in it to the file here, or to (text, mode)."""
    top = where / name
    tree = top / "tree"
    for path, source in files.items():
        (tree / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(source, tuple):
            (tree / path[1:]).write_text(source[0])
            (tree / path[1:]).chmod(source[1])
        else:
            shutil.copy(os.path.realpath(source), tree / path[1:])
            (tree / path[1:]).chmod(0o755)
    spec = top / "it.spec"
    spec.write_text("Name: %s\nVersion: 1\nRelease: 1\nSummary: of a test\nLicense: MIT\n%s\n"
                    "AutoReq: no\n%%description\nOf a test.\n%%install\ncp -a %s/. %%{buildroot}/\n"
                    "%%files\n%s\n" % (name, extra, tree, "\n".join(sorted(files))))
    must(["rpmbuild", "-bb", "--define", "_topdir %s/top" % top, "--define", "debug_package %{nil}",
          "--define", "__os_install_post %{nil}", "--define", "_binary_payload w0.gzdio",
          "--define", "_build_id_links none", spec])
    return glob.glob(str(top / "top/RPMS/*/*.rpm"))[0]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Packages of a node: the system, and the libraries that each of our two asks for."""
    need_tools("rpmbuild", "rpm", "busybox", "unshare", "nsenter")
    where = tmp_path_factory.mktemp("world")
    # of this machine's own kind: the first of each name
    known = {}
    for name, path in re.findall(r"^\s*(\S+) \(.*\) => (\S+)$", must(["ldconfig", "-p"]), re.M):
        known.setdefault(name, path)
    must_have = [*AGENT_LIBS, *SELFTEST_LIBS]
    assert all(name in known for name in must_have), "make deps"
    libc = {name: known[name] for name in ("libc.so.6", "libm.so.6", "libresolv.so.2")}
    loader = re.search(r"(/lib\S*/ld-linux\S+)", must(["ldd", "/bin/true"])).group(1)
    sets = {"agent": {}, "selftest": {}}
    for kind, names in (("agent", AGENT_LIBS), ("selftest", SELFTEST_LIBS)):
        for name in names:
            sets[kind].update({**ldd(known[name]), name: known[name]})
    sets["agent"] = {n: p for n, p in sets["agent"].items() if n not in libc}
    sets["selftest"] = {n: p for n, p in sets["selftest"].items()
                        if n not in libc and n not in sets["agent"]}
    applets = {"/bin/" + name: ('#!/bin/sh\nexec /bin/busybox %s "$@"\n' % name, 0o755)
               for name in ("cat", "chmod", "find", "grep", "ls", "mkdir", "tail")}
    applets["/usr/bin/env"] = ('#!/bin/sh\nexec /bin/busybox env "$@"\n', 0o755)
    system = {"/bin/sh": shutil.which("busybox"), "/bin/busybox": shutil.which("busybox"),
              **applets, loader: loader,
              "/usr/bin/systemctl": (SYSTEMCTL, 0o755), **at_place(libc)}
    return {
        "system": rpm_of(where, "system", system, "\n".join("Provides: " + name for name in SYSTEM)),
        "agent-libs": rpm_of(where, "agent-libs", at_place(sets["agent"])),
        "selftest-libs": rpm_of(where, "selftest-libs", at_place(sets["selftest"])),
    }


def at_place(names):
    """A library goes where the loader of this machine looks."""
    return {os.path.join(os.path.dirname(path), name): path for name, path in names.items()}


class Rpm:
    """A root that RPM makes, with the system in it."""

    def __init__(self, world, tmp_path):
        lower = tmp_path / "lower"
        lower.mkdir()
        self.space = Space(lower)
        self.rpm("--initdb")
        self.rpm("-i", world["system"])

    def rpm(self, *argv, ok=True):
        done = self.space.outside("rpm", "--root", "ROOT", *argv)
        assert not ok or done.returncode == 0, (argv, done.stdout)
        return done

    def asked(self):
        return self.space.run("cat /asked; : >/asked").stdout.splitlines()


@pytest.fixture
def root(world, tmp_path):
    one = Rpm(world, tmp_path)
    yield one
    one.space.close()


@pytest.fixture(scope="module")
def old(built, tmp_path_factory):
    """The package as an older version, of the programs that are built already."""
    top = tmp_path_factory.mktemp("old")
    must(["sh", "-c", 'rpm2cpio "$1" | cpio -idm --quiet', "sh", package(built[0], "nodeprep")],
         cwd=top)
    must(["sh", "-c", 'rpm2cpio "$1" | cpio -idm --quiet', "sh",
          package(built[0], "nodeprep-selftest")], cwd=top)
    with open(SPEC, encoding="utf-8") as file:
        spec = file.read()
    for before, after in (
            ("Version:        " + version(), "Version: 0.0.9"),
            ("Source0:        %{name}-%{version}.tar.xz", "Source0: nodeprep-%s.tar.xz" % version()),
            ("%autosetup\n", "%%autosetup -n nodeprep-%s\necho '# older' >>etc/nodeprep.conf\n" % version()),
            ("%make_build\n", "mkdir -p build/completion && cd @/usr && cp sbin/nodeprep bin/nodeprep-ranks "
             "libexec/nodeprep/nodeprep-* $OLDPWD/build/ && cp share/zsh/site-functions/_nodeprep "
             "share/fish/vendor_completions.d/nodeprep.fish $OLDPWD/build/completion/ && cp share/bash-completion/"
             "completions/nodeprep $OLDPWD/build/completion/nodeprep.bash && cd -\n".replace("@", str(top)))):
        assert spec.count(before) == 1, before
        spec = spec.replace(before, after)
    (top / "old.spec").write_text(spec)
    must(["rpmbuild", "-bb", "--nodeps", "--define", "_topdir %s/top" % top, "--define",
          "_sourcedir %s" % built[0], "--define", "debug_package %{nil}", top / "old.spec"])
    return glob.glob(str(top / "top/RPMS/*/nodeprep-0.0.9-*.rpm"))[0]


# ---- what is in them ----
def test_built_twice_the_same_bytes(built):
    one, two = (digests(folder, "*.rpm", "*.tar.xz") for folder in built)
    assert len([name for name in one if name.endswith(".rpm")]) == 3, sorted(one)
    assert one == two


def test_rpmlint(built):
    need_tools("rpmlint")
    done = subprocess.run(["rpmlint", "-c", os.path.join(ROOT, "packaging/rpm/rpmlint.toml"),
                           *glob.glob(str(built[0] / "*.rpm"))], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, timeout=300)
    assert " 3 packages and 0 specfiles checked; 0 errors, 0 warnings" in done.stdout, done.stdout
    # what the filter for rpmlint's own fault would hide
    for name in ("nodeprep", "nodeprep-selftest"):
        files = query(package(built[0], name), "-l").splitlines()
        programs = [path for path in files if re.match(r"/usr/s?bin/\w", path)]
        assert programs
        for path in programs:
            assert any(re.fullmatch("/usr/share/man/man[18]/%s.[18].gz" % os.path.basename(path), f)
                       for f in files), "no page of " + path


def test_owner_and_mode_of_each_file(built):
    """root's, written by nobody else, no program of another's rights; each folder of ours is owned."""
    for name in ("nodeprep", "nodeprep-selftest"):
        rows = query(package(built[0], name), "--qf", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILENAMES}\\n]")
        found = {path: (mode, user, group) for mode, user, group, path in map(str.split, rows.splitlines())}
        assert found
        for path, (mode, user, group) in found.items():
            assert (user, group) == ("root", "root") and mode[0] in "-dl", (path, mode)
            assert mode[0] == "l" or mode[1:] in ("rwxr-xr-x", "rw-r--r--"), (path, mode)
        if name == "nodeprep":
            folders = {path for path, (mode, _, _) in found.items() if mode[0] == "d"}
            assert {folder for path in found if "/nodeprep/" in path for folder in [os.path.dirname(path)]} <= folders


def test_what_they_require(built, tmp_path):
    agent = requires(package(built[0], "nodeprep"))
    selftest = requires(package(built[0], "nodeprep-selftest"))
    opened = opened_libraries()
    # by hand, for RPM sees only what is linked
    for name in opened["agent"] - VENDORS:
        assert any(line.startswith(name + "(") for line in agent), name
    for name in opened["selftest"] - VENDORS:
        assert any(line.startswith(name + "(") for line in selftest | agent), name
    both = agent | selftest
    assert not [line for line in both if re.search("cuda|nccl|gdr|nvidia", line)]
    assert not [line for line in agent if re.match("libuc|libibverbs", line)]
    assert any(re.match(r"nodeprep\(\S+\) = %s-1" % re.escape(version()), line) for line in selftest)
    # of the scripts, none of which RPM reads; and who reads the presets is there before
    assert {"coreutils", "gawk", "grep"} <= agent
    order = query(package(built[0], "nodeprep"), "--qf", "[%{ORDERNAME} %{ORDERFLAGS:deptype}\n]")
    assert "systemd post" in order.splitlines(), order
    # each library that the program is linked with
    for name, path, lines in (("nodeprep", "usr/sbin/nodeprep", agent),
                              ("nodeprep-selftest", "usr/libexec/nodeprep/nodeprep-selftest", selftest)):
        must(["sh", "-c", 'rpm2cpio "$1" | cpio -idm --quiet', "sh", package(built[0], name)],
             cwd=tmp_path)
        for soname in elf_needs(tmp_path / path):
            assert any(line.startswith(soname + "(") for line in lines), soname


def test_a_spec_of_another_version_is_refused(tmp_path):
    need_tools("rpmbuild")
    done = subprocess.run([os.path.join(ROOT, "packaging/make-rpm"), tmp_path, "9.9"], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 1
    assert "is about %s, the Makefile about 9.9" % version() in done.stderr


# ---- installed ----
def loads(root, program):
    """The loader finds every library of a program."""
    loader = root.space.ok("ls /lib*/ld-linux-*").split()[0]
    root.space.ok("%s --list %s" % (loader, program))


def test_what_is_declared_is_enough(built, world, root):
    nodeprep, selftest = (package(built[0], name) for name in ("nodeprep", "nodeprep-selftest"))
    done = root.rpm("-i", nodeprep, ok=False)
    assert done.returncode != 0
    for name in AGENT_LIBS:
        assert name + "(" in done.stdout, done.stdout
    assert "libuc" not in done.stdout
    root.rpm("-i", world["agent-libs"], nodeprep)
    loads(root, "/usr/sbin/nodeprep")
    assert root.space.ok("nodeprep --version").split() == ["nodeprep", version()]
    root.space.ok("nodeprep show")
    assert "port.none" in root.space.ok("nodeprep plan")

    done = root.rpm("-i", selftest, ok=False)
    assert done.returncode != 0
    for name in SELFTEST_LIBS:
        assert name + "(" in done.stdout, done.stdout
    root.rpm("-i", world["selftest-libs"], selftest)
    loads(root, "/usr/libexec/nodeprep/nodeprep-selftest")
    assert root.rpm("-V", "nodeprep", "nodeprep-selftest").stdout == ""


def test_owner_of_each_file(built, world, root):
    root.rpm("-i", world["agent-libs"], package(built[0], "nodeprep"))
    found = root.space.ok("find / -xdev -path /proc -prune -o -path /sys -prune -o -path '*nodeprep*' "
                          "-print | grep -v rpm/").split()
    assert CONF in found and "/usr/libexec/nodeprep" in found
    for path in found:
        assert re.match("nodeprep-%s-1" % re.escape(version()), root.rpm("-qf", path).stdout), path


def test_presets_rule_and_nothing_is_started(built, world, root, old):
    root.rpm("-i", world["agent-libs"], old)
    assert root.asked() == ["systemctl --no-reload preset nodeprep.service nodeprep-dask-scheduler.service"]
    root.space.ok("mkdir -p /run/systemd/system")
    root.rpm("-U", package(built[0], "nodeprep"))
    assert root.asked() == ["systemctl daemon-reload"]
    root.rpm("-e", "nodeprep")
    assert root.asked() == ["systemctl --no-reload disable nodeprep.service nodeprep-dask-scheduler.service",
                            "systemctl daemon-reload"]


def test_upgrade(built, world, root, old):
    root.rpm("-i", world["agent-libs"], old)
    root.space.write(RECORD, "{}")
    assert root.space.ok("tail -n 1 " + CONF) == "# older\n"
    root.rpm("-U", package(built[0], "nodeprep"))
    assert root.rpm("-q", "nodeprep").stdout.startswith("nodeprep-%s-1" % version())
    assert root.space.ok("tail -n 1 " + CONF) != "# older\n"
    assert root.space.exists(RECORD)
    assert root.rpm("-V", "nodeprep").stdout == ""


def test_upgrade_keeps_what_the_admin_wrote(built, world, root, old):
    root.rpm("-i", world["agent-libs"], old)
    mine = "[netdev ib0]\naddress = 10.0.0.50/24\n"
    root.space.write(CONF, mine)
    root.rpm("-U", package(built[0], "nodeprep"))
    assert root.space.ok("cat " + CONF) == mine
    assert root.space.exists(CONF + ".rpmnew")


def test_erase_and_again(built, world, root):
    nodeprep = package(built[0], "nodeprep")
    root.rpm("-i", world["agent-libs"], nodeprep)
    root.space.write(RECORD, "{}")
    root.space.write("/etc/profile.d/nodeprep-ucx.sh", "# of apply\n")
    root.rpm("-e", "nodeprep")
    for path in ("/usr/sbin/nodeprep", "/usr/libexec/nodeprep", "/usr/share/nodeprep",
                 "/usr/lib/systemd/system/nodeprep.service", "/etc/nodeprep"):
        assert not root.space.exists(path), path
    assert root.space.exists(RECORD) and root.space.exists("/etc/profile.d/nodeprep-ucx.sh")
    root.rpm("-i", nodeprep)
    assert root.rpm("-V", "nodeprep").stdout == ""
    root.space.ok("nodeprep --version")
    # what it requires cannot go
    assert root.rpm("-e", "agent-libs", ok=False).returncode != 0


def test_install_interrupted(built, world, root):
    """rpm is killed while the scripts run; the same package again mends it."""
    nodeprep = package(built[0], "nodeprep")
    root.rpm("-i", world["agent-libs"])
    root.space.write("/usr/bin/systemctl", "#!/bin/sh\n: >/ran\nkill -KILL $(cat /rpm.pid)\n", "0755")
    done = root.space.outside("sh", "-c", 'echo $$ >"$1/rpm.pid"; exec rpm --root "$1" -i "$2"', "sh",
                              "ROOT", nodeprep)
    assert root.space.exists("/ran") and done.returncode != 0, done.stdout
    root.space.write("/usr/bin/systemctl", SYSTEMCTL, "0755")
    root.rpm("-U", "--replacepkgs", nodeprep)
    assert root.rpm("-q", "nodeprep").stdout.count("nodeprep-") == 1
    assert root.rpm("-V", "nodeprep").stdout == ""
    root.space.ok("nodeprep --version")


def test_the_hook_runs_last_and_its_failure_is_its_own(built, world, root):
    """One of the test's own, in the place of the package's."""
    nodeprep = package(built[0], "nodeprep")
    hook = "#!/bin/sh\n[ -s /asked ] && /usr/sbin/nodeprep --version >/hooked\nexit 1\n"
    root.space.write(HOOK, hook, "0755")
    root.rpm("-i", "--excludepath", HOOK, world["agent-libs"], nodeprep)
    assert root.space.ok("cat /hooked").split() == ["nodeprep", version()]
    assert root.rpm("-q", "nodeprep").stdout.startswith("nodeprep-%s-1" % version())
