# SPDX-License-Identifier: MIT
"""docs/is-my-cluster-ready.md: its commands exist, and those that can run here are run and say
what the page says."""

import os
import re
import shlex
import shutil
import subprocess

import pytest
from helpers import BUILD, ENV, PYTHON, ROOT
from test_docs import VERBS, help_options, page_codes, read, run
from test_slurm import DIRECTIVES

PAGE = read("docs", "is-my-cluster-ready.md")
INSTALLED = "/usr/libexec/nodeprep/dask/cluster-test"
TEST = os.path.join(ROOT, "packaging", "dask", "cluster-test")
RANKS = os.path.join(BUILD, "nodeprep-ranks")


def blocks():
    """Each command after a "$", and the lines below it."""
    found = []
    for block in re.findall(r"((?:^    .*\n)+)", PAGE, re.M):
        lines = [line[4:] for line in block.splitlines()]
        if lines[0].startswith("$ "):
            found.append((lines[0][2:], lines[1:]))
    return found


def commands():
    lines = [line[4:] for line in PAGE.splitlines() if re.match(r"    [a-z$]", line)]
    lines = [re.sub(r"^\$ ", "", line) for line in lines]
    return [line for line in lines
            if re.match(r"(ansible|sbatch|srun|mpirun|python) ", line)]


def options_of(text):
    return set(re.findall(r"(--[a-z][a-z-]*)", text))


def test_each_command_and_option_exists():
    lines = commands()
    assert len(lines) >= 9
    known = {"cluster-test": options_of(run(PYTHON, TEST, "--help").stdout),
             "nodeprep-ranks": options_of(run(RANKS, "--help").stdout)}
    for line in lines:
        words = shlex.split(line)
        if words[0] == "ansible":
            words = shlex.split(words[-1])
            assert words[0] == "nodeprep" and words[1] in VERBS
            known_here = {"--" + name for name in {**help_options(), **help_options(words[1])}}
            assert set(words[2:]) <= known_here, line
        elif words[0] == "sbatch":
            file, = [word for word in words[1:] if not word.startswith("--")]
            assert os.path.exists(os.path.join(ROOT, "packaging", "slurm", file)), line
            assert {w[2:].split("=")[0] for w in words[1:] if w != file} <= set(DIRECTIVES), line
        elif words[0] == "python":
            assert words[1] == INSTALLED and options_of(line) <= known["cluster-test"], line
        else:
            program = words.index("nodeprep-ranks")
            assert options_of(" ".join(words[program:])) <= known["nodeprep-ranks"], line


def test_the_paths_are_those_that_are_installed():
    makefile = read("Makefile")
    for name in ("dask/cluster-test", "slurm/health-check"):
        assert "$(DESTDIR)$(LIBEXECDIR)/nodeprep/" + name in makefile
    for target in re.findall(r"\]\((\.\./[^)]+)\)", PAGE):
        assert os.path.exists(os.path.join(ROOT, "docs", target)), target


def test_commands_within_the_text():
    for span in re.findall(r"`(?:sudo )?nodeprep ([^`]+)`", PAGE):
        verb, *words = shlex.split(span)
        assert verb in VERBS, span
        assert {w for w in words if w.startswith("--")} <= \
            {"--" + name for name in help_options(verb)}, span
    assert [code for code in re.findall(r"`((?:selftest|ranks|port)\.[a-z_]+)`", PAGE)
            if code not in page_codes()] == []


def matches(shown, said):
    """The lines of the page among those that were said, "..." standing for anything."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "..." else
                      ".*?".join(map(re.escape, line.split("..."))) + "\n" for line in shown)
    return re.fullmatch(pattern, said)


def started(command, tmp_path):
    words = shlex.split(command)
    if words[0] == "python":
        assert words[1] == INSTALLED
        return [PYTHON, TEST, *words[2:]]
    assert words[0] == "mpirun"
    at = words.index("nodeprep-ranks")
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", *words[1:at], RANKS,
            *words[at + 1:], "--env-file", str(tmp_path / "none")]


@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not installed: make deps")
@pytest.mark.parametrize("number", range(2))
def test_what_the_page_shows(number, tmp_path):
    found = blocks()
    assert len(found) == 2
    command, shown = found[number]
    done = subprocess.run(started(command, tmp_path), capture_output=True, text=True,
                          cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=180, check=False,
                          env=dict(ENV, UCX_TLS="tcp,sm,self", HOME=str(tmp_path)))
    assert done.returncode == 0, done
    # empty lines are left out on the page
    text = re.sub(r"\n\n+", "\n", done.stdout)
    assert matches(shown, text), text


def test_exit_codes():
    """The last table has those that the programs name themselves."""
    table = PAGE[PAGE.index("| program |"):]
    rows = {row.split("|")[1].strip(" `"): [cell.strip() for cell in row.split("|")[2:-1]]
            for row in table.splitlines()[2:] if row.startswith("|")}
    assert list(rows) == ["nodeprep check", "nodeprep-ranks", "cluster-test"]
    assert "0 every rank verified everything, 1 not so, 2 usage" in run(RANKS, "--help").stdout
    text = " ".join(run(PYTHON, TEST, "--help").stdout.split())
    assert "3 no Dask, no scheduler or too few workers" in text
    assert run(RANKS, "--nonsense").returncode == run(PYTHON, TEST).returncode == 2
    assert run(RANKS).returncode == 2 and rows["nodeprep-ranks"][2] == "usage, no launcher"
