# SPDX-License-Identifier: MIT
"""The collection by the real ansible-playbook, on eight started nodes at once: the lines of its
README in their order, gpu003 with a port that no subnet manager serves."""

import json
import os
import subprocess

import pytest

import helpers
import helpers_ansible as ours

NAMES = ["gpu%03d" % number for number in range(1, 9)]
SICK = "gpu003"
FEW = NAMES[:4]
QUICK = "nodeprep_executable=%s\nnodeprep_selftest=false\nnodeprep_timeout=0" % helpers.PLAIN
with open(os.path.join(ours.PACKAGING, "README.md"), encoding="utf-8") as page:
    README = page.read()
LINES = ours.commands(README)


def block(*words):
    found = [one for one in ours.blocks(README) if all(word in one for word in words)]
    assert len(found) == 1, words
    return found[0]


def line(*words):
    """The one line of the README with these words."""
    found = [one for one in LINES if all(word in one for word in words)]
    assert found and len(set(found)) == 1, (words, LINES)
    return found[0]


def hosts(one, names, extra=""):
    """The inventory of the README, with as many nodes."""
    readme = block("gpu001 nodeprep_address")
    assert readme.startswith("[gpu]\n")
    more = ["%s nodeprep_address=10.0.0.%d/24" % (name, number) for number, name in enumerate(names, 1)
            if name not in readme]
    one.inventory("\n".join([readme, *more]), QUICK + "\n" + extra)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    helpers.need_node()
    folder = tmp_path_factory.mktemp("fleet")
    one = ours.Fleet(folder, block("[defaults]"))
    try:
        done = one.run(line("ansible-galaxy"), cwd=helpers.ROOT)
        assert done.rc == 0, done
        for name in NAMES:
            one.start(name, *(["--set", "port mlx5_1:1.state=INIT"] if name == SICK else []))
        hosts(one, NAMES)
        # without a package, for nothing is installed here
        one.write("site.yml", block("role: nodeprep.node.nodeprep").split("\n    nodeprep_package")[0]
                  .replace("      nodeprep_package: nodeprep", ""))
        one.bare = {name: one.state(name) for name in NAMES}
        yield one
    finally:
        one.close()


@pytest.fixture(scope="module")
def rehearsed(fleet):
    done = fleet.run(line("site.yml", "--check"))
    fleet.after_check = {name: fleet.state(name) for name in NAMES}
    return done


@pytest.fixture(scope="module")
def first(fleet, rehearsed):
    return fleet.run(LINES[LINES.index(line("site.yml", "--check")) + 1])


@pytest.fixture(scope="module")
def second(fleet, first):
    fleet.after_first = {name: fleet.state(name) for name in NAMES}
    done = fleet.run(LINES[LINES.index(line("site.yml", "--check")) + 2])
    fleet.after_second = {name: fleet.state(name) for name in NAMES}
    return done


@pytest.fixture(scope="module")
def audited(fleet, second):
    hosts(fleet, FEW, "nodeprep_gather=[]")
    done = fleet.run(line("node.audit"))
    fleet.after_audit = {name: fleet.state(name) for name in FEW}
    return done


def test_check_mode_changes_nothing_and_says_all(fleet, rehearsed):
    assert rehearsed.rc == 0, rehearsed
    assert fleet.after_check == fleet.bare
    for name in NAMES:
        outcome, result = rehearsed.one("Apply", name)
        assert outcome == "changed" and result["planned"] >= 8, rehearsed
        # the address is in a file that is not there yet
        number = NAMES.index(name) + 1
        assert "ib0 netdev.address_add: 10.0.0.%d/24\n" % number in result["diff"]["after"]
        assert "ib0 netdev.link: down\n" in result["diff"]["before"]
    assert "+ib0 netdev.address_add: 10.0.0.8/24" in rehearsed.stdout
    assert rehearsed.one("Apply", SICK)[1]["verdict"] == "sick"
    assert any("port.no_sm" in text for text in rehearsed.one("Apply", SICK)[1]["warnings"])


def test_the_first_run_changes_every_node_and_the_sick_one_fails_alone(fleet, first):
    assert first.rc == 2, first
    assert first.hosts("Apply", "changed") == NAMES
    assert first.count("failed") == {SICK: 1} and not first.count("unreachable"), first
    told = first.one("Fail where the node is not ready", SICK)
    assert told[0] == "failed" and "[port.no_sm]; fix: start a subnet manager" in told[1]["msg"]
    assert "\n" not in told[1]["msg"]
    for number, name in enumerate(NAMES, 1):
        assert "10.0.0.%d/24" % number in fleet.on(name, "ip", "-br", "addr", "show", "ib0")


def test_facts_are_those_of_each_node(first):
    for number, name in enumerate(NAMES, 1):
        if name == SICK:
            continue
        facts = first.one("Gather facts", name)[1]["ansible_facts"]["nodeprep"]
        assert [port["port"] for port in facts["ports"]] == [1] * 4 and facts["version"]
        addresses = {one["name"]: one["addresses"] for one in facts["netdevs"]}
        assert any("10.0.0.%d/24" % number in json.dumps(one) for one in addresses["ib0"])


def test_the_second_run_changes_nothing(fleet, second):
    assert second.rc == 2 and second.count("failed") == {SICK: 1}
    assert second.count("changed") == {}, second
    assert fleet.after_second == fleet.after_first


def test_no_file_of_ansible_stays_on_a_node(fleet, second):
    for name in NAMES:
        assert fleet.on(name, "sh", "-c", "cd /; find root tmp var/tmp ! -type d ! -path 'tmp/pytest*'; "
                        "find root/.ansible -mindepth 2").split() == ["root/.nccl.conf"]


def test_the_audit_changes_nothing_and_lists_what_to_drain(fleet, audited):
    assert audited.rc == 0, audited
    assert fleet.after_audit == {name: fleet.after_second[name] for name in FEW} and audited.count("changed") == {}
    drain = "scontrol update nodename=%s state=drain reason='nodeprep: port.no_sm'" % SICK
    with open(os.path.join(fleet.folder, "nodeprep-reports", "drain.txt"), encoding="utf-8") as file:
        assert file.read() == drain + "\n"
    assert drain in audited.stdout and '"ready: 3"' in audited.stdout and '"sick: 1: gpu003 (port.no_sm)"' in audited.stdout
    assert block("scontrol update nodename=gpu005").replace("gpu005", SICK) == drain
    for name in FEW:
        with open(os.path.join(fleet.folder, "nodeprep-reports", name + ".json"), encoding="utf-8") as file:
            report = json.load(file)
        helpers.validate(report["result"])
        assert (report["host"], report["verdict"], report["planned"]) == \
            (name, "sick" if name == SICK else "ready", 0)


@pytest.fixture(scope="module")
def rolled(fleet, audited):
    """The rollout on nodes as they were before; gpu003 stops it."""
    for name in FEW:
        fleet.on(name, helpers.PLAIN, "revert")
    os.unlink(os.path.join(fleet.folder, "nodeprep-reports", FEW[-1] + ".json"))
    return fleet.run(LINES[LINES.index(line("node.audit")) + 1])


def test_the_rollout_stops_behind_the_failure(fleet, rolled):
    assert rolled.rc == 2, rolled
    # canary gpu001, then batches of one, the third of which is the sick one
    assert rolled.hosts("Apply", "changed") == NAMES[:3]
    assert rolled.count("failed") == {SICK: 1}
    assert "10.0.0.4/24" not in fleet.on(NAMES[3], "ip", "-br", "addr")
    assert not os.path.exists(os.path.join(fleet.folder, "nodeprep-reports", FEW[-1] + ".json"))


def test_what_failed_is_in_the_reports(fleet, rolled):
    table, drain = [fleet.run(one) for one in LINES if one.startswith("jq ")]
    assert table.stdout.split("\t")[:3] == [SICK, "sick", "port.no_sm"] and table.stdout.count("\n") == 1
    assert drain.stdout == "scontrol update nodename='%s' state=drain reason='nodeprep: port.no_sm'\n" % SICK


def test_the_rollout_goes_on_when_the_node_is_mended(fleet, rolled):
    done = subprocess.run([helpers.SIMNODE, "set", fleet.nodes[SICK], "port.mlx5_1:1.state=ACTIVE"], check=False)
    assert done.returncode == 0
    again = fleet.run(line("node.rollout", "nodeprep_canary"))
    assert again.rc == 0, again
    assert again.hosts("Apply", "ok") == NAMES[:2]
    assert again.hosts("Apply", "changed") == FEW[2:]
    back = fleet.run(line("tasks_from=revert"))
    assert back.rc == 0 and back.hosts("Revert", "changed") == FEW, back
    for name in FEW:
        assert "10.0.0." not in fleet.on(name, "ip", "-br", "addr", "show", "ib0")
        assert fleet.on(name, "sh", "-c", "find /etc/nodeprep/conf.d /root -type f || :") == ""


def test_every_line_of_the_readme_is_run_here():
    """The tests above take them by these words."""
    assert len(LINES) == 10, LINES
    assert [one for one in LINES if not any(word in one for word in (
        "ansible-galaxy", "site.yml", "node.audit", "node.rollout", "jq ", "tasks_from=revert"))] == []
