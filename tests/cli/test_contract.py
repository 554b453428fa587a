# SPDX-License-Identifier: MIT
"""The contract of the command line: exit codes, options, what goes to which stream."""

import json
import re

import pytest
from helpers import IP, NODEPREP, QUICK

VERBS = ["apply", "plan", "check", "selftest", "show"]


# ---- usage ----

@pytest.mark.parametrize("argv, said", [
    (["aply"], ['unknown verb "aply"', '"apply"']),
    (["chek"], ['unknown verb "chek"', '"check"']),
    (["xyzzyplugh"], ['unknown verb "xyzzyplugh"']),
    (["apply", "--no-selftst"], ['unknown option "--no-selftst"', '"--no-selftest"']),
    (["apply", "--ipp=10.0.0.50/24"], ['unknown option "--ipp', '"--ip"']),
    (["--jsn", "check"], ['unknown option "--jsn"', '"--json"']),
    (["apply", "-x"], ["unknown option"]),
    (["show", "--ip", IP], ["show takes no option --ip"]),
    (["--prometheus", "apply"], ["apply takes no option --prometheus"]),
    (["apply", "extra"], ['apply takes no argument "extra"']),
    (["show", "prots"], ['"prots"', '"ports"']),
    (["selftest", "tpc"], ['unknown rung "tpc"', '"tcp"']),
    (["apply", "--ip"], ["--ip needs a value"]),
    (["apply", "--force=yes"], ["--force takes no value"]),
    (["apply", "--timeout", "soon"], ["--timeout", '"soon"']),
    (["apply", "--timeout", "-1"], ["--timeout", '"-1"']),
    (["apply", "--timeout", ""], ["--timeout"]),
    (["selftest", "--env", "NAME"], ["--env", "NAME=VALUE"]),
    (["selftest", "--as-root", "--run-as", "nobody"], ["exclude each other"]),
    (["selftest", "--run-as", "nobdy"], ['"nobdy"']),
    (["apply", "--ifname", "ib0/../eth0"], ["--ifname"]),
    (["apply", "--ifname", "a-name-of-17-char"], ["--ifname"]),
    (["apply", "--ifname", ""], ["--ifname"]),
    ([""], ["unknown verb"]),
    ([], ["no verb given"]),
])
def test_usage_errors_touch_nothing(shared_guide, argv, said):
    before = shared_guide.state()
    done = shared_guide.nodeprep(*argv)
    assert (done.rc, done.stdout) == (2, ""), done
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("nodeprep: "), done
    for word in said:
        assert word in done.stderr, done
    assert shared_guide.state() == before


@pytest.mark.parametrize("argv", [["aply"], ["apply", "--no-selftst"], ["show", "prots"]])
def test_usage_error_as_json(shared_guide, argv):
    done = shared_guide.nodeprep(*argv, "--json")
    assert done.rc == 2 and done.stderr.count("\n") == 1
    assert done.doc is not None, done
    first = shared_guide.nodeprep("--json", *argv)
    assert (first.rc, first.doc) == (2, done.doc), first
    assert done.error["code"] == "usage.unknown"
    assert "did you mean" in done.error["message"] and done.error["hint"]
    assert done.doc["ready"] is False and done.doc["changed"] is False
    assert done.doc["actions"] == [] and done.doc["checks"] == []


def test_a_terminal_cannot_be_painted_through_a_message(shared_guide):
    done = shared_guide.nodeprep("apply", "--ip", "\x1b[31m10.0.0.50/24\n\x07")
    assert done.rc == 2
    assert "\x1b" not in done.stderr and "\x07" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_options_before_and_after_the_verb(shared_guide):
    after = shared_guide.nodeprep("plan", "--ip", IP, "--json")
    before = shared_guide.nodeprep("--json", "--ip", IP, "plan")
    equals = shared_guide.nodeprep("--ip=" + IP, "plan", "--json")
    assert (after.rc, before.rc, equals.rc) == (0, 0, 0)
    assert after.doc == before.doc == equals.doc and after.doc["actions"]


# ---- help and version ----

@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb(shared_guide, verb):
    done = shared_guide.nodeprep(verb, "--help")
    assert (done.rc, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: nodeprep %s" % verb)
    for option in ("--json", "--config FILE", "--timeout SECONDS", "--quiet", "--help"):
        assert option in done.stdout
    assert ("--ip " in done.stdout) is (verb in ("apply", "plan", "check"))
    assert ("--dry-run" in done.stdout) is (verb == "apply")
    assert shared_guide.nodeprep("--help", verb).stdout == done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_help_and_version(shared_guide):
    done = shared_guide.nodeprep("--help")
    assert (done.rc, done.stderr) == (0, "")
    for verb in VERBS:
        assert re.search(r"^  %s +\w" % verb, done.stdout, re.M)
    assert shared_guide.nodeprep("-h").stdout == done.stdout
    done = shared_guide.nodeprep("--version")
    assert (done.rc, done.stderr) == (0, "")
    assert re.fullmatch(r"nodeprep \d+\.\d+\.\d+\n", done.stdout)
    version = shared_guide.json("plan").doc["version"]
    assert done.stdout == "nodeprep %s\n" % version


# ---- exit codes ----

def test_plan_check_apply_check(guide):
    plan = guide.json("plan", "--ip", IP, rc=0)
    assert plan.statuses() == {"planned"} and plan.doc["ready"] is False
    check = guide.json("check", "--ip", IP, rc=1)
    assert check.doc["actions"] == plan.doc["actions"] and check.doc["ready"] is False
    done = guide.apply(rc=0)
    assert done.doc["ready"] is True and done.doc["changed"] is True
    assert done.actions() == plan.actions() and done.statuses() == {"done"}
    check = guide.json("check", "--ip", IP, rc=0)
    assert check.doc["ready"] is True and check.doc["actions"] == []
    plan = guide.json("plan", "--ip", IP, rc=0)
    assert plan.doc["ready"] is True and plan.doc["actions"] == []


def test_dry_run_is_plan(shared_guide):
    before = shared_guide.state()
    plan = shared_guide.json("plan", "--ip", IP, rc=0)
    dry = shared_guide.json("apply", "--dry-run", "--ip", IP, rc=0)
    assert dry.doc["actions"] == plan.doc["actions"] and dry.doc["checks"] == plan.doc["checks"]
    assert dry.doc["changed"] is False
    assert shared_guide.state() == before


def test_not_ready_is_1(node):
    sick = node("sick.ini")
    assert sick.apply(rc=1).doc["ready"] is False
    assert sick.json("check", "--ip", IP, rc=1).doc["ready"] is False
    assert sick.json("plan", "--ip", IP, rc=0).doc["ready"] is False


def test_no_such_interface_is_3(shared_guide):
    before = shared_guide.state(but=["/run/nodeprep"])
    for verb in ("apply", "plan", "check"):
        done = shared_guide.json(verb, "--ifname", "eth2", "--ip", IP, rc=3)
        assert done.error["code"] == "netdev.no_such_interface"
        assert "ib0" in done.error["message"] and done.error["hint"]
    assert shared_guide.state(but=["/run/nodeprep"]) == before


def test_without_infiniband(node):
    """An address that is wanted has no place: 3. Nothing wanted: not ready, in words."""
    bare = node("guide.ini", "--set", "node.infiniband_class=no", "--without", "netdev ib0")
    done = bare.json("apply", "--ip", IP, *QUICK, rc=3)
    assert done.error["code"] == "netdev.no_such_interface"
    done = bare.json("check", rc=1)
    assert done.failed() == [("port.none", "node")]
    assert "InfiniBand" in done.check("port.none")["message"]
    assert bare.json("show", "ports", rc=0).doc["show"]["ports"] == []


# ---- privilege ----

def test_unprivileged(guide):
    before = guide.state()
    done = guide.json("apply", "--ip", IP, *QUICK, rc=3, user="alice")
    assert done.error["code"] == "privilege.root"
    assert "root" in done.error["message"] and "sudo" in done.error["hint"]
    assert done.doc["actions"] == []
    text = guide.nodeprep("apply", "--ip", IP, *QUICK, user="alice")
    assert (text.rc, text.stdout) == (3, "") and "sudo" in text.stderr
    plan = guide.json("plan", "--ip", IP, rc=0, user="alice")
    assert ("netdev.address_add", "ib0", IP) in plan.actions()
    assert guide.json("check", "--ip", IP, rc=1, user="alice").failed() == []
    assert guide.json("apply", "--dry-run", "--ip", IP, rc=0, user="alice").actions() == \
        plan.actions()
    ports = guide.json("show", "ports", rc=0, user="alice").doc["show"]["ports"]
    assert [port["lid"] for port in ports] == [15, 6, 2, 17]
    assert guide.state() == before
    guide.apply("--user", "alice")
    assert guide.json("check", "--ip", IP, rc=0, user="alice").doc["ready"] is True


# ---- streams ----

def test_stdout_carries_the_result_only(node):
    """Warnings are for stderr; a JSON document stays alone on stdout."""
    one = node("guide.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[watch]\nrepair = no\n")
    done = one.nodeprep("plan", "--json", "--verbose", "--ip", IP)
    assert done.rc == 0 and "no effect" in done.stderr
    assert json.loads(done.stdout) == done.doc
    quiet = one.nodeprep("plan", "--json", "--quiet", "--ip", IP)
    assert (quiet.rc, quiet.stderr) == (0, "") and quiet.doc == done.doc
    text = one.nodeprep("plan", "--ip", IP)
    assert "no effect" in text.stderr and "no effect" not in text.stdout
    assert text.stdout.endswith("nodeprep plan: 8 changes to make\n")


def test_no_progress_without_a_terminal(node):
    one = node("c05-no-sm.ini")
    done = one.nodeprep("apply", "--ip", IP, "--no-selftest", "--timeout", "1")
    assert done.rc == 1 and done.stderr == "", done


def test_no_color(shared_guide):
    """Colour on a terminal, unless NO_COLOR is set to something."""
    def on_terminal(**env):
        return shared_guide.run("script", "-qec", "%s check --ip %s" % (NODEPREP, IP),
                                "/dev/null", env=dict({"TERM": "xterm"}, **env)).stdout

    assert "\x1b[32mok" in on_terminal()
    assert "\x1b" not in on_terminal(NO_COLOR="1")
    assert "\x1b[32mok" in on_terminal(NO_COLOR="")
    assert "\x1b" not in shared_guide.nodeprep("check", "--ip", IP).stdout


@pytest.mark.parametrize("argv", [["plan"], ["plan", "--json"], ["check", "--prometheus"],
                                  ["show", "--json"], ["--help"], ["--version"]])
@pytest.mark.parametrize("stdout", [">/dev/full", ">&-"])
def test_a_result_that_cannot_be_written_is_5(shared_guide, argv, stdout):
    done = shared_guide.run("sh", "-c", 'exec "$0" "$@" %s' % stdout, NODEPREP, *argv)
    assert done.rc == 5, done
    assert "cannot write" in done.stderr


def test_a_reader_that_goes_away(shared_guide):
    """nodeprep show | head: no message from a signal, no hang."""
    done = shared_guide.shell("%s show | head -c 1" % NODEPREP)
    assert done.stdout == "#" and "ignal" not in done.stderr


def test_prometheus(node):
    sick = node("sick.ini")
    done = sick.nodeprep("check", "--prometheus", "--ip", IP)
    assert done.rc == 1 and done.stderr == ""
    assert "\nnodeprep_ready 0\n" in done.stdout
    assert 'nodeprep_check{id="port",target="mlx5_1:1",code="port.no_sm",status="fail"} 1' in \
        done.stdout.splitlines()
    for line in done.stdout.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) nodeprep_\w+ .+|nodeprep_\w+(\{.*\})? \d+', line), line
    samples = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert len(set(samples)) == len(samples), "one series twice"
