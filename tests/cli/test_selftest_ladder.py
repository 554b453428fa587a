# SPDX-License-Identifier: MIT
"""The ladder on nodes with GPUs, over FAKE libraries (tests/fake): what is started how often,
and what becomes of the other GPUs when one takes the rung's process down."""

import json
import os
import signal
import time

import pytest
from helpers import BUILD, PLAIN, validate

FAKES = os.path.join(BUILD, "asan", "fake")
PROGRAM = os.path.join(BUILD, "nodeprep-selftest")
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


def processors(one, n):
    """None: the machine's own."""
    one.write("/etc/fake/FAKE_CPUS", "cpus=%s\n" % n)
    one.write("/etc/ld.so.preload", os.path.join(FAKES, "cpus.so\n") if n else "")


def selftest(one, *argv, cpus=None, rc=1):
    """On a node with so many processors."""
    if "--timeout" not in argv:  # a fake GPU is as slow as the machine is busy
        argv = [*argv, "--timeout", "600"]
    processors(one, cpus)
    done = one.run(PLAIN, "selftest", *argv, "--json", timeout=900)
    assert done.rc == rc, done
    return done


def count(one, word):
    done = one.shell("grep -c %s /etc/fake/FAKE_LOG; : >/etc/fake/FAKE_LOG" % word)
    return int(done.stdout)


def processes(cpus, broken_at=None):
    """Of a rung that needs one for each GPU: that many start CUDA. One for all GPUs is started
    again for those behind the one that broke it."""
    if cpus > 1:
        return len(GPUS)
    return 1 if broken_at in (None, len(GPUS) - 1) else 2


@pytest.mark.parametrize("cpus", [1, 3, 8, None])
def test_each_gpu_has_a_process_or_all_have_one(dgx, cpus):
    one = dgx()
    done = selftest(one, *EACH_GPU, cpus=cpus)
    for rung in EACH_GPU:
        assert [entry["device"] for entry in done.rungs(rung)] == GPUS, rung
    assert {entry["status"] for entry in done.rungs("cuda")} == {"ok"}
    assert {entry["code"] for entry in done.rungs("gdrapi")} == {"gdrapi.standin"}
    # Debian's UCX has no CUDA, which is known without starting that
    assert {entry["code"] for rung in ("cuda_copy", "cuda_ipc", "gdr_copy")
            for entry in done.rungs(rung)} == {"ucx.built_without"}
    assert count(one, "cuInit") == 2 * processes(cpus or len(os.sched_getaffinity(0)))


def verdicts(done, rung="cuda"):
    return [(entry["status"], entry["code"]) for entry in done.rungs(rung)]


def test_gpus_side_by_side_take_less_than_one_by_one(dgx):
    """Two seconds for each context; all else takes the processors' time, of which there is not
    more here."""
    one = dgx("wait=cuDevicePrimaryCtxRetain:2000")
    took = {}
    for cpus in (1, 8):
        start = time.monotonic()
        done = selftest(one, "cuda", cpus=cpus, rc=0)
        took[cpus] = time.monotonic() - start
        assert verdicts(done) == [("ok", "")] * len(GPUS)
    assert took[1] > 1.5 * took[8], took


def test_all_have_looked_who_uses_a_gpu_before_one_does(dgx):
    """Else a process of the rung's own would count as one that uses it. And what becomes the
    rung's bandwidth is measured by one at a time, or the log would say "together"."""
    one = dgx()
    selftest(one, "cuda", cpus=8, rc=0)
    log = one.text("cat", "/etc/fake/FAKE_LOG").split()
    assert log == ["cuInit"] * len(GPUS) + ["context"] * len(GPUS)


@pytest.mark.parametrize("cpus, at", [(1, 0), (1, 3), (1, 7), (3, 1), (8, 0), (8, 7)])
def test_a_crash_is_that_gpus_alone(dgx, cpus, at):
    one = dgx("crash=cuMemcpyDtoD_v2 on=%d" % at)
    done = selftest(one, "cuda", cpus=cpus)
    assert [entry["device"] for entry in done.rungs("cuda")] == GPUS
    assert verdicts(done) == [("fail", "selftest.crashed") if i == at else ("ok", "")
                              for i in range(len(GPUS))]
    assert "signal 11" in done.rungs("cuda")[at]["message"]
    assert count(one, "cuInit") == processes(cpus, at)


def test_all_crash(dgx):
    """Each is said of itself, though a process tells one end alone."""
    one = dgx("crash=cuMemcpyDtoD_v2")
    done = selftest(one, "cuda", cpus=8)
    assert verdicts(done) == [("fail", "selftest.crashed")] * len(GPUS)


def test_a_rung_stands_on_its_own_gpu(dgx):
    """The GPU that crashed is not tried further up; the others are."""
    done = selftest(dgx("crash=cuMemcpyDtoD_v2 on=2"), "cuda", "gdrapi")
    assert verdicts(done, "gdrapi") == [("skip", "selftest.below_broken") if i == 2 else
                                        ("warn", "gdrapi.standin") for i in range(len(GPUS))]
    assert GPUS[2] in done.rungs("gdrapi")[2]["message"]


def hang(dgx, cpus, plays, at, *seconds):
    """That GPU's deadline comes; a slow machine needs longer for the others."""
    for deadline in seconds:
        one = dgx("%s on=%d" % (plays, at))
        done = selftest(one, "cuda", "--timeout", str(deadline), cpus=cpus)
        if verdicts(done).count(("ok", "")) == len(GPUS) - 1:
            break
    assert verdicts(done) == [("fail", "selftest.timeout") if i == at else ("ok", "")
                              for i in range(len(GPUS))]
    return one, done, deadline


@pytest.mark.parametrize("cpus", [1, 8])
def test_a_hang_is_that_gpus_alone(dgx, cpus):
    one, done, _ = hang(dgx, cpus, "hang=cuMemcpyDtoD_v2", 4, 16, 60)
    assert "hung" in done.rungs("cuda")[4]["message"]
    assert count(one, "cuInit") == processes(cpus, 4)


@pytest.mark.parametrize("cpus, at", [(1, 0), (1, 7), (8, 0)])
def test_a_kernel_that_hangs_costs_one_deadline(dgx, cpus, at):
    """No handler of its process runs: who started that ends it, for that GPU's deadline
    alone."""
    one, done, deadline = hang(dgx, cpus, "stop=cuMemcpyDtoD_v2", at, 4 if cpus == 1 else 16, 60)
    within = deadline * 500 if deadline <= 12 else deadline * 1000 - 5000
    if cpus > 1:
        said = "cuda hung: a call into a library did not return within %d ms" % (within + 3000)
    else:
        said = "no verdict within %d s: killed" % (within // 1000 + 5)
    assert said == done.rungs("cuda")[at]["message"]
    assert count(one, "cuInit") == processes(cpus, at)


def test_a_driver_that_hangs_is_not_waited_for_eight_times(dgx):
    one = dgx("hang=cuCtxSynchronize")
    done = selftest(one, "cuda", "--timeout", "2", cpus=1)
    assert verdicts(done) == [("fail", "selftest.timeout")] * len(GPUS)
    assert count(one, "cuInit") == 2
    for entry in done.rungs("cuda")[2:]:
        assert "not tried: the rung hung on %s and on %s" % (GPUS[0], GPUS[1]) == entry["message"]
    done = selftest(one, "cuda", "--timeout", "2", cpus=8)
    assert verdicts(done) == [("fail", "selftest.timeout")] * len(GPUS), done.rungs("cuda")
    assert count(one, "cuInit") == len(GPUS)  # all at once: one deadline


def alone(one, *argv, cpus, rc):
    """nodeprep-selftest by hand: one document, whatever becomes of its processes."""
    processors(one, cpus)
    done = one.run(PROGRAM, "cuda", "--timeout-ms", "600000", *argv, timeout=900)
    assert done.rc == rc, done
    document = json.loads(done.stdout)
    validate(document)
    assert document["ready"] is (rc == 0)
    return document["selftest"]


def test_one_document_of_all_processes(dgx):
    one = dgx()
    for cpus in (1, 3, 8):
        entries = alone(one, cpus=cpus, rc=0)
        assert [(entry["device"], entry["status"]) for entry in entries] == \
            [(pci, "ok") for pci in GPUS]
        assert ["GPU%d, " % i == entry["message"][:6] for i, entry in enumerate(entries)] == \
            [True] * len(GPUS)
    # by name, in the order of the GPUs; twice is once
    for names in ("GPU6,GPU1", "GPU1,%s,GPU6" % GPUS[1]):
        entries = alone(one, "--device", names, cpus=8, rc=0)
        assert [entry["device"] for entry in entries] == [GPUS[1], GPUS[6]]
    entries = alone(one, "--device", "GPU1,GPU9,GPU6", cpus=8, rc=1)
    assert [(entry["device"], entry["code"]) for entry in entries] == \
        [("GPU9", "selftest.no_gpu"), (GPUS[1], ""), (GPUS[6], "")]


def test_one_document_of_those_that_did_not_crash(dgx):
    entries = alone(dgx("crash=cuMemcpyDtoD_v2 on=2"), cpus=8, rc=-11)
    assert [entry["device"] for entry in entries] == GPUS[:2] + GPUS[3:]


def becomes(one, wanted, script, seconds):
    until = time.monotonic() + seconds
    while one.shell(script).stdout.strip() != wanted and time.monotonic() < until:
        time.sleep(0.1)
    assert one.shell(script).stdout.strip() == wanted, script


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("argv", [[PLAIN, "selftest", "cuda", "--timeout", "600"],
                                  [PROGRAM, "cuda", "--timeout-ms", "600000"]])
def test_no_process_outlives_who_asked(dgx, argv, sent):
    one = dgx("hang=cuMemcpyDtoD_v2")
    processors(one, 8)
    held = one.spawn(*argv)
    becomes(one, "8", "grep -c context /etc/fake/FAKE_LOG", 120)
    becomes(one, "9", "pgrep -c nodeprep-selft", 10)
    one.kill(held, sent)
    one.wait(held)
    becomes(one, "0", "pgrep -c nodeprep", 30)


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
