# SPDX-License-Identifier: MIT
"""apply --root DIR: the files of an image's tree; the node that runs it is left alone."""

import pytest
from helpers import IP, PLAIN

IMAGE = "/tmp/image"
CONF = """[netdev ib0]
address = hosts:%%h-ib0/24
[ports]
devices = mlx5_0:1, mlx5_1:1
[module gdrdrv]
require = yes
%s"""
UCX = ["/etc/profile.d/nodeprep-ucx.sh", "/etc/profile.d/nodeprep-ucx.csh",
       "/etc/nodeprep/ucx.env"]
FILES = sorted(["/etc/nccl.conf", "/etc/modules-load.d/nodeprep.conf",
                "/etc/modprobe.d/nodeprep.conf", "/etc/security/limits.d/nodeprep.conf", *UCX])


@pytest.fixture(name="one")
def _one(node):
    """A node with no HCA in the image's words, and a small tree on it."""
    one = node("guide.ini")
    one.shell("mkdir -p %s/etc/nodeprep %s/home/bob %s/root; cd %s; "
              "echo root:x:0:0::/root:/bin/sh >etc/passwd; "
              "echo bob:x:4321:4321::/home/bob:/bin/sh >>etc/passwd; chown 4321 home/bob; "
              "echo root:x:0: >etc/group; echo rdma:x:777: >>etc/group" % ((IMAGE,) * 4))
    config(one)
    return one


def config(one, more="", text=CONF):
    one.write(IMAGE + "/etc/nodeprep/nodeprep.conf", (text % more).encode())


# LeakSanitizer wants /proc, which a tree has not
NO_PROC = {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99"}


def render(one, *argv, rc=0, verb="apply", env=None, **how):
    return one.json(verb, "--root", IMAGE, *argv, rc=rc, env=NO_PROC if env is None else env, **how)


def inside(one, path):
    data = one.read(IMAGE + path)
    return data.decode() if data is not None else None


def live(one):
    """All that is not the image, without what a running node does by itself."""
    return one.state(), one.run("sh", "-c", "ls -A /var/lib /run /tmp").stdout


def test_the_files_are_written_into_the_tree(one):
    before = live(one)
    plan = render(one, verb="plan")
    assert sorted(a["target"] for a in plan.doc["actions"]) == FILES
    assert inside(one, "/etc/nccl.conf") is None
    done = render(one)
    assert sorted(a["target"] for a in done.doc["actions"]) == FILES
    assert {a["status"] for a in done.doc["actions"]} == {"done"}
    assert inside(one, "/etc/nccl.conf").splitlines()[-1] == "NCCL_SOCKET_IFNAME=ib0"
    assert "mlx5_0:1,mlx5_1:1" in inside(one, "/etc/nodeprep/ucx.env")
    assert inside(one, "/etc/modules-load.d/nodeprep.conf").splitlines()[-1] == "gdrdrv"
    assert "options gdrdrv" in inside(one, "/etc/modprobe.d/nodeprep.conf")
    assert "*\tsoft\tmemlock\tunlimited" in inside(one, "/etc/security/limits.d/nodeprep.conf")
    assert live(one) == before
    # no address, no journal, no home
    assert one.run("test", "-e", IMAGE + "/var").rc == 1
    assert inside(one, "/root/.nccl.conf") is None
    one.shell("mkdir %s/proc && mount --bind /proc %s/proc" % (IMAGE, IMAGE))
    again = render(one, env={})
    assert again.doc["actions"] == [] and again.doc["changed"] is False and again.doc["ready"]


def test_nothing_is_loaded_opened_or_asked(one):
    """No netlink, no sysfs, no modules: by the calls that it makes."""
    if one.run("sh", "-c", "command -v strace").rc:
        pytest.skip("no strace")
    # not the one with sanitizers, which read /proc themselves
    done = one.run("strace", "-f", "-o", "/tmp/calls", PLAIN, "apply", "--root", IMAGE)
    assert done.rc == 0, done
    calls = one.read("/tmp/calls").decode()
    after = calls[calls.index('chroot("."'):]
    assert "AF_NETLINK" not in calls and "init_module" not in calls
    assert "/sys/" not in after and "/lib/" not in after, after


def test_what_only_the_node_knows_is_left(one):
    config(one, text="[netdev ib0]\nmatch = auto\naddress = 10.0.0.50/24\n%s[ports]\n"
                     "devices = mlx5_0\n")
    done = render(one)
    left = {c["target"]: c for c in done.checks(code="image.first_boot")}
    assert set(UCX) <= set(left), left
    assert all(c["status"] == "skip" for c in left.values())
    assert [a["target"] for a in done.doc["actions"]] == ["/etc/security/limits.d/nodeprep.conf"]
    assert done.doc["ready"]


def test_what_is_there_is_not_taken_away(one):
    """An image that was taken from a node: its files are right there."""
    render(one)
    config(one, text="%s")
    done = render(one)
    assert done.doc["actions"] == []
    assert "gdrdrv" in inside(one, "/etc/modules-load.d/nodeprep.conf")


@pytest.mark.parametrize("link, target", [
    ("etc/profile.d", "/etc/profile.d"), ("etc/nccl.conf", "/etc/nccl.conf"),
    ("etc/modprobe.d", "../../../../../etc/modprobe.d"),
    ("etc/security", "/proc/self/root/etc/security"),
])
def test_links_do_not_lead_out(one, link, target):
    before = live(one)
    one.text("ln", "-s", target, "%s/%s" % (IMAGE, link))
    render(one, rc=None)
    assert live(one) == before


def test_users_are_those_of_the_tree(one):
    """alice is one of this node alone."""
    assert render(one, "--user", "alice", rc=2).error["code"] == "usage.user"
    done = render(one, "--user", "bob")
    assert "/home/bob/.nccl.conf" in [a["target"] for a in done.doc["actions"]]
    assert one.text("stat", "-c", "%u", IMAGE + "/home/bob/.nccl.conf").strip() == "4321"
    config(one, "[limits]\ngroup = rdma\n")
    render(one, "--user", "bob")
    assert "@rdma\tsoft" in inside(one, "/etc/security/limits.d/nodeprep.conf")


def test_no_library_of_the_tree_is_loaded(one):
    """Its name service asks for a module: that would run what the image brings, as root."""
    one.write(IMAGE + "/etc/nsswitch.conf", b"passwd: evil files\ngroup: evil files\n")
    one.shell("mkdir -p %s/lib/x86_64-linux-gnu %s/usr/lib/x86_64-linux-gnu" % (IMAGE, IMAGE))
    for where in ("lib", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"):
        one.text("mkfifo", "%s/%s/libnss_evil.so.2" % (IMAGE, where))
    # opening one of them would hang
    render(one, "--user", "bob", timeout=20)


def test_usage(one):
    done = one.json("apply", "--root", "/tmp/nowhere", rc=2, env=NO_PROC)
    assert done.error["code"] == "image.root" and "/tmp/nowhere" in done.error["message"]
    # a tree has no run that could be taken back
    for verb in ("apply", "plan"):
        done = render(one, "--confirm", "60", verb=verb, rc=2)
        assert done.error["code"] == "usage.value" and "--confirm" in done.error["message"]
    assert inside(one, "/etc/nccl.conf") is None
    assert one.json("apply", "--root", "/etc/passwd", rc=2, env=NO_PROC).error["code"] == "image.root"
    assert render(one, user="alice", rc=3).error["code"] == "privilege.root"
    # --config is a file of this system
    one.write("/tmp/mine.conf", b"[limits]\nmemlock = keep\n[ports]\ndevices = mlx5_7:1\n")
    done = render(one, "--config", "/tmp/mine.conf")
    assert sorted(a["target"] for a in done.doc["actions"]) == sorted(UCX)
    assert IP not in str(done.doc)


# ---- trees that somebody else made ----

@pytest.mark.parametrize("root", ["/", "//", "/proc/self/root", "/tmp/..", "/tmp/link"])
def test_the_running_system_is_no_tree(one, root):
    """It would be changed without a journal. Where nothing was booted it is one: in a container
    or chroot in which an image is built."""
    one.shell("ln -s / /tmp/link; mkdir -p /run/systemd/system")
    one.write("/etc/nodeprep/nodeprep.conf", CONF % "")
    before = live(one)
    done = one.json("apply", "--root", root, rc=2, env=NO_PROC)
    assert done.error["code"] == "image.root" and "running system" in done.error["message"]
    assert live(one) == before
    one.text("rmdir", "/run/systemd/system")
    done = one.json("plan", "--root", root, rc=0)
    assert "/etc/nccl.conf" in [a["target"] for a in done.doc["actions"]]


@pytest.mark.parametrize("script, target", [
    # /proc of this system is mounted in it, as for a package manager that is run in there
    ("ln -s /proc/1/root/etc/site etc/profile.d", "/etc/profile.d/nodeprep-ucx.sh"),
    ("ln -s /proc/1/root/etc/site etc/modules-load.d", "/etc/modules-load.d/nodeprep.conf"),
    ("mkdir -p etc/security; ln -s /proc/1/root/etc/site etc/security/limits.d",
     "/etc/security/limits.d/nodeprep.conf"),
    ("ln -s /proc/1/root/etc/site/made etc/modprobe.d", "/etc/modprobe.d/nodeprep.conf"),
    ("ln -s /proc/1/root/etc/site/f etc/nccl.conf", "/etc/nccl.conf"),
    ("rmdir home/bob; ln -s /proc/1/root/etc/site home/bob", "/home/bob/.nccl.conf"),
    ("mv home h; ln -s /proc/1/root/home home", "/home/bob/.nccl.conf"),
    # loops
    ("ln -s profile.d etc/profile.d", "/etc/profile.d/nodeprep-ucx.sh"),
    ("ln -s /etc/modprobe.d etc/modprobe.d", "/etc/modprobe.d/nodeprep.conf"),
    ("ln -s ../etc/a etc/b; ln -s b etc/a; ln -s a etc/security",
     "/etc/security/limits.d/nodeprep.conf"),
    ("mkfifo etc/nccl.conf", "/etc/nccl.conf"),
    ("truncate -s 1G etc/nccl.conf", "/etc/nccl.conf"),
    ("touch etc/profile.d", "/etc/profile.d/nodeprep-ucx.sh"),
])
def test_nothing_leads_out_of_it(one, script, target):
    one.shell("mkdir %s/proc && mount --bind /proc %s/proc" % (IMAGE, IMAGE))
    # what the links of the tree are to hit
    one.shell("mkdir -p /etc/site /home/bob; chown 4321 /etc/site /home/bob; echo f >/etc/site/f")
    assert one.shell("cd %s && %s" % (IMAGE, script)).rc == 0
    before = live(one)
    done = render(one, "--user", "bob", rc=1, env={}, timeout=30)
    assert live(one) == before
    failed = {c["target"] for c in done.checks(status="fail")}
    assert target in failed, done
    # the other files are there
    assert inside(one, "/etc/nodeprep/ucx.env")
    again = render(one, "--user", "bob", rc=1, env={}, timeout=30)
    assert again.doc["changed"] is False and live(one) == before


def test_a_tree_whose_etc_is_its_root(one):
    """It is a link that stays inside, but no folder: said, and no file is written elsewhere."""
    one.shell("cd %s && mv etc/* . && rmdir etc && ln -s / etc" % IMAGE)
    before = live(one)
    done = render(one, rc=1)
    assert {c["target"] for c in done.checks(status="fail")} >= set(FILES)
    assert done.doc["actions"] == [] or done.statuses() == {"failed"}
    assert live(one) == before and inside(one, "/nccl.conf") is None


@pytest.mark.parametrize("script", [
    "truncate -s 4G etc/passwd", "truncate -s 4G etc/group",
    "rm etc/passwd; mkfifo etc/passwd", "rm etc/group; mkfifo etc/group",
    "rm etc/passwd; mkdir etc/passwd", "rm etc/passwd; mknod etc/passwd c 1 5",
    "rm etc/group; ln -s /proc/kmsg etc/group",
])
def test_users_that_cannot_be_read(one, script):
    """libc would wait for their end."""
    one.shell("mkdir %s/proc && mount --bind /proc %s/proc" % (IMAGE, IMAGE))
    assert one.shell("cd %s; %s" % (IMAGE, script)).rc == 0
    config(one, "[limits]\ngroup = rdma\n")
    before = live(one)
    for argv in ([], ["--config", IMAGE + "/etc/nodeprep/nodeprep.conf"]):
        done = render(one, "--user", "bob", *argv, rc=2, timeout=20, env={})
        assert done.error["code"] == "image.root", done
        assert ("/etc/group" if "group" in script else "/etc/passwd") in done.error["message"]
    assert live(one) == before and inside(one, "/etc/nccl.conf") is None


@pytest.mark.parametrize("path", ["etc/nodeprep/nodeprep.conf", "etc/nodeprep/conf.d/x.conf",
                                  "etc/security/limits.conf", "etc/security/limits.d/x.conf"])
def test_what_else_is_read_of_it(one, path):
    one.shell("cd %s; rm -f %s; mkdir -p $(dirname %s); mkfifo %s" % (IMAGE, path, path, path))
    before = live(one)
    done = render(one, rc=None, timeout=20)
    assert done.rc in (0, 1, 2) and live(one) == before


@pytest.mark.parametrize("name", ["passwd", "group"])
def test_a_tree_without_users(one, name):
    one.text("rm", "%s/etc/%s" % (IMAGE, name))
    assert render(one).statuses() == {"done"}


def test_a_tree_of_somebody_else(one):
    """Its owner gains nothing by what root writes into it."""
    one.shell("chown -R alice %s" % IMAGE)
    before = live(one)
    done = render(one)
    assert done.statuses() == {"done"} and live(one) == before
    owner = one.text("stat", "-c", "%u %a", IMAGE + "/etc/nccl.conf")
    assert owner.split() == ["0", "644"]
