# SPDX-License-Identifier: MIT
"""helpers_completion.py SHELL FILE LINE...: what the real SHELL, interactive on a terminal,
offers for each LINE when Tab is pressed at its end, and what the line is then (fish: null).
Prints a JSON list of pairs."""

import json
import os
import pty
import subprocess
import sys
import tempfile
import threading
import time

# the function of FILE is called by one that writes down what it offered
BASH = r"""
PS1='$ '
bind 'set bell-style none'
source "$FILE"
noted() {
	_nodeprep "$@"
	printf '%s\n' "${COMPREPLY[@]}" >>"$OUT"
}
bind -x '"\C-n": printf "#LINE %s\n#END\n" "$READLINE_LINE" >>"$OUT"'
eval "$(complete -p nodeprep | sed 's/-F _nodeprep/-F noted/')"
"""
# compadd is asked twice: for what matches, and to go on as it was told
ZSH = r"""
PS1='$ '
fpath=(${FILE:h} $fpath)
autoload -Uz compinit
compinit -D -u
unsetopt beep list_beep
autoload +X -Uz _nodeprep
compadd() {
	local -a offered options=(${@[1,(i)-(|-)]})
	if [[ -z ${(M)options:#-[OAD]*} ]]; then
		builtin compadd -O offered "$@"
		print -rl -- $offered >>$OUT
	fi
	builtin compadd "$@"
}
LISTMAX=9999
note-line() { print -rl -- "#LINE $BUFFER" '#END' >>$OUT }
zle -N note-line
bindkey '^N' note-line
"""
ARGV = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


class Terminal:
    def __init__(self, shell, file, folder):
        self.out = os.path.join(folder, "out")
        rc = os.path.join(folder, "rc")
        with open(rc, "w", encoding="utf-8") as stream:
            stream.write({"bash": BASH, "zsh": ZSH}[shell])
        with open(self.out, "w", encoding="utf-8"):
            pass
        self.master, slave = pty.openpty()
        env = dict(os.environ, FILE=file, OUT=self.out, TERM="dumb", LC_ALL="C.UTF-8")
        # pylint: disable-next=consider-using-with
        self.shell = subprocess.Popen(ARGV[shell], stdin=slave, stdout=slave, stderr=slave, env=env,
                                      cwd=folder, start_new_session=True)
        os.close(slave)
        self.seen = b""
        threading.Thread(target=self.drain, daemon=True).start()
        self.send(". ./rc; echo '#END' >>$OUT\n")
        self.noted()

    def drain(self):
        while True:
            try:
                self.seen += os.read(self.master, 4096)
            except OSError:
                return

    def send(self, text):
        os.write(self.master, text.encode())

    def noted(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with open(self.out, encoding="utf-8") as stream:
                lines = stream.read().splitlines()
            if "#END" in lines:
                with open(self.out, "w", encoding="utf-8"):
                    pass
                return lines
            time.sleep(0.01)
        raise TimeoutError(self.seen.decode("utf-8", "replace"))

    def offered(self, line):
        # Tab; Ctrl-N notes the line; Ctrl-E and Ctrl-U kill it
        self.send(line + "\t\x0e")
        found = self.noted()
        self.send("\x05\x15")
        now, = [one[6:] for one in found if one.startswith("#LINE ")]
        return sorted({one for one in found if one and not one.startswith("#")}), now

    def close(self):
        self.shell.kill()
        self.shell.wait()


def fish(file, lines):
    found = []
    for line in lines:
        done = subprocess.run(["fish", "--no-config", "-c", "source $FILE; complete -C $LINE"],
                              env=dict(os.environ, FILE=file, LINE=line), text=True,
                              capture_output=True, check=True, timeout=60)
        assert not done.stderr, done.stderr
        found.append((sorted({offer.split("\t")[0] for offer in done.stdout.splitlines()}), None))
    return found


def main():
    shell, file, *lines = sys.argv[1:]
    if shell == "fish":
        print(json.dumps(fish(file, lines)))
        return
    with tempfile.TemporaryDirectory() as folder:
        terminal = Terminal(shell, file, folder)
        try:
            print(json.dumps([terminal.offered(line) for line in lines]))
        finally:
            terminal.close()


if __name__ == "__main__":
    main()
