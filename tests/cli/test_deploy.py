# SPDX-License-Identifier: MIT
"""docs/deploy.md: every line of it is run here as it stands, on simulated nodes whose disk can be
written, or elsewhere: those of Ansible stand in packaging/ansible/README.md, whose lines
test_ansible.py runs; what wants a running systemd in tests/vm/scenarios."""

import glob
import os
import re
import subprocess

import pytest
from helpers import ROOT
from helpers_built import packages
from test_cloud_init import PACKAGES, UNPACKED, Machine, needs_cloud_init, ours
from test_completion import FLAGS, install
from test_docs import read

PAGE = read("docs", "deploy.md")
IP = "10.0.0.50/24"
UNIT = "/etc/systemd/system/multi-user.target.wants/nodeprep.service"
# what runs a line, where nothing else does
PYTHONPATH = {"PYTHONPATH": PACKAGES}


def sections():
    """{heading: its lines to paste}"""
    found = {}
    for part in re.split(r"^## ", PAGE, flags=re.M)[1:]:
        title, text = part.split("\n", 1)
        found[title] = re.findall(r"^    (\S.*)$", text, re.M)
    return found


LINES = sections()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    where = tmp_path_factory.mktemp("install")
    install(where)
    return str(where)


class Host:
    """A node whose /usr and /srv can be written, and which has a sudo."""

    def __init__(self, one):
        self.one = one
        self.program("/usr/bin/sudo", 'exec env "$@"')

    def program(self, path, script):
        self.one.shell("rm -f " + path)
        self.one.write(path, "#!/bin/sh\n%s\n" % script)
        self.one.text("chmod", "755", path)

    def booted(self):
        """As the post-install hook sees a host, which a simulated node is not."""
        self.one.write("/run/systemd/system/x", "")
        self.program("/usr/bin/systemd-detect-virt", "exit 1")
        self.one.shell("echo systemd >/tmp/comm; mount --bind /tmp/comm /proc/1/comm")
        # of the image that these tests may run in
        self.one.shell("rm -f /usr/sbin/policy-rc.d")
        return self

    def paste(self, *lines, rc=0, **env):
        """Each line as it stands, by the shell of a user in the top folder of the source tree."""
        done = None
        for line in lines:
            done = self.one.run("bash", "-c", line, cwd=ROOT, env=env, timeout=300)
            assert done.rc == rc, done
        return done

    def put(self, installed):
        self.one.text("cp", "-r", installed + "/usr", installed + "/etc", "/")
        return self


@pytest.fixture
def host(node, installed):
    def make(*options):
        return Host(node("guide.ini", "--bind", installed, "--set", "node.private=/usr, /srv", *options))

    return make


def configure(this):
    """The lines that write the configuration; the last one of the section looks at it."""
    *lines, look = LINES["One configuration for all nodes"]
    assert look == "sudo nodeprep plan" and len(lines) == 3
    this.paste(*lines)
    return look


def test_each_section_with_lines_has_a_test_here():
    told = {"One configuration for all nodes", "Debian and Ubuntu", "RPM", "Post-install hook", "Boot", "Ansible",
            "cloud-init", "Images"}
    assert {title for title, lines in LINES.items() if lines} == told
    assert "(docs/deploy.md)" in read("README.md") and "\n## Deploy\n" in read("README.md")


def test_what_the_page_names_is_there():
    for path in set(re.findall(r"`((?:packaging|tests|docs)/[\w./-]+)`", PAGE)):
        assert os.path.exists(os.path.join(ROOT, path)), path
    for name in re.findall(r"`([\w-]+\.(?:yaml|cfg))`", PAGE):
        assert os.path.exists(os.path.join(ROOT, "packaging", "cloud-init", name)), name


def test_one_configuration_for_all_nodes(host, installed):
    this = host().put(installed)
    look = configure(this)
    assert "netdev.address_add: " + IP in this.paste(look).stdout
    # and the same files on another node
    this.one.text("hostname", "node02")
    assert "netdev.address_add: 10.0.0.51/24" in this.paste(look).stdout


def test_debian(host):
    make, install_line, apply, check = LINES["Debian and Ubuntu"]
    assert make == "make deb"
    packages("deb")
    this = host().booted()
    configure(this)
    done = this.paste(install_line)
    # the hook: ready when the installation ends
    assert "nodeprep: ready: " in done.stdout + done.stderr, done
    assert this.one.ipv4() == [IP] and this.one.read(UNIT)
    before = this.one.state()
    assert "nothing to do" in this.paste(apply).stdout
    assert "nodeprep check: ready" in this.paste(check).stdout
    # an upgrade to the same
    this.paste(install_line)
    assert this.one.ipv4() == [IP] and this.one.read("/etc/nccl.conf")
    assert this.one.state()["links"] == before["links"]


def provider(tmp_path):
    """A package that says of this machine's libraries what RPM finds in them."""
    libraries = [os.path.realpath(path) for pattern in ("libc.so.6", "libm.so.6", "libnl-3.so.200", "libjansson.so.4",
                                      "libinih.so.1", "libkmod.so.2", "libibumad.so.3", "libibverbs.so.1", "libuc?.so.0", "libpmix.so.2")
                 for path in glob.glob("/usr/lib/*-linux-gnu/" + pattern)]
    found = subprocess.run(["/usr/lib/rpm/find-provides"], input="\n".join(libraries), text=True, check=True,
                           capture_output=True, timeout=60).stdout.split("\n")
    spec = tmp_path / "system.spec"
    # the first stand in the specs of bash, glibc and the tools
    spec.write_text("Name: system\nVersion: 1\nRelease: 1\nSummary: s\nLicense: MIT\nBuildArch: noarch\n"
                    "AutoReqProv: no\nProvides: /bin/sh, /bin/bash, /usr/bin/env, rtld(GNU_HASH), coreutils, gawk, grep\n%s%%description\ns\n%%files\n"
                    % "".join("Provides: %s\n" % name for name in found if name))
    subprocess.run(["rpmbuild", "-bb", "--define", "_topdir %s" % tmp_path, "--define", "_dbpath %s/db" % tmp_path,
                    str(spec)], check=True, capture_output=True, timeout=60)
    return str(tmp_path / "RPMS" / "noarch" / "system-1-1.noarch.rpm")


def test_rpm(host, tmp_path):
    make, install_line, apply = LINES["RPM"]
    assert make == "make rpm"
    packages("rpm")
    this = host("--bind", str(tmp_path)).booted()
    configure(this)
    this.one.text("rpm", "-i", provider(tmp_path))
    done = this.paste(install_line)
    assert "nodeprep: ready: " in done.stdout + done.stderr, done
    assert this.one.ipv4() == [IP]
    assert "nothing to do" in this.paste(apply).stdout
    this.one.text("rpm", "-q", "nodeprep", "nodeprep-selftest")


def test_post_install_hook(host, installed):
    line, = LINES["Post-install hook"]
    this = host().booted().put(installed)
    assert "pending: no address is configured" in this.paste(line).stderr
    configure(this)
    assert "nodeprep: ready: " in this.paste(line).stderr
    assert this.one.ipv4() == [IP]
    assert this.paste(line).stderr == "nodeprep: nothing to change\n"


def test_boot(host, installed):
    """Enabled here; started, and what it said then, on a running systemd."""
    enable, *others = LINES["Boot"]
    this = host().put(installed)
    this.paste(enable)
    assert b"ExecStart=" in this.one.read(UNIT)
    scenarios = "".join(open(path, encoding="utf-8").read()
                        for path in sorted(glob.glob(ROOT + "/tests/vm/scenarios/systemd-*.sh")))
    assert len(others) == 3
    for line in [enable, *others]:
        assert re.search(r"^\s*must 0 %s$" % re.escape(line.removeprefix("sudo ")), scenarios, re.M), line


def test_ansible():
    """Its lines are lines of the collection's README, each of which test_ansible.py runs."""
    readme = read("packaging", "ansible", "README.md")
    there = [line.split("    #")[0].strip() for line in readme.splitlines() if line.startswith("    ")]
    lines = LINES["Ansible"]
    assert len(lines) >= 3
    assert [line for line in lines if line.split("    #")[0].strip() not in there] == []
    assert "README" in read("tests", "cli", "test_ansible.py")


@needs_cloud_init
def test_cloud_init(host, installed):
    schema, folder, meta, user, network, status, tail = LINES["cloud-init"]
    this = host().put(installed)
    machine = Machine(this.one)
    this.program("/usr/bin/cloud-init", 'exec /usr/bin/python3 %s/usr/bin/cloud-init "$@"' % UNPACKED)
    assert this.paste(schema, **PYTHONPATH).stdout.startswith("Valid cloud-config")
    this.paste(folder, meta, user, network)
    assert "status: done" in machine.boot().stdout, machine.output()
    assert this.one.ipv4() == [IP] and this.one.read(UNIT)
    assert "status: done" in this.paste(status, **PYTHONPATH).stdout
    assert "nodeprep apply: ready" in this.paste(tail).stdout


@needs_cloud_init
def test_cloud_init_with_the_package(host):
    """user-data-package.yaml on a node without nodeprep: installed from a folder, and ready."""
    folder = packages("deb")
    this = host()
    this.one.shell("mkdir -p /srv/site; cp %s/nodeprep_*.deb /srv/site" % folder)
    assert this.one.run("sh", "-c", "command -v nodeprep").rc != 0
    machine = Machine(this.one)
    machine.seed("node02", ours("user-data-package.yaml"), ours("network-config.yaml"))
    done = machine.boot()
    assert "status: done" in done.stdout, (done, machine.output())
    assert this.one.ipv4() == ["10.0.0.51/24"] and this.one.read(UNIT)
    assert "nodeprep apply: ready" in machine.output()
    # a boot later nothing is installed or changed
    before = this.one.state()
    assert "status: done" in machine.boot().stdout
    assert "apt-get" not in machine.output() and this.one.state() == before


def test_images(host, installed):
    make, enable, plan, apply = LINES["Images"]
    image = "/srv/images/gpu"
    assert all(image in line for line in LINES["Images"])
    this = host().put(installed)
    one = this.one
    before = one.state()
    this.paste(make, **{name: os.environ[name] for name in FLAGS if name in os.environ})
    one.write(image + "/etc/nodeprep/conf.d/50-site.conf",
              "[netdev ib0]\naddress = hosts:%h-ib0/24\n[ports]\ndevices = mlx5_0:1\n")
    this.paste(enable)
    assert one.text("readlink", image + UNIT).strip().endswith("/lib/systemd/system/nodeprep.service")
    planned = this.paste(plan).stdout
    assert "/etc/nccl.conf" in planned and one.read(image + "/etc/nccl.conf") is None
    assert "/etc/nccl.conf" in this.paste(apply).stdout
    assert b"NCCL_SOCKET_IFNAME=ib0" in one.read(image + "/etc/nccl.conf")
    assert b"mlx5_0:1" in one.read(image + "/etc/nodeprep/ucx.env")
    assert one.state() == before
    assert "nothing to do" in this.paste(apply).stdout
