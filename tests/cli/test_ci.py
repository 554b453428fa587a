# SPDX-License-Identifier: MIT
"""The closing lines of .ci/run, which outside scripts read, with a `make` that plays each
target; and the physical node's form of the VM tests, which must refuse without an address."""

import os
import shutil
import subprocess

import pytest

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
GOOD = {
    "lint": ("lint: 9 checks, all ok", 0),
    "test": ("40 passed in 3.14s\n50 passed, 0 failed, 1 skipped", 0),
    "vm-test": ("passed  modes     30.0 s  (9.0 s its own)\n14 passed, 0 failed, 0 skipped", 0),
}


@pytest.fixture
def ci(tmp_path):
    """ci(TARGET=(text, code)...): exit code, and what follows the targets' own output."""
    (tmp_path / "tree/.ci").mkdir(parents=True)
    shutil.copy2(os.path.join(ROOT, ".ci/run"), tmp_path / "tree/.ci/run")
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\nfor target; do :; done\necho "$target" >>"$PLAY/made"\n'
                    'cat "$PLAY/$target.out"\nexit "$(cat "$PLAY/$target.code")"\n')
    make.chmod(0o755)

    def run(**change):
        play = {**GOOD, **{name.replace("_", "-"): what for name, what in change.items()}}
        for target, (text, code) in play.items():
            (tmp_path / (target + ".out")).write_text(text + "\n")
            (tmp_path / (target + ".code")).write_text(f"{code}\n")
        (tmp_path / "made").unlink(missing_ok=True)
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PLAY": str(tmp_path)}
        done = subprocess.run([tmp_path / "tree/.ci/run"], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        assert (tmp_path / "made").read_text().split() == ["lint", "test", "vm-test"]
        return done.returncode, done.stdout.rpartition("\n\n")[2].splitlines()

    return run


def test_all_good(ci):
    code, lines = ci()
    assert code == 0
    assert lines[0] == "lint: 9 checks, all ok"
    assert lines[1].startswith("vm: 14 passed, 0 failed, 0 skipped, in ")
    assert lines[2:] == ["40 passed in 3.14s", "50 passed, 0 failed, 1 skipped"]


def test_a_failed_scenario_is_named_and_the_last_line_stays(ci):
    code, lines = ci(vm_test=("passed  modes    30.0 s\nfailed  renamed  31.0 s  no netdev\n"
                              "        log: build/vm/logs/links.log\n"
                              "13 passed, 1 failed, 0 skipped\nmake: *** Error 1", 2))
    assert code == 1
    assert lines[1:3] == ["vm: failed  renamed  31.0 s  no netdev",
                          "vm:         log: build/vm/logs/links.log"]
    assert lines[3].startswith("vm: 13 passed, 1 failed, 0 skipped, in ")
    assert lines[-1] == "50 passed, 0 failed, 1 skipped"


def test_a_vm_that_does_not_come_to_run_is_said(ci):
    code, lines = ci(vm_test=("vm payload: apt cannot give linux-image-6.1\nmake: *** Error 1", 2))
    assert code == 1
    assert "vm: | vm payload: apt cannot give linux-image-6.1" in lines
    assert any(line.startswith("vm: did not get to its end") for line in lines)
    assert lines[-1] == "50 passed, 0 failed, 1 skipped"


@pytest.mark.parametrize("target", ["lint", "test", "vm_test"])
def test_each_failure_fails_the_whole(ci, target):
    text = GOOD[target.replace("_", "-")][0]
    assert ci(**{target: (text, 2)})[0] == 1


def test_tests_that_do_not_end_are_said_last(ci):
    code, lines = ci(test=("Killed", 2))
    assert code == 1
    assert lines[-1] == "tests: did not get to their end"


@pytest.mark.parametrize("set_up", [{"NODEPREP_HW": "1"}, {"NODEPREP_HW": "1", "NODEPREP_HW_IP": ""}])
def test_a_physical_node_is_not_touched_without_an_address(set_up, tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith("NODEPREP_HW")}
    for command in (["tests/vm/run"], ["tests/vm/hw"], ["tests/vm/run", "modes"]):
        done = subprocess.run(command, cwd=ROOT, env={**env, **set_up, "TMPDIR": str(tmp_path)},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                              check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "NODEPREP_HW_IP=ADDR/LEN" in done.stderr
        assert "Nothing was touched" in done.stderr
        assert not list(tmp_path.iterdir())
