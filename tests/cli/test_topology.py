# SPDX-License-Identifier: MIT
"""`show topology`, degraded PCIe links, and the services of NVSwitches."""

import pytest
from helpers import IP, PLAIN, install_nvml

GPUS = ["GPU%d" % n for n in range(8)]
HCAS = ["mlx5_%d" % n for n in range(10)]
SWITCH = ("--set", "gpu 0000:c1:00.0.class=0x068000",
          "--set", "gpu 0000:c1:00.0.driver=nvidia-nvswitch")


def topology(one):
    return {row["device"]: row for row in one.json("show", "topology", rc=0)
            .doc["show"]["topology"]}


def distance(rows, device, other):
    found = [d["distance"] for d in rows[device]["distances"] if d["device"] == other]
    assert len(found) == 1, (device, other)
    return found[0]


def test_dgx_matrix(node):
    one = node("dgx.ini")
    rows = topology(one)
    assert list(rows) == GPUS + HCAS
    for name, row in rows.items():
        assert [d["device"] for d in row["distances"]] == [n for n in rows if n != name]
    for a in rows:
        for b in rows:
            if a != b:
                assert distance(rows, a, b) == distance(rows, b, a)
    for n, gpu in enumerate(GPUS):
        wanted = ["PIX" if n == k else "NODE" if n // 4 == k // 4 else "SYS" for k in range(8)]
        assert [distance(rows, gpu, hca) for hca in HCAS[:8]] == wanted
        assert rows[gpu]["numa_node"] == n // 4
        assert rows[gpu]["cpus"] == ("0-55,112-167", "56-111,168-223")[n // 4]
    assert [distance(rows, gpu, "mlx5_8") for gpu in GPUS] == ["PXB"] + ["NODE"] * 3 + ["SYS"] * 4
    assert [distance(rows, gpu, "mlx5_9") for gpu in GPUS] == ["SYS"] * 4 + ["PHB"] + ["NODE"] * 3
    assert rows["GPU0"]["pci_path"] == (
        "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1b:00.0")
    assert rows["GPU0"]["link"] == {
        "width": 16, "max_width": 16, "slot_width": 16,
        "speed_GTps": 32, "max_speed_GTps": 32, "slot_speed_GTps": 32}


def test_dgx_lists(node):
    one = node("dgx.ini")
    rows = topology(one)
    assert [rows[gpu]["nearest_ports"] for gpu in GPUS] == [["mlx5_%d:1" % n] for n in range(8)]
    assert {rows[gpu]["ucx_net_devices"] for gpu in GPUS} == {
        "mlx5_%d:1" % n for n in range(8)}
    assert {(tuple(rows[hca]["nearest_ports"]), rows[hca]["ucx_net_devices"])
            for hca in HCAS} == {((), None)}
    # as in the profile: with an address, the netdev for tcp follows
    one.shell("ip addr add 10.0.0.50/24 dev ib0")
    assert topology(one)["GPU5"]["ucx_net_devices"] == "mlx5_5:1,ib0"
    one.write("/etc/nodeprep/nodeprep.conf", "[ucx]\nprofile = guide\n[ports]\nignore = mlx5_5\n")
    rows = topology(one)
    assert rows["GPU4"]["ucx_net_devices"] == "mlx5_4:1"
    assert rows["GPU5"]["nearest_ports"] == ["mlx5_4:1", "mlx5_6:1", "mlx5_7:1"]


def test_text(node):
    lines = node("dgx.ini").nodeprep("show", "topology").stdout.splitlines()
    assert lines[0].split() == GPUS + HCAS + ["CPU", "affinity", "NUMA", "affinity"]
    assert lines[1].split() == (
        ["GPU0", "X"] + ["NODE?"] * 3 + ["SYS?"] * 4 + ["PIX"] + ["NODE"] * 3 + ["SYS"] * 4
        + ["PXB", "SYS", "0-55,112-167", "0"])
    assert [line.split()[0] for line in lines[1:19]] == GPUS + HCAS
    # every column begins where its head does
    for device in GPUS + HCAS:
        at = lines[0].index(device + " ")
        assert all(line[at] != " " and line[at - 1] == " " for line in lines[1:19])
    for word in ("PIX", "PXB", "PHB", "NODE", "SYS", "NV#"):
        assert any(line.startswith(word + " ") for line in lines), word
    assert "mlx5_3  0000:5e:00.0  PCIe x16 of x16, 32.0 of 32.0 GT/s" in lines
    assert "GPU7    UCX_NET_DEVICES=mlx5_7:1" in lines


def test_no_gpu(guide):
    rows = topology(guide)
    assert list(rows) == HCAS[:4]
    text = guide.nodeprep("show", "topology").stdout
    assert "mlx5_3" in text and "worker" not in text


def test_nothing_at_all(node):
    one = node("guide.ini", "--set", "node.infiniband_class=no", "--without", "netdev ib0")
    assert one.json("show", "topology", rc=0).doc["show"]["topology"] == []
    assert one.nodeprep("show", "topology").stdout == "no GPUs and no HCAs\n"


def test_not_on_pci(node):
    """As a software HCA: there is no link to a device."""
    one = node("dgx.ini")
    one.shell("rm /sys/class/infiniband/mlx5_0/device")
    rows = topology(one)
    assert rows["mlx5_0"]["pci_address"] is None and rows["mlx5_0"]["pci_path"] is None
    assert {d["distance"] for d in rows["mlx5_0"]["distances"]} == {None}
    assert rows["GPU0"]["nearest_ports"] == ["mlx5_1:1", "mlx5_2:1", "mlx5_3:1"]
    lines = one.nodeprep("show", "topology").stdout.splitlines()
    assert "mlx5_0  not on PCI" in lines and lines[1].split()[9] == "?"


def test_a_gpu_of_a_virtual_machine_is_left_out(node):
    rows = topology(node("dgx.ini", "--set", "gpu 0000:1b:00.0.driver=vfio-pci"))
    assert list(rows) == GPUS[:7] + HCAS
    assert rows["GPU0"]["pci_address"] == "0000:43:00.0"


def test_management_hcas_are_in_no_list(node):
    one = node("c36-nvswitch.ini")
    rows = topology(one)
    assert list(rows) == GPUS + HCAS[:8]
    text = one.nodeprep("show", "topology").stdout
    for n in range(8, 12):
        assert "mlx5_%d" % n not in text
    # nor do their links count
    one = node("c36-nvswitch.ini", "--set", "ca mlx5_9.current_link_width=1")
    assert one.json("check", rc=None).checks(id="pcie") == []


# ---- NVLink ----

# where the fake's NVML says that the GPUs of dgx.ini are
PCI = ",".join("0000:%s:00.0" % bus for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df"))


def nvlinks(one, fake):
    """(links of each GPU, those of each pair of GPUs, text)"""
    install_nvml(one, None if fake is None else "gpus=8 pci=%s %s" % (PCI, fake))
    rows = topology(one)
    pairs = {(a, d["device"]): d["nvlink"] for a in GPUS for d in rows[a]["distances"]
             if d["device"] in GPUS}
    assert all(pairs[a, b] == pairs[b, a] for a, b in pairs)
    for name, row in rows.items():
        # no HCA has NVLink, which needs nobody to say so
        assert (row["nvlink"] is None) is (name in HCAS)
        assert {d["nvlink"] for d in row["distances"] if {name, d["device"]} & set(HCAS)} <= {0}
        if name in GPUS:
            assert (row["nvlink"]["active"] is None) is (row["nvlink"]["reason"] is not None)
    # what NVLink connects is as far away on PCIe as ever
    assert distance(rows, "GPU0", "GPU1") == "NODE" and distance(rows, "GPU0", "GPU7") == "SYS"
    text = one.nodeprep("show", "topology").stdout
    return [rows[gpu]["nvlink"]["active"] for gpu in GPUS], pairs, text


def first_row(text):
    """Of the table: GPU0 to each GPU."""
    return text.splitlines()[1].split()[1:9]


@pytest.mark.parametrize("fake, active, cells", [
    # NVSwitches: any two GPUs, as many as the one has that has fewer
    ("far=switch", 18, ["X"] + ["NV18"] * 7),
    ("far=switch links=12 active=12", 12, ["X"] + ["NV12"] * 7),
    ("far=switch active=1", 1, ["X"] + ["NV1"] * 7),
    # the driver does not say whether they are peers: the far ends do
    ("far=switch p2p=6", 18, ["X"] + ["NV18"] * 7),
    ("far=switch p2pfails=3", 18, ["X"] + ["NV18"] * 7),
    # it lets no two use it, as without the fabric manager
    ("far=switch p2p=5", 18, ["X"] + ["NODE"] * 3 + ["SYS"] * 4),
    # bridges between two
    ("far=gpu links=4 active=4", 4, ["X", "NV4"] + ["NODE"] * 2 + ["SYS"] * 4),
    ("far=gpu links=4 active=4 p2p=6", 4, ["X", "NV4"] + ["NODE"] * 2 + ["SYS"] * 4),
    # a virtual machine that is not shown what is at the far ends
    ("far=hidden", 18, ["X"] + ["NV18"] * 7),
    ("far=hidden p2p=5", 18, ["X"] + ["NODE"] * 3 + ["SYS"] * 4),
    # ... and is not told who are peers
    ("far=hidden p2p=6", 18, ["X"] + ["NODE?"] * 3 + ["SYS?"] * 4),
    # none
    ("far=switch active=0", 0, ["X"] + ["NODE"] * 3 + ["SYS"] * 4),
    ("links=0", 0, ["X"] + ["NODE"] * 3 + ["SYS"] * 4),
])
def test_nvlink(node, fake, active, cells):
    links, pairs, text = nvlinks(node("dgx.ini"), fake)
    assert links == [active] * 8
    wanted = [int(cell[2:]) if cell.startswith("NV") else None if cell.endswith("?") else 0
              for cell in cells[1:]]
    assert [pairs["GPU0", gpu] for gpu in GPUS[1:]] == wanted
    assert first_row(text) == cells
    assert "NVLink is not known" not in text
    assert ", 32.0 of 32.0 GT/s, %d NVLink%s active\n" % (active, "" if active == 1 else "s") in text


def test_links_that_are_down(node):
    links, pairs, text = nvlinks(node("dgx.ini"), "far=switch first=16")
    assert links == [16] + [18] * 7
    assert {n for pair, n in pairs.items() if "GPU0" in pair} == {16}
    assert {n for pair, n in pairs.items() if "GPU0" not in pair} == {18}
    assert first_row(text) == ["X"] + ["NV16"] * 7


@pytest.mark.parametrize("fake, reason", [
    (None, "libnvidia-ml.so.1"), ("init=9", "Driver Not Loaded"), ("count=999", "counting the GPUs"),
    ("state=999", "does not tell"), ("hang=init", "no verdict within 2 s"),
])
def test_unknown_is_not_none(node, fake, reason):
    one = node("dgx.ini")
    install_nvml(one, fake and "gpus=8 pci=%s %s" % (PCI, fake))
    row = one.json("show", "topology", "--timeout", "2", rc=0).doc["show"]["topology"][0]
    assert row["nvlink"]["active"] is None and reason in row["nvlink"]["reason"]
    assert {d["nvlink"] for d in row["distances"] if d["device"] in GPUS} == {None}
    text = one.nodeprep("show", "topology", "--timeout", "2").stdout
    assert first_row(text) == ["X"] + ["NODE?"] * 3 + ["SYS?"] * 4
    assert text.count("NVLink is not known: " + row["nvlink"]["reason"] + "\n") == 1
    assert "GT/s, NVLink not known\n" in text


def test_a_gpu_that_nvml_does_not_list(node):
    one = node("dgx.ini")
    install_nvml(one, "gpus=7 far=switch pci=" + PCI)
    rows = topology(one)
    assert [rows[gpu]["nvlink"]["active"] for gpu in GPUS] == [18] * 7 + [None]
    assert "not list" in rows["GPU7"]["nvlink"]["reason"]
    by_name = {d["device"]: d["nvlink"] for d in rows["GPU0"]["distances"]}
    assert by_name["GPU1"] == 18 and by_name["GPU7"] is None


def test_nvml_is_asked_once_and_for_gpus_alone(node):
    """nodeprep-selftest starts on a node with GPUs, once even where everything is shown."""
    def starts(one, *argv):
        one.run("strace", "-f", "-qq", "-s", "300", "-o", "/tmp/trace", "-e",
                "trace=execve,execveat", PLAIN, "show", *argv)
        return [line for line in one.read("/tmp/trace").decode().splitlines()
                if '"--libraries"' in line]

    one = node("dgx.ini")
    install_nvml(one, "gpus=8 far=switch pci=" + PCI)
    line, = starts(one, "topology")
    assert '"--brief", "--nvml"' in line
    line, = starts(one)
    assert "--brief" not in line
    rows = {row["device"]: row for row in one.json("show", rc=0).doc["show"]["topology"]}
    assert rows["GPU3"]["nvlink"] == {"active": 18, "reason": None}
    assert starts(node("guide.ini"), "topology") == []


# ---- links ----

def pcie(one, *argv):
    return [(c["target"], c["code"], c["status"])
            for c in one.json("check", *argv, rc=None).checks(id="pcie")]


def test_healthy_links_are_no_news(node):
    assert pcie(node("dgx.ini")) == []


@pytest.mark.parametrize("change, want", [
    (["ca mlx5_3.current_link_width=8"], [("mlx5_3", "pcie.width_degraded", "warn")]),
    (["ca mlx5_3.current_link_speed=16.0 GT/s PCIe"],
     [("mlx5_3", "pcie.speed_degraded", "warn")]),
    (["gpu 0000:52:00.0.current_link_width=8"],
     [("0000:52:00.0", "pcie.width_degraded", "warn")]),
    # idle
    (["gpu 0000:52:00.0.current_link_speed=2.5 GT/s PCIe"], []),
    # the slot is the limit
    (["ca mlx5_3.current_link_width=8", "ca mlx5_3.slot_max_link_width=8"], []),
    (["ca mlx5_3.current_link_speed=16.0 GT/s PCIe",
      "ca mlx5_3.slot_max_link_speed=16.0 GT/s PCIe"], []),
    # a virtual function
    (["ca mlx5_3.current_link_speed=Unknown", "ca mlx5_3.current_link_width=0"], []),
    # Ethernet is not ours
    (["ca mlx5_8.current_link_width=8"], []),
])
def test_links(node, change, want):
    options = [word for key in change for word in ("--set", key)]
    assert pcie(node("dgx.ini", *options)) == want


def test_apply_says_it_too_and_is_ready(node):
    one = node("dgx.ini", "--set", "ca mlx5_3.current_link_width=8")
    done = one.json("apply", "--ip", IP, "--timeout", "0", "--no-selftest", "--no-probe", rc=0)
    check = done.check("pcie.width_degraded", "mlx5_3")
    assert "0000:5e:00.0" in check["message"] and "8 lanes where 16" in check["message"]
    assert "PCIe x8 of x16, 32.0 of 32.0 GT/s" in one.nodeprep("show", "topology").stdout


# ---- services ----

def services(one):
    return [(c["target"], c["code"], c["status"])
            for c in one.json("check", rc=None).checks(id="gpu")]


FABRIC, IMEX = "nvidia-fabricmanager", "nvidia-imex"
RUNS = (FABRIC, "gpu.fabricmanager_running", "ok")
DOWN = (FABRIC, "gpu.fabricmanager_down", "warn")


def running(name, value):
    return ("--set", "service %s.running=%s" % (name, value))


def test_no_nvswitch_no_fabric_manager(node):
    assert services(node("dgx.ini")) == []
    assert services(node("dgx.ini", *running(FABRIC, "no"))) == []


def test_fabric_manager(node):
    assert services(node("dgx.ini", *SWITCH, *running(FABRIC, "yes"))) == [RUNS]
    assert services(node("c36-nvswitch.ini", *running(FABRIC, "no"))) == [DOWN]
    one = node("dgx.ini", *SWITCH, *running(FABRIC, "no"))
    assert services(one) == [DOWN]
    assert len(topology(one)) == 18  # a switch is no GPU
    # outside its unit, as in a container of this machine
    one.text("cp", "/bin/sleep", "/tmp/nv-fabricmanager")
    one.spawn("/tmp/nv-fabricmanager", "600")
    assert services(one) == [RUNS]


def test_what_a_container_cannot_see_is_unknown(node):
    one = node("c36-nvswitch.ini")
    assert services(one) == [(FABRIC, "gpu.service_unknown", "unknown")]


@pytest.mark.parametrize("state, nodes, want", [
    ("yes", "10.0.0.1\n10.0.0.2\n", [(IMEX, "gpu.imex_running", "ok")]),
    ("no", "10.0.0.1\n", [(IMEX, "gpu.imex_down", "warn")]),
    ("no", "# nobody\n\n", []), ("no", "", []), ("yes", "", []),
])
def test_imex(node, state, nodes, want):
    one = node("dgx.ini", *running(IMEX, state))
    one.shell("mkdir /etc/nvidia-imex")
    one.write("/etc/nvidia-imex/nodes_config.cfg", nodes)
    assert services(one) == want


def test_imex_channels(node):
    one = node("dgx.ini", *running(IMEX, "no"))
    one.shell("mkdir /dev/nvidia-caps-imex-channels")
    assert services(one) == []
    one.shell("touch /dev/nvidia-caps-imex-channels/channel0")
    assert services(one) == [(IMEX, "gpu.imex_idle", "ok")]
