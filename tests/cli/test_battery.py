# SPDX-License-Identifier: MIT
"""A sample of `make battery` (C34): SIGKILL, errors of the disk, two runs at once. The same
one each time, so that a failure is of the change that brought it; NODEPREP_BATTERY_SEED
takes another, and `make battery` any."""

import os
import sys

import pytest
from helpers import BUILD, ROOT, need_node, validate

sys.path.insert(0, os.path.join(ROOT, "tests", "battery"))
import rounds  # noqa: E402  pylint: disable=wrong-import-position

SEED = int(os.environ.get("NODEPREP_BATTERY_SEED", "1"))


@pytest.fixture(scope="module")
def plain():
    need_node()
    return rounds.Battery(BUILD)


@pytest.fixture(scope="module")
def calls(plain):
    return plain.all_calls(rounds.workers())


def survive(battery, jobs):
    found = battery.run_all(jobs, rounds.workers())
    lost = ["seed %d: %s: %s" % (SEED, rounds.name_of(job), line)
            for job, answer in found for line in answer["lost"]]
    assert not lost, "\n".join(lost)
    assert len(found) == len(jobs)
    for _, answer in found:
        for document in answer["docs"]:
            validate(document)


def test_there_is_something_to_break(calls):
    for scenario, least in (("apply", 40), ("second", 20), ("revert", 20), ("confirm", 5),
                            ("apply-confirm", 40)):
        assert len(calls[scenario]) >= least, scenario
    made = {call.name for call in calls["apply"]}
    assert {"write", "renameat", "fsync", "mkdir", "mknodat", "fchown", "sendmsg"} <= made
    assert any(call.what.startswith("/home/alice/") for call in calls["apply"])


def test_c34_killed_at_40_calls(plain, calls):
    survive(plain, rounds.sample(rounds.kills(calls), 40, SEED))


def test_full_read_only_and_broken_disks_at_40_calls(calls):
    jobs = rounds.sample(rounds.errors(calls), 40, SEED)
    assert {job["fault"] for job in jobs} == set(rounds.ERRORS)
    survive(rounds.Battery(BUILD, sanitized=True), jobs)


def test_c34_two_at_once_ten_times(plain):
    survive(plain, rounds.pairs(10, SEED))


@pytest.mark.parametrize("script, word", [
    ("touch /etc/.nccl.conf.nodeprep-abc123", "left behind"),
    ("chmod 0600 /home/alice/.nccl.conf", "does not lead back"),
    ("ip addr add 10.9.9.9/24 dev ib0", "does not lead back"),
    ("echo more", "not one document"),
])
def test_a_worse_program_loses(plain, tmp_path_factory, script, word):
    """The battery can lose: the program with one thing that it must not do."""
    path = os.path.join(BUILD, "asan", "worse-%d-%s" % (os.getpid(), tmp_path_factory.mktemp("w").name))
    with open(path, "w", encoding="ascii") as file:
        file.write('#!/bin/sh\n%s "$@"\nrc=$?\n%s 2>/dev/null\nexit $rc\n' % (plain.program, script))
    os.chmod(path, 0o755)
    worse = rounds.Battery(BUILD)
    worse.program = path
    try:
        answer = worse.run({"scenario": "same", "delay": 0, "swap": False})
    finally:
        os.unlink(path)
    assert any(word in line for line in answer["lost"]), answer["lost"]
