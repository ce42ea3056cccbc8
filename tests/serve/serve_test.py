#!/usr/bin/env python3
"""serve: the conversations in conversations.talk, and callers that are torn, hostile or killed.

serve_test.py TAP_FOLDER GLOVEBOX

A conversation is a text. "== TITLE" begins a case, with an engine of its own. "> METHOD {PARAMS}" sends a request
and waits for its answer; "< RESULT" is what the result must have in it, "! KIND TEXT" the kind of the error and
words of its sentence, "data MEMBERS" what its data must have. "*" stands for any value, "b:TEXT" for bytes. "notice
METHOD {PARAMS}" waits for a notice. @CELL, @PROCESS and @WORK are the cell and the process that were begun last, and a
folder of the caller's."""
import contextlib
import fcntl
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import tap  # noqa: E402, pylint: disable=wrong-import-position
import wire  # noqa: E402, pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[2])
LINE_MAX = 16 << 20
CELL_CALLS = 64
MANY = int(os.environ.get("GLOVEBOX_TEST_OPENS", "40"))
KILLS = 12
END_SECONDS = 2
STALE_SECONDS = 2  # the age of a socket at which nobody listens, before it is replaced
UNREAD = 1 << 20
PIPE = 64 << 10
CELLS = 6
LOOKS_S = 15  # half of the time for which a worker that looks stays
OPENINGS = 8  # cells that are built at the same time
# A starter that was stopped: 5 s for the anchor of a cell that closes, then 1 s for its own end.
STARTER_SECONDS = 14
# Of an idle cell: descriptors of the engine and of the anchor, and memory that the anchor shares with nobody.
CELL_DESCRIPTORS, ANCHOR_DESCRIPTORS, ANCHOR_KIB = 10, 6, 512
LATE_MOUNTS, CELL_GROUP = {"/dev/shm", "/dev/pts"}, "/cell-"
ANCHOR_SECONDS = 10      # until an anchor that was ended is gone
SYS_ADMIN = 1 << 21      # a capability, of which an anchor has no other
DESCRIPTORS_LEFT = 8
GROUPS_DESCRIPTORS = 40  # of a groups process with a few groups
MAPPING_BYTES = 64 << 20  # the largest mapping that is read

# The members that each method needs besides its cell.
NEEDS = {
    "cell/close": {}, "cell/info": {}, "cell/accounts": {}, "exec/run": {"argv": ["true"]}, "exec/start": {"argv": ["true"]},
    "exec/write": {"process": 1, "bytes": ""}, "exec/signal": {"process": 1, "signal": 15},
    "exec/resize": {"process": 1, "rows": 2, "columns": 2}, "exec/wait": {"process": 1},
    "exec/more": {"process": 1, "bytes": 1}, "exec/cancel": {"process": 1}, "exec/list": {},
    "exec/end_output": {"process": 1, "stream": "stdout"}, "exec/watch": {"process": 1}, "exec/unwatch": {"process": 1}, "file/read": {"path": "a"}, "file/write": {"path": "a", "bytes": ""},
    "file/stat": {"path": "a"}, "file/list": {"path": "."}, "file/remove": {"path": "a"},
    "file/rename": {"path": "a", "to": "b"}, "file/make_dir": {"path": "a"}, "tree/put": {"bytes": ""}, "tree/get": {}, "tree/drop": {"tree": 1}, "file/drop": {"path": "a"},
    "tool/list": {},
    "tool/call": {"tool": "bash", "arguments": {"command": "true"}},
    "tool/register": {"name": "mine", "description": "d", "schema": {}},
    "cell/changes": {}, "cell/patch": {}, "cell/undo": {}, "cell/snapshot": {"name": "one"},
    "run/start": {"prompt": "x"}, "run/cancel": {"run": 1},
}
WITHOUT_CELL = {"hello", "cell/open", "cell/list", "$/cancel"}


@contextlib.contextmanager
def served(*options, **more):
    engine = wire.Engine(PROGRAM, wire.folder(), *options, **more)
    try:
        yield engine
    finally:
        engine.close()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def fits(wanted, got):
    if wanted == "*":
        return True
    if isinstance(wanted, dict) and isinstance(got, dict):
        return all(key in got and fits(wanted[key], got[key]) for key in wanted)
    if isinstance(wanted, list) and isinstance(got, list):
        return len(wanted) == len(got) and all(map(fits, wanted, got))
    return type(wanted) is type(got) and wanted == got


def replaced(value, names):
    """VALUE with the names of a conversation, and with its bytes as Base64."""
    if isinstance(value, dict):
        return {key: replaced(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, names) for item in value]
    if not isinstance(value, str):
        return value
    if value == "@PROCESS":
        return names[value]
    for name in ("@CELL", "@WORK"):
        value = value.replace(name, names.get(name, ""))
    return wire.encode(value[2:].encode()) if value.startswith("b:") else value


def play(lines):
    with served() as engine:
        names, answer = {"@WORK": engine.work}, None
        for number, line in lines:
            word, _, rest = line.partition(" ")
            if word == ">":
                method, _, params = rest.partition(" ")
                answer = engine.call(method, **replaced(json.loads(params or "{}"), names))
                result = answer.get("result") or {}
                names.update({name: result[key] for name, key in (("@CELL", "cell"), ("@PROCESS", "process"))
                              if key in result})
            elif word == "<":
                wanted = replaced(json.loads(rest), names)
                assert fits(wanted, answer.get("result")), f"line {number}: {wanted} but {answer}"
            elif word == "!":
                kind, _, words = rest.partition(" ")
                error = answer.get("error", {})
                assert error.get("data", {}).get("kind") == kind and words in error["message"], \
                    f"line {number}: {answer}"
            elif word == "data":
                assert fits(replaced(json.loads(rest), names), answer["error"]["data"]), f"line {number}: {answer}"
            elif word == "notice":
                method, _, params = rest.partition(" ")
                wanted = replaced(json.loads(params), names)
                engine.take(lambda message: message.get("method") == method and
                            fits(wanted, message["params"]))  # noqa: B023, pylint: disable=cell-var-from-loop
            else:
                raise AssertionError(f"line {number}: {line}")
        assert engine.end() == 0


def conversations():
    with open(os.path.join(HERE, "conversations.talk"), encoding="utf-8") as file:
        title, lines = None, []
        for number, line in enumerate(file, 1):
            line = line.strip()
            if line.startswith("=="):
                if title:
                    yield title, lines
                title, lines = line[2:].strip(), []
            elif line and not line.startswith("#"):
                lines.append((number, line))
        yield title, lines


def add_conversation(title, lines):
    def case():
        play(lines)
    case.__name__ = title.replace(" ", "_")
    tap.case(case)


for told, spoken in conversations():
    add_conversation(told, spoken)


@tap.case
def the_manual_has_the_methods_of_the_program():
    with served(greets=False) as engine:
        hello = engine.result("hello", version=1)
        methods = hello["methods"]
        assert hello["overlay"] is (hello["level"] == 3 and "overlay\n" in read("/proc/filesystems")), hello
    with open(os.path.join(HERE, "..", "..", "docs", "serve.md"), encoding="utf-8") as file:
        table = file.read().partition("## Methods")[2].partition("## Errors")[0]
    written = re.findall(r"^\| `([a-z$]+(?:/[a-z_]+)?)` \|", table, re.MULTILINE)
    assert sorted(set(written)) == sorted(methods), (written, methods)
    assert set(methods) == set(NEEDS) | WITHOUT_CELL, methods


@tap.case
def each_method_of_a_closed_cell_says_so():
    with served() as engine:
        cell = engine.open()
        engine.result("cell/close", cell=cell)
        for method, params in NEEDS.items():
            engine.error(method, "closed", cell=cell, **params)
            engine.error(method, "no_such", cell="never", **params)


@tap.case
def each_method_refuses_a_wrong_type_and_an_unknown_member():
    with served() as engine:
        cell = engine.open()
        for method, params in NEEDS.items():
            engine.error(method, "usage", cell=7, **params)
            engine.error(method, "usage", **params)
            assert "no member \"sell\"" in engine.error(method, "usage", cell=cell, sell=1, **params)["message"]
            for name in params:
                wrong = {**params, name: [[]]}
                assert name in engine.error(method, "usage", cell=cell, **wrong)["message"], method
        engine.error("cell/open", "usage", workspace=1)
        engine.error("exec/run", "usage", cell=cell, argv=["a\0b"])
        engine.error("exec/run", "usage", cell=cell, command="true", env={"PATH=": "x"})
        engine.error("exec/run", "usage", cell=cell, command="true", keep=1 << 40)


@tap.case
def hello_comes_first_and_has_a_version():
    with served(greets=False) as engine:
        assert engine.error("cell/list", "usage")["code"] == -32600
        engine.error("hello", "usage", version=2)
        engine.result("hello", version=1, client="test 1")


@tap.case
def a_line_that_is_too_long_is_skipped_and_the_next_one_is_taken():
    with served() as engine:
        head = b'{"jsonrpc":"2.0","id":"long","method":"cell/list","params":{"x":"'
        for size in (LINE_MAX + 1, LINE_MAX * 2):
            engine.write(head + b"x" * (size - len(head)) + b"\n")
            assert engine.answer(None)["error"]["code"] == -32700
            assert engine.result("cell/list") == {"cells": []}
        line = head + b"x" * (LINE_MAX - len(head) - 3) + b'"}}'
        engine.write(line + b"\n")
        assert len(line) == LINE_MAX and engine.answer("long")["error"]["data"]["kind"] == "usage"


@tap.case
def junk_is_answered_and_blank_lines_are_not():
    with served() as engine:
        for line in (b"junk", b"[]", b"[{}]", b"7", b'{"id":1}', b"\xff\xfe", b'{"jsonrpc":"1.0","id":1,"method":"x"}',
                     b'{"jsonrpc":"2.0","id":{},"method":"cell/list"}', b"{" * 1000):
            engine.write(line + b"\n")
            assert "error" in engine.take(lambda message: "error" in message), line
        engine.write(b"\n \n\r\n")
        engine.tell({"method": "nothing/at-all", "params": {}})
        engine.tell({"id": "glovebox-9", "result": {}})
        engine.tell({"id": 4711, "result": {}})
        assert engine.call("cell/list", x=1)["error"]["code"] == -32602 and not engine.held


@tap.case
def torn_lines_are_joined_and_a_last_one_is_dropped():
    with served() as engine:
        line = json.dumps({"jsonrpc": "2.0", "id": "torn", "method": "cell/list"}).encode() + b"\n"
        for byte in line:
            engine.write(bytes([byte]))
        assert engine.answer("torn")["result"] == {"cells": []}
        engine.write(line[:-1])
        assert engine.end() == 0 and not engine.held


@tap.case
def calls_run_side_by_side_and_one_is_cancelled():
    with served() as engine:
        cell, other = engine.open(), engine.open()
        slow = engine.send("exec/run", cell=cell, command="echo begun > begun; sleep 1000")
        while not engine.run(cell, "cat begun 2>/dev/null")["stdout"]:
            pass
        assert engine.run(other, "echo two")["stdout"] == b"two\n"
        pids = engine.children()
        engine.cancel(slow)
        assert engine.answer(slow)["error"]["code"] == -32800
        engine.cancel(slow)
        engine.cancel("unknown")
        assert engine.run(cell, "ps ax | grep -c '[s]leep 1000'")["stdout"] == b"0\n"
        assert pids


@tap.case
def a_wait_is_cancelled_and_the_process_goes_on():
    with served() as engine:
        cell = engine.open()
        process = engine.result("exec/start", cell=cell, command="read x; echo $x", input=True)["process"]
        waits = engine.send("exec/wait", cell=cell, process=process)
        engine.cancel(waits)
        assert engine.answer(waits)["error"]["code"] == -32800
        engine.result("exec/write", cell=cell, process=process, bytes=wire.encode(b"on\n"))
        assert engine.result("exec/wait", cell=cell, process=process)["exit"] == 0
        assert engine.output(process) == b"on\n"


@tap.case
def a_wait_until_input_is_taken_is_cancelled():
    with served() as engine:
        cell = engine.open()
        process = engine.result("exec/start", cell=cell, argv=["sleep", "1000"], input=True)["process"]
        waiting = engine.send("exec/write", cell=cell, process=process, bytes=wire.encode(bytes(1 << 20)), taken=True)
        engine.cancel(waiting)
        assert engine.answer(waiting)["error"]["code"] == -32800


@tap.case
def a_change_that_was_answered_was_made_although_it_was_cancelled():
    with served() as engine:
        cell = engine.open()
        engine.run(cell, "true")
        for number in range(8):
            for method, params in (("file/write", {"path": f"file{number}", "bytes": wire.encode(b"x")}),
                                   ("file/make_dir", {"path": f"folder{number}"})):
                asked = engine.send(method, cell=cell, **params)
                engine.cancel(asked)
                answer = engine.answer(asked)
                made = "result" in engine.call("file/stat", cell=cell, path=params["path"])
                # The worker may have been ended between its change and its word of it.
                assert made or "result" not in answer, (method, answer)
                assert "result" in answer or answer["error"]["code"] == -32800, answer


@tap.case
def a_cell_has_so_many_calls_and_no_more():
    with served() as engine:
        cell = engine.open()
        calls = [engine.send("exec/run", cell=cell, command="sleep 1000") for _ in range(CELL_CALLS)]
        assert "64 calls" in engine.error("file/list", "busy", cell=cell, path=".")["message"]
        assert engine.result("cell/info", cell=cell)["under_way"] == CELL_CALLS
        engine.result("cell/close", cell=cell)
        for number in calls:
            assert engine.answer(number)["error"]["data"]["kind"] == "closed"


@tap.case
def output_waits_until_the_caller_asks_for_more():
    with served() as engine:
        cell = engine.open()
        process = engine.result("exec/start", cell=cell, command="head -c 8000000 /dev/zero; echo done")["process"]
        got = 0
        while got < UNREAD:
            got += len(wire.decode(engine.notice("exec/output")["params"]["bytes"]))
        # What comes now comes without a request for more: nothing, but for the answer.
        assert engine.result("cell/info", cell=cell)["under_way"] == 1 and not engine.held
        while got < 8000005:
            engine.result("exec/more", cell=cell, process=process, bytes=got)
            got += len(wire.decode(engine.notice("exec/output")["params"]["bytes"]))
        assert engine.notice("exec/exited")["params"]["exit"] == 0


@tap.case
def an_ended_program_with_unread_output_holds_up_nothing():
    # One read may pass the bound, and the pipe holds the rest.
    size = UNREAD + PIPE
    with served() as engine:
        cell = engine.open()
        processes = []
        for _ in range(CELL_CALLS + 2):
            command = f"head -c {size} /dev/zero; exit 5"
            processes.append(engine.result("exec/start", cell=cell, command=command)["process"])
            assert engine.result("exec/wait", cell=cell, process=processes[-1])["exit"] == 5
        info = engine.result("cell/info", cell=cell)
        assert info["under_way"] == 0 and info["state"] == "idle", info
        assert engine.run(cell, "echo free")["stdout"] == b"free\n"
        got = dict.fromkeys(processes, 0)

        def count():
            for message in [message for message in engine.held if message.get("method") == "exec/output"]:
                engine.held.remove(message)
                got[message["params"]["process"]] += len(wire.decode(message["params"]["bytes"]))
        count()
        assert all(UNREAD <= count < size for count in got.values()) and not engine.held, (got, engine.held[:1])
        for process in processes[1:]:
            engine.result("exec/more", cell=cell, process=process, bytes=got[process])
            exited = engine.notice("exec/exited")["params"]
            assert exited["process"] == process and exited["exit"] == 5, exited
            count()
            assert got[process] == size, got
        engine.result("cell/close", cell=cell)


@tap.case
def a_caller_that_reads_nothing_holds_up_its_programs_only():
    with served() as engine:
        cell = engine.open()
        engine.listens.clear()
        for _ in range(8):
            engine.send("exec/start", cell=cell, command="head -c 1000000 /dev/zero")
        runs = [engine.send("exec/run", cell=cell, command="head -c 900000 /dev/zero") for _ in range(8)]
        engine.listens.set()
        for number in runs:
            assert len(wire.decode(engine.answer(number)["result"]["stdout"])) == 900000
        for _ in range(8):
            engine.notice("exec/exited")


@tap.case
def bytes_pass_as_they_are():
    data = bytes(range(256)) * 5000
    with served() as engine:
        cell = engine.open()
        assert engine.run(cell, "cat", stdin=wire.encode(data), keep=len(data))["stdout"] == data
        cut = engine.run(cell, "cat; echo end", stdin=wire.encode(data), keep=1000)
        assert cut["stdout"] == data[:1000] and cut["dropped"] == len(data) - 1000 + 4
        engine.result("file/write", cell=cell, path="data", bytes=wire.encode(data))
        assert wire.decode(engine.result("file/read", cell=cell, path="data")["bytes"]) == data


@tap.case
def a_file_in_pieces_appears_as_a_whole():
    piece = os.urandom(8 << 20)
    with served() as engine:
        cell = engine.open()
        engine.result("file/write", cell=cell, path="big", bytes=wire.encode(b"old"))
        for at in range(3):
            assert engine.run(cell, "stat -c %s big")["stdout"] == b"3\n"
            engine.result("file/write", cell=cell, path="big", bytes=wire.encode(piece), offset=at * len(piece),
                          last=at == 2)
        got = b""
        while True:
            answer = engine.result("file/read", cell=cell, path="big", offset=len(got))
            got += wire.decode(answer["bytes"])
            if answer["end"]:
                break
        for method in ("file/write", "tree/put"):
            assert "more than 8 MiB" in engine.error(method, "usage", cell=cell, path="big",
                                                     bytes=wire.encode(piece + b"x"))["message"]
        assert got == piece * 3 and engine.run(cell, "ls -A")["stdout"] == b"big\n"
        assert "begins at 5" in engine.error("file/write", "usage", cell=cell, path="x", offset=9,
                                             bytes="", last=False)["message"].replace("at 0", "at 5")


@tap.case
def the_last_piece_is_sent_again_after_busy():
    with served() as engine:
        cell = engine.open()
        engine.result("file/write", cell=cell, path="f", bytes=wire.encode(b"one "), last=False)
        calls = [engine.send("exec/run", cell=cell, command="sleep 1000") for _ in range(CELL_CALLS)]
        piece = {"cell": cell, "path": "f", "bytes": wire.encode(b"two"), "offset": 4}
        engine.error("file/write", "busy", **piece)
        engine.cancel(calls[0])
        engine.answer(calls[0])
        engine.result("file/write", **piece)
        assert wire.decode(engine.result("file/read", cell=cell, path="f")["bytes"]) == b"one two"


@tap.case
def pieces_that_were_given_up_are_dropped():
    with served() as engine:
        cell = engine.open()
        for name in range(20):
            engine.error("file/write", "usage", cell=cell, path=f"never{name}", bytes="", offset=9, last=False)
        engine.result("file/write", cell=cell, path="f", bytes=wire.encode(b"old"), last=False)
        engine.result("file/write", cell=cell, path="f", bytes=wire.encode(b"whole"))
        engine.error("file/write", "usage", cell=cell, path="f", bytes=wire.encode(b"end"), offset=3)
        assert wire.decode(engine.result("file/read", cell=cell, path="f")["bytes"]) == b"whole"
        opened = {int(name) for name in os.listdir(f"/proc/{engine.process.pid}/fd")}
        free = min(set(range(len(opened) + 1)) - opened)
        before = resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE, (free, before[1]))
        refused = engine.error("file/write", "limit", cell=cell, path="g", bytes="", last=False)
        assert refused["data"]["error"] == "EMFILE" and "ulimit -n" in refused["data"]["remedy"], refused
        resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE, before)
        engine.result("file/write", cell=cell, path="g", bytes="", last=False)


@tap.case
def each_cell_of_an_ordinary_user_has_the_level_of_the_first():
    # Behind its first cell an engine hides its memory, and the kernel lets it map no user then.
    user = 71000 + os.getpid() % 10000 if os.geteuid() == 0 else None
    with served("--minimum-level", "L0", user=user) as engine:
        levels = [engine.result("cell/open")["level"] for _ in range(4)]
        levels += [engine.result("cell/info", cell=f"c{number}")["level"] for number in range(1, 5)]
        assert set(levels) == {engine.hello["level"]}, (levels, engine.hello)


@tap.case
def a_caller_can_give_up_pieces():
    with served() as engine:
        cell = engine.open()
        for name in range(16):
            engine.result("file/write", cell=cell, path=f"f{name}", bytes=wire.encode(b"one"), last=False)
        refused = engine.error("file/write", "busy", cell=cell, path="g", bytes="", last=False)
        assert "file/drop" in refused["message"], refused
        engine.result("file/drop", cell=cell, path=f"{engine.result('cell/info', cell=cell)['workspace']}/f3")
        engine.result("file/drop", cell=cell, path="f3")
        engine.error("file/write", "usage", cell=cell, path="f3", bytes="", offset=3)
        engine.result("file/write", cell=cell, path="g", bytes="", last=False)
        engine.result("file/write", cell=cell, path="f4", bytes=wire.encode(b" two"), offset=3)
        assert wire.decode(engine.result("file/read", cell=cell, path="f4")["bytes"]) == b"one two"


@contextlib.contextmanager
def stopped(engine):
    """Nothing of the cells runs."""
    pids = engine.children()
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@tap.case
def all_that_is_kept_is_charged():
    with served() as engine:
        cell = engine.open()
        engine.result("file/write", cell=cell, path="f", bytes=wire.encode(b"x" * 1000))
        process = engine.result("exec/start", cell=cell, command="cat >&2; wc -c", input=True)["process"]
        assert engine.hello["limits"]["kept"] >= engine.hello["limits"]["calls"] * 2 << 20
        # Calls that may keep all together that an engine keeps.
        calls = [engine.send("exec/run", cell=cell, command="sleep 1000", keep=64 << 20)
                 for _ in range(engine.hello["limits"]["kept"] >> 27)]
        for method, params in (("file/read", {"path": "f"}), ("exec/run", {"command": "cat", "stdin": "eHg="}),
                               ("exec/write", {"process": process, "bytes": "eHg="}),
                               ("file/write", {"path": "g", "bytes": "eHg="}),
                               ("file/write", {"path": "g", "bytes": "eHg=", "last": False})):
            engine.error(method, "busy", cell=cell, **params)
        engine.cancel(calls.pop())
        piece = wire.encode(b"x" * (8 << 20))
        for at in range(15):
            engine.result("file/write", cell=cell, path="g", bytes=piece, offset=at << 23, last=False)
        engine.result("file/write", cell=cell, path="h", bytes=wire.encode(b"x" * (7 << 20)), last=False)
        engine.error("file/write", "busy", cell=cell, path="g", bytes=piece, offset=15 << 23, last=False)
        engine.result("file/write", cell=cell, path="g", bytes="", offset=15 << 23)
        engine.result("file/write", cell=cell, path="h", bytes="", offset=7 << 20)
        assert engine.result("file/stat", cell=cell, path="g")["size"] == 15 << 23
        # Nothing stays charged: the same fits again.
        calls.append(engine.send("exec/run", cell=cell, command="sleep 1000", keep=(64 << 20) - 4096))
        engine.result("exec/write", cell=cell, process=process, bytes=wire.encode(b"x" * 4000))
        assert engine.result("cell/info", cell=cell)["under_way"] == len(calls) + 1
        engine.result("cell/close", cell=cell)


@tap.case
def signals_that_nobody_takes_hold_up_nobody():
    with served() as engine:
        cell = engine.open()
        process = engine.result("exec/start", cell=cell, command="trap 'exit 7' USR1; echo ready; "
                                "while :; do sleep 0.01; done")["process"]
        engine.notice("exec/output")
        with stopped(engine):
            line = json.dumps({"jsonrpc": "2.0", "id": "signal", "method": "exec/signal",
                               "params": {"cell": cell, "process": process, "signal": 10}}).encode() + b"\n"
            engine.write(line * (70 << 10))
            refused = engine.take(lambda message: "error" in message)["error"]
            assert refused["data"]["kind"] == "busy", refused
            engine.held.clear()
            assert len(engine.result("cell/list")["cells"]) == 1
            engine.held.clear()
        assert engine.result("exec/wait", cell=cell, process=process)["exit"] == 7


@tap.case
def a_terminal_gets_its_newest_size_and_its_end_when_it_reads():
    with served() as engine:
        cell = engine.open()
        process = engine.result("exec/start", cell=cell, tty={"rows": 3, "columns": 4},
                                command="stty -echo; echo ready; read x; stty size; cat; echo over")["process"]
        engine.notice("exec/output")
        with stopped(engine):
            for number in range(1, 1001):
                engine.result("exec/resize", cell=cell, process=process, rows=number, columns=7)
            engine.result("exec/write", cell=cell, process=process, bytes=wire.encode(b"\n"), end=True)
        assert engine.result("exec/wait", cell=cell, process=process)["exit"] == 0
        assert engine.output(process) == b"1000 7\r\nover\r\n"


@tap.case
def a_tool_of_the_caller_is_asked_of_it():
    with served() as engine:
        cell = engine.open()
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        engine.result("tool/register", cell=cell, name="double", description="Twice.", schema=schema)
        engine.error("tool/register", "usage", cell=cell, name="bash", description="x", schema={})
        engine.error("tool/register", "usage", cell=cell, name="double", description="x", schema={})
        engine.error("tool/register", "usage", cell=cell, name="", description="x", schema={})
        for wrong in ({"type": "string"}, {"type": 5}, {"properties": []}, {"properties": {"a": 5}}, {"required": "a"},
                      {"required": [1]}, {"$ref": "https://example.com/none"}, {"$schema": "https://example.com/own"}):
            refused = engine.error("tool/register", "usage", cell=cell, name="mine", description="x", schema=wrong)
            assert "schema" in refused["message"], refused
        assert "double" in [row["name"] for row in engine.result("tool/list", cell=cell)["tools"]]
        assert engine.result("tool/call", cell=cell, tool="double", arguments={"n": "x"})["status"] == "failed"
        number = engine.send("tool/call", cell=cell, tool="double", arguments={"n": 21})
        asked = engine.notice("tool/host_call")
        assert asked["params"]["arguments"] == {"n": 21} and asked["params"]["tool"] == "double"
        engine.tell({"id": asked["id"], "result": {"text": "42", "details": {"n": 42}}})
        answer = engine.answer(number)["result"]
        assert answer["status"] == "done" and answer["text"].startswith("42"), answer
        number = engine.send("tool/call", cell=cell, tool="double", arguments={"n": 1})
        asked = engine.notice("tool/host_call")
        engine.cancel(number)
        assert engine.notice("$/cancel")["params"]["id"] == asked["id"]
        assert engine.answer(number)["error"]["code"] == -32800
        engine.tell({"id": asked["id"], "result": {"text": "late"}})
        number = engine.send("tool/call", cell=cell, tool="double", arguments={"n": 1})
        engine.tell({"id": engine.notice("tool/host_call")["id"], "error": {"code": 1, "message": "no"}})
        assert engine.answer(number)["result"]["status"] == "failed"
        for told, wrong in (("5242880 bytes", {"result": {"text": "x" * (5 << 20)}}), ("no text", {"result": {"text": 5}}),
                            ("a result or an error", {}), ("and not both", {"result": {}, "error": {}})):
            number = engine.send("tool/call", cell=cell, tool="double", arguments={"n": 1})
            engine.tell({"id": engine.notice("tool/host_call")["id"], **wrong})
            answer = engine.answer(number)["result"]
            assert answer["status"] == "failed" and told in answer["text"], answer


@tap.case
def cells_open_and_close_without_a_trace():
    def counted(engine):
        with open(f"/proc/{engine.process.pid}/status", encoding="ascii") as file:
            memory = int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
        return len(os.listdir(f"/proc/{engine.process.pid}/fd")), memory, len(engine.children())
    with served() as engine:
        for number in range(MANY):
            cell = engine.open()
            if number % 4 == 0:
                assert engine.run(cell, "echo x")["exit"] == 0
            engine.result("cell/close", cell=cell)
            if number == MANY // 4:
                before = counted(engine)
        after = counted(engine)
        assert after[0] == before[0] and after[2] == before[2], (before, after)
        # A sanitizer keeps what was freed for a while.
        assert after[1] - before[1] < (65536 if "ASAN_OPTIONS" in os.environ else 4096), (before, after)
        assert not os.listdir(engine.temp)


def name_of(pid):
    """"" for a process that has ended meanwhile."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as file:
        return file.read().strip()
    return ""


def memory_of(pid):
    """All that PID has in memory of its own, and the KiB of it that it shares with nobody."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            begin, end = (int(number, 16) for number in line.split()[0].split("-"))
            # What a sanitizer keeps beside the program's memory is terabytes of addresses.
            if line.split()[1].startswith("rw") and end - begin <= MAPPING_BYTES:
                with contextlib.suppress(OSError, ValueError, OverflowError):
                    memory.seek(begin)
                    found.append(memory.read(end - begin))
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        alone = int(re.search(r"Private_Dirty:\s+(\d+)", file.read()).group(1))
    return b"".join(found), alone


def parent_of(pid):
    return int(read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[1])


def descriptors_of(pid):
    return [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]


@tap.case
def an_idle_cell_is_one_process_and_has_nothing_of_another():
    with served() as engine:
        # The first cell shows that workers can be made here; the next ones wait for their first call.
        engine.result("cell/close", cell=engine.open())
        before = len(descriptors_of(engine.process.pid))
        for number in range(CELLS):
            engine.open(name=f"name-{number}-of-a-cell", env={"ONLY_HERE": f"value-{number}-of-a-cell"})
        children = engine.children()
        starters = [pid for pid in children if name_of(pid) == "glovebox-starte"]
        anchors = [pid for pid in children if name_of(pid) == "glovebox-anchor"]
        assert len(starters) == 1 and len(anchors) == CELLS and len(children) == CELLS + 1, list(map(name_of, children))
        assert len(descriptors_of(engine.process.pid)) - before <= CELLS * CELL_DESCRIPTORS
        if os.geteuid() != 0:
            raise tap.Skip("only root may look into an anchor")
        values = [f"value-{number}-of-a-cell".encode() for number in range(CELLS)]
        seen, sockets = [], []
        for pid in anchors:
            memory, alone = memory_of(pid)
            seen.append([value for value in values if value in memory])
            assert re.search(rb"name-\d-of-a-cell", memory) is None
            assert alone <= ANCHOR_KIB or "ASAN_OPTIONS" in os.environ, alone
            held = descriptors_of(pid)
            assert len(held) <= ANCHOR_DESCRIPTORS, held
            assert all(name == "/dev/null" or name.startswith("socket:") for name in held), held
            sockets += [name for name in held if name != "/dev/null"]
        assert sorted(seen) == [[value] for value in values], seen
        assert len(sockets) == len(set(sockets)), sockets
        memory, _ = memory_of(starters[0])
        assert re.search(rb"(name|value)-\d-of-a-cell", memory) is None
        assert not set(sockets) & set(descriptors_of(starters[0]) + descriptors_of(engine.process.pid)), sockets
        told = engine.run("name-1-of-a-cell", "echo $ONLY_HERE; ls /proc/self/fd")
        assert told["stdout"] == b"value-1-of-a-cell\n0\n1\n2\n3\n", told


def anchor_of(engine):
    """The anchor of its only cell."""
    anchor, = [pid for pid in engine.children() if name_of(pid) == "glovebox-anchor"]
    return anchor


def network_of(pid):
    return os.readlink(f"/proc/{pid}/ns/net")


def mounts_of(pid):
    """The places of its mounts."""
    return {line.split()[4] for line in read(f"/proc/{pid}/mountinfo").splitlines()}


def capabilities_of(pid):
    return int(re.search(r"^CapPrm:\s+(\S+)", read(f"/proc/{pid}/status"), re.M).group(1), 16)


@tap.case
def a_cell_gets_its_network_and_more_with_its_first_worker():
    if os.geteuid() != 0:
        raise tap.Skip("only root may look into an anchor")
    with served() as engine:
        engine.result("cell/close", cell=engine.open())
        cells = [engine.open() for _ in range(CELLS)]
        anchors = [pid for pid in engine.children() if name_of(pid) == "glovebox-anchor"]
        assert {network_of(pid) for pid in anchors} == {network_of("self")}
        # Every file system and every control group of a cell that waits would cost memory of the kernel.
        waiting = [mounts_of(pid) for pid in anchors]
        assert not any(held & LATE_MOUNTS for held in waiting), waiting
        if engine.hello["cgroup"] == "v1":
            assert not any(CELL_GROUP in read(f"/proc/{pid}/cgroup") for pid in anchors)
        for cell in cells:
            told = engine.run(cell, "readlink /proc/self/ns/net; cat /proc/net/dev; grep Cap /proc/self/status")
            lines = told["stdout"].decode().splitlines()
            assert lines[0] != network_of("self") and sum(":" in line for line in lines[1:-5]) == 1, told
            assert all(int(line.split()[1], 16) == 0 for line in lines[-5:]), told
        networks = {network_of(pid) for pid in anchors}
        assert len(networks) == CELLS and network_of("self") not in networks, networks
        assert {capabilities_of(pid) for pid in anchors} == {SYS_ADMIN}
        assert all(mounts_of(pid) >= LATE_MOUNTS for pid in anchors)
        if engine.hello["cgroup"] != "none":
            assert all(CELL_GROUP in read(f"/proc/{pid}/cgroup") for pid in anchors)
        told = engine.run(cells[0], "echo x > /dev/shm/x; stat -c %a /dev/shm; ls /dev/pts; df --output=fstype /dev/shm /dev/pts | tail -2")
        assert told["stdout"].split() == [b"1777", b"ptmx", b"tmpfs", b"devpts"], told
        assert engine.run(cells[0], "cat /dev/shm/x")["stdout"] == b"x\n"
        assert b"127.0.0.1" in engine.run(cells[0], "exec 3<>/dev/tcp/127.0.0.1/9; cat /etc/hosts")["stdout"]


def first_call_is_refused(engine, why, spoil):
    """The first call of a cell whose anchor SPOIL has made unable to have a network."""
    engine.result("cell/close", cell=engine.open())
    cell = engine.open()
    anchor = anchor_of(engine)
    spoil(anchor)
    for _ in range(2):
        refused = engine.error("exec/run", "set_up", cell=cell, command="cat /proc/net/dev")
        assert re.search(why, refused["message"]) and "glovebox doctor" in refused["data"]["remedy"], refused
    # No process is left that may make networks.
    assert not wire.gone([anchor], ANCHOR_SECONDS), anchor
    engine.result("cell/close", cell=cell)


@tap.case
def a_cell_that_gets_no_network_was_not_built():
    with served() as engine:
        first_call_is_refused(engine, "Too many open files",
                              lambda anchor: resource.prlimit(anchor, resource.RLIMIT_NOFILE, (0, 0)))
        assert engine.run(engine.open(), "echo next")["stdout"] == b"next\n"


@tap.case
def a_cell_without_a_network_says_what_to_raise():
    def spaces_are_used_up(_):
        subprocess.run(["nsenter", "-U", "--preserve-credentials", "-t", str(engine.process.pid), "sh", "-c",
                        "echo 0 >/proc/sys/user/max_net_namespaces"], check=True)
    # The limits of a user namespace are its own.
    if subprocess.run("unshare -Ur nsenter -V", shell=True, check=False, capture_output=True).returncode != 0:
        raise tap.Skip("needs unshare and nsenter")
    folder = wire.folder()
    within = os.path.join(folder, "within")
    with open(within, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec unshare -Ur "{PROGRAM}" "$@"\n')
    os.chmod(within, 0o700)
    engine = wire.Engine(within, folder)
    try:
        # A program with sanitizers does not hide its memory and can look at the machine itself.
        first_call_is_refused(engine, r"user[./]max_(net|\*)_namespaces", spaces_are_used_up)
    finally:
        engine.close()


@tap.case
def a_groups_process_is_a_clone_that_ends_with_its_cell():
    with served() as engine:
        if engine.hello["cgroup"] == "none":
            raise tap.Skip("no control groups can be made here")
        cells = [engine.open(limits={"memory": "256M"}) for _ in range(2)]
        for cell in cells:
            for _ in range(3):
                engine.run(cell, "true")
        end = time.monotonic() + wire.WAIT_SECONDS

        def groups():
            return [pid for pid in engine.children() if name_of(pid) == "glovebox-groups"]
        while len(groups()) < len(cells) and time.monotonic() < end:
            time.sleep(0.01)
        held = groups()
        starter = next(pid for pid in engine.children() if name_of(pid) == "glovebox-starte")
        assert len(held) == len(cells), held
        for pid in held:
            assert parent_of(pid) == starter and len(descriptors_of(pid)) < GROUPS_DESCRIPTORS, pid
        # Workers are in groups of their own, whose memory is bounded.
        told = engine.run(cells[0], "head -c 600M /dev/zero | tail")
        assert told["exit"] != 0 and told["limit"], told
        for cell in cells:
            engine.result("cell/close", cell=cell)
        assert not wire.gone(held), held


@tap.case
def a_starter_that_was_killed_is_replaced():
    with served() as engine:
        cell = engine.open()
        starter = next(pid for pid in engine.children() if name_of(pid) == "glovebox-starte")
        os.kill(starter, signal.SIGKILL)
        assert engine.run(engine.open(), "echo new")["stdout"] == b"new\n"
        assert engine.run(cell, "echo old")["stdout"] == b"old\n"


@contextlib.contextmanager
def killed_at_the_end(engine):
    """The starter is killed when it has cloned the next anchor, and before it says so."""
    starter = next(pid for pid in engine.children() if name_of(pid) == "glovebox-starte")
    if shutil.which("strace") is None:
        raise tap.Skip("needs strace")
    with subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "-p", str(starter), "-e", "trace=sendmsg", "-e",
                           "inject=sendmsg:error=EIO:signal=KILL:when=1"], stderr=subprocess.DEVNULL) as tracer:
        while "TracerPid:\t0\n" in read(f"/proc/{starter}/status"):
            if tracer.poll() is not None:
                raise tap.Skip("strace may not trace here")
            time.sleep(0.01)
        yield
    assert not wire.gone([starter]), starter


@tap.case
def an_anchor_that_its_starter_did_not_tell_of_is_ended():
    with served() as engine:
        engine.result("cell/close", cell=engine.open())
        with killed_at_the_end(engine):
            cell = engine.open()
        anchor = anchor_of(engine)
        engine.result("exec/start", cell=cell, command="trap '' TERM INT HUP; sleep 1000; sleep 1000")
        # It does not end by itself.
        os.kill(anchor, signal.SIGSTOP)
        engine.result("cell/close", cell=cell)
        assert not wire.gone([anchor], ANCHOR_SECONDS), anchor
        assert anchor not in engine.children()


@tap.case
def a_cell_that_was_used_does_not_begin_again():
    with served() as engine:
        engine.result("cell/close", cell=engine.open())
        with killed_at_the_end(engine):
            cell = engine.open()
        assert engine.run(cell, "echo kept > /tmp/state; cat /tmp/state")["stdout"] == b"kept\n"
        anchor = anchor_of(engine)
        os.kill(anchor, signal.SIGKILL)
        assert not wire.gone([anchor]), anchor
        refused = engine.error("exec/run", "closed", cell=cell, command="cat /tmp/state")
        assert "the cell's anchor has ended" in refused["message"], refused


@contextlib.contextmanager
def stopped_starter(engine):
    """The starter takes and answers nothing, but lives."""
    starter = next(pid for pid in engine.children() if name_of(pid) == "glovebox-starte")
    os.kill(starter, signal.SIGSTOP)
    try:
        yield starter
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(starter, signal.SIGCONT)


@tap.case
def a_starter_that_does_not_answer_is_replaced():
    with served() as engine:
        cell = engine.open()
        with stopped_starter(engine) as starter:
            engine.error("cell/open", "set_up")
            assert engine.run(engine.open(), "echo new")["stdout"] == b"new\n"
            assert engine.run(cell, "echo old")["stdout"] == b"old\n" and starter not in engine.children()


@tap.case
def a_starter_that_is_killed_while_it_is_asked_is_replaced():
    with served() as engine:
        engine.result("cell/close", cell=engine.open())
        with stopped_starter(engine) as starter:
            numbers = [engine.send("cell/open", name=f"asked-{number}") for number in range(CELLS)]
            call = engine.send("exec/run", cell="asked-0", command="echo early")
            assert len(engine.result("cell/list")["cells"]) == CELLS
            os.kill(starter, signal.SIGKILL)
            for number in numbers:
                assert "result" in engine.answer(number), number
        assert wire.decode(engine.answer(call)["result"]["stdout"]) == b"early\n"
        for number in range(CELLS):
            assert engine.run(f"asked-{number}", "echo new")["stdout"] == b"new\n"


@tap.case
def a_starter_that_cannot_be_replaced_says_why():
    with served() as engine:
        engine.result("cell/close", cell=engine.open())
        with stopped_starter(engine) as starter:
            number = engine.send("cell/open", name="asked")
            assert len(engine.result("cell/list")["cells"]) == 1
            opened = {int(name) for name in os.listdir(f"/proc/{engine.process.pid}/fd")}
            free = min(set(range(len(opened) + 1)) - opened)
            before = resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE, (free, before[1]))
            os.kill(starter, signal.SIGKILL)
            refused = engine.answer(number)["error"]
            resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE, before)
        assert refused["data"]["kind"] == "set_up" and "no new one could be asked" in refused["message"], refused
        assert "Too many open files" in refused["message"], refused
        assert engine.run(engine.open(), "echo new")["stdout"] == b"new\n"


@tap.case
def a_starter_that_does_not_answer_holds_up_no_end():
    with served() as engine:
        engine.open()
        with stopped_starter(engine):
            engine.process.send_signal(signal.SIGTERM)
            assert engine.process.wait(STARTER_SECONDS) == 128 + signal.SIGTERM


def unread(pipe):
    """The bytes of PIPE that its reader has not taken."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@tap.case
def an_end_does_not_wait_for_cells_that_are_being_built():
    with served() as engine:
        engine.open()
        with stopped_starter(engine):
            for number in range(OPENINGS):
                engine.send("cell/open", name=f"opening-{number}")
            assert len(engine.result("cell/list")["cells"]) == OPENINGS + 1
            engine.send("cell/open", name="one-more")
            # That the request was read: the engine waits again, and its input is empty.
            while unread(engine.process.stdin):
                time.sleep(0.01)
            engine.process.send_signal(signal.SIGTERM)
            assert engine.process.wait(STARTER_SECONDS) == 128 + signal.SIGTERM


@tap.case
def cells_are_built_side_by_side_and_closed_while_they_are():
    with served() as engine:
        engine.result("cell/close", cell=engine.open())
        numbers = [engine.send("cell/open", policy={"write": ["."]}) for _ in range(MANY // 2)]
        cells = [engine.answer(number)["result"]["cell"] for number in numbers]
        assert len(set(cells)) == len(cells) == len(engine.result("cell/list")["cells"])
        for number in range(CELLS):
            opening = engine.send("cell/open", policy={"write": ["."]}, name=f"short-{number}")
            call = engine.send("exec/run", cell=f"short-{number}", command="sleep 1000")
            engine.result("cell/close", cell=f"short-{number}")
            for answer in (engine.answer(opening), engine.answer(call)):
                assert answer["error"]["data"]["kind"] == "closed" or answer["result"]["cell"], answer
        number = engine.send("exec/run", cell=cells[-1], command="echo x")
        assert wire.decode(engine.answer(number)["result"]["stdout"]) == b"x\n"
        assert len(engine.result("cell/list")["cells"]) == len(cells)
        # The end comes while some are being built.
        for _ in range(CELLS):
            engine.send("cell/open", policy={"write": ["."]})
        ends_clean(engine, engine.process.stdin.close)


@tap.case
def a_cell_that_cannot_be_built_is_refused_and_gone():
    if os.geteuid() != 0:
        raise tap.Skip("only root opens a cell for a user who may not enter the workspace")
    with served() as engine:
        closed = os.path.join(engine.folder, "closed")
        os.mkdir(closed, 0)
        os.chown(closed, 12345, 12345)
        for _ in range(2):
            error = engine.error("cell/open", "set_up", workspace=closed, policy={})
            assert closed in error["message"], error
            assert engine.result("cell/list") == {"cells": []}
            engine.result("cell/close", cell=engine.open())


@tap.case
def no_folder_stays_when_descriptors_run_out():
    with served() as engine:
        limit = resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE)
        cell = engine.open()
        for more in range(DESCRIPTORS_LEFT):
            fds = map(int, os.listdir(f"/proc/{engine.process.pid}/fd"))
            resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE, (max(fds) + 1 + more, limit[1]))
            started = []
            while not started or "result" in started[-1]:
                started.append(engine.call("exec/start", cell=cell, argv=["sleep", "1000"]))
                for _ in range(2):
                    answer = engine.call("cell/open", policy={"write": ["."]})
                    if "result" in answer:
                        engine.result("cell/close", cell=answer["result"]["cell"])
                    else:
                        data = answer["error"]["data"]
                        assert data["kind"] in ("limit", "set_up") and data["error"] == "EMFILE", answer
                        assert "ulimit -n" in data["remedy"], answer
                    assert len(os.listdir(engine.temp)) == 1, (more, answer)
            resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE, limit)
            for answer in started[:-1]:
                engine.result("exec/cancel", cell=cell, process=answer["result"]["process"])
                engine.result("exec/wait", cell=cell, process=answer["result"]["process"])
        ends_clean(engine, engine.process.stdin.close)


@tap.case
def an_unused_cell_closes_by_itself():
    with served() as engine:
        engine.open(name="short", idle_s=3)
        engine.result("exec/start", cell="short", command="true")
        assert engine.notice("cell/closed")["params"] == {"cell": "short", "reason": "idle"}
        assert engine.result("cell/list") == {"cells": []}


@tap.case
def max_cells_is_kept():
    with served("--max-cells", "1") as engine:
        cell = engine.open()
        error = engine.error("cell/open", "busy")
        assert error["data"]["rule"] == "max_cells" and "remedy" in error["data"]
        engine.result("cell/close", cell=cell)
        engine.open()


def ends_clean(engine, end):
    """END the engine: soon nothing of it runs, and nothing is left in its temporary folder."""
    pids = engine.children()
    began = time.monotonic()
    end()
    engine.process.wait(wire.WAIT_SECONDS)
    seconds = time.monotonic() - began
    left = wire.gone(pids)
    assert not left, left
    assert not os.listdir(engine.temp), os.listdir(engine.temp)
    return seconds


@tap.case
def the_end_of_the_input_ends_everything():
    with served() as engine:
        for _ in range(4):
            engine.send("exec/run", cell=engine.open(), command="trap '' TERM INT HUP; setsid sleep 1000 & sleep 1000")
        engine.open(workspace=engine.work)
        ends_clean(engine, engine.process.stdin.close)
        assert engine.process.returncode == 0


@tap.case
def changes_are_told_while_programs_run():
    """What a program or a shell has changed so far is told without its end, in a layer as well, and undone afterwards."""
    with served() as engine:
        for workspace in (None, {"from": engine.work}):
            cell = engine.open(**({"workspace": workspace} if workspace else {}))
            assert engine.result("cell/changes", cell=cell)["files"] == []
            process = engine.result("exec/start", cell=cell, input=True, command="while read x; do echo $x >$x; echo $x; done")["process"]
            for name in ("one", "two"):
                engine.result("exec/write", cell=cell, process=process, bytes=wire.encode(name.encode() + b"\n"))
                assert engine.output(process, name.encode() + b"\n").endswith(name.encode() + b"\n")
                rows = [row["path"] for row in engine.result("cell/changes", cell=cell)["files"]]
                assert rows == ["one", "two"][:len(rows)] and rows[-1] == name, (workspace, rows)
                assert "+" + name in engine.result("cell/patch", cell=cell)["patch"]
            engine.run(cell, "echo three >three")
            rows = [row["path"] for row in engine.result("cell/changes", cell=cell)["files"]]
            assert rows == ["one", "three", "two"], (workspace, rows)
            engine.result("exec/write", cell=cell, process=process, bytes=wire.encode(b"four\n"), end=True)
            assert engine.notice("exec/exited")["params"]["exit"] == 0
            rows = [row["path"] for row in engine.result("cell/changes", cell=cell)["files"]]
            assert rows == ["four", "one", "three", "two"], (workspace, rows)
            if workspace is None:
                while rows:
                    engine.result("cell/undo", cell=cell)
                    left = [row["path"] for row in engine.result("cell/changes", cell=cell)["files"]]
                    assert len(left) < len(rows), (left, rows)
                    rows = left
            engine.result("cell/close", cell=cell)


@tap.case
def an_empty_workspace_is_looked_at_when_something_lies_there():
    def workers(engine):
        return [pid for pid in engine.children() if name_of(pid) == "glovebox-worker"]

    with served() as engine:
        engine.result("cell/close", cell=engine.open())  # workers can be made here
        opened = engine.result("cell/open", policy={"write": ["."]})
        cell, work = opened["cell"], opened["workspace"]
        before = workers(engine)
        assert engine.run(cell, "echo gone >gone; rm gone")["exit"] == 0
        left = [pid for pid in workers(engine) if pid not in before]
        assert not wire.gone(left, LOOKS_S), "a worker has looked at nothing"
        assert engine.result("cell/changes", cell=cell)["files"] == []
        # The caller's own file is not the next command's.
        with open(os.path.join(work, "theirs"), "w", encoding="ascii") as file:
            file.write("theirs\n")
        assert engine.run(cell, "echo mine >mine")["exit"] == 0
        assert [row["path"] for row in engine.result("cell/changes", cell=cell)["files"]] == ["mine"]
        assert engine.run(cell, "rm theirs; mkdir below; echo more >below/more")["exit"] == 0
        rows = [row["path"] for row in engine.result("cell/changes", cell=cell)["files"]]
        assert rows == ["below/more", "mine", "theirs"], rows
        for _ in range(2):
            engine.result("cell/undo", cell=cell)
        assert os.listdir(work) == ["theirs"], os.listdir(work)
        # The first command that leaves something there is a step as well.
        cell = engine.open()
        assert engine.run(cell, "echo first >first")["exit"] == 0
        assert [row["path"] for row in engine.result("cell/changes", cell=cell)["files"]] == ["first"]
        engine.result("cell/undo", cell=cell)
        assert engine.run(cell, "ls")["stdout"] == b""


@tap.case
def a_folder_above_the_workspace_stays_where_it_is():
    with served() as engine:
        opened = engine.result("cell/open", policy={"write": ["."]})
        cell, work = opened["cell"], opened["workspace"]
        above = os.path.dirname(os.path.dirname(work))
        done = engine.run(cell, f"mv {above} {above}.gone; mkdir -p {work}; test -e {above}.gone || echo stays")
        assert done["stdout"] == b"stays\n", done
        engine.result("file/write", cell=cell, path="f", bytes=wire.encode(b"x"))
        kept = engine.result("cell/close", cell=cell, keep=True)["workspace"]
        assert os.listdir(kept) == ["f"], os.listdir(kept)
        shutil.rmtree(os.path.dirname(kept))


@tap.case
def a_signal_ends_everything():
    with served() as engine:
        engine.send("exec/run", cell=engine.open(), command="sleep 1000")
        ends_clean(engine, lambda: engine.process.send_signal(signal.SIGTERM))
        assert engine.process.returncode == 128 + signal.SIGTERM


@tap.plain_case
def a_caller_that_is_killed_at_any_moment_leaves_nothing():
    for seed in range(KILLS):
        chance = random.Random(seed)
        with served() as engine:
            cell = None
            for _ in range(chance.randrange(6)):
                step = chance.randrange(4)
                if cell is None or step == 0:
                    cell = engine.open()
                elif step == 1:
                    engine.send("exec/run", cell=cell, command="sleep 1000 & sleep 1000")
                elif step == 2:
                    engine.send("exec/start", cell=cell, command="yes", stdin="")
                else:
                    engine.send("file/write", cell=cell, path="a", bytes=wire.encode(b"x" * 100000))
            if chance.randrange(2):
                engine.write(b'{"jsonrpc":"2.0","id":1,"met')

            def end(engine=engine):
                # Both ends of a killed caller are closed by the kernel.
                engine.process.stdin.close()
                engine.listens.clear()
                os.close(os.dup(engine.process.stdout.fileno()))
            ends_clean(engine, end)


@tap.case
def many_used_cells_end_side_by_side():
    with served() as engine:
        cells = [engine.open() for _ in range(24)]
        for number in [engine.send("exec/run", cell=cell, command="echo x > f; mkdir a") for cell in cells]:
            assert engine.answer(number)["result"]["exit"] == 0
        ends_clean(engine, engine.process.stdin.close)
        assert engine.process.returncode == 0


@tap.case
def the_next_engine_removes_what_a_killed_one_has_left():
    with served() as killed:
        kept = killed.result("cell/open", policy={"write": ["."]})
        killed.run(kept["cell"], "echo kept > f")
        kept = killed.result("cell/close", cell=kept["cell"], keep=True)["workspace"]
        for _ in range(2):
            killed.run(killed.open(), "mkdir -p a/b; echo x > a/b/f")
        pids = killed.children()
        killed.process.kill()
        killed.process.wait()
        assert not wire.gone(pids) and len(os.listdir(killed.temp)) == 3
        living = wire.Engine(PROGRAM, killed.folder)
        try:
            work = living.result("cell/open", policy={"write": ["."]})["workspace"]
            names = {os.path.basename(os.path.dirname(path)) for path in (kept, work)}
            assert set(os.listdir(killed.temp)) == names, os.listdir(killed.temp)
            third = wire.Engine(PROGRAM, killed.folder)
            assert third.end() == 0 and set(os.listdir(killed.temp)) == names
            assert living.end() == 0 and os.listdir(killed.temp) == [os.path.basename(os.path.dirname(kept))]
            assert os.listdir(os.path.dirname(kept)) == ["work"] and os.listdir(kept) == ["f"]
        finally:
            living.process.kill()
            living.process.wait()


@tap.case
def a_configuration_that_cannot_be_read_is_said_at_the_start():
    for path, text in (("none", None), ("wrong", "{")):
        folder = wire.folder()
        try:
            path = os.path.join(folder, path)
            if text is not None:
                with open(path, "w", encoding="ascii") as file:
                    file.write(text)
            done = subprocess.run([PROGRAM, "serve", "--config", path], stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=wire.WAIT_SECONDS, check=False)
            assert done.returncode in (1, 2) and path.encode() in done.stderr, done
        finally:
            shutil.rmtree(folder)


@tap.case
def a_socket_of_somebody_else_stays():
    with served(greets=False) as idle:
        path = os.path.join(idle.folder, "socket")
        with served("--unix", path, greets=False) as engine:
            # The flag of a socket that listens, in front of its path.
            while not re.search(f" 00010000 .*{path}", read("/proc/net/unix")):
                assert engine.process.poll() is None
                time.sleep(0.01)
            caller, other = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
            with caller, other:
                os.rename(path, path + "-first")
                other.bind(path)
                caller.connect(path + "-first")
                caller.shutdown(socket.SHUT_WR)
                assert engine.process.wait(wire.WAIT_SECONDS) == 0 and os.path.exists(path)


@tap.case
def a_socket_that_a_killed_engine_left_is_replaced():
    with served(greets=False) as idle:
        path = os.path.join(idle.folder, "socket")
        with served("--unix", path, greets=False) as killed:
            while not os.path.exists(path):
                assert killed.process.poll() is None
                time.sleep(0.01)
            killed.process.kill()
            killed.process.wait()
        # A socket that is new may be one of an engine that does not listen yet.
        while time.time() - os.lstat(path).st_ctime < STALE_SECONDS + 1:
            time.sleep(0.05)
        with served("--unix", path, greets=False) as engine:
            while not re.search(f" 00010000 .*{path}", read("/proc/net/unix")):
                assert engine.process.poll() is None
                time.sleep(0.01)
            second = subprocess.run([PROGRAM, "serve", "--unix", path], stdin=subprocess.DEVNULL, capture_output=True,
                                    timeout=wire.WAIT_SECONDS, check=False)
            assert second.returncode == 2 and b"name another path" in second.stderr, second
            engine.process.terminate()
            assert engine.process.wait(wire.WAIT_SECONDS) == 143 and not os.path.exists(path)


@tap.case
def a_caller_at_a_socket_is_served():
    with served(greets=False) as idle:
        path = os.path.join(idle.folder, "socket")
        with served("--unix", path, greets=False) as engine:
            caller = socket.socket(socket.AF_UNIX)
            while True:
                try:
                    caller.connect(path)
                    break
                except OSError:
                    assert engine.process.poll() is None
                    time.sleep(0.01)
            with caller, caller.makefile("rwb") as file:
                file.write(b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"version":1}}\n')
                file.flush()
                assert json.loads(file.readline())["result"]["version"] == 1
            assert engine.process.wait(wire.WAIT_SECONDS) == 0 and not os.path.exists(path)


tap.play(PROGRAM)
