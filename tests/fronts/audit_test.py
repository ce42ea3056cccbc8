#!/usr/bin/env python3
"""Every call of every front is in the audit before it runs, and in a span when it has ended."""
import contextlib
import fcntl
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])  # it is started in another folder
WAIT_S = 120
LONG_CALLS = 280  # more than a batch of spans
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
KEY = "a key of more than sixteen bytes"
REPLAY = {"turns": [
    {"calls": [{"tool": "bash", "arguments": {"command": "echo hello"}}]},
    {"text": "Done."}]}


class Place:
    """A workspace, a home, a folder for the audit, and how glovebox is run there."""

    def __init__(self, root):
        self.root = root
        self.work, self.home, self.audit = (os.path.join(root, name) for name in ("work", "home", "audit"))
        os.mkdir(self.work)
        os.mkdir(self.home)
        self.config = os.path.join(root, "config.json")

    def put(self, name, text, mode=0o600):
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def configure(self, audit=None, otlp=None, **more):
        service = {}
        if audit is not None:
            service["audit"] = {"folder": self.audit, **audit}
        if otlp is not None:
            service["otlp"] = otlp
        self.put("config.json", json.dumps({"service": service, **more}))

    def environment(self, more=None):
        known = {name: os.environ[name] for name in ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}
        known.update(HOME=self.home, LANG="C.UTF-8", **(more or {}))
        return known

    def run(self, *words, environment=None):
        return subprocess.run([GLOVEBOX, *words], cwd=self.work, env=self.environment(environment),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=WAIT_S, check=False)

    def with_config(self, verb, *words, **options):
        return self.run(verb, "--config", self.config, *words, **options)

    def files(self):
        return sorted(os.path.join(self.audit, name) for name in os.listdir(self.audit) if name.endswith(".jsonl"))

    def lines(self):
        found = []
        for path in self.files():
            with open(path, encoding="utf-8") as file:
                found += [json.loads(line) for line in file]
        return found

    def verify(self, *words):
        return self.run("audit", "verify", *words, *self.files())


@contextlib.contextmanager
def place():
    root = tempfile.mkdtemp(prefix="glovebox-audit-", dir="/tmp")
    try:
        yield Place(root)
    finally:
        shutil.rmtree(root)


class Server:
    """A program that takes and gives lines of JSON-RPC: `mcp` or `serve`."""

    def __init__(self, here, *words, environment=None):
        self.process = subprocess.Popen([GLOVEBOX, *words, "--config", here.config], cwd=here.work,
                                        env=here.environment(environment), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.number = 0

    def ask(self, method, params):
        self.number += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.number and "method" not in message:
                return message
        raise AssertionError("the server has ended: " + self.process.stderr.read())

    def call(self, tool, arguments, **meta):
        params = {"name": tool, "arguments": arguments}
        if meta:
            params["_meta"] = meta
        return self.ask("tools/call", params)["result"]

    def shake_hands(self):
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": {"name": "test", "version": "1"}})
        self.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return self

    def end(self):
        """End the server; its standard error."""
        self.process.stdin.close()
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert self.process.wait(WAIT_S) == 0, said
        return said


class Collector(http.server.ThreadingHTTPServer):
    """Takes spans, as a collector does."""
    daemon_threads = True

    def __init__(self, status=200, answers=()):
        """ANSWERS: status, headers and body of the first answers."""
        outer = self
        self.requests, self.status, self.came = [], status, threading.Condition()
        self.answers, self.times = list(answers), []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.came:
                    status, headers, answer = outer.answers.pop(0) if outer.answers else (outer.status, {}, "{}")
                    outer.times.append(time.monotonic())
                    if status == 200:
                        outer.requests.append((self.path, dict(self.headers), body))
                    outer.came.notify_all()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": len(answer)}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def spans(self, count, names=True):
        """Wait for COUNT spans: {name: span with its attributes as a dict}; without NAMES nothing."""
        until = time.monotonic() + WAIT_S
        with self.came:
            while True:
                found = [span for _, _, body in self.requests for resource in body["resourceSpans"]
                         for scope in resource["scopeSpans"] for span in scope["spans"]]
                if len(found) >= count:
                    break
                assert self.came.wait(until - time.monotonic()), found
        assert len(found) == count, len(found)
        if not names:
            return {}
        for span in found:
            span["attributes"] = {pair["key"]: next(iter(pair["value"].values())) for pair in span["attributes"]}
        return {span["name"]: span for span in found}


@tap.case
def a_command_is_in_the_audit():
    with place() as here:
        here.put("key", KEY + "\n")
        here.configure(audit={"key_file": os.path.join(here.root, "key")})
        assert here.with_config("exec", "--", "sh", "-c", "exit 3").returncode == 3
        lines = here.lines()
        assert [line["event"] for line in lines] == ["open", "begin", "end", "close"], lines
        opened, begun, ended, _ = lines
        assert opened["workspace"] == here.work and opened["front"] == "exec", opened
        assert begun["verdict"] == "allow" and len(begun["arguments_sha256"]) == 64 and "arguments" not in begun, begun
        assert ended["status"] == "done" and ended["exit"] == 3 and ended["seconds"] > 0, ended
        assert len({line["cell"] for line in lines}) == 1, lines
        done = here.verify("--key-file", os.path.join(here.root, "key"))
        assert done.returncode == 0 and "4 lines are sound, number 1 to 4, with the key" in done.stdout, done
        assert "not checked" in here.verify().stdout


@tap.case
def no_cell_shows_the_key_the_tokens_and_the_audit():
    with place() as here:
        kept = {name: here.put(name, KEY + "\n") for name in ("key", "tokens")}
        here.put("beside", "beside\n")
        here.put("config.json", json.dumps({"service": {"audit": {"folder": here.audit, "key_file": kept["key"]},
                                                        "root": here.root, "tokens": kept["tokens"]}}))
        for rights in (["--read", here.root], ["--read", here.root, "--write", here.work]):
            shown = here.with_config("exec", *rights, "--", "cat", os.path.join(here.root, "beside"))
            assert shown.stdout == "beside\n", shown
            for path in (*kept.values(), here.config, *here.files()):
                with open(path, encoding="utf-8") as file:
                    assert file.read() != ""
                hidden = here.with_config("exec", *rights, "--", "cat", path)
                assert hidden.stdout == "", (path, hidden)


@tap.case
def a_file_that_is_only_read_is_in_the_audit_too():
    with place() as here:
        here.configure(audit={"arguments": True}, agents={"default": {"tools": ["read_file", "write_file"], "write": []}})
        with open(os.path.join(here.work, "a.txt"), "w", encoding="utf-8") as file:
            file.write("hello\n")
        server = Server(here, "mcp").shake_hands()
        assert not server.call("read_file", {"path": "a.txt"}).get("isError")
        assert server.call("write_file", {"path": "b.txt", "content": "x"})["isError"]
        assert server.call("read_file", {"path": 7})["isError"]
        assert "error" in server.ask("tools/call", {"name": "no_such", "arguments": {"a": 1}})
        server.end()
        lines = here.lines()
        begun = [(line["tool"], line["verdict"]) for line in lines if line["event"] == "begin"]
        assert begun == [("read_file", "allow"), ("write_file", "deny"), ("read_file", "unfit"), ("no_such", "unfit")], lines
        assert lines[1]["arguments"]["path"] == "a.txt" and lines[-3]["arguments"] == {"a": 1}, lines
        ended = [line for line in lines if line["event"] == "end"]
        assert [(line["tool"], line["status"]) for line in ended] == \
            [("read_file", "done"), ("write_file", "denied"), ("read_file", "failed"), ("no_such", "failed")], ended
        assert ended[1]["verdict"] == "deny" and ended[1]["rule"], ended
        # The rule is written before the answer, with the verdict.
        rules = [line.get("rule") for line in lines if line["event"] == "begin"]
        assert rules == [None, ended[1]["rule"], None, None], lines
        assert lines[0]["event"] == "open" and lines[-1]["event"] == "close" and here.verify().returncode == 0, lines


@tap.case
def no_call_runs_while_nothing_can_be_written():
    with place() as here:
        here.configure(audit={})
        server = Server(here, "mcp").shake_hands()
        assert not server.call("bash", {"command": "touch one"}).get("isError")
        with open(os.path.join(here.audit, "lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            refused = server.call("bash", {"command": "touch two"})
            assert refused["isError"], refused
            text = refused["content"][0]["text"]
            assert "audit: cannot write (another process has held" in text, text
            assert "calls are refused until it can" in text, text
        assert not server.call("bash", {"command": "touch three"}).get("isError")
        server.end()
        assert sorted(os.listdir(here.work)) == ["one", "three"], os.listdir(here.work)
        assert [line["event"] for line in here.lines()].count("begin") == 2, here.lines()
        assert here.verify().returncode == 0


@tap.case
def all_cells_of_an_engine_are_in_one_audit_and_its_head_is_told():
    with place() as here:
        here.configure(audit={})
        server = Server(here, "serve")
        server.ask("hello", {"version": 1, "client": "test"})
        for _ in range(2):
            opened = server.ask("cell/open", {})["result"]
            done = server.ask("exec/run", {"cell": opened["cell"], "argv": ["true"]})
            assert done["result"]["exit"] == 0, done
            server.ask("cell/close", {"cell": opened["cell"]})
        said = server.end()
        lines = here.lines()
        events = [line["event"] for line in lines]
        assert events == ["open", "begin", "end", "close"] * 2, events
        assert len({line["cell"] for line in lines}) == 2, lines
        head = next(line for line in said.splitlines() if "audit head" in line).split()[-1]
        assert here.verify("--head", head).returncode == 0, head
        path = here.files()[0]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in text.splitlines()[:-1])
        assert here.verify().returncode == 0
        cut = here.verify("--head", head)
        assert cut.returncode == 1 and "its end was cut off" in cut.stderr, cut


@tap.case
def a_chain_that_is_cut_under_its_writer_is_not_gone_on_with():
    with place() as here:
        here.configure(audit={})
        server = Server(here, "mcp").shake_hands()
        for _ in range(2):
            assert not server.call("bash", {"command": "echo x >>ran"}).get("isError")
        path = here.files()[0]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        lines = text.splitlines(keepends=True)
        changed = lines[-1].replace('"status":"done"', '"status":"gone"')
        assert changed != lines[-1]
        # Shorter; as long, with another last line; longer; under another name.
        for other in ("".join(lines[:-1]), "".join(lines[:-1]) + changed, "".join(lines[1:]) + text, None):
            if other is None:
                os.rename(path, path + ".old")
            else:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(other)
            refused = server.call("bash", {"command": "echo x >>ran"})
            assert refused["isError"], (other, refused)
            said = refused["content"][0]["text"]
            assert f"audit: cannot write ({path} was cut or changed by another program: its line 5 is not" in said, said
            assert "; move the folder away and start again)" in said, said
            if other is not None:
                with open(path, encoding="utf-8") as file:
                    assert file.read() == other
        # A file that cannot be opened is not said to be cut.
        os.mkdir(path)
        said = server.call("bash", {"command": "echo x >>ran"})["content"][0]["text"]
        assert f"({path} cannot be read: Is a directory; nothing is written until it can)" in said, said
        os.rmdir(path)
        os.rename(path + ".old", path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        assert not server.call("bash", {"command": "echo x >>ran"}).get("isError")
        server.end()
        with open(os.path.join(here.work, "ran"), encoding="utf-8") as file:
            assert file.read() == "x\n" * 3
        assert here.verify().returncode == 0, here.verify()


@tap.case
def a_program_that_begins_notices_lines_that_were_cut_off():
    with place() as here:
        key = here.put("key", KEY + "\n")
        here.configure(audit={"key_file": key})
        for _ in range(2):
            assert here.with_config("exec", "--", "true").returncode == 0
        path = here.files()[0]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        cut = "".join(text.splitlines(keepends=True)[:5])
        with open(path, "w", encoding="utf-8") as file:
            file.write(cut)
        here.configure(audit={"key_file": key, "on_cut": "refuse"})
        refused = here.with_config("exec", "--", "touch", "ran")
        assert refused.returncode == 125 and f"lines of {here.audit} are gone (3, up to number 8)" in refused.stderr, refused
        assert "put them back, or move the folder away" in refused.stderr, refused
        assert not os.path.exists(os.path.join(here.work, "ran"))
        with open(path, encoding="utf-8") as file:
            assert file.read() == cut
        here.configure(audit={"key_file": key})
        done = here.with_config("exec", "--", "echo", "hello")
        assert done.returncode == 0 and done.stdout == "hello\n", done
        assert f"glovebox: audit: lines of {here.audit} are gone (3, up to number 8): " in done.stderr, done
        again = here.with_config("exec", "--", "true")
        assert again.returncode == 0 and "gone" not in again.stderr, again
        lines = here.lines()
        assert [line["event"] for line in lines[5:]] == ["cut"] + ["open", "begin", "end", "close"] * 2, lines
        head = f"8:{lines[5]['head'].partition(':')[2]}"
        assert lines[5]["head"] == head and lines[5]["lost"] == 3, lines
        done = here.verify("--key-file", key)
        assert done.returncode == 1 and "14 lines fit together, number 1 to 14, with the key" in done.stdout, done
        assert "sound" not in done.stdout and "then move the folder away" in done.stderr, done
        assert f"{path}:6: lines before this one are gone (3, up to the head {head})" in done.stderr, done
        told = json.loads(here.verify("--json").stdout)
        assert told["sound"] is False and told["line"] == 6 and told["cuts"] == 1 and told["file"] == path, told
        assert "lines before this one are gone (3, " in told["why"] and "move the folder away" in told["remedy"], told
        shutil.move(here.audit, here.audit + ".old")
        assert here.with_config("exec", "--", "true").returncode == 0
        assert here.verify("--key-file", key).returncode == 0, here.verify()


def without_heads(lines):
    """LINES as a program without heads has written them: the first one does not say that there is one."""
    prev, made = "0" * 64, []
    for line in lines:
        body = re.sub(r',"keeps":"head"|,"prev":.*$', "", line.rstrip("\n")) + f',"prev":"{prev}"'
        made.append(body + ',"sum":"' + hashlib.sha256(body.encode()).hexdigest() + '"}\n')
        prev = hashlib.sha256(made[-1][:-1].encode()).hexdigest()
    return made


@tap.case
def a_missing_head_is_told_with_a_remedy_unless_there_never_was_one():
    with place() as here:
        here.configure(audit={})
        head = os.path.join(here.audit, "head")
        assert here.with_config("exec", "--", "true").returncode == 0
        path = here.files()[0]
        with open(path, encoding="utf-8") as file:
            lines = list(file)
        assert '"keeps":"head"' in lines[0] and '"keeps"' not in "".join(lines[1:]), lines
        # A chain that is older than heads: one warning, and then it has one.
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(without_heads(lines))
        os.unlink(head)
        assert here.verify().returncode == 0, here.verify()
        done = here.with_config("exec", "--", "true")
        assert done.returncode == 0 and f"{head} is missing, or the audit is older than heads" in done.stderr, done
        done = here.verify()
        assert done.returncode == 0 and "9 lines are sound" in done.stdout, done
        assert f"warning: {path}:5: the audit had no head before this line" in done.stderr, done
        told = json.loads(here.verify("--json").stdout)
        assert told["sound"] is True and told["warnings"] == 1 and "cuts" not in told, told
        # From then on a missing one, or an empty one, is doubt, with a remedy.
        for word in ("missing", "empty"):
            if word == "missing":
                os.unlink(head)
            else:
                open(head, "w", encoding="utf-8").close()
            done = here.with_config("exec", "--", "true")
            assert done.returncode == 0 and f"{head} is {word}" in done.stderr, done
            done = here.verify()
            assert done.returncode == 1 and f"lines before this one may be gone: the file of the head was {word}" in done.stderr, done
            assert "sound" not in done.stdout and "then move the folder away" in done.stderr, done
        here.configure(audit={"on_cut": "refuse"})
        os.unlink(head)
        refused = here.with_config("exec", "--", "true")
        assert refused.returncode == 125 and 'with "go_on" the chain goes on' in refused.stderr, refused


@tap.case
def a_changed_line_is_named():
    with place() as here:
        here.configure(audit={})
        for _ in range(2):
            assert here.with_config("exec", "--", "true").returncode == 0
        path = here.files()[0]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace('"exit":0', '"exit":1', 1))
        done = here.verify()
        assert done.returncode == 1 and f"{path}:3: the line was changed" in done.stderr, done
        told = json.loads(here.verify("--json").stdout)
        assert told["sound"] is False and told["line"] == 3 and told["file"] == path, told
        lines = text.splitlines(keepends=True)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines[:4] + lines[5:])
        done = here.verify()
        assert done.returncode == 1 and f"{path}:5: the line is number 6 and follows number 4" in done.stderr, done
        with open(path, "w", encoding="utf-8") as file:
            file.write(text[:-1])
        done = here.verify()
        assert done.returncode == 1 and f"{path}:8: the line has no line end" in done.stderr, done


@tap.case
def wrong_words_and_unsafe_places_are_refused():
    with place() as here:
        tap.refused(GLOVEBOX, ["audit", "verify"], "audit verify")
        tap.refused(GLOVEBOX, ["audit", "verify", "--head", "x", "f"], "is no head")
        done = here.run("audit", "verify", os.path.join(here.root, "none"))
        assert done.returncode == 1 and "No such file" in done.stderr, done
        here.put("config.json", json.dumps({"service": {"audit": {"folder": os.path.join(here.work, "audit")}}}))
        done = here.with_config("exec", "--write", ".", "--", "touch", "ran")
        assert done.returncode != 0 and "where commands may write" in done.stderr, done
        assert not os.path.exists(os.path.join(here.work, "ran"))
        here.put("config.json", json.dumps({"service": {"audit": {"folder": "audit"}}}))
        done = here.with_config("exec", "--", "true")
        assert done.returncode != 0 and "must be a path that begins with /" in done.stderr, done
        here.put("key", KEY, mode=0o644)
        here.configure(audit={"key_file": os.path.join(here.root, "key")})
        done = here.with_config("exec", "--", "true")
        assert done.returncode != 0 and "others may read or write" in done.stderr, done


@tap.case
def a_call_by_mcp_has_spans_in_the_trace_of_its_client():
    with place() as here, Collector() as collector:
        here.configure(otlp={"endpoint": collector.endpoint})
        server = Server(here, "mcp", environment={
            "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b", "OTEL_SERVICE_NAME": "box",
            "OTEL_RESOURCE_ATTRIBUTES": "team=red"}).shake_hands()
        server.call("bash", {"command": "echo private"}, traceparent=f"00-{TRACE}-{PARENT}-01")
        server.call("bash", {"command": "true"}, traceparent=f"00-{TRACE}-{PARENT}-00")
        server.end()
        spans = collector.spans(2)
        served, executed = spans["tools/call bash"], spans["execute_tool bash"]
        assert served["traceId"] == executed["traceId"] == TRACE, spans
        assert served["parentSpanId"] == PARENT and served["kind"] == 2, served
        assert executed["parentSpanId"] == served["spanId"] and executed["kind"] == 1, spans
        assert served["attributes"]["mcp.method.name"] == "tools/call", served
        # A session over standard input has no id.
        assert served["attributes"]["jsonrpc.request.id"] == "2" and "mcp.session.id" not in served["attributes"], served
        attributes = executed["attributes"]
        assert attributes["gen_ai.tool.name"] == "bash" and attributes["glovebox.status"] == "done", attributes
        assert attributes["gen_ai.operation.name"] == "execute_tool", attributes
        assert int(executed["endTimeUnixNano"]) >= int(executed["startTimeUnixNano"]), executed
        path, headers, body = collector.requests[0]
        assert path == "/v1/traces" and headers["x-key"] == "a b", (path, headers)
        assert headers["Content-Type"] == "application/json", headers
        resource = {pair["key"]: pair["value"]["stringValue"] for pair in body["resourceSpans"][0]["resource"]["attributes"]}
        assert resource == {"service.name": "box", "team": "red"}, resource
        assert "private" not in json.dumps(collector.requests), collector.requests


@tap.case
def an_agent_has_spans_of_turns_answers_and_calls():
    with place() as here, Collector() as collector:
        here.configure(otlp={"content": True})
        replay = here.put("replay.json", json.dumps(REPLAY))
        done = here.with_config("run", "--model", "replay:" + replay, "go",
                                environment={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint})
        assert done.returncode == 0, done
        spans = collector.spans(4)
        turn = spans["invoke_agent default"]
        chat, call = spans["chat replay:" + replay], spans["execute_tool bash"]
        assert chat["parentSpanId"] == call["parentSpanId"] == turn["spanId"], spans
        assert "parentSpanId" not in turn and chat["kind"] == 3, spans
        assert "echo hello" in call["attributes"]["gen_ai.tool.call.arguments"], call
        assert "hello" in call["attributes"]["gen_ai.tool.call.result"], call
        assert turn["attributes"]["gen_ai.agent.name"] == "default", turn


@tap.case
def nothing_waits_for_a_collector_that_is_not_there():
    with place() as here, Collector() as collector:
        gone = collector.endpoint
        collector.__exit__()
        here.configure(otlp={"endpoint": gone})
        start = time.monotonic()
        done = here.with_config("exec", "--", "echo", "hello")
        assert done.returncode == 0 and done.stdout == "hello\n", done
        # It has five seconds by itself, which nobody waits for.
        assert not tap.is_late(time.monotonic() - start, 3), time.monotonic() - start


@tap.case
def spans_that_no_collector_takes_are_counted():
    with place() as here, Collector(status=400) as collector:
        here.configure(otlp={"endpoint": collector.endpoint})
        server = Server(here, "mcp").shake_hands()
        for _ in range(256):
            server.call("read_file", {"path": "none"})
        # 512 spans are a batch, which is sent without a pause, and refused for good.
        line = server.process.stderr.readline()
        assert re.search(r"otlp: \d+ spans were dropped so far: 127.* answers with status 400", line), line
        server.end()


@tap.case
def a_collector_says_when_it_wants_spans_again():
    with place() as here, Collector(answers=[(429, {"Retry-After": "7"}, "{}"), (503, {}, "{}")]) as collector:
        here.configure(otlp={"endpoint": collector.endpoint})
        server = Server(here, "mcp").shake_hands()
        server.call("read_file", {"path": "none"})
        collector.spans(2)
        server.call("read_file", {"path": "none"})
        said = server.end()
        assert "dropped" not in said, said
        first, second, third = collector.times[:3]
        assert second - first > 6.9 and third - second > 4.9, collector.times


@tap.case
def spans_that_a_collector_refuses_are_counted():
    answers = [(200, {}, json.dumps({"partialSuccess": {"rejectedSpans": "1", "errorMessage": "no\x1b[2Jroom"}})),
               (200, {}, json.dumps({"partialSuccess": {"rejectedSpans": 70}})), (200, {}, '{"partialSuccess": 7')]
    with place() as here, Collector(answers=answers) as collector:
        here.configure(otlp={"endpoint": collector.endpoint})
        server = Server(here, "mcp").shake_hands()
        server.call("read_file", {"path": "none"})
        line = server.process.stderr.readline()
        assert re.search(r"otlp: 1 spans were dropped so far: 127.\S+ has refused some: noroom$", line), line
        server.call("read_file", {"path": "none"})
        collector.spans(4, names=False)
        server.call("read_file", {"path": "none"})
        collector.spans(6, names=False)
        # No more than were sent, and nothing because of an answer that says nothing.
        said = server.end()
        assert "otlp: 3 spans were dropped so far: 127" in said and "it does not say why" in said, said


@tap.case
def a_span_that_is_too_long_and_a_sender_that_is_killed_are_counted():
    with place() as here, Collector() as collector:
        here.configure(otlp={"endpoint": collector.endpoint, "content": True})
        server = Server(here, "mcp").shake_hands()
        # Each quotation mark is two bytes of the result's text, and four of the arguments'.
        server.call("bash", {"command": "printf '%s' '" + '"' * 7900 + "'; printf '\"%.0s' {1..16000}"})
        children = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(server.process.pid)], stdout=subprocess.PIPE,
                                  text=True, check=True).stdout.splitlines()
        sender, = [int(line.split()[0]) for line in children if line.split()[1] == "glovebox-otlp"]
        os.kill(sender, 9)
        with contextlib.suppress(FileNotFoundError):
            while open(f"/proc/{sender}/stat", encoding="ascii").read().rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.01)
        server.call("bash", {"command": "true"})
        said = server.end()
        assert "the process that sends spans had ended; it was started again (1 times so far)" in said, said
        # One was too long, and one more went with the sender.
        assert "otlp: 2 spans were dropped so far" in said, said
        assert sorted(collector.spans(2)) == ["execute_tool bash", "tools/call bash"], collector.requests


@tap.case
def a_request_of_many_long_spans_has_four_mebibytes_at_most():
    with place() as here, Collector() as collector:
        here.configure(otlp={"endpoint": collector.endpoint, "content": True})
        with open(os.path.join(here.work, "long.txt"), "w", encoding="ascii") as file:
            file.write(('"' * 70 + "\n") * 230)
        server = Server(here, "mcp").shake_hands()
        for _ in range(LONG_CALLS):
            assert not server.call("read_file", {"path": "long.txt"}).get("isError")
        said = server.end()
        # A busy machine may drop some, and counts them.
        dropped = re.findall(r"otlp: (\d+) spans were dropped so far", said)
        collector.spans(2 * LONG_CALLS - (int(dropped[-1]) if dropped else 0), names=False)
        sizes = [int(headers["Content-Length"]) for _, headers, _ in collector.requests]
        assert max(sizes) <= 4 << 20 and sum(sizes) > 4 << 20, sizes


tap.play()
