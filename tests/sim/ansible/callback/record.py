# SPDX-License-Identifier: MIT
"""For the tests: one line of JSON for each result, into the file that RECORD names."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
name: record
type: notification
short_description: record results as JSON lines
description:
  - A line for each result, C(host), C(task), C(outcome) and C(result).
author: the authors of nodeprep
"""

import json
import os

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "record"
    CALLBACK_NEEDS_ENABLED = True

    def _write(self, outcome, result):
        line = {"host": result._host.get_name(), "task": result._task.get_name().split(" : ")[-1],
                "outcome": outcome, "result": self._strip(result._result)}
        with open(os.environ["RECORD"], "a", encoding="utf-8") as file:
            file.write(json.dumps(line, default=str) + "\n")

    @staticmethod
    def _strip(result):
        return {key: value for key, value in result.items() if not key.startswith("_ansible")}

    def v2_runner_on_ok(self, result):
        self._write("changed" if result._result.get("changed") else "ok", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._write("ignored" if ignore_errors else "failed", result)

    def v2_runner_on_unreachable(self, result):
        self._write("unreachable", result)

    def v2_runner_on_skipped(self, result):
        self._write("skipped", result)
