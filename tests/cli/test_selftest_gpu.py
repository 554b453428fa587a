# SPDX-License-Identifier: MIT
"""The GPU rungs of nodeprep-selftest over FAKE libraries (tests/fake): which verdict each
error becomes. Fakes prove nothing of a GPU, only what the rungs say."""

import json
import os
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True

from helpers import BUILD, ROOT, SIMNODE, validate  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.path.join(BUILD, "nodeprep-selftest")
FAKES = os.path.join(BUILD, "asan", "fake")
NODES = os.path.join(ROOT, "tests", "sim", "nodes")
GPU0, GPU1 = "0000:17:00.0", "0000:18:00.0"


def document(done, rc):
    assert done.returncode == rc, done
    assert done.stdout.count("\n") == 1, done
    found = json.loads(done.stdout)
    validate(found)
    assert found["ready"] is (rc == 0)
    for entry in found["selftest"]:
        assert entry["message"] and "\n" not in entry["message"]
        assert (entry["code"] == "") is (entry["status"] == "ok")
        assert (entry["hint"] == "") is (entry["status"] == "ok")
    return found["selftest"]


def run(*argv, rc, libraries=FAKES, **fakes):
    """The entries of a run with FAKE_CUDA=cuda, FAKE_NCCL=nccl ..."""
    env = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": libraries}
    env.update({name.upper(): value for name, value in fakes.items()})
    assert os.path.exists(os.path.join(FAKES, "libcuda.so.1")), "no fakes: make test builds them"
    done = subprocess.run([PROGRAM, *argv], capture_output=True, text=True, timeout=120, env=env,
                          cwd="/", stdin=subprocess.DEVNULL, check=False)
    return document(done, rc)


def one(*argv, **how):
    entry, = run(*argv, **how)
    return entry


def on_node(node, *argv, rc):
    done = subprocess.run([SIMNODE, os.path.join(NODES, node), "--", PROGRAM, *argv],
                          capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)
    return document(done, rc)


def verdicts(entries):
    return [(entry["device"], entry["status"], entry["code"]) for entry in entries]


# ---- which GPUs ----

RUNGS = ["cuda"]


@pytest.mark.parametrize("rung", RUNGS)
def test_no_gpu_is_a_skip(rung):
    entry = one(rung, rc=1, libraries="/nowhere")
    assert (entry["status"], entry["code"]) == ("skip", "cuda.no_gpu")
    assert entry["sizes"] == [] and entry["transport"] == ""


@pytest.mark.parametrize("rung", RUNGS)
def test_driver_without_a_gpu_is_a_skip(rung):
    assert one(rung, rc=1, fake_cuda="init=100")["code"] == "cuda.no_gpu"


@pytest.mark.parametrize("rung", RUNGS)
def test_gpu_on_the_bus_without_libcuda(rung):
    if os.geteuid() != 0:
        pytest.skip("needs root: a simulated node")
    entries = on_node("dgx.ini", rung, rc=1)
    assert len(entries) == 8
    assert [entry["device"] for entry in entries] == sorted(e["device"] for e in entries)
    for entry in entries:
        assert (entry["status"], entry["code"]) == ("fail", "cuda.no_driver")
        assert "libcuda.so.1" in entry["message"]
    assert on_node("dgx.ini", rung, "--device", "GPU1", rc=1) == [entries[1]]
    assert on_node("guide.ini", rung, rc=1)[0]["code"] in ("cuda.no_gpu", "cuda.no_driver")


@pytest.mark.parametrize("rung", RUNGS)
def test_each_gpu_has_an_entry_and_a_name(rung):
    found = run(rung, rc=0, fake_cuda="gpus=2")
    assert verdicts(found) == [(GPU0, "ok", ""), (GPU1, "ok", "")]
    assert "GPU1, Fake GPU 1" in found[1]["message"]
    for name in ("GPU1", GPU1, "18:00.0"):
        entry = one(rung, "--device", name, rc=0, fake_cuda="gpus=2")
        assert (entry["device"], entry["status"]) == (GPU1, "ok")


@pytest.mark.parametrize("name", ["GPU2", "0000:19:00.0"])
def test_a_gpu_that_was_asked_for_and_is_not_there(name):
    entry = one("cuda", "--device", name, rc=1, fake_cuda="gpus=2")
    assert (entry["device"], entry["status"], entry["code"]) == (name, "fail", "cuda.no_gpu")


@pytest.mark.parametrize("name", ["mlx5_0:1", "GPU", "GPU-1", "gpu", "17:00", "0000:17:00.9", "",
                                  "0000:17:00.0:0000", "x" * 300])
def test_names_that_no_gpu_can_have(name):
    done = subprocess.run([PROGRAM, "cuda", "--device", name], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "GPU0" in done.stderr and done.stderr.count("\n") == 1


# ---- cuda ----

def test_cuda_sizes():
    entry = one("cuda", rc=0)
    assert [size["size_bytes"] for size in entry["sizes"]] == [8, 4096, 65536, 1 << 20, 8 << 20]
    assert all(size["latency_us"] > 0 and size["bandwidth_MBps"] > 0 for size in entry["sizes"])
    assert entry["transport"] == "cuda" and "CUDA 13.0" in entry["message"]
    full = one("cuda", "--full", rc=0)
    assert [size["size_bytes"] for size in full["sizes"]] == [4 ** n for n in range(14)]


@pytest.mark.parametrize("plays, code, said", [
    ("init=803", "cuda.no_driver", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    ("init=34", "cuda.no_driver", "does not start"),
    ("fail=cuMemAlloc_v2:2", "cuda.out_of_memory", "allocating 32 MiB"),
    ("fail=cuDevicePrimaryCtxRetain:46 mode=2", "cuda.compute_mode", "prohibited"),
    ("fail=cuDevicePrimaryCtxRetain:46 mode=3", "cuda.compute_mode", "exclusive"),
    ("fail=cuDevicePrimaryCtxRetain:46", "cuda.failed", "CUDA_ERROR_DEVICE_UNAVAILABLE"),
    ("fail=cuDevicePrimaryCtxRetain:802", "cuda.not_ready", "CUDA error 802"),
    ("fail=cuMemcpyDtoH_v2:214", "cuda.ecc", "CUDA_ERROR_ECC_UNCORRECTABLE"),
    ("fail=cuMemcpyDtoD_v2:700", "cuda.failed", "while copying on the GPU"),
    ("fail=cuStreamSynchronize:999", "cuda.failed", "while copying to the GPU"),
])
def test_cuda_errors(plays, code, said):
    entry = one("cuda", rc=1, fake_cuda=plays)
    assert (entry["status"], entry["code"]) == ("fail", code)
    assert said in entry["message"]


@pytest.mark.parametrize("nth", [1, 100, 300, 1482])
def test_cuda_one_wrong_bit(nth):
    entry = one("cuda", rc=1, fake_cuda="corrupt=%d" % nth)
    assert entry["code"] == "selftest.data_corrupt" and "offset" in entry["message"]


def test_cuda_hang():
    entry = one("cuda", "--timeout-ms", "500", rc=1, fake_cuda="hang=cuMemcpyDtoD_v2")
    assert entry["code"] == "selftest.timeout" and "hung" in entry["message"]


def test_cuda_deadline():
    entry = one("cuda", "--full", "--timeout-ms", "50", rc=1)
    assert entry["code"] == "selftest.timeout"
