# SPDX-License-Identifier: MIT
"""nodeprep-selftest by itself: what it moves, what it says, what it ignores."""

import json
import os
import shutil
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
BUILD = os.path.join(ROOT, BUILD)
PROGRAM = os.path.join(BUILD, "nodeprep-selftest")
HOOKED = os.path.join(BUILD, "asan", "nodeprep-selftest")
SIMNODE = os.path.join(ROOT, "tests", "sim", "simnode")
GUIDE = os.path.join(ROOT, "tests", "sim", "nodes", "guide.ini")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

# A network namespace of its own with an address, and the sysfs that goes with it.
NETNS = ("mount -t sysfs sysfs /sys && ip link set lo up && "
         "ip link add va type veth peer name vb && ip link set vb up && "
         "ip link set va up && ip addr add 10.9.0.1/24 dev va && "
         "for i in $(seq 100); do ip -o link show va | grep -q 'state UP' && break; sleep 0.02; done && ")


def run(*argv, env=None, cwd="/"):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=600, env=env, cwd=cwd, stdin=subprocess.DEVNULL, check=False)


def in_netns(command, set_up=NETNS, env=None, cwd="/"):
    return run("unshare", "-nm", "sh", "-c", set_up + command, env=env, cwd=cwd)


def entries(done, status):
    """The rungs of the one document on stdout."""
    assert done.stdout.count("\n") == 1, done
    document = json.loads(done.stdout)
    assert list(document)[0] == "schema" and document["schema"] == 1
    assert document["verb"] == "selftest" and document["changed"] is False
    assert document["actions"] == [] and document["checks"] == []
    assert document["ready"] is (status == "ok")
    assert done.returncode == (0 if status == "ok" else 1)
    for entry in document["selftest"]:
        assert set(entry) == {"rung", "device", "transport", "status", "code", "message", "hint",
                              "size_bytes", "latency_us", "bandwidth_MBps", "sizes"}
        assert entry["status"] == status, done
        assert entry["message"] and "\n" not in entry["message"]
        assert (entry["code"] == "") is (status == "ok")
        assert (entry["hint"] == "") is (status == "ok")
    assert document["selftest"]
    return document["selftest"]


def tcp(options="--netdev va --address 10.9.0.1", **how):
    return in_netns("exec %s tcp %s" % (PROGRAM, options), **how)


def good_tcp(done):
    entry, = entries(done, "ok")
    assert entry["transport"] == "tcp/va" and entry["device"] == "va"
    assert "not the wire" in entry["message"]
    sizes = entry["sizes"]
    assert entry["size_bytes"] == sizes[-1]["size_bytes"]
    assert entry["latency_us"] == sizes[0]["latency_us"] > 0
    assert entry["bandwidth_MBps"] == sizes[-1]["bandwidth_MBps"] > 0
    return [size["size_bytes"] for size in sizes]


# The command line.

@pytest.mark.parametrize("argv, said", [
    (["tpc", "--list"], 'unknown rung "tpc"'),
    (["tcp", "--netdve", "ib0"], "did you mean --netdev?"),
    (["--devise=x", "rc"], "did you mean --device?"),
    ([], "--list"),
    (["rc", "tcp"], "one rung"),
    (["tcp", "--timeout-ms", "-1"], "--timeout-ms"),
    (["rc", "--device", "mlx5_0:x"], "mlx5_0:x"),
    (["tcp", "--netdev", "lo", "--address", "10.0.0"], "10.0.0"),
    (["rc", "--env", "1=2"], "--env"),
    (["verbs", "--peer", "mlx5_1:0"], "mlx5_1:0"),
    (["verbs", "--gid-index", "256"], "--gid-index"),
])
def test_usage(argv, said):
    done = run(PROGRAM, *argv)
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_list_help_version():
    done = run(PROGRAM, "--list")
    assert [line.split()[0] for line in done.stdout.splitlines()][:4] == [
        "umad", "verbs", "rc", "tcp"]
    assert run(PROGRAM, "--help").stdout.startswith("usage: ")
    assert run(PROGRAM, "--version").stdout.startswith("nodeprep-selftest ")


# tcp.

@as_root
def test_tcp_quick():
    assert good_tcp(tcp()) == [8, 4096, 65536, 1048576, 8388608]


@as_root
def test_tcp_full():
    assert good_tcp(tcp("--netdev va --full")) == [4 ** n for n in range(14)]


@as_root
def test_tcp_unprivileged_with_little_memlock():
    done = in_netns("ulimit -l 64; exec setpriv --reuid 65534 --regid 65534 --clear-groups "
                    "--no-new-privs /proc/self/fd/9 tcp --netdev va 9<" + PROGRAM)
    good_tcp(done)


@as_root
def test_tcp_ignores_ucx_settings(tmp_path):
    """Environment and ucx.conf of the caller, and a log that UCX would put on stdout."""
    (tmp_path / "ucx.conf").write_text("UCX_TLS=self\nUCX_LOG_LEVEL=info\n")
    env = dict(os.environ, HOME=str(tmp_path), UCX_TLS="self", UCX_NET_DEVICES="lo",
               UCX_LOG_LEVEL="info", UCX_NO_SUCH="1", UCX_LOG_FILE=str(tmp_path / "log"))
    done = tcp(env=env, cwd=str(tmp_path))
    good_tcp(done)
    assert done.stderr == ""
    assert os.listdir(tmp_path) == ["ucx.conf"]


@as_root
def test_tcp_env_option():
    done = tcp("--netdev va --env UCX_LOG_LEVEL=info --env UCX_TLS=self")
    good_tcp(done)
    assert "ucx: INFO" in done.stderr
    assert "UCX_TLS has no effect" in done.stderr


@as_root
@pytest.mark.parametrize("options, set_up, status, code", [
    ("", NETNS, "skip", "selftest.tcp.no_address"),
    ("--netdev vb", NETNS, "skip", "selftest.tcp.no_address"),
    ("--netdev ib7", NETNS, "fail", "selftest.tcp.no_netdev"),
    ("--netdev vb --address 10.9.0.1", NETNS, "fail", "selftest.tcp.address_missing"),
    ("--netdev va", NETNS + "ip link set va down && ", "fail", "selftest.tcp.netdev_down"),
    ("--netdev va", NETNS + "ip link set vb down && ", "fail", "selftest.tcp.no_carrier"),
    ("--netdev va", NETNS + "ip link set lo down && ", "fail", "selftest.tcp.lo_down"),
    ("--netdev va", NETNS.replace("mount -t sysfs sysfs /sys && ", ""), "fail",
     "selftest.tcp.no_sysfs"),
])
def test_tcp_first_broken_thing(options, set_up, status, code):
    entry, = entries(tcp(options, set_up=set_up), status)
    assert entry["code"] == code
    assert entry["sizes"] == [] and entry["latency_us"] is None and entry["transport"] == ""


@as_root
def test_deadline():
    """Too little time is a failed rung, at once, with one document."""
    entry, = entries(tcp("--netdev va --full --timeout-ms 150"), "fail")
    assert entry["code"] == "selftest.timeout"


# A corrupted byte must be seen.

@as_root
@pytest.mark.parametrize("nth", [1, 2, 405, 600, 1500])
def test_corruption_is_seen(nth):
    if not os.path.exists(HOOKED):
        pytest.skip("no build with test hooks: make asan")
    done = in_netns("NP_TEST_CORRUPT=%d exec %s tcp --netdev va" % (nth, HOOKED))
    entry, = entries(done, "fail")
    assert entry["code"] == "selftest.data_corrupt"
    assert "message %d " % nth in entry["message"] and "offset" in entry["message"]
    assert entry["transport"] == "tcp/va"


@as_root
def test_no_hook_in_production():
    with open(PROGRAM, "rb") as program:
        assert b"NP_TEST_CORRUPT" not in program.read()
    good_tcp(in_netns("NP_TEST_CORRUPT=1 exec %s tcp --netdev va" % PROGRAM))


# rc where no bytes can move.

def sim(command):
    return run(SIMNODE, GUIDE, "--", "sh", "-c", command, cwd=ROOT)


def where_the_node_sees_it(tmp_path_factory):
    """The simulated node hides /tmp: only a program below the checkout is seen."""
    del tmp_path_factory
    if os.path.commonpath([ROOT, PROGRAM]) == ROOT:
        return PROGRAM
    copy = os.path.join(ROOT, "build", "selftest-copy")
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    return shutil.copy(PROGRAM, copy)


def test_simulated_node_rc(tmp_path_factory):
    done = sim("%s rc" % where_the_node_sees_it(tmp_path_factory))
    found = entries(done, "fail")
    assert [entry["device"] for entry in found] == ["mlx5_%d:1" % n for n in range(4)]
    for entry in found:
        assert entry["code"] in ("selftest.rc.uverbs_open", "selftest.rc.no_uverbs")
        assert "rc has no data path here" in entry["message"]


def test_simulated_node_verbs(tmp_path_factory):
    program = where_the_node_sees_it(tmp_path_factory)
    found = entries(sim("%s verbs" % program), "fail")
    assert [entry["device"] for entry in found] == ["mlx5_%d:1" % n for n in range(4)]
    assert {entry["code"] for entry in found} == {"selftest.verbs.uverbs_open"}
    entry, = entries(sim("rm /dev/infiniband/uverbs0; exec %s verbs --device mlx5_0" % program),
                     "fail")
    assert entry["code"] == "selftest.verbs.no_uverbs"
    entry, = entries(sim("exec %s verbs --device mlx5_0 --peer mlx5_9" % program), "fail")
    assert entry["code"] == "selftest.verbs.no_peer"


@as_root
def test_simulated_node_verbs_as_a_user(tmp_path_factory):
    done = sim("chmod 0600 /dev/infiniband/uverbs0; exec setpriv --reuid 1000 --regid 1000 "
               "--clear-groups %s verbs --device mlx5_0"
               % where_the_node_sees_it(tmp_path_factory))
    entry, = entries(done, "fail")
    assert entry["code"] == "selftest.verbs.permission"


def test_simulated_node_tcp(tmp_path_factory):
    done = sim("ip addr add 10.0.0.50/24 dev ib0; ip link set ib0 up; "
               "exec %s tcp --netdev ib0 --address 10.0.0.50/24"
               % where_the_node_sees_it(tmp_path_factory))
    entry, = entries(done, "ok")
    assert entry["transport"] == "tcp/ib0"


def test_rc_no_such_port():
    entry, = entries(run(PROGRAM, "rc", "--device", "mlx9_7:2"), "fail")
    assert entry["code"] == "selftest.rc.no_device" and entry["device"] == "mlx9_7:2"
