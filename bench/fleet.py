"""The group of the fleet, `fleet`: what queue and store cost a task, without its cell. A nats-server on the loopback,
the store in memory, and one process that publishes tasks, takes them with 32 slots, creates a result for each, and
confirms it. Server, store and slots share the machine's processors."""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

import warm

TASKS, SLOTS = 20000, 32
LEAST_A_SECOND, MOST_OVERHEAD_MS = 2000, 1.0
START_S = 15


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def started(folder, port):
    server = subprocess.Popen(["nats-server", "-js", "-sd", os.path.join(folder, "js"), "-a", "127.0.0.1", "-p", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return server
        except OSError:
            time.sleep(0.05)
    server.kill()
    raise SystemExit("bench: nats-server did not start")


def used_s(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        user, system = file.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def figures(build, _workspace):
    if shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin") is None:
        yield {"of": "tasks a second, without their cells", "missing": "nats-server is not installed", "limit": None}
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        port = free_port()
        server = started(folder, port)
        try:
            before = os.times()
            done = subprocess.run([os.path.join(build, "bench", "queue_driver"), "bench", f"nats://127.0.0.1:{port}",
                                   os.path.join(folder, "store"), "bench", str(TASKS), str(SLOTS)],
                                  stdout=subprocess.PIPE, check=True)
            after = os.times()
            told = json.loads(done.stdout)
            cpu_s = used_s(server) + sum(after[2:4]) - sum(before[2:4])
        finally:
            server.kill()
            server.wait()
    yield warm.figure("tasks submitted a second", told["submitted_s"], "/s", "", None)
    yield warm.figure("take, result in the store, done: tasks a second", told["done_s"], "/s", f"≥ {LEAST_A_SECOND}",
                      told["done_s"] >= LEAST_A_SECOND)
    overhead = 1000 * cpu_s / TASKS
    yield warm.figure("processor time of a task, server included", overhead, "ms", f"≤ {MOST_OVERHEAD_MS:g} ms",
                      overhead <= MOST_OVERHEAD_MS)


def nothing(_build, _running, _rounds, _workspace):
    return iter(())


def fleet_group(group, _command, _build, _workspace):
    return group("fleet", "The queue and the store of a fleet, without cells", [], [], play=nothing, rounds=1,
                 measure=figures)


GROUPS = {"fleet": fleet_group}
