# SPDX-License-Identifier: MIT
"""apply --confirm: kept only if somebody says so in time, whatever happens meanwhile."""

import json
import re
import signal

import pytest
from helpers import ADDRESSED, IP, NODEPREP, PLAIN, QUICK
from test_revert import JOURNAL, RECORD, revert, snapshot
from test_state import kill_at, reboot

GUARD = "nodeprep-guard"
# enough for a slow machine, where the time must not pass; ended by the test itself
LONG = "600"


def guards(one):
    return one.run("pgrep", "-x", GUARD).stdout.split()


def the_guard(one):
    """Its name comes when it is ready, which may be after the end of the run."""
    one.until("pgrep -x " + GUARD)
    pid, = guards(one)
    return pid


def kill_guard(one):
    one.until("pkill -KILL -x " + GUARD)


def is_taken_back(one):
    one.until("! test -e " + JOURNAL)


@pytest.fixture
def one(node):
    """Leaves no guard behind."""
    made = node("guide.ini")
    yield made
    made.run("pkill", "-KILL", "-x", GUARD)


def test_confirmed_in_time(one):
    before = snapshot(one)
    done = one.apply("--confirm", LONG)
    assert done.doc["changed"] is True and done.doc["ready"] is True
    assert LONG in done.check("confirm.pending")["message"]
    the_guard(one)
    kept = one.json("confirm", rc=0)
    assert kept.doc["changed"] is False and kept.doc["ready"] is True
    kept.check("confirm.kept")
    assert one.ipv4() == [IP] and json.loads(one.read(RECORD))["last_run"]
    # who waited sees it, and ends
    one.until("! pgrep -x " + GUARD)
    assert one.json("confirm", rc=0).doc["checks"] == []
    assert one.nodeprep("confirm").stdout == "nodeprep confirm: nothing to confirm\n"
    revert(one)
    assert snapshot(one) == before


def test_not_confirmed(one):
    before = snapshot(one)
    one.apply("--confirm", "1")
    is_taken_back(one)
    assert snapshot(one) == before
    done = one.json("confirm", rc=4)
    assert done.error["code"] == "confirm.too_late"
    one.until("! pgrep -x " + GUARD)
    # until the next run
    one.apply()
    assert one.json("confirm", rc=0).doc["checks"] == []


def test_an_earlier_run_stays(one):
    one.apply()
    before = snapshot(one)
    one.json("apply", "--ip", IP, "--ip", "10.0.0.51/24", "--confirm", "1", *QUICK, rc=0)
    is_taken_back(one)
    assert snapshot(one) == before


def test_nothing_to_do_waits_for_nobody(one):
    one.apply()
    done = one.apply("--confirm", LONG)
    assert done.doc["changed"] is False and done.checks(id="confirm") == []
    assert guards(one) == []
    assert one.json("confirm", rc=0).doc["checks"] == []


def test_a_second_apply_is_refused(one):
    one.apply("--confirm", LONG)
    before = snapshot(one)
    done = one.apply(rc=3)
    assert done.error["code"] == "confirm.waiting" and "nodeprep confirm" in done.error["hint"]
    assert done.doc["actions"] == [] and snapshot(one) == before
    assert one.json("plan", "--ip", IP, rc=0).doc["actions"] == []
    one.json("confirm", rc=0)
    one.apply()


@pytest.mark.parametrize("argv", [["--last"], []])
def test_reverted_before_its_time(one, argv):
    before = snapshot(one)
    one.apply("--confirm", LONG)
    assert revert(one, *argv).doc["ready"] is True
    assert snapshot(one) == before
    assert one.json("confirm", rc=0).doc["checks"] == []
    one.until("! pgrep -x " + GUARD)


def test_its_session_ends(one):
    """SIGHUP is nothing to it; SIGTERM, as of a session or a unit that ends, is: afterwards
    nobody would be left to do it."""
    before = snapshot(one)
    one.apply("--confirm", LONG)
    pid = the_guard(one)
    assert one.text("ps", "-o", "sid=,tty=", "-p", pid).split() == [pid, "?"]
    assert set(one.text("ls", "/proc/%s/fd" % pid).split()) == {"0", "1", "2"}
    assert one.text("readlink", "/proc/%s/fd/1" % pid) == "/dev/null\n"
    for number in ("HUP", "INT", "QUIT", "USR1", "ALRM"):
        one.text("kill", "-" + number, pid)
    one.run("sleep", "0.3")
    assert guards(one) == [pid] and one.ipv4() == [IP]
    one.text("kill", "-TERM", pid)
    is_taken_back(one)
    assert snapshot(one) == before


def test_who_is_found_by_its_name_can_be_told_to_end(one):
    done = one.run("strace", "-f", "-qq", "-o", "/tmp/calls", "-e", "trace=prctl,rt_sigaction", PLAIN,
                   "apply", "--ip", IP, "--confirm", "1", *QUICK)
    assert done.rc == 0, done
    calls = one.read("/tmp/calls").decode()
    pid = re.search(r'^(\d+) +prctl\(PR_SET_NAME, "%s"' % GUARD, calls, re.M).group(1)
    of_it = [line for line in calls.splitlines() if line.split()[0] == pid]
    terms = [n for n, line in enumerate(of_it) if "rt_sigaction(SIGTERM, {" in line and "SIG_IGN" not in
             line.split("}")[0]]
    named, = [n for n, line in enumerate(of_it) if "PR_SET_NAME" in line]
    assert terms and terms[0] < named, of_it


def apply_and_kill_guard(one, address, seconds):
    """In one go, so that a slow machine is not too late."""
    done = one.shell("%s apply --ip %s --confirm %d %s && until pkill -KILL -x %s; do sleep 0.01; done"
                     % (NODEPREP, address, seconds, " ".join(QUICK), GUARD))
    assert done.rc == 0, done


def test_the_guard_is_killed(one):
    """Then the next nodeprep does it, once the time is over."""
    before = snapshot(one)
    apply_and_kill_guard(one, IP, 4)
    one.run("sleep", "4.2")
    assert one.ipv4() == [IP]
    done = one.json("confirm", rc=4)
    assert done.error["code"] == "confirm.too_late" and done.doc["changed"] is True
    assert snapshot(one) == before


def test_the_next_apply_takes_it_back_first(one):
    apply_and_kill_guard(one, "10.0.0.77/24", 4)
    one.run("sleep", "4.2")
    done = one.apply()
    done.check("confirm.expired")
    assert one.ipv4() == [IP] and done.doc["ready"] is True


def test_a_reboot_before_it_was_confirmed(one):
    """Files outlive it: the first run of the new boot takes them back, whatever the clock."""
    before = snapshot(one)
    one.apply("--confirm", LONG)
    kill_guard(one)
    one.shell("ip addr flush dev ib0; ip link set ib0 down")
    reboot(one)
    assert one.json("confirm", rc=4).error["code"] == "confirm.too_late"
    assert snapshot(one) == before


@pytest.mark.parametrize("nth", [2, 4, 7])
def test_killed_on_its_way(one, nth):
    """A run that was to be confirmed and did not come to its end is taken back by its guard."""
    before = snapshot(one)
    for seconds in ("2", "10", "60"):
        kill_at(one, "renameat", nth, "apply", "--ip", IP, "--confirm", seconds, *QUICK,
                follow=None)
        if one.read(JOURNAL):
            break
        # a slow machine: the guard was faster
    assert one.read(JOURNAL)
    is_taken_back(one)
    assert snapshot(one) == before


@pytest.mark.parametrize("nth", [1, 3])
def test_killed_while_it_is_taken_back(one, nth):
    """It is still a run that nobody confirmed, and no run to go on with."""
    before = snapshot(one)
    kill_at(one, "renameat", 7, "apply", "--ip", "10.0.0.77/24", "--confirm", LONG, *QUICK, follow=None)
    kill_guard(one)
    assert kill_at(one, "unlinkat", nth, "confirm").rc in (137, -9)
    assert one.read(JOURNAL) and snapshot(one) != before
    one.apply().check("confirm.expired")
    assert one.ipv4() == [IP]
    revert(one)
    assert snapshot(one) == before


def test_a_failed_undo_after_a_reboot(one):
    """What could not be taken back stays a run of the boot before, however long its time was."""
    before = snapshot(one)
    one.apply("--confirm", LONG)
    kill_guard(one)
    one.shell("ip addr flush dev ib0; ip link set ib0 down")
    reboot(one)
    done = one.run("strace", "-f", "-qq", "-o", "/dev/null", "-P", "/etc/nodeprep", "-e", "trace=unlinkat",
                   "-e", "inject=unlinkat:error=EIO", PLAIN, "confirm", "--json")
    assert done.rc == 4, done
    assert one.run("cat", "/etc/nodeprep/ucx.env").rc == 0
    assert one.json("confirm", rc=4).error["code"] == "confirm.too_late"
    assert snapshot(one) == before


def test_the_guard_does_not_give_up(one):
    """A state folder that cannot be used when the time is over must not leave the admin outside."""
    before = snapshot(one)
    one.shell("%s apply --ip %s --confirm 3 %s && chmod 0777 /var/lib/nodeprep"
              % (NODEPREP, IP, " ".join(QUICK)))
    one.run("sleep", "4")
    assert the_guard(one) and one.ipv4() == [IP]
    one.text("chmod", "0700", "/var/lib/nodeprep")
    is_taken_back(one)
    assert snapshot(one) == before
    one.until("! pgrep -x " + GUARD)


def test_a_run_that_fails_needs_no_confirmation(one):
    one.text("mount", "--bind", "/etc/profile.d", "/etc/profile.d")
    one.text("mount", "-o", "remount,bind,ro", "/etc/profile.d")
    one.apply("--confirm", LONG, rc=4)
    one.until("! pgrep -x " + GUARD)
    assert one.read(JOURNAL) is None
    assert one.json("confirm", rc=0).doc["checks"] == []


def test_sigterm_to_the_run(node):
    """Taken back at once, by the run itself."""
    one = node("c05-no-sm.ini")
    before = snapshot(one)
    done = one.kill_when(ADDRESSED, signal.SIGTERM, NODEPREP, "apply", "--json", "--ip", IP,
                         "--no-selftest", "--timeout", LONG, "--confirm", LONG)
    assert done.rc == 4 and done.statuses() == {"undone"}, done
    assert snapshot(one) == before and one.read(JOURNAL) is None
    one.until("! pgrep -x " + GUARD)


@pytest.mark.parametrize("value", ["0", "86401", "-1", "1.5", "x", ""])
def test_a_time_that_cannot_be(one, value):
    done = one.json("apply", "--ip", IP, "--confirm", value, rc=2)
    assert done.error["code"] == "usage.value" and "86400" in done.error["message"]
