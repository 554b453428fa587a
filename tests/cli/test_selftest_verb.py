# SPDX-License-Identifier: MIT
"""The self-test as the agent runs it: what each rung proves here, and says it cannot."""

import os
import subprocess

import pytest
from helpers import BUILD, IP, NODEPREP, PLAIN, PORTS

GPU_RUNGS = ["cuda", "cuda_copy", "cuda_ipc", "gdrapi", "gdr_copy", "gdr_rdma", "nccl"]


@pytest.fixture
def addressed(node):
    one = node("guide.ini")
    one.apply()
    return one


def good_tcp(entry):
    assert (entry["rung"], entry["device"], entry["transport"], entry["status"]) == (
        "tcp", "ib0", "tcp/ib0", "ok")
    assert entry["code"] == "" and entry["hint"] == "" and "10.0.0.50" in entry["message"]
    sizes = entry["sizes"]
    assert len(sizes) >= 3 and [s["size_bytes"] for s in sizes] == sorted(
        {s["size_bytes"] for s in sizes})
    assert entry["size_bytes"] == sizes[-1]["size_bytes"] >= 1 << 20
    assert entry["latency_us"] == sizes[0]["latency_us"] > 0
    assert entry["bandwidth_MBps"] == sizes[-1]["bandwidth_MBps"] > 0


def test_tcp_is_proved(addressed):
    done = addressed.json("selftest", "tcp", rc=0)
    assert done.doc["ready"] is True and done.doc["changed"] is False
    entry, = done.doc["selftest"]
    good_tcp(entry)


def plain(node, *argv, rc, **how):
    """Two workers that poll are slow under the sanitizers: once is enough."""
    done = node.run(PLAIN, *argv, "--json", **how)
    assert done.rc == rc, done
    return done


def test_rc_fails_honestly(addressed):
    """A simulated port has no data path: not ok, not skipped, and said in words."""
    done = addressed.json("selftest", "rc", rc=1)
    assert [entry["device"] for entry in done.doc["selftest"]] == PORTS
    for number, entry in enumerate(done.doc["selftest"]):
        assert (entry["rung"], entry["status"]) == ("rc", "fail")
        assert entry["code"].startswith("selftest.rc.") and entry["hint"]
        assert "no data path" in entry["message"]
        assert "/dev/infiniband/uverbs%d" % number in entry["message"]
        assert entry["sizes"] == [] and entry["bandwidth_MBps"] is None


def test_all_rungs(addressed):
    done = plain(addressed, "selftest", rc=1)
    assert [(entry["rung"], entry["status"]) for entry in done.doc["selftest"]] == \
        [("umad", "skip")] * 4 + [("verbs", "fail"), ("verbs", "skip")] * 4 + \
        [("rc", "skip")] * 4 + [("tcp", "ok")] + [(rung, "skip") for rung in GPU_RUNGS]
    assert {entry["code"] for entry in done.rungs("umad")} == {"selftest.umad.open"}
    # each port, and each with the next
    assert [entry["device"] for entry in done.rungs("verbs")] == [
        "mlx5_0:1", "mlx5_0:1-mlx5_1:1", "mlx5_1:1", "mlx5_1:1-mlx5_2:1", "mlx5_2:1",
        "mlx5_2:1-mlx5_3:1", "mlx5_3:1", "mlx5_3:1-mlx5_0:1"]
    # above the broken rung nothing is tried, and the broken one is named
    for entry in done.rungs("rc"):
        assert entry["code"] == "selftest.below_broken"
        assert "verbs on " + entry["device"] in entry["message"]
    assert {entry["code"] for rung in GPU_RUNGS for entry in done.rungs(rung)} == \
        {"selftest.no_gpu"}
    good_tcp(done.rungs("tcp")[0])
    text = addressed.run(PLAIN, "selftest")
    assert text.rc == 1 and "MB/s" in text.stdout and "not ready" in text.stdout
    # people read one line for all that wants a GPU
    assert text.stdout.count("no NVIDIA GPU") == 1


def test_apply_with_and_without(node):
    one = node("guide.ini")
    done = plain(one, "apply", "--ip", IP, rc=1)
    assert done.doc["changed"] is True and done.doc["ready"] is False
    good_tcp(done.rungs("tcp")[0])
    assert {entry["status"] for entry in done.rungs("rc")} == {"skip"}
    assert {entry["code"] for entry in done.rungs("verbs")
            if entry["status"] == "fail"} == {"selftest.verbs.uverbs_open"}
    assert done.failed() == [] and one.ipv4() == [IP]
    done = one.json("apply", "--ip", IP, "--no-selftest", rc=0)
    assert done.doc["selftest"] == [] and done.doc["ready"] is True


def test_check_and_plan_try_nothing(addressed):
    for verb in ("check", "plan"):
        assert addressed.json(verb, "--ip", IP, rc=0).doc["selftest"] == []


def test_a_named_rung_that_skips_is_1(node):
    one = node("guide.ini")
    done = one.json("selftest", "tcp", rc=1)
    entry, = done.doc["selftest"]
    assert (entry["status"], entry["code"]) == ("skip", "selftest.tcp.no_address")
    assert entry["hint"]
    sick = node("guide.ini", *(word for port in PORTS
                               for word in ("--set", "port %s.state=INIT" % port)))
    done = sick.json("selftest", "rc", rc=1)
    assert {entry["status"] for entry in done.doc["selftest"]} == {"skip"}
    # not named, a skip does not matter
    assert sick.json("selftest", rc=0).doc["ready"] is True


def test_a_node_without_anything_says_that_nothing_was_tried(node):
    """No HCA, no IPoIB, no GPU: ready, with a reason for each rung, and no word too much."""
    bare = node("guide.ini", *(word for n in range(4) for word in ("--without", "ca mlx5_%d" % n)),
                *(word for port in PORTS for word in ("--without", "port %s" % port)),
                "--without", "netdev ib0")
    done = bare.json("selftest", rc=0)
    entries = {entry["rung"]: entry for entry in done.doc["selftest"]}
    assert {entry["status"] for entry in entries.values()} == {"skip"}
    assert len(entries) == len(done.doc["selftest"]) == 11
    assert entries["tcp"]["message"] == "no IPoIB netdev on this node"
    assert bare.nodeprep("selftest").stdout.endswith(
        "nodeprep selftest: ready, and no data path was tried\n")
    assert bare.nodeprep("selftest", "tcp").rc == 1


def test_a_corrupted_byte_is_seen(addressed):
    # the first message, and a later one
    for what in ("1", "5"):
        done = addressed.json("selftest", "tcp", "--env", "NP_TEST_CORRUPT=" + what, rc=1)
        entry, = done.doc["selftest"]
        assert (entry["status"], entry["code"]) == ("fail", "selftest.data_corrupt"), entry
        assert entry["hint"] and done.doc["ready"] is False


def test_the_environment_reaches_the_rungs_only_through_env(addressed):
    done = addressed.json("selftest", "tcp", rc=0, env={"NP_TEST_CORRUPT": "1"})
    good_tcp(done.doc["selftest"][0])


def test_a_missing_program(addressed):
    """The agent alone, as a package without the self-test leaves it."""
    addressed.text("mkdir", "/tmp/alone")
    addressed.text("cp", NODEPREP, "/tmp/alone/nodeprep")
    done = addressed.run("/tmp/alone/nodeprep", "selftest", "tcp", "--json")
    assert done.rc == 3 and done.error["code"] == "selftest.not_installed", done
    assert "nodeprep-selftest" in done.error["message"] and "install" in done.error["hint"]
    done = addressed.run("/tmp/alone/nodeprep", "apply", "--json", "--ip", IP)
    assert done.rc == 1
    assert done.failed() == [("selftest.not_installed", "nodeprep-selftest")]
    assert done.check("selftest.not_installed")["hint"]
    done = addressed.run("/tmp/alone/nodeprep", "apply", "--json", "--ip", IP, "--no-selftest")
    assert done.rc == 0


# A stand-in for nodeprep-selftest. It is run through a close-on-exec descriptor, so a
# script would not do.
FAKE = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	static char zeros[1 << 16];
	const char *how = "";
	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], "--env") && !strncmp(argv[i + 1], "FAKE=", 5))
			how = argv[i + 1] + 5;
	if (!strcmp(how, "crash"))
		fprintf(stderr, "about to crash\n"), raise(SIGSEGV);
	if (!strcmp(how, "exit"))
		return fprintf(stderr, "the reason\n"), 7;
	if (!strcmp(how, "garbage"))
		return printf("{\"schema\": \xff\x01"), 0;
	if (!strcmp(how, "half"))
		return printf("{\"schema\": 1, \"selftest\": [{\"rung\": 7}]}\n"), 0;
	/* VERDICT=CODE: each rung says so of its device */
	const char *code = strchr(how, '=');
	if (code) {
		const char *device = "";
		int good = !strncmp(how, "ok", 2) || !strncmp(how, "warn", 4);
		for (int i = 1; i + 1 < argc; i++)
			if (!strcmp(argv[i], "--device") || !strcmp(argv[i], "--netdev"))
				device = argv[i + 1];
		printf("{\"schema\": 1, \"selftest\": [{\"rung\": \"%s\", \"device\": \"%s\","
		       "\"transport\": \"t\", \"status\": \"%.*s\", \"code\": \"%s\", \"message\": \"m\","
		       "\"hint\": \"h\", \"size_bytes\": 8388608, \"latency_us\": 1, \"bandwidth_MBps\": 9000,"
		       "\"sizes\": [{\"size_bytes\": 8388608, \"latency_us\": 1, \"bandwidth_MBps\": 9000}]}]}\n",
		       argv[1], device, (int)(code - how), how, code + 1);
		return !good;
	}
	for (int i = 0; !strcmp(how, "flood") && i < 1000; i++)
		fwrite(zeros, 1, sizeof(zeros), stdout);
	if (!strcmp(how, "heir")) {
		if (fork() == 0)
			execl("/bin/sleep", "sleep", "300", NULL);
		return 7;
	}
	if (!strcmp(how, "mute"))
		close(1), close(2), sleep(300);
	if (!strcmp(how, "deaf"))
		signal(SIGTERM, SIG_IGN), signal(SIGINT, SIG_IGN), signal(SIGHUP, SIG_IGN);
	if (!strcmp(how, "deaf") || !strcmp(how, "hang")) {
		if (fork() == 0)
			execl("/bin/sleep", "sleep", "300", NULL);
		sleep(300);
	}
	for (int i = 1; !strcmp(how, "who") && i < argc; i++)
		fprintf(stderr, "[%s]", argv[i]);
	if (!strcmp(how, "who"))
		return execl("/bin/sh", "sh", "-c",
			     "echo \"$(id -un) $(id -G) $(pwd) $(ls -A | wc -l)\" >&2; env >&2;"
			     "ls /proc/self/fd | tr '\\n' ' ' >&2; grep NoNewPrivs /proc/self/status >&2;"
			     "exit 9", NULL);
	return 0;
}
"""


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    where = tmp_path_factory.mktemp("fake")
    (where / "fake.c").write_text(FAKE)
    subprocess.run(["cc", "-o", where / "fake", where / "fake.c"], check=True)
    return (where / "fake").read_bytes()


def beside(node, content):
    """The agent with another nodeprep-selftest beside it."""
    node.text("mkdir", "/tmp/fake")
    node.text("cp", NODEPREP, "/tmp/fake/nodeprep")
    node.write("/tmp/fake/nodeprep-selftest", content)
    node.text("chmod", "755", "/tmp/fake/nodeprep-selftest")
    return "/tmp/fake/nodeprep"


@pytest.mark.parametrize("how, code, said", [
    ("crash", "selftest.crashed", "signal 11"), ("silent", "selftest.crashed", "no result"),
    ("exit", "selftest.crashed", "the reason"), ("garbage", "selftest.crashed", "no result"),
    ("flood", "selftest.crashed", ""), ("half", "selftest.crashed", "no result"),
    ("hang", "selftest.timeout", "2 s"), ("deaf", "selftest.timeout", "2 s"),
    ("mute", "selftest.timeout", "2 s"), ("heir", "selftest.crashed", "code 7")])
def test_a_program_that_misbehaves_is_a_failed_rung(addressed, fake, how, code, said):
    program = beside(addressed, fake)
    done = addressed.run(program, "selftest", "tcp", "--json", "--timeout", "2", "--env",
                         "FAKE=" + how, timeout=30)
    assert done.rc == 1, done
    entry, = done.doc["selftest"]
    assert (entry["rung"], entry["status"], entry["code"]) == ("tcp", "fail", code), entry
    assert entry["hint"] and said in entry["message"], entry
    assert addressed.run("pgrep", "-f", "sleep 30[0]").rc == 1, "a child was left behind"


def says(node, fake, how, *argv, rc):
    program = beside(node, fake)
    done = node.run(program, "selftest", *argv, "--json", "--env", "FAKE=" + how, timeout=60)
    assert done.rc == rc, done
    return done


def test_a_ucx_that_lacks_a_transport_is_no_fault_of_the_node(addressed, fake):
    """C31: jobs may bring their own UCX; who names the rung wants to know."""
    done = says(addressed, fake, "fail=ucx.built_without", "rc", rc=1)
    assert {entry["status"] for entry in done.doc["selftest"]} == {"fail"}
    addressed.text("rm", "-r", "/tmp/fake")
    done = says(addressed, fake, "fail=ucx.built_without", rc=0)
    assert {(entry["status"], entry["code"]) for entry in done.rungs("rc")} == \
        {("skip", "ucx.built_without")}


def test_a_memlock_line_in_a_file_whose_name_is_no_text(addressed, fake):
    """What jansson takes for no text must not end the run."""
    addressed.shell("echo 'nobody - memlock 64' >/etc/security/limits.d/z$(printf '\\377').conf")
    done = says(addressed, fake, "fail=selftest.rc.memlock", "rc", rc=1)
    for entry in done.rungs("rc"):
        assert entry["code"] == "selftest.rc.memlock", done
        for text in entry["message"], entry["hint"]:
            assert "/etc/security/limits.d/z\\xff.conf" in text, done


def test_a_netdev_whose_name_is_no_text(addressed):
    addressed.shell("n=$(printf 'ib\\377'); ip link set ib0 down && ip link set ib0 name $n && "
                    "ip link set $n up && ip -o addr show dev $n | grep -q 10.0.0.50 || "
                    "ip addr add 10.0.0.50/24 dev $n")
    done = addressed.run(PLAIN, "selftest", "tcp", "--json")
    entry, = done.doc["selftest"]
    assert (entry["status"], entry["device"]) == ("ok", "ib\\xff"), done


def test_two_ports_without_a_way_between_them(addressed, fake):
    done = says(addressed, fake, "fail=selftest.verbs.no_path", "verbs", rc=1)
    for entry in done.rungs("verbs"):
        # the port itself failed, so the pair was not tried
        assert entry["status"] == ("skip" if "-" in entry["device"] else "fail")


def test_floors_and_fair_shares(addressed, fake):
    done = says(addressed, fake, "ok=", "rc", rc=0)
    assert {(entry["status"], entry["code"]) for entry in done.rungs("rc")} == \
        {("warn", "selftest.slow")}
    addressed.write("/etc/nodeprep/nodeprep.conf", "[selftest]\nmin_bandwidth_MBps.rc = 9001\n")
    addressed.text("rm", "-r", "/tmp/fake")
    done = says(addressed, fake, "ok=", "rc", "verbs", rc=1)
    assert {(entry["status"], entry["code"]) for entry in done.rungs("rc")} == \
        {("fail", "selftest.below_floor")}
    assert {entry["status"] for entry in done.rungs("verbs")} == {"warn"}
    addressed.write("/etc/nodeprep/nodeprep.conf", "[selftest]\nmin_bandwidth_MBps.rc = 8999\n")
    addressed.text("rm", "-r", "/tmp/fake")
    assert says(addressed, fake, "ok=", "rc", rc=0).rungs("rc")[0]["status"] == "ok"


def test_a_file_that_is_no_program(addressed):
    program = beside(addressed, "\x7fELF nonsense")
    done = addressed.run(program, "selftest", "tcp", "--json")
    assert done.rc == 1, done
    assert done.doc["ready"] is False
    entry, = done.doc["selftest"]
    assert (entry["status"], entry["code"]) == ("fail", "selftest.not_started"), done
    assert "could not be executed: Exec format error" in entry["message"], done


def test_a_library_of_the_program_is_missing(addressed, tmp_path):
    """The dynamic linker's own message, in one line, wherever the program is needed."""
    (tmp_path / "gone.c").write_text("int gone(void) { return 0; }\n")
    (tmp_path / "main.c").write_text("int gone(void); int main(void) { return gone(); }\n")
    for argv in (["-shared", "-fPIC", "-Wl,-soname,libgone.so.7", "-o", "libgone.so", "gone.c"],
                 ["-o", "main", "main.c", "-L.", "-lgone"]):
        subprocess.run(["cc", *argv], check=True, cwd=str(tmp_path))
    program = beside(addressed, (tmp_path / "main").read_bytes())
    done = addressed.run(program, "selftest", "tcp", "--json")
    entry, = done.doc["selftest"]
    assert done.rc == 1 and entry["code"] == "selftest.not_loaded", done
    said = "could not be loaded: error while loading shared libraries: libgone.so.7: cannot open"
    assert said in entry["message"] and "install" in entry["hint"], done
    done = addressed.run(program, "show", "libraries", "--json")
    assert done.rc == 0 and {one["code"] for one in done.doc["show"]["libraries"]} == \
        {"selftest.not_loaded"}, done
    assert said in done.doc["show"]["libraries"][0]["message"], done


def test_where_nobody_can_become_another_user(addressed):
    """A user namespace in which there is root alone."""
    done = addressed.run("unshare", "--user", "--map-root-user", PLAIN, "selftest", "tcp", "--json")
    entry, = done.doc["selftest"]
    assert done.rc == 1 and entry["code"] == "selftest.not_started", done
    assert "could not become that user" in entry["message"] and "--as-root" in entry["hint"]
    done = addressed.run("unshare", "--user", "--map-root-user", PLAIN, "selftest", "tcp", "--json",
                         "--as-root")
    good_tcp(done.doc["selftest"][0])


def test_whom_the_rungs_run_as(addressed, fake):
    """nobody by default, whom one asks for, root only when told so; nothing is inherited."""
    program = beside(addressed, fake)

    def log(*argv):  # what the stand-in saw
        done = addressed.run("bash", "-c", 'exec 7</etc/passwd; exec "$0" "$@"', program,
                             "selftest", "tcp", "--verbose", "--env", "FAKE=who", *argv,
                             env={"SECRET": "x"})
        assert "SECRET" not in done.stderr and "HOME=" not in done.stderr, done
        # control characters of a log are shown escaped
        text = done.stderr.replace("\\x09", "\t").replace("\\x0a", "\n")
        assert "NoNewPrivs:\t1" in text and " 7 " not in text, done
        return text

    assert "nobody 65534 /run/nodeprep/empty 0" in log()
    assert "alice 1000 /run/nodeprep/empty 0" in log("--run-as", "alice")
    assert "root 0 /run/nodeprep/empty 0" in log("--as-root")
    assert "[tcp][--netdev][ib0][--address][10.0.0.50][--quick][--timeout-ms]" in log()
    assert "[--full]" in log("--full")


def test_the_linkers_variables_reach_the_linker(addressed, fake):
    """LD_* as an argument would come too late; what the caller has is not inherited."""
    program = beside(addressed, fake)

    def log(rung, *argv):
        done = addressed.run(program, "selftest", rung, "--verbose", "--env", "FAKE=who", *argv,
                             env={"LD_LIBRARY_PATH": "/inherited"})
        assert "inherited" not in done.stderr, done
        return done.stderr

    assert "LD_" not in log("tcp")
    given = ("--env", "LD_PRELOAD=/no/such.so", "--env", "LD_LIBRARY_PATH=/a:/b")
    assert "LD_LIBRARY_PATH=/a:/b\n" not in log("umad", *given), "umad runs as root"
    text = log("tcp", *given)
    assert "object '/no/such.so' from LD_PRELOAD cannot be preloaded" in text
    assert "LD_LIBRARY_PATH=/a:/b\n" in text
    done = plain(addressed, "selftest", "tcp", "--env", "LD_LIBRARY_PATH=/no/such", rc=0)
    good_tcp(done.doc["selftest"][0])


def test_a_log_is_readable(addressed, fake):
    """--verbose shows the lines of a rung's log as lines."""
    program = beside(addressed, fake)
    done = addressed.run(program, "selftest", "tcp", "--verbose", "--env", "FAKE=who")
    assert "\\x0a" not in done.stderr
    assert len(done.stderr.splitlines()) >= 4


def test_as_an_unprivileged_user(addressed):
    done = plain(addressed, "selftest", "tcp", rc=0, user="alice")
    good_tcp(done.doc["selftest"][0])


def test_only_root_can_choose_who(addressed):
    """Asked for another user and given oneself would prove nothing of that user."""
    for options in ("--run-as", "nobody"), ("--run-as", "root"), ("--as-root",):
        done = addressed.nodeprep("selftest", "tcp", "--json", *options, user="alice")
        assert done.rc == 3 and done.error["code"] == "privilege.root", done
        assert options[0] in done.error["message"] and not done.doc["selftest"]
    good_tcp(plain(addressed, "selftest", "tcp", "--run-as", "alice", rc=0,
                   user="alice").doc["selftest"][0])


@pytest.mark.parametrize("argv", [("--quick", "--full"), ("--full", "--quick"),
                                  ("--as-root", "--run-as", "root")])
def test_options_that_exclude_each_other(addressed, argv):
    done = addressed.nodeprep("selftest", "tcp", "--json", *argv)
    assert done.rc == 2 and done.error["code"] == "usage.value", done
    assert argv[0] in done.error["message"] and "exclude" in done.error["message"]


def test_what_has_no_effect_is_said(addressed):
    done = addressed.run(PLAIN, "selftest", "tcp", "--env", "UCX_TLS=rc", "--env",
                         "UCX_NET_DEVICES=ib7", "--env", "UCX_TLSX=1")
    assert done.rc == 0 and done.stderr.splitlines() == [
        "nodeprep: warning: --env %s has no effect: each rung chooses its transport and device"
        % name for name in ("UCX_TLS", "UCX_NET_DEVICES")], done


def test_the_programs_lie_side_by_side():
    assert os.access(os.path.join(BUILD, "asan", "nodeprep-selftest"), os.X_OK)
    assert os.access(os.path.join(BUILD, "nodeprep-selftest"), os.X_OK)


@pytest.mark.parametrize("argv", [("selftest", "tcp", "--full"), ("show", "libraries")])
def test_a_signal_is_no_internal_error(addressed, argv):
    """SIGTERM as soon as the helper runs, which is stopped in the meantime."""
    running = addressed.spawn(PLAIN, *argv, "--json")
    found = addressed.shell("for i in $(seq 2000); do "
                            "for p in $(pgrep -P %d); do kill -STOP $p && exit 0; done; "
                            "sleep 0.002; done; exit 1" % running[1])
    assert found.rc == 0, found
    addressed.kill(running)
    done = addressed.wait(running)
    assert done.rc == 4 and done.error["code"] == "internal.interrupted", done
    assert addressed.shell("pgrep nodeprep-selfte").rc == 1
