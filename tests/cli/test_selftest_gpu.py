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
STANDIN = os.path.join(BUILD, "asan", "standin")
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
    if "--timeout-ms" not in argv:  # a fake GPU is as slow as the machine is busy
        argv = [*argv, "--timeout-ms", "600000"]
    assert os.path.exists(os.path.join(FAKES, "libcuda.so.1")), "no fakes: make test builds them"
    done = subprocess.run([PROGRAM, *argv], capture_output=True, text=True, timeout=900, env=env,
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

RUNGS = ["cuda", "nccl", "gdrapi", "cuda_copy", "cuda_ipc", "gdr_copy", "gdr_rdma"]
EACH_GPU = ["cuda"]


@pytest.mark.parametrize("rung", RUNGS)
def test_no_gpu_is_a_skip(rung):
    entry = one(rung, rc=1, libraries="/nowhere")
    assert (entry["status"], entry["code"]) == ("skip", "selftest.no_gpu")
    assert entry["sizes"] == [] and entry["transport"] == ""


@pytest.mark.parametrize("rung", RUNGS)
def test_driver_without_a_gpu_is_a_skip(rung):
    assert one(rung, rc=1, fake_cuda="init=100")["code"] == "selftest.no_gpu"


@pytest.mark.parametrize("rung", RUNGS)
def test_gpu_on_the_bus_without_libcuda(rung):
    if os.geteuid() != 0:
        pytest.skip("needs root: a simulated node")
    entries = on_node("dgx.ini", rung, rc=1)
    which = "--gpu" if rung == "gdr_rdma" else "--device"
    assert len(entries) == 8
    assert [entry["device"] for entry in entries] == sorted(e["device"] for e in entries)
    for entry in entries:
        assert (entry["status"], entry["code"]) == ("fail", "cuda.no_driver")
        assert "libcuda.so.1" in entry["message"]
    assert on_node("dgx.ini", rung, which, "GPU1", rc=1) == [entries[1]]
    assert on_node("guide.ini", rung, rc=1)[0]["code"] in ("selftest.no_gpu", "cuda.no_driver")


@pytest.mark.parametrize("rung", EACH_GPU)
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
    assert (entry["device"], entry["status"], entry["code"]) == (name, "fail", "selftest.no_gpu")


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


def too_late(rung, said, first_ms, **fakes):
    """The deadline comes at that place; a slow machine needs longer to come to it."""
    for factor in (1, 5, 25):
        entry = one(rung, "--timeout-ms", str(first_ms * factor), rc=1, **fakes)
        if said in entry["message"]:
            break
    assert entry["code"] == "selftest.timeout" and said in entry["message"], entry


def test_cuda_hang():
    too_late("cuda", "hung", 500, fake_cuda="hang=cuMemcpyDtoD_v2")


def test_cuda_deadline():
    entry = one("cuda", "--full", "--timeout-ms", "50", rc=1, fake_cuda="delay=40")
    assert entry["code"] == "selftest.timeout"


# ---- nccl ----

@pytest.mark.parametrize("gpus", [1, 2, 3])
def test_nccl_sums_over_all_gpus(gpus):
    entry = one("nccl", rc=0, fake_cuda="gpus=%d" % gpus)
    assert (entry["status"], entry["transport"], entry["device"]) == ("ok", "nccl", "")
    assert [size["size_bytes"] for size in entry["sizes"]] == [8, 4096, 65536, 1 << 20, 8 << 20,
                                                               128 << 20]
    assert os.path.join(FAKES, "libnccl.so.2") in entry["message"]
    assert "NCCL 2.28.3" in entry["message"]
    # what one GPU does not prove is said
    assert ("no path between GPUs" in entry["message"]) is (gpus == 1)
    assert ("over %d GPUs" % gpus in entry["message"]) is (gpus > 1)


def test_nccl_on_one_of_two_gpus():
    entry = one("nccl", "--device", "GPU1", rc=0, fake_cuda="gpus=2")
    assert entry["device"] == "GPU1" and "no path between GPUs" in entry["message"]


@pytest.mark.parametrize("plays, code, said", [
    ("version=2304", "nccl.library_too_old", "NCCL 2.3.4"),
    ("version=1304", "nccl.library_too_old", "NCCL 1.3.4"),
    ("old", "nccl.library_too_old", "unknown version"),
    ("fail=ncclCommInitAll:2", "nccl.failed", "making the communicators: unhandled system error"),
    ("fail=ncclAllReduce:5", "nccl.failed", "the last words of a fake"),
    ("fail=ncclGroupEnd:1", "nccl.failed", "starting an all-reduce"),
    ("fail=ncclCommGetAsyncError:6", "nccl.failed", "reducing 8 B"),
    ("corrupt=0", "selftest.data_corrupt", "element 0 on GPU1 (0000:18:00.0)"),
    ("corrupt=2097151", "selftest.data_corrupt", "all-reduce of 8 MiB: element 2097151"),
])
def test_nccl_errors(plays, code, said):
    entry = one("nccl", rc=1, fake_cuda="gpus=2", fake_nccl=plays)
    assert (entry["status"], entry["code"]) == ("fail", code)
    assert said in entry["message"] and "\\x" not in entry["message"]


@pytest.mark.parametrize("version", [2400, 2804, 20903, 23001])
def test_nccl_new_enough(version):
    assert one("nccl", rc=0, fake_nccl="version=%d" % version)["status"] == "ok"


def test_nccl_a_collective_that_never_ends():
    """Ended by the deadline, not by the alarm."""
    too_late("nccl", "reducing 8 B", 1500, fake_cuda="fail=cuStreamQuery:600")


def gdrapi(*argv, rc, **how):
    return one("gdrapi", *argv, rc=rc, libraries=FAKES + ":" + STANDIN, **how)


def only_these(libraries, *argv):
    """A run where the linker has no other libraries than those and Debian's own."""
    done = subprocess.run(["unshare", "-m", "sh", "-c", "mount --bind /dev/null /etc/ld.so.cache "
                           "&& exec env -i LD_LIBRARY_PATH=%s %s" % (libraries, " ".join(argv))],
                          capture_output=True, text=True, check=False)
    entry, = document(done, 1)
    return entry


def test_nccl_no_library(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: a mount namespace")
    os.symlink(os.path.join(FAKES, "libcuda.so.1"), tmp_path / "libcuda.so.1")
    entry = only_these(tmp_path, PROGRAM, "nccl")
    assert (entry["status"], entry["code"]) == ("skip", "nccl.no_library")
    subprocess.run(["cc", "-shared", "-o", tmp_path / "libneeded.so", "-x", "c", "/dev/null"],
                   check=True)
    subprocess.run(["cc", "-shared", "-Wl,--no-as-needed", "-o", tmp_path / "libnccl.so.2",
                    "-x", "c", "/dev/null", "-x", "none", tmp_path / "libneeded.so"], check=True)
    os.unlink(tmp_path / "libneeded.so")
    entry = only_these(tmp_path, PROGRAM, "nccl")
    assert (entry["status"], entry["code"]) == ("fail", "nccl.no_library")
    assert "libneeded.so" in entry["message"]


# ---- gdrapi: over a STAND-IN (tests/standin) on a fake GPU ----

def test_gdrapi_over_a_standin_is_never_ok():
    entry = gdrapi(rc=0)
    assert (entry["status"], entry["code"]) == ("warn", "gdrapi.standin")
    assert "STAND-IN" in entry["message"] and entry["transport"] == "gdrapi (stand-in)"
    assert "libgdrapi 2.6" in entry["message"] and "no driver" in entry["message"]
    assert [size["size_bytes"] for size in entry["sizes"]] == [8, 4096, 65536, 1 << 20, 8 << 20]


@pytest.mark.parametrize("standin, cuda, code, said", [
    ("open", "", "gdrapi.no_backend", "no gdrdrv, and CUDA driver 13.0 is older than the 13.3 "
     "that the dma-buf backend needs"),
    ("open", "version=13030", "gdrapi.no_backend", "the dma-buf backend does not start"),
    ("open version=205", "version=13030", "gdrapi.no_backend", "libgdrapi 2.5"),
    ("pin=12", "", "gdrapi.failed", "gdr_pin_buffer of 8 MiB"),
    ("map=11", "", "gdrapi.failed", "gdr_map of 8 MiB"),
    ("corrupt=1", "", "selftest.data_corrupt", "8 B"),
    ("corrupt=250", "", "selftest.data_corrupt", "offset 65535"),
    ("", "corrupt=3", "selftest.data_corrupt", "message 3 (8 B)"),
    ("", "fail=cuMemAlloc_v2:2", "cuda.out_of_memory", "while allocating memory"),
])
def test_gdrapi_errors(standin, cuda, code, said):
    with open("/proc/devices", encoding="ascii") as devices:
        driver = "gdrdrv" in devices.read()
    if driver:
        pytest.skip("hardware: this machine has a gdrdrv of its own")
    entry = gdrapi(rc=1, np_standin=standin, fake_cuda=cuda)
    assert (entry["status"], entry["code"]) == ("fail", code)
    assert said in entry["message"]


def test_gdrapi_no_library(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: a mount namespace")
    entry = only_these(FAKES, PROGRAM, "gdrapi")
    assert (entry["status"], entry["code"]) == ("skip", "gdrapi.no_library")
    (tmp_path / "libgdrapi.so.2").write_bytes(b"no library")
    entry = only_these("%s:%s" % (FAKES, tmp_path), PROGRAM, "gdrapi")
    assert (entry["status"], entry["code"]) == ("fail", "gdrapi.no_library")


# ---- UCX: Debian's has no CUDA, so that it stops where that is said ----

@pytest.mark.parametrize("rung, component, module", [
    ("cuda_copy", "cuda_cpy", "libuct_cuda.so"),
    ("cuda_ipc", "cuda_ipc", "libuct_cuda.so"),
    ("gdr_copy", "gdr_copy", "libuct_cuda_gdrcopy.so"),
])
def test_ucx_built_without_or_module_that_does_not_load(tmp_path, rung, component, module):
    """C31: which of the two, with the path of the library."""
    found = run(rung, rc=1, fake_cuda="gpus=2")
    assert verdicts(found) == [(GPU0, "fail", "ucx.built_without"),
                               (GPU1, "fail", "ucx.built_without")]
    for entry in found:
        assert "libucp.so.0" in entry["message"] and component in entry["message"]
        assert "no " + module in entry["message"]
    (tmp_path / module).write_bytes(b"no library")
    entry = one(rung, "--env", "UCX_MODULE_DIR=%s" % tmp_path, rc=1)
    assert (entry["status"], entry["code"]) == ("fail", "ucx.transport_missing")
    assert str(tmp_path / module) in entry["message"] and "libucp.so.0" in entry["message"]


# ---- gdr_rdma: no machine of ours has a GPU and an HCA ----

def test_gdr_rdma_without_an_hca():
    entry = one("gdr_rdma", rc=1)
    assert (entry["status"], entry["code"]) == ("skip", "selftest.gdr_rdma.no_device")
    entry = one("gdr_rdma", "--device", "mlx5_7:1", rc=1)
    assert (entry["status"], entry["code"]) == ("fail", "selftest.gdr_rdma.no_device")
    entry = one("gdr_rdma", "--gpu", "GPU3", rc=1)
    assert (entry["device"], entry["code"]) == ("GPU3", "selftest.no_gpu")


# Somebody else's job.

@pytest.mark.parametrize("rung", ["nccl", "cuda_copy", "cuda_ipc", "gdr_copy"])
def test_a_busy_gpu_is_left_alone(rung):
    entry = one(rung, rc=1, fake_nvml="users=2")
    assert (entry["device"], entry["status"], entry["code"]) == (
        "" if rung == "nccl" else GPU0, "skip", "selftest.busy")
    assert "2 compute processes use it (PID 4711)" in entry["message"]
    assert "--force" in entry["hint"]
    found = run(rung, "--force", rc=1 if rung != "nccl" else 0, fake_nvml="users=2")
    assert all(entry["code"] != "selftest.busy" for entry in found)


def test_light_rungs_do_not_mind():
    assert one("cuda", rc=0, fake_nvml="users=2")["status"] == "ok"
    # who cannot be asked says nothing against it
    assert one("nccl", rc=0, fake_nvml="init=3")["status"] == "ok"
