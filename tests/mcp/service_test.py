#!/usr/bin/env python3
"""service_test.py GLOVEBOX: `mcp --http` as a service: cells, tokens, quotas, drain, what watches it, what
stands before it, and load. TAP.

Each server listens at a free port of the loopback, in a folder of its own.
"""
import concurrent.futures
import contextlib
import ctypes
import errno
import fcntl
import hashlib
import http.client
import http.server
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
for beside in ("dev", "fronts"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", beside))
from client import LEGACY, MODERN, WAIT_SECONDS, adopt_orphans, children, left_behind  # noqa: E402, pylint: disable=wrong-import-position
from place import unused_port  # noqa: E402, pylint: disable=wrong-import-position
import tap  # noqa: E402, pylint: disable=wrong-import-position
from rootfs import Rootfs, which  # noqa: E402, pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[1])
END_SECONDS = 60
DESCRIPTORS_LEFT = 20
SESSIONS = 200
FEW_SESSIONS = 40  # of a program with sanitizers, whose cells take long to build
BUILT_AT_ONCE = 32  # a cell has 20 s for that
KILLS = 12
LOAD_SECONDS = 60


class Answer:
    """Status, headers, and the messages of an answer of HTTP."""

    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        text = response.read().decode()
        if (self.headers.get("Content-Type") or "").startswith("text/event-stream"):
            self.messages = [json.loads(line[6:]) for line in text.split("\n")
                             if line.startswith("data: ")]
        elif (self.headers.get("Content-Type") or "").startswith("application/json"):
            self.messages = [json.loads(text)]
        else:
            self.messages = []
        self.raw = text

    @property
    def last(self):
        return self.messages[-1]

    @property
    def text(self):
        """All the text of a tool's result."""
        return "\n".join(item.get("text", "") for item in self.last["result"]["content"])

    @property
    def busy(self):
        return self.last["error"]["data"]

    def __repr__(self):
        return f"{self.status} {dict(self.headers)} {self.raw[:2000]}"


class Service:
    """A server with the `service` SETTINGS; as a context it ends at the end."""

    def __init__(self, settings, *words, tokens=None, before=(), environment=None, folder=None,
                 config=None, bare=False, **options):
        self.owns = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="mcp-service-")
        os.chmod(self.folder, 0o755)
        self.workspace = os.path.join(self.folder, "workspace")
        os.makedirs(self.workspace, exist_ok=True)
        self.tokens_file = os.path.join(self.folder, "tokens")
        settings = dict(settings)
        if tokens is not None:
            self.write_tokens(tokens)
            settings["tokens"] = self.tokens_file
        if not bare:
            settings.setdefault("root", self.workspace)
        self.config = os.path.join(self.folder, "config.json")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({"agents": {"default": {"write": ["."]}, "reader": {}},
                       **(config or {}), "service": settings}, file)
        os.chmod(self.config, 0o600)
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.folder,
                            "XDG_CONFIG_HOME": os.path.join(self.folder, "config"),
                            "XDG_STATE_HOME": os.path.join(self.folder, "state"),
                            **{name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS")
                               if name in os.environ},
                            **(environment or {})}
        self.words = [*before, PROGRAM, "mcp", "--config", self.config, "--scope", "never", *words]
        self.said, self.process = [], None
        self.counter, self.lock = 0, threading.Lock()
        self.options = options
        if "--http" not in words:
            self.words += ["--http", "127.0.0.1:0"]
        try:
            self.start()
        except BaseException:
            self.remove()
            raise

    def start(self):
        self.said = []
        self.process = subprocess.Popen(self.words, cwd=self.workspace, env=self.environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, **self.options)
        for line in self.process.stderr:
            self.said.append(line.decode())
            match = re.search(r"http://([^/]+)(/\S+)", self.said[-1])
            if match:
                self.address = match.group(1)
                self.reader = threading.Thread(target=self.read, daemon=True)
                self.reader.start()
                return
        code = self.process.wait(END_SECONDS)
        raise AssertionError(f"it ended with {code}: {''.join(self.said)}")

    def read(self):
        for line in self.process.stderr:
            self.said.append(line.decode())

    def write_tokens(self, tokens):
        """TOKENS: secret -> members of its line."""
        with open(self.tokens_file + ".new", "w", encoding="utf-8") as file:
            file.write("# the tokens of the test\n")
            for secret, members in tokens.items():
                file.write(json.dumps({"name": secret, "sha256":
                                       hashlib.sha256(secret.encode()).hexdigest(), **members}) + "\n")
        os.chmod(self.tokens_file + ".new", 0o600)
        os.rename(self.tokens_file + ".new", self.tokens_file)

    def change_tokens(self, tokens, known=(), unknown=()):
        """Write TOKENS, and wait until the server knows those in KNOWN and does not know those in UNKNOWN."""
        self.write_tokens(tokens)
        self.wait_tokens(known, unknown)

    def wait_tokens(self, known=(), unknown=()):
        wanted = {**{token: False for token in known}, **{token: True for token in unknown}}
        wait_for(lambda: all((self.post("ping", token=token, legacy=True).status == 401) == gone
                             for token, gone in wanted.items()), f"not the tokens {wanted}")

    def send(self, method, path, body=None, headers=None, address=None, seconds=WAIT_SECONDS):
        connection = http.client.HTTPConnection(address or self.address, timeout=seconds)
        try:
            connection.request(method, path, body, headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, address=None, **headers):
        return self.send("GET", path, headers=headers, address=address)

    def post(self, method, params=None, token=None, session=None, cell=None, legacy=False, headers=None,
             notice=False, address=None):
        with self.lock:
            self.counter += 1
            number = self.counter
        params = dict(params or {})
        sent = {"Content-Type": "application/json",
                "Accept": "application/json, text/event-stream"}
        if not legacy:
            params["_meta"] = {"io.modelcontextprotocol/protocolVersion": MODERN,
                               "io.modelcontextprotocol/clientCapabilities": {}}
            sent["MCP-Protocol-Version"], sent["Mcp-Method"] = MODERN, method
            if "name" in params:
                sent["Mcp-Name"] = params["name"]
        if token:
            sent["Authorization"] = f"Bearer {token}"
        if session:
            sent["Mcp-Session-Id"], sent["MCP-Protocol-Version"] = session, LEGACY
        if cell:
            sent["Glovebox-Cell"] = cell
        sent.update(headers or {})
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if not notice:
            message["id"] = number
        return self.send("POST", "/mcp", json.dumps(message), sent, address)

    def hello(self, token=None):
        """The answer to the handshake of a legacy session, and its id."""
        answer = self.post("initialize", {"protocolVersion": LEGACY, "capabilities": {}}, token=token,
                           legacy=True)
        return answer, answer.headers.get("Mcp-Session-Id")

    def session(self, token=None):
        answer, session = self.hello(token)
        assert answer.status == 200 and session, answer
        return session

    def call(self, name, arguments, **how):
        return self.post("tools/call", {"name": name, "arguments": arguments}, legacy="session" in how, **how)

    def bash(self, command, **how):
        return self.call("bash", {"command": command}, **how)

    def metrics(self):
        """The rows of /metrics at the address that the settings name: name with labels -> number."""
        with open(self.config, encoding="utf-8") as file:
            address = json.load(file)["service"]["metrics"]
        answer = self.get("/metrics", address=address)
        assert answer.status == 200, answer
        rows = [line.rpartition(" ") for line in answer.raw.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in rows}

    def ready(self):
        answer = self.get("/readyz")
        return answer.status, json.loads(answer.raw)

    def wait_said(self, pattern):
        wait_for(lambda: re.search(pattern, "".join(self.said)), f"no {pattern} in {self.said}")

    def end(self, number=signal.SIGTERM, code=0):
        self.process.send_signal(number)
        self.ended(code)

    def ended(self, code):
        found = self.process.wait(END_SECONDS)
        self.reader.join(END_SECONDS)
        assert found == code, (found, self.said)
        left = left_behind()
        assert not left, f"left behind: {left}"

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            if kind is None:
                self.end()
            else:
                self.process.kill()
                self.process.wait()
                sys.stderr.write("".join(self.said))
        left_behind()
        self.remove()

    def remove(self):
        self.process.stderr.close()
        if self.owns:
            shutil.rmtree(self.folder, ignore_errors=True)


def wait_for(truth, sentence, seconds=WAIT_SECONDS):
    until = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < until, sentence
        time.sleep(0.02)


def when_it_is_over(ask):
    """The answer to ASK when no former cell of that name ends any more."""
    answers = []

    def asked():
        answers.append(ask())
        return not (answers[-1].status == 503 and answers[-1].busy["kind"] == "ending")
    wait_for(asked, "the former cell does not end")
    return answers[-1]


def call_body(number, command, **meta):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call",
            "params": {"name": "bash", "arguments": {"command": command}, "_meta": meta}}


class Stream:
    """A stream of events: what GET, or a POST of LISTEN, is answered with."""

    def __init__(self, service, headers, listen=None):
        self.connection = http.client.HTTPConnection(service.address, timeout=WAIT_SECONDS)
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json", **headers}
        self.connection.request("POST" if listen else "GET", "/mcp", json.dumps(listen) if listen else None, headers)
        self.response = self.connection.getresponse()
        self.status = self.response.status
        # It has begun when its first bytes are there.
        self.begun = self.response.readline() if self.status == 200 else b""

    def rest(self):
        """All messages until its end."""
        text = (self.begun + self.response.read()).decode()
        return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]

    def close(self):
        self.connection.close()


def listen_body(number):
    return {"jsonrpc": "2.0", "id": number, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": True},
        "_meta": {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}}}


LISTEN_HEADERS = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"}


def bearer(token):
    return {"Authorization": "Bearer " + token}


def refused(settings, *words, tokens=None, code=2, **options):
    """What a server says that does not start."""
    try:
        with Service(settings, *words, tokens=tokens, **options):
            pass
    except AssertionError as error:
        assert f"it ended with {code}:" in str(error), error
        return str(error)
    raise AssertionError("it has started")


# Cells.

@tap.case
def each_session_has_a_cell_of_its_own():
    with Service({}) as service:
        one, other = service.session(), service.session()
        assert not service.bash("echo one >/tmp/mark", session=one).last["result"]["isError"]
        assert "one" in service.bash("cat /tmp/mark", session=one).text
        assert "No such file" in service.bash("cat /tmp/mark", session=other).text
        assert service.send("DELETE", "/mcp", headers={"Mcp-Session-Id": one}).status == 204
        assert service.bash("true", session=one).status == 404
        assert service.bash("true", session=other).status == 200


@tap.case
def a_client_without_sessions_names_its_cells():
    with Service({}) as service:
        service.bash("echo one >/tmp/mark")
        assert "one" in service.bash("cat /tmp/mark").text
        assert "one" in service.bash("cat /tmp/mark", cell="main").text
        assert "No such file" in service.bash("cat /tmp/mark", cell="other").text
        wrong = service.bash("true", cell="../x")
        assert wrong.status == 400 and "Glovebox-Cell" in wrong.last["error"]["message"], wrong


@tap.case
def a_token_has_one_cell_where_cells_are_its_own():
    with Service({"cell": "token"}, tokens={"a" * 20: {}, "b" * 20: {}}) as service:
        one, again = service.session("a" * 20), service.session("a" * 20)
        service.bash("echo one >/tmp/mark", session=one, token="a" * 20)
        assert "one" in service.bash("cat /tmp/mark", session=again, token="a" * 20).text
        assert "one" in service.bash("cat /tmp/mark", token="a" * 20).text
        assert "No such file" in service.bash("cat /tmp/mark", token="b" * 20).text
        # A session is its token's only.
        assert service.bash("true", session=one, token="b" * 20).status == 404


@tap.case
def one_cell_for_all_is_drained_as_well():
    with Service({"cell": "shared"}) as service:
        service.bash("echo one >/tmp/mark", session=service.session())
        assert "one" in service.bash("cat /tmp/mark", session=service.session()).text


@tap.case
def a_cell_too_many_is_told_which_bound_it_meets():
    tokens = {name * 20: {} for name in "abc"}
    with Service({"max_cells": 3, "max_cells_per_token": 2}, tokens=tokens) as service:
        sessions = [service.session("a" * 20) for _ in range(2)]
        answer, _ = service.hello("a" * 20)
        assert answer.status == 429 and int(answer.headers["Retry-After"]) > 0, answer
        assert answer.last["error"]["code"] == -32011
        assert answer.busy == {"kind": "busy", "limit": "max_cells_per_token", "value": 2}, answer
        assert service.ready()[0] == 200
        assert service.bash("true", token="b" * 20).status == 200
        status, told = service.ready()
        assert status == 503 and told["reason"] == "full", told
        answer = service.bash("true", token="c" * 20)
        assert answer.status == 503, answer
        assert answer.busy == {"kind": "busy", "limit": "max_cells", "value": 3}, answer
        service.send("DELETE", "/mcp", headers={"Mcp-Session-Id": sessions[0],
                                                "Authorization": "Bearer " + "a" * 20})
        # A cell that ends has its place until it is gone.
        wait_for(lambda: service.ready()[0] == 200, "the cell does not end")
        assert service.bash("true", token="c" * 20).status == 200


@tap.case
def a_call_too_many_is_told_to_come_again():
    with Service({"max_calls_per_token": 2}) as service:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            running = [pool.submit(service.bash, f"echo >b{i}; while [ ! -e go ]; do sleep 0.02; done")
                       for i in range(2)]
            wait_for(lambda: all(os.path.exists(os.path.join(service.workspace, f"b{i}"))
                                 for i in range(2)), "no calls")
            answer = service.bash("true")
            assert answer.status == 429 and answer.headers["Retry-After"] == "1", answer
            assert answer.busy == {"kind": "busy", "limit": "max_calls_per_token", "value": 2}, answer
            # What is answered at once needs no place.
            assert service.post("tools/list").status == 200
            with open(os.path.join(service.workspace, "go"), "w", encoding="ascii"):
                pass
            assert all(call.result().status == 200 for call in running)
        assert service.bash("true").status == 200


@tap.case
def a_cell_that_nobody_uses_ends_and_the_next_call_is_told_once():
    with Service({"idle_s": 0.5}) as service:
        session = service.session()
        service.bash("true", session=session)
        service.bash("echo >/tmp/mark")
        wait_for(lambda: service.ready()[1]["cells"] == 0, "the cells do not end")
        assert service.bash("true", session=session).status == 404
        first, second = service.bash("ls /tmp/mark"), service.bash("ls /tmp/mark")
        assert "the cell main has ended, because nobody had used it for 0.5 s" in first.text, first
        assert "No such file" in first.text and "has ended" not in second.text, (first, second)


@tap.case
def a_cell_ends_when_its_life_is_over_and_its_calls_are_answered():
    with Service({"life_s": 1}) as service:
        answer = service.bash("sleep 1000")
        assert answer.status == 200 and answer.last["result"]["isError"], answer
        assert answer.text.endswith("[glovebox: The cell ends, because it had lived 1 s.]"), answer
        assert "it had lived 1 s" in when_it_is_over(lambda: service.bash("true")).text


@tap.case
def no_cell_begins_while_the_former_of_its_name_ends():
    settings = {"life_s": 1, "workspace": "{cell}", "on_close": "delete", "metrics": f"127.0.0.1:{unused_port()}"}
    with Service(settings) as service, concurrent.futures.ThreadPoolExecutor() as pool:
        # It hears no signal but the last, so that its cell takes some time to end.
        slow = pool.submit(service.bash, "trap '' TERM INT HUP; echo x >former; while :; do sleep 0.1; done")
        wait_for(lambda: os.path.exists(os.path.join(service.workspace, "main", "former")), "no call")
        while (answer := service.post("ping", cell="main", legacy=True)).status == 200:
            time.sleep(0.02)
        assert answer.status == 503 and answer.headers["Retry-After"] == "1", answer
        assert answer.busy["kind"] == "ending", answer
        assert "The cell main is ending, because it had lived 1 s" in answer.last["error"]["message"], answer
        # Others are not held up.
        assert service.bash("echo other", cell="other").text.startswith("other")
        answer = when_it_is_over(lambda: service.bash("ls -A"))
        assert "former" not in answer.text.split("[glovebox")[0] and "it had lived 1 s" in answer.text, answer
        assert slow.result().last["result"]["isError"], slow.result()


@tap.case
def a_cell_counts_until_its_processes_are_gone():
    settings = {"life_s": 1, "max_cells": 1, "workspace": "{cell}", "on_close": "delete"}
    with Service(settings) as service:
        # A job has its grace after the calls, while the cell closes.
        folder = os.path.join(service.workspace, "main")
        command = "trap '' TERM INT HUP; echo x >former; while :; do sleep 0.1; done"
        assert service.call("bash", {"command": command, "background": True}, cell="main").status == 200
        wait_for(lambda: os.path.exists(os.path.join(folder, "former")), "no job")
        while (answer := service.post("ping", cell="other", legacy=True)).status != 200:
            assert answer.status == 503 and answer.busy["limit"] == "max_cells", answer
            told = service.ready()[1]
            assert told["cells"] <= 1, told
        assert not os.path.exists(folder), service.ready()


# Workspaces.

@tap.case
def workspaces_are_made_below_the_root():
    with Service({"workspace": "work/{token}/{cell}"}) as service:
        assert "work/default/mine" in service.bash("pwd; echo x >kept", cell="mine").text
        folder = os.path.join(service.workspace, "work", "default", "mine")
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert os.listdir(folder) == ["kept"]
        # One does not see the other.
        assert "No such file" in service.bash(f"ls {folder}", cell="other").text
        service.end()
        assert os.listdir(folder) == ["kept"]


@tap.case
def a_workspace_goes_with_its_cell():
    with Service({"workspace": "{date}/{id}", "on_close": "delete"}) as service:
        session = service.session()
        service.bash("mkdir -p a/b; echo x >a/b/c; chmod 0 a", session=session)
        day = os.path.join(service.workspace, time.strftime("%Y-%m-%d", time.gmtime()))
        assert len(os.listdir(day)) == 1
        service.send("DELETE", "/mcp", headers={"Mcp-Session-Id": session})
        wait_for(lambda: not os.listdir(day), "it stays")
        service.bash("echo x >y")
        service.end()
        assert not os.listdir(day)
        own = os.path.join(service.workspace, ".glovebox")
        assert not [name for name in os.listdir(own) if name.startswith(".gone-")], os.listdir(own)


@tap.case
def a_workspace_is_moved_to_the_archive():
    with Service({"workspace": "{token}/{cell}", "on_close": "archive"}) as service:
        service.bash("echo x >kept", cell="mine")
        service.end()
        assert os.listdir(os.path.join(service.workspace, "default")) == []
        archive = os.path.join(service.workspace, ".archive")
        names = os.listdir(archive)
        assert len(names) == 1 and "-default-mine-" in names[0], names
        assert os.listdir(os.path.join(archive, names[0])) == ["kept"]


def held(own):
    """The number of lists in the folder OWN whose servers live, or what these ran."""
    count = 0
    for name in os.listdir(own) if os.path.isdir(own) else []:
        if name.startswith(".open-"):
            lock = os.open(os.path.join(own, name), os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                count += 1
            finally:
                os.close(lock)
    return count


def kill(service, *others):
    """Kill SERVICE, and wait for the end of what it ran; OTHERS go on."""
    service.process.kill()
    service.process.wait()
    kept = {other.process.pid for other in others}

    def gone():
        found = set(children()) - kept
        for pid in found:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return not found
    wait_for(gone, "it leaves processes behind")
    # The kernel may leave out a child while another one ends; the locks tell of it.
    with open(service.config, encoding="utf-8") as file:
        own = os.path.join(json.load(file)["service"]["root"], ".glovebox")
    wait_for(lambda: held(own) <= len(kept), "what it ran has its lock")
    service.reader.join(END_SECONDS)
    service.process.stderr.close()


@tap.case
def folders_that_a_killed_server_left_go_when_the_next_one_starts():
    settings = {"workspace": "{token}/{cell}", "on_close": "delete"}
    tokens = {"a" * 20: {}, "b" * 20: {}}
    with Service(settings, tokens=tokens) as service, \
            Service({**settings, "root": service.workspace}, tokens={"c" * 20: {}}) as other:
        assert other.bash("echo x >kept", token="c" * 20).status == 200
        for cell in ("one", "two"):
            assert service.bash("mkdir d; echo x >d/left", token="a" * 20, cell=cell).status == 200
        # Nobody of ours has made these.
        folder = os.path.join(service.workspace, "a" * 20)
        os.mkdir(os.path.join(folder, "three"))
        own = os.path.join(service.workspace, ".glovebox")
        outside = os.path.join(service.folder, "outside")
        os.mkdir(outside)
        kill(service, other)
        # A link that somebody has put there leads to nothing that goes.
        holder, = [name for name in os.listdir(own) if name.startswith(".open-") and
                   "a" * 20 in os.readlink(os.path.join(own, name, os.listdir(os.path.join(own, name))[0]))]
        for number, place in enumerate(("../outside", "/etc", ".glovebox/x", "a/../../outside", "")):
            with contextlib.suppress(OSError):
                os.symlink(place, os.path.join(own, holder, f"{number:012}"))
        service.start()
        assert sorted(os.listdir(folder)) == ["three"], os.listdir(folder)
        assert os.path.isdir(outside) and not os.path.exists(os.path.join(own, holder))
        # What another server that lives has is not touched.
        assert other.bash("cat kept", token="c" * 20).text.startswith("x")
        assert "No such file" in service.bash("cat d/left", token="a" * 20, cell="one").text
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(END_SECONDS) == 0, service.said
        other.end()
        assert os.listdir(folder) == ["three"], os.listdir(folder)
        assert not [name for name in os.listdir(own) if name.startswith(".")], os.listdir(own)


def configure(service, **settings):
    """Change SETTINGS of SERVICE, which does not run."""
    with open(service.config, encoding="utf-8") as file:
        config = json.load(file)
    config["service"].update(settings)
    with open(service.config, "w", encoding="utf-8") as file:
        json.dump(config, file)


@tap.case
def folders_of_a_killed_server_stay_when_they_are_to_be_kept_now():
    with Service({"workspace": "work/{token}/{cell}", "on_close": "delete"}, tokens={"a" * 20: {}}) as service:
        folder = os.path.join(service.workspace, "work", "a" * 20, "main")
        kept = "a server that was killed has left this workspace; it stays, because on_close"
        for closing in ("keep", "archive"):
            assert service.bash("echo x >kept", token="a" * 20).status == 200
            kill(service)
            configure(service, on_close=closing)
            service.start()
            assert os.listdir(folder) == ["kept"]
            assert sum(f"{folder}: {kept}" in line for line in service.said) == 1, service.said
            # Those that it keeps are not swept either when that changes back.
            assert service.bash("cat kept", token="a" * 20).text.startswith("x")
            kill(service)
            configure(service, on_close="delete")
            service.start()
            assert os.listdir(folder) == ["kept"]
            assert len(service.said) == 1, service.said
        assert service.bash("cat kept", token="a" * 20).text.startswith("x")
        kill(service)
        service.start()
        assert not os.path.exists(folder)
        removed = "a server that was killed has left this workspace; it is removed"
        assert sum(f"{folder}: {removed}" in line for line in service.said) == 1, service.said
        service.end()
        own = os.path.join(service.workspace, ".glovebox")
        assert not [name for name in os.listdir(own) if name.startswith(".")], os.listdir(own)


@tap.case
def a_folder_in_which_another_server_works_is_not_swept():
    token = "a" * 20
    for kept, swept in (("work/{token}/{cell}", "work/{token}/{cell}"), ("work/{token}", "work/{token}/{cell}"),
                        ("work/{token}/main/{cell}", "work/{token}/{cell}")):
        with Service({"workspace": kept}, tokens={token: {}}) as keeper, \
                Service({"workspace": swept, "on_close": "delete", "root": keeper.workspace},
                        tokens={token: {}}) as service:
            assert keeper.bash("echo x >kept", token=token).status == 200
            folder = os.path.join(keeper.workspace, "work", token, "main")
            assert service.bash("echo y >theirs", token=token).status == 200
            kill(service, keeper)
            service.start()
            assert os.path.exists(os.path.join(folder, "theirs")), (kept, service.said)
            assert keeper.bash("cat kept && echo z >more", token=token).text.startswith("x"), kept
            assert any(f"{folder}: " in line and "also that of another server" in line for line in service.said)
            # Neither when both were killed.
            assert service.bash("cat theirs", token=token).text.startswith("y")
            kill(service, keeper)
            kill(keeper)
            service.start()
            assert os.path.exists(os.path.join(folder, "theirs")), (kept, service.said)
            service.end()


def when_left(path, then):
    """A thread that calls THEN when a process has closed PATH, which it watches when this returns."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_CLOEXEC)
    in_close_nowrite = 0x10
    assert watch >= 0 and libc.inotify_add_watch(watch, path.encode(), in_close_nowrite) >= 0, ctypes.get_errno()

    def wait():
        os.read(watch, 4096)
        then()
        os.close(watch)
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@tap.case
def a_server_that_is_killed_during_a_sweep_is_left_to_the_next_one():
    many = 20000  # names, which take longer to look at than a lock to be given up
    with Service({"workspace": "{cell}", "on_close": "delete"}) as service:
        kill(service)
        folder = os.path.join(service.workspace, "main")
        own = os.path.join(service.workspace, ".glovebox")
        dying, dead = (os.path.join(own, f".open-goes-{name * 6}") for name in "ab")
        for path in (folder, own, dying, dead):
            os.mkdir(path, 0o700)
        os.symlink("main", os.path.join(dying, "0" * 12))
        for number in range(many):
            os.symlink("x", os.path.join(dead, f"{number:013}"))
        lock = os.open(dying, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Between the two looks at this list there is always one at the other.
        thread = when_left(dying, lambda: os.close(lock))
        service.start()
        thread.join(WAIT_SECONDS)
        assert not os.path.exists(dead)
        assert os.path.isdir(folder) and os.listdir(dying) == ["0" * 12], service.said
        kill(service)
        service.start()
        assert not os.path.exists(folder) and not os.path.exists(dying), service.said
        service.end()


@tap.case
def a_folder_in_which_another_server_works_stays_when_a_cell_ends():
    token = "a" * 20
    for closing in ("delete", "archive"):
        settings = {"workspace": "work/{token}/{cell}", "on_close": closing}
        with Service({"workspace": "work/{token}/{cell}"}, tokens={token: {}}) as keeper, \
                Service({**settings, "root": keeper.workspace}, tokens={token: {}}) as service:
            folder = os.path.join(keeper.workspace, "work", token, "main")
            # It is the other one that has made it.
            assert service.bash("echo y >theirs", token=token).status == 200
            assert service.bash("echo y >theirs", token=token, cell="alone").status == 200
            assert keeper.bash("echo x >kept", token=token).status == 200
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(END_SECONDS) == 0, service.said
            service.reader.join(END_SECONDS)
            assert sorted(os.listdir(folder)) == ["kept", "theirs"], service.said
            assert any(f"{folder}: the workspace stays: it is also that of another server" in line
                       for line in service.said), service.said
            assert os.listdir(os.path.join(keeper.workspace, "work", token)) == ["main"]
            assert keeper.bash("cat kept", token=token).text.startswith("x")
            keeper.end()
            own = os.path.join(keeper.workspace, ".glovebox")
            assert not [name for name in os.listdir(own) if name.startswith(".open-")], os.listdir(own)


@tap.case
def no_cell_takes_a_folder_while_another_server_sweeps():
    settings = {"workspace": "{cell}", "on_close": "delete"}
    with Service(settings) as service:
        assert service.bash("true", cell="one").status == 200
        lock = os.open(os.path.join(service.workspace, ".glovebox"), os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            answer = service.bash("true", cell="two")
            assert answer.status == 503 and answer.busy["kind"] == "set_up", answer
            service.wait_said("glovebox: another server has held its lock for 2 s")
            assert not os.path.exists(os.path.join(service.workspace, "two"))
            # A server that starts meanwhile does not sweep, and says so.
            other = Service({**settings, "root": service.workspace})
        finally:
            os.close(lock)
        with other:
            assert re.search("what servers that were killed have left stays until the next start: .*glovebox: "
                             "another server has held its lock for 10 s", "".join(other.said)), other.said
            assert service.bash("true", cell="two").status == 200
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(END_SECONDS) == 0, service.said
            other.end()


@tap.case
def a_cell_that_could_not_be_made_leaves_no_folder():
    for closing in ("keep", "delete"):
        with Service({"workspace": "work/{token}/{cell}", "on_close": closing},
                     tokens={"a" * 20: {}, "b" * 20: {"agent": "nobody"}}) as service:
            work = os.path.join(service.workspace, "work")
            assert service.bash("echo x >y", token="a" * 20).status == 200
            answer = service.bash("true", token="b" * 20)
            assert answer.status == 503 and answer.busy["kind"] == "set_up", answer
            assert os.listdir(work) == ["a" * 20], os.listdir(work)
            own = os.path.join(service.workspace, ".glovebox")
            assert os.listdir(os.path.join(own, "work")) == ["a" * 20], os.listdir(os.path.join(own, "work"))
            # Neither does one that nobody has used.
            assert service.post("ping", token="a" * 20, cell="unused", legacy=True).status == 200
            assert sorted(os.listdir(os.path.join(work, "a" * 20))) == ["main", "unused"]
            service.end()
            assert os.listdir(os.path.join(work, "a" * 20)) == (["main"] if closing == "keep" else []), closing
            assert not [name for name in os.listdir(own) if name.startswith(".")], os.listdir(own)


@tap.case
def no_name_reaches_the_folders_of_the_service():
    names = ["archive", "gone-x"]
    with Service({"workspace": "{token}/{cell}", "on_close": "archive"}, tokens={name: {} for name in names}) as service:
        for name in names:
            assert service.bash("echo x >kept", token=name).status == 200
        # A server that was killed leaves what the next one sweeps: nothing of a token.
        kill(service)
        service.start()
        assert service.bash("cat kept", token="gone-x").text.startswith("x")
        assert os.path.isdir(os.path.join(service.workspace, ".glovebox", "gone-x"))
        service.end()
        moved = os.listdir(os.path.join(service.workspace, ".archive"))
        assert len(moved) == 1 and "-gone-x-main-" in moved[0], moved
        assert os.listdir(os.path.join(service.workspace, "archive")) == ["main"]


@tap.case
def a_link_in_the_place_of_a_workspace_is_not_followed():
    with Service({"workspace": "work/{cell}"}) as service:
        outside = os.path.join(service.folder, "outside")
        os.mkdir(outside)
        os.makedirs(os.path.join(service.workspace, "work"))
        os.symlink(outside, os.path.join(service.workspace, "work", "main"))
        answer = service.bash("echo x >y")
        assert answer.status == 503 and answer.busy["kind"] == "set_up", answer
        assert os.listdir(outside) == []
        service.wait_said("work/main")
        # The next client may meet the same, until a cell can be made.
        assert service.ready() == (503, {**service.ready()[1], "ready": False, "reason": "no_cell"}), service.ready()
        assert service.bash("true", cell="other").status == 200
        wait_for(lambda: service.ready()[0] == 200, "it stays not ready")


@tap.case
def without_a_template_all_cells_work_in_the_root():
    with tempfile.TemporaryDirectory() as root, Service({"root": root}) as service:
        assert os.path.basename(root) in service.bash("pwd; echo x >made").text
        assert service.bash("cat made", cell="other").text.startswith("x")
        assert os.listdir(service.workspace) == [] and "made" in os.listdir(root)


@tap.case
def settings_that_cannot_be_kept_are_refused():
    assert "on_close" in refused({"on_close": "delete"})
    assert "on_close" in refused({"on_close": "delete", "workspace": "{cell}/{token}"})
    for wrong in ("/a", "../a", "a//b", "a/.b", "{user}", "a b", "", "{token}-{cell}", "{id}/{token}{cell}"):
        assert "/service/workspace" in refused({"workspace": wrong}), wrong
    assert "{token} or {id}" in refused({"workspace": "work/{cell}"}, tokens={"a" * 20: {}})
    assert "must be an absolute path" in refused({"root": "here"})
    assert "/service/trusted_proxies/0" in refused({"trusted_proxies": ["10.0.0.0/33"]})
    assert "loopback" in refused({"metrics": "0.0.0.0:0"})
    assert "there is no key" in refused({"cells": "session"})
    assert "mcpServers" in refused({}, config={"mcpServers": {"a": {"command": "true"}}})
    assert "service.policy" in refused({"policy": {"writes": ["."]}})


@tap.case
def all_cells_have_the_rights_that_the_service_names():
    for settings in ({"agent": "reader"}, {"policy": {"read": ["."]}}):
        with Service(settings) as service:
            assert "written" not in service.bash("echo x >made && echo written").text, settings
    assert "nobody" in refused({"agent": "nobody"}, code=1)


# Tokens.

@tap.case
def a_request_needs_a_token_that_is_known_and_not_expired():
    tokens = {"a" * 20: {}, "b" * 20: {"expires": "2020-02-29"}, "c" * 20: {"expires": "2999-01-31T00:00:00Z"}}
    with Service({}, tokens=tokens) as service:
        for token, words in ((None, "is needed"), ("d" * 20, "not known"), ("b" * 20, "expired (2020-02-29)")):
            answer = service.bash("true", token=token)
            assert answer.status == 401 and answer.headers["WWW-Authenticate"] == "Bearer", answer
            assert words in answer.last["error"]["message"], answer
        assert service.bash("true", token="a" * 20).status == 200
        assert service.bash("true", token="c" * 20).status == 200
        # Those who watch it need none.
        assert service.get("/healthz").status == 200 and service.ready()[0] == 200


@tap.case
def the_file_of_tokens_is_read_again_when_it_changes():
    with Service({}, tokens={"a" * 20: {}}) as service:
        session = service.session("a" * 20)
        service.bash("true", session=session, token="a" * 20)
        service.change_tokens({"a" * 20: {"quota": {"calls_minute": 1000}}, "b" * 20: {}}, known=["b" * 20])
        assert service.bash("true", token="b" * 20).status == 200
        assert service.bash("true", session=session, token="a" * 20).status == 200
        # A fault leaves the tokens as they were, and is told.
        with open(service.tokens_file, "a", encoding="ascii") as file:
            file.write('{"name": "x"}\n')
        assert service.bash("true", token="b" * 20).status == 200
        service.wait_said("line 4.*sha256.*stay as they were|stay as they were.*line 4")
        # Other rights are another cell's.
        service.change_tokens({"a" * 20: {"agent": "reader"}}, unknown=["b" * 20])
        assert service.bash("true", token="b" * 20).status == 401
        assert service.bash("true", session=session, token="a" * 20).status == 404
        wait_for(lambda: service.ready()[1]["cells"] == 0, "the cells do not end")


@tap.case
def a_file_of_tokens_that_is_written_anew_ends_no_cell():
    tokens = {"a" * 20: {"quota": {"calls_minute": 2}}, "b" * 20: {}}
    with Service({}, tokens=tokens) as service:
        session = service.session("b" * 20)
        assert service.bash("echo >/tmp/mark", session=session, token="b" * 20).status == 200
        with open(service.tokens_file, encoding="ascii") as file:
            text = file.read()
        for part in ("", text[:text.index("\n", text.index("a" * 20)) + 1]):
            # In its place: it is empty first, and then has its first lines.
            with open(service.tokens_file, "w", encoding="ascii") as file:
                file.write(part)
                file.flush()
                # Nothing at all is a fault, however long it lasts.
                if not part:
                    assert service.bash("ls /tmp/mark", session=session, token="b" * 20).text.startswith("/tmp/mark")
                file.write(text[len(part):])
            assert service.bash("ls /tmp/mark", session=session, token="b" * 20).text.startswith("/tmp/mark")
        os.truncate(service.tokens_file, 0)
        service.wait_said("no token any more.*stay as they were|stay as they were.*no token any more")
        assert service.bash("ls /tmp/mark", session=session, token="b" * 20).status == 200
        # What was used is not forgotten with the line.
        while service.bash("true", token="a" * 20).status == 200:
            pass
        service.change_tokens({"b" * 20: {}}, unknown=["a" * 20])
        service.change_tokens(tokens, known=["a" * 20])
        assert service.bash("true", token="a" * 20).status == 429


@tap.case
def a_token_narrows_and_never_widens():
    rights = {"agents": {"default": {"write": ["."], "network": ["a.example"]},
                         "reader": {"write": [], "network": ["b.example"]}}}
    tokens = {"whole-000000000000000": {}, "agent-000000000000000": {"agent": "reader"},
              "wants-000000000000000": {"policy": {"write": [".", "/"], "read": ["/"], "network": ["b.example"],
                                                   "tools": ["bash", "read_file"]}},
              "wrong-000000000000000": {"agent": "nobody"}}
    with Service({"workspace": "{token}"}, tokens=tokens, config=rights) as service:
        def tools(token):
            return {tool["name"] for tool in service.post("tools/list", token=token).last["result"]["tools"]}
        assert "write_file" in tools("whole-000000000000000")
        assert tools("wants-000000000000000") == {"bash", "read_file"}
        write = "echo x >made && echo written; ls -A"
        assert "written" in service.bash(write, token="whole-000000000000000").text
        assert "written" not in service.bash(write, token="agent-000000000000000").text
        assert "written" in service.bash(write, token="wants-000000000000000").text
        # Nothing of what only the token wants.
        service.bash(f"echo x >{service.folder}/out", token="wants-000000000000000")
        assert not os.path.exists(os.path.join(service.folder, "out"))
        for token in ("agent-000000000000000", "wants-000000000000000"):
            listed = service.post("server/discover", token=token).last["result"]["instructions"]
            assert "no network" in listed, listed
        answer = service.bash("true", token="wrong-000000000000000")
        assert answer.status == 503 and answer.busy["kind"] == "set_up", answer
        service.wait_said("nobody")


@tap.case
def a_token_has_the_base_of_the_service():
    tokens = {"a" * 20: {}, "b" * 20: {"policy": {"write": ["."]}}, "c" * 20: {"agent": "reader"}}
    with tempfile.TemporaryDirectory() as folder:
        base = Rootfs(folder)
        base.add_paths([which(name) for name in ("bash", "cat", "sh")])
        base.write("etc/base", "ours\n")
        with Service({"cell_base": "rootfs:" + folder}, tokens=tokens) as service:
            for token in tokens:
                answer = service.bash("cat /etc/base", token=token)
                assert answer.status == 200 and answer.text.startswith("ours"), (token, answer, service.said)


@tap.case
def a_new_token_is_printed_once():
    with Service({}, tokens={"a" * 20: {}}) as service:
        words = [PROGRAM, "mcp", "--config", service.config, "--new-token"]
        done = tap.run([*words, "ann"], env=service.environment)
        token = done.stdout.strip()
        assert done.returncode == 0 and re.fullmatch(r"gb_[0-9a-f]{48}", token), done
        service.wait_tokens(known=[token])
        assert service.bash("true", token=token).status == 200
        with open(service.tokens_file, encoding="ascii") as file:
            text = file.read()
        assert token not in text and hashlib.sha256(token.encode()).hexdigest() in text
        assert "a token of this name" in tap.run([*words, "ann"], env=service.environment).stderr
        assert "letters" in tap.run([*words, "a/b"], env=service.environment).stderr
        nowhere = os.path.join(service.folder, "nowhere.json")
        with open(nowhere, "w", encoding="utf-8") as file:
            json.dump({"service": {"tokens": service.folder + "/none/tokens"}}, file)
        done = tap.run([PROGRAM, "mcp", "--config", nowhere, "--new-token", "ann"], env=service.environment)
        assert done.returncode == 1 and done.stderr.endswith("make the folder first\n"), done
        os.remove(service.tokens_file)
        assert tap.run([*words, "new"], env=service.environment).returncode == 0
        assert stat.S_IMODE(os.stat(service.tokens_file).st_mode) == 0o600


@tap.case
def a_root_that_is_not_there_is_named():
    said = refused({"root": "/nowhere/work"}, code=1)
    assert "service.root: /nowhere/work does not exist; make this folder" in said, said


@tap.case
def lines_that_are_no_tokens_are_refused():
    for members, words in (({"sha256": "x"}, "SHA-256"), ({"name": "a b"}, "letters"), ({"expires": "2021-02-29"}, "UTC"),
                           ({"quota": {"cpus": 1}}, "there is no key"), ({"policy": {"writes": ["."]}}, "writes"),
                           ({"quota": {"net_day": "much"}}, "size"), ({"policy": {"cell_base": "host"}}, "service.cell_base")):
        said = refused({}, tokens={"a" * 20: members})
        assert words in said and "line 2" in said, (members, said)
    assert "--token-file" in refused({}, tokens={"a" * 20: {}}, environment={"GLOVEBOX_MCP_TOKEN": "b" * 20})
    assert "shared" in refused({"cell": "shared"}, tokens={"a" * 20: {"quota": {"net_day": "1G"}}})


@tap.case
def calls_of_a_minute_are_counted():
    with Service({}, tokens={"a" * 20: {"quota": {"calls_minute": 3, "cells": 1}}}) as service:
        for _ in range(3):
            assert service.bash("true", token="a" * 20).status == 200
        answer = service.bash("true", token="a" * 20)
        assert answer.status == 429 and 0 < int(answer.headers["Retry-After"]) <= 61, answer
        assert answer.busy == {"kind": "busy", "limit": "calls_minute", "value": 3}, answer
        answer = service.post("tools/list", token="a" * 20, cell="more")
        assert answer.busy == {"kind": "busy", "limit": "cells", "value": 1}, answer


@tap.case
def a_new_cell_counts_as_a_call_of_its_minute():
    with Service({}, tokens={"a" * 20: {"quota": {"calls_minute": 2}}, "b" * 20: {"quota": {"calls_minute": 2}}}) as service:
        for cell in ("one", "two"):
            assert service.post("tools/list", token="a" * 20, cell=cell).status == 200
        # What needs no new cell is free; a call with its cell counts once.
        assert service.post("tools/list", token="a" * 20, cell="one").status == 200
        for answer in (service.post("tools/list", token="a" * 20, cell="three"), service.hello("a" * 20)[0],
                       service.bash("true", token="a" * 20, cell="one")):
            assert answer.status == 429 and answer.busy["limit"] == "calls_minute", answer
        for _ in range(2):
            assert service.bash("true", token="b" * 20).status == 200


@tap.case
def a_token_takes_no_more_than_its_share_of_the_places():
    tokens = {"a" * 20: {}, "b" * 20: {}}
    head = ("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\nAuthorization: Bearer %s\r\n\r\n")
    with Service({"cell": "shared", "max_calls_per_token": 2}, tokens=tokens) as service, contextlib.ExitStack() as stack:
        streams = []
        for _ in range(35):
            session = service.session("a" * 20)
            streams.append(Stream(service, {**bearer("a" * 20), "Mcp-Session-Id": session}))
            stack.callback(streams[-1].close)
        assert [stream.status for stream in streams] == [200] * 34 + [429], [stream.status for stream in streams]
        answer = service.bash("true", token="a" * 20)
        assert answer.status == 429 and answer.headers["Retry-After"] == "1", answer
        assert answer.busy == {"kind": "busy", "limit": "requests", "value": 34}, answer
        # What is answered at once still is, and another token has all that is its own.
        assert service.post("tools/list", token="a" * 20).status == 200
        assert service.bash("echo mine", token="b" * 20).text.startswith("mine")
        # Requests that do not come whole are counted as well.
        host, _, port = service.address.rpartition(":")
        slow = [stack.enter_context(socket.create_connection((host, int(port)), WAIT_SECONDS)) for _ in range(40)]
        for client in slow:
            client.sendall((head % ("a" * 20)).encode())
        wait_for(lambda: service.post("tools/list", token="a" * 20).status == 503, "it takes them all")
        answer = service.post("tools/list", token="a" * 20)
        assert answer.headers["Retry-After"] == "1" and answer.busy["limit"] == "requests", answer
        assert answer.busy["value"] == 66 and answer.headers["Connection"] == "close", answer
        assert service.bash("echo mine", token="b" * 20).text.startswith("mine")
        for client in slow:
            client.close()
        wait_for(lambda: service.post("tools/list", token="a" * 20).status == 200, "their places are not free")


def in_seconds(seconds):
    """A moment for `expires`, SECONDS from now or a little later."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds + 1))


@tap.case
def streams_of_a_token_that_expires_end_with_a_sentence():
    for cells in ("session", "shared"):
        # A busy machine gets some time to open them.
        tokens = {"a" * 20: {"expires": in_seconds(15)}, "b" * 20: {}}
        with Service({"cell": cells}, tokens=tokens) as service:
            notices = Stream(service, {**bearer("a" * 20), "Mcp-Session-Id": service.session("a" * 20)})
            listening = Stream(service, {**bearer("a" * 20), **LISTEN_HEADERS}, listen_body("l"))
            other = Stream(service, {**bearer("b" * 20), "Mcp-Session-Id": service.session("b" * 20)})
            assert [stream.status for stream in (notices, listening, other)] == [200] * 3, cells
            said = notices.rest()[-1]
            assert said["method"] == "notifications/message", said
            assert said["params"]["data"] == f"The token {'a' * 20} has expired.", said
            said = listening.rest()[-1]
            assert said["id"] == "l" and "has expired" in said["error"]["message"], said
            assert service.bash("true", token="a" * 20).status == 401
            # Another token hears nothing of it.
            assert service.bash("echo on", token="b" * 20).text.startswith("on")
            service.end()
            assert not [message for message in other.rest() if "expired" in str(message)]
            for stream in (notices, listening, other):
                stream.close()


@tap.case
def sessions_of_a_token_that_goes_end_in_a_shared_cell():
    tokens = {"a" * 20: {}, "b" * 20: {}}
    with Service({"cell": "shared"}, tokens=tokens) as service, concurrent.futures.ThreadPoolExecutor() as pool:
        session = service.session("a" * 20)
        stream = Stream(service, {**bearer("a" * 20), "Mcp-Session-Id": session})
        call = pool.submit(service.bash, "echo >begun; sleep 1000", token="a" * 20, session=session)
        wait_for(lambda: os.path.exists(os.path.join(service.workspace, "begun")), "no call")
        service.change_tokens({"b" * 20: {}}, unknown=["a" * 20])
        # Its call is answered, its stream says why, and what others do goes on.
        assert call.result().last["result"]["isError"], call.result()
        assert stream.rest()[-1]["params"]["data"] == f"The token {'a' * 20} was removed.", stream
        stream.close()
        assert service.bash("echo on", token="b" * 20).text.startswith("on")
        service.change_tokens(tokens, known=["a" * 20])
        assert service.bash("true", session=session, token="a" * 20).status == 404
        assert service.bash("echo again", session=service.session("a" * 20), token="a" * 20).text.startswith("again")


def counted_tokens():
    return {"a" * 20: {"quota": {"cpu_s_day": 0.5}}, "b" * 20: {}}


@tap.case
def what_a_token_uses_of_a_day_is_counted_and_kept_over_a_restart():
    with Service({}, "--allow-estimates", tokens=counted_tokens()) as service:
        burn = "end=$((SECONDS+60)); while [ $SECONDS -lt $end ]; do :; done"
        for _ in range(40):
            answer = service.bash("timeout 0.2 bash -c '" + burn + "'", token="a" * 20)
            if answer.status == 429:
                break
            service.bash("true", token="b" * 20)
        assert answer.status == 429 and answer.busy["limit"] == "cpu_s_day", answer
        assert answer.busy["value"] == 0.5 and int(answer.headers["Retry-After"]) <= 86401, answer
        assert service.bash("true", token="b" * 20).status == 200
        service.end()
        service.start()
        assert service.bash("true", token="a" * 20).status == 429
        assert service.bash("true", token="b" * 20).status == 200


@tap.case
def a_cell_over_its_quota_ends_with_what_runs():
    # Without a control group nothing is known before the end of a call.
    try:
        service = Service({}, tokens=counted_tokens())
    except AssertionError as error:
        raise tap.Skip("no control groups here") from error
    with service:
        answer = service.bash("while :; do :; done", token="a" * 20)
        assert answer.status == 200 and answer.last["result"]["isError"], answer
        assert "[glovebox: The cell ends, because " in answer.text, answer
        assert service.bash("true", token="a" * 20).busy["limit"] == "cpu_s_day"


@tap.case
def quotas_need_a_control_group_or_a_word():
    tokens = {"a" * 20: {"quota": {"written_day": "1G"}}}
    try:
        said = refused({}, tokens=tokens)
    except AssertionError as error:
        raise tap.Skip("control groups of version 2 are here") from error
    assert "control group" in said and "--allow-estimates" in said, said
    with Service({}, "--allow-estimates", tokens=tokens) as service:
        assert service.bash("true", token="a" * 20).status == 200


# Those who watch it.

@tap.case
def the_service_tells_how_it_is():
    with Service({"metrics": f"127.0.0.1:{unused_port()}"}, tokens={"ann-" + "0" * 16: {}}) as service:
        token = "ann-" + "0" * 16
        service.bash("exit 3", token=token)
        service.call("write_file", {"path": "/usr/made", "content": "x"}, token=token)
        service.post("tools/call", {"name": "no_such_tool", "arguments": {}}, token=token)
        rows = service.metrics()
        assert rows['glovebox_cells{state="idle"}'] == 1 and rows['glovebox_cells{state="busy"}'] == 0
        assert rows['glovebox_calls_total{tool="bash",status="done"}'] == 1, rows
        assert rows['glovebox_calls_total{tool="other",status="failed"}'] == 1, rows
        assert rows["glovebox_call_seconds_count"] == rows['glovebox_call_seconds_bucket{le="+Inf"}'] == 3
        assert sum(value for name, value in rows.items()
                   if name.startswith("glovebox_denials_total")) >= 1, rows
        assert f'glovebox_cpu_seconds_total{{token="{token}"}}' in rows
        assert rows["glovebox_queue_dropped_total"] == 0
        assert any(name.startswith("glovebox_build_info{version=") for name in rows)
        # They are at their own address only, and for no page of a browser.
        assert service.get("/metrics").status in (401, 404)
        with open(service.config, encoding="utf-8") as file:
            address = json.load(file)["service"]["metrics"]
        assert service.get("/metrics", address=address, Host="evil.example").status == 403
        assert service.get("/other", address=address).status == 404


@tap.case
def records_that_are_lost_are_counted():
    with socket.socket() as silent:
        # Nothing is taken here.
        silent.bind(("127.0.0.1", 0))
        settings = {"metrics": f"127.0.0.1:{unused_port()}", "otlp": {"endpoint": "http://127.0.0.1:%d" % silent.getsockname()[1]}}
        with Service(settings) as service:
            assert service.bash("true").status == 200
            assert service.metrics()["glovebox_queue_dropped_total"] == 0
            pid, = [pid for pid in descendants(service.process.pid) if name_of(pid) == "glovebox-otlp"]
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: state_of(pid) == "Z", "it lives")
            # Two spans were lost with it; the next ones begin another one.
            assert service.bash("true").status == 200
            service.wait_said(r"the process that sends spans had ended; it was started again \(1 ")
            assert service.metrics()["glovebox_queue_dropped_total"] == 2, service.metrics()
            wait_for(lambda: "glovebox-otlp" in [name_of(pid) for pid in descendants(service.process.pid)], "no other process")


def descendants(pid):
    found, todo = [], [pid]
    while todo:
        with contextlib.suppress(OSError), open(f"/proc/{todo[0]}/task/{todo[0]}/children", encoding="ascii") as file:
            todo += [int(child) for child in file.read().split()]
        found.append(todo.pop(0))
    return found


def name_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii") as file:
        return file.read().strip()
    return None


def state_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0]
    return "Z"


@tap.case
def a_collector_that_hangs_holds_nothing_up_and_what_it_costs_is_counted():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = {"metrics": f"127.0.0.1:{unused_port()}", "cell": "shared", "max_calls_per_token": 1024,
                    "otlp": {"endpoint": "http://127.0.0.1:%d" % silent.getsockname()[1]}}
        with Service(settings) as service, concurrent.futures.ThreadPoolExecutor(16) as pool:
            # A batch is on its way for good, and 2,048 spans wait: each call makes two.
            calls = list(pool.map(lambda _: service.call("read_file", {"path": "none"}).status, range(1400)))
            assert set(calls) == {200}, set(calls)
            # The process that drops them tells so a moment later.
            wait_for(lambda: service.metrics()["glovebox_queue_dropped_total"] >= 2 * 1400 - 2048 - 512, "too few are counted")
            service.end()


@tap.case
def tokens_beyond_two_hundred_share_a_row():
    tokens = {f"t{number:019}": {} for number in range(230)}
    with Service({"metrics": f"127.0.0.1:{unused_port()}"}, tokens=tokens) as service:
        rows = [name for name in service.metrics() if name.startswith("glovebox_cpu_seconds_total")]
        assert len(rows) == 201 and 'glovebox_cpu_seconds_total{token="other"}' in rows, len(rows)


@tap.case
def an_audit_names_tokens_and_cells():
    with tempfile.TemporaryDirectory() as folder:
        with Service({"audit": {"folder": os.path.join(folder, "audit")}, "cell": "token"},
                     tokens={"a" * 20: {}}) as service:
            service.bash("true", token="a" * 20)
            service.change_tokens({"a" * 20: {}, "b" * 20: {}}, known=["b" * 20])
            service.bash("true", token="b" * 20)
            service.change_tokens({"b" * 20: {}}, unknown=["a" * 20])
            assert service.bash("true", token="a" * 20).status == 401
            service.end()
            names = [os.path.join(folder, "audit", name) for name in os.listdir(os.path.join(folder, "audit"))]
            files = [name for name in names if name.endswith(".jsonl")] or names
            lines = [json.loads(line) for name in sorted(files) for line in open(name, encoding="utf-8")
                     if line.startswith("{")]
            assert {(line["token"], line["cell"]) for line in lines if line["event"] == "begin"} == {
                ("a" * 20, "main"), ("b" * 20, "main")}, lines
            told = [(line["token"][0], line["what"]) for line in lines if line["event"] == "token"]
            assert told == [("a", "added"), ("b", "added"), ("a", "removed")], told
            done = tap.run([PROGRAM, "audit", "verify", *sorted(files)], env=service.environment)
            assert done.returncode == 0, done


@tap.case
def an_audit_alone_makes_no_service():
    with tempfile.TemporaryDirectory() as folder:
        with Service({"audit": {"folder": os.path.join(folder, "audit")}}, bare=True) as service:
            service.bash("echo x >/tmp/mark", session=service.session())
            assert "x" in service.bash("cat /tmp/mark", session=service.session()).text
            service.end(code=128 + signal.SIGTERM)


# The end.

def begin(service, pool, command="echo >begun; while [ ! -e go ]; do sleep 0.02; done; echo over"):
    call = pool.submit(service.bash, command)
    wait_for(lambda: os.path.exists(os.path.join(service.workspace, "begun")), "no call")
    return call


@tap.case
def calls_under_way_may_end_when_the_service_does():
    with Service({}) as service, concurrent.futures.ThreadPoolExecutor() as pool:
        call = begin(service, pool)
        service.process.send_signal(signal.SIGTERM)
        wait_for(lambda: service.ready()[0] == 503, "it stays ready")
        assert service.ready()[1]["reason"] == "draining"
        assert service.get("/healthz").status == 200
        answer = service.bash("true")
        assert answer.status == 503 and answer.busy["limit"] == "drain_s", answer
        assert service.hello()[0].status == 503
        with open(os.path.join(service.workspace, "go"), "w", encoding="ascii"):
            pass
        assert "over" in call.result().text
        service.ended(0)


@tap.case
def calls_that_take_longer_are_cancelled_and_answered():
    with Service({"drain_s": 0.5}) as service, concurrent.futures.ThreadPoolExecutor() as pool:
        call = begin(service, pool)
        service.process.send_signal(signal.SIGTERM)
        assert call.result().last["result"]["isError"], call.result()
        assert "[glovebox: The cell ends, because " in call.result().text, call.result()
        service.ended(0)


@tap.case
def a_second_signal_ends_it_at_once():
    with Service({"drain_s": 1000}) as service, concurrent.futures.ThreadPoolExecutor() as pool:
        call = begin(service, pool)
        service.process.send_signal(signal.SIGTERM)
        wait_for(lambda: service.ready()[0] == 503, "it stays ready")
        time.sleep(0.2)  # signals so close to each other are one
        service.process.send_signal(signal.SIGTERM)
        service.ended(128 + signal.SIGTERM)
        assert isinstance(call.exception(), (OSError, http.client.HTTPException)), call


@tap.case
def a_manager_is_told_of_its_life():
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = os.path.join(folder, "notify")
        manager.bind(path)
        manager.settimeout(WAIT_SECONDS)
        told = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}
        with Service({}, environment=told) as service:
            said = manager.recv(4096).decode()
            assert said.startswith("READY=1\nSTATUS=serving MCP at http://127.0.0.1:"), said
            assert manager.recv(4096) == b"WATCHDOG=1" and manager.recv(4096) == b"WATCHDOG=1"
            assert "NOTIFY_SOCKET" not in service.bash("env").text
            service.end()
            said = b""
            while not said.startswith(b"STOPPING=1"):
                said = manager.recv(4096)


@tap.case
def a_manager_waits_as_long_as_the_calls_that_are_drained():
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = os.path.join(folder, "notify")
        manager.bind(path)
        manager.settimeout(WAIT_SECONDS)
        with Service({"drain_s": 1000}, environment={"NOTIFY_SOCKET": path}) as service, \
                concurrent.futures.ThreadPoolExecutor() as pool:
            call = begin(service, pool)
            service.process.send_signal(signal.SIGTERM)
            while not (said := manager.recv(4096)).startswith(b"STOPPING=1"):
                pass
            # More than once: each time it is some seconds more.
            for _ in range(2):
                said = manager.recv(4096)
                assert re.fullmatch(rb"EXTEND_TIMEOUT_USEC=[1-9]\d{7}", said), said
            with open(os.path.join(service.workspace, "go"), "w", encoding="ascii"):
                pass
            assert "over" in call.result().text
            service.ended(0)


@tap.case
def no_connection_is_lost_when_a_socket_outlives_the_server():
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    address = "127.0.0.1:%d" % listener.getsockname()[1]
    passed = listener.fileno()
    before = ["/bin/bash", "-c", f'exec 3<&{passed}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "bash"]
    with listener, Service({}, before=before, pass_fds=[passed]) as service:
        assert service.address == address, service.said
        assert service.bash("true").status == 200
        with concurrent.futures.ThreadPoolExecutor() as pool:
            call = begin(service, pool)
            service.process.send_signal(signal.SIGTERM)
            # From some moment on it takes no more connections, and refuses none.
            waiting = []
            while len(waiting) < 8:
                asked = pool.submit(service.bash, "echo served")
                concurrent.futures.wait([asked], timeout=0.5)
                if not asked.done():
                    waiting.append(asked)
            with open(os.path.join(service.workspace, "go"), "w", encoding="ascii"):
                pass
            assert "over" in call.result().text
            service.ended(0)
            service.start()
            assert all("served" in asked.result().text for asked in waiting)


@tap.case
def a_wrong_descriptor_is_refused():
    before = ["/bin/bash", "-c", 'exec 3</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "bash"]
    assert "LISTEN_FDS" in refused({}, before=before)
    before = ["/bin/bash", "-c", 'LISTEN_PID=$$ LISTEN_FDS=2 exec "$@"', "bash"]
    assert "one socket" in refused({}, before=before)


def without_namespaces():
    """As RestrictNamespaces= of systemd has it: system calls that make namespaces are refused."""
    arch, load, equal, any_bit, ret = 0xC000003E, 0x20, 0x15, 0x45, 0x06
    allow, refuse, missing = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
    unshare, clone, clone3, new = 272, 56, 435, 0x7E020080
    code = [(load, 0, 0, 4), (equal, 0, 8, arch), (load, 0, 0, 0), (equal, 5, 0, clone3), (equal, 1, 0, unshare),
            (equal, 0, 4, clone), (load, 0, 0, 16), (any_bit, 0, 2, new), (ret, 0, 0, refuse),
            (ret, 0, 0, missing), (ret, 0, 0, allow)]
    program = b"".join(struct.pack("<HBBI", *row) for row in code)
    held = ctypes.create_string_buffer(program)
    filter_of = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(held)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, filter_of, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter")


@tap.case
def settings_of_systemd_that_forbid_namespaces_are_why_the_unit_has_none():
    if os.uname().machine != "x86_64":
        raise tap.Skip("the filter of this test is for x86-64")
    said = refused({}, code=5, preexec_fn=without_namespaces)
    assert "L2 only" in said and "namespaces: refused" in said, said


# What stands before it.

@tap.case
def only_a_proxy_that_is_trusted_speaks_for_others():
    forwarded = {"X-Forwarded-Host": "box.example", "X-Forwarded-For": "192.0.2.7"}
    with Service({}) as service:
        assert service.bash("true", headers=forwarded).status == 200
    with Service({"trusted_proxies": ["127.0.0.0/8"]}) as service:
        assert service.bash("true", headers=forwarded).status == 403
        assert service.bash("true", headers={"X-Forwarded-Host": "localhost"}).status == 200
    with Service({"trusted_proxies": ["127.0.0.1"]}, "--host", "box.example") as service:
        assert service.bash("true", headers=forwarded).status == 200
        assert service.bash("true", headers={"X-Forwarded-Host": "box.example, evil.example"}).status == 403


@tap.case
def the_last_hop_that_a_trusted_proxy_added_is_the_client():
    with tempfile.TemporaryDirectory() as folder:
        settings = {"trusted_proxies": ["127.0.0.1", "10.0.0.0/8"], "audit": {"folder": os.path.join(folder, "audit")}}
        with Service(settings, "--host", "box.example") as service:
            host, _, port = service.address.rpartition(":")

            def ask(cell, *headers):
                """The status of a request with headers that http.client sends once only."""
                body = json.dumps(call_body(1, "true", **{"io.modelcontextprotocol/protocolVersion": MODERN,
                                                          "io.modelcontextprotocol/clientCapabilities": {}}))
                lines = ("POST /mcp HTTP/1.1", "Content-Type: application/json", "Connection: close", "Host: box.example",
                         "Accept: application/json, text/event-stream", f"MCP-Protocol-Version: {MODERN}",
                         "Mcp-Method: tools/call", "Mcp-Name: bash", f"Glovebox-Cell: {cell}",
                         f"Content-Length: {len(body)}", *headers, "", body)
                with socket.create_connection((host, int(port)), WAIT_SECONDS) as client:
                    client.settimeout(WAIT_SECONDS)
                    client.sendall("\r\n".join(lines).encode())
                    answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
                return int(answer.split()[1])
            clients = {
                "one": ["X-Forwarded-For: 192.0.2.7"],
                # The first of these was written by the client.
                "two": ["X-Forwarded-For: 192.0.2.66", "X-Forwarded-For: 192.0.2.8"],
                "many": ["X-Forwarded-For: 192.0.2.66, 192.0.2.9", "x-forwarded-for: 10.1.2.3"],
                "none": [],
            }
            for cell, headers in clients.items():
                assert ask(cell, *headers) == 200, cell
            assert ask("x", "X-Forwarded-Host: box.example", "X-Forwarded-Host: evil.example") == 403
            assert ask("x", "X-Forwarded-Host: evil.example", "X-Forwarded-Host: box.example") == 200
            service.end()
        lines = []
        for name in os.listdir(os.path.join(folder, "audit")):
            if name.endswith(".jsonl"):
                with open(os.path.join(folder, "audit", name), encoding="utf-8") as file:
                    lines += [json.loads(line) for line in file]
        told = {line["cell"]: line.get("client") for line in lines if line["event"] == "open"}
        assert (told["one"], told["two"], told["many"]) == ("192.0.2.7", "192.0.2.8", "192.0.2.9"), told
        assert told["none"].startswith("127.0.0.1:"), told


# Load.

@tap.case
def two_hundred_sessions_work_at_the_same_time():
    begun = time.monotonic()
    with open(PROGRAM, "rb") as file:
        most = FEW_SESSIONS if b"__asan_init" in file.read() else SESSIONS
    settings = {"max_cells": most, "max_cells_per_token": most, "max_calls_per_token": 1024,
                "workspace": "{id}", "on_close": "delete"}
    with Service(settings) as service, concurrent.futures.ThreadPoolExecutor(most) as pool, \
            concurrent.futures.ThreadPoolExecutor(BUILT_AT_ONCE) as builders:
        sessions = list(pool.map(lambda _: service.session(), range(most)))
        assert len(set(sessions)) == most
        built = list(builders.map(lambda session: service.bash("true", session=session), sessions))
        answers = list(pool.map(lambda session: service.bash("echo $$ >a; cat a", session=session), sessions))
        answers += built
        wrong = [answer for answer in answers if answer.status != 200 or answer.last["result"]["isError"]]
        assert not wrong, wrong[:3]
        assert service.hello()[0].status in (429, 503)
        status, told = service.ready()
        assert status == 503 and told["cells"] == most, told
        service.end()
        assert [name for name in os.listdir(service.workspace) if not name.startswith(".")] == []
    assert not tap.is_late(time.monotonic() - begun, LOAD_SECONDS), time.monotonic() - begun


@tap.case
def all_that_runs_is_answered_when_a_loaded_service_ends():
    """In both eras, from many cells, while others still ask for more."""
    settings = {"workspace": "{cell}", "on_close": "delete", "max_cells_per_token": 16, "max_calls_per_token": 64}
    wait = "echo >begun; while [ ! -e go ]; do sleep 0.05; done; echo over"
    with Service(settings) as service, concurrent.futures.ThreadPoolExecutor(32) as pool:
        sessions = [service.session() for _ in range(6)]
        folders = set(os.listdir(service.workspace)) - {".glovebox"}
        ways = [{"session": session} for session in sessions] + [{"cell": f"c{number}"} for number in range(6)]
        running_calls = [pool.submit(service.bash, wait, **way) for way in ways]
        folders |= {f"c{number}" for number in range(6)}
        places = [os.path.join(service.workspace, folder) for folder in folders]
        wait_for(lambda: all(os.path.exists(os.path.join(place, "begun")) for place in places), "no calls")
        service.process.send_signal(signal.SIGTERM)
        wait_for(lambda: service.ready()[0] == 503, "it stays ready")
        more = [pool.submit(service.bash, "true", **way) for way in ways]
        more += [pool.submit(lambda: service.hello()[0]) for _ in range(6)]
        for answer in [asked.result() for asked in more]:
            assert answer.status == 503 and answer.busy["limit"] == "drain_s", answer
            assert answer.headers["Connection"] == "close", answer
        for place in places:
            with open(os.path.join(place, "go"), "w", encoding="ascii"):
                pass
        for call in running_calls:
            assert call.result().status == 200 and call.result().text.startswith("over"), call.result()
        service.ended(0)
        assert [name for name in os.listdir(service.workspace) if not name.startswith(".")] == []


@tap.case
def clients_that_ask_all_the_time_lose_nothing_over_restarts():
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    passed = listener.fileno()
    before = ["/bin/bash", "-c", f'exec 3<&{passed}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "bash"]
    with listener, Service({"cell": "token", "max_calls_per_token": 64}, before=before, pass_fds=[passed]) as service:
        stop, told, lock = threading.Event(), {}, threading.Lock()

        def ask(number):
            while not stop.is_set():
                # Each on a connection of its own: none is refused, or ends without an answer.
                answer = service.bash("echo served") if number % 2 else service.post("tools/list")
                with lock:
                    told[answer.status] = told.get(answer.status, 0) + 1
                if answer.status == 503:
                    assert answer.busy.get("limit") == "drain_s" or answer.busy["kind"] == "ending", answer

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            asking = [pool.submit(ask, number) for number in range(6)]
            try:
                for _ in range(4):
                    with lock:
                        served = told.get(200, 0)
                    wait_for(lambda: told.get(200, 0) >= served + 12 or any(task.done() for task in asking),  # pylint: disable=cell-var-from-loop
                             "nothing is served")
                    service.process.send_signal(signal.SIGTERM)
                    assert service.process.wait(END_SECONDS) == 0, service.said
                    service.reader.join(END_SECONDS)
                    service.start()
            finally:
                stop.set()
            for task in asking:
                task.result()
        assert set(told) <= {200, 503} and told[200] >= 48, told


@tap.case
def a_killed_server_leaves_nothing_and_begins_again():
    settings = {"workspace": "{token}/{cell}", "on_close": "delete", "max_calls_per_token": 64}
    folder = tempfile.mkdtemp(prefix="mcp-service-")
    try:
        with Service(settings, folder=folder) as service:
            for number in range(KILLS):
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    asked = [pool.submit(service.bash, "mkdir -p d; echo x >d/f; sleep 0.05", cell=f"c{i}")
                             for i in range(8)]
                    # At another moment each time: while cells are made, work, end.
                    concurrent.futures.wait(asked, timeout=0.02 * number)
                    service.process.kill()
                    service.process.wait()
                left = left_behind()
                assert not left, f"left behind: {left}"
                service.process.stderr.close()
                service.start()
                assert service.bash("echo served", cell=f"n{number}").text.startswith("served")
            service.end()
            own = os.path.join(service.workspace, ".glovebox")
            assert not [name for name in os.listdir(own) if name.startswith(".gone-")], os.listdir(own)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@tap.case
def a_server_whose_descriptors_ran_out_takes_connections_again():
    with Service({}) as service:
        host, _, port = service.address.rpartition(":")
        opened = max(map(int, os.listdir(f"/proc/{service.process.pid}/fd")))
        hard = resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (opened + DESCRIPTORS_LEFT, hard))
        with contextlib.ExitStack() as stack:
            # More than fit, and fewer than wait in the kernel.
            for _ in range(3 * DESCRIPTORS_LEFT):
                stack.enter_context(socket.create_connection((host, int(port)), WAIT_SECONDS))
            wait_for(lambda: len(os.listdir(f"/proc/{service.process.pid}/fd")) > opened + DESCRIPTORS_LEFT - 2,
                     "descriptors are left")
            # All of them end in one turn of the server.
            service.process.send_signal(signal.SIGSTOP)
        service.process.send_signal(signal.SIGCONT)
        assert service.get("/healthz").status == 200


@tap.case
def a_full_disk_refuses_new_cells_and_ends_no_other():
    if os.geteuid() != 0:
        raise tap.Skip("only root mounts a small disk")
    mount = ["unshare", "-m", "--propagation", "private", "sh", "-c",
             'mount -t tmpfs -o size=256k,nr_inodes=400 small "$PWD" && cd "$PWD" && exec "$@"', "sh"]
    if subprocess.run([*mount[:4], "true"], check=False).returncode != 0:
        raise tap.Skip("no mounts can be made here")
    with Service({"workspace": "{cell}"}, before=mount) as service:
        assert service.bash("echo x >a && echo written", cell="early").text.startswith("written")
        # The disk of the server is not ours.
        small = f"/proc/{service.process.pid}/root{service.workspace}"
        made = []
        with contextlib.suppress(OSError):
            while True:
                made.append(os.path.join(small, "early", f"d{len(made)}"))
                os.mkdir(made[-1])
        answer = service.bash("true", cell="late")
        assert answer.status == 503 and answer.busy["kind"] == "set_up", answer
        assert os.strerror(errno.ENOSPC) in answer.last["error"]["message"], answer
        assert "still" in service.bash("echo still", cell="early").text
        for path in made[:-1]:
            os.rmdir(path)
        assert service.bash("echo again", cell="late").text.startswith("again")


@tap.case
def a_full_disk_of_the_audit_refuses_calls_and_says_not_ready():
    if os.geteuid() != 0:
        raise tap.Skip("only root mounts a small disk")
    mount = ["unshare", "-m", "--propagation", "private", "sh", "-c",
             'mount -t tmpfs -o size=64k,mode=700 small ../audit && exec "$@"', "sh"]
    if subprocess.run([*mount[:4], "true"], check=False).returncode != 0:
        raise tap.Skip("no mounts can be made here")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "audit"))
        settings = {"cell": "token", "audit": {"folder": os.path.join(folder, "audit")}}
        with Service(settings, before=mount, folder=folder) as service:
            assert service.bash("echo one").text.startswith("one") and service.ready()[0] == 200
            # The disk of the server is not ours.
            small = f"/proc/{service.process.pid}/root{folder}/audit"
            with contextlib.suppress(OSError), open(os.path.join(small, "rest"), "wb", buffering=0) as rest:
                while True:
                    rest.write(b"x")
            refused_calls = []

            def is_refused():
                refused_calls.append(service.bash("echo ran >>ran"))
                return refused_calls[-1].last["result"]["isError"]
            # The last page of the file may have room for some lines.
            wait_for(is_refused, "the disk is not full")
            assert "audit: cannot write (No space left on device); calls are refused until it can" in \
                refused_calls[-1].text, refused_calls[-1]
            status, told = service.ready()
            assert status == 503 and told["reason"] == "no_audit", told
            os.unlink(os.path.join(small, "rest"))
            assert service.bash("echo two").text.startswith("two") and service.ready()[0] == 200, service.ready()
            with open(os.path.join(service.workspace, "ran"), encoding="utf-8") as file:
                assert len(file.readlines()) == len(refused_calls) - 1
            lines = os.path.join(small, "audit-000001.jsonl")
            done = tap.run([PROGRAM, "audit", "verify", lines], env=service.environment)
            assert done.returncode == 0, done


# A clock that is wrong by as many seconds as a file says, for the processes of the service that are in no cell.
CLOCK = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	const char *path = getenv("WRONG_CLOCK");
	char text[32] = "";
	int code, fd;

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	code = real(id, now);
	fd = path != NULL && id == CLOCK_REALTIME ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		now->tv_sec += atol(text);
	if (fd >= 0)
		close(fd);
	return code;
}
"""


@contextlib.contextmanager
def wrong_clock():
    """The environment of a program whose clock can be set, and the function that sets it."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise tap.Skip("no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        offset, library = os.path.join(folder, "offset"), os.path.join(folder, "clock.so")

        def set_clock(seconds):
            with open(offset + ".new", "w", encoding="ascii") as file:
                file.write(str(seconds))
            os.rename(offset + ".new", offset)
        set_clock(0)
        done = subprocess.run([compiler, "-shared", "-fPIC", "-o", library, "-xc", "-"], input=CLOCK.encode(), check=False,
                              capture_output=True)
        assert done.returncode == 0, done
        yield {"LD_PRELOAD": library, "WRONG_CLOCK": offset,
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}, set_clock


class Spans(http.server.ThreadingHTTPServer):
    """A collector, with the spans that it has got."""
    daemon_threads = True

    def __init__(self):
        outer, self.spans = self, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.spans += [span for resource in body["resourceSpans"] for scope in resource["scopeSpans"]
                                for span in scope["spans"]]
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@tap.case
def the_span_of_a_request_names_it_and_not_its_session():
    """Its session is named by a hash: with the id itself a reader of spans could take part in the session."""
    with Spans() as collector:
        with Service({"otlp": {"endpoint": f"http://127.0.0.1:{collector.server_address[1]}"}}) as service:
            session = service.session()
            assert service.bash("true", session=session).status == 200
            assert service.bash("true").status == 200
            service.end()
        wait_for(lambda: len(collector.spans) >= 4, "no spans")
        served = [{pair["key"]: pair["value"].get("stringValue") for pair in span["attributes"]}
                  for span in collector.spans if span["name"] == "tools/call bash"]
        assert all(attributes["jsonrpc.request.id"] for attributes in served), served
        assert [attributes.get("mcp.session.id") for attributes in served] == \
            [hashlib.sha256(session.encode()).hexdigest()[:16], None], (session, served)
        assert session not in json.dumps(collector.spans), collector.spans
        collector.shutdown()


@tap.case
def a_clock_that_is_wrong_by_an_hour_loses_nothing():
    hour, token = 3600, "ann-" + "0" * 16
    with tempfile.TemporaryDirectory() as folder, wrong_clock() as (environment, set_clock), Spans() as collector:
        settings = {"cell": "token", "audit": {"folder": os.path.join(folder, "audit")},
                    "otlp": {"endpoint": f"http://127.0.0.1:{collector.server_address[1]}"}}
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + hour / 2))
        with Service(settings, tokens={token: {"expires": expires}}, environment=environment) as service, \
                concurrent.futures.ThreadPoolExecutor(1) as pool:
            def closes():
                return len([line for line in records(folder) if line["event"] == "close"])
            for _ in range(2):
                # The clock is set forward: the token has expired, and its cell ends.
                assert service.bash("true", token=token).status == 200
                before = closes()
                set_clock(hour)
                assert service.bash("true", token=token).status == 401
                wait_for(lambda: closes() > before, "the cell of the token does not end")  # pylint: disable=cell-var-from-loop
                # And back: it is good again.
                set_clock(0)
                wait_for(lambda: service.bash("true", token=token).status == 200, "the token stays expired")
            # It is set back while a call runs.
            running_call = pool.submit(service.bash, "echo >begun; while [ ! -e go ]; do sleep 0.02; done", token=token)
            wait_for(lambda: os.path.exists(os.path.join(service.workspace, "begun")), "no call")
            set_clock(-hour)
            with open(os.path.join(service.workspace, "go"), "w", encoding="ascii"):
                pass
            assert running_call.result(WAIT_SECONDS).status == 200
            service.end()
        lines = records(folder)
        assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
        # The order of an audit is that of its numbers; its times are those of the clock.
        assert sorted(line["at"] for line in lines) != [line["at"] for line in lines]
        told = [line["what"] for line in lines if line["event"] == "token" and line["what"] != "added"]
        assert told == ["expired"] * 2, told
        assert all(0 <= line["seconds"] < hour / 2 for line in lines if "seconds" in line), lines
        done = tap.run([PROGRAM, "audit", "verify", os.path.join(folder, "audit", "audit-000001.jsonl")])
        assert done.returncode == 0, done
        wait_for(lambda: len(collector.spans) >= 2 * len([line for line in lines if line["event"] == "end"]), "no spans")
        for span in collector.spans:
            took = int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])
            assert 0 <= took < hour * 10 ** 9 / 2, span
        collector.shutdown()


@tap.case
def a_clock_that_goes_back_over_midnight_gives_no_day_twice():
    with wrong_clock() as (environment, set_clock), \
            Service({}, "--allow-estimates", tokens=counted_tokens(), environment=environment) as service:
        midnight, token = 86400 - int(time.time()) % 86400, "a" * 20

        def uses_up():
            burn = "timeout 0.3 bash -c 'while :; do :; done'"
            return service.bash(burn, token=token).status == 429
        set_clock(midnight + 600)
        wait_for(uses_up, "the quota is not used up")
        # An hour earlier it is the day before, in which this token has used nothing.
        set_clock(midnight - 3000)
        assert service.bash("true", token=token).busy["limit"] == "cpu_s_day"
        service.end()
        service.start()
        assert service.bash("true", token=token).busy["limit"] == "cpu_s_day"
        set_clock(midnight + 86400 + 600)
        assert service.bash("true", token=token).status == 200


def records(folder):
    with open(os.path.join(folder, "audit", "audit-000001.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file.read().splitlines()]


def example_of(language, before):
    """The first example of the manual in LANGUAGE behind the line BEFORE."""
    manual = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "service.md")
    with open(manual, encoding="utf-8") as file:
        text = file.read()
    return re.search(rf"```{language}\n(.*?)```", text[text.index(before):], re.DOTALL).group(1)


@contextlib.contextmanager
def running(words, port, **options):
    """The address of the proxy that WORDS start, at PORT."""
    process = subprocess.Popen(words, **options)
    try:
        def answers():
            assert process.poll() is None, f"{words[0]} does not start"
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                return True
            return False
        wait_for(answers, f"{words[0]} does not answer")
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(END_SECONDS)


def program_of(name, package):
    program = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
    assert program is not None, f"{name} is not installed: apt install {package}, or dev/bootstrap test"
    return program


def nginx(service):
    """An nginx in front of SERVICE, with the example of the manual."""
    port, folder = unused_port(), os.path.join(service.folder, "nginx")
    os.mkdir(folder)
    example = re.sub(r"listen [^;]*;", f"listen 127.0.0.1:{port};", example_of("nginx", "\nnginx:\n"))
    example = re.sub(r"\n\s*ssl_[^\n]*", "", example).replace("127.0.0.1:8080", service.address)
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open(os.path.join(folder, "nginx.conf"), "w", encoding="utf-8") as file:
        file.write(f"daemon off; pid {folder}/pid; error_log stderr;\n"
                   f"{'user root;' if os.geteuid() == 0 else ''}\n"
                   f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{example}\n}}\n")
    return running([program_of("nginx", "nginx-light"), "-p", folder, "-e", "stderr", "-c", f"{folder}/nginx.conf"], port)


def caddy(service):
    """The same with Caddy, which looks at the example as it stands there, too."""
    program, port, folder = program_of("caddy", "caddy"), unused_port(), os.path.join(service.folder, "caddy")
    os.mkdir(folder)
    environment = {"PATH": os.environ["PATH"], "HOME": folder}
    example, place = example_of("", "\nCaddy:\n"), os.path.join(folder, "Caddyfile")
    with open(place, "w", encoding="utf-8") as file:
        file.write(example)
    done = tap.run([program, "validate", "--config", place, "--adapter", "caddyfile"], env=environment)
    assert done.returncode == 0 and "Valid configuration" in done.stdout + done.stderr, done
    example = example.replace("box.example {", f"http://box.example:{port} {{\nbind 127.0.0.1")
    with open(place, "w", encoding="utf-8") as file:
        file.write("{\nadmin off\nauto_https off\n}\n" +
                   example.replace("127.0.0.1:8080", service.address))
    return running([program, "run", "--config", place, "--adapter", "caddyfile"], port, env=environment,
                   stderr=subprocess.DEVNULL)


def in_front(proxy):
    """PROXY passes calls and notices when they come, in both eras, and says for whom it asks."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"trusted_proxies": ["127.0.0.1"], "audit": {"folder": os.path.join(folder, "audit")}}
        with Service(settings, "--host", "box.example") as service, proxy(service) as address:
            named = {"Host": "box.example"}
            answer = service.bash("echo hello", address=address, headers={**named, "X-Forwarded-For": "192.0.2.66"})
            assert "hello" in answer.text, answer
            session = service.post("initialize", {"protocolVersion": LEGACY, "capabilities": {}}, legacy=True,
                                   address=address, headers=named).headers["Mcp-Session-Id"]
            assert "old" in service.bash("echo old", address=address, headers=named, session=session).text
            body = call_body(1, "for i in 1 2 3 4 5 6; do echo line$i; sleep 0.3; done; while [ ! -e go ]; do sleep 0.02; done",
                             **{"io.modelcontextprotocol/protocolVersion": MODERN, "progressToken": 1,
                                "io.modelcontextprotocol/clientCapabilities": {}})
            connection = http.client.HTTPConnection(address, timeout=WAIT_SECONDS)
            connection.request("POST", "/mcp", json.dumps(body), {
                "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Host": "box.example",
                "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "bash"})
            response = connection.getresponse()
            # The call still runs: a proxy that keeps what it gets would show nothing yet.
            while "notifications/progress" not in response.readline().decode():
                pass
            with open(os.path.join(service.workspace, "go"), "w", encoding="ascii"):
                pass
            assert "line6" in response.read().decode()
            connection.close()
            assert service.get("/readyz", address=address, Host="box.example").status == 200
            assert service.bash("true", address=address, headers={"Host": "evil.example"}).status in (200, 403, 404)
        lines = []
        for name in sorted(os.listdir(os.path.join(folder, "audit"))):
            if name.endswith(".jsonl"):
                with open(os.path.join(folder, "audit", name), encoding="utf-8") as file:
                    lines += [json.loads(line) for line in file]
        # The proxy has added the last address, which is its client's; we are on the same machine.
        clients = [line["client"] for line in lines if line["event"] == "open" and line["token"] != "nobody"]
        assert clients and all(client.startswith(("127.0.0.1:", "192.0.2.66")) for client in clients), clients


@tap.case
def nginx_in_front_passes_notices_when_they_come():
    in_front(nginx)


@tap.case
def caddy_in_front_passes_notices_when_they_come():
    in_front(caddy)


adopt_orphans()
tap.play()
