# SPDX-License-Identifier: MIT
"""The allreduce of nodeprep-ranks over NCCL, with mpirun on this host and FAKE libraries
(tests/fake): the fake NCCL sums over processes through shared memory and plays faults on one
rank. Fakes prove nothing of a GPU or of NCCL, only what is made of their answers."""

import glob
import json
import os
import re
import shutil
import subprocess
import uuid

import pytest
from helpers import BUILD, validate

PROGRAM = os.path.join(BUILD, "nodeprep-ranks")
FAKES = os.path.join(BUILD, "asan", "fake")
# what tells our shared memory from that of others
ROOM = uuid.uuid4().hex[:8]
GPU = ["0000:17:00.0", "0000:18:00.0", "0000:19:00.0"]
SIZES = [8, 4096, 65536, 1 << 20, 8 << 20, 64 << 20]
pytestmark = pytest.mark.skipif(not shutil.which("mpirun"),
                                reason="mpirun is not installed: make deps")


class Run:
    def __init__(self, done):
        self.done = done
        self.rc = done.returncode
        assert done.stdout.count("\n") == 1, done
        self.doc = json.loads(done.stdout)
        validate(self.doc)
        assert self.doc["ready"] is (self.rc == 0), done
        self.ranks = self.doc["ranks"]
        self.reduced = self.ranks["allreduce"]

    def failed(self):
        return sorted((c["code"], c["target"].split(" on ")[0]) for c in self.doc["checks"]
                      if c["status"] == "fail")

    def message(self, code):
        found = {c["message"]: c for c in self.doc["checks"]
                 if c["code"] == code and c["status"] == "fail"}
        assert len(found) == 1, self.doc["checks"]
        check, = found.values()
        assert check["hint"] and check["target"] in check["message"]
        return check["message"]


def run(n, *argv, rc, nccl="", cuda=None, libraries=FAKES, timeout=120):
    """nodeprep-ranks with @n ranks, FAKE_NCCL=@nccl and FAKE_CUDA=@cuda."""
    assert os.path.exists(os.path.join(FAKES, "libnccl.so.2")), "no fakes: make test builds them"
    env = {"PATH": os.environ["PATH"], "HOME": "/root", "LD_LIBRARY_PATH": libraries,
           "FAKE_NCCL": "%s room=%s" % (nccl, ROOM), "FAKE_CUDA": cuda or "gpus=%d" % n, "UCX_TLS": "tcp,sm,self",
           "UCX_HANDLE_ERRORS": "none"}
    names = [word for name in env if name.startswith(("LD_", "FAKE_", "UCX_"))
             for word in ("-x", name)]
    done = subprocess.run(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", *names, "-np", str(n), PROGRAM,
         "--json", "--trials", "1", "--size", "1024", "--timeout", str(timeout), *argv],
        capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, timeout=900,
        check=False)
    assert (done.returncode == 0) is (rc == 0), done.stdout + done.stderr
    return Run(done)


@pytest.fixture(autouse=True)
def no_rooms_left():
    """Shared memory of a fake whose process was killed; that of others, who may be at work beside
    this, is theirs."""
    yield
    for path in glob.glob("/dev/shm/np-fake-nccl-%s-*" % ROOM):
        os.unlink(path)


def test_each_rank_has_its_gpu():
    done = run(3, rc=0)
    assert (done.reduced["backend"], done.reduced["version"]) == ("nccl", "2.28.3")
    assert [(one["gpu"], one["clique_size"], one["final_size"]) for one in done.ranks["list"]] == \
        [(gpu, 3, 3) for gpu in GPU]
    assert [size["size_bytes"] for size in done.reduced["sizes"]] == SIZES
    for size in done.reduced["sizes"]:
        # 2 (n - 1) / n, as nccl-tests define it
        want = size["size_bytes"] / size["time_us"] * 4 / 3
        assert size["bus_MBps"] == pytest.approx(want, rel=0.02, abs=0.01)


def test_one_gpu_shown_to_each():
    """A launcher that gives each rank one GPU: it is number 0 for all of them."""
    program = ('FAKE_CUDA="gpus=1 bus=1$PMIX_RANK" exec "$@"')
    os.environ.setdefault("PATH", "/usr/bin:/bin")
    env = {"PATH": os.environ["PATH"], "HOME": "/root", "LD_LIBRARY_PATH": FAKES,
           "FAKE_NCCL": "room=" + ROOM, "UCX_TLS": "tcp,sm,self"}
    done = subprocess.run(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-x", "LD_LIBRARY_PATH", "-x",
         "FAKE_NCCL", "-x", "UCX_TLS", "-np", "2", "sh", "-c", program, "sh", PROGRAM, "--json"],
        capture_output=True, text=True, env=env, timeout=900, check=False)
    assert done.returncode == 0, done
    gpus = [one["gpu"] for one in Run(done).ranks["list"]]
    assert gpus == ["0000:10:00.0", "0000:11:00.0"]


def test_calls_that_block():
    """NCCL before 2.14."""
    done = run(2, rc=0, nccl="version=21210 hang=ncclCommInitRankConfig")
    assert done.reduced["version"] == "2.12.10" and len(done.reduced["sizes"]) == len(SIZES)
    # and the other way round: since then they do not block
    assert run(2, rc=0, nccl="version=21403 hang=ncclCommInitRank").reduced["version"] == "2.14.3"


def test_host_memory_without_gpus():
    for cuda in ("init=100", "gpus=0"):
        done = run(2, rc=0, cuda=cuda)
        assert done.reduced["backend"] == "host" and not done.reduced["version"]
    assert run(2, "--host-memory", rc=0).reduced["backend"] == "host"


def test_no_cuda_at_all():
    assert run(2, rc=0, libraries="/nowhere").reduced["backend"] == "host"


def test_a_busy_machine_is_not_taken_for_one_that_hangs():
    """Two copies one after the other take longer than a rank may be silent."""
    assert run(2, rc=0, cuda="gpus=2 slow=2700").reduced["sizes"][-1]["size_bytes"] == SIZES[-1]


@pytest.mark.parametrize("element, size", [(0, "8 B"), (5, "4 KiB"), (2097151, "8 MiB")])
def test_a_wrong_element(element, size):
    done = run(2, rc=1, nccl="corrupt=%d on=0" % element)
    assert done.failed() == [("selftest.data_corrupt", "rank 0")]
    message = done.message("selftest.data_corrupt")
    assert message.startswith("rank 0 on ")
    assert "all-reduce of %s over NCCL: element %d on %s is " % (size, element, GPU[0]) in message
    # the other one went on with it
    assert [size["size_bytes"] for size in done.reduced["sizes"]] == SIZES


def test_a_sum_that_lacks_a_rank():
    done = run(2, rc=1, nccl="short on=1")
    assert done.failed() == [("ranks.reduced_wrong", "rank 1")]
    assert [one["final_size"] for one in done.ranks["list"]] == [2, 1]


@pytest.mark.parametrize("nccl, code, said", [
    ("version=2304 on=1", "nccl.library_too_old", "rank 1 on HOST: FAKE is NCCL 2.3.4: 2.4 or "
     "newer is needed"),
    ("old", "nccl.library_too_old", "2 ranks cannot use NCCL, the first: rank 0 on HOST: FAKE is "
     "NCCL of unknown version"),
    ("version=22707 on=1", "ranks.nccl_differs", "rank 1 on HOST has NCCL 2.27.7, rank 0 on HOST "
     "has 2.28.3"),
    ("fail=ncclGetUniqueId:2", "nccl.failed", "rank 0 on HOST: NCCL 2.28.3 failed while making a "
     "unique id: unhandled system error (2): the last words of a fake"),
])
def test_all_are_told_at_once(nccl, code, said):
    """Before anything that only a deadline would end."""
    done = run(2, rc=1, nccl=nccl, timeout=600)
    assert {found for found, _ in done.failed()} == {code}
    host = done.ranks["list"][0]["host"]
    assert re.sub(r"(rank \d+ on \S+) \([^)]+\)", r"\1", done.message(code)).startswith(
        said.replace("HOST", host).replace("FAKE", os.path.join(FAKES, "libnccl.so.2")))
    assert not done.reduced["sizes"]


def test_more_ranks_than_gpus():
    done = run(3, rc=1, cuda="gpus=2", timeout=600)
    message = done.message("ranks.gpu_shared")
    assert re.match(r"rank 2 on \S+( \(\S+\))?: ranks 0 and 2 on ", message) and GPU[0] in message


@pytest.mark.parametrize("cuda, code, said", [
    ("gpus=2 fail=cuMemAlloc_v2:2", "cuda.out_of_memory", "allocating 64 MiB"),
    ("gpus=2 fail=cuDevicePrimaryCtxRetain:46 mode=3", "cuda.compute_mode", "exclusive"),
    ("gpus=2 init=803", "cuda.no_driver", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
])
def test_a_gpu_that_does_not_work_is_no_reason_for_host_memory(cuda, code, said):
    done = run(2, rc=1, cuda=cuda, timeout=600)
    assert said in done.message(code) and not done.reduced["sizes"]


@pytest.mark.parametrize("nccl, codes, said", [
    # it does not come to an end, and says so itself
    ("never=init on=1", {("ranks.nccl_timeout", "rank 0"), ("ranks.nccl_timeout", "rank 1")},
     "making the communicator"),
    ("never=reduce on=1", {("ranks.nccl_timeout", "rank 0"), ("ranks.nccl_timeout", "rank 1")},
     "summing a one of each rank"),
    # a call that does not return
    ("hang=ncclCommInitRankConfig on=1", {("ranks.nccl_timeout", "rank 0"),
                                          ("ranks.hung", "rank 1")}, "making the communicator"),
    # nor does the end of it
    ("never=init on=1 hang=ncclCommAbort", {("ranks.nccl_timeout", "rank 0"),
                                            ("ranks.nccl_timeout", "rank 1")},
     "making the communicator"),
    ("crash=ncclAllReduce on=1", {("ranks.died", "rank 1")}, "SIGSEGV"),
    ("fail=ncclCommInitRankConfig:3 on=1", {("ranks.nccl_timeout", "rank 0"),
                                            ("nccl.failed", "rank 1")}, "the last words of a fake"),
])
def test_a_rank_that_does_not_get_on(nccl, codes, said):
    done = run(2, rc=1, nccl=nccl, timeout=10)
    assert codes <= set(done.failed()), done.failed()
    if said != "SIGSEGV":
        assert any(said in check["message"] for check in done.doc["checks"])


def test_sizes_that_would_take_too_long():
    """What does not fit into the time is left out by all ranks alike, and that is said once."""
    done = run(2, rc=0, nccl="slow=1000", timeout=60)
    sizes = [size["size_bytes"] for size in done.reduced["sizes"]]
    # 8 MiB would take most of a minute
    assert sizes == SIZES[:len(sizes)] and 3 <= len(sizes) <= 4
    assert done.done.stderr.count("NCCL sums no more than ") == 1
