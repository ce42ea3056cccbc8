#!/usr/bin/env python3
"""glovebox alone, behind a real terminal: keys, commands, and every way out."""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
import urllib.request
import zlib

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
import terminal  # noqa: E402
import vt  # noqa: E402
from chat import CONFIG, Chat, ECHO, EDITS, GLOVEBOX, MODEL_SERVER, SUMS, WAITS, asking, made, told  # noqa: E402


LONG = {"name": "long", "turns": [
    {"calls": [{"tool": "bash", "arguments": {"command": "echo begun; sleep 600"}}]},
    {"text": "Still here.", "repeat": True}]}


WAITS_AND_HEARS = {"name": "hears", "turns": [*WAITS["turns"][:1],
                                              {"text": "You said: ${prompt}.", "repeat": True}]}


MARKDOWN = {"name": "markdown", "turns": [{"repeat": True, "text": "\n".join((
    "# A head", "", "Some **bold** and `code`.", "- one", "- two", "", "```c", "  int a;  /* *x* */",
    "```", "| a | b |", "|---|--:|", "| 1 | 234 |", "", "[a link](https://a.example/b)"))}]}


with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "keys.md"), encoding="utf-8") as page:
    KEYS_PAGE = page.read()


def echoes(tty):
    return bool(termios.tcgetattr(tty.slave)[3] & termios.ECHO)


@tap.case
def a_line_is_edited_sent_and_answered():
    with Chat() as tty:
        tty.typed(b"hello", "> hello", 7)
        tty.typed(b"\x1b[D\x1b[D\x1b[D", "> hello", 4)
        tty.typed(b"XY", "> heXYllo", 6)
        tty.typed(b"\x7f\x01", "> heXllo", 2)
        tty.typed(b"\x1b[3~\x05!", "> eXllo!", 8)
        tty.type(b"\r")
        tty.says("eXllo!")
        assert "\n> eXllo!\n" in tty.screen.text(), tty.screen.text()
        tty.leave()


@tap.case
def tasks_have_a_row_while_the_agent_works():
    script = {"name": "tasks", "turns": [
        {"calls": [{"tool": "todo", "arguments": {"items": [
            {"text": "look", "state": "done"}, {"text": "wait for the end", "state": "active"}]}}]},
        *WAITS["turns"]]}
    with Chat(script) as tty:
        tty.type(b"go\r")
        tty.shows("tasks: 1 of 2 · now: wait for the end")
        with open(os.path.join(tty.work, "end"), "w", encoding="utf-8"):
            pass
        tty.shows("Still here.")
        tty.wait_until(lambda: "tasks: 1 of 2" not in tty.screen.text(), "at rest")
        tty.leave()


@tap.case
def the_words_of_a_model_are_markdown_on_a_terminal():
    shown = ("\nA head\n\nSome bold and code.\n- one\n- two\n\n  int a;  /* *x* */\n\na    b\n──────\n1  234\n\n"
             "a link (https://a.example/b)\n")
    with Chat(MARKDOWN, rewraps=False) as tty:
        tty.type(b"go\r")
        tty.shows("── done")
        tty.prompt()
        assert shown in tty.screen.text(), tty.screen.text()
        tty.leave()
        # A pipe gets what the model wrote.
        tty.looked_at = False
        done = tap.run([GLOVEBOX, "run", "--model", "replay:r.json", "go"], cwd=tty.work, env=tty.variables)
        assert "Some **bold** and `code`.\n" in done.stdout and "\n```c\n" in done.stdout, done.stdout


@tap.case
def without_colours_the_marks_of_markdown_stay():
    with Chat(MARKDOWN, environment={"NO_COLOR": "1"}) as tty:
        tty.type(b"go\r")
        tty.shows("── done")
        text = tty.screen.text()
        assert "\n# A head\n\nSome **bold** and `code`.\n" in text and "\n  int a;  /* *x* */\n" in text, text
        tty.prompt()
        tty.leave()


MUCH = {"name": "much", "turns": [
    {"text": "I count.", "calls": [{"tool": "bash", "arguments": {"command": "seq 11 50\ntrue"}}]},
    {"text": "**Done**.", "repeat": True}]}


def pages(tty, command, pager):
    """What PAGER, a script, does for COMMAND is done, and the conversation goes on."""
    with open(os.path.join(tty.work, "pager"), "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n" + pager)
    os.chmod(os.path.join(tty.work, "pager"), 0o755)
    tty.type(command.encode() + b"\r")
    tty.wait_until(lambda: os.path.exists(os.path.join(tty.work, "paged")), "shown")
    tty.shows("> " + command)
    tty.prompt()


def has_ended(pid):
    """Somebody else may have to reap it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


def read_from(tty, name):
    with open(os.path.join(tty.work, name), encoding="utf-8") as file:
        return file.read()


@tap.case
def a_conversation_is_viewed_in_full_by_the_pager():
    with Chat(MUCH, environment={"PAGER": "./pager", "LESSOPEN": "|evil %s", "NO_COLOR": "1"}) as tty:
        tty.type(b"go\r")
        tty.shows("── done")
        tty.prompt()
        assert "… 35 more lines (Ctrl+O)\n  46\n" in tty.screen.text(), tty.screen.text()
        pages(tty, "/view", "cat >seen; env >variables; : >paged\n")
        seen, variables = read_from(tty, "seen"), read_from(tty, "variables")
        assert "\n> go\n\nI count.\n\n● bash seq 11 50\\x0Atrue · " in seen, seen
        assert "\n  seq 11 50\n  true\n  11\n  12\n" in seen and "\n  50\n" in seen, seen
        assert "**Done**.\n" in seen and "── done" in seen, seen
        assert "LESSSECURE=1\n" in variables and "LESSOPEN" not in variables, variables
        os.unlink(os.path.join(tty.work, "paged"))
        pages(tty, "/view-last", "cat >seen; : >paged\n")
        seen = read_from(tty, "seen")
        assert seen.startswith("● bash seq 11 50") and seen.endswith("\n  50"), seen
        assert tty.screen.pastes_marked
        tty.leave()


@tap.case
def a_terminal_is_put_back_whatever_the_pager_does():
    with Chat(MUCH, environment={"PAGER": "exec ./pager"}) as tty:
        # It is the one in the foreground: its signals are its own.
        pages(tty, "/view", "trap '' INT\nstty raw -echo </dev/tty\nprintf '\\033[?47h\\033[?25l'\n: >paged\n"
              "kill -INT 0\nkill -STOP $$\nkill -9 $$\n")
        tty.typed(b"on", "> on", 4)
        tty.type(b"\x15")
        pages(tty, "/view-last", "")
        assert "There was no call yet." in tty.screen.text(), tty.screen.text()
        tty.leave()
    with Chat(MUCH, environment={"PAGER": "/nowhere/pager"}) as tty:
        tty.type(b"/view\r")
        tty.shows("the pager could not be started: /nowhere/pager")
        tty.prompt()
        tty.leave()
    # A file that is no program could not be started either; a pager whose child a signal ended was.
    with Chat(MUCH, environment={"PAGER": "./pager"}) as tty:
        with open(os.path.join(tty.work, "pager"), "w", encoding="ascii") as file:
            file.write("no program\n")
        tty.type(b"/view\r")
        tty.shows("the pager could not be started: ./pager")
        tty.prompt()
        tty.leave()
    with Chat(MUCH, environment={"PAGER": "./pager"}) as tty:
        pages(tty, "/view", ": >paged\nexit 141\n")
        assert "could not be started" not in tty.screen.text(), tty.screen.text()
        tty.leave()


@tap.case
def a_signal_for_us_ends_the_pager_as_well():
    # One that ends when it is told, and one that has to be killed.
    for trap in ("trap 'exit 0' TERM", "trap '' TERM"):
        with Chat(MUCH, environment={"PAGER": "exec ./pager"}) as tty:
            with open(os.path.join(tty.work, "pager"), "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\n{trap}\nwhile :; do read -r _ </dev/tty; done\n")
            os.chmod(os.path.join(tty.work, "pager"), 0o755)
            tty.type(b"/view\r")
            tty.wait_until(lambda: tty.children("pager"), "in the pager")
            pager = tty.children("pager")[0]
            tty.process.send_signal(signal.SIGTERM)
            assert tty.end() == 128 + signal.SIGTERM
            assert tty.is_as_before()
            tty.wait_until(lambda: has_ended(pager), "the end of the pager")


@tap.case
def without_a_pager_of_ones_own_it_is_less_at_the_last_call():
    with Chat(MUCH, environment={"PAGER": ""}) as tty:
        tty.type(b"go\r")
        tty.shows("── done")
        tty.prompt()
        tty.type(b"/view\r")
        tty.wait_until(lambda: tty.screen.text().startswith("● bash seq 11 50"), "the last call")
        # Keys for less are not the conversation's.
        tty.type(b"gq")
        tty.wait_until(lambda: "> /view" in tty.screen.text(), "put back")
        tty.prompt()
        tty.type(b"kept\x0f")
        tty.wait_until(lambda: tty.screen.text().startswith("● bash seq 11 50"), "by a key")
        tty.type(b"q")
        tty.wait_until(lambda: tty.row() == "> kept", "put back, with what was typed")
        tty.type(b"\x15")
        tty.leave()


@tap.case
def what_a_project_brings_is_asked_about_once():
    files = {".glovebox/commands/fix.md": "Fix $1 first."}
    question = "This project brings 1 command. [v]iew, [t]rust these, [n]ot now"
    with Chat(files=files, ready=False) as tty:
        tty.shows(question)
        # Somebody who types ahead has not read it yet.
        tty.type(b"tt")
        time.sleep(terminal.DEAF_S)
        assert tty.screen.text().rstrip().endswith("[n]ot now?"), tty.screen.text()
        tty.type(b"v")
        tty.shows("Fix $1 first.")
        tty.shows("This project brings 1 command. [t]rust these, [n]ot now")
        # What is let in are the bytes that were shown.
        with open(os.path.join(tty.work, ".glovebox/commands/fix.md"), "w", encoding="utf-8") as file:
            file.write("Delete it all.")
        time.sleep(terminal.DEAF_S)
        tty.type(b"t")
        tty.prompt()
        tty.type(b"/fix a.c\r")
        tty.shows("You said: Fix a.c first..")
        tty.prompt()
        tty.type(b"/trust\r")
        tty.shows("changed since it was let in")
        tty.wait_until(lambda: tty.screen.text().count(question) == 2, "asked again")
        time.sleep(terminal.DEAF_S)
        tty.type(b"n")
        tty.prompt()
        tty.leave()


@tap.case
def what_is_left_out_for_want_of_trust_says_so():
    files = {".agents/skills/release/SKILL.md": "---\ndescription: How to release.\n---\nRun make.",
             ".mcp.json": json.dumps({"mcpServers": {"mine": {"command": "true"}}})}
    with Chat(files=files, ready=False) as tty:
        tty.shows("This project brings 1 skill, 1 server. [v]iew, [t]rust these, [n]ot now")
        time.sleep(terminal.DEAF_S)
        tty.type(b"n")
        tty.prompt()
        tty.command("/skills", "left out: you have not let it in (put off); /trust asks you about it")
        tty.command("/mcp", "mine, of .mcp.json, is left out: you have not let it in (put off); /trust asks you")
        tty.leave()


@tap.case
def words_are_killed_and_come_back():
    with Chat() as tty:
        tty.typed(b"one two three", "> one two three", 15)
        tty.typed(b"\x17\x17", "> one", 6)
        tty.typed(b"\x01\x19", "> two threeone", 11)
        tty.typed(b"\x1b[1;5D", "> two threeone", 6)
        tty.typed(b"\x0b", "> two", 6)
        tty.typed(b"\x15", ">", 2)
        tty.leave()


@tap.case
def several_lines_are_one_prompt():
    with Chat() as tty:
        tty.typed(b"one\\\r", "", 2)
        tty.type(b"two\x1b\rthree")
        tty.shows("> one\n  two\n  three")
        tty.typed(b"\x1b[A\x1b[A", "> one", 5)
        tty.type(b"\r")
        tty.shows("You said: one\ntwo\nthree.")
        tty.prompt()
        tty.leave()


@tap.case
def what_is_pasted_is_not_sent_before_enter():
    with Chat() as tty:
        assert tty.screen.pastes_marked
        tty.type(b"\x1b[200~first\rsecond\x03\x1b[31m\r\x1b[201~")
        tty.shows("> first\n  second\ufffd\ufffd[31m\n")
        tty.typed(b"end", "  end", 5)
        tty.type(b"\r")
        tty.shows("You said: first\nsecond\ufffd\ufffd[31m\nend.")
        tty.prompt()
        tty.leave()


@tap.case
def a_paste_of_a_mebibyte_arrives_whole():
    lines = [b"line %07d of what was pasted" % i for i in range(1 << 15)]
    with Chat() as tty:
        tty.type(b"\x1b[200~" + b"\r".join(lines) + b"\x1b[201~")
        tty.shows("> [paste 1: 32768 lines]")
        tty.type(b"\r")
        tty.shows(f"You said: {lines[0].decode()}")
        tty.shows(f"{lines[-1].decode()}.")
        tty.prompt()
        tty.leave()


def pasted(text):
    """TEXT as a terminal marks it."""
    return b"\x1b[200~" + text.replace(b"\n", b"\r") + b"\x1b[201~"


ROWS = b"\n".join(b"row %d" % number for number in range(1, 22))


@tap.case
def a_long_paste_is_one_character_until_it_is_opened():
    with Chat() as tty:
        tty.typed(b"see " + pasted(ROWS) + b" there", "> see [paste 1: 21 lines] there", 31)
        tty.typed(6 * b"\x1b[D" + b"\x7f", "> see  there", 6)
        tty.typed(b"\x1f", "> see [paste 1: 21 lines] there", 25)
        tty.type(b"\r")
        tty.shows("You said: see row 1\nrow 2")
        tty.shows("row 21 there.")
        tty.prompt()
        tty.typed(pasted(ROWS), "> [paste 1: 21 lines]", 21)
        tty.typed(b"\t", "  row 21", 8)
        tty.typed(b"\x03" + pasted(1001 * b"x"), "> [paste 2: 1001 characters]", 28)
        tty.typed(b"\x03" + pasted(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10"), "  10", 4)
        tty.typed(b"\x03", ">", 2)
        tty.leave()


@tap.case
def a_paste_that_waits_is_shown_and_sent_whole():
    with Chat(WAITS_AND_HEARS) as tty:
        tty.type(b"go\r")
        tty.wait_until(lambda: "bash" in tty.screen.text(), "working")
        tty.typed(pasted(ROWS), "> [paste 1: 21 lines]", 21)
        tty.type(b"\t")
        tty.wait_until(lambda: tty.row().endswith("row 21"), "opened")
        tty.typed(b"\x1f", "> [paste 1: 21 lines]", 21)
        tty.type(b" please\r")
        tty.shows("soon: [paste 1: 21 lines] please")
        tty.typed(b"\x1b[1;3A", "> [paste 1: 21 lines] please", 28)
        tty.type(b"\x7f\x7f\x7f\r")
        tty.shows("soon: [paste 1: 21 lines] ple")
        go_on(tty)
        tty.shows("You said: go.")
        tty.prompt()
        tty.leave()
        done = tap.run([GLOVEBOX, "sessions", "export", "last"], cwd=tty.work, env=tty.variables)
        steered, = [json.loads(line) for line in done.stdout.splitlines() if '"steered"' in line]
        assert ROWS.decode() + " ple" in json.dumps(steered, ensure_ascii=False).replace("\\n", "\n"), steered


def enter(tty, text):
    """Press Enter until TEXT is shown: one that comes too soon belongs to the paste."""
    def pressed():
        tty.type(b"\r")
        tty.pause(0.1)
        return text in tty.screen.text()
    tty.wait_until(pressed, f"shown: {text!r}")


@tap.case
def a_paste_that_the_terminal_does_not_mark_is_not_sent():
    with Chat() as tty:
        tty.typed(b"one\r\rtwo\r", "", 2)
        tty.shows("> one\n\n  two")
        tty.typed(b"three", "  three", 7)
        enter(tty, "You said: one\n\ntwo\nthree.")
        tty.prompt()
        # Enter alone, and behind a key that is no text.
        tty.typed(b"four", "> four", 6)
        tty.type(b"\r")
        tty.says("four")
        tty.leave()
    with Chat(WAITS_AND_HEARS) as tty:
        tty.type(b"go\r")
        tty.wait_until(lambda: "bash" in tty.screen.text(), "working")
        tty.typed(b"one\rtwo", "  two", 5)
        enter(tty, "soon: one")
        go_on(tty)
        tty.shows("You said: go.")
        tty.prompt()
        tty.leave()


@tap.case
def what_was_typed_before_the_start_has_its_enters():
    with Chat() as tty:
        tty.leave()
        tty.type(b"early\rlate")
        tty.run_again()
        tty.shows("You said: early.")
        tty.wait_until(lambda: tty.row() == "> late", "at what has no end")
        # From now on it is Ctrl+J.
        tty.typed(b"\x0ar", "  r", 3)
        tty.type(b"\r")
        tty.shows("You said: late\nr.")
        tty.prompt()
        tty.leave()


@tap.case
def a_change_is_undone_and_a_text_is_put_away():
    with Chat() as tty:
        tty.typed(b"one two", "> one two", 9)
        tty.typed(b"\x17", "> one", 6)
        tty.typed(b"\x1f", "> one two", 9)
        tty.typed(b"\x0athree", "  three", 7)
        tty.type(b"\x1b")
        tty.shows("Escape again puts the text away")
        tty.type(b"\x1b")
        tty.shows("put away: Up brings it back")
        tty.prompt()
        tty.typed(b"\x1b[A", "  three", 7)
        tty.typed(b"\x03", ">", 2)
        tty.type(b"\x1b")
        tty.shows("Escape again goes back to an earlier prompt")
        tty.typed(b"x\x7f", ">", 2)
        tty.leave()


def picture():
    """A PNG of one point."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", bytes.fromhex("00000001000000010800000000")) +
            chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b""))


def prompts_of(tty):
    """The events of the last session that begin a turn."""
    done = tap.run([GLOVEBOX, "sessions", "export", "last"], cwd=tty.work, env=tty.variables)
    return [json.loads(line) for line in done.stdout.splitlines() if '"turn_began"' in line]


@tap.case
def a_path_of_a_picture_that_is_pasted_is_the_picture():
    with Chat() as tty:
        place = os.path.join(tty.work, "a b.PNG")
        with open(place, "wb") as file:
            file.write(picture())
        paths = (place, place.replace(" ", "\\ "), f"'{place}' ", "file://" + place.replace(" ", "%20"))
        for number, path in enumerate(paths, 1):
            tty.type(pasted(path.encode()))
            tty.shows(f"> [picture {number}: a b.PNG: PNG, 1×1, 6")
            tty.typed(b"\x7f", ">", 2)
            tty.typed(b"\x03", ">", 2)
        tty.type(b"see " + pasted(f"'{place}' '{place}'".encode()) + b" there\r")
        tty.shows("You said: see [picture 5: a b.PNG:")
        tty.prompt()
        # A path of no picture is text, and one of a broken picture says why it is.
        tty.typed(pasted(b"/nowhere/x.png"), "> /nowhere/x.png", 16)
        with open(place, "wb") as file:
            file.write(picture()[:-9])
        tty.type(b"\x03" + pasted(place.encode()))
        tty.shows("a b.PNG: ")
        tty.wait_until(lambda: tty.row().endswith("a b.PNG"), "the path as text")
        tty.typed(b"\x03", ">", 2)
        tty.leave()
        told, = prompts_of(tty)
        assert len(told["pictures"]) == 2, told.keys()


@tap.case
def a_picture_in_the_clipboard_is_taken_by_the_persons_program():
    with Chat(ready=False) as tty:
        tty.process.kill()
        tty.process.wait()
        with open(os.path.join(tty.work, "p.png"), "wb") as file:
            file.write(picture())
        tools = os.path.join(tty.home, "tools")
        os.makedirs(tools)
        with open(os.path.join(tools, "xclip"), "w", encoding="ascii") as file:
            file.write('#!/bin/sh\ncase "$*" in *image/png*) exec cat p.png;; esac\nexit 1\n')
        os.chmod(os.path.join(tools, "xclip"), 0o755)
        for display in ({}, {"DISPLAY": ":7"}):
            tty.variables = {**tty.variables, **display, "PATH": tools + ":" + os.environ["PATH"]}
            tty.variables.pop("WAYLAND_DISPLAY", None)
            tty.run_again()
            tty.prompt()
            tty.type(b"\x16")
            tty.shows("> [picture 1: clipboard: PNG, 1×1" if display else "no picture is in the clipboard")
            tty.typed(b"\x03", ">", 2)
            tty.leave()


@tap.case
def a_terminal_that_can_tell_keys_apart_does():
    # Where it sends no bytes for which the kernel has signals, we send them.
    for knows, stop in ((b"\x1b[?0u", b"\x1b[27u"), (b"\x1b[?0u", b"\x1b[99;5u"), (b"", b"\x03")):
        keyboard = "kitty" if knows else "other"
        with Chat(LONG, ready=False) as tty:
            tty.knows = knows
            tty.prompt()
            tty.wait_until(lambda kind=keyboard: tty.screen.keyboard == kind, keyboard)
            tty.typed(b"one\x1b[13;2utwo" if knows else b"one\x1b[27;2;13~two", "  two", 5)
            tty.typed(b"\x1b[99;5u" if knows else b"\x03", ">", 2)
            tty.type(b"go\r")
            tty.wait_until(lambda: tty.children("sleep"), "running")
            tty.type(stop)
            tty.shows("Interrupted by the user.")
            tty.prompt()
            if stop == b"\x1b[27u":
                tty.process.kill()
                tty.end()
                assert tty.is_as_before()
            else:
                tty.leave()
            tty.wait_until(lambda: tty.screen.keyboard is None, "as before")


EDITOR = """#!/bin/sh
stat -c '%a' "$1" "${1%/*}" > seen
cat "$1" >> seen
case $(cat how) in
change) printf 'changed: %s\\nsecond\\n' "$(cat "$1")" > "$1.new"; mv "$1.new" "$1";;
fail) echo lost > "$1"; exit 3;;
sleep) echo $$ > pid; exec sleep 600;;
wait) touch began; until test -e go; do sleep 0.05; done; printf kept > "$1";;
esac
"""


def soon(tty, holds):
    """Does HOLDS() become true within a moment?"""
    end = time.monotonic() + 2
    tty.wait_until(lambda: holds() or time.monotonic() > end, "a moment later")
    return holds()


@tap.case
def a_text_is_edited_in_the_persons_own_editor():
    with Chat(ready=False) as tty:
        tty.process.kill()
        tty.process.wait()
        place = os.path.join(tty.work, "my editor")
        with open(place, "w", encoding="ascii") as file:
            file.write(EDITOR)
        os.chmod(place, 0o755)
        def how(word):
            with open(os.path.join(tty.work, "how"), "w", encoding="ascii") as file:
                file.write(word)
        tty.variables = {**tty.variables, "EDITOR": "'./my editor'", "TMPDIR": tty.home}
        tty.variables.pop("VISUAL", None)
        tty.variables.pop("XDG_RUNTIME_DIR", None)
        tty.run_again()
        tty.prompt()
        with open(os.path.join(tty.work, "p.png"), "wb") as file:
            file.write(picture())
        how("change")
        tty.typed(b"text", "> text", 6)
        tty.type(pasted(os.path.join(tty.work, "p.png").encode()))
        tty.shows("[picture 1: p.png")
        tty.type(b"\x07")
        tty.shows("> changed: text[picture 1: p.png")
        tty.wait_until(lambda: tty.row() == "  second", "the second line")
        with open(os.path.join(tty.work, "seen"), encoding="utf-8") as file:
            seen = file.read()
        assert seen.startswith("600\n700\ntext[picture 1: p.png: PNG, "), seen
        tty.typed(b"\x1f\x7f", "> text", 6)
        how("fail")
        tty.type(b"\x07")
        tty.shows("did not end well")
        tty.wait_until(lambda: tty.row() == "> text", "as it was")
        tty.type(b"!\r")
        tty.says("text!")
        # Names for an @ that come meanwhile are no reason to end the editor.
        how("wait")
        tty.wait_until(lambda: not termios.tcgetattr(tty.slave)[3] & termios.ISIG, "at the prompt")
        tty.type(b"@\x07")
        # On a slow machine the names are there before the key, which then only closes their list.
        while not soon(tty, lambda: made(tty, "began")):
            tty.type(b"\x07")
        tty.pause(0.3)
        with open(os.path.join(tty.work, "go"), "w", encoding="ascii"):
            pass
        tty.wait_until(lambda: tty.row() == "> kept", "edited")
        tty.typed(b"\x15", ">", 2)
        # A signal for us ends the editor as well; nothing stays.
        how("sleep")
        tty.wait_until(lambda: not termios.tcgetattr(tty.slave)[3] & termios.ISIG, "at the prompt")
        tty.type(b"\x07")
        tty.wait_until(lambda: os.path.exists(os.path.join(tty.work, "pid")), "in the editor")
        tty.process.send_signal(signal.SIGTERM)
        assert tty.end() == 128 + signal.SIGTERM
        assert tty.is_as_before() and not glob.glob(os.path.join(tty.home, "glovebox-edit-*"))
        tty.variables.pop("EDITOR")
        tty.run_again()
        tty.prompt()
        tty.type(b"\x07")
        tty.shows("set VISUAL or EDITOR")
        tty.leave()
        # The message is of the path, whatever went wrong before.
        tty.variables = {**tty.variables, "EDITOR": "true", "TMPDIR": "/" + "x" * 4090}
        tty.run_again()
        tty.prompt()
        tty.type(b"\x07")
        tty.shows("TMPDIR is too long")
        tty.leave()


@tap.case
def the_person_edits_the_notes_of_agents():
    notes = {"name": "notes", "turns": [
        {"calls": [{"tool": "remember", "arguments": {"text": "Run make db first."}}]}, {"text": "Noted."}]}
    with Chat(notes, config={"memory": True}, environment={"EDITOR": "sed -i s/db/base/"}) as tty:
        tty.type(b"go\r")
        tty.shows("done")
        tty.prompt()
        tty.type(b"/memory\r")
        tty.shows("The notes are written; the next conversation reads them.")
        tty.prompt()
        tty.leave()
        place, = glob.glob(os.path.join(tty.home, ".local/state/glovebox/memory/*.md"))
        with open(place, encoding="utf-8") as file:
            text = file.read()
        assert text == "- Run make base first.\n", text
    with Chat() as tty:
        tty.type(b"/memory\r")
        tty.shows('There are no notes: "memory": true in the configuration')
        tty.prompt()
        tty.leave()


def systems(port):
    """The system prompts of all requests so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/requests", timeout=60) as answer:
        return [one["body"]["messages"][0]["content"] for one in json.load(answer) if one["body"]]


@tap.case
def a_style_joins_the_prompt_and_stays():
    server = subprocess.Popen([sys.executable, MODEL_SERVER], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    port = int(server.stdout.readline())
    try:
        with Chat(False, options=("--model", "some"), ready=False, environment={
                "GLOVEBOX_BASE_URL": f"http://127.0.0.1:{port}/normal/v1"}) as tty:
            tty.process.kill()
            tty.process.wait()
            styles = os.path.join(tty.home, ".config/glovebox/styles")
            os.makedirs(styles)
            for name, text in (("short.md", "---\ndescription: In one line.\n---\nAnswer in one line.\n"),
                               ("rhymes.md", "Answer in rhymes.\n"), ("long.md", "x" * 40000)):
                with open(os.path.join(styles, name), "w", encoding="utf-8") as file:
                    file.write(text)
            tty.run_again()
            tty.prompt()
            tty.type(b"/style\r")
            tty.shows("short            In one line.")
            tty.shows("long             it is longer than 32 KiB")
            tty.shows("* none ")
            tty.prompt()
            tty.type(b"/style short\r")
            tty.shows("The style is now short.")
            tty.prompt()
            tty.type(b"hello\r")
            tty.shows("done")
            tty.prompt()
            tty.type(b"/style nothing\r")
            tty.shows('There is no style "nothing".')
            tty.shows("* short ")
            tty.prompt()
            tty.leave()
            assert "The user wants this style of you:\n\nAnswer in one line." in systems(port)[-1]
            # A session that goes on has the style it had, whatever became of the file.
            os.unlink(os.path.join(styles, "short.md"))
            tty.argv = (*tty.argv, "--resume", "last")
            tty.run_again()
            tty.prompt()
            tty.type(b"again\r")
            tty.wait_until(lambda: len(systems(port)) == 2, "the second request")
            assert "\n\nAnswer in one line." in systems(port)[-1]
            tty.prompt()
            tty.type(b"/style none\r")
            tty.shows("The style is now none.")
            tty.prompt()
            tty.type(b"more\r")
            tty.wait_until(lambda: len(systems(port)) == 3, "the third request")
            assert "in one line" not in systems(port)[-1]
            tty.prompt()
            tty.leave()
            assert [(one["style"], one["text"]) for one in told(tty, "styled")] == [
                ("short", "Answer in one line."), ("", "")]
    finally:
        server.kill()
        server.wait()
        server.stdin.close()
        server.stdout.close()


@tap.case
def an_editor_that_is_stopped_stops_us_and_goes_on_with_us():
    with Chat(ready=False) as tty:
        tty.process.kill()
        tty.process.wait()
        place = os.path.join(tty.work, "editor")
        with open(place, "w", encoding="ascii") as file:
            file.write('#!/bin/sh\ntouch here\nuntil test -e end; do sleep 0.05; done\necho more >> "$1"\n')
        os.chmod(place, 0o755)
        tty.variables = {**tty.variables, "VISUAL": "./editor"}
        tty.run_again()
        tty.prompt()
        tty.typed(b"text\x0a", "", 2)
        tty.type(b"\x07")
        tty.wait_until(lambda: os.path.exists(os.path.join(tty.work, "here")), "in the editor")
        # The kernel sends the signal: the editor has the terminal as it was.
        tty.type(b"\x1a")
        tty.wait_for_stop()
        assert tty.is_as_before()
        tty.process.send_signal(signal.SIGCONT)
        go_on(tty)
        tty.wait_until(lambda: tty.row() == "  more", "what the editor made of it")
        tty.typed(b"\x03", ">", 2)
        tty.leave()


GOES_ON = {"name": "long", "turns": [
    {"text": "I wait.", "calls": [{"tool": "bash", "arguments": {
        "command": "until test -e end; do sleep 0.05; done; seq 30"}}]},
    {"text": "Still here.", "calls": [{"tool": "bash", "arguments": {"command": "echo asked"}}]},
    {"text": "All done.", "repeat": True}]}


def opens_an_editor(tty, script):
    """The conversation begins again with SCRIPT as the person's editor; the agent is at work."""
    tty.process.kill()
    tty.process.wait()
    place = os.path.join(tty.work, "editor")
    with open(place, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n" + script)
    os.chmod(place, 0o755)
    tty.variables = {**tty.variables, "VISUAL": "./editor"}
    tty.run_again()
    tty.prompt()
    tty.type(b"go\r")
    tty.shows("bash until test")
    tty.typed(b"my text", "> my text", 9)
    tty.type(b"\x07")
    tty.wait_until(lambda: os.path.exists(os.path.join(tty.work, "here")), "in the editor")


@tap.case
def the_agent_goes_on_while_the_editor_is_open():
    with Chat(GOES_ON, ready=False) as tty:
        opens_an_editor(tty, 'stty -echo\nprintf "\\033[?47h\\033[H\\033[Jthe editor has it"\ncat "$1" >seen\n: >here\n'
                        'until test -e done; do sleep 0.05; done\nprintf " and more" >> "$1"\nprintf "\\033[?47l"\n')
        assert read_from(tty, "seen") == "my text", read_from(tty, "seen")
        tty.shows("the editor has it")
        shown = tty.screen.text()
        open(os.path.join(tty.work, "end"), "w", encoding="ascii").close()
        tty.wait_until(lambda: told(tty, "turn_ended"), "the end of the turn")
        # Nothing is printed meanwhile, and keys are the editor's.
        tty.type(b"lost\x1b[A")
        tty.pause(0.3)
        assert tty.screen.text() == shown, tty.screen.text()
        open(os.path.join(tty.work, "done"), "w", encoding="ascii").close()
        tty.wait_until(lambda: tty.row() == "> my text and more", "what the editor made of it")
        text = tty.screen.text()
        assert text.count("All done.") == text.count("Still here.") == 1 and "\n  30\n" in text, text
        assert text.index("  30\n") < text.index("Still here.") < text.index("All done.") < text.index("── done"), text
        assert "lost" not in text, text
        tty.type(b"\x15")
        tty.leave()


@tap.case
def a_signal_ends_the_editor_while_the_agent_works():
    with Chat(GOES_ON, ready=False) as tty:
        opens_an_editor(tty, "echo $$ >pid\n: >here\nwhile :; do sleep 0.05; done\n")
        editor = int(read_from(tty, "pid"))
        tty.process.send_signal(signal.SIGTERM)
        assert tty.end() == 128 + signal.SIGTERM
        assert tty.is_as_before()
        tty.wait_until(lambda: has_ended(editor), "the end of the editor")


@tap.case
def the_persons_file_gives_actions_other_keys():
    with Chat() as tty:
        tty.type(b"/keys\r")
        tty.shows("  undo            ctrl+_ ctrl+/")
        tty.prompt()
        for name in re.findall(r"^  ([a-z-]+)  ", tty.latest("> /keys"), re.M):
            assert f"`{name}`" in KEYS_PAGE, name
        tty.leave()
        place = os.path.join(tty.home, ".config", "glovebox")
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, "keys.json"), "w", encoding="utf-8") as file:
            file.write('{"undo": "f2", "queue": ["alt+q"]}')
        tty.run_again()
        tty.prompt()
        tty.typed(b"one two\x17", "> one", 6)
        tty.typed(b"\x1f", "> one", 6)
        tty.typed(b"\x1bOQ", "> one two", 9)
        tty.type(b"\x1bq")
        tty.says("one two")
        tty.leave()
        # Sentences name the person's keys.
        with open(os.path.join(place, "keys.json"), "w", encoding="utf-8") as file:
            file.write('{"viewer": "f6", "quit": "f7", "escape": "f8"}')
        with open(os.path.join(tty.work, "r.json"), "w", encoding="utf-8") as file:
            json.dump(MUCH, file)
        tty.run_again()
        tty.shows("/help lists what there is; F7 quits.")
        tty.prompt()
        tty.type(b"go\r")
        tty.shows("… 35 more lines (F6)")
        tty.prompt()
        tty.wait_until(lambda: not termios.tcgetattr(tty.slave)[3] & termios.ISIG, "at the prompt")
        tty.type(b"\x03")
        tty.shows("Ctrl+C again, or F7, to quit")
        tty.type(b"/help\r")
        tty.shows("the end; so does F7")
        tty.wait_until(lambda: "Ctrl+C or F8 stops it" in " ".join(tty.screen.text().split()), "of the help")
        tty.prompt()
        tty.type(b"\x1b[18~")
        tty.end()
        with open(os.path.join(place, "keys.json"), "w", encoding="utf-8") as file:
            file.write('{"clear-screen": "ctrl+c"}')
        tty.run_again()
        tty.wait_until(lambda: 'the usual keys hold: ' in " ".join(tty.screen.text().split()) and
                       'no key stops the agent any more; give interrupt one, such as "ctrl+c"' in
                       " ".join(tty.screen.text().split()), "told of the last key")
        tty.prompt()
        tty.leave()
        with open(os.path.join(place, "keys.json"), "w", encoding="utf-8") as file:
            file.write('{"undoo": "f2"}')
        tty.run_again()
        tty.wait_until(lambda: 'did you mean "undo"?' in " ".join(tty.screen.text().split()), "told of the file")
        tty.prompt()
        tty.typed(b"one two\x17", "> one", 6)
        tty.typed(b"\x1f", "> one two", 9)
        tty.typed(b"\x15", ">", 2)
        tty.leave()


@tap.case
def wide_and_combining_characters_take_their_columns():
    with Chat() as tty:
        tty.typed("日本é".encode(), "> 日本é", 7)
        tty.typed("e\u0301".encode(), "> 日本ée\u0301", 8)
        tty.typed(b"\x7f\x7f", "> 日本", 6)
        tty.typed(b"\x1b[D\x1b[D", "> 日本", 2)
        tty.type(b"\x05\r")
        tty.says("日本")
        tty.leave()


@tap.case
def bytes_that_mean_nothing_do_nothing():
    with Chat() as tty:
        tty.typed(b"a\xff\xc3b\x1b[99;99;99X\x1b[?1;2c\x1bP\x1b]0;x\x07c", "> a\ufffd\ufffdb0;xc", 10)
        tty.typed(bytes(range(0x80, 0x90)), "> a\ufffd\ufffdb0;xc" + 16 * "\ufffd", 26)
        tty.typed(b"\x15ok", "> ok", 4)
        tty.typed(b"\x15", ">", 2)
        tty.leave()


@tap.case
def a_narrow_terminal_breaks_lines_itself():
    with Chat(columns=20) as tty:
        tty.typed(b"0123456789abcdefg", "> 0123456789abcdefg", 19)
        tty.typed(b"h", "  h", 3)
        tty.typed(b"\x7f\x7f", "> 0123456789abcdef", 18)
        tty.typed(b"ghijk\x01", "> 0123456789abcdefg", 2)
        tty.type(b"\r")
        tty.wait_until(lambda: "Yousaid:0123456789abcdefghijk." in
                       tty.screen.text().replace("\n", "").replace(" ", ""), "answered")
        tty.prompt()
        tty.leave()


@tap.case
def a_new_size_while_typing_loses_nothing():
    with Chat(columns=60) as tty:
        said = "a line that is longer than the narrow window will be"
        tty.typed(said.encode(), "> " + said, 2 + len(said))
        tty.resize(30, 30)
        tty.type(b"!")
        tty.wait_until(lambda: tty.row().endswith("will be!"), "drawn anew")
        tty.resize(30, 100)
        tty.typed(b"!", "> " + said + "!!", 4 + len(said))
        assert tty.screen.text().count("a line that") == 1, tty.screen.text()
        tty.type(b"\r")
        tty.says(said + "!!")
        tty.leave()


@tap.case
def a_terminal_that_cuts_rows_keeps_what_was_printed():
    """In one that breaks rows anew the prompt has more rows when it is narrower; not in this one."""
    with Chat(columns=70, rewraps=False) as tty:
        for number in range(3):
            tty.type(b"say %d\r" % number)
            tty.says(f"say {number}")
        said = "typed and not yet sent, and longer than three windows are wide"
        tty.typed(said.encode(), "> " + said, 2 + len(said))
        for columns in (20, 60, 24, 90):
            tty.resize(30, columns)
            tty.type(b"!\x7f")
            tty.wait_until(lambda: tty.row().endswith("wide"), "drawn anew")
        text = tty.screen.text()
        for number in range(3):
            assert text.count(f"You said: say {number}.") == 1, text
        assert text.count("── done") == 3, text
        tty.type(b"\r")
        tty.wait_until(lambda: said + "." in tty.screen.text(), "answered")
        tty.prompt()
        tty.leave()


@tap.case
def a_long_text_leaves_room_for_what_was_printed():
    """Three rows in a window of any size, and all that was printed is there once."""
    def height(tty):
        rows = tty.screen.text().rstrip().split("\n")
        return len(rows) - max(at for at, row in enumerate(rows) if row.startswith("…"))

    for rewraps in (True, False):
        with Chat(rewraps=rewraps) as tty:
            for number in range(3):
                tty.type(b"say %d\r" % number)
                tty.says(f"say {number}")
            tty.type(b"row\x1b\r" * 40)
            for rows, columns in ((30, 100), (12, 60), (12, 31), (40, 31), (9, 80), (30, 100)):
                tty.resize(rows, columns)
                tty.type(b"!")
                tty.wait_until(lambda: tty.row().endswith("!") and height(tty) <= rows - 3, f"in {rows} rows")
                tty.type(b"\x7f")
                tty.wait_until(lambda: tty.row() == "", "taken back")
            text = tty.screen.text()
            for number in range(3):
                assert text.count(f"You said: say {number}.") == 1, text
            tty.type(b"\x03")
            tty.prompt()
            tty.leave()


@tap.case
def the_history_comes_back_in_the_next_conversation():
    with Chat() as tty:
        tty.type(b"first prompt\r")
        tty.says("first prompt")
        tty.type(b" not to be kept\r")
        tty.says("not to be kept")
        tty.typed(b"second\\\r", "", 2)
        tty.type(b"line\r")
        tty.shows("You said: second\nline.")
        tty.prompt()
        tty.leave()
        place = os.path.join(tty.home, ".local", "state", "glovebox", "history")
        assert os.stat(place).st_mode & 0o777 == 0o600
        with open(place, encoding="utf-8") as file:
            assert file.read() == "first prompt\nsecond\\nline\n"
        tty.run_again()
        tty.prompt()
        tty.typed(b"\x1b[A", "  line", 6)
        tty.typed(b"\x1b[A\x1b[A", "> first prompt", 14)
        tty.typed(b"\x1b[B\x1b[B\x1b[B", ">", 2)
        tty.typed(b"\x12firs", "> first prompt", 2)
        tty.shows("search: firs")
        tty.typed(b"\x05!", "> first prompt!", 15)
        tty.type(b"\r")
        tty.says("first prompt!")
        tty.leave()


@tap.case
def ctrl_c_clears_the_line_and_twice_leaves():
    with Chat() as tty:
        tty.typed(b"something", "> something", 11)
        tty.typed(b"\x03", ">", 2)
        tty.type(b"\x03")
        tty.shows("Ctrl+C again")
        tty.typed(b"x\x7f", ">", 2)
        tty.type(b"\x03")
        tty.shows("Ctrl+C again")
        tty.type(b"\x03")
        assert tty.end() == 0
        assert tty.is_as_before()


ANSWERS = b"\x1b[?0u\x1bP>|kitty(0.36.4)\x1b\\\x1b]11;rgb:%s\x1b\\\x1b[?2026;2$y\x1b[?2027;0$y"


def colour_of_hunks(tty):
    """The colour of the place of the change that was shown last."""
    lines = [line for line in tty.screen.lines if "@@" in "".join(cell[0] for cell in line)]
    return next(cell[1] for cell in lines[-1] if cell[0] == "@")


@tap.case
def the_colours_are_those_of_the_terminals_ground():
    for knows, variables, colour in ((ANSWERS % b"ffff/ffff/e0e0", {}, 34), (ANSWERS % b"1e1e/1e1e/2e2e", {}, 36),
                                     (b"", {"COLORFGBG": "0;15"}, 34), (b"", {}, 36)):
        with Chat(EDITS, ready=False, environment=variables) as tty:
            tty.knows = knows
            tty.prompt()
            tty.type(b"go\r")
            tty.shows("Written.")
            tty.prompt()
            assert colour_of_hunks(tty) == vt.COLOURS[colour], (knows, colour_of_hunks(tty))
            tty.leave()


@tap.case
def the_theme_is_chosen_by_the_configuration_and_by_a_command():
    with Chat(EDITS, config={"theme": "mine"}) as tty:
        assert 'there is no theme "mine"' in tty.screen.text()
        tty.leave()
        folder = os.path.join(tty.home, ".config", "glovebox", "themes")
        os.makedirs(folder)
        with open(os.path.join(folder, "mine.json"), "w", encoding="utf-8") as file:
            file.write('{"base": "light", "hunk": "bold red"}')
        tty.screen = vt.Screen(100, 30)
        tty.run_again()
        tty.prompt()
        tty.type(b"go\r")
        tty.shows("Written.")
        tty.prompt()
        assert colour_of_hunks(tty) == vt.COLOURS[31]
        tty.type(b"/theme dusk\r")
        tty.shows('there is no theme "dusk"')
        tty.prompt()
        tty.type(b"/theme\r")
        tty.shows("The theme is mine.")
        tty.shows("\n  plain\n  mine\n")
        tty.prompt()
        tty.type(b"/theme plain\r")
        tty.shows("The theme is plain.")
        tty.prompt()
        tty.type(b"/diff\r")
        tty.prompt()
        tty.wait_until(lambda: colour_of_hunks(tty) is None, "without colours")
        tty.leave()


@tap.case
def a_question_is_told_to_a_person_who_looks_elsewhere():
    """Not while the window has the focus, and not before the terminal has said that it lost it."""
    known = b"\x1bP>|%s\x1b\\\x1b[?1004;2$y"
    for name, focus, told in ((b"kitty(0.36.4)", b"\x1b[O", b"\x1b]99;;glovebox: a question waits\x1b\\"),
                              (b"WezTerm 2024", b"\x1b[O", b"\x1b]777;notify;glovebox;a question waits\x1b\\"),
                              (b"XTerm(390)", b"\x1b[O", b"\x07"),
                              (b"kitty(0.36.4)", b"\x1b[O\x1b[I", None), (b"kitty(0.36.4)", b"", None)):
        script, config = asking("uname")
        with Chat(script, config=config, ready=False) as tty:
            tty.knows = known % name
            tty.prompt()
            tty.typed(focus + b"go", "> go", 4)
            tty.printed = b""
            tty.type(b"\r")
            tty.shows("[n]o")
            assert (told in tty.printed) if told else (b"99;" not in tty.printed and b"\x07" not in tty.printed), tty.printed
            time.sleep(terminal.DEAF_S)
            tty.type(b"n")
            tty.prompt()
            tty.leave()


@tap.case
def the_end_of_a_long_turn_is_told_and_that_of_a_short_one_is_not():
    script = {"name": "long", "turns": [
        {"calls": [{"tool": "bash", "arguments": {"command": "sleep 10.1"}}]}, {"text": "Done.", "repeat": True}]}
    with Chat(script, ready=False) as tty:
        tty.knows = b"\x1bP>|kitty(0.36.4)\x1b\\\x1b[?1004;2$y"
        tty.prompt()
        tty.type(b"\x1b[Ogo\r")
        tty.wait_for(b"\x1b]99;;glovebox: a turn is over\x1b\\")
        tty.prompt()
        tty.type(b"again\r")
        tty.wait_until(lambda: tty.screen.text().count("Done.") == 2, "answered")
        tty.prompt()
        assert b"99;" not in tty.printed
        tty.leave()


@tap.case
def a_program_of_the_persons_tells_it():
    script, config = asking("uname")
    with Chat(script, config={**config, "notify": ["sh", "-c", "echo \"$0\" > $HOME/told"]}) as tty:
        tty.type(b"\x1b[Ogo\r")
        tty.shows("[n]o")
        told = os.path.join(tty.home, "told")
        tty.wait_until(lambda: os.path.exists(told) and open(told, encoding="ascii").read() == "a question waits\n", "told")
        time.sleep(terminal.DEAF_S)
        tty.type(b"n")
        tty.prompt()
        tty.type(b"/notify loud\r")
        tty.shows('"loud" is none of: auto bell off command')
        tty.prompt()
        tty.type(b"/notify off\r")
        tty.shows("You are told by: off,")
        tty.prompt()
        os.unlink(told)
        tty.type(b"again\r")
        tty.prompt()
        assert not os.path.exists(told)
        tty.leave()


@tap.case
def what_the_terminal_answers_is_never_typed():
    """At once, late, torn, and while something runs."""
    with Chat(WAITS, ready=False) as tty:
        tty.answers = False
        tty.prompt()
        for byte in ANSWERS % b"0/0/0":
            tty.type(bytes((byte,)))
        tty.typed(b"go", "> go", 4)
        tty.type(b"\r")
        tty.shows("bash until test")
        tty.typed(b"a" + ANSWERS % b"0/0/0" + b"b\x1b[?62;", "> ab", 4)
        tty.typed(b"22cc", "> abc", 5)
        tty.type(b"\x15")
        go_on(tty)
        tty.leave()


@tap.case
def ctrl_l_draws_the_window_again():
    """What somebody else has written there goes; what stood in it, and the line, are there."""
    with Chat() as tty:
        tty.type(b"/tools\r")
        tty.shows("read_file")
        tty.prompt()
        tty.typed(b"kept", "> kept", 6)
        before = tty.screen.text().splitlines()[-20:]
        tty.screen.feed("\x1b[4Anoise\x1b[4B\r\x1b[6C")
        tty.type(b"\x0c")
        tty.wait_until(lambda: tty.screen.text().splitlines()[-20:] == before and tty.screen.column == 6, "drawn again")
        tty.typed(b"\x15", ">", 2)
        tty.leave()


@tap.case
def ctrl_c_and_escape_stop_what_runs_and_the_conversation_goes_on():
    for key in (b"\x03", b"\x1b"):
        with Chat(LONG) as tty:
            tty.type(b"go\r")
            tty.wait_until(lambda: tty.children("sleep"), "running")
            assert not echoes(tty)
            began = time.monotonic()
            tty.type(key)
            tty.shows("Interrupted by the user.")
            tty.prompt()
            assert time.monotonic() - began < 60
            assert not tty.children("sleep")
            tty.type(b"and now\r")
            tty.shows("Still here.")
            tty.prompt()
            tty.leave()


@tap.case
def escape_stops_it_however_it_is_pressed():
    # Twice, held down, behind what was typed; a key's own sequence is none.
    for keys, left in ((b"\x1b\x1b", ">"), (b"later\x1b", "> later"),
                       (b"\x1b[C\x1bOD\x1b\x1b[Clater\x1b", "> later")):
        with Chat(LONG) as tty:
            tty.type(b"go\r")
            tty.wait_until(lambda: tty.children("sleep"), "running")
            tty.type(keys)
            tty.shows("Interrupted by the user.")
            tty.wait_until(lambda: tty.row() == left, f"at the prompt: {left}")
            tty.type(b"\x15now\r")
            tty.shows("Still here.")
            tty.prompt()
            tty.leave()
    with Chat(WAITS) as tty:
        tty.type(b"go\r")
        tty.wait_until(lambda: tty.children("sleep"), "running")
        tty.type(b"\x1b[C\x1b\x1b[C\x1bOClater")
        with open(os.path.join(tty.work, "end"), "w", encoding="utf-8"):
            pass
        tty.shows("Still here.")
        tty.wait_until(lambda: tty.row() == "> later", "at the prompt")
        assert "Interrupted" not in tty.screen.text()
        tty.type(b"\x15")
        tty.prompt()
        tty.leave()


@tap.case
def an_escape_that_is_held_stops_it():
    with Chat(LONG) as tty:
        tty.type(b"go\r")
        tty.wait_until(lambda: tty.children("sleep"), "running")
        # Each comes before the one before it was alone for long.
        while "Interrupted by the user." not in tty.screen.text():
            tty.type(b"\x1b")
        tty.prompt()
        # If one came after it was stopped, then it and the key behind it are Alt and that key.
        tty.type(b".any")
        tty.wait_until(lambda: tty.row() in ("> any", "> .any"), "at the prompt")
        tty.typed(b"\x15", ">", 2)
        tty.leave()


@tap.case
def ctrl_c_twice_leaves_at_once():
    with Chat(LONG) as tty:
        tty.type(b"go\r")
        tty.wait_until(lambda: tty.children("sleep"), "running")
        # The first one would be served at once: a stopped cell is not.
        os.kill(tty.children("sleep")[0], signal.SIGSTOP)
        tty.process.send_signal(signal.SIGINT)
        # Within a tenth of a second it would be the same one.
        time.sleep(0.3)
        tty.process.send_signal(signal.SIGTERM)
        assert tty.end() in (128 + signal.SIGTERM, 128 + signal.SIGINT)
        assert tty.is_as_before()
        tty.wait_until(lambda: not tty.children("sleep"), "gone")


@tap.case
def keys_typed_while_it_works_are_for_the_next_line():
    with Chat(LONG) as tty:
        tty.type(b"go\r")
        tty.wait_until(lambda: tty.children("sleep"), "running")
        tty.type(b"later")
        tty.type(b"\x03")
        tty.shows("Interrupted by the user.")
        tty.wait_until(lambda: tty.row() in ("> later", ">"), "at the prompt")
        tty.type(b"\x15now\r")
        tty.shows("Still here.")
        tty.prompt()
        tty.leave()


def go_on(tty):
    """End the command of WAITS."""
    with open(os.path.join(tty.work, "end"), "w", encoding="ascii"):
        pass


@tap.case
def what_is_sent_while_it_works_joins_the_conversation():
    with Chat(WAITS_AND_HEARS) as tty:
        tty.type(b"go\r")
        tty.wait_until(lambda: "bash" in tty.screen.text(), "working")
        tty.typed(b"and thx\x7fe docs", "> and the docs", 14)
        tty.type(b"\x15and the docs\r")
        tty.shows("soon: and the docs")
        tty.wait_until(lambda: tty.row() == ">", "an empty line")
        tty.typed(b"later", "> later", 7)
        go_on(tty)
        # It stands behind the result of the call, and the same turn answers it.
        tty.shows("You said: go.")
        tty.wait_until(lambda: tty.row() == "> later" and "── done" in tty.screen.text(), "at the prompt")
        text = tty.screen.text()
        assert text.index("● bash") < text.index("\n> and the docs\n") < text.index("You said:"), text
        assert text.count("── done") == 1 and text.count("and the docs") == 1 and "soon:" not in text, text
        tty.type(b"\x15")
        tty.leave()
        tty.looked_at = False
        done = tap.run([GLOVEBOX, "sessions", "export", "last"], cwd=tty.work, env=tty.variables)
        kinds = [json.loads(line)["event"] for line in done.stdout.splitlines()]
        assert kinds[kinds.index("steered") - 1] == "tool_ended" and kinds.count("turn_began") == 1, kinds


@tap.case
def what_is_kept_for_later_is_the_next_prompt():
    with Chat(WAITS_AND_HEARS) as tty:
        tty.type(b"go\r")
        tty.wait_until(lambda: "bash" in tty.screen.text(), "working")
        tty.type(b"first\t/help\r")
        tty.shows("then: /help")
        tty.type(b"last\t")
        tty.shows("then: last")
        text = tty.screen.text()
        assert text.index("then: first") < text.index("then: /help") < text.index("then: last"), text
        tty.type(b"\x1b[1;3A")
        tty.wait_until(lambda: tty.row() == "> last", "taken back")
        tty.type(b"\x15")
        go_on(tty)
        tty.shows("this list")
        tty.prompt()
        text = tty.screen.text()
        assert text.index("You said: first.") < text.index("> /help"), text
        assert text.count("── done") == 2 and "> last" not in text, text
        tty.leave()


@tap.case
def escape_brings_back_what_was_sent():
    with Chat(LONG) as tty:
        tty.type(b"go\r")
        tty.wait_until(lambda: tty.children("sleep"), "running")
        tty.type(b"one\r")
        tty.shows("soon: one")
        tty.type(b"two\tthree")
        tty.shows("then: two")
        tty.type(b"\x1b")
        tty.shows("Interrupted by the user.")
        tty.wait_until(lambda: tty.row() == "  three" and "── cancelled" in tty.screen.text(), "what was typed")
        tty.wait_until(lambda: not termios.tcgetattr(tty.slave)[3] & termios.ISIG, "at the prompt")
        # Between the turn and the prompt the rows are taken off and drawn anew.
        tty.wait_until(lambda: "> one\n  two\n  three" in tty.screen.text(), "what was sent, in the line")
        tty.type(b"\x03")
        tty.prompt()
        tty.leave()


@tap.case
def what_waits_is_not_sent_after_an_interrupt():
    for keys in b"\x03", b"\x1b":
        with Chat(LONG) as tty:
            tty.type(b"go\r")
            tty.wait_until(lambda: tty.children("sleep"), "running")
            tty.type(b"one\r")
            tty.shows("soon: one")
            # Half of a search, and a text whose end comes with the key.
            tty.type(b"two\x12" + (b"\r" + keys if keys == b"\x1b" else keys))
            tty.shows("Interrupted by the user.")
            tty.wait_until(lambda: tty.row() == "  two" and "── cancelled" in tty.screen.text(), "in the line again")
            assert "> one\n  two" in tty.screen.text() and "Still here." not in tty.screen.text(), tty.screen.text()
            tty.wait_until(lambda: not termios.tcgetattr(tty.slave)[3] & termios.ISIG, "at the prompt")
            tty.type(b"\x15\x08\x15ok\r")
            tty.shows("Still here.")
            tty.prompt()
            tty.leave()


@tap.case
def ctrl_d_while_it_works_ends_the_conversation_after_it():
    with Chat(WAITS_AND_HEARS) as tty:
        tty.type(b"go\r")
        tty.wait_until(lambda: "bash" in tty.screen.text(), "working")
        tty.type(b"\x04")
        tty.shows("then: the end")
        tty.type(b"\x04")
        tty.wait_until(lambda: "then: the end" not in tty.screen.text(), "taken back")
        tty.type(b"\x04")
        go_on(tty)
        assert tty.end() == 0, tty.screen.text()
        assert "You said: go." in tty.screen.text() and tty.is_as_before()


@tap.case
def a_new_size_while_it_works_loses_nothing():
    for rewraps in (True, False):
        with Chat(WAITS_AND_HEARS, columns=90, rewraps=rewraps) as tty:
            tty.type(b"go\r")
            tty.wait_until(lambda: "bash" in tty.screen.text(), "working")
            said = "a text that is longer than some of the windows in which it is typed"
            tty.typed(said.encode(), "> " + said, 2 + len(said))
            for rows, columns in ((20, 31), (12, 60), (40, 26), (30, 90)):
                tty.resize(rows, columns)
                tty.type(b"!\x7f")
                tty.wait_until(lambda: tty.row().endswith("typed"), "drawn anew")
            go_on(tty)
            tty.shows("You said: go.")
            tty.wait_until(lambda: tty.row() == "> " + said and "── done" in tty.screen.text(), "at the prompt")
            text = tty.screen.text()
            assert text.count("/help lists") == 1 and text.count("\n> go\n") == 1, text
            tty.type(b"\x15")
            tty.leave()


def held(**more):
    """A configuration whose set-up waits for a server, which ends badly when the file `go` is there."""
    return {"mcpServers": {"slow": {"command": "sh", "args": ["-c", "until test -e go; do sleep 0.05; done"],
                                    "start_s": 120}}, **more}


def starts(tty):
    """The line is there, and the set-up has come to the server."""
    tty.wait_until(lambda: tty.row() == ">" and tty.screen.column == 2, "a line")
    tty.wait_until(lambda: tty.children("sh"), "the server")
    assert not tty.begun and terminal.GREETING not in tty.printed, tty.screen.text()


def lets_go(tty):
    with open(os.path.join(tty.work, "go"), "w", encoding="ascii"):
        pass


def nothing_is_left(tty):
    """All is as before the start, and the next row is a shell's."""
    assert tty.is_as_before()
    tty.wait_until(lambda: not tty.screen.pastes_marked, "as before")
    assert tty.row() == "" and tty.screen.column == 0, tty.screen.text()
    assert ">" not in tty.screen.text(), tty.screen.text()
    tty.wait_until(lambda: not tty.children("sh"), "gone")


@tap.case
def what_is_typed_during_the_set_up_is_edited_and_sent_after_it():
    with Chat(config=held(), ready=False) as tty:
        starts(tty)
        tty.typed(b"helo\x1b[Dl", "> hello", 6)
        # Keys for what is not there yet.
        tty.type(b"\x0f")
        tty.shows("when the cell is there")
        tty.typed(b"\x14\x1b[Z\x07", "> hello", 6)
        tty.type(b"\r")
        tty.shows("then: hello")
        tty.typed(b"/he\t", "> /help", 8)
        tty.type(b"\x03")
        tty.shows("> hello\n  /help")
        tty.type(b"\x1b[1;5F\x15\x7f\r")
        tty.shows("then: hello")
        tty.resize(20, 80)
        tty.typed(b"more", "> more", 6)
        lets_go(tty)
        tty.shows("You said: hello.")
        tty.wait_until(lambda: tty.row() == "> more" and tty.screen.column == 6, "typed on")
        text = tty.screen.text()
        assert re.search(r"(?s)^glovebox: .*slow.*\nglovebox · agent default .*\n/help lists .*quits.\n\n> hello\n\nYou said",
                         text), text
        assert "then:" not in text, text
        tty.typed(b" of it", "> more of it", 12)
        tty.type(b"\r")
        tty.says("more of it")
        tty.leave()


@tap.case
def ctrl_d_during_the_set_up_ends_it_after_what_waits():
    with Chat(config=held(), ready=False) as tty:
        starts(tty)
        tty.type(b"one\r")
        tty.shows("then: one")
        tty.type(b"/model\r")
        tty.shows("then: one\nthen: /model")
        tty.type(b"\x04")
        tty.shows("then: the end")
        lets_go(tty)
        tty.shows("You said: one.")
        tty.shows("The model is replay:r.json")
        assert tty.end() == 0
        assert tty.is_as_before()


@tap.case
def the_set_up_ends_at_once_by_keys_and_signals():
    for keys, code in ((b"\x04", 0), (b"\x03", 130), (b"text\x03\x03", 130), (b"one\r\x03\x15\x04", 0),
                       (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)):
        with Chat(config=held(), ready=False) as tty:
            starts(tty)
            folders = set(glob.glob("/tmp/glovebox-bridge-*"))
            for key in keys if isinstance(keys, bytes) else ():
                tty.type(bytes((key,)))
                tty.pause(0.15)
            if not isinstance(keys, bytes):
                tty.process.send_signal(keys)
            assert tty.end() == code, (keys, tty.screen.text())
            nothing_is_left(tty)
            assert set(glob.glob("/tmp/glovebox-bridge-*")) <= folders
            assert "slow" not in tty.screen.text(), tty.screen.text()


@tap.case
def a_set_up_that_fails_says_so_and_leaves_the_terminal():
    config = held(agents={"default": {"tools": ["read_file", "slow__look"]}})
    with Chat(config=config, ready=False) as tty:
        starts(tty)
        tty.type(b"sent\r")
        tty.shows("then: sent")
        tty.typed(b"half a li", "> half a li", 11)
        lets_go(tty)
        code = tty.end()
        nothing_is_left(tty)
        shown = tty.screen.text()
        done = subprocess.run([GLOVEBOX, "run", "--model", "replay:r.json", "--config", "config.json", "sent"],
                              cwd=tty.work, env=tty.variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == code != 0, (done, code, shown)
        # The terminal breaks the lines between words.
        assert shown.split() == done.stderr.split() and len(done.stderr) > 20, (shown, done.stderr)


@tap.case
def a_signal_is_no_answer_to_the_question_of_the_set_up():
    files = {".glovebox/commands/fix.md": "Fix $1 first."}
    with Chat(files=files, ready=False) as tty:
        for _ in range(2):
            tty.wait_for(b"This project brings 1 command. [v]iew")
            tty.process.send_signal(signal.SIGTERM)
            assert tty.end() == 143, tty.screen.text()
            assert tty.is_as_before()
            tty.run_again()
        tty.process.kill()


@tap.case
def a_killed_front_puts_the_terminal_back_during_the_set_up():
    with Chat(config=held(), ready=False) as tty:
        starts(tty)
        tty.type(b"half a li")
        tty.process.kill()
        assert tty.end() == -signal.SIGKILL
        assert tty.is_as_before()
        tty.wait_until(lambda: not tty.screen.pastes_marked, "as before")
        tty.wait_until(lambda: not tty.children("sh"), "gone")


@tap.case
def every_end_puts_the_terminal_back():
    for number in (signal.SIGTERM, signal.SIGHUP):
        with Chat() as tty:
            tty.typed(b"half a li", "> half a li", 11)
            assert not echoes(tty)
            tty.process.send_signal(number)
            assert tty.end() == 128 + number
            assert tty.is_as_before()
            assert not tty.screen.pastes_marked
    for number in (signal.SIGKILL, signal.SIGABRT, signal.SIGQUIT):
        with Chat() as tty:
            assert not echoes(tty)
            tty.process.send_signal(number)
            assert tty.end() in (-number, 1)
            assert tty.is_as_before()
            tty.wait_until(lambda: not tty.screen.pastes_marked, "as before")
    for number in (signal.SIGTERM, signal.SIGKILL):
        with Chat(LONG) as tty:
            tty.type(b"go\r")
            tty.wait_until(lambda: tty.children("sleep"), "running")
            tty.process.send_signal(number)
            assert tty.end() in (-number, 128 + number)
            assert tty.is_as_before()
            tty.wait_until(lambda: not tty.children("sleep"), "gone")


@tap.case
def a_terminal_that_goes_away_ends_it():
    with Chat() as tty:
        os.close(tty.master)
        tty.master = os.open("/dev/null", os.O_RDWR)
        code = tty.process.wait(terminal.PATIENCE_S)
        assert code == 128 + signal.SIGHUP, code


@tap.case
def a_stop_gives_the_terminal_back_meanwhile():
    with Chat() as tty:
        tty.typed(b"before", "> before", 8)
        # As an interactive shell would: the job is not the session's orphan.
        tty.type(b"\x1a")
        tty.wait_for_stop()
        assert tty.is_as_before()
        tty.process.send_signal(signal.SIGCONT)
        tty.wait_until(lambda: not echoes(tty), "raw again")
        tty.typed(b" after", "> before after", 14)
        tty.type(b"\r")
        tty.says("before after")
        tty.leave()
    with Chat(LONG) as tty:
        tty.type(b"go\r")
        tty.wait_until(lambda: tty.children("sleep"), "running")
        tty.process.send_signal(signal.SIGTSTP)
        tty.wait_for_stop()
        assert tty.is_as_before()
        tty.process.send_signal(signal.SIGCONT)
        tty.wait_until(lambda: not echoes(tty), "raw again")
        tty.type(b"\x03")
        tty.shows("Interrupted by the user.")
        tty.prompt()
        tty.leave()


@tap.case
def what_a_command_says_is_broken_between_words():
    with Chat(columns=40) as tty:
        for command, broken in (
                ("help", "A backslash at the end of a line, or\nAlt+Enter, begins another one. @ names"),
                ("model", "/model NAME goes on with another;\nglovebox models lists what can be asked"),
                ("agent", "goes\non as another, with the rights of that\none:")):
            tty.type(f"/{command}\r".encode())
            tty.shows(broken)
            tty.prompt()
        tty.leave()


@tap.case
def commands_are_completed_and_slips_are_named():
    with Chat(config=CONFIG) as tty:
        tty.typed(b"/he\t", "> /help", 8)
        tty.type(b"\r")
        tty.shows("/sessions")
        tty.prompt()
        # What each command does begins in one column.
        assert re.search(r"^  /agent \[NAME\]       the agent;", tty.screen.text(), re.M), tty.screen.text()
        assert re.search(r"^  /review \[PATH \.\.\.\]  what the layer", tty.screen.text(), re.M), tty.screen.text()
        tty.type(b"/hlep\r")
        tty.shows("There is no /hlep; did you mean /help?")
        tty.prompt()
        tty.type(b"/xyzzyplugh\r")
        tty.shows("There is no /xyzzyplugh; /help lists what there is.")
        tty.prompt()
        tty.type(b"/quit now\r")
        tty.shows("/quit takes nothing more.")
        tty.prompt()
        tty.typed(b"/agent ", "> /agent [NAME]", 9)
        tty.shows("> coder\n  default\n")
        tty.typed(b"na\t", "> /agent narrow", 16)
        tty.typed(b"\x15/model ", "> /model [NAME]", 9)
        tty.shows("> house-model\n  tiny-model")
        tty.typed(b"\x15/etc/passwd is a file", "> /etc/passwd is a file", 23)
        tty.type(b"\r")
        tty.says("/etc/passwd is a file")
        tty.type(b"/quit\r")
        assert tty.end() == 0
        assert tty.is_as_before()


@tap.case
def another_agent_has_other_tools_in_the_same_conversation():
    with Chat(config=CONFIG, options=("--model", "replay:r.json")) as tty:
        tty.type(b"/tools\r")
        tty.shows("write_file")
        tty.prompt()
        tty.type(b"/agent narrow\r")
        tty.shows("The person goes on with the agent narrow")
        tty.prompt()
        tty.command("/tools", "read_file")
        assert "write_file" not in tty.latest("> /tools\n"), tty.screen.text()
        tty.type(b"hello\r")
        tty.shows("You said:")
        tty.prompt()
        tty.type(b"/agent nobody\r")
        tty.shows('there is no agent "nobody"')
        tty.prompt()
        tty.type(b"/agent\r")
        tty.shows("The agent is narrow.")
        tty.prompt()
        tty.leave()


@tap.case
def another_model_goes_on_with_the_conversation():
    with Chat() as tty:
        with open(os.path.join(tty.work, "s.json"), "w", encoding="utf-8") as file:
            json.dump({"name": "other", "turns": [{"text": "The other heard ${prompt}.",
                                                   "repeat": True}]}, file)
        tty.type(b"one\r")
        tty.says("one")
        tty.type(b"/model\r")
        tty.shows("goes on with another; glovebox models lists what can be asked")
        tty.prompt()
        tty.type(b"/model replay:s.json\r")
        tty.shows("The model is now")
        tty.prompt()
        tty.type(b"two\r")
        tty.shows("The other heard two.")
        tty.prompt()
        tty.type(b"/model replay:missing.json\r")
        tty.shows("missing.json")
        tty.prompt()
        tty.type(b"three\r")
        tty.shows("The other heard three.")
        tty.prompt()
        tty.leave()


@tap.case
def a_command_is_worked_as_it_says_and_then_all_is_as_before():
    other = {"name": "other", "turns": [{"text": "The other heard: ${prompt}", "repeat": True}]}
    files = {".glovebox/commands/look.md": "---\nagent: narrow\nmodel: replay:s.json\nmode: ask\n"
                                           "allowed-tools: Read\n---\nLook at @a.txt.",
             "s.json": json.dumps(other), "a.txt": "of the file\n"}
    with Chat(config=CONFIG, files=files, ready=False) as tty:
        tty.shows("[n]ot now")
        time.sleep(terminal.DEAF_S)
        tty.type(b"t")
        tty.prompt()
        tty.type(b"/look\r")
        tty.shows("The other heard: ")
        tty.prompt()
        tty.type(b"hello\r")
        tty.shows("You said: ")
        tty.prompt()
        tty.type(b"/mode\r")
        tty.shows("* auto")
        tty.prompt()
        tty.type(b"/agent\r")
        tty.shows("The agent is default.")
        tty.prompt()
        began = told(tty, "turn_began")
        assert [(one["agent"], one["model"]) for one in began] == [
            ("narrow", "replay:s.json"), ("default", "replay:r.json")], began
        assert began[0]["attached"][0]["name"] == "a.txt", began
        modes = [one["mode"] for one in told(tty, "mode_changed")]
        assert modes == ["ask", "auto"], modes
        tty.leave()


@tap.case
def a_change_is_shown_and_undone():
    with Chat(EDITS) as tty:
        tty.type(b"/diff\r")
        tty.shows("Nothing has been changed.")
        tty.prompt()
        tty.type(b"/undo\r")
        tty.shows("There is nothing to undo here.")
        tty.prompt()
        tty.type(b"write it\r")
        tty.shows("1 changed file")
        tty.prompt()
        tty.command("/diff", "+two")
        green = [cell for line in tty.screen.lines for cell in line if cell[1] == "#98c379"]
        assert len(green) >= len("+one+two")
        tty.type(b"/undo\r")
        tty.shows("! to the model: The person has undone a step of yours:")
        tty.prompt()
        assert not os.path.exists(os.path.join(tty.work, "new.txt"))
        tty.type(b"/undo first\r")
        tty.shows('"first" is no step')
        tty.prompt()
        tty.type(b"/sessions\r")
        tty.shows("There is no other conversation yet.")
        tty.prompt()
        tty.leave()


@tap.case
def a_conversation_is_summarised_when_its_person_says_so():
    with Chat(SUMS) as tty:
        tty.type(b"/compact\r")
        tty.shows("There is nothing to summarise yet.")
        tty.prompt()
        for prompt, answer in ((b"first\r", "One."), (b"second\r", "Two.")):
            tty.type(prompt)
            tty.shows(answer)
            tty.prompt()
        tty.type(b"/compact the names of the files\r")
        tty.shows("The conversation is summarised: some ")
        tty.prompt()
        tty.type(b"third\r")
        tty.says("third")
        told = subprocess.run([GLOVEBOX, "sessions", "export", "last"], cwd=tty.work, check=True,
                              env=tty.variables, stdout=subprocess.PIPE, text=True).stdout
        compacted = [json.loads(line) for line in told.splitlines() if '"compacted"' in line]
        assert [event["text"] for event in compacted] == ["A short summary."], compacted
        assert compacted[0]["matters"] == "the names of the files", compacted
        tty.type(b"/cost\r")
        # Three answers, and the summary.
        tty.wait_until(lambda: re.search(r"replay:r\.json +4 ", tty.screen.text()), "the cost")
        tty.prompt()
        tty.leave()


@tap.case
def a_conversation_goes_back_to_a_mark():
    with Chat(EDITS) as tty:
        tty.type(b"/undo --mark here\r")
        tty.shows("To come back here: /undo --to here")
        tty.prompt()
        tty.type(b"write it\r")
        tty.shows("1 changed file")
        tty.prompt()
        tty.type(b"/undo --to nowhere\r")
        tty.shows("there is no such step or mark")
        tty.prompt()
        assert os.path.exists(os.path.join(tty.work, "new.txt"))
        tty.type(b"/undo --to here\r")
        tty.shows("! to the model: The person has undone a step of yours:")
        tty.prompt()
        assert not os.path.exists(os.path.join(tty.work, "new.txt"))
        tty.type(b"/undo --mark 7\r")
        tty.shows("not by a number")
        tty.prompt()
        tty.leave()


HANDS = {"agents": {
    "blind": {"tools": ["read_file"], "read": ["docs"]},
    "looker": {"tools": ["read_file"], "read": ["."]}}}


@tap.case
def other_hands_know_what_the_first_have_changed():
    with Chat(EDITS, config=HANDS, options=("--model", "replay:r.json")) as tty:
        os.mkdir(os.path.join(tty.work, "docs"))
        tty.type(b"write it\r")
        tty.shows("1 changed file")
        tty.prompt()
        # Not even a person's question shows a worker what its agent may not read.
        tty.type(b"/agent blind\r")
        tty.shows("goes on with the agent blind")
        tty.prompt()
        tty.type(b"\x0c/diff\r")
        tty.shows("Nothing has been changed.")
        tty.prompt()
        tty.type(b"/agent looker\r")
        tty.shows("goes on with the agent looker")
        tty.prompt()
        tty.command("/diff", "+two")
        # It may write nothing; what the default agent made is undone with that one's rights.
        tty.type(b"/undo\r")
        tty.shows("The person has undone a step of yours:")
        tty.prompt()
        assert not os.path.exists(os.path.join(tty.work, "new.txt"))
        tty.type(b"hello\r")
        tty.shows("0 changed files")
        tty.prompt()
        tty.leave()


@tap.case
def changes_of_all_hands_are_one():
    add = {"calls": [{"tool": "bash", "arguments": {"command": "echo three >> new.txt"}}]}
    script = {"name": "two", "turns": [*EDITS["turns"][:2], add, {"text": "Added."}]}
    with Chat(script, config={"agents": {"second": {"write": ["."]}}},
              options=("--model", "replay:r.json")) as tty:
        tty.type(b"write it\r")
        tty.shows("1 changed file")
        tty.prompt()
        tty.type(b"/agent second\r")
        tty.shows("goes on with the agent second")
        tty.prompt()
        tty.type(b"\x0cmore\r")
        tty.shows("1 changed file +3 -0 · /diff")
        tty.prompt()
        tty.type(b"\x0c/diff\r")
        tty.shows("+three")
        tty.prompt()
        assert "+one" in tty.latest("> /diff")
        tty.leave()


@tap.case
def without_a_verb_it_is_a_conversation_only_on_a_terminal():
    with Chat(False) as tty:
        tty.shows("model replay")
        tty.type(b"hello\r")
        tty.shows("No model is configured")
        tty.prompt()
        tty.type(b"and now?\r")
        tty.shows("still")
        tty.prompt()
        tty.leave()
    done = subprocess.run([GLOVEBOX], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith(b"glovebox "), done
    done = subprocess.run([GLOVEBOX, "chat"], stdin=subprocess.DEVNULL, capture_output=True,
                          check=False)
    assert done.returncode == 2 and b"glovebox run" in done.stderr, done


@tap.case
def a_terminal_without_cursor_movement_is_read_by_lines():
    with Chat(environment={"TERM": "dumb"}, ready=False) as tty:
        tty.wait_for(b"> ")
        tty.type(b"one\\\n")
        tty.type(b"two\n")
        tty.wait_for(b"You said: one\r\ntwo.")
        tty.wait_for(b"> ")
        assert b"\x1b" not in tty.printed
        tty.type(b"\x04")
        assert tty.end() == 0
        assert tty.is_as_before()


@tap.case
def a_reader_gets_whole_lines_and_numbered_questions():
    script, config = asking("echo heard")
    for options, variables, more in ((("--reader",), {}, {}), ((), {"ACCESSIBLE": "1"}, {}), ((), {}, {"reader": True})):
        with Chat(script, config={**config, **more}, options=options, environment=variables, ready=False) as tty:
            tty.wait_for(b"\n> ")
            tty.type(b"go\n")
            tty.wait_for(b"Allow it? 1 once, 2 session, 3 always, 4 no? ")
            time.sleep(terminal.DEAF_S)
            tty.type(b"1\n")
            tty.wait_for(b"Done.")
            tty.wait_for(b"\n> ")
            text = tty.screen.text()
            assert re.search(r"\nbash\necho heard\n\[ok\] exit 0 · [\d.]+ s\nheard\n\nDone\.\n\ndone · 2 answers", text), text
            assert not re.search("[│┌└─✅\u2800-\u28ff]", text), text
            # What the kernel has echoed is not printed again; a command is none, and neither is an answer.
            assert text.count("> go\n") == 1, text
            tty.type(b"/keys\n")
            tty.wait_for(b"gives actions other keys")
            tty.wait_for(b"\n> ")
            tty.type(b"/mode\n")
            tty.wait_for(b"\n* auto")
            tty.wait_for(b"\n> ")
            text = tty.screen.text()
            assert text.count("> /mode\n") == 1 and text.count("> /keys\n") == 1, text
            tty.type(b"\x04")
            assert tty.end() == 0
            assert tty.is_as_before()


@tap.case
def a_reader_hears_every_half_minute_that_it_works():
    script = {"name": "long", "turns": [
        {"calls": [{"tool": "bash", "arguments": {"command": "sleep 30.5"}}]}, {"text": "Done.", "repeat": True}]}
    with Chat(script, environment={"GLOVEBOX_READER": "1"}, ready=False) as tty:
        tty.wait_for(b"\n> ")
        tty.type(b"go\n")
        tty.wait_for(b"\nworking, 30 s\r\n")
        tty.wait_for(b"Done.")
        tty.wait_for(b"\n> ")
        tty.type(b"\x04")
        assert tty.end() == 0


@tap.case
def escape_ends_a_run_at_a_terminal_too():
    # Also where the agent has nothing to ask.
    for verb in (("run", "--model", "replay:r.json", "go"), ("demo",)):
        with terminal.Terminal(GLOVEBOX, *verb, files={"r.json": json.dumps(LONG)}) as tty:
            tty.wait_until(lambda: "bash" in tty.screen.text(), "running")
            tty.type(b"\x1b")
            assert tty.end() == 128 + signal.SIGINT, tty.screen.text()
            assert "Interrupted by the user." in tty.screen.text()
            assert tty.is_as_before()


@tap.case
def a_model_server_that_is_killed_ends_the_turn_alone():
    server = subprocess.Popen([sys.executable, MODEL_SERVER], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    port = int(server.stdout.readline())
    try:
        with Chat(False, options=("--model", "some"), environment={
                "GLOVEBOX_BASE_URL": f"http://127.0.0.1:{port}/stall/v1"}) as tty:
            tty.type(b"hello\r")
            tty.shows("Hello from")
            server.kill()
            tty.shows("model failed")
            tty.prompt()
            tty.type(b"/model replay:r.json\r")
            tty.shows("The model is now")
            tty.prompt()
            tty.type(b"again\r")
            tty.shows("You said:")
            tty.prompt()
            tty.leave()
    finally:
        server.kill()
        server.wait()
        server.stdin.close()
        server.stdout.close()


tap.play()
