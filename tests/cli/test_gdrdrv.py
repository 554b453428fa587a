# SPDX-License-Identifier: MIT
"""C20, C21: the device node of gdrdrv. No driver answers behind it in a simulated node."""

import os
import stat

import pytest
from helpers import IP, QUICK

NODE = "/dev/gdrdrv"
LOAD, PROBE = "/etc/modules-load.d/nodeprep.conf", "/etc/modprobe.d/nodeprep.conf"
GUIDE = "options gdrdrv dbg_enabled=0 info_enabled=0 use_persistent_mapping=1"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="device numbers need root")


def node_of(one):
    """Type and number, mode, owner of /dev/gdrdrv."""
    return one.text("stat", "-c", "%F %t:%T %a %u:%g", NODE).strip()


def made(done):
    return [(a["from"], a["to"], a["status"]) for a in done.doc["actions"]
            if a["id"] == "gdrdrv.node"]


def apply(one, rc=0):
    return one.json("apply", "--ip", IP, *QUICK, rc=rc)


def test_c20_the_node_is_made_once(node):
    one = node("c20-gdrdrv-no-node.ini")
    check = one.json("check", "--ip", IP, rc=1)
    assert check.check("gdrcopy.node_missing", "gdrdrv")["status"] == "warn"
    plan = one.json("plan", "--ip", IP, rc=0)
    assert made(plan) == [("absent", "c 508:0 mode 0666 owner 0:0", "planned")]
    done = apply(one)
    assert made(done) == [("absent", "c 508:0 mode 0666 owner 0:0", "done")]
    assert node_of(one) == "character special file 1fc:0 666 0:0"
    # C21: nobody answers, and that is never ok
    assert done.check("gdrcopy.open_failed", "gdrdrv")["status"] == "warn"
    assert not [c for c in done.checks(target="gdrdrv") if c["status"] == "ok"]
    assert one.read(LOAD).decode().splitlines()[-1] == "gdrdrv"
    assert one.read(PROBE).decode().splitlines()[-1] == GUIDE
    assert apply(one).doc["actions"] == []
    assert one.text("sh", "-c", "ls -A /dev | grep gdrdrv").split() == ["gdrdrv"]


@pytest.mark.parametrize("put", [
    "mknod /dev/gdrdrv c 240 0", "echo mine >/dev/gdrdrv", "ln -s /etc/passwd /dev/gdrdrv",
    "ln -s /nowhere /dev/gdrdrv", "mkfifo /dev/gdrdrv",
    "mknod /dev/gdrdrv c 508 0; chown 1234 /dev/gdrdrv",
])
def test_c20_what_is_wrong_is_replaced_and_not_followed(node, put):
    one = node("c20-gdrdrv-no-node.ini")
    before = one.read("/etc/passwd")
    one.shell(put)
    done = apply(one)
    assert [m[2] for m in made(done)] == ["done"]
    assert node_of(one) == "character special file 1fc:0 666 0:0"
    assert one.read("/etc/passwd") == before
    assert stat.S_ISREG(os.stat("/etc/passwd").st_mode)


def test_a_directory_in_its_place_is_left_and_named(node):
    one = node("c20-gdrdrv-no-node.ini")
    one.shell("mkdir /dev/gdrdrv; touch /dev/gdrdrv/kept")
    done = apply(one)
    assert [m[2] for m in made(done)] == ["failed"]
    assert done.check("gdrdrv.node_unsafe", "gdrdrv")["status"] == "warn"
    one.text("test", "-e", "/dev/gdrdrv/kept")
    one.write("/etc/nodeprep/nodeprep.conf", "[module gdrdrv]\nrequire = yes\n")
    assert apply(one, rc=1).check("gdrdrv.node_unsafe", "gdrdrv")["status"] == "fail"


def test_mode_and_group_of_the_configuration(node):
    one = node("c20-gdrdrv-no-node.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[module gdrdrv]\nmode = 0660\ngroup = video\n")
    apply(one)
    assert node_of(one) == "character special file 1fc:0 660 0:44"
    # a site's own change is put right, as it is configured
    one.shell("chmod 600 /dev/gdrdrv")
    assert made(apply(one)) == [("c 508:0 mode 0600 owner 0:44", "c 508:0 mode 0660 owner 0:44",
                                 "done")]
    one.write("/etc/nodeprep/nodeprep.conf", "[module gdrdrv]\ngroup = nosuchgroup\n")
    done = apply(one, rc=1)
    assert done.check("gdrcopy.group_unknown", "gdrdrv")["status"] == "fail"


def test_without_configuration_a_right_node_keeps_its_mode(node):
    one = node("c20-gdrdrv-no-node.ini")
    one.shell("mknod /dev/gdrdrv c 508 0; chmod 640 /dev/gdrdrv; chgrp 44 /dev/gdrdrv")
    assert made(apply(one)) == []
    assert node_of(one) == "character special file 1fc:0 640 0:44"


def test_a_failed_run_takes_the_node_back(node):
    one = node("c20-gdrdrv-no-node.ini")
    one.text("mount", "--bind", "/etc/profile.d", "/etc/profile.d")
    one.text("mount", "-o", "remount,bind,ro", "/etc/profile.d")
    done = apply(one, rc=4)
    assert [m[2] for m in made(done)] == ["undone"]
    assert one.run("test", "-e", NODE).rc == 1


def test_mode_of_another_module_is_a_config_error(node):
    one = node("guide.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[module ib_umad]\nmode = 0660\n")
    done = one.json("plan", "--ip", IP, rc=2)
    assert "nodeprep.conf:2" in done.error["message"]
    assert "gdrdrv" in done.error["message"]


def test_require_no_leaves_it_alone(node):
    one = node("c20-gdrdrv-no-node.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[module gdrdrv]\nrequire = no\n")
    assert made(apply(one)) == []
    assert one.run("test", "-e", NODE).rc == 1
    assert one.run("test", "-e", PROBE).rc == 1


def test_show_tells_the_rungs(node):
    one = node("c20-gdrdrv-no-node.ini")
    apply(one)
    [entry] = [m for m in one.json("show", "modules").doc["show"]["modules"]
               if m["name"] == "gdrdrv"]
    assert entry["node"]["major"] == 508
    assert entry["node"]["matches"] is True
    assert entry["node"]["opens"] is False
    assert entry["node"]["usable"] is False
