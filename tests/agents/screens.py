"""A program's screen when it has come to rest, in a terminal of a given size. The screen is that of pyte, the package
python3-pyte of Debian."""
import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

# A python3 of another place finds Debian's packages as well; they come last.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    import pyte
except ImportError:
    pyte = None

# A program that has not come to rest by then is looked at as it is.
LIMIT_S, END_S = 90, 5


def of(argv, quiet_s, size, **how):
    """The lines of ARGV's screen, of SIZE (columns, rows), once they have been the same for QUIET_S."""
    columns, rows = size

    class Screen(pyte.Screen):
        """It leaves out what pyte takes for a colour or a question: the modes of keyboards."""

        def select_graphic_rendition(self, *numbers, private=False):
            if not private:
                super().select_graphic_rendition(*numbers)

        def report_device_status(self, *_, **__):
            pass

    screen = Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def take_terminal():
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=take_terminal, **how)
    os.close(theirs)
    try:
        began = since = time.monotonic()
        seen = list(screen.display)
        while time.monotonic() - began < LIMIT_S:
            if select.select([ours], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    some = os.read(ours, 65536)
                    # What a terminal answers.
                    if b"\x1b[c" in some:
                        os.write(ours, b"\x1b[?62;c")
                    if b"\x1b[6n" in some:
                        os.write(ours, b"\x1b[%d;%dR" % (screen.cursor.y + 1, screen.cursor.x + 1))
                    stream.feed(some)
            if screen.display != seen:
                seen, since = list(screen.display), time.monotonic()
            if process.poll() is not None or (any(map(str.strip, seen)) and time.monotonic() - since > quiet_s):
                break
        return [line.rstrip() for line in seen]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(ours)
