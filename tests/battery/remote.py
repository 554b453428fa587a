# SPDX-License-Identifier: MIT
"""Runs on a simulated node: one round of the battery. The round is a JSON document on
stdin; what came of it, with a line for each thing that was lost, is one on stdout."""

import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time

APPLY = ["apply", "--json", "--timeout", "0", "--no-selftest"]
CONFIG = "/etc/nodeprep/nodeprep.conf"
# the second apply: a file goes, others change, an address comes
SECOND = ("[netdev ib0]\naddress = 10.0.0.50/24, 10.0.0.77/24\nmode = connected\n"
          "[nccl]\nusers = root\n[limits]\nmemlock = keep\n[ucx]\ntls = rc,self\n")
PLACES = ["/etc", "/root", "/home", "/dev", "/var/lib", "/run"]
PACKAGES = ("/var/lib/dpkg/", "/var/lib/rpm/")
STATE = ("/run/nodeprep", "/var/lib/nodeprep")
TEMP = re.compile(r"^\..+\.nodeprep-[a-z0-9]{6}$")
# nobody else is at work on the node, so that nothing takes this long
TIMEOUT = 120


def content_of(path, st):
    if stat.S_ISLNK(st.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(st.st_mode):
        return st.st_rdev
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def facts_of(path):
    """All that has to come back; of a folder that it is there, whose, and its mode."""
    st = os.lstat(path)
    facts = [oct(st.st_mode), st.st_uid, st.st_gid]
    if stat.S_ISDIR(st.st_mode):
        return facts
    # thousands of files, by what no change of content, name or attribute leaves as it was
    if path.startswith(PACKAGES):
        return facts + [st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns]
    names = [] if stat.S_ISLNK(st.st_mode) else sorted(os.listxattr(path))
    return facts + [content_of(path, st), [[n, os.getxattr(path, n).hex()] for n in names],
                    st.st_mtime_ns if stat.S_ISREG(st.st_mode) else 0]


def walk(places):
    for place in places:
        for folder, folders, files in os.walk(place):
            for name in folders + files:
                yield os.path.join(folder, name)


def ip(*words):
    done = subprocess.run(["ip", "-j", *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def network():
    links = {}
    for link in ip("addr"):
        links[link["ifname"]] = [
            "UP" in link["flags"], link["mtu"],
            [[a["local"], a["prefixlen"], a.get("broadcast"), a["scope"],
              bool(a.get("secondary"))] for a in link["addr_info"]]]
    with open("/sys/class/net/ib0/mode", encoding="ascii") as file:
        mode = file.read().strip()
    return {"links": links, "mode": mode, "routes": sorted(map(str, ip("-4", "route")))}


def snapshot():
    """Everything that nodeprep may change but its own state."""
    files = {path: facts_of(path) for path in walk(PLACES)
             if not path.startswith(STATE) and not path.startswith(("/dev/pts/", "/dev/shm/"))}
    return {"files": files, "network": network()}


def differences(now, then):
    found = ["%s: %s, was %s" % (path, now["files"].get(path), then["files"].get(path))
             for path in sorted(set(now["files"]) | set(then["files"]))
             if now["files"].get(path) != then["files"].get(path)]
    for key, value in then["network"].items():
        if now["network"][key] != value:
            found.append("%s: %s, was %s" % (key, now["network"][key], value))
    return found


class Done:
    def __init__(self, argv, rc, out, err):
        self.argv, self.rc, self.out, self.err = argv, rc, out, err
        self.doc = None

    def said(self):
        error = (self.doc or {}).get("error") or {}
        left = [c for c in (self.doc or {}).get("checks", []) if c["status"] == "fail"]
        return "%s: exit %s, %s %s%s%s" % (
            " ".join(self.argv[1:3]), self.rc, error.get("code", ""), error.get("message", ""),
            "".join("; %s %s: %s" % (c["code"], c["target"], c["message"]) for c in left[:3]),
            "; stderr: " + self.err[-400:] if self.err else "")


class Round:
    def __init__(self, job):
        self.job = job
        self.lost = []
        self.docs = []
        self.calls = []
        self.start = None

    def lose(self, what, *details):
        self.lost.append(what + "".join("\n      " + str(d) for d in details[:6]))

    # ---- commands ----

    def spawn(self, *argv, program=None):
        argv = [program or self.job["program"], *argv]
        return argv, subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, cwd="/")

    def wait(self, spawned, killed=False):
        argv, process = spawned
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.lose("%s did not end" % " ".join(argv))
        done = Done(argv, process.returncode, out.decode(), err.decode(errors="replace"))
        for word in ("Sanitizer", "runtime error:"):
            if word in done.err:
                self.lose("a sanitizer spoke", done.err[:3000])
        self.read_document(done, killed)
        return done

    def read_document(self, done, killed):
        try:
            done.doc = json.loads(done.out)
            self.docs.append(done.doc)
        except ValueError:
            if not (killed and not done.out):
                self.lose("stdout is not one document", done.said(), repr(done.out[-300:]))

    def run(self, *argv):
        return self.wait(self.spawn(*argv))

    def need(self, *argv, rc=0):
        done = self.run(*argv)
        if done.rc != rc:
            self.lose("%s has to end with %d" % (" ".join(argv[:1]), rc), done.said())
        return done

    def under_fault(self, *argv):
        """The command with its fault; 137 where that killed it. The list says what was met."""
        path = "/tmp/calls"
        fault = self.job["fault"]
        done = self.wait(self.spawn(fault, str(self.job["point"]), path, self.job["program"],
                                    *argv, program=self.job["tracer"]),
                         killed=fault in ("kill", "torn"))
        done.argv = [self.job["program"], *argv]
        with open(path, encoding="utf-8") as file:
            self.calls = [line.rstrip("\n") for line in file]
        if done.rc in (125, 127):
            self.lose("the tracer failed", done.said())
        return done

    # ---- what must hold ----

    def at_start(self, then, what):
        found = differences(snapshot(), then)
        if found:
            self.lose(what, *found)

    def no_rubbish(self, when):
        found = [path for path in walk(PLACES) if TEMP.match(os.path.basename(path))]
        found += [path for path in walk(STATE) if "damaged" in path or "other-machine" in path]
        if found:
            self.lose("left behind %s" % when, *found)

    def no_journal(self, when):
        for folder in ("/run/nodeprep/state", "/var/lib/nodeprep"):
            if os.path.lexists(folder + "/journal.json"):
                self.lose("a journal is left %s" % when)

    def whole_files(self, now, *choices):
        """Each file is one of what it may be; a temporary one is not looked at."""
        for path, facts in now["files"].items():
            allowed = [c["files"].get(path, [None])[:5] for c in choices]
            if not TEMP.match(os.path.basename(path)) and facts[:5] not in allowed:
                # folders of the way may be there already
                if facts[0].startswith("0o4") and [None] in allowed:
                    continue
                self.lose("neither the old nor the new file", path, facts, *allowed)

    def converge(self):
        done = self.need(*APPLY)
        now = snapshot()
        again = self.need(*APPLY)
        if again.doc and (again.doc["changed"] or again.doc["actions"]):
            self.lose("a further apply still finds something to do", again.said())
        self.no_rubbish("after the next apply")
        self.no_journal("after the next apply")
        return done, now

    def go_back(self):
        done = self.need("revert", "--json")
        self.at_start(self.start, "revert does not lead back to the start")
        self.no_rubbish("after revert")
        self.no_journal("after revert")
        return done

    def ended_well(self, done, before):
        """A fault that is no kill: what the exit code and the report say is so."""
        said = done.doc or {}
        if done.rc not in (0, 1, 3, 4):
            self.lose("exit code %d" % done.rc, done.said())
        if done.rc in (3, 4):
            error = said.get("error") or {}
            if not (error.get("code") and error.get("message") and error.get("hint")):
                self.lose("an error without code, message or hint", error)
            left = [a for a in said.get("actions", []) if a["status"] == "done"]
            if not left:
                self.at_start(before, "exit %d, told as taken back, and it is not (%s)"
                              % (done.rc, error.get("message")))
            elif "could not be undone" not in error.get("hint", "") or not said["changed"]:
                self.lose("what could not be undone is not told", error, said["changed"])
        elif said.get("error"):
            self.lose("exit %d with an error" % done.rc, said["error"])

    # ---- rounds with one fault ----

    def first_apply(self):
        return APPLY

    def prepare_second(self):
        self.need(*APPLY)
        with open(CONFIG, encoding="ascii") as file:
            self.old_config = file.read()
        self.change_config(SECOND)
        return APPLY

    def change_config(self, text):
        """In place, at the same time: it is the admin's, and stays."""
        st = os.stat(CONFIG)
        with open(CONFIG, "w", encoding="ascii") as file:
            file.write(text)
        os.utime(CONFIG, ns=(st.st_atime_ns, st.st_mtime_ns))
        if self.start:
            self.start["files"][CONFIG] = facts_of(CONFIG)

    def prepare_revert(self):
        self.need(*APPLY)
        return ["revert", "--json"]

    def prepare_confirm(self):
        self.need(*APPLY, "--confirm", "600")
        return ["confirm", "--json"]

    def apply_to_confirm(self):
        return [*APPLY, "--confirm", "600"]

    def after(self, done, killed, before):
        verb = self.job["scenario"]
        middle = snapshot()
        if not killed:
            self.ended_well(done, before)
        if verb in ("apply", "second"):
            goal = self.converge()[1]
            self.whole_files(middle, self.start, before, goal)
        elif verb == "confirm":
            self.at_start(before, "a confirm changed the node")
            if self.need("confirm", "--json").rc == 0:
                self.at_start(before, "the second confirm changed the node")
        elif verb == "apply-confirm":
            done = self.run("confirm", "--json")
            if done.rc not in (0, 4):
                self.lose("confirm after it has to end with 0 or 4", done.said())
            elif done.rc == 4:
                self.at_start(before, "told as taken back, and it is not")
            self.no_journal("after the confirm")
        self.go_back()

    def with_fault(self):
        prepare = {"apply": self.first_apply, "second": self.prepare_second,
                   "revert": self.prepare_revert, "confirm": self.prepare_confirm,
                   "apply-confirm": self.apply_to_confirm}[self.job["scenario"]]
        self.start = snapshot()
        argv = prepare()
        before = snapshot()
        done = self.under_fault(*argv)
        if self.job["fault"] == "none":
            if done.rc != 0:
                self.lose("it fails without a fault", done.said())
            return
        killed = self.job["fault"] in ("kill", "torn") and done.rc == 128 + signal.SIGKILL
        self.after(done, killed, before)

    # ---- two at once ----

    def both(self, first, second, delay):
        one = self.spawn(*first)
        time.sleep(delay)
        two = self.spawn(*second)
        return self.wait(one), self.wait(two)

    def codes(self, done, *allowed):
        for one in done:
            if one.rc not in allowed:
                self.lose("exit code %d beside another run" % one.rc, one.said())

    def pair(self):
        kind, delay = self.job["scenario"], self.job["delay"]
        other = [*APPLY, "--ip", "10.0.0.77/24", "--ifname", "ib0"]
        self.start = snapshot()
        if kind == "same":
            done = self.both(APPLY, APPLY, delay)
            self.codes(done, 0)
            if sorted(bool(d.doc and d.doc["actions"]) for d in done) != [False, True]:
                self.lose("the work was not done by exactly one of them")
        elif kind == "different":
            done = self.both([*APPLY, "--ip", "10.0.0.66/24"], other, delay)
            self.codes(done, 0)
            have = [a[0] for a in network()["links"]["ib0"][2]]
            if not {"10.0.0.66", "10.0.0.77"} <= set(have):
                self.lose("an address is not there", have)
        elif kind == "revert":
            self.need(*APPLY)
            self.codes(self.both(*self.shuffled(APPLY, ["revert", "--json"]), delay), 0)
        else:
            self.need(*APPLY, "--confirm", "600")
            done = self.both(*self.shuffled(other, ["confirm", "--json"]), delay)
            # an apply before the confirmation is refused
            self.codes(done, 0, 3)
            self.codes([d for d in done if "confirm" in d.argv], 0)
        self.no_rubbish("after both")
        self.no_journal("after both")
        self.converge()
        self.go_back()

    def shuffled(self, one, two):
        return (two, one) if self.job["swap"] else (one, two)


def main():
    job = json.load(sys.stdin)
    one = Round(job)
    os.utime("/etc/nccl.conf", ns=(10**18, 10**18 + 7))
    try:
        if "fault" in job:
            one.with_fault()
        else:
            one.pair()
    except Exception as error:  # pylint: disable=broad-except
        one.lose("the round broke: %s: %s" % (type(error).__name__, error))
    json.dump({"lost": one.lost, "docs": one.docs, "calls": one.calls}, sys.stdout)


if __name__ == "__main__":
    main()
