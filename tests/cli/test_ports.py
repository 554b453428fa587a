# SPDX-License-Identifier: MIT
"""Ports: each told by its cause, and what becomes of it in the files (C5 to C19, C33 to C38)."""

from helpers import IP, PORTS, QUICK, ucx_values


def devices(node):
    return ucx_values(node)["UCX_NET_DEVICES"]


def shown(node):
    return {"%s:%d" % (p["ca"], p["port"]): p
            for p in node.json("show", "ports", rc=0).doc["show"]["ports"]}


def test_c5_no_subnet_manager(node):
    one = node("c05-no-sm.ini")
    done = one.json("apply", "--ip", IP, "--timeout", "0", rc=1)
    assert done.failed() == [("port.no_sm", "mlx5_0:1")]
    check = done.check("port.no_sm")
    assert check["id"] == "port" and "INIT" in check["message"] and "LinkUp" in check["message"]
    assert "subnet manager" in check["hint"] and check["hint"].startswith("start")
    assert done.check("netdev.no_carrier", "ib0")["status"] == "warn"
    assert one.ipv4() == [IP] and one.links()["ib0"]["up"]
    assert one.read("/root/.nccl.conf") == b"NCCL_SOCKET_IFNAME=ib0\n"
    assert devices(one) == "mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"
    rungs = {r["device"]: r for r in done.rungs("rc")}
    assert sorted(rungs) == PORTS
    assert rungs["mlx5_0:1"]["status"] == "skip"
    assert rungs["mlx5_0:1"]["code"] == "selftest.rc.port_not_active"
    assert {rungs[port]["code"] for port in PORTS[1:]} == {"selftest.below_broken"}
    verbs = {r["device"]: r["status"] for r in done.rungs("verbs")}
    assert verbs["mlx5_0:1"] == "skip" and verbs["mlx5_1:1"] == "fail"
    # told again, it has nothing to do and is still not ready
    again = one.apply(rc=1)
    assert again.doc["actions"] == [] and again.doc["changed"] is False
    assert one.json("check", "--ip", IP, rc=1).failed() == done.failed()


def test_c10_device_without_a_port(node):
    one = node("guide.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\ndevices = mlx5_0, mlx5_2:1\n")
    done = one.apply(rc=0)
    assert [c["target"] for c in done.checks(code="port.active")] == ["mlx5_0:1", "mlx5_2:1"]
    assert [c["target"] for c in done.checks(code="port.not_listed", status="skip")] == [
        "mlx5_1:1", "mlx5_3:1"]
    assert devices(one) == "mlx5_0:1,mlx5_2:1,ib0"
    assert b"mlx5_0:1" in one.read("/etc/nccl.conf")


def test_a_listed_device_that_is_not_there(node):
    one = node("guide.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\ndevices = mlx5_0:1, mlx5_7\n")
    done = one.apply(rc=1)
    assert done.failed() == [("port.missing", "mlx5_7")]
    assert devices(one) == "mlx5_0:1,ib0"


def test_c11_each_with_its_own_cause(node):
    one = node("c11-two-causes.ini")
    done = one.apply(rc=1)
    assert done.failed() == [("port.down", "mlx5_0:1"), ("port.no_sm", "mlx5_1:1")]
    assert "Polling" in done.check("port.down")["message"]
    assert "cable" in done.check("port.down")["hint"]
    assert devices(one) == "mlx5_2:1,mlx5_3:1,ib0"


def test_c13_rate_that_cannot_be_read(node):
    one = node("c13-rate-unreadable.ini")
    done = one.apply(rc=1)
    assert done.failed() == [("port.down", "mlx5_3:1")]
    ports = shown(one)
    assert ports["mlx5_3:1"]["rate"] is None and ports["mlx5_3:1"]["rate_gbps"] is None
    assert ports["mlx5_3:1"]["width"] is None and ports["mlx5_3:1"]["speed"] is None
    assert ports["mlx5_3:1"]["lid"] == 17
    assert ports["mlx5_3:1"]["unreadable"] == ["rate: Invalid argument"]
    assert ports["mlx5_3:1"]["phys_state"] == "Polling"
    assert ports["mlx5_2:1"]["rate"] == "100 Gb/sec (4X EDR)" and ports["mlx5_2:1"]["lid"] == 2
    assert ports["mlx5_2:1"]["unreadable"] == []


def test_an_active_port_whose_rate_cannot_be_read(node):
    """Unknown is not ok, and not a failure of what is optional."""
    one = node("guide.ini", "--set", "port mlx5_1:1.unreadable=rate")
    done = one.apply(rc=0)
    assert done.check("port.rate_unknown")["status"] == "unknown"
    assert done.check("port.rate_unknown")["target"] == "mlx5_1:1"
    assert devices(one) == "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"


def test_a_state_that_cannot_be_read_is_a_failure(node):
    for what in ("state", "phys_state", "link_layer"):
        one = node("guide.ini", "--set", "port mlx5_1:1.unreadable=" + what)
        done = one.apply(rc=1)
        assert [target for _, target in done.failed()] == ["mlx5_1:1"], what
        assert "mlx5_1:1" not in devices(one)
        port = shown(one)["mlx5_1:1"]
        assert port["unreadable"] == [what + ": Invalid argument"]
        assert port[what] in (None, "unknown"), port[what]


def test_c14_counters(node):
    ports = shown(node("c14-counters.ini"))
    counters = ports["mlx5_1:1"]["counters"]
    assert counters["port_rcv_errors"] is None and counters["symbol_error"] is None
    assert counters["link_downed"] == 3 and counters["port_rcv_data"] == 0
    # the largest 64-bit value may not fit into a JSON integer; wrong it must not be
    assert counters["port_xmit_data"] in (18446744073709551615, None)
    assert ports["mlx5_0:1"]["counters"]["port_rcv_errors"] == 0
    assert set(counters) == set(ports["mlx5_0:1"]["counters"])


def test_c15_other_fabrics(node):
    one = node("c15-other-fabrics.ini")
    done = one.apply(rc=0)
    by_target = {c["target"]: c for c in done.checks(id="port")}
    assert sorted(by_target) == ["hfi1_0:1", "irdma0:1", *PORTS]
    assert by_target["irdma0:1"]["status"] == "skip"
    assert "iWARP" in by_target["irdma0:1"]["message"]
    assert by_target["hfi1_0:1"]["status"] == "skip"
    assert "Omni-Path" in by_target["hfi1_0:1"]["message"]
    assert devices(one) == "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"
    hca = [line for line in one.read("/etc/nccl.conf").decode().splitlines()
           if line.startswith("NCCL_IB_HCA=")]
    assert not hca or ("irdma0" not in hca[0] and "hfi1_0" not in hca[0]) or "^" in hca[0]


def test_c16_without_umad(node):
    one = node("c16-no-umad.ini")
    done = one.apply(rc=0)
    assert done.check("module.missing")["target"] == "ib_umad"
    assert done.check("module.missing")["status"] == "warn"
    assert "ib_umad" in done.check("module.missing")["message"]
    assert done.check("module.missing")["hint"]
    assert [c["target"] for c in done.checks(code="port.active", status="ok")] == PORTS
    assert devices(one) == "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"
    one.write("/etc/nodeprep/nodeprep.conf", "[module ib_umad]\nrequire = yes\n")
    assert one.apply(rc=1).failed() == [("module.missing", "ib_umad")]


def test_c17_roce_is_not_infiniband(node):
    one = node("c17-roce.ini")
    done = one.apply(rc=0)
    check = done.check("port.ethernet", "mlx5_4:1")
    assert check["status"] == "skip" and "RoCE" in check["message"]
    assert "mlx5_4" not in devices(one)
    done = one.json("apply", "--ifname", "enp161s0np0", "--ip", IP, *QUICK, rc=3)
    assert done.error["code"] == "netdev.not_ipoib" and "ib0" in done.error["message"]
    # wanted all the same: then it is a failure
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\ndevices = mlx5_0, mlx5_4\n")
    assert one.apply(rc=1).failed() == [("port.ethernet", "mlx5_4:1")]


def test_c18_stale_lid_and_rate(node):
    one = node("c18-stale.ini")
    done = one.apply(rc=1)
    assert done.failed() == [("port.down", "mlx5_1:1")]
    check = done.check("port.down")
    assert "Polling" in check["message"]
    for word in ("868", "0x364", "10 Gb"):
        assert word not in check["message"]
    assert "cable" in check["message"] + check["hint"] and "peer" in check["message"]
    assert devices(one) == "mlx5_0:1,mlx5_2:1,mlx5_3:1,ib0"


def test_c19_natural_order(node):
    one = node("c19-twelve.ini")
    done = one.apply(rc=0)
    natural = ["mlx5_%d:1" % n for n in range(12)]
    assert [c["target"] for c in done.checks(id="port")] == natural
    assert [c["target"] for c in done.checks(code="port.ethernet", status="skip")] == [
        "mlx5_8:1", "mlx5_9:1"]
    assert list(shown(one)) == natural
    assert devices(one).split(",") == [
        p for p in natural if p not in ("mlx5_8:1", "mlx5_9:1")] + ["ib0"]


def test_sick_ports_are_told_apart(node):
    one = node("sick.ini")
    done = one.apply(rc=1)
    assert done.failed() == [
        ("port.disabled", "mlx5_3:1"), ("port.down", "mlx5_2:1"), ("port.lid_zero", "mlx5_6:1"),
        ("port.no_sm", "mlx5_1:1"), ("port.width_degraded", "mlx5_4:1")]
    assert done.check("port.ethernet")["target"] == "mlx5_5:1"
    assert done.check("port.active")["target"] == "mlx5_0:1"
    assert "disabled" in done.check("port.disabled")["message"].lower()
    for check in done.checks(status="fail"):
        assert check["hint"] and check["message"]
    usable = devices(one).split(",")
    assert usable[0] == "mlx5_0:1" and usable[-1] == "ib0"
    assert not {"mlx5_1:1", "mlx5_2:1", "mlx5_3:1", "mlx5_5:1", "mlx5_6:1"} & set(usable)


def test_c33_two_ports_on_one_lane(node):
    one = node("c33-width.ini")
    done = one.apply(rc=1)
    assert done.failed() == [("port.width_degraded", "mlx5_1:1"),
                             ("port.width_degraded", "mlx5_3:1")]
    for check in done.checks(code="port.width_degraded"):
        assert "25 Gb/sec (1X EDR)" in check["message"] and "4" in check["message"]
    # slow, but they carry traffic
    assert devices(one) == "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"


def test_min_rate(node):
    one = node("guide.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\nmin_rate = 200 Gb/sec\n")
    done = one.apply(rc=1)
    assert done.failed() == [("port.rate_degraded", port) for port in PORTS]
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\nmin_rate = 100\n")
    assert one.apply(rc=0).failed() == []


def test_slower_than_its_siblings(node):
    one = node("guide.ini", "--set", "port mlx5_2:1.rate=56 Gb/sec (4X FDR)")
    done = one.apply(rc=0)
    check = done.check("port.rate_degraded", "mlx5_2:1")
    assert check["status"] == "warn" and "100 Gb/sec (4X EDR)" in check["message"]


def test_c36_nvswitch_management_ports(node):
    one = node("c36-nvswitch.ini")
    done = one.apply(rc=0)
    managed = ["mlx5_%d:1" % n for n in range(8, 12)]
    assert [c["target"] for c in done.checks(code="port.management_only", status="skip")] == managed
    names = ["mlx5_%d:1" % n for n in range(8)]
    assert devices(one) == ",".join(names + ["ib0"])
    for path in ("/etc/nccl.conf", "/root/.nccl.conf"):
        lines = one.read(path).decode().splitlines()
        hca, = [line for line in lines if line.startswith("NCCL_IB_HCA=")]
        # the exact form: mlx5_1:1 alone would also take mlx5_10 and mlx5_11
        assert hca == "NCCL_IB_HCA==" + ",".join(names)
    assert [p["management_only"] for p in shown(one).values()] == [False] * 8 + [True] * 4


def test_c37_ignored_port(node):
    one = node("c37-uncabled.ini")
    assert one.apply(rc=1).failed() == [("port.down", "mlx5_3:1")]
    one.write("/etc/nodeprep/nodeprep.conf", "[ports]\nignore = mlx5_3:1\n")
    done = one.apply(rc=0)
    check = done.check("port.ignored", "mlx5_3:1")
    assert check["status"] == "skip" and "ignore" in check["message"]
    assert devices(one) == "mlx5_0:1,mlx5_1:1,mlx5_2:1,ib0"


def test_c38_gpu_node_without_gdrdrv(node):
    one = node("c38-no-gdrdrv.ini")
    done = one.apply(rc=0)
    check = done.check("module.missing", "gdrdrv")
    assert check["status"] == "warn" and done.doc["ready"] is True
    assert "gdr_copy" not in ucx_values(one)["UCX_TLS"]
    one.write("/etc/nodeprep/nodeprep.conf", "[module gdrdrv]\nrequire = yes\n")
    done = one.apply(rc=1)
    assert done.failed() == [("module.missing", "gdrdrv")]
    one.write("/etc/nodeprep/nodeprep.conf", "[module gdrdrv]\nrequire = no\n")
    assert one.apply(rc=0).checks(code="module.missing") == []


def test_gdrdrv_that_does_not_answer_is_not_ok(node):
    """dgx.ini has the node /dev/gdrdrv with no driver behind it."""
    one = node("dgx.ini")
    done = one.apply(rc=0)
    check = done.check("gdrcopy.open_failed", "gdrdrv")
    assert check["status"] == "warn" and check["hint"]
    assert "gdr_copy" not in ucx_values(one)["UCX_TLS"]


def test_no_umad_node_can_be_opened_is_no_failure(node):
    """The simulated umad nodes fail with ENXIO: unknown, not fail; the guide node is ready."""
    done = node("guide.ini").apply(rc=0)
    assert done.failed() == []
