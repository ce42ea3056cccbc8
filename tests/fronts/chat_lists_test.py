#!/usr/bin/env python3
"""What a person does in a conversation beside prompts: lists, names of files, own commands, going back."""
import json
import os
import re
import sys

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from chat import CONFIG, WAITS, Chat, told  # noqa: E402


@tap.case
def a_command_is_chosen_by_its_first_letters():
    with Chat() as tty:
        tty.type(b"/co")
        tty.shows("\n> /context")
        tty.shows("have the model summarise")
        # Escape closes the menu, and it stays closed for this word.
        tty.type(b"\x1b")
        tty.wait_until(lambda: "summarise" not in tty.latest("> /co"), "closed")
        tty.typed(b"m", "> /com", 6)
        assert "summarise" not in tty.latest("> /com")
        tty.type(b"\x15/co\x1b[B\x1b[B")
        tty.shows("\n> /compact")
        tty.typed(b"\r", "> /compact [TEXT]", 11)
        tty.type(b"\r")
        tty.shows("There is nothing to summarise yet.")
        tty.prompt()
        # One without an argument is carried out.
        tty.type(b"/con\r")
        tty.shows("Tokens of the next request")
        tty.prompt()
        tty.leave()


@tap.case
def a_conversation_is_left_for_another_one():
    with Chat() as tty:
        tty.type(b"first words\r")
        tty.says("first words")
        tty.type(b"/name The first one\r")
        tty.shows("This conversation is called The first one.")
        tty.prompt()
        first = told(tty, "session_began")[0]["session"]
        tty.type(b"/new\r")
        tty.begins_again("> /new\n")
        tty.prompt()
        tty.type(b"second words\r")
        tty.says("second words")
        second = told(tty, "session_began")[0]["session"]
        assert second != first
        # The list filters as one types; its rows have the title, the folder and the age.
        tty.type(b"/sessions\r")
        tty.shows("Conversations:")
        tty.type(b"nothing like it")
        tty.shows("nothing fits; Escape leaves")
        tty.typed(b"\x15the fi", "Conversations: the fi", 21)
        tty.wait_until(lambda: re.search(r"\n> The first one  .*, now\n", tty.screen.text()), "listed")
        tty.type(b"\x1b")
        tty.prompt()
        tty.type(b"/resume\r")
        tty.shows("Conversations:")
        tty.type(b"\r")
        tty.begins_again("> /resume\n")
        tty.prompt()
        tty.type(b"third words\r")
        tty.says("third words")
        turns = told(tty, "turn_began", "session_resumed")
        assert [event.get("text", "")[:12] for event in turns] == [
            "first words", "(The program", "third words"], turns
        # A copy has all of it, and an id of its own.
        tty.type(b"/fork\r")
        tty.begins_again("> /fork\n")
        tty.prompt()
        tty.type(b"fourth words\r")
        tty.says("fourth words")
        copied = told(tty, "session_began", "turn_began")
        assert copied[0]["session"] not in (first, second) and "run" not in copied[0], copied
        assert [event["text"] for event in copied[1:]] == [
            "first words", "third words", "fourth words"], copied
        tty.type(f"/resume {second}\r".encode())
        tty.begins_again(f"> /resume {second}\n")
        tty.prompt()
        tty.type(b"/resume ffffffffffff\r")
        tty.shows("there is no session")
        tty.prompt()
        tty.leave()


@tap.case
def a_model_is_chosen_from_a_list():
    with Chat(config=CONFIG) as tty:
        tty.type(b"/model\r")
        tty.shows("Models:")
        tty.wait_until(lambda: re.search(r"house-model +1k context", tty.screen.text()), "its context")
        tty.type(b"tiny\r")
        tty.shows("tiny-model is asked with a key")
        tty.prompt()
        tty.leave()


REWINDS = {"name": "rewinds", "turns": [
    {"calls": [{"tool": "write_file", "arguments": {"path": "one.txt", "content": "one\n"}}]},
    {"text": "One."},
    {"calls": [{"tool": "write_file", "arguments": {"path": "two.txt", "content": "two\n"}},
               {"tool": "bash", "arguments": {"command": "echo more >>one.txt; echo x >x.txt"}}]},
    {"text": "Two."},
    {"text": "You said: ${prompt}.", "repeat": True}]}


def content(tty, name):
    try:
        with open(os.path.join(tty.work, name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


@tap.case
def a_person_goes_back_to_before_a_prompt():
    with Chat(REWINDS) as tty:
        tty.type(b"/rewind\r")
        tty.shows("There is no prompt to go back to yet.")
        tty.prompt()
        for prompt, end in ((b"make one\r", "1 changed file"), (b"make two\r", "3 changed files")):
            tty.type(prompt)
            tty.shows(end)
            tty.prompt()
        assert content(tty, "one.txt") == "one\nmore\n"
        # Somebody else changes a file since.
        with open(os.path.join(tty.work, "x.txt"), "w", encoding="utf-8") as file:
            file.write("theirs\n")
        tty.type(b"/rewind\r")
        tty.shows("Go back to before:\n> make two")
        tty.type(b"\r")
        tty.shows("\n> the conversation and the files")
        tty.type(b"\r")
        tty.shows("Left alone: x.txt")
        tty.wait_until(lambda: tty.row() == "> make two", "its text in the editor")
        assert content(tty, "one.txt") == "one\n"
        assert content(tty, "two.txt") is None
        assert content(tty, "x.txt") == "theirs\n"
        tty.type(b"\x15go on\r")
        tty.says("go on")
        # The record keeps it, and the next process goes on without it.
        turns = told(tty, "turn_began", "rewound")
        assert [event["text"] for event in turns] == [
            "make one", "make two", "make two", "go on"], turns
        assert turns[2]["from"] == turns[1]["n"], turns
        tty.type(b"/rewind\r")
        tty.shows("Go back to before:\n> go on")
        assert "make two" not in tty.latest("> /rewind\n"), tty.screen.text()
        tty.type(b"\x1b")
        tty.prompt()
        tty.leave()


@tap.case
def a_command_of_the_person_runs_in_the_cell():
    with Chat() as tty:
        tty.type(b"! echo spoken; echo kept >kept.txt\r")
        tty.wait_until(lambda: re.search(r"^ +spoken$", tty.screen.text(), re.M), "spoken")
        tty.wait_until(lambda: content(tty, "kept.txt") == "kept\n", "kept")
        tty.type(b"!! echo secret\r")
        tty.wait_until(lambda: re.search(r"^ +secret$", tty.screen.text(), re.M), "told")
        tty.prompt()
        assert " model" not in tty.latest("secret"), tty.screen.text()
        tty.type(b"what was it\r")
        tty.says("what was it")
        turn, = told(tty, "turn_began")
        item, = turn["attached"]
        assert item["name"].endswith("echo spoken; echo kept >kept.txt"), turn
        assert "spoken" in item["text"], turn
        calls = [call for call in told(tty, "tool_began") if call["tool"] != "generate_patch"]
        assert [call["tool"] for call in calls] == ["bash", "bash"], calls
        assert len({call["call"] for call in calls}) == 2, calls
        tty.type(b"/undo\r")
        tty.wait_until(lambda: content(tty, "kept.txt") is None, "undone")
        tty.prompt()
        tty.leave()


@tap.case
def escape_stops_a_command_of_the_person():
    with Chat() as tty:
        tty.type(b"! touch begun; sleep 600\r")
        tty.wait_until(lambda: content(tty, "begun") is not None, "begun")
        tty.type(b"\x1b")
        tty.shows("cancelled")
        tty.prompt()
        tty.type(b"go on\r")
        tty.says("go on")
        tty.leave()


@tap.case
def a_file_is_named_with_an_at():
    with Chat() as tty:
        os.makedirs(os.path.join(tty.work, "src/deep"))
        for name, lines in (("src/deep/screen.c", 30), ("src/my file.c", 2), ("ignored.c", 1)):
            with open(os.path.join(tty.work, name), "w", encoding="utf-8") as file:
                file.writelines(f"line {number} of it\n" for number in range(1, lines + 1))
        with open(os.path.join(tty.work, ".gitignore"), "w", encoding="utf-8") as file:
            file.write("ignored.c\n")
        tty.type(b"look at @scr")
        tty.shows("\n> @src/deep/screen.c")
        tty.typed(b"\r", "> look at @src/deep/screen.c", 29)
        tty.typed(b"\x7f:10-12 and @my", "> look at @src/deep/screen.c:10-12 and @my", 42)
        tty.shows('\n> @"src/my file.c"')
        tty.typed(b"\t", '> look at @src/deep/screen.c:10-12 and @"src/my file.c"', 56)
        tty.type(b"and @ignored.c, @src/deep, a@b.example\r")
        tty.shows("\nno file or folder listed here is called ignored.c: the text goes as it is\n")
        tty.shows("You said: look at")
        tty.prompt()
        turn, = told(tty, "turn_began")
        names = [item["name"] for item in turn["attached"]]
        assert names == ["src/deep/screen.c, lines 10 to 12", "src/my file.c", "src/deep/"], turn
        text = turn["attached"][0]["text"]
        assert "line 10 of it" in text and "line 12 of it" in text and "line 13" not in text, turn
        assert "screen.c" in turn["attached"][2]["text"], turn
        assert [call["tool"] for call in told(tty, "tool_began")] == [
            "read_file", "read_file", "list_files"]
        tty.leave()


@tap.case
def a_resource_of_a_server_is_named_with_an_at():
    with open(os.path.join(os.path.dirname(sys.argv[3]), "mcp_server.py"), encoding="utf-8") as file:
        server = file.read()
    with Chat(config={"mcpServers": {"fake": {"command": "python3", "args": ["server.py", "rich"]}}},
              files={"server.py": server}) as tty:
        # The end of a sentence is no part of an address, and a number there names no lines.
        tty.type(b"see @fake:note://one, @fake:note://h:80 and @other:note://one.\r")
        tty.shows("You said: see")
        tty.prompt()
        turn, = told(tty, "turn_began")
        assert [(item["name"], item["text"]) for item in turn["attached"]] == [
            ("fake:note://one", "First note."), ("fake:note://h:80", "By number.")], turn
        assert [(call["tool"], call["arguments"]["uri"]) for call in told(tty, "tool_began")] == [
            ("read_resource", "note://one"), ("read_resource", "note://h:80")]
        # Its prompts stand among the commands.
        tty.type(b"/fake")
        tty.shows("\n> /fake:greet")
        tty.type(b"\x15/fake:greet Ada well\r")
        tty.shows("You said: Greet Ada")
        tty.prompt()
        tty.leave()


@tap.case
def names_are_completed_while_the_agent_works():
    with Chat(WAITS) as tty:
        for name in ("alpha.txt", "beta.txt"):
            with open(os.path.join(tty.work, name), "w", encoding="utf-8") as file:
                file.write(f"this is {name}\n")
        tty.type(b"begin\r")
        tty.shows("bash")
        tty.type(b"@alp")
        tty.shows("\n> @alpha.txt")
        tty.type(b"\t\r")
        with open(os.path.join(tty.work, "end"), "w", encoding="utf-8"):
            pass
        tty.shows("Still here.")
        tty.prompt()
        steered, = told(tty, "steered")
        assert [item["name"] for item in steered["attached"]] == ["alpha.txt"], steered
        tty.leave()


@tap.case
def a_conversation_tells_of_itself():
    with Chat(config=CONFIG) as tty:
        for command, shown in (("agents", "narrow"), ("tasks", "The agent has noted no tasks."),
                               ("jobs", "No job runs."), ("mcp", "no MCP servers"),
                               ("policy", "write_file"),
                               ("copy", "There is no answer to copy yet.")):
            tty.type(f"/{command}\r".encode())
            tty.wait_until(lambda c=f"> /{command}\n", s=shown: c in tty.screen.text() and
                           s in tty.latest(c), command)
            tty.prompt()
        tty.type(b"hello\r")
        tty.says("hello")
        tty.type(b"/copy\r")
        tty.wait_for(b"\x1b]52;c;WW91IHNhaWQ6IGhlbGxvLg==\x07")
        tty.prompt()
        tty.type(b"/export said.md\r")
        tty.shows("Written: said.md")
        tty.prompt()
        assert "You said: hello." in content(tty, "said.md")
        tty.type(b"/export said.md\r")
        tty.shows("said.md: File exists; give another name")
        tty.prompt()
        os.symlink("/tmp", os.path.join(tty.work, "link"))
        tty.type(b"/export link/said.md\r")
        tty.shows("link/said.md: Too many levels of symbolic links")
        tty.prompt()
        tty.type(b"/init\r")
        tty.shows("You said: Look at this project and write AGENTS.md")
        tty.prompt()
        tty.leave()


@tap.case
def a_list_has_numbers_where_no_cursor_moves():
    with Chat(environment={"TERM": "dumb"}, ready=False) as tty:
        tty.wait_for(b"> ")
        tty.type(b"words\n")
        tty.wait_for(b"You said: words.")
        tty.wait_for(b"> ")
        tty.type(b"/rewind\n")
        tty.wait_for(b"  1  words")
        tty.type(b"1\n")
        tty.wait_for(b"  2  the conversation")
        tty.type(b"2\n")
        tty.wait_for(b"goes on from before that prompt")
        tty.type(b"\x04")
        tty.end()
        assert b"\x1b" not in tty.printed


tap.play()
