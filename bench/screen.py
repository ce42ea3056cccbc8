"""The group of the screen: what a conversation costs on the terminal, behind a pty that counts. Words come from a model on
loopback at 100 a second. Beside the agents that are installed (pi, codex, claude): of them what needs no model.
"""
import fcntl
import glob
import http.server
import json
import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import tempfile
import termios
import threading
import time

OURS, PEERS = "glovebox", ("pi", "codex", "claude")
ROWS, COLUMNS = 30, 100
ROUNDS = 5
TOKENS, TOKENS_S = 400, 100
KEYS = 40
IDLE_S = 3
TOKEN_BYTES, KEY_BYTES, CARET_MS, FIRST_MS, MEMORY_MIB = 30, 120, 10, 5, 16
PATIENCE_S = 30
QUIET_S = 0.3
MIB, MS = 1 << 20, 1000
DA1 = b"\033[?62;22c"
# Where the caret of each is ready, in what it prints.
READY = {OURS: rb"\033\[3G$", "pi": rb"\033\[\?25h", "codex": rb"\033\[\?25h", "claude": rb"\033\[\?25h"}

GREETING = rb"/help lists what there is;"


class Words(http.server.BaseHTTPRequestHandler):
    """A model of OpenAI's kind that says TOKENS words, TOKENS_S a second."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(b'{"object": "list", "data": [{"id": "bench"}]}', "application/json")

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        began = time.monotonic()
        for number in range(TOKENS):
            time.sleep(max(0, began + number / TOKENS_S - time.monotonic()))
            self.chunk({"content": "word " if number % 20 else "word. "}, None)
        self.chunk({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def chunk(self, delta, reason):
        event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "bench",
                 "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()


class Screen:
    """A program behind a terminal that counts bytes."""

    def __init__(self, argv, home, variables):
        self.work = os.path.join(home, "work")
        os.makedirs(self.work, exist_ok=True)
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

        def join():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.printed, self.began, self.first = b"", time.monotonic(), None
        self.process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, cwd=self.work, preexec_fn=join,
                                        env={"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color",
                                             "LANG": "C.UTF-8", **variables})
        os.close(slave)

    def read(self, seconds):
        """Read for SECONDS; the bytes that came."""
        until, before = time.monotonic() + seconds, len(self.printed)
        while (left := until - time.monotonic()) > 0:
            if not select.select([self.master], [], [], left)[0]:
                break
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            self.first = self.first or time.monotonic()
            self.printed += data
            if b"\033[c" in data:
                os.write(self.master, DA1)
        return len(self.printed) - before

    def wait_for(self, pattern):
        """Seconds since the start when PATTERN has come; None: it has not."""
        until = time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.printed):
            if time.monotonic() > until or self.process.poll() is not None:
                return None
            self.read(0.002)
        return time.monotonic() - self.began

    def calm(self):
        while self.read(QUIET_S):
            pass

    def tree(self):
        """The front alone: cells and workers have figures of their own."""
        return self.process.pid

    def wakes(self):
        """How often the threads of the front were woken so far."""
        woken = 0
        for path in glob.glob(f"/proc/{self.tree()}/task/*/status"):
            with open(path, encoding="ascii") as file:
                woken += sum(int(number) for number in re.findall(r"ctxt_switches:\s+(\d+)", file.read()))
        return woken

    def memory(self):
        with open(f"/proc/{self.tree()}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self.master)


def measure_one(name, argv, url):
    """What one conversation of NAME costs; a figure that it does not give is missing."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="glovebox-screen-", ignore_cleanup_errors=True) as home:
        screen = Screen(argv, home, {"GLOVEBOX_MODEL": "bench", "GLOVEBOX_BASE_URL": url + "/v1", "OPENAI_API_KEY": "none"})
        try:
            ready = screen.wait_for(READY[name])
            if ready is None:
                return found
            found["first byte, ms"] = (screen.first - screen.began) * MS
            found["caret, ms"] = ready * MS
            # Our line is there before the cell is.
            if name == OURS:
                screen.wait_for(GREETING)
            screen.calm()
            woken = screen.wakes()
            found["idle, bytes"] = screen.read(IDLE_S)
            found["idle, wake-ups"] = screen.wakes() - woken
            drawn = 0
            for _ in range(KEYS):
                os.write(screen.master, b"k")
                drawn += screen.read(0.05)
            found["a key, bytes"] = drawn / KEYS
            found["memory, MiB"] = screen.memory()
            if name == OURS:
                before = len(screen.printed)
                os.write(screen.master, b"\r")
                screen.read(TOKENS / TOKENS_S)
                screen.calm()
                found["a token, bytes"] = (len(screen.printed) - before) / TOKENS
        finally:
            screen.end()
    return found


LIMITS = {"a token, bytes": TOKEN_BYTES, "a key, bytes": KEY_BYTES, "caret, ms": CARET_MS, "first byte, ms": FIRST_MS,
          "idle, bytes": 0, "idle, wake-ups": 0, "memory, MiB": MEMORY_MIB}


def screen_group(group, command, build, _workspace):
    """The times are those to a caret that takes keys."""
    programs = {OURS: os.path.join(build, OURS), **{name: shutil.which(name) or name for name in PEERS}}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Words)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    found = {name: [] for name in programs}

    def play(_build, running, rounds, _workspace):
        for _ in range(rounds):
            for one in running:
                found[one.name].append(measure_one(one.name, [programs[one.name]], url))
            yield [found[one.name][-1].get("caret, ms", PATIENCE_S * MS) * MS for one in running]
        server.shutdown()

    def figures(_build, _workspace):
        for key, limit in LIMITS.items():
            values = {name: [one[key] for one in rounds if key in one] for name, rounds in found.items()}
            for name in filter(values.get, values):
                value = statistics.median(values[name])
                figure, unit = key.split(", ")
                row = {"of": name, "beside": figure, "figure": round(value, 1), "unit": unit, "asked": ""}
                yield {**row, "asked": f"≤ {limit}", "met": value <= limit} if name == OURS else row

    return group("screen", "A conversation on a terminal, to its caret",
                 [command(name, [name, program], peer=name != OURS) for name, program in programs.items()], [],
                 play=play, rounds=ROUNDS, measure=figures)


GROUPS = {"screen": screen_group}
