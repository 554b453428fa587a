# SPDX-License-Identifier: MIT
"""Addresses that are already there: wrong lengths, other owners, the default route
(C24, C25, C28), and those of others."""

import pytest
from helpers import IP, NODEPREP, QUICK


def up(*addresses):
    return ["--set", "netdev ib0.up=yes", "--set", "netdev ib0.addresses=" + ", ".join(addresses)]


def correct(node, promote, addresses=None, want=IP):
    """Applies while the address is watched. Returns the node and the result."""
    one = node("c24-prefix-change.ini") if addresses is None else node("guide.ini", *up(*addresses))
    # /proc/sys/net belongs to the node's own network namespace
    one.shell("echo %d >/proc/sys/net/ipv4/conf/all/promote_secondaries; "
              "echo %d >/proc/sys/net/ipv4/conf/ib0/promote_secondaries" % (promote, promote))
    argv = [NODEPREP, "apply", "--json", "--ip", want, *QUICK]
    answer = one.ask("watch_address", netdev="ib0", address="10.0.0.50", **one.request(argv))
    assert answer["rc"] == 0, answer
    assert answer["looked"] >= 5, "the poller did not get to look"
    assert answer["missed"] == 0, "10.0.0.50 was absent %d times" % answer["missed"]
    return one, answer["events"]


def never_absent(events, before):
    """Replays `ip monitor`: at no moment is 10.0.0.50 without an entry."""
    there = set(before)
    for event in events:
        words = event.split()
        if "ib0" not in words:
            continue
        address = words[words.index("inet") + 1]
        if not address.startswith("10.0.0.50/"):
            continue
        if words[0] == "Deleted":
            there.discard(address)
        else:
            there.add(address)
        assert there, "10.0.0.50 is gone after: %s" % event
    return there


@pytest.mark.parametrize("promote", [0, 1])
def test_c24_wrong_prefix_is_corrected(node, promote):
    one, events = correct(node, promote)
    assert never_absent(events, {"10.0.0.50/16"}) == {"10.0.0.50/24"}
    addresses = [a for a in one.links()["ib0"]["addresses"] if "." in a[0]]
    assert addresses == [("10.0.0.50", 24, "10.0.0.255", "global", False),
                         ("10.0.0.51", 24, "10.0.0.255", "global", True)]
    assert "10.0.0.0/24 dev ib0 proto kernel scope link src 10.0.0.50" in one.routes()
    assert not [route for route in one.routes() if route.startswith("10.0.0.0/16")]
    assert one.apply().doc["actions"] == []


@pytest.mark.parametrize("promote", [0, 1])
def test_a_secondary_of_the_wrong_prefix_survives(node, promote):
    """Deleting 10.0.0.50/16 would take 10.0.9.9/16 with it."""
    one, events = correct(node, promote, ["10.0.0.50/16", "10.0.9.9/16", "10.0.0.51/24"])
    never_absent(events, {"10.0.0.50/16"})
    assert sorted(one.ipv4()) == ["10.0.0.50/24", "10.0.0.51/24", "10.0.9.9/16"]
    assert one.ipv4().index("10.0.0.50/24") < one.ipv4().index("10.0.0.51/24")
    assert one.apply().doc["actions"] == []


@pytest.mark.parametrize("promote", [0, 1])
def test_the_wrong_one_is_itself_a_secondary(node, promote):
    one, events = correct(node, promote, ["10.0.9.9/16", "10.0.0.50/16"])
    never_absent(events, {"10.0.0.50/16"})
    assert sorted(one.ipv4()) == ["10.0.0.50/24", "10.0.9.9/16"]


@pytest.mark.parametrize("promote", [0, 1])
def test_several_wrong_lengths_beside_the_right_one(node, promote):
    one, events = correct(node, promote, ["10.0.0.50/16", "10.0.0.50/24", "10.0.0.50/8",
                                          "10.0.7.7/16", "10.7.7.7/8"])
    never_absent(events, {"10.0.0.50/16", "10.0.0.50/24", "10.0.0.50/8"})
    assert sorted(one.ipv4()) == ["10.0.0.50/24", "10.0.7.7/16", "10.7.7.7/8"]
    assert one.apply().doc["actions"] == []


def test_wider_instead_of_narrower(node):
    one, events = correct(node, 0, ["10.0.0.50/24", "10.0.0.51/24"], want="10.0.0.50/16")
    never_absent(events, {"10.0.0.50/24"})
    assert sorted(one.ipv4()) == ["10.0.0.50/16", "10.0.0.51/24"]
    links = one.links()["ib0"]["addresses"]
    assert ("10.0.0.50", 16, "10.0.255.255", "global", False) in links


def test_labels_and_broadcasts_of_others_survive(node):
    """An address that has to be moved comes back with its own label and broadcast."""
    one = node("guide.ini", *up("10.0.0.50/16", "10.0.0.51/24 label ib0:vip brd 10.0.0.127"))
    before = one.text("ip", "-o", "-4", "addr", "show", "ib0")
    assert "ib0:vip" in before and "10.0.0.127" in before
    one.apply()
    after = one.text("ip", "-o", "-4", "addr", "show", "ib0")
    line, = [line for line in after.splitlines() if "10.0.0.51/24" in line]
    assert "ib0:vip" in line and "brd 10.0.0.127" in line


def test_lifetimes_of_others_survive(node):
    """So does one that a DHCP client put there for a while."""
    one = node("guide.ini", *up("10.0.0.50/16"))
    one.text("ip", "addr", "add", "10.0.0.51/24", "dev", "ib0", "valid_lft", "3600",
             "preferred_lft", "1800")
    one.apply()
    line, = [line for line in one.text("ip", "-o", "-4", "addr", "show", "ib0").splitlines()
             if "10.0.0.51/24" in line]
    assert "valid_lft 3" in line and "preferred_lft 1" in line and "forever" not in line


def test_routes_that_name_a_moved_address(node):
    """The kernel drops them without a word: refused, unless one insists."""
    one = node("guide.ini", *up("10.0.0.50/16", "10.0.0.51/24"), "--set",
               "netdev ib0.routes=10.99.0.0/16 via 10.0.0.1, 10.98.0.0/16 via 10.0.0.2 src 10.0.0.51")
    before = [route for route in one.routes() if route.startswith("10.9")]
    assert len(before) == 2
    done = one.apply(rc=3)
    assert "10.98.0.0/16" in done.error["message"] and "10.0.0.51" in done.error["message"]
    assert "--force" in done.error["hint"] and one.ipv4() == ["10.0.0.50/16", "10.0.0.51/24"]
    assert [route for route in one.routes() if route.startswith("10.9")] == before
    one.apply("--force", rc=0)
    assert one.ipv4() == ["10.0.0.50/24", "10.0.0.51/24"]
    assert before[1] in one.routes() and "10.99.0.0/16" in before[1]


def test_routes_by_a_gateway_survive(node):
    one = node("guide.ini", *up("10.0.0.50/16", "10.0.0.51/24"), "--set",
               "netdev ib0.routes=10.99.0.0/16 via 10.0.0.1")
    before = [route for route in one.routes() if route.startswith("10.99")]
    assert len(before) == 1
    one.apply(rc=0)
    assert [route for route in one.routes() if route.startswith("10.99")] == before


def test_foreign_addresses_are_left_alone_and_named(node):
    one = node("guide.ini", *up("10.0.0.7/24", "172.16.0.1/30", "fd00::7/64"))
    done = one.apply()
    assert done.actions()[0] == ("netdev.address_add", "ib0", IP)
    assert one.ipv4() == ["10.0.0.7/24", "172.16.0.1/30", IP]
    check = done.check("netdev.address_foreign", "ib0")
    for address in ("10.0.0.7/24", "172.16.0.1/30", "fd00::7/64"):
        assert address in check["message"]


# ---- C25: somebody else has it ----

@pytest.mark.parametrize("state", ["yes", "no"])
def test_c25_address_on_another_netdev(node, state):
    one = node("c25-address-elsewhere.ini", "--set", "netdev eth1.up=" + state)
    before = one.state(but=["/run/nodeprep"])
    for verb in ("apply", "plan", "check"):
        done = one.json(verb, "--ip", IP, rc=3)
        assert done.error["code"] == "netdev.address_in_use"
        assert "eth1" in done.error["message"] and "10.0.0.50" in done.error["message"]
        assert "eth1" in done.error["hint"] and done.doc["actions"] == []
    assert one.state(but=["/run/nodeprep"]) == before
    # another length is the same address
    assert one.json("apply", "--ip", "10.0.0.50/20", *QUICK, rc=3).error["code"] == \
        "netdev.address_in_use"
    # --force is for the default route, not for this
    assert one.apply("--force", rc=3).error["code"] == "netdev.address_in_use"
    assert one.state(but=["/run/nodeprep"]) == before


@pytest.mark.parametrize("state", ["yes", "no"])
def test_ipv6_address_on_another_netdev(node, state):
    one = node("guide.ini", "--set", "netdev eth1.type=ethernet",
               "--set", "netdev eth1.addresses=fd00::50/64", "--set", "netdev eth1.up=" + state)
    if "fd00::50" not in one.text("ip", "addr", "show", "eth1"):
        one.text("ip", "addr", "add", "fd00::50/64", "dev", "eth1")
    done = one.json("apply", "--ip", "fd00::50/64", *QUICK, rc=3)
    assert done.error["code"] == "netdev.address_in_use" and "eth1" in done.error["message"]


def test_address_of_loopback(node):
    """A service address on lo belongs to this node, too."""
    one = node("guide.ini")
    one.text("ip", "addr", "add", "10.0.0.50/32", "dev", "lo")
    assert one.apply(rc=3).error["code"] == "netdev.address_in_use"


def test_address_of_another_ipoib_netdev(node):
    one = node("guide.ini", "--set", "netdev ib1.type=ipoib", "--set", "netdev ib1.ca=mlx5_1",
               "--set", "netdev ib1.addresses=10.0.0.50/24")
    done = one.apply(rc=3)
    assert done.error["code"] == "netdev.address_in_use" and "ib1" in done.error["message"]


# ---- C28: the way in ----

def test_c28_adding_beside_is_allowed(node):
    one = node("c28-default-route.ini")
    one.apply()
    assert one.ipv4() == ["10.0.0.9/24", IP]
    assert "default via 10.0.0.1 dev ib0 proto static" in one.routes()


def test_c28_a_change_that_cuts_is_refused(node):
    one = node("c28-default-route.ini")
    before = one.state(but=["/run/nodeprep"])
    for argv in (["--ip", "10.0.0.9/16"], ["--ip", "10.0.0.9/25"]):
        done = one.json("apply", *argv, *QUICK, rc=3)
        assert done.error["code"] == "netdev.cuts_default_route"
        assert "ib0" in done.error["message"] and "--force" in done.error["hint"]
        assert one.state(but=["/run/nodeprep"]) == before
        assert one.json("plan", *argv, rc=3).error["code"] == "netdev.cuts_default_route"
    one.write("/etc/nodeprep/nodeprep.conf", "[netdev ib0]\naddress = 10.0.0.50/24\n"
              "exclusive = yes\n")
    assert one.json("apply", *QUICK, rc=3).error["code"] == "netdev.cuts_default_route"
    one.write("/etc/nodeprep/nodeprep.conf", "[netdev ib0]\nmtu = 2044\n")
    assert one.json("apply", *QUICK, rc=3).error["code"] == "netdev.cuts_default_route"
    assert one.ipv4() == ["10.0.0.9/24"] and one.links()["ib0"]["mtu"] == 65520


def test_c28_a_default_route_of_the_other_family(node):
    """Nothing that is wanted is IPv6, but a new MTU or mode could cut what runs over ib0."""
    one = node("guide.ini")
    one.apply()
    one.text("ip", "-6", "route", "add", "default", "via", "fe80::1", "dev", "ib0")
    assert one.apply().doc["changed"] is False
    one.write("/etc/nodeprep/nodeprep.conf", "[netdev ib0]\nmtu = 2044\n")
    assert one.json("apply", *QUICK, rc=3).error["code"] == "netdev.cuts_default_route"
    assert one.json("apply", *QUICK, "--force", rc=0).doc["changed"] is True


def test_c28_force(node):
    one = node("c28-default-route.ini")
    plan = one.json("plan", "--ip", "10.0.0.9/16", "--force", rc=0)
    assert ("netdev.address_del", "ib0") in [a[:2] for a in plan.actions()]
    one.json("apply", "--ip", "10.0.0.9/16", "--force", *QUICK, rc=0)
    assert one.ipv4() == ["10.0.0.9/16"]


def test_c28_a_node_that_is_right_is_no_refusal(node):
    one = node("c28-default-route.ini")
    done = one.json("apply", "--ip", "10.0.0.9/24", *QUICK, rc=0)
    assert {a[0] for a in done.actions()} == {"file.write"}


def test_c7_overlapping_subnet(node):
    one = node("c07-overlap.ini")
    done = one.apply()
    check = done.check("netdev.subnet_overlap", "ib0")
    assert check["status"] == "warn" and "eth1" in check["message"]
    assert "10.0.0.0/20" in check["message"] and check["hint"]


def test_what_cannot_be_asked_on_the_fabric(node):
    """A TAP has no hardware address: the address goes on, and the report says that nobody
    was asked. Only for what is added, and not where nobody shall be asked."""
    one = node("guide.ini")
    for verb, rc in (("plan", 0), ("check", 1)):
        assert one.json(verb, "--ip", IP, rc=rc).checks(code="netdev.not_probed") == []
    skip = one.apply().check("netdev.not_probed", "ib0")
    assert skip["status"] == "skip" and "10.0.0.50" in skip["message"]
    assert "no hardware address" in skip["message"]
    assert one.ipv4() == ["10.0.0.50/24"]
    assert one.apply().checks(code="netdev.not_probed") == []
    # another length is no new address, and IPv6 looks for itself
    done = one.json("apply", "--ip", "10.0.0.50/16", "--ip", "fd00::50/64", *QUICK, rc=0)
    assert done.doc["changed"] is True and done.checks(code="netdev.not_probed") == []


def test_no_probe(node):
    one = node("guide.ini")
    for verb in ("plan", "apply", "check"):
        done = one.json(verb, "--ip", IP, "--no-probe", *QUICK, rc=0)
        assert done.checks(code="netdev.not_probed") == []
    assert one.ipv4() == ["10.0.0.50/24"]
