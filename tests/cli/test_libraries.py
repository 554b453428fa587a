# SPDX-License-Identifier: MIT
"""nodeprep-selftest --libraries: the libraries, and what UCX has, against UCX's own tool."""

import json
import os
import re
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True

from helpers import BUILD, validate  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.path.join(BUILD, "nodeprep-selftest")
FAKES = os.path.join(BUILD, "asan", "fake")
STANDIN = os.path.join(BUILD, "asan", "standin")
GUIDE = ["rc", "cuda_copy", "cuda_ipc", "gdr_copy", "tcp"]
MEBI = 1.048576  # ucx_info's MB


def start(*argv, **env):
    env = dict({"PATH": "/usr/bin:/bin"}, **env)
    return subprocess.run([PROGRAM, *argv], capture_output=True, text=True, timeout=120, env=env,
                          cwd="/", stdin=subprocess.DEVNULL, check=False)


def libraries(*argv, **env):
    """By name."""
    done = start("--libraries", *argv, **env)
    assert done.returncode == 0 and done.stdout.count("\n") == 1, done
    document = json.loads(done.stdout)
    validate(document)
    assert document["verb"] == "show" and list(document["show"]) == ["libraries"]
    found = document["show"]["libraries"]
    assert len({library["name"] for library in found}) == len(found)
    return {library["name"]: library for library in found}


def verdicts(ucx):
    found = {v["transport"]: v for v in ucx["ucx"]["verdicts"]}
    assert list(found) == GUIDE
    for verdict in found.values():
        assert (verdict["reason"] is None) is (verdict["status"] == "usable")
    return found


def real_version(ldconfig_name):
    """Path of a library as the dynamic linker has it, links followed; None: there is none."""
    table = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    found = re.search(r"^\t%s .* => (.*)$" % re.escape(ldconfig_name), table.stdout, re.M)
    return os.path.realpath(found.group(1)) if found else None


# ---- UCX against ucx_info ----

def number(text):
    """ucx_info's sizes: "<= 8K, up to 6 iov", "unlimited"."""
    word = text.split(",")[0].replace("<=", "").strip()
    if word in ("unlimited", "inf"):
        return "unlimited"
    size = re.fullmatch(r"(\d+)([KMG]?)", word)
    value = int(size.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30}[size.group(2)]
    return "unlimited" if value >= 1 << 63 else value


def of_ucx_info():
    """(memory domains by name, transports by name and device) of `ucx_info -d`."""
    text = subprocess.run(["ucx_info", "-d"], capture_output=True, text=True, check=True,
                          env={"PATH": "/usr/bin:/bin"}, cwd="/").stdout
    domains, transports, now = {}, {}, None
    for line in text.splitlines():
        key, colon, value = (part.strip() for part in line.lstrip("#").partition(":"))
        if not colon:
            continue
        if key == "Memory domain":
            now = domains[value] = {}
        elif key == "Transport":
            domain, now = list(domains)[-1], {"memory_domain": list(domains)[-1]}
            name = value
        elif key == "Device":
            transports[(name, value)] = now
        elif key == "Connection manager":
            now = {}
        elif now is not None:
            now[key] = value
        assert key != "Device" or domain
    return domains, transports


@pytest.fixture(scope="module")
def ours():
    return libraries()


def test_the_same_transports_and_devices_as_ucx_info(ours):
    ucx = ours["ucx"]["ucx"]
    _, transports = of_ucx_info()
    assert ucx["exact"] is True and ours["ucx"]["code"] is None
    found = {(t["transport"], t["device"]): t for t in ucx["transports"]}
    assert len(found) == len(ucx["transports"]) >= 5
    assert sorted(found) == sorted(transports)
    for name, theirs in transports.items():
        assert found[name]["type"] == theirs["Type"]
        assert found[name]["memory_domain"] == theirs["memory_domain"]
        assert found[name]["failure"] is None
        assert found[name]["priority"] == int(theirs["device priority"])


def test_the_same_figures_as_ucx_info(ours):
    _, transports = of_ucx_info()
    for mine in ours["ucx"]["ucx"]["transports"]:
        theirs = transports[(mine["transport"], mine["device"])]
        bandwidth = re.fullmatch(r"([\d.]+)/ppn \+ ([\d.]+) MB/sec", theirs["bandwidth"])
        shared, dedicated = (float(part) for part in bandwidth.groups())
        assert mine["shared_MBps"] == pytest.approx(shared * MEBI, abs=0.011)
        assert mine["bandwidth_MBps"] == pytest.approx((shared + dedicated) * MEBI, abs=0.02)
        latency = re.match(r"(\d+)(?: \+ ([\d.]+) \* N)? nsec", theirs["latency"])
        assert mine["latency_ns"] == pytest.approx(float(latency.group(1)), abs=0.51)
        assert mine["latency_per_ep_ns"] == pytest.approx(float(latency.group(2) or 0), abs=0.01)
        assert mine["overhead_ns"] == pytest.approx(float(theirs["overhead"].split()[0]), abs=0.51)


def test_the_same_limits_and_error_handling_as_ucx_info(ours):
    _, transports = of_ucx_info()
    ways = 0
    for mine in ours["ucx"]["ucx"]["transports"]:
        theirs = transports[(mine["transport"], mine["device"])]
        for operation in ("put", "get", "am"):
            for way in ("short", "bcopy", "zcopy"):
                said = theirs.get("%s_%s" % (operation, way))
                assert mine[operation][way] == (number(said) if said else None), (mine, way)
                ways += said is not None
        errors = theirs["error handling"]
        assert mine["error_handling"] == ([] if errors == "none" else errors.split(", "))
    assert ways > 10


def test_the_same_memory_domains_as_ucx_info(ours):
    domains, _ = of_ucx_info()
    found = {d["name"]: d for d in ours["ucx"]["ucx"]["memory_domains"]}
    # ucx_info keeps a memory domain without a transport to itself
    assert set(domains) <= set(found)
    for name, theirs in domains.items():
        assert found[name]["component"] == theirs["Component"]
        if "register" in theirs:
            assert found[name]["register"] == number(theirs["register"].split(", cost")[0])
            assert "host" in found[name]["register_types"]
        else:
            assert found[name]["register"] is None and found[name]["register_types"] == []
        if "remote key" in theirs:
            assert found[name]["rkey_bytes"] == int(theirs["remote key"].split()[0])


def test_version_and_path_of_ucx(ours):
    version = subprocess.run(["ucx_info", "-v"], capture_output=True, text=True, check=True).stdout
    assert ours["ucx"]["version"] in version
    assert ours["ucx"]["path"] == real_version("libucp.so.0")
    assert ours["ucx"]["version"].startswith(ours["ucx"]["ucx"]["built_against"] + ".")


def test_debians_ucx_is_built_without_cuda_and_has_verbs(ours):
    if os.path.exists("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
        pytest.skip("this machine has an HCA")
    if not real_version("libucp.so.0").startswith("/usr/lib/"):
        pytest.skip("UCX is not the distribution's")
    found = verdicts(ours["ucx"])
    for name in ("cuda_copy", "cuda_ipc", "gdr_copy"):
        assert found[name]["status"] == "built without"
        assert ours["ucx"]["path"] in found[name]["reason"]
    assert found["rc"]["status"] == "device not usable" and "no HCA" in found["rc"]["reason"]
    assert found["tcp"]["status"] == "usable"


# ---- another UCX than the one built against ----

def test_another_version_is_never_asked_by_structure(ours):
    fake = os.path.join(FAKES, "ucx_version.so")
    other = libraries(LD_PRELOAD=fake)["ucx"]
    assert other["version"] == "1.99.0" and other["code"] == "ucx.version_mismatch"
    assert "1.99.0" in other["message"] and ours["ucx"]["ucx"]["built_against"] in other["message"]
    assert other["ucx"]["exact"] is False and other["path"] == ours["ucx"]["path"]
    # what UCP prints: names, no figures
    names = {(t["transport"], t["device"]) for t in ours["ucx"]["ucx"]["transports"]}
    assert {(t["transport"], t["device"]) for t in other["ucx"]["transports"]} == names
    for transport in other["ucx"]["transports"]:
        assert transport["bandwidth_MBps"] is None and transport["put"] is None
        assert transport["type"] is None and transport["error_handling"] is None
    assert [v["status"] for v in verdicts(other).values()] == [
        v["status"] for v in verdicts(ours["ucx"]).values()]
    # the next patch release is the same
    minor = ours["ucx"]["ucx"]["built_against"].split(".")[1]
    same = libraries(LD_PRELOAD=fake, FAKE_UCX="minor=" + minor)["ucx"]
    assert same["code"] is None and same["ucx"]["exact"] is True
    assert same["ucx"]["transports"] == ours["ucx"]["ucx"]["transports"]


def copy_of_ucx(folder, without):
    """A UCX whose folder of modules lacks some; its library path."""
    modules = os.path.join(folder, "ucx")
    os.makedirs(modules)
    home = os.path.dirname(real_version("libucp.so.0"))
    for name in ("libucp.so.0", "libuct.so.0", "libucs.so.0", "libucm.so.0"):
        subprocess.run(["cp", os.path.join(home, name), os.path.join(folder, name)], check=True)
    for name in os.listdir(os.path.join(home, "ucx")):
        if re.search(r"\.so\.0$", name) and not name.startswith(without):
            subprocess.run(["cp", os.path.join(home, "ucx", name), modules], check=True)
    return str(folder)


def test_a_module_that_is_there_and_cannot_be_loaded(tmp_path):
    """As a UCX with CUDA is on a node without the GPU's driver."""
    path = copy_of_ucx(str(tmp_path), without="libuct_none")
    module = os.path.join(path, "ucx", "libuct_cuda.so.0")
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", module, "-", "-x", "none", "-Wl,--no-as-needed",
                    os.path.join(FAKES, "libcuda.so.1")], input="int np_nothing;", text=True,
                   check=True)
    for argv in ([], ["--brief"]):
        ucx = libraries(*argv, LD_LIBRARY_PATH=path)["ucx"]
        assert ucx["path"] == os.path.join(path, "libucp.so.0")
        found = verdicts(ucx)
        assert found["cuda_copy"]["status"] == "device not usable"
        assert module in found["cuda_copy"]["reason"]
        assert "libcuda.so.1" in found["cuda_copy"]["reason"]
        assert found["gdr_copy"]["status"] == "built without"


# ---- brief ----

def test_brief_opens_no_device_and_starts_no_driver(tmp_path):
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-o", str(trace), "-e", "trace=socket,openat", PROGRAM,
                           "--libraries", "--brief"], capture_output=True, text=True, check=True,
                          env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": FAKES,
                               "FAKE_CUDA": "hang=cuInit version=13030"}, timeout=60)
    found = {one["name"]: one for one in json.loads(done.stdout)["show"]["libraries"]}
    assert sorted(found) == ["cuda", "gdrapi", "ucx"]
    assert (found["cuda"]["status"], found["cuda"]["version"]) == ("loaded", "13.3")
    assert found["ucx"]["ucx"]["transports"] == [] == found["ucx"]["ucx"]["memory_domains"]
    assert "ib" in found["ucx"]["ucx"]["components"]
    assert {v["status"] for v in verdicts(found["ucx"]).values()} == {"not tried", "built without"}
    assert "/dev/infiniband" not in trace.read_text() and "/dev/nvidia" not in trace.read_text()


def test_brief_is_an_option_of_libraries_alone():
    for argv in (["--brief"], ["--nvml"], ["tcp", "--brief"], ["tcp", "--nvml"],
                 ["--libraries", "tcp"]):
        done = start(*argv)
        assert (done.returncode, done.stdout) == (2, ""), done


# ---- NVML ----

@pytest.mark.parametrize("fake, nvlink", [
    ("", True), ("active=1", True), ("active=0", False), ("links=0", False),
    ("links=4 active=0", False), ("gpus=1", True), ("gpus=0", None), ("state=999", None),
    ("links=4 state=999", None)])
@pytest.mark.parametrize("argv", [[], ["--brief", "--nvml"]])
def test_nvlink_by_nvml(argv, fake, nvlink):
    nvml = libraries(*argv, LD_LIBRARY_PATH=FAKES, FAKE_NVML=fake)["nvml"]
    assert (nvml["status"], nvml["code"]) == ("loaded", None)
    assert nvml["path"] == os.path.join(FAKES, "libnvidia-ml.so.1")
    assert nvml["version"] == "13.580.65.06" and nvml["nvml"]["nvlink"] == nvlink


@pytest.mark.parametrize("fake, pairs", [
    ("far=switch gpus=3 first=16", {"1718": 16, "1719": 16, "1819": 18}),
    ("far=gpu gpus=4 active=4", {"1718": 4, "1719": 0, "171a": 0, "1819": 0, "181a": 0,
                                 "191a": 4}),
    ("far=hidden gpus=2 p2p=6", {"1718": None}), ("gpus=1", {}),
])
def test_nvlink_of_pairs(fake, pairs):
    nvml = libraries("--brief", "--nvml", LD_LIBRARY_PATH=FAKES, FAKE_NVML=fake)["nvml"]
    found = {}
    for gpu in nvml["nvml"]["gpus"]:
        for peer in gpu["peers"]:
            found[gpu["pci_address"][5:7] + peer["pci_address"][5:7]] = peer["links"]
    backwards = {name[2:] + name[:2]: n for name, n in pairs.items()}
    assert found == dict(pairs, **backwards)


@pytest.mark.parametrize("fake, said", [("init=9", "starting: Driver Not Loaded (9)"),
                                        ("count=999", "counting the GPUs: Unknown Error (999)")])
def test_nvml_that_does_not_start(fake, said):
    nvml = libraries("--brief", "--nvml", LD_LIBRARY_PATH=FAKES, FAKE_NVML=fake)["nvml"]
    assert (nvml["status"], nvml["code"], nvml["nvml"]) == ("unusable", "nvml.failed", None)
    assert said in nvml["message"] and "nvidia-smi" in nvml["hint"]


def test_brief_leaves_nvml_out_until_asked():
    hangs = {"LD_LIBRARY_PATH": FAKES, "FAKE_NVML": "hang=init"}
    assert "nvml" not in libraries("--brief", **hangs)
    done = start("--libraries", "--brief", "--nvml", "--timeout-ms", "500", **hangs)
    found = json.loads(done.stdout)["show"]["libraries"]
    assert [one["name"] for one in found] == ["ucx", "cuda", "gdrapi", "nvml"]
    assert {one["code"] for one in found} == {"selftest.timeout"}


# ---- the other libraries ----

def test_libraries_that_are_not_there(ours):
    with_fakes = libraries(LD_LIBRARY_PATH=FAKES)
    assert set(ours) == set(with_fakes) == {"ucx", "cuda", "gdrapi", "nccl", "ibverbs",
                                            "nvml"}
    for name, file in (("cuda", "libcuda.so.1"), ("gdrapi", "libgdrapi.so.2"),
                       ("nccl", "libnccl.so.2"), ("nvml", "libnvidia-ml.so.1")):
        expected = real_version(file)
        if expected is None and ours[name]["path"] is None:
            assert ours[name]["status"] == "absent" and ours[name]["version"] is None
            assert file in ours[name]["message"] and ours[name]["hint"]
    assert with_fakes["cuda"]["path"] == os.path.join(FAKES, "libcuda.so.1")
    assert with_fakes["nccl"]["version"] == "2.28.3"
    ibverbs = real_version("libibverbs.so.1")
    assert ours["ibverbs"]["path"] == ibverbs
    assert ours["ibverbs"]["version"] == ibverbs.split(".so.")[1]


def test_a_driver_that_does_not_start():
    cuda = libraries(LD_LIBRARY_PATH=FAKES, FAKE_CUDA="init=803")["cuda"]
    assert (cuda["status"], cuda["code"], cuda["version"]) == ("unusable", "cuda.no_driver", "13.0")
    assert "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" in cuda["message"] and "reboot" in cuda["hint"]


def test_an_old_nccl():
    nccl = libraries(LD_LIBRARY_PATH=FAKES, FAKE_NCCL="version=2304")["nccl"]
    assert (nccl["status"], nccl["code"]) == ("unusable", "nccl.library_too_old")
    assert nccl["version"] == "2.3.4"


@pytest.mark.parametrize("cuda, library, backend, said", [
    (13030, 206, "dma-buf", None),
    (13020, 206, None, "13.2 is older than the 13.3"),
    (13030, 205, None, "which came with 2.6"),
])
def test_what_libgdrapi_can_map_through_without_gdrdrv(cuda, library, backend, said):
    if re.search(r" gdrdrv$", open("/proc/devices", encoding="ascii").read(), re.M):
        pytest.skip("gdrdrv is loaded here")
    for argv in ([], ["--brief"]):
        gdrapi = libraries(*argv, LD_LIBRARY_PATH=FAKES + ":" + STANDIN,
                           FAKE_CUDA="version=%d" % cuda,
                           NP_STANDIN="version=%d" % library)["gdrapi"]
        assert gdrapi["status"] == "loaded" and gdrapi["version"] == "2.%d" % (library % 100)
        assert gdrapi["gdrapi"]["backend"] == backend and gdrapi["gdrapi"]["standin"] is True
        assert gdrapi["gdrapi"]["min_driver_version"] == "2.0"
        assert gdrapi["code"] == (None if backend else "gdrapi.no_backend")
        assert said is None or said in gdrapi["message"]


def test_libgdrapi_without_a_cuda_driver():
    if real_version("libcuda.so.1"):
        pytest.skip("there is a CUDA driver here")
    gdrapi = libraries(LD_LIBRARY_PATH=STANDIN)["gdrapi"]
    assert gdrapi["gdrapi"]["backend"] is None and "no CUDA driver" in gdrapi["message"]


def test_a_hanging_driver_leaves_a_document():
    done = start("--libraries", "--timeout-ms", "500", LD_LIBRARY_PATH=FAKES,
                 FAKE_CUDA="hang=cuInit")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    validate(document)
    for library in document["show"]["libraries"]:
        assert (library["status"], library["code"]) == ("unknown", "selftest.timeout")
        assert "hung" in library["message"]
