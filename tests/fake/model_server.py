#!/usr/bin/env python3
"""A model server that plays a part on loopback, for tests.

    model_server.py [--script FILE]        prints its port on the first line of stdout

It ends when its parent dies, or when its stdin, if that is a pipe or a socket, is closed.
It serves any number of requests at once and needs nothing but Python's own library. The end
of the path says which API is spoken: /chat/completions, /responses or /messages (a row of APIS
each).

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
    comments      comments without end, as fast as they are taken
    pings         an event that means nothing every ten milliseconds, without end
    header-drip   a header line every ten milliseconds, without end
    hang          no byte of an answer until the client goes
    open-end      normal, but the connection stays open after [DONE]
    empty         status 200 and nothing else
    html          a web page with status 200
    html-502      a web page with status 502
    400 401 403 404 408 409 500 503 529
                  that status with an error object; with retry-after-ms: 1
    STATUS-once   that one time, then normal; STATUS-twice: two times
    401-echo      401 with the header that has the key quoted in its message
    429           429 with retry-after-ms: 1, always
    429-wait      429 with retry-after: 30
    429-date      429 with retry-after as a date in 30 seconds
    429-long      429 with retry-after: 3600
    429-both      429 with retry-after: 3600 and retry-after-ms: 1, then normal
    429-silent    429 without a word on when to come back
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
        {"items": [{"type": "reasoning", "id": "rs_1", "encrypted_content": "…"}, …]},
        {"behaviour": "500-once"},
        {"status": 200, "headers": {"content-type": "text/plain"}, "body": "…"}],
     "repeat_last": true, "by_history": true}

With by_history it is not the number of requests that chooses the answer but the number of
assistant messages in the request, so that a client that is killed and goes on finds its place;
those whose calls have a result that fits the regular expression `again` are not counted.
`arguments` may be a string, sent as it is; everything in an answer may be left out. `items` are
output items of the Responses API or blocks of Messages, sent as they are. `finish` is a word of the API's own. Beyond
the last answer (unless repeat_last) the status is 500 with "the script is at its end".
delay_ms is waited between two pieces.

GET /requests answers with the list of all requests so far, each {"path", "headers", "body",
"text"} (the body as it came), GET /connections with the number of connections that were made,
GET /v1/models with one model of vLLM, "sized", whose context is 12345.
"""

import argparse
import ctypes
import email.utils
import http.server
import json
import os
import re
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
# Only this name has a context: cases about other things do without one.
MODELS = {"data": [{"id": "sized", "owned_by": "vllm", "max_model_len": 12345}]}
PAGE = b"<!doctype html><html><head><title>Sign in</title></head><body>no</body></html>"


def event(value):
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def arguments_of(call):
    arguments = call.get("arguments", {})
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def pieces_of(answer):
    text = answer.get("text", "")
    return text if isinstance(text, list) else ([text] if text else [])


class Chat:
    """Chat Completions."""

    @staticmethod
    def chunk(delta, finish=None):
        """One streamed object with DELTA in it."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}

    @staticmethod
    def stream(answer):
        """The events of one whole streamed ANSWER (as in a script), as a list of bytes."""
        chunk, calls = Chat.chunk, answer.get("calls", [])
        events = [event(chunk({"role": "assistant", "content": None}))]
        if answer.get("thinking"):
            events.append(event(chunk({"reasoning_content": answer["thinking"]})))
        events += [event(chunk({"content": piece})) for piece in pieces_of(answer)]
        for index, call in enumerate(calls):
            begin = {
                "index": index,
                "id": call.get("id", f"call_{index}"),
                "type": "function",
                "function": {"name": call["tool"], "arguments": ""},
            }
            more = {"index": index, "function": {"arguments": arguments_of(call)}}
            events.append(event(chunk({"tool_calls": [begin]})))
            events.append(event(chunk({"tool_calls": [more]})))
        finish = answer.get("finish") or ("tool_calls" if calls else "stop")
        events.append(event(chunk({}, finish)))
        events.append(event({"choices": [], "usage": answer.get("usage") or USAGE}))
        events.append(b"data: [DONE]\n\n")
        return events

    @staticmethod
    def plain(answer):
        """The same as one object."""
        message = {"role": "assistant", "content": "".join(pieces_of(answer))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"object": "chat.completion", "choices": [choice], "usage": USAGE}

    @staticmethod
    def late_error(message):
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        return event({"error": {"code": 400, "message": message}, "choices": [choice]})

    @staticmethod
    def newest(request):
        """(is it a tool's result?, its text) of the newest message."""
        last = request["messages"][-1]
        return last["role"] == "tool", last["content"]


class Responses:
    """The Responses API."""

    @staticmethod
    def items(answer):
        """The output items of ANSWER."""
        items = list(answer.get("items", []))
        if answer.get("thinking"):
            summary = [{"type": "summary_text", "text": answer["thinking"]}]
            items.append({"id": "rs_0", "type": "reasoning", "summary": summary,
                          "encrypted_content": "c2VhbGVk"})
        if answer.get("text"):
            content = [{"type": "output_text", "text": "".join(pieces_of(answer)),
                        "annotations": []}]
            items.append({"id": "msg_0", "type": "message", "role": "assistant",
                          "status": "completed", "content": content})
        for index, call in enumerate(answer.get("calls", [])):
            items.append({"id": f"fc_{index}", "type": "function_call", "status": "completed",
                          "call_id": call.get("id", f"call_{index}"), "name": call["tool"],
                          "arguments": arguments_of(call)})
        return items

    @staticmethod
    def response(answer, status):
        counts = answer.get("usage") or {
            "input_tokens": USAGE["prompt_tokens"],
            "output_tokens": USAGE["completion_tokens"],
            "input_tokens_details": USAGE["prompt_tokens_details"],
        }
        response = {"id": "resp_0", "object": "response", "status": status, "error": None,
                    "output": Responses.items(answer), "usage": counts}
        if status == "incomplete":
            response["incomplete_details"] = {"reason": answer["finish"]}
        return response

    @staticmethod
    def pieces(item, answer):
        """The deltas of ITEM."""
        if item["type"] == "message":
            for piece in pieces_of(answer):
                yield {"type": "response.output_text.delta", "content_index": 0, "delta": piece}
        elif item["type"] == "reasoning":
            for index, part in enumerate(item.get("summary", [])):
                yield {"type": "response.reasoning_summary_text.delta", "summary_index": index,
                       "delta": part["text"]}
        elif item["type"] == "function_call":
            yield {"type": "response.function_call_arguments.delta", "delta": item["arguments"]}

    @staticmethod
    def stream(answer):
        status = "incomplete" if answer.get("finish") else "completed"
        created = {"id": "resp_0", "object": "response", "status": "in_progress", "output": []}
        values = [{"type": "response.created", "response": created},
                  {"type": "response.in_progress", "response": created}]
        for index, item in enumerate(Responses.items(answer)):
            begun = {k: v for k, v in item.items() if k not in ("content", "arguments", "summary")}
            values.append({"type": "response.output_item.added", "output_index": index,
                           "item": begun})
            values += [{"output_index": index, "item_id": item.get("id"), **piece}
                       for piece in Responses.pieces(item, answer)]
            values.append({"type": "response.output_item.done", "output_index": index,
                           "item": item})
        values.append({"type": "response." + status,
                       "response": Responses.response(answer, status)})
        return [f"event: {value['type']}\n".encode() + event({**value, "sequence_number": number})
                for number, value in enumerate(values)]

    @staticmethod
    def plain(answer):
        return Responses.response(answer, "completed")

    @staticmethod
    def late_error(message):
        return event({"type": "error", "code": "invalid_request", "message": message,
                      "param": None})

    @staticmethod
    def newest(request):
        last = request["input"][-1]
        if last["type"] == "message":
            return False, last["content"][-1]["text"]
        return True, last["output"]


class Messages:
    """The Messages API."""

    @staticmethod
    def input_of(call):
        """The arguments of CALL: an object, or the text as it is where that is no JSON."""
        try:
            return json.loads(arguments_of(call))
        except ValueError:
            return arguments_of(call)

    @staticmethod
    def blocks(answer):
        """The content of ANSWER."""
        blocks = list(answer.get("items", []))
        if answer.get("thinking"):
            blocks.append({"type": "thinking", "thinking": answer["thinking"],
                           "signature": "c2lnbmVk"})
        if answer.get("text"):
            blocks.append({"type": "text", "text": "".join(pieces_of(answer))})
        for index, call in enumerate(answer.get("calls", [])):
            blocks.append({"type": "tool_use", "id": call.get("id", f"toolu_{index}"),
                           "name": call["tool"], "input": Messages.input_of(call)})
        return blocks

    @staticmethod
    def message(answer):
        counts = answer.get("usage") or {
            "input_tokens": USAGE["prompt_tokens"] - 4,
            "cache_read_input_tokens": 4,
            "output_tokens": USAGE["completion_tokens"],
        }
        blocks = Messages.blocks(answer)
        calls = any(block["type"] == "tool_use" for block in blocks)
        return {"id": "msg_0", "type": "message", "role": "assistant", "model": "fake",
                "content": blocks, "stop_sequence": None, "usage": counts,
                "stop_reason": answer.get("finish") or ("tool_use" if calls else "end_turn")}

    @staticmethod
    def pieces(block, answer):
        """BLOCK as it begins, and its deltas."""
        kind, begun, deltas = block["type"], dict(block), []
        if kind == "text":
            begun["text"] = ""
            words = pieces_of(answer) if "text" in answer else [block["text"]]
            deltas = [{"type": "text_delta", "text": piece} for piece in words]
        elif kind == "thinking":
            begun.update(thinking="", signature="")
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]},
                      {"type": "signature_delta", "signature": block["signature"]}]
        elif kind in ("tool_use", "server_tool_use"):
            begun["input"] = {}
            text = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": piece}
                      for piece in ("", text[:5], text[5:])]
        return begun, deltas

    @staticmethod
    def stream(answer):
        message = Messages.message(answer)
        usage = message["usage"]
        begun = {**message, "content": [], "stop_reason": None,
                 "usage": {**usage, "output_tokens": 1}}
        values = [{"type": "message_start", "message": begun}, {"type": "ping"}]
        for index, block in enumerate(message["content"]):
            start, deltas = Messages.pieces(block, answer)
            values.append({"type": "content_block_start", "index": index,
                           "content_block": start})
            values += [{"type": "content_block_delta", "index": index, "delta": delta}
                       for delta in deltas]
            values.append({"type": "content_block_stop", "index": index})
        values.append({"type": "message_delta",
                       "delta": {"stop_reason": message["stop_reason"]},
                       "usage": {"output_tokens": usage["output_tokens"]}})
        values.append({"type": "message_stop"})
        return [f"event: {value['type']}\n".encode() + event(value) for value in values]

    @staticmethod
    def plain(answer):
        return Messages.message(answer)

    @staticmethod
    def late_error(message):
        error = {"type": "invalid_request_error", "message": message}
        return b"event: error\n" + event({"type": "error", "error": error})

    @staticmethod
    def newest(request):
        last = request["messages"][-1]["content"][-1]
        result = last["type"] == "tool_result"
        return result, last["content" if result else "text"]


APIS = {"chat/completions": Chat, "responses": Responses, "messages": Messages}


def answers_in(messages, again):
    """How many answers a conversation (of Chat Completions) holds, but for those of which a
    result fits AGAIN."""
    counts = []
    for message in messages:
        if message["role"] == "assistant":
            counts.append(1)
        elif message["role"] == "tool" and again and re.search(again, message["content"]):
            counts[-1] = 0
    return sum(counts)


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
        """How often NAME, of one API, was asked for before."""
        with self.lock:
            count = self.seen.get(name, 0)
            self.seen[name] = count + 1
            return count

    def scripted(self, request):
        answers = self.script.get("answers", [])
        with self.lock:
            at = self.next_answer
            self.next_answer += 1
        if self.script.get("by_history"):
            at = answers_in(request.get("messages", []), self.script.get("again"))
        if at < len(answers):
            return answers[at]
        if answers and self.script.get("repeat_last"):
            return answers[-1]
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    state = None
    api = Chat

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
        more = {"type": "error", "request_id": "req_0"} if self.api is Messages else {}
        body = json.dumps({"error": error, **more}).encode()
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
            known = {"/requests": self.state.requests, "/connections": self.state.connections,
                     "/v1/models": MODELS}
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
                {"path": self.path, "headers": dict(self.headers), "body": request,
                 "text": body.decode("utf-8", "replace")}
            )
        name = self.path.strip("/")
        for end, api in APIS.items():
            if name.endswith(end):
                self.api = api
                name = name.removesuffix(end).strip("/").removesuffix("v1").strip("/")
                break
        try:
            if name:
                self.behave(name, request)
            else:
                self.follow_script(request)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def follow_script(self, request):
        answer = self.state.scripted(request)
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
            self.stream(self.api.stream(answer), answer.get("delay_ms", 0) / 1000)

    # The parts it can play.

    def behave(self, name, request):
        count = self.state.times((self.api, name))
        if name.startswith("file/"):
            path = os.path.join(STREAMS, os.path.basename(name) + ".sse")
            with open(path, "rb") as file:
                self.stream([file.read()])
            return
        base = name.partition("-")[0]
        if base.isdigit():
            self.play_status(int(base), name, count)
            return
        play = getattr(self, "play_" + name.replace("-", "_"), None)
        if play:
            play(request, count)
        else:
            self.refuse(404, f"no behaviour is called {name}")

    def key(self):
        """The header that has the key, as it came."""
        return self.headers.get("x-api-key") or self.headers.get("authorization")

    def play_status(self, status, name, count):
        message = f"the part played is {name}"
        again = {"retry-after-ms": "1"}
        times = {"once": 1, "twice": 2, "again": 1, "both": 1}.get(name.partition("-")[2])
        if times is not None and count >= times:
            self.play_normal(None, count)
        elif name == "401-echo":
            self.refuse(401, f"wrong key: {self.key()}")
        elif name == "429-wait":
            self.refuse(status, message, {"retry-after": "30"})
        elif name == "429-date":
            date = email.utils.formatdate(time.time() + 30, usegmt=True)
            self.refuse(status, message, {"retry-after": date})
        elif name == "429-both":
            self.refuse(status, message, {"retry-after": "3600", **again})
        elif name == "429-silent":
            self.refuse(status, message)
        elif name == "429-long":
            self.refuse(status, message, {"retry-after": "3600"})
        elif name == "500-no":
            self.refuse(status, message, {"x-should-retry": "false"})
        elif name == "400-again":
            self.refuse(status, message, {"x-should-retry": "true", **again})
        else:
            self.refuse(status, message, again)

    def play_normal(self, _request, _count):
        self.stream(self.api.stream({"text": PIECES}))

    def play_echo(self, request, _count):
        is_result, text = self.api.newest(request)
        self.stream(self.api.stream({"text": ["You said: ", "" if is_result else text]}))

    def play_calls(self, request, _count):
        is_result, text = self.api.newest(request)
        if is_result:
            self.stream(self.api.stream({"text": ["The tool said: ", text]}))
            return
        call = {"id": "call_look", "tool": "list_files", "arguments": {"path": "."}}
        self.stream(self.api.stream({"text": "I look around.", "thinking": "Where am I?",
                                     "calls": [call]}))

    def play_plain(self, _request, _count):
        body = json.dumps(self.api.plain({"text": PIECES}))
        self.whole(200, "application/json", body.encode())

    def play_drip(self, _request, _count):
        data = b"".join(self.api.stream({"text": PIECES}))
        self.stream([data[i : i + 1] for i in range(len(data))], 0.0001)

    def play_flood(self, _request, _count):
        self.stream(self.api.stream({"text": ["word "] * 20000}))

    def half(self):
        events = self.api.stream({"text": PIECES})
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

    def play_comments(self, _request, _count):
        self.begin(200, "text/event-stream")
        while True:
            self.piece(b": still at work\n" * 4096)

    def play_pings(self, _request, _count):
        self.begin(200, "text/event-stream")
        while True:
            self.piece(b'event: ping\ndata: {"type": "ping"}\n\n')
            time.sleep(0.01)

    def play_header_drip(self, _request, _count):
        self.send_response(200)
        while True:
            self.send_header("x-more", "yes")
            self.flush_headers()
            time.sleep(0.01)

    def play_stall(self, _request, _count):
        self.half()
        self.wait_for_client_to_go()

    def play_hang(self, _request, _count):
        self.wait_for_client_to_go()

    def play_open_end(self, _request, _count):
        self.stream(self.api.stream({"text": PIECES}), end=False)
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
        self.piece(self.api.late_error("the provider behind gave up"))
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


class ModelServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that is killed is none of our faults."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


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
    server = ModelServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=end_with_stdin, daemon=True).start()
    print(server.server_address[1], flush=True)
    server.serve_forever(poll_interval=3600)


if __name__ == "__main__":
    main()
