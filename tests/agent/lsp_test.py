#!/usr/bin/env python3
"""Language servers that an agent's changes are shown to: tests/fake/lsp_server.py, well-behaved and not.

lsp_test.py TAP_FOLDER GLOVEBOX FAKE"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import tap  # pylint: disable=wrong-import-position

PROGRAM, FAKE = sys.argv[2:4]


class Place:
    """A workspace with the server in it, and a configuration outside."""

    def __init__(self, root):
        self.root = root
        self.workspace = os.path.join(root, "work")
        os.mkdir(self.workspace)
        shutil.copy(FAKE, os.path.join(self.workspace, "server.py"))
        self.events, self.errors = [], ""

    def put(self, name, text):
        with open(os.path.join(self.workspace, name), "w", encoding="utf-8") as file:
            file.write(text)

    def has(self, name):
        return os.path.exists(os.path.join(self.workspace, name))

    def file(self, name, value):
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.chmod(path, 0o600)
        return path

    def run(self, mode, *turns, more=(), config=None):
        """Play TURNS, lists of calls, with the server in MODE. Returns what the model was told."""
        command = mode if isinstance(mode, list) else ["python3", "server.py", mode]
        settings = config or {"lsp": {"fake": {"command": command, "files": ["*.txt"]}},
                              "agents": {"default": {"write": ["."]}}}
        script = [{"calls": [{"tool": tool, "arguments": arguments}
                             for tool, arguments in turn]} for turn in turns]
        replay = {"name": "test", "turns": [*script, {"text": "Done."}]}
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.root,
               "XDG_STATE_HOME": os.path.join(self.root, "state"),
               **{name: value for name, value in os.environ.items() if "SAN_OPTIONS" in name}}
        done = subprocess.run(
            [PROGRAM, "run", "--json", "--config", self.file("config.json", settings),
             "-C", self.workspace, "--model", "replay:" + self.file("replay.json", replay),
             *more, "Do the task."],
            env=env, capture_output=True, text=True, check=False, timeout=100)
        assert done.returncode == 0, done
        self.events = [json.loads(line) for line in done.stdout.splitlines()]
        self.errors = done.stderr
        return [event["text"] for event in self.of("check_ended", check="diagnostics")]

    def of(self, kind, **members):
        return [event for event in self.events if event["event"] == kind and
                all(event.get(name) == value for name, value in members.items())]

    def answers(self):
        return [event["text"] for event in self.of("tool_ended", tool="lsp")]

    def notices(self):
        return [event["text"] for event in self.of("notice") if "anguage server" in event["text"]]


def place(function):
    """The case FUNCTION with a place of its own, after which no process is left."""
    def play():
        with tempfile.TemporaryDirectory() as root:
            here = Place(root)
            function(here)
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    assert not os.readlink(f"/proc/{pid}/cwd").startswith(root), pid
                except OSError:
                    pass
    play.__name__ = function.__name__
    return tap.case(play)


def write(text, name="a.txt"):
    return "write_file", {"path": name, "content": text}


def edit(old, new, name="a.txt"):
    return "edit_file", {"path": name, "edits": [{"old": old, "new": new}]}


def ask(action, line=None, column=None, name="a.txt"):
    arguments = {"action": action, "path": name, "line": line, "column": column}
    return "lsp", {key: value for key, value in arguments.items() if value is not None}


def wait_for(name):
    return "bash", {"command": f"until [ -e {name} ]; do sleep 0.05; done"}


@place
def only_new_errors_of_changed_files_are_told(here):
    here.put("a.txt", "one\nBAD old\ntwo\n")
    here.put("b.txt", "BAD other\n")
    told = here.run("good", [edit("one\n", "one\nmore\nää BAD new\nODD warned\n")])
    assert told == ["fake: a.txt:3:4: new"], told
    assert here.of("check_ended", check="diagnostics", state="red", to_model=True)


@place
def a_new_file_has_no_old_errors(here):
    assert here.run("good", [write("BAD x\n")]) == ["fake: a.txt:1:1: x"]


@place
def calls_of_one_answer_are_told_of_once(here):
    told = here.run("good", [write("BAD x\n"), write("BAD y\n", "b.txt"), write("fine\n")])
    assert told == ["fake: b.txt:1:1: y"], told


@place
def what_was_told_is_not_told_again(here):
    told = here.run("good", [write("BAD x\n")], [edit("BAD", "ah BAD")],
                    [edit("ah", "BAD y\nah")], [edit("BAD y\n", "")])
    assert told == ["fake: a.txt:1:1: x", "fake: a.txt:1:1: y"], told


@place
def what_a_command_made_wrong_is_old(here):
    told = here.run("good", [write("fine\n")], [("bash", {"command": "echo BAD z >>a.txt"})],
                    [edit("fine", "BAD new")])
    assert told == ["fake: a.txt:1:1: new"], told


@place
def no_other_file_starts_a_server(here):
    here.put("a.txt", "BAD x\n")
    assert here.run("crash", [write("BAD\n", "a.c")], [("read_file", {"path": "a.txt"})]) == []
    assert here.notices() == []


@place
def the_text_is_short(here):
    told, = here.run("many", [write("BAD x\n")])
    lines = told.split("\n")
    assert len(told.encode()) <= 1500 and len(lines) <= 10, told
    assert lines[0].startswith("fake: a.txt:1:1: 0 long") and lines[-1].endswith("more errors")


@place
def ten_lines_and_no_more(here):
    told, = here.run("good", [write("BAD x\n" * 12)])
    lines = told.split("\n")
    assert lines[8] == "fake: a.txt:9:1: x" and lines[9:] == ["… and 3 more errors"], lines
    told, = here.run("good", [write("BAD x\n" * 10, "b.txt")])
    assert len(told.split("\n")) == 10 and "more errors" not in told


@place
def a_server_without_versions_is_heard_to_the_end(here):
    here.put("a.txt", "BAD old\n")
    # The question waits for the start: on a busy machine it takes longer than the time for a change.
    told = here.run("unversioned", [ask("diagnostics")], [edit("BAD old", "BAD old\nBAD new")])
    assert told == ["fake: a.txt:2:1: new"], told


@place
def late_errors_come_with_the_next_results(here):
    here.put("a.txt", "fine\n")
    told = here.run("late", [edit("fine", "BAD x")], [wait_for("published")],
                    [("bash", {"command": "true"})])
    assert told == ["fake: a.txt:1:1: x"], told
    checked, = here.of("check_ended", check="diagnostics")
    ended = here.of("tool_ended", tool="bash")
    assert ended[0]["n"] < checked["n"] < ended[1]["n"]


@place
def late_errors_of_another_text_are_not_told(here):
    here.put("a.txt", "fine\n")
    told = here.run("late", [edit("fine", "BAD x")],
                    [("bash", {"command": wait_for("published")[1]["command"] + "; echo >>a.txt"})],
                    [("bash", {"command": "true"})])
    assert told == [], told


@place
def errors_of_the_version_before_are_not_told(here):
    here.put("a.txt", "fine\n")
    assert here.run("stale", [edit("fine", "BAD x")], [("bash", {"command": "true"})]) == []


@place
def a_mute_server_keeps_nobody_waiting_for_long(here):
    told = here.run("mute", [write("BAD x\n")], [write("BAD y\n")])
    ended, = here.of("turn_ended")
    assert told == [] and ended["seconds"] < 15, ended
    assert here.notices() == []


@place
def a_server_that_does_not_begin_is_ended(here):
    here.put("a.txt", "fine\n")
    here.run("mute", [ask("diagnostics")])
    assert here.answers()[0] == ("The language server fake has not answered in 20 s after its "
                                 "start."), here.answers()


@place
def three_crashes_are_told_once(here):
    here.put("a.txt", "0\n")
    told = here.run("crash", *[[edit(str(i), str(i + 1))] for i in range(5)], [ask("symbols")])
    assert told == [], told
    assert here.notices() == [
        "The language server fake ended with exit code 3, the third time; it is off until the next "
        "session. Its last words were: I am lost"], here.notices()
    assert here.answers() == here.notices()


@place
def a_server_that_is_not_used_is_ended(here):
    here.put("a.txt", "fine\n")
    config = {"lsp": {"fake": {"command": ["python3", "server.py"], "files": ["*.txt"], "idle_s": 1}},
              "agents": {"default": {"write": ["."]}}}
    told = here.run("", [edit("fine", "BAD x")], [wait_for("ended")], [ask("diagnostics")],
                    [edit("BAD x", "BAD y")], config=config)
    assert told == ["fake: a.txt:1:1: x", "fake: a.txt:1:1: y"], told
    assert here.notices() == [] and here.answers() == ["error: a.txt:1:1: x\n"]


@place
def a_program_that_is_not_there_is_told_once(here):
    told = here.run(["/nowhere/clangd"], [write("BAD x\n")], [write("BAD y\n")])
    assert told == [], told
    notice, = here.notices()
    assert "The language server fake could not be started: " in notice and "/nowhere" in notice


@place
def wrong_lengths_are_a_crash(here):
    here.put("a.txt", "0\n")
    for mode in "lies", "huge":
        here.run(mode, *[[edit(str(i), str(i + 1))] for i in range(3)])
        notice, = here.notices()
        assert "sends a message whose length is no number up to 16 MiB, the third time" in notice
        here.put("a.txt", "0\n")


@place
def a_flood_is_a_crash(here):
    here.run("flood", *[[write(f"{i}\n"), ("bash", {"command": "sleep 0.1"})] for i in range(3)],
             [ask("symbols")], [ask("symbols")], [ask("symbols")])
    assert "says more than 128 MiB unasked" in here.answers()[-1], here.answers()


@place
def a_server_that_asks_is_answered(here):
    here.put("a.txt", "fine\n")
    told = here.run("odd", [edit("fine", "BAD x"), wait_for("asked")])
    assert told == ["fake: a.txt:1:1: x"] and here.has("asked"), told


@place
def the_tool_asks_for_places_and_symbols(here):
    here.put("a.txt", "def foo\n𝔸ä foo\nBAD x\nODD y\n")
    here.run("good", [ask("diagnostics"), ask("definition", 2, 4), ask("definition", 1, 1),
                      ask("references", 1, 1), ask("symbols"), ask("definition"),
                      ask("symbols", name="b.c"), ask("symbols", name="no.txt")])
    answers = here.answers()
    assert sorted(answers) == sorted([
        "error: a.txt:3:1: x\nwarning: a.txt:4:1: y\n",
        "a.txt:1:1\n",
        "fake knows nothing at line 1, column 1. Both count from 1: give the place of a character "
        "of the name itself.\n",
        "/usr/include/a b.h:2:3\n",
        "1: class outer\n2:   function in\n3: symbol flat\n",
        "Give line and column of the name, both from 1 (grep shows lines).",
        "No language server is configured for b.c; there are some for *.txt.",
        "There is no such file."]), answers


@place
def a_server_that_gets_ready_while_another_file_is_read_is_asked(here):
    here.put("a.txt", "def foo\n")
    # Nearly all the time until it is ready such a file is read, in vain.
    here.put("b.txt", "\0" * (1 << 20))
    here.run("good", [ask("symbols"), *[ask("symbols", name="b.txt")] * 8])
    answers = here.answers()
    assert sum(text.startswith("The file is no UTF-8 text of up to 1 MiB.") for text in answers) == 8, answers
    assert answers.count("1: class outer\n2:   function in\n3: symbol flat\n") == 1, answers


@place
def the_tool_passes_on_what_a_server_refuses(here):
    here.put("a.txt", "x\n")
    here.run("refuses", [ask("symbols")])
    assert here.answers() == ["The language server fake refuses: not today"], here.answers()


@place
def a_server_that_refuses_to_begin_says_why(here):
    here.put("a.txt", "x\n")
    here.run("unable", [ask("symbols")], [ask("symbols")], [ask("symbols")])
    reason = "The language server fake refuses to begin: No valid tsserver was found. Exiting"
    assert here.answers()[0] == f"{reason}.", here.answers()
    assert here.notices() == [f"{reason}, the third time; it is off until the next session."], here.notices()


@place
def the_tool_is_there_only_with_servers(here):
    here.put("a.txt", "x\n")
    here.run("good", [ask("symbols")], config={"agents": {"default": {"write": ["."]}}})
    ended, = here.of("tool_ended", status="failed")
    assert "no tool" in ended["text"] and "lsp" in ended["text"], ended


@place
def a_review_has_no_servers(here):
    told = here.run("good", [write("BAD x\n")], [write("BAD y\n")], more=["--review"])
    assert told == [], told
    assert here.notices() == [
        "There are no language servers in this session: what the agent changes goes into a layer, "
        "which they would not see"], here.notices()


@place
def secrets_in_what_a_server_says_are_masked(here):
    key = "ghp_" + "A1b2C3d4" * 4 + "x9Y8"
    told, = here.run("good", [write(f"BAD {key}\n")])
    assert key not in told and "fake: a.txt:1:1: " in told, told


@place
def a_server_has_the_rights_of_the_agent_and_a_gibibyte(here):
    # Large pages, so that a busy machine fills them before the server is late.
    here.put("hog.py", "import mmap, os\nos.mkdir('made')\nx = mmap.mmap(-1, 3 << 29, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
             "x.madvise(mmap.MADV_HUGEPAGE)\nfor at in range(0, len(x), 4096):\n    x[at] = 1\nos.mkdir('full')\n")
    here.put("a.txt", "fine\n")
    here.run(["python3", "hog.py"], [ask("diagnostics")])
    assert here.has("made") and not here.has("full")
    assert here.answers() == ["The language server fake was ended by signal 9."], here.answers()


@place
def a_path_with_other_letters(here):
    assert here.run("good", [write("BAD x\n", "ä b.txt")]) == ["fake: ä b.txt:1:1: x"]


tap.play()
