# SPDX-License-Identifier: MIT
"""Waiting for the fabric: ports that come up, ports that do not, deadlines."""

import threading
import time

from helpers import IP, ucx_values

COMES = ["port mlx5_0:1.state=ACTIVE", "port mlx5_0:1.lid=0xf", "port mlx5_0:1.sm_lid=0x1",
         "netdev ib0.carrier=yes"]


def later(node, seconds, *changes):
    timer = threading.Timer(seconds, node.set, changes)
    timer.start()
    return timer


def test_a_port_that_comes_up_while_apply_waits(node):
    one = node("c05-no-sm.ini", named=True)
    timer = later(one, 1.0, *COMES)
    begin = time.monotonic()
    done = one.json("apply", "--ip", IP, "--no-selftest", "--timeout", "20", rc=0)
    took = time.monotonic() - begin
    timer.join()
    assert done.doc["ready"] is True and done.failed() == []
    assert 0.5 < took < 18, took
    assert ucx_values(one)["UCX_NET_DEVICES"] == "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"
    assert done.check("netdev.running", "ib0")["status"] == "ok"
    # each file was written once, when the ports were known
    targets = [a[1] for a in done.actions() if a[0] == "file.write"]
    assert len(targets) == len(set(targets)) == 6
    assert one.apply(rc=0).doc["actions"] == []


def test_a_port_alone_that_comes_up(node):
    """The netdev runs, another wanted port is late."""
    one = node("guide.ini", "--set", "port mlx5_3:1.state=INIT", named=True)
    timer = later(one, 1.0, "port mlx5_3:1.state=ARMED")
    timer2 = later(one, 1.6, "port mlx5_3:1.state=ACTIVE")
    done = one.json("apply", "--ip", IP, "--no-selftest", "--timeout", "20", rc=0)
    timer.join()
    timer2.join()
    assert done.doc["ready"] is True
    assert ucx_values(one)["UCX_NET_DEVICES"] == "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"


def test_carrier_that_comes_late(node):
    """The port is ACTIVE, IPoIB still joins its multicast group."""
    one = node("guide.ini", "--set", "netdev ib0.carrier=no", named=True)
    timer = later(one, 1.0, "netdev ib0.carrier=yes")
    done = one.json("apply", "--ip", IP, "--no-selftest", "--timeout", "20", rc=0)
    timer.join()
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
    """The upper bounds are wide: the machine may be busy, the default is 30 s."""
    one = node("c05-no-sm.ini")
    assert 2 <= waited(one, "--timeout", "2") < 15
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\nwait = 2\n")
    assert 2 <= waited(one) < 15
    # flags override
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\nwait = 25\n")
    assert waited(one, "--timeout", "0") < 15


def test_what_cannot_come_is_not_waited_for(node):
    """Disabled, ignored, Ethernet: no reason to hold up the boot of a node."""
    one = node("guide.ini", "--set", "port mlx5_3:1.state=DOWN",
               "--set", "port mlx5_3:1.phys_state=Disabled")
    assert waited(one, "--timeout", "30") < 15
    one = node("c37-uncabled.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\nignore = mlx5_3\n")
    assert waited(one, "--timeout", "30", rc=0) < 15
    assert waited(node("c19-twelve.ini"), "--timeout", "30", rc=0) < 15


def test_check_and_plan_do_not_wait(node):
    one = node("c05-no-sm.ini")
    begin = time.monotonic()
    one.json("plan", "--ip", IP, rc=0)
    one.json("check", "--ip", IP, rc=1)
    assert time.monotonic() - begin < 15
