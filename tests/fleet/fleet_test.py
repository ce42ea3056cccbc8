#!/usr/bin/env python3
"""fleet: jobs through a real nats-server on the loopback: submitted, killed, lost, cancelled, tried again.

fleet_test.py TAP_FOLDER GLOVEBOX QUEUE_DRIVER

The server is the machine's, or the one that $NATS_SERVER names; with GLOVEBOX_TEST_NATS=current it is the one that
dev/nats-server fetches, and syncs always. Leases are short, so that what a worker loses comes again within seconds.
QUEUE_DRIVER works without cells where only queue and store are played. $GLOVEBOX_TEST_MOMENTS is the number of kills."""
import base64
import binascii
import contextlib
import csv
import glob
import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "fake"))
import place as places  # noqa: E402, pylint: disable=wrong-import-position
import s3_server  # noqa: E402, pylint: disable=wrong-import-position
import tap  # noqa: E402, pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[2])
DRIVER = os.path.abspath(sys.argv[3])
CURRENT = os.environ.get("GLOVEBOX_TEST_NATS") == "current"
LEASE_S = 4
NOT_FETCHED = 75  # the exit status of dev/nats-server
WAIT_S = 120  # for what takes seconds on a machine at rest; in a wait by progress: while nothing changes
MOMENTS = int(os.environ.get("GLOVEBOX_TEST_MOMENTS", "20"))
KILL_TASKS, KILL_MS = 25 * MOMENTS, 60  # enough that some wait until the last moment
FULL_SUBMITS, FULL_LINES = 20, 5000  # to a server that is too small for one of them
FORGED = 2100  # notes of dead messages: more than are read of one job, twice
LOOK_S = 2.5  # longer than the longest time between two questions for a permit


def find_server():
    """The nats-server to play with, and why there is none."""
    if CURRENT:
        done = tap.run([os.path.join(ROOT, "dev", "nats-server"), os.path.join(ROOT, "build", "nats")])
        assert done.returncode in (0, NOT_FETCHED), done.stderr
        return (os.path.abspath(done.stdout.strip()), "") if done.returncode == 0 else (None, done.stderr.splitlines()[-1])
    found = os.environ.get("NATS_SERVER") or shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin")
    return found, "nats-server is not installed: apt install nats-server"


NATS, NO_SERVER = find_server()


def need_server():
    if NATS is None:
        raise tap.Skip(NO_SERVER)


class Server:
    """A nats-server with a folder of its own. Its port stays the same when it is started again."""

    def __init__(self, folder, config=""):
        need_server()
        if CURRENT and "sync_interval" not in config:
            before, block, behind = config.partition("jetstream {")
            config = f"{before}jetstream {{ sync_interval: always, {behind}" if block else \
                f"{config}\njetstream {{ sync_interval: always }}\n"
        self.folder, self.port, self.process = folder, places.unused_port(), None
        self.config = os.path.join(folder, "nats.conf")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(config)
        self.start()

    def start(self):
        ports = os.path.join(self.folder, "ports")
        shutil.rmtree(ports, ignore_errors=True)
        os.mkdir(ports)
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [NATS, "-c", self.config, "-js", "-sd", os.path.join(self.folder, "js"), "-a", "127.0.0.1",
                 "-p", str(self.port), "--ports_file_dir", ports],
                stdout=log, stderr=log)
        wait_for(lambda: self.read_port(ports), "the server's port")

    def read_port(self, ports):
        for name in glob.glob(os.path.join(ports, "*.ports")):
            with contextlib.suppress(ValueError, OSError), open(name, encoding="utf-8") as file:
                self.port = int(json.load(file)["nats"][0].rsplit(":", 1)[1])
                return True
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
                raise AssertionError(file.read()[-2000:])
        return False

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()


def wait_for(ready, what, seconds=WAIT_S):
    end = time.monotonic() + seconds
    while True:
        found = ready()
        if found:
            return found
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.05)


def wait_while_it_goes_on(count, enough, what):
    """Wait until COUNT() is ENOUGH, for as long as it changes: how fast is the machine's matter."""
    last, since = count(), time.monotonic()
    while not enough(last):
        time.sleep(0.05)
        now = count()
        if now != last:
            last, since = now, time.monotonic()
        assert time.monotonic() - since < WAIT_S, f"waited {WAIT_S} s for {what}, and it stayed {last}"


class Fleet:
    """A server, a store, and what works on them; all of it is gone at the end."""

    def __init__(self, config=""):
        self.folder = tempfile.mkdtemp(prefix="glovebox-fleet-test-")
        self.processes = []
        self.store = os.path.join(self.folder, "store")
        os.mkdir(os.path.join(self.folder, "home"))
        self.env = {**os.environ, "HOME": os.path.join(self.folder, "home"), "TMPDIR": self.folder}
        for name in list(self.env):
            if name.startswith("XDG_"):
                del self.env[name]
        os.mkdir(os.path.join(self.folder, "nats"))
        try:
            self.server = Server(os.path.join(self.folder, "nats"), config)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.write_config(lease_s=LEASE_S)

    def write_config(self, **more):
        folder = os.path.join(self.folder, "home", ".config", "glovebox")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            models = {"models": more.pop("models")} if "models" in more else {}
            json.dump({"fleet": {"url": self.server.url, "store": self.store, **more}, **models}, file)

    def tasks(self, name, lines):
        path = os.path.join(self.folder, name + ".jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for line in lines:
                file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        return path

    def run(self, *words, code=0, timeout=WAIT_S):
        done = tap.run([PROGRAM, *words], env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, timeout=timeout)
        if code is not None:
            assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done

    def spawn(self, words, **options):
        log = open(os.path.join(self.folder, f"log{len(self.processes)}"), "wb+")
        process = subprocess.Popen(words, env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, **options)
        process.log = log
        self.processes.append(process)
        return process

    def worker(self, *options, cells=2):
        return self.spawn([PROGRAM, "worker", "--cells", str(cells), *options])

    def driver(self, *words):
        return self.spawn([DRIVER, "work", self.server.url, self.store, *(str(word) for word in words)])

    def said(self, process):
        process.log.flush()
        with open(process.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def result_names(self, job):
        with contextlib.suppress(FileNotFoundError):
            return sorted(name[:-len(".json")] for name in os.listdir(os.path.join(self.store, "jobs", job, "results"))
                          if name.endswith(".json"))
        return []

    def result(self, job, task):
        with open(os.path.join(self.store, "jobs", job, "results", task + ".json"), encoding="utf-8") as file:
            return json.load(file)

    def wait_for_results(self, job, count):
        wait_while_it_goes_on(lambda: len(self.result_names(job)), lambda there: there >= count, f"{count} results of {job}")

    def wait_until_not_queued(self, job):
        wait_while_it_goes_on(lambda: self.queued(job), lambda left: left == 0, f"an empty queue of {job}")

    def queued(self, job):
        done = tap.run([DRIVER, "waiting", self.server.url, job], timeout=WAIT_S)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
            process.log.close()
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def fleet(config=""):
    made = Fleet(config)
    try:
        yield made
    finally:
        made.close()


class Wire:
    """As much of a NATS client as a test needs to be somebody else."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        self.send(b'CONNECT {"verbose":false,"headers":true,"no_responders":true,"lang":"test","version":"0"}\r\n'
                  b"SUB test.inbox 1\r\n")

    def send(self, data):
        self.socket.sendall(data)

    def request(self, subject, body=b"", headers=None):
        if headers is None:
            self.send(b"PUB %s test.inbox %d\r\n%s\r\n" % (subject.encode(), len(body), body))
        else:
            head = ("NATS/1.0\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode()
            self.send(b"HPUB %s test.inbox %d %d\r\n%s%s\r\n"
                      % (subject.encode(), len(head), len(head) + len(body), head, body))
        while True:
            words = self.file.readline().split()
            if words and words[0] == b"PING":
                self.send(b"PONG\r\n")
            if words and words[0] in (b"MSG", b"HMSG"):
                return self.file.read(int(words[-1]) + 2)[:-2]

    def close(self):
        self.file.close()
        self.socket.close()


def command(number, text="true", **more):
    return {"id": f"t{number}", "run": {"command": text}, **more}


@tap.case
def a_fleet_in_two_commands_ends_with_a_signal():
    need_server()
    with tempfile.TemporaryDirectory(prefix="glovebox-fleet-test-") as folder:
        env = {**os.environ, "HOME": folder, "TMPDIR": folder, "PATH": os.path.dirname(NATS) + ":" + os.environ["PATH"]}
        with open(os.path.join(folder, "tasks.jsonl"), "w", encoding="utf-8") as file:
            for i in range(4):
                file.write(json.dumps(command(i, f"echo {i} >out; echo far >/tmp/far; mkdir tmp; echo near >tmp/far; exit {i % 2}",
                                                collect=["/tmp/far", "tmp/far", "out"])) + "\n")
        up = subprocess.Popen([PROGRAM, "fleet", "up", "--cells", "2", "--lease", "4"], cwd=folder, env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            line = ""
            while "fleet submit" not in line:
                line = up.stdout.readline()
                assert line, up.wait()
            place = line.split("TASKS", 1)[1].split()
            with open(place[1].removeprefix("@"), encoding="ascii") as file:
                url = file.read().strip()
            assert os.stat(place[1].removeprefix("@")).st_mode & 0o77 == 0
            # Others on this machine get no further than the server.
            without = re.sub(r"glovebox:\w+@", "", url)
            done = tap.run([PROGRAM, "fleet", "submit", "tasks.jsonl", "--job", "foreign", "--fleet", without, *place[2:]],
                           cwd=folder, env=env)
            assert without != url and done.returncode != 0 and "knows no such user" in done.stderr, done
            done = tap.run([PROGRAM, "fleet", "submit", "tasks.jsonl", "--job", "two", *place], cwd=folder, env=env)
            assert done.returncode == 0, done.stderr
            assert "4 tasks, 4 queued now" in done.stdout, done.stdout
            # The line that it prints finds the fleet as it stands.
            status = shlex.split(done.stdout.split("How far it is: glovebox ", 1)[1])
            assert status == ["fleet", "status", "two", *place], done.stdout
            assert tap.run([PROGRAM, *status], cwd=folder, env=env).returncode == 0
            done = tap.run([PROGRAM, "fleet", "results", "two", "--follow", "--json", "--out", "kept", *place], cwd=folder,
                           env=env, timeout=WAIT_S)
            assert done.returncode == 1, (done.stdout, done.stderr)  # two of them have failed
            statuses = {r["id"]: r["status"] for r in map(json.loads, done.stdout.splitlines())}
            assert statuses == {"t0": "done", "t1": "failed", "t2": "done", "t3": "failed"}, statuses
            with open(os.path.join(folder, "kept", "t2", "out"), encoding="utf-8") as file:
                assert file.read() == "2\n"
            # A second one in this folder would take the queue and the address away from the first.
            second = tap.run([PROGRAM, "fleet", "up"], cwd=folder, env=env, timeout=WAIT_S)
            assert second.returncode == 1 and "is up in" in second.stderr, second
            with open(place[1].removeprefix("@"), encoding="ascii") as file:
                assert file.read().strip() == url
            with open("/dev/full", "wb") as full:
                unwritten = subprocess.run([PROGRAM, "fleet", "results", "two", "--json", *place], cwd=folder, env=env, stdout=full,
                                           stderr=subprocess.PIPE, timeout=WAIT_S, check=False)
            assert unwritten.returncode == 1, unwritten
            assert unwritten.stderr.splitlines() == [b"glovebox: standard output: No space left on device"], unwritten
            # Two of its names are one place: the first is there, and the second is told.
            with open(os.path.join(folder, "kept", "t2", "tmp", "far"), encoding="utf-8") as file:
                assert file.read() == "far\n"
            told = re.findall(r"(\S+) is another file of this result already: the store has this one as the blob (\w{64})", done.stderr)
            assert len(told) == 4 and all(path.endswith("/tmp/far") for path, _ in told), done.stderr
            assert len({blob for _, blob in told}) == 1, told
        finally:
            up.send_signal(signal.SIGINT)
            code = up.wait(timeout=WAIT_S)
            up.stdout.close()
        assert code == 130, code
        # Nothing listens any more.
        port = int(url.rsplit(":", 1)[1])
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            raise AssertionError("the server still listens")


@tap.case
def a_bad_line_is_named_and_nothing_is_submitted():
    with fleet() as f:
        path = f.tasks("bad", [command(0), command(1), '{"id": "t2", "run": {"command": "true"}, "nonsense": 1}'])
        done = f.run("fleet", "submit", path, "--job", "bad", code=2)
        assert f"{path}:3" in done.stderr and "nonsense" in done.stderr, done.stderr
        done = f.run("fleet", "submit", f.tasks("text", [command(0), "words"]), code=2)
        assert "text.jsonl:2: column 1: expected a value" in done.stderr, done.stderr
        assert not os.path.exists(f.store) and done.stdout == ""
        assert "no jobs" in f.run("fleet", "status", code=None).stdout or not os.path.exists(f.store)


class Impatient:
    """A server that ends connections because nobody told it in time who comes."""

    def __enter__(self):
        self.listens = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self.listens.getsockname()[1]}"
        self.calls = 0
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return self

    def serve(self):
        told = {"server_id": "X", "version": "2.9.10", "host": "127.0.0.1", "port": 1, "max_payload": 1048576, "headers": True,
                "auth_required": True, "proto": 1}
        with contextlib.suppress(OSError):
            while True:
                with self.listens.accept()[0] as caller:
                    caller.sendall(b"INFO " + json.dumps(told).encode() + b"\r\n")
                    if caller.recv(1 << 16):
                        self.calls += 1
                        caller.sendall(b"-ERR 'Authentication Timeout'\r\n")

    def __exit__(self, *_):
        self.listens.shutdown(socket.SHUT_RDWR)
        self.listens.close()
        self.thread.join()


@tap.case
def a_server_that_does_not_wait_for_a_slow_machine_is_told():
    with fleet() as f, Impatient() as server:
        f.write_config(url=server.url)
        done = f.run("fleet", "workers", code=1)
        assert "set `timeout` of its `authorization`" in done.stderr and "no such user" not in done.stderr, done.stderr
        assert server.calls > 1, server.calls


@tap.case
def the_store_and_the_queue_are_named_when_they_are_missing():
    with fleet() as f:
        path = f.tasks("one", [command(0)])
        f.server.kill()
        done = f.run("fleet", "submit", path, "--job", "one", code=1)
        assert "no NATS server answers" in done.stderr and "glovebox fleet up" in done.stderr, done.stderr
        f.server.start()
        f.write_config(url="nats://user:secret@127.0.0.1:1")
        done = f.run("fleet", "workers", code=1)
        assert "127.0.0.1:1" in done.stderr and "secret" not in done.stderr, done.stderr
        done = f.run("fleet", "status", "--store", os.path.join(f.folder, "nowhere"), code=1)
        assert "nowhere" in done.stderr, done.stderr
        tap.refused(PROGRAM, ["fleet", "limit", "x", "many"], "no number")
        tap.refused(PROGRAM, ["fleet", "limit", "x", "0", "--per-minute", "60"], "needs a number of tasks", "limit x 20 --per-minute 60")
        tap.refused(PROGRAM, ["fleet", "retry", "j", "--status", "done"], "--status")


@tap.case
def a_server_without_jetstream_and_a_full_one_say_the_remedy():
    with fleet("jetstream { max_file_store: 8MB }\n") as f:
        lines = [command(i, "true # " + "x" * 60000) for i in range(200)]
        done = f.run("fleet", "submit", f.tasks("full", lines), "--job", "full", code=1)
        assert "max_file_store" in done.stderr or "could not store" in done.stderr, done.stderr
        # All of it is in the store all the same, and more room is all that was missing.
        assert os.path.exists(os.path.join(f.store, "jobs", "full", "tasks.jsonl"))


@tap.case
def a_server_that_fills_up_in_the_middle_of_a_submit_ends_it_in_order():
    rng = random.Random(4)
    with fleet("jetstream { max_file_store: 1MB }\n") as f:
        wire = Wire(f.server)
        for i in range(FULL_SUBMITS):
            # The store is full after another number of lines each time, and answers come until the end.
            path = f.tasks("fill", [command(n, "true # " + "x" * rng.randrange(100, 300)) for n in range(FULL_LINES)])
            done = f.run("fleet", "submit", path, "--job", f"fill{i}", code=1, timeout=10 * WAIT_S)
            assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
            assert "max_file_store" in done.stderr and "the same line again goes on" in done.stderr, done.stderr
            queued = json.loads(wire.request("$JS.API.STREAM.INFO.GB_main_TASKS"))["state"]["messages"]
            assert 0 < queued < FULL_LINES, queued
            assert b'"success":true' in wire.request("$JS.API.STREAM.PURGE.GB_main_TASKS")
        wire.close()


@tap.case
def a_submit_asks_for_each_lane_once_and_not_with_each_line():
    with fleet() as f:
        f.run("fleet", "submit", f.tasks("first", [command(0)]), "--job", "first")
        wire = Wire(f.server)

        def asked():
            return json.loads(wire.request("$JS.API.INFO"))["api"]["total"]
        before = asked()
        path = f.tasks("lanes", [command(i, lane="ab"[i % 2]) for i in range(1000)])
        assert "1000 queued now" in f.run("fleet", "submit", path, "--job", "lanes").stdout
        # Each question for a consumer takes a server of 2.9 as long as its queue is.
        assert asked() - before < 100, asked() - before
        wire.close()


@tap.case
def many_that_come_to_a_fresh_server_at_the_same_moment_make_one_queue():
    with fleet() as f:
        begun = [f.spawn([PROGRAM, "fleet", "workers"]) for _ in range(12)]
        assert [process.wait(timeout=WAIT_S) for process in begun] == [0] * 12, [f.said(process) for process in begun]


@tap.case
def jobs_are_done_looked_at_and_done_once_more():
    with fleet() as f:
        f.worker(cells=4)
        path = f.tasks("j", [command(i, f"exit {1 if i == 3 else 0}") for i in range(6)])
        f.run("fleet", "submit", path, "--job", "j")
        f.wait_for_results("j", 6)
        state = json.loads(f.run("fleet", "status", "j", "--json").stdout)
        assert (state["tasks"], state["results"], state["statuses"]["done"], state["statuses"]["failed"]) == (6, 6, 5, 1), state
        rows = list(csv.DictReader(io.StringIO(f.run("fleet", "results", "j", "--csv", code=1).stdout)))
        assert [row["status"] for row in rows].count("done") == 5 and rows[3]["exit"] == "1", rows
        before = f.result("j", "t3")
        # The same line again is the same job, and does nothing twice.
        again = f.run("fleet", "submit", path, "--job", "j", "--fleet-name", "main").stdout
        assert "0 queued now" in again and again.endswith("glovebox fleet status j --fleet-name main\n"), again
        again = f.run("fleet", "retry", "j", "--status", "failed").stdout
        assert "1 results taken away, 1 tasks queued" in again, again
        f.wait_for_results("j", 6)
        assert f.result("j", "t3")["began"] != before["began"]
        logged = f.run("fleet", "logs", "j", "t3").stdout
        assert logged.count("began\n") == 2 and logged.count("ended failed") == 2, logged
        assert "run begins\n" in logged and "run ends with exit code 1" in logged and "{" not in logged, logged
        assert "nothing was said by j t99 within a day" in f.run("fleet", "logs", "j", "t99").stderr
        f.wait_until_not_queued("j")
        assert "of 4 cells busy" in f.run("fleet", "workers").stdout
        other = f.tasks("other", [command(1)])
        assert "j" in f.run("fleet", "submit", other, "--job", "j", code=1).stderr


@tap.case
def many_begin_a_fleet_at_the_same_time():
    for _ in range(10):
        with fleet() as f:
            paths = [f.tasks(f"j{number}", [command(1)]) for number in range(8)]
            begun = [f.spawn([PROGRAM, "fleet", "submit", path, "--job", f"j{number}"]) for number, path in enumerate(paths)]
            for process in begun:
                assert process.wait(timeout=WAIT_S) == 0, f.said(process)


@tap.case
def a_paused_job_waits_and_a_cancelled_one_ends():
    with fleet() as f:
        path = f.tasks("p", [command(i) for i in range(3)])
        f.run("fleet", "submit", path, "--job", "p")
        f.run("fleet", "pause", "p")
        f.worker()
        # The worker takes them out; it never begins one.
        f.wait_until_not_queued("p")
        assert f.result_names("p") == []
        # The same line again does not end the pause.
        assert "it is paused" in f.run("fleet", "submit", path, "--job", "p").stdout
        assert f.queued("p") == 0 and json.loads(f.run("fleet", "status", "p", "--json").stdout)["paused"] is True
        f.run("fleet", "resume", "p")
        f.wait_for_results("p", 3)
        path = f.tasks("c", [command(i, "sleep 600") for i in range(5)])
        f.run("fleet", "submit", path, "--job", "c")
        wait_for(lambda: json.loads(f.run("fleet", "status", "c", "--json").stdout)["running"] == 2, "two that run")
        f.run("fleet", "cancel", "c")
        assert [f.result("c", f"t{i}")["status"] for i in range(5)] == ["cancelled"] * 5
        wait_for(lambda: "0 of 2 cells busy" in f.run("fleet", "workers").stdout, "free cells")
        assert f.queued("c") == 0


@tap.case
def a_cancel_that_was_killed_midway_is_completed_by_the_same_line_and_by_the_workers():
    with fleet() as f:
        f.run("fleet", "submit", f.tasks("a", [command(i) for i in range(4)]), "--job", "a")
        f.run("fleet", "submit", f.tasks("b", [command(i) for i in range(4)]), "--job", "b")
        # What a kill leaves behind: the mark, perhaps an empty queue, and no result.
        wire = Wire(f.server)
        for job in ("a", "b"):
            assert b'"seq"' in wire.request(f"$KV.GB_main_STATE.cancel.{job}", b"true")
        for i in range(4):
            wire.request("$JS.API.STREAM.PURGE.GB_main_TASKS", b'{"filter":"gb.main.task.*.*.b.t%d"}' % i)
        wire.close()
        assert f.queued("a") == 4 and f.queued("b") == 0 and f.result_names("a") + f.result_names("b") == []
        f.run("fleet", "cancel", "a")
        assert [f.result("a", f"t{i}")["status"] for i in range(4)] == ["cancelled"] * 4 and f.queued("a") == 0
        assert f.result_names("b") == []
        f.worker()
        f.wait_for_results("b", 4)
        assert [f.result("b", f"t{i}")["status"] for i in range(4)] == ["cancelled"] * 4
        # What was cancelled may be done after all.
        f.run("fleet", "retry", "b", "--status", "cancelled")
        wait_for(lambda: [f.result("b", name)["status"] for name in f.result_names("b")] == ["done"] * 4, "four that are done")


class Slow(s3_server.Handler):
    """A bucket that answers to the readers of one name when it is let."""
    held, go, came = None, threading.Event(), threading.Event()

    def do_GET(self):
        if self.path.endswith(Slow.held):
            Slow.came.set()
            Slow.go.wait(WAIT_S)
        self.serve()


@tap.case
def a_worker_that_drains_gives_back_at_once_what_has_not_begun():
    with fleet() as f, s3_server.Server() as bucket:
        bucket.http.RequestHandlerClass = Slow
        f.env.update(bucket.environment)
        f.write_config(store="s3://bench/runs", lease_s=30)
        Slow.held = "/results/t1.json"
        lines = [command(0, "sleep 600"), *(command(i) for i in range(1, 6))]
        f.run("fleet", "submit", f.tasks("d", lines), "--job", "d")
        first = f.worker("--drain-on", "TERM", "--name", "first", cells=6)
        # All six are taken; t0 runs, and the store lets the worker wait before t1 begins.
        assert Slow.came.wait(WAIT_S), f.said(first)
        first.send_signal(signal.SIGTERM)
        wait_for(lambda: "no more tasks begin" in f.said(first), "the drain")
        Slow.held = "nothing"
        f.worker("--name", "second", cells=2)

        def done():
            return sorted(name.rsplit("/", 1)[1] for name in list(bucket.objects) if "/results/" in name)
        wait_for(lambda: {"t2.json", "t3.json", "t4.json", "t5.json"} <= set(done()), "four that another worker does")
        assert first.poll() is None and "t0.json" not in done()
        Slow.go.set()
        wait_for(lambda: "t1.json" in done(), "the one that was being looked at")
        assert first.poll() is None
        for name in ("t1", "t2", "t3", "t4", "t5"):
            result = json.loads(bucket.objects[f"bench/runs/jobs/d/results/{name}.json"])
            assert (result["worker"], result["attempt"]) == ("second", 1), result
        first.send_signal(signal.SIGTERM)
        assert first.wait(timeout=WAIT_S) in (0, 143), f.said(first)


@tap.case
def a_store_that_is_lost_is_said_and_not_made_again():
    with fleet() as f:
        f.run("fleet", "submit", f.tasks("lost", [command(0)]), "--job", "lost")
        done = f.run("fleet", "results", "lost", code=1)
        assert "1 of the 1 tasks of lost have no result yet; --follow" in done.stderr, done.stderr
        os.rename(f.store, f.store + "-away")
        for words in (["cancel", "lost"], ["pause", "lost"], ["resume", "lost"], ["retry", "lost", "--status", "failed"], ["results", "lost"]):
            assert "is its name right, and its file system mounted?" in f.run("fleet", *words, code=1).stderr, words
        assert "warning  store: " in f.run("fleet", "doctor").stdout
        assert not os.path.exists(f.store)
        os.rename(f.store + "-away", f.store)
        assert "ok       store: " in f.run("fleet", "doctor").stdout


@tap.case
def credentials_that_are_taken_no_longer_end_who_has_them():
    def users(password):
        return "authorization { user: u, password: %s }\n" % password
    with fleet(users("one")) as f:
        f.write_config(url=f.server.url.replace("//", "//u:one@"), lease_s=LEASE_S)
        worker = f.worker(cells=1)
        wait_for(lambda: "cells for the fleet" in f.said(worker), "the worker")
        f.run("fleet", "submit", f.tasks("n", [command(0), command(1, needs={"no": "body"})]), "--job", "n")
        f.wait_for_results("n", 1)
        following = f.spawn([PROGRAM, "fleet", "results", "n", "--follow"])
        wait_for(lambda: "t0" in f.said(following), "the result")
        f.server.kill()
        with open(f.server.config, "r+", encoding="utf-8") as file:
            text = file.read().replace("one", "two")
            file.seek(0)
            file.write(text)
        f.server.start()
        for process in (worker, following):
            assert process.wait(timeout=WAIT_S) == 1, f.said(process)
            assert "takes these credentials no longer" in f.said(process) and "one@" not in f.said(process), f.said(process)
        path = os.path.join(f.folder, "bad.nk")
        with open(path, "w", encoding="ascii") as file:
            file.write("SUAXXXX\nUABC\n")
        assert "bad.nk cannot be used" in f.run("fleet", "workers", "--fleet", f.server.url, "--credentials", path, code=1).stderr


@tap.case
def a_task_of_which_nothing_runs_gives_up_after_its_attempts():
    with fleet() as f:
        f.worker()
        f.run("fleet", "submit", f.tasks("g", [command(0, base="rootfs:/nowhere/at/all", attempts=2)]), "--job", "g")
        f.wait_for_results("g", 1)
        result = f.result("g", "t0")
        assert result["status"] == "gave_up" and result["attempt"] == 2, result
        said = f.run("fleet", "results", "g", code=1).stdout
        assert "gave_up " in said and "/nowhere/at/all" in said, said


def state_of(f, job):
    return json.loads(f.run("fleet", "status", job, "--json").stdout)


@tap.case
def a_job_of_a_newer_release_is_given_back_then_dead_and_retried():
    with fleet() as f:
        f.run("fleet", "submit", f.tasks("newer", [command(1)]), "--job", "newer")
        f.run("fleet", "submit", f.tasks("old", [command(1)]), "--job", "old")
        about = os.path.join(f.store, "jobs", "newer", "job.json")
        with open(about, encoding="utf-8") as file:
            ours = file.read()
        with open(about, "w", encoding="utf-8") as file:
            json.dump({**json.loads(ours), "format": 2}, file)
        worker = f.worker()
        wait_for(lambda: "newer/t1 is given back" in f.said(worker), "the sentence")
        assert "format 2" in f.said(worker) and "use the newer release" in f.said(worker)
        wait_for(lambda: "newer/t1 is dead after 10 deliveries" in f.said(worker), "its end")
        f.wait_until_not_queued("newer")
        # It is no reason to leave out the job behind it.
        f.wait_for_results("old", 1)
        assert f.result_names("newer") == []
        said = f.run("fleet", "doctor").stdout
        assert "newer/t1: its lines have the format 2" in said and "fleet retry --dead newer" in said, said
        assert "1 dead message, which no worker could read: glovebox fleet doctor lists it" in f.run("fleet", "status", code=None).stdout
        assert "format 2" in f.run("fleet", "retry", "newer", "--dead", code=1).stderr
        # A release that can read it puts it back.
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=WAIT_S)
        wire = Wire(f.server)
        wire.request("$KV.GB_main_STATE.dead.newer.t1", b'{"why":"played again"}')
        wire.close()
        with open(about, "w", encoding="utf-8") as file:
            file.write(ours)
        assert state_of(f, "newer")["dead"] == 1
        said = f.run("fleet", "retry", "newer", "--dead").stdout
        assert "1 dead message forgotten" in said and "1 tasks queued" in said, said
        assert state_of(f, "newer")["dead"] == 0
        f.worker()
        f.wait_for_results("newer", 1)
        tap.refused(PROGRAM, ["fleet", "retry", "newer"], "--dead")


@tap.case
def a_stray_message_is_not_run_and_ends():
    with fleet() as f:
        worker = f.worker()
        wait_for(lambda: "cells for the fleet" in f.said(worker), "the worker")
        # Of a job that nobody has submitted; of one that another fleet has in the same store.
        f.run("fleet", "submit", f.tasks("other", [command(1)]), "--job", "other", "--fleet-name", "else")
        wire = Wire(f.server)
        for job in ("stray", "other"):
            wire.request(f"gb.main.task.default.1.{job}.t1", b'{"id":"t1","run":{"command":"true"}}')
            wait_for(lambda job=job: f"{job}/t1 is given back: nobody has submitted" in f.said(worker), "the sentence")
        # No such job can ever be submitted; a subject that is too short; an event that is none.
        wire.request('gb.main.task.default.1.a"b.t1', b"{}")
        wire.request("gb.main.task.default.1.short", b"{}")
        wire.request("gb.main.event.mine.t1", b"[1]")
        for job in ("stray", "other"):
            wait_for(lambda job=job: f"{job}/t1 is dead after 10 deliveries" in f.said(worker), "its end")
            f.wait_until_not_queued(job)
        assert "?/t1 is dropped" in f.said(worker), f.said(worker)
        wait_for(lambda: json.loads(wire.request("$JS.API.STREAM.INFO.GB_main_TASKS"))["state"]["messages"] == 0, "an empty queue")
        wire.close()
        assert f.result_names("stray") + f.result_names("other") == []
        said = f.run("fleet", "doctor").stdout
        assert "stray/t1: nobody has submitted" in said and "other/t1: nobody" in said, said
        assert "2 dead messages" in f.run("fleet", "status").stdout
        assert "1 dead message forgotten" in f.run("fleet", "retry", "stray", "--dead").stdout
        # What had a stray message before is done like any other.
        for job in ("mine", "other"):
            f.run("fleet", "submit", f.tasks(job, [command(1)]), "--job", job)
            f.wait_for_results(job, 1)
        assert f.run("fleet", "logs", "mine", "--json").returncode == 0
        wait_for(lambda: "dead: none" in " ".join(f.run("fleet", "doctor").stdout.split()), "no dead ones")


@tap.case
def a_full_list_of_dead_messages_is_said_and_strays_leave_it_after_a_day():
    with fleet() as f:
        f.run("fleet", "submit", f.tasks("mine", [command(1)]), "--job", "mine")
        now = int(time.time() * 1000)
        wire = Wire(f.server)
        for i in range(998):
            wire.request(f"$KV.GB_main_STATE.dead.full.t{i}", b'{"why":"played","at_ms":%d}' % now)
        # Of no job of the fleet: aged, and, whose time is anybody's, of a day that will not come.
        wire.request("$KV.GB_main_STATE.dead.full.aged", b'{"why":"played","at_ms":%d}' % (now - 25 * 3600 * 1000))
        wire.request("$KV.GB_main_STATE.dead.full.never", b'{"why":"played","at_ms":9223372036854775807}')
        assert state_of(f, "mine")["dead"] == 0 and "1000 dead messages" in f.run("fleet", "status").stdout
        worker = f.worker()
        f.wait_for_results("mine", 1)
        wait_for(lambda: "998 dead messages" in f.run("fleet", "status").stdout, "that the aged ones are forgotten")
        said = json.loads(f.run("fleet", "doctor", "--json").stdout)
        assert [one["text"] for one in said if one["name"] == "dead"][-1] == "993 more", said
        for i in (998, 999):
            wire.request(f"$KV.GB_main_STATE.dead.full.t{i}", b'{"why":"played","at_ms":%d}' % now)
        wire.request("gb.main.task.default.1.stray.t1", b'{"id":"t1","run":{"command":"true"}}')
        wire.close()
        wait_for(lambda: "stray/t1 is dead after 10 deliveries" in f.said(worker), "its end")
        line = next(line for line in f.said(worker).splitlines() if "stray/t1 is dead" in line)
        assert "It is not listed, because the list of dead messages is full" in line, line
        f.wait_until_not_queued("stray")
        assert "1000 dead messages forgotten" in f.run("fleet", "retry", "full", "--dead").stdout
        assert "dead: none" in " ".join(f.run("fleet", "doctor").stdout.split())


@tap.case
def forged_notes_of_dead_messages_hide_no_true_ones():
    with fleet() as f:
        f.run("fleet", "submit", f.tasks("newer", [command(1)]), "--job", "newer")
        about = os.path.join(f.store, "jobs", "newer", "job.json")
        with open(about, encoding="utf-8") as file:
            ours = json.load(file)
        with open(about, "w", encoding="utf-8") as file:
            json.dump({**ours, "format": 2}, file)
        wire = Wire(f.server)

        def forge(key, why):
            note = {"why": why, "worker": "w" * 5000, "at_ms": int(time.time() * 1000)}
            assert b'"seq"' in wire.request("$KV.GB_main_STATE.dead." + key, json.dumps(note, ensure_ascii=False).encode())
        forge("-x.--y", "a" + "é" * 50000)
        for i in range(FORGED):
            forge(f"forged.t{i}", "forged")
        wire.close()
        worker = f.worker()
        wait_for(lambda: "newer/t1 is dead after 10 deliveries" in f.said(worker), "its end")
        assert "`glovebox fleet doctor` lists it" in f.said(worker), f.said(worker)
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=WAIT_S)
        said = [finding["text"] for finding in json.loads(f.run("fleet", "doctor", "--json").stdout) if finding["name"] == "dead"]
        # The fleet's own is the first one, each job has its part, and nobody says how many there are who did not count them.
        assert said[0].startswith("newer/t1: its lines have the format 2"), said
        assert sum(text.startswith("forged/") for text in said) == 5 and len(said) == 8, said
        assert said[-1] == "at least 995 more", said
        assert said[1].startswith("-x/--y: a" + "é" * 199 + "; `glovebox fleet retry --dead -- -x`"), said[1]
        with open(about, "w", encoding="utf-8") as file:
            json.dump(ours, file)
        assert state_of(f, "newer")["dead"] == 1
        assert "at least 1002 dead messages" in f.run("fleet", "status", code=None).stdout
        # The remedies that are said forget all of them.
        assert "-x: 1 dead message forgotten" in f.run("fleet", "retry", "--dead", "--", "-x").stdout
        assert f"forged: {FORGED} dead messages forgotten" in f.run("fleet", "retry", "forged", "--dead").stdout
        assert "1 dead message," in f.run("fleet", "status", code=None).stdout


@tap.case
def a_message_of_another_format_or_lane_does_not_keep_its_task_from_running():
    with fleet() as f:
        f.run("fleet", "limit", "narrow", "1")
        lines = [command(i, f"echo {i} >out; sleep 0.3", lane="narrow", collect=["out"]) for i in range(1, 7)]
        f.run("fleet", "submit", f.tasks("n", lines), "--job", "n")
        wire = Wire(f.server)
        for i in range(1, 7):
            assert b'"purged":1' in wire.request("$JS.API.STREAM.PURGE.GB_main_TASKS", b'{"filter":"gb.main.task.*.*.n.t%d"}' % i)
        # The format of the job is in the store; each other message has the very line of its task.
        places = [("narrow.1.n.t1", 0, 2), ("default.1.n.t2", 1, 1), ("narrow.2.n.t3", 2, 1), ("nobody.1.n.t4", 3, 1),
                  ("narrow@gpu=none.1.n.t5", 4, 1), ("nobody.1.n.zz", 5, 1)]
        for place, line, version in places:
            answer = wire.request(f"gb.main.task.{place}", json.dumps(lines[line]).encode(), {"Glovebox-Line": version})
            assert b'"seq"' in answer, answer
        # More permits than there are, by other names for one.
        for name in ("01", "x", "1.1", "2"):
            wire.request(f"gb.main.permit.narrow.{name}")
        worker = f.worker(cells=4)
        f.wait_for_results("n", 6)
        f.wait_until_not_queued("n")
        wire.close()
        assert f.result_names("n") == [f"t{i}" for i in range(1, 7)]
        events = [json.loads(line) for line in f.run("fleet", "logs", "n", "--json").stdout.splitlines()]
        for i in range(1, 7):
            with open(os.path.join(f.store, "blobs", f.result("n", f"t{i}")["files"]["out"]), encoding="utf-8") as file:
                assert file.read() == f"{i}\n"
            assert [event["event"] for event in events if event["id"] == f"t{i}"].count("began") == 1, events
        # One permit: never two of them at the same time.
        running = 0
        for event in events:
            running += {"began": 1, "ended": -1}.get(event["event"], 0)
            assert running <= 1, events
        said = f.said(worker)
        assert "format 2" in said and "whose lane is narrow" in said and "none of its tasks are taken out" in said, said


@tap.case
def a_forged_line_is_dropped_and_the_submitted_one_runs():
    with fleet() as f:
        f.run("fleet", "submit", f.tasks("n", [command(i, f"echo real-{i} >out", collect=["out"]) for i in range(3)]), "--job", "n")
        wire = Wire(f.server)
        # Others publish in place of t1 and t2, and under an id that the job has not.
        forged = {"t1": json.dumps(command(1, "echo forged >out", collect=["out"], policy={"read": ["/"]})), "t2": "{", "zz": "{}",
                  "z2": json.dumps({"id": "z2", "run": {"command": "true"}})}
        for task, line in forged.items():
            wire.request("$JS.API.STREAM.PURGE.GB_main_TASKS", b'{"filter":"gb.main.task.*.*.n.%s"}' % task.encode())
            answer = wire.request(f"gb.main.task.default.1.n.{task}", line.encode(), {"Glovebox-Line": 1})
            assert b'"seq"' in answer, answer
        wire.close()
        worker = f.worker()
        # The worker that compares queue and store publishes t1 and t2 again.
        f.wait_for_results("n", 3)
        f.wait_until_not_queued("n")
        assert f.result_names("n") == ["t0", "t1", "t2"]
        for i in range(3):
            with open(os.path.join(f.store, "blobs", f.result("n", f"t{i}")["files"]["out"]), encoding="utf-8") as file:
                assert file.read() == f"real-{i}\n"
        said = f.said(worker)
        assert all(said.count(f"n/{task} is dropped") == 1 for task in forged), said
        assert "not the one in the store" in said and "no such task in the store" in said, said


@tap.case
def a_task_tells_four_lines_a_second_and_the_last_one():
    with fleet() as f:
        f.worker(cells=1)
        lines = [{"id": "t1", "setup": ["true"] * 60, "run": {"command": "true"}, "check": "echo the very last; false"}]
        f.run("fleet", "submit", f.tasks("e", lines), "--job", "e")
        f.wait_for_results("e", 1)
        wait_for(lambda: "ended" in f.run("fleet", "logs", "e").stdout, "its end")
        events = [json.loads(line) for line in f.run("fleet", "logs", "e", "--json").stdout.splitlines()]
        told = [event for event in events if event["event"] == "line"]
        seconds = (events[-1]["at_ms"] - events[0]["at_ms"]) / 1000
        assert events[0]["event"] == "began" and events[-1]["event"] == "ended", events
        assert 1 <= len(told) <= 4 + 4 * seconds + 1, (len(told), seconds)
        assert "the very last" in told[-1]["text"], told[-1]


@tap.case
def tasks_go_to_workers_that_have_what_they_need():
    with fleet() as f:
        f.run("fleet", "limit", "g", "1")
        needs = {"gpu": "a100", "zone": "b"}
        lines = [command(0), command(1, needs=needs), command(2, needs={"zone": "b"}), command(3, lane="g", needs={"gpu": "a100"}),
                 command(4, lane="g"), command(5, needs={"gpu": "other"}), command(6, needs=dict(reversed(needs.items())))]
        f.run("fleet", "submit", f.tasks("n", lines), "--job", "n")
        f.worker("--name", "plain")
        f.worker("--name", "zone", "--labels", "zone=b")
        f.wait_for_results("n", 3)
        assert f.result_names("n") == ["t0", "t2", "t4"] and f.result("n", "t2")["worker"] == "zone"
        f.worker("--name", "both", "--labels", "zone=b,gpu=a100")
        f.wait_for_results("n", 6)
        assert [f.result("n", name)["worker"] for name in ("t1", "t3", "t6")] == ["both"] * 3
        # Nobody has what t5 needs: it waits, and was never given to anybody.
        assert f.result_names("n") == ["t0", "t1", "t2", "t3", "t4", "t6"] and f.queued("n") == 1
        # A worker that had no processor for the time of a lease is not listed until it beats again.
        wait_for(lambda: "gpu=a100" in f.run("fleet", "workers").stdout, "listed with its labels")
        tap.refused(PROGRAM, ["worker", "--labels", "gpu"], "--labels", "NAME=VALUE")
        path = f.tasks("bad", [command(0, needs={"a.b": "c"})])
        assert "needs" in f.run("fleet", "submit", path, code=2).stderr


@tap.case
def several_fleets_share_the_jobs():
    with fleet() as f:
        names = ["east", "west", "north"]
        place = os.path.join(f.folder, "home", ".config", "glovebox", "config.json")
        fleets = [{"url": f.server.url, "store": os.path.join(f.folder, "store-" + name), "name": name, "lease_s": LEASE_S}
                  for name in names]

        def write(listed):
            with open(place, "w", encoding="utf-8") as file:
                json.dump({"fleet": listed}, file)

        def jobs(name):
            return {line.split()[0] for line in f.run("fleet", "status", "--fleet-name", name).stdout.splitlines() if " of " in line}
        write(fleets)
        for i in range(12):
            f.run("fleet", "submit", f.tasks(f"j{i}", [command(0)]), "--job", f"j{i}")
        there = {name: jobs(name) for name in names}
        assert sum(map(len, there.values())) == 12 and all(there.values()), there
        # Each verb finds a job where it is, in whatever order the fleets stand; one less moves its own jobs only.
        write(fleets[::-1])
        assert all("0 of 1" in f.run("fleet", "status", f"j{i}").stdout for i in range(12))
        write(fleets[:2])
        assert all("0 of 1" in f.run("fleet", "status", job).stdout for name in names[:2] for job in there[name])
        write(fleets)
        assert "east, west, north" in f.run("fleet", "workers", code=2).stderr
        assert "there is no fleet south" in f.run("worker", "--fleet-name", "south", code=2).stderr
        f.worker("--fleet-name", "west")
        job = min(there["west"])
        f.run("fleet", "results", job, "--follow")
        write([fleets[0], {**fleets[1], "name": "east"}])
        assert "name of another" in f.run("fleet", "workers", code=2).stderr


def began(f, job):
    """When the tasks of JOB began, in seconds, by their ids."""
    events = [json.loads(line) for line in f.run("fleet", "logs", job, "--json").stdout.splitlines()]
    return {event["id"]: event["at_ms"] / 1000 for event in events if event["event"] == "began"}


@contextlib.contextmanager
def asking(answers):
    """A fleet whose lane m may ask a model once a second, and three tasks that all get ANSWERS; they are done."""
    with fleet() as f, places.model({"answers": answers * 3}) as address:
        f.env.update(GLOVEBOX_BASE_URL=address + "/v1", OPENAI_API_KEY="key")
        f.write_config(lease_s=LEASE_S, models={"fake": {"provider": "openai", "context": 100000}})
        f.run("fleet", "limit", "m", "3", "--per-minute", "60")
        lines = [{"id": f"t{i}", "lane": "m", "run": {"prompt": "say it", "model": "fake"}, "collect": ["journal"]} for i in range(3)]
        f.run("fleet", "submit", f.tasks("m", lines), "--job", "m")
        f.worker(cells=1)
        f.wait_for_results("m", 3)
        assert [f.result("m", f"t{i}")["status"] for i in range(3)] == ["done"] * 3, [f.result("m", f"t{i}") for i in range(3)]
        wait_for(lambda: len(began(f, "m")) == 3, "three that began")
        yield f


@tap.case
def a_rate_counts_the_requests_of_runs():
    call = {"calls": [{"id": "c1", "tool": "list_files", "arguments": {}}]}
    with asking([call, call, {"text": "done"}]) as f:
        times = sorted(began(f, "m").values())
        # Three requests each, one a second; a slow machine needs longer.
        assert all(later - earlier >= 2.9 for earlier, later in zip(times, times[1:])), times
        # A run that has begun is held up as well: one of its requests may have been kept for it.
        for i in range(3):
            with open(os.path.join(f.store, "blobs", f.result("m", f"t{i}")["journal"]), encoding="utf-8") as file:
                answers = [note["time_ms"] / 1000 for note in map(json.loads, file) if note.get("event") == "message"]
            assert len(answers) == 3 and answers[2] - answers[0] >= 0.9, answers


@tap.case
def a_forged_heartbeat_starves_no_lane():
    with fleet() as f:
        assert f.run("fleet", "limit", "paced", "4", "--per-minute", "600").stdout == \
            "paced: at most 4 tasks at the same time, 600 requests to a model in a minute\n"
        wire = Wire(f.server)
        beats = {"evil1": {"lanes": {"paced": 9 * 10**18}, "cells": 9223372036854775807, "busy": 9223372036854775807, "load": 1e300},
                 "evil2": {"lanes": {"paced": 9 * 10**18}, "cells": -5, "busy": -5}, "evil3": {"lanes": {"paced": -9 * 10**18}}}

        forged_s = 0

        def forge():
            nonlocal forged_s
            if time.monotonic() - forged_s > 10:
                forged_s = time.monotonic()
                for name, beat in beats.items():
                    assert b'"seq"' in wire.request(f"$KV.GB_main_WORKERS.{name}", json.dumps(beat).encode())
            return len(f.result_names("h"))
        forge()
        f.worker("--name", "honest", cells=1)
        # The first task shows that the worker is there; its shares are read ten seconds later at the latest.
        lines = [command(0, "sleep 11", lane="paced"), *(command(i, lane="paced") for i in range(1, 12))]
        f.run("fleet", "submit", f.tasks("h", lines), "--job", "h")
        # Heartbeats are believed for 45 seconds: these come again and again.
        wait_for(lambda: forge() >= 1, "the first task")
        said = f.run("fleet", "workers").stdout
        assert "4096 of 4096 cells busy, load 4096.0" in said and "0 of 0 cells busy" in said and "-5" not in said, said
        said = f.run("fleet", "status").stdout
        assert "4 workers" in said and "of 4097 cells busy" in said, said
        # One of four permits is a quarter of the rate.
        wait_for(lambda: forge() == 12, "the others")
        wire.close()


@tap.case
def a_model_that_has_too_much_halves_the_rate():
    refusal = {"status": 429, "headers": {"content-type": "application/json", "retry-after-ms": "1"}, "body": "{}"}
    with asking([refusal, {"text": "done"}]) as f:
        times = began(f, "m")
        first, second = sorted(times, key=times.get)[:2]
        with open(os.path.join(f.store, "blobs", f.result("m", first)["journal"]), encoding="utf-8") as file:
            notes = [json.loads(line) for line in file]
        refused = [note["time_ms"] / 1000 for note in notes if note.get("again") == "limited"]
        assert len(refused) == 1, notes
        # Two requests, the whole rate before the refusal and a good half of it behind.
        whole_s = min(refused[0] - times[first], 2)
        assert times[second] - times[first] >= whole_s + (2 - whole_s) / 0.55 - 0.1, (times, refused)


@tap.case
def a_queue_that_lost_its_streams_is_made_again_from_the_store():
    with fleet() as f:
        f.run("fleet", "limit", "slow", "3")
        f.run("fleet", "submit", f.tasks("lost", [command(i, lane="slow") for i in range(6)]), "--job", "lost")
        wire = Wire(f.server)
        for name in ("TASKS", "PERMITS", "RESULTS", "EVENTS"):
            assert b'"success":true' in wire.request(f"$JS.API.STREAM.DELETE.GB_main_{name}")
        for name in ("STATE", "WORKERS", "LEAD"):
            assert b'"success":true' in wire.request(f"$JS.API.STREAM.DELETE.KV_GB_main_{name}")
        wire.close()
        worker = f.worker()
        f.wait_for_results("lost", 6)
        f.wait_until_not_queued("lost")
        # The streams go while the worker lives.
        f.run("fleet", "submit", f.tasks("again", [command(i, "sleep 0.3", lane="slow") for i in range(12)]), "--job", "again")
        wire = Wire(f.server)
        for name in ("GB_main_TASKS", "GB_main_PERMITS", "KV_GB_main_STATE", "KV_GB_main_LEAD"):
            wire.request(f"$JS.API.STREAM.DELETE.{name}")
        wire.close()
        f.wait_for_results("again", 12)
        assert "made again" in f.said(worker), f.said(worker)
        wait_for(lambda: json.loads(tap.run([PROGRAM, "fleet", "status", "lost", "--json"], env=f.env).stdout)["queued"] == 0,
                 "nothing queued")


def running(counter):
    """The tasks that run now, and the most that ever did."""
    with open(counter, "rb") as file:
        numbers = file.read()
    return int.from_bytes(numbers[:4], "little"), int.from_bytes(numbers[4:8], "little")


@tap.case
def a_lane_runs_as_many_tasks_as_it_has_permits():
    with fleet() as f:
        f.run("fleet", "limit", "ten", "10")
        counter = os.path.join(f.folder, "counter")
        f.run("fleet", "submit", f.tasks("l", [command(i, lane="ten") for i in range(120)]), "--job", "l")
        for _ in range(4):
            f.driver(8, 250, counter)
        f.wait_for_results("l", 120)
        assert running(counter)[1] == 10, running(counter)
        # A worker that is killed gives its permits back when its lease is over.
        f.processes[-1].kill()
        f.run("fleet", "limit", "ten", "2")
        f.run("fleet", "submit", f.tasks("m", [command(i, lane="ten") for i in range(6)]), "--job", "m")
        f.wait_for_results("m", 6)


@tap.case
def a_limit_that_is_lowered_and_raised_makes_no_permit_twice():
    with fleet() as f:
        # No lease ends while the tasks stand still.
        f.write_config(lease_s=300)
        f.run("fleet", "limit", "six", "6")
        counter, gate = os.path.join(f.folder, "counter"), os.path.join(f.folder, "gate")
        f.run("fleet", "submit", f.tasks("r", [command(i, lane="six") for i in range(24)]), "--job", "r")
        for _ in range(3):
            f.driver(8, 0, counter, gate)
        wait_for(lambda: os.path.exists(counter) and running(counter)[0] == 6, "six that run")
        # All six permits are held, and the drivers have free slots and ask for more.
        for low in ("2", "5"):
            f.run("fleet", "limit", "six", low)
            f.run("fleet", "limit", "six", "6")
            end = time.monotonic() + LOOK_S
            while time.monotonic() < end:
                assert running(counter) == (6, 6), running(counter)
                time.sleep(0.05)
        with open(gate, "wb"):
            pass
        f.wait_for_results("r", 24)
        assert running(counter)[1] == 6, running(counter)


@tap.case
def a_worker_that_stood_still_for_longer_than_its_lease_changes_nothing():
    with fleet() as f:
        f.run("fleet", "submit", f.tasks("s", [command(i) for i in range(40)]), "--job", "s")
        stopped = f.driver(4, 400)
        f.wait_for_results("s", 4)
        stopped.send_signal(signal.SIGSTOP)
        f.driver(8, 20)
        f.wait_for_results("s", 40)
        before = {name: f.result("s", name) for name in f.result_names("s")}
        stopped.send_signal(signal.SIGCONT)
        f.wait_until_not_queued("s")
        assert before == {name: f.result("s", name) for name in f.result_names("s")}


@tap.case
def kills_and_stops_at_random_moments_leave_one_result_each():
    rng = random.Random(11)
    with fleet() as f:
        f.run("fleet", "submit", f.tasks("k", [command(i) for i in range(KILL_TASKS)]), "--job", "k")
        lead = f.worker()
        drivers = [f.driver(8, KILL_MS) for _ in range(3)]
        seen = {}
        for moment in range(MOMENTS):
            # Some come while a program still begins, the others when something has been done since.
            time.sleep(rng.uniform(0, 0.12))
            if rng.random() < 0.5:
                goal = min(len(f.result_names("k")) + rng.randrange(1, 6), KILL_TASKS)
                wait_while_it_goes_on(lambda: len(f.result_names("k")), lambda there, goal=goal: there >= goal, "results")
            what = rng.random()
            if what < 0.6:
                i = rng.randrange(len(drivers))
                drivers[i].kill()
                drivers[i].wait()
                drivers[i] = f.driver(8, KILL_MS)
            elif what < 0.8:
                i = rng.randrange(len(drivers))
                drivers[i].send_signal(signal.SIGSTOP)
                time.sleep(rng.uniform(0, 0.1))
                drivers[i].send_signal(signal.SIGCONT)
            elif what < 0.9:
                f.server.kill(signal.SIGSTOP)
                time.sleep(rng.uniform(0, 0.1))
                f.server.kill(signal.SIGCONT)
            elif what < 0.96:
                f.server.kill()
                f.server.start()
            else:
                f.server.kill()
                lead.kill()
                lead.wait()
                f.server.start()
                lead = f.worker()
            if moment % 10 == 0:
                for name in f.result_names("k"):
                    seen.setdefault(name, json.dumps(f.result("k", name)))
        print(f"# {MOMENTS} moments, {len(f.result_names('k'))} results by then")
        f.wait_for_results("k", KILL_TASKS)
        assert f.result_names("k") == sorted(f"t{i}" for i in range(KILL_TASKS))
        for name, text in seen.items():
            assert json.dumps(f.result("k", name)) == text, f"{name} has a second result"
        # Debian 12's server leaves tasks in the queue that were done: the lead takes them out.
        f.wait_until_not_queued("k")
        state = json.loads(f.run("fleet", "status", "k", "--json").stdout)
        assert state["statuses"]["done"] == KILL_TASKS, state


@tap.case
def a_real_worker_that_is_killed_loses_nothing():
    with fleet() as f:
        count = 24
        lines = [command(i, f"echo {i} >out; sleep 0.2", collect=["out"]) for i in range(count)]
        f.run("fleet", "submit", f.tasks("w", lines), "--job", "w")
        rng = random.Random(5)
        worker = f.worker(cells=4)
        for _ in range(3):
            time.sleep(rng.uniform(0.5, 1.5))
            worker.kill()
            worker.wait()
            worker = f.worker(cells=4)
        f.wait_for_results("w", count)
        for i in range(count):
            result = f.result("w", f"t{i}")
            blob = os.path.join(f.store, "blobs", result["files"]["out"])
            with open(blob, encoding="utf-8") as file:
                assert file.read() == f"{i}\n", result
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=WAIT_S) == 143, f.said(worker)


@tap.case
def the_doctor_says_what_is_at_stake():
    with fleet() as f:
        report = json.loads(f.run("fleet", "doctor", "--json").stdout)
        found = {finding["name"]: finding for finding in report}
        assert "nats-server" in found["version"]["text"], found
        assert found["GB_main_TASKS"]["state"] == "ok" and found["store"]["state"] == "warning", found
        assert "always" in found["sync_interval"]["text"], found
        text = f.run("fleet", "doctor", "--nats-config").stdout
        config = text.replace("nkey: U…", "user: submitter, password: s", 1).replace("nkey: U…", "user: worker, password: w", 1)
        config = re.sub(r"^jetstream.*$", "", config, flags=re.M)
    # With these permissions a fleet works.
    with fleet(config) as f:
        f.write_config(url=f.server.url.replace("//", "//worker:w@"), lease_s=LEASE_S)
        worker = f.worker()
        wait_for(lambda: "cells" in f.run("fleet", "workers").stdout or worker.poll() is not None, "the worker")
        assert worker.poll() is None, f.said(worker)
        f.write_config(url=f.server.url.replace("//", "//submitter:s@"))
        f.run("fleet", "submit", f.tasks("d", [command(i) for i in range(2)]), "--job", "d")
        f.wait_for_results("d", 2)
        f.write_config(url=f.server.url.replace("//", "//nobody:x@"))
        assert "credentials" in f.run("fleet", "workers", code=1).stderr


def openssl(*words):
    done = tap.run(["openssl", *words])
    assert done.returncode == 0, (words, done.stderr)


def nkey(folder, name):
    """A user's nkey: a file with its seed and its public key; returns its path and the public key."""
    path = os.path.join(folder, name)
    openssl("genpkey", "-algorithm", "ed25519", "-outform", "DER", "-out", path + ".der")
    openssl("pkey", "-in", path + ".der", "-inform", "DER", "-pubout", "-outform", "DER", "-out", path + ".pub")

    def text(prefix, key_file):
        with open(key_file, "rb") as file:
            raw = bytes(prefix) + file.read()[-32:]
        return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")
    seed, public = text((18 << 3 | 5, 0), path + ".der"), text((20 << 3,), path + ".pub")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{seed}\n{public}\n")
    os.chmod(path, 0o600)
    return path, public


def certificates(folder):
    """An authority, and what it signed for the server and for a client."""
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

    def path(name):
        return os.path.join(folder, name)
    openssl("req", "-x509", *curve, "-keyout", path("ca.key"), "-out", path("ca.pem"), "-subj", "/CN=authority",
             "-days", "2")
    for name in ("server", "client"):
        openssl("req", *curve, "-keyout", path(name + ".key"), "-out", path(name + ".csr"), "-subj", f"/CN={name}",
                 "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost")
        openssl("x509", "-req", "-in", path(name + ".csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"),
                 "-CAcreateserial", "-copy_extensions", "copy", "-days", "2", "-out", path(name + ".pem"))
    return path


@tap.case
def the_printed_permissions_hold_with_nkeys_over_tls():
    need_server()
    if shutil.which("openssl") is None:
        raise tap.Skip("openssl is not installed")
    with tempfile.TemporaryDirectory(prefix="glovebox-fleet-test-") as folder:
        path = certificates(folder)
        keys = {name: nkey(folder, name) for name in ("submitter", "worker", "nobody")}
        text = tap.run([PROGRAM, "fleet", "doctor", "--nats-config"], env={**os.environ, "HOME": folder}).stdout
        for name in ("submitter", "worker"):
            text = text.replace("nkey: U…", f"nkey: {keys[name][1]}", 1)
        # The printed line about the store is played with a server that knows it.
        text = re.sub(r"^jetstream.*$", "jetstream { sync_interval: always }" if CURRENT else "", text, flags=re.M)
        # A slow machine is no other case here.
        text = text.replace("authorization {", "authorization {\n  timeout: 60", 1)
        text += f'tls {{ timeout: 60, cert_file: "{path("server.pem")}", key_file: "{path("server.key")}", ca_file: "{path("ca.pem")}", verify: true }}\n'
        with fleet(text) as f:
            tls = {"url": f.server.url.replace("nats:", "tls:"), "ca_file": path("ca.pem"), "certificate": path("client.pem"),
                   "key": path("client.key")}
            f.write_config(**tls, credentials=keys["worker"][0], lease_s=LEASE_S)
            worker = f.worker()
            wait_for(lambda: "2 cells" in f.said(worker), "the worker")
            f.write_config(**tls, credentials=keys["submitter"][0])
            f.run("fleet", "submit", f.tasks("n", [command(i) for i in range(3)]), "--job", "n")
            f.run("fleet", "results", "n", "--follow")
            f.run("fleet", "limit", "narrow", "2")
            f.run("fleet", "doctor")
            # A submitter's key takes no task, a foreign one gets nowhere, and nobody without a certificate.
            f.write_config(**tls, credentials=keys["nobody"][0])
            assert "credentials" in f.run("fleet", "workers", code=1).stderr
            f.write_config(url=tls["url"], ca_file=tls["ca_file"], credentials=keys["submitter"][0])
            assert f.run("fleet", "workers", code=1).stderr
            f.write_config(url=tls["url"], credentials=keys["submitter"][0], certificate=tls["certificate"], key=tls["key"])
            assert f.run("fleet", "workers", code=1).stderr
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(timeout=WAIT_S) == 143, f.said(worker)


class Mute:
    """In the place of a server that is gone: it greets, wants TLS, and says nothing any more."""

    def __init__(self, port):
        self.listens, self.callers, self.heard = socket.create_server(("127.0.0.1", port)), [], 0
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        told = {"server_id": "X", "version": "2.9.10", "host": "127.0.0.1", "port": 1, "max_payload": 1048576, "headers": True,
                "tls_required": True, "proto": 1}
        with contextlib.suppress(OSError):
            while True:
                caller = self.listens.accept()[0]
                self.callers.append(caller)
                caller.sendall(b"INFO " + json.dumps(told).encode() + b"\r\n")
                self.heard += caller.recv(1) != b""

    def close(self):
        self.listens.shutdown(socket.SHUT_RDWR)
        self.listens.close()
        for caller in self.callers:
            caller.close()
        self.thread.join()


@contextlib.contextmanager
def stopped(f):
    f.server.kill(signal.SIGSTOP)
    try:
        yield
    finally:
        f.server.kill(signal.SIGCONT)


@contextlib.contextmanager
def mute(f):
    f.server.kill()
    server = Mute(f.server.port)
    try:
        wait_for(lambda: server.heard >= 2, "both workers to come again")
        # Their library waits under its lock; the workers do not.
        wait_for(lambda: "was not renewed in time" in f.said(f.processes[0]), "the end of the lease")
        yield
    finally:
        server.close()
    f.server.start()


def workers_end(silence, config="", **more):
    """An idle worker and one with a task end in SILENCE of the server, and their task comes again."""
    with fleet(config) as f:
        if config:
            more["url"] = f.server.url.replace("nats:", "tls:")
        f.write_config(**more, lease_s=LEASE_S)
        workers = [f.worker("--name", "busy", cells=1), f.worker("--name", "idle", "--lanes", "other", cells=1)]
        wait_for(lambda: all("cells" in f.said(worker) for worker in workers), "the workers")
        f.run("fleet", "submit", f.tasks("e", [command(0, "sleep 600")]), "--job", "e")

        def told(name):
            return [line for line in f.run("fleet", "logs", "e", "--json").stdout.splitlines() if "began" in line and name in line]
        wait_for(lambda: told("busy"), "the task")
        with silence(f):
            for worker in workers:
                worker.send_signal(signal.SIGTERM)
            for worker in workers:
                assert worker.wait(timeout=WAIT_S) == 143, f.said(worker)
        second = f.worker("--name", "second", cells=1)
        wait_for(lambda: told("second"), "the task at the second worker")
        second.send_signal(signal.SIGTERM)
        assert second.wait(timeout=WAIT_S) == 143, f.said(second)


@tap.case
def workers_end_beside_a_server_that_does_not_answer():
    workers_end(stopped)


@contextlib.contextmanager
def tls():
    """The configuration of a server with TLS, and the file of its authority."""
    need_server()
    if shutil.which("openssl") is None:
        raise tap.Skip("openssl is not installed")
    with tempfile.TemporaryDirectory(prefix="glovebox-fleet-test-") as folder:
        path = certificates(folder)
        yield f'tls {{ timeout: 60, cert_file: "{path("server.pem")}", key_file: "{path("server.key")}" }}\n', path("ca.pem")


@tap.case
def workers_end_beside_a_server_that_stops_its_tls():
    with tls() as (config, ca_file):
        workers_end(stopped, config, ca_file=ca_file)


@tap.case
def workers_end_while_a_server_lets_them_wait_for_its_tls():
    with tls() as (config, ca_file):
        workers_end(mute, config, ca_file=ca_file)


@tap.case
def the_manifest_is_yaml():
    text = tap.run([PROGRAM, "fleet", "manifest", "kubernetes"]).stdout
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError as missing:
        raise tap.Skip("python3-yaml is not installed") from missing
    deployment, scaled = list(yaml.safe_load_all(text))
    pod = deployment["spec"]["template"]["spec"]
    assert pod["hostUsers"] is False and pod["containers"][0]["securityContext"]["procMount"] == "Unmasked"
    assert scaled["spec"]["triggers"][0]["metadata"]["stream"] == "GB_main_TASKS"
    odd = 'a"b\\c'
    text = tap.run([PROGRAM, "fleet", "manifest", "kubernetes", "--image", odd]).stdout
    assert next(yaml.safe_load_all(text))["spec"]["template"]["spec"]["containers"][0]["image"] == odd
    tap.refused(PROGRAM, ["fleet", "manifest", "kubernetes", "--fleet", "nats://me:key@host:4222"], "password")
    tap.refused(PROGRAM, ["fleet", "manifest", "nomad"], "kubernetes")


tap.play()
