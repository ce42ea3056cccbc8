#!/usr/bin/env python3
"""glovebox exec --tty behind a real terminal: keys, sizes, job control, and the way back."""
import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
import signal
import sys
import termios
import time

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402
import terminal  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])  # it is started in another folder
PATIENCE_S = terminal.PATIENCE_S
TRIES = 5


class Terminal(terminal.Terminal):
    """The foreground is `glovebox exec --tty -- ARGV`."""

    def __init__(self, *argv, options=()):
        super().__init__(GLOVEBOX, "exec", "--tty", *options, "--", *argv,
                         looked_at=False)


@tap.case
def it_is_a_terminal_of_the_cells_own():
    with Terminal("sh", "-c", "tty; stty size; echo $TERM; ls /dev/pts | tr '\\n' ' '") as tty:
        assert tty.end() == 0
        assert tty.printed == b"/dev/pts/0\r\n30 100\r\nxterm\r\n0 ptmx ", tty.printed
        assert tty.is_as_before()


@tap.case
def ctrl_c_reaches_the_program():
    script = "trap 'echo caught; exit 3' INT; echo rea''dy; while :; do sleep 0.05; done"
    with Terminal("sh", "-c", script) as tty:
        tty.wait_for(b"ready")
        tty.type(b"\x03")
        tty.wait_for(b"caught")
        assert tty.end() == 3
        assert tty.is_as_before()


@tap.case
def ctrl_z_stops_the_job_of_a_shell_inside():
    script = """sh -c 'echo rea""dy; exec sleep 600'; echo co''de $?; kill -9 %1; exit 7"""
    with Terminal("bash", "-mc", script) as tty:
        tty.wait_for(b"ready")
        tty.type(b"\x1a")
        tty.wait_for(b"code 148")
        assert tty.end() == 7, tty.printed
        assert tty.is_as_before()


@tap.case
def a_new_size_reaches_the_program():
    script = "trap 'stty size; exit 3' WINCH; echo rea''dy; while :; do sleep 0.05; done"
    with Terminal("sh", "-c", script) as tty:
        tty.wait_for(b"ready")
        tty.resize(44, 133)
        tty.wait_for(b"44 133")
        assert tty.end() == 3


@tap.case
def an_interpreter_talks_and_ends():
    with Terminal("python3", "-q") as tty:
        tty.wait_for(b">>> ")
        tty.type(b"6*7\r")
        tty.wait_for(b"42")
        tty.wait_for(b">>> ")
        tty.type(b"\x04")
        assert tty.end() == 0


@tap.case
def a_pager_and_an_editor_work():
    for argv, keys in ((["less", "long"], b"q"), (["vi", "long"], b":wq\r")):
        if shutil.which(argv[0]) is None:
            continue
        with Terminal("sh", "-c", f"seq 1 500 > long; {' '.join(argv)}; echo co''de $?") as tty:
            tty.wait_for(b"20")
            tty.type(keys)
            tty.wait_for(b"code 0")
            assert tty.end() == 0


@tap.case
def a_terminal_inside_the_terminal():
    with Terminal("script", "-qec", "tty; exit 6", "/dev/null") as tty:
        code = tty.end()
        assert code == 6 and b"/dev/pts/1" in tty.printed, tty.printed


@tap.case
def a_flood_arrives_whole():
    with Terminal("sh", "-c", "seq 1 100000; exit 4") as tty:
        assert tty.end() == 4
        assert tty.printed == b"".join(b"%d\r\n" % i for i in range(1, 100001))


@tap.case
def term_and_the_timeout_put_the_terminal_back():
    with Terminal("sh", "-c", "echo rea''dy; sleep 600") as tty:
        tty.wait_for(b"ready")
        assert not termios.tcgetattr(tty.slave)[3] & termios.ECHO
        tty.process.send_signal(signal.SIGTERM)
        assert tty.end() == 128 + signal.SIGTERM
        assert tty.is_as_before()
    with Terminal("sleep", "600", options=("--timeout", "0.3")) as tty:
        assert tty.end() == 124
        assert b"ended after 0.3 s" in tty.printed
        assert tty.is_as_before()


@tap.case
def a_killed_front_leaves_the_terminal_as_it_was():
    with Terminal("sh", "-c", r"printf '\033[?1049h\033[?1000h\033[>1u\033[?25lrea''dy'; sleep 600") as tty:
        tty.wait_for(b"ready")
        tty.process.kill()
        assert tty.end() == -signal.SIGKILL
        assert tty.is_as_before()
        for mode in b"\x1b[<8u", b"\x1b[?1000l", b"\x1b[?1049l", b"\x1b[?25h":
            tty.wait_for(mode)


@tap.case
def a_stopped_front_gives_the_terminal_back_meanwhile():
    with Terminal("sh", "-c", "echo rea''dy; read line; echo got $line") as tty:
        tty.wait_for(b"ready")
        tty.process.send_signal(signal.SIGTSTP)
        os.waitid(os.P_PID, tty.process.pid, os.WSTOPPED | os.WNOWAIT)
        assert tty.is_as_before()
        tty.process.send_signal(signal.SIGCONT)
        until = time.monotonic() + PATIENCE_S
        while termios.tcgetattr(tty.slave)[3] & termios.ECHO and time.monotonic() < until:
            time.sleep(0.01)
        tty.type(b"this\r")
        tty.wait_for(b"got this")
        assert tty.end() == 0


@tap.case
def what_could_not_start_is_said_on_a_sound_terminal():
    with Terminal("no-such-program") as tty:
        assert tty.end() == 127
        assert tty.printed == b"glovebox: no-such-program: command not found.\r\n"
        assert tty.is_as_before()


FORBIDDEN = (b"\x1b]52;c;aGVsbG8=\x07", b"\x9d52;c;?\x9c", b"\x1b]5113;ac=send\x1b\\", b"\x1b[21t", b"\xc2\x9b20t",
             b"\x1bP$qm\x1b\\", b"\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\", b"\x1b]1337;File=name=YQ==:YWJj\x07")
ORDINARY = b"caf\xc3\xa9 \xe2\x9d\x9d\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\"

# Comes behind a program that has sent the terminal any command: text after it is seen.
SEEN = b"\x1b[0m\x1b]8;;\x1b\\\x1b(B\x0f\x1b[?5l\x1b[?6l\x1b[4l\x1b[?69l\x1b7\x1b[r\x1b8\x1b[?7h"


@tap.case
def what_glovebox_says_is_seen_after_a_program_that_hides_text():
    for options in (("exec", "--tty"), ("exec",)):
        for hides in r"\033[8m", r"\033(0", r"\016", r"\033[3;4r", r"\033[?7l":
            with terminal.Terminal(GLOVEBOX, *options, "--", "sh", "-c", f"printf '{hides}'; echo x > .envrc",
                                   looked_at=False) as tty:
                tty.wait_for(SEEN)
                tty.wait_for(b".envrc")
                assert tty.end() == 0


@tap.case
def a_stuck_terminal_holds_up_nothing():
    """Nothing is read from it until the end."""
    script = "head -c 300000 /dev/zero | tr '\\0' x; echo e >&2"
    with Terminal("sh", "-c", script, options=("--timeout", "2")) as tty:
        assert tty.process.wait(PATIENCE_S) == 124
        tty.wait_for(b"glovebox: ended after 2 s")
        assert tty.is_as_before()
    with terminal.Terminal(GLOVEBOX, "exec", "--", "sh", "-c", "head -c 50000 /dev/zero | tr '\\0' x",
                           looked_at=False) as tty:
        time.sleep(2)  # the program has ended, and its output waits
        assert tty.process.poll() is None
        tty.process.send_signal(signal.SIGTERM)
        assert tty.process.wait(PATIENCE_S) in (0, 128 + signal.SIGTERM)


@tap.case
def what_reaches_beyond_the_screen_is_taken_out():
    """In a terminal of its own, and where only its output is one."""
    words = shlex.quote("".join(f"\\{byte:03o}" for byte in b"|".join(FORBIDDEN) + ORDINARY))
    for options in (("exec", "--tty"), ("exec",)):
        with terminal.Terminal(GLOVEBOX, *options, "--", "sh", "-c", f"printf {words}", looked_at=False) as tty:
            assert tty.end() == 0
            assert tty.printed == b"|" * (len(FORBIDDEN) - 1) + ORDINARY + SEEN, tty.printed


@tap.case
def the_clipboard_is_set_when_asked_for():
    script = r"printf 'a\033]52;c;aGVsbG8=\007b\033]52;c;?\007c'"
    with Terminal("sh", "-c", script, options=("--clipboard",)) as tty:
        assert tty.end() == 0
        assert tty.printed == b"a\x1b]52;c;aGVsbG8=\x07bc" + SEEN, tty.printed


@tap.case
def modes_are_switched_off_and_late_answers_thrown_away():
    script = r"printf '\033[?1049h\033[?1000;1006h\033[?2004h\033[>1u\033[?25lrea''dy'"
    for _ in range(TRIES):
        with Terminal("sh", "-c", script) as tty:
            tty.wait_for(b"ready")
            tty.wait_for(b"\x1b[<1u\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?1049l\x1b[?25h")
            # On a busy machine the answer may come later than any terminal's would.
            tty.type(b"\x1b]l62;answer\n")
            assert tty.end() == 0
            assert tty.is_as_before()
            waiting = fcntl.ioctl(tty.slave, termios.FIONREAD, bytes(4))
        if waiting == bytes(4):
            break
    assert waiting == bytes(4), waiting


@tap.case
def a_sentence_of_the_doctor_fills_its_lines():
    with terminal.Terminal(GLOVEBOX, "doctor", columns=40, looked_at=False) as tty:
        tty.end()
        said = tty.printed.decode().replace("\r", "")
    indent = "\n" + 7 * " "
    assert indent.join(("", "every file of yours can be read",
                        "and changed; with seccomp no",
                        "network, no sockets of the host,",
                        "no signals out, no tracing, a")) in said, said


@tap.case
def lists_and_help_break_lines_between_words():
    asked = "; ".join(f"{shlex.quote(GLOVEBOX)} {verb}" for verb in ("help", "run --help", "agents list"))
    with terminal.Terminal("sh", "-c", asked, columns=30, looked_at=False) as tty:
        assert tty.end() == 0
        rows = tty.printed.decode().replace("\r", "").splitlines()
    long = [row for row in rows if len(row) > 30]
    assert all(row.lstrip().split()[0] in ("glovebox", "export") for row in long), long
    assert "  -m, --model MODEL       ask" in rows and "      this model (default:" in rows, rows
    with terminal.Terminal(GLOVEBOX, "batch", "--help", columns=80, looked_at=False) as tty:
        assert tty.end() == 0
        rows = tty.printed.decode().replace("\r", "").splitlines()
    # A paragraph is filled: no line of it ends while a word of the next one fits.
    prose = rows[2:rows.index("Options")]
    for row, after in zip(prose, prose[1:]):
        assert not row or not after or len(row) + 1 + len(after.split()[0]) > 80, (row, after)
    # What is read by a program stays as it is.
    assert "\n  run                     let an agent work on this folder\n" in \
        tap.run([GLOVEBOX, "help"]).stdout


@tap.case
def a_list_has_its_words_in_the_order_that_a_pipe_gets():
    for verb in ("tool", "agents"):
        with terminal.Terminal(GLOVEBOX, verb, "list", columns=60, looked_at=False) as tty:
            assert tty.end() == 0
            words = tty.printed.decode().split()
            plain = tap.run([GLOVEBOX, verb, "list"], cwd=tty.work, env=tty.variables)
        assert words == plain.stdout.split(), words


@tap.case
def what_went_wrong_is_broken_between_words():
    asked = "; ".join(f"{shlex.quote(GLOVEBOX)} {verb}" for verb in
                      ("policy", "agents show nobody-of-that-name", "undo 99999",
                       "policy explain -- 'git log -n 5 | head'"))
    with terminal.Terminal("sh", "-c", asked, columns=34, looked_at=False) as tty:
        tty.end()
        rows = tty.printed.decode().replace("\r", "").splitlines()
    long = [row for row in rows if len(row) > 34]
    assert all(row.lstrip().split()[0] == "glovebox" for row in long), long
    assert "There is nothing to undo here." in rows or "There is no step 99999; see: glovebox" \
        in " ".join(rows), rows


@tap.case
def a_long_undo_says_how_far_it_is():
    with terminal.Terminal(GLOVEBOX, "undo", rows=24, columns=80) as tty:
        tty.end()
        many = [os.path.join(tty.work, f"f{number}") for number in range(2000)]
        for name in many:
            with open(name, "w", encoding="utf-8") as file:
                file.write(name)
        # On a busy machine it may be over before it is stopped: then it is done again.
        for _ in range(TRIES):
            subprocess.run([GLOVEBOX, "tool", "call", "bash", json.dumps({"command": "rm f*"})],
                           cwd=tty.work, env=tty.variables, check=True, capture_output=True)
            store = os.path.join(tty.home, ".local", "state", "glovebox", "undo")
            store = os.path.join(store, os.listdir(store)[0])
            before = set(os.listdir(store))
            tty.printed = b""
            tty.run_again()
            # Its log is there before the first file is compared. Stopped, it has taken long.
            while not set(os.listdir(store)) - before:
                assert tty.process.poll() is None, tty.printed
            tty.process.send_signal(signal.SIGSTOP)
            time.sleep(1.1)
            tty.process.send_signal(signal.SIGCONT)
            tty.end()
            said = tty.printed.decode()
            if " of 2000 files" in said:
                break
        assert " of 2000 files" in said, said
        assert "2000 files restored" in said and said.count("of 2000 files\n") == 0, said
        assert all(os.path.exists(name) for name in many)


@tap.case
def the_last_line_of_a_command_is_seen_while_it_runs():
    command = "while [ ! -e go ]; do echo it waits; sleep 0.1; done; echo it went"
    with terminal.Terminal(GLOVEBOX, "tool", "call", "bash", json.dumps({"command": command}), rows=24,
                           columns=80, looked_at=False) as tty:
        tty.wait_for(b"glovebox: it waits")
        with open(os.path.join(tty.work, "go"), "w", encoding="utf-8"):
            pass
        assert tty.end() == 0
        said = tty.printed.decode()
        # The line goes before the result is printed, which is the same as without a terminal.
        assert "\r\x1b[Kit waits\r\n" in said and "it went\r\n[exit code 0" in said, said
    with terminal.Terminal("sh", "-c", f"exec {shlex.quote(GLOVEBOX)} tool call bash \"$0\" 2>errors | cat",
                           json.dumps({"command": "for i in 1 2 3; do echo $i; sleep 0.4; done"}),
                           looked_at=False) as tty:
        assert tty.end() == 0 and tty.printed.startswith(b"1\r\n2\r\n3\r\n[exit code 0"), tty.printed


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return []


@tap.case
def a_long_review_says_how_far_it_is():
    with terminal.Terminal(GLOVEBOX, "review", "--stat", rows=24, columns=80, looked_at=False) as tty:
        tty.end()
        subprocess.run([GLOVEBOX, "exec", "--review", "--", "sh", "-c", "seq 300 | xargs touch"], cwd=tty.work,
                       env=tty.variables, check=True, capture_output=True)
        # The front is stopped while it makes the cell, and has waited long when it goes on.
        for _ in range(TRIES):
            tty.printed = b""
            tty.run_again()
            while not children(tty.process.pid) and tty.process.poll() is None:
                pass
            tty.process.send_signal(signal.SIGSTOP)
            time.sleep(0.7)
            tty.process.send_signal(signal.SIGCONT)
            assert tty.end() == 0, tty.printed
            said = tty.printed.decode()
            if "glovebox: " in said:
                break
        assert re.search(r"\rglovebox: (reading: \d+|comparing: \d+ of 300) paths", said), said
        assert "\r\x1b[K" in said and said.rstrip().endswith("300 files added"), said


tap.play()
