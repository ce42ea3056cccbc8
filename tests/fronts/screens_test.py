#!/usr/bin/env python3
"""What a person has on the terminal after a conversation: the screens of tests/fronts/screens/*.screen.

screens_test.py DEV GLOVEBOX [--write] [FILE.screen …]

A file has a line that says what it shows, and parts that begin at the border; their lines are indented by a tab:

	size 60 x 14           columns and rows; `every`: the looks of VARIANTS, with a part `screen 80 x 24 ascii` for each
	options --reader       of glovebox chat; may be missing
	config                 of it, a file; may be missing
	script                 of the recorded model (docs/models.md)
	keys                   one order a line: `prompt` waits for an empty prompt, `shows TEXT` for a text,
	                       `type KEYS` (with \\r, \\t, \\e, \\x05), `size 40 x 14`, `by -5 x 2` columns and rows
	                       more, `after 0.3` seconds go by, `made FILE` in the work folder; TEXT may have \\n.
	                       `now` at the end: what is written is not waited for
	screen                 scrollback and screen at the end, without blanks at the ends of lines, and without the
	                       head, in which the folder stands

Seconds are N, the folder is WORK, the number of a patch is ID, and each picture of the spinner is ⠿. The same bytes go to our own vt and, where no size changes, to pyte: both have to
show what is wanted. The look `colour` shows styles as ‹bold|text›. With --write (or SCREENS_WRITE=1) the files get what
the vt shows, for a look with `git diff`.
"""
import glob
import os
import re
import sys
import time
import unicodedata

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
NAMED = [name for name in sys.argv[3:] if name != "--write"]
FILES = NAMED or sorted(glob.glob(os.path.join(HERE, "screens", "**", "*.screen"), recursive=True))
WRITES = os.environ.get("SCREENS_WRITE") or "--write" in sys.argv
COMES_S = 120  # a busy machine draws later; nothing waits where all is well
STILL_S = 1.0
ESCAPES = {"\\r": "\r", "\\t": "\t", "\\e": "\x1b"}
LOOKS = {"": {}, "colour": {}, "plain": {"NO_COLOR": "1"}, "ascii": {"NO_COLOR": "1", "LANG": "C"}}
VARIANTS = ("40 x 12 plain", "80 x 24 plain", "120 x 40 plain", "200 x 50 plain", "80 x 24 ascii", "40 x 12 ascii",
            "80 x 24 colour")
NAMES = {value: name for name, value in zip(
    ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "grey"), vt.COLOURS.values())}


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
            name = line if name == "screen" and rest else name
            parts[name] = (rest, [])
    return title, parts


def size_of(text):
    columns, _, rows = text.partition(" x ")
    return int(columns), int(rows)


def rows_of(tty):
    """The rows down to the cursor's."""
    return ["".join(cell[0] for cell in line).rstrip() for line in tty.screen.lines[:tty.screen.row + 1]]


def pause(tty, seconds):
    """What is printed meanwhile is shown."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        tty._read(until)


def obey(tty, order):
    word, _, rest = order.partition(" ")
    if word == "prompt":
        tty.wait_until(lambda: rows_of(tty)[-2:] == ["", ">"] and tty.screen.column == 2, "at the prompt")
    elif word == "shows":
        rest = rest.replace("\\n", "\n")
        tty.wait_until(lambda: rest in tty.screen.text(), f"shown: {rest!r}")
    elif word == "type":
        rest = re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), rest)
        tty.type(re.sub(r"\\[rte]", lambda found: ESCAPES[found[0]], rest).encode())
    elif word == "size":
        columns, rows = size_of(rest)
        tty.resize(rows, columns)
    elif word == "by":
        columns, rows = size_of(rest)
        tty.resize(tty.screen.rows + rows, tty.screen.columns + columns)
    elif word == "made":
        tty.wait_until(lambda: os.path.exists(os.path.join(tty.work, rest)), f"made: {rest}")
    elif word == "after":
        pause(tty, float(rest))
    elif word == "now":
        pass
    else:
        raise ValueError(f"no order: {order}")


def nowhere(text, work):
    """TEXT without the path WORK, whose end a narrow screen leaves out where the folder for temporary files has a long name."""
    for size in range(len(work) - 1, len("/tmp/"), -1):
        text = re.sub(re.escape(work[:size]) + r"(…|\.\.\.)", "WORK", text)
    return text


def settled(text, tty):
    text = re.sub(r"\b\d+(\.\d+)?(\s)s\b", r"N\2s", nowhere(text.replace(tty.work, "WORK"), tty.work))
    # A look that was made meanwhile may have a number of its own.
    text = re.sub(r"(\bstep|/undo) \d+\b", r"\1 N", text)
    text = re.sub(r"\bpatch (›?)[0-9a-f]{8}\b", r"patch \1ID", re.sub("[\u2800-\u28ff]", "⠿", text))
    text = re.sub(r"(?m)^((?:‹[a-z ]+\|)?)[-|/\\](?= N s  )", r"\1⠿", text)
    return re.sub(r"(?m)[ \t]+$", "", text).strip("\n").partition("\n\n")[2]


def styled_row(line):
    """LINE of a vt, with the style of each run that has one."""
    runs = []
    for character, colour, bold, dim in line:
        style = " ".join(filter(None, ("bold" if bold else "", "dim" if dim else "", NAMES.get(colour, ""))))
        if not runs or runs[-1][0] != style:
            runs.append((style, []))
        runs[-1][1].append(character)
    return "".join(f"‹{style}|{''.join(text)}›" if style else "".join(text) for style, text in runs)


def come(shown, wanted):
    """What SHOWN() gives at last: WANTED, if that comes within some seconds."""
    until = time.monotonic() + COMES_S
    last = shown()
    while last != wanted and time.monotonic() < until:
        last = shown()
    return last


def play_in(parts, size, look, wanted):
    """What is shown in a window of SIZE, by the vt and, where it can tell, by pyte, or None. Where the file is not
    written, WANTED is waited for."""
    columns, rows = size_of(size)
    options = parts["options"][0].split() if "options" in parts else []
    files = {"r.json": "\n".join(parts["script"][1])}
    if "config" in parts:
        files["c.json"] = "\n".join(parts["config"][1])
        options += ["--config", "c.json"]
    with terminal.Terminal(GLOVEBOX, "chat", "--model", "replay:r.json", *options, columns=columns, rows=rows,
                           files=files, environment=LOOKS[look]) as tty:
        tty.screen = Both(columns, rows)
        for order in filter(None, parts["keys"][1]):
            obey(tty, order)

        def shows():
            tty._read(time.monotonic() + 0.02)
            return settled("\n".join(map(styled_row, tty.screen.lines)) if look == "colour" else tty.screen.text(), tty)
        if WRITES and "now" not in parts["keys"][1]:
            pause(tty, STILL_S)
        shown = come(shows, shows() if WRITES else wanted)
        others = settled(tty.screen.pyte_text(), tty)
        tty.process.kill()
        tty.process.wait()
    resized = any(order.startswith(("size ", "by ")) for order in parts["keys"][1])
    return shown, None if resized or look == "colour" else others


def play(path):
    title, parts = parts_of(path)
    every = parts["size"][0] == "every"
    played = {}
    for variant in VARIANTS if every else (parts["size"][0],):
        size, look = variant.rsplit(" ", 1) if every else (variant, "")
        name = f"screen {variant}" if every else "screen"
        wanted = "\n".join(parts.get(name, ("", []))[1]).strip("\n")
        shown, others = play_in(parts, size, look, wanted)
        played[name] = shown
        assert WRITES or shown == wanted, f"{title}, {name}: wanted\n{wanted}\nshown\n{shown}"
        # pyte keeps a letter and its mark as one character where there is one.
        assert WRITES or others in (None, unicodedata.normalize("NFC", wanted)), f"{title}, {name} in pyte: wanted\n{wanted}\nshown\n{others}"
    if WRITES:
        with open(path, encoding="utf-8") as file:
            head = re.split(r"\nscreen\b", file.read())[0].rstrip("\n")
        with open(path, "w", encoding="utf-8") as file:
            file.write(head + "\n")
            for name, shown in played.items():
                file.write(name + "\n" + "".join(f"\t{line}\n" if line else "\n" for line in shown.split("\n")))


def case_of(path):
    def case():
        play(path)
    case.__name__ = os.path.basename(path)[:-len(".screen")]
    return tap.case(case)


for each in FILES:
    case_of(each)
tap.play()
