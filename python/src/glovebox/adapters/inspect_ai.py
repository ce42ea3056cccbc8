"""
inspect_ai (interface of August 2026): `sandbox="glovebox"`, or `sandbox=("glovebox", "compose.yaml")` with one service,
of which image, environment, working_dir, mem_limit, cpus and network_mode hold.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
from typing import TYPE_CHECKING, Any

from ..aio import Cell
from ..errors import Denied, TimedOut, Usage
from . import base_of, check_user, load

TRIED = "the interface of August 2026"
OUTPUT_MAX, FILE_MAX = 10 << 20, 100 << 20
SERVICE_KEYS = {"image", "environment", "working_dir", "mem_limit", "cpus", "network_mode", "command", "init",
                "container_name"}

_util = load("inspect_ai.util", "inspect_ai", TRIED)
if TYPE_CHECKING:
    _Base = object

    def _named(cls: type) -> type:
        return cls
else:
    _Base = _util.SandboxEnvironment
    _named = _util.sandboxenv(name="glovebox")


def settings_of(config: Any) -> dict[str, Any]:
    """The arguments of a cell, and `cwd`, by CONFIG: a mapping, an object with these members, or a compose file."""
    if config is None:
        return {}
    if isinstance(config, (str, os.PathLike)):
        with open(config, encoding="utf-8") as file:
            return _of_compose(load("yaml", "pyyaml", "6").safe_load(file))
    dump = getattr(config, "model_dump", None)
    return {key: value for key, value in (dump() if dump is not None else dict(config)).items() if value is not None}


def _of_compose(document: Any) -> dict[str, Any]:
    services = (document or {}).get("services") or {}
    if len(services) != 1:
        raise Usage(f"a cell is one service, and this file has {len(services)}; use the docker sandbox for it")
    service = next(iter(services.values())) or {}
    unknown = sorted(set(service) - SERVICE_KEYS)
    if unknown:
        raise Usage(f"{', '.join(unknown)} of the service is not known to cells; use the docker sandbox for it")
    env = service.get("environment") or {}
    if isinstance(env, list):
        env = dict(item.partition("=")[::2] for item in env)
    # Compose gives a network unless it is told otherwise; a cell reaches the hosts of a policy only.
    settings: dict[str, Any] = {"base": base_of(service.get("image")), "cwd": service.get("working_dir"),
                                "env": {key: str(value) for key, value in env.items()}}
    if service.get("mem_limit"):
        settings["memory"] = str(service["mem_limit"]).upper().removesuffix("B")
    if service.get("cpus"):
        settings["cpus"] = float(service["cpus"])
    return {key: value for key, value in settings.items() if value}


@_named
class GloveboxSandboxEnvironment(_Base):
    """A sandbox that is one cell."""

    def __init__(self, cell: Cell, cwd: str | None = None) -> None:
        self._cell, self._cwd = cell, cwd

    @classmethod
    def config_files(cls) -> list[str]:
        return ["compose.yaml"]

    @classmethod
    def default_concurrency(cls) -> int | None:
        return 2 * (os.cpu_count() or 1)

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: dict[str, str]) -> dict[str, Any]:
        settings = settings_of(config)
        cwd = settings.pop("cwd", None)
        return {"default": cls(await Cell(**settings), cwd)}

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: Any, environments: dict[str, Any],
                             interrupted: bool) -> None:
        for environment in environments.values():
            await environment._cell.close()

    async def exec(self, cmd: list[str], input: str | bytes | None = None, cwd: str | None = None,
                   env: dict[str, str] = {}, user: str | None = None, timeout: int | None = None,
                   timeout_retry: bool = True, concurrency: bool = True) -> Any:
        check_user(user)
        try:
            result = await self._cell.exec(cmd, input=input, cwd=self._place(cwd) if cwd else self._cwd, env=env,
                                           timeout=timeout, keep=OUTPUT_MAX)
        except TimedOut as error:
            raise TimeoutError(f"Command timed out after {timeout} seconds.") from error
        except Denied as error:
            raise PermissionError(str(error)) from error
        if result.exit_code == 126 and "permission denied" in f"{result.message} {result.stderr!r}".lower():
            raise PermissionError(result.message or result.stderr.decode(errors="replace"))
        if result.dropped:
            raise _util.OutputLimitExceededError("10 MiB", result.stdout.decode(errors="replace"))
        code = result.exit_code if result.exit_code is not None else 128 + (result.signal or 0)
        return _util.ExecResult(code == 0, code, result.stdout.decode(), result.stderr.decode())

    async def write_file(self, file: str, contents: str | bytes) -> None:
        path = self._place(file)
        with _permissions():
            if posixpath.dirname(path):
                await self._cell.mkdir(posixpath.dirname(path), parents=True)
            with contextlib.suppress(FileNotFoundError):
                if (await self._cell.stat(path)).kind == "folder":
                    raise IsADirectoryError(f"{file} is a folder")
            await self._cell.write_bytes(path, contents.encode() if isinstance(contents, str) else contents)

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        path = self._place(file)
        with _permissions():
            about = await self._cell.stat(path)
            if about.kind == "folder":
                raise IsADirectoryError(f"{file} is a folder")
            if about.size > FILE_MAX:
                raise _util.OutputLimitExceededError("100 MiB", None)
            data = await self._cell.read_bytes(path)
        return data.decode() if text else data

    def _place(self, path: str) -> str:
        return posixpath.join(self._cwd, path) if self._cwd else path


@contextlib.contextmanager
def _permissions() -> Any:
    try:
        yield
    except Denied as error:
        raise PermissionError(str(error)) from error
