# SPDX-License-Identifier: MIT
"""C40: what a running job uses is not changed under it: TCP connections, LNET, GPU memory.
Queue pairs need a kernel with RDMA: tests/vm/scenarios/in-use.sh."""

import pytest
from helpers import IP, PLAIN, PYTHON, QUICK

UP = ["--set", "netdev ib0.up=yes", "--set", "netdev ib0.addresses=10.0.0.50/16"]
RIGHT = ["--set", "netdev ib0.up=yes", "--set", "netdev ib0.addresses=" + IP]

OURS = ["/run/nodeprep", "/var/lib/nodeprep"]

# One process has both ends, over ib0's address; its name is anybody's.
HOLD = """
import os, socket, sys, time
open("/proc/self/comm", "w").write(sys.argv[2])
family = socket.AF_INET6 if sys.argv[3] == "6" else socket.AF_INET
server = socket.socket(family)
server.bind(("::" if family == socket.AF_INET6 else sys.argv[1], 0))
server.listen()
client = socket.socket()
client.connect((sys.argv[1], server.getsockname()[1]))
served, _ = server.accept()
open("/tmp/held", "w").write(str(os.getpid()))
time.sleep(600)
"""


def hold(one, address="10.0.0.50", name="solver", family="4"):
    one.run("rm", "-f", "/tmp/held")
    held = one.spawn(PYTHON, "-c", HOLD, address, name, family)
    one.until("test -s /tmp/held")
    return held


def apply(one, *argv, rc=0):
    return one.json("apply", "--ip", IP, *QUICK, *argv, rc=rc)


@pytest.mark.parametrize("family", ["4", "6"])
def test_c40_a_connection_keeps_the_address(node, family):
    """An IPv6 socket that talks IPv4 counts as well."""
    one = node("guide.ini", *UP)
    before = one.state(but=OURS)
    held = hold(one, family=family)
    done = apply(one, rc=3)
    assert done.error["code"] == "netdev.in_use"
    pid = one.read("/tmp/held").decode()
    assert "process %s (solver)" % pid in done.error["message"], done.error
    assert "from 10.0.0.50 port" in done.error["message"]
    assert "--force" in done.error["hint"] and "netdev.address_del" in done.error["message"]
    assert one.state(but=OURS) == before and done.doc["changed"] is False
    # and plan says the same beforehand
    assert one.json("plan", "--ip", IP, rc=3).error == done.error

    forced = apply(one, "--force")
    warning = forced.check("netdev.in_use", "ib0")
    assert warning["status"] == "warn" and "(solver)" in warning["message"]
    assert len(forced.checks(code="netdev.in_use")) == 1
    assert one.ipv4() == [IP]
    # nothing to do: always allowed, and nothing is said
    again = apply(one)
    assert again.doc["actions"] == [] and not again.checks(code="netdev.in_use")
    one.kill(held)


def test_what_cuts_nothing_is_allowed(node):
    """Another address is added, files are written."""
    one = node("guide.ini", *RIGHT)
    held = hold(one)
    done = one.json("apply", "--ip", IP, "--ip", "10.1.0.50/24", *QUICK, rc=0)
    assert sorted(one.ipv4()) == [IP, "10.1.0.50/24"] and not done.checks(code="netdev.in_use")
    one.kill(held)


def test_an_address_of_others_does_not_count(node):
    """The connection runs over eth0."""
    one = node("guide.ini", *UP)
    one.text("ip", "addr", "add", "192.168.7.7/24", "dev", "eth0")
    held = hold(one, "192.168.7.7")
    apply(one)
    assert one.ipv4() == [IP]
    one.kill(held)


def test_a_change_of_mtu_is_one_of_all_that_runs_over_it(node):
    """Over an address that is not ours, too. When the job has ended it is done."""
    one = node("guide.ini", "--set", "netdev ib0.up=yes", "--set",
               "netdev ib0.addresses=%s, 10.7.0.1/24" % IP)
    one.write("/etc/nodeprep/nodeprep.conf",
              ("[netdev ib0]\naddress = %s\nmtu = 1500\n" % IP).encode())
    held = hold(one, "10.7.0.1")
    done = one.json("apply", *QUICK, rc=3)
    assert done.error["code"] == "netdev.in_use" and "10.7.0.1" in done.error["message"]
    assert "netdev.mtu" in done.error["message"]
    assert one.links()["ib0"]["mtu"] != 1500
    one.kill(held)
    one.wait(held)
    one.json("apply", *QUICK, rc=0)
    assert one.links()["ib0"]["mtu"] == 1500


@pytest.mark.parametrize("name, shown", [
    ("a\nb", "a\\x0ab"), ("\x1b[31mred", "\\x1b[31mred"), (") (root", ") (root"),
])
def test_names_of_processes_are_cleaned(node, name, shown):
    one = node("guide.ini", *UP)
    held = hold(one, name=name)
    done = apply(one, rc=3)
    assert "(%s)" % shown in done.error["message"], done.error
    text = one.nodeprep("apply", "--ip", IP, *QUICK)
    assert text.rc == 3 and "\x1b" not in text.stderr + text.stdout and "a\nb" not in text.stderr + text.stdout
    one.kill(held)


# ---- LNET ----

NIS = """nid                      status alive refs peer  rtr   max    tx   min
0@lo                         up     0    2    0    0     0     0     0
%s            up    -1    1    8    0   256   256   247
"""


def lnet(one, nid):
    one.shell("mount -t tmpfs lnet /sys/kernel/debug && mkdir /sys/kernel/debug/lnet")
    one.write("/sys/kernel/debug/lnet/nis", (NIS % nid).encode())


@pytest.mark.parametrize("nid", ["10.0.0.50@o2ib", "10.0.0.50@tcp1"])
def test_c40_lnet(node, nid):
    one = node("guide.ini", *UP)
    lnet(one, nid)
    before = one.state(but=OURS)
    done = apply(one, rc=3)
    assert done.error["code"] == "netdev.in_use_by_lnet"
    assert "NID " + nid in done.error["message"] and "lustre_rmmod" in done.error["hint"]
    assert one.state(but=OURS) == before
    forced = apply(one, "--force")
    assert forced.check("netdev.in_use_by_lnet", "ib0")["status"] == "warn"
    # with the address as wanted, LNET is in nobody's way
    assert apply(one).doc["actions"] == []


def test_lnet_elsewhere(node):
    one = node("guide.ini", *UP)
    lnet(one, "192.168.1.9@tcp")
    assert not apply(one).checks(code="netdev.in_use_by_lnet")


def test_lnet_that_hides_its_nids(node):
    """Locked down: loaded, and not to be read. Unknown is not free."""
    one = node("guide.ini", *UP, "--set", "module ko2iblnd.loaded=yes")
    done = apply(one, rc=3)
    assert done.error["code"] == "netdev.in_use_by_lnet"
    assert "cannot be read" in done.error["message"]


# ---- GPU memory ----

def test_c40_the_device_node_of_a_gpu_job(node):
    """Its rights would change while somebody computes. A node that is missing is made."""
    one = node("c20-gdrdrv-no-node.ini")
    one.shell("mknod /dev/gdrdrv c 508 0; chown 1234 /dev/gdrdrv; echo >/dev/nvidia-uvm")
    held = one.spawn("sh", "-c", "exec 3</dev/nvidia-uvm; echo >/tmp/held; exec sleep 600")
    one.until("test -s /tmp/held && grep -qx sleep /proc/%d/comm" % held[1])
    done = apply(one, rc=3)
    assert done.error["code"] == "gdrcopy.in_use", done.error
    assert "process %d (sleep)" % held[1] in done.error["message"]
    assert one.text("stat", "-c", "%u", "/dev/gdrdrv").strip() == "1234"
    assert apply(one, "--force").check("gdrcopy.in_use", "gdrdrv")["status"] == "warn"
    assert one.text("stat", "-c", "%u", "/dev/gdrdrv").strip() == "0"
    one.shell("rm /dev/gdrdrv")
    done = apply(one)
    assert [a["id"] for a in done.doc["actions"]] == ["gdrdrv.node"]
    assert not done.checks(code="gdrcopy.in_use")
    one.kill(held)


@pytest.mark.parametrize("name", ["", " ", "\n"], ids=repr)
def test_a_job_without_a_name(node, name):
    """Anybody may call itself nothing: it computes all the same."""
    one = node("c20-gdrdrv-no-node.ini")
    one.shell("mknod /dev/gdrdrv c 508 0; chown 1234 /dev/gdrdrv; echo >/dev/nvidia-uvm")
    held = one.spawn(PYTHON, "-c", """
import ctypes, sys, time
device = open("/dev/nvidia-uvm")
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
open("/tmp/held", "w").write("x")
time.sleep(600)
""", name)
    one.until("test -s /tmp/held")
    assert one.read("/proc/%d/comm" % held[1]).decode() == name + "\n"
    done = apply(one, rc=3)
    assert done.error["code"] == "gdrcopy.in_use", done.error
    assert "process %d" % held[1] in done.error["message"]
    one.kill(held)


def test_a_run_with_nothing_to_do_does_not_look(node):
    """It stays as cheap as it is: no socket for it, no look at other processes' descriptors."""
    one = node("guide.ini", *UP)
    looks = {}
    for name in ("changes", "again"):
        done = one.run("strace", "-f", "-o", "/tmp/calls", "-e", "trace=socket,openat", PLAIN,
                       "apply", "--ip", IP, *QUICK)
        assert done.rc == 0, done
        calls = one.read("/tmp/calls").decode()
        # one look at the mounts is for the home: of what kind its file system is
        others = {"DIAG": 0, "NETLINK_RDMA": 0, "/proc/self/mountinfo": 1}
        looks[name] = [word for word, n in others.items() if calls.count(word) > n]
    assert looks == {"changes": ["DIAG", "NETLINK_RDMA", "/proc/self/mountinfo"], "again": []}
