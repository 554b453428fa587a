# SPDX-License-Identifier: MIT
"""The UCX profile scripts as shells see them (C29, C30)."""
import os
import pathlib
import shlex
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ["tests/unit/render_ucx.c", "agent/ucx_env.c", "base/str.c", "base/err.c"]
PORTS = "mlx5_0:1,mlx5_1:1"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# Every option that a strict login set-up may have switched on.
SH = {
    "dash": ["dash"],
    "dash -eu": ["dash", "-eu"],
    "bash": ["bash", "--norc"],
    "bash -u": ["bash", "--norc", "-u"],
    "bash -eu posix": ["bash", "--norc", "--posix", "-eu"],
    "zsh": ["zsh", "-f"],
    "zsh -eu": ["zsh", "-f", "-eu"],
    "zsh extendedglob": ["zsh", "-f", "-o", "extendedglob", "-o", "shwordsplit"],
    "busybox sh": ["busybox", "sh"],
    "busybox sh -eu": ["busybox", "sh", "-eu"],
}
# Not among the packages that the tests need: tried where they happen to be.
SH.update({f"{name} -eu": [name, "-eu"] for name in ("ksh93", "mksh", "yash") if shutil.which(name)})
CSH = {"tcsh": ["tcsh", "-f"], "tcsh -e": ["tcsh", "-f", "-e"], "csh": ["csh", "-f"]}

PROFILES = ["standard", "guide", "dask", "auto", "off"]
WANTED = {
    "standard": {
        "UCX_TLS": "rc,cuda_copy,cuda_ipc,gdr_copy,tcp,sm,self",
        "UCX_NET_DEVICES": PORTS + ",ib0",
    },
    "guide": {"UCX_TLS": "rc,cuda_copy,cuda_ipc,gdr_copy", "UCX_NET_DEVICES": PORTS},
    "dask": {
        "UCX_TLS": "rc,tcp,cuda_copy,cuda_ipc,gdr_copy",
        "UCX_NET_DEVICES": PORTS + ",ib0",
        "UCX_MAX_RNDV_RAILS": "1",
        "UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES": "cuda",
        "UCX_SOCKADDR_TLS_PRIORITY": "rdmacm,tcp",
    },
    "auto": {"UCX_TLS": "all"},
    "off": {},
}


@pytest.fixture(scope="module", name="scripts")
def fixture_scripts(tmp_path_factory):
    """{(profile, form): path}, rendered by the code under test."""
    where = tmp_path_factory.mktemp("ucx")
    program = where / "render_ucx"
    subprocess.run(
        [*shlex.split(os.environ.get("CC", "cc")), "-std=gnu11", "-D_GNU_SOURCE", "-g", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=undefined", "-iquote", ".", "-o", program, *SOURCES],
        cwd=TOP, check=True)
    made = {}
    for profile in PROFILES:
        for form in ("sh", "csh", "env"):
            path = where / f"{profile}.{form}"
            run = subprocess.run([program, form, profile, PORTS, "ib0", "yes"], check=True,
                                 capture_output=True)
            assert run.stderr == b""
            path.write_bytes(run.stdout)
            made[profile, form] = path
    return made


def source(shell, dot, path, times=1, **environment):
    """UCX variables of a program that such a shell starts after it sourced the script."""
    command = "\n".join([f"{dot} {path}"] * times + ["/usr/bin/env -0"])
    run = subprocess.run([*shell, "-c", command], env={"PATH": PATH, "HOME": "/", **environment},
                         capture_output=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr == b""
    pairs = [entry.split("=", 1) for entry in run.stdout.decode().split("\0") if entry]
    return {name: value for name, value in pairs if name.startswith("UCX_")}


def every_shell():
    for name, shell in SH.items():
        yield pytest.param(shell, ".", "sh", id=name)
    for name, shell in CSH.items():
        yield pytest.param(shell, "source", "csh", id=name)


@pytest.mark.parametrize("shell, dot, form", list(every_shell()))
class TestShell:
    @pytest.mark.parametrize("profile", PROFILES)
    def test_values(self, scripts, shell, dot, form, profile):
        path = scripts[profile, form]
        assert source(shell, dot, path) == WANTED[profile]
        assert source(shell, dot, path, times=2) == WANTED[profile]

    @pytest.mark.parametrize("value", ["all", "", "rc with blank; $(id) 'x'"])
    def test_users_value_wins(self, scripts, shell, dot, form, value):
        path = scripts["dask", form]
        assert source(shell, dot, path, UCX_TLS=value) == {**WANTED["dask"], "UCX_TLS": value}

    def test_other_script_first_wins(self, scripts, shell, dot, form):
        """C30: the script that a login shell reads first decides."""
        run = source(shell, f"{dot} {scripts['guide', form]}\n{dot}", scripts["standard", form])
        assert run == WANTED["guide"]

    def test_prints_nothing(self, scripts, shell, dot, form):
        run = subprocess.run([*shell, "-c", f"{dot} {scripts['standard', form]}"], check=True,
                             env={"PATH": PATH, "HOME": "/"}, capture_output=True, timeout=60)
        assert run.stdout == b"" and run.stderr == b""


def test_no_other_variable_is_left(scripts):
    """A helper variable or option would leak into every login shell."""
    shell = ["bash", "--norc", "--posix", "-c"]
    environment = {"PATH": PATH}
    plain = subprocess.check_output([*shell, ":; set; set +o"], env=environment, text=True)
    after = subprocess.check_output([*shell, f". {scripts['dask', 'sh']}; set; set +o"],
                                    env=environment, text=True)
    ignored = ("BASH_EXECUTION_STRING=", "PPID=", "_=", "BASH_ARGC=", "BASH_ARGV=", "PIPESTATUS=", "UCX_")
    changed = set(after.splitlines()) ^ set(plain.splitlines())
    assert [line for line in changed if not line.startswith(ignored)] == []


@pytest.mark.parametrize("profile", PROFILES)
def test_environment_file(scripts, profile):
    """NAME=VALUE lines without quotes: read alike by systemd and by everything else."""
    lines = scripts[profile, "env"].read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    assert pairs == WANTED[profile]


@pytest.mark.parametrize("form", ["sh", "csh", "env"])
def test_header(scripts, form):
    text = scripts["standard", form].read_text()
    assert text.startswith("# Written by nodeprep")
    assert "/etc/nodeprep/nodeprep.conf" in text and "nodeprep apply" in text


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="no shellcheck: part of `make lint`")
def test_shellcheck(scripts):
    subprocess.run(["shellcheck", "-s", "sh", scripts["dask", "sh"]], check=True)
