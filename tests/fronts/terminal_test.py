#!/usr/bin/env python3
"""glovebox exec --tty behind a real terminal: keys, sizes, job control, and the way back."""
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])  # it is started in another folder
PATIENCE_S = 60


class Terminal:
    """A terminal of ROWS x COLUMNS whose foreground is `glovebox exec --tty -- ARGV`."""

    def __init__(self, *argv, options=(), stdin=None):
        self.folder = tempfile.mkdtemp(prefix="glovebox-terminal-")
        os.chmod(self.folder, 0o755)
        for name in ("work", "home"):
            os.mkdir(os.path.join(self.folder, name))
        self.master, self.slave = pty.openpty()
        self.resize(30, 100)
        self.before = termios.tcgetattr(self.slave)
        self.printed = b""
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8",
                       "HOME": os.path.join(self.folder, "home")}
        environment.update({name: value for name, value in os.environ.items()
                            if name.endswith("SAN_OPTIONS")})
        self.process = subprocess.Popen(
            [GLOVEBOX, "exec", "--tty", *options, "--", *argv],
            stdin=self.slave if stdin is None else stdin, stdout=self.slave,
            stderr=self.slave, cwd=os.path.join(self.folder, "work"), env=environment,
            preexec_fn=self._take)

    def _take(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)
        shutil.rmtree(self.folder)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.master, keys)

    def _read(self, until):
        ready, _, _ = select.select([self.master], [], [], max(0, until - time.monotonic()))
        if ready:
            self.printed += os.read(self.master, 65536)
        return bool(ready)

    def wait_for(self, text):
        """Read until TEXT has come; what came up to it is forgotten."""
        until = time.monotonic() + PATIENCE_S
        while text not in self.printed:
            assert self._read(until), f"no {text!r} in {self.printed!r}"
        self.printed = self.printed[self.printed.index(text) + len(text):]

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


@tap.case
def it_is_a_terminal_of_the_cells_own():
    with Terminal("sh", "-c", "tty; stty size; echo $TERM; ls /dev/pts | tr '\\n' ' '") as terminal:
        assert terminal.end() == 0
        assert terminal.printed == b"/dev/pts/0\r\n30 100\r\nxterm\r\n0 ptmx ", terminal.printed
        assert terminal.is_as_before()


@tap.case
def ctrl_c_reaches_the_program():
    script = "trap 'echo caught; exit 3' INT; echo rea''dy; while :; do sleep 0.05; done"
    with Terminal("sh", "-c", script) as terminal:
        terminal.wait_for(b"ready")
        terminal.type(b"\x03")
        terminal.wait_for(b"caught")
        assert terminal.end() == 3
        assert terminal.is_as_before()


@tap.case
def ctrl_z_stops_the_job_of_a_shell_inside():
    script = """sh -c 'echo rea""dy; exec sleep 600'; echo co''de $?; kill -9 %1; exit 7"""
    with Terminal("bash", "-mc", script) as terminal:
        terminal.wait_for(b"ready")
        terminal.type(b"\x1a")
        terminal.wait_for(b"code 148")
        assert terminal.end() == 7, terminal.printed
        assert terminal.is_as_before()


@tap.case
def a_new_size_reaches_the_program():
    script = "trap 'stty size; exit 3' WINCH; echo rea''dy; while :; do sleep 0.05; done"
    with Terminal("sh", "-c", script) as terminal:
        terminal.wait_for(b"ready")
        terminal.resize(44, 133)
        terminal.wait_for(b"44 133")
        assert terminal.end() == 3


@tap.case
def an_interpreter_talks_and_ends():
    with Terminal("python3", "-q") as terminal:
        terminal.wait_for(b">>> ")
        terminal.type(b"6*7\r")
        terminal.wait_for(b"42")
        terminal.wait_for(b">>> ")
        terminal.type(b"\x04")
        assert terminal.end() == 0


@tap.case
def a_pager_and_an_editor_work():
    for argv, keys in ((["less", "long"], b"q"), (["vi", "long"], b":wq\r")):
        if shutil.which(argv[0]) is None:
            continue
        with Terminal("sh", "-c", f"seq 1 500 > long; {' '.join(argv)}; echo co''de $?") as terminal:
            terminal.wait_for(b"20")
            terminal.type(keys)
            terminal.wait_for(b"code 0")
            assert terminal.end() == 0


@tap.case
def a_terminal_inside_the_terminal():
    with Terminal("script", "-qec", "tty; exit 6", "/dev/null") as terminal:
        code = terminal.end()
        assert code == 6 and b"/dev/pts/1" in terminal.printed, terminal.printed


@tap.case
def a_flood_arrives_whole():
    with Terminal("sh", "-c", "seq 1 100000; exit 4") as terminal:
        assert terminal.end() == 4
        assert terminal.printed == b"".join(b"%d\r\n" % i for i in range(1, 100001))


@tap.case
def term_and_the_timeout_put_the_terminal_back():
    with Terminal("sh", "-c", "echo rea''dy; sleep 600") as terminal:
        terminal.wait_for(b"ready")
        assert not termios.tcgetattr(terminal.slave)[3] & termios.ECHO
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 128 + signal.SIGTERM
        assert terminal.is_as_before()
    with Terminal("sleep", "600", options=("--timeout", "0.3")) as terminal:
        assert terminal.end() == 124
        assert b"ended after 0.3 s" in terminal.printed
        assert terminal.is_as_before()


@tap.case
def a_killed_front_leaves_the_terminal_as_it_was():
    with Terminal("sh", "-c", "echo rea''dy; sleep 600") as terminal:
        terminal.wait_for(b"ready")
        terminal.process.kill()
        assert terminal.end() == -signal.SIGKILL
        assert terminal.is_as_before()


@tap.case
def a_stopped_front_gives_the_terminal_back_meanwhile():
    with Terminal("sh", "-c", "echo rea''dy; read line; echo got $line") as terminal:
        terminal.wait_for(b"ready")
        terminal.process.send_signal(signal.SIGTSTP)
        os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED | os.WNOWAIT)
        assert terminal.is_as_before()
        terminal.process.send_signal(signal.SIGCONT)
        until = time.monotonic() + PATIENCE_S
        while termios.tcgetattr(terminal.slave)[3] & termios.ECHO and time.monotonic() < until:
            time.sleep(0.01)
        terminal.type(b"this\r")
        terminal.wait_for(b"got this")
        assert terminal.end() == 0


@tap.case
def what_could_not_start_is_said_on_a_sound_terminal():
    with Terminal("no-such-program") as terminal:
        assert terminal.end() == 127
        assert terminal.printed == b"glovebox: no-such-program: command not found.\r\n"
        assert terminal.is_as_before()


tap.play()
