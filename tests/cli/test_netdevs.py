# SPDX-License-Identifier: MIT
"""Which netdev is meant, several of them, mode and MTU, exclusive (C1 to C4)."""

import pytest
from helpers import IP, QUICK, ucx_values

TWO = ["--set", "netdev ib1.type=ipoib", "--set", "netdev ib1.ca=mlx5_1",
       "--set", "netdev ib1.mode=connected", "--set", "netdev ib1.mtu=65520",
       "--set", "netdev ib1.up=no"]
CONF = "/etc/nodeprep/nodeprep.conf"


def test_two_netdevs(node):
    one = node("guide.ini", *TWO)
    argv = ["--ip", "ib0=10.0.0.50/24", "--ip", "ib1=10.0.1.50/24"]
    done = one.json("apply", *argv, *QUICK, rc=0)
    assert done.actions()[:4] == [
        ("netdev.link", "ib0", "up"), ("netdev.address_add", "ib0", "10.0.0.50/24"),
        ("netdev.link", "ib1", "up"), ("netdev.address_add", "ib1", "10.0.1.50/24")]
    assert [c["target"] for c in done.checks(code="netdev.running")] == ["ib0", "ib1"]
    links = one.links()
    assert ("10.0.1.50", 24, "10.0.1.255", "global", False) in links["ib1"]["addresses"]
    assert one.json("apply", *argv, *QUICK, rc=0).doc["actions"] == []
    # the other order of the flags is the same wish
    assert [a for a in one.json("plan", *argv[2:], *argv[:2], rc=0).actions()
            if a[0].startswith("netdev")] == []


def test_two_netdevs_by_configuration(node):
    one = node("guide.ini", *TWO)
    one.write(CONF, "[netdev ib0]\naddress = 10.0.0.50/24\n"
              "[netdev storage]\nmatch = mlx5_1:1\naddress = 10.0.1.50/24\n")
    one.json("apply", *QUICK, rc=0)
    assert one.ipv4("ib0") == ["10.0.0.50/24"] and one.ipv4("ib1") == ["10.0.1.50/24"]
    for match in ("0x506b4b0300494236", "506b:4b03:0049:4236", "mlx5_1"):
        one.write(CONF, "[netdev any]\nmatch = %s\naddress = 10.0.1.50/24\n" % match)
        done = one.json("check", rc=None)
        assert not [a for a in done.actions() if a[0].startswith("netdev")], match
    one.write(CONF, "[netdev any]\nmatch = mlx5_3\naddress = 10.0.1.50/24\n")
    done = one.json("apply", *QUICK, rc=3)
    assert done.error["code"] == "netdev.no_such_interface" and "ib1" in done.error["message"]


def test_one_of_two_is_not_there(node):
    """All or nothing: ib0 gets no address when ib7 does not exist."""
    one = node("guide.ini", *TWO)
    before = one.state(but=["/run/nodeprep"])
    done = one.json("apply", "--ip", IP, "--ip", "ib7=10.0.7.50/24", *QUICK, rc=3)
    assert "ib7" in done.error["message"] and "ib1" in done.error["message"]
    assert one.state(but=["/run/nodeprep"]) == before


# ---- which one ----

def test_c1_prefix_names(node):
    one = node("c01-prefix-names.ini")
    done = one.apply(rc=0)
    for path in ("/root/.nccl.conf", "/etc/nccl.conf"):
        assert one.read(path) == b"NCCL_SOCKET_IFNAME==ib0\n"
    text = " ".join(c["message"] for c in done.doc["checks"])
    assert "ib0.8001" in text and "ib01" in text, "says nothing about why the exact form"
    assert one.ipv4("ib0.8001") == [] and one.ipv4("ib01") == []


def test_c1_alone(node):
    one = node("guide.ini")
    one.apply()
    assert one.read("/etc/nccl.conf") == b"NCCL_SOCKET_IFNAME=ib0\n"


@pytest.mark.parametrize("value, written", [
    ("ib0", "=ib0"), ("ib0,ib01", "=ib0,ib01"), ("ib01", "ib01"), ("ib", "ib"),
    ("=ib0", "=ib0"), ("^eth0", "^eth0"), ("ib0,nothing", "ib0,nothing")])
def test_c1_a_name_in_the_configuration(node, value, written):
    one = node("c01-prefix-names.ini")
    one.write(CONF, "[nccl]\nsocket_ifname = %s\n" % value)
    done = one.apply("--ip", "ib01=10.0.1.50/24")
    assert one.read("/etc/nccl.conf") == b"NCCL_SOCKET_IFNAME=%s\n" % written.encode()
    assert bool(done.checks(code="nccl.exact_name")) is (value == "ib0")
    assert one.apply("--ip", "ib01=10.0.1.50/24").doc["actions"] == []


@pytest.mark.parametrize("value, written", [
    ("mlx5_1", "=mlx5_1:1"), ("mlx5_1:1", "=mlx5_1:1"), ("mlx5_0,mlx5_1", "=mlx5_0:1,mlx5_1:1"),
    ("mlx5_10", "mlx5_10:1"), ("mlx5_0", "mlx5_0:1"), ("mlx5", "mlx5"), ("=mlx5_1", "=mlx5_1:1"),
    ("^mlx5_1", "^mlx5_1:1"), ("mlx5_0,mlx5_1,mlx5_10,mlx5_11",
                               "mlx5_0:1,mlx5_1:1,mlx5_10:1,mlx5_11:1")])
def test_c2_a_name_in_the_configuration(node, value, written):
    one = node("c02-hca-prefix.ini")
    one.write(CONF, "[nccl]\nib_hca = %s\n" % value)
    one.apply()
    assert one.read("/etc/nccl.conf") == (b"NCCL_SOCKET_IFNAME=ib0\nNCCL_IB_HCA=%s\n"
                                          % written.encode())
    assert one.apply().doc["actions"] == []


def test_c2_hca_prefix(node):
    one = node("c02-hca-prefix.ini")
    one.write(CONF, "[ports]\ndevices = mlx5_1\n")
    one.apply(rc=0)
    assert one.read("/etc/nccl.conf") == b"NCCL_SOCKET_IFNAME=ib0\nNCCL_IB_HCA==mlx5_1:1\n"
    assert ucx_values(one)["UCX_NET_DEVICES"] == "mlx5_1:1,ib0"


def test_c3_no_such_interface(node):
    one = node("guide.ini")
    before = one.state(but=["/run/nodeprep"])
    done = one.json("apply", "--ifname", "eth2", *QUICK, rc=3)
    assert "eth2" in done.error["message"] and "ib0 (mlx5_0:1" in done.error["message"]
    assert one.read("/root/.nccl.conf") is None and one.read("/etc/nccl.conf") is None
    assert one.state(but=["/run/nodeprep"]) == before
    # an Ethernet interface is there, and is not what is meant
    done = one.json("apply", "--ip", "eth0=" + IP, *QUICK, rc=3)
    assert done.error["code"] == "netdev.not_ipoib" and "ib0" in done.error["message"]
    done = one.json("apply", "--ip", "lo=" + IP, *QUICK, rc=3)
    assert done.error["code"] == "netdev.not_ipoib"


def test_c4_another_name(node):
    one = node("c04-renamed.ini")
    done = one.apply(rc=0)
    check = done.check("netdev.only_ipoib", "ibp65s0")
    assert "ib0" in check["message"] and "ibp65s0" in check["message"]
    assert one.ipv4("ibp65s0") == [IP]
    assert one.read("/etc/nccl.conf") == b"NCCL_SOCKET_IFNAME=ibp65s0\n"
    assert ucx_values(one)["UCX_NET_DEVICES"].endswith(",ibp65s0")
    text = one.nodeprep("apply", "--ip", IP, *QUICK)
    assert "ibp65s0 is used" in text.stdout


def test_c4_two_candidates(node):
    one = node("c04-two.ini")
    before = one.state(but=["/run/nodeprep"])
    done = one.apply(rc=3)
    assert done.error["code"] == "netdev.ambiguous" and "--ifname" in done.error["hint"]
    for word in ("ibp65s0 (mlx5_0:1, GUID 506b:4b03:00f5:ce9c)",
                 "ibs22f0 (mlx5_2:1, GUID 506b:4b03:00f5:cf04)"):
        assert word in done.error["message"]
    assert one.state(but=["/run/nodeprep"]) == before
    # with the name in the configuration it is clear
    one.write(CONF, "[netdev ibs22f0]\naddress = 10.0.0.50/24\n")
    one.json("apply", *QUICK, rc=0)
    assert one.ipv4("ibs22f0") == [IP]


# ---- mode, MTU, exclusive ----

def test_mode_and_mtu(node):
    one = node("guide.ini")
    assert one.read("/sys/class/net/ib0/mode") == b"connected\n"
    one.write(CONF, "[netdev ib0]\naddress = 10.0.0.50/24\nmode = datagram\nmtu = 2044\n")
    done = one.json("apply", *QUICK, rc=0)
    assert sorted(done.actions()[:2]) == [
        ("netdev.mode", "ib0", "datagram"), ("netdev.mtu", "ib0", "2044")]
    assert done.actions()[2:4] == [
        ("netdev.link", "ib0", "up"), ("netdev.address_add", "ib0", IP)]
    assert {a["id"]: a["from"] for a in done.doc["actions"][:3]} == {
        "netdev.mode": "connected", "netdev.mtu": "65520", "netdev.link": "down"}
    assert one.read("/sys/class/net/ib0/mode").strip() == b"datagram"
    assert one.links()["ib0"]["mtu"] == 2044
    assert one.json("apply", *QUICK, rc=0).doc["actions"] == []
    one.write(CONF, "[netdev ib0]\nmode = connected\nmtu = 65520\n")
    done = one.apply(rc=0)
    # in datagram mode the larger MTU would be refused
    assert done.actions()[:2] == [("netdev.mode", "ib0", "connected"),
                                  ("netdev.mtu", "ib0", "65520")]
    assert one.read("/sys/class/net/ib0/mode").strip() == b"connected"
    assert one.links()["ib0"]["mtu"] == 65520 and one.ipv4() == [IP]
    one.write(CONF, "[netdev ib0]\nmode = keep\nmtu = keep\n")
    assert one.apply(rc=0).doc["actions"] == []


@pytest.mark.parametrize("mode, mtu", [("datagram", 2044), ("datagram", 4092),
                                       ("connected", 65520)])
def test_mode_and_mtu_are_kept_unless_asked_for(node, mode, mtu):
    one = node("guide.ini", "--set", "netdev ib0.mode=" + mode, "--set",
               "netdev ib0.mtu=%d" % mtu)
    one.apply(rc=0)
    assert one.links()["ib0"]["mtu"] == mtu
    assert one.read("/sys/class/net/ib0/mode").strip().decode() == mode


def test_exclusive(node):
    one = node("guide.ini", "--set", "netdev ib0.up=yes", "--set",
               "netdev ib0.addresses=10.0.0.7/24, 172.16.0.1/30, fd00::7/64")
    one.text("ip", "addr", "add", "fe80::1234/64", "dev", "ib0")
    one.text("ip", "addr", "add", "169.254.7.7/16", "dev", "ib0", "scope", "link")
    one.write(CONF, "[netdev ib0]\naddress = 10.0.0.50/24, fd00::50/64\nexclusive = yes\n")
    done = one.json("apply", *QUICK, rc=0)
    gone = {a["from"] for a in done.doc["actions"] if a["id"] == "netdev.address_del"}
    # its own address may have to move behind another length of itself
    assert {a for a in gone if not a.startswith("10.0.0.50/")} == {"10.0.0.7/24", "172.16.0.1/30", "fd00::7/64"}
    assert one.ipv4() == ["169.254.7.7/16", IP]
    assert {a[0] for a in one.links()["ib0"]["addresses"]} == {
        "169.254.7.7", "10.0.0.50", "fd00::50", "fe80::1234"}
    assert ("10.0.0.50", 24, "10.0.0.255", "global", False) in one.links()["ib0"]["addresses"]
    assert done.checks(code="netdev.address_foreign") == []
    assert one.json("apply", *QUICK, rc=0).doc["actions"] == []


def test_exclusive_without_an_address_takes_nothing(node):
    """No wanted address: exclusive must not strip the interface bare."""
    one = node("guide.ini", "--set", "netdev ib0.up=yes", "--set",
               "netdev ib0.addresses=10.0.0.7/24")
    one.write(CONF, "[netdev ib0]\nexclusive = yes\n")
    one.json("apply", *QUICK, rc=0)
    assert one.ipv4() == ["10.0.0.7/24"]


def test_without_an_address(node):
    """Nothing asked for: files only, the netdev stays as it is, and a hint says so."""
    one = node("guide.ini")
    done = one.json("apply", *QUICK, rc=0)
    assert {a[0] for a in done.actions()} == {"file.write"}
    assert not one.links()["ib0"]["up"]
    assert done.check("netdev.no_address", "ib0")["status"] == "warn"
    assert ucx_values(one)["UCX_NET_DEVICES"] == "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1"
    assert one.read("/etc/nccl.conf") is None


def test_managers_are_named(node):
    one = node("guide.ini")
    one.write("/etc/network/interfaces",
              "auto ib0\niface ib0 inet static\n  address 10.0.0.50/24\n")
    done = one.apply(rc=0)
    check = done.check("netdev.managed", "ib0")
    assert check["status"] == "warn" and "ifupdown" in check["message"]
