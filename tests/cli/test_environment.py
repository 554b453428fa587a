# SPDX-License-Identifier: MIT
"""A hostile or broken environment changes nothing about the result."""

import re
import subprocess

import pytest
from helpers import ENV, FILES, IP, NODEPREP, PLAIN, QUICK, Node, need_node

HOSTILE = {
    "LD_*": {"LD_LIBRARY_PATH": "/home/alice/lib:/nowhere", "LD_BIND_NOW": "1", "LD_DEBUG_OUTPUT": "/etc/ld"},
    "UCX_*": {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "eth0", "UCX_LOG_LEVEL": "data",
              "UCX_CONFIG_DIR": "/home/alice", "UCX_LOG_FILE": "/etc/ucx.log"},
    "NCCL_*": {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_HCA": "mlx5_3", "NCCL_DEBUG": "TRACE",
               "NCCL_CONF_FILE": "/home/alice/nccl.conf", "NCCL_DEBUG_FILE": "/etc/nccl.log"},
    "HOME": {"HOME": "/home/alice"},
    "no HOME": {"HOME": None},
    "relative HOME": {"HOME": "../../etc"},
    "TMPDIR": {"TMPDIR": "/nowhere", "TMP": "/etc", "TEMP": "/etc"},
    "IFS": {"IFS": "/0.", "ENV": "/home/alice/rc", "BASH_ENV": "/home/alice/rc"},
    "PATH": {"PATH": ""},
    "no PATH": {"PATH": None},
    "hostile PATH": {"PATH": "/home/alice:."},
    "locale": {"LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE", "LANGUAGE": "de", "TZ": "../../etc/shadow"},
    "locale's files": {"LOCPATH": "/home/alice", "GCONV_PATH": "/home/alice",
                       "NLSPATH": "/home/alice/%N", "LC_ALL": "xx_XX.EVIL"},
    "name service": {"RES_OPTIONS": "attempts:9 timeout:30", "LOCALDOMAIN": "evil.example",
                     "HOSTALIASES": "/home/alice/aliases", "NIS_PATH": "/home/alice",
                     "NIS_GROUP": "alice", "RESOLV_HOST_CONF": "/home/alice/rc"},
    "modules": {"MODPROBE_OPTIONS": "-n --dirname=/home/alice", "KMOD_LOG": "debug"},
    "malloc": {"MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.check=3",
               "MALLOC_CHECK_": "3", "MALLOC_TRACE": "/etc/mtrace", "MALLOC_ARENA_MAX": "1"},
    # no memory at all, were it heeded
    "malloc's room": {"MALLOC_TOP_PAD_": "999999999999999", "MALLOC_MMAP_MAX_": "0",
                      "MALLOC_MMAP_THRESHOLD_": "999999999999"},
    "netlink": {"NLDBG": "5", "NLCB": "debug"},
    "systemd": {"NOTIFY_SOCKET": "/home/alice/notify", "JOURNAL_STREAM": "1:1",
                "SYSTEMD_LOG_LEVEL": "debug", "INVOCATION_ID": "evil",
                "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/home/alice/bus"},
    "PWD": {"PWD": "/etc", "OLDPWD": "/etc", "XDG_CONFIG_HOME": "/home/alice",
            "XDG_RUNTIME_DIR": "/home/alice"},
    "libraries": {"IBV_FORK_SAFE": "1", "RDMAV_HUGEPAGES_SAFE": "1", "RDMAV_FORK_SAFE": "1",
                  "IBV_DRIVERS": "/home/alice/evil", "IBV_CONFIG_DIR": "/home/alice",
                  "JANSSON_INDENT": "1", "MLX5_SINGLE_THREADED": "1"},
    "user": {"USER": "alice", "LOGNAME": "alice", "SUDO_UID": "1000", "SUDO_GID": "1000"},
    "many": {"X%d" % n: "y" * 900 for n in range(100)},
}
TRAPS = """
mkdir -p /home/alice
for name in ip ibstat modprobe nodeprep-selftest sh; do
    printf '#!/bin/sh\\ntouch /home/alice/ran\\n' >/home/alice/$name
    chmod 755 /home/alice/$name
done
echo UCX_TLS=tcp >/home/alice/ucx.conf
for name in libnl-3.so.200 libjansson.so.4 libkmod.so.2 libibumad.so.3 libucp.so.0; do
    echo 'no library' >/home/alice/$name
done
echo 'node01 evil.example' >/home/alice/aliases
echo 'touch /home/alice/ran' >/home/alice/rc
"""


# Read by the dynamic linker, before anything of ours can drop it. It breaks what nodeprep asks
# of the C library; a run that is started anew without it does not notice.
LIAR = """
#include <errno.h>
#include <pwd.h>
#include <unistd.h>
int getpwnam_r(const char *name, struct passwd *p, char *b, size_t n, struct passwd **out)
{ *out = 0; return 0; }
uid_t geteuid(void) { return 1000; }
int access(const char *path, int mode) { errno = ENOENT; return -1; }
int fsync(int fd) { errno = EIO; return -1; }
unsigned int la_version(unsigned int version) { return version; }
"""


@pytest.fixture(scope="module")
def liar(tmp_path_factory):
    library = tmp_path_factory.mktemp("liar") / "liar.so"
    done = subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", str(library), "-x", "c", "-"],
                          input=LIAR, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return library.read_bytes()


@pytest.fixture(scope="module")
def wanted():
    """What a clean environment gives: the document and the files."""
    need_node()
    one = Node("guide.ini")
    done = one.apply(rc=0)
    files = {path: one.read(path) for path in FILES}
    one.close()
    return done.doc, files, done.raw


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_the_same_result(node, wanted, name):
    one = node("guide.ini")
    one.shell(TRAPS)
    env = {key: value for key, value in dict(ENV, **HOSTILE[name]).items() if value is not None}
    before = set(one.tree("/etc", "/home", "/tmp"))
    done = one.run(NODEPREP, "apply", "--json", "--ip", IP, *QUICK, only_env=env,
                   cwd="/home/alice")
    assert (done.rc, done.stderr) == (0, ""), done
    assert done.doc == wanted[0] and done.raw == wanted[2]
    assert {path: one.read(path) for path in FILES} == wanted[1]
    new = set(one.tree("/etc", "/home", "/tmp")) - before
    assert new - {"/etc/nodeprep", "/etc/profile.d"} == set(FILES) - {"/root/.nccl.conf"}


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_AUDIT"])
def test_the_dynamic_linker_is_told_nothing(node, wanted, liar, name):
    """The program without sanitizer, which wants to be the first library itself."""
    one = node("guide.ini")
    one.write("/home/alice/liar.so", liar)
    env = dict(ENV, **{name: "/home/alice/liar.so"})
    if name == "LD_PRELOAD":
        # it does lie
        assert one.run("id", "-u", only_env=env).stdout.strip() == "1000"
    done = one.run(PLAIN, "apply", "--json", "--ip", IP, *QUICK, only_env=env, cwd="/home/alice")
    assert (done.rc, done.stderr) == (0, ""), done
    assert done.raw == wanted[2]
    assert {path: one.read(path) for path in FILES} == wanted[1]


def test_memory_is_not_the_callers_to_give(node, wanted):
    """The program without sanitizer: that has a malloc of its own."""
    one = node("guide.ini")
    done = one.run(PLAIN, "apply", "--json", "--ip", IP, *QUICK,
                   only_env=dict(ENV, **HOSTILE["malloc's room"]))
    assert (done.rc, done.stderr) == (0, ""), done
    assert done.raw == wanted[2]


def test_out_of_memory_is_no_error_of_usage(guide):
    """An ordinary user's environment is the user's own."""
    done = guide.run(PLAIN, "plan", "--ip", IP, user="alice",
                     only_env=dict(ENV, **HOSTILE["malloc's room"]))
    assert done.rc == 5 and "out of memory" in done.stderr, done


def test_started_by_the_dynamic_linker(guide):
    """It is /proc/self/exe then, and would run what is called like the verb."""
    linker, = re.findall(r"interpreter: (\S+)]", guide.text("readelf", "-lW", PLAIN))
    done = guide.run(linker, PLAIN, "--version", env={"LD_LIBRARY_PATH": "/nowhere"})
    assert done.rc == 0 and done.stdout.startswith("nodeprep "), done


def test_root_starts_anew_once(guide):
    """And only where that is needed: it costs a start."""
    for env, starts in (({}, 1), ({"LD_BIND_NOW": "1"}, 2), ({"NLDBG": "1"}, 2),
                        ({"MALLOC_ARENA_MAX": "1"}, 2)):
        done = guide.run("strace", "-qq", "-o", "/tmp/starts", "-e", "trace=execve", "-E",
                         "X=1", *[a for k, v in env.items() for a in ("-E", k + "=" + v)],
                         PLAIN, "show", "netdevs")
        assert done.rc == 0, done
        lines = guide.text("cat", "/tmp/starts").splitlines()
        assert len([line for line in lines if line.startswith("execve(")]) == starts, lines


@pytest.mark.parametrize("redirect", ["0<&-", "2>&-", "0<&- 2>&-"])
def test_closed_descriptors(node, wanted, redirect):
    one = node("guide.ini")
    done = one.run("sh", "-c", 'exec "$0" "$@" %s' % redirect, NODEPREP, "apply", "--json",
                   "--ip", IP, *QUICK)
    assert (done.rc, done.stderr) == (0, ""), done
    assert done.doc == wanted[0]
    assert {path: one.read(path) for path in FILES} == wanted[1]


@pytest.mark.parametrize("redirect", [">&-", "0<&- >&- 2>&-"])
def test_closed_stdout(node, wanted, redirect):
    """Nothing of the report may land in a file that took the descriptor's number."""
    one = node("guide.ini")
    done = one.run("sh", "-c", 'exec "$0" "$@" %s' % redirect, NODEPREP, "apply", "--json",
                   "--ip", IP, *QUICK)
    assert done.stdout == ""
    assert {path: one.read(path) for path in FILES} == wanted[1]
    assert one.json("check", "--ip", IP, rc=0).doc["ready"] is True


def test_the_working_directory_is_gone(node, wanted):
    one = node("guide.ini")
    done = one.run("sh", "-c", 'mkdir /tmp/d; cd /tmp/d; rmdir /tmp/d; exec "$0" "$@"', NODEPREP,
                   "apply", "--json", "--ip", IP, *QUICK)
    assert (done.rc, done.stderr) == (0, ""), done
    assert done.doc == wanted[0]


@pytest.mark.parametrize("limit", ["ulimit -n 32", "ulimit -c 0", "ulimit -s 512", "umask 0777",
                                   "umask 0", "trap '' HUP TERM CHLD PIPE", "nice -n 19 true"])
def test_limits_of_the_caller(node, wanted, limit):
    one = node("guide.ini")
    done = one.run("bash", "-c", limit + '; exec "$0" "$@"', NODEPREP, "apply", "--json",
                   "--ip", IP, *QUICK)
    assert (done.rc, done.stderr) == (0, ""), done
    assert done.doc == wanted[0]
    for path, facts in one.tree(*FILES).items():
        assert facts[1] == 0o644, path


def test_a_selftest_in_a_hostile_environment(node):
    """The rungs get an environment of their own, and an empty directory."""
    one = node("guide.ini")
    one.shell(TRAPS)
    one.apply()
    env = dict(ENV, **HOSTILE["UCX_*"], **HOSTILE["hostile PATH"])
    done = one.run(PLAIN, "selftest", "tcp", "--json", only_env=env, cwd="/home/alice")
    assert done.rc == 0 and done.rungs("tcp")[0]["status"] == "ok"
    assert one.read("/home/alice/ran") is None and one.read("/etc/ucx.log") is None


def test_argv_without_a_name(node):
    one = node("guide.ini")
    done = one.run("bash", "-c", 'exec -a "" "$0"', NODEPREP)
    assert done.rc == 2 and done.stderr.startswith("nodeprep: no verb"), done
    done = one.run("bash", "-c", 'exec -a "-nodeprep" "$0" --version', NODEPREP)
    assert done.rc == 0 and done.stdout.startswith("nodeprep "), done
