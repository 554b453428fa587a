# SPDX-License-Identifier: MIT
"""The limit that a user gets at login: our reading of limits.conf against pam_limits itself,
which `runuser -l` runs on a simulated node. A finite hard limit cannot be raised here without
CAP_SYS_RESOURCE; pam_limits then leaves the limits of its caller, and the test expects that."""

import os
import resource

import pytest
from helpers import BUILD, Node, need_node

RENDER = os.path.join(BUILD, "asan", "unit", "render_limits")
CONF, FOLDER = "/etc/security/limits.conf", "/etc/security/limits.d/"
KIB = 1024
PID1_SOFT, OWN_SOFT = 4000, 100

# user, then limits.conf, or {file of limits.d: text}
CASES = [
    ("carol", ""),
    ("carol", "# * - memlock 7\n\n   \n"),
    ("carol", "* - memlock 70"),
    ("carol", "*\t-\tmemlock\t70\r\n"),
    ("carol", "  * - memlock 70 # 80\n"),
    ("carol", "* - memlock 70 80 90\n"),
    ("carol", "* HARD MemLock 70\n"),
    # soft and hard
    ("carol", "* hard memlock 70\n"),
    ("carol", "* soft memlock 70\n"),
    ("carol", "* soft memlock 70\n* hard memlock 60\n"),
    ("carol", "* soft memlock 50\n* hard memlock 60\n"),
    ("carol", "* soft memlock unlimited\n"),
    ("carol", "* soft memlock unlimited\n* hard memlock 60\n"),
    # root
    ("root", "* - memlock 70\n"),
    ("root", "@root - memlock 70\n"),
    ("root", "@:0 - memlock 70\n"),
    ("root", "@0:5 - memlock 70\n"),
    ("root", ":0 - memlock 70\n"),
    ("root", "0:0 - memlock 70\n"),
    ("root", "0 - memlock 70\n"),
    ("root", "root - memlock 70\n* - memlock 60\n"),
    ("root", "@root -\nroot - memlock 70\n"),
    # groups: carol is in ibusers (2000, primary) and staffx (2001)
    ("carol", "@ibusers - memlock 70\n* - memlock 60\n"),
    ("carol", "* - memlock 60\n@staffx - memlock 70\n"),
    ("carol", "@nosuch - memlock 70\n"),
    ("carol", "@other - memlock 70\n"),
    ("carol", "@ibusers - memlock 70\n@staffx - memlock 60\n"),
    ("carol", "@2000 - memlock 70\n"),
    ("carol", "@:2001 - memlock 70\n"),
    ("carol", "@:2002 - memlock 70\n"),
    ("carol", "@2000: - memlock 70\n"),
    ("carol", "@2001: - memlock 70\n"),
    ("carol", "@1900:2100 - memlock 70\n"),
    ("carol", "@2001:2100 - memlock 70\n"),
    ("carol", "%ibusers - memlock 70\n"),
    ("carol", "% - memlock 70\n"),
    # numbers of users
    ("carol", "1500 - memlock 70\n"),
    ("carol", ":1500 - memlock 70\n"),
    ("carol", ":1600 - memlock 70\n"),
    ("carol", "1500: - memlock 70\n"),
    ("carol", "1501: - memlock 70\n"),
    ("carol", "1400:1600 - memlock 70\n"),
    ("carol", "1600:1400 - memlock 70\n"),
    ("carol", "1400:x - memlock 70\n"),
    ("carol", "x:1600 - memlock 70\n"),
    ("carol", "1400:1600:1700 - memlock 70\n"),
    ("carol", ": - memlock 70\n"),
    ("carol", "@: - memlock 70\n"),
    # which one wins
    ("carol", "carol - memlock 70\n@ibusers - memlock 60\n* - memlock 50\n"),
    ("carol", "* - memlock 50\n@ibusers - memlock 60\ncarol - memlock 70\n"),
    ("carol", "carol - memlock 70\n1400:1600 - memlock 60\n"),
    ("carol", "1400:1600 - memlock 60\ncarol - memlock 70\n"),
    ("carol", "carol soft memlock 7\n* - memlock 30\n"),
    ("carol", "carol hard memlock 70\n* - memlock 30\n"),
    ("carol", "carol hard memlock 20\n* - memlock 30\n"),
    ("carol", "* - memlock 30\n* - memlock 40\n"),
    # switched off
    ("carol", "* - memlock 50\ncarol -\n"),
    ("carol", "carol -\n* - memlock 50\n"),
    ("carol", "carol -x\n* - memlock 50\n"),
    ("carol", "@ibusers -\n* - memlock 50\n"),
    ("carol", "@other -\n* - memlock 50\n"),
    ("carol", "1400: -\n* - memlock 50\n"),
    ("carol", ":1501 -\n* - memlock 50\n"),
    ("carol", "@:2001 -\n* - memlock 50\n"),
    ("carol", "1500 -\n* - memlock 50\n"),
    ("carol", "* -\n* - memlock 50\n"),
    ("carol", "%ibusers -\n* - memlock 50\n"),
    # lines that are skipped, or read otherwise than they look
    ("carol", "* both memlock 50\n* - memlock\n* memlock 50\n*\n"),
    ("carol", "* - memlock 50k\n"),
    ("carol", "* - memlock 0x50\n"),
    ("carol", "* - memlock +50\n"),
    ("carol", "* - memlock x50\n* hard memlock +\n"),
    ("carol", "* - memlock -50\n"),
    ("carol", "* - memlock -0\n"),
    ("carol", "* soft memlock -\n"),
    ("carol", "* soft memlock -1\n"),
    ("carol", "* soft memlock Infinity\n"),
    ("carol", "* soft memlock 18014398509481983\n"),
    ("carol", "* soft memlock 99999999999999999999999999\n"),
    ("carol", "* - memlocks 50\n* - as unlimited\n"),
    # files
    ("carol", {"a.conf": "* - memlock 50\n", "b.conf": "* - memlock 60\n"}),
    ("carol", {"B.conf": "* - memlock 50\n", "a.conf": "* - memlock 60\n"}),
    ("carol", {"a_.conf": "* - memlock 50\n", "a.conf": "* - memlock 60\n"}),
    ("carol", {"10.conf": "* - memlock 50\n", "9.conf": "* - memlock 60\n"}),
    ("carol", {"a.conf": "* - memlock 50\n", "b.conf.rpmnew": "* - memlock 60\n",
               ".c.conf": "* - memlock 70\n", "conf": "* - memlock 80\n"}),
    ("carol", {"a.conf": "carol - memlock 50\n", "z.conf": "@ibusers - memlock 60\n"}),
    ("carol", {"a.conf": "* - memlock 50\n", "z.conf": "carol -\n"}),
]


@pytest.fixture(scope="module", name="login_node")
def fixture_login_node():
    """A node whose PID 1 has another soft limit than those who log in from a shell on it."""
    need_node()
    assert os.access(RENDER, os.X_OK), "no %s: run make unit-programs" % RENDER
    if not os.path.exists("/etc/debian_version"):
        pytest.skip("the pam_limits of this system is not Debian's")
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (PID1_SOFT * KIB, hard))
    one = Node("guide.ini")
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (soft, hard))
    for command in ("groupadd -g 2000 ibusers", "groupadd -g 2001 staffx", "groupadd -g 2002 other",
                    "useradd -m -u 1500 -g ibusers -G staffx carol"):
        one.text(*command.split())
    assert "pam_limits.so" in one.read("/etc/pam.d/runuser-l").decode() + \
        one.read("/etc/pam.d/runuser").decode()
    yield one
    one.close()


def may_raise(node):
    line = [x for x in node.text("cat", "/proc/self/status").splitlines() if "CapEff" in x][0]
    return bool(int(line.split()[1], 16) >> 24 & 1)


def number(word):
    return float("inf") if word == "unlimited" else int(word)


@pytest.mark.parametrize("user, text", CASES, ids=[repr(case)[:70] for case in CASES])
def test_as_pam_limits(login_node, user, text):
    one = login_node
    one.text("sh", "-c", "rm -rf %s; mkdir %s" % (FOLDER, FOLDER))
    one.write(CONF, text if isinstance(text, str) else "")
    for name, content in text.items() if isinstance(text, dict) else ():
        one.write(FOLDER + name, content)
    said = one.text(RENDER, user).split(None, 2)
    # from a soft limit of its own, which is PID 1's no more
    done = one.shell("ulimit -Sl %d; ulimit -Hl; exec runuser -l %s -c 'ulimit -Sl; ulimit -Hl'"
                     % (OWN_SOFT, user))
    assert done.rc == 0, done
    own_hard, *real = done.stdout.split()
    # nodeprep takes the login service's limit, which here is the caller's, for what PAM keeps
    if "sets none" in said[2]:
        assert said[:2] == [str(PID1_SOFT), own_hard]
        said[:2] = [str(OWN_SOFT), own_hard]
    if number(said[1]) > number(own_hard) and not may_raise(one):
        said[:2] = [str(OWN_SOFT), own_hard]
    assert said[:2] == real, said


def test_the_table_tells_apart(login_node):
    """Were pam_limits not run, or our answer a constant, the table would be empty talk."""
    one = login_node
    seen = set()
    for text in ("", "* - memlock 50\n", "carol soft memlock 60\n"):
        one.text("sh", "-c", "rm -rf %s" % FOLDER)
        one.write(CONF, text)
        seen.add(one.text("runuser", "-l", "carol", "-c", "ulimit -Sl").strip())
    assert seen == {str(PID1_SOFT), "50", "60"}


def test_file_and_line(login_node):
    one = login_node
    one.text("sh", "-c", "rm -rf %s; mkdir %s" % (FOLDER, FOLDER))
    one.write(CONF, "")
    assert one.text(RENDER, "carol").split(None, 2)[2] == "the limit of PID 1\n"
    one.write(FOLDER + "b.conf", "#\n* soft memlock 50\n* hard memlock 60\n")
    assert one.text(RENDER, "carol") == "50 60 %sb.conf:2\n" % FOLDER
    one.write(FOLDER + "c.conf", "@staffx hard memlock 40\n")
    assert one.text(RENDER, "carol") == "40 40 %sc.conf:1\n" % FOLDER
    one.write(FOLDER + "d.conf", "\ncarol -\n")
    assert one.text(RENDER, "carol").endswith("since %sd.conf:2 sets none\n" % FOLDER)


def test_a_file_that_cannot_be_read_is_no_answer(login_node):
    one = login_node
    one.write(CONF, "* - memlock 50\n")
    one.text("chmod", "0600", CONF)
    done = one.run(RENDER, "alice", user="alice")
    one.text("chmod", "0644", CONF)
    assert done.rc == 1 and done.stderr.startswith("limits.unreadable: " + CONF), done
