# SPDX-License-Identifier: MIT
"""The main job on the node of the guide: one apply does it, the second does nothing."""

import json
import re

from helpers import FILES, IP, NODEPREP, PLAIN, csh_profile, sh_profile

TLS = "rc,cuda_copy,cuda_ipc,tcp,sm,self"
DEVICES = "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"

# Every call that can change something outside the process.
CALLS = ("execve,execveat,write,writev,pwrite64,pwritev,pwritev2,sendfile,copy_file_range,"
         "splice,fallocate,truncate,ftruncate,rename,renameat,renameat2,link,linkat,symlink,"
         "symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,mknod,mknodat,chmod,fchmod,fchmodat,"
         "chown,fchown,lchown,fchownat,utimensat,utime,utimes,setxattr,lsetxattr,fsetxattr,"
         "fsync,fdatasync,sync,syncfs,sync_file_range,open,openat,openat2,creat,mount,umount2,"
         "init_module,finit_module,delete_module,sendto,sendmsg,sendmmsg,kill,tkill,tgkill")


def test_apply_does_it_all(guide):
    done = guide.json("apply", "--ip", IP, "--no-selftest", rc=0)
    assert done.stderr == ""
    assert done.doc["verb"] == "apply" and "error" not in done.doc
    assert done.doc["changed"] is True and done.doc["ready"] is True
    assert [a[:2] for a in done.actions()] == [
        ("netdev.link", "ib0"), ("netdev.address_add", "ib0"),
        *(("file.write", path) for path in FILES)]
    assert done.statuses() == {"done"} and done.doc["selftest"] == []
    assert [c["target"] for c in done.checks(code="port.active", status="ok")] == [
        "mlx5_0:1", "mlx5_1:1", "mlx5_2:1", "mlx5_3:1"]
    running = done.check("netdev.running", "ib0")
    assert "connected" in running["message"] and "65520" in running["message"]
    assert {c["target"] for c in done.checks(code="module.loaded")} == {
        "ib_umad", "ib_uverbs", "ib_ipoib", "rdma_ucm"}
    # a TAP cannot ask the fabric
    assert [c["code"] for c in done.doc["checks"] if c["status"] != "ok"] == ["netdev.not_probed"]

    # what the guide has the admin look at after ifconfig
    ib0 = json.loads(guide.text("ip", "-j", "addr", "show", "ib0"))[0]
    assert {"UP", "BROADCAST", "MULTICAST", "LOWER_UP"} <= set(ib0["flags"])
    assert ib0["mtu"] == 65520 and ib0["link_type"] == "infiniband"
    address, = [a for a in ib0["addr_info"] if a["family"] == "inet"]
    assert (address["local"], address["prefixlen"], address["broadcast"], address["scope"]) == (
        "10.0.0.50", 24, "10.0.0.255", "global")
    assert "10.0.0.0/24 dev ib0 proto kernel scope link src 10.0.0.50" in guide.routes()

    assert guide.read("/root/.nccl.conf") == b"NCCL_SOCKET_IFNAME=ib0\n"
    assert guide.read("/etc/nccl.conf") == b"NCCL_SOCKET_IFNAME=ib0\n"
    assert guide.read(FILES[2]).decode() == sh_profile(TLS, DEVICES)
    assert guide.read(FILES[3]).decode() == csh_profile(TLS, DEVICES)
    assert guide.read("/etc/nodeprep/ucx.env").decode().endswith(
        "\nUCX_TLS=%s\nUCX_NET_DEVICES=%s\n" % (TLS, DEVICES))
    for path, facts in guide.tree(*FILES).items():
        assert facts[1:4] == [0o644, 0, 0], path
    login = guide.text("env", "-i", "bash", "-lc", "echo $UCX_TLS $UCX_NET_DEVICES")
    assert login == "%s %s\n" % (TLS, DEVICES)


def test_apply_leaves_nothing_else_behind(guide):
    before = guide.tree("/etc", "/root", "/home", "/var/lib", "/run", "/tmp", "/dev")
    guide.apply()
    after = guide.tree("/etc", "/root", "/home", "/var/lib", "/run", "/tmp", "/dev")
    new = {path for path in after if path not in before}
    folders = {"/etc/nodeprep", "/run/nodeprep", "/var/lib/nodeprep"}
    assert new - folders - {"/etc/profile.d"} == {
        *FILES, "/run/nodeprep/lock", "/var/lib/nodeprep/record.json"}
    assert not [path for path in before if before[path] != after.get(path)]
    assert after["/var/lib/nodeprep/record.json"][1:3] == [0o600, 0]
    assert after["/var/lib/nodeprep"][1:3] == [0o700, 0]
    machine = guide.read("/etc/machine-id").decode().strip()
    assert json.loads(guide.read("/var/lib/nodeprep/record.json"))["machine_id"] == machine


def test_apply_in_text(guide):
    done = guide.nodeprep("apply", "--ip", IP, "--no-selftest")
    assert (done.rc, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["done", "ib0", "netdev.link:", "down", "->", "up"]
    assert lines[1].split() == ["done", "ib0", "netdev.address_add:", IP]
    assert "  ok      mlx5_3:1  ACTIVE, LinkUp, 100 Gb/sec (4X EDR), lid 0x11, sm lid 0x1" in lines
    assert lines[-1] == "nodeprep apply: ready, 8 changes made"
    done = guide.nodeprep("apply", "--ip", IP, "--no-selftest")
    assert done.rc == 0
    assert done.stdout.splitlines()[-1] == "nodeprep apply: ready, nothing to do"
    assert not [line for line in done.stdout.splitlines() if line.startswith("  done")]


def test_second_apply_changes_nothing(guide):
    guide.apply()
    before = guide.state()
    done = guide.apply()
    assert done.doc["actions"] == [] and done.doc["changed"] is False
    assert done.doc["ready"] is True
    assert guide.state() == before


def test_no_journal_where_nothing_was_to_do(guide):
    """A node that somebody else has set up: nothing is recorded."""
    guide.apply()
    guide.shell("rm -rf /var/lib/nodeprep")
    assert guide.apply().doc["actions"] == []
    assert guide.tree("/var/lib/nodeprep") == {}


def writes(trace):
    """Calls of a trace that change something, or might."""
    found = []
    for line in trace.splitlines():
        call = re.match(r"(?:\[?[pid ]*\d+\]? +)?(\w+)\((.*)", line)
        if not call:
            continue
        name, rest = call.groups()
        if name in ("open", "openat", "openat2", "creat"):
            if not re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE", rest):
                continue
            if "/run/nodeprep/lock" in rest or '"/dev/gdrdrv"' in rest:
                continue
        elif name in ("write", "writev") and re.match(r"[12]<?", rest):
            continue
        elif name in ("sendto", "sendmsg") and re.search(r"nlmsg_type=(0x\w+ /\* )?RTM_GET", rest):
            continue
        elif name in ("sendto", "sendmsg") and "nlmsg_type=" in rest and \
                not re.search(r"RTM_(NEW|DEL|SET)", rest) and "NLM_F_DUMP" in rest:
            continue
        elif name in ("mkdir", "mkdirat") and '"/run/nodeprep"' in rest and "EEXIST" in rest:
            continue
        found.append(line)
    return found


def test_second_apply_writes_nothing(guide):
    """No write, no rename, no fsync, no program: as the kernel sees it."""
    guide.run(PLAIN, "apply", "--ip", IP, "--no-selftest")
    done = guide.run("strace", "-f", "-qq", "-s", "200", "-o", "/tmp/trace", "-e",
                     "trace=" + CALLS, PLAIN, "apply", "--ip", IP, "--no-selftest", "--json")
    assert done.rc == 0 and done.doc["changed"] is False, done
    trace = guide.read("/tmp/trace").decode("utf-8", "replace")
    assert trace.count("execve") == 1
    assert trace.count("write(1") >= 1, "the trace saw nothing"
    assert "RTM_GETLINK" in trace
    found = [line for line in writes(trace) if "execve(" not in line]
    assert found == []


def test_the_trace_would_have_seen_it(guide):
    """The same filter on the first apply: it finds the writes."""
    guide.run("strace", "-f", "-qq", "-s", "200", "-o", "/tmp/trace", "-e", "trace=" + CALLS,
              PLAIN, "apply", "--ip", IP, "--no-selftest")
    found = "\n".join(writes(guide.read("/tmp/trace").decode("utf-8", "replace")))
    for word in ("RTM_NEWADDR", "renameat", "fsync", ".nccl.conf", "mkdir"):
        assert word in found, found


def test_check_and_plan_write_nothing(guide):
    shared = guide.text("ls", "-A", "/dev/shm")
    for verb, programs in (("check", 1), ("plan", 0), ("show", 1)):
        argv = [PLAIN, verb] + (["--ip", IP] if verb != "show" else [])
        guide.run("strace", "-f", "-y", "-qq", "-s", "200", "-o", "/tmp/trace", "-e",
                  "trace=" + CALLS, *argv)
        trace = guide.read("/tmp/trace").decode("utf-8", "replace")
        # children answer their parent through pipes
        found = [line for line in writes(trace)
                 if "execve(" not in line and not re.search(r"write\(\d+<pipe:", line)]
        # the child that looks at the libraries (judge.h), and its end
        assert len([line for line in found if '"--libraries"' in line]) == programs, verb
        agent = trace.split()[0]
        assert [line for line in found
                if line.split()[0] == agent and "SIGKILL" not in line] == [], verb
        # what UCX does when it opens its transports is its own affair: show alone lets it
        if verb != "show":
            assert [line for line in found if line.split()[0] != agent and not re.search(
                r'--libraries|/dev/null', line)] == [], verb
        assert guide.tree("/run/nodeprep", "/var/lib/nodeprep") == {}
    assert guide.text("ls", "-A", "/dev/shm") == shared


def test_a_file_somebody_changed_is_put_right(guide):
    guide.apply()
    guide.write("/etc/nodeprep/ucx.env", "UCX_TLS=tcp\n")
    guide.write("/root/.nccl.conf", "NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=eth0\n")
    check = guide.json("check", "--ip", IP, rc=1)
    assert [a[1] for a in check.actions()] == ["/root/.nccl.conf", "/etc/nodeprep/ucx.env"]
    done = guide.apply()
    assert [a[1] for a in done.actions()] == ["/root/.nccl.conf", "/etc/nodeprep/ucx.env"]
    assert guide.read("/root/.nccl.conf") == b"NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=ib0\n"
    assert guide.json("check", "--ip", IP, rc=0).doc["ready"] is True


def test_an_address_that_somebody_took_away_comes_back(guide):
    guide.apply()
    guide.text("ip", "addr", "flush", "dev", "ib0")
    assert guide.json("check", "--ip", IP, rc=1).actions() == [("netdev.address_add", "ib0", IP)]
    assert guide.apply().actions() == [("netdev.address_add", "ib0", IP)]
    assert guide.ipv4() == [IP]


def test_broadcast_is_right_after_a_careless_ip_addr_add(node):
    """`ip addr add` without `brd +` leaves no broadcast address; the guide wants one."""
    one = node("guide.ini", "--set", "netdev ib0.addresses=10.0.0.50/24 nobrd",
               "--set", "netdev ib0.up=yes")
    assert one.links()["ib0"]["addresses"][0][2] is None
    one.apply()
    assert ("10.0.0.50", 24, "10.0.0.255", "global", False) in one.links()["ib0"]["addresses"]
    assert one.apply().doc["actions"] == []


def test_the_sanitized_program_and_the_plain_one_agree(node):
    documents = []
    for program in (PLAIN, NODEPREP):
        one = node("guide.ini")
        documents.append(one.run(program, "apply", "--json", "--ip", IP, "--no-selftest").doc)
    assert documents[0] == documents[1]
