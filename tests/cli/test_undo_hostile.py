# SPDX-License-Identifier: MIT
"""What an undo meets that nobody should have made: documents, homes, disks, arguments."""

import json

import pytest
from helpers import IP, NODEPREP, PLAIN, QUICK
from test_confirm import GUARD, guards, is_taken_back, kill_guard
from test_in_use import hold
from test_revert import JOURNAL, RECORD, revert, run_python, snapshot
from test_state import kill_at, reboot

DIR = "/var/lib/nodeprep"
# the checksum as the documents have it: CRC-32C of the compact, sorted text
SEAL = """
import json, sys
path, edit = sys.argv[1:]
doc = json.load(open(path))
exec(edit)
doc.pop("checksum", None)
crc = 0xffffffff
for byte in json.dumps(doc, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode():
    crc ^= byte
    for _ in range(8):
        crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
doc["checksum"] = "crc32c:%08x" % (crc ^ 0xffffffff)
json.dump(doc, open(path, "w"))
"""
SOME = "files = [a['file'] for a in doc['since_first'] if a['kind'] == 'file']; "


def edit(one, path, code):
    """Edits a document and makes its checksum right again."""
    run_python(one, SEAL, path, code)


# ---- the folder and its documents ----

@pytest.mark.parametrize("script", [
    "chmod 0777 {d}",
    "chown alice {d}",
    "mv {d} /tmp/x; ln -s /tmp/x {d}",
    "mv {r} /tmp/r; ln -s /tmp/r {r}",
    "rm {r}; mkfifo {r}",
    "rm {r}; mkdir {r}",
    "chown alice {r}",
    "chmod 0666 {r}",
    "rm {r}; truncate -s 1G {r}",
    "mkfifo {d}/journal.json",
    "truncate -s 1G {d}/journal.json",
    "ln -s /dev/zero {d}/journal.json",
])
@pytest.mark.parametrize("argv", [["revert"], ["revert", "--last", "--dry-run"], ["confirm"]])
def test_a_state_that_cannot_be_trusted(guide, script, argv):
    guide.apply()
    assert guide.shell(script.format(d=DIR, r=RECORD)).rc == 0
    before = guide.state(but=["/run/nodeprep"])
    done = guide.json(*argv, rc=3, timeout=30)
    assert done.error["code"] in ("state.unsafe", "state.unreadable"), done
    assert done.error["hint"]
    assert guide.state(but=["/run/nodeprep"]) == before


@pytest.mark.parametrize("text", ["'[' * 1000000", "'{\"a\":' * 100000", "'\\0' * 4096",
                                  "'{\"format\": 2, \"format\": 2}'", "'\"' + 'x' * 30000000"])
@pytest.mark.parametrize("name", ["record.json", "journal.json"])
def test_no_document(guide, text, name):
    """Deep, long, empty of sense: set aside, and said."""
    guide.apply()
    before = snapshot(guide)
    guide.shell("rm %s" % RECORD)
    run_python(guide, "open(%r, 'w').write(%s)" % ("%s/%s" % (DIR, name), text))
    done = revert(guide, rc=1 if name == "record.json" else 0)
    done.check("state.damaged", name)
    assert done.doc["actions"] == [] and snapshot(guide) == before


def test_the_seal_of_these_tests_is_right(guide):
    """Else the tests below would prove nothing."""
    guide.apply()
    edit(guide, RECORD, "doc['version'] = 'another ä'")
    assert revert(guide).doc["changed"] is True


@pytest.mark.parametrize("code", [
    "files[0].update(path='/etc/shadow')",
    "files[0].update(path='/etc/shadow', new={'text': open('/etc/shadow').read()})",
    "files[0].update(path='/etc/nodeprep/../shadow')",
    "files[0].update(path='/etc/shadow', user=None, home=None)",
    "files[0].update(path='/root/.bashrc')",
    "files[0].update(home='/etc')",
    "files[0].update(path='/etc//.nccl.conf')",
    "files[-1].update(path='/etc/nccl.conf/')",
    "files[-1].update(path='//etc/nccl.conf')",
    "files[-1].update(path='/etc/nccl.conf\\0')",
    "files[-1].update(path='/etc/site/ucx.lua', new={'hex': ''})",
    "files[-1].update(made_dir='/')",
    "files[-1].update(made_dir='/tmp')",
    "files[-1].update(path='/tmp/theirs/ucx.lua', new={'text': 'theirs\\n'})",
])
def test_no_other_file_is_touched(guide, code):
    """A checksum is no proof of who wrote it: an action must be one that nodeprep does."""
    guide.write("/etc/shadow", "root:*:1::::::\n")
    guide.shell("mkdir -p /tmp/theirs; echo theirs >/tmp/theirs/ucx.lua; echo rc >/root/.bashrc")
    guide.apply()
    edit(guide, RECORD, SOME + code)
    before = snapshot(guide), guide.tree("/tmp/theirs", "/etc/shadow", "/root/.bashrc")
    done = revert(guide, rc=1)
    done.check("state.damaged", "record.json")
    assert done.doc["actions"] == []
    assert (snapshot(guide), guide.tree("/tmp/theirs", "/etc/shadow", "/root/.bashrc")) == before


def test_the_journal_is_held_to_the_same(guide):
    kill_at(guide, "renameat", 5, "apply", "--ip", IP, *QUICK)
    edit(guide, JOURNAL, "[a['file'].update(path='/etc/shadow') for a in doc['actions'] "
         "if a['kind'] == 'file' and not a['file']['user']]")
    before = guide.read("/etc/shadow")
    guide.apply().check("state.damaged", "journal.json")
    assert guide.read("/etc/shadow") == before


def test_a_modulefile_comes_back(node):
    """Its place is the site's, so no list has it; its text is what tells."""
    one = node("guide.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[ucx]\nmodulefile = /etc/site/nodeprep/ucx.lua\n")
    one.shell("mkdir -p /etc/site")
    before = snapshot(one)
    one.apply()
    assert one.read("/etc/site/nodeprep/ucx.lua")
    # its folder was given away: what is in there is not root's to judge any more
    one.text("chown", "alice", "/etc/site")
    done = revert(one, rc=1)
    said = done.check("revert.file_refused", "/etc/site/nodeprep/ucx.lua")
    assert "can be changed by others" in said["message"]
    assert one.read("/etc/site/nodeprep/ucx.lua")
    one.text("chown", "root", "/etc/site")
    revert(one)
    assert snapshot(one) == before and one.read("/etc/site/nodeprep/ucx.lua") is None
    assert one.run("test", "-e", "/etc/site/nodeprep").rc == 1


# ---- homes ----

@pytest.mark.parametrize("script, code", [
    # a link by its owner to what is not its own, by another, to nowhere
    ("mv /home/alice /home/real; ln -s /etc /home/alice; chown -h alice /home/alice",
     "revert.file_refused"),
    ("mv /home/alice /home/real; ln -s /home/real /home/alice; chown -h 4242 /home/alice",
     "revert.file_refused"),
    ("mv /home/alice /home/real; ln -s /proc/1/root/home/real /home/alice",
     "revert.file_refused"),
    ("ln -f /home/alice/.nccl.conf /home/alice/other", "revert.file_refused"),
    ("rm /home/alice/.nccl.conf; ln -s /etc/shadow /home/alice/.nccl.conf",
     "revert.file_refused"),
    ("rm /home/alice/.nccl.conf; mkfifo /home/alice/.nccl.conf", "revert.file_refused"),
    ("chown 4242 /home/alice", "revert.file_refused"),
    ("chown 4242 /home/alice/.nccl.conf", "revert.file_refused"),
    # another user has the name, and the home
    ("sed -i s/^alice:x:1000/alice:x:4242/ /etc/passwd; chown -R 4242 /home/alice",
     "revert.file_refused"),
    # both are gone, or both but the home
    ("sed -i /^alice:/d /etc/passwd; rm -r /home/alice", "revert.home_gone"),
])
def test_a_home_that_is_another_one(node, script, code):
    one = node("guide.ini")
    one.apply("--user", "alice")
    assert one.shell(script).rc == 0
    before = one.tree("/home", "/etc/shadow")
    gone = code == "revert.home_gone"
    done = one.json("revert", rc=0 if gone else 1, timeout=30)
    assert done.check(code, "/home/alice/.nccl.conf")["status"] == ("warn" if gone else "fail")
    assert one.tree("/home", "/etc/shadow") == before
    # all else was taken back, and a second time there is nothing but the same word
    assert one.ipv4() == [] and one.read("/etc/nccl.conf") is None
    done = revert(one, rc=0 if gone else 1)
    assert done.doc["actions"] == []
    done.check(code, "/home/alice/.nccl.conf")


@pytest.mark.parametrize("script", [
    "sed -i /^alice:/d /etc/passwd",
    # its number is somebody else's now
    "sed -i s/^alice:/mallory:/ /etc/passwd",
    # a link to a home of its own
    "mv /home/alice /home/real; ln -s real /home/alice; chown -h alice /home/alice",
])
def test_a_home_that_still_is_the_one(node, script):
    one = node("guide.ini")
    one.apply("--user", "alice")
    assert one.shell(script).rc == 0
    revert(one)
    assert one.run("test", "-e", "/home/alice/.nccl.conf").rc == 1


# ---- a full disk ----

@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("pages", range(0, 14))
def test_a_full_disk(node, pages, last):
    """The journal has no room, or the record behind it: all of the way back, or none of it."""
    one = node("guide.ini")
    one.shell("mkdir -p %s && mount -t tmpfs -o size=1M,mode=700 tmpfs %s" % (DIR, DIR))
    before = snapshot(one)
    one.write("/etc/nccl.conf", "# " + 9000 * "x" + "\n")
    one.apply("--user", "alice")
    if last:
        first = snapshot(one)
        one.write("/root/.nccl.conf", "# " + 9000 * "y" + "\n")
        one.json("apply", "--ip", IP, "--ip", "10.0.0.51/24", *QUICK, rc=0)
    applied = snapshot(one)
    one.shell("cat /dev/zero >%s/full; truncate -s -%d %s/full" % (DIR, 4096 * pages, DIR))
    record = one.read(RECORD)
    done = revert(one, *["--last"] if last else [], rc=None)
    if done.rc == 0 and last:
        assert one.ipv4() == [IP] and snapshot(one)["links"] == first["links"]
    elif done.rc == 0:
        assert one.read("/etc/nccl.conf") and one.ipv4() == []
    else:
        assert done.rc in (3, 4) and done.error["code"] == "state.unwritable", done
        assert snapshot(one) == applied and one.read(RECORD) == record
        assert not one.run("test", "-e", JOURNAL).rc == 0
    one.text("rm", DIR + "/full")
    revert(one)
    one.text("rm", "/etc/nccl.conf")
    one.run("rm", "/root/.nccl.conf")
    assert snapshot(one) == before


def test_a_home_without_room(node):
    one = node("guide.ini")
    one.shell("mount -t tmpfs -o size=64k tmpfs /home/alice; chown alice /home/alice")
    one.write("/home/alice/.nccl.conf", "# " + 20000 * "x" + "\nNCCL_SOCKET_IFNAME=eth0\n")
    one.text("chown", "alice", "/home/alice/.nccl.conf")
    old = one.read("/home/alice/.nccl.conf")
    one.apply("--user", "alice")
    new = one.read("/home/alice/.nccl.conf")
    assert new != old
    one.run("sh", "-c", "cat /dev/zero >/home/alice/full")
    done = revert(one, rc=1)
    assert "free space" in done.check("revert.file_refused", "/home/alice/.nccl.conf")["hint"]
    assert one.read("/home/alice/.nccl.conf") == new
    assert one.ipv4() == [] and one.read("/etc/nccl.conf") is None
    one.text("rm", "/home/alice/full")
    revert(one)
    assert one.read("/home/alice/.nccl.conf") == old


# ---- running jobs ----

def test_a_job_runs(guide):
    """Nothing is taken from under it, neither of the whole nor of the last run."""
    before = snapshot(guide)
    guide.apply()
    held = hold(guide)
    applied = snapshot(guide)
    for argv in ([], ["--last"], ["--dry-run"]):
        done = revert(guide, *argv, rc=3)
        assert done.error["code"] == "netdev.in_use" and "(solver)" in done.error["message"]
        assert snapshot(guide) == applied and guide.read(JOURNAL) is None
    done = revert(guide, "--force")
    done.check("netdev.in_use", "ib0")
    assert snapshot(guide) == before
    assert revert(guide).doc["actions"] == []
    guide.kill(held)


def test_a_job_runs_when_a_killed_run_is_found(guide):
    """The refusal leaves the journal of that run as it was."""
    before = snapshot(guide)
    kill_at(guide, "renameat", 5, "apply", "--ip", IP, *QUICK)
    held = hold(guide)
    journal = guide.read(JOURNAL)
    assert journal and guide.ipv4() == [IP]
    assert revert(guide, rc=3).error["code"] == "netdev.in_use"
    assert guide.read(JOURNAL) == journal
    guide.kill(held)
    guide.wait(held)
    revert(guide)
    assert snapshot(guide) == before


def test_nobody_confirmed_and_a_job_runs(guide):
    """Who asks for --confirm wants it back whatever runs: the way in may be gone."""
    before = snapshot(guide)
    guide.apply("--confirm", "600")
    held = hold(guide)
    guide.until("pkill -TERM -x " + GUARD)
    is_taken_back(guide)
    assert snapshot(guide) == before
    guide.kill(held)
    guide.until("! pgrep -x " + GUARD)


# ---- boots ----

@pytest.mark.parametrize("verb", ["confirm", "revert", "apply"])
def test_the_journal_of_a_boot_with_a_longer_uptime(guide, verb):
    """Its time lies ahead of this boot's clock, and is not this boot's: nobody waits for it."""
    before = snapshot(guide)
    guide.apply("--confirm", "86400")
    kill_guard(guide)
    # that boot ended with all that the kernel held
    guide.text("ip", "addr", "flush", "dev", "ib0")
    guide.text("ip", "link", "set", "ib0", "down")
    reboot(guide)
    done = guide.json(verb, *["--ip", IP, *QUICK] if verb == "apply" else [],
                      rc=4 if verb == "confirm" else 0)
    if verb == "apply":
        done.check("confirm.expired", "node")
        assert guide.ipv4() == [IP]
        revert(guide)
    assert snapshot(guide) == before


# ---- arguments ----

@pytest.mark.parametrize("value", ["1e9", "1000000000", "99999999999999999999", " 5", "0x10", "+5",
                                   "-0"])
def test_times_of_confirm(guide, value):
    done = guide.json("apply", "--ip", IP, "--confirm=" + value, rc=2)
    assert done.error["code"] == "usage.value"
    assert guide.ipv4() == []


def test_confirm_in_words_only(guide):
    """--dry-run and plan change nothing, and leave nobody waiting."""
    before = guide.state()
    for argv in (["apply", "--dry-run"], ["plan"]):
        guide.json(*argv, "--ip", IP, "--confirm", "1", *QUICK, rc=0)
    assert guards(guide) == [] and guide.state() == before
    assert guide.json("confirm", rc=0).doc["checks"] == []


def test_who_may_confirm(guide):
    guide.apply("--confirm", "600")
    before = guide.read(JOURNAL)
    try:
        for verb in ("confirm", "revert"):
            done = guide.json(verb, rc=3, user="alice")
            assert done.error["code"] == "privilege.root"
        # nor may it end who waits, or see what was there
        assert guide.run("pkill", "-x", "nodeprep-guard", user="alice").rc != 0
        assert guide.run("cat", JOURNAL, user="alice").rc != 0
        assert len(guards(guide)) == 1 and guide.read(JOURNAL) == before
    finally:
        revert(guide)
    assert guide.ipv4() == []


def test_two_reverts_at_once(guide):
    before = snapshot(guide)
    guide.apply()
    both = [guide.spawn(NODEPREP, "revert", "--json") for _ in range(2)]
    done = [guide.wait(one) for one in both]
    assert [one.rc for one in done] == [0, 0], done
    assert sorted(one.doc["changed"] for one in done) == [False, True]
    assert snapshot(guide) == before
    assert json.loads(done[0].stdout)["verb"] == "revert"


CROWD = """
for i in $(seq {n}); do
    echo u$i:x:$((5000+i)):$((5000+i))::/home/u$i:/bin/sh >>/etc/passwd
    mkdir -p /home/u$i
    head -c 250000 /dev/zero | tr '\\0' '\\001' >/home/u$i/.nccl.conf
    chown -R $((5000+i)):$((5000+i)) /home/u$i
done
"""


def test_homes_do_not_fill_the_undo(guide):
    """What it keeps of them is their choice. It can be read back, whatever they chose."""
    count = 14
    guide.shell(CROWD.format(n=count))
    before = snapshot(guide)
    users = [word for i in range(1, count + 1) for word in ("--user", "u%d" % i)]
    done = guide.run(PLAIN, "apply", "--ip", IP, *QUICK, *users, timeout=300)
    assert done.rc == 0, done
    # old and new content, since the first run and of the last one: two characters a byte
    assert len(guide.read(RECORD)) < count * 250000 * 8 * 1.1
    done = guide.run(PLAIN, "revert", timeout=300)
    assert done.rc == 0, done
    assert snapshot(guide) == before


def test_more_than_the_undo_takes(guide):
    """The largest are left out, and said; a home of a few lines is served all the same."""
    count = 76
    guide.shell(CROWD.format(n=count))
    guide.shell("echo small:x:6000:6000::/home/small:/bin/sh >>/etc/passwd; mkdir /home/small;"
                "echo NCCL_DEBUG=WARN >/home/small/.nccl.conf; chown -R 6000:6000 /home/small")
    before = snapshot(guide)
    users = [word for i in range(1, count + 1) for word in ("--user", "u%d" % i)]
    done = guide.run(PLAIN, "apply", "--json", "--ip", IP, *QUICK, *users, "--user", "small",
                     timeout=300)
    assert done.rc == 1, done
    left = {c["target"] for c in done.checks(code="file.home_refused")}
    # 32 MiB by 500,024 bytes
    assert len(left) == count - 67 and left < {"/home/u%d/.nccl.conf" % i for i in range(1, count + 1)}
    failed = {a["target"] for a in done.doc["actions"] if a["status"] == "failed"}
    assert failed == left
    assert b"NCCL_SOCKET_IFNAME" in guide.read("/home/small/.nccl.conf")
    assert b"NCCL_SOCKET_IFNAME" not in guide.read(sorted(left)[0])
    done = guide.run(PLAIN, "revert", timeout=300)
    assert done.rc == 0, done
    assert snapshot(guide) == before
