"""tap: the few lines that tests of scripts share: run functions as cases, report as TAP."""
import os
import signal
import subprocess
import sys
import time
import traceback


def run(command, **options):
    """The finished process, its output as text."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def refused(program, words, *parts):
    """PROGRAM ends with 2 for WORDS, says nothing on standard output, and each of PARTS on standard error."""
    done = run([program, *words], stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and done.stdout == "", (done.returncode, done.stdout)
    for part in parts:
        assert part in done.stderr, done.stderr


def hear_signals():
    """What we start has SIGINT and SIGHUP as a person's terminal has them. nohup(1) and a shell's
    background switch them off for everything below."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


# How long the start of a small program takes on a machine at rest, and how many are started to see it.
START_S = 0.0015
STARTS = 40


SLOWEST = [1]


def slowness():
    """How many times slower than on a machine at rest a program starts here, now or when we asked before:
    the busy moment may be over already. At least 1."""
    start = time.monotonic()
    for _ in range(STARTS):
        subprocess.run(["/bin/true"], check=True)
    SLOWEST[0] = max(SLOWEST[0], (time.monotonic() - start) / STARTS / START_S)
    return SLOWEST[0]


def is_late(seconds, most):
    """Did it take SECONDS where MOST are allowed on a machine at rest? A busy or slow one has as many
    times more as it is slower when we ask. MOST tells an end from a hang: it is far below what a hang
    takes, and far above what the work takes on a busy machine."""
    return seconds > most and seconds > most * slowness()


class Skip(Exception):
    """Raised by a case that cannot be played here; its text is the reason."""


CASES = []
# Those of them that a program without sanitizers is asked: it is killed many times, or starts thousands of others,
# in which sanitizers find nothing that other cases do not show them (dev/check release).
PLAIN = set()


def case(function):
    """Decorator: the function is a case, its name a sentence."""
    CASES.append(function)
    return function


def plain_case(function):
    """Decorator: the function is such a case, and left out where play() has a program with sanitizers."""
    PLAIN.add(function.__name__)
    return case(function)


def is_sanitized(program):
    with open(program, "rb") as file:
        return b"__asan_init" in file.read()


def play(program=None):
    """Run all cases, or those whose sentence holds $TAP_ONLY, and exit. With --plain only those are run that
    want a PROGRAM without sanitizers."""
    hear_signals()
    failed = 0
    only = os.environ.get("TAP_ONLY", "").replace(" ", "_")
    left_out = PLAIN if program and is_sanitized(program) else set()
    CASES[:] = [function for function in CASES if only in function.__name__
                and function.__name__ not in left_out
                and ("--plain" not in sys.argv or function.__name__ in PLAIN)]
    print(f"1..{len(CASES)}")
    for number, function in enumerate(CASES, 1):
        sentence = function.__name__.replace("_", " ")
        try:
            function()
        except Skip as reason:
            print(f"ok {number} - {sentence} # SKIP {reason}")
        except Exception:
            failed += 1
            print(f"not ok {number} - {sentence}")
            for line in traceback.format_exc().splitlines():
                print("# " + line)
        else:
            print(f"ok {number} - {sentence}")
    sys.exit(1 if failed else 0)
