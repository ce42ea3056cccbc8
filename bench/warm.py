"""The groups of the warm cell: what a conversation pays for its calls.

bench-calls and bench-burst time calls through the runtime beside bare programs, in one process
and in turns. Inside, programs see the copies that lie in the workspace.
"""
import os
import re
import shutil
import subprocess
import threading
import time

import tree

WARM_UP = 20
NOTHING = '{"command": "true"}'
PROGRAM = '{"command": "/bin/true"}'
FLOOD_BYTES = 1 << 30
LONG_FLOOD_BYTES = 8 << 30
SEARCHED_FILES = 100_000
BURST = 500
BURST_ROUNDS = 9
BURST_COMMAND = "sleep 0.05; echo x"
MEMORY_ROUNDS = 3
MANY_CALLS = 10_000
MIB = 1 << 20
SAMPLE_S = 0.05
# The 1.2 ms of a call without a shell ahead were asked for where a bare bash took 0.94.
NO_SHELL_RATIO = 1.28

# What is measured is the way, not a locale that one side loads and the other does not.
ENVIRONMENT = dict(os.environ, LC_ALL="C.UTF-8", LANG="C.UTF-8")


def calls(build, workspace, rounds, warm_up, kinds):
    argv = [os.path.join(build, "bench", "bench-calls"), os.path.join(build, "glovebox"),
            workspace, str(rounds), str(warm_up)]
    for number, kind in enumerate(kinds):
        argv += (["--next"] if number else []) + kind
    return subprocess.Popen(argv, cwd=workspace, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True)


def play_calls(build, commands, rounds, workspace, warm_up=WARM_UP):
    with calls(build, workspace, rounds, warm_up, [one.argv for one in commands]) as process:
        for line in process.stdout:
            yield [int(us) for us in line.split()]
    if process.returncode != 0:
        raise SystemExit("bench: the measurement broke off")


def few(build, commands, rounds, workspace):
    return play_calls(build, commands, rounds, workspace, warm_up=2)


def processes_of(pid):
    """PID and all below it."""
    found = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                for child in file.read().split():
                    found += processes_of(int(child))
    except OSError:
        pass
    return found


def memory_alone(pid):
    """Bytes that PID holds, with its share of what it has in common; None when it is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return int(re.search(r"^Pss:\s+(\d+)", file.read(), re.M).group(1)) * 1024
    except (OSError, AttributeError):
        return None


def memory_of(pid):
    """Bytes that PID and all below it hold, what they share counted once; processes."""
    held = [bytes for one in processes_of(pid) if (bytes := memory_alone(one)) is not None]
    return sum(held), len(held)


class Watch(threading.Thread):
    """The most that a process and all below it held at once, sampled."""

    def __init__(self, pid, rest_s=SAMPLE_S):
        super().__init__(daemon=True)
        self.pid = pid
        self.rest_s = rest_s
        self.samples = []
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(self.rest_s):
            self.samples.append(memory_of(self.pid)[0])

    def stop(self):
        self.ended.set()
        self.join()
        return self.samples


def figure(of, value, unit, limit, met, beside=""):
    return {"of": of, "beside": beside, "figure": round(value, 3), "unit": unit,
            "asked": limit, "met": met}


# ---- warm: one program ----

def warm_group(group, command, build, _workspace):
    walls = ["asked", os.path.join(build, "bench", "walls_alone"), "-w"]
    return group("warm", "One program in a warm cell", [
        command("true, bare", ["bare", "true"]),
        command("true, our walls alone", [*walls, "true"]),
        command("true, warm cell", ["exec", "true"]),
        command("bash -c true, bare", ["bare", "bash", "-c", "true"]),
        command("bash -c true, our walls alone", [*walls, "bash", "-c", "true"]),
        command("bash -c true, warm cell", ["exec", "bash", "-c", "true"]),
    ], [("true, warm cell", "true, bare", 1.10),
        ("true, our walls alone", "true, bare", None),
        ("bash -c true, warm cell", "bash -c true, bare", 1.10),
        ("bash -c true, our walls alone", "bash -c true, bare", None)], play=play_calls)


# ---- shell: the bash tool ----

def many_calls(build, workspace):
    """Memory and descriptors of a front and its cell after many calls, beside after a few."""
    with calls(build, workspace, MANY_CALLS, WARM_UP, [["again", "bash", NOTHING]]) as process:
        lines = 0
        early = late = None
        for _ in process.stdout:
            lines += 1
            if lines == MANY_CALLS // 10:
                early = state_of(process.pid)
            elif lines == MANY_CALLS - 1:
                late = state_of(process.pid)
    yield figure(f"descriptors of the front, {MANY_CALLS} calls", late[1] - early[1], "more",
                 "none", late[1] <= early[1] + 4)
    yield figure(f"processes, {MANY_CALLS} calls", late[2] - early[2], "more", "none",
                 late[2] <= early[2] + 2)
    yield figure(f"memory of front and anchor, {MANY_CALLS} calls",
                 (late[0] - early[0]) / MIB, "MiB more", "flat: <= 0.25 MiB",
                 late[0] - early[0] <= MIB / 4)


def state_of(pid):
    """Private memory of PID and its anchor; descriptors of PID; processes. Workers come and go."""
    total = 0
    everybody = processes_of(pid)
    for one in [pid] + everybody[1:]:
        try:
            with open(f"/proc/{one}/comm", encoding="ascii") as file:
                if one != pid and file.read().strip() != "glovebox-anchor":
                    continue
            with open(f"/proc/{one}/smaps_rollup", encoding="ascii") as file:
                total += sum(int(kib) * 1024 for kib in
                             re.findall(r"^Private_\w+:\s+(\d+)", file.read(), re.M))
        except OSError:
            continue
    return total, len(os.listdir(f"/proc/{pid}/fd")), len(everybody)


def shell_group(group, command, _build, _workspace):
    return group("shell", "The bash tool through the library", [
        command("bash -c true, bare", ["bare", "bash", "-c", "true"]),
        command("builtin, shell ahead", ["tool", "bash", NOTHING]),
        command("builtin, no shell ahead", ["cold", "bash", NOTHING]),
        command("builtin, calls back to back", ["again", "bash", NOTHING]),
        command("bash -c /bin/true, bare", ["bare", "bash", "-c", "/bin/true"]),
        command("one program, shell ahead", ["tool", "bash", PROGRAM]),
    ], [("builtin, shell ahead", "bash -c true, bare", 0.5),
        ("one program, shell ahead", "bash -c /bin/true, bare", 0.75),
        ("builtin, shell ahead", 0.5),
        ("builtin, no shell ahead", 1.2),
        ("builtin, no shell ahead", "bash -c true, bare", NO_SHELL_RATIO)],
        play=play_calls, measure=many_calls)


# ---- burst: many at once ----

def burst_argv(build, workspace, text, where):
    if where == "walls":
        return [os.path.join(build, "bench", "walls_alone"), "-n", str(BURST), "sh", "-c", text]
    argv = [os.path.join(build, "bench", "bench-burst"), str(BURST), text]
    return argv + ([os.path.join(build, "glovebox"), workspace] if where == "cell" else [])


def play_burst(build, commands, rounds, workspace):
    for _ in range(rounds):
        row = []
        for one in commands:
            done = subprocess.run(burst_argv(build, workspace, BURST_COMMAND, one.argv[0]),
                                  cwd=workspace, env=ENVIRONMENT, stdout=subprocess.PIPE,
                                  text=True, check=True)
            row.append(int(done.stdout))
        yield row


def burst_memory(build, workspace):
    """The most that all processes hold at once; a run of its own, since looking takes time."""
    for name, where in (("bare", "bare"), ("in one cell", "cell")):
        most = 0
        for _ in range(MEMORY_ROUNDS):
            with subprocess.Popen(burst_argv(build, workspace, BURST_COMMAND, where),
                                  cwd=workspace, env=ENVIRONMENT,
                                  stdout=subprocess.DEVNULL) as process:
                watch = Watch(process.pid, rest_s=0.002)
                watch.start()
                process.wait()
                most = max([most] + watch.stop())
        yield figure(f"{BURST} at once, {name}: memory of all processes", most / MIB, "MiB",
                     "<= 80 MiB" if where == "cell" else "",
                     0 < most <= 80 * MIB if where == "cell" else None)


def burst_group(group, command, _build, _workspace):
    return group("burst", f"{BURST} commands at once (sh -c 'sleep 0.05; echo x')", [
        command("bare", ["bare"]),
        command("our walls alone", ["walls"]),
        command("in one cell", ["cell"]),
    ], [("in one cell", "bare", 1.25), ("our walls alone", "bare", None)], play=play_burst, rounds=BURST_ROUNDS,
        measure=burst_memory)


# ---- search: what the walls cost a program that opens many files ----

def search_group(group, command, build, workspace):
    tree.make(os.path.join(workspace, "tree"), SEARCHED_FILES)
    words = ["rg", "--no-config", "--no-ignore", "-cF", tree.MARK.strip(), workspace + "/tree"]
    if shutil.which("rg") is None:
        raise SystemExit("bench: search: ripgrep is not installed")
    return group("search", f"ripgrep over {SEARCHED_FILES:,} files", [
        command("rg, outside", ["bare", *words]),
        command("rg, our walls alone", ["asked", os.path.join(build, "bench", "walls_alone"),
                                        "-w", *words]),
        command("rg, inside", ["exec", *words]),
    ], [("rg, inside", "rg, outside", 1.05),
        ("rg, our walls alone", "rg, outside", None)], play=few, rounds=15)


# ---- output: child output ----

def flood_memory(build, workspace):
    """What front and cell hold during a flood eight times as long."""
    text = f'{{"command": "./flood {LONG_FLOOD_BYTES}"}}'
    with calls(build, workspace, 1, 0, [["tool", "bash", text]]) as process:
        watch = Watch(process.pid)
        watch.start()
        process.stdout.read()
        samples = watch.stop()
    middle = samples[2:-1] or samples
    grown = max(middle) - min(middle)
    yield figure(f"memory during {LONG_FLOOD_BYTES >> 30} GiB of output", max(samples) / MIB,
                 "MiB", "<= 16 MiB", max(samples) <= 16 * MIB)
    yield figure("it varies by", grown / MIB, "MiB", "flat: <= 1 MiB", grown <= MIB)


def output_group(group, command, build, workspace):
    shutil.copy(os.path.join(build, "bench", "flood"), workspace)
    flood = os.path.join(workspace, "flood")
    return group("output", f"{FLOOD_BYTES >> 30} GiB of a program's output", [
        command("a bare pipe", ["pipe", flood, str(FLOOD_BYTES)]),
        command("the bash tool", ["tool", "bash",
                                  f'{{"command": "exec ./flood {FLOOD_BYTES}"}}']),
    ], [("the bash tool", "a bare pipe", round(1 / 0.9, 3))], play=few, rounds=15,
        measure=flood_memory)


# ---- compile: an everyday program ----

def compile_group(group, command, _build, workspace):
    with open(os.path.join(workspace, "hello.c"), "w", encoding="ascii") as file:
        file.write('#include <stdio.h>\nint main(void)\n{\n\treturn puts("hello") < 0;\n}\n')
    script = f"cd {workspace} && for i in 1 2 3 4 5 6 7 8; do gcc -O1 -o hello hello.c; done"
    return group("compile", "gcc of a small program, eight times", [
        command("gcc, outside", ["bare", "sh", "-c", script]),
        command("gcc, inside", ["exec", "sh", "-c", script]),
    ], [("gcc, inside", "gcc, outside", 1.05)], play=few, rounds=15)


GROUPS = {"warm": warm_group, "shell": shell_group, "burst": burst_group,
          "search": search_group, "output": output_group, "compile": compile_group}
