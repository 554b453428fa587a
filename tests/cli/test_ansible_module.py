# SPDX-License-Identifier: MIT
"""The module of the collection by itself, on a simulated node: what it makes of exit codes, of
documents, and of programs that print none."""

import ast
import json
import os
import shutil
import subprocess

import pytest

import helpers
import helpers_ansible as ours

DOCUMENT = {"schema": 1, "verb": "check", "version": "0.1.0", "changed": False, "ready": True,
            "actions": [], "checks": [], "selftest": []}
IP = dict(executable=helpers.PLAIN, ip=[helpers.IP], no_selftest=True, timeout=0)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    helpers.need_node()
    one = ours.Fleet(tmp_path_factory.mktemp("module"), "[defaults]\nforks = 8\n[ssh_connection]\npipelining = True\n")
    try:
        os.chmod(one.folder, 0o755)
        home = os.path.join(one.folder, "home", ".ansible", "collections", "ansible_collections", "nodeprep")
        os.makedirs(home)
        os.symlink(ours.PACKAGING, os.path.join(home, "node"))
        one.start("n1")
        one.start("n2", "--set", "port mlx5_1:1.state=INIT")
        one.inventory("n1\nn2\nn3\nghost\n", "nodeprep_executable=%s\nnodeprep_selftest=false\nnodeprep_timeout=0" % helpers.PLAIN)
        one.write("site.yml", "- hosts: all\n  gather_facts: false\n  roles: [nodeprep.node.nodeprep]\n")
        yield one
    finally:
        one.close()


@pytest.fixture
def fresh(fleet):
    """n1 and n2 as they were."""
    yield fleet
    for name in ("n1", "n2"):
        fleet.on(name, "sh", "-c", "%s revert; rm -rf /etc/nodeprep" % helpers.PLAIN)


@pytest.fixture
def fake(fleet):
    """fake(TEXT, CODE): a nodeprep that prints this and ends so."""
    path = os.path.join(fleet.folder, "fake")

    def make(text, code=0, before=""):
        if not isinstance(text, (str, bytes)):
            text = json.dumps(text)
        with open(path + ".out", "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        fleet.write("fake", "#!/bin/sh\n%s\ncat %s.out\nexit %d\n" % (before, path, code))
        os.chmod(path, 0o755)
        return path
    return make


# ---- documentation ----

def test_the_documentation_is_of_these_arguments(fleet):
    done = fleet.run("ansible-doc --json nodeprep.node.nodeprep")
    assert done.rc == 0, done
    told = json.loads(done.stdout)["nodeprep.node.nodeprep"]
    script = ("import json, sys; from ansible_collections.nodeprep.node.plugins.modules import nodeprep; "
              "print(json.dumps(nodeprep.ARGUMENTS))")
    env = dict(os.environ, PYTHONPATH=os.path.join(fleet.folder, "home", ".ansible", "collections"))
    spec = json.loads(subprocess.run([helpers.PYTHON, "-c", script], env=env, text=True, check=True,
                                     capture_output=True).stdout)
    assert set(spec) == set(told["doc"]["options"])
    for name, option in told["doc"]["options"].items():
        for key in ("type", "default", "choices", "elements"):
            assert option.get(key) == spec[name].get(key), (name, key)
    assert told["examples"] and {"verdict", "code", "result"} <= set(told["return"])


def test_the_role_has_a_default_for_each_argument_and_no_other():
    import yaml  # pylint: disable=import-outside-toplevel
    role = os.path.join(ours.PACKAGING, "roles", "nodeprep")
    with open(os.path.join(role, "defaults", "main.yml"), encoding="utf-8") as file:
        defaults = yaml.safe_load(file)
    with open(os.path.join(role, "meta", "argument_specs.yml"), encoding="utf-8") as file:
        specs = yaml.safe_load(file)["argument_specs"]
    for entry in specs.values():
        assert {name: option["default"] for name, option in entry["options"].items()} == defaults


def test_the_collection_has_the_version_of_nodeprep():
    with open(os.path.join(ours.PACKAGING, "galaxy.yml"), encoding="utf-8") as file:
        version = [line.split()[1] for line in file if line.startswith("version:")]
    with open(os.path.join(helpers.ROOT, "Makefile"), encoding="utf-8") as file:
        assert version == [line.split()[-1] for line in file if line.startswith("VERSION :=")]


# ---- the verbs ----

def test_apply_reports_changed_and_diff(fresh):
    answer = fresh.module("n1", check_mode=True, diff=True, **IP)
    assert answer["changed"] and answer["verdict"] == "unapplied" and answer["planned"] == 8
    rehearsed = answer["diff"]
    answer = fresh.module("n1", diff=True, **IP)
    assert answer["changed"] and answer["verdict"] == "ready" and answer["ready"] and answer["rc"] == 0
    assert answer["diff"]["before"] == rehearsed["before"] and answer["diff"]["after"] == rehearsed["after"]
    helpers.validate(answer["result"])
    answer = fresh.module("n1", diff=True, **IP)
    assert not answer["changed"] and answer["diff"]["before"] == answer["diff"]["after"] == ""
    answer = fresh.module("n1", verb="revert", check_mode=True, executable=helpers.PLAIN)
    assert answer["changed"] and "10.0.0.50/24" in fresh.on("n1", "ip", "addr")
    answer = fresh.module("n1", verb="revert", executable=helpers.PLAIN)
    assert answer["changed"] and "10.0.0.50/24" not in fresh.on("n1", "ip", "addr")
    assert not fresh.module("n1", verb="revert", executable=helpers.PLAIN)["changed"]


def test_a_sick_node_fails_with_its_code_unless_told_not_to(fresh):
    answer = fresh.module("n2", **IP)
    assert answer["failed"] and answer["changed"] and answer["rc"] == 1 and answer["verdict"] == "sick"
    assert answer["code"] == "port.no_sm" and answer["codes"] == ["port.no_sm"]
    assert answer["hint"].startswith("start a subnet manager") and "[port.no_sm]; fix: start" in answer["msg"]
    answer = fresh.module("n2", fail_not_ready=False, **IP)
    assert not answer["failed"] and answer["verdict"] == "sick" and not answer["ready"]
    # applying may mend it, so that check mode warns
    answer = fresh.module("n2", check_mode=True, **IP)
    assert not answer.get("failed") and [one for one in answer["warnings"] if "port.no_sm" in one]


def test_check_tells_what_is_left_to_do(fresh):
    answer = fresh.module("n1", verb="check", **IP)
    assert answer["failed"] and answer["verdict"] == "unapplied" and answer["code"] == "ansible.unapplied"
    assert answer["msg"] == "8 changes to make" and not answer["changed"]
    assert not fresh.module("n1", verb="check", fail_not_ready=False, **IP)["failed"]


@pytest.mark.parametrize("rc, code, verdict, more", [
    (2, "usage.address", "failed", dict(ip=["10.0.0.500/24"])),
    (2, "usage.unknown", "failed", dict(verb="check", last=True)),
    (3, "netdev.no_such_interface", "refused", dict(ifname="eth9")),
    (3, "privilege.root", "refused", dict(user="alice")),
    (2, "usage.unknown", "failed", dict(verb="selftest", ip=[], rungs=["--force"]))])
def test_what_nodeprep_refuses_is_a_failure_whatever_else(fleet, rc, code, verdict, more):
    user = more.pop("user", None)
    arguments = dict(IP, fail_not_ready=False, **more) if "ip" not in more else dict(IP, fail_not_ready=False)
    arguments.update(more)
    if more.get("verb") == "selftest":
        arguments = dict(executable=helpers.PLAIN, **{key: more[key] for key in ("verb", "rungs")})
    answer = fleet.module("n1", user=user, **arguments)
    assert answer["failed"] and (answer["rc"], answer["code"], answer["verdict"]) == (rc, code, verdict), answer
    assert not answer["changed"] and answer["hint"] and "\n" not in answer["msg"]


def test_show_gives_facts(fleet):
    answer = fleet.module("n1", verb="show", show=["ports", "netdevs"], executable=helpers.PLAIN)
    facts = answer["ansible_facts"]["nodeprep"]
    assert set(facts) == {"ports", "netdevs", "version"}
    assert [port["ca"] for port in facts["ports"]] == ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]


@pytest.mark.parametrize("verb", ["selftest", "confirm"])
def test_check_mode_skips_what_it_cannot_rehearse(fleet, verb):
    answer = fleet.module("n1", verb=verb, check_mode=True, executable="/nowhere")
    assert answer["skipped"] and not answer["changed"]


def test_who_called_sudo_makes_no_difference(fresh):
    assert fresh.module("n1", env=["SUDO_USER=alice", "SUDO_UID=1000"], **IP)["verdict"] == "ready"
    assert fresh.on("n1", "sh", "-c", "ls -A /home/alice /root | grep -c nccl").strip() == "1"
    assert "/root/.nccl.conf" in fresh.on("n1", "find", "/root", "/home", "-name", ".nccl.conf")


def test_the_deadline_ends_a_run_which_takes_itself_back(fresh):
    before = fresh.state("n2")
    for deadline in (2, 10, 60):  # a slow machine needs longer to come to where it waits
        answer = fresh.module("n2", **dict(IP, timeout=600, deadline=deadline))
        if answer.get("result", {}).get("actions"):
            break
    assert answer["failed"] and not answer["changed"] and answer["code"] == "internal.interrupted"
    assert answer["verdict"] == "failed" and answer["rc"] == 124
    assert {action["status"] for action in answer["result"]["actions"]} == {"undone"}
    assert [one for one in fresh.state("n2") if "nodeprep" not in one] == \
        [one for one in before if "nodeprep" not in one]


# ---- a configuration that is not in its place yet ----

def test_a_draft_is_read_with_the_files_that_are_there(fresh):
    fresh.on("n1", "sh", "-c", "mkdir -p /etc/nodeprep/conf.d && cd /etc/nodeprep && "
             "printf '[netdev ib0]\\naddress = 10.0.0.60/24\\n' >conf.d/10.conf && printf '[ports]\\nwait = 0\\n' >nodeprep.conf")
    before = fresh.state("n1")
    # alone it would lack the address
    draft = "# ours\n[netdev ib0]\nexclusive = yes\n"
    answer = fresh.module("n1", check_mode=True, diff=True, draft=draft, executable=helpers.PLAIN)
    assert "10.0.0.60/24" in answer["diff"]["after"] and answer["changed"]
    answer = fresh.module("n1", verb="show", show=["config"], draft="# ours\n[netdev ib0]\nmtus = 1\n",
                          executable=helpers.PLAIN)
    assert answer["failed"] and answer["code"] == "config.unknown_key"
    assert answer["msg"].startswith('/etc/nodeprep/conf.d/50-ansible.conf:3: unknown key "mtus"')
    answer = fresh.module("n1", draft=draft, executable=helpers.PLAIN)
    assert answer["failed"] and answer["code"] == "ansible.usage"
    assert fresh.state("n1") == before


# ---- programs that are not what they should be ----

@pytest.mark.parametrize("text, code, want", [
    ("", 0, "ansible.no_document"), ("", 139, "ansible.no_document"), ("nodeprep 0.0.1: ready\n", 0, "ansible.no_document"),
    (b"\x7fELF\x00\xff\xfe", 1, "ansible.no_document"), ("[" * 100000, 0, "ansible.no_document"),
    ('{"schema": NaN}', 0, "ansible.no_document"), ("[]", 0, "ansible.schema"), ("{}", 0, "ansible.schema"),
    (dict(DOCUMENT, schema=2), 0, "ansible.schema"), (dict(DOCUMENT, schema="1"), 0, "ansible.schema"),
    (dict(DOCUMENT, schema=True), 0, "ansible.schema"), (dict(DOCUMENT, verb="apply"), 0, "ansible.schema"),
    (dict(DOCUMENT, ready="yes"), 0, "ansible.schema"), (dict(DOCUMENT, actions=None), 0, "ansible.schema"),
    (dict(DOCUMENT, checks=[1]), 0, "ansible.schema"), (dict(DOCUMENT, error="no"), 0, "ansible.schema"),
    (dict(DOCUMENT, error={"code": "x'; rm -rf /", "message": "m", "hint": ""}), 3, "ansible.schema"),
    (dict(DOCUMENT, error={"code": "port.no_sm\n", "message": "m", "hint": ""}), 3, "ansible.schema"),
    (dict(DOCUMENT, verb="", ready=False, error={"code": "usage.no_verb", "message": "m", "hint": ""}), 2, "usage.no_verb"),
    (dict(DOCUMENT, error={"code": "internal", "message": "m", "hint": ""}), 0, "internal"),
    (DOCUMENT, 1, "ansible.no_reason"), (DOCUMENT, 77, "ansible.no_reason"), (dict(DOCUMENT, ready=False), 0, "ansible.no_reason")])
def test_what_is_no_document_is_a_clear_failure(fleet, fake, text, code, want):
    answer = fleet.module("n1", verb="check", executable=fake(text, code))
    assert answer["failed"] and answer["code"] == want and answer["verdict"] in ("failed", "sick"), answer
    assert answer["rc"] == code and "\n" not in answer["msg"] and len(answer["msg"]) < 1000
    assert not answer.get("changed")


def test_what_a_node_says_is_one_line_and_no_template(fleet, fake):
    """{{ }} of a node is text; so is what ends a line, or turns the direction of writing."""
    evil = u"{{ lookup('pipe', 'touch %s/ran') }} \x1b[2J\r\n\u2028\u202e\u2066{%% raw" % fleet.folder
    entry = {"id": "port.state", "target": evil, "status": "fail", "code": "port.no_sm", "message": evil, "hint": evil}
    program = fake(dict(DOCUMENT, ready=False, checks=[entry]), 1)
    answer = fleet.module("n1", verb="check", executable=program)
    assert answer["code"] == "port.no_sm" and answer["msg"].count("{{ lookup(") == 3
    assert [one for one in answer["msg"] if not one.isprintable()] == []
    done = fleet.run("ansible-playbook -i hosts.ini nodeprep.node.audit --limit n1 -e nodeprep_executable=%s" % program)
    assert done.rc == 0 and done.one("Judge", "n1")[1]["code"] == "port.no_sm", done
    with open(os.path.join(fleet.folder, "nodeprep-reports", "n1.json"), encoding="utf-8") as file:
        assert json.load(file)["result"]["checks"][0]["message"] == evil
    assert not os.path.exists(os.path.join(fleet.folder, "ran"))


@pytest.mark.parametrize("sections, want", [
    ({"ports": {"ignore": "mlx5_1:1\n[netdev ib0]\naddress = 10.9.9.9/24"}}, 'must be one line'),
    ({"ports\n": {"ignore": "mlx5_1:1"}}, 'must be one line'),
    ({"ports": {"ignore": {"mlx5_1": 1}}}, 'must be one line'),
    ({"ports": {"ignore": None}}, 'must be one line'),
    ({"ports": {"ignore": [["mlx5_1:1"]]}}, 'must be one line'),
    ({"ports": "mlx5_1:1"}, 'must have keys'),
    # a block of YAML ends in a line end
    ({"netdev ib0": {"address": "10.0.0.1/24\n", "mtu": 2044, "exclusive": False}, "ports": None, "nccl": {"users": ["a", "b"]}},
     "[netdev ib0]\naddress = 10.0.0.1/24\nmtu = 2044\nexclusive = no\n[ports]\n[nccl]\nusers = a\nusers = b\n"),
    ({"ucx": {"k": 'a "b" \'c\' $(d) % ; #'}}, "[ucx]\nk = a \"b\" 'c' $(d) % ; #\n")])
def test_a_value_of_the_inventory_is_one_line_of_the_file(fleet, sections, want):
    path = fleet.write("vars.yml", json.dumps({"nodeprep__sections": sections}))
    template = os.path.join(ours.PACKAGING, "roles/nodeprep/templates/50-ansible.conf.j2")
    done = fleet.run("ansible localhost -m ansible.builtin.template -a 'src=%s dest=%s/made' -e @%s"
                     % (template, fleet.folder, path))
    if not want.endswith("\n"):
        assert done.rc != 0 and want in done.stdout + done.stderr, done
        return
    assert done.rc == 0, done
    with open(os.path.join(fleet.folder, "made"), encoding="utf-8") as file:
        assert file.read().partition("\n")[2] == want


def test_python_of_rhel_8_takes_the_module():
    """3.6; older ones are not asked for."""
    for folder in ("modules", "module_utils"):
        path = os.path.join(ours.PACKAGING, "plugins", folder)
        for name in os.listdir(path):
            if name.endswith(".py"):
                with open(os.path.join(path, name), encoding="utf-8") as file:
                    assert ast.parse(file.read(), feature_version=(3, 6)).body


def test_the_same_program_is_taken_with_a_right_document(fleet, fake):
    assert fleet.module("n1", verb="check", executable=fake(DOCUMENT))["verdict"] == "ready"


def test_a_program_that_is_not_there_or_hangs(fleet, fake):
    for name in ("/nowhere/nodeprep", "no-such-nodeprep", "/etc/passwd", "/etc"):
        answer = fleet.module("n1", verb="check", executable=name)
        assert answer["failed"] and answer["code"] == "ansible.no_program" and name in answer["msg"]
    answer = fleet.module("n1", verb="check", deadline=1, executable=fake("", before="exec sleep 300"))
    assert answer["failed"] and answer["code"] == "ansible.deadline" and answer["rc"] == 124


# ---- the role, where the README has no line for it ----

def test_another_run_on_the_node_is_waited_for(fresh, fake):
    busy = dict(DOCUMENT, verb="apply", ready=False,
                error={"code": "lock.busy", "message": "another nodeprep apply is at work", "hint": "wait for it to end"})
    flag = os.path.join(fresh.folder, "tried")
    program = fake(busy, 3, 'case $1 in apply) [ -e %s ] || { : >%s; cat "$0.out"; exit 3; }; esac; exec %s "$@"'
                   % (flag, flag, helpers.PLAIN))
    done = fresh.run("ansible-playbook -i hosts.ini site.yml --limit n1 -e nodeprep_executable=%s -e nodeprep_lock_delay=0 "
                     "-e nodeprep_address=hosts:%%h-ib0/24 -e '{\"nodeprep_gather\": []}'" % program)
    # the node has no such name: a source without an answer ends the run before anything is changed
    assert done.rc == 2 and "[address.hosts_" in done.stdout, done
    assert os.path.exists(flag) and done.one("Apply", "n1")[1]["attempts"] == 2
    fresh.on("n1", "sh", "-c", "echo 10.0.0.70 n1-ib0 >>/etc/hosts")
    done = fresh.run("ansible-playbook -i hosts.ini site.yml --limit n1 -e nodeprep_executable=%s -e nodeprep_lock_delay=0 "
                     "-e nodeprep_address=hosts:%%h-ib0/24 -e '{\"nodeprep_gather\": []}'" % program)
    assert done.rc == 0, done
    assert "10.0.0.70/24" in fresh.on("n1", "ip", "addr", "show", "ib0")


def test_confirm_and_async_and_what_the_configuration_becomes(fresh):
    fresh.write("vars.yml", json.dumps({
        "nodeprep_address": "10.0.0.80/24", "nodeprep_confirm": 60, "nodeprep_async": 60, "nodeprep_users": ["alice"],
        "nodeprep_config": {"ports": {"ignore": ["mlx5_1:1", "mlx5_2:1"]}, "netdev ib0": {"exclusive": True}}}))
    done = fresh.run("ansible-playbook -i hosts.ini site.yml -e @vars.yml --limit n2")
    assert done.rc == 0 and done.hosts("Apply", "changed") == ["n2"], done
    assert [one["code"] for one in done.one("Confirm", "n2")[1]["result"]["checks"]] == ["confirm.kept"]
    assert fresh.on("n2", "cat", "/etc/nodeprep/conf.d/50-ansible.conf").splitlines()[1:] == [
        "[netdev ib0]", "address = 10.0.0.80/24", "exclusive = yes", "[nccl]", "users = alice", "[ports]",
        "ignore = mlx5_1:1", "ignore = mlx5_2:1"]
    assert fresh.on("n2", "find", "/root/.ansible", "/root/.ansible_async", "-type", "f") == ""
    assert "NCCL_SOCKET_IFNAME" in fresh.on("n2", "cat", "/home/alice/.nccl.conf")
    # what nodeprep does not take never gets there
    fresh.write("vars.yml", json.dumps({"nodeprep_config": {"ports": {"ignored": "mlx5_1:1"}}}))
    done = fresh.run("ansible-playbook -i hosts.ini site.yml -e @vars.yml --limit n2")
    assert done.rc == 2 and "50-ansible.conf:3: unknown key" in done.stdout, done
    assert "10.0.0.80/24" in fresh.on("n2", "cat", "/etc/nodeprep/conf.d/50-ansible.conf")


def test_a_package_of_the_control_node_is_installed(fleet):
    tree = os.path.join(fleet.folder, "deb")
    os.makedirs(os.path.join(tree, "DEBIAN"))
    os.makedirs(os.path.join(tree, "opt", "made"))
    shutil.copy(helpers.PLAIN, os.path.join(tree, "opt", "made", "nodeprep"))
    fleet.write("deb/DEBIAN/control", "Package: nodeprep-made\nVersion: 1\nArchitecture: all\n"
                "Maintainer: nobody <nobody@example.org>\nDescription: a program in a package\n")
    subprocess.run(["dpkg-deb", "-b", tree, os.path.join(fleet.folder, "made.deb")], check=True, capture_output=True)
    fleet.start("n3", "--set", "node.private=/opt")
    run = ("ansible-playbook -i hosts.ini site.yml --limit n3 -e nodeprep_package=%s/made.deb "
           "-e nodeprep_executable=/opt/made/nodeprep -e nodeprep_address=10.0.0.90/24 " % fleet.folder)
    before = fleet.state("n3")
    done = fleet.run(run + "--check")
    # nothing is there yet that could plan
    assert done.rc == 0 and "not installed yet" in done.stdout and not done.hosts("Apply", "ok", "changed"), done
    assert fleet.state("n3") == before
    done = fleet.run(run + "--tags install")
    assert done.rc == 0 and done.count("changed") == {"n3": 2} and not done.of("Apply"), done
    assert fleet.on("n3", "dpkg-query", "-W", "-f", "${Version}", "nodeprep-made") == "1"
    assert fleet.state("n3") == before
    done = fleet.run(run)
    assert done.rc == 0 and done.hosts("Apply", "changed") == ["n3"], done
    assert done.hosts("Install the .deb", "ok") == done.hosts("Copy the package", "ok") == ["n3"]


def test_the_audit_lists_nodes_that_cannot_be_asked(fleet):
    done = fleet.run("ansible-playbook -i hosts.ini nodeprep.node.audit -e nodeprep_executable=/nowhere --limit n1,ghost")
    assert '"unreachable: 1: ghost' in done.stdout and '"failed: 1: n1 (ansible.no_program)"' in done.stdout, done
    with open(os.path.join(fleet.folder, "nodeprep-reports", "ghost.json"), encoding="utf-8") as file:
        assert json.load(file)["verdict"] == "unreachable"
    assert os.path.getsize(os.path.join(fleet.folder, "nodeprep-reports", "drain.txt")) <= 1
