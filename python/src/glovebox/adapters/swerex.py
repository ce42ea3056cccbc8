"""
SWE-ReX: a GloveboxDeployment, whose runtime speaks to the cell itself. No server is started and nothing is installed
inside; a session is `cell.shell()`. Written against SWE-ReX 1.4.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import time
from typing import TYPE_CHECKING, Any

from .. import aio
from ..errors import Closed, GloveboxError, TimedOut
from ..errors import Limit as LimitReached
from ..results import ExecResult
from . import _shared

if TYPE_CHECKING:
    class AbstractDeployment:
        """The base class of deployments."""

    class AbstractRuntime:
        """The base class of runtimes."""

    class _Answer:
        def __init__(self, **members: Any) -> None: ...

    class IsAliveResponse(_Answer): ...
    class CreateBashSessionResponse(_Answer): ...
    class BashObservation(_Answer): ...
    class CloseBashSessionResponse(_Answer): ...
    class CommandResponse(_Answer): ...
    class ReadFileResponse(_Answer): ...
    class WriteFileResponse(_Answer): ...
    class UploadResponse(_Answer): ...
    class CloseResponse(_Answer): ...

    class BashInterruptAction(_Answer):
        """A request for Ctrl-C."""

    class BashIncorrectSyntaxError(Exception):
        """Bash cannot read a command."""

        def __init__(self, message: str, *, extra_info: dict[str, Any]) -> None: ...

    class CommandTimeoutError(Exception): ...
    class DeploymentNotStartedError(Exception): ...
    class NonZeroExitCodeError(Exception): ...
    class SessionDoesNotExistError(Exception): ...
    class SessionExistsError(Exception): ...
else:
    with _shared.harness("swerex", "swe-rex"):
        from swerex.deployment.abstract import AbstractDeployment
        from swerex.exceptions import (BashIncorrectSyntaxError, CommandTimeoutError, DeploymentNotStartedError,
                                       NonZeroExitCodeError, SessionDoesNotExistError, SessionExistsError)
        from swerex.runtime.abstract import (AbstractRuntime, BashInterruptAction, BashObservation, CloseBashSessionResponse,
                                             CloseResponse, CommandResponse, CreateBashSessionResponse, IsAliveResponse,
                                             ReadFileResponse, UploadResponse, WriteFileResponse)

__all__ = ["GloveboxDeployment", "GloveboxDeploymentConfig", "GloveboxRuntime"]

KEEP = 10 << 20  # bytes of each output of a command
CHECK_SECONDS = 10.0  # that bash has to read a command
INTERRUPT_SECONDS = 1.0  # the least that a program has to end by Ctrl-C
ESCAPES = re.compile(r"\x1B[@-_][0-?]*[ -/]*[@-~]")
STARTED_AGAIN = "The command did not end by itself; its shell was killed, and a new one was started."


@dataclasses.dataclass
class GloveboxDeploymentConfig:
    """IMAGE or BASE is what lies below the view, WORKSPACE a folder of this machine, CWD where commands start."""

    image: str = ""
    base: str = ""
    workspace: str = ""
    cwd: str = ""
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    network: list[str] = dataclasses.field(default_factory=list)
    memory: str = ""
    cpus: float | None = None
    policy: dict[str, Any] | None = None


class GloveboxDeployment(AbstractDeployment):
    """A cell, from `start` to `stop`."""

    def __init__(self, *, logger: logging.Logger | None = None, **config: Any) -> None:
        self.logger = logger or logging.getLogger("glovebox.swerex")
        self._config = GloveboxDeploymentConfig(**config)
        self._runtime: GloveboxRuntime | None = None
        self._hooks: list[Any] = []

    @classmethod
    def from_config(cls, config: GloveboxDeploymentConfig) -> GloveboxDeployment:
        return cls(**dataclasses.asdict(config))

    def add_hook(self, hook: Any) -> None:
        self._hooks.append(hook)

    async def is_alive(self, *, timeout: float | None = None) -> IsAliveResponse:
        if self._runtime is None:
            raise DeploymentNotStartedError()
        return await self._runtime.is_alive(timeout=timeout)

    async def start(self, *_: object, **__: object) -> None:
        """Open the cell."""
        if self._runtime is not None:
            return
        for hook in self._hooks:
            hook.on_custom_step("Opening a cell")
        arguments = _shared.cell_arguments(**dataclasses.asdict(self._config))
        cell = await aio.Cell(**arguments).open()
        self._runtime = GloveboxRuntime(cell, cwd=self._config.cwd if "base" in arguments else "", logger=self.logger)

    async def stop(self, *_: object, **__: object) -> None:
        """End the cell, with all that runs in it."""
        runtime, self._runtime = getattr(self, "_runtime", None), None
        if runtime is not None:
            await runtime.close()

    @property
    def runtime(self) -> GloveboxRuntime:
        if self._runtime is None:
            raise DeploymentNotStartedError()
        return self._runtime

    def __del__(self) -> None:
        # The harness would wait for `stop` in a loop of its own here. A cell that is left open says so itself, and ends.
        return


class GloveboxRuntime(AbstractRuntime):
    """What runs in CELL. Relative paths start at CWD, or else at the workspace."""

    def __init__(self, cell: aio.Cell, *, cwd: str = "", logger: logging.Logger | None = None) -> None:
        self.logger = logger or logging.getLogger("glovebox.swerex")
        self.cell = cell
        self._cwd = cwd
        self._sessions: dict[str, aio.Shell] = {}

    async def is_alive(self, *, timeout: float | None = None) -> IsAliveResponse:
        alive = not self.cell.closed
        return IsAliveResponse(is_alive=alive, message="" if alive else "The cell was closed.")

    # Sessions.

    async def create_session(self, request: Any) -> CreateBashSessionResponse:
        """Start a shell, and have it read the files that REQUEST names."""
        if request.session in self._sessions:
            raise SessionExistsError(f"session {request.session} already exists")
        shell = await self._new_shell()
        output = ""
        for path in request.startup_source:
            result = await shell.run(f"source {_quoted(path)}", timeout=max(request.startup_timeout, INTERRUPT_SECONDS))
            output += _text(result.stdout)
        self._sessions[request.session] = shell
        return CreateBashSessionResponse(output=output)

    async def _new_shell(self) -> aio.Shell:
        shell = await self.cell.shell()
        if self._cwd:
            await shell.run(f"cd {_quoted(self._cwd)}")
        return shell

    def _session(self, name: str) -> aio.Shell:
        if name not in self._sessions:
            raise SessionDoesNotExistError(f"session {name!r} does not exist")
        return self._sessions[name]

    async def run_in_session(self, action: Any) -> BashObservation:
        """Run a command in a session, type at the program that runs there, or interrupt it."""
        shell = self._session(action.session)
        if isinstance(action, BashInterruptAction):
            return await self._interrupt(action, shell)
        if action.is_interactive_command or action.is_interactive_quit:
            return await self._type(action, shell)
        await self._check_syntax(action.command)
        try:
            result = await shell.run(action.command, timeout=action.timeout)
        except TimedOut as error:
            if error.result is None or error.result.exit_code is None:
                self.logger.warning("session %s: %s", action.session, STARTED_AGAIN)
            raise _timed_out(action) from error
        except Closed:
            # The last command has ended the shell, by itself or by its time.
            shell = self._sessions[action.session] = await self._new_shell()
            result = await shell.run(action.command, timeout=action.timeout)
            result = dataclasses.replace(result, stdout=STARTED_AGAIN.encode() + b"\n" + result.stdout)
        output = _text(result.stdout)
        if action.check == "ignore":
            return BashObservation(output=output, exit_code=None)
        if action.check == "raise" and result.exit_code != 0:
            about = f"Command {action.command!r} failed with exit code {result.exit_code}. It said:\n{output!r}"
            raise NonZeroExitCodeError(f"{action.error_msg}: {about}" if action.error_msg else about)
        return BashObservation(output=output, exit_code=result.exit_code)

    async def _type(self, action: Any, shell: aio.Shell) -> BashObservation:
        """A line for an interactive program, up to one of its prompts or to its end."""
        found, output = await shell._type(action.command + "\n", list(action.expect),
                                          None if action.timeout is None else time.monotonic() + action.timeout)
        if found is None:
            raise _timed_out(action)
        text = _text(output)
        if not action.is_interactive_quit:
            text = text.lstrip().removeprefix(action.command).strip()
        return BashObservation(output=text, exit_code=0, expect_string=found)

    async def _interrupt(self, action: Any, shell: aio.Shell) -> BashObservation:
        """Ctrl-C, until the shell is ready again; a program that goes on ends with its shell."""
        output = b""
        try:
            for _ in range(action.n_retry):
                found, data = await shell._type("\x03", [], time.monotonic() + max(action.timeout, INTERRUPT_SECONDS))
                output += data
                if found is not None:
                    return BashObservation(output=_text(output).strip(), exit_code=0, expect_string=found)
        except Closed:
            pass
        await shell.close()
        self._sessions[action.session] = await self._new_shell()
        return BashObservation(output=f"{_text(output)}\n{STARTED_AGAIN}".strip(), exit_code=0)

    async def _check_syntax(self, command: str) -> None:
        result = await self.cell.exec(["bash", "-n"], input=command + "\n", timeout=CHECK_SECONDS)
        if result.exit_code != 0:
            stdout, stderr = result.stdout.decode(errors="replace"), result.stderr.decode(errors="replace")
            raise BashIncorrectSyntaxError(f"bash cannot read the command {command!r}:\n{stderr}",
                                           extra_info={"bash_stdout": stdout, "bash_stderr": stderr})

    async def close_session(self, request: Any) -> CloseBashSessionResponse:
        """End a session, with all that runs in it."""
        shell = self._session(request.session)
        del self._sessions[request.session]
        await shell.close()
        return CloseBashSessionResponse()

    # Programs and files.

    async def execute(self, command: Any) -> CommandResponse:
        """Run a program by itself."""
        argv = command.command
        if command.shell:
            argv = ["sh", "-c", argv if isinstance(argv, str) else argv[0]]
        elif isinstance(argv, str):
            argv = [argv]
        try:
            result = await self.cell.exec(argv, timeout=command.timeout, env=_shared.variables(command.env),
                                          cwd=command.cwd or self._cwd or None, keep=KEEP,
                                          merge=bool(getattr(command, "merge_output_streams", False)))
        except TimedOut as error:
            raise CommandTimeoutError(f"the command still ran after {command.timeout} s, and was ended") from error
        except LimitReached as error:
            if error.result is None:
                raise
            result = error.result
        said = [part for part in (_decoded(result.stderr), _shared.reasons(result), _missing(result)) if part]
        answer = {"stdout": _decoded(result.stdout), "stderr": "\n".join(said), "exit_code": _shared.exit_code(result)}
        if command.check and result.exit_code != 0:
            about = f"Command {command.command!r} failed with exit code {answer['exit_code']}:\n{answer['stderr']}"
            raise NonZeroExitCodeError(f"{command.error_msg}: {about}" if command.error_msg else about)
        return CommandResponse(**answer)

    def _path(self, path: str) -> str:
        return os.path.join(self._cwd, path)

    async def read_file(self, request: Any) -> ReadFileResponse:
        data = await self.cell.read_bytes(self._path(request.path))
        text = data.decode(request.encoding or "utf-8", request.errors or "strict")
        return ReadFileResponse(content=text)

    async def write_file(self, request: Any) -> WriteFileResponse:
        """Write a file; the folders above it are made."""
        path = self._path(request.path)
        if os.path.dirname(path):
            await self.cell.mkdir(os.path.dirname(path), parents=True)
        await self.cell.write_text(path, request.content)
        return WriteFileResponse()

    async def upload(self, request: Any) -> UploadResponse:
        """Copy a file or a folder of this machine into the cell; the folders above it are made."""
        target = self._path(request.target_path)
        if os.path.dirname(target):
            await self.cell.mkdir(os.path.dirname(target), parents=True)
        await self.cell.upload(request.source_path, target)
        return UploadResponse()

    async def close(self) -> CloseResponse:
        """End the cell."""
        self._sessions.clear()
        try:
            await self.cell.close()
        except GloveboxError as error:
            self.logger.warning("the cell could not be closed: %s", error)
        return CloseResponse()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _decoded(data: bytes) -> str:
    return data.decode(errors="backslashreplace")


def _text(data: bytes) -> str:
    """What a terminal has shown, without its colours."""
    return ESCAPES.sub("", _decoded(data)).replace("\r\n", "\n")


def _missing(result: ExecResult) -> str:
    return f"[{result.dropped} bytes behind the first {KEEP} of an output were left out.]" if result.dropped else ""


def _timed_out(action: Any) -> Exception:
    return CommandTimeoutError(f"timeout after {action.timeout} seconds while running command {action.command!r}")
