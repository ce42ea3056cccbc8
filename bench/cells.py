"""The group of many cells, `cells`: an engine (`glovebox serve`) with cells that wait. What an idle one costs, beside
bubblewrap that holds a sleep and, where it is installed, podman; whether the opening of one more takes longer when
there are many; the first command in all of them at once; and what a caller in Python waits for. All by the wire,
from Python, as a program would.

The targets in milliseconds were set on a machine where a cold `glovebox exec -- true` took COLD_MS. Where it takes longer,
a missed one may only tell of the machine: each of them is therefore told beside that command as well.
"""
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import warm

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "serve"))

ROUNDS = 300
FEW, MANY = 500, 2000
UNDER_WAY = 1024  # calls
USED_DESCRIPTORS, RUNNING_DESCRIPTORS = 4, 8  # of the engine, for a used cell and for its call that runs
OWN_DESCRIPTORS = 1000  # enough for the rest
DESCRIPTORS = 1 << 16  # as many as are asked for, where root may
COLD_MS = 5.9  # where the targets were set
COLD_ROUNDS = 40
PEERS_HELD = 50  # sleeps of a peer: enough for the machine's memory to tell
SETTLE_S = 3     # the kernel's own work after an opening, such as that on networks
KIB = 1024
MOST_KIB, MOST_MACHINE_KIB = 250, 600
FIRST_S = {FEW: 1.5, MANY: 6}
FLAT, LEAST_A_SECOND = 1.2, 300
OPEN_EXEC_CLOSE, WARM_EXEC = "open, true, close: a cell", "true in an open cell"
BARE, BUBBLEWRAP, COLD = "true, by subprocess", "true, bubblewrap", "true, cold glovebox exec"
MOST_WARM_MS, MOST_WHOLE_MS = 1.2, 8.0
WALLS = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
POLICY = {"write": ["."]}


def engine_of(build, folder):
    import wire  # pylint: disable=import-outside-toplevel
    return wire.Engine(os.path.join(build, "glovebox"), folder, "--max-cells", "4096")


class Served:
    """An engine in a folder of its own."""

    def __init__(self, build):
        self.build = build

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="bench-cells-", dir="/var/tmp")
        self.engine = engine_of(self.build, self.folder)
        return self.engine

    def __exit__(self, *_):
        self.engine.end()
        self.engine.close()


# ---- What a caller waits for. ----

def colds(target_ms):
    """A target in milliseconds as so many times a cold exec."""
    return round(target_ms / COLD_MS, 2)


def cold_exec(build, folder):
    return [os.path.join(build, "glovebox"), "exec", "-C", folder, "--", "true"]


def cold_ms(build):
    """Milliseconds of a cold exec now."""
    with tempfile.TemporaryDirectory(prefix="bench-cells-", dir="/var/tmp") as folder:
        argv = cold_exec(build, folder)
        times = [took_us(lambda: subprocess.run(argv, check=True)) for _ in range(COLD_ROUNDS)]
    return statistics.median(times) / 1000


def took_us(work):
    began = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - began) // 1000


def play(build, running, rounds, workspace):
    with Served(build) as engine:
        held = engine.open()

        def whole():
            cell = engine.open()
            assert engine.result("exec/run", cell=cell, argv=["true"])["exit"] == 0
            engine.result("cell/close", cell=cell)

        work = {WARM_EXEC: lambda: engine.result("exec/run", cell=held, argv=["true"]), OPEN_EXEC_CLOSE: whole,
                BARE: lambda: subprocess.run(["true"], check=True),
                BUBBLEWRAP: lambda: subprocess.run([*WALLS, "true"], check=True),
                COLD: lambda: subprocess.run(cold_exec(build, workspace), check=True)}
        for turn in range(rounds + 5):
            row = [took_us(work[one.name]) for one in running]
            if turn >= 5:
                yield row


# ---- What many of them cost. ----

def machine_kib():
    """Memory of this machine that is in use, also the kernel's."""
    with open("/proc/meminfo", encoding="ascii") as file:
        told = dict(re.findall(r"^(\w+):\s+(\d+)", file.read(), re.M))
    return int(told["MemTotal"]) - int(told["MemAvailable"])


def settled_kib():
    time.sleep(SETTLE_S)
    return machine_kib()


def ticks_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:15]))


def processor_of(pid):
    """
    Seconds of processor time. An anchor has had less than a tick: the clock of the scheduler tells it, which
    forgets threads that have ended.
    """
    ticked = ticks_of(pid) / os.sysconf("SC_CLK_TCK")
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return max(ticked, int(file.read().split()[0]) / 1e9)
    except (OSError, ValueError, IndexError):
        return ticked


def processor_s(engine):
    """Processor time of an engine and all below it that runs."""
    seconds = 0
    for pid in [engine.process.pid, *engine.children()]:
        try:
            seconds += processor_of(pid)
        except OSError:
            continue
    return seconds


class Opened:
    """COUNT cells of ENGINE, and what it took to open them, a hundred at a time."""

    def __init__(self, engine, count):
        self.cells, self.walls, self.processors = [], [], []
        for _ in range(count // 100):
            busy, began = processor_s(engine), time.perf_counter()
            self.cells += [engine.open() for _ in range(100)]
            self.walls.append(time.perf_counter() - began)
            self.processors.append(processor_s(engine) - busy)


def under_way_most(count):
    """How many calls an engine takes at the same time, when COUNT of its cells are used."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(UNDER_WAY, (most - OWN_DESCRIPTORS - USED_DESCRIPTORS * count) // RUNNING_DESCRIPTORS)


def at_once(engine, cells):
    """Seconds until a first command in each of CELLS has answered; as many under way as an engine takes."""
    most = under_way_most(len(cells))
    began, waiting, under_way = time.perf_counter(), list(cells), set()
    while waiting or under_way:
        while waiting and len(under_way) < most:
            under_way.add(engine.send("exec/run", cell=waiting.pop(), argv=["true"]))
        answer = engine.take(lambda message: message.get("id") in under_way)
        under_way.remove(answer["id"])
        assert answer.get("result", {}).get("exit") == 0, answer
    return time.perf_counter() - began


def share(pids, key):
    """KiB of KEY (Pss, Private_Dirty, …) of PIDS together."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                total += int(re.search(rf"^{key}:\s+(\d+)", file.read(), re.M).group(1))
        except (OSError, AttributeError):
            continue
    return total


def beside_cold(of, each_ms, target_ms, cold):
    """EACH_MS, for which a target was set in milliseconds, beside a cold exec of COLD milliseconds."""
    ratio = each_ms / cold
    return warm.figure(of, ratio, "×", f"≤ {colds(target_ms)} ×", ratio <= colds(target_ms), beside=COLD)


def idle_figures(engine, before_kib, cold):
    """The first cell has proved that workers can be made; the others wait as all cells do."""
    proof = engine.open()
    engine.result("cell/close", cell=proof)
    early, held, front = engine.children(), settled_kib(), share([engine.process.pid], "Pss")
    opened = Opened(engine, FEW)
    machine = (settled_kib() - held) / FEW
    pids = engine.children()
    more = [pid for pid in pids if pid not in early]
    yield warm.figure(f"{FEW} idle cells: processes of each", len(more) / FEW, "", "1", len(more) == FEW)
    kib = share(more, "Pss") / FEW
    yield warm.figure(f"{FEW} idle cells: memory (PSS) of each", kib, "KiB", f"≤ {MOST_KIB} KiB", kib <= MOST_KIB)
    yield warm.figure(f"{FEW} idle cells: and in the engine",
                      (share([engine.process.pid], "Pss") - front) / FEW, "KiB", "", None)
    yield warm.figure(f"{FEW} idle cells: of the machine's memory", machine, "KiB", f"≤ {MOST_MACHINE_KIB} KiB",
                      machine <= MOST_MACHINE_KIB)
    descriptors = len(os.listdir(f"/proc/{engine.process.pid}/fd")) / FEW
    yield warm.figure(f"{FEW} idle cells: descriptors of the engine for each", descriptors, "", "", None)
    yield warm.figure("the engine and its starter, of the machine's memory", (held - before_kib) / KIB, "MiB", "", None)
    yield from first_figures(engine, opened, cold)


def first_figures(engine, opened, cold):
    count = len(opened.cells)
    of, most = f"a first command in each of {count} cells at once", FIRST_S[count]
    seconds = at_once(engine, opened.cells)
    yield warm.figure(of, seconds, "s", f"≤ {most} s", seconds <= most)
    yield beside_cold(f"{of}: for one of them", 1000 * seconds / count, 1000 * most / count, cold)


def open_figures(opened, cold):
    rate = len(opened.cells) / sum(opened.walls)
    yield warm.figure(f"cells opened, of {len(opened.cells)}", rate, "a second", f"≥ {LEAST_A_SECOND}",
                      rate >= LEAST_A_SECOND)
    yield beside_cold(f"cells opened, of {len(opened.cells)}: time of one", 1000 / rate, 1000 / LEAST_A_SECOND, cold)
    for what, times in (("time", opened.walls), ("processor time", opened.processors)):
        ratio = times[-1] / times[0]
        yield warm.figure(f"the last hundred of {len(opened.cells)} opened: {what}", ratio, "×", f"≤ {FLAT} ×",
                          ratio <= FLAT, beside="the first hundred")
    yield warm.figure("opening one: processor time", sum(opened.processors) / len(opened.cells) * 1000, "ms", "", None)


def peer_figures():
    if shutil.which("bwrap") is None:
        yield {"of": "bubblewrap that holds a sleep", "missing": "not installed", "limit": None}
    else:
        before = settled_kib()
        held = [subprocess.Popen([*WALLS, "sleep", "1000"], stdin=subprocess.DEVNULL) for _ in range(PEERS_HELD)]
        machine = (settled_kib() - before) / PEERS_HELD
        pids = [pid for one in held for pid in warm.processes_of(one.pid)]
        yield warm.figure("bubblewrap that holds a sleep: memory (PSS)", share(pids, "Pss") / PEERS_HELD, "KiB", "", None)
        yield warm.figure("bubblewrap that holds a sleep: of the machine's memory", machine, "KiB", "", None)
        for one in held:
            one.kill()
            one.wait()
    if shutil.which("podman") is None:
        yield {"of": "podman that holds a sleep", "missing": "not installed", "limit": None}


def descriptors_raise():
    """Raise the limit of descriptors for the engines, which go to the hard one. Root may, with the right to it."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, max(most, DESCRIPTORS)))
    except (OSError, ValueError):
        pass


def figures(build, _workspace):
    descriptors_raise()
    cold = cold_ms(build)
    yield warm.figure(COLD, cold, "ms", "", None)
    before = settled_kib()
    with Served(build) as engine:
        yield from idle_figures(engine, before, cold)
    with Served(build) as engine:
        engine.result("cell/close", cell=engine.open())
        opened = Opened(engine, MANY)
        yield from open_figures(opened, cold)
        time.sleep(SETTLE_S)
        if under_way_most(MANY) > 0:
            yield from first_figures(engine, opened, cold)
        else:
            yield warm.figure(f"a first command in each of {MANY} cells: not played, since the limit of descriptors is too "
                              "low; ulimit -Hn", resource.getrlimit(resource.RLIMIT_NOFILE)[1], "", "", None)
    yield from peer_figures()


def cells_group(group, command, _build, _workspace):
    return group("cells", "Many cells of one engine, from Python", [
        command(BARE, []), command(WARM_EXEC, []), command(OPEN_EXEC_CLOSE, []),
        command(BUBBLEWRAP, WALLS[:1] * 2, peer=True), command(COLD, []),
    ], [(WARM_EXEC, MOST_WARM_MS), (WARM_EXEC, BARE, None), (WARM_EXEC, COLD, colds(MOST_WARM_MS)),
        (OPEN_EXEC_CLOSE, MOST_WHOLE_MS), (OPEN_EXEC_CLOSE, BUBBLEWRAP, None), (OPEN_EXEC_CLOSE, COLD, colds(MOST_WHOLE_MS))],
        play=play, rounds=ROUNDS, measure=figures)


GROUPS = {"cells": cells_group}
