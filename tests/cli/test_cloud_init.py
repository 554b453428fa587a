# SPDX-License-Identifier: MIT
"""packaging/cloud-init with Debian's own cloud-init, as it boots a simulated node from a
NoCloud seed: first boot, later boots, what it does to ib0, and what six bytes of an
InfiniBand address are worth. cloud-init is unpacked, not installed: its package would
enable services on this machine."""

import json
import os
import re
import shlex

import pytest
import yaml
from helpers import BUILD, PYTHON, ROOT
from test_completion import install

FILES = os.path.join(ROOT, "packaging", "cloud-init")
UNPACKED = os.path.join(BUILD, "cloud-init")
PACKAGES = os.path.join(UNPACKED, "usr", "lib", "python3", "dist-packages")
CLOUD_INIT = [PYTHON, os.path.join(UNPACKED, "usr", "bin", "cloud-init")]
SEED = "/var/lib/cloud/seed/nocloud/"
NETWORK = "/etc/systemd/network/"
STAGES = ("init --local", "init", "modules --mode=config", "modules --mode=final")
ADDRESSES = {"node01": "10.0.0.50/24", "node02": "10.0.0.51/24"}
# of Debian's cloud.cfg what this is about: no keys of hosts, no locales, no apt sources
MODULES = """\
cloud_init_modules: [bootcmd, write-files, set_hostname, update_hostname]
cloud_config_modules: [runcmd]
cloud_final_modules: [package-update-upgrade-install, write-files-deferred, scripts-per-boot,
  scripts-per-instance, scripts-user, final-message]
"""
OURS = ["user-data.yaml", "user-data-package.yaml"]

needs_cloud_init = pytest.mark.skipif(not os.path.exists(CLOUD_INIT[1]),
                                      reason="cloud-init is not unpacked: make test does it")
pytestmark = needs_cloud_init


def ours(name):
    with open(os.path.join(FILES, name), encoding="utf-8") as file:
        return file.read()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    where = tmp_path_factory.mktemp("install")
    install(where)
    return str(where)


class Machine:
    """A simulated node whose disk has nodeprep and cloud-init, and that boots."""

    def __init__(self, one):
        self.one = one
        one.text("cp", "-r", UNPACKED + "/etc/cloud", "/etc/")
        one.write("/etc/cloud/cloud.cfg.d/90-test.cfg", MODULES)

    def seed(self, hostname, user_data="", network=None, instance="i-1"):
        self.one.write(SEED + "meta-data", "instance-id: %s\nlocal-hostname: %s\n"
                       % (instance, hostname))
        self.one.write(SEED + "user-data", user_data)
        if network:
            self.one.write(SEED + "network-config", network)

    def cloud_init(self, *words):
        return self.one.run(*CLOUD_INIT, *words, env={"PYTHONPATH": PACKAGES}, timeout=120)

    def boot(self, stages=STAGES):
        """The stages as cloud-init's units run them; each must be through without a word of
        warning in the log. What cloud-init says of the whole."""
        # as a boot finds it
        self.one.shell("rm -rf /run/cloud-init /var/log/cloud-init*.log")
        for stage in stages:
            done = self.cloud_init(*stage.split())
            assert done.rc == 0 or "final" in stage, done
        return self.cloud_init("status", "--long")

    def log(self):
        return self.one.read("/var/log/cloud-init.log").decode()

    def output(self):
        return self.one.read("/var/log/cloud-init-output.log").decode()

    def python(self, text):
        return self.one.run(PYTHON, "-c", text, env={"PYTHONPATH": PACKAGES})

    def networks(self):
        """{file: content} of what cloud-init wrote for networkd."""
        found = self.one.tree(NETWORK)
        return {path[len(NETWORK):]: self.one.read(path).decode() for path in found
                if path.endswith(".network")}


@pytest.fixture
def machine(node, installed):
    def make(*settings, put=True):
        options = [word for setting in settings for word in ("--set", setting)]
        one = node("guide.ini", "--bind", installed, "--set", "node.private=/usr", *options)
        if put:
            one.text("cp", "-r", installed + "/usr", installed + "/etc", "/")
        return Machine(one)

    return make


# ---- the files ----

@pytest.mark.parametrize("name", OURS)
def test_the_schema(machine, name):
    """By cloud-init itself, as the first lines of the file say."""
    line, = re.findall(r"^# Check it with: cloud-init (.*)$", ours(name), re.M)
    assert line == "schema --config-file " + name
    one = machine(put=False)
    done = one.one.run(*CLOUD_INIT, *line.split(), cwd=FILES, env={"PYTHONPATH": PACKAGES})
    assert (done.rc, done.stdout) == (0, "Valid cloud-config: %s\n" % name), done
    # and it would say if something were wrong
    one.one.write("/tmp/bad.yaml", ours(name).replace("permissions:", "permission:", 1))
    done = one.cloud_init("schema", "--config-file", "/tmp/bad.yaml")
    assert done.rc == 1 and "permission" in done.stderr, done


def test_both_say_the_same():
    """The second one installs the package as well."""
    first, second = (yaml.safe_load(ours(name)) for name in OURS)
    install_line = second["runcmd"].pop(1)
    assert second["runcmd"] == first["runcmd"] and "nodeprep_*.deb" in install_line
    assert first["runcmd"][0] == "set -e"
    assert second["write_files"] == first["write_files"]


# ---- boots ----

def reboot(one):
    """What a reboot takes from a node: the state of its kernel."""
    one.text("ip", "addr", "flush", "dev", "ib0")
    one.text("ip", "link", "set", "ib0", "down")


def unit_at_boot(one):
    """The command of the unit that the first boot enabled."""
    link = one.text("readlink", "-f", "/etc/systemd/system/multi-user.target.wants/nodeprep.service")
    unit = one.read(link.strip()).decode()
    assert "ConditionPathExists=/etc/nodeprep/nodeprep.conf" in unit
    assert one.read("/etc/nodeprep/nodeprep.conf") is not None
    command, = re.findall(r"^ExecStart=(.*)$", unit, re.M)
    return one.run(*shlex.split(command))


def test_boots(machine):
    """The first one makes the node ready; the second one changes nothing; after one that
    took the state of the kernel, as all do, the unit brings it back."""
    hostname = "node02"
    this = machine()
    one = this.one
    this.seed(hostname, ours("user-data.yaml"), ours("network-config.yaml"))
    done = this.boot()
    assert "status: done" in done.stdout, (done, this.output())
    assert not re.search(r"WARN|ERROR|Traceback", this.log()), this.log()
    assert "nodeprep apply: ready" in this.output()
    assert one.ipv4() == [ADDRESSES[hostname]]
    assert one.read("/etc/nccl.conf").decode().splitlines()[-1] == "NCCL_SOCKET_IFNAME=ib0"
    # its own network configuration is about Ethernet
    assert list(this.networks()) == ["10-cloud-init-eth0.network"]
    before = one.state()

    # cloud-init again, as at each boot: it changes nothing
    done = this.boot()
    assert "status: done" in done.stdout, (done, this.output())
    assert "nodeprep apply" not in this.output()
    assert one.state() == before
    # a second run of what it ran
    again = one.run("nodeprep", "apply", "--no-selftest")
    assert again.rc == 0 and "nothing to do" in again.stdout, again
    assert one.state() == before

    reboot(one)
    assert one.ipv4() == []
    done = unit_at_boot(one)
    assert done.rc == 0, done
    # but for the record of its own runs
    own = ["/var/lib/nodeprep"]
    after = one.state(own)
    assert after["links"] == before["links"] and after["routes"] == before["routes"]
    assert after["tree"] == {path: facts for path, facts in before["tree"].items()
                             if not path.startswith(own[0])}


def test_one_file_for_the_fleet(machine):
    """The disk of a node becomes another node: with the same file it gets that one's address."""
    this = machine()
    this.seed("node01", ours("user-data.yaml"), ours("network-config.yaml"))
    assert "status: done" in this.boot().stdout
    assert this.one.ipv4() == [ADDRESSES["node01"]]
    reboot(this.one)
    this.seed("node02", ours("user-data.yaml"), ours("network-config.yaml"), instance="i-2")
    assert "status: done" in this.boot().stdout, this.output()
    assert this.one.ipv4() == [ADDRESSES["node02"]]


def test_a_failure_is_seen(machine):
    """A host that the map does not have: cloud-init itself says error."""
    this = machine()
    this.seed("node03", ours("user-data.yaml"), ours("network-config.yaml"))
    done = this.boot()
    assert "status: error" in done.stdout, done
    assert "/etc/nodeprep/map" in this.output() and "node03" in this.output()
    assert this.one.ipv4() == []
    # so does any line before it
    this.seed("node01", ours("user-data.yaml").replace("nodeprep.service]", "nonesuch.service]"), instance="i-2")
    assert "status: error" in this.boot().stdout
    assert this.one.ipv4() == []


# ---- why InfiniBand is not matched by six bytes ----

# GID 0 of the guide's mlx5_0: prefix, then the GUID
GUID = "50:6b:4b:03:00:f5:ce:9c"
SIX = "50:6b:4b:f5:ce:9c"


def ask_by_mac(this):
    return this.python("import json; from cloudinit import net; "
                       "print(json.dumps(net.get_interfaces_by_mac()))")


def by_mac(this):
    done = ask_by_mac(this)
    assert done.rc == 0, done
    return json.loads(done.stdout)


def test_the_address_of_ib0_and_its_six_bytes(machine):
    this = machine(put=False)
    address = this.one.text("cat", "/sys/class/net/ib0/address").strip()
    octets = address.split(":")
    assert len(octets) == 20 and address.endswith(GUID)
    assert ":".join(octets[12:15] + octets[17:20]) == SIX
    found = by_mac(this)
    assert found[address] == "ib0" and found[SIX] == "ib0"
    # none of its six-byte pieces is an address of its own otherwise
    assert [mac for mac, name in found.items() if name == "ib0"] == [address, SIX]


def test_the_six_bytes_are_those_of_an_ethernet_port(machine):
    """As on an adapter whose other port runs Ethernet: that one is found; or, where the kernel
    lists ib0 first, cloud-init itself breaks off."""
    this = machine("netdev eth1.type=ethernet", "netdev eth1.mac=" + SIX, put=False)
    done = ask_by_mac(this)
    if done.rc == 0:
        assert json.loads(done.stdout)[SIX] == "eth1"
    else:
        assert done.stderr.splitlines()[-1] == "KeyError: '%s'" % SIX, done


def test_two_ports_have_the_same_six_bytes(machine):
    """Their GUIDs differ in the two bytes that are left out."""
    this = machine("port mlx5_1:1.gid=fe80::506b:4b04:f5:ce9c", "netdev ib1.type=ipoib",
                   "netdev ib1.ca=mlx5_1", put=False)
    addresses = [this.one.text("cat", "/sys/class/net/%s/address" % name).strip()
                 for name in ("ib0", "ib1")]
    assert addresses[0][-23:] != addresses[1][-23:]
    found = by_mac(this)
    assert {found[address] for address in addresses} == {"ib0", "ib1"}
    # one of both is never found
    assert found[SIX] in ("ib0", "ib1") and len(found) == len(set(found)) == 5


def test_without_a_network_config_it_takes_ib0(machine):
    """DHCP on the first interface with a carrier; ours and the image's keep it off."""
    settings = ("netdev ib0.up=yes", "netdev ib0.carrier=yes", "netdev p1p1.type=ethernet")
    options = [word for setting in settings for word in ("--set", setting)]
    for ours_is, file in ((None, None), ("seed", "network-config.yaml"),
                          ("image", "99-nodeprep-network.cfg")):
        this = machine(*settings, put=False)
        # there is no eth0, which it would prefer
        this.one.text("ip", "link", "del", "eth0")
        this.seed("node01", "", ours(file) if ours_is == "seed" else None)
        if ours_is == "image":
            this.one.write("/etc/cloud/cloud.cfg.d/" + file, ours(file))
        done = this.cloud_init("init", "--local")
        assert done.rc == 0, done
        names = {"seed": ["10-cloud-init-eth0.network"], "image": []}
        assert list(this.networks()) == names.get(ours_is, ["10-cloud-init-ib0.network"]), options
        if not ours_is:
            assert "DHCP=ipv4" in this.networks()["10-cloud-init-ib0.network"]
