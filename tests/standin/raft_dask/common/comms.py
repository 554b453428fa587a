# SPDX-License-Identifier: MIT
"""STAND-IN for raft_dask.common.comms: the communicator without UCX and NCCL."""

import os
import uuid


def plays(word):
    return word in os.environ.get("NP_STANDIN_RAFT", "").split()


def get_raft_comm_state(sessionId, state_object=None, dask_worker=None):  # pylint: disable=invalid-name
    where = state_object if state_object is not None else dask_worker
    if not hasattr(where, "_raft_comm_state"):
        where._raft_comm_state = {}
    return where._raft_comm_state.setdefault(sessionId, {})


def _init(session, ranks, p2p, dask_worker=None):
    rank = ranks[dask_worker.address]
    if p2p and plays("init=%d" % rank):
        raise RuntimeError("Unable to connect: Destination is unreachable")
    get_raft_comm_state(session, dask_worker).update(wid=rank, nworkers=len(ranks), p2p=p2p)


def _destroy(session, dask_worker=None):
    dask_worker._raft_comm_state.pop(session, None)


class Comms:
    def __init__(self, comms_p2p=False, client=None, verbose=False, streams_per_handle=0,
                 nccl_root_location="scheduler"):
        assert not verbose and streams_per_handle == 0 and nccl_root_location == "scheduler"
        self.client, self.comms_p2p = client, comms_p2p
        self.sessionId = uuid.uuid4().bytes  # pylint: disable=invalid-name
        self.nccl_initialized = self.ucx_initialized = False
        self.worker_addresses = []

    def __del__(self):
        if self.nccl_initialized or self.ucx_initialized:
            self.destroy()

    def init(self, workers=None):
        self.worker_addresses = list(workers)
        # its ranks are its own: here the other way round
        ranks = {address: rank for rank, address in enumerate(reversed(self.worker_addresses))}
        self.client.run(_init, self.sessionId, ranks, self.comms_p2p,
                        workers=self.worker_addresses, wait=True)
        self.nccl_initialized, self.ucx_initialized = True, self.comms_p2p

    def destroy(self):
        self.client.run(_destroy, self.sessionId, wait=True, workers=self.worker_addresses)
        self.nccl_initialized = self.ucx_initialized = False
