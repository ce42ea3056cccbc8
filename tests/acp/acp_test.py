#!/usr/bin/env python3
"""glovebox acp: whole conversations of an editor, refusals, unsaved texts, and a stop at every point.

acp_test.py TAP_FOLDER MCP_FOLDER GLOVEBOX

client.py holds every message against the schema and the rules of order; a case adds what it expects. The words of
the model are recordings (replay:FILE), tools and cell are real.
"""
import base64
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib

sys.dont_write_bytecode = True
sys.path[1:1] = [sys.argv[1], sys.argv[2]]
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "fake"))
import http_server  # noqa: E402, pylint: disable=wrong-import-position
import tap  # noqa: E402, pylint: disable=wrong-import-position
from place import outside as folder_outside  # noqa: E402, pylint: disable=wrong-import-position
from client import LATER, SCHEMA, Client, Failure, Refused, results, said, text_of  # noqa: E402, pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[3])
SESSIONS = 16
PAGE = 50
LINE_MAX = 16 << 20
END_SECONDS = 2
CANCEL_SECONDS = 0.1
SLOW_SECONDS = 3  # all is done in less by a session that waits for nobody
PNG = base64.b64encode(
    b"\x89PNG\r\n\x1a\n" + b"".join(
        len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
        for kind, data in ((b"IHDR", b"\0\0\0\1\0\0\0\1\x08\0\0\0\0"), (b"IDAT", zlib.compress(b"\0\0")), (b"IEND", b"")))
).decode()
FS = {"fs": {"readTextFile": True, "writeTextFile": True}}


def call(tool, **arguments):
    return {"tool": tool, "arguments": arguments}


def turn(text="", *calls, **more):
    return {**({"text": text} if text else {}), **({"calls": list(calls)} if calls else {}), **more}


class Desk:
    """A home, a workspace, and agents of editors that work there."""

    def __init__(self, folder):
        self.home, self.work = os.path.join(folder, "home"), os.path.join(folder, "work")
        self.folder, self.scripts, self.clients = folder, 0, []
        os.mkdir(self.home)
        os.mkdir(self.work)
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.home, "LANG": "C.UTF-8"}
        for name, value in os.environ.items():
            if name.startswith(("ASAN_", "UBSAN_", "LSAN_")):
                self.environment[name] = value

    def script(self, *turns):
        """The name of a model that says TURNS."""
        self.scripts += 1
        path = os.path.join(self.folder, f"script{self.scripts}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"name": "test", "turns": list(turns)}, file)
        return f"replay:{path}"

    def start(self, *turns, options=(), answers=None, capabilities=None, **more):
        model = ["--model", self.script(*turns)] if turns else []
        client = Client([PROGRAM, "acp", *model, *options], answers, capabilities, env=self.environment,
                        cwd=self.folder, **more)
        self.clients.append(client)
        return client

    def open(self, *turns, **more):
        """A client with a session."""
        client = self.start(*turns, **more)
        client.initialize()
        return client, client.new(self.work)

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()


@contextlib.contextmanager
def desk():
    # What lies in the cell's own /tmp is not outside, and would not be asked about.
    with tempfile.TemporaryDirectory(dir=folder_outside(), prefix="acp-") as folder:
        made = Desk(os.path.realpath(folder))
        try:
            yield made
        finally:
            for client in made.clients:
                client.kill()


def at_desk(function):
    def case():
        with desk() as made:
            function(made)
    case.__name__ = function.__name__
    return tap.case(case)


def descendants(parent):
    """The processes below PARENT, cells and all."""
    below = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="latin-1") as file:
                below.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
    found, todo = [], [parent]
    while todo:
        found += below.get(todo[-1], [])
        todo += below.get(todo.pop(), [])
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def all_end(pids, since):
    """Every one of PIDS has ended, in time."""
    while any(is_alive(pid) for pid in pids):
        assert not tap.is_late(time.monotonic() - since, END_SECONDS + 1), [
            pid for pid in pids if is_alive(pid)]
        time.sleep(0.005)


# What an editor asks first.


@at_desk
def every_version_is_answered_with_the_first(place):
    client = place.start()
    for version in 1, 2, 0, 99:
        answer = client.initialize(version)
        assert answer["protocolVersion"] == 1
        sessions = answer["agentCapabilities"]["sessionCapabilities"]
        assert all(isinstance(marker, dict) for marker in sessions.values()), sessions
        assert answer["agentInfo"]["name"] == "glovebox"
    client.refuses(-32602, "initialize", "protocolVersion", clientCapabilities={})
    client.close()


@at_desk
def nothing_comes_before_initialize(place):
    client = place.start()
    client.refuses(-32600, "session/new", "initialize", cwd=place.work, mcpServers=[])
    client.notify("session/cancel", sessionId="0")
    client.initialize()
    client.close()


@at_desk
def a_session_needs_a_model(place):
    client = place.start()
    client.initialize()
    client.refuses(-32000, "session/new", "GLOVEBOX_MODEL", "glovebox models", cwd=place.work, mcpServers=[])
    client.refuses(-32000, "authenticate", "glovebox login", methodId="environment")
    client.refuses(-32602, "authenticate", "environment", methodId="password")
    client.close()
    place.environment["GLOVEBOX_MODEL"] = place.script(turn("I am here."))
    client = place.start()
    client.initialize()
    assert client.ask("authenticate", methodId="environment") == {}
    session = client.new(place.work)
    reason, updates = client.prompt(session, "Are you?")
    assert (reason, said(updates)) == ("end_turn", "I am here.")
    client.close()


def log_in(place, *words, key="sk-kept-0123456789abcdef"):
    done = tap.run([PROGRAM, "login", *words], input=key, env=place.environment, cwd=place.folder)
    assert done.returncode == 0, done


@at_desk
def a_client_with_a_terminal_logs_in_there(place):
    client = place.start(options=["--ask", "network"], capabilities={"auth": {"terminal": True}})
    answer = client.initialize()
    methods = answer["authMethods"]
    assert [(one["type"], one["args"]) for one in methods] == [("terminal", ["login"])], methods
    assert answer["agentCapabilities"]["auth"] == {"logout": {}}, answer
    client.refuses(-32000, "session/new", "glovebox login", cwd=place.work, mcpServers=[])
    # What the client runs: the command of the agent, and behind it the words of the method.
    done = tap.run([PROGRAM, "acp", "--ask", "network", *methods[0]["args"], "--provider", "openai", "--model",
                    "openai:gpt-5"], input="sk-kept-0123456789abcdef", env=place.environment, cwd=place.folder)
    assert done.returncode == 0, done
    session = client.ask("session/new", cwd=place.work, mcpServers=[])
    assert option(session, "model")["currentValue"] == "openai:gpt-5", session
    client.close()


@at_desk
def a_key_is_looked_for_again_and_forgotten(place):
    client = place.start(options=["--model", "anthropic:claude-opus-5"], capabilities={"auth": {"terminal": False}})
    methods = client.initialize()["authMethods"]
    assert [one["id"] for one in methods] == ["environment"] and "type" not in methods[0], methods
    client.refuses(-32000, "authenticate", "ANTHROPIC_API_KEY", methodId="environment")
    log_in(place, "--provider", "anthropic")
    assert client.ask("authenticate", methodId="environment") == {}
    client.new(place.work)
    assert client.ask("logout") == {} and client.ask("logout") == {}
    client.refuses(-32000, "session/new", "ANTHROPIC_API_KEY", cwd=place.work, mcpServers=[])
    assert b"sk-kept" not in client.log and "sk-kept" not in json.dumps(client.messages)
    client.close()


@at_desk
def the_entry_of_the_registry_fits_the_program(place):
    folder = os.path.join(HERE, "..", "..", "packages", "acp")
    with open(os.path.join(folder, "agent.json"), encoding="utf-8") as file:
        entry = json.load(file)
    client = place.start()
    info = client.initialize()
    assert entry["id"] == info["agentInfo"]["name"] and entry["name"] == info["agentInfo"]["title"], entry
    assert entry["version"] == info["agentInfo"]["version"], (entry["version"], info["agentInfo"])
    assert entry["distribution"]["npx"] == {"package": f"glovebox@{entry['version']}", "args": ["acp"]}, entry
    binary = entry["distribution"]["binary"]
    assert set(binary) == {"linux-x86_64", "linux-aarch64"}, binary
    for machine, target in binary.items():
        assert target == {"archive": f"{entry['repository']}/releases/download/v{entry['version']}/glovebox-"
                                     f"{entry['version']}-{machine}.tar.gz", "cmd": "./glovebox", "args": ["acp"]}, target
    # What the registry asks of an entry, and of the program that it starts.
    assert {"description", "license", "license_url"} <= set(entry) and info["authMethods"], (entry, info)
    with open(os.path.join(folder, "icon.svg"), encoding="utf-8") as file:
        icon = file.read()
    assert 'width="16" height="16"' in icon and "currentColor" in icon and "#" not in icon, icon
    client.close()


@at_desk
def an_editor_of_lua_has_other_empty_lists(place):
    """CodeCompanion authenticates by the first method there is, and writes an empty list as an object."""
    client = place.start(turn("Hello."), capabilities={"fs": {"readTextFile": True, "writeTextFile": True}})
    method = client.initialize()["authMethods"][0]["id"]
    assert client.ask("authenticate", methodId=method) == {}
    session = client.new(place.work, mcpServers={})
    assert said(client.prompt(session, "hello")[1]) == "Hello."
    client.close()


# Whole conversations.


@at_desk
def a_file_is_written_edited_and_shown(place):
    client, session = place.open(
        turn("I write.", call("write_file", path="a.txt", content="one\ntwo\n")),
        turn("", call("edit_file", path="a.txt", edits=[{"old": "two", "new": "three"}])),
        turn("", call("bash", command="cat a.txt; exit 3")),
        turn("", call("read_file", path="a.txt", start_line=2)),
        turn("Done."))
    reason, updates = client.prompt(session, "Write ", {"type": "resource_link", "name": "a.txt",
                                                        "uri": f"file://{place.work}/a%20b.txt"}, "please")
    assert reason == "end_turn" and said(updates) == "I write.Done.", said(updates)
    assert place.read("a.txt") == "one\nthree\n"
    shown = list(results(updates).values())
    assert [one["title"] for one in shown] == ["Write a.txt", "Edit a.txt", "cat a.txt; exit 3", "Read a.txt"]
    assert [one["kind"] for one in shown] == ["edit", "edit", "execute", "read"]
    assert [one["name"] for one in shown] == ["write_file", "edit_file", "bash", "read_file"]
    assert all(one["status"] == "completed" for one in shown), shown
    diffs = [part for one in shown[:2] for part in one["content"] if part["type"] == "diff"]
    assert diffs == [
        {"type": "diff", "path": place.path("a.txt"), "oldText": None, "newText": "one\ntwo\n"},
        {"type": "diff", "path": place.path("a.txt"), "oldText": "one\ntwo\n", "newText": "one\nthree\n"}], diffs
    assert shown[1]["content"][0]["type"] == "diff"
    assert shown[1]["locations"] == [{"path": place.path("a.txt"), "line": 2}], shown[1]
    assert shown[2]["rawOutput"]["exit_code"] == 3 and "```\none\nthree\n" in text_of(shown[2]), shown[2]
    assert shown[3]["locations"] == [{"path": place.path("a.txt"), "line": 2}]
    title = [one for one in updates if one["sessionUpdate"] == "session_info_update"]
    assert len(title) == 1 and title[0]["title"].startswith("Write ") and "a b.txt" in title[0]["title"], title
    client.close()


@at_desk
def each_changed_file_of_a_patch_has_its_diffs(place):
    place.write("long.txt", "".join(f"line {number}\n" for number in range(100)))
    place.write("old.txt", "gone\n")
    patch = ("*** Begin Patch\n*** Update File: long.txt\n@@\n line 4\n-line 5\n+line five\n@@\n line 79\n-line 80\n"
             "+line eighty\n*** Add File: new.txt\n+```\n+new\n*** Delete File: old.txt\n*** End Patch\n")
    client, session = place.open(turn("", call("apply_patch", patch=patch)), turn("Done."))
    _, updates = client.prompt(session, "patch")
    one = list(results(updates).values())[0]
    diffs = [part for part in one["content"] if part["type"] == "diff"]
    assert [os.path.basename(diff["path"]) for diff in diffs] == ["long.txt", "long.txt", "new.txt", "old.txt"], diffs
    assert "line five" in diffs[0]["newText"] and "line 5\n" in diffs[0]["oldText"]
    assert diffs[2]["oldText"] is None and diffs[2]["newText"] == "```\nnew\n"
    assert diffs[3]["oldText"] == "gone\n" and diffs[3]["newText"] == ""
    client.close()


@at_desk
def output_is_shown_while_a_command_runs(place):
    os.mkfifo(place.path("go"))
    client, session = place.open(
        turn("", call("bash", command="echo begins; read -r line < go; echo '```' $line")), turn("Done."))
    number = client.send_prompt(session, "run")
    shown = client.until_update("tool_call_update", lambda one: "begins" in text_of(one))
    assert shown["status"] == "in_progress", shown
    place.write("go", "it ends\n")
    assert client.wait(number) == {"stopReason": "end_turn"}
    one = list(results(client.updates(session)).values())[0]
    assert one["status"] == "completed" and "````\nbegins\n``` it ends\n" in text_of(one), one
    client.close()


@at_desk
def thoughts_are_apart_from_words(place):
    client, session = place.open(turn("It is so.", thinking="Is it?"), turn("Still.", thinking="And now?"))
    for thought, words in ("Is it?", "It is so."), ("And now?", "Still."):
        _, updates = client.prompt(session, "why")
        kinds = [(one["sessionUpdate"], one["content"]["text"]) for one in updates if "messageId" in one]
        assert kinds == [("agent_thought_chunk", thought), ("agent_message_chunk", words)], kinds
    ids = [one["messageId"] for one in client.updates(session) if "messageId" in one]
    assert len(set(ids)) == 4, ids
    client.close()


@at_desk
def what_the_editor_embeds_reaches_the_model(place):
    client, session = place.open(turn("Seen."))
    client.prompt(session, "Explain ", {"type": "resource", "resource": {
        "uri": "file:///elsewhere/x.c", "text": "int x;", "mimeType": "text/x-c"}}, ".")
    client.close()
    done = tap.run([PROGRAM, "sessions", "export", session], env=place.environment)
    event = next(event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "turn_began")
    assert event["text"] == ("Explain /elsewhere/x.c.\n\n[From the editor: /elsewhere/x.c]\nint x;\n"
                             "[End of what the editor gave]"), event


@at_desk
def the_list_of_things_to_do_is_the_plan(place):
    items = [{"text": "look", "state": "done"}, {"text": "mend", "state": "active"}, {"text": "test", "state": "pending"}]
    client, session = place.open(turn("", call("todo", items=items[:1])), turn("", call("todo", items=items)), turn("Done."))
    _, updates = client.prompt(session, "plan")
    plans = [one["entries"] for one in updates if one["sessionUpdate"] == "plan"]
    assert len(plans) == 2 and not results(updates), updates
    assert [(one["content"], one["status"]) for one in plans[1]] == [
        ("look", "completed"), ("mend", "in_progress"), ("test", "pending")], plans
    client.close()


@at_desk
def a_picture_goes_with_a_prompt(place):
    picture = {"type": "image", "data": PNG, "mimeType": "image/png"}
    client, session = place.open(turn("A dot."), turn("Again."))
    assert said(client.prompt(session, "What is it? ", picture)[1]) == "A dot."
    assert said(client.prompt(session, picture)[1]) == "Again."
    client.close()
    client = place.start()
    client.initialize()
    client.ask("session/load", sessionId=session, cwd=place.work, mcpServers=[])
    shown = [one["content"] for one in client.updates(session) if one["sessionUpdate"] == "user_message_chunk"]
    assert shown == [{"type": "text", "text": "What is it? "}, picture,
                     {"type": "text", "text": "(See the picture.)"}, picture], shown
    client.close()


@at_desk
def sessions_work_beside_each_other(place):
    os.mkfifo(place.path("go"))
    client, first = place.open(turn("", call("bash", command="echo here; read -r line < go")), turn("Done."))
    number = client.send_prompt(first, "wait")
    client.until_update("tool_call")
    second = client.new(place.work)
    client.wait(client.send("session/set_config_option", {"sessionId": second, "configId": "model",
                                                           "value": place.script(turn("Quick."))}))
    reason, updates = client.prompt(second, "quick")
    assert (reason, said(updates)) == ("end_turn", "Quick.")
    place.write("go", "\n")
    assert client.wait(number) == {"stopReason": "end_turn"}
    client.close()


@at_desk
def a_limit_is_a_stop_reason_and_a_failing_model_an_error(place):
    client, session = place.open(turn("", call("bash", command="true")), turn("Done."),
                                 options=["--max-iterations", "1"])
    assert client.prompt(session, "go")[0] == "max_turn_requests"
    client.close()
    client, session = place.open(turn("Once."))
    assert client.prompt(session, "go")[0] == "end_turn"
    client.refuses(-32603, "session/prompt", "replay", sessionId=session, prompt=[{"type": "text", "text": "more"}])
    client.close()


# Refusals.


@at_desk
def a_wrong_message_is_refused_and_the_next_one_served(place):
    client, session = place.open(turn("Still here."))
    client.refuses_line(-32700, b"{")
    client.refuses_line(-32700, b"hello")
    client.refuses_line(-32600, b"[]")
    client.refuses_line(-32600, b'[{"jsonrpc":"2.0","id":1,"method":"session/list"}]')
    client.refuses_line(-32600, b'{"id":1,"method":"session/list"}')
    client.refuses_line(-32600, b'{"jsonrpc":"2.0","id":{},"method":"session/list"}')
    client.refuses_line(-32602, b'{"jsonrpc":"2.0","id":"x","method":"session/list","params":[]}')
    client.refuses_line(-32700, b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (LINE_MAX + 1) + b'"}')
    client.refuses(-32601, "session/teleport", "session/teleport")
    client.refuses(-32601, "session/set_model", sessionId=session, modelId="x")
    client.refuses(-32601, "session/cancel", sessionId=session)
    client.notify("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "nobody hears the answer"}])
    client.notify("_own/thing", x=1)
    client.write(b'{"jsonrpc":"2.0","id":4711,"result":{}}')
    client.write(b"")
    client.order.faults = [fault for fault in client.order.faults if "no request: x" not in fault
                           and "no request: 1" not in fault]
    assert said(client.prompt(session, "Are you there?")[1]) == "Still here."
    client.close()


@at_desk
def a_folder_must_be_a_projects(place):
    client = place.start(turn("x"))
    client.initialize()
    place.write("file", "")
    for folder, word in (("work", "absolute"), (place.path("none"), "No such file"), (place.path("file"), "no folder"),
                         ("/", "holds everything"), (place.home, "holds everything"), (7, "absolute")):
        client.refuses(-32602, "session/new", word, cwd=folder, mcpServers=[])
    client.refuses(-32602, "session/new", "additionalDirectories", cwd=place.work, mcpServers=[],
                   additionalDirectories=[place.home])
    client.refuses(-32602, "session/new", "absolute", cwd=place.work, mcpServers=[], additionalDirectories=["x"])
    for servers, word in (([{"type": "sse", "name": "far", "url": "https://x.example/", "headers": []}], "far"),
                          ([{"type": "http", "name": "far", "headers": []}], "far"),
                          ([{"command": "x", "args": [], "env": []}], "name"),
                          ([{"name": "a", "command": "x", "args": [], "env": []}] * 2, "called a")):
        client.refuses(-32602, "session/new", word, cwd=place.work, mcpServers=servers)
    client.close()


@at_desk
def a_prompt_must_be_text(place):
    client, session = place.open(turn("Heard."))
    for blocks, word in (([], "empty"), ([{"type": "text", "text": " \n"}], "empty"),
                         ([{"type": "audio", "data": "", "mimeType": "audio/wav"}], "audio"),
                         ([{"type": "image", "data": "", "mimeType": "image/png"}], "picture 1"),
                         ([{"type": "image", "data": "x", "mimeType": "image/png"}], "Base64"),
                         ([{"type": "image", "data": PNG[:-8], "mimeType": "image/png"}], "cut off"),
                         ([{"type": "image", "data": PNG, "mimeType": "image/png"}] * 11, "10 pictures"),
                         ([{"type": "text"}], "text"), (["text"], ""),
                         ([{"type": "resource", "resource": {"uri": "file:///x", "blob": "eA=="}}], "must be a text"),
                         ([{"type": "resource", "resource": {"text": "x"}}], "uri"),
                         ([{"type": "text", "text": "a\0b"}], "NUL"),
                         ([{"type": "text", "text": "x" * (4 << 20)}, {"type": "text", "text": "x"}], "4 MiB")):
        client.refuses(-32602, "session/prompt", word, sessionId=session, prompt=blocks)
    client.refuses(-32602, "session/prompt", "no-such", sessionId="no-such", prompt=[])
    client.refuses(-32602, "session/prompt", "sessionId", prompt=[])
    assert said(client.prompt(session, "hello")[1]) == "Heard."
    client.close()


@at_desk
def one_prompt_at_a_time(place):
    os.mkfifo(place.path("go"))
    client, session = place.open(turn("", call("bash", command="read -r line < go")), turn("Done."))
    number = client.send_prompt(session, "wait")
    client.until_update("tool_call")
    client.refuses(-32602, "session/prompt", "under way", sessionId=session, prompt=[{"type": "text", "text": "x"}])
    place.write("go", "\n")
    assert client.wait(number) == {"stopReason": "end_turn"}
    client.close()


@at_desk
def there_may_be_sixteen_sessions(place):
    client = place.start(turn("x"))
    client.initialize()
    made = [client.new(place.work) for _ in range(SESSIONS)]
    client.refuses(-32603, "session/new", "16", cwd=place.work, mcpServers=[])
    assert client.ask("session/close", sessionId=made[3]) == {}
    client.refuses(-32602, "session/close", made[3], sessionId=made[3])
    client.new(place.work)
    client.close()


# Questions.

QUESTION = "session/request_permission"


def chosen(option):
    return {"outcome": {"outcome": "selected", "optionId": option}}


def outside(place, *answers, reads=1):
    """A client whose model reads a file outside of the workspace, which is asked about."""
    os.mkdir(os.path.join(place.folder, "aside"))
    with open(os.path.join(place.folder, "aside", "note.txt"), "w", encoding="ascii") as file:
        file.write("outside\n")
    left = list(answers)

    def answer(_params):
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found
    return place.open(*[turn("", call("read_file", path="../aside/note.txt", limit=number + 1)) for number in range(reads)],
                      turn("Done."), options=["--ask", "read"], answers={QUESTION: answer})


@at_desk
def an_answer_holds_once(place):
    client, session = outside(place, chosen("once"), chosen("no"), reads=2)
    _, updates = client.prompt(session, "read it")
    first, second = results(updates).values()
    assert first["status"] == "completed" and "outside" in text_of(first), first
    assert second["status"] == "failed", second
    asked = [m["params"] for m in client.messages if m.get("method") == QUESTION]
    assert [option["optionId"] for option in asked[0]["options"]] == ["once", "session", "no"]
    assert place.folder in asked[0]["options"][1]["name"], asked[0]["options"]
    assert asked[0]["toolCall"]["rawInput"]["path"] == "../aside/note.txt"
    assert place.folder in text_of(asked[0]["toolCall"]), asked[0]
    client.close()


@at_desk
def a_hook_has_the_editor_asked(place):
    asks = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
                                              "permissionDecisionReason": "look at it"}})
    place.write("../hooks.json", json.dumps({"hooks": {"PreToolUse": [
        {"matcher": "Write", "hooks": [{"type": "command", "command": f"echo '{asks}'"}]},
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo no commands >&2; exit 2"}]}]}}))
    left = [chosen("once"), chosen("no")]
    client, session = place.open(
        *[turn("", call("write_file", path=name, content="x")) for name in ("a", "b")],
        turn("", call("bash", command="true")), turn("Done."),
        options=["--config", os.path.join(place.folder, "hooks.json")], answers={QUESTION: lambda _params: left.pop(0)})
    _, updates = client.prompt(session, "write")
    assert [one["status"] for one in results(updates).values()] == ["completed", "failed", "failed"], updates
    asked = [m["params"] for m in client.messages if m.get("method") == QUESTION]
    assert len(asked) == 2 and "look at it" in text_of(asked[0]["toolCall"]), asked
    client.close()


@at_desk
def an_answer_holds_for_the_session(place):
    client, session = outside(place, chosen("session"), reads=2)
    _, updates = client.prompt(session, "read it")
    assert [one["status"] for one in results(updates).values()] == ["completed"] * 2
    client.close()


@at_desk
def every_other_answer_is_a_no(place):
    answers = [chosen("no"), chosen("always"), chosen(""), {"outcome": {"outcome": "cancelled"}},
               Refused("nobody is here")]
    client, session = outside(place, *answers, reads=len(answers))
    reason, updates = client.prompt(session, "read it")
    assert reason == "end_turn" and said(updates) == "Done.", reason
    assert [one["status"] for one in results(updates).values()] == ["failed"] * len(answers), updates
    assert len([m for m in client.messages if m.get("method") == QUESTION]) == len(answers)
    client.close()


@at_desk
def a_cancelled_turn_asks_nothing_more(place):
    client, session = outside(place, LATER)
    number = client.send_prompt(session, "read it")
    client.until(lambda m: m.get("method") == QUESTION)
    client.notify("session/cancel", sessionId=session)
    assert client.wait(number) == {"stopReason": "cancelled"}
    client.reply(client.asked[0], chosen("once"))  # too late
    client.refuses(-32601, "session/none")
    client.close()


# Cancelling.


@at_desk
def a_cancelled_prompt_is_answered_with_cancelled(place):
    client, session = place.open(*[turn("", call("bash", command="sleep 1000"))] * 2, turn("Later."))
    client.notify("session/cancel", sessionId=session)  # nothing is under way
    client.notify("session/cancel", sessionId="none")
    for method in "session/cancel", "$/cancel_request":
        number = client.send_prompt(session, "sleep")
        client.until_update("tool_call_update", lambda one: one["status"] == "in_progress")
        since = time.monotonic()
        if method == "session/cancel":
            client.notify(method, sessionId=session)
            client.notify(method, sessionId=session)
        else:
            client.notify(method, requestId=number)
        assert client.wait(number) == {"stopReason": "cancelled"}
        assert not tap.is_late(time.monotonic() - since, 2 * CANCEL_SECONDS), time.monotonic() - since
    assert said(client.prompt(session, "go on")[1]) == "Later."
    client.close()


@at_desk
def an_opening_can_be_cancelled(place):
    client = place.start(turn("x"))
    client.initialize()
    number = client.send("session/new", {"cwd": place.work, "mcpServers": []})
    client.notify("$/cancel_request", requestId=number)
    client.notify("$/cancel_request", requestId=4711)
    try:
        client.wait(number)
    except Failure as failure:
        assert failure.code == -32800, str(failure)
    client.close()


# Sessions that go on.


@at_desk
def a_loaded_session_shows_all_that_was(place):
    client, session = place.open(
        turn("I write.", call("write_file", path="a.txt", content="one\n"), thinking="Hm."), turn("Done."))
    client.prompt(session, "Write it")
    before = [one for one in client.updates(session) if one["sessionUpdate"] not in
              ("session_info_update", "available_commands_update")
              # It comes for a call that takes long enough to be looked at.
              and one.get("status") != "in_progress"]
    client.close()
    client = place.start(turn("Again."))
    client.initialize()
    result = client.ask("session/load", sessionId=session, cwd=place.work, mcpServers=[])
    assert {"configOptions", "modes"} <= set(result), result
    after = [one for one in client.updates(session) if one["sessionUpdate"] != "session_info_update"]
    assert after[0]["sessionUpdate"] == "user_message_chunk" and after[0]["content"]["text"] == "Write it"
    for one in before + after:
        one.pop("messageId", None)
        one.get("rawOutput", {}).pop("seconds", None)
    assert after[1:] == before, (before, after)
    client.until_update("available_commands_update")
    assert len(client.updates(session)) > 3
    client.close()


@at_desk
def a_resumed_session_shows_nothing_and_knows_all(place):
    model = place.script(turn("First."), turn("Second."))
    client = place.start(options=["--model", model])
    client.initialize()
    session = client.new(place.work)
    client.close()  # as it is made, without a prompt
    for words in "First.", "Second.":
        client = place.start()
        client.initialize()
        result = client.ask("session/resume", sessionId=session, cwd=place.work, mcpServers=[])
        model_now = next(one for one in result["configOptions"] if one["id"] == "model")["currentValue"]
        assert model_now == model, model_now
        client.until_update("available_commands_update")
        assert len(client.updates(session)) == 1
        assert said(client.prompt(session, "go")[1]) == words
        client.close()
    done = tap.run([PROGRAM, "sessions", "export", session], env=place.environment)
    kinds = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert kinds.count("session_resumed") == 2 and kinds.count("turn_began") == 2, kinds


@at_desk
def only_a_stored_session_of_the_folder_goes_on(place):
    client, session = place.open(turn("x"))
    other = os.path.join(place.folder, "other")
    os.mkdir(other)
    for method in "session/load", "session/resume":
        client.refuses(-32602, method, "open already", sessionId=session, cwd=place.work, mcpServers=[])
        client.refuses(-32602, method, "no-such", sessionId="no-such", cwd=place.work, mcpServers=[])
        client.refuses(-32602, method, "000000000000", sessionId="000000000000", cwd=place.work, mcpServers=[])
        client.refuses(-32602, method, place.work, sessionId=session, cwd=other, mcpServers=[])
        client.refuses(-32602, method, "sessionId", cwd=place.work, mcpServers=[])
    second = place.start(turn("x"))
    second.initialize()
    second.refuses(-32603, "session/load", sessionId=session, cwd=place.work, mcpServers=[])
    second.close()
    assert client.ask("session/close", sessionId=session) == {}
    client.ask("session/load", sessionId=session, cwd=place.work, mcpServers=[])
    client.close()


@at_desk
def sessions_are_listed_by_pages(place):
    client, session = place.open(turn("Yes."))
    client.prompt(session, "The  title\nand more")
    client.close()
    path = os.path.join(place.home, ".local/state/glovebox/sessions.db")
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        key = base.execute("SELECT key FROM session").fetchone()[0]
        for number in range(PAGE + 10):
            new = base.execute("INSERT INTO session (id, workspace, agent, model, began_ms) SELECT ?, "
                               "CASE ? WHEN 0 THEN workspace ELSE '/elsewhere' END, agent, model, began_ms "
                               "FROM session WHERE key = ?", (f"{number:012x}", number % 2, key)).lastrowid
            base.execute("INSERT INTO event SELECT ?, number, kind, wall_ms, json FROM event WHERE session = ?",
                         (new, key))
    client = place.start()
    client.initialize()
    first = client.ask("session/list")
    assert len(first["sessions"]) == PAGE and first["nextCursor"], first
    second = client.ask("session/list", cursor=first["nextCursor"])
    assert len(second["sessions"]) == 11 and "nextCursor" not in second, second
    assert len({one["sessionId"] for one in first["sessions"] + second["sessions"]}) == PAGE + 11
    here = client.ask("session/list", cwd=place.work)["sessions"]
    assert len(here) == PAGE // 2 + 6 and all(one["cwd"] == place.work for one in here), len(here)
    assert here[0]["title"].startswith("The"), here[0]
    client.refuses(-32602, "session/list", "cursor", cursor="no such")
    client.close()


# Options of a session.


def option(result, name):
    return next(one for one in result["configOptions"] if one["id"] == name)


@at_desk
def a_plan_writes_nothing(place):
    place.write("a.txt", "one\n")
    client, session = place.open(
        turn("", call("write_file", path="b.txt", content="x\n"), call("bash", command="echo x > a.txt; cat a.txt")),
        turn("Planned."), turn("", call("bash", command="cat a.txt; echo two >> a.txt")), turn("Done."))
    assert client.ask("session/set_mode", sessionId=session, modeId="plan") == {}
    update = client.until_update("config_option_update")
    assert option(update, "mode")["currentValue"] == "plan"
    _, updates = client.prompt(session, "plan")
    first, second = results(updates).values()
    assert first["status"] == "failed" and not os.path.exists(place.path("b.txt")), first
    assert "x\n" in text_of(second) and place.read("a.txt") == "one\n", second
    result = client.ask("session/set_config_option", sessionId=session, configId="mode", value="auto")
    assert option(result, "mode")["currentValue"] == "auto"
    assert client.until_update("current_mode_update")["currentModeId"] == "auto"
    client.prompt(session, "work")
    assert place.read("a.txt") == "one\ntwo\n"
    client.refuses(-32602, "session/set_mode", "no such mode", sessionId=session, modeId="yolo")
    client.refuses(-32602, "session/set_mode", sessionId=session)
    client.close()


@at_desk
def a_session_is_forgotten(place):
    client, session = place.open(turn("Words."))
    client.prompt(session, "remember this")
    client.refuses(-32602, "session/delete", "close it first", sessionId=session)
    client.ask("session/close", sessionId=session)
    other = client.new(place.work)
    assert session in [one["sessionId"] for one in client.ask("session/list")["sessions"]]
    assert client.ask("session/delete", sessionId=session) == {}
    listed = [one["sessionId"] for one in client.ask("session/list")["sessions"]]
    assert session not in listed and other in listed, listed
    client.refuses(-32602, "session/delete", session, sessionId=session)
    client.refuses(-32602, "session/delete", sessionId=None)
    client.close()


def planned(place, answer):
    """A client in mode plan whose model presents a plan and then writes a file."""
    client, session = place.open(
        turn("", call("present_plan", plan="1. Write a.txt")),
        turn("", call("write_file", path="a.txt", content="one\n")), turn("Done."),
        options=["--mode", "plan"], answers={QUESTION: lambda _params: answer})
    reason, updates = client.prompt(session, "plan")
    assert reason == "end_turn", reason
    return client, updates


@at_desk
def a_plan_that_is_agreed_to_is_carried_out(place):
    client, updates = planned(place, chosen("auto"))
    assert said(updates) == "Done." and place.read("a.txt") == "one\n", updates
    asked = [m["params"] for m in client.messages if m.get("method") == QUESTION]
    assert [one["optionId"] for one in asked[0]["options"]] == ["auto", "ask", "plan"], asked
    assert "1. Write a.txt" in text_of(asked[0]["toolCall"]), asked
    assert [one["currentModeId"] for one in updates if one["sessionUpdate"] == "current_mode_update"] == ["auto"]
    client.close()


@at_desk
def a_plan_may_be_carried_out_in_mode_ask(place):
    left = [chosen("ask"), chosen("no")]
    client, session = place.open(
        turn("", call("present_plan", plan="1. Write a.txt")),
        turn("", call("write_file", path="a.txt", content="one\n")), turn("Done."),
        options=["--mode", "plan"], answers={QUESTION: lambda _params: left.pop(0)})
    client.prompt(session, "plan")
    asked = [m["params"] for m in client.messages if m.get("method") == QUESTION]
    assert "+one" in text_of(asked[1]["toolCall"]) and not os.path.exists(place.path("a.txt")), asked
    client.close()


@at_desk
def any_other_answer_goes_on_planning(place):
    for answer in chosen("plan"), chosen("often"), {"outcome": {"outcome": "cancelled"}}:
        client, updates = planned(place, answer)
        assert "Done." not in said(updates) and not os.path.exists(place.path("a.txt")), updates
        assert not [one for one in updates if one["sessionUpdate"] == "current_mode_update"], updates
        client.close()


@at_desk
def mode_ask_asks_the_editor(place):
    client, session = place.open(turn("", call("bash", command="echo x > a.txt")), turn("Done."),
                                 answers={QUESTION: lambda _params: chosen("once")})
    client.ask("session/set_mode", sessionId=session, modeId="ask")
    client.prompt(session, "work")
    asked = [m["params"] for m in client.messages if m.get("method") == QUESTION]
    assert len(asked) == 1 and place.read("a.txt") == "x\n", asked
    client.close()


@at_desk
def model_and_agent_are_options(place):
    # A recording goes on where the conversation is.
    other = place.script(turn("Words."), turn("Other words."), turn("", call("write_file", path="b.txt", content="x\n")),
                         turn("Refused."))
    client, session = place.open(turn("Words."))
    assert said(client.prompt(session, "a")[1]) == "Words."
    result = client.ask("session/set_config_option", sessionId=session, configId="model", value=other)
    assert option(result, "model")["currentValue"] == other
    assert said(client.prompt(session, "b")[1]) == "Other words."
    agents = [one["value"] for one in option(result, "agent")["options"]]
    assert {"default", "coder", "reviewer"} <= set(agents), agents
    result = client.ask("session/set_config_option", sessionId=session, configId="agent", value="reviewer")
    assert option(result, "agent")["currentValue"] == "reviewer"
    reason, updates = client.prompt(session, "c")
    assert reason == "end_turn" and not os.path.exists(place.path("b.txt")), updates
    for key, value, word in (("agent", "nobody", "agent"), ("model", "no:such:provider", "model"),
                             ("colour", "red", "colour"), ("mode", "x", "mode")):
        client.refuses(-32602, "session/set_config_option", word, sessionId=session, configId=key, value=value)
    client.refuses(-32602, "session/set_config_option", "value", sessionId=session, configId="model", value=7)
    client.close()


@at_desk
def a_model_that_thinks_has_levels(place):
    place.environment["OPENAI_API_KEY"] = "sk-nobody-is-asked-with-it"
    client = place.start(options=["--model", "openai:gpt-5", "--thinking", "low"])
    client.initialize()
    result = client.ask("session/new", cwd=place.work, mcpServers=[])
    session, level = result["sessionId"], option(result, "thought_level")
    assert level["category"] == "thought_level" and level["currentValue"] == "low", level
    assert [one["value"] for one in level["options"]] == ["default", "low", "medium", "high"], level

    def choose(name, value):
        return client.ask("session/set_config_option", sessionId=session, configId=name, value=value)

    assert option(choose("thought_level", "high"), "thought_level")["currentValue"] == "high"
    client.refuses(-32602, "session/set_config_option", "no such level", sessionId=session, configId="thought_level",
                   value="huge")
    assert option(choose("agent", "coder"), "thought_level")["currentValue"] == "high"
    names = [one["id"] for one in choose("model", place.script(turn("x")))["configOptions"]]
    assert names == ["mode", "model", "agent"], names
    client.refuses(-32602, "session/set_config_option", "no levels", sessionId=session, configId="thought_level",
                   value="low")
    client.close()


@at_desk
def more_folders_are_as_the_workspace(place):
    more = os.path.join(place.folder, "more")
    os.mkdir(more)
    both = turn("", call("write_file", path=f"{more}/a.txt", content="x\n"), call("bash", command=f"echo y > {more}/b"))
    for options, names in ([], ["a.txt", "b"]), (["--agent", "reviewer"], []):
        client = place.start(both, turn("Done."), options=options)
        client.initialize()
        session = client.new(place.work, additionalDirectories=[more])
        assert client.prompt(session, "write there")[0] == "end_turn"
        assert sorted(os.listdir(more)) == names, os.listdir(more)
        client.ask("session/set_mode", sessionId=session, modeId="plan")
        client.close()
        for name in names:
            os.unlink(os.path.join(more, name))


@at_desk
def what_a_person_has_written_down_is_a_command(place):
    place.write("a.c", "int a;\n")
    for name, text in ((".config/glovebox/commands/fix.md",
                        "---\nagent: reviewer\n---\nFix $1 first, @a.c.\n"),
                       (".agents/skills/greet/SKILL.md", "---\ndescription: Greets.\n---\nSay hello.\n")):
        path = os.path.join(place.home, name)
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    client, session = place.open(turn("Done."), turn("Hello."))
    shown = [m["params"]["update"] for m in client.messages if m.get("method") == "session/update"][-1]
    assert [(one["name"], one["description"]) for one in shown["availableCommands"]][2:] == [
        ("fix", "Fix $1 first, @a.c."), ("skill:greet", "Greets.")], shown
    assert client.prompt(session, "/fix a.c")[0] == "end_turn"
    assert client.prompt(session, "/skill:greet now")[0] == "end_turn"
    client.close()
    path = os.path.join(place.home, ".local/state/glovebox/sessions.db")
    with contextlib.closing(sqlite3.connect(path)) as base:
        asked = [row[0] for row in base.execute("SELECT json FROM event WHERE kind = 'turn_began' ORDER BY number")]
    assert "Fix a.c first, @a.c." in asked[0] and "Say hello." in asked[1], asked
    asked = [json.loads(one) for one in asked]
    assert [one["agent"] for one in asked] == ["reviewer", "default"], asked
    assert "int a;" in asked[0]["attached"][0]["text"], asked


@at_desk
def commands_of_the_program_need_no_model(place):
    place.write("a.txt", "one\n")
    client, session = place.open(turn("", call("bash", command="echo two >> a.txt")), turn("Done."), turn("Which?"))
    shown = [m["params"]["update"] for m in client.messages if m.get("method") == "session/update"][-1]
    assert [one["name"] for one in shown["availableCommands"]] == ["diff", "undo"], shown
    assert client.prompt(session, "/diff")[0] == "end_turn"
    assert said(client.updates(session)) == "Nothing has been changed."
    client.prompt(session, "add a line")
    reason, updates = client.prompt(session, "/diff")
    assert reason == "end_turn" and "```diff\n" in said(updates) and "\n+two\n" in said(updates), updates
    reason, updates = client.prompt(session, " /undo ")
    assert reason == "end_turn" and place.read("a.txt") == "one\n", updates
    assert "no step" in said(client.prompt(session, "/undo x")[1])
    for words in "/diff all", "/unknown":
        reason, updates = client.prompt(session, words)
        assert said(updates) == "Which?", updates
        client.ask("session/set_config_option", sessionId=session, configId="model",
                   value=place.script(*[turn("Which?")] * 5))
    client.close()


# Texts that are not saved.


class Buffers:
    """An editor's texts, by path. Others it does not have."""

    def __init__(self):
        self.texts, self.asked = {}, []

    def read(self, params):
        self.asked.append(params["path"])
        found = self.texts.get(params["path"], Refused("no such file"))
        if isinstance(found, Exception):
            raise found
        return LATER if found is LATER else {"content": found}


def buffered(place, *turns):
    buffers = Buffers()
    client, session = place.open(*turns, answers={"fs/read_text_file": buffers.read}, capabilities=FS)
    return client, session, buffers


LINES = "".join(f"line {number}\n" for number in range(1, 11))


@at_desk
def what_is_not_saved_is_read_and_not_overwritten(place):
    path = place.write("a.txt", LINES)
    client, session, buffers = buffered(
        place,
        turn("", call("read_file", path="a.txt"), call("read_file", path="a.txt", start_line=3, end_line=4)),
        turn("", call("edit_file", path="a.txt", edits=[{"old": "line 9", "new": "x"}])),
        turn("", call("write_file", path="./a.txt", content="x\n")),
        turn("", call("apply_patch", patch="*** Begin Patch\n*** Update File: a.txt\n@@\n-line 9\n+x\n*** End Patch\n")),
        turn("Saved?"), turn("", call("edit_file", path="a.txt", edits=[{"old": "line 9", "new": "x"}])),
        turn("Done."))
    buffers.texts[path] = LINES.replace("line 3", "LINE 3").replace("line 5", "LINE 5")
    reason, updates = client.prompt(session, "change line 9")
    first, second, *refused = results(updates).values()
    assert reason == "end_turn" and set(buffers.asked) == {path}
    assert "[a.txt as the editor has it, with changes in lines 3-5 that are not saved" in text_of(first), first
    assert "3\tLINE 3\n4\tline 4\n5\tLINE 5\n" in text_of(first), first
    assert "3\tLINE 3\n4\tline 4\n" in text_of(second) and "5\t" not in text_of(second), second
    for one in refused:
        assert one["status"] == "failed" and one["title"] != "Write ", one
        assert "a.txt (lines 3-5). Ask the person to save it.\n```" in text_of(one), one
    assert len(refused) == 3 and place.read("a.txt") == LINES
    place.write("a.txt", buffers.texts[path])  # the person saves
    client.prompt(session, "it is saved")
    assert place.read("a.txt") == buffers.texts[path].replace("line 9", "x")
    client.close()


def link(path):
    return {"type": "resource_link", "name": os.path.basename(path), "uri": f"file://{path}"}


@at_desk
def what_a_link_names_goes_with_the_prompt(place):
    saved, open_one = place.write("a.txt", LINES), place.write("b c.txt", LINES)
    hidden = os.path.join(place.home, "secret.txt")
    with open(hidden, "w", encoding="utf-8") as file:
        file.write("of nobody's business\n")
    client, session, buffers = buffered(place, turn("Seen."))
    buffers.texts[open_one] = LINES.replace("line 3", "LINE 3")
    _, updates = client.prompt(session, "Compare ", link(saved), link(open_one.replace(" ", "%20")), link(place.work),
                               link(hidden), link(place.path("none.txt")), {**link(saved), "uri": "https://x.example/"})
    assert {one["name"] for one in results(updates).values()} == {"read_file", "list_files"}, results(updates)
    client.close()
    done = tap.run([PROGRAM, "sessions", "export", session], env=place.environment)
    event = next(event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "turn_began")
    texts = {one["name"]: one["text"] for one in event["attached"]}
    assert list(texts) == [saved, open_one, place.work, hidden], event
    assert "line 10" in texts[saved] and "b c.txt" in texts[place.work]
    assert "as the editor has it" in texts[open_one] and "LINE 3" in texts[open_one], texts
    assert "business" not in done.stdout, texts[hidden]


@at_desk
def a_stale_text_is_not_taken_for_unsaved(place):
    path = place.write("a.txt", LINES)
    edits = [call("edit_file", path="a.txt", edits=[{"old": f"line {number}\n", "new": f"row {number}\n"}])
             for number in (2, 4, 6)]
    client, session, buffers = buffered(place, *[turn("", one) for one in edits],
                                        turn("", call("read_file", path="a.txt")), turn("Done."))
    buffers.texts[path] = LINES.rstrip("\n")  # the editor never looks again, and leaves out the last line end
    _, updates = client.prompt(session, "change")
    assert [one["status"] for one in results(updates).values()] == ["completed"] * 4, results(updates)
    assert "row 6" in place.read("a.txt") and "row 6" in text_of(list(results(updates).values())[3])
    client.close()


@at_desk
def line_ends_alone_are_no_change(place):
    path = os.path.join(place.work, "dos.txt")
    with open(path, "wb") as file:
        file.write(b"one\r\ntwo\r\n")
    client, session, buffers = buffered(
        place, turn("", call("edit_file", path="dos.txt", edits=[{"old": "two", "new": "three"}])), turn("Done."))
    buffers.texts[path] = "one\ntwo"
    _, updates = client.prompt(session, "change")
    assert [one["status"] for one in results(updates).values()] == ["completed"], updates
    with open(path, "rb") as file:
        assert file.read() == b"one\r\nthree\r\n"
    client.close()


@at_desk
def a_new_text_of_the_editor_is_not_overwritten(place):
    client, session, buffers = buffered(
        place, turn("", call("write_file", path="new.txt", content="x\n")),
        turn("", call("write_file", path="empty.txt", content="x\n")), turn("Done."))
    buffers.texts[place.path("new.txt")] = "mine\n"
    buffers.texts[place.path("empty.txt")] = ""
    _, updates = client.prompt(session, "write")
    assert [one["status"] for one in results(updates).values()] == ["failed", "completed"], updates
    assert not os.path.exists(place.path("new.txt")) and place.read("empty.txt") == "x\n"
    client.close()


@at_desk
def an_editor_that_does_not_answer_delays_little(place):
    names = [place.write(f"{number}.txt", LINES) for number in range(8)]
    calls = [turn("", call("edit_file", path=os.path.basename(name), edits=[{"old": "line 1\n", "new": "x\n"}]))
             for name in names]
    client, session, buffers = buffered(place, *calls, turn("Done."))
    for name in names:
        buffers.texts[name] = LATER
    since = time.monotonic()
    _, updates = client.prompt(session, "change")
    assert [one["status"] for one in results(updates).values()] == ["completed"] * 8
    assert len(buffers.asked) == 3, buffers.asked
    assert not tap.is_late(time.monotonic() - since, 4), time.monotonic() - since
    for number in client.asked:
        client.reply(number, {"content": "too late"})
    client.close()


@at_desk
def a_lying_editor_breaks_nothing(place):
    path = place.write("a.txt", LINES)
    for lie in ({"content": 7}, {}, {"content": None}, [], "text"):
        client, session = place.open(
            turn("", call("edit_file", path="a.txt", edits=[{"old": "line 9", "new": "line 9"}])), turn("Done."),
            capabilities=FS, answers={"fs/read_text_file": lambda _params: LATER})
        number = client.send_prompt(session, "change")
        message = client.until(lambda m: m.get("method") == "fs/read_text_file")
        assert message["params"] == {"sessionId": session, "path": path}
        client.reply(message["id"], lie)
        assert client.wait(number) == {"stopReason": "end_turn"}
        client.close()


@at_desk
def secrets_of_an_unsaved_text_stay_hidden(place):
    path = place.write(".env", "PASSWORD=\n")
    client, session, buffers = buffered(place, turn("", call("read_file", path=".env")), turn("Done."))
    buffers.texts[path] = "PASSWORD=\nGITHUB_TOKEN=ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8\n"
    _, updates = client.prompt(session, "read")
    shown = text_of(list(results(updates).values())[0])
    assert "not saved" in shown and "ghp_" not in shown and "‹secret:" in shown, shown
    client.close()


@at_desk
def without_the_ability_nothing_is_asked(place):
    place.write("a.txt", LINES)
    client, session = place.open(turn("", call("read_file", path="a.txt")), turn("Done."))
    client.prompt(session, "read")
    assert not [m for m in client.messages if m.get("method", "").startswith("fs/")]
    client.close()


# Servers that the editor hands over.

SERVER = r"""
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    answer = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "x", "version": "1"}},
              "tools/list": {"tools": [{"name": "greet", "description": "Greet", "inputSchema": {"type": "object"}}]},
              "tools/call": {"content": [{"type": "text", "text": os.environ["GREETING"] + " " + " ".join(sys.argv[1:])}]}
              }.get(message.get("method"))
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **({"result": answer} if answer else
                         {"error": {"code": -32601, "message": "no"}})}), flush=True)
"""


@at_desk
def a_server_of_the_editor_brings_its_tools(place):
    place.write("server.py", SERVER)
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        raise tap.Skip("no python3 in /usr/bin")
    client = place.start(turn("", call("own_greet")), turn("Done."))
    client.initialize()
    session = client.new(place.work, mcpServers=[{
        "name": "own", "command": python, "args": [place.path("server.py"), "there"],
        "env": [{"name": "GREETING", "value": "hello"}]}])
    _, updates = client.prompt(session, "greet")
    one = list(results(updates).values())[0]
    assert "hello there" in text_of(one) and one["kind"] == "other" and one["title"] == "own_greet", one
    client.close()


# What a server asks of the person.

ELICITOR = r"""
import json, sys
OLD = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
NEW = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
ANY = {"name": "ask", "description": "Ask", "inputSchema": {"type": "object"}}
modern, can, left = "modern" in sys.argv, {}, {}

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, params, number = message.get("method"), message.get("params", {}), message.get("id")
    if method == "initialize" and not modern:
        can = params["capabilities"]
        send(id=number, result=OLD)
    elif method == "server/discover" and modern:
        can = params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        send(id=number, result=NEW)
    elif method == "tools/list":
        send(id=number, result={"tools": [ANY], **({"resultType": "complete"} if modern else {})})
    elif method == "tools/call" and modern and "inputResponses" not in params:
        send(id=number, result={"resultType": "input_required", "inputRequests": {
            key: asked if "method" in asked else {"method": "elicitation/create", "params": asked}
            for key, asked in params["arguments"]["ask"].items()}})
    elif method == "tools/call" and modern:
        send(id=number, result={"resultType": "complete", "content": [
            {"type": "text", "text": json.dumps({"answer": params["inputResponses"], "can": can})}]})
    elif method == "tools/call":
        calling, left, heard = number, dict(params["arguments"]["ask"]), {}
        for key, asked in left.items():
            send(id=key, **(asked if "method" in asked else {"method": "elicitation/create", "params": asked}))
            if params["arguments"].get("leave"):
                send(id=calling, result={"content": [{"type": "text", "text": "never mind"}]})
    elif number in left and "method" not in message:
        del left[number]
        heard[number] = message.get("result", message.get("error"))
        if not left:
            send(id=calling, result={"content": [{"type": "text", "text": json.dumps(
                {"answer": heard["a"] if list(heard) == ["a"] else heard, "can": can})}]})
    elif number is not None and method:
        send(id=number, error={"code": -32601, "message": "no"})
"""
FORM = {"type": "object", "title": "You", "required": ["name"], "x-own": 1, "properties": {
    "name": {"type": "string", "title": "Name", "minLength": 2, "x-own": {}},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "mail": {"type": "string", "format": "email"},
    "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]},
    "tools": {"type": "array", "items": {"type": "string", "enum": ["saw", "axe"]}, "maxItems": 2},
    "sure": {"type": "boolean", "default": True}}}
ASKED = {"message": "Who are you?", "requestedSchema": FORM}
PAGE_OF_SERVER = {"mode": "url", "message": "Look there.", "url": "https://example.com/login?a=b", "elicitationId": "e1"}
BOTH = {"elicitation": {"form": {}, "url": {}}}


def eliciting(place, *turns, words=(), **more):
    """A client with a session whose server asks what its tool `ask` is told."""
    place.write("elicitor.py", ELICITOR)
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        raise tap.Skip("no python3 in /usr/bin")
    client = place.start(*turns, **more)
    client.initialize()
    return client, client.new(place.work, mcpServers=[
        {"name": "own", "command": python, "args": [place.path("elicitor.py"), *words], "env": []}])


def elicited(place, asked, answer, capabilities=None, words=()):
    """What the server hears when the client answers with ANSWER, a function of the params; and the updates."""
    client, session = eliciting(place, turn("", call("own_ask", ask=asked)), turn("Done."), words=words,
                                answers={"elicitation/create": answer}, capabilities=capabilities or BOTH)
    reason, updates = client.prompt(session, "ask")
    assert reason == "end_turn", reason
    client.close()
    text = text_of(list(results(updates).values())[0])
    return json.loads(text.strip("`\n")), client, updates


def warnings(updates):
    return [said([update]) for update in updates if update["sessionUpdate"] == "agent_message_chunk"
            and "declined" in said([update])]


@at_desk
def a_form_of_a_server_is_filled_in_by_the_editor(place):
    seen = []
    full = {"name": "Ann", "age": 7, "mail": "a@b.c", "colour": "g", "tools": ["axe"], "sure": False}

    def answer(params):
        seen.append(params)
        return {"action": "accept", "content": full}

    heard, _, updates = elicited(place, {"a": ASKED}, answer)
    assert heard["answer"] == {"action": "accept", "content": full}, heard
    assert heard["can"] == {"elicitation": {"form": {}, "url": {}}} and not warnings(updates), heard
    params, = seen
    assert params["mode"] == "form" and params["message"].startswith("The MCP server own asks: Who are you?"), params
    schema = params["requestedSchema"]
    assert list(schema["properties"]) == list(FORM["properties"]) and schema["required"] == ["name"], schema
    assert schema["properties"]["name"] == {"type": "string", "title": "Name", "minLength": 2}, schema
    assert schema["properties"]["colour"]["oneOf"][1] == {"const": "g", "title": "g"}, schema


@at_desk
def an_address_of_a_server_goes_to_the_editor(place):
    seen = []

    def answer(params):
        seen.append(params)
        return {"action": "accept", "content": {"left": "out"}}

    heard, _, _ = elicited(place, {"a": PAGE_OF_SERVER}, answer)
    assert heard["answer"] == {"action": "accept"}, heard
    assert seen[0]["mode"] == "url" and seen[0]["url"] == PAGE_OF_SERVER["url"] and seen[0]["elicitationId"], seen


@at_desk
def a_no_of_the_editor_is_a_no(place):
    for number, action in enumerate(("decline", "cancel")):
        os.makedirs(place.path(f"{number}"), exist_ok=True)
        heard, _, updates = elicited(place, {"a": ASKED}, lambda params, action=action: {
            "action": action, "content": {"name": "Ann"}})
        assert heard["answer"] == {"action": action} and not warnings(updates), heard


@at_desk
def an_answer_that_does_not_fit_is_declined_and_said(place):
    def refuses(_params):
        raise Refused("I have no forms")

    wrong = (({"action": "accept", "content": {"name": "A"}}, "/name"),
             ({"action": "accept", "content": {"name": "Ann", "age": "seven"}}, "/age"),
             ({"action": "accept"}, "name"),
             ({"action": "accept", "content": None}, "name"),
             ({"action": "accept", "content": {"name": "Ann", "tools": ["hammer"]}}, "/tools"),
             ({"action": "accept", "content": {"name": "A" * (2 << 20)}}, "bytes"),
             ({"action": "_shrug"}, "form that is not known"))
    for answer, word in wrong:
        heard, _, updates = elicited(place, {"a": ASKED}, lambda params, answer=answer: answer)
        assert heard["answer"] == {"action": "decline"}, (answer, heard)
        assert len(warnings(updates)) == 1 and word in warnings(updates)[0], (word, warnings(updates))
    heard, _, updates = elicited(place, {"a": ASKED}, refuses)
    assert heard["answer"] == {"action": "decline"} and len(warnings(updates)) == 1, heard


@at_desk
def what_is_not_of_the_form_is_not_handed_on(place):
    heard, _, _ = elicited(place, {"a": ASKED}, lambda params: {
        "action": "accept", "content": {"name": "Ann", "password": "secret"}})
    assert heard["answer"] == {"action": "accept", "content": {"name": "Ann"}}, heard


@at_desk
def a_client_is_asked_only_what_it_takes(place):
    def never(_params):
        raise AssertionError("asked")

    for capabilities, asked, can in (
            ({"fs": {}}, ASKED, {}),
            ({"elicitation": {}}, ASKED, {}),
            ({"elicitation": {"form": {}}}, PAGE_OF_SERVER, {"elicitation": {"form": {}}}),
            ({"elicitation": {"url": {}}}, ASKED, {"elicitation": {"url": {}}})):
        heard, client, _ = elicited(place, {"a": asked}, never, capabilities=capabilities)
        assert heard["can"] == can, (capabilities, heard)
        assert heard["answer"] in ({"action": "decline"}, {"code": -32601, "message": "This client offers nothing of that kind."}), heard
        assert not [m for m in client.messages if m.get("method") == "elicitation/create"]


@at_desk
def a_form_that_the_protocol_cannot_say_is_declined(place):
    for field in ({"type": "object", "properties": {}}, {"type": "array", "items": {"type": "object"}},
                  {"$ref": "#/x"}, {"type": ["string", "null"]}):
        schema = {"type": "object", "properties": {"odd": field}}
        heard, client, _ = elicited(place, {"a": {"message": "?", "requestedSchema": schema}}, lambda params: None)
        assert heard["answer"] == {"action": "decline"}, (field, heard)
        assert not [m for m in client.messages if m.get("method") == "elicitation/create"]


@at_desk
def several_questions_are_asked_one_by_one(place):
    seen = []

    def answer(params):
        seen.append(params["mode"])
        return {"action": "accept", "content": {"name": "Ann"}} if params["mode"] == "form" else {"action": "decline"}

    heard, client, _ = elicited(place, {"a": ASKED, "b": PAGE_OF_SERVER, "c": ASKED}, answer, words=["modern"])
    assert heard["answer"] == {"a": {"action": "accept", "content": {"name": "Ann"}}, "b": {"action": "decline"},
                               "c": {"action": "accept", "content": {"name": "Ann"}}}, heard
    assert seen == ["form", "url", "form"], seen
    assert heard["can"] == BOTH, heard
    assert len([m for m in client.messages if m.get("method") == "elicitation/create"]) == 3


@at_desk
def a_cancelled_turn_waits_for_no_form(place):
    client, session = eliciting(place, turn("", call("own_ask", ask={"a": ASKED})), turn("Again."),
                                answers={"elicitation/create": lambda params: LATER}, capabilities=BOTH)
    number = client.send_prompt(session, "ask")
    asked = client.until(lambda m: m.get("method") == "elicitation/create")
    client.notify("session/cancel", sessionId=session)
    withdrawn = client.until(lambda m: m.get("method") == "$/cancel_request")
    assert withdrawn["params"] == {"requestId": asked["id"]}, withdrawn
    assert client.wait(number)["stopReason"] == "cancelled"
    # What comes too late changes nothing.
    client.reply(asked["id"], {"action": "accept", "content": {"name": "Ann"}})
    assert client.prompt(session, "again")[0] == "end_turn"
    client.close()


@at_desk
def a_form_of_a_call_that_has_ended_is_withdrawn(place):
    client, session = eliciting(place, turn("", call("own_ask", ask={"a": ASKED}, leave=True)), turn("Done."),
                                answers={"elicitation/create": lambda params: LATER}, capabilities=BOTH)
    reason, updates = client.prompt(session, "ask")
    assert reason == "end_turn" and text_of(list(results(updates).values())[0]).strip("`\n") == "never mind"
    asked, = [m for m in client.messages if m.get("method") == "elicitation/create"]
    withdrawn, = [m for m in client.messages if m.get("method") == "$/cancel_request"]
    assert withdrawn["params"] == {"requestId": asked["id"]}, withdrawn
    client.close()


# What a server wants the model to be asked.


def sampling(text="What is 6 times 7?", **more):
    return {"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        "systemPrompt": "Be short.", "maxTokens": 100000, **more}}


def sampled(place, asked, *answers, turns=(turn("42."),), words=(), server=None, limits=None):
    """What the server hears when ANSWERS are chosen, the questions, and how the turn ended."""
    left, place.scripts = list(answers), place.scripts + 1
    place.write("elicitor.py", ELICITOR)
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        raise tap.Skip("no python3 in /usr/bin")
    server = server or {"command": python, "args": [place.path("elicitor.py"), *words], "sampling": True}
    name = f"../config{place.scripts}.json"
    place.write(name, json.dumps({"mcpServers": {"own": server},
                                  "agents": {"default": {"limits": limits or {}}}}))
    os.chmod(place.path(name), 0o600)
    client, session = place.open(
        turn("", call("own_ask", ask=asked)), *turns, turn("Done."), answers={QUESTION: lambda _params: left.pop(0)},
        options=["--config", os.path.realpath(place.path(name))])
    reason, updates = client.prompt(session, "ask")
    client.close()
    questions = [m["params"] for m in client.messages if m.get("method") == QUESTION]
    text = text_of(list(results(updates).values())[0]).strip("`\n")
    return json.loads(text) if text.startswith("{") else text, questions, reason


@at_desk
def a_server_has_the_model_asked_when_the_person_agrees(place):
    heard, questions, reason = sampled(place, {"a": sampling()}, chosen("once"))
    assert heard["answer"] == {"role": "assistant", "content": {"type": "text", "text": "42."},
                               "model": heard["answer"]["model"], "stopReason": "endTurn"}, heard
    assert heard["can"] == {"sampling": {}} and reason == "end_turn", heard
    about, = [question["toolCall"] for question in questions]
    assert "The MCP server own wants your model to be asked" in about["title"] and "4000" in about["title"], about
    assert "Be short." in text_of(about) and "What is 6 times 7?" in text_of(about), about
    stored = sqlite3.connect(os.path.join(place.home, ".local", "state", "glovebox", "sessions.db"))
    kept, = [json.loads(row[0]) for row in stored.execute("SELECT json FROM event WHERE kind = 'sampled'")]
    stored.close()
    assert kept["text"] == "42." and "6 times 7" in kept["asked"] and kept["usage"]["money_known"], kept


@at_desk
def without_a_yes_the_model_is_not_asked(place):
    for answer in chosen("no"), chosen("session"), {"outcome": {"outcome": "cancelled"}}:
        heard, questions, _ = sampled(place, {"a": sampling()}, answer, turns=())
        assert heard["answer"] == {"code": -1, "message": "The person did not agree to ask a model."}, heard
        assert len(questions) == 1


@at_desk
def without_the_key_sampling_is_not_offered(place):
    place.write("elicitor.py", ELICITOR)
    plain = {"command": "/usr/bin/python3", "args": [place.path("elicitor.py")]}
    for server in plain, {**plain, "sampling": False}:
        heard, questions, _ = sampled(place, {"a": sampling()}, turns=(), server=server)
        assert heard["can"] == {} and heard["answer"]["code"] == -32601 and not questions, heard


@at_desk
def of_a_hundred_wishes_at_once_one_is_asked(place):
    heard, questions, _ = sampled(place, {f"q{i}": sampling() for i in range(100)}, chosen("once"))
    fine = [answer for answer in heard["answer"].values() if "content" in answer]
    refused = {json.dumps(answer) for answer in heard["answer"].values() if "code" in answer}
    assert len(fine) == 1 and len(questions) == 1 and len(heard["answer"]) == 100, (len(fine), len(questions))
    assert refused == {json.dumps({"code": -1, "message": "Only calls may ask, one question at a time, and 16 in all."})}


@at_desk
def what_a_person_cannot_judge_is_refused(place):
    picture = {"role": "user", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}}
    for asked, word in ((sampling("x" * (1 << 20)), "24576 bytes"),
                        (sampling(messages=[picture]), "Only texts"),
                        (sampling(messages=[{"role": "user", "content": [{"type": "text", "text": "a"}, picture["content"]]}]),
                         "Only texts"),
                        (sampling(messages=[]), "messages"), (sampling(messages=[{"role": "king"}]), "role"),
                        (sampling(tools=[{"name": "bash", "inputSchema": {"type": "object"}}]), "No tools")):
        heard, questions, _ = sampled(place, {"a": asked}, turns=())
        assert heard["answer"]["code"] == -32602 and word in heard["answer"]["message"] and not questions, heard


@at_desk
def what_is_asked_for_a_server_counts_for_the_turn(place):
    heard, _, reason = sampled(place, {"a": sampling()}, chosen("once"), limits={"iterations": 2})
    assert "content" in heard["answer"] and reason == "max_turn_requests", (heard, reason)
    heard, _, reason = sampled(place, {"a": sampling()}, chosen("once"), limits={"iterations": 1}, turns=())
    assert heard["answer"] == {"code": -1, "message": "The limits of this turn are reached."}, heard


@at_desk
def newer_servers_have_the_model_asked_in_between(place):
    heard, questions, _ = sampled(place, {"a": sampling(), "b": sampling("And 8 times 8?")}, chosen("once"), chosen("once"),
                                  turns=(turn("42."), turn("64.")), words=["modern"])
    assert [heard["answer"][key]["content"]["text"] for key in "ab"] == ["42.", "64."] and len(questions) == 2, heard
    heard, questions, _ = sampled(place, {"a": sampling()}, chosen("no"), turns=(), words=["modern"])
    assert heard.endswith("wanted a model to be asked for this call: The person did not agree to ask a model."), heard
    heard, questions, _ = sampled(place, {"a": sampling(tools=[{}])}, turns=(), words=["modern"])
    assert heard.endswith("No tools are offered here.") and not questions, heard


@at_desk
def a_server_over_http_has_the_model_asked(place):
    for modern in False, True:
        server = http_server.Server("modern" if modern else "legacy")
        server.samples = sampling()["params"]
        with server:
            heard, questions, _ = sampled(place, {}, chosen("once"), server={
                "type": "http", "url": server.url, "sampling": True})
        assert heard["content"]["text"] == "42." and len(questions) == 1, (modern, heard)


@at_desk
def without_a_person_the_model_is_not_asked(place):
    place.write("elicitor.py", ELICITOR)
    place.write("../alone.json", json.dumps({"mcpServers": {"own": {
        "command": "/usr/bin/python3", "args": [place.path("elicitor.py")], "sampling": True}}}))
    os.chmod(place.path("../alone.json"), 0o600)
    done = tap.run([PROGRAM, "run", "--json", "--config", os.path.join(place.folder, "alone.json"), "-C", place.work, "--model",
                    place.script(turn("", call("own_ask", ask={"a": sampling()})), turn("Done.")), "ask"],
                   env=place.environment, cwd=place.folder)
    ended, = [event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "tool_ended"]
    assert json.loads(ended["text"])["can"] == {}, ended


# A stop at every point.


def before_anything(place):
    client = place.start(turn("x"))
    return client


def after_initialize(place):
    client = place.start(turn("x"))
    client.initialize()
    return client


def while_a_session_opens(place):
    client = after_initialize(place)
    client.send("session/new", {"cwd": place.work, "mcpServers": []})
    return client


def while_nothing_is_asked(place):
    return place.open(turn("x"))[0]


def while_a_command_runs(place):
    client, session = place.open(turn("", call("bash", command="setsid sleep 1000 & sleep 1000")), turn("x"))
    client.send_prompt(session, "sleep")
    client.until_update("tool_call_update", lambda one: one["status"] == "in_progress")
    return client


def while_a_command_prints(place):
    client, session = place.open(turn("", call("bash", command="yes")), turn("x"))
    client.send_prompt(session, "print")
    client.until_update("tool_call_update", lambda one: one["status"] == "in_progress")
    client.reads.clear()
    return client


def while_a_question_is_open(place):
    client, session = outside(place, LATER)
    client.send_prompt(session, "read")
    client.until(lambda m: m.get("method") == QUESTION)
    return client


def while_a_text_is_asked_for(place):
    path = place.write("a.txt", LINES)
    client, session, buffers = buffered(place, turn("", call("read_file", path="a.txt")), turn("x"))
    buffers.texts[path] = LATER
    client.send_prompt(session, "read")
    client.until(lambda m: m.get("method") == "fs/read_text_file")
    return client


def while_the_mode_changes(place):
    client, session = place.open(turn("x"))
    client.send("session/set_mode", {"sessionId": session, "modeId": "plan"})
    return client


def while_two_sessions_work(place):
    client = while_a_command_runs(place)
    session = client.new(place.work)
    client.send_prompt(session, "sleep")
    client.until_update("tool_call")
    return client


def while_a_session_closes(place):
    client, session = place.open(turn("", call("bash", command="trap '' TERM; sleep 1000")), turn("x"))
    client.send_prompt(session, "sleep")
    client.until_update("tool_call_update", lambda one: one["status"] == "in_progress")
    client.send("session/close", {"sessionId": session})
    return client


POINTS = (before_anything, after_initialize, while_a_session_opens, while_nothing_is_asked, while_a_command_runs,
          while_a_command_prints, while_a_question_is_open, while_a_text_is_asked_for, while_the_mode_changes,
          while_two_sessions_work, while_a_session_closes)


def everything_ends(stop):
    """STOP the agent at each point: all that it started ends with it."""
    for point in POINTS:
        with desk() as place:
            client = point(place)
            below = descendants(client.process.pid)
            since = time.monotonic()
            stop(client)
            try:
                client.process.wait(60)
                all_end(below, since)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                raise AssertionError(f"{point.__name__}: {error}") from error
            assert not tap.is_late(time.monotonic() - since, END_SECONDS + 1), (
                point.__name__, time.monotonic() - since)


@tap.case
def the_end_of_the_input_ends_all():
    everything_ends(lambda client: client.process.stdin.close())


@tap.case
def a_signal_ends_all():
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        everything_ends(lambda client, number=number: client.process.send_signal(number))


@tap.case
def being_killed_ends_all():
    everything_ends(lambda client: client.process.kill())


@at_desk
def a_signal_is_the_exit_code(place):
    client, _ = place.open(turn("x"))
    client.process.send_signal(signal.SIGTERM)
    client.close(128 + signal.SIGTERM)


@at_desk
def the_death_of_the_editor_ends_all(place):
    """The input stays open: another process has it."""
    read, write = os.pipe()
    words = [PROGRAM, "acp", "--model", place.script(turn("x"))]
    editor = subprocess.Popen(  # pylint: disable=consider-using-with
        [sys.executable, "-c", "import subprocess, sys, time\n"
         "child = subprocess.Popen(sys.argv[1:], stdin=0)\nprint(child.pid, flush=True)\ntime.sleep(1000)", *words],
        stdin=read, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=place.environment, text=True)
    agent = int(editor.stdout.readline())
    for number, method, params in ((1, "initialize", {"protocolVersion": 1}),
                                   (2, "session/new", {"cwd": place.work, "mcpServers": []})):
        os.write(write, json.dumps({"jsonrpc": "2.0", "id": number, "method": method,
                                    "params": params}).encode() + b"\n")
        while json.loads(editor.stdout.readline()).get("id") != number:
            pass
    below = [agent, *descendants(agent)]
    assert len(below) > 2, below
    since = time.monotonic()
    editor.kill()
    editor.wait()
    all_end(below, since)
    os.close(read)
    os.close(write)


@at_desk
def a_session_that_dies_takes_no_other_with_it(place):
    client, first = place.open(turn("", call("bash", command="sleep 1000")), turn("x"))
    one = set(descendants(client.process.pid))
    second = client.new(place.work)
    client.ask("session/set_config_option", sessionId=second, configId="model", value=place.script(turn("Alive.")))
    number = client.send_prompt(first, "sleep")
    client.until_update("tool_call_update", lambda update: update["status"] == "in_progress")
    worker = next(pid for pid in one if is_alive(pid) and os.path.exists(f"/proc/{pid}/stat") and
                  int(open(f"/proc/{pid}/stat", encoding="latin-1").read().rsplit(")", 1)[1].split()[1])
                  == client.process.pid)
    os.kill(worker, signal.SIGKILL)
    try:
        client.wait(number)
        raise AssertionError("a dead session answers")
    except Failure as failure:
        assert failure.code == -32603, str(failure)
    assert said(client.prompt(second, "are you?")[1]) == "Alive."
    client.refuses(-32602, "session/prompt", first, sessionId=first, prompt=[{"type": "text", "text": "x"}])
    result = client.ask("session/load", sessionId=first, cwd=place.work, mcpServers=[])
    assert result["modes"]["currentModeId"] == "auto"
    client.close()


@at_desk
def a_client_that_reads_slowly_gets_everything(place):
    words, lines = "word " * 10000, "line\n" * 8000
    client, session = place.open(
        *[turn(words, call("write_file", path=f"{number}.txt", content=lines)) for number in range(40)],
        turn("Done."))
    client.reads.clear()
    number = client.send_prompt(session, "talk")
    until = time.monotonic() + SLOW_SECONDS
    while not os.path.exists(place.path("39.txt")) and time.monotonic() < until:
        time.sleep(0.01)
    assert not os.path.exists(place.path("39.txt")), "nothing waits for the client"
    client.reads.set()
    assert client.wait(number) == {"stopReason": "end_turn"}
    assert said(client.updates(session)) == words * 40 + "Done."
    assert [one["status"] for one in results(client.updates(session)).values()] == ["completed"] * 40
    client.close()


@tap.case
def each_message_fits_the_published_schema():
    """All cases have looked at it."""
    if not SCHEMA.is_there:
        raise tap.Skip("it is in a package of npm: dev/npm tests/conformance build/conformance, or make check-all")
    assert SCHEMA.params("session/prompt", {}) and SCHEMA.params("session/nothing", {})


tap.play()
