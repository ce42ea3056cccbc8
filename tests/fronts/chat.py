"""A conversation behind a real terminal, for the tests of it: ARGV as chat_test.py has it."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, sys.argv[1])
import terminal  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])
MODEL_SERVER = os.path.abspath(sys.argv[3])

ECHO = {"name": "echo", "turns": [{"text": "You said: ${prompt}.", "repeat": True}]}
WAITS = {"name": "waits", "turns": [
    {"calls": [{"tool": "bash", "arguments": {
        "command": "until test -e end; do sleep 0.05; done"}}]},
    {"text": "Still here.", "repeat": True}]}
CONFIG = {"agents": {"narrow": {"tools": ["read_file"], "model": "tiny-model"}},
          "models": {"house-model": {"context": 1000}}}


class Chat(terminal.Terminal):
    """A conversation with a recorded model, at its first prompt."""

    def __init__(self, script=None, *, options=(), config=None, environment=None, ready=True,
                 files=None, **others):
        files = {"r.json": json.dumps(script or ECHO), **(files or {})}
        if config is not None:
            files["config.json"] = json.dumps(config)
            options = (*options, "--config", "config.json")
        argv = (GLOVEBOX, *options)
        if script is not False:
            argv = (GLOVEBOX, "chat", "--model", "replay:r.json", *options)
        super().__init__(*argv, files=files, environment=environment, **others)
        if ready:
            self.prompt()

    def prompt(self):
        """Wait for the prompt: an empty row with a mark, and the cursor behind it."""
        self.begins()
        self.wait_until(lambda: self.row() == ">" and self.screen.column == 2, "at the prompt")

    def latest(self, text):
        """What stands below the last TEXT."""
        return self.screen.text().rpartition(text)[2]

    def begins_again(self, command):
        """Another conversation goes on after COMMAND."""
        self.wait_until(lambda: command in self.screen.text() and
                        "model replay" in self.latest(command), f"after {command!r}")

    def row(self):
        """The text of the cursor's row."""
        return "".join(cell[0] for cell in self.screen.lines[self.screen.row]).rstrip()

    def shows(self, text):
        self.wait_until(lambda: text in self.screen.text(), f"shown: {text!r}")

    def pause(self, seconds):
        """What a person does for SECONDS: nothing."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._read(until)

    def typed(self, keys, row, column):
        """After KEYS the cursor's row is ROW, the cursor in COLUMN."""
        self.type(keys)
        self.wait_until(lambda: self.row() == row and self.screen.column == column,
                        f"{row!r} with the cursor in {column}")

    def command(self, text, shown):
        """Send the command TEXT, whose answer has SHOWN, which may stand above as well."""
        # The row of the line is gone for a moment: one above is not this one.
        above = self.screen.text().count(f"> {text}\n")
        self.typed(text.encode(), f"> {text}", 2 + len(text))
        self.type(b"\r")
        self.wait_until(lambda: self.screen.text().count(f"> {text}\n") > above and
                        shown in self.latest(f"> {text}\n"), f"shown: {shown!r}")
        self.prompt()

    def says(self, prompt):
        """What the model was told, as it quotes it."""
        self.shows(f"You said: {prompt}.")
        self.prompt()

    def children(self, name):
        """Processes called NAME below this conversation."""
        found, parents = [], {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
                    text = file.read()
            except OSError:
                continue
            words = text[text.rindex(")") + 2:].split()
            parents[int(pid)] = int(words[1])
            if text[text.index("(") + 1:text.rindex(")")] == name and words[0] != "Z":
                found.append(int(pid))
        return [pid for pid in found if self._is_ours(pid, parents)]

    def _is_ours(self, pid, parents):
        while pid in parents:
            if pid == self.process.pid:
                return True
            pid = parents[pid]
        return False

    def wait_for_stop(self):
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def leave(self):
        self.type(b"\x04")
        assert self.end() == 0, self.screen.text()
        assert self.is_as_before()
        assert not self.screen.pastes_marked


def told(tty, *kinds):
    """The events of KINDS of the newest session."""
    done = subprocess.run([GLOVEBOX, "sessions", "export", "last"], cwd=tty.work, check=True,
                          env=tty.variables, stdout=subprocess.PIPE, text=True).stdout
    events = [json.loads(line) for line in done.splitlines()]
    return [event for event in events if event["event"] in kinds]


EDITS = {"name": "edits", "turns": [
    {"calls": [{"tool": "write_file", "arguments": {"path": "new.txt", "content": "one\ntwo\n"}}]},
    {"text": "Written."}, {"text": "You said: ${prompt}.", "repeat": True}]}


SUMS = {"name": "sums", "turns": [
    {"text": "One."}, {"text": "Two."}, {"text": "A short summary."},
    {"text": "You said: ${prompt}.", "repeat": True}]}


def asking(*commands):
    """A replay that runs COMMANDS, and the configuration that asks for each."""
    script = {"name": "asking", "turns": [
        *({"calls": [{"tool": "bash", "arguments": {"command": one}}]} for one in commands),
        {"text": "Done.", "repeat": True}]}
    return script, {"agents": {"default": {"commands": {"rules": [{"program": "true"}]},
                                           "ask": ["commands"]}}}


def made(tty, name):
    return os.path.exists(os.path.join(tty.work, name))


QUESTION = "land, diff, drop or later? [l/d/x/Enter]"
