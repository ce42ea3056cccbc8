"""A caller of `glovebox serve`: requests, answers, notices. For the tests; standard library only."""
import base64
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time

WAIT_SECONDS = 90  # sanitizers on a busy machine
VERSION = 1


def encode(data):
    return base64.b64encode(data).decode()


def decode(text):
    return base64.b64decode(text)


class Ended(AssertionError):
    """The engine has ended before it said what was waited for."""


class Engine:
    """An engine in a home and with a temporary folder of its own, and its caller."""

    def __init__(self, program, folder, *options, greets=True, home=None, user=None):
        self.folder = folder
        self.home, self.work, self.temp = (os.path.join(folder, name) for name in ("home", "work", "temp"))
        self.home = home or self.home
        for path in (self.home, self.work, self.temp):
            os.makedirs(path, exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "HOME": self.home, "TMPDIR": self.temp, "LANG": "C.UTF-8"}
        # A sanitizer that looks for leaks would find the cells that the engine leaves to its end.
        environment.update({name: os.environ[name] for name in ("ASAN_OPTIONS",) if name in os.environ})
        if user is not None:
            # The folders above the program may be closed to it.
            program = shutil.copy(program, os.path.join(folder, "glovebox"))
            os.chmod(program, 0o755)
            for path in (folder, self.home, self.work, self.temp):
                os.chown(path, user, user)
        self.process = subprocess.Popen([program, "serve", *options], cwd=folder, env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user, group=user,
                                        extra_groups=None if user is None else [])
        self.got, self.held, self.number = queue.Queue(), [], 0
        self.listens = threading.Event()
        self.listens.set()
        threading.Thread(target=self.read, daemon=True).start()
        if greets:
            self.hello = self.result("hello", version=VERSION)

    def read(self):
        for line in self.process.stdout:
            self.listens.wait()
            self.got.put(json.loads(line))
        self.got.put(None)

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method, **params):
        self.number += 1
        self.tell({"id": self.number, "method": method, "params": params})
        return self.number

    def tell(self, message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def cancel(self, number):
        self.tell({"method": "$/cancel", "params": {"id": number}})

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
            if message is None:
                raise Ended(f"the engine has ended with {self.process.wait()}; it said {self.held}")
            if fits(message):
                return message
            self.held.append(message)

    def answer(self, number):
        return self.take(lambda message: message.get("id") == number and "method" not in message)

    def call(self, method, **params):
        return self.answer(self.send(method, **params))

    def result(self, method, **params):
        answer = self.call(method, **params)
        assert "result" in answer, (method, answer)
        return answer["result"]

    def error(self, method, kind, **params):
        answer = self.call(method, **params)
        assert answer.get("error", {}).get("data", {}).get("kind") == kind, (method, answer)
        return answer["error"]

    def open(self, **params):
        return self.result("cell/open", **{"policy": {"write": ["."]}, **params})["cell"]

    def run(self, cell, command, **more):
        result = self.result("exec/run", cell=cell, command=command, **more)
        result["stdout"], result["stderr"] = decode(result["stdout"]), decode(result["stderr"])
        return result

    def notice(self, method):
        return self.take(lambda message: message.get("method") == method)

    def output(self, process, until=b""):
        """The output of a process so far, or until it ends with UNTIL."""
        got = b""

        def fits(message):
            return message.get("method") == "exec/output" and message["params"]["process"] == process
        while until and not got.endswith(until):
            got += decode(self.take(fits)["params"]["bytes"])
        for message in [message for message in self.held if fits(message)]:
            self.held.remove(message)
            got += decode(message["params"]["bytes"])
        return got

    def children(self):
        """The processes below the engine."""
        found, waiting = [], [self.process.pid]
        below = {}
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    below.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
            except (OSError, ValueError, IndexError):
                continue
        while waiting:
            for pid in below.get(waiting.pop(), []):
                found.append(pid)
                waiting.append(pid)
        return found

    def end(self):
        self.process.stdin.close()
        return self.process.wait(WAIT_SECONDS)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def gone(pids, seconds=WAIT_SECONDS):
    """Wait until none of PIDS runs; those that still do."""
    end = time.monotonic() + seconds

    def runs(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            return False
    while True:
        left = [pid for pid in pids if runs(pid)]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.01)


def folder():
    return os.path.realpath(tempfile.mkdtemp(prefix="glovebox-wire-", dir="/var/tmp"))


def ask(program, cwd, environment, requests):
    """The answers of an engine of its own to REQUESTS, each sent when the one before was answered."""
    answers = {}
    with subprocess.Popen([program, "serve"], cwd=cwd, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        for number, (method, params) in enumerate([("hello", {"version": VERSION}), *requests]):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            process.stdin.flush()
            while number not in answers:
                answer = json.loads(process.stdout.readline())
                answers[answer.get("id")] = answer
        process.stdin.close()
        process.wait(timeout=WAIT_SECONDS)
    return [answers[number + 1] for number in range(len(requests))]
