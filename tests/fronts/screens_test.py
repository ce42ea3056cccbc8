#!/usr/bin/env python3
"""What a person has on the terminal after a conversation: the screens of tests/fronts/screens/*.screen.

screens_test.py DEV GLOVEBOX [FILE.screen …]

A file has a line that says what it shows, and parts that begin at the border; their lines are indented by a tab:

	size 60 x 14           columns and rows
	options --reader       of glovebox chat; may be missing
	script                 of the recorded model (docs/models.md)
	keys                   one order a line: `prompt` waits for an empty prompt, `shows TEXT` for a text,
	                       `type KEYS` (with \\r, \\t, \\e), `size 40 x 14`, `after 0.3` seconds go by
	screen                 scrollback and screen at the end, without blanks at the ends of lines, and without the
	                       head, in which the folder stands

Seconds are N, the folder is WORK, the number of a patch is ID, and each picture of the spinner is ⠿. The same bytes go to our own vt and, where no size changes, to pyte: both have to
show what is wanted. With SCREENS_WRITE=1 the files get what the vt shows, for a look with `git diff`.
"""
import glob
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.join(HERE, "..", "..", "dev"))
# Debian's modules, also for another Python than Debian's.
sys.path.append("/usr/lib/python3/dist-packages")
import pyte  # noqa: E402
import tap  # noqa: E402
import terminal  # noqa: E402
import vt  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])
FILES = sys.argv[3:] or sorted(glob.glob(os.path.join(HERE, "screens", "*.screen")))
WRITES = os.environ.get("SCREENS_WRITE")
ESCAPES = {"\\r": "\r", "\\t": "\t", "\\e": "\x1b"}


class Both(vt.Screen):
    """What is fed to it is fed to pyte as well."""

    def __init__(self, columns, rows):
        super().__init__(columns, rows)
        self.pyte = pyte.HistoryScreen(columns, rows, history=10000, ratio=0.5)
        self.stream = pyte.Stream(self.pyte)

    def feed(self, text):
        super().feed(text)
        self.stream.feed(vt.UNSEEN.sub("", text))

    def pyte_text(self):
        above = ["".join(line[x].data for x in range(max(line, default=-1) + 1)) for line in self.pyte.history.top]
        return "\n".join(line.rstrip() for line in [*above, *self.pyte.display])


def parts_of(path):
    """The parts of a file: name -> (rest of its first line, lines)."""
    parts = {}
    with open(path, encoding="utf-8") as file:
        title, *lines = file.read().splitlines()
    for line in lines:
        if line.startswith("\t") or not line:
            parts[name][1].append(line[1:])
        else:
            name, _, rest = line.partition(" ")
            parts[name] = (rest, [])
    return title, parts


def size_of(text):
    columns, _, rows = text.partition(" x ")
    return int(columns), int(rows)


def rows_of(tty):
    """The rows down to the cursor's."""
    return ["".join(cell[0] for cell in line).rstrip() for line in tty.screen.lines[:tty.screen.row + 1]]


def obey(tty, order):
    word, _, rest = order.partition(" ")
    if word == "prompt":
        tty.wait_until(lambda: rows_of(tty)[-2:] == ["", ">"] and tty.screen.column == 2, "at the prompt")
    elif word == "shows":
        tty.wait_until(lambda: rest in tty.screen.text(), f"shown: {rest!r}")
    elif word == "type":
        tty.type(re.sub(r"\\[rte]", lambda found: ESCAPES[found[0]], rest).encode())
    elif word == "size":
        columns, rows = size_of(rest)
        tty.resize(rows, columns)
    elif word == "after":
        time.sleep(float(rest))
    else:
        raise ValueError(f"no order: {order}")


def settled(text, tty):
    text = re.sub(r"\b\d+(\.\d+)? s\b", "N s", text.replace(tty.work, "WORK"))
    text = re.sub(r"\bpatch [0-9a-f]{8}\b", "patch ID", re.sub("[\u2800-\u28ff]", "⠿", text))
    return re.sub(r"(?m)[ \t]+$", "", text).strip("\n").partition("\n\n")[2]


def play(path):
    title, parts = parts_of(path)
    columns, rows = size_of(parts["size"][0])
    options = parts["options"][0].split() if "options" in parts else []
    with terminal.Terminal(GLOVEBOX, "chat", "--model", "replay:r.json", *options, columns=columns, rows=rows,
                           files={"r.json": "\n".join(parts["script"][1])}) as tty:
        tty.screen = Both(columns, rows)
        for order in filter(None, parts["keys"][1]):
            obey(tty, order)
        shown = settled(tty.screen.text(), tty)
        others = settled(tty.screen.pyte_text(), tty)
        tty.process.kill()
        tty.process.wait()
    wanted = "\n".join(parts["screen"][1]).strip("\n")
    if WRITES:
        with open(path, encoding="utf-8") as file:
            head = file.read().partition("\nscreen\n")[0]
        with open(path, "w", encoding="utf-8") as file:
            file.write(head + "\nscreen\n" + "".join(f"\t{line}\n" if line else "\n" for line in shown.split("\n")))
        return
    assert shown == wanted, f"{title}: wanted\n{wanted}\nshown\n{shown}"
    if not any(order.startswith("size ") for order in parts["keys"][1]):
        assert others == wanted, f"{title}, in pyte: wanted\n{wanted}\nshown\n{others}"


def case_of(path):
    def case():
        play(path)
    case.__name__ = os.path.basename(path)[:-len(".screen")]
    return tap.case(case)


for each in FILES:
    case_of(each)
tap.play()
