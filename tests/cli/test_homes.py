# SPDX-License-Identifier: MIT
"""A thousand homes in one run."""

import re

import pytest
from helpers import IP, PLAIN

N = 1000
SOME = 200
LINE = b"NCCL_SOCKET_IFNAME=ib0\n"
USERS = ["u%04d" % n for n in range(N)]
HOSTILE = {"u0000": "ln -s /etc/shadow .nccl.conf", "u0100": "mkfifo .nccl.conf",
           "u0199": "mkdir .nccl.conf"}


@pytest.fixture
def homes(node, tmp_path):
    crowd = tmp_path / "homes.ini"
    crowd.write_text("".join("[user %s]\nuid = %d\n" % (user, 20000 + n)
                             for n, user in enumerate(USERS)), encoding="utf-8")
    return node("guide.ini", "--overlay", str(crowd))


def argv(verb, n, *options):
    """The plain program: a process a home is what takes the time."""
    users = [word for user in USERS[:n] for word in ("--user", user)]
    return [PLAIN, verb, "--ip", IP, *options, *users]


def apply(node, n=N, rc=0):
    done = node.run(*argv("apply", n, "--json", "--no-selftest"), timeout=300)
    assert done.rc == rc, (done.rc, done.stderr)
    return done


def conf(user):
    return "/home/%s/.nccl.conf" % user


def identities(node):
    """What stat says of each file below /home; another inode or time is a write."""
    return node.text("find", "/home", "-printf", "%p %i %T@ %m %U %G %n %l\n")


def test_a_thousand_homes(homes):
    done = apply(homes)
    written = {a["target"] for a in done.doc["actions"] if a["id"] == "file.write"}
    assert {conf(user) for user in USERS} <= written and done.statuses() == {"done"}
    tree = homes.tree("/home")
    for n, user in enumerate(USERS):
        assert homes.read(conf(user)) == LINE
        assert tuple(tree[conf(user)][1:4]) == (0o644, 20000 + n, 20000 + n)
    # beside it there is nothing else, no temporary file either
    assert len([path for path in tree if re.match("/home/u[0-9]{4}/", path)]) == N
    before = identities(homes)
    again = apply(homes)
    assert again.doc["actions"] == [] and again.doc["changed"] is False and again.doc["ready"]
    assert identities(homes) == before
    assert homes.run(*argv("check", N, "--json"), timeout=300).rc == 0


def test_hostile_homes_among_many(homes):
    for user, trick in HOSTILE.items():
        assert homes.shell("cd /home/%s && %s" % (user, trick), user=user).rc == 0
    before = homes.tree("/etc/shadow", *map(conf, HOSTILE))
    done = apply(homes, SOME, rc=1)
    assert done.failed() == [("file.home_refused", conf(user)) for user in sorted(HOSTILE)]
    assert all(homes.read(conf(user)) == LINE for user in USERS[:SOME] if user not in HOSTILE)
    assert homes.tree("/etc/shadow", *map(conf, HOSTILE)) == before


def test_a_signal_amid_the_homes(homes):
    """What was written is taken back, what was not begun stays undone."""
    homes.run(PLAIN, "apply", "--ip", IP, "--no-selftest")
    before = homes.tree("/home", "/etc")
    # the agent opens one for each child: those that look, then those that write
    done = homes.run("strace", "-qq", "-o", "/dev/null", "-e", "trace=pidfd_open", "-e",
                     "inject=pidfd_open:signal=TERM:when=%d" % (SOME * 3 // 2),
                     *argv("apply", SOME, "--json", "--no-selftest"), timeout=300)
    assert done.rc == 4 and done.error["code"] == "internal.interrupted", done
    assert done.statuses() == {"undone", "not_run"} and done.doc["changed"] is False
    assert homes.tree("/home", "/etc") == before


def test_each_name_is_looked_up_once(homes):
    """A look-up reads the password file from its start, and name services are loaded by
    whoever asks first: neither once a home and round, nor in each child."""
    trace = homes.run("strace", "-f", "-qq", "-o", "/tmp/trace", "-e", "trace=openat",
                      *argv("apply", SOME, "--no-selftest"), timeout=300)
    assert trace.rc == 0, trace
    opened = re.findall(r"^(\d+) .*openat\([^,]*, \"(/etc/passwd|/etc/group|[^\"]*libnss[^\"]*)\"",
                        homes.read("/tmp/trace").decode(), re.M)
    agent = opened[0][0]
    assert {pid for pid, _ in opened} == {agent}
    paths = [path for _, path in opened]
    # besides: the one who calls
    assert SOME <= paths.count("/etc/passwd") <= SOME + 10
    assert SOME <= paths.count("/etc/group") <= SOME + 10


def test_a_home_that_only_a_group_lets_in(node, tmp_path):
    """The child has its owner's supplementary groups."""
    more = tmp_path / "team.ini"
    more.write_text("[user bob]\nuid = 2001\nhome = /home/team/bob\ngroups = video\n"
                    "[user eve]\nuid = 2002\nhome = /home/team/eve\n", encoding="utf-8")
    one = node("guide.ini", "--overlay", str(more))
    assert one.shell("chgrp video /home/team && chmod 0750 /home/team").rc == 0
    done = one.apply("--user", "bob", "--user", "eve", rc=1)
    assert one.read("/home/team/bob/.nccl.conf") == LINE
    assert done.failed() == [("file.unreadable", "/home/team/eve/.nccl.conf")]
    assert one.read("/home/team/eve/.nccl.conf") is None
