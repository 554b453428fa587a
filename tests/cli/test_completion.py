# SPDX-License-Identifier: MIT
"""Completion: what bash, zsh and fish offer on a node, where make install puts it."""

import json
import os
import shutil
import subprocess

import pytest
from helpers import BUILD, ENV, NODES, PYTHON, ROOT, SIMNODE, need_node
from test_docs import NODEPREP, VERBS, help_options, read, run

HARNESS = os.path.join(ROOT, "tests", "cli", "helpers_completion.py")
# where each shell looks; of zsh Debian's way
PLACES = {"bash": "usr/share/bash-completion/completions/nodeprep",
          "zsh": "usr/share/zsh/vendor-completions/_nodeprep",
          "fish": "usr/share/fish/vendor_completions.d/nodeprep.fish"}
SHELLS = sorted(PLACES)
SHORT = {"bash": "/etc/host.conf /etc/hostname /etc/hosts", "fish": "/etc/host.conf /etc/hostname /etc/hosts",
         "zsh": "host.conf hostname hosts"}


# with other ones all would be built again
FLAGS = ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "CCACHE_DIR")


def install(where, *variables):
    env = {"PATH": ENV["PATH"]}
    env.update({name: os.environ[name] for name in FLAGS if name in os.environ})
    subprocess.run(["make", "-s", "-C", ROOT, "install", "BUILD=" + os.path.relpath(BUILD, ROOT),
                    "DESTDIR=%s" % where, *variables], check=True, stdout=subprocess.DEVNULL,
                   env=env, timeout=300)


@pytest.fixture(name="installed", scope="module")
def _installed(tmp_path_factory):
    where = tmp_path_factory.mktemp("install")
    install(where)
    return where


@pytest.fixture(name="offered", scope="module")
def _offered(installed):
    """offered(SHELL, LINE...): of each line what is offered, and the line after Tab."""
    need_node()

    def ask(shell, *lines):
        if not shutil.which(shell):
            pytest.skip("no %s: make deps" % shell)
        done = subprocess.run(
            [SIMNODE, "--quiet", "--bind", str(installed), "--set", "user.carol.uid=4321",
             "--set", "file./etc/systemd/system/site-job.service.text=[Service]",
             "--set", "file./etc/systemd/system/site-row@.service.text=[Service]",
             os.path.join(NODES, "guide.ini"), "--", PYTHON, HARNESS, shell,
             str(installed / PLACES[shell]), *lines], text=True, capture_output=True, check=False,
            timeout=120, env=dict(ENV, PYTHONDONTWRITEBYTECODE="1"))
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return json.loads(done.stdout)

    return ask


def rungs():
    schema = json.loads(read("docs", "nodeprep.schema.json"))
    return set(schema["definitions"]["rung"]["properties"]["rung"]["enum"])


def nouns():
    usage = run(NODEPREP, "show", "--help").stdout.splitlines()[0]
    return set(usage[usage.index("[") + 1:usage.index("]")].split("|"))


@pytest.mark.parametrize("shell", SHELLS)
def test_each_verb_and_option_of_the_help(offered, shell):
    """No more and no less, before the verb and behind it."""
    every = {"--" + name for verb in VERBS for name in help_options(verb)}
    found = offered(shell, "nodeprep ", "nodeprep --", *["nodeprep %s --" % v for v in VERBS])
    assert set(found[0][0]) == set(VERBS)
    assert set(found[1][0]) == every
    for verb, (options, _) in zip(VERBS, found[2:]):
        assert set(options) == {"--" + name for name in help_options(verb)}, verb


@pytest.mark.parametrize("shell", SHELLS)
def test_words_of_verbs(offered, shell):
    found = offered(shell, "nodeprep ap", "nodeprep selftest ", "nodeprep show ",
                    "nodeprep --config /etc/hosts selftest umad gd", "nodeprep show ports t",
                    "nodeprep --json --timeout=3 sh", "nodeprep --ip ib0=fd00::5/64 re",
                    "nodeprep revert x", "nodeprep nonesuch ")
    words = [set(offers) for offers, _ in found]
    assert words[0] == {"apply"}
    assert words[1] == rungs() and words[2] == nouns()
    assert words[3] == {"gdrapi", "gdr_copy", "gdr_rdma"} and words[4] == {"topology"}
    assert words[5:] == [{"show"}, {"revert"}, set(), set()]
    if shell != "fish":
        assert found[0][1] == "nodeprep apply "


@pytest.mark.parametrize("shell", SHELLS)
def test_values_of_options(offered, shell):
    """ib0 is the node's only IPoIB netdev: eth0 and lo are not offered."""
    lines = {"nodeprep apply --ifname ": ("ib0", "nodeprep apply --ifname ib0 "),
             "nodeprep selftest --ifname=": ("ib0", "nodeprep selftest --ifname=ib0 "),
             "nodeprep plan --ip ": ("ib0=", "nodeprep plan --ip ib0="),
             "nodeprep check --ip=i": ("ib0=", "nodeprep check --ip=ib0="),
             "nodeprep apply --user caro": ("carol", "nodeprep apply --user carol "),
             "nodeprep selftest --run-as=caro": ("carol", "nodeprep selftest --run-as=carol "),
             "nodeprep show --unit site-": ("site-job", "nodeprep show --unit site-job "),
             "nodeprep show --config /etc/host": (SHORT[shell], "nodeprep show --config /etc/host"),
             "nodeprep --config=/etc/host": (SHORT[shell], "nodeprep --config=/etc/host"),
             "nodeprep apply --timeout ": ("", "nodeprep apply --timeout "),
             "nodeprep apply --env A=": ("", "nodeprep apply --env A=")}
    for (line, (words, after)), (offers, now) in zip(lines.items(), offered(shell, *lines)):
        if shell == "fish":
            # with what of the word stands already
            offers = [one.split("=", 1)[1] if one.startswith("--") else one for one in offers]
        if shell == "zsh":
            # added by zsh, taken away by it in front of a blank
            words = words.removesuffix("=")
        assert (sorted(offers), now) == (words.split(), after if shell != "fish" else None), line


@pytest.mark.parametrize("shell", SHELLS)
def test_folders_and_processes(offered, shell):
    # a file is no folder
    found = offered(shell, "nodeprep apply --root /etc/sec", "nodeprep apply --root /etc/hostn",
                    "nodeprep selftest --ucx-prefix=/etc/sec", "nodeprep show --pid 1")
    assert [one.strip("/").split("/")[-1] for one in found[0][0]] == ["security"]
    assert found[1][0] == []
    assert [one.strip("/").split("/")[-1] for one in found[2][0]] == ["security"]
    assert "1" in found[3][0]


@pytest.mark.parametrize("shell, argv, env", [
    # bash has no way of its own: the package bash-completion sources this file
    ("zsh", ["zsh", "-f", "-c", "fpath=($SHARE/zsh/vendor-completions $fpath); autoload -U compinit;"
             " compinit -D -u; print $_comps[nodeprep]"], {}),
    ("fish", ["fish", "-c", "complete -C 'nodeprep conf'"], {"XDG_DATA_DIRS": "$SHARE"}),
])
def test_the_shell_finds_it_where_it_is_installed(installed, tmp_path, shell, argv, env):
    if not shutil.which(shell):
        pytest.skip("no %s: make deps" % shell)
    share = str(installed / "usr/share")
    env = {name: value.replace("$SHARE", share) for name, value in env.items()}
    done = subprocess.run(argv, text=True, capture_output=True, check=False, timeout=60,
                          env={"PATH": "%s/usr/sbin:%s" % (installed, ENV["PATH"]), "HOME": str(tmp_path), "SHARE": share, **env})
    assert done.stdout.startswith({"zsh": "_nodeprep", "fish": "confirm\t"}[shell]), done


def test_places_can_be_chosen(tmp_path):
    install(tmp_path, "ZSHCOMPDIR=/usr/share/zsh/site-functions", "BASHCOMPDIR=/b", "FISHCOMPDIR=/f")
    for path in ("usr/share/zsh/site-functions/_nodeprep", "b/nodeprep", "f/nodeprep.fish"):
        assert (tmp_path / path).stat().st_mode & 0o777 == 0o644
    assert not (tmp_path / "usr/share/zsh/vendor-completions").exists()
    # the program that makes them stays at home
    assert not list(tmp_path.rglob("generate"))


def test_the_file_of_bash_is_clean(installed):
    if not shutil.which("shellcheck"):
        pytest.skip("no shellcheck: make deps")
    done = run("shellcheck", str(installed / PLACES["bash"]))
    assert (done.returncode, done.stdout) == (0, ""), done.stdout


def test_a_frame_without_its_line_is_refused():
    for frame in ("", "# a comment\n", "@TABLE csh@\n", "@TABLE bash@\n@TABLE bash@\n"):
        done = subprocess.run([os.path.join(BUILD, "completion", "generate")], input=frame, text=True,
                              capture_output=True, check=False, timeout=60)
        assert done.returncode == 1 and "frame" in done.stderr
