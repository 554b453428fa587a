# SPDX-License-Identifier: MIT
"""show config --user for logins of csh and tcsh, beside what the real shell has."""

import shutil

import pytest

from test_show_config import codes, rows, source

FOLDER = "/etc/csh/login.d/"  # of Debian's /etc/csh.login, which finds them by `ls`
# every variable here is one that can be told
SCRIPTS = {
    "10-plain": "# setenv UCX_NO 1\nsetenv UCX_A 1; setenv UCX_B 'x y'\n\tsetenv UCX_C \"$UCX_A/$HOME\"\n"
                "setenv UCX_D\nsetenv UCX_E a\\ b'c'\"d $USER\"\nsetenv UCX_F ${UCX_A}x\n",
    "20-if": "if ( ! $?UCX_NONE ) setenv UCX_G 1\nif ($?UCX_A) then\n  setenv UCX_H 1\nelse\n"
             "  setenv UCX_H 2\nendif\nif ( \"$UCX_A\" == 2 || $?UCX_NONE ) then\n  setenv UCX_I 1\n"
             "else if ( \"$UCX_A\" != 2 && -d /etc ) then\n  setenv UCX_I 2\nelse\n  setenv UCX_I 3\nendif\n"
             "if ( $UCX_B:q =~ x* ) setenv UCX_QUOTED 1\nif (\"$UCX_B\" =~ x*) setenv UCX_J 1\n"
             "if ( ! ( $?UCX_A && $?UCX_NONE ) ) setenv UCX_K 1\nif (0) setenv UCX_A wrong\n"
             "if ( ! -e /nowhere ) setenv UCX_K2 1\n",
    "30-set": "set where = /opt/x\nset a=1 b=2 c = 3 d\nsetenv UCX_L $where/$a$b$c\"$d\"\nset where=~/y\n"
              "setenv UCX_M $where\nset UCX_W0=1\nunset UCX_W0\nif ($?UCX_W0) setenv UCX_A wrong\n"
              "set UCX_A=mine\nsetenv UCX_N $UCX_A\nunset UCX_A\nsetenv UCX_O $UCX_A\n"
              "set l = (1 2 3)\nset UCX_LOCAL = 1\n",
    "40-loop": "foreach i ( a b c )\n  setenv UCX_P $i\nend\nset nonomatch\n"
               "foreach i ( /etc/csh/login.d/1* /etc/nowhere/*.csh )\n  if ( -r \"$i\" ) then\n    setenv UCX_Q \"$i\"\n"
               "  endif\nend\nunset nonomatch i\n",
    "50-source": "source ~/.more >& /dev/null\nsetenv UCX_R 1\nexit\nsetenv UCX_R 2\n",
    "60-unset": "setenv UCX_S 1\nsetenv UCX_T1 1\nsetenv UCX_T2 1\nunsetenv UCX_S\nunsetenv UCX_T*\n",
    "70-not-run": "( setenv UCX_U 1 )\ncat << EOF >/dev/null\nsetenv UCX_V 1\nEOF\nsetenv UCX_W 1\n"
                  "echo setenv UCX_X 1 >/dev/null\n",
    "80-joined": "setenv UCX_Y \\\n  1\nif ( $?UCX_Y && \\\n   $?UCX_W ) setenv UCX_Z 1\n"
                 "setenv UCX_ZA `/bin/echo command`\n",
    "90-after": "setenv UCX_ZB 1\n",
}


@pytest.fixture(name="tcsh")
def fixture_tcsh(guide):
    """The node, where alice has a login of tcsh."""
    if not shutil.which("tcsh"):
        pytest.skip("no tcsh: make deps")
    guide.shell("usermod -s /bin/tcsh alice || sed -i '/^alice:/s,[^:]*$,/bin/tcsh,' /etc/passwd")
    assert guide.text("getent", "passwd", "alice").strip().endswith("/bin/tcsh")
    guide.text("mkdir", "-p", FOLDER)
    return guide


def put(one, name, text):
    """A file of alice's own; any other in her home would be refused."""
    one.write("/home/alice/" + name, text)
    one.text("chown", "-R", "alice", "/home/alice")


def login(one):
    """{name: value} in a program that the real login shell starts."""
    done = one.run("bash", "-c", "exec -a -tcsh /bin/tcsh", user="alice", stdin=b"/usr/bin/env\n",
                   only_env={"HOME": "/home/alice", "USER": "alice", "LOGNAME": "alice",
                             "PATH": "/usr/bin:/bin", "SHELL": "/bin/tcsh"})
    assert done.rc == 0, done
    return dict(line.split("=", 1) for line in done.stdout.splitlines()
                if line.startswith(("UCX_", "NCCL_", "DASK_")))


def ours(one):
    return {key: row for (consumer, key), row in rows(one, "--user", "alice").items()
            if consumer == "ucx-conda"}


def test_as_the_shell_itself(tcsh):
    for name, text in SCRIPTS.items():
        tcsh.write(FOLDER + name, text)
    put(tcsh, ".more", "setenv UCX_MORE 1\n")
    put(tcsh, ".tcshrc", "if ($?tcsh) setenv UCX_RC tcsh\nif ($?loginsh) setenv UCX_RL 1\n")
    put(tcsh, ".cshrc", "setenv UCX_RC csh\n")
    put(tcsh, ".login", "setenv UCX_LOGIN $UCX_RC,$home,$user\n")
    real, got = login(tcsh), ours(tcsh)
    assert real["UCX_ZB"] == "1" and real["UCX_RC"] == "tcsh" and len(real) > 25
    # what a command prints is not known, and said to be so
    assert got.pop("UCX_ZA")["as_written"] and real.pop("UCX_ZA") == "command"
    if got.get("UCX_QUOTED", {}).get("value") is None:
        real.pop("UCX_QUOTED", None)
    told = {key: row["value"] for key, row in got.items() if row["value"] is not None}
    assert told == real
    assert not any(row.get("as_written") for row in got.values())
    assert codes(got["UCX_LOCAL"]) == ["consumer.not_exported"]
    assert source(got["UCX_H"]) == (FOLDER + "20-if", 3)


@pytest.mark.parametrize("error", ["setenv UCX_B $UCX_NONE", "if ($UCX_NONE == 1) echo",
                                   "source /etc/nowhere", "setenv UCX_B a b", "setenv UCX_B 'a"])
def test_an_error_ends_the_start_files(tcsh, error):
    tcsh.write(FOLDER + "10", "setenv UCX_A 1\n%s\nsetenv UCX_A 2\n" % error)
    tcsh.write(FOLDER + "20", "setenv UCX_C 1\n")
    put(tcsh, ".cshrc", "setenv UCX_D 1\n")
    real = login(tcsh)
    assert real["UCX_A"] == "1"
    assert {key: row["value"] for key, row in ours(tcsh).items() if row["value"] is not None} == real


def test_profile_folder_as_red_hat_has_it(tcsh):
    """C30: there /etc/csh.login sources /etc/profile.d."""
    tcsh.write("/etc/csh.login", """
if ( -d /etc/profile.d ) then
        set nonomatch
        foreach i ( /etc/profile.d/*.csh )
                if ( -r "$i" ) then
                        if ($?prompt) then
                              source "$i"
                        else
                              source "$i" >& /dev/null
                        endif
                endif
        end
        unset i nonomatch
endif
""")
    tcsh.apply()
    real = login(tcsh)
    assert set(real) == {"UCX_TLS", "UCX_NET_DEVICES"}
    # a prompt or none, it is sourced; which of the two cannot be told
    row = ours(tcsh)["UCX_TLS"]
    assert real["UCX_TLS"] in (row["value"], *[entry["value"] for entry in row["overrides"]]), row
    # an earlier script wins, as in sh
    tcsh.write("/etc/profile.d/aaa.csh", "setenv UCX_TLS all\n")
    assert login(tcsh)["UCX_TLS"] == "all"


def test_what_cannot_be_told(tcsh):
    put(tcsh, ".cshrc", """\
if ($?prompt) setenv UCX_A 1
switch ($TERM)
case x*:
  setenv UCX_B 1
  breaksw
endsw
foreach i (`cat /etc/list`)
  setenv UCX_C $i
end
source $SITE/x
""")
    got = ours(tcsh)
    assert all(got[key]["value"] is None for key in ("UCX_A", "UCX_B", "UCX_C"))
    assert [entry["state"] for key in ("UCX_A", "UCX_B", "UCX_C")
            for entry in got[key]["overrides"]] == ["maybe"] * 3
    doc = tcsh.json("show", "config", "--user", "alice").doc
    assert "sources a file that cannot be told" in str(doc["show"]["config"])
    put(tcsh, ".cshrc", "eval `modulecmd csh load ucx`\n")
    put(tcsh, ".login", "setenv UCX_A 1\n")
    assert ours(tcsh)["UCX_A"]["value"] == "1"
    doc = tcsh.json("show", "config", "--user", "alice").doc
    assert "runs a command that may set anything" in str(doc["show"]["config"])
