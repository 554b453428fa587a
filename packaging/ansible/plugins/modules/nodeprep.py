#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: MIT
# Copyright (c) the authors of nodeprep; see LICENSE of nodeprep
"""Runs nodeprep --json and tells Ansible what its document says; no judgement of its own."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: nodeprep
short_description: Make a GPU and InfiniBand node ready, check it, or take it back
version_added: "0.1.0"
description:
  - Runs C(nodeprep) on the node and reports what its JSON document says.
  - It brings up IPoIB, checks every port, writes the configuration of NCCL and UCX, and moves
    data to show that the path works. A second run changes nothing, a failure takes back what
    was done.
  - The result is that of root alone. Who logged in, or called sudo, makes no difference; owners
    of homes are named with I(users) or in the configuration.
author:
  - the authors of nodeprep (@nodeprep)
requirements:
  - nodeprep on the node, of JSON schema 1
options:
  verb:
    description:
      - What nodeprep does. C(apply) makes the node ready, C(plan) says what that would do,
        C(check) judges, C(selftest) proves the data paths, C(show) tells facts, C(revert) takes
        back what C(apply) did, C(confirm) keeps what C(apply) with I(confirm) did.
    type: str
    choices: [apply, plan, check, selftest, show, revert, confirm]
    default: apply
  ip:
    description:
      - Addresses for IPoIB netdevs, C(ADDR/LEN) or C(IFNAME=ADDR/LEN). They replace those that
        the configuration has for the netdev.
    type: list
    elements: str
    default: []
  ifname:
    description:
      - The IPoIB netdev, where it is not ib0.
    type: str
  users:
    description:
      - Owners of homes that get a C(.nccl.conf), besides root. With I(verb=show) one, whose
        configuration is shown.
    type: list
    elements: str
    default: []
  no_selftest:
    description:
      - Do not try the data paths.
    type: bool
    default: false
  no_probe:
    description:
      - Do not ask the fabric whether another node has the address.
    type: bool
    default: false
  force:
    description:
      - Go on also where that can cut the default route or a running job.
    type: bool
    default: false
  confirm:
    description:
      - Take the run back unless I(verb=confirm) is run within so many seconds.
    type: int
  last:
    description:
      - With I(verb=revert) take back the last run alone.
    type: bool
    default: false
  rungs:
    description:
      - The rungs of I(verb=selftest); all of them by default.
    type: list
    elements: str
    default: []
  show:
    description:
      - What I(verb=show) tells; all of it by default.
    type: list
    elements: str
    choices: [ports, netdevs, modules, libraries, config, topology, gpus]
    default: []
  config:
    description:
      - Read this file of the node instead of C(/etc/nodeprep/nodeprep.conf) and C(conf.d).
    type: path
  draft:
    description:
      - Content of a configuration file that is not in its place yet. The files of the node are
        read as if it were there; nothing is written. For C(plan), C(check), C(show), and for
        C(apply) in check mode.
    type: str
  draft_path:
    description:
      - The place of I(draft), in a folder C(conf.d) beside C(nodeprep.conf).
    type: path
    default: /etc/nodeprep/conf.d/50-ansible.conf
  timeout:
    description:
      - Seconds to wait for ports and netdevs, and the deadline of each rung.
    type: int
  deadline:
    description:
      - Seconds for the whole run. After that nodeprep is told to end, and takes back what it did;
        a minute later it is killed. C(0) sets none.
    type: int
    default: 900
  executable:
    description:
      - The program, as a path or as a name that is looked for.
    type: str
    default: nodeprep
  fail_not_ready:
    description:
      - With C(false) a node that is not ready is no failure of the task; see I(ready) and
        I(verdict). What nodeprep refuses, or cannot do, stays a failure.
    type: bool
    default: true
attributes:
  check_mode:
    description:
      - C(apply) becomes C(plan) and C(revert) a dry run. C(selftest) and C(confirm) are skipped.
        The others change nothing anyway.
    support: full
  diff_mode:
    description: One line a change, as nodeprep names it.
    support: full
notes:
  - In check mode a node that would not be ready after C(apply) is a warning, no failure, since
    applying may mend it. I(verb=check) is the judgement.
"""

EXAMPLES = r"""
- name: Make the node ready
  nodeprep.node.nodeprep:
    ip: 10.0.0.50/24
    users: [alice]

- name: The same, with the address from the configuration or its address source
  nodeprep.node.nodeprep:

- name: Look, and go on with nodes that are not ready
  nodeprep.node.nodeprep:
    verb: check
    fail_not_ready: false
  register: checked

- name: Tell the facts of ports and netdevs
  nodeprep.node.nodeprep:
    verb: show
    show: [ports, netdevs]

- name: Back to before the first apply
  nodeprep.node.nodeprep:
    verb: revert
"""

RETURN = r"""
ready:
  description: Whether the plan is empty and no check and no rung failed.
  returned: when nodeprep printed a document
  type: bool
verdict:
  description:
    - C(ready); C(unapplied), only changes are left to make; C(sick), a check or a rung failed;
      C(refused), nodeprep must not or cannot run here; C(failed), anything else.
  returned: always
  type: str
code:
  description:
    - The code of I(msg), see nodeprep-codes(7); empty where all is well. Those of this module start with
      C(ansible.).
  returned: always
  type: str
  sample: port.no_sm
codes:
  description: All codes that failed, each once.
  returned: always
  type: list
  elements: str
hint:
  description: How to mend it; can be empty.
  returned: always
  type: str
rc:
  description: The exit code of nodeprep.
  returned: when it was run
  type: int
result:
  description: The document that nodeprep printed, see C(nodeprep.schema.json).
  returned: when nodeprep printed a document
  type: dict
planned:
  description: How many changes are left to make, or would be made.
  returned: when nodeprep printed a document
  type: int
ansible_facts:
  description: The facts of I(verb=show).
  returned: with I(verb=show)
  type: complex
  contains:
    nodeprep:
      description: The version of nodeprep, and a list for each noun of I(show).
      type: dict
"""

import json
import os
import re
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nodeprep.node.plugins.module_utils.document import (
    JUDGES, Failure, diff_of, failures, first_words, one_line, pending, read_document, sentence, verdict_of)

MAX_WARNINGS = 20
# what apply is going to do needs no warning in check mode
APPLY = "run nodeprep apply"
NOUNS = ["ports", "netdevs", "modules", "libraries", "config", "topology", "gpus"]

ARGUMENTS = dict(
    verb=dict(type="str", default="apply",
              choices=["apply", "plan", "check", "selftest", "show", "revert", "confirm"]),
    ip=dict(type="list", elements="str", default=[]),
    ifname=dict(type="str"),
    users=dict(type="list", elements="str", default=[]),
    no_selftest=dict(type="bool", default=False),
    no_probe=dict(type="bool", default=False),
    force=dict(type="bool", default=False),
    confirm=dict(type="int"),
    last=dict(type="bool", default=False),
    rungs=dict(type="list", elements="str", default=[]),
    show=dict(type="list", elements="str", default=[], choices=NOUNS),
    config=dict(type="path"),
    draft=dict(type="str"),
    draft_path=dict(type="path", default="/etc/nodeprep/conf.d/50-ansible.conf"),
    timeout=dict(type="int"),
    deadline=dict(type="int", default=900),
    executable=dict(type="str", default="nodeprep"),
    fail_not_ready=dict(type="bool", default=True),
)


# ---- what is run ----

def command(params, check_mode):
    """The words behind the program; None where check mode has nothing to run."""
    verb = params["verb"]
    words = []
    if check_mode:
        if verb in ("selftest", "confirm"):
            return None
        if verb == "apply":
            verb = "plan"
        elif verb == "revert":
            words.append("--dry-run")
    words = [verb, "--json"] + words
    for name, values in (("ip", params["ip"]), ("user", params["users"])):
        words += ["--%s=%s" % (name, value) for value in values]
    for name in ("ifname", "config", "confirm", "timeout"):
        if params[name] is not None:
            words.append("--%s=%s" % (name, params[name]))
    for name in ("no_selftest", "no_probe", "force", "last"):
        if params[name]:
            words.append("--" + name.replace("_", "-"))
    # such a word cannot be taken for an option
    return words + ["./" + name if name.startswith("-") else name for name in params["rungs"] + params["show"]]


def read_file(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except (IOError, OSError) as error:
        raise Failure("ansible.config", "%s: %s" % (path, error.strerror or error),
                      "make it a file that root can read")


def draft_files(path, content):
    """[(path, bytes)] of the configuration as it is going to be, in the order of nodeprep."""
    folder = os.path.dirname(path)
    first = os.path.join(os.path.dirname(folder), "nodeprep.conf")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    others = set(os.path.join(folder, name) for name in names if name.endswith(".conf") and name[0] != ".")
    others.add(path)
    found = []
    for name in ([first] if os.path.exists(first) else []) + sorted(others):
        data = content.encode("utf-8") if name == path else read_file(name)
        found.append((name, data if data.endswith(b"\n") else data + b"\n"))
    return found


def name_lines(text, joined, files):
    """FILE:LINE in the place of a line of what they were joined to."""
    def name(match):
        line = int(match.group(1))
        for path, data in files:
            count = data.count(b"\n")
            if line <= count:
                # it may stand in JSON
                return "%s:%d" % (json.dumps(path)[1:-1], line)
            line -= count
        return match.group(0)
    return re.sub(re.escape(joined) + r":(\d+)", name, text)


def find_program(module):
    name = module.params["executable"]
    if "/" in name:
        found = name if os.access(name, os.X_OK) and not os.path.isdir(name) else None
    else:
        found = module.get_bin_path(name, opt_dirs=["/usr/local/sbin", "/usr/sbin", "/sbin"])
    if not found:
        raise Failure("ansible.no_program", "%s is not installed, or cannot be executed" % one_line(name),
                      "install the package, or give the path as executable")
    return found


def run(module, argv, descriptors=None):
    limit = module.get_bin_path("timeout")
    if module.params["deadline"] > 0 and not limit:
        module.warn("without the program timeout there is no deadline")
    elif module.params["deadline"] > 0:
        argv = [limit, "-k", "60", str(module.params["deadline"])] + argv
    # the same run whoever called sudo, and the same as at boot
    for name in ("SUDO_USER", "SUDO_UID", "SUDO_GID", "SUDO_COMMAND"):
        os.environ.pop(name, None)
    return module.run_command(argv, pass_fds=descriptors)


def run_with_draft(module, argv, files):
    """The files joined in one that has no name, so that none is left behind."""
    with tempfile.TemporaryFile() as joined:
        joined.write(b"".join(content for path, content in files))
        joined.flush()
        name = "/proc/self/fd/%d" % joined.fileno()
        rc, out, err = run(module, argv + ["--config=" + name], [joined.fileno()])
    return rc, name_lines(out, name, files), name_lines(err, name, files)


# ---- what Ansible is told ----

def warn(module, document, rehearsed):
    lines = [sentence(dict(item, target=item.get("target", item.get("rung", ""))))
             for item in document["checks"] + document["selftest"]
             if item["status"] == "warn" and not (rehearsed and item["hint"] == APPLY)]
    if rehearsed:
        lines += ["would not be ready: " + sentence(item) for item in failures(document)]
    for line in lines[:MAX_WARNINGS]:
        module.warn(line)
    if len(lines) > MAX_WARNINGS:
        module.warn("%d further warnings are in the document" % (len(lines) - MAX_WARNINGS))


def tell(module, words, rc, document, err):
    verb = words[0]
    verdict = verdict_of(verb, rc, document)
    message, code, hint = first_words(verb, rc, document, verdict)
    planned = pending(document)
    rehearsed = module.check_mode and module.params["verb"] in ("apply", "revert")
    answer = dict(
        msg=message, code=code, hint=hint, rc=rc, verdict=verdict, ready=document["ready"], result=document,
        planned=len(planned), changed=bool(planned) if rehearsed else document["changed"],
        codes=list(dict.fromkeys(item["code"] for item in failures(document) if item["code"])))
    if err.strip():
        answer["stderr"] = err[-4000:]
    if module._diff and (rehearsed or module.params["verb"] in ("apply", "plan", "revert")):
        answer["diff"] = diff_of(document)
    if module.params["verb"] == "show" and "show" in document:
        answer["ansible_facts"] = dict(nodeprep=dict(document["show"], version=document["version"]))
    warn(module, document, rehearsed and words[0] == "plan")
    not_ready = verb in JUDGES and verdict in ("sick", "unapplied")
    if verdict in ("refused", "failed") or (not_ready and module.params["fail_not_ready"]) or \
            (rc != 0 and not not_ready):
        module.fail_json(**answer)
    # said, since Ansible takes an rc for a failure else
    module.exit_json(failed=False, **answer)


def main():
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True,
                           mutually_exclusive=[("config", "draft")])
    params = module.params
    if params["draft"] is not None and not (
            params["verb"] in ("plan", "check", "show") or (params["verb"] == "apply" and module.check_mode)):
        module.fail_json(msg="draft is for plan, check and show, and for apply in check mode", code="ansible.usage",
                         codes=["ansible.usage"], hint="put the file in its place first", verdict="failed")
    words = command(params, module.check_mode)
    if words is None:
        module.exit_json(changed=False, skipped=True, verdict="ready", code="", codes=[], hint="",
                         msg="nodeprep %s is not run in check mode" % params["verb"])
    rc = None
    try:
        program = find_program(module)
        if params["draft"] is None:
            rc, out, err = run(module, [program] + words)
        else:
            rc, out, err = run_with_draft(module, [program] + words,
                                          draft_files(params["draft_path"], params["draft"]))
        document = read_document(rc, out, err, words[0])
    except Failure as failure:
        answer = dict(msg=sentence(dict(target="", code=failure.code, message=failure.message, hint=failure.hint)),
                      code=failure.code, codes=[failure.code], hint=failure.hint, verdict="failed")
        if rc is not None:
            answer["rc"] = rc
        module.fail_json(**answer)
    tell(module, words, rc, document, err)


if __name__ == "__main__":
    main()
