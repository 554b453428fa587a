# SPDX-License-Identifier: MIT
"""The rung umad against a simulated fabric: ibsim answers the management packets and gives
the sysfs of a HCA ibsim0, opensm manages the fabric. All in a simulated node of its own."""

import glob
import json
import os
import shutil
import sys
import time

import helpers
import pytest

sys.dont_write_bytecode = True

PROGRAM = os.path.join(helpers.BUILD, "nodeprep-selftest")
OPENSM = os.path.join(helpers.BUILD, "opensm")
PRELOAD = glob.glob("/usr/lib/*/umad2sim/libumad2sim.so")

# ibsim's port options: w is the enabled width (1 is 1X, 2 is 4X, 3 both), s the speed (2 is
# DDR), e the extended one (2 is EDR). H-1 is well, H-2 came up on one lane
# of four, H-3 may use one only. (A slower speed than the enabled one is beyond ibsim with
# a subnet manager: see tests/unit.)
NET = """\
Switch 8 "S-1"
[1] "H-1"[1] e=2
[2] "H-2"[1] w=1 s=2
[3] "H-3"[1] w=1

Hca 1 "H-1"
[1] "S-1"[1] e=2

Hca 1 "H-2"
[1] "S-1"[2] w=3 s=2

Hca 1 "H-3"
[1] "S-1"[3] w=1

"""

class Fabric:
    """ibsim and, when it is wanted, opensm, on a simulated node."""

    def __init__(self, node):
        self.node = node
        self.node.write("/tmp/net", NET)
        self.node.shell("cd /tmp && mkfifo in && (sleep 600 >in 2>/dev/null &) && "
                        "(timeout 600 ibsim -s net <in >out 2>&1 &)")
        self.until("grep -q simulator.ready /tmp/out")

    def until(self, condition, seconds=300):
        end = time.monotonic() + seconds
        while self.node.shell(condition).rc != 0:
            assert time.monotonic() < end, "still not so: " + condition
            time.sleep(0.1)

    @staticmethod
    def preloaded(host, *argv):
        """Attached to the fabric at that host; the preloaded process alone is a client."""
        folders = glob.glob(OPENSM + "/usr/lib/*") + glob.glob(OPENSM + "/lib/*")
        return ["timeout", "600", "env", "-C", "/tmp", "SIM_HOST=" + host, "LD_PRELOAD=" + PRELOAD[0],
                "LD_LIBRARY_PATH=" + ":".join(folders), "OSM_CACHE_DIR=/tmp",
                "OSM_TMP_DIR=/tmp", *argv]

    def until_port(self, pattern, host="H-1"):
        self.until(" ".join(self.preloaded(host, "smpquery", "-D", "portinfo", "0", "1")) +
                   " | grep -q " + pattern)

    def command(self, text):
        """To ibsim's console."""
        self.node.shell("echo '%s' >/tmp/in" % text)

    def subnet_manager(self, host):
        program = os.path.join(OPENSM, "usr", "sbin", "opensm")
        if not os.path.exists(program):
            program = shutil.which("opensm") or "/usr/sbin/opensm"
        self.node.shell(" ".join(self.preloaded("S-1", program, "-f", "/tmp/osm.log")) +
                        " >/tmp/osm.out 2>&1 & echo $! >/tmp/osm.pid")
        self.until_port("LinkState.*Active", host)

    def umad(self, status, host="H-1", options=()):
        done = self.node.run(*self.preloaded(host, PROGRAM, "umad", "--device", "ibsim0:1",
                                             *options))
        document = json.loads(done.stdout)
        helpers.validate(document)
        entry, = document["selftest"]
        assert entry["rung"] == "umad" and entry["device"] == "ibsim0:1", done
        assert entry["status"] == status, done
        assert (entry["code"] == "") is (status == "ok")
        assert done.rc == (0 if status in ("ok", "warn") else 1)
        assert document["ready"] is (done.rc == 0)
        if status in ("ok", "warn"):
            size, = entry["sizes"]
            assert size["size_bytes"] == 256 and size["latency_us"] > 0
            assert size["bandwidth_MBps"] is None and entry["bandwidth_MBps"] is None
            assert entry["transport"] == "smp/ibsim0:1"
        return entry


@pytest.fixture
def fabric(node):
    if not PRELOAD or not shutil.which("ibsim"):
        pytest.skip("ibsim is not installed: make deps")
    if not os.path.exists(OPENSM + "/usr/sbin/opensm") and not shutil.which("opensm"):
        pytest.skip("opensm is not there: make test unpacks it")

    def start(host="H-1", sm=True):
        one = Fabric(node("c16-no-umad.ini"))
        if sm:
            one.subnet_manager(host)
        return one
    return start


def test_a_port_that_is_well(fabric):
    entry = fabric().umad("ok")
    assert "port ibsim0:1 answers management: ACTIVE, LinkUp, 4X EDR of " in entry["message"]
    assert "is MASTER" in entry["message"] and ", lid 0x" in entry["message"]


def test_full_asks_more_often(fabric):
    fabric().umad("ok", options=["--full"])


def test_no_subnet_manager(fabric):
    entry = fabric(sm=False).umad("warn")
    assert entry["code"] == "selftest.umad.not_active"
    assert "INIT, LinkUp" in entry["message"] and "no SM lid" in entry["message"]
    assert "subnet manager" in entry["hint"]


def test_link_down_and_back(fabric):
    one = fabric()
    one.umad("ok")
    one.command('Unlink "H-1"[1]')
    one.until_port("LinkState.*Down")
    entry = one.umad("warn")
    assert entry["code"] == "selftest.umad.not_active"
    assert ": DOWN, Polling, " in entry["message"] and "cable" in entry["hint"]
    one.command('ReLink "H-1"[1]')
    one.until_port("LinkState.*Active")
    one.umad("ok")


def test_a_link_below_what_is_enabled(fabric):
    entry = fabric("H-2").umad("warn", "H-2")
    assert entry["code"] == "selftest.umad.degraded"
    assert "port ibsim0:1 runs narrower than it can: ACTIVE, LinkUp, 1X DDR of 12X" in \
        entry["message"]
    assert "and 4X DDR enabled" in entry["message"] and "cable" in entry["hint"]


def test_a_link_that_is_kept_slow_on_purpose(fabric):
    entry = fabric("H-3").umad("ok", "H-3")
    assert "1X SDR of " in entry["message"] and "and 1X SDR enabled" in entry["message"]


def test_the_subnet_manager_has_died(fabric):
    one = fabric()
    one.node.shell("kill $(cat /tmp/osm.pid)")  # timeout hands it on
    entry = one.umad("warn")
    assert entry["code"] == "selftest.umad.sm_silent"
    assert "does not answer" in entry["message"]


def test_deadline(fabric):
    entry = fabric().umad("fail", options=["--timeout-ms", "1"])
    assert entry["code"] == "selftest.timeout"


# ---- without a fabric: the simulated node's umad devices can be looked at only ----

def alone(one, status, *options):
    done = one.run(PROGRAM, "umad", *options)
    document = json.loads(done.stdout)
    helpers.validate(document)
    assert done.rc == 1 and document["ready"] is False
    assert {entry["status"] for entry in document["selftest"]} == {status}, done
    return document["selftest"]


def test_no_such_port(guide):
    entry, = alone(guide, "fail", "--device", "mlx5_9:1")
    assert entry["code"] == "selftest.umad.no_device" and "mlx5_9:1" in entry["message"]


def test_ib_umad_is_not_loaded(node):
    found = alone(node("c16-no-umad.ini"), "skip")
    assert {entry["code"] for entry in found} == {"selftest.umad.no_device"}
    assert all("modprobe ib_umad" in entry["hint"] for entry in found)


def test_node_is_missing(guide):
    guide.shell("rm /dev/infiniband/umad0")
    entry, = alone(guide, "skip", "--device", "mlx5_0:1")
    assert entry["code"] == "selftest.umad.no_device"
    assert "/dev/infiniband/umad0 is missing" in entry["message"]


def test_no_driver_behind_the_node(guide):
    found = alone(guide, "skip")
    assert [entry["device"] for entry in found] == helpers.PORTS
    assert {entry["code"] for entry in found} == {"selftest.umad.open"}


def test_no_permission(guide):
    done = guide.run(PROGRAM, "umad", "--device", "mlx5_0:1", user="alice")
    entry, = json.loads(done.stdout)["selftest"]
    assert entry["status"] == "skip" and entry["code"] == "selftest.umad.permission"
    assert "run it as root" in entry["hint"]


def test_roce(node):
    found = alone(node("c17-roce.ini"), "skip", "--device", "mlx5_4:1")
    assert found[0]["code"] == "selftest.umad.not_infiniband"
