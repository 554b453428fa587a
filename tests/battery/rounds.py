# SPDX-License-Identifier: MIT
"""The rounds of the battery: which there are, a sample of them, and how one is run."""

import atexit
import concurrent.futures
import functools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SIMNODE = os.path.join(ROOT, "tests", "sim", "simnode")
NODE = os.path.join(HERE, "node.ini")
REMOTE = os.path.join(HERE, "remote.py")

SCENARIOS = ["apply", "second", "revert", "confirm", "apply-confirm"]
ERRORS = ["ENOSPC", "EROFS", "EIO", "ENOSPC+", "EROFS+", "EIO+"]
PAIRS = ["same", "different", "revert", "confirm"]
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C",
    "HOME": "/root", "USER": "root", "LOGNAME": "root", "PYTHONDONTWRITEBYTECODE": "1",
    # no leaks are looked for: that is not possible in a traced process
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
    "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1"}


# /etc and /var as they were: what this machine installs meanwhile is no node's doing
STILL = 'mount --bind "$0/etc" /etc && mount --bind "$0/var" /var && exec "$@"'


def copy(path, folder):
    """What somebody takes away while it is copied is not missed."""
    subprocess.run(["cp", "-a", path, folder], check=False, stderr=subprocess.DEVNULL)
    os.stat(os.path.join(folder, os.path.basename(path)))


@functools.lru_cache(maxsize=None)
def still_picture():
    """A copy of this machine's /etc, and of what a node needs of /var, for all rounds: a node
    shows those folders of the machine under its own changes."""
    folder = tempfile.mkdtemp(prefix="np-battery-")
    atexit.register(shutil.rmtree, folder, True)
    if ROOT.startswith("/var/"):
        raise SystemExit("%s: a node of the battery has another /var" % ROOT)
    for name in ("cache", "lib", "local", "log", "mail", "opt", "spool", "tmp"):
        os.makedirs(os.path.join(folder, "var", name))
    os.symlink("/run", folder + "/var/run")
    os.symlink("/run/lock", folder + "/var/lock")
    os.chmod(folder, 0o755)
    copy("/etc", folder)
    for path in ("/var/lib/dpkg", "/var/lib/rpm"):
        if os.path.isdir(path):
            copy(path, folder + "/var/lib")
    return folder


class Call:
    """A changing system call of a run without a fault."""

    def __init__(self, line):
        number, self.name, self.what, self.result = line.split(" ", 3)
        self.number = int(number)

    @property
    def changed(self):
        return not self.result.startswith("-")


class Battery:
    """`build` has the programs; `sanitized` says which of the two is run."""

    def __init__(self, build, sanitized=False):
        self.program = os.path.join(build, *(["asan"] if sanitized else []), "nodeprep")
        self.tracer = os.path.join(build, "asan", "fault")
        for path in (self.program, self.tracer):
            if not os.access(path, os.X_OK):
                raise SystemExit("no %s: run make all asan fakes" % path)
        self.still = still_picture()

    def run(self, job):
        """The answer of one round: lost (a list), docs, calls."""
        job = dict(job, program=self.program, tracer=self.tracer)
        done = subprocess.run(["unshare", "--mount", "sh", "-c", STILL, self.still, SIMNODE,
                               "--quiet", NODE, "--", "/usr/bin/python3", REMOTE],
                              input=json.dumps(job), capture_output=True, text=True, check=False,
                              cwd=ROOT, env=ENVIRONMENT, timeout=600)
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            return {"lost": ["the round did not end: " + (done.stderr or done.stdout)[-600:]],
                    "docs": [], "calls": []}
        if "fault" in job and job["fault"] != "none" and not answer["lost"]:
            self.was_met(job, answer)
        return answer

    @staticmethod
    def was_met(job, answer):
        calls = [Call(line) for line in answer["calls"]]
        stays = job["fault"].endswith("+")
        met = [c for c in calls if c.result.startswith(("killed", "made", "torn")) and
               (c.number == job["point"] or stays and c.number > job["point"])]
        if not met:
            answer["lost"].append("the fault was not met: %s" % (answer["calls"][-1:] or "no call"))

    def calls(self, scenario):
        answer = self.run({"scenario": scenario, "fault": "none", "point": 0})
        if answer["lost"] or not answer["calls"]:
            raise SystemExit("%s without a fault: %s" % (scenario, answer["lost"]))
        return [call for call in map(Call, answer["calls"]) if call.changed]

    def all_calls(self, workers):
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            return dict(zip(SCENARIOS, pool.map(self.calls, SCENARIOS)))

    def run_all(self, jobs, workers, tell=None):
        """[(job, answer)] in the order of the jobs."""
        found = []
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for job, answer in zip(jobs, pool.map(self.run, jobs)):
                found.append((job, answer))
                if tell:
                    tell(job, answer)
        return found


def kills(calls):
    """SIGKILL at each call, in the middle of it where it writes; and, where a child with the
    identity of a user makes it, to that child alone."""
    jobs = []
    for scenario in SCENARIOS:
        for call in calls[scenario]:
            point = {"scenario": scenario, "point": call.number, "what": call.what}
            jobs.append(dict(point, fault="kill", call=call.name))
            # the kernel takes what is written to /sys as a whole
            if call.name == "write" and not call.what.startswith("/sys/"):
                jobs.append(dict(point, fault="torn", call=call.name))
            if call.what.startswith("/home/"):
                jobs.append(dict(point, fault="kill-one", call=call.name))
    return jobs


def errors(calls, kinds=None):
    """Each call with each error. The order of the errors turns from call to call, so that an
    even sample meets all of them."""
    kinds = kinds or ERRORS
    points = [(scenario, call) for scenario in SCENARIOS for call in calls[scenario]]
    return [{"scenario": scenario, "point": call.number, "what": call.what, "call": call.name,
             "fault": kinds[(turn + i) % len(kinds)]}
            for turn, (scenario, call) in enumerate(points) for i in range(len(kinds))]


def pairs(number, seed):
    """Two at once, the second up to 30 ms after the first."""
    chance = random.Random(seed)
    return [{"scenario": PAIRS[i % len(PAIRS)], "delay": chance.choice([0, chance.uniform(0, 0.03)]),
             "swap": chance.random() < 0.5} for i in range(number)]


def sample(jobs, number, seed):
    """So many, evenly spread over all, from a place that the seed gives."""
    if number is None or number >= len(jobs):
        return jobs
    start = random.Random(seed).random()
    return [jobs[int((i + start) * len(jobs) / number)] for i in range(number)]


def name_of(job):
    if "fault" not in job:
        return "%s beside apply, %.1f ms later%s" % (
            {"same": "the same apply", "different": "another apply"}.get(job["scenario"],
                                                                        job["scenario"]),
            job["delay"] * 1000, ", swapped" if job["swap"] else "")
    return "%s at call %d of %s (%s %s)" % (job["fault"], job["point"], job["scenario"],
                                            job["call"], job["what"])


def workers():
    return len(os.sched_getaffinity(0))


def tell_lost(job, answer, out=sys.stderr):
    for line in answer["lost"]:
        print("lost: %s: %s" % (name_of(job), line), file=out, flush=True)
