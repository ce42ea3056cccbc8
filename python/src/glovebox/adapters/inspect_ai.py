"""
inspect_ai: `sandbox="glovebox"`, or `sandbox=("glovebox", "compose.yaml")`, or with a GloveboxSandboxConfig. The wheel names
this module as an entry point, so that nothing has to be imported. Written against inspect_ai of August 2026.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, overload

from .. import aio
from ..errors import Denied, TimedOut, Usage
from ..errors import Limit as LimitReached
from . import _shared

if TYPE_CHECKING:
    T = TypeVar("T")
    S = TypeVar("S")

    class BaseModel:
        """A model of pydantic, which the harness brings along."""

        def __init__(self, **members: Any) -> None: ...
        def model_dump_json(self) -> str: ...

    class SandboxEnvironment:
        """The base class of the harness."""

    class ExecResult(Generic[T]):
        """How a program ended."""

        def __init__(self, success: bool, returncode: int, stdout: T, stderr: T) -> None: ...

    class OutputLimitExceededError(Exception):
        """There was more than the harness takes."""

        def __init__(self, limit_str: str, truncated_output: str | None) -> None: ...

    class SandboxEnvironmentLimits:
        """The ceilings of the harness."""

        MAX_EXEC_OUTPUT_SIZE: int
        MAX_EXEC_OUTPUT_SIZE_STR: str
        MAX_READ_FILE_SIZE: int
        MAX_READ_FILE_SIZE_STR: str

    def sandboxenv(name: str) -> Callable[[S], S]: ...
    def parse_compose_yaml(file: str, *, multiple_services: bool = True) -> Any: ...
else:
    with _shared.harness("inspect_ai", "inspect-ai"):
        from inspect_ai.util import (ExecResult, OutputLimitExceededError, SandboxEnvironment, SandboxEnvironmentLimits,
                                     parse_compose_yaml, sandboxenv)
        from pydantic import BaseModel

__all__ = ["GloveboxSandboxConfig", "GloveboxSandboxEnvironment"]

COMPOSE_FILES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
# What a service says of its container's life: a cell lives as long as its sample anyway.
WITHOUT_MEANING = ("command", "entrypoint", "init", "hostname", "healthcheck", "x_default")


class GloveboxSandboxConfig(BaseModel):
    """
    What the cell of a sample is. BASE is as in Cell, IMAGE a container image; WORKSPACE is a folder of this machine, a
    fresh one unless told, and WORKING_DIR the folder in which commands start.
    """

    model_config: ClassVar[dict[str, Any]] = {"frozen": True, "extra": "forbid"}

    base: str | None = None
    image: str | None = None
    workspace: str | None = None
    working_dir: str | None = None
    policy: dict[str, Any] | None = None
    network: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    mem_limit: str | None = None
    cpus: float | None = None

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


def config_of(config: BaseModel | str | None) -> GloveboxSandboxConfig:
    """The configuration of a sample, from what a task names: nothing, a model, or a compose file with one service."""
    if config is None:
        return GloveboxSandboxConfig()
    if isinstance(config, GloveboxSandboxConfig):
        return config
    name = "the compose configuration"
    if isinstance(config, str):
        name = os.path.basename(config)
        if name not in COMPOSE_FILES:
            raise Usage(f"{config}: a cell is configured by {' or '.join(COMPOSE_FILES[:2])}, or by a GloveboxSandboxConfig",
                        remedy="build an image from a Dockerfile, and name it there as image")
        compose = parse_compose_yaml(config, multiple_services=False)
    else:
        compose = config
    services: Mapping[str, Any] = getattr(compose, "services", None) or {}
    if len(services) != 1:
        raise Usage(f"{name}: a sample has one cell, and there are {len(services)} services")
    service = next(iter(services.values()))
    return _of_service(name, {key: value for key, value in dict(service).items() if value is not None})


def _of_service(name: str, service: dict[str, Any]) -> GloveboxSandboxConfig:
    """What the members of a SERVICE mean for a cell. A member without a meaning is refused by name."""
    for key in WITHOUT_MEANING:
        service.pop(key, None)
    members: dict[str, Any] = {key: service.pop(key) for key in ("image", "working_dir", "mem_limit", "cpus") if key in service}
    if "environment" in service:
        members["environment"] = _variables(service.pop("environment"))
    limits = getattr(getattr(service.pop("deploy", None), "resources", None), "limits", None)
    members.setdefault("mem_limit", getattr(limits, "memory", None))
    cpus = getattr(limits, "cpus", None)
    members.setdefault("cpus", float(cpus) if cpus else None)
    mode = service.pop("network_mode", "none")
    members.update(service.pop("x-glovebox", None) or {})
    if mode != "none" and not members.get("network"):
        raise Usage(f"{name}: network_mode: {mode} is all of the network, and a cell reaches hosts that are named",
                    remedy='write network_mode: none, or name hosts as x-glovebox: {network: ["pypi.org"]}')
    _shared.one_user(service.pop("user", None))
    unknown = sorted(key for key in service if not key.startswith("x-"))
    if unknown:
        raise Usage(f"{name}: a cell has no {', '.join(unknown)}", remedy="build an image first, and name it as image"
                    if "build" in unknown else "leave it out, or use the docker sandbox")
    return GloveboxSandboxConfig(**members)


def _variables(told: Any) -> dict[str, str]:
    """Variables of a service; one without a value is that of this machine, as compose has it."""
    rows = told.items() if isinstance(told, Mapping) else (str(row).partition("=")[::2] for row in told)
    bare = set() if isinstance(told, Mapping) else {str(row) for row in told if "=" not in str(row)}
    found = {}
    for name, value in rows:
        if value is None or name in bare:
            value = os.environ.get(name)
        if value is not None:
            found[str(name)] = str(value)
    return found


@sandboxenv(name="glovebox")
class GloveboxSandboxEnvironment(SandboxEnvironment):
    """The cell of one sample."""

    def __init__(self, cell: aio.Cell, cwd: str | None = None) -> None:
        self.cell = cell
        self._cwd = cwd

    @classmethod
    def config_files(cls) -> list[str]:
        return list(COMPOSE_FILES)

    @classmethod
    def is_docker_compatible(cls) -> bool:
        return True

    @classmethod
    def default_concurrency(cls) -> int | None:
        return 2 * (os.cpu_count() or 1)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        return GloveboxSandboxConfig(**config)

    @classmethod
    async def sample_init(cls, task_name: str, config: BaseModel | str | None,
                          metadata: dict[str, str]) -> dict[str, SandboxEnvironment]:
        """One cell, named "default"."""
        told = config_of(config)
        arguments = _shared.cell_arguments(image=told.image, base=told.base, workspace=told.workspace, cwd=told.working_dir,
                                           env=told.environment, memory=told.mem_limit, cpus=told.cpus,
                                           network=told.network, policy=told.policy)
        cell = await aio.Cell(**arguments).open()
        return {"default": cls(cell, told.working_dir)}

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: BaseModel | str | None,
                             environments: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        for environment in environments.values():
            if isinstance(environment, cls):
                await environment.cell.close()

    def _path(self, path: str | None) -> str | None:
        """Relative paths start at the folder of the sample."""
        return os.path.join(self._cwd, path or "") if self._cwd else path

    async def exec(self, cmd: list[str], input: str | bytes | None = None, cwd: str | None = None,
                   env: Mapping[str, str] | None = None, user: str | None = None, timeout: int | None = None,
                   timeout_retry: bool = True, concurrency: bool = True) -> ExecResult[str]:
        """
        Run a program. After TIMEOUT seconds all that it has started is ended; nothing is run again, whatever TIMEOUT_RETRY
        says, since a program that has written half of its work is not the same twice.
        """
        try:
            _shared.one_user(user)
        except Usage as error:
            return ExecResult(False, 126, f"unable to find user {user}: no matching entries in passwd file: {error}", str(error))
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        try:
            result = await self.cell.exec(cmd, input=input, cwd=self._path(cwd), env=_shared.variables(env),
                                          timeout=timeout, keep=limit)
        except TimedOut as error:
            raise TimeoutError(f"{cmd[0]}: it still ran after {timeout} s") from error
        except LimitReached as error:
            if error.result is None:
                raise
            result = error.result
        if result.exit_code == 126 and result.message:
            raise PermissionError(errno.EACCES, result.message, cmd[0])
        if result.dropped:
            cut = (result.stdout + result.stderr).decode(errors="replace")
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, cut)
        code = _shared.exit_code(result)
        stderr = "\n".join(part for part in (result.stderr.decode(), _shared.reasons(result)) if part)
        return ExecResult(code == 0, code, result.stdout.decode(), stderr)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file; the folders above it are made. A file that its mode protects is left as it is."""
        path = self._path(file) or file
        with _as_the_harness_tells_it(file):
            with contextlib.suppress(FileNotFoundError):
                if not (await self.cell.stat(path)).mode & 0o222:
                    raise PermissionError(errno.EACCES, "its mode does not let anybody write", file)
            if os.path.dirname(path):
                await self.cell.mkdir(os.path.dirname(path), parents=True)
            await self.cell.write_bytes(path, contents.encode() if isinstance(contents, str) else contents)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """The contents of a file, with the ends of its lines as they are."""
        path = self._path(file) or file
        with _as_the_harness_tells_it(file):
            found = await self.cell.stat(path)
            if found.kind == "file" and found.size > SandboxEnvironmentLimits.MAX_READ_FILE_SIZE:
                raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
            data = await self.cell.read_bytes(path)
        return data.decode() if text else data


@contextlib.contextmanager
def _as_the_harness_tells_it(file: str) -> Iterator[None]:
    """Errors about FILE with the system's words, for which the harness looks."""
    try:
        yield
    except IsADirectoryError as error:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), file) from error
    except Denied as error:
        raise PermissionError(errno.EACCES, str(error), file) from error
