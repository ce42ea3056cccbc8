#!/usr/bin/env python3
"""A model server that plays a part: Chat Completions on loopback, for tests.

    model_server.py [--script FILE]        prints its port on the first line of stdout

It ends when its parent dies, or when its stdin, if that is a pipe or a socket, is closed.
It serves any number of requests at once and needs nothing but Python's own library.

Behaviours are chosen by the first folder of the base URL: http://127.0.0.1:PORT/NAME/v1

    normal        a streamed text in several pieces, with usage and [DONE]
    echo          streams "You said: " and the newest user text back
    calls         thinking, text and one call of list_files; once the conversation ends with
                  a tool's result, the text "The tool said: " and that result
    plain         the answer of normal as one JSON object, not as a stream
    drip          normal, byte by byte with a pause after each
    flood         20,000 small pieces
    cut           half of normal, then the connection breaks
    cut-once      cut the first time, then normal
    torn          half of normal, then a clean end
    stall         half of normal, then silence until the client goes
    hang          no byte of an answer until the client goes
    open-end      normal, but the connection stays open after [DONE]
    empty         status 200 and nothing else
    html          a web page with status 200
    html-502      a web page with status 502
    400 401 403 404 500 503
                  that status with an error object
    401-echo      401 with the Authorization header quoted in its message
    429-once      429 with retry-after-ms: 1, then normal
    429           429 with retry-after-ms: 1, always
    429-wait      429 with retry-after: 30
    429-long      429 with retry-after: 3600
    500-once      500 with retry-after-ms: 1, then normal
    500-twice     the same two times
    500-no        500 with x-should-retry: false
    400-again     400 with x-should-retry: true and retry-after-ms: 1, then normal
    overflow      400 in llama.cpp's words for a full context
    late-error    half of normal, then an error object as an event, with status 200
    redirect      307 to another place
    date          429 with retry-after as a date in the past, then normal
    proxy         "HTTP/1.1 100 Continue" before the answer of normal
    file/STEM     the bytes of tests/model/streams/STEM.sse with status 200

Without a folder (http://127.0.0.1:PORT/v1) the answers come from the script, in order:

    {"answers": [
        {"text": "I look.", "thinking": "…", "delay_ms": 0, "finish": "tool_calls",
         "calls": [{"id": "c1", "tool": "bash", "arguments": {"command": "ls"}}],
         "usage": {"prompt_tokens": 10, "completion_tokens": 5}},
        {"behaviour": "500-once"},
        {"status": 200, "headers": {"content-type": "text/plain"}, "body": "…"}],
     "repeat_last": true}

`arguments` may be a string, sent as it is; everything in an answer may be left out. Beyond
the last answer (unless repeat_last) the status is 500 with "the script is at its end".
delay_ms is waited between two pieces.

GET /requests answers with the list of all requests so far, each {"path", "headers", "body"},
GET /connections with the number of connections that were made.
"""

import argparse
import ctypes
import http.server
import json
import os
import select
import signal
import stat
import sys
import threading
import time

STREAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model", "streams")
PR_SET_PDEATHSIG = 1
PIECES = ["Hello", " from", " a", " fake", " model", "."]
USAGE = {
    "prompt_tokens": 12,
    "completion_tokens": 6,
    "prompt_tokens_details": {"cached_tokens": 4},
}
PAGE = b"<!doctype html><html><head><title>Sign in</title></head><body>no</body></html>"


def chunk(delta, finish=None):
    """One streamed object with DELTA in it."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}


def event(value):
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def stream_of(text="", thinking="", calls=(), finish=None, usage=None):
    """The events of one whole streamed answer, as a list of bytes."""
    pieces = text if isinstance(text, list) else ([text] if text else [])
    events = [event(chunk({"role": "assistant", "content": None}))]
    if thinking:
        events.append(event(chunk({"reasoning_content": thinking})))
    events += [event(chunk({"content": piece})) for piece in pieces]
    for index, call in enumerate(calls):
        arguments = call.get("arguments", {})
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        head = {"name": call["tool"], "arguments": ""}
        begin = {
            "index": index,
            "id": call.get("id", f"call_{index}"),
            "type": "function",
            "function": head,
        }
        more = {"index": index, "function": {"arguments": arguments}}
        events.append(event(chunk({"tool_calls": [begin]})))
        events.append(event(chunk({"tool_calls": [more]})))
    events.append(event(chunk({}, finish or ("tool_calls" if calls else "stop"))))
    events.append(event({"choices": [], "usage": usage or USAGE}))
    events.append(b"data: [DONE]\n\n")
    return events


class State:
    """What the requests share."""

    def __init__(self, script):
        self.lock = threading.Lock()
        self.script = script
        self.next_answer = 0
        self.seen = {}
        self.requests = []
        self.connections = 0

    def times(self, name):
        """How often NAME was asked for before."""
        with self.lock:
            count = self.seen.get(name, 0)
            self.seen[name] = count + 1
            return count

    def scripted(self):
        answers = self.script.get("answers", [])
        with self.lock:
            at = self.next_answer
            self.next_answer += 1
        if at < len(answers):
            return answers[at]
        if answers and self.script.get("repeat_last"):
            return answers[-1]
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    state = None

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        with self.state.lock:
            self.state.connections += 1

    # How bytes go out.

    def begin(self, status, content_type, headers=None, length=None):
        self.send_response(status)
        self.send_header("content-type", content_type)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if length is None:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(length))
        self.end_headers()

    def whole(self, status, content_type, body, headers=None):
        self.begin(status, content_type, headers, len(body))
        self.wfile.write(body)

    def refuse(self, status, message, headers=None, code=None):
        error = {"message": message, "type": "test_error", "code": code or status}
        body = json.dumps({"error": error}).encode()
        self.whole(status, "application/json", body, headers)

    def piece(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def stream(self, events, delay_s=0.0, end=True):
        self.begin(200, "text/event-stream")
        for data in events:
            self.piece(data)
            if delay_s:
                time.sleep(delay_s)
        if end:
            self.wfile.write(b"0\r\n\r\n")

    def wait_for_client_to_go(self):
        self.close_connection = True
        select.select([self.connection], [], [])

    def break_off(self):
        self.close_connection = True

    # What comes in.

    def do_GET(self):
        with self.state.lock:
            known = {"/requests": self.state.requests, "/connections": self.state.connections}
            body = json.dumps(known.get(self.path)).encode()
        if self.path in known:
            self.whole(200, "application/json", body)
        else:
            self.refuse(404, "there is no such page")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            request = json.loads(body)
        except ValueError:
            self.refuse(400, "the request is no JSON")
            return
        with self.state.lock:
            self.state.requests.append(
                {"path": self.path, "headers": dict(self.headers), "body": request}
            )
        name = self.path.strip("/").removesuffix("chat/completions").strip("/")
        name = name.removesuffix("v1").strip("/")
        try:
            if name:
                self.behave(name, request)
            else:
                self.follow_script(request)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def follow_script(self, request):
        answer = self.state.scripted()
        if answer is None:
            self.refuse(500, "the script is at its end", {"x-should-retry": "false"})
        elif "behaviour" in answer:
            self.behave(answer["behaviour"], request)
        elif "body" in answer or "status" in answer:
            headers = dict(answer.get("headers", {}))
            content_type = headers.pop("content-type", "text/plain")
            body = answer.get("body", "")
            if not isinstance(body, str):
                body = json.dumps(body)
            self.whole(answer.get("status", 200), content_type, body.encode(), headers)
        else:
            events = stream_of(
                answer.get("text", ""),
                answer.get("thinking", ""),
                answer.get("calls", []),
                answer.get("finish"),
                answer.get("usage"),
            )
            self.stream(events, answer.get("delay_ms", 0) / 1000)

    # The parts it can play.

    def behave(self, name, request):
        count = self.state.times(name)
        if name.startswith("file/"):
            path = os.path.join(STREAMS, os.path.basename(name) + ".sse")
            with open(path, "rb") as file:
                self.stream([file.read()])
            return
        base = name.partition("-")[0]
        if base in ("400", "401", "403", "404", "429", "500", "503"):
            self.play_status(int(base), name, count)
            return
        play = getattr(self, "play_" + name.replace("-", "_"), None)
        if play:
            play(request, count)
        else:
            self.refuse(404, f"no behaviour is called {name}")

    def play_status(self, status, name, count):
        message = f"the part played is {name}"
        again = {"retry-after-ms": "1"}
        times = {"429-once": 1, "500-once": 1, "500-twice": 2, "400-again": 1}.get(name)
        if times is not None and count >= times:
            self.play_normal(None, count)
        elif name == "401-echo":
            self.refuse(401, f"wrong key: {self.headers.get('authorization')}")
        elif name == "429-wait":
            self.refuse(status, message, {"retry-after": "30"})
        elif name == "429-long":
            self.refuse(status, message, {"retry-after": "3600"})
        elif name == "500-no":
            self.refuse(status, message, {"x-should-retry": "false"})
        elif name == "400-again":
            self.refuse(status, message, {"x-should-retry": "true", **again})
        else:
            self.refuse(status, message, again)

    def play_normal(self, _request, _count):
        self.stream(stream_of(PIECES))

    def play_echo(self, request, _count):
        texts = [m["content"] for m in request["messages"] if m["role"] == "user"]
        self.stream(stream_of(["You said: ", texts[-1] if texts else ""]))

    def play_calls(self, request, _count):
        last = request["messages"][-1]
        if last["role"] == "tool":
            self.stream(stream_of(["The tool said: ", last["content"]]))
            return
        call = {"id": "call_look", "tool": "list_files", "arguments": {"path": "."}}
        self.stream(stream_of("I look around.", "Where am I?", [call]))

    def play_plain(self, _request, _count):
        message = {"role": "assistant", "content": "".join(PIECES)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = {"object": "chat.completion", "choices": [choice], "usage": USAGE}
        self.whole(200, "application/json", json.dumps(body).encode())

    def play_drip(self, _request, _count):
        data = b"".join(stream_of(PIECES))
        self.stream([data[i : i + 1] for i in range(len(data))], 0.0001)

    def play_flood(self, _request, _count):
        self.stream(stream_of(["word "] * 20000))

    def half(self):
        events = stream_of(PIECES)
        self.stream(events[: len(events) // 2], end=False)

    def play_cut(self, _request, _count):
        self.half()
        self.break_off()

    def play_cut_once(self, request, count):
        if count == 0:
            self.play_cut(request, count)
        else:
            self.play_normal(request, count)

    def play_torn(self, _request, _count):
        self.half()
        self.wfile.write(b"0\r\n\r\n")

    def play_stall(self, _request, _count):
        self.half()
        self.wait_for_client_to_go()

    def play_hang(self, _request, _count):
        self.wait_for_client_to_go()

    def play_open_end(self, _request, _count):
        self.stream(stream_of(PIECES), end=False)
        self.wait_for_client_to_go()

    def play_empty(self, _request, _count):
        self.whole(200, "text/event-stream", b"")

    def play_html(self, _request, _count):
        self.whole(200, "text/html; charset=utf-8", PAGE)

    def play_html_502(self, _request, _count):
        self.whole(502, "text/html", PAGE, {"retry-after-ms": "1"})

    def play_overflow(self, _request, _count):
        message = "the request exceeds the available context size. try increasing it"
        error = {"code": 400, "message": message, "type": "exceed_context_size_error"}
        self.whole(400, "application/json", json.dumps({"error": error}).encode())

    def play_late_error(self, _request, _count):
        self.half()
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        error = {"code": 400, "message": "the provider behind gave up"}
        self.piece(event({"error": error, "choices": [choice]}))
        self.wfile.write(b"0\r\n\r\n")

    def play_redirect(self, _request, _count):
        self.whole(307, "text/plain", b"", {"location": "http://127.0.0.1:9/elsewhere"})

    def play_date(self, request, count):
        if count == 0:
            self.refuse(429, "later", {"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"})
        else:
            self.play_normal(request, count)

    def play_proxy(self, request, count):
        self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.play_normal(request, count)


def end_with_parent():
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # It may have died before the line above.
    if os.getppid() != parent:
        sys.exit(0)


def end_with_stdin():
    mode = os.fstat(0).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return
    while os.read(0, 4096):
        pass
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--script")
    arguments = parser.parse_args()
    script = {}
    if arguments.script:
        with open(arguments.script, encoding="utf-8") as file:
            script = json.load(file)
    end_with_parent()
    Handler.state = State(script)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=end_with_stdin, daemon=True).start()
    print(server.server_address[1], flush=True)
    server.serve_forever(poll_interval=3600)


if __name__ == "__main__":
    main()
