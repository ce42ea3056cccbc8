"""
Cells for asyncio: `async with glovebox.aio.Cell() as cell: await cell.exec("make")`.

This is the one source of both modes: glovebox.Cell is the same class with methods that block (_blocking.py).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import inspect
import json
import os
import secrets
import tarfile
import tempfile
import threading
import warnings
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from typing import IO, Any, TypeVar

from . import _schema, _tree
from ._engine import Answer, Engine, Flow, HostCall, Pending, check_level, shared_engine
from ._programs import Process, Shell, Stream
from ._waiting import ASYNCIO, Mode
from .errors import Busy, Closed, CommandFailed, Denied, Limit, TimedOut, Unavailable, Usage, of_another_process
from .results import Accounts, Change, ExecResult, Stat, ToolResult

__all__ = ["Cell", "Engine", "Process", "Shell", "Stream", "Tools", "map"]

PathLike = str | os.PathLike[str]
T = TypeVar("T")
R = TypeVar("R")

PIECE = 8 << 20  # bytes of a file in one message
READ_MAX = 1 << 30  # bytes of a file that is read as a whole
FOLDER_MAX = 16 << 30  # bytes of a folder that is downloaded
INPUT_MAX = 8 << 20  # bytes of input that go with the request; more is written while the program runs
KEEP_MAX = 64 << 20  # bytes of an output
GRACE_SECONDS = 30.0  # after its time that an engine has to say that a program was ended
CLOSE_SECONDS = 30.0
WRITE_SECONDS = 0.02  # until a file is looked at again that somebody else writes in pieces
WRITE: Sequence[str] = (".",)


class Cell:
    """
    A sealed place with a workspace. WORKSPACE is a folder of this machine; without one the cell has a fresh folder,
    which goes with it. WRITE, READ and NETWORK say what its programs may reach, or POLICY says it all, as in
    docs/policy.md; AGENT has the rights of an agent of the configuration. LAYER keeps the changes beside the workspace;
    BASE names what is below the cell's view, and AT the place where the workspace is shown. MEMORY ("2G") and CPUS are
    limits. A cell that would be weaker than MINIMUM_LEVEL is not opened. A member that the engine of this machine
    does not know raises Usage.

    A cell is to be closed: use it in a `with` block, or call `close`. Threads and tasks may share it.
    """

    _mode: Mode = ASYNCIO

    def __init__(self, workspace: PathLike | None = None, *, base: str | None = None, write: Sequence[str] = WRITE,
                 read: Sequence[str] = (), network: Sequence[str] = (), env: Mapping[str, str] = {},
                 policy: Mapping[str, Any] | None = None, agent: str | None = None, layer: bool = False,
                 memory: str | None = None, cpus: float | None = None, minimum_level: str = "L3",
                 name: str | None = None, at: str | None = None, engine: Engine | None = None) -> None:
        self._cell: str | None = None
        self._engine = engine
        self._pid = os.getpid()
        self._closed = False
        self._about: Answer = {}
        self._accounts: Accounts | None = None
        self._minimum_level = minimum_level
        self._writing: set[str] = set()  # files that are written in pieces
        self._writing_lock = threading.Lock()
        self._params = _open_params(workspace, base, write, read, network, env, policy, agent, layer, memory, cpus,
                                    name, at)
        self.tools: Tools = Tools(self)

    def __repr__(self) -> str:
        state = "closed" if self._closed else self._cell or "not open"
        return f"<glovebox cell {state}{' at ' + self.workspace if self._about else ''}>"

    # Its life.

    async def open(self) -> Cell:
        """Open it. `await Cell()` and `async with Cell()` do so."""
        if self._cell is not None or self._closed:
            return self
        engine = self._engine = self._engine or shared_engine()
        hello = await engine.greet(self._mode)
        check_level(hello.get("level"), self._minimum_level, hello.get("because"))
        workspace = self._params.get("workspace")
        pending = Pending("cell/open", path=workspace.get("from") if isinstance(workspace, dict) else workspace,
                          late=lambda answer: engine.leave("cell/close", {"cell": answer.get("cell")}))
        try:
            self._about = await engine.request(self._mode, pending, self._params)
        except FileNotFoundError as error:
            folder = workspace.get("from") if isinstance(workspace, dict) else workspace
            if "agent" in self._params and (folder is None or os.path.isdir(folder)):
                raise Usage(str(error.strerror)) from error
            raise
        except Usage as error:
            newer = [member for member in ("base", "at") if member in self._params]
            newer += ["layer" if "from" in workspace else "base"] if isinstance(workspace, dict) else []
            if newer and "no member" in str(error):
                raise Usage(f"{error}: is {' and '.join(newer)} known to {hello.get('program')}?", rule=error.rule,
                            remedy="leave it out, or name a newer program with GLOVEBOX") from error
            raise
        self._cell = str(self._about["cell"])
        try:
            check_level(self._about.get("level"), self._minimum_level, self._about.get("because"))
        except Exception:
            await self.close()
            raise
        return self

    def __await__(self) -> Generator[Any, None, Cell]:
        return self.open().__await__()

    async def __aenter__(self) -> Cell:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        # A child of os.fork that leaves the block ends as it wants to: the cell is its parent's.
        if self._pid == os.getpid():
            await self.close()

    async def close(self, keep: bool = False) -> None:
        """
        End everything that runs in it. A fresh workspace goes with it; with KEEP it stays at `workspace`. Closing
        twice does nothing, nor does closing a cell whose engine has ended.
        """
        if self._closed or self._cell is None:
            self._closed = True
            return
        engine, cell = self._engine_now(), self._cell
        self._closed = True
        # Programs may have begun behind the request, whose answer comes after theirs.
        pending = Pending("cell/close", arrived=lambda _: engine.end_cell(cell))
        try:
            with contextlib.suppress(Unavailable, Closed):
                params: dict[str, Any] = {"cell": cell}
                if keep:
                    params["keep"] = True
                told = await engine.request(self._mode, pending, params, timeout=CLOSE_SECONDS)
                self._accounts = Accounts.of(told.get("accounts"))
        except Busy:
            self._closed = bool(pending.id)  # without a number it was not sent, and the cell is open
            raise
        finally:
            # Also where the caller is cancelled: the cell ends all the same, and tasks may wait for its programs.
            if self._closed:
                engine.end_cell(cell)

    def __del__(self) -> None:
        if getattr(self, "_cell", None) is None or self._closed or self._pid != os.getpid():
            return
        if self._engine is not None and self._engine.alive:
            # First: where warnings are errors, nothing behind the warning is done.
            self._engine.leave("cell/close", {"cell": self._cell})
            warnings.warn(f"{self!r} was never closed", ResourceWarning, source=self, stacklevel=2)

    @property
    def name(self) -> str:
        """Its name in the engine."""
        return self._cell or ""

    @property
    def workspace(self) -> str:
        """The path of its workspace on this machine."""
        return str(self._about.get("workspace", ""))

    @property
    def at(self) -> str:
        """The path at which its programs see the workspace."""
        return str(self._about.get("at") or self.workspace)

    @property
    def level(self) -> int:
        """How strong it is: 3, 2 or 0 (docs/levels.md)."""
        return int(self._about.get("level", 0))

    @property
    def about(self) -> Mapping[str, Any]:
        """All that the engine has said of it when it was opened."""
        return self._about

    @property
    def closed(self) -> bool:
        return self._closed

    def _engine_now(self) -> Engine:
        if self._pid != os.getpid():
            raise of_another_process(self._pid)
        if self._closed:
            raise Closed(f"this cell ({self.name}) was closed")
        if self._engine is None or self._cell is None:
            raise Usage("this cell is not open: write `async with Cell() as cell`, or `cell = await Cell()`")
        return self._engine

    async def _ask(self, method: str, *, _path: str | None = None, _allowance: int = 0, _timeout: float | None = None,
                   _arrived: Callable[[Answer], None] | None = None,
                   _late: Callable[[Answer], None] | None = None, **params: Any) -> Answer:
        engine = self._engine_now()
        pending = Pending(method, path=_path, allowance=_allowance, arrived=_arrived, late=_late)
        return await engine.request(self._mode, pending, {"cell": self._cell, **params}, timeout=_timeout)

    # Programs.

    async def exec(self, argv: Sequence[str] | str, *, input: bytes | str | None = None, cwd: PathLike | None = None,
                   env: Mapping[str, str] | None = None, timeout: float | None = None, check: bool = False,
                   merge: bool = False, keep: int | None = None) -> ExecResult:
        """
        Run a program to its end: a str is a text for `bash -c`, a list is taken as it is. Of each output the first KEEP
        bytes are kept (1 MiB unless told, 64 MiB at most). After TIMEOUT seconds everything that it has started is
        ended, and TimedOut has the result; so has Limit where a limit ended it, and with CHECK CommandFailed.
        """
        data = input.encode() if isinstance(input, str) else input
        params = _program_params(argv, cwd, env, timeout, merge)
        if keep is not None and not 0 <= keep <= KEEP_MAX:
            raise Usage(f"keep={keep}: at most {KEEP_MAX} bytes of an output are kept; use start() for more")
        if data is not None and len(data) > INPUT_MAX:
            process = await self._start({**params, "input": True}, None, keep)
            try:
                with contextlib.suppress(Closed):  # a program need not read all of it
                    await process.write(data)
                    await process.close_input()
                return _checked(await process.wait(), check)
            except BaseException:
                with contextlib.suppress(Exception):
                    await process.kill()
                raise
        if data is not None:
            params["stdin"] = base64.b64encode(data).decode()
        if keep is not None:
            params["keep"] = keep
        told = await self._ask("exec/run", _path=_path(cwd), _allowance=8 * (keep or 0) // 3,
                               _timeout=None if timeout is None else timeout + GRACE_SECONDS, **params)
        return _checked(ExecResult.of(told), check)

    async def start(self, argv: Sequence[str] | str, *, tty: tuple[int, int] | None = None,
                    input: bytes | str | None = None, cwd: PathLike | None = None,
                    env: Mapping[str, str] | None = None, timeout: float | None = None,
                    merge: bool = False) -> Process:
        """
        Start a program and go on. TTY gives it a terminal of so many rows and columns. With INPUT, which may be
        empty, that is its input; without it `write` gives it some until `close_input`.
        """
        params = _program_params(argv, cwd, env, timeout, merge)
        if input is not None:
            data = input.encode() if isinstance(input, str) else input
            params["stdin"] = base64.b64encode(data).decode()
        else:
            params["input"] = True
        return await self._start(params, tty)

    async def _start(self, params: dict[str, Any], tty: tuple[int, int] | None, keep: int | None = None) -> Process:
        if tty is not None:
            params = {**params, "tty": {"rows": tty[0], "columns": tty[1]}}
            params.pop("input", None)
        engine, cell = self._engine_now(), self.name
        flow = Flow()

        def drop(told: Answer) -> None:
            engine.unfollow(told["process"])
            engine.leave("exec/signal", {"cell": cell, "process": told["process"], "signal": 9})

        told = await self._ask("exec/start", _path=params.get("cwd"), _late=drop,
                               _arrived=lambda told: engine.follow(cell, told["process"], flow), **params)
        return Process(self, int(told["process"]), flow, tty is not None, keep)

    async def shell(self) -> Shell:
        """Start one bash with a terminal, in which texts run one after the other."""
        return await Shell._begin(self)

    # Files. Paths are absolute, or relative to the workspace.

    async def read_bytes(self, path: PathLike) -> bytes:
        """The contents of a file, of 1 GiB at most."""
        parts = []
        size = 0
        async for part in self._pieces(path):
            size += len(part)
            if size > READ_MAX:
                raise Usage(f"{os.fspath(path)}: more than {READ_MAX} bytes; use download()")
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _pieces(self, path: PathLike) -> AsyncIterator[bytes]:
        offset, end = 0, False
        while not end:
            told = await self._ask("file/read", _path=os.fspath(path), path=os.fspath(path), offset=offset, size=PIECE)
            data = base64.b64decode(told.get("bytes") or "")
            end = bool(told.get("end")) or not data
            offset += len(data)
            yield data

    async def read_text(self, path: PathLike, encoding: str = "utf-8") -> str:
        """The contents of a file as text."""
        return (await self.read_bytes(path)).decode(encoding)

    async def write_bytes(self, path: PathLike, data: bytes) -> None:
        """Write a file, of 256 MiB at most: the whole file appears, or it stays as it was."""
        view = memoryview(data)
        pieces = [view[start:start + PIECE] for start in range(0, len(view), PIECE)] or [view]
        await self._write(path, pieces)

    async def write_text(self, path: PathLike, text: str, encoding: str = "utf-8") -> None:
        """Write a file, as write_bytes does."""
        await self.write_bytes(path, text.encode(encoding))

    async def _write(self, path: PathLike, pieces: Iterable[bytes | memoryview]) -> None:
        name = os.fspath(path)
        following = iter(pieces)
        piece, after = next(following, b""), next(following, None)
        if after is None:
            await self._ask("file/write", _path=name, path=name, bytes=base64.b64encode(piece).decode())
            return
        # The engine knows pieces by their file: those of two callers must not meet.
        key = os.path.normpath(os.path.join(self.workspace, name))
        while not self._begin_writing(key):
            self._engine_now()  # in a child of os.fork nobody ends what its parent writes
            await self._mode.sleep(WRITE_SECONDS)
        offset = 0
        try:
            while True:
                await self._ask("file/write", _path=name, path=name, bytes=base64.b64encode(piece).decode(),
                                offset=offset, last=after is None)
                if after is None:
                    return
                offset += len(piece)
                piece, after = after, next(following, None)
        except BaseException:
            self._leave("file/drop", path=name)
            raise
        finally:
            self._writing.discard(key)

    def _begin_writing(self, key: str) -> bool:
        with self._writing_lock:
            begins = key not in self._writing
            self._writing.add(key)
        return begins

    def _leave(self, method: str, **params: Any) -> None:
        """Have the engine forget what was begun. Never fails, and does not wait."""
        if self._engine is not None and not self._closed:
            self._engine.leave(method, {"cell": self._cell, **params})

    async def listdir(self, path: PathLike = ".") -> list[str]:
        """The names in a folder, sorted."""
        told = await self._ask("file/list", _path=os.fspath(path), path=os.fspath(path))
        return sorted(str(entry.get("name")) for entry in told.get("entries") or ())

    async def stat(self, path: PathLike) -> Stat:
        """What a path is."""
        return Stat.of(await self._ask("file/stat", _path=os.fspath(path), path=os.fspath(path)))

    async def remove(self, path: PathLike, recursive: bool = False) -> None:
        """Remove a file or an empty folder; RECURSIVE: a folder with everything in it."""
        params: dict[str, Any] = {"recursive": True} if recursive else {}
        await self._ask("file/remove", _path=os.fspath(path), path=os.fspath(path), **params)

    async def rename(self, path: PathLike, to: PathLike) -> None:
        """Give a file or folder another path."""
        await self._ask("file/rename", _path=os.fspath(path), path=os.fspath(path), to=os.fspath(to))

    async def mkdir(self, path: PathLike, parents: bool = False) -> None:
        """Make a folder; PARENTS: those above as well, and one that exists is well."""
        params: dict[str, Any] = {"parents": True} if parents else {}
        await self._ask("file/make_dir", _path=os.fspath(path), path=os.fspath(path), **params)

    async def upload(self, local: PathLike, remote: PathLike) -> None:
        """
        Copy a file or a folder of this machine into the cell. A file has no mode there; a folder, which tar unpacks in
        the cell, keeps the modes and links of what is in it.
        """
        if not os.path.isdir(local):
            with open(local, "rb") as file:
                await self._write(remote, iter(lambda: file.read(PIECE), b""))
            return
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as tar:
                tar.add(local, arcname=".", filter=_without_owner)
            packed.seek(0)
            if await self._engine_now().has(self._mode, "tree/put"):
                if parent := os.path.dirname(os.path.normpath(remote)):
                    await self.mkdir(parent, parents=True)
                await self._put_tree(packed, os.fspath(remote))
                return
            await self.mkdir(remote, parents=True)
            process = await self.start(["tar", "-xf", "-", "--no-same-owner", "-C", os.fspath(remote)])
            with contextlib.suppress(Closed):  # its end says why
                while piece := packed.read(PIECE):
                    await process.write(piece)
                await process.close_input()
            _checked(await process.wait(), True)

    async def _put_tree(self, packed: IO[bytes], remote: str) -> None:
        """The tar PACKED is unpacked by the engine, as a whole or not at all."""
        more: dict[str, Any] = {"path": remote}
        piece, offset = packed.read(PIECE), 0
        try:
            while True:
                after = packed.read(PIECE)
                told = await self._ask("tree/put", _path=remote, _late=self._drop_tree,
                                       bytes=base64.b64encode(piece).decode(), last=not after, **more)
                if not after:
                    return
                offset += len(piece)
                piece, more = after, {"tree": told["tree"], "offset": offset}
        except BaseException:
            self._drop_tree(more)
            raise

    def _drop_tree(self, told: Mapping[str, Any]) -> None:
        """The tree of which TOLD has the number passes no further, if there is one."""
        if "tree" in told:
            self._leave("tree/drop", tree=told["tree"])

    async def download(self, remote: PathLike, local: PathLike) -> None:
        """
        Copy a file or a folder of the cell to this machine. A file appears whole, or stays as it was. Of a folder, a
        name that goes through a link, and a link that could leave LOCAL, is refused; devices, sockets and pipes stay behind.
        """
        # Two downloads to one place, also of one thread, must not meet in this file.
        partial = f"{os.fspath(local)}.{secrets.token_hex(8)}.part"
        try:
            with open(partial, "xb") as file:
                async for part in self._pieces(remote):
                    file.write(part)
            os.replace(partial, local)
        except OSError:
            if (await self.stat(remote)).kind != "folder":
                raise
            await self._download_folder(remote, local)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)

    async def _download_folder(self, remote: PathLike, local: PathLike) -> None:
        with tempfile.TemporaryFile() as packed:
            await self._pack(os.fspath(remote), packed)
            try:
                _tree.unpack(packed, local)
            except (_tree.Refused, tarfile.TarError) as error:
                raise Denied(f"download: {os.fspath(remote)} is not unpacked here: {error}") from error

    async def _pack(self, remote: str, packed: IO[bytes]) -> int:
        """
        Write a folder as a tar into PACKED. The engine packs it: a program of the cell may be the agent's. How many
        entries the engine has skipped.
        """
        if not await self._engine_now().has(self._mode, "tree/get"):
            raise Usage(f"download: {(await self._engine_now().greet(self._mode)).get('program')} copies no folders",
                        remedy="name a newer program with GLOVEBOX")
        more: dict[str, Any] = {"path": remote}
        offset, skipped, end = 0, 0, False
        try:
            while not end:
                told = await self._ask("tree/get", _path=remote, _late=self._drop_tree, **more)
                data = base64.b64decode(told.get("bytes") or "")
                end = bool(told.get("end")) or not data
                offset += len(data)
                skipped = max(skipped, int(told.get("skipped") or 0))
                more = {"tree": told["tree"], "offset": offset}
                if offset > FOLDER_MAX:
                    raise Limit(f"download: {remote} has more than {FOLDER_MAX >> 30} GiB")
                packed.write(data)
        except BaseException:
            self._drop_tree(more)
            raise
        packed.seek(0)
        return skipped

    # Its changes.

    async def changes(self) -> list[Change]:
        """The files that were changed in it."""
        told = await self._ask("cell/changes")
        return [Change.of(row) for row in told.get("files") or ()]

    async def patch(self) -> str:
        """All changes as one text for `git apply`; empty when there are none."""
        return str((await self._ask("cell/patch")).get("patch") or "")

    async def undo(self, step: int | None = None) -> list[str]:
        """Undo a step, the newest unless told. The paths that were put back."""
        params: dict[str, Any] = {} if step is None else {"step": step}
        told = await self._ask("cell/undo", **params)
        details = told.get("details")
        rows = details.get("files") if isinstance(details, dict) else None
        return [str(row.get("path")) for row in rows or ()]

    async def snapshot(self, name: str) -> str:
        """Freeze its workspace as `snapshot:NAME`, which is answered, and from which other cells open with `base=`."""
        if not await self._engine_now().has(self._mode, "cell/snapshot"):
            raise Usage(f"snapshot: {(await self._engine_now().greet(self._mode)).get('program')} has no snapshots",
                        remedy="name a newer program with GLOVEBOX")
        told = await self._ask("cell/snapshot", name=name)
        return str(told.get("snapshot") or f"snapshot:{name}")

    async def accounts(self) -> Accounts:
        """What it has used so far; of a closed one, what it has used in all."""
        if self._accounts is not None:
            return self._accounts
        return Accounts.of((await self._ask("cell/accounts")).get("accounts"))

    # Tools.

    async def add_tool(self, function: Callable[..., Any], *, name: str | None = None,
                       description: str | None = None) -> None:
        """
        Offer FUNCTION as a tool of the cell, with a schema from its type hints. It runs in this process: a function in
        a thread of its own, a coroutine function in the loop that runs now. It returns text, or a value of JSON; an
        exception is an answer that has failed.
        """
        name = name or _schema.name_of(function)
        text = description or _schema.description_of(function) or f"The function {name} of the caller."
        schema = _schema.of_function(function)
        loop = None
        if inspect.iscoroutinefunction(_schema.target_of(function)):
            if self._mode is not ASYNCIO:
                raise Usage(f"{name} is a coroutine function, which needs the loop of a glovebox.aio.Cell")
            loop = asyncio.get_running_loop()
        engine = self._engine_now()
        await self._ask("tool/register", name=name, description=text, schema=schema)
        engine.add_tool(self.name, name, lambda call: _call_function(function, loop, call))
        self.tools._forget()


class Tools:
    """
    The tools of a cell, as a model calls them: `await cell.tools.read_file(path="a.c")`. A tool that fails is a result
    like any other. `call` takes the name as a text, for tools that are called like one of these methods.
    """

    def __init__(self, cell: Cell) -> None:
        # Not the cell itself, which is to be freed when nobody uses it any more.
        self._cell = _weak(cell)
        self._known: Sequence[Mapping[str, Any]] | None = None

    def __getattr__(self, name: str) -> Callable[..., Awaitable[ToolResult]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def call(**arguments: Any) -> ToolResult:
            return await self.call(name, arguments)

        call.__name__ = name
        return call

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, *,
                   timeout: float | None = None) -> ToolResult:
        """Call the tool NAME."""
        params: dict[str, Any] = {"tool": name, "arguments": dict(arguments or {})}
        if timeout is not None:
            params["timeout_s"] = timeout
        return ToolResult.of(await self._cell()._ask(
            "tool/call", _timeout=None if timeout is None else timeout + GRACE_SECONDS, **params))

    async def list(self) -> Sequence[Mapping[str, Any]]:
        """The tools: name, description, schema and effects of each."""
        if self._known is None:
            self._known = tuple((await self._cell()._ask("tool/list")).get("tools") or ())
        return self._known

    async def schemas(self, dialect: str = "openai") -> Sequence[dict[str, Any]]:
        """The tools as a model service takes them: "openai", "anthropic" or "mcp"."""
        return _schema.dialect(await self.list(), dialect)

    def _forget(self) -> None:
        self._known = None


def _weak(cell: Cell) -> Callable[[], Cell]:
    reference = weakref.ref(cell)

    def held() -> Cell:
        found = reference()
        if found is None:
            raise Closed("the cell of these tools is gone; keep the cell itself")
        return found

    return held


async def map(function: Callable[[Cell, T], Awaitable[R]], items: Iterable[T] | AsyncIterable[T], cells: int = 64,
              **cell_args: Any) -> AsyncIterator[R]:
    """
    Call FUNCTION with a cell and an item, for each of ITEMS, in CELLS tasks at the same time. Each item has a fresh cell,
    made with CELL_ARGS. Results come in the order of the items; at most twice CELLS items are taken ahead of
    them. The first exception of any item ends it, as leaving the loop does: the open cells are closed.
    """
    if cells < 1:
        raise Usage(f"cells={cells}: at least one cell is needed")
    room = asyncio.Semaphore(cells)

    async def one(item: T) -> R:
        async with room, Cell(**cell_args) as cell:
            return await function(cell, item)

    waiting: list[asyncio.Task[R]] = []
    try:
        async for item in _each(items):
            waiting.append(asyncio.ensure_future(one(item)))
            if len(waiting) >= 2 * cells:
                yield await _first(waiting)
        while waiting:
            yield await _first(waiting)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _first(waiting: list[asyncio.Task[R]]) -> R:
    """The first result of WAITING; the exception of any of them, when that comes before."""
    left = set(waiting)
    while not waiting[0].done():
        done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    return await waiting.pop(0)


async def _each(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


def _texts(name: str, value: Sequence[str]) -> list[str]:
    if isinstance(value, (str, bytes)):
        raise Usage(f"{name}={value!r}: give a list of texts")
    return [os.fspath(item) for item in value]


def _open_params(workspace: PathLike | None, base: str | None, write: Sequence[str], read: Sequence[str],
                 network: Sequence[str], env: Mapping[str, str], policy: Mapping[str, Any] | None, agent: str | None,
                 layer: bool, memory: str | None, cpus: float | None, name: str | None, at: str | None,
                 ) -> dict[str, Any]:
    """The members of cell/open."""
    params: dict[str, Any] = {}
    rights = {"write": _texts("write", write), "read": _texts("read", read), "network": _texts("network", network)}
    named = [key for key, unset in (("write", list(WRITE)), ("read", []), ("network", [])) if rights[key] != unset]
    if policy is not None and agent is not None:
        raise Usage("policy and agent exclude each other: give one of both")
    if named and (policy is not None or agent is not None):
        raise Usage(f"{named[0]} and {'policy' if policy is not None else 'agent'} exclude each other: put "
                    f"{named[0]} into the policy")
    if agent is not None:
        params["agent"] = agent
    else:
        params["policy"] = dict(policy) if policy is not None else \
            {key: value for key, value in rights.items() if value or key == "write"}
    if workspace is not None:
        folder = os.path.abspath(workspace)
        params["workspace"] = {"from": folder} if layer else folder
    elif layer:
        raise Usage("layer=True needs a workspace, over which the layer lies")
    if workspace is None and base is not None and base.startswith("snapshot:"):
        # A snapshot holds a workspace; a cell has a layer over it.
        params["workspace"], base = {"snapshot": base.removeprefix("snapshot:")}, None
    kind, _, place = base.partition(":") if base else ("", "", "")
    if kind in ("rootfs", "oci") and place:
        # The engine has a folder of its own; behind that of oci is a tag.
        folder, *tag = place.split(":", 1) if kind == "oci" else [place]
        base = ":".join([kind, os.path.abspath(folder), *tag])
    limits: dict[str, Any] = {}
    if memory is not None:
        limits["memory"] = memory
    if cpus is not None:
        limits["cpus"] = cpus
    optional = {"env": dict(env), "limits": limits, "name": name, "base": base, "at": at}
    params.update({key: value for key, value in optional.items() if value})
    return params


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _path(path: PathLike | None) -> str | None:
    return None if path is None else os.fspath(path)


def _program_params(argv: Sequence[str] | str, cwd: PathLike | None, env: Mapping[str, str] | None,
                    timeout: float | None, merge: bool) -> dict[str, Any]:
    """The members by which exec/run and exec/start know a program."""
    params: dict[str, Any] = {}
    if isinstance(argv, str):
        params["command"] = argv
    elif isinstance(argv, Sequence) and not isinstance(argv, (bytes, bytearray)):
        params["argv"] = [os.fspath(word) for word in argv]
    else:
        raise Usage(f"{argv!r}: a program is a text for bash -c, or a list of texts")
    if not argv:
        raise Usage("a program is needed: the text or list is empty")
    if cwd is not None:
        params["cwd"] = os.fspath(cwd)
    if env:
        params["env"] = dict(env)
    if timeout is not None:
        if timeout <= 0:
            raise Usage(f"timeout={timeout}: a program needs some time")
        params["timeout_s"] = max(timeout, 0.001)
    if merge:
        params["merge"] = True
    return params


def _checked(result: ExecResult, check: bool) -> ExecResult:
    if result.timed_out:
        raise TimedOut("the time of the program is over", rule="timeout_s", result=result)
    if result.limit and result.exit_code != 0:
        raise Limit(f"the program has reached a limit: {result.limit}", rule=result.limit, result=result)
    if check and result.exit_code != 0:
        how = f"exit code {result.exit_code}" if result.exit_code is not None else f"signal {result.signal}"
        said = (result.message or result.stderr[-500:].decode(errors="replace")).strip()
        raise CommandFailed(f"the program has ended with {how}" + (f": {said}" if said else ""), result=result)
    return result


def _call_function(function: Callable[..., Any], loop: asyncio.AbstractEventLoop | None, call: HostCall) -> None:
    """Answer CALL by FUNCTION: in LOOP, or in a thread of its own. Does not wait."""
    def made() -> dict[str, Any]:
        return _schema.arguments_of(function, call.arguments)

    if loop is None:
        thread = threading.Thread(target=lambda: call.answer(_answer_of(lambda: function(**made()))),
                                  name="glovebox-tool", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no thread more: that is this call's failure, and not the engine's
            call.answer(_failure(error))
        return

    async def run() -> None:
        try:
            value = await function(**made())
            answer = _answer_of(lambda: value)
        except Exception as error:
            answer = _failure(error)
        except BaseException as error:  # the model is told first, then it goes its way
            call.answer(_failure(error))
            raise
        call.answer(answer)

    try:
        future = asyncio.run_coroutine_threadsafe(run(), loop)
    except RuntimeError as error:
        call.answer(_failure(error))
        return
    call.stop = future.cancel


def _answer_of(function: Callable[[], Any]) -> dict[str, Any]:
    try:
        value = function()
        if isinstance(value, ToolResult):
            return {"text": value.text, "details": dict(value.details), "failed": not value.ok}
        if isinstance(value, str):
            return {"text": value}
        text = "" if value is None else json.dumps(value, ensure_ascii=False)
        return {"text": text, "details": dict(value)} if isinstance(value, dict) else {"text": text}
    except BaseException as error:  # sys.exit too: it ends the thread of a call and nothing else
        return _failure(error)


def _failure(error: BaseException) -> dict[str, Any]:
    return {"text": f"{type(error).__name__}: {error}", "failed": True}
