#!/usr/bin/env python3
"""lsp_server.py [MODE]: a language server for tests. A line with BAD in it is an error, one with ODD
a warning; the message is the line's last word.

Modes: good, unversioned (names no version), late (says what a change has made wrong only when
nothing was asked for 2 s, and makes the file "published"), stale (says it of the version before), mute (never answers),
flood (says the same without end), huge (a message that is too long), lies (a length that is none),
crash (ends at the first change), many (200 errors, with long messages), odd (asks, and tells what
no client knows), refuses (answers every question with an error), unable (answers `initialize` with one).
"""
import json
import os
import select
import signal
import sys

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
DOCUMENTS = {}
HELD = []


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    os.write(1, b"Content-Length: %d\r\n\r\n" % len(body))
    rest = body
    while rest:
        rest = rest[os.write(1, rest):]


def receive():
    size = None
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
        if not line.strip():
            return json.loads(sys.stdin.buffer.read(size))


def findings_of(text):
    found = []
    for number, line in enumerate(text.split("\n")):
        for word, severity in ("BAD", 1), ("ODD", 2):
            if word in line:
                # Columns are counted in units of UTF-16.
                start = len(line[:line.index(word)].encode("utf-16-le")) // 2
                found.append({"range": {"start": {"line": number, "character": start},
                                        "end": {"line": number, "character": start + 3}},
                              "severity": severity, "message": line.split()[-1] + "\nand more"})
    if MODE == "many":
        found *= 200
        for number, one in enumerate(found):
            found[number] = {**one, "message": f"{number} " + "long " * 1000}
    return found


def publish(uri, version, text):
    params = {"uri": uri, "version": version, "diagnostics": findings_of(text)}
    if MODE == "unversioned":
        del params["version"]
    send({"method": "textDocument/publishDiagnostics", "params": params})


def changed(uri, version, text):
    DOCUMENTS[uri] = text
    if MODE == "crash" and version > 1:
        os.write(2, b"I am \x1b[31mlost\n")
        sys.exit(3)
    if MODE == "late" and version > 1:
        HELD.append((uri, version, text))
    elif MODE == "stale" and version > 1:
        publish(uri, version - 1, text)
    else:
        publish(uri, version, text)


def answer(message):
    method, params = message["method"], message.get("params") or {}
    document = params.get("textDocument", {})
    uri = document.get("uri")
    if method == "initialize":
        result = {"capabilities": {"textDocumentSync": 1, "definitionProvider": True}}
    elif method == "textDocument/definition":
        word = DOCUMENTS[uri].split("\n")[params["position"]["line"]].encode("utf-16-le")
        word = word[2 * params["position"]["character"]:].decode("utf-16-le").split()
        lines = DOCUMENTS[uri].split("\n")
        result = [{"uri": uri, "range": {"start": {"line": number, "character": 0}}}
                  for number, line in enumerate(lines) if word and line == "def " + word[0]]
    elif method == "textDocument/references":
        result = [{"targetUri": "file:///usr/include/a%20b.h",
                   "targetSelectionRange": {"start": {"line": 1, "character": 2}}},
                  {"uri": "https://example.com/", "range": None}]
    elif method == "textDocument/documentSymbol":
        result = [{"name": "outer", "kind": 5, "selectionRange": {"start": {"line": 0}},
                   "children": [{"name": "in\nner", "kind": 12,
                                 "selectionRange": {"start": {"line": 1}}}]},
                  {"name": "flat", "kind": 99, "location": {"range": {"start": {"line": 2}}}}]
    else:
        result = None
    if MODE == "unable":
        send({"id": message["id"], "error": {"code": -32603, "message": "No valid \x1b[1mtsserver was found. Exiting."}})
    elif MODE == "refuses" and method != "initialize":
        send({"id": message["id"], "error": {"code": -1, "message": "not \x1b[1mtoday"}})
    else:
        send({"id": message["id"], "result": result})


def handle(message):
    method, params = message.get("method"), message.get("params") or {}
    if method == "textDocument/didOpen":
        document = params["textDocument"]
        changed(document["uri"], document["version"], document["text"])
    elif method == "textDocument/didChange":
        document = params["textDocument"]
        changed(document["uri"], document["version"], params["contentChanges"][0]["text"])
    elif method is None and message.get("id") == "conf":
        assert message["result"] == [None, None], message
        send({"id": "unknown", "method": "window/blink", "params": {}})
    elif method is None and message.get("id") == "unknown":
        assert message["error"]["code"] == -32601, message
        with open("asked", "w", encoding="utf-8") as file:
            file.write("both\n")
    elif "id" in message and method:
        answer(message)
    elif method == "initialized" and MODE == "odd":
        send({"method": "window/logMessage", "params": [1, 2]})
        send({"id": 4711, "result": {}})
        send({"id": "conf", "method": "workspace/configuration",
              "params": {"items": [{}, {}]}})


def ended(*_):
    with open("ended", "w", encoding="utf-8") as file:
        file.write("by a signal\n")
    os._exit(0)


def main():
    signal.signal(signal.SIGTERM, ended)
    if MODE == "mute":
        while sys.stdin.buffer.read(65536):
            pass
        return
    while True:
        if HELD and not select.select([0], [], [], 2)[0]:
            publish(*HELD.pop())
            with open("published", "w", encoding="utf-8") as file:
                file.write("yes\n")
        message = receive()
        handle(message)
        if MODE in ("lies", "huge", "flood") and message.get("method") == "textDocument/didOpen":
            if MODE == "flood":
                body = json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"text": "x" * 1000000}}).encode()
                while True:
                    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            os.write(1, b"Content-Length: 99999999999\r\n\r\n" if MODE == "huge"
                     else b"Content-Length: twelve\r\n\r\n")


main()
