#!/usr/bin/env python3
"""mcp_server.py [MODE]: an MCP server over standard input and output for tests, well-behaved unless told.

Modes: good, modern, silent (never answers), dies (before it lists), flood (rubbish without end),
deep (JSON nested too deep), ids (answers to nothing), huge (a line over every bound), cursors
(pages without an end), deaf (never reads), stderr (says much there, then dies).
"""
import json
import os
import select
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NONE = {"type": "object"}
TOOLS = [
    {"name": "echo", "description": "Say it again.", "title": "Echo", "inputSchema": TEXT,
     "annotations": {"readOnlyHint": True}},
    {"name": "env.of", "description": "Show a variable.", "inputSchema": TEXT},
    {"name": "where", "description": "Show the folder, and write a file there.",
     "inputSchema": NONE},
    {"name": "picture", "description": "Show a picture.", "inputSchema": NONE},
    {"name": "refuse", "description": "Fail.", "inputSchema": NONE},
    {"name": "slow", "description": "Count for ever.", "inputSchema": NONE},
    {"name": "die", "description": "End.", "inputSchema": NONE},
    {"name": "odd", "description": "Of another age.",
     "inputSchema": {"$schema": "http://json-schema.org/draft-04/schema#"}},
    {"name": "x" * 80, "description": "Long.", "inputSchema": NONE},
]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def call(message):
    params = message["params"]
    name, arguments = params["name"], params["arguments"]
    if name == "echo":
        return text(arguments["text"])
    if name == "env.of":
        return text(os.environ.get(arguments["text"], "(unset)"))
    if name == "where":
        with open("made-by-server", "w", encoding="utf-8") as file:
            file.write("x")
        return text(os.getcwd())
    if name == "picture":
        return {"content": [{"type": "text", "text": "Look:"},
                            {"type": "image", "data": "AAAA", "mimeType": "image/png"}]}
    if name == "refuse":
        return text("I would rather not", isError=True)
    if name == "slow":
        token = params["_meta"]["progressToken"]
        for step in range(10000):
            send({"method": "notifications/progress",
                  "params": {"progressToken": token, "progress": step}})
            # Whatever comes is that nobody waits any more.
            if select.select([sys.stdin], [], [], 0.05)[0]:
                return text("stopped")
    if name == "die":
        print("I go now", file=sys.stderr, flush=True)
        sys.exit(7)
    raise ValueError(name)


def answer(message):
    method = message.get("method")
    if MODE == "modern" and method == "server/discover":
        return {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}}
    if MODE != "modern" and method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"}}
    if method == "tools/list":
        if MODE == "dies":
            sys.exit(3)
        if MODE == "cursors":
            return {"tools": [], "nextCursor": os.urandom(8).hex()}
        more = {"resultType": "complete"} if MODE == "modern" else {}
        return {"tools": TOOLS, **more}
    if method == "tools/call":
        return call(message)
    return None


def misbehave():
    if MODE == "silent":
        time.sleep(1000)
    if MODE == "deaf":
        time.sleep(1000)
    while MODE == "flood":
        sys.stdout.write("[1,\n" * 1000)
    if MODE == "deep":
        sys.stdout.write("[" * 100000 + "\n")
    if MODE == "huge":
        sys.stdout.write("x" * (20 << 20))
    if MODE == "ids":
        for number in range(5000):
            send({"id": number + 1000, "result": {}})
    if MODE == "stderr":
        sys.stderr.write("noise " * 100000 + "\nthe end is near\n")
        sys.exit(1)
    sys.stdout.flush()


def main():
    misbehave()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message)
        if result is None:
            send({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
        else:
            send({"id": message["id"], "result": result})


try:
    main()
except BrokenPipeError:
    os._exit(1)
