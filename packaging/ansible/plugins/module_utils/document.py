# -*- coding: utf-8 -*-
# SPDX-License-Identifier: MIT
# Copyright (c) the authors of nodeprep; see LICENSE of nodeprep
"""The document that nodeprep --json prints: whether it is one, and what it means. Pure."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import re

from ansible.module_utils.common.text.converters import to_native

SCHEMA = 1
MAX_DOCUMENT = 32 * 1024 * 1024
CODE = re.compile(r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*\Z")
# what ends a line or writes backwards is as bad in a message as what controls the terminal
UNPRINTABLE = re.compile(u"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")
JUDGES = ("apply", "check", "selftest")
MEMBERS = {"schema": int, "verb": str, "version": str, "changed": bool, "ready": bool,
           "actions": list, "checks": list, "selftest": list}
ITEMS = {"actions": ("id", "target", "from", "to", "status"),
         "checks": ("id", "target", "status", "code", "message", "hint"),
         "selftest": ("rung", "device", "status", "code", "message", "hint")}


class Failure(Exception):
    """What the module itself has to say: no program, no document."""

    def __init__(self, code, message, hint):
        Exception.__init__(self, message)
        self.code, self.message, self.hint = code, message, hint


def one_line(text, limit=400):
    """Printable in the order that it has, and short enough for a terminal."""
    text = re.sub(u"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+", u" ", to_native(text, errors="surrogate_or_replace")).strip()
    return text if len(text) <= limit else text[:limit] + "..."


# ---- what nodeprep printed ----

def no_constant(name):
    raise ValueError("%s is no JSON" % name)


def is_text(value):
    return isinstance(value, type(u"")) or isinstance(value, str)


def shape_error(document, verb):
    """Why this is no document of schema 1 for the verb; None where it is."""
    if not isinstance(document, dict):
        return "it is no object"
    schema = document.get("schema")
    if isinstance(schema, bool) or schema != SCHEMA:
        return "its schema is %s, this module knows %d" % (one_line(json.dumps(schema), 40), SCHEMA)
    for name, kind in MEMBERS.items():
        value = document.get(name)
        if not (is_text(value) if kind is str else isinstance(value, kind)):
            return "its member %s is missing, or of another type" % name
    if document["verb"] not in (verb, ""):
        return "it is of verb %s" % one_line(document["verb"], 40)
    lists = [(name, item, ITEMS[name]) for name in ITEMS for item in document[name]]
    if "error" in document:
        lists.append(("error", document["error"], ("code", "message", "hint")))
    for name, item, members in lists:
        if not isinstance(item, dict) or not all(is_text(item.get(member)) for member in members):
            return "an entry of %s is not as the schema has it" % name
        if item.get("code") and not (CODE.match(item["code"]) and len(item["code"]) < 48):
            return "a code of %s is not one" % name
    if verb == "show" and "error" not in document and not isinstance(document.get("show"), dict):
        return "its member show is missing"
    return None


def read_document(rc, out, err, verb):
    hint = "install a nodeprep of schema %d, or give the path of the right program as executable" % SCHEMA
    said = one_line(err or out, 200)
    said = "; it said: %s" % said if said else ""
    if rc in (124, 137) and not out.strip():
        raise Failure("ansible.deadline", "nodeprep %s did not end in time and printed no document%s" % (verb, said),
                      "look what the node waits for, or raise deadline")
    if not out.strip():
        raise Failure("ansible.no_document", "nodeprep %s printed no document (exit code %d)%s" % (verb, rc, said), hint)
    if len(out) > MAX_DOCUMENT:
        raise Failure("ansible.no_document", "nodeprep %s printed more than %d MiB" % (verb, MAX_DOCUMENT >> 20), hint)
    try:
        document = json.loads(out, parse_constant=no_constant)
    except (ValueError, RuntimeError):
        raise Failure("ansible.no_document",
                      "what nodeprep %s printed is no JSON (exit code %d): %s" % (verb, rc, one_line(out, 80)), hint)
    why = shape_error(document, verb)
    if why:
        raise Failure("ansible.schema", "nodeprep %s printed a document that this module cannot read: %s" % (verb, why),
                      hint)
    return document


# ---- what it means ----

def failures(document):
    """What is wrong, the heaviest first: {target, code, message, hint}."""
    found = []
    if "error" in document:
        found.append(dict(document["error"], target=""))
    found += [item for item in document["checks"] if item["status"] == "fail"]
    found += [dict(item, target=" ".join(part for part in (item["rung"], item["device"]) if part))
              for item in document["selftest"] if item["status"] == "fail"]
    return found


def sentence(item):
    text = "%s: %s" % (item["target"], item["message"]) if item["target"] else item["message"]
    text = "%s [%s]" % (one_line(text), item["code"]) if item["code"] else one_line(text)
    return "%s; fix: %s" % (text, one_line(item["hint"])) if item["hint"] else text


def pending(document):
    return [action for action in document["actions"] if action["status"] == "planned"]


def diff_of(document):
    """One line a change that was made, or would be; none that was taken back."""
    sides = {"from": [], "to": []}
    for action in document["actions"]:
        if action["status"] in ("planned", "done"):
            for side, lines in sides.items():
                if action[side]:
                    lines.append("%s %s: %s\n" % (action["target"], action["id"], action[side]))
    return dict(before="".join(sides["from"]), after="".join(sides["to"]),
                before_header="before nodeprep", after_header="after nodeprep")


def verdict_of(verb, rc, document):
    if rc == 3:
        return "refused"
    if rc not in (0, 1) or "error" in document:
        return "failed"
    if failures(document):
        return "sick"
    if rc == 1 or (verb in JUDGES and not document["ready"]):
        return "unapplied" if verb != "selftest" and pending(document) else "sick"
    return "unapplied" if verb == "plan" and pending(document) else "ready"


def first_words(verb, rc, document, verdict):
    """(message, code, hint) of the one line."""
    found = failures(document)
    if found:
        more = len(found) - 1
        text = sentence(found[0]) + (" (and %d more)" % more if more else "")
        return text, found[0]["code"], found[0]["hint"]
    if verdict == "unapplied":
        return ("%d changes to make" % len(pending(document)), "ansible.unapplied" if verb == "check" else "",
                "run nodeprep apply")
    if verdict == "ready":
        return "nodeprep %s: %s" % (verb, "ready" if verb in JUDGES else "done"), "", ""
    skipped = [item for item in document["selftest"] if item["status"] == "skip"]
    if rc == 1 and skipped:
        return sentence(dict(skipped[0], target=skipped[0]["rung"])), skipped[0]["code"], skipped[0]["hint"]
    return ("nodeprep %s ended with exit code %d without a reason in its document" % (verb, rc), "ansible.no_reason",
            "run it on the node by hand")
