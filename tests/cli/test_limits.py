# SPDX-License-Identifier: MIT
"""memlock: which limit the rungs run with, what apply writes for logins, and what it says of
services that limits.conf does not reach (C12). How limits.conf itself is read is in
test_login_limits.py."""

import subprocess

import pytest
from helpers import NODEPREP

CONF, FOLDER = "/etc/security/limits.conf", "/etc/security/limits.d/"
OURS = FOLDER + "nodeprep.conf"

# A rung that says which limit it has, as one that could not pin memory.
FAKE = r"""
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
int main(int argc, char **argv)
{
	const char *device = "";
	struct rlimit l;

	getrlimit(RLIMIT_MEMLOCK, &l);
	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], "--device") || !strcmp(argv[i], "--netdev"))
			device = argv[i + 1];
	printf("{\"schema\": 1, \"verb\": \"selftest\", \"selftest\": [{\"rung\": \"%s\", "
	       "\"device\": \"%s\", \"transport\": \"\", \"status\": \"fail\", "
	       "\"code\": \"selftest.%s.memlock\", \"message\": \"limit %lld KiB, hard %lld KiB\", "
	       "\"hint\": \"h\", \"size_bytes\": null, \"latency_us\": null, "
	       "\"bandwidth_MBps\": null, \"sizes\": []}]}\n", argv[1], device, argv[1],
	       (long long)l.rlim_cur / 1024, (long long)l.rlim_max / 1024);
	return 1;
}
"""


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    where = tmp_path_factory.mktemp("fake")
    (where / "fake.c").write_text(FAKE)
    subprocess.run(["cc", "-o", where / "fake", where / "fake.c"], check=True)
    return (where / "fake").read_bytes()


@pytest.fixture
def rung(node, fake):
    """rung(PREFIX, OPTION...): the entry of a rung, nodeprep started below PREFIX."""
    one = node("guide.ini")
    one.apply()
    one.text("mkdir", "/tmp/fake")
    one.text("cp", NODEPREP, "/tmp/fake/nodeprep")
    one.write("/tmp/fake/nodeprep-selftest", fake)
    one.text("chmod", "755", "/tmp/fake/nodeprep-selftest")
    one.text("rm", "-rf", FOLDER)
    one.write(CONF, "")

    def start(prefix, *options, **how):
        done = one.run("sh", "-c", prefix + 'exec "$0" "$@"', "/tmp/fake/nodeprep", "selftest",
                       "tcp", "--json", *options, **how)
        assert done.rc == 1, done
        entry, = done.doc["selftest"]
        assert entry["code"] == "selftest.tcp.memlock", entry
        return entry

    start.node = one
    return start


# ---- the limit that the rungs run with ----

CALLERS = ["", "ulimit -Sl 64; ", "ulimit -Sl $(ulimit -Hl); ", "ulimit -l 3000; "]


@pytest.mark.parametrize("caller", CALLERS)
def test_rungs_have_the_limit_of_a_login(rung, caller):
    """Whatever limit the caller has: that of nobody, of --run-as, and with --as-root of root."""
    rung.node.write(FOLDER + "site.conf", "nobody soft memlock 1000\nnobody hard memlock 2000\n"
                    "alice - memlock 500\nroot - memlock 200\n* - memlock 100\n")
    for user, options, limits, line in (("nobody", (), "1000 KiB, hard 2000", 1),
                                        ("alice", ("--run-as", "alice"), "500 KiB, hard 500", 3),
                                        ("root", ("--as-root",), "200 KiB, hard 200", 4)):
        entry = rung(caller, *options)
        where = "%ssite.conf:%d" % (FOLDER, line)
        assert entry["message"] == "limit %s KiB, as user %s gets it at login (%s)" % (
            limits, user, where)
        assert where in entry["hint"] and "[limits] memlock" in entry["hint"]


def test_a_user_who_runs_it_alone(rung):
    rung.node.write(CONF, "alice - memlock 500\n")
    entry = rung("ulimit -Sl 64; ", user="alice")
    assert "limit 500 KiB, hard 500 KiB, as user alice gets it at login (%s:1)" % CONF == \
        entry["message"]


def test_where_nothing_is_said(rung):
    """PID 1's limit, as pam_limits takes it, not the caller's."""
    pid1 = [line for line in rung.node.text("cat", "/proc/1/limits").splitlines()
            if "locked" in line][0].split()
    entry = rung("ulimit -Sl 64; ")
    soft = -1 if pid1[3] == "unlimited" else int(pid1[3]) // 1024
    if soft >= 0:
        assert "limit %d KiB, " % soft in entry["message"]
    assert "(the limit of PID 1)" in entry["message"]


def may_raise(node):
    line = [x for x in node.text("cat", "/proc/self/status").splitlines() if "CapEff" in x][0]
    return bool(int(line.split()[1], 16) >> 24 & 1)


def test_a_hard_limit_that_cannot_be_raised(rung):
    """It says what it got, what a login has, and what to do."""
    rung.node.write(CONF, "nobody - memlock 1000\n")
    less = "limit 300 KiB, hard 300 KiB, all that can be given here; " \
        "user nobody gets 1000 KiB at login (%s:1)" % CONF
    entry = rung("ulimit -l 300; exec setpriv --bounding-set=-sys_resource "
                 "--inh-caps=-sys_resource \"$0\" \"$@\"; ")
    assert entry["message"] == less and "CAP_SYS_RESOURCE" in entry["hint"]
    # with it, as on a real node, a caller with a low hard limit makes no difference
    entry = rung("ulimit -l 300; ")
    assert entry["message"] == ("limit 1000 KiB, hard 1000 KiB, as user nobody gets it at login "
                                "(%s:1)" % CONF if may_raise(rung.node) else less)
