# SPDX-License-Identifier: MIT
"""What cluster-test runs on the workers. These functions are sent there by value, so that
nothing of ours has to be installed on them; each brings its imports along."""

import os
import sys

import distributed


def reason(why):
    """The words of an exception and of what it came from: Dask tells of a timeout alone."""
    texts = []
    while why is not None and len(texts) < 4:
        text = "%s: %s" % (type(why).__name__, " ".join(str(why).split()))
        texts += [text[:200]] if text[:200] not in texts else []
        why = why.__cause__
    return "; ".join(texts)


def guarded(function, *args):
    """The result of function(*args) and None, or None and why it failed: not each exception can
    be sent."""
    try:
        return function(*args), None
    except Exception as why:  # pylint: disable=broad-except
        return None, reason(why)


def look():
    """Where the worker runs and what it has."""
    import importlib.util
    import platform
    import socket
    found = {"host": socket.gethostname(), "raft_error": None,
             "versions": {"python": platform.python_version(),
                          "distributed": distributed.__version__},
             "env": {name: value for name, value in sorted(os.environ.items()) if
                     name.startswith(("UCX_", "NCCL_")) or name == "CUDA_VISIBLE_DEVICES"}}
    for name in ("dask_cuda", "ucxx", "distributed_ucxx", "ucp", "raft_dask"):
        try:
            if importlib.util.find_spec(name) is None:
                continue
            module = importlib.import_module(name)
            if name == "raft_dask":
                importlib.import_module("raft_dask.common")
            found["versions"][name] = getattr(module, "__version__", "of unknown version")
        except Exception as why:  # pylint: disable=broad-except
            found["versions"][name] = "cannot be imported"
            if name == "raft_dask":
                found["raft_error"] = reason(why)
    return found


def payload(sender, receiver, trial, size):
    import hashlib
    return hashlib.shake_128(b"%d %d %d" % (sender, receiver, trial)).digest(size)


def prepare(me, mine):
    """The worker takes messages from now on."""
    worker = distributed.get_worker()
    got = {}

    # the name of the first parameter tells Dask what to give
    async def take(comm, sender=None, trial=None, data=None, one=None):  # pylint: disable=unused-argument
        data = bytes(data)
        want = payload(sender, me, trial, len(data))
        wrong = None
        if data != want:
            wrong = next(i for i, (a, b) in enumerate(zip(data, want)) if a != b)
        got.setdefault(trial, {})[sender] = [len(data), wrong, one]
        return {"len": len(data), "wrong": wrong}
    worker.handlers[mine] = take
    setattr(worker, mine, got)


def send(me, addresses, mine, trial, size, limit):
    """To all others, some at once; what went wrong, as [[rank, why], ...]."""
    import asyncio
    from distributed.protocol import to_serialize
    worker = distributed.get_worker()

    async def one(rank, places, end):
        async with places:
            data = to_serialize(payload(me, rank, trial, size))
            call = getattr(worker.rpc(addresses[rank]), mine)
            try:
                answer = await asyncio.wait_for(
                    call(sender=me, trial=trial, one=1, data=data),
                    max(end - worker.loop.time(), 0.1))
            except asyncio.TimeoutError:
                return [rank, "no answer after %.0f s" % limit]
            except Exception as why:  # pylint: disable=broad-except
                return [rank, reason(why)]
        if answer["len"] != size:
            return [rank, "%d bytes arrived in place of %d" % (answer["len"], size)]
        return [rank, "byte %d is wrong" % answer["wrong"]] if answer["wrong"] is not None else None

    async def everyone():
        # so many messages in memory at a time
        places, end = asyncio.Semaphore(16), worker.loop.time() + limit
        return await asyncio.gather(*(one(r, places, end) for r in range(len(addresses))
                                      if r != me))
    done = asyncio.run_coroutine_threadsafe(everyone(), worker.loop.asyncio_loop)
    return [each for each in done.result(limit + 30) if each]


def received(mine, trial, size):
    """The ranks whose message is here and right, and the sum of the ones with our own."""
    got = getattr(distributed.get_worker(), mine).get(trial, {})
    right = sorted(rank for rank, (length, wrong, _) in got.items()
                   if length == size and wrong is None)
    return right, 1 + sum(one for _, _, one in got.values())


def forget(mine):
    worker = distributed.get_worker()
    worker.handlers.pop(mine, None)
    if hasattr(worker, mine):
        delattr(worker, mine)


def raft_test(session, name, argument):
    """One of raft_dask's own tests: rank, its verdict, and what it printed."""
    import tempfile
    import raft_dask.common
    from raft_dask.common.comms import get_raft_comm_state
    worker = distributed.get_worker()
    handle = raft_dask.common.local_handle(session, dask_worker=worker)
    rank = get_raft_comm_state(session, worker)["wid"]
    # its C++ prints the lists to the worker's stdout and returns less than they say
    sys.stdout.flush()
    with tempfile.TemporaryFile() as file:
        stdout = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            verdict = getattr(raft_dask.common, name)(handle, argument)
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)
        file.seek(0)
        text = file.read()
    os.write(1, text)
    return rank, bool(verdict), text.decode("utf-8", "replace")
