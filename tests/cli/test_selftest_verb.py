# SPDX-License-Identifier: MIT
"""The self-test as the agent runs it: what each rung proves here, and says it cannot."""

import os

import pytest
from helpers import BUILD, IP, NODEPREP, PORTS


@pytest.fixture
def addressed(node):
    one = node("guide.ini")
    one.apply()
    return one


def good_tcp(entry):
    assert (entry["rung"], entry["device"], entry["transport"], entry["status"]) == (
        "tcp", "ib0", "tcp/ib0", "ok")
    assert entry["code"] == "" and entry["hint"] == "" and "10.0.0.50" in entry["message"]
    sizes = entry["sizes"]
    assert len(sizes) >= 3 and [s["size_bytes"] for s in sizes] == sorted(
        {s["size_bytes"] for s in sizes})
    assert entry["size_bytes"] == sizes[-1]["size_bytes"] >= 1 << 20
    assert entry["latency_us"] == sizes[0]["latency_us"] > 0
    assert entry["bandwidth_MBps"] == sizes[-1]["bandwidth_MBps"] > 0


def test_tcp_is_proved(addressed):
    done = addressed.json("selftest", "tcp", rc=0)
    assert done.doc["ready"] is True and done.doc["changed"] is False
    entry, = done.doc["selftest"]
    good_tcp(entry)


def test_rc_fails_honestly(addressed):
    """A simulated port has no data path: not ok, not skipped, and said in words."""
    done = addressed.json("selftest", "rc", rc=1)
    assert [entry["device"] for entry in done.doc["selftest"]] == PORTS
    for number, entry in enumerate(done.doc["selftest"]):
        assert (entry["rung"], entry["status"]) == ("rc", "fail")
        assert entry["code"].startswith("selftest.rc.") and entry["hint"]
        assert "no data path" in entry["message"]
        assert "/dev/infiniband/uverbs%d" % number in entry["message"]
        assert entry["sizes"] == [] and entry["bandwidth_MBps"] is None


def test_all_rungs(addressed):
    done = addressed.json("selftest", rc=1)
    assert [entry["rung"] for entry in done.doc["selftest"]] == ["tcp", "rc", "rc", "rc", "rc"]
    good_tcp(done.doc["selftest"][0])
    text = addressed.nodeprep("selftest")
    assert text.rc == 1 and "MB/s" in text.stdout and "not ready" in text.stdout


def test_apply_with_and_without(node):
    one = node("guide.ini")
    done = one.json("apply", "--ip", IP, rc=1)
    assert done.doc["changed"] is True and done.doc["ready"] is False
    good_tcp(done.rungs("tcp")[0])
    assert {entry["status"] for entry in done.rungs("rc")} == {"fail"}
    assert done.failed() == [] and one.ipv4() == [IP]
    done = one.json("apply", "--ip", IP, "--no-selftest", rc=0)
    assert done.doc["selftest"] == [] and done.doc["ready"] is True


def test_check_and_plan_try_nothing(addressed):
    for verb in ("check", "plan"):
        assert addressed.json(verb, "--ip", IP, rc=0).doc["selftest"] == []


def test_a_named_rung_that_skips_is_1(node):
    one = node("guide.ini")
    done = one.json("selftest", "tcp", rc=1)
    entry, = done.doc["selftest"]
    assert (entry["status"], entry["code"]) == ("skip", "selftest.tcp.no_address")
    assert entry["hint"]
    sick = node("guide.ini", *(word for port in PORTS
                               for word in ("--set", "port %s.state=INIT" % port)))
    done = sick.json("selftest", "rc", rc=1)
    assert {entry["status"] for entry in done.doc["selftest"]} == {"skip"}
    # not named, a skip does not matter
    assert sick.json("selftest", rc=0).doc["ready"] is True


def test_a_corrupted_byte_is_seen(addressed):
    for what in ("1", "64", "4096"):
        done = addressed.json("selftest", "tcp", "--env", "NP_TEST_CORRUPT=" + what, rc=1)
        entry, = done.doc["selftest"]
        assert (entry["status"], entry["code"]) == ("fail", "selftest.data_corrupt"), entry
        assert entry["hint"] and done.doc["ready"] is False


def test_the_environment_reaches_the_rungs_only_through_env(addressed):
    done = addressed.json("selftest", "tcp", rc=0, env={"NP_TEST_CORRUPT": "1"})
    good_tcp(done.doc["selftest"][0])


def test_several_sizes_with_full(addressed):
    quick = addressed.json("selftest", "tcp", "--quick", rc=0).doc["selftest"][0]
    full = addressed.json("selftest", "tcp", "--full", "--timeout", "50", rc=0).doc["selftest"][0]
    assert len(full["sizes"]) > len(quick["sizes"])


def test_a_missing_program(addressed):
    """The agent alone, as a package without the self-test leaves it."""
    addressed.text("mkdir", "/tmp/alone")
    addressed.text("cp", NODEPREP, "/tmp/alone/nodeprep")
    done = addressed.run("/tmp/alone/nodeprep", "selftest", "tcp", "--json")
    assert done.rc == 3 and done.error["code"] == "selftest.not_installed", done
    assert "nodeprep-selftest" in done.error["message"] and "install" in done.error["hint"]
    done = addressed.run("/tmp/alone/nodeprep", "apply", "--json", "--ip", IP)
    assert done.rc == 1
    assert done.failed() == [("selftest.not_installed", "nodeprep-selftest")]
    assert done.check("selftest.not_installed")["hint"]
    done = addressed.run("/tmp/alone/nodeprep", "apply", "--json", "--ip", IP, "--no-selftest")
    assert done.rc == 0


FAKES = {
    "crash": ("#!/bin/sh\necho about to crash >&2\nkill -SEGV $$\n", "selftest.crashed", "signal"),
    "silent": ("#!/bin/sh\nexit 0\n", "selftest.crashed", "no result"),
    "exit": ("#!/bin/sh\necho the reason >&2\nexit 7\n", "selftest.crashed", "the reason"),
    "garbage": ("#!/bin/sh\nhead -c 5000 /dev/urandom\n", "selftest.crashed", "no result"),
    "flood": ("#!/bin/sh\nhead -c 50000000 /dev/zero\n", "selftest.crashed", ""),
    "half": ("#!/bin/sh\necho '{\"schema\": 1, \"selftest\": [{\"rung\": 7}]}'\n",
             "selftest.crashed", "no result"),
    "hang": ("#!/bin/sh\nsleep 300 & sleep 300\n", "selftest.timeout", "2 s"),
    "deaf": ("#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1; done\n", "selftest.timeout",
             "2 s"),
    "not a program": ("\x7fELF nonsense", None, ""),
}


@pytest.mark.parametrize("name", sorted(FAKES))
def test_a_program_that_misbehaves_is_a_failed_rung(addressed, name):
    content, code, said = FAKES[name]
    addressed.text("mkdir", "/tmp/fake")
    addressed.text("cp", NODEPREP, "/tmp/fake/nodeprep")
    addressed.write("/tmp/fake/nodeprep-selftest", content)
    addressed.text("chmod", "755", "/tmp/fake/nodeprep-selftest")
    done = addressed.run("/tmp/fake/nodeprep", "selftest", "tcp", "--json", "--timeout", "2",
                         timeout=30)
    assert done.rc == 1, done
    entry, = done.doc["selftest"]
    assert entry["status"] == "fail" and entry["hint"] and said in entry["message"], entry
    assert entry["rung"] == "tcp" and code in (None, entry["code"]), entry
    assert addressed.run("pgrep", "-f", "sleep 30[0]").rc == 1, "a child was left behind"


def test_whom_the_rungs_run_as(addressed):
    """nobody by default, whom one asks for, root only when told so."""
    addressed.text("mkdir", "/tmp/fake")
    addressed.text("cp", NODEPREP, "/tmp/fake/nodeprep")
    addressed.write("/tmp/fake/nodeprep-selftest",
                    "#!/bin/sh\necho \"$(id -un) $(id -G) $(pwd) $(ls -A | wc -l)\" >&2\n"
                    "env >&2\nls -l /proc/self/fd >&2\nexit 9\n")
    addressed.text("chmod", "755", "/tmp/fake/nodeprep-selftest")

    def log(*argv):
        done = addressed.run("/tmp/fake/nodeprep", "selftest", "tcp", "--verbose", *argv,
                             env={"SECRET": "x"})
        assert "SECRET" not in done.stderr
        return done.stderr

    assert "nobody 65534 /run/nodeprep/empty 0" in log()
    assert "alice 1000 /run/nodeprep/empty 0" in log("--run-as", "alice")
    assert "root 0" in log("--as-root")


def test_as_an_unprivileged_user(addressed):
    done = addressed.json("selftest", "tcp", rc=0, user="alice")
    good_tcp(done.doc["selftest"][0])


def test_the_programs_lie_side_by_side():
    assert os.access(os.path.join(BUILD, "asan", "nodeprep-selftest"), os.X_OK)
    assert os.access(os.path.join(BUILD, "nodeprep-selftest"), os.X_OK)
