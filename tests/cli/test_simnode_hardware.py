# SPDX-License-Identifier: MIT
"""The simulated node's hardware, as the tools of the field see it."""

import errno
import json
import os
import re
import sys

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                os.pardir, "sim"))
from simtest import (NODES, node, shell,  # noqa: E402
                     sim)  # pylint: disable=wrong-import-position

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def test_ibstatus_on_the_guides_node():
    text = node("guide.ini", "ibstatus")
    ports = re.findall(
        r"Infiniband device '(\S+)' port (\d+) status:\n"
        r"\tdefault gid:\t (\S+)\n\tbase lid:\t (\S+)\n\tsm lid:\t\t (\S+)\n"
        r"\tstate:\t\t (.+)\n\tphys state:\t (.+)\n\trate:\t\t (.+)\n"
        r"\tlink_layer:\t (.+)\n", text)
    rest = ("0x1", "4: ACTIVE", "5: LinkUp", "100 Gb/sec (4X EDR)",
            "InfiniBand")
    gid = "fe80:0000:0000:0000:506b:4b03:"
    assert ports == [
        ("mlx5_0", "1", gid + "00f5:ce9c", "0xf") + rest,
        ("mlx5_1", "1", gid + "0049:4236", "0x6") + rest,
        ("mlx5_2", "1", gid + "00f5:cf04", "0x2") + rest,
        ("mlx5_3", "1", gid + "0049:3eb2", "0x11") + rest]


def test_ibstat_on_the_guides_node():
    text = node("guide.ini", "ibstat", "mlx5_3")
    assert text == (
        "CA 'mlx5_3'\n\tCA type: MT4119\n\tNumber of ports: 1\n"
        "\tFirmware version: 16.35.2000\n\tHardware version: 0x0\n"
        "\tNode GUID: 0x506b4b0300493eb2\n"
        "\tSystem image GUID: 0x506b4b0300493eb2\n"
        "\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n"
        "\t\tRate: 100\n\t\tBase lid: 17\n\t\tLMC: 0\n\t\tSM lid: 1\n"
        "\t\tCapability mask: 0x2651e848\n"
        "\t\tPort GUID: 0x506b4b0300493eb2\n\t\tLink layer: InfiniBand\n")
    assert node("guide.ini", "ibstat", "-l").split() == [
        "mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]


def test_interfaces_and_routes():
    links = json.loads(node("guide.ini", "ip", "-j", "addr"))
    assert [link["ifname"] for link in links] == ["lo", "eth0", "ib0"]
    lo, eth0, ib0 = links
    assert "UP" in lo["flags"]
    assert eth0["operstate"] == "UP"
    assert [(a["local"], a["prefixlen"], a["broadcast"])
            for a in eth0["addr_info"] if a["family"] == "inet"] == [
                ("192.0.2.50", 24, "192.0.2.255")]
    assert (ib0["link_type"], ib0["mtu"], ib0["addr_info"]) == (
        "infiniband", 65520, [])
    assert "UP" not in ib0["flags"]
    routes = json.loads(node("guide.ini", "ip", "-j", "route", "show",
                             "default"))
    assert [(r["gateway"], r["dev"]) for r in routes] == [
        ("192.0.2.1", "eth0")]


def test_ipoib_attributes_are_laid_over_the_live_ones():
    text = shell("guide.ini", """
        cd /sys/class/net/ib0
        cat address broadcast mode umcast pkey dev_port type mtu addr_len
        ls device/infiniband device/net
        ip link set ib0 up mtu 4000
        cat mtu carrier operstate
        echo datagram > mode && cat mode
        echo 2044 > mtu && ip -j link show ib0
        readlink -f /sys/class/infiniband/mlx5_0/device; readlink -f device
        """).splitlines()
    assert text[:9] == [
        "80:00:00:48:fe:80:00:00:00:00:00:00:50:6b:4b:03:00:f5:ce:9c",
        "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff",
        "connected", "0", "0xffff", "0", "32", "65520", "20"]
    assert text[9:14] == ["device/infiniband:", "mlx5_0", "", "device/net:",
                          "ib0"]
    assert text[14:18] == ["4000", "1", "up", "datagram"]
    link = json.loads(text[18])[0]
    assert link["mtu"] == 2044 and "LOWER_UP" in link["flags"]
    assert text[19] == text[20]
    assert text[19].endswith("/0000:05:00.0")


def test_ipoib_child_and_several_addresses():
    text = shell("c01-prefix-names.ini", """
        cd /sys/class/net; cat ib0.8001/pkey ib0.8001/parent ib01/address
        ls ib0.8001/device/infiniband
        head -c 32 ib0.8001/broadcast; echo; ls""").splitlines()
    assert text == ["0x8001", "ib0",
                    "80:00:00:48:fe:80:00:00:00:00:00:00:50:6b:4b:03:00:49:"
                    "42:36", "mlx5_0", "00:ff:ff:ff:ff:12:40:1b:80:01:00",
                    "eth0", "ib0", "ib0.8001", "ib01", "lo"]
    links = json.loads(node("c24-prefix-change.ini", "ip", "-j", "addr",
                            "show", "ib0"))
    assert [(a["local"], a["prefixlen"]) for a in links[0]["addr_info"]] == [
        ("10.0.0.50", 16), ("10.0.0.51", 24)]


def test_management_files():
    text = shell("guide.ini", """
        cat /sys/class/infiniband_mad/abi_version
        cat /sys/class/infiniband_mad/umad2/ibdev
        cat /sys/class/infiniband_mad/umad2/port
        ls /dev/infiniband
        stat -c %F,%a /dev/infiniband/umad0
        cat /dev/infiniband/umad0 2>&1 || true
        ls /sys/class/infiniband_verbs""").splitlines()
    assert text[:3] == ["5", "mlx5_2", "1"]
    assert text[3:15] == ["%s%d" % (n, i) for n in ("issm", "umad", "uverbs")
                          for i in range(4)]
    assert text[15] == "character special file,600"
    assert re.search("No such device or address|Permission denied", text[16])
    assert "uverbs3" in text
    gone = shell("c16-no-umad.ini", "ls /dev/infiniband; "
                 "test ! -e /sys/class/infiniband_mad; "
                 "test ! -e /sys/module/ib_umad; ibstatus | grep -c ACTIVE")
    assert gone.split() == ["uverbs0", "uverbs1", "uverbs2", "uverbs3", "4"]


def test_modules_are_the_nodes_own():
    names = node("guide.ini", "ls", "/sys/module").split()
    rdma = [n for n in names if re.match("ib_|mlx|rdma|nvidia|gdrdrv", n)]
    assert rdma == ["ib_core", "ib_ipoib", "ib_umad", "ib_uverbs",
                    "mlx5_core", "mlx5_ib", "rdma_ucm"]
    assert node("guide.ini", "cat", "/sys/module/ib_core/initstate",
                "/sys/module/ib_core/refcnt") == "live\n7\n"
    if os.path.exists("/sys/module/printk"):
        assert "printk" in names


@as_root
def test_a_gpu_node():
    text = shell("dgx.ini", """
        cat /sys/bus/pci/devices/*/class | grep -c 0x030200
        grep gdrdrv /proc/devices; stat -c %a:%t /dev/gdrdrv
        grep -o ' 580[0-9.]*' /proc/driver/nvidia/version
        ls /proc/driver/nvidia/gpus | wc -l
        ibstatus | grep -c '400 Gb/sec (4X NDR)'
        ibstatus | grep -c 'Ethernet'
        cat /sys/class/infiniband/mlx5_9/ports/1/gid_attrs/ndevs/0
        """).splitlines()
    assert text == ["8", "508 gdrdrv", "666:1fc", " 580.65.06", "8", "8", "2",
                    "enp170s0f0np0"]


def test_the_kernels_own_list_of_functions_agrees_with_sysfs():
    text = shell("dgx.ini", """
        cat /proc/bus/pci/devices; cd /sys/bus/pci/devices
        for f in *; do echo $f $(cat $f/vendor $f/device); done
        """)
    listed = sorted(line.split()[:2] for line in text.splitlines() if "\t" in line)
    there = []
    for bdf, vendor, device in (line.split() for line in text.splitlines() if "\t" not in line):
        bus, slot, function = int(bdf[-7:-5], 16), int(bdf[-4:-2], 16), int(bdf[-1])
        there.append(["%02x%02x" % (bus, slot << 3 | function), vendor[2:] + device[2:]])
    assert len(listed) > 16 and listed == sorted(there)


def test_sick_ports():
    text = node("sick.ini", "ibstatus")
    seen = re.findall(r"base lid:\t (.+)\n\tsm lid:.*\n\tstate:\t\t (.+)\n"
                      r"\tphys state:\t (.+)\n\trate:\t\t (.+)\n"
                      r"\tlink_layer:\t (.+)\n", text)
    ib, edr = "InfiniBand", "100 Gb/sec (4X EDR)"
    assert seen == [
        ("0xf", "4: ACTIVE", "5: LinkUp", edr, ib),
        ("0x0", "2: INIT", "5: LinkUp", edr, ib),
        ("0x364", "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)", ib),
        ("0x0", "1: DOWN", "3: Disabled", "10 Gb/sec (4X SDR)", ib),
        ("0x15", "4: ACTIVE", "5: LinkUp", "25 Gb/sec (1X EDR)", ib),
        ("0x0", "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)", "Ethernet"),
        ("0x0", "4: ACTIVE", "5: LinkUp", edr, ib)]


def test_a_file_that_cannot_be_read():
    script = ("import os\nfd = os.open('/sys/class/infiniband/mlx5_3/ports/1/"
              "rate', os.O_RDONLY)\ntry:\n os.read(fd, 9)\n"
              "except OSError as e:\n print(e.errno)")
    assert node("c13-rate-unreadable.ini", "/usr/bin/python3", "-c",
                script) == "%d\n" % errno.EINVAL
    text = shell("c14-counters.ini", "cd /sys/class/infiniband/mlx5_1/ports/1/"
                 "counters; cat symbol_error link_downed; "
                 "! cat port_rcv_errors 2>&1")
    assert text.startswith("N/A (no PMA)\n3\n")
    assert "Invalid argument" in text


def test_missing_and_raw_values():
    text = shell("guide.ini", "cd /sys/class/infiniband/mlx5_0; ls hca_type "
                 "2>&1; cat ports/1/state ports/1/rate",
                 "--set", "ca mlx5_0.missing=hca_type",
                 "--set", "port.mlx5_0:1.state=9: BROKEN",
                 "--set", "port mlx5_0:1.rate=2.5 Gb/sec (1X SDR)")
    assert "No such file" in text
    assert text.endswith("9: BROKEN\n2.5 Gb/sec (1X SDR)\n")


@pytest.mark.parametrize("ini", sorted(os.listdir(NODES)))
def test_every_node_file_makes_a_node(ini):
    count = shell(ini, "ls /sys/class/infiniband | wc -l", "--quiet")
    assert int(count) >= 4
    if os.geteuid() == 0:
        assert sim(os.path.join(NODES, ini), "--", "true").stderr == ""


def test_a_crowd_of_interfaces():
    text = shell("c27-crowd.ini", "ip -o link | wc -l; ip -4 -o addr | wc -l")
    assert text.split() == ["1003", "10002"]


@as_root
def test_odd_files():
    text = shell("c35-homes.ini", "cd /home; stat -c '%n %F %U %h' "
                 "*/.nccl.conf; readlink link/.nccl.conf")
    assert text.splitlines() == [
        "device/.nccl.conf character special file device 1",
        "fifo/.nccl.conf fifo fifo 1", "folder/.nccl.conf directory folder 2",
        "hard/.nccl.conf regular file root 2",
        "link/.nccl.conf symbolic link link 1", "/etc/shadow"]
    lines = bytes.fromhex(shell("c06-nccl-conf.ini", "od -An -v -tx1 "
                                "/home/alice/.nccl.conf")).split(b"\n")
    assert lines[1] == b"  NCCL_NET_GDR_LEVEL=2"
    assert lines[4] == b"NCCL_IB_TIMEOUT=22\r"
    assert lines[5] == b"NCCL_ALGO=" + b"x" * 1100
    assert lines[6:] == [b"NCCL_BUFFSIZE=4194304"]
