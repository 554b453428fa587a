# SPDX-License-Identifier: MIT
"""Waiting for the fabric: ports that come up, ports that do not, deadlines."""

import subprocess
import threading
import time

from helpers import ADDRESSED, IP, SIMNODE, ucx_values

# no machine is as slow as that, and none that does not wait as long takes half of it
LONG = ["--timeout", "600"]
NOT_SO_LONG = 300

COMES = ["port mlx5_0:1.state=ACTIVE", "port mlx5_0:1.lid=0xf", "port mlx5_0:1.sm_lid=0x1",
         "netdev ib0.carrier=yes"]


def later(node, *steps):
    """The steps one after the other, from when the address is set: from then on apply waits."""
    def play():
        subprocess.run([SIMNODE, "exec", node.name, "--", "sh", "-c",
                        "until %s; do sleep 0.02; done" % ADDRESSED], check=True, timeout=NOT_SO_LONG)
        for changes in steps:
            time.sleep(0.7)  # it looks what there is in the meantime
            node.set(*changes)
    thread = threading.Thread(target=play)
    thread.start()
    return thread


def test_a_port_that_comes_up_while_apply_waits(node):
    one = node("c05-no-sm.ini", named=True)
    steps = later(one, COMES)
    begin = time.monotonic()
    done = one.json("apply", "--ip", IP, "--no-selftest", *LONG, rc=0)
    took = time.monotonic() - begin
    steps.join()
    assert done.doc["ready"] is True and done.failed() == []
    assert 0.5 < took < NOT_SO_LONG, took
    assert ucx_values(one)["UCX_NET_DEVICES"] == "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"
    assert done.check("netdev.running", "ib0")["status"] == "ok"
    # each file was written once, when the ports were known
    targets = [a[1] for a in done.actions() if a[0] == "file.write"]
    assert len(targets) == len(set(targets)) == 6
    assert one.apply(rc=0).doc["actions"] == []


def test_a_port_alone_that_comes_up(node):
    """The netdev runs, another wanted port is late."""
    one = node("guide.ini", "--set", "port mlx5_3:1.state=INIT", named=True)
    steps = later(one, ["port mlx5_3:1.state=ARMED"], ["port mlx5_3:1.state=ACTIVE"])
    done = one.json("apply", "--ip", IP, "--no-selftest", *LONG, rc=0)
    steps.join()
    assert done.doc["ready"] is True
    assert ucx_values(one)["UCX_NET_DEVICES"] == "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"


def test_carrier_that_comes_late(node):
    """The port is ACTIVE, IPoIB still joins its multicast group."""
    one = node("guide.ini", "--set", "netdev ib0.carrier=no", named=True)
    steps = later(one, ["netdev ib0.carrier=yes"])
    done = one.json("apply", "--ip", IP, "--no-selftest", *LONG, rc=0)
    steps.join()
    assert done.doc["ready"] is True and done.check("netdev.running", "ib0")


def test_carrier_that_never_comes(node):
    one = node("guide.ini", "--set", "netdev ib0.carrier=no")
    done = one.json("apply", "--ip", IP, "--no-selftest", "--timeout", "1", rc=1)
    assert done.failed() == [("netdev.no_carrier", "ib0")]
    assert done.checks(code="netdev.no_carrier")[0]["hint"]
    assert one.ipv4() == [IP]


def waited(node, *argv, rc=1):
    begin = time.monotonic()
    node.json("apply", "--ip", IP, "--no-selftest", *argv, rc=rc)
    return time.monotonic() - begin


def test_the_deadline_is_kept(node):
    """Not shorter; and not as long as another one that is set, or the default of 30 s."""
    one = node("c05-no-sm.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\nwait = 600\n")
    assert 2 <= waited(one, "--timeout", "2") < NOT_SO_LONG
    # flags override
    assert waited(one, "--timeout", "0") < NOT_SO_LONG
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\nwait = 2\n")
    assert 2 <= waited(one) < 30


def test_what_cannot_come_is_not_waited_for(node):
    """Disabled, ignored, Ethernet: no reason to hold up the boot of a node."""
    one = node("guide.ini", "--set", "port mlx5_3:1.state=DOWN",
               "--set", "port mlx5_3:1.phys_state=Disabled")
    assert waited(one, *LONG) < NOT_SO_LONG
    one = node("c37-uncabled.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\nignore = mlx5_3\n")
    assert waited(one, *LONG, rc=0) < NOT_SO_LONG
    assert waited(node("c19-twelve.ini"), *LONG, rc=0) < NOT_SO_LONG


def test_check_and_plan_do_not_wait(node):
    one = node("c05-no-sm.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\nwait = 600\n")
    begin = time.monotonic()
    one.json("plan", "--ip", IP, rc=0)
    one.json("check", "--ip", IP, rc=1)
    assert time.monotonic() - begin < NOT_SO_LONG
