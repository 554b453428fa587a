# SPDX-License-Identifier: MIT
"""tests/bench/gpus over FAKE libraries and a FAKE nvidia-smi: its tables have what the programs
said. Fakes prove nothing of a GPU."""

import os
import shutil
import subprocess

import pytest
from helpers import BUILD, PYTHON, ROOT

SMI = r"""#!/bin/sh
case $1 in
topo) printf '\t\033[4mGPU0\tGPU1\tCPU Affinity\033[0m\nGPU0\t X \tNV18\t0\nGPU1\tNV18\t X \t0\n\nLegend:\n' ;;
*) printf '0, 00000000:17:00.0, Fake GPU 0, 580.1\n1, 00000000:18:00.0, Fake GPU 1, 580.1\n' ;;
esac
"""


def table(text, first):
    """The rows of the table whose heading begins so."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("| %s |" % first))
    rows = []
    for line in lines[at + 2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_tables(tmp_path):
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not there: make deps installs it")
    os.makedirs(tmp_path / "bin")
    with open(tmp_path / "bin" / "nvidia-smi", "w", encoding="ascii") as file:
        file.write(SMI)
    os.chmod(tmp_path / "bin" / "nvidia-smi", 0o755)
    shutil.copytree(os.path.join(BUILD, "asan", "fake"), tmp_path / "lib",
                    ignore=shutil.ignore_patterns("gdr"))
    env = {"PATH": "%s/bin:%s" % (tmp_path, os.environ["PATH"]), "HOME": "/root",
           "FAKE_CUDA": "gpus=2", "FAKE_NVML": "gpus=2", "UCX_TLS": "sm,self"}
    done = subprocess.run([PYTHON, os.path.join(ROOT, "tests", "bench", "gpus"), "--turns", "1",
                           "--rungs", "cuda,cuda_copy", "--ucx-prefix", str(tmp_path), BUILD],
                          env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done
    assert done.stdout.startswith("## 2 x Fake GPU 0\n") and "NCCL 2.28.3" in done.stdout
    rows = table(done.stdout, "rung")
    assert [row[:2] for row in rows] == [["cuda", "1"], ["cuda", "2"], ["cuda_copy", "1"],
                                         ["cuda_copy", "2"]]
    for row in rows[:2]:
        assert row[5].startswith("64 MiB: ") and row[6] == "ok" and float(row[2]) > 0
    for row in rows[2:]:  # Debian's UCX has no CUDA
        assert row[5] == "" and row[6].startswith("fail: UCX"), row
    rows = table(done.stdout, "ranks")
    assert [row[0] for row in rows] == ["1", "2"]
    for row in rows:
        assert row[2] == "nccl" and row[4] == "not here" and row[6] == "ready", row
        assert row[3].startswith("64 MiB: "), row
    assert "4 cells of GPUs" in done.stdout
