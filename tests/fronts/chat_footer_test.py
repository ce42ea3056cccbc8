#!/usr/bin/env python3
"""The last rows of a conversation: the footer below the line, what a call prints, tasks, other modes while it works.

chat_footer_test.py DEV GLOVEBOX MODEL_SERVER
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from chat import GLOVEBOX, MODEL_SERVER, WAITS, Chat, told  # noqa: E402

WRITES = {"name": "writes", "turns": [
    {"calls": [{"tool": "write_file", "arguments": {"path": "one.txt", "content": "one\n"}}]},
    {"text": "Written.", "repeat": True}]}


def below(tty):
    """The row below the cursor's."""
    row = tty.screen.row + 1
    lines = tty.screen.lines
    return "".join(cell[0] for cell in lines[row]).rstrip() if row < len(lines) else ""


def footer(tty, text):
    tty.wait_until(lambda: below(tty) == text, f"the footer {text!r}")


@tap.case
def the_last_row_tells_where_the_conversation_stands():
    with Chat(WRITES) as tty:
        footer(tty, "  default · auto · replay:r.json · L3")
        tty.type(b"\x1b[Z")
        footer(tty, "  default · ask · replay:r.json · L3")
        tty.command("/mode auto", "mode auto")
        tty.type(b"write\r")
        tty.shows("Written.")
        tty.prompt()
        footer(tty, "  default · auto · replay:r.json · L3 · 1 changed")
        # Text that is typed does not move it from its place, and the end takes it away.
        tty.typed(b"two\nrows", "  rows", 6)
        footer(tty, "  default · auto · replay:r.json · L3 · 1 changed")
        tty.type(b"\x15\x7f\x15")
        tty.prompt()
        tty.leave()
        assert "1 changed" not in tty.latest("1 changed file"), tty.screen.text()


WRITES_TWO = {"name": "two", "turns": [
    {"calls": [{"tool": "write_file", "arguments": {"path": name, "content": "one\n"}}
               for name in ("one.txt", "two.txt")]},
    {"text": "Written.", "repeat": True}]}


@tap.case
def what_is_undone_or_taken_back_counts_no_more():
    with Chat(WRITES_TWO, config={"footer": ["agent", "changes"]}) as tty:
        tty.type(b"write\r")
        footer(tty, "  default · 2 changed")
        tty.prompt()
        tty.type(b"/undo\r")
        # What to do next is said in words of the conversation.
        # On a busy machine a look of others' changes can be a step between them.
        undone = re.compile(r"yours: step (\d+), write_file two\.txt\n  removed   two\.txt\n1 file removed\.\n"
                            r"To take that back: /undo (\d+)\n")
        tty.wait_until(lambda: undone.search(tty.screen.text()), "undone")
        step, back = map(int, undone.search(tty.screen.text()).groups())
        assert back > step, (step, back)
        footer(tty, "  default · 1 changed")
        # An undo is taken back as well.
        tty.type(f"/undo {back}\r".encode())
        tty.shows("restored  two.txt")
        footer(tty, "  default · 2 changed")
        tty.leave()
        tty.argv += ("--resume", "last")
        tty.run_again()
        footer(tty, "  default · 2 changed")
        tty.prompt()
        tty.type(b"/rewind\r")
        tty.shows("Go back to before")
        tty.type(b"\r")
        tty.shows("What goes back")
        tty.type(b"\r")
        tty.shows("The conversation goes on from before that prompt")
        footer(tty, "  default")
        tty.type(b"\x15")
        tty.command("/diff", "Nothing has been changed.")
        tty.leave()
        # Nor does it in another process.
        tty.run_again()
        footer(tty, "  default")
        tty.leave()


@tap.case
def the_configuration_names_and_orders_the_parts():
    with Chat(WRITES, config={"footer": ["level", "agent", "changes"]}) as tty:
        footer(tty, "  L3 · default")
        # What does not fit is left out from the right, and a low window has no such row.
        tty.resize(30, 12)
        footer(tty, "  L3")
        tty.resize(7, 60)
        footer(tty, "")
        tty.leave()
    with Chat(WRITES, config={"footer": []}) as tty:
        tty.typed(b"text", "> text", 6)
        assert below(tty) == "", tty.screen.text()
        tty.type(b"\x15")
        tty.leave()
    with Chat(WRITES, config={"footer": ["branches"]}, ready=False) as tty:
        assert tty.end() != 0
        assert "/footer/0: must be one of: agent mode" in tty.screen.text(), tty.screen.text()


class Server:
    """A model server with a script of ANSWERS."""

    def __init__(self, *answers):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump({"answers": answers, "repeat_last": True}, self.file)
        self.file.flush()
        self.process = subprocess.Popen([sys.executable, MODEL_SERVER, "--script", self.file.name],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *how):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.file.close()


def colours(tty, text):
    """The colour of each character of TEXT in the row below the cursor's."""
    line = tty.screen.lines[tty.screen.row + 1]
    at = "".join(cell[0] for cell in line).index(text)
    return {cell[1] for cell in line[at:at + len(text)]}


@tap.case
def the_context_has_a_colour_and_money_is_summed():
    answers = [{"text": "Said.", "usage": {"prompt_tokens": tokens, "completion_tokens": 0}}
               for tokens in (10000, 72000, 86000)]
    config = {"footer": ["model", "context", "money"],
              "models": {"some": {"context": 100000, "price_input": 10, "price_output": 10}}}
    with Server(*answers) as server, Chat(
            False, options=("chat", "--model", "some"), config=config,
            environment={"GLOVEBOX_BASE_URL": f"http://127.0.0.1:{server.port}/v1"}) as tty:
        seen = []
        for number, row in enumerate(("10 % of 100k · $0.10", "72 % of 100k · $0.82", "86 % of 100k · $1.68")):
            tty.type(f"prompt {number}\r".encode())
            footer(tty, f"  some · {row}")
            tty.prompt()
            seen.append(colours(tty, row[:12]))
        assert all(len(colour) == 1 for colour in seen) and len(set(map(str, seen))) == 3, seen
        tty.leave()
        # Another process knows what it has cost.
        tty.argv = (GLOVEBOX, "chat", "--resume", "last", "--config", "config.json")
        tty.run_again()
        footer(tty, "  some · 86 % of 100k · $1.68")
        tty.leave()


PRINTS = {"name": "prints", "turns": [
    {"calls": [{"tool": "bash", "arguments": {
        "command": "seq -f 'line %g' 40; printf 'now\\rlater\\033[31m\\ttab'; until test -e end; do sleep 0.05; done"}}]},
    {"text": "Still here.", "repeat": True}]}


@tap.case
def the_end_of_what_a_call_prints_is_shown_while_it_runs():
    with Chat(PRINTS, config={"footer": ["agent"]}) as tty:
        tty.type(b"go\r")
        shown = "".join(f"\n  line {n}" for n in range(37, 41)) + "\n  later tab\n"
        tty.wait_until(lambda: shown in tty.screen.text(), "the last five lines")
        assert "line 36" not in tty.screen.text(), tty.screen.text()
        assert re.search(r"\nbash seq -f .*\n  line 37\n", tty.screen.text()), tty.screen.text()
        # Ctrl+O gives it half the window, and what is typed stays where it is.
        tty.type(b"and then\x0f")
        tty.shows("half the window")
        tty.wait_until(lambda: "\n  line 27\n" in tty.screen.text(), "half the window")
        assert "line 26" not in tty.screen.text() and tty.row() == "> and then", tty.screen.text()
        # A window that is too low for all of it shows the end.
        tty.resize(12, 100)
        tty.wait_until(lambda: "line 36" not in tty.screen.text().split("go\n", 1)[-1], "fewer")
        tty.shows("  later tab\n")
        tty.resize(30, 100)
        tty.type(b"\x0f\x15")
        tty.wait_until(lambda: "\n  line 37\n" in tty.screen.text() and
                       "\n  line 36\n" not in tty.screen.text(), "five again")
        open(os.path.join(tty.work, "end"), "w", encoding="utf-8").close()
        tty.shows("Still here.")
        tty.prompt()
        # Afterwards the call stands there once.
        assert tty.screen.text().count("\n  line 40\n") == 1, tty.screen.text()
        tty.leave()


@tap.case
def another_mode_is_chosen_while_it_works():
    with Chat(WAITS, config={"footer": ["mode"]}) as tty:
        tty.type(b"go\r")
        tty.shows("bash until test")
        tty.type(b"\x1b[Z")
        tty.shows("mode ask after these calls")
        tty.type(b"\x1b[Z")
        tty.shows("mode plan after these calls")
        footer_below_hint = tty.screen.text().rstrip().rpartition("\n")[2]
        assert footer_below_hint == "  auto", tty.screen.text()
        open(os.path.join(tty.work, "end"), "w", encoding="utf-8").close()
        tty.shows("Still here.")
        footer(tty, "  plan")
        changed = told(tty, "mode_changed", "message")
        assert [event.get("mode") for event in changed] == [None, "plan", None], changed
        # The next process goes on in it.
        tty.leave()
        tty.argv = (GLOVEBOX, "chat", "--model", "replay:r.json", "--config", "config.json", "--resume", "last")
        tty.run_again()
        footer(tty, "  plan")
        # What the person says goes before the record.
        tty.leave()
        tty.argv += ("--mode", "ask")
        tty.run_again()
        footer(tty, "  ask")
        tty.leave()


TASKS = {"name": "tasks", "turns": [
    {"calls": [{"tool": "todo", "arguments": {"items": [
        {"text": "look", "state": "done"}, {"text": "write", "state": "active"}, {"text": "tell"}]}}]},
    *WAITS["turns"]]}


@tap.case
def all_tasks_are_shown_and_hidden_while_it_works():
    with Chat(TASKS) as tty:
        tty.type(b"go\r")
        tty.shows("tasks: 1 of 3 · now: write")
        tty.type(b"\x14")
        shown = "\ntasks: 1 of 3\n  [x] look\n  [>] write\n  [ ] tell\n"
        tty.wait_until(lambda: shown in tty.screen.text(), "all tasks")
        tty.type(b"\x14")
        tty.shows("tasks: 1 of 3 · now: write")
        assert shown not in tty.screen.text(), tty.screen.text()
        open(os.path.join(tty.work, "end"), "w", encoding="utf-8").close()
        tty.shows("Still here.")
        tty.prompt()
        tty.leave()


DELEGATES = {
    "boss": [{"calls": [{"tool": "delegate_agent", "arguments": {"agent": name, "task": f"Task of {name}."}}
                        for name in ("one", "two")]},
             {"text": "Both have ended.", "repeat": True}],
    "one": [*WAITS["turns"][:1], {"text": "One is done.", "repeat": True}],
    "two": [*WAITS["turns"][:1], {"text": "Two is done.", "repeat": True}]}
AGENTS = {name: {"tools": ["bash"], "write": [], "model": f"replay:{name}.json"} for name in ("one", "two")}


@tap.case
def a_delegate_at_work_is_listed_and_ended_by_itself():
    config = {"footer": [], "agents": {
        **AGENTS, "boss": {"tools": ["delegate_agent"], "limits": {"writers": 2}, "model": "replay:boss.json"}}}
    files = {f"{name}.json": json.dumps({"name": name, "turns": turns}) for name, turns in DELEGATES.items()}
    with Chat(False, options=("chat", "--agent", "boss"), config=config, files=files) as tty:
        tty.type(b"go\r")
        for name in ("one", "two"):
            tty.wait_until(lambda: re.search(rf"\n{name}: Task of {name}\. .*bash until", tty.screen.text()), name)
        tty.type(b"/agents\r")
        tty.wait_until(lambda: re.search(r"> /agents\n(one|two): Task of \1\. .*\n(two|one): Task of \2\. ",
                                         tty.screen.text()), "listed")
        tty.type(b"/stop three\r")
        tty.shows("No agent three is at work.")
        tty.type(b"/stop one\r")
        tty.shows("\none ends.\n")
        tty.wait_until(lambda: "\none: Task" not in tty.latest("one ends."), "ended")
        # The other one goes on, and its caller waits for it.
        tty.shows("\ntwo: Task of two.")
        assert "Both have ended" not in tty.screen.text()
        open(os.path.join(tty.work, "end"), "w", encoding="utf-8").close()
        tty.shows("Both have ended.")
        tty.prompt()
        results = told(tty, "tool_ended")
        said = {event["status"]: event["text"] for event in results}
        assert said["failed"].startswith("The person has ended this delegate, one;"), results
        assert "Two is done." in said["done"], results
        tty.command("/stop two", "No agent is at work.")
        tty.leave()


tap.play()
