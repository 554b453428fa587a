# SPDX-License-Identifier: MIT
"""security_watch.py HOW ARGV: runs inside a simulated node. Starts the command (a JSON list)
and looks over and over at /proc/PID/status of what it starts; prints as JSON what was seen of
each process: {"rc", "out", "main": PID, "seen": {PID: [{field: value}]}}. With HOW "full" its
stdout is a pipe that is full, so that it stands still at its report until it was looked at."""

import fcntl
import json
import os
import subprocess
import sys
import threading
import time

FIELDS = ("Name", "State", "PPid", "Uid", "CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs",
          "Seccomp")


def status(pid):
    try:
        with open("/proc/%s/status" % pid, encoding="utf-8") as file:
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return None
    return {name: lines[name].strip() for name in FIELDS}


def descendants(root):
    found = {pid: status(pid) for pid in os.listdir("/proc") if pid.isdigit()}
    found = {pid: facts for pid, facts in found.items() if facts}
    ours, more = {str(root)}, True
    while more:
        more = {pid for pid, facts in found.items() if facts["PPid"] in ours} - ours
        ours |= more
    return {pid: found[pid] for pid in ours if pid in found}


def main(how, argv):
    full = how == "full"
    reader, writer = os.pipe()
    filled = 0
    if full:
        filled = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writer, b" " * filled)
    with subprocess.Popen(argv, stdout=writer, cwd="/") as process:
        os.close(writer)
        seen, out, late = {}, [], time.monotonic() + 200

        def drain():
            with os.fdopen(reader, "rb") as file:
                out.append(file.read())

        thread = threading.Thread(target=drain)
        if not full:
            thread.start()
        while process.poll() is None:
            for pid, facts in descendants(process.pid).items():
                if facts["State"][0] not in "ZX":
                    seen.setdefault(pid, []).append(facts)
            if full and seen.get(str(process.pid)) and \
                    (seen[str(process.pid)][-1]["Seccomp"] == "2" or time.monotonic() > late):
                full = False
                thread.start()
            time.sleep(0.002)
        thread.join()
    json.dump({"rc": process.returncode, "out": out[0][filled:].decode(), "seen": seen,
               "main": str(process.pid)}, sys.stdout)


main(sys.argv[1], json.loads(sys.argv[2]))
