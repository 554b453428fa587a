# SPDX-License-Identifier: MIT
"""nodeprep-ranks under Slurm's own launcher: srun --mpi=pmix over two hosts (namespaces), each
with its slurmd. Slurm is unpacked, not installed: its packages would start services."""

import os
import signal
import subprocess
import time

import pytest
from helpers import BUILD
from ranks_world import RANKS, TCP, Done, Job, World, need_launcher

SLURM = os.path.join(BUILD, "slurm")
CONF = """ClusterName=test
SlurmctldHost=h1(10.70.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation=%(dir)s/state
SlurmdSpoolDir=%(dir)s/spool-%%n
SlurmctldPidFile=%(dir)s/slurmctld.pid
SlurmdPidFile=%(dir)s/slurmd-%%n.pid
SlurmctldLogFile=%(dir)s/slurmctld.log
SlurmdLogFile=%(dir)s/slurmd-%%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
MessageTimeout=100
TCPTimeout=60
NodeName=h1 NodeAddr=10.70.0.1 CPUs=8 State=UNKNOWN
NodeName=h2 NodeAddr=10.70.0.2 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=h1,h2 Default=YES State=UP
"""
# each node has a /tmp of its own, where Slurm's PMIx keeps its sockets; slurmd looks for the
# control groups, which `ip netns exec` hides, and uses none
ON = r"""#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts --ipc --mount sh -c '
	mount -t tmpfs none /tmp && mount --rbind /run/lock/cgroup /sys/fs/cgroup &&
	hostname "$0" && exec sh -c "$*"' "$host" "$@"
"""


class Cluster:
    def __init__(self, folder):
        self.world = World(folder, 2)
        # in sight of every node, and in this world alone
        self.dir = "/run/lock/s"
        self.world.run("sh", "-c", "mount -t tmpfs none /run/lock && mkdir -p /run/lock/s/state "
                       "/run/lock/cgroup && mount --rbind /sys/fs/cgroup /run/lock/cgroup")
        self.env = {"PATH": os.environ["PATH"], "HOME": "/root", "LC_ALL": "C",
                    "SLURM_CONF": self.dir + "/slurm.conf", **TCP}
        self.world.run("mount", "-t", "overlay", "slurm", "-o",
                       "lowerdir=%s/usr:/usr" % SLURM, "/usr")
        self.put("slurm.conf", CONF % {"dir": self.dir})
        self.put("on", ON)
        self.daemons = [self.popen("h1", "exec slurmctld-wlm -D")]
        self.daemons += [self.popen(host, "exec slurmd-wlm -D -N " + host)
                         for host in ("h1", "h2")]
        try:
            self.wait_idle()
        except BaseException:
            self.close()
            raise

    def put(self, name, text):
        subprocess.run(self.world.enter(["sh", "-c", "cat >%s/%s && chmod 755 %s/%s" % (
            self.dir, name, self.dir, name)]), input=text, text=True, check=True)

    def command(self, host, line):
        return ["%s/on" % self.dir, host, line]

    def popen(self, host, line):
        return subprocess.Popen(self.world.enter(self.command(host, line)), env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def wait_idle(self):
        until = time.monotonic() + 300
        shown = ""
        while time.monotonic() < until:
            shown = subprocess.run(self.world.enter(self.command("h1", "sinfo -h -o '%D %t'")),
                                   env=self.env, capture_output=True, text=True,
                                   check=False).stdout
            if shown.strip() == "2 idle":
                return
            time.sleep(0.3)
        raise AssertionError("Slurm does not come up: " + shown + self.logs())

    def logs(self):
        return subprocess.run(self.world.enter(["sh", "-c", "tail -n 20 %s/*.log" % self.dir]),
                              capture_output=True, text=True, check=False).stdout

    def start(self, *options, tasks=4):
        self.wait_idle()
        line = "exec srun --mpi=pmix -N 2 --ntasks-per-node=%d %s %s" % (tasks // 2, RANKS, " ".join(options))
        return Job(self.world, self.command("h1", line), self.env, 900)

    def close(self):
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()
        self.world.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    need_launcher()
    if not os.path.exists(os.path.join(SLURM, "usr/sbin/slurmd-wlm")):
        pytest.skip("Slurm is not there: make test unpacks it")
    stepd = os.path.join(SLURM, "usr/sbin/slurmstepd")
    if not os.path.lexists(stepd):  # what update-alternatives would make
        os.symlink("slurmstepd-wlm", stepd)
    one = Cluster(tmp_path_factory.mktemp("slurm"))
    yield one
    one.close()


def test_srun(cluster):
    done = cluster.start("--json").wait()
    assert isinstance(done, Done) and done.rc == 0, repr(done) + cluster.logs()
    ranks = done.ranks
    assert ranks["size"] == 4 and ranks["verified"] == 12
    assert [entry["host"] for entry in ranks["list"]] == ["h1", "h1", "h2", "h2"]
    assert [entry["final_size"] for entry in ranks["list"]] == [4] * 4
    carriers = {ranks["carriers"][ranks["carrier"][i][j]] for i in (0, 1) for j in (2, 3)}
    assert carriers == {"tcp/eth1"}


def test_a_worker_that_dies_under_slurm(cluster):
    job = cluster.start("--json", "--no-allreduce", "--size", "1048576", "--trials", "1000",
                        "--timeout", "600")
    os.kill(job.pid(3, "ranks-worker"), signal.SIGKILL)
    done = job.wait()
    assert done.rc != 0
    assert done.one("ranks.died")["target"] == "rank 3 on h2 (eth1)"


def test_a_stopped_worker_under_slurm(cluster):
    job = cluster.start("--json", "--no-allreduce", "--size", "1048576", "--trials", "1000",
                        "--timeout", "600")
    os.kill(job.pid(1, "ranks-worker"), signal.SIGSTOP)
    done = job.wait()
    assert done.rc != 0
    assert done.one("ranks.hung")["target"] == "rank 1 on h1 (eth1)"
