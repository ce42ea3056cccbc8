"""
Harbor and Terminal-Bench: `harbor run --environment-import-path glovebox.adapters.harbor:GloveboxEnvironment`. Tasks with
a `docker_image` run; those with a Dockerfile alone need an image first. Written against Harbor of August 2026.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import aio
from ..errors import Closed, TimedOut, Usage
from ..errors import Limit as LimitReached
from . import _shared

if TYPE_CHECKING:
    class BaseEnvironment:
        """The base class of the harness."""

        environment_dir: Path
        task_env_config: Any
        session_id: str
        logger: Any
        def __init__(self, *args: Any, **kwargs: Any) -> None: ...
        def _merge_env(self, env: dict[str, str] | None) -> dict[str, str] | None: ...
        def _resolve_user(self, user: str | int | None) -> str | int | None: ...

    class EnvironmentCapabilities:
        """What an environment can do."""

        def __init__(self, **members: bool) -> None: ...

    class ExecResult:
        """How a command ended."""

        def __init__(self, *, stdout: str | None, stderr: str | None, return_code: int) -> None: ...
else:
    with _shared.harness("harbor", "harbor"):
        from harbor.environments.base import BaseEnvironment, ExecResult
        from harbor.environments.capabilities import EnvironmentCapabilities

__all__ = ["GloveboxEnvironment"]

KEEP = 16 << 20  # bytes of each output of a command


class GloveboxEnvironment(BaseEnvironment):
    """
    One cell. BASE, WORKSPACE and NETWORK are given as the environment's kwargs (`--ek network=["pypi.org"]`): a cell
    reaches hosts that are named, so a task for all of the network runs when NETWORK names those that it needs.
    """

    def __init__(self, *args: Any, base: str | None = None, workspace: str | None = None, network: Any = (),
                 **kwargs: Any) -> None:
        self._base, self._workspace = base, workspace
        self._hosts = [network] if isinstance(network, str) else list(network)
        self._open: aio.Cell | None = None
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "glovebox"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True, network_allowlist=True)

    def _validate_definition(self) -> None:
        config = self.task_env_config
        if getattr(config, "docker_image", None) or self._base:
            return
        if any((Path(self.environment_dir) / name).exists() for name in ("Dockerfile", "docker-compose.yaml")):
            raise Usage(f"{self.environment_dir}: a cell runs images, and this task has what makes one",
                        remedy="build the image and name it as docker_image, or give base= as an argument of the environment")

    @property
    def cell(self) -> aio.Cell:
        """The cell; Closed before `start` and after `stop`."""
        if self._open is None:
            raise Closed("this environment was not started")
        return self._open

    def _network(self) -> list[str]:
        """The hosts that the task may reach."""
        policy = getattr(self, "_network_policy", None)
        mode = getattr(getattr(policy, "network_mode", None), "value", None)
        if mode == "no-network" or getattr(self.task_env_config, "allow_internet", None) is False:
            return []
        if mode == "allowlist":
            return [str(host) for host in getattr(policy, "allowed_hosts", None) or ()]
        return self._hosts

    async def start(self, force_build: bool) -> None:
        """Open the cell."""
        if self._open is not None:
            return
        config = self.task_env_config
        memory, workdir = getattr(config, "memory_mb", None), getattr(config, "workdir", None)
        image = None if self._base else getattr(config, "docker_image", None)
        arguments = _shared.cell_arguments(image=image, base=self._base, workspace=self._workspace, cwd=workdir,
                                           memory=f"{memory}M" if memory else None, cpus=getattr(config, "cpus", None),
                                           network=self._network())
        self._open = await aio.Cell(**arguments).open()

    async def stop(self, delete: bool) -> None:
        """End the cell; there is nothing to be kept."""
        cell, self._open = self._open, None
        if cell is not None:
            await cell.close()

    async def exec(self, command: str, cwd: str | None = None, env: dict[str, str] | None = None,
                   timeout_sec: int | None = None, user: str | int | None = None) -> ExecResult:
        """Run COMMAND by bash."""
        _shared.one_user(self._resolve_user(user))
        folder = cwd or getattr(self.task_env_config, "workdir", None) or None
        try:
            result = await self.cell.exec(["bash", "-c", command], cwd=folder, timeout=timeout_sec, keep=KEEP,
                                          env=_shared.variables(self._merge_env(env)))
        except TimedOut as error:
            raise RuntimeError(f"the command timed out after {timeout_sec} s, and all that it had started was ended") from error
        except LimitReached as error:
            if error.result is None:
                raise
            result = error.result
        said = [part for part in (result.stderr.decode(errors="replace"), _shared.reasons(result)) if part]
        if result.dropped:
            said.append(f"[{result.dropped} bytes behind the first {KEEP} of an output were left out.]")
        return ExecResult(stdout=result.text, stderr="\n".join(said), return_code=_shared.exit_code(result))

    # Files.

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        if os.path.dirname(target_path):
            await self.cell.mkdir(os.path.dirname(target_path), parents=True)
        await self.cell.upload(source_path, target_path)
        if os.access(source_path, os.X_OK):
            await self.cell.exec(["chmod", "+x", "--", target_path], check=True)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self.cell.upload(source_dir, target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        await self.cell.download(source_path, target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        left_out = await _shared.get_folder(self.cell, source_dir, target_dir)
        if left_out:
            self.logger.warning("%s: %d entries are no files, or could leave the folder, and were left out", source_dir, left_out)
