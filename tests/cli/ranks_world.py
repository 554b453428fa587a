# SPDX-License-Identifier: MIT
"""Hosts for nodeprep-ranks: network, UTS and IPC namespaces that mpirun starts its daemons in
as on other machines. eth0 is the launcher's, eth1 the ranks'; both lead to a bridge, or eth1
to a switch of our own (ranks_switch.py), where pairs can be slow. All of it lies in a private
PID and mount namespace and is gone with its first process."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from helpers import BUILD, HERE, PYTHON, validate

RANKS = os.path.join(BUILD, "nodeprep-ranks")
HOOKED = os.path.join(BUILD, "asan", "nodeprep-ranks")
TCP = {"UCX_TLS": "tcp,sm,self", "UCX_NET_DEVICES": "eth1"}

SET_UP = r"""set -eu
hosts=$1 switched=$2
mount --make-rprivate /
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip link set lo up
ip link add br0 type bridge
ip link add br1 type bridge
ip link set br0 up
ip link set br1 up
for i in $(seq "$hosts"); do
	ip netns add "h$i"
	ip -n "h$i" link set lo up
	for n in 0 1; do
		[ "$n$switched" != 11 ] || continue
		ip link add "eth$n" netns "h$i" type veth peer name "v$n-$i"
		ip link set "v$n-$i" master "br$n" up
		ip -n "h$i" addr add "10.7$n.0.$i/24" dev "eth$n"
		ip -n "h$i" link set "eth$n" up
	done
done
"""

# mpirun calls it as it calls ssh: the host, then a command line
AGENT = r"""#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts --ipc sh -c 'hostname "$0"; exec sh -c "$*"' "$host" "$@"
"""


def need_launcher():
    for program in (RANKS, HOOKED):
        assert os.access(program, os.X_OK), "no %s: run make all asan" % program
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not there: make deps installs it")
    if os.geteuid() != 0:
        pytest.skip("needs root: namespaces as hosts")


class Done:
    """A finished job."""

    def __init__(self, argv, rc, stdout, stderr, seconds):
        self.argv, self.rc, self.stdout, self.stderr = argv, rc, stdout, stderr
        self.seconds = seconds
        for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
            assert word not in stderr, stderr
        self.doc = None
        if "--json" in argv[-1] and stdout.strip():
            self.doc = json.loads(stdout)
            validate(self.doc)

    def __repr__(self):
        return "%s: rc %s in %.1f s\n--- stdout\n%s\n--- stderr\n%s" % (
            " ".join(self.argv)[-400:], self.rc, self.seconds, self.stdout[-6000:],
            self.stderr[-4000:])

    @property
    def ranks(self):
        return self.doc["ranks"]

    def findings(self, status="fail"):
        return [c for c in self.doc["checks"] if c["status"] == status]

    def one(self, code, status="fail"):
        """The only finding of that status; its code is @code."""
        found = self.findings(status)
        assert len(found) == 1 and found[0]["code"] == code, repr(self)
        return found[0]


class Job:
    """A running one."""

    def __init__(self, world, argv, env, timeout):
        self.argv, self.world, self.timeout = argv, world, timeout
        self.start = time.monotonic()
        self.process = subprocess.Popen(
            world.enter(argv), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)

    def wait(self):
        try:
            out, err = self.process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            out, err = self.process.communicate()
            raise AssertionError("the job did not end\n%s\n%s" % (out, err)) from None
        return Done(self.argv, self.process.returncode, out, err,
                    time.monotonic() - self.start)

    def pid(self, rank, comm="nodeprep-ranks", within=300):
        """The process of a rank, once it is there: its supervisor, or "ranks-worker"."""
        until = time.monotonic() + within
        while time.monotonic() < until and self.process.poll() is None:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                if self._is_it(pid, rank, comm):
                    return int(pid)
            time.sleep(0.02)
        raise AssertionError("no process of rank %d\n%r" % (rank, self.wait()))

    def _is_it(self, pid, rank, comm):
        try:
            with open("/proc/%s/comm" % pid, encoding="ascii", errors="replace") as file:
                if file.read().strip() != comm:
                    return False
            with open("/proc/%s/environ" % pid, "rb") as file:
                if b"PMIX_RANK=%d" % rank not in file.read().split(b"\0"):
                    return False
            return os.readlink("/proc/%s/ns/pid" % pid) == self.world.pid_namespace
        except OSError:
            return False


class World:
    """So many hosts, h1 and on. @delays: ranks_switch.py's arguments, and a switch."""

    def __init__(self, folder, hosts, delays=None):
        self.folder, self.hosts = str(folder), hosts
        self.agent = os.path.join(self.folder, "agent")
        with open(self.agent, "w", encoding="ascii") as file:
            file.write(AGENT)
        os.chmod(self.agent, 0o755)
        self.process = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             "sh", "-c", SET_UP + "echo ready; exec sleep infinity", "world", str(hosts),
             "1" if delays is not None else "0"], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        with open("/proc/%d/task/%d/children" % ((self.process.pid,) * 2),
                  encoding="ascii") as file:
            self.pid = file.read().split()[0]
        self.pid_namespace = os.readlink("/proc/%s/ns/pid" % self.pid)
        self.switch = None
        if delays is not None:
            self._start_switch(delays)

    def _start_switch(self, delays):
        names = ["h%d" % i for i in range(1, self.hosts + 1)]
        self.switch = subprocess.Popen(
            self.enter([PYTHON, os.path.join(HERE, "ranks_switch.py"), ",".join(names),
                        *delays]), stdout=subprocess.PIPE, text=True)
        assert self.switch.stdout.readline() == "ready\n"
        for i, name in enumerate(names, 1):
            self.run("ip", "-n", name, "addr", "add", "10.71.0.%d/24" % i, "dev", "eth1")
            self.run("ip", "-n", name, "link", "set", "eth1", "up")

    def enter(self, argv):
        return ["nsenter", "-t", self.pid, "-m", "-n", "-p", *argv]

    def run(self, *argv):
        subprocess.run(self.enter(argv), check=True)

    def on(self, host, *argv):
        self.run("ip", "netns", "exec", host, *argv)

    def start(self, *options, per_host=1, ranks=None, hosts=None, program=RANKS, env=None,
              apps=None, launcher=(), timeout=900):
        """mpirun in h1. @apps: the words after mpirun's own options, instead of one program."""
        hosts = hosts or self.hosts
        np = ranks or hosts * per_host
        places = ",".join("h%d:%d" % (i, -(-np // hosts)) for i in range(1, hosts + 1))
        given = dict(TCP if env is None else env)
        argv = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                "--mca", "plm_rsh_agent", self.agent, "--mca", "oob_tcp_if_include", "eth0",
                "--host", places, *launcher]
        argv += apps(given) if apps else ["-np", str(np), program, *options]
        full = {"PATH": os.environ["PATH"], "HOME": "/root", "LC_ALL": "C",
                "TMPDIR": self.folder, "ASAN_OPTIONS": "detect_leaks=0", **given}
        return Job(self, [self.agent, "h1", "cd /; exec " + " ".join(argv)], full, timeout)

    def job(self, *options, **how):
        return self.start(*options, **how).wait()

    def close(self):
        for process in (self.switch, self.process):
            if process:
                process.kill()
                process.wait()
