# SPDX-License-Identifier: MIT
"""What the tests of the command line share: nodes, results, the JSON schema."""

import base64
import functools
import itertools
import json
import os
import signal
import subprocess
import tempfile

import jsonschema
import pytest

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, os.environ.get("NODEPREP_BUILD", "build"))
NODEPREP = os.path.join(BUILD, "asan", "nodeprep")
PLAIN = os.path.join(BUILD, "nodeprep")
SIMNODE = os.path.join(ROOT, "tests", "sim", "simnode")
NODES = os.path.join(ROOT, "tests", "sim", "nodes")
SCHEMA = os.path.join(ROOT, "docs", "nodeprep.schema.json")
PYTHON = "/usr/bin/python3"

IP = "10.0.0.50/24"
# nothing is waited for, no data path is tried: for tests that are about neither
QUICK = ["--timeout", "0", "--no-selftest"]
# a condition of the shell: the actions that come before what is waited for are done
ADDRESSED = "ip -4 -o addr show dev ib0 | grep -qF " + IP
PORTS = ["mlx5_0:1", "mlx5_1:1", "mlx5_2:1", "mlx5_3:1"]
FILES = ["/root/.nccl.conf", "/etc/nccl.conf", "/etc/profile.d/nodeprep-ucx.sh",
         "/etc/profile.d/nodeprep-ucx.csh", "/etc/nodeprep/ucx.env",
         "/etc/security/limits.d/nodeprep.conf"]
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C",
       "HOME": "/root", "USER": "root", "LOGNAME": "root",
       "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99",
       "UBSAN_OPTIONS": "print_stacktrace=1"}
# what nodeprep may ever change; folders are compared by name only
TOUCHABLE = ["/etc", "/root", "/home", "/var/lib/nodeprep", "/run/nodeprep"]
counter = itertools.count()


def need_node():
    """Fails without the programs, skips without root."""
    for program in (NODEPREP, PLAIN):
        assert os.access(program, os.X_OK), "no %s: run make all asan" % program
    if os.geteuid() != 0:
        pytest.skip("needs root: a node with users of its own")


@functools.lru_cache(maxsize=None)
def schema():
    """The schema of the documents, or None. test_json_schema.py fails without it."""
    if not os.path.exists(SCHEMA):
        return None
    with open(SCHEMA, encoding="utf-8") as file:
        return json.load(file)


def validate(document):
    """Every document that a test sees passes here."""
    assert next(iter(document)) == "schema" and document["schema"] == 1
    assert isinstance(document["verb"], str) and isinstance(document["version"], str)
    assert isinstance(document["changed"], bool) and isinstance(document["ready"], bool)
    for name in ("actions", "checks", "selftest"):
        assert isinstance(document[name], list), name
    if schema():
        jsonschema.validate(document, schema())


class Result:
    """A finished command. `doc` is the JSON document on stdout, valid and alone there."""

    def __init__(self, argv, answer):
        self.argv = argv
        self.rc = answer["rc"]
        self.raw = base64.b64decode(answer["out"])
        self.stdout = self.raw.decode("utf-8", "replace")
        self.stderr = base64.b64decode(answer["err"]).decode("utf-8", "replace")
        self.answer = answer
        for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
            assert word not in self.stderr, self.stderr
        self.doc = None
        if "--json" in argv and self.stdout:
            self.doc = json.loads(self.stdout)
            validate(self.doc)

    def __repr__(self):
        return "%s: rc %s\n--- stdout\n%s\n--- stderr\n%s" % (
            " ".join(map(str, self.argv))[:400], self.rc, self.stdout, self.stderr)

    @property
    def error(self):
        return self.doc["error"]

    def checks(self, **want):
        """The checks whose members are as wanted."""
        return [check for check in self.doc["checks"]
                if all(check[key] == value for key, value in want.items())]

    def check(self, code, target=None):
        found = [c for c in self.checks(code=code) if target in (None, c["target"])]
        assert len(found) == 1, "%d checks %s of %s in\n%r" % (len(found), code, target, self)
        return found[0]

    def failed(self):
        return sorted((c["code"], c["target"]) for c in self.checks(status="fail"))

    def actions(self):
        return [(a["id"], a["target"], a["to"]) for a in self.doc["actions"]]

    def statuses(self):
        return {a["status"] for a in self.doc["actions"]}

    def rungs(self, name):
        return [entry for entry in self.doc["selftest"] if entry["rung"] == name]


class Node:
    """A simulated node with a process on it that runs our commands. With a name it is
    one that `simnode set` can change."""

    def __init__(self, ini, *options, named=False):
        path = ini if os.path.isabs(ini) else os.path.join(NODES, ini)
        remote = [PYTHON, os.path.join(HERE, "helpers_remote.py")]
        self.name = "cli-%d-%d" % (os.getpid(), next(counter)) if named else None
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        if named:
            done = subprocess.run([SIMNODE, "start", *options, self.name, path], text=True,
                                  capture_output=True, check=False, timeout=300)
            assert done.returncode == 0, done.stderr
            argv = [SIMNODE, "exec", self.name, "--", *remote]
        else:
            argv = [SIMNODE, *options, path, "--", *remote]
        # pylint: disable-next=consider-using-with
        self.remote = subprocess.Popen(argv, text=True, cwd=ROOT, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, env=environment)

    def close(self):
        self.remote.stdin.close()
        try:
            self.remote.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.remote.kill()
            self.remote.wait()
        self.remote.stdout.close()
        if self.name:
            subprocess.run([SIMNODE, "stop", self.name], capture_output=True, check=False,
                           timeout=300)

    def ask(self, op, **request):
        print(json.dumps(dict(request, op=op)), file=self.remote.stdin, flush=True)
        line = self.remote.stdout.readline()
        assert line, "the node is gone"
        answer = json.loads(line)
        assert "broken" not in answer, answer["broken"]
        return answer

    def set(self, *changes):
        done = subprocess.run([SIMNODE, "set", self.name, *changes], text=True,
                              capture_output=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr

    # ---- commands ----

    @staticmethod
    def request(argv, env=None, only_env=None, user=None, timeout=300, cwd=None, stdin=b""):
        environment = dict(only_env) if only_env is not None else dict(ENV, **(env or {}))
        if user and only_env is None:
            environment.update(HOME="/home/" + user, USER=user, LOGNAME=user)
        return {"argv": [str(a) for a in argv], "env": environment, "user": user,
                "timeout": timeout, "cwd": cwd, "stdin": base64.b64encode(stdin).decode()}

    def run(self, *argv, **how):
        """Any command."""
        return Result(argv, self.ask("run", **self.request(argv, **how)))

    def shell(self, script, **how):
        return self.run("sh", "-c", script, **how)

    def text(self, *argv):
        done = self.run(*argv)
        assert done.rc == 0, done
        return done.stdout

    def nodeprep(self, *argv, **how):
        return self.run(NODEPREP, *argv, **how)

    def json(self, verb, *argv, rc=None, **how):
        """nodeprep VERB --json; the document, and the exit code where one is named."""
        done = self.run(NODEPREP, verb, "--json", *argv, **how)
        assert done.doc is not None, done
        assert rc is None or done.rc == rc, done
        return done

    def apply(self, *argv, rc=0, **how):
        return self.json("apply", "--ip", IP, *QUICK, *argv, rc=rc, **how)

    def spawn(self, *argv, **how):
        request = self.request(argv, **how)
        return argv, self.ask("spawn", **request)["pid"]

    def wait(self, spawned, timeout=300):
        argv, pid = spawned
        return Result(argv, self.ask("wait", pid=pid, timeout=timeout))

    def kill(self, spawned, number=signal.SIGTERM):
        self.ask("kill", pid=spawned[1], signal=int(number))

    def kill_when(self, condition, number, *argv, **how):
        """The signal comes when a condition of the shell holds; the command is $P in it."""
        answer = self.ask("kill_when", when=condition, signal=int(number),
                          **self.request(argv, **how))
        done = Result(argv, answer)
        assert answer["held"], "never so: %s\n%r" % (condition, done)
        return done

    def kill_after(self, after, number, *argv, **how):
        return Result(argv, self.ask("kill_after", after=after, signal=int(number),
                                     **self.request(argv, **how)))

    def until(self, condition, timeout=300):
        """Waits for a condition of the shell; machines may be slow."""
        done = self.shell("until %s; do sleep 0.02; done" % condition, timeout=timeout)
        assert done.rc == 0, "never so: %s\n%r" % (condition, done)

    # ---- what is on the node ----

    def read(self, path):
        """Bytes, or None where there is no such file."""
        data = self.ask("read", path=path)["data"]
        return None if data is None else base64.b64decode(data)

    def write(self, path, data):
        data = data.encode() if isinstance(data, str) else data
        self.ask("write", path=path, data=base64.b64encode(data).decode())

    def tree(self, *paths):
        return self.ask("tree", paths=list(paths))["tree"]

    def links(self):
        """{name: up, MTU and addresses in the kernel's order}"""
        found = {}
        for link in json.loads(self.text("ip", "-j", "addr")):
            found[link["ifname"]] = {
                "up": "UP" in link["flags"], "mtu": link["mtu"],
                "addresses": [(a["local"], a["prefixlen"], a.get("broadcast"), a["scope"],
                               bool(a.get("secondary"))) for a in link["addr_info"]]}
        return found

    def ipv4(self, netdev="ib0"):
        """["10.0.0.50/24", ...] in the kernel's order, without "secondary"."""
        return ["%s/%d" % a[:2] for a in self.links()[netdev]["addresses"] if "." in a[0]]

    def routes(self):
        return sorted(line.strip() for line in self.text("ip", "-4", "route").splitlines())

    def state(self, but=()):
        """Everything that nodeprep may change, to be compared before and after."""
        return {"links": self.links(), "routes": self.routes(),
                "tree": {path: facts for path, facts in self.tree(*TOUCHABLE).items()
                         if not path.startswith(tuple(but) or ("/nowhere",))}}


def sh_profile(tls, devices):
    """The sh script by the UCX profile paragraph: a value that is set already wins."""
    return """\
# Written by nodeprep; changes made here are lost. To change the values, edit
# the [ucx] section of /etc/nodeprep/nodeprep.conf and run: nodeprep apply
# A value that is set already, an empty one too, is kept. For POSIX shells.
if [ "${UCX_TLS+set}" != set ]; then
	UCX_TLS='%s'
	export UCX_TLS
fi
if [ "${UCX_NET_DEVICES+set}" != set ]; then
	UCX_NET_DEVICES='%s'
	export UCX_NET_DEVICES
fi
""" % (tls, devices)


def csh_profile(tls, devices):
    return """\
# Written by nodeprep; changes made here are lost. To change the values, edit
# the [ucx] section of /etc/nodeprep/nodeprep.conf and run: nodeprep apply
# A value that is set already, an empty one too, is kept. For csh and tcsh.
if ( ! $?UCX_TLS ) setenv UCX_TLS '%s'
if ( ! $?UCX_NET_DEVICES ) setenv UCX_NET_DEVICES '%s'
""" % (tls, devices)


def ucx_values(node):
    """{name: value} of ucx.env."""
    text = node.read("/etc/nodeprep/ucx.env")
    assert text is not None
    return dict(line.split("=", 1) for line in text.decode().splitlines()
                if not line.startswith("#"))


@functools.lru_cache(maxsize=None)
def endless():
    """A program that does nothing and does not end."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "endless")
        subprocess.run(["cc", "-x", "c", "-", "-o", path], check=True, text=True,
                       input="#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
        with open(path, "rb") as file:
            return file.read()


def with_endless_selftest(node):
    """The agent with a nodeprep-selftest beside it that never ends."""
    node.text("mkdir", "/tmp/endless")
    node.text("cp", NODEPREP, "/tmp/endless/nodeprep")
    node.write("/tmp/endless/nodeprep-selftest", endless())
    node.text("chmod", "755", "/tmp/endless/nodeprep-selftest")
    return "/tmp/endless/nodeprep"


# a condition of the shell: the self-test runs
AT_THE_SELFTEST = ADDRESSED + " && pgrep -P $P -x nodeprep-selfte"


def install_nvml(node, fake):
    """A fake NVML where the node's dynamic linker finds it, @fake for FAKE_NVML; None: none."""
    node.shell("rm -rf /var/lib/fakes; mkdir -p /var/lib/fakes /etc/fake")
    if fake is not None:
        node.text("cp", os.path.join(BUILD, "asan", "fake", "libnvidia-ml.so.1"), "/var/lib/fakes")
        node.write("/etc/fake/FAKE_NVML", fake + "\n")
    node.shell("echo /var/lib/fakes >/etc/ld.so.conf.d/000-fakes.conf; /sbin/ldconfig -X -i")
