# SPDX-License-Identifier: MIT
"""The simulated node itself: does it obey, and does it leave no trace?"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                os.pardir, "sim"))
from simlib import schema  # noqa: E402  pylint: disable=wrong-import-position
from simtest import (GUIDE, ROOT, SIM, SIMNODE,  # noqa: E402
                     node, shell, sim)  # pylint: disable=wrong-import-position

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def running():
    """Starts guide.ini under a name of its own, and stops it."""
    name = "test-%d" % os.getpid()
    done = sim("start", name, GUIDE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    yield name
    with contextlib.suppress(Exception):
        sim("stop", name)


# Whose files, users and environment.

@as_root
def test_users_and_their_homes():
    done = sim("--user", "alice", GUIDE, "--", "sh", "-c",
               "id -un; id -u; id -g; echo $HOME $USER $LOGNAME; cd; "
               "touch mine; stat -c %U:%G:%a . mine; ! touch /etc/mine")
    assert done.stdout.splitlines() == [
        "alice", "1000", "1000", "/home/alice alice alice",
        "alice:alice:755", "alice:alice:644"]
    assert shell("guide.ini", "getent passwd alice; echo $HOME").split() == [
        "alice:x:1000:1000::/home/alice:/bin/bash", "/root"]
    done = sim("--user", "alcie", GUIDE, "--", "true")
    assert done.returncode == 125 and "alice" in done.stderr


def test_environment():
    env = dict(os.environ, SUDO_USER="bob", SUDO_UID="7", HOME="/nowhere",
               UCX_TLS="rc", USER="bob")
    got = node("guide.ini", "env", env=env).splitlines()
    assert not [line for line in got if line.startswith("SUDO_")]
    assert {"HOME=/root", "USER=root", "LOGNAME=root",
            "UCX_TLS=rc"} <= set(got)


def test_working_directory_is_kept(tmp_path):
    done = sim(GUIDE, "--", "sh", "-c", "pwd; touch made", cwd=tmp_path)
    assert done.stdout == "%s\n" % tmp_path
    assert (tmp_path / "made").exists()
    extra = tmp_path / "extra"
    extra.mkdir()
    shell("guide.ini", "touch %s/bound" % extra, "--bind", str(extra),
          cwd=ROOT)
    assert (extra / "bound").exists()
    # a checkout below /tmp is the one thing of the host's that stays there
    kept = "%s\n" % ROOT.split("/")[2] if str(ROOT).startswith("/tmp/") else ""
    assert shell("guide.ini", "ls /tmp", cwd="/") == kept


def test_nothing_of_the_host_changes_or_shows(tmp_path):
    def host():
        links = subprocess.run(["ip", "-j", "addr"], capture_output=True,
                               text=True, check=True).stdout
        names = [(x["ifname"], x["mtu"], [a.get("local") for a in
                                          x["addr_info"]])
                 for x in json.loads(links)]
        with open("/proc/self/mounts", encoding="utf-8") as file:
            mounts = file.read()
        return names, mounts, os.uname().nodename, os.listdir("/etc")
    before = host()
    mark = "simnode-test-%d" % os.getpid()
    text = shell("guide.ini", """
        mark=%s
        for d in /etc /var /var/lib /run /root /home /tmp /var/tmp /dev/shm
        do touch $d/$mark || echo cannot write $d; done
        touch /usr/$mark 2>/dev/null && echo wrote /usr
        ip addr add 10.9.9.9/24 dev ib0; ip link set lo mtu 1234
        test ! -e %s || echo the host shows
        hostname changed; hostname
        """ % (mark, tmp_path), cwd=ROOT)
    assert text == "changed\n"
    assert host() == before
    for place in ("/etc", "/var", "/var/lib", "/run", "/home", "/tmp",
                  "/var/tmp", "/dev/shm", "/usr"):
        assert not os.path.exists("%s/%s" % (place, mark))
    assert node("guide.ini", "ls", "/sys/class/net").split() == [
        "eth0", "ib0", "lo"]
    assert len(node("guide.ini", "ps", "-e").splitlines()) == 3


@as_root
def test_a_module_cannot_be_loaded_into_the_host():
    caps = shell("guide.ini", "grep CapEff /proc/self/status").split()[1]
    assert not int(caps, 16) >> 16 & 1


# Exit codes and signals.

@pytest.mark.parametrize("script, code", [
    ("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143),
    ("kill -KILL $$", 137)])
def test_exit_code_is_the_commands(script, code):
    assert sim(GUIDE, "--", "sh", "-c", script).returncode == code


def test_command_that_is_not_there():
    done = sim(GUIDE, "--", "no-such-command")
    assert done.returncode == 127 and "no-such-command" in done.stderr
    assert sim(GUIDE, "--", "/etc/passwd").returncode == 126


def test_streams_are_the_commands():
    done = sim(GUIDE, "--", "sh", "-c", "cat; echo to stderr >&2",
               input="to stdout")
    assert (done.stdout, done.stderr) == ("to stdout", "to stderr\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on(number):
    with subprocess.Popen(
            [SIMNODE, GUIDE, "--", "/usr/bin/python3", "-c",
             # os.write: the signal may come while the first line is being written
             "import os, signal\n"
             "def got(n, _): os.write(1, b'%%d\\n' %% n); os._exit(9)\n"
             "signal.signal(%d, got)\nos.write(1, b'ready\\n')\n"
             "signal.pause()" % number],
            stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.read() == "%d\n" % number
        assert process.wait(20) == 9


def test_nothing_is_left_of_a_killed_simnode():
    mark = "86%05d" % (os.getpid() % 100000)
    with subprocess.Popen([SIMNODE, GUIDE, "--", "sh", "-c",
                           "echo ready; exec sleep " + mark],
                          stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.kill()
        process.wait(20)
    deadline = time.monotonic() + 120
    while processes_with(mark):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def processes_with(word):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                if file.read().split(b"\0")[1:2] == [word.encode()]:
                    found.append(pid)
    return found


# Nodes that stay.

def test_a_node_that_stays(running):
    assert running in sim("list").stdout.split()
    done = sim("exec", running, "--", "sh", "-c",
               "echo kept > /etc/kept; ip link set ib0 up; exit 5")
    assert done.returncode == 5
    done = sim("exec", running, "--", "cat", "/etc/kept", cwd=ROOT)
    assert done.stdout == "kept\n"
    done = sim("start", running, GUIDE)
    assert done.returncode == 125 and "already" in done.stderr
    done = sim("set", running, "port.mlx5_0:1.state=INIT",
               "port mlx5_0:1.unreadable=rate", "netdev.ib0.carrier=no",
               "module.gdrdrv.version=2.5")
    assert (done.returncode, done.stderr) == (0, "")
    script = """cd /sys/class/infiniband/mlx5_0/ports/1; cat state
        cat rate 2>&1; ip -j link show ib0; cat /sys/module/gdrdrv/version"""
    state, rate, link, version = sim(
        "exec", running, "--", "sh", "-c", script).stdout.splitlines()
    assert (state, version) == ("2: INIT", "2.5")
    assert "Invalid argument" in rate
    assert "NO-CARRIER" in json.loads(link)[0]["flags"]
    sim("set", running, "port.mlx5_0:1.unreadable=",
        "module.gdrdrv.loaded=no", "netdev.ib0.carrier=yes")
    done = sim("exec", running, "--", "sh", "-c",
               script.replace("version", "version 2>&1"))
    assert done.stdout.splitlines()[1] == "100 Gb/sec (4X EDR)"
    assert "LOWER_UP" in json.loads(done.stdout.splitlines()[2])[0]["flags"]
    assert "No such file" in done.stdout.splitlines()[3]
    assert sim("stop", running).returncode == 0
    assert running not in sim("list").stdout.split()
    done = sim("exec", running, "--", "true")
    assert done.returncode == 125 and running in done.stderr


def test_set_changes_nothing_when_one_key_is_wrong(running):
    done = sim("set", running, "port.mlx5_0:1.state=INIT",
               "port.mlx5_0:1.stat=INIT")
    assert done.returncode == 2 and "did you mean state" in done.stderr
    done = sim("set", running, "port.mlx5_9:1.state=INIT")
    assert done.returncode == 2
    done = sim("exec", running, "--", "cat",
               "/sys/class/infiniband/mlx5_0/ports/1/state")
    assert done.stdout == "4: ACTIVE\n"


@as_root
def test_exec_as_a_user(running, tmp_path):
    done = sim("exec", running, "--user", "alice", "--", "sh", "-c",
               "id -un; echo $HOME")
    assert done.stdout == "alice\n/home/alice\n"
    done = sim("exec", running, "--", "sh", "-c", "pwd; touch here",
               cwd=tmp_path)
    assert done.stdout == "%s\n" % tmp_path
    assert (tmp_path / "here").exists()


# Without root.

def test_an_ordinary_user_gets_a_node(tmp_path):
    command = [SIMNODE, "--without", "user alice", GUIDE, "--", "sh", "-c",
               "ibstatus | grep -c ACTIVE; ip -j link show ib0; "
               "cat /sys/class/net/ib0/mode; ip addr add 10.0.0.50/24 dev ib0;"
               "touch /etc/nccl.conf && ls /etc/nccl.conf; id -u"]
    if os.geteuid() == 0:
        ordinary = ["setpriv", "--reuid=65534", "--regid=65534",
                    "--clear-groups", "--"]
        if subprocess.run(ordinary + ["test", "-r", SIMNODE],
                          check=False).returncode:
            pytest.skip("the checkout is in a folder that only root enters")
        command = ordinary + command
        if not os.stat("/dev/net/tun").st_mode & 0o006 == 0o006:
            # a machine where it is root's alone: one for all, in this test alone
            tun = str(tmp_path / "tun")
            command = ["unshare", "-m", "sh", "-ec",
                       'test -e "$0" || mknod -m 666 "$0" c 10 200; '
                       'mount --bind "$0" /dev/net/tun; exec "$@"',
                       tun] + command
    done = subprocess.run(command, capture_output=True, text=True,
                          check=False, timeout=60, cwd="/")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "4"
    assert json.loads(lines[1])[0]["link_type"] == "infiniband"
    assert lines[2:] == ["connected", "/etc/nccl.conf", "0"]
    without = command.index("--without")
    del command[without:without + 2]
    done = subprocess.run(command, capture_output=True, text=True,
                          check=False, timeout=60, cwd="/")
    assert done.returncode == 0 and "[user alice]" in done.stderr
    command[command.index(GUIDE):] = ["--user", "alice", GUIDE, "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True,
                          check=False, timeout=60, cwd="/")
    assert done.returncode == 125 and "cannot become alice" in done.stderr


# Bad node files.

@pytest.mark.parametrize("text, said", [
    ("[prot mlx5_0:1]\n", ":1: unknown section [prot mlx5_0:1] "
     "(did you mean port?)"),
    ("[port mlx5_0:1]\nstat = INIT\n", ":2: [port mlx5_0:1] has no key 'stat'"
     " (did you mean state?)"),
    ("[port mlx5_0]\n", ":1: [port mlx5_0]: a port is named CA:NUMBER"),
    ("[node]\nhostname\n", ":2: neither [section] nor KEY = VALUE"),
    ("hostname = x\n", ":1: 'hostname' stands before the first section"),
    ("[netdev ib0]\nup = perhaps\n", ":2: [netdev ib0] up: 'perhaps' is "
     "neither yes nor no"),
    ("[netdev ib0]\ntype = ipiob\n", "(did you mean ipoib?)"),
    ("[netdev ib0]\nca = mlx5_0\n", ":2: no port mlx5_0:1"),
    ("[netdev e0]\naddresses = 10.0.0.500/24\n", ":2: [netdev e0] addresses"),
    ("[node]\ninclude = none.ini\n", ":2: no such file"),
    ("[netdev ib0]\nup = yes\nup = no\n", ":3: [netdev ib0] up is already"),
    ("[gpu 17:00]\n", "is no PCI address"),
    ("[file x]\n", ":1: [file x]: a file is named by its full path"),
])
def test_bad_node_files(tmp_path, text, said):
    path = tmp_path / "bad.ini"
    path.write_text(text)
    done = sim(str(path), "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("simnode: %s" % path)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments, said", [
    ((GUIDE,), "-- COMMAND"), ((GUIDE, "--"), "-- COMMAND"),
    (("none.ini", "--", "true"), "none.ini"),
    (("--ovrelay", "x", GUIDE, "--", "true"), "did you mean --overlay?"),
    (("--set", "port mlx5_0:1.stat=1", GUIDE, "--", "true"), "state?"),
    (("--without", "netdev ib1", GUIDE, "--", "true"), "netdev ib0?"),
    (("start", "a/b", GUIDE), "is no name"),
    ((), "usage")])
def test_bad_command_lines(arguments, said):
    done = sim(*arguments)
    assert done.returncode == 2
    assert said in done.stdout + done.stderr


def test_overlay_and_without(tmp_path):
    extra = tmp_path / "extra.ini"
    extra.write_text("[port mlx5_2:1]\nstate = DOWN\nphys_state = Disabled\n"
                     "[hosts]\nnode01-ib0 = 10.0.0.50\n")
    text = shell("guide.ini", "cat /sys/class/infiniband/mlx5_2/ports/1/*state"
                 "; ls /sys/class/net; getent hosts node01-ib0",
                 "--overlay", str(extra), "--without", "netdev ib0")
    assert text.split() == ["3:", "Disabled", "1:", "DOWN", "eth0", "lo",
                            "10.0.0.50", "node01-ib0"]


def test_readme_names_every_key():
    with open(os.path.join(SIM, "README.md"), encoding="utf-8") as file:
        parts = re.split(r"^### \[(\w+)", file.read(), flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2]))
    for kind, keys in {**schema.NAMED, **schema.PLAIN}.items():
        for key in keys or ():
            assert "`%s`" % key in sections[kind], (kind, key)


def test_the_node_is_there_quickly():
    """Against this machine as it is at the moment: starts of Python, side by side."""
    best, usual = 100.0, 100.0
    for _ in range(20):
        best = min(best, timed(SIMNODE, GUIDE, "--", "true"))
        usual = min(usual, timed("/usr/bin/python3", "-c", "import json, socket, subprocess"))
        if best < max(1.0, 20 * usual):
            return
    raise AssertionError("%.2f s, Python %.2f s" % (best, usual))


def timed(*argv):
    begin = time.monotonic()
    subprocess.run(argv, check=True, capture_output=True)
    return time.monotonic() - begin
