# SPDX-License-Identifier: MIT
"""packaging/dask/cluster-test with Debian's Dask: four workers, each a process, and what it
says when one of them is ill. Its part for raft_dask runs over a STAND-IN (tests/standin),
which proves nothing of raft_dask, only what is made of its answers."""

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from helpers import ENV, PYTHON, ROOT

PROGRAM = os.path.join(ROOT, "packaging", "dask", "cluster-test")
STANDIN = os.path.join(ROOT, "tests", "standin")
HOST = socket.gethostname()
N = 4
pytestmark = pytest.mark.skipif(not importlib.util.find_spec("distributed"),
                                reason="Dask is not installed: make deps")


class Cluster:
    """A scheduler and workers on the loopback interface."""

    def __init__(self, folder):
        self.folder = folder
        self.file = str(folder / "scheduler.json")
        self.env = dict(ENV, HOME=str(folder), PYTHONDONTWRITEBYTECODE="1")
        self.running = []

    def start(self, *argv, env=None):
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen(["dask", *argv, "--scheduler-file", self.file,
                                    "--no-dashboard"], cwd=self.folder,
                                   env=dict(self.env, **(env or {})),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=(self.folder / ("%d.log" % len(self.running))).open("w"))
        self.running.append(process)
        return process

    def up(self, workers=N, each=lambda rank: ([], {})):
        """@each(worker) gives its further options and its environment."""
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0")
        self.wait(lambda: os.path.exists(self.file) and json.load(open(self.file, encoding="utf-8")))
        for number in range(workers):
            options, env = each(number)
            self.start("worker", "--nthreads", "1", "--no-nanny", "--name", "w%d" % number,
                       "--local-directory", str(self.folder), *options, env=env)
        return self

    def wait(self, done):
        end = time.monotonic() + 300
        while time.monotonic() < end:
            try:
                if done():
                    return
            except (OSError, ValueError):
                pass
            time.sleep(0.05)
        raise AssertionError([path.read_text() for path in self.folder.glob("*.log")])

    def address(self, number):
        """Of worker @number, from its own log."""
        path = self.folder / ("%d.log" % (number + 1))
        pattern = re.compile(r"Start worker at: +(\S+)")
        self.wait(lambda: pattern.search(path.read_text()))
        return pattern.search(path.read_text()).group(1)

    def test(self, *argv, rc, env=None, timeout=60):
        done = subprocess.run(
            [PYTHON, PROGRAM, "--scheduler-file", self.file, "--workers",
             str(len(self.running) - 1), "--timeout", str(timeout), "--size", "100000", *argv],
            capture_output=True, text=True, cwd=self.folder, env=dict(self.env, **(env or {})),
            stdin=subprocess.DEVNULL, timeout=600, check=False)
        assert done.returncode == rc, done.stdout + done.stderr
        return done

    def down(self):
        for process in self.running:
            process.send_signal(signal.SIGCONT)
            process.kill()
        for process in self.running:
            process.wait(timeout=120)


@pytest.fixture
def cluster(tmp_path):
    one = Cluster(tmp_path)
    yield one
    one.down()


def verdicts(done):
    rows = re.findall(r"^(ok|fail|warn|skip) +(\w+) +(.*)$", done.stdout, re.M)
    return {test: (status, text) for status, test, text in rows}


def statuses(done):
    return {test: status for test, (status, _) in verdicts(done).items()}


def lists(text):
    return [(int(rank), json.loads(row)) for rank, row in
            re.findall(r"^Rank (\d+) received: (\[.*\])$", text, re.M)]


def each_lacks_itself(trials, n=N):
    return [(rank, [r for r in range(n) if r != rank]) for _ in range(trials) for rank in range(n)]


# ---- over Dask's own connections ----

def test_each_reaches_each(cluster):
    done = cluster.up().test(rc=0)
    assert lists(done.stdout) == each_lacks_itself(2)
    assert re.findall(r"^Trial (\d+)$", done.stdout, re.M) == ["0", "1"]
    assert re.findall(r"^Rank (\d) Clique size: 4 final_size: 4$", done.stdout, re.M) == \
        list("0123")
    assert statuses(done) == {"environment": "ok", "dask": "ok", "ucx": "skip", "nccl": "skip"}
    assert done.stdout.splitlines()[-1] == "cluster-test: ok, 4 workers"
    # who they are
    rows = re.findall(r"^  rank (\d)  (\S+)  host (\S+)  python (\S+), distributed (\S+)",
                      done.stdout, re.M)
    assert [row[0] for row in rows] == list("0123")
    assert {row[1] for row in rows} == {cluster.address(number) for number in range(N)}
    assert {row[2] for row in rows} == {HOST} and {row[3] for row in rows} == {
        subprocess.check_output([PYTHON, "-c", "import platform; print(platform.python_version())"],
                                text=True).strip()}
    assert "4 workers on 1 host, protocol tcp" in done.stdout
    # once more on the same workers: nothing of the first run is in the way
    assert lists(cluster.test("--trials", "1", "--size", "1", rc=0).stdout) == each_lacks_itself(1)


def test_a_worker_that_hangs(cluster):
    cluster.up()
    address = cluster.address(2)
    cluster.test("--trials", "1", rc=0)
    cluster.running[3].send_signal(signal.SIGSTOP)
    done = cluster.test(rc=1, timeout=20)
    status, text = verdicts(done)["environment"]
    assert status == "fail" and text.startswith("%s (host " % address) and "did not answer" in text
    assert "dask" not in verdicts(done)
    assert done.stdout.count("did not answer") == 2  # where it is found, and in the verdict


def test_an_address_that_others_cannot_reach(cluster):
    """As where a worker tells the name of another interface."""
    with socket.socket() as free:
        # as long as it is bound nobody else gets it
        free.bind(("127.0.0.1", 0))
        wrong = "tcp://127.0.0.1:%d" % free.getsockname()[1]
        cluster.up(each=lambda number: (
            ["--listen-address", "tcp://127.0.0.1:0", "--contact-address", wrong] if number == 1
            else [], {}))
        done = cluster.test(rc=1, timeout=12)
    status, text = verdicts(done)["environment"]
    assert status == "fail" and "cannot fetch it from that address" in text
    assert text.startswith("%s (host 127.0.0.1)" % wrong)


def test_a_worker_that_cannot_reach_the_others(cluster, tmp_path):
    """Its connections to the scheduler alone succeed."""
    (tmp_path / "refuse.py").write_text("""
import json
from distributed.comm import tcp
scheduler = json.load(open(%r))["address"].split("//")[1]
if not hasattr(tcp, "real"):
    tcp.real = tcp.TCPConnector.connect
    async def refuse(self, address, *args, **options):
        if address != scheduler:
            raise OSError("no route to host, played")
        return await tcp.real(self, address, *args, **options)
    tcp.TCPConnector.connect = refuse
""" % cluster.file)
    # Dask tries again for that long
    soon = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s"}
    cluster.up(each=lambda number: (["--preload", str(tmp_path / "refuse.py")]
                                    if number == 1 else [], soon))
    done = cluster.test(rc=1, timeout=60)
    status, text = verdicts(done)["dask"]
    ill = cluster.address(1)
    assert status == "fail" and "%s (host %s) is in each of the 3 pairs that failed" % (
        ill, HOST) in text and "no route to host" in done.stdout
    rank, = [int(rank) for rank, a in re.findall(r"^  rank (\d)  (\S+)", done.stdout, re.M)
             if a == ill]
    assert text.startswith("rank %d, " % rank)
    # the others have what they need of each other, and it has all
    got = dict(lists(done.stdout))
    assert got[rank] == [r for r in range(N) if r != rank]
    assert all(got[r] == [o for o in range(N) if o not in (r, rank)] for r in got if r != rank)
    assert done.stdout.splitlines()[-1] == "cluster-test: failed: dask, 4 workers"


def test_data_that_arrives_wrong(cluster, tmp_path):
    """One worker's messages have a wrong byte."""
    (tmp_path / "wrong.py").write_text("""
import hashlib
# Dask loads it twice
if not hasattr(hashlib, "real"):
    hashlib.real = hashlib.shake_128
    class Wrong:
        def __init__(self, seed):
            self.seed = seed
        def digest(self, size):
            data = bytearray(hashlib.real(self.seed).digest(size))
            data[77] ^= 1
            return bytes(data)
    hashlib.shake_128 = Wrong
""")
    cluster.up(each=lambda number: (["--preload", str(tmp_path / "wrong.py")]
                                    if number == 0 else [], {}))
    done = cluster.test(rc=1)
    status, text = verdicts(done)["dask"]
    assert status == "fail" and cluster.address(0) in text and "byte 77 is wrong" in text
    assert "is in each of the 6 pairs" in text
    assert "final_size: 4" in done.stdout and lists(done.stdout) != each_lacks_itself(1)


def test_versions_that_differ(cluster, tmp_path):
    folder = tmp_path / "other" / "dask_cuda"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("__version__ = '1.2.3'\n")
    cluster.up(each=lambda number: ([], {"PYTHONPATH": str(folder.parent)} if number == 3 else {}))
    done = cluster.test(rc=0)
    status, text = verdicts(done)["environment"]
    assert status == "warn" and "dask_cuda differs: 1.2.3 on %s (host %s); none on " % (
        cluster.address(3), HOST) in text and text.endswith("and 2 more")


# ---- what it needs ----

def test_too_few_workers(cluster):
    done = cluster.up(1).test("--workers", "3", rc=3, timeout=5)
    assert "1 workers are there, 3 are wanted" in done.stderr and done.stdout == ""
    done = cluster.test(rc=1)
    assert "two or more are needed" in verdicts(done)["environment"][1]


def run(*argv, rc, env=None, python=PYTHON):
    done = subprocess.run([*python.split(), PROGRAM, *argv], capture_output=True, text=True,
                          timeout=600, check=False, stdin=subprocess.DEVNULL,
                          env=dict(ENV, **(env or {})))
    assert done.returncode == rc, done.stdout + done.stderr
    return done


def test_no_scheduler():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "tcp://127.0.0.1:%d" % free.getsockname()[1]
        done = run(address, "--timeout", "4", rc=3)
        assert address in done.stderr and done.stdout == ""
        for name in ("DASK_SCHEDULER_ADDRESS", "NODEPREP_DASK_SCHEDULER"):
            assert address in run("--timeout", "4", rc=3, env={name: address}).stderr


def test_a_python_without_dask():
    done = run("--local", "2", rc=3, python=PYTHON + " -S")
    assert "has no Dask" in done.stderr and PYTHON in done.stderr


@pytest.mark.parametrize("argv", [
    [], ["a:1", "--local", "2"], ["--local", "0"], ["a:1", "--size", "-1"], ["a:1", "--trials", "x"],
    ["a:1", "--tests", "all"], ["a:1", "b:1"]])
def test_usage(argv):
    done = run(*argv, rc=2)
    assert done.stdout == "" and "usage: cluster-test" in done.stderr


def test_workers_of_its_own_on_ib0(guide):
    guide.apply()
    done = guide.run(PYTHON, PROGRAM, "--local", "4", "--interface", "ib0", "--size", "1000",
                     cwd="/tmp", timeout=600)
    assert done.rc == 0, done
    assert lists(done.stdout) == each_lacks_itself(2)
    addresses = re.findall(r"^  rank \d  (\S+)", done.stdout, re.M)
    assert len(addresses) == 4 and all(a.startswith("tcp://10.0.0.50:") for a in addresses)
    assert guide.run("pgrep", "-f", "multiprocessing").stdout == ""


# ---- raft_dask: a stand-in ----

def standin(cluster, plays, *argv, rc, timeout=60):
    env = {"PYTHONPATH": STANDIN, "NP_STANDIN_RAFT": plays}
    cluster.up(each=lambda number: ([], env))
    return cluster.test(*argv, rc=rc, timeout=timeout, env={"PYTHONPATH": STANDIN})


def test_raft(cluster):
    done = standin(cluster, "", "--tests", "raft", rc=0)
    assert statuses(done) == {"environment": "ok", "dask": "ok", "ucx": "ok", "nccl": "ok"}
    # those of Dask's connections, then those of raft_dask
    assert lists(done.stdout) == each_lacks_itself(4)
    assert done.stdout.count("final_size: 4") == 3 * N
    assert "raft_dask 0.0.stand-in" in done.stdout
    # whatever it prints is on the workers' stdout, ours has the sorted lines alone
    assert "=====" not in done.stdout


@pytest.mark.parametrize("plays, test, said", [
    ("init=2", "ucx", "Unable to connect"), ("no=2", "nccl", "perform_test_comms_allreduce says no"),
    ("lie=2", "ucx", "received [1, 1, 3] in place of [0, 1, 3]")])
def test_raft_fails(cluster, plays, test, said):
    done = standin(cluster, plays, rc=1)
    want = {"environment": "ok", "dask": "ok", "ucx": "ok", "nccl": "ok"}
    assert statuses(done) == dict(want, **{test: "fail"})
    # the stand-in gives rank 2 to the third from the end
    address = re.findall(r"^  rank 1  (\S+)", done.stdout, re.M)[0]
    text = verdicts(done)[test][1]
    assert said in text and "%s (host %s)" % (address, HOST) in text
    assert done.stdout.splitlines()[-1] == "cluster-test: failed: %s, 4 workers" % test


def test_raft_hangs(cluster):
    done = standin(cluster, "hang=0", rc=1, timeout=12)
    assert statuses(done) == {"environment": "ok", "dask": "ok", "ucx": "skip", "nccl": "fail"}
    address = re.findall(r"^  rank 3  (\S+)", done.stdout, re.M)[0]
    text = verdicts(done)["nccl"][1]
    assert text.startswith(address) and "did not answer" in text


def test_raft_on_some_workers(cluster):
    cluster.up(each=lambda number: ([], {"PYTHONPATH": STANDIN} if number != 1 else {}))
    done = cluster.test(rc=1)
    assert statuses(done) == {"environment": "warn", "dask": "ok", "ucx": "fail", "nccl": "fail"}
    assert "none on %s" % cluster.address(1) in verdicts(done)["environment"][1]


def test_raft_that_cannot_be_imported(cluster):
    done = standin(cluster, "broken", rc=1)
    assert statuses(done) == {"environment": "fail", "dask": "ok", "ucx": "fail", "nccl": "fail"}
    assert "libucxx.so" in verdicts(done)["environment"][1]


def test_raft_was_asked_for(cluster):
    done = cluster.up(2).test("--tests", "raft", rc=1)
    assert statuses(done) == {"environment": "ok", "dask": "ok", "ucx": "fail", "nccl": "fail"}
    assert "no worker has raft_dask" in verdicts(done)["ucx"][1]


def test_the_program_is_where_it_is_said_to_be():
    assert os.access(PROGRAM, os.X_OK) and shutil.which("dask")
