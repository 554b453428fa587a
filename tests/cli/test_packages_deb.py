# SPDX-License-Identifier: MIT
"""The Debian packages: built twice, judged by lintian, and installed, upgraded, removed,
purged and interrupted in a Debian of their own."""

import os
import re
import shutil
import subprocess

import pytest

from helpers import IP, NODEPREP, ROOT
from helpers_packages import (PATH, VENDORS, Space, build_twice, debian_root, digests, elf_needs,
                              must, need_tools, opened_libraries, version)

WANTS = "/etc/systemd/system/multi-user.target.wants/"
CONF = "/etc/nodeprep/nodeprep.conf"
HOOK = "/usr/libexec/nodeprep/post-install"
RECORD = "/var/lib/nodeprep/record.json"
PROFILE = "/etc/profile.d/nodeprep-ucx.sh"
# the tags that packaging/debian overrides, with the reason there
OVERRIDDEN = {"uses-dpkg-database-directly"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    need_tools("dh", "dpkg-buildpackage", "xz")
    return build_twice("deb", tmp_path_factory.mktemp("deb"))


def package(folder, name):
    found = [path for path in os.listdir(folder) if re.fullmatch(name + r"_[^_]+_\w+\.deb", path)]
    assert len(found) == 1, found
    return os.path.join(folder, found[0])


def field(path, name):
    return must(["dpkg-deb", "-f", path, name]).strip()


@pytest.fixture(scope="module")
def unpacked(built, tmp_path_factory):
    """Name of the package to the folder of its files."""
    where = tmp_path_factory.mktemp("unpacked")
    for name in ("nodeprep", "nodeprep-selftest"):
        must(["dpkg-deb", "-x", package(built[0], name), where / name])
    return where


@pytest.fixture(scope="module")
def base(built):
    need_tools("mmdebstrap", "unshare", "nsenter")
    packages = [package(built[0], name) for name in ("nodeprep", "nodeprep-selftest")]
    return debian_root(packages, [field(path, "Depends") for path in packages])


@pytest.fixture
def root(base, built):
    """A fresh Debian with our packages in /srv."""
    space = Space(base)
    for name in ("nodeprep", "nodeprep-selftest"):
        space.put(package(built[0], name), "/srv")
    yield space
    space.close()


def install(root, *names, option=""):
    """Whatever else it takes comes by what is declared."""
    return root.ok("apt-get -q install -y --no-install-recommends %s %s" % (
        option, " ".join("/srv/%s_*.deb" % name for name in names)))


def older(built, root, tmp_path, number="0.0.9"):
    """nodeprep as an older version with another configuration, as /srv/old.deb."""
    tree = tmp_path / "old"
    must(["dpkg-deb", "-R", package(built[0], "nodeprep"), tree])
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace("Version: " + version(), "Version: " + number))
    (tree / CONF[1:]).write_text("# of the older version\n")
    must(["dpkg-deb", "-Znone", "-b", tree, tmp_path / "old.deb"])
    root.put(tmp_path / "old.deb", "/srv")


def status(root, name="nodeprep"):
    return root.run("dpkg-query -W -f '${db:Status-Status} ${Version}' " + name).stdout


# ---- what is in them ----
def test_built_twice_the_same_bytes(built):
    one, two = (digests(folder, "*.deb", "*.dsc", "*.tar.xz") for folder in built)
    # two packages and their symbols; the source, and the tarball that it is made of
    assert len(one) == 7, sorted(one)
    assert one == two


def test_the_tree_stays_as_it_is(built):
    assert not os.path.exists(os.path.join(ROOT, "debian"))
    left = [name for folder in built for name in os.listdir(folder) if "." not in name or
            os.path.isdir(os.path.join(folder, name))]
    assert left == [], "the build left its folders"


def test_lintian(built):
    need_tools("lintian")
    changes = [name for name in os.listdir(built[0]) if name.endswith(".changes")]
    done = subprocess.run(["lintian", "-EviIL", "+pedantic", "--show-overrides", "--allow-root",
                           "--tag-display-limit", "0", "--color", "never", changes[0]],
                          cwd=built[0], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=300)
    said = done.stdout
    assert not re.findall(r"^[EW]: .*", said, re.M) and not done.stderr, (said, done.stderr)
    assert {line.split()[1] for line in re.findall(r"^O: (\S+ \S+)", said, re.M)} == OVERRIDDEN


def test_ucx_is_in_one_of_them_alone(built, unpacked):
    agent = unpacked / "nodeprep"
    assert elf_needs(agent / "usr/sbin/nodeprep") == {
        "libc.so.6", "libnl-3.so.200", "libjansson.so.4", "libinih.so.1"}
    assert not re.search("ucx|verbs", field(package(built[0], "nodeprep"), "Depends"))
    needs = elf_needs(unpacked / "nodeprep-selftest/usr/libexec/nodeprep/nodeprep-selftest")
    assert {"libucp.so.0", "libibverbs.so.1", "libibumad.so.3"} <= needs
    for name in ("nodeprep", "nodeprep-selftest"):
        wanted = " ".join(field(package(built[0], name), f) for f in ("Depends", "Recommends"))
        assert not re.search("cuda|nccl|gdr|nvidia", wanted), wanted
    assert field(package(built[0], "nodeprep"), "Recommends") == \
        "nodeprep-selftest (= %s)" % version()
    assert "nodeprep (= %s)" % version() in field(package(built[0], "nodeprep-selftest"), "Depends")


def test_files(unpacked):
    files = {str(path.relative_to(unpacked / "nodeprep"))
             for path in (unpacked / "nodeprep").rglob("*") if path.is_file()}
    assert {"usr/sbin/nodeprep", "usr/libexec/nodeprep/nodeprep-dask", CONF[1:],
            "usr/share/nodeprep/nodeprep.schema.json", "etc/csh/login.d/nodeprep-ucx",
            "usr/share/doc/nodeprep/examples/nodeprep.conf", "usr/share/doc/nodeprep/NEWS.gz",
            "usr/share/man/man8/nodeprep.8.gz", "usr/share/man/man5/nodeprep.conf.5.gz",
            "usr/share/man/man7/nodeprep-codes.7.gz"} <= files
    units = {os.path.basename(path) for path in files if "lib/systemd/system/" in path}
    assert units == set(os.listdir(os.path.join(ROOT, "etc/systemd")))
    assert (unpacked / "nodeprep/etc/nodeprep/conf.d").is_dir()


def test_csh_of_debian_gets_what_apply_writes(node):
    """Debian's csh.login reads a folder of its own."""
    if not shutil.which("tcsh"):
        pytest.skip("tcsh is not installed: make deps")
    one = node("guide.ini")
    one.shell("mkdir -p /etc/csh/login.d && cp %s/packaging/debian/login.csh "
              "/etc/csh/login.d/nodeprep-ucx" % ROOT)
    ask = "tcsh -f -c 'source /etc/csh/login.d/nodeprep-ucx; printenv UCX_TLS; echo end'"
    before = one.shell(ask)
    assert (before.stdout, before.stderr) == ("end\n", "")
    assert one.run(NODEPREP, "apply", "--ip", IP, "--no-selftest").rc == 0
    after = one.shell(ask)
    assert after.stdout.startswith("rc,") and after.stdout.endswith("\nend\n") and not after.stderr


# ---- installed ----
def test_what_is_declared_is_enough(root):
    """Without Recommends: every program finds its libraries, and those that it opens."""
    install(root, "nodeprep")
    assert status(root) == "installed " + version()
    assert root.ok("nodeprep --version").split() == ["nodeprep", version()]
    root.ok("nodeprep show")
    assert "port.none" in root.ok("nodeprep plan")
    assert root.run("dpkg-query -W libucx0 libibverbs1").returncode != 0
    opened = opened_libraries()
    assert {"libkmod.so.2", "libibumad.so.3"} <= opened["agent"]
    cache = root.ok("ldconfig -p")
    for name in opened["agent"] - VENDORS:
        assert name + " (" in cache, name
    libraries(root, "nodeprep")

    install(root, "nodeprep-selftest")
    libraries(root, "nodeprep-selftest")
    cache = root.ok("ldconfig -p")
    for name in opened["selftest"] - VENDORS:
        assert name + " (" in cache, name
    said = root.run("nodeprep selftest --json")
    assert '"selftest.not_installed"' not in said.stdout and said.returncode in (0, 1), said.stdout


def libraries(root, name):
    programs = root.ok("for f in $(dpkg -L %s); do [ -f $f ] && [ ! -L $f ] && head -c 4 $f | "
                       "grep -q ELF && echo $f; done; true" % name).split()
    assert programs
    for program in programs:
        assert "not found" not in root.ok("ldd " + program)


def test_installed_enabled_and_not_started(root):
    install(root, "nodeprep")
    assert root.exists(WANTS + "nodeprep.service")
    assert not root.exists(WANTS + "nodeprep-dask-scheduler.service")
    # nothing has run: it is apply that makes these
    for path in ("/var/lib/nodeprep", "/run/nodeprep/lock", PROFILE):
        assert not root.exists(path), path
    with open(os.path.join(ROOT, "etc/nodeprep.conf"), encoding="utf-8") as file:
        assert root.ok("cat " + CONF) == file.read()


def test_upgrade(built, root, tmp_path):
    older(built, root, tmp_path)
    root.ok("apt-get -q install -y --no-install-recommends /srv/old.deb")
    assert status(root) == "installed 0.0.9"
    # what the admin has decided, and what apply has left
    root.ok("rm %snodeprep.service" % WANTS)
    root.write(RECORD, "{}")
    root.write(PROFILE, "# of apply\n")
    install(root, "nodeprep")
    assert status(root) == "installed " + version()
    assert "[netdev ib0]" in root.ok("cat " + CONF), "an unchanged conffile is replaced"
    assert not root.exists(WANTS + "nodeprep.service"), "what was disabled stays so"
    assert root.exists(RECORD) and root.exists(PROFILE)


def test_upgrade_keeps_what_the_admin_wrote(built, root, tmp_path):
    older(built, root, tmp_path)
    root.ok("apt-get -q install -y --no-install-recommends /srv/old.deb")
    root.write(CONF, "[netdev ib0]\naddress = 10.0.0.50/24\n")
    install(root, "nodeprep", option="-o Dpkg::Options::=--force-confdef "
            "-o Dpkg::Options::=--force-confold")
    assert root.ok("cat " + CONF) == "[netdev ib0]\naddress = 10.0.0.50/24\n"
    assert root.exists(WANTS + "nodeprep.service")


def test_nothing_is_stopped_or_restarted(built, root, tmp_path):
    """A node with systemd: no unit is started, stopped or restarted by any step."""
    older(built, root, tmp_path)
    root.ok("mkdir -p /run/systemd/system")
    for name in ("/usr/bin/deb-systemd-invoke", "/usr/bin/systemctl"):
        root.ok("[ ! -e {0} ] || dpkg-divert --quiet --add --rename {0}".format(name))
        root.write(name, '#!/bin/sh\necho "${0##*/} $*" >>/asked\n', "0755")
    root.ok("apt-get -q install -y --no-install-recommends /srv/old.deb")
    install(root, "nodeprep")
    root.ok("dpkg --remove nodeprep && dpkg --purge nodeprep")
    asked = root.ok("cat /asked").splitlines()
    assert "systemctl --system daemon-reload" in asked
    # which links there are to be is no change to what runs
    assert not [line for line in asked if not re.search(r" (daemon-reload|preset nodeprep\S*)$", line)]


def test_remove_keeps_the_node_and_purge_says_what_stays(root):
    install(root, "nodeprep", "nodeprep-selftest")
    root.write(RECORD, "{}")
    root.write(PROFILE, "# of apply\n")
    root.write("/run/nodeprep/lock", "")
    root.ok("dpkg --remove nodeprep-selftest nodeprep")
    for path in ("/usr/sbin/nodeprep", "/usr/libexec/nodeprep", "/lib/systemd/system/nodeprep.service"):
        assert not root.exists(path), path
    for path in (RECORD, PROFILE, CONF):
        assert root.exists(path), "gone with remove: " + path

    install(root, "nodeprep")
    assert status(root) == "installed " + version()
    assert root.exists(RECORD) and root.exists(WANTS + "nodeprep.service")

    said = root.ok("dpkg --purge nodeprep-selftest nodeprep 2>&1")
    assert "what nodeprep apply has set up stays" in said
    for path in ("/var/lib/nodeprep", "/run/nodeprep", "/etc/nodeprep", WANTS + "nodeprep.service",
                 "/etc/csh/login.d/nodeprep-ucx", "/usr/share/doc/nodeprep",
                 "/var/lib/systemd/deb-systemd-helper-enabled/nodeprep.service.dsh-also"):
        assert not root.exists(path), "left by purge: " + path
    assert root.exists(PROFILE), "the node was changed by purge"
    assert status(root).startswith("dpkg-query: no packages")

    install(root, "nodeprep")
    assert root.exists(WANTS + "nodeprep.service") and root.exists(CONF)
    # without a record there is nothing to say
    assert "apply" not in root.ok("dpkg --purge nodeprep 2>&1")


def test_configure_interrupted(root):
    """dpkg is killed while postinst runs; the next one finishes."""
    helper = "/usr/bin/deb-systemd-helper"
    root.ok("dpkg-divert --quiet --add --rename " + helper)
    root.write(helper, "#!/bin/sh\nmv %s /ran\ncp %s.distrib %s\n"
               "kill -KILL $(cat /dpkg.pid) $PPID\nsleep 1\n" % (helper, helper, helper), "0755")
    done = root.run("apt-get -q install -y --no-install-recommends --download-only "
                    "/srv/nodeprep_*.deb; dpkg -i /var/cache/apt/archives/*.deb; "
                    "sh -c 'echo $$ >/dpkg.pid; exec dpkg -i /srv/nodeprep_*.deb'")
    assert root.exists("/ran"), "postinst never got there: " + done.stdout
    assert done.returncode == 137, done.stdout
    assert status(root) == "half-configured " + version()
    assert not root.exists(WANTS + "nodeprep.service")
    root.ok("dpkg --configure -a")
    assert status(root) == "installed " + version()
    assert root.exists(WANTS + "nodeprep.service")
    root.ok("nodeprep --version")


def test_unpacking_interrupted(root):
    """dpkg is killed while the files come; the same package again mends it."""
    install(root, "nodeprep")
    tool = "/usr/bin/dpkg-deb"
    root.ok("dpkg-divert --quiet --add --rename " + tool)
    root.write(tool, '#!/bin/sh\n[ "$1" = --fsys-tarfile ] || exec %s.distrib "$@"\n'
               '%s.distrib "$@" | head -c 200000\nkill -KILL $(cat /dpkg.pid)\n' % (tool, tool), "0755")
    done = root.run("sh -c 'echo $$ >/dpkg.pid; exec dpkg -i /srv/nodeprep_*.deb'")
    root.ok("rm %s && dpkg-divert --quiet --remove --rename %s" % (tool, tool))
    assert done.returncode == 137, done.stdout
    assert status(root) != "installed " + version()
    root.ok("dpkg -i /srv/nodeprep_*.deb")
    assert status(root) == "installed " + version()
    root.ok("nodeprep --version")


def test_the_hook_runs_when_all_is_set_up_and_its_failure_is_its_own(root):
    root.ok("dpkg-divert --quiet --add --rename " + HOOK)
    root.write(HOOK, "#!/bin/sh\n[ -L %snodeprep.service ] && /usr/sbin/nodeprep --version >/hooked\n"
               "exit 1\n" % WANTS, "0755")
    install(root, "nodeprep")
    assert status(root) == "installed " + version()
    assert root.ok("cat /hooked").split() == ["nodeprep", version()]


def test_a_changelog_of_another_version_is_refused(tmp_path):
    """The tree and its changelog, at another version than the Makefile says."""
    need_tools("dh", "dpkg-buildpackage")
    done = subprocess.run([os.path.join(ROOT, "packaging/make-deb"), tmp_path, "9.9"], text=True,
                          capture_output=True, check=False, env={"PATH": PATH})
    assert done.returncode == 1
    assert "changelog is about %s, the Makefile about 9.9" % version() in done.stderr
