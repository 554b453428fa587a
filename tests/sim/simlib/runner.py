# SPDX-License-Identifier: MIT
"""Processes: the namespaces, the node's first process, and the command."""

import os
import signal
import sys

from . import errors, kernel
from .errors import SetupError, say, warn

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT,
             signal.SIGUSR1, signal.SIGUSR2)
HANDLED = FORWARDED + (signal.SIGCHLD,)
SI_KERNEL = 0x80

NAMESPACES = (kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS
              | kernel.CLONE_NEWIPC | kernel.CLONE_NEWPID)


def enter_namespaces():
    """Moves this process; the next fork is the node's process 1.

    Returns whether the node is one of an unprivileged user.
    """
    if os.geteuid() == 0 and kernel.has_capability(kernel.CAP_SYS_ADMIN):
        try:
            kernel.unshare(NAMESPACES)
        except OSError as error:
            raise SetupError("cannot make namespaces: %s (in a container, "
                             "give it CAP_SYS_ADMIN)" % error) from error
        return False
    kernel.become_root_of_new_user_namespace(NAMESPACES)
    return True


def exit_code(status):
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status)
    return os.WEXITSTATUS(status)


def wait_for(pid, mask_before):
    """Passes signals on to pid until it ends; returns its exit code.

    SIGCHLD and FORWARDED are blocked. A signal that the terminal sent has
    reached the whole process group by itself and is not sent again.
    """
    while True:
        done, status = os.waitpid(-1, os.WNOHANG)
        while done:
            if done == pid:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)
                return exit_code(status)
            try:
                done, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
        info = signal.sigwaitinfo(HANDLED)
        if info.si_signo != signal.SIGCHLD and info.si_code != SI_KERNEL:
            try:
                os.kill(pid, info.si_signo)
            except ProcessLookupError:
                pass


def block_signals():
    return signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)


def flush():
    sys.stdout.flush()
    sys.stderr.flush()


def guarded(function, *arguments):
    """Runs function in a child and leaves with its result; never returns."""
    code = errors.EXIT_SETUP
    try:
        code = function(*arguments)
    except errors.UsageError as error:
        say(str(error))
        code = errors.EXIT_USAGE
    except SetupError as error:
        say(str(error))
    except OSError as error:
        say("cannot make the node: %s: %s" % (error.filename or "system call",
                                              error.strerror))
    except BaseException as error:  # pylint: disable=broad-except
        say("internal error: %s: %s" % (type(error).__name__, error))
        if os.environ.get("SIMNODE_DEBUG"):
            import traceback
            traceback.print_exc()
    finally:
        try:
            flush()
        finally:
            os._exit(code)


def run_once(build, command):
    """One-shot: build(unprivileged) makes the node, command runs in it.

    build returns whatever has to stay alive as long as the node.
    """
    flush()
    mask = block_signals()
    unprivileged = enter_namespaces()
    first = os.fork()
    if first == 0:
        guarded(first_process, build, unprivileged, command, mask)
    return wait_for(first, mask)


def first_process(build, unprivileged, command, mask):
    kernel.die_with_parent()
    kept = build(unprivileged)
    pid = spawn(command, mask)
    code = wait_for(pid, mask)
    del kept
    return code


def spawn(command, mask, with_parent=False):
    flush()
    pid = os.fork()
    if pid == 0:
        guarded(command.execute, mask, with_parent)
    return pid


class Command:
    """What to run in the node, as whom, and where."""

    def __init__(self, argv, user=None, cwd=None):
        self.argv = argv
        self.user = user
        self.cwd = cwd or "/"

    def execute(self, mask, with_parent):
        """Becomes the command; only failures return (an exit code)."""
        entry = find_user(self.user) if self.user else \
            find_user(None, os.getuid())
        env = environment(dict(os.environ), entry)
        for number in (kernel.CAP_SYS_MODULE, kernel.CAP_SYS_BOOT,
                       kernel.CAP_SYS_TIME):
            kernel.drop_capability(number)
        try:
            os.chdir(self.cwd)
        except OSError as error:
            warn("working directory %s: %s in the node, so the command starts "
                 "in / (see --bind)" % (self.cwd, error.strerror))
            os.chdir("/")
        if self.user:
            become(entry)
        if with_parent:
            kernel.die_with_parent()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        try:
            os.execvpe(self.argv[0], self.argv, env)
        except (FileNotFoundError, NotADirectoryError):
            say("%s: command not found in the node" % self.argv[0])
            return errors.EXIT_NOT_FOUND
        except OSError as error:
            say("%s: cannot execute: %s" % (self.argv[0], error.strerror))
            return errors.EXIT_CANNOT_EXEC


def find_user(name, uid=None):
    """The node's passwd entry as a list of its seven fields."""
    known = []
    with open("/etc/passwd", encoding="utf-8",
              errors="surrogateescape") as file:
        for text in file:
            fields = text.rstrip("\n").split(":")
            if len(fields) != 7:
                continue
            known.append(fields[0])
            if fields[0] == name or (name is None and fields[2] == str(uid)):
                return fields
    if name is None:
        return ["root", "x", str(uid), "0", "", "/root", "/bin/sh"]
    raise SetupError("the node has no user %s%s"
                     % (name, errors.nearest(name, known)))


def environment(env, entry):
    for name in list(env):
        if name.startswith("SUDO_"):
            del env[name]
    env.update({"HOME": entry[5], "USER": entry[0], "LOGNAME": entry[0],
                "SHELL": entry[6] or "/bin/sh"})
    return env


def become(entry):
    uid, gid = int(entry[2]), int(entry[3])
    groups = [gid]
    with open("/etc/group", encoding="utf-8",
              errors="surrogateescape") as file:
        for text in file:
            fields = text.rstrip("\n").split(":")
            if len(fields) == 4 and entry[0] in fields[3].split(","):
                groups.append(int(fields[2]))
    try:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise SetupError("cannot become %s: %s (an unprivileged node has only "
                         "its own user: run simnode as root)"
                         % (entry[0], error.strerror)) from error
