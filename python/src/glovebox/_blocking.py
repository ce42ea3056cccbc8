"""
The classes whose methods block. Each method is that of glovebox.aio, run to its end by `finish` (_waiting.py): names,
types and documentation are taken from there, and nothing is written twice.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Concatenate, ParamSpec, TypeVar

from . import _programs, aio
from ._waiting import BLOCKING, finish
from .errors import Closed, GloveboxError, Usage
from .results import Accounts, ToolResult

__all__ = ["Cell", "Process", "Shell", "Stream", "Tools", "map"]

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound="_Face")


class _Face:
    """What blocks in place of an object that awaits."""

    def __init__(self, core: Any) -> None:
        self._core = core

    def __repr__(self) -> str:
        return repr(self._core)


def _blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """METHOD of the object that awaits, as one that blocks."""
    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return finish(method(self._core, *args, **kwargs))
    return call


def _making(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, Any]],
            face: Callable[[Any], F]) -> Callable[Concatenate[Any, P], F]:
    """The same for a METHOD that makes an object: FACE blocks in its place."""
    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> F:
        return face(finish(method(self._core, *args, **kwargs)))
    return call


def _as(method: Callable[Concatenate[Any, P], None],
        ) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Decorator: the arguments are those of METHOD, and the object is another one."""
    def decorate(function: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        @functools.wraps(method)
        def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
            function(self, *args, **kwargs)
        return call
    return decorate


class Stream(_Face):
    __doc__ = _programs.Stream.__doc__

    read_some = _blocking(_programs.Stream.read_some)
    read = _blocking(_programs.Stream.read)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            line: bytes = finish(self._core.__anext__())
            return line
        except StopAsyncIteration:
            raise StopIteration from None


class Process(_Face):
    __doc__ = _programs.Process.__doc__

    def __init__(self, core: _programs.Process) -> None:
        super().__init__(core)
        self.stdout = Stream(core.stdout)
        self.stderr = Stream(core.stderr)
        self.number: int = core.number
        self.poll = core.poll

    write = _blocking(_programs.Process.write)
    close_input = _blocking(_programs.Process.close_input)
    signal = _blocking(_programs.Process.signal)
    kill = _blocking(_programs.Process.kill)
    resize = _blocking(_programs.Process.resize)
    wait = _blocking(_programs.Process.wait)


class Shell(_Face):
    __doc__ = _programs.Shell.__doc__

    run = _blocking(_programs.Shell.run)
    interrupt = _blocking(_programs.Shell.interrupt)
    close = _blocking(_programs.Shell.close)

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Tools(_Face):
    __doc__ = (aio.Tools.__doc__ or "").replace("await ", "")

    def __getattr__(self, name: str) -> Callable[..., ToolResult]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(**arguments: Any) -> ToolResult:
            return self.call(name, arguments)

        call.__name__ = name
        return call

    call = _blocking(aio.Tools.call)
    list = _blocking(aio.Tools.list)
    schemas = _blocking(aio.Tools.schemas)


class _BlockingCell(aio.Cell):
    _mode = BLOCKING


class Cell(_Face):
    __doc__ = aio.Cell.__doc__

    @_as(aio.Cell.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        self._core = _BlockingCell(*args, **kwargs)
        self.tools = Tools(self._core.tools)
        finish(self._core.open())

    tools: Tools

    exec = _blocking(aio.Cell.exec)
    start = _making(aio.Cell.start, Process)
    shell = _making(aio.Cell.shell, Shell)
    read_bytes = _blocking(aio.Cell.read_bytes)
    write_bytes = _blocking(aio.Cell.write_bytes)
    read_text = _blocking(aio.Cell.read_text)
    write_text = _blocking(aio.Cell.write_text)
    listdir = _blocking(aio.Cell.listdir)
    stat = _blocking(aio.Cell.stat)
    remove = _blocking(aio.Cell.remove)
    rename = _blocking(aio.Cell.rename)
    mkdir = _blocking(aio.Cell.mkdir)
    upload = _blocking(aio.Cell.upload)
    download = _blocking(aio.Cell.download)
    changes = _blocking(aio.Cell.changes)
    patch = _blocking(aio.Cell.patch)
    undo = _blocking(aio.Cell.undo)
    snapshot = _blocking(aio.Cell.snapshot)
    accounts = _blocking(aio.Cell.accounts)
    add_tool = _blocking(aio.Cell.add_tool)
    close = _blocking(aio.Cell.close)

    def __enter__(self) -> Cell:
        return self

    def __exit__(self, *error: object) -> None:
        finish(self._core.__aexit__(*error))

    @property
    def name(self) -> str:
        """Its name in the engine."""
        return str(self._core.name)

    @property
    def workspace(self) -> str:
        """The path of its workspace on this machine."""
        return str(self._core.workspace)

    @property
    def at(self) -> str:
        """The path at which its programs see the workspace."""
        return str(self._core.at)

    @property
    def level(self) -> int:
        """How strong it is: 3, 2 or 0 (docs/levels.md)."""
        return int(self._core.level)

    @property
    def about(self) -> Mapping[str, Any]:
        """All that the engine has said of it when it was opened."""
        about: Mapping[str, Any] = self._core.about
        return about

    @property
    def closed(self) -> bool:
        return bool(self._core.closed)


def map(function: Callable[[Cell, T], R], items: Iterable[T], cells: int = 64, **cell_args: Any) -> Iterator[R]:
    """
    Call FUNCTION with a cell and an item, for each of ITEMS, in CELLS threads at the same time. Each item has a fresh
    cell, made with CELL_ARGS. Results come in the order of the items; at most twice CELLS items are taken ahead of
    them. The first exception of any item ends it, as leaving the loop does: the open cells are closed.
    """
    if cells < 1:
        raise Usage(f"cells={cells}: at least one cell is needed")
    opened = _Opened()

    def one(item: T) -> R:
        with opened.cell(cell_args) as cell:
            return function(cell, item)

    threads = ThreadPoolExecutor(cells, thread_name_prefix="glovebox-map")
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(threads.submit(one, item))
            if len(waiting) >= 2 * cells:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        opened.close()


def _first(waiting: deque[Future[R]]) -> R:
    """The first result of WAITING; the exception of any of them, when that comes before."""
    left = set(waiting)
    while not waiting[0].done():
        done, left = wait(left, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
    return waiting.popleft().result()


class _Opened:
    """The cells of a map that are open: its end closes them, and with them all that its threads wait for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cells: set[Cell] = set()
        self._over = False

    @contextlib.contextmanager
    def cell(self, arguments: Mapping[str, Any]) -> Iterator[Cell]:
        with Cell(**arguments) as cell:
            with self._lock:
                if self._over:
                    raise Closed("this map is over")
                self._cells.add(cell)
            try:
                yield cell
            finally:
                with self._lock:
                    self._cells.discard(cell)

    def close(self) -> None:
        with self._lock:
            self._over = True
            cells = list(self._cells)
        for cell in cells:
            with contextlib.suppress(GloveboxError):
                cell.close()
