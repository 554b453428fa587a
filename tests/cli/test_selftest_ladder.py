# SPDX-License-Identifier: MIT
"""The ladder on nodes with GPUs, over FAKE libraries (tests/fake): what is started how often,
and what becomes of the other GPUs when one takes the rung's process down."""

import os

import pytest
from helpers import BUILD, PLAIN

FAKES = os.path.join(BUILD, "asan", "fake")
STANDIN = os.path.join(BUILD, "asan", "standin")
GPUS = ["0000:%s:00.0" % bus for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]
EACH_GPU = ["cuda", "cuda_copy", "cuda_ipc", "gdrapi", "gdr_copy"]


def install(one, cuda):
    """Where the dynamic linker of that node finds them."""
    assert os.path.exists(os.path.join(FAKES, "libcuda.so.1")), "no fakes: make test builds them"
    one.shell("rm -rf /var/lib/fakes /etc/fake; mkdir -p /var/lib/fakes /etc/fake")
    one.write("/etc/fake/FAKE_CUDA", cuda + "\n")
    one.shell("cp %s/lib*.so.* %s/lib*.so.* /var/lib/fakes; : >/etc/fake/FAKE_LOG;"
              "chmod 666 /etc/fake/FAKE_LOG;"
              "echo /var/lib/fakes >/etc/ld.so.conf.d/000-fakes.conf; /sbin/ldconfig -X -i"
              % (FAKES, STANDIN))


@pytest.fixture
def dgx(node):
    one = node("dgx.ini")

    def start(plays="", gpus=len(GPUS)):
        buses = ",".join(pci[5:7] for pci in GPUS)
        install(one, "gpus=%d bus=%s %s" % (gpus, buses, plays))
        # "GPU memory" of fakes is no faster than memory
        one.write("/etc/nodeprep/nodeprep.conf", "[selftest]\nmin_bandwidth_MBps.cuda = 1\n")
        return one
    return start


def selftest(one, *argv):
    if "--timeout" not in argv:  # a fake GPU is as slow as the machine is busy
        argv = [*argv, "--timeout", "600"]
    done = one.run(PLAIN, "selftest", *argv, "--json", timeout=900)
    assert done.rc == 1, done
    return done


def count(one, word):
    done = one.shell("grep -c %s /etc/fake/FAKE_LOG; : >/etc/fake/FAKE_LOG" % word)
    return int(done.stdout)


def test_each_rung_starts_cuda_once_however_many_gpus(dgx):
    one = dgx()
    done = selftest(one, *EACH_GPU)
    for rung in EACH_GPU:
        assert [entry["device"] for entry in done.rungs(rung)] == GPUS, rung
    assert {entry["status"] for entry in done.rungs("cuda")} == {"ok"}
    assert {entry["code"] for entry in done.rungs("gdrapi")} == {"gdrapi.standin"}
    # Debian's UCX has no CUDA, which is known without starting that
    assert {entry["code"] for rung in ("cuda_copy", "cuda_ipc", "gdr_copy")
            for entry in done.rungs(rung)} == {"ucx.built_without"}
    assert count(one, "cuInit") == 2


def verdicts(done, rung="cuda"):
    return [(entry["status"], entry["code"]) for entry in done.rungs(rung)]


@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_crash_is_that_gpus_alone(dgx, at):
    one = dgx("crash=cuMemcpyDtoD_v2 on=%d" % at)
    done = selftest(one, "cuda")
    assert [entry["device"] for entry in done.rungs("cuda")] == GPUS
    assert verdicts(done) == [("fail", "selftest.crashed") if i == at else ("ok", "")
                              for i in range(len(GPUS))]
    assert "signal 11" in done.rungs("cuda")[at]["message"]
    assert count(one, "cuInit") == (1 if at == 7 else 2)


def test_a_rung_stands_on_its_own_gpu(dgx):
    """The GPU that crashed is not tried further up; the others are."""
    done = selftest(dgx("crash=cuMemcpyDtoD_v2 on=2"), "cuda", "gdrapi")
    assert verdicts(done, "gdrapi") == [("skip", "selftest.below_broken") if i == 2 else
                                        ("warn", "gdrapi.standin") for i in range(len(GPUS))]
    assert GPUS[2] in done.rungs("gdrapi")[2]["message"]


def hang(dgx, plays, at, *seconds):
    """That GPU's deadline comes; a slow machine needs longer for the others."""
    for deadline in seconds:
        one = dgx("%s on=%d" % (plays, at))
        done = selftest(one, "cuda", "--timeout", str(deadline))
        if verdicts(done).count(("ok", "")) == len(GPUS) - 1:
            break
    assert verdicts(done) == [("fail", "selftest.timeout") if i == at else ("ok", "")
                              for i in range(len(GPUS))]
    return one, done, deadline


def test_a_hang_is_that_gpus_alone(dgx):
    one, done, _ = hang(dgx, "hang=cuMemcpyDtoD_v2", 4, 10, 60)
    assert "hung" in done.rungs("cuda")[4]["message"]
    assert count(one, "cuInit") == 2


@pytest.mark.parametrize("at", [0, 7])
def test_a_kernel_that_hangs_costs_one_deadline(dgx, at):
    """No handler of the child runs: the agent ends it, for that GPU's deadline alone."""
    one, done, deadline = hang(dgx, "stop=cuMemcpyDtoD_v2", at, 4, 20, 60)
    assert "no verdict within %d s: killed" % (deadline + 3) == done.rungs("cuda")[at]["message"]
    assert count(one, "cuInit") == (1 if at == 7 else 2)


def test_a_driver_that_hangs_is_not_waited_for_eight_times(dgx):
    one = dgx("hang=cuCtxSynchronize")
    done = selftest(one, "cuda", "--timeout", "2")
    assert verdicts(done) == [("fail", "selftest.timeout")] * len(GPUS)
    assert count(one, "cuInit") == 2
    for entry in done.rungs("cuda")[2:]:
        assert "not tried: the rung hung on %s and on %s" % (GPUS[0], GPUS[1]) == entry["message"]


def test_a_gpu_that_cuda_does_not_show(dgx):
    done = selftest(dgx(gpus=7), "cuda")
    assert verdicts(done) == [("ok", "")] * 7 + [("fail", "cuda.gpu_missing")]


def test_a_gpu_slower_than_its_link(dgx):
    """16 lanes at 32 GT/s carry 63 GB/s; a copy within memory has not 60 % of that."""
    one = dgx("gpus=8")
    one.write("/etc/nodeprep/nodeprep.conf", "")
    done = one.run(PLAIN, "selftest", "cuda", "--json", "--timeout", "600", timeout=900)
    assert done.rc == 0, done
    assert verdicts(done) == [("warn", "selftest.slow")] * len(GPUS)
    assert "37809 MB/s, 60 % of the GPU's PCIe link; GPU0" in done.rungs("cuda")[0]["message"]
    one.write("/etc/nodeprep/nodeprep.conf",
              "[selftest]\nmin_bandwidth_MBps.cuda = 900000000\n")
    assert verdicts(selftest(one, "cuda")) == [("fail", "selftest.below_floor")] * len(GPUS)
