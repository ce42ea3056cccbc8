"""client: one connection to a server of MCP, over stdio or HTTP, for run and hard_test.py.

Messages go out as they are given; what comes in is kept in `inbox`, in its order, and waited
for with `wait`. The server is a child whose descendants become ours when it dies, so that
nothing it leaves behind escapes `left_behind`.
"""
import ctypes
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
WAIT_SECONDS = 120  # sanitizers on a busy machine
END_SECONDS = 60
PR_SET_CHILD_SUBREAPER = 36


class Failure(Exception):
    """The server did not do what was expected."""


def adopt_orphans():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


def left_behind():
    """Descendants of servers that have ended, once they had time to go."""
    until = time.monotonic() + END_SECONDS
    while time.monotonic() < until:
        found = []
        for pid in children():
            try:
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    found.append(pid)
            except ChildProcessError:
                pass
        if not found:
            return []
        time.sleep(0.01)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return found


class Connection:
    """What both transports have in common."""

    def __init__(self):
        self.process = None
        self.inbox = []
        self.changed = threading.Condition()
        self.closed = False

    def arrive(self, message):
        with self.changed:
            self.inbox.append(message)
            self.changed.notify_all()

    def wait(self, wanted, seconds=WAIT_SECONDS, since=0):
        """The first message, from place SINCE on, of which WANTED is true."""
        until = time.monotonic() + seconds
        with self.changed:
            while True:
                for message in self.inbox[since:]:
                    if wanted(message):
                        return message
                left = until - time.monotonic()
                if left <= 0 or self.closed:
                    raise Failure("it did not come" if left <= 0 else "the connection was closed")
                self.changed.wait(min(left, 1))

    def end(self):
        """The exit code of the server, which is about to end."""
        try:
            return self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise Failure("the server does not end") from error

    def wait_answer(self, number, seconds=WAIT_SECONDS, since=0):
        return self.wait(lambda m: "method" not in m and m.get("id") == number, seconds, since)


class Stdio(Connection):
    """A server on two pipes."""

    def __init__(self, command, **options):
        super().__init__()
        self.statuses = {}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        **options)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            try:
                self.arrive(json.loads(line))
            except ValueError:
                self.arrive({"method": "not JSON", "params": repr(line)})
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def write(self, data):
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def send(self, message, _headers=None):
        self.write(json.dumps(message).encode())

    def close(self):
        """End of input; the exit code."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        code = self.end()
        self.reader.join(END_SECONDS)
        self.process.stdout.close()
        return code


class Http(Connection):
    """A server on a port of its own choice; each message is a request in a thread."""

    def __init__(self, command, **options):
        super().__init__()
        self.process = subprocess.Popen([*command, "--http", "127.0.0.1:0"],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        **options)
        self.statuses = {}  # id, or a counter for what has none -> status
        self.session = None
        self.open = []
        line = self.process.stderr.readline().decode()
        match = re.search(r"http://([^/]+)(/\S+)", line)
        if not match:
            raise Failure(f"no address: {line}")
        self.address, self.path = match.group(1), match.group(2)
        self.log = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.log.start()

    def exchange(self, method, path, body, headers, key):
        connection = http.client.HTTPConnection(self.address, timeout=WAIT_SECONDS)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers,
                                  skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            self.open.append(connection.sock)
            response = connection.getresponse()
            self.session = response.getheader("Mcp-Session-Id") or self.session
            with self.changed:
                self.statuses[key] = response.status
                self.changed.notify_all()
            self.take(response)
        except (OSError, http.client.HTTPException, ValueError):
            pass  # closed by either side; whoever waits finds out
        finally:
            connection.close()

    def take(self, response):
        kind = response.getheader("Content-Type") or ""
        if kind.startswith("application/json"):
            self.arrive(json.loads(response.read()))
        elif kind.startswith("text/event-stream"):
            for line in response:
                if line.startswith(b"data: "):
                    self.arrive(json.loads(line[len("data: "):]))
        else:
            response.read()

    def start(self, method, path, body, headers, key):
        thread = threading.Thread(target=self.exchange, daemon=True,
                                  args=(method, path, body, headers, key))
        thread.start()
        return thread

    def status(self, key):
        with self.changed:
            if not self.changed.wait_for(lambda: key in self.statuses, WAIT_SECONDS):
                raise Failure("no answer of HTTP came")
            return self.statuses[key]

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.end()
        self.log.join(END_SECONDS)
        self.process.stderr.close()
        return 0 if code in (-signal.SIGTERM, 128 + signal.SIGTERM) else code
