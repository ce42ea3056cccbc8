"""terminal: a program behind a real terminal, with a home and a folder of its own, and a person at it."""
import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dev"))
import vt  # noqa: E402
from place import Home, sanitizers  # noqa: E402

PATIENCE_S = 180
GREETING = b"/help lists what there is;"
DEAF_S = 0.6  # longer than the front throws keys away before a question
# What a terminal is asked: to go to a place and tell the place, and to tell that it is there.
ASKED = re.compile(rb"\033\[(\d+;\d+)H\033\[6n|\033\[5n|\033\[c")


class Terminal(Home):
    """A terminal of ROWS x COLUMNS whose foreground is ARGV. LOOKED_AT: `screen` has what a
    person would see; only for what vt knows. REWRAPS: it breaks rows anew, and says who it is."""

    def __init__(self, *argv, stdin=None, environment=None, files=None, rows=30, columns=100,
                 looked_at=True, answers=True, rewraps=True):
        super().__init__("glovebox-terminal-")
        for name, text in (files or {}).items():
            os.makedirs(os.path.dirname(os.path.join(self.work, name)), exist_ok=True)
            with open(os.path.join(self.work, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.master, self.slave = pty.openpty()
        self.looked_at, self.answers, self.asked = looked_at, answers, b""
        self.screen = vt.Screen(columns, rows, rewraps)
        self.knows = b""  # what it answers to the questions at the start, but for the last one
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.printed = b""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        variables = {"PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8",
                     "HOME": self.home, **({"VTE_VERSION": "7000"} if rewraps else {}),
                     **sanitizers(), **(environment or {})}
        self.argv, self.variables, self.stdin = argv, variables, stdin
        self.run_again()

    def run_again(self):
        """The same program once more, after its end."""
        while self._read(time.monotonic()):
            pass
        self.printed, self.begun = b"", False
        self.process = subprocess.Popen(
            self.argv, stdin=self.slave if self.stdin is None else self.stdin,
            stdout=self.slave, stderr=self.slave, cwd=self.work, env=self.variables,
            preexec_fn=self._take)

    def _take(self):
        os.setsid()
        # As a terminal does: what a shell in the background has ignored is not passed on.
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def __exit__(self, *how):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)
        super().__exit__(*how)

    def resize(self, rows, columns):
        """The window has another size; the lines on it are broken anew."""
        self.screen.resize(columns, rows)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        """All KEYS, however many: what is printed meanwhile is read."""
        while keys:
            _, ready, _ = select.select([], [self.master], [], 0.01)
            if ready:
                keys = keys[os.write(self.master, keys[:512]):]
            self._read(time.monotonic())

    def _read(self, until):
        ready, _, _ = select.select([self.master], [], [], max(0, until - time.monotonic()))
        if ready:
            data = os.read(self.master, 65536)
            self.printed += data
            self._answer(data)
            if self.looked_at:
                self.screen.feed(self.decoder.decode(data))
        return bool(ready)

    def _answer(self, data):
        """Tell what DATA asks, as a terminal does in the order of what it draws."""
        self.asked += data
        rest = 0
        for found in ASKED.finditer(self.asked):
            rest = found.end()
            if self.answers:
                os.write(self.master, b"\033[%sR" % found[1] if found[1] else
                         self.knows + b"\033[?62;22c" if found[0].endswith(b"c") else b"\033[0n")
        self.asked = self.asked[rest:][-32:]

    def wait_for(self, text):
        """Read until TEXT has come; what came up to it is forgotten."""
        until = time.monotonic() + PATIENCE_S
        while text not in self.printed:
            assert self._read(until), f"no {text!r} in {self.printed!r}"
        self.printed = self.printed[self.printed.index(text) + len(text):]

    def wait_until(self, holds, what):
        """Read until HOLDS() is true."""
        until = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until, f"not {what}:\n{self.screen.text()}"
            self._read(time.monotonic() + 0.05)

    def begins(self):
        """Wait until a conversation has greeted: it takes keys before that, but what they ask for waits."""
        self.wait_until(lambda: self.begun or GREETING in self.printed, "greeted")
        self.begun = True

    def end(self):
        """The exit code; everything printed has been read."""
        until = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < until, f"still there: {self.printed!r}"
            self._read(time.monotonic() + 0.02)
        while self._read(time.monotonic()):
            pass
        return self.process.returncode

    def is_as_before(self):
        """Have the terminal's settings come back? The guard of a killed front needs a moment."""
        until = time.monotonic() + PATIENCE_S
        while termios.tcgetattr(self.slave) != self.before:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True


class Person(Terminal):
    """A person whose program starts by start(), when their home has what it is to have."""

    def __init__(self, **more):
        super().__init__("true", looked_at=False, **more)
        self.process.wait()

    def start(self, *argv):
        self.argv = argv
        self.run_again()

    def answer(self, keys=b"y\r"):
        """Type KEYS when the front listens."""
        self.wait_for(b"anything else: no. ")
        time.sleep(DEAF_S)
        self.type(keys)
