"""Programs that were started in a cell: a process, its outputs, and a shell that stays. Written once, for both modes."""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import re
import secrets
import signal as signals
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._engine import Flow, Pending
from .errors import Busy, Closed, GloveboxError, TimedOut, Usage
from .results import ExecResult

if TYPE_CHECKING:
    from .aio import Cell

__all__ = ["Process", "Shell", "Stream"]

KEPT = 1 << 20  # bytes of each output that `wait` gathers, unless told
LINE_MAX = 1 << 20  # bytes of one line; a longer one comes in pieces
PIECE = 1 << 20  # bytes that are written at a time
MORE = 256 << 10  # bytes that were taken before the engine is told; it waits after 1 MiB
BUSY_SECONDS = 0.02  # until input is written again that the program has not taken
COMMAND_PIECE = 1000  # characters of a shell's text in one line: a terminal takes lines of 4,095 bytes, and \\x.. has 4
PAUSE_SECONDS = 1.0  # that an interrupted command of a shell has to end
START_SECONDS = 30.0  # that a shell has to begin


class Stream:
    """
    An output of a process. Iterating gives lines of bytes with their ends (a line of more than 1 MiB in pieces).
    The engine reads at most 1 MiB, both outputs together, of which nothing was taken here; then the program waits.
    """

    def __init__(self, process: Process, name: str) -> None:
        self._process = process
        self._name = name
        self._lines: deque[bytes] = deque()  # that have come, and that nobody has taken
        self._rest = b""  # the beginning of the next line

    async def read_some(self) -> bytes:
        """The output that has come, or the next that comes; b"" behind the last byte."""
        if self._lines or self._rest:
            data = b"".join([*self._lines, self._rest])
            self._lines.clear()
            self._rest = b""
            return data
        return await self._process._next((self._name,), self._name)

    async def read(self) -> bytes:
        """All output up to its end."""
        parts = []
        while part := await self.read_some():
            parts.append(part)
        return b"".join(parts)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> bytes:
        while not self._lines:
            data = await self._process._next((self._name,), self._name)
            if not data and not self._rest:
                raise StopAsyncIteration
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines.extend(line + b"\n" for line in lines)
            if self._rest and (not data or len(self._rest) >= LINE_MAX):
                self._lines.append(self._rest)
                self._rest = b""
        return self._lines.popleft()


class Process:
    """A program that was started with `Cell.start`. With a terminal all its output comes on `stdout`."""

    def __init__(self, cell: Cell, number: int, flow: Flow, tty: bool, keep: int | None = None) -> None:
        self._cell, self._flow = cell, flow
        self._number = number
        self._keep = KEPT if keep is None else keep
        self._untold = 0  # bytes that were taken, and that the engine does not know of
        self._kept: dict[str, bytearray] = {name: bytearray() for name in Flow.STREAMS}
        self._dropped = 0
        self._result: ExecResult | None = None
        self.stdout = Stream(self, "tty" if tty else "stdout")
        self.stderr = Stream(self, "stderr")

    def __repr__(self) -> str:
        return f"<glovebox process {self._number} in {self._cell.name}>"

    @property
    def number(self) -> int:
        """The number of the process in its engine."""
        return self._number

    async def write(self, data: bytes | str) -> None:
        """Give it input. Waits while the program does not read; its output is gathered for `wait` meanwhile."""
        data = data.encode() if isinstance(data, str) else data
        for start in range(0, len(data), PIECE):
            await self._write(base64.b64encode(data[start:start + PIECE]).decode())

    async def _write(self, text: str) -> None:
        while True:
            try:
                await self._ask("exec/write", bytes=text)
                return
            except Busy:
                self._gather()
                await self._cell._mode.sleep(BUSY_SECONDS)

    async def close_input(self) -> None:
        """Its input ends behind what was written."""
        await self._ask("exec/write", end=True)

    async def signal(self, number: int) -> None:
        """Send a signal to everything that the program has started."""
        await self._ask("exec/signal", signal=int(number))

    async def kill(self) -> None:
        """End it with everything that it has started."""
        await self.signal(signals.SIGKILL)

    async def resize(self, rows: int, columns: int) -> None:
        """Its terminal has another size."""
        await self._ask("exec/resize", rows=rows, columns=columns)

    async def wait(self, timeout: float | None = None) -> ExecResult:
        """
        Wait for its end. The result has the outputs that nobody has read: 1 MiB of each, the rest is counted. TimedOut
        when TIMEOUT seconds are over before (the process goes on), and when the time of the program itself was over. An
        OSError, as FileNotFoundError, when the folder in which it was to begin cannot be entered.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self._result is None:
            await self._cell._mode.sleep(0)
            self._gather()
            if self._flow.error is not None:
                raise self._flow.error
            if self._flow.outcome is not None:
                self._gather()
                self._result = self._outcome(self._flow.outcome)
                break
            signal = self._cell._mode.signal()
            left = None if end is None else end - time.monotonic()
            # What came before the notice was asked for is not told again.
            with self._flow.notice(signal.set):
                told = self._flow.has(Flow.STREAMS) or await signal.wait(left)
            if not told and left is not None:
                raise TimedOut(f"process {self._number} still runs after {timeout} s",
                               result=self._outcome({"exit": None}))
        if self._result.exit_code is None and self._flow.outcome is not None:
            number = getattr(errno, str(self._flow.outcome.get("error", "")), None)
            if isinstance(number, int):  # its folder is missing, or is none
                raise OSError(number, self._result.message or os.strerror(number))
        if self._result.timed_out:
            raise TimedOut("the time of the program is over", rule="timeout_s", result=self._result)
        return self._result

    def poll(self) -> ExecResult | None:
        """Its result, when it was waited for or has ended; else None."""
        if self._result is None and self._flow.outcome is not None:
            self._gather()
            self._result = self._outcome(self._flow.outcome)
        return self._result

    def _outcome(self, told: Mapping[str, Any]) -> ExecResult:
        out = bytes(self._kept["stdout"] + self._kept["tty"])
        return ExecResult.of(told, out, bytes(self._kept["stderr"]), self._dropped)

    async def _ask(self, method: str, **params: Any) -> None:
        await self._cell._ask(method, process=self._number, **params)

    def _gather(self) -> None:
        """Take what has come, for the result."""
        for name, kept in self._kept.items():
            data = self._flow.take(name)
            room = max(0, self._keep - len(kept))
            kept += data[:room]
            self._dropped += max(0, len(data) - room)
            self._took(len(data))

    def _took(self, size: int) -> None:
        self._untold += size
        if self._untold >= MORE:
            self._cell._engine_now().post_quietly(
                "exec/more", {"cell": self._cell.name, "process": self._number, "bytes": self._untold})
            self._untold = 0

    async def _next(self, streams: tuple[str, ...], stream: str) -> bytes:
        """The next output of STREAM; b"" behind the last byte."""
        # Others have their turn, and a caller can be cancelled, also while there is always more.
        await self._cell._mode.sleep(0)
        while True:
            kept = self._kept[stream]
            if kept:
                data = bytes(kept)
                kept.clear()
                return data
            over = self._flow.over
            data = self._flow.take(stream)
            if data:
                self._took(len(data))
                return data
            if over:
                if self._flow.error is not None:
                    raise self._flow.error
                return b""
            signal = self._cell._mode.signal()
            with self._flow.notice(signal.set):
                if not self._flow.has(streams):
                    await signal.wait()


class Shell:
    """
    One bash on a terminal of its own: variables, functions, the folder and options stay from text to text. It reads no
    startup files, does not echo, and has no prompt.
    """

    def __init__(self, process: Process, mark: bytes) -> None:
        self._process = process
        self._pattern = re.compile(b"\x1e" + mark + rb" (\d+)\x1f")
        self._output = bytearray()
        self._dropped = 0
        self._running = False
        self._lost = False  # a text was left in the middle: what comes is its, and not the next one's
        self._seen: re.Pattern[bytes] | None = None  # what `_until_ready` has found in place of the mark

    @classmethod
    async def _begin(cls, cell: Cell) -> Shell:
        mark = secrets.token_hex(8)
        # The mark is printed whenever bash is ready for a text, also after an interrupt.
        env = {"PROMPT_COMMAND": f"printf '\\036{mark} %d\\037' $?; PS1= PS2=", "PS1": "", "PS2": "",
               "TERM": "dumb", "HISTFILE": ""}
        process = await cell._start({"argv": ["bash", "-c", "stty -echo -onlcr 2>/dev/null; exec bash --noprofile --norc "
                                              "--noediting -i"], "env": env}, (24, 200))
        shell = cls(process, mark.encode())
        with shell._taken():
            ready = await shell._until_ready(time.monotonic() + START_SECONDS)
        if ready is None:
            await process.kill()
            raise Closed(f"the shell has not begun in {START_SECONDS:.0f} s: {bytes(shell._output[:200])!r}")
        if (ended := process.poll()) is not None:
            said = (ended.message or bytes(shell._output[:500]).decode(errors="replace")).strip()
            raise Closed(f"the shell could not begin: {said or f'exit code {ended.exit_code}'}")
        shell._output.clear()
        return shell

    async def run(self, text: str, timeout: float | None = None) -> ExecResult:
        """
        Run TEXT, any number of lines, and wait for its end. Both outputs are `stdout` of the result. After TIMEOUT
        seconds it is interrupted, and TimedOut has what it had printed; a text that does not end by that ends the shell.
        """
        if "\0" in text:
            raise Usage("a text for a shell has no NUL")
        self._check_ready()
        self._output.clear()
        self._dropped = 0
        began = time.monotonic()
        end = None if timeout is None else began + timeout
        with self._taken():
            for line in _lines(text):
                await self._process.write(line)
                code = await self._until_ready(end)
                if code is None:
                    break
            if code is None:
                code = await self._give_up()
                raise TimedOut(f"the text still ran after {timeout} s", rule="timeout_s",
                               result=self._result(code, began, timed_out=True))
            return self._result(code, began)

    @contextlib.contextmanager
    def _taken(self) -> Iterator[None]:
        """Nobody else types meanwhile. Where the caller is cancelled, nobody knows where the shell stands: it is lost."""
        self._running = True
        try:
            yield
        except GloveboxError:
            raise
        except BaseException:
            self._lose()
            raise
        finally:
            self._running = False

    def _check_ready(self) -> None:
        if self._lost:
            raise Closed("the shell is gone: its last text was interrupted; start another")
        if self._running:
            raise Busy("the shell is running a text; use another shell, or interrupt it")
        if self._process.poll() is not None:
            raise Closed("the shell has ended; start another one")

    def _lose(self) -> None:
        """Nobody waits for the text that runs: end it, without waiting."""
        self._lost = True
        process = self._process
        with contextlib.suppress(GloveboxError):
            process._cell._engine_now().post_quietly(
                "exec/signal", {"cell": process._cell.name, "process": process.number, "signal": int(signals.SIGKILL)})

    async def _type(self, text: str, expect: Sequence[str], end: float | None) -> tuple[str | None, bytes]:
        """
        Type TEXT at the program that runs in the shell. Which of the regular expressions EXPECT its output has, "" when the
        shell is ready for a text, None at END; and the output before that.
        """
        self._check_ready()
        patterns = [re.compile(pattern.encode()) for pattern in expect]
        self._seen = None
        self._output.clear()
        with self._taken():
            await self._process.write(text)
            code = await self._until_ready(end, patterns)
            seen, output = self._seen, bytes(self._output)
            if seen is None:
                return None if code is None else "", output
            match = seen.search(output)
            return seen.pattern.decode(), output[:match.start()] if match is not None else output

    async def interrupt(self) -> None:
        """Interrupt the text that runs, as Ctrl-C does: its `run` returns with exit code 130."""
        await self._process.write(b"\x03")

    async def close(self) -> None:
        """End the shell with everything that it has started."""
        if self._process.poll() is None:
            await self._process.kill()
            await self._process.wait()

    def _result(self, code: int | None, began: float, timed_out: bool = False) -> ExecResult:
        return ExecResult(code, bytes(self._output), timed_out=timed_out, seconds=time.monotonic() - began,
                          dropped=self._dropped)

    async def _until_ready(self, end: float | None, patterns: Sequence[re.Pattern[bytes]] = ()) -> int | None:
        """
        Take output until bash is ready. Its last exit code; None at END, and when the output has one of PATTERNS. At the
        end of bash, the code of that.
        """
        flow = self._process._flow
        name = self._process.stdout._name
        while True:
            await self._process._cell._mode.sleep(0)
            over = flow.over
            data = flow.take(name)
            if data:
                self._process._took(len(data))
                self._output += data
                found = self._pattern.search(self._output, max(0, len(self._output) - len(data) - 64))
                if found is not None:
                    code = int(found.group(1))
                    # A match of a buffer sees what becomes of it.
                    del self._output[found.start():found.end()]
                    return code
                self._seen = next((pattern for pattern in patterns if pattern.search(self._output)), None)
                if self._seen is not None:
                    return None
                if len(self._output) > 2 * KEPT:
                    # The head stays, and a mark can still be found at the end.
                    surplus = len(self._output) - KEPT - 64
                    del self._output[KEPT:KEPT + surplus]
                    self._dropped += surplus
                continue
            if flow.error is not None:
                raise flow.error
            if over:
                result = self._process.poll()
                return result.exit_code if result is not None and result.exit_code is not None else -1
            signal = self._process._cell._mode.signal()
            left = None if end is None else end - time.monotonic()
            with flow.notice(signal.set):
                if not flow.has((name,)) and not await signal.wait(left):
                    return None

    async def _give_up(self) -> int | None:
        """End the text that runs: interrupt, quit, or in the end the whole shell."""
        for key in (b"\x03", b"\x1c"):
            await self._process.write(key)
            code = await self._until_ready(time.monotonic() + PAUSE_SECONDS)
            if code is not None:
                return code
        await self.close()
        return None


def _lines(text: str) -> list[bytes]:
    """Lines for bash, each short enough for a terminal, by which it evaluates TEXT as one."""
    pieces = [text[start:start + COMMAND_PIECE] for start in range(0, len(text), COMMAND_PIECE)] or [""]
    quoted = [_quoted(piece) for piece in pieces]
    if len(quoted) == 1:
        return [b"eval " + quoted[0] + b"\n"]
    lines = [b"__glovebox_text=" + quoted[0] + b"\n"]
    lines += [b"__glovebox_text+=" + piece + b"\n" for piece in quoted[1:]]
    return [*lines, b'eval "$__glovebox_text"\n']


_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,._+-*/=:@%^~()[]{}<>|&;#\"$`!?")


def _quoted(text: str) -> bytes:
    """TEXT as $'…', in one line and without a byte that a terminal would act on."""
    made = bytearray(b"$'")
    for byte in text.encode():
        made += bytes((byte,)) if byte in _PLAIN else b"\\x%02x" % byte
    return bytes(made + b"'")
