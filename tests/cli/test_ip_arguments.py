# SPDX-License-Identifier: MIT
"""--ip: what is refused before anything is touched (C26), and what is taken."""

import pytest
from helpers import IP, QUICK

# argument, word of the one line that names what is wrong
REFUSED = [
    ("10.0.0.50", "prefix length"),
    ("10.0.0.500/24", "not an IPv4 or IPv6 address"),
    ("10.0.0.50/33", "prefix length"),
    ("10.0.0.50/-1", "prefix length"),
    ("10.0.0.50/", "prefix length"),
    ("10.0.0.50/24/24", "prefix length"),
    ("10.0.0.50/255.255.255.0", "prefix length"),
    ("10.0.0.50/ 24", "prefix length"),
    ("10.0.0.50/0x18", "prefix length"),
    ("10.0.0.0/24", "network address"),
    ("10.0.0.255/24", "broadcast address"),
    ("224.0.0.1/24", "multicast"),
    ("255.255.255.255/24", ""),
    ("0.0.0.0/0", "0.0.0.0"),
    ("10.0.0.50/0", "prefix length 0"),
    ("127.0.0.1/8", "loopback"),
    ("10.0.0.50/24;id", "prefix length"),
    ("10.0.0.50/24 ", "prefix length"),
    (" 10.0.0.50/24", "not an IPv4 or IPv6 address"),
    ("$(id)/24", "not an IPv4 or IPv6 address"),
    ("", ""),
    ("/", ""),
    ("=", ""),
    ("ib0=", ""),
    ("=10.0.0.50/24", "interface name"),
    ("a-name-of-17-char=10.0.0.50/24", "interface name"),
    ("ib0=ib0=10.0.0.50/24", ""),
    ("1" * 300, ""),
    ("1" * 300 + "/24", ""),
    ("010.0.0.50/24", "not an IPv4 or IPv6 address"),
    ("10.50/24", "not an IPv4 or IPv6 address"),
    ("0xa000032/24", "not an IPv4 or IPv6 address"),
    ("fe80::1/129", "prefix length"),
    ("fe80::1%ib0/64", ""),
    ("ff02::1/64", "multicast"),
    ("::1/128", "loopback"),
    ("::/64", "unspecified"),
    ("::ffff:10.0.0.50/120", "IPv4"),
    ("fd00::/64", "anycast"),
    ("fd00:::1/64", "not an IPv4 or IPv6 address"),
]


@pytest.mark.parametrize("argument, said", REFUSED, ids=[r[0][:20] or "empty" for r in REFUSED])
def test_c26_refused(shared_guide, argument, said):
    before = shared_guide.state()
    done = shared_guide.nodeprep("apply", "--ip", argument)
    assert (done.rc, done.stdout) == (2, ""), done
    assert done.stderr.count("\n") == 1 and len(done.stderr) < 400, done
    assert said in done.stderr, done
    assert shared_guide.nodeprep("plan", "--ip", argument).rc == 2
    json = shared_guide.json("check", "--ip=" + argument, rc=2)
    assert json.error["code"].startswith("usage.") and json.error["hint"]
    assert shared_guide.state() == before


@pytest.mark.parametrize("argv", [
    ["--ip", IP, "--ip", IP],
    ["--ip", IP, "--ip", "10.0.0.50/16"],
    ["--ip", IP, "--ip", "ib0=" + IP],
    ["--ip", "ib0=" + IP, "--ip", "ib1=" + IP],
    ["--ip", "fd00::50/64", "--ip", "fd00:0:0:0::50/64"],
])
def test_the_same_address_twice(shared_guide, argv):
    before = shared_guide.state()
    done = shared_guide.nodeprep("apply", *argv)
    assert (done.rc, done.stdout) == (2, ""), done
    assert "twice" in done.stderr and done.stderr.count("\n") == 1
    assert shared_guide.state() == before


def test_a_good_address_does_not_save_a_bad_one(shared_guide):
    before = shared_guide.state()
    assert shared_guide.nodeprep("apply", "--ip", IP, "--ip", "10.0.0.51").rc == 2
    assert shared_guide.nodeprep("apply", "--ip", "10.0.0.51", "--ip", IP).rc == 2
    assert shared_guide.state() == before


@pytest.mark.parametrize("address, broadcast", [
    ("10.0.0.50/31", None), ("10.0.0.50/32", None), ("10.0.0.0/31", None),
    ("10.0.0.255/31", None), ("10.0.0.50/30", None), ("10.0.1.255/23", "10.0.1.255"),
    ("10.0.0.50/8", "10.255.255.255"), ("172.16.5.4/13", "172.23.255.255")])
def test_lengths_that_are_fine(node, address, broadcast):
    if address == "10.0.1.255/23":
        address = "10.0.0.255/23"
    if address == "10.0.0.50/30":
        broadcast = "10.0.0.51"
    one = node("guide.ini")
    one.json("apply", "--ip", address, *QUICK, rc=0)
    addresses = one.links()["ib0"]["addresses"]
    local, length = address.split("/")
    assert (local, int(length), broadcast, "global", False) in addresses
    assert one.json("apply", "--ip", address, *QUICK, rc=0).doc["actions"] == []


@pytest.mark.parametrize("address, shown", [
    ("fd00::50/64", "fd00::50/64"), ("FD00:0:0::50/64", "fd00::50/64"),
    ("fd00::50/128", "fd00::50/128")])
def test_ipv6(node, address, shown):
    one = node("guide.ini")
    done = one.json("apply", "--ip", address, *QUICK, rc=0)
    assert ("netdev.address_add", "ib0", shown) in done.actions()
    local, length = shown.split("/")
    assert (local, int(length), None, "global", False) in one.links()["ib0"]["addresses"]
    assert one.ipv4() == []
    assert one.json("apply", "--ip", address, *QUICK, rc=0).doc["actions"] == []


def test_ipv6_with_another_length_is_corrected(node):
    one = node("guide.ini", "--set", "netdev ib0.up=yes",
               "--set", "netdev ib0.addresses=fd00::50/48")
    one.json("apply", "--ip", "fd00::50/64", *QUICK, rc=0)
    found = [a[:2] for a in one.links()["ib0"]["addresses"] if a[0] == "fd00::50"]
    assert found == [("fd00::50", 64)]
    assert one.json("apply", "--ip", "fd00::50/64", *QUICK, rc=0).doc["actions"] == []


def test_ipv6_is_usable_at_once(node):
    """What comes next in a script binds to the address: no wait for DAD to time out."""
    one = node("guide.ini")
    one.json("apply", "--ip", "fd00::50/64", "--no-selftest", rc=0)
    flags = [line for line in one.text("ip", "-6", "-o", "addr", "show", "ib0").splitlines()
             if "fd00::50" in line]
    assert len(flags) == 1 and "tentative" not in flags[0], flags


def test_ipv4_and_ipv6_together(node):
    one = node("guide.ini")
    argv = ["--ip", IP, "--ip", "fd00::50/64", "--ip", "10.1.0.50/24"]
    done = one.json("apply", *argv, *QUICK, rc=0)
    assert [a[2] for a in done.actions() if a[0] == "netdev.address_add"] == [
        IP, "fd00::50/64", "10.1.0.50/24"]
    assert one.ipv4() == [IP, "10.1.0.50/24"]
    assert one.json("apply", *argv, *QUICK, rc=0).doc["actions"] == []


def test_named_and_unnamed_address_of_one_netdev(node):
    """--ip ib0=A and --ip B both mean ib0 here: neither gets lost, it is said."""
    one = node("guide.ini")
    before = one.state(but=["/run/nodeprep"])
    done = one.json("apply", "--ip", "ib0=" + IP, "--ip", "10.1.0.50/24", *QUICK, rc=3)
    assert done.error["code"] == "netdev.asked_twice" and "ib0" in done.error["message"]
    assert one.state(but=["/run/nodeprep"]) == before


def test_ifname_with_and_without_address(node):
    one = node("c04-two.ini")
    one.json("apply", "--ifname", "ibs22f0", "--ip", IP, *QUICK, rc=0)
    assert one.ipv4("ibs22f0") == [IP] and one.ipv4("ibp65s0") == []
    assert not one.links()["ibp65s0"]["up"]
    # without one: it is brought up, and that is all
    one.json("apply", "--ifname", "ibp65s0", *QUICK)
    assert one.links()["ibp65s0"]["up"] and one.ipv4("ibp65s0") == []


def test_an_alternative_name(node):
    """ip link takes altnames; so does --ifname. The files carry the real name."""
    one = node("guide.ini", "--set", "netdev ib0.altname=ibp5s0")
    one.json("apply", "--ifname", "ibp5s0", "--ip", IP, *QUICK, rc=0)
    assert one.ipv4() == [IP]
    assert one.read("/etc/nccl.conf") == b"NCCL_SOCKET_IFNAME=ib0\n"
