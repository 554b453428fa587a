# SPDX-License-Identifier: MIT
"""Runs inside a simulated node: one JSON request a line on stdin, one answer a
line on stdout. A test that makes ten steps then pays for one node, not for ten."""

import base64
import contextlib
import json
import os
import pwd
import signal
import stat
import subprocess
import sys
import threading
import time

running = {}


def identity(user):
    if user is None:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [entry.pw_gid]}


def start(request):
    return subprocess.Popen(
        request["argv"], env=request["env"], cwd=request.get("cwd") or "/",
        stdin=subprocess.PIPE if request.get("stdin") else subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **identity(request.get("user")))


def finish(process, request):
    data = base64.b64decode(request.get("stdin") or "")
    try:
        out, err = process.communicate(data or None, timeout=request["timeout"])
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += b"\n[the test's deadline of %d s came first]" % request["timeout"]
    return {"rc": process.returncode, "out": base64.b64encode(out).decode(),
            "err": base64.b64encode(err).decode()}


def do_run(request):
    try:
        process = start(request)
    except OSError as error:
        return {"rc": 127, "out": "", "err": base64.b64encode(str(error).encode()).decode()}
    return finish(process, request)


def has_begun(process):
    """The kernel shows a command line, and what comes with it, once the program is in place."""
    with open("/proc/%d/cmdline" % process.pid, "rb") as file:
        return file.read(1) or process.poll() is not None


def do_spawn(request):
    process = start(request)
    while not has_begun(process):
        time.sleep(0.001)
    running[process.pid] = process
    return {"pid": process.pid}


def do_wait(request):
    return finish(running.pop(request["pid"]), request)


def do_kill(request):
    with contextlib.suppress(ProcessLookupError):
        os.kill(request["pid"], request["signal"])
    return {}


def do_kill_after(request):
    """Starts, kills after so many seconds, waits: no round trip in between."""
    process = start(request)
    time.sleep(request["after"])
    process.send_signal(request["signal"])
    return finish(process, request)


def do_kill_when(request):
    """Starts, kills once a condition of the shell holds, where $P is the process, waits."""
    process, held = start(request), False
    end = time.monotonic() + request["timeout"]
    while not held and process.poll() is None and time.monotonic() < end:
        held = subprocess.run(["sh", "-c", request["when"]], env=dict(os.environ, P=str(process.pid)),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False).returncode == 0
    process.send_signal(request["signal"])
    return dict(finish(process, request), held=held)


def do_read(request):
    try:
        with open(request["path"], "rb") as file:
            return {"data": base64.b64encode(file.read()).decode()}
    except FileNotFoundError:
        return {"data": None}


def do_write(request):
    path = request["path"]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(base64.b64decode(request["data"]))
    return {}


def facts_of(path):
    st = os.lstat(path)
    return [stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid,
            0 if stat.S_ISDIR(st.st_mode) else st.st_size,
            0 if stat.S_ISDIR(st.st_mode) else st.st_mtime_ns,
            0 if stat.S_ISDIR(st.st_mode) else st.st_ino]


def do_tree(request):
    """{path: what lstat says}; of folders only that they are there."""
    found = {}
    for top in request["paths"]:
        if not os.path.lexists(top):
            continue
        found[top] = facts_of(top)
        for folder, folders, files in os.walk(top):
            for name in folders + files:
                path = os.path.join(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    found[path] = facts_of(path)
    return {"tree": found}


class Poller(threading.Thread):
    """Looks at the addresses of a netdev over and over."""

    def __init__(self, netdev, address):
        super().__init__(daemon=True)
        self.argv = ["ip", "-4", "-o", "addr", "show", "dev", netdev]
        self.word = " %s/" % address
        self.looked = self.missed = 0
        self.stop = threading.Event()

    def run(self):
        while not self.stop.is_set():
            out = subprocess.run(self.argv, capture_output=True, text=True, check=False).stdout
            self.looked += 1
            self.missed += self.word not in out


def do_watch_address(request):
    """Runs a command while `ip monitor` and a poller watch one address."""
    monitor = subprocess.Popen(["ip", "-4", "-o", "monitor", "address"], stdout=subprocess.PIPE,
                               text=True)
    poller = Poller(request["netdev"], request["address"])
    poller.start()
    time.sleep(0.3)
    answer = do_run(request)
    time.sleep(0.2)
    poller.stop.set()
    poller.join()
    monitor.send_signal(signal.SIGTERM)
    answer["events"] = monitor.communicate()[0].splitlines()
    answer["looked"], answer["missed"] = poller.looked, poller.missed
    return answer


def main():
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = globals()["do_" + request["op"]](request)
        except Exception as error:  # pylint: disable=broad-except
            answer = {"broken": "%s: %s" % (type(error).__name__, error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
