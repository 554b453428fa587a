# SPDX-License-Identifier: MIT
"""nodeprep.conf and conf.d: what is read, in which order, and what is refused."""

import pytest
from helpers import IP, QUICK

CONF = "/etc/nodeprep/nodeprep.conf"

# content, line of the fault, words of the message
FAULTS = [
    ("[ports]\nwait = 1\n[netdve ib0]\naddress = 10.0.0.50/24\n", 3, ['unknown section "netdve"', '"netdev"']),
    ("[ports]\nwait = 0\n\n# so\nignroe = mlx5_3\n", 5, ['unknown key "ignroe"', '"ignore"']),
    ("[ucx]\nprofiel = dask\n", 2, ['unknown key "profiel"', '"profile"']),
    ("[ucx]\nprofile = dusk\n", 2, ['"dusk"', "dask"]),
    ("[nccl]\nscope = everywhere\n", 2, ['"everywhere"', "both"]),
    ("[module gdrdvr]\nrequire = yes\n", 1, ['"gdrdvr"', '"gdrdrv"']),
    ("[netdev]\naddress = 10.0.0.50/24\n", 1, ["needs a name"]),
    ("[ports mlx5_0]\nwait = 1\n", 1, ["takes no name"]),
    ("wait = 1\n", 1, ["before any [section]"]),
    ("[ports]\nwait = 1\nnonsense\n", 3, ["neither [section] nor key"]),
    ("[ports\nwait = 1\n", 1, ["]"]),
    ("[ports]\nwait = -1\n", 2, ['"-1"', "seconds"]),
    ("[ports]\nwait = 1s\n", 2, ['"1s"']),
    ("[ports]\nwait =\n", 2, ["seconds"]),
    ("[netdev ib0]\naddress = 10.0.0.50\n", 2, ["prefix length"]),
    ("[netdev ib0]\naddress = 10.0.0.50/24, 10.0.0.0/24\n", 2, ["network address"]),
    ("[netdev ib0]\nmtu = 100\n", 2, ['"100"', "576"]),
    ("[netdev ib0]\nmtu = 65521\n", 2, ['"65521"']),
    ("[netdev ib0]\nmode = conected\n", 2, ['"conected"', "connected"]),
    ("[netdev ib0]\nexclusive = maybe\n", 2, ['"maybe"']),
    ("[netdev ib0]\nmatch = mlx5_0:x\n", 2, ['"mlx5_0:x"']),
    ("[netdev a-name-of-17-char]\nmtu = keep\n", 1, ["15"]),
    ("[ports]\ndevices = mlx5_0:0x1\n", 2, ['"mlx5_0:0x1"']),
    ("[ports]\nmin_rate = fast\n", 2, ['"fast"']),
    ("[ucx]\ntls = rc';id\n", 2, ["rc'"]),
    ("[ucx]\nnet_devices = $(id)\n", 2, ["$(id)"]),
    ("[nccl]\nsocket_ifname = ib0 ib1\n", 2, ["blanks"]),
    ("[ports]\nwait = 1\n" + "ignore = " + "m" * 200 + "\n", 3, ["longer than 198"]),
    ("[" + "p" * 60 + "]\nwait = 1\n", 1, ["section name is longer than 48"]),
    ("[ports]\nwait = 1\x00\n", 2, ["NUL"]),
]


@pytest.mark.parametrize("content, line, said", FAULTS,
                         ids=[f[0].replace("\n", "|")[:25] for f in FAULTS])
def test_a_fault_touches_nothing(shared_guide, content, line, said):
    shared_guide.write(CONF, content)
    before = shared_guide.state()
    for verb in ("apply", "plan", "show"):
        done = shared_guide.nodeprep(verb)
        assert (done.rc, done.stdout) == (2, ""), done
        assert done.stderr.count("\n") == 1 and "%s:%d: " % (CONF, line) in done.stderr, done
        for word in said:
            assert word in done.stderr, done
    done = shared_guide.json("check", rc=2)
    assert done.error["code"].startswith("config.") or "address" in done.error["code"] \
        or "user" in done.error["code"], done.error
    assert done.error["hint"] and done.doc["actions"] == []
    assert shared_guide.state() == before


def test_an_unknown_user_fails_alone(node):
    """A name service may come up after the network: the rest of the node is made ready."""
    one = node("guide.ini")
    one.write(CONF, "[nccl]\nusers = nobody-here, alice\n")
    done = one.apply(rc=1)
    assert done.failed() == [("file.user_unknown", "nobody-here")]
    assert one.read("/home/alice/.nccl.conf") == b"NCCL_SOCKET_IFNAME=ib0\n"


def test_binary_garbage(shared_guide):
    """Whatever it is, it is a config error, with the file named and a clean terminal."""
    for number, garbage in enumerate((
            bytes(range(256)) * 20, b"\x7fELF" + b"\0" * 4000, b"\xff\xfe[\0p\0o\0r\0t\0s\0]\0\n\0",
            b"\x1b[2J = 1\n", b"=" * 150 + b"\n", b"[" * 150 + b"\n", b"\n" * 5000 + b"x\n",
            b"[ports]\n\xe9\xe8 = \x1b]0;x\x07\n")):
        shared_guide.write(CONF, garbage)
        done = shared_guide.nodeprep("apply", "--ip", IP)
        assert (done.rc, done.stdout) == (2, ""), (number, done)
        assert CONF in done.stderr and done.stderr.count("\n") == 1, (number, done)
        assert not [c for c in done.stderr if ord(c) < 32 and c != "\n"], (number, done)
    shared_guide.write(CONF, b"[ports]\nignore = mlx5_3\n" * 60000)
    done = shared_guide.nodeprep("apply", "--ip", IP)
    assert done.rc == 2 and CONF in done.stderr, done


GOOD = "[netdev ib0]\naddress = 10.0.0.50/24\n[ports]\nignore = mlx5_3:1\nwait = 3\n"


def rows(node, *argv):
    """The configuration in force: {"ports": {"wait": "3"}}"""
    config = node.json("show", "config", *argv, rc=0).doc["show"]["config"]
    found = {}
    for row in config:
        found.setdefault(row["section"], {})[row["key"]] = row["value"]
    return found


@pytest.mark.parametrize("content", [
    GOOD, GOOD.replace("\n", "\r\n"), "\ufeff" + GOOD, GOOD.rstrip("\n"),
    GOOD.rstrip("\n").replace("\n", "\r\n"), GOOD.replace(" = ", "="),
    GOOD.replace(" = ", "\t=\t").replace("\n", "   \n"), GOOD.replace("\n", "\n\n"),
    "# a comment\n; another\n" + GOOD.replace("wait = 3", "wait = 3 ; in short"),
    GOOD.replace("= 10", ": 10")],
    ids=["plain", "CRLF", "BOM", "no end", "CRLF no end", "tight", "wide", "empty lines",
         "comments", "colon"])
def test_forms_of_the_same_file(shared_guide, content):
    shared_guide.write(CONF, content)
    found = rows(shared_guide)
    assert found["netdev ib0"]["address"] == IP
    assert found["ports"]["ignore"] == "mlx5_3:1" and found["ports"]["wait"] == "3"


def test_the_longest_line(shared_guide):
    """198 bytes are taken whole, 199 are refused."""
    tls = ",".join(["rc"] * 60)
    line = "tls = rcrc," + tls
    line += "x" * (198 - len(line))
    shared_guide.write(CONF, "[ucx]\n" + line + "\n")
    assert rows(shared_guide)["ucx"]["tls"] == line[6:]
    shared_guide.write(CONF, "[ucx]\n" + line + "x\n")
    assert shared_guide.nodeprep("plan").rc == 2


def test_lists_add_up(shared_guide):
    shared_guide.write(CONF, "[ports]\nignore = mlx5_3\nignore = mlx5_2:1\n"
                       "[netdev ib0]\naddress = 10.0.0.50/24\naddress = fd00::50/64\n")
    found = rows(shared_guide)
    assert found["ports"]["ignore"] == "mlx5_3,mlx5_2:1"
    assert found["netdev ib0"]["address"] == "10.0.0.50/24,fd00::50/64"


def test_an_empty_file_and_no_file(node):
    one = node("guide.ini")
    defaults = rows(one)
    assert defaults["ports"]["wait"] == "30" and defaults["ucx"]["profile"] == "standard"
    assert defaults["nccl"] == {"scope": "both", "users": "root", "version_min": "2.4"}
    one.write(CONF, "")
    assert rows(one) == defaults


def test_conf_d_in_order(node):
    one = node("guide.ini")
    one.write(CONF, "[ports]\nwait = 1\n[ucx]\nprofile = dask\n")
    one.write("/etc/nodeprep/conf.d/20-b.conf", "[ports]\nwait = 3\n")
    one.write("/etc/nodeprep/conf.d/10-a.conf", "[ports]\nwait = 2\n[ucx]\nprofile = guide\n")
    one.write("/etc/nodeprep/conf.d/30-c.conf.bak", "[nonsense\n")
    one.write("/etc/nodeprep/conf.d/.40-d.conf", "[nonsense\n")
    one.write("/etc/nodeprep/conf.d/README", "[nonsense\n")
    assert rows(one)["ports"]["wait"] == "3" and rows(one)["ucx"]["profile"] == "guide"
    one.write("/etc/nodeprep/conf.d/15-fault.conf", "[ports]\nwiat = 3\n")
    done = one.nodeprep("plan")
    assert done.rc == 2 and "/etc/nodeprep/conf.d/15-fault.conf:2: " in done.stderr
    # conf.d alone is enough
    one.shell("rm %s /etc/nodeprep/conf.d/15-fault.conf" % CONF)
    assert rows(one)["ports"]["wait"] == "3"
    # --config replaces them all
    one.write("/root/my.conf", "[ports]\nwait = 7\n")
    found = rows(one, "--config", "/root/my.conf")
    assert found["ports"]["wait"] == "7" and found["ucx"]["profile"] == "standard"


@pytest.mark.parametrize("path", ["/etc/nodeprep/absent.conf", "/etc/profile.d", "/dev/zero",
                                  "/root/fifo", ""])
def test_a_config_that_cannot_be_read(shared_guide, path):
    shared_guide.shell("rm -f %s; mkfifo /root/fifo" % CONF)
    before = shared_guide.state()
    done = shared_guide.nodeprep("apply", "--config", path, timeout=15)
    assert (done.rc, done.stdout) == (2, ""), done
    assert path in done.stderr and done.stderr.count("\n") == 1
    assert shared_guide.state() == before


def test_a_config_that_may_not_be_read(guide):
    guide.write(CONF, GOOD)
    guide.text("chmod", "0600", CONF)
    done = guide.nodeprep("plan", user="alice")
    assert done.rc == 2 and CONF in done.stderr and "Permission denied" in done.stderr
    guide.shell("rm %s; mkdir -p /etc/nodeprep/conf.d; chmod 0700 /etc/nodeprep/conf.d" % CONF)
    done = guide.nodeprep("plan", user="alice")
    assert done.rc == 2 and "/etc/nodeprep/conf.d" in done.stderr, done


def test_flags_override(node):
    one = node("guide.ini")
    one.write(CONF, "[netdev ib0]\naddress = 10.0.9.9/24\nmode = datagram\n[ports]\nwait = 30\n")
    done = one.apply(rc=0)
    assert one.ipv4() == [IP]
    assert ("netdev.mode", "ib0", "datagram") in done.actions()
    assert one.json("plan", "--ip", "ib0=" + IP, rc=0).doc["actions"] == []


def test_address_from_the_file(node):
    one = node("guide.ini")
    one.write(CONF, GOOD)
    one.json("apply", *QUICK, rc=0)
    assert one.ipv4() == [IP] and one.json("check", rc=0).doc["ready"] is True


@pytest.mark.parametrize("profile, tls, devices", [
    ("guide", "rc,cuda_copy,cuda_ipc", "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1"),
    ("dask", "rc,tcp,cuda_copy,cuda_ipc", "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0"),
    ("auto", "all", None)])
def test_ucx_profiles(node, profile, tls, devices):
    one = node("guide.ini")
    one.write(CONF, "[ucx]\nprofile = %s\n" % profile)
    one.apply(rc=0)
    values = dict(line.split("=", 1) for line in
                  one.read("/etc/nodeprep/ucx.env").decode().splitlines() if line[0] != "#")
    assert values["UCX_TLS"] == tls and values.get("UCX_NET_DEVICES") == devices
    assert ("UCX_MAX_RNDV_RAILS" in values) is (profile == "dask")
    # switched off again, the scripts go
    one.write(CONF, "[ucx]\nprofile = off\n")
    done = one.apply(rc=0)
    assert [a[:2] for a in done.actions()] == [
        ("file.remove", "/etc/profile.d/nodeprep-ucx.sh"),
        ("file.remove", "/etc/profile.d/nodeprep-ucx.csh"),
        ("file.remove", "/etc/nodeprep/ucx.env")]
    assert one.read("/etc/profile.d/nodeprep-ucx.sh") is None
    assert one.apply(rc=0).doc["actions"] == []
