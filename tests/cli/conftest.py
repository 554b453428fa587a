# SPDX-License-Identifier: MIT
"""Fixtures of the command-line tests. NODEPREP_BUILD names the build folder (build);
the sanitized program in it is the one under test, the plain one is for strace."""

import os
import sys

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import helpers  # noqa: E402  pylint: disable=wrong-import-position


@pytest.fixture
def node():
    """node(INI, *OPTIONS) starts a simulated node that ends with the test."""
    helpers.need_node()
    started = []

    def start(ini="guide.ini", *options, named=False):
        started.append(helpers.Node(ini, *options, named=named))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def guide(node):
    return node("guide.ini")


@pytest.fixture(scope="module")
def shared_guide():
    """One node for all tests of a module that leave it as it is."""
    helpers.need_node()
    one = helpers.Node("guide.ini")
    yield one
    one.close()
