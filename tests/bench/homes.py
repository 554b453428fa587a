# SPDX-License-Identifier: MIT
"""A thousand homes: nodeprep in one run against an admin's loop over the users.

The loop does what a careful admin does as root: become the user, look for the line, and
where it is missing write a file beside it and rename that over. The users' homes are
where the node's are, in memory: nodeprep syncs each file and the loop none."""

import os
import statistics
import subprocess
import time

COUNT = 1000
ROUNDS = 3
BAR = 0.2
USERS = [f"u{n:04d}" for n in range(COUNT)]
LINE = "NCCL_SOCKET_IFNAME=ib0"
LOOK = f'grep -qx {LINE} "$HOME/.nccl.conf"'
WRITE = f"""f=$HOME/.nccl.conf
test -L "$f" && exit 1
grep -qx {LINE} "$f" 2>/dev/null && exit 0
t=$(mktemp "$f.XXXXXX") || exit 1
{{ grep -v ^NCCL_SOCKET_IFNAME= "$f" 2>/dev/null; echo {LINE}; }} >"$t" &&
chmod 644 "$t" && mv "$t" "$f"
"""
AS_USER = 'for u in {users}; do su "$u" -s /bin/sh -c \'{job}\' || exit 1; done'
# root straight into homes that it trusts
AS_ROOT = 'for u in {users}; do (HOME=/home/$u; {job}) || exit 1; done'


def node_file(guide, path):
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"[node]\ninclude = {os.path.relpath(guide, os.path.dirname(path))}\n")
        out.writelines(f"[user {user}]\nuid = {20000 + n}\n" for n, user in enumerate(USERS))


def clear():
    for user in USERS:
        path = f"/home/{user}/.nccl.conf"
        if os.path.exists(path):
            os.unlink(path)


def seconds(argv):
    start = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def written():
    """Whoever ran: the same files of the same owners."""
    for n, user in enumerate(USERS):
        path = f"/home/{user}/.nccl.conf"
        with open(path, encoding="utf-8") as file:
            if file.read() != LINE + "\n" or os.stat(path).st_mode & 0o7777 != 0o644:
                raise SystemExit(f"bench: {path} is not as it must be")
        yield os.stat(path).st_uid == 20000 + n


def measure(write, look):
    """Seconds of a first write and of a look at what is written."""
    clear()
    first = seconds(write)
    owned = all(written())
    return first, seconds(look), owned


def rows(nodeprep):
    """Inside the node: the rows with a bar, and those that only stand beside them."""
    users = [word for user in USERS for word in ("--user", user)]
    ours = [[nodeprep, "apply", "--ip", "10.0.0.50/24", "--no-selftest", *users],
            [nodeprep, "check", "--ip", "10.0.0.50/24", *users]]
    loops = {how: [["/bin/sh", "-c", text.format(users=" ".join(USERS), job=job)]
                   for job in (WRITE, LOOK)] for how, text in
             (("su", AS_USER), ("root", AS_ROOT))}
    # the network is there already on both sides
    subprocess.run(ours[0], stdout=subprocess.DEVNULL, check=True)
    ratios = {}
    for _ in range(ROUNDS):
        mine = measure(*ours)
        for how, loop in loops.items():
            theirs = measure(*loop)
            if not mine[2] or theirs[2] != (how == "su"):
                raise SystemExit(f"bench: the files of {how} have another owner than expected")
            for what, a, b in zip(("write", "check"), mine, theirs):
                ratios.setdefault((what, how), []).append(a / b)
    middle = {key: statistics.median(values) for key, values in ratios.items()}
    return ([(f"homes_{COUNT}_{what}_vs_su_loop", middle[what, "su"], BAR)
             for what in ("check", "write")],
            [f"homes_{COUNT}_{what} against root's own loop, without su: {middle[what, 'root']:.3f}"
             for what in ("check", "write")])
