# SPDX-License-Identifier: MIT
"""show: the facts, value by value, for people and as JSON."""

import pytest
from helpers import IP

GIDS = ["fe80:0000:0000:0000:506b:4b03:00f5:ce9c", "fe80:0000:0000:0000:506b:4b03:0049:4236",
        "fe80:0000:0000:0000:506b:4b03:00f5:cf04", "fe80:0000:0000:0000:506b:4b03:0049:3eb2"]


def shown(node, noun, *argv, **how):
    done = node.json("show", noun, *argv, rc=0, **how)
    assert list(done.doc["show"]) == [noun] and done.doc["changed"] is False
    return done.doc["show"][noun]


def test_ports_of_the_guide(shared_guide):
    ports = shown(shared_guide, "ports")
    assert [(p["ca"], p["port"]) for p in ports] == [("mlx5_%d" % n, 1) for n in range(4)]
    assert [p["lid"] for p in ports] == [15, 6, 2, 17]
    assert [p["gid"] for p in ports] == GIDS
    for port in ports:
        assert port["state"] == "ACTIVE" and port["phys_state"] == "LinkUp"
        assert port["rate"] == "100 Gb/sec (4X EDR)" and port["rate_gbps"] == 100
        assert port["width"] == "4X" and port["speed"] == "EDR"
        assert port["sm_lid"] == 1 and port["link_layer"] == "InfiniBand"
        assert port["ca_type"] == "MT4119" and port["fw_ver"] == "16.35.2000"
        assert port["board_id"] == "MT_0000000008" and port["management_only"] is False
        assert port["pkeys"][0] == "0xffff" and port["unreadable"] == []
    assert [p["netdevs"] for p in ports] == [["ib0"], [], [], []]
    assert ports[0]["guid"] == "506b:4b03:00f5:ce9c"


def test_ports_as_ibstatus_has_them(shared_guide):
    """The same words, so that an admin can lay the two side by side."""
    status = shared_guide.text("ibstatus")
    text = shared_guide.nodeprep("show", "ports").stdout
    for block in status.strip().split("\n\n"):
        for line in block.splitlines()[1:]:
            name, value = [word.strip() for word in line.replace("_", " ").split(":", 1)]
            value = value.split(": ", 1)[-1] if name in ("state", "phys state") else value
            found = [ours for ours in text.splitlines() if ours.split(":", 1)[0].strip() == name]
            assert [ours for ours in found if ours.split(":", 1)[1].strip() == value], (name, value)


def test_netdevs_of_the_guide(shared_guide):
    netdevs = {d["name"]: d for d in shown(shared_guide, "netdevs")}
    assert sorted(netdevs) == ["eth0", "ib0", "lo"]
    ib0 = netdevs["ib0"]
    assert ib0["type"] == "infiniband" and ib0["mode"] == "connected" and ib0["mtu"] == 65520
    assert (ib0["ca"], ib0["port"]) == ("mlx5_0", 1) and ib0["addresses"] == []
    assert "UP" not in ib0["flags"] and ib0["manager"] in (None, "none")
    assert ib0["hwaddr"].endswith("50:6b:4b:03:00:f5:ce:9c")
    assert ib0["ifindex"] == int(shared_guide.text("cat", "/sys/class/net/ib0/ifindex"))
    eth0 = netdevs["eth0"]
    assert eth0["type"] == "ether" and eth0["mode"] is None and eth0["ca"] is None
    assert eth0["carrier"] is True and eth0["mtu"] == 1500
    assert eth0["hwaddr"] == "02:00:00:00:00:50"
    address = eth0["addresses"][0]
    assert (address["address"], address["family"], address["broadcast"], address["scope"]) == (
        "192.0.2.50/24", "inet", "192.0.2.255", "global")


def test_netdevs_after_apply(guide):
    guide.apply("--ip", "fd00::50/64")
    ib0, = [d for d in shown(guide, "netdevs") if d["name"] == "ib0"]
    assert {"UP", "RUNNING", "BROADCAST", "MULTICAST"} <= set(ib0["flags"])
    assert ib0["carrier"] is True
    assert [(a["address"], a["broadcast"]) for a in ib0["addresses"] if a["scope"] == "global"] == [
        (IP, "10.0.0.255"), ("fd00::50/64", None)]


def test_config(node):
    one = node("guide.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[netdev ib0]\naddress = 10.0.0.50/24\n"
              "[ports]\nignore = mlx5_3\n[ucx]\nprofile = guide\n")
    rows = {(row["section"], row["key"]): row["value"] for row in shown(one, "config")}
    assert rows[("netdev ib0", "address")] == IP and rows[("ports", "ignore")] == "mlx5_3"
    assert rows[("ucx", "profile")] == "guide" and rows[("ports", "wait")] == "30"
    assert rows[("netdev ib0", "mode")] == "keep"
    # what `show config` prints can be put into a file again
    one.write("/root/again.conf", "\n".join(
        line for line in one.nodeprep("show", "config").stdout.splitlines()
        if line.strip() and not line.startswith("#") and not line.endswith("= ")
        and not line.endswith("=") and not line.startswith("min_rate = 0")) + "\n")
    again = {(row["section"], row["key"]): row["value"]
             for row in shown(one, "config", "--config", "/root/again.conf")}
    assert again == rows


def test_dgx(node):
    one = node("dgx.ini")
    show = one.json("show", rc=0).doc["show"]
    ports = show["ports"]
    assert [p["ca"] for p in ports] == ["mlx5_%d" % n for n in range(10)]
    assert [p["lid"] for p in ports] == [0x21 + n for n in range(8)] + [0, 0]
    assert {(p["rate"], p["rate_gbps"], p["speed"], p["link_layer"]) for p in ports[:8]} == {
        ("400 Gb/sec (4X NDR)", 400, "NDR", "InfiniBand")}
    assert {(p["rate_gbps"], p["speed"], p["link_layer"]) for p in ports[8:]} == {
        (200, "HDR", "Ethernet")}
    assert [p["netdevs"] for p in ports] == [["ib%d" % n] for n in range(8)] + [
        ["enp41s0f0np0"], ["enp170s0f0np0"]]
    assert [g["pci_address"] for g in show["gpus"]] == [
        "0000:1b:00.0", "0000:43:00.0", "0000:52:00.0", "0000:61:00.0", "0000:9d:00.0",
        "0000:c3:00.0", "0000:d1:00.0", "0000:df:00.0"]
    assert [g["numa_node"] for g in show["gpus"]] == [0] * 4 + [1] * 4
    assert {g["driver"] for g in show["gpus"]} == {"nvidia"}
    ipoib = [d for d in show["netdevs"] if d["type"] == "infiniband"]
    assert [(d["name"], d["ca"], d["mode"], d["mtu"]) for d in ipoib] == [
        ("ib%d" % n, "mlx5_%d" % n, "datagram", 4092) for n in range(8)]
    modules = {m["name"]: m for m in show["modules"]}
    assert modules["gdrdrv"]["state"] == "live" and modules["gdrdrv"]["version"] == "2.5.1"
    assert modules["mlx4_core"]["state"] == "absent" and modules["nvidia"]["refcnt"] == 12


def test_what_is_not_known_is_null(node):
    one = node("guide.ini", "--set", "ca mlx5_1.unreadable=fw_ver, hca_type, board_id",
               "--set", "port mlx5_1:1.unreadable=rate, lid, sm_lid, gids/0")
    port = shown(one, "ports")[1]
    for key in ("rate", "rate_gbps", "width", "speed", "lid", "sm_lid", "fw_ver", "ca_type",
                "board_id"):
        assert port[key] is None, key
    assert port["ca"] == "mlx5_1" and port["state"] == "ACTIVE"
    assert shown(one, "ports")[0]["lid"] == 15


@pytest.mark.parametrize("rate, gbps, width, speed", [
    ("2.5 Gb/sec (1X SDR)", 2.5, "1X", "SDR"), ("10 Gb/sec (4X SDR)", 10, "4X", "SDR"),
    ("56 Gb/sec (4X FDR)", 56, "4X", "FDR"), ("50 Gb/sec (2X EDR)", 50, "2X", "EDR"),
    ("800 Gb/sec (4X XDR)", 800, "4X", "XDR"), ("1200 Gb/sec (12X NDR)", 1200, "12X", "NDR"),
    ("104 Gb/sec (4X)", 104, "4X", None), ("0 Gb/sec (4X QDR)", None, "4X", "QDR"),
    ("fast", None, None, None), ("Gb/sec", None, None, None)])
def test_rates(node, rate, gbps, width, speed):
    port = shown(node("guide.ini", "--set", "port mlx5_0:1.rate=" + rate), "ports")[0]
    assert (port["rate_gbps"], port["width"], port["speed"]) == (gbps, width, speed)
    assert port["rate"] == (rate if width else None)


def test_no_infiniband_at_all(node):
    """Without a class directory libibumad makes one up: mthca0 is nowhere to be seen."""
    one = node("guide.ini", "--set", "node.infiniband_class=no", "--without", "netdev ib0")
    show = one.json("show", rc=0).doc["show"]
    assert show["ports"] == [] and show["gpus"] == []
    assert [d["name"] for d in show["netdevs"]] == ["eth0", "lo"]
    assert "mthca0" not in one.nodeprep("show").stdout


def test_which_parts(shared_guide):
    everything = shared_guide.json("show", rc=0).doc["show"]
    assert {"ports", "netdevs", "modules", "config", "gpus"} <= set(everything)
    two = shared_guide.json("show", "netdevs", "ports", rc=0).doc["show"]
    assert set(two) == {"ports", "netdevs"}
    assert two["ports"] == everything["ports"]


def test_names_that_are_not_utf8(node):
    """A description from a firmware, an altname: anything may stand there."""
    one = node("guide.ini")
    one.shell(r"printf 'MT\377\33[31m\n' >/sys/class/infiniband/mlx5_1/board_id")
    port = shown(one, "ports")[1]
    assert port["board_id"].startswith("MT") and "\x1b" not in port["board_id"]
    assert "\x1b" not in one.nodeprep("show").stdout
