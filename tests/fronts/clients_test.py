#!/usr/bin/env python3
"""docs/clients.md shows each client's entry and command: those that the program prints and runs.

The clients are stand-ins: scripts of their names in a folder of their own, which note their words
and end as they are told.
"""
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, sys.argv[1])
import tap  # pylint: disable=wrong-import-position

PROGRAM, DOCS = os.path.realpath(sys.argv[2]), sys.argv[3]
SHOWN = "/usr/local/bin/glovebox"
WAIT_SECONDS = 120  # sanitizers on a busy machine
COMMANDS = {
    "claude": ("claude", ["mcp", "add", "--scope", "user", "glovebox", "--", PROGRAM, "mcp"],
               "claude mcp remove --scope user glovebox"),
    "codex": ("codex", ["mcp", "add", "glovebox", "--", PROGRAM, "mcp"],
              "codex mcp remove glovebox"),
    "gemini": ("gemini", ["mcp", "add", "--scope", "user", "glovebox", PROGRAM, "--", "mcp"],
               "gemini mcp remove --scope user glovebox"),
    "qwen": ("qwen", ["mcp", "add", "--scope", "user", "glovebox", PROGRAM, "--", "mcp"],
             "qwen mcp remove --scope user glovebox"),
    "opencode": ("opencode", ["mcp", "add", "glovebox", "--", PROGRAM, "mcp"],
                 'remove "glovebox" from "mcp" in {home}/.config/opencode/opencode.json'),
    "vscode": ("code", None,
               'remove "glovebox" from "servers" in {home}/.config/Code/User/mcp.json'),
}
NOTES = """#!/bin/sh
printf '%s\\0' "$0" "$@" >"$HOME/words"
printf '%s\\n' "$PWD" >"$HOME/folder"
read -r line && echo "it has input: $line"
"""


class Place:
    """A home, a folder of programs and a folder to work in."""

    def __init__(self, folder):
        self.home = os.path.join(folder, "home")
        self.programs = os.path.join(folder, "my programs")
        self.work = os.path.join(folder, "a workspace")
        for path in self.home, self.programs, self.work:
            os.mkdir(path)

    def stand_in(self, name, text="echo 'done, it says'"):
        path = os.path.join(self.programs, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(NOTES + text + "\n")
        os.chmod(path, 0o755)

    def start(self, client, *more, program=PROGRAM, **options):
        return subprocess.Popen([program, "mcp", "--install", client, *more], cwd=self.work,
                                env={"PATH": self.programs, "HOME": self.home},
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)

    def install(self, client, *more, program=PROGRAM):
        process = self.start(client, *more, program=program)
        out, err = process.communicate("y\n", timeout=WAIT_SECONDS)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def words(self):
        with open(os.path.join(self.home, "words"), encoding="utf-8") as file:
            return file.read().split("\0")[:-1]

    def was_run(self):
        return os.path.exists(os.path.join(self.home, "words"))

    def files(self):
        """What lies in the home, besides the notes of the stand-ins."""
        return sorted(os.path.join(root, name) for root, _, names in os.walk(self.home)
                      for name in names if name not in ("words", "folder"))


def in_place(function):
    def case():
        with tempfile.TemporaryDirectory() as folder:
            function(Place(os.path.realpath(folder)))
    case.__name__ = function.__name__
    return tap.case(case)


def sections():
    """Each section's text by its heading."""
    with open(DOCS, encoding="utf-8") as file:
        parts = file.read().split("\n## ")
    return {part.split("\n")[0]: part for part in parts[1:]}


HEADINGS = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "qwen": "Qwen Code",
            "opencode": "opencode", "vscode": "VS Code", "cursor": "Cursor"}


@in_place
def the_page_shows_what_the_program_prints(place):
    for client, heading in HEADINGS.items():
        section = sections()[heading]
        done = place.install(client, "--print")
        assert done.returncode == 0, done.stderr
        shown = done.stdout.replace(PROGRAM, SHOWN)
        if client != "qwen":
            assert f"\n{shown}```\n" in section, f"{client}:\n{shown}"
        path = done.stderr.split("\n")[0].split(" ")[-1] if client == "codex" else \
            done.stderr.split("for ")[1].split(";")[0]
        assert f"`{path.replace(place.home, '~')}`" in section, path
        if client in COMMANDS and client != "vscode":
            command = done.stderr.split("command for it is: ")[1].strip().replace(PROGRAM, SHOWN)
            assert f"`{command}`" in section, command
            back = COMMANDS[client][2]
            assert back.startswith("remove") or f"`{back}`" in section, back
    assert place.files() == [], place.files()


@in_place
def the_clients_own_command_is_run(place):
    for client, (program, words, back) in COMMANDS.items():
        place.stand_in(program)
        done = place.install(client)
        assert done.returncode == 0, f"{client}: {done.stderr}"
        told = place.words()
        assert told[0] == os.path.join(place.programs, program), told
        if words is None:
            assert told[1] == "--add-mcp" and len(told) == 3, told
            assert json.loads(told[2]) == {
                "name": "glovebox", "type": "stdio", "command": PROGRAM,
                "args": ["mcp", "--workspace", "${workspaceFolder}"]}, told
        else:
            assert told[1:] == words, told
        assert done.stdout == "done, it says\n", done.stdout
        ran, after = done.stderr.strip().split("\n")
        assert shlex.split(ran.split("running: ")[1]) == [program, *told[1:]], ran
        assert f'{program} has added "glovebox"' in after, after
        assert after.endswith("to take it back: " + back.format(home=place.home)), after
    assert place.files() == [], place.files()


@in_place
def the_way_back_names_the_file_that_the_client_has_made(place):
    folder = os.path.join(place.home, ".config", "opencode")
    place.stand_in("opencode", f'/bin/mkdir -p "{folder}"; echo "{{}}" >"{folder}/opencode.jsonc"')
    done = place.install("opencode")
    assert done.returncode == 0, done
    assert f'remove "glovebox" from "mcp" in {folder}/opencode.jsonc\n' in done.stderr, done.stderr


@in_place
def options_are_words_of_their_own(place):
    program = os.path.join(place.programs, "glovebox")
    os.symlink(PROGRAM, program)
    os.mkdir(os.path.join(place.work, "sub folder"))
    place.stand_in("codex")
    place.stand_in("gemini")
    options = ["-C", "sub folder", "--config", "../it's mine.json", "--agent", "reviewer",
               "--patience", "5", "--allow-host", "a.example", "--allow-host", "b c $HOME",
               "--ask", "network"]
    expected = ["mcp", f"--workspace={place.work}/sub folder",
                f"--config={os.path.dirname(place.work)}/it's mine.json", "--agent=reviewer",
                "--patience=5", "--allow-host=a.example", "--allow-host=b c $HOME",
                "--ask=network"]
    done = place.install("codex", *options, program=program)
    assert done.returncode == 0, done.stderr
    # The name in PATH, which has a blank, and not where it leads.
    assert place.words()[1:] == ["mcp", "add", "glovebox", "--", program, *expected]
    ran = done.stderr.split("running: ")[1].split("\n")[0]
    assert shlex.split(ran) == ["codex", *place.words()[1:]], ran
    done = place.install("gemini", *options, program=program)
    assert place.words()[6:] == [program, "--", *expected], place.words()
    with open(os.path.join(place.home, "folder"), encoding="utf-8") as file:
        assert file.read() == place.work + "\n"


@in_place
def without_the_program_the_entry_is_printed_and_nothing_written(place):
    for client in HEADINGS:
        done = place.install(client)
        shown = place.install(client, "--print")
        assert done.returncode == 1, done
        assert done.stdout == shown.stdout, done.stdout
        first, last = done.stderr.strip().split("\n")
        assert first == shown.stderr.split("\n")[0], done.stderr
        why = "cursor has no command" if client == "cursor" else \
            f'the program "{COMMANDS[client][0]}" is not in PATH'
        assert "nothing was written: " + why in last, last
    assert place.files() == [], place.files()


@in_place
def a_file_of_the_client_is_left_as_it_is(place):
    path = os.path.join(place.home, ".claude.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"numStartups": 3}')
    before = os.stat(path)
    for more in [], ["--print"], ["--write"]:
        place.install("claude", *more)
    after = os.stat(path)
    assert (before.st_mtime_ns, before.st_ino, before.st_size) == \
        (after.st_mtime_ns, after.st_ino, after.st_size)
    assert place.files() == [path], place.files()


@in_place
def printing_runs_nothing(place):
    place.stand_in("claude")
    done = place.install("claude", "--print")
    assert done.returncode == 0 and not place.was_run(), done
    assert json.loads(done.stdout)["mcpServers"]["glovebox"]["command"] == PROGRAM


@in_place
def a_client_that_has_it_already_says_so_and_how_to_go_on(place):
    place.stand_in("claude", "echo 'MCP server glovebox already exists in user config' >&2; exit 1")
    done = place.install("claude")
    assert done.returncode == 1 and done.stdout == "", done
    assert "already exists in user config\n" in done.stderr, done.stderr
    assert 'claude failed (exit code 1). If it has a server "glovebox" already, take that back ' \
        'first: claude mcp remove --scope user glovebox' in " ".join(done.stderr.split("\n")), \
        done.stderr
    assert "has added" not in done.stderr


@in_place
def a_client_that_dies_or_cannot_start_has_added_nothing(place):
    place.stand_in("codex", "kill -9 $$")
    done = place.install("codex")
    assert done.returncode == 1 and "codex failed (signal 9)" in done.stderr, done
    with open(os.path.join(place.programs, "codex"), "w", encoding="ascii") as file:
        file.write("#!/gone/interpreter\n")
    done = place.install("codex")
    assert done.returncode == 1 and "nothing was written: codex cannot be run" in done.stderr, done


@in_place
def a_client_that_hangs_ends_with_the_person_that_waits(place):
    place.stand_in("claude", "/bin/sleep 1000 & echo $$ $!; wait")
    for number, code in (signal.SIGINT, 130), (signal.SIGTERM, 143):
        process = place.start("claude", start_new_session=True)
        pids = [int(pid) for pid in process.stdout.readline().split()]
        process.send_signal(number)
        _, err = process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == code, (process.returncode, err)
        assert 'claude was stopped; whether it has added "glovebox" is not known' in err, err
        until = time.monotonic() + WAIT_SECONDS
        while any(os.path.exists(f"/proc/{pid}") for pid in pids):
            assert time.monotonic() < until, "it was left behind"
            time.sleep(0.01)


tap.play()
