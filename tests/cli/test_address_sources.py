# SPDX-License-Identifier: MIT
"""Addresses that come from the name service, a map file, or another NIC: one file serves
a whole fleet, and what goes wrong is said in one line on an untouched node."""

import signal
import time

import pytest

from helpers import IP, NODEPREP, PYTHON, QUICK

CONF = "/etc/nodeprep/nodeprep.conf"
MAP = "/etc/nodeprep/map"
HOSTS = "127.0.0.1\tlocalhost\n127.0.1.1\tnode01\n"
FILES_ONLY = "passwd: files\ngroup: files\nhosts: files\n"


def address(*sources, section="ib0"):
    return "[netdev %s]\naddress = %s\n" % (section, ", ".join(sources))


def prepare(one, hosts=""):
    """The name service is /etc/hosts alone."""
    one.write("/etc/nsswitch.conf", FILES_ONLY)
    one.write("/etc/hosts", HOSTS + hosts)


def row(one, *argv):
    rows = one.json("show", "config", *argv, rc=0).doc["show"]["config"]
    found, = [r for r in rows if (r["section"], r["key"]) == ("netdev ib0", "address")]
    return found


def refused(one, code, *parts, rc=3, section="ib0"):
    """apply, plan and check say the same, and nothing is changed."""
    before = one.state(but=["/run/nodeprep", "/var/lib/nodeprep"])
    said = {}
    for verb in ("plan", "check", "apply"):
        done = one.json(verb, *(QUICK if verb == "apply" else []), rc=rc)
        assert done.error["code"] == code, done
        assert done.error["hint"] and done.stderr.count("\n") == 1, done
        for part in ("[netdev %s] address = " % section, CONF + ":2: ") + parts:
            assert part in done.error["message"], (part, done)
        said[verb] = done.error
        text = one.nodeprep(verb, *(QUICK if verb == "apply" else []))
        assert (text.rc, text.stdout) == (rc, "") and done.error["message"] in text.stderr, text
    assert said["plan"] == said["check"] == said["apply"]
    assert one.state(but=["/run/nodeprep", "/var/lib/nodeprep"]) == before
    return said["apply"]


# ---- hosts ----

def test_hosts(node):
    one = node("guide.ini")
    prepare(one, "10.0.0.50\tnode01-ib0\n")
    one.write(CONF, address("hosts:%h-ib0/24"))
    done = one.json("apply", *QUICK, rc=0)
    assert ("netdev.address_add", "ib0", IP) in done.actions()
    assert "hosts:%h-ib0/24: node01-ib0" in done.check("address.resolved", "ib0")["message"]
    assert one.ipv4() == [IP]
    again = one.json("apply", *QUICK, rc=0)
    assert again.doc["actions"] == [] and not again.doc["changed"]
    one.json("check", rc=0)


def test_show_config_says_where_from(node):
    one = node("guide.ini")
    prepare(one, "10.0.0.50\tnode01-ib0\n")
    one.write(CONF, address("fd00::1/64", "hosts:%h-ib0/24"))
    found = row(one)
    assert found["value"] == "fd00::1/64," + IP
    assert found["sources"] == [{"source": "hosts:%h-ib0/24", "where": CONF + ":2",
                                 "address": IP, "by": "node01-ib0", "failure": None}]
    text = one.nodeprep("show", "config").stdout
    assert "# hosts:%%h-ib0/24 (%s:2): %s by node01-ib0\n" % (CONF, IP) in text
    # and can be put into a file again
    one.write("/root/again.conf", "".join(
        line + "\n" for line in text.splitlines() if not line.endswith("= ")))
    assert row(one, "--config", "/root/again.conf")["value"] == found["value"]
    # without an answer show still shows
    one.write("/etc/hosts", HOSTS)
    found = row(one)
    assert found["value"] == "fd00::1/64,hosts:%h-ib0/24"
    assert found["sources"][0]["address"] is None and "node01-ib0" in found["sources"][0]["failure"]
    assert "no answer: " in one.nodeprep("show", "config").stdout
    # an ordinary list has no such member
    one.write(CONF, address(IP))
    assert "sources" not in row(one)


@pytest.mark.parametrize("hosts, source, code, parts", [
    ("", "hosts:%h-ib0/24", "address.hosts_not_found", ['"node01-ib0"', "IPv4"]),
    ("10.0.0.1 n\n", "hosts:%H.ib/24", "address.hosts_not_found", ['"node01.ib"']),
    ("fd00::50 node01-ib0\n", "hosts:%h-ib0/24", "address.hosts_not_found",
     ["no IPv4 address", "only one of IPv6"]),
    ("10.0.0.50 node01-ib0\n", "hosts:%h-ib0/64", "address.hosts_not_found", ["no IPv6 address"]),
    ("10.0.0.50 node01-ib0\n10.0.0.51 node01-ib0\n", "hosts:%h-ib0/24",
     "address.hosts_ambiguous", ["10.0.0.50", "10.0.0.51"]),
    ("", "hosts:%h/24", "address.unusable", ["node01", "127.0.1.1", "loopback"]),
    ("10.0.0.0 node01-ib0\n", "hosts:%h-ib0/24", "address.unusable", ["network address"]),
    ("", "hosts:%h%%/24", "address.hosts_name", ['"node01%"']),
    ("", "hosts:10.0.0.50/24", "address.hosts_name", ['"10.0.0.50"']),
])
def test_hosts_without_an_answer(node, hosts, source, code, parts):
    one = node("guide.ini")
    prepare(one, hosts)
    one.write(CONF, address(source))
    refused(one, code, source, *parts)


def test_hosts_names_of_the_node(node):
    one = node("guide.ini", "--set", "node.hostname=node07.example.org")
    prepare(one, "10.0.0.7 node07-ib0\n10.1.0.7 ib.node07.example.org\nfd00::7 node07-ib0\n")
    one.write(CONF, address("hosts:%h-ib0/24", "hosts:ib.%H/16", "hosts:%h-ib0/64"))
    assert row(one)["value"] == "10.0.0.7/24,10.1.0.7/16,fd00::7/64"


@pytest.mark.parametrize("name", ["localhost", "localhost.localdomain"])
def test_a_node_without_a_name(node, name):
    one = node("guide.ini", "--set", "node.hostname=" + name)
    prepare(one)
    one.write(MAP, "localhost 10.0.0.5/24\n")
    for source in ("hosts:%h-ib0/24", "map:" + MAP):
        one.write(CONF, address(source))
        refused(one, "address.host_name", '"%s"' % name)


SILENT = """
import socket, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
open("/tmp/silent.ready", "w").close()
while True:
    server.recv(4096)
    with open("/tmp/silent.asked", "a") as log:
        log.write("asked\\n")
"""


@pytest.fixture
def silent(node):
    """A node whose name server takes questions and never answers."""
    one = node("guide.ini")
    one.write("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    one.write("/etc/resolv.conf", "nameserver 127.0.0.1\n")
    one.write(CONF, address("hosts:%h-ib0/24"))
    one.spawn(PYTHON, "-c", SILENT, timeout=600)
    wait_for(lambda: one.read("/tmp/silent.ready") is not None)
    return one


def wait_for(condition):
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def asked(one):
    return len((one.read("/tmp/silent.asked") or b"").splitlines())


def left_over(one):
    return [line for line in one.text("ps", "-eo", "stat,args").splitlines()
            if "/nodeprep " in line and not line.startswith("Z")]


def test_a_name_service_that_hangs(silent):
    """The verb ends with the reason, and takes its child with it."""
    before = silent.state(but=["/run/nodeprep", "/var/lib/nodeprep"])
    for verb in ("plan", "apply"):
        done = silent.json(verb, *(QUICK if verb == "apply" else []), rc=3)
        assert done.error["code"] == "address.hosts_timeout"
        assert '"node01-ib0"' in done.error["message"] and "/etc/hosts" in done.error["hint"]
    assert asked(silent) > 0
    assert left_over(silent) == []
    assert silent.state(but=["/run/nodeprep", "/var/lib/nodeprep"]) == before
    # the file is asked first
    silent.write("/etc/hosts", HOSTS + "10.0.0.50 node01-ib0\n")
    silent.json("apply", *QUICK, rc=0)


def test_who_does_not_need_it_does_not_ask(silent):
    silent.json("show", "ports", rc=0)
    silent.json("show", "netdevs", "modules", "gpus", rc=0)
    silent.json("selftest", "tcp", "--timeout", "5")
    silent.json("plan", "--ip", IP, rc=0)
    silent.json("plan", "--ip", "ib0=" + IP, rc=0)
    silent.json("plan", "--ip", IP, "--ifname", "ib0", rc=0)
    assert asked(silent) == 0
    assert row(silent, "--config", CONF)["sources"][0]["failure"]
    assert asked(silent) > 0


def test_a_signal_while_it_hangs(silent):
    before = silent.state(but=["/run/nodeprep", "/var/lib/nodeprep"])
    running = silent.spawn(NODEPREP, "apply", "--json", *QUICK)
    wait_for(lambda: asked(silent) > 0)
    silent.kill(running, signal.SIGTERM)
    done = silent.wait(running)
    assert done.rc == 4 and done.error["code"] == "internal.interrupted", done
    assert left_over(silent) == []
    assert silent.state(but=["/run/nodeprep", "/var/lib/nodeprep"]) == before


def test_a_name_service_without_a_server(node):
    """As simnode has it: nobody listens, and the resolver hears so at once."""
    one = node("guide.ini")
    one.write("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    one.write(CONF, address("hosts:%h-ib0/24"))
    refused(one, "address.hosts_failed", '"node01-ib0"')


# ---- map ----

def test_one_map_for_the_fleet(node):
    fleet = "# hosts\n\nNODE01 10.0.0.1/24\nnode02.example.org\t10.0.0.2/24 # rack 2\r\n"
    fleet += "".join("x%05d 10.%d.%d.9/8\n" % (i, 1 + i // 250, i % 250) for i in range(10000))
    for name, want in (("node01", "10.0.0.1/24"), ("node01.example.org", "10.0.0.1/24"),
                       ("node02.example.org", "10.0.0.2/24"), ("x09999", "10.40.249.9/8")):
        one = node("guide.ini", "--set", "node.hostname=" + name)
        one.write(MAP, fleet)
        one.write(CONF, address("map:" + MAP))
        done = one.json("apply", *QUICK, rc=0)
        assert ("netdev.address_add", "ib0", want) in done.actions()
        line = 1 + [text.split()[0].lower() if text.split() else "" for text in
                    fleet.split("\n")].index(name if name in fleet else name.split(".")[0])
        assert "%s:%d" % (MAP, line) in done.check("address.resolved")["message"]


@pytest.mark.parametrize("content, code, rc, parts", [
    ("node02 10.0.0.2/24\n", "address.map_no_entry", 3, [MAP, '"node01.x"', '"node01"']),
    ("", "address.map_no_entry", 3, []),
    ("node01 10.0.0.1/24\n#\nnode01.x 10.0.0.2/24\n", "address.map_duplicate", 2,
     [MAP + ":1", MAP + ":3"]),
    ("node01 10.0.0.1/24\nnode02 10.0.0.1/24\n", "address.map_duplicate", 2,
     [MAP + ":1", MAP + ":2", "10.0.0.1", "node02"]),
    ("node01 10.0.0.1/24\nnode02 10.0.0.2\n", "address.map_syntax", 2, [MAP + ":2", "10.0.0.2"]),
    ("node01\n", "address.map_syntax", 2, [MAP + ":1"]),
    ("node01 10.0.0.1/24 eth0\n", "address.map_syntax", 2, [MAP + ":1", "eth0"]),
    ("node01 10.0.0.255/24\n", "address.map_syntax", 2, [MAP + ":1", "broadcast"]),
    ("\x1b[2J\n", "address.map_syntax", 2, ["\\x1b"]),
])
def test_faults_of_a_map(node, content, code, rc, parts):
    one = node("guide.ini", "--set", "node.hostname=node01.x")
    one.write(MAP, content)
    one.write(CONF, address("map:" + MAP))
    refused(one, code, *parts, rc=rc)


@pytest.mark.parametrize("script, code, part", [
    ("rm -f F", "address.map_unreadable", "No such file"),
    ("chmod 0666 F", "address.map_refused", "others than root can write it"),
    ("chmod 0620 F", "address.map_refused", "others than root can write it"),
    ("chown alice F", "address.map_refused", "does not belong to root"),
    ("rm F; mkfifo F", "address.map_refused", "not a regular file"),
    ("rm F; mkdir F", "address.map_refused", "not a regular file"),
    ("mv F /home/alice/m; chown alice /home/alice/m; ln -s /home/alice/m F",
     "address.map_refused", "does not belong to root"),
    ("chmod 0775 /etc/nodeprep", "address.map_refused", "others than root can change /etc/nodeprep, which leads to it"),
    ("chown alice /etc/nodeprep", "address.map_refused", "others than root can change /etc/nodeprep, which leads to it"),
    ("mkdir -m 777 /etc/any; mv F /etc/any; ln -s any/map /etc/ib-map; ln -s /etc/ib-map F",
     "address.map_refused", "others than root can change /etc/any, which leads to it"),
])
def test_a_map_that_is_not_roots(node, script, code, part):
    one = node("guide.ini")
    one.write(MAP, "node01 10.0.0.1/24\n")
    one.write(CONF, address("map:" + MAP))
    one.json("plan", rc=0)
    done = one.shell(script.replace("F", MAP))
    assert done.rc == 0, done
    refused(one, code, MAP, part)


@pytest.mark.parametrize("name", [
    b"\x1b[2Jnode", b"node one", b"$(id)", b"-node", b"../node", b"%h", b"\xff\xfe", b"n" * 64,
    b"a\nb 10.0.0.9/24", b"node/24", b"."])
def test_host_names_of_odd_bytes(node, name):
    """The name comes from DHCP or a cloud: it is asked for and shown, never believed."""
    one = node("guide.ini")
    prepare(one)
    one.write(MAP, "node01 10.0.0.1/24\n")
    done = one.run("/usr/bin/python3", "-c", "import socket; socket.sethostname(%r)" % name)
    assert done.rc == 0, done
    for source in ("hosts:%h-ib0/24", "hosts:%H/24", "map:" + MAP):
        one.write(CONF, address(source))
        done = one.json("apply", *QUICK, rc=3)
        assert done.error["code"].startswith("address.") and done.doc["actions"] == [], done
        text = one.nodeprep("apply", *QUICK)
        assert text.rc == 3
        assert all(c >= " " or c == "\n" for c in text.stderr + text.stdout), text
    one.write(CONF, "")
    one.apply(rc=0)


# ---- offset ----

# the default route of the guide's node wants its own address
NO_ROUTE = ["--without", "route default"]


def test_offset(node):
    one = node("guide.ini", *NO_ROUTE, "--set", "netdev eth0.addresses=192.168.3.7/16, 172.16.0.8/24")
    one.write(CONF, address("offset:eth0:10.0.0.0/16"))
    done = one.json("apply", *QUICK, rc=0)
    assert ("netdev.address_add", "ib0", "10.0.3.7/16") in done.actions()
    assert "eth0, 192.168.3.7/16" in done.check("address.resolved")["message"]
    assert one.json("apply", *QUICK, rc=0).doc["actions"] == []


def test_offset_of_an_altname(node):
    one = node("guide.ini")
    one.text("ip", "link", "property", "add", "dev", "eth0", "altname", "enp3s0f0np0")
    one.write(CONF, address("offset:enp3s0f0np0:10.0.0.0/16"))
    assert row(one)["value"] == "10.0.0.50/16"
    assert ("netdev.address_add", "ib0", "10.0.0.50/16") in one.json("plan", rc=0).actions()


@pytest.mark.parametrize("addresses, source, code, parts", [
    ("192.168.3.7/16", "offset:eth9:10.0.0.0/16", "address.offset_no_netdev",
     ['"eth9"', "eth0 (192.168.3.7/16)"]),
    ("192.168.3.7/16", "offset:ib0:10.0.0.0/16", "address.offset_no_address",
     ['"ib0"', "eth0 (192.168.3.7/16)"]),
    ("192.168.3.7/16", "offset:lo:10.0.0.0/16", "address.offset_no_address", ['"lo"']),
    ("fd00::7/64", "offset:eth0:10.0.0.0/16", "address.offset_no_address", ['"eth0"', "none"]),
    ("192.168.3.7/16", "offset:eth0:10.0.0.0/24", "address.offset_no_fit",
     ["192.168.3.7/16", "10.0.0.0/24"]),
    ("192.168.3.7/32", "offset:eth0:10.0.0.0/24", "address.unusable",
     ["192.168.3.7/32", "network address"]),
    ("192.168.3.255/16", "offset:eth0:10.0.0.0/22", "address.unusable",
     ["10.0.3.255/22", "broadcast address"]),
])
def test_offset_without_an_answer(node, addresses, source, code, parts):
    one = node("guide.ini", *NO_ROUTE, "--set", "netdev eth0.addresses=" + addresses)
    one.write(CONF, address(source))
    refused(one, code, source, *parts)


# ---- all together ----

def test_a_mixed_list_keeps_its_order(node):
    one = node("guide.ini")
    prepare(one, "10.0.0.8 node01-ib0\n")
    one.write(MAP, "node01 10.0.0.9/24\n")
    one.write(CONF, address("hosts:%h-ib0/24", "10.0.0.5/24", "map:" + MAP,
                            "offset:eth0:10.0.0.0/24", "10.0.0.6/24"))
    one.json("apply", *QUICK, rc=0)
    # the first one is the primary of the subnet
    assert one.ipv4() == ["10.0.0.8/24", "10.0.0.5/24", "10.0.0.9/24", "10.0.0.50/24",
                          "10.0.0.6/24"]
    assert [s["address"] for s in row(one)["sources"]] == ["10.0.0.8/24", "10.0.0.9/24",
                                                           "10.0.0.50/24"]
    assert one.json("apply", *QUICK, rc=0).doc["actions"] == []


def test_an_address_that_comes_twice(node):
    one = node("guide.ini")
    one.write(MAP, "node01 10.0.0.5/24\n")
    one.write(CONF, address("10.0.0.5/24", "map:" + MAP))
    refused(one, "netdev.asked_twice", "10.0.0.5", "twice")


def test_ip_overrides(node):
    """As it does for addresses: what is overridden is not even asked for."""
    one = node("dgx.ini")
    one.write(MAP, "%s 10.1.0.5/24\n" % one.text("hostname").strip())
    one.write(CONF, address("hosts:no-such-name/24") + address("map:" + MAP, section="ib1"))
    prepare(one)
    for argv in (["--ip", IP], ["--ip", "ib0=" + IP], ["--ip", IP, "--ifname", "ib0"]):
        actions = one.json("plan", *argv, rc=0).actions()
        assert ("netdev.address_add", "ib0", IP) in actions
        assert ("netdev.address_add", "ib1", "10.1.0.5/24") in actions
    done = one.json("plan", "--ip", "ib1=" + IP, rc=3)
    assert done.error["code"] == "address.hosts_not_found"


def test_the_form_is_checked_without_asking(node):
    one = node("guide.ini")
    for source in ("hosts:%h-ib0", "hosts:%x/24", "map:map", "offset:eth0:10.0.0.1/16"):
        one.write(CONF, address(source))
        done = one.json("show", "ports", rc=2)
        assert done.error["code"] == "config.bad_value", done
        assert CONF + ":2" in done.error["message"] and source in done.error["message"]


def test_ipv6_alone(node):
    one = node("guide.ini")
    prepare(one, "fd00::50 node01-ib0\n")
    one.write(CONF, address("hosts:%h-ib0/64"))
    done = one.json("apply", *QUICK, rc=0)
    check = done.check("netdev.no_ipv4", "ib0")
    assert check["status"] == "warn" and "Dask" in check["message"]
    assert "NCCL_SOCKET_FAMILY" in check["message"]
    one.write(CONF, address("hosts:%h-ib0/64", IP))
    assert one.json("apply", *QUICK, rc=0).checks(code="netdev.no_ipv4") == []
