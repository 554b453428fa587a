# SPDX-License-Identifier: MIT
"""The agent and the libraries: show libraries, gdr_copy without gdrdrv, what UCX lacks, and
a nodeprep-selftest that lies, crashes or is not there."""

import json
import os
import shutil
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True

from helpers import (BUILD, IP, NODEPREP, PLAIN, QUICK,  # noqa: E402  pylint: disable=wrong-import-position
                     need_node, ucx_values, validate)

FAKES = os.path.join(BUILD, "asan", "fake")
NAMES = ["ucx", "cuda", "gdrapi", "nccl", "ibverbs", "nvml"]


def shown(done):
    assert done.rc == 0 and list(done.doc["show"]) == ["libraries", "census"], done
    found = done.doc["show"]["libraries"]
    assert [library["name"] for library in found] == NAMES
    return {library["name"]: library for library in found}


def install(node, cuda=None, gdrapi=None):
    """Fakes of CUDA's driver and libgdrapi where the node's dynamic linker finds them."""
    node.shell("rm -rf /var/lib/fakes /etc/fake; mkdir -p /var/lib/fakes /etc/fake")
    if cuda:
        node.shell("cp %s/libcuda.so.1 /var/lib/fakes; echo version=%d >/etc/fake/FAKE_CUDA"
                   % (FAKES, cuda))
    if gdrapi:
        node.shell("cp %s/gdr/libgdrapi.so.2 /var/lib/fakes; "
                   "echo version=%d >/etc/fake/FAKE_GDRAPI" % (FAKES, gdrapi))
    done = node.shell("echo /var/lib/fakes >/etc/ld.so.conf.d/000-fakes.conf; "
                      "/sbin/ldconfig -X -i; /sbin/ldconfig -p | grep -c /var/lib/fakes/")
    assert done.stdout.strip() == str(bool(cuda) + bool(gdrapi)), done


# ---- show ----

def test_show_libraries_is_what_the_program_says(shared_guide):
    found = shown(shared_guide.json("show", "libraries"))
    done = shared_guide.run(os.path.join(BUILD, "nodeprep-selftest"), "--libraries")
    own = {one["name"]: one for one in json.loads(done.stdout)["show"]["libraries"]}
    for name in ("cuda", "gdrapi", "nccl", "ibverbs", "nvml"):
        assert found[name] == own[name]
    for key in ("components", "verdicts", "transports", "built_against", "exact"):
        assert found["ucx"]["ucx"][key] == own["ucx"]["ucx"][key], key
    assert found["ucx"]["ucx"]["transports"]


def test_the_guides_hcas_have_no_user_space(shared_guide):
    """HCAs without verbs devices behind them: built in, and not usable."""
    ucx = shown(shared_guide.json("show", "libraries"))["ucx"]
    verdicts = {v["transport"]: v for v in ucx["ucx"]["verdicts"]}
    assert verdicts["rc"]["status"] == "device not usable"
    assert "mlx5_0" in verdicts["rc"]["reason"]
    assert verdicts["cuda_copy"]["status"] == "built without"


def test_text_has_a_row_a_transport(shared_guide):
    ucx = shown(shared_guide.json("show", "libraries"))["ucx"]
    text = shared_guide.text(NODEPREP, "show", "libraries")
    assert text.startswith("# libraries\nucx: loaded, version %s, %s\n" % (ucx["version"], ucx["path"]))
    rows = [line.split() for line in text.splitlines()]
    for t in ucx["ucx"]["transports"]:
        row, = [row for row in rows if row[:2] == [t["transport"], t["device"]] and len(row) > 6]
        assert row[2] == "%.0f" % t["bandwidth_MBps"] and row[5] == str(t["priority"])
        assert row[3] == "%.0f" % t["latency_ns"] and row[4] == "%.0f" % t["overhead_ns"]
        assert ("8K/8K/64K" in row) is (t["transport"] == "tcp")
    for v in ucx["ucx"]["verdicts"]:
        assert any(row[:1] == [v["transport"]] and " ".join(row[1:]).startswith(v["status"])
                   for row in rows)
    assert all(line.isprintable() or "\t" in line for line in text.splitlines())


def test_root_asks_as_nobody_in_an_environment_of_its_own(guide):
    guide.run("strace", "-f", "-qq", "-v", "-s", "300", "-o", "/tmp/trace", "-e",
              "trace=execve,execveat,setresuid", PLAIN, "show", "libraries",
              env={"UCX_TLS": "nonsense", "LD_PRELOAD_": "x"})
    trace = guide.read("/tmp/trace").decode()
    child, = [line for line in trace.splitlines() if "execveat" in line]
    assert "UCX_TLS" not in child and '"--libraries"' in child
    nobody = guide.text("id", "-u", "nobody").strip()
    assert "setresuid(%s, %s, %s)" % (nobody, nobody, nobody) in trace


def test_an_ordinary_user_may_ask(guide):
    found = shown(guide.json("show", "libraries", user="nobody"))
    assert found["ucx"]["status"] == "loaded"


def test_all_nouns_have_libraries_too(shared_guide):
    done = shared_guide.json("show", rc=0)
    assert {"ports", "netdevs", "modules", "gpus", "libraries", "config"} <= set(done.doc["show"])


# ---- gdr_copy without gdrdrv ----

def tls(node):
    return ucx_values(node)["UCX_TLS"].split(",")


def test_c38_dmabuf_instead_of_gdrdrv(node):
    one = node("c38-no-gdrdrv.ini")
    install(one, cuda=13030, gdrapi=206)
    check = one.json("check", "--ip", IP)
    found = check.check("gdrcopy.dmabuf", "gdrdrv")
    assert found["status"] == "ok"
    assert "13.3" in found["message"] and "/var/lib/fakes/libgdrapi.so.2" in found["message"]
    assert not check.checks(code="module.missing", target="gdrdrv")
    plan = one.json("plan", "--ip", IP, rc=0)
    assert plan.check("gdrcopy.dmabuf", "gdrdrv")["status"] == "ok"
    done = one.apply()
    assert done.check("gdrcopy.dmabuf", "gdrdrv")["status"] == "ok"
    assert "gdr_copy" in tls(one)
    again = one.apply()
    assert again.doc["actions"] == [] and again.doc["changed"] is False
    # who requires it has his way
    one.write("/etc/nodeprep/nodeprep.conf", "[module gdrdrv]\nrequire = yes\n")
    done = one.json("check", "--ip", IP, rc=1)
    assert [c["status"] for c in done.checks(target="gdrdrv")] == ["fail"]


@pytest.mark.parametrize("cuda, gdrapi", [(13020, 206), (13030, 205), (13030, None), (None, 206)])
def test_c38_one_of_the_two_is_too_old_or_missing(node, cuda, gdrapi):
    one = node("c38-no-gdrdrv.ini")
    install(one, cuda=cuda, gdrapi=gdrapi)
    done = one.apply()
    assert not done.checks(code="gdrcopy.dmabuf")
    absent, = done.checks(target="gdrdrv")
    assert absent["status"] == "warn"
    assert "gdr_copy" not in tls(one)


def test_the_libraries_are_asked_once_a_run(node):
    one = node("c38-no-gdrdrv.ini")
    install(one, cuda=13030, gdrapi=206)
    for verb in (["apply", *QUICK], ["apply", *QUICK], ["plan"], ["check"]):
        one.run("strace", "-f", "-qq", "-o", "/tmp/trace", "-e", "trace=execve,execveat", PLAIN,
                *verb, "--ip", IP)
        trace = one.read("/tmp/trace").decode()
        assert trace.count('"--libraries"') == 1 == trace.count('"--brief"'), trace


def test_without_gpus_only_who_changed_something_asks(guide):
    def asked(*verb):
        guide.run("strace", "-f", "-qq", "-o", "/tmp/trace", "-e", "trace=execve,execveat", PLAIN,
                  *verb, "--ip", IP)
        return guide.read("/tmp/trace").decode().count('"--libraries"')
    assert asked("plan") == 0 and asked("check") == 1
    assert asked("apply", *QUICK) == 1 and asked("apply", *QUICK) == 0


# ---- what UCX lacks ----

def test_c31_ucx_without_cuda_on_a_node_with_gpus(node):
    one = node("dgx.ini")
    done = one.json("check", "--ip", IP)
    ucx = shown(one.json("show", "libraries"))["ucx"]
    if any(v["transport"] == "cuda_copy" and v["status"] != "built without"
           for v in ucx["ucx"]["verdicts"]):
        pytest.skip("this machine's UCX has CUDA")
    for name in ("cuda_copy", "cuda_ipc"):
        found = done.check("ucx.transport_missing", name)
        assert found["status"] == "warn" and found["id"] == "library"
        assert ucx["path"] in found["message"] and "built without" in found["message"]
    # rc is built in; nobody lists gdr_copy, since gdrdrv does not answer here
    assert len(done.checks(code="ucx.transport_missing")) == 2
    # the list does not depend on it
    one.apply()
    assert {"rc", "cuda_copy", "cuda_ipc"} <= set(tls(one))


def test_c31_nothing_is_missed_without_gpus(guide):
    assert guide.json("check", "--ip", IP).checks(id="library") == []
    assert guide.apply().checks(id="library") == []


def test_c31_nothing_is_missed_that_is_not_listed(node):
    one = node("dgx.ini")
    one.write("/etc/nodeprep/nodeprep.conf", "[ucx]\ntls = rc,tcp,sm,self\n")
    assert one.json("check", "--ip", IP).checks(id="library") == []


# ---- nodeprep-selftest is not to be trusted, or not to be had ----

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) { %s; fputs(%s, stdout); return %d; }
"""


class Alone:
    """The agent in a folder of its own, with the nodeprep-selftest that it deserves."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.agent = shutil.copy(NODEPREP, self.folder)

    def helper(self, text, status=0, before=""):
        source = PROGRAM % (before, json.dumps(text), status)
        subprocess.run(["gcc", "-x", "c", "-o", os.path.join(self.folder, "nodeprep-selftest"),
                        "-"], input=source, text=True, check=True)

    def run(self, *argv):
        done = subprocess.run([self.agent, *argv, "--json"], capture_output=True, text=True,
                              cwd="/", timeout=60, check=False, stdin=subprocess.DEVNULL,
                              env={"PATH": "/usr/bin:/bin"})
        assert "Sanitizer" not in done.stderr, done.stderr
        document = json.loads(done.stdout)
        validate(document)
        return done.returncode, document

    def libraries(self, *argv):
        status, document = self.run("show", "libraries", *argv)
        assert status == 0
        return document["show"]["libraries"]


@pytest.fixture
def alone(tmp_path):
    need_node()
    return Alone(tmp_path)


def of_the_real_one(*argv):
    done = subprocess.run([os.path.join(BUILD, "nodeprep-selftest"), "--libraries", *argv],
                          capture_output=True, text=True, check=True, cwd="/",
                          env={"PATH": "/usr/bin:/bin"})
    return json.loads(done.stdout)


def test_without_the_program_each_is_unknown_and_the_rest_is_there(alone):
    if os.path.exists("/usr/libexec/nodeprep/nodeprep-selftest"):
        pytest.skip("nodeprep is installed here")
    for library in alone.libraries():
        assert (library["status"], library["code"]) == ("unknown", "selftest.not_installed")
        assert library["message"] and "install" in library["hint"]
    status, document = alone.run("show")
    assert status == 0 and document["show"]["netdevs"] and document["show"]["config"]
    assert len(document["show"]["libraries"]) == 6


def test_a_copy_of_the_real_document_is_taken(alone):
    real = of_the_real_one()
    alone.helper(json.dumps(real))
    assert alone.libraries() == real["show"]["libraries"]


def with_change(change):
    document = of_the_real_one()
    change({one["name"]: one for one in document["show"]["libraries"]}, document)
    return json.dumps(document)


def add_to(where, **members):
    where.update(members)


@pytest.mark.parametrize("change", [
    lambda by, doc: add_to(by["ucx"], version="\x1b]0;owned\x07"),
    lambda by, doc: add_to(by["ucx"], version="1\n2"),
    lambda by, doc: add_to(by["cuda"], path="/" * 5000, status="loaded"),
    lambda by, doc: add_to(by["nccl"], status="splendid"),
    lambda by, doc: add_to(by["gdrapi"], code="../../etc", message="x", hint="x"),
    lambda by, doc: add_to(by["gdrapi"], ucx=by["ucx"]["ucx"]),
    lambda by, doc: add_to(by["ucx"], ucx=None),
    lambda by, doc: by["ucx"]["ucx"].pop("verdicts"),
    lambda by, doc: by["ucx"]["ucx"]["transports"].extend([{}]),
    lambda by, doc: by["ucx"]["ucx"]["transports"].extend(by["ucx"]["ucx"]["transports"] * 400),
    lambda by, doc: add_to(by["ucx"]["ucx"]["transports"][0], latency_ns=-1),
    lambda by, doc: add_to(by["ucx"]["ucx"]["memory_domains"][0], rkey_bytes="many"),
    lambda by, doc: doc["show"]["libraries"].reverse(),
    lambda by, doc: doc["show"]["libraries"].pop(),
    lambda by, doc: doc["show"].update(libraries={}),
    lambda by, doc: doc.update(show=[]),
])
def test_a_document_that_lies_is_not_passed_on(alone, change):
    alone.helper(with_change(change))
    for library in alone.libraries():
        assert (library["status"], library["code"]) == ("unknown", "selftest.crashed"), library


@pytest.mark.parametrize("text, status, before, code, said", [
    ("", 0, "", "selftest.crashed", "code 0"),
    ("{}", 0, "", "selftest.crashed", "code 0"),
    ("not json", 5, 'fputs("nodeprep: out of luck\\n", stderr)', "selftest.crashed", "out of luck"),
    ("", 0, "abort()", "selftest.crashed", "signal 6"),
    ("", 0, "for (;;) pause()", "selftest.timeout", "killed"),
    ("", 0, 'for (;;) puts("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")', "selftest.timeout",
     "killed"),
])
def test_a_program_that_fails(alone, text, status, before, code, said):
    alone.helper(text, status, before)
    for library in alone.libraries("--timeout", "2"):
        assert (library["status"], library["code"]) == ("unknown", code)
        assert said in library["message"], library


def test_what_is_unknown_does_not_hold_up_a_check(node, tmp_path):
    one = node("c38-no-gdrdrv.ini", "--bind", str(tmp_path))
    lonely = Alone(tmp_path)
    lonely.helper("{}")
    done = one.run(lonely.agent, "check", "--json", "--ip", IP)
    found = done.check("selftest.crashed", "ucx")
    assert found["status"] == "unknown" and found["id"] == "library"
    assert done.check("module.missing", "gdrdrv")["status"] == "warn"
