# SPDX-License-Identifier: MIT
"""Ansible against started simulated nodes: the fleet, its playbook runs, the module alone."""

import json
import os
import re
import subprocess

import helpers

PACKAGING = os.path.join(helpers.ROOT, "packaging", "ansible")
PLUGINS = os.path.join(helpers.ROOT, "tests", "sim", "ansible")
MODULE = os.path.join(PACKAGING, "plugins", "modules", "nodeprep.py")
RECAP = re.compile(r"^(\S+) +: ok=(\d+) +changed=(\d+) +unreachable=(\d+) +failed=(\d+)", re.M)
PREFIX = "fleet%d-" % os.getpid()


class Run:
    """A finished command of Ansible: its recap, and what each task said of each node."""

    def __init__(self, line, done, record):
        self.line, self.rc, self.stdout, self.stderr = line, done.returncode, done.stdout, done.stderr
        self.recap = {host: dict(zip(("ok", "changed", "unreachable", "failed"), map(int, numbers)))
                      for host, *numbers in RECAP.findall(done.stdout)}
        self.results = []
        if os.path.exists(record):
            with open(record, encoding="utf-8") as file:
                self.results = [json.loads(text) for text in file]
            os.unlink(record)

    def __repr__(self):
        return "%s: exit code %s\n%s\n%s" % (self.line, self.rc, self.stdout[-6000:], self.stderr[-3000:])

    def of(self, task, host=None):
        """[(host, outcome, result)] of a task."""
        return [(one["host"], one["outcome"], one["result"]) for one in self.results
                if one["task"] == task and host in (None, one["host"])]

    def one(self, task, host):
        found = self.of(task, host)
        assert len(found) == 1, "%d times %s on %s in\n%r" % (len(found), task, host, self)
        return found[0][1:]

    def hosts(self, task, *outcomes):
        return sorted(host for host, outcome, _ in self.of(task) if outcome in outcomes)

    def count(self, what):
        """{host: number} of the recap, without those that have 0."""
        return {host: numbers[what] for host, numbers in self.recap.items() if numbers[what]}


class Fleet:
    """Started nodes, and a folder with ansible.cfg, hosts.ini and a home for Ansible."""

    def __init__(self, folder, config):
        self.folder, self.nodes = str(folder), {}
        self.write("ansible.cfg", config)
        os.makedirs(os.path.join(self.folder, "home"))

    def start(self, name, *options, ini="guide.ini"):
        done = subprocess.run([helpers.SIMNODE, "start", "--quiet", "--bind", self.folder, "--set", "node.hostname=" + name, *options,
                               PREFIX + name, os.path.join(helpers.NODES, ini)],
                              capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr
        self.nodes[name] = PREFIX + name

    def close(self):
        for real in self.nodes.values():
            subprocess.run([helpers.SIMNODE, "stop", real], capture_output=True, check=False, timeout=600)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)
        return os.path.join(self.folder, name)

    def inventory(self, lines, extra=""):
        """hosts.ini; a name that was started leads to that node."""
        self.write("hosts.ini", "%s\n[all:vars]\nansible_connection=simnode\nansible_host=%s{{ inventory_hostname }}\n"
                   "ansible_python_interpreter=/usr/bin/python3\n%s\n" % (lines, PREFIX, extra))

    def environment(self):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("ANSIBLE_", "SUDO_", "PYTHON"))}
        env.update(HOME=os.path.join(self.folder, "home"), LC_ALL="C.UTF-8", NO_COLOR="1", ANSIBLE_NOCOLOR="1",
                   ANSIBLE_CONNECTION_PLUGINS=os.path.join(PLUGINS, "connection"),
                   ANSIBLE_CALLBACK_PLUGINS=os.path.join(PLUGINS, "callback"),
                   ANSIBLE_LOAD_CALLBACK_PLUGINS="1", ANSIBLE_CALLBACKS_ENABLED="record", RECORD=os.path.join(self.folder, "record"),
                   PYTHONDONTWRITEBYTECODE="1")
        return env

    def run(self, line, cwd=None):
        """A line as an admin would type it."""
        done = subprocess.run(["sh", "-c", line], cwd=cwd or self.folder, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=1800)
        return Run(line, done, os.path.join(self.folder, "record"))

    def on(self, name, *argv, user=None):
        """A command on a node: its stdout."""
        words = ["--user", user] if user else []
        done = subprocess.run([helpers.SIMNODE, "exec", *words, self.nodes[name], "--", *argv], cwd="/",
                              capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done.stdout

    def state(self, name):
        """What nodeprep and Ansible may change on a node."""
        return self.on(name, "sh", "-c", "ip -br -4 addr show; cd /; set -- etc/nodeprep etc/nccl.conf etc/profile.d "
                       "etc/security/limits.d etc/modprobe.d etc/modules-load.d etc/dask root home tmp var/tmp "
                       "run/nodeprep var/lib/nodeprep; find $* -not -path 'tmp/pytest*' -not -path 'root/.ansible*' -printf '%p %m %u\\n' "
                       "2>/dev/null | sort; find $* -type f -not -path 'tmp/pytest*' -print0 2>/dev/null | "
                       "sort -z | xargs -0 -r sha256sum").splitlines()

    def module(self, name, user=None, env=(), check_mode=False, diff=False, **arguments):
        """The module on a node without the rest of Ansible: its answer, or the end of what went wrong."""
        words = ["--user", user] if user else []
        arguments.update(_ansible_check_mode=check_mode, _ansible_diff=diff)
        collections = os.path.join(self.folder, "home", ".ansible", "collections")
        argv = [helpers.SIMNODE, "exec", *words, self.nodes[name], "--", "env", "PYTHONPATH=" + collections,
                "PYTHONDONTWRITEBYTECODE=1", *env, helpers.PYTHON, MODULE]
        done = subprocess.run(argv, input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}), cwd=helpers.ROOT,
                              capture_output=True, text=True, check=False, timeout=600)
        assert done.stdout.startswith("\n{") or done.stdout.startswith("{"), (done.stdout, done.stderr)
        answer = json.loads(done.stdout)
        assert bool(answer.get("failed")) == (done.returncode != 0), done.stdout
        return answer


# ---- the README ----

def blocks(text):
    """The indented blocks of a page, without their indentation."""
    found, current = [], []
    for line in text.splitlines() + ["x"]:
        if line.startswith("    ") or (not line and current):
            current.append(line)
        elif current:
            width = min(len(one) - len(one.lstrip()) for one in current if one)
            found.append("\n".join(one[width:] for one in current).strip("\n"))
            current = []
    return found


def commands(text):
    """The lines that are to be copied into a shell, in order, without their comments."""
    lines = [line for block in blocks(text) for line in block.splitlines()]
    return [re.sub(r"  +# .*", "", line) for line in lines
            if line.startswith(("ansible", "jq "))]
