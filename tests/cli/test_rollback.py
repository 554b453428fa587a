# SPDX-License-Identifier: MIT
"""A failed action or a signal takes everything back; exit 4 and a report that says so."""

import signal

import pytest
from helpers import (ADDRESSED, AT_THE_SELFTEST, FILES, IP, NODEPREP, PYTHON, QUICK,
                     with_endless_selftest)

STATE = ["/run/nodeprep", "/var/lib/nodeprep"]
UP = ["--set", "netdev ib0.up=yes"]
# for a port that never comes; ended by the test itself
LONG = ["--timeout", "600"]


def read_only(node, folder):
    """Makes a folder read-only, below what a root process can write to."""
    node.text("mount", "--bind", folder, folder)
    node.text("mount", "-o", "remount,bind,ro", folder)


def undone(done, failed, not_run):
    """The report of a run that was rolled back at one action."""
    assert done.rc == 4 and done.doc["changed"] is False and done.doc["ready"] is False
    statuses = [a["status"] for a in done.doc["actions"]]
    at = statuses.index("failed")
    assert done.doc["actions"][at]["target"] == failed
    assert set(statuses[:at]) == {"undone"}
    assert [a["target"] for a in done.doc["actions"][at + 1:]] == not_run
    assert set(statuses[at + 1:]) <= {"not_run"}
    assert failed in done.error["message"]


def test_a_file_that_cannot_be_written(node):
    one = node("guide.ini")
    read_only(one, "/etc/profile.d")
    before = one.state(but=STATE)
    done = one.apply(rc=4)
    undone(done, FILES[2], FILES[3:])
    assert "Read-only file system" in done.error["message"]
    assert one.state(but=STATE) == before
    assert one.json("check", "--ip", IP, rc=1).doc["actions"] != []
    one.text("umount", "/etc/profile.d")
    assert one.apply(rc=0).doc["ready"] is True


@pytest.mark.parametrize("promote", [0, 1])
def test_c24_addresses_come_back_in_their_order(node, promote):
    one = node("c24-prefix-change.ini")
    one.text("ip", "addr", "add", "10.0.9.9/16", "dev", "ib0")
    one.shell("echo %d >/proc/sys/net/ipv4/conf/ib0/promote_secondaries" % promote)
    one.write("/etc/nccl.conf", "NCCL_DEBUG=WARN\n")
    read_only(one, "/etc/profile.d")
    before = one.state(but=STATE)
    assert one.ipv4() == ["10.0.0.50/16", "10.0.0.51/24", "10.0.9.9/16"]
    done = one.apply(rc=4)
    undone(done, FILES[2], FILES[3:])
    after = one.state(but=STATE)
    assert one.read("/etc/nccl.conf") == b"NCCL_DEBUG=WARN\n"
    for state in (before, after):
        # rewritten with the old bytes: another inode and time
        del state["tree"]["/etc/nccl.conf"][5:]
    assert {a[:2] for a in after["links"]["ib0"]["addresses"]} == {
        a[:2] for a in before["links"]["ib0"]["addresses"]}
    assert after == before


def test_old_content_mode_and_owner_come_back(node):
    one = node("guide.ini", *UP)
    one.write("/etc/nccl.conf", "NCCL_DEBUG=WARN\n")
    one.text("chmod", "0640", "/etc/nccl.conf")
    one.text("chown", "alice:alice", "/etc/nccl.conf")
    read_only(one, "/etc/profile.d")
    before = one.tree("/etc/nccl.conf")["/etc/nccl.conf"][:5]
    one.apply(rc=4)
    assert one.read("/etc/nccl.conf") == b"NCCL_DEBUG=WARN\n"
    assert one.tree("/etc/nccl.conf")["/etc/nccl.conf"][:5] == before
    assert one.read("/root/.nccl.conf") is None


def test_the_text_report_says_what_became_of_each_action(node):
    one = node("guide.ini")
    read_only(one, "/etc/profile.d")
    done = one.nodeprep("apply", "--ip", IP, *QUICK)
    assert done.rc == 4
    words = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert words[:7] == ["undone"] * 4 + ["failed"] + ["not_run"] * 2
    assert "Read-only file system" in done.stderr and done.stderr.count("\n") == 1


def test_the_undo_is_recorded_before_the_first_action(node):
    """Where the undo cannot be recorded, nothing is done."""
    one = node("guide.ini")
    for folder in ("/var/lib/nodeprep", "/run/nodeprep/state"):
        one.text("mkdir", "-p", folder)
        one.text("chmod", "0700", folder)
        read_only(one, folder)
    before = one.state(but=STATE)
    done = one.apply(rc=3)
    assert not {"done", "undone"} & done.statuses() and "/var/lib/nodeprep" in done.error["message"]
    assert "/var/lib/nodeprep" in done.error["hint"]
    assert one.state(but=STATE) == before


def test_an_error_has_a_code_and_a_fix(node):
    one = node("guide.ini")
    read_only(one, "/etc/profile.d")
    done = one.apply(rc=4)
    assert done.error["code"] and done.error["hint"], done
    assert done.error["message"].count("nodeprep-ucx.sh") <= 2, done.error["message"]


def test_the_kernels_own_reason(node):
    """Extended acknowledgements: more than "Permission denied"."""
    one = node("guide.ini")
    one.shell("echo 1 >/proc/sys/net/ipv6/conf/ib0/disable_ipv6")
    reason = one.run("ip", "addr", "add", "fd00::50/64", "dev", "ib0").stderr
    assert reason.startswith("Error: "), reason
    reason = reason.splitlines()[0].split(": ")[-1].rstrip(".")
    before = one.state(but=STATE)
    done = one.json("apply", "--ip", IP, "--ip", "fd00::50/64", *QUICK, rc=4)
    undone(done, "ib0", [])
    assert reason in done.error["message"] and "fd00::50" in done.error["message"], done.error
    assert "as root" not in done.error["hint"], "it is root already"
    assert one.state(but=STATE) == before


def test_a_refused_mode_takes_back_what_came_before(node):
    """The mode of ib1 cannot be changed: ib0 is as it was, too."""
    one = node("guide.ini", "--set", "netdev ib1.type=ipoib", "--set", "netdev ib1.ca=mlx5_1")
    one.write("/etc/nodeprep/nodeprep.conf",
              "[netdev ib0]\naddress = 10.0.0.50/24\nmode = datagram\nmtu = 2044\n"
              "[netdev ib1]\naddress = 10.1.0.50/24\nmode = connected\nmtu = 65520\n")
    one.text("mount", "--bind", "/sys/class/net/ib1/mode", "/sys/class/net/ib1/mode")
    one.text("mount", "-o", "remount,bind,ro", "/sys/class/net/ib1/mode")
    before = one.state(but=STATE)
    modes = one.read("/sys/class/net/ib0/mode"), one.read("/sys/class/net/ib1/mode")
    done = one.json("apply", *QUICK, rc=4)
    assert "Read-only file system" in done.error["message"] and "ib1" in done.error["message"]
    assert one.state(but=STATE) == before
    assert (one.read("/sys/class/net/ib0/mode"), one.read("/sys/class/net/ib1/mode")) == modes


def test_sigterm_while_waiting(node):
    one = node("c05-no-sm.ini")
    before = one.state(but=STATE)
    done = one.kill_when(ADDRESSED, signal.SIGTERM, NODEPREP, "apply", "--json", "--ip", IP,
                         "--no-selftest", *LONG)
    assert done.rc == 4 and done.statuses() == {"undone"}, done
    assert [a["target"] for a in done.doc["actions"]] == ["ib0", "ib0"]
    assert "interrupt" in done.error["message"]
    assert done.doc["changed"] is False and done.doc["ready"] is False
    assert one.state(but=STATE) == before
    assert one.apply(rc=1).doc["ready"] is False


def start_with(code):
    """What a caller leaves behind for the program that it becomes."""
    return [PYTHON, "-c", "import os, signal, sys\n%s\nos.execv(sys.argv[1], sys.argv[1:])" % code]


@pytest.mark.parametrize("number", [
    signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGXCPU, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPWR])
def test_other_signals_while_waiting(node, number):
    one = node("c05-no-sm.ini")
    before = one.state(but=STATE)
    # one that the caller ignores, as nohup does, stays ignored
    done = one.kill_when(ADDRESSED, number, *start_with("signal.signal(%d, signal.SIG_DFL)" % number),
                         NODEPREP, "apply", "--ip", IP, "--no-selftest", *LONG)
    assert done.rc == 4, done
    assert one.state(but=STATE) == before


@pytest.mark.parametrize("code", [
    "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
])
def test_sigterm_comes_through(node, code):
    one = node("c05-no-sm.ini")
    before = one.state(but=STATE)
    done = one.kill_when(ADDRESSED, signal.SIGTERM, *start_with(code), NODEPREP, "apply", "--json",
                         "--ip", IP, "--no-selftest", *LONG)
    assert done.rc == 4 and done.statuses() == {"undone"}, done
    assert one.state(but=STATE) == before


def test_a_time_limit_of_the_caller(node):
    """alarm(2) outlives exec. A slow machine needs longer to come to where it waits."""
    one = node("c05-no-sm.ini")
    before = one.state(but=STATE)
    for seconds in (2, 10, 60):
        done = one.run(*start_with("signal.alarm(%d)" % seconds), NODEPREP, "apply", "--json",
                       "--ip", IP, "--no-selftest", *LONG)
        if done.doc and "undone" in done.statuses():
            break
    assert done.rc == 4 and done.statuses() == {"undone"}, done
    assert one.state(but=STATE) == before


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_the_caller_ignores(node, number):
    """nohup, and what a shell starts in the background: the terminal that closes is no
    reason to stop."""
    one = node("c05-no-sm.ini")
    done = one.kill_when(ADDRESSED, number, *start_with("signal.signal(%d, signal.SIG_IGN)" % number),
                         NODEPREP, "apply", "--json", "--ip", IP, "--timeout", "3",
                         "--no-selftest")
    assert done.rc == 1 and done.statuses() == {"done"} and one.ipv4() == [IP], done


def test_sigterm_while_waiting_for_the_lock(node):
    """Nothing was done, so nothing is rolled back; but it ends at once and says why."""
    one = node("guide.ini")
    one.text("mkdir", "-p", "/run/nodeprep")
    before = one.state(but=STATE)
    holder = one.spawn("flock", "-F", "/run/nodeprep/lock", "sleep", "600")
    one.until("! flock -n /run/nodeprep/lock true")
    done = one.kill_when("ls -l /proc/$P/fd | grep -q /run/nodeprep/lock", signal.SIGTERM,
                         NODEPREP, "apply", "--json", "--ip", IP, *QUICK)
    assert done.rc == 4, done
    assert "interrupt" in done.error["message"] and "30 s" not in done.error["message"]
    assert one.state(but=STATE) == before
    one.kill(holder)
    one.wait(holder)


def test_sigterm_during_the_selftest(node):
    """A self-test that hangs is stopped with the run, and no child stays behind."""
    one = node("guide.ini")
    program = with_endless_selftest(one)
    before = one.state(but=STATE)
    done = one.kill_when(AT_THE_SELFTEST, signal.SIGTERM, program, "apply", "--json", "--ip", IP,
                         "--no-probe", *LONG)
    assert done.rc == 4 and done.doc["changed"] is False, done
    assert one.state(but=STATE) == before
    assert one.run("pgrep", "-x", "nodeprep-selfte").rc == 1
