# SPDX-License-Identifier: MIT
"""memlock: which limit the rungs run with, what apply writes for logins, and what it says of
services that limits.conf does not reach (C12). How limits.conf itself is read is in
test_login_limits.py."""

import subprocess

import pytest
from helpers import IP, NODEPREP

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


# ---- what apply writes ----

ALL = "*\tsoft\tmemlock\t%s\n*\thard\tmemlock\t%s\n" \
    "root\tsoft\tmemlock\t%s\nroot\thard\tmemlock\t%s\n"


def lines(text):
    return "".join(line + "\n" for line in text.decode().splitlines() if line[0] != "#")


def configure(node, text):
    node.write("/etc/nodeprep/nodeprep.conf", "[limits]\n" + text)


def limits_actions(done):
    return [(a["id"], a["target"]) for a in done.doc["actions"] if "/security/" in a["target"]]


def test_apply_gives_logins_unlimited_memlock(guide):
    done = guide.apply()
    assert limits_actions(done) == [("file.write", OURS)]
    assert lines(guide.read(OURS)) == ALL % (("unlimited",) * 4)
    given = done.check("limits.memlock", "memlock")
    assert given["status"] == "ok" and OURS + ":4" in given["message"]
    assert guide.apply().doc["actions"] == []
    assert limits_actions(guide.json("check", "--ip", IP, rc=0)) == []


def test_a_login_has_it(guide):
    """The real pam_limits reads the file; a number that may be set everywhere is shown."""
    configure(guide, "memlock = 2 MiB\n")
    guide.apply()
    for user in ("alice", "root"):
        login = guide.text("runuser", "-l", user, "-c", "ulimit -Sl; ulimit -Hl")
        assert login.split() == ["2048", "2048"], user


def test_number_group_and_keep(guide):
    configure(guide, "memlock = 64 GiB\n")
    guide.apply()
    assert lines(guide.read(OURS)) == ALL % (("67108864",) * 4)
    configure(guide, "memlock = 64 GiB\ngroup = alice\n")
    done = guide.apply()
    assert limits_actions(done) == [("file.write", OURS)]
    assert lines(guide.read(OURS)) == "@alice\tsoft\tmemlock\t67108864\n" \
        "@alice\thard\tmemlock\t67108864\n"
    assert "group alice gets 67108864 KiB" in done.check("limits.memlock")["message"]
    assert not done.checks(code="limits.group_unknown")
    configure(guide, "group = nosuch\n")
    assert guide.apply().check("limits.group_unknown", "nosuch")["status"] == "warn"
    configure(guide, "memlock = keep\n")
    done = guide.apply()
    assert limits_actions(done) == [("file.remove", OURS)] and guide.read(OURS) is None
    assert not done.checks(id="limits")
    assert guide.apply().doc["actions"] == []


def test_no_hca_no_file(node):
    one = node("guide.ini", "--set", "node.infiniband_class=no")
    done = one.apply(rc=None)
    assert limits_actions(done) == [] and one.read(OURS) is None
    assert not done.checks(id="limits")


@pytest.mark.parametrize("path", [CONF, FOLDER + "90-site.conf"])
def test_what_the_site_gives_already_is_not_written_again(guide, path):
    guide.write(path, "* soft memlock unlimited\n* hard memlock unlimited\n")
    done = guide.apply()
    assert limits_actions(done) == [] and guide.read(OURS) is None
    assert path + ":1" in done.check("limits.memlock")["message"]
    assert guide.apply().doc["actions"] == []
    # not enough: then ours comes beside it, and theirs stays
    guide.write(path, "* soft memlock 64\n* hard memlock 64\n")
    before = guide.read(path)
    done = guide.apply()
    assert limits_actions(done) == [("file.write", OURS)] and guide.read(path) == before
    assert not done.checks(code="limits.overridden")


def test_a_later_file_that_overrides_is_named(guide):
    guide.apply()
    guide.write(FOLDER + "zz-site.conf", "# ours alone\n* hard memlock 64\n* memlock 64\n")
    for done in (guide.json("check", "--ip", IP, rc=0), guide.apply()):
        assert done.doc["actions"] == []
        found = done.check("limits.overridden", FOLDER + "zz-site.conf:2")
        assert found["status"] == "warn" and "64 KiB" in found["message"] and found["hint"]
        assert done.check("limits.line_ignored", FOLDER + "zz-site.conf:3")["status"] == "warn"
        assert not done.checks(code="limits.memlock")


def test_files_that_cannot_be_read_are_unknown(guide):
    guide.apply()
    guide.text("chmod", "0600", CONF)
    done = guide.json("check", "--ip", IP, user="alice")
    assert done.check("limits.unreadable", CONF)["status"] == "unknown"


def test_a_link_in_its_place_is_refused(guide):
    guide.text("mkdir", "-p", FOLDER)
    guide.text("ln", "-s", "/etc/shadow", OURS)
    before = guide.read("/etc/shadow")
    done = guide.apply(rc=1)
    assert ("file.refused", OURS) in done.failed()
    assert guide.read("/etc/shadow") == before


# ---- services (C12) ----

def play(node, name, limit):
    """A process of that name with a limit, as a service would be."""
    node.text("cp", "/bin/sleep", "/tmp/" + name)
    spawned = node.spawn("sh", "-c", "ulimit -Sl %s; exec /tmp/%s 600" % (limit, name))
    node.until("grep -qsx %s /proc/%d/comm" % (name[:15], spawned[1]))
    return spawned


@pytest.mark.parametrize("name", ["slurmd", "dask-cuda-worker", "containerd"])
def test_a_service_with_little_memlock_is_named(guide, name):
    guide.write(CONF, "* - memlock unlimited\nroot - memlock unlimited\n")
    service = play(guide, name, 64)
    for done in (guide.json("check"), guide.json("plan"), guide.apply()):
        found = done.check("limits.service_memlock")
        assert found["status"] == "warn" and "64 KiB" in found["message"]
        assert found["target"] == name[:15] and "process %d" % service[1] in found["message"]
        assert "LimitMEMLOCK=infinity" in found["hint"]
        # limits.conf does give it to logins
        assert done.check("limits.memlock")["status"] == "ok"
    guide.kill(service)


def test_a_service_with_enough_is_fine(guide):
    configure(guide, "memlock = 1 MiB\n")
    service = play(guide, "slurmd", 1024)
    assert not guide.json("check").checks(code="limits.service_memlock")
    configure(guide, "memlock = 1025 KiB\n")
    assert "LimitMEMLOCK=1025K" in guide.json("check").check("limits.service_memlock")["hint"]
    configure(guide, "memlock = keep\n")
    assert not guide.json("check").checks(code="limits.service_memlock")
    guide.kill(service)


@pytest.mark.parametrize("slice_", ["/sys/fs/cgroup/system.slice",
                                    "/sys/fs/cgroup/systemd/system.slice"])
def test_the_unit_is_named(guide, slice_):
    """By systemd's control groups; a run with nothing to do finds it there, too."""
    guide.text("mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup")
    service = play(guide, "slurmd", 64)
    for unit, pid in (("slurmd.service", service[1]), ("ssh.service", service[1]),
                      ("slurmctld.service", service[1]), ("kubelet.service", 99999999),
                      ("docker.socket", service[1])):
        guide.write("%s/%s/cgroup.procs" % (slice_, unit), "%d\n1\n" % pid)
    guide.apply()
    for done in (guide.apply(), guide.json("check", "--ip", IP)):
        assert done.doc["actions"] == []
        found = done.check("limits.service_memlock", "slurmd.service")
        assert found["hint"].startswith("systemctl edit slurmd.service")
        assert "slurmd (process %d) has memlock 64 KiB" % service[1] in found["message"]
    guide.kill(service)
