"""vt: as much of a terminal as the plain screen and the line editor use: text, colours, moves of
the cursor and erasing. For dev/picture and for tests that look at what a person would see."""
import re
import unicodedata

COLOURS = {30: "#1e2127", 31: "#e06c75", 32: "#98c379", 33: "#e5c07b", 34: "#61afef",
           35: "#c678dd", 36: "#56b6c2", 37: "#dcdfe4", 90: "#7f848e"}
TOKEN = re.compile(r"\x1b[=>M]|\x1b\[[0-9;?<>$]*[A-Za-z]|\x1b\\|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?<>$]*\Z|"
                   r"\x1b\][^\x07\x1b]*\x1b?\Z|\x1b\Z|[\s\S]")
KEYBOARDS = {"\x1b[>1u": "kitty", "\x1b[<u": None, "\x1b[<8u": None, "\x1b[>4;1m": "other",
             "\x1b[>4m": None}
# Questions, the clipboard, and modes that change nothing of what is seen.
UNSEEN = re.compile(r"\x1b\\|\x1b\[(\?u|>0q|\?(1004|2026|2027)\$p|c|\?(1|12|25|2026|1004)[hl]|[0-9;]*t)|"
                    r"\x1b\](8;|11;\?|52;|9;|99;|777;).*|\x1b[=>]")


def columns_of(character):
    """How many columns a character takes."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen:
    """Lines of (character, colour, bold, dim), those that scrolled away too."""

    def __init__(self, columns=80, rows=24, rewraps=True):
        self.columns, self.rows, self.rewraps = columns, rows, rewraps
        self.lines, self.row, self.column = [[]], 0, 0
        self.wrapped = set()  # rows that go on in the next one
        self.colour, self.bold, self.dim = None, False, False
        self.pastes_marked = False
        self.keyboard = None  # how it sends keys that have no bytes of their own
        self.modes = set()  # that are on: "\x1b[?2004"
        self.torn = ""
        self.other = None  # what the screen was before a program went to another one

    def change_screen(self, on):
        """To the other screen, which is empty, or back."""
        if on and self.other is None:
            self.other = self.lines, self.row, self.column, self.wrapped
            self.lines, self.row, self.column, self.wrapped = [[]], 0, 0, set()
        elif not on and self.other is not None:
            self.lines, self.row, self.column, self.wrapped = self.other
            self.other = None

    def style(self, numbers):
        for number in numbers or [0]:
            if number == 0:
                self.colour, self.bold, self.dim = None, False, False
            elif number == 1:
                self.bold = True
            elif number == 2:
                self.dim = True
            elif number == 22:
                self.bold = self.dim = False
            elif number == 39:
                self.colour = None
            elif number in COLOURS:
                self.colour = COLOURS[number]

    def top(self):
        return max(0, len(self.lines) - self.rows)

    def go(self, row):
        self.row = max(self.top(), row)
        while self.row >= len(self.lines):
            self.lines.append([])

    def put(self, character):
        width = columns_of(character)
        line = self.lines[self.row]
        if width == 0:
            if 0 < self.column <= len(line):
                at = self.column - 1
                line[at] = (line[at][0] + character, *line[at][1:])
            return
        if self.column + width > self.columns:
            self.wrapped.add(self.row)
            self.go(self.row + 1)
            self.column = 0
            line = self.lines[self.row]
        while len(line) < self.column + width:
            line.append((" ", None, False, False))
        line[self.column] = (character, self.colour, self.bold, self.dim)
        for at in range(self.column + 1, self.column + width):
            line[at] = ("", None, False, False)
        self.column += width

    def erase(self, what, numbers):
        number = numbers[0] if numbers else 0
        if what == "K":
            del self.lines[self.row][0 if number == 2 else self.column:]
            self.wrapped.discard(self.row)
        elif number == 2:
            # As xterm does: what is seen goes, what scrolled away stays.
            for row in range(self.top(), len(self.lines)):
                self.lines[row] = []
                self.wrapped.discard(row)
        else:
            del self.lines[self.row][self.column:]
            for row in range(self.row + 1, len(self.lines)):
                self.lines[row] = []
            self.wrapped = {row for row in self.wrapped if row < self.row}

    def obey(self, token):
        if token[-1] in "hl":
            self.modes = (self.modes | {token[:-1]}) if token[-1] == "h" else self.modes - {token[:-1]}
        if token in KEYBOARDS:
            self.keyboard = KEYBOARDS[token]
            return
        if UNSEEN.fullmatch(token):
            return
        numbers = [int(number) for number in re.findall(r"\d+", token)]
        count = max(1, numbers[0] if numbers else 1)
        last = token[-1]
        if last == "m":
            self.style(numbers)
        elif last in "KJ":
            self.erase(last, numbers)
        elif last == "G":
            self.column = count - 1
        elif last == "A":
            self.row = max(self.top(), self.row - count)
        elif last == "B":
            self.row = min(len(self.lines) - 1, self.row + count)
        elif last == "C":
            self.column = min(self.columns - 1, self.column + count)
        elif last == "D":
            self.column = max(0, self.column - count)
        elif last == "L":
            # What is pushed below the window is gone.
            limit = self.top() + self.rows
            self.lines[self.row:self.row] = [[] for _ in range(count)]
            del self.lines[limit:]
            if any(row >= self.row for row in self.wrapped):
                self.wrapped = {row if row < self.row else row + count for row in self.wrapped}
        elif last == "H":
            self.go(self.top() + count - 1)
            self.column = numbers[1] - 1 if len(numbers) > 1 else 0
        elif token == "\x1bM":
            if self.row == self.top():
                self.lines[self.row:self.row] = [[]]
                del self.lines[self.row + self.rows:]
            else:
                self.row -= 1
        elif token in ("\x1b[?1049h", "\x1b[?1049l", "\x1b[?47h", "\x1b[?47l"):
            self.change_screen(last == "h")
        elif token in ("\x1b[?2004h", "\x1b[?2004l"):
            self.pastes_marked = token.endswith("h")
        else:
            raise ValueError(f"vt: nobody sends {token!r}")

    def feed(self, text):
        text, self.torn = self.torn + text, ""
        for token in TOKEN.findall(text):
            if token.startswith("\x1b"):
                if token[1:] in ("\\", "=", ">", "M") or len(token) > 2 and (token[-1].isalpha() and token[1] == "[" or
                                       token[1] == "]" and token[-1] in "\x07\\"):
                    self.obey(token)
                else:
                    self.torn = token
            elif token == "\n":
                self.go(self.row + 1)
            elif token == "\r":
                self.column = 0
            elif token == "\t":
                for _ in range(8 - self.column % 8):
                    self.put(" ")
            elif token in "\a\x18":
                pass
            elif token == "\b":
                self.column = max(0, self.column - 1)
            elif token < " " or "\x7f" <= token < "\xa0":
                raise ValueError(f"vt: a control byte came through: {token!r}")
            else:
                self.put(token)

    def resize(self, columns, rows):
        """As most terminals do: lines that were broken by width are broken anew. xterm and the
        Linux console keep each row, and cut it. A window that loses height loses rows below the
        cursor first."""
        kept = max(self.row + 1, self.top() + rows)
        del self.lines[kept:]
        self.wrapped = {row for row in self.wrapped if row < kept - 1}
        if not self.rewraps:
            self.lines[self.top():] = [line[:columns] for line in self.lines[self.top():]]
            self.columns, self.rows = columns, rows
            self.row, self.column = max(self.row, self.top()), min(self.column, columns - 1)
            return
        whole, cursor, at = [[]], None, 0
        for row, line in enumerate(self.lines):
            if row == self.row:
                cursor = (len(whole) - 1, len(whole[-1]) + self.column)
            whole[-1] = whole[-1] + line
            if row not in self.wrapped:
                whole.append([])
        whole.pop()
        self.lines, self.wrapped = [], set()
        self.columns, self.rows = columns, rows
        for number, line in enumerate(whole):
            first = len(self.lines)
            for at in range(0, max(1, len(line)), columns):
                if at > 0:
                    self.wrapped.add(len(self.lines) - 1)
                self.lines.append(line[at:at + columns])
            if cursor[0] == number:
                self.row = min(first + cursor[1] // columns, len(self.lines) - 1)
                self.column = cursor[1] % columns

    def text(self):
        """All lines, without blanks at their ends."""
        return "\n".join("".join(cell[0] for cell in line).rstrip() for line in self.lines)
