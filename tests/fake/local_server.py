"""Model servers of one's own machine, and strangers on their ports, for tests.

    with Server("ollama") as server:
        server.url, server.seen    the address; what was asked for: (method, path, body)

What each says of itself has the members that the real program's answer has; Ollama answers
/api/chat too: a call of list_files, and once it has the result "The tool said so.". The strangers:
silent (takes the connection, says nothing), endless (a body without end), slow (a byte at a
time), garbage (no HTTP), garbled (HTTP, no JSON), failing (500), redirect (to `elsewhere`),
deep (JSON nested beyond reason), headers (header lines without end), locked (401).
"""

import http.server
import json
import threading
import time

LLAMA_CPP = {
    "/props": {
        "default_generation_settings": {"id": 0, "n_ctx": 32768, "params": {}},
        "total_slots": 1,
        "model_alias": "",
        "model_path": "/models/qwen3-coder-30b.gguf",
        "chat_template": "{{ messages }}",
        "chat_template_caps": {"supports_tools": True, "supports_tool_calls": True},
        "build_info": "b9999-abc",
    },
    "/v1/models": {
        "object": "list",
        "data": [
            {
                "id": "qwen3-coder-30b.gguf",
                "object": "model",
                "owned_by": "llamacpp",
                "meta": {"n_ctx_train": 262144, "n_params": 30},
            }
        ],
    },
}
LLAMA_ROUTER = {
    "/props": {
        "role": "router",
        "model_alias": "llama-server",
        "model_path": "none",
        "default_generation_settings": {"params": None, "n_ctx": 0},
    },
    "/v1/models": {
        "object": "list",
        "data": [
            {
                "id": "alpha",
                "object": "model",
                "owned_by": "llamacpp",
                "status": {"value": "loaded", "args": ["/usr/bin/llama-server"]},
                "context_length": 131072,
                "meta": {"n_ctx": 16384, "n_ctx_train": 131072},
            },
            {
                "id": "beta",
                "object": "model",
                "owned_by": "llamacpp",
                "status": {"value": "unloaded", "args": ["/usr/bin/llama-server"]},
                "context_length": 40960,
            },
        ],
    },
}
LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
OLLAMA = {
    "/api/tags": {
        "models": [
            {"name": "qwen3:8b", "model": "qwen3:8b", "digest": "a", "details": {}},
            {"name": "embed:latest", "model": "embed:latest", "digest": "b", "details": {}},
            {"name": "old:7b", "model": "old:7b", "digest": "c", "details": {}},
        ]
    },
    "/api/ps": {
        "models": [{"name": "qwen3:8b", "model": "qwen3:8b", "context_length": 4096}]
    },
    "/v1/models": {
        "object": "list",
        "data": [{"id": "qwen3:8b", "object": "model", "owned_by": "library"}],
    },
}
OLLAMA_DETAILS = {
    "qwen3:8b": {
        "capabilities": ["completion", "tools", "thinking"],
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
        "parameters": "temperature 0.6",
    },
    "embed:latest": {
        "capabilities": ["embedding"],
        "model_info": {"bert.context_length": 512},
    },
    "old:7b": {"capabilities": ["completion"], "model_info": {"llama.context_length": 8192}},
}
LM_STUDIO = {
    "/api/v0/models": {
        "object": "list",
        "data": [
            {
                "id": "qwen/qwen3-4b",
                "object": "model",
                "type": "llm",
                "state": "loaded",
                "max_context_length": 131072,
                "loaded_context_length": 8192,
                "capabilities": ["tool_use"],
            },
            {
                "id": "google/gemma-3-4b",
                "object": "model",
                "type": "vlm",
                "state": "not-loaded",
                "max_context_length": 131072,
                "capabilities": [],
            },
            {"id": "nomic", "type": "embeddings", "state": "not-loaded"},
        ],
    },
    "/v1/models": {"object": "list", "data": [{"id": "qwen/qwen3-4b", "object": "model"}]},
}
VLLM = {
    "/v1/models": {
        "object": "list",
        "data": [
            {
                "id": "Qwen/Qwen3-32B",
                "object": "model",
                "owned_by": "vllm",
                "root": "Qwen/Qwen3-32B",
                "max_model_len": 40960,
            }
        ],
    },
}
OTHER = {"/v1/models": {"data": [{"id": "one; echo a"}, {"id": "two\x1b[31m\n"}]}}
PAGES = {
    "llama.cpp": LLAMA_CPP,
    "router": LLAMA_ROUTER,
    "ollama": OLLAMA,
    "lm-studio": LM_STUDIO,
    "vllm": VLLM,
    "other": OTHER,
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def say(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def answer(self, method):
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.seen.append((method, self.path, body))
        try:
            self.play(body)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def do_GET(self):
        self.answer("GET")

    def do_POST(self):
        self.answer("POST")

    def play(self, body):
        part = self.server.part
        stranger = getattr(self, "be_" + part, None)
        if stranger:
            self.close_connection = True
            stranger()
        elif part == "ollama" and self.path == "/api/show" and body:
            details = OLLAMA_DETAILS.get(body["model"])
            self.say(200 if details else 404, details or {"error": "model not found"})
        elif part == "ollama" and self.path == "/api/chat" and body:
            self.chat(body)
        elif part == "loading":
            self.say(503, LOADING)
        elif part == "locked":
            self.say(401, {"error": {"message": "Invalid API key"}})
        elif self.path in PAGES[part]:
            self.say(200, PAGES[part][self.path])
        elif part == "lm-studio":
            self.say(200, {"error": f"Unexpected endpoint or method. (GET {self.path})"})
        else:
            self.say(404, {"error": "not found"})

    def chat(self, body):
        """One line after the other, as Ollama streams."""
        told = body["messages"][-1]["role"] == "tool"
        call = {"function": {"name": "list_files", "arguments": {"path": "."}}}
        lines = [
            {"message": {"role": "assistant", "content": "", "thinking": "Hm."}},
            {"message": {"role": "assistant", "content": "The tool said so."}} if told else
            {"message": {"role": "assistant", "content": "", "tool_calls": [call]}},
            {"message": {"role": "assistant", "content": ""}, "done": True,
             "done_reason": "stop", "prompt_eval_count": 40, "eval_count": 9},
        ]
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for line in lines:
            data = json.dumps({"model": body["model"], "done": False, **line}).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    # Strangers.

    def be_silent(self):
        self.server.over.wait(20)

    def be_endless(self):
        self.send_response(200)
        self.end_headers()
        while not self.server.over.is_set():
            self.wfile.write(b'{"data":[' + b'{"id":"x"},' * 10000)

    def be_slow(self):
        self.send_response(200)
        self.send_header("content-length", "1000")
        self.end_headers()
        while not self.server.over.is_set():
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.01)

    def be_garbage(self):
        self.wfile.write(b"\x00\xff\x13SSH-2.0 hello\r\n" * 100)

    def be_garbled(self):
        self.say(200, b'{"data": [{"id": "x", "owned_by": \xff\xfe')

    def be_failing(self):
        self.say(500, {"error": "no"})

    def be_redirect(self):
        self.say(307, b"", [("location", self.server.elsewhere + self.path)])

    def be_deep(self):
        self.say(200, b'{"data":' + b"[" * 100000)

    def be_headers(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not self.server.over.is_set():
            self.wfile.write(b"x-more: and more\r\n" * 1000)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, part, elsewhere=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.part = part
        self.elsewhere = elsewhere
        self.seen = []
        self.over = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def handle_error(self, *_):
        """A client that goes in the middle is what strangers are for."""

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.server_close()
        self.thread.join()
