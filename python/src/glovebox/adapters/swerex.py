"""
SWE-ReX (1.4): a deployment and its runtime. Sessions are shells of the cell; nothing is installed in an image, and no
server runs there. Programs that talk (`expect`, `is_interactive_command`) need `Cell.start` with a terminal.
"""

from __future__ import annotations

import logging
import os
import posixpath
from typing import TYPE_CHECKING, Any

from ..aio import Cell, Shell
from ..errors import TimedOut
from . import base_of, load

TRIED = "1.4"
KEEP = 10 << 20

_runtime = load("swerex.runtime.abstract", "swe-rex", TRIED)
_errors = load("swerex.exceptions", "swe-rex", TRIED)
if TYPE_CHECKING:
    _Runtime = object
    _Deployment = object
else:
    _Runtime = _runtime.AbstractRuntime
    _Deployment = load("swerex.deployment.abstract", "swe-rex", TRIED).AbstractDeployment


class GloveboxRuntime(_Runtime):
    """What SWE-ReX asks of a machine, done in CELL."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._shells: dict[str, Shell] = {}
        self.logger = logging.getLogger("glovebox.swerex")

    async def is_alive(self, *, timeout: float | None = None) -> Any:
        return _runtime.IsAliveResponse(is_alive=not self._cell.closed, message="the cell is closed" if self._cell.closed else "")

    async def create_session(self, request: Any) -> Any:
        if request.session in self._shells:
            raise _errors.SessionExistsError(f"session {request.session} already exists")
        shell = self._shells[request.session] = await self._cell.shell()
        output = ""
        for path in request.startup_source:
            output += (await shell.run(f"source {path}", request.startup_timeout)).text
        return _runtime.CreateBashSessionResponse(output=output)

    async def run_in_session(self, action: Any) -> Any:
        shell = self._shells.get(action.session)
        if shell is None:
            raise _errors.SessionDoesNotExistError(f"session {action.session!r} does not exist")
        if action.action_type == "bash_interrupt":
            await shell.interrupt()
            return _runtime.BashObservation(output="", exit_code=0)
        if action.is_interactive_command or action.is_interactive_quit or action.expect:
            raise NotImplementedError("a session of a cell runs texts to their end; start a program that talks with "
                                      "Cell.start(…, tty=(24, 80))")
        await self._check_syntax(action.command)
        try:
            result = await shell.run(action.command, action.timeout)
        except TimedOut as error:
            said = error.result.text if error.result is not None else ""
            raise _errors.CommandTimeoutError(f"timeout after {action.timeout} seconds while running command "
                                              f"{action.command!r}: {said}") from error
        if action.check == "raise" and result.exit_code != 0:
            raise _errors.NonZeroExitCodeError(f"Command {action.command!r} failed with exit code {result.exit_code}: "
                                               f"{action.error_msg} {result.text}")
        code = None if action.check == "ignore" else result.exit_code
        return _runtime.BashObservation(output=result.text, exit_code=code)

    async def _check_syntax(self, command: str) -> None:
        parsed = await self._cell.exec(["bash", "-n"], input=command)
        if parsed.exit_code != 0:
            raise _errors.BashIncorrectSyntaxError(f"Error (exit code {parsed.exit_code}) while checking bash command: "
                                                   f"{parsed.stderr.decode(errors='replace')}")

    async def close_session(self, request: Any) -> Any:
        shell = self._shells.pop(request.session, None)
        if shell is None:
            raise _errors.SessionDoesNotExistError(f"session {request.session!r} does not exist")
        await shell.close()
        return _runtime.CloseBashSessionResponse()

    async def execute(self, command: Any) -> Any:
        words = command.command
        if isinstance(words, str) and not command.shell:
            words = [words]
        elif not isinstance(words, str) and command.shell:
            words = ["bash", "-c", *words]
        try:
            result = await self._cell.exec(words, timeout=command.timeout, env=command.env, cwd=command.cwd, keep=KEEP)
        except TimedOut as error:
            raise _errors.CommandTimeoutError(f"Timeout ({command.timeout}s) exceeded while running command") from error
        code = result.exit_code if result.exit_code is not None else -(result.signal or 0)
        if command.check and code != 0:
            raise _errors.NonZeroExitCodeError(f"Command {command.command!r} failed with exit code {code}: "
                                               f"{command.error_msg} {result.text}")
        return _runtime.CommandResponse(stdout=result.text, stderr=result.stderr.decode(errors="replace"), exit_code=code)

    async def read_file(self, request: Any) -> Any:
        data = await self._cell.read_bytes(request.path)
        text = data.decode(getattr(request, "encoding", None) or "utf-8", getattr(request, "errors", None) or "strict")
        return _runtime.ReadFileResponse(content=text)

    async def write_file(self, request: Any) -> Any:
        if posixpath.dirname(request.path):
            await self._cell.mkdir(posixpath.dirname(request.path), parents=True)
        await self._cell.write_text(request.path, request.content)
        return _runtime.WriteFileResponse()

    async def upload(self, request: Any) -> Any:
        if not os.path.isdir(request.source_path) and posixpath.dirname(request.target_path):
            await self._cell.mkdir(posixpath.dirname(request.target_path), parents=True)
        await self._cell.upload(request.source_path, request.target_path)
        return _runtime.UploadResponse()

    async def close(self) -> Any:
        await self._cell.close()
        return _runtime.CloseResponse()


class GloveboxDeployment(_Deployment):
    """A deployment whose machine is one cell; the arguments are those of a Cell, and IMAGE names a base."""

    def __init__(self, *, image: str | None = None, logger: logging.Logger | None = None, **cell: Any) -> None:
        self._arguments = {**cell, "base": base_of(image)} if image else cell
        self._logger = logger or logging.getLogger("glovebox.swerex")
        self._live: GloveboxRuntime | None = None

    @property
    def logger(self) -> logging.Logger:
        return self._logger

    def add_hook(self, hook: Any) -> None:
        """Nothing is pulled or built of which a hook could be told."""

    async def is_alive(self, *, timeout: float | None = None) -> Any:
        if self._live is None:
            return _runtime.IsAliveResponse(is_alive=False, message="the deployment has not started")
        return await self._live.is_alive(timeout=timeout)

    async def start(self, *args: Any, **kwargs: Any) -> None:
        if self._live is None:
            self._live = GloveboxRuntime(await Cell(**self._arguments))

    async def stop(self, *args: Any, **kwargs: Any) -> None:
        if self._live is not None:
            await self._live.close()
            self._live = None

    @property
    def runtime(self) -> Any:
        if self._live is None:
            not_started: type[Exception] = getattr(_errors, "DeploymentNotStartedError", RuntimeError)
            raise not_started()
        return self._live
