#!/usr/bin/env python3
"""Tab in a real bash, zsh and fish, with the files that are installed: verbs, options, names, and
the shell's own."""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402
import terminal  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])
COMPLETIONS = os.path.abspath(sys.argv[3])


class Shell(terminal.Terminal):
    """bash with our completion, at its prompt."""

    def __init__(self, files=None):
        start = (f"source {shlex.quote(COMPLETIONS)}/glovebox.bash; PS1='> '; "
                 "bind 'set completion-query-items 0'; "
                 "bind 'set page-completions off'; bind 'set enable-bracketed-paste off'\n")
        super().__init__("bash", "--noprofile", "--rcfile", "start", "-i", columns=120,
                         files={"start": start, **(files or {})},
                         environment={"PATH": f"{os.path.dirname(GLOVEBOX)}:{os.environ['PATH']}"})
        self.wait_until(lambda: self.row() == ">", "at the prompt")

    def row(self):
        return "".join(cell[0] for cell in self.screen.lines[self.screen.row]).rstrip()

    def becomes(self, keys, row):
        """KEYS typed on an empty line make ROW of it."""
        self.type(b"\x15" + keys)
        self.wait_until(lambda: self.row() == "> " + row, f"row: {row!r}")

    def lists(self, keys, *words):
        """Two Tabs behind KEYS list WORDS."""
        self.type(b"\x15\x0c" + keys + b"\t\t")
        self.wait_until(lambda: all(word in self.screen.text() for word in words), f"{words!r}")


@tap.case
def verbs_and_their_groups():
    with Shell() as tty:
        tty.becomes(b"glovebox sess\t", "glovebox sessions")
        tty.becomes(b"glovebox tool ca\t", "glovebox tool call")
        tty.becomes(b"glovebox -C . pol\texp\t", "glovebox -C . policy explain")
        tty.lists(b"glovebox patch ", "apply", "list", "reject", "show")
        tty.becomes(b"glovebox help sched\t", "glovebox help schedule")


@tap.case
def options_of_the_verb_that_stands_there():
    with Shell() as tty:
        tty.becomes(b"glovebox run --budget-t\t", "glovebox run --budget-tokens")
        tty.becomes(b"glovebox patch apply --dr\t", "glovebox patch apply --dry-run")
        tty.becomes(b"glovebox schedule list --b\tx", "glovebox schedule list --bx")
        # What follows the program of exec is that program's.
        tty.becomes(b"glovebox exec -- ls --work\tx", "glovebox exec -- ls --workx")


@tap.case
def names_that_the_program_knows():
    config = '{"agents": {"mechanic": {}}, "models": {"house-model": {"context": 1000}}}'
    with Shell() as tty:
        os.makedirs(os.path.join(tty.home, ".config", "glovebox"))
        place = os.path.join(tty.home, ".config", "glovebox", "config.json")
        with open(place, "w", encoding="utf-8") as file:
            file.write(config)
        os.chmod(place, 0o600)
        tty.becomes(b"glovebox run --agent rev\t", "glovebox run --agent reviewer")
        tty.becomes(b"glovebox run --agent=mec\t", "glovebox run --agent=mechanic")
        tty.becomes(b"glovebox run -m house\t", "glovebox run -m house-model")
        tty.becomes(b"glovebox agents show orch\t", "glovebox agents show orchestrator")
        tty.becomes(b"glovebox tool call read_f\t", "glovebox tool call read_file")
        result = subprocess.run([GLOVEBOX, "run", "--model", "replay", "--json", "go"], cwd=tty.work,
                                env=tty.variables, capture_output=True, text=True, check=True)
        session = result.stdout.split('"session":"')[1][:12]
        tty.becomes(b"glovebox sessions show " + session[:6].encode() + b"\t",
                    "glovebox sessions show " + session)
        tty.becomes(b"glovebox run --resume la\t", "glovebox run --resume last")


@tap.case
def paths_are_the_shells_own():
    with Shell(files={"settings.json": "{}"}) as tty:
        tty.becomes(b"glovebox run --config sett\t", "glovebox run --config settings.json")


def answers(*words, **options):
    told = subprocess.run([GLOVEBOX, "complete", "--", *words], capture_output=True, text=True,
                          check=True, **options).stdout
    return [line.split("\t")[0] for line in told.splitlines()]


@tap.case
def values_of_which_there_are_few():
    assert answers("mcp", "--install", "c") == ["claude", "codex", "cursor"]
    assert answers("run", "--ask", "") == ["commands", "network", "read", "write"]
    assert answers("run", "--minimum-level=") == [f"--minimum-level=L{n}" for n in (3, 2, 0)]
    assert answers("help", "tool", "c") == ["call"]
    assert answers("complete", "--script", "") == ["bash", "fish", "zsh"]


@tap.case
def schedules_by_their_numbers():
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_STATE_HOME": home,
                       "GLOVEBOX_MODEL": "replay"}
        subprocess.run([GLOVEBOX, "schedule", "add", "--when", "0 9 * * *", "look"], cwd=home,
                       env=environment, stdout=subprocess.DEVNULL, check=True)
        for verb in ("approve", "enable", "disable", "remove"):
            assert answers("schedule", verb, "", env=environment) == ["1"], verb
        # A word that is no number of a schedule is not made to look like one.
        assert answers("schedule", "approve", "1", "", env=environment) == []


@tap.case
def the_program_prints_what_each_shell_reads():
    for shell in ("bash", "fish", "zsh"):
        told = tap.run([GLOVEBOX, "complete", "--script", shell])
        with open(f"{COMPLETIONS}/glovebox.{shell}", encoding="utf-8") as file:
            assert told.stdout == file.read(), shell
    told = tap.run([GLOVEBOX, "complete", "--script", "csh"])
    assert told.returncode == 2 and "bash, fish, zsh" in told.stderr, told


@tap.case
def tab_in_fish():
    assert shutil.which("fish"), "fish is not installed: dev/bootstrap test"
    with tempfile.TemporaryDirectory() as home:
        def completes(line):
            script = f"source {shlex.quote(COMPLETIONS)}/glovebox.fish; complete --do-complete {line!r}"
            told = subprocess.run(["fish", "--no-config", "--command", script], cwd=home, check=True,
                                  env={"HOME": home, "LANG": "C.UTF-8",
                                       "PATH": f"{os.path.dirname(GLOVEBOX)}:/usr/bin:/bin"},
                                  capture_output=True, text=True)
            return [row.split("\t")[0] for row in told.stdout.splitlines()]

        with open(os.path.join(home, "settings.json"), "w", encoding="utf-8"):
            pass
        assert completes("glovebox patch ap") == ["apply"]
        assert completes("glovebox run --budget-t") == ["--budget-tokens"]
        assert completes("glovebox run --agent=rev") == ["--agent=reviewer"]
        assert completes("glovebox run --config sett") == ["settings.json"]


@tap.case
def tab_in_zsh():
    assert shutil.which("zsh"), "zsh is not installed: dev/bootstrap test"
    start = f"autoload -Uz compinit; compinit -D; source {shlex.quote(COMPLETIONS)}/glovebox.zsh; PROMPT='> '\n"
    with terminal.Terminal("zsh", "-i", looked_at=False, columns=200,
                           files={".zshrc": start, "settings.json": "{}"},
                           environment={"PATH": f"{os.path.dirname(GLOVEBOX)}:{os.environ['PATH']}",
                                        "ZDOTDIR": "."}) as tty:
        for keys, row in ((b"patch ap\t", b"patch apply"),
                          (b"run --budget-t\t", b"run --budget-tokens"),
                          (b"run --agent=rev\t", b"run --agent=reviewer"),
                          (b"run --config sett\t", b"run --config settings.json")):
            # What the line has become, in words of the shell's own.
            tty.type(b"glovebox " + keys + b"\x01print -r '<'\x05'>'\r")
            tty.wait_for(b"<glovebox " + row + b">")
        tty.type(b"exit\r")
        assert tty.end() == 0


@tap.case
def every_verb_and_option_is_known():
    overview = subprocess.run([GLOVEBOX, "help"], capture_output=True, text=True,
                              check=True).stdout.split("Verbs\n")[1].split("\n\n")[0]
    verbs = [line[:26].split() for line in overview.splitlines()]
    assert len(verbs) > 30
    for verb in verbs:
        assert verb[-1] in answers(*verb[:-1], verb[-1][:1]), verb
        words = subprocess.run([GLOVEBOX, *verb, "--help"], capture_output=True, text=True,
                               check=True).stdout.split("\nOptions\n")[1].split("\n\n")[0]
        options = [word.rstrip(",").partition("[")[0] for line in words.splitlines()
                   for word in line.split()[:2] if word.startswith("--")]
        assert "--help" in options and answers(*verb, "--") == options, verb
    conversation = answers("chat", "--")
    assert answers("--") == [*conversation, "--version"]
    assert answers("--agent", "coder", "--") == conversation


tap.play()
