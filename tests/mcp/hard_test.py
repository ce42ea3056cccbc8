#!/usr/bin/env python3
"""hard_test.py GLOVEBOX: what is no conversation: floods, deaths, clients that do not read. TAP.

After each case no process of the server may be left.
"""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import (Failure, Http, LEGACY, MODERN, Stdio, WAIT_SECONDS,  # noqa: E402
                    adopt_orphans, left_behind)  # pylint: disable=wrong-import-position
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dev"))
from place import outside  # noqa: E402, pylint: disable=wrong-import-position
from tap import hear_signals  # noqa: E402, pylint: disable=wrong-import-position

AT_ONCE = 64
MANY = 5000  # the bench makes 100,000
GROWTH_MAX = 8 << 20  # bytes, after as many calls as went before the first look
FIRST_LOOK = 1000
FILES_MORE = 32  # ten workers: how many there are depends on how fast they were
SOON_SECONDS = 30  # sanitizers on a busy machine, and a grace for what runs
SETTLE_SECONDS = 20  # so long memory is looked at again: what is not given back stays
MORE_THAN_BEGUN = 100  # calls over stdio: 96 are begun at once
ALL = 1024  # requests that may be under way
SEARCHES = 32
FILES = 320  # descriptors of a server that has few
MESSAGE_MAX = 16 << 20
SESSIONS_MAX = 128
REQUESTS_MAX = 448
SHORT_MAX = 16  # beyond these, of what is answered at once
BODIES = 9  # one more than may be under way together, each but a byte
BODY_SECONDS = 60  # so long a body may take to come
ESTABLISHED, CLOSE_WAIT = "01", "08"  # in /proc/net/tcp
FOLDERS = 300  # more than the look after each command goes through
HEAD_SECONDS = 10  # so long a connection may take for its first head


def call(number, name, **arguments):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}}


def modern(message):
    message["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": MODERN,
                                  "io.modelcontextprotocol/clientCapabilities": {}}
    return message


def initialize(connection, **capabilities):
    connection.send({"jsonrpc": "2.0", "id": "hello", "method": "initialize",
                     "params": {"protocolVersion": LEGACY, "capabilities": capabilities}})
    connection.wait_answer("hello")


def expect(truth, sentence):
    if not truth:
        raise Failure(sentence)


def ends_soon(process, codes):
    try:
        code = process.wait(SOON_SECONDS)
    except subprocess.TimeoutExpired as error:
        process.kill()
        raise Failure("it does not end") from error
    expect(code in codes, f"it ended with {code}")


def processes_of(pid):
    """Private bytes of the front and of each process that it started, the front first."""
    found, todo = [], [pid]
    while todo:
        at = todo.pop(0)
        try:
            with open(f"/proc/{at}/task/{at}/children", encoding="ascii") as file:
                todo += [int(child) for child in file.read().split()]
            with open(f"/proc/{at}/smaps_rollup", encoding="ascii") as file:
                found.append(sum(int(line.split()[1]) << 10 for line in file
                                 if line.startswith("Private")))
        except OSError:
            pass  # it has ended
    return found


def has_grown(before, after):
    """More than GROWTH_MAX; a process more than BEFORE, as there are workers when calls come
    faster than they end, may have all that the largest has that is not the front."""
    more = max(0, len(after) - len(before)) * max(after[1:], default=0)
    return sum(after) > sum(before) + GROWTH_MAX + more


def named_child(pid, name):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        for child in file.read().split():
            with open(f"/proc/{child}/comm", "rb") as comm:
                if comm.read().strip() == name.encode():
                    return int(child)
    raise Failure(f"no {name}")


def descriptors_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def sockets_at(port, state):
    """The rows of the server's sockets at PORT in this STATE of the kernel's."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in list(file)[1:]]
    return [row for row in rows
            if int(row[1].rpartition(":")[2], 16) == port and row[3] == state]


def unread_at(port):
    """What was sent to the server at PORT and it has not read yet: it lies in its sockets, or still in
    those of its clients, from where the kernel moves it when there is room."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in list(file)[1:]]
    queues = [(row[1], row[2], *(int(size, 16) for size in row[4].split(":"))) for row in rows]
    return sum((unread if int(here.rpartition(":")[2], 16) == port else 0) +
               (unsent if int(there.rpartition(":")[2], 16) == port else 0)
               for here, there, unsent, unread in queues)


class Cases:
    """Each method is a case; `play` gives it a workspace and looks what it left."""

    def __init__(self, program):
        self.program = program
        self.workspace = self.environment = None

    def stdio(self, *words, **options):
        return Stdio([self.program, "mcp", *words], cwd=self.workspace, env=self.environment,
                     **options)

    def http(self, *words):
        return Http([self.program, "mcp", *words], cwd=self.workspace, env=self.environment)

    def many_calls_at_once_are_all_answered(self):
        server = self.stdio()
        initialize(server)
        data = b"\n".join(json.dumps(call(i, "bash", command=f"echo n{i}")).encode()
                          for i in range(AT_ONCE))
        server.write(data)
        for i in range(AT_ONCE):
            answer = server.wait_answer(i)
            expect(f"n{i}\n" in answer["result"]["content"][0]["text"], f"answer {i}: {answer}")
        expect(server.close() == 0, "it failed")

    def many_calls_at_once_over_http_are_all_answered(self):
        server = self.http()
        for i in range(AT_ONCE):
            message = modern(call(i, "bash", command=f"echo n{i}"))
            server.start("POST", server.path, json.dumps(message).encode(),
                         {"Content-Type": "application/json", "MCP-Protocol-Version": MODERN,
                          "Mcp-Method": "tools/call", "Mcp-Name": "bash"}, i)
        for i in range(AT_ONCE):
            answer = server.wait_answer(i)
            expect(f"n{i}\n" in answer["result"]["content"][0]["text"], f"answer {i}: {answer}")
        expect(server.close() == 0, "it failed")

    def thousands_of_calls_leave_nothing_behind(self):
        # What is freed must be free: no quarantine of a sanitizer.
        self.environment["ASAN_OPTIONS"] = self.environment.get("ASAN_OPTIONS", "") + \
            ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
        server = self.stdio()
        initialize(server)
        pid = server.process.pid
        before = files_before = None
        for number in range(MANY):
            server.send(call(number, "read_file", path="a.txt"))
            if number % 50 == 49:
                server.wait_answer(number)
            if number in (FIRST_LOOK, MANY - 1):
                server.wait_answer(number)
            if number == FIRST_LOOK:
                before, files_before = processes_of(pid), descriptors_of(pid)
                server.inbox.clear()
        until = time.monotonic() + SETTLE_SECONDS
        while True:
            after, files_after = processes_of(pid), descriptors_of(pid)
            fits = files_after <= files_before + FILES_MORE and not has_grown(before, after)
            if fits or time.monotonic() > until:
                break
            time.sleep(0.1)
        expect(fits, f"descriptors: {files_before}, {files_after}; memory: {before}, {after}")
        expect(server.close() == 0, "it failed")

    def a_huge_message_is_refused_and_the_next_is_taken(self):
        server = self.stdio()
        initialize(server)
        server.write(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * MESSAGE_MAX * 2 + b'"}')
        refusal = server.wait(lambda m: "error" in m)
        expect(refusal["error"]["code"] == -32700, str(refusal))
        server.send(call(2, "read_file", path="a.txt"))
        expect(not server.wait_answer(2)["result"]["isError"], "the next call failed")
        expect(server.close() == 0, "it failed")

    def a_deep_message_is_refused_and_the_next_is_taken(self):
        server = self.stdio()
        initialize(server)
        server.write(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 5000 +
                     b"1" + b"}" * 5001)
        refusal = server.wait(lambda m: "error" in m)
        expect(refusal["error"]["code"] == -32700, str(refusal))
        server.send(call(2, "read_file", path="a.txt"))
        expect(not server.wait_answer(2)["result"]["isError"], "the next call failed")
        expect(server.close() == 0, "it failed")

    def a_message_in_single_bytes_is_taken(self):
        server = self.stdio()
        initialize(server)
        for byte in json.dumps(call(1, "read_file", path="a.txt")).encode() + b"\n":
            server.process.stdin.write(bytes([byte]))
            server.process.stdin.flush()
        expect(not server.wait_answer(1)["result"]["isError"], "it failed")
        expect(server.close() == 0, "it failed")

    def a_last_line_without_its_end_is_answered(self):
        done = subprocess.run([self.program, "mcp"], cwd=self.workspace, env=self.environment,
                              input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
                              stdout=subprocess.PIPE, check=False)
        expect(done.returncode == 0 and json.loads(done.stdout)["result"] == {}, str(done))

    def the_end_of_input_ends_what_runs(self):
        server = self.stdio()
        initialize(server)
        server.send(call(1, "bash", command="echo begun >begun; sleep 1000 & sleep 1000"))
        self.await_file("begun")
        server.process.stdin.close()
        ends_soon(server.process, [0])

    def await_file(self, name):
        until = time.monotonic() + WAIT_SECONDS
        while not os.path.exists(os.path.join(self.workspace, name)):
            expect(time.monotonic() < until, f"no {name}")
            time.sleep(0.005)

    def signals_end_it_and_what_runs(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            server = self.stdio()
            initialize(server)
            server.send(call(1, "bash", command=f"echo >begun{number}; sleep 1000"))
            self.await_file(f"begun{number}")
            server.process.send_signal(number)
            ends_soon(server.process, [128 + number])
            server.process.stdin.close()

    def stored(self):
        """Names in the store of the workspace, the only one."""
        every = os.path.join(self.environment["XDG_STATE_HOME"], "glovebox", "undo")
        return [name for _, _, names in os.walk(every) for name in names]

    def expect_steps(self, count=None):
        """Nothing but steps, each with what is said of it, and the name of their workspace."""
        names = self.stored()
        odd = [name for name in names if not re.fullmatch(
            r"\d{8}\.(log|step)|[0-9a-f]{32}\.(rights|list)|workspace", name)]
        expect(not odd, f"in the store: {odd}")
        logs = {name[:8] for name in names if name.endswith(".log")}
        steps = {name[:8] for name in names if name.endswith(".step")}
        expect(steps <= logs, f"said of no log: {steps - logs}")
        expect(count is None or len(logs) == len(steps) == count, f"{names}")

    def count(self):
        with open(os.path.join(self.workspace, "count.txt"), encoding="ascii") as file:
            return int(file.read())

    def steps_of_a_killed_server_can_be_undone(self):
        for answers in range(8):
            begun = sum(name.endswith(".log") for name in self.stored())
            with open(os.path.join(self.workspace, "count.txt"), "w", encoding="ascii") as file:
                file.write("0\n")
            server = self.stdio()
            initialize(server)
            for number in range(answers + 1):
                server.send(call(number, "edit_file", path="count.txt",
                                 edits=[{"old": f"{number}\n", "new": f"{number + 1}\n"}]))
                if number < answers:
                    server.wait_answer(number)
            # At once, or when the last one has begun, somewhere in it.
            until = time.monotonic() + WAIT_SECONDS
            while answers % 2 and time.monotonic() < until and \
                    sum(name.endswith(".log") for name in self.stored()) <= begun + answers:
                pass
            server.process.kill()
            server.process.wait()
            server.process.stdin.close()
            expect(not left_behind(), "it goes on")
            reached = self.count()
            expect(reached in (answers, answers + 1), f"{answers} answers, but {reached}")
            self.expect_steps()
            # One that was noted and not done any more is as before already.
            for _ in range(answers + 3):
                said = subprocess.run([self.program, "undo"], cwd=self.workspace,
                                      env=self.environment, capture_output=True, text=True,
                                      check=False)
                if said.returncode != 0:
                    break
            expect("nothing to undo" in said.stdout + said.stderr, said.stdout + said.stderr)
            expect(self.count() == 0, f"after {answers} answers, undone: {self.count()}")
            self.expect_steps()

    def the_death_of_its_parent_ends_it(self):
        ours, theirs = os.pipe(), os.pipe()
        parent = subprocess.Popen(["bash", "-c", '"$0" mcp <&0 & wait', self.program],
                                  cwd=self.workspace, env=self.environment, stdin=ours[0],
                                  stdout=theirs[1])
        # Its input and output stay open here.
        os.write(ours[1], json.dumps(modern(call(1, "bash", command="sleep 1000"))).encode() +
                 b'\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
        expect(b'"id":2' in os.read(theirs[0], 1 << 16), "no answer to ping")
        parent.kill()
        parent.wait()
        expect(not left_behind(), "it goes on")
        for end in (*ours, *theirs):
            os.close(end)

    @staticmethod
    def await_ping(server):
        """It has begun to read and hears signals."""
        server.stdin.write(b'{"jsonrpc":"2.0","id":"ping","method":"ping"}\n')
        server.stdin.flush()
        expect(b'"ping"' in server.stdout.readline(), "no answer to ping")

    def a_client_that_does_not_read_stops_being_served(self):
        server = subprocess.Popen([self.program, "mcp"], cwd=self.workspace,
                                  env=self.environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        line = json.dumps(modern(call(0, "read_file", path="long.txt"))).encode() + b"\n"
        written, quiet, number = 0, 0, 0
        # Some megabytes are taken in; then it waits for its reader.
        self.await_ping(server)
        os.set_blocking(server.stdin.fileno(), False)
        while quiet < 100:
            try:
                number += 1
                written += server.stdin.write(line.replace(b'"id": 0', b'"id": %d' % number)) or 0
                server.stdin.flush()
                quiet = 0
            except BlockingIOError:
                quiet += 1
                time.sleep(0.01)
            expect(written < 64 << 20, "it takes all there is")
        memory = sum(processes_of(server.pid))
        expect(memory < 600 << 20, f"it grew to {memory}")
        server.send_signal(signal.SIGTERM)
        ends_soon(server, [128 + signal.SIGTERM])
        server.stdout.close()
        try:
            server.stdin.close()
        except (BrokenPipeError, BlockingIOError):
            pass

    def a_client_that_says_no_more_and_does_not_read_is_left(self):
        server = subprocess.Popen([self.program, "mcp"], cwd=self.workspace,
                                  env=self.environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        data = b"".join(json.dumps(modern(call(number, "read_file", path="long.txt"))).encode() +
                        b"\n" for number in range(MANY))
        written, quiet = 0, 0
        self.await_ping(server)
        os.set_blocking(server.stdin.fileno(), False)
        while quiet < 100:
            try:
                written += os.write(server.stdin.fileno(), data[written % len(data):])
                quiet = 0
            except BlockingIOError:
                quiet += 1
                time.sleep(0.01)
            expect(written < 64 << 20, "it takes all there is")
        # What it has not read stands before the end.
        server.stdin.close()
        ends_soon(server, [0])
        server.stdout.close()

    def calls_that_do_not_end_leave_room_for_what_ends_them(self):
        server = self.stdio()
        initialize(server)
        for number in range(MORE_THAN_BEGUN):
            message = call(number, "bash", command="sleep 1000")
            message["params"]["_meta"] = {"progressToken": number}  # it is no job after a time
            server.send(message)
        server.send({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
        server.wait_answer("ping")
        for number in range(MORE_THAN_BEGUN):
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                         "params": {"requestId": number}})
        server.send(call("last", "read_file", path="a.txt"))
        expect(not server.wait_answer("last")["result"]["isError"], "it failed")
        expect(server.close() == 0, "it failed")

    def as_many_calls_as_there_may_be_leave_room_for_what_is_answered_at_once(self):
        server = self.stdio()
        initialize(server)
        server.send(call("job", "bash", command="exec sleep 1000", background=True))
        server.wait_answer("job")
        for number in range(ALL):
            message = call(number, "job", id=1, action="wait", timeout_s=600)
            message["params"]["_meta"] = {"progressToken": number}
            server.send(message)
        server.send({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
        server.wait_answer("ping")
        server.send({"jsonrpc": "2.0", "id": "list", "method": "tools/list"})
        server.wait_answer("list")
        server.send(call("beyond", "read_file", path="a.txt"))
        refusal = server.wait_answer("beyond")
        expect(f"{ALL} requests" in refusal["error"]["message"] and
               "notifications/cancelled" in refusal["error"]["message"], str(refusal))
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                     "params": {"requestId": ALL - 1}})
        server.send(call("within", "job", action="list"))
        expect("job 1" in server.wait_answer("within")["result"]["content"][0]["text"],
               "the place of a cancelled one is nobody's")
        expect(not [m for m in server.inbox if m.get("id") in range(ALL)], "some have ended")
        # Its end is seen as well.
        server.process.stdin.close()
        ends_soon(server.process, [0])

    def searches_that_take_long_hold_up_no_other_call(self):
        # Some 10 ms a line, below the limits of the expression.
        with open(os.path.join(self.workspace, "slow.txt"), "w", encoding="ascii") as file:
            file.write(("a" * 22 + "!\n") * 20000)
        server = self.stdio("--patience", "0")
        initialize(server)
        for number in range(SEARCHES):
            server.send(call(number, "grep", pattern="(a+)+$", path="slow.txt"))
        server.send(call("read", "read_file", path="a.txt"))
        server.send(call("write", "write_file", path="new.txt", content="x\n"))
        server.send(call("run", "bash", command="cat new.txt"))
        for name in ("read", "write", "run"):
            expect(not server.wait_answer(name)["result"]["isError"], f"{name} failed")
        # On a busy machine some searches come to their own limit of time meanwhile.
        expect(len([m for m in server.inbox if m.get("id") in range(SEARCHES)]) < SEARCHES,
               "all searches had ended: they held up the others")
        for number in range(SEARCHES):
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                         "params": {"requestId": number}})
        server.send(call("found", "grep", pattern="hello"))
        expect("1: hello" in server.wait_answer("found")["result"]["content"][0]["text"],
               "the next search found nothing")
        expect(server.close() == 0, "it failed")

    def more_commands_than_there_are_descriptors_for_wait(self):
        server = Stdio(["bash", "-c", f'ulimit -n {FILES}; exec "$0" mcp', self.program],
                       cwd=self.workspace, env=self.environment)
        initialize(server)
        for number in range(FILES):
            message = call(number, "bash", command="exec sleep 1000")
            message["params"]["_meta"] = {"progressToken": number}
            server.send(message)
        # Meanwhile they begin: 96, and after 0.25 s as many more.
        began, reads = time.monotonic(), 0
        while time.monotonic() < began + 2:
            reads += 1
            server.send(call(f"read{reads}", "read_file", path="a.txt"))
            answer = server.wait_answer(f"read{reads}")
            expect(not answer["result"]["isError"], str(answer))
        for number in range(FILES):
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                         "params": {"requestId": number}})
        server.send(call("run", "bash", command="echo ran"))
        answer = server.wait_answer("run")
        expect("ran" in answer["result"]["content"][0]["text"], str(answer))
        expect(not [m for m in server.inbox if m.get("id") in range(FILES)], "some were answered")
        expect(server.close() == 0, "it failed")

    def a_reader_that_goes_away_ends_it(self):
        server = subprocess.Popen([self.program, "mcp"], cwd=self.workspace,
                                  env=self.environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        server.stdin.flush()
        server.stdout.readline()
        server.stdout.close()
        server.stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
        server.stdin.flush()
        ends_soon(server, [0])
        server.stdin.close()

    def a_dropped_connection_cancels_its_call(self):
        for headers, message in (
                ({"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "bash"},
                 modern(call(1, "bash", command="echo >here; sleep 1000"))),
                ({}, call(1, "bash", command="echo >there; sleep 1000"))):
            server = self.http("--patience", "0")
            headers["Content-Type"] = "application/json"
            server.start("POST", server.path, json.dumps(message).encode(), headers, 1)
            self.await_file("there" if "Mcp-Method" not in headers else "here")
            while not server.open:
                time.sleep(0.005)
            server.open[0].shutdown(2)
            # Only its end leaves the cell without a sleep.
            look = modern(call(2, "bash", command="for i in $(seq 400); do pgrep -x sleep || "
                                                  "break; sleep 0.1 & wait; done; pgrep -x sleep "
                                                  "|| echo none"))
            look_headers = {"Content-Type": "application/json", "MCP-Protocol-Version": MODERN,
                            "Mcp-Method": "tools/call", "Mcp-Name": "bash"}
            server.start("POST", server.path, json.dumps(look).encode(), look_headers, 2)
            answer = server.wait_answer(2)
            expect("none" in answer["result"]["content"][0]["text"], str(answer))
            expect(server.close() == 0, "it failed")

    def connections_that_end_in_the_midst_hold_no_place(self):
        server = self.http()
        host, _, port = server.address.rpartition(":")
        begin = (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Content-Length: 100\r\n\r\n{")
        # Its end comes together with what it says. A busy machine gets more than one chance to let
        # them go in half the time that a connection has for its head.
        for left in (2, 1, 0):
            server.process.send_signal(signal.SIGSTOP)
            for number in range(AT_ONCE):
                with socket.create_connection((host, int(port)), WAIT_SECONDS) as client:
                    client.sendall(begin[:-20] if number % 2 else begin)
            expect(len(sockets_at(int(port), CLOSE_WAIT)) > 0, "none has ended")
            server.process.send_signal(signal.SIGCONT)
            began = time.monotonic()
            while sockets_at(int(port), CLOSE_WAIT):
                time.sleep(0.01)
                expect(time.monotonic() < began + WAIT_SECONDS, "they stay")
            if time.monotonic() < began + HEAD_SECONDS / 2:
                break
            expect(left > 0, "they stay until their time is over")
        # Who says all that belongs to a request before it ends is answered.
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        with socket.create_connection((host, int(port)), WAIT_SECONDS) as client:
            client.settimeout(WAIT_SECONDS)
            server.process.send_signal(signal.SIGSTOP)
            client.sendall(begin[:-1].replace(b"100", b"%d" % len(ping)) + ping)
            client.shutdown(socket.SHUT_WR)
            server.process.send_signal(signal.SIGCONT)
            answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
            expect(b'"result":{}' in answer, str(answer))
        expect(server.close() == 0, "it failed")

    def rubbish_on_the_port_is_survived(self):
        server = self.http()
        host, _, port = server.address.rpartition(":")
        for data in (b"\0" * 100, b"GET / HTTP/1.1\r\n\r\n", b"POST /mcp HTTP/1.1\r\nHost: x",
                     b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
                     b"A" * 200000):
            with socket.create_connection((host, int(port)), WAIT_SECONDS) as client:
                try:
                    client.sendall(data)
                except OSError:
                    pass
        message = modern(call(1, "read_file", path="a.txt"))
        server.start("POST", server.path, json.dumps(message).encode(),
                     {"Content-Type": "application/json", "MCP-Protocol-Version": MODERN,
                      "Mcp-Method": "tools/call", "Mcp-Name": "read_file"}, 1)
        expect(not server.wait_answer(1)["result"]["isError"], "it failed")
        expect(server.close() == 0, "it failed")

    @staticmethod
    def say(server, *head, body=b""):
        """One request by itself; all that is answered until the connection ends."""
        host, _, port = server.address.rpartition(":")
        lines = (*head, "Host: localhost", "Content-Type: application/json", "Connection: close",
                 f"Content-Length: {len(body)}", "", "")
        with socket.create_connection((host, int(port)), WAIT_SECONDS) as client:
            client.settimeout(WAIT_SECONDS)
            client.sendall("\r\n".join(lines).encode() + body)
            return b"".join(iter(lambda: client.recv(1 << 16), b""))

    def headers_that_say_two_things_are_refused(self):
        server = self.http()
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        answer = self.say(server, "POST /mcp HTTP/1.1", body=ping)
        expect(answer.startswith(b"HTTP/1.1 200"), str(answer))
        for header in ("Host: evil.example", "Content-Length: 3", "Transfer-Encoding: chunked",
                       "Transfer-Encoding : chunked", "Host : evil.example", "Ho\tst: x"):
            answer = self.say(server, "POST /mcp HTTP/1.1", header, body=ping)
            expect(answer.startswith(b"HTTP/1.1 400"), f"{header}: {answer}")
        for header in "Mcp-Method: ping", "Mcp-Name: x", f"MCP-Protocol-Version: {MODERN}":
            answer = self.say(server, "POST /mcp HTTP/1.1", header, header + "y", body=ping)
            expect(b"comes twice" in answer, f"{header}: {answer}")
        expect(server.close() == 0, "it failed")

    def a_coding_that_is_not_known_is_refused_at_once(self):
        server = self.http()
        host, _, port = server.address.rpartition(":")
        for coding in ("xchunked", "chunked, identity", "gzip"):
            with socket.create_connection((host, int(port)), SOON_SECONDS) as client:
                client.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
                               b"Transfer-Encoding: %s\r\n\r\n" % coding.encode())
                answer = client.recv(100)
                expect(answer.startswith(b"HTTP/1.1 400"), f"{coding}: {answer}")
        expect(server.close() == 0, "it failed")

    def a_body_that_is_too_large_is_refused_before_it_is_sent(self):
        """Where the client waits for that; one that does not wait is read to its end and told then."""
        server = self.http()
        host, _, port = server.address.rpartition(":")
        for size, wanted in ((MESSAGE_MAX + 1, b"HTTP/1.1 413"), (MESSAGE_MAX * 1000, b"HTTP/1.1 413"), (2, b"HTTP/1.1 100")):
            with socket.create_connection((host, int(port)), WAIT_SECONDS) as client:
                client.settimeout(WAIT_SECONDS)
                client.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               b"Expect: 100-Continue\r\nContent-Length: %d\r\n\r\n" % size)
                answer = client.recv(100)
                expect(answer.startswith(wanted), f"{size}: {answer}")
        with socket.create_connection((host, int(port)), WAIT_SECONDS) as client:
            client.settimeout(WAIT_SECONDS)
            client.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % (MESSAGE_MAX + 1) + b" " * (MESSAGE_MAX + 1))
            expect(client.recv(100).startswith(b"HTTP/1.1 413"), "it was taken")
        expect(server.close() == 0, "it failed")

    def more_requests_than_there_may_be_are_told_so(self):
        server = self.http("--patience", "0.05")
        host, _, port = server.address.rpartition(":")
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        head = (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n")
        job = call(1, "bash", command="until [ -e go ]; do sleep 0.02; done")
        self.say(server, "POST /mcp HTTP/1.1", body=json.dumps(job).encode())
        wait = json.dumps(call(1, "job", id=1, action="wait", timeout_s=600)).encode()
        begun = []
        try:
            # Those that are not there yet, and those that wait for their answer.
            for number in range(REQUESTS_MAX):
                begun.append(socket.create_connection((host, int(port)), WAIT_SECONDS))
                begun[-1].sendall(head % len(wait) + wait if number % 2 else head % len(ping))
            # All of them have been seen when the next is turned away.
            one_more = json.dumps(call(1, "read_file", path="a.txt")).encode()
            for _ in range(1000):
                answer = self.say(server, "POST /mcp HTTP/1.1", body=one_more)
                if not answer.startswith(b"HTTP/1.1 200"):
                    break
            expect(answer.startswith(b"HTTP/1.1 503"), str(answer))
            expect(b"\r\nRetry-After: 1\r\n" in answer and b"notifications/cancelled" in answer,
                   str(answer))
            # But not what is answered at once.
            answer = self.say(server, "POST /mcp HTTP/1.1", body=ping)
            expect(answer.startswith(b"HTTP/1.1 200"), str(answer))
            answer = self.say(server, "POST /mcp HTTP/1.1",
                              body=b'{"jsonrpc":"2.0","method":"notifications/cancelled"}')
            expect(answer.startswith(b"HTTP/1.1 202"), str(answer))
            # Of those there are not any number at once either.
            for _ in range(SHORT_MAX):
                begun.append(socket.create_connection((host, int(port)), WAIT_SECONDS))
                begun[-1].sendall(head % len(ping))
            for _ in range(1000):
                answer = self.say(server, "POST /mcp HTTP/1.1", body=ping)
                if not answer.startswith(b"HTTP/1.1 200"):
                    break
            expect(answer.startswith(b"HTTP/1.1 503"), str(answer))
            for client in begun[REQUESTS_MAX:]:
                client.close()
            del begun[REQUESTS_MAX:]
            begun[0].sendall(ping)
            answer = begun[0].recv(1 << 16)
            expect(answer.startswith(b"HTTP/1.1 200"), str(answer))
            begun[0].close()
            answer = self.say(server, "POST /mcp HTTP/1.1", body=ping)
            expect(answer.startswith(b"HTTP/1.1 200"), str(answer))
            with open(os.path.join(self.workspace, "go"), "w", encoding="ascii"):
                pass
            for waiting in begun[1::2]:
                answer = waiting.recv(1 << 16)
                expect(b"exit code 0" in answer, f"no answer: {answer}")
        finally:
            for client in begun:
                client.close()
        expect(server.close() == 0, "it failed")

    def fill_with_bodies(self, server):
        """The answer to a body for which no room is left; None: some of the others had taken so long that
        the server had given up on them."""
        host, _, port = server.address.rpartition(":")
        body = b" " * (MESSAGE_MAX - 1)
        begun, began = [], time.monotonic()
        try:
            for _ in range(BODIES):
                begun.append(socket.create_connection((host, int(port)), WAIT_SECONDS))
                begun[-1].sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
                                  b"Content-Type: application/json\r\n"
                                  b"Content-Length: %d\r\n\r\n" % MESSAGE_MAX)
                begun[-1].sendall(body)
                until = time.monotonic() + WAIT_SECONDS
                while unread_at(int(port)) > 0:
                    expect(time.monotonic() < until, "it does not read")
                    time.sleep(0.005)
            # A short one has room in any case.
            short = self.say(server, "POST /mcp HTTP/1.1", body=b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
            expect(short.startswith(b"HTTP/1.1 200"), str(short))
            begun[-1].sendall(b" ")
            answer = begun[-1].recv(1 << 16)
        except OSError as error:
            expect(time.monotonic() - began > BODY_SECONDS, f"a body was not taken: {error}")
            return None
        finally:
            for client in begun:
                client.close()
        late = time.monotonic() - began > BODY_SECONDS
        return None if late and not answer.startswith(b"HTTP/1.1 503") else answer

    def bodies_that_do_not_end_have_a_ceiling_together(self):
        server = self.http()
        # Each has a minute. A busy machine gets more than one chance to be that fast.
        for left in (2, 1, 0):
            answer = self.fill_with_bodies(server)
            if answer is not None:
                break
            expect(left > 0, "the bodies take longer than they may")
        expect(answer.startswith(b"HTTP/1.1 503"), str(answer))
        expect(b"\r\nRetry-After: 1\r\n" in answer, str(answer))
        answer = self.say(server, "POST /mcp HTTP/1.1",
                          body=b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        expect(answer.startswith(b"HTTP/1.1 200"), str(answer))
        expect(server.close() == 0, "it failed")

    def connections_that_ask_nothing_make_room(self):
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        # A busy machine gets more than one chance, as above.
        for left in (2, 1, 0):
            server = self.http()
            host, _, port = server.address.rpartition(":")
            began = time.monotonic()
            silent = [socket.create_connection((host, int(port)), WAIT_SECONDS)
                      for _ in range(600)]
            answer = self.say(server, "POST /mcp HTTP/1.1", body=ping)
            took = time.monotonic() - began
            expect(answer.startswith(b"HTTP/1.1 200"), str(answer))
            for client in silent:
                client.close()
            expect(server.close() == 0, "it failed")
            if took < HEAD_SECONDS:
                break
            expect(left > 0, f"it waited until they were sent away: {took:.1f} s")

    def clients_that_are_known_keep_their_connections(self):
        ping = (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 40\r\n\r\n" + b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        server = self.http()
        host, _, port = server.address.rpartition(":")
        known = [socket.create_connection((host, int(port)), WAIT_SECONDS) for _ in range(AT_ONCE)]
        silent = []
        try:
            for client in known:
                client.sendall(ping)
                expect(client.recv(1 << 16).startswith(b"HTTP/1.1 200"), "no answer")
            # Of those that say nothing, or not all of a head, each new one sends another one away.
            for number in range(ALL):
                silent.append(socket.create_connection((host, int(port)), WAIT_SECONDS))
                with contextlib.suppress(OSError):
                    silent[-1].sendall(ping[:number % 50])
            for client in known:
                client.sendall(ping)
                answer = client.recv(1 << 16)
                expect(answer.startswith(b"HTTP/1.1 200"), f"sent away: {answer}")
        finally:
            for client in known + silent:
                client.close()
        expect(server.close() == 0, "it failed")

    def a_huge_list_is_refused_before_it_is_read(self):
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        lists = [b"[" + b",".join([ping] * 100_000) + b"]", b"[" + b"1," * (MESSAGE_MAX // 2 - 1),
                 b"[" * (MESSAGE_MAX - 1)]
        server = self.stdio()
        initialize(server)
        for number, text in enumerate(lists):
            since = len(server.inbox)
            server.write(text)
            answer = server.wait(lambda m: "method" not in m, since=since)
            expect(answer["error"]["code"] == -32600 and answer["id"] is None, str(answer))
            server.send({"jsonrpc": "2.0", "id": number, "method": "ping"})
            expect(server.wait_answer(number)["result"] == {}, "the server is gone")
        expect(server.close() == 0, "it failed")
        server = self.http()
        for text in lists:
            answer = self.say(server, "POST /mcp HTTP/1.1", body=text)
            expect(answer.startswith(b"HTTP/1.1 400") and b"-32600" in answer, str(answer[:300]))
        expect(server.close() == 0, "it failed")

    def who_does_not_say_what_it_wants_is_sent_away(self):
        server = self.http()
        host, _, port = server.address.rpartition(":")
        with socket.create_connection((host, int(port)), WAIT_SECONDS) as client:
            client.settimeout(WAIT_SECONDS)
            client.sendall(b"POST /mcp HTTP/1.1\r\nHo")
            try:
                expect(client.recv(100) == b"", "it is answered")
            except TimeoutError as error:
                raise Failure("it may stay") from error
        expect(server.close() == 0, "it failed")

    def a_call_whose_result_stands_becomes_no_job(self):
        server = self.stdio("--patience", "1")
        initialize(server)
        jobs = set()
        # Each ends a little later, until the look for what it changed lies across the patience.
        for number, milliseconds in enumerate(range(850, 1010, 10), 1):
            server.send(call(number, "bash", command=(
                f"s=$(date +%s%N); mkdir d{number}; cd d{number}; touch $(seq 3000); while "
                f"[ $(( ($(date +%s%N) - s) / 1000000 )) -lt {milliseconds} ]; do :; done")))
            text = server.wait_answer(number)["result"]["content"][0]["text"]
            jobs.update(int(job) for job in re.findall(r"It goes on as job (\d+)", text))
        for job in sorted(jobs):
            server.send(call(100 + job, "job", id=job, action="wait", timeout_s=60))
            answer = server.wait_answer(100 + job, 100)["result"]
            # One whose command had ended before its worker heard that it is a job has no number.
            expect("exit code 0" in answer["content"][0]["text"], answer)
        expect(server.close() == 0, "it failed")

    def a_folder_that_a_dead_anchor_should_show_is_answered_for(self):
        server = self.stdio("--ask", "read")
        initialize(server, elicitation={})
        server.send(call(1, "list_files", path="/var/lib", depth=1))
        question = server.wait(lambda m: m.get("method") == "elicitation/create")
        anchor = named_child(server.process.pid, "glovebox-anchor")
        os.kill(anchor, signal.SIGSTOP)
        server.send({"jsonrpc": "2.0", "id": question["id"], "result":
                     {"action": "accept", "content": {"answer": "session"}}})
        # The server has taken the answer when it answers this.
        server.send({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
        server.wait_answer("ping")
        os.kill(anchor, signal.SIGKILL)
        text = server.wait_answer(1)["result"]["content"][0]["text"]
        expect("could not be shown: " in text, text)
        expect(server.close() == 0, "it failed")

    def a_session_that_calls_outlives_many_that_do_not(self):
        server = self.http("--patience", "0")
        hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                            "params": {"protocolVersion": LEGACY, "capabilities": {}}}).encode()
        answer = self.say(server, "POST /mcp HTTP/1.1", body=hello).decode()
        session = re.search(r"(?i)^mcp-session-id: (\S+)", answer, re.MULTILINE)[1]
        command = "echo >begun; until [ -e go ]; do sleep 0.05; done; echo lived"
        server.start("POST", server.path, json.dumps(call(2, "bash", command=command)).encode(),
                     {"Content-Type": "application/json", "Mcp-Session-Id": session}, 2)
        self.await_file("begun")
        for _ in range(SESSIONS_MAX + 1):
            self.say(server, "POST /mcp HTTP/1.1", body=hello)
        with open(os.path.join(self.workspace, "go"), "w", encoding="ascii"):
            pass
        answer = server.wait_answer(2)
        expect("lived" in answer["result"]["content"][0]["text"], str(answer))
        expect(server.close() == 0, "it failed")

    def without_a_cell_lists_and_calls_say_why(self):
        place = os.path.join(self.workspace, "config.json")
        with open(place, "w", encoding="ascii") as file:
            json.dump({"agents": {"default": {"read": [".", "gone"]}}}, file)
        server = self.stdio("--config", place, stderr=subprocess.DEVNULL)
        server.send({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                     "params": {"protocolVersion": LEGACY}})
        answer = server.wait_answer(1)
        server.send(call(2, "read_file", path="a.txt"))
        answer = server.wait_answer(2)
        expect(answer["result"]["isError"] and "gone" in answer["result"]["content"][0]["text"],
               str(answer))
        server.send({"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
        expect("gone" in server.wait_answer(3)["error"]["message"], "no reason")
        expect(server.close() == 0, "it failed")

    def beside_a_granted_folder_the_end_of_a_session_looks_through_a_large_one(self):
        # A path below /tmp cannot be granted.
        with tempfile.TemporaryDirectory(prefix="mcp-hard-", dir=outside()) as folder:
            small, large = os.path.join(folder, "small"), os.path.join(folder, "large")
            os.mkdir(small)
            for number in range(FOLDERS):
                os.makedirs(os.path.join(large, f"{number}/x"))
            place = os.path.join(self.workspace, "config.json")
            with open(place, "w", encoding="ascii") as file:
                json.dump({"agents": {"default": {"write": [".", large]}}}, file)
            server = self.stdio("--config", place, "--ask", "write")
            initialize(server, elicitation={})
            server.send(call(1, "write_file", path=os.path.join(small, "a"), content="x"))
            question = server.wait(lambda m: m.get("method") == "elicitation/create")
            server.send({"jsonrpc": "2.0", "id": question["id"],
                         "result": {"action": "accept", "content": {"answer": "session"}}})
            expect(not server.wait_answer(1)["result"]["isError"], "it was not granted")
            made = os.path.join(large, "7/x/made")
            git = os.path.join(made, ".git")
            server.send(call(2, "bash", command=f"mkdir -p {git}/objects {git}/refs; cd {git}; echo ref: refs/heads/x "
                                                "> HEAD; printf '[core]\\n\\tfsmonitor = x\\n' > config"))
            expect(not server.wait_answer(2)["result"]["isError"], "it made no repository")
            expect(server.close() == 0, "it failed")
            expect("config" not in os.listdir(git) and "HEAD" in os.listdir(git), str(os.listdir(git)))

    def play(self, name):
        with tempfile.TemporaryDirectory(prefix="mcp-hard-", ignore_cleanup_errors=True) as folder:
            os.chmod(folder, 0o755)
            self.workspace = os.path.join(folder, "workspace")
            os.mkdir(self.workspace)
            for file_name, text in (("a.txt", "hello\n"), ("long.txt", "x" * 60 + "\n")):
                with open(os.path.join(self.workspace, file_name), "w", encoding="ascii") as file:
                    file.write(text * (500 if file_name == "long.txt" else 1))
            self.environment = {"PATH": os.environ["PATH"], "HOME": folder,
                                "XDG_CONFIG_HOME": os.path.join(folder, "config"),
                                "XDG_STATE_HOME": os.path.join(folder, "state")}
            for variable in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
                if variable in os.environ:
                    self.environment[variable] = os.environ[variable]
            try:
                getattr(self, name)()
                left = left_behind()
                expect(not left, f"left behind: {left}")
            except Failure as failure:
                left_behind()
                return str(failure)
        return None


def main():
    hear_signals()
    cases = Cases(os.path.abspath(sys.argv[1]))
    adopt_orphans()
    helpers = {"play", "stdio", "http", "await_file", "say", "stored", "expect_steps",
               "count", "await_ping", "fill_with_bodies"}
    names = [name for name in vars(Cases) if not name.startswith("_") and name not in helpers]
    only = os.environ.get("TAP_ONLY", "").replace(" ", "_")
    names = [name for name in names if only in name and (len(sys.argv) < 3 or sys.argv[2] in name)]
    print(f"1..{len(names)}", flush=True)
    failed = 0
    for number, name in enumerate(names, 1):
        wrong = cases.play(name)
        failed += wrong is not None
        print(f"{'not ' if wrong else ''}ok {number} - {name.replace('_', ' ')}", flush=True)
        if wrong:
            print("".join(f"# {line}\n" for line in wrong.splitlines()), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
