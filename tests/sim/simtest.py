# SPDX-License-Identifier: MIT
"""For tests that need a simulated node: run simnode and look at the result."""

import os
import subprocess

SIM = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(SIM))
SIMNODE = os.path.join(SIM, "simnode")
NODES = os.path.join(SIM, "nodes")
GUIDE = os.path.join(NODES, "guide.ini")


def sim(*arguments, **options):
    options.setdefault("timeout", 300)
    return subprocess.run([SIMNODE, *arguments], text=True,
                          capture_output=True, check=False, **options)


def node(ini, *command, **options):
    """The stdout of a command on a node; it must succeed and say nothing."""
    done = sim(os.path.join(NODES, ini), "--", *command, **options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def shell(ini, script, *options, **keywords):
    done = sim(*options, os.path.join(NODES, ini), "--", "sh", "-c", script,
               **keywords)
    assert done.returncode == 0, done.stderr
    return done.stdout
