# SPDX-License-Identifier: MIT
"""The schema of the documents is there, is strict, and is met by every verb."""

import jsonschema
import pytest
from helpers import IP, QUICK, SCHEMA, Node, need_node, schema


def test_the_schema_is_there():
    """helpers.validate() holds every document of these tests against it."""
    assert schema() is not None, "no %s: no document was held against a schema" % SCHEMA
    jsonschema.Draft7Validator.check_schema(schema())


def documents():
    """What each verb says on a well and on a sick node."""
    need_node()
    found = []
    for ini in ("guide.ini", "sick.ini"):
        one = Node(ini)
        found += [one.json(verb, *argv).doc for verb, *argv in (
            ["plan", "--ip", IP], ["apply", "--ip", IP, *QUICK], ["apply", *QUICK],
            ["check", "--ip", IP], ["selftest", "rc"], ["show"], ["check", "--ifname", "eth9"],
            ["apply", "--ip", "nonsense"])]
        one.close()
    return found


def test_members_and_their_order():
    for document in documents():
        members = list(document)
        assert members[:8] == ["schema", "verb", "version", "changed", "ready", "actions",
                               "checks", "selftest"]
        assert set(members[8:]) <= {"show", "error"}
        assert ("show" in members) is (document["verb"] == "show" and "error" not in members)
        for action in document["actions"]:
            assert list(action) == ["id", "target", "from", "to", "status"]
            assert action["status"] in ("planned", "done", "failed", "undone", "not_run")
        for check in document["checks"]:
            assert list(check) == ["id", "target", "status", "code", "message", "hint"]
            assert check["status"] in ("ok", "fail", "warn", "unknown", "skip")
            assert check["code"] and check["message"] and "\n" not in check["message"]
            # what is wrong comes with what to do
            assert check["hint"] or check["status"] in ("ok", "skip"), check
        for entry in document["selftest"]:
            assert set(entry) == {"rung", "device", "transport", "status", "code", "message",
                                  "hint", "size_bytes", "latency_us", "bandwidth_MBps", "sizes"}
        if "error" in document:
            assert list(document["error"]) == ["code", "message", "hint"]
            assert all(document["error"].values()), document["error"]


WRONG = [
    lambda d: d.pop("schema"), lambda d: d.pop("actions"), lambda d: d.update(schema=2),
    lambda d: d.update(ready="yes"), lambda d: d.update(verb="aply"),
    lambda d: d.update(surprise=1), lambda d: d.update(checks=[{"id": "port"}]),
    lambda d: d.update(actions=[dict(d["actions"][0], status="maybe")]),
    lambda d: d.update(error={"code": "x"})]


def test_the_schema_refuses_what_is_wrong(shared_guide):
    assert schema() is not None
    document = shared_guide.json("plan", "--ip", IP, rc=0).doc
    jsonschema.validate(document, schema())
    for number, change in enumerate(WRONG):
        wrong = dict(document)
        change(wrong)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema())
            print("change %d went through" % number)
