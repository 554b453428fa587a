# SPDX-License-Identifier: MIT
"""nodeprep revert: back to before the first apply, to the byte; what others did stays."""

import json

import pytest
from helpers import FILES, IP, PYTHON, QUICK

STATE = ["/run/nodeprep", "/var/lib/nodeprep"]
RECORD = "/var/lib/nodeprep/record.json"
JOURNAL = "/var/lib/nodeprep/journal.json"
XATTRS = """
import json, os, sys
print(json.dumps({p: {n: os.getxattr(p, n).hex() for n in sorted(os.listxattr(p))}
                  for p in sys.argv[1:] if os.path.exists(p)}))
"""
# owner rw, user 1000 r, group r, mask r, other nothing (linux/posix_acl_xattr.h)
ACL = ("02000000" "0100" "0600" "ffffffff" "0200" "0400" "e8030000" "0400" "0400" "ffffffff"
       "1000" "0400" "ffffffff" "2000" "0000" "ffffffff")


def snapshot(one):
    """All that a revert has to bring back; an inode is another one."""
    state = one.state(but=STATE)
    state["tree"] = {path: facts[:6] for path, facts in state["tree"].items()}
    state["mode"] = one.read("/sys/class/net/ib0/mode").split()
    state["content"] = {path: one.read(path) for path in FILES}
    state["xattrs"] = json.loads(one.text(PYTHON, "-c", XATTRS, *FILES))
    return state


def run_python(one, code, *argv):
    one.text(PYTHON, "-c", code, *argv)


def revert(one, *argv, rc=0):
    return one.json("revert", *argv, rc=rc)


def prepare(one):
    """Files with everything that a file can have."""
    one.write("/etc/nccl.conf", "NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=eth0")
    one.text("chown", "alice:alice", "/etc/nccl.conf")
    one.text("chmod", "0640", "/etc/nccl.conf")
    run_python(one, "import os,sys; os.setxattr(sys.argv[1], 'system.posix_acl_access', "
               "bytes.fromhex(sys.argv[2]))", "/etc/nccl.conf", ACL)
    one.text("touch", "-d", "2020-02-03 04:05:06.123456789", "/etc/nccl.conf")
    one.write("/root/.nccl.conf", "# empty of ours\n")
    one.text("touch", "-d", "1999-12-31 23:59:59.5", "/root/.nccl.conf")


def test_apply_and_back(node):
    one = node("guide.ini")
    prepare(one)
    before = snapshot(one)
    assert "system.posix_acl_access" in before["xattrs"]["/etc/nccl.conf"]
    applied = one.apply()
    assert snapshot(one) != before
    done = revert(one)
    assert done.doc["changed"] is True and done.doc["ready"] is True, done
    assert done.statuses() == {"done"}
    assert len(done.doc["actions"]) == len(applied.doc["actions"])
    # last first
    assert [a["target"] for a in done.doc["actions"]] == [
        a["target"] for a in reversed(applied.doc["actions"])]
    assert snapshot(one) == before
    # nothing is remembered, and nothing of ours lies about
    assert RECORD not in one.tree("/var/lib/nodeprep")
    assert JOURNAL not in one.tree("/var/lib/nodeprep")
    again = revert(one)
    assert again.doc["actions"] == [] and again.doc["changed"] is False
    assert one.nodeprep("revert").stdout == "nodeprep revert: nothing to revert\n"
    assert snapshot(one) == before


def test_nothing_was_ever_applied(guide):
    before = guide.tree("/var/lib", "/run")
    done = revert(guide)
    assert done.doc["actions"] == [] and done.doc["changed"] is False
    after = guide.tree("/var/lib", "/run")
    assert set(after) - set(before) == {"/run/nodeprep", "/run/nodeprep/lock"}


def test_a_removed_file_comes_back_whole(node):
    """nodeprep itself removes a file; what it was is in the record alone."""
    one = node("guide.ini")
    one.apply()
    path = "/etc/security/limits.d/nodeprep.conf"
    run_python(one, "import os,sys; os.setxattr(sys.argv[1], 'system.posix_acl_access', "
               "bytes.fromhex(sys.argv[2]))", path, ACL)
    one.text("chown", "0:1000", path)
    one.text("touch", "-d", "2021-01-01 01:01:01.25", path)
    one.write("/etc/nodeprep/nodeprep.conf", "[limits]\nmemlock = keep\n")
    before = snapshot(one)
    removed = one.apply()
    assert ("file.remove", path, "absent") in removed.actions(), removed
    revert(one, "--last")
    assert snapshot(one) == before


def test_mode_and_mtu(node):
    one = node("guide.ini")
    one.write("/etc/nodeprep/nodeprep.conf",
              "[netdev ib0]\naddress = 10.0.0.50/24\nmode = datagram\nmtu = 2044\n")
    before = snapshot(one)
    one.json("apply", *QUICK, rc=0)
    assert one.links()["ib0"]["mtu"] == 2044
    assert one.read("/sys/class/net/ib0/mode").split() == [b"datagram"]
    done = revert(one)
    assert "netdev.mode" in {a["id"] for a in done.doc["actions"]}
    assert snapshot(one) == before


@pytest.mark.parametrize("promote", [0, 1])
def test_addresses_come_back_in_their_order(node, promote):
    one = node("c24-prefix-change.ini")
    one.text("ip", "addr", "add", "10.0.9.9/16", "dev", "ib0")
    one.shell("echo %d >/proc/sys/net/ipv4/conf/ib0/promote_secondaries" % promote)
    before = snapshot(one)
    one.apply()
    done = revert(one)
    for link in ("ib0",):
        assert one.links()[link]["addresses"] == before["links"][link]["addresses"], done


@pytest.mark.parametrize("promote", [0, 1])
def test_an_address_of_others_stays(node, promote):
    """It is a secondary of ours: the kernel would take it along."""
    one = node("guide.ini")
    one.shell("echo %d >/proc/sys/net/ipv4/conf/ib0/promote_secondaries" % promote)
    one.apply()
    one.text("ip", "addr", "add", "10.0.0.99/24", "brd", "+", "dev", "ib0")
    done = revert(one)
    assert one.ipv4() == ["10.0.0.99/24"] and one.links()["ib0"]["up"], done
    assert "10.0.0.99/24" in done.check("revert.link_kept", "ib0")["message"]
    # once it is gone the link goes down as well
    one.text("ip", "addr", "del", "10.0.0.99/24", "dev", "ib0")
    done = revert(one)
    assert done.actions() == [("netdev.link", "ib0", "down")]
    assert not one.links()["ib0"]["up"]
    assert revert(one).doc["actions"] == []


@pytest.mark.parametrize("other", [False, True], ids=["free", "taken"])
def test_a_netdev_with_another_name(guide, other):
    """Its address is taken back where it is now; who has the old name is somebody else."""
    guide.apply()
    guide.shell("ip link set ib0 down; ip link set ib0 name ibx; ip link set ibx up")
    if other:
        guide.shell("ip tuntap add dev ib0 mode tap; ip addr add 10.0.0.50/24 dev ib0")
    done = revert(guide)
    assert ("netdev.address_del", "ibx") in [a[:2] for a in done.actions()], done
    links = guide.links()
    assert links["ibx"]["up"] is False
    assert [a for a in links["ibx"]["addresses"] if "." in a[0]] == []
    if other:
        assert guide.ipv4("ib0") == [IP]
    assert guide.read(RECORD) is None


def test_edited_files(guide):
    guide.write("/etc/nccl.conf", "NCCL_SOCKET_IFNAME=eth0\n")
    guide.apply()
    guide.write("/etc/nccl.conf", "# theirs\nNCCL_SOCKET_IFNAME=ib0\nNCCL_DEBUG=INFO")
    guide.write("/root/.nccl.conf", "NCCL_SOCKET_IFNAME=eth7\n")
    guide.shell("echo '# mine' >>/etc/profile.d/nodeprep-ucx.sh")
    mine = guide.read("/etc/profile.d/nodeprep-ucx.sh")
    done = revert(guide)
    assert done.doc["ready"] is True and done.rc == 0
    assert guide.read("/etc/nccl.conf") == b"# theirs\nNCCL_SOCKET_IFNAME=eth0\nNCCL_DEBUG=INFO"
    assert guide.read("/root/.nccl.conf") == b"NCCL_SOCKET_IFNAME=eth7\n"
    assert guide.read("/etc/profile.d/nodeprep-ucx.sh") == mine
    kept = {c["target"] for c in done.checks(code="revert.edited", status="warn")}
    assert kept == {"/root/.nccl.conf", "/etc/profile.d/nodeprep-ucx.sh"}
    again = revert(guide)
    assert again.doc["changed"] is False and again.doc["actions"] == []


def test_people_between_two_runs(guide):
    """What came between two runs is what there was before the second: a line, and another
    value for a key that nodeprep then set again."""
    guide.apply()
    guide.shell("echo NCCL_DEBUG=INFO >>/etc/nccl.conf")
    guide.json("apply", "--ip", "10.0.0.51/24", "--ifname", "ib0", *QUICK, rc=0)
    guide.shell("sed -i s/ib0/eth0/ /etc/nccl.conf")
    guide.apply()
    revert(guide)
    assert guide.read("/etc/nccl.conf") == b"NCCL_SOCKET_IFNAME=eth0\nNCCL_DEBUG=INFO\n"
    assert guide.read("/root/.nccl.conf") is None and guide.ipv4() == []


def test_last_run_alone(guide):
    before = snapshot(guide)
    guide.apply()
    first = snapshot(guide)
    guide.json("apply", "--ip", IP, "--ip", "10.0.0.51/24", *QUICK, rc=0)
    done = revert(guide, "--last")
    assert done.actions() == [("netdev.address_del", "ib0", "")]
    assert snapshot(guide) == first
    again = revert(guide, "--last")
    assert again.doc["actions"] == [] and again.doc["changed"] is False
    revert(guide)
    assert snapshot(guide) == before


def test_a_run_that_changes_nothing_is_no_last_run(guide):
    before = snapshot(guide)
    guide.apply()
    record = guide.tree(RECORD)
    assert guide.apply().doc["changed"] is False
    assert guide.tree(RECORD) == record
    revert(guide, "--last")
    assert snapshot(guide) == before


def test_dry_run(guide):
    guide.apply()
    before = guide.state()
    done = revert(guide, "--dry-run")
    assert done.statuses() == {"planned"} and done.doc["changed"] is False
    assert guide.state() == before
    planned = done.actions()
    assert revert(guide).actions() == planned


def test_a_revert_that_fails_is_taken_back(guide):
    guide.apply()
    guide.text("mount", "--bind", "/etc/nodeprep", "/etc/nodeprep")
    guide.text("mount", "-o", "remount,bind,ro", "/etc/nodeprep")
    before = snapshot(guide)
    done = revert(guide, rc=4)
    statuses = [a["status"] for a in done.doc["actions"]]
    at = statuses.index("failed")
    assert done.doc["actions"][at]["target"] == "/etc/nodeprep/ucx.env"
    assert set(statuses[:at]) == {"undone"} and set(statuses[at + 1:]) == {"not_run"}
    after = snapshot(guide)
    for state in (before, after):
        # written anew
        del state["tree"]["/etc/security/limits.d/nodeprep.conf"][5:]
    assert after == before
    guide.text("umount", "/etc/nodeprep")
    assert revert(guide).doc["ready"] is True
    assert guide.read("/etc/nodeprep/ucx.env") is None


def test_a_home_that_is_not_there(node):
    """The rest is taken back, and the word on it is no success."""
    one = node("guide.ini")
    one.apply("--user", "alice")
    one.text("mv", "/home/alice", "/home/elsewhere")
    done = revert(one, rc=1)
    assert done.doc["ready"] is False
    assert done.check("revert.file_refused", "/home/alice/.nccl.conf")["status"] == "fail"
    assert one.ipv4() == [] and one.read("/etc/nccl.conf") is None
    one.text("mv", "/home/elsewhere", "/home/alice")
    done = revert(one)
    assert done.actions() == [("file.remove", "/home/alice/.nccl.conf", "absent")]


def test_the_default_route_is_not_cut(guide):
    guide.apply()
    guide.text("ip", "route", "replace", "default", "via", "10.0.0.1", "dev", "ib0")
    before = guide.state()
    done = revert(guide, rc=3)
    assert done.error["code"] == "netdev.cuts_default_route"
    assert guide.state() == before
    assert revert(guide, "--force").doc["ready"] is True
    assert guide.ipv4() == []


def test_not_root(guide):
    for verb in ("revert", "confirm"):
        done = guide.json(verb, rc=3, user="alice")
        assert done.error["code"] == "privilege.root"


def test_a_broken_configuration_is_no_hindrance(guide):
    guide.apply()
    guide.write("/etc/nodeprep/nodeprep.conf", "[nonsense]\n")
    assert revert(guide).doc["changed"] is True
    assert guide.ipv4() == []
