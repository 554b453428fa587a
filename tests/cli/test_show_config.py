# SPDX-License-Identifier: MIT
"""show config --user, --unit, --pid: which value is in force, and who says so (C8, C30)."""

import json
import os
import shutil

import pytest
from helpers import IP, NODEPREP, PLAIN

CONF = "/etc/nodeprep/nodeprep.conf"
OURS = "/etc/profile.d/nodeprep-ucx.sh"
TLS = "rc,cuda_copy,cuda_ipc,tcp,sm,self"
DEVICES = "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"


def rows(node, *argv, **how):
    """{(consumer, key): row} of the consumer's part."""
    show = node.json("show", "config", *argv, rc=0, **how).doc["show"]["config"]
    return {(row["consumer"], row["key"]): row for row in show if "consumer" in row}


def source(row):
    return row["source"] and (row["source"]["file"], row["source"]["line"])


def codes(row):
    return [finding["code"] for finding in row["findings"]]


def others(row):
    return [(o["value"], o["file"], o["line"], o["state"]) for o in row["overrides"]]


@pytest.fixture(name="ready")
def fixture_ready(guide):
    guide.apply("--user", "alice")
    return guide


# ---- a login ----

def test_login_as_apply_leaves_it(ready):
    got = rows(ready, "--user", "alice")
    row = got["nccl", "NCCL_SOCKET_IFNAME"]
    assert (row["value"], source(row)) == ("ib0", ("/home/alice/.nccl.conf", 1))
    assert row["matches"] == ["ib0"] and codes(row) == []
    assert others(row) == [("ib0", "/etc/nccl.conf", 1, "overridden")]
    assert got["nccl", "NCCL_IB_HCA"]["matches"] == ["mlx5_%d:1" % n for n in range(4)]
    for consumer in ("ucx", "ucx-conda"):
        row = got[consumer, "UCX_TLS"]
        assert (row["value"], row["source"]["file"], codes(row)) == (TLS, OURS, [])
        row = got[consumer, "UCX_NET_DEVICES"]
        assert row["value"] == DEVICES and row["matches"] == DEVICES.split(",")
    assert got["limits", "memlock"]["source"]["file"].startswith("/etc/security/limits.d/")


def test_c30_another_profile_script_wins(ready):
    ready.write("/etc/profile.d/aaa.sh", "# site\nexport UCX_TLS=tcp,self\n")
    row = rows(ready, "--user", "alice")["ucx", "UCX_TLS"]
    assert (row["value"], source(row)) == ("tcp,self", ("/etc/profile.d/aaa.sh", 2))
    assert others(row) == [(TLS, OURS, 5, "skipped")]
    # one that comes later overrides
    ready.text("mv", "/etc/profile.d/aaa.sh", "/etc/profile.d/zzz.sh")
    row = rows(ready, "--user", "alice")["ucx", "UCX_TLS"]
    assert source(row) == ("/etc/profile.d/zzz.sh", 2)
    assert others(row) == [(TLS, OURS, 5, "overridden")]


def test_c30_the_sites_ucx_conf(guide):
    """Without our script: the system's UCX reads /etc/ucx, that of Conda does not."""
    guide.write(CONF, "[ucx]\nprofile = off\n")
    guide.apply()
    guide.shell("mkdir -p /etc/ucx")
    guide.write("/etc/ucx/ucx.conf", "\nUCX_TLS = rc,ud ; site\n")
    guide.write("/home/alice/ucx.conf", "UCX_LOG_LEVEL=info\n")
    guide.text("chown", "alice", "/home/alice/ucx.conf")
    got = rows(guide, "--user", "alice")
    assert source(got["ucx", "UCX_TLS"]) == ("/etc/ucx/ucx.conf", 2)
    assert got["ucx", "UCX_TLS"]["value"] == "rc,ud"
    assert got["ucx-conda", "UCX_TLS"]["value"] is None
    for consumer in ("ucx", "ucx-conda"):
        assert source(got[consumer, "UCX_LOG_LEVEL"]) == ("/home/alice/ucx.conf", 1)
    # with it the environment wins for both
    guide.write(CONF, "")
    guide.apply()
    got = rows(guide, "--user", "alice")
    assert got["ucx", "UCX_TLS"]["source"]["file"] == OURS
    assert others(got["ucx", "UCX_TLS"]) == [("rc,ud", "/etc/ucx/ucx.conf", 2, "overridden")]
    assert got["ucx-conda", "UCX_TLS"]["source"]["file"] == OURS


@pytest.mark.skipif(not shutil.which("ucx_info"), reason="no ucx_info")
def test_ucx_conf_as_ucx_reads_it(guide):
    """ucx_info -c on the same files says the same."""
    guide.write(CONF, "[ucx]\nprofile = off\n")
    guide.apply()
    guide.shell("mkdir -p /etc/ucx /tmp/dir")
    guide.write("/etc/ucx/ucx.conf", "UCX_TLS=rc\nUCX_RNDV_THRESH=1k\nUCX_ZCOPY_THRESH=1000 ; c\n")
    guide.write("/root/ucx.conf", "UCX_TLS = tcp,self\nUCX_MAX_RNDV_RAILS:1\n")
    guide.write("/etc/profile.d/a.sh", "export UCX_CONFIG_DIR=/tmp/dir\n")
    guide.write("/tmp/dir/ucx.conf", "UCX_RNDV_THRESH=2k\n; UCX_TLS=x\n")
    got = rows(guide, "--user", "root")
    done = guide.run("ucx_info", "-c", cwd="/", only_env={"HOME": "/root", "PATH": "/usr/bin",
                                                         "UCX_CONFIG_DIR": "/tmp/dir"})
    real = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    for name in ("UCX_TLS", "UCX_RNDV_THRESH", "UCX_ZCOPY_THRESH", "UCX_MAX_RNDV_RAILS"):
        ours = got["ucx", name]["value"].upper().rstrip("B")
        assert real[name].upper().rstrip("B") == ours, name
    assert source(got["ucx", "UCX_TLS"]) == ("/root/ucx.conf", 1)
    assert source(got["ucx", "UCX_RNDV_THRESH"]) == ("/tmp/dir/ucx.conf", 1)


SCRIPTS = {
    "10-plain.sh": "UCX_TLS=rc; export UCX_TLS\nexport UCX_LOG_LEVEL=\"${UCX_TLS}x\"\n",
    "20-guarded.sh": "if [ -z \"$UCX_TLS\" ]; then export UCX_TLS=no; fi\n"
                     ": ${UCX_A:=a}; export UCX_A\n[ \"$UCX_A\" = a ] && export UCX_B=b\n",
    "30-loop.sh": "for word in one two; do UCX_C=\"$UCX_C$word\"; done\nexport UCX_C\n",
    "40-function.sh": "add() {\n  export UCX_D=$1\n}\nunset UCX_B\n",
    "50-here.sh": "cat >/dev/null <<X\nexport UCX_E=1\nX\nexport UCX_F='a b'\\''c'\n",
    "60-else.sh": "if [ -d /nowhere ]; then\n  export UCX_G=1\nelif test -f /etc/profile\nthen\n"
                  "  export UCX_G=2\nelse\n  export UCX_G=3\nfi\n",
    "70-list.sh": "[ -n \"$UCX_NONE\" ] || { UCX_H=1; export UCX_H; }\n"
                  "export UCX_I=${UCX_H:+yes}${UCX_NONE-no}\nUCX_LOCAL=1\n",
    "notsh.txt": "export UCX_TXT=1\n",
}


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh"])
def test_as_the_shell_itself(guide, shell):
    """What the real login shell has in its environment, value by value."""
    path = shutil.which(shell)
    if not path:
        pytest.skip("no " + shell)
    guide.apply()
    for name, text in SCRIPTS.items():
        guide.write("/etc/profile.d/" + name, text)
    # Debian's zsh reads no profile; other systems' does like this
    guide.shell("mkdir -p /etc/zsh; echo '. /etc/profile' >/etc/zsh/zprofile")
    home = "/home/alice/" + (".zprofile" if shell == "zsh" else ".profile")
    guide.write(home, "[ -f ~/.more ] && . ~/.more\nexport UCX_J=\"$HOME\"\n")
    guide.write("/home/alice/.more", "export UCX_K=k\n")
    guide.shell("chown -R alice /home/alice; usermod -s %s alice || "
                "sed -i '/^alice:/s,[^:]*$,%s,' /etc/passwd" % (path, path))
    assert guide.text("getent", "passwd", "alice").strip().endswith(path)
    real = guide.run(path, "-lc", "env", user="alice",
                     only_env={"HOME": "/home/alice", "USER": "alice", "LOGNAME": "alice",
                               "PATH": "/usr/bin:/bin", "SHELL": path})
    assert real.rc == 0, real
    real = dict(line.split("=", 1) for line in real.stdout.splitlines() if line.startswith("UCX_"))
    got = {key: row for (consumer, key), row in rows(guide, "--user", "alice").items()
           if consumer == "ucx-conda"}
    assert {key: row["value"] for key, row in got.items() if row["value"] is not None} == real
    assert len(real) >= 11 and not any(row.get("as_written") for row in got.values())
    assert codes(got["UCX_LOCAL"]) == ["consumer.not_exported"]


def test_interactive_shells_alone(ready):
    ready.write("/home/alice/.bashrc", "case $- in\n*i*) ;;\n*) return;;\nesac\nexport UCX_TLS=all\n")
    ready.write("/home/alice/.profile", "[ -n \"$BASH_VERSION\" ] && . ~/.bashrc\n")
    ready.shell("chown alice /home/alice/.bashrc /home/alice/.profile")
    row = rows(ready, "--user", "alice")["ucx", "UCX_TLS"]
    assert row["value"] == TLS and codes(row) == ["consumer.maybe"]
    assert others(row) == [("all", "/home/alice/.bashrc", 5, "maybe")]


def test_etc_environment(ready):
    ready.write("/etc/environment", "# x\nUCX_TLS=\"rc,sm\"\n")
    row = rows(ready, "--user", "alice")["ucx", "UCX_TLS"]
    assert (row["value"], source(row)) == ("rc,sm", ("/etc/environment", 2))
    assert "ucx.no_shared_memory" in codes(row)


def test_home_that_shadows(ready):
    """nccl.shadowed in show, and as a check where nodeprep leaves homes alone."""
    ready.write("/home/alice/.nccl.conf", "NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=eth0\n")
    row = rows(ready, "--user", "alice")["nccl", "NCCL_SOCKET_IFNAME"]
    assert (row["value"], codes(row)) == ("eth0", ["nccl.shadowed"])
    assert row["matches"] == ["eth0"]
    # check: the file is about to be set right, so nothing will be shadowed
    done = ready.json("check", "--ip", IP, "--user", "alice")
    assert "nccl.shadowed" not in [c["code"] for c in done.doc["checks"]]
    ready.write(CONF, "[nccl]\nscope = system\n")
    check = ready.json("check", "--ip", IP, "--user", "alice", rc=0).check("nccl.shadowed")
    assert check["status"] == "warn" and check["target"] == "/home/alice/.nccl.conf:2"
    assert "eth0" in check["message"] and "ib0" in check["message"]
    assert "nccl.shadowed" not in [c["code"] for c in
                                   ready.json("check", "--ip", IP, rc=0).doc["checks"]]


def test_nccl_conf_file(ready):
    """It replaces the home file; the environment wins over both."""
    ready.write("/etc/profile.d/zz.sh", "export NCCL_CONF_FILE=/tmp/n.conf\nexport NCCL_DEBUG=INFO\n")
    ready.write("/tmp/n.conf", "NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=ibs22f0\n")
    got = rows(ready, "--user", "alice")
    row = got["nccl", "NCCL_SOCKET_IFNAME"]
    assert source(row) == ("/tmp/n.conf", 2)
    assert codes(row) == ["nccl.matches_nothing", "nccl.shadowed"] and row["matches"] == []
    row = got["nccl", "NCCL_DEBUG"]
    assert (row["value"], source(row)) == ("INFO", ("/etc/profile.d/zz.sh", 2))


def test_tcp_without_its_netdev(ready):
    ready.write("/etc/profile.d/a.sh", "export UCX_NET_DEVICES=mlx5_0:1,mlx5_9:1\n")
    got = rows(ready, "--user", "alice")
    assert codes(got["ucx", "UCX_TLS"]) == ["ucx.tcp_unusable"]
    assert codes(got["ucx", "UCX_NET_DEVICES"]) == ["ucx.net_device_unusable"]
    assert got["ucx", "UCX_NET_DEVICES"]["matches"] == ["mlx5_0:1"]


def test_tcp_without_its_netdev_in_the_configuration(guide):
    guide.write(CONF, "[ucx]\nnet_devices = mlx5_0:1\n")
    assert guide.apply(rc=0).check("ucx.tcp_unusable")["status"] == "warn"
    guide.write(CONF, "[ucx]\nnet_devices = mlx5_0:1,ib0\n")
    assert "ucx.tcp_unusable" not in [c["code"] for c in guide.apply(rc=0).doc["checks"]]


@pytest.mark.parametrize("name, code", [("eth7", "nccl.matches_nothing"),
                                        ("=dummy0", "nccl.no_address"), ("eth0", None),
                                        ("^eth7", None), ("=ib0", None)])
def test_c3_no_file_for_an_interface_that_is_not_here(guide, name, code):
    guide.shell("ip link add dummy0 type veth peer name dummy1")
    guide.write(CONF, "[nccl]\nsocket_ifname = %s\n" % name)
    done = guide.apply(rc=1 if code else 0)
    assert [c for c, _ in done.failed()] == ([code] if code else [])
    if code:
        assert "ib0" in done.check(code)["message"]
    assert (guide.read("/etc/nccl.conf") is None) is bool(code)
    assert (guide.read("/root/.nccl.conf") is None) is bool(code)


HARM = [("NCCL_IB_DISABLE", "1", "nccl.no_infiniband"), ("NCCL_IB_DISABLE", "0", None),
        ("NCCL_NET", "Socket", "nccl.no_infiniband"), ("NCCL_NET", "IB", None),
        ("NCCL_P2P_DISABLE", "1", "nccl.path_disabled"), ("NCCL_P2P_DISABLE", "0", None),
        ("NCCL_SHM_DISABLE", "1", "nccl.path_disabled"),
        ("NCCL_IB_GID_INDEX", "3", "nccl.gid_index"), ("NCCL_IB_GID_INDEX", "-1", None),
        ("UCX_TLS", "tcp,cuda_copy,sm,self", "ucx.no_infiniband"),
        ("UCX_TLS", "^ib", "ucx.no_infiniband"), ("UCX_TLS", "^rc", None),
        ("UCX_TLS", "\\\\rc_verbs,sm,self", None), ("UCX_TLS", "all", None),
        ("UCX_TLS", "ud:aux,tcp,sm,self", None),
        ("UCX_SOCKADDR_TLS_PRIORITY", "rdmacm", "ucx.no_sockaddr_fallback"),
        ("UCX_SOCKADDR_TLS_PRIORITY", "rdmacm,tcp", None)]


@pytest.mark.parametrize("name, value, code", HARM)
def test_harmful_here(node, name, value, code):
    """A value that is right elsewhere: named on a node with InfiniBand and GPUs alone."""
    line = "export %s=%s\n" % (name, value)
    consumer = name.split("_", maxsplit=1)[0].lower()
    one = node("dgx.ini")
    one.write("/etc/profile.d/site.sh", line)
    row = rows(one, "--user", "root")[consumer, name]
    assert codes(row) == ([code] if code else [])
    assert not code or (row["findings"][0]["status"], row["source"]["line"]) == ("warn", 1)
    other = node("guide.ini", *["--without=port mlx5_%d:1" % n for n in range(4)],
                 *["--without=ca mlx5_%d" % n for n in range(4)], "--without=netdev ib0")
    other.write("/etc/profile.d/site.sh", line)
    kept = codes(rows(other, "--user", "root")[consumer, name])
    assert kept == ([code] if code == "ucx.no_sockaddr_fallback" else [])


def test_a_unit_without_a_limit(guide):
    """C12: it has the service manager's, which limits.conf does not change."""
    guide.write(UNIT, "[Service]\nExecStart=/bin/true\n")
    row = rows(guide, "--unit", "dask-worker")["limits", "memlock"]
    assert (row["value"], row["source"], codes(row)) == (None, None, ["limits.unit_default"])
    assert "LimitMEMLOCK=infinity" in row["findings"][0]["hint"]


def test_nccl_conf_file_that_is_not_there(ready):
    """NCCL reads no other file of the user in its place."""
    ready.write("/etc/profile.d/zz.sh", "export NCCL_CONF_FILE=/tmp/none.conf\n")
    got = rows(ready, "--user", "alice")
    assert source(got["nccl", "NCCL_SOCKET_IFNAME"]) == ("/etc/nccl.conf", 1)
    note, = [row["findings"][0] for (consumer, _), row in got.items() if consumer == "note"]
    assert note["code"] == "consumer.unread" and "~/.nccl.conf" in note["message"]
    ready.shell("mkfifo /tmp/none.conf")
    note, = [row["findings"][0] for (consumer, _), row in rows(ready, "--user", "alice").items()
             if consumer == "note"]
    assert "no such file" not in note["message"]
    ready.write("/etc/profile.d/zz.sh", "export NCCL_CONF_FILE=\n")
    got = rows(ready, "--user", "alice")
    assert source(got["nccl", "NCCL_SOCKET_IFNAME"]) == ("/home/alice/.nccl.conf", 1)
    assert not [row for (consumer, _), row in got.items() if consumer == "note"]


@pytest.mark.parametrize("limit, low", [("64K", True), ("65535K", True), ("64M", False),
                                        ("8M:infinity", True), ("infinity", False),
                                        ("1G:2G", False), ("67108863", True)])
def test_a_unit_that_may_pin_too_little(guide, limit, low):
    """C12: what limits.conf says does not reach it."""
    guide.write(UNIT, "[Service]\nExecStart=/bin/true\nLimitMEMLOCK=%s\n" % limit)
    row = rows(guide, "--unit", "dask-worker")["limits", "memlock"]
    assert (row["value"], source(row)) == (limit, (UNIT, 3))
    assert codes(row) == (["limits.low_memlock"] if low else [])


def test_environment_over_dask(ready):
    ready.shell("mkdir -p /etc/dask")
    ready.write("/etc/dask/site.yaml", "distributed:\n  comm:\n    ucx:\n      tcp: true\n")
    row = rows(ready, "--user", "alice")["ucx", "UCX_TLS"]
    assert codes(row) == ["ucx.env_overrides_dask"]
    assert "/etc/dask/site.yaml:4" in row["findings"][0]["message"]
    ready.write("/etc/dask/site.yaml", "distributed:\n  worker:\n    nthreads: 1\n")
    assert codes(rows(ready, "--user", "alice")["ucx", "UCX_TLS"]) == []


@pytest.mark.parametrize("trick, word", [
    ("ln -s /etc/shadow /home/alice/.nccl.conf", "link"),
    ("mkfifo /home/alice/.nccl.conf", "FIFO"),
    ("mkfifo /home/alice/.profile", "FIFO"),
    ("mkdir /home/alice/.nccl.conf", "directory"),
    ("echo '. /home/alice/pipe' >/home/alice/.profile; mkfifo /home/alice/pipe;"
     "chown alice /home/alice/.profile /home/alice/pipe", "FIFO"),
    ("mkfifo /tmp/pipe; echo '. /tmp/pipe' >/home/alice/.profile; chown alice /home/alice/.profile",
     "regular"),
])
def test_hostile_home(guide, trick, word):
    """Nothing hangs, nothing else is read; what could not be read is said."""
    assert guide.shell(trick).rc == 0
    got = rows(guide, "--user", "alice", timeout=20)
    notes = [row["findings"][0] for (consumer, _), row in got.items() if consumer == "note"]
    assert any(word in note["message"] and note["code"] == "consumer.unread" for note in notes)
    assert "root:" not in json.dumps(list(got.values()), default=str)


# ---- a unit ----

UNIT = "/etc/systemd/system/dask-worker.service"


def test_unit(ready):
    ready.shell("mkdir -p %s.d /usr/lib/systemd 2>/dev/null; mkdir -p %s.d" % (UNIT, UNIT))
    ready.write(UNIT, "[Service]\nUser=alice\nExecStart=/bin/true\n"
                "Environment=UCX_TLS=rc \"NCCL_DEBUG=INFO\"\n"
                "EnvironmentFile=-/etc/nodeprep/ucx.env\nLimitMEMLOCK=infinity\n")
    got = rows(ready, "--unit", "dask-worker")
    row = got["ucx", "UCX_TLS"]
    assert row["section"] == "unit dask-worker.service"
    assert (row["value"], row["source"]["file"]) == (TLS, "/etc/nodeprep/ucx.env")
    assert others(row) == [("rc", UNIT, 4, "overridden")]
    assert source(got["nccl", "NCCL_DEBUG"]) == (UNIT, 4)
    # by the home of its user
    assert source(got["nccl", "NCCL_SOCKET_IFNAME"]) == ("/home/alice/.nccl.conf", 1)
    row = got["limits", "memlock"]
    assert (row["value"], source(row)) == ("infinity", (UNIT, 6))
    # a drop-in resets the file, and sets another value
    ready.write(UNIT + ".d/10-site.conf", "[Service]\nEnvironmentFile=\nEnvironment=UCX_TLS=all\n"
                "UnsetEnvironment=NCCL_DEBUG\n")
    got = rows(ready, "--unit", "dask-worker.service")
    assert source(got["ucx", "UCX_TLS"]) == (UNIT + ".d/10-site.conf", 3)
    assert got["nccl", "NCCL_DEBUG"]["value"] is None


def test_unit_template_and_faults(ready):
    ready.write("/etc/systemd/system/w@.service",
                "[Service]\nEnvironment=UCX_LOG_LEVEL=%i%x\nEnvironmentFile=/etc/none.env\n")
    got = rows(ready, "--unit", "w@warn")
    assert got["ucx", "UCX_LOG_LEVEL"]["value"] == "warn%x"
    notes = [row["findings"][0]["message"] for (c, _), row in got.items() if c == "note"]
    assert any("/etc/none.env" in note for note in notes), notes
    assert any("specifier" in note for note in notes), notes


# ---- a process ----

def test_process(ready):
    ready.shell("mkdir -p /tmp/work; echo UCX_LOG_LEVEL=debug >/tmp/work/ucx.conf")
    sleeper = ready.spawn("sleep", "600", cwd="/tmp/work", user="alice",
                          only_env={"UCX_TLS": "rc,tcp", "NCCL_SOCKET_IFNAME": "eth0",
                                    "DASK_DISTRIBUTED_UCXX__TCP": "True", "HOME": "/home/alice"})
    pid = str(sleeper[1])
    got = rows(ready, "--pid", pid)
    row = got["ucx", "UCX_TLS"]
    assert (row["value"], source(row)) == ("rc,tcp", ("/proc/%s/environ" % pid, None))
    assert codes(row) == ["ucx.no_shared_memory", "ucx.env_overrides_dask"]
    assert source(got["ucx", "UCX_LOG_LEVEL"]) == ("/tmp/work/ucx.conf", 1)
    row = got["nccl", "NCCL_SOCKET_IFNAME"]
    assert row["value"] == "eth0" and others(row) == [
        ("ib0", "/etc/nccl.conf", 1, "overridden"),
        ("ib0", "/home/alice/.nccl.conf", 1, "overridden")]
    assert got["dask", "DASK_DISTRIBUTED_UCXX__TCP"]["value"] == "True"
    soft = ready.shell("awk '/locked/ { print $4 }' /proc/%s/limits" % pid).stdout.strip()
    assert codes(got["limits", "memlock"]) == (
        ["limits.low_memlock"] if soft.isdigit() and int(soft) < 64 << 20 else [])
    assert soft == "unlimited" and "soft unlimited" in got["limits", "memlock"]["value"] or \
        soft.isdigit() and got["limits", "memlock"]["source"]["file"] == "/proc/%s/limits" % pid
    # another user may not look
    ready.shell("useradd -m bob 2>/dev/null || true")
    denied = ready.json("show", "config", "--pid", "1", rc=3, user="alice")
    assert denied.doc["error"]["code"] == "show.process_denied"
    ready.kill(sleeper)


def test_a_process_cannot_forge_a_row(guide):
    """What it has in its environment is told on one line, as what it is."""
    forged = "INFO\nnccl       NCCL_SOCKET_IFNAME  forged  /etc/nccl.conf:1\x1b[2J"
    sleeper = guide.spawn("sleep", "600", user="alice",
                          only_env={"NCCL_DEBUG": forged, "UCX_TLS": "\trc\r\n"})
    got = rows(guide, "--pid", str(sleeper[1]))
    assert got["nccl", "NCCL_DEBUG"]["value"] == forged
    text = guide.text(PLAIN, "show", "config", "--pid", str(sleeper[1]))
    line, = [line for line in text.splitlines() if "forged" in line]
    assert line.startswith("nccl       NCCL_DEBUG") and "INFO\\x0anccl" in line
    assert all(c == "\n" or c == "\t" or " " <= c <= "~" for c in text)
    assert [line.split()[:2] for line in text.splitlines() if line.startswith("ucx  ")] == [
        ["ucx", "UCX_NET_DEVICES"], ["ucx", "UCX_TLS"]]
    guide.kill(sleeper)


@pytest.mark.skipif(not shutil.which("ucx_info"), reason="no ucx_info")
def test_libraries_of_a_process(ready):
    """A program that has UCX loaded: its path and version are shown."""
    script = "import ctypes, time; ctypes.CDLL('libucp.so.0'); time.sleep(600)"
    sleeper = ready.spawn("/usr/bin/python3", "-c", script)
    ready.until("grep -q libucp /proc/%d/maps" % sleeper[1])
    got = rows(ready, "--pid", str(sleeper[1]))
    row = got["library", "libucp"]
    assert os.path.basename(row["value"]).startswith("libucp.so.0")
    assert row["version"] == os.path.basename(row["value"]).split(".so.")[1]
    ready.kill(sleeper)


# ---- faults ----

@pytest.mark.parametrize("argv, code, rc", [
    (["--user", "nobody-here"], "usage.user", 3),
    (["--unit", "no-such"], "show.no_unit", 3),
    (["--unit", "../x"], "show.no_unit", 3),
    (["--pid", "4194303"], "show.no_process", 3),
    (["--pid", "0"], "usage.value", 2), (["--pid", "1x"], "usage.value", 2),
    (["--pid", "1", "--user", "root"], "usage.value", 2),
    (["--pid", "1", "--unit", "x"], "usage.value", 2),
    (["--user", "root", "--user", "alice"], "usage.value", 2)])
def test_faults(shared_guide, argv, code, rc):
    done = shared_guide.json("show", "config", *argv, rc=rc)
    assert done.doc["error"]["code"] == code and "show" not in done.doc
    plain = shared_guide.nodeprep("show", "config", *argv)
    assert (plain.rc, plain.stdout, plain.stderr.count("\n")) == (rc, "", 1)


def test_only_for_config(shared_guide):
    done = shared_guide.json("show", "ports", "--user", "alice", rc=2)
    assert done.doc["error"]["code"] == "usage.value"
    # all nouns have config among them
    assert rows(shared_guide, "--user", "alice")


def test_text(ready):
    text = ready.nodeprep("show", "config", "--user", "alice").stdout
    lines = text.splitlines()
    assert lines[0] == "user alice" and "[ports]" not in text
    row, = [line for line in lines if line.startswith("nccl ") and "SOCKET_IFNAME" in line]
    assert row.split() == ["nccl", "NCCL_SOCKET_IFNAME", "ib0", "/home/alice/.nccl.conf:1"]
    assert not any(line.endswith(" ") for line in lines)
    assert NODEPREP and "\toverridden: ib0, /etc/nccl.conf:1" in lines
