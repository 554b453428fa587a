# SPDX-License-Identifier: MIT
"""What nodeprep-ranks says when a rank dies, hangs, does not come, is cut off, slow or corrupt:
the culprit by host, port and rank, within the deadline, and never exit code 0."""

import os
import re
import signal
import subprocess
import time

import pytest
from ranks_world import HOOKED, RANKS, World, need_launcher

SHORT = ["--json", "--no-allreduce", "--size", "4096"]
# not over before it is hurt, on a quick machine either; and "long before the deadline" on a slow one
LONG = ["--json", "--no-allreduce", "--size", "1048576", "--trials", "1000"]
LATE, EARLY = ["--timeout", "600"], 300
# mpirun's own end of a job takes a few seconds more than the program's
SLACK = 15


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    need_launcher()
    one = World(tmp_path_factory.mktemp("ranks"), 3)
    yield one
    one.close()


def connected(world, host, count):
    """Until the ranks of @host have so many connections."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        shown = subprocess.run(world.enter(["ip", "netns", "exec", host, "ss", "-Htn", "state",
                                            "established", "dst", "10.71.0.0/24"]),
                               capture_output=True, text=True, check=True).stdout
        if shown.count("\n") >= count:
            return
        time.sleep(0.05)
    raise AssertionError("%s: no connections\n%s" % (host, shown))


def hurt(job, rank, comm, number):
    pid = job.pid(rank, comm)
    time.sleep(0.3)  # wherever it is then
    os.kill(pid, number)
    return time.monotonic()


@pytest.mark.parametrize("number, words", [
    (signal.SIGKILL, "died of signal 9"), (signal.SIGSEGV, "died of signal 11"),
    (signal.SIGSTOP, "is stopped for")])
def test_a_worker_that_dies_or_hangs(world, number, words):
    """The rank's own supervisor tells, long before the deadline."""
    job = world.start(*LONG, *LATE, per_host=2)
    hurt(job, 5, "ranks-worker", number)
    done = job.wait()
    assert done.rc == 1 and not done.doc["ready"], repr(done)
    finding = done.one("ranks.hung" if number == signal.SIGSTOP else "ranks.died")
    assert finding["target"] == "rank 5 on h3 (eth1)" and words in finding["message"]
    assert done.seconds < EARLY, repr(done)


def test_a_worker_that_dies_where_pmix_takes_one_look_up_at_a_time(world):
    def apps(_env):
        return ["-np", "6", "env", "NP_TEST_PMIX_VERSION=5", HOOKED, *LONG, *LATE]
    job = world.start("--json", apps=apps)
    hurt(job, 5, "ranks-worker", signal.SIGKILL)
    done = job.wait()
    assert done.rc == 1 and not done.doc["ready"], repr(done)
    assert done.one("ranks.died")["target"].startswith("rank 5 on h3"), repr(done)
    assert done.seconds < EARLY, repr(done)


def test_a_rank_whose_process_is_killed(world):
    """The launcher ends the others; one of the same host says first who it was."""
    job = world.start(*LONG, *LATE, per_host=2)
    job.pid(4, "ranks-worker")
    hurt(job, 5, "nodeprep-ranks", signal.SIGKILL)
    done = job.wait()
    assert done.rc != 0
    assert "rank 5 on h3 (eth1) is gone" in done.stderr, repr(done)
    assert not (done.doc and done.doc["ready"])
    assert "rank 4 on h3 (eth1) is gone" not in done.stderr


def test_the_only_rank_of_a_host_is_killed(world):
    """Those at the other ends of its connections name it."""
    job = world.start(*LONG, *LATE)
    job.pid(2, "ranks-worker")
    connected(world, "h3", 2)
    hurt(job, 2, "nodeprep-ranks", signal.SIGKILL)
    done = job.wait()
    assert done.rc != 0
    assert re.search(r"rank 2 on h3 \(eth1\) is gone: rank [01] on h[12] \(eth1\) lost",
                     done.stderr), repr(done)
    assert not re.search(r"rank [01] on h[12] \(eth1\) is gone", done.stderr), repr(done)
    assert not (done.doc and done.doc["ready"])


@pytest.mark.parametrize("rank", [0, 2])
def test_a_supervisor_that_is_stopped(world, rank):
    """Nothing comes of it any more: named at the deadline, also when it is rank 0."""
    for timeout in (15, 60, 180):  # enough for the trials, on a slow machine
        job = world.start(*SHORT, "--trials", "1000", "--timeout", str(timeout))
        job.pid(rank, "ranks-worker")
        hurt(job, rank, "nodeprep-ranks", signal.SIGSTOP)
        done = job.wait()
        if not (done.doc and any(check["code"] == "ranks.hung" for check in done.doc["checks"])):
            break
    assert done.rc != 0 and done.seconds < timeout + 2 * SLACK, repr(done)
    if rank == 0:
        assert "rank 0 on h1 (eth1) did not report before the deadline" in done.stderr
    else:
        assert done.one("ranks.silent")["target"] == "rank 2 on h3 (eth1)"


def test_who_gives_up_keeps_its_endpoints(world):
    """Else those still at work would take it for the culprit. Rank 0 makes nothing of it here,
    so that the time between is long enough to look."""
    job = world.start(*LONG, "--timeout", "30")
    job.pid(1, "ranks-worker")
    start = time.monotonic()
    os.kill(job.pid(0), signal.SIGSTOP)
    time.sleep(start + 26.5 - time.monotonic())  # its deadline was 5 s before that of the job
    workers = [job.pid(rank, "ranks-worker", within=0.5) for rank in (1, 2)]
    done = job.wait()
    assert done.rc != 0 and "rank 0 on h1" in done.stderr, repr(done)
    until = time.monotonic() + 5
    while any(map(alive, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, workers))


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_rank_that_does_not_come(world):
    """The launcher started something there, which never joins."""
    def apps(_env):
        options = [*SHORT, "--timeout", "10"]
        return ["-np", "2", RANKS, *options, ":", "-np", "1", "sleep", "600"]
    done = world.job("--json", apps=apps)
    assert done.rc != 0 and done.seconds < EARLY, repr(done)
    finding = done.one("ranks.absent")
    assert "rank 2 on h3" in finding["message"]


def lose(world, one, other):
    """What these two send to each other is lost without a word."""
    for here, there in ((one, other), (other, one)):
        world.run("ip", "-n", here, "neigh", "replace", "10.71.0.%s" % there[1:], "lladdr",
                  "02:00:00:00:00:99", "dev", "eth1", "nud", "permanent")


def find(world, one, other):
    for here, there in ((one, other), (other, one)):
        world.run("ip", "-n", here, "neigh", "del", "10.71.0.%s" % there[1:], "dev", "eth1")


def test_one_pair_is_cut(world):
    """One path: all other pairs are measured, both hosts and ports are named."""
    lose(world, "h2", "h3")
    try:
        done = world.job(*SHORT, "--timeout", "60", per_host=2)
    finally:
        find(world, "h2", "h3")
    assert done.rc == 1, repr(done)
    finding = done.one("ranks.unreachable")
    assert finding["target"] == "rank 2 on h2 (eth1) and rank 4 on h3 (eth1)"
    assert "and 3 more pairs of these hosts" in finding["message"]
    assert done.ranks["verified"] == 30 - 8
    for i, row in enumerate(done.ranks["latency_us"]):
        for j, value in enumerate(row):
            cut = {i // 2, j // 2} == {1, 2}
            assert (value is None) is (cut or i == j), (i, j, value)
    assert done.seconds < 60


def test_a_node_is_cut_off(world):
    """Not a path: its whole row and column."""
    lose(world, "h1", "h3")
    lose(world, "h2", "h3")
    try:
        done = world.job(*SHORT, "--timeout", "60")
    finally:
        find(world, "h1", "h3")
        find(world, "h2", "h3")
    assert done.rc == 1
    finding = done.one("ranks.node_unreachable")
    assert finding["target"] == "rank 2 on h3 (eth1)"
    assert "reaches and hears nobody" in finding["message"]
    assert done.ranks["list"][0]["received"] == [1]


def test_a_pair_that_is_cut_in_the_middle(world):
    job = world.start(*LONG, "--timeout", "30")
    job.pid(2, "ranks-worker")
    connected(world, "h2", 2)
    time.sleep(1)
    lose(world, "h1", "h2")
    try:
        done = job.wait()
    finally:
        find(world, "h1", "h2")
    assert done.rc == 1 and done.seconds < 30 + SLACK, repr(done)
    failed = done.findings()
    assert {c["target"] for c in failed} == {"rank 0 on h1 (eth1) and rank 1 on h2 (eth1)"}, \
        repr(done)


def test_a_pair_that_is_cut_in_the_allreduce(world):
    """It stands still for all of them; those that came least far have the path to blame."""
    job = world.start("--json", "--trials", "1", "--size", "4096", "--timeout", "50",
                      program="env NP_TEST_RANKS_PAUSE=20000 " + HOOKED, per_host=2)
    job.pid(2, "ranks-worker")
    connected(world, "h3", 8)
    time.sleep(10)  # in the pause, which is in the middle of the allreduce
    lose(world, "h1", "h3")
    try:
        done = job.wait()
    finally:
        find(world, "h1", "h3")
    assert done.rc == 1 and done.seconds < 50 + SLACK, repr(done)
    finding = done.one("ranks.allreduce")
    assert finding["target"] == "rank 0 on h1 (eth1) and rank 5 on h3 (eth1)", repr(done)


def test_one_pair_is_cut_with_one_endpoint_at_a_time(world):
    lose(world, "h1", "h2")
    try:
        done = world.job(*SHORT, "--close-endpoints", "--timeout", "60")
    finally:
        find(world, "h1", "h2")
    assert done.rc == 1
    assert done.findings()[0]["target"] == "rank 0 on h1 (eth1) and rank 1 on h2 (eth1)"
    assert done.ranks["list"][2]["received"] == [0, 1]


def hooked(world, value, *options):
    return world.job(*SHORT, *options, program="env NP_TEST_RANKS_CORRUPT=%s %s" % (
        value, HOOKED), timeout=200)


def test_corrupt_data_of_a_pair(world):
    done = hooked(world, "'1:2'")
    assert done.rc == 1
    finding = done.one("ranks.data_corrupt")
    assert finding["target"] == "rank 1 on h2 (eth1) and rank 2 on h3 (eth1)"
    assert "offset 2048 of 4096" in finding["message"] and "from rank 1" in finding["message"]
    assert done.ranks["verified"] == 5 and done.ranks["list"][2]["received"] == [0]
    assert done.ranks["allreduce"]["backend"] == "none"


def test_a_rank_that_corrupts_all_it_sends(world):
    done = hooked(world, "'1:*'")
    assert done.rc == 1
    finding = done.one("ranks.node_corrupt")
    assert finding["target"] == "rank 1 on h2 (eth1)"
    assert "sends corrupt data to everybody" in finding["message"]


def test_the_plain_program_has_no_hook(world):
    done = world.job(*SHORT, program="env NP_TEST_RANKS_CORRUPT='1:*' " + RANKS)
    assert done.rc == 0, repr(done)


# ---- slow ----

# a busy machine holds up pairs too, and so hides which it is: the last of these counts
DELAYS_MS = [60, 60, 300, 1000]


def slow(tmp_path, hosts, wanted):
    """Four hosts at a switch of our own, and the findings about a latency that nothing but the
    delay can explain, half of which is a lot; in us."""
    for i, delay_ms in enumerate(DELAYS_MS):
        (tmp_path / str(i)).mkdir()
        one = World(tmp_path / str(i), 4, ["%s:%d" % (hosts, delay_ms)])
        try:
            done = one.job(*SHORT, "--trials", "3", "--factor", "8", "--timeout", "600")
        finally:
            one.close()
        assert done.rc == 0, repr(done)  # it is verified, after all
        about = [(c, re.search(r": ([0-9.]+) us, usual is", c["message"]))
                 for c in done.findings("warn")]
        found = [c for c, us in about if us and float(us.group(1)) > delay_ms * 500]
        if [(c["code"], c["target"]) for c in found] == [wanted]:
            break
    assert [(c["code"], c["target"]) for c in found] == [wanted], repr(done)
    return done, found, delay_ms * 500


def test_a_slow_pair_is_named(tmp_path):
    need_launcher()
    done, _, long_us = slow(tmp_path, "h2:h4",
                            ("ranks.pair_slow", "rank 1 on h2 (eth1) and rank 3 on h4 (eth1)"))
    assert done.ranks["latency_us"][1][3] > long_us > done.ranks["latency_us"][0][3]


def test_a_slow_node_is_named(tmp_path):
    need_launcher()
    _, found, _ = slow(tmp_path, "h3:*", ("ranks.node_slow", "rank 2 on h3 (eth1)"))
    assert "to and from most between hosts" in found[0]["message"]
