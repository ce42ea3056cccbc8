#!/usr/bin/env python3
"""Cells that outlive a terminal: start, ps, exec --in, attach, logs, stop, and what is killed on the way.

cells_test.py TAP_FOLDER GLOVEBOX"""
import base64
import contextlib
import fcntl
import filecmp
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402
import terminal  # noqa: E402
from place import Home, copies  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])  # it is started in another folder
PATIENCE_S = int(os.environ.get("GLOVEBOX_TEST_PATIENCE", terminal.PATIENCE_S))
MEBI = 1 << 20
KILLS = 6
USER = 61000 + os.getpid() % 10000  # whom root becomes
LET_GO = b"\x1d"
TOP = max(30, 3 * tap.START_S)


class Place(Home):
    """A person with a runtime directory. What is left of their cells at the end is stopped, and that is a failure
    unless the case says so."""

    def __init__(self):
        super().__init__("glovebox-cells-")
        self.runtime = os.path.join(self.folder, "run")
        os.mkdir(self.runtime, 0o700)
        self.mark = f"{random.randrange(10 ** 9)}"

    def __exit__(self, *how):
        for name in self.names():
            self.run("stop", "--time", "0", name)
        super().__exit__(*how)

    @property
    def cells(self):
        return os.path.join(self.runtime, "glovebox", "cells")

    def names(self):
        return sorted(os.listdir(self.cells)) if os.path.isdir(self.cells) else []

    def variables(self, **more):
        return {**self.environment(XDG_RUNTIME_DIR=self.runtime, TERM="xterm"), **more}

    def run(self, *words, environment=None, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([GLOVEBOX, *words], cwd=self.work, env=environment or self.variables(),
                              capture_output=True, check=False, timeout=PATIENCE_S, **more)

    def begin(self, *words, **more):
        return subprocess.Popen([GLOVEBOX, *words], cwd=self.work, env=self.variables(), **more)

    def start(self, name, *words):
        done = self.run("start", "--name", name, *words)
        assert (done.returncode, done.stdout.decode()) == (0, name + "\n"), done

    def inside(self, name, *argv, **more):
        return self.run("exec", "--in", name, "--", *argv, **more)

    def rows(self):
        done = self.run("ps", "--json")
        assert done.returncode == 0, done
        return [json.loads(line) for line in done.stdout.splitlines()]

    def row(self, name):
        return next((row for row in self.rows() if row["name"] == name), None)

    def running(self, name):
        return [job for job in self.row(name)["jobs"] if job["running"]]

    def front(self, name):
        with open(os.path.join(self.cells, name, "about.json"), encoding="utf-8") as file:
            return json.load(file)["pid"]

    def terminal(self, *words):
        return Shown(GLOVEBOX, *words, environment=self.variables(), looked_at=False)

    def marked(self):
        """The processes on this machine whose command line has our mark."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if self.mark.encode() in file.read():
                        found.append(int(pid))
        return found


class Wire:
    """A caller of the front behind a cell, without a program of ours between."""

    def __init__(self, place, name, version=1):
        self.name = name
        self.number = 0
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        # The address of a socket has 107 bytes: a folder of any depth goes by its descriptor.
        folder = os.open(os.path.join(place.cells, name), os.O_PATH)
        try:
            self.sock.connect(f"/proc/self/fd/{folder}/socket")
        finally:
            os.close(folder)
        self.file = self.sock.makefile("rw", encoding="utf-8")
        if version:
            self.ask("hello", version=version)

    def __enter__(self):
        return self

    def __exit__(self, *how):
        self.file.close()
        self.sock.close()

    def send(self, method, **params):
        self.number += 1
        if method != "hello":
            params["cell"] = self.name
        json.dump({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}, self.file)
        self.file.write("\n")
        self.file.flush()
        return self.number

    def ask(self, method, **params):
        number = self.send(method, **params)
        for line in self.file:
            answer = json.loads(line)
            if answer.get("id") == number or "error" in answer:
                return answer
        raise AssertionError(f"no answer to {method}")


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def until(holds, what):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"not {what}"
        time.sleep(0.02)


def types(tty, word, shown, by):
    """Type the line WORD until BY has SHOWN: a terminal that somebody takes has another size for a moment."""
    end = time.monotonic() + PATIENCE_S
    while shown not in by.printed:
        assert time.monotonic() < end, f"no {shown!r} in {by.printed!r}"
        answers = by.printed.count(b"got " + word)
        tty.type(word + b"\r")
        by.shows_another(b"got " + word, answers)
    by.wait_for(shown)


class Shown(terminal.Terminal):
    """A terminal that can wait for an answer without knowing all of it."""

    def shows_another(self, text, count):
        """TEXT more than COUNT times, or not soon: keys of a terminal that does not type yet are lost."""
        end = time.monotonic() + 2
        while self.printed.count(text) <= count and time.monotonic() < end:
            self._read(time.monotonic() + 0.1)
        self._read(time.monotonic() + 0.1)


def says(done, code, *parts):
    assert done.returncode == code, done
    for part in parts:
        assert part in done.stderr.decode(), (part, done)


@tap.case
def a_program_in_a_cell_has_its_streams_and_its_code():
    with Place() as place:
        place.start("one")
        done = place.inside("one", "sh", "-c", "cat; echo err >&2; exit 7", input=b"in\0\xff", stdin=None)
        assert (done.returncode, done.stdout, done.stderr) == (7, b"in\0\xff", b"err\n"), done
        data = random.randbytes(3 * MEBI + 1)
        done = place.inside("one", "cat", input=data, stdin=None)
        assert done.returncode == 0 and done.stdout == data
        assert place.inside("one", "sh", "-c", "kill -9 $$").returncode == 137
        done = place.run("exec", "--in", "one", "--timeout", "0.3", "--", "sleep", "600")
        says(done, 124, "ended after 0.3 s (--timeout)")
        says(place.inside("one", "no-such-program"), 127, "no-such-program")
        done = place.run("exec", "--in", "one", "-e", "A=5", "-e", "B", "--", "sh", "-c", "echo $A$B; pwd",
                         environment=place.variables(B="6"))
        assert done.stdout.decode() == f"56\n{place.work}\n", done
        assert place.inside("one", "touch", "made").returncode == 0
        assert os.path.exists(os.path.join(place.work, "made"))
        done = subprocess.run(f"exec '{GLOVEBOX}' exec --in one -- yes | head -1", shell=True, cwd=place.work,
                              env=place.variables(), capture_output=True, check=False, timeout=PATIENCE_S)
        assert done.stdout == b"y\n", done
        until(lambda: not place.running("one"), "ended when nobody reads")
        assert place.run("stop", "one").stdout == b"one\n"
        assert place.names() == [] and place.rows() == []


@tap.case
def files_devices_and_a_slow_reader_are_carried_whole():
    with Place() as place:
        place.start("one")
        data = random.randbytes(2 * MEBI)
        path = os.path.join(place.folder, "data")
        with open(path, "wb") as file:
            file.write(data)
        with open(path, "rb") as source, open(path + ".out", "wb") as target:
            done = subprocess.run([GLOVEBOX, "exec", "--in", "one", "--", "cat"], stdin=source, stdout=target,
                                  env=place.variables(), check=False, timeout=PATIENCE_S)
        with open(path + ".out", "rb") as file:
            assert done.returncode == 0 and file.read() == data
        with place.begin("exec", "--in", "one", "--", "sh", "-c", "head -c 5000000 /dev/zero; echo x >&2",
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert len(process.stdout.read()) == 5000000 and process.stderr.read() == b"x\n"
            assert process.wait(PATIENCE_S) == 0
        with open("/dev/full", "wb") as full:
            done = subprocess.run([GLOVEBOX, "exec", "--in", "one", "--", "echo", "x"], stdin=subprocess.DEVNULL,
                                  stdout=full, stderr=subprocess.PIPE, env=place.variables(), check=False,
                                  timeout=PATIENCE_S)
        says(done, 1, "No space left on device")


@tap.case
def input_that_nobody_reads_holds_nothing_up():
    with Place() as place:
        place.start("one")
        with open("/dev/zero", "rb") as zero:
            assert place.inside("one", "true", stdin=zero).returncode == 0
            with place.begin("exec", "--in", "one", "--", "sleep", "600", stdin=zero) as process:
                until(lambda: place.running("one"), "running")
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE_S) == 143
        until(lambda: not place.running("one"), "ended")


@tap.case
def a_reader_of_one_output_that_goes_does_not_hold_up_the_other():
    with Place() as place:
        place.start("one")
        done = subprocess.run(f"exec '{GLOVEBOX}' exec --in one -- sh -c 'yes; seq 100000 >&2' | (sleep 1; head -1)",
                              shell=True, cwd=place.work, env=place.variables(), capture_output=True, check=False,
                              timeout=PATIENCE_S)
        assert done.stdout == b"y\n" and done.stderr.endswith(b"\n100000\n"), (done.stdout, done.stderr[-80:])


@tap.case
def a_front_that_stands_still_holds_no_caller_after_a_signal():
    with Place() as place:
        place.start("one")
        with place.begin("exec", "--in", "one", "--", "sleep", "600" + place.mark, stdin=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL) as process:
            until(lambda: place.running("one"), "running")
            front = place.front("one")
            os.kill(front, signal.SIGSTOP)
            try:
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE_S) == 143
            finally:
                os.kill(front, signal.SIGCONT)
        until(lambda: not place.running("one"), "ended with its caller")


@tap.case
def signals_end_the_program_and_a_killed_caller_does():
    with Place() as place:
        place.start("one")
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            with place.begin("exec", "--in", "one", "--", "sleep", "600" + place.mark,
                             stdin=subprocess.DEVNULL) as process:
                until(lambda: place.running("one"), "running")
                process.send_signal(number)
                assert process.wait(PATIENCE_S) == code
        for _ in range(KILLS):
            with place.begin("exec", "--in", "one", "--", "sleep", "600" + place.mark,
                             stdin=subprocess.DEVNULL) as process:
                time.sleep(random.random() * 0.2)
                process.kill()
        until(lambda: not place.running("one"), "ended with its caller")
        until(lambda: place.marked() == [], "gone")


@tap.case
def a_job_stays_and_its_log_is_bounded():
    with Place() as place:
        place.start("one", "--", "sh", "-c", "echo first; echo second >&2; sleep 600")
        until(lambda: place.run("logs", "one").stdout == b"first\nsecond\n", "logged")
        done = place.run("exec", "--in", "one", "--detach", "--", "sh", "-c", "seq 1 400000; echo end")
        assert done.stdout == b"2\n", done
        done = place.run("logs", "-f", "one")
        # A busy machine prints faster than this reader reads.
        assert done.returncode == (b"are missing above" in done.stderr) and done.stdout.endswith(b"\nend\n"), done.stderr
        until(lambda: len(place.running("one")) == 1, "ended")
        done = place.run("logs", "one", "2")
        says(done, 0, "bytes are gone: the newest 1048576 of a job are kept")
        lines = done.stdout.split(b"\n")
        assert len(done.stdout) <= MEBI and lines[0].isdigit() and lines[-3:] == [b"400000", b"end", b""], lines[:2]
        assert int(lines[0]) + len(lines) - 3 == 400000 + (lines[-2] != b"end"), (lines[0], len(lines))
        says(place.run("logs", "one", "9"), 1, "there is no job 9 in cell one")
        says(place.run("logs", "one", "x"), 2, "no number of a job")
        says(place.run("attach", "one", "1", stdin=subprocess.DEVNULL), 2, "needs a terminal")
        jobs = {job["process"]: job for job in place.row("one")["jobs"]}
        assert jobs[2]["exit"] == 0 and jobs[1]["running"], jobs


@tap.case
def the_log_of_a_job_that_could_not_be_started_says_why():
    with Place() as place:
        place.start("one", "--", "no-such-program")
        until(lambda: not place.row("one")["jobs"][0]["running"], "ended")
        assert "command not found" in place.row("one")["jobs"][0]["message"]
        for words in (["logs", "one"], ["logs", "-f", "one"], ["logs", "one", "1"]):
            says(place.run(*words), 0, "job 1: no-such-program: command not found")
        assert place.run("exec", "--in", "one", "--detach", "--", "sh", "-c", "echo here").stdout == b"2\n"
        until(lambda: not place.row("one")["jobs"][1]["running"], "ended")
        assert place.row("one")["jobs"][1].get("message") is None
        assert (place.run("logs", "one").stdout, place.run("logs", "one").stderr) == (b"here\n", b"")


@tap.case
def a_follower_that_does_not_read_holds_up_no_job():
    with Place() as place:
        place.start("one", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; seq 1 1000000; touch done")
        with place.begin("logs", "-f", "one", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            until(lambda: place.row("one")["jobs"][0]["watchers"] == 1, "watched")
            assert place.inside("one", "touch", "go").returncode == 0
            until(lambda: os.path.exists(os.path.join(place.work, "done")), "done")
            out, error = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1 and out.endswith(b"\n1000000\n"), out[-50:]
        assert b"bytes are lost: the job prints faster" in error, error
        missing = re.search(rb"logs: (\d+) bytes of job 1 are missing above", error)
        assert missing and int(missing[1]) + len(out) == len(b"".join(b"%d\n" % i for i in range(1, 1000001))), error


@tap.case
def names_and_places_that_do_not_fit_are_told_with_the_remedy():
    with Place() as place:
        for name in "", "-x", "../up", "a/b", "x" * 65, "ä", ".x", "c12":
            says(place.run("start", "--name=" + name), 2)
        says(place.run("stop", "../up"), 2, "cannot be the name of a cell")
        for words in (["stop", "no"], ["logs", "no"]):
            says(place.run(*words), 1, "there is no cell no", "glovebox start --name no")
        says(place.inside("no", "true"), 125, "there is no cell no")
        place.start("one")
        says(place.run("start", "--name", "one"), 1, "a cell one runs already", "glovebox stop one")
        assert place.run("start").stdout == b"work\n" and place.run("start").stdout == b"work-2\n"
        says(place.run("exec", "--in", "one", "--memory", "1G", "--", "true"), 2, "glovebox start")
        for option, remedy in (("--entrypoint", "write it before CMD"), ("--review", "leave out --in")):
            says(place.run("exec", "--in", "one", option, "--", "true"), 2, f"{option} is for a cell that exec makes", remedy)
        says(place.run("exec", "--in", "one"), 2, "no command")
        says(place.run("exec", "--detach", "--", "true"), 2, "--in NAME")
        says(place.run("start", "--ssh", "github.com"), 2, "cannot ask")
        says(place.run("start", "--tty"), 2, "glovebox attach")
        says(place.run("exec", "--in", "one", "--", b"\xff"), 2, "UTF-8")
        says(place.run("start", "--name", "two", "--", "no-such-program"), 0)
        until(lambda: place.row("two")["jobs"][0].get("exit") == 127, "not found")
        without = place.variables()
        del without["XDG_RUNTIME_DIR"]
        for words in (["ps"], ["start"], ["stop", "one"]):
            says(place.run(*words, environment=without), 1, "XDG_RUNTIME_DIR is not set", "export")
        says(place.run("start", environment=place.variables(XDG_RUNTIME_DIR="run")), 1, "no absolute path")
        says(place.run("start", environment=place.variables(XDG_RUNTIME_DIR="/no/such")), 1, "does not exist")
        open_to_all = os.path.join(place.folder, "open")
        os.mkdir(open_to_all)
        os.chmod(open_to_all, 0o777)
        says(place.run("start", environment=place.variables(XDG_RUNTIME_DIR=open_to_all)), 1, "others may write")
        deep = os.path.join(place.folder, "d" * 200)
        os.mkdir(deep, 0o700)
        done = place.run("start", "--name", "deep", environment=place.variables(XDG_RUNTIME_DIR=deep))
        assert done.stdout == b"deep\n", done
        done = place.run("stop", "deep", environment=place.variables(XDG_RUNTIME_DIR=deep))
        assert done.stdout == b"deep\n", done


@tap.case
def a_full_runtime_directory_is_told():
    with Place() as place:
        script = (f"mount -t tmpfs -o size=8k,mode=700 none '{place.runtime}' && "
                  f"head -c 100000 /dev/zero > '{place.runtime}/fill'; exec '{GLOVEBOX}' start --name one")
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=place.work, env=place.variables(),
                              capture_output=True, check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        if b"unshare" in done.stderr or b"mount" in done.stderr:
            raise tap.Skip("no file system may be mounted here")
        says(done, 1, "No space left on device", "make room")


@tap.case
def a_killed_front_leaves_nothing_and_is_shown_once():
    with Place() as place:
        place.start("one", "--", "sleep", "600" + place.mark)
        with place.begin("exec", "--in", "one", "--", "sh", "-c", f"sleep 601{place.mark} & wait",
                         stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            until(lambda: len(place.running("one")) == 2, "running")
            os.kill(place.front("one"), signal.SIGKILL)
            assert process.wait(PATIENCE_S) == 125
            assert b"cell one has ended" in process.stderr.read()
        until(lambda: place.marked() == [], "gone")
        done = place.run("ps")
        assert re.search(rb"^one +gone ", done.stdout, re.M), done
        assert place.run("ps").stdout.startswith(b"No cells.")
        place.start("one")
        os.kill(place.front("one"), signal.SIGKILL)
        until(lambda: place.inside("one", "true").returncode == 125, "dead")
        place.start("one")
        os.kill(place.front("one"), signal.SIGKILL)
        until(lambda: place.run("start", "--name", "one").returncode == 0, "started anew")


@tap.case
def a_name_is_given_once_and_a_killed_start_leaves_nothing():
    with Place() as place:
        processes = [place.begin("start", "--name", "one", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                     for _ in range(4)]
        done = [(process.communicate(timeout=PATIENCE_S), process.returncode) for process in processes]
        assert sorted(code for _, code in done) == [0, 1, 1, 1], done
        assert place.names() == ["one"], place.names()
        for _ in range(KILLS):
            with place.begin("start", "--name", "two", "--", "sleep", "600" + place.mark,
                             stdout=subprocess.DEVNULL) as process:
                time.sleep(random.random() * 0.15)
                process.kill()
            # Either it was told in time and the cell is there, or nothing is.
            until(lambda: [name for name in place.names() if name.startswith(".")] == [], "settled")
            place.run("stop", "--time", "0", "two")
        until(lambda: place.marked() == [], "gone")
        assert place.names() == ["one"], place.names()


@tap.case
def stop_waits_for_those_who_end_and_ends_the_others():
    with Place() as place:
        place.start("one", "--", "sh", "-c", "trap 'touch ended; exit' TERM; echo ready; while :; do sleep 0.05; done")
        place.start("two", "--", "sh", "-c", f"trap '' TERM; echo ready; sleep 600{place.mark}; sleep 600{place.mark}")
        until(lambda: all(b"ready" in place.run("logs", name).stdout for name in ("one", "two")), "ready")
        began = time.monotonic()
        done = place.run("stop", "one", "two", "no", "--time", "1")
        assert (done.returncode, done.stdout) == (1, b"one\ntwo\n"), done
        assert not tap.is_late(time.monotonic() - began, TOP)
        assert os.path.exists(os.path.join(place.work, "ended"))
        until(lambda: place.marked() == [], "gone")
        place.start("one", "--", "sleep", "600" + place.mark)
        os.kill(place.front("one"), signal.SIGSTOP)
        done = place.run("ps")
        assert re.search(rb"^one +silent ", done.stdout, re.M), done
        assert place.run("stop", "one", "--time", "0").stdout == b"one\n"
        until(lambda: place.marked() == [], "gone")
        assert place.names() == []


@tap.case
def term_to_the_front_ends_it_in_order():
    with Place() as place:
        place.start("one", "--", "sleep", "600" + place.mark)
        os.kill(place.front("one"), signal.SIGTERM)
        until(lambda: place.names() == [], "removed")
        until(lambda: place.marked() == [], "gone")


@tap.case
def the_socket_speaks_the_wire_to_its_user():
    with Place() as place:
        place.start("one")
        with socket.socket(socket.AF_UNIX) as sock:
            folder = os.open(os.path.join(place.cells, "one"), os.O_PATH)
            sock.connect(f"/proc/self/fd/{folder}/socket")
            os.close(folder)
            file = sock.makefile("rw", encoding="utf-8")

            def ask(**message):
                file.write(json.dumps({"jsonrpc": "2.0", "id": 1, **message}) + "\n")
                file.flush()
                return json.loads(file.readline())

            assert "hello comes first" in ask(method="cell/list")["error"]["message"]
            ask(method="hello", params={"version": 1})
            assert [cell["cell"] for cell in ask(method="cell/list")["result"]["cells"]] == ["one"]
            assert ask(method="cell/open")["error"]["data"]["kind"] == "busy"
            told = ask(method="tool/register", params={"cell": "one", "name": "m", "description": "d", "schema": {}})
            assert "outlives its callers" in told["error"]["message"], told
            assert ask(method="cell/snapshot", params={"cell": "one", "name": "s"})["error"]
            assert ask(method="run/start", params={"cell": "one", "prompt": "x"})["error"]
            file.write('{"broken\n' + "x" * 100000)
            file.flush()
        assert place.inside("one", "echo", "still").stdout == b"still\n"
        assert os.stat(os.path.join(place.cells, "one")).st_mode & 0o777 == 0o700
        assert os.stat(os.path.join(place.cells, "one", "socket")).st_mode & 0o777 == 0o600


@tap.case
def the_socket_is_in_no_cell():
    with Place() as place:
        place.start("one")
        for words in (["exec", "-r", place.runtime, "--"], ["exec", "--in", "two", "--"]):
            place.run("start", "--name", "two", "-r", place.runtime)
            done = place.run(*words, "sh", "-c", f"ls -A '{place.runtime}' '{place.cells}'; echo over")
            assert b"over" in done.stdout and b"one" not in done.stdout, done
        says(place.run("exec", "-r", place.cells, "--", "true"), 125, "glovebox's own")


# The address of a socket has 107 bytes: a folder of any depth goes by its descriptor.
HELLO = """import os, socket, sys
with socket.socket(socket.AF_UNIX) as sock:
    sock.settimeout(60)
    sock.connect(f"/proc/self/fd/{os.open(os.path.dirname(sys.argv[1]), os.O_PATH)}/socket")
    try:
        sock.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"version": 1}}\\n')
        print("answer", sock.recv(9), flush=True)
    except OSError:
        print("answer", b"", flush=True)
"""


@tap.case
def a_socket_that_a_cell_is_shown_refuses_its_programs():
    with Place() as place:
        place.start("one")
        path = os.path.join(place.cells, "one", "socket")
        other = os.path.join(place.folder, "other")
        os.mkdir(other, 0o700)
        done = subprocess.run([sys.executable, "-c", HELLO, path], capture_output=True, check=False,
                              timeout=PATIENCE_S)
        assert b'"id":1' in done.stdout, done
        done = subprocess.run(["unshare", "-U", sys.executable, "-c", HELLO, path], capture_output=True, check=False,
                              timeout=PATIENCE_S)
        assert b"unshare" in done.stderr or done.stdout == b"answer b''\n", done
        # This cell has another runtime directory, and its own is as hidden as ever.
        done = place.run("exec", "-r", place.runtime, "--", "/usr/bin/python3", "-c", HELLO, path,
                         environment=place.variables(XDG_RUNTIME_DIR=other))
        assert done.stdout == b"answer b''\n", done
        assert place.inside("one", "echo", "still").stdout == b"still\n"


# Is the socket that of the user who looks, also as the kernel has it? An answer would be one to that user.
SAME = "import os, sys\nprint(os.stat(sys.argv[1]).st_uid == os.getuid(), flush=True)\n" + HELLO


@tap.case
def a_program_of_the_same_user_is_refused_because_it_is_in_a_cell():
    with Place() as place:
        # A cell of root's is of another user, who would be refused for that.
        user = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
        folder, (program,) = copies([GLOVEBOX], "glovebox-cells-")
        try:
            for path in (place.home, place.work, place.runtime) if user else ():
                os.chown(path, USER, USER)
            other = os.path.join(place.runtime, "other")

            def run(*words, **variables):
                return subprocess.run(words, cwd=place.work, env=place.variables(**variables), capture_output=True,
                                      check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, **user)

            assert run("mkdir", "-m", "700", other).returncode == 0
            done = run(program, "start", "--name", "one")
            assert done.stdout == b"one\n", done
            path = os.path.join(place.cells, "one", "socket")
            done = run(sys.executable, "-c", SAME, path)
            assert done.stdout.startswith(b"True\nanswer b'{\"id\":1"), done
            done = run(program, "exec", "-r", place.runtime, "--", "/usr/bin/python3", "-c", SAME, path, XDG_RUNTIME_DIR=other)
            assert done.stdout == b"True\nanswer b''\n", done
            assert run(program, "stop", "one").stdout == b"one\n"
        finally:
            shutil.rmtree(folder)


@tap.case
def a_folder_of_cells_is_hidden_before_there_are_cells():
    with Place() as place:
        with place.begin("exec", "-r", place.runtime, "--", "sh", "-c", "echo up; read a; "
                         f"ls -A '{place.cells}' '{place.runtime}/glovebox'; echo over",
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            assert process.stdout.readline() == b"up\n"
            place.start("one")
            out, _ = process.communicate(b"go\n", timeout=PATIENCE_S)
            assert out.endswith(b"over\n") and b"one" not in out, out
    with Place() as place:
        os.symlink(place.work, os.path.join(place.runtime, "glovebox"))
        says(place.run("exec", "-r", place.runtime, "--", "true"), 125, "is no folder", "remove it")


@tap.case
def what_is_glovebox_own_is_found_by_the_variables_of_its_caller():
    with Place() as place:
        for variable, name in (("XDG_CACHE_HOME", "glovebox/images/index.json"), ("XDG_CONFIG_HOME", "glovebox/login.json"),
                               ("XDG_DATA_HOME", "glovebox/snapshots/a")):
            top = os.path.join(place.folder, variable.lower())
            os.makedirs(os.path.dirname(os.path.join(top, name)))
            with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                file.write("{}")
            os.chmod(os.path.join(top, name), 0o600)
            done = place.run("exec", "--write", top, "--", "sh", "-c", f"echo changed > '{top}/{name}'; cat '{top}/{name}'; "
                             f"echo over > '{top}/over'", environment=place.variables(**{variable: top}))
            assert os.path.exists(os.path.join(top, "over")), done
            with open(os.path.join(top, name), encoding="utf-8") as file:
                assert file.read() == "{}" and b"{}" not in done.stdout, (variable, done)


@tap.case
def options_about_the_cell_are_refused():
    with Place() as place:
        place.start("one")
        says(place.run("exec", "--in", "one", "--agent", "reviewer", "--", "true"), 2, "--agent is about the cell")


@tap.case
def many_callers_at_the_same_time():
    with Place() as place:
        place.start("one")
        processes = [place.begin("exec", "--in", "one", "--", "sh", "-c", f"cat; exit {i}", stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE) for i in range(12)]
        for i, process in enumerate(processes):
            out, _ = process.communicate(b"%d" % i * 1000, timeout=PATIENCE_S)
            assert process.returncode == i and out == b"%d" % i * 1000


@tap.case
def a_terminal_is_let_go_and_goes_on():
    with Place() as place:
        place.start("one")
        with place.terminal("attach", "one") as tty:
            tty.wait_for(b"Ctrl+] lets go")
            # The job is drawn anew by a size that is another one for a moment.
            tty.type(b"X=4; until s=$(stty size); [ \"$s\" = '30 100' ]; do sleep 0.05; done; echo $s; echo va''lue $((X+1))\r")
            tty.wait_for(b"30 100\r\n")
            tty.wait_for(b"value 5")
            tty.type(LET_GO)
            assert tty.end() == 0 and b"goes on: glovebox attach one 1" in tty.printed, tty.printed
            assert tty.is_as_before()
        with place.terminal("attach", "one") as tty:
            tty.wait_for(b"value 5")
            tty.resize(40, 90)
            tty.type(b"until s=$(stty size); [ \"$s\" = '40 90' ]; do sleep 0.05; done; echo $s; echo st''ill $X\r")
            tty.wait_for(b"40 90\r\n")
            tty.wait_for(b"still 4")
            tty.type(b"exit 9\r")
            assert tty.end() == 9 and b"has ended: 9" in tty.printed, tty.printed
            assert tty.is_as_before()
        assert place.running("one") == []


@tap.case
def a_terminal_of_a_job_of_start_and_of_exec():
    with Place() as place:
        place.start("one", "--tty", "--", "sh", "-c", "echo rea''dy; read a; echo got $a; sleep 600")
        with place.terminal("attach", "one") as tty:
            tty.wait_for(b"ready")
            tty.type(b"word\r")
            tty.wait_for(b"got word")
            tty.process.send_signal(signal.SIGTERM)
            assert tty.end() == 143 and tty.is_as_before()
        with place.terminal("exec", "--in", "one", "--tty", "--", "sh", "-c",
                            "stty size; echo $TERM; trap 'echo caught; exit 3' INT; trap 'echo halted' TSTP; "
                            "trap 'stty size' WINCH; echo rea''dy; while :; do sleep 0.05; done") as tty:
            tty.wait_for(b"30 100\r\nxterm\r\n")
            tty.wait_for(b"ready")
            tty.resize(21, 87)
            tty.wait_for(b"21 87\r\n")
            tty.type(b"\x1a")
            tty.wait_for(b"halted")
            tty.type(LET_GO + b"\x03")
            tty.wait_for(b"caught")
            assert tty.end() == 3 and tty.is_as_before()
        with place.terminal("exec", "--in", "one", "--tty", "--", "sleep", "600" + place.mark) as tty:
            until(lambda: len(place.running("one")) == 2, "running")
            tty.process.kill()
            assert tty.end() == -9 and tty.is_as_before()
        until(lambda: len(place.running("one")) == 1, "ended with its caller")


@tap.case
def the_folder_of_cells_is_one_that_nobody_else_can_open():
    for part, others in (("glovebox", "cells"), ("glovebox/cells", "")):
        with Place() as place:
            path = os.path.join(place.runtime, part)
            target = os.path.join(place.folder, "target")
            os.makedirs(os.path.join(target, others), 0o700)
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            os.symlink(target, path)
            for words in (["start"], ["ps"], ["stop", "one"], ["logs", "one"]):
                says(place.run(*words), 1, f"{path} is a symbolic link", f"rm {path}")
            says(place.inside("one", "true"), 125, "is a symbolic link")
            assert os.listdir(target) == ([others] if others else []), os.listdir(target)
            os.unlink(path)
            os.mkdir(path, 0o755)
            says(place.run("ps"), 1, f"{path} has mode 0755, so others may open it", f"chmod 700 {path}")
            if os.geteuid() == 0:
                os.chmod(path, 0o700)
                os.chown(path, 65534, -1)
                for words in (["start"], ["ps"]):
                    says(place.run(*words), 1, f"{path} belongs to another user (number 65534)", "XDG_RUNTIME_DIR")
            os.rmdir(path)
            with open(path, "w", encoding="utf-8"):
                says(place.run("start"), 1, f"{path} is no folder", f"rm {path}")
            os.unlink(path)
            place.start("one")


@tap.case
def input_that_is_refused_is_sent_again():
    with Place() as place:
        place.start("one", "--", "sleep", "600" + place.mark)
        data = random.randbytes(3 * MEBI + 5)
        with Wire(place, "one") as wire, tempfile.TemporaryFile() as out:
            # These and the job leave one place among the calls of the cell: that of the program.
            for _ in range(62):
                wire.send("exec/wait", process=1)
            with place.begin("exec", "--in", "one", "--", "cat", stdin=subprocess.PIPE, stdout=out) as process:
                until(lambda: len(place.running("one")) == 2, "running")
                busy = wire.ask("exec/write", process=2, bytes="", taken=True)
                assert busy["error"]["data"]["kind"] == "busy", busy
                process.communicate(data, timeout=PATIENCE_S)
                assert process.returncode == 0
            out.seek(0)
            assert out.read() == data


@tap.case
def a_hundred_mebibytes_pass_unchanged():
    with Place() as place:
        place.start("one")
        path = os.path.join(place.folder, "data")
        piece = random.randbytes(MEBI - 1)
        with open(path, "wb") as file:
            for i in range(100):
                file.write(piece[i:] + piece[:i] + b"%c" % i)
        size = os.path.getsize(path)
        with open(path, "rb") as source, open(path + ".out", "wb") as target:
            done = subprocess.run([GLOVEBOX, "exec", "--in", "one", "--", "sh", "-c", "cat; exit 6"], stdin=source,
                                  stdout=target, env=place.variables(), check=False, timeout=PATIENCE_S)
        assert done.returncode == 6 and size == 100 * MEBI
        assert filecmp.cmp(path, path + ".out", shallow=False)


@tap.case
def a_front_that_stops_in_the_middle_of_attach_holds_no_terminal():
    with Place() as place, silent_front(place, "one"):
        with place.terminal("attach", "one") as tty:
            tty.wait_for(b"Ctrl+] lets go")
            tty.type(LET_GO)
            assert tty.end() == 0 and tty.is_as_before(), tty.printed
        with place.terminal("attach", "one") as tty:
            tty.wait_for(b"Ctrl+] lets go")
            assert tty.end() == 1 and b"does not answer; glovebox stop one" in tty.printed, tty.printed
            assert tty.is_as_before()
        with place.begin("exec", "--in", "one", "--", "true", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            assert b"cell one does not answer; glovebox stop one" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 130


@tap.case
def fronts_that_stand_still_are_ended_together():
    with Place() as place:
        names = [f"n{number}" for number in range(6)]
        for name in names:
            place.start(name, "--", "sh", "-c", "echo begun; sleep 600")
        fronts = {name: place.front(name) for name in names}
        until(lambda: all(place.run("logs", name).stdout == b"begun\n" for name in names), "begun")
        with contextlib.ExitStack() as still:
            for pid in fronts.values():
                still.enter_context(stopped(pid))
            done = place.run("logs", "n0")
            says(done, 1, "cell n0 does not answer; glovebox stop n0 ends it in any case")
            assert {row["state"] for row in place.rows()} == {"silent"}, place.rows()
            begun = time.monotonic()
            done = place.run("stop", "--time", "0", *names)
            # Five seconds for all of them, not for each.
            assert not tap.is_late(time.monotonic() - begun, 12), time.monotonic() - begun
            assert done.returncode == 0 and done.stdout.decode().split() == names, done
        assert place.names() == []


@tap.case
def a_list_while_cells_end_shows_none_as_silent():
    with Place() as place:
        folder = os.path.join(place.work, "ünï cödé 日本")
        os.mkdir(folder)
        done = place.run("start", "-C", folder)
        assert (done.returncode, done.stdout) == (0, b"n-c-d\n"), done
        names = ["n-c-d"] + [f"n{number}" for number in range(11)]
        for name in names[1:]:
            place.start(name, "--", "sleep", "600")
        seen = set()
        with place.begin("stop", *names, stdout=subprocess.PIPE) as process:
            while process.poll() is None:
                seen |= {row["state"] for row in place.rows()}
            assert process.returncode == 0 and process.stdout.read().decode().split() == names
        assert seen <= {"busy", "idle", "ending"}, seen
        assert place.rows() == []


@tap.case
def a_log_that_ends_in_the_middle_is_told():
    with Place() as place, silent_front(place, "one", {"exec/watch": {"from": 0, "to": 5, "running": False}}):
        says(place.run("logs", "one"), 1, "logs: cell one does not answer; glovebox stop one ends it")


# A front of the test's that answers as told, and holds its folder: FOLDER.
SILENT = """import fcntl, json, os, socket, sys
folder = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(folder, fcntl.LOCK_EX)
answers = {**json.loads(sys.argv[2]), "hello": {}, "exec/list": {"processes": [{"process": 1, "command": "sh", "stays": True, "tty": True,
                                                     "running": True}]}}
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(f"/proc/self/fd/{folder}/socket")
    listener.listen(1)
    print("on", flush=True)
    while True:
        caller = listener.accept()[0]
        for line in caller.makefile():
            asked = json.loads(line)
            if asked["method"] in answers:
                caller.sendall(json.dumps({"jsonrpc": "2.0", "id": asked["id"],
                                           "result": answers[asked["method"]]}).encode() + b"\\n")
"""


@contextlib.contextmanager
def silent_front(place, name, answers=None):
    folder = os.path.join(place.cells, name)
    os.makedirs(folder, 0o700)
    for path in (folder, place.cells, os.path.dirname(place.cells)):
        os.chmod(path, 0o700)
    with subprocess.Popen([sys.executable, "-c", SILENT, folder, json.dumps(answers or {})], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"on\n"
            yield
        finally:
            process.kill()


@tap.case
def sequences_that_come_in_two_pieces_are_shown_as_one():
    with Place() as place:
        pieces = (r"begin\033[3", r"1mred\303", r"\244\342\202", r"\254\033", r"[6n\033]0;hidden", r" too\033",
                  r"\134shown\033[0m\033[2", r"Jend\n")
        script = "; ".join(f"printf '{piece}'; until [ -e go{i} ]; do sleep 0.02; done" for i, piece in enumerate(pieces))
        place.start("one", "--", "sh", "-c", script)
        seen = (b"begin", b"red", "ä".encode(), "€".encode(), None, None, b"shown\x1b[0m", b"end")
        with place.terminal("logs", "-f", "one") as tty:
            for i, part in enumerate(seen):
                if part is not None:
                    tty.wait_until(lambda part=part: part in tty.printed, "shown")
                printed = place.row("one")["jobs"][0]["bytes"]
                assert place.inside("one", "touch", f"go{i}").returncode == 0
                if i + 1 < len(seen):
                    until(lambda before=printed: place.row("one")["jobs"][0]["bytes"] > before, "printed")
            assert tty.end() == 0, tty.printed
            shown = tty.printed.decode().replace("\r\n", "\n")
            assert shown == "begin\033[31mredä€shown\033[0mend\n", shown


@tap.case
def stop_gives_time_where_all_places_are_taken():
    script = "trap 'touch ended; exit' TERM; echo ready; while :; do sleep 0.05; done"
    with Place() as place, contextlib.ExitStack() as stack:
        place.start("one", "--", "sh", "-c", script)
        until(lambda: b"ready" in place.run("logs", "one").stdout, "ready")
        callers = [stack.enter_context(Wire(place, "one")) for _ in range(64)]
        row = place.row("one")
        assert row["state"] == "busy" and row["jobs"][0]["running"], row
        says(place.inside("one", "true"), 125, "64 callers use this cell")
        for _ in range(63):
            callers[0].send("exec/wait", process=1)
        done = place.run("stop", "one", "--time", "60")
        assert (done.returncode, done.stdout) == (0, b"one\n"), done
        assert os.path.exists(os.path.join(place.work, "ended"))
        assert place.names() == []
    # Where even the places of those who only look are taken, the front ends in order.
    with Place() as place, contextlib.ExitStack() as stack:
        place.start("one", "--", "sh", "-c", script)
        until(lambda: b"ready" in place.run("logs", "one").stdout, "ready")
        for _ in range(68):
            stack.enter_context(Wire(place, "one"))
        says(place.inside("one", "true"), 125, "cell one: 64 callers use this cell")
        assert place.row("one")["state"] == "silent"
        done = place.run("stop", "one", "--time", "0.3")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"one\n", b""), done
        assert place.names() == []


@tap.case
def stop_ends_a_front_that_takes_no_connection():
    with Place() as place, contextlib.ExitStack() as stack:
        place.start("one", "--", "sleep", "600" + place.mark)
        os.kill(place.front("one"), signal.SIGSTOP)
        with contextlib.suppress(BlockingIOError):
            while True:
                sock = stack.enter_context(socket.socket(socket.AF_UNIX))
                sock.setblocking(False)
                folder = os.open(os.path.join(place.cells, "one"), os.O_PATH)
                try:
                    sock.connect(f"/proc/self/fd/{folder}/socket")
                finally:
                    os.close(folder)
        done = place.run("stop", "one", "--time", "0.2")
        assert (done.returncode, done.stdout) == (0, b"one\n"), done
        until(lambda: place.marked() == [], "gone")
        assert place.names() == []


def dead(place, name):
    """A cell as a front leaves it that was killed."""
    folder = os.path.join(place.cells, name)
    os.mkdir(folder, 0o700)
    with open(os.path.join(folder, "about.json"), "w", encoding="utf-8") as file:
        json.dump({"name": name, "pid": 1, "workspace": place.work, "level": 3, "started_ms": 0}, file)


@tap.case
def a_dead_cell_is_dead_for_all_who_look_and_is_told_once():
    with Place() as place:
        place.start("one")
        for i in range(10):
            for name in ("a", "b", "d"):
                dead(place, f"{name}{i}")
            looks = [place.begin("ps", "--json", stdout=subprocess.PIPE) for _ in range(3)]
            starts = place.begin("start", "--name", f"a{i}", stdout=subprocess.DEVNULL)
            rows = [json.loads(line) for look in looks for line in look.communicate(timeout=PATIENCE_S)[0].splitlines()]
            assert starts.wait(PATIENCE_S) == 0
            states = sorted((row["name"], row["state"]) for row in rows if row["name"] not in ("one", f"a{i}"))
            assert states == [(f"b{i}", "gone"), (f"d{i}", "gone")], (rows, [look.returncode for look in looks])
            states = [row["state"] for row in rows if row["name"] == f"a{i}"]
            assert states.count("gone") <= 1 and "unreachable" not in states, states
            assert place.run("stop", f"a{i}").returncode == 0


@tap.case
def a_remover_that_stands_still_holds_a_list_up_once():
    with Place() as place:
        place.start("one")
        for i in range(40):
            dead(place, f"d{i}")
        held = os.open(place.cells, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            began = time.monotonic()
            states = [row["state"] for row in place.rows()]
            assert states.count("gone") == 40 and not tap.is_late(time.monotonic() - began, TOP), states
            says(place.run("start", "--name", "d0"), 1, "another glovebox (stopped?) holds the folder")
            says(place.run("stop", "d0"), 1, "another glovebox (stopped?) holds the folder")
            assert len(place.names()) == 41
        finally:
            os.close(held)
        assert len(place.rows()) == 41 and place.names() == ["one"]


@tap.case
def a_thousand_dead_cells_are_one_list():
    with Place() as place:
        place.start("one")
        for i in range(1000):
            dead(place, f"d{i}")
        began = time.monotonic()
        done = place.run("ps", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        assert done.returncode == 0 and not tap.is_late(time.monotonic() - began, TOP), done.stderr
        lines = done.stdout.decode().splitlines()
        assert len(lines) == 1002 and sum(" gone " in line for line in lines) == 1000, len(lines)
        assert place.names() == ["one"]
        assert len(place.rows()) == 1


@tap.case
def starts_without_a_name_at_the_same_time_get_different_ones():
    with Place() as place:
        processes = [place.begin("start", "--", "true", stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(5)]
        done = [(process.communicate(timeout=PATIENCE_S), process.returncode) for process in processes]
        assert [code for _, code in done] == [0] * 5, done
        names = sorted(out.decode() for (out, _), _ in done)
        assert names == ["work\n"] + [f"work-{i}\n" for i in range(2, 6)], names
        for name in names:
            assert place.inside(name.strip(), "echo", "in").stdout == b"in\n"


def ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))


@tap.case
def a_front_without_descriptors_says_so_and_rests():
    with Place() as place:
        place.start("one")
        assert place.inside("one", "true").returncode == 0
        front = place.front("one")
        most = resource.prlimit(front, resource.RLIMIT_NOFILE)
        highest = max(map(int, os.listdir(f"/proc/{front}/fd")))
        resource.prlimit(front, resource.RLIMIT_NOFILE, (highest + 1, most[1]))
        # Whatever is free below the highest one.
        with contextlib.ExitStack() as stack:
            full = None
            while full is None:
                sock = stack.enter_context(socket.socket(socket.AF_UNIX))
                sock.settimeout(PATIENCE_S)
                folder = os.open(os.path.join(place.cells, "one"), os.O_PATH)
                sock.connect(f"/proc/self/fd/{folder}/socket")
                os.close(folder)
                with contextlib.suppress(BrokenPipeError):
                    sock.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"version": 1}}\n')
                # A caller that has a place is answered, and another one is told without having been read.
                full = json.loads(sock.recv(MEBI).splitlines()[0]).get("error")
            assert full["data"]["kind"] == "busy" and "as many files open as it may" in full["message"], full
            says(place.inside("one", "true"), 125, "cell one: the front behind this cell has as many files open")
            used = ticks(front)
            time.sleep(1)
            assert ticks(front) - used < os.sysconf("SC_CLK_TCK") / 2
            resource.prlimit(front, resource.RLIMIT_NOFILE, most)
        until(lambda: place.inside("one", "true").returncode == 0, "served again")


@tap.case
def a_start_that_fails_says_why_and_leaves_nothing():
    with Place() as place:
        done = place.run("start", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        says(done, 125, "File too large")
        assert place.names() == []
        for _ in range(KILLS):
            with place.begin("start", "--name", "one", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                front = []
                while not front and process.poll() is None:
                    with contextlib.suppress(OSError), open(f"/proc/{process.pid}/task/{process.pid}/children",
                                                            encoding="utf-8") as file:
                        front = file.read().split()
                time.sleep(random.random() * 0.02)
                if front:
                    os.kill(int(front[0]), signal.SIGKILL)
                error = process.communicate(timeout=PATIENCE_S)[1]
            assert process.returncode == 0 or (process.returncode, b"was killed by signal 9" in error) == (125, True), error
            assert not [name for name in place.names() if name != "one"], place.names()
            place.run("ps")
        done = place.run("start", "-r", place.cells)
        says(done, 125, "glovebox's own")
        assert place.names() == []


@tap.case
def start_begins_again_in_a_scope_of_systemd():
    with Place() as place:
        script = os.path.join(place.folder, "bin", "systemd-run")
        os.makedirs(os.path.dirname(script), exist_ok=True)
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >> '{place.folder}/words'\n"
                       "while [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n")
        os.chmod(script, 0o755)
        environment = place.variables()
        environment["PATH"] = os.path.dirname(script) + ":" + environment["PATH"]
        words = ["start", "--name", "one", "--", "echo", "a  b"]
        if os.geteuid() == 0:
            # Root's systemd is known by a folder in /run, here by one of a mount of our own.
            run = f"mount -t tmpfs none /run && mkdir -p /run/systemd/system && exec '{GLOVEBOX}' \"$@\""
            argv = ["unshare", "-m", "sh", "-c", run, "sh"]
            user = []
        else:
            os.makedirs(os.path.join(place.runtime, "systemd", "private"))
            argv, user = [GLOVEBOX], ["--user"]
        done = subprocess.run([*argv, *words], cwd=place.work, env=environment, capture_output=True, check=False,
                              timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        if b"unshare" in done.stderr or b"mount" in done.stderr:
            raise tap.Skip("no file system may be mounted here")
        assert (done.returncode, done.stdout) == (0, b"one\n"), done
        with open(os.path.join(place.folder, "words"), encoding="utf-8") as file:
            said = file.read().splitlines()
        assert said == ["--scope", "--quiet", "-p", "Delegate=yes", *user, "--", os.path.realpath(GLOVEBOX), *words], said
        until(lambda: place.run("logs", "one").stdout == b"a  b\n", "printed")
        os.unlink(os.path.join(place.folder, "words"))
        done = place.run("start", "--name", "two", "--scope", "never", environment=environment)
        assert done.returncode == 0 and not os.path.exists(os.path.join(place.folder, "words")), done
        assert place.inside("one", "sh", "-c", "echo $GLOVEBOX_IN_SCOPE").stdout == b"\n"


@tap.case
def a_tree_whose_sender_goes_leaves_nothing():
    with Place() as place:
        place.start("one")
        for _ in range(KILLS):
            with io.BytesIO() as out:
                with tarfile.open(fileobj=out, mode="w") as tar:
                    for i in range(3000):
                        tar.addfile(tarfile.TarInfo(f"d{i % 50}/f{i}"))
                data = base64.b64encode(out.getvalue()).decode()
            with Wire(place, "one") as wire:
                wire.send("tree/put", path="tree", bytes=data)
                until(lambda: any(name.startswith(".glovebox-tree-") for name in os.listdir(place.work))
                      or os.path.exists(os.path.join(place.work, "tree")), "begun")
            until(lambda: not any(name.startswith(".glovebox-tree-") for name in os.listdir(place.work)), "tidied")
            until(lambda: place.row("one")["state"] == "idle", "idle")
            shutil.rmtree(os.path.join(place.work, "tree"), ignore_errors=True)


@tap.case
def several_look_and_one_types():
    with Place() as place:
        place.start("one", "--tty", "--", "sh", "-c", "echo rea''dy; while read a; do echo got $a, $(stty size); done")
        with place.terminal("attach", "one") as first, place.terminal("attach", "one") as second:
            for tty in first, second:
                tty.wait_for(b"ready")
            typist, other = first, second
            # Whichever came first types.
            first.type(b"one\r")
            second.type(b"two\r")
            until(lambda: b"got " in place.run("logs", "one").stdout, "typed")
            if b"got two" in place.run("logs", "one").stdout:
                typist, other = second, first
            other.wait_for(b"got ")
            assert len(place.run("logs", "one").stdout.split(b"got ")) == 2
            other.resize(11, 22)
            other.type(b"never\r")
            types(typist, b"again", b"got again, 30 100", other)
            assert b"never" not in place.run("logs", "one").stdout
            typist.type(LET_GO)
            assert typist.end() == 0
            # The other one types from now on, and has its own size, though nobody asks the front for anything.
            types(other, b"mine", b"got mine, 11 22", other)
            with place.terminal("attach", "--look", "one") as looker, place.terminal("attach", "--take", "one") as third:
                looker.wait_for(b"got mine")
                third.wait_for(b"got mine")
                other.type(b"lost\r")
                looker.type(b"lost\r")
                types(third, b"taken", b"got taken, 30 100", looker)
                assert b"lost" not in place.run("logs", "one").stdout
                looker.type(LET_GO)
                assert looker.end() == 0
                third.process.kill()
                assert third.end() == -9 and third.is_as_before()
            types(other, b"back", b"got back, 11 22", other)
            other.type(b"\x04")
            assert other.end() == 0


@tap.case
def letting_go_in_the_middle_of_a_sequence():
    with Place() as place:
        place.start("one", "--tty", "--", "sh", "-c", "stty raw -echo; printf 'rea''dy\\033[?1000h\\033[31'; "
                                                      "exec cat -v")
        with place.terminal("attach", "one") as tty:
            tty.wait_for(b"ready")
            tty.type(b"\x1b[20" + LET_GO + b"xyz")
            assert tty.end() == 0 and b"let go of job 1" in tty.printed, tty.printed
            # What the job has switched on is switched off, and its broken colour colours nothing.
            assert b"\x1b[?1000l" in tty.printed and b"\x1b[31" not in tty.printed, tty.printed
        for keys in b"\x1b[93;5u", b"\x1b[27;5;93~", b"\x1b[200~a" + LET_GO + b"b\x1b[201~" + LET_GO:
            with place.terminal("attach", "one") as tty:
                # The mode is on here as well, and off at the end.
                tty.wait_for(b"\x1b[?1000h")
                tty.type(keys)
                assert tty.end() == 0, tty.printed
                assert tty.is_as_before() and b"\x1b[?1000l" in tty.printed
        # A half sequence is no key of the program, and neither is what came behind it.
        until(lambda: b"a^]b" in place.run("logs", "one").stdout, "pasted")
        assert not any(word in place.run("logs", "one").stdout for word in (b"^[[20^", b"[20x", b"xyz"))


@tap.case
def what_a_job_has_asked_of_a_terminal_is_not_asked_again():
    with Place() as place:
        place.start("one", "--tty", "--", "sh", "-c", r"printf '\033[6n\033[c\033]11;?\007\033[1mtex''t\033[0m\n'; "
                                                      "while read a; do echo got $a; done")
        with place.terminal("attach", "one") as tty:
            tty.wait_for(b"\x1b[1mtext\x1b[0m")
            assert b"\x1b[6n" not in tty.printed and b"\x1b[c" not in tty.printed
            tty.type(b"word\r")
            tty.wait_for(b"got word")
            assert b"\x1b[6n" not in tty.printed and b"]11" not in tty.printed, tty.printed
            tty.type(LET_GO)
            assert tty.end() == 0
        raw = place.run("logs", "one").stdout
        assert b"\x1b[6n" in raw, raw


@tap.case
def attach_to_what_has_no_terminal():
    with Place() as place:
        place.start("one", "--", "sleep", "600")
        with place.terminal("attach", "one", "1") as tty:
            assert tty.end() == 2 and b"has no terminal; glovebox logs -f one 1" in tty.printed, tty.printed
        with place.terminal("attach", "one", "7") as tty:
            assert tty.end() == 1 and b"there is no job 7" in tty.printed, tty.printed
        with place.terminal("attach", "--look", "one") as tty:
            assert tty.end() == 1 and b"without --look" in tty.printed, tty.printed
        with place.terminal("attach", "one") as tty:
            tty.wait_for(b"lets go")
            until(lambda: len(place.running("one")) == 2, "running")
            os.kill(place.front("one"), signal.SIGKILL)
            assert tty.end() == 1 and b"cell one has ended" in tty.printed and tty.is_as_before()


with tempfile.TemporaryDirectory(prefix="glovebox-cells-tmp-") as TEMP:
    os.environ["TMPDIR"] = TEMP
    os.chmod(TEMP, 0o711)
    tempfile.tempdir = TEMP
    tap.play()
