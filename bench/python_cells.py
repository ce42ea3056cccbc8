"""The group of the Python package, `python`: what a program in Python waits for. `figures` are the same as rows for
the group of many cells."""
import os
import statistics
import subprocess
import sys
import time

import warm

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python", "src"))

ROUNDS = 300
WARM_UP = 20
MOST_EXEC_MS, MOST_WHOLE_MS = 1.2, 8.0
BARE, EXEC, WHOLE = "true, by subprocess", "Python: warm exec", "Python: cell open, exec, close"


def works(build):
    """An engine, and what is measured with it."""
    import glovebox  # pylint: disable=import-outside-toplevel

    engine = glovebox.Engine(os.path.join(build, "glovebox"))
    held = glovebox.Cell(engine=engine)

    def whole():
        with glovebox.Cell(engine=engine) as cell:
            assert cell.exec(["true"]).exit_code == 0

    return engine, {BARE: lambda: subprocess.run(["true"], check=True), EXEC: lambda: held.exec(["true"]), WHOLE: whole}


def play(build, running, rounds, _workspace):
    engine, work = works(build)
    with engine:
        for turn in range(rounds + WARM_UP):
            row = []
            for one in running:
                began = time.perf_counter_ns()
                work[one.name]()
                row.append((time.perf_counter_ns() - began) // 1000)
            if turn >= WARM_UP:
                yield row


def figures(build, rounds=ROUNDS):
    """The two rows of this group, in milliseconds."""
    engine, work = works(build)
    with engine:
        for name, most in ((EXEC, MOST_EXEC_MS), (WHOLE, MOST_WHOLE_MS)):
            times = []
            for turn in range(rounds + WARM_UP):
                began = time.perf_counter()
                work[name]()
                if turn >= WARM_UP:
                    times.append(1000 * (time.perf_counter() - began))
            middle = statistics.median(times)
            yield warm.figure(name, middle, "ms", f"≤ {most} ms", middle <= most)


def python_group(group, command, _build, _workspace):
    return group("python", "A program in a cell, from Python", [command(BARE, []), command(EXEC, []), command(WHOLE, [])],
                 [(EXEC, MOST_EXEC_MS), (WHOLE, MOST_WHOLE_MS), (EXEC, BARE, None), (WHOLE, BARE, None)],
                 play=play, rounds=ROUNDS)


GROUPS = {"python": python_group}
