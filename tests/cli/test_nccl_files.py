# SPDX-License-Identifier: MIT
"""Files that are shared with others: own keys set, every other byte kept (C6, C39)."""

import re

import pytest
from helpers import IP, QUICK

ALICE = "/home/alice/.nccl.conf"


def apply_for_alice(node, rc=0):
    return node.json("apply", "--ip", IP, "--user", "alice", *QUICK, rc=rc)


def test_c6_every_other_byte_is_kept(node):
    one = node("c06-nccl-conf.ini")
    before = one.read(ALICE)
    lines = before.split(b"\n")
    assert lines[4].endswith(b"\r") and len(lines[5]) > 1024 and not before.endswith(b"\n")
    done = apply_for_alice(one)
    assert one.read(ALICE) == before + b"\nNCCL_SOCKET_IFNAME=ib0\n"
    # the broken lines, by number, each with its own reason; the comment is none
    found = {c["target"]: c for c in done.checks(id="file", status="warn")
             if c["target"] != ALICE}
    assert sorted(found) == ["%s:%d" % (ALICE, line) for line in (2, 3, 4, 5, 6)]
    for line, word in ((2, "blank"), (3, "export"), (4, "quot"), (5, "carriage return"),
                       (6, "1023")):
        check = found["%s:%d" % (ALICE, line)]
        assert word in (check["message"] + check["hint"]).lower(), check
        assert check["code"].startswith("nccl.") and check["hint"]
    assert len({c["code"] for c in found.values()}) == 5
    assert apply_for_alice(one).doc["actions"] == []
    assert one.read(ALICE) == before + b"\nNCCL_SOCKET_IFNAME=ib0\n"


@pytest.mark.parametrize("before, after", [
    (b"", b"NCCL_SOCKET_IFNAME=ib0\n"),
    (b"\n", b"\nNCCL_SOCKET_IFNAME=ib0\n"),
    (b"NCCL_DEBUG=WARN", b"NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=ib0\n"),
    (b"NCCL_SOCKET_IFNAME=eth0\n", b"NCCL_SOCKET_IFNAME=ib0\n"),
    (b"NCCL_SOCKET_IFNAME=eth0", b"NCCL_SOCKET_IFNAME=ib0"),
    (b"A=1\nNCCL_SOCKET_IFNAME=eth0\nB=2\n", b"A=1\nNCCL_SOCKET_IFNAME=ib0\nB=2\n"),
    # a comment and other names that merely look alike stay
    (b"#NCCL_SOCKET_IFNAME=eth0\nNCCL_SOCKET_IFNAMES=x\n",
     b"#NCCL_SOCKET_IFNAME=eth0\nNCCL_SOCKET_IFNAMES=x\nNCCL_SOCKET_IFNAME=ib0\n"),
    (b"\xff\xfe\x80=\x01\nA=\xe9\n", b"\xff\xfe\x80=\x01\nA=\xe9\nNCCL_SOCKET_IFNAME=ib0\n"),
    (b"NCCL_IB_TIMEOUT=22\r\n", None),
])
def test_forms_of_the_file(guide, before, after):
    guide.write("/etc/nccl.conf", before)
    done = guide.apply()
    content = guide.read("/etc/nccl.conf")
    if after is not None:
        assert content == after
    else:
        assert content.startswith(before)
    # what NCCL reads: the last line of the key, whole and exact
    values = re.findall(rb"^NCCL_SOCKET_IFNAME=(.*)$", content, re.M)
    assert values == [b"ib0"]
    assert ("/etc/nccl.conf" in [a[1] for a in done.actions()]) is (content != before)
    assert guide.apply().doc["actions"] == []
    assert guide.read("/etc/nccl.conf") == content


def test_a_key_given_twice(guide):
    """NCCL keeps the first or the last by version: both have to say the same."""
    guide.write("/etc/nccl.conf", "NCCL_SOCKET_IFNAME=eth0\nA=1\nNCCL_SOCKET_IFNAME=eth1\n")
    guide.apply()
    content = guide.read("/etc/nccl.conf")
    assert set(re.findall(rb"^NCCL_SOCKET_IFNAME=(.*)$", content, re.M)) == {b"ib0"}
    assert b"A=1\n" in content
    assert guide.apply().doc["actions"] == []


def test_a_file_that_is_right_is_not_rewritten(guide):
    guide.write("/etc/nccl.conf", "# mine\nNCCL_SOCKET_IFNAME=ib0\nNCCL_DEBUG=INFO\n")
    before = guide.tree("/etc/nccl.conf")
    done = guide.apply()
    assert "/etc/nccl.conf" not in [a[1] for a in done.actions()]
    assert guide.tree("/etc/nccl.conf") == before


def test_c39_a_vendors_lines(node):
    one = node("c39-vendor-conf.ini")
    before = one.read("/etc/nccl.conf")
    assert before.endswith(b"NCCL_SOCKET_IFNAME=eth0\n")
    one.apply()
    after = before.replace(b"NCCL_SOCKET_IFNAME=eth0", b"NCCL_SOCKET_IFNAME=ib0")
    assert one.read("/etc/nccl.conf") == after
    # a later rewrite by the vendor's service is noticed, and put right
    one.write("/etc/nccl.conf", before)
    check = one.json("check", "--ip", IP, rc=1)
    assert [a[1] for a in check.actions()] == ["/etc/nccl.conf"]
    assert check.doc["ready"] is False
    one.apply()
    assert one.read("/etc/nccl.conf") == after


def test_values_of_the_configuration(guide):
    guide.write("/etc/nodeprep/nodeprep.conf",
                "[nccl]\nsocket_ifname = =ib0,eth0\nib_hca = =mlx5_0:1\n")
    guide.apply()
    assert guide.read("/etc/nccl.conf") == \
        b"NCCL_SOCKET_IFNAME==ib0,eth0\nNCCL_IB_HCA==mlx5_0:1\n"


def test_a_restriction_that_is_no_longer_wanted(guide):
    """[ports] devices kept ports out of NCCL; without it all are in again."""
    guide.write("/etc/nodeprep/nodeprep.conf", "[ports]\ndevices = mlx5_0\n")
    guide.apply()
    assert b"NCCL_IB_HCA=mlx5_0:1\n" in guide.read("/etc/nccl.conf")
    guide.text("rm", "/etc/nodeprep/nodeprep.conf")
    guide.apply()
    hca = re.findall(rb"^NCCL_IB_HCA=(.*)$", guide.read("/etc/nccl.conf"), re.M)
    assert hca in ([], [b"=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1"])
    assert guide.apply().doc["actions"] == []


def test_an_admins_own_hca_list_is_named(guide):
    """NCCL_IB_HCA by hand: nodeprep may not silently leave NCCL without the wanted ports."""
    guide.write("/etc/nccl.conf", "NCCL_IB_HCA=mlx5_9\n")
    done = guide.apply()
    content = guide.read("/etc/nccl.conf")
    assert b"NCCL_IB_HCA=mlx5_9\n" not in content or "NCCL_IB_HCA" in str(done.doc["checks"])


def test_selinux_style_attributes_survive(guide):
    """Extended attributes of a replaced file stay with it."""
    guide.write("/etc/nccl.conf", "NCCL_DEBUG=WARN\n")
    set_it = guide.run("python3", "-c", "import os; os.setxattr('/etc/nccl.conf', 'user.site', b'1')")
    if set_it.rc != 0:
        pytest.skip("the file system of this node has no user attributes: " + set_it.stderr[-80:])
    guide.apply()
    assert guide.text("python3", "-c", "import os; print(os.listxattr('/etc/nccl.conf'))") == \
        "['user.site']\n"


@pytest.mark.parametrize("path", [ALICE, "/etc/nccl.conf"])
def test_a_file_that_has_no_room_for_a_line(guide, path):
    """Written, it would be larger than what the next run reads."""
    guide.write(path, b"NCCL_DEBUG=WARN\n" * (256 * 1024 // 16))
    guide.text("chown", "--reference=" + path.rsplit("/", 1)[0], path)
    for _ in range(2):
        done = apply_for_alice(guide, rc=1)
        assert done.failed() == [("file.home_refused" if path == ALICE else "file.refused", path)]
        assert path not in [a["target"] for a in done.doc["actions"]]
        assert len(guide.read(path)) == 256 * 1024
    # where its line is there already, nothing is amiss
    guide.write(path, b"NCCL_SOCKET_IFNAME=ib0\n" + b"\n" * (256 * 1024 - 23))
    assert apply_for_alice(guide).failed() == []
