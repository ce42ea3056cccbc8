"""The group of the fleet, `fleet`: what queue and store cost a task, without its cell. A nats-server on the loopback,
its queue on the disk below build/, the store in memory, and one process that publishes tasks, takes them with 32
slots, creates a result for each, and confirms it. Server, store and slots share the machine's processors. Played with
the machine's server, and with the current one where dev/nats-server has fetched it (into build/nats), which also syncs
always. Then the server is killed three times while tasks are done."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import warm

TASKS, SLOTS = 10000, 32
KILLED_TASKS, KILLS = 6000, 3
LEAST_A_SECOND, MOST_OVERHEAD_MS = 2000, 1.0
START_S = 15
LEASE_S = 4  # of the driver: what a killed server forgot comes again within this time
GIVE_UP_S, MOST_S = 40, 60  # without one more result, and for all of one step: a server that hangs is told


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    def __init__(self, program, folder, syncs):
        self.program, self.folder, self.port, self.process = program, folder, free_port(), None
        self.config = os.path.join(folder, "nats.conf")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("jetstream { sync_interval: always }\n" if syncs else "")
        self.start()

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen(
            [self.program, "-c", self.config, "-js", "-sd", os.path.join(self.folder, "js"), "-a", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            time.sleep(0.05)
        self.kill()
        raise SystemExit("bench: nats-server did not start")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def used_s(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            user, system = file.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def servers(build):
    """(its name in the table, the program, does it sync always)."""
    own = shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin")
    current = os.path.join(build, "nats", "usr", "sbin", "nats-server")
    for program, choices in ((own, (False,)), (current, (False, True))):
        if program is None or not os.access(program, os.X_OK):
            continue
        said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        version = re.search(r"\d+\.\d+\.\d+", said).group()
        for syncs in choices:
            yield f"server {version}" + (", sync always" if syncs else ""), program, syncs


def costs(name, driver, server, store):
    before = os.times()
    done = subprocess.run([driver, "bench", server.url, store, "bench", str(TASKS), str(SLOTS)], stdout=subprocess.PIPE, check=True,
                          timeout=MOST_S)
    after = os.times()
    told = json.loads(done.stdout)
    overhead = 1000 * (server.used_s() + sum(after[2:4]) - sum(before[2:4])) / TASKS
    yield warm.figure(f"{name}: tasks submitted a second", told["submitted_s"], "/s", "", None)
    yield warm.figure(f"{name}: take, result in the store, done: tasks a second", told["done_s"], "/s", f"≥ {LEAST_A_SECOND}",
                      told["done_s"] >= LEAST_A_SECOND)
    yield warm.figure(f"{name}: processor time of a task, server included", overhead, "ms", f"≤ {MOST_OVERHEAD_MS:g} ms",
                      overhead <= MOST_OVERHEAD_MS)


def kills(name, driver, server, store):
    results = os.path.join(store, "jobs", "killed", "results")
    subprocess.run([driver, "publish", server.url, store, "killed", str(KILLED_TASKS), "default"], check=True)
    worker = subprocess.Popen([driver, "work", server.url, store, str(SLOTS), "0"], stderr=subprocess.DEVNULL)

    def count():
        return len(os.listdir(results)) if os.path.isdir(results) else 0

    def wait(enough):
        last, since = -1, time.monotonic()
        while not enough(last) and time.monotonic() - since < GIVE_UP_S:
            now = count()
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.05)
        return last

    def queued():
        return int(subprocess.run([driver, "waiting", server.url, "killed"], stdout=subprocess.PIPE, check=True).stdout)
    try:
        for kill in range(1, KILLS + 1):
            wait(lambda there, kill=kill: there >= kill * KILLED_TASKS // (KILLS + 1))
            server.kill()
            server.start()
        there = wait(lambda there: there >= KILLED_TASKS)
        # What was done and not confirmed comes once more, when its lease is over.
        left, end = queued(), time.monotonic() + 2 * LEASE_S
        while left > 0 and time.monotonic() < end:
            time.sleep(0.5)
            left = queued()
    finally:
        worker.kill()
        worker.wait()
    yield warm.figure(f"{name}: results of {KILLED_TASKS} tasks, the server killed {KILLS} times", there, "", f"{KILLED_TASKS}",
                      there == KILLED_TASKS)
    yield warm.figure(f"{name}: done tasks that stay in its queue (a worker takes them out)", left, "", "", None)


def figures(build, _workspace):
    found = list(servers(build))
    if not found:
        yield {"of": "tasks a second, without their cells", "missing": "nats-server is not installed", "limit": None}
        return
    driver = os.path.join(build, "bench", "queue_driver")
    for name, program, syncs in found:
        for part in (costs, kills):
            with tempfile.TemporaryDirectory(dir=build) as folder, tempfile.TemporaryDirectory(dir="/dev/shm") as store:
                server = Server(program, folder, syncs)
                try:
                    yield from part(name, driver, server, os.path.join(store, "store"))
                finally:
                    server.kill()


def nothing(_build, _running, _rounds, _workspace):
    return iter(())


def fleet_group(group, _command, _build, _workspace):
    return group("fleet", "The queue and the store of a fleet, without cells", [], [], play=nothing, rounds=1,
                 measure=figures)


GROUPS = {"fleet": fleet_group}
