#!/usr/bin/env python3
"""publish.py WAY CHECK…: what holds of a published port. Prints a line for each check.

WAY is how the session is opened: `exec`, `tool` (tool call) or `mcp` (a job of the server). In it runs
`publish.py serve KIND`, on port 3000 of the cell; the policy or an option publishes 0:3000, and a line on standard
error says where. `publish.py serve KIND`: echo, six (the same on ::1 only), http, flood (sends without end), deaf
(accepts and never reads), brief (echo, and the program ends after the first client).
"""
import concurrent.futures
import http.client
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

PORT = 3000
PATIENCE = 120  # of a machine that is busy with other tests; nothing waits for it where all is well
SPARE = 1  # sockets that the proxy keeps beforehand


def echo(client, _):
    while data := client.recv(65536):
        client.sendall(data)
    client.shutdown(socket.SHUT_WR)
    client.close()


def flood(client, _):
    try:
        while True:
            client.sendall(b"x" * 65536)
    except OSError:
        pass


def deaf(client, held):
    held.append(client)


def serve(kind):
    if kind == "http":
        class Hello(http.server.BaseHTTPRequestHandler):
            """Says the path."""

            def do_GET(self):  # pylint: disable=invalid-name
                body = f"hello {self.path}".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Hello).serve_forever()
    six = kind == "six"
    listener = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if six:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind(("::1" if six else "127.0.0.1", PORT))
    listener.listen(1024)
    held = []
    answer = {"flood": flood, "deaf": deaf}.get(kind, echo)
    while True:
        client, _ = listener.accept()
        if kind == "brief":
            client.recv(1)
            sys.exit(0)
        threading.Thread(target=answer, args=(client, held), daemon=True).start()


class Session:
    """One program with a published port, and the server in it."""

    def __init__(self, way, kind):
        shutil.copy(__file__, "publish.py")
        command = f"python3 publish.py serve {kind}" if kind else "sleep 60"
        if way == "exec":
            argv = ["exec", "--publish", f"0:{PORT}", "--", "sh", "-c", f"exec {command}"]
        elif way == "tool":
            argv = ["tool", "call", "bash", json.dumps({"command": command})]
        else:
            argv = ["mcp", "--patience", "0.2"]
        self.program = subprocess.Popen(["glovebox", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        if way == "mcp":
            self.ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                       "clientInfo": {"name": "case", "version": "1"}})
            self.ask(None, "notifications/initialized", {})
            answer = self.ask(2, "tools/call", {"name": "bash", "arguments": {"command": command}})
            assert "job" in answer, answer
        self.port, self.said = 0, b""
        while not self.port:
            line = self.program.stderr.readline()
            assert line, f"it has ended: {self.said}"
            self.said += line
            found = re.search(rb"port 3000 of the cell is at 127\.0\.0\.1:(\d+)", line)
            self.port = int(found[1]) if found else 0

    def ask(self, number, method, params):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        self.program.stdin.write(json.dumps(message).encode() + b"\n")
        self.program.stdin.flush()
        while number is not None:
            line = self.program.stdout.readline()
            assert line, "the server has ended"
            if json.loads(line).get("id") == number:
                return line.decode()
        return ""

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.port))
        client.settimeout(PATIENCE)
        return client

    def exchange(self, data=b"hello"):
        """What an echo makes of DATA; None when the connection was closed instead."""
        with self.connect() as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: client.recv(65536), b"")) or None
            except OSError:
                return None

    def wait(self, ready=None):
        until = time.monotonic() + PATIENCE
        while not (ready or self.exchange)():
            assert time.monotonic() < until, "no server answers"
            time.sleep(0.02)

    def processes(self):
        """Pids of the front, its proxy and its anchor."""
        found = {"front": self.program.pid}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    comm, _, rest = file.read().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if int(rest.split()[1]) == self.program.pid and comm in ("glovebox-proxy", "glovebox-anchor"):
                found[comm[9:]] = int(name)
        return found

    def end(self):
        self.program.terminate()
        self.program.communicate(timeout=PATIENCE)


def descriptors(session):
    return {name: len(os.listdir(f"/proc/{pid}/fd")) for name, pid in sorted(session.processes().items())}


def listening(port):
    """Where somebody listens on PORT of this machine, in the kernel's hexadecimal."""
    places = []
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}", encoding="utf-8") as file:
            for words in map(str.split, file.readlines()[1:]):
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    places.append(words[1].rpartition(":")[0])
    return places


def check_http(way):
    session = Session(way, "http")

    def get(path="/"):
        try:
            link = http.client.HTTPConnection("127.0.0.1", session.port, timeout=PATIENCE)
            link.request("GET", path)
            return link.getresponse().read().decode()
        except (OSError, http.client.HTTPException):
            return None
    session.wait(get)
    return session, get("/there")


def check_halves(way):
    """Both ways at the same time, then the end of one direction, then of the other."""
    session = Session(way, "echo")
    session.wait()
    data = os.urandom(8 << 20)
    with session.connect() as client:
        got = []
        reader = threading.Thread(target=lambda: got.extend(iter(lambda: client.recv(65536), b"")))
        reader.start()
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        reader.join(PATIENCE)
    return session, "whole" if b"".join(got) == data else "torn"


def settled(session):
    """The descriptors when they have stayed the same for a while: a cell prepares some after its first call."""
    seen, since = descriptors(session), time.monotonic()
    until = since + PATIENCE
    while time.monotonic() < min(until, since + 1):
        time.sleep(0.05)
        now = descriptors(session)
        if now != seen:
            seen, since = now, time.monotonic()
    return seen


def check_many(way):
    session = Session(way, "echo")
    session.wait()
    # The proxy keeps a socket for the next connection, and may have it already, or get it yet.
    before = settled(session)
    bounds = {**before, "proxy": before["proxy"] + SPARE}

    def leaks(now):
        return any(count > bounds[name] for name, count in now.items())
    with concurrent.futures.ThreadPoolExecutor(400) as pool:
        right = sum(word == b"hello" for word in pool.map(lambda _: session.exchange(), range(1000)))
    until = time.monotonic() + PATIENCE
    while leaks(descriptors(session)) and time.monotonic() < until:
        time.sleep(0.05)
    after = descriptors(session)
    return session, f"{right} right, {(before, after) if leaks(after) else 'no leak'} in {' '.join(after)}"


def check_six(way):
    session = Session(way, "six")
    session.wait()
    return session, session.exchange().decode()


def check_absent(way):
    session = Session(way, None)
    return session, session.exchange()


def check_only_here(way):
    session = Session(way, "echo")
    return session, " ".join(listening(session.port))


def check_deaf(way):
    """A server that never reads takes no memory of the proxy, and others are served."""
    session = Session(way, "deaf")
    sent, quiet = 0, None
    while sent == 0:
        client = session.connect()
        client.settimeout(1)
        try:
            while True:
                sent += client.send(b"x" * 65536)
        except TimeoutError:
            quiet = client
        except OSError:
            sent = 0
    with open(f"/proc/{session.processes()['proxy']}/status", encoding="utf-8") as file:
        memory = int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) >> 10
    quiet.close()
    return session, "bounded" if sent < 64 << 20 and memory < 64 else f"{sent} bytes, {memory} MiB"


def check_unread(way):
    """A client that never reads, likewise."""
    session = Session(way, "flood")
    clients = []

    def begun():
        client = session.connect()
        try:
            client.recv(1, socket.MSG_PEEK)
        except OSError:
            return False
        clients.append(client)
        return len(clients) > 20
    session.wait(begun)
    time.sleep(0.5)
    with open(f"/proc/{session.processes()['proxy']}/status", encoding="utf-8") as file:
        memory = int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) >> 10
    return session, "bounded" if memory < 64 else f"{memory} MiB"


def check_end(way):
    """The program ends: so do its connections and the listener."""
    session = Session(way, "brief")
    until = time.monotonic() + PATIENCE
    word = b"x"
    while session.program.poll() is None and time.monotonic() < until:
        try:
            with session.connect() as client:
                client.sendall(b"hello")
                word = client.recv(1)
        except OSError:
            word = b""
        time.sleep(0.02)
    session.program.wait(PATIENCE)
    return session, f"{word.decode()}closed, {len(listening(session.port))} listeners"


def main():
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    for name in sys.argv[2:]:
        session, word = globals()["check_" + name](sys.argv[1])
        print(name, word, flush=True)
        session.end()
        assert not listening(session.port), "its listener is still there"


if __name__ == "__main__":
    main()
