# SPDX-License-Identifier: MIT
"""What the rungs' engine measures beside the native tools: same machine, same pair of
processes, same transport and device, turn by turn, the median of the ratios of the turns.

UCX: build/ucp_pair (the engine between two processes, as the rung cuda_ipc runs it) against
ucx_perftest, which is a server and a client. Latency is half a round trip, the median of
many, in both. Neither is pinned.
"""

import os
import shutil
import socket
import statistics
import subprocess
import sys
import time

TURNS = 9
WAYS = (  # id, UCX_TLS, UCX_NET_DEVICES, what may carry it
    ("tcp_lo", "tcp", "lo", ("tcp",)),
    ("shared_memory", "sm", "all", ("posix", "sysv", "cma", "xpmem", "knem")),
)
LATENCY_BYTES = 8
LEFT_OUT = (
    "ucx self: it connects a worker with itself alone, and no rung does that",
    "ucx rc, verbs: no HCA here (tests/vm/scenarios/verbs-perftest.sh compares there)",
    "nccl: no GPU here",
)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def figures(argv, **options):
    r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       timeout=120, check=False, **options)
    if r.returncode != 0:
        sys.exit("bench: %s: %s" % (" ".join(argv), r.stderr.strip()[-300:]))
    return r.stdout.splitlines()


def perftest(tls, device, test, size, column, iterations):
    """One figure of ucx_perftest's last line."""
    port = free_port()
    argv = ["ucx_perftest", "-t", test, "-s", str(size), "-n", str(iterations), "-w", "1000",
            "-p", str(port), "-f", "-v"]
    env = dict(os.environ, UCX_TLS=tls, UCX_NET_DEVICES=device)
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as server:
        try:
            wait_for_listener(port)
            lines = figures([*argv, "127.0.0.1"], env=env)
        finally:
            server.terminate()
    head, row = (line.split(",") for line in lines[-2:])
    return float(row[head.index(column)])


def wait_for_listener(port):
    wanted = "%04X" % port
    for _ in range(400):
        with open("/proc/net/tcp", encoding="ascii") as table:
            # local address and port, state LISTEN
            if any(line.split()[1].endswith(":" + wanted) and line.split()[3] == "0A"
                   for line in table.readlines()[1:]):
                return
        time.sleep(0.025)
    sys.exit("bench: ucx_perftest does not listen")


def pair(build, way, size):
    """Half a round trip in microseconds, and 10^6 bytes a second."""
    _, tls, device, carriers = way
    return [float(x) for x in figures([os.path.join(build, "ucp_pair"), tls, device, str(size),
                                       *carriers])[-1].split()]


def rows(build):
    """Rows of the report, and what is left out."""
    if not shutil.which("ucx_perftest"):
        return [], ["ucx: ucx_perftest is not installed", *LEFT_OUT]
    out = []
    for way in WAYS:
        ratios = []
        for _ in range(TURNS):
            ours = pair(build, way, LATENCY_BYTES)[0]
            ratios.append(ours / perftest(*way[1:3], "tag_lat", LATENCY_BYTES,
                                          "50.0_percentile_lat", 10000))
        value = statistics.median(ratios)
        out.append({"id": "ucx_%s_latency" % way[0], "value": round(value, 4), "bar": 1.05,
                    "ok": value <= 1.05})
    return out, list(LEFT_OUT)


if __name__ == "__main__":
    for one in rows(sys.argv[1])[0]:
        print(one)
