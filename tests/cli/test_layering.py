# SPDX-License-Identifier: MIT
"""The checks of the house find what they are there to find (tests/lint)."""

import os
import subprocess
import sys

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
LAYERING = os.path.join(TOP, "tests", "lint", "layering")
RULES = os.path.join(TOP, "tests", "lint", "rules")

# a house in which every arrow runs downwards
GOOD = {
    "base/err.h": "#include <stddef.h>\n",
    "base/err.c": '#include "base/err.h"\n#include <sys/types.h>\n#include <linux/openat2.h>\n',
    "netlink/link.h": '#include "base/err.h"\n#include <netlink/netlink.h>\n',
    "ibmad/ca.h": '#include "base/err.h"\n',
    "ibmad/private.h": "",
    "ibmad/umad.c": '#include "ibmad/ca.h"\n#include "ibmad/private.h"\n'
                    '#include <infiniband/umad.h>\n',
    "modules/module.h": '#include "base/err.h"\n',
    "agent/main.c": '#include "netlink/link.h"\n#include "ibmad/ca.h"\n#include "modules/module.h"\n'
                    '#include <jansson.h>\n#include <ini.h>\n',
    "selftest/rung.h": '#include <ucp/api/ucp.h>\n#include <jansson.h>\n',
    "selftest/main.c": '#include "selftest/rung.h"\n#include "ibmad/ca.h"\n',
}


def lay_out(tree, files):
    for path, text in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)


def layering(tree):
    return subprocess.run([sys.executable, LAYERING, tree], text=True, capture_output=True,
                          check=False, timeout=30)


def test_good_tree(tmp_path):
    lay_out(tmp_path, GOOD)
    done = layering(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("path, include", [
    ("base/err.c", '"agent/main.h"'),          # up
    ("base/err.c", '"netlink/link.h"'),
    ("netlink/link.c", '"ibmad/ca.h"'),        # sideways
    ("ibmad/ca.c", '"modules/module.h"'),
    ("modules/module.c", '"agent/main.h"'),
    ("agent/show.c", '"selftest/rung.h"'),
    ("agent/show.c", '"ibmad/private.h"'),     # another folder's inside
    ("selftest/tcp.c", '"agent/main.h"'),
    ("selftest/tcp.c", '"netlink/link.h"'),
    ("agent/show.c", '"tests/unit/fake.h"'),
    ("agent/show.c", '"err.h"'),               # no path from the top
    ("agent/show.c", '"base/gone.h"'),
    ("agent/show.c", "<netlink/route/link.h>"),  # another folder's library
    ("agent/show.c", "<infiniband/umad.h>"),
    ("agent/show.c", "<infiniband/verbs.h>"),
    ("agent/show.c", "<ucp/api/ucp.h>"),
    ("ibmad/ca.c", "<jansson.h>"),
    ("selftest/tcp.c", "<ini.h>"),
    ("selftest/tcp.c", "<infiniband/umad.h>"),
    ("selftest/tcp.c", "<cuda.h>"),            # opened with dlopen
    ("base/err.c", "<glib.h>"),                # nobody's library
    ("base/err.c", "HEADER"),
])
def test_bad_include(tmp_path, path, include):
    lay_out(tmp_path, GOOD)
    lay_out(tmp_path, {"agent/main.h": "", "tests/unit/fake.h": "",
                       path: '/* #include "not/this.h" */\n\n#  include %s\n' % include})
    done = layering(tmp_path)
    assert done.returncode == 1 and done.stderr == ""
    assert len(done.stdout.splitlines()) == 1, done.stdout
    assert done.stdout.startswith(path + ":3: ")


def test_no_tree(tmp_path):
    assert layering(tmp_path).returncode == 2


@pytest.mark.parametrize("rule, path, text, line", [
    ("length", "agent/a.c", "\n" * 501, 501),
    ("length", "tests/a", "#!/usr/bin/python3\n" + "\n" * 500, 501),
    ("length", "tests/a.py", "\n" * 500, 0),
    ("length", "docs/a.md", "\n" * 900, 0),
    ("spdx", "agent/a.c", "int a;\n", 1),
    ("spdx", "etc/a", "a = 1\n", 1),
    ("spdx", "etc/a", "# SPDX-License-Identifier: MIT\n", 0),
    ("spdx", "docs/a.json", "{}\n", 0),
    ("programs", "base/a.c", "int a;\nint b = system(c);\n", 2),
    ("programs", "agent/a.c", "execvp (a, b);\n", 1),
    ("programs", "agent/a.c", "execve(a, b, c); np_system(d);\n", 0),
    ("programs", "agent/a.c", "exit(1);\n", 1),
    ("programs", "agent/main.c", "exit(1);\n", 0),
    ("programs", "agent/a.c", "_exit(1);\n", 0),
    ("programs", "tests/unit/a.c", "system(c);\n", 0),
    ("stdout", "netlink/a.c", "/* no\n*/ puts(a);\n", 2),
    ("stdout", "netlink/a.c", "fprintf(stdout, a);\n", 1),
    ("stdout", "netlink/a.c", 'fprintf(stderr, "stdout printf("); // puts()\n', 0),
    ("stdout", "netlink/a.c", "np_buf_printf(a); snprintf(b); r.stdout = 1;\n", 0),
    ("stdout", "agent/report.c", "puts(a);\n", 0),
    ("numbers", "agent/a.c", "a = strtol(b, 0, 10);\n", 1),
    ("numbers", "agent/a.c", 'sscanf(a, "%d", &b);\n', 1),
    ("numbers", "selftest/a.c", "\n\na = atoi(b);\n", 3),
    ("numbers", "base/a.c", "a = strtol(b, 0, 10);\n", 0),
    ("numbers", "agent/a.c", "strtok_r(a, b, c); np_parse_u64(a);\n", 0),
])
def test_rule(tmp_path, rule, path, text, line):
    lay_out(tmp_path, {path: text})
    done = subprocess.run([sys.executable, RULES, rule], input=path + "\n", text=True, cwd=tmp_path,
                          capture_output=True, check=False, timeout=30)
    assert done.stderr == ""
    assert done.returncode == (1 if line else 0), done.stdout
    if line:
        assert done.stdout.startswith("%s:%d: " % (path, line)) and done.stdout.count("\n") == 1
