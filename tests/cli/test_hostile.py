# SPDX-License-Identifier: MIT
"""What others put in the way: a self-test program that lies, people's own lines, a run
that was killed."""

import json
import os
import shutil

import pytest
from helpers import ADDRESSED, BUILD, IP, NODEPREP

GOOD = {"rung": "tcp", "device": "ib0", "transport": "tcp/ib0", "status": "ok", "code": "",
        "message": "moved", "hint": "", "size_bytes": 8, "latency_us": 1.5,
        "bandwidth_MBps": 2.0,
        "sizes": [{"size_bytes": 8, "latency_us": 1.5, "bandwidth_MBps": 2.0}]}


@pytest.fixture
def liar(node, tmp_path):
    """A node on which the agent's neighbour says whatever it is told."""
    shutil.copy(NODEPREP, tmp_path / "nodeprep")
    shutil.copy(os.path.join(BUILD, "asan", "unit", "render_rung"),
                tmp_path / "nodeprep-selftest")
    one = node("guide.ini", "--bind", str(tmp_path))
    one.apply()

    def says(text, code=0):
        one.write("/etc/rung.json", text if isinstance(text, str) else json.dumps(text))
        one.write("/etc/rung.code", str(code))
        done = one.run(str(tmp_path / "nodeprep"), "selftest", "tcp", "--json")
        return done.rc, json.loads(done.stdout)
    return says


def test_a_document_as_it_must_be_is_taken(liar):
    rc, doc = liar({"selftest": [dict(GOOD, extra="dropped")]})
    assert (rc, doc["ready"]) == (0, True)
    assert doc["selftest"] == [GOOD]


@pytest.mark.parametrize("lie, code", [
    ({"selftest": [dict(GOOD, status="banana")]}, 0),
    ({"selftest": [dict(GOOD, status="\x1b[2Jok")]}, 0),
    ({"selftest": [dict(GOOD, device="ib7")]}, 0),
    ({"selftest": [dict(GOOD, rung="rc")]}, 0),
    ({"selftest": [dict(GOOD, message=7)]}, 0),
    ({"selftest": [dict(GOOD, latency_us="fast")]}, 0),
    ({"selftest": [dict(GOOD, sizes=[[]])]}, 0),
    ({"selftest": [dict(GOOD, sizes=[])]}, 0),
    ({"selftest": [GOOD, GOOD]}, 0),
    ({"selftest": [GOOD] * 20000}, 0),
    ({"selftest": []}, 0),
    ({"selftest": [GOOD]}, 1),
    ({"selftest": [GOOD]}, 139),
    ({"selftest": [{"rung": "tcp", "status": "ok"}]}, 0),
    ("[" * 100000, 0), ("", 0), ("null", 0), ("\xff\xfe", 0),
])
def test_a_lie_is_a_failed_rung(liar, lie, code):
    rc, doc = liar(lie, code)
    assert (rc, doc["ready"]) == (1, False)
    entry, = doc["selftest"]
    assert (entry["rung"], entry["device"], entry["status"], entry["code"]) == (
        "tcp", "ib0", "fail", "selftest.crashed")


@pytest.mark.parametrize("line", [
    b"NCCL_IB_HCA=mlx5_0\r\n", b"NCCL_IB_HCA=mlx5_0\t\n", b"NCCL_IB_HCA=\x1b]0;x\n",
    b"NCCL_IB_HCA=" + b",".join(b"mlx5_%d" % n for n in range(200)) + b"\n",
])
def test_a_line_of_somebody_keeps_no_node_down(node, line):
    one = node("guide.ini")
    one.run("/bin/sh", "-c", "umask 022; touch /home/alice/.nccl.conf; "
            "chown alice:alice /home/alice/.nccl.conf")
    one.write("/home/alice/.nccl.conf", line)
    one.apply("--user", "alice", rc=0)
    assert one.read("/home/alice/.nccl.conf") == line + b"NCCL_SOCKET_IFNAME=ib0\n"
    assert IP in one.ipv4()


def test_the_undo_of_a_killed_run_is_kept(node):
    one = node("guide.ini", "--set", "port mlx5_1:1.state=INIT")
    one.kill_when(ADDRESSED, 9, NODEPREP, "apply", "--ip", IP, "--no-selftest", "--timeout", "600")
    assert "/var/lib/nodeprep/journal.json" in one.tree("/var/lib/nodeprep")
    done = one.json("apply", "--ip", IP, "--no-selftest", "--timeout", "0", rc=1)
    done.check("state.interrupted")
    kept = json.loads(one.read("/var/lib/nodeprep/record.json"))
    for part in ("since_first", "last_run"):
        assert [a["kind"] for a in kept[part]][:2] == ["link", "address_add"]
        assert len(kept[part]) == len(done.doc["actions"])
    assert "/var/lib/nodeprep/journal.json" not in one.tree("/var/lib/nodeprep")


@pytest.mark.parametrize("name", ["a\u009b2Jb", "\u202e\u2066ab", "i\x1b[31m\x7f", "i\"\\{}\u2028"])
@pytest.mark.parametrize("argv", [
    ["show"], ["show", "--json"], ["plan", "--ifname", "{}"], ["plan", "--ifname", "{}", "--json"],
    ["plan", "--ip", "{}=" + IP, "--json"], ["check", "--ip", IP, "--prometheus"],
    ["plan", "--config", "{}", "--json"], ["show", "config", "--unit", "{}", "--json"]],
    ids=" ".join)
def test_a_name_is_no_command_to_the_terminal(node, name, argv):
    """Of a netdev, or an argument: nothing but plain characters goes out, in JSON too."""
    one = node("guide.ini")
    one.text("ip", "tuntap", "add", "dev", name, "mode", "tap")
    done = one.run(NODEPREP, *(a.replace("{}", name) for a in argv), env={"TERM": "xterm"})
    said = done.stdout + done.stderr
    assert said and all(c in "\n\t" or " " <= c <= "\x7e" or c == "\x7f" and "--json" in argv
                        for c in said), ascii(said)
    if argv == ["show", "--json"]:
        assert name in [netdev["name"] for netdev in done.doc["show"]["netdevs"]]
