# SPDX-License-Identifier: MIT
"""[dask]: the YAML as Dask itself reads it, its systemd units, and scheduler and worker of
Debian's Dask on ib0 of a simulated node, started as the units start them."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess

import pytest
import yaml
from helpers import BUILD, ENV, IP, PYTHON, QUICK, ROOT, install_nvml

CONF = "/etc/nodeprep/nodeprep.conf"
YAML, DASK_ENV = "/etc/dask/nodeprep.yaml", "/etc/nodeprep/dask.env"
LAUNCHER = os.path.join(ROOT, "packaging", "dask", "nodeprep-dask")
SYSTEMD = os.path.join(ROOT, "etc", "systemd")
SCHEDULER, WORKER = "nodeprep-dask-scheduler.service", "nodeprep-dask-worker@.service"
ADDRESS = IP.split("/", maxsplit=1)[0]
needs_dask = pytest.mark.skipif(not importlib.util.find_spec("distributed"),
                                reason="Dask is not installed: make deps")


def environment(text):
    return dict(line.split("=", 1) for line in text.splitlines() if line and line[0] != "#")


def service(name, key):
    """The values of a key of [Service], in order."""
    with open(os.path.join(SYSTEMD, name), encoding="utf-8") as file:
        text = file.read()
    return re.findall(r"^%s=(.*)$" % key, text.split("[Service]")[1].split("[Install]")[0], re.M)


def unit_environment(one, name):
    """What systemd gives the unit's program: its own variables, then those of the files,
    the later one winning."""
    found = {"PATH": ENV["PATH"], "LC_ALL": "C"}
    for line in service(name, "Environment"):
        key, value = line.split("=", 1)
        found[key] = value.replace("%C", "/var/cache")
    for path in service(name, "EnvironmentFile"):
        data = one.read(path.lstrip("-"))
        assert data is not None or path[0] == "-", path
        found.update(environment((data or b"").decode()))
    return found


def command(name):
    words, = service(name, "ExecStart")
    program, *options = words.split()
    assert program == "/usr/libexec/nodeprep/nodeprep-dask"
    return [LAUNCHER, *options]


# ---- the files ----

def test_both_spellings_and_when(node):
    one = node("guide.ini")
    one.write(CONF, "[dask]\nenabled = yes\nrmm_pool_size = 2 GiB\nconnect_timeout = 60\n")
    # no address, no file: Dask would end at once
    early = one.json("apply", *QUICK, rc=0)
    assert one.read(YAML) is None and one.read(DASK_ENV) is None
    assert early.check("dask.no_address", "ib0")["status"] == "warn"

    done = one.apply()
    assert not done.checks(code="dask.no_address")
    targets = [a["target"] for a in done.doc["actions"]]
    assert targets.index("ib0") < targets.index(YAML)
    both = yaml.safe_load(one.read(YAML))
    new, old = both["distributed-ucxx"], both["distributed"]["comm"]["ucx"]
    assert new == {"tcp": True, "infiniband": True, "rdmacm": True, "cuda-copy": False,
                   "create-cuda-context": False, "connect-timeout": 60,
                   "rmm": {"pool-size": 2 << 30}}
    assert old == {key: value for key, value in new.items() if key != "rmm"}
    assert both["distributed"]["rmm"] == new["rmm"]
    assert both["distributed"]["comm"]["timeouts"] == {"connect": "60s"}
    assert both["distributed"]["worker"] == {"multiprocessing-method": "forkserver"}
    assert environment(one.read(DASK_ENV).decode()) == {
        "NODEPREP_DASK_PROTOCOL": "ucx", "NODEPREP_DASK_INTERFACE": "ib0",
        "NODEPREP_DASK_PORT": "8786", "UCX_TLS": "rc,tcp,sm,self", "UCX_MAX_RNDV_RAILS": "1",
        "UCX_SOCKADDR_TLS_PRIORITY": "rdmacm,tcp", "UCXPY_CONNECT_TIMEOUT": "60"}
    assert one.apply().doc["actions"] == []

    one.write(CONF, "[dask]\nenabled = no\n")
    assert one.apply().actions() == [("file.remove", YAML, "absent"),
                                     ("file.remove", DASK_ENV, "absent")]
    assert one.read(YAML) is None and one.read(DASK_ENV) is None


def test_nothing_without_the_section(guide):
    guide.apply()
    assert guide.read(YAML) is None and guide.read(DASK_ENV) is None


def test_no_port_to_use(node):
    one = node("guide.ini")
    one.write(CONF, "[dask]\nenabled = yes\n[ports]\nignore = mlx5_0 mlx5_1 mlx5_2 mlx5_3\n")
    one.json("apply", "--ip", IP, *QUICK)
    both = yaml.safe_load(one.read(YAML))
    for switches in (both["distributed-ucxx"], both["distributed"]["comm"]["ucx"]):
        assert switches["tcp"] is True
        assert switches["infiniband"] is False and switches["rdmacm"] is False


@needs_dask
def test_dask_reads_the_yaml(node):
    one = node("guide.ini")
    one.write(CONF, "[dask]\nenabled = yes\nrmm_pool_size = 24 GiB\nconnect_timeout = 45\n")
    one.apply()
    keys = ["%s.%s" % (section, key) for section in ("distributed-ucxx", "distributed.comm.ucx")
            for key in ("tcp", "infiniband", "rdmacm", "cuda-copy", "create-cuda-context",
                        "connect-timeout")]
    keys += ["distributed-ucxx.rmm.pool-size", "distributed.rmm.pool-size",
             "distributed.worker.multiprocessing-method", "distributed.comm.timeouts.connect"]
    script = """
import dask, distributed, sys
from distributed.comm.ucx import _prepare_ucx_config
for key in sys.argv[1:]:
    print(key, dask.config.get(key))
print(dask.utils.parse_bytes(dask.config.get("distributed.rmm.pool-size")))
print(_prepare_ucx_config())
"""
    said = one.text(PYTHON, "-c", script, *keys).splitlines()
    assert dict(line.split(" ", 1) for line in said[:-2]) == dict(zip(keys, 2 * [
        "True", "True", "True", "False", "False", "45"] + [
            str(24 << 30), str(24 << 30), "forkserver", "45s"]))
    assert said[-2] == str(24 << 30)
    # what ucx-py would have been told
    assert said[-1] == "({'TLS': 'rc,tcp', 'SOCKADDR_TLS_PRIORITY': 'rdmacm'}, {})"


# ---- scheduler and worker ----

TASK = """
import sys
from distributed import Client
client = Client(sys.argv[1], timeout=200)
client.wait_for_workers(1, timeout=200)
print(client.submit(sum, range(100)).result(timeout=200))
print(client.scheduler.address, *client.scheduler_info()["workers"])
def started_by():
    import os
    return open("/proc/%d/cmdline" % os.getppid()).read().replace("\\0", " ")
print(*client.run(started_by).values())
"""


@needs_dask
def test_scheduler_and_worker_run_a_task(node):
    one = node("guide.ini")
    one.write(CONF, "[dask]\nenabled = yes\nprotocol = tcp\nscheduler_address = %s\n" % ADDRESS)
    one.apply()
    one.text("mkdir", "-p", "/tmp/scheduler", "/tmp/worker")
    one.text("chown", "alice", "/tmp/scheduler", "/tmp/worker")
    running = [one.spawn(*command(name), *options, cwd=folder, user="alice",
                         only_env=dict(unit_environment(one, name), HOME=folder))
               for name, folder, options in (
                   (SCHEDULER, "/tmp/scheduler", ["--no-dashboard"]),
                   (WORKER, "/tmp/worker", ["--nthreads", "1", "--no-dashboard"]))]
    try:
        done = one.run(PYTHON, "-c", TASK, "tcp://%s:8786" % ADDRESS, cwd="/tmp", timeout=700)
    finally:
        for each in running:
            one.kill(each)
    assert done.rc == 0, (done, [one.wait(each) for each in running])
    value, where, parent = done.stdout.splitlines()
    assert value == "4950"
    # both on the address of ib0, and the worker's process is the forkserver's child
    assert all(re.fullmatch(r"tcp://%s:\d+" % re.escape(ADDRESS), a) for a in where.split())
    assert len(where.split()) == 2
    assert "multiprocessing.forkserver" in parent


# ---- the launcher ----

@pytest.fixture
def launch(node):
    """launch(INI, CONF, COMMAND...) runs the launcher with programs that only tell how they
    were called; {name: options of its help}."""
    def start(ini, conf, programs, *argv, env=None, user="alice", lives=":", term_when=None):
        one = node(ini)
        one.write(CONF, "[dask]\nenabled = yes\nprefix = /tmp/env\n" + conf)
        one.json("apply", "--ip", IP, *QUICK)
        for name, options in programs.items():
            path = "/tmp/env/bin/" + name.split()[0]
            before = one.read(path) or b"#!/bin/sh\n"
            words = name.split()[1:]
            one.write(path, before.decode() + """case "$*" in "%s"*)
case "$*" in *--help*) echo "usage %s" ;; *)
echo "%s $*${CUDA_VISIBLE_DEVICES:+ $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES $UCX_NET_DEVICES}"
%s ;; esac
exit ;; esac
""" % (" ".join(words), options, name.split()[0], lives))
            one.text("chmod", "755", path)
        variables = environment((one.read("/etc/nodeprep/ucx.env") or b"").decode())
        variables.update(environment(one.read(DASK_ENV).decode()))
        # not Debian's own Dask
        variables["PATH"] = variables["PATH"].replace(ENV["PATH"], "/tmp/tools")
        one.text("mkdir", "-p", "/tmp/tools")
        for tool in ("sh", "id", "sleep"):
            one.text("ln", "-sf", shutil.which(tool), "/tmp/tools/" + tool)
        how = {"only_env": dict(variables, **(env or {})), "user": user}
        if term_when:
            done = one.kill_when(term_when, signal.SIGTERM, LAUNCHER, *argv, **how)
        else:
            done = one.run(LAUNCHER, *argv, **how)
        done.left = one.run("pgrep", "-x", "sleep").stdout
        return done
    return start


NEW = "--multiprocessing-method TEXT"
HEAD = "scheduler_address = 10.0.0.7\n"


@pytest.mark.parametrize("ini, programs, argv, said", [
    ("guide.ini", {"dask scheduler": "x", "dask-scheduler": "x"}, ["scheduler"],
     "dask scheduler --protocol ucx --interface ib0 --port 8786"),
    ("guide.ini", {"dask-scheduler": "x"}, ["scheduler", "--no-dashboard"],
     "dask-scheduler --protocol ucx --interface ib0 --port 8786 --no-dashboard"),
    ("dgx.ini", {"dask cuda worker": NEW, "dask-cuda-worker": NEW, "dask worker": "x"},
     ["worker"], "dask cuda worker ucx://10.0.0.7:8786 --interface ib0"
                 " --multiprocessing-method forkserver"),
    ("dgx.ini", {"dask worker": "x", "dask-cuda-worker": NEW}, ["worker"],
     "dask-cuda-worker ucx://10.0.0.7:8786 --interface ib0 --multiprocessing-method forkserver"),
    ("dgx.ini", {"dask-cuda-worker": "--nthreads"}, ["worker"],
     "dask-cuda-worker ucx://10.0.0.7:8786 --interface ib0"),
    ("guide.ini", {"dask worker": "x", "dask-cuda-worker": NEW}, ["worker", "--nthreads", "2"],
     "dask worker ucx://10.0.0.7:8786 --interface ib0 --nthreads 2"),
    ("guide.ini", {"dask-worker": "x"}, ["worker"],
     "dask-worker ucx://10.0.0.7:8786 --interface ib0"),
])
def test_spellings_of_the_commands(launch, ini, programs, argv, said):
    done = launch(ini, HEAD + ("interface = ib0\n" if ini == "guide.ini" else ""), programs, *argv)
    interface = re.search(r"--interface (\S+)", done.stdout)
    assert interface, done
    assert done.rc == 0 and done.stdout.strip() == said.replace(
        "--interface ib0", "--interface " + interface.group(1))


@pytest.mark.parametrize("ini, conf, argv, why", [
    ("guide.ini", "", ["worker"], "[dask] scheduler_address"),
    ("guide.ini", HEAD, ["scheduler"], "[dask] prefix"),
    ("guide.ini", HEAD, ["worker"], "[dask] prefix"),
    ("dgx.ini", HEAD, ["worker"], "Dask-CUDA"),
    ("guide.ini", HEAD, ["both"], '"both"'),
    ("guide.ini", HEAD, [], '""'),
])
def test_what_the_launcher_refuses(launch, ini, conf, argv, why):
    done = launch(ini, conf, {}, *argv)
    # 78: RestartPreventExitStatus= of the units
    assert done.rc == 78 and why in done.stderr and done.stdout == ""
    assert service(SCHEDULER, "RestartPreventExitStatus") == ["78"]
    assert service(WORKER, "RestartPreventExitStatus") == ["78"]


def test_the_launcher_without_its_file(guide):
    done = guide.run(LAUNCHER, "scheduler", user="alice")
    assert done.rc == 78 and "[dask] enabled = yes" in done.stderr


def test_never_as_root(launch):
    """Whatever stands behind the @: 0 would be root."""
    done = launch("guide.ini", HEAD, {"dask worker": "x"}, "worker", user="root")
    assert done.rc == 78 and "not as root" in done.stderr and done.stdout == ""


# ---- a worker for each GPU ----

def test_a_worker_for_each_gpu(node):
    one = node("dgx.ini")
    one.write(CONF, "[dask]\nenabled = yes\nper_gpu = yes\n" + HEAD)
    one.json("apply", "--ip", IP, *QUICK)
    values = environment(one.read(DASK_ENV).decode())
    shown = one.json("show", "topology").doc["show"]["topology"]
    gpus = [d for d in shown if d["kind"] == "gpu"]
    assert len(gpus) > 1 and values["NODEPREP_DASK_GPUS"] == str(len(gpus))
    near = [values["NODEPREP_DASK_NET_DEVICES_%d" % n] for n in range(len(gpus))]
    assert near == [gpu["ucx_net_devices"] for gpu in gpus] and len(set(near)) > 1
    assert values["NODEPREP_DASK_NET_DEVICES"] == \
        environment(one.read("/etc/nodeprep/ucx.env").decode())["UCX_NET_DEVICES"]
    # what somebody has listed stays, and UCX may choose itself
    for ucx in ("net_devices = mlx5_0:1", "profile = auto", "profile = off"):
        one.write(CONF, "[ucx]\n%s\n[dask]\nenabled = yes\nper_gpu = yes\n" % ucx + HEAD)
        one.json("apply", "--ip", IP, *QUICK)
        values = environment(one.read(DASK_ENV).decode())
        assert values["NODEPREP_DASK_GPUS"] == str(len(gpus))
        assert not any(name.startswith("NODEPREP_DASK_NET_DEVICES_") for name in values)


def test_no_management_hca_in_a_list(node):
    one = node("c36-nvswitch.ini")
    one.write(CONF, "[dask]\nenabled = yes\nper_gpu = yes\n" + HEAD)
    one.json("apply", "--ip", IP, *QUICK)
    values = environment(one.read(DASK_ENV).decode())
    managers = {p["ca"] for p in one.json("show", "ports").doc["show"]["ports"]} - \
        {d["device"] for d in one.json("show", "topology").doc["show"]["topology"]}
    lists = [value for name, value in values.items() if "NET_DEVICES" in name]
    assert managers and len(lists) > 1
    assert not any(name + ":" in text for name in managers for text in lists)


@pytest.mark.parametrize("own", [None, "mlx5_7:1"])
def test_the_launcher_starts_each(launch, own):
    env = {"UCX_NET_DEVICES": own} if own else {}
    done = launch("dgx.ini", "per_gpu = yes\n" + HEAD, {"dask cuda worker": NEW}, "worker", env=env)
    # they have ended, which ends the unit, for Restart= to start them again
    assert done.rc == 1, done
    got = sorted(line.split() for line in done.stdout.splitlines())
    assert [words[-2] for words in got] == [str(n) for n in range(8)]
    assert all(words[:4] == ["dask", "cuda", "worker", "ucx://10.0.0.7:8786"] and
               words[-3] == "PCI_BUS_ID" for words in got)
    devices = [words[-1] for words in got]
    assert devices == [own] * 8 if own else len(set(devices)) == 8
    assert own or all(re.fullmatch(r"mlx5_\d+:1,ib\w+", text) for text in devices), devices


SLEEP = '[ "$(/usr/bin/pgrep -c -x sleep)" = %d ]'


@pytest.mark.parametrize("lives, term_when, rc", [
    # the one is not ended by another before it has said its line
    ('[ "$CUDA_VISIBLE_DEVICES" = 3 ] || exec sleep 1000; until %s; do :; done' % SLEEP % 7, None, 1),
    ("exec sleep 1000", SLEEP % 8, 143)])
def test_the_launcher_ends_each(launch, lives, term_when, rc):
    """One that ends takes the others along, and so does SIGTERM to the launcher alone."""
    done = launch("dgx.ini", "per_gpu = yes\n" + HEAD, {"dask cuda worker": NEW}, "worker",
                  lives=lives, term_when=term_when)
    assert done.rc == rc and done.left == "", (done, done.left)
    assert len(done.stdout.splitlines()) == 8


# ---- the units ----

@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    where = tmp_path_factory.mktemp("install")
    subprocess.run(["make", "-s", "-C", ROOT, "install", "BUILD=" + os.path.relpath(BUILD, ROOT),
                    "DESTDIR=%s" % where], check=True, stdout=subprocess.DEVNULL,
                   env={"PATH": ENV["PATH"]}, timeout=300)
    return where


def test_units_are_installed_and_not_enabled(installed):
    folder = installed / "usr/lib/systemd/system"
    assert sorted(p.name for p in folder.iterdir()) == sorted(os.listdir(SYSTEMD))
    assert os.access(installed / "usr/libexec/nodeprep/nodeprep-dask", os.X_OK)
    links = [p for p in installed.rglob("*") if p.is_symlink()]
    assert links == []


@pytest.mark.parametrize("name", [SCHEDULER, WORKER])
def test_units_say_what_dask_needs(name):
    assert service(name, "LimitMEMLOCK") == ["infinity"]
    assert {"RAPIDS_NO_INITIALIZE=1", "PTXCOMPILER_CHECK_NUMBA_CODEGEN_PATCH_NEEDED=0"} <= \
        set(service(name, "Environment"))
    # of two files the later one wins
    assert service(name, "EnvironmentFile") == ["-/etc/nodeprep/ucx.env", DASK_ENV]
    # they run code of clients
    assert service(name, "User") == ["%i"] or service(name, "DynamicUser") == ["yes"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_understands_the_units(installed, tmp_path):
    for name in (SCHEDULER, WORKER):
        text = (installed / "usr/lib/systemd/system" / name).read_text()
        (tmp_path / name).write_text(text.replace("/usr/libexec", "%s/usr/libexec" % installed))
    for name in (SCHEDULER, WORKER.replace("@", "@root")):
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(tmp_path / name)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)
        # an unknown key is said, and is no failure for systemd
        assert done.returncode == 0
        assert [line for line in done.stdout.splitlines() if "nodeprep-dask" in line] == []


# ---- NVLink ----

def switches_with_nvml(one, fake, conf=""):
    install_nvml(one, fake)
    one.write(CONF, "[dask]\nenabled = yes\n" + conf)
    one.json("apply", "--ip", IP, *QUICK)
    both = yaml.safe_load(one.read(YAML))
    assert both["distributed-ucxx"] == both["distributed"]["comm"]["ucx"]
    return both["distributed-ucxx"]


def test_nvlink_where_nvml_says_so(node):
    one = node("dgx.ini")
    assert switches_with_nvml(one, "active=18")["nvlink"] is True
    # and again: what is right is left
    again = one.json("apply", "--ip", IP, *QUICK).doc["actions"]
    assert [a for a in again if a["target"] in (YAML, DASK_ENV)] == []
    assert switches_with_nvml(one, "active=0")["nvlink"] is False
    # nobody knows: nothing is said
    assert "nvlink" not in switches_with_nvml(one, "state=999")
    assert "nvlink" not in switches_with_nvml(one, "init=9")
    assert "nvlink" not in switches_with_nvml(one, None)
    # the admin knows
    assert switches_with_nvml(one, None, "nvlink = yes\n")["nvlink"] is True
    assert switches_with_nvml(one, "active=18", "nvlink = no\n")["nvlink"] is False


# ---- what is installed ----

@pytest.mark.parametrize("packages, protocol, code, said", [
    (["distributed-2026.7.1", "distributed_ucxx_cu13-0.52.0"], "ucx", "dask.key_not_read",
     "0.52.0 in /tmp/env/lib/python3.12/site-packages never reads "
     "distributed-ucxx.connect-timeout, distributed.comm.ucx.connect-timeout;"),
    (["distributed-2025.7.0", "ucx_py-0.44.0"], "ucx", "dask.key_not_read", "distributed-ucxx.*"),
    (["distributed-2025.9.0"], "ucx", "dask.no_ucx", "2025.9.0"),
    (["distributed-2025.9.0"], "tcp", None, None),
    ([], "tcp", "dask.not_found", "no Dask")])
def test_what_the_installed_dask_makes_of_it(node, packages, protocol, code, said):
    one = node("guide.ini")
    for name in packages:
        one.text("mkdir", "-p", "/tmp/env/lib/python3.12/site-packages/%s.dist-info" % name)
    one.write(CONF, "[dask]\nenabled = yes\nconnect_timeout = 60\nprefix = /tmp/env\n"
                    "protocol = %s\n" % protocol)
    done = one.apply()
    found = done.checks(id="dask")
    assert [check["code"] for check in found] == ([code] if code else [])
    assert not code or said in found[0]["message"]
