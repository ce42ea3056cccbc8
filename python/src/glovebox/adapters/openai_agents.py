"""
openai-agents: `SandboxRunConfig(client=GloveboxSandboxClient(), options=GloveboxSandboxClientOptions())`, and
`ShellTool(executor=GloveboxExecutor(cell))` for a cell of your own. Written against openai-agents of August 2026.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from .. import aio
from ..errors import Closed, Denied, GloveboxError, TimedOut, Usage
from ..errors import Limit as LimitReached
from . import _shared

if TYPE_CHECKING:
    Options = TypeVar("Options")

    class _Model:
        def __init__(self, **members: Any) -> None: ...

    class Manifest(_Model):
        """What a workspace begins with."""

        root: str
        environment: Any
        model_fields: Any
        def model_copy(self, *, update: dict[str, Any], deep: bool = False) -> Manifest: ...

    class SandboxSessionState(_Model):
        """The part of a session that is stored."""

        manifest: Manifest
        session_id: uuid.UUID
        exposed_ports: tuple[int, ...]
        def assert_path_grants_rebound(self) -> None: ...

    class BaseSandboxClientOptions(_Model):
        """The options of a client."""

    class BaseSandboxSession:
        """The base class of sessions."""

        def normalize_path(self, path: Path | str, *, for_write: bool = False) -> Path: ...
        def _persist_workspace_skip_relpaths(self) -> set[Path]: ...
        def _prepare_exec_command(self, *command: str | Path, shell: bool | list[str], user: Any) -> list[str]: ...
        def _resolve_pty_session_entry(self, *, pty_processes: Any, session_id: int) -> Any: ...

    class SandboxSession:
        """A session as the harness hands it out."""

        _inner: BaseSandboxSession

    class BaseSandboxClient(Generic[Options]):
        """The base class of clients."""

        _dependencies: Any
        def _wrap_session(self, inner: BaseSandboxSession, *, instrumentation: Any = None) -> SandboxSession: ...
        def _validate_manifest_for_create(self, manifest: Manifest) -> Manifest: ...
        @staticmethod
        def _deserialize_session_state_payload(payload: dict[str, object], state_class: type) -> SandboxSessionState: ...

    class ExecResult(_Model):
        """How a program ended."""

    class PtyExecUpdate(_Model):
        """What has come from a program with a terminal."""

    class ExecTimeoutError(Exception):
        def __init__(self, *, command: Sequence[str | Path], timeout_s: float | None, cause: Exception) -> None: ...

    class _WithCommand(Exception):
        def __init__(self, *, command: Sequence[str | Path], cause: Exception) -> None: ...

    class _WithPath(Exception):
        def __init__(self, *, path: Path, cause: Exception) -> None: ...

    class ExecTransportError(_WithCommand): ...
    class WorkspaceArchiveReadError(_WithPath): ...
    class WorkspaceArchiveWriteError(_WithPath): ...
    class WorkspaceReadNotFoundError(_WithPath): ...
    class ShellCallOutcome(_Model): ...
    class ShellCommandOutput(_Model): ...
    class ShellResult(_Model): ...

    def resolve_snapshot(snapshot: Any, name: str) -> Any: ...
    def allocate_pty_process_id(used_process_ids: set[int]) -> int: ...
    def clamp_pty_yield_time_ms(yield_time_ms: int) -> int: ...
    def resolve_pty_write_yield_time_ms(*, yield_time_ms: int, input_empty: bool) -> int: ...
    def truncate_text_by_tokens(text: str, max_output_tokens: int | None) -> tuple[str, int | None]: ...
else:
    with _shared.harness("openai-agents", "openai-agents"):
        from agents import ShellCallOutcome, ShellCommandOutput, ShellResult
        from agents.sandbox.errors import (ExecTimeoutError, ExecTransportError, WorkspaceArchiveReadError,
                                           WorkspaceArchiveWriteError, WorkspaceReadNotFoundError)
        from agents.sandbox.manifest import Manifest
        from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
        from agents.sandbox.session.pty_types import (PtyExecUpdate, allocate_pty_process_id, clamp_pty_yield_time_ms,
                                                      resolve_pty_write_yield_time_ms, truncate_text_by_tokens)
        from agents.sandbox.session.sandbox_client import BaseSandboxClient, BaseSandboxClientOptions
        from agents.sandbox.session.sandbox_session import SandboxSession
        from agents.sandbox.session.sandbox_session_state import SandboxSessionState
        from agents.sandbox.snapshot import resolve_snapshot
        from agents.sandbox.types import ExecResult

__all__ = ["GloveboxExecutor", "GloveboxSandboxClient", "GloveboxSandboxClientOptions", "GloveboxSandboxSession",
           "GloveboxSandboxSessionState"]

KEEP = 16 << 20  # bytes of each output of a command
TERMINALS = 64  # programs with a terminal in one session
PTY_KEEP = 1 << 20  # bytes of a terminal's output in one update
SHELL_SECONDS = 120.0  # of a command of ShellTool that names no time


class GloveboxSandboxClientOptions(BaseSandboxClientOptions):
    """BASE and IMAGE are what lies below the view; the rest are limits of the cell, and the hosts that it may reach."""

    type: Literal["glovebox"] = "glovebox"
    image: str | None = None
    base: str | None = None
    network: tuple[str, ...] = ()
    memory: str | None = None
    cpus: float | None = None


class GloveboxSandboxSessionState(SandboxSessionState):
    """What is stored of a session: with it, another process opens a cell over the same workspace."""

    type: Literal["glovebox"] = "glovebox"
    workspace: str = ""
    workspace_owned: bool = False
    image: str | None = None
    base: str | None = None
    network: tuple[str, ...] = ()
    memory: str | None = None
    cpus: float | None = None


@dataclasses.dataclass
class _Terminal:
    process: aio.Process
    tty: bool


class GloveboxSandboxSession(BaseSandboxSession):
    """A cell over the workspace of STATE, from `start` to `shutdown`."""

    def __init__(self, *, state: GloveboxSandboxSessionState) -> None:
        self.state = state
        self._cell: aio.Cell | None = None
        self._terminals: dict[int, _Terminal] = {}

    @property
    def cell(self) -> aio.Cell:
        """The cell; Closed before `start` and after `shutdown`."""
        if self._cell is None:
            raise Closed("this session has no cell: start it first")
        return self._cell

    # Its life.

    async def _ensure_backend_started(self) -> None:
        if self._cell is not None and not self._cell.closed:
            return
        state = self.state
        os.makedirs(state.workspace, mode=0o700, exist_ok=True)
        arguments = _shared.cell_arguments(image=state.image, base=state.base, workspace=state.workspace,
                                           memory=state.memory, cpus=state.cpus, network=state.network)
        if state.manifest.root != state.workspace:
            arguments["at"] = state.manifest.root
        self._cell = await aio.Cell(**arguments).open()

    async def _shutdown_backend(self) -> None:
        cell, self._cell = self._cell, None
        if cell is not None:
            await cell.close()

    async def running(self) -> bool:
        return self._cell is not None and not self._cell.closed

    # Programs.

    def _prepare_exec_command(self, *command: str | Path, shell: bool | list[str], user: Any) -> list[str]:
        _shared.one_user(getattr(user, "name", user))
        return super()._prepare_exec_command(*command, shell=shell, user=None)

    async def _variables(self) -> dict[str, str]:
        return _shared.variables(await self.state.manifest.environment.resolve())

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        argv = [str(word) for word in command]
        try:
            result = await self.cell.exec(argv, cwd=self.state.manifest.root, env=await self._variables(),
                                          timeout=timeout, keep=KEEP)
        except TimedOut as error:
            raise ExecTimeoutError(command=command, timeout_s=timeout, cause=error) from error
        except LimitReached as error:
            if error.result is None:
                raise ExecTransportError(command=command, cause=error) from error
            result = error.result
        except GloveboxError as error:
            raise ExecTransportError(command=command, cause=error) from error
        said = _shared.reasons(result)
        if result.dropped:
            said += f"\n[{result.dropped} bytes behind the first {KEEP} of an output were left out.]"
        return ExecResult(stdout=result.stdout, stderr=result.stderr + said.encode(), exit_code=_shared.exit_code(result))

    def supports_pty(self) -> bool:
        return True

    async def pty_exec_start(self, *command: str | Path, timeout: float | None = None, shell: bool | list[str] = True,
                             user: Any = None, tty: bool = False, yield_time_s: float | None = None,
                             max_output_tokens: int | None = None) -> PtyExecUpdate:
        """Start a program and wait a little for its output."""
        argv = self._prepare_exec_command(*command, shell=shell, user=user)
        if len(self._terminals) >= TERMINALS:
            raise ExecTransportError(command=command, cause=Usage(f"{TERMINALS} programs run already: end one of them"))
        process = await self.cell.start(argv, tty=(24, 80) if tty else None, input=None if tty else "",
                                        cwd=self.state.manifest.root, env=await self._variables(), timeout=timeout, merge=not tty)
        number = allocate_pty_process_id(set(self._terminals))
        self._terminals[number] = _Terminal(process, tty)
        wanted = 10_000 if yield_time_s is None else int(yield_time_s * 1000)
        return await self._update(number, clamp_pty_yield_time_ms(wanted), max_output_tokens)

    async def pty_write_stdin(self, *, session_id: int, chars: str, yield_time_s: float | None = None,
                              max_output_tokens: int | None = None) -> PtyExecUpdate:
        """Type CHARS at a program, and wait a little for its output."""
        terminal: _Terminal = self._resolve_pty_session_entry(pty_processes=self._terminals, session_id=session_id)
        if chars:
            if not terminal.tty:
                raise RuntimeError("this program has no terminal to type at: start it with tty=True")
            with contextlib.suppress(Closed):  # it has ended meanwhile, which the update tells
                await terminal.process.write(chars)
        wanted = 250 if yield_time_s is None else int(yield_time_s * 1000)
        waiting = resolve_pty_write_yield_time_ms(yield_time_ms=wanted, input_empty=not chars)
        return await self._update(session_id, waiting, max_output_tokens)

    async def _update(self, number: int, wait_ms: int, max_tokens: int | None) -> PtyExecUpdate:
        """What comes from a program within WAIT_MS, or to its end."""
        process = self._terminals[number].process
        output, end = _shared.Excerpt(PTY_KEEP // 2, PTY_KEEP // 2), time.monotonic() + wait_ms / 1000
        code = None
        while (left := end - time.monotonic()) > 0:
            try:
                data = await asyncio.wait_for(process.stdout.read_some(), left)
            except asyncio.TimeoutError:
                break
            output.add(data)
            if not data:
                with contextlib.suppress(TimedOut):
                    await process.wait()
                result = process.poll()
                code = _shared.exit_code(result) if result is not None else 1
                del self._terminals[number]
                break
        text, tokens = truncate_text_by_tokens(output.text, max_tokens)
        return PtyExecUpdate(process_id=number if code is None else None, output=text.encode(), exit_code=code,
                             original_token_count=tokens)

    async def pty_terminate_all(self) -> None:
        terminals, self._terminals = self._terminals, {}
        for terminal in terminals.values():
            with contextlib.suppress(GloveboxError):
                await terminal.process.kill()

    # Files.

    async def read(self, path: Path, *, user: Any = None) -> io.IOBase:
        _shared.one_user(getattr(user, "name", user))
        try:
            return io.BytesIO(await self.cell.read_bytes(self.normalize_path(path)))
        except FileNotFoundError as error:
            raise WorkspaceReadNotFoundError(path=Path(path), cause=error) from error
        except (OSError, Denied) as error:
            raise WorkspaceArchiveReadError(path=Path(path), cause=error) from error

    async def write(self, path: Path, data: io.IOBase, *, user: Any = None) -> None:
        _shared.one_user(getattr(user, "name", user))
        target = self.normalize_path(path, for_write=True)
        content = data.read()
        try:
            await self.cell.mkdir(target.parent, parents=True)
            await self.cell.write_bytes(target, content.encode() if isinstance(content, str) else bytes(content))
        except (OSError, Denied) as error:
            raise WorkspaceArchiveWriteError(path=target, cause=error) from error

    async def persist_workspace(self) -> io.IOBase:
        """The workspace as a tar, without what the manifest calls ephemeral. The caller closes it."""
        root = Path(self.state.manifest.root)
        leave_out = sorted(path.as_posix() for path in self._persist_workspace_skip_relpaths())
        try:
            return cast(io.IOBase, await _shared.pack(self.cell, str(root), leave_out))
        except (OSError, GloveboxError) as error:
            raise WorkspaceArchiveReadError(path=root, cause=error) from error

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        """Unpack a tar over the workspace: a program in the cell does it, so nothing lands elsewhere."""
        root = Path(self.state.manifest.root)
        stream: Any = data
        try:
            await _shared.unpack(self.cell, stream, str(root))
        except (OSError, GloveboxError) as error:
            raise WorkspaceArchiveWriteError(path=root, cause=error) from error


class GloveboxSandboxClient(BaseSandboxClient[GloveboxSandboxClientOptions | None]):
    """Makes sessions. A workspace is a folder of this machine: a fresh one, unless the manifest names one that exists."""

    backend_id = "glovebox"
    supports_default_options = True

    def __init__(self, *, instrumentation: Any = None, dependencies: Any = None) -> None:
        self._instrumentation = instrumentation
        self._dependencies = dependencies

    async def create(self, *, snapshot: Any = None, manifest: Manifest | None = None,
                     options: GloveboxSandboxClientOptions | None = None) -> SandboxSession:
        """A session that is not started yet."""
        told = options if options is not None else GloveboxSandboxClientOptions()
        manifest = self._validate_manifest_for_create(manifest if manifest is not None else Manifest())
        owned = not os.path.isdir(manifest.root)
        workspace = tempfile.mkdtemp(prefix="glovebox-agents-") if owned else os.path.abspath(manifest.root)
        if owned and manifest.root == Manifest.model_fields["root"].default and not (told.image or told.base):
            manifest = manifest.model_copy(update={"root": workspace}, deep=True)
        number = uuid.uuid4()
        state = GloveboxSandboxSessionState(
            session_id=number, manifest=manifest, snapshot=resolve_snapshot(snapshot, str(number)), workspace=workspace,
            workspace_owned=owned, image=told.image, base=told.base, network=told.network, memory=told.memory, cpus=told.cpus)
        return self._wrap(state)

    def _wrap(self, state: GloveboxSandboxSessionState) -> SandboxSession:
        return self._wrap_session(GloveboxSandboxSession(state=state), instrumentation=self._instrumentation)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        """End the cell of a session, and remove its workspace where the client has made it."""
        inner = session._inner
        if not isinstance(inner, GloveboxSandboxSession):
            raise TypeError("GloveboxSandboxClient.delete takes sessions of a GloveboxSandboxClient")
        await inner._shutdown_backend()
        if inner.state.workspace_owned:
            await asyncio.to_thread(shutil.rmtree, inner.state.workspace, True)
        return session

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """A session over the workspace of STATE, with a new cell; an empty one is filled from its snapshot."""
        if not isinstance(state, GloveboxSandboxSessionState):
            raise TypeError("GloveboxSandboxClient.resume takes states of a GloveboxSandboxClient")
        state.assert_path_grants_rebound()
        return self._wrap(state)

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, GloveboxSandboxSessionState)


class GloveboxExecutor:
    """
    An executor for ShellTool: each command is a program of its own in CELL, in the folder CWD. One that is too slow ends the
    call; TIMEOUT holds for calls that name none.
    """

    def __init__(self, cell: aio.Cell, *, cwd: str | None = None, timeout: float = SHELL_SECONDS) -> None:
        self._cell, self._cwd, self._timeout = cell, cwd, timeout

    async def __call__(self, request: Any) -> ShellResult:
        action = request.data.action
        seconds = action.timeout_ms / 1000 if action.timeout_ms else self._timeout
        outputs = []
        for command in action.commands:
            late = False
            try:
                result = await self._cell.exec(["bash", "-c", command], cwd=self._cwd, timeout=seconds)
            except (TimedOut, LimitReached) as error:
                if error.result is None:
                    raise
                result, late = error.result, isinstance(error, TimedOut)
            stderr = "\n".join(part for part in (result.stderr.decode(errors="replace"), _shared.reasons(result)) if part)
            outcome = ShellCallOutcome(type="timeout") if late else \
                ShellCallOutcome(type="exit", exit_code=_shared.exit_code(result))
            outputs.append(ShellCommandOutput(stdout=result.text, stderr=stderr, command=command, outcome=outcome))
            if late:
                break
        return ShellResult(output=outputs, max_output_length=action.max_output_length)
