# SPDX-License-Identifier: MIT
"""docs/from-the-guide.md: what it says of nodeprep is so, and no value of the guides is
missing in it."""

import os
import re
import shlex

import pytest
import yaml
from dask.config import canonical_name, collect_env
from helpers import IP, ROOT
from test_docs import (NODEPREP, SOURCES, VERBS, help_options, page_codes, read, run,
                       table_keys)

PAGE = read("docs", "from-the-guide.md")
SPANS = re.findall(r"`([^`]+)`", PAGE)
CONF = "/etc/nodeprep/nodeprep.conf"
# commands and values of both guides
VALUES = """
--with-cuda --with-gdrcopy --enable-mt
ucx_info -d
insmod.sh
dbg_enabled=0 info_enabled=0 use_persistent_mapping=1
NCCL_SOCKET_IFNAME=ib0
~/.nccl.conf
ifconfig ib0 10.0.0.50/24
UP, BROADCAST, RUNNING, MULTICAST
65520
10.0.0.255
ibstatus
state: 4: ACTIVE
phys state: 5: LinkUp
rate: 100 Gb/sec (4X EDR)
link_layer: InfiniBand
export UCX_NET_DEVICES=mlx5_0:1,mlx5_3:1,mlx5_2:1,mlx5_1:1
export UCX_TLS=rc,cuda_copy,cuda_ipc
,gdr_copy
dask-scheduler --protocol ucx --interface ib0
dask-cuda-worker ucx://10.0.0.50:8786
Rank 3 received: [0, 1, 2, 4, ...]
Clique size: 16
final_size: 16
distributed.comm.ucx.cuda_copy
distributed.rmm.pool-size
UCX_TLS=all
DASK_DISTRIBUTED__COMM__UCX__CREATE_CUDA_CONTEXT=True
UCX_MAX_RNDV_RAILS=1
UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES=cuda
UCX_SOCKADDR_TLS_PRIORITY
RAPIDS_NO_INITIALIZE=1
distributed.worker.multiprocessing-method
UCX_IB_FORK_INIT=n
PTXCOMPILER_CHECK_NUMBA_CODEGEN_PATCH_NEEDED=0
distributed.comm.ucx.connect-timeout
""".strip().splitlines()


@pytest.mark.parametrize("value", VALUES)
def test_each_value_of_the_guides_is_there(value):
    assert value in PAGE


def test_each_row_says_something():
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and "---" not in line]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    assert len(rows) > 60
    assert [row for row in cells if len(row) not in (2, 3) or not all(row[1:])] == []


def test_each_command_line_exists():
    lines = [span for span in SPANS if span.startswith("nodeprep ")]
    assert len(lines) >= 8
    for line in lines:
        verb, *words = shlex.split(line)[1:]
        assert verb in VERBS, line
        known = help_options(verb)
        text = re.sub(r"^  --.*", "", run(NODEPREP, verb, "--help").stdout, flags=re.M)
        while words:
            word = words.pop(0)
            if not word.startswith("--"):
                # a rung, a noun
                assert re.search(r"\b%s\b" % re.escape(word), text), line
                continue
            assert word[2:] in known, line
            if known[word[2:]]:
                words.pop(0)


def test_options_that_stand_alone_exist():
    ours = {name for verb in VERBS for name in help_options(verb)}
    # those of Dask and of UCX's configure
    theirs = {"multiprocessing-method", "scheduler-file", "net-devices", "interface",
              "rmm-pool-size", "enable-tcp-over-ucx"}
    alone = {span[2:].split()[0].split("=")[0] for span in SPANS if span.startswith("--")}
    assert {"user", "ucx-prefix"} <= alone
    assert alone - theirs - ours == set()


def test_each_key_exists():
    found = {tuple(re.fullmatch(r"\[(\w+)(?: \w+)?\] (\w+)", span).groups())
             for span in SPANS if span.startswith("[")}
    assert len(found) >= 20
    assert found - table_keys() == set()


def test_each_code_exists():
    families = {code.split(".")[0] for code in page_codes()} - {"internal"}
    codes = {span for span in SPANS
             if re.fullmatch(r"(%s)\.[a-z_]+" % "|".join(families), span)}
    assert len(codes) >= 20
    assert codes - set(page_codes()) == set()


def test_each_file_and_unit_exists():
    sources = "".join(open(path, encoding="utf-8").read() for path in SOURCES)
    files = {span for span in SPANS if re.match(r"/(etc|dev)/", span)}
    assert len(files) >= 5
    assert [path for path in files if path not in sources] == []
    units = {span.split("@")[0] for span in SPANS if span.startswith("nodeprep-dask-")}
    files = [name for name in os.listdir(ROOT + "/etc/systemd") if name.startswith("nodeprep-dask-")]
    assert units == {re.sub("@?.service", "", name) for name in files}
    for name in ("RAPIDS_NO_INITIALIZE=1", "PTXCOMPILER_CHECK_NUMBA_CODEGEN_PATCH_NEEDED=0"):
        assert all(name in read("etc", "systemd", unit) for unit in files)


def test_the_profile_of_the_guide(guide):
    """The two lines that the page shows are those that the node gets."""
    guide.write(CONF, "[ucx]\nprofile = guide\n")
    guide.apply()
    shown = re.findall(r"^    (UCX_\w+=.*)$", PAGE, re.M)
    written = guide.read("/etc/nodeprep/ucx.env").decode()
    assert [line for line in written.splitlines() if not line.startswith("#")] == shown
    assert len(shown) == 2


def key_rows():
    return re.findall(r"^\| `(distributed\.[\w.-]+)` \| `(distributed-ucxx\.[\w.-]+)` "
                      r"\| `(DASK_\w+)` \|$", PAGE, re.M)


def value_of(tree, key):
    for part in key.split("."):
        tree = tree[part]
    return tree


def test_old_and_new_keys(node):
    """Both are in the file, with one value; each variable is the one that Dask reads."""
    one = node("dgx.ini")
    one.write(CONF, "[netdev ib0]\naddress = %s\n[dask]\nenabled = yes\nnvlink = yes\n"
              "rmm_pool_size = 1 GiB\nconnect_timeout = 60\n" % IP)
    one.json("apply", "--no-selftest", "--timeout", "0")
    tree = yaml.safe_load(one.read("/etc/dask/nodeprep.yaml"))
    rows = key_rows()
    assert {new for _, new, _ in rows} >= {"distributed-ucxx." + name
                                           for name in tree["distributed-ucxx"] if name != "rmm"}
    assert ("distributed.rmm.pool-size", "distributed-ucxx.rmm.pool-size",
            "DASK_DISTRIBUTED_UCXX__RMM__POOL_SIZE") in rows
    for old, new, variable in rows:
        assert value_of(tree, old) == value_of(tree, new), old
        read_as = collect_env({variable: "1"})
        for part in new.split("."):
            read_as = read_as[canonical_name(part, read_as)]
        assert read_as == 1, variable
    assert value_of(tree, "distributed.worker.multiprocessing-method") == "forkserver"
