# SPDX-License-Identifier: MIT
"""The hook that packages run (packaging/hook/post-install) on simulated nodes: what it applies,
what it leaves for later, where it does nothing at all, and that it neither fails nor hangs.
On a real system: tests/vm/scenarios/systemd-unit.sh. In the place of what a simulated node
cannot be, a booted host, stands a systemd-detect-virt that says so, and /run/systemd/system."""

import os
import re
import shutil
import signal
import subprocess

import pytest
from helpers import BUILD, ENV, IP, NODEPREP, ROOT, need_node
from test_in_use import UP, hold

CONF = "/etc/nodeprep/nodeprep.conf"
WITH_ADDRESS = "[netdev ib0]\naddress = %s\n[ports]\nwait = 0\n" % IP
# what a run may leave beside what is asked for; the lock is not a change
OURS = ["/run/nodeprep", "/run/systemd"]


class Hook:
    """`make install` into a folder that nodes see at its own path; with the sanitized programs."""

    def __init__(self, where):
        self.top = str(where)
        self.libexec = self.top + "/usr/libexec/nodeprep"
        self.agent = self.top + "/usr/sbin/nodeprep"
        # what is built already, whatever it was built with
        subprocess.run(["make", "-s", "-o", "all", "-C", ROOT, "install", "BUILD=" + os.path.relpath(BUILD, ROOT),
                        "PREFIX=%s/usr" % self.top, "SYSCONFDIR=%s/etc" % self.top], check=True,
                       stdout=subprocess.DEVNULL, env={"PATH": ENV["PATH"]}, timeout=300)
        for name in ("nodeprep", "nodeprep-selftest"):
            shutil.copy2(os.path.join(BUILD, "asan", name), os.path.dirname(self.agent))
        # real hardware is given longer to come than a test has
        self.replace("unattended", "hardware_s=30 ", "hardware_s=1 ")

    def replace(self, script, old, new):
        path = os.path.join(self.libexec, script)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert text.count(old) == 1, (script, old)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))

    def host(self, node, ini="guide.ini", *options, conf=WITH_ADDRESS, virt="exit 1"):
        """A node that looks like a booted host."""
        one = node(ini, "--bind", self.top, *options)
        one.write("/run/systemd/system/x", "")
        one.write("/tmp/comm", "systemd\n")
        one.text("mount", "--bind", "/tmp/comm", "/proc/1/comm")
        if virt:
            one.write("/tmp/virt", "#!/bin/sh\n%s\n" % virt)
            one.text("chmod", "755", "/tmp/virt")
            one.text("mount", "--bind", "/tmp/virt", "/usr/bin/systemd-detect-virt")
        # of the image that these tests may run in
        one.shell("[ ! -e /usr/sbin/policy-rc.d ] || mount --bind /dev/null /usr/sbin/policy-rc.d")
        if conf is not None:
            one.write(CONF, conf)
        return one

    def stand_in(self, one, script):
        """Another program in the place of nodeprep."""
        one.write("/tmp/agent", "#!/bin/sh\n%s\n" % script)
        one.text("chmod", "755", "/tmp/agent")
        one.text("mount", "--bind", "/tmp/agent", self.agent)

    def run(self, one, says=None, changes=False, **env):
        """Its lines. It never fails, and nothing of it is on stdout."""
        before = one.state(but=OURS)
        done = one.run(self.libexec + "/post-install", env=env)
        assert done.rc == 0 and done.stdout == "", done
        lines = done.stderr.splitlines()
        assert lines and all(line.startswith("nodeprep: ") for line in lines), done
        assert len(lines) <= 4, lines
        if not changes:
            assert one.state(but=OURS) == before
        if says:
            assert any(says in line for line in lines), lines
        return lines

    def unattended(self, one, *argv, rc):
        done = one.run(self.libexec + "/unattended", *argv)
        assert done.rc == rc and done.stdout == "", done
        return done.stderr.splitlines()


@pytest.fixture(scope="module")
def hook(tmp_path_factory):
    need_node()
    assert shutil.which("systemd-detect-virt"), "not installed: make deps"
    where = tmp_path_factory.mktemp("hook")
    for folder in (where, *where.parents[:3]):  # of pytest, for its user alone
        if folder.stat().st_mode & 0o077 == 0:
            folder.chmod(0o755)
    return Hook(where)


# ---- what it does ----

def test_an_address_in_the_configuration_is_applied_and_twice_is_no_change(hook, node):
    one = hook.host(node)
    lines = hook.run(one, "nodeprep: ready: ", changes=True)
    assert one.ipv4() == [IP] and one.links()["ib0"]["up"]
    assert "netdev.address_add ib0" in lines[0] and "more" in lines[0]
    assert b"ib0" in one.read("/etc/nccl.conf")
    assert hook.run(one) == ["nodeprep: nothing to change"]


def test_who_called_sudo_for_the_package_manager_makes_no_difference(hook, node):
    one = hook.host(node)
    hook.run(one, "ready: ", changes=True, SUDO_USER="alice", SUDO_UID="1000")
    assert one.read("/root/.nccl.conf") and one.read("/home/alice/.nccl.conf") is None
    # nor when it is another one who upgrades
    assert hook.run(one, SUDO_USER="bob") == ["nodeprep: nothing to change"]


def test_no_address_is_pending(hook, node):
    one = hook.host(node, conf=None)
    lines = hook.run(one, "pending: no address is configured; set address in [netdev ib0] of " + CONF)
    assert len(lines) == 1
    one.write(CONF, "[netdev ib0]\nmtu = 2044\n[ports]\nignore = mlx5_3:1\n")
    hook.run(one, "pending: no address is configured")
    # a source is an address
    one.write(CONF, "[netdev ib0]\naddress = hosts:%h-ib0/24\n")
    assert not any("no address is configured" in line for line in hook.run(one, "pending: "))


def test_what_no_address_means_is_the_agents_word(node):
    one = node("guide.ini")
    found = one.json("plan", rc=0).check("config.no_address", "node")
    assert found["status"] == "skip" and "[netdev NAME] address" in found["hint"]
    for verb in ("plan", "check", "apply"):
        done = one.json(verb, "--ip", IP, *(["--no-selftest"] if verb == "apply" else []))
        assert done.checks(code="config.no_address") == []


def test_a_fault_of_the_configuration_is_pending(hook, node):
    one = hook.host(node, conf="[netdev ib0]\nadress = 10.0.0.50/24\n")
    lines = hook.run(one, "nodeprep: pending: ")
    assert "nodeprep.conf:2" in lines[0] and '"address"' in lines[0], lines


@pytest.mark.parametrize("make, says", [
    ("mkfifo $1", "not a regular file"), ("mkdir $1", "is a directory"), ("ln -s /dev/zero $1", "not a regular file"),
    ("head -c 20000000 /dev/zero | tr '\\0' '#' >$1", "50-x.conf"), ("head -c 99999 /dev/urandom >$1", "50-x.conf"),
    ("ln -s 50-x.conf $1", "50-x.conf")])
def test_a_file_that_is_no_configuration_is_pending(hook, node, make, says):
    one = hook.host(node)
    one.shell("mkdir -p /etc/nodeprep/conf.d; set -- /etc/nodeprep/conf.d/50-x.conf; " + make)
    lines = hook.run(one, "nodeprep: pending: ")
    assert len(lines) == 1 and says in lines[0].replace("Is a", "is a") and lines[0].isprintable(), lines
    # and the boot does not take it for a node without an address
    hook.unattended(one, "configured", rc=0)


def test_another_run_at_work_is_not_waited_for_without_an_end(hook, node):
    one = hook.host(node)
    held = one.spawn("sh", "-c", "mkdir -p /run/nodeprep; exec flock -F /run/nodeprep/lock sleep 600")
    one.text("sh", "-c", "while flock -n /run/nodeprep/lock true; do sleep 0.05; done")
    lines = hook.run(one, "pending: another nodeprep has been at work for 30 s", NODEPREP_HOOK_SECONDS="600")
    assert len(lines) == 1 and lines[0].endswith("then run nodeprep apply")
    one.kill(held, signal.SIGKILL)
    one.wait(held)


def test_c40_a_running_job_keeps_what_it_has(hook, node):
    one = hook.host(node, "guide.ini", *UP)
    held = hold(one)
    lines = hook.run(one, "run nodeprep apply when the job is over")
    assert len(lines) == 1 and "(solver)" in lines[0] and "force" not in lines[0], lines
    one.kill(held)
    one.wait(held)
    hook.run(one, "ready: ", changes=True)
    assert one.ipv4() == [IP]


def test_a_gdrdrv_that_this_kernel_has_not_is_pending(hook, node):
    one = hook.host(node, "c38-no-gdrdrv.ini",
                    conf="[netdev ib0]\nmatch = auto\naddress = 10.9.0.1/24\n[ports]\nwait = 0\n")
    for changes in (True, False):
        lines = hook.run(one, "pending on kernel %s: gdrdrv: " % os.uname().release,
                         changes=changes)
        assert lines[-1].count("gdrdrv: ") == 1 and ";" in lines[-1], lines


def test_an_upgrade_does_not_write_what_is_there_otherwise(hook, node):
    """A default that changed is played by the key that would bring the old one back."""
    one = hook.host(node)
    hook.run(one, "ready", changes=True)
    one.write(CONF, WITH_ADDRESS + "[ucx]\nprofile = guide\n")
    lines = hook.run(one, "pending: this version would write /etc/profile.d/nodeprep-ucx.sh")
    assert "nodeprep plan" in lines[0]
    # what the configuration asks of the interface is done
    one.write(CONF, WITH_ADDRESS.replace(".50/", ".51/"))
    hook.run(one, "ready: ", changes=True)
    assert "10.0.0.51/24" in one.ipv4()
    # and after a revert the node is one that was never made ready
    assert one.json("revert").rc == 0
    hook.run(one, "ready: ", changes=True)


def test_a_port_that_is_not_up_is_said(hook, node):
    one = hook.host(node, "c05-no-sm.ini")
    lines = hook.run(one, "applied: ", changes=True)
    assert one.ipv4() == [IP]
    assert any("not ready: mlx5_" in line and "subnet manager" in line for line in lines), lines


# ---- where it does nothing ----

NOWHERE = "nodeprep: not applied here: "


@pytest.mark.parametrize("how", ["systemd", "containerenv", "variable", "systemd's file", "docker"])
def test_nothing_in_a_container(hook, node, how):
    one = hook.host(node, virt="[ $1 = --container ]" if how == "systemd" else None if how == "docker" else "exit 1")
    env = {}
    if how == "containerenv":
        one.write("/run/.containerenv", "")
    elif how == "systemd's file":
        one.write("/run/systemd/container", "lxc\n")
    elif how == "variable":
        env = {"container": "podman"}
    elif how == "docker":
        if not os.path.exists("/.dockerenv"):
            pytest.skip("hardware: this machine is no such container")
        one.text("mount", "--bind", "/dev/null", "/usr/bin/systemd-detect-virt")
    assert hook.run(one, NOWHERE + "a container", **env)


def test_nothing_in_a_chroot(hook, node):
    """With /proc and without; and without any /dev."""
    one = hook.host(node, virt=None)
    one.text("sh", "-ec", """
        cd /tmp; mkdir root; cd root
        mkdir proc dev run usr etc tmp var
        for name in bin sbin lib lib64; do ln -s usr/$name $name; done
        mount --bind /usr usr; mount --bind /etc etc; mount --bind /run run
        mkdir -p ".$0"; mount --bind "$0" ".$0" """, hook.top)
    script = ["chroot", "/tmp/root", hook.libexec + "/post-install"]
    before = one.state(but=OURS)
    for prepare, why in (("true", "no /dev/null"),
                         ("mount --rbind /dev /tmp/root/dev", "no /proc"),
                         ("mount --bind /proc /tmp/root/proc", "a chroot")):
        one.text("sh", "-c", prepare)
        done = one.run(*script)
        assert done.rc == 0 and done.stderr.startswith(NOWHERE + why), done
    assert one.state(but=OURS) == before
    # what tells one with /proc apart is the root of PID 1: nobody else was asked
    one.text("sh", "-c", "for p in systemd-detect-virt ischroot; do mount --bind /bin/false /tmp/root/usr/bin/$p; done")
    done = one.run(*script)
    assert done.rc == 0 and done.stderr.startswith(NOWHERE + "a chroot"), done


def test_nothing_in_a_chroot_with_a_pid_1_of_its_own_and_the_run_of_the_machine_that_builds(hook, node):
    one = hook.host(node, virt="exit 1")
    one.text("umount", "/proc/1/comm")
    before = one.state(but=OURS)
    done = one.run("unshare", "--pid", "--fork", "--mount-proc", hook.libexec + "/post-install")
    assert done.rc == 0 and done.stderr.startswith(NOWHERE + "/run is that of another system"), done
    assert one.state(but=OURS) == before


def test_nothing_while_an_image_is_built(hook, node):
    one = hook.host(node, "guide.ini", "--set", "node.private=/usr/sbin")
    one.text("rm", "-rf", "/run/systemd/system")
    hook.run(one, NOWHERE + "systemd does not run here")
    one.text("mkdir", "/run/systemd/system")
    hook.run(one, NOWHERE + "DPKG_ROOT", DPKG_ROOT="/mnt/image")
    hook.run(one, NOWHERE + "systemd does not run here", SYSTEMD_OFFLINE="1")
    one.shell("umount /usr/sbin/policy-rc.d")
    one.write("/usr/sbin/policy-rc.d", '#!/bin/sh\n[ "$1" = nodeprep ] && exit 101\n')
    one.text("chmod", "755", "/usr/sbin/policy-rc.d")
    hook.run(one, NOWHERE + "policy-rc.d")
    one.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 104\n")
    hook.run(one, "ready: ", DPKG_ROOT="/", changes=True)


def test_nothing_for_who_is_not_root(hook, node):
    one = hook.host(node)
    done = one.run(hook.libexec + "/post-install", user="alice")
    assert done.rc == 0 and done.stderr.startswith(NOWHERE + "not run by root"), done


# ---- it neither fails nor hangs ----

# a process that was killed needs a moment to be gone
NOBODY_SLEEPS = ["sh", "-c", "while pgrep -fx 'sleep 987654' >/dev/null; do sleep 0.05; done"]


@pytest.mark.parametrize("script", ["exit 5", "kill -9 $$", "echo '{'", "cat /dev/zero | head -c 3000000",
                                    "echo '{\n  \"error\": {\n    \"code\": \"internal\"\n  }\n}'; exit 5"])
def test_an_agent_that_fails(hook, node, script):
    one = hook.host(node)
    hook.stand_in(one, script)
    hook.run(one, "nodeprep: pending: ")


def test_programs_that_are_missing(hook, node):
    one = hook.host(node)
    one.text("mount", "--bind", "/dev/null", hook.agent)
    hook.run(one, "pending: nodeprep ended with code 126")
    one.text("mount", "--bind", "/dev/null", hook.libexec + "/unattended")
    hook.run(one, "unattended cannot be run")


def test_one_that_hangs_is_ended_with_all_that_it_started(hook, node):
    one = hook.host(node)
    hook.stand_in(one, "trap '' TERM INT HUP\nsleep 987654 &\nsleep 987654")
    hook.run(one, "pending: not done within 1 s, and stopped", NODEPREP_HOOK_SECONDS="1")
    one.text(*NOBODY_SLEEPS)
    # a value that is none leaves the deadline as it is
    hook.stand_in(one, "exit 5")
    for value in ("0", "9" * 30, "12x", "-1"):
        assert hook.run(one, "pending: ", NODEPREP_HOOK_SECONDS=value) == \
            ["nodeprep: pending: nodeprep ended with code 5 and no word; run nodeprep apply"]


def test_a_run_that_is_stopped_is_taken_back(hook, node):
    """The deadline comes while it waits for a port: the address is gone again, with the hook."""
    one = hook.host(node, "c05-no-sm.ini", conf=WITH_ADDRESS.replace("wait = 0", "wait = 600"))
    hook.replace("unattended", "install_wait_s=15 ", "install_wait_s=900 ")
    try:
        before = one.links(), one.tree("/etc", "/root")
        for seconds in ("3", "15", "75"):
            hook.run(one, "pending: not done within %s s" % seconds, changes=True,
                     NODEPREP_HOOK_SECONDS=seconds)
            assert (one.links(), one.tree("/etc", "/root")) == before
            begun = one.read("/run/nodeprep/lock") is not None and one.tree("/var/lib/nodeprep")
            if begun:  # a slow machine needs longer
                break
        assert begun
        assert one.run("pgrep", "-x", "nodeprep").rc == 1
    finally:
        hook.replace("unattended", "install_wait_s=900 ", "install_wait_s=15 ")


def test_a_package_manager_that_is_told_to_end_takes_it_along(hook, node):
    one = hook.host(node)
    hook.stand_in(one, "echo x >/tmp/started\nsleep 987654")
    spawned = one.spawn(hook.libexec + "/post-install")
    one.text("sh", "-c", "until [ -e /tmp/started ]; do sleep 0.05; done")
    one.kill(spawned, signal.SIGTERM)
    done = one.wait(spawned)
    assert done.rc == 0 and "pending: stopped" in done.stderr, done
    one.text(*NOBODY_SLEEPS)


def test_what_the_caller_has_open_is_left_alone(hook, node):
    """stdin, stdout and descriptor 3 may be debconf's: nobody reads, nobody writes, nobody holds
    them."""
    one = hook.host(node)
    hook.stand_in(one, "ls -l /proc/$$/fd >/tmp/fds; cat >/tmp/read; exit 5")
    done = one.shell("""
        mkfifo /tmp/pipe; exec 3<>/tmp/pipe 7<>/tmp/pipe
        printf 'first\\nsecond\\n' | { %s/post-install; cat; }""" % hook.libexec)
    assert done.stdout == "first\nsecond\n" and "pending" in done.stderr, done
    assert one.read("/tmp/read") == b""
    fds = one.read("/tmp/fds").decode()
    assert "/tmp/pipe" not in fds and re.search(r" 0 -> /dev/null", fds), fds
    # without any of them
    done = one.shell("%s/post-install <&- >&- 2>&-" % hook.libexec)
    assert done.rc == 0 and done.stdout == done.stderr == "", done


def test_the_agent_is_not_forced_and_nothing_else_is_run(hook, node):
    one = hook.host(node)
    hook.stand_in(one, 'echo "$*" >>/tmp/argv; exec %s "$@"' % NODEPREP)
    hook.run(one, "ready", changes=True)
    assert one.read("/tmp/argv").decode().splitlines() == [
        "plan --json --quiet", "apply --no-selftest --timeout 15 --json --quiet"]
    for script in ("post-install", "unattended"):
        with open(os.path.join(ROOT, "packaging/hook", script), encoding="utf-8") as file:
            code = "\n".join(line for line in file if not line.startswith("#"))
        assert not re.search(r"--force|(systemctl|service|invoke-rc\.d) +(re)?(start|stop)|modprobe|rmmod|"
                             r"openibd +(re)?st", code)


# ---- at boot ----

def test_boot_says_when_to_try_again(hook, node):
    """75 while what is missing may come by itself, the code of apply else."""
    one = hook.host(node, "c05-no-sm.ini")
    lines = hook.unattended(one, "boot", rc=75)
    assert "nodeprep: done netdev.address_add ib0" in lines
    assert any(line.startswith("nodeprep: fail mlx5_") for line in lines), lines
    assert one.ipv4() == [IP]
    # a fault that stays is beside it: still worth it, for the port
    one.write(CONF, WITH_ADDRESS + "[module gdrdrv]\nrequire = yes\n")
    hook.unattended(one, "boot", rc=75)


def test_boot_with_a_fault_that_stays(hook, node):
    one = hook.host(node, conf=WITH_ADDRESS + "[module gdrdrv]\nrequire = yes\n")
    lines = hook.unattended(one, "boot", rc=1)
    assert one.ipv4() == [IP]
    assert any("fail gdrdrv: " in line for line in lines), lines
    one.write(CONF, "[netdev ib0]\nadress = 10.0.0.50/24\n")
    hook.unattended(one, "boot", rc=2)
    one.write(CONF, WITH_ADDRESS)
    assert "nodeprep: ready" in hook.unattended(one, "boot", rc=0)


def test_boot_before_the_interface(hook, node):
    """An HCA that is there gets its interface; without one there is nothing to wait for."""
    one = hook.host(node, "guide.ini", "--without", "netdev ib0")
    lines = hook.unattended(one, "boot", rc=75)
    assert any("no IPoIB interface" in line for line in lines), lines
    bare = hook.host(node, "guide.ini", "--without", "netdev ib0",
                     *(word for n in range(4) for word in ("--without", "ca mlx5_%d" % n,
                                                           "--without", "port mlx5_%d:1" % n)))
    hook.unattended(bare, "boot", rc=3)


def test_boot_without_an_address(hook, node):
    one = hook.host(node, conf="")
    assert "pending: no address" in hook.unattended(one, "configured", rc=1)[0]
    for conf in (WITH_ADDRESS, "[netdev ib0]\naddress = offset:eth7:10.0.0.0/16\n", "[netdev\n"):
        one.write(CONF, conf)
        assert hook.unattended(one, "configured", rc=0) == []


def test_which_interface_the_configuration_means(hook, node):
    one = hook.host(node, "c01-prefix-names.ini")
    assert {"ib0", "ib0.8001", "ib01"} <= set(one.links())
    one.text("ip", "addr", "flush", "dev", "ib0")
    hook.unattended(one, "meant", "ib0", rc=0)
    for name in ("ib0.8001", "ib01", "ib", "eth0", "nosuch", "-x"):
        hook.unattended(one, "meant", name, rc=1)
    # a child that is named
    one.write(CONF, "[netdev ib0.8001]\naddress = 10.8.0.50/24\n")
    hook.unattended(one, "meant", "ib0.8001", rc=0)
    hook.unattended(one, "meant", "ib0", rc=1)
    # what is as it should be already
    hook.unattended(one, "boot", rc=0)
    hook.unattended(one, "meant", "ib0.8001", rc=1)
    assert hook.unattended(one, "nosuch", rc=2)[0].startswith("nodeprep: usage: ")


def test_a_name_that_no_unit_can_have(hook, node):
    """systemd's word for the unit of a rule, and the name in the configuration."""
    one = hook.host(node)
    before = "ib0"
    for name in ("ib0-1", "ib+1", "ib^=1"):
        one.text("ip", "link", "set", before, "name", name)
        before = name
        one.write(CONF, "[netdev %s]\naddress = %s\n[ports]\nwait = 0\n" % (name, IP))
        unit = one.text("systemd-escape", "--mangle", "nodeprep-netdev@%s.service" % name).strip()
        instance = unit.partition("@")[2].removesuffix(".service")
        assert (instance == name) == (name == "ib0-1")
        hook.unattended(one, "meant", instance, rc=0)
        hook.unattended(one, "meant", "ib0", rc=1)
