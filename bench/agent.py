"""The group of one agent turn: a task of 20 (and 200) commands that do nothing, one after the other,
asked for by a model on loopback that answers at once (agent_model.py); beside two agents from npm
(agents/package.json names their versions), which run them without a sandbox, and beside the floor: a
client that sends as much and starts `bash -c` by posix_spawn (bare_agent.c). Ours has its cell, and its
journal on disk.
"""
import glob
import json
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time

import agent_model
import warm

HERE = os.path.dirname(os.path.abspath(__file__))
FEW, MANY = 20, 200
ROUNDS = 7
OURS, CODEX, CLAUDE, FLOOR = "glovebox", "codex", "claude", "bare client and bash"
RUN_TIMEOUT_S = 120
TURN_MS, START_MS, MEMORY_MIB, RESUME_MS = 1.2, 10, 12, 100
# An answer that comes in so many pieces, and what one of them may take.
PIECES, PIECE_US = 20_000, 2
# Beside the client that starts bash: what takes no more has nothing left to save.
TURN_TIMES = 1.2
# Ten times the turns at ten times the cost, and what it takes to send a longer conversation.
GROWTH = 1.1
EVENTS = 10_000
MIB = 1 << 20
MS = 1000


def peer(build, name):
    """The agent NAME of npm, installed beside the build; None when it cannot be."""
    folder = os.path.join(build, "agents")
    subprocess.run([os.path.join(HERE, os.pardir, "dev", "npm"), os.path.join(HERE, "agents"),
                    folder], check=False)
    # No script of a package runs: one of them would have put this program in its place.
    found = glob.glob(os.path.join(folder, "node_modules", "@anthropic-ai", "*-linux-*", name))
    found.append(os.path.join(folder, "node_modules", ".bin", name))
    return found[0] if os.path.exists(found[0]) else None


def program_of(name, build):
    if name in (OURS, FLOOR):
        return os.path.join(build, *([OURS] if name == OURS else ["bench", "bare_agent"]))
    return peer(build, name)


def argv_of(name, program, url, turns=0):
    if name == FLOOR:
        return [program, url.rpartition(":")[2], str(turns)]
    if name == OURS:
        return [program, "run", "--json", "--max-iterations", "1000", "Do it."]
    if name == CODEX:
        provider = f'{{name="bench",base_url="{url}/v1",wire_api="responses",env_key="KEY"}}'
        return [program, "exec", "--json", "--skip-git-repo-check",
                "--dangerously-bypass-approvals-and-sandbox",
                "-c", f"model_providers.bench={provider}", "-c", 'model_provider="bench"',
                "-c", 'model="bench"', "Do it."]
    return [program, "-p", "--dangerously-skip-permissions", "--output-format", "json", "Do it."]


def environment_of(home, url):
    return {"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C.UTF-8", "KEY": "none",
            "XDG_STATE_HOME": os.path.join(home, "state"), "GLOVEBOX_MODEL": "bench",
            "GLOVEBOX_BASE_URL": url + "/v1", "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none",
            # It refuses to go without asking as root, unless it believes to be in a sandbox.
            "IS_SANDBOX": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


class Run:
    """One task from start to end, and what it took."""

    def __init__(self, name, program, turns, home, arguments=(), pieces=1):
        self.memory = {}  # by the names of processes: how many, bytes
        self.process = None
        model = agent_model.Model(turns, self.look, pieces)
        workspace = os.path.join(home, "work")
        os.makedirs(workspace, exist_ok=True)
        began = time.perf_counter()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        argv = argv_of(name, program, model.url, turns)
        self.process = subprocess.Popen(
            [*argv[:-1], *arguments, argv[-1]], cwd=workspace,
            env=environment_of(home, model.url), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        error = self.process.communicate(timeout=RUN_TIMEOUT_S)[1]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        model.close()
        self.cpu_s = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
        self.whole = len(model.arrived) == turns + 1 and self.process.returncode == 0
        self.error = error.decode("utf-8", "replace").strip().splitlines()
        if self.whole:
            self.first_s = model.arrived[0] - began
            self.turn_s = (model.arrived[-1] - model.arrived[0]) / turns if turns else 0

    def look(self):
        for pid in warm.processes_of(self.process.pid):
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                    name = file.read().strip()
            except OSError:
                continue
            held = warm.memory_alone(pid)
            if held is not None:
                count, before = self.memory.get(name, (0, 0))
                self.memory[name] = (count + 1, before + held)

    def why(self):
        return (self.error or ["it did not come to its end"])[-1][:200]


def play(build, running, rounds, workspace):
    """Rounds of microseconds for one turn; one more goes before them."""
    for number in range(rounds + 1):
        row = []
        for command in running:
            name, turns = command.what
            home = os.path.join(workspace, name)
            run = Run(name, command.argv[1], turns, home)
            if not run.whole:
                raise SystemExit(f"bench: {command.name}: {run.why()}")
            row.append(round(run.turn_s * 1e6))
        if number > 0:
            yield row


def figures_of(name, program, home):
    ours = name == OURS
    runs = [Run(name, program, FEW, home) for _ in range(ROUNDS)]
    short, pieces = (statistics.median(Run(name, program, 0, home, pieces=count).cpu_s
                                       for _ in range(ROUNDS)) for count in (1, PIECES))
    piece = (pieces - short) / PIECES * 1e6
    long = Run(name, program, MANY, home)
    start = statistics.median(run.first_s for run in runs) * MS
    cpu = long.cpu_s / MANY * MS
    memory = sum(held for _, held in long.memory.values()) / MIB
    yield warm.figure(f"{name}, start to first request", start, "ms",
                      f"≤ {START_MS} ms" if ours else "", start <= START_MS if ours else None)
    yield warm.figure(f"{name}, processor time of a turn (of {MANY})", cpu, "ms", "", None)
    yield warm.figure(f"{name}, processor time of a piece of an answer (of {PIECES:,})", piece, "µs",
                      f"≤ {PIECE_US} µs" if ours else "", piece <= PIECE_US if ours else None)
    yield warm.figure(f"{name}, memory of all its processes at the last of {MANY} turns", memory,
                      "MiB", f"≤ {MEMORY_MIB} MiB" if ours else "",
                      memory <= MEMORY_MIB if ours else None)
    for process, (count, held) in sorted(long.memory.items()) if ours else ():
        yield warm.figure(f"{name}, of that: {process}, {count} of them", held / MIB, "MiB", "", None)


def grow(home, program):
    """A session of EVENTS events: its last ones are real, those between are copies."""
    Run(OURS, program, FEW, home)
    path = os.path.join(home, "state", "glovebox", "sessions.db")
    database = sqlite3.connect(path)
    key, = database.execute("SELECT max(key) FROM session").fetchone()
    rows = database.execute("SELECT kind, wall_ms, json FROM event WHERE session = ? "
                            "ORDER BY number", (key,)).fetchall()
    turn = [row for row in rows if row[0] in ("message", "tool_began", "tool_ended")][:-1]
    number = len(rows)
    while number < EVENTS:
        for kind, wall_ms, text in turn:
            number += 1
            event = json.loads(text)
            event["n"] = number
            for holder in [event, *event.get("parts", [])]:
                if "call" in holder:
                    holder["call"] += f"_{number // len(turn)}"
            database.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)",
                             (key, number, kind, wall_ms, json.dumps(event)))
    database.commit()
    database.close()
    return number


def resume_figures(program, workspace):
    """How much later the first request comes when there is a long session behind it."""
    home = os.path.join(workspace, "resumed")
    events = grow(home, program)
    state = os.path.join(home, "state")
    bare, resumed = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=workspace) as copy:
            shutil.copytree(state, os.path.join(copy, "state"))
            # The folder is the session's: the copy's own would not be.
            run = Run(OURS, program, 0, home, ("--resume", "last"))
            shutil.rmtree(state)
            shutil.copytree(os.path.join(copy, "state"), state)
        if not run.whole:
            raise SystemExit(f"bench: resume: {run.why()}")
        resumed.append(run.first_s)
        bare.append(Run(OURS, program, 0, os.path.join(workspace, "bare")).first_s)
    took = (statistics.median(resumed) - statistics.median(bare)) * MS
    yield warm.figure(f"{OURS}, resume of {events:,} events", took, "ms", f"≤ {RESUME_MS} ms",
                      took <= RESUME_MS, beside="a new session")


def floor_figure(build, workspace):
    """The start of a program that opens a socket and sends."""
    program = program_of(FLOOR, build)
    home = os.path.join(workspace, FLOOR)
    start = statistics.median(Run(FLOOR, program, 1, home).first_s for _ in range(ROUNDS)) * MS
    return warm.figure(f"{FLOOR}, start to first request", start, "ms", "", None)


def figures(build, workspace):
    yield floor_figure(build, workspace)
    for name in (OURS, CODEX, CLAUDE):
        program = program_of(name, build)
        if program is not None and Run(name, program, 1, os.path.join(workspace, name)).whole:
            yield from figures_of(name, program, os.path.join(workspace, name))
    yield from resume_figures(os.path.join(build, OURS), workspace)


def agent_group(group, command, build, workspace):
    commands = []
    for name, turns in ((FLOOR, FEW), (OURS, FEW), (FLOOR, MANY), (OURS, MANY), (CODEX, FEW),
                        (CLAUDE, FEW)):
        program = program_of(name, build)
        made = command(f"{name}, a turn of {turns}", [name, program or name],
                       peer=name in (CODEX, CLAUDE))
        made.what = (name, turns)
        if program is None:
            made.missing = "npm could not install it"
        elif made.peer:
            run = Run(name, program, 1, os.path.join(workspace, name))
            made.missing = None if run.whole else run.why()
        commands.append(made)
    few, many = (f"{OURS}, a turn of {turns}" for turns in (FEW, MANY))
    return group("agent", "One agent turn: a request, its answer, a command that does nothing",
                 commands, [(few, TURN_MS), (many, few, GROWTH),
                            (few, f"{FLOOR}, a turn of {FEW}", TURN_TIMES),
                            (many, f"{FLOOR}, a turn of {MANY}", TURN_TIMES),
                            (few, f"{CODEX}, a turn of {FEW}", None),
                            (few, f"{CLAUDE}, a turn of {FEW}", None)],
                 play=play, rounds=ROUNDS, measure=figures)


GROUPS = {"agent": agent_group}
