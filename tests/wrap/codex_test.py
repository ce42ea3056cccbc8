#!/usr/bin/env python3
"""The real Codex outside, with the cell as its hands, and a model of a few answers on loopback.

codex_test.py TAP_FOLDER GLOVEBOX

$AGENTS is the folder in which npm has installed Codex; without it, or without Codex there, all is skipped."""
import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402, pylint: disable=wrong-import-position
from place import outside  # noqa: E402, pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[2])
AGENTS = os.environ.get("AGENTS", os.path.join(os.path.dirname(PROGRAM), "agents-sealed"))
BIN = os.path.join(os.path.abspath(AGENTS), "node_modules", ".bin")
MARKER, KEY = "only-the-person-reads-this", "sk-test-0123456789abcdef"
WAIT_SECONDS = 120  # a busy machine
SETTINGS = """model="gpt-5.2-codex"
model_provider="fake"
approval_policy="never"
[model_providers.fake]
name="fake"
base_url="http://127.0.0.1:%d/v1"
wire_api="responses"
env_key="FAKE_KEY"
[features]
unified_exec=true
"""


def call(name, **arguments):
    return {"type": "function_call", "id": "f", "call_id": f"c{time.monotonic_ns()}", "name": name,
            "arguments": json.dumps(arguments)}


def png():
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
            + part(b"IDAT", zlib.compress(b"\0\xff\0\0")) + part(b"IEND", b""))


class Model(http.server.ThreadingHTTPServer):
    """Answers with one item after the other; an item may be made of the outputs so far."""

    def __init__(self, items):
        items, asked = list(items), []
        self.asked = asked

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def send(self, kind, body):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):  # pylint: disable=invalid-name
                self.send("application/json", b'{"data":[],"models":[]}')

            def do_POST(self):  # pylint: disable=invalid-name
                asked.append(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
                item = items.pop(0) if items else {"type": "message", "id": "m", "role": "assistant",
                                                   "content": [{"type": "output_text", "text": "done"}]}
                item = item(asked[-1]) if callable(item) else item
                usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
                events = [{"type": "response.created", "response": {"id": "r"}},
                          {"type": "response.output_item.done", "item": item},
                          {"type": "response.completed", "response": {"id": "r", "usage": usage}}]
                self.send("text/event-stream", "".join(
                    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode())

            def log_message(self, format, *args):  # pylint: disable=redefined-builtin
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Place:
    """A person's home with a Codex, and a workspace."""

    def __init__(self, folder, port):
        self.home, self.work = os.path.join(folder, "home"), os.path.join(folder, "work")
        os.makedirs(os.path.join(self.home, ".codex"))
        os.makedirs(self.work)
        for name, text in (".codex/config.toml", SETTINGS % port), ("marker", MARKER):
            with open(os.path.join(self.home, name), "w", encoding="ascii") as file:
                file.write(text)
        with open(os.path.join(self.work, "p.png"), "wb") as file:
            file.write(png())
        self.environment = {"HOME": self.home, "PATH": BIN + ":" + os.environ["PATH"], "FAKE_KEY": KEY}

    def start(self):
        return subprocess.Popen([PROGRAM, "wrap", "codex", "--", "exec", "--skip-git-repo-check", "do it"],
                                cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@contextlib.contextmanager
def played(*items):
    folder = os.path.realpath(tempfile.mkdtemp(prefix="glovebox-codex-", dir=outside()))
    with Model(items) as model:
        try:
            yield Place(folder, model.server_address[1]), model
        finally:
            model.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


def session_of(request):
    return int(re.findall(r"session ID (\d+)", request)[-1])


@tap.case
def commands_a_terminal_a_patch_and_a_picture_go_through_the_cell():
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new.txt\n+one\n*** End Patch\nEOF"
    items = [call("exec_command", cmd="echo ran-$((6*7)); cat ../home/marker; echo key=$FAKE_KEY; pwd"),
             call("exec_command", cmd="read x; echo got-$x-$(tty)", tty=True, yield_time_ms=500),
             lambda request: call("write_stdin", session_id=session_of(request), chars="typed\n"),
             call("exec_command", cmd=patch),
             call("view_image", path="p.png")]
    with played(*items) as (at, model):
        process = at.start()
        output = process.communicate(timeout=WAIT_SECONDS)[0].decode()
        assert process.returncode == 0, output
        last = model.asked[-1]
        assert "ran-42" in last and at.work in last, last[-3000:]
        assert MARKER not in last and KEY not in last
        assert "got-typed-/dev/pts/" in last, last[-3000:]
        with open(os.path.join(at.work, "new.txt"), encoding="ascii") as file:
            assert file.read() == "one\n"
        assert "data:image/png;base64" in last, last[-1500:]
        assert os.path.isdir(os.path.join(at.home, ".codex", "sessions"))
        done = subprocess.run([PROGRAM, "undo"], cwd=at.work, env=at.environment, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0 and not os.path.exists(os.path.join(at.work, "new.txt")), done


@tap.case
def an_interrupt_ends_codex_and_what_runs_in_the_cell():
    mark = f"62{os.getpid()}"

    def sleeping():
        found = subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split() if int(pid) != os.getpid()]
    with played(call("exec_command", cmd=f"sleep {mark}", yield_time_ms=60000)) as (at, _):
        process = at.start()
        end = time.monotonic() + WAIT_SECONDS
        while not sleeping() and time.monotonic() < end:
            time.sleep(0.1)
        assert sleeping()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_SECONDS)
        while sleeping() and time.monotonic() < end:
            time.sleep(0.1)
        assert not sleeping()


if not os.path.exists(os.path.join(BIN, "codex")):
    print(f"1..0 # SKIP no Codex in {BIN}; AGENTS=DIR names a folder where npm has installed it")
    sys.exit(0)
tap.play()
