# SPDX-License-Identifier: MIT
"""[ucx] modulefile: what is written in the place of the profile scripts, and what Environment
Modules and Lmod make of it."""

import glob
import os
import shutil

import pytest

from helpers import BUILD, QUICK, IP, ucx_values

CONF = "/etc/nodeprep/nodeprep.conf"
SCRIPTS = ["/etc/profile.d/nodeprep-ucx.sh", "/etc/profile.d/nodeprep-ucx.csh"]
# unpacked, not installed: the two packages conflict (packaging/packages.mk)
TOOLS = os.path.join(BUILD, "modules")
MODULECMD = (glob.glob(TOOLS + "/usr/lib/*/modulecmd.tcl") or [""])[0]
LMOD = (glob.glob(TOOLS + "/usr/share/lmod/*/libexec/lmod") or [""])[0]
# what the function module of each tool's own start files does
TOOL = {"environment-modules": ["tclsh", MODULECMD], "lmod": ["lua5.3", LMOD]}


def configure(one, path, profile="standard"):
    one.write(CONF, "[ucx]\nprofile = %s\n" % profile +
              ("modulefile = %s\n" % path if path else ""))


class Shell:
    """A bash or tcsh with `module`."""

    def __init__(self, one, tool, path):
        command = TOOL[tool]
        if not command[1] or not shutil.which(command[0]):
            pytest.skip("%s is not there: make test unpacks it" % tool)
        self.one = one
        self.command = " ".join(command)
        self.folder = os.path.dirname(path)
        self.name = os.path.basename(path).removesuffix(".lua")

    def run(self, script, shell="bash", **env):
        """The UCX variables after the script, in which M is the module."""
        if shell == "bash":
            start = 'module() { eval "$(%s bash "$@")"; }\n' % self.command
        else:
            start = "alias module 'eval `%s csh \\!*`'\n" % self.command
        done = self.one.run(shell, *(["--norc"] if shell == "bash" else ["-f"]), "-c",
                            start + script.replace("M", self.name) + "\n/usr/bin/env -0",
                            env=dict(env, MODULEPATH=self.folder))
        assert done.rc == 0 and "rror" not in done.stderr, done
        pairs = [entry.split("=", 1) for entry in done.stdout.split("\0") if "=" in entry]
        return {name: value for name, value in pairs if name.startswith("UCX_")}


@pytest.mark.parametrize("tool, path", [
    ("environment-modules", "/etc/modulefiles/nodeprep-ucx"),
    ("lmod", "/etc/modulefiles/nodeprep-ucx"),
    ("lmod", "/var/site/modules/nodeprep-ucx.lua")])
def test_load(node, tool, path):
    one = node("guide.ini")
    configure(one, path, "dask")
    done = one.apply(rc=0)
    assert ("file.write", path) in [a[:2] for a in done.actions()]
    values = ucx_values(one)
    assert values["UCX_MAX_RNDV_RAILS"] == "1"
    shell = Shell(one, tool, path)
    assert shell.run("true") == {}
    for name in ("bash", "tcsh"):
        assert shell.run("module load M", name) == values
        assert shell.run("module load M\nmodule load M", name) == values
        assert shell.run("module load M\nmodule unload M", name) == {}
    assert shell.run("module load M; module switch M M; module purge; module load M") == values
    # a value that the user has set wins, an empty one too, and is there afterwards
    for own in ("mine", ""):
        assert shell.run("module load M", UCX_TLS=own) == dict(values, UCX_TLS=own)
        assert shell.run("module load M; module unload M", UCX_TLS=own) == {"UCX_TLS": own}
    assert "UCX variables" in one.shell(
        "%s bash whatis %s 2>&1" % (shell.command, shell.name),
        env={"MODULEPATH": shell.folder}).stdout


def test_in_the_place_of_the_scripts(node):
    one = node("guide.ini")
    first, second = "/etc/modulefiles/nodeprep-ucx", "/var/modules/ucx-node.lua"
    one.apply(rc=0)
    assert all(one.read(path) for path in SCRIPTS)
    configure(one, first)
    assert sorted(a[:2] for a in one.apply(rc=0).actions()) == sorted(
        [("file.remove", path) for path in SCRIPTS] +
        [("file.write", "/etc/nodeprep/ucx.env"), ("file.write", first)])
    assert one.apply(rc=0).doc["changed"] is False
    shown = one.json("show", "config").doc["show"]["config"]
    assert [row["value"] for row in shown if row["key"] == "modulefile"] == [first]
    # another name: the first one goes
    configure(one, second)
    assert sorted(a[:2] for a in one.apply(rc=0).actions()) == sorted(
        [("file.remove", first), ("file.write", "/etc/nodeprep/ucx.env"), ("file.write", second)])
    assert one.read(second).startswith(b"-- Written by nodeprep")
    # and none: the scripts are back
    configure(one, None)
    one.apply(rc=0)
    assert one.read(second) is None and all(one.read(path) for path in SCRIPTS)
    # profile = off takes everything away
    configure(one, first)
    one.apply(rc=0)
    configure(one, first, "off")
    one.apply(rc=0)
    assert one.read(first) is None and one.read("/etc/nodeprep/ucx.env") is None
    assert one.apply(rc=0).doc["changed"] is False


def test_somebody_elses_file_stays(node):
    one = node("guide.ini")
    path = "/etc/modulefiles/ucx"
    one.text("mkdir", "/etc/modulefiles")
    one.write(path, "#%Module1.0\nsetenv UCX_TLS all\n")
    one.apply(rc=0)
    configure(one, path)
    done = one.apply(rc=1)
    assert "did not write it" in done.check("file.refused", path)["message"]
    assert one.read(path) == b"#%Module1.0\nsetenv UCX_TLS all\n"
    assert all(one.read(script) for script in SCRIPTS)
    # one of ours that somebody has taken over since stays too
    one.text("rm", path)
    one.apply(rc=0)
    one.write(path, "#%Module1.0\nsetenv UCX_TLS tcp\n")
    configure(one, None)
    one.apply(rc=0)
    assert one.read(path) == b"#%Module1.0\nsetenv UCX_TLS tcp\n"
    assert one.apply(rc=0).doc["changed"] is False


@pytest.mark.parametrize("prepare", [
    "mkdir -m 777 /var/modules", "mkdir -m 777 /var/site; mkdir /var/site/modules; "
    "ln -s site/modules /var/modules", "mkdir /var/modules; chown nobody /var/modules",
    "mkdir -m 1777 /var/modules"])
def test_others_may_write_there(node, prepare):
    one = node("guide.ini")
    assert one.shell(prepare).rc == 0
    path = "/var/modules/ucx"
    configure(one, path)
    done = one.apply(rc=1)
    assert "others than root" in done.check("file.refused", path)["message"]
    assert one.read(path) is None
    assert one.ipv4() == [IP] and one.read("/etc/nccl.conf")


@pytest.mark.parametrize("value", ["ucx", "/opt/modules/", "/opt/../ucx", "/opt/a b", "/opt/$HOME",
                                   "/opt/.ucx"])
def test_value(guide, value):
    configure(guide, value)
    done = guide.json("plan", *QUICK, rc=2)
    assert done.error["code"] == "config.bad_value" and "absolute path" in done.error["message"]
