# SPDX-License-Identifier: MIT
"""A connection of Ansible to started simulated nodes, for the tests: as far as ssh goes, every
command is a new process on the node, and files come and go through one."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
name: simnode
short_description: run on a node that simnode has started
description:
  - Commands run through C(simnode exec).
author: the authors of nodeprep
options:
  remote_addr:
    description: The name that the node was started with.
    default: inventory_hostname
    vars:
      - name: inventory_hostname
      - name: ansible_host
  remote_user:
    description: The user of the node.
    default: root
    vars:
      - name: ansible_user
"""

import os
import subprocess

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.connection import ConnectionBase
from ansible.utils.path import makedirs_safe

SIMNODE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "simnode")
NO_NODE = 125


class Connection(ConnectionBase):
    transport = "simnode"
    has_pipelining = True

    def _connect(self):
        self._connected = True
        return self

    def reset(self):
        self._connected = False

    def close(self):
        self._connected = False

    def _run(self, script, data):
        argv = [SIMNODE, "exec", "--user", self.get_option("remote_user"), self.get_option("remote_addr"), "--",
                "/bin/sh", "-c", script]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd="/") as process:
            out, err = process.communicate(data)
        if process.returncode == NO_NODE and b"simnode:" in err:
            raise AnsibleConnectionFailure(err.decode("utf-8", "replace").strip())
        return process.returncode, out, err

    def exec_command(self, cmd, in_data=None, sudoable=True):
        return self._run(cmd, in_data)

    def put_file(self, in_path, out_path):
        with open(in_path, "rb") as file:
            code, _out, err = self._run("cat >%s" % self._shell.quote(out_path), file.read())
        if code:
            raise AnsibleError("%s: %s" % (out_path, err.decode("utf-8", "replace")))

    def fetch_file(self, in_path, out_path):
        code, out, err = self._run("cat <%s" % self._shell.quote(in_path), b"")
        if code:
            raise AnsibleError("%s: %s" % (in_path, err.decode("utf-8", "replace")))
        makedirs_safe(os.path.dirname(out_path))
        with open(out_path, "wb") as file:
            file.write(out)
