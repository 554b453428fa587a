# SPDX-License-Identifier: MIT
"""Whose homes are written, as whom, and what is refused there (C35)."""

import stat

import pytest
from helpers import FILES, IP, NODEPREP, QUICK

LINE = b"NCCL_SOCKET_IFNAME=ib0\n"
CONF = "/etc/nodeprep/nodeprep.conf"


def owned(node, path):
    """(mode, uid, gid)"""
    return tuple(node.tree(path)[path][1:4])


def test_user_alice(guide):
    done = guide.apply("--user", "alice")
    written = [a[1] for a in done.actions() if a[0] == "file.write"]
    assert "/home/alice/.nccl.conf" in written and "/root/.nccl.conf" in written
    assert guide.read("/home/alice/.nccl.conf") == LINE
    assert owned(guide, "/home/alice/.nccl.conf") == (0o644, 1000, 1000)
    assert guide.apply("--user", "alice").doc["actions"] == []
    # once each, however often named
    assert guide.apply("--user", "alice", "--user", "alice", "--user", "root").doc["actions"] == []


def test_mode_and_owner_of_a_file_are_kept(guide):
    guide.shell("echo NCCL_DEBUG=WARN >/home/alice/.nccl.conf; "
                "chown alice:root /home/alice/.nccl.conf; chmod 0600 /home/alice/.nccl.conf")
    guide.apply("--user", "alice")
    assert guide.read("/home/alice/.nccl.conf") == b"NCCL_DEBUG=WARN\n" + LINE
    assert owned(guide, "/home/alice/.nccl.conf")[:2] == (0o600, 1000)


def test_sudo_user(guide):
    """Under sudo the invoking user's home is meant, not root's."""
    done = guide.apply(env={"SUDO_USER": "alice", "SUDO_UID": "1000", "HOME": "/root"})
    assert [a[1] for a in done.actions() if "nccl" in a[1]] == ["/home/alice/.nccl.conf",
                                                               "/etc/nccl.conf"]
    assert owned(guide, "/home/alice/.nccl.conf") == (0o644, 1000, 1000)
    assert guide.read("/root/.nccl.conf") is None


def test_sudo_user_says_nothing_without_root(guide):
    """An unprivileged caller can set it to anything."""
    plan = guide.json("plan", "--ip", IP, rc=0, user="alice", env={"SUDO_USER": "root"})
    files = [a[1] for a in plan.actions() if "nccl" in a[1]]
    assert files == ["/etc/nccl.conf"]


def test_sudo_user_that_does_not_exist(guide):
    done = guide.apply(env={"SUDO_USER": "nobody-here"})
    assert "/root/.nccl.conf" in [a[1] for a in done.actions()]


def test_home_comes_from_the_password_database(guide):
    """As NCCL does it; HOME may be anything."""
    guide.apply("--user", "alice", env={"HOME": "/tmp"})
    assert guide.read("/home/alice/.nccl.conf") == LINE and guide.read("/root/.nccl.conf") == LINE
    assert guide.read("/tmp/.nccl.conf") is None


@pytest.mark.parametrize("name", ["nobody-here", "", "alice\n", "../alice", "1000000", "-"])
def test_unknown_user(shared_guide, name):
    before = shared_guide.state()
    done = shared_guide.nodeprep("apply", "--ip", IP, "--user", "alice", "--user", name)
    assert (done.rc, done.stdout) == (2, ""), done
    assert "user" in done.stderr and done.stderr.count("\n") == 1
    assert shared_guide.state() == before


def test_users_of_the_configuration(guide):
    guide.write(CONF, "[nccl]\nusers = alice\n")
    guide.apply()
    assert guide.read("/home/alice/.nccl.conf") == LINE


@pytest.mark.parametrize("scope, home, system", [
    ("home", True, False), ("system", False, True), ("off", False, False), ("both", True, True)])
def test_scope(guide, scope, home, system):
    guide.write(CONF, "[nccl]\nscope = %s\n" % scope)
    guide.apply()
    assert (guide.read("/root/.nccl.conf") is not None) is home
    assert (guide.read("/etc/nccl.conf") is not None) is system


# ---- C35 ----

WORDS = {"link": "symbolic link", "fifo": "FIFO", "folder": "directory", "device": "device",
         "hard": "owner"}


@pytest.mark.parametrize("user", sorted(WORDS))
def test_c35_each_kind_is_refused(node, user):
    one = node("c35-homes.ini")
    path = "/home/%s/.nccl.conf" % user
    before = one.tree("/etc/shadow", "/home", "/dev")
    done = one.json("apply", "--ip", IP, "--user", user, *QUICK, rc=1)
    check, = done.checks(status="fail")
    assert (check["code"], check["target"]) == ("file.home_refused", path)
    assert WORDS[user] in check["message"], check
    assert check["hint"]
    assert "error" not in done.doc and done.doc["ready"] is False
    # the rest of the run went on
    assert one.ipv4() == [IP]
    for other in FILES:
        assert one.read(other) is not None, other
    assert one.tree("/etc/shadow", "/home", "/dev") == before
    assert one.json("check", "--ip", IP, "--user", user, rc=1).failed() == [
        ("file.home_refused", path)]


def test_c35_all_at_once_and_a_good_one(node):
    one = node("c35-homes.ini")
    argv = [word for user in sorted(WORDS) + ["alice"] for word in ("--user", user)]
    done = one.json("apply", "--ip", IP, *argv, *QUICK, rc=1)
    assert done.failed() == [("file.home_refused", "/home/%s/.nccl.conf" % user)
                             for user in sorted(WORDS)]
    assert one.read("/home/alice/.nccl.conf") == LINE
    again = one.json("apply", "--ip", IP, *argv, *QUICK, rc=1)
    assert again.doc["actions"] == [] and again.doc["changed"] is False


@pytest.mark.parametrize("trick", [
    # the home itself, or a folder above it, leads elsewhere
    "rm -rf /home/alice; ln -s /root /home/alice",
    "rm -rf /home/alice; ln -s /etc /home/alice",
    # the folder belongs to somebody else
    "chown root:root /home/alice; chmod 0755 /home/alice",
    "rm -rf /home/alice",
    "rm -rf /home/alice; touch /home/alice",
    # a socket, an enormous file
    "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"/home/alice/.nccl.conf\")'",
    "truncate -s 3G /home/alice/.nccl.conf; chown alice /home/alice/.nccl.conf",
    "cd /home/alice; echo A=1 >mine; chown alice mine; ln mine .nccl.conf",
    "ln -s .real /home/alice/.nccl.conf; echo >/home/alice/.real",
])
def test_hostile_homes(guide, trick):
    assert guide.shell(trick).rc == 0
    before = guide.tree("/etc/shadow", "/home")
    done = guide.apply("--user", "alice", rc=1)
    (code, target), = done.failed()
    assert target == "/home/alice/.nccl.conf", done
    assert code in ("file.home_refused", "file.unreadable") and done.check(code)["hint"]
    assert guide.read("/root/.nccl.conf") == LINE and guide.ipv4() == [IP]
    assert guide.tree("/etc/shadow", "/home") == before


def test_an_unreadable_file_of_the_owner(guide):
    """The home is entered as its owner, who cannot read it: asked for and not done is not ready."""
    guide.shell("echo NCCL_DEBUG=WARN >/home/alice/.nccl.conf; chmod 0 /home/alice/.nccl.conf; "
                "chown alice /home/alice/.nccl.conf")
    done = guide.apply("--user", "alice", rc=1)
    assert [target for _, target in done.failed()] == ["/home/alice/.nccl.conf"]
    assert guide.read("/home/alice/.nccl.conf") == b"NCCL_DEBUG=WARN\n"


def test_swapped_while_it_is_written(guide):
    """A user swaps the file against a link all the time: /etc/shadow never changes."""
    before = guide.tree("/etc/shadow")
    racer = guide.spawn("python3", "-c", """
import os
while True:
    for make in (lambda: os.symlink("/etc/shadow", "/home/alice/new"),
                 lambda: open("/home/alice/new", "w").close(),
                 lambda: os.mkfifo("/home/alice/new")):
        make()
        os.rename("/home/alice/new", "/home/alice/.nccl.conf")
""", user="alice", timeout=60)
    codes = set()
    for _ in range(8):
        codes.add(guide.apply("--user", "alice", rc=None, timeout=20).rc)
    guide.kill(racer, 9)
    guide.wait(racer)
    assert codes <= {0, 1}, codes
    assert guide.tree("/etc/shadow") == before
    names = guide.tree("/home/alice")
    left = [name for name in names if "nodeprep-" in name]
    assert left == []


def test_a_shared_file_that_is_a_link_is_refused_too(guide):
    """/etc is root's, yet a link there is somebody's wish: refused and said, not followed."""
    guide.write("/etc/site-nccl.conf", "NCCL_DEBUG=WARN\n")
    guide.text("ln", "-s", "site-nccl.conf", "/etc/nccl.conf")
    done = guide.apply(rc=1)
    assert done.failed() == [("file.refused", "/etc/nccl.conf")]
    assert guide.read("/etc/site-nccl.conf") == b"NCCL_DEBUG=WARN\n"
    assert stat.S_ISLNK(guide.tree("/etc/nccl.conf")["/etc/nccl.conf"][0])


def test_a_full_home_is_a_refusal_not_a_rollback(guide):
    """alice's quota is used up: her file fails, the node stays configured."""
    assert guide.shell("mount -t tmpfs -o size=8k,mode=0755,uid=1000,gid=1000 none /home/alice && "
                       "head -c 8192 /dev/zero >/home/alice/fill; df /home/alice | tail -1").rc == 0
    done = guide.apply("--user", "alice", rc=1)
    assert [target for _, target in done.failed()] == ["/home/alice/.nccl.conf"], done
    assert guide.ipv4() == [IP] and guide.read("/root/.nccl.conf") == LINE
    assert sorted(guide.tree("/home/alice")) == ["/home/alice", "/home/alice/fill"]


def test_sudo_itself_is_not_needed(guide):
    """The program runs with an empty environment, as from a post-install hook."""
    done = guide.run(NODEPREP, "apply", "--json", "--ip", IP, *QUICK, only_env={})
    assert done.rc == 0 and guide.read("/root/.nccl.conf") == LINE
