# SPDX-License-Identifier: MIT
"""The folder that holds the undo: whose it is, what is believed, runs that were killed."""

import json

import pytest
from helpers import FILES, IP, NODEPREP, PLAIN, QUICK
from test_concurrent import leftovers
from test_revert import JOURNAL, RECORD, revert, snapshot

DIR = "/var/lib/nodeprep"
DIR_RUN = "/run/nodeprep/state"


def reboot(one):
    """What tells one boot from another; the rest of a node does not forget anything."""
    one.write("/tmp/boot_id", "00000000-1111-2222-3333-444444444444\n")
    one.text("mount", "--bind", "/tmp/boot_id", "/proc/sys/kernel/random/boot_id")


def kill_at(one, call, nth, *argv, follow="-f"):
    """Kills the plain program at its nth call of a kind; what it has started goes too."""
    return one.run("strace", *[follow] if follow else [], "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e",
                   "inject=%s:signal=KILL:when=%d" % (call, nth), PLAIN, *argv)


# ---- the folder ----

def test_it_is_roots_alone(guide):
    guide.text("mkdir", "-m", "0755", "-p", DIR)
    guide.apply()
    tree = guide.tree(DIR)
    assert tree[DIR][1:4] == [0o700, 0, 0]
    assert tree[RECORD][1:4] == [0o600, 0, 0]
    assert guide.run("cat", RECORD, user="alice").rc != 0


@pytest.mark.parametrize("script", [
    "mkdir -m 0777 /var/lib/nodeprep",
    "mkdir -m 0700 /var/lib/nodeprep; chown alice /var/lib/nodeprep",
    "mkdir /tmp/x; ln -s /tmp/x /var/lib/nodeprep",
    "ln -s /nowhere /var/lib/nodeprep",
    "touch /var/lib/nodeprep",
    "mkdir -m 0700 /var/lib/nodeprep; touch /tmp/j; ln -s /tmp/j /var/lib/nodeprep/journal.json",
    "mkdir -m 0700 /var/lib/nodeprep; mkfifo /var/lib/nodeprep/journal.json",
])
def test_a_folder_that_cannot_be_trusted(guide, script):
    guide.shell(script)
    before = guide.state(but=["/run/nodeprep"])
    done = guide.apply(rc=3)
    assert done.error["code"] in ("state.unsafe", "state.unreadable"), done
    assert guide.state(but=["/run/nodeprep"]) == before


def test_for_people_and_machines(guide):
    guide.write("/etc/nccl.conf", "NCCL_DEBUG=WARN\n")
    guide.apply()
    text = guide.read(RECORD).decode()
    record = json.loads(text)
    assert record["format"] == 2 and record["kind"] == "record"
    assert record["machine_id"] == guide.read("/etc/machine-id").decode().strip()
    assert record["checksum"].startswith("crc32c:")
    assert '\n   "path": ' in text or '\n    "path": ' in text, text[:800]
    file, = [a["file"] for a in record["since_first"]
             if a.get("file", {}).get("path") == "/etc/nccl.conf"]
    assert file["old"] == {"text": "NCCL_DEBUG=WARN\n"}
    assert file["old_meta"]["mtime_s"] > 0


# ---- what is believed ----

def test_a_cloned_image(guide):
    """The record of the golden node does not touch this one."""
    guide.apply()
    guide.write("/etc/machine-id", "ffffffffffffffffffffffffffffffff\n")
    before = snapshot(guide)
    done = revert(guide, rc=1)
    assert done.check("state.other_machine")["status"] == "fail"
    assert snapshot(guide) == before
    assert "%s/record.other-machine-1.json" % DIR in guide.tree(DIR)
    assert revert(guide).doc["checks"] == []


def test_a_journal_of_a_cloned_image(guide):
    kill_at(guide, "renameat", 4, "apply", "--ip", IP, *QUICK)
    assert guide.read(JOURNAL)
    guide.write("/etc/machine-id", "ffffffffffffffffffffffffffffffff\n")
    done = guide.apply()
    assert done.check("state.other_machine", "journal.json")["status"] == "warn"
    assert "%s/journal.other-machine-1.json" % DIR in guide.tree(DIR)


@pytest.mark.parametrize("damage", [
    "truncate -s -40 %s", "truncate -s 0 %s", "sed -i s/2044/2045/\\;s/WARN/WARM/ %s",
    "echo '{}' >%s"])
def test_a_damaged_record(guide, damage):
    guide.write("/etc/nccl.conf", "NCCL_DEBUG=WARN\n")
    guide.apply()
    guide.shell(damage % RECORD)
    before = snapshot(guide)
    done = revert(guide, rc=1)
    assert done.check("state.damaged", "record.json")["status"] == "fail", done
    assert done.doc["actions"] == [] and snapshot(guide) == before
    assert "%s/record.damaged-1.json" % DIR in guide.tree(DIR)
    # a new one begins
    guide.json("apply", "--ip", IP, "--ip", "10.0.0.51/24", *QUICK, rc=0)
    assert revert(guide).actions() == [("netdev.address_del", "ib0", "")]


def test_a_damaged_journal_is_never_half_replayed(guide):
    kill_at(guide, "renameat", 5, "apply", "--ip", IP, *QUICK)
    size = len(guide.read(JOURNAL))
    guide.shell("truncate -s %d %s" % (size // 2, JOURNAL))
    done = guide.apply()
    assert done.check("state.damaged", "journal.json")["status"] == "warn"
    assert guide.ipv4() == [IP] and done.doc["ready"] is True


# ---- killed runs ----

@pytest.mark.parametrize("nth", range(1, 9))
def test_killed_then_reverted(node, nth):
    """At each file that is put in place, the journal's first: back to the start."""
    one = node("guide.ini")
    one.write("/etc/nccl.conf", "NCCL_DEBUG=WARN")
    before = snapshot(one)
    done = kill_at(one, "renameat", nth, "apply", "--ip", IP, *QUICK)
    assert done.rc == 137 or done.rc == -9, done
    assert revert(one).doc["ready"] is True
    assert snapshot(one) == before
    assert leftovers(one) == [] and revert(one).doc["actions"] == []


@pytest.mark.parametrize("nth", [1, 2, 4, 6, 8])
def test_killed_then_finished_then_reverted(node, nth):
    one = node("guide.ini")
    one.write("/etc/nccl.conf", "NCCL_DEBUG=WARN")
    before = snapshot(one)
    kill_at(one, "renameat", nth, "apply", "--ip", IP, *QUICK)
    done = one.apply()
    assert done.doc["ready"] is True and JOURNAL not in one.tree(DIR)
    assert one.read("/root/.nccl.conf") and one.ipv4() == [IP]
    assert one.apply().doc["changed"] is False
    assert leftovers(one) == []
    revert(one)
    assert snapshot(one) == before


@pytest.mark.parametrize("call,nth", [("renameat", 1), ("renameat", 2), ("unlinkat", 1),
                                      ("unlinkat", 3), ("sendmsg", 12)])
def test_a_revert_that_is_killed(node, call, nth):
    one = node("guide.ini")
    one.write("/etc/nccl.conf", "NCCL_DEBUG=WARN")
    before = snapshot(one)
    one.apply()
    kill_at(one, call, nth, "revert")
    assert revert(one).doc["ready"] is True
    assert snapshot(one) == before and revert(one).doc["actions"] == []


@pytest.mark.parametrize("verb", [["revert", "--last"], ["revert"]])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_killed_revert_is_no_run_to_take_back(node, verb, nth):
    """Its successor goes the same way on, and does not turn round."""
    one = node("guide.ini")
    before = snapshot(one)
    one.write("/etc/nodeprep/nodeprep.conf", "[ucx]\nprofile = off\n")
    one.apply()
    one.write("/etc/nodeprep/nodeprep.conf", "[ucx]\nprofile = guide\n")
    first = snapshot(one)
    one.apply()
    kill_at(one, "unlinkat", nth, *verb)
    if len(verb) == 2:
        revert(one, "--last")
        assert snapshot(one) == first
        assert revert(one, "--last").doc["actions"] == []
    revert(one)
    one.text("rm", "-r", "/etc/nodeprep")
    assert snapshot(one) == before


def test_killed_then_refused_by_its_successor(node):
    """A run that cannot finish what was begun takes it back with its own."""
    one = node("guide.ini")
    before = snapshot(one)
    kill_at(one, "renameat", 3, "apply", "--ip", IP, *QUICK)
    assert one.ipv4() == [IP]
    one.text("mount", "--bind", "/etc/profile.d", "/etc/profile.d")
    one.text("mount", "-o", "remount,bind,ro", "/etc/profile.d")
    done = one.apply(rc=4)
    assert "done" not in done.statuses()
    one.text("umount", "/etc/profile.d")
    assert snapshot(one) == before and JOURNAL not in one.tree(DIR)


def test_temporary_files_of_a_killed_run(node):
    """Also of files that the next run has no wish to write, and in a home."""
    one = node("guide.ini")
    kill_at(one, "renameat", 4, "apply", "--ip", IP, "--user", "alice", *QUICK)
    assert b"/home/alice/.nccl.conf" in one.read(JOURNAL)
    for path, owner in (("/home/alice/..nccl.conf.nodeprep-aaaaaa", "alice"),
                        ("/etc/.nccl.conf.nodeprep-bbbbbb", "root")):
        one.write(path, "half")
        one.text("chown", owner, path)
    one.write("/etc/nodeprep/nodeprep.conf", "[nccl]\nscope = off\n")
    one.apply()
    assert leftovers(one) == []


# ---- another boot ----

def test_a_killed_run_and_another_name(node):
    """Of the run that was not finished, too."""
    one = node("guide.ini")
    kill_at(one, "renameat", 3, "apply", "--ip", IP, *QUICK)
    assert one.read(JOURNAL) and one.ipv4() == [IP]
    one.shell("ip link set ib0 down; ip link set ib0 name ibx; ip link set ibx up")
    revert(one)
    assert one.ipv4("ibx") == []


def test_what_ended_with_the_boot_is_not_taken_back(guide):
    """Files are; an address that somebody has set since is theirs."""
    guide.apply()
    reboot(guide)
    done = revert(guide)
    assert guide.ipv4() == [IP] and guide.links()["ib0"]["up"]
    assert {a["id"] for a in done.doc["actions"]} == {"file.remove"}
    assert [guide.read(path) for path in FILES] == [None] * len(FILES)


# ---- a read-only /var ----

def read_only_var(one):
    one.text("mkdir", "-p", "-m", "0700", DIR)
    one.text("mount", "--bind", "/var", "/var")
    one.text("mount", "-o", "remount,bind,ro", "/var")


def test_read_only_var(guide):
    before = snapshot(guide)
    read_only_var(guide)
    done = guide.apply()
    assert done.check("state.volatile", DIR_RUN)["status"] == "warn"
    assert done.doc["ready"] is True
    assert guide.tree(DIR_RUN)[DIR_RUN][1:3] == [0o700, 0]
    assert guide.apply().checks(code="state.volatile") == [], "nothing was written"
    done = revert(guide)
    assert done.doc["ready"] is True and snapshot(guide) == before
    assert revert(guide).doc["actions"] == []


def test_read_only_var_with_a_record_in_it(guide):
    """What it says counts, and what comes after it is in /run."""
    before = snapshot(guide)
    guide.apply()
    read_only_var(guide)
    guide.json("apply", "--ip", IP, "--ip", "10.0.0.51/24", *QUICK, rc=0)
    assert json.loads(guide.read(DIR_RUN + "/record.json"))["since_first"]
    revert(guide)
    assert snapshot(guide) == before
    # the old one is still there, and no longer believed
    assert guide.read(RECORD) and revert(guide).doc["actions"] == []


# ---- it stays cheap ----

def test_nothing_to_do_reads_nothing(guide):
    """One look in each folder for a journal, and for the note of a census; no record is opened."""
    guide.apply()
    guide.text("strace", "-f", "-qq", "-o", "/tmp/trace", "-e", "trace=file,fsync,fdatasync",
               PLAIN, "apply", "--ip", IP, *QUICK)
    trace = guide.read("/tmp/trace").decode()
    state = [line for line in trace.splitlines() if DIR in line or DIR_RUN in line]
    assert len(state) == 4 and all("ENOENT" in line for line in state), state
    assert "fsync" not in trace
    assert NODEPREP  # the sanitized one runs the other tests
