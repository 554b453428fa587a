# SPDX-License-Identifier: MIT
"""The schema of the documents is there, is strict, and is met by every verb."""

import jsonschema
import pytest
from helpers import IP, QUICK, SCHEMA, schema


def test_the_schema_is_there():
    """helpers.validate() holds every document of these tests against it."""
    assert schema() is not None, "no %s: no document was held against a schema" % SCHEMA
    jsonschema.Draft7Validator.check_schema(schema())


@pytest.fixture(scope="module")
def documents():
    from conftest import need_node  # pylint: disable=import-outside-toplevel
    import helpers  # pylint: disable=import-outside-toplevel
    need_node()
    found = []
    for ini in ("guide.ini", "sick.ini"):
        one = helpers.Node(ini)
        found += [one.json(verb, *argv).doc for verb, *argv in (
            ["plan", "--ip", IP], ["apply", "--ip", IP, *QUICK], ["apply", *QUICK],
            ["check", "--ip", IP], ["selftest", "rc"], ["show"], ["check", "--ifname", "eth9"],
            ["apply", "--ip", "nonsense"])]
        one.close()
    return found


def test_members_and_their_order(documents):
    for document in documents:
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


def broken(document, change):
    copy = dict(document)
    change(copy)
    return copy


@pytest.mark.parametrize("change", [
    lambda d: d.pop("schema"), lambda d: d.pop("actions"), lambda d: d.update(schema=2),
    lambda d: d.update(ready="yes"), lambda d: d.update(verb="aply"),
    lambda d: d.update(surprise=1), lambda d: d.update(checks=[{"id": "port"}]),
    lambda d: d.update(actions=[dict(d["actions"][0], status="maybe")]),
    lambda d: d.update(error={"code": "x"})])
def test_the_schema_refuses_what_is_wrong(documents, change):
    assert schema() is not None
    jsonschema.validate(documents[0], schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken(documents[0], change), schema())
