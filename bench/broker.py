"""The groups of a sealed agent. `broker`: a request to a service behind TLS on loopback, by a program that has the key, beside
the same by programs in cells that have none: one asks the broker by the plain door, and one asks the service by its own
name, by TLS that ends at the broker. All are this file, kept running and asked in turns. `seal`: a command of an agent
outside whose hands are in a cell, beside one of bash, and a connection to a server in a cell by a published port, beside
one to the same server outside.
"""
import base64
import http.client
import json
import os
import re
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "broker"))

KEY = "sk-test-7Jw9QzKc41Vn0XhTq8RbYd2LmEuA"
ROUNDS = 300
LARGE_MIB = 512
MOST_MS = 0.3
MOST_TLS_MS = {True: 1, False: 3}  # on an open connection, on a new one
LEAST_MBS = 500
IDLE_MIB = 8
STARTS = 40
MOST_START_MS = 5
WARM, NEW = "a request on an open connection", "a request on a new connection"
SIDES = ("", ", sealed", ", sealed, by TLS")


def client(base, ca, host):
    """Serve the questions of standard input: a path, and whether the connection stays. Says microseconds."""
    scheme, where, prefix = re.fullmatch(r"(https?)://([^/]+)(/\w+)?/?", base).groups()
    key = {"x-api-key": os.environ["BENCH_KEY"], "Host": host} if scheme == "https" else \
        {"x-api-key": os.environ["BENCH_KEY"]}
    context = ssl.create_default_context(cafile=ca or None) if scheme == "https" else None
    if context is not None:
        context.check_hostname = ca == ""
    proxy = re.fullmatch(r"http://([^@]+)@([^/]+)/?", os.environ.get("https_proxy", ""))

    def connect():
        if ca == "":
            link = http.client.HTTPSConnection(proxy[2], context=context)
            link.set_tunnel(where, headers={"Proxy-Authorization": "Basic " + base64.b64encode(proxy[1].encode()).decode()})
            return link
        return http.client.HTTPSConnection(where, context=context) if context else http.client.HTTPConnection(where)

    kept = connect()
    for line in sys.stdin:
        path, keeps = line.split()
        began = time.perf_counter_ns()
        link = kept if keeps == "1" else connect()
        link.request("GET", (prefix or "") + path, headers=key)
        answer = link.getresponse()
        while answer.read(1 << 20):
            pass
        print((time.perf_counter_ns() - began) // 1000, flush=True)


class Client:
    def __init__(self, argv, **more):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)

    def ask(self, path, keeps=True):
        print(path, int(keeps), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Place:
    """A service, a home whose configuration names its key, and both clients."""

    def __init__(self, build, workspace):
        import upstream  # pylint: disable=import-outside-toplevel
        self.folder = tempfile.TemporaryDirectory(prefix="bench-broker-")
        self.program = os.path.join(build, "glovebox")
        self.workspace = workspace
        ca = upstream.make_authority(self.folder.name)
        self.service, names = upstream.Upstream(self.folder.name), upstream.Names()
        config = os.path.join(self.folder.name, ".config", "glovebox", "config.json")
        os.makedirs(os.path.dirname(config))
        host = f"{upstream.HOST}:{self.service.port}"
        with open(config, "w", encoding="ascii") as file:
            json.dump({"credentials": {"bench": {"from": ["env:BENCH_KEY"], "hosts": [host], "ca_file": ca,
                                                 "place": "header: x-api-key", "variables": ["BENCH_KEY"],
                                                 "shape": "sk-test-*", "base_url": {"BENCH_URL": "/"}}},
                       "resolver": f"127.0.0.1:{names.port}",
                       "agents": {"default": {"network": [f"127.0.0.1:{self.service.port}"]}}}, file)
        os.chmod(config, 0o600)
        with open(os.path.join(workspace, "client.py"), "w", encoding="utf-8") as file, \
                open(__file__, encoding="utf-8") as own:
            file.write(own.read() + "\n\nby_name = sys.argv[2] == ''\n"
                       "client(not by_name and os.environ.get('BENCH_URL') or sys.argv[1], *sys.argv[2:])\n")
        self.environment = {**os.environ, "HOME": self.folder.name, "BENCH_KEY": KEY}
        words = ["python3", "client.py", f"https://127.0.0.1:{self.service.port}", ca, host]
        self.bare = Client(words, cwd=workspace, env=self.environment)
        before = brokers()
        self.sealed = Client([self.program, "exec", "--credential", "bench", "--", *words], cwd=workspace,
                             env=self.environment)
        self.sealed.ask("/small")
        self.broker = (brokers() - before).pop()
        words = ["python3", "client.py", f"https://{host}", "", host]
        self.by_name = Client([self.program, "exec", "--credential", "bench", "--", *words], cwd=workspace,
                              env=self.environment)
        self.by_name.ask("/small")

    def end(self):
        self.bare.end()
        self.sealed.end()
        self.by_name.end()
        self.folder.cleanup()

    def starts(self, *rows):
        """The medians of milliseconds of cells with the options of each row, which take turns."""
        times = [[] for _ in rows]
        for _ in range(STARTS):
            for words, found in zip(rows, times):
                began = time.perf_counter()
                subprocess.run([self.program, "exec", *words, "--", "true"], check=True, cwd=self.workspace,
                               env=self.environment)
                found.append((time.perf_counter() - began) * 1000)
        return [statistics.median(found) for found in times]


def brokers():
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if file.read().startswith(b"glovebox-broker\0"):
                    found.add(int(name))
        except OSError:
            pass
    return found


def seconds(pid):
    """Seconds of a processor that PID has taken."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


def broker_group(group, command, _build, _workspace):
    figures = []

    def play(build, _running, rounds, workspace):
        at = Place(build, workspace)
        rows = []
        for number in range(rounds + 1):
            row = [asked.ask(path, keeps) for path, keeps in (("/small", True), ("/small", False))
                   for asked in (at.bare, at.sealed, at.by_name)]
            if number > 0:
                rows.append(row)
                yield row
        for number, name, most in ((1, WARM, MOST_MS), (2, WARM, MOST_TLS_MS[True]), (4, NEW, None),
                                   (5, NEW, MOST_TLS_MS[False])):
            more = (statistics.median(row[number] for row in rows) -
                    statistics.median(row[number - number % 3] for row in rows)) / 1000
            figures.append({"of": name + SIDES[number % 3], "beside": name, "figure": round(more, 3), "unit": "ms more",
                            "asked": f"≤ {most} ms more" if most is not None else "",
                            "met": more <= most if most is not None else None})
        time.sleep(0.5)
        idle = memory_mib(at.broker)
        figures.append({"of": "a broker that waits", "figure": round(idle, 1), "unit": "MiB",
                        "asked": f"≤ {IDLE_MIB} MiB", "met": idle <= IDLE_MIB})
        size = (LARGE_MIB << 20) / 1e6
        rates = {asked: size / (asked.ask(f"/big/{LARGE_MIB}") / 1e6) for asked in (at.bare, at.sealed)}
        before = seconds(at.broker)
        at.sealed.ask(f"/big/{LARGE_MIB}")
        by_itself = size / max(seconds(at.broker) - before, 0.01)
        figures.append({"of": f"an answer of {LARGE_MIB} MiB, sealed", "beside": "bare",
                        "figure": round(rates[at.sealed] / rates[at.bare], 2), "unit": "of its rate", "asked": ""})
        figures.append({"of": "the broker by itself: TLS and scrubbing", "figure": round(by_itself),
                        "unit": "MB a second of a processor", "asked": f"≥ {LEAST_MBS}",
                        "met": by_itself >= LEAST_MBS})
        with_one, without = at.starts(("--credential", "bench"), ("--no-credential",))
        more = with_one - without
        figures.append({"of": "a cell with a credential", "beside": "a cell without", "figure": round(more, 1),
                        "unit": "ms more", "asked": f"≤ {MOST_START_MS} ms more", "met": more <= MOST_START_MS})
        at.end()

    return group("broker", "A request to a service by the broker, beside one with the key",
                 [command(name + after, []) for name in (WARM, NEW) for after in SIDES], [],
                 play=play, rounds=ROUNDS, measure=lambda build, workspace: figures)


MOST_HANDS_MS = 2
MOST_PORT_MS = 0.1
LEAST_PORT_GBS = 1
# It runs `bash -c true` by the shell that it is given, or by bash, and says microseconds.
STAND_IN = """#!/usr/bin/env python3
import os, subprocess, sys, time
for line in sys.stdin:
    shell = os.environ["CLAUDE_CODE_SHELL"] if line == "sealed\\n" else "bash"
    began = time.perf_counter_ns()
    subprocess.run([shell, "-c", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    print((time.perf_counter_ns() - began) // 1000, flush=True)
"""
SERVER = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
some = b"x" * (1 << 20)
while True:
    client, _ = server.accept()
    with client:
        asked = client.recv(16)
        for _ in range(int(asked)):
            client.sendall(some)
        client.sendall(asked)
"""


class Seal:
    """An agent outside with a cell as its hands, and a server in a cell beside the same one outside."""

    def __init__(self, build, workspace):
        self.folder = tempfile.TemporaryDirectory(prefix="bench-seal-")
        program, agent = os.path.join(build, "glovebox"), os.path.join(self.folder.name, "bin", "claude")
        os.mkdir(os.path.dirname(agent))
        for path, text in (agent, STAND_IN), (os.path.join(workspace, "server.py"), SERVER):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        os.chmod(agent, 0o755)
        environment = {**os.environ, "HOME": self.folder.name, "PATH": f"{os.path.dirname(agent)}:{os.environ['PATH']}"}
        more = {"cwd": workspace, "env": environment}
        self.agent = subprocess.Popen([program, "wrap", "--hands", "claude"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, **more)
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            self.ports = one.getsockname()[1], other.getsockname()[1]
        bare, published = map(str, self.ports)
        self.servers = [subprocess.Popen(words, stdin=subprocess.DEVNULL, **more) for words in (
            ["python3", "server.py", bare], [program, "exec", "--publish", published, "--", "python3", "server.py", published])]
        for port in self.ports:
            self.wait_for(port)

    def wait_for(self, port):
        for _ in range(500):
            try:
                self.ask(port)
                return
            except OSError:
                time.sleep(0.02)
        raise SystemExit(f"bench: no server came to port {port}")

    def command(self, sealed):
        print("sealed" if sealed else "bare", file=self.agent.stdin, flush=True)
        return int(self.agent.stdout.readline())

    @staticmethod
    def ask(port, mib=0):
        """Microseconds of a connection, and of an answer of MIB."""
        began = time.perf_counter_ns()
        with socket.create_connection(("127.0.0.1", port), 10) as link:
            link.sendall(str(mib).encode())
            got = 0
            while some := link.recv(1 << 20):
                got += len(some)
        if got < (mib << 20) + 1:
            raise ConnectionError("a torn answer")
        return (time.perf_counter_ns() - began) // 1000

    def end(self):
        self.agent.stdin.close()
        for process in self.servers:
            process.terminate()
        for process in (self.agent, *self.servers):
            process.wait()
        self.folder.cleanup()


def seal_group(group, command, _build, _workspace):
    names = ("bash -c true of an agent", "bash -c true of an agent, sealed by --hands",
             "a connection to a server", "a connection to a server, by a published port")
    figures = []

    def play(build, _running, rounds, workspace):
        at = Seal(build, workspace)
        rows = []
        for number in range(rounds + 1):
            row = [at.command(False), at.command(True), *(at.ask(port) for port in at.ports)]
            if number > 0:
                rows.append(row)
                yield row
        for number, most in (1, MOST_HANDS_MS), (3, MOST_PORT_MS):
            more = (statistics.median(row[number] for row in rows) -
                    statistics.median(row[number - 1] for row in rows)) / 1000
            figures.append({"of": names[number], "beside": names[number - 1], "figure": round(more, 3), "unit": "ms more",
                            "asked": f"≤ {most} ms more", "met": more <= most})
        rates = [(LARGE_MIB << 20) / 1e3 / min(at.ask(port, LARGE_MIB) for _ in range(3)) for port in at.ports]
        figures.append({"of": f"{LARGE_MIB} MiB by a published port", "figure": round(rates[1], 2), "unit": "GB/s",
                        "asked": f"≥ {LEAST_PORT_GBS} GB/s", "met": rates[1] >= LEAST_PORT_GBS})
        figures.append({"of": f"{LARGE_MIB} MiB by a published port", "beside": "without a cell",
                        "figure": round(rates[1] / rates[0], 2), "unit": "of its rate", "asked": ""})
        at.end()

    return group("seal", "A command of an agent outside, and a connection to a server in a cell",
                 [command(name, []) for name in names], [],
                 play=play, rounds=ROUNDS, measure=lambda build, workspace: figures)


GROUPS = {"broker": broker_group, "seal": seal_group}
