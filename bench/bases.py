"""The group of bases: a cold `exec` whose root is an image, beside the same on this machine's root.

The images are made here, of busybox alone, and lie in a cache of the group. The same program runs in all cells.
"""
import os
import shutil
import statistics
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "bases"))
import layouts  # noqa: E402, pylint: disable=wrong-import-position

LAYERS = (1, 20, 128)
ASKED_LAYERS = 20
MORE_MS = 1.5
ROUNDS = 100
HOST = "true, glovebox exec"


def name_of(count):
    return f"true, glovebox exec --base, {count} {'layer' if count == 1 else 'layers'}"


def environment(workspace):
    return {"PATH": os.environ["PATH"], "HOME": os.path.join(workspace, ".home")}


def pull(program, workspace):
    """Make an image with each number of layers, and bring it into the cache."""
    busybox = shutil.which("busybox")
    if busybox is None:
        raise SystemExit("bench: bases: busybox is not installed (apt install busybox-static)")
    with open(busybox, "rb") as file:
        lowest = layouts.tar([("bin/busybox", "file", file.read(), {"mode": 0o755})])
    layout = layouts.Layout(os.path.join(workspace, ".layout"))
    for count in LAYERS:
        layout.image(f"n{count}", [lowest, *(layouts.tar([(f"etc/f{number}", "file", str(number))]) for number in range(count - 1))])
        subprocess.run([program, "base", "pull", f"oci:{layout.path}:n{count}"], check=True, env=environment(workspace),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return layout.path


def bases_group(group, command, build, workspace):
    program = os.path.join(build, "glovebox")
    layout = pull(program, workspace)
    work = os.path.join(workspace, "work")
    os.mkdir(work)
    busybox = os.path.realpath(shutil.which("busybox"))
    commands = [command(HOST, [program, "exec", "-C", work, "--", busybox, "true"])]
    commands += [command(name_of(count), [program, "exec", "-C", work, "--base", f"oci:{layout}:n{count}", "--", "/bin/busybox", "true"])
                 for count in LAYERS]
    times = {one.name: [] for one in commands}

    def play(_build, running, rounds, _workspace):
        for number in range(rounds + 1):
            row = []
            for one in running:
                began = time.perf_counter_ns()
                subprocess.run(one.argv, check=True, env=environment(workspace), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
                row.append((time.perf_counter_ns() - began) // 1000)
            if number > 0:  # the first one fills the caches
                for one, us in zip(running, row):
                    times[one.name].append(us)
                yield row

    def measure(_build, _workspace):
        for count in LAYERS:
            more = (statistics.median(times[name_of(count)]) - statistics.median(times[HOST])) / 1000
            row = {"of": name_of(count), "beside": HOST, "figure": round(more, 2), "unit": "ms more", "asked": ""}
            if count == ASKED_LAYERS:
                row.update(asked=f"≤ {MORE_MS} ms more", met=more <= MORE_MS)
            yield row

    return group("bases", "One command in a cell whose root is an image, from cold", commands, [], play=play, rounds=ROUNDS,
                 measure=measure)


GROUPS = {"bases": bases_group}
