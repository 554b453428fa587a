# SPDX-License-Identifier: MIT
"""The two ways simnode itself can fail, and its words on stderr."""

import sys

EXIT_USAGE = 2
EXIT_SETUP = 125
EXIT_CANNOT_EXEC = 126
EXIT_NOT_FOUND = 127

quiet = False


class UsageError(Exception):
    """A wrong command line or node file: exit 2."""


class SetupError(Exception):
    """The node cannot be made here: exit 125."""


def say(text):
    sys.stderr.write("simnode: %s\n" % text)
    sys.stderr.flush()


def warn(text):
    """Something the node file asks for is only there in a weaker form."""
    if not quiet:
        say("warning: " + text)


def nearest(word, known):
    """' (did you mean X?)' for the known word nearest to word, or ''."""
    best, best_cost = None, max(3, len(word) // 2 + 1)
    for candidate in known:
        cost = _distance(word, candidate)
        if cost < best_cost:
            best, best_cost = candidate, cost
    return " (did you mean %s?)" % best if best else ""


def _distance(a, b):
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, cb in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1,
                                       last + (ca != cb))
    return row[-1]
