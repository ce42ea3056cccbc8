#!/usr/bin/env python3
"""mcp_server.py [MODE]: an MCP server over standard input and output for tests, well-behaved unless told.

Modes: good, modern, silent (never answers), dies (before it lists), flood (rubbish without end),
deep (JSON nested too deep), ids (answers to nothing), huge (a line over every bound), cursors
(pages without an end), deaf (never reads), stderr (says much there, then dies), late (answers
when there is a file "go" in its folder), many (twice a hundred tools more), rich (resources and
prompts), modern-rich, poor (prompts that it does not list), forms (a longer one), modern-forms,
address (asks to open one), samples (wants a model to be asked), samples-on (again and again).
"""
import json
import os
import select
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
RICH = {"resources": {}, "prompts": {}} if MODE in ("rich", "modern-rich", "poor") else {}
POOR = MODE == "poor"
FORMS, ADDRESS = MODE.endswith("forms"), MODE == "address"
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": f"Line {line} of what is asked."}}
                         for line in range(40)], "maxTokens": 100}
MODE = "modern" if MODE.startswith("modern-") else MODE
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NONE = {"type": "object"}
TOOLS = [
    {"name": "echo", "description": "Say it again.", "title": "Echo", "inputSchema": TEXT,
     "annotations": {"readOnlyHint": True}},
    {"name": "env.of", "description": "Show a variable.", "inputSchema": TEXT},
    {"name": "where", "description": "Show the folder, and write a file there.",
     "inputSchema": NONE},
    {"name": "picture", "description": "Show a picture.", "inputSchema": NONE},
    {"name": "plant", "description": "Make a hook of git.", "inputSchema": NONE},
    {"name": "late.picture", "description": "Show a picture after two seconds.", "inputSchema": NONE},
    {"name": "refuse", "description": "Fail.", "inputSchema": NONE},
    {"name": "slow", "description": "Count for ever.", "inputSchema": NONE},
    {"name": "die", "description": "End.", "inputSchema": NONE},
    {"name": "change", "description": "Have other tools.", "inputSchema": TEXT},
    {"name": "ask", "description": "Ask for a name.", "inputSchema": NONE},
    {"name": "linger", "description": "Answer when there is a file.", "inputSchema": NONE},
    {"name": "reach", "description": "Is there a proxy?", "inputSchema": NONE},
    {"name": "odd", "description": "Of another age.",
     "inputSchema": {"$schema": "http://json-schema.org/draft-04/schema#"}},
    {"name": "x" * 80, "description": "Long.", "inputSchema": NONE},
]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def wait_for_file(name):
    while not os.path.exists(name):
        select.select([], [], [], 0.02)


LATE = {"name": "late", "description": "Was not there.", "inputSchema": NONE}
LISTENER = []


def change(how):
    """Have a tool more, or less, or one that says something else of itself; and say so."""
    while how == "for ever":
        send({"method": "notifications/tools/list_changed"})
    if how == "more":
        TOOLS.append(LATE)
    elif how == "less":
        TOOLS.remove(LATE)
    else:
        TOOLS[0] = {**TOOLS[0], "description": how}
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": LISTENER[0]}} if LISTENER else {}
    if MODE != "modern" or LISTENER:
        send({"method": "notifications/tools/list_changed", "params": meta})
    return text("changed")


FORM = {"message": "Who \u202eare you?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}},
                            "required": ["name"]}}
if FORMS:
    FORM["requestedSchema"]["properties"].update({
        "age": {"type": "integer", "title": "Your age", "minimum": 18},
        "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
        "news": {"type": "boolean", "description": "Letters each week"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}}})
if ADDRESS:
    FORM = {"mode": "url", "message": "Log in", "url": "https://login.example/x?y=1",
            "elicitationId": "e1"}


def ask(params):
    """The name that a person gives, by the means of the era."""
    if MODE == "modern":
        answers = params.get("inputResponses")
        if answers is None:
            able = params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
            if "elicitation" not in able:
                return text("nobody to ask")
            return {"resultType": "input_required", "requestState": "kept",
                    "inputRequests": {"who": {"method": "elicitation/create", "params": FORM}}}
        assert params["requestState"] == "kept"
        return text(json.dumps(answers["who"], sort_keys=True))
    if MODE.startswith("samples"):
        send({"id": "q1", "method": "sampling/createMessage", "params": SAMPLING})
    else:
        send({"id": "q1", "method": "elicitation/create", "params": FORM})
    heard = []
    for line in sys.stdin:
        message = json.loads(line)
        if not str(message.get("id")).startswith("q"):
            continue
        heard.append(message.get("result", message.get("error")))
        if MODE == "samples-on" and len(heard) < 10:
            send({"id": f"q{len(heard) + 1}", "method": "sampling/createMessage", "params": SAMPLING})
            continue
        return text(json.dumps(heard if MODE == "samples-on" else heard[0], sort_keys=True))
    return text("gone")


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def call(message):
    params = message["params"]
    name, arguments = params["name"], params["arguments"]
    if name == "echo":
        return text(arguments["text"] + params["_meta"].get("traceparent", ""))
    if name == "env.of":
        return text(os.environ.get(arguments["text"], "(unset)"))
    if name == "where":
        with open("made-by-server", "w", encoding="utf-8") as file:
            file.write("x")
        return text(os.getcwd())
    if name in ("picture", "late.picture"):
        time.sleep(2 if name == "late.picture" else 0)
        return {"content": [{"type": "text", "text": "Look:"},
                            {"type": "image", "data": "AAAA", "mimeType": "image/png"}]}
    if name == "plant":
        with open("called", "w", encoding="utf-8"):
            pass
        while not os.path.exists("go"):
            time.sleep(0.02)
        os.makedirs("sub/.git/hooks", exist_ok=True)
        for part in "objects", "refs":
            os.makedirs(f"sub/.git/{part}", exist_ok=True)
        with open("sub/.git/HEAD", "w", encoding="utf-8") as file:
            file.write("ref: refs/heads/main\n")
        with open("sub/.git/hooks/pre-commit", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod("sub/.git/hooks/pre-commit", 0o755)
        return text("planted")
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
    if name == "change":
        return change(arguments["text"])
    if name == "ask":
        return ask(params)
    if name == "late":
        return text("here I am")
    if name == "linger":
        wait_for_file("go")
        return text("at last")
    if name == "reach":
        return text("HTTP_PROXY" if os.environ.get("HTTP_PROXY") else "none")
    if name == "die":
        print("I go now", file=sys.stderr, flush=True)
        if arguments:
            # Without the end of its line.
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": text(arguments["text"])}),
                  end="", flush=True)
        sys.exit(7)
    raise ValueError(name)


def answer(message):
    method = message.get("method")
    if MODE == "modern" and method == "server/discover":
        return {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": True}, **RICH}}
    if MODE != "modern" and method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, **RICH},
                "serverInfo": {"name": "fake", "version": "1"}}
    if method == "tools/list":
        if MODE == "dies":
            sys.exit(3)
        if MODE == "cursors":
            return {"tools": [], "nextCursor": os.urandom(8).hex()}
        more = {"resultType": "complete"} if MODE == "modern" else {}
        if MODE == "many":
            return {"tools": [{**LATE, "name": f"n{i}"} for i in range(200)] + TOOLS}
        return {"tools": TOOLS, **more}
    if method == "tools/call":
        return call(message)
    if RICH and not (POOR and method == "prompts/list"):
        return rich(method, message.get("params", {}))
    return None


RESOURCES = {
    "note://one": {"mimeType": "text/plain", "text": "First note."},
    "note://dot": {"mimeType": "image/png", "blob": "AAAA"},
    "note://raw": {"mimeType": "application/x-raw", "blob": "AAEC"},
    "note://long": {"mimeType": "text/plain", "text": "x" * 79 + "\n"},
    "note://large": {"mimeType": "application/x-raw", "blob": "AAAA" * 100000},
    "note://h:80": {"text": "By number."},
}


def rich(method, params):
    """Resources and prompts; None: there is nothing of that kind."""
    more = {"resultType": "complete"} if MODE == "modern" else {}
    if method == "resources/list":
        return {"resources": [{"uri": uri, "name": f"N\u202e{uri[7:]}", "description": "A note."}
                              for uri in RESOURCES], "nextCursor": "more", **more}
    if method == "resources/read" and params["uri"] in RESOURCES:
        found = RESOURCES[params["uri"]]
        times = 5000 if params["uri"] == "note://long" else 1
        return {"contents": [{"uri": params["uri"], **found}] * times, **more}
    if method == "prompts/list":
        return {"prompts": [
            {"name": "greet", "description": "Greet somebody.",
             "arguments": [{"name": "who", "required": True}, {"name": "how"}]},
            {"name": "no name"}, {"name": "empty"}], **more}
    if method == "prompts/get" and params["name"] == "greet":
        said = params["arguments"]
        return {"messages": [
            {"role": "user", "content": {"type": "text", "text": f"Greet {said['who']}"}},
            {"role": "user", "content": {"type": "text", "text": f"and say {said.get('how', 'hi')}."}}],
                **more}
    if method == "prompts/get" and params["name"] == "empty":
        return {"messages": [], **more}
    return None


def misbehave():
    if MODE == "late":
        wait_for_file("go")
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
        if message.get("method") == "subscriptions/listen":
            LISTENER[:] = [message["id"]]
            send({"method": "notifications/subscriptions/acknowledged",
                  "params": {"notifications": {"toolsListChanged": True}}})
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
