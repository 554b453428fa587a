# SPDX-License-Identifier: MIT
"""The census of libraries: which NCCL, UCX and libgdrapi are there, who gets which (C9), and
homes that want to be read too much of."""

import os
import re
import subprocess

import pytest
from helpers import IP, PLAIN

CONF = "/etc/nodeprep/nodeprep.conf"
NEW, OLD = "/var/lib/new/lib", "/var/lib/old/lib"
VENV = "/home/alice/venv"
WHEEL = VENV + "/lib/python3.11/site-packages/nvidia/nccl/lib"
OURS = ("library.", "nccl.library_too_old")


@pytest.fixture(name="make", scope="module")
def fixture_make(tmp_path_factory):
    """make(SONAME, TEXT): the bytes of a shared object with that text in it."""
    folder = tmp_path_factory.mktemp("libraries")

    def make(soname, *texts):
        lines = ["const char *text%d(void){return \"%s\";}" % (i, text)
                 for i, text in enumerate(texts)]
        (folder / "x.c").write_text("\n".join(lines) + "\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wl,-soname," + soname, "-o",
                        str(folder / "x.so"), str(folder / "x.c")], check=True)
        return (folder / "x.so").read_bytes()

    return make


def nccl(make, version):
    return make("libnccl.so.2", "NCCL version %s+cuda12.9" % version)


def put(node, folder, name, data, owner="root"):
    node.text("mkdir", "-p", folder)
    node.write(folder + "/" + name, data)
    top = "/home/%s" % owner if owner != "root" else folder
    node.text("chown", "-R", owner + ":", top)


def cached(node, *folders):
    node.write("/etc/ld.so.conf.d/000-test.conf", "".join(f + "\n" for f in folders))
    node.text("/sbin/ldconfig", "-X", "-i")


def census(node, **how):
    found = node.json("show", "libraries", rc=0, **how).doc["show"]["census"]
    paths = [row["path"] for row in found]
    assert len(set(paths)) == len(paths)
    return {row["path"]: row for row in found}


def said(done):
    return sorted((c["code"], c["target"], c["status"]) for c in done.doc["checks"]
                  if c["code"].startswith(OURS))


def loaded(node, path, name="libnccl.so.2"):
    """What the dynamic linker itself takes with that LD_LIBRARY_PATH."""
    code = ("import ctypes; ctypes.CDLL('%s'); print([l.split()[-1] for l in "
            "open('/proc/self/maps') if '%s' in l][0])" % (name, name.split(".")[0]))
    env = {"PATH": "/usr/bin"}
    if path:
        env["LD_LIBRARY_PATH"] = path
    done = node.run("/usr/bin/python3", "-c", code, only_env=env)
    assert done.rc == 0, done
    return done.stdout.strip()


# ---- C9 ----

@pytest.fixture(name="c9")
def fixture_c9(guide, make):
    put(guide, NEW, "libnccl.so.2.28.3", nccl(make, "2.28.3"))
    guide.text("ln", "-s", "libnccl.so.2.28.3", NEW + "/libnccl.so.2")
    guide.text("ln", "-s", "libnccl.so.2", NEW + "/libnccl.so")
    cached(guide, NEW)
    put(guide, OLD, "libnccl.so.2", nccl(make, "2.3.7"))
    guide.write("/etc/profile.d/old.sh",
                "# site\nexport LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\n" % OLD)
    guide.text("mkdir", "-p", WHEEL, VENV + "/lib/python3.11/site-packages/"
               "nvidia_nccl_cu12-2.27.3.dist-info")
    guide.write(VENV + "/pyvenv.cfg", "home = /usr/bin\n")
    put(guide, WHEEL, "libnccl.so.2", nccl(make, "2.27.3"), owner="alice")
    guide.write(CONF, "[nccl]\nusers = alice\n")
    return guide


def test_c9_all_are_listed_and_who_gets_which(c9):
    found = census(c9)
    row = found[NEW + "/libnccl.so.2"]
    assert (row["version"], row["version_by"], row["in_cache"]) == ("2.28.3", "contents", True)
    assert row["target"] == NEW + "/libnccl.so.2.28.3" and row["soname"] == "libnccl.so.2"
    assert row["used_by"] == ["services"] and row["place"] == "loader cache"
    assert {(h["for"], h["by"]) for h in row["hidden"]} == {
        ("logins", OLD + "/libnccl.so.2"), (VENV, WHEEL + "/libnccl.so.2")}
    row = found[OLD + "/libnccl.so.2"]
    assert (row["version"], row["in_cache"], row["used_by"]) == ("2.3.7", False, ["logins"])
    assert (row["place"], row["where"]) == ("LD_LIBRARY_PATH", "/etc/profile.d/old.sh:2")
    row = found[WHEEL + "/libnccl.so.2"]
    assert (row["version"], row["used_by"], row["user"]) == ("2.27.3", [VENV], "alice")
    assert (row["place"], row["environment"]) == ("python", VENV)
    # the dynamic linker agrees
    assert loaded(c9, None) == NEW + "/libnccl.so.2.28.3"
    assert loaded(c9, OLD) == OLD + "/libnccl.so.2"
    text = c9.text(PLAIN, "show", "libraries")
    assert "\nnccl 2.3.7: %s/libnccl.so.2\n" % OLD in text
    assert "\thidden for logins by %s/libnccl.so.2\n" % OLD in text


def test_c9_the_old_one_is_too_old(c9):
    check = c9.json("check", "--ip", IP, rc=1)
    assert said(check) == [("library.shadowing", OLD + "/libnccl.so.2", "warn"),
                           ("nccl.library_too_old", OLD + "/libnccl.so.2", "fail")]
    one = check.check("nccl.library_too_old")
    assert "2.3.7" in one["message"] and "2.4" in one["message"] and "logins" in one["message"]
    assert "/etc/profile.d/old.sh:2" in check.check("library.shadowing")["message"]
    # one that changed something says so too, and so does the next, which has nothing to do
    done = c9.apply(rc=1)
    assert done.check("nccl.library_too_old")["status"] == "fail" and done.doc["changed"]
    again = c9.apply(rc=1)
    assert said(again) == said(done) and again.doc["actions"] == []
    assert said(c9.json("plan", "--ip", IP, rc=0)) == []
    c9.write(CONF, "[nccl]\nusers = alice\nversion_min = 2.3\n")
    assert not c9.json("check", "--ip", IP).checks(code="nccl.library_too_old")
    c9.write(CONF, "[nccl]\nusers = alice\nversion_min = 2.28\n")
    too_old = c9.json("check", "--ip", IP).checks(code="nccl.library_too_old")
    # of a user's own environment the node is no less ready
    assert {(c["target"], c["status"]) for c in too_old} == {
        (OLD + "/libnccl.so.2", "fail"), (WHEEL + "/libnccl.so.2", "warn")}


def test_a_node_that_is_well_again(c9):
    """What makes the node not ready is looked for until it is gone, and no longer."""
    c9.apply(rc=1)
    c9.text("rm", "/etc/profile.d/old.sh")
    assert said(c9.apply(rc=0)) == []
    assert c9.read("/var/lib/nodeprep/libraries") is None
    # nothing is noted by those that change nothing
    c9.write("/etc/profile.d/old.sh", "export LD_LIBRARY_PATH=%s\n" % OLD)
    c9.json("check", "--ip", IP, rc=1)
    assert said(c9.apply(rc=0)) == [] and c9.read("/var/lib/nodeprep/libraries") is None


def test_a_users_own_path_is_the_users_own(c9, make):
    c9.text("rm", "/etc/profile.d/old.sh")
    put(c9, "/home/alice/old", "libnccl.so.2", nccl(make, "2.3.5"), owner="alice")
    c9.write("/home/alice/.profile", "export LD_LIBRARY_PATH=$HOME/old\n")
    c9.text("chown", "alice", "/home/alice/.profile")
    row = census(c9)["/home/alice/old/libnccl.so.2"]
    assert (row["version"], row["used_by"], row["user"]) == ("2.3.5", ["user alice"], "alice")
    assert row["where"] == "/home/alice/.profile:1"
    assert said(c9.json("check", "--ip", IP)) == [
        ("library.shadowing", "/home/alice/old/libnccl.so.2", "warn"),
        ("nccl.library_too_old", "/home/alice/old/libnccl.so.2", "warn")]


def test_nothing_is_said_on_a_healthy_node(guide, make):
    put(guide, NEW, "libnccl.so.2", nccl(make, "2.28.3"))
    cached(guide, NEW)
    guide.apply()
    assert said(guide.json("check", "--ip", IP, rc=0)) == []


# ---- the loader cache ----

def test_the_cache_is_what_ldconfig_prints(shared_guide):
    listed = re.findall(r"^\t(lib(?:nccl|ucp|uct|gdrapi)\.so\.\d+) \(libc6,[^)]*\) => (\S+)$",
                        shared_guide.text("/sbin/ldconfig", "-p"), re.M)
    in_cache = {row["path"] for row in census(shared_guide).values() if row["in_cache"]}
    assert listed
    real = {shared_guide.text("readlink", "-f", os.path.dirname(path)).strip() + "/" + name
            for name, path in listed}
    assert in_cache == real


def test_a_cache_that_is_out_of_date(guide, make):
    put(guide, NEW, "libnccl.so.2", nccl(make, "2.28.3"))
    cached(guide, NEW)
    put(guide, "/var/lib/gdr", "libgdrapi.so.2.5", make("libgdrapi.so.2", "x"))
    guide.text("ln", "-s", "libgdrapi.so.2.5", "/var/lib/gdr/libgdrapi.so.2")
    guide.write("/etc/ld.so.conf.d/001-gdr.conf", "/var/lib/gdr\n")
    guide.text("rm", NEW + "/libnccl.so.2")
    row = census(guide)["/var/lib/gdr/libgdrapi.so.2"]
    assert (row["version"], row["version_by"], row["in_cache"]) == ("2.5", "file name", False)
    assert row["used_by"] == []
    stale = said(guide.json("check", "--ip", IP))
    assert stale == [("library.not_in_cache", "/var/lib/gdr/libgdrapi.so.2", "warn"),
                     ("library.stale_cache", NEW + "/libnccl.so.2", "warn")]
    guide.text("/sbin/ldconfig", "-X", "-i")
    assert said(guide.json("check", "--ip", IP)) == []
    assert census(guide)["/var/lib/gdr/libgdrapi.so.2"]["used_by"] == ["services", "logins"]
    guide.write("/etc/ld.so.cache", b"glibc-ld.so.cache1.1" + b"\xff" * 100)
    assert all(row["in_cache"] is None for row in census(guide).values())
    assert said(guide.json("check", "--ip", IP)) == []


# ---- UCX, Conda, prefixes ----

def test_a_ucx_of_conda(guide, make):
    """Its features by its modules and by how it was configured; its packages by Conda."""
    top = "/home/alice/miniconda3"
    env = top + "/envs/rapids"
    for folder in (top + "/conda-meta", env + "/conda-meta", env + "/lib/ucx"):
        guide.text("mkdir", "-p", folder)
    guide.write(env + "/conda-meta/nccl-2.26.2.1-hb92ee24_0.json", "{")
    guide.write(env + "/conda-meta/gdrcopy-2.5-h0_0.json", "{")
    put(guide, env + "/lib", "libucp.so.0.0.0",
        make("libucp.so.0", "Configured with: %s", "--prefix=/x --enable-mt", "1.18.0"), "alice")
    put(guide, env + "/lib", "libuct.so.0.0.0", make("libuct.so.0", ":cuda:ib:cma"), "alice")
    put(guide, env + "/lib", "libnccl.so.2", make("libnccl.so.2", "no version"), "alice")
    put(guide, env + "/lib", "libgdrapi.so.2", make("libgdrapi.so.2", "x"), "alice")
    put(guide, env + "/lib/ucx", "libuct_ib.so.0", b"", "alice")
    put(guide, env + "/lib/ucx", "libuct_cuda_gdrcopy.so", b"", "alice")
    put(guide, env + "/lib/python3.12/site-packages/ucx_py-0.41.0.dist-info", "METADATA", b"",
        "alice")
    guide.shell("cd %s/lib; ln -s libucp.so.0.0.0 libucp.so.0; ln -s libuct.so.0.0.0 "
                "libuct.so.0" % env)
    found = census(guide, user="alice")
    ucp, uct = found[env + "/lib/libucp.so.0"], found[env + "/lib/libuct.so.0"]
    assert (ucp["version"], uct["version"], uct["version_by"]) == ("1.18.0", "1.18.0", "libucp")
    # built with cuda, but the module is not there
    assert ucp["features"] == uct["features"] == {"verbs": True, "cuda": False, "gdr_copy": True,
                                                  "mt": True}
    assert ucp["used_by"] == [env] and ucp["place"] == "conda"
    assert (found[env + "/lib/libnccl.so.2"]["version"],
            found[env + "/lib/libnccl.so.2"]["version_by"]) == ("2.26.2.1", "package")
    assert found[env + "/lib/libgdrapi.so.2"]["version"] == "2.5"
    assert found[env + "/lib/python3.12/site-packages/ucp"]["version"] == "0.41.0"


def test_prefixes_variables_and_what_is_not_loadable(guide, make):
    put(guide, "/var/lib/site/lib64", "libnccl.so.2.18.1", nccl(make, "2.18.1"))
    put(guide, "/var/lib/site/lib64", "libnccl_static.a", b"!<arch>\nx\0NCCL version 2.18.1+c\0")
    put(guide, "/var/lib/site/include", "nccl.h",
        "#define NCCL_MAJOR 2\n#define NCCL_MINOR 18\n#define NCCL_PATCH 1\n")
    put(guide, "/var/lib/home/lib", "libnccl.so.2", "INPUT(libnccl.so.2.18.1)\n")
    guide.write("/etc/environment", "NCCL_HOME=/var/lib/home\n")
    guide.write(CONF, "[libraries]\nprefixes = /var/lib/site, /var/lib/nowhere\n")
    found = census(guide)
    lib = "/var/lib/site/lib64/"
    assert (found[lib + "libnccl.so.2.18.1"]["version"],
            found[lib + "libnccl.so.2.18.1"]["loadable"]) == ("2.18.1", False)
    assert found[lib + "libnccl_static.a"]["version"] == "2.18.1"
    assert found["/var/lib/site/include/nccl.h"]["version"] == "2.18.1"
    assert {row["place"] for path, row in found.items() if "/site/" in path} == {"config"}
    row = found["/var/lib/home/lib/libnccl.so.2"]
    assert (row["loadable"], row["problem"]) == (True, "not a shared object")
    assert row["where"] == "NCCL_HOME, /etc/environment:1"
    # what the configuration names and is not there is told; what is on nobody's path is none
    assert said(guide.json("check", "--ip", IP)) == [
        ("library.unread", "/var/lib/nowhere", "unknown")]


@pytest.mark.parametrize("value, what", [
    ("/opt/x:", "an empty part"), (":/opt/x", "an empty part"), ("/opt/x::/opt/y", "an empty part"),
    (":", "an empty part"), ("lib:/opt/x", '"lib"'), ("/opt/x;../lib", '"../lib"'),
    ("/opt/x:/opt/y", None), ("", None), ("$NOWHERE", None)])
def test_a_path_that_depends_on_where_a_program_starts(guide, value, what):
    guide.write("/etc/profile.d/site.sh", "# site\nexport LD_LIBRARY_PATH=\"%s\"\n" % value)
    done = guide.json("check", "--ip", IP)
    assert said(done) == ([("library.path_relative", "/etc/profile.d/site.sh:2", "warn")]
                          if what else [])
    assert what is None or what in done.check("library.path_relative")["message"]


def test_an_empty_part_is_where_a_program_starts(guide, make):
    """The dynamic linker itself, and a user's own script."""
    put(guide, "/tmp/here", "libnccl.so.2", nccl(make, "2.9.1"))
    code = "import ctypes; ctypes.CDLL('libnccl.so.2'); print(open('/proc/self/maps').read())"
    done = guide.run("/usr/bin/python3", "-c", code, cwd="/tmp/here",
                     only_env={"PATH": "/usr/bin", "LD_LIBRARY_PATH": "/opt/x:"})
    assert "/tmp/here/libnccl.so.2" in done.stdout
    guide.write(CONF, "[nccl]\nusers = alice\n")
    guide.write("/home/alice/.profile", "export LD_LIBRARY_PATH=/opt/x:$LD_LIBRARY_PATH\n")
    guide.text("chown", "alice", "/home/alice/.profile")
    assert said(guide.json("check", "--ip", IP)) == [
        ("library.path_relative", "/home/alice/.profile:1", "warn")]


@pytest.mark.parametrize("trick", ["echo INPUT >%s/libnccl.so.2", "mkdir %s/libnccl.so.2"])
def test_one_that_is_no_shared_object(guide, make, trick):
    """The dynamic linker gives up there, and does not take the next one."""
    put(guide, NEW, "libnccl.so.2", nccl(make, "2.28.3"))
    cached(guide, NEW)
    guide.text("mkdir", "-p", OLD, "/home/alice/lib")
    guide.shell(trick % OLD)
    done = guide.run("/usr/bin/python3", "-c", "import ctypes; ctypes.CDLL('libnccl.so.2')",
                     only_env={"PATH": "/usr/bin", "LD_LIBRARY_PATH": OLD})
    assert done.rc != 0 and OLD in done.stderr
    guide.apply()
    guide.write("/etc/profile.d/site.sh", "export LD_LIBRARY_PATH=%s\n" % OLD)
    done = guide.json("check", "--ip", IP, rc=1)
    assert said(done) == [("library.damaged", OLD + "/libnccl.so.2", "fail")]
    assert "logins" in done.check("library.damaged")["message"]
    # a user's own is no less than a warning, and no more
    guide.text("rm", "/etc/profile.d/site.sh")
    guide.write(CONF, "[nccl]\nusers = alice\n")
    guide.shell(trick % "/home/alice/lib")
    guide.write("/home/alice/.profile", "export LD_LIBRARY_PATH=$HOME/lib\n")
    guide.text("chown", "-R", "alice:", "/home/alice")
    assert said(guide.json("check", "--ip", IP)) == [
        ("library.damaged", "/home/alice/lib/libnccl.so.2", "warn")]


def test_a_library_of_a_debian_package(guide, make):
    """One that has no version in it, nor in its name."""
    lib = "/var/lib/deb/lib"
    put(guide, lib, "libgdrapi.so.2", make("libgdrapi.so.2", "x"))
    cached(guide, lib)
    assert census(guide)[lib + "/libgdrapi.so.2"]["version"] is None
    guide.write("/var/lib/dpkg/info/libgdrapi.list", "/.\n%s/libgdrapi.so.2\n" % lib)
    guide.shell("printf 'Package: libgdrapi\\nVersion: 2.4.4-1\\n\\n' >>/var/lib/dpkg/status")
    row = census(guide)[lib + "/libgdrapi.so.2"]
    assert (row["version"], row["version_by"]) == ("2.4.4", "package")


# ---- hostile homes ----

def hostile(node, make):
    lib = "/home/alice/.local/lib"
    put(node, lib, "libnccl.so.2.1.1", nccl(make, "2.29.1"), "alice")
    node.text("ln", "-s", "/home/alice/.local/lib/libnccl.so.2.1.1", lib + "/libnccl.so.1")
    node.text("mkfifo", lib + "/libnccl.so.2")
    node.text("ln", "-s", "/etc/shadow", lib + "/libucp.so.0")
    node.text("ln", "-s", "/dev/zero", lib + "/libucp.so.1")
    node.text("truncate", "-s", "1G", lib + "/libuct.so.0")
    node.text("ln", "-s", "libgdrapi.so.3", lib + "/libgdrapi.so.2")
    node.text("ln", "-s", "libgdrapi.so.2", lib + "/libgdrapi.so.3")
    node.text("mkdir", lib + "/libgdrapi.so.4")
    # an ELF of 1 GB, all of it read-only data
    node.shell("cd %s; cp libnccl.so.2.1.1 libuct.so.1; truncate -s 1G libuct.so.1" % lib)
    top = "/home/alice/miniconda3"
    node.text("mkdir", "-p", top + "/conda-meta", top + "/envs/real/conda-meta", top + "/lib")
    node.text("ln", "-s", "..", top + "/envs/loop")
    node.text("ln", "-s", "/root", top + "/lib64")
    node.shell("cd %s/envs/real; ln -s .. envs; mkdir lib; cd lib; for i in $(seq 300); do "
               "echo x >libnccl.so.$i; done" % top)
    node.text("ln", "-s", "/var/lib/scratch", "/home/alice/anaconda3")
    node.text("mkdir", "-p", "/home/alice/.conda", "/var/lib/secret/lib")
    node.write("/var/lib/secret/lib/libnccl.so.2", nccl(make, "2.20.1"))
    node.text("chmod", "0700", "/var/lib/secret")
    node.write("/home/alice/.conda/environments.txt",
               "/var/lib/secret\n/home/alice/../../root\n\x01\n/\n\n" + "/x" * 3000 + "\n")
    node.text("chown", "-hR", "alice:", "/home/alice")
    return lib


def test_names_cannot_forge_a_row(guide, make):
    evil = "/home/alice/x\nnccl 2.28.3: libnccl.so.2\n\tused by services\x1b[2J"
    put(guide, evil + "/lib", "libnccl.so.2", nccl(make, "2.5.6"), "alice")
    put(guide, evil, "pyvenv.cfg", "home = /usr/bin\n", "alice")
    guide.write(CONF, "[nccl]\nusers = alice\n")
    assert census(guide)[evil + "/lib/libnccl.so.2"]["version"] == "2.5.6"
    text = guide.text(PLAIN, "show", "libraries")
    assert "\nnccl 2.28.3: libnccl.so.2" not in text and "\x1b" not in text
    assert "\nnccl 2.5.6: /home/alice/x\\x0anccl" in text


def test_a_hostile_home(guide, make):
    lib = hostile(guide, make)
    guide.write(CONF, "[nccl]\nusers = alice\n")
    found = census(guide)
    problems = {path[len(lib) + 1:]: row["problem"] for path, row in found.items()
                if path.startswith(lib + "/") and row["problem"]}
    assert problems == {
        "libnccl.so.1": "a symbolic link to %s/libnccl.so.2.1.1; not followed" % lib,
        "libnccl.so.2": "a FIFO",
        "libucp.so.0": "a symbolic link to /etc/shadow; not followed",
        "libucp.so.1": "a symbolic link to /dev/zero; not followed",
        "libuct.so.0": "not a shared object",
        "libgdrapi.so.2": problems["libgdrapi.so.2"],
        "libgdrapi.so.3": problems["libgdrapi.so.3"],
        "libgdrapi.so.4": "a directory"}
    assert problems["libgdrapi.so.2"].startswith("cannot be looked at:")
    assert found[lib + "/libnccl.so.2.1.1"]["version"] == "2.29.1"
    assert found["/home/alice/anaconda3"]["problem"].startswith("a symbolic link to /var/lib/")
    assert found["/home/alice/miniconda3/lib64"]["problem"].startswith("a symbolic link")
    # what alice cannot read is not read for her; loops lead nowhere
    assert not [path for path in found if "/secret/" in path or "/loop/" in path]
    assert len([path for path in found if "/envs/real/lib/" in path]) == 64


def test_root_opens_nothing_of_a_hostile_home(guide, make):
    hostile(guide, make)
    guide.write(CONF, "[nccl]\nusers = alice\n")
    guide.run("strace", "-f", "-qq", "-y", "-s", "300", "-o", "/tmp/trace", "-e",
              "trace=open,openat,openat2,setresuid", PLAIN, "check", "--ip", IP)
    trace = guide.read("/tmp/trace").decode("utf-8", "replace").splitlines()
    became = {line.split()[0] for line in trace if "setresuid(" in line}
    opened = [(line.split()[0], line.rsplit("= ", 1)[1]) for line in trace if "= " in line]
    # O_PATH alone was used for what is no regular file
    for line in trace:
        if re.search(r"= \d+<(/etc/shadow|/dev/zero|[^>]*/libnccl\.so\.2)>", line) and \
                "O_PATH" not in line:
            assert line.split()[0] not in became, line
            assert "/home/alice" not in line, line
    assert [1 for pid, what in opened if "/home/alice/.local/lib" in what and pid in became]
    assert not [what for pid, what in opened
                if "/home/alice/.local/lib" in what and pid not in became]


def test_a_place_that_others_may_change_is_not_roots_to_read(guide, make):
    """A prefix in a home, and a folder of LD_LIBRARY_PATH in /tmp: by their owner."""
    put(guide, "/home/alice/site/lib", "libnccl.so.2", nccl(make, "2.20.5"), "alice")
    guide.text("ln", "-s", "/etc/shadow", "/home/alice/site/lib/libucp.so.0")
    guide.text("chmod", "0700", "/home/alice")
    guide.text("mkdir", "-p", "/tmp/open")
    guide.write("/tmp/open/libnccl.so.2", nccl(make, "2.20.6"))
    guide.text("chmod", "0777", "/tmp/open")
    guide.text("chmod", "0600", "/tmp/open/libnccl.so.2")
    guide.write("/etc/profile.d/x.sh", "export LD_LIBRARY_PATH=/tmp/open\n")
    guide.write(CONF, "[libraries]\nprefixes = /home/alice/site\n")
    found = census(guide)
    assert found["/home/alice/site/lib/libnccl.so.2"]["version"] == "2.20.5"
    assert found["/home/alice/site/lib/libucp.so.0"]["problem"].startswith("a symbolic link")
    row = found["/tmp/open/libnccl.so.2"]
    assert row["version"] is None and row["problem"].startswith("cannot be read: Permission")


def test_an_ordinary_user_sees_the_system_and_its_own(guide, make):
    put(guide, "/home/alice/.local/lib", "libnccl.so.2", nccl(make, "2.21.5"), "alice")
    guide.write(CONF, "[nccl]\nusers = root, alice\n")
    found = census(guide, user="alice")
    assert found["/home/alice/.local/lib/libnccl.so.2"]["version"] == "2.21.5"
    assert found["/root"]["problem"] == "not looked into: run it as root"
