# SPDX-License-Identifier: MIT
"""nodeprep-ranks under mpirun: what it proves, and how it tells it."""

import os
import re
import subprocess

import pytest
from ranks_world import HOOKED, RANKS, World, need_launcher

QUICK = ["--json", "--no-allreduce", "--size", "4096"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Four hosts for all tests that leave them as they are."""
    need_launcher()
    one = World(tmp_path_factory.mktemp("ranks"), 4)
    yield one
    one.close()


def proven(done, size):
    """Everything that a good run says."""
    assert done.rc == 0, repr(done)
    assert done.doc["ready"] and not done.findings(), repr(done)
    ranks = done.ranks
    assert ranks["size"] == size and ranks["ways"] == ranks["verified"] == size * (size - 1)
    assert [entry["rank"] for entry in ranks["list"]] == list(range(size))
    for entry in ranks["list"]:
        assert entry["received"] == [i for i in range(size) if i != entry["rank"]]
        assert entry["reported"] and (entry["messages"] > 0 or size == 1)
        assert entry["memory_kB"]["end"] >= entry["memory_kB"]["open"] > 1000
    for name in ("latency_us", "bandwidth_MBps"):
        for i, row in enumerate(ranks[name]):
            assert [value is None for value in row] == [i == j for j in range(size)], name
            assert all(value > 0 for value in row if value is not None)
    for i in range(size):  # half a round trip is the same seen from both ends
        for j in range(size):
            assert ranks["latency_us"][i][j] == ranks["latency_us"][j][i]


def carriers(done, apart):
    """What carried messages between ranks of one host, or of two."""
    ranks = done.ranks
    hosts = [entry["host"] for entry in ranks["list"]]
    return {ranks["carriers"][number]
            for i, row in enumerate(ranks["carrier"]) for j, number in enumerate(row)
            if number is not None and (hosts[i] != hosts[j]) is apart}


def plain(*argv, env=None):
    return subprocess.run([RANKS, *argv], capture_output=True, text=True, timeout=300,
                          env=env or {"PATH": os.environ["PATH"]})


# ---- by itself ----

def test_alone_it_says_how_it_is_started():
    need_launcher()
    done = plain()
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1
    for word in ("srun --mpi=pmix", "mpirun", "prterun"):
        assert word in done.stderr


def test_options():
    need_launcher()
    done = plain("--help")
    assert done.returncode == 0 and "--trials" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert plain("--version").stdout.startswith("nodeprep-ranks ")
    for argv, word in ((["--trial", "3"], "--trials"), (["--trials", "0"], "from 1"),
                       (["--trials"], "needs a value"), (["--json=yes"], "no value"),
                       (["extra"], "no argument"), (["--timeout", "x"], "number")):
        done = plain(*argv)
        assert done.returncode == 2 and word in done.stderr, (argv, done.stderr)


# ---- what it proves ----

@pytest.mark.parametrize("size", [2, 3, 4, 16])
def test_ranks_of_one_host(world, size):
    """Over shared memory, with the allreduce in host memory."""
    done = world.job("--json", ranks=size, hosts=1, env={"UCX_TLS": "sm,self"})
    proven(done, size)
    assert {entry["host"] for entry in done.ranks["list"]} == {"h1"}
    for entry in done.ranks["list"]:
        assert entry["clique_size"] == entry["final_size"] == size


def test_hosts(world):
    """tcp between hosts, shared memory within; every element of the allreduce."""
    done = world.job("--json", per_host=2)
    proven(done, 8)
    assert carriers(done, apart=True) == {"tcp/eth1"}
    within = carriers(done, apart=False)
    assert len(within) == 1 and re.search(r"sysv|posix", within.pop())
    assert {entry["host"] for entry in done.ranks["list"]} == {"h1", "h2", "h3", "h4"}
    for entry in done.ranks["list"]:
        assert entry["clique_size"] == entry["final_size"] == 8
        assert (entry["port"], entry["ifname"], entry["family"]) == ("eth1", "eth1", "IPv4")
    reduced = done.ranks["allreduce"]
    assert reduced["backend"] == "host" and reduced["version"] is None
    assert [size["size_bytes"] for size in reduced["sizes"]] == \
        [4, 4096, 65536, 1048576, 8388608]
    assert all(size["time_us"] > 0 for size in reduced["sizes"])


def test_the_text_is_in_the_guides_form(world):
    done = world.job("--trials", "3", ranks=3)
    assert done.rc == 0, repr(done)
    lines = done.stdout.splitlines()
    lists = ["Rank 0 received: [1, 2]", "Rank 1 received: [0, 2]", "Rank 2 received: [0, 1]"]
    assert lines[:12] == ["Trial 0", *lists, "Trial 1", *lists, "Trial 2", *lists]
    assert lines[12:15] == ["Rank %d Clique size: 3 final_size: 3" % i for i in range(3)]
    assert any("host memory, not by NCCL and no GPU" in line for line in lines)
    assert lines[-1].startswith("ready: 3 ranks on 3 hosts, 6 of 6 ways verified in 3 trials")


def test_sixty_four_ranks(world):
    done = world.job(*QUICK, "--trials", "1", per_host=16)
    proven(done, 64)
    # a message to each of the others, two words and a few trips: nobody does more
    counts = [entry["messages"] for entry in done.ranks["list"]]
    assert max(counts) < 63 * 300 and min(counts) >= 63 * 5
    assert done.findings("skip")[0]["code"] == "ranks.crowded"


def test_one_endpoint_at_a_time(world):
    done = world.job(*QUICK, "--close-endpoints", per_host=2)
    proven(done, 8)
    assert carriers(done, apart=True) == {"tcp/eth1"}
    with_allreduce = world.job("--json", "--close-endpoints", "--size", "4096", ranks=3)
    proven(with_allreduce, 3)
    assert with_allreduce.ranks["allreduce"]["backend"] == "host"


@pytest.mark.parametrize("version", ["PMIx 5.0.1, repo rev: gitabc", "OpenPMIx 10.0", "none"])
def test_a_pmix_that_takes_one_look_up_at_a_time(world, version):
    """From 5.0 on a second one that is pending crashes the process."""
    def apps(_env):
        return ["-np", "6", "env", "NP_TEST_PMIX_VERSION='%s'" % version, HOOKED, "--json",
                "--size", "4096", "--verbose"]
    done = world.job("--json", apps=apps)
    proven(done, 6)
    assert done.ranks["allreduce"]["backend"] == "host"
    assert "PMIx: one look-up at a time" in done.stderr


def test_one_rank(world):
    done = world.job("--json", ranks=1)
    proven(done, 1)
    assert done.ranks["list"][0]["final_size"] == 1
    assert {size["bus_MBps"] for size in done.ranks["allreduce"]["sizes"]} == {None}
    assert "one rank: this proves the library, no path" in world.job(ranks=1).stdout


# ---- what differs ----

def test_a_host_with_another_mtu_is_named(world):
    world.run("ip", "-n", "h3", "link", "set", "eth1", "mtu", "1400")
    try:
        done = world.job(*QUICK, per_host=2)
    finally:
        world.run("ip", "-n", "h3", "link", "set", "eth1", "mtu", "1500")
    proven(done, 8)
    odd, = [c for c in done.findings("warn") if "slow" not in c["code"]]
    assert odd["code"] == "ranks.mtu_differs"
    assert "h3" in odd["target"] and "1400" in odd["message"] and "1500" in odd["message"]
    assert "1 more of this host" in odd["message"] and "nodeprep apply" in odd["hint"]


def test_the_environment_against_the_nodes_configuration(world, tmp_path):
    conf = tmp_path / "ucx.env"
    conf.write_text("# made by nodeprep\nUCX_TLS=tcp,sm,self\nUCX_NET_DEVICES=eth1\n")
    options = [*QUICK, "--env-file", str(conf)]
    same = world.job(*options)
    proven(same, 4)
    assert not [c for c in same.findings("warn") if "slow" not in c["code"]], repr(same)

    def apps(_env):
        """Rank 2 has a list of its own."""
        return ["-np", "2", RANKS, *options, ":", "-np", "1", "env", "UCX_TLS=tcp,self", RANKS,
                *options, ":", "-np", "1", RANKS, *options]
    done = world.job("--json", apps=apps)
    proven(done, 4)
    found = {c["code"]: c for c in done.findings("warn") if "slow" not in c["code"]}
    assert set(found) == {"ranks.tls_differs", "ranks.env_differs"}, repr(done)
    for finding in found.values():
        assert "rank 2 on h3" in finding["message"] and "tcp,sm,self" in finding["message"]

    # with nothing set, what apply wrote is what UCX gets
    bare = world.job(*options, env={})
    proven(bare, 4)
    assert carriers(bare, apart=True) == {"tcp/eth1"}
    lacking = [c for c in bare.findings("warn") if c["code"] == "ranks.env_lacks"]
    assert len(lacking) == 2 and "has no UCX_TLS" in lacking[0]["message"]
    assert "rank 0 on h1 (eth1) (and 3 more)" in lacking[0]["message"]


def test_another_version_is_refused(world):
    """Before anything is sent: it may not speak the same way."""
    def apps(_env):
        return ["-np", "3", HOOKED, *QUICK, ":", "-np", "1", "env",
                "NP_TEST_RANKS_VERSION=9.9.9", HOOKED, *QUICK]
    done = world.job("--json", apps=apps)
    assert done.rc == 1
    finding = done.one("ranks.version")
    assert "rank 3 on h4 (eth1)" in finding["message"] and "9.9.9" in finding["message"]
    assert done.ranks["verified"] == 0 and done.ranks["messages"] == 0


@pytest.mark.parametrize("other", ["--trials 3", "--size 8192", "--no-allreduce",
                                   "--close-endpoints", "--host-memory", "--timeout 61"])
def test_other_options_are_refused(world, other):
    """Before anything is sent: ranks that do not do the same wait for each other in vain."""
    def apps(_env):
        options = ["--json", "--trials", "2", "--size", "4096", "--timeout", "60"]
        return ["-np", "2", RANKS, *options, ":", "-np", "1", RANKS, *options, *other.split()]
    done = world.job("--json", apps=apps)
    assert done.rc == 1 and done.seconds < 30, repr(done)
    finding = done.one("ranks.options_differ")
    assert finding["target"] == "rank 2 on h3 (eth1)" and other in finding["message"]
    assert done.ranks["messages"] == 0


def test_what_ucx_cannot_do_has_a_name(world):
    """The same on all of them: told once, in the text with rank, host and port."""
    done = world.job(ranks=3, env={"UCX_TLS": "tcp", "UCX_NET_DEVICES": "eth7"})
    assert done.rc == 1, repr(done)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL: ")]
    assert len(failed) == 1 and "[ranks.ucx]" in failed[0], repr(done)
    assert failed[0].startswith("FAIL: rank 0 on h1 (eth0) and 2 more: UCX failed"), failed
