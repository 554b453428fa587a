# SPDX-License-Identifier: MIT
"""STAND-IN for raft_dask.common. It has the names, parameters and results of what
cluster-test calls (raft_dask 25 and 26), and moves nothing: what each rank "received" is made
up. NP_STANDIN_RAFT plays, as blank-separated words:
  init=R   rank R raises while its UCX endpoints are made
  no=R     the allreduce of rank R gives False
  lie=R    rank R receives from the wrong rank and gives True
  hang=R   the allreduce of rank R never ends
  broken   it cannot be imported"""

import os
import time

from .comms import Comms, get_raft_comm_state, plays

if plays("broken"):
    raise ImportError("libucxx.so: cannot open shared object file")

__all__ = ["Comms", "local_handle", "perform_test_comms_allreduce",
           "perform_test_comms_reducescatter", "perform_test_comms_send_recv"]


def local_handle(sessionId, dask_worker=None):  # pylint: disable=invalid-name
    state = get_raft_comm_state(sessionId, dask_worker)
    return state if "wid" in state else None


def say(text):
    # as C++ does, past sys.stdout
    os.write(1, text.encode())


def perform_test_comms_allreduce(handle, root):
    assert root == 0
    while plays("hang=%d" % handle["wid"]):
        time.sleep(1)
    say("Clique size: %d\nfinal_size: %d\n" % (handle["nworkers"], handle["nworkers"]))
    return not plays("no=%d" % handle["wid"])


def perform_test_comms_reducescatter(handle, root):
    return perform_test_comms_allreduce(handle, root)


def perform_test_comms_send_recv(handle, n_trials):
    assert handle["p2p"]
    others = [rank for rank in range(handle["nworkers"]) if rank != handle["wid"]]
    if plays("lie=%d" % handle["wid"]):
        others[0] = others[1]
    for trial in range(n_trials):
        if handle["wid"] == 0:
            say("=========================\nTrial %d\n" % trial)
        say("Rank %d received: %s\n" % (handle["wid"], others))
    return True
