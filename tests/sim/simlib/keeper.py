# SPDX-License-Identifier: MIT
"""Nodes that live on between commands: start, exec, set and stop.

The node's process 1 is the keeper. It holds the namespaces and the TAP
devices, reaps, and takes changes over a socket. A small file in the state
folder says which process it is.
"""

import json
import os
import re
import select
import signal
import socket
import stat

from . import kernel, runner
from .errors import (EXIT_SETUP, EXIT_USAGE, SetupError, UsageError, nearest,
                     say)
from .live import apply_changes
from .world import may_bind

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")


def state_folder():
    """SIMNODE_STATE, or a folder of the user's own that is made if needed."""
    path = os.environ.get("SIMNODE_STATE")
    if not path:
        uid = os.getuid()
        if uid == 0 and os.access("/run", os.W_OK):
            path = "/run/simnode"
        else:
            path = "/tmp/simnode-%d" % uid
    try:
        os.makedirs(path, 0o700, exist_ok=True)
    except OSError as error:
        raise SetupError("cannot make %s: %s" % (path, error.strerror)) \
            from error
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise SetupError("%s is not a folder of yours" % path)
    return path


def state_path(name, suffix):
    if not NAME.match(name):
        raise UsageError("%r is no name for a node (letters, digits, - _ .)"
                         % name)
    return "%s/%s.%s" % (state_folder(), name, suffix)


def start_time(pid):
    """When a process started, in clock ticks; None when it is gone."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8",
                  errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def load(name):
    """The state of a running node, or None."""
    try:
        with open(state_path(name, "json"), encoding="utf-8") as file:
            state = json.load(file)
    except (FileNotFoundError, ValueError):
        return None
    if start_time(state["pid"]) != state["start_time"]:
        return None
    return state


def names():
    found = []
    for entry in sorted(os.listdir(state_folder())):
        name, dot, suffix = entry.rpartition(".")
        if dot and suffix == "json" and load(name):
            found.append(name)
    return found


def find(name):
    state = load(name)
    if state is None:
        raise SetupError("no node %s is running%s" % (name,
                                                      nearest(name, names())))
    return state


def remove_state(name):
    for suffix in ("json", "sock"):
        try:
            os.unlink(state_path(name, suffix))
        except FileNotFoundError:
            pass


def start(name, world):
    if load(name) is not None:
        raise SetupError("a node %s is already running" % name)
    remove_state(name)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(state_path(name, "sock"))
    os.chmod(state_path(name, "sock"), 0o600)
    listener.listen(16)
    result_read, result_write = os.pipe()
    runner.flush()
    middle = os.fork()
    if middle == 0:
        os.close(result_read)
        runner.guarded(make_keeper, world, listener, result_write)
    os.close(result_write)
    listener.close()
    with os.fdopen(result_read) as pipe:
        result = pipe.read()
    code = runner.exit_code(os.waitpid(middle, 0)[1])
    if code or not result:
        remove_state(name)
        return code or EXIT_SETUP
    state = json.loads(result)
    state["start_time"] = start_time(state["pid"])
    with open(state_path(name, "json"), "w", encoding="utf-8") as file:
        json.dump(state, file)
    return 0


def make_keeper(world, listener, result):
    """Waits until the keeper stands and tells its process id; exit code."""
    os.setsid()
    unprivileged = runner.enter_namespaces()
    ready_read, ready_write = os.pipe()
    first = os.fork()
    if first == 0:
        runner.guarded(keep, world, unprivileged, listener, ready_write)
    os.close(ready_write)
    if os.read(ready_read, 1):
        os.write(result, json.dumps({
            "pid": first, "unprivileged": unprivileged}).encode())
        return 0
    return runner.exit_code(os.waitpid(first, 0)[1]) or EXIT_SETUP


def keep(world, unprivileged, listener, ready):
    """The keeper: makes the node, then answers until it is killed."""
    wanted = {0, 1, 2, listener.fileno(), ready}
    for text in os.listdir("/proc/self/fd"):
        if int(text) not in wanted:
            try:
                os.close(int(text))
            except OSError:
                pass
    world.build(unprivileged)
    os.chdir("/")
    # The node is entered through this process, by its owner too.
    kernel.allow_tracing()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    null = os.open("/dev/null", os.O_RDWR)
    os.write(ready, b"1")
    os.close(ready)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    while True:
        client = listener.accept()[0]
        with client:
            try:
                client.settimeout(120)
                answer(world, client)
            except (OSError, ValueError):
                continue


def answer(world, client):
    with client.makefile("r", encoding="utf-8") as reader:
        request = json.loads(reader.readline())
    reply = {}
    try:
        apply_changes(world, request["set"])
    except UsageError as error:
        reply = {"error": str(error), "code": EXIT_USAGE}
    except SetupError as error:
        reply = {"error": str(error), "code": EXIT_SETUP}
    except OSError as error:
        reply = {"error": "%s: %s" % (error.filename, error.strerror),
                 "code": EXIT_SETUP}
    except Exception as error:  # pylint: disable=broad-except
        # The node must outlive a mistake in here.
        reply = {"error": "internal error: %r" % error, "code": EXIT_SETUP}
    client.sendall(json.dumps(reply).encode() + b"\n")


def assign(name, changes):
    find(name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(120)
        try:
            client.connect(state_path(name, "sock"))
            client.sendall(json.dumps({"set": changes}).encode() + b"\n")
            with client.makefile("r", encoding="utf-8") as reader:
                reply = json.loads(reader.readline())
        except (OSError, ValueError) as error:
            raise SetupError("node %s does not answer: %s" % (name, error)) \
                from error
    if "error" in reply:
        say(reply["error"])
        return reply["code"]
    return 0


def execute(name, argv, user):
    state = find(name)
    command = runner.Command(argv, user, os.getcwd())
    runner.flush()
    mask = runner.block_signals()
    tree = None
    if may_bind(command.cwd):
        try:
            tree = kernel.open_tree(command.cwd)
        except OSError:
            pass
    here = os.stat(".")
    flags = runner.NAMESPACES
    if state["unprivileged"]:
        flags |= kernel.CLONE_NEWUSER
    try:
        fd = os.pidfd_open(state["pid"])
        root = os.open("/proc/%d/root" % state["pid"], os.O_PATH | os.O_DIRECTORY)
        kernel.setns(fd, flags)
        os.close(fd)
        # entering leads to the root of the mount namespace; below a chroot the
        # node's root is another
        os.fchdir(root)
        os.chroot(".")
        os.close(root)
    except OSError as error:
        raise SetupError("cannot enter node %s: %s" % (name, error.strerror)) \
            from error
    if tree is not None:
        share_cwd(command.cwd, tree, here)
    pid = runner.spawn(command, mask, with_parent=True)
    return runner.wait_for(pid, mask)


def share_cwd(path, tree, here):
    """Makes the caller's directory the node's, too, unless it is already."""
    try:
        there = os.stat(path)
        same = (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
        readonly = os.statvfs(path).f_flag & os.ST_RDONLY
        if same and not readonly:
            return
    except OSError:
        pass
    try:
        os.makedirs(path, exist_ok=True)
        kernel.move_mount(tree, path)
    except OSError as error:
        raise SetupError("cannot share %s with the node (%s): give --bind "
                         "DIR when it starts" % (path, error.strerror)) \
            from error
    finally:
        os.close(tree)


def stop(name):
    state = find(name)
    fd = os.pidfd_open(state["pid"])
    signal.pidfd_send_signal(fd, signal.SIGKILL)
    select.select([fd], [], [], 10)
    os.close(fd)
    remove_state(name)
    return 0
