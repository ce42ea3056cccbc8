#!/usr/bin/env python3
"""exec-server: the conversations in exec_server/, and clients that are torn, hostile or killed.

exec_server_test.py TAP_FOLDER GLOVEBOX

A conversation is a text. "== TITLE" begins a case, "> LINE" sends a line, "< MESSAGE" waits for this message
("*" stands for any value), "out PROCESS STREAM TEXT" for exactly these bytes, in one piece or several, and
"outhas" for bytes with TEXT in them. "hello" initializes, "link NAME TARGET" plants a link. @WORK and @HOME
are the paths of the workspace and of the person's home. Anything else that the server says is an error."""
import base64
import contextlib
import glob
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402, pylint: disable=wrong-import-position
from place import outside  # noqa: E402, pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[2])
HERE = os.path.dirname(os.path.abspath(__file__))
WAIT_SECONDS = 60  # sanitizers on a busy machine
LINE_MAX = 16 << 20
PROCESSES_MAX = 64
MANY = 400
FLOOD = 10000
SECRET = "only-the-person-reads-this"


class Server:
    """The server in a home of its own, and its client."""

    def __init__(self, folder, *options):
        self.home, self.work = os.path.join(folder, "home"), os.path.join(folder, "work")
        os.makedirs(os.path.join(self.home, "private"), exist_ok=True)
        os.makedirs(self.work, exist_ok=True)
        with open(os.path.join(self.home, "private", "secret"), "w", encoding="ascii") as file:
            file.write(SECRET)
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.home, "OUTSIDE": "outside",
                            "LANG": "C.UTF-8"}
        self.process = subprocess.Popen([PROGRAM, "exec-server", *options], cwd=self.work,
                                        env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.got, self.held, self.number = queue.Queue(), [], 100
        self.listens = threading.Event()
        self.listens.set()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.listens.wait()
            self.got.put(json.loads(line))
        self.got.put(None)

    def write(self, line):
        self.process.stdin.write(line if isinstance(line, bytes) else line.encode() + b"\n")
        self.process.stdin.flush()

    def take(self, fits):
        """The first message that FITS, and that was not taken before."""
        end = time.monotonic() + WAIT_SECONDS
        for message in self.held:
            if fits(message):
                self.held.remove(message)
                return message
        while True:
            try:
                message = self.got.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty as error:
                raise AssertionError(f"waited in vain; it said {self.held}") from error
            assert message is not None, f"the server has ended; it said {self.held}"
            if fits(message):
                return message
            self.held.append(message)

    def call(self, method, **params):
        self.number += 1
        number = self.number
        self.write(json.dumps({"id": number, "method": method, "params": params}))
        return self.take(lambda message: message.get("id") == number)

    def hello(self):
        answer = self.call("initialize", clientName="test", resumeSessionId=None)
        assert "result" in answer, answer

    def start(self, name, *argv, **more):
        answer = self.call("process/start", processId=name, argv=argv, cwd=self.uri(""), env={}, **more)
        assert answer.get("result") == {"processId": name}, answer

    def closed(self, name):
        def fits(method):
            return lambda message: message.get("method") == method and message["params"]["processId"] == name
        code = self.take(fits("process/exited"))["params"]["exitCode"]
        self.take(fits("process/closed"))
        return code

    def output(self, name):
        """The bytes that are held for a process, which are taken."""
        parts = [message for message in self.held if message.get("method") == "process/output"
                 and message["params"]["processId"] == name]
        for part in parts:
            self.held.remove(part)
        return b"".join(base64.b64decode(part["params"]["chunk"]) for part in parts)

    def uri(self, name):
        return "file://" + os.path.join(self.work, name)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(WAIT_SECONDS)


@contextlib.contextmanager
def served(*options, repository=False):
    folder = os.path.realpath(tempfile.mkdtemp(prefix="glovebox-hands-", dir=outside()))
    if repository:
        subprocess.run(["git", "init", "-q", os.path.join(folder, "work")], check=True)
    server = Server(folder, *options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def fits(wanted, got):
    if wanted == "*":
        return True
    if isinstance(wanted, dict) and isinstance(got, dict):
        return wanted.keys() == got.keys() and all(fits(wanted[key], got[key]) for key in wanted)
    if isinstance(wanted, list) and isinstance(got, list):
        return len(wanted) == len(got) and all(map(fits, wanted, got))
    return type(wanted) is type(got) and wanted == got


def take_output(server, name, stream, text, whole):
    """Wait for the output of a process until it holds TEXT."""
    got = server.__dict__.setdefault("streams", {})
    key = name, stream
    while text not in got.get(key, b""):
        message = server.take(lambda one: one.get("method") == "process/output"
                              and one["params"]["processId"] == name and one["params"]["stream"] == stream)
        got[key] = got.get(key, b"") + base64.b64decode(message["params"]["chunk"])
    assert not whole or got[key] == text, got[key]


def talk(lines):
    with served() as server:
        for line in lines:
            line = line.replace("@WORK", server.work).replace("@HOME", server.home)
            word, _, rest = line.partition(" ")
            if word == ">":
                server.write(rest)
            elif word == "<":
                wanted = json.loads(rest)
                server.take(lambda message, wanted=wanted: fits(wanted, message))
            elif word in ("out", "outhas"):
                name, stream, text = rest.split(" ", 2)
                take_output(server, name, stream, text.replace("\\n", "\n").encode(), word == "out")
            elif word == "hello":
                server.hello()
            elif word == "link":
                name, target = rest.split(" ")
                os.symlink(target, os.path.join(server.work, name))
            else:
                raise AssertionError("no such line: " + line)
        left = [message for message in server.held if message.get("method") != "process/output"]
        assert not left, left
        assert server.end() == 0


def add_conversations():
    for path in sorted(glob.glob(os.path.join(HERE, "exec_server", "*.talk"))):
        with open(path, encoding="utf-8") as file:
            parts = re.split(r"^== (.*)\n", file.read(), flags=re.MULTILINE)
        for title, text in zip(parts[1::2], parts[2::2]):
            lines = [line for line in text.split("\n") if line and not line.startswith("#")]

            def one(lines=tuple(lines)):
                talk(lines)

            one.__name__ = re.sub(r"\W+", "_", title)
            tap.case(one)


def processes_with(mark):
    """The processes of this machine whose words have MARK."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit():
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if mark.encode() in file.read():
                        found.append(int(name))
    return found


def gone(mark):
    end = time.monotonic() + WAIT_SECONDS
    while processes_with(mark) and time.monotonic() < end:
        time.sleep(0.05)
    assert not processes_with(mark), mark


def ends_everything(how, code):
    mark = f"61{os.getpid()}.{time.monotonic_ns() % 1000000}"
    with served() as server:
        server.hello()
        server.start("p", "sh", "-c", f"trap '' TERM INT HUP; (setsid sleep {mark} &) ; sleep {mark}")
        end = time.monotonic() + WAIT_SECONDS
        while len(processes_with("sleep\0" + mark)) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        assert processes_with("sleep\0" + mark)
        how(server)
        assert server.process.wait(WAIT_SECONDS) == code, server.process.returncode
    gone("sleep\0" + mark)


@tap.case
def the_end_of_the_input_ends_every_process():
    ends_everything(lambda server: server.process.stdin.close(), 0)


@tap.case
def sigterm_ends_every_process():
    ends_everything(lambda server: server.process.send_signal(signal.SIGTERM), 143)


@tap.case
def a_server_that_is_killed_leaves_no_process():
    ends_everything(lambda server: server.process.kill(), -signal.SIGKILL)


@tap.case
def a_client_that_reads_nothing_holds_up_its_processes_only():
    with served() as server:
        server.hello()
        server.start("p", "sh", "-c", "while :; do echo 0123456789012345678901234567890123456789; done")
        server.listens.clear()

        def memory():
            with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
                return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
        size, before = -1, memory()
        while size != before:
            time.sleep(0.5)
            size, before = before, memory()
        assert size < 200 << 10, size
        server.listens.set()
        assert server.call("process/terminate", processId="p")["result"] == {"running": True}
        server.closed("p")
        assert server.end() == 0


@tap.case
def a_line_that_is_too_long_is_refused_and_the_next_one_served():
    with served() as server:
        server.hello()
        piece = b"x" * (1 << 20)
        for _ in range((LINE_MAX >> 20) + 2):
            server.write(piece)
        server.write(b"\n")
        refused = server.take(lambda message: "error" in message)
        assert refused["error"]["code"] == -32600 and refused["id"] is None, refused
        assert "result" in server.call("environment/info")
        assert server.end() == 0


@tap.case
def half_a_line_is_waited_for_and_dropped_at_the_end():
    with served() as server:
        server.hello()
        server.write(b'{"id":1,"method":"environment')
        time.sleep(0.1)
        server.write(b'/info"}\n')
        assert "result" in server.take(lambda message: message.get("id") == 1)
        server.write(b'{"id":2,"method":"environment')
        assert server.end() == 0


@tap.case
def more_processes_than_there_may_be_are_refused():
    with served() as server:
        server.hello()
        for number in range(PROCESSES_MAX):
            server.start(f"p{number}", "sleep", "600")
        answer = server.call("process/start", processId="more", argv=["true"], cwd=server.uri(""), env={})
        assert answer["error"]["code"] == -32600, answer
        assert "result" in server.call("process/terminate", processId="p0")
        assert server.closed("p0") == 143
        server.start("more", "true")
        assert server.closed("more") == 0
        assert server.end() == 0


@tap.plain_case
def many_short_processes_leave_nothing_behind():
    with served() as server:
        server.hello()

        def rest(first, count):
            for number in range(first, first + count):
                server.start(f"p{number}", "true")
                assert server.closed(f"p{number}") == 0
            end = time.monotonic() + 5
            while time.monotonic() < end:
                files = len(os.listdir(f"/proc/{server.process.pid}/fd"))
                if files < 40:
                    break
                time.sleep(0.1)
            return files
        before, after = rest(0, 20), rest(20, MANY)
        assert after <= before + 8, (before, after)
        answer = server.call("process/read", processId="p0", afterSeq=0, waitMs=0)
        assert answer["error"]["code"] == -32600, answer
        assert server.end() == 0


@tap.case
def input_that_nobody_reads_is_refused_in_the_end():
    with served() as server:
        server.hello()
        server.start("p", "sleep", "600", pipeStdin=True)
        chunk = base64.b64encode(b"x" * (600 << 10)).decode()
        answers = [server.call("process/write", processId="p", chunk=chunk, writeId=str(number))
                   for number in range(4)]
        assert answers[0]["result"] == {"status": "accepted"}, answers[0]
        assert answers[-1]["error"]["code"] == -32600, answers[-1]
        assert server.end() == 0


@tap.case
def the_newest_output_is_kept_for_a_read():
    with served() as server:
        server.hello()
        server.start("p", "sh", "-c", "seq 1 600000")
        assert server.closed("p") == 0
        whole = server.output("p")
        assert whole == b"".join(b"%d\n" % number for number in range(1, 600001))
        told = server.call("process/read", processId="p", afterSeq=0, maxBytes=None, waitMs=0)["result"]
        kept = b"".join(base64.b64decode(chunk["chunk"]) for chunk in told["chunks"])
        assert whole.endswith(kept) and 900 << 10 < len(kept) <= 1 << 20, len(kept)
        part = server.call("process/read", processId="p", afterSeq=told["chunks"][0]["seq"], maxBytes=1)["result"]
        assert len(part["chunks"]) == 1 and part["nextSeq"] == part["chunks"][0]["seq"] + 1, part["nextSeq"]
        assert server.end() == 0


@tap.case
def a_large_file_is_read_as_a_whole_and_in_blocks():
    with served() as server:
        server.hello()
        content = os.urandom(5 << 20)
        with open(os.path.join(server.work, "large"), "wb") as file:
            file.write(content)
        told = server.call("fs/readFile", path=server.uri("large"))
        assert base64.b64decode(told["result"]["dataBase64"]) == content
        assert "result" in server.call("fs/open", handleId="h", path=server.uri("large"))
        got, eof = b"", False
        while not eof:
            block = server.call("fs/readBlock", handleId="h", offset=len(got), len=1 << 20)["result"]
            got, eof = got + base64.b64decode(block["chunk"]), block["eof"]
        assert got == content
        os.rename(os.path.join(server.work, "large"), os.path.join(server.work, "old"))
        shutil.copy(os.path.join(server.work, "old"), os.path.join(server.work, "large"))
        assert "error" in server.call("fs/readBlock", handleId="h", offset=0, len=1)
        assert server.end() == 0


@tap.case
def a_fifo_and_a_device_hold_up_nothing():
    with served() as server:
        server.hello()
        os.mkfifo(os.path.join(server.work, "fifo"))
        assert "error" in server.call("fs/readFile", path=server.uri("fifo"))
        assert "error" in server.call("fs/readFile", path="file:///dev/zero")
        assert "error" in server.call("fs/writeFile", path=server.uri("fifo"), dataBase64="eA==")
        told = server.call("fs/getMetadata", path=server.uri("fifo"))["result"]
        assert told["isFile"] is False and told["isDirectory"] is False, told
        assert server.end() == 0


@tap.case
def undo_takes_back_what_the_client_wrote():
    with served() as server:
        with open(os.path.join(server.work, "a"), "w", encoding="ascii") as file:
            file.write("old")
        server.hello()
        assert "result" in server.call("fs/writeFile", path=server.uri("a"), dataBase64="bmV3")
        server.start("p", "sh", "-c", "echo b >b")
        assert server.closed("p") == 0
        assert "result" in server.call("fs/remove", path=server.uri("b"), recursive=False, force=False)
        assert server.end() == 0

        def undo():
            done = subprocess.run([PROGRAM, "undo"], cwd=server.work, env=server.environment,
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        undo()
        assert os.path.exists(os.path.join(server.work, "b"))
        undo()
        assert not os.path.exists(os.path.join(server.work, "b"))
        undo()
        with open(os.path.join(server.work, "a"), encoding="ascii") as file:
            assert file.read() == "old"


@tap.case
def hooks_and_settings_of_git_stay_as_they_are():
    with served(repository=True) as server:
        config = os.path.join(server.work, ".git", "config")
        with open(config, "rb") as file:
            before = file.read()
        server.hello()
        for method, more in (("fs/writeFile", {"path": server.uri(".git/config"), "dataBase64": "eA=="}),
                             ("fs/writeFile", {"path": server.uri(".git/hooks/pre-commit"), "dataBase64": "eA=="}),
                             ("fs/copy", {"sourcePath": server.uri(".git/HEAD"), "recursive": False,
                                          "destinationPath": server.uri(".git/hooks/pre-commit")}),
                             ("fs/createDirectory", {"path": server.uri(".git/hooks/more"), "recursive": True}),
                             ("fs/remove", {"path": server.uri(".git"), "recursive": True, "force": True})):
            answer = server.call(method, **more)
            assert answer.get("error", {}).get("code") in (-32600, -32603), (method, answer)
        assert server.end() == 0
        with open(config, "rb") as file:
            assert file.read() == before
        hooks = os.path.join(server.work, ".git", "hooks")
        assert not os.path.isdir(hooks) or all(name.endswith(".sample") for name in os.listdir(hooks))


@tap.case
def a_process_ends_at_its_time_limit_and_says_so():
    with served("--timeout", "1") as server:
        server.hello()
        server.start("p", "sleep", "600")
        assert server.closed("p") == 124
        assert server.output("p") == b"glovebox: ended after 1 s (--timeout)\n"
        server.start("t", "sleep", "600", tty=True)
        assert server.closed("t") == 124
        assert server.end() == 0


@tap.case
def a_flood_of_starts_is_answered_one_by_one():
    with served() as server:
        server.hello()
        first = server.number + 1
        line = {"method": "process/start", "params": {"argv": ["sleep", "600"], "cwd": server.uri(""), "env": {}}}
        for number in range(first, first + FLOOD):
            line["id"] = number
            line["params"]["processId"] = f"p{number}"
            server.write(json.dumps(line))
        codes = [server.take(lambda message, number=number: message.get("id") == number)
                 for number in range(first, first + FLOOD)]
        started = [code for code in codes if "result" in code]
        assert len(started) == PROCESSES_MAX, len(started)
        assert all(code["error"]["code"] == -32600 for code in codes if "error" in code)
        assert server.end() == 0


@tap.case
def what_it_may_show_is_said_by_explain_and_other_places_are_refused():
    done = tap.run([PROGRAM, "exec-server", "--explain", "--json"], cwd=HERE)
    assert done.returncode == 0 and json.loads(done.stdout)["workspace"] == HERE, done
    for options in ["--listen", "ws://127.0.0.1:1"], ["--tty"], ["--json"], ["--clipboard"]:
        done = tap.run([PROGRAM, "exec-server", *options], stdin=subprocess.DEVNULL)
        assert done.returncode == 2 and "exec-server: --" in done.stderr, done


add_conversations()
tap.play(PROGRAM)
