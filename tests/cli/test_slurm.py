# SPDX-License-Identifier: MIT
"""packaging/slurm: with Debian's Slurm on a cluster of one node (slurm_world), and for what such
a cluster cannot have with stand-ins of srun and scontrol, which take the options that these
scripts use and refuse others. What nodeprep says is real in both."""

import json
import os
import re
import shutil
import subprocess

import pytest
from helpers import BUILD, ENV, IP, NODEPREP, PYTHON, QUICK, ROOT

SLURM = os.path.join(ROOT, "packaging", "slurm")
# options of sbatch, and how their values look
DIRECTIVES = {"job-name": r"[\w-]+", "nodes": r"\d+", "ntasks-per-node": r"\d+",
              "gpus-per-node": r"\d+", "exclusive": None, "time": r"\d\d:\d\d:\d\d",
              "output": r"[\w%-]+\.out"}
SRUN = """#!%s
import os, subprocess, sys
options, command = {}, sys.argv[1:]
while command and command[0].startswith("--"):
    name, _, value = command.pop(0)[2:].partition("=")
    if name not in ("mpi", "kill-on-bad-exit", "ntasks-per-node", "output"):
        sys.exit("srun: unrecognized option '--%%s'" %% name)
    options[name] = value
assert options["kill-on-bad-exit"] == "0", options
if "mpi" in options:
    assert options["mpi"] == "pmix", options
    sys.exit(subprocess.call(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np",
                              os.environ["SLURM_NTASKS"], *command]))
assert options["ntasks-per-node"] == "1"
worst = 0
for node in os.environ["STANDIN_NODES"].split():
    with open(options["output"].replace("%%N", node), "w") as file:
        worst = max(worst, subprocess.call(command, stdout=file, env=dict(
            os.environ, SLURMD_NODENAME=node)))
sys.exit(worst)
""" % PYTHON


def script(folder, name, text):
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def job(tmp_path):
    """job(FILE, ARGUMENT...) runs a batch script as slurmd would: bash, the working folder."""
    script(tmp_path, "srun", SRUN)

    def run(name, *argv, rc, **env):
        done = subprocess.run(["bash", os.path.join(SLURM, name), *argv], capture_output=True,
                              text=True, cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=180,
                              check=False, env=dict(ENV, PATH="%s:%s" % (tmp_path, ENV["PATH"]),
                                                    SLURM_JOB_ID="17", **env))
        assert done.returncode == rc, done.stdout + done.stderr
        return done
    return run


@pytest.mark.parametrize("name", ["ranks.sbatch", "check.sbatch"])
def test_directives(name):
    with open(os.path.join(SLURM, name), encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert lines[0] == "#!/bin/bash"
    given = [line for line in lines if line.startswith("#SBATCH")]
    # sbatch stops looking at the first line that is none of its own
    first_command = next(i for i, line in enumerate(lines) if line and line[0] != "#")
    assert len(given) >= 5 and all(lines.index(line) < first_command for line in given)
    for line in given:
        found = re.fullmatch(r"#SBATCH --([a-z-]+)(?:=(\S+))?", line)
        assert found and found.group(1) in DIRECTIVES, line
        pattern = DIRECTIVES[found.group(1)]
        assert (found.group(2) is None) if pattern is None else \
            re.fullmatch(pattern, found.group(2)), line


@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not installed: make deps")
def test_ranks(job, tmp_path):
    os.symlink(os.path.join(BUILD, "nodeprep-ranks"), tmp_path / "nodeprep-ranks")
    done = job("ranks.sbatch", "--trials", "1", rc=0, SLURM_NTASKS="3", UCX_TLS="tcp,sm,self")
    assert "Rank 2 received: [0, 1]" in done.stdout and "Trial 1" not in done.stdout
    assert done.stdout.count("Clique size: 3") == 3
    # what it says of its arguments comes from the program, its exit code too
    assert job("ranks.sbatch", "--trial", rc=2, SLURM_NTASKS="1").stdout == ""


def documents(node, tmp_path):
    """A nodeprep that gives each node a document that the real one gave; exit codes as well."""
    good = node("guide.ini")
    good.apply()
    for name, one, rc in (("n1", good, 0), ("n2", node("sick.ini"), 1)):
        done = one.json("check", "--ip", IP, *QUICK, rc=rc)
        (tmp_path / (name + ".given")).write_text(done.stdout)
    script(tmp_path, "nodeprep", """#!/bin/sh
echo "$*" >>"%s/asked"
cat "%s/$SLURMD_NODENAME.given" 2>/dev/null || exit 3
! grep -q '"ready": false' "%s/$SLURMD_NODENAME.given"
""" % ((tmp_path,) * 3))


def test_check(job, node, tmp_path):
    documents(node, tmp_path)
    done = job("check.sbatch", rc=0, STANDIN_NODES="n1", SLURM_JOB_NUM_NODES="1")
    assert done.stdout == "n1: ready\n1 of 1 nodes have told, 0 of them are not ready\n"
    shutil.rmtree(tmp_path / "nodeprep-check-17")

    done = job("check.sbatch", "--ip", IP, rc=1, STANDIN_NODES="n1 n2 n3",
               SLURM_JOB_NUM_NODES="4")
    assert (tmp_path / "asked").read_text().splitlines()[-1] == "check --json --ip " + IP
    lines = done.stdout.splitlines()
    assert lines[:2] == ["n1: ready", "n2: not ready"]
    # each failure with its fix, and what there is to do
    sick = json.loads((tmp_path / "n2.given").read_text())
    failed = [c for c in sick["checks"] if c["status"] == "fail"]
    assert len(failed) >= 5 and sick["actions"]
    for check in failed:
        at = lines.index("  %s: %s [%s]" % (check["target"], check["message"], check["code"]))
        assert lines[at + 1] == "    fix: " + check["hint"]
    for action in sick["actions"]:
        assert "  to do: %s %s" % (action["target"], action["id"]) in lines
    at = lines.index("n3: not ready")
    assert lines[at + 1] == "  no document: read the output of this job"
    assert lines[-1] == "3 of 4 nodes have told, 2 of them are not ready"
    assert json.loads((tmp_path / "nodeprep-check-17" / "n2.json").read_text()) == sick


def test_check_without_jq(job, tmp_path):
    """Said before a node is asked, and not that all of them are ill."""
    script(tmp_path, "jq", "#!/bin/sh\nexit 127\n")
    script(tmp_path, "nodeprep", "#!/bin/sh\necho >>%s/asked\n" % tmp_path)
    done = job("check.sbatch", rc=3, STANDIN_NODES="n1", SLURM_JOB_NUM_NODES="1")
    assert done.stdout == "" and "jq" in done.stderr
    assert not (tmp_path / "asked").exists()


# ---- health-check, on a simulated node ----

SCONTROL = """#!/bin/sh
# the node's state is in /tmp/state, its reason in /tmp/reason
case "$1 $2" in
"-o show")
	[ "$3 $4" = "node node01" ] || exit 1
	reason=$(cat /tmp/reason)
	echo "NodeName=node01 Arch=x86_64 CPUTot=8 State=$(cat /tmp/state) ThreadsPerCore=1" \\
		"Partitions=all${reason:+ Reason=$reason [root@2026-01-02T03:04:05]}" ;;
"update NodeName=node01")
	echo "$3 $4" >>/tmp/updates
	case $3 in
	State=DRAIN) echo IDLE+DRAIN >/tmp/state; echo "${4#Reason=}" >/tmp/reason ;;
	State=RESUME) echo IDLE >/tmp/state; : >/tmp/reason ;;
	*) exit 1 ;;
	esac ;;
*) exit 1 ;;
esac
"""


@pytest.fixture
def health(node):
    one = node("guide.ini", named=True)
    one.write("/etc/nodeprep/nodeprep.conf", "[netdev ib0]\naddress = %s\n" % IP)
    one.apply()
    one.write("/tmp/bin/scontrol", SCONTROL)
    one.text("chmod", "755", "/tmp/bin/scontrol")
    one.text("ln", "-s", NODEPREP, "/tmp/bin/nodeprep")

    def run(state, reason=""):
        """The updates that it asked for."""
        one.write("/tmp/state", state + "\n")
        one.write("/tmp/reason", reason)
        one.write("/tmp/updates", "")
        done = one.run(os.path.join(SLURM, "health-check"), only_env={
            "HEALTH_CHECK_PATH": "/tmp/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "SLURMD_NODENAME": "node01", "ASAN_OPTIONS": ENV["ASAN_OPTIONS"]})
        assert done.rc == 0, done
        return one.read("/tmp/updates").decode().splitlines()
    run.node = one
    return run


def test_a_healthy_node_stays(health):
    assert health("IDLE") == [] and health("ALLOCATED") == []


def test_a_sick_node_is_drained_and_comes_back(health):
    health.node.set("port mlx5_1:1.state=INIT", "port mlx5_2:1.state=DOWN",
                    "port mlx5_2:1.phys_state=Polling")
    why = "nodeprep: mlx5_1:1 port.no_sm, mlx5_2:1 port.down"
    assert health("ALLOCATED") == ["State=DRAIN Reason=" + why]
    # what has been said is not said again
    assert health("IDLE+DRAIN", why) == []
    # another failure now
    assert health("IDLE+DRAIN", "nodeprep: mlx5_3:1 port.down") == ["State=DRAIN Reason=" + why]
    health.node.set("port mlx5_1:1.state=ACTIVE", "port mlx5_2:1.state=ACTIVE",
                    "port mlx5_2:1.phys_state=LinkUp")
    assert health("IDLE+DRAIN", why) == ["State=RESUME "]


def test_a_node_that_an_admin_has_drained(health):
    """Neither its reason nor its state is changed."""
    assert health("IDLE+DRAIN", "new DIMM") == []
    health.node.set("port mlx5_1:1.state=INIT")
    assert health("IDLE+DRAIN", "new DIMM") == []
    # an idle node whose old reason Slurm still shows
    assert health("IDLE", "new DIMM") == ["State=DRAIN Reason=nodeprep: mlx5_1:1 port.no_sm"]


def test_many_failures(health):
    health.node.set(*["port mlx5_%d:1.state=INIT" % n for n in range(4)])
    update, = health("IDLE")
    assert update.endswith(", and %d more" % (len(health.node.json(
        "check").failed()) - 3)) and update.count("port.no_sm") == 3


def test_it_could_not_be_told(health):
    health.node.write("/etc/nodeprep/nodeprep.conf", "[nonsense]\n")
    assert health("IDLE") == [] and health("IDLE+DRAIN", "nodeprep: mlx5_1:1 port.no_sm") == []


# ---- Slurm itself ----

SLURM_DEBS = os.path.join(BUILD, "slurm")
FAKES = os.path.join(BUILD, "asan", "fake")


def on_slurm(script, **env):
    """The output of shell commands on a node of a cluster of one; they end with 0."""
    if os.geteuid() != 0:
        pytest.skip("needs root: namespaces in which Slurm runs as root")
    if not os.path.exists(os.path.join(SLURM_DEBS, ".unpacked")):
        pytest.skip("Slurm is not unpacked: make test")
    done = subprocess.run(
        [os.path.join(ROOT, "tests", "cli", "slurm_world"), SLURM_DEBS, "bash", "-c", script],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900, check=False,
        env=dict(ENV, PATH="%s:%s" % (BUILD, ENV["PATH"]), UCX_TLS="tcp,sm,self", S=SLURM, **env))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_slurm_runs_the_ranks():
    """Real srun and PMIx plug-in; the options of the command line win over those of the file."""
    said = on_slurm("sbatch --wait --nodes=1 --ntasks-per-node=3 --gpus-per-node=0 "
                    "$S/ranks.sbatch --trials 1 && cat nodeprep-ranks-*.out")
    assert re.findall(r"^Rank (\d) received: (.*)$", said, re.M) == [
        ("0", "[1, 2]"), ("1", "[0, 2]"), ("2", "[0, 1]")]
    assert said.count("Clique size: 3 final_size: 3") == 3
    assert "ready: 3 ranks on 1 hosts, 6 of 6 ways verified in 1 trials" in said


def test_slurm_runs_the_ranks_by_nccl():
    said = on_slurm("srun --mpi=pmix -n 2 nodeprep-ranks --trials 1 --size 1024 --json",
                    LD_LIBRARY_PATH=FAKES, FAKE_CUDA="gpus=2")
    found = json.loads(said)["ranks"]
    assert found["allreduce"]["backend"] == "nccl"
    assert [(one["gpu"], one["final_size"]) for one in found["list"]] == [
        ("0000:17:00.0", 2), ("0000:18:00.0", 2)]


def test_slurm_takes_the_files_as_they_are():
    """Two nodes and GPUs are more than there is, which is another error than a bad option."""
    said = on_slurm("for f in ranks check; do sbatch --test-only $S/$f.sbatch 2>&1; done; true")
    assert said.count("\n") == 2 and "unrecognized" not in said and "nvalid" not in said
    assert said.count("Requested node configuration is not available") == 2, said


def test_slurm_runs_the_check_and_drains_the_node():
    """Where this machine has no InfiniBand port, that is a failure of its check."""
    said = on_slurm("""
sbatch --wait --nodes=1 $S/check.sbatch; echo "rc $?"
cat nodeprep-check-*.out
cp nodeprep-check-*/node1.json document
$S/health-check
echo "health-check $?"
scontrol -o show node node1
# and what is well again, by a nodeprep that says so
mkdir bin
printf '#!/bin/sh\\necho "{}"\\n' >bin/nodeprep
chmod +x bin/nodeprep
HEALTH_CHECK_PATH=$PWD/bin:$PATH $S/health-check
echo "then $(scontrol -o show node node1)"
jq -c '[.checks[] | select(.status == "fail") | .target + " " + .code]' document
""", HEALTH_CHECK_PATH="%s:%s" % (BUILD, ENV["PATH"]), SLURMD_NODENAME="node1")
    failed = json.loads(said.splitlines()[-1])
    if not failed:
        pytest.skip("hardware: this machine's own check finds no failure")
    assert "rc 1" in said and "node1: not ready" in said
    before, after = said.split("\nthen ")
    assert " State=IDLE+DRAIN " in before and "Reason=nodeprep: " + failed[0] in before
    assert re.search(r" State=IDLE(\+NOT_RESPONDING)? ", after)
    assert "nodeprep: " not in after.splitlines()[0]
