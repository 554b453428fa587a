# SPDX-License-Identifier: MIT
"""What nodeprep may do, at each stage and in each child, as the kernel tells it; and what
its unit leaves open. SECURITY.md says why."""

import json
import os
import re
import shutil
import subprocess

import pytest

from helpers import HERE, IP, NODEPREP, PLAIN, PYTHON, ROOT

WATCH = os.path.join(HERE, "security_watch.py")
UNIT = os.path.join(ROOT, "etc/systemd/nodeprep.service")
NETDEV_UNIT = os.path.join(ROOT, "etc/systemd/nodeprep-netdev@.service")
# linux/capability.h
NUMBERS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "FOWNER": 3, "FSETID": 4,
           "KILL": 5, "SETGID": 6, "SETUID": 7, "NET_BIND_SERVICE": 10, "NET_ADMIN": 12,
           "NET_RAW": 13, "IPC_LOCK": 14, "SYS_MODULE": 16, "SYS_CHROOT": 18, "SYS_PTRACE": 19,
           "SYS_ADMIN": 21, "SYS_RESOURCE": 24, "MKNOD": 27, "SYSLOG": 34}
OBSERVE = {"DAC_OVERRIDE", "DAC_READ_SEARCH", "SYS_PTRACE", "SETUID", "SETGID", "KILL",
           "SYS_RESOURCE", "NET_ADMIN", "NET_BIND_SERVICE"}
FILES = {"CHOWN", "FOWNER", "FSETID"}
UNDO = OBSERVE | FILES | {"MKNOD"}
CHANGE = UNDO | {"SYS_MODULE", "SYSLOG", "NET_RAW"}
NO_PROBE = ["--timeout", "0", "--no-selftest", "--no-probe"]


def had():
    """What there is to keep: the tests may run without some."""
    with open("/proc/self/status", encoding="utf-8") as file:
        mask = int(re.search(r"CapPrm:\s*(\w+)", file.read()).group(1), 16)
    # simnode gives these up for its nodes
    return {name for name, number in NUMBERS.items() if mask >> number & 1} - {"SYS_MODULE"}


def names(mask):
    mask = int(mask, 16)
    known = {name for name, number in NUMBERS.items() if mask >> number & 1}
    assert mask == sum(1 << NUMBERS[name] for name in known), "more than %s: %x" % (known, mask)
    return known


def watch(one, *argv, full=False, rc=0):
    done = one.run(PYTHON, WATCH, "full" if full else "", json.dumps(argv))
    assert done.rc == 0, done
    answer = json.loads(done.stdout)
    assert answer["rc"] == rc, answer["out"]
    return answer


def confined(facts):
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2"), facts
    assert facts["CapInh"] == facts["CapAmb"] == "0" * 16, facts
    assert facts["CapPrm"] == facts["CapEff"], facts


# ---- the agent ----

@pytest.mark.parametrize("program", [PLAIN, NODEPREP], ids=["plain", "sanitized"])
@pytest.mark.parametrize("argv", [
    ["show", "--json"], ["show", "netdevs"], ["plan", "--ip", IP], ["check", "--ip", IP],
    ["check", "--ip", IP, "--prometheus"], ["apply", "--ip", IP, *NO_PROBE]],
    ids=lambda argv: argv[0])
def test_the_report_has_no_rights(node, program, argv):
    one = node("guide.ini")
    one.apply()
    answer = watch(one, program, *argv, full=True)
    agent = answer["seen"][answer["main"]][-1]
    confined(agent)
    assert agent["CapPrm"] == "0" * 16 and agent["Uid"].split() == ["0"] * 4, agent
    # and all of the report gets out of it
    assert answer["out"] == one.run(program, *argv).stdout and answer["out"].endswith("\n")


def test_a_failed_report_is_still_told(guide):
    """What comes after a write that fails works in the filter, too."""
    done = guide.run("sh", "-c", 'exec "$0" show >/dev/full', PLAIN)
    assert done.rc == 5 and "cannot write the report" in done.stderr, done


def words(value):
    """As strace writes them, the lower 32 first: 0x80834ff|0x4."""
    return names("%x" % sum(int(part, 16) << 32 * i for i, part in enumerate(value.split("|"))))


# Not sanitized, so that the filters are as strict as in the program. Each line is a call that
# has to be refused (-) or has to work (+).
CALLS = r"""
#include "base/confine.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#define TRY(call) (errno = 0, printf("%c %s\n", (call) ? '+' : errno == EPERM ? '-' : '?', #call))
int main(int argc, char **argv)
{
	static char page[4096] __attribute__((aligned(4096)));
	struct stat st;
	struct winsize size;
	void *block;
	int report = !strcmp(argv[1], "report");
	if (np_confine(report ? NP_CONFINE_REPORT : NP_CONFINE_CHILD) < 0)
		return 1;
	TRY(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	if (!report)
		return 0;
	TRY(open("/dev/null", O_RDONLY) >= 0);
	TRY(read(0, page, 1) >= 0);
	TRY(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	TRY(fork() >= 0);
	TRY(execl("/bin/true", "true", NULL) == 0);
	TRY(kill(getpid(), 0) == 0);
	TRY(syscall(SYS_tgkill, getppid(), getppid(), 0) == 0);
	TRY(stat("/", &st) == 0);
	TRY(unlink("/nowhere/x") == 0);
	TRY(dup(1) >= 0);
	TRY(ioctl(1, TIOCGWINSZ, &size) == 0);
	TRY(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	TRY(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 0, 0) != MAP_FAILED);
	TRY(mprotect(page, sizeof(page), PROT_READ | PROT_EXEC) == 0);
	TRY(fstat(1, &st) == 0);
	TRY(syscall(SYS_tgkill, getpid(), getpid(), 0) == 0);
	TRY(mprotect(page, sizeof(page), PROT_READ) == 0);
	TRY((block = malloc(100 << 20)) != NULL);
	TRY((block = realloc(block, 200 << 20)) != NULL);
	free(block);
	return 0;
}
"""


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    program = tmp_path_factory.mktemp("calls") / "calls"
    done = subprocess.run(["gcc", "-w", "-D_GNU_SOURCE", "-iquote", ROOT, "-o", str(program),
                           os.path.join(ROOT, "base/confine.c"), "-x", "c", "-"],
                          input=CALLS, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr

    def tried(kind):
        found = subprocess.run([program, kind], stdin=subprocess.DEVNULL, text=True,
                               capture_output=True, check=False)
        assert found.returncode == 0, found
        return found.stdout.splitlines()

    return tried


def test_the_filter_of_the_report(calls):
    found = calls("report")
    assert [line[0] for line in found] == ["-"] * 15 + ["+"] * 5, found


def test_a_child_traces_nobody(calls):
    assert [line[0] for line in calls("child")] == ["-"]


def stages(one, *argv, program=PLAIN):
    """The capability sets that it gives itself, in order, without those of its children."""
    done = one.run("strace", "-qq", "-X", "raw", "-o", "/tmp/trace", "-e", "trace=capset", "-e", "signal=none",
                   program, *argv)
    sets = []
    for line in one.text("cat", "/tmp/trace").splitlines():
        masks = re.findall(r"(effective|permitted|inheritable)=([0-9a-fx|]+)", line)
        sets.append({name: words(value) for name, value in masks})
        assert sets[-1]["effective"] == sets[-1]["permitted"], line
        assert not sets[-1]["inheritable"], line
    return done.rc, [s["effective"] for s in sets]


@pytest.mark.parametrize("verb", ["show", "plan", "check"])
def test_who_looks_keeps_what_looking_needs(guide, verb):
    guide.apply()
    rc, sets = stages(guide, verb, *([] if verb == "show" else ["--ip", IP]))
    assert rc == 0 and sets == [OBSERVE & had(), set()]


def test_apply_gives_up_by_stage(guide):
    for _ in range(2):
        rc, sets = stages(guide, "apply", "--ip", IP, *NO_PROBE)
        assert rc == 0 and sets == [CHANGE & had(), UNDO & had(), set()]


def test_an_image_is_not_left_again(guide):
    guide.shell("mkdir -p /tmp/image/etc")
    rc, sets = stages(guide, "apply", "--root", "/tmp/image")
    image = (OBSERVE | FILES) & had()
    assert rc == 0 and sets == [image | {"SYS_CHROOT"}, image, set()]


def test_the_rungs_of_root_keep_what_root_has(guide):
    rc, sets = stages(guide, "selftest", "--as-root", "tcp")
    assert (rc, sets) == (1, [set()]), "no address yet: the rung fails, the rights are asked for"
    rc, sets = stages(guide, "selftest", "tcp")
    assert sets == [OBSERVE & had(), set()]


# ---- children ----

def children(answer, **want):
    """The last that was seen of each process that got as far as @want."""
    found = []
    for pid, states in answer["seen"].items():
        last = states[-1]
        if pid != answer["main"] and all(last[key].split()[0] == value
                                         for key, value in want.items()):
            found.append(last)
    return found


def watched(one, *argv, rc=0, before="true", **want):
    """The children that got as far as @want. On a busy machine one may be missed, or be seen for
    the last time when it had not given its rights up yet: one of so many runs counts."""
    for _ in range(10):
        one.shell(before)
        answer = watch(one, *argv, rc=rc)
        found = children(answer, **want)
        if found and all(child["Seccomp"] == "2" for child in found):
            break
    assert found, answer["seen"]
    return found


def strace(call, path=None):
    """Slows a call down, so that who makes it can be looked at."""
    return ["strace", "-f", "-qq", "-o", "/dev/null", *(["-P", path] if path else []), "-e",
            "trace=" + call, "-e", "inject=%s:delay_enter=300000" % call]


@pytest.mark.parametrize("program", [PLAIN, NODEPREP], ids=["plain", "sanitized"])
def test_who_writes_in_a_home(guide, program):
    guide.shell("echo 'alice:x:1000:1000::/home/alice:/bin/sh' >>/etc/passwd;"
                "mkdir -p /home/alice; chown 1000:1000 /home/alice")
    env = ["env", "ASAN_OPTIONS=detect_leaks=0"]
    for writer in watched(guide, *env, *strace("fsync"), program, "apply", "--ip", IP, "--user", "alice",
                          *NO_PROBE, before="rm -f /home/alice/.nccl.conf", Uid="1000", Seccomp="2"):
        confined(writer)
        assert names(writer["CapPrm"]) == set()
    assert b"NCCL_SOCKET_IFNAME" in guide.read("/home/alice/.nccl.conf")


def test_who_asks_the_name_service(guide):
    guide.write("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
    guide.write("/etc/hosts", "127.0.0.1\tlocalhost\n10.0.0.50\tnode01-ib0\n")
    guide.write("/etc/nodeprep/nodeprep.conf", "[netdev ib0]\naddress = hosts:node01-ib0/24\n")
    seen = watched(guide, *strace("openat", "/etc/hosts"), PLAIN, "plan", Name="nodeprep", Seccomp="2")
    asked = [c for c in seen
             if names(c["CapPrm"]) == {"DAC_READ_SEARCH", "NET_BIND_SERVICE"} & had()]
    assert asked, seen
    confined(asked[0])


def test_the_rungs(guide):
    guide.apply()
    for rung in watched(guide, PLAIN, "selftest", "tcp", Name="nodeprep-selfte", Uid="65534"):
        confined(rung)
        assert names(rung["CapPrm"]) == set()


# In place of the self-test: a library that wants to type on the terminal of root.
TYPIST = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
int main(void)
{
	FILE *told = fopen("/tmp/told", "a");
	int fd = open("/dev/tty", O_RDWR);
	fprintf(told, "%d %d %s\n", getuid(), getsid(0) == getpid(), fd < 0 ? strerror(errno) : "open");
	fprintf(told, "%s\n", ioctl(0, TIOCSTI, "#") < 0 ? strerror(errno) : "typed");
	return fclose(told);
}
"""


@pytest.mark.parametrize("argv, uid", [([], 65534), (["--as-root"], 0)], ids=["nobody", "root"])
def test_a_rung_has_no_terminal(node, tmp_path, argv, uid):
    """What it types there would be read by the shell that root returns to."""
    done = subprocess.run(["gcc", "-o", tmp_path / "nodeprep-selftest", "-x", "c", "-"],
                          input=TYPIST, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    shutil.copy(PLAIN, tmp_path / "nodeprep")
    one = node("guide.ini", "--bind", str(tmp_path))
    one.apply()
    one.shell("rm -f /tmp/told")
    # this test has a terminal indeed
    spawn = [PYTHON, "-c", "import pty, sys; pty.spawn(sys.argv[1:])"]
    assert one.run(*spawn, "sh", "-c", ": </dev/tty && echo yes").stdout.split() == ["yes"]
    one.run(*spawn, str(tmp_path / "nodeprep"), "selftest", "tcp", *argv)
    assert one.text("cat", "/tmp/told").splitlines() == [
        "%d 1 No such device or address" % uid, "Operation not permitted"]


HOLDER = """
import os, sys, time
deadline = time.monotonic() + 600
open("/tmp/looks", "w").close()
while time.monotonic() < deadline and not os.path.exists("/tmp/done"):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/status" % pid) as file:
                status = file.read()
            if "Uid:\t1000\t1000" not in status or "Seccomp:\t2" not in status:
                continue
            folder = "/proc/%s/fd" % pid
            links = {int(fd): os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder)}
            if 0 not in links:  # on its way out
                continue
            # what it reads about itself is its own
            links = {fd: t for fd, t in links.items() if not t.startswith("/proc/%s/" % pid)}
            with open("/proc/%s/stat" % pid) as file:
                own = file.read().rsplit(")", 1)[1].split()[3] == pid
        except OSError:
            continue
        print(own, *(("%d=%s" % item) for item in sorted(links.items())), flush=True)
"""


def test_who_acts_in_a_home_has_nothing_of_ours(guide):
    """Neither the lock nor the state, nor a socket or terminal of root."""
    guide.shell("echo 'alice:x:1000:1000::/home/alice:/bin/sh' >>/etc/passwd;"
                "mkdir -p /home/alice; chown 1000:1000 /home/alice; echo typed >/tmp/typed")
    guide.write("/tmp/holder.py", HOLDER)
    holder = guide.spawn(PYTHON, "/tmp/holder.py")
    guide.until("test -e /tmp/looks")
    done = guide.run(
        "sh", "-c", 'exec "$0" "$@" </tmp/typed 2>/tmp/log', *strace("fsync"), PLAIN, "apply",
        "--ip", IP, "--user", "alice", *NO_PROBE)
    guide.write("/tmp/done", "x")
    assert done.rc == 0, done
    seen = guide.wait(holder).stdout.splitlines()
    assert seen
    for line in seen:
        own, *links = line.split()
        links = dict(link.split("=", 1) for link in links)
        assert own == "True" and links["0"] == links["1"] == "/dev/null", line
        assert links["2"] == "/tmp/log", line
        # its answer, and what it works on
        others = [target for fd, target in links.items() if int(fd) > 2]
        assert [t for t in others if not t.startswith("/home/alice")][1:] == [], line
        assert not any(t.startswith("socket:") for t in others), line


def test_the_rung_of_root(guide):
    """umad has to be root, to open the device; that is all it gets of root."""
    guide.apply()
    for rung in watched(guide, PLAIN, "selftest", "umad", rc=1, Name="nodeprep-selfte", Uid="0"):
        confined(rung)
        assert names(rung["CapPrm"]) == {"DAC_OVERRIDE"} & had()


# ---- the unit ----

@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
@pytest.mark.parametrize("path", [UNIT, NETDEV_UNIT])
def test_exposure_of_the_unit(tmp_path, path):
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", path],
                          capture_output=True, text=True, check=False)
    assert "Overall exposure level" in done.stdout, done
    level = float(re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout).group(1))
    assert level < 4, done.stdout
    # with a program that is there nothing is found fault with
    program = tmp_path / "nodeprep"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / os.path.basename(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert "/usr/libexec/nodeprep/unattended boot" in text
    unit.write_text(text.replace("/usr/libexec/nodeprep/unattended", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit).replace("@", "@ib0")],
                          capture_output=True, text=True, check=False)
    assert "nodeprep" not in done.stderr, done.stderr


def test_both_units_are_fenced_in_alike():
    """The reasons stand in one of them; what differs is when they run, and what of."""
    def fence(path):
        with open(path, encoding="utf-8") as file:
            text = file.read().split("[Service]")[1].split("[Install]")[0]
        return [line for line in text.splitlines()
                if line and line[0] != "#" and not line.startswith(("ExecCondition=", "RemainAfterExit="))]

    assert fence(UNIT) == fence(NETDEV_UNIT) and len(fence(UNIT)) > 40


def test_the_unit_gives_what_the_program_keeps():
    """All that apply keeps, but for what the unit says it goes without."""
    with open(UNIT, encoding="utf-8") as file:
        given = set(re.findall(r"\bCAP_(\w+)", " ".join(
            line for line in file if line.startswith("CapabilityBoundingSet="))))
    assert given == CHANGE - {"SYS_MODULE", "SYSLOG", "SYS_RESOURCE"}
