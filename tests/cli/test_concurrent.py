# SPDX-License-Identifier: MIT
"""Two at once, and one that is killed at any moment (C34)."""

import json
import random
import signal

import pytest
from helpers import (AT_THE_SELFTEST, FILES, IP, NODEPREP, PLAIN, QUICK,
                     with_endless_selftest)


def leftovers(node):
    return [path for path in node.tree("/etc", "/root", "/home", "/var/lib/nodeprep", "/run")
            if "nodeprep-" in path.rsplit("/", 1)[-1] and path.rsplit("/", 1)[-1][0] == "."]


def is_right(node):
    assert node.ipv4() == [IP]
    for path in FILES:
        assert node.read(path), path
    assert node.read("/etc/nccl.conf") == b"NCCL_SOCKET_IFNAME=ib0\n"
    assert node.json("check", "--ip", IP, rc=0).doc["ready"] is True
    assert leftovers(node) == []


def test_c34_two_at_once(guide):
    argv = [NODEPREP, "apply", "--json", "--ip", IP, *QUICK]
    spawned = [guide.spawn(*argv) for _ in range(2)]
    done = [guide.wait(one) for one in spawned]
    assert {one.rc for one in done} == {0}, done
    # one of them did it all, the other found it done
    assert sorted(len(one.doc["actions"]) for one in done) == [0, len(FILES) + 2]
    is_right(guide)


def test_many_at_once_with_different_wishes(guide):
    spawned = [guide.spawn(NODEPREP, "apply", "--json", "--ip", "10.0.0.5%d/24" % n, *QUICK)
               for n in range(6)]
    done = [guide.wait(one) for one in spawned]
    assert {one.rc for one in done} == {0}, done
    assert sorted(guide.ipv4()) == ["10.0.0.5%d/24" % n for n in range(6)]
    assert sum(one.doc["changed"] for one in done) == 6
    assert leftovers(guide) == []


def test_looking_needs_no_lock(guide):
    guide.text("mkdir", "-p", "/run/nodeprep")
    holder = guide.spawn("flock", "-F", "/run/nodeprep/lock", "sleep", "600")
    guide.until("! flock -n /run/nodeprep/lock true")
    assert guide.nodeprep("plan", "--ip", IP).rc == 0
    assert guide.nodeprep("check", "--ip", IP).rc == 1
    guide.kill(holder)
    guide.wait(holder)


def test_the_lock_is_not_inherited_by_what_is_left_running(guide):
    """A lock that outlives its holder would stop the next run."""
    guide.kill_when(AT_THE_SELFTEST, signal.SIGKILL, with_endless_selftest(guide), "apply",
                    "--ip", IP, "--timeout", "600", "--no-probe")
    assert guide.nodeprep("apply", "--ip", IP, *QUICK).rc == 0


@pytest.mark.parametrize("seed", range(3))
def test_c34_killed_at_any_moment(node, seed):
    """The plain program, since it is quick: four moments a node."""
    chance = random.Random(seed)
    one = node("guide.ini")
    for _ in range(4):
        after = chance.uniform(0.0, 0.025)
        killed = one.kill_after(after, signal.SIGKILL, PLAIN, "apply", "--ip", IP, *QUICK)
        assert killed.rc in (-signal.SIGKILL, 0), killed
        # whatever is there is whole: a file has its old content or its new one
        for path in FILES:
            content = one.read(path)
            assert content is None or content.endswith(b"\n"), (after, path, content)
        one.json("apply", "--ip", IP, *QUICK, rc=0)
        is_right(one)
        one.shell("ip addr flush dev ib0; ip link set ib0 down; rm -rf /var/lib/nodeprep %s"
                  % " ".join(FILES))


# Calls of an apply that change something, each the last one of a run.
MOMENTS = ["openat", "write", "fsync", "renameat", "renameat2", "rename", "sendmsg", "mkdir",
           "unlinkat", "fchmod", "fchown"]


@pytest.mark.parametrize("call", MOMENTS)
def test_c34_killed_at_the_nth_call(node, call):
    """strace kills it at the n-th call of a kind, so that each kind of moment is met."""
    one = node("guide.ini")
    met = 0
    for nth in (1, 2, 4, 7):
        done = one.run("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e",
                       "inject=%s:signal=KILL:when=%d" % (call, nth),
                       PLAIN, "apply", "--ip", IP, *QUICK)
        met += done.rc != 0
        if done.rc == 0:
            break
        one.json("apply", "--ip", IP, *QUICK, rc=0)
        is_right(one)
        one.shell("ip addr flush dev ib0; ip link set ib0 down; rm -rf /var/lib/nodeprep %s"
                  % " ".join(FILES))
    assert met or call in ("rename", "renameat2", "renameat", "unlinkat", "fchown", "mkdir",
                           "fchmod"), "apply never calls %s" % call


def test_what_somebody_writes_meanwhile_is_kept(guide):
    """An edit after nodeprep looked, and before it writes: no word of it is lost."""
    guide.write("/etc/nccl.conf", "NCCL_DEBUG=WARN\n")
    # a second after each file that is put in its place, the journal with the plan of the files too
    done = guide.shell(
        "strace -f -qq -o /dev/null -e trace=renameat -e inject=renameat:delay_exit=1000000 "
        "%s apply --json --ip %s %s >/tmp/out & "
        "while ! grep -q '\"path\": \"/etc/nccl.conf\"' /var/lib/nodeprep/journal.json 2>/dev/null; do :; done; "
        "echo NCCL_IB_HCA=mlx5_0 >>/etc/nccl.conf; wait $!" % (PLAIN, IP, " ".join(QUICK)), timeout=120)
    assert done.rc == 4, done
    said = json.loads(guide.read("/tmp/out"))
    assert said["error"]["code"] == "file.changed" and said["changed"] is False
    assert guide.read("/etc/nccl.conf") == b"NCCL_DEBUG=WARN\nNCCL_IB_HCA=mlx5_0\n"
    assert guide.ipv4() == [] and leftovers(guide) == []
    guide.apply()
    assert guide.read("/etc/nccl.conf") == b"NCCL_DEBUG=WARN\nNCCL_IB_HCA=mlx5_0\nNCCL_SOCKET_IFNAME=ib0\n"
    guide.json("revert", rc=0)
    assert guide.read("/etc/nccl.conf") == b"NCCL_DEBUG=WARN\nNCCL_IB_HCA=mlx5_0\n"
