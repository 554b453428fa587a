# SPDX-License-Identifier: MIT
"""--ucx-prefix: the UCX of another place, and what is no such place."""

import glob
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
from helpers import IP, PLAIN

FIND = "ldconfig -p | sed -n 's/.*libucp.so.0 .*=> //p' | head -n 1"
UCX = os.path.dirname(os.path.realpath(
    subprocess.run(["sh", "-c", FIND], capture_output=True, text=True, check=True).stdout.strip()))


@pytest.fixture
def open_path():
    """A folder that every user can read, as pytest's own are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


@pytest.fixture(params=["lib", "lib64"])
def prefix(request, open_path):
    """UCX copied to a folder of its own, as an environment has it."""
    folder = open_path / "env" / request.param
    folder.mkdir(parents=True)
    for name in glob.glob(UCX + "/libuc[mpst]*.so.0*"):
        shutil.copy(name, str(folder), follow_symlinks=False)
    shutil.copytree(UCX + "/ucx", str(folder / "ucx"), symlinks=True)
    return open_path / "env"


@pytest.fixture
def addressed(node):
    one = node("guide.ini", "--bind", "/tmp")
    one.apply()
    return one


def test_the_rungs_use_it(addressed, prefix):
    for options in (), ("--as-root",):
        done = addressed.run(PLAIN, "selftest", "tcp", "--json", "--ucx-prefix", str(prefix),
                             *options)
        assert done.rc == 0, done
        entry, = done.doc["selftest"]
        assert entry["status"] == "ok" and "UCX 1." in entry["message"]
    # broken on purpose: the rung meets just this library
    library, = glob.glob(str(prefix / "lib*" / "libucp.so.0.*"))
    with open(library, "wb") as file:
        file.write(b"no library")
    done = addressed.run(PLAIN, "selftest", "tcp", "--json", "--ucx-prefix", str(prefix),
                         "--as-root")
    assert done.rc == 2 and done.error["code"] == "usage.ucx_prefix", done
    assert library in done.error["message"] or "libucp.so.0: " in done.error["message"], done
    assert addressed.run(PLAIN, "selftest", "tcp").rc == 0


def patch(name, offset, data):
    """Bytes of the ELF header of libNAME.so.0, whose name is a link."""
    def spoil(lib):
        with open(os.path.realpath(str(lib / name)), "r+b") as file:
            file.seek(offset)
            file.write(data)
    return spoil


def remove(*names):
    def spoil(lib):
        for name in names:
            for path in lib.glob(name + ".so*"):
                path.unlink()
    return spoil


# what the dynamic linker passes over without a word, to take the installed UCX
PASSED_OVER = {
    "no permission": lambda lib: os.chmod(str(lib.parent), 0o700),
    "another machine": patch("libucp.so.0", 18, (0xf7).to_bytes(2, "little")),
    "32 bit": patch("libucs.so.0", 4, b"\x01"),
    "libucs and libuct are missing": remove("libucs", "libuct"),
    "libucm is missing": remove("libucm"),
}


@pytest.mark.parametrize("spoil", PASSED_OVER.values(), ids=PASSED_OVER)
def test_never_the_installed_ucx_in_its_place(addressed, prefix, spoil):
    spoil(next(prefix.iterdir()))
    done = addressed.run(PLAIN, "selftest", "tcp", "--json", "--ucx-prefix", str(prefix))
    assert done.rc == 2 and done.error["code"] == "usage.ucx_prefix", done
    assert "user nobody" in done.error["message"] and str(prefix) in done.error["message"]
    assert re.search(r"takes /\S+/libuc[mpst]\.so\.0 instead", done.error["message"]), done
    assert "--run-as" in done.error["hint"] and not done.doc["selftest"]


AS_ROOT = [("--as-root",), ("--run-as", "root")]


def refused(node, prefix, *options):
    done = node.run(PLAIN, "selftest", "tcp", "--json", "--ucx-prefix", str(prefix), *options)
    assert done.rc == 3 and done.error["code"] == "selftest.prefix_unsafe", done
    assert "ordinary user" in done.error["hint"]
    return done.error["message"]


@pytest.mark.parametrize("options", AS_ROOT)
def test_others_may_write_there(addressed, prefix, options):
    lib = next(prefix.iterdir())
    for path, bits in ((prefix, 0o777), (lib, 0o777), (lib, 0o1777),
                       (lib / "libucp.so.0", 0o777), (next(lib.glob("libuct.so.0*")), 0o775),
                       (lib / "ucx", 0o777), (lib / "ucx", 0o1777),
                       (next((lib / "ucx").glob("*.so*")), 0o757)):
        mode = os.stat(str(path)).st_mode
        os.chmod(str(path), bits)
        assert os.path.realpath(str(path)) in refused(addressed, prefix, *options)
        # an ordinary user may run what he likes
        assert addressed.run(PLAIN, "selftest", "tcp", "--ucx-prefix", str(prefix)).rc == 0
        os.chmod(str(path), mode)


def test_a_link_leads_to_where_others_may_write(addressed, prefix, open_path):
    lib = next(prefix.iterdir())
    elsewhere = open_path / "open" / "lib"
    elsewhere.parent.mkdir()
    lib.rename(elsewhere)
    lib.symlink_to(elsewhere)
    done = addressed.run(PLAIN, "selftest", "tcp", "--ucx-prefix", str(prefix), "--as-root")
    assert done.rc == 0, done
    # the folder itself is root's; what it lies in is not
    os.chmod(str(open_path / "open"), 0o777)
    assert str(open_path / "open") in refused(addressed, prefix, "--as-root")
    lib.unlink()
    elsewhere.rename(lib)
    one = next(lib.glob("libucs.so.0*"))
    one.rename(open_path / "open" / one.name)
    one.symlink_to(open_path / "open" / one.name)
    assert str(open_path / "open") in refused(addressed, prefix, "--as-root")


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
