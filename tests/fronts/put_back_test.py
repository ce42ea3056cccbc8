#!/usr/bin/env python3
"""A conversation whose processes are killed, at every point of its life: the terminal is put back.

put_back_test.py DEV GLOVEBOX
"""
import os
import signal
import sys
import time

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402
import terminal  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])
SCRIPT = """{"name": "long", "turns": [
  {"text": "First a word.", "calls": [{"tool": "bash", "arguments": {"command": "echo begun; until test -e end; do sleep 0.05; done"}}]},
  {"calls": [{"tool": "bash", "arguments": {"command": "rm -rf *"}}]},
  {"text": "Done.", "repeat": true}]}"""
KNOWS = b"\x1b[?0u\x1bP>|kitty(0.36.4)\x1b\\\x1b]11;rgb:0/0/0\x1b\\\x1b[?1004;2$y\x1b[?2026;2$y\x1b[?2027;2$y"
# Switched on by nobody when we have gone; a cursor that was hidden is not among them.
CURSOR = "\x1b[?25"


class Chat(terminal.Terminal):
    """At its first prompt."""

    def __init__(self, ready=True):
        super().__init__(GLOVEBOX, "chat", "--model", "replay:r.json",
                         files={"r.json": SCRIPT})
        self.knows = KNOWS
        if ready:
            self.prompt()

    def row(self):
        return "".join(cell[0] for cell in self.screen.lines[self.screen.row]).rstrip()

    def prompt(self):
        self.begins()
        self.wait_until(lambda: self.row().startswith(">") and self.screen.column >= 2, "at the prompt")

    def types(self, keys, row):
        self.type(keys)
        self.wait_until(lambda: self.row() == row, f"{row!r}")

    def shows(self, text):
        self.wait_until(lambda: text in self.screen.text(), f"shown: {text!r}")

    def works(self):
        """A command runs."""
        self.type(b"go\r")
        self.shows("bash echo begun")

    def asks(self):
        self.works()
        with open(os.path.join(self.work, "end"), "w", encoding="ascii"):
            pass
        self.shows("[n]o")

    def others(self):
        """Our processes below the front, when each has its name: name -> pid."""
        found = {"exe": 0}
        while "exe" in found:
            found = {}
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
                        text = file.read()
                except OSError:
                    continue
                if int(text[text.rindex(")") + 2:].split()[1]) == self.process.pid:
                    found[text[text.index("(") + 1:text.rindex(")")]] = int(pid)
        return found

    def is_put_back(self):
        assert self.is_as_before()
        self.wait_until(lambda: self.screen.modes <= {CURSOR}, f"without modes: {self.screen.modes}")


def at_the_start(chat):
    chat.wait_until(lambda: chat.screen.pastes_marked, "raw")


def at_the_prompt(chat):
    chat.prompt()


def while_it_is_typed(chat):
    chat.prompt()
    chat.types(b"words", "> words")


def with_several_rows(chat):
    chat.prompt()
    chat.types(b"one\\\rtwo", "  two")


def in_a_search(chat):
    chat.prompt()
    chat.type(b"\x12")
    chat.wait_until(lambda: chat.screen.column > 0, "searching")


def in_a_paste(chat):
    chat.prompt()
    chat.type(b"\x1b[200~half of it")


def in_an_answer_of_the_terminal(chat):
    chat.prompt()
    chat.type(b"\x1b]11;rgb:")


def after_a_command(chat):
    chat.prompt()
    chat.type(b"/help\r")
    chat.shows("/quit")
    chat.prompt()


def after_a_new_size(chat):
    chat.prompt()
    chat.resize(20, 60)
    chat.prompt()


def after_ctrl_l(chat):
    chat.prompt()
    chat.type(b"\x0c")
    chat.prompt()


def while_it_works(chat):
    chat.prompt()
    chat.works()


def while_it_works_and_one_types(chat):
    chat.prompt()
    chat.works()
    chat.types(b"more", "> more")


def with_texts_that_wait(chat):
    chat.prompt()
    chat.works()
    chat.type(b"later\t")
    chat.shows("then: later")


def with_a_new_size_while_it_works(chat):
    chat.prompt()
    chat.works()
    chat.resize(12, 50)


def with_a_terminal_that_takes_nothing(chat):
    chat.prompt()
    chat.works()
    chat.type(b"x" * 300)


def at_a_question(chat):
    chat.prompt()
    chat.asks()


def after_a_question(chat):
    chat.prompt()
    chat.asks()
    time.sleep(terminal.DEAF_S)
    chat.type(b"n")
    chat.shows("Done.")


def after_an_escape(chat):
    chat.prompt()
    chat.works()
    chat.type(b"\x1b")
    chat.shows("cancelled")
    chat.prompt()


def after_a_stop(chat):
    chat.prompt()
    chat.works()
    chat.process.send_signal(signal.SIGTSTP)
    os.waitid(os.P_PID, chat.process.pid, os.WSTOPPED | os.WNOWAIT)
    chat.process.send_signal(signal.SIGCONT)


def in_a_stop(chat):
    chat.prompt()
    chat.works()
    chat.process.send_signal(signal.SIGTSTP)
    os.waitid(os.P_PID, chat.process.pid, os.WSTOPPED | os.WNOWAIT)


POINTS = (at_the_start, at_the_prompt, while_it_is_typed, with_several_rows, in_a_search, in_a_paste,
          in_an_answer_of_the_terminal, after_a_command, after_a_new_size, after_ctrl_l, while_it_works,
          while_it_works_and_one_types, with_texts_that_wait, with_a_new_size_while_it_works,
          with_a_terminal_that_takes_nothing, at_a_question, after_a_question, after_an_escape, after_a_stop, in_a_stop)
assert len(POINTS) == 20


def kill_the_front(point):
    def case():
        with Chat(ready=False) as chat:
            point(chat)
            chat.process.kill()
            assert chat.end() == -signal.SIGKILL
            chat.is_put_back()
    case.__name__ = "the_front_is_killed_" + point.__name__
    return tap.case(case)


for each in POINTS:
    kill_the_front(each)


def leave(chat):
    """The front ends as its person wants it to."""
    for keys in (b"\x03", b"\x04"):
        if chat.process.poll() is None and "[n]o" in chat.row():
            time.sleep(terminal.DEAF_S)
        chat.type(keys)
        chat.wait_until(lambda: chat.process.poll() is not None or chat.row() == ">", "at a prompt or over")
    chat.end()
    chat.is_put_back()


@tap.case
def another_process_of_ours_is_killed_at_the_prompt_while_it_works_and_at_a_question():
    for point in (at_the_prompt, while_it_works, at_a_question):
        with Chat(ready=False) as chat:
            point(chat)
            names = chat.others()
        assert {"glovebox-tty", "glovebox-anchor"} <= set(names), names
        for name in names:
            with Chat(ready=False) as chat:
                point(chat)
                os.kill(chat.others()[name], signal.SIGKILL)
                leave(chat)


tap.play()
