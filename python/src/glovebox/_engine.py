"""
An engine: one `glovebox serve` process, which has many cells, and the wire to it (docs/serve.md).

One thread for each engine reads what it says. Callers write their requests themselves where that is atomic for a pipe,
and leave longer ones to the thread, which never waits for a pipe either; so neither side can hold up the other. An
answer sets the signals of its request (_waiting.py). Everything that waits or is kept has a ceiling: see the constants.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import fcntl
import itertools
import json
import math
import os
import re
import select
import shutil
import subprocess
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._waiting import BLOCKING, Mode, finish
from .errors import Busy, GloveboxError, SetUp, Unavailable, Usage, error_of, of_another_process

VERSION = 1
LINE_MAX = 16 << 20  # bytes of a line that is sent; one that is received has as much besides what was asked for
ALLOWANCE = 64 << 10  # of a received line, beside the bytes that were asked for
QUEUE_MAX = 256 << 20  # bytes that the engine has not read
ATOMIC = 4096  # bytes that a pipe takes all or none of (PIPE_BUF)
READ_BYTES = 256 << 10
PIPE_BYTES = 1 << 20
HELLO_SECONDS = 30.0
CANCEL_SECONDS = 0.5  # that a cancelled call has until nobody waits for it any more
END_SECONDS = 5.0  # that an engine has to end, before it is killed; it needs two at most
SAID_MAX = 4096  # bytes of its error output that are kept
HOST_CALLS = 64  # calls of the caller's own tools at the same time
DEPTH_MAX = 120  # lists and members in each other: the engine takes 128, some of which are the wire's
VALUES_MAX = 1_000_000  # values of a message: the engine takes twice as many

Answer = Mapping[str, Any]


class _Broken(Exception):
    """The engine has said something that is no message of the wire."""


class Pending:
    """A request that was made. The thread of its engine gives it an answer or an error, once."""

    def __init__(self, method: str, *, path: str | None = None, allowance: int = 0,
                 arrived: Callable[[Answer], None] | None = None,
                 late: Callable[[Answer], None] | None = None) -> None:
        self.id = 0
        self.method = method
        self.path = path
        self.allowance = allowance  # bytes that its answer may have besides those of a line
        self._arrived = arrived  # called in the engine's thread, before any later message is looked at
        self._late = late  # called with an answer for which nobody waited
        self._lock = threading.Lock()
        self._answer: Answer | None = None
        self._error: Exception | None = None
        self._notices: list[Callable[[], None]] = []
        self._abandoned = False

    @property
    def done(self) -> bool:
        return self._answer is not None or self._error is not None

    def notify(self, notice: Callable[[], None]) -> None:
        """Call NOTICE when the request is done, or now."""
        with self._lock:
            if not self.done:
                self._notices.append(notice)
                return
        notice()

    def settle(self, answer: Answer | None, error: Exception | None) -> None:
        if answer is not None and self._arrived is not None:
            self._arrived(answer)
        with self._lock:
            if self.done:
                return
            self._answer, self._error = answer, error
            notices, self._notices = self._notices, []
            late = self._late if self._abandoned else None
        for notice in notices:
            notice()
        if late is not None and answer is not None:
            late(answer)

    def abandon(self) -> None:
        """Nobody waits for the answer any more."""
        with self._lock:
            self._abandoned = True
            answer = self._answer
        if answer is not None and self._late is not None:
            self._late(answer)

    def result(self) -> Answer:
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer


class Flow:
    """What the engine tells about a program that was started: its output, and its end. Safe for threads."""

    STREAMS = ("stdout", "stderr", "tty")
    KEPT_MAX = 4 << 20  # the engine waits after 1 MiB of which nobody has taken anything

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: dict[str, deque[bytes]] = {name: deque() for name in self.STREAMS}
        self._size = 0
        self._notices: list[Callable[[], None]] = []
        self.outcome: Answer | None = None
        self.error: Exception | None = None

    @property
    def over(self) -> bool:
        return self.outcome is not None or self.error is not None

    def feed(self, stream: str, data: bytes) -> None:
        with self._lock:
            if self._size + len(data) > self.KEPT_MAX:
                raise _Broken("more output than the wire allows")
            self._parts[stream if stream in self._parts else "stdout"].append(data)
            self._size += len(data)
        self._tell()

    def end(self, outcome: Answer | None, error: Exception | None = None) -> None:
        with self._lock:
            if self.over:
                return
            self.outcome, self.error = outcome, error
        self._tell()

    def _tell(self) -> None:
        with self._lock:
            notices, self._notices = self._notices, []
        for notice in notices:
            notice()

    @contextlib.contextmanager
    def notice(self, call: Callable[[], None]) -> Iterator[None]:
        """In a `with` block: CALL is called at the next output or end; now, when the end was told."""
        with self._lock:
            over = self.over
            if not over:
                self._notices.append(call)
        if over:
            call()
        try:
            yield
        finally:
            with self._lock, contextlib.suppress(ValueError):
                self._notices.remove(call)

    def has(self, streams: Sequence[str]) -> bool:
        return any(self._parts[name] for name in streams)

    def take(self, stream: str) -> bytes:
        """All output of STREAM that has come and that nobody has taken."""
        with self._lock:
            parts = self._parts[stream]
            data = parts[0] if len(parts) == 1 else b"".join(parts)
            parts.clear()
            self._size -= len(data)
        return data


class HostCall:
    """A call of a tool of ours, which the engine waits for."""

    def __init__(self, engine: Engine, number: Any, arguments: Mapping[str, Any]) -> None:
        self._engine, self._id = engine, number
        self.arguments = arguments
        self.stop: Callable[[], object] | None = None  # what ends it, when nobody waits any more

    def answer(self, result: Mapping[str, Any]) -> None:
        self._engine.host_done(self._id)
        try:
            self._engine.tell({"id": self._id, "result": result})
        except (Usage, TypeError, ValueError) as error:
            self._engine.tell({"id": self._id, "result": {"text": f"its answer cannot be sent: {error}", "failed": True}})


def program_path(program: str | os.PathLike[str] | None = None) -> str:
    """The program: PROGRAM, what the variable GLOVEBOX names, the one of this package, the first in PATH."""
    named = os.fspath(program) if program is not None else os.environ.get("GLOVEBOX", "")
    if named:
        found = shutil.which(named)
        if found is None:
            raise Unavailable(f"{named}: there is no such program", remedy="name one with GLOVEBOX=/PATH/TO/glovebox")
        return found
    own = Path(__file__).parent / "bin" / "glovebox"
    if own.is_file() and os.access(own, os.X_OK):
        return str(own)
    found = shutil.which("glovebox")
    if found is None:
        raise Unavailable("the program glovebox is neither in this package nor in PATH",
                          remedy="install the wheel for this machine, or name the program with GLOVEBOX=/PATH/TO/glovebox")
    return found


class Engine:
    """
    An engine of its own, for cells that are opened with `engine=`. Without one, all cells of a process share the engine
    that the first of them has started. It ends at `close`, and with this process, whatever ends that; an engine that is
    only dropped stays until then, and is a ResourceWarning at the end.

    PROGRAM names the program glovebox; MAX_CELLS, CONFIG and MINIMUM_LEVEL are options of `glovebox serve`. Without
    MINIMUM_LEVEL the engine opens weaker cells too, and each Cell compares the level with its own.
    """

    def __init__(self, program: str | os.PathLike[str] | None = None, *, max_cells: int | None = None,
                 config: str | os.PathLike[str] | None = None, minimum_level: str = "L0") -> None:
        self._pid = os.getpid()
        self._program = program_path(program)
        argv = [self._program, "serve", "--minimum-level", minimum_level]
        argv += ["--max-cells", str(max_cells)] if max_cells is not None else []
        argv += ["--config", os.fspath(config)] if config is not None else []
        self._lock = threading.Lock()  # of what waits, and of the engine's end
        self._numbers = itertools.count(1)
        self._pending: dict[int, Pending] = {}
        self._allowance = LINE_MAX
        self._flows: dict[int, tuple[str, Flow]] = {}
        self._tools: dict[tuple[str, str], Callable[[HostCall], None]] = {}
        self._host_calls: dict[Any, HostCall] = {}
        self._dead: str | None = None
        self._closing = False
        self._said = b""
        self._out_lock = threading.Lock()  # of what is written
        self._out: deque[memoryview] = deque()
        self._out_size = 0
        self._leavings: deque[tuple[str, Mapping[str, Any]]] = deque()
        self._parts: list[bytes] = []
        self._parts_size = 0
        self._start(argv)
        self._greeting = Pending("hello")
        _engines.add(self)
        self._thread = threading.Thread(target=self._work, name="glovebox-engine", daemon=True)
        self._thread.start()
        self.post(self._greeting, {"version": VERSION, "client": "glovebox.py"})

    def _start(self, argv: list[str]) -> None:
        ours: list[int] = []
        theirs: list[int] = []
        try:
            for direction in ("in", "out", "err"):
                reading, writing = os.pipe2(os.O_CLOEXEC)
                ours.append(writing if direction == "in" else reading)
                theirs.append(reading if direction == "in" else writing)
            ours.extend(os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK))
            # A session of its own: Ctrl-C at a terminal is for this program, which may go on after it.
            self._process = subprocess.Popen(argv, stdin=theirs[0], stdout=theirs[1], stderr=theirs[2],
                                             start_new_session=True)
        except OSError as error:
            for fd in ours:
                os.close(fd)
            raise Unavailable(f"{argv[0]}: the engine cannot be started: {error.strerror}") from error
        finally:
            for fd in theirs:
                os.close(fd)
        self._in, self._from, self._errors, self._woken_fd, self._wake_fd = ours
        os.set_blocking(self._in, False)
        self._size_pipes()

    def _size_pipes(self) -> None:
        for fd in (self._in, self._from):
            # Beyond the share of an ordinary user a pipe stays as it is.
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    # What callers use.

    @property
    def pid(self) -> int:
        """The process of the engine."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Does it take requests of this process?"""
        return self._dead is None and not self._closing and self._pid == os.getpid()

    @property
    def info(self) -> Mapping[str, Any]:
        """What the engine says of itself and of this machine: program, level, cpus, memory, cgroup, limits, methods."""
        return finish(self.greet(BLOCKING))

    def close(self) -> None:
        """End the engine with all its cells, and wait for its end: 5 seconds at most."""
        if self._pid != os.getpid():
            return
        self._closing = True
        self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join(2 * END_SECONDS)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What the other modules of the package use.

    async def greet(self, mode: Mode) -> Answer:
        """The answer to hello."""
        if not self._greeting.done:
            signal = mode.signal()
            self._greeting.notify(signal.set)
            if not await signal.wait(HELLO_SECONDS):
                self.fail(f"the engine has not said hello within {HELLO_SECONDS:.0f} s")
        answer = self._greeting.result()
        if answer.get("version") != VERSION or not isinstance(answer.get("methods"), list):
            self.fail(f"the engine speaks version {answer.get('version')} of the wire, and this package version {VERSION}")
            raise Unavailable(f"{self._program}: {self._dead}", remedy="install the same release of both")
        return answer

    async def has(self, mode: Mode, method: str) -> bool:
        """Does this engine know METHOD?"""
        return method in (await self.greet(mode))["methods"]

    async def request(self, mode: Mode, pending: Pending, params: Mapping[str, Any], *,
                      timeout: float | None = None) -> Answer:
        """
        Make the request PENDING and wait for its answer, TIMEOUT seconds at most. Where the caller is cancelled or
        interrupted, the engine is told, and has CANCEL_SECONDS to end the call with everything that it has started.
        """
        if self._pid != os.getpid():
            raise of_another_process(self._pid)
        try:
            signal = mode.signal()
            pending.notify(signal.set)
            self.post(pending, params)
            if not await signal.wait(timeout):
                raise Unavailable(f"{pending.method}: the engine has not answered in {timeout:.0f} s")
        except BaseException:
            if pending.id and not pending.done:
                with contextlib.suppress(GloveboxError):
                    self.tell({"method": "$/cancel", "params": {"id": pending.id}})
                again = mode.signal()
                pending.notify(again.set)
                try:
                    await again.wait(CANCEL_SECONDS)
                finally:
                    pending.abandon()
            else:
                pending.abandon()
            raise
        return pending.result()

    def post(self, pending: Pending, params: Mapping[str, Any]) -> None:
        """Send the request PENDING."""
        number = next(self._numbers)
        line = _line({"id": number, "method": pending.method, "params": params})
        with self._lock:
            if self._dead is not None or self._closing:
                raise Unavailable(f"{pending.method}: {self._dead or 'the engine was closed'}")
            self._pending[number] = pending
            self._allowance += pending.allowance
        pending.id = number
        try:
            self._write(line)
        except BaseException as error:
            self._forget(number)
            if isinstance(error, GloveboxError):
                pending.id = 0  # it was not sent, so there is nothing to cancel
            raise

    def post_quietly(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a request whose answer nobody needs. Never fails."""
        with contextlib.suppress(GloveboxError):
            self.post(Pending(method), params)

    def leave(self, method: str, params: Mapping[str, Any]) -> None:
        """The same for destructors, which run at any moment, so that no lock may be taken."""
        if self._pid == os.getpid():
            self._leavings.append((method, params))
            self._wake()

    def tell(self, message: Mapping[str, Any]) -> None:
        self._write(_line(message))

    def follow(self, cell: str, number: int, flow: Flow) -> None:
        """FLOW is that of the program NUMBER in CELL. Called in the engine's thread."""
        with self._lock:
            self._flows[number] = (cell, flow)

    def unfollow(self, number: int) -> None:
        with self._lock:
            self._flows.pop(number, None)

    def end_cell(self, cell: str) -> None:
        """CELL was closed: forget its tools, and tell those who wait for its programs."""
        with self._lock:
            flows = [flow for name, flow in self._flows.values() if name == cell]
            self._flows = {number: row for number, row in self._flows.items() if row[0] != cell}
            self._tools = {key: call for key, call in self._tools.items() if key[0] != cell}
        for flow in flows:
            flow.end(None, error_of("cell/close", {"message": f"cell {cell} was closed", "data": {"kind": "closed"}}))

    def add_tool(self, cell: str, name: str, call: Callable[[HostCall], None]) -> None:
        """CALL is called in the engine's thread, and must not wait."""
        with self._lock:
            self._tools[(cell, name)] = call

    def host_done(self, number: Any) -> None:
        with self._lock:
            self._host_calls.pop(number, None)

    def fail(self, reason: str) -> None:
        """End the engine for REASON: whoever waits gets Unavailable."""
        self._die(reason)
        self._process.kill()
        self._wake()

    # Writing.

    def _wake(self) -> None:
        # A full pipe wakes as well.
        with contextlib.suppress(OSError):
            os.write(self._wake_fd, b".")

    def _write(self, line: bytes) -> None:
        with self._out_lock:
            if self._in < 0:
                return  # those who wait are told by the thread
            if not self._out and len(line) <= ATOMIC:
                try:
                    os.write(self._in, line)
                    return
                except BlockingIOError:
                    pass
                except OSError:
                    self._wake()
                    return
            if self._out_size + len(line) > QUEUE_MAX:
                raise Busy(f"the engine does not read: {self._out_size} bytes wait for it")
            self._out.append(memoryview(line))
            self._out_size += len(line)
        self._wake()

    def _write_on(self) -> None:
        """Write what waits, as much as fits."""
        with self._out_lock:
            while self._out and self._in >= 0:
                try:
                    written = os.write(self._in, self._out[0])
                except BlockingIOError:
                    return
                except OSError:
                    self._out.clear()
                    self._out_size = 0
                    return
                self._out_size -= written
                if written < len(self._out[0]):
                    self._out[0] = self._out[0][written:]
                else:
                    self._out.popleft()

    def _close_input(self) -> None:
        with self._out_lock:
            if self._in >= 0:
                os.close(self._in)
                self._in = -1
            self._out.clear()
            self._out_size = 0

    # The thread of the engine.

    def _work(self) -> None:
        reason = ""
        try:
            reason = self._read()
        except _Broken as error:
            reason = f"the engine has said what is no message: {error}"
        except Exception as error:  # a mistake of ours must not leave anybody waiting
            reason = f"{type(error).__name__}: {error}"
        self._end(reason)

    def _read(self) -> str:
        """Read until the engine ends, or has not ended in time. Says why."""
        poll = select.poll()
        for fd in (self._from, self._errors, self._woken_fd):
            poll.register(fd, select.POLLIN)
        writing = False
        deadline: float | None = None
        while True:
            wants = bool(self._out) and self._in >= 0
            if wants != writing:
                writing = wants
                if wants:
                    poll.register(self._in, select.POLLOUT)
                else:
                    poll.unregister(self._in)
            if self._closing and deadline is None:
                if writing:
                    poll.unregister(self._in)
                    writing = False
                self._close_input()
                deadline = time.monotonic() + END_SECONDS
            left = None if deadline is None else max(0, int((deadline - time.monotonic()) * 1000))
            events = poll.poll(left)
            if not events and deadline is not None and time.monotonic() >= deadline:
                return "the engine was closed, and was killed because it did not end"
            for fd, _event in events:
                if fd == self._from and not self._take():
                    return "the engine was closed" if self._closing else ""
                if fd == self._errors and not self._hear():
                    poll.unregister(self._errors)
                if fd == self._woken_fd:
                    with contextlib.suppress(OSError):
                        os.read(fd, READ_BYTES)
                    self._send_leavings()
                if fd == self._in:
                    self._write_on()
            if self._out and not writing:
                self._write_on()

    def _send_leavings(self) -> None:
        while self._leavings:
            method, params = self._leavings.popleft()
            self.post_quietly(method, params)
            if method == "cell/close":
                self.end_cell(str(params["cell"]))

    def _hear(self) -> bool:
        try:
            said = os.read(self._errors, READ_BYTES)
        except OSError:
            return False
        self._said = (self._said + said)[-SAID_MAX:]
        return bool(said)

    def _take(self) -> bool:
        """Take what has come. False at the end."""
        try:
            data = os.read(self._from, READ_BYTES)
        except OSError:
            return False
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            line = data[start:end]
            if self._parts:
                line = b"".join([*self._parts, line])
                self._parts.clear()
                self._parts_size = 0
            start = end + 1
            self._take_line(line)
        if start < len(data):
            self._parts.append(data[start:] if start else data)
            self._parts_size += len(data) - start
            if self._parts_size > self._allowance + ALLOWANCE:
                raise _Broken(f"a line of more than {self._allowance >> 20} MiB")
        return bool(data)

    def _take_line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _Broken(repr(line[:100])) from error
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise _Broken(repr(line[:100]))
        if "method" in message:
            self._take_asked(message)
            return
        result, refused = message.get("result"), message.get("error")
        if not isinstance(result, dict) and not isinstance(refused, dict):
            raise _Broken(repr(line[:100]))
        pending = self._forget(message.get("id"))
        if pending is None:
            # Nobody waits any more; or the engine could not read a line, and does not know whose.
            if message.get("id") is None and isinstance(refused, dict):
                self._unread(refused)
            return
        if isinstance(result, dict):
            pending.settle(result, None)
        elif isinstance(refused, dict):
            pending.settle(None, error_of(pending.method, refused, pending.path))

    def _unread(self, refused: Mapping[str, Any]) -> None:
        """A line was REFUSED as none: it was that of the request which waits alone, if there is one."""
        with self._lock:
            alone = next(iter(self._pending.values())) if len(self._pending) == 1 else None
        if alone is not None and self._forget(alone.id) is not None:
            alone.settle(None, error_of(alone.method, refused, alone.path))

    def _forget(self, number: Any) -> Pending | None:
        with self._lock:
            pending = self._pending.pop(number, None) if isinstance(number, int) else None
            if pending is not None:
                self._allowance -= pending.allowance
        return pending

    def _take_asked(self, message: Mapping[str, Any]) -> None:
        """A notice or a request of the engine."""
        method, params = message["method"], message.get("params")
        if not isinstance(params, dict):
            raise _Broken(f"{method} without members")
        number = params.get("process")
        _, flow = self._flows.get(number, ("", None)) if isinstance(number, int) else ("", None)
        if method == "exec/output" and flow is not None:
            try:
                flow.feed(str(params.get("stream")), base64.b64decode(params.get("bytes") or ""))
            except (ValueError, TypeError) as error:
                raise _Broken(f"output that is no Base64: {error}") from error
        elif method == "exec/exited" and flow is not None:
            self.unfollow(params["process"])
            flow.end(params)
        elif method == "tool/host_call" and "id" in message:
            self._call_host(message["id"], params)
        elif method == "$/cancel":
            with self._lock:
                call = self._host_calls.pop(params.get("id"), None)
            if call is not None and call.stop is not None:
                call.stop()
        elif method == "cell/closed":
            self.end_cell(str(params.get("cell")))

    def _call_host(self, number: Any, params: Mapping[str, Any]) -> None:
        arguments = params.get("arguments")
        call = HostCall(self, number, arguments if isinstance(arguments, dict) else {})
        with self._lock:
            tool = self._tools.get((str(params.get("cell")), str(params.get("tool"))))
            has_room = len(self._host_calls) < HOST_CALLS
            if tool is not None and has_room:
                self._host_calls[number] = call
        if tool is None:
            call.answer({"text": "This tool is gone.", "failed": True})
        elif not has_room:
            call.answer({"text": f"{HOST_CALLS} calls of the caller's tools are under way: try again.", "failed": True})
        else:
            tool(call)

    # The end.

    def _die(self, reason: str) -> None:
        with self._lock:
            self._dead = self._dead or reason
            pending, self._pending = list(self._pending.values()), {}
            flows, self._flows = [flow for _, flow in self._flows.values()], {}
            calls, self._host_calls = list(self._host_calls.values()), {}
        for request in pending:
            request.settle(None, Unavailable(f"{request.method}: {self._dead}"))
        for flow in flows:
            flow.end(None, Unavailable(self._dead))
        for call in calls:
            if call.stop is not None:
                call.stop()

    def _end(self, reason: str) -> None:
        self._close_input()
        if reason and not self._closing:
            self._process.kill()
        try:
            code = self._process.wait(0 if "killed" in reason else END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        with contextlib.suppress(OSError):
            os.set_blocking(self._errors, False)
            while self._hear():
                pass
        said = self._said.decode(errors="replace").strip().splitlines()
        ended = f"the engine was ended by signal {-code}" if code < 0 else f"the engine has ended with exit code {code}"
        self._die(reason or (f"{ended}: {said[-1]}" if said else ended))
        for fd in (self._from, self._errors):
            os.close(fd)
        self._from = self._errors = -1

    def __del__(self) -> None:
        # Not before: a thread that is about to wake this one must not write to a number that is something else's.
        with contextlib.suppress(OSError, AttributeError):
            for fd in (self._woken_fd, self._wake_fd):
                if fd >= 0:
                    os.close(fd)

    def _leave_to_parent(self) -> None:
        """This is a child made by os.fork: the engine stays the parent's, and must not be held open here."""
        for fd in (self._in, self._from, self._errors, self._woken_fd, self._wake_fd):
            with contextlib.suppress(OSError):
                if fd >= 0:
                    os.close(fd)
        self._in = self._from = self._errors = self._woken_fd = self._wake_fd = -1
        self._process.returncode = 0  # no warning about a child that is not ours


_BYTES = re.compile("[\udc80-\udcff]")  # as Python has them in names (os.fsdecode)


def _check_value(value: object, exact: bool, depth: int = 1) -> int:
    """
    Raise ValueError where the engine could not read VALUE, which may be a model's: an engine that cannot read a line does
    not know either whose it was. EXACT: also where it would read another text. How many values it has.
    """
    if depth > DEPTH_MAX:
        raise ValueError(f"it is more than {DEPTH_MAX} levels deep")
    if isinstance(value, dict):
        if len({key if isinstance(key, str) else json.dumps(key) for key in value}) < len(value):
            raise ValueError("two of its members have the same name")
        return 1 + sum(_check_value(key, exact, depth) + _check_value(inner, exact, depth + 1)
                       for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return 1 + sum(_check_value(inner, exact, depth + 1) for inner in value)
    if exact and isinstance(value, str) and not value.isascii() and _BYTES.search(value):
        raise ValueError(f"{value[:100]!r} has bytes that are no UTF-8, and would become another name")
    if isinstance(value, int) and not -1 << 63 <= value < 1 << 63:
        raise ValueError("an integer has more than 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no number of JSON")
    return 1


def _line(message: Mapping[str, Any]) -> bytes:
    # Half a character becomes U+FFFD. In the arguments and answers of tools, which are models' texts, that may be so. A name
    # with bytes that are no UTF-8 would be another file's then, and two of them the same one.
    exact = message.get("method") not in (None, "tool/call")
    try:
        if _check_value(message, exact) > VALUES_MAX:
            raise ValueError(f"it has more than {VALUES_MAX} values")
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise Usage(f"{message.get('method', 'an answer')}: it cannot be written as JSON: {error}") from error
    if len(line) > LINE_MAX:
        raise Usage(f"{message.get('method', 'an answer')}: {len(line)} bytes are more than a line may have ({LINE_MAX})")
    return line


# The engine that cells of this process share.

_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_shared: Engine | None = None
_shared_lock = threading.Lock()


def shared_engine() -> Engine:
    """The engine of this process; a new one when there is none, or when it has ended."""
    global _shared
    with _shared_lock:
        if _shared is None or not _shared.alive:
            _shared = Engine()
        return _shared


def check_level(told: object, wanted: str, because: object) -> None:
    """Raise SetUp where a cell of level TOLD is weaker than WANTED."""
    levels = ("L0", "L1", "L2", "L3")
    if wanted not in levels:
        raise Usage(f"minimum_level={wanted!r} is no level: L3, L2 or L0")
    if not isinstance(told, int) or told < levels.index(wanted):
        why = f" ({because})" if because else ""
        raise SetUp(f"a cell of this machine has level L{told}{why}, and {wanted} is wanted",
                    rule="minimum_level", remedy="glovebox doctor says what this machine lacks")


def _after_fork() -> None:
    global _shared, _shared_lock
    _shared, _shared_lock = None, threading.Lock()
    for engine in list(_engines):
        engine._leave_to_parent()


def _at_exit() -> None:
    engines = list(_engines)
    dropped = [engine for engine in engines if engine.alive and engine is not _shared]
    for engine in engines:
        engine._closing = engine._closing or engine._pid == os.getpid()
        engine._wake()
    for engine in engines:
        engine.close()
    for engine in dropped:
        # Its thread holds it, so no destructor can say so before.
        warnings.warn(f"the engine {engine.pid} was never closed", ResourceWarning, source=engine, stacklevel=1)


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
