# SPDX-License-Identifier: MIT
"""--ucx-prefix: the UCX of another place, and what is no such place."""

import glob
import os
import shutil
import subprocess

import pytest
from helpers import IP, PLAIN

FIND = "ldconfig -p | sed -n 's/.*libucp.so.0 .*=> //p' | head -n 1"
UCX = os.path.dirname(os.path.realpath(
    subprocess.run(["sh", "-c", FIND], capture_output=True, text=True, check=True).stdout.strip()))


@pytest.fixture(params=["lib", "lib64"])
def prefix(request, tmp_path):
    """UCX copied to a folder of its own, as an environment has it."""
    folder = tmp_path / "env" / request.param
    folder.mkdir(parents=True)
    for name in glob.glob(UCX + "/libuc[mpst]*.so.0*"):
        shutil.copy(name, str(folder), follow_symlinks=False)
    shutil.copytree(UCX + "/ucx", str(folder / "ucx"), symlinks=True)
    os.chmod(str(tmp_path), 0o755)
    return tmp_path / "env"


@pytest.fixture
def addressed(node):
    one = node("guide.ini", "--bind", "/tmp")
    one.apply()
    return one


def test_the_rungs_use_it(addressed, prefix):
    done = addressed.run(PLAIN, "selftest", "tcp", "--json", "--ucx-prefix", str(prefix),
                         "--as-root", "--env", "UCX_LOG_LEVEL=info", "--verbose")
    assert done.rc == 0, done
    entry, = done.doc["selftest"]
    assert entry["status"] == "ok" and "UCX 1." in entry["message"]
    # broken on purpose: the rung meets just this library
    library, = glob.glob(str(prefix / "lib*" / "libucp.so.0.*"))
    with open(library, "wb") as file:
        file.write(b"no library")
    done = addressed.run(PLAIN, "selftest", "tcp", "--json", "--ucx-prefix", str(prefix),
                         "--as-root")
    entry, = done.doc["selftest"]
    assert done.rc == 1 and entry["code"] == "selftest.crashed", done
    assert str(prefix) in entry["message"], done
    assert addressed.run(PLAIN, "selftest", "tcp").rc == 0


def test_others_may_write_there(addressed, prefix):
    for path in (prefix, next(prefix.iterdir()), next(prefix.glob("lib*/libucp.so.0"))):
        mode = os.stat(str(path)).st_mode
        os.chmod(str(path), 0o777)
        done = addressed.run(PLAIN, "selftest", "tcp", "--json", "--ucx-prefix", str(prefix),
                             "--as-root")
        assert done.rc == 3 and done.error["code"] == "selftest.prefix_unsafe", done
        assert "--as-root" in done.error["hint"]
        # an ordinary user may run what he likes
        assert addressed.run(PLAIN, "selftest", "tcp", "--ucx-prefix", str(prefix)).rc in (0, 1)
        os.chmod(str(path), mode)


@pytest.mark.parametrize("what, words", [
    ("relative/dir", "absolute"), ("/no/such/dir", "No such file"), ("/tmp", "libucp.so.0"),
    ("", "absolute"),
])
def test_no_such_place(addressed, what, words):
    done = addressed.run(PLAIN, "selftest", "tcp", "--json", "--ucx-prefix", what)
    assert done.rc == 2 and done.error["code"] == "usage.ucx_prefix", done
    assert words in done.error["message"]
    assert addressed.json("check", "--ip", IP, rc=0)


def test_a_path_that_the_linker_would_split(addressed, tmp_path):
    folder = tmp_path / "a:b" / "lib"
    folder.mkdir(parents=True)
    (folder / "libucp.so.0").write_bytes(b"")
    done = addressed.run(PLAIN, "selftest", "tcp", "--json", "--ucx-prefix", str(folder.parent))
    assert done.rc == 2 and "colon" in done.error["message"]
