# SPDX-License-Identifier: MIT
"""The command line of simnode."""

import os

from . import errors
from .errors import SetupError, UsageError, nearest, say

USAGE = """\
usage: simnode [OPTION...] NODE.ini -- COMMAND...
       simnode start [OPTION...] NAME NODE.ini
       simnode exec [--user NAME] NAME -- COMMAND...
       simnode set NAME KEY=VALUE...
       simnode stop NAME
       simnode list
       simnode check [OPTION...] NODE.ini

A node is a set of private namespaces that look like the machine which NODE.ini
describes. tests/sim/README.md explains its sections and keys.

  --overlay FILE.ini           sections and keys that are laid over NODE.ini
  --set SECTION.KEY=VALUE      one key: --set "port mlx5_0:1.state=INIT"
  --without "SECTION"          leaves a section out: --without "netdev ib0"
  --bind DIR                   keeps a directory of the host visible, writable
  --user NAME                  runs the command as a user of the node
  --quiet                      no warnings about what has to be left out
  --help
"""

WITH_VALUE = ("--overlay", "--set", "--without", "--bind", "--user")
VERBS = ("start", "exec", "set", "stop", "list", "check")


class Options:
    def __init__(self, verb, argv):
        self.verb = verb
        self.changes = []
        self.binds = []
        self.user = None
        self.words = []
        self.command = None
        self.read(list(argv))

    def read(self, argv):
        while argv:
            word = argv.pop(0)
            if word == "--":
                self.command = argv
                return
            name, equals, value = word.partition("=")
            if name in WITH_VALUE:
                if not equals:
                    if not argv:
                        raise UsageError("%s needs a value" % name)
                    value = argv.pop(0)
                self.option(name, value)
            elif word == "--quiet":
                errors.quiet = True
            elif word.startswith("-") and len(word) > 1:
                raise UsageError("unknown option %s%s" % (
                    word, nearest(word, WITH_VALUE + ("--quiet",))))
            else:
                self.words.append(word)

    def option(self, name, value):
        allowed = {"--user": ("run", "exec")}.get(
            name, ("run", "start", "check"))
        if self.verb not in allowed:
            raise UsageError("%s has no option %s" % (self.verb, name))
        if name == "--bind":
            self.binds.append(value)
        elif name == "--user":
            self.user = value
        else:
            self.changes.append((name, value))

    def expect(self, *names):
        if len(self.words) != len(names):
            raise UsageError("%s takes %s" % (
                "simnode" if self.verb == "run" else self.verb,
                " ".join(names)))
        return self.words

    def expect_command(self):
        if not self.command:
            raise UsageError("write -- COMMAND... after the node")
        return self.command


def load_node(path, changes):
    from .inifile import NodeFile
    from .model import Node
    ini = NodeFile()
    ini.load(path)
    for name, value in changes:
        if name == "--overlay":
            ini.load(value)
        elif name == "--set":
            ini.assign(value, "--set " + value)
        else:
            ini.remove(value, "--without " + value)
    return Node(ini)


def make_world(options, path):
    from .files import read_sources
    from .world import World, default_binds
    node = load_node(path, options.changes)
    return World(node, default_binds(options.binds), read_sources(node))


def run(options):
    from . import runner
    path, = options.expect("NODE.ini")
    argv = options.expect_command()
    world = make_world(options, path)
    command = runner.Command(argv, options.user, os.getcwd())
    return runner.run_once(world.build, command)


def start(options):
    from . import keeper
    name, path = options.expect("NAME", "NODE.ini")
    return keeper.start(name, make_world(options, path))


def execute(options):
    from . import keeper
    name, = options.expect("NAME")
    return keeper.execute(name, options.expect_command(), options.user)


def assign(options):
    from . import keeper
    if len(options.words) < 2:
        raise UsageError("set takes NAME KEY=VALUE...")
    return keeper.assign(options.words[0], options.words[1:])


def stop(options):
    from . import keeper
    name, = options.expect("NAME")
    return keeper.stop(name)


def list_nodes(options):
    from . import keeper
    options.expect()
    for name in keeper.names():
        print(name)
    return 0


def check(options):
    path, = options.expect("NODE.ini")
    load_node(path, options.changes)
    return 0


def main(argv):
    if not argv or argv[0] in ("--help", "-h", "help"):
        print(USAGE, end="")
        return 0 if argv else errors.EXIT_USAGE
    verbs = {"run": run, "start": start, "exec": execute, "set": assign,
             "stop": stop, "list": list_nodes, "check": check}
    verb = argv[0] if argv[0] in VERBS else "run"
    try:
        options = Options(verb, argv if verb == "run" else argv[1:])
        return verbs[verb](options)
    except UsageError as error:
        say(str(error))
        return errors.EXIT_USAGE
    except SetupError as error:
        say(str(error))
        return errors.EXIT_SETUP
